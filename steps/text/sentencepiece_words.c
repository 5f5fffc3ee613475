/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text to ids by its words. The library goes through a whole text for each id and makes a message
 * of strings; words repeat, and their ids are found in a cache. The ids are those of the whole text
 * where the check of the model says that words stand alone.
 */
#include <stdlib.h>
#include <string.h>

#include "byte_bpe_internal.h"
#include "sentencepiece_internal.h"

/* The library takes microseconds for a word: far longer than to fetch one from memory. */
#define CACHE_SLOTS ((size_t)1 << 16)

struct presto__sentencepiece_scratch {
    presto__word_cache cache;
};

presto__sentencepiece_scratch *presto__sentencepiece_scratch_new(void) {
    presto__sentencepiece_scratch *scratch = calloc(1, sizeof *scratch);
    if (scratch == NULL || presto__word_cache_init(&scratch->cache, CACHE_SLOTS))
        return scratch;
    free(scratch);
    return NULL;
}

void presto__sentencepiece_scratch_free(presto__sentencepiece_scratch *scratch) {
    if (scratch == NULL)
        return;
    presto__word_cache_done(&scratch->cache);
    free(scratch);
}

/* Ids behind the model's own are bytes of unknown characters. `first`: where the text's ids
 * begin. */
static void join_unknown(const presto__sentencepiece_info *info, size_t first, presto_buffer *ids) {
    int32_t *list = (int32_t *)(void *)(ids->data + first);
    size_t count = (ids->bytes - first) / sizeof *list, kept = 0;
    bool is_in_run = false;
    for (size_t i = 0; i < count; i++) {
        bool is_byte = (uint32_t)list[i] >= info->token_count;
        if (!is_byte)
            list[kept++] = list[i];
        else if (!is_in_run)
            list[kept++] = (int32_t)info->unknown_id;
        is_in_run = is_byte;
    }
    ids->bytes = first + kept * sizeof *list;
}

/* The library writes spaces as U+2581; a text that has one of its own is not cut. */
static bool has_mark(presto_span text) {
    const uint8_t *at = text.data, *end = text.data + text.bytes;
    while (at < end && (at = memchr(at, 0xe2, (size_t)(end - at))) != NULL) {
        if (end - at >= 3 && at[1] == 0x96 && at[2] == 0x81)
            return true;
        at++;
    }
    return false;
}

static presto_status encode_word(const presto__sentencepiece *model,
                                 presto__sentencepiece_scratch *scratch, presto_span word,
                                 presto_buffer *ids, presto_error *err) {
    const presto__cached_word *known = presto__word_cache_find(&scratch->cache, word);
    if (known != NULL)
        return presto_buffer_append(ids, presto_span_of(known->ids, known->count * sizeof(int32_t)),
                                    err);
    size_t first = ids->bytes;
    PRESTO_TRY(presto__sentencepiece_encode_raw(model, word, ids, err));
    presto__word_cache_keep(&scratch->cache, word, (const int32_t *)(void *)(ids->data + first),
                            (ids->bytes - first) / sizeof(int32_t));
    return PRESTO_OK;
}

static presto_status encode_words(const presto__sentencepiece *model,
                                  presto__sentencepiece_scratch *scratch, presto_span text,
                                  presto_buffer *ids, presto_error *err) {
    const uint8_t *at = text.data, *end = text.data + text.bytes;
    while (at < end) {
        const uint8_t *space = memchr(at, ' ', (size_t)(end - at));
        const uint8_t *behind = space == NULL ? end : space;
        if (behind > at)
            PRESTO_TRY(
                encode_word(model, scratch, presto_span_of(at, (size_t)(behind - at)), ids, err));
        at = behind + 1;
    }
    return PRESTO_OK;
}

presto_status presto__sentencepiece_encode(const presto__sentencepiece *model,
                                           presto__sentencepiece_scratch *scratch, presto_span text,
                                           presto_buffer *ids, presto_error *err) {
    const presto__sentencepiece_info *info = presto__sentencepiece_get_info(model);
    size_t first = ids->bytes;
    bool is_cut = scratch != NULL && info->words_stand_alone && !has_mark(text);
    PRESTO_TRY(is_cut ? encode_words(model, scratch, text, ids, err)
                      : presto__sentencepiece_encode_raw(model, text, ids, err));
    if (ids->bytes > first)
        join_unknown(info, first, ids);
    return PRESTO_OK;
}
