/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers begin: beside presto/rng.h, which draws them. */
#ifndef PRESTO_RNG_INTERNAL_H
#define PRESTO_RNG_INTERNAL_H

#include <presto/rng.h>

/** What a draw is keyed by. `stream` tells apart the uses within a sample (the step's position). */
typedef struct presto__rng_key {
    uint64_t seed;
    uint64_t epoch;
    uint64_t sample;
    uint64_t stream;
} presto__rng_key;

void presto__rng_init(presto_rng *rng, const presto__rng_key *key);

#endif
