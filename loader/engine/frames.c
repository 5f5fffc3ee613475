/* SPDX-License-Identifier: Apache-2.0 */
/* Records output: the sample that a worker runs, serialized, compressed and framed. */
#include <stdlib.h>

#include <presto/example.h>

#include "../../base/clock_internal.h"
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

/* Frame what stands in `frames` from `start` + header on. */
static presto_status close_frame(presto__worker *worker, size_t start, presto_error *err) {
    presto__packet *packet = worker->packet;
    presto_buffer *frames = &packet->frames;
    size_t payload_bytes = frames->bytes - start - PRESTO_FRAME_HEADER_BYTES;
    if (payload_bytes > PRESTO_FRAME_MAX_PAYLOAD_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "record of %zu bytes, more than a TFRecord should hold", payload_bytes);
    PRESTO_TRY(presto_buffer_reserve(frames, PRESTO_FRAME_FOOTER_BYTES, err));
    uint8_t *frame = frames->data + start;
    presto_frame_write_header(payload_bytes, frame);
    presto_frame_write_footer(presto_span_of(frame + PRESTO_FRAME_HEADER_BYTES, payload_bytes),
                              frame + PRESTO_FRAME_HEADER_BYTES + payload_bytes);
    frames->bytes += PRESTO_FRAME_FOOTER_BYTES;
    packet->frame_bytes[worker->position] = (uint32_t)(frames->bytes - start);
    return PRESTO_OK;
}

/* The serialized sample of what worker->sample holds. */
static presto_status serialize(presto__worker *worker, presto_span *raw_out, presto_error *err) {
    worker->raw.bytes = 0;
    PRESTO_TRY(presto__schema_merge_sample(&worker->schema, worker->sample, err));
    PRESTO_TRY(presto_example_append(&worker->raw, worker->sample, err));
    *raw_out = presto_buffer_span(&worker->raw);
    return PRESTO_OK;
}

static presto_status append_frame(presto__worker *worker, presto_span stored, presto_span raw,
                                  presto_error *err) {
    presto_loader *loader = worker->loader;
    presto_buffer *frames = &worker->packet->frames;
    size_t start = frames->bytes;
    static const uint8_t header[PRESTO_FRAME_HEADER_BYTES];
    PRESTO_TRY(presto_buffer_append(frames, presto_span_of(header, sizeof header), err));
    presto_status status;
    uint64_t raw_bytes = raw.bytes;
    if (loader->pass_through && loader->same_codec) {
        status = presto_buffer_append(frames, stored, err);
    } else if (worker->codec != NULL) {
        if (!loader->pass_through) {
            status = serialize(worker, &raw, err);
            raw_bytes = worker->raw.bytes;
        } else {
            status = PRESTO_OK;
        }
        if (status == PRESTO_OK)
            status = presto_codec_compress(worker->codec, raw, frames, err);
    } else if (loader->pass_through) {
        status = presto_buffer_append(frames, raw, err);
    } else {
        status = presto__schema_merge_sample(&worker->schema, worker->sample, err);
        if (status == PRESTO_OK)
            status = presto_example_append(frames, worker->sample, err);
        raw_bytes = frames->bytes - start - PRESTO_FRAME_HEADER_BYTES;
    }
    if (status == PRESTO_OK)
        status = close_frame(worker, start, err);
    if (status < 0) {
        frames->bytes = start; /* nothing of a sample that failed stays */
        return status;
    }
    worker->packet->raw_bytes[worker->position] = (uint32_t)raw_bytes;
    return PRESTO_OK;
}

presto_status presto__worker_put_frame(presto__worker *worker, presto_span stored, presto_span raw,
                                       presto_error *err) {
    uint64_t start = worker->time_scale == 0 ? 0 : presto__clock_ns();
    presto_status status = append_frame(worker, stored, raw, err);
    if (worker->time_scale != 0)
        worker->account.encode_ns += (presto__clock_ns() - start) * worker->time_scale;
    return status;
}
