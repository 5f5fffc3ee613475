/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverse transforms in vectors of LANES blocks. jpeg_transform.c includes it once for each kind
 * of vector, with NAME, TARGET, OF, VECTOR, SHIFT (the type of a shift) and LANES defined; so there is no guard.
 * load and store are defined behind it, and TRANSFORMS then makes the two functions.
 */

/* Row i of the blocks is x[i]; its columns become rows. */
TARGET static inline void NAME(transpose)(VECTOR *x) {
    VECTOR a[SIDE], b[SIDE];
    for (int i = 0; i < 4; i++) {
        a[i] = OF(unpacklo_epi16)(x[i], x[i + 4]);
        a[i + 4] = OF(unpackhi_epi16)(x[i], x[i + 4]);
    }
    for (size_t i = 0; i < 2; i++) {
        b[2 * i] = OF(unpacklo_epi16)(a[i], a[i + 2]);
        b[2 * i + 1] = OF(unpackhi_epi16)(a[i], a[i + 2]);
        b[2 * i + 4] = OF(unpacklo_epi16)(a[i + 4], a[i + 6]);
        b[2 * i + 5] = OF(unpackhi_epi16)(a[i + 4], a[i + 6]);
    }
    for (size_t i = 0; i < 2; i++) {
        x[2 * i] = OF(unpacklo_epi16)(b[i], b[i + 2]);
        x[2 * i + 1] = OF(unpackhi_epi16)(b[i], b[i + 2]);
        x[2 * i + 4] = OF(unpacklo_epi16)(b[i + 4], b[i + 6]);
        x[2 * i + 5] = OF(unpackhi_epi16)(b[i + 4], b[i + 6]);
    }
}

/* Columns of samples, less CENTER, to rows: vector i has rows 2 * i and 2 * i + 1 of each block. */
TARGET static inline void NAME(turn)(const VECTOR *x, VECTOR *rows) {
    VECTOR p = OF(packs_epi16)(x[0], x[4]), q = OF(packs_epi16)(x[1], x[5]);
    VECTOR r = OF(packs_epi16)(x[2], x[6]), s = OF(packs_epi16)(x[3], x[7]);
    VECTOR a = OF(unpacklo_epi8)(p, q), b = OF(unpackhi_epi8)(p, q);
    VECTOR c = OF(unpacklo_epi8)(r, s), d = OF(unpackhi_epi8)(r, s);
    VECTOR e = OF(unpacklo_epi16)(a, c), f = OF(unpackhi_epi16)(a, c);
    VECTOR g = OF(unpacklo_epi16)(b, d), h = OF(unpackhi_epi16)(b, d);
    rows[0] = OF(unpacklo_epi32)(e, g);
    rows[1] = OF(unpackhi_epi32)(e, g);
    rows[2] = OF(unpacklo_epi32)(f, h);
    rows[3] = OF(unpackhi_epi32)(f, h);
}

/* a * x + b * y of pairs (x, y) */
#define SUM(pairs, a, b) OF(madd_epi16)(pairs, OF(set1_epi32)(PAIR(a, b)))

/* What one half of the columns is computed of. */
typedef struct NAME(halves) {
    VECTOR sum04, difference04; /* of x[0] and x[4]: the upper 16 bits of 32 */
    VECTOR p26, p71, p53, z34;  /* pairs of x[2] and x[6], and so on */
} NAME(halves);

