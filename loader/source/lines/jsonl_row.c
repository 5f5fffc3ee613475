/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of JSON as features. jansson parses it, and what of it is asked for is copied.
 *
 * A key that stands twice in an object is an error, where Python takes the last one. NaN and Infinity are
 * read, as Python writes them. A whole number beyond int64 is an error only if it is asked for as int64.
 *
 * jansson knows none of these numbers. They become texts that begin with a mark, and only if it has failed.
 */
#include "source_lines_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <jansson.h>

#include "../../../base/decimal_internal.h"
#include "../../../base/json_limit_internal.h"
#include "../table/source_tables_internal.h"

/* Of the values of a line. */
#define MOST_ROW_WEIGHT ((size_t)1 << 20)
/* Whole numbers up to here are float64 without loss. */
#define MOST_EXACT 9007199254740992.0
/* A whole number with fewer digits fits int64. */
#define LARGE_DIGITS 19
/* Around a marked number, as in presto__json_mark_odd_numbers. */
#define MARK_BEGIN "\"\\u0001"
#define MARK_END "\""

/* ---- parsing ---- */

/* The whole number at `at`; 0 bytes: there is none, or it has a fraction, or fits int64. */
static size_t large_integer_bytes(presto_span text, size_t at) {
    size_t end = at + (text.data[at] == '-');
    while (end < text.bytes && text.data[end] >= '0' && text.data[end] <= '9')
        end++;
    size_t bytes = end - at, digits = bytes - (text.data[at] == '-');
    if (digits < LARGE_DIGITS || (end < text.bytes && memchr(".eE", text.data[end], 3) != NULL))
        return 0;
    char copy[LARGE_DIGITS + 2];
    if (digits > LARGE_DIGITS)
        return bytes;
    memcpy(copy, text.data + at, bytes);
    copy[bytes] = '\0';
    errno = 0;
    (void)strtoll(copy, NULL, 10);
    return errno == ERANGE ? bytes : 0;
}

/* *text_io, with whole numbers beyond int64 as texts that are marked: in `copy`, which is empty. */
static presto_status mark_large_integers(presto_span *text_io, presto_buffer *copy,
                                         presto_error *err) {
    presto_span text = *text_io;
    size_t from = 0, bytes;
    bool is_quoted = false;
    for (size_t i = 0; i < text.bytes; i++) {
        uint8_t c = text.data[i];
        if (c == '"')
            is_quoted = !is_quoted;
        else if (is_quoted && c == '\\')
            i++;
        if (is_quoted || (c != '-' && (c < '0' || c > '9')))
            continue;
        if ((bytes = large_integer_bytes(text, i)) > 0) {
            PRESTO_TRY(presto_buffer_append(copy, presto_span_of(text.data + from, i - from), err));
            PRESTO_TRY(presto_buffer_append(copy, presto_span_of_text(MARK_BEGIN), err));
            PRESTO_TRY(presto_buffer_append(copy, presto_span_of(text.data + i, bytes), err));
            PRESTO_TRY(presto_buffer_append(copy, presto_span_of_text(MARK_END), err));
            from = i + bytes;
        }
        /* To the end of this number, large or not. */
        while (i + 1 < text.bytes && strchr("0123456789.eE+-", text.data[i + 1]) != NULL &&
               text.data[i + 1] != '\0')
            i++;
    }
    PRESTO_TRY(
        presto_buffer_append(copy, presto_span_of(text.data + from, text.bytes - from), err));
    *text_io = presto_buffer_span(copy);
    return PRESTO_OK;
}

/* Where the byte `position` of a marked text stood before. */
static uint64_t unmarked_position(presto_span text, size_t position) {
    static const char mark[] = MARK_BEGIN;
    const size_t bytes = sizeof mark - 1;
    uint64_t before = position;
    for (size_t i = 0; i + bytes <= position && i + bytes <= text.bytes; i++)
        if (memcmp(text.data + i, mark, bytes) == 0)
            before -= bytes + sizeof MARK_END - 1;
    return before;
}

static presto_status fail_json(const json_error_t *why, presto_span text, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT,
                       why->position > 0 ? unmarked_position(text, (size_t)why->position - 1) : 0,
                       "cannot be read as JSON: %s", why->text);
}

