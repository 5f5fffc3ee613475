/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a table -> tf.train.Examples. What is the same in all rows is made once: the order of the
 * features, and for each the bytes of its name. A row takes one pass over the sizes of its values,
 * which are kept, and one of writing. presto_example_append looks at each size three times.
 *
 * What is short is copied in whole pieces of a fixed size, which compilers make a few moves of:
 * behind the Example there is room for the rest of a piece.
 */
#include <stdlib.h>

#include "../records_internal.h"
#include "example_internal.h"

#define PIECE 32 /* bytes */

/* A name as a field of its map entry: tag, length, bytes. */
typedef struct row_name {
    uint8_t field[PIECE];     /* if it fits */
    const uint8_t *elsewhere; /* else; of the arena */
    size_t bytes;
} row_name;

struct presto__example_rows {
    row_name *names;      /* of the arena */
    uint64_t *list_bytes; /* of the row's values; likewise */
    size_t count;
    presto_arena arena;
};

static presto_status take_name(presto__example_rows *rows, presto_span name, row_name *name_out,
                               presto_error *err) {
    uint8_t *field = name_out->field;
    name_out->bytes = (size_t)presto__wire_bytes_size(name.bytes);
    if (name_out->bytes > PIECE) {
        field = presto_arena_alloc(&rows->arena, name_out->bytes, 1);
        if (field == NULL)
            return presto_fail_memory(err, name_out->bytes);
        name_out->elsewhere = field;
    }
    field = presto__wire_put_head(field, 1, name.bytes);
    if (name.bytes > 0)
        memcpy(field, name.data, name.bytes);
    return PRESTO_OK;
}

presto_status presto__example_rows_new(const presto_span *names, size_t count,
                                       presto__example_rows **rows_out, presto_error *err) {
    presto__example_rows *rows = calloc(1, sizeof *rows);
    if (rows == NULL)
        return presto_fail_memory(err, sizeof *rows);
    rows->count = count;
    rows->names = presto_arena_alloc(&rows->arena, count * sizeof *rows->names, _Alignof(row_name));
    rows->list_bytes =
        presto_arena_alloc(&rows->arena, count * sizeof *rows->list_bytes, _Alignof(uint64_t));
    presto_status status = rows->names != NULL && rows->list_bytes != NULL
                               ? PRESTO_OK
                               : presto_fail_memory(err, count * sizeof *rows->names);
    for (size_t i = 0; i < count && status == PRESTO_OK; i++) {
        rows->names[i] = (row_name){.elsewhere = NULL};
        status = take_name(rows, names[i], &rows->names[i], err);
    }
    if (status < 0) {
        presto__example_rows_free(rows);
        return status;
    }
    *rows_out = rows;
    return PRESTO_OK;
}

void presto__example_rows_free(presto__example_rows *rows) {
    if (rows == NULL)
        return;
    presto_arena_done(&rows->arena);
    free(rows);
}

/* ---- sizes ---- */

/* Bytes of a field with a one-byte tag. Nearly all are short. */
static inline uint64_t field_size(uint64_t bytes) {
    return bytes < 0x80 ? bytes + 2 : presto__wire_bytes_size(bytes);
}

/* Of a value that is a number or has one dimension. */
static uint64_t count_of(const presto_tensor *tensor) {
    return tensor->spec.rank == 0 ? 1 : (uint64_t)tensor->spec.dims[0];
}

/* Bytes of the list message. */
static uint64_t value_size(const presto_feature *feature) {
    const presto_tensor *tensor = &feature->tensor;
    uint64_t bytes = 0, count;
    switch (feature->encoding) {
    case PRESTO_ENCODE_TENSOR:
        return field_size(presto__tensor_proto_size(tensor));
    case PRESTO_ENCODE_BYTES:
        count = count_of(tensor);
        for (uint64_t i = 0; i < count && bytes <= PRESTO_FRAME_MAX_PAYLOAD_BYTES; i++)
            bytes += field_size(tensor->strings[i].bytes);
        return bytes;
    case PRESTO_ENCODE_FLOAT:
        count = count_of(tensor);
        return count > 0 ? field_size(count * 4) : 0;
    case PRESTO_ENCODE_INT64:
        count = count_of(tensor);
        return count > 0 ? field_size(presto__packed_bytes(tensor->data, count)) : 0;
    case PRESTO_ENCODE_NONE:
        break;
    }
    return 0;
}

