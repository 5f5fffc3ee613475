/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New files against a dataset. A sample of them is converted as the dataset was; then sizes of the
 * records, shapes of the samples and the time of loading are compared. The latter in rounds, by
 * turns, as the contenders of a sweep are.
 */
#include "../loader/loader_internal.h"
#include "../records/records_internal.h"
#include "../steps/pipelines_internal.h"
#include "choice/sure_internal.h"
#include "drift_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/clock_internal.h"
#include "../base/options_internal.h"
#include "../base/stop_internal.h"

/* Records of the dataset that are looked at. */
#define STORED_MOST 4096
/* Rounds of loading; 8 would be too few for 95 %. */
#define ROUNDS 11
/* A round that is over sooner is repeated until it has as many samples or took as long. */
#define ROUND_SAMPLES 64
#define ROUND_SECONDS 0.1
#define TIME_ERROR 0.05
/* Of one sample. */
#define READINGS 3
/* How pages happen to lie in memory makes so much of a difference. */
#define LEAST_TIME_CHANGE 0.05
/* Of a mean, a median or a 95th percentile: less is no difference, however sure it is. */
#define LEAST_CHANGE 0.01
#define DIMENSIONS (PRESTO_DRIFT_FIGURES_MOST - 1)

typedef struct drift_job {
    const presto_drift_options *options;
    presto_stream stored, fresh; /* the dataset, and the new samples as one */
    presto__runner runner;       /* of the new samples */
    uint64_t repeats;            /* of the samples in a round */
    presto__trial trial;
    presto_drift found;
} drift_job;

void presto_drift_options_init(presto_drift_options *options, size_t struct_bytes) {
    const presto_drift_options defaults = {
        .samples = 200,
        .margin = 0.1,
        .errors = {.skip_limit = UINT64_MAX, .skip_fraction = 1},
    };
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

static presto_status check_options(const presto_drift_options *options, presto_error *err) {
    if (options->dataset == NULL || options->work_dir == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "drift is checked against a dataset, and needs a work folder");
    if (!(options->margin >= 0) || !isfinite(options->margin))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a margin of %g: 0 or more are possible", options->margin);
    return PRESTO_OK;
}

/* ---- both datasets ---- */

static presto_status open_stream(const drift_job *job, const char *dir, presto_stream *stream,
                                 presto_error *err) {
    presto_stream_options options;
    presto_stream_options_defaults(&options);
    options.pipeline = job->options->pipeline;
    options.pipeline_options = job->options->pipeline_options;
    return presto_stream_open(&dir, 1, &options, stream, err);
}

static presto_status open_stored(drift_job *job, presto_error *err) {
    PRESTO_TRY(open_stream(job, job->options->dataset, &job->stored, err));
    const presto_dataset_info *info =
        job->stored.dataset != NULL ? presto_dataset_get_info(job->stored.dataset) : NULL;
    if (info != NULL && info->stored != NULL && job->stored.pipeline != NULL)
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                    "is no dataset that says by which pipeline it was made, and up to where");
    presto_error_set_file(err, job->options->dataset);
    return status;
}

static bool on_trial(void *user, const presto_strategy *strategy, size_t done, size_t total,
                     const presto_strategy_result *result) {
    const drift_job *job = user;
    (void)strategy, (void)done, (void)total, (void)result;
    return job->options->on_progress == NULL ||
           job->options->on_progress(job->options->on_progress_user);
}

static presto_status make_fresh(drift_job *job, presto_sweep_options *options,
                                const char *const *paths, size_t path_count, presto_error *err) {
    const presto_dataset_info *info = presto_dataset_get_info(job->stored.dataset);
    presto_sweep_options_defaults(options);
    options->pipeline = job->stored.pipeline;
    options->samples = job->options->samples;
    options->work_dir = job->options->work_dir;
    options->errors = job->options->errors;
    options->on_trial = on_trial;
    options->on_trial_user = job;
    PRESTO_TRY(presto__runner_init(&job->runner, paths, path_count, options, err));
    presto__trial *trial = &job->trial;
    trial->result.strategy = (presto_strategy){.stored = info->stored,
                                               .codec = info->codec,
                                               .threads = presto_processor_count(),
                                               .shards = 1};
    trial->preparations = calloc(1, sizeof *trial->preparations);
    if (trial->preparations == NULL)
        return presto_fail_memory(err, sizeof *trial->preparations);
    PRESTO_TRY(presto__trial_prepare(&job->runner, trial, err));
    return open_stream(job, trial->dir, &job->fresh, err);
}

