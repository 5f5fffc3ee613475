/* SPDX-License-Identifier: Apache-2.0 */
/* No compression: the payload is the record. */
#include "codec_internal.h"

static size_t bound(const presto_codec *codec, size_t bytes) {
    (void)codec;
    return bytes;
}

static presto_status compress(presto_codec *codec, presto_span in, uint8_t *out, size_t *bytes_io,
                              presto_error *err) {
    (void)codec;
    (void)err;
    if (in.bytes > 0)
        memcpy(out, in.data, in.bytes);
    *bytes_io = in.bytes;
    return PRESTO_OK;
}

static presto_status decompress(presto_codec *codec, presto_span in, presto_span *out_out,
                                presto_error *err) {
    if (in.bytes > codec->max_bytes)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "record of %zu byte%s, limit %ju", in.bytes, presto_plural(in.bytes),
                           (uintmax_t)codec->max_bytes);
    *out_out = in;
    return PRESTO_OK;
}

const presto_codec_type presto__codec_none = {
    .name = "none",
    .is_tensorflow = true,
    .max_input_bytes = UINT64_MAX,
    .bound = bound,
    .compress = compress,
    .decompress = decompress,
};
