/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that run through the disk cache are the same as without it, whatever is damaged in it. */
#define _DEFAULT_SOURCE /* flock */
#include <sys/stat.h>

#include "../../../base/rng_internal.h"
#include "../../../loader/loader_internal.h"
#include "cache/disk_internal.h"

#include "cache_check.h"

static void add_size(const char *path, void *user) {
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    *(uint64_t *)user += (uint64_t)info.st_size;
}

/* ---- streams ---- */

static const unsigned thread_counts[] = {0, 1, 2, 8};

static presto_loader_options defaults(unsigned threads, size_t batch_samples) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = batch_samples;
    options.range.epochs = 3;
    return options;
}

static void check_stream(const opened *data, presto_loader_options options, uint64_t limit_bytes) {
    presto_error err;
    uint64_t samples;
    options.cache.dir = NULL;
    options.cache.bytes = 0;
    uint32_t wanted = digest_stream(data->source, NULL, &options, NULL, PRESTO_END, &err);
    options.cache.dir = cache_dir;
    options.cache.bytes = limit_bytes;
    uint32_t got = digest_stream(data->source, NULL, &options, &samples, PRESTO_END, &err);
    ck_assert_uint_eq(got, wanted);
    ck_assert_uint_eq(samples, 3 * presto_source_count(data->source));
    uint64_t total = 0;
    each_file(add_size, &total);
    ck_assert_uint_le(total, limit_bytes);
}

START_TEST(streams_are_the_same_with_and_without_it) {
    set_up();
    static const char *const codecs[] = {NULL, "zstd:1"};
    for (size_t c = 0; c < 2; c++) {
        made how = {
            .samples = 300, .shards = 3, .values = 700, .odd = UINT64_MAX, .codec = codecs[c]};
        make_dataset(data_dir, &how);
        opened data = open_made(data_dir, false);
        for (size_t t = 0; t < 4; t++)
            for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
                for (size_t rows = 1; rows < 60; rows += 29) {
                    presto_loader_options options = defaults(thread_counts[t], rows);
                    options.order.shuffle = (presto_shuffle_kind)shuffle;
                    options.order.shuffle_window = 17;
                    options.unaligned_views = t % 2 == 1;
                    options.memory.block_samples = 1 + 40 * t;
                    /* All of it, and a part. */
                    check_stream(&data, options, (uint64_t)4 << 20);
                    if (shuffle == PRESTO_SHUFFLE_FULL)
                        check_stream(&data, options, (uint64_t)300 << 10);
                }
        close_made(&data);
    }
    tear_down();
}
END_TEST

START_TEST(a_second_loader_reads_nothing_but_the_cache) {
    set_up();
    made how = {.samples = 100, .shards = 2, .values = 900, .odd = UINT64_MAX};
    make_dataset(data_dir, &how);
    presto_loader_options options = defaults(1, 8);
    options.cache.dir = cache_dir;
    options.cache.bytes = (uint64_t)8 << 20;
    for (int turn = 0; turn < 2; turn++) {
        opened data = open_made(data_dir, false);
        presto_loader *loader;
        presto_batch *batch;
        presto_error err;
        presto_loader_stats stats;
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK)
            presto_batch_release(batch);
        presto_loader_get_stats(loader, &stats);
        presto_loader_free(loader);
        close_made(&data);
        ck_assert_uint_eq(stats.cached_samples, turn == 0 ? 200 : 300);
        ck_assert_uint_eq(stats.missed_samples, turn == 0 ? 100 : 0);
        ck_assert_uint_eq(stats.cache_written_bytes > 0, turn == 0);
        ck_assert_uint_ge(stats.cache_bytes, UINT64_C(100) * 900 * 4);
        ck_assert_uint_eq(stats.cache_damaged_blocks, 0);
        ck_assert_uint_ge(stats.read_bytes, UINT64_C(300) * 900 * 4);
    }
    tear_down();
}
END_TEST

