/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of rows: made for the first row of a fill, mostly like those of the fill before, and
 * found by name. A column turns from an array with a slot per row into a tail if rows are not
 * alike.
 */
#include <stdlib.h>

#include "columns_internal.h"

/* ---- by name ---- */

int presto__column_compare(const void *a, const void *b) {
    const presto__column *left = a, *right = b;
    return presto__compare_names(presto_span_of(left->name, left->name_bytes),
                                 presto_span_of(right->name, right->name_bytes));
}

/* The names are sorted. */
static size_t search(const presto__fill *fill, presto_span name) {
    size_t low = 0, high = fill->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const presto__column *column = &fill->columns[middle];
        int order = presto__compare_names(presto_span_of(column->name, column->name_bytes), name);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

presto__column *presto__column_find(presto__fill *fill, presto_span name, size_t at) {
    bool is_guessed = at < fill->guess_count;
    if (is_guessed && presto__column_is(&fill->columns[fill->guesses[at]], name))
        return &fill->columns[fill->guesses[at]];
    size_t found = search(fill, name);
    if (found == SIZE_MAX)
        return NULL;
    if (is_guessed)
        fill->guesses[at] = (uint32_t)found;
    return &fill->columns[found];
}

/* ---- tails ---- */

static presto_status take_slot(presto__packet_part *part, size_t *slot_out, presto_error *err) {
    if (part->slot_count == part->slot_capacity) {
        size_t capacity = part->slot_capacity * 2 + 2;
        presto__column_tail *tails = realloc(part->tails, 2 * capacity * sizeof *tails);
        if (tails == NULL)
            return presto_fail_memory(err, 2 * capacity * sizeof *tails);
        memset(tails + 2 * part->slot_capacity, 0,
               2 * (capacity - part->slot_capacity) * sizeof *tails);
        part->tails = tails;
        part->slot_capacity = capacity;
    }
    *slot_out = part->slot_count++;
    return PRESTO_OK;
}

static size_t most_rows(const presto__place *place) {
    return place->batch->packet->part_count > 1 ? place->part->count : place->batch->positions;
}

static presto_status begin_items(const presto__place *place, presto__column *column,
                                 presto_error *err) {
    static const int64_t zero = 0;
    presto__column_tail *items = presto__column_items(place->part, column);
    column->item_start = items->bytes;
    return presto__tail_append(items, &zero, sizeof zero, err);
}

/* Begin to append the column's values to a tail. */
static presto_status begin_tail(const presto__place *place, presto__column *column,
                                presto_error *err) {
    if (column->slot == SIZE_MAX)
        PRESTO_TRY(take_slot(place->part, &column->slot, err));
    presto__column_tail *values = presto__column_values(place->part, column);
    size_t padding = -values->bytes & (PRESTO__BATCH_ALIGN - 1);
    PRESTO_TRY(presto__tail_reserve(values, padding + PRESTO__BATCH_ALIGN, err)); /* never NULL */
    values->bytes += padding;
    column->start = values->bytes;
    if (column->kind == PRESTO__COLUMN_STRINGS)
        PRESTO_TRY(begin_items(place, column, err));
    size_t rows = most_rows(place);
    column->ends = presto__part_take(place->part, rows + 1, sizeof *column->ends);
    if (column->ends == NULL)
        return presto_fail_memory(err, (rows + 1) * sizeof *column->ends);
    memset(column->ends, 0, (column->rows + 1) * sizeof *column->ends);
    if (column->kind == PRESTO__COLUMN_ARRAY)
        column->kind = PRESTO__COLUMN_NUMBERS;
    return PRESTO_OK;
}

/* ---- shapes ---- */

static void write_shape(int64_t *shape, const presto_tensor_spec *spec) {
    for (int i = 0; i < PRESTO_MAX_RANK; i++)
        shape[i] = i < spec->rank ? spec->dims[i] : -1;
    if (spec->rank == 0)
        shape[0] = 1;
}

presto_status presto__column_begin_shapes(const presto__place *place, presto__column *column,
                                          presto_error *err) {
    size_t rows = most_rows(place);
    column->shapes = presto__part_take(place->part, rows, PRESTO_MAX_RANK * sizeof *column->shapes);
    if (column->shapes == NULL)
        return presto_fail_memory(err, rows * PRESTO_MAX_RANK * sizeof *column->shapes);
    for (size_t i = 0; i < column->rows; i++) {
        presto_tensor_spec spec = {.rank = 1, .dims = {column->ends[i + 1] - column->ends[i]}};
        write_shape(column->shapes + i * PRESTO_MAX_RANK, &spec);
    }
    return PRESTO_OK;
}

void presto__column_put_shape(presto__column *column, const presto_tensor_spec *spec) {
    if (column->shapes != NULL)
        write_shape(column->shapes + column->rows * PRESTO_MAX_RANK, spec);
}

presto_status presto__column_leave_array(const presto__place *place, presto__column *column,
                                         presto_error *err) {
    uint8_t *array = column->array;
    presto__place_fill(place)->lane_generation = 0;
    PRESTO_TRY(begin_tail(place, column, err));
    PRESTO_TRY(presto__tail_append(presto__column_values(place->part, column), array,
                                   column->rows * column->row_bytes, err));
    int64_t elements = (int64_t)presto_spec_elements(&column->row);
    for (size_t i = 0; i < column->rows; i++)
        column->ends[i + 1] = (int64_t)(i + 1) * elements;
    if (column->row.rank < 2)
        return PRESTO_OK;
    PRESTO_TRY(presto__column_begin_shapes(place, column, err));
    for (size_t i = 0; i < column->rows; i++)
        write_shape(column->shapes + i * PRESTO_MAX_RANK, &column->row);
    return PRESTO_OK;
}

/* ---- making columns ---- */

/* The column of this name in the fill before, mostly *at_io; then *at_io is behind it. Its name and
 * tails are used again. */
static const presto__column *find_model(const presto__packet_part *part, presto_span name,
                                        size_t *at_io) {
    const presto__fill *model = part->model;
    if (model == NULL)
        return NULL;
    size_t at = *at_io;
    if (at >= model->count || !presto__column_is(&model->columns[at], name))
        at = search(model, name);
    if (at == SIZE_MAX)
        return NULL;
    *at_io = at + 1;
    return &model->columns[at];
}

/* Fill in what does not depend on where its rows will be. *model_at_io is for find_model. */
static presto_status describe(const presto__place *place, const presto_feature *feature,
                              size_t *model_at_io, presto__column *column, presto_error *err) {
    const presto_tensor_spec *row = &feature->tensor.spec;
    *column = (presto__column){.name_bytes = feature->name.bytes,
                               .encoding = feature->encoding,
                               .row = *row,
                               .first_at = place->position,
                               .kind = row->dtype == PRESTO_STRING ? PRESTO__COLUMN_STRINGS
                                                                   : PRESTO__COLUMN_NUMBERS,
                               .slot = SIZE_MAX};
    if (column->kind != PRESTO__COLUMN_STRINGS)
        PRESTO_TRY(presto_spec_bytes(row, &column->row_bytes, err));
    const presto__column *before = find_model(place->part, feature->name, model_at_io);
    if (before != NULL) {
        column->name = before->name;
        column->rule = before->rule;
        column->slot = before->slot;
        return PRESTO_OK;
    }
    column->rule = presto__rules_find(place->batch->packet->rules, feature->name);
    char *name = presto_arena_alloc(&place->part->memory, feature->name.bytes + 1, 1);
    if (name == NULL)
        return presto_fail_memory(err, feature->name.bytes + 1);
    if (feature->name.bytes > 0)
        memcpy(name, feature->name.data, feature->name.bytes);
    name[feature->name.bytes] = '\0';
    column->name = name;
    return PRESTO_OK;
}

/* One column for each feature of the sample that has a value, by name. */
static presto_status describe_all(const presto__place *place, const presto_sample *sample,
                                  presto__fill *fill, presto_error *err) {
    fill->count = 0;
    bool is_sorted = true;
    size_t model_at = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        presto__column *column = &fill->columns[fill->count];
        if (!presto__feature_has_value(&sample->features[i]))
            continue;
        PRESTO_TRY(describe(place, &sample->features[i], &model_at, column, err));
        is_sorted =
            is_sorted && (fill->count == 0 || presto__column_compare(column - 1, column) < 0);
        fill->count++;
    }
    if (!is_sorted)
        qsort(fill->columns, fill->count, sizeof *fill->columns, presto__column_compare);
    fill->guess_count = fill->count == 0 ? 0 : sample->feature_count;
    for (size_t i = 0; i < fill->guess_count; i++) {
        size_t at = search(fill, sample->features[i].name);
        fill->guesses[i] = (uint32_t)(at == SIZE_MAX ? 0 : at);
    }
    return PRESTO_OK;
}

