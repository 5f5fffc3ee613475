/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets made on the spot, and whole streams as one digest. */
#ifndef LOADER_CHECK_H
#define LOADER_CHECK_H

#include "../../../loader/loader_internal.h"
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <inttypes.h>
#include <stdio.h>

#include <presto/convert.h>
#include <presto/crc32c.h>
#include <presto/example.h>
#include <presto/stream.h>

/** How a made dataset looks. Sample i holds: "key" = text, "label" = i % 7, "x" = float32 tensor.
 */
typedef struct made {
    uint64_t samples;
    size_t shards;
    size_t values;     /* of x */
    uint64_t odd;      /* this sample has one value more; UINT64_MAX: none */
    const char *codec; /* NULL: none */
    presto_file_compression file_compression;
} made;

static inline float made_value(uint64_t sample, size_t i) {
    return (float)(sample * 31 + i * 7 % 1000) / 8;
}

static inline void append_made(presto__shard_writer *writer, presto_codec *codec, const made *how,
                               uint64_t number, uint64_t *raw_bytes) {
    size_t values = how->values + (number == how->odd);
    float *x = malloc((values + 1) * sizeof *x);
    for (size_t i = 0; i < values; i++)
        x[i] = made_value(number, i);
    char key[32];
    snprintf(key, sizeof key, "sample-%" PRIu64, number);
    presto_span key_span = presto_span_of_text(key);
    int64_t label = (int64_t)(number % 7);
    presto_feature features[3] = {
        {.name = presto_span_of_text("key"), .encoding = PRESTO_ENCODE_BYTES},
        {.name = presto_span_of_text("label"), .encoding = PRESTO_ENCODE_INT64},
        {.name = presto_span_of_text("x"), .encoding = PRESTO_ENCODE_TENSOR},
    };
    features[0].tensor.spec = (presto_tensor_spec){.dtype = PRESTO_STRING};
    features[0].tensor.strings = &key_span;
    features[1].tensor.spec = (presto_tensor_spec){.dtype = PRESTO_INT64};
    features[1].tensor.data = &label;
    features[2].tensor.spec =
        (presto_tensor_spec){.dtype = PRESTO_FLOAT32, .rank = 1, .dims = {(int64_t)values}};
    features[2].tensor.data = x;
    presto_sample sample = {.features = features, .feature_count = 3};
    presto_buffer raw = {0}, stored = {0};
    presto_error err;
    ck_assert_ok(presto_example_append(&raw, &sample, &err), &err);
    ck_assert_ok(presto__codec_compress(codec, presto_buffer_span(&raw), &stored, &err), &err);
    ck_assert_ok(presto__shard_writer_append(writer, presto_buffer_span(&stored), &err), &err);
    *raw_bytes += raw.bytes;
    presto_buffer_done(&raw);
    presto_buffer_done(&stored);
    free(x);
}

/** Write the dataset into `dir`. */
static inline void make_dataset(const char *dir, const made *how) {
    static const char *const endings[] = {"", ".gz", ".deflate"};
    presto_error err;
    presto_codec_spec spec;
    presto_codec *codec;
    char text[PRESTO_CODEC_TEXT_BYTES];
    ck_assert_ok(presto_codec_parse(how->codec == NULL ? "none" : how->codec, &spec, &err), &err);
    ck_assert_ok(presto_codec_new(&spec, &codec, &err), &err);
    presto_dataset_info info = {0};
    info.shards = calloc(how->shards, sizeof *info.shards);
    info.shard_count = how->shards;
    for (size_t s = 0; s < how->shards; s++) {
        presto__shard_writer_options options;
        presto__shard_writer_options_defaults(&options);
        options.sync = false;
        options.compression = how->file_compression;
        char name[64], path[700];
        snprintf(name, sizeof name, "data-%05zu-of-%05zu.tfrecord%s", s, how->shards,
                 endings[how->file_compression]);
        snprintf(path, sizeof path, "%s/%s", dir, name);
        presto__shard_writer *writer;
        ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
        uint64_t raw_bytes = 0;
        for (uint64_t i = how->samples * s / how->shards; i < how->samples * (s + 1) / how->shards;
             i++)
            append_made(writer, codec, how, i, &raw_bytes);
        presto__shard_summary summary;
        ck_assert_ok(presto__shard_writer_finish(writer, &summary, &err), &err);
        presto__shard_writer_free(writer);
        info.shards[s] = (presto_dataset_shard){.file = strdup(name),
                                                .records = summary.records,
                                                .stored_bytes = summary.stored_bytes,
                                                .raw_bytes = raw_bytes,
                                                .crc32c = summary.crc32c};
    }
    presto_codec_free(codec);
    info.features = calloc(3, sizeof *info.features);
    info.feature_count = 3;
    info.features[0] = (presto_feature_spec){
        .name = strdup("key"), .encoding = PRESTO_ENCODE_BYTES, .spec = {.dtype = PRESTO_STRING}};
    info.features[1] = (presto_feature_spec){
        .name = strdup("label"), .encoding = PRESTO_ENCODE_INT64, .spec = {.dtype = PRESTO_INT64}};
    info.features[2] = (presto_feature_spec){
        .name = strdup("x"),
        .encoding = PRESTO_ENCODE_TENSOR,
        .spec = {.dtype = PRESTO_FLOAT32,
                 .rank = 1,
                 .dims = {how->odd < how->samples ? -1 : (int64_t)how->values}}};
    info.main_feature = strdup("x");
    info.codec = strdup(presto__codec_format(&spec, text));
    info.file_compression = how->file_compression;
    info.tool_version = strdup("test");
    ck_assert_ok(presto__dataset_info_write(dir, &info, false, &err), &err);
    presto__dataset_info_free(&info);
}

