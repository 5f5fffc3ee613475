/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random-resized-crop: a window of random area and shape, resized to a fixed size, as torchvision's
 * RandomResizedCrop with antialias. The window is drawn by the same rule: up to ten times an area
 * (uniform), a ratio of width to height (uniform in its logarithm), and a place, until the window
 * fits; else the middle of the image. In a fused plan, only that window is decoded.
 */
#include <math.h>
#include <stdlib.h>

#include "../geometry_internal.h"
#include "antialias_internal.h"

enum {
    OPTION_SIZE,
    OPTION_HEIGHT,
    OPTION_WIDTH,
    OPTION_SCALE,
    OPTION_RATIO,
    OPTION_FOLLOW,
    OPTION_COUNT = OPTION_FOLLOW + PRESTO__FOLLOW_COUNT
};

#define MAX_SIDE 65535
#define MAX_TRIES 10

static const presto_option_type options[] = {
    [OPTION_SIZE] = {.name = "size",
                     .kind = PRESTO_OPTION_INT,
                     .minimum = 1,
                     .maximum = MAX_SIDE,
                     .unit = "pixels",
                     .help = "height and width of the output"},
    [OPTION_HEIGHT] = {.name = "height",
                       .kind = PRESTO_OPTION_INT,
                       .minimum = 1,
                       .maximum = MAX_SIDE,
                       .unit = "pixels",
                       .help = "height of the output; with width, instead of size"},
    [OPTION_WIDTH] = {.name = "width",
                      .kind = PRESTO_OPTION_INT,
                      .minimum = 1,
                      .maximum = MAX_SIDE,
                      .unit = "pixels",
                      .help = "width of the output"},
    [OPTION_SCALE] = {.name = "scale",
                      .kind = PRESTO_OPTION_FLOAT_LIST,
                      .default_text = "0.08,1",
                      .minimum = 1e-6,
                      .maximum = 1,
                      .help = "the least and the largest area of the window, as a part of the "
                              "image's"},
    [OPTION_RATIO] = {.name = "ratio",
                      .kind = PRESTO_OPTION_FLOAT_LIST,
                      .default_text = "0.75,1.3333333333333333",
                      .minimum = 1e-3,
                      .maximum = 1e3,
                      .help = "the least and the largest width of the window, divided by its "
                              "height"},
    [OPTION_FOLLOW] = PRESTO__FOLLOW_OPTIONS,
};

typedef struct range {
    double low, high;
} range;

typedef struct crop_state {
    int64_t height, width; /* of the output */
    range scale, ratio, log_ratio;
} crop_state;

typedef struct crop_worker {
    presto__antialias antialias;
    presto_window window; /* of the sample whose window select_window() has drawn */
} crop_worker;

static presto_status read_range(const presto_option *values, int option, range *range_out,
                                presto_error *err) {
    const double *numbers = values[option].numbers;
    if (values[option].number_count != 2 || numbers[0] > numbers[1])
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "option '%s' needs two numbers, the smaller one first",
                           options[option].name);
    *range_out = (range){numbers[0], numbers[1]};
    return PRESTO_OK;
}

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    bool size = values[OPTION_SIZE].is_set;
    bool height = values[OPTION_HEIGHT].is_set;
    bool width = values[OPTION_WIDTH].is_set;
    if (size ? (height || width) : (!height || !width))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "needs either 'size', or 'height' and 'width'");
    crop_state crop = {.height = values[size ? OPTION_SIZE : OPTION_HEIGHT].integer,
                       .width = values[size ? OPTION_SIZE : OPTION_WIDTH].integer};
    PRESTO_TRY(read_range(values, OPTION_SCALE, &crop.scale, err));
    PRESTO_TRY(read_range(values, OPTION_RATIO, &crop.ratio, err));
    crop.log_ratio = (range){log(crop.ratio.low), log(crop.ratio.high)};
    crop_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    *state = crop;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const crop_state *crop = state;
    char text[PRESTO_SPEC_TEXT_BYTES];
    PRESTO_TRY(presto__image_expect(in, err));
    presto_tensor_spec spec = {in->dtype, 3, {-1, -1, -1}};
    if (in->rank == 3)
        spec = *in;
    if (spec.dims[0] == 0 || spec.dims[1] == 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "%s has no pixels",
                           presto_spec_format(in, text, sizeof text));
    if (spec.dims[0] > INT32_MAX || spec.dims[1] > INT32_MAX)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "%s is too large",
                           presto_spec_format(in, text, sizeof text));
    spec.dims[0] = crop->height;
    spec.dims[1] = crop->width;
    *out_out = spec;
    return PRESTO_OK;
}

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    (void)state, (void)model;
    crop_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return presto_fail_memory(err, sizeof *worker);
    worker->antialias.use_avx2 = presto__use_avx2();
    *worker_out = worker;
    return PRESTO_OK;
}

