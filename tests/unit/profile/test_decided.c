/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often "decided" is wrong of the whole source, on sources whose truth is known: the sample has
 * other records than the whole, epochs of it begin with a start, and the machine does not repeat
 * itself. Strategies that are far behind have one run, as in a sweep.
 */
#include "../../../base/rng_internal.h"
#include "predict/predict_internal.h"
#include "race_check.h"

/* Strategies 0 and 1 read the same records, 2 reads others. */
enum { STRATEGIES = 3, RUNS = 3, SAMPLE = 100, TIMES = 5, WHOLE = 20000 };

/* What is true of a source and a machine. */
typedef struct truth {
    double rate_spread;  /* rates without start differ by so much */
    double start_most_s; /* starts differ up to this */
    double size_spread;  /* of the records: logarithmic */
    double noise, phase; /* of runs: of each by itself, and of all in a slow phase */
} truth;

typedef struct made {
    presto_sweep *sweep;
    presto__runner runner;
    double start_s[STRATEGIES], each_s[STRATEGIES]; /* of the whole */
    double sample[2]; /* the mean record of the sample over that of the whole, of both kinds */
    double phase;
    size_t spared; /* strategies that have one run */
    const truth *of;
    presto_rng rng;
} made;

static double true_rate(const made *m, size_t i) {
    return WHOLE / (m->start_s[i] + WHOLE * m->each_s[i]);
}

static double epoch_s(made *m, size_t i, double samples) {
    double mean_s = m->each_s[i] * m->sample[i == 2];
    m->phase = next_phase(m->phase, m->of->phase, &m->rng);
    return (m->start_s[i] + samples * mean_s) * exp(m->phase + m->of->noise * normal(&m->rng));
}

static void draw_records(made *m, presto__trial *trial, double *mean_out) {
    double spread = m->of->size_spread;
    trial->record_bytes = (presto__moments){0};
    for (size_t i = 0; i < SAMPLE; i++)
        presto__moments_add(&trial->record_bytes, exp(spread * normal(&m->rng)));
    *mean_out = trial->record_bytes.mean / exp(spread * spread / 2);
}

static void set_runs(made *m, size_t i) {
    presto__trial *trial = &m->sweep->trials[i];
    for (size_t r = 0; r < RUNS; r++) {
        presto__epochs *run = &trial->cold[r];
        *run = (presto__epochs){.epochs = 1, .samples = SAMPLE};
        run->epoch_s = run->measure.wall_s = epoch_s(m, i, SAMPLE);
        run->second_samples = TIMES * SAMPLE;
        run->second_s = epoch_s(m, i, TIMES * SAMPLE);
        trial->cached[r] = (presto__epochs){.epochs = 1, .samples = SAMPLE, .epoch_s = 1};
    }
    trial->cold_count = trial->cached_count = RUNS;
    trial->lap_count = 0;
    presto_error err;
    ck_assert_ok(presto__trial_summarize(&m->runner, trial, &err), &err);
}

static void set_run_count(made *m, size_t i, size_t count) {
    presto__trial *trial = &m->sweep->trials[i];
    presto_error err;
    trial->cold_count = trial->cached_count = count;
    ck_assert_ok(presto__trial_summarize(&m->runner, trial, &err), &err);
}

/* Each strategy is an anchor. After the first run of all, those that are far behind have no more. */
static void spare_runs(made *m) {
    bool has_enough[STRATEGIES];
    for (size_t i = 0; i < STRATEGIES; i++)
        set_run_count(m, i, 1);
    for (size_t i = 0; i < STRATEGIES; i++)
        has_enough[i] = presto__anchor_has_enough(m->sweep, &m->runner, i);
    for (size_t i = 0; i < STRATEGIES; i++) {
        set_run_count(m, i, has_enough[i] ? 1 : RUNS);
        m->spared += has_enough[i];
    }
}

static void draw(made *m) {
    m->phase = 0;
    m->sweep->rounds = 0;
    for (size_t i = 0; i < STRATEGIES; i++) {
        m->start_s[i] = m->of->start_most_s * presto_rng_uniform(&m->rng);
        m->each_s[i] = 1e-3 * exp(m->of->rate_spread * (2 * presto_rng_uniform(&m->rng) - 1));
    }
    draw_records(m, &m->sweep->trials[0], &m->sample[0]);
    m->sweep->trials[1].record_bytes = m->sweep->trials[0].record_bytes;
    draw_records(m, &m->sweep->trials[2], &m->sample[1]);
    for (size_t i = 0; i < STRATEGIES; i++)
        set_runs(m, i);
    spare_runs(m);
}

static void add_round(void *user) {
    made *m = user;
    presto_error err;
    m->sweep->rounds++;
    for (size_t k = 0; k < STRATEGIES; k++) {
        size_t i = m->sweep->rounds % 2 == 0 ? STRATEGIES - 1 - k : k;
        presto__trial *trial = &m->sweep->trials[i];
        presto__epochs run = {.epochs = 1, .samples = (uint64_t)TIMES * SAMPLE};
        run.epoch_s = epoch_s(m, i, TIMES * SAMPLE);
        const presto__lap lap = {
            m->sweep->rounds, presto__epochs_whole_rate(&run, presto__trial_start(trial), WHOLE)};
        ck_assert_ok(presto__trial_add_lap(trial, lap, &err), &err);
    }
}

