/* SPDX-License-Identifier: Apache-2.0 */
/* The raw source `hdf5`, on files that libhdf5 writes here: layouts, filters, numbers, orders, damage. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "folder_check.h"
#include "loader_check.h"

#include "source/source_internal.h"

#if PRESTO_HAVE_HDF5
#include <hdf5.h>

#include "source/hdf5_internal.h"

/* libhdf5 forgets to free some memory of some damaged files. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5\n";
}

#define WINDOW ((size_t)100)
#define VALUES ((hsize_t)1037) /* ten windows and a rest */
#define WINDOWS ((size_t)10)

/* How a dataset is written. */
typedef struct layout {
    hid_t type;         /* in the file; 0: H5T_IEEE_F64LE */
    hsize_t chunk;      /* 0: contiguous */
    hsize_t columns;    /* 0: one dimension */
    bool is_latest;     /* newest version of the format */
    const int *filters; /* ends with 0; 1 gzip, 2 shuffle, 3 fletcher32 */
    hsize_t values;     /* 0: VALUES */
    bool is_last_raw;
} layout;

static char *dir;
static presto_source *source;
static presto_pipeline *pipeline;
static presto_error err;

/* Whole numbers of up to 7 bits, so that every type holds them. */
static double value_of(int row, uint64_t i) {
    return (double)((i * 37 + (uint64_t)row * 11 + i / 100) % 127);
}

static void write_dataset(hid_t file, const char *name, int row, const layout *how) {
    hsize_t count = how->values == 0 ? VALUES : how->values;
    const hsize_t dims[2] = {count, how->columns}, chunk[2] = {how->chunk, how->columns};
    int rank = how->columns == 0 ? 1 : 2;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (how->chunk > 0)
        H5Pset_chunk(list, rank, chunk);
    if (how->is_last_raw)
        H5Pset_chunk_opts(list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    for (const int *filter = how->filters; filter != NULL && *filter != 0; filter++) {
        if (*filter == 1)
            H5Pset_deflate(list, 4);
        else if (*filter == 2)
            H5Pset_shuffle(list);
        else
            H5Pset_fletcher32(list);
    }
    const hsize_t most[2] = {H5S_UNLIMITED, how->columns}; /* a chunk may be larger than that */
    hid_t space = H5Screate_simple(rank, dims, how->chunk > count ? most : NULL);
    hid_t set = H5Dcreate2(file, name, how->type == 0 ? H5T_IEEE_F64LE : how->type, space,
                           H5P_DEFAULT, list, H5P_DEFAULT);
    ck_assert_int_ge(set, 0);
    double *values = malloc((count + 1) * (how->columns + 1) * sizeof *values);
    for (hsize_t i = 0; i < count * (how->columns == 0 ? 1 : how->columns); i++)
        values[i] = value_of(row, i);
    ck_assert_int_ge(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    free(values);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(list);
}

static hid_t make_file(const char *name, bool is_latest) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (is_latest)
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(path_in(dir, name), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    ck_assert_int_ge(file, 0);
    H5Pclose(access);
    return file;
}

static void write_file(const char *name, const layout *voltage, const layout *current) {
    hid_t file = make_file(name, voltage->is_latest);
    write_dataset(file, "voltage", 0, voltage);
    write_dataset(file, "current", 1, current);
    H5Fclose(file);
}

static const int gzip[] = {1, 0}, shuffle_gzip[] = {2, 1, 0}, all[] = {2, 1, 3, 0},
                 sum_gzip[] = {3, 1, 0}, only_sum[] = {3, 0}, only_shuffle[] = {2, 0};
static const layout contiguous = {0};
static const layout small_chunks = {.chunk = 33, .filters = shuffle_gzip};

static presto_status open_source(const char *options) {
    char yaml[400];
    snprintf(yaml, sizeof yaml, "{name: p, source: {type: hdf5, samples: %zu%s}, steps: []}",
             WINDOW, options);
    ck_assert_ok(presto_pipeline_parse(presto_span_of_text(yaml), "p", NULL, &pipeline, &err),
                 &err);
    return presto_source_open_raw(pipeline, (const char *const *)&dir, 1, &source, &err);
}

static void set_up(void) {
    dir = presto_check_temp_dir();
    source = NULL;
}

static void close_source(void) {
    presto_source_free(source);
    presto_pipeline_free(pipeline);
    source = NULL;
    pipeline = NULL;
}

static void tear_down(void) {
    close_source();
    presto_check_remove_tree(dir);
    free(dir);
}

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
    ck_assert_ok(presto_loader_open(source, NULL, options, &loader, &err), &err);
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
    ck_assert_ok(presto_loader_open(source, NULL, &options, &loader, &err), &err);
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
    ck_assert_ok(presto_loader_open(source, NULL, &options, &loader, &err), &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        first[count++] = digest_batch(0, batch);
        presto_batch_release(batch);
        if (count == 5)
            ck_assert_ok(presto_loader_save_state(loader, &state, &err), &err);
    }
    presto_loader_free(loader);
    options.range.state = presto_buffer_span(&state);
    ck_assert_ok(presto_loader_open(source, NULL, &options, &loader, &err), &err);
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

/* ---- bad files ---- */

typedef struct skips {
    uint64_t count;
    presto_error last;
} skips;

static void note_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *why) {
    (void)epoch, (void)sample;
    ((skips *)user)->count++;
    ((skips *)user)->last = *why;
}

static uint64_t stream_with_skips(skips *noted) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.errors.skip_limit = 100;
    options.errors.on_skip = note_skip;
    options.errors.on_skip_user = noted;
    options.threads = 2;
    uint64_t samples;
    *noted = (skips){0};
    (void)digest_stream(source, NULL, &options, &samples, PRESTO_END, &err);
    return samples;
}

