/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps on decoded images beside bare loops and their own kernels, without a plan around them; and
 * a photo of which only the window of a random-resized-crop is decoded, beside the same steps one
 * by one: a full decode, then crop and resize.
 */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "steps/image/antialias_internal.h"
#include "steps/image/color_internal.h"

#define HEAD "{name: b, source: {type: files}, steps: [{step: read-file}, {step: decode-image"

/* ---- steps on one decoded image ---- */

enum { WIDTH = 341, HEIGHT = 256, CROP = 224, MOST_VALUES = WIDTH * HEIGHT * 3 };

typedef struct pixels {
    presto_tensor image; /* uint8 [HEIGHT, WIDTH, 3] */
    void (*run)(const presto_tensor *image, void *out, presto__antialias *antialias);
} pixels;

typedef struct bare_state {
    const pixels *of;
    presto__antialias antialias;
    float *out;
} bare_state;

static void *bare_open(const void *user) {
    bare_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        bench_die("out of memory");
    state->of = user;
    state->antialias.use_avx2 = presto__use_avx2();
    state->out = malloc(MOST_VALUES * sizeof *state->out);
    if (state->out == NULL)
        bench_die("out of memory");
    return state;
}

static void bare_run(void *user, size_t number) {
    bare_state *state = user;
    (void)number;
    state->of->run(&state->of->image, state->out, &state->antialias);
}

static void bare_close(void *user) {
    bare_state *state = user;
    presto__antialias_done(&state->antialias);
    free(state->out);
    free(state);
}

static void bare_center(const presto_tensor *image, void *out, presto__antialias *antialias) {
    const uint8_t *in = image->data;
    float *to = out;
    (void)antialias;
    for (size_t i = 0; i < MOST_VALUES; i++)
        to[i] = (float)in[i] / 127.5f - 1.0f;
}

static void bare_grey(const presto_tensor *image, void *out, presto__antialias *antialias) {
    const uint8_t *in = image->data;
    uint8_t *to = out;
    (void)antialias;
    for (size_t i = 0; i < MOST_VALUES / 3; i++)
        to[i] = (uint8_t)((0.2989f * in[3 * i] + 0.587f * in[3 * i + 1] + 0.114f * in[3 * i + 2]) *
                          (255.5f / 255.0f));
}

static void bare_crop(const presto_tensor *image, void *out, presto__antialias *antialias) {
    const uint8_t *in = image->data;
    uint8_t *to = out;
    (void)antialias;
    for (size_t y = 0; y < CROP; y++)
        memcpy(to + y * CROP * 3, in + ((y + 16) * WIDTH + 58) * 3, (size_t)CROP * 3);
}

/* Windows of half of the image's area and of its shape. */
static void bare_resized_crop(const presto_tensor *image, void *out, presto__antialias *antialias) {
    const presto_part whole = presto__part_of_whole(image);
    const presto__antialias_job job = {&whole, {37, 50, 181, 241}, CROP, CROP};
    bench_need(presto__antialias_resize(antialias, &job, out, NULL), NULL, "resize");
}

static void bare_jitter(const presto_tensor *image, void *out, presto__antialias *antialias) {
    static const presto__color_change changes[] = {{PRESTO__COLOR_HUE, 0.05},
                                                   {PRESTO__COLOR_CONTRAST, 1.1},
                                                   {PRESTO__COLOR_BRIGHTNESS, 0.9},
                                                   {PRESTO__COLOR_SATURATION, 1.2}};
    const presto__color_image colors = {presto__color_kernels_of_cpu(), image->data, out,
                                        &image->spec};
    (void)antialias;
    presto__color_apply(&colors, changes, 4);
}

static void pixel_row(const steps_settings *set, const char *row, const char *step,
                      void (*run)(const presto_tensor *image, void *out,
                                  presto__antialias *antialias)) {
    static uint8_t data[MOST_VALUES];
    if (!steps_wanted(set, row))
        return;
    for (size_t i = 0; i < MOST_VALUES; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    const pixels of = {{.spec = {PRESTO_UINT8, 3, {HEIGHT, WIDTH, 3}}, .data = data}, run};
    char yaml[512];
    snprintf(yaml, sizeof yaml, HEAD "}, %s]}", step);
    steps_plan *plan = steps_plan_new(yaml, 2, 3, &of.image.spec, &of.image);
    steps_side side = steps_plan_side(plan);
    steps_side bare = {bare_open, bare_run, bare_close, &of};
    steps_measure(set, row, 1, &side, &bare);
    steps_plan_free(plan);
}

/* ---- only what a random-resized-crop keeps ---- */

#define RESIZED_CROP "{step: random-resized-crop, size: 224}]}"

static void window_row(const steps_settings *set, const char *row, const char *photo_options,
                       const char *decode_options) {
    char fused[256];
    steps_files photos;
    if (!steps_wanted(set, row))
        return;
    steps_make_photos(set, set->quick ? 2 : 16, photo_options, &photos);
    snprintf(fused, sizeof fused, HEAD "%s}, " RESIZED_CROP, decode_options);
    steps_plan *plan = steps_plan_new(fused, 1, 3, &steps_string_spec, photos.samples);
    steps_plan *plain =
        steps_plan_new_unfused(HEAD "}, " RESIZED_CROP, 1, 3, &steps_string_spec, photos.samples);
    steps_side side = steps_plan_side(plan);
    steps_side bare = steps_plan_side(plain);
    steps_measure(set, row, photos.count, &side, &bare);
    steps_plan_free(plan);
    steps_plan_free(plain);
    steps_free_files(&photos);
}

void steps_augment(const steps_settings *set) {
    const char *small = "";
    const char *large = "--width 2592 --height 1728 --quality 25";
    pixel_row(set, "center-pixels, 341 x 256", "{step: center-pixels}", bare_center);
    pixel_row(set, "greyscale, 341 x 256", "{step: greyscale}", bare_grey);
    pixel_row(set, "random-crop, 341 x 256 to 224 x 224",
              "{step: random-crop, height: 224, width: 224}", bare_crop);
    pixel_row(set, "random-resized-crop, 341 x 256 to 224 x 224",
              "{step: random-resized-crop, size: 224, scale: [0.5, 0.5], ratio: [1.332, 1.332]}",
              bare_resized_crop);
    pixel_row(set, "color-jitter, 341 x 256",
              "{step: color-jitter, brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}",
              bare_jitter);
    window_row(set, "decode and random-resized-crop, JPEG, 500 x 375", small, "");
    window_row(set, "decode and random-resized-crop, JPEG, 2592 x 1728", large, "");
    window_row(set, "the same with scale: auto, JPEG, 2592 x 1728", large, ", scale: auto");
}