/* What is recommended is more than 2 % slower than the best. */
static bool is_wrong(const made *m) {
    double most = 0;
    for (size_t i = 0; i < STRATEGIES; i++)
        most = fmax(most, true_rate(m, i));
    return true_rate(m, m->sweep->best) < (1 - PRESTO__SAME) * most;
}

static void set_up(made *m, const truth *of) {
    *m = (made){.sweep = made_sweep(false), .of = of};
    presto__rng_init(&m->rng, &(presto__rng_key){.seed = presto_check_seed()});
    m->runner.samples = m->sweep->facts.samples = SAMPLE;
    m->runner.source_samples = m->sweep->facts.source_samples = WHOLE;
    m->sweep->run_s = 0.1;
    m->sweep->model = calloc(1, sizeof *m->sweep->model);
    m->sweep->anchors = calloc(STRATEGIES, sizeof *m->sweep->anchors);
    ck_assert(m->sweep->model != NULL && m->sweep->anchors != NULL);
    m->sweep->model->cores = 2;
    m->sweep->space.split_count = STRATEGIES;
    for (size_t i = 0; i < STRATEGIES; i++) {
        presto__trial *trial = &m->sweep->trials[i];
        free(trial->cold[0].costs);
        free(trial->cached[0].costs);
        free(trial->cold);
        free(trial->cached);
        trial->cold = calloc(RUNS, sizeof *trial->cold);
        trial->cached = calloc(RUNS, sizeof *trial->cached);
        ck_assert(trial->cold != NULL && trial->cached != NULL);
        trial->preparation_count = 1;
        m->sweep->anchors[i] = (presto__anchors){{i, i}};
        trial->result.strategy = (presto_strategy){
            .stored = i < 2 ? "resized" : "decoded", .codec = "none", .threads = i == 1 ? 2 : 1};
    }
}

static void tear_down(made *m) {
    m->sweep->space.split_count = 0; /* it has no names */
    presto_sweep_free(m->sweep);
}

static size_t count(const truth *of, size_t races, size_t *decided_out, size_t *wrong_out) {
    made m;
    set_up(&m, of);
    *decided_out = *wrong_out = 0;
    for (size_t i = 0; i < races; i++) {
        draw(&m);
        bool decided = race_until_decided(m.sweep, add_round, &m);
        *decided_out += decided;
        *wrong_out += decided && is_wrong(&m);
    }
    tear_down(&m);
    return m.spared;
}

START_TEST(what_is_decided_is_right_of_the_whole_source) {
    static const truth truths[] = {
        {0.15, 0.3, 0.4, 0.02, 0.01}, /* records differ */
        {0.10, 0.6, 0, 0.03, 0.02},   /* starts differ */
        {0.05, 0.3, 0.2, 0.03, 0.05}, /* slow phases */
        {0.30, 0.1, 0.8, 0.01, 0},    /* records differ widely */
        {1.20, 0.3, 0.4, 0.05, 0.05}, /* some are far behind */
        {1.20, 0.3, 0.2, 0.10, 0.20}, /* the same, and a machine of slow phases */
    };
    size_t races = presto_check_rounds(400);
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
        size_t decided, wrong, spared = count(&truths[i], races, &decided, &wrong);
        printf("truth %zu: of %zu, %zu decided, %zu wrong; %zu had one run\n", i, races, decided,
               wrong, spared);
        assert_few_are_wrong(i, races, decided, wrong);
        ck_assert_uint_eq(spared > 0, truths[i].rate_spread > 1);
    }
}
END_TEST

START_TEST(what_differs_clearly_is_decided) {
    size_t decided, wrong, races = presto_check_rounds(100);
    count(&(truth){0.5, 0.05, 0.05, 0.01, 0.01}, races, &decided, &wrong);
    printf("of %zu, %zu decided, %zu wrong\n", races, decided, wrong);
    ck_assert_uint_ge(decided, races * 3 / 4);
    ck_assert_uint_le(wrong, races / 20 + 2);
}
END_TEST

/* An epoch that did not last decides nothing, and says how much of it was its start. */
START_TEST(short_epochs_decide_nothing) {
    made m;
    set_up(&m, &(truth){0.5, 0.05, 0.05, 0.01, 0.01});
    m.sweep->run_s = 10;
    draw(&m);
    ck_assert(!race_until_decided(m.sweep, add_round, &m));
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(m.sweep);
    ck_assert_double_gt(sure->start_part, 0);
    ck_assert_double_lt(sure->start_part, 1);
    assert_says(reason_for(m.sweep), "their start-up counted for ");
    for (size_t i = 0; i < STRATEGIES; i++)
        for (size_t r = 0; r < RUNS; r++)
            m.sweep->trials[i].cold[r].second_samples = 0;
    assert_says(reason_for(m.sweep), "what starts them counted in full");
    ck_assert(isnan(sure->start_part) && !sure->is_decided);
    m.sweep->facts.source_samples = SAMPLE; /* the whole source was measured */
    (void)reason_for(m.sweep);
    ck_assert_double_eq(sure->start_part, 0);
    tear_down(&m);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_is_decided_is_right_of_the_whole_source,
        what_differs_clearly_is_decided,
        short_epochs_decide_nothing,
    };
    return presto_check_main("profile/decided", tests, sizeof tests / sizeof *tests, 60);
}
