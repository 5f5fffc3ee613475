/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From epochs of two lengths to an epoch of the whole source: start + samples * s. Only arithmetic;
 * steady.c measures them.
 */
#include "trial_internal.h"

#include <math.h>

/* The longer epoch lasts so many times as long as the epochs of a run together, at least. */
#define LONG_RUNS 2.0
/* Of a single run: its start may be off by all of it. */
#define UNSURE_OF_ONE 1.0

static double samples_of(const presto__epochs *run) {
    return (double)run->samples / (double)run->epochs;
}

static bool has_second(const presto__epochs *run) {
    return run->second_samples > 0 && run->second_s > 0;
}

/* Its second epoch has another one to be compared with. */
static bool has_less(const presto__epochs *run) {
    return has_second(run) && run->less_samples > 0 && run->less_s > 0;
}

/* Does the second epoch count, and not those of the run? */
static bool second_counts(const presto__epochs *run) {
    return has_less(run) || (has_second(run) && run->second_samples > samples_of(run));
}

double presto__epochs_longest_s(const presto__epochs *run) {
    return second_counts(run) ? run->second_s : presto__epochs_typical_s(run);
}

double presto__epochs_longest_samples(const presto__epochs *run) {
    return second_counts(run) ? run->second_samples : samples_of(run);
}

double presto__epochs_start_s(const presto__epochs *run) {
    if (!has_second(run))
        return NAN;
    double own = has_less(run) ? run->less_samples : samples_of(run);
    double own_s = has_less(run) ? run->less_s : presto__epochs_typical_s(run);
    double more = run->second_samples - own, longer_s = run->second_s - own_s;
    double each_s = more != 0 ? longer_s / more : 0;
    double start_s = each_s > 0 ? own_s - own * each_s : 0;
    return fmin(fmax(start_s, 0), fmin(own_s, run->second_s));
}

double presto__epochs_whole_rate(const presto__epochs *run, presto__start start, double whole) {
    double longest = presto__epochs_longest_samples(run);
    double longest_s = presto__epochs_longest_s(run);
    double files_s = start.files_s > 0 ? start.files_s : 0, start_s = start.seconds;
    if (!(start_s > 0) || start_s >= longest_s)
        start_s = 0;
    if (!(whole > longest) || start_s + files_s == 0)
        return longest / longest_s;
    return whole / (start_s + files_s + whole * (longest_s - start_s) / longest);
}

presto__start presto__trial_start(const presto__trial *trial) {
    presto__moments starts = {0};
    double sorted[PRESTO__STARTS_MOST], files_s[PRESTO__STARTS_MOST], files_error_s = 0;
    size_t count = 0;
    for (size_t i = 0; i < trial->cold_count && count < PRESTO__STARTS_MOST; i++) {
        double start_s = presto__epochs_start_s(&trial->cold[i]);
        if (!isfinite(start_s))
            continue;
        presto__moments_add(&starts, start_s);
        files_s[count] = trial->cold[i].files_s > 0 ? trial->cold[i].files_s : 0;
        files_error_s = fmax(files_error_s, trial->cold[i].files_error_s);
        sorted[count++] = start_s;
    }
    if (count == 0)
        return (presto__start){NAN, NAN, 0, 0};
    double middle_s = presto__spread_of(sorted, count).median;
    double error_s = count < 2 ? UNSURE_OF_ONE * middle_s
                               : presto__student_95(count - 1) *
                                     sqrt(presto__moments_variance(&starts) / (double)count);
    return (presto__start){middle_s, error_s, presto__spread_of(files_s, count).median,
                           files_error_s};
}

double presto__long_epoch_s(double run_s) {
    return LONG_RUNS * run_s;
}
