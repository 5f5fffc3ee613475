/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: the steps between two representations, checked and grouped into stages. A stage is one
 * step, or a run of steps that ends in a crop and computes no more than the crop keeps.
 *
 * Why a fused stage gives the same bytes: a window step (step.h) promises that the content of its
 * window is what run() would have put there, shapes are known before the pixels, and the crop draws
 * from a generator that is keyed by its position in the pipeline, not by when it is asked. Must not
 * know: files, records, threads.
 */
#include <presto/clock.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline_internal.h"

/* Reading the clock for every sample may cost 1 / OVERHEAD_DIVISOR of the time; past that, samples
 * are left out. */
#define OVERHEAD_DIVISOR 50
#define CLOCK_NS 30
#define MAX_INTERVAL 64

typedef struct stage {
    size_t first; /* of the plan's steps */
    size_t count; /* more than 1: fused, the last one crops */
} stage;

struct presto_plan {
    const presto_pipeline *pipeline;
    size_t first_step; /* of the pipeline */
    size_t step_count;
    stage *stages;
    size_t stage_count;
    presto_tensor_spec output;
    bool is_random;
    char *explain;
};

static const presto__pipeline_step *step_at(const presto_plan *plan, size_t i) {
    return &plan->pipeline->steps[plan->first_step + i];
}

/* ---- planning ---- */

void presto_plan_options_defaults(presto_plan_options *options) {
    *options = (presto_plan_options){.no_fusion = false};
}

static presto_status fail_step(const presto__pipeline_step *step, const char *file,
                               presto_status status, presto_error *err) {
    char prefix[128];
    snprintf(prefix, sizeof prefix, "line %zu: step %s", step->line, step->type->name);
    presto__error_prefix(err, prefix);
    presto_error_set_file(err, file);
    return status;
}

static presto_status append_text(presto_buffer *out, const char *text, presto_error *err) {
    return presto_buffer_append(out, presto_span_of_text(text), err);
}

/* "resize-image     -> uint8[?,?,3], yields resized" */
static presto_status append_step(presto_buffer *out, const presto__pipeline_step *step,
                                 const presto_tensor_spec *spec, presto_error *err) {
    char name[64];
    char shape[PRESTO_SPEC_TEXT_BYTES];
    snprintf(name, sizeof name, "%-16s -> ", step->type->name);
    PRESTO_TRY(append_text(out, name, err));
    PRESTO_TRY(append_text(out, presto_spec_format(spec, shape, sizeof shape), err));
    if (step->type->random)
        PRESTO_TRY(append_text(out, ", random", err));
    if (step->yields == NULL)
        return PRESTO_OK;
    PRESTO_TRY(append_text(out, ", yields ", err));
    return append_text(out, step->yields, err);
}

/* Checks each step against the spec before it; writes a line of the explanation for each. */
static presto_status infer_steps(presto_plan *plan, presto_tensor_spec *spec, presto_buffer *lines,
                                 size_t *line_ends, presto_error *err) {
    for (size_t i = 0; i < plan->step_count; i++) {
        const presto__pipeline_step *step = step_at(plan, i);
        const presto_step_type *type = step->type;
        presto_tensor_spec out;
        if (type->unsupported != NULL) {
            presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "%s", type->unsupported);
            return fail_step(step, plan->pipeline->file, PRESTO_ERR_UNSUPPORTED, err);
        }
        presto_status status = type->infer(step->state, spec, &out, err);
        if (status < 0)
            return fail_step(step, plan->pipeline->file, status, err);
        *spec = out;
        plan->is_random = plan->is_random || type->random;
        PRESTO_TRY(append_step(lines, step, spec, err));
        line_ends[i] = lines->bytes;
    }
    return PRESTO_OK;
}

/*
 * The first step of the run that can be fused with the crop `last`; `last` itself if there is none.
 */
static size_t fused_from(const presto_plan *plan, size_t last, size_t least) {
    const presto_step_windows *crop = step_at(plan, last)->type->windows;
    if (crop == NULL || crop->select == NULL)
        return last;
    size_t first = last;
    while (first > least) {
        const presto_step_windows *windows = step_at(plan, first - 1)->type->windows;
        if (windows == NULL || windows->run_window == NULL)
            break;
        first--;
        if (windows->measure != NULL)
            break; /* what enters it is no image: nothing before it has windows */
    }
    return first;
}

