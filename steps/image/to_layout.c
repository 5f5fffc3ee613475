/* SPDX-License-Identifier: Apache-2.0 */
/* to-layout: [height, width, channels] to [channels, height, width], or back, of any dtype. */
#include <stdlib.h>

#include "../steps_internal.h"

enum { OPTION_LAYOUT, OPTION_COUNT };
enum { LAYOUT_CHW, LAYOUT_HWC };

static const char *const layouts[] = {[LAYOUT_CHW] = "chw", [LAYOUT_HWC] = "hwc", NULL};

static const presto_option_type options[] = {
    [OPTION_LAYOUT] = {.name = "layout",
                       .kind = PRESTO_OPTION_CHOICE,
                       .choices = layouts,
                       .default_text = "chw",
                       .help = "the order of the output: chw from hwc, or hwc from chw"},
};

typedef struct layout_state {
    int layout;
} layout_state;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    layout_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->layout = values[OPTION_LAYOUT].choice;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const layout_state *to = state;
    presto_tensor_spec image;
    PRESTO_TRY(presto__pixels_expect(in, &image, err));
    presto_tensor_spec spec = {in->dtype, 3, {-1, -1, -1}};
    for (int i = 0; i < 3; i++)
        spec.dims[i] = image.dims[to->layout == LAYOUT_CHW ? (i + 2) % 3 : (i + 1) % 3];
    *out_out = spec;
    return PRESTO_OK;
}

/* The transpose of a matrix [rows, columns]. An image is one of [pixels, channels]. */
static inline __attribute__((always_inline)) void transpose_values(const uint8_t *restrict in,
                                                                   uint8_t *restrict out,
                                                                   size_t rows, size_t columns,
                                                                   size_t value_bytes) {
    for (size_t column = 0; column < columns; column++)
        for (size_t row = 0; row < rows; row++)
            memcpy(out + (column * rows + row) * value_bytes,
                   in + (row * columns + column) * value_bytes, value_bytes);
}

static void transpose(const uint8_t *in, uint8_t *out, size_t rows, size_t columns,
                      size_t value_bytes) {
    switch (value_bytes) {
    case 1:
        transpose_values(in, out, rows, columns, 1);
        break;
    case 2:
        transpose_values(in, out, rows, columns, 2);
        break;
    case 4:
        transpose_values(in, out, rows, columns, 4);
        break;
    default:
        transpose_values(in, out, rows, columns, value_bytes);
    }
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const layout_state *to = state;
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    const int64_t *dims = in->spec.dims;
    if (to->layout == LAYOUT_CHW)
        transpose(in->data, data, (size_t)(dims[0] * dims[1]), (size_t)dims[2],
                  presto_dtype_bytes(spec.dtype));
    else
        transpose(in->data, data, (size_t)dims[0], (size_t)(dims[1] * dims[2]),
                  presto_dtype_bytes(spec.dtype));
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

const presto_step_type presto__step_to_layout = {
    .abi = PRESTO_STEP_ABI,
    .name = "to-layout",
    .summary = "[height, width, channels] to [channels, height, width], as PyTorch has images, or "
               "back.",
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .run = run,
};
