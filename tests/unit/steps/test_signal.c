/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on signals. tests/live/signals.py compares them with NumPy; here is what that cannot
 * show. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "steps_check.h"

static presto_error err;

static presto_tensor signal_of(const double *values, int64_t length) {
    return (presto_tensor){.spec = {PRESTO_FLOAT64, 2, {2, length}}, .data = values};
}

/* Runs `step` on the tensor, whose result is a copy. */
static double *run_step(const char *step, presto_tensor *tensor) {
    rig r;
    const rig_options options = {0};
    ck_assert_ok(rig_open(&r, step, &tensor->spec, false, &err), &err);
    ck_assert_ok(rig_run(&r, &options, tensor, &err), &err);
    double *copy = (double *)(void *)rig_copy(tensor);
    rig_close(&r);
    return copy;
}

START_TEST(aggregate_gives_power_rms_and_jumps) {
    /* Two periods of three: direct current of 2 V and 3 A, then of 4 V and -1 A. */
    static const double values[] = {2, 2, 2, 4, 4, 4, 3, 3, 3, -1, -1, -1};
    presto_tensor tensor = signal_of(values, 6);
    double *got = run_step("{step: aggregate, reads: value, period: 3}", &tensor);
    static const double wanted[] = {6, -4, 3, 1, 1, 0};
    ck_assert_int_eq(tensor.spec.rank, 2);
    ck_assert_int_eq(tensor.spec.dims[0], 3);
    ck_assert_int_eq(tensor.spec.dims[1], 2);
    for (size_t i = 0; i < 6; i++)
        ck_assert_double_eq(got[i], wanted[i]);
    free(got);
}
END_TEST

START_TEST(a_nan_stays_in_its_period_but_for_the_sum) {
    double values[2 * 4 * 128];
    for (size_t i = 0; i < 1024; i++)
        values[i] = (double)(i % 100);
    values[512 + 130] = (double)NAN; /* the current, second period */
    presto_tensor tensor = signal_of(values, 512);
    double *got = run_step("{step: aggregate, reads: value}", &tensor);
    for (size_t i = 0; i < 12; i++)
        ck_assert_msg(isnan(got[i]) == (i == 1 || i == 5 || i >= 8), "value %zu is %g", i, got[i]);
    free(got);
}
END_TEST

START_TEST(kernels_agree_for_every_period_at_any_address) {
    static uint8_t memory[sizeof(double) * 2 * 3000 + 8];
    for (int64_t period = 1; period <= 1500; period += period < 40 ? 1 : 97) {
        int64_t length = period * (3000 / period);
        for (size_t i = 0; i < 2 * (size_t)length; i++) {
            double value = sin((double)i) * 1000;
            memcpy(memory + 1 + i * sizeof value, &value, sizeof value);
        }
        char step[60];
        double *got[2];
        presto_tensor tensor;
        snprintf(step, sizeof step, "{step: aggregate, reads: value, period: %d}", (int)period);
        for (int portable = 0; portable < 2; portable++) {
            setenv("PRESTO_PORTABLE", portable ? "1" : "0", 1);
            tensor = signal_of(NULL, length);
            tensor.data = memory + 1;
            got[portable] = run_step(step, &tensor);
        }
        ck_assert_msg(memcmp(got[0], got[1], presto_tensor_bytes(&tensor)) == 0, "period %d",
                      (int)period);
        free(got[0]);
        free(got[1]);
    }
    unsetenv("PRESTO_PORTABLE");
}
END_TEST

/* Runs rms on `count` values and gives what came out of it. */
static float *run_rms(const char *step, presto_dtype dtype, int64_t count, const void *values) {
    presto_tensor tensor = {.spec = {dtype, 1, {count}}, .data = values};
    return (float *)(void *)run_step(step, &tensor);
}

