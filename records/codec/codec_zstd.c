/* SPDX-License-Identifier: Apache-2.0 */
/* zstd records: one frame with its content size, optionally against a dictionary of the dataset. */
#include "../records_internal.h"
#include "codec_internal.h"

#if PRESTO_HAVE_ZSTD

#include <stdlib.h>
#include <zdict.h>
#include <zstd.h>

/* A block of at most 128 KiB takes at least four bytes, so no frame exceeds this ratio. */
#define MAX_RATIO ((uint64_t)128 * 1024)

typedef struct zstd_state {
    ZSTD_CCtx *compressor; /* made at first use: readers need none */
    ZSTD_CDict *compress_dictionary;
    ZSTD_DCtx *decompressor;
    ZSTD_DDict *decompress_dictionary;
} zstd_state;

static void close_state(presto_codec *codec) {
    zstd_state *state = codec->state;
    if (state == NULL)
        return;
    ZSTD_freeCCtx(state->compressor);
    ZSTD_freeCDict(state->compress_dictionary);
    ZSTD_freeDCtx(state->decompressor);
    ZSTD_freeDDict(state->decompress_dictionary);
    free(state);
}

static presto_status open_state(presto_codec *codec, presto_error *err) {
    PRESTO_TRY(presto__codec_make_state(codec, sizeof(zstd_state), err));
    zstd_state *state = codec->state;
    state->decompressor = ZSTD_createDCtx();
    if (state->decompressor == NULL)
        return presto_fail_memory(err, 128 << 10);
    presto_span dictionary = codec->spec.dictionary;
    if (codec->spec.wants_dictionary) {
        state->decompress_dictionary = ZSTD_createDDict(dictionary.data, dictionary.bytes);
        if (state->decompress_dictionary == NULL)
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                               "the dictionary of %zu byte%s is not one of zstd", dictionary.bytes,
                               presto_plural(dictionary.bytes));
        if (ZSTD_isError(ZSTD_DCtx_refDDict(state->decompressor, state->decompress_dictionary)))
            return presto_fail_memory(err, dictionary.bytes);
    }
    return PRESTO_OK;
}

static presto_status make_compressor(presto_codec *codec, presto_error *err) {
    zstd_state *state = codec->state;
    presto_span dictionary = codec->spec.dictionary;
    ZSTD_CCtx *compressor = ZSTD_createCCtx();
    if (compressor == NULL)
        return presto_fail_memory(err, 1 << 20);
    size_t result = ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, codec->spec.level);
    if (!ZSTD_isError(result) && codec->spec.wants_dictionary) {
        if (state->compress_dictionary == NULL)
            state->compress_dictionary =
                ZSTD_createCDict(dictionary.data, dictionary.bytes, codec->spec.level);
        if (state->compress_dictionary == NULL) {
            ZSTD_freeCCtx(compressor);
            return presto_fail_memory(err, dictionary.bytes);
        }
        result = ZSTD_CCtx_refCDict(compressor, state->compress_dictionary);
    }
    if (ZSTD_isError(result)) {
        ZSTD_freeCCtx(compressor);
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "zstd: %s",
                           ZSTD_getErrorName(result));
    }
    state->compressor = compressor;
    return PRESTO_OK;
}

static size_t bound(const presto_codec *codec, size_t bytes) {
    (void)codec;
    return ZSTD_compressBound(bytes);
}

static presto_status compress(presto_codec *codec, presto_span in, uint8_t *out, size_t *bytes_io,
                              presto_error *err) {
    zstd_state *state = codec->state;
    if (state->compressor == NULL)
        PRESTO_TRY(make_compressor(codec, err));
    size_t result = ZSTD_compress2(state->compressor, out, *bytes_io, in.data, in.bytes);
    if (ZSTD_isError(result))
        return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "zstd: %s",
                           ZSTD_getErrorName(result));
    *bytes_io = result;
    return PRESTO_OK;
}

static const char *decode_step(presto_codec *codec, presto_span *in, uint8_t *out, size_t *room_io,
                               bool *end_out) {
    zstd_state *state = codec->state;
    ZSTD_inBuffer input = {in->data, in->bytes, 0};
    ZSTD_outBuffer output = {out, *room_io, 0};
    size_t result = ZSTD_decompressStream(state->decompressor, &output, &input);
    if (ZSTD_isError(result))
        return ZSTD_getErrorName(result);
    *in = presto_span_of(in->data + input.pos, in->bytes - input.pos);
    *room_io = output.pos;
    *end_out = result == 0;
    return NULL;
}

static presto_status decompress(presto_codec *codec, presto_span in, presto_span *out_out,
                                presto_error *err) {
    zstd_state *state = codec->state;
    unsigned long long says = ZSTD_getFrameContentSize(in.data, in.bytes);
    if (says == ZSTD_CONTENTSIZE_ERROR)
        return presto__codec_corrupt(codec, "no zstd frame", err);
    if (says == ZSTD_CONTENTSIZE_UNKNOWN) { /* as streaming writers do */
        ZSTD_DCtx_reset(state->decompressor, ZSTD_reset_session_only);
        return presto__codec_decode_stream(codec, decode_step, in, out_out, err);
    }
    if (says > (uint64_t)in.bytes * MAX_RATIO)
        return presto__codec_corrupt(codec, "says more than zstd can hold", err);
    uint8_t *out;
    PRESTO_TRY(presto__codec_output(codec, says, &out, err));
    size_t got = ZSTD_decompressDCtx(state->decompressor, out, (size_t)says, in.data, in.bytes);
    if (ZSTD_isError(got))
        return presto__codec_corrupt(codec, ZSTD_getErrorName(got), err);
    if (got != says)
        return presto__codec_corrupt(codec, "shorter than it says", err);
    *out_out = presto_span_of(out, got);
    return PRESTO_OK;
}

static presto_status train(const presto__codec_samples *samples, size_t max_bytes,
                           presto_buffer *dictionary_out, presto_error *err) {
    size_t start = dictionary_out->bytes;
    size_t count = samples->count < UINT32_MAX ? samples->count : UINT32_MAX;
    PRESTO_TRY(presto_buffer_reserve(dictionary_out, max_bytes, err));
    size_t got = ZDICT_trainFromBuffer(dictionary_out->data + start, max_bytes, samples->bytes.data,
                                       samples->sample_bytes, (unsigned)count);
    if (ZDICT_isError(got))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "no zstd dictionary can be learnt from %zu sample%s of %zu byte%s: %s",
                           count, presto_plural(count), samples->bytes.bytes,
                           presto_plural(samples->bytes.bytes), ZDICT_getErrorName(got));
    dictionary_out->bytes = start + got;
    return PRESTO_OK;
}

const presto_codec_type presto__codec_zstd = {
    .name = "zstd",
    .level_min = -100,
    .level_max = 22,
    .level_default = 3,
    .takes_dictionary = true,
    .takes_delta = true,
    .max_input_bytes = PTRDIFF_MAX / 2,
    .open = open_state,
    .close = close_state,
    .bound = bound,
    .compress = compress,
    .decompress = decompress,
    .train = train,
};

#else

const presto_codec_type presto__codec_zstd = {.name = "zstd",
                                              .unsupported = "built without libzstd"};

#endif
