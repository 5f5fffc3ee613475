/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing one TFRecord file: frames are gathered in a buffer and written in large pieces, wherever it
 * is stored. It has no name before it is whole. The offsets for the index and the CRC of the file are collected on the way.
 */
#include <presto/shard.h>

#include <stdlib.h>
#include <zlib.h>

#include "../../base/options_internal.h"
#include "../../storage/outlet_internal.h"
#include "../frame/frame_internal.h"
#include "../records_internal.h"
#include "shard_internal.h"

/*
 * Files are written in pieces of this size, which start at multiples of it. So the kernel keeps
 * them in a few large folios, and reading them from the page cache is a quarter faster than with
 * odd pieces. The size is small enough that the file's CRC finds the bytes still in the processor's
 * cache.
 */
#define PIECE_BYTES ((size_t)256 << 10)
/* Frames up to this size are made in the pending buffer; bytes behind a piece are moved to its
 * front. */
#define SMALL_BYTES (PIECE_BYTES / 2)

struct presto__shard_writer {
    char *path;
    presto__outlet *outlet;
    presto__shard_writer_options options;
    presto_status failed; /* < 0: an append failed, the file cannot be finished */
    presto__shard_summary summary;
    uint64_t offset;       /* in the framed stream */
    presto_buffer pending; /* framed bytes not yet passed on, less than a piece */
    presto_buffer offsets; /* one u64 a record */
    presto_buffer output;  /* of a piece: compressed bytes not yet written */
    z_stream zlib;
    bool zlib_ready;
    bool index_begun;
};

void presto__shard_writer_options_init(presto__shard_writer_options *options, size_t struct_bytes) {
    const presto__shard_writer_options defaults = {.compression = PRESTO_FILE_PLAIN,
                                                   .compression_level = 6,
                                                   .write_index = true,
                                                   .sync = true};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

static presto_status start(presto__shard_writer *writer, const char *path, presto_error *err) {
    writer->path = strdup(path);
    if (writer->path == NULL)
        return presto_fail_memory(err, strlen(path));
    PRESTO_TRY(presto_buffer_reserve(&writer->pending, PIECE_BYTES + SMALL_BYTES, err));
    if (writer->options.compression != PRESTO_FILE_PLAIN) {
        int bits = writer->options.compression == PRESTO_FILE_GZIP ? MAX_WBITS + 16 : MAX_WBITS;
        int result = deflateInit2(&writer->zlib, writer->options.compression_level, Z_DEFLATED,
                                  bits, 8, Z_DEFAULT_STRATEGY);
        if (result == Z_STREAM_ERROR)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "level %d of %s: it has 1 to 9", writer->options.compression_level,
                               presto_file_compression_name(writer->options.compression));
        if (result != Z_OK)
            return presto_fail_memory(err, PIECE_BYTES);
        writer->zlib_ready = true;
        PRESTO_TRY(presto_buffer_reserve(&writer->output, PIECE_BYTES, err));
        writer->zlib.next_out = writer->output.data;
        writer->zlib.avail_out = PIECE_BYTES;
    }
    return presto__outlet_open(path, writer->options.sync, &writer->outlet, err);
}

presto_status presto__shard_writer_open(const char *path,
                                        const presto__shard_writer_options *options,
                                        presto__shard_writer **writer_out, presto_error *err) {
    presto__shard_writer_options taken;
    presto__shard_writer_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    presto__shard_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return presto_fail_memory(err, sizeof *writer);
    writer->options = taken;
    presto_status status = start(writer, path, err);
    if (status < 0) {
        presto__shard_writer_free(writer);
        return status;
    }
    *writer_out = writer;
    return PRESTO_OK;
}

/* ---- bytes on their way to the file ---- */

static presto_status write_out(presto__shard_writer *writer, presto_span bytes, presto_error *err) {
    if (bytes.bytes == 0)
        return PRESTO_OK;
    writer->summary.crc32c = presto_crc32c(writer->summary.crc32c, bytes.data, bytes.bytes);
    writer->summary.stored_bytes += bytes.bytes;
    return presto__outlet_append(writer->outlet, bytes, err);
}

/* Z_FINISH: nothing follows. */
static presto_status deflate_out(presto__shard_writer *writer, presto_span bytes, int flush,
                                 presto_error *err) {
    z_stream *zlib = &writer->zlib;
    int result = Z_OK;
    zlib->next_in = (Bytef *)(uintptr_t)bytes.data;
    zlib->avail_in = (uInt)bytes.bytes;
    while (zlib->avail_in > 0 || (flush == Z_FINISH && result != Z_STREAM_END)) {
        result = deflate(zlib, flush);
        if (zlib->avail_out > 0 && result != Z_STREAM_END)
            continue;
        PRESTO_TRY(write_out(
            writer, presto_span_of(writer->output.data, PIECE_BYTES - zlib->avail_out), err));
        zlib->next_out = writer->output.data;
        zlib->avail_out = PIECE_BYTES;
    }
    return PRESTO_OK;
}

