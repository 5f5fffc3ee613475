/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images of tests/golden compared with TensorFlow's results: decoding, resizing, centering and
 * greyscale. uint8 may differ by 1, float32 by 1e-6; in fact the difference is 0.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

#define GOLDEN(path) PRESTO_GOLDEN_DIR "/" path

/* The steps after read-file that make each expected result of the manifest. */
static const struct {
    const char *name;
    const char *steps;
} recipes[] = {
    {"decoded", "{step: decode-image}"},
    {"resized-min64", "{step: decode-image}, {step: resize-image, min-side: 64}"},
    {"resized-50x70", "{step: decode-image}, {step: resize-image, height: 50, width: 70}"},
    {"greyscale-50x70",
     "{step: decode-image}, {step: resize-image, height: 50, width: 70}, {step: greyscale}"},
    {"centered-50x70",
     "{step: decode-image}, {step: resize-image, height: 50, width: 70}, {step: center-pixels}"},
    {"greyscale-centered-50x70", "{step: decode-image}, {step: resize-image, height: 50, width: "
                                 "70}, {step: greyscale}, {step: center-pixels}"},
    {"centered-greyscale-50x70", "{step: decode-image}, {step: resize-image, height: 50, width: "
                                 "70}, {step: center-pixels}, {step: greyscale}"},
};
#define RECIPE_COUNT (sizeof recipes / sizeof recipes[0])

/* Runs decode-image and what follows on bytes in memory. */
static presto_status run_recipe(const char *steps, presto_span bytes, presto_arena *arena,
                                presto_tensor *out, presto_error *err) {
    char yaml[512];
    snprintf(yaml, sizeof yaml, "name: g\nsource: {type: files}\nsteps: [{step: read-file}, %s]\n",
             steps);
    presto_pipeline *pipeline;
    presto_plan *plan;
    presto__plan_worker *worker;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "g", NULL, &pipeline, err), err);
    ck_assert_ok(
        plan_of(pipeline, 1, presto_pipeline_step_count(pipeline), &string_spec, &plan, err), err);
    ck_assert_ok(presto__plan_worker_new(
                     plan,
                     &(presto__plan_worker_options){
                         .struct_bytes = sizeof(presto__plan_worker_options), .arena = arena},
                     &worker, err),
                 err);
    presto_tensor tensor = {.spec = string_spec, .strings = &bytes};
    rig_options options = {0};
    presto_status status = run_one(worker, &options, &tensor, err);
    *out = tensor;
    presto__plan_worker_free(worker);
    presto__plan_free(plan);
    presto_pipeline_free(pipeline);
    return status;
}

/* A .npy array in a zlib stream: its data; the header is skipped, shape and dtype come from the
 * manifest. */
static uint8_t *read_array(const char *file, size_t want_bytes) {
    char path[600];
    size_t packed_bytes;
    snprintf(path, sizeof path, GOLDEN("%s"), file);
    uint8_t *packed = presto_check_read_file(path, &packed_bytes);
    uLongf bytes = (uLongf)want_bytes + 4096;
    uint8_t *array = malloc(bytes);
    ck_assert_int_eq(uncompress(array, &bytes, packed, packed_bytes), Z_OK);
    free(packed);
    ck_assert(memcmp(array, "\x93NUMPY\x01", 7) == 0);
    size_t header = 10 + (size_t)array[8] + ((size_t)array[9] << 8);
    ck_assert_uint_eq(bytes, header + want_bytes);
    memmove(array, array + header, want_bytes);
    return array;
}

static double difference(const presto_tensor *got, const uint8_t *want) {
    uint64_t count = presto_spec_elements(&got->spec);
    double worst = 0;
    for (uint64_t i = 0; i < count; i++) {
        double d;
        if (got->spec.dtype == PRESTO_UINT8) {
            d = abs((int)((const uint8_t *)got->data)[i] - (int)want[i]);
        } else {
            float a, b;
            memcpy(&a, (const uint8_t *)got->data + 4 * i, 4);
            memcpy(&b, want + 4 * i, 4);
            d = fabs((double)a - (double)b);
        }
        worst = d > worst || isnan(d) ? d : worst;
    }
    return worst;
}