/** Remove the digest of the input from `dir`/dataset.json. */
static inline void forget_input(const char *dir) {
    presto_error err;
    presto_dataset_info info = {0};
    ck_assert_ok(presto__dataset_info_read(dir, &info, &err), &err);
    ck_assert_ptr_nonnull(info.input);
    free(info.input);
    info.input = NULL;
    ck_assert_ok(presto__dataset_info_write(dir, &info, false, &err), &err);
    presto__dataset_info_free(&info);
}

/** A dataset and its source, opened. */
typedef struct opened {
    presto_dataset *dataset;
    presto_source *source;
} opened;

static inline opened open_made(const char *dir, bool map) {
    opened data = {0};
    presto_shard_options options;
    presto_error err;
    presto_shard_options_defaults(&options);
    options.map = map;
    ck_assert_ok(presto_dataset_open(&dir, 1, &options, &data.dataset, &err), &err);
    ck_assert_ok(presto__source_open_dataset(data.dataset, &data.source, &err), &err);
    return data;
}

static inline void close_made(opened *data) {
    presto__source_free(data->source);
    presto_dataset_free(data->dataset);
}

static inline uint32_t digest_text(uint32_t digest, const char *text) {
    return presto_crc32c(digest, text, strlen(text) + 1);
}

/** Everything in a batch that a caller can see. */
static inline uint32_t digest_batch(uint32_t digest, const presto_batch *batch) {
    digest = presto_crc32c(digest, &batch->epoch, sizeof batch->epoch);
    digest = presto_crc32c(digest, &batch->first, sizeof batch->first);
    digest = presto_crc32c(digest, &batch->rows, sizeof batch->rows);
    digest = presto_crc32c(digest, &batch->skipped, sizeof batch->skipped);
    digest = presto_crc32c(digest, batch->sample_numbers, batch->rows * sizeof(uint64_t));
    for (size_t i = 0; i < batch->feature_count; i++) {
        const presto_batch_feature *feature = &batch->features[i];
        char text[PRESTO_SPEC_TEXT_BYTES];
        digest = digest_text(digest, feature->name);
        digest = digest_text(digest, presto_spec_format(&feature->tensor.spec, text, sizeof text));
        digest = digest_text(digest, presto_layout_name(feature->layout));
        digest = presto_crc32c(digest, feature->tensor.data, presto_tensor_bytes(&feature->tensor));
        size_t items = batch->rows;
        if (feature->row_offsets != NULL) {
            items = (size_t)feature->row_offsets[batch->rows];
            digest = presto_crc32c(digest, feature->row_offsets,
                                   (batch->rows + 1) * sizeof *feature->row_offsets);
        }
        if (feature->offsets != NULL)
            digest = presto_crc32c(digest, feature->offsets, (items + 1) * sizeof(int64_t));
        if (feature->shapes != NULL)
            digest = presto_crc32c(digest, feature->shapes,
                                   batch->rows * feature->shape_rank * sizeof *feature->shapes);
    }
    if (batch->frames.bytes > 0)
        digest = presto_crc32c(digest, batch->frames.data, batch->frames.bytes);
    return digest;
}

/** Run a loader to its end; returns the digest of all batches. */
static inline uint32_t digest_stream(presto_source *source, const presto_plan *plan,
                                     const presto_loader_options *options, uint64_t *samples_out,
                                     presto_status wanted, presto_error *err) {
    presto_loader *loader;
    ck_assert_ok(presto__loader_open(source, plan, options, &loader, err), err);
    uint32_t digest = 0;
    uint64_t samples = 0;
    presto_batch *batch;
    presto_status status;
    while ((status = presto_loader_next(loader, &batch, err)) == PRESTO_OK) {
        digest = digest_batch(digest, batch);
        samples += batch->rows;
        presto_batch_release(batch);
    }
    ck_assert_status(status, wanted, err);
    presto_error again;
    ck_assert_status(presto_loader_next(loader, &batch, &again), wanted, &again);
    presto_loader_free(loader);
    if (samples_out != NULL)
        *samples_out = samples;
    return digest;
}

#endif
