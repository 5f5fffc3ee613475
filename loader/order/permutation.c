/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keyed permutation of [0, count) in constant memory, exact for every count.
 *
 * A balanced Feistel network permutes the smallest 4^h >= count: with halves L and R, each round
 * maps (L, R) -> (R, L ^ f(R, key)), which is undone by running the rounds backwards whatever f is.
 * Cycle walking then restricts it to [0, count): apply it again until the value lies inside. Since
 * the permutation's cycles return to where they began, this ends, and it is a bijection of the
 * inside (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). As 4^h < 4
 * count, fewer than four steps are needed on average.
 *
 * f is the finalizer of SplitMix64 (Steele, Lea, Flood 2014) over half and key; round keys are
 * draws of Philox.
 */
#include "../../base/rng_internal.h"
#include "order_internal.h"

/* Separates the draws of orders from those of steps, whose streams are positions in a pipeline. */
#define ORDER_STREAM ((uint64_t)1 << 63)

void presto__permutation_init(presto__permutation *permutation, uint64_t count, uint64_t seed,
                              uint64_t epoch, uint64_t stream) {
    permutation->count = count;
    permutation->half_bits = 1;
    while (permutation->half_bits < 32 && (count - 1) >> (2 * permutation->half_bits) != 0)
        permutation->half_bits++;
    permutation->half_mask = ((uint64_t)1 << permutation->half_bits) - 1;
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){seed, epoch, stream, ORDER_STREAM});
    for (size_t r = 0; r < PRESTO__PERMUTATION_ROUNDS; r++)
        permutation->keys[r] = presto_rng_next(&rng);
}

static uint64_t mix(uint64_t half, uint64_t key) {
    uint64_t z = half + key;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t presto__permutation_at(const presto__permutation *permutation, uint64_t i) {
    uint64_t mask = permutation->half_mask;
    unsigned bits = permutation->half_bits;
    if (permutation->count < 2)
        return i;
    do {
        uint64_t left = i >> bits;
        uint64_t right = i & mask;
        for (size_t r = 0; r < PRESTO__PERMUTATION_ROUNDS; r++) {
            uint64_t next = left ^ (mix(right, permutation->keys[r]) & mask);
            left = right;
            right = next;
        }
        i = left << bits | right;
    } while (i >= permutation->count);
    return i;
}

uint64_t presto__permutation_inverse(const presto__permutation *permutation, uint64_t value) {
    uint64_t mask = permutation->half_mask;
    unsigned bits = permutation->half_bits;
    if (permutation->count < 2)
        return value;
    do {
        uint64_t left = value >> bits;
        uint64_t right = value & mask;
        for (size_t r = PRESTO__PERMUTATION_ROUNDS; r-- > 0;) {
            uint64_t before = right ^ (mix(left, permutation->keys[r]) & mask);
            right = left;
            left = before;
        }
        value = left << bits | right;
    } while (value >= permutation->count);
    return value;
}
