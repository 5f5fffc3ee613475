/* SPDX-License-Identifier: Apache-2.0 */
/* What gzip or zstd has packed as a whole, piece by piece. */
#include <stdlib.h>

#include <zlib.h>
#if PRESTO_HAVE_ZSTD
#include <zstd.h>
#endif

#include "../records_internal.h"

#define GZIP_BITS (15 + 16)

struct presto__unpacker {
    presto__packing packing;
    z_stream zlib;
    bool has_zlib;
#if PRESTO_HAVE_ZSTD
    ZSTD_DCtx *zstd;
#endif
    bool is_between; /* a member or frame is complete; another may follow */
};

presto__packing presto__packing_of(presto_span head) {
    if (head.bytes >= 3 && memcmp(head.data, "\x1f\x8b\x08", 3) == 0)
        return PRESTO__PACKED_GZIP;
    if (head.bytes >= 4 && memcmp(head.data, "\x28\xb5\x2f\xfd", 4) == 0)
        return PRESTO__PACKED_ZSTD;
    return PRESTO__NOT_PACKED;
}

const char *presto__packing_name(presto__packing packing) {
    switch (packing) {
    case PRESTO__NOT_PACKED:
        return "none";
    case PRESTO__PACKED_GZIP:
        return "gzip";
    case PRESTO__PACKED_ZSTD:
        return "zstd";
    }
    return "?";
}

void presto__unpacker_free(presto__unpacker *unpacker) {
    if (unpacker == NULL)
        return;
    if (unpacker->has_zlib)
        inflateEnd(&unpacker->zlib);
#if PRESTO_HAVE_ZSTD
    ZSTD_freeDCtx(unpacker->zstd);
#endif
    free(unpacker);
}

presto_status presto__unpacker_new(presto__packing packing, presto__unpacker **unpacker_out,
                                   presto_error *err) {
#if !PRESTO_HAVE_ZSTD
    if (packing == PRESTO__PACKED_ZSTD)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "is compressed with zstd, which this build lacks: decompress it");
#endif
    presto__unpacker *unpacker = calloc(1, sizeof *unpacker);
    if (unpacker == NULL)
        return presto_fail_memory(err, sizeof *unpacker);
    bool is_ready = false;
    unpacker->packing = packing;
    if (packing == PRESTO__PACKED_GZIP)
        is_ready = unpacker->has_zlib = inflateInit2(&unpacker->zlib, GZIP_BITS) == Z_OK;
#if PRESTO_HAVE_ZSTD
    if (packing == PRESTO__PACKED_ZSTD)
        is_ready = (unpacker->zstd = ZSTD_createDCtx()) != NULL;
#endif
    if (!is_ready) {
        presto__unpacker_free(unpacker);
        return presto_fail_memory(err, sizeof *unpacker);
    }
    *unpacker_out = unpacker;
    return PRESTO_OK;
}

bool presto__unpacker_is_between(const presto__unpacker *unpacker) {
    return unpacker->is_between;
}

/* Another gzip member, or zeros, which are padding. False: bytes of something else. */
static bool begin_member(presto__unpacker *unpacker, presto_span *in_io) {
    while (in_io->bytes > 0 && in_io->data[0] == 0)
        *in_io = presto_span_of(in_io->data + 1, in_io->bytes - 1);
    if (in_io->bytes == 0)
        return true;
    if (in_io->data[0] != 0x1f || inflateReset(&unpacker->zlib) != Z_OK)
        return false;
    unpacker->is_between = false;
    return true;
}

static presto_status inflate_some(presto__unpacker *unpacker, presto_span *in_io, presto_buffer *to,
                                  presto_error *err) {
    z_stream *zlib = &unpacker->zlib;
    size_t room = to->capacity - to->bytes;
    if (room > UINT32_MAX)
        room = UINT32_MAX;
    if (unpacker->is_between && !begin_member(unpacker, in_io))
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "gzip data: bytes after its end");
    if (in_io->bytes == 0)
        return PRESTO_OK;
    zlib->next_in = (Bytef *)(uintptr_t)in_io->data;
    zlib->avail_in = in_io->bytes < UINT32_MAX ? (uInt)in_io->bytes : UINT32_MAX;
    zlib->next_out = to->data + to->bytes;
    zlib->avail_out = (uInt)room;
    const uint8_t *end = in_io->data + in_io->bytes;
    int result = inflate(zlib, Z_NO_FLUSH);
    *in_io = presto_span_of(zlib->next_in, (size_t)(end - zlib->next_in));
    to->bytes += room - zlib->avail_out;
    if (result == Z_MEM_ERROR)
        return presto_fail_memory(err, room);
    if (result == Z_STREAM_END)
        unpacker->is_between = true;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "gzip data: %s",
                           zlib->msg != NULL ? zlib->msg : "not to be decompressed");
    return PRESTO_OK;
}

#if PRESTO_HAVE_ZSTD
static presto_status unzstd_some(presto__unpacker *unpacker, presto_span *in_io, presto_buffer *to,
                                 presto_error *err) {
    ZSTD_inBuffer in = {in_io->data, in_io->bytes, 0};
    ZSTD_outBuffer out = {to->data + to->bytes, to->capacity - to->bytes, 0};
    if (in_io->bytes == 0 && unpacker->is_between)
        return PRESTO_OK;
    size_t result = ZSTD_decompressStream(unpacker->zstd, &out, &in);
    *in_io = presto_span_of(in_io->data + in.pos, in_io->bytes - in.pos);
    to->bytes += out.pos;
    if (ZSTD_isError(result))
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "zstd data: %s",
                           ZSTD_getErrorName(result));
    unpacker->is_between = result == 0;
    return PRESTO_OK;
}
#endif

presto_status presto__unpacker_run(presto__unpacker *unpacker, presto_span *in_io,
                                   presto_buffer *to, presto_error *err) {
#if PRESTO_HAVE_ZSTD
    if (unpacker->packing == PRESTO__PACKED_ZSTD)
        return unzstd_some(unpacker, in_io, to, err);
#endif
    return inflate_some(unpacker, in_io, to, err);
}
