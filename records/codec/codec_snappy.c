/* SPDX-License-Identifier: Apache-2.0 */
/* snappy records: one raw block (its varint length first), as snappy's own API makes it. */
#include "codec_internal.h"

#if PRESTO_HAVE_SNAPPY

#include <snappy-c.h>

#include "../../base/bytes_internal.h"

/* A copy of 64 bytes takes three bytes. */
#define MAX_RATIO 24

static size_t bound(const presto_codec *codec, size_t bytes) {
    (void)codec;
    return snappy_max_compressed_length(bytes);
}

static presto_status compress(presto_codec *codec, presto_span in, uint8_t *out, size_t *bytes_io,
                              presto_error *err) {
    (void)codec;
    if (snappy_compress((const char *)in.data, in.bytes, (char *)out, bytes_io) != SNAPPY_OK)
        return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "snappy failed to compress");
    return PRESTO_OK;
}

static presto_status decompress(presto_codec *codec, presto_span in, presto_span *out_out,
                                presto_error *err) {
    const uint8_t *at = in.data;
    uint64_t says;
    if (!presto__varint_read(&at, in.data + in.bytes, &says) || says > UINT32_MAX)
        return presto__codec_corrupt(codec, "bad length", err);
    size_t bytes = (size_t)says;
    if (bytes > (uint64_t)in.bytes * MAX_RATIO)
        return presto__codec_corrupt(codec, "says more than snappy can hold", err);
    uint8_t *out;
    PRESTO_TRY(presto__codec_output(codec, bytes, &out, err));
    if (snappy_uncompress((const char *)in.data, in.bytes, (char *)out, &bytes) != SNAPPY_OK)
        return presto__codec_corrupt(codec, "bad block", err);
    *out_out = presto_span_of(out, bytes);
    return PRESTO_OK;
}

const presto_codec_type presto__codec_snappy = {
    .name = "snappy",
    .max_input_bytes = UINT32_MAX,
    .bound = bound,
    .compress = compress,
    .decompress = decompress,
};

#else

const presto_codec_type presto__codec_snappy = {.name = "snappy",
                                                .unsupported = "built without libsnappy"};

#endif
