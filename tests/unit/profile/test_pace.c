/* SPDX-License-Identifier: Apache-2.0 */
/* The time of an epoch that is like most. */
#include "presto_check.h"
#include "trial/pace_internal.h"
#include "trial/trial_internal.h"

#include <math.h>

#define MS UINT64_C(1000000)

START_TEST(one_slow_epoch_does_not_count) {
    presto__pace pace = {.count = 0};
    ck_assert(isnan(presto__pace_middle(&pace)));
    presto__pace_add(&pace, 0.19);
    ck_assert_double_eq(presto__pace_middle(&pace), 0.19);
    presto__pace_add(&pace, 0.012);
    ck_assert_double_eq(presto__pace_middle(&pace), 0.012); /* of two the less */
    presto__pace_add(&pace, 0.014);
    ck_assert_double_eq(presto__pace_middle(&pace), 0.014);
    for (size_t i = 0; i < (size_t)2 * PRESTO__PACES_MOST; i++)
        presto__pace_add(&pace, 0.013);
    ck_assert_uint_eq(pace.count, PRESTO__PACES_MOST);
    ck_assert_double_eq_tol(presto__pace_middle(&pace), 0.013, 1e-12);
}
END_TEST

START_TEST(epochs_that_were_ready_share_the_time_of_the_one_before) {
    presto__pace pace = {.follow = true};
    presto__pace_add(&pace, 0.021); /* the consumer was held up while they were computed */
    presto__pace_add(&pace, 1.6e-6);
    presto__pace_add(&pace, 1.6e-6);
    ck_assert_double_eq_tol(presto__pace_middle(&pace), 0.007, 2e-6);
    pace.follow = false; /* each in a loader of its own: the first one met a stall */
    ck_assert_double_eq(presto__pace_middle(&pace), 1.6e-6);
    pace = (presto__pace){.follow = true};
    presto__pace_add(&pace, 0.01); /* one that was disturbed takes no time from others */
    presto__pace_add(&pace, 0.08);
    presto__pace_add(&pace, 0.01);
    ck_assert_double_eq(presto__pace_middle(&pace), 0.01);
}
END_TEST

/* 20 of 2 ms, 18 of 4 ms, by turns of five, and two of a second. */
START_TEST(of_many_both_kinds_count_and_the_extremes_do_not) {
    presto__pace pace = {.count = 0};
    for (size_t i = 0; i < 38; i++)
        presto__pace_add(&pace, i / 5 % 2 == 0 ? 2e-3 : 4e-3);
    presto__pace_add(&pace, 1);
    presto__pace_add(&pace, 1);
    /* 15 of 2 ms, 15 of 4 ms */
    ck_assert_double_eq_tol(presto__pace_middle(&pace), 3e-3, 1e-12);
    presto__pace_forget(&pace, 9); /* 31 are few */
    ck_assert_double_eq(presto__pace_middle(&pace), 4e-3);
}
END_TEST

START_TEST(the_first_ones_can_be_forgotten) {
    presto__pace pace = {.count = 0};
    presto__pace_forget(&pace, 0);
    ck_assert_uint_eq(pace.count, 0);
    static const double epochs_s[] = {0.001, 0.002, 0.009, 0.008, 0.007};
    for (size_t i = 0; i < 5; i++)
        presto__pace_add(&pace, epochs_s[i]);
    presto__pace_forget(&pace, 2);
    ck_assert_uint_eq(pace.count, 3);
    ck_assert_double_eq(pace.epoch_s[0], 0.009);
    ck_assert_double_eq(presto__pace_middle(&pace), 0.008);
    presto__pace_forget(&pace, 3);
    ck_assert(isnan(presto__pace_middle(&pace)));
}
END_TEST

/* A look at 1 us an epoch would never end without a bound, and one of 10 s has one epoch. */
START_TEST(a_look_has_a_few_epochs_unless_they_are_long) {
    ck_assert_uint_eq(presto__look_epochs(0.14, 0.01), 14);
    ck_assert_uint_eq(presto__look_epochs(0.14, 0.1), 3);
    ck_assert_uint_eq(presto__look_epochs(0.14, 0.2), 2);
    ck_assert_uint_eq(presto__look_epochs(0.14, 0.4), 1);
    ck_assert_uint_eq(presto__look_epochs(0.14, 10), 1);
    ck_assert_uint_eq(presto__look_epochs(0.5, 0.2), 3); /* 2.5, rounded */
    uint64_t most = presto__look_epochs(1000, 1e-9);
    ck_assert_uint_gt(most, 100);
    ck_assert_uint_le(most, 10000);
}
END_TEST

/* Epochs of 10 samples that take 2 ms, in batches of 4, 4 and 2. */
START_TEST(epochs_of_a_loader_are_timed_one_by_one) {
    static const uint64_t batches[] = {4, 4, 2};
    presto__pace pace = {.count = 0};
    presto__pacer pacer = presto__pacer_start(&pace, 10, 3, 5 * MS);
    uint64_t now = 5 * MS;
    for (size_t i = 0; i < 9; i++)
        presto__pacer_take(&pacer, batches[i % 3], now += batches[i % 3] * MS / 5);
    ck_assert_uint_eq(pace.count, 2);
    for (size_t i = 0; i < 2; i++)
        ck_assert_double_eq_tol(pace.epoch_s[i], 2e-3, 1e-12);
}
END_TEST

