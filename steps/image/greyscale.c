/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greyscale: RGB to one channel, the arithmetic of tf.image.rgb_to_grayscale in its order: uint8
 * goes to [0, 1] in float32, the three products are added from left to right, and the sum comes
 * back as trunc(s * 255.5). The weights sum to 0.9999, so the result never leaves [0, 255].
 */
#include "pixelwise_internal.h"

#define WEIGHT_RED 0.2989f
#define WEIGHT_GREEN 0.587f
#define WEIGHT_BLUE 0.114f

PRESTO__PIXELWISE_BODY grey_bytes_body(const uint8_t *restrict in, uint8_t *restrict out,
                                       size_t pixels, const void *parameters) {
    (void)parameters;
    const float scale = 1.0f / 255.0f;
    for (size_t i = 0; i < pixels; i++) {
        float red = (float)in[3 * i] * scale * WEIGHT_RED;
        float green = (float)in[3 * i + 1] * scale * WEIGHT_GREEN;
        float blue = (float)in[3 * i + 2] * scale * WEIGHT_BLUE;
        out[i] = (uint8_t)(int)((red + green + blue) * 255.5f);
    }
}

PRESTO__PIXELWISE_BODY grey_floats_body(const uint8_t *restrict in, float *restrict out,
                                        size_t pixels, const void *parameters) {
    (void)parameters;
    for (size_t i = 0; i < pixels; i++) {
        float rgb[3]; /* the input need not be aligned */
        memcpy(rgb, in + i * sizeof rgb, sizeof rgb);
        out[i] = rgb[0] * WEIGHT_RED + rgb[1] * WEIGHT_GREEN + rgb[2] * WEIGHT_BLUE;
    }
}

PRESTO__PIXELWISE_KERNELS(grey);

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state;
    PRESTO_TRY(presto__image_expect(in, err));
    char text[PRESTO_SPEC_TEXT_BYTES];
    presto_tensor_spec spec = *in;
    if (in->rank < 0)
        spec = (presto_tensor_spec){in->dtype, 3, {-1, -1, -1}};
    if (spec.dims[2] != -1 && spec.dims[2] != 3)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "needs an image of 3 channels, gets %s",
                           presto_spec_format(in, text, sizeof text));
    spec.dims[2] = 1;
    *out_out = spec;
    return PRESTO_OK;
}

static presto_status run_window(const void *state, presto_step_context *context,
                                const presto_part *in, presto_part *out_io, presto_error *err) {
    const presto_window *wanted = &out_io->window;
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->whole, &spec, err));
    spec = presto__window_spec(&spec, wanted);
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    size_t columns = (size_t)wanted->width;
    const presto__pixelwise_row row = {presto__pixelwise_kernel(context, in->whole.dtype), columns,
                                       columns * presto_dtype_bytes(in->whole.dtype), NULL};
    presto__pixelwise_rows(in, wanted, &row, data);
    out_io->tensor.spec = spec;
    out_io->tensor.data = data;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    presto_part whole = presto__part_of_whole(in);
    presto_part out = {.whole = spec, .window = whole.window};
    PRESTO_TRY(run_window(state, context, &whole, &out, err));
    *out_out = out.tensor;
    return PRESTO_OK;
}

static const presto_step_windows windows = {.run_window = run_window};

const presto_step_type presto__step_greyscale = {
    .abi = PRESTO_STEP_ABI,
    .name = "greyscale",
    .summary =
        "RGB to one channel of grey (0.2989 R + 0.587 G + 0.114 B), as tf.image.rgb_to_grayscale.",
    .flags = PRESTO_STEP_HWC,
    .infer = infer,
    .open_worker = open_worker,
    .run = run,
    .windows = &windows,
};
