/* SPDX-License-Identifier: Apache-2.0 */
/* Running a plan on one sample: stage after stage, each on the feature that its steps work on. */
#include <stdlib.h>

#include "plan_internal.h"

size_t presto__plan_find_feature(const presto_sample *sample, const char *name, size_t hint) {
    presto_span wanted = presto_span_of_text(name);
    if (hint < sample->feature_count && presto_span_equal(sample->features[hint].name, wanted))
        return hint;
    return presto_sample_find(sample, wanted);
}

static presto_status reserve_features(presto_plan_worker *worker, size_t count, presto_error *err) {
    if (count <= worker->feature_capacity)
        return PRESTO_OK;
    size_t capacity = count + 8;
    presto_feature *features = realloc(worker->features, capacity * sizeof *features);
    if (features == NULL)
        return presto_fail_memory(err, capacity * sizeof *features);
    worker->features = worker->sample.features = features;
    worker->feature_capacity = capacity;
    return PRESTO_OK;
}

presto_status presto__plan_put_feature(presto_plan_worker *worker, size_t at, const char *name,
                                       const presto_tensor *value, presto_error *err) {
    if (at == SIZE_MAX) {
        at = worker->sample.feature_count;
        PRESTO_TRY(reserve_features(worker, at + 1, err));
        worker->features[at] = (presto_feature){.name = presto_span_of_text(name)};
        worker->sample.feature_count = at + 1;
    }
    presto_feature *feature = &worker->features[at];
    feature->tensor = *value;
    feature->encoding =
        value->spec.dtype == PRESTO_STRING ? PRESTO_ENCODE_BYTES : PRESTO_ENCODE_TENSOR;
    worker->is_wide = worker->is_wide || at != worker->run->main;
    return PRESTO_OK;
}

presto_status presto__plan_fail(presto_plan_worker *worker, size_t i, presto_status status,
                                presto_error *err) {
    presto__error_prefix(err, presto__plan_step(worker->plan, i)->type->name);
    return status;
}

/* Where the feature stands that step i reads. */
static presto_status find_input(presto_plan_worker *worker, size_t i, size_t *at_out,
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

static size_t find_target(presto_plan_worker *worker, size_t i, size_t input) {
    const char *name = presto__plan_step(worker->plan, i)->writes;
    return name == NULL ? input : presto__plan_find_feature(&worker->sample, name, input);
}

static presto_status call(presto_plan_worker *worker, size_t i, const presto_tensor *in,
                          presto_tensor *out, presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(worker->plan, i);
    presto_step_context *context = &worker->contexts[i];
    if ((step->type->flags & PRESTO_STEP_SERIAL) == 0)
        return step->type->run(step->state, context, in, out, err);
    pthread_mutex_lock(&worker->plan->turns[i]);
    presto_status status = step->type->run(step->state, context, in, out, err);
    pthread_mutex_unlock(&worker->plan->turns[i]);
    return status;
}

static presto_status run_step(presto_plan_worker *worker, size_t i, presto_error *err) {
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
    return presto__plan_put_feature(worker, context->target,
                                    presto__plan_step(worker->plan, i)->writes, &out, err);
}

/* One by one: what a stage that cannot be measured falls back to, so that the same step fails in
 * the same words. */
static presto_status run_alone(presto_plan_worker *worker, const presto__stage *group,
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

static presto_status run_stage(presto_plan_worker *worker, const presto__stage *group,
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
    return presto__plan_put_feature(worker, at, NULL, &value, err);
}

/* The steps work on a copy of the array of features, so that a failure leaves the caller's alone.
 */
static presto_status start_sample(presto_plan_worker *worker,
                                  const presto_plan_run_options *options,
                                  const presto_sample *sample, presto_error *err) {
    size_t count = worker->plan->step_count;
    PRESTO_TRY(reserve_features(worker, sample->feature_count, err));
    if (sample->feature_count > 0)
        memcpy(worker->features, sample->features,
               sample->feature_count * sizeof *worker->features);
    worker->sample = *sample;
    worker->sample.features = worker->features;
    worker->run = options;
    worker->is_wide = false;
    for (size_t i = 0; i < count; i++) {
        worker->contexts[i].rng_ready = false;
        worker->contexts[i].is_last = i + 1 == count;
        worker->contexts[i].hooked = NULL;
    }
    presto__timing_start(worker);
    return PRESTO_OK;
}

presto_status presto_plan_run(presto_plan_worker *worker, const presto_plan_run_options *options,
                              presto_sample *sample, presto_error *err) {
    const presto_plan *plan = worker->plan;
    if (plan->step_count == 0)
        return PRESTO_OK;
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
