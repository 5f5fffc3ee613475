/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight frames of a spectrogram at once, one in each lane of a vector: no step needs a sum across a
 * vector, and the short, uneven triangles of the mel scale cost no more than long ones.
 *
 * A real transform of length N is a complex one of length N / 2 over pairs of samples, and then,
 * for bin k with z = Z[k], y = conj(Z[N / 2 - k]):
 *     X[k] = (z + y) / 2 - i e^(-2 pi i k / N) (z - y) / 2
 * which is done for those bins only that a band needs.
 */
#include <math.h>

#include "mel_internal.h"

#if PRESTO_HAVE_EIGEN
#define LANES PRESTO__FFT_LANES
#define BODY static inline __attribute__((always_inline))

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t words __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef float quad __attribute__((vector_size(4 * sizeof(float))));

BODY lanes load(const float *from) {
    return *(const lanes *)(const void *)from;
}

BODY void store(float *to, lanes value) {
    *(lanes *)(void *)to = value;
}

BODY quad load_quad(const float *from) {
    quad value;
    memcpy(&value, from, sizeof value);
    return value;
}

BODY lanes join(quad low, quad high) {
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* Transposes the two 4 x 4 matrices in the lower and upper halves of four rows. */
BODY void transpose(lanes rows[4]) {
    lanes a = __builtin_shufflevector(rows[0], rows[1], 0, 8, 1, 9, 4, 12, 5, 13);
    lanes b = __builtin_shufflevector(rows[0], rows[1], 2, 10, 3, 11, 6, 14, 7, 15);
    lanes c = __builtin_shufflevector(rows[2], rows[3], 0, 8, 1, 9, 4, 12, 5, 13);
    lanes d = __builtin_shufflevector(rows[2], rows[3], 2, 10, 3, 11, 6, 14, 7, 15);
    rows[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
    rows[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
    rows[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
    rows[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

/* Windowed samples, frames side by side. Lanes without a frame repeat the last one. */
BODY void gather(const presto__mel_shape *shape, const float *signal, size_t frames, float *in) {
    const float *starts[LANES];
    for (size_t i = 0; i < LANES; i++)
        starts[i] = signal + (i < frames ? i : frames - 1) * shape->stride;
    for (size_t n = 0; n < shape->window; n += 4) {
        quad window = load_quad(shape->hann + n);
        lanes rows[4];
        for (int i = 0; i < 4; i++)
            rows[i] =
                join(load_quad(starts[i] + n) * window, load_quad(starts[i + 4] + n) * window);
        transpose(rows);
        for (size_t i = 0; i < 4; i++)
            store(in + (n + i) * LANES, rows[i]);
    }
}

BODY void amplitudes(const presto__mel_shape *shape, const float *spectrum, float *out) {
    size_t half = shape->fft_length / 2;
    for (size_t i = 0; i < shape->bin_count; i++) {
        size_t bin = shape->first_bin + i;
        const float *z = spectrum + (bin == half ? 0 : bin) * 2 * LANES;
        const float *y = spectrum + (bin == 0 ? 0 : half - bin) * 2 * LANES;
        lanes even_re = load(z) + load(y);
        lanes even_im = load(z + LANES) - load(y + LANES);
        lanes odd_re = load(z + LANES) + load(y + LANES);
        lanes odd_im = load(y) - load(z);
        float turn_re = shape->turns[2 * i];
        float turn_im = -shape->turns[2 * i + 1];
        lanes re = even_re + (odd_re * turn_re - odd_im * turn_im);
        lanes im = even_im + (odd_im * turn_re + odd_re * turn_im);
        lanes power = re * re + im * im;
        for (int k = 0; k < LANES; k++) /* the halves of the formula are taken here */
            out[i * LANES + (size_t)k] = 0.5f * sqrtf(power[k]);
    }
}

/*
 * Natural logarithms of positive normal numbers. x = 2^e m with m from sqrt(1/2) to sqrt(2), and
 * log m = 2 artanh((m - 1) / (m + 1)), whose series ends below float32's resolution.
 */
BODY lanes logarithm(lanes x) {
    const int32_t root_half = 0x3f3504f3; /* the bits of sqrt(1/2) */
    words shifted = (words)x - root_half;
    lanes m = (lanes)((shifted & 0x7fffff) + root_half);
    lanes e = __builtin_convertvector(shifted >> 23, lanes);
    lanes s = (m - 1.0f) / (m + 1.0f);
    lanes s2 = s * s;
    lanes tail = s2 * (1.0f / 3 + s2 * (1.0f / 5 + s2 * (1.0f / 7 + s2 * (1.0f / 9))));
    return e * 0.693147181f + 2.0f * (s + s * tail);
}

BODY void log_bands(const presto__mel_shape *shape, const float *amplitude, float *out) {
    for (size_t i = 0; i < shape->band_count; i++) {
        const presto__mel_band *band = &shape->bands[i];
        const float *from = amplitude + band->first * LANES;
        lanes sum = {0};
        for (size_t k = 0; k < band->count; k++)
            sum += load(from + k * LANES) * band->weights[k];
        store(out + i * LANES, logarithm(sum + shape->log_offset));
    }
}

/* From one band after the other to one frame after the other. */
BODY void scatter(const float *bands, size_t band_count, size_t frames, float *out) {
    size_t whole = band_count - band_count % 4;
    for (size_t n = 0; n < whole; n += 4) {
        lanes rows[4];
        for (size_t i = 0; i < 4; i++)
            rows[i] = load(bands + (n + i) * LANES);
        transpose(rows);
        for (size_t i = 0; i < frames; i++)
            memcpy(out + i * band_count + n, (const float *)&rows[i % 4] + i / 4 * 4,
                   4 * sizeof(float));
    }
    for (size_t n = whole; n < band_count; n++)
        for (size_t i = 0; i < frames; i++)
            out[i * band_count + n] = bands[n * LANES + i];
}

#define FRAMES(name, target, fft)                                                                  \
    target static void name##_before(const presto__mel_shape *shape, presto__mel_memory *memory,   \
                                     const float *signal, size_t frames) {                         \
        gather(shape, signal, frames, memory->in);                                                 \
    }                                                                                              \
    target static void name##_after(const presto__mel_shape *shape, presto__mel_memory *memory,    \
                                    size_t frames, float *out) {                                   \
        amplitudes(shape, memory->out, memory->amplitude);                                         \
        log_bands(shape, memory->amplitude, memory->bands);                                        \
        scatter(memory->bands, shape->band_count, frames, out);                                    \
    }                                                                                              \
    static void name(const presto__mel_shape *shape, presto__mel_memory *memory,                   \
                     const float *signal, size_t frames, float *out) {                             \
        name##_before(shape, memory, signal, frames);                                              \
        (fft)->run(memory->plan, memory->in, memory->out);                                         \
        name##_after(shape, memory, frames, out);                                                  \
    }                                                                                              \
    static const presto__mel_kernel name##_kernel = {fft, name}

FRAMES(portable, , &presto__fft_portable);
#if defined(__x86_64__)
FRAMES(avx2, __attribute__((target("avx2"))), &presto__fft_avx2);
#endif

const presto__mel_kernel *presto__mel_kernel_choose(void) {
#if defined(__x86_64__)
    if (presto__use_avx2())
        return &avx2_kernel;
#endif
    return &portable_kernel;
}

#else

const presto__mel_kernel *presto__mel_kernel_choose(void) {
    return NULL;
}

#endif
