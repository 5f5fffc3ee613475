/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder of jpeg_fast_internal.h beside libjpeg-turbo: what it accepts has the same pixels, for
 * each kind of instructions that this processor has, both transforms, all reductions, and windows.
 * The files are made here by libjpeg-turbo, at random. PRESTO_TEST_JPEGS sets how many:
 *
 *     PRESTO_TEST_JPEGS=100000 build/release/tests/steps_test_jpeg_fast
 */
#include <presto/rng.h>

#include "../../../base/rng_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

#if PRESTO_HAVE_JPEG
#include "image/jpeg_internal.h"
#include "jpeg_check.h"
#include "jpeg_design.h"

enum { LEVELS = PRESTO__JPEG_LEVELS };

static presto__jpeg_fast *decoders[LEVELS]; /* NULL: not of this processor */

static void open_decoders(void) {
    for (int i = 0; i < LEVELS; i++) {
        if (!presto__jpeg_level_is_there((presto__jpeg_level)i))
            continue;
        decoders[i] = presto__jpeg_fast_new((presto__jpeg_level)i);
        ck_assert_ptr_nonnull(decoders[i]);
    }
}

static void close_decoders(void) {
    for (int i = 0; i < LEVELS; i++)
        presto__jpeg_fast_free(decoders[i]);
}

static size_t rounds_of(size_t usual) {
    const char *text = getenv("PRESTO_TEST_JPEGS");
    return text != NULL ? (size_t)strtoul(text, NULL, 10) : presto_check_rounds(usual);
}

static presto_rng start_rng(uint64_t stream) {
    presto_rng rng;
    presto__rng_key key = {presto_check_seed(), 0, 0, stream};
    presto__rng_init(&rng, &key);
    return rng;
}

/* ---- tests ---- */

/* How many decoders accepted it. */
static unsigned compare(presto_span in, const jpeg_request *request, presto_rng *rng,
                        const char *name) {
    unsigned accepted = 0;
    jpeg_result want = jpeg_by_libjpeg(in, request, UINT64_MAX);
    ck_assert_msg(want.is_decoded, "%s", name);
    const presto_window all = {0, 0, (int64_t)want.height, (int64_t)want.width};
    const presto_window window = jpeg_draw_window(rng, &want);
    for (int i = 0; i < LEVELS; i++) {
        presto_tensor_spec spec = {0};
        if (decoders[i] == NULL)
            continue;
        uint8_t *whole = jpeg_by_fast(decoders[i], in, request, NULL, &spec);
        uint8_t *part = jpeg_by_fast(decoders[i], in, request, &window, &spec);
        ck_assert_msg((whole == NULL) == (accepted == 0) || i == 0, "%s, level %d", name, i);
        accepted += whole != NULL;
        if (whole != NULL)
            ck_assert_msg(want.warnings == 0 && spec.dims[0] == (int64_t)want.height &&
                              spec.dims[1] == (int64_t)want.width &&
                              jpeg_window_is_equal(&want, &all, whole),
                          "%s, level %d", name, i);
        if (part != NULL)
            ck_assert_msg(jpeg_window_is_equal(&want, &window, part),
                          "%s, level %d, window %d, %d, %d x %d", name, i, (int)window.y,
                          (int)window.x, (int)window.height, (int)window.width);
        free(whole);
        free(part);
    }
    free(want.pixels);
    return accepted;
}

START_TEST(small_images_have_the_pixels_of_libjpeg) {
    presto_rng rng = start_rng(1);
    size_t rounds = rounds_of(3000), accepted = 0;
    open_decoders();
    for (size_t i = 0; i < rounds; i++) {
        char name[300];
        jpeg_design d = jpeg_draw_design(&rng, 64);
        presto_span in = jpeg_encode(&d, &rng);
        jpeg_request request = jpeg_draw_request(&rng, &d);
        jpeg_describe(&d, &request, name, sizeof name);
        accepted += compare(in, &request, &rng, name) > 0;
        free((void *)(uintptr_t)in.data);
    }
    ck_assert_uint_gt(accepted, rounds * 3 / 4);
    close_decoders();
}
END_TEST