static presto_status load(presto_span text, json_t **json_out, presto_error *err) {
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_error_t why;
    presto_buffer odd = {0}, large = {0};
    presto_status status = PRESTO_OK;
    json_t *json = NULL;
    bool has_changed = true;
    while (status == PRESTO_OK && has_changed) {
        const uint8_t *before = text.data;
        json = json_loadb((const char *)text.data, text.bytes, flags, &why);
        if (json != NULL)
            break;
        if (json_error_code(&why) == json_error_out_of_memory)
            status = presto_fail_memory(err, text.bytes);
        else if (json_error_code(&why) == json_error_numeric_overflow && large.bytes == 0)
            status = mark_large_integers(&text, &large, err);
        else if (json_error_code(&why) == json_error_invalid_syntax && odd.bytes == 0)
            status = presto__json_mark_odd_numbers(&text, &odd, err);
        has_changed = text.data != before;
    }
    if (status == PRESTO_OK && json == NULL)
        status = fail_json(&why, text, err);
    presto_buffer_done(&odd);
    presto_buffer_done(&large);
    if (status < 0)
        return status;
    if (!json_is_object(json)) {
        json_decref(json);
        return presto_fail(err, PRESTO_ERR_CORRUPT, 0,
                           "is no JSON object: one a line is needed, not a list");
    }
    *json_out = json;
    return PRESTO_OK;
}

/* ---- values ---- */

static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return presto__json_odd_number(value) != NULL ? "a number" : "a text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "?";
}

static presto_status fail_type(const presto__field *field, const json_t *value, const char *needed,
                               presto_error *err) {
    if (value == NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "it has no field '%.64s'",
                           field->name);
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "'%.64s' is %s, not %s", field->name,
                       type_name(value), needed);
}

static bool integer_of(const json_t *value, int64_t *number_out) {
    if (json_is_true(value) || json_is_false(value)) {
        *number_out = json_is_true(value);
        return true;
    }
    if (json_is_integer(value)) {
        *number_out = json_integer_value(value);
        return true;
    }
    if (!json_is_real(value))
        return false;
    double real = json_real_value(value);
    if (!(fabs(real) <= MOST_EXACT) || real != trunc(real))
        return false;
    *number_out = (int64_t)real;
    return true;
}

static bool fraction_of(const json_t *value, float *number_out) {
    const char *odd = json_is_string(value) ? presto__json_odd_number(value) : NULL;
    if (odd != NULL && strpbrk(odd, "0123456789") != NULL) {
        *number_out = presto__decimal_parse_float(odd);
        return isfinite(*number_out);
    }
    if (odd != NULL) {
        *number_out = strcmp(odd, "NaN") == 0 ? NAN : *odd == '-' ? -INFINITY : INFINITY;
        return true;
    }
    if (json_is_integer(value))
        *number_out = (float)json_integer_value(value);
    else if (json_is_real(value))
        *number_out = (float)json_real_value(value);
    else
        return false;
    return isfinite(*number_out);
}

static presto_status make_label(const presto__fields *fields, const presto__field *field,
                                const json_t *value, presto_arena *arena,
                                presto_feature *feature_out, presto_error *err) {
    const presto__classes *classes = &fields->classes;
    int64_t number;
    if (json_is_string(value) && presto__json_odd_number(value) == NULL && classes->count > 0) {
        PRESTO_TRY(presto__classes_number(
            classes, presto_span_of(json_string_value(value), json_string_length(value)), &number,
            err));
        return presto__field_make_integer(number, arena, feature_out, err);
    }
    if (value == NULL || !integer_of(value, &number))
        return fail_type(field, value,
                         classes->count > 0
                             ? "a class of source.classes"
                             : "a whole number of int64; source.classes gives numbers to names",
                         err);
    if (classes->count > 0 && !classes->are_numeric)
        PRESTO_TRY(presto__classes_check_number(classes, number, err));
    if (classes->are_numeric) {
        char digits[24];
        snprintf(digits, sizeof digits, "%lld", (long long)number);
        PRESTO_TRY(presto__classes_number(classes, presto_span_of_text(digits), &number, err));
    }
    return presto__field_make_integer(number, arena, feature_out, err);
}

