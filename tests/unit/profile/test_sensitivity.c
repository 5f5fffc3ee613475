/* SPDX-License-Identifier: Apache-2.0 */
/* What would change the answer, on figures for which the answers can be worked out by hand. */
#include "made_sweep.h"

static const presto_sweep_what_if *find(const presto_sweep *sweep, const char *condition) {
    const presto_sweep_what_if *what_if;
    for (size_t i = 0; (what_if = presto_sweep_get_what_if(sweep, i)) != NULL; i++)
        if (strcmp(what_if->condition, condition) == 0)
            return what_if;
    ck_abort_msg("'%s' was not asked", condition);
    return NULL;
}

static void expect(const presto_sweep *sweep, const char *condition, size_t result, bool is_other) {
    const presto_sweep_what_if *what_if = find(sweep, condition);
    ck_assert_msg(what_if->result == result && what_if->is_other == is_other, "%s: %zu, %d",
                  condition, what_if->result, what_if->is_other);
}

static void score(presto_sweep *sweep) {
    presto_error err;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
}

START_TEST(less_than_the_fastest_may_be_enough) {
    presto_sweep *sweep = made_sweep(false);
    expect(sweep, "if half of its speed is enough, 2,000 samples/s", 2, false);
    expect(sweep, "if a tenth of its speed is enough, 400 samples/s", 0, true);
    expect(sweep, "with half the storage, 110 MB at most", 0, true);
    /* 20 s of preparation and 0.25 s an epoch, or 1.25 s an epoch. */
    expect(sweep, "if preparation and 1 epoch are to end soonest", 0, true);
    expect(sweep, "if preparation and 10 epochs are to end soonest", 0, true);
    expect(sweep, "if preparation and 100 epochs are to end soonest", 2, false);
    ck_assert_ptr_null(presto_sweep_get_what_if(sweep, 6));
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(other_targets_are_reached_by_others_or_missed) {
    presto_sweep *sweep = made_sweep(false);
    sweep->limits.target_samples_per_s = 1000;
    score(sweep);
    ck_assert_uint_eq(sweep->best, 2);
    expect(sweep, "with twice the target, 2,000 samples/s", 2, false);
    expect(sweep, "with half the target, 500 samples/s", 0, true);
    ck_assert(!find(sweep, "with twice the target, 2,000 samples/s")->is_missed);
    sweep->limits.target_samples_per_s = 3000;
    score(sweep);
    ck_assert(find(sweep, "with twice the target, 6,000 samples/s")->is_missed);
    sweep->limits.headroom = 0.1;
    score(sweep);
    (void)find(sweep, "with twice the target, 6,000 samples/s and 10 % more in each run");
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(other_prices_and_epochs_may_cost_less_elsewhere) {
    presto_sweep *sweep = made_sweep(false);
    /* 100 epochs cost 25 and 0.22 to store, or 125. */
    sweep->prices = (presto_sweep_prices){
        .accelerator_h = 3600, .storage_gb_month = 50, .epochs = 100, .months = 1};
    score(sweep);
    ck_assert_uint_eq(sweep->best, 2);
    expect(sweep, "with 10 epochs instead of 100", 0, true); /* 12.5, or 2.5 + 11 */
    expect(sweep, "with 1,000 epochs instead of 100", 2, false);
    expect(sweep, "if storage cost ten times as much", 0, true); /* 125, or 25 + 110 */
    expect(sweep, "if storage cost a tenth", 2, false);
    expect(sweep, "if the accelerator cost a tenth", 0, true);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(with_a_target_another_price_may_make_another_one_cheaper) {
    presto_sweep *sweep = made_sweep(false);
    /* At 500 samples/s, 100 epochs of 2 s. The stored one takes half of the threads: 100 for them,
     * 10 to prepare it and 110 to store it, or 200. */
    sweep->trials[2].result.strategy.threads = 1;
    sweep->limits.target_samples_per_s = 500;
    sweep->prices = (presto_sweep_prices){
        .cpu_h = 0.5 * 3600, .storage_gb_month = 500, .epochs = 100, .months = 1};
    score(sweep);
    ck_assert_uint_eq(sweep->best, 0);
    expect(sweep, "if storage cost a tenth", 2, true);
    expect(sweep, "if storage cost ten times as much", 0, false);
    ck_assert_int_eq(sweep->verdict, PRESTO_SWEEP_KEEPS);
    presto_sweep_free(sweep);
}
END_TEST

static bool is_missed(const presto_sweep *sweep, const char *condition) {
    return find(sweep, condition)->is_missed;
}

START_TEST(limits_are_asked_about_whatever_is_recommended) {
    presto_sweep *sweep = made_sweep(false);
    sweep->limits.target_samples_per_s = 1000;
    sweep->limits.most_stored_bytes = 150000000; /* that leaves the unprocessed files */
    score(sweep);
    ck_assert_uint_eq(sweep->best, 0);
    ck_assert_ptr_nonnull(
        strstr(presto_sweep_reason(sweep), "No strategy within the limits reaches the target"));
    expect(sweep, "with twice the limit of storage, 300 MB", 2, true);
    ck_assert(!is_missed(sweep, "with twice the limit of storage, 300 MB"));
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(limits_that_nothing_keeps_do_not_make_every_answer_a_miss) {
    presto_sweep *sweep = made_sweep(false);
    sweep->trials[0].result.failed = true; /* it would store nothing */
    sweep->limits.most_stored_bytes = 1;
    score(sweep);
    ck_assert_int_eq(sweep->verdict, PRESTO_SWEEP_EXCEEDS);
    ck_assert(!is_missed(sweep, "if half of its speed is enough, 2,000 samples/s"));
    ck_assert(is_missed(sweep, "with twice the limit of storage, 2 B"));
    /* What is best without the limit is not near to it. */
    sweep->limits.most_stored_bytes = 230000000;
    score(sweep);
    ck_assert_uint_eq(sweep->best, 2);
    expect(sweep, "with half the storage, 110 MB at most", 2, false);
    ck_assert(is_missed(sweep, "with half the storage, 110 MB at most"));
    sweep->limits.target_samples_per_s = 1e6; /* nor is what misses the target, too */
    score(sweep);
    ck_assert_uint_eq(sweep->best, 2);
    expect(sweep, "with half the storage, 110 MB at most", 2, false);
    sweep->trials[1].result.cold.samples_per_s = (presto_spread){7920, 8000, 8080, 3};
    score(sweep);
    expect(sweep, "with half the storage, 110 MB at most", 1, false);
    presto_sweep_free(sweep);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        less_than_the_fastest_may_be_enough,
        other_targets_are_reached_by_others_or_missed,
        other_prices_and_epochs_may_cost_less_elsewhere,
        with_a_target_another_price_may_make_another_one_cheaper,
        limits_are_asked_about_whatever_is_recommended,
        limits_that_nothing_keeps_do_not_make_every_answer_a_miss,
    };
    return presto_check_main("profile/sensitivity", tests, sizeof tests / sizeof *tests, 30);
}
