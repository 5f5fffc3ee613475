/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of names, sizes and times: of 64 bits by FNV-1a for what is stored, of 128 bits for keys;
 * and a keyed hash for tables. */
#ifndef PRESTO_BASE_DIGEST_INTERNAL_H
#define PRESTO_BASE_DIGEST_INTERNAL_H

#include <sys/stat.h>

#include <presto/span.h>

#define PRESTO__FNV_START UINT64_C(0xcbf29ce484222325)

/** FNV-1a, a number at a time. */
static inline uint64_t presto__fnv_mix(uint64_t digest, uint64_t value) {
    return (digest ^ value) * UINT64_C(0x100000001b3);
}

/** FNV-1a over bytes. */
static inline uint64_t presto__fnv_add(uint64_t digest, const void *data, size_t bytes) {
    const uint8_t *at = (const uint8_t *)data;
    for (size_t i = 0; i < bytes; i++)
        digest = presto__fnv_mix(digest, at[i]);
    return digest;
}

/** A digest of 128 bits over any number of pieces; two lists of pieces that differ give two digests
 * but for odds of 2^-128. No protection against malice. A plain value. */
typedef struct presto__digest {
    uint64_t state[2];
} presto__digest;

/** As if the piece's size were written before it. */
void presto__digest_add(presto__digest *digest, const void *data, size_t bytes);
/** What tells one content of a file from another without reading it: its size and times. */
void presto__digest_add_file(presto__digest *digest, const struct stat *info);

/* ---- hash.c: a keyed hash for names that come from outside ---- */

/*
 * A keyed hash for tables of names that come from outside: whoever makes the names does not know
 * the key, and so cannot make names that collide. Nothing that is stored or delivered may depend
 * on it.
 *
 * Algorithm: SipHash-1-3 of Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), with
 * one round a word and three at the end.
 */

typedef struct presto__hash_key {
    uint64_t words[2];
} presto__hash_key;

/** A key that is this process's own, the same at every call. No system call, no state. */
presto__hash_key presto__hash_process_key(void);

/** Any thread. */
uint64_t presto__hash(presto__hash_key key, presto_span bytes);

#endif
