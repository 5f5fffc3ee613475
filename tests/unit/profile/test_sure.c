/* SPDX-License-Identifier: Apache-2.0 */
/* How sure the choice is: the interval against published and counted values, and the rule on series
 * with a known truth. */
#include "../../../base/rng_internal.h"
#include "race_check.h"

/* ---- the interval ---- */

/*
 * Hollander and Wolfe, Nonparametric Statistical Methods, table 3.1 (Hamilton depression scale,
 * nine patients), as R's wilcox.test(conf.int = TRUE) has it, too. Ordered so that neighbours do
 * not resemble each other: that has a test of its own.
 */
static const double hamilton[] = {0.952, -0.147, 1.022, -0.08, 0.62, 0.01, 0.59, 0.43, 0.49};

START_TEST(the_interval_is_that_of_the_signed_rank_test) {
    presto__interval interval = presto__interval_of(hamilton, 9, 0.05);
    ck_assert_double_eq_tol(interval.middle, 0.46, 1e-12);
    ck_assert_double_eq_tol(interval.least, 0.01, 1e-12);
    ck_assert_double_eq_tol(interval.most, 0.786, 1e-12);
    ck_assert_uint_eq(interval.count, 9);
    interval = presto__interval_of(hamilton, 9, 1.0 / 256); /* only the outermost */
    ck_assert_double_eq_tol(interval.least, -0.147, 1e-12);
    ck_assert_double_eq_tol(interval.most, 1.022, 1e-12);
    interval = presto__interval_of(hamilton, 9, 1.0 / 257);
    ck_assert(isinf(interval.least) && isinf(interval.most));
    interval = presto__interval_of(hamilton, 0, 0.05);
    ck_assert(interval.least < 0 && isinf(interval.least) && isnan(interval.middle));
}
END_TEST

/* Each pattern of signs is as probable as any other if the middle is 0. */
START_TEST(over_all_patterns_of_signs_the_interval_errs_as_often_as_allowed) {
    static const double errors[] = {0.3, 0.1, 0.05, 0.02};
    for (size_t e = 0; e < 4; e++) {
        unsigned misses = 0;
        for (unsigned signs = 0; signs < 1u << 10; signs++) {
            double values[10];
            for (unsigned i = 0; i < 10; i++) /* by turns large and small */
                values[i] =
                    (i % 2 == 0 ? 1 + i * 0.37 : 20 - i * 1.3) * ((signs >> i & 1) != 0 ? 1 : -1);
            presto__interval interval = presto__interval_of(values, 10, errors[e]);
            misses += interval.least > 0 || interval.most < 0;
        }
        ck_assert_msg(misses <= errors[e] * 1024, "%u of 1024 at %g", misses, errors[e]);
        ck_assert_msg(misses >= errors[e] * 1024 / 4, "%u of 1024 at %g", misses, errors[e]);
    }
}
END_TEST

START_TEST(neighbours_that_resemble_each_other_make_it_wider) {
    double rising[20], turning[20];
    for (size_t i = 0; i < 20; i++) {
        rising[i] = (double)i;
        turning[i] = (double)(i % 2 == 0 ? i : 19 - i); /* the same values but for their order */
    }
    presto__interval in_order = presto__interval_of(rising, 20, 0.05);
    presto__interval mixed = presto__interval_of(turning, 20, 0.05);
    ck_assert_double_eq_tol(in_order.middle, 9.5, 1e-12);
    ck_assert_double_gt(in_order.most - in_order.least, 2 * (mixed.most - mixed.least));
}
END_TEST

START_TEST(more_values_than_fit_are_left_out) {
    double many[200];
    for (size_t i = 0; i < 200; i++)
        many[i] = i < PRESTO__VALUES_MOST ? 1 : 1000;
    presto__interval interval = presto__interval_of(many, 200, 0.01);
    ck_assert_double_eq(interval.least, 1);
    ck_assert_double_eq(interval.most, 1);
}
END_TEST

/* ---- the rule ---- */

/* Rates of two strategies around these, in rounds: phases of the machine affect both alike, and a
 * disturbance only one. */
typedef struct truth {
    double rates[2];
    double disturbance, phase;
} truth;

typedef struct made {
    presto_sweep *sweep;
    const truth *of;
    presto_rng *rng;
    double phase;
} made;

