/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy: arrays of each feature of each batch, and messages between them: docs/streams.md.
 * Source: NumPy's numpy/lib/format.py, format version 1.0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "out_internal.h"

/* A header needs at most 10 bytes and a dictionary of eight dims. */
enum { MAGIC_BYTES = 10, ALIGNMENT = 64, HEADER_BYTES = 320, MOST_ARRAYS = 4 };

/* A feature as a description has it. */
typedef struct npy_feature {
    const char *name; /* the column's */
    presto_layout layout;
    presto_dtype dtype; /* of the values */
    bool has_rows, has_shapes;
} npy_feature;

/* What is kept of a column. */
typedef struct npy_column {
    npy_feature described; /* as in the last description */
    char headers[MOST_ARRAYS][HEADER_BYTES];
    presto_batch_feature lacking; /* in a batch that lacks it */
} npy_column;

typedef struct npy_state {
    uint64_t skip;
    npy_column *columns; /* of as many as the columns of presto_out */
    size_t count;
    presto_buffer message; /* the description, or the end */
    presto_buffer zeros;   /* offsets of a feature that the batch lacks */
} npy_state;

/* ---- headers and messages ---- */

/*
 * The header of an array, padded so that the data starts at a multiple of 64 bytes. `item_bytes`:
 * width of the fixed-width strings if dtype is PRESTO_STRING.
 * Returns its size, or 0 if the dtype has no NumPy counterpart.
 */
static size_t format_header(const presto_tensor_spec *spec, size_t item_bytes,
                            char header_out[HEADER_BYTES]) {
    const char *type = presto_dtype_numpy(spec->dtype);
    if (type == NULL)
        return 0;
    char width[24] = "";
    if (spec->dtype == PRESTO_STRING)
        snprintf(width, sizeof width, "%zu", item_bytes);
    char *text = header_out + MAGIC_BYTES;
    size_t room = HEADER_BYTES - MAGIC_BYTES;
    size_t used = (size_t)snprintf(
        text, room, "{'descr': '%s%s', 'fortran_order': False, 'shape': (", type, width);
    for (int i = 0; i < spec->rank; i++)
        used += (size_t)snprintf(text + used, room - used, "%jd,%s", (intmax_t)spec->dims[i],
                                 i + 1 < spec->rank ? " " : "");
    used += (size_t)snprintf(text + used, room - used, "), }");
    /* The header ends in a newline; blanks before it fill up to the alignment. */
    size_t total = (MAGIC_BYTES + used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t text_bytes = total - MAGIC_BYTES;
    memset(text + used, ' ', text_bytes - used);
    text[text_bytes - 1] = '\n';
    static const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
    memcpy(header_out, magic, sizeof magic);
    header_out[8] = (char)(text_bytes & 0xff);
    header_out[9] = (char)(text_bytes >> 8);
    return total;
}

/* Its entry in the description; NULL: no memory, or a name that is not UTF-8. */
static json_t *describe_feature(const npy_feature *feature) {
    json_t *arrays = json_array();
    json_array_append_new(arrays, json_string("values"));
    if (feature->layout != PRESTO_LAYOUT_DENSE)
        json_array_append_new(arrays, json_string("offsets"));
    if (feature->has_rows)
        json_array_append_new(arrays, json_string("rows"));
    if (feature->has_shapes)
        json_array_append_new(arrays, json_string("shapes"));
    return json_pack("{s:s,s:s,s:s,s:o}", "name", feature->name, "layout",
                     presto_layout_name(feature->layout), "dtype",
                     presto_dtype_name(feature->dtype), "arrays", arrays);
}

/*
 * Set `out` to a message: an array of one element of type S, which is `json`, padded with blanks to
 * a multiple of 64 bytes. Takes ownership of `json`; NULL fails.
 */
static presto_status make_message(json_t *json, presto_buffer *out, presto_error *err) {
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (text == NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "cannot describe the features: no memory, or a name that is not UTF-8");
    size_t bytes = strlen(text);
    size_t padded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    presto_tensor_spec spec = {.dtype = PRESTO_STRING};
    char header[HEADER_BYTES];
    size_t header_bytes = format_header(&spec, padded, header);
    out->bytes = 0;
    presto_status status = presto_buffer_reserve(out, header_bytes + padded, err);
    if (status == PRESTO_OK) {
        memcpy(out->data, header, header_bytes);
        memcpy(out->data + header_bytes, text, bytes);
        memset(out->data + header_bytes + bytes, ' ', padded - bytes);
        out->bytes = header_bytes + padded;
    }
    free(text);
    return status;
}
/* ---- a batch ---- */

/* The batch lacks a feature of earlier batches: all its rows are without a value. */
static presto_status show_lacking(npy_state *self, presto__out_column *column, npy_column *one,
                                  size_t rows, presto_error *err) {
    size_t bytes = (rows + 1) * sizeof(int64_t);
    self->zeros.bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(&self->zeros, bytes, err));
    memset(self->zeros.data, 0, bytes);
    const int64_t *zeros = (const int64_t *)(const void *)self->zeros.data;
    bool is_bytes = one->described.layout == PRESTO_LAYOUT_BYTES;
    one->lacking = (presto_batch_feature){
        .name = column->name,
        .layout = is_bytes ? PRESTO_LAYOUT_BYTES : PRESTO_LAYOUT_RAGGED,
        .tensor = {.spec = {.dtype = one->described.dtype, .rank = 1}, .data = zeros},
        .offsets = zeros,
        .row_offsets = is_bytes ? zeros : NULL};
    column->feature = &one->lacking;
    return PRESTO_OK;
}

