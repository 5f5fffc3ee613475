/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the values of a record into the columns of a batch without a sample between them. A lane
 * says what the column of a feature takes, so that a value is compared with a few numbers and
 * written once.
 *
 * All values are looked at before a row is put: what does not fit its column leaves no trace, and
 * goes the way of a sample (fill.c), which changes columns and finds words for errors.
 */
#include <presto/example.h>

#include "../../records/example/example_internal.h"
#include "../../records/records_internal.h"
#include "columns_internal.h"

typedef enum lane_kind {
    LANE_NONE, /* the feature has no column, or one that takes samples only */
    LANE_FLOATS,
    LANE_INT64S,
    LANE_TENSOR,      /* of the shape of the first row */
    LANE_TAIL,        /* values of any number, behind those of the rows before */
    LANE_TENSOR_TAIL, /* likewise, of any shape */
} lane_kind;

/** What the column of a feature takes. */
typedef struct presto__lane {
    lane_kind kind;
    presto_encoding encoding;
    uint32_t column;
    uint32_t tail_count;  /* tail: numbers of the value that is being put */
    presto_tensor tensor; /* tail of tensors: the value that is being put */
    uint8_t *array;       /* array: of the first row */
    size_t row_bytes;     /* array */
    size_t count;         /* array: numbers in a row */
    size_t most_length;   /* tail: of numbers, or of a single string */
} presto__lane;

/** A number of every record of one order, and where it goes. */
typedef struct presto__put {
    uint8_t *array;     /* of the first row */
    size_t value_bytes; /* where its value is in the list of the record */
} presto__put;

/* ---- lanes ---- */

static bool takes(presto_encoding encoding, const presto__column *column) {
    switch (encoding) {
    case PRESTO_ENCODE_FLOAT:
        return column->row.dtype == PRESTO_FLOAT32;
    case PRESTO_ENCODE_INT64:
        return column->row.dtype == PRESTO_INT64;
    case PRESTO_ENCODE_BYTES:
        return column->row.dtype == PRESTO_STRING;
    case PRESTO_ENCODE_TENSOR:
        return column->row.dtype != PRESTO_STRING;
    case PRESTO_ENCODE_NONE:
    default:
        return false;
    }
}

static presto__lane make_lane(const presto__fill *fill, const presto__column *column,
                              const presto__example_value *value) {
    presto__lane lane = {.encoding = value->encoding,
                         .column = (uint32_t)(column - fill->columns),
                         .most_length = SIZE_MAX};
    const presto__rule *rule = column->rule;
    bool is_tensor = value->encoding == PRESTO_ENCODE_TENSOR;
    if (!takes(value->encoding, column))
        return lane;
    lane.array = column->array;
    lane.row_bytes = column->row_bytes;
    if (is_tensor) {
        lane.kind = column->kind == PRESTO__COLUMN_ARRAY ? LANE_TENSOR : LANE_TENSOR_TAIL;
        return lane;
    }
    if (column->kind != PRESTO__COLUMN_ARRAY) {
        lane.kind = LANE_TAIL;
        if (rule != NULL && rule->is_padded && rule->pad_length > 0)
            lane.most_length = rule->pad_length;
        return lane;
    }
    /* The shape that a list of as many numbers gets. */
    lane.count = (size_t)presto_spec_elements(&column->row);
    if (column->row.rank != (lane.count == 1 && !value->is_vector ? 0 : 1))
        return lane;
    lane.kind = value->encoding == PRESTO_ENCODE_FLOAT ? LANE_FLOATS : LANE_INT64S;
    return lane;
}

