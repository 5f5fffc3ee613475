/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sound files: any bytes are refused, or decoded within the limit, and then make a spectrogram. Two
 * runs over the same bytes give the same samples.
 */
#include <presto/pipeline.h>

#include "../../steps/pipelines_internal.h"
#include "fuzz.h"

#define MOST_SAMPLES (1 << 20)

typedef struct runner {
    presto_pipeline *pipeline;
    presto_plan *plan;
    presto__plan_worker *worker;
    presto_arena arena;
    presto_sample sample;
    presto_feature audio;
} runner;

static const presto_tensor_spec string_spec = {PRESTO_STRING, 0, {0}};

static void runner_open(runner *r, size_t steps) {
    static const char yaml[] =
        "{name: f, source: {type: files}, steps: [{step: read-file}, "
        "{step: decode-audio, max-bytes: 2MiB}, "
        "{step: mel-spectrogram, window: 4, stride: 40, fft-length: 8000, bands: 3, "
        "lower-edge: 0, upper-edge: 40}]}";
    presto_error err;
    presto__plan_options options = {.struct_bytes = sizeof options,
                                    .first_step = 1,
                                    .last_step = 1 + steps,
                                    .in = &string_spec};
    presto__plan_worker_options worker = {.struct_bytes = sizeof worker, .arena = &r->arena};
    FUZZ_HOLDS(presto__pipeline_parse(presto_span_of_text(yaml), "f", NULL, &r->pipeline, &err) >=
               0);
    FUZZ_HOLDS(presto__plan_new(r->pipeline, &options, &r->plan, &err) >= 0);
    FUZZ_HOLDS(presto__plan_worker_new(r->plan, &worker, &r->worker, &err) >= 0);
}

static void runner_close(runner *r) {
    presto__plan_worker_free(r->worker);
    presto__plan_free(r->plan);
    presto_pipeline_free(r->pipeline);
    presto_arena_done(&r->arena);
}

static presto_status runner_run(runner *r, const presto_span *bytes, presto_error *err) {
    presto__plan_run_options options = {.struct_bytes = sizeof options};
    r->audio = (presto_feature){.name = presto_span_of_text("audio"),
                                .tensor = {.spec = string_spec, .strings = bytes}};
    r->sample = (presto_sample){&r->audio, 1, 0};
    return presto__plan_run(r->worker, &options, &r->sample, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_span file = presto_span_of(data, bytes);
    runner first = {0}, second = {0}, mel = {0};
    presto_error err = {0}, again = {0};
    runner_open(&first, 1);
    runner_open(&second, 1);
    runner_open(&mel, 2);
    presto_status status = runner_run(&first, &file, &err);
    FUZZ_HOLDS(status == runner_run(&second, &file, &again));
    if (status < 0) {
        FUZZ_HOLDS(err.message[0] != '\0' && strcmp(err.message, again.message) == 0);
    } else {
        const presto_tensor *a = &first.sample.features[0].tensor;
        const presto_tensor *b = &second.sample.features[0].tensor;
        FUZZ_HOLDS(presto_spec_equal(&a->spec, &b->spec) && a->spec.dims[0] <= MOST_SAMPLES);
        FUZZ_HOLDS(a->spec.dims[0] == 0 || memcmp(a->data, b->data, presto_tensor_bytes(a)) == 0);
        FUZZ_HOLDS(first.sample.feature_count == 2);
        status = runner_run(&mel, &file, &err);
        FUZZ_HOLDS(status == PRESTO_OK || status == PRESTO_ERR_TYPE);
    }
    runner_close(&first);
    runner_close(&second);
    runner_close(&mel);
    return 0;
}
