/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches: their arrays, rows put in place, and the end of a packet, where gaps are closed and
 * ragged rows found.
 *
 * The columns stand in the order of their names, whatever the order in which records carry their
 * features.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/checked.h>

#include "loader_internal.h"

#define BATCH_ALIGN ((uintptr_t)64)
#define SMALL_BYTES 4096 /* a copy costs less than to align it where it is */

static int compare_spans(presto_span a, presto_span b) {
    size_t common = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0)
        return order;
    return a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
}

/* The sample's features with a value, by name: their positions. Insertion sort, as they mostly are
 * sorted already. */
static size_t sort_features(const presto_sample *sample, size_t *order_out) {
    size_t count = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        if (!presto__feature_has_value(&sample->features[i]))
            continue;
        size_t at = count++;
        while (at > 0 && compare_spans(sample->features[order_out[at - 1]].name,
                                       sample->features[i].name) > 0) {
            order_out[at] = order_out[at - 1];
            at--;
        }
        order_out[at] = i;
    }
    return count;
}

/* Columns, public features and the order of the sample's features, all in the slab. */
static presto_status make_columns(presto__batch *batch, const presto_sample *sample,
                                  const size_t **order_out, presto_error *err) {
    size_t count = sample->feature_count;
    size_t each = sizeof *batch->columns + sizeof *batch->features + sizeof(size_t);
    size_t bytes;
    if (!presto_size_multiply(count, each, &bytes))
        return presto_fail_memory(err, UINT64_MAX);
    size_t batches_left = batch->packet->batch_count - (size_t)(batch - batch->packet->batches);
    uint8_t *memory = presto__slab_alloc(&batch->packet->slab, bytes, (bytes + 64) * batches_left);
    if (memory == NULL)
        return presto_fail_memory(err, bytes);
    batch->columns = (presto__column *)(void *)memory;
    batch->features = (presto_batch_feature *)(void *)(batch->columns + count);
    size_t *order = (size_t *)(void *)(batch->features + count);
    batch->column_count = sort_features(sample, order);
    *order_out = order;
    return PRESTO_OK;
}

/* The name as text: shared with the batch before it in the packet, where it has the same. */
static const char *name_of(presto__batch *batch, size_t column, presto_span name) {
    if (batch->first > 0) {
        const presto__batch *before = batch - 1;
        if (before->laid_out && column < before->column_count &&
            before->columns[column].name_bytes == name.bytes &&
            memcmp(before->features[column].name, name.data, name.bytes) == 0)
            return before->features[column].name;
    }
    char *copy = presto__slab_alloc(&batch->packet->slab, name.bytes + 1, name.bytes + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, name.data, name.bytes);
    copy[name.bytes] = '\0';
    return copy;
}

/* Spec of the column: one dimension, the rows, in front. */
static presto_status add_dimension(const presto_tensor_spec *row, size_t rows,
                                   presto_tensor_spec *spec_out, presto_error *err) {
    if (row->rank < 0 || row->rank >= PRESTO_MAX_RANK)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a feature of rank %d cannot be batched (at most %d)", row->rank,
                           PRESTO_MAX_RANK - 1);
    *spec_out = (presto_tensor_spec){.dtype = row->dtype, .rank = row->rank + 1};
    spec_out->dims[0] = (int64_t)rows;
    for (int i = 0; i < row->rank; i++)
        spec_out->dims[i + 1] = row->dims[i];
    return PRESTO_OK;
}

static presto_status describe_column(presto__batch *batch, size_t i, const presto_feature *feature,
                                     size_t rows, presto_error *err) {
    presto__column *column = &batch->columns[i];
    const presto_tensor_spec *row = &feature->tensor.spec;
    *column = (presto__column){
        .row = *row, .name_bytes = feature->name.bytes, .is_string = row->dtype == PRESTO_STRING};
    if (column->is_string)
        column->row_bytes = (size_t)presto_spec_elements(row) * sizeof(presto_span);
    else
        PRESTO_TRY(presto_spec_bytes(row, &column->row_bytes, err));
    const char *name = name_of(batch, i, feature->name);
    if (name == NULL)
        return presto_fail_memory(err, feature->name.bytes + 1);
    batch->features[i] = (presto_batch_feature){.name = name, .encoding = feature->encoding};
    return add_dimension(row, rows, &batch->features[i].tensor.spec, err);
}

static void set_main(presto__batch *batch, const size_t *order, size_t main) {
    for (size_t i = 0; i < batch->column_count; i++)
        if (order[i] == main)
            batch->shown.main_feature = i;
}

