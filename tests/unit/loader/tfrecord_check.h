/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets made on the spot, opened as the source `tfrecord`. */
#ifndef TFRECORD_CHECK_H
#define TFRECORD_CHECK_H

#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "skips_check.h"

#include "source/core/source_internal.h"

enum { SAMPLES = 300, SHARDS = 3 };

static char *dir;
static presto_pipeline *pipeline;
static presto_source *source;
static presto_error err;

static const made plain = {.samples = SAMPLES, .shards = SHARDS, .values = 9, .odd = UINT64_MAX};

static inline void set_up(const made *how, bool is_ours) {
    char path[700];
    dir = presto_check_temp_dir();
    make_dataset(dir, how);
    snprintf(path, sizeof path, "%s/dataset.json", dir);
    if (!is_ours)
        ck_assert_int_eq(unlink(path), 0);
}

static inline presto_status open_as(const char *options) {
    char text[600];
    const char *path = dir;
    snprintf(text, sizeof text,
             "name: mine\nsource: {type: tfrecord%s%s}\nsteps: [{step: cast, dtype: float16, "
             "yields: half}]\n",
             options[0] == '\0' ? "" : ", ", options);
    ck_assert_ok(
        presto__pipeline_parse(presto_span_of_text(text), "mine.yaml", NULL, &pipeline, &err),
        &err);
    presto_status status = presto__source_open_raw(pipeline, &path, 1, &source, &err);
    if (status < 0)
        source = NULL;
    return status;
}

static inline void close_all(void) {
    presto__source_free(source);
    presto_pipeline_free(pipeline);
    source = NULL;
    pipeline = NULL;
}

static inline void tear_down(void) {
    close_all();
    presto_check_remove_tree(dir);
    free(dir);
}

static inline presto_loader_options defaults(unsigned threads, size_t batch) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = batch;
    options.memory.block_samples = 11;
    return options;
}

static inline const presto_batch_feature *feature_of(const presto_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return &batch->features[i];
    return NULL;
}

#endif
