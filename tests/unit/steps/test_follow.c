/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What moves with an image: the same whether steps are fused or not, the same image with and
 * without it, any shapes without harm, and options that do not go together. tests/live/geometry.py
 * compares the values with torchvision's.
 */
#include <dirent.h>
#include <stdlib.h>

#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

#define IMAGE_DIR PRESTO_GOLDEN_DIR "/images"

/* An image of bytes with a mask of bytes, boxes, labels and points. */
typedef struct scene {
    presto_span image, mask;
    float boxes[3][4];
    int64_t labels[3];
    float points[2][2];
    presto_feature features[5];
} scene;

static void set_scene(scene *s, presto_span bytes) {
    static const float boxes[3][4] = {{1, 2, 30, 20}, {-5, 3, 6.5f, 900}, {0, 0, 0.25f, 0.5f}};
    static const float points[2][2] = {{3, 4}, {700, 2}};
    s->image = s->mask = bytes;
    memcpy(s->boxes, boxes, sizeof boxes);
    memcpy(s->points, points, sizeof points);
    for (int i = 0; i < 3; i++)
        s->labels[i] = 10 + i;
    s->features[0] = (presto_feature){.name = presto_span_of_text("image"),
                                      .tensor = {.spec = string_spec, .strings = &s->image}};
    s->features[1] = (presto_feature){.name = presto_span_of_text("mask"),
                                      .tensor = {.spec = string_spec, .strings = &s->mask}};
    s->features[2] =
        (presto_feature){.name = presto_span_of_text("boxes"),
                         .encoding = PRESTO_ENCODE_TENSOR,
                         .tensor = {.spec = {PRESTO_FLOAT32, 2, {3, 4}}, .data = s->boxes}};
    s->features[3] =
        (presto_feature){.name = presto_span_of_text("label"),
                         .encoding = PRESTO_ENCODE_INT64,
                         .tensor = {.spec = {PRESTO_INT64, 1, {3}}, .data = s->labels}};
    s->features[4] =
        (presto_feature){.name = presto_span_of_text("points"),
                         .encoding = PRESTO_ENCODE_TENSOR,
                         .tensor = {.spec = {PRESTO_FLOAT32, 2, {2, 2}}, .data = s->points}};
}

static presto_status run_scene(rig *r, scene *s, uint64_t number, presto_sample *out,
                               presto_error *err) {
    *out = (presto_sample){s->features, 5, number};
    presto__plan_run_options run = {.struct_bytes = sizeof run, .seed = 3, .epoch = 1};
    presto_arena_reset(&r->arena);
    return presto__plan_run(r->worker, &run, out, err);
}

static void assert_same(const presto_feature *a, const presto_feature *b, const char *what) {
    ck_assert_msg(presto_spec_equal(&a->tensor.spec, &b->tensor.spec), "%s: %.*s", what,
                  (int)a->name.bytes, (const char *)a->name.data);
    ck_assert_msg(a->encoding == b->encoding, "%s: encoding", what);
    ck_assert_msg(memcmp(a->tensor.data, b->tensor.data, presto_tensor_bytes(&a->tensor)) == 0,
                  "%s: %.*s", what, (int)a->name.bytes, (const char *)a->name.data);
}

#define MOVES                                                                                      \
    "boxes: boxes, box-outside: drop, box-features: [label], keypoints: points, also: [mask]"

static const char *const chains[][2] = {
    {"{step: decode-image, also-channels: 3, " MOVES "}, {step: random-crop, height: 7, width: 9, "
     "" MOVES "}",
     "{step: decode-image}, {step: random-crop, height: 7, width: 9}"},
    {"{step: decode-image, orient: exif, also-channels: 3, " MOVES
     "}, {step: resize-image, min-side: 40, " MOVES "}, {step: center-pixels}, {step: random-crop, "
     "height: 32, width: 31, " MOVES "}",
     "{step: decode-image, orient: exif}, {step: resize-image, min-side: 40}, {step: "
     "center-pixels}, {step: random-crop, height: 32, width: 31}"},
    {"{step: decode-image, also-channels: 3, " MOVES "}, {step: random-resized-crop, size: 20, "
     "also-method: [bilinear], " MOVES "}, {step: horizontal-flip, " MOVES "}",
     "{step: decode-image}, {step: random-resized-crop, size: 20}, {step: horizontal-flip}"},
};

