/* SPDX-License-Identifier: Apache-2.0 */
/* Makes plans: which steps run, each checked against its input, with their models. */
#include <stdio.h>
#include <stdlib.h>

#include "../../base/options_internal.h"
#include "../pipelines_internal.h"
#include "plan_internal.h"

static presto_status fail_step(const presto_plan *plan, size_t i, presto_status status,
                               presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(plan, i);
    char prefix[128];
    if (err != NULL && err->file[0] != '\0') /* a file that the step reads: it has lines, too */
        snprintf(prefix, sizeof prefix, "step %s", step->type->name);
    else
        snprintf(prefix, sizeof prefix, "line %zu: step %s", step->line, step->type->name);
    presto__error_prefix(err, prefix);
    presto_error_set_file(err, plan->pipeline->file);
    return status;
}

static presto_status load_model(presto_plan *plan, size_t i, presto_tensor_spec *out_io,
                                presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(plan, i);
    plan->loaded_count = i + 1;
    return step->type->load == NULL ? PRESTO_OK
                                    : step->type->load(step->state, out_io, &plan->models[i], err);
}

/* The spec of the feature that step i reads; that of the main feature is *main_spec. */
static presto_tensor_spec spec_of_input(const presto_plan *plan, size_t i,
                                        const presto_tensor_spec *main_spec) {
    return presto__plan_step(plan, i)->reads == NULL ? *main_spec : presto__spec_unknown();
}

/* Only who names a pipeline lets it run programs. */
static presto_status check_may_run(const presto_plan *plan, size_t i, presto_error *err) {
    if ((presto__plan_step(plan, i)->flags & PRESTO_STEP_RUNS_PROGRAM) == 0 ||
        plan->pipeline->runs_code)
        return PRESTO_OK;
    presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                "it runs a program, and this pipeline has not been named with --pipeline: give "
                "--allow-commands if you trust it");
    return fail_step(plan, i, PRESTO_ERR_UNSUPPORTED, err);
}

/* Only its input is known after such a step, until it is stored. */
static presto_status check_regroups(const presto_plan *plan, size_t i, presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(plan, i);
    const char *wrong = NULL;
    if (i + 1 < plan->step_count)
        wrong = "makes other samples: store what it gives first, then go on from there";
    else if (step->reads != NULL || step->writes != NULL)
        wrong = "makes samples of the main feature, so that reads and writes mean nothing";
    if (wrong == NULL)
        return PRESTO_OK;
    (void)presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "%s", wrong);
    return fail_step(plan, i, PRESTO_ERR_TYPE, err);
}

/* Checks each step against the spec before it; writes a line of the explanation for each. */
static presto_status infer_steps(presto_plan *plan, presto_buffer *lines, size_t *line_ends,
                                 presto_error *err) {
    for (size_t i = 0; i < plan->step_count; i++) {
        const presto__pipeline_step *step = presto__plan_step(plan, i);
        const presto_step_type *type = step->type;
        if (type->unsupported != NULL) {
            presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "%s", type->unsupported);
            return fail_step(plan, i, PRESTO_ERR_UNSUPPORTED, err);
        }
        PRESTO_TRY(check_may_run(plan, i, err));
        if ((type->flags & PRESTO_STEP_REGROUPS) != 0)
            PRESTO_TRY(check_regroups(plan, i, err));
        presto_tensor_spec in = spec_of_input(plan, i, &plan->output);
        presto_tensor_spec out;
        presto_status status = type->infer(step->state, &in, &out, err);
        if (status >= 0)
            status = load_model(plan, i, &out, err);
        if (status < 0)
            return fail_step(plan, i, status, err);
        plan->inputs[i] = in;
        plan->outputs[i] = out;
        if (step->reads == NULL && step->writes == NULL)
            plan->output = out;
        plan->flags |= step->flags;
        PRESTO_TRY(presto__plan_describe_step(plan, i, &out, lines, err));
        line_ends[i] = lines->bytes;
    }
    return PRESTO_OK;
}

