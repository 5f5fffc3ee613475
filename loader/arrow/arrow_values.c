/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values at the end of a column's path. Numbers that stand side by side are shown where they are;
 * all others are gathered: bits become bytes, views and offsets become spans, indexes of a
 * dictionary become its values.
 */
#include <inttypes.h>

#include <presto/frame.h>

#include "../../base/decimal_internal.h"
#include "arrow_internal.h"

#define DECIMAL_ROOM 176 /* 78 digits, 76 zeros, sign, point, NUL */
#define INLINE_BYTES 12  /* a view of so many bytes has them in itself */
#define VIEW_BYTES 16

static presto_status fail_column(const presto__arrow_column *column, presto_status status,
                                 const char *what, presto_error *err) {
    if (column->row < 0)
        return presto_fail(err, status, PRESTO_NO_OFFSET, "column '%s': %s", column->name, what);
    return presto_fail(err, status, PRESTO_NO_OFFSET,
                       "column '%s', row %" PRId64 " of its batch: %s", column->name, column->row,
                       what);
}

static uint64_t load(const uint8_t *at, size_t bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes); /* of this machine's order, as all of the interface */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value >>= 64 - 8 * bytes;
#endif
    return value;
}

static int64_t load_signed(const uint8_t *at, size_t bytes) {
    unsigned shift = 64 - 8 * (unsigned)bytes;
    return (int64_t)(load(at, bytes) << shift) >> shift;
}

/* ---- bind ---- */

presto_status presto__arrow_array_check(const presto__arrow_column *column,
                                        const struct ArrowArray *array, int64_t buffers,
                                        presto_error *err) {
    int64_t end;
    if (array == NULL || array->release == NULL)
        return fail_column(column, PRESTO_ERR_CORRUPT, "an array is missing or released", err);
    if (array->length < 0 || array->offset < 0 ||
        __builtin_add_overflow(array->length, array->offset, &end) || end > INT64_MAX / VIEW_BYTES)
        return fail_column(column, PRESTO_ERR_CORRUPT, "the array's length or offset is impossible",
                           err);
    if (array->n_buffers != buffers || (buffers > 0 && array->buffers == NULL))
        return fail_column(column, PRESTO_ERR_CORRUPT,
                           "the array has not as many buffers as its type", err);
    if (array->null_count < -1 || array->null_count > array->length)
        return fail_column(column, PRESTO_ERR_CORRUPT, "more values are missing than the array has",
                           err);
    if (buffers > 0 && array->null_count > 0 && array->buffers[0] == NULL)
        return fail_column(column, PRESTO_ERR_CORRUPT,
                           "values are missing, but the array does not say which", err);
    return PRESTO_OK;
}

static presto_status check_data(const presto__arrow_column *column, const struct ArrowArray *array,
                                presto_error *err) {
    return array->length == 0 || array->buffers[1] != NULL
               ? PRESTO_OK
               : fail_column(column, PRESTO_ERR_CORRUPT, "the array has values, but no buffer",
                             err);
}

static presto_status bind_views(presto__arrow_column *column, const struct ArrowArray *array,
                                presto_error *err) {
    presto__arrow_values *values = &column->values;
    values->view_count = array->n_buffers - 3;
    values->view_buffers = array->buffers + 2;
    values->view_bytes = array->buffers[array->n_buffers - 1];
    return values->view_count == 0 || values->view_bytes != NULL
               ? PRESTO_OK
               : fail_column(column, PRESTO_ERR_CORRUPT,
                             "the array does not say how large its buffers are", err);
}