START_TEST(fused_or_not_the_same_moves) {
    static char names[256][128];
    size_t name_count = 0;
    size_t succeeded = 0;
    DIR *dir = opendir(IMAGE_DIR);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL && name_count < 256;)
        if (entry->d_name[0] != '.')
            snprintf(names[name_count++], sizeof names[0], "%.100s", entry->d_name);
    closedir(dir);
    ck_assert_uint_gt(name_count, 40);
    for (size_t c = 0; c < sizeof chains / sizeof chains[0]; c++) {
        rig fused, plain, bare;
        presto_error err;
        ck_assert_ok(rig_open(&fused, chains[c][0], &string_spec, false, &err), &err);
        ck_assert_ok(rig_open(&plain, chains[c][0], &string_spec, true, &err), &err);
        ck_assert_ok(rig_open(&bare, chains[c][1], &string_spec, false, &err), &err);
        ck_assert_ptr_nonnull(strstr(presto_plan_explain(fused.plan), "fused"));
        for (size_t i = 0; i < name_count; i++) {
            size_t bytes;
            char path[600];
            snprintf(path, sizeof path, IMAGE_DIR "/%.100s", names[i]);
            uint8_t *data = presto_check_read_file(path, &bytes);
            for (uint64_t number = 0; number < 3; number++) {
                scene a, b, d;
                presto_sample a_out, b_out, d_out;
                set_scene(&a, presto_span_of(data, bytes));
                set_scene(&b, presto_span_of(data, bytes));
                set_scene(&d, presto_span_of(data, bytes));
                presto_status a_status = run_scene(&fused, &a, number, &a_out, &err);
                presto_status b_status = run_scene(&plain, &b, number, &b_out, &err);
                presto_status d_status = run_scene(&bare, &d, number, &d_out, &err);
                ck_assert_msg(a_status == b_status, "%s", names[i]);
                if (a_status != PRESTO_OK)
                    continue;
                succeeded++;
                ck_assert_int_eq(d_status, PRESTO_OK);
                for (size_t f = 0; f < 5; f++)
                    assert_same(&a_out.features[f], &b_out.features[f], names[i]);
                assert_same(&a_out.features[0], &d_out.features[0], names[i]);
                /* The mask is the image: bilinear, it stays so. */
                if (c != 1)
                    assert_same(&(presto_feature){.name = a_out.features[0].name,
                                                  .tensor = a_out.features[0].tensor},
                                &(presto_feature){.name = a_out.features[0].name,
                                                  .tensor = a_out.features[1].tensor},
                                names[i]);
                ck_assert_int_eq(a_out.features[2].tensor.spec.dims[0],
                                 a_out.features[3].tensor.spec.dims[0]);
            }
            free(data);
        }
        rig_close(&fused);
        rig_close(&plain);
        rig_close(&bare);
    }
    ck_assert_uint_gt(succeeded, 100);
}
END_TEST

