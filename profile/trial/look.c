/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look: a run that is short, of some records. The cached epochs follow the last cold one in the
 * same loader, whose workers and memory are warm then. Where that cannot be, they have another one.
 */
#include "../../loader/loader_internal.h"
#include "../../storage/play_internal.h"
#include "load_internal.h"

#include <math.h>
#include <stdlib.h>

/* ---- in two loaders ---- */

/* The first epochs tell how many are needed, where cold ones do not tell that it is no more than
 * the least. They count only if fewer are needed; otherwise so many follow in another loader, of
 * which the first third does not count. */
static presto_status look_cached(const presto__load *what, double cold_s, presto__epochs *cached,
                                 presto_error *err) {
    presto__pace pace = {.count = 0};
    presto__load paced = *what;
    paced.pace = &pace;
    uint64_t most = presto__look_epochs(what->run_s, cold_s);
    double count =
        most <= PRESTO__LOOK_EPOCHS_LEAST ? (double)most + 1 : round(what->run_s / 4 / cold_s);
    count = fmin(fmax(count, 2), PRESTO__CACHED_EPOCHS_MOST);
    PRESTO_TRY(presto__measure_epochs(&paced, (uint64_t)count, cached, err));
    cached->epoch_s = presto__pace_middle(&pace);
    uint64_t needed = presto__look_epochs(what->run_s, presto__epochs_typical_s(cached));
    if (needed < count)
        return PRESTO_OK;
    free(cached->costs);
    *cached = (presto__epochs){0};
    pace.count = 0;
    PRESTO_TRY(presto__measure_epochs(&paced, needed, cached, err));
    presto__pace_forget(&pace, pace.count / 3);
    cached->epoch_s = presto__pace_middle(&pace);
    return PRESTO_OK;
}

static presto_status look_apart(const presto__load *what, presto__load_run *into,
                                presto_error *err) {
    presto__load cold_ones = *what, cached_ones = *what;
    presto__pace cold = {.count = 0};
    cold_ones.run_s = into->look->cold_run_s;
    cached_ones.run_s = into->look->cached_run_s;
    PRESTO_TRY(presto__measure_cold(&cold_ones, &cold, &into->cold, err));
    return look_cached(&cached_ones, presto__epochs_typical_s(&into->cold), &into->cached, err);
}

/* ---- in one loader ---- */

/* Of epochs that are many, so many for two that count come first and do not count: workers that
 * have just started are slower, and their memory is new. */
static uint64_t epochs_before(uint64_t needed) {
    return needed > PRESTO__LOOK_EPOCHS_LEAST ? needed / 2 : 0;
}

/* The first epoch is cold; *into has what it and those before it took. */
static presto_status load_cold_then_cached(const presto__load *what, uint64_t epochs,
                                           presto__pace *cold, presto__load_run *into,
                                           presto_error *err) {
    PRESTO_TRY(presto__source_drop_cache(what->source, err));
    PRESTO_TRY(presto__measure_epochs(what, epochs, &into->cached, err));
    presto__pace_add(cold, what->pace->first_s);
    into->cold.samples += into->cached.samples / epochs;
    into->cold.epochs++;
    into->cold.epoch_s = presto__pace_middle(cold);
    return PRESTO_OK;
}

static presto_status look_in_one(const presto__load *what, presto__load_run *into,
                                 presto_error *err) {
    uint64_t needed = presto__look_epochs(into->look->cached_run_s, into->look->epoch_s);
    uint64_t before = epochs_before(needed);
    presto__pace cold = {.count = 0}, cached = {.wants_first = true};
    presto__load cold_ones = *what, cached_ones = *what;
    cold_ones.run_s = into->look->cold_run_s;
    cached_ones.run_s = into->look->cached_run_s;
    cached_ones.pace = &cached;
    if (cold_ones.run_s > 0)
        PRESTO_TRY(presto__measure_cold(&cold_ones, &cold, &into->cold, err));
    else
        PRESTO_TRY(presto__ready_memory(what, err));
    PRESTO_TRY(load_cold_then_cached(&cached_ones, 1 + before + needed, &cold, into, err));
    if (before > 0)
        presto__pace_forget(&cached, cached.count / 3);
    into->cached.epoch_s = presto__pace_middle(&cached);
    double cached_s = presto__epochs_typical_s(&into->cached);
    if (presto__look_epochs(cached_ones.run_s, cached_s) < 2 * needed + 2)
        return PRESTO_OK;
    free(into->cached.costs); /* they are so short that more are needed */
    into->cached = (presto__epochs){0};
    return look_cached(&cached_ones, cached_s, &into->cached, err);
}

/* The storage that a sweep is for is played in cold epochs alone. */
static presto_status look(const presto__load *what, presto__load_run *into, presto_error *err) {
    presto__source_truncate(what->source, into->look->samples);
    bool is_played = presto__storage_is_set(&what->runner->options->storage);
    return into->look->epoch_s > 0 && !is_played ? look_in_one(what, into, err)
                                                 : look_apart(what, into, err);
}

presto_status presto__trial_look(presto__runner *runner, presto__trial *trial,
                                 presto__look *look_io, presto_error *err) {
    presto__load_run seen = {.look = look_io};
    presto_status status = presto__measure_strategy(runner, trial, look, &seen, err);
    if (status == PRESTO_OK) {
        look_io->cold_s = 1 / presto__epochs_rate(&seen.cold);
        look_io->cached_s = 1 / presto__epochs_rate(&seen.cached);
    }
    presto__run_done(&seen);
    return status;
}
