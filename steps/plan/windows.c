/* SPDX-License-Identifier: Apache-2.0 */
/* Stages of several steps that end in a crop, perhaps one that resizes: which steps belong to one,
 * and how they compute only what the crop keeps. */
#include <errno.h>

#include "../pipelines_internal.h"
#include "plan_internal.h"

/* Do both work on the same feature, in place? */
static bool same_feature(const presto__pipeline_step *a, const presto__pipeline_step *b) {
    if (a->writes != NULL || b->writes != NULL)
        return false;
    if (a->reads == NULL || b->reads == NULL)
        return a->reads == b->reads;
    return strcmp(a->reads, b->reads) == 0;
}

/*
 * The first step of the run that can be fused with the crop `last`; `last` itself if there is none.
 */
static size_t fused_from(const presto_plan *plan, size_t last, size_t least) {
    const presto__pipeline_step *crop = presto__plan_step(plan, last);
    if (crop->type->windows == NULL || crop->type->windows->select == NULL)
        return last;
    size_t first = last;
    while (first > least) {
        const presto__pipeline_step *before = presto__plan_step(plan, first - 1);
        const presto_step_windows *windows = before->type->windows;
        if (windows == NULL || windows->run_window == NULL || windows->select != NULL ||
            !same_feature(before, crop))
            break;
        first--;
        if (windows->measure != NULL)
            break; /* its input is no image: nothing before it has windows */
    }
    return first;
}

void presto__plan_group(presto_plan *plan, bool no_fusion) {
    size_t done = 0; /* steps before this one are in stages */
    for (size_t i = 0; i < plan->step_count; i++) {
        size_t first = no_fusion ? i : fused_from(plan, i, done);
        if (!no_fusion && i + 1 < plan->step_count &&
            presto__pipeline_only_indexes(plan->pipeline, plan->first_step + i))
            continue; /* what it gives is not stored */
        if (first < i) {
            /* So far each step from `first` on has a stage of its own: join them. */
            plan->stage_count -= i - first;
            plan->stages[plan->stage_count++] = (presto__plan_stage){first, i - first + 1};
            done = i + 1;
        } else {
            plan->stages[plan->stage_count++] = (presto__plan_stage){i, 1};
        }
    }
}

/* Forwards: the whole shapes, then the window that the crop keeps of the last one. */
static presto_status measure(presto__plan_worker *worker, const presto__plan_stage *group,
                             const presto_tensor *tensor) {
    size_t crop = group->first + group->count - 1;
    const presto_tensor_spec *spec = &tensor->spec;
    for (size_t i = group->first; i < crop; i++) {
        const presto__pipeline_step *step = presto__plan_step(worker->plan, i);
        const presto_step_windows *windows = step->type->windows;
        presto_tensor_spec *out = &worker->specs[i];
        if (windows->measure != NULL) {
            PRESTO_TRY(windows->measure(step->state, &worker->contexts[i], tensor, out, NULL));
            presto__timing_mark(worker, i);
        } else {
            PRESTO_TRY(step->type->infer(step->state, spec, out, NULL));
        }
        spec = out;
    }
    const presto__pipeline_step *step = presto__plan_step(worker->plan, crop);
    presto_window kept;
    PRESTO_TRY(
        step->type->windows->select(step->state, &worker->contexts[crop], spec, &kept, NULL));
    presto__timing_mark(worker, crop);
    worker->wanted[crop - 1] = kept;
    if (step->type->windows->run_window != NULL)
        return step->type->infer(step->state, spec, &worker->specs[crop], NULL);
    worker->specs[crop] = presto__window_spec(spec, &kept);
    return PRESTO_OK;
}

/* Backwards: what each step has to compute. */
static void spread(presto__plan_worker *worker, const presto__plan_stage *group) {
    for (size_t i = group->first + group->count - 2; i > group->first; i--) {
        const presto__pipeline_step *step = presto__plan_step(worker->plan, i);
        const presto_step_windows *windows = step->type->windows;
        worker->wanted[i - 1] =
            windows->need != NULL
                ? windows->need(step->state, &worker->specs[i - 1], &worker->wanted[i])
                : worker->wanted[i];
    }
}

