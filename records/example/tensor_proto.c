/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorProto <-> tensor. tensor_content is returned as a view. Only the typed value fields, which
 * other writers use for small tensors and strings, are unpacked.
 */
#include <presto/example.h>

#include <presto/numbers.h>

#include "../records_internal.h"
#include "example_internal.h"

/* Field numbers of tensorflow/core/framework/tensor.proto and tensor_shape.proto. */
enum { DTYPE = 1, SHAPE = 2, CONTENT = 4, STRING_VAL = 8 };
enum { SHAPE_DIM = 2, SHAPE_UNKNOWN_RANK = 3, DIM_SIZE = 1 };

/* "All elements equal the last value" lets a few bytes claim any size. Unpacked tensors are
 * limited to this. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define UNPACKED_MAX_BYTES ((uint64_t)1 << 20)
#else
#define UNPACKED_MAX_BYTES PRESTO_FRAME_MAX_PAYLOAD_BYTES
#endif

/* A TensorProto taken apart. */
typedef struct proto_view {
    presto_tensor_spec spec;
    uint64_t dtype;
    presto_span content;
    bool values; /* there are fields that may hold typed values */
} proto_view;

static presto_status corrupt(presto_span in, const uint8_t *at, const char *what,
                             presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, (uint64_t)(at - in.data), "bad TensorProto: %s",
                       what);
}

static presto_status parse_dim(presto_span in, presto_span dim, int64_t *size_out,
                               presto_error *err) {
    presto__wire wire = presto__wire_of(dim);
    int64_t size = 0;
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field))
            return corrupt(in, wire.at, "dimension", err);
        if (field.number == DIM_SIZE && field.type == PRESTO__WIRE_VARINT)
            size = (int64_t)field.value;
    }
    if (size < 0)
        return corrupt(in, dim.data, "a dimension is negative", err);
    *size_out = size;
    return PRESTO_OK;
}

/* protobuf merges repeated shape messages: their dims follow one another. */
static presto_status parse_shape(presto_span in, presto_span shape, presto_tensor_spec *spec,
                                 presto_error *err) {
    presto__wire wire = presto__wire_of(shape);
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field))
            return corrupt(in, wire.at, "shape", err);
        if (field.number == SHAPE_UNKNOWN_RANK && field.type == PRESTO__WIRE_VARINT &&
            field.value != 0)
            return corrupt(in, shape.data, "the rank is not known", err);
        if (field.number != SHAPE_DIM || field.type != PRESTO__WIRE_BYTES)
            continue;
        if (spec->rank == PRESTO_MAX_RANK)
            return presto_fail(err, PRESTO_ERR_UNSUPPORTED, (uint64_t)(shape.data - in.data),
                               "tensor of more than %d dimensions", PRESTO_MAX_RANK);
        PRESTO_TRY(parse_dim(in, field.bytes, &spec->dims[spec->rank], err));
        spec->rank++;
    }
    return PRESTO_OK;
}

static presto_status take_apart(presto_span in, proto_view *view_out, presto_error *err) {
    proto_view view = {.content = {NULL, 0}};
    presto__wire wire = presto__wire_of(in);
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field))
            return corrupt(in, wire.at, "not the wire format", err);
        if (field.number == DTYPE && field.type == PRESTO__WIRE_VARINT)
            view.dtype = field.value;
        else if (field.number == SHAPE && field.type == PRESTO__WIRE_BYTES)
            PRESTO_TRY(parse_shape(in, field.bytes, &view.spec, err));
        else if (field.number == CONTENT && field.type == PRESTO__WIRE_BYTES)
            view.content = field.bytes;
        else
            view.values |= field.number > CONTENT;
    }
    view.spec.dtype = view.dtype <= PRESTO_UINT64 ? (presto_dtype)view.dtype : PRESTO_DTYPE_UNKNOWN;
    *view_out = view;
    return PRESTO_OK;
}

/* ---- typed values ---- */

typedef struct value_field {
    presto_dtype dtype;
    uint32_t number;
    presto__wire_type type; /* of one value, unpacked */
    unsigned parts;         /* values an element */
} value_field;

