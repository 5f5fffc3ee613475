/* SPDX-License-Identifier: Apache-2.0 */
/* random-resized-crop and color-jitter where they end: windows that do not fit, one pixel, no
 * pixels, values out of range, both kernels. tests/live/torchvision_steps.py compares them with
 * torchvision. */
#include <math.h>

#include "steps_check.h"

enum { MOST_VALUES = 200 * 320 * 4 };

static uint8_t pixels[MOST_VALUES];
static float floats[MOST_VALUES];

static void fill(uint64_t stream) {
    presto_rng rng = test_rng(stream);
    for (size_t i = 0; i < MOST_VALUES; i++) {
        pixels[i] = (uint8_t)presto_rng_next(&rng);
        floats[i] = (float)presto_rng_uniform(&rng);
    }
}

static presto_tensor image_of(presto_dtype dtype, int64_t height, int64_t width, int64_t channels) {
    const void *data = pixels;
    if (dtype == PRESTO_FLOAT32)
        data = floats;
    return (presto_tensor){.spec = {dtype, 3, {height, width, channels}}, .data = data};
}

/* The result of `steps` as a copy; its spec goes to *tensor. */
static uint8_t *run_steps(const char *steps, presto_tensor *tensor, uint64_t sample) {
    rig r;
    presto_error err;
    rig_options options = {.seed = 3, .epoch = 1, .sample = sample};
    ck_assert_ok(rig_open(&r, steps, &tensor->spec, false, &err), &err);
    ck_assert_ok(rig_run(&r, &options, tensor, &err), &err);
    uint8_t *copy = rig_copy(tensor);
    rig_close(&r);
    return copy;
}

static void assert_refused(const char *steps, const presto_tensor_spec *in, const char *message) {
    rig r;
    presto_error err;
    presto_status status = rig_open(&r, steps, in, false, &err);
    ck_assert_msg(status < 0, "%s", steps);
    ck_assert_msg(strstr(err.message, message) != NULL, "'%s' lacks '%s'", err.message, message);
    rig_close(&r);
}

static void assert_kernels_agree(const char *steps, const presto_tensor *image, uint64_t sample) {
    presto_tensor a = *image, b = *image;
    ck_assert_int_eq(unsetenv("PRESTO_PORTABLE"), 0);
    uint8_t *vector = run_steps(steps, &a, sample);
    ck_assert_int_eq(setenv("PRESTO_PORTABLE", "1", 1), 0);
    uint8_t *portable = run_steps(steps, &b, sample);
    ck_assert_int_eq(unsetenv("PRESTO_PORTABLE"), 0);
    ck_assert(presto_spec_equal(&a.spec, &b.spec));
    ck_assert_msg(memcmp(vector, portable, presto_tensor_bytes(&a)) == 0, "%s: sample %ju", steps,
                  (uintmax_t)sample);
    free(vector);
    free(portable);
}

/* ---- random-resized-crop ---- */

START_TEST(a_whole_image_of_the_wanted_size_stays_as_it_is) {
    static const presto_dtype dtypes[] = {PRESTO_UINT8, PRESTO_FLOAT32};
    fill(1);
    for (int64_t channels = 1; channels <= 5; channels++) {
        for (size_t i = 0; i < 2; i++) {
            presto_tensor image = image_of(dtypes[i], 40, 40, channels);
            presto_tensor out = image;
            uint8_t *got = run_steps(
                "{step: random-resized-crop, size: 40, scale: [1, 1], ratio: [1, 1]}", &out, 0);
            ck_assert(presto_spec_equal(&out.spec, &image.spec));
            ck_assert_mem_eq(got, image.data, presto_tensor_bytes(&image));
            free(got);
        }
    }
}
END_TEST

START_TEST(one_color_stays_one_color) {
    memset(pixels, 201, sizeof pixels);
    presto_rng rng = test_rng(2);
    for (uint64_t i = 0; i < 60; i++) {
        char steps[200];
        snprintf(steps, sizeof steps, "{step: random-resized-crop, height: %d, width: %d}",
                 1 + (int)presto_rng_below(&rng, 90), 1 + (int)presto_rng_below(&rng, 90));
        presto_tensor image = image_of(PRESTO_UINT8, 1 + (int64_t)presto_rng_below(&rng, 200),
                                       1 + (int64_t)presto_rng_below(&rng, 300), 3);
        uint8_t *got = run_steps(steps, &image, i);
        for (size_t k = 0; k < presto_tensor_bytes(&image); k++)
            ck_assert_uint_eq(got[k], 201);
        free(got);
    }
}
END_TEST

