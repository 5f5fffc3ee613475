/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a byte-level BPE model. Hashes are keyed, so that no file can make them slow. */
#include "byte_bpe_internal.h"

#include <stdlib.h>

#include <presto/numbers.h>

#include "sentencepiece_internal.h"
#include "unicode_internal.h"

/* A power of two with room for twice as many. */
static size_t slots_for(size_t count) {
    size_t slots = 16;
    while (slots < count * 2)
        slots *= 2;
    return slots;
}

/* ---- tokens by text ---- */

int32_t presto__byte_bpe_id(const presto__byte_bpe *bpe, presto_span text) {
    for (size_t at = presto__hash(bpe->key, text) & bpe->token_mask;;
         at = (at + 1) & bpe->token_mask) {
        uint32_t slot = bpe->token_slots[at];
        if (slot == 0)
            return -1;
        if (presto_span_equal(bpe->tokens[slot - 1].text, text))
            return bpe->tokens[slot - 1].id;
    }
}

static int compare_ids(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static presto_status check_ids(const presto__byte_bpe *bpe, presto_error *err) {
    int32_t *ids = malloc((bpe->token_count + 1) * sizeof *ids);
    if (ids == NULL)
        return presto_fail_memory(err, bpe->token_count * sizeof *ids);
    for (size_t i = 0; i < bpe->token_count; i++)
        ids[i] = bpe->tokens[i].id;
    qsort(ids, bpe->token_count, sizeof *ids, compare_ids);
    presto_status status = PRESTO_OK;
    for (size_t i = 1; i < bpe->token_count && status >= 0; i++)
        if (ids[i] == ids[i - 1])
            status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                                 "two tokens of the model have the id %d", ids[i]);
    free(ids);
    return status;
}

/* GPT-2's characters for bytes: printable ones stand for themselves, the others for 256 and on. */
static void make_characters(uint32_t characters[256]) {
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; byte++) {
        bool is_shown = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
        characters[byte] = is_shown ? byte : next++;
    }
}

static void find_byte_ids(presto__byte_bpe *bpe) {
    uint32_t characters[256];
    make_characters(characters);
    bpe->has_all_bytes = true;
    for (size_t byte = 0; byte < 256; byte++) {
        uint32_t c = characters[byte];
        uint8_t text[2] = {(uint8_t)(0xc0 | c >> 6), (uint8_t)(0x80 | (c & 0x3f))};
        if (c < 0x80)
            text[0] = (uint8_t)c;
        bpe->byte_ids[byte] = presto__byte_bpe_id(bpe, presto_span_of(text, c < 0x80 ? 1 : 2));
        bpe->has_all_bytes = bpe->has_all_bytes && bpe->byte_ids[byte] >= 0;
    }
}

presto_status presto__byte_bpe_start(presto__byte_bpe *bpe, const presto__bpe_token *tokens,
                                     size_t token_count, size_t merge_count, presto_error *err) {
    *bpe = (presto__byte_bpe){.key = presto__hash_process_key(), .unknown_id = -1};
    if (token_count > PRESTO__MODEL_MAX_TOKENS || merge_count > PRESTO__BPE_MAX_MERGES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a model of %zu token%s and %zu merge%s, limits %d and %d", token_count,
                           presto_plural(token_count), merge_count, presto_plural(merge_count),
                           PRESTO__MODEL_MAX_TOKENS, PRESTO__BPE_MAX_MERGES);
    bpe->token_mask = slots_for(token_count) - 1;
    bpe->pair_mask = slots_for(merge_count) - 1;
    bpe->tokens = calloc(token_count + 1, sizeof *bpe->tokens);
    bpe->token_slots = calloc(bpe->token_mask + 1, sizeof *bpe->token_slots);
    bpe->pairs = malloc((bpe->pair_mask + 1) * sizeof *bpe->pairs);
    if (bpe->tokens == NULL || bpe->token_slots == NULL || bpe->pairs == NULL)
        return presto_fail_memory(err, bpe->pair_mask * sizeof *bpe->pairs);
    memset(bpe->pairs, 0xff, (bpe->pair_mask + 1) * sizeof *bpe->pairs);
    for (size_t i = 0; i < token_count; i++) {
        size_t at = presto__hash(bpe->key, tokens[i].text) & bpe->token_mask;
        while (bpe->token_slots[at] != 0)
            at = (at + 1) & bpe->token_mask;
        bpe->tokens[i] = tokens[i];
        bpe->token_slots[at] = (uint32_t)i + 1;
    }
    bpe->token_count = token_count;
    find_byte_ids(bpe);
    return check_ids(bpe, err);
}

/* ---- merges ---- */

static size_t pair_slot(const presto__byte_bpe *bpe, uint32_t left, uint32_t right) {
    uint64_t mixed = ((uint64_t)left << 32 | right) ^ bpe->key.words[0];
    mixed *= bpe->key.words[1] | 1;
    mixed ^= mixed >> 32;
    mixed *= UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(mixed >> 24) & bpe->pair_mask;
}

static presto__bpe_pair *find_pair(const presto__byte_bpe *bpe, uint32_t left, uint32_t right) {
    size_t at = pair_slot(bpe, left, right);
    while (bpe->pairs[at].left != UINT32_MAX &&
           (bpe->pairs[at].left != left || bpe->pairs[at].right != right))
        at = (at + 1) & bpe->pair_mask;
    return &bpe->pairs[at];
}

