/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts: every model of tests/golden/tokenizers encodes any bytes, and the same bytes again to the
 * same ids. The length chooses the model.
 */
#include <presto/pipeline.h>

#include "../../steps/pipelines_internal.h"
#include "fuzz.h"

static const char *const models[] = {"unigram.model", "bpe.model",    "bpe-bytes.model",
                                     "suffix.model",  "roberta.json", "llama3.json"};
#define MODEL_COUNT (sizeof models / sizeof models[0])
static const presto_tensor_spec string_spec = {PRESTO_STRING, 0, {0}};

typedef struct runner {
    presto_pipeline *pipeline;
    presto_plan *plan;
    presto__plan_worker *worker;
} runner;

static void runner_open(runner *r, const char *model) {
    char yaml[1024];
    presto_error err;
    presto__plan_options options = {
        .struct_bytes = sizeof options, .first_step = 1, .last_step = 2, .in = &string_spec};
    snprintf(yaml, sizeof yaml,
             "{name: f, source: {type: files}, steps: [{step: read-file}, "
             "{step: bpe-encode, model: \"%s/%s\"}]}",
             PRESTO_TOKENIZERS_DIR, model);
    FUZZ_HOLDS(presto__pipeline_parse(presto_span_of_text(yaml), "f", NULL, &r->pipeline, &err) >=
               0);
    FUZZ_HOLDS(presto__plan_new(r->pipeline, &options, &r->plan, &err) >= 0);
    FUZZ_HOLDS(presto__plan_worker_new(r->plan, NULL, &r->worker, &err) >= 0);
}

/* Appends the ids. */
static void run(runner *r, presto_span text, presto_buffer *ids) {
    presto_error err;
    presto_feature feature = {.name = presto_span_of_text("text"),
                              .tensor = {.spec = string_spec, .strings = &text}};
    presto_sample sample = {&feature, 1, 0};
    FUZZ_HOLDS(presto__plan_run(r->worker, NULL, &sample, &err) == PRESTO_OK);
    const presto_tensor *out = &sample.features[0].tensor;
    FUZZ_HOLDS(out->spec.dtype == PRESTO_INT32 && out->spec.rank == 1);
    FUZZ_HOLDS(presto_buffer_append(ids, presto_span_of(out->data, presto_tensor_bytes(out)),
                                    NULL) == PRESTO_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static runner runners[MODEL_COUNT]; /* as long as the process */
    runner *r = &runners[bytes % MODEL_COUNT];
    presto_buffer ids = {0};
    if (r->worker == NULL)
        runner_open(r, models[bytes % MODEL_COUNT]);
    run(r, presto_span_of(data, bytes), &ids);
    size_t half = ids.bytes;
    run(r, presto_span_of(data, bytes), &ids);
    FUZZ_HOLDS(ids.bytes == 2 * half && memcmp(ids.data, ids.data + half, half) == 0);
    presto_buffer_done(&ids);
    return 0;
}
