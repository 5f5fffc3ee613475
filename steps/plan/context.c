/* SPDX-License-Identifier: Apache-2.0 */
/* What a running step may ask for (step.h). */
#include <errno.h>
#include <stdlib.h>

#include "../../base/rng_internal.h"
#include "../pipelines_internal.h"
#include "plan_internal.h"

/* The largest output of a single step: 4 GiB. */
#define MAX_OUTPUT_BYTES ((uint64_t)4 << 30)

/* The whole sample must be known when its row is asked for, except this output. */
static bool goes_to_row(const presto_step_context *context, const presto_tensor_spec *spec) {
    const presto__plan_worker *worker = context->worker;
    return context->is_last && worker->run->output != NULL && !worker->is_wide &&
           (context->flags & PRESTO_STEP_SETS_FEATURES) == 0 &&
           context->target == worker->run->main && spec->dtype != PRESTO_STRING &&
           (context->row_spec == NULL || presto_spec_equal(context->row_spec, spec));
}

presto_status presto_step_output(presto_step_context *context, const presto_tensor_spec *spec,
                                 void **data_out, presto_error *err) {
    presto__plan_worker *worker = context->worker;
    size_t bytes;
    PRESTO_TRY(presto_spec_bytes(spec, &bytes, err));
    char text[PRESTO_SPEC_TEXT_BYTES];
    if (bytes > MAX_OUTPUT_BYTES)
        return presto_fail(
            err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "output %s has %zu bytes, limit %ju",
            presto_spec_format(spec, text, sizeof text), bytes, (uintmax_t)MAX_OUTPUT_BYTES);
    if (goes_to_row(context, spec)) {
        presto_output_request request = {&worker->sample, context->target, spec};
        return worker->run->output(worker->run->output_user, &request, data_out, err);
    }
    void *data = presto_arena_alloc(worker->options.arena, bytes, 64);
    if (data == NULL)
        return presto_fail_memory(err, bytes);
    *data_out = data;
    return PRESTO_OK;
}

void *presto_step_scratch(presto_step_context *context, size_t bytes) {
    return presto_arena_alloc(context->worker->options.arena, bytes, 64);
}

presto_status presto__step_borrow(presto_step_context *context, size_t bytes, presto_error *err) {
    if (bytes > 0 && !presto_arena_may_grow(context->worker->options.arena, bytes))
        return presto_fail_memory(err, bytes);
    return PRESTO_OK;
}

void presto__step_return(presto_step_context *context, size_t bytes) {
    const presto__plan_worker_options *options = &context->worker->options;
    if (bytes > 0 && options->on_return != NULL)
        options->on_return(options->arena->on_grow_user, bytes);
}

void presto_step_note(presto_step_context *context, const char *text) {
    const presto__plan_worker_options *options = &context->worker->options;
    if (options->on_note != NULL)
        options->on_note(options->on_note_user, context->type->name, text);
}

presto_rng *presto_step_rng(presto_step_context *context) {
    if (!context->rng_ready) {
        const presto__plan_worker *worker = context->worker;
        presto__rng_key key = {worker->run->seed, worker->run->epoch, worker->sample.number,
                               context->stream};
        presto__rng_init(&context->rng, &key);
        context->rng_ready = true;
    }
    return &context->rng;
}

void presto__step_moved(presto_step_context *context, const presto__geometry *geometry) {
    context->geometry = *geometry;
    context->has_moved = true;
}

void *presto_step_worker(presto_step_context *context) {
    return context->worker_state;
}

const void *presto_step_model(presto_step_context *context) {
    return context->model;
}

presto_buffer *presto_step_buffer(presto_step_context *context) {
    context->buffer.bytes = 0;
    return &context->buffer;
}

presto_status presto_step_text(presto_step_context *context, presto_span text,
                               presto_tensor *out_out, presto_error *err) {
    presto_span *span =
        presto_arena_alloc(context->worker->options.arena, sizeof *span, _Alignof(presto_span));
    if (span == NULL)
        return presto_fail_memory(err, sizeof *span);
    *span = text;
    *out_out = (presto_tensor){.spec = {.dtype = PRESTO_STRING}, .strings = span};
    return PRESTO_OK;
}

const presto_feature *presto_step_feature(presto_step_context *context, const char *name) {
    const presto_sample *sample = &context->worker->sample;
    if ((context->flags & PRESTO_STEP_READS_FEATURES) == 0)
        return NULL;
    size_t at = presto__plan_find_feature(sample, name, 0);
    return at == SIZE_MAX ? NULL : &sample->features[at];
}

presto_status presto_step_set_feature(presto_step_context *context, const char *name,
                                      const presto_tensor *value, presto_error *err) {
    presto__plan_worker *worker = context->worker;
    size_t at = presto__plan_find_feature(&worker->sample, name, 0);
    if ((context->flags & PRESTO_STEP_SETS_FEATURES) == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "sets the feature '%s' without saying so in its flags", name);
    if (at == context->target && at != SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "sets the feature '%s', which its output goes to", name);
    return presto__plan_put_feature(worker, at, name, value, err);
}

presto_status presto__plan_judge(presto_status status, presto_error *err) {
    bool is_samples = status == PRESTO_ERR_CORRUPT || status == PRESTO_ERR_TRUNCATED ||
                      status == PRESTO_ERR_TYPE || status == PRESTO_ERR_UNSUPPORTED ||
                      status == PRESTO_ERR_LIMIT;
    if (!is_samples || errno != ENOMEM)
        return status;
    return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "out of memory");
}

bool presto_step_is_cancelled(const presto_step_context *context) {
    const presto__plan_worker *worker = context->worker;
    return atomic_load_explicit(&worker->is_cancelled, memory_order_relaxed) ||
           (worker->options.should_stop != NULL &&
            worker->options.should_stop(worker->options.should_stop_user));
}

presto_status presto_step_read_file(presto_step_context *context, presto_span path,
                                    presto_span *bytes_out, presto_error *err) {
    const presto__plan_worker_options *options = &context->worker->options;
    if (options->read_file == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "files cannot be read here");
    return options->read_file(options->read_file_user, path, options->arena, bytes_out, err);
}
