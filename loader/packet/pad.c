/* SPDX-License-Identifier: Apache-2.0 */
/* Padding: rows of differing length as one dense array, filled up along their first dimension. */
#include <float.h>
#include <math.h>

#include "columns_internal.h"

/* ---- the value ---- */

/* least <= value <= most, and whole. */
static bool is_whole(double value, double least, double most) {
    return value >= least && value <= most && floor(value) == value;
}

#define SET(type, least, most)                                                                     \
    do {                                                                                           \
        type typed = 0;                                                                            \
        if (!is_whole(value, (least), (most)))                                                     \
            return false;                                                                          \
        typed = (type)value;                                                                       \
        memcpy(element_out, &typed, sizeof typed);                                                 \
        return true;                                                                               \
    } while (0)

/* The bytes of one element; false if `dtype` cannot hold the value. */
static bool make_element(presto_dtype dtype, double value, uint8_t element_out[16]) {
    const double exact = 9007199254740992.0; /* 2^53: whole numbers up to here are themselves */
    float narrow;
    memset(element_out, 0, 16);
    switch (dtype) {
    case PRESTO_UINT8:
        SET(uint8_t, 0, UINT8_MAX);
    case PRESTO_UINT16:
        SET(uint16_t, 0, UINT16_MAX);
    case PRESTO_UINT32:
        SET(uint32_t, 0, UINT32_MAX);
    case PRESTO_UINT64:
        SET(uint64_t, 0, exact);
    case PRESTO_INT8:
        SET(int8_t, INT8_MIN, INT8_MAX);
    case PRESTO_INT16:
        SET(int16_t, INT16_MIN, INT16_MAX);
    case PRESTO_INT32:
        SET(int32_t, INT32_MIN, INT32_MAX);
    case PRESTO_INT64:
        SET(int64_t, -exact, exact);
    case PRESTO_BOOL:
        SET(uint8_t, 0, 1);
    case PRESTO_FLOAT64:
    case PRESTO_COMPLEX128: /* a real one */
        memcpy(element_out, &value, sizeof value);
        return true;
    case PRESTO_FLOAT32:
    case PRESTO_COMPLEX64:
        if (!(fabs(value) <= (double)FLT_MAX))
            return false;
        narrow = (float)value;
        memcpy(element_out, &narrow, sizeof narrow);
        return true;
    case PRESTO_FLOAT16:
    case PRESTO_BFLOAT16:
    case PRESTO_STRING:
    case PRESTO_DTYPE_UNKNOWN:
    default:
        return value == 0;
    }
}

static void fill_with(uint8_t *to, size_t bytes, const uint8_t *element, size_t width) {
    if (width == 1) {
        memset(to, element[0], bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += width)
        memcpy(to + i, element, width);
}

/* ---- the rows ---- */

static presto_status fail_shape(const char *name, const char *why, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
                       "feature \"%.100s\" cannot be padded: %s", name, why);
}

/* The dims after the first, which all rows must share. Rows without values are ignored. */
static presto_status find_inner(const presto_batch_feature *feature, size_t rows,
                                presto_tensor_spec *inner_out, presto_error *err) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    *inner_out = (presto_tensor_spec){.dtype = spec->dtype};
    if (feature->layout == PRESTO_LAYOUT_DENSE) {
        for (int i = 2; i < spec->rank; i++)
            inner_out->dims[inner_out->rank++] = spec->dims[i];
        return PRESTO_OK;
    }
    if (feature->layout == PRESTO_LAYOUT_BYTES && feature->row_offsets != NULL)
        return fail_shape(feature->name, "a row has another number of strings than one", err);
    bool is_known = false;
    for (size_t row = 0; row < rows && feature->shapes != NULL; row++) {
        const int64_t *dims = feature->shapes + row * feature->shape_rank;
        if (feature->offsets[row + 1] == feature->offsets[row])
            continue;
        presto_tensor_spec inner = {.dtype = spec->dtype};
        for (size_t i = 1; i < feature->shape_rank && dims[i] >= 0; i++)
            inner.dims[inner.rank++] = dims[i];
        if (is_known && !presto_spec_equal(&inner, inner_out))
            return fail_shape(feature->name, "its rows differ in more than the first dimension",
                              err);
        *inner_out = inner;
        is_known = true;
    }
    return PRESTO_OK;
}

