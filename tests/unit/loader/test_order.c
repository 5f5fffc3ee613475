/* SPDX-License-Identifier: Apache-2.0 */
/* The order of samples: complete, the same for any world and any cut, dealt out evenly to ranks. */
#include "../../../base/rng_internal.h"
#include "presto_check.h"

#include "order/order_internal.h"

static const presto_shuffle_kind kinds[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_BUFFER,
                                            PRESTO_SHUFFLE_FULL, PRESTO_SHUFFLE_BLOCKS};
#define KINDS (sizeof kinds / sizeof kinds[0])

static uint64_t *numbers_of(const presto__order_options *options, uint64_t epoch, size_t step,
                            uint64_t *count_out) {
    presto__order order;
    presto_error err;
    ck_assert_ok(presto__order_init(&order, options, &err), &err);
    uint64_t *numbers = calloc(order.epoch_samples + 1, sizeof *numbers);
    for (uint64_t at = 0; at < order.epoch_samples; at += step) {
        uint64_t left = order.epoch_samples - at;
        presto__order_numbers(&order, epoch, at, left < step ? (size_t)left : step, numbers + at);
    }
    *count_out = order.epoch_samples;
    presto__order_done(&order);
    return numbers;
}

static void check_complete(const uint64_t *numbers, uint64_t count) {
    uint8_t *seen = calloc(count, 1);
    for (uint64_t i = 0; i < count; i++) {
        ck_assert_uint_lt(numbers[i], count);
        ck_assert_uint_eq(seen[numbers[i]]++, 0);
    }
    free(seen);
}

START_TEST(every_sample_comes_exactly_once_an_epoch_in_every_shuffle) {
    for (size_t k = 0; k < KINDS; k++)
        for (uint64_t count = 1; count < 140; count += 3)
            for (uint64_t window = 1; window < 2 * count; window = window * 2 + 1) {
                presto__order_options options = {.count = count,
                                                 .seed = presto_check_seed(),
                                                 .shuffle = kinds[k],
                                                 .window = window,
                                                 .world = 1};
                uint64_t got;
                uint64_t *numbers = numbers_of(&options, 4, 7, &got);
                ck_assert_uint_eq(got, count);
                check_complete(numbers, count);
                free(numbers);
            }
}
END_TEST

/* Bits as in a split: few, many, in runs. */
static presto__subset *make_subset(uint64_t most, uint64_t seed, uint64_t *numbers,
                                   uint64_t *count_out) {
    presto__subset *subset;
    presto_error err;
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = seed});
    uint64_t one_in = 1 + presto_rng_below(&rng, 40), run = 0;
    *count_out = 0;
    ck_assert_ok(presto__subset_new(most, &subset, &err), &err);
    for (uint64_t i = 0; i < most; i++) {
        if (run == 0 && presto_rng_below(&rng, one_in) == 0)
            run = 1 + presto_rng_below(&rng, 200);
        if (run == 0)
            continue;
        run--;
        ck_assert_ok(presto__subset_add(subset, i, &err), &err);
        numbers[(*count_out)++] = i;
    }
    ck_assert_uint_eq(presto__subset_count(subset), *count_out);
    return subset;
}

START_TEST(a_subset_comes_in_the_order_of_as_many_samples) {
    static uint64_t members[20000];
    for (uint64_t round = 0; round < 60; round++) {
        uint64_t seed = presto_check_seed() + round, count, got, wanted;
        presto__subset *subset = make_subset(1 + round * round * 5, seed, members, &count);
        for (size_t k = 0; k < KINDS && count > 0; k++)
            for (uint64_t rank = 0; rank < 3; rank += 2) {
                presto__order_options options = {.count = count,
                                                 .seed = seed,
                                                 .shuffle = kinds[k],
                                                 .window = 37,
                                                 .rank = rank,
                                                 .world = rank + 1};
                uint64_t *ranks = numbers_of(&options, 2, 100, &wanted);
                options.subset = subset;
                uint64_t *numbers = numbers_of(&options, 2, 33, &got);
                ck_assert_uint_eq(got, wanted);
                for (uint64_t i = 0; i < got; i++)
                    ck_assert_uint_eq(numbers[i], members[ranks[i]]);
                free(ranks);
                free(numbers);
            }
        presto__subset_truncate(subset, count + 1);
        ck_assert_uint_eq(presto__subset_count(subset), count);
        presto__subset_truncate(subset, count / 2);
        ck_assert_uint_eq(presto__subset_count(subset), count / 2);
        presto__subset_free(subset);
    }
}
END_TEST

