/* SPDX-License-Identifier: Apache-2.0 */
/* The loader over datasets made on the spot: order, batches, shapes, faults, memory, ends. */
#define _XOPEN_SOURCE 700
#include "loader_check.h"

#include <pthread.h>
#include <unistd.h>

static char *dir;

static opened set_up(const made *how) {
    dir = presto_check_temp_dir();
    make_dataset(dir, how);
    return open_made(dir, false);
}

static void tear_down(opened *data) {
    close_made(data);
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_loader_options defaults(unsigned threads, size_t batch) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = batch;
    return options;
}

static const unsigned thread_counts[] = {0, 1, 2, 5, 8};
#define THREAD_COUNTS (sizeof thread_counts / sizeof thread_counts[0])

static const made plain = {.samples = 1000, .shards = 3, .values = 50, .odd = UINT64_MAX};

/* ---- order ---- */

START_TEST(the_stream_is_the_same_for_any_number_of_threads) {
    opened data = set_up(&plain);
    static const size_t batches[] = {1, 7, 64, 300, 5000};
    for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
        for (size_t b = 0; b < 5; b++) {
            uint32_t wanted = 0;
            for (size_t t = 0; t < THREAD_COUNTS; t++) {
                presto_error err;
                presto_loader_options options = defaults(thread_counts[t], batches[b]);
                options.order.shuffle = (presto_shuffle_kind)shuffle;
                options.order.shuffle_window = 37;
                options.range.epochs = 2;
                options.memory.block_samples = 16;
                uint64_t samples;
                uint32_t digest =
                    digest_stream(data.source, NULL, &options, &samples, PRESTO_END, &err);
                ck_assert_uint_eq(samples, 2000);
                if (t == 0)
                    wanted = digest;
                ck_assert_uint_eq(digest, wanted);
            }
        }
    tear_down(&data);
}
END_TEST

START_TEST(the_stream_does_not_depend_on_blocks_or_memory) {
    opened data = set_up(&plain);
    uint32_t wanted = 0;
    static const size_t limits[][3] = {{1 << 20, 1024, 256 << 20}, {300, 1024, 256 << 20},
                                       {1 << 20, 1, 256 << 20},    {5000, 10, 1},
                                       {1 << 20, 1024, 100000},    {7000, 33, 50000}};
    for (size_t i = 0; i < 6; i++) {
        presto_error err;
        presto_loader_options options = defaults(2, 24);
        options.memory.block_bytes = limits[i][0];
        options.memory.block_samples = limits[i][1];
        options.memory.prefetch_bytes = limits[i][2];
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
        uint32_t digest = digest_stream(data.source, NULL, &options, NULL, PRESTO_END, &err);
        if (i == 0)
            wanted = digest;
        ck_assert_uint_eq(digest, wanted);
    }
    tear_down(&data);
}
END_TEST

START_TEST(batches_hold_what_was_stored_and_are_aligned) {
    opened data = set_up(&plain);
    presto_error err;
    presto_loader_options options = defaults(2, 32);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    presto_loader *loader;
    presto_batch *batch;
    ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
    uint64_t position = 0;
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        ck_assert_uint_eq(batch->first, position);
        ck_assert_uint_eq(batch->rows, position + 32 <= 1000 ? 32 : 1000 % 32);
        position += batch->rows;
        ck_assert_uint_eq(batch->feature_count, 3);
        ck_assert_uint_eq(batch->main_feature, 2);
        const presto_tensor *x = &batch->features[2].tensor;
        ck_assert_int_eq(x->spec.rank, 2);
        ck_assert_int_eq(x->spec.dims[0], (int64_t)batch->rows);
        ck_assert_int_eq(x->spec.dims[1], 50);
        ck_assert_uint_eq((uintptr_t)x->data % 64, 0);
        ck_assert_uint_eq((uintptr_t)batch->features[1].tensor.data % 64, 0);
        for (size_t row = 0; row < batch->rows; row++) {
            uint64_t number = batch->sample_numbers[row];
            char key[32];
            snprintf(key, sizeof key, "sample-%" PRIu64, number);
            ck_assert(presto_span_is(presto_batch_string(&batch->features[0], row), key));
            ck_assert_int_eq(((const int64_t *)batch->features[1].tensor.data)[row],
                             (int64_t)(number % 7));
            for (size_t i = 0; i < 50; i++)
                ck_assert(((const float *)x->data)[row * 50 + i] == made_value(number, i));
        }
        presto_batch_release(batch);
    }
    ck_assert_uint_eq(position, 1000);
    presto_loader_free(loader);
    tear_down(&data);
}
END_TEST

