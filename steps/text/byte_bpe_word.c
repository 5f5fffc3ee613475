/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One word to ids. Short words search the lowest rank among all neighbours; long ones keep the
 * pairs in a heap, ordered by rank and place, and skip entries whose neighbours have changed.
 */
#include <stdlib.h>

#include "byte_bpe_internal.h"

enum { SHORT_BYTES = 32, CACHE_SLOTS = 8192 };

/* A token of the word under way. */
typedef struct symbol {
    int32_t id; /* -1: joined to the one before */
    uint32_t previous, next;
} symbol;

typedef struct candidate {
    uint32_t rank;
    uint32_t at; /* the left one of the pair */
    int32_t joined;
} candidate;

struct presto__bpe_scratch {
    presto__word_cache cache;
    presto_buffer symbols, heap;
};

#define NOWHERE UINT32_MAX

presto__bpe_scratch *presto__bpe_scratch_new(void) {
    presto__bpe_scratch *scratch = calloc(1, sizeof *scratch);
    if (scratch == NULL || presto__word_cache_init(&scratch->cache, CACHE_SLOTS))
        return scratch;
    free(scratch);
    return NULL;
}

void presto__bpe_scratch_free(presto__bpe_scratch *scratch) {
    if (scratch == NULL)
        return;
    presto_buffer_done(&scratch->symbols);
    presto_buffer_done(&scratch->heap);
    presto__word_cache_done(&scratch->cache);
    free(scratch);
}

/* ---- short words ---- */

static uint32_t rank_of(const presto__byte_bpe *bpe, int32_t left, int32_t right,
                        int32_t *joined_out) {
    const presto__bpe_pair *pair = presto__byte_bpe_pair(bpe, left, right);
    if (pair == NULL)
        return UINT32_MAX;
    *joined_out = pair->joined;
    return pair->rank;
}

/* ids[0..count) is what is left of the word, ranks[i] that of the pair at i. */
static size_t join_short(const presto__byte_bpe *bpe, int32_t *ids, size_t count) {
    uint32_t ranks[SHORT_BYTES] = {0};
    int32_t joined[SHORT_BYTES] = {0};
    for (size_t i = 0; i + 1 < count; i++)
        ranks[i] = rank_of(bpe, ids[i], ids[i + 1], &joined[i]);
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == UINT32_MAX)
            break;
        ids[best] = joined[best];
        for (size_t i = best + 1; i + 1 < count; i++) {
            ids[i] = ids[i + 1];
            ranks[i] = ranks[i + 1];
            joined[i] = joined[i + 1];
        }
        count--;
        if (best > 0)
            ranks[best - 1] = rank_of(bpe, ids[best - 1], ids[best], &joined[best - 1]);
        if (best + 1 < count)
            ranks[best] = rank_of(bpe, ids[best], ids[best + 1], &joined[best]);
    }
    return count;
}

/* ---- long words ---- */

static bool is_before(const candidate *a, const candidate *b) {
    return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

static presto_status push(presto_buffer *heap, candidate new, presto_error *err) {
    PRESTO_TRY(presto_buffer_reserve(heap, sizeof new, err));
    candidate *all = (candidate *)(void *)heap->data;
    size_t at = heap->bytes / sizeof new;
    heap->bytes += sizeof new;
    for (; at > 0 && is_before(&new, &all[(at - 1) / 2]); at = (at - 1) / 2)
        all[at] = all[(at - 1) / 2];
    all[at] = new;
    return PRESTO_OK;
}

/* The heap is not empty. */
static candidate pop(presto_buffer *heap) {
    candidate *all = (candidate *)(void *)heap->data;
    candidate top = all[0];
    heap->bytes -= sizeof top;
    size_t count = heap->bytes / sizeof top, at = 0;
    candidate last = all[count];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && is_before(&all[child + 1], &all[child]))
            child++;
        if (!is_before(&all[child], &last))
            break;
        all[at] = all[child];
        at = child;
    }
    all[at] = last;
    return top;
}

static presto_status push_pair(const presto__byte_bpe *bpe, presto__bpe_scratch *scratch,
                               uint32_t at, presto_error *err) {
    const symbol *symbols = (const symbol *)(const void *)scratch->symbols.data;
    if (at == NOWHERE || symbols[at].next == NOWHERE)
        return PRESTO_OK;
    const presto__bpe_pair *pair =
        presto__byte_bpe_pair(bpe, symbols[at].id, symbols[symbols[at].next].id);
    return pair == NULL ? PRESTO_OK
                        : push(&scratch->heap, (candidate){pair->rank, at, pair->joined}, err);
}

