/* SPDX-License-Identifier: Apache-2.0 */
/* The steps on pixels one by one: their arithmetic against plain loops. */
#include <math.h>
#include <presto/rng.h>

#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

/* ---- resize-image ---- */

/* An image of small integers or floats, both kept as floats, and the size it is to get. */
typedef struct resizing {
    const float *in;
    int64_t height, width, channels;
    int64_t out_height, out_width;
} resizing;

static float pixel(const resizing *r, int64_t y, int64_t x, int64_t c) {
    return r->in[(y * r->width + x) * r->channels + c];
}

/* Each product is rounded by itself; `volatile` keeps compilers from fusing it with the sum. */
static float mix(float a, float b, float fraction) {
    volatile float product = (b - a) * fraction;
    return a + product;
}

/* TensorFlow's formula, value by value, as it stands in the kernel's head comment. */
static float resized_value(const resizing *r, int64_t i) {
    int64_t c = i % r->channels;
    int64_t x = i / r->channels % r->out_width;
    int64_t y = i / r->channels / r->out_width;
    if (r->height == r->out_height && r->width == r->out_width)
        return pixel(r, y, x, c);
    volatile float y_product = ((float)y + 0.5f) * ((float)r->height / (float)r->out_height);
    volatile float x_product = ((float)x + 0.5f) * ((float)r->width / (float)r->out_width);
    float y_at = y_product - 0.5f;
    float x_at = x_product - 0.5f;
    int64_t y0 = (int64_t)fmaxf(floorf(y_at), 0);
    int64_t x0 = (int64_t)fmaxf(floorf(x_at), 0);
    int64_t y1 = (int64_t)fminf(ceilf(y_at), (float)(r->height - 1));
    int64_t x1 = (int64_t)fminf(ceilf(x_at), (float)(r->width - 1));
    float fx = x_at - floorf(x_at);
    float top = mix(pixel(r, y0, x0, c), pixel(r, y0, x1, c), fx);
    float bottom = mix(pixel(r, y1, x0, c), pixel(r, y1, x1, c), fx);
    return mix(top, bottom, y_at - floorf(y_at));
}

static void compare_resized(const resizing *r, const presto_tensor *got) {
    int64_t count = r->out_height * r->out_width * r->channels;
    for (int64_t i = 0; i < count; i++) {
        float want = resized_value(r, i);
        float value = want;
        if (got->spec.dtype == PRESTO_FLOAT32) {
            memcpy(&value, (const uint8_t *)got->data + 4 * i, 4);
        } else {
            value = ((const uint8_t *)got->data)[i];
            want = truncf(want);
        }
        ck_assert_msg(value == want, "%jd x %jd x %jd to %jd x %jd at %jd: %.9g, not %.9g",
                      (intmax_t)r->height, (intmax_t)r->width, (intmax_t)r->channels,
                      (intmax_t)r->out_height, (intmax_t)r->out_width, (intmax_t)i, (double)value,
                      (double)want);
    }
}

static void check_resize(resizing r, bool is_float, presto_rng *rng) {
    char step[128];
    rig steps;
    presto_error err;
    size_t count = (size_t)(r.height * r.width * r.channels);
    uint8_t *bytes = malloc(count * 4);
    float *floats = malloc(count * sizeof *floats);
    ck_assert(bytes != NULL && floats != NULL);
    for (size_t i = 0; i < count; i++) {
        floats[i] = is_float ? (float)(presto_rng_uniform(rng) * 2 - 1)
                             : (float)(presto_rng_next(rng) & 255);
        if (is_float)
            memcpy(bytes + 4 * i, &floats[i], 4);
        else
            bytes[i] = (uint8_t)floats[i];
    }
    r.in = floats;
    presto_tensor_spec in = {
        is_float ? PRESTO_FLOAT32 : PRESTO_UINT8, 3, {r.height, r.width, r.channels}};
    uint8_t *exact = presto_check_copy(presto_span_of(bytes, is_float ? count * 4 : count));
    snprintf(step, sizeof step, "{step: resize-image, height: %jd, width: %jd}",
             (intmax_t)r.out_height, (intmax_t)r.out_width);
    ck_assert_ok(rig_open(&steps, step, &in, false, &err), &err);
    presto_tensor tensor = {.spec = in, .data = exact};
    rig_options options = {0};
    ck_assert_ok(rig_run(&steps, &options, &tensor, &err), &err);
    compare_resized(&r, &tensor);
    rig_close(&steps);
    free(exact);
    free(bytes);
    free(floats);
}

