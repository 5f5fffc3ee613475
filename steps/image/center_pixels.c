/* SPDX-License-Identifier: Apache-2.0 */
/*
 * center-pixels: x / 127.5 - 1 as float32, from [0, 255] to [-1, 1].
 *
 * The quotient is rounded before the subtraction, as TensorFlow does: multiplying by 1 / 127.5
 * instead would differ in the last bit. Pixelwise, so it commutes with every crop.
 */
#include "pixelwise_internal.h"

PRESTO__PIXELWISE_BODY center_bytes_body(const uint8_t *restrict in, float *restrict out,
                                         size_t count, const void *parameters) {
    (void)parameters;
    for (size_t i = 0; i < count; i++)
        out[i] = (float)in[i] / 127.5f - 1.0f;
}

PRESTO__PIXELWISE_BODY center_floats_body(const uint8_t *restrict in, float *restrict out,
                                          size_t count, const void *parameters) {
    (void)parameters;
    for (size_t i = 0; i < count; i++) {
        float value; /* the input need not be aligned */
        memcpy(&value, in + i * sizeof value, sizeof value);
        out[i] = value / 127.5f - 1.0f;
    }
}

PRESTO__PIXELWISE_KERNELS(center);

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state;
    char text[PRESTO_SPEC_TEXT_BYTES];
    if (in->dtype != PRESTO_DTYPE_UNKNOWN && in->dtype != PRESTO_UINT8 &&
        in->dtype != PRESTO_FLOAT32)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "needs uint8 or float32, gets %s",
                           presto_spec_format(in, text, sizeof text));
    *out_out = *in;
    out_out->dtype = PRESTO_FLOAT32;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    presto_tensor_spec spec;
    void *data;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    presto__pixelwise_kernel(context, in->spec.dtype)(in->data, data,
                                                      (size_t)presto_spec_elements(&spec), NULL);
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

static presto_status run_window(const void *state, presto_step_context *context,
                                const presto_part *in, presto_part *out_io, presto_error *err) {
    const presto_window *wanted = &out_io->window;
    (void)state;
    presto_tensor_spec spec = presto__window_spec(&in->whole, wanted);
    spec.dtype = PRESTO_FLOAT32;
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    size_t channels = presto__pixel_bytes(&in->whole) / presto_dtype_bytes(in->whole.dtype);
    size_t row_values = (size_t)wanted->width * channels;
    const presto__pixelwise_row row = {presto__pixelwise_kernel(context, in->whole.dtype),
                                       row_values, row_values * sizeof(float), NULL};
    presto__pixelwise_rows(in, wanted, &row, data);
    out_io->tensor.spec = spec;
    out_io->tensor.data = data;
    return PRESTO_OK;
}

static const presto_step_windows windows = {.run_window = run_window};

const presto_step_type presto__step_center_pixels = {
    .abi = PRESTO_STEP_ABI,
    .name = "center-pixels",
    .summary = "Pixels from [0, 255] to [-1, 1]: x / 127.5 - 1 as float32.",
    .infer = infer,
    .open_worker = open_worker,
    .run = run,
    .windows = &windows,
};
