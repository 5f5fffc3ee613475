/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SentencePiece model before the library sees it. The model is one protobuf message (ModelProto
 * of sentencepiece_model.proto); only the fields that matter here are read:
 *
 *     ModelProto       1 pieces*  2 trainer_spec  3 normalizer_spec  4 self_test_data
 *                      5 denormalizer_spec
 *     SentencePiece    1 piece  3 type
 *     TrainerSpec      3 model_type  24 treat_whitespace_as_suffix  35 byte_fallback
 *     NormalizerSpec   2 precompiled_charsmap  3 add_dummy_prefix  4 remove_extra_whitespaces
 *                      5 escape_whitespaces
 *
 * The words of a text stand alone if no rule looks beyond a space. The normalizer makes one U+2581
 * of the spaces between two words, and puts one before the first word, as it does before a word by
 * itself. No key of its map has a space. Byte pairs are merged into tokens alone, and no token has
 * a U+2581 behind another character: so no pair of two words is merged, and those within a word are
 * merged in the same order. Models of other types add up the scores of a whole text.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../base/bytes_internal.h"
#include "sentencepiece_internal.h"

enum {
    PIECES = 1,
    TRAINER_SPEC = 2,
    NORMALIZER_SPEC = 3,
    SELF_TEST_DATA = 4,
    DENORMALIZER_SPEC = 5
};
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
enum { TYPE_UNIGRAM = 1, TYPE_BPE = 2 };
enum { PIECE_UNKNOWN = 2, PIECE_USER_DEFINED = 4, PIECE_LAST_TYPE = 6 };
/* PrefixMatcher::PrefixMatch keeps as many matches on its stack. */
enum { MAX_NESTED_SYMBOLS = 64 };

/* ---- fields of a message ---- */

typedef struct message {
    const uint8_t *start; /* of the file */
    const uint8_t *at;
    const uint8_t *end;
} message;

typedef struct field {
    uint32_t number;
    uint32_t type;
    uint64_t value;    /* of a varint */
    presto_span bytes; /* of WIRE_BYTES */
    const uint8_t *head;
} field;

static uint64_t offset_of(const message *m, const uint8_t *at) {
    return (uint64_t)(at - m->start);
}

static presto_status fail_cut(const message *m, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_TRUNCATED, offset_of(m, m->at),
                       "not a SentencePiece model, or one that is cut short");
}

static presto_status take_bytes(message *m, uint64_t bytes, field *out, presto_error *err) {
    if (bytes > (uint64_t)(m->end - m->at))
        return fail_cut(m, err);
    out->bytes = presto_span_of(m->at, (size_t)bytes);
    m->at += bytes;
    return PRESTO_OK;
}

/* PRESTO_END behind the last field. */
static presto_status next_field(message *m, field *out, presto_error *err) {
    uint64_t tag;
    if (m->at == m->end)
        return PRESTO_END;
    *out = (field){.head = m->at};
    if (!presto__varint_read(&m->at, m->end, &tag))
        return fail_cut(m, err);
    out->number = (uint32_t)(tag >> 3);
    out->type = (uint32_t)(tag & 7);
    if (tag > UINT32_MAX || out->number == 0)
        return presto_fail(err, PRESTO_ERR_CORRUPT, offset_of(m, out->head),
                           "not a SentencePiece model");
    switch (out->type) {
    case WIRE_VARINT:
        return presto__varint_read(&m->at, m->end, &out->value) ? PRESTO_OK : fail_cut(m, err);
    case WIRE_FIXED64:
        return take_bytes(m, 8, out, err);
    case WIRE_BYTES:
        if (!presto__varint_read(&m->at, m->end, &out->value))
            return fail_cut(m, err);
        return take_bytes(m, out->value, out, err);
    case WIRE_FIXED32:
        return take_bytes(m, 4, out, err);
    default:
        return presto_fail(err, PRESTO_ERR_CORRUPT, offset_of(m, out->head),
                           "not a SentencePiece model");
    }
}

static message inside(const message *m, const field *f) {
    return (message){m->start, f->bytes.data, f->bytes.data + f->bytes.bytes};
}

static bool is_message(const field *f, uint32_t number) {
    return f->number == number && f->type == WIRE_BYTES;
}

/* ---- tokens ---- */

typedef struct check {
    presto__sentencepiece_info info;
    bool has_unknown;
    presto_buffer symbols; /* presto_span of each user-defined symbol */
    uint64_t model_type;
    size_t longest, longest_symbol;  /* bytes of tokens, and of user-defined ones */
    bool has_suffixes;               /* white space is the end of a word */
    bool no_prefix, keeps_spaces;    /* of the normalizer */
    bool maps_spaces, joins_a_space; /* a key of the map, a token: beyond the end of a word */
} check;

