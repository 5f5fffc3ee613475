/* SPDX-License-Identifier: Apache-2.0 */
/* --set, which changes steps and the source; pipelines that are compared; steps that are fused. */
#include "../../../steps/pipelines_internal.h"
#include "own_steps.h"

/* ---- --set ---- */

static void check_set(const char *set, presto_status want, const char *part) {
    presto_error err;
    presto_pipeline *pipeline = NULL;
    presto_status status = parse_set("  - {step: scale}\n  - {step: scale, factor: 3}\n"
                                     "  - {step: split-words}\n",
                                     &set, 1, &pipeline, &err);
    ck_assert_msg(status == want, "%s: %s", set, status < 0 ? err.message : "ok");
    const char *text = status < 0 ? err.message : presto_pipeline_json(pipeline);
    ck_assert_msg(strstr(text, part) != NULL, "%s: %s", set, text);
    presto_pipeline_free(pipeline);
}

START_TEST(set_changes_options_with_the_checks_of_the_text) {
    check_set("scale[1].factor=7", PRESTO_OK, "\"step\": \"scale\", \"factor\": 7}");
    check_set("scale[2].factor=7", PRESTO_OK, "{\"step\": \"scale\", \"factor\": 2}");
    check_set("scale[2].table=/a/b", PRESTO_OK, "\"table\": \"/a/b\"");
    check_set("scale[2].table=a/b", PRESTO_OK, "\"table\": \"/"); /* of the working folder */
    check_set("scale[2].table=a/b", PRESTO_OK, "/a/b\"");
    check_set("source.match=['*.a', '*.b']", PRESTO_OK, "\"match\": [\"*.a\", \"*.b\"]");
    check_set("source.match='*.a'", PRESTO_ERR_SYNTAX, "gets a text '*.a': write ['*.a']");
    check_set("source.match=a", PRESTO_ERR_SYNTAX, "gets a text 'a': write [a]");
    check_set("source.match=[*.a]", PRESTO_ERR_SYNTAX, "as YAML (put the text in quotes)");
    check_set("source.feature=page", PRESTO_OK, "\"feature\": \"page\"");
    check_set("split-words.reads=note", PRESTO_OK, "\"reads\": \"note\"");
    check_set("scale.factor=7", PRESTO_ERR_SYNTAX, "has 2 steps scale");
    check_set("scale[3].factor=7", PRESTO_ERR_SYNTAX, "no such step");
    check_set("scale[0].factor=7", PRESTO_ERR_SYNTAX, "must be STEP.OPTION=VALUE");
    check_set("scales.factor=7", PRESTO_ERR_SYNTAX, "no such step");
    check_set("scale[1].factor=seven", PRESTO_ERR_SYNTAX,
              "--set scale[1].factor=seven: step scale: option 'factor' needs a whole number");
    check_set("scale[1].factor=101", PRESTO_ERR_SYNTAX, "must be from 1 to 100");
    check_set("scale[1].faktor=1", PRESTO_ERR_SYNTAX, "did you mean 'factor'?");
    check_set("scale[1].factor=", PRESTO_ERR_SYNTAX, "--set scale[1].factor=");
    check_set("scale[1].factor=[1", PRESTO_ERR_SYNTAX, "cannot be read as YAML");
    check_set("scale[1].factor", PRESTO_ERR_SYNTAX, "must be STEP.OPTION=VALUE");
    check_set("factor=1", PRESTO_ERR_SYNTAX, "must be STEP.OPTION=VALUE");
    check_set("scale[1].step=greyscale", PRESTO_ERR_SYNTAX, "only options can be set");
    check_set("scale[1].type=tar", PRESTO_ERR_SYNTAX, "only options can be set");
    check_set("source.type=tars", PRESTO_ERR_SYNTAX, "did you mean 'tar'?");
}
END_TEST

/* The source of cv, with some --set. */
static void check_source(const char *const *set, size_t count, const char *wanted) {
    presto_error err;
    presto_pipeline *pipeline;
    presto_pipeline_options options;
    presto_pipeline_options_defaults(&options);
    options.set = set;
    options.set_count = count;
    ck_assert_ok(presto_pipeline_load("cv", &options, &pipeline, &err), &err);
    const char *text = presto_pipeline_json(pipeline);
    ck_assert_msg(strstr(text, wanted) != NULL, "%s lacks %s", text, wanted);
    presto_pipeline_free(pipeline);
}