static uint64_t feature_size(const presto_feature *feature, uint64_t list_bytes) {
    return feature->encoding == PRESTO_ENCODE_NONE ? 0 : field_size(list_bytes);
}

/* ---- writing ---- */

/* Tag and length of a field. Nearly all are short. */
static inline uint8_t *put_head(uint8_t *at, uint8_t tag, uint64_t bytes) {
    at[0] = tag;
    at[1] = (uint8_t)bytes;
    return bytes < 0x80 ? at + 2 : presto__varint_put(at + 1, bytes);
}

static inline uint8_t *put_span(uint8_t *at, presto_span span) {
    at = put_head(at, 0x0a, span.bytes);
    if (span.bytes > 0)
        memcpy(at, span.data, span.bytes);
    return at + span.bytes;
}

static uint8_t *put_numbers(uint8_t *at, const presto_tensor *tensor, uint64_t list_bytes) {
    uint64_t count = count_of(tensor);
    const uint8_t *data = tensor->data;
    if (count == 0)
        return at;
    /* The list is this field alone: what its head leaves are the numbers. */
    uint64_t bytes = list_bytes - 2;
    while (field_size(bytes) > list_bytes)
        bytes--;
    at = put_head(at, 0x0a, bytes);
    for (uint64_t i = 0; i < count; i++)
        at = presto__varint_put(at, presto__load_u64(data + i * 8));
    return at;
}

static uint8_t *put_value(uint8_t *at, const presto_feature *feature, uint64_t list_bytes) {
    const presto_tensor *tensor = &feature->tensor;
    uint64_t count;
    switch (feature->encoding) {
    case PRESTO_ENCODE_TENSOR:
        at = put_head(put_head(at, 0x0a, list_bytes), 0x0a, presto__tensor_proto_size(tensor));
        return presto__tensor_proto_put(at, tensor);
    case PRESTO_ENCODE_BYTES:
        at = put_head(at, 0x0a, list_bytes);
        count = count_of(tensor);
        for (uint64_t i = 0; i < count; i++)
            at = put_span(at, tensor->strings[i]);
        return at;
    case PRESTO_ENCODE_FLOAT:
        at = put_head(at, 0x12, list_bytes);
        count = count_of(tensor);
        return count > 0 ? put_span(at, presto_span_of(tensor->data, (size_t)count * 4)) : at;
    case PRESTO_ENCODE_INT64:
        return put_numbers(put_head(at, 0x1a, list_bytes), tensor, list_bytes);
    case PRESTO_ENCODE_NONE:
        break;
    }
    return at;
}

static inline uint8_t *put_name(uint8_t *at, const row_name *name) {
    if (name->bytes <= PIECE)
        memcpy(at, name->field, PIECE);
    else
        memcpy(at, name->elsewhere, name->bytes);
    return at + name->bytes;
}

presto_status presto__example_rows_append(presto__example_rows *rows, presto_buffer *out,
                                          const presto_feature *features, presto_error *err) {
    uint64_t features_bytes = 0;
    for (size_t i = 0; i < rows->count; i++) {
        uint64_t list_bytes = value_size(&features[i]);
        rows->list_bytes[i] = list_bytes;
        uint64_t entry = rows->names[i].bytes + field_size(feature_size(&features[i], list_bytes));
        features_bytes += field_size(entry);
        if (list_bytes > PRESTO_FRAME_MAX_PAYLOAD_BYTES ||
            features_bytes > PRESTO_FRAME_MAX_PAYLOAD_BYTES)
            break;
    }
    uint64_t bytes = field_size(features_bytes);
    if (bytes > PRESTO_FRAME_MAX_PAYLOAD_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "Example of %ju bytes or more, protobuf's limit is %ju",
                           (uintmax_t)bytes, (uintmax_t)PRESTO_FRAME_MAX_PAYLOAD_BYTES);
    PRESTO_TRY(presto_buffer_reserve(out, (size_t)bytes + PIECE, err));
    uint8_t *at = put_head(out->data + out->bytes, 0x0a, features_bytes);
    for (size_t i = 0; i < rows->count; i++) {
        uint64_t feature_bytes = feature_size(&features[i], rows->list_bytes[i]);
        at = put_head(at, 0x0a, rows->names[i].bytes + field_size(feature_bytes));
        at = put_name(at, &rows->names[i]);
        at = put_head(at, 0x12, feature_bytes);
        at = put_value(at, &features[i], rows->list_bytes[i]);
    }
    out->bytes = (size_t)(at - out->data);
    return PRESTO_OK;
}