const presto__bpe_pair *presto__byte_bpe_pair(const presto__byte_bpe *bpe, int32_t left,
                                              int32_t right) {
    const presto__bpe_pair *pair = find_pair(bpe, (uint32_t)left, (uint32_t)right);
    return pair->left != UINT32_MAX ? pair : NULL;
}

static presto_status fail_merge(const presto__byte_bpe *bpe, presto_span text, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                       "merge %u of the model needs the token '%.*s', which it does not have",
                       bpe->next_rank, (int)(text.bytes < 100 ? text.bytes : 100),
                       (const char *)text.data);
}

presto_status presto__byte_bpe_merge(presto__byte_bpe *bpe, presto_span left, presto_span right,
                                     presto_error *err) {
    int32_t left_id = presto__byte_bpe_id(bpe, left);
    int32_t right_id = presto__byte_bpe_id(bpe, right);
    if (left_id < 0 || right_id < 0)
        return fail_merge(bpe, left_id < 0 ? left : right, err);
    bpe->word_bytes.bytes = 0; /* scratch until finish() */
    PRESTO_TRY(presto_buffer_append(&bpe->word_bytes, left, err));
    PRESTO_TRY(presto_buffer_append(&bpe->word_bytes, right, err));
    int32_t joined = presto__byte_bpe_id(bpe, presto_buffer_span(&bpe->word_bytes));
    if (joined < 0)
        return fail_merge(bpe, presto_buffer_span(&bpe->word_bytes), err);
    *find_pair(bpe, (uint32_t)left_id, (uint32_t)right_id) =
        (presto__bpe_pair){(uint32_t)left_id, (uint32_t)right_id, bpe->next_rank++, joined};
    return PRESTO_OK;
}

/* ---- words that are tokens ---- */

/* The bytes that a token's text stands for, behind those of the others. False: it has another
 * character. */
static bool append_bytes(const uint8_t bytes_of[512], presto_span text, presto_buffer *out) {
    const uint8_t *at = text.data, *end = at + text.bytes;
    size_t before = out->bytes;
    while (at < end) {
        uint32_t c = presto__utf8_next(at, &at);
        if (c >= 512 || (bytes_of[c] == 0 && c != 256)) {
            out->bytes = before;
            return false;
        }
        out->data[out->bytes++] = bytes_of[c];
    }
    return true;
}

static size_t word_slot(const presto__byte_bpe *bpe, presto_span word) {
    size_t at = presto__hash(bpe->key, word) & bpe->word_mask;
    while (bpe->words[at].bytes > 0 &&
           !presto_span_equal(
               presto_span_of(bpe->word_bytes.data + bpe->words[at].offset, bpe->words[at].bytes),
               word))
        at = (at + 1) & bpe->word_mask;
    return at;
}

int32_t presto__byte_bpe_word(const presto__byte_bpe *bpe, presto_span word) {
    if (bpe->words == NULL)
        return -1;
    const struct presto__bpe_word *found = &bpe->words[word_slot(bpe, word)];
    return found->bytes > 0 ? found->id : -1;
}

static presto_status make_words(presto__byte_bpe *bpe, presto_error *err) {
    uint32_t characters[256];
    uint8_t bytes_of[512] = {0};
    size_t all_bytes = 1;
    make_characters(characters);
    for (size_t byte = 0; byte < 256; byte++)
        bytes_of[characters[byte]] = (uint8_t)byte;
    for (size_t i = 0; i < bpe->token_count; i++)
        all_bytes += bpe->tokens[i].text.bytes;
    bpe->word_mask = slots_for(bpe->token_count) - 1;
    bpe->words = calloc(bpe->word_mask + 1, sizeof *bpe->words);
    bpe->word_bytes.bytes = 0;
    if (bpe->words == NULL)
        return presto_fail_memory(err, bpe->word_mask * sizeof *bpe->words);
    PRESTO_TRY(presto_buffer_reserve(&bpe->word_bytes, all_bytes, err));
    for (size_t i = 0; i < bpe->token_count; i++) {
        size_t offset = bpe->word_bytes.bytes;
        if (!append_bytes(bytes_of, bpe->tokens[i].text, &bpe->word_bytes))
            continue;
        presto_span word =
            presto_span_of(bpe->word_bytes.data + offset, bpe->word_bytes.bytes - offset);
        if (word.bytes > 0)
            bpe->words[word_slot(bpe, word)] = (struct presto__bpe_word){
                (uint32_t)offset, (uint32_t)word.bytes, bpe->tokens[i].id};
    }
    return PRESTO_OK;
}

presto_status presto__byte_bpe_finish(presto__byte_bpe *bpe, presto_error *err) {
    if (bpe->whole_words)
        PRESTO_TRY(make_words(bpe, err));
    free(bpe->tokens);
    free(bpe->token_slots);
    bpe->tokens = NULL;
    bpe->token_slots = NULL;
    return PRESTO_OK;
}

void presto__byte_bpe_done(presto__byte_bpe *bpe) {
    free(bpe->tokens);
    free(bpe->token_slots);
    free(bpe->pairs);
    free(bpe->words);
    presto_buffer_done(&bpe->word_bytes);
}
