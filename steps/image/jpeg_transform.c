/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coefficients of blocks to samples: libjpeg-turbo's inverse transforms, as its vector code computes
 * them, to the bit. That code differs from its portable code where intermediate values pass 16 bits;
 * limits of the coefficients keep ACCURATE and the reduced ones out of that range.
 *
 * ACCURATE is JDCT_ISLOW (Loeffler, Ligtenberg, Moschytz 1989, constants of 13 bits). FAST is
 * JDCT_IFAST (Arai, Agui, Nakajima 1988, constants of 8 bits): 16 bits throughout, which may wrap.
 * The reduced ones are those of jidctred.
 */
#include "jpeg_fast_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif PRESTO__JPEG_HAS_NEON
#include <arm_neon.h>
#endif

enum { SIDE = 8, BLOCK = PRESTO__JPEG_BLOCK, CENTER = 128 };

/* A coefficient that is larger has no source of 8 bits. libjpeg's code paths agree below it. */
#define MOST_COEFFICIENT 4080

/* Where the coefficients, row by row, stand in zigzag order. */
static const uint8_t zigzag_of[BLOCK] = {
    0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42, 3,  8,  12, 17, 25, 30,
    41, 43, 9,  11, 18, 24, 31, 40, 44, 53, 10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38,
    46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63,
};

/* For FAST: cos(k * pi / 16) * sqrt(2) of row times column, 1 for k = 0; 14 bits of fraction. */
static const int16_t fast_scales[BLOCK] = {
    16384, 22725, 21407, 19266, 16384, 12873, 8867,  4520, /**/
    22725, 31521, 29692, 26722, 22725, 17855, 12299, 6270, /**/
    21407, 29692, 27969, 25172, 21407, 16819, 11585, 5906, /**/
    19266, 26722, 25172, 22654, 19266, 15137, 10426, 5315, /**/
    16384, 22725, 21407, 19266, 16384, 12873, 8867,  4520, /**/
    12873, 17855, 16819, 15137, 12873, 10114, 6967,  3552, /**/
    8867,  12299, 11585, 10426, 8867,  6967,  4799,  2446, /**/
    4520,  6270,  5906,  5315,  4520,  3552,  2446,  1247};
#define FAST_FRACTION 12 /* of the scales' 14 bits; 2 are kept */

void presto__jpeg_factors_make(presto__jpeg_factors *factors, const uint16_t *quantization,
                               presto__jpeg_method method) {
    for (int i = 0; i < BLOCK; i++) {
        int k = zigzag_of[i], factor = quantization[k];
        factors->limit[k] = (uint16_t)(factor == 0 ? INT16_MAX : MOST_COEFFICIENT / factor);
        if (method == PRESTO__JPEG_FAST)
            factor = (int)(((int64_t)factor * fast_scales[i] + (1 << (FAST_FRACTION - 1))) >>
                           FAST_FRACTION);
        factors->factor[k] = (int16_t)factor;
        for (int lane = 0; lane < 2; lane++) {
            int place = k / SIDE * 2 * SIDE + lane * SIDE + k % SIDE;
            factors->factor_twice[place] = factors->factor[k];
            factors->limit_twice[place] = factors->limit[k];
        }
    }
}

/* ---- portable ---- */

static inline const int16_t *block_at(const presto__jpeg_blocks *blocks, size_t i) {
    size_t shift = blocks->pair - 1;
    return blocks->first + (i >> shift) * blocks->step + (i & shift) * BLOCK;
}

/* Row by row, times their factors. */
static inline bool load_block(const int16_t *from, const presto__jpeg_factors *factors,
                              int16_t *x) {
    int16_t products[BLOCK];
    uint16_t beyond = 0;
    for (int k = 0; k < BLOCK; k++) {
        uint16_t value = (uint16_t)(from[k] < 0 ? -from[k] : from[k]);
        beyond |= (uint16_t)(value > factors->limit[k]);
        products[k] = (int16_t)(from[k] * factors->factor[k]);
    }
    for (int i = 0; i < BLOCK; i++)
        x[i] = products[zigzag_of[i]];
    return beyond == 0;
}

static inline int16_t clamp16(int32_t value) {
    return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}

static inline uint8_t sample_of(int32_t value) {
    return (uint8_t)(value < -CENTER ? 0 : value >= CENTER ? 255 : value + CENTER);
}