/* The number of elements of row `row`, and where they start. */
static size_t row_elements(const presto_batch_feature *feature, size_t row, size_t *start_out) {
    if (feature->layout != PRESTO_LAYOUT_DENSE) {
        *start_out = (size_t)feature->offsets[row];
        return (size_t)(feature->offsets[row + 1] - feature->offsets[row]);
    }
    size_t each = 1;
    for (int i = 1; i < feature->tensor.spec.rank; i++)
        each *= (size_t)feature->tensor.spec.dims[i];
    *start_out = row * each;
    return each;
}

static presto_status make_array(presto__packet_batch *batch, const presto_tensor_spec *spec,
                                uint8_t **array_out, presto_error *err) {
    size_t bytes;
    PRESTO_TRY(presto_spec_bytes(spec, &bytes, err));
    *array_out = presto__slab_alloc(&batch->packet->slab, bytes, bytes);
    return *array_out == NULL ? presto_fail_memory(err, bytes) : PRESTO_OK;
}

/* The padded array's spec: rows, their length, the dims behind. */
static presto_status shape_of(const presto_batch_feature *feature, size_t rows, uint64_t length,
                              presto_tensor_spec *spec_out, presto_error *err) {
    presto_tensor_spec inner;
    PRESTO_TRY(find_inner(feature, rows, &inner, err));
    uint64_t each = presto_spec_elements(&inner), longest = length;
    for (size_t row = 0; row < rows && length == 0; row++) {
        size_t start, elements = row_elements(feature, row, &start);
        uint64_t own = each == 0 ? 0 : elements / each;
        longest = own > longest ? own : longest;
    }
    *spec_out = (presto_tensor_spec){.dtype = inner.dtype, .rank = 2};
    spec_out->dims[0] = (int64_t)rows;
    spec_out->dims[1] = (int64_t)longest;
    for (int i = 0; i < inner.rank; i++)
        spec_out->dims[spec_out->rank++] = inner.dims[i];
    return PRESTO_OK;
}

presto_status presto__batch_pad(presto__packet_batch *batch, const presto__rule *rule,
                                presto_batch_feature *feature, presto_error *err) {
    size_t rows = batch->shown.rows;
    size_t width = presto_dtype_bytes(feature->tensor.spec.dtype);
    presto_tensor_spec spec;
    uint8_t element[16], *array;
    PRESTO_TRY(shape_of(feature, rows, rule->pad_length, &spec, err));
    if (!make_element(spec.dtype, rule->pad_value, element))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "feature \"%.100s\" is %s, which %g to pad it with does not fit",
                           feature->name, presto_dtype_name(spec.dtype), rule->pad_value);
    PRESTO_TRY(make_array(batch, &spec, &array, err));
    size_t row_bytes = rows == 0 ? 0 : (size_t)presto_spec_elements(&spec) / rows * width;
    const uint8_t *values = feature->tensor.data;
    for (size_t row = 0; row < rows && row_bytes > 0; row++) {
        size_t start, bytes = row_elements(feature, row, &start) * width;
        uint8_t *to = array + row * row_bytes;
        if (bytes > 0)
            memcpy(to, values + start * width, bytes);
        fill_with(to + bytes, row_bytes - bytes, element, width);
    }
    *feature = (presto_batch_feature){
        .name = feature->name, .encoding = feature->encoding, .layout = PRESTO_LAYOUT_DENSE};
    feature->tensor = (presto_tensor){.spec = spec, .data = array};
    return PRESTO_OK;
}
