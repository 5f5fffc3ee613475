/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte-level BPE: a word is its bytes, and the pair of neighbours with the lowest rank is joined
 * until no pair has one. Texts of tokens write each byte as one character (GPT-2's table).
 */
#ifndef PRESTO_STEPS_BYTE_BPE_INTERNAL_H
#define PRESTO_STEPS_BYTE_BPE_INTERNAL_H

#include <stdlib.h>

#include <presto/span.h>

#include "../../base/digest_internal.h"

#define PRESTO__BPE_MAX_MERGES 4194304

/* Of a model's file; borrowed while it is built. */
typedef struct presto__bpe_token {
    presto_span text;
    int32_t id; /* 0 or more */
} presto__bpe_token;

/* What a pair becomes. */
typedef struct presto__bpe_pair {
    uint32_t left, right; /* ids; `left` is UINT32_MAX in a free slot */
    uint32_t rank;
    int32_t joined;
} presto__bpe_pair;

typedef struct presto__byte_bpe {
    presto__hash_key key;
    int32_t byte_ids[256]; /* -1: the byte is no token */
    bool has_all_bytes;
    int32_t unknown_id; /* of bytes that are no tokens; -1: they are left out */
    bool joins_unknown; /* a run of them is one token */
    bool whole_words;   /* a word that is a token is not built from bytes */

    presto__bpe_token *tokens; /* as in the file; NULL once it is built */
    uint32_t *token_slots;     /* position in `tokens` plus 1, by text */
    size_t token_count;
    size_t token_mask;

    presto__bpe_pair *pairs; /* open addressing */
    size_t pair_mask;
    uint32_t next_rank;

    presto_buffer word_bytes; /* with whole_words: tokens as bytes, one after the other */
    struct presto__bpe_word *words;
    size_t word_mask;
} presto__byte_bpe;

struct presto__bpe_word {
    uint32_t offset, bytes; /* in word_bytes; no bytes: a free slot */
    int32_t id;
};

/**
 * Start a model of these tokens, whose texts must stay until presto__byte_bpe_finish(); room for
 * `merge_count` merges. Ids and texts must differ.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT (two tokens of the same id); PRESTO_ERR_MEMORY.
 */
presto_status presto__byte_bpe_start(presto__byte_bpe *bpe, const presto__bpe_token *tokens,
                                     size_t token_count, size_t merge_count, presto_error *err);
/** The next merge. PRESTO_ERR_CORRUPT: one of the tokens, or what they become, is not known. */
presto_status presto__byte_bpe_merge(presto__byte_bpe *bpe, presto_span left, presto_span right,
                                     presto_error *err);
/** Id of a text of the file; -1: no token. Until finish(). */
int32_t presto__byte_bpe_id(const presto__byte_bpe *bpe, presto_span text);
/** All merges are in, the options are set. PRESTO_ERR_MEMORY. */
presto_status presto__byte_bpe_finish(presto__byte_bpe *bpe, presto_error *err);
void presto__byte_bpe_done(presto__byte_bpe *bpe);

/** What pair (left, right) becomes; NULL: nothing. */
const presto__bpe_pair *presto__byte_bpe_pair(const presto__byte_bpe *bpe, int32_t left,
                                              int32_t right);
/** Id of a word that is a token, with whole_words; -1: it is none. */
int32_t presto__byte_bpe_word(const presto__byte_bpe *bpe, presto_span word);

/** Memory of one thread. */
typedef struct presto__bpe_scratch presto__bpe_scratch;
/** NULL: no memory. */
presto__bpe_scratch *presto__bpe_scratch_new(void);
void presto__bpe_scratch_free(presto__bpe_scratch *scratch);

/**
 * Append the ids (int32) of a word, of at least one byte. Time grows as n log n; words that come
 * often are found in the scratch memory. PRESTO_ERR_MEMORY.
 */
presto_status presto__byte_bpe_encode(const presto__byte_bpe *bpe, presto__bpe_scratch *scratch,
                                      presto_span word, presto_buffer *ids, presto_error *err);

/* ---- word_cache.c: the ids of short words that come often ---- */

/*
 * The ids of short words that come often: of one model, in one thread. A word replaces another one
 * that has the same slot.
 */

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
