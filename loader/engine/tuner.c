/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the number of workers that is worth it, from the samples that they finish a second.
 *
 * Workers that compute are worth it up to the number of processors. Workers that wait for storage
 * cost nothing. So at first, as long as processors are idle, there are more of them in each window,
 * as many as would keep the processors busy. Then it is a hill climb: some workers more or less at
 * a time. More workers must gain clearly; fewer may lose a little. The band between the two keeps
 * noise from moving the number, and an idle worker is better than one that gains nothing. If
 * neither direction helps, it waits, longer each time.
 *
 * A window without measuring comes before a measured one: what is under way belongs to the previous
 * number.
 */
#include <math.h>

#include "workers_internal.h"

#define WINDOW_NS 100000000
#define GAIN 1.05 /* more workers must gain this much */
#define LOSS 0.97 /* fewer may lose this much */
#define FIRST_REST 8
#define LAST_REST 256
#define BUSY 0.9         /* of the processors: more workers would only take turns */
#define IDLE 0.1         /* of the workers' time: the consumer is the limit */
#define MOST_GROWTH 4    /* times as many workers in one window */
#define LEAST_GROWTH 1.1 /* the estimate is not better than this */

void presto__tuner_init(presto__tuner *tuner, unsigned most, unsigned processors) {
    *tuner = (presto__tuner){.most = most,
                             .processors = processors > 0 ? processors : 1,
                             .growing = true,
                             .rest = FIRST_REST,
                             .settling = true};
    tuner->active = most < tuner->processors ? most : tuner->processors;
}

unsigned presto__tuner_chosen(const presto__tuner *tuner) {
    return (unsigned)((int)tuner->active - tuner->trial);
}

void presto__tuner_limit(presto__tuner *tuner, unsigned most) {
    tuner->most = most;
    tuner->active = most;
    tuner->trial = 0;
    tuner->settling = true;
}

/*
 * How many workers would keep the processors busy, by what the active ones compute. What they wait
 * for a processor counts as computing: other programs use it, and more workers would only take
 * turns.
 */
static unsigned wanted(const presto__tuner *tuner, double busy_processors) {
    unsigned active = tuner->active, most = tuner->most;
    if (active < tuner->processors)
        return active + 1 < most ? active + 1 : most;
    if (busy_processors >= BUSY * tuner->processors)
        return active;
    double want = busy_processors > 0 ? active * (tuner->processors / busy_processors)
                                      : (double)active * MOST_GROWTH;
    if (want < active * LEAST_GROWTH)
        return active;
    if (want > (double)active * MOST_GROWTH)
        want = (double)active * MOST_GROWTH;
    return want < most ? (unsigned)ceil(want) : most;
}

/* Judge the trial by the rate of its window. */
static void judge(presto__tuner *tuner, double rate) {
    if (tuner->trial > 0 && rate > tuner->base_rate * GAIN) {
        tuner->base_rate = rate;
        tuner->down_failed = true; /* the trial came from the lower number */
    } else if (tuner->trial > 0) {
        tuner->active -= (unsigned)tuner->trial;
        tuner->up_failed = true;
    } else if (tuner->trial < 0 && rate >= tuner->base_rate * LOSS) {
        /* The base stays: small losses must not add up. */
        if (rate > tuner->base_rate)
            tuner->base_rate = rate;
        tuner->up_failed = true;
    } else if (tuner->trial < 0) {
        tuner->active += (unsigned)-tuner->trial;
        tuner->down_failed = true;
    } else {
        tuner->base_rate = rate;
    }
    tuner->trial = 0;
}

/* One more or less among the processors; of more, a fourth or a fifth. */
static void choose_trial(presto__tuner *tuner, unsigned want) {
    unsigned active = tuner->active;
    bool waits = active >= tuner->processors;
    unsigned up = waits && active >= 4 ? active / 4 : 1;
    unsigned down = active > tuner->processors && active >= 5 ? active / 5 : 1;
    if (down > active - 1)
        down = active - 1;
    if (!tuner->up_failed && want > active) {
        tuner->trial = (int)(up < want - active ? up : want - active);
    } else if (!tuner->down_failed && active > 1) {
        tuner->trial = -(int)down;
    } else {
        tuner->resting = tuner->rest;
        tuner->rest = tuner->rest * 2 < LAST_REST ? tuner->rest * 2 : LAST_REST;
        tuner->up_failed = tuner->down_failed = false;
    }
    tuner->active = (unsigned)((int)active + tuner->trial);
}

/* A window with enough samples has ended. */
static void step(presto__tuner *tuner, double rate, unsigned want) {
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
    choose_trial(tuner, want);
    tuner->settling = tuner->active != before;
}

bool presto__tuner_is_due(const presto__tuner *tuner, uint64_t now_ns) {
    return tuner->most > 0 &&
           (tuner->start.now_ns == 0 || now_ns - tuner->start.now_ns >= WINDOW_NS);
}

bool presto__tuner_look(presto__tuner *tuner, const presto__tuner_seen *now) {
    if (!presto__tuner_is_due(tuner, now->now_ns))
        return false;
    if (tuner->start.now_ns == 0) {
        tuner->start = *now;
        return false;
    }
    unsigned before = tuner->active;
    double passed_ns = (double)(now->now_ns - tuner->start.now_ns);
    uint64_t samples = now->samples - tuner->start.samples;
    double room_ns = (double)(now->room_ns - tuner->start.room_ns);
    bool keeps_up = now->is_full || room_ns > IDLE * passed_ns * before;
    unsigned want =
        wanted(tuner, (double)(now->runnable_ns - tuner->start.runnable_ns) / passed_ns);
    if (keeps_up && before >= tuner->processors)
        want = before; /* the consumer is the limit */
    if (tuner->growing && want > before) {
        tuner->active = want;
        tuner->settling = true;
    } else if (samples < 2 * (uint64_t)before) {
        return false; /* the window goes on */
    } else {
        tuner->growing = false;
        step(tuner, (double)samples / passed_ns, want);
    }
    tuner->start = *now;
    return tuner->active > before;
}
