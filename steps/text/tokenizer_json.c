/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json: what it asks for, as a presto__tokenizer. */
#include "tokenizer_internal.h"

#include <stdlib.h>

/* "KIND 'NAME' is not supported". */
static presto_status fail_kind(presto_error *err, const char *kind, const json_t *node) {
    const char *name = json_string_value(json_object_get(node, "type"));
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "tokenizer.json: the %s '%.60s' is not supported", kind,
                       name != NULL ? name : "?");
}

static bool is_kind(const json_t *node, const char *name) {
    const char *type = json_string_value(json_object_get(node, "type"));
    return type != NULL && strcmp(type, name) == 0;
}

static bool is_absent(const json_t *node) {
    return node == NULL || json_is_null(node);
}

static bool is_set(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return !is_absent(value) && !json_is_false(value);
}

/* ---- the model ---- */

static presto_status take_vocabulary(presto__tokenizer *t, const json_t *vocab, size_t merge_count,
                                     presto_error *err) {
    const char *text;
    size_t count = json_object_size(vocab), used = 0;
    json_t *id;
    presto__bpe_token *tokens = calloc(count + 1, sizeof *tokens);
    if (tokens == NULL)
        return presto_fail_memory(err, count * sizeof *tokens);
    presto_status status = PRESTO_OK;
    json_object_foreach((json_t *)vocab, text, id) {
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value >= INT32_MAX)
            status =
                presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                            "the id of the token '%.60s' is no number from 0 to 2147483646", text);
        tokens[used++] = (presto__bpe_token){presto_span_of_text(text), (int32_t)value};
    }
    if (status >= 0)
        status = presto__byte_bpe_start(&t->bpe, tokens, used, merge_count, err);
    free(tokens);
    return status;
}

/* "left right", or ["left", "right"]. */
static presto_status take_merge(presto__tokenizer *t, const json_t *merge, presto_error *err) {
    if (json_is_string(merge))
        return presto__merge_line(
            t, presto_span_of(json_string_value(merge), json_string_length(merge)), err);
    const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
    if (json_array_size(merge) != 2 || !json_is_string(left) || !json_is_string(right))
        return presto__json_fail(err, PRESTO_ERR_CORRUPT, "a merge is no pair of texts");
    return presto__byte_bpe_merge(
        &t->bpe, presto_span_of(json_string_value(left), json_string_length(left)),
        presto_span_of(json_string_value(right), json_string_length(right)), err);
}

/* What the words of other models need. */
static presto_status check_model(const json_t *model, presto_error *err) {
    static const char *const texts[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *dropout = json_object_get(model, "dropout");
    if (json_object_get(model, "type") != NULL && !is_kind(model, "BPE"))
        return fail_kind(err, "model", model);
    if (!is_absent(dropout) && json_number_value(dropout) != 0)
        return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED, "dropout is not supported");
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(model, texts[i]);
        if (!is_absent(value) && json_string_length(value) != 0)
            return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                               "tokenizer.json: %s is not supported", texts[i]);
    }
    if (!json_is_object(json_object_get(model, "vocab")) ||
        !json_is_array(json_object_get(model, "merges")))
        return presto__json_fail(err, PRESTO_ERR_CORRUPT, "the model has no vocab and merges");
    return PRESTO_OK;
}

static presto_status take_unknown(presto__tokenizer *t, const json_t *model, presto_error *err) {
    const json_t *unknown = json_object_get(model, "unk_token");
    t->bpe.joins_unknown = is_set(model, "fuse_unk");
    if (t->bpe.has_all_bytes)
        return PRESTO_OK;
    if (is_set(model, "byte_fallback"))
        return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED,
                                 "byte_fallback of a model without all bytes is not supported");
    if (is_absent(unknown))
        return PRESTO_OK;
    t->bpe.unknown_id =
        json_is_string(unknown)
            ? presto__byte_bpe_id(
                  &t->bpe, presto_span_of(json_string_value(unknown), json_string_length(unknown)))
            : -1;
    return t->bpe.unknown_id >= 0
               ? PRESTO_OK
               : presto__json_fail(err, PRESTO_ERR_CORRUPT, "unk_token is no token of the model");
}

