/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a .safetensors file: its length as a u64, then JSON:
 *
 *     {"__metadata__": {...}, "NAME": {"dtype": "F32", "shape": [r, c], "data_offsets": [b, e]}, ...}
 *
 * Offsets count from the end of the header.
 */
#include "table_internal.h"

#include <jansson.h>

#include "../../base/bytes_internal.h"
#include "../../base/checked_internal.h"
#include "../../base/json_limit_internal.h"

#define NAMES_BYTES 200 /* of names in a message */
/* A tensor weighs 29: 144,000 of them stay below it. */
#define MAX_JSON_WEIGHT ((size_t)4 << 20)

static presto_status fail_header(const char *what, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                       "not the header of a .safetensors file: %s", what);
}

/* "'a', 'b', ..." as far as there is room. */
static void list_names(const json_t *header, char *text_out, size_t bytes) {
    const char *key;
    json_t *value;
    size_t used = 0;
    text_out[0] = '\0';
    json_object_foreach((json_t *)header, key, value) {
        if (strcmp(key, "__metadata__") == 0)
            continue;
        int more = snprintf(text_out + used, bytes - used, "%s'%.60s'", used > 0 ? ", " : "", key);
        if ((size_t)more >= bytes - used) {
            text_out[used] = '\0';
            break;
        }
        used += (size_t)more;
    }
}

static presto_status choose(const json_t *header, const char *tensor, const json_t **entry_out,
                            presto_error *err) {
    char names[NAMES_BYTES];
    const json_t *metadata = json_object_get(header, "__metadata__");
    size_t count = json_object_size(header) - (metadata != NULL ? 1 : 0);
    const json_t *found = tensor != NULL ? json_object_get(header, tensor) : NULL;
    const char *key;
    json_t *value;
    if (tensor == NULL && count == 1)
        json_object_foreach((json_t *)header, key, value) {
            if (value != metadata)
                found = value;
        }
    list_names(header, names, sizeof names);
    if (tensor == NULL && count != 1)
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                           "%zu tensors; the option 'tensor' says which is the table: %s", count,
                           names);
    if (found == NULL || found == metadata)
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                           "no tensor '%.100s'; there are: %s", tensor != NULL ? tensor : "",
                           names);
    *entry_out = found;
    return PRESTO_OK;
}

static presto_status take_shape(const json_t *shape, presto__table *out, presto_error *err) {
    int64_t dims[2] = {0};
    if (!json_is_array(shape))
        return fail_header("a tensor has no shape", err);
    for (size_t i = 0; i < 2 && i < json_array_size(shape); i++) {
        if (!json_is_integer(json_array_get(shape, i)))
            return fail_header("a dimension is no whole number", err);
        dims[i] = json_integer_value(json_array_get(shape, i));
    }
    return presto__table_shape(dims, json_array_size(shape), out, err);
}

static presto_status take_entry(const json_t *entry, uint64_t data_at, presto__table *out,
                                presto_error *err) {
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (dtype == NULL)
        return fail_header("a tensor has no dtype", err);
    if (strcmp(dtype, "F32") != 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "a tensor of type %.20s; a table has F32", dtype);
    PRESTO_TRY(take_shape(json_object_get(entry, "shape"), out, err));
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin) ||
        (uint64_t)(json_integer_value(end) - json_integer_value(begin)) !=
            out->rows * out->columns * sizeof(float))
        return fail_header("data_offsets do not fit the shape", err);
    if (!presto__u64_add(data_at, (uint64_t)json_integer_value(begin), &out->offset))
        return fail_header("data_offsets are too large", err);
    return PRESTO_OK;
}

presto_status presto__safetensors_find(presto_span header, const char *tensor,
                                       presto__table *table_out, presto_error *err) {
    uint64_t bytes;
    json_error_t where;
    PRESTO_TRY(presto__table_header_bytes(header, &bytes, err));
    if (bytes > header.bytes)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, header.bytes,
                           "the file ends within the header of a .safetensors file");
    presto_span text = presto_span_of(header.data + 8, (size_t)bytes - 8);
    PRESTO_TRY(presto__json_check(text, PRESTO__TABLE_MAX_HEADER_BYTES, MAX_JSON_WEIGHT, err));
    json_t *json = json_loadb((const char *)text.data, text.bytes, JSON_REJECT_DUPLICATES, &where);
    if (json == NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT, 8 + (uint64_t)where.position,
                           "not the header of a .safetensors file: %s", where.text);
    const json_t *entry = NULL;
    presto_status status = choose(json, tensor, &entry, err);
    if (status >= 0)
        status = take_entry(entry, bytes, table_out, err);
    json_decref(json);
    return status;
}
