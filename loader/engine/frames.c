/* SPDX-License-Identifier: Apache-2.0 */
/* Records output: the sample that a worker runs, serialized, compressed and framed. */
#include <stdlib.h>

#include <presto/example.h>

#include "../../base/clock_internal.h"
#include "../../records/records_internal.h"
#include "workers_internal.h"

presto_status presto__packet_prepare_frames(presto__packet *packet, presto_error *err) {
    if (packet->frame_capacity >= packet->count)
        return PRESTO_OK;
    uint32_t *frame_bytes = realloc(packet->frame_bytes, packet->count * sizeof *frame_bytes);
    if (frame_bytes == NULL)
        return presto_fail_memory(err, packet->count * sizeof *frame_bytes);
    packet->frame_bytes = frame_bytes;
    uint32_t *raw_bytes = realloc(packet->raw_bytes, packet->count * sizeof *raw_bytes);
    if (raw_bytes == NULL)
        return presto_fail_memory(err, packet->count * sizeof *raw_bytes);
    packet->raw_bytes = raw_bytes;
    packet->frame_capacity = packet->count;
    return PRESTO_OK;
}

/* Make a frame of what is in `frames` from `start` + header on. */
static presto_status close_frame(presto__worker *worker, size_t start, presto_error *err) {
    presto__packet *packet = worker->packet;
    presto_buffer *frames = &packet->frames;
    size_t payload_bytes = frames->bytes - start - PRESTO_FRAME_HEADER_BYTES;
    if (payload_bytes > PRESTO_FRAME_MAX_PAYLOAD_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "record of %zu bytes, more than a TFRecord should hold", payload_bytes);
    PRESTO_TRY(presto_buffer_reserve(frames, PRESTO_FRAME_FOOTER_BYTES, err));
    uint8_t *frame = frames->data + start;
    presto__frame_write_header(payload_bytes, frame);
    presto__frame_write_footer(presto_span_of(frame + PRESTO_FRAME_HEADER_BYTES, payload_bytes),
                               frame + PRESTO_FRAME_HEADER_BYTES + payload_bytes);
    frames->bytes += PRESTO_FRAME_FOOTER_BYTES;
    packet->frame_bytes[worker->position] = (uint32_t)(frames->bytes - start);
    return PRESTO_OK;
}

/* The payload of the sample that has been run; *raw_bytes_out: its size before the codec. */
static presto_status append_sample(presto__worker *worker, uint64_t *raw_bytes_out,
                                   presto_error *err) {
    presto_buffer *frames = &worker->packet->frames;
    presto_buffer *raw = worker->codec == NULL ? frames : &worker->raw;
    worker->raw.bytes = 0;
    size_t start = raw->bytes;
    PRESTO_TRY(presto__schema_merge_sample(&worker->schema, worker->sample, err));
    PRESTO_TRY(presto_example_append(raw, worker->sample, err));
    *raw_bytes_out = raw->bytes - start;
    if (worker->codec == NULL)
        return PRESTO_OK;
    return presto__codec_compress(worker->codec, presto_buffer_span(raw), frames, err);
}

/* The payload of a record, stored as it is or with another codec. */
static presto_status append_record(presto__worker *worker, const presto__stored_record *record,
                                   presto_error *err) {
    presto_buffer *frames = &worker->packet->frames;
    if (worker->loader->delivery == PRESTO__DELIVER_STORED)
        return presto_buffer_append(frames, record->stored, err);
    if (worker->codec == NULL)
        return presto_buffer_append(frames, record->raw, err);
    return presto__codec_compress(worker->codec, record->raw, frames, err);
}

static presto_status append_frame(presto__worker *worker, const presto__stored_record *record,
                                  presto_error *err) {
    presto_buffer *frames = &worker->packet->frames;
    size_t start = frames->bytes;
    static const uint8_t header[PRESTO_FRAME_HEADER_BYTES];
    PRESTO_TRY(presto_buffer_append(frames, presto_span_of(header, sizeof header), err));
    uint64_t raw_bytes = record != NULL ? record->raw.bytes : 0;
    presto_status status = record != NULL ? append_record(worker, record, err)
                                          : append_sample(worker, &raw_bytes, err);
    if (status == PRESTO_OK)
        status = close_frame(worker, start, err);
    if (status < 0) {
        frames->bytes = start; /* remove what the failed sample has written */
        return status;
    }
    worker->packet->raw_bytes[worker->position] = (uint32_t)raw_bytes;
    return PRESTO_OK;
}

presto_status presto__worker_put_frame(presto__worker *worker, const presto__stored_record *record,
                                       presto_error *err) {
    uint64_t start = worker->time_scale == 0 ? 0 : presto__clock_ns();
    presto_status status = append_frame(worker, record, err);
    if (worker->time_scale != 0)
        worker->account.encode_ns += (presto__clock_ns() - start) * worker->time_scale;
    return status;
}