/* Sums of products, which wrap as those of the vectors do. */
static inline int32_t add(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t sub(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

static inline void accurate_column(int16_t *x, const int shift) {
    int32_t x0 = x[0], x1 = x[8], x2 = x[16], x3 = x[24], x4 = x[32], x5 = x[40], x6 = x[48],
            x7 = x[56];
    int32_t z3 = (int16_t)(x7 + x3), z4 = (int16_t)(x5 + x1), half = 1 << (shift - 1);
    int32_t t0 = (int16_t)(x0 + x4) * 8192 + half, t1 = (int16_t)(x0 - x4) * 8192 + half;
    int32_t t2 = x2 * 4433 + x6 * (4433 - 15137), t3 = x2 * (4433 + 6270) + x6 * 4433;
    int32_t y3 = z3 * (9633 - 16069) + z4 * 9633, y4 = z3 * 9633 + z4 * (9633 - 3196);
    int32_t a0 = add(y3, x7 * (2446 - 7373) + x1 * -7373);
    int32_t a1 = add(y4, x5 * (16819 - 20995) + x3 * -20995);
    int32_t a2 = add(y3, x5 * -20995 + x3 * (25172 - 20995));
    int32_t a3 = add(y4, x7 * -7373 + x1 * (12299 - 7373));
    int32_t t10 = add(t0, t3), t13 = sub(t0, t3), t11 = add(t1, t2), t12 = sub(t1, t2);
    x[0] = clamp16(add(t10, a3) >> shift);
    x[56] = clamp16(sub(t10, a3) >> shift);
    x[8] = clamp16(add(t11, a2) >> shift);
    x[48] = clamp16(sub(t11, a2) >> shift);
    x[16] = clamp16(add(t12, a1) >> shift);
    x[40] = clamp16(sub(t12, a1) >> shift);
    x[24] = clamp16(add(t13, a0) >> shift);
    x[32] = clamp16(sub(t13, a0) >> shift);
}

/*
 * (a << 2) * factor / 65536, of 16 bits. Where a << 2 has more than 16 (squares of black and white,
 * among others), libjpeg-turbo's vectors for x86 and for ARM differ. Each processor has its own.
 */
static inline int16_t scaled(int a, int factor) {
#if PRESTO__JPEG_HAS_NEON
    int size = factor < 0 ? -factor : factor;
    return (int16_t)((factor < 0 ? (int16_t)-a : a) * (size >> 6) >> 8);
#else
    return (int16_t)((int16_t)(a * 4) * factor >> 16);
#endif
}

enum { F_1_414 = 362 << 6, F_1_847 = 473 << 6, F_1_613 = 413 << 6, F_1_082 = 277 << 6 };

static inline void fast_column(int16_t *x) {
    int16_t t10 = (int16_t)(x[0] + x[32]), t11 = (int16_t)(x[0] - x[32]);
    int16_t t13 = (int16_t)(x[16] + x[48]);
    int16_t t12 = (int16_t)(scaled((int16_t)(x[16] - x[48]), F_1_414) - t13);
    int16_t t0 = (int16_t)(t10 + t13), t3 = (int16_t)(t10 - t13);
    int16_t t1 = (int16_t)(t11 + t12), t2 = (int16_t)(t11 - t12);
    int16_t z10 = (int16_t)(x[40] - x[24]), z13 = (int16_t)(x[40] + x[24]);
    int16_t z11 = (int16_t)(x[8] + x[56]), z12 = (int16_t)(x[8] - x[56]);
    int16_t t7 = (int16_t)(z11 + z13), z5 = scaled((int16_t)(z10 + z12), F_1_847);
    int16_t t6 = (int16_t)(scaled(z10, -F_1_613) - z10 + z5 - t7);
    int16_t t5 = (int16_t)(scaled((int16_t)(z11 - z13), F_1_414) - t6);
    int16_t t4 = (int16_t)(scaled(z12, F_1_082) - z5 + t5);
    x[0] = (int16_t)(t0 + t7), x[56] = (int16_t)(t0 - t7);
    x[8] = (int16_t)(t1 + t6), x[48] = (int16_t)(t1 - t6);
    x[16] = (int16_t)(t2 + t5), x[40] = (int16_t)(t2 - t5);
    x[32] = (int16_t)(t3 + t4), x[24] = (int16_t)(t3 - t4);
}

static inline void transpose(const int16_t *x, int16_t *out) {
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++)
            out[k * SIDE + i] = x[i * SIDE + k];
}

static inline void store_block(const int16_t *x, const int shift, uint8_t *out, size_t row_bytes) {
    uint8_t samples[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        samples[i] = sample_of(x[i] >> shift);
    for (size_t i = 0; i < SIDE; i++)
        memcpy(out + i * row_bytes, samples + i * SIDE, SIDE);
}

static bool transform_accurate(const presto__jpeg_blocks *blocks,
                               const presto__jpeg_factors *factors, uint8_t *out,
                               size_t row_bytes) {
    bool is_within = true;
    for (size_t b = 0; b < blocks->count; b++, out += SIDE) {
        int16_t x[BLOCK], turned[BLOCK];
        is_within &= load_block(block_at(blocks, b), factors, x);
        for (int i = 0; i < SIDE; i++)
            accurate_column(x + i, 11);
        transpose(x, turned);
        for (int i = 0; i < SIDE; i++)
            accurate_column(turned + i, 18);
        transpose(turned, x);
        store_block(x, 0, out, row_bytes);
    }
    return is_within;
}

static bool transform_fast(const presto__jpeg_blocks *blocks, const presto__jpeg_factors *factors,
                           uint8_t *out, size_t row_bytes) {
    bool is_within = true;
    for (size_t b = 0; b < blocks->count; b++, out += SIDE) {
        int16_t x[BLOCK], turned[BLOCK];
        is_within &= load_block(block_at(blocks, b), factors, x);
        for (int i = 0; i < SIDE; i++)
            fast_column(x + i);
        transpose(x, turned);
        for (int i = 0; i < SIDE; i++)
            fast_column(turned + i);
        transpose(turned, x);
        store_block(x, 5, out, row_bytes);
    }
    return is_within;
}

/* ---- reduced ---- */

/* Seven coefficients to four values; the fifth, x[4], has no part in them. */
static void to_4(const int32_t *x, int shift, int32_t *out) {
    int32_t half = 1 << (shift - 1), t0 = x[0] * (1 << 14);
    int32_t t2 = x[2] * 15137 + x[6] * -6270;
    int32_t t10 = add(add(t0, t2), half), t12 = add(sub(t0, t2), half);
    int32_t odd0 = add(x[1] * 8697 + x[3] * -17799, x[5] * 11893 + x[7] * -1730);
    int32_t odd2 = add(x[1] * 20995 + x[3] * 7373, x[5] * -4926 + x[7] * -4176);
    out[0] = clamp16(add(t10, odd2) >> shift);
    out[3] = clamp16(sub(t10, odd2) >> shift);
    out[1] = clamp16(add(t12, odd0) >> shift);
    out[2] = clamp16(sub(t12, odd0) >> shift);
}

static bool transform_to_4(const presto__jpeg_blocks *blocks, const presto__jpeg_factors *factors,
                           uint8_t *out, size_t row_bytes) {
    bool is_within = true;
    for (size_t b = 0; b < blocks->count; b++, out += 4) {
        int16_t x[BLOCK];
        int32_t rows[4][SIDE];
        is_within &= load_block(block_at(blocks, b), factors, x);
        for (int i = 0; i < SIDE; i++) {
            int32_t in[SIDE], column[4];
            for (int k = 0; k < SIDE; k++)
                in[k] = x[k * SIDE + i];
            to_4(in, 12, column);
            for (int k = 0; k < 4; k++)
                rows[k][i] = column[k];
        }
        for (int k = 0; k < 4; k++) {
            int32_t row[4];
            to_4(rows[k], 19, row);
            for (int i = 0; i < 4; i++)
                out[(size_t)k * row_bytes + (size_t)i] = sample_of(row[i]);
        }
    }
    return is_within;
}

/* The first and the odd coefficients to two values. */
static void to_2(const int32_t *x, int shift, int32_t *out) {
    int32_t half = 1 << (shift - 1), t10 = add((int32_t)((uint32_t)x[0] << 15), half);
    int32_t odd = add(x[1] * 29692 + x[3] * -10426, x[5] * 6967 + x[7] * -5906);
    out[0] = add(t10, odd) >> shift;
    out[1] = sub(t10, odd) >> shift;
}

static bool transform_to_2(const presto__jpeg_blocks *blocks, const presto__jpeg_factors *factors,
                           uint8_t *out, size_t row_bytes) {
    bool is_within = true;
    for (size_t b = 0; b < blocks->count; b++, out += 2) {
        int16_t x[BLOCK];
        int32_t rows[2][SIDE] = {{0}};
        is_within &= load_block(block_at(blocks, b), factors, x);
        for (int i = 0; i < SIDE; i += i == 0 ? 1 : 2) {
            int32_t in[SIDE], column[2];
            for (int k = 0; k < SIDE; k++)
                in[k] = x[k * SIDE + i];
            to_2(in, 13, column);
            for (int k = 0; k < 2; k++)
                rows[k][i] = i == 0 ? column[k] : clamp16(column[k]);
        }
        for (int k = 0; k < 2; k++) {
            int32_t row[2];
            to_2(rows[k], 20, row);
            for (int i = 0; i < 2; i++)
                out[(size_t)k * row_bytes + (size_t)i] = sample_of(row[i]);
        }
    }
    return is_within;
}

static bool transform_to_1(const presto__jpeg_blocks *blocks, const presto__jpeg_factors *factors,
                           uint8_t *out, size_t row_bytes) {
    (void)row_bytes;
    bool is_within = true;
    for (size_t b = 0; b < blocks->count; b++) {
        int16_t x[BLOCK];
        is_within &= load_block(block_at(blocks, b), factors, x);
        out[b] = sample_of((x[0] + 4) >> 3);
    }
    return is_within;
}

static const presto__jpeg_transform portable[PRESTO__JPEG_METHODS] = {
    [PRESTO__JPEG_ACCURATE] = transform_accurate, [PRESTO__JPEG_FAST] = transform_fast,
    [PRESTO__JPEG_TO_4] = transform_to_4,         [PRESTO__JPEG_TO_2] = transform_to_2,
    [PRESTO__JPEG_TO_1] = transform_to_1,
};

#if defined(__x86_64__)

/* ---- AVX2 and AVX-512: a block lies in each lane of 128 bits ---- */

/* How rows are gathered from vectors of 8 coefficients in zigzag order: for each row the vectors that
 * hold some of it, and the shuffles that put them in their places. */
enum { GATHERS = 36 };
static const uint8_t gather_counts[SIDE] = {3, 5, 5, 5, 5, 5, 5, 3};
static const uint8_t gather_from[GATHERS] = {
    0, 1, 3, 0, 1, 2, 3, 5, 0, 1, 2, 3, 5, 1, 2, 3, 5, 6,
    1, 2, 4, 5, 6, 2, 4, 5, 6, 7, 2, 4, 5, 6, 7, 4, 6, 7,
};
/* For both lanes of 128 bits. */
#define TWICE(...)                                                                                 \
    { __VA_ARGS__, __VA_ARGS__ }
static const _Alignas(32) uint8_t gather_bytes[GATHERS][32] = {
    TWICE(0, 1, 2, 3, 10, 11, 12, 13, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 12, 13, 14, 15, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 6, 7, 8, 9),
    TWICE(4, 5, 8, 9, 14, 15, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 10, 11, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 0, 1, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 4, 5, 10, 11, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 4, 5),
    TWICE(6, 7, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 0, 1, 8, 9, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 2, 3, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 2, 3, 12, 13, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 2, 3, 6, 7),
    TWICE(2, 3, 6, 7, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 4, 5, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 0, 1, 14, 15, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0, 1, 8, 9, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 10, 11),
    TWICE(4, 5, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 6, 7, 14, 15, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 0, 1, 14, 15, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 10, 11, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 8, 9, 12, 13),
    TWICE(8, 9, 12, 13, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 2, 3, 12, 13, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 12, 13, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 6, 7, 14, 15, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 8, 9),
    TWICE(10, 11, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 4, 5, 10, 11, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 14, 15, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 4, 5, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0, 1, 6, 7, 10, 11),
    TWICE(6, 7, 8, 9, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 0, 1, 2, 3, 128, 128, 128, 128, 128, 128, 128, 128),
    TWICE(128, 128, 128, 128, 128, 128, 128, 128, 2, 3, 4, 5, 12, 13, 14, 15),
};

/* Where in two vectors of 32 coefficients in zigzag order those of rows 0 to 3, and 4 to 7, stand. */
static const uint16_t upper_words[32] = {
    0, 1, 5,  6,  14, 15, 27, 28, 2, 4,  7,  13, 16, 26, 29, 42,
    3, 8, 12, 17, 25, 30, 41, 43, 9, 11, 18, 24, 31, 40, 44, 53,
};
static const uint16_t lower_words[32] = {
    10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38, 46, 51, 55, 60,
    21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63,
};

#define PAIR(a, b) ((int)((uint32_t)(uint16_t)(b) << 16 | (uint16_t)(a)))

/* The blocks [i, i + COUNT); those that there are not are read as the first one. */
static inline __attribute__((always_inline)) void choose_blocks(const presto__jpeg_blocks *blocks,
                                                                size_t i, size_t count,
                                                                const int16_t **chosen) {
    size_t within = blocks->pair == 2 ? BLOCK : blocks->step;
    size_t from_pair_to_pair = blocks->pair == 2 ? blocks->step : 2 * blocks->step;
    for (size_t k = 0; k < count; k += 2) {
        const int16_t *pair = blocks->first + (i + k) / 2 * from_pair_to_pair;
        chosen[k] = i + k < blocks->count ? pair : blocks->first;
        chosen[k + 1] = i + k + 1 < blocks->count ? pair + within : blocks->first;
    }
}

#define NAME(function) function##_avx2
#define TARGET __attribute__((target("avx2")))
#define OF(operation) _mm256_##operation
#define VECTOR __m256i
#define SHIFT int
#define LANES 2
#include "jpeg_transform_vector_internal.h"

/* Rows of two blocks from the first `vectors` of their vectors in zigzag order; others are zero. */
TARGET static inline __attribute__((always_inline)) void gather_avx2(const __m256i *z,
                                                                     const int vectors,
                                                                     __m256i *x) {
    int g = 0;
#pragma GCC unroll 8
    for (int row = 0; row < SIDE; row++) {
        x[row] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int k = 0; k < gather_counts[row]; k++, g++)
            if (gather_from[g] < vectors) {
                __m256i bytes = _mm256_load_si256((const __m256i *)(const void *)gather_bytes[g]);
                __m256i some = _mm256_shuffle_epi8(z[gather_from[g]], bytes);
                x[row] = k == 0 ? some : _mm256_or_si256(x[row], some);
            }
    }
}

/* Times their factors. False if a coefficient is beyond its limit. */
TARGET static inline __attribute__((always_inline)) bool multiply_avx2(
    const presto__jpeg_factors *factors, const int vectors, __m256i *z) {
    __m256i beyond = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int i = 0; i < vectors; i++) {
        const __m256i *factor = (const __m256i *)(const void *)factors->factor_twice + i;
        const __m256i *limit = (const __m256i *)(const void *)factors->limit_twice + i;
        beyond = _mm256_or_si256(beyond, _mm256_subs_epu16(_mm256_abs_epi16(z[i]), *limit));
        z[i] = _mm256_mullo_epi16(z[i], *factor);
    }
    return _mm256_testz_si256(beyond, beyond) != 0;
}

