/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../base/rng_internal.h"
#include "philox_internal.h"
#include "presto_check.h"

#include <presto/rng.h>

/* numpy.random.Philox(key=..., counter=...) adds one to the counter before its first block. Made
 * with NumPy 1.24: np.random.Philox(counter=[c0 - 1, c1, c2, c3], key=[k0, k1]).random_raw(4). */
START_TEST(philox_gives_the_same_numbers_as_numpy) {
    const uint64_t key[2] = {12345, 678};
    const uint64_t counter[4] = {1, 0, 0, 0};
    const uint64_t wanted[4] = {UINT64_C(6565107575648159239), UINT64_C(14450430283469252839),
                                UINT64_C(10381487961383297469), UINT64_C(13743637063129778582)};
    uint64_t got[4];
    presto__philox4x64(key, counter, got);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(got[i], wanted[i]);
}
END_TEST

START_TEST(draws_depend_on_every_part_of_the_key) {
    const presto__rng_key base = {1, 2, 3, 4};
    presto__rng_key variants[] = {base, base, base, base};
    variants[0].seed++;
    variants[1].epoch++;
    variants[2].sample++;
    variants[3].stream++;
    presto_rng a, b;
    presto__rng_init(&a, &base);
    uint64_t first = presto_rng_next(&a);
    for (size_t i = 0; i < 4; i++) {
        presto__rng_init(&b, &variants[i]);
        ck_assert_uint_ne(first, presto_rng_next(&b));
    }
    presto__rng_init(&b, &base);
    ck_assert_uint_eq(first, presto_rng_next(&b));
}
END_TEST

START_TEST(numbers_below_a_bound_are_uniform) {
    const presto__rng_key key = {presto_check_seed(), 0, 0, 0};
    presto_rng rng;
    presto__rng_init(&rng, &key);
    enum { bound = 7, draws = 70000 };
    unsigned counts[bound] = {0};
    for (int i = 0; i < draws; i++) {
        uint64_t draw = presto_rng_below(&rng, bound);
        ck_assert_uint_lt(draw, bound);
        counts[draw]++;
    }
    /* 10000 expected each, standard deviation 93: six of them. */
    for (int i = 0; i < bound; i++) {
        ck_assert_uint_gt(counts[i], 10000 - 560);
        ck_assert_uint_lt(counts[i], 10000 + 560);
    }
    ck_assert_uint_eq(presto_rng_below(&rng, 1), 0);
    for (int i = 0; i < 1000; i++) {
        double u = presto_rng_uniform(&rng);
        ck_assert(u >= 0 && u < 1);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {philox_gives_the_same_numbers_as_numpy,
                                  draws_depend_on_every_part_of_the_key,
                                  numbers_below_a_bound_are_uniform};
    return presto_check_main("rng", tests, sizeof tests / sizeof tests[0], 30);
}