/* ---- sizes of records ---- */

static presto_status read_sizes(presto_dataset *dataset, presto__series *sizes, presto_error *err) {
    uint64_t records = presto_dataset_records(dataset);
    uint64_t wanted = records < STORED_MOST ? records : STORED_MOST;
    sizes->values = calloc((size_t)wanted + 1, sizeof *sizes->values);
    if (sizes->values == NULL)
        return presto_fail_memory(err, ((size_t)wanted + 1) * sizeof *sizes->values);
    for (; sizes->count < wanted; sizes->count++) {
        /* Evenly from all; fits: wanted <= STORED_MOST. */
        uint64_t number =
            records / wanted * sizes->count + records % wanted * sizes->count / wanted;
        uint64_t record;
        presto_shard *shard = NULL;
        const uint64_t *offsets = NULL;
        size_t at = presto_dataset_locate(dataset, number, &record);
        PRESTO_TRY(presto_dataset_shard_at(dataset, at, &shard, err));
        PRESTO_TRY(presto_shard_index(shard, false, NULL, err));
        PRESTO_TRY(presto__shard_offsets(shard, record, 1, &offsets, err));
        sizes->values[sizes->count] = (double)(offsets[1] - offsets[0]);
    }
    return PRESTO_OK;
}

static double mean_of(const presto__series *series) {
    double mean = 0;
    for (size_t i = 0; i < series->count; i++)
        mean += series->values[i] / (double)series->count;
    return mean;
}

static bool is_apart(double a, double b) {
    return fabs(a - b) > LEAST_CHANGE * fmax(fabs(a), fabs(b));
}

/* Names of single files are shorter than those below a folder: a few bytes of each record differ,
 * and mean nothing. */
static bool is_change(const presto_drift_figure *figure) {
    return is_apart(figure->stored_mean, figure->new_mean) ||
           is_apart(figure->stored_median, figure->new_median) ||
           is_apart(figure->stored_p95, figure->new_p95);
}

static void compare(presto_drift *found, const char *name, presto__series *stored,
                    presto__series *fresh) {
    presto_drift_figure *figure = &found->figures[found->figure_count++];
    presto__ks test = presto__ks_test(stored, fresh);
    *figure = (presto_drift_figure){
        .stored_count = stored->count,
        .new_count = fresh->count,
        .stored_mean = mean_of(stored),
        .new_mean = mean_of(fresh),
        .stored_median = presto__quantile(stored, 0.5),
        .new_median = presto__quantile(fresh, 0.5),
        .stored_p95 = presto__quantile(stored, 0.95),
        .new_p95 = presto__quantile(fresh, 0.95),
        .distance = test.distance,
        .chance = test.chance,
    };
    figure->differs = test.chance < PRESTO_DRIFT_CHANCE && is_change(figure);
    snprintf(figure->name, sizeof figure->name, "%s", name);
}

static presto_status compare_sizes(drift_job *job, presto_error *err) {
    presto__series stored = {NULL, 0}, fresh = {NULL, 0};
    presto_status status = read_sizes(job->stored.dataset, &stored, err);
    if (status == PRESTO_OK)
        status = read_sizes(job->fresh.dataset, &fresh, err);
    if (status == PRESTO_OK)
        compare(&job->found, "stored bytes", &stored, &fresh);
    free(stored.values);
    free(fresh.values);
    return status;
}

/* ---- shapes ---- */

typedef struct shapes {
    presto__series dims[DIMENSIONS];
} shapes;

