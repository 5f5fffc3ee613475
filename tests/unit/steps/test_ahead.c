/* SPDX-License-Identifier: Apache-2.0 */
/* decode-image with `scale: auto`: what later steps need becomes its options, in the definition of
 * the pipeline; and by how much images are then reduced. */
#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

static presto_pipeline *parse_steps(const char *steps) {
    char yaml[1024];
    presto_error err;
    presto_pipeline *pipeline = NULL;
    snprintf(yaml, sizeof yaml, "name: t\nsource: {type: files}\nsteps: [{step: read-file}, %s]\n",
             steps);
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "t", NULL, &pipeline, &err),
                 &err);
    return pipeline;
}

/* The pipeline's JSON has `wanted`, unless that is NULL: then it has no least size. Read back, it
 * is the same pipeline. */
static void assert_least(const char *steps, const char *wanted) {
    presto_error err;
    presto_pipeline *pipeline = parse_steps(steps), *again = NULL;
    const char *json = presto_pipeline_json(pipeline);
    if (wanted != NULL)
        ck_assert_msg(strstr(json, wanted) != NULL, "%s: %s lacks %s", steps, json, wanted);
    else
        ck_assert_msg(strstr(json, "least") == NULL, "%s: %s", steps, json);
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(json), "t", NULL, &again, &err), &err);
    ck_assert_str_eq(json, presto_pipeline_json(again));
    presto_pipeline_free(again);
    presto_pipeline_free(pipeline);
}

#define AUTO "{step: decode-image, scale: auto}, "

START_TEST(the_next_step_that_shrinks_says_what_it_needs) {
    assert_least(AUTO "{step: resize-image, min-side: 256}", "\"least-side\": 256");
    assert_least(AUTO "{step: resize-image, height: 100, width: 300}", "\"least-side\": 300");
    assert_least(AUTO "{step: greyscale}, {step: center-pixels}, {step: horizontal-flip}, "
                      "{step: resize-image, min-side: 99}, {step: resize-image, min-side: 500}",
                 "\"least-side\": 99");
    /* 224^2 / 0.75 / 0.08, and 1 / 0.75 is a little more than 1.333. */
    assert_least(AUTO "{step: random-resized-crop, size: 224}", "\"least-pixels\": 836267");
    assert_least(AUTO "{step: random-resized-crop, height: 10, width: 100, scale: [0.25, 1], "
                      "ratio: [0.5, 2]}",
                 "\"least-pixels\": 80000");
    assert_least(AUTO "{step: random-resized-crop, height: 100, width: 10, scale: [0.25, 1], "
                      "ratio: [0.5, 2]}",
                 "\"least-pixels\": 80000");
    assert_least(AUTO "{step: random-resized-crop, size: 65535, scale: [0.000001, 1]}",
                 "\"least-pixels\": 10000000000");
}
END_TEST

START_TEST(nothing_is_reduced_where_pixels_count) {
    assert_least("{step: decode-image}, {step: resize-image, min-side: 256}", NULL);
    assert_least(AUTO "{step: center-pixels}", NULL);
    assert_least(AUTO "{step: random-crop, height: 9, width: 9}, {step: resize-image, min-side: 3}",
                 NULL);
    assert_least(AUTO "{step: pad, top: 1}, {step: resize-image, min-side: 3}", NULL);
    assert_least(AUTO "{step: crop-or-pad, height: 9, width: 9}, {step: resize-image, min-side: 3}",
                 NULL);
    /* Another feature keeps the full size. */
    assert_least(AUTO "{step: center-pixels, writes: copy}, {step: resize-image, min-side: 3}",
                 NULL);
    assert_least("{step: decode-image, scale: auto, writes: photo}, "
                 "{step: resize-image, reads: photo, min-side: 3}",
                 NULL);
}
END_TEST

static void assert_explained(const char *steps, bool is_reduced) {
    presto_error err;
    presto_pipeline *pipeline = parse_steps(steps);
    presto_plan *plan;
    ck_assert_ok(presto__plan_new(pipeline, NULL, &plan, &err), &err);
    bool is_told = strstr(presto_plan_explain(plan), "reduced (24 to 43 dB PSNR)") != NULL;
    ck_assert_msg(is_told == is_reduced, "%s", presto_plan_explain(plan));
    presto__plan_free(plan);
    presto_pipeline_free(pipeline);
}

