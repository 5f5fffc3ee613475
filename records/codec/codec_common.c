/* SPDX-License-Identifier: Apache-2.0 */
/* What several codecs need: memory for the output within its limit, streams, failures. */
#include <stdlib.h>

#include "codec_internal.h"

/* Room for each step of a streaming decoder. */
#define STREAM_STEP_BYTES ((size_t)128 << 10)

presto_status presto__codec_output(presto_codec *codec, uint64_t bytes, uint8_t **out_out,
                                   presto_error *err) {
    if (bytes > codec->max_bytes)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "%s record decompresses to %ju byte%s, limit %ju",
                           codec->spec.type->name, (uintmax_t)bytes, presto_plural(bytes),
                           (uintmax_t)codec->max_bytes);
    uint8_t *out = presto_arena_alloc(codec->arena, (size_t)bytes, 64);
    if (out == NULL)
        return presto_fail_memory(err, bytes);
    *out_out = out;
    return PRESTO_OK;
}

presto_status presto__codec_make_state(presto_codec *codec, size_t bytes, presto_error *err) {
    codec->state = calloc(1, bytes);
    return codec->state != NULL ? PRESTO_OK : presto_fail_memory(err, bytes);
}

presto_status presto__codec_reserve_scratch(presto_codec *codec, size_t bytes, presto_error *err) {
    size_t room = codec->scratch.capacity - codec->scratch.bytes;
    if (bytes > room && !presto_arena_may_grow(codec->arena, bytes - room))
        return presto_fail_memory(err, bytes);
    return presto_buffer_reserve(&codec->scratch, bytes, err);
}

presto_status presto__codec_take_scratch(presto_codec *codec, presto_span *out_out,
                                         presto_error *err) {
    uint8_t *out;
    size_t bytes = codec->scratch.bytes;
    PRESTO_TRY(presto__codec_output(codec, bytes, &out, err));
    if (bytes > 0)
        memcpy(out, codec->scratch.data, bytes);
    *out_out = presto_span_of(out, bytes);
    return PRESTO_OK;
}

presto_status presto__codec_decode_stream(presto_codec *codec, presto__codec_step *step,
                                          presto_span in, presto_span *out_out, presto_error *err) {
    presto_buffer *scratch = &codec->scratch;
    const char *name = codec->spec.type->name;
    size_t in_bytes = in.bytes;
    bool end = false;
    scratch->bytes = 0;
    while (!end) {
        PRESTO_TRY(presto__codec_reserve_scratch(codec, STREAM_STEP_BYTES, err));
        size_t room = scratch->capacity - scratch->bytes, left = in.bytes;
        const char *wrong = step(codec, &in, scratch->data + scratch->bytes, &room, &end);
        if (wrong != NULL)
            return presto__codec_corrupt(codec, wrong, err);
        scratch->bytes += room;
        if (scratch->bytes > codec->max_bytes)
            return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                               "%s record decompresses to more than %ju byte%s", name,
                               (uintmax_t)codec->max_bytes, presto_plural(codec->max_bytes));
        if (!end && room == 0 && in.bytes == left)
            return presto_fail(err, PRESTO_ERR_TRUNCATED, PRESTO_NO_OFFSET,
                               "truncated %s record of %zu byte%s", name, in_bytes,
                               presto_plural(in_bytes));
    }
    if (in.bytes != 0)
        return presto__codec_corrupt(codec, "bytes after its end", err);
    return presto__codec_take_scratch(codec, out_out, err);
}

presto_status presto__codec_corrupt(const presto_codec *codec, const char *why, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "corrupt %s record: %s",
                       codec->spec.type->name, why);
}
