/* SPDX-License-Identifier: Apache-2.0 */
/* Which pipelines gain by index-jpeg, and what they are with it. */
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

presto_status presto_pipeline_seekable(const presto_pipeline *pipeline,
                                       presto_pipeline **seekable_out, presto_error *err) {
    static const char *const set[] = {PRESTO_SET_SEEKABLE};
    *seekable_out = NULL;
    if (!gains(pipeline))
        return PRESTO_OK;
    presto_pipeline_options options;
    presto_pipeline_options_defaults(&options);
    presto__pipeline_options_of(pipeline, &options);
    options.set = set;
    options.set_count = 1;
    return presto__pipeline_parse(presto_span_of_text(pipeline->json), pipeline->file, &options,
                                  seekable_out, err);
}
