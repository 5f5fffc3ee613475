/* SPDX-License-Identifier: Apache-2.0 */
/* Which pipelines gain by index-jpeg, and what they are with it. */
#include <stdio.h>

#include "../pipelines_internal.h"
#include "pipeline_internal.h"

static bool works_on_main(const presto__pipeline_step *step) {
    return step->reads == NULL && step->writes == NULL;
}

/* Does a crop keep a part of what decode-image, step i, gives? Not behind resize-image: its output
 * is smaller when it is stored. */
static bool is_cropped(const presto_pipeline *pipeline, size_t i) {
    for (i++; i < pipeline->step_count && works_on_main(&pipeline->steps[i]); i++) {
        const presto_step_type *type = pipeline->steps[i].type;
        if (type->windows == NULL || type == &presto__step_resize_image)
            return false;
        if (type->windows->select != NULL)
            return true;
    }
    return false;
}

static bool gains(const presto_pipeline *pipeline) {
    size_t decode = SIZE_MAX;
    for (size_t i = 0; i < pipeline->step_count; i++) {
        const presto__pipeline_step *step = &pipeline->steps[i];
        if (step->type == &presto__step_index_jpeg ||
            (step->type == &presto__step_decode_image && decode != SIZE_MAX))
            return false;
        if (decode == SIZE_MAX && (step->flags & PRESTO_STEP_RANDOM) != 0)
            return false;
        if (step->type == &presto__step_decode_image)
            decode = i;
    }
    return decode != SIZE_MAX && works_on_main(&pipeline->steps[decode]) &&
           presto__step_index_jpeg.unsupported == NULL && is_cropped(pipeline, decode) &&
           presto_pipeline_representation_find(pipeline, PRESTO_SEEKABLE) == SIZE_MAX;
}

/* The text of the pipeline, with changes. */
static presto_status read_again(const presto_pipeline *pipeline, const char *const *set,
                                size_t set_count, presto_pipeline **again_out, presto_error *err) {
    presto_pipeline_options options;
    presto_pipeline_options_defaults(&options);
    presto__pipeline_options_of(pipeline, &options);
    options.set = set;
    options.set_count = set_count;
    return presto__pipeline_parse(presto_span_of_text(pipeline->json), pipeline->file, &options,
                                  again_out, err);
}

presto_status presto_pipeline_seekable(const presto_pipeline *pipeline,
                                       presto_pipeline **seekable_out, presto_error *err) {
    static const char *const set[] = {PRESTO_SET_SEEKABLE};
    *seekable_out = NULL;
    if (!gains(pipeline))
        return PRESTO_OK;
    return read_again(pipeline, set, 1, seekable_out, err);
}

/* The step that yields PRESTO_SEEKABLE; SIZE_MAX: none. */
static size_t find_index(const presto_pipeline *pipeline) {
    size_t r = presto_pipeline_representation_find(pipeline, PRESTO_SEEKABLE);
    size_t steps = r == SIZE_MAX ? 0 : presto_pipeline_representation_steps(pipeline, r);
    bool is_index = steps > 0 && pipeline->steps[steps - 1].type == &presto__step_index_jpeg;
    return is_index ? steps - 1 : SIZE_MAX;
}

static bool has_index(const presto_pipeline *pipeline) {
    for (size_t i = 0; i < pipeline->step_count; i++)
        if (pipeline->steps[i].type == &presto__step_index_jpeg)
            return true;
    return false;
}

presto_status presto__pipeline_indexed_as(const presto_pipeline *pipeline, const char *json,
                                          presto_pipeline **indexed_out, presto_error *err) {
    char every[64], metadata[64];
    const char *const set[] = {PRESTO_SET_SEEKABLE, every, metadata};
    presto_pipeline *other = NULL, *indexed = NULL;
    *indexed_out = NULL;
    if (has_index(pipeline))
        return PRESTO_OK;
    PRESTO_TRY(presto__pipeline_read_back(pipeline, json, &other, err));
    size_t index = find_index(other);
    if (index != SIZE_MAX) {
        snprintf(every, sizeof every, "index-jpeg.every=%jd",
                 (intmax_t)presto__pipeline_step_option(other, index, "every")->integer);
        snprintf(metadata, sizeof metadata, "index-jpeg.metadata=%s",
                 presto__pipeline_step_option(other, index, "metadata")->text);
    }
    presto_pipeline_free(other);
    /* It cannot be added where nothing is decoded, or more than one image. */
    if (index == SIZE_MAX || read_again(pipeline, set, 3, &indexed, NULL) < 0)
        return PRESTO_OK;
    index = find_index(indexed);
    if (index != SIZE_MAX && presto__pipeline_only_indexes(indexed, index))
        *indexed_out = indexed;
    else
        presto_pipeline_free(indexed);
    return PRESTO_OK;
}
