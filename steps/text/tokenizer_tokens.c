/* SPDX-License-Identifier: Apache-2.0 */
/* Of a tokenizer.json: merges as lines, added tokens, and the tokens around a text. */
#include "tokenizer_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "../steps_internal.h"

presto_status presto__json_fail(presto_error *err, presto_status status, const char *what) {
    return presto_fail(err, status, PRESTO_NO_OFFSET, "tokenizer.json: %s", what);
}

/* ---- merges ---- */

presto_status presto__merge_line(presto__tokenizer *t, presto_span line, presto_error *err) {
    const uint8_t *space = line.bytes > 0 ? memchr(line.data, ' ', line.bytes) : NULL;
    size_t left = space != NULL ? (size_t)(space - line.data) : 0;
    if (space == NULL || memchr(space + 1, ' ', line.bytes - left - 1) != NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "merge %u of the model is not two tokens with a space between them",
                           t->bpe.next_rank);
    return presto__byte_bpe_merge(&t->bpe, presto_span_of(line.data, left),
                                  presto_span_of(space + 1, line.bytes - left - 1), err);
}

static bool is_version(presto_span line) {
    return line.bytes >= 8 && memcmp(line.data, "#version", 8) == 0;
}

presto_status presto__merge_lines(presto__tokenizer *t, const presto__merges *merges,
                                  presto_error *err) {
    char place[40];
    const uint8_t *at = merges->text.data, *end = at + merges->text.bytes;
    for (size_t number = 1; at < end; number++) {
        const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *next = stop != NULL ? stop + 1 : end;
        size_t bytes = (size_t)((stop != NULL ? stop : end) - at);
        if (bytes > 0 && at[bytes - 1] == '\r')
            bytes--;
        presto_span line = presto_span_of(at, bytes);
        presto_status status = is_version(line) ? PRESTO_OK : presto__merge_line(t, line, err);
        if (status < 0) {
            snprintf(place, sizeof place, "line %zu", number);
            presto__error_prefix(err, place);
            presto_error_set_file(err, merges->file);
            return status;
        }
        at = next;
    }
    return PRESTO_OK;
}

/* ---- added tokens ---- */

static int compare_tokens(const void *a, const void *b) {
    const presto_span *x = &((const presto__added_token *)a)->text;
    const presto_span *y = &((const presto__added_token *)b)->text;
    size_t least = x->bytes < y->bytes ? x->bytes : y->bytes;
    int order = memcmp(x->data, y->data, least);
    return order != 0 ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static presto_status sort_tokens(presto__added_tokens *tokens, presto_error *err) {
    if (tokens->count > 0)
        qsort(tokens->items, tokens->count, sizeof *tokens->items, compare_tokens);
    for (size_t i = 0; i < tokens->count; i++) {
        tokens->starts_with[tokens->items[i].text.data[0]] = true;
        if (i > 0 && presto_span_equal(tokens->items[i].text, tokens->items[i - 1].text))
            return presto__json_fail(err, PRESTO_ERR_CORRUPT, "an added token is there twice");
    }
    return PRESTO_OK;
}

/* The library numbers tokens that the model lacks by itself: a file with other ids means
 * something else there. */
static presto_status check_id(const presto__tokenizer *t, const presto__added_token *token,
                              int32_t *next_io, presto_error *err) {
    int32_t id = presto__byte_bpe_id(&t->bpe, token->text);
    if (id < 0)
        id = (*next_io)++;
    if (id == token->id)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "tokenizer.json: the added token '%.*s' has the id %d, but the library "
                       "tokenizers gives it %d",
                       (int)(token->text.bytes < 60 ? token->text.bytes : 60),
                       (const char *)token->text.data, token->id, id);
}

/* Text grows so many times at most: U+FDFA, 3 bytes, is 33 bytes in NFKC. */
enum { MOST_GROWTH = 11 };

/* Found in text that is in the normal form, it is looked for in that form. */
static presto_status normalize_token(presto__tokenizer *t, presto_span *text_io,
                                     presto_error *err) {
    presto_buffer points = {0};
    size_t at = t->added_texts.bytes; /* reserved: does not move */
    presto_status status =
        presto__unicode_normalize(t->form, *text_io, &points, &t->added_texts, err);
    *text_io = presto_span_of(t->added_texts.data + at, t->added_texts.bytes - at);
    presto_buffer_done(&points);
    return status;
}

static presto_status take_added(presto__tokenizer *t, const json_t *node, int32_t *next_io,
                                presto_error *err) {
    const json_t *text = json_object_get(node, "content"), *id = json_object_get(node, "id");
    if (!json_is_string(text) || !json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) >= INT32_MAX)
        return presto__json_fail(err, PRESTO_ERR_CORRUPT, "an added token has no content and id");
    if (json_string_length(text) == 0)
        return PRESTO_OK;
    if (json_is_true(json_object_get(node, "single_word")))
        return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED,
                                 "single_word of an added token is not supported");
    presto__added_token token = {
        .id = (int32_t)json_integer_value(id),
        .strips_left = json_is_true(json_object_get(node, "lstrip")),
        .strips_right = json_is_true(json_object_get(node, "rstrip")),
    };
    size_t at = t->added_texts.bytes; /* reserved: does not move */
    PRESTO_TRY(presto_buffer_append(
        &t->added_texts, presto_span_of(json_string_value(text), json_string_length(text)), err));
    token.text = presto_span_of(t->added_texts.data + at, t->added_texts.bytes - at);
    PRESTO_TRY(check_id(t, &token, next_io, err));
    bool is_normalized = json_is_true(json_object_get(node, "normalized"));
    if (is_normalized && t->normalizes)
        PRESTO_TRY(normalize_token(t, &token.text, err));
    presto__added_tokens *set = &t->added[is_normalized];
    set->items[set->count++] = token;
    return PRESTO_OK;
}

