/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each step costs, sample by sample: one pass in the caller's thread, with steps that are not
 * fused, so that each has its own time. Samples come in random order, and no more than fit the
 * time.
 */
#include "../../base/clock_internal.h"
#include "../../loader/loader_internal.h"
#include "../../steps/pipelines_internal.h"
#include "predict_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOR_NS UINT64_C(3000000000)
#define MOST_SAMPLES 4096
#define REPORT_EVERY_NS UINT64_C(200000000)

/* Stages before the steps, those behind them, and the whole sample. */
enum { READING, PARSING, BATCHING, WHOLE, STAGES };

/* Counters, and from them one sample's figures. */
typedef struct pass {
    presto__runner *runner;
    presto_plan *plan;
    presto_loader *loader;
    size_t steps, columns;
    double *times; /* [columns][MOST_SAMPLES]: steps, then stages */
    uint64_t *before;
    uint64_t cpu_before;
    double cpu_s;
    size_t samples;
} pass;

/* The counters as they are, in ns: of the steps, then of the stages. */
static void read_counters(const pass *p, uint64_t *now) {
    presto_loader_stats stats;
    presto_loader_get_stats(p->loader, &stats);
    for (size_t i = 0; i < p->steps; i++) {
        now[i] = presto_loader_step_stats(p->loader, i).busy_ns;
        /* The loader reads the file for this step, and has counted that as reading. */
        if ((presto_plan_step_flags(p->plan, i) & PRESTO_STEP_READS_FILE) != 0)
            now[i] = now[i] > stats.read_ns ? now[i] - stats.read_ns : 0;
    }
    now[p->steps + READING] = stats.read_ns;
    now[p->steps + PARSING] = stats.parse_ns;
    now[p->steps + BATCHING] = stats.batch_ns;
    now[p->steps + WHOLE] = presto__clock_ns();
}

static void take_sample(pass *p) {
    uint64_t *now = p->before + p->columns;
    read_counters(p, now);
    for (size_t i = 0; i < p->columns; i++)
        p->times[i * MOST_SAMPLES + p->samples] =
            now[i] > p->before[i] ? presto__seconds(now[i] - p->before[i]) : 0;
    memcpy(p->before, now, p->columns * sizeof *now);
    uint64_t cpu = presto__clock_process_cpu_ns();
    p->cpu_s += presto__seconds(cpu - p->cpu_before);
    p->cpu_before = cpu;
    p->samples++;
}

static presto_status run_pass(pass *p, presto_error *err) {
    const presto_strategy strategy = {.stored = PRESTO_UNPROCESSED};
    uint64_t start = presto__clock_ns(), last_report = start;
    p->cpu_before = presto__clock_process_cpu_ns();
    read_counters(p, p->before);
    while (p->samples < MOST_SAMPLES && presto__clock_ns() - start < FOR_NS) {
        presto_batch *batch = NULL;
        presto_status status = presto_loader_next(p->loader, &batch, err);
        if (status == PRESTO_END)
            break;
        PRESTO_TRY(status);
        bool has_one = batch->rows > 0;
        presto_batch_release(batch);
        if (has_one)
            take_sample(p);
        uint64_t now = presto__clock_ns();
        if (now - last_report < REPORT_EVERY_NS)
            continue;
        last_report = now;
        PRESTO_TRY(presto__runner_report(p->runner, &strategy, NULL, err));
        p->before[p->steps + WHOLE] = presto__clock_ns();
    }
    return PRESTO_OK;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize(double *values, size_t count, presto__step_cost *cost) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    qsort(values, count, sizeof *values, compare);
    cost->wall_mean_s = sum / (double)count;
    cost->wall_p10_s = values[(count - 1) / 10];
    cost->wall_median_s = values[(count - 1) / 2];
    cost->wall_p90_s = values[(count - 1) * 9 / 10];
    cost->wall_most_s = values[count - 1];
    cost->cpu_mean_s = cost->out_bytes = NAN;
}

/* In the order of a sample's way. */
static presto_status keep(const pass *p, presto__model *model, presto_error *err) {
    static const char *const names[] = {"reading", "parsing", "batching", "all"};
    static const size_t before[] = {READING, PARSING}, behind[] = {BATCHING, WHOLE};
    model->steps = calloc(p->columns, sizeof *model->steps);
    if (model->steps == NULL)
        return presto_fail_memory(err, p->columns * sizeof *model->steps);
    for (size_t i = 0; i < p->columns; i++) {
        size_t stage = i < 2 ? before[i] : i >= p->columns - 2 ? behind[i - (p->columns - 2)] : 0;
        bool is_step = i >= 2 && i < p->columns - 2;
        size_t column = is_step ? i - 2 : p->steps + stage;
        presto__step_cost *cost = &model->steps[model->step_count++];
        const char *name = is_step ? presto__plan_step_name(p->plan, column) : names[stage];
        snprintf(cost->name, sizeof cost->name, "%s", name);
        cost->is_step = is_step;
        summarize(p->times + column * MOST_SAMPLES, p->samples, cost);
        if (is_step) {
            presto_step_stats stats = presto_loader_step_stats(p->loader, column);
            cost->out_bytes = (double)stats.out_bytes / (double)p->samples;
        }
    }
    model->steps[model->step_count - 1].cpu_mean_s = p->cpu_s / (double)p->samples;
    model->step_samples = p->samples;
    return PRESTO_OK;
}

static presto_status open_pass(pass *p, presto_error *err) {
    presto__runner *runner = p->runner;
    presto_tensor_spec in = presto__source_main_spec(runner->source);
    const presto__plan_options planning = {.struct_bytes = sizeof planning,
                                           .last_step =
                                               presto_pipeline_step_count(runner->pipeline),
                                           .in = &in,
                                           .no_fusion = true};
    PRESTO_TRY(presto__plan_new(runner->pipeline, &planning, &p->plan, err));
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = 0;
    options.batch_samples = 1;
    options.memory.block_samples = 1;
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.order.seed = runner->options->seed;
    options.errors = presto__trial_errors(runner);
    options.should_stop = presto__runner_stops;
    options.should_stop_user = runner;
    presto_status status = presto__loader_open(runner->source, p->plan, &options, &p->loader, err);
    if (status == PRESTO_ERR_ARGUMENT) { /* it can only be read from its start */
        options.order.shuffle = PRESTO_SHUFFLE_NONE;
        status = presto__loader_open(runner->source, p->plan, &options, &p->loader, err);
    }
    PRESTO_TRY(status);
    p->steps = presto_loader_step_count(p->loader);
    p->columns = p->steps + STAGES;
    p->times = calloc(p->columns * MOST_SAMPLES, sizeof *p->times);
    p->before = calloc(2 * p->columns, sizeof *p->before);
    if (p->times == NULL || p->before == NULL)
        return presto_fail_memory(err, p->columns * MOST_SAMPLES * sizeof *p->times);
    return PRESTO_OK;
}

presto_status presto__probe_steps(presto__model *model, presto__runner *runner, presto_error *err) {
    pass p = {.runner = runner};
    presto_status status = open_pass(&p, err);
    if (status == PRESTO_OK)
        status = run_pass(&p, err);
    if (status == PRESTO_OK && p.samples > 0)
        status = keep(&p, model, err);
    presto_loader_free(p.loader);
    presto__plan_free(p.plan);
    free(p.times);
    free(p.before);
    return status;
}
