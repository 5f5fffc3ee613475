/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run (runner.c) and a look (look.c) share: epochs of a strategy's dataset through the
 * loader, by the clock.
 */
#ifndef PRESTO_PROFILE_LOAD_INTERNAL_H
#define PRESTO_PROFILE_LOAD_INTERNAL_H

#include "pace_internal.h"
#include "trial_internal.h"

/** What is loaded, and how. Borrows everything. */
typedef struct presto__load {
    presto__runner *runner;
    presto__trial *trial; /* of the strategy; a look has one of its own */
    const presto_strategy *strategy;
    presto_source *source;
    presto_dataset *dataset; /* that it reads; NULL: the source as it is */
    const presto_plan *plan;
    uint64_t limit;     /* samples of a single epoch; 0: all */
    double run_s;       /* how long epochs in one state of the cache are to last together */
    bool plays;         /* the storage that the sweep is for */
    presto__pace *pace; /* of epochs in one loader; NULL: not wanted */
} presto__load;

/** A run, or a look. Its costs are owned. */
typedef struct presto__load_run {
    presto__epochs cold, cached;
    const presto__look *look; /* what is wanted of it; NULL: it is no look */
} presto__load_run;

/** Leaves a run that is empty but for `look`. */
void presto__run_done(presto__load_run *seen);

/** An epoch that takes so many times the wanted time of a run is long: one is enough. */
#define PRESTO__LONG_EPOCH_RUNS 4.0

/** Writes into a run that is empty but for `look`. What it holds after a failure is owned, too. */
typedef presto_status (*presto__measure_fn)(const presto__load *what, presto__load_run *into,
                                            presto_error *err);

/** Opens what the strategy reads, and measures; again if others disturbed it (pace_internal.h). */
presto_status presto__measure_strategy(presto__runner *runner, presto__trial *trial,
                                       presto__measure_fn measure, presto__load_run *into,
                                       presto_error *err);
/** So many epochs in one loader. The clock covers what grows with the data: from the start of the
 * loader to the end of the last epoch. *epochs_out owns nothing unless it succeeds. */
presto_status presto__measure_epochs(const presto__load *what, uint64_t count,
                                     presto__epochs *epochs_out, presto_error *err);
/** Before the first cold epoch: memory that loading needs is at hand (warm.c). The page cache is
 * to be dropped after it. */
presto_status presto__ready_memory(const presto__load *what, presto_error *err);
/** Short epochs are repeated, each in a loader of its own, with the page cache dropped before it. A
 * single one would measure the start of the threads and short disturbances. `pace` is empty before;
 * it has their times then. */
presto_status presto__measure_cold(const presto__load *what, presto__pace *pace,
                                   presto__epochs *cold, presto_error *err);

/** steady.c: after the cold and cached epochs of a run, a cold one of another length, if the sample is
 * not the whole source. Where there is no room or no time for it, *cold stays as it is. */
presto_status presto__measure_second(const presto__load *what, const presto__epochs *cached,
                                     presto__epochs *cold, presto_error *err);
/** A cold epoch as long as the longer ones of the trial's runs. PRESTO_END: they had none, or there is
 * no room for it. */
presto_status presto__measure_longest(const presto__load *what, presto__epochs *cold,
                                      presto_error *err);

#endif
