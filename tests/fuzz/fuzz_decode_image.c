/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image files: any bytes are refused or decoded, and a plan that decodes only what a crop keeps
 * gives the same bytes, or the same failure, as one that decodes everything. The length
 * chooses the channels and the steps, so that image files are seeds as they are.
 */
#include <presto/pipeline.h>

#include <stdio.h>
#include <stdlib.h>

#include "../../steps/pipelines_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct runner {
    presto_pipeline *pipeline;
    presto_plan *plan;
    presto__plan_worker *worker;
    presto_arena arena;
} runner;

static const presto_tensor_spec string_spec = {PRESTO_STRING, 0, {0}};

static void require(bool truth) {
    if (!truth)
        abort();
}

/* `steps` has a %d for the channels. */
static void runner_open(runner *r, const char *steps, int channels, bool no_fusion) {
    char yaml[300], tail[200];
    presto_error err;
    presto__plan_options options = {.struct_bytes = sizeof options,
                                    .first_step = 1,
                                    .last_step = 3,
                                    .in = &string_spec,
                                    .no_fusion = no_fusion};
    presto__plan_worker_options worker = {.struct_bytes = sizeof worker, .arena = &r->arena};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(tail, sizeof tail, steps, channels);
#pragma GCC diagnostic pop
    snprintf(yaml, sizeof yaml, "{name: f, source: {type: files}, steps: [{step: read-file}, %s]}",
             tail);
    require(presto__pipeline_parse(presto_span_of_text(yaml), "f", NULL, &r->pipeline, &err) >= 0);
    require(presto__plan_new(r->pipeline, &options, &r->plan, &err) >= 0);
    require(presto__plan_worker_new(r->plan, &worker, &r->worker, &err) >= 0);
}

static void runner_close(runner *r) {
    presto__plan_worker_free(r->worker);
    presto__plan_free(r->plan);
    presto_pipeline_free(r->pipeline);
    presto_arena_done(&r->arena);
}

static presto_status runner_run(runner *r, const presto_span *bytes, presto_tensor *out,
                                presto_error *err) {
    presto__plan_run_options options = {.struct_bytes = sizeof options};
    presto_feature image = {.name = presto_span_of_text("image"),
                            .tensor = {.spec = string_spec, .strings = bytes}};
    presto_sample sample = {&image, 1, bytes->bytes};
    presto_status status = presto__plan_run(r->worker, &options, &sample, err);
    *out = sample.features[0].tensor;
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const int channels[] = {3, 0, 1, 4};
    static const char *const steps[] = {
        "{step: decode-image, channels: %d, max-bytes: 1MiB}, "
        "{step: random-crop, height: 3, width: 4}",
        "{step: decode-image, channels: %d, max-bytes: 1MiB, orient: exif, scale: auto}, "
        "{step: random-resized-crop, height: 3, width: 4}"};
    int wanted = channels[bytes & 3];
    const char *chosen = steps[bytes >> 2 & 1];
    presto_span image = presto_span_of(data, bytes);
    runner fused = {0}, plain = {0};
    runner_open(&fused, chosen, wanted, false);
    runner_open(&plain, chosen, wanted, true);
    presto_tensor a, b;
    presto_error a_err, b_err;
    presto_status status = runner_run(&fused, &image, &a, &a_err);
    require(status == runner_run(&plain, &image, &b, &b_err));
    if (status < 0)
        require(strcmp(a_err.message, b_err.message) == 0 && a_err.message[0] != '\0');
    else
        require(presto_spec_equal(&a.spec, &b.spec) &&
                memcmp(a.data, b.data, presto_tensor_bytes(&a)) == 0);
    runner_close(&fused);
    runner_close(&plain);
    return 0;
}
