/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sample -> tf.train.Example: sizes first, then one pass of writing into memory that is large
 * enough. Features are sorted by name, so equal samples give equal bytes.
 */
#include <presto/example.h>

#include <stdlib.h>

#include "example_internal.h"

/* Up to this many features, their order is kept on the stack. */
#define FEW_FEATURES 64

/* Field number of the list in Feature; 0 for a feature without a kind. */
static unsigned list_number(presto_encoding encoding) {
    switch (encoding) {
    case PRESTO_ENCODE_BYTES:
    case PRESTO_ENCODE_TENSOR:
        return 1;
    case PRESTO_ENCODE_FLOAT:
        return 2;
    case PRESTO_ENCODE_INT64:
        return 3;
    case PRESTO_ENCODE_NONE:
        break;
    }
    return 0;
}

static presto_dtype list_dtype(presto_encoding encoding) {
    switch (encoding) {
    case PRESTO_ENCODE_BYTES:
        return PRESTO_STRING;
    case PRESTO_ENCODE_FLOAT:
        return PRESTO_FLOAT32;
    case PRESTO_ENCODE_INT64:
        return PRESTO_INT64;
    case PRESTO_ENCODE_TENSOR:
    case PRESTO_ENCODE_NONE:
        break;
    }
    return PRESTO_DTYPE_UNKNOWN;
}

static presto_status check_feature(const presto_feature *feature, presto_error *err) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    if (feature->encoding == PRESTO_ENCODE_NONE)
        return PRESTO_OK;
    if (feature->encoding == PRESTO_ENCODE_TENSOR)
        return presto__tensor_proto_check(&feature->tensor, err);
    char text[PRESTO_SPEC_TEXT_BYTES];
    size_t bytes;
    if (spec->dtype != list_dtype(feature->encoding) || spec->rank < 0 || spec->rank > 1)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "feature '%.*s' is %s and cannot be stored as %s",
                           (int)feature->name.bytes, (const char *)feature->name.data,
                           presto_spec_format(spec, text, sizeof text),
                           presto_encoding_name(feature->encoding));
    return presto_spec_bytes(spec, &bytes, err);
}

/* ---- sizes ---- */

/* Bytes of the list message. */
static uint64_t list_size(const presto_feature *feature) {
    const presto_tensor *tensor = &feature->tensor;
    uint64_t count = presto_spec_elements(&tensor->spec);
    uint64_t bytes = 0;
    switch (feature->encoding) {
    case PRESTO_ENCODE_TENSOR:
        return presto__wire_bytes_size(presto__tensor_proto_size(tensor));
    case PRESTO_ENCODE_BYTES:
        for (uint64_t i = 0; i < count; i++)
            bytes += presto__wire_bytes_size(tensor->strings[i].bytes);
        return bytes;
    case PRESTO_ENCODE_FLOAT:
        return count > 0 ? presto__wire_bytes_size(count * 4) : 0;
    case PRESTO_ENCODE_INT64:
        return count > 0 ? presto__wire_bytes_size(presto__packed_bytes(tensor->data, count)) : 0;
    case PRESTO_ENCODE_NONE:
        break;
    }
    return 0;
}

static uint64_t feature_size(const presto_feature *feature, uint64_t list_bytes) {
    return feature->encoding == PRESTO_ENCODE_NONE ? 0 : presto__wire_bytes_size(list_bytes);
}

static uint64_t entry_size(const presto_feature *feature, uint64_t feature_bytes) {
    return presto__wire_bytes_size(feature->name.bytes) + presto__wire_bytes_size(feature_bytes);
}

/* ---- writing ---- */

static uint8_t *put_span(uint8_t *at, unsigned number, presto_span span) {
    at = presto__wire_put_head(at, number, span.bytes);
    if (span.bytes > 0)
        memcpy(at, span.data, span.bytes);
    return at + span.bytes;
}

