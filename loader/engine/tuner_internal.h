/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room engine: how many workers are worth it. */
#ifndef PRESTO_LOADER_TUNER_INTERNAL_H
#define PRESTO_LOADER_TUNER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/** Finds how many of `most` workers are worth it. A plain value. */
typedef struct presto__tuner {
    unsigned most;   /* 0: no tuning, all workers are active */
    unsigned active; /* this many may work now */
    int trial;       /* `active` is one above or below the number known to be good */
    bool settling;   /* the current window does not measure `active` */
    bool up_failed, down_failed;
    unsigned resting, rest; /* windows to wait now, and the next time */
    double base_rate;
    uint64_t window_ns; /* when the window began; 0: not yet */
    uint64_t window_bytes;
    unsigned window_packets;
} presto__tuner;

void presto__tuner_init(presto__tuner *tuner, unsigned most);
/** A window has ended: choose the number for the next one. */
void presto__tuner_step(presto__tuner *tuner, double rate);
/** `bytes` more were delivered. Must more workers be woken? */
bool presto__tuner_add(presto__tuner *tuner, uint64_t bytes, uint64_t now_ns);
/** The number that is best as far as is known; `active` may be on trial. */
unsigned presto__tuner_chosen(const presto__tuner *tuner);

#endif