/* Values of every shape and dtype as mask, boxes, points and labels: refused or moved, no harm. */
START_TEST(any_value_is_refused_or_moved) {
    static const presto_dtype dtypes[] = {PRESTO_UINT8,  PRESTO_INT8,   PRESTO_FLOAT32,
                                          PRESTO_INT64,  PRESTO_BOOL,   PRESTO_FLOAT16,
                                          PRESTO_UINT64, PRESTO_FLOAT64};
    static const presto_tensor_spec shapes[] = {{.rank = 0},
                                                {.rank = 1, .dims = {0}},
                                                {.rank = 1, .dims = {4}},
                                                {.rank = 1, .dims = {5}},
                                                {.rank = 1, .dims = {12}},
                                                {.rank = 2, .dims = {0, 4}},
                                                {.rank = 2, .dims = {3, 4}},
                                                {.rank = 2, .dims = {4, 0}},
                                                {.rank = 2, .dims = {6, 5}},
                                                {.rank = 3, .dims = {6, 5, 1}},
                                                {.rank = 3, .dims = {6, 5, 0}},
                                                {.rank = 3, .dims = {2, 6, 5}},
                                                {.rank = 3, .dims = {0, 6, 5}},
                                                {.rank = 3, .dims = {3, 1, 2}},
                                                {.rank = 4, .dims = {2, 6, 5, 3}},
                                                {.rank = 3, .dims = {5, 6, 1}},
                                                {.rank = 3, .dims = {1, 3, 3}}};
    static const char *const steps[] = {
        "{step: random-crop, height: 3, width: 2, ", "{step: pad, top: 1, left: 2, ",
        "{step: horizontal-flip, probability: 1, ", "{step: resize-image, height: 9, width: 3, ",
        "{step: random-resized-crop, size: 4, "};
    static const char *const uses[] = {
        "also: [v]",
        "also: [v], also-method: [bilinear]",
        "boxes: v, box-units: pixels",
        "boxes: b, box-outside: drop, box-features: [v], box-min-side: 3",
        "keypoints: v",
        "keypoints: v, keypoint-format: yxv, keypoint-outside: hide, keypoint-swap: [0, 1]"};
    static uint8_t image[6 * 5 * 3];
    static const float boxes[3][4] = {{0, 0, 5, 6}, {1, 1, 2, 2}, {9, 9, 9, 9}};
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++)
        for (size_t u = 0; u < sizeof uses / sizeof uses[0]; u++) {
            char text[512];
            rig r;
            presto_error err;
            presto_tensor_spec in = {PRESTO_UINT8, 3, {6, 5, 3}};
            snprintf(text, sizeof text, "%s%s}", steps[s], uses[u]);
            ck_assert_ok(rig_open(&r, text, &in, false, &err), &err);
            for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
                for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
                    presto_tensor value = {.spec = shapes[k]};
                    value.spec.dtype = dtypes[t];
                    size_t bytes = presto_tensor_bytes(&value);
                    uint8_t *data = malloc(bytes + (bytes == 0));
                    memset(data, 0xf1, bytes);
                    value.data = data;
                    presto_feature features[] = {
                        {.name = presto_span_of_text("image"),
                         .tensor = {.spec = in, .data = image}},
                        {.name = presto_span_of_text("v"), .tensor = value},
                        {.name = presto_span_of_text("b"),
                         .tensor = {.spec = {PRESTO_FLOAT32, 2, {3, 4}}, .data = boxes}}};
                    presto_sample sample = {features, 3, k};
                    presto__plan_run_options run = {.struct_bytes = sizeof run};
                    presto_arena_reset(&r.arena);
                    presto_status status = presto__plan_run(r.worker, &run, &sample, &err);
                    ck_assert(status == PRESTO_OK || status == PRESTO_ERR_TYPE);
                    if (status == PRESTO_OK && sample.features[1].tensor.data != data) {
                        uint8_t *copy = rig_copy(&sample.features[1].tensor);
                        free(copy);
                    }
                    free(data);
                }
            rig_close(&r);
        }
}
END_TEST

static void assert_refused(const char *steps, const char *message) {
    rig r;
    presto_error err;
    static const presto_tensor_spec image = {PRESTO_UINT8, 3, {-1, -1, 3}};
    presto_status status = rig_open(&r, steps, &image, false, &err);
    ck_assert_msg(status == PRESTO_ERR_SYNTAX, "%s: %s", steps, presto_status_name(status));
    ck_assert_msg(strstr(err.message, message) != NULL, "'%s' lacks '%s'", err.message, message);
    rig_close(&r);
}