static uint8_t *put_list(uint8_t *at, const presto_feature *feature) {
    const presto_tensor *tensor = &feature->tensor;
    uint64_t count = presto_spec_elements(&tensor->spec);
    switch (feature->encoding) {
    case PRESTO_ENCODE_TENSOR:
        at = presto__wire_put_head(at, 1, presto__tensor_proto_size(tensor));
        return presto__tensor_proto_put(at, tensor);
    case PRESTO_ENCODE_BYTES:
        for (uint64_t i = 0; i < count; i++)
            at = put_span(at, 1, tensor->strings[i]);
        return at;
    case PRESTO_ENCODE_FLOAT:
        if (count > 0)
            at = put_span(at, 1, presto_span_of(tensor->data, (size_t)count * 4));
        return at;
    case PRESTO_ENCODE_INT64:
        if (count > 0)
            at = presto__wire_put_head(at, 1, presto__packed_bytes(tensor->data, count));
        for (uint64_t i = 0; i < count; i++)
            at = presto__varint_put(at, presto__load_u64((const uint8_t *)tensor->data + i * 8));
        return at;
    case PRESTO_ENCODE_NONE:
        break;
    }
    return at;
}

static uint8_t *put_entry(uint8_t *at, const presto_feature *feature) {
    uint64_t list_bytes = list_size(feature);
    uint64_t feature_bytes = feature_size(feature, list_bytes);
    at = presto__wire_put_head(at, 1, entry_size(feature, feature_bytes));
    at = put_span(at, 1, feature->name);
    at = presto__wire_put_head(at, 2, feature_bytes);
    if (feature->encoding == PRESTO_ENCODE_NONE)
        return at;
    at = presto__wire_put_head(at, list_number(feature->encoding), list_bytes);
    return put_list(at, feature);
}

static int compare_features(const void *a, const void *b) {
    const presto_feature *first = *(const presto_feature *const *)a;
    const presto_feature *second = *(const presto_feature *const *)b;
    if (presto__name_less(first->name, second->name))
        return -1;
    return presto__name_less(second->name, first->name) ? 1 : 0;
}

/* Insertion sort: features are few and nearly always sorted already. */
static void sort_few(const presto_feature **order, size_t count) {
    for (size_t i = 1; i < count; i++) {
        const presto_feature *feature = order[i];
        size_t at = i;
        for (; at > 0 && presto__name_less(feature->name, order[at - 1]->name); at--)
            order[at] = order[at - 1];
        order[at] = feature;
    }
}

static presto_status append_ordered(presto_buffer *out, const presto_feature *const *order,
                                    size_t count, presto_error *err) {
    uint64_t features_bytes = 0;
    for (size_t i = 0; i < count; i++)
        features_bytes += presto__wire_bytes_size(
            entry_size(order[i], feature_size(order[i], list_size(order[i]))));
    uint64_t bytes = presto__wire_bytes_size(features_bytes);
    if (bytes > PRESTO_FRAME_MAX_PAYLOAD_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "Example of %ju bytes, protobuf's limit is %ju", (uintmax_t)bytes,
                           (uintmax_t)PRESTO_FRAME_MAX_PAYLOAD_BYTES);
    PRESTO_TRY(presto_buffer_reserve(out, (size_t)bytes, err));
    uint8_t *at = presto__wire_put_head(out->data + out->bytes, 1, features_bytes);
    for (size_t i = 0; i < count; i++)
        at = put_entry(at, order[i]);
    out->bytes = (size_t)(at - out->data);
    return PRESTO_OK;
}

presto_status presto_example_append(presto_buffer *out, const presto_sample *sample,
                                    presto_error *err) {
    const presto_feature *few[FEW_FEATURES];
    const presto_feature **order = few;
    size_t count = sample->feature_count;
    for (size_t i = 0; i < count; i++)
        PRESTO_TRY(check_feature(&sample->features[i], err));
    if (count > FEW_FEATURES) {
        order = malloc(count * sizeof *order);
        if (order == NULL)
            return presto_fail_memory(err, count * sizeof *order);
    }
    for (size_t i = 0; i < count; i++)
        order[i] = &sample->features[i];
    if (count > FEW_FEATURES)
        qsort(order, count, sizeof *order, compare_features);
    else
        sort_few(order, count);
    presto_status status = append_ordered(out, order, count, err);
    if (order != few)
        free(order);
    return status;
}
