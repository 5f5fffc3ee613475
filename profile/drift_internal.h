/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing distributions (ks.c), and with a sweep (drift_costs.c), for drift.c. */
#ifndef PRESTO_PROFILE_DRIFT_INTERNAL_H
#define PRESTO_PROFILE_DRIFT_INTERNAL_H

#include <jansson.h>
#include <presto/drift.h>

#include "trial/trial_internal.h"

/** Values of samples. Owned by whoever made them. */
typedef struct presto__series {
    double *values;
    size_t count;
} presto__series;

typedef struct presto__ks {
    double distance; /* the largest one between the cumulative distributions */
    double chance;   /* of so large a distance if both are samples of the same */
} presto__ks;

/** Sorts both. */
presto__ks presto__ks_test(presto__series *a, presto__series *b);
/** Of a sorted series, linear between values; NaN if it is empty. */
double presto__quantile(const presto__series *sorted, double part);

/** The object in a results.json. Owner: caller. */
presto_status presto__drift_results(const char *path, json_t **root_out, presto_error *err);
/** What options->results says of source bytes and of the steps up to `split`, against the samples
 * of the runner. Fills found->costs. */
presto_status presto__drift_costs(const presto_drift_options *options, const char *split,
                                  presto__runner *runner, presto_drift *found, presto_error *err);

#endif