/*
 * Rows 0 to 7 of two blocks. False if a coefficient is beyond its limit. Blocks often end early: then
 * there is less to be put in its place.
 */
TARGET static inline __attribute__((always_inline)) bool load_avx2(
    const int16_t *const *blocks, const presto__jpeg_factors *factors, __m256i *x) {
    __m256i z[SIDE];
    for (int i = 0; i < SIDE; i++) {
        __m128i low = _mm_load_si128((const __m128i *)(const void *)blocks[0] + i);
        __m128i high = _mm_load_si128((const __m128i *)(const void *)blocks[1] + i);
        z[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    __m256i last = _mm256_or_si256(_mm256_or_si256(z[4], z[5]), _mm256_or_si256(z[6], z[7]));
    bool is_within;
    if (_mm256_testz_si256(last, last) == 0) {
        is_within = multiply_avx2(factors, 8, z);
        gather_avx2(z, 8, x);
        return is_within;
    }
    last = _mm256_or_si256(z[2], z[3]);
    if (_mm256_testz_si256(last, last) == 0) {
        is_within = multiply_avx2(factors, 4, z);
        gather_avx2(z, 4, x);
        return is_within;
    }
    is_within = multiply_avx2(factors, 2, z);
    gather_avx2(z, 2, x);
    return is_within;
}

/* 8 rows of 16 samples. */
TARGET static inline void store_avx2(const __m256i *rows, uint8_t *out, size_t row_bytes) {
    const __m256i center = _mm256_set1_epi8((char)CENTER);
    for (size_t i = 0; i < SIDE / 2; i++, out += 2 * row_bytes) {
        __m256i both = _mm256_permute4x64_epi64(_mm256_add_epi8(rows[i], center), 0xD8);
        _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(both));
        _mm_storeu_si128((__m128i *)(void *)(out + row_bytes), _mm256_extracti128_si256(both, 1));
    }
}
TRANSFORMS

#undef NAME
#undef TARGET
#undef OF
#undef VECTOR
#undef SHIFT
#undef LANES
#define NAME(function) function##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define OF(operation) _mm512_##operation
#define VECTOR __m512i
#define SHIFT unsigned
#define LANES 4
#include "jpeg_transform_vector_internal.h"

/* Rows i to i + 3 of four blocks from rows of each. */
TARGET static inline void distribute_avx512(const __m512i *rows, __m512i *x) {
    __m512i a = _mm512_shuffle_i64x2(rows[0], rows[1], 0x44);
    __m512i b = _mm512_shuffle_i64x2(rows[0], rows[1], 0xEE);
    __m512i c = _mm512_shuffle_i64x2(rows[2], rows[3], 0x44);
    __m512i d = _mm512_shuffle_i64x2(rows[2], rows[3], 0xEE);
    x[0] = _mm512_shuffle_i64x2(a, c, 0x88);
    x[1] = _mm512_shuffle_i64x2(a, c, 0xDD);
    x[2] = _mm512_shuffle_i64x2(b, d, 0x88);
    x[3] = _mm512_shuffle_i64x2(b, d, 0xDD);
}

TARGET static inline bool load_avx512(const int16_t *const *blocks,
                                      const presto__jpeg_factors *factors, __m512i *x) {
    const __m512i factor0 = _mm512_load_si512(factors->factor);
    const __m512i factor1 = _mm512_load_si512(factors->factor + 32);
    const __m512i limit0 = _mm512_load_si512(factors->limit);
    const __m512i limit1 = _mm512_load_si512(factors->limit + 32);
    const __m512i words0 = _mm512_loadu_si512(upper_words);
    const __m512i words1 = _mm512_loadu_si512(lower_words);
    __m512i upper[4], lower[4];
    __mmask32 beyond = 0;
    for (int i = 0; i < 4; i++) {
        __m512i a = _mm512_load_si512(blocks[i]), b = _mm512_load_si512(blocks[i] + 32);
        beyond |= _mm512_cmpgt_epu16_mask(_mm512_abs_epi16(a), limit0) |
                  _mm512_cmpgt_epu16_mask(_mm512_abs_epi16(b), limit1);
        a = _mm512_mullo_epi16(a, factor0);
        b = _mm512_mullo_epi16(b, factor1);
        upper[i] = _mm512_permutex2var_epi16(a, words0, b);
        lower[i] = _mm512_permutex2var_epi16(a, words1, b);
    }
    distribute_avx512(upper, x);
    distribute_avx512(lower, x + 4);
    return beyond == 0;
}

/* 8 rows of 32 samples. */
TARGET static inline void store_avx512(const __m512i *rows, uint8_t *out, size_t row_bytes) {
    const __m512i center = _mm512_set1_epi8((char)CENTER);
    const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    for (size_t i = 0; i < SIDE / 2; i++, out += 2 * row_bytes) {
        __m512i both = _mm512_permutexvar_epi64(order, _mm512_add_epi8(rows[i], center));
        _mm256_storeu_si256((__m256i *)(void *)out, _mm512_castsi512_si256(both));
        _mm256_storeu_si256((__m256i *)(void *)(out + row_bytes),
                            _mm512_extracti64x4_epi64(both, 1));
    }
}
TRANSFORMS

static const presto__jpeg_transform vectors[][2] = {
    [PRESTO__JPEG_AVX2] = {accurate_avx2, fast_avx2},
    [PRESTO__JPEG_AVX512] = {accurate_avx512, fast_avx512},
};

presto__jpeg_transform presto__jpeg_transform_of(presto__jpeg_method method,
                                                 presto__jpeg_level level) {
    if (level == PRESTO__JPEG_PORTABLE || method > PRESTO__JPEG_FAST)
        return portable[method];
    return vectors[level][method];
}

#elif PRESTO__JPEG_HAS_NEON

/* ---- NEON: one block after the other, a row in each vector ---- */

/* The bytes of row i's coefficients in those of a block in zigzag order. */
#define AT(k) 2 * (k), 2 * (k) + 1
static const uint8_t row_bytes_of[SIDE][2 * SIDE] = {
    {AT(0), AT(1), AT(5), AT(6), AT(14), AT(15), AT(27), AT(28)},
    {AT(2), AT(4), AT(7), AT(13), AT(16), AT(26), AT(29), AT(42)},
    {AT(3), AT(8), AT(12), AT(17), AT(25), AT(30), AT(41), AT(43)},
    {AT(9), AT(11), AT(18), AT(24), AT(31), AT(40), AT(44), AT(53)},
    {AT(10), AT(19), AT(23), AT(32), AT(39), AT(45), AT(52), AT(54)},
    {AT(20), AT(22), AT(33), AT(38), AT(46), AT(51), AT(55), AT(60)},
    {AT(21), AT(34), AT(37), AT(47), AT(50), AT(56), AT(59), AT(61)},
    {AT(35), AT(36), AT(48), AT(49), AT(57), AT(58), AT(62), AT(63)},
};
#undef AT

/* The first `vectors` of a block, times their factors. *beyond_io is not zero where a coefficient is
 * beyond its limit. */
static inline __attribute__((always_inline)) void multiply_neon(const int16_t *from,
                                                                const presto__jpeg_factors *factors,
                                                                const size_t vectors, uint8x16_t *z,
                                                                uint16x8_t *beyond_io) {
#pragma GCC unroll 8
    for (size_t i = 0; i < vectors; i++) {
        int16x8_t some = vld1q_s16(from + i * SIDE);
        uint16x8_t size = vreinterpretq_u16_s16(vabsq_s16(some));
        *beyond_io = vorrq_u16(*beyond_io, vcgtq_u16(size, vld1q_u16(factors->limit + i * SIDE)));
        z[i] = vreinterpretq_u8_s16(vmulq_s16(some, vld1q_s16(factors->factor + i * SIDE)));
    }
}

/* Do the vectors [first, last) of a block have any bit? */
static inline __attribute__((always_inline)) bool has_some(const int16_t *from, const size_t first,
                                                           const size_t last) {
    int16x8_t some = vld1q_s16(from + first * SIDE);
#pragma GCC unroll 8
    for (size_t i = first + 1; i < last; i++)
        some = vorrq_s16(some, vld1q_s16(from + i * SIDE));
    return vmaxvq_u32(vreinterpretq_u32_s16(some)) != 0;
}

/* Rows 0 to 7. Blocks often end early: then there is less to be put in its place. */
static inline __attribute__((always_inline)) void load_neon(const int16_t *from,
                                                            const presto__jpeg_factors *factors,
                                                            int16x8_t *x, uint16x8_t *beyond_io) {
    uint8x16_t z[SIDE];
    if (!has_some(from, 2, SIDE)) {
        multiply_neon(from, factors, 2, z, beyond_io);
        const uint8x16x2_t all = {{z[0], z[1]}};
#pragma GCC unroll 8
        for (int i = 0; i < SIDE; i++) /* a place behind the table gives 0 */
            x[i] = i > 4 ? vdupq_n_s16(0)
                         : vreinterpretq_s16_u8(vqtbl2q_u8(all, vld1q_u8(row_bytes_of[i])));
        return;
    }
    if (!has_some(from, 4, SIDE)) {
        multiply_neon(from, factors, 4, z, beyond_io);
        const uint8x16x4_t all = {{z[0], z[1], z[2], z[3]}};
#pragma GCC unroll 8
        for (int i = 0; i < SIDE; i++)
            x[i] = i > 6 ? vdupq_n_s16(0)
                         : vreinterpretq_s16_u8(vqtbl4q_u8(all, vld1q_u8(row_bytes_of[i])));
        return;
    }
    multiply_neon(from, factors, SIDE, z, beyond_io);
    const uint8x16x4_t first = {{z[0], z[1], z[2], z[3]}}, second = {{z[4], z[5], z[6], z[7]}};
    const uint8x16_t half = vdupq_n_u8(PRESTO__JPEG_BLOCK);
#pragma GCC unroll 8
    for (int i = 0; i < SIDE; i++) {
        uint8x16_t places = vld1q_u8(row_bytes_of[i]);
        uint8x16_t row = i > 6 ? vdupq_n_u8(0) : vqtbl4q_u8(first, places);
        if (i > 0) /* here such a place leaves what is there */
            row = vqtbx4q_u8(row, second, vsubq_u8(places, half));
        x[i] = vreinterpretq_s16_u8(row);
    }
}

/* Columns become rows. */
static inline __attribute__((always_inline)) void transpose_neon(int16x8_t *x) {
    int16x8_t a[SIDE], b[SIDE];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        a[i] = vzip1q_s16(x[i], x[i + 4]);
        a[i + 4] = vzip2q_s16(x[i], x[i + 4]);
    }
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; i++) {
        b[2 * i] = vzip1q_s16(a[i], a[i + 2]);
        b[2 * i + 1] = vzip2q_s16(a[i], a[i + 2]);
        b[2 * i + 4] = vzip1q_s16(a[i + 4], a[i + 6]);
        b[2 * i + 5] = vzip2q_s16(a[i + 4], a[i + 6]);
    }
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; i++) {
        x[2 * i] = vzip1q_s16(b[i], b[i + 2]);
        x[2 * i + 1] = vzip2q_s16(b[i], b[i + 2]);
        x[2 * i + 4] = vzip1q_s16(b[i + 4], b[i + 6]);
        x[2 * i + 5] = vzip2q_s16(b[i + 4], b[i + 6]);
    }
}

