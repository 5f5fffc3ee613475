/* SPDX-License-Identifier: Apache-2.0 */
/* crop-or-pad: a fixed size without scaling, as tf.image.resize_with_crop_or_pad. */
#include <stdlib.h>

#include "canvas_internal.h"

enum {
    OPTION_HEIGHT,
    OPTION_WIDTH,
    OPTION_FILL,
    OPTION_FOLLOW,
    OPTION_COUNT = OPTION_FOLLOW + PRESTO__FOLLOW_COUNT
};

static const presto_option_type options[] = {
    [OPTION_HEIGHT] = {.name = "height",
                       .kind = PRESTO_OPTION_INT,
                       .required = true,
                       .minimum = 1,
                       .maximum = 65535,
                       .unit = "pixels",
                       .help = "of the output"},
    [OPTION_WIDTH] = {.name = "width",
                      .kind = PRESTO_OPTION_INT,
                      .required = true,
                      .minimum = 1,
                      .maximum = 65535,
                      .unit = "pixels",
                      .help = "of the output"},
    [OPTION_FILL] = {.name = "fill",
                     .kind = PRESTO_OPTION_FLOAT,
                     .default_text = "0",
                     .minimum = -1e30,
                     .maximum = 1e30,
                     .help = "value of what is added around a smaller image"},
    [OPTION_FOLLOW] = PRESTO__FOLLOW_OPTIONS,
};

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    presto__canvas *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    *state = (presto__canvas){.height = values[OPTION_HEIGHT].integer,
                              .width = values[OPTION_WIDTH].integer,
                              .fill = values[OPTION_FILL].number};
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const presto__canvas *canvas = state;
    PRESTO_TRY(presto__canvas_expect(in, canvas->fill, err));
    *out_out = (presto_tensor_spec){in->dtype, 3, {canvas->height, canvas->width, -1}};
    if (in->rank == 3)
        out_out->dims[2] = in->dims[2];
    return PRESTO_OK;
}

/* Where an image of this length begins on a canvas: in the middle; of an odd difference, the
 * smaller half comes first, whether it is cut or added. */
static int64_t centered(int64_t image, int64_t canvas) {
    return image > canvas ? -((image - canvas) / 2) : (canvas - image) / 2;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    presto__canvas canvas = *(const presto__canvas *)state;
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    canvas.y = centered(in->spec.dims[0], canvas.height);
    canvas.x = centered(in->spec.dims[1], canvas.width);
    return presto__canvas_run(&canvas, context, in, out_out, err);
}

/* The middle of a larger image. One that is smaller in a direction has no window: it runs alone. */
static presto_status select_window(const void *state, presto_step_context *context,
                                   const presto_tensor_spec *in, presto_window *window_out,
                                   presto_error *err) {
    const presto__canvas *canvas = state;
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, in, &spec, err));
    if (in->dims[0] < canvas->height || in->dims[1] < canvas->width)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "the image is smaller than the output");
    presto_window window = {-centered(in->dims[0], canvas->height),
                            -centered(in->dims[1], canvas->width), canvas->height, canvas->width};
    presto__step_cut(context, in, &window, window.height, window.width);
    *window_out = window;
    return PRESTO_OK;
}

static const presto_step_windows windows = {.select = select_window};

const presto_step_type presto__step_crop_or_pad = {
    .abi = PRESTO_STEP_ABI,
    .name = "crop-or-pad",
    .summary = "A fixed size without scaling: the middle of a larger image, a border around a "
               "smaller one, as tf.image.resize_with_crop_or_pad.",
    .flags = PRESTO_STEP_HWC | PRESTO_STEP_MOVES,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .run = run,
    .windows = &windows,
};