/* Bytes that are no tokens are the unknown token, or nothing. */
static presto_status make_symbols(const presto__byte_bpe *bpe, presto__bpe_scratch *scratch,
                                  presto_span word, presto_error *err) {
    presto_buffer *out = &scratch->symbols;
    uint32_t count = 0;
    bool was_unknown = false;
    out->bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(out, word.bytes * sizeof(symbol), err));
    symbol *symbols = (symbol *)(void *)out->data;
    for (size_t i = 0; i < word.bytes; i++) {
        int32_t id = bpe->byte_ids[word.data[i]];
        bool is_unknown = id < 0;
        if (is_unknown)
            id = bpe->unknown_id;
        if (id >= 0 && !(is_unknown && was_unknown && bpe->joins_unknown)) {
            symbols[count] = (symbol){id, count == 0 ? NOWHERE : count - 1, count + 1};
            count++;
        }
        was_unknown = is_unknown;
    }
    if (count > 0)
        symbols[count - 1].next = NOWHERE;
    out->bytes = count * sizeof(symbol);
    return PRESTO_OK;
}

/* Is the pair still the one that the candidate was made of? */
static bool is_current(const presto__byte_bpe *bpe, const symbol *symbols, candidate top) {
    const symbol *left = &symbols[top.at];
    if (left->id < 0 || left->next == NOWHERE)
        return false;
    const presto__bpe_pair *pair = presto__byte_bpe_pair(bpe, left->id, symbols[left->next].id);
    return pair != NULL && pair->joined == top.joined;
}

static presto_status join_long(const presto__byte_bpe *bpe, presto__bpe_scratch *scratch,
                               presto_error *err) {
    symbol *symbols = (symbol *)(void *)scratch->symbols.data;
    size_t count = scratch->symbols.bytes / sizeof *symbols;
    scratch->heap.bytes = 0;
    for (size_t i = 0; i < count; i++)
        PRESTO_TRY(push_pair(bpe, scratch, (uint32_t)i, err));
    while (scratch->heap.bytes > 0) {
        candidate top = pop(&scratch->heap);
        if (!is_current(bpe, symbols, top))
            continue;
        symbol *left = &symbols[top.at], *right = &symbols[left->next];
        left->id = top.joined;
        left->next = right->next;
        right->id = -1;
        if (left->next != NOWHERE)
            symbols[left->next].previous = top.at;
        PRESTO_TRY(push_pair(bpe, scratch, left->previous, err));
        PRESTO_TRY(push_pair(bpe, scratch, top.at, err));
    }
    return PRESTO_OK;
}

static presto_status encode_long(const presto__byte_bpe *bpe, presto__bpe_scratch *scratch,
                                 presto_span word, presto_buffer *ids, presto_error *err) {
    PRESTO_TRY(make_symbols(bpe, scratch, word, err));
    PRESTO_TRY(join_long(bpe, scratch, err));
    const symbol *symbols = (const symbol *)(const void *)scratch->symbols.data;
    size_t count = scratch->symbols.bytes / sizeof *symbols;
    for (size_t i = 0; i < count; i++)
        if (symbols[i].id >= 0)
            PRESTO_TRY(
                presto_buffer_append(ids, presto_span_of(&symbols[i].id, sizeof(int32_t)), err));
    return PRESTO_OK;
}

/* ---- any word ---- */

static presto_status encode_short(const presto__byte_bpe *bpe, presto__bpe_scratch *scratch,
                                  presto_span word, presto_buffer *ids, presto_error *err) {
    int32_t found[SHORT_BYTES];
    const presto__cached_word *known = presto__word_cache_find(&scratch->cache, word);
    if (known != NULL)
        return presto_buffer_append(ids, presto_span_of(known->ids, known->count * sizeof(int32_t)),
                                    err);
    size_t count = 1;
    found[0] = presto__byte_bpe_word(bpe, word);
    if (found[0] < 0) {
        for (size_t i = 0; i < word.bytes; i++)
            found[i] = bpe->byte_ids[word.data[i]];
        count = join_short(bpe, found, word.bytes);
    }
    presto__word_cache_keep(&scratch->cache, word, found, count);
    return presto_buffer_append(ids, presto_span_of(found, count * sizeof(int32_t)), err);
}

presto_status presto__byte_bpe_encode(const presto__byte_bpe *bpe, presto__bpe_scratch *scratch,
                                      presto_span word, presto_buffer *ids, presto_error *err) {
    if (word.bytes <= SHORT_BYTES && bpe->has_all_bytes)
        return encode_short(bpe, scratch, word, ids, err);
    int32_t id = presto__byte_bpe_word(bpe, word);
    if (id >= 0)
        return presto_buffer_append(ids, presto_span_of(&id, sizeof id), err);
    return encode_long(bpe, scratch, word, ids, err);
}
