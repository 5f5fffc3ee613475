/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges that are read at once: each position comes once, in order within its range; never more
 * ranges than wanted are in progress; the sequence is the same for any number of threads.
 */
#include "../../../base/rng_internal.h"
#include "loader_check.h"

#include "engine/workers_internal.h"

enum { MOST_RANGES = 9, SAMPLES = 700 };

static presto_error err;

/* Some ranges of up to 60 positions, with gaps, some of them empty. */
static size_t draw_ranges(presto_rng *rng, presto__range list[MOST_RANGES]) {
    size_t count = (size_t)presto_rng_below(rng, MOST_RANGES + 1);
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        list[i].first = at + presto_rng_below(rng, 5);
        list[i].end = list[i].first + presto_rng_below(rng, 4) * presto_rng_below(rng, 21);
        at = list[i].end;
    }
    return count;
}

static size_t range_of(const presto__range *list, size_t count, uint64_t position) {
    for (size_t i = 0; i < count; i++)
        if (position >= list[i].first && position < list[i].end)
            return i;
    ck_abort_msg("position %" PRIu64 " is in no range", position);
    return 0;
}

/* Goes through them once. */
static void check_walk(const presto__range *list, size_t count, size_t most_open, size_t most) {
    presto__ranges ranges;
    uint64_t reached[MOST_RANGES] = {0}, total = 0, sum = 0, first;
    size_t stretch, begun = 0;
    for (size_t i = 0; i < count; i++) {
        reached[i] = list[i].first;
        total += list[i].end - list[i].first;
    }
    presto__ranges_init(&ranges, list, count, most_open);
    while (presto__ranges_next(&ranges, most, &first, &stretch)) {
        size_t in = range_of(list, count, first), open = 0;
        ck_assert_uint_eq(first, reached[in]);
        ck_assert_uint_ge(stretch, 1);
        ck_assert_uint_le(stretch, most);
        ck_assert(stretch == most || first + stretch == list[in].end);
        /* They begin in the order of the list. */
        if (first == list[in].first)
            for (; begun <= in; begun++)
                ck_assert(begun == in || list[begun].first == list[begun].end);
        reached[in] += stretch;
        sum += stretch;
        ck_assert_uint_eq(ranges.passed, sum);
        for (size_t i = 0; i < count; i++)
            open += reached[i] > list[i].first && reached[i] < list[i].end;
        ck_assert_uint_le(open, most_open);
    }
    ck_assert_uint_eq(sum, total);
    ck_assert(!presto__ranges_next(&ranges, most, &first, &stretch));
}

START_TEST(each_position_comes_once_and_in_order) {
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){presto_check_seed(), 1, 2, 3});
    presto__range list[MOST_RANGES] = {{0}};
    for (int i = 0; i < 2000; i++) {
        size_t count = draw_ranges(&rng, list);
        check_walk(list, count, 1 + (size_t)presto_rng_below(&rng, PRESTO__MOST_OPEN),
                   1 + (size_t)presto_rng_below(&rng, 30));
    }
}
END_TEST

START_TEST(open_ranges_take_turns) {
    static const presto__range list[] = {{0, 4}, {10, 16}, {20, 20}, {30, 32}, {40, 42}};
    static const uint64_t wanted[] = {0, 10, 2, 12, 30, 14, 40};
    presto__ranges ranges;
    presto__ranges_init(&ranges, list, 5, 2);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        uint64_t first;
        size_t count;
        ck_assert(presto__ranges_next(&ranges, 2, &first, &count));
        ck_assert_uint_eq(first, wanted[i]);
        ck_assert_uint_eq(count, 2);
    }
    uint64_t first;
    size_t count;
    ck_assert(!presto__ranges_next(&ranges, 2, &first, &count));
}
END_TEST

/* ---- through the loader ---- */

static presto_loader_options records_options(unsigned threads) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.output = PRESTO_OUTPUT_RECORDS;
    options.batch_samples = 0;
    options.memory.block_samples = 16;
    return options;
}