static presto_status check_symbol(check *c, const message *m, presto_span text, presto_error *err) {
    if (memchr(text.data, 0, text.bytes) != NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT, offset_of(m, text.data),
                           "user-defined symbol %ju has a NUL", (uintmax_t)c->info.token_count);
    return presto_buffer_append(&c->symbols, presto_span_of(&text, sizeof text), err);
}

/* Is there a space in it, or a U+2581 behind another character? */
static bool is_beyond_word(presto_span text) {
    bool is_word = false;
    for (size_t i = 0; i < text.bytes; i++) {
        bool is_mark = text.bytes - i >= 3 && memcmp(text.data + i, "\xe2\x96\x81", 3) == 0;
        if (text.data[i] == ' ' || (is_mark && is_word))
            return true;
        is_word = is_word || !is_mark;
        i += is_mark ? 2 : 0;
    }
    return false;
}

static bool is_byte_name(presto_span text) {
    return text.bytes == 6 && memcmp(text.data, "<0x", 3) == 0 && text.data[5] == '>';
}

static presto_status check_piece(check *c, const message *m, const field *piece,
                                 presto_error *err) {
    message fields = inside(m, piece);
    field f;
    presto_status status;
    presto_span text = {0};
    uint64_t type = 1;
    if (c->info.token_count == PRESTO__MODEL_MAX_TOKENS)
        return presto_fail(err, PRESTO_ERR_LIMIT, offset_of(m, piece->head),
                           "a model of more than %d tokens", PRESTO__MODEL_MAX_TOKENS);
    while ((status = next_field(&fields, &f, err)) == PRESTO_OK) {
        if (is_message(&f, 1))
            text = f.bytes;
        else if (f.number == 3 && f.type == WIRE_VARINT && f.value >= 1 &&
                 f.value <= PIECE_LAST_TYPE)
            type = f.value;
    }
    PRESTO_TRY(status);
    if (text.bytes == 0)
        return presto_fail(err, PRESTO_ERR_CORRUPT, offset_of(m, piece->head),
                           "token %ju of the model is empty", (uintmax_t)c->info.token_count);
    if (text.bytes > PRESTO__SENTENCEPIECE_MAX_TOKEN_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, offset_of(m, piece->head),
                           "token %ju of the model has %zu bytes, limit %d",
                           (uintmax_t)c->info.token_count, text.bytes,
                           PRESTO__SENTENCEPIECE_MAX_TOKEN_BYTES);
    c->longest = text.bytes > c->longest ? text.bytes : c->longest;
    if (type == PIECE_USER_DEFINED) {
        PRESTO_TRY(check_symbol(c, m, text, err));
        c->longest_symbol = text.bytes > c->longest_symbol ? text.bytes : c->longest_symbol;
    }
    c->info.has_byte_names = c->info.has_byte_names || is_byte_name(text);
    c->joins_a_space = c->joins_a_space || is_beyond_word(text);
    if (type == PIECE_UNKNOWN) {
        c->has_unknown = true;
        c->info.unknown_id = c->info.token_count;
    }
    c->info.token_count++;
    return PRESTO_OK;
}

static int compare_texts(const void *a, const void *b) {
    const presto_span *x = a, *y = b;
    size_t least = x->bytes < y->bytes ? x->bytes : y->bytes;
    int order = memcmp(x->data, y->data, least);
    return order != 0 ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool begins_with(presto_span text, presto_span start) {
    return text.bytes >= start.bytes && memcmp(text.data, start.data, start.bytes) == 0;
}

/* In sorted order, the symbols that another one begins with stand before it, as on a stack. */
static presto_status check_nesting(check *c, presto_error *err) {
    presto_span open[MAX_NESTED_SYMBOLS];
    size_t depth = 0;
    presto_span *symbols = (presto_span *)(void *)c->symbols.data;
    size_t count = c->symbols.bytes / sizeof *symbols;
    if (count > 0)
        qsort(symbols, count, sizeof *symbols, compare_texts);
    for (size_t i = 0; i < count; i++) {
        while (depth > 0 && !begins_with(symbols[i], open[depth - 1]))
            depth--;
        if (depth == MAX_NESTED_SYMBOLS)
            return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                               "more than %d user-defined symbols begin alike", MAX_NESTED_SYMBOLS);
        open[depth++] = symbols[i];
    }
    return PRESTO_OK;
}

/* ---- the model ---- */

static presto_status check_trainer(check *c, const message *m, const field *spec,
                                   presto_error *err) {
    message fields = inside(m, spec);
    field f;
    presto_status status;
    while ((status = next_field(&fields, &f, err)) == PRESTO_OK) {
        if (f.type != WIRE_VARINT)
            continue;
        if (f.number == 3)
            c->model_type = f.value;
        else if (f.number == 24)
            c->has_suffixes = f.value != 0;
        else if (f.number == 35)
            c->info.has_byte_pieces = f.value != 0;
    }
    return status < 0 ? status : PRESTO_OK;
}