static presto_status make_json(const json_t *value, presto_arena *arena,
                               presto_feature *feature_out, presto_error *err) {
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (text == NULL)
        return presto_fail_memory(err, 0);
    presto__json_unmark_odd_numbers(text);
    presto_status status =
        presto__field_copy_text(presto_span_of_text(text), arena, feature_out, err);
    free(text);
    return status;
}

static presto_status make_list(const presto__field *field, const json_t *value, presto_arena *arena,
                               presto_feature *feature_out, presto_error *err) {
    bool is_whole = field->type == PRESTO__FIELD_INT64S;
    size_t count = json_array_size(value), each = is_whole ? sizeof(int64_t) : sizeof(float);
    uint8_t *values = presto_arena_alloc(arena, (count + 1) * each, _Alignof(max_align_t));
    if (values == NULL)
        return presto_fail_memory(err, count * each);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(value, i);
        int64_t integer = 0;
        float fraction = 0;
        if (is_whole ? !integer_of(item, &integer) : !fraction_of(item, &fraction))
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "value %zu of the list '%.64s' is %s that is no %s", i, field->name,
                               type_name(item), is_whole ? "int64" : "float32");
        if (is_whole)
            memcpy(values + i * each, &integer, each);
        else
            memcpy(values + i * each, &fraction, each);
    }
    *feature_out = (presto_feature){
        .encoding = is_whole ? PRESTO_ENCODE_INT64 : PRESTO_ENCODE_FLOAT,
        .tensor = {.spec = {is_whole ? PRESTO_INT64 : PRESTO_FLOAT32, 1, {(int64_t)count}},
                   .data = values}};
    return PRESTO_OK;
}

static presto_status make_feature(const presto__row *row, size_t i, const json_t *value,
                                  presto_arena *arena, presto_feature *feature_out,
                                  presto_error *err) {
    const presto__field *field = &row->fields->items[i];
    int64_t integer;
    float fraction;
    switch (field->type) {
    case PRESTO__FIELD_TEXT:
        if (value == NULL || !json_is_string(value) || presto__json_odd_number(value) != NULL)
            return fail_type(field, value,
                             i == 0 ? "a text"
                                    : "a text: source.features takes NAME:int64, NAME:float32, "
                                      "NAME:json",
                             err);
        return presto__field_copy_text(
            presto_span_of(json_string_value(value), json_string_length(value)), arena, feature_out,
            err);
    case PRESTO__FIELD_INT64:
        if (value == NULL || !integer_of(value, &integer))
            return fail_type(field, value, "a whole number that fits int64", err);
        return presto__field_make_integer(integer, arena, feature_out, err);
    case PRESTO__FIELD_FLOAT32:
        if (value == NULL || !fraction_of(value, &fraction))
            return fail_type(field, value, "a number that fits float32", err);
        return presto__field_make_fraction(fraction, arena, feature_out, err);
    case PRESTO__FIELD_LABEL:
        return make_label(row->fields, field, value, arena, feature_out, err);
    case PRESTO__FIELD_JSON:
        return value == NULL ? fail_type(field, value, "", err)
                             : make_json(value, arena, feature_out, err);
    case PRESTO__FIELD_INT64S:
    case PRESTO__FIELD_FLOAT32S:
        if (value == NULL || !json_is_array(value))
            return fail_type(field, value, "a list", err);
        return make_list(field, value, arena, feature_out, err);
    case PRESTO__FIELD_UNKNOWN:
        break;
    }
    return PRESTO_OK;
}

presto_status presto__jsonl_row(const presto__row *row, presto_arena *arena,
                                presto_feature *features_out, size_t *count_out,
                                presto_error *err) {
    json_t *json;
    size_t count = 0;
    PRESTO_TRY(presto__json_check(row->bytes, UINT64_MAX, MOST_ROW_WEIGHT, err));
    PRESTO_TRY(load(row->bytes, &json, err));
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < row->fields->count && status == PRESTO_OK; i++) {
        if (!row->selected[i])
            continue;
        const presto__field *field = &row->fields->items[i];
        const json_t *value = json_object_get(json, field->name);
        status = make_feature(row, i, value, arena, &features_out[count], err);
        features_out[count++].name = presto_span_of_text(field->feature);
    }
    json_decref(json);
    *count_out = count;
    return status;
}