START_TEST(the_order_does_not_depend_on_how_it_is_cut_into_blocks) {
    for (size_t k = 0; k < KINDS; k++) {
        presto__order_options options = {
            .count = 1003, .seed = 9, .shuffle = kinds[k], .window = 50, .world = 1};
        uint64_t count;
        uint64_t *whole = numbers_of(&options, 1, 2000, &count);
        for (size_t step = 1; step < 300; step = step * 3 + 1) {
            uint64_t *pieces = numbers_of(&options, 1, step, &count);
            ck_assert_mem_eq(whole, pieces, count * sizeof *whole);
            free(pieces);
        }
        free(whole);
    }
}
END_TEST

START_TEST(epochs_and_seeds_differ_and_repeat) {
    for (size_t k = 1; k < KINDS; k++) {
        presto__order_options options = {
            .count = 500, .seed = 1, .shuffle = kinds[k], .window = 20, .world = 1};
        uint64_t count;
        uint64_t *first = numbers_of(&options, 0, 64, &count);
        uint64_t *again = numbers_of(&options, 0, 64, &count);
        uint64_t *second = numbers_of(&options, 1, 64, &count);
        options.seed = 2;
        uint64_t *other = numbers_of(&options, 0, 64, &count);
        ck_assert_mem_eq(first, again, count * sizeof *first);
        ck_assert_mem_ne(first, second, count * sizeof *first);
        ck_assert_mem_ne(first, other, count * sizeof *first);
        free(first);
        free(again);
        free(second);
        free(other);
    }
}
END_TEST

START_TEST(ranks_deal_out_the_same_global_order_for_any_world) {
    for (size_t k = 0; k < KINDS; k++)
        for (uint64_t count = 1; count < 60; count += 7)
            for (uint64_t world = 1; world < 12; world++)
                for (int drop = 0; drop < 2; drop++) {
                    presto__order_options options = {
                        .count = count, .seed = 5, .shuffle = kinds[k], .window = 8, .world = 1};
                    uint64_t n;
                    uint64_t *global = numbers_of(&options, 2, 16, &n);
                    options.world = world;
                    options.drop_last = drop;
                    uint64_t each = count / world + (!drop && count % world != 0);
                    for (uint64_t rank = 0; rank < world; rank++) {
                        options.rank = rank;
                        uint64_t *mine = numbers_of(&options, 2, 5, &n);
                        ck_assert_uint_eq(n, each);
                        for (uint64_t i = 0; i < n; i++)
                            ck_assert_uint_eq(mine[i], global[(i * world + rank) % count]);
                        free(mine);
                    }
                    free(global);
                }
}
END_TEST

START_TEST(a_buffer_never_reaches_further_than_its_window) {
    presto__order_options options = {
        .count = 1000, .seed = 3, .shuffle = PRESTO_SHUFFLE_BUFFER, .window = 25, .world = 1};
    uint64_t count;
    uint64_t *numbers = numbers_of(&options, 0, 100, &count);
    for (uint64_t i = 0; i < count; i++)
        ck_assert_uint_lt(numbers[i], i + 25);
    free(numbers);
}
END_TEST

START_TEST(permuted_blocks_stay_together) {
    presto__order_options options = {
        .count = 107, .seed = 3, .shuffle = PRESTO_SHUFFLE_BLOCKS, .window = 10, .world = 1};
    uint64_t count;
    uint64_t *numbers = numbers_of(&options, 0, 9, &count);
    size_t changes = 0;
    for (uint64_t i = 1; i < count; i++)
        changes += numbers[i] / 10 != numbers[i - 1] / 10;
    ck_assert_uint_eq(changes, 10); /* 11 blocks */
    free(numbers);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_sample_comes_exactly_once_an_epoch_in_every_shuffle,
        a_subset_comes_in_the_order_of_as_many_samples,
        the_order_does_not_depend_on_how_it_is_cut_into_blocks,
        epochs_and_seeds_differ_and_repeat,
        ranks_deal_out_the_same_global_order_for_any_world,
        a_buffer_never_reaches_further_than_its_window,
        permuted_blocks_stay_together,
    };
    return presto_check_main("order", tests, sizeof tests / sizeof tests[0], 120);
}
