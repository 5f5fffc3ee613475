/* SPDX-License-Identifier: Apache-2.0 */
#include "pace_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trial_internal.h"

/* Into about so many pieces are the epochs of a loader cut. */
#define PIECES 15
/* Of so many or more, all count but the fastest and the slowest eighth: a machine or a disk that is
 * at times slower for a while makes short epochs long or short, and then one in the middle is of
 * the one kind or of the other by chance. */
#define MANY 32
/* Of so many, the one in the middle is none of those that took so small a part of the mean that
 * they were handed out at once. */
#define ENOUGH 8
#define AT_ONCE_PART 0.1
/* A look has fewer cached epochs than the least if they are long. */
#define LONG_EPOCH_S 0.15
#define LONG_EPOCHS_LEAST 2
#define VERY_LONG_EPOCH_S 0.3

void presto__pace_add(presto__pace *pace, double epoch_s) {
    if (pace->count < PRESTO__PACES_MOST)
        pace->epoch_s[pace->count++] = epoch_s;
}

void presto__pace_forget(presto__pace *pace, size_t count) {
    pace->count -= count;
    memmove(pace->epoch_s, pace->epoch_s + count, pace->count * sizeof *pace->epoch_s);
}

static int by_value(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* A consumer that was held up gets the epochs that became ready meanwhile at once. Such have taken
 * their share of the time in which that one and they were handed out. */
static void share_time(const presto__pace *pace, double *epoch_s_out) {
    double sum_s = 0;
    for (size_t i = 0; i < pace->count; i++)
        sum_s += pace->epoch_s[i];
    for (size_t first = 0, end; first < pace->count; first = end) {
        double shared_s = pace->epoch_s[first];
        for (end = first + 1;
             end < pace->count && pace->epoch_s[end] * (double)pace->count < AT_ONCE_PART * sum_s;
             end++)
            shared_s += pace->epoch_s[end];
        for (size_t i = first; i < end; i++)
            epoch_s_out[i] = shared_s / (double)(end - first);
    }
}

double presto__pace_middle(const presto__pace *pace) {
    if (pace->count == 0)
        return NAN;
    double sorted[PRESTO__PACES_MOST], sum_s = 0;
    memcpy(sorted, pace->epoch_s, pace->count * sizeof *sorted);
    if (pace->follow && pace->count < ENOUGH)
        share_time(pace, sorted);
    qsort(sorted, pace->count, sizeof *sorted, by_value);
    if (pace->count < MANY)
        return sorted[(pace->count - 1) / 2];
    size_t first = pace->count / 8, end = pace->count - first;
    for (size_t i = first; i < end; i++)
        sum_s += sorted[i];
    return sum_s / (double)(end - first);
}

static uint64_t next_end(const presto__pacer *pacer) {
    uint64_t end = pacer->done + (pacer->epochs + PIECES - 1) / PIECES;
    return end < pacer->epochs ? end : pacer->epochs;
}

presto__pacer presto__pacer_start(presto__pace *pace, uint64_t epoch_samples, uint64_t epochs,
                                  uint64_t start_ns) {
    presto__pacer pacer = {.pace = pace,
                           .epoch_samples = epoch_samples + !epoch_samples,
                           .epochs = epochs,
                           .last_ns = start_ns};
    if (pace != NULL)
        pace->follow = true;
    pacer.next = pace != NULL && pace->wants_first ? 1 : next_end(&pacer);
    return pacer;
}

void presto__pacer_take(presto__pacer *pacer, uint64_t samples, uint64_t now_ns) {
    if (pacer->pace == NULL)
        return;
    pacer->samples += samples;
    uint64_t done = pacer->samples / pacer->epoch_samples;
    if (done < pacer->next || done == pacer->done)
        return;
    double epoch_s = presto__seconds(now_ns - pacer->last_ns) / (double)(done - pacer->done);
    if (pacer->done == 0)
        pacer->pace->first_s = epoch_s;
    if (pacer->done > 0 || done == pacer->epochs)
        presto__pace_add(pacer->pace, epoch_s);
    pacer->done = done;
    pacer->last_ns = now_ns;
    pacer->next = next_end(pacer);
}

uint64_t presto__look_epochs(double run_s, double epoch_s) {
    double least = epoch_s < LONG_EPOCH_S        ? PRESTO__LOOK_EPOCHS_LEAST
                   : epoch_s < VERY_LONG_EPOCH_S ? LONG_EPOCHS_LEAST
                                                 : 1;
    return (uint64_t)fmin(fmax(round(run_s / epoch_s), least), PRESTO__CACHED_EPOCHS_MOST);
}