START_TEST(the_plan_tells_that_pixels_are_others) {
    assert_explained(AUTO "{step: resize-image, min-side: 256}", true);
    assert_explained(AUTO "{step: random-resized-crop, size: 224}", true);
    assert_explained("{step: decode-image}, {step: resize-image, min-side: 256}", false);
    assert_explained(AUTO "{step: center-pixels}", false);
}
END_TEST

START_TEST(what_is_given_counts_if_it_is_more) {
    assert_least("{step: decode-image, scale: auto, least-side: 400}, "
                 "{step: resize-image, min-side: 256}",
                 "\"least-side\": 400");
    assert_least("{step: decode-image, scale: auto, least-side: 40}, "
                 "{step: resize-image, min-side: 256}",
                 "\"least-side\": 256");
    assert_least("{step: decode-image, scale: auto, least-pixels: 77}", "\"least-pixels\": 77");
}
END_TEST

/* A golden photo of 640 x 427, 4:2:0, by what it is reduced. */
START_TEST(images_are_reduced_as_far_as_that_leaves_enough) {
    static const struct {
        const char *options;
        int64_t height, width;
    } cases[] = {
        {"least-side: 427", 427, 640},     {"least-side: 215", 427, 640},
        {"least-side: 214", 214, 320},     {"least-side: 108", 214, 320},
        {"least-side: 107", 107, 160},     {"least-side: 54", 54, 80},
        {"least-side: 1", 54, 80},         {"least-pixels: 68481", 427, 640},
        {"least-pixels: 68480", 214, 320}, {"least-pixels: 4321", 107, 160},
        {"least-pixels: 4320", 54, 80},    {"least-pixels: 1, least-side: 60", 107, 160},
        {"least-pixels: 9000", 107, 160},
    };
    size_t bytes;
    uint8_t *photo =
        presto_check_read_file(PRESTO_GOLDEN_DIR "/images/jpeg-420-640x427.jpg", &bytes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char steps[200];
        rig r;
        presto_error err;
        presto_tensor out;
        rig_options options = {0};
        snprintf(steps, sizeof steps, "{step: decode-image, scale: auto, %s}", cases[i].options);
        ck_assert_ok(rig_open(&r, steps, &string_spec, false, &err), &err);
        ck_assert_ok(rig_run_bytes(&r, &options, presto_span_of(photo, bytes), &out, &err), &err);
        ck_assert_msg(out.spec.dims[0] == cases[i].height && out.spec.dims[1] == cases[i].width,
                      "%s: %jd x %jd", cases[i].options, (intmax_t)out.spec.dims[0],
                      (intmax_t)out.spec.dims[1]);
        rig_close(&r);
    }
    free(photo);
}
END_TEST

/* The file says how large it is in full; that it is decoded smaller does not help. */
START_TEST(the_limit_is_for_the_full_size) {
    size_t bytes;
    uint8_t *photo =
        presto_check_read_file(PRESTO_GOLDEN_DIR "/images/jpeg-420-640x427.jpg", &bytes);
    rig r;
    presto_error err;
    presto_tensor out;
    rig_options options = {0};
    ck_assert_ok(rig_open(&r,
                          "{step: decode-image, scale: auto, least-side: 60, max-bytes: 500KiB}",
                          &string_spec, false, &err),
                 &err);
    ck_assert_int_eq(rig_run_bytes(&r, &options, presto_span_of(photo, bytes), &out, &err),
                     PRESTO_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "640 x 427"));
    rig_close(&r);
    free(photo);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_next_step_that_shrinks_says_what_it_needs,   nothing_is_reduced_where_pixels_count,
        the_plan_tells_that_pixels_are_others,           what_is_given_counts_if_it_is_more,
        images_are_reduced_as_far_as_that_leaves_enough, the_limit_is_for_the_full_size,
    };
    return presto_check_main("ahead", tests, sizeof tests / sizeof tests[0], 60);
}
