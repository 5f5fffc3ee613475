/* SPDX-License-Identifier: Apache-2.0 */
/* The test of Kolmogorov and Smirnov; tests/live/drift.py compares it with SciPy's. */
#include "../../../base/rng_internal.h"
#include "drift_internal.h"
#include "presto_check.h"

#include <math.h>

static presto__ks test_of(const double *a, size_t a_count, const double *b, size_t b_count) {
    double copies[2][64];
    ck_assert(a_count <= 64 && b_count <= 64);
    memcpy(copies[0], a, a_count * sizeof *a);
    memcpy(copies[1], b, b_count * sizeof *b);
    presto__series one = {copies[0], a_count}, other = {copies[1], b_count};
    return presto__ks_test(&one, &other);
}

START_TEST(the_distance_is_the_largest_between_the_steps) {
    static const double a[] = {1, 2, 3, 4}, b[] = {2.5, 3.5, 4.5, 5.5, 6.5};
    /* Below 2.5, half of a and none of b; below 4.5, all of a and two of five of b. */
    ck_assert_double_eq_tol(test_of(a, 4, b, 5).distance, 0.6, 1e-12);
    ck_assert_double_eq_tol(test_of(b, 5, a, 4).distance, 0.6, 1e-12);
    static const double ties[] = {1, 1, 1, 2}, more[] = {1, 1, 2, 2};
    ck_assert_double_eq_tol(test_of(ties, 4, more, 4).distance, 0.25, 1e-12);
    ck_assert_double_eq(test_of(a, 4, a, 4).distance, 0);
    ck_assert_double_eq(test_of(a, 4, a, 4).chance, 1);
    ck_assert_double_eq(test_of(a, 0, b, 5).chance, 1);
}
END_TEST

/* Kolmogorov's distribution at 1.358 is 0.95, at 1.628 0.99 (Smirnov's table of 1948). */
START_TEST(the_chance_is_that_of_the_table) {
    double a[50], b[50];
    for (size_t i = 0; i < 50; i++) {
        a[i] = (double)i;
        b[i] = (double)i + 13; /* D = 0.26 */
    }
    presto__ks found = test_of(a, 50, b, 50);
    ck_assert_double_eq_tol(found.distance, 0.26, 1e-12);
    double lambda = (5 + 0.12 + 0.11 / 5) * 0.26; /* 1.337 */
    ck_assert_double_eq_tol(found.chance,
                            2 * (exp(-2 * lambda * lambda) - exp(-8 * lambda * lambda)), 1e-6);
    ck_assert(found.chance > 0.05 && found.chance < 0.06);
}
END_TEST

/* As often as it says, and not for small shifts only. */
START_TEST(of_the_same_distribution_it_errs_as_rarely_as_it_says) {
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    size_t rounds = presto_check_rounds(4000), wrong = 0, found = 0;
    for (size_t round = 0; round < rounds; round++) {
        double a[60], b[40], wide[40];
        for (size_t i = 0; i < 60; i++)
            a[i] = -log(1 - presto_rng_uniform(&rng));
        for (size_t i = 0; i < 40; i++) {
            b[i] = -log(1 - presto_rng_uniform(&rng));
            wide[i] = 3 * b[i];
        }
        wrong += test_of(a, 60, b, 40).chance < 0.05;
        found += test_of(a, 60, wide, 40).chance < 0.05;
    }
    double chance = 5 * sqrt(0.05 * 0.95 * (double)rounds); /* five standard deviations */
    ck_assert_msg((double)wrong < 0.05 * (double)rounds + chance, "%zu of %zu", wrong, rounds);
    ck_assert_msg(found > rounds * 9 / 10, "%zu of %zu", found, rounds);
}
END_TEST

START_TEST(quantiles_are_linear_between_values) {
    double values[] = {1, 2, 4, 8};
    const presto__series series = {values, 4};
    ck_assert_double_eq(presto__quantile(&series, 0), 1);
    ck_assert_double_eq(presto__quantile(&series, 0.5), 3);
    ck_assert_double_eq_tol(presto__quantile(&series, 0.95), 7.4, 1e-12);
    ck_assert_double_eq(presto__quantile(&series, 1), 8);
    ck_assert(isnan(presto__quantile(&(presto__series){values, 0}, 0.5)));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_distance_is_the_largest_between_the_steps,
        the_chance_is_that_of_the_table,
        of_the_same_distribution_it_errs_as_rarely_as_it_says,
        quantiles_are_linear_between_values,
    };
    return presto_check_main("profile/ks", tests, sizeof tests / sizeof *tests, 60);
}