/* Columns of samples, less CENTER, to rows. */
static inline __attribute__((always_inline)) void store_neon(const int8x8_t *columns, uint8_t *out,
                                                             size_t row_bytes) {
    int8x16_t p = vcombine_s8(columns[0], columns[4]), q = vcombine_s8(columns[1], columns[5]);
    int8x16_t r = vcombine_s8(columns[2], columns[6]), s = vcombine_s8(columns[3], columns[7]);
    int16x8_t a = vreinterpretq_s16_s8(vzip1q_s8(p, q)), b = vreinterpretq_s16_s8(vzip2q_s8(p, q));
    int16x8_t c = vreinterpretq_s16_s8(vzip1q_s8(r, s)), d = vreinterpretq_s16_s8(vzip2q_s8(r, s));
    int32x4_t e = vreinterpretq_s32_s16(vzip1q_s16(a, c));
    int32x4_t f = vreinterpretq_s32_s16(vzip2q_s16(a, c));
    int32x4_t g = vreinterpretq_s32_s16(vzip1q_s16(b, d));
    int32x4_t h = vreinterpretq_s32_s16(vzip2q_s16(b, d));
    const int32x4_t rows[SIDE / 2] = {vzip1q_s32(e, g), vzip2q_s32(e, g), vzip1q_s32(f, h),
                                      vzip2q_s32(f, h)};
#pragma GCC unroll 4
    for (size_t i = 0; i < SIDE / 2; i++, out += 2 * row_bytes) {
        uint8x16_t both = vaddq_u8(vreinterpretq_u8_s32(rows[i]), vdupq_n_u8(CENTER));
        vst1_u8(out, vget_low_u8(both));
        vst1_u8(out + row_bytes, vget_high_u8(both));
    }
}

