/* SPDX-License-Identifier: Apache-2.0 */
/* Pages: any bytes give text, which is UTF-8 without control characters, and the same text
 * again. */
#include <presto/pipeline.h>

#include <stdlib.h>

#include "../../steps/pipelines_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const presto_tensor_spec string_spec = {PRESTO_STRING, 0, {0}};

static void require(bool truth) {
    if (!truth)
        abort();
}

/* Bytes of the UTF-8 character at `at`, 0 if it is none. */
static size_t utf8_bytes(const uint8_t *at, size_t left) {
    size_t bytes = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (bytes > left || (at[0] >= 0x80 && (at[0] < 0xc2 || at[0] > 0xf4)))
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return bytes;
}

static void check_text(presto_span text) {
    for (size_t at = 0; at < text.bytes;) {
        size_t bytes = utf8_bytes(text.data + at, text.bytes - at);
        require(bytes > 0 && (text.data[at] >= ' ' || text.data[at] == '\n'));
        at += bytes;
    }
}

static presto_span run(presto__plan_worker *worker, const presto_span *page, presto_arena *arena) {
    presto__plan_run_options options = {.struct_bytes = sizeof options};
    presto_feature feature = {.name = presto_span_of_text("page"),
                              .tensor = {.spec = string_spec, .strings = page}};
    presto_sample sample = {&feature, 1, 0};
    presto_error err;
    presto_arena_reset(arena);
    require(presto__plan_run(worker, &options, &sample, &err) == PRESTO_OK);
    return sample.features[0].tensor.strings[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char yaml[] = "{name: f, source: {type: files}, steps: [{step: read-file}, {step: "
                               "extract-text, comments: true, content: any}]}";
    presto_pipeline *pipeline;
    presto_plan *plan;
    presto__plan_worker *worker;
    presto_arena arena = {0};
    presto_error err;
    presto__plan_options options = {
        .struct_bytes = sizeof options, .first_step = 1, .last_step = 2, .in = &string_spec};
    presto__plan_worker_options settings = {.struct_bytes = sizeof settings, .arena = &arena};
    presto_span page = presto_span_of(data, bytes);
    require(presto__pipeline_parse(presto_span_of_text(yaml), "f", NULL, &pipeline, &err) >= 0);
    require(presto__plan_new(pipeline, &options, &plan, &err) >= 0);
    require(presto__plan_worker_new(plan, &settings, &worker, &err) >= 0);
    presto_span text = run(worker, &page, &arena);
    check_text(text);
    size_t text_bytes = text.bytes;
    require(run(worker, &page, &arena).bytes == text_bytes);
    presto__plan_worker_free(worker);
    presto__plan_free(plan);
    presto_pipeline_free(pipeline);
    presto_arena_done(&arena);
    return 0;
}