/* Eight values of 32 bits for each column. */
TARGET static inline __attribute__((always_inline)) void NAME(accurate_half)(
    const NAME(halves) * in, const int shift, VECTOR *out) {
    const VECTOR half = OF(set1_epi32)(1 << (shift - 1));
    VECTOR t0 = OF(add_epi32)(half, OF(srai_epi32)(in->sum04, 3));
    VECTOR t1 = OF(add_epi32)(half, OF(srai_epi32)(in->difference04, 3));
    VECTOR t2 = SUM(in->p26, 4433, 4433 - 15137), t3 = SUM(in->p26, 4433 + 6270, 4433);
    VECTOR y3 = SUM(in->z34, 9633 - 16069, 9633), y4 = SUM(in->z34, 9633, 9633 - 3196);
    VECTOR a0 = OF(add_epi32)(y3, SUM(in->p71, 2446 - 7373, -7373));
    VECTOR a1 = OF(add_epi32)(y4, SUM(in->p53, 16819 - 20995, -20995));
    VECTOR a2 = OF(add_epi32)(y3, SUM(in->p53, -20995, 25172 - 20995));
    VECTOR a3 = OF(add_epi32)(y4, SUM(in->p71, -7373, 12299 - 7373));
    VECTOR t10 = OF(add_epi32)(t0, t3), t13 = OF(sub_epi32)(t0, t3);
    VECTOR t11 = OF(add_epi32)(t1, t2), t12 = OF(sub_epi32)(t1, t2);
    out[0] = OF(srai_epi32)(OF(add_epi32)(t10, a3), (SHIFT)shift);
    out[7] = OF(srai_epi32)(OF(sub_epi32)(t10, a3), (SHIFT)shift);
    out[1] = OF(srai_epi32)(OF(add_epi32)(t11, a2), (SHIFT)shift);
    out[6] = OF(srai_epi32)(OF(sub_epi32)(t11, a2), (SHIFT)shift);
    out[2] = OF(srai_epi32)(OF(add_epi32)(t12, a1), (SHIFT)shift);
    out[5] = OF(srai_epi32)(OF(sub_epi32)(t12, a1), (SHIFT)shift);
    out[3] = OF(srai_epi32)(OF(add_epi32)(t13, a0), (SHIFT)shift);
    out[4] = OF(srai_epi32)(OF(sub_epi32)(t13, a0), (SHIFT)shift);
}

TARGET static inline __attribute__((always_inline)) void NAME(accurate_pass)(VECTOR *x,
                                                                             const int shift) {
    VECTOR z3 = OF(add_epi16)(x[7], x[3]), z4 = OF(add_epi16)(x[5], x[1]), low[SIDE], high[SIDE];
    VECTOR sum = OF(add_epi16)(x[0], x[4]), difference = OF(sub_epi16)(x[0], x[4]);
    const VECTOR zero = OF(set1_epi32)(0);
    const NAME(halves)
        first = {OF(unpacklo_epi16)(zero, sum),  OF(unpacklo_epi16)(zero, difference),
                 OF(unpacklo_epi16)(x[2], x[6]), OF(unpacklo_epi16)(x[7], x[1]),
                 OF(unpacklo_epi16)(x[5], x[3]), OF(unpacklo_epi16)(z3, z4)};
    const NAME(halves)
        second = {OF(unpackhi_epi16)(zero, sum),  OF(unpackhi_epi16)(zero, difference),
                  OF(unpackhi_epi16)(x[2], x[6]), OF(unpackhi_epi16)(x[7], x[1]),
                  OF(unpackhi_epi16)(x[5], x[3]), OF(unpackhi_epi16)(z3, z4)};
    NAME(accurate_half)(&first, shift, low);
    NAME(accurate_half)(&second, shift, high);
    for (int i = 0; i < SIDE; i++)
        x[i] = OF(packs_epi32)(low[i], high[i]);
}

#undef SUM

#define SCALED(a, factor) OF(mulhi_epi16)(OF(slli_epi16)(a, 2), OF(set1_epi16)((int16_t)(factor)))

