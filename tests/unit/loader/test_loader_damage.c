/* SPDX-License-Identifier: Apache-2.0 */
/* The loader over damaged datasets: failures in their place, skipped samples, budgets. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "dataset_check.h"

/* ---- damage ---- */

/* Flip a byte in the payload of these records of a dataset of one shard. */
static void damage(const uint64_t *records, size_t count) {
    char path[700];
    snprintf(path, sizeof path, "%s/data-00000-of-00001.tfrecord", dir);
    size_t bytes;
    uint8_t *content = presto_check_read_file(path, &bytes);
    size_t frame = 0;
    for (uint64_t record = 0; frame < bytes; record++) {
        uint64_t length;
        memcpy(&length, content + frame, sizeof length);
        for (size_t i = 0; i < count; i++)
            if (records[i] == record)
                content[frame + PRESTO_FRAME_HEADER_BYTES + length / 2] ^= 1;
        frame += length + PRESTO_FRAME_OVERHEAD_BYTES;
    }
    presto_check_write_file(path, presto_span_of(content, bytes));
    free(content);
}

static const made single = {.samples = 300, .shards = 1, .values = 20, .odd = UINT64_MAX};

START_TEST(a_failure_comes_in_its_place_after_all_before_it) {
    dir = presto_check_temp_dir();
    make_dataset(dir, &single);
    uint64_t bad[] = {123};
    damage(bad, 1);
    opened data = open_made(dir, false);
    for (int output = PRESTO_OUTPUT_BATCHES; output <= PRESTO_OUTPUT_COUNT; output++)
        for (size_t t = 0; t < THREAD_COUNTS; t++)
            for (size_t batch = 1; batch < 200; batch = batch * 3 + 4) {
                presto_loader_options options = defaults(thread_counts[t], batch);
                options.output = (presto_output_kind)output;
                options.memory.block_samples = 13;
                presto_error err;
                uint64_t samples;
                digest_stream(data.source, NULL, &options, &samples, PRESTO_ERR_CORRUPT, &err);
                ck_assert_uint_eq(samples, 123);
                ck_assert_uint_eq(err.record, 123);
                ck_assert_str_eq(err.file, presto_dataset_shard_path(data.dataset, 0));
                ck_assert_uint_ne(err.offset, PRESTO_NO_OFFSET);
            }
    tear_down(&data);
}
END_TEST

START_TEST(a_batch_that_a_failure_cuts_is_left_out_and_not_counted) {
    dir = presto_check_temp_dir();
    make_dataset(dir, &single);
    uint64_t bad[] = {123};
    damage(bad, 1);
    opened data = open_made(dir, false);
    for (int counting = 0; counting < 2; counting++) {
        presto_loader_options options = defaults(2, 20);
        presto_loader *loader;
        presto_batch *batch;
        presto_loader_stats stats;
        presto_error err;
        uint64_t samples = 0;
        options.output = counting ? PRESTO_OUTPUT_COUNT : PRESTO_OUTPUT_BATCHES;
        options.range.drop_last = true;
        options.memory.block_samples = 13;
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
            samples += batch->rows;
            presto_batch_release(batch);
        }
        presto_loader_get_stats(loader, &stats);
        presto_loader_free(loader);
        ck_assert_uint_eq(samples, 120);
        ck_assert_uint_eq(stats.samples, 120);
        ck_assert_uint_eq(stats.batches, 6);
    }
    tear_down(&data);
}
END_TEST

typedef struct skips {
    uint64_t samples[64];
    size_t count;
} skips;

static void note_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *err) {
    ck_assert_uint_eq(epoch, 0);
    skips *noted = user;
    ck_assert_uint_lt(noted->count, 64);
    ck_assert_uint_eq(err->record, sample);
    noted->samples[noted->count++] = sample;
}