static const value_field value_fields[] = {
    {PRESTO_FLOAT32, 5, PRESTO__WIRE_FIXED32, 1},
    {PRESTO_FLOAT64, 6, PRESTO__WIRE_FIXED64, 1},
    {PRESTO_INT32, 7, PRESTO__WIRE_VARINT, 1},
    {PRESTO_UINT8, 7, PRESTO__WIRE_VARINT, 1},
    {PRESTO_INT16, 7, PRESTO__WIRE_VARINT, 1},
    {PRESTO_INT8, 7, PRESTO__WIRE_VARINT, 1},
    {PRESTO_UINT16, 7, PRESTO__WIRE_VARINT, 1},
    {PRESTO_COMPLEX64, 9, PRESTO__WIRE_FIXED32, 2},
    {PRESTO_INT64, 10, PRESTO__WIRE_VARINT, 1},
    {PRESTO_BOOL, 11, PRESTO__WIRE_VARINT, 1},
    {PRESTO_COMPLEX128, 12, PRESTO__WIRE_FIXED64, 2},
    {PRESTO_FLOAT16, 13, PRESTO__WIRE_VARINT, 1},
    {PRESTO_BFLOAT16, 13, PRESTO__WIRE_VARINT, 1},
    {PRESTO_UINT32, 16, PRESTO__WIRE_VARINT, 1},
    {PRESTO_UINT64, 17, PRESTO__WIRE_VARINT, 1},
};

static const value_field *find_value_field(presto_dtype dtype) {
    for (size_t i = 0; i < sizeof value_fields / sizeof value_fields[0]; i++)
        if (value_fields[i].dtype == dtype)
            return &value_fields[i];
    return NULL;
}

/* Where values go: `bytes` of memory, each value `value_bytes` wide. Values that no longer fit
 * are dropped. */
typedef struct value_sink {
    uint8_t *data;
    size_t bytes;
    size_t used;
    size_t value_bytes;
    bool is_bool;
} value_sink;

static void put_value(value_sink *sink, uint64_t value) {
    if (sink->bytes - sink->used < sink->value_bytes)
        return;
    if (sink->is_bool)
        value = value != 0;
    uint8_t little[8];
    presto__store_u64(little, value);
    memcpy(sink->data + sink->used, little, sink->value_bytes);
    sink->used += sink->value_bytes;
}

static bool put_packed(value_sink *sink, presto__wire_type type, presto_span packed) {
    if (type == PRESTO__WIRE_VARINT) {
        presto__wire wire = presto__wire_of(packed);
        while (wire.at != wire.end) {
            uint64_t value;
            if (!presto__wire_varint(&wire, &value))
                return false;
            put_value(sink, value);
        }
        return true;
    }
    if (packed.bytes % sink->value_bytes != 0)
        return false;
    size_t room = sink->bytes - sink->used;
    size_t bytes = packed.bytes < room ? packed.bytes : room;
    if (bytes > 0)
        memcpy(sink->data + sink->used, packed.data, bytes);
    sink->used += bytes;
    return true;
}

/* TensorFlow's rule: the elements without a value equal the last value; without any value, zero. */
static void repeat_last(value_sink *sink, size_t element_bytes) {
    size_t whole = sink->used - sink->used % element_bytes;
    if (whole == 0)
        memset(sink->data, 0, sink->bytes);
    else
        for (size_t at = whole; at < sink->bytes; at += element_bytes)
            memcpy(sink->data + at, sink->data + at - element_bytes, element_bytes);
}

static presto_status unpack_values(presto_span in, const presto_tensor_spec *spec,
                                   presto_arena *arena, const void **data_out, presto_error *err) {
    const value_field *from = find_value_field(spec->dtype);
    size_t bytes, element_bytes = presto_dtype_bytes(spec->dtype);
    PRESTO_TRY(presto_spec_bytes(spec, &bytes, err));
    if (bytes > UNPACKED_MAX_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "tensor of %zu bytes out of a TensorProto of %zu", bytes, in.bytes);
    uint8_t *data = presto_arena_alloc(arena, bytes, 64);
    if (data == NULL)
        return presto_fail_memory(err, bytes);
    value_sink sink = {data, bytes, 0, element_bytes / from->parts, spec->dtype == PRESTO_BOOL};
    presto__wire wire = presto__wire_of(in);
    while (wire.at != wire.end) {
        presto__wire_field field;
        const uint8_t *start = wire.at;
        if (!presto__wire_next(&wire, &field))
            return corrupt(in, wire.at, "not the wire format", err);
        if (field.number != from->number)
            continue;
        if (field.type == from->type)
            put_value(&sink, field.value);
        else if (field.type == PRESTO__WIRE_BYTES && !put_packed(&sink, from->type, field.bytes))
            return corrupt(in, start, "packed values", err);
    }
    if (bytes > 0)
        repeat_last(&sink, element_bytes);
    *data_out = data;
    return PRESTO_OK;
}

/* ---- strings ---- */

/* TensorFlow's EncodeStringList: all lengths as varints, then all bytes. */
static bool split_content(presto_span content, presto_span *strings, size_t count) {
    presto__wire wire = presto__wire_of(content);
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes;
        if (!presto__wire_varint(&wire, &bytes) || bytes > content.bytes)
            return false;
        strings[i].bytes = (size_t)bytes;
        total += bytes;
        if (total > content.bytes)
            return false;
    }
    if (total != (uint64_t)(wire.end - wire.at))
        return false;
    for (size_t i = 0; i < count; i++) {
        strings[i].data = wire.at;
        wire.at += strings[i].bytes;
    }
    return true;
}