/* At most a piece; less only at the end. */
static presto_status hand_on(presto__shard_writer *writer, presto_span bytes, presto_error *err) {
    if (writer->options.compression == PRESTO_FILE_PLAIN)
        return write_out(writer, bytes, err);
    return deflate_out(writer, bytes, Z_NO_FLUSH, err);
}

/* The first pending piece, if it is complete. */
static presto_status hand_on_pending(presto__shard_writer *writer, presto_error *err) {
    presto_buffer *pending = &writer->pending;
    if (pending->bytes < PIECE_BYTES)
        return PRESTO_OK;
    PRESTO_TRY(hand_on(writer, presto_span_of(pending->data, PIECE_BYTES), err));
    pending->bytes -= PIECE_BYTES;
    memmove(pending->data, pending->data + PIECE_BYTES, pending->bytes);
    return PRESTO_OK;
}

static presto_status put(presto__shard_writer *writer, presto_span bytes, presto_error *err) {
    presto_buffer *pending = &writer->pending;
    while (bytes.bytes > 0) {
        size_t take = PIECE_BYTES - pending->bytes;
        if (take > bytes.bytes)
            take = bytes.bytes;
        if (take == PIECE_BYTES) { /* no copy */
            PRESTO_TRY(hand_on(writer, presto_span_of(bytes.data, take), err));
        } else {
            memcpy(pending->data + pending->bytes, bytes.data, take);
            pending->bytes += take;
            PRESTO_TRY(hand_on_pending(writer, err));
        }
        bytes.data += take;
        bytes.bytes -= take;
    }
    return PRESTO_OK;
}

/* A large record, piece by piece: both CRCs are computed while a piece is in the cache. */
static presto_status put_large(presto__shard_writer *writer, presto_span payload,
                               presto_error *err) {
    uint8_t header[PRESTO_FRAME_HEADER_BYTES], footer[PRESTO_FRAME_FOOTER_BYTES];
    uint32_t crc = 0;
    presto__frame_write_header(payload.bytes, header);
    PRESTO_TRY(put(writer, presto_span_of(header, sizeof header), err));
    while (payload.bytes > 0) {
        size_t bytes = PIECE_BYTES - writer->pending.bytes;
        if (bytes > payload.bytes)
            bytes = payload.bytes;
        presto_span piece = presto_span_of(payload.data, bytes);
        crc = presto_crc32c(crc, piece.data, piece.bytes);
        PRESTO_TRY(put(writer, piece, err));
        payload.data += bytes;
        payload.bytes -= bytes;
    }
    presto__store_u32(footer, presto_crc32c_mask(crc));
    return put(writer, presto_span_of(footer, sizeof footer), err);
}

/* ---- records ---- */

static presto_status note_record(presto__shard_writer *writer, uint64_t frame_bytes,
                                 presto_error *err) {
    if (writer->options.write_index) {
        presto_buffer *offsets = &writer->offsets;
        if (offsets->capacity - offsets->bytes < sizeof writer->offset)
            PRESTO_TRY(presto_buffer_reserve(offsets, sizeof writer->offset, err));
        memcpy(offsets->data + offsets->bytes, &writer->offset, sizeof writer->offset);
        offsets->bytes += sizeof writer->offset;
    }
    writer->offset += frame_bytes;
    writer->summary.records++;
    writer->summary.payload_bytes += frame_bytes - PRESTO_FRAME_OVERHEAD_BYTES;
    return PRESTO_OK;
}

static presto_status append(presto__shard_writer *writer, presto_span payload, presto_error *err) {
    size_t frame_bytes = payload.bytes + PRESTO_FRAME_OVERHEAD_BYTES;
    PRESTO_TRY(note_record(writer, frame_bytes, err));
    if (frame_bytes > SMALL_BYTES)
        return put_large(writer, payload, err);
    PRESTO_TRY(presto__frame_append(&writer->pending, payload, err));
    return hand_on_pending(writer, err);
}

static presto_status refuse(const presto__shard_writer *writer, presto_error *err) {
    return presto_fail(err, writer->failed, PRESTO_NO_OFFSET, "writing has failed before");
}