static void check_expectation(const char *file, const char *name, json_t *expected,
                              presto_span bytes, const char *steps) {
    presto_arena arena = {0};
    presto_error err;
    presto_tensor got;
    presto_status status = run_recipe(steps, bytes, &arena, &got, &err);
    ck_assert_msg(status == PRESTO_OK, "%s %s: %s", file, name, err.message);
    ck_assert_str_eq(presto_dtype_name(got.spec.dtype),
                     json_string_value(json_object_get(expected, "dtype")));
    json_t *shape = json_object_get(expected, "shape");
    ck_assert_int_eq(got.spec.rank, (int)json_array_size(shape));
    for (int i = 0; i < got.spec.rank; i++)
        ck_assert_int_eq(got.spec.dims[i], json_integer_value(json_array_get(shape, (size_t)i)));
    uint8_t *want =
        read_array(json_string_value(json_object_get(expected, "file")), presto_tensor_bytes(&got));
    double worst = difference(&got, want);
    double allowed = got.spec.dtype == PRESTO_UINT8 ? 1.0 : 1e-6;
    if (worst > 0)
        printf("%s %s differs by up to %g\n", file, name, worst);
    ck_assert_msg(worst <= allowed, "%s %s differs by %g", file, name, worst);
    free(want);
    presto_arena_done(&arena);
}

static json_t *read_manifest(void) {
    json_error_t json_err;
    json_t *manifest = json_load_file(GOLDEN("manifest.json"), 0, &json_err);
    ck_assert_msg(manifest != NULL, "%s", json_err.text);
    return manifest;
}

static uint8_t *read_image(json_t *image, size_t *bytes) {
    char path[600];
    snprintf(path, sizeof path, GOLDEN("%s"), json_string_value(json_object_get(image, "file")));
    return presto_check_read_file(path, bytes);
}

START_TEST(every_image_gives_the_pixels_that_tensorflow_gives) {
    json_t *manifest = read_manifest();
    size_t index, compared = 0;
    json_t *image;
    json_array_foreach(json_object_get(manifest, "images"), index, image) {
        const char *file = json_string_value(json_object_get(image, "file"));
        json_t *expect = json_object_get(image, "expect");
        size_t bytes;
        if (!json_is_object(expect))
            continue;
        uint8_t *content = read_image(image, &bytes);
        const char *name;
        json_t *expected;
        json_object_foreach(expect, name, expected) {
            size_t recipe = 0;
            while (recipe < RECIPE_COUNT && strcmp(recipes[recipe].name, name) != 0)
                recipe++;
            ck_assert_msg(recipe < RECIPE_COUNT, "no recipe for %s", name);
            check_expectation(file, name, expected, presto_span_of(content, bytes),
                              recipes[recipe].steps);
            compared++;
        }
        free(content);
    }
    ck_assert_uint_ge(compared, 150);
    json_decref(manifest);
}
END_TEST

START_TEST(every_image_that_tensorflow_refuses_is_refused) {
    json_t *manifest = read_manifest();
    size_t index, compared = 0;
    json_t *image;
    json_array_foreach(json_object_get(manifest, "images"), index, image) {
        if (json_object_get(image, "tensorflow_error") == NULL)
            continue;
        size_t bytes;
        uint8_t *content = read_image(image, &bytes);
        presto_arena arena = {0};
        presto_error err;
        presto_tensor got;
        presto_status status =
            run_recipe("{step: decode-image}", presto_span_of(content, bytes), &arena, &got, &err);
        const char *file = json_string_value(json_object_get(image, "file"));
        ck_assert_msg(status == PRESTO_ERR_TRUNCATED || status == PRESTO_ERR_CORRUPT, "%s: %s",
                      file, presto_status_name(status));
        ck_assert_msg(strncmp(err.message, "decode-image: ", 14) == 0, "%s", err.message);
        printf("%s: %s\n", file, err.message);
        presto_arena_done(&arena);
        free(content);
        compared++;
    }
    ck_assert_uint_ge(compared, 7);
    json_decref(manifest);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_image_gives_the_pixels_that_tensorflow_gives,
        every_image_that_tensorflow_refuses_is_refused,
    };
    return presto_check_main("golden images", tests, sizeof tests / sizeof tests[0], 120);
}
