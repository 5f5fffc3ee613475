/* SPDX-License-Identifier: Apache-2.0 */
/* The raw source `hdf5`, on files that libhdf5 writes here: layouts, filters, numbers, orders. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "source/core/source_internal.h"

#include <hdf5.h>

#include "source/hdf5/hdf5_internal.h"

#include "hdf5_made.h"

static void check_row(const presto_batch *batch, size_t row) {
    const presto_batch_feature *signal = &batch->features[batch->main_feature];
    uint64_t first = batch->sample_numbers[row] % WINDOWS * WINDOW;
    const double *values = (const double *)signal->tensor.data + row * 2 * WINDOW;
    ck_assert_int_eq(signal->tensor.spec.dtype, PRESTO_FLOAT64);
    for (size_t i = 0; i < WINDOW; i++) {
        ck_assert_double_eq(values[i], value_of(0, first + i));
        ck_assert_double_eq(values[WINDOW + i], value_of(1, first + i));
    }
}

/* Check all rows of a stream; how often each sample came is added to `seen`. */
static void count_stream(const presto_loader_options *options, unsigned *seen) {
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    ck_assert_ok(presto__loader_open(source, NULL, options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        for (size_t i = 0; i < batch->rows; i++) {
            check_row(batch, i);
            seen[batch->sample_numbers[i]]++;
        }
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
}

static void check_whole(const char *what) {
    unsigned seen[WINDOWS] = {0};
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(presto_source_count(source), WINDOWS);
    count_stream(&options, seen);
    for (size_t i = 0; i < WINDOWS; i++)
        ck_assert_msg(seen[i] == 1, "%s: window %zu came %u times", what, i, seen[i]);
    close_source();
}

/* ---- what is read ---- */

START_TEST(windows_hold_the_values_of_every_layout_and_filter) {
    static const hsize_t chunks[] = {1, 7, 33, 100, 250, 1037, 5000};
    static const int *const filters[] = {NULL,     gzip,     shuffle_gzip, all,
                                         sum_gzip, only_sum, only_shuffle};
    set_up();
    write_file("a.h5", &contiguous, &contiguous);
    check_whole("contiguous");
    for (size_t c = 0; c < 7; c++)
        for (size_t f = 0; f < 7; f++)
            for (int latest = 0; latest < 2; latest++) {
                layout how = {.chunk = chunks[c], .filters = filters[f], .is_latest = latest == 1};
                write_file("a.h5", &how, &small_chunks);
                char what[80];
                snprintf(what, sizeof what, "chunks of %d, filters %zu, latest %d", (int)how.chunk,
                         f, latest);
                check_whole(what);
            }
    layout last_raw = {.chunk = 300, .filters = all, .is_latest = true, .is_last_raw = true};
    write_file("a.h5", &last_raw, &last_raw);
    check_whole("a last chunk without filters");
    tear_down();
}
END_TEST

START_TEST(numbers_of_every_type_become_float64) {
    const hid_t types[] = {H5T_IEEE_F64BE, H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_STD_I32LE,
                           H5T_STD_I32BE,  H5T_STD_U32LE,  H5T_STD_U32BE,  H5T_STD_I16LE,
                           H5T_STD_I16BE,  H5T_STD_U16LE,  H5T_STD_U16BE,  H5T_STD_I8LE,
                           H5T_STD_U8LE,   H5T_STD_I8BE};
    set_up();
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        layout flat = {.type = types[i]}, chunked = small_chunks;
        chunked.type = types[i];
        chunked.columns = 1;
        write_file("a.h5", &flat, &chunked);
        check_whole("a type");
    }
    tear_down();
}
END_TEST

START_TEST(negative_and_unsigned_numbers_keep_their_value) {
    static const uint8_t bytes[] = {0xff, 0x80, 0xfe, 0xff, 0xff, 0xff, 0x7f, 0x00};
    double out[8];
    presto__hdf5_widen(&(presto__hdf5_number){PRESTO_INT8, false}, bytes, 2, out);
    ck_assert_double_eq(out[0], -1);
    ck_assert_double_eq(out[1], -128);
    presto__hdf5_widen(&(presto__hdf5_number){PRESTO_UINT8, false}, bytes, 2, out);
    ck_assert_double_eq(out[1], 128);
    presto__hdf5_widen(&(presto__hdf5_number){PRESTO_INT16, true}, bytes, 1, out);
    ck_assert_double_eq(out[0], -128);
    presto__hdf5_widen(&(presto__hdf5_number){PRESTO_UINT16, true}, bytes, 1, out);
    ck_assert_double_eq(out[0], 0xff80);
    presto__hdf5_widen(&(presto__hdf5_number){PRESTO_INT32, false}, bytes + 2, 1, out);
    ck_assert_double_eq(out[0], -2);
    presto__hdf5_widen(&(presto__hdf5_number){PRESTO_UINT32, false}, bytes + 2, 1, out);
    ck_assert_double_eq(out[0], 4294967294.0);
}
END_TEST

START_TEST(unshuffling_is_right_for_every_item_and_length) {
    uint8_t in[600], out[600], wanted[600];
    for (size_t item = 1; item <= 17; item++)
        for (size_t bytes = 0; bytes < sizeof in; bytes += bytes < 40 ? 1 : 13) {
            size_t count = bytes / item;
            for (size_t i = 0; i < bytes; i++)
                wanted[i] = (uint8_t)(i * 7 + i / 256);
            memcpy(in, wanted, bytes);
            for (size_t i = 0; i < count; i++)
                for (size_t k = 0; k < item; k++)
                    in[k * count + i] = wanted[i * item + k];
            uint8_t *copy = presto_check_copy(presto_span_of(in, bytes));
            presto__hdf5_unshuffle(presto_span_of(copy, bytes), item, out);
            ck_assert_msg(bytes == 0 || memcmp(out, wanted, bytes) == 0, "items of %zu, %zu bytes",
                          item, bytes);
            free(copy);
        }
}
END_TEST

START_TEST(chunks_that_were_never_written_hold_the_fill_value) {
    set_up();
    hid_t file = make_file("a.h5", false);
    const hsize_t count = VALUES, chunk = 100, start = 500, part = 100;
    const double fill = 7.5;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &chunk);
    H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &fill);
    hid_t space = H5Screate_simple(1, &count, NULL), some = H5Screate_simple(1, &part, NULL);
    hid_t set = H5Dcreate2(file, "voltage", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    double values[100];
    for (size_t i = 0; i < 100; i++)
        values[i] = (double)i;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &part, NULL);
    ck_assert_int_ge(H5Dwrite(set, H5T_NATIVE_DOUBLE, some, space, H5P_DEFAULT, values), 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Sclose(some);
    H5Pclose(list);
    H5Fclose(file);
    ck_assert_ok(open_source(", datasets: [voltage]"), &err);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.batch_samples = WINDOWS;
    presto_loader *loader;
    presto_batch *batch;
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
    const double *got = batch->features[batch->main_feature].tensor.data;
    for (size_t i = 0; i < WINDOWS * WINDOW; i++)
        ck_assert_double_eq(got[i], i >= 500 && i < 600 ? (double)(i - 500) : 7.5);
    presto_batch_release(batch);
    presto_loader_free(loader);
    tear_down();
}
END_TEST

