/* SPDX-License-Identifier: Apache-2.0 */
/* The step filter: each condition at its bounds, values that it cannot be asked of, options that
 * are wrong. */
#include <math.h>

#include "../../../steps/pipelines_internal.h"
#include "comma_check.h"
#include "steps_check.h"

/* Runs `step` on a sample whose main feature is `main`, beside "other" (NULL: not there). */
static presto_status run_filter(const char *step, const presto_tensor *main,
                                const presto_tensor *other, presto_error *err) {
    rig r;
    presto_feature features[2] = {{.name = presto_span_of_text("value"), .tensor = *main}};
    size_t count = 1;
    if (other != NULL)
        features[count++] =
            (presto_feature){.name = presto_span_of_text("other"), .tensor = *other};
    presto_sample sample = {features, count, 0};
    presto__plan_run_options run = {.struct_bytes = sizeof run};
    presto_status status = rig_open(&r, step, &string_spec, false, err);
    ck_assert_msg(status >= 0, "%s: %s", step, err->message);
    status = presto__plan_run(r.worker, &run, &sample, err);
    if (status == PRESTO_OK) {
        ck_assert_uint_eq(sample.feature_count, count);
        ck_assert_ptr_eq(sample.features[0].tensor.data, main->data);
        ck_assert(presto_spec_equal(&sample.features[0].tensor.spec, &main->spec));
    }
    rig_close(&r);
    return status;
}

static presto_tensor text_of(presto_span *span, const char *text) {
    *span = presto_span_of_text(text);
    return (presto_tensor){.spec = string_spec, .strings = span};
}

#define SCALAR(type, value)                                                                        \
    (presto_tensor) {                                                                              \
        .spec = {type, 0, {0}}, .data = (value)                                                    \
    }

static const presto_tensor plain = {.spec = {PRESTO_STRING, 0, {0}},
                                    .strings = &(const presto_span){(const uint8_t *)"main", 4}};

static void expect(const char *condition, const presto_tensor *value, presto_status wanted) {
    char step[256];
    presto_error err = {0};
    snprintf(step, sizeof step, "{step: filter, feature: other, %s}", condition);
    presto_status status = run_filter(step, &plain, value, &err);
    ck_assert_msg(status == wanted, "%s: %s, not %s (%s)", condition, presto_status_name(status),
                  presto_status_name(wanted), status < 0 ? err.message : "");
}

START_TEST(numbers_are_kept_between_min_and_max_and_from_lists) {
    int64_t five = 5;
    const presto_tensor value = SCALAR(PRESTO_INT64, &five);
    expect("min: 5", &value, PRESTO_OK);
    expect("min: 5.5", &value, PRESTO_DROP);
    expect("min: 4.5, max: 5", &value, PRESTO_OK);
    expect("max: 4.999", &value, PRESTO_DROP);
    expect("in: [1, 5]", &value, PRESTO_OK);
    expect("in: [1, 5.0]", &value, PRESTO_OK);
    expect("in: [1, 5.5]", &value, PRESTO_DROP);
    expect("in: ['5']", &value, PRESTO_OK);
    expect("not-in: [5]", &value, PRESTO_DROP);
    expect("in: [5], not-in: [4], min: 5, max: 5", &value, PRESTO_OK);
    expect("in: [5], min: 6", &value, PRESTO_DROP);
    expect("in: [cat]", &value, PRESTO_ERR_TYPE);
}
END_TEST

START_TEST(numbers_have_a_point_in_any_locale) {
    int64_t five = 5;
    const presto_tensor value = SCALAR(PRESTO_INT64, &five);
    if (!comma_begin())
        return;
    expect("min: 5.5", &value, PRESTO_DROP);
    expect("max: 5.5", &value, PRESTO_OK);
    expect("in: [1, 5.0]", &value, PRESTO_OK);
    expect("not-in: [5.5]", &value, PRESTO_OK);
    comma_end();
}
END_TEST

