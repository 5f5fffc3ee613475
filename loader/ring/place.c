/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lowest free place is taken, so that a reader that keeps up stays in the memory that is in the
 * caches. Batches may be released in any order. There are few, so a list will do.
 */
#include "ring_internal.h"

#include <string.h>

bool presto__ring_reserve(presto__ring_parts *parts, uint64_t id, uint64_t bytes,
                          uint64_t *place_out) {
    uint64_t place = 0;
    size_t at = 0;
    if (parts->count == PRESTO__RING_MOST_LIVE)
        return false;
    for (; at < parts->count && parts->live[at].place - place < bytes; at++)
        place = parts->live[at].place + parts->live[at].bytes;
    if (at == parts->count && parts->ring_bytes - place < bytes)
        return false;
    memmove(parts->live + at + 1, parts->live + at, (parts->count - at) * sizeof *parts->live);
    parts->live[at] = (presto__ring_part){id, place, bytes};
    parts->count++;
    *place_out = place;
    return true;
}

bool presto__ring_release(presto__ring_parts *parts, uint64_t id) {
    for (size_t at = 0; at < parts->count; at++) {
        if (parts->live[at].id != id)
            continue;
        parts->count--;
        memmove(parts->live + at, parts->live + at + 1, (parts->count - at) * sizeof *parts->live);
        return true;
    }
    return false;
}
