/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was a run left alone? One during which other processes took much of the machine says more of
 * them than of the strategy, and is made again. Where all runs are disturbed, that does not help,
 * and no more are made again.
 */
#ifndef PRESTO_PROFILE_CALM_INTERNAL_H
#define PRESTO_PROFILE_CALM_INTERNAL_H

#include <stdbool.h>

/** Of all runs, one after the other. Zero-initialise. */
typedef struct presto__calm {
    double others_s, wall_s; /* of the present run: processor time of others, and the clock */
    unsigned in_vain;        /* disturbed runs in a row that were made again */
} presto__calm;

/** A run begins. */
void presto__calm_start(presto__calm *calm);
/** A stretch of it: of all processors of the machine, so many seconds were not idle, and this
 * process had so many of them. NaN, where the system does not say: it was left alone. */
void presto__calm_add(presto__calm *calm, double wall_s, double busy_s, double own_s);
/** The run is over: others had more than an eighth of so many processors, and it is not the fourth
 * one in a row. */
bool presto__calm_wants_again(presto__calm *calm, double processors);

#endif