static void group_stages(presto_plan *plan, const presto_plan_options *options) {
    size_t done = 0; /* steps before this one are in stages */
    for (size_t i = 0; i < plan->step_count; i++) {
        size_t first = options->no_fusion ? i : fused_from(plan, i, done);
        if (first < i) {
            /* The steps from `first` on stand in stages of their own so far. */
            plan->stage_count -= i - first;
            plan->stages[plan->stage_count++] = (stage){first, i - first + 1};
            done = i + 1;
        } else {
            plan->stages[plan->stage_count++] = (stage){i, 1};
        }
    }
}

/* The lines of one stage, each with what fusion does to its step. */
static presto_status explain_stage(const presto_plan *plan, const stage *group,
                                   const presto_buffer *lines, const size_t *line_ends,
                                   presto_buffer *out, presto_error *err) {
    size_t last = group->first + group->count - 1;
    for (size_t i = group->first; i <= last; i++) {
        size_t start = i == 0 ? 0 : line_ends[i - 1];
        presto_span line = presto_span_of(lines->data + start, line_ends[i] - start);
        PRESTO_TRY(presto_buffer_append(out, line, err));
        if (group->count > 1 && i == last) {
            PRESTO_TRY(append_text(out, " [fused: draws its window first]", err));
        } else if (group->count > 1) {
            PRESTO_TRY(append_text(out, " [fused: only what ", err));
            PRESTO_TRY(append_text(out, step_at(plan, last)->type->name, err));
            PRESTO_TRY(append_text(out, " keeps]", err));
        }
        PRESTO_TRY(append_text(out, "\n", err));
    }
    return PRESTO_OK;
}

static presto_status explain(const presto_plan *plan, const presto_tensor_spec *in,
                             const presto_buffer *lines, const size_t *line_ends,
                             presto_buffer *out, presto_error *err) {
    char shape[PRESTO_SPEC_TEXT_BYTES];
    char first[PRESTO_SPEC_TEXT_BYTES + 32];
    snprintf(first, sizeof first, "%-16s    %s\n", "input",
             presto_spec_format(in, shape, sizeof shape));
    PRESTO_TRY(append_text(out, first, err));
    for (size_t s = 0; s < plan->stage_count; s++)
        PRESTO_TRY(explain_stage(plan, &plan->stages[s], lines, line_ends, out, err));
    return presto_buffer_append(out, presto_span_of("", 1), err);
}

static presto_status plan_steps(presto_plan *plan, const presto_tensor_spec *in,
                                const presto_plan_options *options, presto_error *err) {
    plan->stages = calloc(plan->step_count + 1, sizeof *plan->stages);
    size_t *line_ends = calloc(plan->step_count + 1, sizeof *line_ends);
    if (plan->stages == NULL || line_ends == NULL) {
        free(line_ends);
        return presto_fail_memory(err, (plan->step_count + 1) * sizeof *plan->stages);
    }
    presto_buffer lines = {0};
    presto_buffer text = {0};
    plan->output = *in;
    presto_status status = infer_steps(plan, &plan->output, &lines, line_ends, err);
    if (status >= 0) {
        group_stages(plan, options);
        status = explain(plan, in, &lines, line_ends, &text, err);
    }
    plan->explain = (char *)text.data; /* presto_plan_free frees it, whole or not */
    presto_buffer_done(&lines);
    free(line_ends);
    return status;
}

presto_status presto_plan_new_with(const presto_pipeline *pipeline, size_t first_step,
                                   size_t last_step, const presto_tensor_spec *in,
                                   const presto_plan_options *options, presto_plan **plan_out,
                                   presto_error *err) {
    if (first_step > last_step || last_step > pipeline->step_count)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "steps %zu to %zu of a pipeline with %zu", first_step, last_step,
                           pipeline->step_count);
    presto_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return presto_fail_memory(err, sizeof *plan);
    plan->pipeline = pipeline;
    plan->first_step = first_step;
    plan->step_count = last_step - first_step;
    presto_status status = plan_steps(plan, in, options, err);
    if (status < 0) {
        presto_plan_free(plan);
        return status;
    }
    *plan_out = plan;
    return PRESTO_OK;
}

presto_status presto_plan_new(const presto_pipeline *pipeline, size_t first_step, size_t last_step,
                              const presto_tensor_spec *in, presto_plan **plan_out,
                              presto_error *err) {
    presto_plan_options options;
    presto_plan_options_defaults(&options);
    return presto_plan_new_with(pipeline, first_step, last_step, in, &options, plan_out, err);
}