static void note_shape(const presto_batch *batch, shapes *seen) {
    const presto_batch_feature *feature =
        batch->main_feature < batch->feature_count ? &batch->features[batch->main_feature] : NULL;
    if (feature == NULL || feature->layout == PRESTO_LAYOUT_BYTES || batch->rows != 1)
        return;
    const presto_tensor_spec *spec = &feature->tensor.spec;
    bool is_ragged = feature->offsets != NULL && feature->shapes == NULL;
    size_t rank = feature->shapes != NULL ? feature->shape_rank
                  : is_ragged             ? 1
                  : spec->rank > 1        ? (size_t)spec->rank - 1
                                          : 0;
    for (size_t d = 0; d < rank && d < DIMENSIONS; d++) {
        int64_t size = feature->shapes != NULL ? feature->shapes[d]
                       : is_ragged             ? feature->offsets[1] - feature->offsets[0]
                                               : spec->dims[d + 1];
        presto__series *series = &seen->dims[d];
        if (size >= 0)
            series->values[series->count++] = (double)size;
    }
}

/* Records of all over the dataset, as they are stored. */
static presto_status read_shapes(presto_dataset *dataset, uint64_t wanted, shapes *seen,
                                 presto_error *err) {
    presto_loader_options options;
    presto_source *source = NULL;
    presto_loader *loader = NULL;
    presto_loader_options_defaults(&options);
    options.threads = 0;
    options.output = PRESTO_OUTPUT_BATCHES;
    options.batch_samples = 1;
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.range.limit_samples = wanted;
    for (size_t d = 0; d < DIMENSIONS; d++) {
        seen->dims[d].values = calloc((size_t)wanted + 1, sizeof *seen->dims[d].values);
        if (seen->dims[d].values == NULL)
            return presto_fail_memory(err, ((size_t)wanted + 1) * sizeof *seen->dims[d].values);
    }
    PRESTO_TRY(presto__source_open_dataset(dataset, &source, err));
    presto_status status = presto__loader_open(source, NULL, &options, &loader, err);
    presto_batch *batch = NULL;
    while (status == PRESTO_OK && (status = presto_loader_next(loader, &batch, err)) == PRESTO_OK) {
        note_shape(batch, seen);
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    presto__source_free(source);
    return status == PRESTO_END ? PRESTO_OK : status;
}

static presto_status compare_shapes(drift_job *job, presto_error *err) {
    shapes stored = {{{NULL, 0}}}, fresh = {{{NULL, 0}}};
    uint64_t wanted = job->found.tried_samples;
    presto_status status = read_shapes(job->stored.dataset, wanted, &stored, err);
    if (status == PRESTO_OK)
        status = read_shapes(job->fresh.dataset, wanted, &fresh, err);
    for (size_t d = 0; d < DIMENSIONS; d++) {
        char name[32];
        snprintf(name, sizeof name, "dimension %zu", d);
        if (status == PRESTO_OK && stored.dims[d].count > 0 && fresh.dims[d].count > 0)
            compare(&job->found, name, &stored.dims[d], &fresh.dims[d]);
        free(stored.dims[d].values);
        free(fresh.dims[d].values);
    }
    return status;
}

/* ---- time ---- */

typedef struct timing {
    double seconds;
    uint64_t samples;
} timing;

/* The processor's time says it where other programs run, too; but not of what a program does for a
 * step. */
static uint64_t clock_of(const presto_stream *stream) {
    bool is_elsewhere =
        stream->plan != NULL && (presto__plan_flags(stream->plan) & PRESTO_STEP_RUNS_PROGRAM) != 0;
    return is_elsewhere ? presto__clock_ns() : presto__clock_process_cpu_ns();
}

/* Adds the seconds that samples of a stream take, with the steps that remain, and how many they
 * are. `options`: which samples. */
static presto_status time_samples(const drift_job *job, const presto_stream *stream,
                                  presto_loader_options *options, timing *timing_io,
                                  presto_error *err) {
    presto_loader *loader = NULL;
    options->errors = presto__trial_errors(&job->runner); /* a step that remains may fail */
    options->threads = 0;
    options->batch_samples = 1; /* any shapes may meet */
    options->output = PRESTO_OUTPUT_BATCHES;
    PRESTO_TRY(presto__loader_open(stream->source, stream->plan, options, &loader, err));
    uint64_t start_ns = clock_of(stream);
    presto_batch *batch = NULL;
    presto_status status;
    while ((status = presto_loader_next(loader, &batch, err)) == PRESTO_OK) {
        timing_io->samples += batch->rows;
        presto_batch_release(batch);
    }
    timing_io->seconds += presto__seconds(clock_of(stream) - start_ns);
    presto_loader_free(loader);
    return status == PRESTO_END ? PRESTO_OK : status;
}

/* The seed: which records, and what random steps decide. */
static presto_status time_stream(const drift_job *job, const presto_stream *stream, uint64_t seed,
                                 timing *timing_io, presto_error *err) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.order.seed = seed;
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.range.limit_samples = job->found.tried_samples;
    return time_samples(job, stream, &options, timing_io, err);
}

