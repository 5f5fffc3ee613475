/* SPDX-License-Identifier: Apache-2.0 */
/* Features whose rows differ, of every kind, in batches of all sizes made by any number of
 * threads; features that were not asked for; padding. Rows are compared with the records from
 * which they were made. */
#include "loader_check.h"

enum { MOST_VALUES = 9, FEATURES = 7, SAMPLES = 150 };

static const unsigned thread_counts[] = {0, 1, 2, 8};
enum { THREAD_COUNTS = 4 };

static char *dir;
static char path[700];

/* ---- what the samples are ---- */

/* A small generator: sample and feature give the same values wherever they are asked for. */
static uint64_t draw(uint64_t sample, uint64_t feature, uint64_t i) {
    uint64_t x = presto_check_seed() ^ (sample * 1000003 + feature * 7919 + i * 104729 + 1);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* One sample, in memory of its own. By name: bytes, fixed, floats, ints, maybe, matrix, words. */
typedef struct sample_values {
    presto_feature features[FEATURES];
    presto_sample sample;
    uint8_t text[4][3 * MOST_VALUES];
    presto_span strings[1 + MOST_VALUES];
    float floats[MOST_VALUES], fixed[2];
    int64_t ints[MOST_VALUES];
    uint16_t matrix[MOST_VALUES * MOST_VALUES];
} sample_values;

static void set(presto_feature *feature, const char *name, presto_encoding encoding,
                presto_dtype dtype, const void *data) {
    *feature = (presto_feature){.name = presto_span_of_text(name), .encoding = encoding};
    feature->tensor.spec.dtype = dtype;
    feature->tensor.data = data;
}

/* As a list is parsed: one value is a scalar. */
static void set_count(presto_feature *feature, size_t count) {
    feature->tensor.spec.rank = count == 1 ? 0 : 1;
    feature->tensor.spec.dims[0] = (int64_t)count;
}

static presto_span make_string(uint8_t *text, uint64_t number, uint64_t feature) {
    size_t bytes = draw(number, feature, 0) % ((uint64_t)3 * MOST_VALUES);
    for (size_t i = 0; i < bytes; i++)
        text[i] = (uint8_t)(draw(number, feature, i + 1) % 3); /* many zeros, at the end as well */
    return presto_span_of(text, bytes);
}

static void make_values(uint64_t number, sample_values *v) {
    memset(v, 0, sizeof *v);
    size_t ints = draw(number, 1, 0) % MOST_VALUES, floats = draw(number, 2, 0) % MOST_VALUES;
    size_t rows = draw(number, 3, 0) % MOST_VALUES, columns = draw(number, 4, 0) % MOST_VALUES;
    size_t words = draw(number, 5, 0) % 4;
    for (size_t i = 0; i < MOST_VALUES; i++) {
        v->ints[i] = (int64_t)draw(number, 6, i);
        v->floats[i] = (float)(draw(number, 7, i) % 1000);
    }
    for (size_t i = 0; i < rows * columns; i++)
        v->matrix[i] = (uint16_t)draw(number, 8, i);
    v->fixed[0] = (float)number;
    v->strings[0] = make_string(v->text[0], number, 9);
    for (size_t i = 0; i < words; i++)
        v->strings[1 + i] = make_string(v->text[1 + i], number, 10 + i);
    presto_feature *f = v->features;
    set(f++, "bytes", PRESTO_ENCODE_BYTES, PRESTO_STRING, &v->strings[0]);
    set(f, "fixed", PRESTO_ENCODE_FLOAT, PRESTO_FLOAT32, v->fixed);
    set_count(f++, 2);
    set(f, "floats", PRESTO_ENCODE_FLOAT, PRESTO_FLOAT32, v->floats);
    set_count(f++, floats);
    set(f, "ints", PRESTO_ENCODE_INT64, PRESTO_INT64, v->ints);
    set_count(f++, ints);
    set(f, "matrix", PRESTO_ENCODE_TENSOR, PRESTO_UINT16, v->matrix);
    f->tensor.spec.rank = 2;
    f->tensor.spec.dims[0] = (int64_t)rows;
    f++->tensor.spec.dims[1] = (int64_t)columns;
    if (number % 11 == 5) /* most samples lack it */
        set(f++, "maybe", PRESTO_ENCODE_INT64, PRESTO_INT64, v->ints);
    set(f, "words", PRESTO_ENCODE_BYTES, PRESTO_STRING, &v->strings[1]);
    set_count(f++, words);
    v->sample =
        (presto_sample){.features = v->features, .feature_count = (size_t)(f - v->features)};
}

/* ---- a dataset of them ---- */

static void write_samples(uint64_t count) {
    presto_error err;
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.sync = false;
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/some.tfrecord", dir);
    presto_shard_writer *writer;
    presto_buffer raw = {0};
    ck_assert_ok(presto_shard_writer_open(path, &options, &writer, &err), &err);
    for (uint64_t i = 0; i < count; i++) {
        sample_values v;
        make_values(i, &v);
        raw.bytes = 0;
        ck_assert_ok(presto_example_append(&raw, &v.sample, &err), &err);
        ck_assert_ok(presto_shard_writer_append(writer, presto_buffer_span(&raw), &err), &err);
    }
    presto_shard_summary summary;
    ck_assert_ok(presto_shard_writer_finish(writer, &summary, &err), &err);
    presto_shard_writer_free(writer);
    presto_buffer_done(&raw);
}

/* The records as files of other programs, or with a dataset.json that declares them, as
 * presto-write does. Where nothing is declared, tensors of foreign records cannot be told from
 * other bytes. */
static opened open_samples(uint64_t count) {
    static const struct {
        const char *name;
        presto_encoding encoding;
        presto_tensor_spec spec;
    } declared[] = {
        {"bytes", PRESTO_ENCODE_BYTES, {.dtype = PRESTO_STRING}},
        {"fixed", PRESTO_ENCODE_FLOAT, {.dtype = PRESTO_FLOAT32, .rank = 1, .dims = {2}}},
        {"floats", PRESTO_ENCODE_FLOAT, {.dtype = PRESTO_FLOAT32, .rank = -1}},
        {"matrix", PRESTO_ENCODE_TENSOR, {.dtype = PRESTO_UINT16, .rank = 2, .dims = {-1, -1}}},
    };
    presto_error err;
    presto_dataset_info info = {.tool_version = strdup("test"), .codec = strdup("none")};
    info.main_feature = strdup("matrix");
    info.feature_count = sizeof declared / sizeof declared[0];
    info.features = calloc(info.feature_count, sizeof *info.features);
    for (size_t i = 0; i < info.feature_count; i++)
        info.features[i] =
            (presto_feature_spec){strdup(declared[i].name), declared[i].encoding, declared[i].spec};
    size_t bytes;
    uint8_t *content = presto_check_read_file(path, &bytes);
    info.shards = calloc(1, sizeof *info.shards);
    info.shard_count = 1;
    info.shards[0] = (presto_dataset_shard){.file = strdup("some.tfrecord"),
                                            .records = count,
                                            .stored_bytes = bytes,
                                            .raw_bytes = bytes,
                                            .crc32c = presto_crc32c(0, content, bytes)};
    free(content);
    ck_assert_ok(presto_dataset_info_write(dir, &info, false, &err), &err);
    presto_dataset_info_done(&info);
    return open_made(dir, false);
}

static presto_loader_options defaults(unsigned threads, size_t batch) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = batch;
    return options;
}