/* Lanes for all features of the layout; those that are not in `values` get none. */
static presto_status make_lanes(const presto__place *place, const presto__example_values *values,
                                presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    if (fill->lane_capacity < values->feature_count) {
        size_t each = sizeof *fill->lanes + sizeof *fill->puts + 2 * sizeof *fill->tail_values;
        fill->lanes = presto__part_take(place->part, values->feature_count, each);
        if (fill->lanes == NULL)
            return presto_fail_memory(err, values->feature_count * each);
        fill->puts = (presto__put *)(void *)(fill->lanes + values->feature_count);
        fill->tail_values = (uint32_t *)(void *)(fill->puts + values->feature_count);
        fill->other_values = fill->tail_values + values->feature_count;
        fill->lane_capacity = values->feature_count;
    }
    for (size_t i = 0; i < values->feature_count; i++)
        fill->lanes[i] = (presto__lane){.kind = LANE_NONE};
    for (size_t i = 0; i < values->count; i++) {
        const presto__example_value *value = &values->list[i];
        const presto__column *column =
            presto__column_find(fill, presto__example_value_name(value), i);
        if (column != NULL)
            fill->lanes[value->feature] = make_lane(fill, column, value);
    }
    fill->lane_generation = values->generation;
    fill->put_order = fill->last_order = 0;
    fill->dense_count = 0;
    fill->dense_bytes = 0;
    for (size_t i = 0; i < fill->count; i++) {
        fill->dense_count += fill->columns[i].kind == PRESTO__COLUMN_ARRAY;
        fill->dense_bytes +=
            fill->columns[i].kind == PRESTO__COLUMN_ARRAY ? fill->columns[i].row_bytes : 0;
    }
    return PRESTO_OK;
}

/* Is it a value of a column with one number a row? */
static bool is_single(const presto__lane *lane, const presto__example_value *value,
                      lane_kind kind) {
    return lane->kind == kind && lane->encoding == value->encoding && lane->count == 1;
}

/* Records of one order have the same features at the same places: what must be done with each value
 * is found out once. */
static void make_puts(presto__fill *fill, const presto__example_values *values) {
    presto__put *put = fill->puts;
    uint32_t *other = fill->other_values;
    for (size_t i = 0; i < values->count; i++) {
        const presto__lane *lane = &fill->lanes[values->list[i].feature];
        if (is_single(lane, &values->list[i], LANE_FLOATS))
            *put++ = (presto__put){lane->array, i * sizeof *values->list};
        else if (!is_single(lane, &values->list[i], LANE_INT64S))
            *other++ = (uint32_t)i;
    }
    fill->put_floats = (size_t)(put - fill->puts);
    for (size_t i = 0; i < values->count; i++) {
        const presto__lane *lane = &fill->lanes[values->list[i].feature];
        if (is_single(lane, &values->list[i], LANE_INT64S))
            *put++ = (presto__put){lane->array, i * sizeof *values->list};
    }
    fill->put_int64s = (size_t)(put - fill->puts) - fill->put_floats;
    fill->put_others = (size_t)(other - fill->other_values);
    fill->put_order = values->order;
}

/* ---- looking ---- */

/* May the value be appended? int64s are decoded to where they will be. */
static presto_status look_at_tail(const presto__place *place, presto__lane *lane,
                                  const presto__example_value *value, presto_error *err) {
    size_t count = presto__example_value_count(value), bytes;
    size_t length = value->encoding == PRESTO_ENCODE_BYTES ? value->bytes.bytes : count;
    bool is_measured = value->encoding != PRESTO_ENCODE_BYTES || count == 1;
    if ((is_measured && length > lane->most_length) || count > UINT32_MAX ||
        !presto__size_multiply(count, sizeof(int64_t), &bytes))
        return PRESTO_END;
    lane->tail_count = (uint32_t)count;
    if (value->encoding != PRESTO_ENCODE_INT64)
        return PRESTO_OK;
    const presto__fill *fill = presto__place_fill(place);
    presto__column_tail *tail = presto__column_values(place->part, &fill->columns[lane->column]);
    PRESTO_TRY(presto__tail_reserve(tail, bytes, err));
    int64_t *to = (int64_t *)(void *)(tail->data + tail->bytes);
    return presto__example_value_int64s(value, count, to) ? PRESTO_OK : PRESTO_END;
}

/* Write floats into their row; false: there are not as many as in the rows before. */
static inline bool write_floats(const presto__lane *lane, size_t row, presto_span bytes) {
    uint8_t *to = lane->array + row * lane->row_bytes;
    if (bytes.bytes != lane->row_bytes)
        return false;
    if (bytes.bytes == 4)
        memcpy(to, bytes.data, 4); /* of known length: no call */
    else if (bytes.bytes > 0)
        memcpy(to, bytes.data, bytes.bytes);
    return true;
}

/* Write a tensor into its row; false: it is not like the rows before, or not of the usual form. */
static bool write_tensor(const presto__place *place, const presto__lane *lane, presto_span bytes) {
    const presto__fill *fill = presto__place_fill(place);
    presto_tensor tensor;
    if (!presto__tensor_proto_usual(bytes, &tensor) ||
        !presto_spec_equal(&fill->columns[lane->column].row, &tensor.spec))
        return false;
    presto__row_copy(place, lane->array + fill->rows * lane->row_bytes, tensor.data,
                     lane->row_bytes);
    return true;
}