START_TEST(set_puts_another_source_in_front_of_the_same_steps) {
    static const char *const same[] = {"source.type=files"};
    static const char *const tar[] = {"source.label=top-folder", "source.type=tar"};
    static const char *const later[] = {"source.type=tar", "source.label=none"};
    static const char *const values[] = {"source.type=hdf5"};
    const char *match = "{\"type\": \"tar\", \"match\": [\"*.jpg\", \"*.jpeg\", \"*.png\"], ";
    char wanted[200];
    presto_error err;
    presto_pipeline *pipeline;
    presto_pipeline_options options;
    check_source(same, 1, "\"label\": \"parent-folder\"");
    /* match is kept; label is that of the new type, unless it is set */
    snprintf(wanted, sizeof wanted, "%s\"label\": \"cls\"", match);
    check_source(tar + 1, 1, wanted);
    snprintf(wanted, sizeof wanted, "%s\"label\": \"top-folder\"", match);
    check_source(tar, 2, wanted);
    snprintf(wanted, sizeof wanted, "%s\"label\": \"none\"", match);
    check_source(later, 2, wanted);
    presto_pipeline_options_defaults(&options);
    options.set = values;
    options.set_count = 1;
    ck_assert_status(presto_pipeline_load("cv", &options, &pipeline, &err), PRESTO_ERR_SYNTAX,
                     &err);
}
END_TEST

START_TEST(pipelines_are_compared_as_far_as_they_are_stored) {
    presto_error err;
    presto_pipeline *cv, *later, *earlier;
    const char *crop = "random-crop.height=200";
    const char *resize = "resize-image.min-side=200";
    presto_pipeline_options with_crop = {
        .struct_bytes = sizeof with_crop, .set = &crop, .set_count = 1};
    presto_pipeline_options with_resize = {
        .struct_bytes = sizeof with_resize, .set = &resize, .set_count = 1};
    ck_assert_ok(presto_pipeline_load("cv", NULL, &cv, &err), &err);
    ck_assert_ok(presto_pipeline_load("cv", &with_crop, &later, &err), &err);
    ck_assert_ok(presto_pipeline_load("cv", &with_resize, &earlier, &err), &err);
    const char *json = presto_pipeline_json(cv);
    bool truth = false;
    ck_assert_ok(presto__pipeline_same(cv, json, &truth, &err), &err);
    ck_assert(truth);
    ck_assert_ok(presto__pipeline_same(later, json, &truth, &err), &err);
    ck_assert(!truth);
    ck_assert_ok(presto__pipeline_continues(later, json, "resized", &truth, &err), &err);
    ck_assert(truth);
    ck_assert_ok(presto__pipeline_continues(earlier, json, "resized", &truth, &err), &err);
    ck_assert(!truth);
    ck_assert_ok(presto__pipeline_continues(earlier, json, "decoded", &truth, &err), &err);
    ck_assert(truth);
    ck_assert_ok(presto__pipeline_continues(cv, json, "nowhere", &truth, &err), &err);
    ck_assert(!truth);
    presto_pipeline_free(cv);
    presto_pipeline_free(later);
    presto_pipeline_free(earlier);
}
END_TEST

/* ---- seekable=true ---- */

static presto_pipeline *parse_with(const char *steps, const char *const *set, size_t set_count,
                                   presto_status want, presto_error *err) {
    char text[700];
    presto_pipeline *pipeline = NULL;
    presto_pipeline_options options;
    presto_pipeline_options_defaults(&options);
    options.set = set;
    options.set_count = set_count;
    snprintf(text, sizeof text, "name: photos\nsource: {type: files, match: ['*.jpg']}\nsteps:\n%s",
             steps);
    ck_assert_status(
        presto__pipeline_parse(presto_span_of_text(text), "text", &options, &pipeline, err), want,
        err);
    return pipeline;
}

#define READ "  - {step: read-file, yields: file}\n"
#define DECODE "  - {step: decode-image, yields: decoded}\n"

