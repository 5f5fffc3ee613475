/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as the processor and the system like it. */
#ifndef PRESTO_BASE_MEMORY_INTERNAL_H
#define PRESTO_BASE_MEMORY_INTERNAL_H

#include <stddef.h>

/**
 * `data` is fresh memory of `bytes` bytes that will be filled from end to end: ask the system for
 * large pages, which are touched for the first time at about three times the speed. Small pieces
 * are left alone; never fails.
 */
void presto__memory_will_fill(void *data, size_t bytes);

/** Zeroed memory straight from the system; what is unmapped is gone, where malloc may keep it. NULL
 * if memory ran out. */
void *presto__memory_map(size_t bytes);
void presto__memory_unmap(void *memory, size_t bytes);

/** Two cache lines: processors fetch the neighbour of a line along with it. */
#define PRESTO__APART_BYTES 128

/**
 * `count` times `bytes` zeroed bytes, for what one thread writes with every sample: no cache line
 * of them holds anything else of the heap, which another thread would have to wait for at every
 * write. Starts at a multiple of PRESTO__APART_BYTES. Free with free(). NULL if memory ran out.
 */
void *presto__memory_apart(size_t count, size_t bytes);

/* ---- copy.c: copies to memory that is not read again soon ---- */

/*
 * Copies to memory that is not read again soon. An ordinary store to a line that is in no cache
 * reads the line first, and throws another one out. Stores past the caches do neither: where the
 * copies of a loader go round through more memory than its caches hold, they take half the time.
 */

/** Copies that are shorter do not gain. */
#define PRESTO__PAST_CACHE_LEAST ((size_t)4096)
/** Up to about so much memory that is used in turn, an ordinary copy is faster (measured: 8 MiB is
 * faster in the cache, 12 MiB is not). */
#define PRESTO__IN_CACHE_MOST ((size_t)10 << 20)

/**
 * As memcpy, past the caches where the processor can do that. All of it is done when the call
 * returns: a lock or a release that follows shows it to other threads.
 */
void presto__copy_past_cache(void *to, const void *from, size_t bytes);

#endif
