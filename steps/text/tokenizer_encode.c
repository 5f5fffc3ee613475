/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text to ids: added tokens are taken out, the rest is cut by each split in turn, and what the
 * last one leaves are the words.
 */
#include <stdlib.h>

#include "tokenizer_internal.h"

/* Steps of the patterns for each byte of a text, and for a text; real patterns need about ten. */
enum { STEPS_PER_BYTE = 1000, STEPS_PER_TEXT = 1000000 };
/* Of the same account, for a byte that is looked up in the added tokens: two binary searches. */
enum { STEPS_PER_LOOKUP = 16 };

struct presto__tokenizer_scratch {
    presto__bpe_scratch *bpe;
    presto_buffer repaired;
    bool with_special;
    presto_buffer spaced; /* the last one of the pieces that a space was put before */
    presto_buffer normalized, points;
};

typedef struct encoding {
    const presto__tokenizer *tokenizer;
    presto__tokenizer_scratch *scratch;
    presto_buffer *ids;
    uint64_t steps;
} encoding;

presto__tokenizer_scratch *presto__tokenizer_scratch_new(bool with_special) {
    presto__tokenizer_scratch *scratch = calloc(1, sizeof *scratch);
    if (scratch == NULL)
        return NULL;
    scratch->with_special = with_special;
    scratch->bpe = presto__bpe_scratch_new();
    if (scratch->bpe == NULL) {
        free(scratch);
        return NULL;
    }
    return scratch;
}

void presto__tokenizer_scratch_free(presto__tokenizer_scratch *scratch) {
    if (scratch == NULL)
        return;
    presto__bpe_scratch_free(scratch->bpe);
    presto_buffer_done(&scratch->repaired);
    presto_buffer_done(&scratch->spaced);
    presto_buffer_done(&scratch->normalized);
    presto_buffer_done(&scratch->points);
    free(scratch);
}

/* ---- words ---- */

static presto_status split(encoding *e, size_t level, presto_span text, presto_error *err);

/* A file has at most one split that does so: its memory is not wanted twice at a time. */
static presto_status split_spaced(encoding *e, size_t level, presto_span text, presto_error *err) {
    presto_buffer *spaced = &e->scratch->spaced;
    if (text.data[0] == ' ')
        return split(e, level + 1, text, err);
    spaced->bytes = 0;
    PRESTO_TRY(presto_buffer_append(spaced, presto_span_of(" ", 1), err));
    PRESTO_TRY(presto_buffer_append(spaced, text, err));
    return split(e, level + 1, presto_buffer_span(spaced), err);
}

static presto_status split(encoding *e, size_t level, presto_span text, presto_error *err) {
    if (text.bytes == 0)
        return PRESTO_OK;
    if (level == e->tokenizer->split_count)
        return presto__byte_bpe_encode(&e->tokenizer->bpe, e->scratch->bpe, text, e->ids, err);
    const presto__text_split *by = &e->tokenizer->splits[level];
    if (by->cut == PRESTO__CUT_ADDS_SPACE)
        return split_spaced(e, level, text, err);
    size_t at = 0;
    presto_span match;
    presto_status status;
    while ((status = presto__pattern_find(&by->pattern, text, at, &match, &e->steps)) ==
           PRESTO_OK) {
        size_t start = (size_t)(match.data - text.data);
        if (by->cut != PRESTO__CUT_KEEPS_MATCHES)
            PRESTO_TRY(split(e, level + 1, presto_span_of(text.data + at, start - at), err));
        if (by->cut != PRESTO__CUT_KEEPS_GAPS)
            PRESTO_TRY(split(e, level + 1, match, err));
        at = start + match.bytes;
    }
    if (status < 0)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "the pattern of the tokenizer takes too long for this text");
    if (by->cut == PRESTO__CUT_KEEPS_MATCHES)
        return PRESTO_OK;
    return split(e, level + 1, presto_span_of(text.data + at, text.bytes - at), err);
}

/* ---- added tokens ---- */

/* The range of tokens that go on with `byte` at `depth`, within [*low, *high). */
static void narrow(const presto__added_tokens *tokens, size_t depth, uint8_t byte, size_t *low,
                   size_t *high) {
    for (int side = 0; side < 2; side++) {
        size_t first = *low, last = *high;
        while (first < last) {
            size_t middle = first + (last - first) / 2;
            const presto_span *text = &tokens->items[middle].text;
            bool is_below = text->bytes <= depth || text->data[depth] < byte + side;
            if (is_below)
                first = middle + 1;
            else
                last = middle;
        }
        *(side == 0 ? low : high) = first;
    }
}

/* The longest token that text[at...] begins with, or NULL; also if *steps_io are used up. */
static const presto__added_token *longest(const presto__added_tokens *tokens, presto_span text,
                                          size_t at, uint64_t *steps_io) {
    const presto__added_token *found = NULL;
    size_t low = 0, high = tokens->count;
    for (size_t depth = 0; at + depth < text.bytes; depth++) {
        if (*steps_io < STEPS_PER_LOOKUP) {
            *steps_io = 0;
            return NULL;
        }
        *steps_io -= STEPS_PER_LOOKUP;
        narrow(tokens, depth, text.data[at + depth], &low, &high);
        if (low == high)
            break;
        if (tokens->items[low].text.bytes == depth + 1)
            found = &tokens->items[low];
    }
    return found;
}