/* May the tensor be appended? */
static bool look_at_tensor(const presto__fill *fill, presto__lane *lane, presto_span bytes) {
    const presto__column *column = &fill->columns[lane->column];
    presto_feature feature;
    feature.name = presto_span_of(column->name, column->name_bytes);
    feature.encoding = PRESTO_ENCODE_TENSOR;
    if (!presto__tensor_proto_usual(bytes, &feature.tensor) ||
        feature.tensor.spec.dtype != column->row.dtype ||
        presto__rule_check(column->rule, &feature, NULL) < 0)
        return false;
    lane->tensor = feature.tensor;
    return true;
}

/* What was found so far: numbers for arrays, values for tails, features with no value. */
typedef struct looks {
    size_t dense, tails, empty;
} looks;

/* Does its column take value i? Arrays are written meanwhile: a row that is not put is
 * overwritten. */
static inline __attribute__((always_inline)) presto_status look_at(
    const presto__place *place, const presto__example_values *values, size_t i, looks *found,
    presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    const presto__example_value *value = &values->list[i];
    presto__lane *lane = &fill->lanes[value->feature];
    lane_kind kind = lane->encoding == value->encoding ? lane->kind : LANE_NONE;
    if (kind == LANE_FLOATS) {
        if (!write_floats(lane, fill->rows, value->bytes))
            return PRESTO_END;
        found->dense++;
    } else if (kind == LANE_INT64S) {
        uint8_t *to = lane->array + fill->rows * lane->row_bytes;
        if (!presto__example_value_int64s(value, lane->count, (int64_t *)(void *)to))
            return PRESTO_END;
        found->dense++;
    } else if (kind == LANE_TENSOR) {
        if (!write_tensor(place, lane, value->bytes))
            return PRESTO_END;
        found->dense++;
    } else if (kind == LANE_TENSOR_TAIL) {
        if (!look_at_tensor(fill, lane, value->bytes))
            return PRESTO_END;
        fill->tail_values[found->tails++] = (uint32_t)i;
    } else if (kind == LANE_TAIL) {
        presto_status status = look_at_tail(place, lane, value, err);
        if (status != PRESTO_OK)
            return status;
        fill->tail_values[found->tails++] = (uint32_t)i;
    } else if (value->encoding == PRESTO_ENCODE_NONE) {
        found->empty++;
    } else {
        fill->lane_generation = 0; /* its lane may have been made for another kind of value */
        return PRESTO_END;
    }
    return PRESTO_OK;
}

static inline const presto__example_value *value_of(const presto__put *put, const uint8_t *list) {
    return (const presto__example_value *)(const void *)(list + put->value_bytes);
}

/* The numbers of a record of the order that `puts` are for. False: one is not a single number. */
static bool put_numbers(const presto__fill *fill, const presto__example_values *values) {
    const presto__put *put = fill->puts, *end = put + fill->put_floats;
    const uint8_t *list = (const uint8_t *)values->list;
    size_t row = fill->rows;
    for (; put != end; put++) {
        presto_span bytes = value_of(put, list)->bytes;
        if (bytes.bytes != sizeof(float))
            return false;
        memcpy(put->array + row * sizeof(float), bytes.data, sizeof(float));
    }
    for (end += fill->put_int64s; put != end; put++) {
        const presto__example_value *value = value_of(put, list);
        int64_t *to = (int64_t *)(void *)(put->array + row * sizeof *to);
        bool is_number = value->bytes.bytes - 1 < 8 ? presto__example_short_int64(value->bytes, to)
                                                    : presto__example_value_int64s(value, 1, to);
        if (!is_number)
            return false;
    }
    return true;
}

/*
 * Does every column take its value? *tails_out: how many values go to tails; which ones is in
 * tail_values.
 */
