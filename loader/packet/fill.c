/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows put into batches, by one part at a time and without gaps.
 *
 * A feature begins as an array with a slot a row, into which steps and copies write. Where rows
 * cannot have one size (strings, a declared shape with unknown dims) or turn out not to (a row of
 * another shape, or without the feature) its values are appended to a tail instead, and `ends` says
 * where each row ends. Rows of one shape look the same in both: assemble.c decides what they are
 * shown as.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "../../base/checked_internal.h"
#include "packet_internal.h"

#define BATCH_ALIGN ((size_t)64)
#define SMALL_BYTES 4096 /* a copy costs less than to align it where it is */

/* ---- tails ---- */

presto_status presto__tail_reserve(presto__tail *tail, size_t more, presto_error *err) {
    if (more <= tail->capacity - tail->bytes)
        return PRESTO_OK;
    size_t needed, capacity;
    if (!presto__size_add(tail->bytes, more, &needed))
        return presto_fail_memory(err, UINT64_MAX);
    capacity = tail->capacity > SIZE_MAX / 2 ? needed : tail->capacity * 3 / 2;
    if (capacity < needed)
        capacity = needed;
    if (capacity < BATCH_ALIGN * 4)
        capacity = BATCH_ALIGN * 4;
    presto__slab grown = {0};
    uint8_t *data = presto__slab_alloc(&grown, capacity, capacity);
    if (data == NULL)
        return presto_fail_memory(err, capacity);
    if (tail->bytes > 0)
        memcpy(data, tail->data, tail->bytes);
    presto__slab_done(&tail->memory);
    tail->memory = grown;
    tail->data = data;
    tail->capacity = capacity;
    return PRESTO_OK;
}

static presto_status tail_append(presto__tail *tail, const void *data, size_t bytes,
                                 presto_error *err) {
    PRESTO_TRY(presto__tail_reserve(tail, bytes, err));
    uint8_t *to = tail->data + tail->bytes;
    if (bytes > 0 && to != data)
        memcpy(to, data, bytes);
    tail->bytes += bytes;
    return PRESTO_OK;
}

static presto__tail *values_of(const presto__part *part, const presto__column *column) {
    return &part->tails[2 * column->slot];
}

static presto__tail *items_of(const presto__part *part, const presto__column *column) {
    return &part->tails[2 * column->slot + 1];
}

