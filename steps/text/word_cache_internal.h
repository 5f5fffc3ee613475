/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of short words that come often: of one model, in one thread. A word replaces another one
 * that has the same slot.
 */
#ifndef PRESTO_STEPS_WORD_CACHE_INTERNAL_H
#define PRESTO_STEPS_WORD_CACHE_INTERNAL_H

#include <stdlib.h>

#include <presto/span.h>

enum { PRESTO__CACHED_WORD_BYTES = 24, PRESTO__CACHED_WORD_IDS = 8 };

typedef struct presto__cached_word {
    uint8_t bytes; /* 0: a free slot */
    uint8_t count;
    uint8_t text[PRESTO__CACHED_WORD_BYTES];
    int32_t ids[PRESTO__CACHED_WORD_IDS];
} presto__cached_word;

typedef struct presto__word_cache {
    presto__cached_word *slots;
    size_t mask;
} presto__word_cache;

/** `slots`: a power of two. False: no memory. */
static inline bool presto__word_cache_init(presto__word_cache *cache, size_t slots) {
    cache->slots = calloc(slots, sizeof *cache->slots);
    cache->mask = slots - 1;
    return cache->slots != NULL;
}

static inline void presto__word_cache_done(presto__word_cache *cache) {
    free(cache->slots);
    cache->slots = NULL;
}

static inline presto__cached_word *presto__word_cache_slot(const presto__word_cache *cache,
                                                           presto_span word) {
    uint64_t mixed = word.bytes;
    for (size_t i = 0; i < word.bytes; i += 8) {
        uint64_t eight = 0;
        memcpy(&eight, word.data + i, word.bytes - i < 8 ? word.bytes - i : 8);
        mixed = (mixed ^ eight) * UINT64_C(0x9e3779b97f4a7c15);
        mixed ^= mixed >> 29;
    }
    return &cache->slots[mixed & cache->mask];
}

/** A word of at least one byte; NULL: it is not there. */
static inline const presto__cached_word *presto__word_cache_find(const presto__word_cache *cache,
                                                                 presto_span word) {
    if (word.bytes > PRESTO__CACHED_WORD_BYTES)
        return NULL;
    const presto__cached_word *slot = presto__word_cache_slot(cache, word);
    return slot->bytes == word.bytes && memcmp(slot->text, word.data, word.bytes) == 0 ? slot
                                                                                       : NULL;
}

/** Keep a word, unless it is too long or has too many ids. */
static inline void presto__word_cache_keep(const presto__word_cache *cache, presto_span word,
                                           const int32_t *ids, size_t count) {
    if (word.bytes > PRESTO__CACHED_WORD_BYTES || count > PRESTO__CACHED_WORD_IDS)
        return;
    presto__cached_word *slot = presto__word_cache_slot(cache, word);
    slot->bytes = (uint8_t)word.bytes;
    slot->count = (uint8_t)count;
    memcpy(slot->text, word.data, word.bytes);
    if (count > 0)
        memcpy(slot->ids, ids, count * sizeof *ids);
}

#endif
