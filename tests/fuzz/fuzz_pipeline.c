/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipeline texts: any bytes are refused or give a pipeline whose JSON is read back to the same
 * JSON, and whose plans can be made; so does what is left of it behind each representation.
 */
#include <presto/pipeline.h>

#include <stdio.h>
#include <stdlib.h>

#include "../../steps/pipelines_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool truth) {
    if (!truth)
        abort();
}

static void check_plans(const presto_pipeline *pipeline) {
    size_t steps = presto_pipeline_step_count(pipeline);
    presto_plan *plan = NULL;
    presto_error err;
    presto__plan_options options = {.struct_bytes = sizeof options,
                                    .last_step = steps,
                                    .in = &presto_pipeline_source(pipeline)->output};
    presto_status status = presto__plan_new(pipeline, &options, &plan, &err);
    /* A model that nobody named is missed when the plan is made; a text starts no program and loads
     * no plugin. */
    if (status < 0) {
        require(
            strstr(err.message, "model") != NULL ||
            (status == PRESTO_ERR_UNSUPPORTED && strstr(err.message, "--allow-commands") != NULL));
        return;
    }
    require(presto_plan_step_count(plan) == steps);
    presto__plan_free(plan);
}

static void check_read_back(const presto_pipeline *pipeline) {
    presto_pipeline *again = NULL;
    presto_error err;
    const char *json = presto_pipeline_json(pipeline);
    require(presto__pipeline_parse(presto_span_of_text(json), "json", NULL, &again, &err) ==
            PRESTO_OK);
    require(strcmp(presto_pipeline_json(again), json) == 0);
    presto_pipeline_free(again);
}

/* Records that hold a representation take the place of the source and the steps before it. */
static void check_rest(const presto_pipeline *pipeline, presto_span text, size_t r) {
    presto_pipeline *rest = NULL;
    presto_error err;
    char from[512];
    const char *const set[] = {from};
    const presto_pipeline_options options = {
        .struct_bytes = sizeof options, .set = set, .set_count = 1};
    if (snprintf(from, sizeof from, "from=%s", presto_pipeline_representation_name(pipeline, r)) >=
        (int)sizeof from)
        return;
    require(presto__pipeline_parse(text, "fuzz", &options, &rest, &err) == PRESTO_OK);
    size_t behind = presto_pipeline_representation_steps(pipeline, r);
    require(presto_pipeline_step_count(rest) == presto_pipeline_step_count(pipeline) - behind);
    require(presto_pipeline_representation_count(rest) ==
            presto_pipeline_representation_count(pipeline) - (r - 1));
    check_read_back(rest);
    presto_pipeline_free(rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_pipeline *pipeline = NULL;
    presto_error err;
    presto_status status =
        presto__pipeline_parse(presto_span_of(data, bytes), "fuzz", NULL, &pipeline, &err);
    if (status < 0) {
        require(pipeline == NULL && err.status == status && err.message[0] != '\0');
        return 0;
    }
    check_read_back(pipeline);
    check_plans(pipeline);
    size_t last = presto_pipeline_representation_count(pipeline) - 1;
    for (size_t r = 1; r <= last && r <= 4; r++)
        check_rest(pipeline, presto_span_of(data, bytes), r);
    presto_pipeline_free(pipeline);
    return 0;
}
