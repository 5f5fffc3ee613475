/* SPDX-License-Identifier: Apache-2.0 */
/* The loader over datasets made on the spot: order, batches, shapes, frames. */
#define _XOPEN_SOURCE 700
#include "../../../loader/loader_internal.h"
#include "dataset_check.h"

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
    ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
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
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
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
    ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
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

/* ---- lives ---- */

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
        ck_assert_status(presto__loader_open(data.source, NULL, &options, &loader, &err),
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
        ragged_samples_are_fine_in_batches_of_one,
        files_compressed_as_a_whole_are_read_in_order_and_in_a_buffer_only,
    };
    return presto_check_main("loader", tests, sizeof tests / sizeof tests[0], 240);
}
