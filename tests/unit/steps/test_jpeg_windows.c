/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fused plans compared with plain ones on JPEGs that libjpeg-turbo writes here: all subsamplings,
 * restart markers, progressive scans, CMYK, grey; cropped, resized, turned and reduced. A decoder
 * that decodes a window must give the bytes of the whole image, cropped.
 */
#include <presto/rng.h>

#include "../../../base/rng_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

#if PRESTO_HAVE_JPEG
#include "jpeg_made.h"

/* An image to write. */
typedef struct design {
    int components; /* 1, 3 or 4 */
    int h[4], v[4]; /* sampling factors */
    unsigned height, width;
    unsigned restart; /* MCUs between markers; 0: none */
    bool is_progressive;
    int quality;
    int orientation; /* 0: no EXIF */
} design;

static design draw_design(presto_rng *rng) {
    static const int components[] = {3, 3, 3, 3, 1, 4};
    static const int factors[] = {1, 2, 1, 2, 4, 1};
    design d = {.components = components[jpeg_below(rng, 6)],
                .height = 1 + jpeg_below(rng, 150),
                .width = 1 + jpeg_below(rng, 190),
                .restart = jpeg_below(rng, 3) == 0 ? 1 + jpeg_below(rng, 9) : 0,
                .is_progressive = jpeg_below(rng, 4) == 0,
                .quality = 20 + (int)jpeg_below(rng, 80),
                .orientation = (int)jpeg_below(rng, 9)};
    int blocks = 0;
    bool is_usual = jpeg_below(rng, 3) != 0;
    for (int i = 0; i < d.components; i++) {
        /* Usually the first one, luminance, has the most, and others one or, as the black of YCCK,
         * as many. */
        bool is_drawn = i == 0 || (!is_usual && jpeg_below(rng, 3) == 0);
        d.h[i] = is_drawn ? factors[jpeg_below(rng, 6)] : i == 3 ? d.h[0] : 1;
        d.v[i] = is_drawn ? factors[jpeg_below(rng, 6)] : i == 3 ? d.v[0] : 1;
        blocks += d.h[i] * d.v[i];
    }
    for (int i = 0; blocks > C_MAX_BLOCKS_IN_MCU && i < d.components; i++)
        d.h[i] = d.v[i] = 1;
    return d;
}

static void write_exif(struct jpeg_compress_struct *cinfo, int orientation) {
    uint8_t exif[] = {'E', 'x', 'i', 'f', 0,    0, 'M', 'M', 0, 42, 0, 0, 0,
                      8,   0,   1,   1,   0x12, 0, 3,   0,   0, 0,  1, 0, (uint8_t)orientation,
                      0,   0,   0,   0,   0,    0};
    jpeg_write_marker(cinfo, JPEG_APP0 + 1, exif, sizeof exif);
}

/* Blobs of color and some noise; malloc'ed by libjpeg. */
static presto_span encode(const design *d, presto_rng *rng) {
    jpeg_made made;
    struct jpeg_compress_struct *cinfo = &made.cinfo;
    jpeg_made_begin(&made, d->width, d->height, d->components);
    jpeg_set_quality(cinfo, d->quality, TRUE);
    for (int i = 0; i < d->components; i++) {
        cinfo->comp_info[i].h_samp_factor = d->h[i];
        cinfo->comp_info[i].v_samp_factor = d->v[i];
    }
    cinfo->restart_interval = d->restart;
    if (d->is_progressive)
        jpeg_simple_progression(cinfo);
    jpeg_start_compress(cinfo, TRUE);
    if (d->orientation > 0)
        write_exif(cinfo, d->orientation);
    uint8_t row[190 * 4];
    JSAMPROW rows[] = {row};
    for (unsigned y = 0; y < d->height; y++) {
        for (unsigned i = 0; i < d->width * (unsigned)d->components; i++)
            row[i] = (uint8_t)((i / 23 * 77 + y / 9 * 53) % 200 + jpeg_below(rng, 40));
        jpeg_write_scanlines(cinfo, rows, 1);
    }
    return jpeg_made_end(&made);
}

static void describe(const design *d, char *text, size_t bytes) {
    size_t used = (size_t)snprintf(
        text, bytes, "%u x %u, restart %u, %s, orientation %d:", d->height, d->width, d->restart,
        d->is_progressive ? "progressive" : "baseline", d->orientation);
    for (int i = 0; i < d->components && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, " %dx%d", d->h[i], d->v[i]);
}

