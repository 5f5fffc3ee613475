/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache in memory: all epochs after the first run only the steps from the first random one on,
 * and read nothing. That is the same for every split and codec, so that one probe tells it for all:
 * the source with all steps, a loader with a cache, the time of its later epochs.
 */
#include "../../base/clock_internal.h"
#include "../../loader/loader_internal.h"
#include "../../steps/pipelines_internal.h"
#include "predict_internal.h"

#include <math.h>

/* Filling it takes about this long on one thread, but there are at least so many samples. */
#define FILL_S 1.0
#define SAMPLES_LEAST 8
#define MOST_BYTES ((size_t)512 << 20)
#define FOR_S 0.15
/* A cache that takes more of this machine's memory is not proposed; as in choose.c. */
#define MEMORY_PART 0.75
#define REPORT_EVERY_NS UINT64_C(200000000)

typedef struct caching {
    presto__runner *runner;
    presto_source *source;        /* the first samples of the sweep's */
    presto_plan *before, *behind; /* the cache. `before` may be NULL */
    presto_loader *loader;
} caching;

/* Steps before the first random one. */
static size_t steps_before(const presto_pipeline *pipeline) {
    size_t steps = presto_pipeline_step_count(pipeline), middle = 0;
    while (middle < steps &&
           (presto__pipeline_step_flags(pipeline, middle) & PRESTO_STEP_RANDOM) == 0)
        middle++;
    return middle;
}

static presto_status plan_steps(caching *job, presto_error *err) {
    const presto_pipeline *pipeline = job->runner->pipeline;
    size_t middle = steps_before(pipeline);
    presto_tensor_spec in = presto__source_main_spec(job->source);
    presto__plan_options options;
    presto__plan_options_defaults(&options);
    options.in = &in;
    options.last_step = middle;
    if (middle > 0) {
        PRESTO_TRY(presto__plan_new(pipeline, &options, &job->before, err));
        options.in = presto__plan_output(job->before);
    }
    options.first_step = middle;
    options.last_step = SIZE_MAX;
    return presto__plan_new(pipeline, &options, &job->behind, err);
}

static uint64_t samples_to_cache(const presto__model *model, const presto_pipeline *pipeline) {
    double bytes = 0;
    size_t middle = steps_before(pipeline), step = 0;
    for (size_t i = 0; i < model->step_count; i++)
        if (model->steps[i].is_step && ++step <= middle && isfinite(model->steps[i].out_bytes))
            bytes = model->steps[i].out_bytes;
    double each_s = model->step_count > 0 ? model->steps[model->step_count - 1].wall_mean_s : 0;
    double wanted = fmin(FILL_S / fmax(each_s, 1e-9), (double)MOST_BYTES / fmax(bytes, 1));
    return (uint64_t)fmin(fmax(wanted, SAMPLES_LEAST), (double)model->samples);
}

/* Takes batches for so many samples, and for so long. Without any sample there is nothing to
 * time. */
static presto_status take(const caching *job, uint64_t samples, double seconds,
                          uint64_t *samples_out, presto_error *err) {
    const presto_strategy strategy = {.stored = PRESTO_UNPROCESSED};
    uint64_t start = presto__clock_ns(), reported = start;
    *samples_out = 0;
    while (*samples_out < samples || presto__seconds(presto__clock_ns() - start) < seconds) {
        presto_batch *batch = NULL;
        presto_status status = presto_loader_next(job->loader, &batch, err);
        if (status == PRESTO_END)
            return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no samples");
        PRESTO_TRY(status);
        *samples_out += batch->rows + batch->skipped;
        presto_batch_release(batch);
        uint64_t now = presto__clock_ns();
        if (now - reported < REPORT_EVERY_NS)
            continue;
        reported = now;
        PRESTO_TRY(presto__runner_report(job->runner, &strategy, NULL, err));
    }
    return PRESTO_OK;
}

/* A worker's time for a sample from the cache, and what the cache holds of one. */
static presto_status time_cached(caching *job, unsigned threads, presto__model_cache *cache,
                                 double *worker_s_out, presto_error *err) {
    uint64_t epoch = presto_source_count(job->source), taken = 0;
    presto_loader_options options;
    presto__loader_options_of(job->runner, threads, PRESTO_EPOCHS_ENDLESS, &options);
    options.cache.bytes = 2 * MOST_BYTES;
    options.cache.plan = job->before;
    PRESTO_TRY(presto__loader_open(job->source, job->behind, &options, &job->loader, err));
    /* In the second epoch, workers may still be putting samples into it. */
    presto_status status = take(job, 2 * epoch, 0, &taken, err);
    uint64_t start = presto__clock_ns();
    if (status == PRESTO_OK)
        status = take(job, epoch, FOR_S, &taken, err);
    double wall_s = presto__seconds(presto__clock_ns() - start);
    presto_loader_stats stats;
    presto_loader_get_stats(job->loader, &stats);
    presto_loader_free(job->loader);
    job->loader = NULL;
    *worker_s_out = wall_s * threads / (double)(taken + !taken);
    cache->bytes = (double)stats.cache_bytes / (double)epoch;
    return status;
}

static presto_status probe(caching *job, presto__model *model, presto_error *err) {
    presto__runner *runner = job->runner;
    PRESTO_TRY(presto__sample_open(runner, &job->source, err));
    presto__source_truncate(job->source, samples_to_cache(model, runner->pipeline));
    PRESTO_TRY(plan_steps(job, err));
    presto__model_cache *cache = &model->cache;
    PRESTO_TRY(time_cached(job, 1, cache, &cache->worker_s.one, err));
    cache->worker_s.all = cache->worker_s.one;
    if (model->cores > 1)
        PRESTO_TRY(time_cached(job, model->cores, cache, &cache->worker_s.all, err));
    cache->samples = presto_source_count(job->source);
    return PRESTO_OK;
}

/* What cannot be cached has no figures. */
presto_status presto__probe_cache(presto__model *model, presto__runner *runner, presto_error *err) {
    caching job = {.runner = runner};
    presto_error failure;
    presto_status status = probe(&job, model, &failure);
    presto__plan_free(job.behind);
    presto__plan_free(job.before);
    presto__source_free(job.source);
    if (status != PRESTO_ERR_STOPPED && status != PRESTO_ERR_MEMORY)
        return PRESTO_OK;
    if (err != NULL)
        *err = failure;
    return status;
}

presto_status presto__note_cache(presto_sweep *sweep, presto_error *err) {
    const presto_strategy_result *best = &sweep->trials[sweep->best].result;
    double rate = best->prediction.memory_samples_per_s, bytes = best->prediction.memory_bytes;
    char text[2][PRESTO_TEXT_BYTES];
    if (!isfinite(rate) || !isfinite(bytes))
        return PRESTO_OK;
    presto_format_bytes(bytes, text[0]);
    if (bytes > (double)sweep->facts.memory_bytes * MEMORY_PART)
        return presto__add_note(
            sweep, err,
            "a cache in memory (presto-load --cache memory:SIZE) would take %s for the whole "
            "source; this machine has %s",
            text[0], presto_format_bytes((double)sweep->facts.memory_bytes, text[1]));
    return presto__add_note(
        sweep, err,
        "with a cache in memory (presto-load --cache memory:SIZE; %s for the whole source), epochs "
        "after the first are predicted to run at %s samples/s on %u thread%s, whatever is stored",
        text[0], presto_format_number(rate, text[1]), best->strategy.threads,
        presto_plural(best->strategy.threads));
}
