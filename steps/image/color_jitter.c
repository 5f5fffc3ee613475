/* SPDX-License-Identifier: Apache-2.0 */
/*
 * color-jitter: brightness, contrast, saturation and hue changed by random factors in random order,
 * as torchvision's ColorJitter. Each change rounds as torchvision's does on tensors: uint8 is
 * truncated after each, float32 counts from 0 to 1.
 *
 * It draws the order first (Fisher-Yates from the end), then the four factors, also those of
 * changes that are off: to turn one off does not change the others.
 */
#include <stdlib.h>

#include "color_internal.h"

static const presto_option_type options[] = {
    [PRESTO__COLOR_BRIGHTNESS] = {.name = "brightness",
                                  .kind = PRESTO_OPTION_FLOAT,
                                  .default_text = "0",
                                  .minimum = 0,
                                  .maximum = 100,
                                  .help = "b: the factor is from max(0, 1 - b) to 1 + b"},
    [PRESTO__COLOR_CONTRAST] = {.name = "contrast",
                                .kind = PRESTO_OPTION_FLOAT,
                                .default_text = "0",
                                .minimum = 0,
                                .maximum = 100,
                                .help = "the same for the contrast to the image's mean grey"},
    [PRESTO__COLOR_SATURATION] = {.name = "saturation",
                                  .kind = PRESTO_OPTION_FLOAT,
                                  .default_text = "0",
                                  .minimum = 0,
                                  .maximum = 100,
                                  .help = "the same for the contrast to each pixel's grey"},
    [PRESTO__COLOR_HUE] = {.name = "hue",
                           .kind = PRESTO_OPTION_FLOAT,
                           .default_text = "0",
                           .minimum = 0,
                           .maximum = 0.5,
                           .help = "h: the hue is turned by -h to h; 0.5 is half a circle"},
};

typedef struct jitter_state {
    double amounts[PRESTO__COLOR_CHANGES];
} jitter_state;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    jitter_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    for (int i = 0; i < PRESTO__COLOR_CHANGES; i++)
        state->amounts[i] = values[i].number;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state;
    PRESTO_TRY(presto__image_expect(in, err));
    char text[PRESTO_SPEC_TEXT_BYTES];
    presto_tensor_spec spec = {in->dtype, 3, {-1, -1, -1}};
    if (in->rank == 3)
        spec = *in;
    if (spec.dims[2] != -1 && spec.dims[2] != 1 && spec.dims[2] != 3)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "needs an image of 1 or 3 channels, gets %s",
                           presto_spec_format(in, text, sizeof text));
    *out_out = spec;
    return PRESTO_OK;
}

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    (void)state, (void)model, (void)err;
    *worker_out = (void *)(uintptr_t)presto__color_kernels_of_cpu();
    return PRESTO_OK;
}

/* The changes of one sample, those that are on; how many. */
static size_t draw_changes(const jitter_state *state, presto_rng *rng,
                           presto__color_change changes[PRESTO__COLOR_CHANGES]) {
    presto__color order[PRESTO__COLOR_CHANGES];
    double factors[PRESTO__COLOR_CHANGES];
    for (int i = 0; i < PRESTO__COLOR_CHANGES; i++)
        order[i] = (presto__color)i;
    for (int i = PRESTO__COLOR_CHANGES - 1; i > 0; i--) {
        int other = (int)presto_rng_below(rng, (uint64_t)i + 1);
        presto__color kind = order[i];
        order[i] = order[other];
        order[other] = kind;
    }
    for (int i = 0; i < PRESTO__COLOR_CHANGES; i++) {
        double amount = state->amounts[i];
        double middle = i == PRESTO__COLOR_HUE ? 0 : 1;
        double low = i == PRESTO__COLOR_HUE || amount < 1 ? middle - amount : 0;
        factors[i] = low + (middle + amount - low) * presto_rng_uniform(rng);
    }
    size_t count = 0;
    for (int i = 0; i < PRESTO__COLOR_CHANGES; i++)
        if (state->amounts[order[i]] > 0)
            changes[count++] = (presto__color_change){order[i], factors[order[i]]};
    return count;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    presto_tensor_spec spec;
    void *data;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    presto__color_change changes[PRESTO__COLOR_CHANGES];
    size_t count = draw_changes(state, presto_step_rng(context), changes);
    if (count == 0 || presto_tensor_bytes(in) == 0) {
        *out_out = *in;
        return PRESTO_OK;
    }
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    const presto__color_image image = {presto_step_worker(context), in->data, data, &spec};
    presto__color_apply(&image, changes, count);
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

const presto_step_type presto__step_color_jitter = {
    .abi = PRESTO_STEP_ABI,
    .name = "color-jitter",
    .summary = "Brightness, contrast, saturation and hue changed at random and in random order, as "
               "torchvision's ColorJitter; uint8, or float32 from 0 to 1.",
    .flags = PRESTO_STEP_RANDOM | PRESTO_STEP_HWC,
    .options = options,
    .option_count = PRESTO__COLOR_CHANGES,
    .create = create,
    .destroy = free,
    .infer = infer,
    .open_worker = open_worker,
    .run = run,
};
