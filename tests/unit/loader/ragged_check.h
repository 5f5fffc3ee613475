/* SPDX-License-Identifier: Apache-2.0 */
/* Records of features whose rows differ, which a test can make again to compare. */
#ifndef RAGGED_CHECK_H
#define RAGGED_CHECK_H

#include "../../../records/records_internal.h"
#include "loader_check.h"

enum { MOST_VALUES = 9, FEATURES = 7, SAMPLES = 150 };

static const unsigned thread_counts[] = {0, 1, 2, 8};
enum { THREAD_COUNTS = 4 };

static char *dir;
static char path[700];

/* ---- what the samples are ---- */

/* A small generator: sample and feature give the same values wherever they are asked for. */
static inline uint64_t draw(uint64_t sample, uint64_t feature, uint64_t i) {
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

static inline void set(presto_feature *feature, const char *name, presto_encoding encoding,
                       presto_dtype dtype, const void *data) {
    *feature = (presto_feature){.name = presto_span_of_text(name), .encoding = encoding};
    feature->tensor.spec.dtype = dtype;
    feature->tensor.data = data;
}

/* As a list is parsed: one value is a scalar. */
static inline void set_count(presto_feature *feature, size_t count) {
    feature->tensor.spec.rank = count == 1 ? 0 : 1;
    feature->tensor.spec.dims[0] = (int64_t)count;
}

static inline presto_span make_string(uint8_t *text, uint64_t number, uint64_t feature) {
    size_t bytes = draw(number, feature, 0) % ((uint64_t)3 * MOST_VALUES);
    for (size_t i = 0; i < bytes; i++)
        text[i] = (uint8_t)(draw(number, feature, i + 1) % 3); /* many zeros, at the end as well */
    return presto_span_of(text, bytes);
}

static inline void make_values(uint64_t number, sample_values *v) {
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

static inline void write_samples(uint64_t count) {
    presto_error err;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/some.tfrecord", dir);
    presto__shard_writer *writer;
    presto_buffer raw = {0};
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    for (uint64_t i = 0; i < count; i++) {
        sample_values v;
        make_values(i, &v);
        raw.bytes = 0;
        ck_assert_ok(presto_example_append(&raw, &v.sample, &err), &err);
        ck_assert_ok(presto__shard_writer_append(writer, presto_buffer_span(&raw), &err), &err);
    }
    presto__shard_summary summary;
    ck_assert_ok(presto__shard_writer_finish(writer, &summary, &err), &err);
    presto__shard_writer_free(writer);
    presto_buffer_done(&raw);
}

/* The records as files of other programs, or with a dataset.json that declares them, as
 * presto-write does. Where nothing is declared, tensors of foreign records cannot be told from
 * other bytes. */
static inline opened open_samples(uint64_t count) {
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
    ck_assert_ok(presto__dataset_info_write(dir, &info, false, &err), &err);
    presto__dataset_info_free(&info);
    return open_made(dir, false);
}

static inline presto_loader_options defaults(unsigned threads, size_t batch) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = batch;
    return options;
}

static inline void tear_down(opened *data) {
    close_made(data);
    presto_check_remove_tree(dir);
    free(dir);
}

/* ---- rows back out of a batch ---- */

static inline const presto_batch_feature *find(const presto_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return &batch->features[i];
    return NULL;
}

#endif