/* a * x + b * y */
#define SUM(x, a, y, b) vmlal_n_s16(vmull_n_s16(x, a), y, b)
#define ADD_TO(sum, x, a, y, b) vmlal_n_s16(vmlal_n_s16(sum, x, a), y, b)

/* Eight values of 32 bits for each of four columns; `half` is what rounds them. */
static inline __attribute__((always_inline)) void accurate_half_neon(const int16x4_t *x,
                                                                     const int32_t half,
                                                                     int32x4_t *out) {
    int16x4_t z3 = vadd_s16(x[7], x[3]), z4 = vadd_s16(x[5], x[1]);
    const int32x4_t rounding = vdupq_n_s32(half);
    int32x4_t t0 = vaddq_s32(rounding, vshll_n_s16(vadd_s16(x[0], x[4]), 13));
    int32x4_t t1 = vaddq_s32(rounding, vshll_n_s16(vsub_s16(x[0], x[4]), 13));
    int32x4_t t2 = SUM(x[2], 4433, x[6], 4433 - 15137), t3 = SUM(x[2], 4433 + 6270, x[6], 4433);
    int32x4_t y3 = SUM(z3, 9633 - 16069, z4, 9633), y4 = SUM(z3, 9633, z4, 9633 - 3196);
    int32x4_t a0 = ADD_TO(y3, x[7], 2446 - 7373, x[1], -7373);
    int32x4_t a1 = ADD_TO(y4, x[5], 16819 - 20995, x[3], -20995);
    int32x4_t a2 = ADD_TO(y3, x[5], -20995, x[3], 25172 - 20995);
    int32x4_t a3 = ADD_TO(y4, x[7], -7373, x[1], 12299 - 7373);
    int32x4_t t10 = vaddq_s32(t0, t3), t13 = vsubq_s32(t0, t3);
    int32x4_t t11 = vaddq_s32(t1, t2), t12 = vsubq_s32(t1, t2);
    out[0] = vaddq_s32(t10, a3);
    out[7] = vsubq_s32(t10, a3);
    out[1] = vaddq_s32(t11, a2);
    out[6] = vsubq_s32(t11, a2);
    out[2] = vaddq_s32(t12, a1);
    out[5] = vsubq_s32(t12, a1);
    out[3] = vaddq_s32(t13, a0);
    out[4] = vsubq_s32(t13, a0);
}

