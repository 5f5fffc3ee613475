/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a sample to the whole, with an error bar. Storage: the stored records are a sample of all
 * records. Their mean times the number of all is the total; their variance gives its error. Time:
 * the conversion is cut into pieces, whose mean times vary with the samples and with the machine.
 * Taken as independent (batch means, Conway 1963), they give the error of the overall mean.
 */
#include "../trial/trial_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void presto__moments_add(presto__moments *moments, double value) {
    /* Welford 1962, and Terriberry for the cubes: no cancellation however large the mean. */
    double others = (double)moments->count++;
    double off = value - moments->mean;
    double step = off / (double)moments->count;
    double square = off * step * others;
    moments->mean += step;
    moments->cubes += square * step * (others - 1) - 3 * step * moments->squares;
    moments->squares += square;
}

double presto__moments_variance(const presto__moments *moments) {
    return moments->count < 2 ? NAN : moments->squares / (double)(moments->count - 1);
}

double presto__student_95(uint64_t degrees) {
    static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                       2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                       2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                       2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
    if (degrees <= sizeof quantiles / sizeof *quantiles)
        return quantiles[degrees - 1];
    /* Cornish-Fisher from the normal quantile z: z + (z^3 + z) / (4 degrees); within 0.001 from
     * here on. */
    double z = 1.959964;
    return z + (z * z * z + z) / (4.0 * (double)degrees);
}

static int compare_values(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

presto_spread presto__spread_of(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_values);
    double median =
        count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    return (presto_spread){values[0], median, values[count - 1], count};
}

size_t presto__median_index(const double *values, size_t count) {
    size_t wanted = (count - 1) / 2;
    for (size_t i = 0; i < count; i++) {
        /* Rank of i; equal values are ranked by position. */
        size_t rank = 0;
        for (size_t k = 0; k < count; k++)
            rank += values[k] < values[i] || (values[k] == values[i] && k < i);
        if (rank == wanted)
            return i;
    }
    return 0;
}

double presto__joint_error(double one, double other) {
    return sqrt(one * one + other * other);
}

uint64_t presto__population_of(uint64_t items, uint64_t samples, uint64_t all_samples) {
    double items_of_one = (double)items / fmax((double)samples, 1);
    return (uint64_t)llround(items_of_one * (double)all_samples);
}

presto__estimate presto__estimate_sum(const presto__moments *sample, uint64_t population) {
    presto__estimate estimate = {sample->mean * (double)population, NAN};
    if (sample->count >= population) {
        estimate.error = 0;
    } else if (sample->count >= 2) {
        double count = (double)sample->count;
        double unseen = 1 - count / (double)population;
        double mean_error = sqrt(presto__moments_variance(sample) / count * unseen);
        estimate.error = presto__student_95(sample->count - 1) * mean_error * (double)population;
    }
    return estimate;
}

void presto__marks_add(presto__marks *marks, uint64_t samples, uint64_t elapsed_ns) {
    if (marks->count > 0 && samples <= marks->at[marks->count - 1].samples)
        return;
    if (marks->count == PRESTO__MARKS) {
        /* Drop every second mark: pieces need few marks, evenly spread. */
        for (size_t i = 0; i < PRESTO__MARKS / 2; i++)
            marks->at[i] = marks->at[2 * i + 1];
        marks->count = PRESTO__MARKS / 2;
    }
    marks->at[marks->count++] = (presto__mark){samples, elapsed_ns};
}

double presto__marks_error_s(const presto__marks *marks) {
    if (marks->count == 0)
        return NAN;
    enum { PIECES = 10 };
    uint64_t total = marks->at[marks->count - 1].samples;
    presto__moments pieces = {0};
    presto__mark from = {0, 0};
    for (size_t i = 0; i < marks->count; i++) {
        const presto__mark *to = &marks->at[i];
        /* A piece ends at the first mark that completes a tenth of the samples. */
        if ((to->samples - from.samples) * PIECES < total && to->samples < total)
            continue;
        presto__moments_add(&pieces, (double)(to->elapsed_ns - from.elapsed_ns) * 1e-9 /
                                         (double)(to->samples - from.samples));
        from = *to;
    }
    if (pieces.count < 3)
        return NAN;
    return presto__student_95(pieces.count - 1) *
           sqrt(presto__moments_variance(&pieces) / (double)pieces.count);
}