START_TEST(large_samples_one_by_one_are_aligned_too) {
    /* Read directly to where they are shown, except those whose place was not known yet, or in a
     * mapping. */
    enum { values = 70001 };
    for (int map = 0; map < 2; map++) {
        made how = {.samples = 30, .shards = 3, .values = values, .odd = 17};
        dir = presto_check_temp_dir();
        make_dataset(dir, &how);
        opened data = open_made(dir, map);
        presto_error err;
        presto_loader_options options = defaults(2, 1);
        options.range.epochs = 2;
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
        presto_loader *loader;
        presto_batch *batch, *kept = NULL;
        ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
        size_t batches = 0;
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
            uint64_t number = batch->sample_numbers[0];
            const presto_tensor *x = &batch->features[2].tensor;
            ck_assert_int_eq(x->spec.dims[1], values + (number == 17));
            ck_assert_uint_eq((uintptr_t)x->data % 64, 0);
            ck_assert_uint_eq((uintptr_t)batch->features[1].tensor.data % 64, 0);
            ck_assert_int_eq(*(const int64_t *)batch->features[1].tensor.data,
                             (int64_t)(number % 7));
            for (size_t i = 0; i < values; i++)
                ck_assert(((const float *)x->data)[i] == made_value(number, i));
            presto_batch_release(kept);
            kept = batch;
            batches++;
        }
        ck_assert_uint_eq(batches, 60);
        presto_loader_free(loader);
        presto_batch_release(kept);
        tear_down(&data);
    }
}
END_TEST

START_TEST(views_show_the_same_as_copies) {
    static const char *const codecs[] = {"none", "zlib"};
    for (size_t c = 0; c < 2; c++)
        for (int map = 0; map < 2; map++) {
            made how = plain;
            how.codec = codecs[c];
            dir = presto_check_temp_dir();
            make_dataset(dir, &how);
            opened data = open_made(dir, map);
            presto_error err;
            presto_loader_options options = defaults(2, 1);
            options.order.shuffle = PRESTO_SHUFFLE_FULL;
            uint32_t wanted = digest_stream(data.source, NULL, &options, NULL, PRESTO_END, &err);
            options.unaligned_views = true;
            ck_assert_uint_eq(wanted,
                              digest_stream(data.source, NULL, &options, NULL, PRESTO_END, &err));
            tear_down(&data);
        }
}
END_TEST

START_TEST(records_pass_through_unchanged_and_can_be_recoded) {
    static const char *const codecs[] = {"none", "zlib", "gzip"};
    uint32_t wanted = 0;
    for (size_t c = 0; c < 3; c++) {
        made how = plain;
        how.codec = codecs[c];
        opened data = set_up(&how);
        presto_error err;
        for (size_t t = 0; t < THREAD_COUNTS; t++) {
            presto_loader_options options = defaults(thread_counts[t], 100);
            options.output = PRESTO_OUTPUT_RECORDS;
            uint64_t samples;
            uint32_t digest =
                digest_stream(data.source, NULL, &options, &samples, PRESTO_END, &err);
            ck_assert_uint_eq(samples, 1000);
            if (c == 0 && t == 0)
                wanted = digest;
            ck_assert_uint_eq(digest, wanted);
        }
        tear_down(&data);
    }
}
END_TEST

