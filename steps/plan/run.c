/* SPDX-License-Identifier: Apache-2.0 */
/* Running a plan on one sample: stage after stage, each on the feature that its steps work on. */
#include <errno.h>

#include "../../base/options_internal.h"
#include "../pipelines_internal.h"
#include "plan_internal.h"

/* Position of the feature that step i reads. */
static presto_status find_input(presto__plan_worker *worker, size_t i, size_t *at_out,
                                presto_error *err) {
    const char *name = presto__plan_step(worker->plan, i)->reads;
    presto_step_context *context = &worker->contexts[i];
    size_t at = name == NULL ? worker->run->main
                             : presto__plan_find_feature(&worker->sample, name, context->hint);
    if (at == SIZE_MAX) {
        presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "the sample has no feature \"%s\"",
                    name == NULL ? "(the main one)" : name);
        return presto__plan_fail(worker, i, PRESTO_ERR_TYPE, err);
    }
    context->hint = at;
    *at_out = at;
    return PRESTO_OK;
}

static size_t find_target(presto__plan_worker *worker, size_t i, size_t input) {
    const char *name = presto__plan_step(worker->plan, i)->writes;
    return name == NULL ? input : presto__plan_find_feature(&worker->sample, name, input);
}

static presto_status call(presto__plan_worker *worker, size_t i, const presto_tensor *in,
                          presto_tensor *out, presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(worker->plan, i);
    presto_step_context *context = &worker->contexts[i];
    bool is_serial = (step->flags & PRESTO_STEP_SERIAL) != 0;
    if (is_serial)
        pthread_mutex_lock(&worker->plan->turns[i]);
    errno = 0;
    presto_status status =
        presto__plan_judge(step->type->run(step->state, context, in, out, err), err);
    if (is_serial)
        pthread_mutex_unlock(&worker->plan->turns[i]);
    return status;
}

static presto_status run_step(presto__plan_worker *worker, size_t i, presto_error *err) {
    size_t input;
    presto_tensor out;
    PRESTO_TRY(find_input(worker, i, &input, err));
    presto_step_context *context = &worker->contexts[i];
    context->target = find_target(worker, i, input);
    context->rng_ready = false;
    presto_tensor in = worker->sample.features[input].tensor;
    presto_status status = call(worker, i, &in, &out, err);
    presto__timing_mark(worker, i);
    if (status == PRESTO_DROP) {
        presto__count(&worker->counters[i].samples, 1);
        presto__count(&worker->counters[i].dropped, 1);
        return PRESTO_DROP;
    }
    if (status < 0)
        return presto__plan_fail(worker, i, status, err);
    presto__count_output(worker, i, &out);
    PRESTO_TRY(presto__plan_put_feature(worker, context->target,
                                        presto__plan_step(worker->plan, i)->writes, &out, err));
    return presto__plan_follow(worker, i, err);
}

/* Step by step, for a stage that cannot be measured: the same step then fails with the same
 * message. */
static presto_status run_alone(presto__plan_worker *worker, const presto__plan_stage *group,
                               presto_error *err) {
    for (size_t i = group->first; i < group->first + group->count; i++) {
        presto_status status = run_step(worker, i, err);
        if (status != PRESTO_OK)
            return status;
        if (group->count > 1)
            presto__count(&worker->counters[i].unfused, 1);
    }
    return PRESTO_OK;
}

static presto_status run_stage(presto__plan_worker *worker, const presto__plan_stage *group,
                               presto_error *err) {
    size_t at;
    if (group->count == 1)
        return run_alone(worker, group, err);
    PRESTO_TRY(find_input(worker, group->first, &at, err));
    presto_tensor value = worker->sample.features[at].tensor;
    for (size_t i = group->first; i < group->first + group->count; i++)
        worker->contexts[i].target = at;
    if (presto__windows_measure(worker, group, &value) < 0)
        return run_alone(worker, group, err);
    PRESTO_TRY(presto__windows_run(worker, group, &value, err));
    PRESTO_TRY(presto__plan_put_feature(worker, at, NULL, &value, err));
    for (size_t i = group->first; i < group->first + group->count; i++)
        PRESTO_TRY(presto__plan_follow(worker, i, err));
    return PRESTO_OK;
}

static presto_status start_sample(presto__plan_worker *worker,
                                  const presto__plan_run_options *options,
                                  const presto_sample *sample, presto_error *err) {
    const presto_plan *plan = worker->plan;
    size_t count = plan->step_count;
    PRESTO_TRY(presto__plan_take_sample(worker, sample, err));
    worker->run = options;
    for (size_t i = 0; i < count; i++) {
        worker->contexts[i].rng_ready = false;
        worker->contexts[i].has_moved = false;
        worker->contexts[i].is_last = i + 1 == count && !plan->last_is_followed;
        worker->contexts[i].row_spec = NULL;
    }
    presto__timing_start(worker);
    return PRESTO_OK;
}

void presto__plan_run_options_init(presto__plan_run_options *options, size_t struct_bytes) {
    const presto__plan_run_options defaults = {0};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

presto_status presto__plan_run(presto__plan_worker *worker, const presto__plan_run_options *options,
                               presto_sample *sample, presto_error *err) {
    presto__plan_run_options taken;
    const presto_plan *plan = worker->plan;
    if (plan->step_count == 0)
        return PRESTO_OK;
    if (options == NULL || options->struct_bytes != sizeof taken) {
        presto__plan_run_options_defaults(&taken);
        PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
        options = &taken;
    }
    if (worker->owns_arena)
        presto_arena_reset(&worker->arena);
    PRESTO_TRY(start_sample(worker, options, sample, err));
    for (size_t s = 0; s < plan->stage_count; s++) {
        presto_status status = run_stage(worker, &plan->stages[s], err);
        if (status != PRESTO_OK)
            return status;
    }
    presto__timing_finish(worker);
    *sample = worker->sample;
    return PRESTO_OK;
}
