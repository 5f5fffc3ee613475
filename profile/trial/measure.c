/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring a list of strategies. They are measured in waves; a wave has as many datasets as fit
 * the disk budget. Within a wave all are converted, then measured in rounds, each strategy once a
 * round. So a slow phase of the machine affects all of them, not one. A strategy that fails leaves
 * the wave; the others continue. So does one whose runs have told enough.
 */
#include "../profile_internal.h"

#include <math.h>
#include <string.h>

/* The strategies that are measured side by side: places [first, last) of the list. */
typedef struct wave {
    presto_sweep *sweep;
    presto__runner *runner;
    const presto__measuring *what;
    size_t first, last;
} wave;

bool presto__trial_is_alive(const presto__trial *trial) {
    return !trial->result.failed;
}

bool presto__trial_stores(const presto__trial *trial) {
    return trial->result.strategy.codec != NULL;
}

static bool may_run(const presto__trial *trial) {
    return presto__trial_is_alive(trial) && !trial->gave_up;
}

bool presto__trial_is_measured(const presto__trial *trial) {
    return trial->cold_count > 0 && (!presto__trial_stores(trial) || trial->preparation_count > 0);
}

static size_t trials_done(const presto__trial *trial) {
    return trial->preparation_count + trial->cold_count;
}

/* Conversions and runs that are wanted of it, and not done. */
static size_t trials_left(const presto__runner *runner, const presto__trial *trial, unsigned runs) {
    size_t preparations =
        presto__trial_stores(trial) ? presto__preparations_of(runner->options, runs) : 0;
    size_t left = trial->cold_count < runs ? runs - trial->cold_count : 0;
    if (trial->preparation_count < preparations)
        left += preparations - trial->preparation_count;
    return may_run(trial) ? left : 0;
}

size_t presto__measure_left(const presto_sweep *sweep, const presto__runner *runner,
                            const presto__measuring *what) {
    size_t left = 0;
    for (size_t i = 0; i < what->count; i++)
        left += trials_left(runner, &sweep->trials[what->list[i]], what->runs);
    return left;
}

