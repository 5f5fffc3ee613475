/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dtypes, shapes and the arithmetic on them. Shapes come from outside, so every product is checked.
 */
#include <presto/tensor.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensor_internal.h"

typedef struct dtype_row {
    presto_dtype dtype;
    const char *name;
    size_t bytes;
    const char *numpy;
} dtype_row;

static const dtype_row dtypes[] = {
#define PRESTO_DTYPE_ROW(name, value, text, bytes, numpy) {name, text, bytes, numpy},
    PRESTO_DTYPE_LIST(PRESTO_DTYPE_ROW)
#undef PRESTO_DTYPE_ROW
};
#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

static const dtype_row *find_dtype(presto_dtype dtype) {
    for (size_t i = 0; i < DTYPE_COUNT; i++)
        if (dtypes[i].dtype == dtype)
            return &dtypes[i];
    return NULL;
}

const char *presto_dtype_name(presto_dtype dtype) {
    const dtype_row *row = find_dtype(dtype);
    return row != NULL ? row->name : "unknown";
}

presto_dtype presto_dtype_by_name(const char *name) {
    for (size_t i = 0; i < DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].dtype;
    return PRESTO_DTYPE_UNKNOWN;
}

size_t presto_dtype_bytes(presto_dtype dtype) {
    /* A switch, not the table: every sample passes here. */
    switch (dtype) {
#define PRESTO_DTYPE_BYTES(name, value, text, bytes, numpy)                                        \
    case name:                                                                                     \
        return bytes;
        PRESTO_DTYPE_LIST(PRESTO_DTYPE_BYTES)
#undef PRESTO_DTYPE_BYTES
    case PRESTO_DTYPE_UNKNOWN:
        break;
    }
    return 0;
}

const char *presto_dtype_numpy(presto_dtype dtype) {
    const dtype_row *row = find_dtype(dtype);
    return row != NULL ? row->numpy : NULL;
}

uint64_t presto_spec_elements(const presto_tensor_spec *spec) {
    uint64_t elements = 1;
    if (spec->rank < 0)
        return 0;
    for (int i = 0; i < spec->rank; i++) {
        if (spec->dims[i] <= 0)
            return 0;
        if (__builtin_mul_overflow(elements, (uint64_t)spec->dims[i], &elements))
            return 0;
    }
    return elements;
}

/* An empty tensor's other dimensions are bounded, too: strides are made of them. */
presto_status presto_spec_bytes(const presto_tensor_spec *spec, size_t *bytes_out,
                                presto_error *err) {
    char text[PRESTO_SPEC_TEXT_BYTES];
    if (spec->rank < 0 || spec->rank > PRESTO_MAX_RANK)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "tensor of rank %d, limit %d",
                           spec->rank, PRESTO_MAX_RANK);
    uint64_t elements = 1;
    bool is_empty = false, fits = true;
    for (int i = 0; i < spec->rank; i++) {
        if (spec->dims[i] < 0)
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "shape of %s is not known",
                               presto_spec_format(spec, text, sizeof text));
        if (spec->dims[i] == 0)
            is_empty = true;
        else if (__builtin_mul_overflow(elements, (uint64_t)spec->dims[i], &elements))
            fits = false;
    }
    size_t bytes = 0;
    if (!fits || __builtin_mul_overflow(elements, presto_dtype_bytes(spec->dtype), &bytes) ||
        bytes > PTRDIFF_MAX)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "%s is too large",
                           presto_spec_format(spec, text, sizeof text));
    *bytes_out = is_empty ? 0 : bytes;
    return PRESTO_OK;
}

bool presto_spec_equal(const presto_tensor_spec *a, const presto_tensor_spec *b) {
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

char *presto_spec_format(const presto_tensor_spec *spec, char *text_out, size_t bytes) {
    int used = snprintf(text_out, bytes, "%s", presto_dtype_name(spec->dtype));
    if (spec->rank < 0) {
        snprintf(text_out + used, bytes - (size_t)used, "[...]");
        return text_out;
    }
    for (int i = 0; i < spec->rank && i < PRESTO_MAX_RANK; i++) {
        char dim[24] = "?";
        if (spec->dims[i] != -1)
            snprintf(dim, sizeof dim, "%" PRId64, spec->dims[i]);
        int more = snprintf(text_out + used, bytes - (size_t)used, "%s%s", i == 0 ? "[" : ",", dim);
        if (more < 0 || (size_t)used + (size_t)more >= bytes)
            return text_out;
        used += more;
    }
    if (spec->rank > 0)
        snprintf(text_out + used, bytes - (size_t)used, "]");
    return text_out;
}

/* "?" or a whole number; NULL: neither. Else what follows it. */
static const char *parse_dim(const char *text, int64_t *dim_out) {
    size_t digits = strspn(text, "0123456789");
    *dim_out = -1;
    if (*text == '?')
        return text + 1;
    if (digits == 0 || digits > 18)
        return NULL;
    *dim_out = strtoll(text, NULL, 10);
    return text + digits;
}

bool presto__spec_parse(const char *text, presto_tensor_spec *spec_out) {
    presto_tensor_spec spec = {.dtype = PRESTO_DTYPE_UNKNOWN};
    char name[16];
    size_t bytes = strcspn(text, "[");
    if (bytes >= sizeof name)
        return false;
    memcpy(name, text, bytes);
    name[bytes] = '\0';
    spec.dtype = presto_dtype_by_name(name);
    const char *at = text + bytes;
    if (strcmp(at, "[...]") == 0) {
        spec.rank = -1;
        at += 5;
    } else if (*at == '[') {
        do {
            if (spec.rank == PRESTO_MAX_RANK)
                return false;
            at = parse_dim(at + 1, &spec.dims[spec.rank++]);
        } while (at != NULL && *at == ',');
        at = at != NULL && *at == ']' ? at + 1 : NULL;
    }
    if (spec.dtype == PRESTO_DTYPE_UNKNOWN || at == NULL || *at != '\0')
        return false;
    *spec_out = spec;
    return true;
}

const char *presto_encoding_name(presto_encoding encoding) {
    switch (encoding) {
    case PRESTO_ENCODE_BYTES:
        return "bytes";
    case PRESTO_ENCODE_INT64:
        return "int64";
    case PRESTO_ENCODE_FLOAT:
        return "float";
    case PRESTO_ENCODE_TENSOR:
        return "tensor";
    case PRESTO_ENCODE_NONE:
        return "none";
    }
    return "?";
}

size_t presto__sample_find(const presto_sample *sample, presto_span name) {
    for (size_t i = 0; i < sample->feature_count; i++)
        if (presto_span_equal(sample->features[i].name, name))
            return i;
    return SIZE_MAX;
}
