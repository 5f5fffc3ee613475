/* SPDX-License-Identifier: Apache-2.0 */
/* The image steps one by one: arithmetic against plain loops, and inputs that are damaged in every
 * way. */
#include <math.h>
#include <presto/rng.h>

#include "steps_check.h"

#define GOLDEN(name) PRESTO_GOLDEN_DIR "/images/" name

static presto_rng test_rng(uint64_t stream) {
    presto_rng rng;
    presto_rng_key key = {presto_check_seed(), 0, 0, stream};
    presto_rng_init(&rng, &key);
    return rng;
}

/* ---- decode-image ---- */

static presto_status decode(const char *step, presto_span bytes, presto_tensor_spec *spec_out,
                            uint8_t **pixels_out, presto_error *err) {
    rig r;
    presto_tensor tensor;
    ck_assert_ok(rig_open(&r, step, &string_spec, false, err), err);
    rig_options options = {0};
    presto_status status = rig_run_bytes(&r, &options, bytes, &tensor, err);
    if (status >= 0) {
        *spec_out = tensor.spec;
        *pixels_out = rig_copy(&tensor);
    }
    rig_close(&r);
    return status;
}

static presto_status decode_file(const char *step, const char *path, presto_tensor_spec *spec_out,
                                 uint8_t **pixels_out, presto_error *err) {
    size_t bytes;
    uint8_t *content = presto_check_read_file(path, &bytes);
    presto_status status = decode(step, presto_span_of(content, bytes), spec_out, pixels_out, err);
    free(content);
    return status;
}