START_TEST(every_dtype_is_compared) {
    uint8_t u8 = 7;
    int8_t i8 = -7;
    uint16_t u16 = 7;
    int16_t i16 = -7;
    int32_t i32 = -7;
    uint32_t u32 = UINT32_MAX;
    uint64_t u64 = UINT64_MAX;
    double f64 = 0.7, nan = NAN;
    float f32 = 0.7f;
    expect("in: [7]", &SCALAR(PRESTO_UINT8, &u8), PRESTO_OK);
    expect("in: [-7]", &SCALAR(PRESTO_INT8, &i8), PRESTO_OK);
    expect("in: [7]", &SCALAR(PRESTO_UINT16, &u16), PRESTO_OK);
    expect("in: [-7]", &SCALAR(PRESTO_INT16, &i16), PRESTO_OK);
    expect("max: -7", &SCALAR(PRESTO_INT32, &i32), PRESTO_OK);
    expect("in: [4294967295]", &SCALAR(PRESTO_UINT32, &u32), PRESTO_OK);
    expect("min: 1.8e19", &SCALAR(PRESTO_UINT64, &u64), PRESTO_OK);
    expect("in: [0.7]", &SCALAR(PRESTO_FLOAT64, &f64), PRESTO_OK);
    /* The float32 nearest to 0.7 is below it. */
    expect("in: [0.7], min: 0.7, max: 0.7", &SCALAR(PRESTO_FLOAT32, &f32), PRESTO_OK);
    expect("min: 0.7000001", &SCALAR(PRESTO_FLOAT32, &f32), PRESTO_DROP);
    expect("min: -1", &SCALAR(PRESTO_FLOAT64, &nan), PRESTO_DROP);
    expect("max: 1", &SCALAR(PRESTO_FLOAT64, &nan), PRESTO_DROP);
    expect("not-in: [1]", &SCALAR(PRESTO_FLOAT64, &nan), PRESTO_OK);
    expect("min: 0", &SCALAR(PRESTO_FLOAT16, &u16), PRESTO_ERR_TYPE);
}
END_TEST

/* A double has 53 bits: near 2^63 most whole numbers have none of their own. */
START_TEST(large_numbers_are_compared_exactly) {
    static const int64_t values[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1,
                                     (INT64_C(1) << 53) + 1};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const presto_tensor value = SCALAR(PRESTO_INT64, &values[i]);
        char condition[80];
        snprintf(condition, sizeof condition, "in: [%jd]", (intmax_t)values[i]);
        expect(condition, &value, PRESTO_OK);
        int64_t near = values[i] > 0 ? values[i] - 2 : values[i] + 2;
        snprintf(condition, sizeof condition, "in: [%jd]", (intmax_t)near);
        expect(condition, &value, PRESTO_DROP);
    }
    expect("max: 9.3e18", &SCALAR(PRESTO_INT64, &values[0]), PRESTO_OK);
    expect("min: 9.3e18", &SCALAR(PRESTO_INT64, &values[0]), PRESTO_DROP);
    expect("min: -9.3e18", &SCALAR(PRESTO_INT64, &values[2]), PRESTO_OK);
    expect("max: -9.3e18", &SCALAR(PRESTO_INT64, &values[2]), PRESTO_DROP);
    expect("max: 9007199254740992", &SCALAR(PRESTO_INT64, &values[4]), PRESTO_DROP);
}
END_TEST

START_TEST(texts_are_kept_by_length_and_from_lists) {
    presto_span span;
    const presto_tensor value = text_of(&span, "house");
    expect("min-length: 5", &value, PRESTO_OK);
    expect("min-length: 6", &value, PRESTO_DROP);
    expect("max-length: 5, min-bytes: 5, max-bytes: 5B", &value, PRESTO_OK);
    expect("max-length: 4", &value, PRESTO_DROP);
    expect("min-bytes: 1KiB", &value, PRESTO_DROP);
    expect("in: [house, 3]", &value, PRESTO_OK);
    expect("in: [hous]", &value, PRESTO_DROP);
    expect("not-in: [house]", &value, PRESTO_DROP);
    expect("min: 1", &value, PRESTO_ERR_TYPE);
    expect("min-shape: [1]", &value, PRESTO_ERR_TYPE);
    const presto_tensor three = text_of(&span, "3");
    expect("in: [house, 3]", &three, PRESTO_OK);
}
END_TEST

START_TEST(tensors_are_kept_by_shape_and_bytes) {
    static const float zeros[6];
    const presto_tensor value = {.spec = {PRESTO_FLOAT32, 2, {2, 3}}, .data = zeros};
    expect("min-shape: [2, 3]", &value, PRESTO_OK);
    expect("min-shape: [2]", &value, PRESTO_OK);
    expect("min-shape: [2, 4]", &value, PRESTO_DROP);
    expect("min-shape: [0, 3], max-shape: [2]", &value, PRESTO_OK);
    expect("max-shape: [1]", &value, PRESTO_DROP);
    expect("max-shape: [2, 2]", &value, PRESTO_DROP);
    expect("min-length: 2, max-length: 2", &value, PRESTO_OK);
    expect("min-bytes: 24, max-bytes: 24", &value, PRESTO_OK);
    expect("min-bytes: 25", &value, PRESTO_DROP);
    expect("min-shape: [1, 1, 1]", &value, PRESTO_ERR_TYPE);
    expect("in: [0]", &value, PRESTO_ERR_TYPE);
    const presto_tensor scalar = SCALAR(PRESTO_FLOAT32, zeros);
    expect("min-length: 1", &scalar, PRESTO_ERR_TYPE);
    const presto_tensor empty = {.spec = {PRESTO_FLOAT32, 1, {0}}, .data = zeros};
    expect("min-length: 1", &empty, PRESTO_DROP);
    expect("max-bytes: 0", &empty, PRESTO_OK);
    expect("min: 0", &empty, PRESTO_ERR_TYPE);
}
END_TEST

