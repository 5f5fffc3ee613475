/* SPDX-License-Identifier: Apache-2.0 */
/* Sequential reading with a sliding window, plain or through zlib. */
#include "../records_internal.h"
#include "shard_internal.h"

#include <stdlib.h>
#include <zlib.h>

#include "../../base/paths_internal.h"
#include "../frame/frame_internal.h"

#define READ_BYTES ((size_t)256 << 10)
#define AUTO_GZIP_BITS (15 + 16)
/* The bytes of a file may be checked in vain so many times for each class of sizes, and again as
 * they are passed over. Honest damage takes one or two. */
#define VAIN_FACTOR 4
#define CLASS_BITS 4 /* sizes up to 16 times as large are in one class */
#define CLASSES (64 / CLASS_BITS)

struct presto__byte_stream {
    presto__object object;
    const char *path;
    presto_file_compression compression;
    uint64_t file_offset; /* next byte of the file to be read */
    presto_buffer window; /* [head, bytes) are the stream's bytes from `base` on */
    size_t head;
    uint64_t base;
    bool ended;           /* nothing follows the window ... */
    presto_status failed; /* ... because of this, if < 0, described in `failure` */
    presto_error failure;
    uint64_t vain_bytes[CLASSES]; /* payloads that were checked and do not hold */
    uint8_t *input;               /* compressed bytes, READ_BYTES */
    z_stream zlib;
    bool zlib_ready;
    bool between_members;       /* a gzip member is complete; another may follow */
    presto_stop_fn should_stop; /* NULL: never */
    void *stop_user;
};

presto_status presto__byte_stream_new(presto__object object, const char *path,
                                      presto_file_compression compression,
                                      presto__byte_stream **stream_out, presto_error *err) {
    presto__byte_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return presto_fail_memory(err, sizeof *stream);
    stream->object = object;
    stream->path = path;
    stream->compression = compression;
    if (compression != PRESTO_FILE_PLAIN) {
        int bits = compression == PRESTO_FILE_GZIP ? AUTO_GZIP_BITS : MAX_WBITS;
        stream->input = malloc(READ_BYTES);
        stream->zlib_ready = stream->input != NULL && inflateInit2(&stream->zlib, bits) == Z_OK;
        if (!stream->zlib_ready) {
            presto__byte_stream_free(stream);
            return presto_fail_memory(err, READ_BYTES);
        }
    }
    *stream_out = stream;
    return PRESTO_OK;
}

void presto__byte_stream_free(presto__byte_stream *stream) {
    if (stream == NULL)
        return;
    if (stream->zlib_ready)
        inflateEnd(&stream->zlib);
    free(stream->input);
    presto_buffer_done(&stream->window);
    free(stream);
}

void presto__byte_stream_ask(presto__byte_stream *stream, presto_stop_fn should_stop, void *user) {
    stream->should_stop = should_stop;
    stream->stop_user = user;
}

void presto__byte_stream_set_object(presto__byte_stream *stream, presto__object object) {
    stream->object = object;
}

presto_status presto__byte_stream_rewind(presto__byte_stream *stream, presto_error *err) {
    if (stream->zlib_ready && inflateReset(&stream->zlib) != Z_OK)
        return presto_fail_memory(err, READ_BYTES);
    stream->zlib.avail_in = 0;
    stream->file_offset = 0;
    stream->window.bytes = 0;
    stream->head = 0;
    stream->base = 0;
    stream->ended = false;
    stream->failed = PRESTO_OK;
    memset(stream->vain_bytes, 0, sizeof stream->vain_bytes);
    stream->between_members = false;
    return PRESTO_OK;
}

uint64_t presto__byte_stream_base(const presto__byte_stream *stream) {
    return stream->base;
}

uint64_t presto__byte_stream_reach(const presto__byte_stream *stream) {
    return stream->base + (stream->window.bytes - stream->head);
}

uint64_t presto__byte_stream_file_bytes(const presto__byte_stream *stream) {
    return stream->file_offset;
}

void presto__byte_stream_forget(presto__byte_stream *stream, uint64_t offset) {
    uint64_t reach = presto__byte_stream_reach(stream);
    if (offset > reach)
        offset = reach;
    if (offset <= stream->base)
        return;
    stream->head += (size_t)(offset - stream->base);
    stream->base = offset;
    /* Moving the rest to the front pays once the rest is the smaller part. */
    size_t left = stream->window.bytes - stream->head;
    if (left == 0 || stream->head > (left < READ_BYTES ? READ_BYTES : left)) {
        if (left > 0)
            memmove(stream->window.data, stream->window.data + stream->head, left);
        stream->window.bytes = left;
        stream->head = 0;
    }
}

void presto__byte_stream_seek(presto__byte_stream *stream, uint64_t offset) {
    stream->window.bytes = stream->head = 0;
    stream->base = stream->file_offset = offset;
    stream->ended = false;
    stream->failed = PRESTO_OK;
}