START_TEST(both_kernels_resize_alike) {
    static const presto_dtype dtypes[] = {PRESTO_UINT8, PRESTO_FLOAT32};
    fill(3);
    presto_rng rng = test_rng(4);
    for (uint64_t i = 0; i < 120; i++) {
        char steps[200];
        snprintf(steps, sizeof steps,
                 "{step: random-resized-crop, height: %d, width: %d, scale: [0.001, 1]}",
                 1 + (int)presto_rng_below(&rng, 90), 1 + (int)presto_rng_below(&rng, 90));
        presto_tensor image = image_of(dtypes[i % 2], 1 + (int64_t)presto_rng_below(&rng, 200),
                                       1 + (int64_t)presto_rng_below(&rng, 320),
                                       i % 3 == 0 ? 3 : 1 + (int64_t)presto_rng_below(&rng, 4));
        assert_kernels_agree(steps, &image, i);
    }
}
END_TEST

enum { RAMP_WIDTH = 200, RAMP_HEIGHT = 100, RAMP_VALUES = RAMP_WIDTH * RAMP_HEIGHT };

/* The window of a sample, from an image whose columns count up: its two output pixels are the same
 * distance from its middle, which is a fixed part of its width. */
static void window_of(rig *r, const presto_tensor *ramp, uint64_t sample, double *middle_out,
                      double *apart_out) {
    presto_error err;
    presto_tensor tensor = *ramp;
    rig_options options = {.seed = 5, .sample = sample};
    ck_assert_ok(rig_run(r, &options, &tensor, &err), &err);
    const float *two = tensor.data;
    *middle_out = ((double)two[0] + (double)two[1]) / 2;
    *apart_out = (double)two[1] - (double)two[0];
}

START_TEST(windows_cover_all_places_and_sizes) {
    static float columns[RAMP_VALUES];
    for (size_t i = 0; i < RAMP_VALUES; i++)
        columns[i] = (float)(i % RAMP_WIDTH) + 0.5f;
    presto_tensor ramp = {.spec = {PRESTO_FLOAT32, 3, {RAMP_HEIGHT, RAMP_WIDTH, 1}},
                          .data = columns};
    rig whole, drawn;
    presto_error err;
    ck_assert_ok(rig_open(&whole,
                          "{step: random-resized-crop, height: 1, width: 2, scale: [1, 1], "
                          "ratio: [2, 2]}",
                          &ramp.spec, false, &err),
                 &err);
    ck_assert_ok(rig_open(&drawn, "{step: random-resized-crop, height: 1, width: 2}", &ramp.spec,
                          false, &err),
                 &err);
    double middle, apart, apart_of_all;
    window_of(&whole, &ramp, 0, &middle, &apart_of_all);
    ck_assert(fabs(middle - RAMP_WIDTH / 2.0) < 0.01);
    unsigned at_left = 0, at_right = 0, narrow = 0, wide = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        window_of(&drawn, &ramp, i, &middle, &apart);
        double width = apart / apart_of_all * RAMP_WIDTH;
        double left = middle - width / 2, right = middle + width / 2;
        ck_assert_msg(left > -1 && right < RAMP_WIDTH + 1, "from %g to %g", left, right);
        /* From sqrt(0.08 * area * 3 / 4); at most 4 / 3 of the height. */
        ck_assert_msg(width > 33 && width < 135, "width %g", width);
        at_left += left < 3;
        at_right += right > RAMP_WIDTH - 3;
        narrow += width < 45;
        wide += width > 120;
    }
    ck_assert_uint_gt(at_left, 40);
    ck_assert_uint_gt(at_right, 40);
    ck_assert_uint_gt(narrow, 40);
    ck_assert_uint_gt(wide, 40);
    rig_close(&whole);
    rig_close(&drawn);
}
END_TEST

START_TEST(shapes_that_no_window_fits_give_the_middle) {
    fill(6);
    /* Of 1 x 300 pixels, the window of the largest ratio is 1 x 1: 4 / 3 is rounded. */
    presto_tensor image = image_of(PRESTO_UINT8, 1, 300, 1);
    uint8_t *got = run_steps("{step: random-resized-crop, size: 1, scale: [0.5, 1]}", &image, 0);
    ck_assert_uint_eq(got[0], pixels[149]);
    free(got);
    image = image_of(PRESTO_UINT8, 300, 1, 1);
    got = run_steps("{step: random-resized-crop, size: 1, scale: [0.5, 1]}", &image, 0);
    ck_assert_uint_eq(got[0], pixels[149]);
    free(got);
    /* Less than half a pixel is still one. */
    image = image_of(PRESTO_UINT8, 1, 1, 1);
    got = run_steps("{step: random-resized-crop, size: 7, ratio: [100, 900]}", &image, 0);
    for (int i = 0; i < 49; i++)
        ck_assert_uint_eq(got[i], pixels[0]);
    free(got);
}
END_TEST