presto_status presto__added_take(presto__tokenizer *t, const json_t *list, presto_error *err) {
    size_t i, bytes = 1, count = json_array_size(list);
    json_t *node;
    int32_t next = (int32_t)t->bpe.token_count;
    if (count > PRESTO__TOKENIZER_MAX_ADDED)
        return presto__json_fail(err, PRESTO_ERR_LIMIT, "more than 65,536 added tokens");
    json_array_foreach(list, i, node) {
        bytes += json_string_length(json_object_get(node, "content"));
    }
    PRESTO_TRY(presto_buffer_reserve(&t->added_texts, bytes * (1 + MOST_GROWTH), err));
    for (i = 0; i < 2; i++) {
        t->added[i].items = calloc(count + 1, sizeof *t->added[i].items);
        if (t->added[i].items == NULL)
            return presto_fail_memory(err, count * sizeof *t->added[i].items);
    }
    json_array_foreach(list, i, node) {
        PRESTO_TRY(take_added(t, node, &next, err));
    }
    PRESTO_TRY(sort_tokens(&t->added[0], err));
    return sort_tokens(&t->added[1], err);
}

/* ---- tokens around a text ---- */

static presto_status put(int32_t *ids, size_t *count_io, const json_t *id, presto_error *err) {
    json_int_t value = json_integer_value(id);
    if (!json_is_integer(id) || value < 0 || value >= INT32_MAX)
        return presto__json_fail(err, PRESTO_ERR_CORRUPT, "the id of a special token is no id");
    if (*count_io == PRESTO__TOKENIZER_MAX_SPECIAL)
        return presto__json_fail(err, PRESTO_ERR_LIMIT, "more than 64 tokens around a text");
    ids[(*count_io)++] = (int32_t)value;
    return PRESTO_OK;
}

/* Put `added` ids, in order, before those that are there. */
static presto_status prepend(presto__tokenizer *t, const int32_t *added, size_t count,
                             presto_error *err) {
    if (t->before_count + count > PRESTO__TOKENIZER_MAX_SPECIAL)
        return presto__json_fail(err, PRESTO_ERR_LIMIT, "more than 64 tokens around a text");
    memmove(t->before + count, t->before, t->before_count * sizeof *added);
    memcpy(t->before, added, count * sizeof *added);
    t->before_count += count;
    return PRESTO_OK;
}

static presto_status put_special(const json_t *node, const json_t *piece, int32_t *ids,
                                 size_t *count_io, presto_error *err) {
    const char *name = json_string_value(json_object_get(piece, "id"));
    const json_t *special = json_object_get(node, "special_tokens");
    const json_t *list =
        name != NULL ? json_object_get(json_object_get(special, name), "ids") : NULL;
    size_t i;
    json_t *id;
    if (!json_is_array(list))
        return presto__json_fail(err, PRESTO_ERR_CORRUPT,
                                 "a special token of the template is not declared");
    json_array_foreach(list, i, id) {
        PRESTO_TRY(put(ids, count_io, id, err));
    }
    return PRESTO_OK;
}

/* {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, ...]} */
static presto_status take_template(presto__tokenizer *t, const json_t *node, presto_error *err) {
    const json_t *single = json_object_get(node, "single");
    int32_t before[PRESTO__TOKENIZER_MAX_SPECIAL];
    size_t i, before_count = 0, texts = 0;
    json_t *item;
    json_array_foreach(single, i, item) {
        const json_t *special = json_object_get(item, "SpecialToken");
        const char *name =
            json_string_value(json_object_get(json_object_get(item, "Sequence"), "id"));
        if (special != NULL && texts == 0)
            PRESTO_TRY(put_special(node, special, before, &before_count, err));
        else if (special != NULL)
            PRESTO_TRY(put_special(node, special, t->behind, &t->behind_count, err));
        else if (name == NULL || strcmp(name, "A") != 0 || texts++ > 0)
            return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED,
                                     "this template of TemplateProcessing is not supported");
    }
    if (texts != 1)
        return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED,
                                 "a template without the text is not supported");
    return prepend(t, before, before_count, err);
}

/* {"cls": ["<s>", 0], "sep": ["</s>", 2]} */
static presto_status take_ends(presto__tokenizer *t, const json_t *node, presto_error *err) {
    int32_t before[1];
    size_t count = 0;
    PRESTO_TRY(put(before, &count, json_array_get(json_object_get(node, "cls"), 1), err));
    PRESTO_TRY(prepend(t, before, count, err));
    return put(t->behind, &t->behind_count, json_array_get(json_object_get(node, "sep"), 1), err);
}

static presto_status take_processor(presto__tokenizer *t, const json_t *node, presto_error *err) {
    const char *type = json_string_value(json_object_get(node, "type"));
    if (type != NULL && strcmp(type, "ByteLevel") == 0)
        return PRESTO_OK; /* changes offsets only */
    if (type != NULL && strcmp(type, "TemplateProcessing") == 0)
        return take_template(t, node, err);
    if (type != NULL &&
        (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0))
        return take_ends(t, node, err);
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "tokenizer.json: the post_processor '%.60s' is not supported",
                       type != NULL ? type : "?");
}

presto_status presto__special_take(presto__tokenizer *t, const json_t *node, presto_error *err) {
    const char *type = json_string_value(json_object_get(node, "type"));
    size_t i;
    json_t *item;
    if (node == NULL || json_is_null(node))
        return PRESTO_OK;
    if (type == NULL || strcmp(type, "Sequence") != 0)
        return take_processor(t, node, err);
    json_array_foreach(json_object_get(node, "processors"), i, item) {
        PRESTO_TRY(take_processor(t, item, err));
    }
    return PRESTO_OK;
}
