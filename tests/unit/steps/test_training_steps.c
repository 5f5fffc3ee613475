/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that training needs, where they end: all 16-bit floats, values out of range, sizes that
 * do not fit, options that are wrong. tests/live/image_steps.py compares them with TensorFlow. */
#include <math.h>

#include "steps_check.h"

/* The step's result for one tensor, as a copy; the spec goes to *in. */
static uint8_t *run_step(const char *step, presto_tensor *in) {
    rig r;
    presto_error err;
    rig_options options = {0};
    ck_assert_ok(rig_open(&r, step, &in->spec, false, &err), &err);
    ck_assert_ok(rig_run(&r, &options, in, &err), &err);
    uint8_t *copy = rig_copy(in);
    rig_close(&r);
    return copy;
}

static void assert_fails(const char *step, const presto_tensor_spec *in, const char *message) {
    rig r;
    presto_error err;
    presto_status status = rig_open(&r, step, in, false, &err);
    ck_assert_msg(status < 0, "%s", step);
    ck_assert_msg(strstr(err.message, message) != NULL, "'%s' lacks '%s'", err.message, message);
    rig_close(&r);
}

/* ---- cast ---- */

/* The value of a float16 or bfloat16 by its definition. */
static double value_of_half(unsigned half, int exponent_bits) {
    int mantissa_bits = 15 - exponent_bits;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(half >> mantissa_bits) & ((1 << exponent_bits) - 1);
    double mantissa = (double)(half & ((1u << mantissa_bits) - 1)) / (double)(1u << mantissa_bits);
    double sign = (half & 0x8000) != 0 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return mantissa > 0 ? NAN : sign * INFINITY;
    return sign *
           (exponent == 0 ? ldexp(mantissa, 1 - bias) : ldexp(1 + mantissa, exponent - bias));
}

