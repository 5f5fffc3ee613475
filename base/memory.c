/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with properties that malloc alone cannot give. */
#define _DEFAULT_SOURCE /* madvise, MAP_ANONYMOUS */
#include <presto/span.h>

#include <stdlib.h>
#include <sys/mman.h>

#include "checked_internal.h"
#include "memory_internal.h"

#define LARGE_PAGE ((uintptr_t)2 << 20)
#define APART ((size_t)PRESTO__APART_BYTES)

/*
 * Only whole large pages inside the piece are requested, so it never takes more memory than malloc
 * gave. If the system has none, that is no failure.
 */
void presto__memory_will_fill(void *data, size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes < LARGE_PAGE)
        return;
    uintptr_t first = ((uintptr_t)data + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)data + bytes) & ~(LARGE_PAGE - 1);
    if (end > first)
        (void)madvise((uint8_t *)data + (first - (uintptr_t)data), end - first, MADV_HUGEPAGE);
#else
    (void)data;
    (void)bytes;
#endif
}

void *presto__memory_map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void presto__memory_unmap(void *memory, size_t bytes) {
    munmap(memory, bytes);
}

void *presto__memory_apart(size_t count, size_t bytes) {
    size_t whole;
    if (!presto__size_multiply(count, bytes, &whole) || !presto__size_add(whole, APART - 1, &whole))
        return NULL;
    whole &= ~(APART - 1);
    void *memory = aligned_alloc(APART, whole);
    if (memory != NULL)
        memset(memory, 0, whole);
    return memory;
}
