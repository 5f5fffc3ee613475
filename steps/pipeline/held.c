/* SPDX-License-Identifier: Apache-2.0 */
/* What a parsed pipeline holds: its name, source, steps and representations. */
#include <stdio.h>

#include "../../base/options_internal.h"
#include "../pipelines_internal.h"
#include "pipeline_internal.h"

const char *presto_pipeline_name(const presto_pipeline *pipeline) {
    return pipeline->name;
}

const char *presto_pipeline_json(const presto_pipeline *pipeline) {
    return pipeline->json;
}

void presto__pipeline_options_of(const presto_pipeline *pipeline,
                                 presto_pipeline_options *options_out) {
    const presto_pipeline_options options = {.steps = pipeline->own_steps,
                                             .step_count = pipeline->own_step_count,
                                             .code = pipeline->runs_code ? PRESTO_CODE_ALWAYS
                                                                         : PRESTO_CODE_NEVER};
    presto__options_give(options_out, options_out->struct_bytes, &options, sizeof options);
}

const presto_source_type *presto_pipeline_source(const presto_pipeline *pipeline) {
    return pipeline->source;
}

const presto_option *presto__pipeline_source_option(const presto_pipeline *pipeline,
                                                    const char *name) {
    for (size_t i = 0; i < pipeline->source->option_count; i++)
        if (strcmp(pipeline->source->options[i].name, name) == 0)
            return &pipeline->source_options[i];
    return NULL;
}

const presto_option *presto__pipeline_step_option(const presto_pipeline *pipeline, size_t i,
                                                  const char *name) {
    if (i >= pipeline->step_count)
        return NULL;
    const presto__pipeline_step *step = &pipeline->steps[i];
    for (size_t o = 0; o < step->type->option_count; o++)
        if (strcmp(step->type->options[o].name, name) == 0)
            return &step->options[o];
    return NULL;
}

const presto_tensor_spec *presto__pipeline_source_output(const presto_pipeline *pipeline) {
    return &pipeline->source_output;
}

const char *presto__pipeline_usual_feature(const presto_pipeline *pipeline) {
    return pipeline->usual_feature;
}

const char *presto__pipeline_unused_option(const presto_pipeline *pipeline, size_t i) {
    return i < pipeline->unused_count ? pipeline->unused[i] : NULL;
}

size_t presto_pipeline_step_count(const presto_pipeline *pipeline) {
    return pipeline->step_count;
}

const presto_step_type *presto_pipeline_step_type(const presto_pipeline *pipeline, size_t i) {
    return i < pipeline->step_count ? pipeline->steps[i].type : NULL;
}

unsigned presto__pipeline_step_flags(const presto_pipeline *pipeline, size_t i) {
    return i < pipeline->step_count ? pipeline->steps[i].flags : 0;
}

size_t presto_pipeline_representation_count(const presto_pipeline *pipeline) {
    return pipeline->representation_count;
}

const char *presto_pipeline_representation_name(const presto_pipeline *pipeline, size_t r) {
    if (r >= pipeline->representation_count)
        return NULL;
    return r == 0 ? PRESTO_UNPROCESSED : pipeline->representations[r - 1].name;
}

size_t presto_pipeline_representation_find(const presto_pipeline *pipeline, const char *name) {
    for (size_t r = 0; r < pipeline->representation_count; r++)
        if (strcmp(presto_pipeline_representation_name(pipeline, r), name) == 0)
            return r;
    return SIZE_MAX;
}

/* "unprocessed, decoded, resized"; `to_store`: those that may be stored. */
static void list_names(const presto_pipeline *pipeline, bool to_store, char *text, size_t bytes) {
    size_t used = 0;
    for (size_t r = 0; r < pipeline->representation_count && used < bytes; r++)
        if (!to_store || presto__pipeline_representation_storable(pipeline, r))
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "",
                                     presto_pipeline_representation_name(pipeline, r));
}

presto_status presto_pipeline_representation_named(const presto_pipeline *pipeline,
                                                   const char *name, bool to_store, size_t *r_out,
                                                   presto_error *err) {
    char names[PRESTO_ERROR_MESSAGE_BYTES - 160] = "";
    size_t found = presto_pipeline_representation_find(pipeline, name);
    if (found != SIZE_MAX &&
        (!to_store || presto__pipeline_representation_storable(pipeline, found))) {
        *r_out = found;
        return PRESTO_OK;
    }
    list_names(pipeline, to_store, names, sizeof names);
    if (found != SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "'%s' comes after a random step and is never stored; there is %s", name,
                           names);
    bool is_seekable = strcmp(name, PRESTO_SEEKABLE) == 0;
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "pipeline %s has no representation '%s'; there is %s%s", pipeline->name,
                       name, names, is_seekable ? ". --set " PRESTO_SET_SEEKABLE " adds it" : "");
}

size_t presto_pipeline_representation_steps(const presto_pipeline *pipeline, size_t r) {
    return r == 0 ? 0 : pipeline->representations[r - 1].steps;
}

size_t presto_pipeline_representation_default(const presto_pipeline *pipeline) {
    size_t best = 0, last = 0;
    for (size_t r = 1; r < pipeline->representation_count; r++) {
        size_t steps = presto_pipeline_representation_steps(pipeline, r);
        if (!presto__pipeline_representation_storable(pipeline, r))
            break;
        bool inflates = false;
        for (size_t i = 0; i < steps; i++)
            if ((pipeline->steps[i].flags & PRESTO_STEP_REGROUPS) != 0)
                inflates = false; /* only a conversion runs it: its result must be stored */
            else
                inflates = inflates || pipeline->steps[i].inflates;
        last = r;
        if (!inflates)
            best = r;
    }
    return best > 0 ? best : last;
}

bool presto__pipeline_representation_storable(const presto_pipeline *pipeline, size_t r) {
    size_t steps = presto_pipeline_representation_steps(pipeline, r);
    for (size_t i = 0; i < steps; i++)
        if ((pipeline->steps[i].flags & PRESTO_STEP_RANDOM) != 0)
            return false;
    return true;
}

/* ---- index-jpeg: it changes how a photo is stored, and no pixel of it ---- */

uint64_t presto__pipeline_position(const presto_pipeline *pipeline, size_t i) {
    uint64_t position = pipeline->steps_behind;
    for (size_t k = 0; k < i; k++)
        position += pipeline->steps[k].type != &presto__step_index_jpeg;
    return position;
}

bool presto__pipeline_only_indexes(const presto_pipeline *pipeline, size_t i) {
    if (i + 1 >= pipeline->step_count)
        return false;
    const presto__pipeline_step *index = &pipeline->steps[i], *decode = &pipeline->steps[i + 1];
    const presto_option *metadata = presto__pipeline_step_option(pipeline, i, "metadata");
    const presto_option *orient = presto__pipeline_step_option(pipeline, i + 1, "orient");
    if (index->type != &presto__step_index_jpeg || decode->type != &presto__step_decode_image ||
        index->reads != NULL || index->writes != NULL || decode->reads != NULL ||
        decode->writes != NULL)
        return false;
    return strcmp(metadata->text, "keep") == 0 || strcmp(orient->text, "exif") != 0;
}