static void tear_down(opened *data) {
    close_made(data);
    presto_check_remove_tree(dir);
    free(dir);
}

/* ---- rows back out of a batch ---- */

static const presto_batch_feature *find(const presto_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return &batch->features[i];
    return NULL;
}

static void check_strings(const presto_batch_feature *feature, size_t row,
                          const presto_tensor *wanted) {
    size_t first = row, end = row + 1;
    if (feature->row_offsets != NULL) {
        first = (size_t)feature->row_offsets[row];
        end = (size_t)feature->row_offsets[row + 1];
    }
    ck_assert_uint_eq(end - first, presto_spec_elements(&wanted->spec));
    for (size_t i = first; i < end; i++)
        ck_assert(presto_span_equal(presto_batch_string(feature, i), wanted->strings[i - first]));
}

static void check_numbers(const presto_batch_feature *feature, size_t row,
                          const presto_tensor *wanted) {
    const uint8_t *values = feature->tensor.data;
    size_t bytes = presto_tensor_bytes(wanted), width = presto_dtype_bytes(wanted->spec.dtype);
    ck_assert_int_eq(feature->tensor.spec.dtype, wanted->spec.dtype);
    if (feature->layout == PRESTO_LAYOUT_DENSE) {
        values += row * bytes;
        ck_assert_int_eq(feature->tensor.spec.rank, wanted->spec.rank + 1);
        for (int i = 0; i < wanted->spec.rank; i++)
            ck_assert_int_eq(feature->tensor.spec.dims[i + 1], wanted->spec.dims[i]);
    } else {
        values += (size_t)feature->offsets[row] * width;
        ck_assert_uint_eq((size_t)(feature->offsets[row + 1] - feature->offsets[row]) * width,
                          bytes);
    }
    for (size_t i = 0; feature->shapes != NULL && i < feature->shape_rank; i++)
        ck_assert_int_eq(feature->shapes[row * feature->shape_rank + i],
                         (int)i < wanted->spec.rank ? wanted->spec.dims[i] : -1);
    if (bytes > 0)
        ck_assert_mem_eq(values, wanted->data, bytes);
}

