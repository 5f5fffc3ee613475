/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies to memory that is not read again soon. An ordinary store to a line that is in no cache
 * reads the line first, and throws another one out. Stores past the caches do neither: where the
 * copies of a loader go round through more memory than its caches hold, they take half the time.
 */
#ifndef PRESTO_COPY_INTERNAL_H
#define PRESTO_COPY_INTERNAL_H

#include <stddef.h>

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