/* ---- orders, ranks, caches, resuming ---- */

enum { FILES = 3, SAMPLES = FILES * WINDOWS };

static void make_files(void) {
    set_up();
    write_file("1.h5", &contiguous, &small_chunks);
    write_file("2.h5", &small_chunks, &small_chunks);
    write_file("3.h5", &contiguous, &contiguous);
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(presto_source_count(source), SAMPLES);
}

START_TEST(windows_are_read_in_every_order) {
    static const presto_shuffle_kind orders[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_BUFFER,
                                                 PRESTO_SHUFFLE_FULL, PRESTO_SHUFFLE_BLOCKS};
    static const size_t caches[] = {0, 1 << 20};
    static const unsigned threads[] = {0, 1, 5};
    make_files();
    for (size_t o = 0; o < 4; o++)
        for (size_t c = 0; c < 2; c++)
            for (size_t t = 0; t < 3; t++) {
                presto_loader_options options;
                presto_loader_options_defaults(&options);
                options.batch_samples = 7;
                options.range.epochs = 2;
                options.memory.block_samples = 4;
                options.order.shuffle = orders[o];
                options.order.shuffle_window = 5;
                options.cache.bytes = caches[c];
                options.threads = threads[t];
                unsigned seen[SAMPLES] = {0};
                count_stream(&options, seen);
                for (size_t i = 0; i < SAMPLES; i++)
                    ck_assert_msg(seen[i] == 2, "sample %zu came %u times", i, seen[i]);
            }
    tear_down();
}
END_TEST

