/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codecs by name: the table, the text form of a spec, and what all codecs share (limits, buffers,
 * the delta before compression). Knows no codec's library.
 */
#include "../records_internal.h"
#include "codec_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/text.h>

static const presto_codec_type *const codecs[] = {
    &presto__codec_none,   &presto__codec_zlib,      &presto__codec_gzip,
    &presto__codec_zstd,   &presto__codec_lz4,       &presto__codec_lz4hc,
    &presto__codec_snappy, &presto__codec_blosc_lz4, &presto__codec_blosc_zstd,
};
#define CODEC_COUNT (sizeof codecs / sizeof codecs[0])

/* Farthest neighbour of a delta: a pixel of 16 channels of 16 bytes. */
#define DELTA_MAX_BYTES 256

/* A decoder's memory above this size is freed after each record. */
#define MOST_KEPT_SCRATCH_BYTES ((size_t)1 << 20)

const char *presto__codec_name_at(size_t i, bool *built_out) {
    if (i >= CODEC_COUNT)
        return NULL;
    if (built_out != NULL)
        *built_out = codecs[i]->unsupported == NULL;
    return codecs[i]->name;
}

const char *presto_codec_built_at(size_t i) {
    for (size_t c = 0; c < CODEC_COUNT; c++)
        if (codecs[c]->unsupported == NULL && i-- == 0)
            return codecs[c]->name;
    return NULL;
}

/* ---- text ---- */

static presto_status fail_unknown(presto_span name, presto_error *err) {
    const char *names[CODEC_COUNT + 1] = {NULL};
    char word[PRESTO_CODEC_TEXT_BYTES], list[PRESTO_ERROR_MESSAGE_BYTES / 2] = "";
    int shown = name.bytes < sizeof word ? (int)name.bytes : (int)sizeof word - 1;
    snprintf(word, sizeof word, "%.*s", shown, (const char *)name.data);
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        size_t used = strlen(list);
        names[i] = codecs[i]->name;
        snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", names[i]);
    }
    const char *near = presto_text_nearest(word, names);
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "unknown codec '%s'%s%s%s (known: %s)", word,
                       near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'?" : "", list);
}

static presto_status find_codec(presto_span name, const presto_codec_type **type_out,
                                presto_error *err) {
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        if (!presto_span_is(name, codecs[i]->name))
            continue;
        if (codecs[i]->unsupported != NULL)
            return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "codec %s: %s",
                               codecs[i]->name, codecs[i]->unsupported);
        *type_out = codecs[i];
        return PRESTO_OK;
    }
    return fail_unknown(name, err);
}

static presto_status parse_level(const char *text, size_t bytes, presto_codec_spec *spec,
                                 presto_error *err) {
    const presto_codec_type *type = spec->type;
    if (type->level_min == 0 && type->level_max == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "codec %s has no levels",
                           type->name);
    char *end;
    errno = 0;
    long level = strtol(text, &end, 10);
    bool digits = bytes > 0 && (*text == '-' || (*text >= '0' && *text <= '9'));
    if (!digits || end != text + bytes || errno != 0 || level < type->level_min ||
        level > type->level_max)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "level '%.*s' of codec %s: it has %d to %d", (int)bytes, text,
                           type->name, type->level_min, type->level_max);
    spec->level = (int)level;
    return PRESTO_OK;
}

static presto_status parse_delta(presto_span number, presto_codec_spec *spec, presto_error *err) {
    unsigned distance = 0;
    for (size_t i = 0; i < number.bytes; i++) {
        unsigned digit = (unsigned)number.data[i] - '0';
        if (digit > 9 || (distance == 0 && digit == 0))
            distance = DELTA_MAX_BYTES;
        distance = distance * 10 + digit;
        if (distance > DELTA_MAX_BYTES)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "variant 'delta%.*s': its distance is 1 to %d bytes",
                               (int)number.bytes, (const char *)number.data, DELTA_MAX_BYTES);
    }
    spec->wants_delta = true;
    spec->delta_bytes = distance;
    return PRESTO_OK;
}

static presto_status parse_variant(presto_span name, presto_codec_spec *spec, presto_error *err) {
    const presto_codec_type *type = spec->type;
    if (type->takes_bitshuffle && presto_span_is(name, "bitshuffle")) {
        spec->bitshuffle = true;
        return PRESTO_OK;
    }
    if (type->takes_dictionary && presto_span_is(name, "dict")) {
        spec->wants_dictionary = true;
        return PRESTO_OK;
    }
    if (type->takes_delta && name.bytes >= 5 && memcmp(name.data, "delta", 5) == 0)
        return parse_delta(presto_span_of(name.data + 5, name.bytes - 5), spec, err);
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "codec %s has no variant '%.*s'; it has%s%s%s%s", type->name,
                       (int)name.bytes, (const char *)name.data,
                       type->takes_bitshuffle ? " bitshuffle" : "",
                       type->takes_dictionary ? " dict" : "", type->takes_delta ? " delta" : "",
                       type->takes_bitshuffle || type->takes_delta ? "" : " none");
}

