/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of JSON as features. jansson parses it, and what of it is asked for is copied.
 *
 * A key that stands twice in an object is an error, where Python takes the last one. NaN and Infinity are
 * read, as Python writes them. A whole number beyond int64 is an error only if it is asked for as int64.
 */
#include "source_lines_internal.h"

#include <math.h>
#include <stdlib.h>

#include <jansson.h>

#include "../../../base/json_limit_internal.h"
#include "../table/source_tables_internal.h"

/* Of the values of a line. */
#define MOST_ROW_WEIGHT ((size_t)1 << 20)
/* Whole numbers up to here are float64 without loss. */
#define MOST_EXACT 9007199254740992.0

/* ---- parsing ---- */

static presto_status fail_json(const json_error_t *why, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, why->position > 0 ? (uint64_t)why->position - 1 : 0,
                       "cannot be read as JSON: %s", why->text);
}

/* With NaN and Infinity as texts that are marked; NULL: it is no JSON in spite of that. */
static json_t *load_marked(presto_span text, size_t flags, presto_buffer *marked, presto_error *err,
                           presto_status *status_out) {
    json_error_t why;
    presto_span all = text;
    *status_out = presto__json_mark_odd_numbers(&all, marked, err);
    if (*status_out < 0 || all.data == text.data)
        return NULL;
    return json_loadb((const char *)all.data, all.bytes, flags, &why);
}

/* *is_inexact_out: whole numbers were read as fractions, since one is beyond int64. */
static presto_status load(presto_span text, json_t **json_out, bool *is_inexact_out,
                          presto_error *err) {
    size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_error_t why;
    presto_buffer marked = {0};
    presto_status status = PRESTO_OK;
    json_t *json = json_loadb((const char *)text.data, text.bytes, flags, &why);
    json_error_t first = why;
    *is_inexact_out = false;
    if (json == NULL && json_error_code(&why) == json_error_numeric_overflow) {
        flags |= JSON_DECODE_INT_AS_REAL;
        json = json_loadb((const char *)text.data, text.bytes, flags, &why);
        *is_inexact_out = true;
    }
    if (json == NULL && json_error_code(&why) == json_error_out_of_memory)
        return presto_fail_memory(err, text.bytes);
    if (json == NULL && json_error_code(&why) == json_error_invalid_syntax)
        json = load_marked(text, flags, &marked, err, &status);
    presto_buffer_done(&marked);
    if (status < 0)
        return status;
    if (json == NULL)
        return fail_json(&first, err);
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

static bool integer_of(const json_t *value, bool is_inexact, int64_t *number_out) {
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
    double most = is_inexact ? MOST_EXACT - 1 : MOST_EXACT;
    if (!(fabs(real) <= most) || real != trunc(real))
        return false;
    *number_out = (int64_t)real;
    return true;
}

static bool fraction_of(const json_t *value, float *number_out) {
    const char *odd = json_is_string(value) ? presto__json_odd_number(value) : NULL;
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
    if (json_is_string(value) && classes->count > 0) {
        PRESTO_TRY(presto__classes_number(
            classes, presto_span_of(json_string_value(value), json_string_length(value)), &number,
            err));
        return presto__field_make_integer(number, arena, feature_out, err);
    }
    if (value == NULL || !integer_of(value, false, &number))
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

static presto_status make_list(const presto__field *field, const json_t *value, bool is_inexact,
                               presto_arena *arena, presto_feature *feature_out,
                               presto_error *err) {
    bool is_whole = field->type == PRESTO__FIELD_INT64S;
    size_t count = json_array_size(value), each = is_whole ? sizeof(int64_t) : sizeof(float);
    uint8_t *values = presto_arena_alloc(arena, (count + 1) * each, _Alignof(max_align_t));
    if (values == NULL)
        return presto_fail_memory(err, count * each);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(value, i);
        int64_t integer = 0;
        float fraction = 0;
        if (is_whole ? !integer_of(item, is_inexact, &integer) : !fraction_of(item, &fraction))
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
                                  bool is_inexact, presto_arena *arena, presto_feature *feature_out,
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
        if (value == NULL || !integer_of(value, is_inexact, &integer))
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
        return make_list(field, value, is_inexact, arena, feature_out, err);
    case PRESTO__FIELD_UNKNOWN:
        break;
    }
    return PRESTO_OK;
}

presto_status presto__jsonl_row(const presto__row *row, presto_arena *arena,
                                presto_feature *features_out, size_t *count_out,
                                presto_error *err) {
    json_t *json;
    bool is_inexact;
    size_t count = 0;
    PRESTO_TRY(presto__json_check(row->bytes, UINT64_MAX, MOST_ROW_WEIGHT, err));
    PRESTO_TRY(load(row->bytes, &json, &is_inexact, err));
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < row->fields->count && status == PRESTO_OK; i++) {
        if (!row->selected[i])
            continue;
        const presto__field *field = &row->fields->items[i];
        const json_t *value = json_object_get(json, field->name);
        status = make_feature(row, i, value, is_inexact, arena, &features_out[count], err);
        features_out[count++].name = presto_span_of_text(field->feature);
    }
    json_decref(json);
    *count_out = count;
    return status;
}
