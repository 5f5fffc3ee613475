/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the features of a batch out of the rows that its parts have put.
 *
 * With one part, or if all rows are in the batch's shared array, only pointers are set. Rows of
 * several parts in tails are copied together here: one extra copy for values of differing size, in
 * batches so large that several workers make them.
 *
 * How a feature is shown depends only on its rule and on the rows: strings as bytes; numbers dense,
 * unless the rule says ragged or the rows differ.
 */
#include <stdlib.h>

#include "columns_internal.h"

/* One feature of the batch: its column in each fill. */
typedef struct joined_column {
    const presto__column *first; /* the first that has a row with the feature */
    bool varies;                 /* over all fills */
    bool is_dense;               /* all rows stand in the batch's array */
    bool has_shapes;
    size_t fills;                    /* with at least one row */
    const presto__packet_part *part; /* of `first` */
} joined_column;

/* What a part has of a batch of several parts. */
typedef struct share {
    const presto__packet_part *part;
    presto__fill *fill;
    size_t rows; /* of them that are shown */
} share;

/* The shares of a batch one after the other, over as many rows as are shown. */
typedef struct shares {
    presto__packet_batch *batch;
    size_t part;
    size_t rows_left;
} shares;

static shares begin_shares(presto__packet_batch *batch) {
    return (shares){.batch = batch, .rows_left = batch->shown.rows};
}

static bool next_share(shares *walk, share *share_out) {
    presto__packet *packet = walk->batch->packet;
    while (walk->rows_left > 0 && walk->part < packet->part_count) {
        presto__packet_part *part = &packet->parts[walk->part++];
        presto__fill *fill = &part->fill;
        size_t rows = fill->rows < walk->rows_left ? fill->rows : walk->rows_left;
        walk->rows_left -= rows;
        *share_out = (share){part, fill, rows};
        if (rows > 0)
            return true;
    }
    return false;
}

