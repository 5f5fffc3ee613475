/* SPDX-License-Identifier: Apache-2.0 */
/* horizontal-flip: left becomes right, with a probability. It moves pixels, whatever they are. */
#include <stdlib.h>

#include "../geometry_internal.h"
#include "../steps_internal.h"

enum { OPTION_PROBABILITY, OPTION_FOLLOW, OPTION_COUNT = OPTION_FOLLOW + PRESTO__FOLLOW_COUNT };

static const presto_option_type options[] = {
    [OPTION_PROBABILITY] = {.name = "probability",
                            .kind = PRESTO_OPTION_FLOAT,
                            .default_text = "0.5",
                            .minimum = 0,
                            .maximum = 1,
                            .help = "how often an image is flipped"},
    [OPTION_FOLLOW] = PRESTO__FOLLOW_OPTIONS,
};

typedef struct flip_state {
    double probability;
} flip_state;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    flip_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->probability = values[OPTION_PROBABILITY].number;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state;
    return presto__pixels_expect(in, out_out, err);
}

/* Inlined with a constant size, so that the copy of a pixel is one or two moves. */
static inline __attribute__((always_inline)) void flip_row(const uint8_t *restrict in,
                                                           uint8_t *restrict out, size_t pixels,
                                                           size_t pixel_bytes) {
    for (size_t x = 0; x < pixels; x++)
        memcpy(out + x * pixel_bytes, in + (pixels - 1 - x) * pixel_bytes, pixel_bytes);
}

static void flip(const uint8_t *in, uint8_t *out, const presto_tensor_spec *spec) {
    size_t pixels = (size_t)spec->dims[1];
    size_t pixel_bytes = presto__pixel_bytes(spec);
    for (int64_t y = 0; y < spec->dims[0]; y++) {
        switch (pixel_bytes) {
        case 1:
            flip_row(in, out, pixels, 1);
            break;
        case 3:
            flip_row(in, out, pixels, 3);
            break;
        case 4:
            flip_row(in, out, pixels, 4);
            break;
        case 12:
            flip_row(in, out, pixels, 12);
            break;
        default:
            flip_row(in, out, pixels, pixel_bytes);
        }
        in += pixels * pixel_bytes;
        out += pixels * pixel_bytes;
    }
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const flip_state *flip_of = state;
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    if (presto_rng_uniform(presto_step_rng(context)) >= flip_of->probability) {
        *out_out = *in;
        return PRESTO_OK;
    }
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    flip(in->data, data, &spec);
    presto__geometry moved = presto__geometry_of(&spec);
    moved.turn.flips_x = true;
    presto__step_moved(context, &moved);
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

const presto_step_type presto__step_horizontal_flip = {
    .abi = PRESTO_STEP_ABI,
    .name = "horizontal-flip",
    .summary = "Left becomes right, with a probability.",
    .flags = PRESTO_STEP_RANDOM | PRESTO_STEP_HWC | PRESTO_STEP_MOVES,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .run = run,
};