START_TEST(long_thin_images_are_no_trouble) {
    size_t width = 3000000;
    uint8_t *row = calloc(width, 3);
    ck_assert_ptr_nonnull(row);
    presto_tensor image = {.spec = {PRESTO_UINT8, 3, {1, (int64_t)width, 3}}, .data = row};
    free(run_steps("{step: random-resized-crop, size: 3, ratio: [1000, 1000]}", &image, 0));
    image = (presto_tensor){.spec = {PRESTO_UINT8, 3, {(int64_t)width, 1, 3}}, .data = row};
    free(run_steps("{step: random-resized-crop, size: 3, ratio: [0.001, 0.001]}", &image, 0));
    free(row);
}
END_TEST

START_TEST(tables_and_rows_are_bounded) {
    size_t height = 10000, width = 20000;
    uint8_t *zeros = calloc(height, width);
    ck_assert_ptr_nonnull(zeros);
    presto_tensor image = {.spec = {PRESTO_UINT8, 3, {(int64_t)height, (int64_t)width, 1}},
                           .data = zeros};
    rig r;
    presto_error err;
    rig_options options = {0};
    /* All rows of the window would be kept, each 65535 bytes long. */
    const char *steps = "{step: random-resized-crop, height: 1, width: 65535, scale: [1, 1], "
                        "ratio: [2, 2]}";
    ck_assert_ok(rig_open(&r, steps, &image.spec, false, &err), &err);
    ck_assert_int_eq(rig_run(&r, &options, &image, &err), PRESTO_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "10000 x 20000 to 1 x 65535 pixels takes more than"));
    rig_close(&r);
    free(zeros);
}
END_TEST

START_TEST(what_does_not_fit_is_refused_before_any_data) {
    static const presto_tensor_spec image = {PRESTO_UINT8, 3, {4, 4, 3}};
    static const presto_tensor_spec empty = {PRESTO_UINT8, 3, {0, 4, 3}};
    static const presto_tensor_spec words = {PRESTO_INT16, 3, {4, 4, 3}};
    static const presto_tensor_spec rgba = {PRESTO_UINT8, 3, {4, 4, 4}};
    assert_refused("{step: random-resized-crop}", &image,
                   "needs either 'size', or 'height' and 'width'");
    assert_refused("{step: random-resized-crop, size: 3, width: 4}", &image, "needs either 'size'");
    assert_refused("{step: random-resized-crop, height: 3}", &image, "needs either 'size'");
    assert_refused("{step: random-resized-crop, size: 3, scale: [0.5]}", &image,
                   "'scale' needs two numbers");
    assert_refused("{step: random-resized-crop, size: 3, scale: [0.5, 0.4]}", &image,
                   "'scale' needs two numbers, the smaller one first");
    assert_refused("{step: random-resized-crop, size: 3, ratio: [1, 2, 3]}", &image,
                   "'ratio' needs two numbers");
    assert_refused("{step: random-resized-crop, size: 3, scale: [0, 1]}", &image, "'scale' is 0");
    assert_refused("{step: random-resized-crop, size: 3}", &empty, "has no pixels");
    assert_refused("{step: random-resized-crop, size: 3}", &words, "gets int16[4,4,3]");
    assert_refused("{step: color-jitter, brightness: 0.1}", &rgba, "needs an image of 1 or 3");
    assert_refused("{step: color-jitter, hue: 0.6}", &image, "'hue' is 0.6");
    assert_refused("{step: color-jitter, contrast: -1}", &image, "'contrast' is -1");
    assert_refused("{step: decode-image, least-side: 9}", &string_spec, "belong to 'scale: auto'");
}
END_TEST

/* ---- color-jitter ---- */

START_TEST(a_jitter_that_is_off_changes_nothing) {
    fill(7);
    presto_tensor image = image_of(PRESTO_UINT8, 13, 17, 3);
    presto_tensor out = image;
    uint8_t *got = run_steps("{step: color-jitter}", &out, 0);
    ck_assert_mem_eq(got, pixels, presto_tensor_bytes(&image));
    free(got);
    /* Grey has neither saturation nor hue. */
    image = image_of(PRESTO_FLOAT32, 13, 17, 1);
    out = image;
    got = run_steps("{step: color-jitter, saturation: 0.9, hue: 0.4}", &out, 0);
    ck_assert_mem_eq(got, floats, presto_tensor_bytes(&image));
    free(got);
}
END_TEST