/* Whether both succeeded. */
static bool compare(rig *fused, rig *plain, const rig_options *options, presto_span bytes,
                    const char *name) {
    presto_tensor a, b;
    presto_error a_err, b_err;
    presto_status a_status = rig_run_bytes(fused, options, bytes, &a, &a_err);
    presto_status b_status = rig_run_bytes(plain, options, bytes, &b, &b_err);
    ck_assert_msg(a_status == b_status, "%s: fused %s, plain %s", name,
                  presto_status_name(a_status), presto_status_name(b_status));
    if (a_status < 0) {
        ck_assert_str_eq(a_err.message, b_err.message);
        return false;
    }
    ck_assert_msg(presto_spec_equal(&a.spec, &b.spec), "%s", name);
    ck_assert_msg(memcmp(a.data, b.data, presto_tensor_bytes(&a)) == 0, "%s", name);
    return true;
}

/* `steps` end in a random crop; many images, and some windows of each. */
static void check(const char *steps, uint64_t stream, unsigned most_images) {
    unsigned images = (unsigned)presto_check_rounds(most_images);
    presto_rng rng;
    presto__rng_key key = {presto_check_seed(), 0, 0, stream};
    presto__rng_init(&rng, &key);
    rig fused, plain;
    presto_error err;
    ck_assert_ok(rig_open(&fused, steps, &string_spec, false, &err), &err);
    ck_assert_ok(rig_open(&plain, steps, &string_spec, true, &err), &err);
    ck_assert_ptr_nonnull(strstr(presto_plan_explain(fused.plan), "fused"));
    unsigned equal = 0;
    for (unsigned i = 0; i < images; i++) {
        char name[200];
        const design d = draw_design(&rng);
        presto_span bytes = encode(&d, &rng);
        describe(&d, name, sizeof name);
        for (uint64_t k = 0; k < 6; k++) {
            rig_options options = {.seed = i, .sample = k};
            equal += compare(&fused, &plain, &options, bytes, name);
        }
        free((void *)(uintptr_t)bytes.data);
    }
    ck_assert_uint_gt(equal / 2, images);
    /* Windows are decoded, not whole images. */
    presto_step_stats window = presto__plan_worker_stats(fused.worker, 0);
    presto_step_stats whole = presto__plan_worker_stats(plain.worker, 0);
    ck_assert_uint_lt(window.out_bytes, whole.out_bytes * 9 / 10);
    rig_close(&fused);
    rig_close(&plain);
}

START_TEST(small_crops) {
    check("{step: decode-image}, {step: random-crop, height: 5, width: 7}", 1, 300);
}
END_TEST

START_TEST(resized_crops) {
    check("{step: decode-image}, {step: random-resized-crop, size: 24}", 2, 300);
}
END_TEST

START_TEST(resized_crops_behind_a_resize) {
    check("{step: decode-image, channels: 1}, {step: resize-image, min-side: 60}, "
          "{step: normalize, mean: [0.5], std: [0.2]}, "
          "{step: random-resized-crop, height: 20, width: 31}",
          3, 150);
}
END_TEST

START_TEST(turned_crops) {
    check("{step: decode-image, orient: exif}, {step: random-crop, height: 9, width: 4}", 4, 300);
    check("{step: decode-image, orient: exif}, {step: random-resized-crop, size: 13}", 5, 100);
}
END_TEST

START_TEST(reduced_crops) {
    check("{step: decode-image, scale: auto, least-side: 9}, "
          "{step: random-crop, height: 5, width: 7}",
          6, 300);
    check("{step: decode-image, scale: auto, orient: exif}, "
          "{step: random-resized-crop, size: 5, scale: [0.2, 1]}",
          7, 300);
    check("{step: decode-image, scale: auto}, {step: resize-image, min-side: 14}, "
          "{step: random-crop, height: 5, width: 9}",
          8, 100);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        small_crops, resized_crops, resized_crops_behind_a_resize, turned_crops, reduced_crops,
    };
    return presto_check_main("jpeg_windows", tests, sizeof tests / sizeof tests[0], 240);
}
#else
START_TEST(there_is_no_jpeg_in_this_build) {
    ck_assert_ptr_nonnull(presto__step_find("decode-image"));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {there_is_no_jpeg_in_this_build};
    return presto_check_main("jpeg_windows", tests, 1, 60);
}
#endif