/* Does the sample have the same features as the first row of the fill before? */
static bool is_like(const presto__fill *model, const presto_sample *sample) {
    size_t found = 0;
    if (model == NULL || model->guess_count != sample->feature_count)
        return false;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        const presto__column *column = &model->columns[model->guesses[i]];
        if (!presto__column_is(column, feature->name) || column->encoding != feature->encoding ||
            !presto_spec_equal(&column->row, &feature->tensor.spec))
            return false;
        found++;
    }
    return found == model->count;
}

/* Copy its columns, without their rows. */
static void copy_columns(const presto__place *place, const presto__fill *model,
                         presto__fill *fill) {
    memcpy(fill->guesses, model->guesses, model->guess_count * sizeof *fill->guesses);
    fill->guess_count = model->guess_count;
    fill->count = model->count;
    for (size_t i = 0; i < fill->count; i++) {
        presto__column *column = &fill->columns[i];
        *column = model->columns[i];
        column->first_at = place->position;
        column->rows = 0;
        column->varies = false;
        column->array = NULL;
        column->items = NULL;
        column->ends = NULL;
        column->shapes = NULL;
    }
}

/* Columns for rows like `sample`; where the rows will be is not set. */
static presto_status make_columns(const presto__place *place, const presto_sample *sample,
                                  presto__fill *fill, presto_error *err) {
    size_t most = sample->feature_count, each = sizeof *fill->columns + sizeof *fill->guesses;
    *fill = (presto__fill){.columns = presto__part_take(place->part, most, each), .capacity = most};
    if (fill->columns == NULL)
        return presto_fail_memory(err, most * each);
    fill->guesses = (uint32_t *)(void *)(fill->columns + most);
    if (!is_like(place->part->model, sample))
        return describe_all(place, sample, fill, err);
    copy_columns(place, place->part->model, fill);
    return PRESTO_OK;
}

