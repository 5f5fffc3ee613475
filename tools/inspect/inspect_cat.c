/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records on stdout, decompressed: with the dataset's codec if the file belongs to one, else with
 * the codec that the record's first bytes suggest. A damaged record is reported and skipped.
 */
#include "inspect_cat.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <presto/example.h>
#include <presto/stream.h>

#include "../cli/cli.h"

enum {
    SHORT_LIST = 16, /* numbers shown in full */
    SHOWN_FIRST = 8, /* of a longer list */
    SHORT_TEXT = 1000,
};

/* ---- values as JSON ---- */

static json_t *base64(presto_span bytes) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = (bytes.bytes + 2) / 3 * 4;
    char *text = malloc(length + 1);
    if (text == NULL)
        return NULL;
    char *out = text;
    for (size_t i = 0; i < bytes.bytes; i += 3) {
        size_t left = bytes.bytes - i;
        uint32_t word = (uint32_t)bytes.data[i] << 16;
        word |= left > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0;
        word |= left > 2 ? bytes.data[i + 2] : 0;
        *out++ = letters[word >> 18];
        *out++ = letters[word >> 12 & 63];
        *out++ = left > 1 ? letters[word >> 6 & 63] : '=';
        *out++ = left > 2 ? letters[word & 63] : '=';
    }
    json_t *value = json_stringn_nocheck(text, length);
    free(text);
    return value;
}

static bool is_text(presto_span bytes) {
    for (size_t i = 0; i < bytes.bytes; i++)
        if (bytes.data[i] < 0x20 && bytes.data[i] != '\n' && bytes.data[i] != '\t' &&
            bytes.data[i] != '\r')
            return false;
    return true;
}

/* Text as a string if it is printable UTF-8, else its size and, with --full, the bytes. */
static json_t *bytes_json(presto_span bytes, const cat_options *options) {
    if (is_text(bytes) && (options->full || bytes.bytes <= SHORT_TEXT)) {
        json_t *text = json_stringn(bytes.bytes > 0 ? (const char *)bytes.data : "", bytes.bytes);
        if (text != NULL)
            return text;
    }
    json_t *object = json_object();
    cli_json_set(object, "bytes", json_integer((json_int_t)bytes.bytes));
    if (options->full)
        cli_json_set(object, "base64", base64(bytes));
    return object;
}

static json_t *half_json(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction > 0 ? NAN : INFINITY)
                                    : ldexp(fraction + 1024, exponent - 25);
    return cli_json_real(bits >> 15 ? -value : value);
}

static json_t *bfloat_json(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value = 0;
    memcpy(&value, &wide, sizeof value);
    return cli_json_real((double)value);
}

static json_t *number_json(presto_dtype dtype, const uint8_t *at) {
    float f32[2];
    double f64[2];
    int64_t i64 = 0;
    uint64_t u64 = 0;
    uint16_t u16 = 0;
    size_t bytes = presto_dtype_bytes(dtype);
    memcpy(&u64, at, bytes <= sizeof u64 ? bytes : sizeof u64); /* little-endian */
    memcpy(&u16, at, bytes < 2 ? 1 : 2);
    /* Sign extension of the narrower integers. */
    unsigned unused_bits = bytes < 8 ? (unsigned)(8 - bytes) * 8 : 0;
    i64 = (int64_t)(u64 << unused_bits);
    i64 = i64 >> unused_bits;
    switch (dtype) {
    case PRESTO_FLOAT32:
        memcpy(f32, at, sizeof f32[0]);
        return cli_json_real((double)f32[0]);
    case PRESTO_FLOAT64:
        memcpy(f64, at, sizeof f64[0]);
        return cli_json_real(f64[0]);
    case PRESTO_FLOAT16:
        return half_json(u16);
    case PRESTO_BFLOAT16:
        return bfloat_json(u16);
    case PRESTO_COMPLEX64:
        memcpy(f32, at, sizeof f32);
        return json_pack("[o,o]", cli_json_real((double)f32[0]), cli_json_real((double)f32[1]));
    case PRESTO_COMPLEX128:
        memcpy(f64, at, sizeof f64);
        return json_pack("[o,o]", cli_json_real(f64[0]), cli_json_real(f64[1]));
    case PRESTO_BOOL:
        return json_boolean(u64 != 0);
    case PRESTO_INT8:
    case PRESTO_INT16:
    case PRESTO_INT32:
    case PRESTO_INT64:
        return json_integer((json_int_t)i64);
    case PRESTO_UINT8:
    case PRESTO_UINT16:
    case PRESTO_UINT32:
        return json_integer((json_int_t)u64);
    case PRESTO_UINT64:
        return u64 <= INT64_MAX ? json_integer((json_int_t)u64) : json_real((double)u64);
    case PRESTO_STRING:
    case PRESTO_DTYPE_UNKNOWN:
        break;
    }
    return json_null();
}