static presto_status unpack_strings(presto_span in, const proto_view *view, presto_arena *arena,
                                    const presto_span **strings_out, presto_error *err) {
    const presto_tensor_spec *spec = &view->spec;
    uint64_t count = presto_spec_elements(spec);
    if (count > UNPACKED_MAX_BYTES / sizeof(presto_span))
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "tensor of %ju strings",
                           (uintmax_t)count);
    presto_span *strings =
        presto_arena_alloc(arena, (size_t)count * sizeof *strings, _Alignof(presto_span));
    if (strings == NULL)
        return presto_fail_memory(err, count * sizeof *strings);
    *strings_out = strings;
    if (view->content.bytes > 0) {
        if (!split_content(view->content, strings, (size_t)count))
            return corrupt(in, view->content.data, "string lengths", err);
        return PRESTO_OK;
    }
    size_t got = 0;
    presto__wire wire = presto__wire_of(in);
    while (wire.at != wire.end && got < count) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field))
            return corrupt(in, wire.at, "not the wire format", err);
        if (field.number == STRING_VAL && field.type == PRESTO__WIRE_BYTES)
            strings[got++] = field.bytes;
    }
    for (; got < count; got++)
        strings[got] = got > 0 ? strings[got - 1] : presto_span_of(in.data, 0);
    return PRESTO_OK;
}

/* ---- public ---- */

/* presto_spec_bytes for the common case, without the error message. */
static bool content_fits(const presto_tensor_spec *spec, size_t content_bytes) {
    uint64_t bytes = presto_dtype_bytes(spec->dtype);
    for (int i = 0; i < spec->rank; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)spec->dims[i], &bytes))
            return false;
    return bytes == content_bytes;
}

/* One dimension: its message is only the size, or empty for 0. */
static inline bool usual_dim(const uint8_t **at_io, const uint8_t *end, int64_t *size_out) {
    size_t bytes;
    if (!presto__wire_expect(at_io, end, 0x12, &bytes))
        return false;
    const uint8_t *at = *at_io;
    *at_io = at + bytes;
    if (bytes < 2 || bytes > 9 || at[0] != 0x08) {
        *size_out = 0;
        return bytes == 0;
    }
    uint64_t size = 0;
    for (size_t i = 1; i < bytes; i++) {
        size |= (uint64_t)(at[i] & 0x7f) << (7 * (i - 1));
        if ((at[i] < 0x80) != (i + 1 == bytes))
            return false;
    }
    *size_out = (int64_t)size;
    return true;
}

bool presto__tensor_proto_usual(presto_span in, presto_tensor *tensor_out) {
    const uint8_t *at = in.data, *end = at + in.bytes;
    size_t bytes;
    if (in.bytes < 6 || at[0] != 0x08 || at[1] >= 0x80)
        return false;
    presto_dtype dtype = (presto_dtype)at[1];
    size_t width = presto_dtype_bytes(dtype);
    at += 2;
    if (!presto__wire_expect(&at, end, 0x12, &bytes))
        return false;
    const uint8_t *shape_end = at + bytes;
    uint64_t total = width;
    int rank = 0;
    for (; at != shape_end; rank++) {
        int64_t size;
        if (rank == PRESTO_MAX_RANK || !usual_dim(&at, shape_end, &size) ||
            __builtin_mul_overflow(total, (uint64_t)size, &total))
            return false;
        tensor_out->spec.dims[rank] = size;
    }
    if (!presto__wire_expect(&at, end, 0x22, &bytes) || at + bytes != end || bytes != total ||
        bytes == 0)
        return false;
    tensor_out->spec.dtype = dtype;
    tensor_out->spec.rank = rank;
    tensor_out->data = at;
    return true;
}

presto_status presto_tensor_proto_parse(presto_span in, presto_arena *arena,
                                        presto_tensor *tensor_out, presto_error *err) {
    presto_tensor usual = {.spec = {.dims = {0}}};
    if (presto__tensor_proto_usual(in, &usual)) {
        *tensor_out = usual;
        return PRESTO_OK;
    }
    proto_view view;
    PRESTO_TRY(take_apart(in, &view, err));
    presto_tensor tensor = {.spec = view.spec, .data = view.content.data};
    if (view.spec.dtype == PRESTO_STRING) {
        PRESTO_TRY(unpack_strings(in, &view, arena, &tensor.strings, err));
    } else if (presto_dtype_bytes(view.spec.dtype) == 0) {
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "tensor of TensorFlow's dtype %ju", (uintmax_t)view.dtype);
    } else if (view.content.bytes == 0) {
        PRESTO_TRY(unpack_values(in, &view.spec, arena, &tensor.data, err));
    } else if (!content_fits(&view.spec, view.content.bytes)) {
        char text[PRESTO_SPEC_TEXT_BYTES];
        return presto_fail(err, PRESTO_ERR_CORRUPT, (uint64_t)(view.content.data - in.data),
                           "bad TensorProto: %zu byte%s of content for %s", view.content.bytes,
                           presto_plural(view.content.bytes),
                           presto_spec_format(&view.spec, text, sizeof text));
    }
    *tensor_out = tensor;
    return PRESTO_OK;
}