START_TEST(frames_in_the_stored_codec_are_the_stored_frames) {
    made how = plain;
    how.codec = "zlib";
    how.shards = 1;
    opened data = set_up(&how);
    presto_error err;
    presto_loader_options options = defaults(2, 0);
    options.output = PRESTO_OUTPUT_RECORDS;
    presto_codec_spec zlib;
    ck_assert_ok(presto_codec_parse("zlib", &zlib, &err), &err);
    options.codec = &zlib;
    presto_loader *loader;
    presto_batch *batch;
    presto_buffer all = {0};
    uint64_t raw_bytes = 0;
    ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        ck_assert_ok(presto_buffer_append(&all, batch->frames, &err), &err);
        raw_bytes += batch->raw_bytes;
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    size_t bytes;
    uint8_t *stored = presto_check_read_file(presto_dataset_shard_path(data.dataset, 0), &bytes);
    ck_assert_uint_eq(bytes, all.bytes);
    ck_assert_mem_eq(stored, all.data, bytes);
    ck_assert_uint_eq(raw_bytes, presto_dataset_get_info(data.dataset)->shards[0].raw_bytes);
    free(stored);
    presto_buffer_done(&all);
    tear_down(&data);
}
END_TEST

static void check_once(presto_source *source, presto_loader_options *options, uint64_t count) {
    uint64_t *seen = calloc(count, sizeof *seen);
    for (options->range.rank = 0; options->range.rank < options->range.world;
         options->range.rank++) {
        presto_loader *loader;
        presto_batch *batch;
        presto_error err;
        ck_assert_ok(presto_loader_open(source, NULL, options, &loader, &err), &err);
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
            for (size_t i = 0; i < batch->rows; i++)
                seen[batch->sample_numbers[i]]++;
            presto_batch_release(batch);
        }
        presto_loader_free(loader);
    }
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++) {
        ck_assert_uint_ge(seen[i], 1);
        total += seen[i];
    }
    ck_assert_uint_eq(total, (count + options->range.world - 1) / options->range.world *
                                 options->range.world);
    free(seen);
}

START_TEST(every_sample_comes_once_an_epoch_over_all_ranks_in_either_order) {
    opened data = set_up(&plain);
    for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
        for (uint64_t world = 1; world < 8; world += 3)
            for (int completion = 0; completion < 2; completion++) {
                presto_loader_options options = defaults(2, 20);
                options.order.shuffle = (presto_shuffle_kind)shuffle;
                options.order.shuffle_window = 100;
                options.range.world = world;
                options.order.completion = completion;
                options.memory.block_samples = 32;
                check_once(data.source, &options, 1000);
            }
    tear_down(&data);
}
END_TEST

START_TEST(a_stream_started_later_is_the_rest_of_the_whole_one) {
    opened data = set_up(&plain);
    presto_error err;
    for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
        for (uint64_t cut = 0; cut <= 2000; cut += 125) {
            presto_loader_options options = defaults(2, 25);
            options.order.shuffle = (presto_shuffle_kind)shuffle;
            options.order.shuffle_window = 60;
            options.range.epochs = 2;
            presto_loader *loader;
            presto_batch *batch;
            uint32_t wanted = 0;
            uint64_t samples = 0;
            ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
            while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
                if (samples >= cut)
                    wanted = digest_batch(wanted, batch);
                samples += batch->rows;
                presto_batch_release(batch);
            }
            presto_loader_free(loader);
            options.range.first_epoch = cut / 1000;
            options.range.epochs = 2 - cut / 1000;
            options.range.first_sample = cut % 1000;
            if (options.range.epochs == 0)
                continue;
            ck_assert_uint_eq(wanted,
                              digest_stream(data.source, NULL, &options, NULL, PRESTO_END, &err));
        }
    tear_down(&data);
}
END_TEST

