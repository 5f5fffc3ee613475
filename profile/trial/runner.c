/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trial: a conversion (conversion.c), then epochs through the loader into a consumer that takes
 * no time. It runs the code of presto-write and presto-load, with their defaults; only the clock is
 * added. Trial datasets are in a folder of their own, which is removed with the runner.
 */
#include "../../base/clock_internal.h"
#include "../../loader/loader_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../profile_internal.h"
#include "load_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"

/* Cold epochs of a run: at least so many, unless they are longer together; no longer than so many
 * times the wanted time. */
#define COLD_EPOCHS_LEAST 3
#define COLD_S_LEAST 0.15
#define COLD_S_MOST 2
/* How often on_trial is called during a trial. */
#define REPORT_EVERY_NS UINT64_C(200000000)

/* ---- set-up ---- */

static presto_status keep_note(presto__runner *runner, const char *text, presto_error *err) {
    char **notes = realloc(runner->notes, (runner->note_count + 1) * sizeof *notes);
    if (notes != NULL)
        runner->notes = notes;
    if (notes == NULL || (notes[runner->note_count] = strdup(text)) == NULL)
        return presto_fail_memory(err, strlen(text) + 1);
    runner->note_count++;
    return PRESTO_OK;
}

static presto_status keep_notes(presto__runner *runner, presto_error *err) {
    size_t count;
    const char *const *notes = presto_source_notes(runner->source, &count);
    for (size_t i = 0; i < count; i++)
        PRESTO_TRY(keep_note(runner, notes[i], err));
    return PRESTO_OK;
}

/* What steps have told of the sample. */
static presto_status keep_step_notes(presto__runner *runner, const presto_loader *loader,
                                     presto_error *err) {
    presto_loader_note note;
    for (size_t i = 0; presto_loader_get_note(loader, i, &note); i++)
        PRESTO_TRY(keep_note(runner, note.text, err));
    return PRESTO_OK;
}

static presto_status open_source(presto__runner *runner, presto_error *err) {
    PRESTO_TRY(presto__source_open_raw(runner->pipeline, runner->paths, runner->path_count,
                                       &runner->source, err));
    runner->source_samples = presto_source_count(runner->source);
    runner->source_bytes = presto_source_bytes(runner->source);
    PRESTO_TRY(presto__source_identify(runner->source, runner->source_identity, err));
    PRESTO_TRY(keep_notes(runner, err));
    if (runner->options->samples > 0 && runner->options->samples < runner->source_samples)
        PRESTO_TRY(presto__sample_take(runner, err));
    runner->samples = presto_source_count(runner->source);
    return PRESTO_OK;
}

static presto_status open_plan(presto__runner *runner, presto_error *err) {
    presto_tensor_spec in = presto__source_main_spec(runner->source);
    presto__plan_options options = {.struct_bytes = sizeof options,
                                    .last_step = presto_pipeline_step_count(runner->pipeline),
                                    .in = &in};
    return presto__plan_new(runner->pipeline, &options, &runner->plan, err);
}

static presto_status make_work_dir(presto__runner *runner, presto_error *err) {
    const char *parent = runner->options->work_dir;
    PRESTO_TRY(presto__folder_make(parent, err));
    return presto__folder_make_own(parent, "presto-sweep", &runner->work_dir, &runner->work_lock,
                                   err);
}

void presto__loader_options_of(const presto__runner *runner, unsigned threads, uint64_t epochs,
                               presto_loader_options *options_out) {
    presto_loader_options_defaults(options_out);
    options_out->threads = threads;
    options_out->output = PRESTO_OUTPUT_BATCHES;
    options_out->batch_samples = runner->batch_samples;
    options_out->order.seed = runner->options->seed;
    options_out->range.epochs = epochs;
    options_out->errors = presto__trial_errors(runner);
    options_out->should_stop = presto__runner_stops;
    options_out->should_stop_user = (void *)(uintptr_t)runner;
}

/* What is seen of a loader while it runs. */
typedef struct watching {
    presto__watch watch;
    presto__pacer pacer;
} watching;