static presto_status check_normalizer(check *c, const message *m, const field *spec,
                                      presto_error *err) {
    message fields = inside(m, spec);
    field f;
    presto_status status;
    while ((status = next_field(&fields, &f, err)) == PRESTO_OK) {
        bool maps_spaces = false;
        uint32_t growth = 1;
        if (is_message(&f, 2))
            PRESTO_TRY(presto__charsmap_check(f.bytes, offset_of(m, f.bytes.data), &maps_spaces,
                                              &growth, err));
        c->info.growth = growth > c->info.growth ? growth : c->info.growth;
        c->maps_spaces = c->maps_spaces || maps_spaces;
        if (f.number == 3 && f.type == WIRE_VARINT)
            c->no_prefix = c->no_prefix || f.value == 0;
        else if ((f.number == 4 || f.number == 5) && f.type == WIRE_VARINT)
            c->keeps_spaces = c->keeps_spaces || f.value == 0;
    }
    return status < 0 ? status : PRESTO_OK;
}

static bool do_words_stand_alone(const check *c) {
    bool joins_unknown = !c->info.has_byte_pieces && c->info.has_byte_names;
    return c->model_type == TYPE_BPE && !c->has_suffixes && !c->no_prefix && !c->keeps_spaces &&
           !c->maps_spaces && !c->joins_a_space && !joins_unknown;
}

static presto_status check_fields(check *c, message *m, presto_error *err) {
    field f;
    presto_status status;
    while ((status = next_field(m, &f, err)) == PRESTO_OK) {
        if (is_message(&f, PIECES))
            PRESTO_TRY(check_piece(c, m, &f, err));
        else if (is_message(&f, TRAINER_SPEC))
            PRESTO_TRY(check_trainer(c, m, &f, err));
        else if (is_message(&f, NORMALIZER_SPEC) || is_message(&f, DENORMALIZER_SPEC))
            PRESTO_TRY(check_normalizer(c, m, &f, err));
    }
    PRESTO_TRY(status);
    if (c->info.token_count == 0)
        return presto_fail(err, PRESTO_ERR_CORRUPT, 0,
                           "not a SentencePiece model: it has no tokens");
    if (!c->has_unknown)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the model has no token for unknown characters");
    return check_nesting(c, err);
}

presto_status presto__sentencepiece_check(presto_span model, presto__sentencepiece_info *info_out,
                                          presto_error *err) {
    check c = {.model_type = TYPE_UNIGRAM, .info = {.growth = 1}};
    message m = {model.data, model.data, model.data + model.bytes};
    presto_status status = check_fields(&c, &m, err);
    presto_buffer_done(&c.symbols);
    c.info.words_stand_alone = do_words_stand_alone(&c);
    c.info.most_compared = (uint32_t)(c.model_type == TYPE_UNIGRAM ? c.longest : c.longest_symbol);
    if (status >= 0)
        *info_out = c.info;
    return status;
}

/* A token "<0x41>" of the type BYTE (6), as a field of ModelProto. */
static presto_status append_byte_piece(unsigned byte, presto_buffer *out, presto_error *err) {
    char piece[16];
    int bytes = snprintf(piece, sizeof piece, "\n\n\n\006<0x%02X>", byte);
    PRESTO_TRY(presto_buffer_append(out, presto_span_of(piece, (size_t)bytes), err));
    return presto_buffer_append(out, presto_span_of("\030\006", 2), err);
}

static presto_status append_bytes(presto_buffer *out, presto_error *err) {
    static const uint8_t byte_fallback[] = {0x12, 3, 0x98, 0x02, 1}; /* trainer_spec */
    for (unsigned byte = 0; byte < 256; byte++)
        PRESTO_TRY(append_byte_piece(byte, out, err));
    return presto_buffer_append(out, presto_span_of(byte_fallback, sizeof byte_fallback), err);
}

presto_status presto__sentencepiece_rewrite(presto_span model, bool add_bytes, presto_buffer *out,
                                            presto_error *err) {
    message m = {model.data, model.data, model.data + model.bytes};
    field f;
    presto_status status;
    while ((status = next_field(&m, &f, err)) == PRESTO_OK)
        if (!is_message(&f, SELF_TEST_DATA))
            PRESTO_TRY(
                presto_buffer_append(out, presto_span_of(f.head, (size_t)(m.at - f.head)), err));
    PRESTO_TRY(status);
    return add_bytes ? append_bytes(out, err) : PRESTO_OK;
}