#undef SUM
#undef ADD_TO

static inline __attribute__((always_inline)) void accurate_pass_neon(const int16x8_t *x,
                                                                     const int32_t half,
                                                                     int32x4_t *low,
                                                                     int32x4_t *high) {
    int16x4_t first[SIDE], second[SIDE];
#pragma GCC unroll 8
    for (int i = 0; i < SIDE; i++) {
        first[i] = vget_low_s16(x[i]);
        second[i] = vget_high_s16(x[i]);
    }
    accurate_half_neon(first, half, low);
    accurate_half_neon(second, half, high);
}

static bool accurate_neon(const presto__jpeg_blocks *blocks, const presto__jpeg_factors *factors,
                          uint8_t *out, size_t row_bytes) {
    uint16x8_t beyond = vdupq_n_u16(0);
    for (size_t b = 0; b < blocks->count; b++, out += SIDE) {
        int16x8_t x[SIDE];
        int32x4_t low[SIDE], high[SIDE];
        int8x8_t columns[SIDE];
        load_neon(block_at(blocks, b), factors, x, &beyond);
        accurate_pass_neon(x, 1 << 10, low, high);
#pragma GCC unroll 8
        for (int i = 0; i < SIDE; i++)
            x[i] = vqshrn_high_n_s32(vqshrn_n_s32(low[i], 11), high[i], 11);
        transpose_neon(x);
        accurate_pass_neon(x, 1 << 17, low, high);
#pragma GCC unroll 8
        for (int i = 0; i < SIDE; i++) {
            /* By 18 bits: the upper halves by two. */
            int16x8_t upper =
                vuzp2q_s16(vreinterpretq_s16_s32(low[i]), vreinterpretq_s16_s32(high[i]));
            columns[i] = vqshrn_n_s16(upper, 2);
        }
        store_neon(columns, out, row_bytes);
    }
    return vmaxvq_u16(beyond) == 0;
}