void presto_plan_free(presto_plan *plan) {
    if (plan == NULL)
        return;
    free(plan->stages);
    free(plan->explain);
    free(plan);
}

size_t presto_plan_step_count(const presto_plan *plan) {
    return plan->step_count;
}

const char *presto_plan_step_name(const presto_plan *plan, size_t i) {
    return i < plan->step_count ? step_at(plan, i)->type->name : NULL;
}

const presto_tensor_spec *presto_plan_output(const presto_plan *plan) {
    return &plan->output;
}

bool presto_plan_is_random(const presto_plan *plan) {
    return plan->is_random;
}

const char *presto_plan_explain(const presto_plan *plan) {
    return plan->explain;
}

presto_status presto_plan_json(const presto_plan *plan, presto_buffer *text_out,
                               presto_error *err) {
    char *text = presto__steps_to_json(plan->pipeline, plan->first_step,
                                       plan->first_step + plan->step_count);
    if (text == NULL)
        return presto_fail_memory(err, 0);
    presto_status status = append_text(text_out, text, err);
    free(text);
    return status;
}

/* ---- running ---- */

/* Written by the worker's thread only; others may read at any time. */
typedef struct step_counters {
    _Atomic uint64_t samples;
    _Atomic uint64_t busy_ns;
    _Atomic uint64_t out_bytes;
} step_counters;

struct presto_plan_worker {
    const presto_plan *plan;
    size_t open_count; /* steps whose open_worker has succeeded */
    presto_step_context *contexts;
    step_counters *counters;
    presto_tensor_spec *specs; /* of a fused stage: specs[i] is what leaves step i, as a whole */
    presto_window *wanted;     /* of a fused stage: wanted[i] is needed of what leaves step i */

    uint64_t interval;  /* every interval-th sample is timed and stands for all of them */
    uint64_t countdown; /* samples until the next timed one */
    bool is_timed;      /* this sample */
    uint64_t last_ns;   /* the clock at the last mark of this sample */
};