static json_t *element_json(const presto_tensor *tensor, size_t i, const cat_options *options) {
    if (tensor->spec.dtype == PRESTO_STRING)
        return bytes_json(tensor->strings[i], options);
    const uint8_t *data = tensor->data;
    return number_json(tensor->spec.dtype, data + i * presto_dtype_bytes(tensor->spec.dtype));
}

static json_t *elements_json(const presto_tensor *tensor, size_t count,
                             const cat_options *options) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        cli_json_append(list, element_json(tensor, i, options));
    return list;
}

/* Short lists are printed as they are; long ones, and tensors, are objects that describe them. */
static json_t *tensor_json(const presto_feature *feature, const cat_options *options) {
    const presto_tensor *tensor = &feature->tensor;
    if (feature->encoding == PRESTO_ENCODE_NONE)
        return json_null();
    size_t count = (size_t)presto_spec_elements(&tensor->spec);
    bool is_tensor = feature->encoding == PRESTO_ENCODE_TENSOR;
    if (!is_tensor && tensor->spec.rank == 0)
        return element_json(tensor, 0, options);
    bool whole = options->full || count <= SHORT_LIST;
    if (!is_tensor && whole)
        return elements_json(tensor, count, options);
    json_t *object = json_object();
    cli_json_set(object, "dtype", json_string(presto_dtype_name(tensor->spec.dtype)));
    json_t *shape = json_array();
    for (int i = 0; i < tensor->spec.rank; i++)
        cli_json_append(shape, json_integer((json_int_t)tensor->spec.dims[i]));
    cli_json_set(object, "shape", shape);
    cli_json_set(object, whole ? "values" : "first",
                 elements_json(tensor, whole ? count : SHOWN_FIRST, options));
    return object;
}

/* ---- records ---- */

typedef struct cat {
    const char *path;
    const cat_options *options;
    presto_dataset *dataset; /* of the stream */
    presto_codec *codec;     /* of the dataset; NULL for foreign files */
    presto_codec *guessed;   /* of the last record whose codec was guessed */
    char guessed_name[16];
    presto_arena arena;
    presto_block block;
    bool damaged;
    bool ran_out; /* of memory: the output would lack something */
} cat;

/* Did it work? If not, there may be another way to print it, unless memory ran out. */
static bool fine(cat *c, presto_status status) {
    c->ran_out = c->ran_out || status == PRESTO_ERR_MEMORY;
    return status == PRESTO_OK;
}

static json_t *features_json(cat *c, presto_sample *sample) {
    json_t *object = json_object();
    for (size_t i = 0; i < sample->feature_count; i++) {
        presto_feature *feature = &sample->features[i];
        const presto_tensor *tensor = &feature->tensor;
        presto_tensor parsed;
        if (feature->encoding == PRESTO_ENCODE_BYTES && tensor->spec.rank == 0 &&
            presto_tensor_proto_probe(tensor->strings[0]) &&
            fine(c, presto_tensor_proto_parse(tensor->strings[0], &c->arena, &parsed, NULL))) {
            feature->encoding = PRESTO_ENCODE_TENSOR;
            feature->tensor = parsed;
        }
        cli_json_set_named(object, feature->name, tensor_json(feature, c->options));
    }
    return object;
}

static json_t *record_json(cat *c, uint64_t number, uint64_t offset, presto_span payload) {
    presto_sample sample;
    json_t *object = json_object();
    cli_json_set(object, "record", json_integer((json_int_t)number));
    cli_json_set(object, "offset", json_integer((json_int_t)offset));
    cli_json_set(object, "bytes", json_integer((json_int_t)payload.bytes));
    if (fine(c, presto_example_parse(payload, NULL, &c->arena, &sample, NULL)))
        cli_json_set(object, "features", features_json(c, &sample));
    else
        cli_json_set(object, "payload", bytes_json(payload, c->options));
    return object;
}

