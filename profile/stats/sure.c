/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of a middle, exact for few values and any distribution that is symmetric. */
#include "../choice/sure_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Neighbours may be so alike that they tell next to nothing: then at most this correlation. */
#define CORRELATION_MOST 0.9
#define PAIRS_MOST ((size_t)PRESTO__VALUES_MOST * (PRESTO__VALUES_MOST + 1) / 2)

static int compare_values(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * How many means of pairs to leave out at each end: the largest k for which the sum of the positive
 * ranks is below k with at most the probability error / 2. 0: even the outermost ones are not sure.
 *
 * The sum of the positive ranks of n values is that of a random subset of 1..n. ways[s] counts the
 * subsets with sum s; they are exact in a double up to n = 53, and to 16 digits beyond.
 */
static size_t outer_pairs(size_t count, double error) {
    double ways[PAIRS_MOST + 1] = {1};
    size_t sums = count * (count + 1) / 2;
    for (size_t rank = 1; rank <= count; rank++)
        for (size_t sum = rank * (rank + 1) / 2; sum >= rank; sum--)
            ways[sum] += ways[sum - rank];
    double allowed = error / 2 * ldexp(1, (int)count);
    double below = 0;
    size_t k = 0;
    for (; k <= sums; k++) {
        below += ways[k];
        if (below > allowed)
            break;
    }
    return k;
}

/*
 * A machine's slow phases outlast a round, so neighbours resemble each other, and n of them tell
 * less than n. For a series in which each value keeps the part r of the one before it, the variance
 * of the mean is larger by (1 + r) / (1 - r).
 */
static double widening(const double *values, size_t count) {
    double mean = 0, together = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
        if (i > 0)
            together += (values[i] - mean) * (values[i - 1] - mean);
    }
    if (!(squares > 0) || !(together > 0))
        return 1;
    double r = fmin(together / squares, CORRELATION_MOST);
    return sqrt((1 + r) / (1 - r));
}

presto__interval presto__interval_of(const double *values, size_t count, double error) {
    presto__interval interval = {-INFINITY, NAN, INFINITY, count};
    double means[PAIRS_MOST];
    size_t pairs = 0;
    if (count > PRESTO__VALUES_MOST)
        count = PRESTO__VALUES_MOST;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i; k < count; k++)
            means[pairs++] = (values[i] + values[k]) / 2;
    if (count == 0)
        return interval;
    qsort(means, pairs, sizeof *means, compare_values);
    interval.middle = (means[(pairs - 1) / 2] + means[pairs / 2]) / 2;
    size_t outer = outer_pairs(count, error);
    if (outer == 0)
        return interval;
    double wide = widening(values, count);
    interval.least = interval.middle - (interval.middle - means[outer - 1]) * wide;
    interval.most = interval.middle + (means[pairs - outer] - interval.middle) * wide;
    return interval;
}

double presto__error_share(size_t comparisons) {
    return PRESTO__ERROR / (double)(PRESTO__LOOK_COUNT + 1) /
           (double)(comparisons > 0 ? comparisons : 1);
}

bool presto__is_look(size_t rounds) {
    static const size_t looks[PRESTO__LOOK_COUNT] = PRESTO__LOOKS;
    for (size_t i = 0; i < PRESTO__LOOK_COUNT; i++)
        if (looks[i] == rounds)
            return true;
    return false;
}
