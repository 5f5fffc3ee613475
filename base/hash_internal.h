/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keyed hash for tables of names that come from outside: whoever makes the names does not know
 * the key, and so cannot make names that collide. Nothing that is stored or delivered may depend
 * on it.
 *
 * Algorithm: SipHash-1-3 of Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), with
 * one round a word and three at the end.
 */
#ifndef PRESTO_BASE_HASH_INTERNAL_H
#define PRESTO_BASE_HASH_INTERNAL_H

#include <presto/span.h>

typedef struct presto__hash_key {
    uint64_t words[2];
} presto__hash_key;

/** A key that is this process's own, the same at every call. No system call, no state. */
presto__hash_key presto__hash_process_key(void);

/** Any thread. */
uint64_t presto__hash(presto__hash_key key, presto_span bytes);

#endif