static presto_status note_fewer_runs(const wave *over, const presto__trial *trial,
                                     presto_error *err) {
    char name[PRESTO__STRATEGY_TEXT_BYTES];
    char why[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    presto_error_format(&trial->result.failure, why, sizeof why);
    return presto__add_note(over->sweep, err, "%s has %zu of %u runs: %s",
                            presto__strategy_format(&trial->result.strategy, name, sizeof name),
                            trial->cold_count, over->what->runs, why);
}

/* Records a failure as the strategy's own. Its remaining trials count as done. That the disk is
 * full says nothing against a strategy: it keeps the runs that it has had. */
static presto_status fail_trial(const wave *over, presto__trial *trial, const presto_error *failure,
                                presto_error *err) {
    over->runner->done += trials_left(over->runner, trial, over->what->runs);
    trial->result.failure = *failure;
    presto__trial_remove(trial);
    trial->gave_up = presto__is_disk_full(failure) && presto__trial_is_measured(trial);
    if (trial->gave_up)
        return note_fewer_runs(over, trial, err);
    trial->result.failed = true;
    trial->result.score = NAN;
    return presto__runner_report(over->runner, &trial->result.strategy, &trial->result, err);
}

presto_status presto__journal_give_up(presto_sweep *sweep, const presto_error *why,
                                      presto_error *err) {
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    presto_error_format(why, text, sizeof text);
    presto__journal_close(sweep->journal);
    sweep->journal = NULL;
    return presto__add_note(sweep, err,
                            "what was measured from here on is not in the journal, and --resume "
                            "measures it again: %s",
                            text);
}

static presto_status note_in_journal(presto_sweep *sweep, const presto__trial *trial,
                                     size_t preparations_before, presto_error *err) {
    size_t i = (size_t)(trial - sweep->trials);
    presto_error failure;
    presto_status status = trial->preparation_count > preparations_before
                               ? presto__journal_add_preparation(sweep->journal, i, trial, &failure)
                               : presto__journal_add_run(sweep->journal, i, trial, &failure);
    return status == PRESTO_OK ? PRESTO_OK : presto__journal_give_up(sweep, &failure, err);
}

typedef presto_status (*work_fn)(presto__runner *runner, presto__trial *trial, presto_error *err);

/* One conversion or one run. Fails only if the whole sweep is to end. */
static presto_status run_trial(const wave *over, presto__trial *trial, work_fn work,
                               presto_error *err) {
    PRESTO_TRY(presto__runner_report(over->runner, &trial->result.strategy, NULL, err));
    presto_error failure;
    size_t preparations = trial->preparation_count, done = trials_done(trial);
    presto_status status = work(over->runner, trial, &failure);
    if (status == PRESTO_ERR_STOPPED) {
        if (err != NULL)
            *err = failure;
        return status;
    }
    if (status != PRESTO_OK)
        return fail_trial(over, trial, &failure, err);
    if (trials_done(trial) == done)
        return PRESTO_OK; /* a dataset made again for a resumed sweep: nothing was measured */
    over->runner->done++;
    return note_in_journal(over->sweep, trial, preparations, err);
}

/* The first runs of a trial may tell that others are worth nothing. */
static bool needs_runs(const wave *over, size_t i) {
    const presto__measuring *what = over->what;
    const presto__trial *trial = &over->sweep->trials[i];
    bool has_enough =
        what->has_enough != NULL && trial->cold_count > 0 && what->has_enough(what->user, i);
    return trials_left(over->runner, trial, what->runs) > 0 && !has_enough;
}

/* Convert from over->first on until the next dataset might not fit; at least one strategy per wave.
 * Sets over->last. */
static presto_status prepare_wave(wave *over, uint64_t budget_bytes, presto_error *err) {
    uint64_t held = 0;
    uint64_t largest = 0;
    size_t at = over->first;
    for (; at < over->what->count; at++) {
        presto__trial *trial = &over->sweep->trials[over->what->list[at]];
        if (at > over->first && held + largest > budget_bytes)
            break;
        if (!presto__trial_stores(trial))
            PRESTO_TRY(presto__trial_prepare(over->runner, trial, err));
        else if (needs_runs(over, over->what->list[at]))
            PRESTO_TRY(run_trial(over, trial, presto__trial_prepare, err));
        held += trial->dir_bytes;
        largest = trial->dir_bytes > largest ? trial->dir_bytes : largest;
    }
    over->last = at;
    return PRESTO_OK;
}

static presto_status measure_wave(const wave *over, presto_error *err) {
    for (unsigned round = 0; round < over->what->runs; round++) {
        for (size_t i = over->first; i < over->last; i++) {
            presto__trial *trial = &over->sweep->trials[over->what->list[i]];
            if (!needs_runs(over, over->what->list[i]))
                continue;
            unsigned preparations =
                presto__preparations_of(over->runner->options, over->what->runs);
            if (may_run(trial) && presto__trial_stores(trial) && round < preparations &&
                trial->preparation_count <= round)
                PRESTO_TRY(run_trial(over, trial, presto__trial_prepare, err));
            if (may_run(trial) && trial->cold_count <= round)
                PRESTO_TRY(run_trial(over, trial, presto__trial_load, err));
        }
    }
    for (size_t i = over->first; i < over->last; i++) {
        presto__trial *trial = &over->sweep->trials[over->what->list[i]];
        if (over->what->on_measured != NULL && presto__trial_is_alive(trial))
            PRESTO_TRY(over->what->on_measured(over->what->user, over->what->list[i], err));
        if (over->last < over->what->count || !over->what->keeps_last)
            presto__trial_remove(trial);
        over->runner->done += trials_left(over->runner, trial, over->what->runs); /* not needed */
        if (!presto__trial_is_alive(trial))
            continue;
        PRESTO_TRY(presto__trial_summarize(over->runner, trial, err));
        PRESTO_TRY(
            presto__runner_report(over->runner, &trial->result.strategy, &trial->result, err));
    }
    return PRESTO_OK;
}

presto_status presto__measure_list(presto_sweep *sweep, presto__runner *runner,
                                   const presto__measuring *what, presto_error *err) {
    /* At most half of the free space: others write to that disk, too. */
    uint64_t free_bytes = presto__disk_free_bytes(runner->work_dir);
    uint64_t budget_bytes = runner->options->work_bytes;
    if (budget_bytes > free_bytes / 2)
        budget_bytes = free_bytes / 2;
    for (size_t next = 0; next < what->count;) {
        wave current = {sweep, runner, what, next, next};
        PRESTO_TRY(prepare_wave(&current, budget_bytes, err));
        PRESTO_TRY(measure_wave(&current, err));
        next = current.last;
    }
    return PRESTO_OK;
}