static presto_status bind_here(presto__arrow_column *column, const struct ArrowArray *array,
                               presto_error *err) {
    presto__arrow_values *values = &column->values;
    presto__arrow_reading reading = values->reading;
    bool has_offsets = reading == PRESTO__ARROW_BYTES || reading == PRESTO__ARROW_LARGE;
    int64_t buffers = has_offsets ? 3 : 2;
    if (reading == PRESTO__ARROW_ABSENT)
        buffers = 0;
    if (array == NULL)
        return fail_column(column, PRESTO_ERR_CORRUPT, "an array is missing", err);
    if (reading == PRESTO__ARROW_VIEW)
        buffers = array->n_buffers >= 3 ? array->n_buffers : 3;
    PRESTO_TRY(presto__arrow_array_check(column, array, buffers, err));
    values->length = array->length;
    values->offset = array->offset;
    if (reading == PRESTO__ARROW_ABSENT)
        return PRESTO_OK;
    PRESTO_TRY(check_data(column, array, err));
    values->validity = presto__arrow_validity(array);
    values->data = array->buffers[1];
    values->bytes = has_offsets ? array->buffers[2] : NULL;
    size_t width = reading == PRESTO__ARROW_BYTES ? 4 : 8;
    values->bytes_end =
        has_offsets && array->length > 0
            ? load_signed(values->data + (size_t)(array->offset + array->length) * width, width)
            : 0;
    return reading == PRESTO__ARROW_VIEW ? bind_views(column, array, err) : PRESTO_OK;
}

presto_status presto__arrow_values_bind(presto__arrow_column *column,
                                        const struct ArrowArray *array, presto_error *err) {
    presto__arrow_values *values = &column->values;
    values->index = values->index_validity = values->validity = NULL;
    if (values->index_bytes == 0)
        return bind_here(column, array, err);
    PRESTO_TRY(presto__arrow_array_check(column, array, 2, err));
    PRESTO_TRY(check_data(column, array, err));
    values->index = array->buffers[1];
    values->index_validity = presto__arrow_validity(array);
    return bind_here(column, array->dictionary, err);
}

/* ---- where a value is ---- */

/* The place of value `at` of the array among the values; *is_missing_out: it is none. */
static presto_status find(const presto__arrow_column *column, int64_t at, int64_t *place_out,
                          bool *is_missing_out, presto_error *err) {
    const presto__arrow_values *values = &column->values;
    *is_missing_out = false;
    *place_out = at;
    if (values->index_bytes != 0) {
        if (values->index_validity != NULL && !presto__arrow_bit(values->index_validity, at)) {
            *is_missing_out = true;
            return PRESTO_OK;
        }
        const uint8_t *index = values->index + (size_t)at * values->index_bytes;
        int64_t number = values->index_is_signed ? load_signed(index, values->index_bytes)
                                                 : (int64_t)load(index, values->index_bytes);
        if (number < 0 || number >= values->length)
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                               "column '%s', row %" PRId64 " of its batch: value %" PRId64
                               " of a dictionary that has %" PRId64,
                               column->name, column->row, number, values->length);
        *place_out = values->offset + number;
    }
    *is_missing_out =
        values->reading == PRESTO__ARROW_ABSENT ||
        (values->validity != NULL && !presto__arrow_bit(values->validity, *place_out));
    return PRESTO_OK;
}

static presto_status find_view(const presto__arrow_column *column, int64_t place,
                               presto_span *span_out, presto_error *err) {
    const presto__arrow_values *values = &column->values;
    const uint8_t *view = values->data + place * VIEW_BYTES;
    int64_t bytes = load_signed(view, 4);
    if (bytes >= 0 && bytes <= INLINE_BYTES) {
        *span_out = presto_span_of(view + 4, (size_t)bytes);
        return PRESTO_OK;
    }
    int64_t buffer = load_signed(view + 8, 4), start = load_signed(view + 12, 4);
    bool holds = bytes >= 0 && start >= 0 && buffer >= 0 && buffer < values->view_count;
    if (holds) {
        int64_t room = load_signed(values->view_bytes + 8 * buffer, 8);
        holds = start <= room && bytes <= room - start && values->view_buffers[buffer] != NULL;
    }
    if (!holds)
        return fail_column(column, PRESTO_ERR_CORRUPT, "a view lies beyond its buffer", err);
    *span_out =
        presto_span_of((const uint8_t *)values->view_buffers[buffer] + start, (size_t)bytes);
    return PRESTO_OK;
}

