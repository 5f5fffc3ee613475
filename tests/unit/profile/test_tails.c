/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of skewed sizes: against values worked out by hand, and by how often the interval is
 * right. */
#include "../../../base/rng_internal.h"
#include "made_sweep.h"

START_TEST(half_of_the_sum_is_in_the_largest) {
    presto__size_tail tail = {.held = 0};
    for (unsigned i = 0; i < 197; i++)
        presto__tail_add(&tail, 1);
    ck_assert_uint_eq(presto__tail_half(&tail), 99);
    ck_assert(!presto__is_heavy(&tail.moments, 99));
    const double large[] = {40, 100, 60};
    for (unsigned i = 0; i < 3; i++)
        presto__tail_add(&tail, large[i]);
    ck_assert_uint_eq(presto__tail_half(&tail), 3); /* 200 of 397 */
    ck_assert_double_eq(tail.largest[0], 100);
    ck_assert_double_eq(tail.largest[2], 40);
    ck_assert(presto__is_heavy(&tail.moments, 3));
    presto__size_tail many = {.held = 0};
    for (unsigned i = 0; i < 3 * PRESTO__TAIL_HELD; i++)
        presto__tail_add(&many, i == 5 ? 2 : 1);
    ck_assert_uint_eq(presto__tail_half(&many), 0);
    ck_assert(many.largest[0] == 2 && many.largest[PRESTO__TAIL_HELD - 1] == 1);
}
END_TEST

/* 1, 2, 3, 10: mean 4, deviations -3, -2, -1, 6: squares 50, cubes 216 - 36 = 180. */
START_TEST(the_skewness_is_the_one_worked_out_by_hand) {
    static const double values[] = {1, 2, 3, 10};
    for (int far = 0; far < 2; far++) {
        presto__moments moments = {0};
        for (size_t i = 0; i < 4; i++)
            presto__moments_add(&moments, values[i] + (far != 0 ? 1e6 : 0));
        ck_assert_double_eq_tol(moments.squares, 50, 1e-6);
        ck_assert_double_eq_tol(moments.cubes, 180, 1e-5);
        ck_assert_double_eq_tol(presto__skewness(&moments), 2 * 180 / pow(50, 1.5), 1e-7);
    }
    presto__moments same = {0};
    for (size_t i = 0; i < 9; i++)
        presto__moments_add(&same, 5);
    ck_assert_double_eq(presto__skewness(&same), 0);
}
END_TEST

static double normal(presto_rng *rng) {
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += presto_rng_uniform(rng);
    return sum;
}

/* Sizes as files have them: log-normal. How often is the true total outside of each interval? */
START_TEST(with_a_long_tail_the_interval_is_more_often_right) {
    enum { SAMPLE = 100, POPULATION = 1000000 };
    double sigma = 1.2, truth = exp(sigma * sigma / 2) * POPULATION;
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    size_t rounds = 4000, usual_misses = 0, misses = 0, heavy = 0;
    for (size_t round = 0; round < rounds; round++) {
        presto__size_tail tail = {.held = 0};
        double least, most;
        for (int i = 0; i < SAMPLE; i++)
            presto__tail_add(&tail, exp(sigma * normal(&rng)));
        presto__estimate usual = presto__estimate_sum(&tail.moments, POPULATION);
        presto__skewed_interval(&tail.moments, POPULATION, &least, &most);
        ck_assert_double_le(least, usual.total);
        ck_assert_double_ge(most, usual.total);
        usual_misses += fabs(usual.total - truth) > usual.error;
        misses += truth < least || truth > most;
        heavy += presto__is_heavy(&tail.moments, presto__tail_half(&tail));
    }
    ck_assert_msg(misses < usual_misses, "%zu and %zu misses of %zu", misses, usual_misses, rounds);
    ck_assert_msg(misses < rounds / 10, "%zu misses of %zu", misses, rounds);
    ck_assert_msg(heavy > rounds / 2, "%zu of %zu called heavy", heavy, rounds);
}
END_TEST

