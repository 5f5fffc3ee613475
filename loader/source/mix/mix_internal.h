/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room mix: several sources as one. source_mix.c reads them, mix_schema.c compares what they hold,
 * mix_shares.c says how much of each comes.
 * May see: base, room core.
 */
#ifndef PRESTO_LOADER_MIX_INTERNAL_H
#define PRESTO_LOADER_MIX_INTERNAL_H

#include <presto/mix.h>

#include "../core/source_internal.h"

/** Samples of all inputs, and of an epoch. */
#define PRESTO__MIX_MOST_SAMPLES ((uint64_t)1 << 56)

typedef struct presto__mixed_source {
    presto_source *source; /* of what the mix owns (presto__source_mix_own), or kept by the caller
                            * until the mix is freed */
    const char *name;
    double weight; /* more than 0 */
} presto__mixed_source;

typedef struct presto__mix_request {
    const presto__mixed_source *inputs;
    size_t count;
    presto_mix_epoch epoch;
    /* Only these features need to agree, beside the main one; none: all. Borrowed during the
     * call. */
    const char *const *features;
    size_t feature_count;
} presto__mix_request;

/**
 * A source of the samples of all inputs, one input behind the other; loaders mix them as its parts
 * say (room order).
 * Returns: PRESTO_ERR_ARGUMENT: an input without samples, a weight that is no positive number,
 *          inputs whose features or labels do not agree (the message names the feature and both
 *          inputs).
 */
presto_status presto__source_mix(const presto__mix_request *request, presto_source **source_out,
                                 presto_error *err);
/** From now on the mix owns `owned`, which is freed after it. */
void presto__source_mix_own(presto_source *mix, void *owned, void (*free_owned)(void *owned));
/** Set epoch_samples of all parts; PRESTO_ERR_ARGUMENT: there would be too many. */
presto_status presto__mix_shares(presto_source *mix, presto_mix_epoch epoch, presto_error *err);
/** Declare in `mix` what its inputs have in common, if they agree; see presto__source_mix. */
presto_status presto__mix_schema(presto_source *mix, const presto__mix_request *request,
                                 presto_error *err);

#endif