static void close_worker(void *worker) {
    crop_worker *crop = worker;
    if (crop != NULL)
        presto__antialias_done(&crop->antialias);
    free(crop);
}

/* ---- the window ---- */

static double draw(presto_rng *rng, const range *within) {
    return within->low + (within->high - within->low) * presto_rng_uniform(rng);
}

/* To the nearest whole number, ties to even, as Python's round(). */
static int64_t rounded(double value) {
    return (int64_t)nearbyint(value);
}

/* The largest window in the middle whose ratio is allowed. */
static presto_window middle(const crop_state *crop, int64_t height, int64_t width) {
    double ratio = (double)width / (double)height;
    presto_window window = {.height = height, .width = width};
    if (ratio < crop->ratio.low)
        window.height = rounded((double)width / crop->ratio.low);
    else if (ratio > crop->ratio.high)
        window.width = rounded((double)height * crop->ratio.high);
    window.height = window.height > 0 ? window.height : 1;
    window.width = window.width > 0 ? window.width : 1;
    window.y = (height - window.height) / 2;
    window.x = (width - window.width) / 2;
    return window;
}

static presto_window draw_window(const crop_state *crop, presto_rng *rng, int64_t height,
                                 int64_t width) {
    double area = (double)height * (double)width;
    for (int i = 0; i < MAX_TRIES; i++) {
        double wanted = area * draw(rng, &crop->scale);
        double ratio = exp(draw(rng, &crop->log_ratio));
        presto_window window = {.height = rounded(sqrt(wanted / ratio)),
                                .width = rounded(sqrt(wanted * ratio))};
        if (window.height < 1 || window.height > height || window.width < 1 || window.width > width)
            continue;
        window.y = (int64_t)presto_rng_below(rng, (uint64_t)(height - window.height) + 1);
        window.x = (int64_t)presto_rng_below(rng, (uint64_t)(width - window.width) + 1);
        return window;
    }
    return middle(crop, height, width);
}

static presto_status select_window(const void *state, presto_step_context *context,
                                   const presto_tensor_spec *in, presto_window *window_out,
                                   presto_error *err) {
    crop_worker *worker = presto_step_worker(context);
    presto_tensor_spec unused;
    PRESTO_TRY(infer(state, in, &unused, err));
    worker->window = draw_window(state, presto_step_rng(context), in->dims[0], in->dims[1]);
    const crop_state *crop = state;
    presto__step_cut(context, in, &worker->window, crop->height, crop->width);
    *window_out = worker->window;
    return PRESTO_OK;
}

/* ---- the pixels ---- */

static presto_status run_window(const void *state, presto_step_context *context,
                                const presto_part *in, presto_part *out_io, presto_error *err) {
    const crop_state *crop = state;
    crop_worker *worker = presto_step_worker(context);
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->whole, &spec, err));
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    const presto__antialias_job job = {in, worker->window, crop->height, crop->width};
    PRESTO_TRY(presto__antialias_resize(&worker->antialias, &job, data, err));
    out_io->tensor.spec = spec;
    out_io->tensor.data = data;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    presto_window unused;
    PRESTO_TRY(select_window(state, context, &in->spec, &unused, err));
    presto_part whole = presto__part_of_whole(in);
    presto_part out = {0};
    PRESTO_TRY(run_window(state, context, &whole, &out, err));
    *out_out = out.tensor;
    return PRESTO_OK;
}

static const presto_step_windows windows = {.select = select_window, .run_window = run_window};

const presto_step_type presto__step_random_resized_crop = {
    .abi = PRESTO_STEP_ABI,
    .name = "random-resized-crop",
    .summary = "A window of random area, shape and place, resized (bilinear, with antialias), as "
               "torchvision's RandomResizedCrop: uint8 gives Pillow's bytes, float32 PyTorch's.",
    .flags = PRESTO_STEP_RANDOM | PRESTO_STEP_HWC | PRESTO_STEP_MOVES,
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