static int64_t draw(presto_rng *rng, uint64_t bound) {
    return 1 + (int64_t)presto_rng_below(rng, bound);
}

START_TEST(resizing_equals_the_formula_to_the_bit) {
    presto_rng rng = test_rng(2);
    for (int i = 0; i < 400; i++) {
        uint64_t limit = i % 4 == 0 ? 5 : 90;
        resizing r = {NULL,          draw(&rng, limit), draw(&rng, limit),
                      draw(&rng, 5), draw(&rng, 90),    draw(&rng, 150)};
        if (i % 20 == 0) {
            r.out_height = r.height;
            r.out_width = r.width;
        }
        check_resize(r, i % 3 == 0, &rng);
    }
}
END_TEST

START_TEST(the_portable_kernels_equal_the_formula_too) {
    ck_assert_int_eq(setenv("PRESTO_PORTABLE", "1", 1), 0);
    presto_rng rng = test_rng(5);
    for (int i = 0; i < 100; i++) {
        resizing r = {NULL,          draw(&rng, 40), draw(&rng, 40),
                      draw(&rng, 5), draw(&rng, 60), draw(&rng, 60)};
        check_resize(r, i % 3 == 0, &rng);
    }
}
END_TEST

START_TEST(portable_and_vector_kernels_give_the_same) {
    const char *steps[] = {"{step: center-pixels}", "{step: greyscale}",
                           "{step: center-pixels}, {step: greyscale}, {step: center-pixels}",
                           "{step: resize-image, height: 41, width: 37}"};
    presto_tensor_spec in = {PRESTO_UINT8, 3, {33, 47, 3}};
    uint8_t pixels[33 * 47 * 3];
    presto_rng rng = test_rng(6);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)presto_rng_next(&rng);
    for (size_t i = 0; i < 4; i++) {
        rig vector, portable;
        presto_error err;
        rig_options options = {0};
        presto_tensor a = {.spec = in, .data = pixels}, b = a;
        ck_assert_int_eq(unsetenv("PRESTO_PORTABLE"), 0);
        ck_assert_ok(rig_open(&vector, steps[i], &in, false, &err), &err);
        ck_assert_int_eq(setenv("PRESTO_PORTABLE", "1", 1), 0);
        ck_assert_ok(rig_open(&portable, steps[i], &in, false, &err), &err);
        ck_assert_ok(rig_run(&vector, &options, &a, &err), &err);
        ck_assert_ok(rig_run(&portable, &options, &b, &err), &err);
        ck_assert_int_eq(memcmp(a.data, b.data, presto_tensor_bytes(&a)), 0);
        rig_close(&vector);
        rig_close(&portable);
    }
}
END_TEST