START_TEST(rms_is_right_for_bytes_and_floats) {
    static const uint8_t bytes[] = {3, 4, 0, 0, 255, 255, 255, 255};
    static const float floats[] = {-1, 1, -1, 1, 0, 0, 6, 8};
    float *got = run_rms("{step: rms, reads: value, period: 4}", PRESTO_UINT8, 8, bytes);
    ck_assert_float_eq(got[0], 2.5f);
    ck_assert_float_eq(got[1], 255);
    free(got);
    got = run_rms("{step: rms, reads: value, period: 4}", PRESTO_FLOAT32, 8, floats);
    ck_assert_float_eq(got[0], 1);
    ck_assert_float_eq(got[1], 5);
    free(got);
}
END_TEST

START_TEST(rms_agrees_in_all_kernels_for_every_period) {
    static uint8_t memory[4 * 3000 + 1];
    for (size_t i = 0; i < 3000; i++) {
        float value = (float)(i * 2654435761u % 65537) - 30000.0f;
        memcpy(memory + 1 + i * sizeof value, &value, sizeof value);
    }
    for (int64_t period = 1; period <= 1500; period += period < 40 ? 1 : 97)
        for (int is_float = 0; is_float < 2; is_float++) {
            char step[60];
            float *got[2];
            int64_t count = period * (3000 / period);
            snprintf(step, sizeof step, "{step: rms, reads: value, period: %d}", (int)period);
            for (int portable = 0; portable < 2; portable++) {
                setenv("PRESTO_PORTABLE", portable ? "1" : "0", 1);
                got[portable] =
                    run_rms(step, is_float ? PRESTO_FLOAT32 : PRESTO_UINT8, count, memory + 1);
            }
            size_t bytes = (size_t)(3000 / period) * sizeof(float);
            ck_assert_msg(memcmp(got[0], got[1], bytes) == 0, "period %d", (int)period);
            free(got[0]);
            free(got[1]);
        }
    unsetenv("PRESTO_PORTABLE");
}
END_TEST

START_TEST(rms_refuses_what_is_no_signal_of_whole_periods) {
    static const presto_tensor_spec bad[] = {
        {PRESTO_FLOAT64, 1, {500}}, {PRESTO_UINT8, 2, {500, 1}}, {PRESTO_UINT8, 1, {499}}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        presto_pipeline *pipeline;
        presto_plan *plan;
        ck_assert_ok(presto_pipeline_load("synthetic", NULL, &pipeline, &err), &err);
        ck_assert_status(plan_of(pipeline, 0, 1, &bad[i], &plan, &err), PRESTO_ERR_TYPE, &err);
        presto_pipeline_free(pipeline);
    }
}
END_TEST

START_TEST(aggregate_refuses_what_is_no_pair_of_signals) {
    static const presto_tensor_spec bad[] = {
        {PRESTO_FLOAT32, 2, {2, 128}}, {PRESTO_FLOAT64, 1, {256}},  {PRESTO_FLOAT64, 2, {3, 128}},
        {PRESTO_FLOAT64, 2, {2, 127}}, {PRESTO_FLOAT64, 2, {2, 0}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        presto_pipeline *pipeline;
        presto_plan *plan;
        ck_assert_ok(presto_pipeline_load("nilm", NULL, &pipeline, &err), &err);
        ck_assert_status(plan_of(pipeline, 0, 1, &bad[i], &plan, &err), PRESTO_ERR_TYPE, &err);
        presto_pipeline_free(pipeline);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        aggregate_gives_power_rms_and_jumps,
        a_nan_stays_in_its_period_but_for_the_sum,
        kernels_agree_for_every_period_at_any_address,
        aggregate_refuses_what_is_no_pair_of_signals,
        rms_is_right_for_bytes_and_floats,
        rms_agrees_in_all_kernels_for_every_period,
        rms_refuses_what_is_no_signal_of_whole_periods,
    };
    return presto_check_main("signal", tests, sizeof tests / sizeof tests[0], 60);
}
