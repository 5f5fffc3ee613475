/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keyed hash for tables of names that come from outside: whoever makes the names does not know
 * the key, and so cannot make names that collide. Nothing that is stored or delivered may depend
 * on it.
 *
 * Algorithm: SipHash-1-3 of Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), with
 * one round a word and three at the end.
 */
#ifndef PRESTO_HASH_H
#define PRESTO_HASH_H

#include <presto/span.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct presto_hash_key {
    uint64_t words[2];
} presto_hash_key;

/** A key that is this process's own, the same at every call. No system call, no state. */
PRESTO_API presto_hash_key presto_hash_process_key(void);

/** Any thread. */
PRESTO_API uint64_t presto_hash(presto_hash_key key, presto_span bytes);

#ifdef __cplusplus
}
#endif

#endif
