/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random-crop: a window of fixed size at a random place; all places are equally likely. It draws
 * the row first, then the column. It copies rows, so it works on any numeric image.
 */
#include <stdlib.h>

#include "../geometry_internal.h"
#include "../steps_internal.h"

enum {
    OPTION_HEIGHT,
    OPTION_WIDTH,
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
                       .help = "rows that are kept"},
    [OPTION_WIDTH] = {.name = "width",
                      .kind = PRESTO_OPTION_INT,
                      .required = true,
                      .minimum = 1,
                      .maximum = 65535,
                      .unit = "pixels",
                      .help = "columns that are kept"},
    [OPTION_FOLLOW] = PRESTO__FOLLOW_OPTIONS,
};

typedef struct crop_state {
    int64_t height, width;
} crop_state;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    crop_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->height = values[OPTION_HEIGHT].integer;
    state->width = values[OPTION_WIDTH].integer;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const crop_state *crop = state;
    char text[PRESTO_SPEC_TEXT_BYTES];
    presto_tensor_spec spec;
    PRESTO_TRY(presto__pixels_expect(in, &spec, err));
    if ((spec.dims[0] != -1 && spec.dims[0] < crop->height) ||
        (spec.dims[1] != -1 && spec.dims[1] < crop->width))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "image %s is smaller than the crop of %jd x %jd (height x width)",
                           presto_spec_format(&spec, text, sizeof text), (intmax_t)crop->height,
                           (intmax_t)crop->width);
    spec.dims[0] = crop->height;
    spec.dims[1] = crop->width;
    *out_out = spec;
    return PRESTO_OK;
}

static presto_status select_window(const void *state, presto_step_context *context,
                                   const presto_tensor_spec *in, presto_window *window_out,
                                   presto_error *err) {
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, in, &spec, err));
    presto_rng *rng = presto_step_rng(context);
    presto_window window = {.height = spec.dims[0], .width = spec.dims[1]};
    window.y = (int64_t)presto_rng_below(rng, (uint64_t)(in->dims[0] - window.height) + 1);
    window.x = (int64_t)presto_rng_below(rng, (uint64_t)(in->dims[1] - window.width) + 1);
    presto__step_cut(context, in, &window, window.height, window.width);
    *window_out = window;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    presto_window window;
    PRESTO_TRY(select_window(state, context, &in->spec, &window, err));
    presto_tensor_spec spec = presto__window_spec(&in->spec, &window);
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    presto_part whole = presto__part_of_whole(in);
    presto__window_copy(&whole, &window, data);
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

static const presto_step_windows windows = {.select = select_window};

const presto_step_type presto__step_random_crop = {
    .abi = PRESTO_STEP_ABI,
    .name = "random-crop",
    .summary = "A window of fixed size at a random place of the image.",
    .flags = PRESTO_STEP_RANDOM | PRESTO_STEP_HWC | PRESTO_STEP_MOVES,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .run = run,
    .windows = &windows,
};