START_TEST(batches_from_it_outlive_the_loader_and_the_files) {
    set_up();
    made how = {.samples = 60, .shards = 2, .values = 3000, .odd = UINT64_MAX};
    make_dataset(data_dir, &how);
    for (size_t rows = 1; rows < 8; rows += 6) {
        opened data = open_made(data_dir, false);
        presto_loader_options options = defaults(2, rows);
        options.range.epochs = 1;
        options.cache.dir = cache_dir;
        options.cache.bytes = (uint64_t)8 << 20;
        presto_error err;
        digest_stream(data.source, NULL, &options, NULL, PRESTO_END, &err);
        presto_loader *loader;
        presto_batch *batches[60];
        size_t count = 0;
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
        while (presto_loader_next(loader, &batches[count], &err) == PRESTO_OK)
            count++;
        presto_loader_stats stats;
        presto_loader_get_stats(loader, &stats);
        ck_assert_uint_eq(stats.cached_samples, 60);
        presto_loader_free(loader);
        close_made(&data);
        presto_check_remove_tree(cache_dir);
        for (size_t i = 0; i < count; i++) {
            const presto_batch_feature *x = &batches[i]->features[2];
            ck_assert_str_eq(x->name, "x");
            if (rows == 1)
                ck_assert_uint_eq((uintptr_t)x->tensor.data % 64, 0);
            const float *values = x->tensor.data;
            for (size_t j = 0; j < batches[i]->rows; j++)
                ck_assert_float_eq(values[j * 3000 + 2999],
                                   made_value(batches[i]->sample_numbers[j], 2999));
            presto_batch_release(batches[i]);
        }
    }
    tear_down();
}
END_TEST

static void flip_something(const char *path, void *user) {
    presto_rng *rng = user;
    if (presto_rng_below(rng, 3) == 0)
        return;
    size_t bytes;
    uint8_t *data = presto_check_read_file(path, &bytes);
    if (presto_rng_below(rng, 4) == 0)
        bytes = (size_t)presto_rng_below(rng, bytes + 1);
    for (uint64_t i = presto_rng_below(rng, 4); bytes > 0 && i > 0; i--)
        data[presto_rng_below(rng, bytes)] ^= (uint8_t)(1U << presto_rng_below(rng, 8));
    presto_check_write_file(path, presto_span_of(data, bytes));
    free(data);
}

START_TEST(whatever_is_damaged_in_it_the_stream_stays_the_same) {
    set_up();
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    made how = {.samples = 200, .shards = 2, .values = 500, .odd = UINT64_MAX};
    make_dataset(data_dir, &how);
    opened data = open_made(data_dir, false);
    for (size_t i = 0; i < 24; i++) {
        presto_loader_options options = defaults(thread_counts[i % 4], 1 + i % 3 * 7);
        options.order.shuffle = i % 2 == 0 ? PRESTO_SHUFFLE_NONE : PRESTO_SHUFFLE_FULL;
        options.unaligned_views = i % 5 == 0;
        check_stream(&data, options, (uint64_t)2 << 20);
        each_file(flip_something, &rng);
    }
    close_made(&data);
    tear_down();
}
END_TEST

START_TEST(options_that_make_no_sense_are_refused) {
    set_up();
    made how = {.samples = 10, .shards = 1, .values = 10, .odd = UINT64_MAX};
    make_dataset(data_dir, &how);
    opened data = open_made(data_dir, false);
    presto_loader_options options = defaults(1, 1);
    presto_loader *loader = NULL;
    presto_error err;
    options.cache.dir = cache_dir;
    ck_assert_status(presto__loader_open(data.source, NULL, &options, &loader, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    options.cache.bytes = 1000;
    ck_assert_status(presto__loader_open(data.source, NULL, &options, &loader, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    ck_assert_uint_eq(each_file(NULL, NULL), 0);
    options.cache.bytes = 1 << 20;
    options.output = PRESTO_OUTPUT_RECORDS;
    ck_assert_status(presto__loader_open(data.source, NULL, &options, &loader, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    options.output = PRESTO_OUTPUT_BATCHES;
    options.cache.dir = "/proc/no/such/folder";
    ck_assert_status(presto__loader_open(data.source, NULL, &options, &loader, &err), PRESTO_ERR_IO,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.file, "/proc/no/such/folder"));
    ck_assert_ptr_null(loader);
    close_made(&data);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        streams_are_the_same_with_and_without_it,
        a_second_loader_reads_nothing_but_the_cache,
        batches_from_it_outlive_the_loader_and_the_files,
        whatever_is_damaged_in_it_the_stream_stays_the_same,
        options_that_make_no_sense_are_refused,
    };
    return presto_check_main("disk_cache", tests, sizeof tests / sizeof tests[0], 240);
}