START_TEST(skipped_samples_leave_batches_shorter_and_are_told_in_order) {
    dir = presto_check_temp_dir();
    make_dataset(dir, &single);
    uint64_t bad[] = {0, 1, 9, 10, 150, 297, 298, 299};
    damage(bad, 8);
    opened data = open_made(dir, false);
    for (int output = PRESTO_OUTPUT_BATCHES; output <= PRESTO_OUTPUT_COUNT; output++)
        for (size_t t = 0; t < THREAD_COUNTS; t++)
            for (size_t batch = 1; batch < 400; batch = batch * 3 + 4) {
                skips noted = {.count = 0};
                presto_loader_options options = defaults(thread_counts[t], batch);
                options.output = (presto_output_kind)output;
                options.memory.block_samples = 13;
                options.errors.policy = PRESTO_ON_ERROR_SKIP;
                options.errors.on_skip = note_skip;
                options.errors.on_skip_user = &noted;
                presto_loader *loader;
                presto_batch *got;
                presto_error err;
                presto_status status;
                uint64_t expected = 0;
                size_t next_bad = 0;
                ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
                while ((status = presto_loader_next(loader, &got, &err)) == PRESTO_OK) {
                    for (size_t row = 0; row < got->rows; row++) {
                        while (next_bad < 8 && bad[next_bad] == expected) {
                            expected++;
                            next_bad++;
                        }
                        ck_assert_uint_eq(got->sample_numbers[row], expected);
                        if (output == PRESTO_OUTPUT_BATCHES) {
                            const float *x = got->features[2].tensor.data;
                            ck_assert(x[row * 20 + 3] == made_value(expected, 3));
                            char key[32];
                            snprintf(key, sizeof key, "sample-%" PRIu64, expected);
                            ck_assert(
                                presto_span_is(presto_batch_string(&got->features[0], row), key));
                        }
                        expected++;
                    }
                    presto_batch_release(got);
                }
                ck_assert_status(status, PRESTO_END, &err);
                ck_assert_uint_eq(expected, 297);
                ck_assert_uint_eq(noted.count, 8);
                ck_assert_mem_eq(noted.samples, bad, sizeof bad);
                presto_loader_free(loader);
            }
    tear_down(&data);
}
END_TEST

START_TEST(budgets_of_skipped_samples_are_kept_to) {
    dir = presto_check_temp_dir();
    make_dataset(dir, &single);
    uint64_t bad[] = {10, 20, 30, 40};
    damage(bad, 4);
    opened data = open_made(dir, false);
    static const struct {
        uint64_t limit;
        double fraction;
        presto_status wanted;
        uint64_t samples;
    } cases[] = {{4, 1, PRESTO_END, 296},
                 {3, 1, PRESTO_ERR_CORRUPT, 37},
                 {0, 1, PRESTO_ERR_CORRUPT, 10},
                 {UINT64_MAX, 0.0134, PRESTO_END, 296},
                 {UINT64_MAX, 0.0133, PRESTO_ERR_CORRUPT, 296}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t t = 0; t < THREAD_COUNTS; t++) {
            presto_loader_options options = defaults(thread_counts[t], 16);
            options.errors.policy = PRESTO_ON_ERROR_SKIP;
            options.errors.skip_limit = cases[i].limit;
            options.errors.skip_fraction = cases[i].fraction;
            presto_error err;
            uint64_t samples;
            digest_stream(data.source, NULL, &options, &samples, cases[i].wanted, &err);
            ck_assert_uint_eq(samples, cases[i].samples);
        }
    tear_down(&data);
}
END_TEST

START_TEST(a_shard_that_has_gone_fails_where_it_would_come) {
    made how = plain;
    opened data = set_up(&how);
    char path[700];
    snprintf(path, sizeof path, "%s/data-00001-of-00003.tfrecord", dir);
    ck_assert_int_eq(unlink(path), 0);
    presto_error err;
    presto_loader_options options = defaults(2, 10);
    uint64_t samples;
    presto_loader *loader;
    presto_batch *batch;
    ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
    presto_status status;
    for (samples = 0; (status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK;) {
        samples += batch->rows;
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    ck_assert_int_lt(status, 0);
    ck_assert_str_eq(err.file, path);
    ck_assert_uint_eq(samples, 333);
    /* This is no damage, so leaving samples out must not hide it. */
    for (size_t t = 0; t < THREAD_COUNTS; t++) {
        options = defaults(thread_counts[t], 10);
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
        digest_stream(data.source, NULL, &options, &samples, PRESTO_ERR_NOT_FOUND, &err);
        ck_assert_str_eq(err.file, path);
        ck_assert_uint_eq(samples, 333);
    }
    tear_down(&data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_failure_comes_in_its_place_after_all_before_it,
        a_batch_that_a_failure_cuts_is_left_out_and_not_counted,
        skipped_samples_leave_batches_shorter_and_are_told_in_order,
        budgets_of_skipped_samples_are_kept_to,
        a_shard_that_has_gone_fails_where_it_would_come,
    };
    return presto_check_main("loader_damage", tests, sizeof tests / sizeof tests[0], 240);
}
