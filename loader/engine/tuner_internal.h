/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room engine: how many workers are worth it. */
#ifndef PRESTO_LOADER_TUNER_INTERNAL_H
#define PRESTO_LOADER_TUNER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/** What all workers have done since the loader was opened. */
typedef struct presto__tuner_seen {
    uint64_t now_ns;
    uint64_t samples;
    uint64_t runnable_ns; /* how long they computed, or waited for a processor, together */
    uint64_t room_ns;     /* how long they waited for room, together */
    bool is_full;         /* one of them waits for room now */
} presto__tuner_seen;

/** Finds how many of `most` workers are worth it. A plain value. */
typedef struct presto__tuner {
    unsigned most;       /* 0: no tuning, all workers are active */
    unsigned processors; /* more workers than this are only for waiting */
    unsigned active;     /* this many may work now */
    int trial;           /* `active` is so many above or below the number known to be good */
    bool growing;        /* at first: more workers until processors are busy, untried */
    bool settling;       /* the current window does not measure `active` */
    bool up_failed, down_failed;
    unsigned resting, rest; /* windows to wait now, and the next time */
    double base_rate;
    presto__tuner_seen start; /* of the window; now_ns 0: none has begun */
} presto__tuner;

/** It begins with as many as there are processors. */
void presto__tuner_init(presto__tuner *tuner, unsigned most, unsigned processors);
/** Is it time to look again? */
bool presto__tuner_is_due(const presto__tuner *tuner, uint64_t now_ns);
/** Judge the window if it has ended, and choose the number for the next one. True: it rose. */
bool presto__tuner_look(presto__tuner *tuner, const presto__tuner_seen *now);
/** There are only so many workers, and no room for more. */
void presto__tuner_limit(presto__tuner *tuner, unsigned most);
/** The number that is best as far as is known; `active` may be on trial. */
unsigned presto__tuner_chosen(const presto__tuner *tuner);

#endif
