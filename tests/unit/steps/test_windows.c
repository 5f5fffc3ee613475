/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fused plans compared with plain ones, over all golden images, many crops and several orders of
 * steps: each byte and each failure must be the same.
 */
#include <dirent.h>
#include <presto/rng.h>

#include "../../../base/rng_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

#define IMAGE_DIR PRESTO_GOLDEN_DIR "/images"

typedef struct image {
    char name[128];
    uint8_t *data;
    size_t bytes;
} image;

static image images[128]; /* plenty */
static size_t image_count;

/* A progressive image that ends after its k-th scan: libjpeg smooths such ones across blocks. */
static void add_early_ends(const image *whole) {
    size_t scans = 0;
    for (size_t i = 2; i + 1 < whole->bytes && image_count < 128; i++) {
        if (whole->data[i] != 0xff || whole->data[i + 1] != 0xda || ++scans == 1)
            continue;
        image *cut = &images[image_count++];
        snprintf(cut->name, sizeof cut->name, "%.90s after %zu scans", whole->name, scans - 1);
        cut->bytes = i + 2;
        cut->data = presto_check_copy(presto_span_of(whole->data, i + 2));
        cut->data[i + 1] = 0xd9;
    }
}

static void load_images(void) {
    DIR *dir = opendir(IMAGE_DIR);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        ck_assert_uint_lt(image_count, 128);
        image *next = &images[image_count++];
        char path[600];
        snprintf(next->name, sizeof next->name, "%.100s", entry->d_name);
        snprintf(path, sizeof path, IMAGE_DIR "/%.100s", entry->d_name);
        next->data = presto_check_read_file(path, &next->bytes);
    }
    closedir(dir);
    size_t loaded = image_count;
    for (size_t i = 0; i < loaded; i++)
        if (strstr(images[i].name, "progressive") != NULL)
            add_early_ends(&images[i]);
    ck_assert_uint_gt(image_count, loaded + 5);
    ck_assert_uint_gt(image_count, 40);
}

/*
 * Runs both rigs on the same bytes and compares all that can be seen. Returns whether it succeeded.
 */
static bool compare(rig *fused, rig *plain, const rig_options *options, presto_span bytes,
                    const char *name) {
    presto_tensor a, b;
    presto_error a_err, b_err;
    presto_status a_status = rig_run_bytes(fused, options, bytes, &a, &a_err);
    presto_status b_status = rig_run_bytes(plain, options, bytes, &b, &b_err);
    ck_assert_msg(a_status == b_status, "%s: fused %s (%s), plain %s (%s)", name,
                  presto_status_name(a_status), a_status < 0 ? a_err.message : "",
                  presto_status_name(b_status), b_status < 0 ? b_err.message : "");
    if (a_status < 0) {
        ck_assert_str_eq(a_err.message, b_err.message);
        return false;
    }
    ck_assert_msg(presto_spec_equal(&a.spec, &b.spec), "%s", name);
    ck_assert_msg(memcmp(a.data, b.data, presto_tensor_bytes(&a)) == 0,
                  "%s: sample %ju differs (%jd x %jd)", name, (uintmax_t)options->sample,
                  (intmax_t)a.spec.dims[0], (intmax_t)a.spec.dims[1]);
    return true;
}

/* `steps` has two %d for the crop's height and width. */
static void check_order(const char *steps, int tries) {
    presto_rng rng;
    presto__rng_key key = {presto_check_seed(), 0, 0, 7};
    presto__rng_init(&rng, &key);
    size_t compared = 0;
    tries = (int)presto_check_rounds((size_t)tries);
    for (int i = 0; i < tries; i++) {
        char text[512];
        /* Some small crops, so that nearly every image is larger. */
        int height = 1 + (int)presto_rng_below(&rng, i % 2 == 0 ? 24 : 200);
        int width = 1 + (int)presto_rng_below(&rng, i % 3 == 0 ? 24 : 300);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, steps, height, width);
#pragma GCC diagnostic pop
        rig fused, plain;
        presto_error err;
        ck_assert_ok(rig_open(&fused, text, &string_spec, false, &err), &err);
        ck_assert_ok(rig_open(&plain, text, &string_spec, true, &err), &err);
        ck_assert_ptr_nonnull(strstr(presto_plan_explain(fused.plan), "fused"));
        ck_assert_ptr_null(strstr(presto_plan_explain(plain.plan), "fused"));
        for (size_t k = 0; k < image_count; k++) {
            rig_options options = {.seed = (uint64_t)i, .sample = k};
            presto_span bytes = presto_span_of(images[k].data, images[k].bytes);
            compared += compare(&fused, &plain, &options, bytes, images[k].name);
        }
        rig_close(&fused);
        rig_close(&plain);
    }
    ck_assert_uint_gt(compared, (size_t)tries * 4);
}

START_TEST(decode_and_crop_give_the_same_fused) {
    load_images();
    check_order("{step: decode-image}, {step: random-crop, height: %d, width: %d}", 60);
}
END_TEST

START_TEST(decode_and_crop_or_pad_give_the_same_fused) {
    load_images();
    check_order("{step: decode-image}, {step: crop-or-pad, height: %d, width: %d}", 20);
    check_order("{step: decode-image}, {step: normalize, mean: [0.5, 0.5, 0.5], "
                "std: [0.25, 0.25, 0.25]}, {step: crop-or-pad, height: %d, width: %d}",
                10);
}
END_TEST

START_TEST(grey_decoding_and_crop_give_the_same_fused) {
    load_images();
    check_order("{step: decode-image, channels: 1}, {step: random-crop, height: %d, width: %d}",
                20);
}
END_TEST