START_TEST(larger_images_have_the_pixels_of_libjpeg) {
    presto_rng rng = start_rng(2);
    open_decoders();
    for (size_t i = 0; i < presto_check_rounds(200); i++) {
        char name[300];
        jpeg_design d = jpeg_draw_design(&rng, JPEG_MAX_SIDE);
        presto_span in = jpeg_encode(&d, &rng);
        jpeg_request request = jpeg_draw_request(&rng, &d);
        jpeg_describe(&d, &request, name, sizeof name);
        compare(in, &request, &rng, name);
        free((void *)(uintptr_t)in.data);
    }
    close_decoders();
}
END_TEST

START_TEST(usual_photos_are_accepted) {
    presto_rng rng = start_rng(3);
    open_decoders();
    for (int sampling = 0; sampling < 4; sampling++)
        for (unsigned by = 1; by <= 8; by *= 2) {
            jpeg_design d = {.width = 150,
                             .height = 99,
                             .h = 1 + sampling % 2,
                             .v = 1 + sampling / 2,
                             .quality = 90,
                             .is_baseline = true,
                             .has_jfif = true,
                             .restart = by == 1 ? 7 : 0,
                             .content = by == 2 ? JPEG_NOISE : JPEG_SMOOTH};
            presto_span in = jpeg_encode(&d, &rng);
            jpeg_request request = {.channels = 3, .by = by, .is_accurate = by < 4};
            unsigned there = 0;
            for (int i = 0; i < LEVELS; i++)
                there += decoders[i] != NULL;
            /* Colour that is as coarse at an eighth of the size is spread in another way. */
            bool is_left = by == 8 && d.h != d.v;
            ck_assert_uint_eq(compare(in, &request, &rng, "usual"), is_left ? 0 : there);
            free((void *)(uintptr_t)in.data);
        }
    close_decoders();
}
END_TEST

/* Damaged files are left to libjpeg, or libjpeg reads them without a warning, to the same pixels. */
START_TEST(damaged_files_are_refused_or_have_the_pixels_of_libjpeg) {
    presto_rng rng = start_rng(4);
    size_t rounds = rounds_of(4000), refused = 0;
    open_decoders();
    for (size_t i = 0; i < rounds; i++) {
        jpeg_design d = jpeg_draw_design(&rng, 64);
        presto_span made = jpeg_encode(&d, &rng);
        size_t bytes =
            jpeg_below(&rng, 5) == 0 ? 1 + jpeg_below(&rng, (unsigned)made.bytes) : made.bytes;
        uint8_t *copy = malloc(bytes);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, made.data, bytes);
        for (unsigned k = 0; k < 1 + jpeg_below(&rng, 3); k++) {
            size_t at = jpeg_below(&rng, (unsigned)bytes);
            unsigned flipped = copy[at] ^ 1U << jpeg_below(&rng, 8);
            copy[at] = (uint8_t)(jpeg_below(&rng, 2) == 0 ? jpeg_below(&rng, 256) : flipped);
        }
        presto_span in = presto_span_of(copy, bytes);
        jpeg_request request = jpeg_draw_request(&rng, &d);
        jpeg_result want = jpeg_by_libjpeg(in, &request, 1 << 20);
        presto_window all = {0, 0, (int64_t)want.height, (int64_t)want.width};
        for (int level = 0; level < LEVELS; level++) {
            presto_tensor_spec spec = {0};
            uint8_t *got = decoders[level] == NULL
                               ? NULL
                               : jpeg_by_fast(decoders[level], in, &request, NULL, &spec);
            /* Damage may have made it that large, or another reduction does as well. */
            bool is_comparable =
                want.width > 0 && spec.dims[0] == all.height && spec.dims[1] == all.width;
            if (got != NULL && is_comparable)
                ck_assert_msg(
                    want.is_decoded && want.warnings == 0 && jpeg_window_is_equal(&want, &all, got),
                    "round %zu, level %d: decoded %d, %ld warnings, %d x %d, sampling "
                    "%d x %d, %d channels, by %u, accurate %d",
                    i, level, want.is_decoded, want.warnings, (int)want.width, (int)want.height,
                    d.h, d.v, request.channels, request.by, request.is_accurate);
            refused += got == NULL;
            free(got);
        }
        free(want.pixels);
        free(copy);
        free((void *)(uintptr_t)made.data);
    }
    ck_assert_uint_gt(refused, rounds / 4);
    close_decoders();
}
END_TEST