/* The first of the longest added tokens in text[*at_io...]; NULL: there is none, or *steps_io are
 * used up. */
static const presto__added_token *find_added(const presto__added_tokens *tokens, presto_span text,
                                             size_t *at_io, uint64_t *steps_io) {
    for (size_t at = *at_io; at < text.bytes && tokens->count > 0; at++) {
        if (!tokens->starts_with[text.data[at]])
            continue;
        const presto__added_token *found = longest(tokens, text, at, steps_io);
        if (found != NULL) {
            *at_io = at;
            return found;
        }
        if (*steps_io == 0)
            return NULL;
    }
    return NULL;
}

/* Of the space before `end`, not before `least`, which need not lie before `end`. */
static size_t start_of_space(presto_span text, size_t least, size_t end) {
    const uint8_t *at = text.data + end, *next;
    while (at > text.data + least) {
        const uint8_t *previous = presto__utf8_previous(at);
        if (!presto__unicode_is_space(presto__utf8_next(previous, &next)))
            break;
        at = previous;
    }
    return (size_t)(at - text.data);
}

static size_t end_of_space(presto_span text, size_t start) {
    const uint8_t *at = text.data + start, *end = text.data + text.bytes, *next;
    while (at < end && presto__unicode_is_space(presto__utf8_next(at, &next)))
        at = next;
    return (size_t)(at - text.data);
}

static presto_status take_added(encoding *e, size_t round, presto_span text, presto_error *err);

/* What stands between the added tokens that are found first, in the normal form. */
static presto_status take_normalized(encoding *e, presto_span text, presto_error *err) {
    presto_buffer *normalized = &e->scratch->normalized;
    if (!e->tokenizer->normalizes)
        return take_added(e, 1, text, err);
    normalized->bytes = 0;
    PRESTO_TRY(
        presto__unicode_normalize(e->tokenizer->form, text, &e->scratch->points, normalized, err));
    return take_added(e, 1, presto_buffer_span(normalized), err);
}

static presto_status take_rest(encoding *e, size_t round, presto_span text, presto_error *err) {
    return round == 0 ? take_normalized(e, text, err) : take_added(e, round + 1, text, err);
}

/* Round 0 and 1: the two sets of added tokens; what they leave is split. */
static presto_status take_added(encoding *e, size_t round, presto_span text, presto_error *err) {
    const presto__added_tokens *tokens = &e->tokenizer->added[round < 2 ? round : 0];
    const presto__added_token *token;
    size_t done = 0, at = 0, space_end = 0;
    if (text.bytes == 0)
        return PRESTO_OK;
    if (round == 2)
        return split(e, 0, text, err);
    while ((token = find_added(tokens, text, &at, &e->steps)) != NULL) {
        size_t start = at, end = at + token->text.bytes;
        at = end; /* the search goes on there, whatever is stripped */
        if (token->strips_left)
            start = start_of_space(text, done, start);
        if (start < done)
            start = done;
        if (token->strips_right) { /* no byte of space is walked twice */
            space_end = end < space_end ? space_end : end_of_space(text, end);
            end = space_end;
        }
        PRESTO_TRY(take_rest(e, round, presto_span_of(text.data + done, start - done), err));
        PRESTO_TRY(presto_buffer_append(e->ids, presto_span_of(&token->id, sizeof token->id), err));
        done = end;
    }
    if (e->steps == 0)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "the added tokens of the tokenizer take too long for this text");
    return take_rest(e, round, presto_span_of(text.data + done, text.bytes - done), err);
}

presto_status presto__tokenizer_encode(const presto__tokenizer *tokenizer,
                                       presto__tokenizer_scratch *scratch, presto_span text,
                                       presto_buffer *ids, presto_error *err) {
    encoding e = {tokenizer, scratch, ids, STEPS_PER_TEXT + (uint64_t)text.bytes * STEPS_PER_BYTE};
    if (presto__utf8_valid_bytes(text) < text.bytes) {
        scratch->repaired.bytes = 0;
        PRESTO_TRY(presto__utf8_repair(text, &scratch->repaired, err));
        text = presto_buffer_span(&scratch->repaired);
    }
    if (scratch->with_special)
        PRESTO_TRY(presto_buffer_append(
            ids, presto_span_of(tokenizer->before, tokenizer->before_count * sizeof(int32_t)),
            err));
    PRESTO_TRY(take_added(&e, 0, text, err));
    if (!scratch->with_special)
        return PRESTO_OK;
    return presto_buffer_append(
        ids, presto_span_of(tokenizer->behind, tokenizer->behind_count * sizeof(int32_t)), err);
}
