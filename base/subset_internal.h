/* SPDX-License-Identifier: Apache-2.0 */
/* Some numbers out of many, found by their rank. */
#ifndef PRESTO_BASE_SUBSET_INTERNAL_H
#define PRESTO_BASE_SUBSET_INTERNAL_H

#include <presto/status.h>

/** Some of the numbers below a bound, in rising order. */
typedef struct presto__subset presto__subset;

/** For numbers below `most`; empty. Takes a bit for each. */
presto_status presto__subset_new(uint64_t most, presto__subset **subset_out, presto_error *err);
void presto__subset_free(presto__subset *subset);
/** Larger than those added before. */
presto_status presto__subset_add(presto__subset *subset, uint64_t number, presto_error *err);
uint64_t presto__subset_count(const presto__subset *subset);
/** Keep only the first `count`. */
void presto__subset_truncate(presto__subset *subset, uint64_t count);
/** Ranks in the subset become its numbers. Any thread, once all are added. */
void presto__subset_numbers(const presto__subset *subset, uint64_t *numbers, size_t count);

#endif