static void add(_Atomic uint64_t *counter, uint64_t amount) {
    /* One writer: no read-modify-write is needed. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

/* Charge the time since the last mark to step i. */
static void mark(presto_plan_worker *worker, size_t i) {
    if (!worker->is_timed)
        return;
    uint64_t now = presto_clock_ns();
    add(&worker->counters[i].busy_ns, (now - worker->last_ns) * worker->interval);
    worker->last_ns = now;
}

static presto_status fail_run(presto_plan_worker *worker, size_t i, presto_status status,
                              presto_error *err) {
    presto__error_prefix(err, step_at(worker->plan, i)->type->name);
    return status;
}

static uint64_t tensor_volume(const presto_tensor *tensor) {
    if (tensor->spec.dtype != PRESTO_STRING)
        return presto_tensor_bytes(tensor);
    uint64_t bytes = 0;
    uint64_t count = presto_spec_elements(&tensor->spec);
    for (uint64_t i = 0; i < count; i++)
        bytes += tensor->strings[i].bytes;
    return bytes;
}

static void count_output(presto_plan_worker *worker, size_t i, const presto_tensor *out) {
    add(&worker->counters[i].samples, 1);
    add(&worker->counters[i].out_bytes, tensor_volume(out));
}

static presto_status run_single(presto_plan_worker *worker, size_t i, presto_tensor *tensor,
                                presto_error *err) {
    const presto__pipeline_step *step = step_at(worker->plan, i);
    presto_tensor out;
    presto_status status = step->type->run(step->state, &worker->contexts[i], tensor, &out, err);
    mark(worker, i);
    if (status < 0)
        return fail_run(worker, i, status, err);
    count_output(worker, i, &out);
    *tensor = out;
    return PRESTO_OK;
}

/* Forwards: the whole shapes, then the window that the crop keeps of the last of them. */
static presto_status measure_stage(presto_plan_worker *worker, const stage *group,
                                   const presto_tensor *tensor) {
    size_t crop = group->first + group->count - 1;
    const presto_tensor_spec *spec = &tensor->spec;
    for (size_t i = group->first; i < crop; i++) {
        const presto__pipeline_step *step = step_at(worker->plan, i);
        const presto_step_windows *windows = step->type->windows;
        presto_tensor_spec *out = &worker->specs[i];
        if (windows->measure != NULL) {
            PRESTO_TRY(windows->measure(step->state, &worker->contexts[i], tensor, out, NULL));
            mark(worker, i);
        } else {
            PRESTO_TRY(step->type->infer(step->state, spec, out, NULL));
        }
        spec = out;
    }
    const presto__pipeline_step *step = step_at(worker->plan, crop);
    presto_window kept;
    PRESTO_TRY(
        step->type->windows->select(step->state, &worker->contexts[crop], spec, &kept, NULL));
    mark(worker, crop);
    worker->specs[crop] = presto__window_spec(spec, &kept);
    worker->wanted[crop - 1] = kept;
    return PRESTO_OK;
}

/* Backwards: what each step has to compute. */
static void spread_window(presto_plan_worker *worker, const stage *group) {
    for (size_t i = group->first + group->count - 2; i > group->first; i--) {
        const presto__pipeline_step *step = step_at(worker->plan, i);
        const presto_step_windows *windows = step->type->windows;
        worker->wanted[i - 1] =
            windows->need != NULL
                ? windows->need(step->state, &worker->specs[i - 1], &worker->wanted[i])
                : worker->wanted[i];
    }
}

static bool same_window(const presto_window *a, const presto_window *b) {
    return a->y == b->y && a->x == b->x && a->height == b->height && a->width == b->width;
}

/* What the crop keeps, where the step before it could not give exactly that. */
static presto_status crop_part(presto_plan_worker *worker, size_t crop, const presto_part *part,
                               presto_tensor *out, presto_error *err) {
    void *data;
    PRESTO_TRY(presto_step_output(&worker->contexts[crop], &worker->specs[crop], &data, err));
    presto__window_copy(part, &worker->wanted[crop - 1], data);
    out->spec = worker->specs[crop];
    out->data = data;
    return PRESTO_OK;
}

static presto_status run_windows(presto_plan_worker *worker, const stage *group,
                                 presto_tensor *tensor, presto_error *err) {
    size_t crop = group->first + group->count - 1;
    presto_part part = {.tensor = *tensor, .whole = tensor->spec};
    if (tensor->spec.rank >= 2)
        part.window = (presto_window){0, 0, tensor->spec.dims[0], tensor->spec.dims[1]};
    for (size_t i = group->first; i < crop; i++) {
        const presto__pipeline_step *step = step_at(worker->plan, i);
        presto_step_context *context = &worker->contexts[i];
        presto_part out = {.whole = worker->specs[i]};
        /* The step before the crop writes the stage's output if its window is the crop's. */
        context->is_last = i + 1 == crop && worker->contexts[crop].is_last;
        context->hooked = &worker->specs[crop];
        presto_status status = step->type->windows->run_window(step->state, context, &part,
                                                               &worker->wanted[i], &out, err);
        mark(worker, i);
        if (status < 0)
            return fail_run(worker, i, status, err);
        count_output(worker, i, &out.tensor);
        part = out;
    }
    presto_tensor kept = part.tensor;
    if (!same_window(&part.window, &worker->wanted[crop - 1])) {
        presto_status status = crop_part(worker, crop, &part, &kept, err);
        mark(worker, crop);
        if (status < 0)
            return fail_run(worker, crop, status, err);
    }
    count_output(worker, crop, &kept);
    *tensor = kept;
    return PRESTO_OK;
}

/* One by one: what a stage that cannot be measured falls back to, so that the same step fails in
 * the same words. */
static presto_status run_plain(presto_plan_worker *worker, const stage *group,
                               presto_tensor *tensor, presto_error *err) {
    for (size_t i = group->first; i < group->first + group->count; i++) {
        worker->contexts[i].rng_ready = false;
        PRESTO_TRY(run_single(worker, i, tensor, err));
    }
    return PRESTO_OK;
}

static presto_status run_stage(presto_plan_worker *worker, const stage *group,
                               presto_tensor *tensor, presto_error *err) {
    if (group->count == 1 || measure_stage(worker, group, tensor) < 0)
        return run_plain(worker, group, tensor, err);
    spread_window(worker, group);
    return run_windows(worker, group, tensor, err);
}

static void start_sample(presto_plan_worker *worker, const presto_plan_run_options *options,
                         uint64_t *start_ns) {
    size_t count = worker->plan->step_count;
    for (size_t i = 0; i < count; i++) {
        worker->contexts[i].run = options;
        worker->contexts[i].rng_ready = false;
        worker->contexts[i].is_last = i + 1 == count;
        worker->contexts[i].hooked = NULL;
    }
    worker->is_timed = worker->countdown == 0;
    if (worker->is_timed)
        *start_ns = worker->last_ns = presto_clock_ns();
    else
        worker->countdown--;
}

/* How many samples the next timed one stands for, so that the clock costs little. */
static void finish_timing(presto_plan_worker *worker, uint64_t start_ns) {
    if (!worker->is_timed)
        return;
    uint64_t cost_ns = (worker->plan->step_count + 1) * CLOCK_NS * OVERHEAD_DIVISOR;
    uint64_t took_ns = worker->last_ns - start_ns;
    uint64_t interval = took_ns > 0 ? cost_ns / took_ns + 1 : MAX_INTERVAL;
    worker->interval = interval < MAX_INTERVAL ? interval : MAX_INTERVAL;
    worker->countdown = worker->interval - 1;
}

presto_status presto_plan_run(presto_plan_worker *worker, const presto_plan_run_options *options,
                              presto_tensor *tensor, presto_error *err) {
    const presto_plan *plan = worker->plan;
    uint64_t start_ns = 0;
    if (plan->step_count == 0)
        return PRESTO_OK;
    start_sample(worker, options, &start_ns);
    presto_tensor work = *tensor;
    for (size_t s = 0; s < plan->stage_count; s++)
        PRESTO_TRY(run_stage(worker, &plan->stages[s], &work, err));
    finish_timing(worker, start_ns);
    *tensor = work;
    return PRESTO_OK;
}

presto_step_stats presto_plan_worker_stats(const presto_plan_worker *worker, size_t i) {
    presto_step_stats stats = {0};
    if (i >= worker->plan->step_count)
        return stats;
    step_counters *counters = &worker->counters[i];
    stats.samples = atomic_load_explicit(&counters->samples, memory_order_relaxed);
    stats.busy_ns = atomic_load_explicit(&counters->busy_ns, memory_order_relaxed);
    stats.out_bytes = atomic_load_explicit(&counters->out_bytes, memory_order_relaxed);
    return stats;
}

static presto_status open_steps(presto_plan_worker *worker, presto_error *err) {
    size_t count = worker->plan->step_count;
    worker->contexts = presto_memory_apart(count + 1, sizeof *worker->contexts);
    worker->counters = presto_memory_apart(count + 1, sizeof *worker->counters);
    worker->specs = presto_memory_apart(count + 1, sizeof *worker->specs);
    worker->wanted = presto_memory_apart(count + 1, sizeof *worker->wanted);
    if (worker->contexts == NULL || worker->counters == NULL || worker->specs == NULL ||
        worker->wanted == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *worker->contexts);
    for (; worker->open_count < count; worker->open_count++) {
        size_t i = worker->open_count;
        const presto__pipeline_step *step = step_at(worker->plan, i);
        if (step->type->open_worker == NULL)
            continue;
        presto_status status =
            step->type->open_worker(step->state, &worker->contexts[i].worker_state, err);
        if (status < 0)
            return fail_run(worker, i, status, err);
    }
    return PRESTO_OK;
}

presto_status presto_plan_worker_new(const presto_plan *plan, presto_arena *arena,
                                     presto_read_file_fn read_file, void *read_file_user,
                                     presto_plan_worker **worker_out, presto_error *err) {
    presto_plan_worker *worker = presto_memory_apart(1, sizeof *worker);
    if (worker == NULL)
        return presto_fail_memory(err, sizeof *worker);
    worker->plan = plan;
    worker->interval = 1;
    presto_status status = open_steps(worker, err);
    if (status < 0) {
        presto_plan_worker_free(worker);
        return status;
    }
    for (size_t i = 0; i < plan->step_count; i++) {
        worker->contexts[i].arena = arena;
        worker->contexts[i].read_file = read_file;
        worker->contexts[i].read_file_user = read_file_user;
        worker->contexts[i].stream = plan->first_step + i;
    }
    *worker_out = worker;
    return PRESTO_OK;
}

void presto_plan_worker_free(presto_plan_worker *worker) {
    if (worker == NULL)
        return;
    for (size_t i = 0; i < worker->open_count; i++) {
        const presto__pipeline_step *step = step_at(worker->plan, i);
        if (step->type->close_worker != NULL)
            step->type->close_worker(worker->contexts[i].worker_state);
    }
    free(worker->contexts);
    free(worker->counters);
    free(worker->specs);
    free(worker->wanted);
    free(worker);
}