/* The codec that the first bytes of a foreign record suggest, if it decodes the record. */
static presto_span undo_guess(cat *c, presto_span stored) {
    presto_codec_spec spec;
    presto_sample sample;
    presto_span payload = stored;
    const char *name = presto_codec_guess(stored);
    if (strcmp(name, "none") == 0 || strlen(name) >= sizeof c->guessed_name ||
        fine(c, presto_example_parse(stored, NULL, &c->arena, &sample, NULL)))
        return stored;
    if (strcmp(name, c->guessed_name) != 0) {
        presto_codec_free(c->guessed);
        c->guessed = NULL;
        if (presto_codec_parse(name, &spec, NULL) < 0 ||
            !fine(c, presto_codec_new(&spec, &c->guessed, NULL)))
            return stored;
        snprintf(c->guessed_name, sizeof c->guessed_name, "%s", name);
    }
    if (!fine(c,
              presto_codec_decompress(
                  c->guessed, stored,
                  &(presto_codec_room){&c->arena, PRESTO_CODEC_MAX_RECORD_BYTES}, &payload, NULL)))
        return stored;
    return payload;
}

static presto_status print_record(cat *c, uint64_t number, const presto_record *record,
                                  presto_error *err) {
    presto_span payload = record->payload;
    presto_arena_reset(&c->arena);
    if (c->codec != NULL)
        PRESTO_TRY(presto_codec_decompress(
            c->codec, record->payload,
            &(presto_codec_room){&c->arena, PRESTO_CODEC_MAX_RECORD_BYTES}, &payload, err));
    else
        payload = undo_guess(c, payload);
    if (c->ran_out)
        return presto_fail_memory(err, payload.bytes);
    if (!c->options->json) {
        fwrite(payload.data, 1, payload.bytes, stdout);
        return PRESTO_OK;
    }
    json_t *object = record_json(c, number, record->offset, payload);
    bool whole = object != NULL && !c->ran_out && !cli_json_failed();
    char *text = whole ? cli_json_dump(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (text == NULL)
        return presto_fail_memory(err, payload.bytes);
    puts(text);
    free(text);
    return PRESTO_OK;
}

static presto_status cat_record(cat *c, uint64_t number, presto_error *err) {
    presto_shard *shard = NULL;
    uint64_t local = 0;
    size_t i = presto_dataset_locate(c->dataset, number, &local);
    PRESTO_TRY(presto_dataset_shard_at(c->dataset, i, &shard, err));
    PRESTO_TRY(presto_shard_fetch(shard, local, 1, &c->block, err));
    presto_status status = c->block.records[0].status;
    if (status >= 0) {
        status = print_record(c, number, &c->block.records[0], err);
        if (status < 0) {
            presto_error_set_record(err, local);
            presto_error_set_file(err, presto_shard_path(shard));
        }
    }
    if (status != PRESTO_ERR_CORRUPT && status != PRESTO_ERR_TRUNCATED)
        return status;
    cli_error(err);
    c->damaged = true;
    return PRESTO_OK;
}

static presto_status cat_all(cat *c, presto_error *err) {
    char text[PRESTO_TEXT_BYTES];
    uint64_t count = presto_dataset_records(c->dataset);
    uint64_t first = 0;
    uint64_t end = count;
    if (c->options->record != UINT64_MAX) {
        first = c->options->record;
        if (first >= count) {
            presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                        "there is no record %ju among %s", (uintmax_t)first,
                        presto_format_things(count, "record", text));
            presto_error_set_file(err, c->path);
            return PRESTO_ERR_NOT_FOUND;
        }
        end = first + 1;
    }
    if (c->options->limit < end - first)
        end = first + c->options->limit;
    for (uint64_t number = first; number < end && !ferror(stdout); number++)
        PRESTO_TRY(cat_record(c, number, err));
    return PRESTO_OK;
}

int inspect_cat(const char *path, const cat_options *options) {
    presto_error err = {.status = PRESTO_OK};
    presto_stream_options reading;
    presto_stream stream = {0};
    cat c = {.options = options, .path = path};
    presto_stream_options_defaults(&reading);
    reading.raw_records = true;
    presto_status status = presto_stream_open(&path, 1, &reading, &stream, &err);
    c.dataset = stream.dataset;
    if (status >= 0 && presto_dataset_is_ours(c.dataset))
        status = presto_codec_new(presto_dataset_codec(c.dataset), &c.codec, &err);
    if (status >= 0)
        status = cat_all(&c, &err);
    presto_error warning;
    while (c.dataset != NULL && presto_dataset_take_warning(c.dataset, &warning))
        cli_warning(NULL, &warning);
    int code = status < 0 ? cli_error(&err) : c.damaged ? CLI_CORRUPT : CLI_DONE;
    presto_block_done(&c.block);
    presto_arena_done(&c.arena);
    presto_codec_free(c.codec);
    presto_codec_free(c.guessed);
    presto_stream_close(&stream);
    return code;
}
