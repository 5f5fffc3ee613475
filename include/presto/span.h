/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes: borrowed (presto_span), grown (presto_buffer), or handed out in bulk (presto_arena).
 */
#ifndef PRESTO_SPAN_H
#define PRESTO_SPAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <presto/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Borrowed bytes. data may be NULL only if bytes is 0. */
typedef struct presto_span {
    const uint8_t *data;
    size_t bytes;
} presto_span;

static inline presto_span presto_span_of(const void *data, size_t bytes) {
    presto_span span = {(const uint8_t *)data, bytes};
    return span;
}

static inline presto_span presto_span_of_text(const char *text) {
    return presto_span_of(text, strlen(text));
}

static inline bool presto_span_equal(presto_span a, presto_span b) {
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

static inline bool presto_span_is(presto_span span, const char *text) {
    return presto_span_equal(span, presto_span_of_text(text));
}

/** A NUL-terminated copy on the heap; free with free(). NULL if memory ran out. */
PRESTO_API char *presto_span_to_text(presto_span span);

/**
 * A growable byte buffer. Zero-initialise; presto_buffer_done() frees.
 * Owner:   the caller's struct owns `data`.
 * Threads: one at a time.
 */
typedef struct presto_buffer {
    uint8_t *data;
    size_t bytes;
    size_t capacity;
} presto_buffer;

/**
 * Make room for `extra` bytes after `bytes`; contents stay, `data` may move, growth is geometric.
 * Returns: PRESTO_OK, PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_buffer_reserve(presto_buffer *buffer, size_t extra,
                                               presto_error *err);

/** Append a copy of `span` (must not point into the buffer itself). */
PRESTO_API presto_status presto_buffer_append(presto_buffer *buffer, presto_span span,
                                              presto_error *err);

/** Free the memory; the buffer is empty and usable afterwards. NULL is fine. */
PRESTO_API void presto_buffer_done(presto_buffer *buffer);

static inline presto_span presto_buffer_span(const presto_buffer *buffer) {
    return presto_span_of(buffer->data, buffer->bytes);
}

/**
 * Bump allocator: many small or large pieces, freed together. Chunks are kept over
 * presto_arena_reset(), so that a loop that resets per sample or block stops calling malloc after
 * its first rounds. Chunks of 4 MiB and more go back to the system when they are freed.
 * Zero-initialise or use presto_arena_init.
 * Threads: one at a time.
 */
typedef struct presto_arena_chunk presto_arena_chunk;
/** The arena is about to take `bytes` more: wait until they may be had. False: they may not, the
 * allocation fails. */
typedef bool (*presto_arena_grow_fn)(void *user, size_t bytes);
typedef struct presto_arena {
    presto_arena_chunk *chunks;   /* all chunks, newest first */
    presto_arena_chunk *current;  /* the one being filled */
    size_t chunk_bytes;           /* least size of a new chunk; 0 = 64 KiB */
    size_t total_bytes;           /* memory held in chunks */
    presto_arena_grow_fn on_grow; /* set after init, kept by reset and done; NULL: none */
    void *on_grow_user;           /* borrowed as long as the arena is used */
} presto_arena;

PRESTO_API void presto_arena_init(presto_arena *arena, size_t chunk_bytes);

/** Ask on_grow for `bytes` that are no chunk but are used beside the arena. True without one. */
static inline bool presto_arena_may_grow(const presto_arena *arena, size_t bytes) {
    return arena->on_grow == NULL || arena->on_grow(arena->on_grow_user, bytes);
}

/**
 * `bytes` of uninitialised memory at an address that is a multiple of `align` (a power of two, at
 * most 4096). Valid until reset or done. NULL if memory ran out. bytes == 0 gives a non-NULL
 * pointer.
 */
PRESTO_API void *presto_arena_alloc(presto_arena *arena, size_t bytes, size_t align);

/** Forget all allocations, keep the memory; several chunks are merged into one. */
PRESTO_API void presto_arena_reset(presto_arena *arena);

/** Free everything; NULL and zero-initialised are fine. */
PRESTO_API void presto_arena_done(presto_arena *arena);

#ifdef __cplusplus
}
#endif

#endif
