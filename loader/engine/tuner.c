/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the number of workers that is worth it: a hill climb on T4, the bytes delivered per second.
 *
 * It tries one worker more or less at a time. A window without measuring comes first (data in
 * flight belongs to the previous number), then a measured one. More workers must gain clearly;
 * fewer may lose a little. The band between the two keeps noise from moving the number, and an idle
 * worker is better than one that gains nothing. If neither direction helps, it waits, longer each
 * time.
 */
#include "workers_internal.h"

#define WINDOW_NS 100000000
#define WINDOW_PACKETS 4
#define GAIN 1.05 /* one more worker must gain this much */
#define LOSS 0.97 /* one fewer may lose this much */
#define FIRST_REST 8
#define LAST_REST 256

void presto__tuner_init(presto__tuner *tuner, unsigned most) {
    *tuner = (presto__tuner){.most = most, .active = most, .rest = FIRST_REST, .settling = true};
}

unsigned presto__tuner_chosen(const presto__tuner *tuner) {
    return tuner->trial > 0   ? tuner->active - 1
           : tuner->trial < 0 ? tuner->active + 1
                              : tuner->active;
}

/* Judge the trial by the rate of its window. */
static void judge(presto__tuner *tuner, double rate) {
    if (tuner->trial > 0 && rate > tuner->base_rate * GAIN) {
        tuner->base_rate = rate;
        tuner->down_failed = true; /* the trial came from the lower number */
    } else if (tuner->trial > 0) {
        tuner->active--;
        tuner->up_failed = true;
    } else if (tuner->trial < 0 && rate >= tuner->base_rate * LOSS) {
        /* The base stays: small losses must not add up. */
        if (rate > tuner->base_rate)
            tuner->base_rate = rate;
        tuner->up_failed = true;
    } else if (tuner->trial < 0) {
        tuner->active++;
        tuner->down_failed = true;
    } else {
        tuner->base_rate = rate;
    }
    tuner->trial = 0;
}

static void choose_trial(presto__tuner *tuner) {
    if (!tuner->up_failed && tuner->active < tuner->most) {
        tuner->trial = 1;
        tuner->active++;
    } else if (!tuner->down_failed && tuner->active > 1) {
        tuner->trial = -1;
        tuner->active--;
    } else {
        tuner->resting = tuner->rest;
        tuner->rest = tuner->rest * 2 < LAST_REST ? tuner->rest * 2 : LAST_REST;
        tuner->up_failed = tuner->down_failed = false;
    }
}

void presto__tuner_step(presto__tuner *tuner, double rate) {
    if (tuner->settling) {
        tuner->settling = false;
        return;
    }
    if (tuner->resting > 0) {
        tuner->resting--;
        return;
    }
    unsigned before = tuner->active;
    judge(tuner, rate);
    choose_trial(tuner);
    tuner->settling = tuner->active != before;
}

bool presto__tuner_add(presto__tuner *tuner, uint64_t bytes, uint64_t now_ns) {
    if (tuner->most == 0)
        return false;
    if (tuner->window_ns == 0) {
        tuner->window_ns = now_ns; /* these bytes belong to the time before the window */
        return false;
    }
    tuner->window_bytes += bytes;
    tuner->window_packets++;
    uint64_t passed = now_ns - tuner->window_ns;
    if (passed < WINDOW_NS || tuner->window_packets < WINDOW_PACKETS)
        return false;
    unsigned before = tuner->active;
    presto__tuner_step(tuner, (double)tuner->window_bytes / (double)passed);
    tuner->window_ns = now_ns;
    tuner->window_bytes = 0;
    tuner->window_packets = 0;
    return tuner->active > before;
}