/* How often a round reads the samples: what is over too soon says little. */
static presto_status choose_repeats(drift_job *job, presto_error *err) {
    timing once = {0, 0};
    PRESTO_TRY(time_stream(job, &job->fresh, 0, &once, err));
    double few = ROUND_SAMPLES / fmax((double)once.samples, 1);
    double brief = ROUND_SECONDS / fmax(once.seconds, 1e-9);
    job->repeats = (uint64_t)fmax(ceil(fmin(few, brief)), 1);
    return PRESTO_OK;
}

static presto_status report(const drift_job *job, presto_error *err) {
    return presto__runner_report((presto__runner *)(uintptr_t)&job->runner,
                                 &job->trial.result.strategy, NULL, err);
}

/* Seconds a sample. */
static presto_status time_round(const drift_job *job, const presto_stream *stream, uint64_t round,
                                double *seconds_out, presto_error *err) {
    timing sum = {0, 0};
    for (uint64_t i = 0; i < job->repeats; i++)
        PRESTO_TRY(time_stream(job, stream, round * job->repeats + i, &sum, err));
    *seconds_out = sum.seconds / fmax((double)sum.samples, 1);
    return report(job, err);
}

static bool is_time_beyond(const presto_drift *found, double margin) {
    return found->time_ratio_least > 1 + margin || found->time_ratio_most < 1 / (1 + margin);
}

/* Of a sample: the least of several readings, so that only samples differ, not the readings. */
static presto_status time_sample(const drift_job *job, uint64_t position, double *seconds_out,
                                 presto_error *err) {
    *seconds_out = INFINITY;
    for (unsigned i = 0; i < READINGS; i++) {
        timing once = {0, 0};
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.range.first_sample = position;
        options.range.limit_samples = 1;
        PRESTO_TRY(time_samples(job, &job->fresh, &options, &once, err));
        *seconds_out = fmin(*seconds_out, once.seconds);
    }
    return PRESTO_OK;
}

/* Half of the 95 % interval of the mean seconds of all new samples, as only some were tried; 0: all
 * were. The stored ones need none: rounds read others each time. */
static presto_status find_sampling_error(const drift_job *job, double *error_s_out,
                                         presto_error *err) {
    uint64_t tried = job->found.tried_samples, all = job->found.new_samples;
    presto__moments seconds = {0};
    *error_s_out = 0;
    if (tried >= all)
        return PRESTO_OK;
    for (uint64_t i = 0; i < tried; i++) {
        double once;
        PRESTO_TRY(time_sample(job, i, &once, err));
        PRESTO_TRY(report(job, err)); /* it may be cancelled */
        presto__moments_add(&seconds, once);
    }
    presto__estimate total = presto__estimate_sum(&seconds, all);
    *error_s_out = total.error / (double)all;
    return PRESTO_OK;
}