static uint64_t value_bytes(const presto_tensor *tensor) {
    if (tensor->spec.dtype != PRESTO_STRING)
        return presto_tensor_bytes(tensor);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < presto_spec_elements(&tensor->spec); i++)
        bytes += tensor->strings[i].bytes;
    return bytes;
}

/* All rows of all features of the batch, or of the one called `only`: the bytes of their values. */
static uint64_t check_batch(const presto_batch *batch, const char *only) {
    uint64_t bytes = 0;
    for (size_t row = 0; row < batch->rows; row++) {
        sample_values v;
        make_values(batch->sample_numbers[row], &v);
        for (size_t i = 0; i < v.sample.feature_count; i++) {
            const presto_feature *wanted = &v.features[i];
            char name[16];
            snprintf(name, sizeof name, "%.*s", (int)wanted->name.bytes,
                     (const char *)wanted->name.data);
            const presto_batch_feature *feature = find(batch, name);
            if (only != NULL && strcmp(only, name) != 0) {
                ck_assert_ptr_null(feature);
                continue;
            }
            ck_assert_ptr_nonnull(feature);
            if (wanted->tensor.spec.dtype == PRESTO_STRING)
                check_strings(feature, row, &wanted->tensor);
            else
                check_numbers(feature, row, &wanted->tensor);
            bytes += value_bytes(&wanted->tensor);
        }
    }
    return bytes;
}

static uint32_t check_stream(const opened *data, const presto_loader_options *options,
                             const char *only) {
    presto_error err;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    uint32_t digest = 0;
    uint64_t rows = 0, bytes = 0;
    ck_assert_ok(presto_loader_open(data->source, NULL, options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        bytes += check_batch(batch, only);
        digest = digest_batch(digest, batch);
        rows += batch->rows;
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    ck_assert_uint_eq(rows, SAMPLES * options->range.epochs);
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    ck_assert_uint_eq(stats.delivered_bytes, bytes);
    presto_loader_free(loader);
    return digest;
}

START_TEST(every_kind_of_row_comes_back_whatever_threads_batches_and_blocks) {
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (size_t batch = 1; batch <= (size_t)2 * SAMPLES; batch = batch * 3 + batch % 2)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            uint32_t wanted = 0;
            for (size_t t = 0; t < THREAD_COUNTS; t++)
                for (size_t block = 3; block < 200; block *= 8) {
                    presto_loader_options options = defaults(thread_counts[t], batch);
                    options.memory.block_samples = block;
                    options.range.epochs = 2;
                    options.order.shuffle = shuffle ? PRESTO_SHUFFLE_FULL : PRESTO_SHUFFLE_NONE;
                    options.unaligned_views = block == 3;
                    uint32_t digest = check_stream(&data, &options, NULL);
                    wanted = wanted == 0 ? digest : wanted;
                    ck_assert_uint_eq(digest, wanted);
                }
        }
    tear_down(&data);
}
END_TEST

START_TEST(caches_keep_rows_of_any_shape) {
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    char cache[700];
    snprintf(cache, sizeof cache, "%s/cache", dir);
    for (size_t batch = 1; batch < SAMPLES; batch = batch * 6 + 1) {
        presto_loader_options options = defaults(2, batch);
        options.range.epochs = 2;
        uint32_t wanted = check_stream(&data, &options, NULL);
        options.cache.bytes = (size_t)1 << 20;
        ck_assert_uint_eq(check_stream(&data, &options, NULL), wanted);
        options.cache.dir = cache;
        ck_assert_uint_eq(check_stream(&data, &options, NULL), wanted);
        ck_assert_uint_eq(check_stream(&data, &options, NULL), wanted);
    }
    tear_down(&data);
}
END_TEST

START_TEST(declared_lengths_and_rows_decide_the_layout_and_nothing_else) {
    static const struct {
        const char *name;
        presto_layout layout, alone; /* in batches of many, and of one */
    } wanted[] = {{"bytes", PRESTO_LAYOUT_BYTES, PRESTO_LAYOUT_BYTES},
                  {"fixed", PRESTO_LAYOUT_DENSE, PRESTO_LAYOUT_DENSE},
                  {"floats", PRESTO_LAYOUT_RAGGED, PRESTO_LAYOUT_DENSE},
                  {"matrix", PRESTO_LAYOUT_RAGGED, PRESTO_LAYOUT_DENSE}};
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (size_t size = 1; size <= 50; size += 7) {
        presto_loader_options options = defaults(2, size);
        presto_error err;
        presto_loader *loader;
        presto_batch *batch;
        ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
            for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
                const presto_batch_feature *feature = find(batch, wanted[i].name);
                ck_assert_int_eq(feature->layout, size == 1 ? wanted[i].alone : wanted[i].layout);
                ck_assert(feature->layout == PRESTO_LAYOUT_DENSE || feature->offsets[0] == 0);
                ck_assert_uint_eq((uintptr_t)feature->tensor.data % 64, 0);
            }
            ck_assert_str_eq(batch->features[batch->main_feature].name, "matrix");
            ck_assert_ptr_null(find(batch, "bytes")->row_offsets);
            presto_batch_release(batch);
        }
        presto_loader_free(loader);
    }
    tear_down(&data);
}
END_TEST

