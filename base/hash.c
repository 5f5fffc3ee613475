/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3, and a key that the system has drawn for the process. */

#include <sys/auxv.h>

#include "digest_internal.h"

static uint64_t rotate(uint64_t value, unsigned bits) {
    return value << bits | value >> (64 - bits);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void take_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

/* The last 0 to 7 bytes, and the length in the top byte. */
static uint64_t last_word(const uint8_t *at, size_t left, size_t bytes) {
    uint64_t word = (uint64_t)bytes << 56;
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

uint64_t presto__hash(presto__hash_key key, presto_span bytes) {
    uint64_t v[4] = {
        key.words[0] ^ UINT64_C(0x736f6d6570736575), key.words[1] ^ UINT64_C(0x646f72616e646f6d),
        key.words[0] ^ UINT64_C(0x6c7967656e657261), key.words[1] ^ UINT64_C(0x7465646279746573)};
    const uint8_t *at = bytes.data;
    size_t left = bytes.bytes;
    for (; left >= 8; at += 8, left -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word); /* little-endian, as index files demand it */
        take_word(v, word);
    }
    take_word(v, last_word(at, left, bytes.bytes));
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

presto__hash_key presto__hash_process_key(void) {
    presto__hash_key key = {{UINT64_C(0x9e3779b97f4a7c15), 0}};
    /* 16 random bytes that the kernel gives each process. */
    const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
    if (random != NULL)
        memcpy(&key, random, sizeof key);
    else
        key.words[1] = (uintptr_t)&key; /* at least where the system has put the stack */
    return key;
}