static presto_status take_slot(presto__part *part, size_t *slot_out, presto_error *err) {
    if (part->slot_count == part->slot_capacity) {
        size_t capacity = part->slot_capacity * 2 + 2;
        presto__tail *tails = realloc(part->tails, 2 * capacity * sizeof *tails);
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

/* ---- finding columns ---- */

static int compare_names(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    size_t common = a_bytes < b_bytes ? a_bytes : b_bytes;
    int order = common == 0 ? 0 : memcmp(a, b, common);
    if (order != 0)
        return order;
    return a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

static bool is_named(const presto__column *column, presto_span name) {
    return column->name_bytes == name.bytes && memcmp(column->name, name.data, name.bytes) == 0;
}

/* The column of the sample's feature `at`: mostly where that of the sample before it went. */
static presto__column *find_column(presto__fill *fill, presto_span name, size_t at) {
    if (at < fill->guess_count) {
        presto__column *guess = &fill->columns[fill->guesses[at]];
        if (is_named(guess, name))
            return guess;
    }
    size_t low = 0, high = fill->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        presto__column *column = &fill->columns[middle];
        int order =
            compare_names(column->name, column->name_bytes, (const char *)name.data, name.bytes);
        if (order == 0) {
            if (at < fill->guess_count)
                fill->guesses[at] = (uint32_t)middle;
            return column;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- making columns ---- */

static void *take(presto__part *part, size_t count, size_t each) {
    size_t bytes;
    return presto__size_multiply(count, each, &bytes)
               ? presto_arena_alloc(&part->memory, bytes, _Alignof(max_align_t))
               : NULL;
}

static size_t most_rows(const presto__place *place) {
    return place->batch->packet->part_count > 1 ? place->part->count : place->batch->positions;
}

/* A column of this name in the batch before: its name and its tails serve here as well. */
static const presto__column *find_before(const presto__place *place, size_t at, presto_span name) {
    const presto__batch *batch = place->batch;
    if (batch->packet->part_count > 1 || batch == batch->packet->batches)
        return NULL;
    do
        batch--;
    while (batch->fill.count == 0 && batch != batch->packet->batches);
    const presto__fill *before = &batch->fill;
    for (size_t i = 0; i < before->count; i++) {
        const presto__column *column = &before->columns[(at + i) % before->count];
        if (is_named(column, name))
            return column;
    }
    return NULL;
}

/* What does not depend on where its rows will stand. */
static presto_status describe(const presto__place *place, size_t at, const presto_feature *feature,
                              presto__column *column, presto_error *err) {
    const presto_tensor_spec *row = &feature->tensor.spec;
    *column = (presto__column){.name_bytes = feature->name.bytes,
                               .encoding = feature->encoding,
                               .row = *row,
                               .first_at = place->position,
                               .is_bytes = row->dtype == PRESTO_STRING,
                               .slot = SIZE_MAX};
    if (!column->is_bytes)
        PRESTO_TRY(presto_spec_bytes(row, &column->row_bytes, err));
    const presto__column *before = find_before(place, at, feature->name);
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

static presto_status begin_items(const presto__place *place, presto__column *column,
                                 presto_error *err) {
    static const int64_t zero = 0;
    presto__tail *items = items_of(place->part, column);
    column->item_start = items->bytes;
    return tail_append(items, &zero, sizeof zero, err);
}

/* The column's values will be appended to a tail. */
static presto_status begin_tail(const presto__place *place, presto__column *column,
                                presto_error *err) {
    if (column->slot == SIZE_MAX)
        PRESTO_TRY(take_slot(place->part, &column->slot, err));
    presto__tail *values = values_of(place->part, column);
    size_t padding = -values->bytes & (BATCH_ALIGN - 1);
    PRESTO_TRY(presto__tail_reserve(values, padding + BATCH_ALIGN, err)); /* never NULL */
    values->bytes += padding;
    column->start = values->bytes;
    if (column->is_bytes)
        PRESTO_TRY(begin_items(place, column, err));
    size_t rows = most_rows(place);
    column->ends = take(place->part, rows + 1, sizeof *column->ends);
    if (column->ends == NULL)
        return presto_fail_memory(err, (rows + 1) * sizeof *column->ends);
    memset(column->ends, 0, (column->rows + 1) * sizeof *column->ends);
    column->is_dense = false;
    return PRESTO_OK;
}

static void write_shape(int64_t *shape, const presto_tensor_spec *spec) {
    for (int i = 0; i < PRESTO_MAX_RANK; i++)
        shape[i] = i < spec->rank ? spec->dims[i] : -1;
    if (spec->rank == 0)
        shape[0] = 1;
}

/* From here on the rows' shapes are noted; those before have what `ends` says. */
static presto_status begin_shapes(const presto__place *place, presto__column *column,
                                  presto_error *err) {
    size_t rows = most_rows(place);
    column->shapes = take(place->part, rows, PRESTO_MAX_RANK * sizeof *column->shapes);
    if (column->shapes == NULL)
        return presto_fail_memory(err, rows * PRESTO_MAX_RANK * sizeof *column->shapes);
    for (size_t i = 0; i < column->rows; i++) {
        presto_tensor_spec spec = {.rank = 1, .dims = {column->ends[i + 1] - column->ends[i]}};
        write_shape(column->shapes + i * PRESTO_MAX_RANK, &spec);
    }
    return PRESTO_OK;
}

/* Rows of one shape, moved out of the batch's array. */
static presto_status leave_array(const presto__place *place, presto__column *column,
                                 presto_error *err) {
    uint8_t *array = column->array;
    PRESTO_TRY(begin_tail(place, column, err));
    PRESTO_TRY(
        tail_append(values_of(place->part, column), array, column->rows * column->row_bytes, err));
    int64_t elements = (int64_t)presto_spec_elements(&column->row);
    for (size_t i = 0; i < column->rows; i++)
        column->ends[i + 1] = (int64_t)(i + 1) * elements;
    if (column->row.rank < 2)
        return PRESTO_OK;
    PRESTO_TRY(begin_shapes(place, column, err));
    for (size_t i = 0; i < column->rows; i++)
        write_shape(column->shapes + i * PRESTO_MAX_RANK, &column->row);
    return PRESTO_OK;
}

static bool begins_dense(const presto__column *column, const presto__batch *batch) {
    bool is_declared_ragged = column->rule != NULL && column->rule->is_ragged;
    return !column->is_bytes && !(is_declared_ragged && batch->packet->batch_rows > 1);
}

/* Several parts: the batch's array, if rows of this column fit there. */
static void share_array(const presto__place *place, presto__column *column) {
    const presto__batch *batch = place->batch;
    for (size_t i = 0; i < batch->array_count; i++) {
        const presto__column *array = &batch->arrays[i];
        if (array->name_bytes != column->name_bytes ||
            memcmp(array->name, column->name, column->name_bytes) != 0)
            continue;
        column->is_dense = array->is_dense && presto_spec_equal(&array->row, &column->row);
        column->array = array->array + place->part->first * array->row_bytes;
        return;
    }
}

/* Arrays for the rows of `batch`, of those columns that begin with one. */
static presto_status make_arrays(presto__batch *batch, presto__column *columns, size_t count,
                                 presto_error *err) {
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        columns[i].is_dense = begins_dense(&columns[i], batch);
        if (columns[i].is_dense &&
            (!presto__size_multiply(columns[i].row_bytes, batch->positions, &bytes) ||
             !presto__size_add(all, bytes + BATCH_ALIGN, &all)))
            return presto_fail_memory(err, UINT64_MAX);
    }
    presto__packet *packet = batch->packet;
    size_t batches_left = packet->batch_count - (size_t)(batch - packet->batches);
    size_t hint, features = count * sizeof *batch->features + BATCH_ALIGN;
    if (!presto__size_multiply(all + features, batches_left, &hint))
        hint = all;
    for (size_t i = 0; i < count; i++) {
        if (!columns[i].is_dense)
            continue;
        size_t bytes = columns[i].row_bytes * batch->positions;
        columns[i].array = presto__slab_alloc(&packet->slab, bytes, hint);
        if (columns[i].array == NULL)
            return presto_fail_memory(err, bytes);
        hint -= bytes;
    }
    return PRESTO_OK;
}

static int compare_columns(const void *a, const void *b) {
    const presto__column *left = a, *right = b;
    return compare_names(left->name, left->name_bytes, right->name, right->name_bytes);
}

/* One column, described, for each feature of the sample that has a value; by name. */
static presto_status describe_all(const presto__place *place, const presto_sample *sample,
                                  presto__column **columns_out, size_t *count_out,
                                  presto_error *err) {
    presto__column *columns = take(place->part, sample->feature_count, sizeof *columns);
    if (columns == NULL)
        return presto_fail_memory(err, sample->feature_count * sizeof *columns);
    size_t count = 0;
    bool is_sorted = true;
    for (size_t i = 0; i < sample->feature_count; i++) {
        if (!presto__feature_has_value(&sample->features[i]))
            continue;
        PRESTO_TRY(describe(place, count, &sample->features[i], &columns[count], err));
        is_sorted =
            is_sorted && (count == 0 || compare_columns(&columns[count - 1], &columns[count]) < 0);
        count++;
    }
    if (!is_sorted)
        qsort(columns, count, sizeof *columns, compare_columns);
    *columns_out = columns;
    *count_out = count;
    return PRESTO_OK;
}

presto_status presto__batch_layout(presto__batch *batch, const presto_sample *sample,
                                   presto_error *err) {
    presto__place place = {.batch = batch, .part = &batch->packet->parts[0]};
    size_t count;
    /* The first part's memory is not this worker's: the names are the arrays' own. */
    presto__part own = {.memory = {0}};
    place.part = &own;
    presto_status status = describe_all(&place, sample, &batch->arrays, &count, err);
    if (status == PRESTO_OK)
        status = make_arrays(batch, batch->arrays, count, err);
    size_t names = 0;
    for (size_t i = 0; status == PRESTO_OK && i < count; i++)
        names += batch->arrays[i].name_bytes + 1;
    size_t bytes = count * sizeof *batch->arrays;
    uint8_t *memory =
        status < 0 ? NULL : presto__slab_alloc(&batch->packet->slab, bytes + names, bytes + names);
    if (status == PRESTO_OK && memory == NULL)
        status = presto_fail_memory(err, bytes + names);
    if (status == PRESTO_OK) {
        presto__column *arrays = (presto__column *)(void *)memory;
        char *text = (char *)memory + bytes;
        for (size_t i = 0; i < count; i++) {
            arrays[i] = batch->arrays[i];
            memcpy(text, arrays[i].name, arrays[i].name_bytes + 1);
            arrays[i].name = text;
            text += arrays[i].name_bytes + 1;
        }
        batch->arrays = arrays;
        batch->array_count = count;
        batch->laid_out = true;
    }
    presto_arena_done(&own.memory);
    return status;
}

presto_status presto__fill_begin(const presto__place *place, const presto_sample *sample,
                                 presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    presto__column *columns;
    size_t count;
    PRESTO_TRY(describe_all(place, sample, &columns, &count, err));
    if (place->batch->packet->part_count > 1) {
        for (size_t i = 0; i < count; i++)
            share_array(place, &columns[i]);
    } else {
        PRESTO_TRY(make_arrays(place->batch, columns, count, err));
    }
    for (size_t i = 0; i < count; i++)
        if (!columns[i].is_dense)
            PRESTO_TRY(begin_tail(place, &columns[i], err));
    fill->columns = columns;
    fill->count = count;
    fill->capacity = sample->feature_count;
    fill->guesses = take(place->part, sample->feature_count, sizeof *fill->guesses);
    if (fill->guesses == NULL)
        return presto_fail_memory(err, sample->feature_count * sizeof *fill->guesses);
    fill->guess_count = count == 0 ? 0 : sample->feature_count;
    for (size_t i = 0; i < fill->guess_count; i++)
        fill->guesses[i] = (uint32_t)(i < count ? i : 0);
    return PRESTO_OK;
}

/* A feature that the rows before do not have. */
static presto_status add_column(const presto__place *place, const presto_feature *feature,
                                presto__column **column_out, presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    if (fill->count == fill->capacity) {
        size_t capacity = fill->capacity * 2 + 4;
        presto__column *columns = take(place->part, capacity, sizeof *columns);
        if (columns == NULL)
            return presto_fail_memory(err, capacity * sizeof *columns);
        for (size_t i = 0; i < fill->count; i++)
            columns[i] = fill->columns[i];
        fill->columns = columns;
        fill->capacity = capacity;
    }
    presto__column added;
    PRESTO_TRY(describe(place, fill->count, feature, &added, err));
    added.rows = fill->rows;
    added.varies = fill->rows > 0;
    PRESTO_TRY(begin_tail(place, &added, err));
    size_t at = fill->count;
    while (at > 0 && compare_columns(&fill->columns[at - 1], &added) > 0)
        at--;
    memmove(fill->columns + at + 1, fill->columns + at, (fill->count - at) * sizeof added);
    fill->columns[at] = added;
    fill->count++;
    for (size_t i = 0; i < fill->guess_count; i++)
        fill->guesses[i] += fill->guesses[i] >= at;
    *column_out = &fill->columns[at];
    return PRESTO_OK;
}

/* ---- rows ---- */

void *presto__fill_slot(const presto__place *place, const presto_feature *feature, size_t at) {
    presto__column *column = find_column(presto__place_fill(place), feature->name, at);
    if (column == NULL || column->row.dtype != feature->tensor.spec.dtype || column->is_bytes)
        return NULL;
    if (column->is_dense)
        return presto_spec_equal(&column->row, &feature->tensor.spec)
                   ? column->array + column->rows * column->row_bytes
                   : NULL;
    presto__tail *values = values_of(place->part, column);
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

static presto_status check_pad(const presto__column *column, const presto_tensor *tensor,
                               presto_error *err) {
    uint64_t length = column->is_bytes        ? tensor->strings[0].bytes
                      : tensor->spec.rank > 0 ? (uint64_t)tensor->spec.dims[0]
                                              : 1;
    if (column->rule->pad_length == 0 || length <= column->rule->pad_length)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                       "feature \"%.100s\" has a length of %" PRIu64 ", more than the %" PRIu64
                       " that it is to be padded to",
                       column->name, length, column->rule->pad_length);
}

/* Whatever refuses the sample does so before any of it is put. */
static presto_status check(presto__fill *fill, const presto__rules *rules,
                           const presto_sample *sample, presto_error *err) {
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        const presto_tensor *tensor = &feature->tensor;
        if (tensor->spec.rank < 0 || tensor->spec.rank >= PRESTO_MAX_RANK)
            return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                               "a feature of rank %d cannot be batched (at most %d)",
                               tensor->spec.rank, PRESTO_MAX_RANK - 1);
        const presto__column *column = find_column(fill, feature->name, i);
        presto__column unknown;
        if (column == NULL) {
            unknown = (presto__column){.name = "",
                                       .rule = presto__rules_find(rules, feature->name),
                                       .is_bytes = tensor->spec.dtype == PRESTO_STRING};
            column = &unknown;
        } else if (column->row.dtype != tensor->spec.dtype) {
            presto__column other = *column;
            other.row.dtype = tensor->spec.dtype;
            return presto__fail_dtype(&other, column->row.dtype, err);
        }
        if (column->rule != NULL && column->rule->is_padded &&
            !(column->is_bytes && presto_spec_elements(&tensor->spec) != 1))
            PRESTO_TRY(check_pad(column, tensor, err));
    }
    return PRESTO_OK;
}

static presto_status put_strings(const presto__place *place, presto__column *column,
                                 const presto_tensor *tensor, presto_error *err) {
    presto__tail *values = values_of(place->part, column);
    presto__tail *items = items_of(place->part, column);
    uint64_t count = presto_spec_elements(&tensor->spec);
    for (uint64_t i = 0; i < count; i++) {
        PRESTO_TRY(tail_append(values, tensor->strings[i].data, tensor->strings[i].bytes, err));
        int64_t end = (int64_t)(values->bytes - column->start);
        PRESTO_TRY(tail_append(items, &end, sizeof end, err));
        place->part->delivered_bytes += tensor->strings[i].bytes;
    }
    column->ends[column->rows + 1] = column->ends[column->rows] + (int64_t)count;
    column->varies = column->varies || count != 1;
    return PRESTO_OK;
}

static presto_status put_value(const presto__place *place, presto__column *column,
                               const presto_tensor *tensor, presto_error *err) {
    bool is_alike = presto_spec_equal(&column->row, &tensor->spec);
    if (column->is_dense && is_alike) {
        uint8_t *to = column->array + column->rows++ * column->row_bytes;
        if (to != tensor->data && column->row_bytes > 0)
            memcpy(to, tensor->data, column->row_bytes);
        place->part->delivered_bytes += column->row_bytes;
        return PRESTO_OK;
    }
    if (column->is_dense)
        PRESTO_TRY(leave_array(place, column, err));
    if (tensor->spec.rank > 1 && column->shapes == NULL)
        PRESTO_TRY(begin_shapes(place, column, err));
    if (column->is_bytes) {
        PRESTO_TRY(put_strings(place, column, tensor, err));
    } else {
        size_t bytes = presto_tensor_bytes(tensor);
        PRESTO_TRY(tail_append(values_of(place->part, column), tensor->data, bytes, err));
        column->ends[column->rows + 1] =
            column->ends[column->rows] + (int64_t)presto_spec_elements(&tensor->spec);
        column->varies = column->varies || !is_alike;
        place->part->delivered_bytes += bytes;
    }
    if (column->shapes != NULL)
        write_shape(column->shapes + column->rows * PRESTO_MAX_RANK, &tensor->spec);
    column->rows++;
    return PRESTO_OK;
}

/* A row without the feature has no values of it. */
static presto_status put_nothing(const presto__place *place, presto__column *column,
                                 presto_error *err) {
    if (column->is_dense)
        PRESTO_TRY(leave_array(place, column, err));
    column->ends[column->rows + 1] = column->ends[column->rows];
    if (column->shapes != NULL) {
        presto_tensor_spec nothing = {.rank = 1};
        write_shape(column->shapes + column->rows * PRESTO_MAX_RANK, &nothing);
    }
    column->varies = true;
    column->rows++;
    return PRESTO_OK;
}

presto_status presto__fill_put(const presto__place *place, const presto_sample *sample,
                               presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    size_t found = 0;
    PRESTO_TRY(check(fill, place->batch->packet->rules, sample, err));
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        presto__column *column = find_column(fill, feature->name, i);
        if (column == NULL)
            PRESTO_TRY(add_column(place, feature, &column, err));
        PRESTO_TRY(put_value(place, column, &feature->tensor, err));
        found++;
    }
    for (size_t i = 0; found < fill->count && i < fill->count; i++)
        if (fill->columns[i].rows == fill->rows)
            PRESTO_TRY(put_nothing(place, &fill->columns[i], err));
    fill->rows++;
    return PRESTO_OK;
}

/* ---- views ---- */

/* A view is shown to readers only; nothing is written to it. */
static uint8_t *viewed(const void *data) {
    union {
        const void *in;
        uint8_t *out;
    } pointer = {data};
    return pointer.out;
}

/* Strings have no alignment to keep. */
static bool is_aligned(const presto_feature *feature) {
    return feature->tensor.spec.dtype == PRESTO_STRING ||
           ((uintptr_t)feature->tensor.data & (BATCH_ALIGN - 1)) == 0;
}

bool presto__batch_may_view(const presto_sample *sample) {
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (presto__feature_has_value(feature) && !is_aligned(feature) &&
            presto_tensor_bytes(&feature->tensor) > SMALL_BYTES)
            return false;
    }
    return true;
}

/* One string, shown where it is. */
static presto_status view_string(const presto__place *place, presto__column *column,
                                 presto_span string, presto_error *err) {
    int64_t *ends = take(place->part, 4, sizeof *ends);
    if (ends == NULL)
        return presto_fail_memory(err, 4 * sizeof *ends);
    ends[0] = ends[2] = 0;
    ends[1] = 1;
    ends[3] = (int64_t)string.bytes;
    column->ends = ends;
    column->items = ends + 2;
    column->array = viewed(string.data);
    column->is_view = true;
    return PRESTO_OK;
}

static presto_status view_numbers(const presto__place *place, presto__column *column,
                                  const presto_feature *feature, bool aligned, presto_error *err) {
    column->is_dense = true;
    column->array = viewed(feature->tensor.data);
    if (!aligned || is_aligned(feature))
        return PRESTO_OK;
    size_t bytes = column->row_bytes;
    column->array = presto__slab_alloc(&place->batch->packet->slab, bytes, bytes);
    if (column->array == NULL)
        return presto_fail_memory(err, bytes);
    memcpy(column->array, feature->tensor.data, bytes);
    return PRESTO_OK;
}

presto_status presto__fill_view(const presto__place *place, const presto_sample *sample,
                                bool aligned, presto_error *err) {
    presto__fill *fill = presto__place_fill(place);
    PRESTO_TRY(check(fill, place->batch->packet->rules, sample, err));
    presto__column *columns;
    size_t count;
    PRESTO_TRY(describe_all(place, sample, &columns, &count, err));
    fill->columns = columns;
    fill->count = count;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        presto__column *column = find_column(fill, feature->name, SIZE_MAX);
        const presto_tensor *tensor = &feature->tensor;
        if (!column->is_bytes) {
            PRESTO_TRY(view_numbers(place, column, feature, aligned, err));
        } else if (presto_spec_elements(&tensor->spec) == 1 && tensor->spec.rank < 2) {
            PRESTO_TRY(view_string(place, column, tensor->strings[0], err));
        } else {
            PRESTO_TRY(begin_tail(place, column, err));
            PRESTO_TRY(put_value(place, column, tensor, err));
            continue;
        }
        column->rows++;
    }
    fill->rows = 1;
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