static size_t class_of(uint64_t payload_bytes) {
    return (size_t)(63 - __builtin_clzll(payload_bytes | 1)) / CLASS_BITS;
}

bool presto__byte_stream_affords(const presto__byte_stream *stream, uint64_t offset,
                                 uint64_t payload_bytes) {
    uint64_t end = offset + payload_bytes, reach = presto__byte_stream_reach(stream);
    uint64_t vain = stream->vain_bytes[class_of(payload_bytes)] + payload_bytes;
    return vain / VAIN_FACTOR <= offset + (end > reach ? end : reach);
}

void presto__byte_stream_spend(presto__byte_stream *stream, uint64_t payload_bytes) {
    stream->vain_bytes[class_of(payload_bytes)] += payload_bytes;
}

uint64_t presto__byte_stream_skip_hole(presto__byte_stream *stream, uint64_t from, size_t keep) {
    if (stream->compression != PRESTO_FILE_PLAIN || stream->ended)
        return from;
    uint64_t data = presto__object_next_data(stream->object, from);
    if (data == UINT64_MAX || data < from + keep + READ_BYTES)
        return from;
    from = data - keep;
    presto__byte_stream_seek(stream, from);
    return from;
}

/* The stream ends here, for this reason. */
static presto_status end_with(presto__byte_stream *stream, presto_status failed) {
    stream->ended = true;
    stream->failed = failed;
    presto_error_set_file(&stream->failure, stream->path);
    return PRESTO_OK;
}

/* A read has failed. Whoever was asked to stop may go on another time. */
static presto_status fail_read(presto__byte_stream *stream, presto_status status,
                               presto_error *err) {
    if (status != PRESTO_ERR_STOPPED)
        return end_with(stream, status);
    if (err != NULL)
        *err = stream->failure;
    return status;
}

static presto_status fill_plain(presto__byte_stream *stream, size_t most, presto_error *err) {
    if (most < READ_BYTES)
        most = READ_BYTES;
    PRESTO_TRY(presto_buffer_reserve(&stream->window, most, err));
    size_t got;
    presto_status status =
        presto__read_at((presto__object_place){stream->object, stream->path, stream->file_offset},
                        stream->window.data + stream->window.bytes, most, &got, &stream->failure);
    if (status < 0)
        return fail_read(stream, status, err);
    stream->window.bytes += got;
    stream->file_offset += got;
    stream->ended = got < most;
    return PRESTO_OK;
}

static presto_status fail_inflate(presto__byte_stream *stream, presto_status status,
                                  const char *what) {
    presto_fail(&stream->failure, status, presto__byte_stream_reach(stream), "%s data: %s",
                presto_file_compression_name(stream->compression), what);
    return end_with(stream, status);
}

/* More compressed bytes. Sets `ended` if there are none. */
static presto_status refill_input(presto__byte_stream *stream, presto_error *err) {
    size_t got;
    presto_status status =
        presto__read_at((presto__object_place){stream->object, stream->path, stream->file_offset},
                        stream->input, READ_BYTES, &got, &stream->failure);
    if (status < 0)
        return fail_read(stream, status, err);
    stream->file_offset += got;
    stream->zlib.next_in = stream->input;
    stream->zlib.avail_in = (uInt)got;
    if (got == 0 && !stream->between_members)
        return fail_inflate(stream, PRESTO_ERR_TRUNCATED, "the file ends too early");
    if (got == 0)
        stream->ended = true;
    return PRESTO_OK;
}

/* Another gzip member, padding zeros, or junk. */
static presto_status start_member(presto__byte_stream *stream) {
    if (stream->compression == PRESTO_FILE_GZIP && *stream->zlib.next_in == 0) {
        stream->zlib.next_in++;
        stream->zlib.avail_in--;
        return PRESTO_OK;
    }
    if (stream->compression == PRESTO_FILE_GZIP && *stream->zlib.next_in == 0x1f &&
        inflateReset(&stream->zlib) == Z_OK) {
        stream->between_members = false;
        return PRESTO_OK;
    }
    return fail_inflate(stream, PRESTO_ERR_CORRUPT, "bytes after its end");
}

static presto_status inflate_some(presto__byte_stream *stream, presto_error *err) {
    PRESTO_TRY(presto_buffer_reserve(&stream->window, READ_BYTES, err));
    size_t room = stream->window.capacity - stream->window.bytes;
    if (room > UINT32_MAX)
        room = UINT32_MAX;
    stream->zlib.next_out = stream->window.data + stream->window.bytes;
    stream->zlib.avail_out = (uInt)room;
    int result = inflate(&stream->zlib, Z_NO_FLUSH);
    stream->window.bytes += room - stream->zlib.avail_out;
    if (result == Z_STREAM_END)
        stream->between_members = true;
    else if (result == Z_MEM_ERROR)
        return presto_fail_memory(err, READ_BYTES);
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return fail_inflate(stream, PRESTO_ERR_CORRUPT,
                            stream->zlib.msg != NULL ? stream->zlib.msg : "not to be decompressed");
    return PRESTO_OK;
}