/* The digest of all batches; each lies within one range. */
static uint32_t digest_ranges(presto_source *source, const presto__ranges *ranges, unsigned threads,
                              uint64_t *samples_out) {
    presto_loader_options options = records_options(threads);
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    uint32_t digest = 0;
    *samples_out = 0;
    ck_assert_ok(
        presto__loader_open_input(&(presto__loader_input){.source = source, .ranges = *ranges},
                                  &options, &loader, &err),
        &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        size_t in = range_of(ranges->list, ranges->count, batch->first);
        ck_assert_uint_eq(batch->sample_numbers[0], batch->first);
        ck_assert_uint_le(batch->first + batch->rows, ranges->list[in].end);
        digest = digest_batch(digest, batch);
        *samples_out += batch->rows;
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    ck_assert_uint_eq(loader->failed_at, UINT64_MAX);
    presto_loader_free(loader);
    return digest;
}

START_TEST(the_loader_hands_them_out_in_the_same_order_for_any_number_of_threads) {
    static const made how = {.samples = SAMPLES, .shards = 3, .values = 5, .odd = UINT64_MAX};
    char *dir = presto_check_temp_dir();
    make_dataset(dir, &how);
    opened data = open_made(dir, false);
    static const presto__range list[] = {{3, 50}, {50, 51}, {60, 60}, {100, 333}, {400, SAMPLES}};
    for (size_t count = 0; count <= 5; count++)
        for (size_t most_open = 1; most_open <= PRESTO__MOST_OPEN; most_open++) {
            presto__ranges ranges;
            presto__ranges_init(&ranges, list, count, most_open);
            uint32_t wanted = 0;
            uint64_t samples, total = 0;
            for (size_t i = 0; i < count; i++)
                total += list[i].end - list[i].first;
            for (unsigned threads = 0; threads <= 5; threads++) {
                uint32_t digest = digest_ranges(data.source, &ranges, threads, &samples);
                ck_assert_uint_eq(samples, total);
                if (threads == 0)
                    wanted = digest;
                ck_assert_uint_eq(digest, wanted);
            }
        }
    close_made(&data);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* The list may be freed once the loader is open: workers outlive a job that ends early. */
START_TEST(the_loader_keeps_a_list_of_its_own) {
    static const made how = {.samples = SAMPLES, .shards = 1, .values = 5, .odd = UINT64_MAX};
    char *dir = presto_check_temp_dir();
    make_dataset(dir, &how);
    opened data = open_made(dir, false);
    for (unsigned threads = 0; threads <= 3; threads++) {
        presto__range *list = calloc(4, sizeof *list);
        ck_assert_ptr_nonnull(list);
        for (uint64_t i = 0; i < 4; i++)
            list[i] = (presto__range){i * 100, i * 100 + 50};
        presto__ranges ranges;
        presto__ranges_init(&ranges, list, 4, 2);
        presto_loader_options options = records_options(threads);
        presto_loader *loader;
        ck_assert_ok(presto__loader_open_input(
                         &(presto__loader_input){.source = data.source, .ranges = ranges}, &options,
                         &loader, &err),
                     &err);
        memset(list, 0, 4 * sizeof *list);
        free(list);
        presto_batch *batch;
        presto_status status;
        uint64_t samples = 0;
        while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
            samples += batch->rows;
            presto_batch_release(batch);
        }
        ck_assert_status(status, PRESTO_END, &err);
        ck_assert_uint_eq(samples, 200); /* 4 x 50 */
        presto_loader_free(loader);
    }
    close_made(&data);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* The position tells which sample failed. */
START_TEST(the_loader_knows_where_it_failed) {
    static const made how = {.samples = SAMPLES, .shards = 1, .values = 5, .odd = UINT64_MAX};
    char *dir = presto_check_temp_dir();
    make_dataset(dir, &how);
    char path[700];
    size_t bytes;
    snprintf(path, sizeof path, "%s/data-00000-of-00001.tfrecord", dir);
    uint8_t *content = presto_check_read_file(path, &bytes);
    for (size_t i = 0; i + 10 < bytes; i++)
        if (memcmp(content + i, "sample-123", 10) == 0 ||
            memcmp(content + i, "sample-555", 10) == 0)
            content[i] ^= 1;
    presto_check_write_file(path, presto_span_of(content, bytes));
    free(content);
    opened data = open_made(dir, false);
    static const presto__range list[] = {{0, 100}, {100, 500}, {500, SAMPLES}};
    for (unsigned threads = 0; threads <= 3; threads++) {
        presto__ranges ranges;
        presto__ranges_init(&ranges, list, 3, 3);
        presto_loader_options options = records_options(threads);
        presto_loader *loader;
        presto_batch *batch;
        uint64_t samples = 0;
        presto_status status;
        ck_assert_ok(presto__loader_open_input(
                         &(presto__loader_input){.source = data.source, .ranges = ranges}, &options,
                         &loader, &err),
                     &err);
        while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
            samples += batch->rows;
            presto_batch_release(batch);
        }
        ck_assert_status(status, PRESTO_ERR_CORRUPT, &err);
        /* Both are in the third or fourth stretch of their range: 123 comes before 555. */
        ck_assert_uint_eq(loader->failed_at, 123);
        ck_assert_uint_eq(samples, 16 + 16 + 16 + 16 + 7);
        presto_loader_free(loader);
    }
    close_made(&data);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        each_position_comes_once_and_in_order,
        open_ranges_take_turns,
        the_loader_hands_them_out_in_the_same_order_for_any_number_of_threads,
        the_loader_keeps_a_list_of_its_own,
        the_loader_knows_where_it_failed,
    };
    return presto_check_main("ranges", tests, sizeof tests / sizeof tests[0], 120);
}
