/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweep as a whole. Strategies are measured in waves; a wave has as many datasets as fit the
 * disk budget. Within a wave all are converted, then measured in rounds, each strategy once a
 * round. So a slow phase of the machine affects all of them, not one. A strategy that fails leaves
 * the wave; the others continue.
 */
#include "../base/clock_internal.h"
#include "../base/options_internal.h"
#include "profile_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS_MOST 1000
#define RUN_S_MOST 3600
#define COLD_EPOCHS_MOST 1000
/* If other processes use more of the processors than this, a note says so. */
#define BUSY_PART 0.1
#define DEFAULT_WORK_BYTES ((uint64_t)4 << 30)

void presto_sweep_options_init(presto_sweep_options *options, size_t struct_bytes) {
    const presto_sweep_options defaults = {
        .samples = 200,
        .runs = 3,
        .run_s = 0.25,
        .cold_epochs = 12,
        .preparation_runs = 1,
        .batch_samples = 32,
        .weights = {0, 0, 1},
        .work_bytes = DEFAULT_WORK_BYTES,
    };
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

static presto_status check_options(const presto_sweep_options *options, presto_error *err) {
    if (options->pipeline == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "a sweep needs a pipeline");
    if (options->work_dir == NULL || options->work_dir[0] == '\0')
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a sweep needs a work folder on the storage to be judged");
    if (options->runs < 1 || options->runs > RUNS_MOST)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%u runs: 1 to %d are possible", options->runs, RUNS_MOST);
    if (options->preparation_runs < 1 || options->preparation_runs > options->runs)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%u conversions per strategy: 1 to the number of runs (%u) are possible",
                           options->preparation_runs, options->runs);
    if (!(options->run_s >= 0 && options->run_s <= RUN_S_MOST))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "runs of %g s: 0 to %d are possible", options->run_s, RUN_S_MOST);
    if (options->cold_epochs < 1 || options->cold_epochs > COLD_EPOCHS_MOST)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%u cold epochs a run: 1 to %d are possible", options->cold_epochs,
                           COLD_EPOCHS_MOST);
    if (options->pipeline_name != NULL)
        PRESTO_TRY(presto__strategy_check_pipeline(options->pipeline_name, err));
    if (options->batch_samples < 1)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "batches of 0 samples: at least 1 is needed");
    return presto__weights_check(&options->weights, err);
}

/* ---- notes ---- */

static presto_status add_note(presto_sweep *sweep, presto_error *err, const char *format, ...)
    PRESTO_PRINTF(3, 4);

static presto_status add_note(presto_sweep *sweep, presto_error *err, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char **notes = realloc(sweep->notes, (sweep->note_count + 1) * sizeof *notes);
    if (notes == NULL)
        return presto_fail_memory(err, (sweep->note_count + 1) * sizeof *notes);
    sweep->notes = notes;
    char *copy = strdup(text);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(text) + 1);
    notes[sweep->note_count++] = copy;
    return PRESTO_OK;
}

/* Finds cold epochs that were not cold: their bytes came from the page cache. */
static presto_status note_warm_cold_epochs(presto_sweep *sweep, presto_error *err) {
    double read = 0;
    double from_disk = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto__trial *trial = &sweep->trials[i];
        for (size_t r = 0; r < trial->cold_count; r++) {
            read += (double)trial->cold[r].read_bytes;
            from_disk += trial->cold[r].measure.disk_read_bytes;
        }
    }
    if (isnan(from_disk))
        return add_note(sweep, err,
                        "the system does not tell what is read from disk, so that nothing shows "
                        "whether cold epochs were cold");
    if (from_disk >= read / 2)
        return PRESTO_OK;
    return add_note(
        sweep, err,
        "cold epochs were not cold: %.0f %% of their bytes came from disk (file system %s); "
        "the page cache could not be dropped, or the storage is memory",
        read > 0 ? 100 * from_disk / read : 0.0, sweep->facts.filesystem);
}

/* Processor time that others used while epochs ran, relative to all that was available. */
static presto_status note_busy_machine(presto_sweep *sweep, presto_error *err) {
    double others_s = 0;
    double wall_s = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto__trial *trial = &sweep->trials[i];
        for (size_t r = 0; r < trial->cold_count + trial->cached_count; r++) {
            const presto__measure *measure = r < trial->cold_count
                                                 ? &trial->cold[r].measure
                                                 : &trial->cached[r - trial->cold_count].measure;
            others_s += measure->machine_busy_s - measure->cpu_user_s - measure->cpu_system_s;
            wall_s += measure->wall_s;
        }
    }
    long machine_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    double part = others_s / (wall_s * (double)(machine_cpus > 0 ? machine_cpus : 1));
    if (!(part > BUSY_PART))
        return PRESTO_OK;
    return add_note(sweep, err,
                    "other processes used %.0f %% of the processors while epochs were measured: "
                    "repeat the sweep on an idle machine for figures to rely on",
                    fmin(part, 1) * 100);
}