START_TEST(seekable_puts_an_index_before_the_image_is_decoded) {
    static const char *const set[] = {"index-jpeg.every=3", "seekable=true", "random-crop.width=9"};
    presto_error err;
    presto_pipeline *p = parse_with(READ DECODE "  - {step: random-crop, height: 8, width: 8}\n",
                                    set, 3, PRESTO_OK, &err);
    const char *json = presto_pipeline_json(p);
    ck_assert_uint_eq(presto_pipeline_step_count(p), 4);
    ck_assert_str_eq(presto_pipeline_representation_name(p, 2), "seekable");
    ck_assert_ptr_nonnull(strstr(json, "\"every\": 3"));
    /* Read again with the same change, it stays as it is. */
    presto_pipeline *again = NULL;
    presto_pipeline_options options;
    presto_pipeline_options_defaults(&options);
    options.set = set + 1;
    options.set_count = 1;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(json), "text", &options, &again, &err),
                 &err);
    ck_assert_str_eq(presto_pipeline_json(again), json);
    presto_pipeline_free(again);
    presto_pipeline_free(p);
    parse_with(READ, set + 1, 1, PRESTO_ERR_SYNTAX, &err);
    ck_assert_ptr_nonnull(
        strstr(err.message, "--set seekable=true: the pipeline has no step decode"));
    parse_with(READ "  - {step: decode-image, reads: mask}\n", set + 1, 1, PRESTO_ERR_SYNTAX, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "other images than that of the main feature"));
    parse_with(READ "  - {step: decode-image, yields: seekable}\n", set + 1, 1, PRESTO_ERR_SYNTAX,
               &err);
}
END_TEST

START_TEST(seekable_is_worth_trying_where_a_crop_keeps_a_part) {
    static const struct {
        const char *steps;
        bool is_worth;
    } cases[] = {
        {READ DECODE "  - {step: random-resized-crop, size: 8}\n", true},
        {READ DECODE "  - {step: random-crop, height: 8, width: 8}\n", true},
        {READ DECODE "  - {step: crop-or-pad, height: 8, width: 8}\n", true},
        {READ DECODE "  - {step: greyscale}\n  - {step: random-crop, height: 8, width: 8}\n", true},
        {READ DECODE, false},
        {READ DECODE "  - {step: resize-image, min-side: 9}\n"
                     "  - {step: random-crop, height: 8, width: 8}\n",
         false},
        {READ "  - {step: index-jpeg, yields: small}\n" DECODE
              "  - {step: random-resized-crop, size: 8}\n",
         false},
        {"  - {step: read-file, yields: seekable}\n" DECODE
         "  - {step: random-resized-crop, size: 8}\n",
         false},
        {READ "  - {step: decode-image, reads: mask}\n  - {step: random-crop, reads: mask, height: "
              "8, width: 8}\n",
         false},
    };
    presto_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_pipeline *seekable = NULL;
        presto_pipeline *p = parse_with(cases[i].steps, NULL, 0, PRESTO_OK, &err);
        ck_assert_ok(presto_pipeline_seekable(p, &seekable, &err), &err);
        ck_assert_msg((seekable != NULL) == (cases[i].is_worth && PRESTO_HAVE_JPEG != 0), "%s",
                      cases[i].steps);
        if (seekable != NULL)
            ck_assert_uint_eq(presto_pipeline_step_count(seekable),
                              presto_pipeline_step_count(p) + 1);
        presto_pipeline_free(seekable);
        presto_pipeline_free(p);
    }
}
END_TEST

START_TEST(steps_that_could_not_be_fused_are_counted) {
    static uint8_t pixels[300 * 200 * 3];
    presto_tensor_spec unknown = {PRESTO_UINT8, 3, {-1, -1, 3}};
    presto_tensor_spec large = {PRESTO_UINT8, 3, {300, 200, 3}};
    presto_tensor_spec small = {PRESTO_UINT8, 3, {30, 20, 3}};
    rig r;
    presto_error err;
    rig_options options = {0};
    ck_assert_ok(rig_open(&r, "{step: center-pixels}, {step: random-crop, height: 50, width: 50}",
                          &unknown, false, &err),
                 &err);
    ck_assert_ptr_nonnull(strstr(presto_plan_explain(r.plan), "unfused"));
    presto_tensor tensor = {.spec = large, .data = pixels};
    ck_assert_ok(rig_run(&r, &options, &tensor, &err), &err);
    ck_assert_uint_eq(presto__plan_worker_stats(r.worker, 0).unfused, 0);
    tensor = (presto_tensor){.spec = small, .data = pixels};
    ck_assert_status(rig_run(&r, &options, &tensor, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_uint_eq(presto__plan_worker_stats(r.worker, 0).unfused, 1);
    rig_close(&r);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        set_changes_options_with_the_checks_of_the_text,
        set_puts_another_source_in_front_of_the_same_steps,
        seekable_puts_an_index_before_the_image_is_decoded,
        seekable_is_worth_trying_where_a_crop_keeps_a_part,
        pipelines_are_compared_as_far_as_they_are_stored,
        steps_that_could_not_be_fused_are_counted,
    };
    return presto_check_main("set", tests, sizeof tests / sizeof tests[0], 60);
}
