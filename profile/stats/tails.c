/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples with heavy tails: a few large items make up much of the sum, and a sample may have too
 * many of them or too few. Then the usual interval is too narrow, above all upwards.
 */
#include "tails_internal.h"

#include <math.h>
#include <sys/stat.h>

/* Half of all in at most this part of the items is told. */
#define HEAVY_PART 0.05
/* Cochran's rule (Sampling Techniques, 2.15): the mean of n items is about normal from n = 25 times
 * the squared skewness on. */
#define COCHRAN 25

void presto__tail_add(presto__size_tail *tail, double value) {
    presto__moments_add(&tail->moments, value);
    size_t at = tail->held;
    if (at == PRESTO__TAIL_HELD && value <= tail->largest[at - 1])
        return;
    if (at < PRESTO__TAIL_HELD)
        tail->held++;
    else
        at--;
    for (; at > 0 && tail->largest[at - 1] < value; at--)
        tail->largest[at] = tail->largest[at - 1];
    tail->largest[at] = value;
}

uint64_t presto__tail_half(const presto__size_tail *tail) {
    double half = tail->moments.mean * (double)tail->moments.count / 2;
    double sum = 0;
    for (size_t i = 0; i < tail->held; i++) {
        sum += tail->largest[i];
        if (sum >= half)
            return i + 1;
    }
    return 0;
}

double presto__skewness(const presto__moments *moments) {
    if (moments->count < 3 || !(moments->squares > 0))
        return 0;
    double count = (double)moments->count;
    return sqrt(count) * moments->cubes / pow(moments->squares, 1.5);
}

bool presto__is_half_in_few(const presto__moments *moments, uint64_t half) {
    return half > 0 && (double)half <= HEAVY_PART * (double)moments->count;
}

bool presto__is_heavy(const presto__moments *moments, uint64_t half) {
    double skewness = presto__skewness(moments);
    double count = (double)moments->count;
    return presto__is_half_in_few(moments, half) ||
           (count >= 3 && count < COCHRAN * skewness * skewness);
}

/*
 * Hall 1992 (On the removal of skewness by transformation): g(t) = t + a t^2 / 3 + a^2 t^3 / 27 + a
 * / 6 of the studentized mean t, where a is the skewness over the root of n, is about normal. Its
 * inverse gives the limits.
 */
static double hall_limit(double a, double quantile) {
    if (fabs(a) < 1e-9)
        return quantile;
    return 3 / a * (cbrt(1 + a * (quantile - a / 6)) - 1);
}

void presto__skewed_interval(const presto__moments *sample, uint64_t population, double *least_out,
                             double *most_out) {
    double count = (double)sample->count, all = (double)population;
    *least_out = *most_out = NAN;
    if (sample->count >= population)
        *least_out = *most_out = sample->mean * count;
    if (sample->count >= population || sample->count < 3)
        return;
    double error = sqrt(presto__moments_variance(sample) / count * (1 - count / all));
    double a = presto__skewness(sample) / sqrt(count);
    double quantile = presto__student_95(sample->count - 1);
    *least_out = fmax(all * (sample->mean - hall_limit(a, quantile) * error), 0);
    *most_out = all * (sample->mean - hall_limit(a, -quantile) * error);
}

void presto__tail_of_files(const char *const *paths, size_t count, presto__size_tail *tail_out) {
    *tail_out = (presto__size_tail){.held = 0};
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        if (stat(paths[i], &info) == 0)
            presto__tail_add(tail_out, (double)info.st_size);
    }
}