presto_status presto__batch_layout(presto__batch *batch, const presto_sample *sample, size_t main,
                                   presto_error *err) {
    const size_t *order;
    PRESTO_TRY(make_columns(batch, sample, &order, err));
    size_t batch_bytes = 0;
    for (size_t i = 0; i < batch->column_count; i++) {
        PRESTO_TRY(describe_column(batch, i, &sample->features[order[i]], batch->positions, err));
        size_t bytes;
        if (!presto_size_multiply(batch->columns[i].row_bytes, batch->positions, &bytes) ||
            !presto_size_add(batch_bytes, bytes + 64, &batch_bytes))
            return presto_fail_memory(err, UINT64_MAX);
    }
    presto__packet *packet = batch->packet;
    size_t batches_left = packet->batch_count - (size_t)(batch - packet->batches);
    size_t hint;
    if (!presto_size_multiply(batch_bytes + 512, batches_left, &hint))
        hint = batch_bytes;
    for (size_t i = 0; i < batch->column_count; i++) {
        presto__column *column = &batch->columns[i];
        size_t bytes = column->row_bytes * batch->positions;
        void *data = presto__slab_alloc(&packet->slab, bytes, hint);
        if (data == NULL)
            return presto_fail_memory(err, bytes);
        hint -= bytes;
        column->data = data;
        batch->features[i].tensor.data = data;
    }
    set_main(batch, order, main);
    batch->laid_out = true;
    return PRESTO_OK;
}

size_t presto__batch_column(const presto__batch *batch, const presto_feature *feature,
                            size_t hint) {
    size_t bytes = feature->name.bytes;
    for (size_t i = 0; i < batch->column_count; i++) {
        size_t at = (hint + i) % batch->column_count;
        if (batch->columns[at].name_bytes == bytes &&
            memcmp(batch->features[at].name, feature->name.data, bytes) == 0)
            return at;
    }
    return SIZE_MAX;
}

bool presto__batch_fits(const presto__batch *batch, const presto_sample *sample) {
    size_t matched = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        size_t at = presto__batch_column(batch, feature, matched);
        if (at == SIZE_MAX || batch->features[at].encoding != feature->encoding ||
            !presto_spec_equal(&batch->columns[at].row, &feature->tensor.spec))
            return false;
        matched++;
    }
    return matched == batch->column_count;
}

static presto_status put_strings(presto_span *to, const presto_span *from, size_t count,
                                 presto_arena *strings, uint64_t *bytes_out, presto_error *err) {
    for (size_t i = 0; i < count; i++) {
        uint8_t *copy = presto_arena_alloc(strings, from[i].bytes, 1);
        if (copy == NULL)
            return presto_fail_memory(err, from[i].bytes);
        if (from[i].bytes > 0)
            memcpy(copy, from[i].data, from[i].bytes);
        to[i] = presto_span_of(copy, from[i].bytes);
        *bytes_out += from[i].bytes;
    }
    return PRESTO_OK;
}

presto_status presto__batch_put(presto__batch *batch, size_t row, const presto_sample *sample,
                                presto__part *part, presto_error *err) {
    size_t matched = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        const presto__column *column =
            &batch->columns[presto__batch_column(batch, feature, matched++)];
        uint8_t *to = column->data + row * column->row_bytes;
        if (column->is_string) {
            PRESTO_TRY(put_strings((presto_span *)(void *)to, feature->tensor.strings,
                                   column->row_bytes / sizeof(presto_span), &part->strings,
                                   &part->delivered_bytes, err));
            continue;
        }
        if (to != feature->tensor.data && column->row_bytes > 0)
            memcpy(to, feature->tensor.data, column->row_bytes);
        part->delivered_bytes += column->row_bytes;
    }
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

/* Strings are spans, which are aligned as they are. */
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

presto_status presto__batch_view(presto__batch *batch, const presto_sample *sample, size_t main,
                                 bool aligned, presto_error *err) {
    const size_t *order;
    PRESTO_TRY(make_columns(batch, sample, &order, err));
    for (size_t i = 0; i < batch->column_count; i++) {
        const presto_feature *feature = &sample->features[order[i]];
        PRESTO_TRY(describe_column(batch, i, feature, 1, err));
        batch->features[i].tensor.data = feature->tensor.data;
        if (!aligned || is_aligned(feature))
            continue;
        size_t bytes = batch->columns[i].row_bytes;
        void *copy = presto__slab_alloc(&batch->packet->slab, bytes, bytes);
        if (copy == NULL)
            return presto_fail_memory(err, bytes);
        memcpy(copy, feature->tensor.data, bytes);
        batch->features[i].tensor.data = copy;
    }
    set_main(batch, order, main);
    batch->laid_out = true;
    return PRESTO_OK;
}