/* Takes every batch and gives it back at once. */
static presto_status drain(presto__runner *runner, const presto_strategy *strategy,
                           presto_loader *loader, watching *seen, presto_error *err) {
    uint64_t last_report_ns = presto__clock_ns();
    for (;;) {
        presto_batch *batch = NULL;
        presto_status status = presto_loader_next(loader, &batch, err);
        if (status != PRESTO_OK)
            return status == PRESTO_END ? PRESTO_OK : status;
        uint64_t samples = batch->rows + batch->skipped;
        presto_batch_release(batch);
        presto__watch_sample(&seen->watch);
        uint64_t now_ns = presto__clock_ns();
        presto__pacer_take(&seen->pacer, samples, now_ns);
        if (now_ns - last_report_ns < REPORT_EVERY_NS)
            continue;
        last_report_ns = now_ns;
        PRESTO_TRY(presto__runner_report(runner, strategy, NULL, err));
    }
}

static void on_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *err) {
    presto__runner *runner = user;
    (void)epoch, (void)sample;
    if (runner->skipped++ == 0)
        runner->first_skip = *err;
}

/*
 * One unmeasured epoch over the raw source with all steps. A sample that cannot be processed is
 * found here, before anything is written.
 */
static presto_status probe(presto__runner *runner, presto_error *err) {
    const presto_strategy strategy = {.stored = PRESTO_UNPROCESSED,
                                      .threads = presto_processor_count()};
    presto_loader_options options;
    presto__loader_options_of(runner, strategy.threads, 1, &options);
    options.errors = runner->options->errors; /* with its limits */
    options.errors.on_skip = on_skip;
    options.errors.on_skip_user = runner;
    options.errors.on_warning = NULL;
    presto_loader *loader = NULL;
    PRESTO_TRY(presto__runner_report(runner, &strategy, NULL, err));
    PRESTO_TRY(presto__loader_open(runner->source, runner->plan, &options, &loader, err));
    watching seen = {.pacer.pace = NULL};
    presto__watch_start(&seen.watch);
    presto_status status = drain(runner, &strategy, loader, &seen, err);
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    if (status == PRESTO_OK)
        status = keep_step_notes(runner, loader, err);
    presto_loader_free(loader);
    runner->sample_bytes = stats.read_bytes;
    runner->flight_bytes = stats.peak_queued_bytes;
    return status;
}

presto_status presto__runner_init(presto__runner *runner, const char *const *paths,
                                  size_t path_count, const presto_sweep_options *options,
                                  presto_error *err) {
    runner->pipeline = options->pipeline;
    runner->paths = runner->all_paths = paths;
    runner->path_count = runner->all_path_count = path_count;
    runner->options = options;
    runner->batch_samples = options->batch_samples;
    PRESTO_TRY(open_source(runner, err));
    PRESTO_TRY(open_plan(runner, err));
    PRESTO_TRY(make_work_dir(runner, err));
    return probe(runner, err);
}

void presto__runner_done(presto__runner *runner) {
    if (runner->work_dir != NULL)
        (void)presto__folder_remove(runner->work_dir, NULL);
    if (runner->work_dir != NULL && runner->work_lock >= 0)
        close(runner->work_lock);
    free(runner->work_dir);
    presto__source_free(runner->more);
    presto__paths_free(runner->more_paths, runner->more_path_count);
    presto__paths_free(runner->sample_paths, runner->sample_path_count);
    presto__paths_free(runner->notes, runner->note_count);
    presto__plan_free(runner->plan);
    presto__source_free(runner->source);
    memset(runner, 0, sizeof *runner);
}

/* ---- epochs ---- */

static void add_cost(presto__epochs *epochs, const char *name, bool is_step, uint64_t busy_ns) {
    presto__cost *cost = &epochs->costs[epochs->cost_count++];
    snprintf(cost->name, sizeof cost->name, "%s", name);
    cost->is_step = is_step;
    cost->busy_s_per_sample =
        epochs->samples > 0 ? presto__seconds(busy_ns) / (double)epochs->samples : 0;
}