START_TEST(channels_decide_the_last_dim) {
    static const struct {
        const char *file;
        int channels;
        int want; /* 0: refused as a type */
    } cases[] = {
        {GOLDEN("jpeg-444-200x150.jpg"), 0, 3},
        {GOLDEN("jpeg-444-200x150.jpg"), 1, 1},
        {GOLDEN("jpeg-444-200x150.jpg"), 3, 3},
        {GOLDEN("jpeg-444-200x150.jpg"), 4, 0},
        {GOLDEN("jpeg-grey-65x49.jpg"), 0, 1},
        {GOLDEN("jpeg-grey-65x49.jpg"), 3, 3},
        {GOLDEN("jpeg-rgb-90x68.jpg"), 1, 1},
        {GOLDEN("jpeg-cmyk-adobe-97x131.jpg"), 0, 3},
        {GOLDEN("jpeg-cmyk-adobe-97x131.jpg"), 1, 0},
        {GOLDEN("png-rgb8-160x120.png"), 0, 3},
        {GOLDEN("png-rgb8-160x120.png"), 1, 1},
        {GOLDEN("png-rgb8-160x120.png"), 4, 4},
        {GOLDEN("png-rgba8-81x64.png"), 0, 4},
        {GOLDEN("png-rgba8-81x64.png"), 3, 3},
        {GOLDEN("png-grey8-77x59.png"), 0, 1},
        {GOLDEN("png-grey16-63x48.png"), 1, 1},
        {GOLDEN("png-greyalpha8-53x71.png"), 0, 2},
        {GOLDEN("png-palette8-90x63.png"), 0, 3},
        {GOLDEN("png-palette8-trns-90x63.png"), 0, 4},
        {GOLDEN("png-palette8-trns-90x63.png"), 1, 1},
        {GOLDEN("png-grey8-trns-77x59.png"), 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char step[64];
        presto_tensor_spec spec = {0};
        uint8_t *pixels = NULL;
        presto_error err;
        snprintf(step, sizeof step, "{step: decode-image, channels: %d}", cases[i].channels);
        presto_status status = decode_file(step, cases[i].file, &spec, &pixels, &err);
        if (cases[i].want == 0) {
            ck_assert_status(status, PRESTO_ERR_TYPE, &err);
            continue;
        }
        ck_assert_status(status, PRESTO_OK, &err);
        ck_assert_msg(spec.dims[2] == cases[i].want, "%s", cases[i].file);
        free(pixels);
    }
}
END_TEST

START_TEST(grey_decoding_of_grey_images_is_their_first_channel) {
    const char *files[] = {GOLDEN("jpeg-grey-65x49.jpg"), GOLDEN("png-grey8-77x59.png"),
                           GOLDEN("png-grey16-63x48.png"), GOLDEN("png-grey2-35x31.png"),
                           GOLDEN("png-greyalpha8-53x71.png")};
    for (size_t i = 0; i < 5; i++) {
        presto_tensor_spec grey_spec = {0}, rgb_spec = {0};
        uint8_t *grey = NULL, *rgb = NULL;
        presto_error err;
        ck_assert_ok(
            decode_file("{step: decode-image, channels: 1}", files[i], &grey_spec, &grey, &err),
            &err);
        ck_assert_ok(decode_file("{step: decode-image}", files[i], &rgb_spec, &rgb, &err), &err);
        ck_assert(grey != NULL && rgb != NULL);
        uint64_t pixels = presto_spec_elements(&grey_spec);
        for (uint64_t k = 0; k < pixels; k++)
            ck_assert(rgb[3 * k] == grey[k] && rgb[3 * k + 1] == grey[k]);
        free(grey);
        free(rgb);
    }
}
END_TEST

START_TEST(every_cut_of_a_jpeg_is_an_error) {
    const char *files[] = {GOLDEN("jpeg-2x3.jpg"), GOLDEN("jpeg-1x1.jpg"),
                           GOLDEN("jpeg-grey-progressive-80x60.jpg"),
                           GOLDEN("jpeg-arithmetic-88x66.jpg")};
    for (size_t i = 0; i < 4; i++) {
        size_t bytes;
        uint8_t *whole = presto_check_read_file(files[i], &bytes);
        for (size_t cut = 0; cut < bytes; cut++) {
            presto_error err;
            presto_tensor_spec spec;
            uint8_t *pixels;
            uint8_t *part = presto_check_copy(presto_span_of(whole, cut));
            presto_status status =
                decode("{step: decode-image}", presto_span_of(part, cut), &spec, &pixels, &err);
            ck_assert_msg(status == PRESTO_ERR_TRUNCATED || status == PRESTO_ERR_CORRUPT,
                          "%s cut at %zu: %s", files[i], cut, presto_status_name(status));
            free(part);
        }
        free(whole);
    }
}
END_TEST

START_TEST(every_cut_of_a_png_is_an_error) {
    const char *files[] = {GOLDEN("png-1x1.png"), GOLDEN("png-grey2-35x31.png"),
                           GOLDEN("png-interlaced-rgb16-33x27.png")};
    for (size_t i = 0; i < 3; i++) {
        size_t bytes;
        uint8_t *whole = presto_check_read_file(files[i], &bytes);
        for (size_t cut = 0; cut < bytes; cut++) {
            presto_error err;
            presto_tensor_spec spec;
            uint8_t *pixels;
            uint8_t *part = presto_check_copy(presto_span_of(whole, cut));
            presto_status status =
                decode("{step: decode-image}", presto_span_of(part, cut), &spec, &pixels, &err);
            ck_assert_msg(status == PRESTO_ERR_TRUNCATED || status == PRESTO_ERR_CORRUPT,
                          "%s cut at %zu: %s", files[i], cut, presto_status_name(status));
            free(part);
        }
        free(whole);
    }
}
END_TEST

START_TEST(flipped_bits_never_do_harm) {
    const char *files[] = {GOLDEN("jpeg-2x3.jpg"), GOLDEN("jpeg-grey-progressive-80x60.jpg"),
                           GOLDEN("png-palette2-67x45.png"), GOLDEN("png-rgba16-37x41.png"),
                           GOLDEN("jpeg-restart-176x144.jpg")};
    presto_rng rng = test_rng(1);
    rig r;
    presto_error err;
    ck_assert_ok(rig_open(&r, "{step: decode-image, max-bytes: 64MiB}", &string_spec, false, &err),
                 &err);
    for (size_t i = 0; i < 5; i++) {
        size_t bytes;
        uint8_t *content = presto_check_read_file(files[i], &bytes);
        for (size_t flip = 0; flip < 600; flip++) {
            size_t at = flip < 300 && flip < bytes ? flip : presto_rng_below(&rng, bytes);
            uint8_t bit = (uint8_t)(1u << presto_rng_below(&rng, 8));
            content[at] ^= bit;
            rig_options options = {0};
            presto_tensor tensor;
            (void)rig_run_bytes(&r, &options, presto_span_of(content, bytes), &tensor, &err);
            content[at] ^= bit;
        }
        free(content);
    }
    rig_close(&r);
}
END_TEST

START_TEST(a_broken_image_leaves_no_trace_in_the_next_one) {
    size_t good_bytes, bad_bytes;
    uint8_t *good = presto_check_read_file(GOLDEN("jpeg-420-256x256.jpg"), &good_bytes);
    uint8_t *bad = presto_check_read_file(GOLDEN("jpeg-truncated-140x105.jpg"), &bad_bytes);
    presto_span inputs[] = {presto_span_of(good, good_bytes), presto_span_of(bad, bad_bytes),
                            presto_span_of(good, good_bytes), presto_span_of(good, 0),
                            presto_span_of(good, good_bytes)};
    rig r;
    presto_error err;
    uint8_t *first = NULL;
    ck_assert_ok(rig_open(&r, "{step: decode-image}", &string_spec, false, &err), &err);
    for (size_t i = 0; i < 5; i++) {
        presto_tensor tensor;
        rig_options options = {0};
        presto_status status = rig_run_bytes(&r, &options, inputs[i], &tensor, &err);
        ck_assert(status == (i % 2 == 0 ? PRESTO_OK : PRESTO_ERR_TRUNCATED));
        if (i == 0)
            first = rig_copy(&tensor);
        else if (i % 2 == 0)
            ck_assert_int_eq(memcmp(first, tensor.data, presto_tensor_bytes(&tensor)), 0);
    }
    free(first);
    free(good);
    free(bad);
    rig_close(&r);
}
END_TEST

START_TEST(a_jpeg_without_tables_does_not_use_those_of_the_one_before) {
    size_t bytes;
    uint8_t *whole = presto_check_read_file(GOLDEN("jpeg-444-200x150.jpg"), &bytes);
    /* The same file without its quantization tables. */
    uint8_t *bare = presto_check_copy(presto_span_of(whole, bytes));
    size_t kept = 2;
    for (size_t at = 2; at < bytes;) {
        bool is_scan = whole[at + 1] == 0xda;
        size_t length = is_scan ? bytes - at : 2 + ((size_t)whole[at + 2] << 8) + whole[at + 3];
        if (whole[at + 1] != 0xdb) {
            memcpy(bare + kept, whole + at, length);
            kept += length;
        }
        at += length;
    }
    ck_assert_uint_lt(kept, bytes);
    rig r;
    presto_error err;
    presto_tensor tensor;
    rig_options options = {0};
    ck_assert_ok(rig_open(&r, "{step: decode-image}", &string_spec, false, &err), &err);
    ck_assert_ok(rig_run_bytes(&r, &options, presto_span_of(whole, bytes), &tensor, &err), &err);
    ck_assert_status(rig_run_bytes(&r, &options, presto_span_of(bare, kept), &tensor, &err),
                     PRESTO_ERR_CORRUPT, &err);
    ck_assert_ok(rig_run_bytes(&r, &options, presto_span_of(whole, bytes), &tensor, &err), &err);
    rig_close(&r);
    free(bare);
    free(whole);
}
END_TEST

START_TEST(other_formats_are_named) {
    static const struct {
        const char *bytes;
        size_t count;
        const char *want;
    } cases[] = {
        {"GIF89a..", 8, "a GIF"},     {"RIFF....WEBPVP8 ", 16, "a WebP"},
        {"BM......", 8, "a BMP"},     {"hello world", 11, "neither a JPEG nor a PNG"},
        {"\xff\xd8", 2, "neither"},   {"\x89PNG\r\n\x1a", 7, "neither"},
        {"", 0, "the file is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_error err;
        presto_tensor_spec spec;
        uint8_t *pixels;
        uint8_t *copy = presto_check_copy(presto_span_of(cases[i].bytes, cases[i].count));
        presto_status status = decode("{step: decode-image}", presto_span_of(copy, cases[i].count),
                                      &spec, &pixels, &err);
        ck_assert(status == PRESTO_ERR_CORRUPT || status == PRESTO_ERR_TRUNCATED);
        ck_assert_msg(strstr(err.message, cases[i].want) != NULL, "%s", err.message);
        free(copy);
    }
}
END_TEST

START_TEST(large_images_are_refused_before_memory_is_asked_for) {
    const char *step = "{step: decode-image, max-bytes: %zu}";
    const char *files[] = {GOLDEN("jpeg-444-200x150.jpg"), GOLDEN("png-rgb8-160x120.png")};
    size_t sizes[] = {(size_t)200 * 150 * 3, (size_t)160 * 120 * 3};
    for (size_t i = 0; i < 2; i++) {
        for (int less = 0; less < 2; less++) {
            char text[64];
            presto_error err;
            presto_tensor_spec spec;
            uint8_t *pixels;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(text, sizeof text, step, sizes[i] - (size_t)less);
#pragma GCC diagnostic pop
            presto_status status = decode_file(text, files[i], &spec, &pixels, &err);
            ck_assert_status(status, less ? PRESTO_ERR_LIMIT : PRESTO_OK, &err);
            if (status == PRESTO_OK)
                free(pixels);
        }
    }
    /* A header that announces 65500 x 65500 pixels. */
    size_t bytes;
    uint8_t *jpeg = presto_check_read_file(GOLDEN("jpeg-1x1.jpg"), &bytes);
    for (size_t at = 2; at + 9 < bytes; at++) {
        if (jpeg[at] == 0xff && jpeg[at + 1] == 0xc0) {
            jpeg[at + 5] = jpeg[at + 7] = 0xff;
            jpeg[at + 6] = jpeg[at + 8] = 0xdc;
            break;
        }
    }
    presto_error err;
    presto_tensor_spec spec;
    uint8_t *pixels;
    ck_assert_status(
        decode("{step: decode-image}", presto_span_of(jpeg, bytes), &spec, &pixels, &err),
        PRESTO_ERR_LIMIT, &err);
    free(jpeg);
}
END_TEST

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
        const presto_tensor_spec *out = presto_plan_output(r.plan);
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
        channels_decide_the_last_dim,
        grey_decoding_of_grey_images_is_their_first_channel,
        every_cut_of_a_jpeg_is_an_error,
        every_cut_of_a_png_is_an_error,
        flipped_bits_never_do_harm,
        a_broken_image_leaves_no_trace_in_the_next_one,
        a_jpeg_without_tables_does_not_use_those_of_the_one_before,
        other_formats_are_named,
        large_images_are_refused_before_memory_is_asked_for,
        resizing_equals_the_formula_to_the_bit,
        the_portable_kernels_equal_the_formula_too,
        portable_and_vector_kernels_give_the_same,
        the_shorter_side_is_rounded_like_python,
        images_of_many_sizes_share_one_worker,
        centering_rounds_the_quotient_first,
        inputs_need_no_alignment,
        greyscale_stays_in_range_and_follows_the_weights,
    };
    return presto_check_main("images", tests, sizeof tests / sizeof tests[0], 240);
}
