/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts rows into batches, one part at a time and without gaps.
 *
 * A feature begins as an array with a slot per row, into which steps and copies write. If rows
 * cannot have one size (strings, a declared shape with unknown dims) or turn out to differ (another
 * shape, or no such feature), its values are appended to a tail, and `ends` says where each row
 * ends. assemble.c shows rows of one shape in the same way in both cases.
 */
#include "columns_internal.h"

/* Rows that were put without a sample. */
static void count_late_rows(presto__fill *fill) {
    for (size_t i = 0; i < fill->count; i++)
        if (fill->columns[i].kind == PRESTO__COLUMN_ARRAY)
            fill->columns[i].rows = fill->rows;
    fill->dense_is_late = false;
}

void *presto__fill_slot(const presto__place *place, const presto_feature *feature, size_t at) {
    presto__fill *fill = presto__place_fill(place);
    if (fill->dense_is_late)
        count_late_rows(fill);
    presto__column *column = presto__column_find(fill, feature->name, at);
    if (column == NULL || column->row.dtype != feature->tensor.spec.dtype ||
        column->kind == PRESTO__COLUMN_STRINGS)
        return NULL;
    if (column->kind == PRESTO__COLUMN_ARRAY)
        return presto_spec_equal(&column->row, &feature->tensor.spec)
                   ? column->array + column->rows * column->row_bytes
                   : NULL;
    presto__column_tail *values = presto__column_values(place->part, column);
    size_t bytes = presto_tensor_bytes(&feature->tensor);
    return presto__tail_reserve(values, bytes, NULL) == PRESTO_OK ? values->data + values->bytes
                                                                  : NULL;
}

presto_status presto__fail_dtype(const presto__column *column, presto_dtype dtype,
                                 presto_error *err) {
    return presto_fail(err, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
                       "feature \"%.100s\" is %s, but %s in samples before it of the same batch: "
                       "leave it out, or use batches of one sample",
                       column->name, presto_dtype_name(column->row.dtype),
                       presto_dtype_name(dtype));
}

/* What a sample is like. */
typedef struct likeness {
    bool
        is_alike; /* it has exactly the columns of the fill, its values are like the first ones, and
                      the guesses are right */
    size_t new_count; /* of its features that have a value, so many have no column */
} likeness;

/* A sample is refused before any of it is put. */
static presto_status check(const presto__place *place, const presto_sample *sample,
                           likeness *is_out, presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    const presto__rules *rules = place->batch->packet->rules;
    bool is_alike = fill->guess_count == sample->feature_count;
    size_t found = 0, new_count = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        const presto__column *column = presto__column_find(fill, feature->name, i);
        const presto__rule *rule =
            column != NULL ? column->rule : presto__rules_find(rules, feature->name);
        bool is_typed = column == NULL || column->row.dtype == feature->tensor.spec.dtype;
        PRESTO_TRY(presto__rule_check(is_typed ? rule : NULL, feature, err));
        if (!is_typed) {
            presto__column other = *column;
            other.row.dtype = feature->tensor.spec.dtype;
            return presto__fail_dtype(&other, column->row.dtype, err);
        }
        is_alike =
            is_alike && column != NULL && presto_spec_equal(&column->row, &feature->tensor.spec);
        new_count += column == NULL;
        found++;
    }
    *is_out = (likeness){is_alike && found == fill->count, new_count};
    return PRESTO_OK;
}

/* Copy it to its place in the batch's array, unless it is there already. */
static void put_dense(const presto__place *place, presto__column *column,
                      const presto_tensor *tensor) {
    size_t bytes = column->row_bytes;
    uint8_t *to = column->array + column->rows * bytes;
    if (to != tensor->data)
        presto__row_copy(place, to, tensor->data, bytes);
    place->part->delivered_bytes += bytes;
    column->rows++;
}

static presto_status put_strings(const presto__place *place, presto__column *column,
                                 const presto_tensor *tensor, presto_error *err) {
    presto__column_tail *values = presto__column_values(place->part, column);
    presto__column_tail *items = presto__column_items(place->part, column);
    uint64_t count = presto_spec_elements(&tensor->spec);
    for (uint64_t i = 0; i < count; i++) {
        PRESTO_TRY(
            presto__tail_append(values, tensor->strings[i].data, tensor->strings[i].bytes, err));
        int64_t end = (int64_t)(values->bytes - column->start);
        PRESTO_TRY(presto__tail_append(items, &end, sizeof end, err));
        place->part->delivered_bytes += tensor->strings[i].bytes;
    }
    column->ends[column->rows + 1] = column->ends[column->rows] + (int64_t)count;
    column->varies = column->varies || count != 1;
    return PRESTO_OK;
}