/* Moves what the loader counted: volumes, and the workers' time by stage. */
static presto_status keep_stats(const presto_loader *loader, const presto_plan *plan,
                                presto__epochs *epochs, uint64_t *left_out, presto_error *err) {
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    *left_out = stats.skipped + stats.dropped;
    epochs->samples = stats.samples;
    epochs->storage_reads = stats.storage_reads;
    epochs->cut = presto__loader_portions(loader);
    epochs->read_bytes = stats.read_bytes;
    epochs->delivered_bytes = stats.delivered_bytes;
    epochs->worker_wait_s = presto__seconds(stats.worker_wait_ns);
    epochs->consumer_wait_s = presto__seconds(stats.consumer_wait_ns);
    size_t steps = plan != NULL ? presto_plan_step_count(plan) : 0;
    epochs->costs = calloc(steps + 4, sizeof *epochs->costs);
    if (epochs->costs == NULL)
        return presto_fail_memory(err, (steps + 4) * sizeof *epochs->costs);
    add_cost(epochs, "reading", false, stats.read_ns);
    add_cost(epochs, "decompressing", false, stats.decompress_ns);
    add_cost(epochs, "parsing", false, stats.parse_ns);
    for (size_t i = 0; i < steps; i++) {
        const char *name = presto__plan_step_name(plan, i);
        uint64_t busy_ns = presto_loader_step_stats(loader, i).busy_ns;
        /* The loader reads the file for this step, and has counted that as reading. */
        if ((presto_plan_step_flags(plan, i) & PRESTO_STEP_READS_FILE) != 0)
            busy_ns = busy_ns > stats.read_ns ? busy_ns - stats.read_ns : 0;
        add_cost(epochs, name, true, busy_ns);
    }
    add_cost(epochs, "batching", false, stats.batch_ns);
    return PRESTO_OK;
}

presto_status presto__measure_epochs(const presto__load *what, uint64_t count,
                                     presto__epochs *epochs_out, presto_error *err) {
    presto__runner *runner = what->runner;
    presto_loader_options options;
    presto__loader_options_of(runner, what->strategy->threads, count, &options);
    if (what->plays)
        options.storage = runner->options->storage;
    presto__epochs epochs = {.epochs = count};
    uint64_t epoch_samples = presto_source_count(what->source);
    if (what->limit > 0 && what->limit < epoch_samples)
        epoch_samples = options.range.limit_samples = what->limit; /* there is one epoch */
    uint64_t wanted = count * epoch_samples;
    watching seen;
    presto__watch_start(&seen.watch);
    seen.pacer = presto__pacer_start(what->pace, epoch_samples, count, seen.watch.start.wall_ns);
    presto_loader *loader = NULL;
    PRESTO_TRY(presto__loader_open(what->source, what->plan, &options, &loader, err));
    presto_status status = drain(runner, what->strategy, loader, &seen, err);
    uint64_t end_ns = presto__clock_ns();
    presto__watch_stop(&seen.watch, end_ns, &epochs.measure);
    /* Programs that it starts look like those of others: nothing tells what these had. */
    if ((presto__plan_flags(what->plan) & PRESTO_STEP_RUNS_PROGRAM) != 0)
        epochs.measure.machine_busy_s = NAN;
    presto__calm_add(&runner->calm, epochs.measure.wall_s, presto__others_s(&epochs.measure),
                     epochs.measure.machine_steal_s);
    uint64_t left_out = 0;
    if (status == PRESTO_OK)
        status = keep_stats(loader, what->plan, &epochs, &left_out, err);
    presto_loader_free(loader);
    if (status == PRESTO_OK && epochs.samples == 0 && left_out == wanted) {
        free(epochs.costs);
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "nothing to measure: the steps leave out all of %ju sample%s",
                           (uintmax_t)epoch_samples, presto_plural(epoch_samples));
    }
    if (status == PRESTO_OK && epochs.samples + left_out != wanted) {
        free(epochs.costs);
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "%ju sample%s of %ju came out of %ju epoch%s", (uintmax_t)epochs.samples,
                           presto_plural(epochs.samples), (uintmax_t)wanted, (uintmax_t)count,
                           presto_plural(count));
    }
    if (status == PRESTO_OK)
        *epochs_out = epochs;
    return status;
}

/* An epoch that was disturbed is told from others by others: there are a few, or two if two last
 * long enough, or one that is long. What it took beyond the others does not count. */
static bool needs_cold(const presto__epochs *cold, const presto__pace *pace, double run_s) {
    double wall_s = cold->measure.wall_s, epochs = (double)cold->epochs;
    double enough_s = run_s > 0 ? fmax(run_s, COLD_S_LEAST) : 0;
    if (cold->epochs < COLD_EPOCHS_LEAST)
        return wall_s < enough_s * (cold->epochs < 2 ? PRESTO__LONG_EPOCH_RUNS : 1);
    double epoch_s = fmin(presto__pace_middle(pace), wall_s / epochs);
    return epoch_s * (epochs + 0.5) < run_s && wall_s < COLD_S_MOST * enough_s;
}

