/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was a run left alone? One during which other processes took much of the machine, or the host of a
 * virtual one gave some of it to other guests, says more of them than of the strategy, and is made
 * again. Where all runs are disturbed, that does not help, and no more are made again.
 */
#ifndef PRESTO_PROFILE_CALM_INTERNAL_H
#define PRESTO_PROFILE_CALM_INTERNAL_H

#include <stdbool.h>

/** Of all runs, one after the other. Zero-initialise. */
typedef struct presto__calm {
    double others_s, stolen_s, wall_s; /* of the present run: as below */
    unsigned in_vain;                  /* disturbed runs in a row that were made again */
} presto__calm;

/** A run begins. */
void presto__calm_start(presto__calm *calm);
/** A stretch of it: by the clock, processor time of other processes, and that which the host gave to
 * other guests. NaN, where the system does not say: none. */
void presto__calm_add(presto__calm *calm, double wall_s, double others_s, double stolen_s);
/** The run is over: of so many processors, other processes had more than an eighth, or other guests
 * more than a fiftieth, and it is not the fourth one in a row. */
bool presto__calm_wants_again(presto__calm *calm, double processors);

#endif