presto_status presto__column_put(const presto__place *place, presto__column *column,
                                 const presto_tensor *tensor, presto_error *err) {
    bool is_alike = presto_spec_equal(&column->row, &tensor->spec);
    if (column->kind == PRESTO__COLUMN_ARRAY && is_alike) {
        put_dense(place, column, tensor);
        return PRESTO_OK;
    }
    if (column->kind == PRESTO__COLUMN_ARRAY)
        PRESTO_TRY(presto__column_leave_array(place, column, err));
    if (tensor->spec.rank > 1 && column->shapes == NULL)
        PRESTO_TRY(presto__column_begin_shapes(place, column, err));
    if (column->kind == PRESTO__COLUMN_STRINGS) {
        PRESTO_TRY(put_strings(place, column, tensor, err));
    } else {
        size_t bytes = presto_tensor_bytes(tensor);
        PRESTO_TRY(presto__tail_append(presto__column_values(place->part, column), tensor->data,
                                       bytes, err));
        column->ends[column->rows + 1] =
            column->ends[column->rows] + (int64_t)presto_spec_elements(&tensor->spec);
        column->varies = column->varies || !is_alike;
        place->part->delivered_bytes += bytes;
    }
    presto__column_put_shape(column, &tensor->spec);
    column->rows++;
    return PRESTO_OK;
}

/* A row without the feature has no values of it. */
presto_status presto__column_put_nothing(const presto__place *place, presto__column *column,
                                         presto_error *err) {
    const presto_tensor_spec nothing = {.rank = 1};
    if (column->kind == PRESTO__COLUMN_ARRAY)
        PRESTO_TRY(presto__column_leave_array(place, column, err));
    column->ends[column->rows + 1] = column->ends[column->rows];
    presto__column_put_shape(column, &nothing);
    column->varies = true;
    column->rows++;
    return PRESTO_OK;
}

/* Put every value where the guess says. */
static presto_status put_alike(const presto__place *place, const presto_sample *sample,
                               presto_error *err) {
    const presto__fill *fill = presto__place_fill(place);
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        presto__column *column = &fill->columns[fill->guesses[i]];
        if (column->kind == PRESTO__COLUMN_ARRAY)
            put_dense(place, column, &feature->tensor);
        else
            PRESTO_TRY(presto__column_put(place, column, &feature->tensor, err));
    }
    return PRESTO_OK;
}

static presto_status put_any(const presto__place *place, const presto_sample *sample,
                             size_t new_count, presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    size_t found = 0;
    if (new_count > 0)
        PRESTO_TRY(presto__columns_add(place, sample, new_count, err));
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        presto__column *column = presto__column_find(fill, feature->name, i);
        PRESTO_TRY(presto__column_put(place, column, &feature->tensor, err));
        found++;
    }
    for (size_t i = 0; found < fill->count && i < fill->count; i++)
        if (fill->columns[i].rows == fill->rows)
            PRESTO_TRY(presto__column_put_nothing(place, &fill->columns[i], err));
    return PRESTO_OK;
}

presto_status presto__fill_put(const presto__place *place, const presto_sample *sample,
                               presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    likeness is = {0};
    if (fill->dense_is_late)
        count_late_rows(fill);
    PRESTO_TRY(check(place, sample, &is, err));
    PRESTO_TRY(is.is_alike ? put_alike(place, sample, err)
                           : put_any(place, sample, is.new_count, err));
    if (fill->rows++ == 0)
        place->part->model = fill;
    return PRESTO_OK;
}

uint64_t presto__sample_bytes(const presto_sample *sample) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        if (feature->tensor.spec.dtype != PRESTO_STRING) {
            bytes += presto_tensor_bytes(&feature->tensor);
            continue;
        }
        uint64_t count = presto_spec_elements(&feature->tensor.spec);
        for (uint64_t j = 0; j < count; j++)
            bytes += feature->tensor.strings[j].bytes;
    }
    return bytes;
}
