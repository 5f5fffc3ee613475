/* SPDX-License-Identifier: Apache-2.0 */
/* Running a list of a sweep's trials (measure.c). */
#ifndef PRESTO_PROFILE_MEASURE_INTERNAL_H
#define PRESTO_PROFILE_MEASURE_INTERNAL_H

#include "trial_internal.h"

/** Which trials are run, and how often. */
typedef struct presto__measuring {
    const size_t *list; /* positions in sweep->trials */
    size_t count;
    unsigned runs;   /* that each is to have had in the end */
    bool keeps_last; /* the datasets of the last wave remain */
    /* A trial has had its runs; its dataset is removed next. NULL: nothing to do. */
    presto_status (*on_measured)(void *user, size_t trial, presto_error *err);
    void *user;
} presto__measuring;

/** Run what is left of them. Fails only if the whole sweep is to end. */
presto_status presto__measure_list(presto_sweep *sweep, presto__runner *runner,
                                   const presto__measuring *what, presto_error *err);
/** Conversions and runs that this takes. */
size_t presto__measure_left(const presto_sweep *sweep, const presto__runner *runner,
                            const presto__measuring *what);
/** A journal that cannot be written is given up, with a note: what is measured counts more. */
presto_status presto__journal_give_up(presto_sweep *sweep, const presto_error *why,
                                      presto_error *err);
/** It has not failed. */
bool presto__trial_is_alive(const presto__trial *trial);
bool presto__trial_stores(const presto__trial *trial);
/** It has a run, and a conversion if it needs one. */
bool presto__trial_is_measured(const presto__trial *trial);

#endif
