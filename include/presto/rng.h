/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter-based random numbers: the n-th draw is a pure function of (seed, epoch, stream, sample,
 * n), so the same sample gets the same draw whatever the thread that asks or the order of asking.
 *
 * Generator: Philox4x64-10 of Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3" (SC 2011); the same one as numpy.random.Philox, against which the tests compare it.
 */
#ifndef PRESTO_RNG_H
#define PRESTO_RNG_H

#include <stdint.h>

#include <presto/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A sequence of draws, such as presto_step_rng gives. One thread at a time; copying forks the sequence. */
typedef struct presto_rng {
    uint64_t key[2];     /* seed, epoch */
    uint64_t counter[4]; /* block of draws, sample, stream, 0 */
    uint64_t block[4];   /* the four draws of the current block */
    unsigned used;       /* how many of them are handed out */
} presto_rng;

/** The next 64 random bits. */
PRESTO_API uint64_t presto_rng_next(presto_rng *rng);

/** Uniform in [0, bound), without bias (Lemire's multiply-and-reject); bound >= 1. */
PRESTO_API uint64_t presto_rng_below(presto_rng *rng, uint64_t bound);

/** Uniform in [0, 1) with 53 bits. */
PRESTO_API double presto_rng_uniform(presto_rng *rng);

#ifdef __cplusplus
}
#endif

#endif
