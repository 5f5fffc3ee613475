/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4 and lz4hc records: one LZ4 frame with its content size, independent blocks and no checksums
 * of its own (the TFRecord frame has one). Such frames are decoded block by block, directly into
 * the output. Other LZ4 frames go through the library's streaming decoder.
 */
#include "codec_internal.h"

#if PRESTO_HAVE_LZ4

#include <lz4.h>
#include <lz4frame.h>
#include <lz4hc.h>
#include <stdlib.h>

#include "../frame/frame_internal.h"

/* One byte of a block decodes to at most 255 bytes. */
#define MAX_RATIO 255
#define BLOCK_STORED 0x80000000U

typedef struct lz4_state {
    LZ4F_cctx *compressor; /* made at first use: readers need none */
    LZ4F_dctx *decompressor;
    LZ4F_preferences_t preferences;
} lz4_state;

static void close_state(presto_codec *codec) {
    lz4_state *state = codec->state;
    if (state == NULL)
        return;
    LZ4F_freeCompressionContext(state->compressor);
    LZ4F_freeDecompressionContext(state->decompressor);
    free(state);
}

static presto_status open_state(presto_codec *codec, presto_error *err) {
    PRESTO_TRY(presto__codec_make_state(codec, sizeof(lz4_state), err));
    lz4_state *state = codec->state;
    state->preferences.compressionLevel = codec->spec.level;
    state->preferences.autoFlush = 1;
    state->preferences.frameInfo.blockMode = LZ4F_blockIndependent;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&state->decompressor, LZ4F_VERSION)))
        return presto_fail_memory(err, 256);
    return PRESTO_OK;
}

static LZ4F_blockSizeID_t block_size_for(size_t bytes) {
    if (bytes <= (64U << 10))
        return LZ4F_max64KB;
    if (bytes <= (256U << 10))
        return LZ4F_max256KB;
    if (bytes <= (1U << 20))
        return LZ4F_max1MB;
    return LZ4F_max4MB;
}

static void set_size(LZ4F_preferences_t *preferences, size_t bytes) {
    preferences->frameInfo.contentSize = bytes;
    preferences->frameInfo.blockSizeID = block_size_for(bytes);
}

static size_t bound(const presto_codec *codec, size_t bytes) {
    const lz4_state *state = codec->state;
    LZ4F_preferences_t preferences = state->preferences;
    set_size(&preferences, bytes);
    return LZ4F_HEADER_SIZE_MAX + LZ4F_compressBound(bytes, &preferences);
}

static presto_status fail_compress(size_t code, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "lz4: %s",
                       LZ4F_getErrorName(code));
}

static presto_status compress(presto_codec *codec, presto_span in, uint8_t *out, size_t *bytes_io,
                              presto_error *err) {
    lz4_state *state = codec->state;
    if (state->compressor == NULL &&
        LZ4F_isError(LZ4F_createCompressionContext(&state->compressor, LZ4F_VERSION)))
        return presto_fail_memory(err, 16384);
    set_size(&state->preferences, in.bytes);
    /* LZ4F takes a content size of 0 as "unknown". So the frame of an empty record has no size;
     * it needs none. */
    const LZ4F_compressOptions_t stable = {.stableSrc = 1};
    const size_t room = *bytes_io;
    size_t used = LZ4F_compressBegin(state->compressor, out, room, &state->preferences);
    if (LZ4F_isError(used))
        return fail_compress(used, err);
    size_t more = 0;
    if (in.bytes > 0)
        more = LZ4F_compressUpdate(state->compressor, out + used, room - used, in.data, in.bytes,
                                   &stable);
    if (LZ4F_isError(more))
        return fail_compress(more, err);
    used += more;
    more = LZ4F_compressEnd(state->compressor, out + used, room - used, &stable);
    if (LZ4F_isError(more))
        return fail_compress(more, err);
    *bytes_io = used + more;
    return PRESTO_OK;
}