presto_status presto__shard_writer_append(presto__shard_writer *writer, presto_span payload,
                                          presto_error *err) {
    if (writer->failed < 0)
        return refuse(writer, err);
    if (payload.bytes > PRESTO_FRAME_MAX_PAYLOAD_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, writer->offset, "record of %zu bytes, limit %ju",
                           payload.bytes, (uintmax_t)PRESTO_FRAME_MAX_PAYLOAD_BYTES);
    writer->failed = append(writer, payload, err);
    return writer->failed;
}

presto_status presto__shard_writer_append_frames(presto__shard_writer *writer, presto_span frames,
                                                 const uint32_t *frame_bytes, size_t count,
                                                 presto_error *err) {
    if (writer->failed < 0)
        return refuse(writer, err);
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (frame_bytes[i] < PRESTO_FRAME_OVERHEAD_BYTES)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "frame of %u byte%s",
                               frame_bytes[i], presto_plural(frame_bytes[i]));
        total += frame_bytes[i];
    }
    if (total != frames.bytes)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "frames of %ju bytes in %zu",
                           (uintmax_t)total, frames.bytes);
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < count && status == PRESTO_OK; i++)
        status = note_record(writer, frame_bytes[i], err);
    if (status == PRESTO_OK)
        status = put(writer, frames, err);
    writer->failed = status;
    return status;
}

/* ---- the end ---- */

static presto_status write_index(presto__shard_writer *writer, presto_error *err) {
    presto__object object;
    PRESTO_TRY(presto_buffer_append(&writer->offsets,
                                    presto_span_of(&writer->offset, sizeof writer->offset), err));
    char *path = presto__index_name(writer->path);
    if (path == NULL)
        return presto_fail_memory(err, strlen(writer->path));
    presto_status status = presto__outlet_look(writer->outlet, &object, err);
    if (status < 0) {
        free(path);
        return status;
    }
    const presto__index_data data = {.object = object,
                                     .path = writer->path,
                                     .bytes = writer->summary.stored_bytes,
                                     .plain = writer->options.compression == PRESTO_FILE_PLAIN};
    const presto__index_contents contents = {
        .data = &data,
        .knows_file_crc = true,
        .file_crc32c = writer->summary.crc32c,
        .offsets = (const uint64_t *)(const void *)writer->offsets.data,
        .count = writer->summary.records,
    };
    writer->index_begun = true;
    status = presto__index_write(path, &contents, writer->options.sync, err);
    presto__object_close(&object);
    free(path);
    return status;
}

/* Everything up to the name. A failure here leaves nothing under it. */
static presto_status complete(presto__shard_writer *writer, presto_error *err) {
    PRESTO_TRY(hand_on(writer, presto_buffer_span(&writer->pending), err));
    if (writer->options.compression != PRESTO_FILE_PLAIN)
        PRESTO_TRY(deflate_out(writer, presto_span_of(NULL, 0), Z_FINISH, err));
    PRESTO_TRY(presto__outlet_seal(writer->outlet, writer->summary.crc32c, err));
    return writer->options.write_index ? write_index(writer, err) : PRESTO_OK;
}

static void remove_index(const char *path) {
    char *index = presto__index_name(path);
    if (index != NULL)
        (void)presto__object_remove(index, NULL);
    free(index);
}

presto_status presto__shard_writer_finish_sized(presto__shard_writer *writer,
                                                presto__shard_summary *summary_out,
                                                presto_error *err) {
    if (writer->failed < 0)
        return refuse(writer, err);
    PRESTO_TRY(presto__result_check(summary_out, err));
    presto_status status = complete(writer, err);
    /* An index of an earlier file of this name would not fit, but should not stay here. */
    if (status == PRESTO_OK && !writer->options.write_index)
        remove_index(writer->path);
    if (status == PRESTO_OK)
        status = presto__outlet_finish(writer->outlet, err);
    if (status < 0) {
        /* In a bucket, an index that this writer has not written may be of somebody else's shard. */
        bool is_ours = writer->index_begun || !presto__path_is_remote(writer->path);
        if (writer->options.write_index && is_ours)
            remove_index(writer->path);
        writer->failed = status;
        return status;
    }
    writer->failed = PRESTO_ERR_STOPPED;
    presto__result_give(summary_out, &writer->summary, sizeof writer->summary);
    return PRESTO_OK;
}

void presto__shard_writer_free(presto__shard_writer *writer) {
    if (writer == NULL)
        return;
    presto__outlet_free(writer->outlet);
    if (writer->zlib_ready)
        deflateEnd(&writer->zlib);
    presto_buffer_done(&writer->pending);
    presto_buffer_done(&writer->offsets);
    presto_buffer_done(&writer->output);
    free(writer->path);
    free(writer);
}