static presto_status find_bytes(const presto__arrow_column *column, int64_t place,
                                presto_span *span_out, presto_error *err) {
    const presto__arrow_values *values = &column->values;
    int64_t start, end;
    if (values->reading == PRESTO__ARROW_VIEW)
        return find_view(column, place, span_out, err);
    if (values->reading == PRESTO__ARROW_FIXED) {
        *span_out =
            presto_span_of(values->data + (size_t)place * values->item_bytes, values->item_bytes);
        return PRESTO_OK;
    }
    size_t width = values->reading == PRESTO__ARROW_BYTES ? 4 : 8;
    start = load_signed(values->data + (size_t)place * width, width);
    end = load_signed(values->data + ((size_t)place + 1) * width, width);
    if (start < 0 || end < start || end > values->bytes_end)
        return fail_column(column, PRESTO_ERR_CORRUPT,
                           "offsets of bytes go backwards, or lie behind the last one", err);
    if (end > start && values->bytes == NULL)
        return fail_column(column, PRESTO_ERR_CORRUPT, "there are offsets of bytes, but no bytes",
                           err);
    *span_out = end > start ? presto_span_of(values->bytes + start, (size_t)(end - start))
                            : (presto_span){0};
    return PRESTO_OK;
}

/* ---- decimals ---- */

/* Divide a number of eight words, the lowest first, by 10^9: the rest. */
static uint32_t divide(uint32_t words[8]) {
    uint64_t rest = 0;
    for (int i = 7; i >= 0; i--) {
        uint64_t part = rest << 32 | words[i];
        words[i] = (uint32_t)(part / 1000000000);
        rest = part % 1000000000;
    }
    return (uint32_t)rest;
}