TARGET static inline __attribute__((always_inline)) void NAME(fast_pass)(VECTOR *x) {
    VECTOR t10 = OF(add_epi16)(x[0], x[4]), t11 = OF(sub_epi16)(x[0], x[4]);
    VECTOR t13 = OF(add_epi16)(x[2], x[6]);
    VECTOR t12 = OF(sub_epi16)(SCALED(OF(sub_epi16)(x[2], x[6]), F_1_414), t13);
    VECTOR t0 = OF(add_epi16)(t10, t13), t3 = OF(sub_epi16)(t10, t13);
    VECTOR t1 = OF(add_epi16)(t11, t12), t2 = OF(sub_epi16)(t11, t12);
    VECTOR z10 = OF(sub_epi16)(x[5], x[3]), z13 = OF(add_epi16)(x[5], x[3]);
    VECTOR z11 = OF(add_epi16)(x[1], x[7]), z12 = OF(sub_epi16)(x[1], x[7]);
    VECTOR t7 = OF(add_epi16)(z11, z13);
    VECTOR z5 = SCALED(OF(add_epi16)(z10, z12), F_1_847);
    VECTOR t6 = OF(sub_epi16)(OF(add_epi16)(OF(sub_epi16)(SCALED(z10, -F_1_613), z10), z5), t7);
    VECTOR t5 = OF(sub_epi16)(SCALED(OF(sub_epi16)(z11, z13), F_1_414), t6);
    VECTOR t4 = OF(add_epi16)(OF(sub_epi16)(SCALED(z12, F_1_082), z5), t5);
    x[0] = OF(add_epi16)(t0, t7);
    x[7] = OF(sub_epi16)(t0, t7);
    x[1] = OF(add_epi16)(t1, t6);
    x[6] = OF(sub_epi16)(t1, t6);
    x[2] = OF(add_epi16)(t2, t5);
    x[5] = OF(sub_epi16)(t2, t5);
    x[4] = OF(add_epi16)(t3, t4);
    x[3] = OF(sub_epi16)(t3, t4);
}

#undef SCALED

#undef TRANSFORMS
#define TRANSFORMS                                                                                 \
    TARGET static bool NAME(accurate)(const presto__jpeg_blocks *blocks,                           \
                                      const presto__jpeg_factors *factors, uint8_t *out,           \
                                      size_t row_bytes) {                                          \
        bool is_within = true;                                                                     \
        for (size_t i = 0; i < blocks->count; i += LANES, out += (size_t)SIDE * LANES) {           \
            const int16_t *chosen[LANES];                                                          \
            VECTOR x[SIDE], rows[SIDE / 2];                                                        \
            choose_blocks(blocks, i, LANES, chosen);                                               \
            is_within &= NAME(load)(chosen, factors, x);                                           \
            NAME(accurate_pass)(x, 11);                                                            \
            NAME(transpose)(x);                                                                    \
            NAME(accurate_pass)(x, 18);                                                            \
            NAME(turn)(x, rows);                                                                   \
            NAME(store)(rows, out, row_bytes);                                                     \
        }                                                                                          \
        return is_within;                                                                          \
    }                                                                                              \
    TARGET static bool NAME(fast)(const presto__jpeg_blocks *blocks,                               \
                                  const presto__jpeg_factors *factors, uint8_t *out,               \
                                  size_t row_bytes) {                                              \
        bool is_within = true;                                                                     \
        for (size_t i = 0; i < blocks->count; i += LANES, out += (size_t)SIDE * LANES) {           \
            const int16_t *chosen[LANES];                                                          \
            VECTOR x[SIDE], rows[SIDE / 2];                                                        \
            choose_blocks(blocks, i, LANES, chosen);                                               \
            is_within &= NAME(load)(chosen, factors, x);                                           \
            NAME(fast_pass)(x);                                                                    \
            NAME(transpose)(x);                                                                    \
            NAME(fast_pass)(x);                                                                    \
            for (int k = 0; k < SIDE; k++)                                                         \
                x[k] = OF(srai_epi16)(x[k], 5);                                                    \
            NAME(turn)(x, rows);                                                                   \
            NAME(store)(rows, out, row_bytes);                                                     \
        }                                                                                          \
        return is_within;                                                                          \
    }