/* Bytes between the scan and the end of the image: libjpeg passes over them, the decoder here gives
 * the file up once its pixels are read. */
START_TEST(libjpeg_takes_over_with_the_same_window) {
    presto_rng rng = start_rng(5);
    for (int i = 0; i < 50; i++) {
        jpeg_design d = jpeg_draw_design(&rng, JPEG_MAX_SIDE);
        d.is_grey = false;
        presto_span made = jpeg_encode(&d, &rng);
        uint8_t *copy = malloc(made.bytes + 3);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, made.data, made.bytes - 2);
        memcpy(copy + made.bytes - 2, (const uint8_t[]){0, 1, 2, 0xff, 0xd9}, 5);
        presto_span in = presto_span_of(copy, made.bytes + 3);
        jpeg_request request = {.channels = 3, .by = 1};
        jpeg_result want = jpeg_by_libjpeg(in, &request, UINT64_MAX);
        ck_assert(want.is_decoded);
        presto_window wanted = jpeg_draw_window(&rng, &want), window;
        presto__encoded_image image = {.bytes = in, .channels = 3, .max_bytes = 1 << 20};
        presto_tensor_spec spec = {0};
        presto_error err;
        presto__jpeg *jpeg = presto__jpeg_new();
        ck_assert_ok(presto__jpeg_open(jpeg, &image, &spec, &err), &err);
        ck_assert_ok(presto__jpeg_aim(jpeg, &wanted, &window, &err), &err);
        size_t scratch_bytes = (presto__jpeg_scratch_bytes(jpeg) + 63) / 64 * 64;
        uint8_t *scratch = aligned_alloc(64, scratch_bytes);
        uint8_t *out = malloc((size_t)(window.height * window.width * 3));
        ck_assert_ok(presto__jpeg_read(jpeg, out, scratch, &err), &err);
        /* Without AVX2 libjpeg delivers a larger window, whose margins it cannot know. */
        const uint8_t *from =
            out + ((wanted.y - window.y) * window.width + wanted.x - window.x) * 3;
        for (int64_t y = 0; y < wanted.height; y++)
            memmove(out + y * wanted.width * 3, from + y * window.width * 3,
                    (size_t)wanted.width * 3);
        ck_assert(jpeg_window_is_equal(&want, &wanted, out));
        presto__jpeg_free(jpeg);
        free(out);
        free(scratch);
        free(want.pixels);
        free(copy);
        free((void *)(uintptr_t)made.data);
    }
}
END_TEST