/* As scaled(): a factor is 1 and a fraction, of 14 bits; vqdmulh takes 15. */
static inline __attribute__((always_inline)) int16x8_t scaled_neon(int16x8_t a, const int factor) {
    return vaddq_s16(a, vqdmulhq_n_s16(a, (int16_t)(2 * (factor - (1 << 14)))));
}

static inline __attribute__((always_inline)) void fast_pass_neon(int16x8_t *x) {
    int16x8_t t10 = vaddq_s16(x[0], x[4]), t11 = vsubq_s16(x[0], x[4]);
    int16x8_t t13 = vaddq_s16(x[2], x[6]);
    int16x8_t t12 = vsubq_s16(scaled_neon(vsubq_s16(x[2], x[6]), F_1_414), t13);
    int16x8_t t0 = vaddq_s16(t10, t13), t3 = vsubq_s16(t10, t13);
    int16x8_t t1 = vaddq_s16(t11, t12), t2 = vsubq_s16(t11, t12);
    int16x8_t minus_z10 = vsubq_s16(x[3], x[5]), z13 = vaddq_s16(x[5], x[3]);
    int16x8_t z11 = vaddq_s16(x[1], x[7]), z12 = vsubq_s16(x[1], x[7]);
    int16x8_t t7 = vaddq_s16(z11, z13);
    int16x8_t z5 = scaled_neon(vsubq_s16(z12, minus_z10), F_1_847);
    int16x8_t t6 = vaddq_s16(scaled_neon(minus_z10, F_1_613), minus_z10);
    t6 = vsubq_s16(vaddq_s16(t6, z5), t7);
    int16x8_t t5 = vsubq_s16(scaled_neon(vsubq_s16(z11, z13), F_1_414), t6);
    int16x8_t t4 = vaddq_s16(vsubq_s16(scaled_neon(z12, F_1_082), z5), t5);
    x[0] = vaddq_s16(t0, t7);
    x[7] = vsubq_s16(t0, t7);
    x[1] = vaddq_s16(t1, t6);
    x[6] = vsubq_s16(t1, t6);
    x[2] = vaddq_s16(t2, t5);
    x[5] = vsubq_s16(t2, t5);
    x[4] = vaddq_s16(t3, t4);
    x[3] = vsubq_s16(t3, t4);
}