static void add_round(void *user) {
    made *m = user;
    presto_error err;
    m->phase = next_phase(m->phase, m->of->phase, m->rng);
    m->sweep->rounds++;
    for (size_t i = 0; i < 2; i++) {
        double rate = m->of->rates[i] * exp(m->phase + m->of->disturbance * normal(m->rng));
        presto__lap lap = {m->sweep->rounds, rate};
        ck_assert_ok(presto__trial_add_lap(&m->sweep->trials[i], lap, &err), &err);
    }
}

static void set_runs(presto_sweep *sweep, size_t i, double rate, double bytes) {
    presto_strategy_result *result = &sweep->trials[i].result;
    result->cold.samples_per_s = (presto_spread){rate * 0.97, rate, rate * 1.03, 3};
    result->total_stored_bytes = bytes;
    sweep->trials[i].lap_count = 0;
}

/* Position of the recommended one. */
static size_t race(presto_sweep *sweep, const truth *of, presto_rng *rng) {
    made m = {sweep, of, rng, 0};
    sweep->rounds = 0;
    set_runs(sweep, 0, of->rates[0], 200e6);
    set_runs(sweep, 1, of->rates[1], 100e6);
    (void)race_until_decided(sweep, add_round, &m);
    return sweep->best;
}

/* How many of `count` races end decided, and how many decided for strategy 0. */
static void count_races(const truth *of, size_t count, size_t *decided_out, size_t *for_0_out) {
    presto_sweep *sweep = made_sweep(true);
    sweep->trials[0].result.strategy =
        (presto_strategy){.stored = "concatenated", .codec = "none", .threads = 2, .shards = 2};
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    set_runs(sweep, 2, 10, 1e6); /* takes no part */
    *decided_out = *for_0_out = 0;
    sweep->trials[1].result.failed = false;
    for (size_t i = 0; i < count; i++) {
        size_t best = race(sweep, of, &rng);
        *decided_out += sweep->confidence.is_decided;
        *for_0_out += sweep->confidence.is_decided && best == 0;
    }
    presto_sweep_free(sweep);
}

/* Strategy 1 stores half, so that it is recommended unless it is slower by 2 % or more. */
START_TEST(what_is_decided_is_right_but_for_the_stated_error) {
    static const truth truths[] = {{{1000, 979.9}, 0.03, 0},    /* worse by a hair more than 2 % */
                                   {{1000, 980.1}, 0.03, 0},    /* equal by a hair */
                                   {{1000, 979.9}, 0.02, 0.05}, /* long phases of the machine */
                                   {{1000, 980.1}, 0.02, 0.05},
                                   {{1000, 1000}, 0.04, 0.02}};
    static const bool is_0_right[] = {true, false, true, false, false};
    size_t races = presto_check_rounds(600);
    for (size_t i = 0; i < 5; i++) {
        size_t decided, for_0;
        count_races(&truths[i], races, &decided, &for_0);
        size_t wrong = is_0_right[i] ? decided - for_0 : for_0;
        assert_few_are_wrong(i, races, decided, wrong);
    }
}
END_TEST

START_TEST(clear_differences_are_decided_and_unclear_ones_are_not) {
    size_t decided, for_0, races = presto_check_rounds(200);
    count_races(&(truth){{1000, 900}, 0.03, 0.05}, races, &decided, &for_0);
    ck_assert_uint_ge(decided, races * 95 / 100);
    ck_assert_uint_eq(for_0, decided);
    count_races(&(truth){{1000, 1000}, 0.01, 0.05}, races, &decided, &for_0);
    ck_assert_uint_ge(decided, races * 95 / 100);
    ck_assert_uint_eq(for_0, 0);
    count_races(&(truth){{1000, 970}, 0.1, 0}, races, &decided, &for_0);
    ck_assert_uint_le(decided, races / 5);
}
END_TEST

/* ---- what the result says ---- */

static void add_laps(presto_sweep *sweep, size_t i, double rate, double step) {
    presto_error err;
    sweep->trials[i].lap_count = 0;
    sweep->rounds = 13;
    for (uint64_t round = 1; round <= 13; round++) {
        double off = (double)(round % 2 == 0 ? round : 14 - round) - 7; /* -6 to 6, by turns */
        presto__lap lap = {round, rate * (1 + off * step)};
        ck_assert_ok(presto__trial_add_lap(&sweep->trials[i], lap, &err), &err);
    }
}

