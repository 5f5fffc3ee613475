/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweep as a whole: its options, its strategies, what is kept of a sweep that was stopped, and
 * its life. measure.c runs strategies, the room predict/ foretells those that are not run.
 */
#include "../base/clock_internal.h"
#include "../base/digest_internal.h"
#include "../base/options_internal.h"
#include "../base/stop_internal.h"
#include "../steps/pipelines_internal.h"
#include "../storage/play_internal.h"
#include "choice/sure_internal.h"
#include "predict/predict_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MOST 1000
#define RUN_S_MOST 3600
#define COLD_EPOCHS_MOST 1000
#define DECIDE_S_MOST 86400
#define CONFIRM_RUNS_MOST 100000
#define DEFAULT_WORK_BYTES ((uint64_t)4 << 30)

void presto_sweep_options_init(presto_sweep_options *options, size_t struct_bytes) {
    const presto_sweep_options defaults = {
        .samples = 200,
        .runs = 3,
        .run_s = 0.25,
        .cold_epochs = 128,
        .preparation_runs = 1,
        .batch_samples = 32,
        .weights = {0, 0, 1},
        .work_bytes = DEFAULT_WORK_BYTES,
        .limits = {.headroom = 0.1},
        .prices = {.months = 1},
        .errors = {.skip_limit = UINT64_MAX, .skip_fraction = 1},
        .decide_s = 30,
        .mode = PRESTO_SWEEP_PREDICT,
        .confirm_runs = 6,
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
    if (!(options->decide_s >= 0 && options->decide_s <= DECIDE_S_MOST))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%g s to decide: 0 to %d are possible", options->decide_s,
                           DECIDE_S_MOST);
    if (options->pipeline_name != NULL)
        PRESTO_TRY(presto__strategy_check_pipeline(options->pipeline_name, err));
    if (options->mode != PRESTO_SWEEP_MEASURE && options->mode != PRESTO_SWEEP_PREDICT)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "there is no mode %d",
                           (int)options->mode);
    if (options->confirm_runs > CONFIRM_RUNS_MOST)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%u strategies to confirm: at most %d are possible",
                           options->confirm_runs, CONFIRM_RUNS_MOST);
    if (options->batch_samples < 1)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "batches of 0 samples: at least 1 is needed");
    PRESTO_TRY(presto__limits_check(&options->limits, err));
    PRESTO_TRY(presto__prices_check(&options->prices, err));
    PRESTO_TRY(presto__storage_check(&options->storage, err));
    return presto__weights_check(&options->weights, err);
}

/* ---- running ---- */

/* Every strategy, in as many runs as wanted. */
static presto_status measure_all(presto_sweep *sweep, presto__runner *runner, presto_error *err) {
    size_t *list = calloc(sweep->trial_count, sizeof *list);
    if (list == NULL)
        return presto_fail_memory(err, sweep->trial_count * sizeof *list);
    for (size_t i = 0; i < sweep->trial_count; i++)
        list[i] = i;
    const presto__measuring all = {.list = list,
                                   .count = sweep->trial_count,
                                   .runs = runner->options->runs,
                                   .keeps_last = true}; /* some are measured again */
    runner->total = runner->done + presto__measure_left(sweep, runner, &all);
    presto_status status = presto__measure_list(sweep, runner, &all, err);
    free(list);
    return status;
}

static presto_status run_all(presto_sweep *sweep, presto__runner *runner, presto_error *err) {
    PRESTO_TRY(runner->options->mode == PRESTO_SWEEP_PREDICT
                   ? presto__predict_sweep(sweep, runner, err)
                   : measure_all(sweep, runner, err));
    for (size_t i = 0; i < sweep->trial_count; i++)
        if (presto__trial_is_alive(&sweep->trials[i]))
            return presto__race(sweep, runner, err);
    if (err != NULL)
        *err = sweep->trials[0].result.failure;
    return sweep->trials[0].result.failure.status;
}

/* ---- what earlier runs measured, and what is left of one that was stopped ---- */

/* A text that is the same for the same sweep of the same source only. More runs of it may be
 * asked for when it is resumed. */
