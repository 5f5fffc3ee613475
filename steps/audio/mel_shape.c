/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window and the mel weights for one sampling rate, as tf.signal has them: hann_window
 * (periodic) and linear_to_mel_weight_matrix (HTK's mel scale, triangles in mels, DC left out).
 * The weights are computed in float32 in the order of TensorFlow: where a band has but one bin, at
 * the foot of its triangle, the rounding shows.
 */
#include <math.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "mel_internal.h"

static float mel_of(float hertz) {
    return 1127.0f * logf(1.0f + hertz / 700.0f);
}

static size_t samples_of(double ms, int64_t rate) {
    return (size_t)floor(ms * (double)rate / 1000.0 + 1e-6);
}

static presto_status check_fit(const presto__mel_shape *shape, const presto__mel_options *options,
                               presto_error *err) {
    long rate = (long)shape->rate;
    if (options->upper_hz * 2 > (double)shape->rate)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "upper-edge is %g Hz, more than half of the sampling rate, %ld Hz",
                           options->upper_hz, rate);
    if (shape->window == 0 || shape->stride == 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "%s is less than one sample at a sampling rate of %ld Hz",
                           shape->window == 0 ? "window" : "stride", rate);
    if (shape->window > shape->fft_length)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "the window has %zu sample%s at a sampling rate of %ld Hz, fft-length "
                           "is %zu",
                           shape->window, presto_plural(shape->window), rate, shape->fft_length);
    return PRESTO_OK;
}

/* tf.signal makes windows of odd length symmetric, also if they are to be periodic. The cosine's
 * argument is rounded to float32 there, which shows in quiet bands beside loud ones. */
static void fill_window(presto__mel_shape *shape) {
    float period = (float)(shape->window % 2 == 0 ? shape->window : shape->window - 1);
    for (size_t i = 0; i < shape->window; i++) {
        float angle = 6.28318531f * (float)i / period;
        shape->hann[i] = shape->window == 1 ? 1.0f : 0.5f - 0.5f * (float)cos((double)angle);
    }
}

static void fill_turns(presto__mel_shape *shape) {
    const double pi = 3.14159265358979323846;
    for (size_t i = 0; i < shape->bin_count; i++) {
        double angle = 2 * pi * (double)(shape->first_bin + i) / (double)shape->fft_length;
        shape->turns[2 * i] = (float)cos(angle);
        shape->turns[2 * i + 1] = (float)sin(angle);
    }
}

/* ---- weights ---- */

/* Bands are triangles between equidistant edges: band i has the edges i, i + 1 and i + 2. */
typedef struct mel_scale {
    float first_edge, step;
    float last_edge;
    size_t edge_count;
    float bin_hertz;
} mel_scale;

static float edge_at(const mel_scale *scale, size_t i) {
    return i + 1 == scale->edge_count ? scale->last_edge
                                      : scale->first_edge + (float)i * scale->step;
}

static float weight_of(const mel_scale *scale, size_t band, size_t bin) {
    if (bin == 0)
        return 0;
    float mel = mel_of((float)bin * scale->bin_hertz);
    float lower = edge_at(scale, band);
    float center = edge_at(scale, band + 1);
    float upper = edge_at(scale, band + 2);
    return fmaxf(0, fminf((mel - lower) / (center - lower), (upper - mel) / (upper - center)));
}

static mel_scale scale_of(const presto__mel_shape *shape, const presto__mel_options *options) {
    mel_scale scale = {.first_edge = mel_of((float)options->lower_hz),
                       .last_edge = mel_of((float)options->upper_hz),
                       .edge_count = options->bands + 2};
    size_t nyquist_bin = shape->fft_length / 2;
    scale.step = (scale.last_edge - scale.first_edge) / (float)(scale.edge_count - 1);
    scale.bin_hertz = (float)shape->rate / 2.0f / (float)nyquist_bin;
    return scale;
}