/* Finds runs far below the wanted time because their number of epochs is limited. */
static presto_status note_short_runs(presto_sweep *sweep, presto_error *err) {
    const presto__epochs *shortest = NULL;
    for (size_t i = 0; i < sweep->trial_count; i++)
        for (size_t r = 0; r < sweep->trials[i].cold_count; r++)
            if (shortest == NULL ||
                sweep->trials[i].cold[r].measure.wall_s < shortest->measure.wall_s)
                shortest = &sweep->trials[i].cold[r];
    if (shortest == NULL || shortest->measure.wall_s >= sweep->run_s / 2 ||
        sweep->facts.samples == sweep->facts.source_samples)
        return PRESTO_OK;
    return add_note(sweep, err,
                    "the shortest run took %.0f ms for %ju cold epoch%s: with more samples the "
                    "start of the threads would weigh less",
                    shortest->measure.wall_s * 1e3, (uintmax_t)shortest->epochs,
                    presto_plural(shortest->epochs));
}

static presto_status note_cache_too_small(presto_sweep *sweep, presto_error *err) {
    const presto_strategy_result *best = &sweep->trials[sweep->best].result;
    if (sweep->facts.memory_bytes == 0 ||
        best->total_stored_bytes <= (double)sweep->facts.memory_bytes)
        return PRESTO_OK;
    char stored[PRESTO_TEXT_BYTES];
    char memory[PRESTO_TEXT_BYTES];
    return add_note(
        sweep, err,
        "cached epochs are out of reach for the whole dataset on this machine: %s do not "
        "fit into %s of memory",
        presto_format_bytes(best->total_stored_bytes, stored),
        presto_format_bytes((double)sweep->facts.memory_bytes, memory));
}

static presto_status write_notes(presto_sweep *sweep, presto_error *err) {
    const presto_sweep_facts *facts = &sweep->facts;
    char samples[PRESTO_TEXT_BYTES];
    char all[PRESTO_TEXT_BYTES];
    if (facts->samples < facts->source_samples)
        PRESTO_TRY(add_note(sweep, err, "measured on %s %s of %s; totals are extrapolated",
                            sweep->is_spread ? "an even selection of" : "the first",
                            presto_format_count(facts->samples, samples),
                            presto_format_things(facts->source_samples, "sample", all)));
    PRESTO_TRY(note_warm_cold_epochs(sweep, err));
    PRESTO_TRY(note_busy_machine(sweep, err));
    PRESTO_TRY(note_short_runs(sweep, err));
    return note_cache_too_small(sweep, err);
}

/* ---- running ---- */

/* The strategies that are measured side by side: trials [first, last). */
typedef struct wave {
    size_t first, last;
} wave;

static bool is_alive(const presto__trial *trial) {
    return !trial->result.failed;
}

/* Conversions and runs that one strategy takes. */
static size_t trials_of(const presto_sweep_options *options, const presto__trial *trial) {
    bool is_converted = trial->result.strategy.codec != NULL;
    return options->runs + (is_converted ? options->preparation_runs : 0);
}

/* Records a failure as the strategy's own. Its remaining trials count as done. */
static presto_status fail_trial(presto__runner *runner, presto__trial *trial,
                                const presto_error *failure, presto_error *err) {
    trial->result.failed = true;
    trial->result.failure = *failure;
    trial->result.score = NAN;
    presto__trial_remove(trial);
    runner->done += trials_of(runner->options, trial) - trial->trials_done;
    return presto__runner_report(runner, &trial->result.strategy, &trial->result, err);
}

typedef presto_status (*work_fn)(presto__runner *runner, presto__trial *trial, presto_error *err);

/* One conversion or one run. Fails only if the whole sweep is to end. */
static presto_status run_trial(presto__runner *runner, presto__trial *trial, work_fn work,
                               presto_error *err) {
    PRESTO_TRY(presto__runner_report(runner, &trial->result.strategy, NULL, err));
    presto_error failure;
    presto_status status = work(runner, trial, &failure);
    if (status == PRESTO_ERR_STOPPED) {
        if (err != NULL)
            *err = failure;
        return status;
    }
    if (status != PRESTO_OK)
        return fail_trial(runner, trial, &failure, err);
    trial->trials_done++;
    runner->done++;
    return PRESTO_OK;
}