START_TEST(the_reason_says_how_sure_it_is) {
    presto_sweep *sweep = made_sweep(true);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    ck_assert(sure->is_decided && sure->rival_count == 0);
    sweep->trials[0].result.strategy =
        (presto_strategy){.stored = "concatenated", .codec = "none", .threads = 2, .shards = 2};
    set_runs(sweep, 0, 3900, 110e6);
    assert_says(reason_for(sweep), "Undecided: 1 other near it was not measured again.");
    ck_assert(!sure->is_decided && sure->rivals[0].result == 0 && isnan(sure->rivals[0].ratio));

    add_laps(sweep, 2, 4000, 0);
    add_laps(sweep, 0, 3600, 0.001);
    assert_says(reason_for(sweep), "Decided: in 13 runs of each it was 10.7 to 11.5 % "
                                   "faster than the next, concatenated uncompressed on 2 threads.");
    ck_assert(sure->is_decided && sweep->best == 2 && !sweep->trials[0].result.is_equal);
    ck_assert_int_eq(sure->rivals[0].standing, PRESTO_SWEEP_WORSE);
    ck_assert_double_eq_tol(sure->rivals[0].ratio, 0.9, 1e-3);

    add_laps(sweep, 0, 3990, 0.001);
    assert_says(reason_for(sweep), "Decided: resized with zstd:1 on 2 threads is as good within 2 "
                                   "% (in 13 runs of each this one was 0.6 % slower to "
                                   "0.1 % faster), and this one is recommended because it stores "
                                   "50 % less.");
    ck_assert(sure->is_decided && sweep->best == 0 && sweep->trials[2].result.is_equal);

    add_laps(sweep, 0, 4400, 0.03); /* the best, or better by far */
    assert_says(reason_for(sweep), "Decided: resized with zstd:1 on 2 threads is at best as good "
                                   "within 2 % (in 13 runs of each");
    assert_says(reason_for(sweep), " % faster), and this one is recommended because it stores "
                                   "50 % less.");
    ck_assert(sure->is_decided && sweep->best == 0);

    add_laps(sweep, 0, 3900, 0.01);
    assert_says(reason_for(sweep), "Undecided between it and resized with zstd:1 on 2 threads: in "
                                   "13 runs of each this one was ");
    assert_says(reason_for(sweep), "; this one is recommended because it stores 50 % less.");
    ck_assert(!sure->is_decided && sweep->best == 0);

    set_runs(sweep, 0, 3900, 220e6); /* stores as much, on as many threads */
    sweep->trials[0].result.total_preparation_s = sweep->trials[2].result.total_preparation_s;
    add_laps(sweep, 0, 3900, 0.03);
    assert_says(
        reason_for(sweep),
        "; neither needs less storage, threads or preparation; this one is 13 % slower at worst.");
    add_laps(sweep, 0, 3990, 0.001);
    assert_says(
        reason_for(sweep),
        " faster), and neither needs less storage, threads or preparation: either will do.");
    set_runs(sweep, 0, 3900, 110e6);
    add_laps(sweep, 0, 3900, 0.01);
    ck_assert_uint_eq(presto_sweep_best(sweep), 0);

    sweep->trials[0].lap_count = sweep->trials[2].lap_count = 4;
    assert_says(reason_for(sweep), "4 runs of each are too few; this one is "
                                   "recommended because it stores 50 % less.");
    sweep->trials[0].lap_count = sweep->trials[2].lap_count = 1;
    set_runs(sweep, 0, 3600, 110e6);
    add_laps(sweep, 0, 3600, 0);
    sweep->trials[0].lap_count = 1;
    assert_says(reason_for(sweep), "1 run of each is too few; this one is recommended "
                                   "because it was faster in the runs so far.");
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(the_rounds_may_show_another_leader) {
    presto_sweep *sweep = made_sweep(true);
    set_runs(sweep, 0, 3900, 330e6);
    add_laps(sweep, 0, 4400, 0.001);
    add_laps(sweep, 2, 4000, 0);
    assert_says(reason_for(sweep), "faster than the next, resized with zstd:1 on 2 threads.");
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    ck_assert(sure->is_decided && sure->leader == 0 && sweep->best == 0 && sweep->first == 0);
    ck_assert_uint_eq(sure->rivals[0].result, 2);
    ck_assert_uint_eq(presto_sweep_runner_up(sweep, 0), 2);
    ck_assert_uint_eq(presto_sweep_runner_up(sweep, 1), SIZE_MAX);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(only_rounds_that_both_took_part_in_are_compared) {
    presto_sweep *sweep = made_sweep(true);
    set_runs(sweep, 0, 3900, 110e6);
    add_laps(sweep, 2, 4000, 0);
    add_laps(sweep, 0, 3600, 0);
    for (size_t i = 0; i < 13; i++)
        sweep->trials[0].laps[i].round += 9;
    ck_assert_uint_eq(presto__compare(sweep, 0, 2).count, 4);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(a_target_is_reached_for_sure_or_not) {
    presto_sweep *sweep = made_sweep(true);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    sweep->limits = (presto_sweep_limits){.target_samples_per_s = 1000, .headroom = 0.1};
    set_runs(sweep, 0, 1120, 110e6); /* 1086 at least */
    assert_says(reason_for(sweep), "Undecided: 1 other near it was not measured again.");
    set_runs(sweep, 0, 1140, 110e6); /* 1106 at least */
    assert_says(reason_for(sweep), "; of 2 strategies that reach it, it needs least. Undecided "
                                   "whether it reaches it: it was not measured again.");
    ck_assert_uint_eq(sweep->best, 0);
    set_runs(sweep, 0, 1080, 110e6);
    assert_says(reason_for(sweep), "resized with zstd:1");
    ck_assert_int_eq(sweep->verdict, PRESTO_SWEEP_KEEPS);
    ck_assert(!sure->is_decided && sure->leader == SIZE_MAX && sure->rival_count == 1);
    add_laps(sweep, 0, 1150, 0.001);
    assert_says(reason_for(sweep), "Decided: in 13 runs it was 4.2 to 4.9 % above "
                                   "the target with 10 % headroom.");
    ck_assert(sure->is_decided && sweep->best == 0);
    ck_assert_int_eq(sure->rivals[0].standing, PRESTO_SWEEP_REACHES);
    add_laps(sweep, 0, 1050, 0.001);
    assert_says(reason_for(sweep), "Decided: nothing that needs less reaches it.");
    ck_assert(sure->is_decided && sweep->best == 2);
    add_laps(sweep, 0, 1100, 0.001);
    assert_says(reason_for(sweep), "Undecided whether reading the unprocessed files on 2 threads, "
                                   "which needs less, reaches it: in 13 runs it was ");
    ck_assert(!sure->is_decided && sweep->best == 2);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(costs_and_weights_are_compared_by_what_they_are_about) {
    presto_sweep *sweep = made_sweep(true);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    sweep->prices = (presto_sweep_prices){.accelerator_h = 3, .epochs = 10, .months = 1};
    set_runs(sweep, 0, 3900, 110e6);
    add_laps(sweep, 2, 4000, 0);
    add_laps(sweep, 0, 3600, 0.001);
    /* It costs as much as 0.897 to 0.903 of the next. */
    assert_says(reason_for(sweep), "9.7 to 10.3 % cheaper than the next");
    add_laps(sweep, 0, 4000, 0.1);
    assert_says(reason_for(sweep), "in 13 runs of each this one was 66.7 % costlier to 25.9 % "
                                   "cheaper");
    add_laps(sweep, 0, 3600, 0.001);
    (void)reason_for(sweep);
    ck_assert_double_eq_tol(sure->rivals[0].ratio, 0.9, 1e-3);
    sweep->prices = (presto_sweep_prices){0};
    /* All of the range of storage weighs as much as all of the range of rates, 100 samples/s. */
    sweep->weights = (presto_weights){0, 1, 1};
    add_laps(sweep, 0, 3900, 0.001);
    assert_says(reason_for(sweep), "is as good within 2 %");
    ck_assert_double_eq_tol(sure->rivals[0].ratio, 1, 1e-3);
    ck_assert(sweep->best == 0 && sure->is_decided);
    add_laps(sweep, 0, 3700, 0.001);
    assert_says(reason_for(sweep), "% better than the next");
    ck_assert_uint_eq(sweep->best, 2);
    sweep->weights = (presto_weights){0, 1, 0};
    (void)reason_for(sweep);
    ck_assert(sure->is_decided && sure->rival_count == 0);
    presto_sweep_free(sweep);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_interval_is_that_of_the_signed_rank_test,
        over_all_patterns_of_signs_the_interval_errs_as_often_as_allowed,
        neighbours_that_resemble_each_other_make_it_wider,
        more_values_than_fit_are_left_out,
        what_is_decided_is_right_but_for_the_stated_error,
        clear_differences_are_decided_and_unclear_ones_are_not,
        the_reason_says_how_sure_it_is,
        the_rounds_may_show_another_leader,
        only_rounds_that_both_took_part_in_are_compared,
        a_target_is_reached_for_sure_or_not,
        costs_and_weights_are_compared_by_what_they_are_about,
    };
    return presto_check_main("profile/sure", tests, sizeof tests / sizeof *tests, 60);
}
