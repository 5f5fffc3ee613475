/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of an epoch that is like most: of the epochs of a run, the one in the middle. A mean
 * would be that of the worst: the kernel of a virtual machine gives freed memory back to its host,
 * and the first epoch that needs it again may take several times as long as the next.
 */
#ifndef PRESTO_PROFILE_PACE_INTERNAL_H
#define PRESTO_PROFILE_PACE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRESTO__PACES_MOST 128

/** Times of epochs; the first so many. Zero-initialise. */
typedef struct presto__pace {
    double epoch_s[PRESTO__PACES_MOST];
    size_t count;
    bool wants_first; /* by itself, however short epochs are */
    bool follow;      /* they followed one another in a loader, which may have been ahead */
    double first_s;   /* what the first one of a loader took */
} presto__pace;

void presto__pace_add(presto__pace *pace, double epoch_s);
/** Without the first `count`, which are at most all. */
void presto__pace_forget(presto__pace *pace, size_t count);
/** The time in the middle, of two the less; of 32 or more, the mean without the fastest and the
 * slowest eighth. NaN without any. */
double presto__pace_middle(const presto__pace *pace);

/** Takes the times of epochs that follow one another in a loader. Very short ones are taken some
 * together, so that a batch more or less does not count. The first one is left out if others
 * follow: workers have just started then, and their memory is new. */
typedef struct presto__pacer {
    presto__pace *pace;
    uint64_t epoch_samples, epochs; /* of an epoch; that are to come */
    uint64_t samples, done;         /* that have come; epochs of which `pace` has the time */
    uint64_t next, last_ns;         /* epochs until the next time is taken; when the last one was */
} presto__pacer;

/** The epochs start at start_ns (presto__clock_ns). `epoch_samples`: at least 1. No pace: nothing
 * is taken. */
presto__pacer presto__pacer_start(presto__pace *pace, uint64_t epoch_samples, uint64_t epochs,
                                  uint64_t start_ns);
/** So many samples more have come, or were left out. */
void presto__pacer_take(presto__pacer *pacer, uint64_t samples, uint64_t now_ns);

/* ---- calm.c: was a run left alone? ---- */

/*
 * Was a run left alone? One during which other processes took much of the machine, or the host of a
 * virtual one gave some of it to other guests, says more of them than of the strategy, and is made
 * again. Where all runs are disturbed, that does not help, and no more are made again.
 */

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
