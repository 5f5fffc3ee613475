/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of a sweep: probes of the machine and of the steps, and what the anchors of each split
 * tell. What the journal has of earlier probes is taken instead of them.
 */
#include "../../storage/play_internal.h"
#include "predict_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANCHOR_RUNS 3
#define ANCHOR_RUNS_MOST 64 /* that are looked at, of an anchor that is run more often */
#define FIRST_UNCERTAINTY 0.15
/* A line of the journal has a limit. */
#define CODECS_KEPT_MOST 128

static presto_status new_model(presto_sweep *sweep, const presto__runner *runner,
                               presto_error *err) {
    const presto__space *space = &sweep->space;
    presto__model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return presto_fail_memory(err, sizeof *model);
    sweep->model = model;
    model->cores = presto_processor_count();
    model->shards = space->shards[0];
    model->samples = runner->samples;
    model->source_samples = runner->source_samples;
    model->uncertainty = FIRST_UNCERTAINTY;
    model->codecs = calloc(space->codec_count + 1, sizeof *model->codecs);
    model->splits = calloc(space->split_count, sizeof *model->splits);
    if (model->codecs == NULL || model->splits == NULL)
        return presto_fail_memory(err, space->split_count * sizeof *model->splits);
    bool has_none = false;
    for (size_t c = 0; c < space->codec_count; c++) {
        model->codecs[model->codec_count++] = space->codecs[c];
        has_none = has_none || strcmp(space->codecs[c], "none") == 0;
    }
    if (!has_none) /* the anchors have it */
        model->codecs[model->codec_count++] = "none";
    for (; model->split_count < space->split_count; model->split_count++) {
        presto__model_split *split = &model->splits[model->split_count];
        split->name = space->splits[model->split_count];
        split->is_raw = strcmp(split->name, PRESTO_UNPROCESSED) == 0;
        split->codecs = calloc(model->codec_count, sizeof *split->codecs);
        if (split->codecs == NULL)
            return presto_fail_memory(err, model->codec_count * sizeof *split->codecs);
    }
    return PRESTO_OK;
}

typedef struct probing {
    presto_sweep *sweep;
    presto__runner *runner;
} probing;

/* Of the clock, for a sample: of the run in the middle. */
static double seconds_each(const presto__epochs *runs, size_t count) {
    double rates[ANCHOR_RUNS_MOST];
    size_t known = count < ANCHOR_RUNS_MOST ? count : ANCHOR_RUNS_MOST;
    for (size_t i = 0; i < known; i++)
        rates[i] = presto__epochs_rate(&runs[i]);
    return known > 0 ? 1 / presto__spread_of(rates, known).median : NAN;
}

/* The most of what is compared; 1: all have as many as threads. */
static size_t most_files(const presto__space *space) {
    size_t most = 1;
    for (size_t i = 0; i < space->shard_count && space->shard_count > 1; i++)
        most = space->shards[i] > most ? space->shards[i] : most;
    return most;
}

/* Without room for many files, it is not known what a file costs. */
static presto_status probe_files(const presto__online *what, size_t most,
                                 presto__model_split *split, presto_error *err) {
    presto_error failure;
    presto_status status = presto__probe_files(what, most, &split->files, &failure);
    if (status == PRESTO_OK)
        return PRESTO_OK;
    if (presto__is_disk_full(&failure)) {
        split->lack = failure;
        return PRESTO_OK;
    }
    if (err != NULL)
        *err = failure;
    return status;
}

/* What the anchor on one thread tells of its split. */
static presto_status probe_split(const probing *with, size_t s, const presto__trial *trial,
                                 presto_error *err) {
    presto_sweep *sweep = with->sweep;
    presto__model_split *split = &sweep->model->splits[s];
    double samples = (double)(split->is_raw ? trial->result.samples : trial->record_bytes.count);
    split->plain_bytes = (double)trial->result.stored_bytes / samples;
    split->raw_bytes = (double)trial->result.raw_bytes / samples;
    split->times.cold_s.one = seconds_each(trial->cold, trial->cold_count);
    split->times.cached_s.one = seconds_each(trial->cached, trial->cached_count);
    if (split->is_recalled)
        return PRESTO_OK;
    PRESTO_TRY(presto__probe_start(with->runner, trial, &split->start_s.one, err));
    PRESTO_TRY(presto__runner_report(with->runner, &trial->result.strategy, NULL, err));
    if (!presto__trial_stores(trial))
        return PRESTO_OK;
    const presto__online plain = {sweep->model, with->runner, split, "none", trial->dir, 1};
    PRESTO_TRY(probe_files(&plain, most_files(&sweep->space), split, err));
    return presto__probe_codecs(sweep->model, with->runner, s, trial->dir, err);
}

