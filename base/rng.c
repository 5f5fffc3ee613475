/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Philox4x64-10. Each of the ten rounds multiplies two of the four counter words by odd constants
 * to 128 bits and mixes the halves crosswise with the key; between rounds the key words advance by
 * Weyl constants (golden ratio, sqrt(3) - 1). Salmon et al. 2011, section 3.3.
 */
#include <presto/rng.h>

#include "philox_internal.h"
#include "rng_internal.h"

#define ROUNDS 10
#define MULTIPLIER_0 UINT64_C(0xD2E7470EE14C6C93)
#define MULTIPLIER_1 UINT64_C(0xCA5A826395121157)
#define WEYL_0 UINT64_C(0x9E3779B97F4A7C15)
#define WEYL_1 UINT64_C(0xBB67AE8584CAA73B)

/* 64 x 64 -> 128 bits; every compiler that we support has the type. */
__extension__ typedef unsigned __int128 uint128;

static uint64_t multiply_high(uint64_t a, uint64_t b, uint64_t *low_out) {
    uint128 product = (uint128)a * b;
    *low_out = (uint64_t)product;
    return (uint64_t)(product >> 64);
}

void presto__philox4x64(const uint64_t key[2], const uint64_t counter[4], uint64_t draws_out[4]) {
    uint64_t k0 = key[0], k1 = key[1];
    uint64_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t low0, low1;
        uint64_t high0 = multiply_high(MULTIPLIER_0, c0, &low0);
        uint64_t high1 = multiply_high(MULTIPLIER_1, c2, &low1);
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    draws_out[0] = c0;
    draws_out[1] = c1;
    draws_out[2] = c2;
    draws_out[3] = c3;
}

void presto__rng_init(presto_rng *rng, const presto__rng_key *key) {
    rng->key[0] = key->seed;
    rng->key[1] = key->epoch;
    rng->counter[0] = 0;
    rng->counter[1] = key->sample;
    rng->counter[2] = key->stream;
    rng->counter[3] = 0;
    rng->used = 4;
}

uint64_t presto_rng_next(presto_rng *rng) {
    if (rng->used == 4) {
        presto__philox4x64(rng->key, rng->counter, rng->block);
        rng->counter[0]++;
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

uint64_t presto_rng_below(presto_rng *rng, uint64_t bound) {
    /* Lemire 2019: the high half of draw * bound is uniform once the few draws whose low half is
     * below 2^64 mod bound are rejected. */
    uint64_t low;
    uint64_t high = multiply_high(presto_rng_next(rng), bound, &low);
    if (low < bound) {
        uint64_t threshold = (0 - bound) % bound;
        while (low < threshold)
            high = multiply_high(presto_rng_next(rng), bound, &low);
    }
    return high;
}

double presto_rng_uniform(presto_rng *rng) {
    return (double)(presto_rng_next(rng) >> 11) * 0x1p-53;
}