START_TEST(ranks_share_the_windows_of_a_file) {
    make_files();
    unsigned seen[SAMPLES] = {0};
    for (uint64_t rank = 0; rank < 3; rank++) {
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
        options.range.rank = rank;
        options.range.world = 3;
        count_stream(&options, seen);
    }
    for (size_t i = 0; i < SAMPLES; i++)
        ck_assert_uint_eq(seen[i], 1);
    tear_down();
}
END_TEST

START_TEST(streams_are_equal_for_any_number_of_threads) {
    make_files();
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.range.epochs = 2;
    options.batch_samples = 4;
    uint64_t samples;
    uint32_t wanted = digest_stream(source, NULL, &options, &samples, PRESTO_END, &err);
    ck_assert_uint_eq(samples, (uint64_t)2 * SAMPLES);
    for (unsigned threads = 1; threads <= 4; threads++) {
        options.threads = threads;
        ck_assert_uint_eq(digest_stream(source, NULL, &options, NULL, PRESTO_END, &err), wanted);
    }
    tear_down();
}
END_TEST

START_TEST(a_disk_cache_keeps_each_window) {
    make_files();
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.cache.bytes = 1 << 20;
    options.cache.dir = path_in(dir, "cache");
    options.range.epochs = 2;
    unsigned seen[SAMPLES] = {0};
    count_stream(&options, seen);
    for (int f = 1; f <= FILES; f++) {
        char name[16];
        snprintf(name, sizeof name, "%d.h5", f);
        ck_assert_int_eq(truncate(path_in(dir, name), 0), 0); /* what comes now is cached */
    }
    count_stream(&options, seen);
    for (size_t i = 0; i < SAMPLES; i++)
        ck_assert_uint_eq(seen[i], 4);
    tear_down();
}
END_TEST

START_TEST(a_resumed_stream_is_the_rest_of_the_first) {
    make_files();
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.batch_samples = 4;
    options.range.epochs = 2;
    presto_loader *loader;
    presto_batch *batch;
    uint32_t first[32] = {0};
    size_t count = 0;
    presto_buffer state = {0};
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        first[count++] = digest_batch(0, batch);
        presto_batch_release(batch);
        if (count == 5)
            ck_assert_ok(presto_loader_save_state(loader, &state, &err), &err);
    }
    presto_loader_free(loader);
    options.range.state = presto_buffer_span(&state);
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    size_t at = 5;
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        ck_assert_uint_eq(digest_batch(0, batch), first[at++]);
        presto_batch_release(batch);
    }
    ck_assert_uint_eq(at, count);
    presto_buffer_done(&state);
    presto_loader_free(loader);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        windows_hold_the_values_of_every_layout_and_filter,
        numbers_of_every_type_become_float64,
        negative_and_unsigned_numbers_keep_their_value,
        unshuffling_is_right_for_every_item_and_length,
        chunks_that_were_never_written_hold_the_fill_value,
        windows_are_read_in_every_order,
        ranks_share_the_windows_of_a_file,
        streams_are_equal_for_any_number_of_threads,
        a_disk_cache_keeps_each_window,
        a_resumed_stream_is_the_rest_of_the_first,
    };
    return presto_check_main("source_hdf5", tests, sizeof tests / sizeof tests[0], 120);
}