static presto_status take_model(presto__tokenizer *t, const json_t *model, presto_error *err) {
    PRESTO_TRY(check_model(model, err));
    const json_t *merges = json_object_get(model, "merges");
    size_t i;
    json_t *merge;
    PRESTO_TRY(take_vocabulary(t, json_object_get(model, "vocab"), json_array_size(merges), err));
    PRESTO_TRY(take_unknown(t, model, err));
    json_array_foreach(merges, i, merge) {
        PRESTO_TRY(take_merge(t, merge, err));
    }
    t->bpe.whole_words = is_set(model, "ignore_merges");
    return PRESTO_OK;
}

presto_status presto__vocab_take(presto__tokenizer *t, const json_t *vocab,
                                 const presto__merges *merges, presto_error *err) {
    size_t lines = 1;
    for (size_t i = 0; i < merges->text.bytes; i++)
        lines += merges->text.data[i] == '\n';
    PRESTO_TRY(take_vocabulary(t, vocab, lines, err));
    return presto__merge_lines(t, merges, err);
}

/* ---- cutting into words ---- */

static presto_status new_split(presto__tokenizer *t, presto__text_split **split_out,
                               presto_error *err) {
    if (t->split_count == PRESTO__TOKENIZER_MAX_SPLITS)
        return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED, "more than 8 splits");
    *split_out = &t->splits[t->split_count++];
    **split_out = (presto__text_split){.cut = PRESTO__CUT_ISOLATES};
    return PRESTO_OK;
}

presto_status presto__byte_level_take(presto__tokenizer *t, bool adds_space, bool splits,
                                      presto_error *err) {
    static const char gpt2[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    presto__text_split *split = t->splits;
    if (adds_space) {
        PRESTO_TRY(new_split(t, &split, err));
        split->cut = PRESTO__CUT_ADDS_SPACE;
    }
    if (!splits)
        return PRESTO_OK;
    PRESTO_TRY(new_split(t, &split, err));
    return presto__pattern_compile(presto_span_of_text(gpt2), t->categories, &split->pattern, err);
}

static presto_status take_behavior(presto__text_split *split, const json_t *node,
                                   presto_error *err) {
    const char *behavior = json_string_value(json_object_get(node, "behavior"));
    if (behavior != NULL && strcmp(behavior, "Removed") == 0) {
        split->cut = is_set(node, "invert") ? PRESTO__CUT_KEEPS_MATCHES : PRESTO__CUT_KEEPS_GAPS;
        return PRESTO_OK;
    }
    if (behavior != NULL && strcmp(behavior, "Isolated") == 0)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "tokenizer.json: the behavior '%.60s' of Split is not supported",
                       behavior != NULL ? behavior : "?");
}

static presto_status take_split(presto__tokenizer *t, const json_t *node, presto_error *err) {
    presto__text_split *split = t->splits;
    const json_t *pattern = json_object_get(node, "pattern");
    const json_t *regex = json_object_get(pattern, "Regex");
    const json_t *text = regex != NULL ? regex : json_object_get(pattern, "String");
    if (!json_is_string(text))
        return presto__json_fail(err, PRESTO_ERR_CORRUPT, "a Split has no pattern");
    PRESTO_TRY(new_split(t, &split, err));
    PRESTO_TRY(take_behavior(split, node, err));
    presto_span source = presto_span_of(json_string_value(text), json_string_length(text));
    return regex != NULL ? presto__pattern_compile(source, t->categories, &split->pattern, err)
                         : presto__pattern_literal(source, t->categories, &split->pattern, err);
}

/* Rust's char::is_numeric is of a later Unicode: the last two ranges. */
static presto_status take_digits(presto__tokenizer *t, const json_t *node, presto_error *err) {
    static const char digit[] = "[\\p{N}\xf0\x91\xb7\xa0-\xf0\x91\xb7\xa9\xf0\x96\xbf\xb4-"
                                "\xf0\x96\xbf\xb6]+";
    presto__text_split *split = t->splits;
    size_t bytes = sizeof digit - (is_set(node, "individual_digits") ? 2 : 1);
    PRESTO_TRY(new_split(t, &split, err));
    return presto__pattern_compile(presto_span_of(digit, bytes), t->categories, &split->pattern,
                                   err);
}

