/* SPDX-License-Identifier: Apache-2.0 */
/* What all that runs trials needs: their end, and word to the user. */
#include "trial_internal.h"

#include <math.h>
#include <stdlib.h>

#include "../../base/clock_internal.h"
#include "../../base/folder_internal.h"

#define ASK_EVERY_NS UINT64_C(100000000)

double presto__epochs_typical_s(const presto__epochs *epochs) {
    double mean_s = epochs->measure.wall_s / (double)epochs->epochs;
    return fmax(epochs->epoch_s > 0 ? epochs->epoch_s : mean_s, 1e-9);
}

double presto__epochs_rate(const presto__epochs *epochs) {
    return (double)epochs->samples / (double)epochs->epochs / presto__epochs_typical_s(epochs);
}

void presto__epochs_add(presto__epochs *sum, presto__epochs *more) {
    if (sum->epochs == 0) {
        *sum = *more;
        *more = (presto__epochs){0};
        return;
    }
    double part = (double)more->samples / (double)(sum->samples + more->samples);
    size_t costs = sum->costs != NULL && more->costs != NULL ? sum->cost_count : 0;
    for (size_t i = 0; i < costs; i++) {
        double *cost = &sum->costs[i].busy_s_per_sample;
        *cost += part * (more->costs[i].busy_s_per_sample - *cost);
    }
    sum->epochs += more->epochs;
    sum->samples += more->samples;
    sum->cut = more->cut;
    sum->storage_reads += more->storage_reads;
    sum->read_bytes += more->read_bytes;
    sum->delivered_bytes += more->delivered_bytes;
    sum->worker_wait_s += more->worker_wait_s;
    sum->consumer_wait_s += more->consumer_wait_s;
    presto__measure_add(&sum->measure, &more->measure);
    free(more->costs);
    *more = (presto__epochs){0};
}

presto_loader_errors presto__trial_errors(const presto__runner *runner) {
    presto_loader_errors errors = runner->options->errors;
    errors.skip_limit = UINT64_MAX;
    errors.skip_fraction = 1;
    errors.on_skip = NULL;
    errors.on_warning = NULL;
    return errors;
}

void presto__copies_remove(presto__copies *copies) {
    if (copies->dir != NULL)
        (void)presto__folder_remove(copies->dir, NULL);
    free(copies->dir);
    *copies = (presto__copies){0};
}

void presto__trial_remove(presto__trial *trial) {
    presto__copies_remove(&trial->copies);
    if (trial->dir != NULL)
        (void)presto__folder_remove(trial->dir, NULL);
    free(trial->dir);
    trial->dir = NULL;
    trial->dir_bytes = 0;
}

void presto__trial_done(presto__trial *trial) {
    presto__trial_remove(trial);
    for (size_t i = 0; i < trial->cold_count; i++)
        free(trial->cold[i].costs);
    for (size_t i = 0; i < trial->cached_count; i++)
        free(trial->cached[i].costs);
    free(trial->cold);
    free(trial->cached);
    free(trial->preparations);
    free(trial->laps);
}

presto_status presto__trial_add_lap(presto__trial *trial, presto__lap lap, presto_error *err) {
    presto__lap *laps = realloc(trial->laps, (trial->lap_count + 1) * sizeof *laps);
    if (laps == NULL)
        return presto_fail_memory(err, (trial->lap_count + 1) * sizeof *laps);
    trial->laps = laps;
    laps[trial->lap_count++] = lap;
    return PRESTO_OK;
}

presto_status presto__runner_report(presto__runner *runner, const presto_strategy *strategy,
                                    const presto_strategy_result *result, presto_error *err) {
    const presto_sweep_options *options = runner->options;
    runner->reported = *strategy;
    runner->asked_ns = presto__clock_ns();
    bool is_wished =
        options->should_stop != NULL && options->should_stop(options->should_stop_user);
    if (!is_wished &&
        (options->on_trial == NULL ||
         options->on_trial(options->on_trial_user, strategy, runner->done, runner->total, result)))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "the sweep was stopped");
}

bool presto__runner_stops(void *user) {
    presto__runner *runner = user;
    bool has_hook = runner->options->on_trial != NULL || runner->options->should_stop != NULL;
    if (!has_hook || presto__clock_ns() - runner->asked_ns < ASK_EVERY_NS)
        return false;
    const presto_strategy strategy = runner->reported;
    return presto__runner_report(runner, &strategy, NULL, NULL) != PRESTO_OK;
}

presto_status presto__runner_check(const presto__runner *runner, presto_error *err) {
    if (!presto__runner_stops((void *)(uintptr_t)runner))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "the sweep was stopped");
}
