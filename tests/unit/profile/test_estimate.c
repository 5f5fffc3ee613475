/* SPDX-License-Identifier: Apache-2.0 */
#include <presto/rng.h>

#include "../../../base/rng_internal.h"
#include "made_sweep.h"

START_TEST(mean_and_variance_are_those_of_the_textbook) {
    const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    presto__moments moments = {0};
    ck_assert(isnan(presto__moments_variance(&moments)));
    for (size_t i = 0; i < 8; i++)
        presto__moments_add(&moments, values[i]);
    ck_assert_double_eq_tol(moments.mean, 5, 1e-12);
    ck_assert_double_eq_tol(presto__moments_variance(&moments), 32.0 / 7, 1e-12);
}
END_TEST

START_TEST(quantiles_of_student_match_the_tables) {
    ck_assert_double_eq_tol(presto__student_95(1), 12.706, 1e-3);
    ck_assert_double_eq_tol(presto__student_95(30), 2.042, 1e-3);
    ck_assert_double_eq_tol(presto__student_95(60), 2.000, 1e-3);
    ck_assert_double_eq_tol(presto__student_95(199), 1.972, 1e-3);
    ck_assert_double_eq_tol(presto__student_95(1000000000), 1.960, 1e-3);
}
END_TEST

START_TEST(the_spread_of_odd_and_even_counts_has_its_median) {
    double odd[] = {3, 1, 2};
    presto_spread spread = presto__spread_of(odd, 3);
    ck_assert_double_eq(spread.least, 1);
    ck_assert_double_eq(spread.median, 2);
    ck_assert_double_eq(spread.most, 3);
    double even[] = {4, 1, 3, 2};
    ck_assert_uint_eq(presto__median_index(even, 4), 3);
    ck_assert_double_eq(presto__spread_of(even, 4).median, 2.5);
    double one[] = {7};
    ck_assert_double_eq(presto__spread_of(one, 1).median, 7);
    const double same[] = {5, 5, 5};
    ck_assert_uint_eq(presto__median_index(same, 3), 1);
}
END_TEST

START_TEST(a_total_from_a_sample_of_all_has_no_error) {
    presto__moments moments = {0};
    for (int i = 0; i < 10; i++)
        presto__moments_add(&moments, i);
    presto__estimate all = presto__estimate_sum(&moments, 10);
    ck_assert_double_eq_tol(all.total, 45, 1e-9);
    ck_assert_double_eq(all.error, 0);
    presto__estimate more = presto__estimate_sum(&moments, 1000);
    /* variance 9.1667; sqrt(9.1667 / 10 * 0.99) = 0.95263; t(9) = 2.262 */
    ck_assert_double_eq_tol(more.total, 4500, 1e-9);
    ck_assert_double_eq_tol(more.error, 2.262 * 0.95263 * 1000, 0.5);
    presto__moments one = {.count = 1, .mean = 3};
    ck_assert(isnan(presto__estimate_sum(&one, 10).error));
}
END_TEST

/* 95 % intervals from random samples hold the true total about 95 times in 100. */
START_TEST(error_bars_hold_the_truth_as_often_as_they_say) {
    enum { POPULATION = 2000, SAMPLE = 100, ROUNDS = 1000 };
    const presto__rng_key key = {presto_check_seed(), 0, 0, 0};
    presto_rng rng;
    presto__rng_init(&rng, &key);
    static double values[POPULATION];
    double total = 0;
    for (size_t i = 0; i < POPULATION; i++)
        total += values[i] = 1000 + 500 * presto_rng_uniform(&rng) + (i % 10 == 0 ? 1000 : 0);
    int held = 0;
    for (int round = 0; round < ROUNDS; round++) {
        presto__moments moments = {0};
        for (size_t i = 0; i < SAMPLE; i++) {
            size_t k = i + presto_rng_below(&rng, POPULATION - i);
            double other = values[i];
            values[i] = values[k];
            values[k] = other;
            presto__moments_add(&moments, values[i]);
        }
        presto__estimate estimate = presto__estimate_sum(&moments, POPULATION);
        held += fabs(estimate.total - total) <= estimate.error;
    }
    /* Standard deviation of the count is 7; six of them either side. */
    ck_assert_int_ge(held, 908);
    ck_assert_int_le(held, 992);
}
END_TEST

START_TEST(pieces_of_a_steady_job_agree_and_those_of_an_uneven_one_do_not) {
    presto__marks steady = {0};
    presto__marks uneven = {0};
    uint64_t elapsed = 0;
    for (uint64_t i = 1; i <= 2000; i++) {
        presto__marks_add(&steady, i, i * 1000000);
        elapsed += (i / 100) % 2 == 0 ? 1000000 : 3000000;
        presto__marks_add(&uneven, i, elapsed);
    }
    ck_assert_double_lt(presto__marks_error_s(&steady), 1e-9);
    ck_assert_double_gt(presto__marks_error_s(&uneven), 0);
    ck_assert_uint_le(steady.count, PRESTO__MARKS);
    /* Pieces of 1, 2 and 3 s a sample: the standard deviation is 1, and t for two degrees 4.303. */
    presto__marks three = {0};
    presto__marks_add(&three, 1, UINT64_C(1000000000));
    presto__marks_add(&three, 2, UINT64_C(3000000000));
    presto__marks_add(&three, 3, UINT64_C(6000000000));
    ck_assert_double_eq_tol(presto__marks_error_s(&three), 4.303 / sqrt(3), 1e-9);
    presto__marks two = {0};
    presto__marks_add(&two, 5, 10);
    presto__marks_add(&two, 5, 20);
    presto__marks_add(&two, 9, 30);
    ck_assert_uint_eq(two.count, 2);
    ck_assert(isnan(presto__marks_error_s(&two)));
    const presto__marks none = {0};
    ck_assert(isnan(presto__marks_error_s(&none)));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        mean_and_variance_are_those_of_the_textbook,
        quantiles_of_student_match_the_tables,
        the_spread_of_odd_and_even_counts_has_its_median,
        a_total_from_a_sample_of_all_has_no_error,
        error_bars_hold_the_truth_as_often_as_they_say,
        pieces_of_a_steady_job_agree_and_those_of_an_uneven_one_do_not,
    };
    return presto_check_main("profile/estimate", tests, sizeof tests / sizeof *tests, 60);
}
