/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipeline texts: any bytes are refused or give a pipeline whose JSON is read back to the same
 * JSON, and whose plans can be made.
 */
#include <presto/pipeline.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool truth) {
    if (!truth)
        abort();
}

static void check_plans(const presto_pipeline *pipeline) {
    size_t steps = presto_pipeline_step_count(pipeline);
    presto_plan *plan = NULL;
    presto_error err;
    presto_plan_options options = {.struct_bytes = sizeof options,
                                   .last_step = steps,
                                   .in = &presto_pipeline_source(pipeline)->output};
    presto_status status = presto_plan_new(pipeline, &options, &plan, &err);
    /* A model that nobody named is missed when the plan is made. */
    if (status < 0) {
        require(strstr(err.message, "model") != NULL);
        return;
    }
    require(presto_plan_step_count(plan) == steps);
    presto_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_pipeline *pipeline = NULL;
    presto_error err;
    presto_status status =
        presto_pipeline_parse(presto_span_of(data, bytes), "fuzz", NULL, &pipeline, &err);
    if (status < 0) {
        require(pipeline == NULL && err.status == status && err.message[0] != '\0');
        return 0;
    }
    presto_pipeline *again = NULL;
    const char *json = presto_pipeline_json(pipeline);
    require(presto_pipeline_parse(presto_span_of_text(json), "json", NULL, &again, &err) ==
            PRESTO_OK);
    require(strcmp(presto_pipeline_json(again), json) == 0);
    check_plans(pipeline);
    presto_pipeline_free(again);
    presto_pipeline_free(pipeline);
    return 0;
}