/* The bins between the band's edges, and one more at each side: weights there may round to 0. */
static void span_of(const presto__mel_shape *shape, const mel_scale *scale, size_t band,
                    size_t *first_out, size_t *end_out) {
    double lower = 700 * (exp(edge_at(scale, band) / 1127.0) - 1) / scale->bin_hertz;
    double upper = 700 * (exp(edge_at(scale, band + 2) / 1127.0) - 1) / scale->bin_hertz;
    size_t bins = shape->fft_length / 2 + 1;
    size_t first = lower < 1 ? 0 : (size_t)lower - 1;
    size_t end = (size_t)upper + 3;
    end = end < bins ? end : bins;
    while (first < end && !(weight_of(scale, band, first) > 0))
        first++;
    while (end > first && !(weight_of(scale, band, end - 1) > 0))
        end--;
    *first_out = first;
    *end_out = end;
}

static size_t find_spans(presto__mel_shape *shape, const mel_scale *scale) {
    size_t total = 0;
    size_t least = SIZE_MAX;
    size_t most = 0;
    for (size_t i = 0; i < shape->band_count; i++) {
        presto__mel_band *band = &shape->bands[i];
        size_t end;
        span_of(shape, scale, i, &band->first, &end);
        band->count = end - band->first;
        total += band->count;
        if (band->count > 0 && band->first < least)
            least = band->first;
        if (band->count > 0 && end > most)
            most = end;
    }
    shape->first_bin = total == 0 ? 0 : least;
    shape->bin_count = total == 0 ? 0 : most - least;
    return total;
}

static void fill_weights(presto__mel_shape *shape, const mel_scale *scale) {
    float *next = shape->all_weights;
    for (size_t i = 0; i < shape->band_count; i++) {
        presto__mel_band *band = &shape->bands[i];
        band->weights = next;
        for (size_t k = 0; k < band->count; k++)
            *next++ = weight_of(scale, i, band->first + k);
        band->first = band->count == 0 ? 0 : band->first - shape->first_bin;
    }
}

/* ---- the shape ---- */

static presto_status fill(presto__mel_shape *shape, const presto__mel_options *options,
                          presto_error *err) {
    mel_scale scale = scale_of(shape, options);
    shape->hann = calloc(shape->window + 3, sizeof *shape->hann);
    shape->bands = calloc(shape->band_count, sizeof *shape->bands);
    if (shape->hann == NULL || shape->bands == NULL)
        return presto_fail_memory(err, shape->window * sizeof *shape->hann);
    size_t weights = find_spans(shape, &scale);
    shape->all_weights = calloc(weights + 1, sizeof *shape->all_weights);
    shape->turns = calloc(shape->bin_count + 1, 2 * sizeof *shape->turns);
    if (shape->all_weights == NULL || shape->turns == NULL)
        return presto_fail_memory(err, weights * sizeof *shape->all_weights);
    fill_window(shape);
    fill_turns(shape);
    fill_weights(shape, &scale);
    return PRESTO_OK;
}

presto_status presto__mel_shape_init(presto__mel_shape *shape, const presto__mel_options *options,
                                     int64_t rate, presto_error *err) {
    *shape = (presto__mel_shape){.rate = rate,
                                 .window = samples_of(options->window_ms, rate),
                                 .stride = samples_of(options->stride_ms, rate),
                                 .fft_length = options->fft_length,
                                 .band_count = options->bands,
                                 .log_offset = options->log_offset};
    presto_status status = check_fit(shape, options, err);
    if (status == PRESTO_OK)
        status = fill(shape, options, err);
    if (status < 0)
        presto__mel_shape_done(shape);
    return status;
}

void presto__mel_shape_done(presto__mel_shape *shape) {
    free(shape->hann);
    free(shape->turns);
    free(shape->all_weights);
    free(shape->bands);
    *shape = (presto__mel_shape){0};
}
