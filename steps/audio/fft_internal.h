/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complex Fourier transforms of eight signals at once, one in each lane of a vector: the KissFFT of
 * Eigen's headers, with such a vector as its scalar. All kernels give the same bits.
 */
#ifndef PRESTO_STEPS_FFT_INTERNAL_H
#define PRESTO_STEPS_FFT_INTERNAL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRESTO__FFT_LANES 8
#define PRESTO__FFT_ALIGNMENT 32 /* of all arrays, in bytes */

/** A transform for one kind of processor. The plans are opaque; a plan serves one thread at
 * once. */
typedef struct presto__fft_kernel {
    /** A plan for `length` points, of prime factors 2, 3 and 5. NULL: no memory. */
    void *(*plan_new)(size_t length);
    void (*plan_free)(void *plan); /* NULL is fine */
    /** `in` and `out` are [length][2][PRESTO__FFT_LANES]: real parts, imaginary parts. They do not
     * overlap. */
    void (*run)(void *plan, const float *in, float *out);
} presto__fft_kernel;

extern const presto__fft_kernel presto__fft_portable;
#if defined(__x86_64__)
extern const presto__fft_kernel presto__fft_avx2;
#endif

#ifdef __cplusplus
}
#endif

#endif