/* ---- arrays ---- */

/* Numbers begin in an array, unless they are declared ragged. */
static presto__column_kind begins_as(const presto__column *column,
                                     const presto__packet_batch *batch) {
    bool is_declared_ragged = column->rule != NULL && column->rule->is_ragged;
    if (column->kind == PRESTO__COLUMN_STRINGS)
        return PRESTO__COLUMN_STRINGS;
    return is_declared_ragged && batch->packet->batch_rows > 1 ? PRESTO__COLUMN_NUMBERS
                                                               : PRESTO__COLUMN_ARRAY;
}

/* Several parts: use the batch's arrays for columns whose rows fit there. Both are by name. */
static void share_arrays(const presto__place *place, presto__fill *fill) {
    const presto__packet_batch *batch = place->batch;
    size_t at = 0;
    for (size_t i = 0; i < fill->count; i++) {
        presto__column *column = &fill->columns[i];
        int order = 1;
        while (at < batch->array_count &&
               (order = presto__column_compare(&batch->arrays[at], column)) < 0)
            at++;
        if (at == batch->array_count || order != 0)
            continue;
        const presto__column *array = &batch->arrays[at++];
        if (column->kind != PRESTO__COLUMN_STRINGS)
            column->kind =
                array->kind == PRESTO__COLUMN_ARRAY && presto_spec_equal(&array->row, &column->row)
                    ? PRESTO__COLUMN_ARRAY
                    : PRESTO__COLUMN_NUMBERS;
        column->array = array->array + place->part->first * array->row_bytes;
    }
}