/* The step's option, also where libjpeg decodes: color that is finer than luminance. */
START_TEST(the_option_dct_chooses_the_transform) {
    presto_rng rng = start_rng(6);
    unsigned differences = 0;
    for (unsigned i = 0; i < 20; i++) {
        presto_tensor out[2];
        jpeg_result want[2];
        jpeg_design d = {.width = 90, .height = 70, .h = 1, .v = 1 + (int)i % 2 * 3, .quality = 90};
        presto_span in = jpeg_encode(&d, &rng);
        for (int accurate = 0; accurate < 2; accurate++) {
            rig r;
            presto_error err;
            rig_options rig_request = {.seed = i};
            const jpeg_request request = {3, 1, accurate != 0};
            const char *step = accurate ? "{step: decode-image, dct: accurate}"
                                        : "{step: decode-image, dct: fast}";
            ck_assert_ok(rig_open(&r, step, &string_spec, false, &err), &err);
            ck_assert_ok(rig_run_bytes(&r, &rig_request, in, &out[accurate], &err), &err);
            want[accurate] = jpeg_by_libjpeg(in, &request, UINT64_MAX);
            const presto_window all = {0, 0, 70, 90};
            ck_assert(jpeg_window_is_equal(&want[accurate], &all, out[accurate].data));
            rig_close(&r);
        }
        differences += memcmp(want[0].pixels, want[1].pixels, (size_t)90 * 70 * 3) != 0;
        free(want[0].pixels);
        free(want[1].pixels);
        free((void *)(uintptr_t)in.data);
    }
    ck_assert_uint_gt(differences, 0);
}
END_TEST

/* ---- index-jpeg ---- */

/* Are the coefficients of both files the same? */
static bool coefficients_are_equal(presto_span a, presto_span b) {
    struct jpeg_decompress_struct cinfo[2];
    struct jpeg_error_mgr errors;
    const presto_span files[2] = {a, b};
    jvirt_barray_ptr *arrays[2];
    bool is_equal = true;
    for (int i = 0; i < 2; i++) {
        cinfo[i].err = jpeg_std_error(&errors);
        jpeg_create_decompress(&cinfo[i]);
        jpeg_mem_src(&cinfo[i], files[i].data, files[i].bytes);
        jpeg_read_header(&cinfo[i], TRUE);
        arrays[i] = jpeg_read_coefficients(&cinfo[i]);
    }
    for (int c = 0; c < cinfo[0].num_components; c++) {
        const jpeg_component_info *part = &cinfo[0].comp_info[c];
        for (JDIMENSION y = 0; y < part->height_in_blocks; y++) {
            JBLOCKARRAY rows[2];
            for (int i = 0; i < 2; i++)
                rows[i] = cinfo[i].mem->access_virt_barray((j_common_ptr)&cinfo[i], arrays[i][c], y,
                                                           1, FALSE);
            is_equal &= memcmp(rows[0][0], rows[1][0], part->width_in_blocks * sizeof(JBLOCK)) == 0;
        }
    }
    for (int i = 0; i < 2; i++)
        jpeg_destroy_decompress(&cinfo[i]);
    return is_equal;
}

static bool has_index(presto_span in) {
    for (size_t i = 0; i + 8 <= in.bytes; i++)
        if (memcmp(in.data + i, "PRESTO\0\1", 8) == 0)
            return true;
    return false;
}

/* The same coefficients and pixels, whole and in windows; also where bytes of the index, or of
 * anything else, are wrong. */