START_TEST(many_short_epochs_are_timed_some_together) {
    presto__pace pace = {.count = 0};
    presto__pacer pacer = presto__pacer_start(&pace, 10, 100, 0);
    uint64_t now = 300 * MS; /* the loader was slow to start */
    for (size_t i = 0; i < 100; i++)
        presto__pacer_take(&pacer, 10, now += MS);
    ck_assert_uint_eq(pace.count, 14); /* after the first seven, thirteen times seven, and two */
    for (size_t i = 0; i < 14; i++)
        ck_assert_double_eq_tol(pace.epoch_s[i], 1e-3, 1e-12);
    ck_assert_double_eq_tol(presto__pace_middle(&pace), 1e-3, 1e-12);
    /* A batch may end two epochs at once. */
    pace.count = 0;
    pacer = presto__pacer_start(&pace, 4, 5, 0);
    presto__pacer_take(&pacer, 4, 9 * MS);
    presto__pacer_take(&pacer, 9, 13 * MS);
    presto__pacer_take(&pacer, 7, 15 * MS);
    ck_assert_uint_eq(pace.count, 2);
    ck_assert_double_eq_tol(pace.epoch_s[0], 2e-3, 1e-12);
    ck_assert_double_eq_tol(pace.epoch_s[1], 1e-3, 1e-12);
}
END_TEST

/* A cold epoch, then cached ones. */
START_TEST(the_first_epoch_can_be_timed_by_itself) {
    presto__pace pace = {.wants_first = true};
    presto__pacer pacer = presto__pacer_start(&pace, 10, 31, 0);
    uint64_t now = 0;
    presto__pacer_take(&pacer, 7, now += 30 * MS);
    presto__pacer_take(&pacer, 3, now += 20 * MS);
    for (size_t i = 0; i < 30; i++)
        presto__pacer_take(&pacer, 10, now += MS);
    ck_assert_double_eq_tol(pace.first_s, 50e-3, 1e-12);
    ck_assert_uint_eq(pace.count, 10); /* three each */
    for (size_t i = 0; i < pace.count; i++)
        ck_assert_double_eq_tol(pace.epoch_s[i], 1e-3, 1e-12);
    pace = (presto__pace){.wants_first = true}; /* all end at once */
    pacer = presto__pacer_start(&pace, 10, 2, 0);
    presto__pacer_take(&pacer, 20, 8 * MS);
    ck_assert_double_eq_tol(pace.first_s, 4e-3, 1e-12);
    ck_assert_uint_eq(pace.count, 1);
}
END_TEST

START_TEST(an_epoch_without_others_counts) {
    presto__pace pace = {.count = 0};
    presto__pacer pacer = presto__pacer_start(&pace, 10, 1, 0);
    presto__pacer_take(&pacer, 4, MS);
    presto__pacer_take(&pacer, 6, 3 * MS);
    ck_assert_uint_eq(pace.count, 1);
    ck_assert_double_eq_tol(pace.epoch_s[0], 3e-3, 1e-12);
    pacer = presto__pacer_start(&pace, 10, 2, 0); /* and two that end at once */
    presto__pacer_take(&pacer, 20, 4 * MS);
    ck_assert_uint_eq(pace.count, 2);
    ck_assert_double_eq_tol(pace.epoch_s[1], 2e-3, 1e-12);
}
END_TEST

START_TEST(without_a_pace_the_mean_epoch_counts) {
    presto__epochs epochs = {.epochs = 4, .samples = 40, .measure.wall_s = 2};
    ck_assert_double_eq_tol(presto__epochs_typical_s(&epochs), 0.5, 1e-12);
    ck_assert_double_eq_tol(presto__epochs_rate(&epochs), 20, 1e-12);
    epochs.epoch_s = 0.1;
    ck_assert_double_eq_tol(presto__epochs_rate(&epochs), 100, 1e-12);
    epochs.epoch_s = NAN; /* as a journal may have it */
    ck_assert_double_eq_tol(presto__epochs_rate(&epochs), 20, 1e-12);
    presto__pacer pacer = presto__pacer_start(NULL, 10, 3, 0);
    presto__pacer_take(&pacer, 10, MS);
    ck_assert_uint_eq(pacer.samples, 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        one_slow_epoch_does_not_count,
        epochs_that_were_ready_share_the_time_of_the_one_before,
        of_many_both_kinds_count_and_the_extremes_do_not,
        the_first_ones_can_be_forgotten,
        a_look_has_a_few_epochs_unless_they_are_long,
        epochs_of_a_loader_are_timed_one_by_one,
        many_short_epochs_are_timed_some_together,
        the_first_epoch_can_be_timed_by_itself,
        an_epoch_without_others_counts,
        without_a_pace_the_mean_epoch_counts,
    };
    return presto_check_main("profile/pace", tests, sizeof tests / sizeof *tests, 60);
}