START_TEST(without_skewness_it_is_the_usual_interval) {
    presto__moments even = {0};
    double least, most;
    for (int i = 0; i < 50; i++)
        presto__moments_add(&even, 100 + (i % 2 == 0 ? 1 : -1));
    presto__estimate usual = presto__estimate_sum(&even, 5000);
    presto__skewed_interval(&even, 5000, &least, &most);
    ck_assert_double_eq_tol(least, usual.total - usual.error, 1e-6);
    ck_assert_double_eq_tol(most, usual.total + usual.error, 1e-6);
    presto__skewed_interval(&even, 50, &least, &most); /* all of them */
    ck_assert(least == 5000 && most == 5000);
    presto__moments two = {0};
    presto__moments_add(&two, 1);
    presto__moments_add(&two, 2);
    presto__skewed_interval(&two, 50, &least, &most);
    ck_assert(isnan(least) && isnan(most));
}
END_TEST

START_TEST(a_note_tells_what_the_totals_hang_on) {
    presto_sweep *sweep = made_sweep(false);
    presto__trial *best = &sweep->trials[2];
    presto_error err;
    for (int i = 0; i < 100; i++)
        presto__moments_add(&best->record_bytes, i < 3 ? 5000 : 100);
    best->record_half = 3;
    ck_assert_ok(presto__write_notes(sweep, &err), &err);
    ck_assert_ptr_nonnull(strstr(sweep->notes[1],
                                 "3 of 100 records make up half of the bytes: totals that "
                                 "follow their sizes depend on how many such the sample caught, "
                                 "and may be off by "));
    best->record_half = 50; /* of many: then that is not what is remarkable */
    ck_assert_ok(presto__write_notes(sweep, &err), &err);
    bool is_wide = false;
    for (size_t i = 0; i < sweep->note_count; i++) {
        ck_assert_ptr_null(strstr(sweep->notes[i], "50 of 100 records"));
        is_wide = is_wide || strstr(sweep->notes[i], "the sizes of records vary widely") != NULL;
    }
    ck_assert(is_wide);
    /* Records of equal size, made from files that are not. */
    best->record_bytes = (presto__moments){0};
    best->record_half = 0;
    for (int i = 0; i < 100; i++)
        presto__moments_add(&best->record_bytes, 5000);
    for (int i = 0; i < 200; i++)
        presto__tail_add(&sweep->files, i < 4 ? 9000 : 100);
    ck_assert_ok(presto__write_notes(sweep, &err), &err);
    size_t last = sweep->note_count;
    bool is_told = false;
    while (last-- > 0)
        is_told = is_told || (strstr(sweep->notes[last], "4 of 200 files make up half") != NULL &&
                              strstr(sweep->notes[last], "may be off by 0 %") == NULL);
    ck_assert(is_told);
    best->result.total_stored_error_bytes = 33e6;
    best->result.total_preparation_error_s = 5;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep),
                                 "for 220 MB stored (+-15 %, 2.00 times the source) and 20.0 s of "
                                 "preparation (+-25 %)"));
    best->result.total_preparation_error_s = 30; /* less than nothing is not possible */
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_ptr_nonnull(
        strstr(presto_sweep_reason(sweep), "20.0 s of preparation (50.0 s at most)"));
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(no_note_tells_of_totals_that_are_sure) {
    presto_sweep *sweep = made_sweep(false);
    presto__trial *best = &sweep->trials[2];
    presto_error err;
    /* Skewed, but hardly: a few records have some bytes more. */
    for (int i = 0; i < 100; i++)
        presto__moments_add(&best->record_bytes, i < 2 ? 5100 : 5000);
    best->record_half = 50;
    ck_assert(presto__is_heavy(&best->record_bytes, best->record_half));
    ck_assert_ok(presto__write_notes(sweep, &err), &err);
    for (size_t i = 0; i < sweep->note_count; i++)
        ck_assert_ptr_null(strstr(sweep->notes[i], "make up half of the bytes"));
    presto_sweep_free(sweep);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        half_of_the_sum_is_in_the_largest,
        the_skewness_is_the_one_worked_out_by_hand,
        with_a_long_tail_the_interval_is_more_often_right,
        without_skewness_it_is_the_usual_interval,
        a_note_tells_what_the_totals_hang_on,
        no_note_tells_of_totals_that_are_sure,
    };
    return presto_check_main("profile/tails", tests, sizeof tests / sizeof *tests, 60);
}