/* Make arrays for the rows of `batch`, for those columns that begin with one. */
static presto_status make_arrays(presto__packet_batch *batch, presto__column *columns, size_t count,
                                 presto_error *err) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        columns[i].kind = begins_as(&columns[i], batch);
        if (columns[i].kind == PRESTO__COLUMN_ARRAY &&
            (!presto__size_multiply(columns[i].row_bytes, batch->positions, &bytes) ||
             !presto__size_add(total, bytes + PRESTO__BATCH_ALIGN, &total)))
            return presto_fail_memory(err, UINT64_MAX);
    }
    presto__packet *packet = batch->packet;
    size_t batches_left = packet->batch_count - (size_t)(batch - packet->batches);
    size_t hint, features = count * sizeof *batch->features + PRESTO__BATCH_ALIGN;
    if (!presto__size_multiply(total + features, batches_left, &hint))
        hint = total;
    for (size_t i = 0; i < count; i++) {
        if (columns[i].kind != PRESTO__COLUMN_ARRAY)
            continue;
        size_t bytes = columns[i].row_bytes * batch->positions;
        columns[i].array = presto__slab_alloc(&packet->slab, bytes, hint);
        if (columns[i].array == NULL)
            return presto_fail_memory(err, bytes);
        hint -= bytes;
    }
    return PRESTO_OK;
}

/* Copy the columns of the first rows to memory that all parts may read, with their names. */
static presto_status share_columns(presto__packet_batch *batch, const presto__fill *fill,
                                   presto_error *err) {
    size_t names = 0, bytes = fill->count * sizeof *fill->columns;
    for (size_t i = 0; i < fill->count; i++)
        names += fill->columns[i].name_bytes + 1;
    uint8_t *memory = presto__slab_alloc(&batch->packet->slab, bytes + names, bytes + names);
    if (memory == NULL)
        return presto_fail_memory(err, bytes + names);
    batch->arrays = (presto__column *)(void *)memory;
    batch->array_count = fill->count;
    char *text = (char *)memory + bytes;
    for (size_t i = 0; i < fill->count; i++) {
        presto__column *column = &batch->arrays[i];
        *column = fill->columns[i];
        memcpy(text, column->name, column->name_bytes + 1);
        column->name = text;
        text += column->name_bytes + 1;
    }
    return PRESTO_OK;
}

presto_status presto__batch_layout(presto__packet_batch *batch, const presto_sample *sample,
                                   presto_error *err) {
    /* The memory of a part belongs to its worker. */
    presto__packet_part part = {.memory = {0}};
    presto__place place = {.batch = batch, .part = &part};
    presto__fill fill;
    presto_status status = make_columns(&place, sample, &fill, err);
    if (status == PRESTO_OK)
        status = make_arrays(batch, fill.columns, fill.count, err);
    if (status == PRESTO_OK)
        status = share_columns(batch, &fill, err);
    batch->laid_out = status == PRESTO_OK;
    presto_arena_done(&part.memory);
    return status;
}

/* ---- fills ---- */

/* Reuse the columns of a sample that was left out, for one like it. They have no rows. */
static bool take_undone(const presto__place *place, const presto_sample *sample,
                        presto__fill *fill) {
    if (!fill->is_undone || !is_like(fill, sample))
        return false;
    for (size_t i = 0; i < fill->count; i++)
        fill->columns[i].first_at = place->position;
    fill->is_undone = false;
    return true;
}

