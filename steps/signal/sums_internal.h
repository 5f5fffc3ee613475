/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over a period, added in the order of NumPy's sum along the last axis, so that means are
 * NumPy's to the bit: up to 128 terms in eight lanes, which are then added in pairs; longer ones in
 * two halves.
 */
#ifndef PRESTO_STEPS_SUMS_INTERNAL_H
#define PRESTO_STEPS_SUMS_INTERNAL_H

#include "../steps_internal.h"

#define PRESTO__SUMS_LANES 8
#define PRESTO__SUMS_MOST 128

/** Two sums over the same terms. */
typedef struct presto__sums {
    double first, second;
} presto__sums;

/** The sums of at most PRESTO__SUMS_MOST terms, made from `count` values of `a` and of `b`, which
 * need not be aligned. */
typedef presto__sums (*presto__sums_fn)(const uint8_t *a, const uint8_t *b, size_t count);

/** So many of `count` terms, if these are more than PRESTO__SUMS_MOST, are added first. */
static inline size_t presto__sums_half(size_t count) {
    return count / 2 - count / 2 % PRESTO__SUMS_LANES;
}

/** The sums of any number of terms from values of `value_bytes` each. */
presto__sums presto__sums_of(presto__sums_fn block, const uint8_t *a, const uint8_t *b,
                             size_t value_bytes, size_t count);

/** The lanes of a sum, added as NumPy adds them. */
static inline double presto__sums_join(const double lanes[PRESTO__SUMS_LANES]) {
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/** PRESTO_OK if `values` is a whole number of periods, at least one; else PRESTO_ERR_TYPE. */
presto_status presto__periods_expect(const presto_tensor_spec *in, int64_t values, int64_t period,
                                     presto_error *err);

#endif