static void check_halves(const char *there, presto_dtype dtype, int exponent_bits) {
    static uint16_t halves[65536];
    for (unsigned i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    presto_tensor tensor = {.spec = {dtype, 1, {65536}}, .data = halves};
    float *floats = (float *)(void *)run_step("{step: cast, dtype: float32}", &tensor);
    for (unsigned i = 0; i < 65536; i++) {
        double want = value_of_half(i, exponent_bits);
        ck_assert_msg(isnan(want) ? isnan(floats[i]) : floats[i] == (float)want, "half %x", i);
    }
    tensor = (presto_tensor){.spec = {PRESTO_FLOAT32, 1, {65536}}, .data = floats};
    uint16_t *back = (uint16_t *)(void *)run_step(there, &tensor);
    for (unsigned i = 0; i < 65536; i++)
        ck_assert_msg(back[i] == i || isnan(floats[i]), "half %x comes back as %x", i, back[i]);
    free(back);

    /* Between two neighbours: just below the middle, the middle, just above it. */
    static float between[3 * 65536];
    unsigned most = ((1u << exponent_bits) - 1) << (15 - exponent_bits); /* infinity */
    for (size_t i = 0; i + 1 < most; i++) {
        float middle = (float)((value_of_half((unsigned)i, exponent_bits) +
                                value_of_half((unsigned)i + 1, exponent_bits)) /
                               2);
        between[3 * i] = nextafterf(middle, 0);
        between[3 * i + 1] = middle;
        between[3 * i + 2] = nextafterf(middle, INFINITY);
    }
    tensor =
        (presto_tensor){.spec = {PRESTO_FLOAT32, 1, {3 * (int64_t)(most - 1)}}, .data = between};
    back = (uint16_t *)(void *)run_step(there, &tensor);
    for (size_t i = 0; i + 1 < most; i++) {
        ck_assert_msg(back[3 * i] == i, "below the middle of %zx", i);
        ck_assert_msg(back[3 * i + 1] == (i + 1) / 2 * 2, "the middle of %zx gives %x", i,
                      back[3 * i + 1]);
        ck_assert_msg(back[3 * i + 2] == i + 1, "above the middle of %zx", i);
    }
    free(back);
    free(floats);
}

START_TEST(float16_is_right_for_every_value_and_every_tie) {
    check_halves("{step: cast, dtype: float16}", PRESTO_FLOAT16, 5);
}
END_TEST

START_TEST(bfloat16_is_right_for_every_value_and_every_tie) {
    check_halves("{step: cast, dtype: bfloat16}", PRESTO_BFLOAT16, 8);
}
END_TEST

START_TEST(too_large_floats_become_infinity_and_nans_stay) {
    static const float values[] = {65519.996f, 65520, 1e30f, -1e30f, INFINITY, -INFINITY, NAN};
    presto_tensor tensor = {.spec = {PRESTO_FLOAT32, 1, {7}}, .data = values};
    uint16_t *halves = (uint16_t *)(void *)run_step("{step: cast, dtype: float16}", &tensor);
    static const uint16_t want[] = {0x7bff, 0x7c00, 0x7c00, 0xfc00, 0x7c00, 0xfc00};
    ck_assert_mem_eq(halves, want, sizeof want);
    ck_assert_uint_gt(halves[6] & 0x7fff, 0x7c00);
    free(halves);
    static const float large[] = {3.4e38f, NAN}; /* beyond bfloat16's 3.3895e38 */
    tensor = (presto_tensor){.spec = {PRESTO_FLOAT32, 1, {2}}, .data = large};
    halves = (uint16_t *)(void *)run_step("{step: cast, dtype: bfloat16}", &tensor);
    ck_assert_uint_eq(halves[0], 0x7f80);
    ck_assert_uint_gt(halves[1] & 0x7fff, 0x7f80);
    free(halves);
}
END_TEST

START_TEST(integers_saturate) {
    static const double values[] = {-1e300, -9.3e18, -129.9, -0.9,  0.9,
                                    255.9,  256,     9.3e18, 1e300, NAN};
    static const uint8_t bytes[] = {0, 0, 0, 0, 0, 255, 255, 255, 255, 0};
    static const int16_t shorts[] = {INT16_MIN, INT16_MIN, -129,      0,         0,
                                     255,       256,       INT16_MAX, INT16_MAX, 0};
    static const int64_t longs[] = {INT64_MIN, INT64_MIN, -129,      0,         0,
                                    255,       256,       INT64_MAX, INT64_MAX, 0};
    static const struct {
        const char *step;
        const void *want;
        size_t bytes;
    } cases[] = {{"{step: cast, dtype: uint8}", bytes, sizeof bytes},
                 {"{step: cast, dtype: int16}", shorts, sizeof shorts},
                 {"{step: cast, dtype: int64}", longs, sizeof longs}};
    for (size_t i = 0; i < 3; i++) {
        presto_tensor tensor = {.spec = {PRESTO_FLOAT64, 1, {10}}, .data = values};
        uint8_t *got = run_step(cases[i].step, &tensor);
        ck_assert_mem_eq(got, cases[i].want, cases[i].bytes);
        free(got);
    }
    static const int64_t wide[] = {INT64_MIN, -1, 300, INT64_MAX};
    static const uint8_t narrow[] = {0, 0, 255, 255};
    presto_tensor tensor = {.spec = {PRESTO_INT64, 1, {4}}, .data = wide};
    uint8_t *got = run_step("{step: cast, dtype: uint8}", &tensor);
    ck_assert_mem_eq(got, narrow, sizeof narrow);
    free(got);
}
END_TEST

START_TEST(values_need_not_be_aligned) {
    uint8_t memory[1 + 300 * sizeof(double)];
    for (int i = 0; i < 300; i++) {
        double value = i * 0.5;
        memcpy(memory + 1 + (size_t)i * sizeof value, &value, sizeof value);
    }
    presto_tensor tensor = {.spec = {PRESTO_FLOAT64, 1, {300}}, .data = memory + 1};
    float *got = (float *)(void *)run_step("{step: cast, dtype: float32}", &tensor);
    for (int i = 0; i < 300; i++)
        ck_assert(got[i] == (float)i * 0.5f);
    free(got);
}
END_TEST

/* ---- sizes and options ---- */

START_TEST(a_canvas_may_be_larger_in_one_direction_and_smaller_in_the_other) {
    uint8_t pixels[5 * 2];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i + 1);
    presto_tensor tensor = {.spec = {PRESTO_UINT8, 3, {5, 2, 1}}, .data = pixels};
    uint8_t *got = run_step("{step: crop-or-pad, height: 2, width: 5, fill: 9}", &tensor);
    static const uint8_t want[] = {9, 3, 4, 9, 9, 9, 5, 6, 9, 9};
    ck_assert_mem_eq(got, want, sizeof want);
    free(got);
}
END_TEST