presto_status presto__fill_begin(const presto__place *place, const presto_sample *sample,
                                 presto_error *err) {
    presto__fill fill;
    if (take_undone(place, sample, presto__place_fill(place)))
        return PRESTO_OK;
    PRESTO_TRY(make_columns(place, sample, &fill, err));
    if (place->batch->packet->part_count > 1) {
        share_arrays(place, &fill);
    } else {
        PRESTO_TRY(make_arrays(place->batch, fill.columns, fill.count, err));
    }
    for (size_t i = 0; i < fill.count; i++)
        if (fill.columns[i].kind != PRESTO__COLUMN_ARRAY)
            PRESTO_TRY(begin_tail(place, &fill.columns[i], err));
    *presto__place_fill(place) = fill;
    return PRESTO_OK;
}

/* ---- columns of later rows ---- */

static presto_status reserve(const presto__place *place, size_t more, presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    size_t capacity = fill->capacity * 2 + 4;
    if (fill->capacity - fill->count >= more)
        return PRESTO_OK;
    if (capacity < fill->count + more)
        capacity = fill->count + more;
    presto__column *columns = presto__part_take(place->part, capacity, sizeof *columns);
    if (columns == NULL)
        return presto_fail_memory(err, capacity * sizeof *columns);
    if (fill->count > 0)
        memcpy(columns, fill->columns, fill->count * sizeof *columns);
    fill->columns = columns;
    fill->capacity = capacity;
    return PRESTO_OK;
}

/* How many of the first `count` columns come before the name of `column`. */
static size_t count_before(const presto__column *columns, size_t count,
                           const presto__column *column) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (presto__column_compare(&columns[middle], column) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Insert columns that are by name. Each of the others moves once: *moved_out says where to. */
static void insert(presto__fill *fill, const presto__column *added, size_t count,
                   uint32_t *moved_out) {
    size_t end = fill->count;
    for (size_t k = count; k > 0; k--) {
        size_t at = count_before(fill->columns, end, &added[k - 1]);
        memmove(fill->columns + at + k, fill->columns + at, (end - at) * sizeof *added);
        for (size_t i = at; i < end; i++)
            moved_out[i] = (uint32_t)(i + k);
        fill->columns[at + k - 1] = added[k - 1];
        end = at;
    }
    for (size_t i = 0; i < end; i++)
        moved_out[i] = (uint32_t)i;
    fill->count += count;
}

/* The columns for features that have none, in the order of the sample. */
static presto_status describe_late(const presto__place *place, const presto_sample *sample,
                                   presto__column *added, size_t count, presto_error *err) {
    const presto__fill *fill = presto__place_fill(place);
    size_t found = 0, model_at = 0;
    for (size_t i = 0; found < count; i++) {
        const presto_feature *feature = &sample->features[i];
        presto__column *column = &added[found];
        if (!presto__feature_has_value(feature) || search(fill, feature->name) != SIZE_MAX)
            continue;
        PRESTO_TRY(describe(place, feature, &model_at, column, err));
        column->rows = fill->rows;
        column->varies = fill->rows > 0;
        PRESTO_TRY(begin_tail(place, column, err));
        found++;
    }
    return PRESTO_OK;
}

presto_status presto__columns_add(const presto__place *place, const presto_sample *sample,
                                  size_t count, presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    presto__column *added = presto__part_take(place->part, count, sizeof *added);
    uint32_t *moved = presto__part_take(place->part, fill->count, sizeof *moved);
    if (added == NULL || moved == NULL)
        return presto_fail_memory(err, count * sizeof *added + fill->count * sizeof *moved);
    PRESTO_TRY(reserve(place, count, err));
    PRESTO_TRY(describe_late(place, sample, added, count, err));
    qsort(added, count, sizeof *added, presto__column_compare);
    insert(fill, added, count, moved);
    for (size_t i = 0; i < fill->guess_count; i++)
        fill->guesses[i] = moved[fill->guesses[i]];
    fill->lane_generation = 0;
    return PRESTO_OK;
}