START_TEST(options_that_do_not_go_together_are_refused) {
#define FLIP(text) "{step: horizontal-flip, " text "}"
    assert_refused(FLIP("also: mask"), "write [mask]");
    assert_refused(FLIP("also-method: [nearest]"), "'also-method' belongs to 'also'");
    assert_refused(FLIP("also: [a], also-method: [cubic]"), "must be one of: nearest");
    assert_refused(FLIP("also: [a, b, c], also-method: [nearest, bilinear]"), "needs 1 or 3");
    assert_refused(FLIP("also: [a, b, c], also-fill: [1, 2]"), "needs 1 or 3");
    assert_refused(FLIP("box-format: xywh"), "'box-format' belongs to 'boxes'");
    assert_refused(FLIP("boxes: b, box-outside: drop"), "needs 'box-features'");
    assert_refused(FLIP("boxes: b, box-features: [c]"), "belongs to 'box-outside: drop'");
    assert_refused(FLIP("boxes: b, box-min-side: 2"), "belongs to 'box-outside: drop'");
    assert_refused(FLIP("boxes: 'o/*', box-format: xywh"), "are corners");
    assert_refused(FLIP("boxes: ''"), "empty");
    assert_refused(FLIP("keypoints: 'k/*', keypoint-format: xyv"), "are x and y");
    assert_refused(FLIP("keypoints: k, keypoint-outside: hide"), "needs 'keypoint-format: xyv'");
    assert_refused(FLIP("keypoints: k, keypoint-swap: [1]"), "two positions");
    assert_refused(FLIP("keypoints: k, keypoint-swap: [1, 1]"), "each once");
    assert_refused(FLIP("keypoints: k, keypoint-swap: [1, 2.5]"), "whole numbers");
    assert_refused(FLIP("also-missing: keep"), "belongs to 'also'");
    assert_refused("{step: pad, boxes: b}, " FLIP("boxes: b, box-format: xywh"),
                   "than step pad of line 3");
    assert_refused("{step: decode-image, also-bits: 16}", "belong to 'also'");
    assert_refused("{step: decode-image, also: [m], also-channels: 2}", "must be 0, 1, 3 or 4");
    assert_refused("{step: normalize, mean: [0], std: [1], also: [mask]}", "no option 'also'");
}
END_TEST

/* A reduced photo has other pixels than its masks, boxes and points. */
START_TEST(photos_with_masks_are_decoded_in_full) {
    static const char text[] =
        "name: p\nsource: {type: files}\nsteps: [{step: read-file}, {step: decode-image, scale: "
        "auto";
    static const struct {
        const char *decode, *resize;
        bool is_full;
    } cases[] = {{"", "", false},
                 {"", ", boxes: b", true},
                 {"", ", boxes: b, box-units: normalized", false},
                 {"", ", keypoints: 'k/*'", false},
                 {"", ", keypoints: k", true},
                 {", also: [m]", ", also: [m]", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char yaml[512];
        presto_pipeline *pipeline;
        presto_error err;
        snprintf(yaml, sizeof yaml, "%s%s}, {step: resize-image, min-side: 32%s}]", text,
                 cases[i].decode, cases[i].resize);
        ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "p", NULL, &pipeline, &err),
                     &err);
        ck_assert_int_eq(presto__pipeline_step_option(pipeline, 1, "least-side")->is_set,
                         !cases[i].is_full);
        presto_pipeline_free(pipeline);
    }
}
END_TEST

START_TEST(steps_behind_chw_are_refused) {
    static const char *const steps[] = {"{step: horizontal-flip}",
                                        "{step: random-crop, height: 3, width: 4}",
                                        "{step: random-resized-crop, size: 4}",
                                        "{step: crop-or-pad, height: 3, width: 4}",
                                        "{step: pad, top: 1}",
                                        "{step: resize-image, min-side: 3}",
                                        "{step: greyscale}",
                                        "{step: color-jitter, hue: 0.1}",
                                        "{step: normalize, mean: [0], std: [1]}"};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "{step: to-layout}, {step: center-pixels}, %s", steps[i]);
        assert_refused(text, "put to-layout behind this step");
    }
    assert_refused("{step: to-layout, reads: m}, {step: horizontal-flip, reads: m}", "behind this");
    assert_refused("{step: to-layout, writes: m}, {step: horizontal-flip, reads: m}",
                   "behind this");
    static const char *const fine[] = {
        "{step: to-layout}, {step: to-layout, layout: hwc}, {step: horizontal-flip}",
        "{step: to-layout}, {step: center-pixels}, {step: cast, dtype: float16}",
        "{step: to-layout, writes: m}, {step: horizontal-flip}",
        "{step: to-layout, reads: m}, {step: horizontal-flip}"};
    static const presto_tensor_spec image = {PRESTO_UINT8, 3, {-1, -1, 3}};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        rig r;
        presto_error err;
        ck_assert_ok(rig_open(&r, fine[i], &image, false, &err), &err);
        rig_close(&r);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        fused_or_not_the_same_moves,
        any_value_is_refused_or_moved,
        options_that_do_not_go_together_are_refused,
        photos_with_masks_are_decoded_in_full,
        steps_behind_chw_are_refused,
    };
    return presto_check_main("follow", tests, sizeof tests / sizeof tests[0], 120);
}