START_TEST(indexed_files_are_the_same_image) {
    presto_rng rng = start_rng(7);
    rig r;
    presto_error err;
    ck_assert_ok(rig_open(&r, "{step: index-jpeg, every: 3}", &string_spec, false, &err), &err);
    open_decoders();
    unsigned indexed = 0, rounds = (unsigned)presto_check_rounds(300);
    for (unsigned i = 0; i < rounds; i++) {
        char name[300];
        rig_options run = {.seed = i};
        presto_tensor out;
        jpeg_design d = jpeg_draw_design(&rng, JPEG_MAX_SIDE);
        d.coarse = 1;
        presto_span made = jpeg_encode(&d, &rng);
        jpeg_request request = jpeg_draw_request(&rng, &d);
        jpeg_describe(&d, &request, name, sizeof name);
        ck_assert_ok(rig_run_bytes(&r, &run, made, &out, &err), &err);
        presto_span in = out.strings[0];
        indexed += has_index(in);
        ck_assert_msg(coefficients_are_equal(made, in), "%s", name);
        jpeg_result before = jpeg_by_libjpeg(made, &request, UINT64_MAX);
        jpeg_result after = jpeg_by_libjpeg(in, &request, UINT64_MAX);
        const presto_window all = {0, 0, (int64_t)before.height, (int64_t)before.width};
        ck_assert_msg(jpeg_window_is_equal(&before, &all, after.pixels), "%s", name);
        free(before.pixels);
        free(after.pixels);
        for (int k = 0; k < 4; k++)
            compare(in, &request, &rng, name);
        uint8_t *copy = malloc(in.bytes);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, in.data, in.bytes);
        copy[20 + jpeg_below(&rng, 40)] ^= (uint8_t)(1U << jpeg_below(&rng, 8));
        presto_span damaged = presto_span_of(copy, in.bytes);
        jpeg_result want = jpeg_by_libjpeg(damaged, &request, 1 << 20);
        for (int k = 0; want.is_decoded && want.warnings == 0 && k < 4; k++)
            compare(damaged, &request, &rng, name);
        free(want.pixels);
        free(copy);
        free((void *)(uintptr_t)made.data);
    }
    ck_assert_uint_gt(indexed, rounds / 2);
    close_decoders();
    rig_close(&r);
}
END_TEST

/* The index has room for 32,762 pieces. */
START_TEST(many_pieces_are_joined) {
    presto_rng rng = start_rng(8);
    rig r;
    presto_error err;
    presto_tensor out;
    ck_assert_ok(rig_open(&r, "{step: index-jpeg, every: 1}", &string_spec, false, &err), &err);
    for (int i = 0; i < 2; i++) {
        rig_options run = {.seed = 1};
        jpeg_design d = {
            .width = 200, .height = 12000, .h = 1, .v = 1, .quality = 50, .is_grey = i == 0};
        presto_span made = jpeg_encode(&d, &rng);
        ck_assert_ok(rig_run_bytes(&r, &run, made, &out, &err), &err);
        ck_assert(has_index(out.strings[0]));
        ck_assert(coefficients_are_equal(made, out.strings[0]));
        free((void *)(uintptr_t)made.data);
    }
    rig_close(&r);
}
END_TEST

START_TEST(what_cannot_be_indexed_passes_as_it_is) {
    static const char *const texts[] = {"", "not an image", "\xff\xd8\xff\xe0", "\x89PNG\r\n"};
    rig r;
    presto_error err;
    ck_assert_ok(rig_open(&r, "{step: index-jpeg}", &string_spec, false, &err), &err);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        rig_options run = {.seed = i};
        presto_tensor out;
        presto_span in = presto_span_of(texts[i], strlen(texts[i]));
        ck_assert_ok(rig_run_bytes(&r, &run, in, &out, &err), &err);
        ck_assert_uint_eq(out.strings[0].bytes, in.bytes);
        ck_assert(in.bytes == 0 || memcmp(out.strings[0].data, in.data, in.bytes) == 0);
    }
    rig_close(&r);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        indexed_files_are_the_same_image,
        many_pieces_are_joined,
        what_cannot_be_indexed_passes_as_it_is,
        the_option_dct_chooses_the_transform,
        small_images_have_the_pixels_of_libjpeg,
        larger_images_have_the_pixels_of_libjpeg,
        usual_photos_are_accepted,
        damaged_files_are_refused_or_have_the_pixels_of_libjpeg,
        libjpeg_takes_over_with_the_same_window,
    };
    return presto_check_main("jpeg_fast", tests, sizeof tests / sizeof tests[0], 3600);
}
#else
START_TEST(there_is_no_jpeg_in_this_build) {
    ck_assert_ptr_nonnull(presto__step_find("decode-image"));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {there_is_no_jpeg_in_this_build};
    return presto_check_main("jpeg_fast", tests, 1, 60);
}
#endif