START_TEST(images_without_pixels_are_no_trouble) {
    static const char *const steps[] = {"{step: horizontal-flip, probability: 1}",
                                        "{step: to-layout}", "{step: cast, dtype: float16}",
                                        "{step: pad, left: 1}",
                                        "{step: normalize, mean: [0], std: [1]}"};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        presto_tensor tensor = {.spec = {PRESTO_UINT8, 3, {0, 4, 3}}, .data = ""};
        free(run_step(steps[i], &tensor));
        ck_assert_uint_eq(presto_spec_elements(&tensor.spec), 0);
    }
}
END_TEST

START_TEST(what_does_not_fit_is_refused_before_any_data) {
    static const presto_tensor_spec image = {PRESTO_UINT8, 3, {4, 4, 3}};
    static const presto_tensor_spec vector = {PRESTO_FLOAT32, 1, {4}};
    static const presto_tensor_spec complex_numbers = {PRESTO_COMPLEX64, 1, {4}};
    assert_fails("{step: normalize, mean: [0, 0], std: [1, 1]}", &image,
                 "of 2 channels, gets an image of 3");
    assert_fails("{step: normalize, mean: [0, 0], std: [1]}", &image,
                 "mean has 2 numbers and std 1");
    assert_fails("{step: normalize, mean: [0], std: [0]}", &image,
                 "option 'std' is 0, must be from 1e-12");
    assert_fails("{step: normalize, mean: [], std: [1]}", &image, "'mean' is an empty list");
    assert_fails("{step: normalize, mean: [a], std: [1]}", &image, "needs a list of numbers");
    assert_fails("{step: normalize, mean: 0, std: [1]}", &image, "needs a list of numbers");
    assert_fails("{step: pad, fill: 256}", &image, "no uint8");
    assert_fails("{step: pad, fill: 0.5}", &image, "no uint8");
    assert_fails("{step: crop-or-pad, height: 1, width: 1}", &vector,
                 "needs uint8[?,?,?] or float32[?,?,?]");
    assert_fails("{step: horizontal-flip}", &vector, "needs an image of shape [?,?,?]");
    assert_fails("{step: to-layout}", &vector, "needs an image of shape [?,?,?]");
    assert_fails("{step: cast, dtype: uint8}", &complex_numbers, "gets complex64[4]");
    assert_fails("{step: cast}", &image, "needs the option 'dtype'");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        float16_is_right_for_every_value_and_every_tie,
        bfloat16_is_right_for_every_value_and_every_tie,
        too_large_floats_become_infinity_and_nans_stay,
        integers_saturate,
        values_need_not_be_aligned,
        a_canvas_may_be_larger_in_one_direction_and_smaller_in_the_other,
        images_without_pixels_are_no_trouble,
        what_does_not_fit_is_refused_before_any_data,
    };
    return presto_check_main("training_steps", tests, sizeof tests / sizeof tests[0], 60);
}