START_TEST(what_was_not_asked_for_is_not_parsed) {
    static const char *const all[] = {"bytes",  "fixed", "floats", "ints",
                                      "matrix", "maybe", "words"};
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (size_t i = 0; i < FEATURES; i++)
        for (size_t t = 0; t < THREAD_COUNTS; t++) {
            presto_loader_options options = defaults(thread_counts[t], t % 2 == 0 ? 1 : 20);
            options.features = &all[i];
            options.feature_count = 1;
            options.cache.bytes = t == 1 ? (size_t)1 << 20 : 0;
            check_stream(&data, &options, all[i]);
        }
    tear_down(&data);
}
END_TEST

/* ---- what does not go together ---- */

/* Sample `odd` has floats where the others have int64. */
static opened write_conflict(uint64_t odd) {
    presto_error err;
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.sync = false;
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/conflict.tfrecord", dir);
    presto_shard_writer *writer;
    presto_buffer raw = {0};
    ck_assert_ok(presto_shard_writer_open(path, &options, &writer, &err), &err);
    for (uint64_t i = 0; i < 100; i++) {
        int64_t values[2] = {(int64_t)i, 0};
        presto_feature features[2];
        set(&features[0], "label", PRESTO_ENCODE_INT64, PRESTO_INT64, values);
        set(&features[1], "x", PRESTO_ENCODE_INT64, PRESTO_INT64, values);
        if (i == odd)
            set(&features[1], "x", PRESTO_ENCODE_FLOAT, PRESTO_FLOAT32, values);
        presto_sample sample = {.features = features, .feature_count = 2};
        raw.bytes = 0;
        ck_assert_ok(presto_example_append(&raw, &sample, &err), &err);
        ck_assert_ok(presto_shard_writer_append(writer, presto_buffer_span(&raw), &err), &err);
    }
    presto_shard_summary summary;
    ck_assert_ok(presto_shard_writer_finish(writer, &summary, &err), &err);
    presto_shard_writer_free(writer);
    presto_buffer_done(&raw);
    return open_made(path, false);
}

START_TEST(another_type_is_named_whatever_the_threads_unless_nobody_asked_for_it) {
    for (uint64_t odd = 0; odd < 100; odd += 33) {
        opened data = write_conflict(odd);
        char first_message[PRESTO_ERROR_MESSAGE_BYTES] = "";
        uint64_t named = odd % 10 == 0 ? odd + 1 : odd; /* what follows the first of its batch */
        for (size_t t = 0; t < THREAD_COUNTS; t++)
            for (size_t block = 1; block < 40; block += 6) {
                presto_loader_options options = defaults(thread_counts[t], 10);
                options.memory.block_samples = block;
                presto_error err;
                uint64_t samples;
                digest_stream(data.source, NULL, &options, &samples, PRESTO_ERR_RAGGED, &err);
                ck_assert_uint_eq(samples, odd / 10 * 10);
                ck_assert_uint_eq(err.record, named);
                if (first_message[0] == '\0')
                    memcpy(first_message, err.message, sizeof first_message);
                ck_assert_str_eq(err.message, first_message);
                ck_assert_ptr_nonnull(strstr(err.message, "\"x\""));
                ck_assert_ptr_nonnull(strstr(err.message, "float32"));
                ck_assert_ptr_nonnull(strstr(err.message, "int64"));
                static const char *const label[] = {"label"};
                options.features = label;
                options.feature_count = 1;
                digest_stream(data.source, NULL, &options, &samples, PRESTO_END, &err);
                ck_assert_uint_eq(samples, 100);
            }
        tear_down(&data);
    }
}
END_TEST

