/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies that are only predicted: when they leave the choice undecided, and what is said then. */
#include "made_sweep.h"

#include "choice/sure_internal.h"

/* Strategy i is predicted so, give or take 8 %. */
static void predict(presto_sweep *sweep, size_t i, double rate, double bytes) {
    presto__trial *trial = &sweep->trials[i];
    presto_strategy_result *result = &trial->result;
    result->is_predicted = true;
    result->prediction.cold_samples_per_s = rate;
    result->prediction.uncertainty = 0.08;
    result->cold.samples_per_s = (presto_spread){rate * 0.92, rate, rate * 1.08, 0};
    result->total_stored_bytes = bytes;
}

static void set_elsewhere(presto_sweep *sweep, size_t i, unsigned threads) {
    sweep->trials[i].result.strategy.threads = threads;
    sweep->trials[i].result.prediction.is_elsewhere = true;
    sweep->facts.cpus = 2;
}

static void run(presto_sweep *sweep, size_t i, double rate, double bytes) {
    presto_strategy_result *result = &sweep->trials[i].result;
    result->cold.samples_per_s = (presto_spread){rate * 0.99, rate, rate * 1.01, 3};
    result->total_stored_bytes = bytes;
}

static void add_laps(presto_sweep *sweep, size_t i, double rate) {
    presto_error err;
    sweep->rounds = 13;
    for (uint64_t round = 1; round <= 13; round++) {
        presto__lap lap = {round, rate * (1 + 0.001 * (double)(round % 3))};
        ck_assert_ok(presto__trial_add_lap(&sweep->trials[i], lap, &err), &err);
    }
}

START_TEST(what_may_be_better_than_the_best_leaves_it_undecided) {
    presto_sweep *sweep = made_sweep(false);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    ck_assert(sure->is_decided && sure->not_run_count == 0 && sure->not_run == SIZE_MAX);
    predict(sweep, 1, 3850, 440e6); /* 3.9 % better than 4,000 at most */
    assert_says(
        reason_for(sweep),
        " Undecided between it and decoded with gzip on 2 threads, which was not run and may "
        "be up to 4 % faster; this one is recommended because it stores 50 % less.");
    ck_assert_uint_eq(sweep->best, 2);
    ck_assert(!sure->is_decided && sure->not_run_count == 1 && sure->not_run == 1);
    ck_assert_uint_eq(presto__next_not_run(sweep, false), 1);
    sweep->trials[1].result.prediction.is_elsewhere = true;
    ck_assert_uint_eq(presto__next_not_run(sweep, false), SIZE_MAX);
    ck_assert_uint_eq(presto__next_not_run(sweep, true), 1);
    sweep->trials[1].result.prediction.is_elsewhere = false;
    predict(sweep, 1, 3770, 440e6); /* 1.8 %: that does not count */
    (void)reason_for(sweep);
    ck_assert(sure->is_decided && sure->not_run_count == 0);
    sweep->only_measured = true;
    predict(sweep, 1, 3770, 200e6); /* but as good, it would be chosen for its size */
    assert_says(reason_for(sweep), "which was not run and may be as good and needs less; this one "
                                   "is recommended because it was run.");
    ck_assert(!sure->is_decided && sweep->best == 2);
    predict(sweep, 1, 3600, 200e6); /* 2.8 % worse at best */
    (void)reason_for(sweep);
    ck_assert(sure->is_decided);
    presto_sweep_free(sweep);
}
END_TEST

