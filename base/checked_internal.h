/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on sizes from outside: false instead of wrapping around. *out is untouched then. */
#ifndef PRESTO_BASE_CHECKED_INTERNAL_H
#define PRESTO_BASE_CHECKED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline bool presto__size_add(size_t a, size_t b, size_t *out) {
    if (b > SIZE_MAX - a)
        return false;
    *out = a + b;
    return true;
}

static inline bool presto__size_multiply(size_t a, size_t b, size_t *out) {
    size_t product; /* no division: some callers multiply once a sample */
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

static inline bool presto__u64_add(uint64_t a, uint64_t b, uint64_t *out) {
    if (b > UINT64_MAX - a)
        return false;
    *out = a + b;
    return true;
}

static inline bool presto__u64_multiply(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

/**
 * Zeroed memory for `count` + `more` items of `bytes` bytes. NULL: there is not as much. Free with
 * free().
 */
static inline void *presto__zeroed_array(uint64_t count, size_t more, size_t bytes) {
    if (count > SIZE_MAX - more)
        return NULL;
    return calloc((size_t)count + more, bytes);
}

#endif