static presto_status allocate(presto_plan *plan, presto_error *err) {
    size_t count = plan->step_count + 1;
    plan->stages = calloc(count, sizeof *plan->stages);
    plan->inputs = calloc(count, sizeof *plan->inputs);
    plan->outputs = calloc(count, sizeof *plan->outputs);
    plan->models = calloc(count, sizeof *plan->models);
    plan->turns = calloc(count, sizeof(pthread_mutex_t));
    if (plan->stages == NULL || plan->inputs == NULL || plan->outputs == NULL ||
        plan->models == NULL || plan->turns == NULL)
        return presto_fail_memory(err, count * sizeof(pthread_mutex_t));
    for (; plan->turn_count < plan->step_count; plan->turn_count++) {
        int failed = pthread_mutex_init(&plan->turns[plan->turn_count], NULL);
        if (failed != 0)
            return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    return PRESTO_OK;
}

static presto_status plan_steps(presto_plan *plan, const presto__plan_options *options,
                                presto_error *err) {
    PRESTO_TRY(allocate(plan, err));
    size_t *line_ends = calloc(plan->step_count + 1, sizeof *line_ends);
    if (line_ends == NULL)
        return presto_fail_memory(err, (plan->step_count + 1) * sizeof *line_ends);
    presto_buffer lines = {0};
    plan->output = *options->in;
    presto_status status = infer_steps(plan, &lines, line_ends, err);
    if (status >= 0) {
        presto__plan_group(plan, options->no_fusion);
        if (plan->stage_count > 0) {
            const presto__plan_stage *last = &plan->stages[plan->stage_count - 1];
            for (size_t i = last->first; i < last->first + last->count; i++)
                plan->last_is_followed |= presto__plan_step(plan, i)->follow != NULL;
        }
        status = presto__plan_explain(plan, options->in, &lines, line_ends, err);
    }
    presto_buffer_done(&lines);
    free(line_ends);
    return status;
}

void presto__plan_options_init(presto__plan_options *options, size_t struct_bytes) {
    const presto__plan_options defaults = {.last_step = SIZE_MAX};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

presto_status presto__plan_new(const presto_pipeline *pipeline, const presto__plan_options *given,
                               presto_plan **plan_out, presto_error *err) {
    presto__plan_options options;
    presto__plan_options_defaults(&options);
    PRESTO_TRY(presto__options_take(&options, sizeof options, given, err));
    if (options.last_step == SIZE_MAX)
        options.last_step = pipeline->step_count;
    if (options.in == NULL)
        options.in = &pipeline->source_output;
    if (options.first_step > options.last_step || options.last_step > pipeline->step_count)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "steps %zu to %zu of a pipeline with %zu", options.first_step,
                           options.last_step, pipeline->step_count);
    presto_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return presto_fail_memory(err, sizeof *plan);
    plan->pipeline = pipeline;
    plan->first_step = options.first_step;
    plan->step_count = options.last_step - options.first_step;
    presto_status status = plan_steps(plan, &options, err);
    if (status < 0) {
        presto__plan_free(plan);
        return status;
    }
    *plan_out = plan;
    return PRESTO_OK;
}

void presto__plan_free(presto_plan *plan) {
    if (plan == NULL)
        return;
    for (size_t i = 0; i < plan->loaded_count; i++) {
        const presto_step_type *type = presto__plan_step(plan, i)->type;
        if (type->unload != NULL && plan->models[i] != NULL)
            type->unload(plan->models[i]);
    }
    for (size_t i = 0; i < plan->turn_count; i++)
        pthread_mutex_destroy(&plan->turns[i]);
    free(plan->models);
    free(plan->turns);
    free(plan->stages);
    free(plan->inputs);
    free(plan->outputs);
    free(plan->explain);
    free(plan);
}

size_t presto_plan_step_count(const presto_plan *plan) {
    return plan->step_count;
}

const char *presto__plan_step_name(const presto_plan *plan, size_t i) {
    return i < plan->step_count ? presto__plan_step(plan, i)->type->name : NULL;
}

unsigned presto_plan_step_flags(const presto_plan *plan, size_t i) {
    return i < plan->step_count ? presto__plan_step(plan, i)->flags : 0;
}

const char *presto__plan_step_reads(const presto_plan *plan, size_t i) {
    return i < plan->step_count ? presto__plan_step(plan, i)->reads : NULL;
}

const presto_tensor_spec *presto__plan_output(const presto_plan *plan) {
    return &plan->output;
}

unsigned presto__plan_flags(const presto_plan *plan) {
    return plan->flags;
}

const char *presto_plan_explain(const presto_plan *plan) {
    return plan->explain;
}

presto_status presto__plan_json(const presto_plan *plan, presto_buffer *text_out,
                                presto_error *err) {
    char *text = presto__steps_to_json(plan->pipeline, plan->first_step,
                                       plan->first_step + plan->step_count);
    if (text == NULL)
        return presto_fail_memory(err, 0);
    presto_status status = presto_buffer_append(text_out, presto_span_of_text(text), err);
    free(text);
    return status;
}
