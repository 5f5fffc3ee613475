/* SPDX-License-Identifier: Apache-2.0 */
/* --format npy: arrays of each feature of each batch, and messages between them: docs/streams.md. */
#include <string.h>

#include "sink_parts.h"

/* The batch lacks a feature of earlier batches: all its rows are without a value. */
static presto_status show_lacking(sink *self, sink_column *one, const presto_batch *batch,
                                  presto_error *err) {
    size_t bytes = (batch->rows + 1) * sizeof(int64_t);
    self->zeros.bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(&self->zeros, bytes, err));
    memset(self->zeros.data, 0, bytes);
    const int64_t *zeros = (const int64_t *)(const void *)self->zeros.data;
    bool is_bytes = one->described.layout == PRESTO_LAYOUT_BYTES;
    one->lacking = (presto_batch_feature){
        .name = one->name,
        .layout = is_bytes ? PRESTO_LAYOUT_BYTES : PRESTO_LAYOUT_RAGGED,
        .tensor = {.spec = {.dtype = one->described.dtype, .rank = 1}, .data = zeros},
        .offsets = zeros,
        .row_offsets = is_bytes ? zeros : NULL};
    one->feature = &one->lacking;
    return PRESTO_OK;
}

/* Takes ownership of `json`. */
static presto_status add_message(sink *self, json_t *json, presto_error *err) {
    if (self->skip > 0 && json != NULL)
        json_object_set_new(json, "skip", json_integer((json_int_t)self->skip));
    PRESTO_TRY(npy_message(json, &self->message, err));
    char *header = (char *)self->message.data;
    return pieces_add(&self->out, header, self->message.bytes, err);
}

/* Write a description if it differs from the last one. */
static presto_status describe(sink *self, presto_error *err) {
    bool is_new = self->batches == 0;
    for (size_t i = 0; i < self->count; i++) {
        sink_column *one = &self->columns[i];
        npy_feature now = {.name = one->name,
                           .layout = one->feature->layout,
                           .dtype = one->feature->tensor.spec.dtype,
                           .has_rows = one->feature->row_offsets != NULL,
                           .has_shapes = one->feature->shapes != NULL};
        const npy_feature *said = &one->described;
        is_new = is_new || said->name == NULL || said->layout != now.layout ||
                 said->dtype != now.dtype || said->has_rows != now.has_rows ||
                 said->has_shapes != now.has_shapes;
        one->described = now;
    }
    if (!is_new)
        return PRESTO_OK;
    json_t *features = json_array();
    for (size_t i = 0; i < self->count; i++)
        json_array_append_new(features, npy_describe(&self->columns[i].described));
    return add_message(
        self, json_pack("{s:s,s:i,s:o}", "presto", "npy", "version", 1, "features", features), err);
}

static presto_status add_array(sink *self, sink_column *one, size_t slot,
                               const presto_tensor *tensor, presto_error *err) {
    size_t header_bytes = npy_format_header(&tensor->spec, 0, one->headers[slot]);
    if (header_bytes == 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "feature '%s': dtype %s has no NumPy counterpart", one->name,
                           presto_dtype_name(tensor->spec.dtype));
    presto_status status = pieces_add(&self->out, one->headers[slot], header_bytes, err);
    return status == PRESTO_OK
               ? pieces_add(&self->out, tensor->data, presto_tensor_bytes(tensor), err)
               : status;
}

static presto_tensor list_of(const int64_t *numbers, int64_t count) {
    return (presto_tensor){.spec = {PRESTO_INT64, 1, {count}}, .data = numbers};
}

/* The arrays of the feature: values, offsets, rows, shapes, as far as it has them. */
static presto_status add_feature(sink *self, sink_column *one, size_t rows, presto_error *err) {
    const presto_batch_feature *feature = one->feature;
    int64_t count = (int64_t)rows;
    int64_t items = feature->row_offsets == NULL ? count : feature->row_offsets[rows];
    presto_tensor shapes = list_of(feature->shapes, count);
    shapes.spec.rank = 2;
    shapes.spec.dims[1] = (int64_t)feature->shape_rank;
    const presto_tensor arrays[] = {feature->tensor, list_of(feature->offsets, items + 1),
                                    list_of(feature->row_offsets, count + 1), shapes};
    presto_status status = add_array(self, one, 0, &arrays[0], err);
    for (size_t slot = 1; slot < sizeof arrays / sizeof arrays[0] && status == PRESTO_OK; slot++)
        if (arrays[slot].data != NULL)
            status = add_array(self, one, slot, &arrays[slot], err);
    return status;
}

static presto_status write_npy(sink *self, const presto_batch *batch, presto_error *err) {
    PRESTO_TRY(sink_find_features(self, batch, err));
    for (size_t i = 0; i < self->count; i++)
        if (self->columns[i].feature == NULL)
            PRESTO_TRY(show_lacking(self, &self->columns[i], batch, err));
    presto_status status = describe(self, err);
    for (size_t i = 0; i < self->count && status == PRESTO_OK; i++)
        status = add_feature(self, &self->columns[i], batch->rows, err);
    return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
}

static presto_status end_npy(sink *self, presto_error *err) {
    presto_status status =
        add_message(self,
                    json_pack("{s:s,s:b,s:I,s:I}", "presto", "npy", "end", 1, "samples",
                              (json_int_t)self->samples, "batches", (json_int_t)self->batches),
                    err);
    return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
}

const sink_type sink_npy = {.name = "npy",
                            .output = PRESTO_OUTPUT_BATCHES,
                            .takes_features = true,
                            .takes_raw_records = true,
                            .is_stream = true,
                            .write = write_npy,
                            .end = end_npy};
