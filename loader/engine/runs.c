/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that are handed on as they are stored, many at a time. Records output copies their
 * frames, CRCs and all, in one piece. Batches get their payloads. What has no run (damaged, alone,
 * the first row of a batch) goes the way of other samples, which also knows what to do about it.
 */
#include "../../base/clock_internal.h"
#include "workers_internal.h"

/* Shorter runs are timed like single samples. */
#define TIMED_RUN 16

bool presto__loader_takes_runs(const presto_loader *loader) {
    const presto_loader_options *options = &loader->options;
    const presto_source *source = loader->source;
    if (source->ops->run == NULL || loader->step_count > 0 || options->cache.bytes > 0 ||
        loader->delivery == PRESTO__DELIVER_VIEWS)
        return false;
    switch (options->output) {
    case PRESTO_OUTPUT_RECORDS: /* the stored CRC is copied: it must be known to be correct */
        return loader->delivery == PRESTO__DELIVER_STORED && source->is_checked;
    case PRESTO_OUTPUT_BATCHES:
        return source->is_raw && options->batch_samples > 1 && options->feature_count == 0 &&
               options->pad_count == 0;
    case PRESTO_OUTPUT_COUNT:
        return source->is_raw && options->feature_count == 0;
    }
    return false;
}

/*
 * Room for a run of `count` frames and for those that follow in its packet, if these are like it.
 * Packets of like samples then take the same memory, wherever their runs begin and end; by this the
 * loader knows how many it may make.
 */
static presto_status reserve_frames(presto__worker *worker, size_t count, size_t bytes) {
    presto__packet *packet = worker->packet;
    presto_buffer *frames = &packet->frames;
    if (bytes <= frames->capacity - frames->bytes)
        return PRESTO_OK;
    size_t mean = bytes / count + 1;
    size_t left = packet->count - worker->position;
    return presto_buffer_reserve(frames, left * (mean + mean / 16), NULL);
}

/* Append the frames of the run, as they stand in the file. Returns how many. */
static size_t copy_frames(presto__worker *worker, const presto_record *records, size_t count) {
    presto__packet *packet = worker->packet;
    size_t fitting = 0;
    while (fitting < count && records[fitting].payload.bytes <= PRESTO_FRAME_MAX_PAYLOAD_BYTES)
        fitting++;
    if (fitting == 0)
        return 0;
    const presto_span last = records[fitting - 1].payload;
    const uint8_t *start = records[0].payload.data - PRESTO_FRAME_HEADER_BYTES;
    const uint8_t *end = last.data + last.bytes + PRESTO_FRAME_FOOTER_BYTES;
    size_t bytes = (size_t)(end - start);
    if (reserve_frames(worker, fitting, bytes) < 0 ||
        presto_buffer_append(&packet->frames, presto_span_of(start, bytes), NULL) < 0)
        return 0;
    uint32_t *frame_bytes = packet->frame_bytes + worker->position;
    uint32_t *raw_bytes = packet->raw_bytes + worker->position;
    for (size_t i = 0; i < fitting; i++) {
        raw_bytes[i] = (uint32_t)records[i].payload.bytes;
        frame_bytes[i] = (uint32_t)(records[i].payload.bytes + PRESTO_FRAME_OVERHEAD_BYTES);
    }
    return fitting;
}

static size_t put_rows(presto__worker *worker, const presto_record *records, size_t count) {
    presto__place place = presto__worker_row(worker);
    return presto__fill_put_records(&place, records, count) ? count : 0;
}

static size_t count_bytes(presto__worker *worker, const presto_record *records, size_t count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += records[i].payload.bytes;
    worker->part->delivered_bytes += bytes;
    return count;
}

size_t presto__worker_put_run(presto__worker *worker, size_t most) {
    presto_loader *loader = worker->loader;
    const presto_output_kind output = loader->options.output;
    const presto_record *records = NULL;
    if (output == PRESTO_OUTPUT_BATCHES) {
        const presto__packet_batch *batch = worker->batch;
        size_t left = batch->first + batch->positions - worker->position;
        most = left < most ? left : most;
    }
    size_t count = loader->source->ops->run(worker->reader, worker->index, most, &records);
    if (count == 0)
        return 0;
    uint64_t scale = count >= TIMED_RUN ? 1 : worker->time_scale;
    uint64_t start = scale == 0 ? 0 : presto__clock_ns();
    if (output == PRESTO_OUTPUT_COUNT)
        return count_bytes(worker, records, count);
    count = output == PRESTO_OUTPUT_RECORDS ? copy_frames(worker, records, count)
                                            : put_rows(worker, records, count);
    if (scale != 0) {
        uint64_t spent = (presto__clock_ns() - start) * scale;
        *(output == PRESTO_OUTPUT_RECORDS ? &worker->account.encode_ns
                                          : &worker->account.batch_ns) += spent;
    }
    return count;
}