static presto__column *find(const presto__fill *fill, const presto__column *like) {
    size_t low = 0, high = fill->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = presto__column_compare(like, &fill->columns[middle]);
        if (order == 0)
            return &fill->columns[middle];
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The column of the same feature in the nearest earlier part that has it. */
static const presto__column *find_earlier(const presto__packet *packet, size_t part,
                                          const presto__column *column) {
    const presto__column *found = NULL;
    while (part > 0 && found == NULL)
        if (packet->parts[--part].fill.rows > 0)
            found = find(&packet->parts[part].fill, column);
    return found;
}

size_t presto__batch_conflict(const presto__packet_batch *batch, const presto__column **column_out,
                              presto_dtype *dtype_out) {
    const presto__packet *packet = batch->packet;
    size_t found = SIZE_MAX;
    for (size_t p = 1; p < packet->part_count; p++)
        for (size_t i = 0; packet->parts[p].fill.rows > 0 && i < packet->parts[p].fill.count; i++) {
            const presto__column *column = &packet->parts[p].fill.columns[i];
            const presto__column *earlier = find_earlier(packet, p, column);
            if (earlier == NULL || earlier->row.dtype == column->row.dtype ||
                column->first_at >= found)
                continue;
            found = column->first_at;
            *column_out = column;
            *dtype_out = earlier->row.dtype;
        }
    return found;
}

/* ---- one part ---- */

/* Set where its rows are, now that tails no longer move. */
static void resolve(const presto__packet_part *part, presto__column *column) {
    if (column->kind == PRESTO__COLUMN_ARRAY)
        return;
    column->array = part->tails[2 * column->slot].data + column->start;
    if (column->kind == PRESTO__COLUMN_STRINGS)
        column->items =
            (int64_t *)(void *)(part->tails[2 * column->slot + 1].data + column->item_start);
}

/* Show the dims of all rows, PRESTO_MAX_RANK each, in an array as narrow as their ranks allow. */
static void show_shapes(int64_t *shapes, size_t rows, presto_batch_feature *feature) {
    size_t rank = 1;
    for (size_t i = 0; i < rows; i++)
        while (rank < PRESTO_MAX_RANK && shapes[i * PRESTO_MAX_RANK + rank] >= 0)
            rank++;
    if (rank == 1)
        return;
    for (size_t i = 0; i < rows; i++)
        memmove(shapes + i * rank, shapes + i * PRESTO_MAX_RANK, rank * sizeof *shapes);
    feature->shapes = shapes;
    feature->shape_rank = rank;
}

static bool is_ragged_by_rule(const presto__packet_batch *batch, const presto__column *column) {
    return column->rule != NULL && column->rule->is_ragged &&
           (column->kind == PRESTO__COLUMN_STRINGS || batch->packet->batch_rows > 1);
}

/* Rows of one shape, back to back. */
static void show_dense(const presto__column *column, size_t rows, presto_batch_feature *feature) {
    presto_tensor_spec *spec = &feature->tensor.spec;
    feature->layout = PRESTO_LAYOUT_DENSE;
    spec->dtype = column->row.dtype;
    spec->rank = column->row.rank + 1;
    spec->dims[0] = (int64_t)rows;
    for (int i = 0; i < column->row.rank; i++)
        spec->dims[i + 1] = column->row.dims[i];
    feature->tensor.data = column->array;
}

static void show(const presto__packet_batch *batch, const presto__column *column, size_t rows,
                 presto_batch_feature *feature) {
    bool is_ragged = column->varies || is_ragged_by_rule(batch, column);
    *feature = (presto_batch_feature){.name = column->name, .encoding = column->encoding};
    if (column->kind == PRESTO__COLUMN_ARRAY ||
        (column->kind != PRESTO__COLUMN_STRINGS && !is_ragged)) {
        show_dense(column, rows, feature);
        return;
    }
    feature->layout =
        column->kind == PRESTO__COLUMN_STRINGS ? PRESTO_LAYOUT_BYTES : PRESTO_LAYOUT_RAGGED;
    feature->tensor.spec = (presto_tensor_spec){
        .dtype = column->kind == PRESTO__COLUMN_STRINGS ? PRESTO_UINT8 : column->row.dtype,
        .rank = 1};
    feature->tensor.data = column->array;
    feature->offsets = column->kind == PRESTO__COLUMN_STRINGS ? column->items : column->ends;
    if (column->kind == PRESTO__COLUMN_STRINGS && is_ragged)
        feature->row_offsets = column->ends;
    int64_t values = column->ends[rows];
    feature->tensor.spec.dims[0] =
        column->kind == PRESTO__COLUMN_STRINGS ? column->items[values] : values;
    if (column->shapes != NULL)
        show_shapes(column->shapes, rows, feature);
}

/* ---- several parts ---- */

static joined_column join(presto__packet_batch *batch, const presto__column *like) {
    joined_column joined = {.is_dense = true};
    share next;
    for (shares walk = begin_shares(batch); next_share(&walk, &next);) {
        const presto__column *column = find(next.fill, like);
        joined.fills++;
        if (column == NULL) {
            joined.varies = true;
            joined.is_dense = false;
            continue;
        }
        if (joined.first == NULL) {
            joined.first = column;
            joined.part = next.part;
        }
        joined.varies = joined.varies || column->varies ||
                        (column->kind != PRESTO__COLUMN_STRINGS &&
                         !presto_spec_equal(&column->row, &joined.first->row));
        joined.is_dense = joined.is_dense && column->kind == PRESTO__COLUMN_ARRAY;
        joined.has_shapes = joined.has_shapes || column->shapes != NULL || column->row.rank > 1;
    }
    return joined;
}

/* All rows are in the batch's array: close the gaps between the parts. */
static void close_array(presto__packet_batch *batch, presto__column *whole) {
    size_t rows = 0;
    share next;
    uint8_t *array = NULL;
    for (shares walk = begin_shares(batch); next_share(&walk, &next);) {
        const presto__column *column = find(next.fill, whole);
        if (array == NULL)
            array = column->array - next.part->first * column->row_bytes;
        uint8_t *to = array + rows * column->row_bytes;
        if (to != column->array && column->row_bytes > 0)
            memmove(to, column->array, next.rows * column->row_bytes);
        rows += next.rows;
    }
    whole->array = array;
    whole->kind = PRESTO__COLUMN_ARRAY;
}

/* The bytes, and strings, of the first `rows` rows of a column. */
static void measure(const presto__column *column, size_t rows, size_t *bytes_out,
                    size_t *items_out) {
    *items_out = 0;
    if (column->kind == PRESTO__COLUMN_ARRAY) {
        *bytes_out = rows * column->row_bytes;
    } else if (column->kind == PRESTO__COLUMN_STRINGS) {
        *items_out = (size_t)column->ends[rows];
        *bytes_out = (size_t)column->items[*items_out];
    } else {
        *bytes_out = (size_t)column->ends[rows] * presto_dtype_bytes(column->row.dtype);
    }
}

/* Room for the values of all shares, and for what says where they end. */
static presto_status make_room(presto__packet_batch *batch, const joined_column *joined,
                               presto__column *whole, presto_error *err) {
    size_t bytes = 0, items = 0, rows = batch->shown.rows;
    share next;
    for (shares walk = begin_shares(batch); next_share(&walk, &next);) {
        presto__column *column = find(next.fill, whole);
        size_t some, some_items;
        if (column == NULL)
            continue;
        resolve(next.part, column);
        measure(column, next.rows, &some, &some_items);
        bytes += some;
        items += some_items;
    }
    presto__slab *slab = &batch->packet->slab;
    size_t widths = rows + 1 + (whole->kind == PRESTO__COLUMN_STRINGS ? items + 1 : 0) +
                    (joined->has_shapes ? rows * PRESTO_MAX_RANK : 0);
    size_t more = widths * sizeof(int64_t);
    whole->array = presto__slab_alloc(slab, bytes, bytes + more + 128);
    int64_t *numbers = presto__slab_alloc(slab, more, more);
    if (whole->array == NULL || numbers == NULL)
        return presto_fail_memory(err, bytes + more);
    whole->ends = numbers;
    whole->ends[0] = 0;
    numbers += rows + 1;
    whole->items = NULL;
    if (whole->kind == PRESTO__COLUMN_STRINGS) {
        whole->items = numbers;
        whole->items[0] = 0;
        numbers += items + 1;
    }
    whole->shapes = joined->has_shapes ? numbers : NULL;
    return PRESTO_OK;
}

static void add_shapes(const presto__column *column, const share *from, size_t row,
                       presto__column *whole) {
    for (size_t i = 0; i < from->rows; i++) {
        int64_t *shape = whole->shapes + (row + i) * PRESTO_MAX_RANK;
        if (column != NULL && column->shapes != NULL) {
            memcpy(shape, column->shapes + i * PRESTO_MAX_RANK, PRESTO_MAX_RANK * sizeof *shape);
            continue;
        }
        bool is_alike = column != NULL && column->kind == PRESTO__COLUMN_ARRAY;
        for (int j = 0; j < PRESTO_MAX_RANK; j++)
            shape[j] = is_alike && j < column->row.rank ? column->row.dims[j] : -1;
        if (!is_alike || column->row.rank == 0)
            shape[0] = whole->ends[row + i + 1] - whole->ends[row + i];
    }
}

/* Append a share's rows. */
static void add_rows(const presto__column *column, const share *from, size_t row,
                     presto__column *whole) {
    int64_t before = whole->ends[row];
    if (column == NULL) {
        for (size_t i = 0; i < from->rows; i++)
            whole->ends[row + i + 1] = before;
        return;
    }
    size_t bytes, items, at = (size_t)before * presto_dtype_bytes(whole->row.dtype);
    measure(column, from->rows, &bytes, &items);
    if (whole->items != NULL) {
        int64_t start = whole->items[before];
        at = (size_t)start;
        for (size_t i = 1; i <= items; i++)
            whole->items[(size_t)before + i] = start + column->items[i];
    }
    if (bytes > 0)
        memcpy(whole->array + at, column->array, bytes);
    int64_t elements =
        column->kind == PRESTO__COLUMN_ARRAY ? (int64_t)presto_spec_elements(&column->row) : 0;
    for (size_t i = 1; i <= from->rows; i++)
        whole->ends[row + i] =
            before +
            (column->kind == PRESTO__COLUMN_ARRAY ? (int64_t)i * elements : column->ends[i]);
}

static presto_status gather(presto__packet_batch *batch, const joined_column *joined,
                            presto__column *whole, presto_error *err) {
    size_t row = 0;
    share next;
    PRESTO_TRY(make_room(batch, joined, whole, err));
    if (whole->kind == PRESTO__COLUMN_ARRAY)
        whole->kind = PRESTO__COLUMN_NUMBERS;
    for (shares walk = begin_shares(batch); next_share(&walk, &next);) {
        const presto__column *column = find(next.fill, whole);
        add_rows(column, &next, row, whole);
        if (whole->shapes != NULL)
            add_shapes(column, &next, row, whole);
        row += next.rows;
    }
    return PRESTO_OK;
}

static presto_status show_joined(presto__packet_batch *batch, const presto__column *like,
                                 presto_batch_feature *feature, presto_error *err) {
    joined_column joined = join(batch, like);
    presto__column whole = joined.first == NULL ? *like : *joined.first; /* some part has it */
    whole.varies = joined.varies;
    if (joined.is_dense && !joined.varies) {
        close_array(batch, &whole);
    } else if (joined.fills == 1 && joined.first != NULL) {
        presto__column alone = whole;
        resolve(joined.part, &alone);
        whole = alone;
    } else {
        PRESTO_TRY(gather(batch, &joined, &whole, err));
    }
    show(batch, &whole, batch->shown.rows, feature);
    return PRESTO_OK;
}

/* ---- all features ---- */

/* How many columns of the fill are not in the list. Both are by name. */
static size_t count_missing(const presto__column *const *list, size_t count,
                            const presto__fill *fill) {
    size_t at = 0, missing = 0;
    for (size_t i = 0; i < fill->count; i++) {
        int order = 1;
        while (at < count && (order = presto__column_compare(list[at], &fill->columns[i])) < 0)
            at++;
        missing += at == count || order != 0;
        at += at < count && order == 0;
    }
    return missing;
}

/* Merge `missing` columns of the fill into the list, from its end, so that each entry moves once. */
static void merge(const presto__column **list, size_t count, const presto__fill *fill,
                  size_t missing) {
    size_t left = fill->count;
    while (missing > 0) {
        const presto__column *column = &fill->columns[left - 1];
        int order = count == 0 ? -1 : presto__column_compare(list[count - 1], column);
        if (order > 0) {
            list[count + missing - 1] = list[count - 1];
            count--;
            continue;
        }
        left--;
        if (order < 0)
            list[count + --missing] = column;
    }
}

/* The columns of all shares, each name once, by name. */
static size_t list_columns(presto__packet_batch *batch, const presto__column **list) {
    size_t count = 0;
    share next;
    for (shares walk = begin_shares(batch); next_share(&walk, &next);) {
        /* Mostly all parts have the same columns. */
        size_t missing = count_missing(list, count, next.fill);
        merge(list, count, next.fill, missing);
        count += missing;
    }
    return count;
}

static presto_status make_features(presto__packet_batch *batch, size_t count, size_t each,
                                   presto_error *err) {
    size_t bytes;
    const presto__packet *packet = batch->packet;
    size_t batches_left = packet->batch_count - (size_t)(batch - packet->batches);
    if (!presto__size_multiply(count, each, &bytes))
        return presto_fail_memory(err, UINT64_MAX);
    batch->features = presto__slab_alloc(&batch->packet->slab, bytes, (bytes + 64) * batches_left);
    return batch->features == NULL ? presto_fail_memory(err, bytes) : PRESTO_OK;
}

static presto_status assemble_alone(presto__packet_batch *batch, presto_error *err) {
    presto__fill *fill = &batch->fill;
    PRESTO_TRY(make_features(batch, fill->count, sizeof *batch->features, err));
    for (size_t i = 0; i < fill->count; i++) {
        resolve(&batch->packet->parts[0], &fill->columns[i]);
        show(batch, &fill->columns[i], batch->shown.rows, &batch->features[i]);
    }
    batch->feature_count = fill->count;
    return PRESTO_OK;
}

static presto_status assemble_joined(presto__packet_batch *batch, presto_error *err) {
    size_t most = 0;
    share next;
    for (shares walk = begin_shares(batch); next_share(&walk, &next);)
        most += next.fill->count;
    size_t each = sizeof *batch->features + sizeof(presto__column *);
    PRESTO_TRY(make_features(batch, most, each, err));
    const presto__column **list = (const presto__column **)(void *)(batch->features + most);
    batch->feature_count = list_columns(batch, list);
    for (size_t i = 0; i < batch->feature_count; i++)
        PRESTO_TRY(show_joined(batch, list[i], &batch->features[i], err));
    return PRESTO_OK;
}

/* After an abort, workers stop anywhere: rows may be missing. */
static bool is_abandoned(const presto__packet_batch *batch) {
    const presto__packet *packet = batch->packet;
    size_t rows = batch->fill.rows;
    for (size_t i = 0; packet->part_count > 1 && i < packet->part_count; i++)
        rows += packet->parts[i].fill.rows;
    return rows < batch->shown.rows;
}

static void find_main(presto__packet_batch *batch) {
    const char *main = batch->packet->rules->main_feature;
    for (size_t i = 0; main != NULL && i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, main) == 0)
            batch->shown.main_feature = i;
}

static presto_status pad_features(presto__packet_batch *batch, presto_error *err) {
    for (size_t i = 0; i < batch->feature_count; i++) {
        presto_batch_feature *feature = &batch->features[i];
        const presto__rule *rule =
            presto__rules_find(batch->packet->rules, presto_span_of_text(feature->name));
        if (rule != NULL && rule->is_padded)
            PRESTO_TRY(presto__batch_pad(batch, rule, feature, err));
    }
    return PRESTO_OK;
}

presto_status presto__batch_assemble(presto__packet_batch *batch, presto_error *err) {
    if (batch->shown.rows == 0 || is_abandoned(batch))
        return PRESTO_OK;
    if (!batch->is_view) {
        PRESTO_TRY(batch->packet->part_count == 1 ? assemble_alone(batch, err)
                                                  : assemble_joined(batch, err));
        find_main(batch);
    }
    size_t found = batch->feature_count;
    if (batch->packet->rules->has_declared)
        PRESTO_TRY(presto__batch_add_absent(batch, err));
    if (batch->feature_count > found)
        find_main(batch);
    return batch->packet->rules->has_pads ? pad_features(batch, err) : PRESTO_OK;
}
