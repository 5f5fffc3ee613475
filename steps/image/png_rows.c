/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undoing PNG's row filters. Each byte is predicted from those to the left (a), above (b), and
 * above left (c), at the same place of their pixels. So the bytes of a pixel are independent lanes,
 * but pixels depend on the one before: a vector holds one pixel.
 */
#include "png_fast_internal.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* ---- portable ---- */

static void undo_none(uint8_t *dst, const uint8_t *src, const uint8_t *prev, size_t bytes) {
    (void)prev;
    memcpy(dst, src, bytes);
}

static void undo_up(uint8_t *dst, const uint8_t *src, const uint8_t *prev, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        dst[i] = (uint8_t)(src[i] + prev[i]);
}

INLINE void undo_sub(uint8_t *dst, const uint8_t *src, size_t pixels, size_t lanes) {
    uint8_t a[PRESTO__PNG_MAX_LANES] = {0};
    for (size_t i = 0; i < pixels * lanes; i += lanes)
        for (size_t k = 0; k < lanes; k++)
            dst[i + k] = a[k] = (uint8_t)(src[i + k] + a[k]);
}

INLINE void undo_average(uint8_t *dst, const uint8_t *src, const uint8_t *prev, size_t pixels,
                         size_t lanes) {
    uint8_t a[PRESTO__PNG_MAX_LANES] = {0};
    for (size_t i = 0; i < pixels * lanes; i += lanes)
        for (size_t k = 0; k < lanes; k++)
            dst[i + k] = a[k] = (uint8_t)(src[i + k] + (a[k] + prev[i + k]) / 2);
}

/* Of a, b and c the one nearest to a + b - c; the first of equals. */
INLINE uint8_t paeth(int a, int b, int c) {
    int pa = b - c, pb = a - c, pc = pa + pb;
    pa = pa < 0 ? -pa : pa;
    pb = pb < 0 ? -pb : pb;
    pc = pc < 0 ? -pc : pc;
    int nearest = pb <= pc ? b : c;
    return (uint8_t)(pa <= pb && pa <= pc ? a : nearest);
}

INLINE void undo_paeth(uint8_t *dst, const uint8_t *src, const uint8_t *prev, size_t pixels,
                       size_t lanes) {
    uint8_t a[PRESTO__PNG_MAX_LANES] = {0}, c[PRESTO__PNG_MAX_LANES] = {0};
    for (size_t i = 0; i < pixels * lanes; i += lanes)
        for (size_t k = 0; k < lanes; k++) {
            uint8_t b = prev[i + k];
            dst[i + k] = a[k] = (uint8_t)(src[i + k] + paeth(a[k], b, c[k]));
            c[k] = b;
        }
}

/* The five functions for a number of lanes: PREFIX_LANES_none, ... and their table PREFIX_LANES. */
#define KERNELS(prefix, lanes)                                                                     \
    static void prefix##_##lanes##_none(uint8_t *dst, const uint8_t *src, const uint8_t *prev,     \
                                        size_t pixels) {                                           \
        undo_none(dst, src, prev, pixels *(lanes));                                                \
    }                                                                                              \
    static void prefix##_##lanes##_sub(uint8_t *dst, const uint8_t *src, const uint8_t *prev,      \
                                       size_t pixels) {                                            \
        (void)prev;                                                                                \
        prefix##_sub(dst, src, pixels, lanes);                                                     \
    }                                                                                              \
    static void prefix##_##lanes##_up(uint8_t *dst, const uint8_t *src, const uint8_t *prev,       \
                                      size_t pixels) {                                             \
        undo_up(dst, src, prev, pixels *(lanes));                                                  \
    }                                                                                              \
    static void prefix##_##lanes##_average(uint8_t *dst, const uint8_t *src, const uint8_t *prev,  \
                                           size_t pixels) {                                        \
        prefix##_average(dst, src, prev, pixels, lanes);                                           \
    }                                                                                              \
    static void prefix##_##lanes##_paeth(uint8_t *dst, const uint8_t *src, const uint8_t *prev,    \
                                         size_t pixels) {                                          \
        prefix##_paeth(dst, src, prev, pixels, lanes);                                             \
    }                                                                                              \
    static const presto__png_unfilter prefix##_##lanes[PRESTO__PNG_FILTERS] = {                    \
        prefix##_##lanes##_none, prefix##_##lanes##_sub, prefix##_##lanes##_up,                    \
        prefix##_##lanes##_average, prefix##_##lanes##_paeth}

KERNELS(undo, 1);
KERNELS(undo, 2);
KERNELS(undo, 3);
KERNELS(undo, 4);

/* ---- SSE2, which every x86-64 has ---- */

#if defined(__x86_64__)
/* A pixel of 3 or 4 bytes. All but the last one of a row may be read and written as 4 bytes: the
 * fourth belongs to the next pixel, which is written later. */