START_TEST(both_kernels_jitter_alike) {
    static const presto_dtype dtypes[] = {PRESTO_UINT8, PRESTO_FLOAT32};
    fill(8);
    for (uint64_t i = 0; i < 40; i++) {
        presto_tensor image =
            image_of(dtypes[i % 2], 1 + (int64_t)i % 9 * 7, 31, i % 3 == 0 ? 1 : 3);
        assert_kernels_agree("{step: color-jitter, brightness: 0.4, contrast: 0.4, "
                             "saturation: 0.4, hue: 0.3}",
                             &image, i);
    }
}
END_TEST

START_TEST(changes_do_not_depend_on_those_that_are_off) {
    /* Alone, brightness has the factor that it has with a hue that every color survives. */
    memset(pixels, 100, sizeof pixels);
    for (uint64_t i = 0; i < 20; i++) {
        presto_tensor a = image_of(PRESTO_UINT8, 5, 5, 3), b = a;
        uint8_t *alone = run_steps("{step: color-jitter, brightness: 0.9}", &a, i);
        uint8_t *both = run_steps("{step: color-jitter, brightness: 0.9, hue: 0.5}", &b, i);
        ck_assert_mem_eq(alone, both, presto_tensor_bytes(&a));
        free(alone);
        free(both);
    }
}
END_TEST

START_TEST(numbers_that_are_none_stay_in_their_pixels) {
    fill(9);
    floats[30] = NAN;
    floats[31] = INFINITY;
    floats[60] = -INFINITY;
    floats[90] = -5;
    floats[91] = 1e30f;
    presto_tensor image = image_of(PRESTO_FLOAT32, 20, 20, 3);
    for (uint64_t i = 0; i < 20; i++) {
        presto_tensor out = image;
        float *got = (float *)(void *)run_steps(
            "{step: color-jitter, brightness: 0.4, saturation: 0.4, hue: 0.3}", &out, i);
        for (size_t k = 93; k < 1200; k++)
            ck_assert(got[k] >= 0 && got[k] <= 1);
        free(got);
    }
}
END_TEST

START_TEST(images_without_pixels_are_no_trouble) {
    presto_tensor image = {.spec = {PRESTO_UINT8, 3, {0, 4, 3}}, .data = ""};
    free(run_steps("{step: color-jitter, brightness: 0.4, contrast: 0.3, hue: 0.1}", &image, 0));
    ck_assert_uint_eq(presto_spec_elements(&image.spec), 0);
}
END_TEST

START_TEST(values_need_not_be_aligned) {
    static uint8_t memory[1 + sizeof(float) * 12 * 12 * 3];
    fill(10);
    memcpy(memory + 1, floats, sizeof memory - 1);
    const char *steps = "{step: color-jitter, contrast: 0.5, hue: 0.2}, "
                        "{step: random-resized-crop, size: 7}";
    presto_tensor a = image_of(PRESTO_FLOAT32, 12, 12, 3), b = a;
    b.data = memory + 1;
    uint8_t *aligned = run_steps(steps, &a, 0);
    uint8_t *shifted = run_steps(steps, &b, 0);
    ck_assert_mem_eq(aligned, shifted, presto_tensor_bytes(&a));
    free(aligned);
    free(shifted);
    steps = "{step: random-resized-crop, size: 7}";
    a = b = image_of(PRESTO_FLOAT32, 12, 12, 3);
    b.data = memory + 1;
    aligned = run_steps(steps, &a, 0);
    shifted = run_steps(steps, &b, 0);
    ck_assert_mem_eq(aligned, shifted, presto_tensor_bytes(&a));
    free(aligned);
    free(shifted);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_whole_image_of_the_wanted_size_stays_as_it_is,
        one_color_stays_one_color,
        both_kernels_resize_alike,
        windows_cover_all_places_and_sizes,
        shapes_that_no_window_fits_give_the_middle,
        long_thin_images_are_no_trouble,
        tables_and_rows_are_bounded,
        what_does_not_fit_is_refused_before_any_data,
        a_jitter_that_is_off_changes_nothing,
        both_kernels_jitter_alike,
        changes_do_not_depend_on_those_that_are_off,
        numbers_that_are_none_stay_in_their_pixels,
        images_without_pixels_are_no_trouble,
        values_need_not_be_aligned,
    };
    return presto_check_main("augment", tests, sizeof tests / sizeof tests[0], 120);
}
