/* SPDX-License-Identifier: Apache-2.0 */
/* How sizes are distributed where that matters to a sum: the largest ones, and the skewness. */
#ifndef PRESTO_PROFILE_TAILS_INTERNAL_H
#define PRESTO_PROFILE_TAILS_INTERNAL_H

#include "../trial/trial_internal.h"

#define PRESTO__TAIL_HELD 256

/** Sizes seen one by one, of which the largest are kept. Zero-initialise. */
typedef struct presto__size_tail {
    presto__moments moments;
    double largest[PRESTO__TAIL_HELD]; /* falling */
    size_t held;
} presto__size_tail;

void presto__tail_add(presto__size_tail *tail, double value);
/** How many of the largest ones make up half of the sum; 0: more than are kept. */
uint64_t presto__tail_half(const presto__size_tail *tail);
/** Of the values that were seen; 0 if there are fewer than three, or all are the same. */
double presto__skewness(const presto__moments *moments);
/** Do the `half` largest, which make up half of the sum, count as few? */
bool presto__is_half_in_few(const presto__moments *moments, uint64_t half);
/** Should the reader be told that a few items make up much of the sum? */
bool presto__is_heavy(const presto__moments *moments, uint64_t half);
/**
 * The 95 % interval of the sum over `population` items, of which `sample` is a sample, with regard
 * to the skewness. NaN below three values.
 */
void presto__skewed_interval(const presto__moments *sample, uint64_t population, double *least_out,
                             double *most_out);
/** Sizes of files; those that are gone are left out. */
void presto__tail_of_files(const char *const *paths, size_t count, presto__size_tail *tail_out);

#endif
