/* SPDX-License-Identifier: Apache-2.0 */
/* The two-sample test of Kolmogorov and Smirnov: it asks for no form of the distributions. */
#include "../drift_internal.h"

#include <math.h>
#include <stdlib.h>

static int compare_values(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Probability that the limit of sqrt(n) D is larger (Kolmogorov 1933). */
static double kolmogorov(double lambda) {
    double sum = 0;
    if (lambda < 0.2)
        return 1; /* to 1e-12 */
    for (int k = 1; k <= 100; k++) {
        double term = exp(-2.0 * k * k * lambda * lambda);
        sum += k % 2 == 1 ? term : -term;
        if (term < 1e-16)
            break;
    }
    return fmin(fmax(2 * sum, 0), 1);
}

presto__ks presto__ks_test(presto__series *a, presto__series *b) {
    presto__ks result = {.chance = 1};
    if (a->count == 0 || b->count == 0)
        return result;
    qsort(a->values, a->count, sizeof *a->values, compare_values);
    qsort(b->values, b->count, sizeof *b->values, compare_values);
    double n = (double)a->count, m = (double)b->count;
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        double at = fmin(a->values[i], b->values[k]);
        while (i < a->count && a->values[i] <= at) /* ties on both sides count together */
            i++;
        while (k < b->count && b->values[k] <= at)
            k++;
        result.distance = fmax(result.distance, fabs((double)i / n - (double)k / m));
    }
    /* The correction for small samples is that of Stephens 1970. */
    double root = sqrt(n * m / (n + m));
    result.chance = kolmogorov((root + 0.12 + 0.11 / root) * result.distance);
    return result;
}

double presto__quantile(const presto__series *sorted, double part) {
    if (sorted->count == 0)
        return NAN;
    double at = part * (double)(sorted->count - 1);
    size_t below = (size_t)at;
    size_t above = below + 1 < sorted->count ? below + 1 : below;
    double rest = at - (double)below;
    return sorted->values[below] * (1 - rest) + sorted->values[above] * rest;
}
