/* SPDX-License-Identifier: Apache-2.0 */
/* pad: a border around the image, as torchvision's Pad with a constant. */
#include <stdlib.h>

#include "canvas_internal.h"

enum {
    OPTION_TOP,
    OPTION_BOTTOM,
    OPTION_LEFT,
    OPTION_RIGHT,
    OPTION_FILL,
    OPTION_FOLLOW,
    OPTION_COUNT = OPTION_FOLLOW + PRESTO__FOLLOW_COUNT
};

#define BORDER(side, text)                                                                         \
    {                                                                                              \
        .name = side, .kind = PRESTO_OPTION_INT, .default_text = "0", .minimum = 0,                \
        .maximum = 65535, .unit = "pixels", .help = text                                           \
    }

static const presto_option_type options[] = {
    [OPTION_TOP] = BORDER("top", "rows added above"),
    [OPTION_BOTTOM] = BORDER("bottom", "rows added below"),
    [OPTION_LEFT] = BORDER("left", "columns added to the left"),
    [OPTION_RIGHT] = BORDER("right", "columns added to the right"),
    [OPTION_FILL] = {.name = "fill",
                     .kind = PRESTO_OPTION_FLOAT,
                     .default_text = "0",
                     .minimum = -1e30,
                     .maximum = 1e30,
                     .help = "value of the border"},
    [OPTION_FOLLOW] = PRESTO__FOLLOW_OPTIONS,
};

typedef struct pad_state {
    int64_t top, bottom, left, right;
    double fill;
} pad_state;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    pad_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    *state = (pad_state){.top = values[OPTION_TOP].integer,
                         .bottom = values[OPTION_BOTTOM].integer,
                         .left = values[OPTION_LEFT].integer,
                         .right = values[OPTION_RIGHT].integer,
                         .fill = values[OPTION_FILL].number};
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const pad_state *pad = state;
    PRESTO_TRY(presto__canvas_expect(in, pad->fill, err));
    presto_tensor_spec spec = {in->dtype, 3, {-1, -1, -1}};
    if (in->rank == 3)
        memcpy(spec.dims, in->dims, sizeof spec.dims);
    if (spec.dims[0] != -1)
        spec.dims[0] += pad->top + pad->bottom;
    if (spec.dims[1] != -1)
        spec.dims[1] += pad->left + pad->right;
    *out_out = spec;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const pad_state *pad = state;
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    const presto__canvas canvas = {.height = spec.dims[0],
                                   .width = spec.dims[1],
                                   .y = pad->top,
                                   .x = pad->left,
                                   .fill = pad->fill};
    return presto__canvas_run(&canvas, context, in, out_out, err);
}

const presto_step_type presto__step_pad = {
    .abi = PRESTO_STEP_ABI,
    .name = "pad",
    .summary = "A border of one value around the image.",
    .flags = PRESTO_STEP_HWC | PRESTO_STEP_MOVES,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .run = run,
};