static void identify(const presto_sweep *sweep, const presto__runner *runner,
                     const presto_sweep_options *options, char text_out[33]) {
    presto__digest digest = {{0}};
    const uint64_t numbers[] = {options->samples,       options->cold_epochs,
                                options->seed,          runner->batch_samples,
                                runner->source_samples, runner->source_bytes,
                                options->errors.policy, presto_processor_count()};
    presto__digest_add(&digest, runner->source_identity, sizeof runner->source_identity);
    presto__digest_add(&digest, sweep->pipeline_json, strlen(sweep->pipeline_json));
    presto__digest_add(&digest, numbers, sizeof numbers);
    presto__digest_add(&digest, &options->run_s, sizeof options->run_s);
    char storage[PRESTO_STORAGE_TEXT_BYTES];
    presto__storage_format(&options->storage, storage);
    presto__digest_add(&digest, storage, strlen(storage));
    for (size_t i = 0; i < sweep->path_count; i++)
        presto__digest_add(&digest, sweep->paths[i], strlen(sweep->paths[i]));
    for (size_t i = 0; i < sweep->trial_count; i++) {
        char name[PRESTO__STRATEGY_TEXT_BYTES];
        const presto_strategy *strategy = &sweep->trials[i].result.strategy;
        presto__strategy_format(strategy, name, sizeof name);
        presto__digest_add(&digest, name, strlen(name));
        presto__digest_add(&digest, &strategy->shards, sizeof strategy->shards);
    }
    snprintf(text_out, 33, "%016" PRIx64 "%016" PRIx64, digest.state[0], digest.state[1]);
}

static void forget_prediction(presto_strategy_result *result) {
    presto_sweep_prediction *said = &result->prediction;
    said->cold_samples_per_s = said->cached_samples_per_s = said->uncertainty = NAN;
    said->preparation_s = said->stored_bytes = said->cold_error = said->cached_error = NAN;
    said->memory_samples_per_s = said->memory_bytes = NAN;
}

static presto_status open_journal(presto_sweep *sweep, presto__runner *runner,
                                  const presto_sweep_options *options, presto_error *err) {
    if (options->journal == NULL)
        return PRESTO_OK;
    presto__journal_request request = {.path = options->journal,
                                       .resume = options->resume,
                                       .trials = sweep->trials,
                                       .trial_count = sweep->trial_total,
                                       .probes = sweep->probes,
                                       .probe_count = sweep->space.split_count + 1,
                                       .runs = options->runs,
                                       .preparation_runs = options->preparation_runs};
    identify(sweep, runner, options, request.sweep);
    PRESTO_TRY(presto__journal_open(&request, &sweep->journal, err));
    for (size_t i = 0; i < sweep->trial_total; i++) {
        presto__trial *trial = &sweep->trials[i];
        runner->done += trial->preparation_count + trial->cold_count;
        if (options->mode != PRESTO_SWEEP_PREDICT)
            forget_prediction(&trial->result);
        if (trial->lap_count > 0 && trial->laps[trial->lap_count - 1].round > sweep->rounds)
            sweep->rounds = trial->laps[trial->lap_count - 1].round;
    }
    return PRESTO_OK;
}

static void fail_unmeasured(presto__trial *trial, const presto_error *why) {
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    presto_error_format(why, text, sizeof text);
    trial->result.failed = true;
    trial->result.score = NAN;
    (void)presto_fail(&trial->result.failure, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET,
                      "not measured: %s", text);
}

/* Sums up what there is of a sweep that ended early, and why it did. False if that is nothing. */
static presto_status keep_measured(presto_sweep *sweep, const presto__runner *runner,
                                   const presto_error *why, bool *has_any_out, presto_error *err) {
    *has_any_out = false;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        presto__trial *trial = &sweep->trials[i];
        if (!presto__trial_is_alive(trial))
            continue;
        bool is_measured = presto__trial_is_measured(trial);
        if (is_measured)
            PRESTO_TRY(presto__trial_summarize(runner, trial, err));
        if (is_measured || (sweep->model != NULL && presto__predict_result(sweep, runner, i)))
            *has_any_out = true;
        else
            fail_unmeasured(trial, why);
    }
    if (sweep->model != NULL)
        presto__predict_compare(sweep);
    return PRESTO_OK;
}