INLINE __m128i load_pixel(const uint8_t *from, size_t bytes) {
    int pixel = 0;
    memcpy(&pixel, from, bytes);
    return _mm_cvtsi32_si128(pixel);
}

INLINE void store_pixel(uint8_t *to, __m128i pixel, size_t bytes) {
    int value = _mm_cvtsi128_si32(pixel);
    memcpy(to, &value, bytes);
}

INLINE __m128i next_sub(__m128i x, __m128i a) {
    return _mm_add_epi8(x, a);
}

INLINE void simd_sub(uint8_t *dst, const uint8_t *src, size_t pixels, size_t lanes) {
    __m128i a = _mm_setzero_si128();
    size_t last = (pixels - 1) * lanes;
    for (size_t i = 0; i < last; i += lanes) {
        a = next_sub(load_pixel(src + i, 4), a);
        store_pixel(dst + i, a, 4);
    }
    store_pixel(dst + last, next_sub(load_pixel(src + last, lanes), a), lanes);
}

/*
 * The instruction rounds up: avg(x, y) = ceil((x + y) / 2). The complements na = 255 - a make it
 * round down: floor((a + b) / 2) = 255 - avg(na, nb). With a' = x + floor((a + b) / 2), modulo 256:
 * na' = 255 - a' = avg(na, nb) - x, which is two instructions from pixel to pixel.
 */
INLINE __m128i next_average(__m128i x, __m128i na, __m128i b, __m128i ones) {
    return _mm_sub_epi8(_mm_avg_epu8(na, _mm_xor_si128(b, ones)), x);
}

INLINE void simd_average(uint8_t *dst, const uint8_t *src, const uint8_t *prev, size_t pixels,
                         size_t lanes) {
    const __m128i ones = _mm_set1_epi8(-1);
    __m128i na = ones;
    size_t last = (pixels - 1) * lanes;
    for (size_t i = 0; i < last; i += lanes) {
        na = next_average(load_pixel(src + i, 4), na, load_pixel(prev + i, 4), ones);
        store_pixel(dst + i, _mm_xor_si128(na, ones), 4);
    }
    na = next_average(load_pixel(src + last, lanes), na, load_pixel(prev + last, lanes), ones);
    store_pixel(dst + last, _mm_xor_si128(na, ones), lanes);
}

INLINE __m128i absolute(__m128i x) {
    return _mm_max_epi16(x, _mm_sub_epi16(_mm_setzero_si128(), x));
}

INLINE __m128i choose(__m128i mask, __m128i yes, __m128i no) {
    return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

/* As paeth(), in lanes of 16 bits whose upper halves are 0. */
INLINE __m128i next_paeth(__m128i x, __m128i a, __m128i b, __m128i c) {
    __m128i to_a = _mm_sub_epi16(b, c), to_b = _mm_sub_epi16(a, c);
    __m128i pa = absolute(to_a), pb = absolute(to_b), pc = absolute(_mm_add_epi16(to_a, to_b));
    __m128i least = _mm_min_epi16(pc, _mm_min_epi16(pa, pb));
    __m128i nearest = choose(_mm_cmpeq_epi16(pb, least), b, c);
    return _mm_add_epi8(x, choose(_mm_cmpeq_epi16(pa, least), a, nearest));
}

INLINE void simd_paeth(uint8_t *dst, const uint8_t *src, const uint8_t *prev, size_t pixels,
                       size_t lanes) {
    const __m128i zero = _mm_setzero_si128();
    __m128i a = zero, c = zero, b;
    size_t last = (pixels - 1) * lanes;
    for (size_t i = 0; i < last; i += lanes) {
        b = _mm_unpacklo_epi8(load_pixel(prev + i, 4), zero);
        a = next_paeth(_mm_unpacklo_epi8(load_pixel(src + i, 4), zero), a, b, c);
        c = b;
        store_pixel(dst + i, _mm_packus_epi16(a, a), 4);
    }
    b = _mm_unpacklo_epi8(load_pixel(prev + last, lanes), zero);
    a = next_paeth(_mm_unpacklo_epi8(load_pixel(src + last, lanes), zero), a, b, c);
    store_pixel(dst + last, _mm_packus_epi16(a, a), lanes);
}

KERNELS(simd, 3);
KERNELS(simd, 4);
#else
#define simd_3 undo_3
#define simd_4 undo_4
#endif

presto__png_unfilter presto__png_unfilter_of(size_t lanes, unsigned filter, bool use_simd) {
    switch (lanes) {
    case 1:
        return undo_1[filter];
    case 2:
        return undo_2[filter];
    case 3:
        return use_simd ? simd_3[filter] : undo_3[filter];
    default:
        return use_simd ? simd_4[filter] : undo_4[filter];
    }
}
