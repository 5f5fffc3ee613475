/* SPDX-License-Identifier: Apache-2.0 */
/* raw: bare tensors back to back. */
#include <stdlib.h>

#include "out_internal.h"

typedef struct raw_state {
    presto_tensor_spec *rows; /* of each column: the spec that each sample must have */
} raw_state;

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
static presto_status check_rows(const presto__out_column *one, presto_tensor_spec *wanted,
                                const presto_batch *batch, presto_error *err) {
    if (one->feature->layout == PRESTO_LAYOUT_BYTES)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "feature '%s' is text: --format raw writes tensors of one size only; "
                           "use npy, or --pad",
                           one->name);
    size_t rows = one->feature->layout == PRESTO_LAYOUT_DENSE ? 1 : batch->rows;
    for (size_t row = 0; row < rows; row++) {
        presto_tensor_spec own = row_spec(one->feature, row);
        if (wanted->dtype == PRESTO_DTYPE_UNKNOWN)
            *wanted = own;
        if (presto_spec_equal(wanted, &own))
            continue;
        char got[PRESTO_SPEC_TEXT_BYTES], want[PRESTO_SPEC_TEXT_BYTES];
        return presto_fail(err, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
                           "sample %ju: feature '%s' is %s, those before it are %s: --format raw "
                           "writes tensors of one size only; use npy, or --pad with a length",
                           (uintmax_t)batch->sample_numbers[row], one->name,
                           presto_spec_format(&own, got, sizeof got),
                           presto_spec_format(wanted, want, sizeof want));
    }
    return PRESTO_OK;
}

static presto_status encode_raw(presto_out *out, const presto_batch *batch, presto_error *err) {
    raw_state *self = out->state;
    PRESTO_TRY(presto__out_find_features(out, batch, err));
    if (self->rows == NULL) { /* later batches have the same columns */
        self->rows = calloc(out->count + 1, sizeof *self->rows);
        if (self->rows == NULL)
            return presto_fail_memory(err, (out->count + 1) * sizeof *self->rows);
    }
    for (size_t i = 0; i < out->count; i++) {
        if (out->columns[i].feature == NULL)
            return presto__out_fail_missing(batch, out->columns[i].name, err);
        PRESTO_TRY(check_rows(&out->columns[i], &self->rows[i], batch, err));
    }
    if (out->count == 1) {
        const presto_tensor *only = &out->columns[0].feature->tensor;
        return presto__out_add(out, only->data, presto_tensor_bytes(only), err);
    }
    presto_status status = PRESTO_OK;
    for (size_t row = 0; row < batch->rows && status == PRESTO_OK; row++) {
        for (size_t i = 0; i < out->count && status == PRESTO_OK; i++) {
            const presto_tensor *tensor = &out->columns[i].feature->tensor;
            size_t bytes = presto_tensor_bytes(tensor) / batch->rows;
            status = presto__out_add(out, (const char *)tensor->data + row * bytes, bytes, err);
        }
    }
    return status;
}

static void done_raw(presto_out *out) {
    raw_state *self = out->state;
    free(self->rows);
}

const presto__out_type presto__out_raw = {.about = {.name = "raw",
                                                    .help = "bare tensors back to back",
                                                    .takes_features = true,
                                                    .takes_main_only = true},
                                          .state_bytes = sizeof(raw_state),
                                          .encode = encode_raw,
                                          .done = done_raw};