presto_status presto_codec_parse(const char *text, presto_codec_spec *spec_out, presto_error *err) {
    presto_codec_spec spec = {0};
    size_t bytes = strcspn(text, ":+");
    PRESTO_TRY(find_codec(presto_span_of(text, bytes), &spec.type, err));
    spec.level = spec.type->level_default;
    text += bytes;
    if (*text == ':') {
        bytes = strcspn(++text, "+");
        PRESTO_TRY(parse_level(text, bytes, &spec, err));
        text += bytes;
    }
    while (*text == '+') {
        bytes = strcspn(++text, "+");
        PRESTO_TRY(parse_variant(presto_span_of(text, bytes), &spec, err));
        text += bytes;
    }
    *spec_out = spec;
    return PRESTO_OK;
}

char *presto__codec_format(const presto_codec_spec *spec, char text_out[PRESTO_CODEC_TEXT_BYTES]) {
    char level[16] = "";
    char delta[24] = "";
    if (spec->level != spec->type->level_default)
        snprintf(level, sizeof level, ":%d", spec->level);
    if (spec->wants_delta && spec->delta_bytes != 0)
        snprintf(delta, sizeof delta, "+delta%u", spec->delta_bytes);
    else if (spec->wants_delta)
        snprintf(delta, sizeof delta, "+delta");
    snprintf(text_out, PRESTO_CODEC_TEXT_BYTES, "%s%s%s%s%s", spec->type->name, level,
             spec->bitshuffle ? "+bitshuffle" : "", spec->wants_dictionary ? "+dict" : "", delta);
    return text_out;
}

presto_status presto_codec_check_tensorflow(const presto_codec_spec *spec, presto_error *err) {
    if (spec->type->is_tensorflow)
        return PRESTO_OK;
    char text[PRESTO_CODEC_TEXT_BYTES];
    char list[128] = "";
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        size_t used = strlen(list);
        if (codecs[i]->is_tensorflow)
            snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "",
                     codecs[i]->name);
    }
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "codec %s is not among those that every TensorFlow reads: %s",
                       presto__codec_format(spec, text), list);
}

/* ---- fitting to the data ---- */

static bool is_integer(presto_dtype dtype) {
    switch (dtype) {
    case PRESTO_INT32:
    case PRESTO_UINT8:
    case PRESTO_INT16:
    case PRESTO_INT8:
    case PRESTO_INT64:
    case PRESTO_UINT16:
    case PRESTO_UINT32:
    case PRESTO_UINT64:
        return true;
    case PRESTO_DTYPE_UNKNOWN:
    case PRESTO_FLOAT32:
    case PRESTO_FLOAT64:
    case PRESTO_STRING:
    case PRESTO_COMPLEX64:
    case PRESTO_BOOL:
    case PRESTO_BFLOAT16:
    case PRESTO_COMPLEX128:
    case PRESTO_FLOAT16:
        break;
    }
    return false;
}

presto_status presto__codec_spec_fit(presto_codec_spec *spec, const presto_tensor_spec *tensor,
                                     presto_error *err) {
    unsigned element = tensor != NULL ? (unsigned)presto_dtype_bytes(tensor->dtype) : 0;
    if (spec->wants_delta && spec->delta_bytes == 0) {
        if (tensor == NULL || !is_integer(tensor->dtype))
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "codec %s+delta is for tensors of integers", spec->type->name);
        /* Height, width, channels: the neighbour is a whole pixel away. */
        unsigned channels = 1;
        if (tensor->rank >= 3) {
            int64_t last = tensor->dims[tensor->rank - 1];
            if (last >= 1 && last <= 16)
                channels = (unsigned)last;
        }
        spec->delta_bytes = channels * element;
    }
    spec->type_bytes = element;
    return PRESTO_OK;
}

presto_status presto__codec_train(const presto_codec_spec *spec,
                                  const presto__codec_samples *samples, size_t max_bytes,
                                  presto_buffer *dictionary_out, presto_error *err) {
    if (spec->type->train == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "codec %s takes no dictionary", spec->type->name);
    return spec->type->train(samples, max_bytes != 0 ? max_bytes : 112640, dictionary_out, err);
}