/* The magnitude of a number of `bytes` bytes; true: it is negative. */
static bool take_magnitude(const uint8_t *at, size_t bytes, uint32_t words[8]) {
    size_t count = bytes / 4;
    for (size_t i = 0; i < count; i++)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        words[i] = (uint32_t)load(at + 4 * (count - 1 - i), 4);
#else
        words[i] = (uint32_t)load(at + 4 * i, 4);
#endif
    bool is_negative = words[count - 1] >> 31 != 0;
    uint64_t carry = 1;
    for (size_t i = 0; i < count && is_negative; i++) {
        carry += (uint32_t)~words[i];
        words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return is_negative;
}

/* The text of a decimal, without superfluous zeros before it: as many digits behind the point as the
 * scale says. Returns its bytes. */
static size_t format_decimal(const uint8_t *at, size_t bytes, int scale, char text[DECIMAL_ROOM]) {
    uint32_t words[8] = {0};
    char digits[96]; /* the lowest first */
    size_t count = 0, used = 0;
    bool is_negative = take_magnitude(at, bytes, words);
    for (int round = 0; round < 9; round++) {
        uint32_t nine = divide(words);
        for (int i = 0; i < 9; i++, nine /= 10)
            digits[count++] = (char)('0' + nine % 10);
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    size_t behind = scale > 0 ? (size_t)scale : 0;
    bool is_zero = count == 1 && digits[0] == '0';
    while (count <= behind && count < sizeof digits)
        digits[count++] = '0';
    if (is_negative)
        text[used++] = '-';
    while (count > 0) {
        if (count == behind)
            text[used++] = '.';
        text[used++] = digits[--count];
    }
    for (int i = scale; i < 0 && !is_zero; i++)
        text[used++] = '0';
    text[used] = '\0';
    return used;
}

/* ---- reading ---- */

static size_t stored_bytes(const presto__arrow_values *values) {
    return values->dtype == PRESTO_STRING ? sizeof(presto_span) : presto_dtype_bytes(values->dtype);
}

/* A value that is there, at `place`, into item `item` of what is gathered. */
static presto_status gather(presto__arrow_column *column, int64_t place, size_t item, uint8_t *to,
                            presto_error *err) {
    const presto__arrow_values *values = &column->values;
    const uint8_t *from = values->data + (size_t)place * values->item_bytes;
    char text[DECIMAL_ROOM];
    switch (values->reading) {
    case PRESTO__ARROW_NUMBER:
        memcpy(to, from, values->item_bytes);
        return PRESTO_OK;
    case PRESTO__ARROW_BIT:
        *to = presto__arrow_bit(values->data, place);
        return PRESTO_OK;
    case PRESTO__ARROW_WIDENED:
        memcpy(to, &(int64_t){load_signed(from, 4)}, 8);
        return PRESTO_OK;
    case PRESTO__ARROW_DECIMAL_FLOAT:
        (void)format_decimal(from, values->item_bytes, values->scale, text);
        memcpy(to, &(double){presto__decimal_parse(text, NULL)}, 8);
        return PRESTO_OK;
    case PRESTO__ARROW_DECIMAL_TEXT: {
        char *mine = (char *)column->texts.data + item * DECIMAL_ROOM;
        presto_span span =
            presto_span_of(mine, format_decimal(from, values->item_bytes, values->scale, mine));
        memcpy(to, &span, sizeof span);
        return PRESTO_OK;
    }
    case PRESTO__ARROW_BYTES:
    case PRESTO__ARROW_LARGE:
    case PRESTO__ARROW_VIEW:
    case PRESTO__ARROW_FIXED: {
        presto_span span;
        PRESTO_TRY(find_bytes(column, place, &span, err));
        memcpy(to, &span, sizeof span);
        return PRESTO_OK;
    }
    case PRESTO__ARROW_ABSENT:
        break;
    }
    return PRESTO_OK;
}

/* Of values [first, end): the first one that is missing, or `end`. */
static int64_t first_missing(const presto__arrow_values *values, int64_t first, int64_t end) {
    if (values->validity == NULL)
        return end;
    while (first < end && presto__arrow_bit(values->validity, first))
        first++;
    return first;
}

presto_status presto__arrow_values_read(presto__arrow_column *column, int64_t first, int64_t end,
                                        presto_tensor *tensor, presto_error *err) {
    const presto__arrow_values *values = &column->values;
    uint64_t count = (uint64_t)(end - first);
    size_t each = stored_bytes(values);
    column->missing = end;
    tensor->data = column->number;
    if (count == 0)
        return PRESTO_OK;
    if (values->reading == PRESTO__ARROW_NUMBER && values->index_bytes == 0) {
        tensor->data = values->data + (size_t)first * values->item_bytes;
        column->missing = first_missing(values, first, end);
        return PRESTO_OK;
    }
    if (count > PRESTO_FRAME_MAX_PAYLOAD_BYTES)
        return fail_column(column, PRESTO_ERR_LIMIT, "a row has more values than an Example holds",
                           err);
    column->list.bytes = column->texts.bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(&column->list, (size_t)count * each, err));
    if (values->reading == PRESTO__ARROW_DECIMAL_TEXT)
        PRESTO_TRY(presto_buffer_reserve(&column->texts, (size_t)count * DECIMAL_ROOM, err));
    tensor->data = column->list.data;
    for (int64_t at = first; at < end; at++) {
        int64_t place;
        bool is_missing;
        PRESTO_TRY(find(column, at, &place, &is_missing, err));
        if (is_missing) {
            column->missing = at;
            return PRESTO_OK;
        }
        size_t item = (size_t)(at - first);
        PRESTO_TRY(gather(column, place, item, column->list.data + item * each, err));
    }
    return PRESTO_OK;
}