/* Convert from over->first on until the next dataset might not fit; at least one strategy per wave.
 * Sets over->last. */
static presto_status prepare_wave(presto_sweep *sweep, presto__runner *runner,
                                  uint64_t budget_bytes, wave *over, presto_error *err) {
    uint64_t held = 0;
    uint64_t largest = 0;
    size_t at = over->first;
    for (; at < sweep->trial_count; at++) {
        presto__trial *trial = &sweep->trials[at];
        if (at > over->first && held + largest > budget_bytes)
            break;
        if (trial->result.strategy.codec == NULL)
            PRESTO_TRY(presto__trial_prepare(runner, trial, err));
        else
            PRESTO_TRY(run_trial(runner, trial, presto__trial_prepare, err));
        held += trial->dir_bytes;
        largest = trial->dir_bytes > largest ? trial->dir_bytes : largest;
    }
    over->last = at;
    return PRESTO_OK;
}

static presto_status measure_wave(presto_sweep *sweep, presto__runner *runner, wave over,
                                  presto_error *err) {
    unsigned runs = runner->options->runs;
    for (unsigned round = 0; round < runs; round++) {
        bool convert_again = round > 0 && round < runner->options->preparation_runs;
        for (size_t i = over.first; i < over.last; i++) {
            presto__trial *trial = &sweep->trials[i];
            if (convert_again && is_alive(trial) && trial->result.strategy.codec != NULL)
                PRESTO_TRY(run_trial(runner, trial, presto__trial_prepare, err));
            if (is_alive(trial))
                PRESTO_TRY(run_trial(runner, trial, presto__trial_load, err));
        }
    }
    for (size_t i = over.first; i < over.last; i++) {
        presto__trial *trial = &sweep->trials[i];
        presto__trial_remove(trial);
        if (!is_alive(trial))
            continue;
        PRESTO_TRY(presto__trial_summarize(runner, trial, err));
        PRESTO_TRY(presto__runner_report(runner, &trial->result.strategy, &trial->result, err));
    }
    return PRESTO_OK;
}

static presto_status run_all(presto_sweep *sweep, presto__runner *runner, presto_error *err) {
    /* At most half of the free space: others write to that disk, too. */
    uint64_t free_bytes = presto__disk_free_bytes(runner->work_dir);
    uint64_t budget_bytes = runner->options->work_bytes;
    if (budget_bytes > free_bytes / 2)
        budget_bytes = free_bytes / 2;
    for (size_t next = 0; next < sweep->trial_count;) {
        wave current = {.first = next};
        PRESTO_TRY(prepare_wave(sweep, runner, budget_bytes, &current, err));
        PRESTO_TRY(measure_wave(sweep, runner, current, err));
        next = current.last;
    }
    for (size_t i = 0; i < sweep->trial_count; i++)
        if (is_alive(&sweep->trials[i]))
            return PRESTO_OK;
    if (err != NULL)
        *err = sweep->trials[0].result.failure;
    return sweep->trials[0].result.failure.status;
}

/* ---- life ---- */

static presto_status copy_text(const char *text, char **copy_out, presto_error *err) {
    if (text == NULL)
        return PRESTO_OK;
    *copy_out = strdup(text);
    return *copy_out != NULL ? PRESTO_OK : presto_fail_memory(err, strlen(text) + 1);
}

/* *count_out grows with each copy, so a failure frees exactly those. */
static presto_status copy_texts(const char *const *texts, size_t count, char ***copies_out,
                                size_t *count_out, presto_error *err) {
    *copies_out = calloc(count + 1, sizeof **copies_out);
    if (*copies_out == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof **copies_out);
    for (; *count_out < count; ++*count_out)
        PRESTO_TRY(copy_text(texts[*count_out], &(*copies_out)[*count_out], err));
    return PRESTO_OK;
}

static presto_status keep_input(presto_sweep *sweep, const char *const *paths, size_t path_count,
                                const presto_sweep_options *options, presto_error *err) {
    const char *name = presto_pipeline_name(options->pipeline);
    PRESTO_TRY(copy_text(name, &sweep->pipeline_name, err));
    PRESTO_TRY(copy_text(options->pipeline_name != NULL ? options->pipeline_name : name,
                         &sweep->pipeline, err));
    PRESTO_TRY(copy_text(presto_pipeline_json(options->pipeline), &sweep->pipeline_json, err));
    PRESTO_TRY(copy_text(options->dataset_dir, &sweep->dataset_dir, err));
    PRESTO_TRY(copy_text(options->work_dir, &sweep->work_dir, err));
    PRESTO_TRY(copy_texts(paths, path_count, &sweep->paths, &sweep->path_count, err));
    PRESTO_TRY(copy_texts(options->set, options->set_count, &sweep->set, &sweep->set_count, err));
    sweep->runs = options->runs;
    sweep->run_s = options->run_s;
    sweep->cold_epochs = options->cold_epochs;
    sweep->preparation_runs = options->preparation_runs;
    sweep->seed = options->seed;
    sweep->weights = options->weights;
    return PRESTO_OK;
}