/* What was measured until it ended is a sweep's result, too. */
static presto_status end_early(presto_sweep *sweep, const presto__runner *runner, presto_error *why,
                               presto_error *err) {
    if (why->status == PRESTO_ERR_STOPPED) /* whatever was at work then */
        (void)presto_fail(why, why->status, PRESTO_NO_OFFSET, "the sweep was stopped");
    PRESTO_TRY(keep_measured(sweep, runner, why, &sweep->is_stopped, err));
    if (sweep->is_stopped) {
        sweep->stop = *why;
        return PRESTO_OK;
    }
    if (err != NULL)
        *err = *why;
    return why->status;
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

/* Then a dataset's own pipeline does not run unless the user names it. */
static bool runs_code(const presto_pipeline *pipeline) {
    presto_pipeline_options reading = {.struct_bytes = sizeof reading};
    presto__pipeline_options_of(pipeline, &reading);
    bool runs = reading.step_count > 0;
    for (size_t i = 0; i < presto_pipeline_step_count(pipeline); i++)
        runs = runs || (presto__pipeline_step_flags(pipeline, i) & PRESTO_STEP_RUNS_PROGRAM) != 0;
    return runs;
}

/* The pipeline that is tried, in place of the user's: NULL: that one. Unless the user names the
 * representation, the files must be such JPEGs; what cannot be read fails where it is measured. */
static presto_status add_seekable(const char *const *paths, size_t path_count,
                                  const presto_sweep_options *options, presto_pipeline **tried_out,
                                  presto_error *err) {
    bool is_named = false;
    for (size_t i = 0; i < options->stored_count; i++)
        is_named = is_named || strcmp(options->stored[i], PRESTO_SEEKABLE) == 0;
    *tried_out = NULL;
    if (options->no_seekable || (options->stored_count > 0 && !is_named))
        return PRESTO_OK;
    PRESTO_TRY(presto_pipeline_seekable(options->pipeline, tried_out, err));
    if (*tried_out == NULL || is_named ||
        presto__sample_gains_index(*tried_out, paths, path_count, options))
        return PRESTO_OK;
    presto_pipeline_free(*tried_out);
    *tried_out = NULL;
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
    PRESTO_TRY(copy_texts(options->plugins, options->plugin_count, &sweep->plugins,
                          &sweep->plugin_count, err));
    sweep->runs_code = runs_code(options->pipeline);
    sweep->runs = options->runs;
    sweep->run_s = options->run_s;
    sweep->cold_epochs = options->cold_epochs;
    sweep->preparation_runs = options->preparation_runs;
    sweep->seed = options->seed;
    sweep->wanted_samples = options->samples;
    sweep->mode = options->mode;
    sweep->confirm_runs = options->confirm_runs;
    sweep->errors = options->errors;
    sweep->weights = options->weights;
    sweep->limits = options->limits;
    sweep->prices = options->prices;
    sweep->decide_s = options->decide_s;
    sweep->storage = options->storage;
    return PRESTO_OK;
}

/* Appends one. The trials have room for it. */
static presto_status add_trial(presto_sweep *sweep, const presto_strategy *strategy,
                               presto_error *err) {
    presto__trial *trial = &sweep->trials[sweep->trial_total++];
    trial->result.strategy = *strategy;
    forget_prediction(&trial->result);
    trial->preparations = calloc(sweep->preparation_runs, sizeof *trial->preparations);
    trial->cold = calloc(sweep->runs, sizeof *trial->cold);
    trial->cached = calloc(sweep->runs, sizeof *trial->cached);
    if (trial->preparations == NULL || trial->cold == NULL || trial->cached == NULL)
        return presto_fail_memory(err, sweep->runs * sizeof *trial->cold);
    return PRESTO_OK;
}

/* The strategies of the space, and behind them the anchors that are not in it. */
static presto_status make_trials(presto_sweep *sweep, presto_error *err) {
    const presto__space *space = &sweep->space;
    size_t count = space->strategy_count;
    sweep->anchors = calloc(space->split_count, sizeof *sweep->anchors);
    sweep->trials = calloc(count + 2 * space->split_count, sizeof *sweep->trials);
    sweep->probes = calloc(space->split_count + 1, sizeof *sweep->probes);
    if (sweep->trials == NULL || sweep->anchors == NULL || sweep->probes == NULL)
        return presto_fail_memory(err, count * sizeof *sweep->trials);
    for (size_t i = 0; i < count; i++, sweep->trial_count++)
        PRESTO_TRY(add_trial(sweep, &space->strategies[i], err));
    for (size_t i = 0; i < 2 * space->split_count; i++) {
        presto_strategy anchor = presto__anchor_of(space, i / 2, i % 2 == 1);
        size_t *at = &sweep->anchors[i / 2].at[i % 2];
        *at = presto__space_find(space, &anchor);
        if (*at == SIZE_MAX && i % 2 == 1 && anchor.threads == 1)
            *at = sweep->anchors[i / 2].at[0];
        if (*at != SIZE_MAX)
            continue;
        *at = sweep->trial_total;
        PRESTO_TRY(add_trial(sweep, &anchor, err));
    }
    return PRESTO_OK;
}

static presto_status note_skipped(presto_sweep *sweep, const presto__runner *runner,
                                  presto_error *err) {
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    presto_error_format(&runner->first_skip, text, sizeof text);
    return presto__add_note(sweep, err,
                            "%ju of %ju samples cannot be processed and are left out: %s%s",
                            (uintmax_t)runner->skipped, (uintmax_t)runner->samples, text,
                            runner->skipped > 1 ? ", ..." : "");
}

static void keep_facts(presto_sweep *sweep, const presto__runner *runner) {
    presto__machine_facts(runner->work_dir, &sweep->facts);
    sweep->facts.samples = runner->samples;
    sweep->facts.sample_bytes = runner->sample_bytes;
    sweep->facts.source_samples = runner->source_samples;
    sweep->facts.source_bytes = runner->source_bytes;
    sweep->facts.batch_samples = runner->batch_samples;
    sweep->is_spread = runner->is_even;
    if (runner->sample_paths != NULL && presto__sample_can_spread(runner->pipeline))
        presto__tail_of_files(runner->paths, runner->path_count, &sweep->files);
}

static presto_status run(presto_sweep *sweep, const char *const *paths, size_t path_count,
                         const presto_sweep_options *options, presto_error *err) {
    uint64_t start_ns = presto__clock_ns();
    presto__runner runner = {.total = 0};
    presto_status status = presto__runner_init(&runner, paths, path_count, options, err);
    if (status == PRESTO_OK) {
        keep_facts(sweep, &runner);
        runner.trials = sweep->trials;
        runner.trial_count = sweep->trial_total;
        status = open_journal(sweep, &runner, options, err);
    }
    presto_error why;
    if (status == PRESTO_OK && run_all(sweep, &runner, &why) != PRESTO_OK)
        status = end_early(sweep, &runner, &why, err);
    for (size_t i = 0; i < runner.note_count && status == PRESTO_OK; i++)
        status = presto__add_note(sweep, err, "%s", runner.notes[i]);
    if (runner.skipped > 0 && status == PRESTO_OK)
        status = note_skipped(sweep, &runner, err);
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
    if (taken.shard_count_count > 0)
        taken.shards = taken.shard_counts[0]; /* the anchors', and those of looks */
    options = &taken;
    PRESTO_TRY(check_options(options, err));
    *sweep_out = NULL;
    presto_pipeline *seekable = NULL;
    presto_sweep *sweep = calloc(1, sizeof *sweep);
    if (sweep == NULL)
        return presto_fail_memory(err, sizeof *sweep);
    presto__stop_hook pass;
    presto__stop_scope before =
        presto__stop_enter(&pass, options->should_stop, options->should_stop_user);
    presto_status status = add_seekable(paths, path_count, options, &seekable, err);
    if (seekable != NULL)
        taken.pipeline = seekable;
    sweep->adds_seekable = seekable != NULL;
    if (status == PRESTO_OK)
        status = presto__space_init(options->pipeline, options, &sweep->space, err);
    if (status == PRESTO_OK)
        status = keep_input(sweep, paths, path_count, options, err);
    if (status == PRESTO_OK)
        status = make_trials(sweep, err);
    if (status == PRESTO_OK)
        status = run(sweep, paths, path_count, options, err);
    if (!sweep->is_stopped) /* else it has what was measured until then */
        status = presto__stop_leave(&pass, before, status, err);
    else
        (void)presto__stop_leave(&pass, before, status, NULL);
    if (status == PRESTO_OK)
        status = presto_sweep_score(sweep, &options->weights, err);
    if (status == PRESTO_OK)
        status = presto__write_notes(sweep, err);
    presto_pipeline_free(seekable);
    if (status != PRESTO_OK) {
        presto_sweep_free(sweep);
        return status;
    }
    *sweep_out = sweep;
    if (sweep->is_stopped && err != NULL)
        *err = sweep->stop;
    return sweep->is_stopped ? sweep->stop.status : PRESTO_OK;
}

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void presto_sweep_free(presto_sweep *sweep) {
    if (sweep == NULL)
        return;
    for (size_t i = 0; i < sweep->trial_total; i++)
        presto__trial_done(&sweep->trials[i]);
    free(sweep->trials);
    free(sweep->anchors);
    for (size_t i = 0; sweep->probes != NULL && i <= sweep->space.split_count; i++)
        json_decref(sweep->probes[i]);
    free(sweep->probes);
    presto__model_free(sweep->model);
    presto__journal_close(sweep->journal);
    free_texts(sweep->paths, sweep->path_count);
    free_texts(sweep->set, sweep->set_count);
    free_texts(sweep->plugins, sweep->plugin_count);
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
