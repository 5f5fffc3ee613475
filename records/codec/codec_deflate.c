/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib (RFC 1950) and gzip (RFC 1952) records by libdeflate, which needs the size of the output in
 * advance. gzip stores it in its trailer. zlib does not: if sizes repeat (tensors), the size of the
 * previous record is tried first. Otherwise the record is decoded into scratch memory that grows,
 * and copied.
 */
#include "codec_internal.h"

#include <libdeflate.h>
#include <stdlib.h>

/* Deflate makes at most 1032 bytes out of one (RFC 1951: 258 bytes a match of 2 bits). */
#define MAX_RATIO 1032
#define GZIP_LEAST_BYTES 18

typedef struct deflate_state {
    struct libdeflate_compressor *compressor; /* made at first use: readers need none */
    struct libdeflate_decompressor *decompressor;
} deflate_state;

static void close_state(presto_codec *codec) {
    deflate_state *state = codec->state;
    if (state == NULL)
        return;
    libdeflate_free_compressor(state->compressor);
    libdeflate_free_decompressor(state->decompressor);
    free(state);
}

static presto_status open_state(presto_codec *codec, presto_error *err) {
    PRESTO_TRY(presto__codec_make_state(codec, sizeof(deflate_state), err));
    deflate_state *state = codec->state;
    state->decompressor = libdeflate_alloc_decompressor();
    if (state->decompressor == NULL)
        return presto_fail_memory(err, 16384);
    return PRESTO_OK;
}

static presto_status make_compressor(presto_codec *codec, presto_error *err) {
    deflate_state *state = codec->state;
    if (state->compressor == NULL)
        state->compressor = libdeflate_alloc_compressor(codec->spec.level);
    return state->compressor != NULL ? PRESTO_OK : presto_fail_memory(err, 1 << 20);
}

static size_t zlib_bound(const presto_codec *codec, size_t bytes) {
    (void)codec;
    return libdeflate_zlib_compress_bound(NULL, bytes);
}

static size_t gzip_bound(const presto_codec *codec, size_t bytes) {
    (void)codec;
    return libdeflate_gzip_compress_bound(NULL, bytes);
}

static presto_status zlib_compress(presto_codec *codec, presto_span in, uint8_t *out,
                                   size_t *bytes_io, presto_error *err) {
    PRESTO_TRY(make_compressor(codec, err));
    deflate_state *state = codec->state;
    *bytes_io = libdeflate_zlib_compress(state->compressor, in.data, in.bytes, out, *bytes_io);
    return PRESTO_OK;
}

static presto_status gzip_compress(presto_codec *codec, presto_span in, uint8_t *out,
                                   size_t *bytes_io, presto_error *err) {
    PRESTO_TRY(make_compressor(codec, err));
    deflate_state *state = codec->state;
    *bytes_io = libdeflate_gzip_compress(state->compressor, in.data, in.bytes, out, *bytes_io);
    return PRESTO_OK;
}

static presto_status result_status(const presto_codec *codec, enum libdeflate_result result,
                                   presto_error *err) {
    switch (result) {
    case LIBDEFLATE_SUCCESS:
        return PRESTO_OK;
    case LIBDEFLATE_SHORT_OUTPUT:
    case LIBDEFLATE_INSUFFICIENT_SPACE:
        return presto__codec_corrupt(codec, "larger than it says", err);
    case LIBDEFLATE_BAD_DATA:
        break;
    }
    return presto__codec_corrupt(codec, "bad deflate data or checksum", err);
}

/*
 * Decode one stream or member that starts at `in`, append it to `scratch` and grow that. *used_out:
 * bytes of `in` that were read.
 */
static presto_status decode_growing(presto_codec *codec, bool is_gzip, presto_span in,
                                    size_t *used_out, presto_error *err) {
    deflate_state *state = codec->state;
    presto_buffer *scratch = &codec->scratch;
    uint64_t most = (uint64_t)in.bytes * MAX_RATIO + 64;
    uint64_t left = codec->max_bytes - scratch->bytes;
    uint64_t ceiling = most < left ? most : left;
    uint64_t room = (uint64_t)in.bytes * 4 + 64;
    if (room < codec->last_bytes)
        room = codec->last_bytes;
    for (;;) {
        if (room > ceiling)
            room = ceiling;
        PRESTO_TRY(presto__codec_reserve_scratch(codec, (size_t)room, err));
        uint64_t space = scratch->capacity - scratch->bytes;
        if (space > ceiling)
            space = ceiling;
        size_t got;
        enum libdeflate_result result =
            (is_gzip ? libdeflate_gzip_decompress_ex : libdeflate_zlib_decompress_ex)(
                state->decompressor, in.data, in.bytes, scratch->data + scratch->bytes,
                (size_t)space, used_out, &got);
        if (result == LIBDEFLATE_SUCCESS) {
            scratch->bytes += got;
            return PRESTO_OK;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
            return result_status(codec, result, err);
        if (space == ceiling && ceiling == left)
            return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                               "%s record decompresses to more than %ju byte%s",
                               codec->spec.type->name, (uintmax_t)codec->max_bytes,
                               presto_plural(codec->max_bytes));
        if (space == ceiling)
            return presto__codec_corrupt(codec, "larger than deflate can make it", err);
        room = space * 2;
    }
}

