/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalize: (x - mean) / std by channel, as torchvision's Normalize. uint8 is divided by 255
 * first, as its ToTensor does. Each operation is rounded in float32 in this order, so that the
 * result is theirs to the bit. Pixelwise, so it commutes with every crop.
 */
#include <stdlib.h>

#include <presto/numbers.h>

#include "pixelwise_internal.h"

enum { OPTION_MEAN, OPTION_STD, OPTION_COUNT };

#define MOST_CHANNELS 16
#define UNROLL 8 /* pixels that one round of the inner loop computes */

static const presto_option_type options[] = {
    [OPTION_MEAN] = {.name = "mean",
                     .kind = PRESTO_OPTION_FLOAT_LIST,
                     .required = true,
                     .minimum = -1e12,
                     .maximum = 1e12,
                     .help = "subtracted from each channel, or one number for all; uint8 counts "
                             "from 0 to 1"},
    [OPTION_STD] = {.name = "std",
                    .kind = PRESTO_OPTION_FLOAT_LIST,
                    .required = true,
                    .minimum = 1e-12,
                    .maximum = 1e12,
                    .help = "what each channel is divided by then, or one number for all"},
};

/* mean and std of the values of UNROLL pixels, so that the loop over them vectorizes. */
typedef struct pattern {
    size_t values; /* UNROLL times the channels */
    float mean[UNROLL * MOST_CHANNELS];
    float std[UNROLL * MOST_CHANNELS];
} pattern;

typedef struct normalize_state {
    size_t given;                        /* channels, or 1 for any number */
    pattern patterns[MOST_CHANNELS + 1]; /* by the number of channels */
} normalize_state;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    const presto_option *mean = &values[OPTION_MEAN];
    const presto_option *std = &values[OPTION_STD];
    if (mean->number_count != std->number_count || mean->number_count > MOST_CHANNELS)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "mean has %zu number%s and std %zu: one each, or one each for every "
                           "channel (at most %d)",
                           mean->number_count, presto_plural(mean->number_count), std->number_count,
                           MOST_CHANNELS);
    normalize_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->given = mean->number_count;
    for (size_t channels = 1; channels <= MOST_CHANNELS; channels++) {
        pattern *p = &state->patterns[channels];
        p->values = UNROLL * channels;
        for (size_t i = 0; i < p->values; i++) {
            size_t channel = i % channels % state->given;
            p->mean[i] = (float)mean->numbers[channel];
            p->std[i] = (float)std->numbers[channel];
        }
    }
    *state_out = state;
    return PRESTO_OK;
}

PRESTO__PIXELWISE_BODY normalize_bytes_body(const uint8_t *restrict in, float *restrict out,
                                            size_t count, const void *parameters) {
    const pattern *p = parameters;
    for (size_t at = 0; at < count; at += p->values) {
        size_t values = count - at < p->values ? count - at : p->values;
        for (size_t i = 0; i < values; i++)
            out[at + i] = ((float)in[at + i] / 255.0f - p->mean[i]) / p->std[i];
    }
}

PRESTO__PIXELWISE_BODY normalize_floats_body(const uint8_t *restrict in, float *restrict out,
                                             size_t count, const void *parameters) {
    const pattern *p = parameters;
    for (size_t at = 0; at < count; at += p->values) {
        size_t values = count - at < p->values ? count - at : p->values;
        for (size_t i = 0; i < values; i++) {
            float value; /* the input need not be aligned */
            memcpy(&value, in + (at + i) * sizeof value, sizeof value);
            out[at + i] = (value - p->mean[i]) / p->std[i];
        }
    }
}

PRESTO__PIXELWISE_KERNELS(normalize);

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const normalize_state *normalize = state;
    PRESTO_TRY(presto__image_expect(in, err));
    presto_tensor_spec spec = {PRESTO_FLOAT32, 3, {-1, -1, -1}};
    if (in->rank == 3)
        memcpy(spec.dims, in->dims, sizeof spec.dims);
    int64_t channels = spec.dims[2];
    int64_t given = (int64_t)normalize->given;
    if (channels != -1 &&
        (given == 1 ? channels < 1 || channels > MOST_CHANNELS : channels != given))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "has mean and std of %zu channel%s, gets an image of %jd",
                           normalize->given, presto_plural(normalize->given), (intmax_t)channels);
    *out_out = spec;
    return PRESTO_OK;
}

static presto_status run_window(const void *state, presto_step_context *context,
                                const presto_part *in, presto_part *out_io, presto_error *err) {
    const presto_window *wanted = &out_io->window;
    const normalize_state *normalize = state;
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->whole, &spec, err));
    spec = presto__window_spec(&spec, wanted);
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    size_t channels = (size_t)spec.dims[2];
    size_t values = (size_t)wanted->width * channels;
    const presto__pixelwise_row row = {presto__pixelwise_kernel(context, in->whole.dtype), values,
                                       values * sizeof(float), &normalize->patterns[channels]};
    presto__pixelwise_rows(in, wanted, &row, data);
    out_io->tensor.spec = spec;
    out_io->tensor.data = data;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    PRESTO_TRY(infer(state, &in->spec, &out_out->spec, err));
    presto_part whole = presto__part_of_whole(in);
    presto_part out = {.whole = out_out->spec, .window = whole.window};
    PRESTO_TRY(run_window(state, context, &whole, &out, err));
    *out_out = out.tensor;
    return PRESTO_OK;
}

static const presto_step_windows windows = {.run_window = run_window};

const presto_step_type presto__step_normalize = {
    .abi = PRESTO_STEP_ABI,
    .name = "normalize",
    .summary = "(x - mean) / std by channel as float32; uint8 is divided by 255 first.",
    .flags = PRESTO_STEP_HWC,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .open_worker = open_worker,
    .run = run,
    .windows = &windows,
};
