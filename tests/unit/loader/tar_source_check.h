/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of known samples, opened as the source `tar`. */
#ifndef TAR_SOURCE_CHECK_H
#define TAR_SOURCE_CHECK_H

#include <stdlib.h>

#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "folder_check.h"
#include "loader_check.h"
#include "tar_made.h"

enum { ARCHIVES = 3, OF_EACH = 10, SAMPLES = ARCHIVES * OF_EACH };

static char *dir;
static presto_source *source;
static presto_pipeline *pipeline;
static presto_plan *plan;
static presto_error err;

static inline presto_status open_at(const char *options, const char *const *paths, size_t count) {
    char yaml[600];
    snprintf(yaml, sizeof yaml,
             "{name: p, source: {type: tar, match: ['*.bin', '*.raw']%s}, "
             "steps: [{step: read-file, yields: concatenated}]}",
             options);
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "p", NULL, &pipeline, &err),
                 &err);
    ck_assert_ok(presto__plan_new(pipeline, NULL, &plan, &err), &err);
    return presto__source_open_raw(pipeline, paths, count, &source, &err);
}

static inline presto_status open_source(const char *options) {
    return open_at(options, (const char *const *)&dir, 1);
}

static inline void set_up(void) {
    dir = presto_check_temp_dir();
    source = NULL;
}

static inline void close_source(void) {
    presto__source_free(source);
    presto__plan_free(plan);
    presto_pipeline_free(pipeline);
    source = NULL;
    plan = NULL;
    pipeline = NULL;
}

static inline void tear_down(void) {
    close_source();
    presto_check_remove_tree(dir);
    free(dir);
}

static inline void write_tar(const char *name, presto_buffer *tar) {
    presto_check_write_file(path_in(dir, name), presto_buffer_span(tar));
    presto_buffer_done(tar);
}

static inline void compress(const char *name) {
    char command[1600];
    snprintf(command, sizeof command, "gzip -f %s", path_in(dir, name));
    ck_assert_int_eq(system(command), 0);
}

/* The content of the main member of sample i. */
static inline size_t content_of(uint64_t i, uint8_t content[2000]) {
    size_t bytes = (size_t)(i * 613 % 1900);
    for (size_t k = 0; k < bytes; k++)
        content[k] = (uint8_t)(i * 31 + k * 7 + k / 256);
    return bytes;
}

static inline void put_array(presto_buffer *tar, const char *name, const float *values,
                             size_t count) {
    presto_buffer npy = {0};
    char header[128];
    int bytes = snprintf(header, sizeof header,
                         "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,), }", count);
    uint8_t start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)bytes, 0};
    tar_put(&npy, start, sizeof start);
    tar_put(&npy, header, (size_t)bytes);
    tar_put(&npy, values, count * sizeof *values);
    tar_put_member(tar, name, presto_buffer_span(&npy));
    presto_buffer_done(&npy);
}

static inline void put_sample(presto_buffer *tar, uint64_t i) {
    uint8_t content[2000];
    char name[64], text[64];
    const float values[3] = {(float)i, (float)i / 2, -1};
    snprintf(name, sizeof name, "train/%05d.cls", (int)i);
    snprintf(text, sizeof text, "%d\n", (int)(i * 7 % 10));
    tar_put_text(tar, name, text);
    snprintf(name, sizeof name, "train/%05d.Bin", (int)i);
    tar_put_member(tar, name, presto_span_of(content, content_of(i, content)));
    snprintf(name, sizeof name, "train/%05d.json", (int)i);
    snprintf(text, sizeof text, "{\"number\": %d}", (int)i);
    tar_put_text(tar, name, text);
    snprintf(name, sizeof name, "train/%05d.emb.npy", (int)i);
    put_array(tar, name, values, 3);
}

/* a.tar, b.tar.gz if `gzip`, c.tar */
static inline void make_archives(bool gzip) {
    for (int a = 0; a < ARCHIVES; a++) {
        presto_buffer tar = {0};
        char name[] = {(char)('a' + a), '.', 't', 'a', 'r', '\0'};
        for (uint64_t i = 0; i < OF_EACH; i++)
            put_sample(&tar, (uint64_t)a * OF_EACH + i);
        tar_put_end(&tar);
        write_tar(name, &tar);
        if (gzip && a == 1)
            compress(name);
    }
}

static inline const presto_batch_feature *feature_of(const presto_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return &batch->features[i];
    ck_abort_msg("no feature %s", name);
    return NULL;
}

static inline void check_text(const presto_batch *batch, const char *name, size_t row,
                              const char *text) {
    presto_span got = presto_batch_string(feature_of(batch, name), row);
    ck_assert_msg(presto_span_is(got, text), "%s of row %zu is '%.*s', not '%s'", name, row,
                  (int)got.bytes, (const char *)got.data, text);
}

static inline void check_row(const presto_batch *batch, size_t row) {
    uint64_t i = batch->sample_numbers[row];
    uint8_t content[2000];
    char text[64];
    presto_span wanted = presto_span_of(content, content_of(i, content));
    ck_assert(presto_span_equal(presto_batch_string(feature_of(batch, "image"), row), wanted));
    snprintf(text, sizeof text, "train/%05d", (int)i);
    check_text(batch, "key", row, text);
    snprintf(text, sizeof text, "{\"number\": %d}", (int)i);
    check_text(batch, "json", row, text);
    ck_assert_int_eq(((const int64_t *)feature_of(batch, "label")->tensor.data)[row],
                     (int64_t)(i * 7 % 10));
    const float *values = (const float *)feature_of(batch, "emb.npy")->tensor.data + row * 3;
    ck_assert(values[0] == (float)i && values[1] == (float)i / 2 && values[2] == -1);
}

static inline void count_stream(const presto_loader_options *options, unsigned *seen) {
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    /* A cache keeps what the plan in front of it gives. */
    presto_loader_options mine = *options;
    mine.cache.plan = options->cache.bytes > 0 ? plan : NULL;
    ck_assert_ok(
        presto__loader_open(source, mine.cache.plan == NULL ? plan : NULL, &mine, &loader, &err),
        &err);
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

#endif