/* Return a copy of the scratch memory, and remember its size for the next record. */
static presto_status take_scratch(presto_codec *codec, presto_span *out_out, presto_error *err) {
    PRESTO_TRY(presto__codec_take_scratch(codec, out_out, err));
    codec->steady = out_out->bytes == codec->last_bytes;
    codec->last_bytes = out_out->bytes;
    return PRESTO_OK;
}

static presto_status zlib_decompress(presto_codec *codec, presto_span in, presto_span *out_out,
                                     presto_error *err) {
    deflate_state *state = codec->state;
    size_t used, got;
    if (codec->steady && codec->last_bytes <= codec->max_bytes) {
        uint8_t *out;
        PRESTO_TRY(presto__codec_output(codec, codec->last_bytes, &out, err));
        enum libdeflate_result result = libdeflate_zlib_decompress_ex(
            state->decompressor, in.data, in.bytes, out, codec->last_bytes, &used, &got);
        if (result == LIBDEFLATE_SUCCESS && used == in.bytes) {
            codec->steady = got == codec->last_bytes;
            codec->last_bytes = got;
            *out_out = presto_span_of(out, got);
            return PRESTO_OK;
        }
        codec->steady = false;
    }
    codec->scratch.bytes = 0;
    PRESTO_TRY(decode_growing(codec, false, in, &used, err));
    if (used != in.bytes)
        return presto__codec_corrupt(codec, "bytes after its end", err);
    return take_scratch(codec, out_out, err);
}

/* Several members in one record are legal gzip; no trailer has the total size then. */
static presto_status gzip_members(presto_codec *codec, presto_span in, presto_span *out_out,
                                  presto_error *err) {
    codec->scratch.bytes = 0;
    while (in.bytes > 0) {
        size_t used;
        PRESTO_TRY(decode_growing(codec, true, in, &used, err));
        in.data += used;
        in.bytes -= used;
    }
    return take_scratch(codec, out_out, err);
}

static presto_status gzip_decompress(presto_codec *codec, presto_span in, presto_span *out_out,
                                     presto_error *err) {
    deflate_state *state = codec->state;
    if (in.bytes < GZIP_LEAST_BYTES)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, PRESTO_NO_OFFSET,
                           "gzip record of only %zu byte%s", in.bytes, presto_plural(in.bytes));
    const uint8_t *trailer = in.data + in.bytes - 4;
    uint32_t says = (uint32_t)trailer[0] | (uint32_t)trailer[1] << 8 | (uint32_t)trailer[2] << 16 |
                    (uint32_t)trailer[3] << 24;
    if (says <= codec->max_bytes && says <= (uint64_t)in.bytes * MAX_RATIO) {
        uint8_t *out;
        size_t used, got;
        PRESTO_TRY(presto__codec_output(codec, says, &out, err));
        enum libdeflate_result result = libdeflate_gzip_decompress_ex(
            state->decompressor, in.data, in.bytes, out, says, &used, &got);
        if (result == LIBDEFLATE_SUCCESS && used == in.bytes) {
            *out_out = presto_span_of(out, got);
            return PRESTO_OK;
        }
    }
    return gzip_members(codec, in, out_out, err);
}

const presto_codec_type presto__codec_zlib = {
    .name = "zlib",
    .is_tensorflow = true,
    .level_min = 0,
    .level_max = 12,
    .level_default = 6,
    .max_input_bytes = PTRDIFF_MAX / 2,
    .open = open_state,
    .close = close_state,
    .bound = zlib_bound,
    .compress = zlib_compress,
    .decompress = zlib_decompress,
};

const presto_codec_type presto__codec_gzip = {
    .name = "gzip",
    .is_tensorflow = true,
    .level_min = 0,
    .level_max = 12,
    .level_default = 6,
    .max_input_bytes = PTRDIFF_MAX / 2,
    .open = open_state,
    .close = close_state,
    .bound = gzip_bound,
    .compress = gzip_compress,
    .decompress = gzip_decompress,
};
