/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweep that predicts: probes and anchors make the model; then the strategies that it takes for
 * the best are run, and some from all over the ranking. What they show calibrates the model, and
 * the ranking is made again, until the best one is one that was run, and nothing that was not run
 * may be better, as far as there is time. If the model misses by more than MISS_MOST, more
 * strategies are run.
 */
#include "../../base/clock_internal.h"
#include "predict_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MISS_MOST 0.25
/* Strategies that are run beyond the confirming ones, until the best has been run and no other may
 * be better. */
#define MORE_MOST 12
/* Those that may be better are run in this part of the time to decide; the rest is for rounds. */
#define DOUBT_PART 0.5

/* ---- results ---- */

/* What limits a strategy. With a target that it more than reaches, that is the training. */
static void set_bounds_of(presto_sweep *sweep, size_t i) {
    presto_strategy_result *result = &sweep->trials[i].result;
    presto__conditions training = presto__model_conditions(sweep->model);
    training.consumer_samples_per_s = presto__goal(&sweep->limits);
    presto__rates rates;
    if (!presto__model_rates(sweep->model, &result->strategy, &training, &rates))
        return;
    result->prediction.cold_bound = rates.cold_bound;
    result->prediction.cached_bound = rates.cached_bound;
}

/* Keeps what the model says of a strategy before it is run. */
static bool foretell(presto_sweep *sweep, size_t i) {
    const presto__model *model = sweep->model;
    presto_strategy_result *result = &sweep->trials[i].result;
    presto__rates rates;
    presto__offline whole;
    if (!presto__model_rates(model, &result->strategy, NULL, &rates) ||
        !presto__model_offline(model, &result->strategy, model->source_samples, &whole))
        return false;
    result->prediction = (presto_sweep_prediction){
        .cold_samples_per_s = rates.cold_samples_per_s,
        .cached_samples_per_s = rates.cached_samples_per_s,
        .uncertainty = model->uncertainty,
        .preparation_s = whole.preparation_s,
        .stored_bytes =
            result->strategy.codec == NULL ? (double)sweep->facts.source_bytes : whole.stored_bytes,
        .cold_error = NAN,
        .cached_error = NAN,
        .memory_samples_per_s = rates.memory_samples_per_s,
        .memory_bytes =
            model->cache.samples > 0 ? model->cache.bytes * (double)model->source_samples : NAN,
        .is_elsewhere = rates.is_elsewhere,
    };
    set_bounds_of(sweep, i);
    return true;
}

static presto_epoch_result epochs_of(double samples_per_s, double uncertainty,
                                     const presto__model_split *split) {
    double part = fmin(uncertainty, 0.9);
    double bytes = split->delivered_bytes;
    return (presto_epoch_result){
        .samples_per_s = {samples_per_s * (1 - part), samples_per_s, samples_per_s * (1 + part), 0},
        .delivered_bytes_per_s = {bytes * samples_per_s, bytes * samples_per_s,
                                  bytes * samples_per_s, 0},
        .read_bytes_per_s = {NAN, NAN, NAN, 0},
        .cpu_user_s = NAN,
        .cpu_system_s = NAN,
        .cpu_s_per_sample = NAN,
        .context_switches_per_s = NAN,
        .disk_read_bytes = NAN,
        .peak_rss_bytes = NAN,
        .start_s = NAN,
        .steady_samples_per_s = NAN};
}

static const presto__model_split *split_of(const presto_sweep *sweep, const char *name) {
    size_t s = 0;
    while (strcmp(sweep->model->splits[s].name, name) != 0)
        s++;
    return &sweep->model->splits[s];
}

bool presto__predict_result(presto_sweep *sweep, const presto__runner *runner, size_t i) {
    presto_strategy_result *result = &sweep->trials[i].result;
    presto__offline sample;
    if (!foretell(sweep, i) ||
        !presto__model_offline(sweep->model, &result->strategy, runner->samples, &sample))
        return false;
    const presto_sweep_prediction *said = &result->prediction;
    const presto__model_split *split = split_of(sweep, result->strategy.stored);
    result->is_predicted = true;
    result->samples = (uint64_t)llround((double)runner->samples * split->delivered);
    result->stored_bytes = (uint64_t)llround(sample.stored_bytes);
    result->raw_bytes = (uint64_t)llround(sample.raw_bytes);
    double time = sample.preparation_s;
    result->preparation_s = (presto_spread){time, time, time, 0};
    result->total_preparation_s = said->preparation_s;
    result->total_preparation_error_s =
        said->preparation_s * said->uncertainty * presto__student_95(UINT64_MAX);
    result->total_stored_bytes = said->stored_bytes;
    result->total_stored_error_bytes = split->is_raw ? 0 : said->stored_bytes * split->record_error;
    result->cold = epochs_of(said->cold_samples_per_s, said->uncertainty, split);
    result->cached = epochs_of(said->cached_samples_per_s, said->uncertainty, split);
    return true;
}

