/* SPDX-License-Identifier: Apache-2.0 */
/* What a parsed pipeline holds: its name, source, steps and representations. */
#include "pipeline_internal.h"

const char *presto_pipeline_name(const presto_pipeline *pipeline) {
    return pipeline->name;
}

const char *presto_pipeline_json(const presto_pipeline *pipeline) {
    return pipeline->json;
}

const presto_source_type *presto_pipeline_source(const presto_pipeline *pipeline) {
    return pipeline->source;
}

const presto_option *presto_pipeline_source_option(const presto_pipeline *pipeline,
                                                   const char *name) {
    for (size_t i = 0; i < pipeline->source->option_count; i++)
        if (strcmp(pipeline->source->options[i].name, name) == 0)
            return &pipeline->source_options[i];
    return NULL;
}

const presto_tensor_spec *presto_pipeline_source_output(const presto_pipeline *pipeline) {
    return &pipeline->source_output;
}

size_t presto_pipeline_step_count(const presto_pipeline *pipeline) {
    return pipeline->step_count;
}

const presto_step_type *presto_pipeline_step_type(const presto_pipeline *pipeline, size_t i) {
    return i < pipeline->step_count ? pipeline->steps[i].type : NULL;
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

size_t presto_pipeline_representation_steps(const presto_pipeline *pipeline, size_t r) {
    return r == 0 ? 0 : pipeline->representations[r - 1].steps;
}

bool presto_pipeline_representation_storable(const presto_pipeline *pipeline, size_t r) {
    size_t steps = presto_pipeline_representation_steps(pipeline, r);
    for (size_t i = 0; i < steps; i++)
        if ((pipeline->steps[i].type->flags & PRESTO_STEP_RANDOM) != 0)
            return false;
    return true;
}