/* The best by score is only predicted, and one that is equal by its runs needs less. */
START_TEST(a_predicted_leader_does_not_decide_for_what_is_chosen_instead) {
    presto_sweep *sweep = made_sweep(false);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    predict(sweep, 2, 4000, 220e6);
    run(sweep, 0, 3900, 110e6);
    run(sweep, 1, 3800, 440e6);
    assert_says(reason_for(sweep), " Undecided: 1 other near it was not measured again. Nor is "
                                   "anything known for sure of resized with zstd:1 on 2 threads, "
                                   "which was not run and may be up to 11 % faster.");
    ck_assert(!sure->is_decided && sweep->first == 2 && sweep->best == 0);
    ck_assert_uint_eq(sure->leader, 0); /* rounds are run with those that can be compared */
    ck_assert_uint_eq(sure->rivals[0].result, 1);
    add_laps(sweep, 0, 3900);
    add_laps(sweep, 1, 3500);
    assert_says(
        reason_for(sweep),
        " Of those that were run: in 13 runs of each it was 11.4 to 11.4 % faster "
        "than the next, decoded with gzip on 2 threads. Undecided between it and resized "
        "with zstd:1 on 2 threads, which was not run and may be up to 11 % faster; this one "
        "is recommended because it stores nothing.");
    ck_assert(sweep->is_settled && !sure->is_decided && sweep->best == 0);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(what_is_put_aside_still_leaves_it_undecided) {
    presto_sweep *sweep = made_sweep(false);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    sweep->only_measured = true;
    predict(sweep, 2, 5000, 220e6);
    run(sweep, 0, 3000, 110e6);
    assert_says(reason_for(sweep), "may be up to 80 % faster; this one is recommended because it "
                                   "stores nothing.");
    ck_assert(!sure->is_decided && sweep->best == 0 && sweep->trials[2].result.score > 0);
    sweep->limits.most_stored_bytes = 150000000; /* it does not keep this limit */
    (void)reason_for(sweep);
    ck_assert(sure->is_decided && sure->not_run_count == 0);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(what_was_not_run_may_reach_the_target_with_less) {
    presto_sweep *sweep = made_sweep(false);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    sweep->limits = (presto_sweep_limits){.target_samples_per_s = 1000, .headroom = 0.1};
    predict(sweep, 0, 1050, 110e6); /* 1134 at most */
    assert_says(reason_for(sweep),
                " Undecided between it and the unprocessed files on 2 threads, which was not run "
                "and needs less and may reach the target; this one is recommended because it was "
                "run.");
    ck_assert(!sure->is_decided && sure->not_run == 0 && sweep->best == 2);
    predict(sweep, 0, 1000, 110e6); /* 1080 at most */
    (void)reason_for(sweep);
    ck_assert(sure->is_decided);
    predict(sweep, 1, 1050, 440e6); /* it needs more */
    (void)reason_for(sweep);
    ck_assert(sure->is_decided);
    run(sweep, 2, 1060, 220e6); /* then no other is known to reach it */
    run(sweep, 0, 800, 110e6);
    assert_says(reason_for(sweep), " Nor is anything known for sure of decoded with gzip on 2 "
                                   "threads, which was not run and may reach the target.");
    ck_assert_int_eq(sweep->verdict, PRESTO_SWEEP_MISSES);
    ck_assert(!sure->is_decided);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(beyond_this_machine_nothing_is_decided) {
    presto_sweep *sweep = made_sweep(false);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    const char *not_run = " Undecided: it was not run, as it has 64 threads and this machine has 2 "
                          "processors; its speed is predicted, to about +-8 %.";
    predict(sweep, 2, 9000, 220e6);
    set_elsewhere(sweep, 2, 64);
    assert_says(reason_for(sweep), not_run);
    ck_assert(!sure->is_decided && sure->not_run == 2 && sure->not_run_count == 1);
    ck_assert_uint_eq(presto__next_not_run(sweep, false), SIZE_MAX);
    sweep->limits.target_samples_per_s = 5000;
    assert_says(reason_for(sweep), not_run);
    assert_says(reason_for(sweep),
                " By its prediction less the uncertainty, it is 66 % above the target");
    ck_assert(!sure->is_decided && sweep->best == 2);
    sweep->limits.target_samples_per_s = 0;
    sweep->weights = (presto_weights){0, 0, 1};
    predict(sweep, 1, 8800, 440e6);
    set_elsewhere(sweep, 1, 64);
    assert_says(reason_for(sweep),
                " decoded with gzip in 2 files on 64 threads (8,800 samples/s) equals it as far as "
                "predictions "
                "tell; the recommended one stores 50 % less. Undecided: it was not run");
    predict(sweep, 1, 3900, 440e6); /* elsewhere, and not better than what was run here */
    run(sweep, 2, 4000, 220e6);
    sweep->trials[2].result.is_predicted = false;
    assert_says(reason_for(sweep),
                "decoded with gzip in 2 files on 64 threads, which was not run, for lack of "
                "processors, and may be up to 5 % faster");
    ck_assert(!sure->is_decided && sweep->best == 2);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(the_nearest_to_the_target_is_limited_by_what_the_model_says) {
    presto_sweep *sweep = made_sweep(false);
    presto__trial *best = &sweep->trials[2];
    predict(sweep, 2, 4000, 220e6);
    set_elsewhere(sweep, 2, 64);
    for (size_t i = 0; i < best->cold_count; i++)
        free(best->cold[i].costs);
    best->cold_count = 0;
    best->result.prediction.cold_bound = PRESTO_BOUND_STORAGE;
    sweep->limits.target_samples_per_s = 9000;
    assert_says(reason_for(sweep), "No strategy reaches the target of 9,000 samples/s: this is the "
                                   "nearest, limited by the bandwidth of storage (predicted).");
    best->result.prediction.cold_bound = PRESTO_BOUND_UNKNOWN;
    assert_says(
        reason_for(sweep),
        "this is the nearest. By its prediction less the uncertainty, it is 59 % below the target");
    sweep->limits.target_samples_per_s = 2000;
    best->result.prediction.cold_bound = PRESTO_BOUND_CONSUMER;
    assert_says(reason_for(sweep), " above the target of 2,000 samples/s, so that the training "
                                   "itself is the limit; no other strategy reaches it.");
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(without_a_weight_for_speed_what_was_not_run_matters_only_if_it_is_the_best) {
    presto_sweep *sweep = made_sweep(false);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    predict(sweep, 1, 9000, 440e6);
    sweep->weights = (presto_weights){0, 1, 0};
    (void)reason_for(sweep);
    ck_assert(sure->is_decided && sweep->best == 0);
    sweep->weights = (presto_weights){1, 0, 0};
    assert_says(reason_for(sweep),
                " Undecided: times of preparation vary, and rounds do not measure "
                "them.");
    predict(sweep, 0, 800, 110e6);
    sweep->weights = (presto_weights){0, 1, 0};
    assert_says(reason_for(sweep), " Undecided: it was not run; its speed is predicted");
    ck_assert(!sure->is_decided && sweep->best == 0);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(where_all_have_failed_there_is_nothing_to_decide) {
    presto_sweep *sweep = made_sweep(false);
    presto_error err;
    for (size_t i = 0; i < 3; i++)
        sweep->trials[i].result.failed = true;
    ck_assert_ok(presto__decide(sweep, &err), &err);
    presto_sweep_free(sweep);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_may_be_better_than_the_best_leaves_it_undecided,
        a_predicted_leader_does_not_decide_for_what_is_chosen_instead,
        what_is_put_aside_still_leaves_it_undecided,
        what_was_not_run_may_reach_the_target_with_less,
        beyond_this_machine_nothing_is_decided,
        the_nearest_to_the_target_is_limited_by_what_the_model_says,
        without_a_weight_for_speed_what_was_not_run_matters_only_if_it_is_the_best,
        where_all_have_failed_there_is_nothing_to_decide,
    };
    return presto_check_main("profile/not_run", tests, sizeof tests / sizeof *tests, 30);
}