bool presto_tensor_proto_probe(presto_span in) {
    proto_view view;
    if (in.bytes == 0 || take_apart(in, &view, NULL) < 0)
        return false;
    if (view.content.bytes == 0 && view.values)
        return false; /* possible, but only parsing can tell */
    return presto_dtype_bytes(view.spec.dtype) != 0 && content_fits(&view.spec, view.content.bytes);
}

/* ---- writing ---- */

static uint64_t dim_size(int64_t dim) {
    return dim == 0 ? 0 : 1 + presto__varint_bytes((uint64_t)dim);
}

static uint64_t shape_size(const presto_tensor_spec *spec) {
    uint64_t bytes = 0;
    for (int i = 0; i < spec->rank; i++)
        bytes += presto__wire_bytes_size(dim_size(spec->dims[i]));
    return bytes;
}

uint64_t presto__tensor_proto_size(const presto_tensor *tensor) {
    uint64_t bytes = 2 + presto__wire_bytes_size(shape_size(&tensor->spec));
    uint64_t elements = presto_spec_elements(&tensor->spec);
    if (tensor->spec.dtype == PRESTO_STRING) {
        for (uint64_t i = 0; i < elements; i++)
            bytes += presto__wire_bytes_size(tensor->strings[i].bytes);
        return bytes;
    }
    if (elements > 0)
        bytes += presto__wire_bytes_size(presto_tensor_bytes(tensor));
    return bytes;
}

uint8_t *presto__tensor_proto_put(uint8_t *at, const presto_tensor *tensor) {
    const presto_tensor_spec *spec = &tensor->spec;
    *at++ = presto__wire_tag(DTYPE, PRESTO__WIRE_VARINT);
    *at++ = (uint8_t)spec->dtype;
    at = presto__wire_put_head(at, SHAPE, shape_size(spec));
    for (int i = 0; i < spec->rank; i++) {
        at = presto__wire_put_head(at, SHAPE_DIM, dim_size(spec->dims[i]));
        if (spec->dims[i] != 0) {
            *at++ = presto__wire_tag(DIM_SIZE, PRESTO__WIRE_VARINT);
            at = presto__varint_put(at, (uint64_t)spec->dims[i]);
        }
    }
    uint64_t elements = presto_spec_elements(spec);
    if (spec->dtype == PRESTO_STRING) {
        for (uint64_t i = 0; i < elements; i++) {
            presto_span string = tensor->strings[i];
            at = presto__wire_put_head(at, STRING_VAL, string.bytes);
            if (string.bytes > 0)
                memcpy(at, string.data, string.bytes);
            at += string.bytes;
        }
    } else if (elements > 0) {
        size_t bytes = presto_tensor_bytes(tensor);
        at = presto__wire_put_head(at, CONTENT, bytes);
        memcpy(at, tensor->data, bytes);
        at += bytes;
    }
    return at;
}

presto_status presto__tensor_proto_check(const presto_tensor *tensor, presto_error *err) {
    size_t bytes;
    if (tensor->spec.dtype != PRESTO_STRING && presto_dtype_bytes(tensor->spec.dtype) == 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "tensor of unknown dtype");
    return presto_spec_bytes(&tensor->spec, &bytes, err);
}

presto_status presto__tensor_proto_append(presto_buffer *out, const presto_tensor *tensor,
                                          presto_error *err) {
    PRESTO_TRY(presto__tensor_proto_check(tensor, err));
    uint64_t bytes = presto__tensor_proto_size(tensor);
    if (bytes > PRESTO_FRAME_MAX_PAYLOAD_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "TensorProto of %ju bytes, protobuf's limit is %ju", (uintmax_t)bytes,
                           (uintmax_t)PRESTO_FRAME_MAX_PAYLOAD_BYTES);
    PRESTO_TRY(presto_buffer_reserve(out, (size_t)bytes, err));
    presto__tensor_proto_put(out->data + out->bytes, tensor);
    out->bytes += (size_t)bytes;
    return PRESTO_OK;
}