presto_status presto__windows_measure(presto__plan_worker *worker, const presto__plan_stage *group,
                                      const presto_tensor *tensor) {
    PRESTO_TRY(measure(worker, group, tensor));
    spread(worker, group);
    return PRESTO_OK;
}

static bool same_window(const presto_window *a, const presto_window *b) {
    return a->y == b->y && a->x == b->x && a->height == b->height && a->width == b->width;
}

static presto_part whole_of(const presto_tensor *tensor) {
    presto_part part = {.tensor = *tensor, .whole = tensor->spec};
    if (tensor->spec.rank >= 2)
        part.window = (presto_window){0, 0, tensor->spec.dims[0], tensor->spec.dims[1]};
    return part;
}

/* The steps before the last one; *part is their input before, and their output after. */
static presto_status run_parts(presto__plan_worker *worker, const presto__plan_stage *group,
                               presto_part *part, presto_error *err) {
    size_t last = group->first + group->count - 1;
    bool only_crops = presto__plan_step(worker->plan, last)->type->windows->run_window == NULL;
    for (size_t i = group->first; i < last; i++) {
        const presto__pipeline_step *step = presto__plan_step(worker->plan, i);
        presto_step_context *context = &worker->contexts[i];
        presto_part out = {.whole = worker->specs[i], .window = worker->wanted[i]};
        /* The step before the crop writes the stage's output if its window is the crop's. */
        context->is_last = only_crops && i + 1 == last && worker->contexts[last].is_last;
        context->row_spec = &worker->specs[last];
        errno = 0;
        presto_status status = presto__plan_judge(
            step->type->windows->run_window(step->state, context, part, &out, err), err);
        presto__timing_mark(worker, i);
        if (status < 0)
            return presto__plan_fail(worker, i, status, err);
        presto__count_output(worker, i, &out.tensor);
        *part = out;
    }
    return PRESTO_OK;
}

/* Cut the crop's window out, if the step before could not deliver exactly that. */
static presto_status crop_part(presto__plan_worker *worker, size_t crop, const presto_part *part,
                               presto_tensor *out, presto_error *err) {
    void *data;
    *out = part->tensor;
    if (same_window(&part->window, &worker->wanted[crop - 1]))
        return PRESTO_OK;
    PRESTO_TRY(presto_step_output(&worker->contexts[crop], &worker->specs[crop], &data, err));
    presto__window_copy(part, &worker->wanted[crop - 1], data);
    out->spec = worker->specs[crop];
    out->data = data;
    return PRESTO_OK;
}

/* A step that makes its output from the window that it selected. */
static presto_status run_last(presto__plan_worker *worker, size_t last, const presto_part *part,
                              presto_tensor *tensor, presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(worker->plan, last);
    const presto_tensor_spec *spec = &worker->specs[last];
    presto_part out = {.whole = *spec, .window = {0, 0, spec->dims[0], spec->dims[1]}};
    presto_step_context *context = &worker->contexts[last];
    errno = 0;
    PRESTO_TRY(presto__plan_judge(
        step->type->windows->run_window(step->state, context, part, &out, err), err));
    *tensor = out.tensor;
    return PRESTO_OK;
}

presto_status presto__windows_run(presto__plan_worker *worker, const presto__plan_stage *group,
                                  presto_tensor *tensor, presto_error *err) {
    size_t last = group->first + group->count - 1;
    const presto_step_windows *windows = presto__plan_step(worker->plan, last)->type->windows;
    presto_part part = whole_of(tensor);
    presto_tensor kept;
    PRESTO_TRY(run_parts(worker, group, &part, err));
    presto_status status = windows->run_window != NULL ? run_last(worker, last, &part, &kept, err)
                                                       : crop_part(worker, last, &part, &kept, err);
    presto__timing_mark(worker, last);
    if (status < 0)
        return presto__plan_fail(worker, last, status, err);
    presto__count_output(worker, last, &kept);
    *tensor = kept;
    return PRESTO_OK;
}