static bool fast_neon(const presto__jpeg_blocks *blocks, const presto__jpeg_factors *factors,
                      uint8_t *out, size_t row_bytes) {
    uint16x8_t beyond = vdupq_n_u16(0);
    for (size_t b = 0; b < blocks->count; b++, out += SIDE) {
        int16x8_t x[SIDE];
        int8x8_t columns[SIDE];
        load_neon(block_at(blocks, b), factors, x, &beyond);
        fast_pass_neon(x);
        transpose_neon(x);
        fast_pass_neon(x);
#pragma GCC unroll 8
        for (int i = 0; i < SIDE; i++)
            columns[i] = vqshrn_n_s16(x[i], 5);
        store_neon(columns, out, row_bytes);
    }
    return vmaxvq_u16(beyond) == 0;
}

presto__jpeg_transform presto__jpeg_transform_of(presto__jpeg_method method,
                                                 presto__jpeg_level level) {
    if (level == PRESTO__JPEG_PORTABLE || method > PRESTO__JPEG_FAST)
        return portable[method];
    return method == PRESTO__JPEG_ACCURATE ? accurate_neon : fast_neon;
}

#else

presto__jpeg_transform presto__jpeg_transform_of(presto__jpeg_method method,
                                                 presto__jpeg_level level) {
    (void)level;
    return portable[method];
}

#endif
