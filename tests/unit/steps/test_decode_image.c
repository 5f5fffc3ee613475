/* SPDX-License-Identifier: Apache-2.0 */
/* decode-image: channels, images that are damaged in every way, limits. */
#include <presto/rng.h>

#include "steps_check.h"

#define GOLDEN(name) PRESTO_GOLDEN_DIR "/images/" name

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

static void refuse_every_cut(const char *const *files, size_t count) {
    for (size_t i = 0; i < count; i++) {
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

START_TEST(every_cut_of_a_jpeg_is_an_error) {
    const char *files[] = {GOLDEN("jpeg-2x3.jpg"), GOLDEN("jpeg-1x1.jpg"),
                           GOLDEN("jpeg-grey-progressive-80x60.jpg"),
                           GOLDEN("jpeg-arithmetic-88x66.jpg")};
    refuse_every_cut(files, 4);
}
END_TEST

START_TEST(every_cut_of_a_png_is_an_error) {
    const char *files[] = {GOLDEN("png-1x1.png"), GOLDEN("png-grey2-35x31.png"),
                           GOLDEN("png-interlaced-rgb16-33x27.png")};
    refuse_every_cut(files, 3);
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
        {"GIF89a\1\0", 8, "a GIF"},
        {"RIFF....WEBPVP8 ", 16, "a WebP"},
        {"BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", 18, "a BMP"},
        {"hello world", 11, "a text file, but a JPEG or PNG"},
        {"\1\2\3\4", 4, "neither a JPEG nor a PNG"},
        {"\xff\xd8", 2, "neither"},
        {"\x89PNG\r\n\x1a", 7, "neither"},
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
    };
    return presto_check_main("decode-image", tests, sizeof tests / sizeof tests[0], 240);
}