/* Independent blocks without checksums are separated only by their sizes. */
static presto_status decode_blocks(presto_codec *codec, presto_span in, uint8_t *out, size_t bytes,
                                   presto_error *err) {
    const uint8_t *at = in.data;
    size_t left = in.bytes, got = 0;
    for (;;) {
        if (left < 4)
            return presto__codec_corrupt(codec, "ends within a block", err);
        uint32_t word = presto__load_u32(at);
        at += 4;
        left -= 4;
        if (word == 0)
            break;
        size_t block = word & ~BLOCK_STORED;
        if (block > left)
            return presto__codec_corrupt(codec, "ends within a block", err);
        if ((word & BLOCK_STORED) != 0) {
            if (block > bytes - got)
                return presto__codec_corrupt(codec, "larger than it says", err);
            memcpy(out + got, at, block);
            got += block;
        } else {
            size_t room = bytes - got;
            int decoded =
                LZ4_decompress_safe((const char *)at, (char *)out + got, (int)block,
                                    room > LZ4_MAX_INPUT_SIZE ? LZ4_MAX_INPUT_SIZE : (int)room);
            if (decoded < 0)
                return presto__codec_corrupt(codec, "bad block", err);
            got += (size_t)decoded;
        }
        at += block;
        left -= block;
    }
    if (left != 0)
        return presto__codec_corrupt(codec, "bytes after its end", err);
    if (got != bytes)
        return presto__codec_corrupt(codec, "shorter than it says", err);
    return PRESTO_OK;
}

static const char *decode_step(presto_codec *codec, presto_span *in, uint8_t *out, size_t *room_io,
                               bool *end_out) {
    lz4_state *state = codec->state;
    size_t used = in->bytes;
    size_t hint = LZ4F_decompress(state->decompressor, out, room_io, in->data, &used, NULL);
    if (LZ4F_isError(hint))
        return LZ4F_getErrorName(hint);
    *in = presto_span_of(in->data + used, in->bytes - used);
    *end_out = hint == 0;
    return NULL;
}

static presto_status decompress(presto_codec *codec, presto_span in, presto_span *out_out,
                                presto_error *err) {
    lz4_state *state = codec->state;
    LZ4F_frameInfo_t info;
    size_t header = in.bytes;
    LZ4F_resetDecompressionContext(state->decompressor);
    size_t hint = LZ4F_getFrameInfo(state->decompressor, &info, in.data, &header);
    if (LZ4F_isError(hint))
        return presto__codec_corrupt(codec, LZ4F_getErrorName(hint), err);
    bool simple = info.frameType == LZ4F_frame && info.blockMode == LZ4F_blockIndependent &&
                  info.contentChecksumFlag == LZ4F_noContentChecksum &&
                  info.blockChecksumFlag == LZ4F_noBlockChecksum && info.contentSize != 0;
    if (!simple) {
        LZ4F_resetDecompressionContext(state->decompressor);
        return presto__codec_decode_stream(codec, decode_step, in, out_out, err);
    }
    if (info.contentSize > (uint64_t)in.bytes * MAX_RATIO)
        return presto__codec_corrupt(codec, "says more than lz4 can hold", err);
    uint8_t *out;
    PRESTO_TRY(presto__codec_output(codec, info.contentSize, &out, err));
    PRESTO_TRY(decode_blocks(codec, presto_span_of(in.data + header, in.bytes - header), out,
                             (size_t)info.contentSize, err));
    *out_out = presto_span_of(out, (size_t)info.contentSize);
    return PRESTO_OK;
}

const presto_codec_type presto__codec_lz4 = {
    .name = "lz4",
    .level_min = -100,
    .level_max = 0,
    .level_default = 0,
    .max_input_bytes = PTRDIFF_MAX / 2,
    .open = open_state,
    .close = close_state,
    .bound = bound,
    .compress = compress,
    .decompress = decompress,
};

const presto_codec_type presto__codec_lz4hc = {
    .name = "lz4hc",
    .level_min = LZ4HC_CLEVEL_MIN,
    .level_max = LZ4HC_CLEVEL_MAX,
    .level_default = LZ4HC_CLEVEL_DEFAULT,
    .max_input_bytes = PTRDIFF_MAX / 2,
    .open = open_state,
    .close = close_state,
    .bound = bound,
    .compress = compress,
    .decompress = decompress,
};

#else

const presto_codec_type presto__codec_lz4 = {.name = "lz4", .unsupported = "built without liblz4"};
const presto_codec_type presto__codec_lz4hc = {.name = "lz4hc",
                                               .unsupported = "built without liblz4"};

#endif