START_TEST(decode_resize_and_crop_give_the_same_fused) {
    load_images();
    check_order("{step: decode-image}, {step: resize-image, height: 211, width: 333}, "
                "{step: random-crop, height: %d, width: %d}",
                40);
}
END_TEST

START_TEST(the_paper_order_gives_the_same_fused) {
    load_images();
    check_order("{step: decode-image}, {step: resize-image, min-side: 48}, {step: center-pixels}, "
                "{step: random-crop, height: %d, width: %d}",
                40);
}
END_TEST

START_TEST(resizing_floats_and_grey_give_the_same_fused) {
    load_images();
    check_order("{step: decode-image}, {step: greyscale}, {step: center-pixels}, "
                "{step: resize-image, height: 300, width: 320}, "
                "{step: random-crop, height: %d, width: %d}, {step: center-pixels}",
                30);
}
END_TEST

START_TEST(normalizing_gives_the_same_fused) {
    load_images();
    check_order("{step: decode-image}, {step: resize-image, min-side: 90}, "
                "{step: normalize, mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.4]}, "
                "{step: random-crop, height: %d, width: %d}",
                10);
}
END_TEST

START_TEST(images_as_stored_give_the_same_fused) {
    load_images();
    check_order("{step: decode-image, channels: 0}, {step: resize-image, min-side: 100}, "
                "{step: resize-image, height: 220, width: 310}, "
                "{step: random-crop, height: %d, width: %d}",
                20);
}
END_TEST

START_TEST(resized_crops_give_the_same_fused) {
    load_images();
    check_order("{step: decode-image}, {step: random-resized-crop, height: %d, width: %d}", 20);
    check_order("{step: decode-image, channels: 0, orient: exif, scale: auto}, "
                "{step: random-resized-crop, height: %d, width: %d, scale: [0.01, 1]}",
                20);
    check_order("{step: decode-image}, {step: resize-image, min-side: 100}, {step: center-pixels}, "
                "{step: random-resized-crop, height: %d, width: %d}, {step: horizontal-flip}",
                10);
}
END_TEST

/* Both plans on damaged copies of the images. */
static void check_damaged(const char *steps) {
    presto_rng rng;
    presto__rng_key key = {presto_check_seed(), 0, 0, 8};
    presto__rng_init(&rng, &key);
    rig fused, plain;
    presto_error err;
    ck_assert_ok(rig_open(&fused, steps, &string_spec, false, &err), &err);
    ck_assert_ok(rig_open(&plain, steps, &string_spec, true, &err), &err);
    for (size_t i = 0; i < presto_check_rounds(1500); i++) {
        const image *source = &images[presto_rng_below(&rng, image_count)];
        if (source->bytes == 0)
            continue;
        size_t bytes = source->bytes;
        uint8_t *copy = presto_check_copy(presto_span_of(source->data, bytes));
        if (i % 3 == 0)
            bytes = presto_rng_below(&rng, bytes);
        for (size_t flips = 0; bytes > 0 && flips < i % 3; flips++)
            copy[presto_rng_below(&rng, bytes)] ^= (uint8_t)(1u << presto_rng_below(&rng, 8));
        uint8_t *exact = presto_check_copy(presto_span_of(copy, bytes));
        rig_options options = {.sample = i};
        compare(&fused, &plain, &options, presto_span_of(exact, bytes), source->name);
        free(exact);
        free(copy);
    }
    rig_close(&fused);
    rig_close(&plain);
}

START_TEST(damaged_images_fail_the_same_way_fused) {
    load_images();
    check_damaged("{step: decode-image}, {step: resize-image, min-side: 40}, "
                  "{step: random-crop, height: 20, width: 20}");
    check_damaged("{step: decode-image, orient: exif, scale: auto}, "
                  "{step: random-resized-crop, size: 20}");
}
END_TEST

START_TEST(a_fused_plan_starts_at_stored_tensors_too) {
    presto_tensor_spec in = {PRESTO_UINT8, 3, {31, 47, 3}};
    uint8_t pixels[31 * 47 * 3];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37 + i / 11);
    rig fused, plain;
    presto_error err;
    const char *steps = "{step: center-pixels}, {step: random-crop, height: 20, width: 30}";
    ck_assert_ok(rig_open(&fused, steps, &in, false, &err), &err);
    ck_assert_ok(rig_open(&plain, steps, &in, true, &err), &err);
    for (uint64_t i = 0; i < 50; i++) {
        rig_options options = {.sample = i};
        presto_tensor a = {.spec = in, .data = pixels}, b = a;
        ck_assert_ok(rig_run(&fused, &options, &a, &err), &err);
        ck_assert_ok(rig_run(&plain, &options, &b, &err), &err);
        ck_assert(presto_spec_equal(&a.spec, &b.spec));
        ck_assert_int_eq(memcmp(a.data, b.data, presto_tensor_bytes(&a)), 0);
    }
    presto_step_stats center = presto__plan_worker_stats(fused.worker, 0);
    ck_assert_uint_eq(center.samples, 50);
    ck_assert_uint_eq(center.out_bytes, UINT64_C(50) * 20 * 30 * 3 * 4);
    rig_close(&fused);
    rig_close(&plain);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        decode_and_crop_give_the_same_fused,
        grey_decoding_and_crop_give_the_same_fused,
        decode_resize_and_crop_give_the_same_fused,
        the_paper_order_gives_the_same_fused,
        resizing_floats_and_grey_give_the_same_fused,
        normalizing_gives_the_same_fused,
        decode_and_crop_or_pad_give_the_same_fused,
        images_as_stored_give_the_same_fused,
        resized_crops_give_the_same_fused,
        damaged_images_fail_the_same_way_fused,
        a_fused_plan_starts_at_stored_tensors_too,
    };
    return presto_check_main("windows", tests, sizeof tests / sizeof tests[0], 240);
}