static presto_status fill_inflate(presto__byte_stream *stream, presto_error *err) {
    if (stream->zlib.avail_in == 0) {
        PRESTO_TRY(refill_input(stream, err));
        if (stream->ended)
            return PRESTO_OK;
    }
    return stream->between_members ? start_member(stream) : inflate_some(stream, err);
}

presto_status presto__byte_stream_view(presto__byte_stream *stream, uint64_t offset, size_t count,
                                       presto_span *view_out, presto_error *err) {
    if (count > UINT64_MAX - offset)
        count = (size_t)(UINT64_MAX - offset);
    while (!stream->ended && presto__byte_stream_reach(stream) < offset + count) {
        uint64_t missing = offset + count - presto__byte_stream_reach(stream);
        if (stream->should_stop != NULL && stream->should_stop(stream->stop_user))
            return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
        PRESTO_TRY(stream->compression == PRESTO_FILE_PLAIN
                       ? fill_plain(stream, (size_t)missing, err)
                       : fill_inflate(stream, err));
    }
    uint64_t reach = presto__byte_stream_reach(stream);
    uint64_t from = offset < reach ? offset : reach;
    size_t there = reach - from < count ? (size_t)(reach - from) : count;
    *view_out =
        presto_span_of(stream->window.data + stream->head + (size_t)(from - stream->base), there);
    if (there < count && stream->failed < 0) {
        if (err != NULL)
            *err = stream->failure;
        return stream->failed;
    }
    return PRESTO_OK;
}

/* ---- what a file is ---- */

/* Does the decompressed beginning hold a record's header? Only the first few bytes of the file
 * are read. */
static bool inflates_to_record(presto_span head, int bits) {
    uint8_t out[PRESTO_FRAME_HEADER_BYTES];
    z_stream zlib = {.next_in = (Bytef *)(uintptr_t)head.data, .avail_in = (uInt)head.bytes};
    if (inflateInit2(&zlib, bits) != Z_OK)
        return false;
    zlib.next_out = out;
    zlib.avail_out = sizeof out;
    int result = inflate(&zlib, Z_SYNC_FLUSH);
    size_t got = sizeof out - zlib.avail_out;
    inflateEnd(&zlib);
    uint64_t bytes;
    if (result == Z_STREAM_END && got == 0)
        return true;
    return got == sizeof out &&
           presto__frame_parse_header(presto_span_of(out, got), 0,
                                      &(presto__frame_rules){UINT64_MAX, PRESTO_CHECK_HEADER},
                                      &bytes, NULL) == PRESTO_OK;
}

presto_file_compression presto__detect_compression(presto_span head) {
    uint64_t bytes;
    if (presto__frame_parse_header(head, 0, &(presto__frame_rules){UINT64_MAX, PRESTO_CHECK_HEADER},
                                   &bytes, NULL) == PRESTO_OK)
        return PRESTO_FILE_PLAIN;
    if (head.bytes >= 3 && memcmp(head.data, "\x1f\x8b\x08", 3) == 0)
        return PRESTO_FILE_GZIP;
    /* zlib's two bytes are a weak sign; a record behind them confirms it. */
    if (head.bytes >= 2 && (head.data[0] & 0x0f) == 8 &&
        (head.data[0] * 256 + head.data[1]) % 31 == 0 && inflates_to_record(head, MAX_WBITS))
        return PRESTO_FILE_ZLIB;
    return PRESTO_FILE_PLAIN;
}

bool presto__is_tfrecord(presto_span head) {
    uint64_t bytes;
    if (presto__frame_parse_header(head, 0, &(presto__frame_rules){UINT64_MAX, PRESTO_CHECK_HEADER},
                                   &bytes, NULL) == PRESTO_OK)
        return true;
    switch (presto__detect_compression(head)) {
    case PRESTO_FILE_PLAIN:
        return false;
    case PRESTO_FILE_GZIP:
        return inflates_to_record(head, AUTO_GZIP_BITS);
    case PRESTO_FILE_ZLIB:
        return inflates_to_record(head, MAX_WBITS);
    }
    return false;
}

presto_file_compression presto__compression_by_name(const char *path) {
    if (presto__ends_alike(path, ".gz") || presto__ends_alike(path, ".gzip"))
        return PRESTO_FILE_GZIP;
    if (presto__ends_alike(path, ".deflate") || presto__ends_alike(path, ".zlib") ||
        presto__ends_alike(path, ".zz"))
        return PRESTO_FILE_ZLIB;
    return PRESTO_FILE_PLAIN;
}

const char *presto_file_compression_name(presto_file_compression compression) {
    switch (compression) {
    case PRESTO_FILE_PLAIN:
        return "none";
    case PRESTO_FILE_GZIP:
        return "gzip";
    case PRESTO_FILE_ZLIB:
        return "zlib";
    }
    return "?";
}