static presto_status look(const presto__place *place, const presto__example_values *values,
                          size_t *tails_out, presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    looks found = {0};
    presto_status status = PRESTO_OK;
    if (values->order != 0 && fill->last_order == values->order) {
        if (fill->put_order != values->order)
            make_puts(fill, values);
        if (!put_numbers(fill, values))
            return PRESTO_END;
        found.dense = fill->put_floats + fill->put_int64s;
        for (size_t i = 0; i < fill->put_others && status == PRESTO_OK; i++)
            status = look_at(place, values, fill->other_values[i], &found, err);
    } else {
        for (size_t i = 0; i < values->count && status == PRESTO_OK; i++)
            status = look_at(place, values, i, &found, err);
    }
    fill->last_order = values->order;
    if (status != PRESTO_OK)
        return status;
    *tails_out = found.tails;
    return found.dense == fill->dense_count ? PRESTO_OK : PRESTO_END;
}

/* ---- putting ---- */

static presto_status put_strings(const presto__place *place, presto__column *column,
                                 const presto__example_value *value, presto_error *err) {
    presto__column_tail *bytes = presto__column_values(place->part, column);
    presto__column_tail *items = presto__column_items(place->part, column);
    presto_span string;
    size_t at = 0, count = 0;
    while (presto__example_value_next(value, &at, &string)) {
        PRESTO_TRY(presto__tail_append(bytes, string.data, string.bytes, err));
        int64_t end = (int64_t)(bytes->bytes - column->start);
        PRESTO_TRY(presto__tail_append(items, &end, sizeof end, err));
        place->part->delivered_bytes += string.bytes;
        count++;
    }
    column->ends[column->rows + 1] = column->ends[column->rows] + (int64_t)count;
    column->varies = column->varies || count != 1;
    if (column->shapes != NULL) {
        const presto_tensor_spec spec = {.rank = count == 1 && !value->is_vector ? 0 : 1,
                                         .dims = {(int64_t)count}};
        presto__column_put_shape(column, &spec);
    }
    column->rows++;
    return PRESTO_OK;
}

static presto_status put_tails(const presto__place *place, const presto__example_values *values,
                               size_t tails, presto_error *err) {
    const presto__fill *fill = presto__place_fill(place);
    for (size_t i = 0; i < tails; i++) {
        const presto__example_value *value = &values->list[fill->tail_values[i]];
        const presto__lane *lane = &fill->lanes[value->feature];
        presto__column *column = &fill->columns[lane->column];
        if (column->kind == PRESTO__COLUMN_STRINGS) {
            PRESTO_TRY(put_strings(place, column, value, err));
            continue;
        }
        if (lane->kind == LANE_TENSOR_TAIL) {
            PRESTO_TRY(presto__column_put(place, column, &lane->tensor, err));
            continue;
        }
        const presto__column_tail *tail = presto__column_values(place->part, column);
        bool is_float = value->encoding == PRESTO_ENCODE_FLOAT;
        const presto_tensor tensor = {
            .spec = {.dtype = column->row.dtype,
                     .rank = lane->tail_count == 1 && !value->is_vector ? 0 : 1,
                     .dims = {(int64_t)lane->tail_count}},
            .data = is_float ? value->bytes.data : tail->data + tail->bytes};
        PRESTO_TRY(presto__column_put(place, column, &tensor, err));
    }
    return PRESTO_OK;
}

/* Close the row: arrays have it already, and tails whose feature is missing get nothing. The
 * columns of arrays count it later, if anybody asks. */
static presto_status finish_row(const presto__place *place, size_t tails, presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    bool lacks_tails = tails + fill->dense_count < fill->count;
    for (size_t i = 0; lacks_tails && i < fill->count; i++) {
        presto__column *column = &fill->columns[i];
        if (column->kind != PRESTO__COLUMN_ARRAY && column->rows == fill->rows)
            PRESTO_TRY(presto__column_put_nothing(place, column, err));
    }
    fill->dense_is_late = true;
    place->part->delivered_bytes += fill->dense_bytes;
    fill->rows++;
    return PRESTO_OK;
}

presto_status presto__fill_put_values(const presto__place *place,
                                      const presto__example_values *values, presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    if (!presto__fill_is_begun(fill) || fill->rows == 0)
        return PRESTO_END;
    if (fill->lane_generation != values->generation)
        PRESTO_TRY(make_lanes(place, values, err));
    size_t tails;
    presto_status status = look(place, values, &tails, err);
    if (status != PRESTO_OK)
        return status;
    if (tails > 0)
        PRESTO_TRY(put_tails(place, values, tails, err));
    return finish_row(place, tails, err);
}
