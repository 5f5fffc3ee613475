/* SPDX-License-Identifier: Apache-2.0 */
/* The keyed permutation: a bijection for every count, undone by its inverse, different for every
 * key. */
#include "presto_check.h"

#include "order/order_internal.h"

static void check_bijection(uint64_t count, uint64_t seed, uint64_t epoch) {
    presto__permutation permutation;
    presto__permutation_init(&permutation, count, seed, epoch, 0);
    uint8_t *seen = calloc(count, 1);
    ck_assert_ptr_nonnull(seen);
    /* Each of Check's assertions sends a message to its parent process, so millions of them are
     * made one. */
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = presto__permutation_at(&permutation, i);
        if (value >= count || seen[value]++ != 0 ||
            presto__permutation_inverse(&permutation, value) != i)
            ck_abort_msg("count %ju: position %ju has %ju", (uintmax_t)count, (uintmax_t)i,
                         (uintmax_t)value);
    }
    free(seen);
}

START_TEST(every_count_up_to_5000_is_permuted_exactly) {
    for (uint64_t count = 1; count <= 5000; count += count < 600 ? 1 : 7)
        check_bijection(count, presto_check_seed(), count);
}
END_TEST

START_TEST(counts_around_powers_of_two_and_large_ones_are_permuted_exactly) {
    static const uint64_t counts[] = {65535, 65536, 65537, 1000003, (1 << 20) + 1};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        check_bijection(counts[i], presto_check_seed(), i);
}
END_TEST

START_TEST(huge_counts_stay_inside_and_are_undone) {
    static const uint64_t counts[] = {UINT64_C(1) << 40, (UINT64_C(1) << 62) - 57,
                                      UINT64_C(1) << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        presto__permutation permutation;
        presto__permutation_init(&permutation, counts[i], presto_check_seed(), 3, 1);
        for (uint64_t at = 0; at < 1000; at++) {
            uint64_t position = counts[i] / 1000 * at;
            uint64_t value = presto__permutation_at(&permutation, position);
            ck_assert_uint_lt(value, counts[i]);
            ck_assert_uint_eq(presto__permutation_inverse(&permutation, value), position);
        }
    }
}
END_TEST

START_TEST(seed_epoch_and_stream_change_the_order) {
    presto__permutation base, other;
    presto__permutation_init(&base, 1000, 1, 2, 3);
    static const uint64_t keys[][3] = {{2, 2, 3}, {1, 3, 3}, {1, 2, 4}};
    for (size_t k = 0; k < 3; k++) {
        presto__permutation_init(&other, 1000, keys[k][0], keys[k][1], keys[k][2]);
        size_t same = 0;
        for (uint64_t i = 0; i < 1000; i++)
            same += presto__permutation_at(&base, i) == presto__permutation_at(&other, i);
        ck_assert_uint_lt(same, 20); /* one is expected; twenty happen once in 10^18 */
    }
}
END_TEST

/* Over many keys, each value must come first about equally often. Otherwise small folders are
 * shuffled badly. */
START_TEST(first_places_are_spread_evenly_over_keys) {
    enum { COUNT = 10, KEYS = 20000 };
    size_t hits[COUNT] = {0};
    for (uint64_t key = 0; key < KEYS; key++) {
        presto__permutation permutation;
        presto__permutation_init(&permutation, COUNT, 42, key, 0);
        hits[presto__permutation_at(&permutation, 0)]++;
    }
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_uint_gt(hits[i], KEYS / COUNT * 9 / 10);
        ck_assert_uint_lt(hits[i], KEYS / COUNT * 11 / 10);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_count_up_to_5000_is_permuted_exactly,
        counts_around_powers_of_two_and_large_ones_are_permuted_exactly,
        huge_counts_stay_inside_and_are_undone,
        seed_epoch_and_stream_change_the_order,
        first_places_are_spread_evenly_over_keys,
    };
    return presto_check_main("permutation", tests, sizeof tests / sizeof tests[0], 120);
}