START_TEST(a_sample_without_the_feature_fails_or_is_dropped_or_kept) {
    expect("min: 0", NULL, PRESTO_ERR_TYPE);
    expect("min: 0, missing: fail", NULL, PRESTO_ERR_TYPE);
    expect("min: 0, missing: drop", NULL, PRESTO_DROP);
    expect("min: 0, missing: keep", NULL, PRESTO_OK);
}
END_TEST

START_TEST(without_a_feature_it_looks_at_its_input) {
    presto_error err;
    ck_assert_int_eq(run_filter("{step: filter, min-length: 4}", &plain, NULL, &err), PRESTO_OK);
    ck_assert_int_eq(run_filter("{step: filter, min-length: 5}", &plain, NULL, &err), PRESTO_DROP);
    int64_t three = 3;
    const presto_tensor other = SCALAR(PRESTO_INT64, &three);
    presto_status status = run_filter("{step: filter, reads: other, min: 4}", &plain, &other, &err);
    ck_assert_int_eq(status, PRESTO_DROP);
}
END_TEST

static void expect_error(const char *step, const presto_tensor_spec *in, const char *message) {
    rig r;
    presto_error err;
    presto_status status = rig_open(&r, step, in, false, &err);
    ck_assert_msg(status < 0 && strstr(err.message, message) != NULL, "%s: %s", step, err.message);
    rig_close(&r);
}

START_TEST(wrong_options_are_refused) {
    expect_error("{step: filter}", &string_spec, "needs a condition");
    expect_error("{step: filter, feature: label}", &string_spec, "needs a condition");
    expect_error("{step: filter, min: 2, max: 1}", &string_spec, "min is larger than max");
    expect_error("{step: filter, min-bytes: 2KiB, max-bytes: 2}", &string_spec, "min-bytes");
    expect_error("{step: filter, min-length: 2, max-length: 1}", &string_spec, "min-length");
    expect_error("{step: filter, min-shape: [1, 3], max-shape: [2, 2]}", &string_spec, "min-shape");
    expect_error("{step: filter, min-shape: [1.5]}", &string_spec, "no whole number");
    expect_error("{step: filter, min-shape: [1,1,1,1,1,1,1,1,1]}", &string_spec, "more than 8");
    expect_error("{step: filter, min-length: -1}", &string_spec, "must be from");
    expect_error("{step: filter, in: []}", &string_spec, "empty list");
    expect_error("{step: filter, in: [true]}", &string_spec, "a list of texts and numbers");
    expect_error("{step: filter, in: 5}", &string_spec, "a list of texts and numbers");
    expect_error("{step: filter, min: 1}", &string_spec, "needs one number, gets string");
    const presto_tensor_spec image = {PRESTO_UINT8, 3, {-1, -1, 3}};
    expect_error("{step: filter, min-shape: [1,1,1,1]}", &image, "gets uint8[?,?,?]");
}
END_TEST

/* A dataset records the pipeline: what is read back must be the same step. */
START_TEST(a_pipeline_with_a_filter_survives_being_recorded) {
    static const char yaml[] =
        "name: t\nsource: {type: files}\nsteps:\n  - {step: read-file}\n"
        "  - {step: filter, feature: label, in: [1, '2', cat, -1.5], not-in: [3], "
        "min-bytes: 1KiB, max-shape: [4, 5], yields: kept}\n";
    presto_pipeline *first, *second;
    presto_error err;
    bool same = false;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "t", NULL, &first, &err), &err);
    const char *json = presto_pipeline_json(first);
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(json), "t", NULL, &second, &err), &err);
    ck_assert_str_eq(presto_pipeline_json(second), json);
    ck_assert_ok(presto__pipeline_same(second, json, &same, &err), &err);
    ck_assert(same);
    presto_pipeline_free(first);
    presto_pipeline_free(second);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        numbers_are_kept_between_min_and_max_and_from_lists,
        numbers_have_a_point_in_any_locale,
        every_dtype_is_compared,
        large_numbers_are_compared_exactly,
        texts_are_kept_by_length_and_from_lists,
        tensors_are_kept_by_shape_and_bytes,
        a_sample_without_the_feature_fails_or_is_dropped_or_kept,
        without_a_feature_it_looks_at_its_input,
        wrong_options_are_refused,
        a_pipeline_with_a_filter_survives_being_recorded,
    };
    return presto_check_main("filter", tests, sizeof tests / sizeof tests[0], 60);
}