/* Takes ownership of `json`. */
static presto_status add_message(presto_out *out, json_t *json, presto_error *err) {
    npy_state *self = out->state;
    if (self->skip > 0 && json != NULL)
        json_object_set_new(json, "skip", json_integer((json_int_t)self->skip));
    PRESTO_TRY(make_message(json, &self->message, err));
    return presto__out_add(out, self->message.data, self->message.bytes, err);
}

/* Write a description if it differs from the last one. */
static presto_status describe(presto_out *out, presto_error *err) {
    npy_state *self = out->state;
    bool is_new = out->batches == 0;
    for (size_t i = 0; i < out->count; i++) {
        const presto_batch_feature *feature = out->columns[i].feature;
        npy_feature now = {.name = out->columns[i].name,
                           .layout = feature->layout,
                           .dtype = feature->tensor.spec.dtype,
                           .has_rows = feature->row_offsets != NULL,
                           .has_shapes = feature->shapes != NULL};
        npy_feature *said = &self->columns[i].described;
        is_new = is_new || said->name == NULL || said->layout != now.layout ||
                 said->dtype != now.dtype || said->has_rows != now.has_rows ||
                 said->has_shapes != now.has_shapes;
        *said = now;
    }
    if (!is_new)
        return PRESTO_OK;
    json_t *features = json_array();
    for (size_t i = 0; i < out->count; i++)
        json_array_append_new(features, describe_feature(&self->columns[i].described));
    return add_message(
        out, json_pack("{s:s,s:i,s:o}", "presto", "npy", "version", 1, "features", features), err);
}

static presto_status add_array(presto_out *out, const char *name, char header[HEADER_BYTES],
                               const presto_tensor *tensor, presto_error *err) {
    size_t header_bytes = format_header(&tensor->spec, 0, header);
    if (header_bytes == 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "feature '%s': dtype %s has no NumPy counterpart", name,
                           presto_dtype_name(tensor->spec.dtype));
    presto_status status = presto__out_add(out, header, header_bytes, err);
    return status == PRESTO_OK
               ? presto__out_add(out, tensor->data, presto_tensor_bytes(tensor), err)
               : status;
}

static presto_tensor list_of(const int64_t *numbers, int64_t count) {
    return (presto_tensor){.spec = {PRESTO_INT64, 1, {count}}, .data = numbers};
}

/* The arrays of the feature: values, offsets, rows, shapes, as far as it has them. */
static presto_status add_feature(presto_out *out, size_t column, size_t rows, presto_error *err) {
    const presto_batch_feature *feature = out->columns[column].feature;
    npy_column *one = &((npy_state *)out->state)->columns[column];
    int64_t count = (int64_t)rows;
    int64_t items = feature->row_offsets == NULL ? count : feature->row_offsets[rows];
    presto_tensor shapes = list_of(feature->shapes, count);
    shapes.spec.rank = 2;
    shapes.spec.dims[1] = (int64_t)feature->shape_rank;
    const presto_tensor arrays[MOST_ARRAYS] = {feature->tensor,
                                               list_of(feature->offsets, items + 1),
                                               list_of(feature->row_offsets, count + 1), shapes};
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < MOST_ARRAYS && status == PRESTO_OK; i++)
        if (i == 0 || arrays[i].data != NULL)
            status = add_array(out, feature->name, one->headers[i], &arrays[i], err);
    return status;
}

/* What is kept of columns that are new. Their number is that of presto_out. */
static presto_status keep_columns(presto_out *out, presto_error *err) {
    npy_state *self = out->state;
    if (self->count == out->count)
        return PRESTO_OK;
    size_t bytes = out->count * sizeof *self->columns;
    npy_column *columns = realloc(self->columns, bytes);
    if (columns == NULL)
        return presto_fail_memory(err, bytes);
    memset(columns + self->count, 0, (out->count - self->count) * sizeof *columns);
    self->columns = columns;
    self->count = out->count;
    return PRESTO_OK;
}

static presto_status encode_npy(presto_out *out, const presto_batch *batch, presto_error *err) {
    npy_state *self = out->state;
    PRESTO_TRY(presto__out_find_features(out, batch, err));
    PRESTO_TRY(keep_columns(out, err));
    for (size_t i = 0; i < out->count; i++)
        if (out->columns[i].feature == NULL)
            PRESTO_TRY(show_lacking(self, &out->columns[i], &self->columns[i], batch->rows, err));
    presto_status status = describe(out, err);
    for (size_t i = 0; i < out->count && status == PRESTO_OK; i++)
        status = add_feature(out, i, batch->rows, err);
    return status;
}

/* ---- life ---- */

static presto_status begin_npy(presto_out *out, const presto_out_options *options,
                               presto_error *err) {
    (void)err;
    ((npy_state *)out->state)->skip = options->skip;
    return PRESTO_OK;
}

static presto_status end_npy(presto_out *out, presto_error *err) {
    return add_message(out,
                       json_pack("{s:s,s:b,s:I,s:I}", "presto", "npy", "end", 1, "samples",
                                 (json_int_t)out->samples, "batches", (json_int_t)out->batches),
                       err);
}

static void done_npy(presto_out *out) {
    npy_state *self = out->state;
    presto_buffer_done(&self->message);
    presto_buffer_done(&self->zeros);
    free(self->columns);
}

const presto__out_type presto__out_npy = {.about = {.name = "npy",
                                                    .help = "arrays of each feature of each batch",
                                                    .takes_features = true,
                                                    .takes_raw_records = true},
                                          .state_bytes = sizeof(npy_state),
                                          .begin = begin_npy,
                                          .encode = encode_npy,
                                          .end = end_npy,
                                          .done = done_npy};