static presto_status make_trials(presto_sweep *sweep, presto_error *err) {
    size_t count = sweep->space.strategy_count;
    sweep->trials = calloc(count, sizeof *sweep->trials);
    if (sweep->trials == NULL)
        return presto_fail_memory(err, count * sizeof *sweep->trials);
    for (; sweep->trial_count < count; sweep->trial_count++) {
        presto__trial *trial = &sweep->trials[sweep->trial_count];
        trial->result.strategy = sweep->space.strategies[sweep->trial_count];
        trial->preparations = calloc(sweep->preparation_runs, sizeof *trial->preparations);
        trial->cold = calloc(sweep->runs, sizeof *trial->cold);
        trial->cached = calloc(sweep->runs, sizeof *trial->cached);
        if (trial->preparations == NULL || trial->cold == NULL || trial->cached == NULL) {
            sweep->trial_count++;
            return presto_fail_memory(err, sweep->runs * sizeof *trial->cold);
        }
    }
    return PRESTO_OK;
}

static presto_status run(presto_sweep *sweep, const char *const *paths, size_t path_count,
                         const presto_sweep_options *options, presto_error *err) {
    uint64_t start_ns = presto__clock_ns();
    presto__runner runner = {.total = 0};
    for (size_t i = 0; i < sweep->trial_count; i++)
        runner.total += trials_of(options, &sweep->trials[i]);
    presto_status status = presto__runner_init(&runner, paths, path_count, options, err);
    if (status == PRESTO_OK) {
        presto__machine_facts(runner.work_dir, &sweep->facts);
        status = run_all(sweep, &runner, err);
    }
    sweep->facts.samples = runner.samples;
    sweep->facts.sample_bytes = runner.sample_bytes;
    sweep->facts.source_samples = runner.source_samples;
    for (size_t i = 0; i < runner.note_count && status == PRESTO_OK; i++)
        status = add_note(sweep, err, "%s", runner.notes[i]);
    sweep->facts.source_bytes = runner.source_bytes;
    sweep->facts.batch_samples = runner.batch_samples;
    sweep->is_spread = runner.sample_paths != NULL;
    presto__runner_done(&runner);
    sweep->facts.elapsed_s = (double)(presto__clock_ns() - start_ns) * 1e-9;
    return status;
}

presto_status presto_sweep_run(const char *const *paths, size_t path_count,
                               const presto_sweep_options *options, presto_sweep **sweep_out,
                               presto_error *err) {
    presto_sweep_options taken;
    presto_sweep_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    options = &taken;
    PRESTO_TRY(check_options(options, err));
    presto_sweep *sweep = calloc(1, sizeof *sweep);
    if (sweep == NULL)
        return presto_fail_memory(err, sizeof *sweep);
    presto_status status = presto__space_init(options->pipeline, options, &sweep->space, err);
    if (status == PRESTO_OK)
        status = keep_input(sweep, paths, path_count, options, err);
    if (status == PRESTO_OK)
        status = make_trials(sweep, err);
    if (status == PRESTO_OK)
        status = run(sweep, paths, path_count, options, err);
    if (status == PRESTO_OK)
        status = presto_sweep_score(sweep, &options->weights, err);
    if (status == PRESTO_OK)
        status = write_notes(sweep, err);
    if (status != PRESTO_OK) {
        presto_sweep_free(sweep);
        return status;
    }
    *sweep_out = sweep;
    return PRESTO_OK;
}

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void presto_sweep_free(presto_sweep *sweep) {
    if (sweep == NULL)
        return;
    for (size_t i = 0; i < sweep->trial_count; i++)
        presto__trial_done(&sweep->trials[i]);
    free(sweep->trials);
    free_texts(sweep->paths, sweep->path_count);
    free_texts(sweep->set, sweep->set_count);
    free_texts(sweep->notes, sweep->note_count);
    free(sweep->pipeline);
    free(sweep->pipeline_name);
    free(sweep->pipeline_json);
    free(sweep->dataset_dir);
    free(sweep->work_dir);
    presto_buffer_done(&sweep->reason);
    presto_buffer_done(&sweep->write_command);
    presto_buffer_done(&sweep->load_command);
    presto__space_done(&sweep->space);
    free(sweep);
}
