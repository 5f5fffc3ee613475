/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc-lz4 and blosc-zstd records: one c-blosc chunk, which has its own size, element size and
 * shuffle. The calls without global state are used, with one thread each: the loader has the
 * threads.
 */
#include "codec_internal.h"

#if PRESTO_HAVE_BLOSC

#include <blosc.h>

#include "../frame/frame_internal.h"

static size_t bound(const presto_codec *codec, size_t bytes) {
    (void)codec;
    return bytes + BLOSC_MAX_OVERHEAD;
}

static presto_status compress(presto_codec *codec, presto_span in, uint8_t *out, size_t *bytes_io,
                              presto_error *err) {
    const presto_codec_spec *spec = &codec->spec;
    bool is_lz4 = spec->type == &presto__codec_blosc_lz4;
    const char *compressor = is_lz4 ? BLOSC_LZ4_COMPNAME : BLOSC_ZSTD_COMPNAME;
    size_t type_bytes = spec->type_bytes != 0 ? spec->type_bytes : 1;
    int shuffle = spec->bitshuffle ? BLOSC_BITSHUFFLE : BLOSC_SHUFFLE;
    int got = blosc_compress_ctx(spec->level, shuffle, type_bytes, in.bytes, in.data, out,
                                 *bytes_io, compressor, 0, 1);
    if (got <= 0)
        return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "blosc failed to compress");
    *bytes_io = (size_t)got;
    return PRESTO_OK;
}

static presto_status decompress(presto_codec *codec, presto_span in, presto_span *out_out,
                                presto_error *err) {
    if (in.bytes < BLOSC_MIN_HEADER_LENGTH)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, PRESTO_NO_OFFSET,
                           "blosc record of only %zu byte%s", in.bytes, presto_plural(in.bytes));
    /* The checks of blosc_cbuffer_validate, without its calls; blosc itself does the other
     * checks. */
    size_t bytes = presto__load_u32(in.data + 4);
    if (in.data[0] != BLOSC_VERSION_FORMAT || presto__load_u32(in.data + 12) != in.bytes ||
        bytes > BLOSC_MAX_BUFFERSIZE)
        return presto__codec_corrupt(codec, "bad chunk header", err);
    uint8_t *out;
    PRESTO_TRY(presto__codec_output(codec, bytes, &out, err));
    if (bytes == 0) {
        *out_out = presto_span_of(out, 0);
        return PRESTO_OK;
    }
    int got = blosc_decompress_ctx(in.data, out, bytes, 1);
    if (got < 0 || (size_t)got != bytes)
        return presto__codec_corrupt(codec, "bad chunk", err);
    *out_out = presto_span_of(out, bytes);
    return PRESTO_OK;
}

const presto_codec_type presto__codec_blosc_lz4 = {
    .name = "blosc-lz4",
    .level_min = 0,
    .level_max = 9,
    .level_default = 5,
    .takes_bitshuffle = true,
    .max_input_bytes = BLOSC_MAX_BUFFERSIZE,
    .bound = bound,
    .compress = compress,
    .decompress = decompress,
};

const presto_codec_type presto__codec_blosc_zstd = {
    .name = "blosc-zstd",
    .level_min = 0,
    .level_max = 9,
    .level_default = 1,
    .takes_bitshuffle = true,
    .max_input_bytes = BLOSC_MAX_BUFFERSIZE,
    .bound = bound,
    .compress = compress,
    .decompress = decompress,
};

#else

const presto_codec_type presto__codec_blosc_lz4 = {.name = "blosc-lz4",
                                                   .unsupported = "built without libblosc"};
const presto_codec_type presto__codec_blosc_zstd = {.name = "blosc-zstd",
                                                    .unsupported = "built without libblosc"};

#endif