/* For a sweep that is resumed. */
static presto_status keep_probe(presto_sweep *sweep, size_t number, json_t *found,
                                presto_error *err) {
    presto_error failure;
    if (presto__journal_add_probe(sweep->journal, number, found, &failure) == PRESTO_OK)
        return PRESTO_OK;
    return presto__journal_give_up(sweep, &failure, err);
}

/* Is what was found of split s as good as it would be another time? A full disk may have room
 * then. */
static bool is_lasting(const presto__model *model, size_t s) {
    bool lasting = model->codec_count <= CODECS_KEPT_MOST;
    for (size_t c = 0; c < model->codec_count; c++) {
        const presto_error *failure = model->splits[s].codecs[c].failure;
        lasting = lasting && (failure == NULL || failure->sys_errno == 0);
    }
    return lasting;
}

static presto_status note_lack(presto_sweep *sweep, const char *what, const presto_error *why,
                               presto_error *err) {
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    presto_error_format(why, text, sizeof text);
    return presto__add_note(sweep, err,
                            "the disk was too full to look at %s, so that predictions "
                            "are less sure; with room, --resume looks again: %s",
                            what, text);
}

/* Both anchors of split s have been looked at. What lacks something is looked at again if the sweep
 * is resumed. */
static presto_status keep_split(presto_sweep *sweep, size_t s, presto_error *err) {
    presto__model_split *split = &sweep->model->splits[s];
    if (!presto__trial_is_alive(&sweep->trials[sweep->anchors[s].at[0]]))
        split->known = PRESTO__SPLIT_UNKNOWN;
    else if (split->known == PRESTO__SPLIT_UNKNOWN)
        split->known = PRESTO__SPLIT_LOOKED_AT;
    if (split->is_recalled || split->known == PRESTO__SPLIT_UNKNOWN)
        return PRESTO_OK;
    if (split->lack.status < 0) {
        char what[128];
        snprintf(what, sizeof what, "the records of %.100s", split->name);
        return note_lack(sweep, what, &split->lack, err);
    }
    if (!is_lasting(sweep->model, s))
        return PRESTO_OK;
    return keep_probe(sweep, 1 + s, presto__split_probe_json(sweep->model, s), err);
}

static presto_status probe_anchor_of(const probing *with, size_t s, size_t i, presto_error *err) {
    presto_sweep *sweep = with->sweep;
    presto__trial *trial = &sweep->trials[i];
    const size_t *at = sweep->anchors[s].at;
    presto__model_split *split = &sweep->model->splits[s];
    if (presto__trial_stores(trial) && trial->dir == NULL && !split->is_recalled)
        PRESTO_TRY(presto__trial_prepare(with->runner, trial, err));
    if (at[1] == i && !split->is_recalled)
        PRESTO_TRY(presto__probe_start(with->runner, trial, &split->start_s.all, err));
    if (at[0] == i)
        PRESTO_TRY(probe_split(with, s, trial, err));
    return at[1] == i ? keep_split(sweep, s, err) : PRESTO_OK;
}

/* An anchor has been run, and its dataset is still there, unless it was run before the sweep was
 * resumed. If it cannot be looked at, nothing is predicted for its split; the others go on. */
static presto_status probe_anchor(void *user, size_t i, presto_error *err) {
    probing *with = user;
    presto_sweep *sweep = with->sweep;
    for (size_t s = 0; s < sweep->space.split_count; s++) {
        const size_t *at = sweep->anchors[s].at;
        presto_error *failure = &sweep->model->splits[s].failure;
        if ((at[0] != i && at[1] != i) || failure->status < 0)
            continue;
        presto_error why;
        presto_status status = probe_anchor_of(with, s, i, &why);
        if (status == PRESTO_OK)
            continue;
        if (status != PRESTO_ERR_STOPPED && status != PRESTO_ERR_MEMORY) {
            *failure = why;
            continue;
        }
        if (err != NULL)
            *err = why;
        return status;
    }
    return PRESTO_OK;
}