/* The digest of the stream from batch `skip` on, and the state before it. */
static uint32_t rest_of(presto_source *source, const presto_loader_options *options, size_t skip,
                        presto_buffer *state) {
    presto_loader *loader;
    presto_batch *batch;
    presto_error err;
    uint32_t digest = 0;
    ck_assert_ok(presto_loader_open(source, NULL, options, &loader, &err), &err);
    for (size_t i = 0;; i++) {
        if (i == skip)
            ck_assert_ok(presto_loader_save_state(loader, state, &err), &err);
        if (presto_loader_next(loader, &batch, &err) != PRESTO_OK)
            break;
        if (i >= skip)
            digest = digest_batch(digest, batch);
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    return digest;
}

START_TEST(a_saved_state_resumes_to_the_rest_with_shuffle_ranks_and_epochs) {
    opened data = set_up(&plain);
    for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
        for (size_t skip = 0; skip <= 60; skip += 5) {
            presto_error err;
            presto_loader_options options = defaults(2, 16);
            options.order.shuffle = (presto_shuffle_kind)shuffle;
            options.order.shuffle_window = 90;
            options.range.epochs = 3;
            options.range.first_epoch = 5;
            options.range.world = 3;
            options.range.rank = 1;
            options.order.seed = UINT64_MAX;
            presto_buffer state = {0};
            uint32_t wanted = rest_of(data.source, &options, skip, &state);
            presto_loader_options resumed = options;
            resumed.threads = 5;
            resumed.memory.block_samples = 7;
            ck_assert_ok(
                presto_loader_load_state(presto_buffer_span(&state), data.source, &resumed, &err),
                &err);
            ck_assert_uint_eq(wanted,
                              digest_stream(data.source, NULL, &resumed, NULL, PRESTO_END, &err));
            resumed = options;
            resumed.order.seed = 4;
            ck_assert_status(
                presto_loader_load_state(presto_buffer_span(&state), data.source, &resumed, &err),
                PRESTO_ERR_ARGUMENT, &err);
            presto_buffer_done(&state);
        }
    tear_down(&data);
}
END_TEST

START_TEST(a_state_at_the_end_of_an_epoch_goes_on_in_another_world) {
    opened data = set_up(&plain);
    presto_error err;
    presto_loader_options options = defaults(2, 100);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.range.epochs = 2;
    presto_buffer state = {0};
    rest_of(data.source, &options, 10, &state); /* ten batches of a hundred: one epoch */
    options.range.world = 7;
    options.range.rank = 3;
    ck_assert_ok(presto_loader_load_state(presto_buffer_span(&state), data.source, &options, &err),
                 &err);
    ck_assert_uint_eq(options.range.first_epoch, 1);
    ck_assert_uint_eq(options.range.first_sample, 0);
    ck_assert_uint_eq(options.range.epochs, 1);
    options.range.first_epoch = 0;
    options.range.epochs = 1;
    ck_assert_status(
        presto_loader_load_state(presto_buffer_span(&state), data.source, &options, &err),
        PRESTO_END, &err);
    static const char *const wrong[] = {"", "{}", "[1]", "{\"presto_state\": 2}", "\xff"};
    for (size_t i = 0; i < 5; i++)
        ck_assert_status(
            presto_loader_load_state(presto_span_of_text(wrong[i]), data.source, &options, &err),
            PRESTO_ERR_CORRUPT, &err);
    presto_buffer_done(&state);
    tear_down(&data);
}
END_TEST

START_TEST(limits_epochs_and_incomplete_batches_are_kept_to) {
    opened data = set_up(&plain);
    static const struct {
        uint64_t limit, epochs;
        bool drop;
        uint64_t samples, batches;
    } cases[] = {
        {0, 1, false, 1000, 16}, {0, 1, true, 960, 15},      {0, 3, true, 2880, 45},
        {64, 1, false, 64, 1},   {65, 1, false, 65, 2},      {65, 1, true, 64, 1},
        {1, 1, true, 0, 0},      {1001, 2, false, 1001, 17}, {5000, 2, false, 2000, 32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int counting = 0; counting < 2; counting++) {
            presto_loader_options options = defaults(2, 64);
            presto_error err;
            options.range.limit_samples = cases[i].limit;
            options.range.epochs = cases[i].epochs;
            options.range.drop_last = cases[i].drop;
            presto_loader *loader;
            presto_batch *batch;
            uint64_t samples = 0, batches = 0;
            ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
            while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
                samples += batch->rows;
                batches++;
                presto_batch_release(batch);
            }
            presto_loader_stats stats;
            presto_loader_get_stats(loader, &stats);
            ck_assert_uint_eq(stats.samples, samples);
            ck_assert_uint_eq(stats.batches, batches);
            presto_loader_free(loader);
            ck_assert_uint_eq(samples, cases[i].samples);
            ck_assert_uint_eq(batches, cases[i].batches);
        }
    tear_down(&data);
}
END_TEST

/* ---- shapes ---- */

START_TEST(ragged_samples_are_fine_in_batches_of_one) {
    made how = {.samples = 100, .shards = 2, .values = 4, .odd = 50};
    opened data = set_up(&how);
    presto_error err;
    for (int views = 0; views < 2; views++) {
        presto_loader_options options = defaults(2, 1);
        options.unaligned_views = views;
        uint64_t samples;
        digest_stream(data.source, NULL, &options, &samples, PRESTO_END, &err);
        ck_assert_uint_eq(samples, 100);
    }
    tear_down(&data);
}
END_TEST

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
                ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
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
    ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
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

/* ---- lives ---- */

START_TEST(a_loader_can_be_freed_at_any_moment) {
    opened data = set_up(&plain);
    for (size_t t = 0; t < THREAD_COUNTS; t++)
        for (size_t taken = 0; taken < 40; taken += 3) {
            presto_loader_options options = defaults(thread_counts[t], 8);
            options.memory.block_samples = 20;
            options.memory.prefetch_bytes = 60000;
            presto_loader *loader;
            presto_error err;
            ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
            for (size_t i = 0; i < taken; i++) {
                presto_batch *batch;
                ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
                presto_batch_release(batch);
            }
            presto_loader_free(loader);
        }
    presto_loader_free(NULL);
    presto_batch_release(NULL);
    tear_down(&data);
}
END_TEST

static void *release_all(void *argument) {
    presto_batch **batches = argument;
    for (size_t i = 0; batches[i] != NULL; i++)
        presto_batch_release(batches[i]);
    return NULL;
}

START_TEST(batches_outlive_loader_source_and_dataset) {
    for (int views = 0; views < 2; views++)
        for (int map = 0; map < 2; map++) {
            dir = presto_check_temp_dir();
            make_dataset(dir, &plain);
            opened data = open_made(dir, map);
            presto_loader_options options = defaults(2, 1);
            options.unaligned_views = views;
            presto_loader *loader;
            presto_error err;
            presto_batch *batches[1001] = {NULL};
            ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
            for (size_t i = 0; i < 700; i++)
                ck_assert_ok(presto_loader_next(loader, &batches[i], &err), &err);
            presto_loader_free(loader);
            tear_down(&data);
            for (size_t i = 0; i < 700; i++) {
                float value;
                memcpy(&value, (const uint8_t *)batches[i]->features[2].tensor.data + 4, 4);
                ck_assert(value == made_value(i, 1));
            }
            pthread_t thread;
            ck_assert_int_eq(pthread_create(&thread, NULL, release_all, batches), 0);
            pthread_join(thread, NULL);
        }
}
END_TEST

START_TEST(a_consumer_that_keeps_everything_is_not_left_waiting) {
    opened data = set_up(&plain);
    presto_loader_options options = defaults(2, 4);
    options.memory.prefetch_bytes = 20000;
    presto_loader *loader;
    presto_error err;
    presto_batch *batches[251] = {NULL};
    ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
    for (size_t i = 0; i < 250; i++)
        ck_assert_ok(presto_loader_next(loader, &batches[i], &err), &err);
    ck_assert_status(presto_loader_next(loader, &batches[250], &err), PRESTO_END, &err);
    batches[250] = NULL;
    release_all(batches);
    presto_loader_free(loader);
    tear_down(&data);
}
END_TEST

START_TEST(what_is_in_flight_stays_below_the_limit) {
    made how = {.samples = 2000, .shards = 2, .values = 1000, .odd = UINT64_MAX};
    opened data = set_up(&how);
    static const size_t sizes[] = {1, 16, 100};
    for (size_t s = 0; s < 3; s++)
        for (size_t t = 0; t < THREAD_COUNTS; t++)
            for (int output = PRESTO_OUTPUT_BATCHES; output <= PRESTO_OUTPUT_RECORDS; output++) {
                presto_loader_options options = defaults(thread_counts[t], sizes[s]);
                options.output = (presto_output_kind)output;
                options.memory.prefetch_bytes = (size_t)3 << 20;
                presto_loader *loader;
                presto_error err;
                presto_batch *batch;
                ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
                while (presto_loader_next(loader, &batch, &err) == PRESTO_OK)
                    presto_batch_release(batch);
                presto_loader_stats stats;
                presto_loader_get_stats(loader, &stats);
                presto_loader_free(loader);
                ck_assert_uint_gt(stats.peak_queued_bytes, 0);
                ck_assert_msg(stats.peak_queued_bytes <= options.memory.prefetch_bytes,
                              "%u threads, batches of %zu, output %d: %zu bytes", thread_counts[t],
                              sizes[s], output, stats.peak_queued_bytes);
                ck_assert_uint_eq(stats.samples, 2000);
                ck_assert_uint_eq(stats.skipped, 0);
            }
    tear_down(&data);
}
END_TEST

START_TEST(options_that_contradict_each_other_are_refused) {
    opened data = set_up(&plain);
    for (int i = 0; i < 7; i++) {
        presto_loader_options options = defaults(1, 1);
        if (i == 0)
            options.batch_samples = 0;
        if (i == 1)
            options.range.epochs = 0;
        if (i == 2)
            options.range.world = 0;
        if (i == 3)
            options.range.rank = 1;
        if (i == 4)
            options.order.shuffle = PRESTO_SHUFFLE_BUFFER;
        if (i == 5)
            options.errors.skip_fraction = 1.5;
        if (i == 6)
            options.range.first_sample = 1001;
        presto_loader *loader;
        presto_error err;
        ck_assert_status(presto_loader_open(data.source, NULL, &options, &loader, &err),
                         PRESTO_ERR_ARGUMENT, &err);
        ck_assert_uint_gt(strlen(err.message), 10);
    }
    tear_down(&data);
}
END_TEST

START_TEST(files_compressed_as_a_whole_are_read_in_order_and_in_a_buffer_only) {
    made how = plain;
    how.file_compression = PRESTO_FILE_GZIP;
    opened data = set_up(&how);
    uint32_t wanted[2] = {0, 0};
    for (size_t t = 0; t < 3; t++)
        for (int k = 0; k < 2; k++) {
            presto_error err;
            presto_loader_options options = defaults(thread_counts[t], 10);
            options.order.shuffle = k == 0 ? PRESTO_SHUFFLE_NONE : PRESTO_SHUFFLE_BUFFER;
            options.order.shuffle_window = 100;
            options.memory.block_samples = 100;
            uint64_t samples;
            uint32_t digest =
                digest_stream(data.source, NULL, &options, &samples, PRESTO_END, &err);
            ck_assert_uint_eq(samples, 1000);
            if (t == 0)
                wanted[k] = digest;
            ck_assert_uint_eq(digest, wanted[k]);
        }
    for (int k = 0; k < 2; k++) {
        presto_loader *loader;
        presto_error err;
        presto_loader_options options = defaults(1, 1);
        options.order.shuffle = k == 0 ? PRESTO_SHUFFLE_FULL : PRESTO_SHUFFLE_BLOCKS;
        options.order.shuffle_window = 10;
        ck_assert_status(presto_loader_open(data.source, NULL, &options, &loader, &err),
                         PRESTO_ERR_ARGUMENT, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "gzip"));
    }
    tear_down(&data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_stream_is_the_same_for_any_number_of_threads,
        the_stream_does_not_depend_on_blocks_or_memory,
        batches_hold_what_was_stored_and_are_aligned,
        large_samples_one_by_one_are_aligned_too,
        views_show_the_same_as_copies,
        records_pass_through_unchanged_and_can_be_recoded,
        frames_in_the_stored_codec_are_the_stored_frames,
        every_sample_comes_once_an_epoch_over_all_ranks_in_either_order,
        a_stream_started_later_is_the_rest_of_the_whole_one,
        a_saved_state_resumes_to_the_rest_with_shuffle_ranks_and_epochs,
        a_state_at_the_end_of_an_epoch_goes_on_in_another_world,
        limits_epochs_and_incomplete_batches_are_kept_to,
        ragged_samples_are_fine_in_batches_of_one,
        a_failure_comes_in_its_place_after_all_before_it,
        skipped_samples_leave_batches_shorter_and_are_told_in_order,
        budgets_of_skipped_samples_are_kept_to,
        a_shard_that_has_gone_fails_where_it_would_come,
        a_loader_can_be_freed_at_any_moment,
        batches_outlive_loader_source_and_dataset,
        a_consumer_that_keeps_everything_is_not_left_waiting,
        what_is_in_flight_stays_below_the_limit,
        options_that_contradict_each_other_are_refused,
        files_compressed_as_a_whole_are_read_in_order_and_in_a_buffer_only,
    };
    return presto_check_main("loader", tests, sizeof tests / sizeof tests[0], 240);
}
