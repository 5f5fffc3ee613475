/* SPDX-License-Identifier: Apache-2.0 */
/* The audio steps, run on a sound. */
#ifndef AUDIO_CHECK_H
#define AUDIO_CHECK_H

#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

/* ---- running the steps ---- */

typedef struct stage {
    presto_pipeline *pipeline;
    presto_plan *plan;
    presto__plan_worker *worker;
    presto_arena arena;
    presto_feature features[3];
    presto_sample sample;
} stage;

/* `steps` behind read-file: those from `first` on are run, on an input of spec `in`. */
static inline presto_status stage_open(stage *s, const char *steps, size_t first,
                                       const presto_tensor_spec *in, presto_error *err) {
    char yaml[512];
    *s = (stage){0};
    snprintf(yaml, sizeof yaml, "{name: t, source: {type: files}, steps: [{step: read-file}, %s]}",
             steps);
    PRESTO_TRY(presto__pipeline_parse(presto_span_of_text(yaml), "t", NULL, &s->pipeline, err));
    PRESTO_TRY(
        plan_of(s->pipeline, first, presto_pipeline_step_count(s->pipeline), in, &s->plan, err));
    presto__plan_worker_options options = {.struct_bytes = sizeof options, .arena = &s->arena};
    return presto__plan_worker_new(s->plan, &options, &s->worker, err);
}

static inline void stage_close(stage *s) {
    presto__plan_worker_free(s->worker);
    presto__plan_free(s->plan);
    presto_pipeline_free(s->pipeline);
    presto_arena_done(&s->arena);
}

/* `rate` 0: the sample has no such feature. */
static inline presto_status stage_run(stage *s, const presto_tensor *in, int64_t rate,
                                      presto_error *err) {
    presto__plan_run_options run = {.struct_bytes = sizeof run};
    s->features[0] = (presto_feature){.name = presto_span_of_text("audio"), .tensor = *in};
    s->features[1] = (presto_feature){.name = presto_span_of_text("rate"),
                                      .encoding = PRESTO_ENCODE_INT64,
                                      .tensor = {.spec = {.dtype = PRESTO_INT64}, .data = &rate}};
    s->sample = (presto_sample){s->features, rate == 0 ? 1 : 2, 0};
    presto_arena_reset(&s->arena);
    return presto__plan_run(s->worker, &run, &s->sample, err);
}

static inline const presto_tensor *stage_output(const stage *s) {
    return &s->sample.features[0].tensor;
}

#endif