/* ---- the end of a packet ---- */

/* The schema of a batch's rows, for the message about a row that differs. */
static presto_status schema_of(const presto__batch *batch, presto__schema *schema_out) {
    presto_feature *features = calloc(batch->column_count + 1, sizeof *features);
    if (features == NULL)
        return PRESTO_ERR_MEMORY;
    for (size_t i = 0; i < batch->column_count; i++) {
        features[i].name = presto_span_of_text(batch->features[i].name);
        features[i].encoding = batch->features[i].encoding;
        features[i].tensor.spec = batch->columns[i].row;
    }
    presto_sample sample = {.features = features, .feature_count = batch->column_count};
    presto_status status = presto__schema_set(schema_out, &sample, NULL);
    free(features);
    return status;
}

typedef struct ragged_row {
    size_t at;
    const presto__schema *schema;
    const presto_error *place;
} ragged_row;

static void fail_ragged(presto__packet *packet, const presto__batch *batch, const ragged_row *row,
                        size_t first_at, const presto__schema *first) {
    char difference[PRESTO_ERROR_MESSAGE_BYTES];
    presto__schema_difference(row->schema, first, difference, sizeof difference);
    presto_error *error = &packet->ragged_error;
    presto_error_set(error, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
                     "sample %" PRIu64 " %s (sample %" PRIu64
                     "), but the samples of a batch must have the same shape",
                     packet->numbers[row->at], difference, packet->numbers[first_at]);
    error->record = row->place->record;
    presto_error_set_file(error, row->place->file);
    packet->failure = error;
    packet->failed_at = batch->first;
}

/* Several parts, one batch: each part knows its own first shape. */
static void find_ragged_parts(presto__packet *packet) {
    const presto__part *first = NULL;
    bool has_lost_rows = false;
    for (size_t i = 0; i < packet->part_count; i++) {
        const presto__part *part = &packet->parts[i];
        if (part->shape_at == SIZE_MAX || part->shape_at >= packet->failed_at)
            continue;
        if (first == NULL)
            first = part;
        ragged_row row = {.at = SIZE_MAX};
        if (!presto__schema_equal(&part->shape, &first->shape))
            row = (ragged_row){part->shape_at, &part->shape, &part->shape_place};
        else if (part->odd_at < packet->failed_at)
            row = (ragged_row){part->odd_at, &part->odd, &part->odd_place};
        if (row.at != SIZE_MAX) {
            fail_ragged(packet, &packet->batches[0], &row, first->shape_at, &first->shape);
            return;
        }
        has_lost_rows = has_lost_rows || part->off_layout;
    }
    /* A failure further on, in rows of another shape that came first: these rows have no place. */
    if (has_lost_rows)
        packet->failed_at = 0;
}

/* The first position of the batch that was not left out. */
static size_t first_row_of(const presto__packet *packet, const presto__batch *batch) {
    const presto__part *part = &packet->parts[0];
    size_t at = batch->first;
    for (size_t i = 0; i < part->fault_count; i++)
        if (part->faults[i].position == at)
            at++;
    return at;
}

/* One part, several batches: it stopped at the first odd row. */
static void find_ragged_batch(presto__packet *packet) {
    const presto__part *part = &packet->parts[0];
    if (part->odd_at >= packet->failed_at)
        return;
    const presto__batch *batch = &packet->batches[part->odd_at / packet->batches[0].positions];
    ragged_row row = {part->odd_at, &part->odd, &part->odd_place};
    presto__schema first = {0};
    if (schema_of(batch, &first) == PRESTO_OK)
        fail_ragged(packet, batch, &row, first_row_of(packet, batch), &first);
    presto__schema_done(&first);
}

static void find_failure(presto__packet *packet) {
    packet->failed_at = packet->count;
    packet->failure = NULL;
    for (size_t i = 0; i < packet->part_count && packet->failure == NULL; i++) {
        const presto__part *part = &packet->parts[i];
        if (!part->has_failed)
            continue;
        const presto__fault *fault = &part->faults[part->fault_count - 1];
        packet->failure = &fault->error;
        packet->failed_at = fault->position;
    }
}

/* Walks the faults of all parts in the order of positions. */
typedef struct fault_walk {
    const presto__packet *packet;
    size_t part, fault;
} fault_walk;

