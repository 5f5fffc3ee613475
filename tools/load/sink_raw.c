/* SPDX-License-Identifier: Apache-2.0 */
/* --format raw: bare tensors back to back. */
#include "sink_parts.h"

/* The shape of row `row` for raw: a list of one value is a scalar. */
static presto_tensor_spec row_spec(const presto_batch_feature *feature, size_t row) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    presto_tensor_spec own = {.dtype = spec->dtype};
    if (feature->layout == PRESTO_LAYOUT_DENSE) {
        for (int i = 1; i < spec->rank; i++)
            own.dims[own.rank++] = spec->dims[i];
    } else if (feature->shapes != NULL) {
        const int64_t *dims = feature->shapes + row * feature->shape_rank;
        for (size_t i = 0; i < feature->shape_rank && dims[i] >= 0; i++)
            own.dims[own.rank++] = dims[i];
    } else {
        own.dims[own.rank++] = feature->offsets[row + 1] - feature->offsets[row];
    }
    if (own.rank == 1 && own.dims[0] == 1)
        own = (presto_tensor_spec){.dtype = spec->dtype};
    return own;
}

/* A raw stream does not mark where a sample ends, so all samples have the shape of the first. */
static presto_status check_raw(sink_column *one, const presto_batch *batch, presto_error *err) {
    if (one->feature->layout == PRESTO_LAYOUT_BYTES)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "feature '%s' is text: --format raw writes tensors of one size only; "
                           "use npy, or --pad",
                           one->name);
    size_t rows = one->feature->layout == PRESTO_LAYOUT_DENSE ? 1 : batch->rows;
    for (size_t row = 0; row < rows; row++) {
        presto_tensor_spec own = row_spec(one->feature, row);
        if (one->row.dtype == PRESTO_DTYPE_UNKNOWN)
            one->row = own;
        if (presto_spec_equal(&one->row, &own))
            continue;
        char got[PRESTO_SPEC_TEXT_BYTES], want[PRESTO_SPEC_TEXT_BYTES];
        return presto_fail(err, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
                           "sample %ju: feature '%s' is %s, those before it are %s: --format raw "
                           "writes tensors of one size only; use npy, or --pad with a length",
                           (uintmax_t)batch->sample_numbers[row], one->name,
                           presto_spec_format(&own, got, sizeof got),
                           presto_spec_format(&one->row, want, sizeof want));
    }
    return PRESTO_OK;
}

static presto_status write_raw(sink *self, const presto_batch *batch, presto_error *err) {
    PRESTO_TRY(sink_find_features(self, batch, err));
    for (size_t i = 0; i < self->count; i++) {
        if (self->columns[i].feature == NULL)
            return sink_fail_missing(batch, self->columns[i].name, err);
        PRESTO_TRY(check_raw(&self->columns[i], batch, err));
    }
    presto_status status = PRESTO_OK;
    if (self->count == 1) {
        const presto_tensor *only = &self->columns[0].feature->tensor;
        status = pieces_add(&self->out, only->data, presto_tensor_bytes(only), err);
        return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
    }
    for (size_t row = 0; row < batch->rows && status == PRESTO_OK; row++) {
        for (size_t i = 0; i < self->count && status == PRESTO_OK; i++) {
            const presto_tensor *tensor = &self->columns[i].feature->tensor;
            size_t bytes = presto_tensor_bytes(tensor) / batch->rows;
            status = pieces_add(&self->out, (const char *)tensor->data + row * bytes, bytes, err);
        }
    }
    return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
}

const sink_type sink_raw = {.name = "raw",
                            .output = PRESTO_OUTPUT_BATCHES,
                            .takes_features = true,
                            .takes_main_only = true,
                            .is_stream = true,
                            .write = write_raw};
