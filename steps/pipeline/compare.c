/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a pipeline with the definition in a dataset: are they the same, and up to which step? */
#include <stdlib.h>

#include "../pipelines_internal.h"
#include "pipeline_internal.h"

presto_status presto__pipeline_read_back(const presto_pipeline *pipeline, const char *json,
                                         presto_pipeline **other_out, presto_error *err) {
    presto_pipeline_options options = {.struct_bytes = sizeof options};
    presto__pipeline_options_of(pipeline, &options);
    options.code = PRESTO_CODE_NEVER; /* it is compared, and never runs */
    return presto__pipeline_parse(presto_span_of_text(json), "dataset.json", &options, other_out,
                                  err);
}

presto_status presto__pipeline_same(const presto_pipeline *pipeline, const char *json,
                                    bool *same_out, presto_error *err) {
    presto_pipeline *other = NULL;
    PRESTO_TRY(presto__pipeline_read_back(pipeline, json, &other, err));
    *same_out = strcmp(pipeline->json, other->json) == 0;
    presto_pipeline_free(other);
    return PRESTO_OK;
}

/* Compares two texts, which it frees; NULL: there was no memory for one. */
static presto_status same_texts(char *a, char *b, bool *same_out, presto_error *err) {
    presto_status status = PRESTO_OK;
    if (a == NULL || b == NULL)
        status = presto_fail_memory(err, 0);
    else
        *same_out = strcmp(a, b) == 0;
    free(a);
    free(b);
    return status;
}

/* Values are as their source reads them; which files there were does not matter any more. */
static presto_status same_up_to(const presto_pipeline *a, const presto_pipeline *b, size_t steps,
                                bool *same_out, presto_error *err) {
    bool same = true;
    if (a->source_yields != NULL)
        PRESTO_TRY(same_texts(presto__source_to_json(a), presto__source_to_json(b), &same, err));
    if (same)
        PRESTO_TRY(same_texts(presto__steps_to_json(a, 0, steps),
                              presto__steps_to_json(b, 0, steps), &same, err));
    *same_out = same;
    return PRESTO_OK;
}

presto_status presto__pipeline_continues(const presto_pipeline *pipeline, const char *json,
                                         const char *split, bool *continues_out,
                                         presto_error *err) {
    presto_pipeline *other = NULL;
    PRESTO_TRY(presto__pipeline_read_back(pipeline, json, &other, err));
    size_t here = presto_pipeline_representation_find(pipeline, split);
    size_t there = presto_pipeline_representation_find(other, split);
    size_t steps = here == SIZE_MAX ? 0 : presto_pipeline_representation_steps(pipeline, here);
    bool alike = strcmp(pipeline->name, other->name) == 0 && here != SIZE_MAX &&
                 there != SIZE_MAX && steps == presto_pipeline_representation_steps(other, there);
    presto_status status = PRESTO_OK;
    if (alike)
        status = same_up_to(pipeline, other, steps, &alike, err);
    presto_pipeline_free(other);
    if (status >= 0)
        *continues_out = alike;
    return status;
}
