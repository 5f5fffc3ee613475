/* SPDX-License-Identifier: Apache-2.0 */
/* mel-spectrogram against a plain transform in double, and inputs and options that do not fit. */
#include <math.h>
#include <presto/rng.h>

#include "audio_check.h"

/* ---- mel-spectrogram against a plain transform ---- */

typedef struct mel_case {
    int64_t rate;
    double window_ms, stride_ms;
    size_t fft, bands;
    double lower, upper, offset;
    size_t samples;
} mel_case;

static double mel_of(double hertz) {
    return 1127 * log1p(hertz / 700);
}

/* Amplitudes of all bins, term by term. */
static void plain_transform(const float *frame, size_t window, size_t fft, double *out) {
    const double pi = acos(-1.0);
    for (size_t k = 0; k <= fft / 2; k++) {
        double re = 0, im = 0;
        for (size_t n = 0; n < window; n++) {
            double turn = 0.5 - 0.5 * cos(2 * pi * (double)n / (double)(window - window % 2));
            double angle = 2 * pi * (double)(k * n % fft) / (double)fft;
            re += (double)frame[n] * turn * cos(angle);
            im -= (double)frame[n] * turn * sin(angle);
        }
        out[k] = sqrt(re * re + im * im);
    }
}

static double plain_band(const mel_case *c, const double *amplitude, size_t band) {
    double step = (mel_of(c->upper) - mel_of(c->lower)) / (double)(c->bands + 1);
    double lower = mel_of(c->lower) + (double)band * step;
    double sum = 0;
    for (size_t k = 1; k <= c->fft / 2; k++) {
        double mel = mel_of((double)k * (double)c->rate / (double)c->fft);
        double weight = fmin((mel - lower) / step, (lower + 2 * step - mel) / step);
        sum += fmax(0, weight) * amplitude[k];
    }
    return log(sum + c->offset);
}

static void check_case(const mel_case *c, const float *samples) {
    char step[256];
    stage s;
    presto_error err;
    presto_tensor in = {.spec = {PRESTO_FLOAT32, 1, {(int64_t)c->samples}}, .data = samples};
    snprintf(step, sizeof step,
             "{step: decode-audio}, {step: mel-spectrogram, window: %g, stride: %g, fft-length: "
             "%zu, bands: %zu, lower-edge: %g, upper-edge: %g, log-offset: %g}",
             c->window_ms, c->stride_ms, c->fft, c->bands, c->lower, c->upper, c->offset);
    ck_assert_ok(stage_open(&s, step, 2, &in.spec, &err), &err);
    ck_assert_ok(stage_run(&s, &in, c->rate, &err), &err);
    const presto_tensor *got = stage_output(&s);
    size_t window = (size_t)floor(c->window_ms * (double)c->rate / 1000 + 1e-6);
    size_t stride = (size_t)floor(c->stride_ms * (double)c->rate / 1000 + 1e-6);
    size_t frames = c->samples < window ? 0 : 1 + (c->samples - window) / stride;
    ck_assert_int_eq(got->spec.dims[0], (int64_t)frames);
    ck_assert_int_eq(got->spec.dims[1], (int64_t)c->bands);
    double *amplitude = calloc(c->fft / 2 + 1, sizeof *amplitude);
    for (size_t i = 0; i < frames; i++) {
        plain_transform(samples + i * stride, window, c->fft, amplitude);
        for (size_t b = 0; b < c->bands; b++) {
            double want = plain_band(c, amplitude, b);
            double value = ((const float *)got->data)[i * c->bands + b];
            ck_assert_msg(fabs(want - value) < 1e-3,
                          "fft %zu, frame %zu of %zu, band %zu: %g, not %g", c->fft, i, frames, b,
                          value, want);
        }
    }
    free(amplitude);
    stage_close(&s);
}

