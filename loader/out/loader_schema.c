/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What batches will look like, from what the source and the steps declare. Rows whose length is not
 * declared are ragged.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/options_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../engine/engine_internal.h"
#include "out_internal.h"

static const int64_t none[PRESTO_MAX_RANK];

/* A batch without data. */
typedef struct made_schema {
    presto_batch batch;
    presto_batch_feature features[]; /* by name */
} made_schema;

const presto_tensor_spec *presto_stream_output(const presto_stream *stream) {
    presto_stream opened;
    presto__result_copy(&opened, sizeof opened, stream);
    const presto_plan *last = opened.plan;
    if (last == NULL || presto_plan_step_count(last) == 0)
        last = opened.cache_plan;
    return last == NULL || presto_plan_step_count(last) == 0 ? NULL : presto__plan_output(last);
}

static const presto_pad *find_pad(const presto_loader_options *options, const char *name) {
    for (size_t i = 0; i < options->pad_count; i++)
        if (strcmp(options->pads[i].feature, name) == 0)
            return &options->pads[i];
    return NULL;
}

/* As rows are once they are padded. The length is not known if it is that of the longest. */
static void apply_pad(const presto_pad *pad, presto_tensor_spec *row) {
    if (row->dtype == PRESTO_STRING)
        row->dtype = PRESTO_UINT8;
    if (row->rank < 1)
        row->rank = 1;
    row->dims[0] = pad->length > 0 ? (int64_t)pad->length : -1;
}

static bool has_known_dims(const presto_tensor_spec *row) {
    for (int i = 0; i < row->rank; i++)
        if (row->dims[i] < 0)
            return false;
    return row->rank >= 0;
}

static void set_layout(const presto_tensor_spec *row, presto_batch_feature *out) {
    presto_tensor_spec *spec = &out->tensor.spec;
    *spec = (presto_tensor_spec){.dtype = row->dtype, .rank = 1, .dims = {1}};
    if (row->dtype == PRESTO_STRING) {
        out->layout = PRESTO_LAYOUT_BYTES;
        spec->dtype = PRESTO_UINT8;
        out->row_offsets = row->rank == 0 ? NULL : none;
    } else if (has_known_dims(row) && row->rank < PRESTO_MAX_RANK) {
        out->layout = PRESTO_LAYOUT_DENSE;
        spec->rank = row->rank + 1;
        memcpy(spec->dims + 1, row->dims, (size_t)row->rank * sizeof *row->dims);
    } else {
        out->layout = PRESTO_LAYOUT_RAGGED;
        out->shapes = row->rank > 1 ? none : NULL;
        out->shape_rank = row->rank > 1 ? (size_t)row->rank : 0;
    }
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const presto_batch_feature *)a)->name, ((const presto_batch_feature *)b)->name);
}

/* The features that the source declares, as rows of a batch; `schema` has room for them. */
static void describe(const presto_stream *stream, const presto_loader_options *options,
                     made_schema *schema) {
    size_t count = 0;
    const presto_feature_spec *specs = presto_source_features(stream->source, &count);
    const char *main = presto_source_main_feature(stream->source);
    const presto_tensor_spec *output = presto_stream_output(stream);
    for (size_t i = 0; i < count; i++) {
        bool is_output = output != NULL && main != NULL && strcmp(specs[i].name, main) == 0;
        presto_tensor_spec row = is_output ? *output : specs[i].spec;
        if (!is_output && stream->cache_plan != NULL)
            presto_plan_feature(stream->cache_plan, specs[i].name, &row);
        if (!is_output && stream->plan != NULL)
            presto_plan_feature(stream->plan, specs[i].name, &row);
        const presto_pad *pad = find_pad(options, specs[i].name);
        if (pad != NULL)
            apply_pad(pad, &row);
        schema->features[i] = (presto_batch_feature){.name = specs[i].name,
                                                     .encoding = is_output ? PRESTO_ENCODE_TENSOR
                                                                           : specs[i].encoding};
        set_layout(&row, &schema->features[i]);
    }
    qsort(schema->features, count, sizeof *schema->features, compare_names);
    schema->batch = (presto_batch){
        .features = schema->features, .feature_count = count, .main_feature = SIZE_MAX};
    for (size_t i = 0; main != NULL && i < count; i++)
        if (strcmp(schema->features[i].name, main) == 0)
            schema->batch.main_feature = i;
}

presto_status presto_loader_schema(const presto_stream *stream,
                                   const presto_loader_options *options, presto_batch **schema_out,
                                   presto_error *err) {
    presto_stream opened;
    presto_loader_options taken;
    size_t count;
    PRESTO_TRY(presto__loader_take_options(&taken, options, err));
    presto__result_copy(&opened, sizeof opened, stream);
    (void)presto_source_features(opened.source, &count);
    size_t bytes = sizeof(made_schema) + (count + 1) * sizeof(presto_batch_feature);
    made_schema *made = calloc(1, bytes);
    if (made == NULL)
        return presto_fail_memory(err, bytes);
    describe(&opened, &taken, made);
    *schema_out = &made->batch;
    return PRESTO_OK;
}

void presto_loader_schema_free(presto_batch *batch) {
    free(batch); /* it is the first member */
}
