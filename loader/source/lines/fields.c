/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of records as features. */
#include "source_lines_internal.h"

#include <math.h>
#include <stdlib.h>

#include <presto/text.h>

#include "../table/source_tables_internal.h"

#define MOST_NUMBER_BYTES 64
#define SHOWN_BYTES 48

void presto__fields_done(presto__fields *fields) {
    for (size_t i = 0; i < fields->count; i++) {
        free(fields->items[i].name);
        free(fields->items[i].feature);
    }
    free(fields->items);
    presto__classes_done(&fields->classes);
    *fields = (presto__fields){0};
}

presto_status presto__check_utf8(presto_span text, presto_error *err) {
    const uint64_t highs = UINT64_C(0x8080808080808080);
    for (size_t at = 0; at < text.bytes;) {
        uint64_t word;
        if (text.bytes - at >= sizeof word) {
            memcpy(&word, text.data + at, sizeof word);
            if ((word & highs) == 0) {
                at += sizeof word;
                continue;
            }
        }
        size_t bytes = text.data[at] < 0x80
                           ? 1
                           : presto_utf8_bytes(presto_span_of(text.data + at, text.bytes - at));
        if (bytes == 0)
            return presto_fail(err, PRESTO_ERR_CORRUPT, at,
                               "no UTF-8: the byte is 0x%02x; save the file as UTF-8",
                               text.data[at]);
        at += bytes;
    }
    return PRESTO_OK;
}

/* ---- values ---- */

presto_status presto__field_copy_text(presto_span text, presto_arena *arena,
                                      presto_feature *feature_out, presto_error *err) {
    presto_span *value = presto_arena_alloc(arena, sizeof *value, _Alignof(presto_span));
    uint8_t *copy = presto_arena_alloc(arena, text.bytes > 0 ? text.bytes : 1, 1);
    if (value == NULL || copy == NULL)
        return presto_fail_memory(err, text.bytes);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    *value = presto_span_of(copy, text.bytes);
    *feature_out = (presto_feature){.encoding = PRESTO_ENCODE_BYTES,
                                    .tensor = {.spec = {.dtype = PRESTO_STRING}, .strings = value}};
    return PRESTO_OK;
}

presto_status presto__field_make_integer(int64_t value, presto_arena *arena,
                                         presto_feature *feature_out, presto_error *err) {
    int64_t *copy = presto_arena_alloc(arena, sizeof *copy, _Alignof(int64_t));
    if (copy == NULL)
        return presto_fail_memory(err, sizeof *copy);
    *copy = value;
    *feature_out = (presto_feature){.encoding = PRESTO_ENCODE_INT64,
                                    .tensor = {.spec = {.dtype = PRESTO_INT64}, .data = copy}};
    return PRESTO_OK;
}

presto_status presto__field_make_fraction(float value, presto_arena *arena,
                                          presto_feature *feature_out, presto_error *err) {
    float *copy = presto_arena_alloc(arena, sizeof *copy, _Alignof(float));
    if (copy == NULL)
        return presto_fail_memory(err, sizeof *copy);
    *copy = value;
    *feature_out = (presto_feature){.encoding = PRESTO_ENCODE_FLOAT,
                                    .tensor = {.spec = {.dtype = PRESTO_FLOAT32}, .data = copy}};
    return PRESTO_OK;
}

/* ---- texts as numbers ---- */

static presto_status fail_number(const presto__field *field, presto_span text, const char *needed,
                                 presto_error *err) {
    char shown[SHOWN_BYTES * 2];
    presto_text_show(presto_span_of(text.data, text.bytes < SHOWN_BYTES ? text.bytes : SHOWN_BYTES),
                     shown, sizeof shown);
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "'%.64s' is '%s', which is no %s",
                       field->name, shown, needed);
}

/* As Python's float() reads it: also inf and nan, in any case. */
static presto_status fraction_of(const presto__field *field, presto_span text, float *value_out,
                                 presto_error *err) {
    char copy[MOST_NUMBER_BYTES];
    if (text.bytes >= sizeof copy)
        return fail_number(field, text, "number", err);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = '\0';
    bool is_minus = copy[0] == '-';
    const char *word = copy + (copy[0] == '-' || copy[0] == '+');
    if (presto__csv_names_alike(word, "nan")) {
        *value_out = is_minus ? -NAN : NAN;
    } else if (presto__csv_names_alike(word, "inf") || presto__csv_names_alike(word, "infinity")) {
        *value_out = is_minus ? -INFINITY : INFINITY;
    } else if (strlen(copy) != text.bytes || !presto__text_is_number(presto__text_kind_of(copy))) {
        return fail_number(field, text, "number", err);
    } else if (!presto__text_fraction(copy, value_out)) {
        return fail_number(field, text, "number that fits float32", err);
    }
    return PRESTO_OK;
}

presto_status presto__field_of_text(const presto__field_text *from, presto_arena *arena,
                                    presto_feature *feature_out, presto_error *err) {
    const presto__classes *classes = &from->fields->classes;
    const presto__field *field = &from->fields->items[from->i];
    const presto_span text = from->text;
    int64_t integer;
    float fraction;
    switch (field->type) {
    case PRESTO__FIELD_INT64:
        if (!presto__take_integer(text, &integer))
            return fail_number(field, text, "whole number of int64", err);
        return presto__field_make_integer(integer, arena, feature_out, err);
    case PRESTO__FIELD_FLOAT32:
        PRESTO_TRY(fraction_of(field, text, &fraction, err));
        return presto__field_make_fraction(fraction, arena, feature_out, err);
    case PRESTO__FIELD_LABEL:
        if (classes->count > 0)
            PRESTO_TRY(presto__classes_number(classes, text, &integer, err));
        else if (!presto__take_integer(text, &integer))
            return fail_number(field, text, "whole number: source.classes gives numbers to names",
                               err);
        return presto__field_make_integer(integer, arena, feature_out, err);
    case PRESTO__FIELD_TEXT:
    case PRESTO__FIELD_JSON:
    case PRESTO__FIELD_INT64S:
    case PRESTO__FIELD_FLOAT32S:
    case PRESTO__FIELD_UNKNOWN:
        break;
    }
    return presto__field_copy_text(text, arena, feature_out, err);
}
