/* SPDX-License-Identifier: Apache-2.0 */
/* A plan's state in one thread: what its steps opened for it. */
#include <stdlib.h>

#include "../../base/memory_internal.h"
#include "../../base/options_internal.h"
#include "../pipelines_internal.h"
#include "plan_internal.h"

static presto_status allocate(presto__plan_worker *worker, presto_error *err) {
    size_t count = worker->plan->step_count + 1;
    worker->contexts = presto__memory_apart(count, sizeof *worker->contexts);
    worker->counters = presto__memory_apart(count, sizeof *worker->counters);
    worker->specs = presto__memory_apart(count, sizeof *worker->specs);
    worker->wanted = presto__memory_apart(count, sizeof *worker->wanted);
    if (worker->contexts == NULL || worker->counters == NULL || worker->specs == NULL ||
        worker->wanted == NULL)
        return presto_fail_memory(err, count * sizeof *worker->contexts);
    return PRESTO_OK;
}

static presto_status open_steps(presto__plan_worker *worker, presto_error *err) {
    const presto_plan *plan = worker->plan;
    for (; worker->open_count < plan->step_count; worker->open_count++) {
        size_t i = worker->open_count;
        const presto__pipeline_step *step = presto__plan_step(plan, i);
        presto_step_context *context = &worker->contexts[i];
        context->worker = worker;
        context->type = step->type;
        context->flags = step->flags;
        context->model = plan->models[i];
        context->stream = presto__pipeline_position(plan->pipeline, plan->first_step + i);
        if (step->type->open_worker == NULL)
            continue;
        presto_status status =
            step->type->open_worker(step->state, plan->models[i], &context->worker_state, err);
        if (status < 0)
            return presto__plan_fail(worker, i, status, err);
    }
    return PRESTO_OK;
}

void presto__plan_worker_options_init(presto__plan_worker_options *options, size_t struct_bytes) {
    const presto__plan_worker_options defaults = {0};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

presto_status presto__plan_worker_new(const presto_plan *plan,
                                      const presto__plan_worker_options *options,
                                      presto__plan_worker **worker_out, presto_error *err) {
    presto__plan_worker_options taken;
    presto__plan_worker_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    presto__plan_worker *worker = presto__memory_apart(1, sizeof *worker);
    if (worker == NULL)
        return presto_fail_memory(err, sizeof *worker);
    worker->plan = plan;
    worker->options = taken;
    worker->owns_arena = worker->options.arena == NULL;
    if (worker->owns_arena)
        worker->options.arena = &worker->arena;
    worker->interval = 1;
    presto_status status = allocate(worker, err);
    if (status >= 0)
        status = open_steps(worker, err);
    if (status < 0) {
        presto__plan_worker_free(worker);
        return status;
    }
    *worker_out = worker;
    return PRESTO_OK;
}

void presto__plan_worker_free(presto__plan_worker *worker) {
    if (worker == NULL)
        return;
    for (size_t i = 0; i < worker->open_count; i++) {
        const presto_step_type *type = worker->contexts[i].type;
        if (type->close_worker != NULL)
            type->close_worker(worker->contexts[i].worker_state);
        presto_buffer_done(&worker->contexts[i].buffer);
    }
    free(worker->contexts);
    free(worker->counters);
    free(worker->specs);
    free(worker->wanted);
    free(worker->features);
    presto_arena_done(&worker->arena);
    free(worker);
}

size_t presto__plan_worker_memory(const presto__plan_worker *worker) {
    size_t bytes = 0;
    for (size_t i = 0; worker != NULL && i < worker->open_count; i++)
        bytes += worker->contexts[i].buffer.capacity;
    return bytes;
}

void presto__plan_worker_cancel(presto__plan_worker *worker) {
    if (worker == NULL)
        return;
    atomic_store(&worker->is_cancelled, true);
    for (size_t i = 0; i < worker->open_count; i++) {
        const presto_step_type *type = worker->contexts[i].type;
        if (type->cancel != NULL)
            type->cancel(worker->contexts[i].worker_state);
    }
}