/* ---- use ---- */

presto_status presto_codec_new(const presto_codec_spec *spec, presto_codec **codec_out,
                               presto_error *err) {
    if (spec->wants_dictionary && spec->dictionary.bytes == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "codec %s+dict without its dictionary", spec->type->name);
    if (spec->wants_delta && spec->delta_bytes == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "codec %s+delta without its distance", spec->type->name);
    presto_codec *codec = calloc(1, sizeof *codec);
    if (codec == NULL)
        return presto_fail_memory(err, sizeof *codec);
    codec->spec = *spec;
    if (spec->type->open != NULL) {
        presto_status status = spec->type->open(codec, err);
        if (status < 0) {
            presto_codec_free(codec);
            return status;
        }
    }
    *codec_out = codec;
    return PRESTO_OK;
}

void presto_codec_free(presto_codec *codec) {
    if (codec == NULL)
        return;
    if (codec->spec.type->close != NULL)
        codec->spec.type->close(codec);
    presto_buffer_done(&codec->scratch);
    presto_buffer_done(&codec->filtered);
    free(codec);
}

presto_status presto__codec_compress(presto_codec *codec, presto_span in, presto_buffer *out,
                                     presto_error *err) {
    const presto_codec_type *type = codec->spec.type;
    if (in.bytes > type->max_input_bytes)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "record of %zu bytes, codec %s takes %ju", in.bytes, type->name,
                           (uintmax_t)type->max_input_bytes);
    if (codec->spec.wants_delta) {
        codec->filtered.bytes = 0;
        PRESTO_TRY(presto_buffer_reserve(&codec->filtered, in.bytes, err));
        presto__delta_encode(in.data, in.bytes, codec->spec.delta_bytes, codec->filtered.data);
        in.data = codec->filtered.data;
    }
    size_t bytes = type->bound(codec, in.bytes);
    PRESTO_TRY(presto_buffer_reserve(out, bytes, err));
    PRESTO_TRY(type->compress(codec, in, out->data + out->bytes, &bytes, err));
    out->bytes += bytes;
    return PRESTO_OK;
}

presto_status presto_codec_decompress(presto_codec *codec, presto_span in,
                                      const presto_codec_room *room, presto_span *out_out,
                                      presto_error *err) {
    presto_span out;
    codec->arena = room->arena;
    codec->max_bytes = room->max_bytes;
    presto_status status = codec->spec.type->decompress(codec, in, &out, err);
    if (codec->scratch.capacity > MOST_KEPT_SCRATCH_BYTES)
        presto_buffer_done(&codec->scratch);
    PRESTO_TRY(status);
    if (codec->spec.wants_delta) /* the arena's memory is ours to change */
        presto__delta_decode((uint8_t *)(uintptr_t)out.data, out.bytes, codec->spec.delta_bytes);
    *out_out = out;
    return PRESTO_OK;
}

/* ---- guessing ---- */

static bool looks_like_blosc(presto_span in) {
    /* Version 2 of the format; the compressed size in the header must equal the record's size. */
    if (in.bytes < 16 || in.data[0] != 2 || in.data[3] == 0)
        return false;
    uint32_t stored = (uint32_t)in.data[12] | (uint32_t)in.data[13] << 8 |
                      (uint32_t)in.data[14] << 16 | (uint32_t)in.data[15] << 24;
    return stored == in.bytes;
}

const char *presto_codec_guess(presto_span payload) {
    const uint8_t *at = payload.data;
    if (payload.bytes >= 9 && memcmp(at, "\x28\xb5\x2f\xfd", 4) == 0)
        return presto__codec_zstd.name;
    if (payload.bytes >= 11 && memcmp(at, "\x04\x22\x4d\x18", 4) == 0)
        return presto__codec_lz4.name;
    if (payload.bytes >= 18 && memcmp(at, "\x1f\x8b\x08", 3) == 0)
        return presto__codec_gzip.name;
    if (looks_like_blosc(payload))
        return at[2] >> 5 == 1 ? presto__codec_blosc_lz4.name : presto__codec_blosc_zstd.name;
    /* Deflate, window up to 32 KiB, header divisible by 31, no preset dictionary (RFC 1950). */
    if (payload.bytes >= 8 && (at[0] & 0x0f) == 8 && at[0] >> 4 <= 7 && (at[1] & 0x20) == 0 &&
        (at[0] * 256 + at[1]) % 31 == 0)
        return presto__codec_zlib.name;
    return presto__codec_none.name;
}