/* The file "2.h5" beside a good one fails alone; the message has the words. */
static void fails_alone(presto_status status, const char *words, const char *options) {
    skips noted;
    write_file("1.h5", &contiguous, &contiguous);
    ck_assert_ok(open_source(options), &err);
    ck_assert_uint_eq(presto_source_count(source), WINDOWS + 1);
    ck_assert_uint_eq(stream_with_skips(&noted), WINDOWS);
    ck_assert_uint_eq(noted.count, 1);
    ck_assert_str_eq(noted.last.file, path_in(dir, "2.h5"));
    ck_assert_msg(strstr(noted.last.message, words) != NULL, "'%s' lacks '%s'", noted.last.message,
                  words);
    ck_assert_status(noted.last.status, status, &noted.last);
    close_source();
}

START_TEST(files_that_are_not_hdf5_fail_alone) {
    set_up();
    presto_check_write_file(path_in(dir, "2.h5"), presto_span_of_text(""));
    fails_alone(PRESTO_ERR_CORRUPT, "cannot be read as HDF5", "");
    presto_check_write_file(path_in(dir, "2.h5"), presto_span_of_text("no HDF5 file at all\n"));
    fails_alone(PRESTO_ERR_CORRUPT, "file signature not found", "");
    write_file("2.h5", &contiguous, &contiguous);
    ck_assert_int_eq(truncate(path_in(dir, "2.h5"), 3000), 0);
    fails_alone(PRESTO_ERR_CORRUPT, "truncated file", "");
    tear_down();
}
END_TEST

/* A file "2.h5" whose voltage was made by the caller. */
static void finish_file(hid_t file) {
    write_dataset(file, "current", 1, &contiguous);
    H5Fclose(file);
}

