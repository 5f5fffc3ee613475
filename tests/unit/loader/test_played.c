/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loader that plays a storage: all that it reads of a source goes through it, the stream stays
 * the same, and no wait outlives the stream. A storage of 1000 TB/s counts and makes nobody wait;
 * one with a latency of an hour makes a wait that only an early end ends.
 */
#define _XOPEN_SOURCE 700
#include "../../../loader/loader_internal.h"
#include "loader_check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/storage.h>

#define SAMPLES 300
#define SHARDS 3
#define VALUES 2000
/* The first time a shard is used: its beginning, its index, its records. */
#define FIRST_READS ((uint64_t)3)

static char *dir;
static presto_error err;

static void set_up(void) {
    dir = presto_check_temp_dir();
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_loader_options options_of(const char *storage, unsigned threads) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = 8;
    if (storage != NULL)
        ck_assert_ok(presto_storage_parse(storage, &options.storage, &err), &err);
    return options;
}

/* What a stream delivered, and what its reads came to. */
typedef struct streamed {
    uint32_t digest;
    presto_loader_stats stats;
    presto_verdict verdict;
} streamed;

static streamed stream(const char *path, const presto_stream_options *opening,
                       const presto_loader_options *options) {
    streamed got = {0};
    presto_stream_options mine;
    presto_stream_options_defaults(&mine);
    if (opening != NULL)
        mine = *opening;
    mine.loader = options;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    ck_assert_ok(presto_loader_open_paths(&path, 1, &mine, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        got.digest = digest_batch(got.digest, batch);
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_get_stats(loader, &got.stats);
    presto_loader_verdict(loader, &got.verdict);
    presto_loader_free(loader);
    return got;
}

START_TEST(the_stream_is_the_same_and_its_reads_are_counted) {
    set_up();
    make_dataset(dir, &(made){SAMPLES, SHARDS, VALUES, UINT64_MAX, "zstd:1", PRESTO_FILE_PLAIN});
    for (int map = 0; map < 2; map++)
        for (unsigned threads = 0; threads < 4; threads++) {
            presto_stream_options opening;
            presto_stream_options_defaults(&opening);
            opening.map = map;
            presto_loader_options plain = options_of(NULL, threads);
            presto_loader_options played = options_of("bandwidth=1000TB/s", threads);
            streamed a = stream(dir, &opening, &plain), b = stream(dir, &opening, &played);
            ck_assert_uint_eq(a.digest, b.digest);
            ck_assert_uint_eq(a.stats.storage_reads, 0);
            ck_assert_uint_eq(a.stats.storage_wait_ns, 0);
            ck_assert_uint_eq(b.stats.storage_wait_ns, 0);
            ck_assert_uint_eq(b.stats.read_ahead_samples, 0);
            if (threads <= 1) /* from start to end, one shard after the other */
                ck_assert_uint_eq(b.stats.storage_reads, FIRST_READS * SHARDS);
            else
                ck_assert_uint_ge(b.stats.storage_reads, FIRST_READS * SHARDS);
        }
    tear_down();
}
END_TEST

START_TEST(shuffled_records_are_reads_of_their_own) {
    set_up();
    make_dataset(dir, &(made){SAMPLES, SHARDS, VALUES, UINT64_MAX, NULL, PRESTO_FILE_PLAIN});
    presto_loader_options options = options_of("bandwidth=1000TB/s", 2);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    streamed got = stream(dir, NULL, &options);
    ck_assert_uint_gt(got.stats.storage_reads, SAMPLES * 8 / 10); /* few are neighbours */
    ck_assert_uint_le(got.stats.storage_reads, SAMPLES + FIRST_READS * SHARDS);
    ck_assert_uint_eq(got.stats.read_ahead_samples, 0);
    tear_down();
}
END_TEST

static void make_files(size_t count) {
    char path[700];
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%zu.a", dir, i);
        presto_check_write_file(path, presto_span_of_text("content"));
    }
}

static const char files_pipeline[] = "name: t\n"
                                     "source: {type: files, match: ['*.a']}\n"
                                     "steps:\n"
                                     "  - {step: read-file, yields: concatenated}\n";

START_TEST(each_raw_file_is_a_read) {
    set_up();
    char pipeline[700];
    make_files(50);
    snprintf(pipeline, sizeof pipeline, "%s/p.yaml", dir);
    presto_check_write_file(pipeline, presto_span_of_text(files_pipeline));
    presto_stream_options opening;
    presto_stream_options_defaults(&opening);
    opening.pipeline = pipeline;
    presto_loader_options plain = options_of(NULL, 2);
    presto_loader_options played = options_of("bandwidth=1000TB/s", 2);
    streamed a = stream(dir, &opening, &plain), b = stream(dir, &opening, &played);
    ck_assert_uint_eq(a.digest, b.digest);
    ck_assert_uint_eq(b.stats.storage_reads, 50);
    tear_down();
}
END_TEST

/* Files without an index, and whole files that are compressed. */
START_TEST(walks_and_compressed_files_go_through_it) {
    static const presto_file_compression kinds[] = {PRESTO_FILE_PLAIN, PRESTO_FILE_GZIP};
    static const char *const names[] = {"data-00000-of-00001.tfrecord",
                                        "data-00000-of-00001.tfrecord.gz"};
    for (size_t k = 0; k < 2; k++) {
        set_up();
        char path[700];
        make_dataset(dir, &(made){SAMPLES, 1, VALUES, UINT64_MAX, NULL, kinds[k]});
        snprintf(path, sizeof path, "%s/%s.index", dir, names[k]);
        ck_assert_int_eq(unlink(path), 0);
        snprintf(path, sizeof path, "%s/%s", dir, names[k]);
        presto_stream_options opening;
        presto_stream_options_defaults(&opening);
        opening.count_later = true;
        presto_loader_options plain = options_of(NULL, 2);
        presto_loader_options played = options_of("bandwidth=1000TB/s", 2);
        streamed a = stream(path, &opening, &plain), b = stream(path, &opening, &played);
        ck_assert_uint_eq(a.digest, b.digest);
        ck_assert_uint_ge(b.stats.storage_reads, 1);
        tear_down();
    }
}
END_TEST

START_TEST(a_memory_cache_saves_its_reads) {
    set_up();
    make_dataset(dir, &(made){SAMPLES, SHARDS, VALUES, UINT64_MAX, NULL, PRESTO_FILE_PLAIN});
    presto_loader_options options = options_of("bandwidth=1000TB/s", 1);
    options.range.epochs = 3;
    ck_assert_uint_eq(stream(dir, NULL, &options).stats.storage_reads, (FIRST_READS + 2) * SHARDS);
    options.cache.bytes = (size_t)64 << 20;
    ck_assert_uint_eq(stream(dir, NULL, &options).stats.storage_reads, FIRST_READS * SHARDS);
    tear_down();
}
END_TEST

START_TEST(a_disk_cache_is_not_of_the_storage) {
    set_up();
    char cache[700];
    make_dataset(dir, &(made){SAMPLES, SHARDS, VALUES, UINT64_MAX, NULL, PRESTO_FILE_PLAIN});
    snprintf(cache, sizeof cache, "%s/cache", dir);
    presto_loader_options options = options_of("bandwidth=1000TB/s", 1);
    options.cache.bytes = (size_t)64 << 20;
    options.cache.dir = cache;
    ck_assert_uint_eq(stream(dir, NULL, &options).stats.storage_reads, FIRST_READS * SHARDS);
    streamed again = stream(dir, NULL, &options);
    ck_assert_uint_eq(again.stats.cached_samples, SAMPLES);
    ck_assert_uint_eq(again.stats.storage_reads, 0);
    tear_down();
}
END_TEST

/* Slow enough for the storage to be the limit on any machine, fast enough for a test. */
START_TEST(the_verdict_names_the_storage) {
    set_up();
    make_dataset(dir, &(made){20, 1, VALUES, UINT64_MAX, NULL, PRESTO_FILE_PLAIN});
    presto_loader_options options = options_of("latency=20ms", 2);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    streamed got = stream(dir, NULL, &options);
    ck_assert_int_eq(got.verdict.stage, PRESTO_STAGE_READ);
    ck_assert_msg(strncmp(got.verdict.text, "storage (", 9) == 0, "%s", got.verdict.text);
    ck_assert_uint_gt(got.stats.storage_wait_ns, got.stats.storage_reads * 10000000);
    ck_assert_uint_le(got.stats.storage_wait_ns, got.stats.read_ns);
    tear_down();
}
END_TEST

/* ---- early ends ---- */

static presto_loader *open_hour(const opened *data, presto_loader_options *options) {
    presto_loader *loader;
    ck_assert_ok(presto_storage_parse("latency=3600s", &options->storage, &err), &err);
    ck_assert_ok(presto__loader_open(data->source, NULL, options, &loader, &err), &err);
    return loader;
}

START_TEST(freeing_ends_a_wait) {
    set_up();
    make_dataset(dir, &(made){SAMPLES, SHARDS, VALUES, UINT64_MAX, NULL, PRESTO_FILE_PLAIN});
    opened data = open_made(dir, false);
    for (unsigned threads = 1; threads < 5; threads++) {
        presto_loader_options options = options_of(NULL, threads);
        presto_loader_free(open_hour(&data, &options));
    }
    close_made(&data);
    tear_down();
}
END_TEST

static bool stop_at_third(void *user) {
    return atomic_fetch_add((atomic_uint *)user, 1) >= 2;
}

START_TEST(stopping_ends_a_wait) {
    set_up();
    make_dataset(dir, &(made){SAMPLES, SHARDS, VALUES, UINT64_MAX, NULL, PRESTO_FILE_PLAIN});
    opened data = open_made(dir, false);
    for (unsigned threads = 0; threads < 3; threads++) {
        atomic_uint asked = 0;
        presto_batch *batch;
        presto_loader_options options = options_of(NULL, threads);
        options.should_stop = stop_at_third;
        options.should_stop_user = &asked;
        presto_loader *loader = open_hour(&data, &options);
        ck_assert_status(presto_loader_next(loader, &batch, &err), PRESTO_ERR_STOPPED, &err);
        presto_loader_free(loader);
    }
    close_made(&data);
    tear_down();
}
END_TEST

/* Opening reads dataset.json, which takes an hour. */
START_TEST(stopping_ends_a_wait_while_the_stream_opens) {
    set_up();
    make_dataset(dir, &(made){SAMPLES, SHARDS, VALUES, UINT64_MAX, NULL, PRESTO_FILE_PLAIN});
    atomic_uint asked = 0;
    presto_loader_options options = options_of("latency=3600s", 2);
    options.should_stop = stop_at_third;
    options.should_stop_user = &asked;
    presto_stream_options opening;
    presto_stream_options_defaults(&opening);
    opening.loader = &options;
    presto_loader *loader;
    presto_batch *batch;
    const char *path = dir;
    ck_assert_ok(presto_loader_open_paths(&path, 1, &opening, &loader, &err), &err);
    ck_assert_status(presto_loader_next(loader, &batch, &err), PRESTO_ERR_STOPPED, &err);
    presto_loader_free(loader);
    tear_down();
}
END_TEST

START_TEST(what_is_no_storage_is_refused) {
    set_up();
    make_dataset(dir, &(made){1, 1, 1, UINT64_MAX, NULL, PRESTO_FILE_PLAIN});
    opened data = open_made(dir, false);
    presto_loader_options options = options_of(NULL, 1);
    presto_loader *loader;
    options.storage.bytes_per_s = -1;
    ck_assert_status(presto__loader_open(data.source, NULL, &options, &loader, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    options.storage = (presto_storage){.reserved = {1, 0, 0}};
    ck_assert_status(presto__loader_open(data.source, NULL, &options, &loader, &err),
                     PRESTO_ERR_UNSUPPORTED, &err);
    close_made(&data);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_stream_is_the_same_and_its_reads_are_counted,
        shuffled_records_are_reads_of_their_own,
        each_raw_file_is_a_read,
        walks_and_compressed_files_go_through_it,
        a_memory_cache_saves_its_reads,
        a_disk_cache_is_not_of_the_storage,
        the_verdict_names_the_storage,
        freeing_ends_a_wait,
        stopping_ends_a_wait,
        stopping_ends_a_wait_while_the_stream_opens,
        what_is_no_storage_is_refused,
    };
    return presto_check_main("played", tests, sizeof tests / sizeof tests[0], 120);
}