/* Why the model knows nothing of a strategy: an anchor of its split failed, or could not be looked
 * at, or its codec cannot be used there. */
static presto_error why_unknown(const presto_sweep *sweep, const presto_strategy *strategy) {
    const presto__model *model = sweep->model;
    const presto__model_split *split = split_of(sweep, strategy->stored);
    const presto__anchors *anchors = &sweep->anchors[split - model->splits];
    presto_error why;
    if (split->failure.status < 0)
        return split->failure;
    for (size_t k = 0; k < 2; k++)
        if (!presto__trial_is_alive(&sweep->trials[anchors->at[k]]))
            return sweep->trials[anchors->at[k]].result.failure;
    for (size_t c = 0; c < model->codec_count && !split->is_raw; c++)
        if (strcmp(model->codecs[c], strategy->codec) == 0 && split->codecs[c].failure != NULL)
            return *split->codecs[c].failure;
    (void)presto_fail(&why, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                      "it was not possible to try this codec on this split");
    return why;
}

/* It has no figures, and takes no part. */
static void fail_unknown(presto_sweep *sweep, size_t i) {
    presto_strategy_result *result = &sweep->trials[i].result;
    result->failed = true;
    result->failure = why_unknown(sweep, &result->strategy);
    result->score = NAN;
}

/* ---- which are run ---- */

static bool was_run(const presto_sweep *sweep, size_t i) {
    return sweep->trials[i].cold_count > 0;
}

/* The anchors are not among them. */
static size_t count_confirming(const presto_sweep *sweep) {
    size_t count = 0;
    for (size_t i = 0; i < sweep->trial_count; i++)
        count += was_run(sweep, i) && !presto__is_anchor(sweep, i);
    return count;
}

static bool can_run(const presto_sweep *sweep, size_t i) {
    const presto__trial *trial = &sweep->trials[i];
    return presto__trial_is_alive(trial) && !trial->gave_up &&
           !trial->result.prediction.is_elsewhere;
}

/* Of all that have not been run. */
static void predict_others(presto_sweep *sweep, const presto__runner *runner) {
    for (size_t i = 0; i < sweep->trial_count; i++) {
        if (was_run(sweep, i) || !presto__trial_is_alive(&sweep->trials[i]))
            continue;
        if (!presto__predict_result(sweep, runner, i))
            fail_unknown(sweep, i);
    }
}

/* Compares a run with what was said before it. The anchors are what the model is made of: what it
 * says of them proves nothing. */
static void set_error(presto_sweep *sweep, size_t i) {
    presto_strategy_result *result = &sweep->trials[i].result;
    presto_sweep_prediction *said = &result->prediction;
    if (!was_run(sweep, i) || result->failed || presto__is_anchor(sweep, i))
        return;
    said->cold_error = said->cold_samples_per_s / result->cold.samples_per_s.median - 1;
    said->cached_error = said->cached_samples_per_s / result->cached.samples_per_s.median - 1;
}

static presto_status run_list(presto_sweep *sweep, presto__runner *runner, const size_t *list,
                              size_t count, presto_error *err) {
    const presto__measuring what = {.list = list, .count = count, .runs = runner->options->runs};
    for (size_t k = 0; k < count; k++) {
        if (!was_run(sweep, list[k]))
            (void)foretell(sweep, list[k]);
        sweep->trials[list[k]].result.is_predicted = false;
    }
    runner->total = runner->done + presto__measure_left(sweep, runner, &what);
    PRESTO_TRY(presto__measure_list(sweep, runner, &what, err));
    for (size_t k = 0; k < count; k++)
        set_error(sweep, list[k]);
    presto__model_calibrate(sweep->model, sweep);
    predict_others(sweep, runner);
    return presto__decide(sweep, err);
}

typedef struct ranked {
    double merit;
    size_t i;
} ranked;

static int by_merit(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (a->merit != b->merit)
        return a->merit > b->merit ? -1 : 1;
    return a->i < b->i ? -1 : 1;
}

/* Those that can be run and have not been, best first. Returns how many. */
static size_t rank_open(const presto_sweep *sweep, ranked *open) {
    size_t count = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto_strategy_result *result = &sweep->trials[i].result;
        if (was_run(sweep, i) || !can_run(sweep, i))
            continue;
        double merit = isfinite(result->cost) ? -result->cost : result->score;
        open[count++] = (ranked){isfinite(merit) ? merit : -INFINITY, i};
    }
    qsort(open, count, sizeof *open, by_merit);
    return count;
}