START_TEST(datasets_that_do_not_fit_fail_alone) {
    const layout strings = {.type = 0, .values = VALUES - 1};
    set_up();
    hid_t file = make_file("2.h5", false);
    write_dataset(file, "U", 0, &contiguous);
    finish_file(file);
    fails_alone(PRESTO_ERR_NOT_FOUND, "(there is: U, current)", "");
    file = make_file("2.h5", false);
    write_dataset(file, "voltage", 0, &strings);
    finish_file(file);
    fails_alone(PRESTO_ERR_TYPE, "'voltage' has 1036 values, 'current' has 1037", "");
    write_file("2.h5", &(layout){.columns = 2}, &contiguous);
    fails_alone(PRESTO_ERR_TYPE, "shape [1037,2], needs [n] or [n,1]", "");
    write_file("2.h5", &(layout){.type = H5T_STD_I64LE}, &contiguous);
    fails_alone(PRESTO_ERR_TYPE, "integers of 8 bytes", "");
    write_file("2.h5", &(layout){.chunk = 1000}, &contiguous);
    fails_alone(PRESTO_ERR_LIMIT, "max-chunk-bytes (7999)", ", max-chunk-bytes: 7999");
    file = make_file("2.h5", false);
    H5Gclose(H5Gcreate2(file, "voltage", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    finish_file(file);
    fails_alone(PRESTO_ERR_NOT_FOUND, "not a dataset", "");
    tear_down();
}
END_TEST

START_TEST(values_in_other_files_are_not_read) {
    set_up();
    write_file("other.bin", &contiguous, &contiguous); /* a name that the source does not take */
    const hsize_t count = VALUES;
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t file = make_file("2.h5", false);
    H5Lcreate_external(path_in(dir, "other.bin"), "voltage", file, "voltage", H5P_DEFAULT,
                       H5P_DEFAULT);
    finish_file(file);
    fails_alone(PRESTO_ERR_NOT_FOUND, "'voltage' cannot be opened", "");

    file = make_file("2.h5", false);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(list, path_in(dir, "other.bin"), 0, VALUES * 8);
    H5Dclose(H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    finish_file(file);
    fails_alone(PRESTO_ERR_UNSUPPORTED, "values in other files", "");

    file = make_file("2.h5", true);
    list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(list, space, path_in(dir, "other.bin"), "voltage", space);
    H5Dclose(H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    finish_file(file);
    fails_alone(PRESTO_ERR_UNSUPPORTED, "virtual", "");
    H5Sclose(space);
    tear_down();
}
END_TEST

/* Does nothing; it is there when the file is written, not when it is read. */
static size_t pass(unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room,
                   void **data) {
    (void)flags, (void)count, (void)values, (void)room, (void)data;
    return bytes;
}

START_TEST(other_storage_and_filters_are_named) {
    const H5Z_class2_t own = {H5Z_CLASS_T_VERS, 300, 1, 1, "own filter", NULL, NULL, pass};
    const hsize_t count = VALUES, chunk = 100;
    set_up();
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t file = make_file("2.h5", false);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(list, H5D_COMPACT);
    H5Dclose(H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    finish_file(file);
    fails_alone(PRESTO_ERR_UNSUPPORTED, "compact", "");

    H5Zregister(&own);
    file = make_file("2.h5", false);
    list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &chunk);
    H5Pset_filter(list, 300, 0, 0, NULL);
    hid_t set = H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    double values[VALUES] = {0};
    ck_assert_int_ge(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Dclose(set);
    H5Pclose(list);
    finish_file(file);
    H5Zunregister(300);
    fails_alone(PRESTO_ERR_UNSUPPORTED, "the filter own filter (number 300)", "");

    file = make_file("2.h5", false);
    H5Dclose(
        H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    finish_file(file);
    fails_alone(PRESTO_ERR_CORRUPT, "never written", "");
    H5Sclose(space);
    tear_down();
}
END_TEST

START_TEST(absurd_lengths_are_refused_without_memory) {
    const hsize_t count = (hsize_t)1 << 50, chunk = 1;
    set_up();
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t file = make_file("2.h5", false);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &chunk);
    H5Dclose(H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
    finish_file(file);
    fails_alone(PRESTO_ERR_LIMIT, "1125899906842624 values in 1125899906842624 chunks", "");
    tear_down();
}
END_TEST

/* Where the library says that chunk 3 of the voltage stands. */
static uint64_t place_of_chunk(void) {
    hid_t file = H5Fopen(path_in(dir, "2.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "voltage", H5P_DEFAULT);
    hid_t space = H5Dget_space(set);
    haddr_t place = 0;
    ck_assert_int_ge(H5Dget_chunk_info(set, space, 3, NULL, NULL, &place, NULL), 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return place;
}

START_TEST(a_damaged_chunk_costs_its_windows_and_is_told_with_its_place) {
    const layout how = {.chunk = 100, .filters = shuffle_gzip};
    skips noted;
    set_up();
    write_file("2.h5", &how, &contiguous);
    uint64_t place = place_of_chunk();
    int fd = open(path_in(dir, "2.h5"), O_RDWR);
    uint8_t byte;
    ck_assert_int_eq(pread(fd, &byte, 1, (off_t)place + 20), 1);
    byte ^= 0x55;
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)place + 20), 1);
    close(fd);
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(stream_with_skips(&noted), WINDOWS - 1);
    ck_assert_uint_eq(noted.count, 1);
    ck_assert_str_eq(noted.last.file, path_in(dir, "2.h5"));
    ck_assert_uint_eq(noted.last.record, 3);
    ck_assert_uint_eq(noted.last.offset, place);
    ck_assert_status(noted.last.status, PRESTO_ERR_CORRUPT, &noted.last);
    tear_down();
}
END_TEST

START_TEST(a_file_that_changes_after_the_source_was_opened_is_told) {
    skips noted;
    set_up();
    write_file("2.h5", &contiguous, &contiguous);
    ck_assert_ok(open_source(""), &err);
    ck_assert_int_eq(truncate(path_in(dir, "2.h5"), 5000), 0);
    ck_assert_uint_eq(stream_with_skips(&noted), 0);
    ck_assert_uint_eq(noted.count, WINDOWS);
    ck_assert_ptr_nonnull(strstr(noted.last.message, "has changed since it was listed"));
    tear_down();
}
END_TEST

START_TEST(each_byte_of_a_file_may_be_wrong) {
    const layout how = {.chunk = 300, .filters = all};
    set_up();
    write_file("2.h5", &how, &how);
    size_t bytes;
    uint8_t *whole = presto_check_read_file(path_in(dir, "2.h5"), &bytes);
    for (size_t i = 0; i < bytes; i += i < 100 ? 1 : 53) {
        whole[i] ^= 0xff;
        presto_check_write_file(path_in(dir, "2.h5"), presto_span_of(whole, bytes));
        whole[i] ^= 0xff;
        if (open_source("") >= 0) {
            skips noted;
            (void)stream_with_skips(&noted);
        }
        close_source();
    }
    free(whole);
    tear_down();
}
END_TEST

START_TEST(the_rest_of_a_file_is_told_and_no_window_at_all_is_an_error) {
    size_t count;
    set_up();
    write_file("1.h5", &contiguous, &contiguous);
    write_file("2.h5", &contiguous, &contiguous);
    ck_assert_ok(open_source(""), &err);
    const char *const *notes = presto_source_notes(source, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(notes[0],
                     "74 values at the end of 2 files left out: less than a window of 100");
    close_source();
    ck_assert_int_eq(unlink(path_in(dir, "2.h5")), 0);
    const layout brief = {.values = WINDOW - 1};
    write_file("1.h5", &brief, &brief);
    ck_assert_status(open_source(""), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.message, "no file has a whole window of 100 values");
    tear_down();
}
END_TEST

START_TEST(the_librarys_settings_are_as_they_were) {
    H5E_auto2_t before, after;
    void *data;
    unsigned plugins_before, plugins_after;
    H5open();
    H5Eget_auto2(H5E_DEFAULT, &before, &data);
    H5PLget_loading_state(&plugins_before);
    set_up();
    presto_check_write_file(path_in(dir, "2.h5"), presto_span_of_text("nothing"));
    ck_assert_ok(open_source(""), &err);
    H5Eget_auto2(H5E_DEFAULT, &after, &data);
    H5PLget_loading_state(&plugins_after);
    ck_assert(before != NULL && before == after);
    ck_assert_uint_eq(plugins_before, plugins_after);
    ck_assert_int_eq((int)H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
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
        files_that_are_not_hdf5_fail_alone,
        datasets_that_do_not_fit_fail_alone,
        values_in_other_files_are_not_read,
        other_storage_and_filters_are_named,
        absurd_lengths_are_refused_without_memory,
        a_damaged_chunk_costs_its_windows_and_is_told_with_its_place,
        a_file_that_changes_after_the_source_was_opened_is_told,
        each_byte_of_a_file_may_be_wrong,
        the_rest_of_a_file_is_told_and_no_window_at_all_is_an_error,
        the_librarys_settings_are_as_they_were,
    };
    return presto_check_main("source_hdf5", tests, sizeof tests / sizeof tests[0], 120);
}
#else
int main(void) {
    return 0; /* built without libhdf5 */
}
#endif