/* ---- padding ---- */

static void check_padded(const presto_batch *batch, uint64_t length) {
    const presto_batch_feature *ints = find(batch, "ints"), *bytes = find(batch, "bytes");
    size_t longest_ints = 0, longest_bytes = 0;
    for (size_t row = 0; row < batch->rows; row++) {
        sample_values v;
        make_values(batch->sample_numbers[row], &v);
        size_t count = draw(batch->sample_numbers[row], 1, 0) % MOST_VALUES;
        longest_ints = count > longest_ints ? count : longest_ints;
        longest_bytes = v.strings[0].bytes > longest_bytes ? v.strings[0].bytes : longest_bytes;
    }
    if (length != 0)
        longest_ints = length;
    ck_assert_int_eq(ints->layout, PRESTO_LAYOUT_DENSE);
    ck_assert_int_eq(bytes->layout, PRESTO_LAYOUT_DENSE);
    ck_assert_int_eq(ints->tensor.spec.rank, 2);
    ck_assert_int_eq(ints->tensor.spec.dims[1], (int64_t)longest_ints);
    ck_assert_int_eq(bytes->tensor.spec.dims[1], (int64_t)longest_bytes);
    for (size_t row = 0; row < batch->rows; row++) {
        uint64_t number = batch->sample_numbers[row];
        sample_values v;
        make_values(number, &v);
        size_t count = draw(number, 1, 0) % MOST_VALUES;
        for (size_t i = 0; i < longest_ints; i++)
            ck_assert_int_eq(((const int64_t *)ints->tensor.data)[row * longest_ints + i],
                             i < count ? v.ints[i] : -100);
        for (size_t i = 0; i < longest_bytes; i++)
            ck_assert_uint_eq(((const uint8_t *)bytes->tensor.data)[row * longest_bytes + i],
                              i < v.strings[0].bytes ? v.text[0][i] : 255);
    }
}

START_TEST(padded_features_are_dense) {
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (uint64_t length = 0; length < 20; length += 10)
        for (size_t t = 0; t < THREAD_COUNTS; t++) {
            presto_pad pads[] = {{"ints", -100, length}, {"bytes", 255, 0}, {"nothing", 1, 0}};
            presto_loader_options options = defaults(thread_counts[t], 16);
            options.memory.block_samples = 5;
            options.pads = pads;
            options.pad_count = 3;
            presto_error err;
            presto_loader *loader;
            presto_batch *batch;
            ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
            presto_status status;
            while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
                check_padded(batch, length);
                presto_batch_release(batch);
            }
            ck_assert_status(status, PRESTO_END, &err);
            presto_loader_free(loader);
        }
    tear_down(&data);
}
END_TEST

START_TEST(what_cannot_be_padded_is_named) {
    static const struct {
        presto_pad pad;
        presto_status status;
        const char *part;
    } cases[] = {{{"matrix", 0, 0}, PRESTO_ERR_RAGGED, "first dimension"},
                 {{"words", 0, 0}, PRESTO_ERR_RAGGED, "number of strings"},
                 {{"ints", 0.5, 0}, PRESTO_ERR_TYPE, "int64"},
                 {{"bytes", 256, 0}, PRESTO_ERR_TYPE, "uint8"},
                 {{"ints", 0, 3}, PRESTO_ERR_LIMIT, "more than the 3"}};
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t t = 0; t < THREAD_COUNTS; t++) {
            presto_loader_options options = defaults(thread_counts[t], 64);
            options.pads = &cases[i].pad;
            options.pad_count = 1;
            presto_error err;
            digest_stream(data.source, NULL, &options, NULL, cases[i].status, &err);
            ck_assert_ptr_nonnull(strstr(err.message, cases[i].pad.feature));
            ck_assert_ptr_nonnull(strstr(err.message, cases[i].part));
        }
    tear_down(&data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_kind_of_row_comes_back_whatever_threads_batches_and_blocks,
        caches_keep_rows_of_any_shape,
        declared_lengths_and_rows_decide_the_layout_and_nothing_else,
        what_was_not_asked_for_is_not_parsed,
        another_type_is_named_whatever_the_threads_unless_nobody_asked_for_it,
        padded_features_are_dense,
        what_cannot_be_padded_is_named,
    };
    return presto_check_main("ragged", tests, sizeof tests / sizeof tests[0], 300);
}