START_TEST(the_shorter_side_is_rounded_like_python) {
    static const int64_t cases[][5] = {
        /* height, width, min-side -> height, width */
        {375, 500, 256, 256, 341}, {500, 375, 256, 341, 256}, {333, 500, 256, 256, 384},
        {1, 1, 256, 256, 256},     {256, 999, 256, 256, 999}, {427, 640, 64, 64, 95},
        {3, 2, 64, 96, 64},        {101, 203, 100, 100, 200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char step[64];
        rig r;
        presto_error err;
        presto_tensor_spec in = {PRESTO_UINT8, 3, {cases[i][0], cases[i][1], 3}};
        snprintf(step, sizeof step, "{step: resize-image, min-side: %jd}", (intmax_t)cases[i][2]);
        ck_assert_ok(rig_open(&r, step, &in, false, &err), &err);
        const presto_tensor_spec *out = presto__plan_output(r.plan);
        ck_assert_int_eq(out->dims[0], cases[i][3]);
        ck_assert_int_eq(out->dims[1], cases[i][4]);
        rig_close(&r);
    }
}
END_TEST

START_TEST(images_of_many_sizes_share_one_worker) {
    presto_tensor_spec any = {PRESTO_UINT8, 3, {-1, -1, -1}};
    presto_rng rng = test_rng(3);
    rig many;
    presto_error err;
    ck_assert_ok(rig_open(&many, "{step: resize-image, min-side: 33}", &any, false, &err), &err);
    for (int i = 0; i < 60; i++) {
        presto_tensor_spec in = {PRESTO_UINT8, 3, {1, 1, 3}};
        in.dims[0] += (int64_t)presto_rng_below(&rng, 99);
        in.dims[1] += (int64_t)presto_rng_below(&rng, 99);
        size_t bytes = (size_t)(in.dims[0] * in.dims[1] * 3);
        uint8_t *pixels = malloc(bytes);
        for (size_t k = 0; k < bytes; k++)
            pixels[k] = (uint8_t)presto_rng_next(&rng);
        rig fresh;
        rig_options options = {0};
        presto_tensor a = {.spec = in, .data = pixels}, b = a;
        ck_assert_ok(rig_open(&fresh, "{step: resize-image, min-side: 33}", &any, false, &err),
                     &err);
        ck_assert_ok(rig_run(&many, &options, &a, &err), &err);
        ck_assert_ok(rig_run(&fresh, &options, &b, &err), &err);
        ck_assert(presto_spec_equal(&a.spec, &b.spec));
        ck_assert_int_eq(memcmp(a.data, b.data, presto_tensor_bytes(&a)), 0);
        rig_close(&fresh);
        free(pixels);
    }
    rig_close(&many);
}
END_TEST

/* ---- pixelwise steps ---- */

START_TEST(centering_rounds_the_quotient_first) {
    uint8_t all[256];
    rig r;
    presto_error err;
    presto_tensor_spec in = {PRESTO_UINT8, 1, {256}};
    for (size_t i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    ck_assert_ok(rig_open(&r, "{step: center-pixels}", &in, false, &err), &err);
    presto_tensor tensor = {.spec = in, .data = all};
    rig_options options = {0};
    ck_assert_ok(rig_run(&r, &options, &tensor, &err), &err);
    const float *got = tensor.data;
    for (size_t i = 0; i < 256; i++) {
        volatile float quotient = (float)i / 127.5f;
        ck_assert(got[i] == quotient - 1.0f);
    }
    ck_assert(got[0] == -1.0f && got[255] == 1.0f);
    rig_close(&r);
}
END_TEST

START_TEST(inputs_need_no_alignment) {
    uint8_t *bytes = malloc(4 * 3 * 20 + 1);
    presto_tensor_spec in = {PRESTO_FLOAT32, 3, {4, 5, 3}};
    for (size_t i = 0; i < 60; i++) {
        float value = (float)i;
        memcpy(bytes + 1 + 4 * i, &value, 4);
    }
    const char *steps[] = {"{step: center-pixels}", "{step: greyscale}",
                           "{step: resize-image, height: 7, width: 3}",
                           "{step: random-crop, height: 2, width: 2}",
                           "{step: center-pixels}, {step: random-crop, height: 2, width: 2}"};
    for (size_t i = 0; i < 5; i++) {
        rig r;
        presto_error err;
        presto_tensor tensor = {.spec = in, .data = bytes + 1};
        rig_options options = {0};
        ck_assert_ok(rig_open(&r, steps[i], &in, false, &err), &err);
        ck_assert_ok(rig_run(&r, &options, &tensor, &err), &err);
        rig_close(&r);
    }
    free(bytes);
}
END_TEST

START_TEST(greyscale_stays_in_range_and_follows_the_weights) {
    presto_tensor_spec in = {PRESTO_UINT8, 3, {64, 64, 3}};
    uint8_t pixels[64 * 64 * 3];
    presto_rng rng = test_rng(4);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = i < 3 ? 255 : i < 6 ? 0 : (uint8_t)presto_rng_next(&rng);
    rig r;
    presto_error err;
    ck_assert_ok(rig_open(&r, "{step: greyscale}", &in, false, &err), &err);
    presto_tensor tensor = {.spec = in, .data = pixels};
    rig_options options = {0};
    ck_assert_ok(rig_run(&r, &options, &tensor, &err), &err);
    const uint8_t *grey = tensor.data;
    ck_assert(grey[0] == 255 && grey[1] == 0);
    for (size_t i = 0; i < (size_t)64 * 64; i++) {
        double exact =
            0.2989 * pixels[3 * i] + 0.587 * pixels[3 * i + 1] + 0.114 * pixels[3 * i + 2];
        ck_assert(fabs(exact - grey[i]) < 1.01);
    }
    rig_close(&r);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        resizing_equals_the_formula_to_the_bit,
        the_portable_kernels_equal_the_formula_too,
        portable_and_vector_kernels_give_the_same,
        the_shorter_side_is_rounded_like_python,
        images_of_many_sizes_share_one_worker,
        centering_rounds_the_quotient_first,
        inputs_need_no_alignment,
        greyscale_stays_in_range_and_follows_the_weights,
    };
    return presto_check_main("resize-image", tests, sizeof tests / sizeof tests[0], 240);
}