START_TEST(spectrograms_of_all_shapes_equal_a_plain_transform) {
    static const mel_case cases[] = {
        {16000, 20, 10, 1024, 80, 125, 3800, 1e-8, 320 + 9 * 160 + 3},
        {16000, 20, 10, 320, 20, 0, 8000, 1e-3, 320 + 7 * 160},
        {16000, 25, 10, 512, 40, 20, 7600, 1e-6, 400 + 8 * 160},
        {8000, 32, 8, 256, 13, 100, 4000, 1e-6, 256 + 64 * 15},
        {8000, 5, 2.5, 50, 3, 300, 4000, 1e-2, 40 + 20 * 3},
        {22050, 23, 11, 600, 33, 50, 11025, 1e-6, 507 + 242},
        {16000, 1, 0.5, 24, 2, 1000, 8000, 1e-2, 16 + 8 * 17},
        {1000, 8, 1, 8, 1, 100, 500, 1, 8},
        {48000, 20, 10, 1024, 64, 300, 20000, 1e-6, 959},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_rng rng = test_rng(100 + i);
        float *samples = calloc(cases[i].samples, sizeof *samples);
        for (size_t k = 0; k < cases[i].samples; k++)
            samples[k] = (float)presto_rng_below(&rng, 65536) / 32768.0f - 1.0f;
        check_case(&cases[i], samples);
        free(samples);
    }
}
END_TEST

static uint8_t *mel_of_noise(size_t count, bool is_int16, size_t *bytes_out) {
    static const char *steps =
        "{step: decode-audio}, {step: mel-spectrogram, rate: 16000, bands: 41}";
    presto_rng rng = test_rng(7);
    /* One byte off, so that nothing is aligned. */
    uint8_t *memory = malloc(count * sizeof(float) + 1);
    for (size_t i = 0; i < count; i++) {
        int16_t value = (int16_t)((int)presto_rng_below(&rng, 65536) - 32768);
        float number = (float)value / 32768.0f;
        if (is_int16)
            memcpy(memory + 1 + i * sizeof value, &value, sizeof value);
        else
            memcpy(memory + 1 + i * sizeof number, &number, sizeof number);
    }
    stage s;
    presto_error err;
    presto_tensor in = {.spec = {is_int16 ? PRESTO_INT16 : PRESTO_FLOAT32, 1, {(int64_t)count}},
                        .data = memory + 1};
    ck_assert_ok(stage_open(&s, steps, 2, &in.spec, &err), &err);
    ck_assert_ok(stage_run(&s, &in, 0, &err), &err);
    uint8_t *out = rig_copy(stage_output(&s));
    *bytes_out = presto_tensor_bytes(stage_output(&s));
    stage_close(&s);
    free(memory);
    return out;
}

START_TEST(all_kernels_and_both_dtypes_give_the_same_bits) {
    for (size_t count = 320; count < 320 + 20 * 160; count += 531) {
        uint8_t *out[4];
        size_t bytes[4];
        for (int i = 0; i < 4; i++) {
            ck_assert_int_eq(setenv("PRESTO_PORTABLE", i < 2 ? "1" : "0", 1), 0);
            out[i] = mel_of_noise(count, i % 2 == 0, &bytes[i]);
        }
        for (int i = 1; i < 4; i++) {
            ck_assert_uint_eq(bytes[i], bytes[0]);
            ck_assert(memcmp(out[i], out[0], bytes[0]) == 0);
        }
        for (int i = 0; i < 4; i++)
            free(out[i]);
    }
}
END_TEST

/* ---- inputs that do not fit ---- */