/* The first loader of a source reads indexes, which are kept. Of what a later epoch takes, they are
 * no part. */
static presto_status read_indexes(const presto__load *what, presto_error *err) {
    presto_loader_options options;
    size_t files = what->dataset != NULL ? presto_dataset_shard_count(what->dataset) : 0;
    for (size_t i = 0; i < files; i++) {
        presto_shard *shard = NULL;
        PRESTO_TRY(presto_dataset_shard_at(what->dataset, i, &shard, err));
    }
    presto__loader_options_of(what->runner, what->strategy->threads, 1, &options);
    options.range.limit_samples = 1;
    options.batch_samples = 1;
    presto_loader *loader = NULL;
    presto_batch *batch = NULL;
    PRESTO_TRY(presto__loader_open(what->source, what->plan, &options, &loader, err));
    presto_status status = presto_loader_next(loader, &batch, err);
    presto_batch_release(status == PRESTO_OK ? batch : NULL);
    presto_loader_free(loader);
    return status < 0 ? status : PRESTO_OK;
}

presto_status presto__ready_memory(const presto__load *what, presto_error *err) {
    PRESTO_TRY(read_indexes(what, err));
    PRESTO_TRY(presto__source_drop_cache(what->source, err));
    presto__warm_memory(&what->runner->warmed,
                        presto_source_bytes(what->source) + what->runner->flight_bytes);
    return PRESTO_OK;
}

presto_status presto__measure_cold(const presto__load *what, presto__pace *pace,
                                   presto__epochs *cold, presto_error *err) {
    const presto_sweep_options *options = what->runner->options;
    presto__load played = *what;
    played.plays = true;
    PRESTO_TRY(presto__ready_memory(what, err));
    do {
        presto__epochs one = {0};
        PRESTO_TRY(presto__source_drop_cache(what->source, err));
        PRESTO_TRY(presto__measure_epochs(&played, 1, &one, err));
        presto__pace_add(pace, one.measure.wall_s);
        presto__epochs_add(cold, &one);
    } while (cold->epochs < options->cold_epochs && needs_cold(cold, pace, what->run_s));
    cold->epoch_s = presto__pace_middle(pace);
    return PRESTO_OK;
}

void presto__run_done(presto__load_run *seen) {
    free(seen->cold.costs);
    free(seen->cached.costs);
    *seen = (presto__load_run){.look = seen->look};
}

static presto_status measure_calmly(const presto__load *what, presto__measure_fn measure,
                                    presto__load_run *into, presto_error *err) {
    presto__calm *calm = &what->runner->calm;
    do {
        presto__run_done(into);
        presto__calm_start(calm);
        PRESTO_TRY(measure(what, into, err));
    } while (presto__calm_wants_again(calm, presto__machine_cpus()));
    return PRESTO_OK;
}

presto_status presto__trial_stream_open(const presto__runner *runner, const char *dir,
                                        presto_stream *stream_out, presto_error *err) {
    presto_stream_options options;
    presto_stream_options_defaults(&options);
    presto_pipeline_options reading = {.struct_bytes = sizeof reading};
    presto__pipeline_options_of(runner->pipeline, &reading);
    options.pipeline_options = &reading;
    return presto_stream_open(&dir, 1, &options, stream_out, err);
}

presto_status presto__measure_strategy(presto__runner *runner, presto__trial *trial,
                                       presto__measure_fn measure, presto__load_run *into,
                                       presto_error *err) {
    const presto_strategy *strategy = &trial->result.strategy;
    if (strategy->codec == NULL) {
        const presto__load as_it_is = {.runner = runner,
                                       .trial = trial,
                                       .strategy = strategy,
                                       .source = runner->source,
                                       .plan = runner->plan,
                                       .run_s = runner->options->run_s};
        return measure_calmly(&as_it_is, measure, into, err);
    }
    presto_stream stream = {0};
    PRESTO_TRY(presto__trial_stream_open(runner, trial->dir, &stream, err));
    const presto__load stored = {.runner = runner,
                                 .trial = trial,
                                 .strategy = strategy,
                                 .source = stream.source,
                                 .dataset = stream.dataset,
                                 .plan = stream.plan,
                                 .run_s = runner->options->run_s};
    presto_status status = measure_calmly(&stored, measure, into, err);
    presto_stream_close(&stream);
    return status;
}