/* The best one, the next best ones, and some from all over the others. */
static size_t choose_to_confirm(const presto_sweep *sweep, size_t wanted, size_t *list,
                                ranked *open) {
    size_t ranks = rank_open(sweep, open), left = 0, count = 0;
    for (size_t k = 0; k < ranks; k++) {
        if (open[k].i != sweep->best)
            open[left++] = open[k];
        else if (wanted > 0)
            list[count++] = sweep->best;
    }
    size_t top = (wanted + 1) / 2, next = 0;
    while (next < left && count < top)
        list[count++] = open[next++].i;
    size_t spread = wanted - count < left - next ? wanted - count : left - next;
    for (size_t k = 0; k < spread; k++)
        list[count++] = open[next + (2 * k + 1) * (left - next) / (2 * spread)].i;
    return count;
}

static bool needs_runs(const presto_sweep *sweep, const presto__runner *runner, size_t i) {
    return can_run(sweep, i) && sweep->trials[i].cold_count < runner->options->runs;
}

/* ---- what is told ---- */

/* The largest error of a prediction. */
typedef struct miss {
    double part; /* 0: there is none */
    size_t whose;
    bool is_cached;
} miss;

/* Threads beyond the processors are chosen for what they do while they wait for storage. Cached, they
 * only hinder each other: the model does not tell how much, and no choice depends on it. */
static bool is_crowded(const presto_sweep *sweep, size_t i) {
    return sweep->trials[i].result.strategy.threads > sweep->model->cores;
}

static miss largest_miss(const presto_sweep *sweep) {
    miss most = {.part = 0};
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto_sweep_prediction *said = &sweep->trials[i].result.prediction;
        if (!was_run(sweep, i))
            continue;
        if (fabs(said->cold_error) > most.part)
            most = (miss){fabs(said->cold_error), i, false};
        if (!is_crowded(sweep, i) && fabs(said->cached_error) > most.part)
            most = (miss){fabs(said->cached_error), i, true};
    }
    return most;
}

static const char *why_missed(const presto_sweep *sweep, const miss *most) {
    const presto__trial *trial = &sweep->trials[most->whose];
    const presto_epoch_result *result =
        most->is_cached ? &trial->result.cached : &trial->result.cold;
    const presto__epochs *runs = most->is_cached ? trial->cached : trial->cold;
    presto_spread rate = result->samples_per_s;
    if (rate.runs > 1 && rate.most - rate.least > 0.2 * rate.median)
        return "its own runs differ by more than a fifth: the machine was disturbed, or too few "
               "samples were measured";
    if (trial->cold_count > 0 && presto__epochs_typical_s(&runs[0]) < 5e-3)
        return "an epoch takes only milliseconds: more --samples would tell more";
    if (!most->is_cached && fabs(trial->result.prediction.cached_error) <= MISS_MOST)
        return "cached it was right: storage behaves otherwise than where it was probed";
    return "why is not known";
}

static presto_status note_miss(presto_sweep *sweep, bool were_more_run, presto_error *err) {
    const miss most = largest_miss(sweep);
    char name[PRESTO__STRATEGY_TEXT_BYTES];
    if (most.part <= MISS_MOST)
        return PRESTO_OK;
    return presto__add_note(
        sweep, err, "the model missed the %s rate of %s by %.0f %% (%s)%s",
        most.is_cached ? "cached" : "cold",
        presto__strategy_format(&sweep->trials[most.whose].result.strategy, name, sizeof name),
        100 * most.part, why_missed(sweep, &most),
        were_more_run ? ", so more strategies were run" : "");
}

static presto_status note_elsewhere(presto_sweep *sweep, presto_error *err) {
    const presto_strategy_result *best = &sweep->trials[sweep->best].result;
    if (!best->is_predicted)
        return PRESTO_OK;
    return presto__add_note(sweep, err,
                            "the recommended strategy was not run: it computes on %u threads, and "
                            "this machine has %u processor%s. Its figures are predicted for a "
                            "machine that has as many of them",
                            best->strategy.threads, sweep->model->cores,
                            presto_plural(sweep->model->cores));
}

/* ---- the whole ---- */

/* What the confirming runs share. */
typedef struct confirming {
    presto_sweep *sweep;
    presto__runner *runner;
    size_t *list; /* room for all strategies */
    ranked *open; /* likewise */
} confirming;

/* Strategies that were run to confirm before the sweep was resumed: they get their figures, and the
 * runs that they lack. */
