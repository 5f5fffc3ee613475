/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in pipelines: representations of the paper, options of their sources, explaining. */
#include <presto/pipeline.h>

#include "../../../steps/pipelines_internal.h"
#include "pipeline/pipeline_internal.h"
#include "presto_check.h"

START_TEST(built_in_pipelines_have_the_papers_representations) {
    const char *names[] = {"cv", "cv2-jpg", "cv2-png"};
    for (size_t i = 0; i < 3; i++) {
        presto_pipeline *p;
        presto_error err;
        ck_assert_ok(presto_pipeline_load(names[i], NULL, &p, &err), &err);
        ck_assert_str_eq(presto_pipeline_name(p), names[i]);
        ck_assert_str_eq(presto_pipeline_source(p)->name, "files");
        ck_assert_uint_eq(presto_pipeline_step_count(p), 5);
        const char *want[] = {"unprocessed", "concatenated", "decoded", "resized",
                              "pixel-centered"};
        ck_assert_uint_eq(presto_pipeline_representation_count(p), 5);
        for (size_t r = 0; r < 5; r++) {
            ck_assert_str_eq(presto_pipeline_representation_name(p, r), want[r]);
            ck_assert_uint_eq(presto_pipeline_representation_find(p, want[r]), r);
            ck_assert_uint_eq(presto_pipeline_representation_steps(p, r), r);
            ck_assert(presto__pipeline_representation_storable(p, r));
        }
        ck_assert_uint_eq(presto_pipeline_representation_find(p, "x"), SIZE_MAX);
        ck_assert_ptr_null(presto_pipeline_representation_name(p, 5));
        presto_pipeline_free(p);
    }
}
END_TEST

START_TEST(grey_variants_of_cv_make_grey_early_and_late) {
    static const char *const names[] = {"cv-grey-early", "cv-grey-late"};
    static const presto_dtype dtypes[] = {PRESTO_UINT8, PRESTO_FLOAT32};
    static const size_t places[] = {3, 5};
    for (size_t i = 0; i < 2; i++) {
        presto_pipeline *p;
        presto_plan *plan;
        presto_error err;
        ck_assert_ok(presto_pipeline_load(names[i], NULL, &p, &err), &err);
        ck_assert_uint_eq(presto_pipeline_representation_count(p), 6);
        ck_assert_uint_eq(presto_pipeline_representation_find(p, "greyscaled"), places[i]);
        presto__plan_options options;
        presto__plan_options_defaults(&options);
        options.last_step = places[i];
        ck_assert_ok(presto__plan_new(p, &options, &plan, &err), &err);
        ck_assert_int_eq(presto__plan_output(plan)->dtype, dtypes[i]);
        ck_assert_int_eq(presto__plan_output(plan)->dims[2], 1);
        presto__plan_free(plan);
        presto_pipeline_free(p);
    }
}
END_TEST

START_TEST(explaining_tells_bytes_where_they_are_known) {
    presto_pipeline *p;
    presto_plan *plan;
    presto_error err;
    ck_assert_ok(presto_pipeline_load("nilm", NULL, &p, &err), &err);
    ck_assert_ok(presto__plan_new(p, NULL, &plan, &err), &err);
    ck_assert_str_eq(presto_plan_explain(plan),
                     "input               float64[2,64000] (1.02 MB), yields decoded\n"
                     "aggregate        -> float64[3,500] (12.0 kB), yields aggregated\n");
    presto__plan_free(plan);
    presto_pipeline_free(p);
}
END_TEST

START_TEST(nilm_has_the_papers_representations) {
    static const char *const want[] = {"unprocessed", "decoded", "aggregated"};
    static const size_t steps[] = {0, 0, 1};
    presto_pipeline *p;
    presto_error err;
    char text[PRESTO_SPEC_TEXT_BYTES];
    ck_assert_ok(presto_pipeline_load("nilm", NULL, &p, &err), &err);
    ck_assert_str_eq(presto_pipeline_source(p)->name, "hdf5");
    ck_assert_uint_eq(presto_pipeline_representation_count(p), 3);
    for (size_t r = 0; r < 3; r++) {
        ck_assert_str_eq(presto_pipeline_representation_name(p, r), want[r]);
        ck_assert_uint_eq(presto_pipeline_representation_steps(p, r), steps[r]);
        ck_assert(presto__pipeline_representation_storable(p, r));
    }
    presto_spec_format(presto__pipeline_source_output(p), text, sizeof text);
    ck_assert_str_eq(text, "float64[2,64000]");
    presto_pipeline_free(p);
}
END_TEST

START_TEST(mp3_and_flac_have_the_papers_representations) {
    static const char *const names[] = {"mp3", "flac"};
    static const char *const want[] = {"unprocessed", "concatenated", "decoded",
                                       "spectrogram-encoded"};
    for (size_t i = 0; i < 2; i++) {
        presto_pipeline *p;
        presto_error err;
        ck_assert_ok(presto_pipeline_load(names[i], NULL, &p, &err), &err);
        ck_assert_uint_eq(presto_pipeline_representation_count(p), 4);
        for (size_t r = 0; r < 4; r++) {
            ck_assert_str_eq(presto_pipeline_representation_name(p, r), want[r]);
            ck_assert(presto__pipeline_representation_storable(p, r));
        }
        presto_pipeline_free(p);
    }
}
END_TEST

START_TEST(source_options_of_cv_are_its_own) {
    presto_pipeline *p;
    presto_error err;
    ck_assert_ok(presto_pipeline_load("cv", NULL, &p, &err), &err);
    const presto_option *match = presto__pipeline_source_option(p, "match");
    ck_assert_uint_eq(match->text_count, 3);
    ck_assert_str_eq(match->texts[2], "*.png");
    ck_assert_str_eq(presto__pipeline_source_option(p, "label")->text, "parent-folder");
    ck_assert_str_eq(presto__pipeline_source_option(p, "feature")->text, "image");
    ck_assert_ptr_null(presto__pipeline_source_option(p, "nothing"));
    presto_pipeline_free(p);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        built_in_pipelines_have_the_papers_representations,
        nilm_has_the_papers_representations,
        mp3_and_flac_have_the_papers_representations,
        grey_variants_of_cv_make_grey_early_and_late,
        explaining_tells_bytes_where_they_are_known,
        source_options_of_cv_are_its_own,
    };
    return presto_check_main("built-in-pipelines", tests, sizeof tests / sizeof tests[0], 60);
}
