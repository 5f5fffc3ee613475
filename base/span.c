/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that grow geometrically, and arenas that keep their chunks from round to round. */
#include <presto/span.h>

#include <stdlib.h>

#include "checked_internal.h"
#include "memory_internal.h"

#define DEFAULT_CHUNK_BYTES ((size_t)64 << 10)
/* malloc may keep tens of megabytes of freed memory in each of its arenas. */
#define MAPPED_CHUNK_BYTES ((size_t)4 << 20)

char *presto_span_to_text(presto_span span) {
    /* Not strndup: it searches for an end that spans do not have. */
    char *text = malloc(span.bytes + 1);
    if (text == NULL)
        return NULL;
    if (span.bytes > 0)
        memcpy(text, span.data, span.bytes);
    text[span.bytes] = '\0';
    return text;
}

presto_status presto_buffer_reserve(presto_buffer *buffer, size_t extra, presto_error *err) {
    size_t need;
    if (!presto__size_add(buffer->bytes, extra, &need))
        return presto_fail_memory(err, UINT64_MAX);
    if (need <= buffer->capacity && buffer->data != NULL)
        return PRESTO_OK;
    size_t capacity = buffer->capacity;
    if (capacity <= SIZE_MAX / 2)
        capacity += capacity / 2;
    if (capacity < need)
        capacity = need; /* a large first piece gets exactly its size */
    if (capacity < 256)
        capacity = 256;
    uint8_t *data = realloc(buffer->data, capacity);
    if (data == NULL)
        return presto_fail_memory(err, capacity);
    presto__memory_will_fill(data + buffer->bytes, capacity - buffer->bytes);
    buffer->data = data;
    buffer->capacity = capacity;
    return PRESTO_OK;
}

presto_status presto_buffer_append(presto_buffer *buffer, presto_span span, presto_error *err) {
    PRESTO_TRY(presto_buffer_reserve(buffer, span.bytes, err));
    if (span.bytes > 0)
        memcpy(buffer->data + buffer->bytes, span.data, span.bytes);
    buffer->bytes += span.bytes;
    return PRESTO_OK;
}

void presto_buffer_done(presto_buffer *buffer) {
    if (buffer == NULL)
        return;
    free(buffer->data);
    *buffer = (presto_buffer){0};
}

struct presto_arena_chunk {
    presto_arena_chunk *next; /* the one made before it */
    size_t bytes;             /* usable bytes after this header */
    size_t mapped_bytes;      /* total size if mapped; 0: from malloc */
    size_t used;
};

static uint8_t *chunk_data(presto_arena_chunk *chunk) {
    return (uint8_t *)(chunk + 1);
}

void presto_arena_init(presto_arena *arena, size_t chunk_bytes) {
    *arena = (presto_arena){0};
    arena->chunk_bytes = chunk_bytes;
}

/* The piece from one chunk, or NULL if it does not fit. */
static void *chunk_take(presto_arena_chunk *chunk, size_t bytes, size_t align) {
    uintptr_t at = (uintptr_t)chunk_data(chunk) + chunk->used;
    size_t padding = (size_t)(-at & (align - 1));
    size_t left = chunk->bytes - chunk->used;
    if (padding > left || bytes > left - padding)
        return NULL;
    chunk->used += padding + bytes;
    return chunk_data(chunk) + (chunk->used - bytes);
}

/* A new chunk, not yet part of the arena; NULL: no memory. */
static presto_arena_chunk *chunk_make(size_t bytes) {
    size_t whole;
    if (!presto__size_add(bytes, sizeof(presto_arena_chunk), &whole))
        return NULL;
    bool is_mapped = whole >= MAPPED_CHUNK_BYTES;
    presto_arena_chunk *chunk = is_mapped ? presto__memory_map(whole) : malloc(whole);
    if (chunk == NULL)
        return NULL;
    chunk->next = NULL;
    chunk->bytes = bytes;
    chunk->mapped_bytes = is_mapped ? whole : 0;
    chunk->used = 0;
    if (is_mapped)
        presto__memory_will_fill(chunk, whole);
    return chunk;
}

static presto_arena_chunk *chunk_new(presto_arena *arena, size_t least_bytes) {
    size_t bytes = arena->chunk_bytes != 0 ? arena->chunk_bytes : DEFAULT_CHUNK_BYTES;
    /* Doubling keeps the number of chunks small. Chunks above this size need no doubling. */
    size_t held = arena->total_bytes < MAPPED_CHUNK_BYTES ? arena->total_bytes : MAPPED_CHUNK_BYTES;
    if (bytes < held)
        bytes = held;
    if (bytes < least_bytes)
        bytes = least_bytes;
    if (!presto_arena_may_grow(arena, bytes))
        return NULL;
    presto_arena_chunk *chunk = chunk_make(bytes);
    if (chunk == NULL)
        return NULL;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->total_bytes += bytes;
    return chunk;
}

void *presto_arena_alloc(presto_arena *arena, size_t bytes, size_t align) {
    if (arena->current != NULL) {
        void *piece = chunk_take(arena->current, bytes, align);
        if (piece != NULL)
            return piece;
    }
    size_t least;
    if (!presto__size_add(bytes, align, &least))
        return NULL;
    presto_arena_chunk *chunk = chunk_new(arena, least);
    if (chunk == NULL)
        return NULL;
    arena->current = chunk;
    return chunk_take(chunk, bytes, align);
}

void presto_arena_reset(presto_arena *arena) {
    if (arena->chunks == NULL)
        return;
    if (arena->chunks->next != NULL) {
        /* Replace all chunks by one of their total size, so that the next round needs no second
         * one. */
        size_t total = arena->total_bytes;
        presto_arena_chunk *merged = chunk_make(total);
        if (merged != NULL) {
            presto_arena_done(arena);
            arena->chunks = merged;
            arena->total_bytes = total;
        }
    }
    for (presto_arena_chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->next)
        chunk->used = 0;
    arena->current = arena->chunks;
}

void presto_arena_done(presto_arena *arena) {
    if (arena == NULL)
        return;
    presto_arena_chunk *chunk = arena->chunks;
    while (chunk != NULL) {
        presto_arena_chunk *next = chunk->next;
        if (chunk->mapped_bytes > 0)
            presto__memory_unmap(chunk, chunk->mapped_bytes);
        else
            free(chunk);
        chunk = next;
    }
    arena->chunks = NULL;
    arena->current = NULL;
    arena->total_bytes = 0;
}