static size_t next_fault(const fault_walk *walk) {
    const presto__part *part = &walk->packet->parts[walk->part];
    return walk->part < walk->packet->part_count ? part->faults[walk->fault].position : SIZE_MAX;
}

static void settle(fault_walk *walk) {
    while (walk->part < walk->packet->part_count &&
           walk->fault == walk->packet->parts[walk->part].fault_count) {
        walk->part++;
        walk->fault = 0;
    }
}

static void move_row(presto__batch *batch, size_t to, size_t from) {
    presto__packet *packet = batch->packet;
    if (packet->frame_capacity > 0) {
        packet->frame_bytes[batch->first + to] = packet->frame_bytes[batch->first + from];
        packet->raw_bytes[batch->first + to] = packet->raw_bytes[batch->first + from];
    }
    packet->numbers[batch->first + to] = packet->numbers[batch->first + from];
    for (size_t i = 0; batch->laid_out && i < batch->column_count; i++) {
        const presto__column *column = &batch->columns[i];
        if (column->row_bytes > 0)
            memcpy(column->data + to * column->row_bytes, column->data + from * column->row_bytes,
                   column->row_bytes);
    }
}

/* Rows that stay, moved up over those left out. */
static void close_gaps(presto__batch *batch, fault_walk *walk) {
    size_t rows = 0;
    size_t end = batch->first + batch->positions;
    if (end > batch->packet->failed_at)
        end = batch->packet->failed_at > batch->first ? batch->packet->failed_at : batch->first;
    for (size_t at = batch->first; at < end; at++) {
        if (next_fault(walk) == at) {
            walk->fault++;
            settle(walk);
            continue;
        }
        if (rows != at - batch->first)
            move_row(batch, rows, at - batch->first);
        rows++;
    }
    batch->shown.rows = rows;
    batch->shown.skipped = end - batch->first - rows;
}

static void sum_frames(presto__batch *batch) {
    presto_batch *shown = &batch->shown;
    shown->frames.bytes = 0;
    shown->raw_bytes = 0;
    for (size_t i = 0; i < shown->rows; i++) {
        shown->frames.bytes += shown->frame_bytes[i];
        shown->raw_bytes += batch->packet->raw_bytes[batch->first + i];
    }
}

void presto__packet_finish(presto__packet *packet, presto_output_kind output) {
    find_failure(packet);
    if (output == PRESTO_OUTPUT_BATCHES) {
        if (packet->part_count > 1)
            find_ragged_parts(packet);
        else
            find_ragged_batch(packet);
    }
    fault_walk walk = {.packet = packet};
    settle(&walk);
    size_t frame_offset = 0;
    for (size_t i = 0; i < packet->batch_count; i++) {
        presto__batch *batch = &packet->batches[i];
        presto_batch *shown = &batch->shown;
        close_gaps(batch, &walk);
        shown->sample_numbers = packet->numbers + batch->first;
        if (output == PRESTO_OUTPUT_BATCHES) {
            shown->features = batch->features;
            shown->feature_count = batch->column_count;
            for (size_t j = 0; j < batch->column_count; j++)
                batch->features[j].tensor.spec.dims[0] = (int64_t)shown->rows;
        } else if (output == PRESTO_OUTPUT_RECORDS) {
            shown->frame_bytes = packet->frame_bytes + batch->first;
            shown->frames.data = packet->frames.data + frame_offset;
            sum_frames(batch);
            frame_offset += shown->frames.bytes;
        }
    }
}

void presto__packet_cut(presto__packet *packet, size_t position, const presto_error *failure,
                        presto_output_kind output) {
    packet->failure = failure;
    packet->failed_at = position;
    for (size_t i = 0; i < packet->batch_count; i++) {
        presto__batch *batch = &packet->batches[i];
        presto_batch *shown = &batch->shown;
        if (batch->first + batch->positions <= position)
            continue;
        size_t end = position > batch->first ? position : batch->first;
        size_t faults = 0;
        for (size_t j = 0; j < packet->part_count; j++)
            for (size_t k = 0; k < packet->parts[j].fault_count; k++)
                faults += packet->parts[j].faults[k].position >= batch->first &&
                          packet->parts[j].faults[k].position < end;
        shown->rows = end - batch->first - faults;
        shown->skipped = faults;
        for (size_t j = 0; output == PRESTO_OUTPUT_BATCHES && j < batch->column_count; j++)
            batch->features[j].tensor.spec.dims[0] = (int64_t)shown->rows;
        if (output == PRESTO_OUTPUT_RECORDS)
            sum_frames(batch);
    }
}