static bool has_enough(void *user, size_t i) {
    const probing *with = user;
    return presto__anchor_has_enough(with->sweep, with->runner, i);
}

static unsigned least_of(unsigned a, unsigned b) {
    return a < b ? a : b;
}

static presto_status run_anchors(presto_sweep *sweep, presto__runner *runner, presto_error *err) {
    size_t list[2 * 4096], count = 0;
    for (size_t s = 0; s < sweep->space.split_count && count + 2 <= sizeof list / sizeof *list;
         s++) {
        list[count++] = sweep->anchors[s].at[0];
        if (sweep->anchors[s].at[1] != sweep->anchors[s].at[0])
            list[count++] = sweep->anchors[s].at[1];
    }
    probing with = {sweep, runner};
    const presto__measuring anchors = {.list = list,
                                       .count = count,
                                       .runs = least_of(runner->options->runs, ANCHOR_RUNS),
                                       .on_measured = probe_anchor,
                                       .has_enough = has_enough,
                                       .user = &with};
    runner->total = runner->done + presto__measure_left(sweep, runner, &anchors) +
                    (size_t)runner->options->confirm_runs * (runner->options->runs + 1);
    return presto__measure_list(sweep, runner, &anchors, err);
}

/* What storage would change is not known where it cannot be measured. */
static presto_status probe_storage(presto_sweep *sweep, const presto__runner *runner,
                                   presto_error *err) {
    presto__model *model = sweep->model;
    presto_error failure;
    presto_status status = presto__probe_storage(runner, model->cores, &model->storage, &failure);
    if (status != PRESTO_OK && presto__is_disk_full(&failure))
        return note_lack(sweep, "the speed of its storage", &failure, err);
    if (status != PRESTO_OK && err != NULL)
        *err = failure;
    return status;
}

static presto_status probe_machine(presto_sweep *sweep, presto__runner *runner, presto_error *err) {
    presto__model *model = sweep->model;
    PRESTO_TRY(presto__probe_memory(runner, model->cores, &model->memory_bytes_per_s, err));
    PRESTO_TRY(presto__runner_check(runner, err));
    if (!model->is_storage_given)
        PRESTO_TRY(probe_storage(sweep, runner, err));
    PRESTO_TRY(presto__probe_steps(model, runner, err));
    PRESTO_TRY(presto__probe_cache(model, runner, err));
    if (!presto__storage_is_set(&model->storage)) /* a sweep that is resumed looks again */
        return PRESTO_OK;
    return keep_probe(sweep, 0, presto__machine_probe_json(model), err);
}

/* What the journal has of earlier probes. */
static presto_status recall(presto_sweep *sweep, const presto__runner *runner, presto_error *err) {
    presto__model *model = sweep->model;
    presto_status status = PRESTO_OK;
    if (sweep->probes[0] != NULL)
        status = presto__machine_recall(model, sweep->probes[0], err);
    for (size_t s = 0; s < model->split_count && status == PRESTO_OK; s++)
        if (sweep->probes[1 + s] != NULL)
            status = presto__split_recall(model, s, sweep->probes[1 + s], err);
    if (status != PRESTO_OK)
        presto_error_set_file(err, runner->options->journal);
    return status;
}

/* Of the splits that are known by then, also if the sweep ends here. */
static presto_status fit(presto_sweep *sweep, presto_error *err) {
    presto__model *model = sweep->model;
    for (size_t s = 0; s < model->split_count; s++)
        PRESTO_TRY(presto__model_take_split(model, sweep, s, err));
    presto__join_files(model);
    presto__model_fit(model);
    return PRESTO_OK;
}

presto_status presto__make_model(presto_sweep *sweep, presto__runner *runner, presto_error *err) {
    PRESTO_TRY(new_model(sweep, runner, err));
    presto__model *model = sweep->model;
    model->is_storage_given = presto__storage_is_set(&runner->options->storage);
    model->storage = runner->options->storage;
    PRESTO_TRY(recall(sweep, runner, err));
    if (sweep->probes[0] == NULL)
        PRESTO_TRY(probe_machine(sweep, runner, err));
    presto_status status = run_anchors(sweep, runner, err);
    presto_status fitted = fit(sweep, status == PRESTO_OK ? err : NULL);
    return status != PRESTO_OK ? status : fitted;
}
