/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that stays with a packet: slabs, which hand out pieces, and tails, which grow. */
#include <stdlib.h>

#include "../../base/memory_internal.h"
#include "columns_internal.h"

/* ---- slab ---- */

/*
 * Chunks from this size on are mapped. malloc may keep tens of megabytes that were freed, in each
 * of its arenas, but memory given back because of the limit must really be gone.
 */
#define MAPPED_CHUNK_BYTES ((size_t)4 << 20)

typedef struct presto__slab_chunk presto__slab_chunk;
struct presto__slab_chunk {
    presto__slab_chunk *next;
    size_t mapped_bytes; /* all of it; 0: from malloc */
    size_t bytes;        /* usable, from `data` */
    size_t used;
    uint8_t *data; /* aligned */
};

static presto__slab_chunk *slab_chunk_new(size_t bytes) {
    if (bytes > SIZE_MAX - 2 * PRESTO__BATCH_ALIGN - sizeof(presto__slab_chunk))
        return NULL;
    size_t whole = sizeof(presto__slab_chunk) + PRESTO__BATCH_ALIGN + bytes;
    bool is_mapped = whole >= MAPPED_CHUNK_BYTES;
    void *memory = is_mapped ? presto__memory_map(whole) : malloc(whole);
    if (memory == NULL)
        return NULL;
    presto__slab_chunk *chunk = memory;
    chunk->mapped_bytes = is_mapped ? whole : 0;
    uintptr_t at = (uintptr_t)(chunk + 1);
    chunk->next = NULL;
    chunk->bytes = bytes;
    chunk->used = 0;
    chunk->data = (uint8_t *)(chunk + 1) + (-at & (PRESTO__BATCH_ALIGN - 1));
    presto__memory_will_fill(chunk->data, bytes);
    return chunk;
}

void *presto__slab_alloc(presto__slab *slab, size_t bytes, size_t hint) {
    if (bytes > SIZE_MAX - PRESTO__BATCH_ALIGN)
        return NULL;
    size_t step = (bytes + PRESTO__BATCH_ALIGN - 1) & ~(PRESTO__BATCH_ALIGN - 1);
    presto__slab_chunk *chunk = slab->chunks;
    if (chunk == NULL || chunk->bytes - chunk->used < step) {
        chunk = slab_chunk_new(hint > step ? hint : step);
        if (chunk == NULL)
            return NULL;
        chunk->next = slab->chunks;
        slab->chunks = chunk;
        slab->total_bytes += chunk->bytes;
    }
    void *piece = chunk->data + chunk->used;
    chunk->used += step;
    slab->used_bytes += step;
    return piece;
}

void presto__slab_done(presto__slab *slab) {
    while (slab->chunks != NULL) {
        presto__slab_chunk *next = slab->chunks->next;
        if (slab->chunks->mapped_bytes > 0)
            presto__memory_unmap(slab->chunks, slab->chunks->mapped_bytes);
        else
            free(slab->chunks);
        slab->chunks = next;
    }
    *slab = (presto__slab){0};
}

void presto__slab_reset(presto__slab *slab) {
    if (slab->chunks != NULL && slab->chunks->next != NULL) {
        /* One chunk of the size that was needed. Without memory for it, chunks are made as
         * needed. */
        size_t used = slab->used_bytes;
        presto__slab_done(slab);
        slab->chunks = slab_chunk_new(used);
        slab->total_bytes = slab->chunks == NULL ? 0 : used;
    }
    slab->used_bytes = 0;
    if (slab->chunks != NULL)
        slab->chunks->used = 0;
}

/* ---- tails ---- */

presto_status presto__tail_reserve(presto__column_tail *tail, size_t more, presto_error *err) {
    if (more <= tail->capacity - tail->bytes)
        return PRESTO_OK;
    size_t needed, capacity;
    if (!presto__size_add(tail->bytes, more, &needed))
        return presto_fail_memory(err, UINT64_MAX);
    capacity = tail->capacity > SIZE_MAX / 2 ? needed : tail->capacity * 3 / 2;
    if (capacity < needed)
        capacity = needed;
    if (capacity < PRESTO__BATCH_ALIGN * 4)
        capacity = PRESTO__BATCH_ALIGN * 4;
    presto__slab grown = {0};
    uint8_t *data = presto__slab_alloc(&grown, capacity, capacity);
    if (data == NULL)
        return presto_fail_memory(err, capacity);
    if (tail->bytes > 0)
        memcpy(data, tail->data, tail->bytes);
    presto__slab_done(&tail->memory);
    tail->memory = grown;
    tail->data = data;
    tail->capacity = capacity;
    return PRESTO_OK;
}

presto_status presto__tail_append(presto__column_tail *tail, const void *data, size_t bytes,
                                  presto_error *err) {
    PRESTO_TRY(presto__tail_reserve(tail, bytes, err));
    uint8_t *to = tail->data + tail->bytes;
    if (bytes > 0 && to != data)
        memcpy(to, data, bytes);
    tail->bytes += bytes;
    return PRESTO_OK;
}
