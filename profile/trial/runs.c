/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a trial: cold epochs, cached ones, and a cold one of another length; and the runs of the
 * rounds, which are cold. */
#include "load_internal.h"

#include <math.h>

/* Cached epochs that last this part of the wanted time need no more. */
#define ENOUGH 0.75

/* How many more are needed, at their pace, to last `run_s` together. */
static double epochs_missing(const presto__epochs *epochs, double run_s) {
    double epoch_s = epochs->measure.wall_s / (double)epochs->epochs;
    return (run_s - epochs->measure.wall_s) / fmax(epoch_s, 1e-6);
}

/* Epochs follow each other in one loader. Their number is first estimated from the cold ones,
 * which are slower. If that is too few, more are added, in another loader. There is one more, as
 * the first one of a loader does not count, unless epochs are long. */
static presto_status measure_cached(const presto__load *what, const presto__epochs *cold,
                                    presto__epochs *cached, presto_error *err) {
    double run_s = what->run_s;
    double missing = run_s / presto__epochs_typical_s(cold);
    bool is_long = missing < 1 / PRESTO__LONG_EPOCH_RUNS;
    presto__pace pace = {.count = 0};
    presto__load paced = *what;
    paced.pace = &pace;
    do {
        double room = PRESTO__CACHED_EPOCHS_MOST - (double)cached->epochs;
        uint64_t count = (uint64_t)fmin(fmax(round(missing), 1) + !is_long, room);
        presto__epochs some = {0};
        PRESTO_TRY(presto__measure_epochs(&paced, count, &some, err));
        presto__epochs_add(cached, &some);
        missing = epochs_missing(cached, run_s);
    } while (cached->epochs < PRESTO__CACHED_EPOCHS_MOST &&
             cached->measure.wall_s < ENOUGH * run_s);
    cached->epoch_s = presto__pace_middle(&pace);
    return PRESTO_OK;
}

static presto_status measure_run(const presto__load *what, presto__load_run *into,
                                 presto_error *err) {
    presto__pace pace = {.count = 0};
    PRESTO_TRY(presto__measure_cold(what, &pace, &into->cold, err));
    /* The last cold epoch has filled the page cache. */
    PRESTO_TRY(measure_cached(what, &into->cold, &into->cached, err));
    return presto__measure_second(what, &into->cached, &into->cold, err);
}

presto_status presto__trial_load(presto__runner *runner, presto__trial *trial, presto_error *err) {
    presto__load_run seen = {0};
    presto_status status = presto__measure_strategy(runner, trial, measure_run, &seen, err);
    if (status == PRESTO_OK) {
        trial->cold[trial->cold_count++] = seen.cold;
        trial->cached[trial->cached_count++] = seen.cached;
    } else {
        presto__run_done(&seen);
    }
    return status;
}

static presto_status measure_lap(const presto__load *what, presto__load_run *into,
                                 presto_error *err) {
    presto__pace pace = {.count = 0};
    presto_status status = presto__measure_longest(what, &into->cold, err);
    return status == PRESTO_END ? presto__measure_cold(what, &pace, &into->cold, err) : status;
}

presto_status presto__trial_lap(presto__runner *runner, presto__trial *trial, uint64_t round,
                                presto_error *err) {
    presto__load_run seen = {0};
    presto_status status = presto__measure_strategy(runner, trial, measure_lap, &seen, err);
    if (status == PRESTO_OK) {
        const presto__start start = presto__trial_start(trial);
        double whole = presto__whole_samples(runner, presto__samples_each(trial));
        const presto__lap lap = {round, presto__epochs_whole_rate(&seen.cold, start, whole)};
        status = presto__trial_add_lap(trial, lap, err);
    }
    presto__run_done(&seen);
    return status;
}
