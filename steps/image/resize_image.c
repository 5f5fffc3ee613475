/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize-image: bilinear, equal to tf.image.resize. Either to a height and width, or so that the
 * shorter side has min-side pixels and each new side is int(side * min-side / shorter side). uint8
 * stays uint8 (truncated, the cast after tf.image.resize), float32 stays float32. An image that has
 * its size already is passed on unchanged.
 */
#include <stdlib.h>

#include "../geometry_internal.h"
#include "resize_internal.h"

enum {
    OPTION_MIN_SIDE,
    OPTION_HEIGHT,
    OPTION_WIDTH,
    OPTION_METHOD,
    OPTION_FOLLOW,
    OPTION_COUNT = OPTION_FOLLOW + PRESTO__FOLLOW_COUNT
};

#define MAX_SIDE 65535

static const char *const methods[] = {"bilinear", NULL};

static const presto_option_type options[] = {
    [OPTION_MIN_SIDE] = {.name = "min-side",
                         .kind = PRESTO_OPTION_INT,
                         .minimum = 1,
                         .maximum = MAX_SIDE,
                         .unit = "pixels",
                         .help = "new length of the shorter side; the longer one follows"},
    [OPTION_HEIGHT] = {.name = "height",
                       .kind = PRESTO_OPTION_INT,
                       .minimum = 1,
                       .maximum = MAX_SIDE,
                       .unit = "pixels",
                       .help = "new height; with width, instead of min-side"},
    [OPTION_WIDTH] = {.name = "width",
                      .kind = PRESTO_OPTION_INT,
                      .minimum = 1,
                      .maximum = MAX_SIDE,
                      .unit = "pixels",
                      .help = "new width"},
    [OPTION_METHOD] = {.name = "method",
                       .kind = PRESTO_OPTION_CHOICE,
                       .default_text = "bilinear",
                       .choices = methods,
                       .help = "how pixels are interpolated; half-pixel centers, no antialias"},
    [OPTION_FOLLOW] = PRESTO__FOLLOW_OPTIONS,
};

typedef struct resize_state {
    int64_t min_side; /* 0: height and width are set */
    int64_t height, width;
} resize_state;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    bool min_side = values[OPTION_MIN_SIDE].is_set;
    bool height = values[OPTION_HEIGHT].is_set;
    bool width = values[OPTION_WIDTH].is_set;
    if (min_side ? (height || width) : (!height || !width))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "needs either 'min-side', or 'height' and 'width'");
    resize_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->min_side = min_side ? values[OPTION_MIN_SIDE].integer : 0;
    state->height = values[OPTION_HEIGHT].integer;
    state->width = values[OPTION_WIDTH].integer;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const resize_state *resize = state;
    char text[PRESTO_SPEC_TEXT_BYTES];
    PRESTO_TRY(presto__image_expect(in, err));
    presto_tensor_spec spec = *in;
    if (in->rank < 0)
        spec = (presto_tensor_spec){in->dtype, 3, {-1, -1, -1}};
    if (spec.dims[0] == 0 || spec.dims[1] == 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "%s has no pixels",
                           presto_spec_format(in, text, sizeof text));
    int64_t height = spec.dims[0];
    int64_t width = spec.dims[1];
    if (height > INT32_MAX || width > INT32_MAX)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "%s is too large",
                           presto_spec_format(in, text, sizeof text));
    if (resize->min_side == 0) {
        spec.dims[0] = resize->height;
        spec.dims[1] = resize->width;
    } else if (height == -1 || width == -1) {
        spec.dims[0] = spec.dims[1] = -1;
    } else {
        /* Exact in integers what int(side * min_side / shorter) is in doubles. */
        int64_t shorter = height < width ? height : width;
        spec.dims[0] = height * resize->min_side / shorter;
        spec.dims[1] = width * resize->min_side / shorter;
    }
    *out_out = spec;
    return PRESTO_OK;
}

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    (void)state, (void)model;
    presto__resizer *resizer = calloc(1, sizeof *resizer);
    if (resizer == NULL)
        return presto_fail_memory(err, sizeof *resizer);
    resizer->use_avx2 = presto__use_avx2();
    *worker_out = resizer;
    return PRESTO_OK;
}

static void close_worker(void *worker) {
    if (worker != NULL)
        presto__resizer_done(worker);
    free(worker);
}

static presto_window need(const void *state, const presto_tensor_spec *in,
                          const presto_window *wanted) {
    presto_tensor_spec out;
    if (infer(state, in, &out, NULL) < 0) /* has been asked before; cannot fail */
        return (presto_window){0, 0, in->dims[0], in->dims[1]};
    if (out.dims[0] == in->dims[0] && out.dims[1] == in->dims[1])
        return *wanted;
    return presto__resize_need(in, out.dims[0], out.dims[1], wanted);
}

static presto_status run_window(const void *state, presto_step_context *context,
                                const presto_part *in, presto_part *out_io, presto_error *err) {
    const presto_window *wanted = &out_io->window;
    presto_tensor_spec whole;
    PRESTO_TRY(infer(state, &in->whole, &whole, err));
    const presto__resized resized = {whole.dims[0], whole.dims[1], *wanted};
    presto_tensor_spec spec = presto__window_spec(&whole, wanted);
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    presto__geometry moved = presto__geometry_of(&in->whole);
    moved.height = whole.dims[0];
    moved.width = whole.dims[1];
    presto__step_moved(context, &moved);
    if (whole.dims[0] == in->whole.dims[0] && whole.dims[1] == in->whole.dims[1])
        presto__window_copy(in, wanted, data);
    else
        PRESTO_TRY(presto__resize(presto_step_worker(context), in, &resized, data, err));
    out_io->tensor.spec = spec;
    out_io->tensor.data = data;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    presto_part whole = presto__part_of_whole(in);
    presto_part out = {.whole = spec, .window = {0, 0, spec.dims[0], spec.dims[1]}};
    PRESTO_TRY(run_window(state, context, &whole, &out, err));
    *out_out = out.tensor;
    return PRESTO_OK;
}

static const presto_step_windows windows = {.need = need, .run_window = run_window};

const presto_step_type presto__step_resize_image = {
    .abi = PRESTO_STEP_ABI,
    .name = "resize-image",
    .summary = "A new size, bilinear, the pixels of tf.image.resize; uint8 stays uint8 "
               "(truncated), float32 stays float32.",
    .flags = PRESTO_STEP_HWC | PRESTO_STEP_MOVES,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .open_worker = open_worker,
    .close_worker = close_worker,
    .run = run,
    .windows = &windows,
};