/* *done_io: was ByteLevel there? What stands behind it would work on other characters. */
static presto_status take_pre_tokenizer(presto__tokenizer *t, const json_t *node, bool *done_io,
                                        presto_error *err) {
    if (*done_io)
        return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED,
                                 "a pre_tokenizer behind ByteLevel is not supported");
    if (is_kind(node, "ByteLevel")) {
        const json_t *splits = json_object_get(node, "use_regex");
        *done_io = true;
        return presto__byte_level_take(t, is_set(node, "add_prefix_space"),
                                       splits == NULL || json_is_true(splits), err);
    }
    if (is_kind(node, "Split"))
        return take_split(t, node, err);
    if (is_kind(node, "Digits"))
        return take_digits(t, node, err);
    return fail_kind(err, "pre_tokenizer", node);
}

static presto_status take_pre_tokenizers(presto__tokenizer *t, const json_t *node,
                                         presto_error *err) {
    bool is_done = false;
    size_t i;
    json_t *item;
    if (is_kind(node, "Sequence")) {
        const json_t *items = json_object_get(node, "pretokenizers");
        json_array_foreach(items, i, item) {
            PRESTO_TRY(take_pre_tokenizer(t, item, &is_done, err));
        }
    } else if (!is_absent(node)) {
        PRESTO_TRY(take_pre_tokenizer(t, node, &is_done, err));
    }
    return is_done ? PRESTO_OK
                   : presto__json_fail(err, PRESTO_ERR_UNSUPPORTED,
                                       "only byte-level BPE is supported: there is no "
                                       "pre_tokenizer ByteLevel");
}

/* ---- the whole ---- */

static presto_status take_form(presto__tokenizer *t, const json_t *node, presto_error *err) {
    static const char *const names[] = {[PRESTO__FORM_NFC] = "NFC",
                                        [PRESTO__FORM_NFD] = "NFD",
                                        [PRESTO__FORM_NFKC] = "NFKC",
                                        [PRESTO__FORM_NFKD] = "NFKD"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!is_kind(node, names[i]))
            continue;
        if (!presto__unicode_forms_built())
            return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED,
                                     "its normalizer needs libutf8proc, which this build lacks");
        if (t->normalizes)
            return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED,
                                     "several normalizers are not supported");
        t->normalizes = true;
        t->form = (presto__form)i;
        return PRESTO_OK;
    }
    return fail_kind(err, "normalizer", node);
}

static presto_status take_normalizers(presto__tokenizer *t, const json_t *node, presto_error *err) {
    const json_t *items = json_object_get(node, "normalizers");
    size_t i;
    json_t *item;
    if (is_absent(node))
        return PRESTO_OK;
    if (!is_kind(node, "Sequence") || !json_is_array(items))
        return take_form(t, node, err);
    json_array_foreach(items, i, item) {
        PRESTO_TRY(take_form(t, item, err));
    }
    return PRESTO_OK;
}

static presto_status check_rest(const json_t *json, presto_error *err) {
    const char *version = json_string_value(json_object_get(json, "version"));
    if (version != NULL && strcmp(version, "1.0") != 0)
        return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED, "its version is not 1.0");
    if (!is_absent(json_object_get(json, "truncation")))
        return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED, "truncation is not supported");
    if (!is_absent(json_object_get(json, "padding")))
        return presto__json_fail(err, PRESTO_ERR_UNSUPPORTED,
                                 "padding is not supported; batches are padded by --pad");
    return PRESTO_OK;
}

presto_status presto__tokenizer_take(presto__tokenizer *t, const json_t *json, presto_error *err) {
    PRESTO_TRY(check_rest(json, err));
    PRESTO_TRY(take_normalizers(t, json_object_get(json, "normalizer"), err));
    PRESTO_TRY(take_model(t, json_object_get(json, "model"), err));
    PRESTO_TRY(take_pre_tokenizers(t, json_object_get(json, "pre_tokenizer"), err));
    PRESTO_TRY(presto__added_take(t, json_object_get(json, "added_tokens"), err));
    return presto__special_take(t, json_object_get(json, "post_processor"), err);
}
