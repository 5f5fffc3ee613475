/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and products of sizes from outside: at the edge, and one beyond it. */
#include "checked_internal.h"
#include "presto_check.h"

START_TEST(sums_and_products_that_do_not_fit_are_refused_and_leave_the_result_alone) {
    size_t size = 7;
    uint64_t wide = 7;
    ck_assert(presto__size_add(SIZE_MAX - 1, 1, &size) && size == SIZE_MAX);
    ck_assert(!presto__size_add(SIZE_MAX, 1, &size) && size == SIZE_MAX);
    ck_assert(presto__size_multiply(SIZE_MAX / 2, 2, &size) && size == SIZE_MAX - 1);
    ck_assert(!presto__size_multiply(SIZE_MAX / 2 + 1, 2, &size) && size == SIZE_MAX - 1);
    ck_assert(presto__size_multiply(0, SIZE_MAX, &size) && size == 0);
    ck_assert(presto__u64_add(UINT64_MAX - 1, 1, &wide) && wide == UINT64_MAX);
    ck_assert(!presto__u64_add(1, UINT64_MAX, &wide) && wide == UINT64_MAX);
    ck_assert(presto__u64_multiply(UINT64_MAX / 3, 3, &wide) && wide == UINT64_MAX);
    ck_assert(!presto__u64_multiply(UINT64_C(1) << 32, UINT64_C(1) << 32, &wide));
    ck_assert(wide == UINT64_MAX);
}
END_TEST

START_TEST(an_array_is_zeroed_and_has_room_for_all_its_items) {
    uint64_t *items = presto__zeroed_array(9, 1, sizeof *items);
    ck_assert_ptr_nonnull(items);
    for (size_t i = 0; i < 10; i++)
        ck_assert_uint_eq(items[i], 0);
    memset(items, 1, 10 * sizeof *items); /* a sanitizer sees if it is shorter */
    free(items);
}
END_TEST

START_TEST(an_array_whose_size_wraps_around_is_none) {
    static const struct {
        uint64_t count;
        size_t more, bytes;
    } cases[] = {
        {UINT64_MAX, 1, 1},
        {UINT64_MAX, 1, 8},
        {UINT64_MAX, SIZE_MAX, 1},
        {UINT64_MAX - 1, 3, 8},
        {1, SIZE_MAX, 1},
#ifndef __SANITIZE_ADDRESS__              /* its calloc ends the program */
        {SIZE_MAX / 8, 1, 8},             /* the sum fits, the product does not */
        {SIZE_MAX / 16 + 1, 0, 16},       /* it would be 0 bytes */
        {(UINT64_C(1) << 61) + 1, 0, 24}, /* and here a few */
#endif
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        volatile uint64_t count = cases[i].count; /* no compiler computes with it, or warns */
        ck_assert_ptr_null(presto__zeroed_array(count, cases[i].more, cases[i].bytes));
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        sums_and_products_that_do_not_fit_are_refused_and_leave_the_result_alone,
        an_array_is_zeroed_and_has_room_for_all_its_items,
        an_array_whose_size_wraps_around_is_none,
    };
    return presto_check_main("checked", tests, sizeof tests / sizeof tests[0], 10);
}
