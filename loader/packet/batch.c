/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finishes a packet: finds where it failed, closes gaps, and makes its batches.
 */
#include <stdlib.h>

#include "columns_internal.h"

static void find_failure(presto__packet *packet) {
    packet->failed_at = packet->count;
    packet->failure = NULL;
    for (size_t i = 0; i < packet->part_count && packet->failure == NULL; i++) {
        const presto__packet_part *part = &packet->parts[i];
        if (!part->has_failed)
            continue;
        const presto__failed_sample *failed = &part->failed[part->failed_count - 1];
        packet->failure = &failed->error;
        packet->failed_at = failed->position;
    }
}

/* Walks the positions that all parts have left out, in their order. */
typedef struct gap_walk {
    const presto__packet *packet;
    size_t part, gap;
} gap_walk;

static size_t next_gap(const gap_walk *walk) {
    const presto__packet_part *part = &walk->packet->parts[walk->part];
    return walk->part < walk->packet->part_count ? part->gaps[walk->gap] : SIZE_MAX;
}

static void settle(gap_walk *walk) {
    while (walk->part < walk->packet->part_count &&
           walk->gap == walk->packet->parts[walk->part].gap_count) {
        walk->part++;
        walk->gap = 0;
    }
}

static void move_row(presto__packet_batch *batch, size_t to, size_t from) {
    presto__packet *packet = batch->packet;
    if (packet->frame_capacity > 0) {
        packet->frame_bytes[batch->first + to] = packet->frame_bytes[batch->first + from];
        packet->raw_bytes[batch->first + to] = packet->raw_bytes[batch->first + from];
    }
    packet->numbers[batch->first + to] = packet->numbers[batch->first + from];
}

/* Move rows up over those left out. */
static void close_gaps(presto__packet_batch *batch, gap_walk *walk) {
    size_t rows = 0;
    size_t end = batch->first + batch->positions;
    if (end > batch->packet->failed_at)
        end = batch->packet->failed_at > batch->first ? batch->packet->failed_at : batch->first;
    for (size_t at = batch->first; at < end; at++) {
        if (next_gap(walk) == at) {
            walk->gap++;
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

static void sum_frames(presto__packet_batch *batch) {
    presto_batch *shown = &batch->shown;
    shown->frames.bytes = 0;
    shown->raw_bytes = 0;
    for (size_t i = 0; i < shown->rows; i++) {
        shown->frames.bytes += shown->frame_bytes[i];
        shown->raw_bytes += batch->packet->raw_bytes[batch->first + i];
    }
}

/* If a feature has another type than before, the whole batch fails, also the rows before. */
static void find_conflict(presto__packet *packet, const presto_source *source) {
    presto__packet_batch *batch = &packet->batches[0];
    if (packet->part_count > 1) {
        const presto__column *column;
        presto_dtype dtype;
        size_t at = presto__batch_conflict(batch, &column, &dtype);
        if (at < packet->failed_at) {
            (void)presto__fail_dtype(column, dtype, &packet->own_error);
            source->ops->locate(source, packet->numbers[at], &packet->own_error);
            packet->failure = &packet->own_error;
            packet->failed_at = at;
        }
    }
    if (packet->failure == NULL || packet->failure->status != PRESTO_ERR_RAGGED)
        return;
    batch = &packet->batches[packet->failed_at / packet->batch_rows];
    packet->failed_at = batch->first;
}

/* Make the features of the batch. If that fails, the packet ends before it. */
static void show_features(presto__packet_batch *batch) {
    presto__packet *packet = batch->packet;
    presto_error error;
    if (presto__batch_assemble(batch, &error) < 0) {
        packet->own_error = error;
        packet->failure = &packet->own_error;
        packet->failed_at = batch->first;
        batch->shown.rows = 0;
        batch->feature_count = 0;
    }
    batch->shown.features = batch->features;
    batch->shown.feature_count = batch->feature_count;
}

void presto__packet_shorten(presto__packet *packet) {
    size_t rows = packet->batch_rows;
    packet->count = packet->end;
    packet->batch_count = packet->count / rows + (packet->count % rows != 0);
    if (packet->batch_count > 0) {
        presto__packet_batch *last = &packet->batches[packet->batch_count - 1];
        last->positions = packet->count - last->first;
    }
}

void presto__packet_finish(presto__packet *packet, const presto_source *source,
                           presto_output_kind output) {
    find_failure(packet);
    if (output == PRESTO_OUTPUT_BATCHES)
        find_conflict(packet, source);
    gap_walk walk = {.packet = packet};
    settle(&walk);
    size_t frame_offset = 0;
    for (size_t i = 0; i < packet->batch_count; i++) {
        presto__packet_batch *batch = &packet->batches[i];
        presto_batch *shown = &batch->shown;
        close_gaps(batch, &walk);
        shown->sample_numbers = packet->numbers + batch->first;
        if (output == PRESTO_OUTPUT_BATCHES) {
            show_features(batch);
        } else if (output == PRESTO_OUTPUT_RECORDS) {
            shown->frame_bytes = packet->frame_bytes + batch->first;
            shown->frames.data = packet->frames.data + frame_offset;
            sum_frames(batch);
            frame_offset += shown->frames.bytes;
        }
    }
}

/* Keep only the first `rows` rows of a feature. */
static void trim(presto_batch_feature *feature, size_t rows) {
    int64_t *first = &feature->tensor.spec.dims[0];
    *first = (int64_t)rows;
    if (feature->layout == PRESTO_LAYOUT_DENSE)
        return;
    if (feature->row_offsets != NULL)
        *first = feature->row_offsets[rows];
    *first = feature->offsets[*first];
}

void presto__packet_cut(presto__packet *packet, size_t position, const presto_error *failure,
                        presto_output_kind output) {
    packet->failure = failure;
    packet->failed_at = position;
    for (size_t i = 0; i < packet->batch_count; i++) {
        presto__packet_batch *batch = &packet->batches[i];
        presto_batch *shown = &batch->shown;
        if (batch->first + batch->positions <= position)
            continue;
        size_t kept = position > batch->first ? position - batch->first : 0;
        shown->skipped =
            kept == 0 ? 0 : presto__packet_gaps(packet, batch->first, batch->first + kept);
        shown->rows = kept - shown->skipped;
        for (size_t j = 0; output == PRESTO_OUTPUT_BATCHES && j < batch->feature_count; j++)
            trim(&batch->features[j], shown->rows);
        if (output == PRESTO_OUTPUT_RECORDS)
            sum_frames(batch);
    }
}