static presto_status compare_times(drift_job *job, presto_error *err) {
    double ratios[ROUNDS], seconds[2], error_s, fresh_s = 0;
    const presto_stream *const streams[2] = {&job->stored, &job->fresh};
    /* Pages that were written beside other programs are read up to a fifth slower than others: both
     * are filled anew, in the same way. */
    for (size_t side = 0; side < 2; side++)
        PRESTO_TRY(presto__source_drop_cache(streams[side]->source, err));
    PRESTO_TRY(choose_repeats(job, err));
    for (size_t round = 0; round < ROUNDS; round++) {
        /* The first two fill the page cache. Each comes after the other one, so that the
         * processor's caches help neither. */
        for (size_t i = 0; i < 4; i++) {
            size_t side = (i + round) % 2;
            PRESTO_TRY(time_round(job, streams[side], round, &seconds[side], err));
        }
        ratios[round] = log(seconds[1] / seconds[0]);
        fresh_s += seconds[1] / ROUNDS;
    }
    presto__interval interval = presto__interval_of(ratios, ROUNDS, TIME_ERROR);
    PRESTO_TRY(find_sampling_error(job, &error_s, err));
    double sampling = error_s / fresh_s; /* NaN, of a single sample: nothing is known */
    if (!isfinite(sampling))
        sampling = INFINITY;
    double least =
        interval.middle - presto__joint_error(interval.middle - interval.least, sampling);
    double most = interval.middle + presto__joint_error(interval.most - interval.middle, sampling);
    job->found.time_ratio = exp(interval.middle);
    job->found.time_ratio_least = exp(least);
    job->found.time_ratio_most = exp(most);
    job->found.time_differs = is_time_beyond(&job->found, LEAST_TIME_CHANGE);
    return PRESTO_OK;
}

/* ---- the verdict ---- */

static bool costs_differ(const presto_drift *found) {
    for (size_t i = 0; i < found->cost_count; i++)
        if (found->costs[i].differs)
            return true;
    return false;
}

static bool does_move(const presto_drift *found, double margin) {
    const presto_drift_figure *bytes = &found->figures[0];
    double ratio = bytes->new_mean / fmax(bytes->stored_mean, 1);
    return (bytes->differs && (ratio > 1 + margin || ratio < 1 / (1 + margin))) ||
           is_time_beyond(found, fmax(margin, LEAST_TIME_CHANGE)) || costs_differ(found);
}

static presto_status check(drift_job *job, const char *const *paths, size_t path_count,
                           presto_error *err) {
    presto_sweep_options options; /* of the runner, which borrows them */
    PRESTO_TRY(open_stored(job, err));
    presto_status status = make_fresh(job, &options, paths, path_count, err);
    if (status == PRESTO_OK) {
        job->found.stored_records = presto_dataset_records(job->stored.dataset);
        job->found.new_samples = job->runner.source_samples;
        job->found.tried_samples = presto_dataset_records(job->fresh.dataset);
        status = compare_sizes(job, err);
    }
    if (status == PRESTO_OK)
        status = compare_shapes(job, err);
    if (status == PRESTO_OK)
        status = compare_times(job, err);
    if (status == PRESTO_OK)
        status = presto__drift_costs(job->options, job->trial.result.strategy.stored, &job->runner,
                                     &job->found, err);
    job->found.moves = status == PRESTO_OK && does_move(&job->found, job->options->margin);
    presto_stream_close(&job->fresh);
    presto__trial_done(&job->trial);
    presto__runner_done(&job->runner);
    return status;
}

static bool stops(void *user) {
    const presto_drift_options *options = ((const drift_job *)user)->options;
    return !options->on_progress(options->on_progress_user);
}

presto_status presto_drift_check_sized(const char *const *paths, size_t path_count,
                                       const presto_drift_options *options, presto_drift *drift_out,
                                       presto_error *err) {
    presto_drift_options taken;
    presto_drift_options_defaults(&taken);
    PRESTO_TRY(presto__result_check(drift_out, err));
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    PRESTO_TRY(check_options(&taken, err));
    drift_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return presto_fail_memory(err, sizeof *job);
    job->options = &taken;
    presto__stop_hook pass;
    presto__stop_scope before =
        presto__stop_enter(&pass, taken.on_progress == NULL ? NULL : stops, job);
    presto_status status = check(job, paths, path_count, err);
    status = presto__stop_leave(&pass, before, status, err);
    presto_stream_close(&job->stored);
    if (status == PRESTO_OK)
        presto__result_move(drift_out, &job->found, sizeof job->found);
    free(job);
    return status;
}
