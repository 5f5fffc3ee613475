/* SPDX-License-Identifier: Apache-2.0 */
/* mel-spectrogram inside: what is computed once for a sampling rate, and the kernels. */
#ifndef PRESTO_STEPS_MEL_INTERNAL_H
#define PRESTO_STEPS_MEL_INTERNAL_H

#include "audio_internal.h"
#include "fft_internal.h"

/** As the step's options say. */
typedef struct presto__mel_options {
    double window_ms, stride_ms;
    size_t fft_length;
    size_t bands;
    double lower_hz, upper_hz;
    float log_offset;
    int64_t rate; /* of samples without the feature; 0: they are errors */
} presto__mel_options;

/** A row of the weights: those that are not 0. */
typedef struct presto__mel_band {
    size_t first; /* bin, counted from first_bin */
    size_t count; /* may be 0 */
    const float *weights;
} presto__mel_band;

/** Everything that depends on the sampling rate. */
typedef struct presto__mel_shape {
    int64_t rate;
    size_t window, stride; /* samples */
    size_t fft_length;
    size_t first_bin, bin_count; /* the bins that any band needs */
    size_t band_count;
    float log_offset;
    float *hann;        /* [window], zeros up to a multiple of 4 */
    float *turns;       /* [bin_count][2]: cos and sin of 2 pi bin / fft_length */
    float *all_weights; /* of all bands */
    presto__mel_band *bands;
} presto__mel_shape;

/**
 * Samples of a window or stride, rounded down.
 * Returns: PRESTO_OK; PRESTO_ERR_TYPE (the options do not fit the rate); PRESTO_ERR_MEMORY.
 */
presto_status presto__mel_shape_init(presto__mel_shape *shape, const presto__mel_options *options,
                                     int64_t rate, presto_error *err);
void presto__mel_shape_done(presto__mel_shape *shape);

/** A worker's memory for the kernels: all arrays are aligned for the FFT. */
typedef struct presto__mel_memory {
    void *plan;       /* of fft_length / 2 points */
    float *in, *out;  /* [fft_length][lanes]; behind `in` are 4 rows more */
    float *amplitude; /* [fft_length / 2 + 1][lanes] */
    float *bands;     /* [band_count][lanes] */
} presto__mel_memory;

/**
 * Frames that start at signal[0], signal[stride], ...: 1 to PRESTO__FFT_LANES. The signal has 3
 * finite values behind the last frame. `out` is [frames][band_count]. memory->in is 0 from `window`
 * on, and stays so.
 */
typedef void (*presto__mel_frames_fn)(const presto__mel_shape *shape, presto__mel_memory *memory,
                                      const float *signal, size_t frames, float *out);

typedef struct presto__mel_kernel {
    const presto__fft_kernel *fft;
    presto__mel_frames_fn frames;
} presto__mel_kernel;

/** The best one that this processor has; NULL: none is in this build. */
const presto__mel_kernel *presto__mel_kernel_choose(void);

#endif