START_TEST(rates_come_with_the_sample_or_from_the_option) {
    const presto_tensor_spec spec = {PRESTO_INT16, 1, {9600}};
    int16_t *silence = calloc(9600, sizeof *silence);
    presto_tensor in = {.spec = spec, .data = silence};
    presto_error err;
    stage s;
    ck_assert_ok(stage_open(&s, "{step: decode-audio}, {step: mel-spectrogram}", 2, &spec, &err),
                 &err);
    ck_assert_status(stage_run(&s, &in, 0, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "no feature 'rate'"));
    /* More rates than a worker keeps ready, and back to the first. */
    static const int64_t rates[] = {8000, 16000, 22050, 24000, 32000, 44100, 48000, 8000, 16000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        ck_assert_ok(stage_run(&s, &in, rates[i], &err), &err);
        int64_t window = rates[i] / 50;
        ck_assert_int_eq(stage_output(&s)->spec.dims[0], 1 + (9600 - window) / (rates[i] / 100));
        const float *values = stage_output(&s)->data;
        for (uint64_t k = 0; k < presto_spec_elements(&stage_output(&s)->spec); k++)
            ck_assert_float_eq_tol(values[k], -18.420681f, 1e-5f);
    }
    ck_assert_status(stage_run(&s, &in, 96000, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "fft-length is 1024"));
    ck_assert_status(stage_run(&s, &in, 6000, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "upper-edge is 3800 Hz"));
    ck_assert_status(stage_run(&s, &in, -1, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ok(stage_run(&s, &in, 16000, &err), &err);
    stage_close(&s);
    free(silence);
}
END_TEST

START_TEST(samples_that_are_no_numbers_are_errors_and_named) {
    static const float strange[] = {NAN, INFINITY, -INFINITY, 2e9f};
    const presto_tensor_spec spec = {PRESTO_FLOAT32, 1, {4000}};
    float *samples = calloc(4000, sizeof *samples);
    presto_tensor in = {.spec = spec, .data = samples};
    presto_error err;
    stage s;
    ck_assert_ok(stage_open(&s, "{step: decode-audio}, {step: mel-spectrogram}", 2, &spec, &err),
                 &err);
    for (size_t i = 0; i < 4; i++) {
        samples[2345] = strange[i];
        ck_assert_status(stage_run(&s, &in, 16000, &err), PRESTO_ERR_CORRUPT, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "sample 2345 is "));
        samples[2345] = 1e9f;
        ck_assert_ok(stage_run(&s, &in, 16000, &err), &err);
        const float *values = stage_output(&s)->data;
        for (uint64_t k = 0; k < presto_spec_elements(&stage_output(&s)->spec); k++)
            ck_assert_msg(isfinite(values[k]), "value %ju", (uintmax_t)k);
    }
    stage_close(&s);
    free(samples);
}
END_TEST

START_TEST(options_that_cannot_be_are_refused_at_once) {
    static const char *const bad[] = {
        "fft-length: 1022", "fft-length: 1025", "fft-length: 14",  "lower-edge: 3800",
        "bands: 0",         "log-offset: 0",    "log-offset: nan", "window: 0",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char step[128];
        stage s;
        presto_error err;
        snprintf(step, sizeof step, "{step: decode-audio}, {step: mel-spectrogram, %s}", bad[i]);
        presto_status status = stage_open(&s, step, 1, &string_spec, &err);
        ck_assert_msg(status < 0, "%s is taken", bad[i]);
        stage_close(&s);
    }
    stage s;
    presto_error err;
    const presto_tensor_spec image = {PRESTO_UINT8, 3, {-1, -1, 3}};
    ck_assert_status(
        stage_open(&s, "{step: decode-audio}, {step: mel-spectrogram}", 2, &image, &err),
        PRESTO_ERR_TYPE, &err);
    stage_close(&s);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        spectrograms_of_all_shapes_equal_a_plain_transform,
        all_kernels_and_both_dtypes_give_the_same_bits,
        rates_come_with_the_sample_or_from_the_option,
        samples_that_are_no_numbers_are_errors_and_named,
        options_that_cannot_be_are_refused_at_once,
    };
    return presto_check_main("mel-spectrogram", tests, sizeof tests / sizeof tests[0], 120);
}