static presto_status take_earlier_runs(const confirming *all, size_t *count_out,
                                       presto_error *err) {
    presto_sweep *sweep = all->sweep;
    size_t count = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        if (!was_run(sweep, i) || !presto__trial_is_alive(&sweep->trials[i]))
            continue;
        presto_sweep_prediction *said = &sweep->trials[i].result.prediction;
        const presto_sweep_prediction before = *said; /* as it was run */
        (void)foretell(sweep, i);
        if (isfinite(before.cold_samples_per_s) && isfinite(before.cached_samples_per_s)) {
            said->cold_samples_per_s = before.cold_samples_per_s;
            said->cached_samples_per_s = before.cached_samples_per_s;
            said->uncertainty = before.uncertainty;
            said->preparation_s = before.preparation_s;
            said->stored_bytes = before.stored_bytes;
        }
        if (!presto__is_anchor(sweep, i))
            all->list[count++] = i;
    }
    *count_out = count;
    return run_list(sweep, all->runner, all->list, count, err);
}

/* Runs strategies until `wanted` were run to confirm, of which `done` are. */
static presto_status confirm_until(const confirming *all, size_t wanted, size_t done,
                                   presto_error *err) {
    if (done >= wanted)
        return PRESTO_OK;
    size_t count = choose_to_confirm(all->sweep, wanted - done, all->list, all->open);
    return run_list(all->sweep, all->runner, all->list, count, err);
}

/* The best one, until it has been run as often as wanted; then one that may be better. SIZE_MAX: no
 * more, or no more time. */
static size_t next_to_run(const presto_sweep *sweep, const presto__runner *runner, size_t ran) {
    if (needs_runs(sweep, runner, sweep->best))
        return sweep->best;
    bool has_time = ran < MORE_MOST && sweep->race_s < DOUBT_PART * sweep->decide_s;
    return has_time ? presto__next_not_run(sweep, false) : SIZE_MAX;
}

static presto_status run_the_best(presto_sweep *sweep, presto__runner *runner, presto_error *err) {
    size_t ran = 0;
    for (size_t next; (next = next_to_run(sweep, runner, ran)) != SIZE_MAX;) {
        bool is_best = next == sweep->best;
        uint64_t start_ns = presto__clock_ns();
        sweep->only_measured = ++ran >= MORE_MOST;
        PRESTO_TRY(run_list(sweep, runner, &next, 1, err));
        if (!is_best)
            sweep->race_s += presto__seconds(presto__clock_ns() - start_ns);
    }
    return PRESTO_OK;
}

/* What limits strategies that were run, as the model tells it in the end: the same for a sweep that
 * was resumed. */
static void set_bounds(presto_sweep *sweep) {
    for (size_t i = 0; i < sweep->trial_count; i++)
        if (was_run(sweep, i))
            set_bounds_of(sweep, i);
}

void presto__predict_compare(presto_sweep *sweep) {
    for (size_t i = 0; i < sweep->trial_count; i++)
        set_error(sweep, i);
    set_bounds(sweep);
}

static presto_status confirm(const confirming *all, presto_error *err) {
    presto_sweep *sweep = all->sweep;
    size_t wanted = all->runner->options->confirm_runs, earlier = 0;
    PRESTO_TRY(take_earlier_runs(all, &earlier, err));
    PRESTO_TRY(confirm_until(all, wanted, earlier, err));
    bool misses = largest_miss(sweep).part > MISS_MOST;
    if (misses)
        PRESTO_TRY(confirm_until(all, wanted + (wanted + 1) / 2,
                                 earlier > wanted ? earlier : wanted, err));
    PRESTO_TRY(run_the_best(sweep, all->runner, err));
    set_bounds(sweep);
    if (misses)
        PRESTO_TRY(note_miss(sweep, count_confirming(sweep) > wanted, err));
    PRESTO_TRY(presto__note_cache(sweep, err));
    return note_elsewhere(sweep, err);
}

presto_status presto__predict_sweep(presto_sweep *sweep, presto__runner *runner,
                                    presto_error *err) {
    PRESTO_TRY(presto__make_model(sweep, runner, err));
    const confirming all = {sweep, runner, calloc(sweep->trial_count, sizeof *all.list),
                            calloc(sweep->trial_count, sizeof *all.open)};
    presto_status status = PRESTO_OK;
    if (all.list == NULL || all.open == NULL)
        status = presto_fail_memory(err, sweep->trial_count * sizeof *all.open);
    if (status == PRESTO_OK)
        status = confirm(&all, err);
    free(all.open);
    free(all.list);
    return status;
}
