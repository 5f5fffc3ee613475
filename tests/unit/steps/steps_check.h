/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of steps share: a pipeline's steps after read-file, run on one value. */
#ifndef PRESTO_STEPS_CHECK_H
#define PRESTO_STEPS_CHECK_H

#include <presto/pipeline.h>
#include <presto/rng.h>
#include <stdio.h>
#include <string.h>

#include "../../../base/rng_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "presto_check.h"

/* A pipeline, a plan and a worker over it, with their memory. */
typedef struct rig {
    presto_pipeline *pipeline;
    presto_plan *plan;
    presto__plan_worker *worker;
    presto_arena arena;
    presto_span bytes; /* input of rig_run_bytes */
} rig;

static const presto_tensor_spec string_spec = {PRESTO_STRING, 0, {0}};

/* The steps [first, last) on an input of spec `in`. */
#define plan_of(pipeline, first, last, spec, plan_out, err)                                        \
    presto__plan_new(pipeline,                                                                     \
                     &(presto__plan_options){.struct_bytes = sizeof(presto__plan_options),         \
                                             .first_step = (first),                                \
                                             .last_step = (last),                                  \
                                             .in = (spec)},                                        \
                     plan_out, err)

/* How one value is run, and as which sample. */
typedef struct rig_options {
    uint64_t seed, epoch, sample;
    presto_output_fn output;
    void *output_user;
} rig_options;

/* `steps` is the inside of a YAML list; the plan runs them on an input of spec `in`. */
static inline presto_status rig_open(rig *r, const char *steps, const presto_tensor_spec *in,
                                     bool no_fusion, presto_error *err) {
    char yaml[2048];
    *r = (rig){0};
    /* Values that are no files enter behind steps that only complete the pipeline. */
    bool is_bytes = in->dtype == PRESTO_STRING;
    const char *before =
        in->dtype == PRESTO_INT32 ? "{step: bpe-encode}, " : "{step: decode-image, channels: 0}, ";
    snprintf(yaml, sizeof yaml,
             "name: t\nsource: {type: files}\nsteps: [{step: read-file}, %s%s]\n",
             is_bytes ? "" : before, steps);
    PRESTO_TRY(presto__pipeline_parse(presto_span_of_text(yaml), "t", NULL, &r->pipeline, err));
    presto__plan_options options = {.struct_bytes = sizeof options,
                                    .first_step = is_bytes ? 1 : 2,
                                    .last_step = presto_pipeline_step_count(r->pipeline),
                                    .in = in,
                                    .no_fusion = no_fusion};
    PRESTO_TRY(presto__plan_new(r->pipeline, &options, &r->plan, err));
    presto__plan_worker_options worker = {.struct_bytes = sizeof worker, .arena = &r->arena};
    return presto__plan_worker_new(r->plan, &worker, &r->worker, err);
}

static inline void rig_close(rig *r) {
    presto__plan_worker_free(r->worker);
    presto__plan_free(r->plan);
    presto_pipeline_free(r->pipeline);
    presto_arena_done(&r->arena);
}

/* Runs a plan on a sample of one feature, whose value is *tensor before and afterwards. */
static inline presto_status run_one(presto__plan_worker *worker, const rig_options *options,
                                    presto_tensor *tensor, presto_error *err) {
    presto_feature feature = {.name = presto_span_of_text("value"), .tensor = *tensor};
    presto_sample sample = {&feature, 1, options->sample};
    presto__plan_run_options run = {.struct_bytes = sizeof run,
                                    .seed = options->seed,
                                    .epoch = options->epoch,
                                    .output = options->output,
                                    .output_user = options->output_user};
    presto_status status = presto__plan_run(worker, &run, &sample, err);
    if (status == PRESTO_OK)
        *tensor = sample.features[0].tensor;
    return status;
}

static inline presto_status rig_run(rig *r, const rig_options *options, presto_tensor *tensor,
                                    presto_error *err) {
    presto_arena_reset(&r->arena);
    return run_one(r->worker, options, tensor, err);
}

static inline presto_status rig_run_bytes(rig *r, const rig_options *options, presto_span bytes,
                                          presto_tensor *out, presto_error *err) {
    r->bytes = bytes;
    out->spec = string_spec;
    out->strings = &r->bytes;
    return rig_run(r, options, out, err);
}

/* The result of a run as a copy of its own; NULL if it failed. */
static inline uint8_t *rig_copy(const presto_tensor *tensor) {
    return presto_check_copy(presto_span_of(tensor->data, presto_tensor_bytes(tensor)));
}

/* Random numbers of a test, of the run's seed. */
static inline presto_rng test_rng(uint64_t stream) {
    presto_rng rng;
    presto__rng_key key = {presto_check_seed(), 0, 0, stream};
    presto__rng_init(&rng, &key);
    return rng;
}

#endif
