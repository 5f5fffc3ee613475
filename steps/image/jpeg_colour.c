/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of samples to rows of RGB, as libjpeg-turbo makes them.
 *
 * Samples of colour lie in the middle of the pixels that share them. "Fancy" upsampling takes 3/4 of
 * the nearer one and 1/4 of the other one, in each direction; halves are rounded down and up in
 * turn. At the edges the other one is the nearer one.
 *
 * The factors of colour have 16 bits of fraction, and products are rounded to nearest:
 *
 *     r = y + 1.402 * cr,  g = y - 0.34414 * cb - 0.71414 * cr,  b = y + 1.772 * cb
 */
#include "jpeg_fast_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif PRESTO__JPEG_HAS_NEON
#include <arm_neon.h>
#endif

#define SLACK PRESTO__JPEG_SLACK

enum { CENTER = 128 };

/* What a filter across adds before it shifts, for the even and for the odd pixel. */
typedef struct rounding {
    int even, odd, shift;
} rounding;

static const rounding across = {1, 2, 2}, both = {8, 7, 4};

/* For vectors: what is added to sums of samples of colour, so that what is blended of them is less
 * CENTER. BOTH: a quarter of 8 - 16 * CENTER is in each sum; for odd pixels 1 is taken off again. */
enum { BIAS_BOTH = 2 - 4 * CENTER, BIAS_ACROSS = -CENTER };

/* ---- portable ---- */

static void blend_down(const presto__jpeg_rows *rows, uint8_t *out) {
    int half = rows->is_upper ? 1 : 2;
    for (size_t i = 0; i < rows->count; i++)
        out[i] = (uint8_t)((3 * rows->near[i] + rows->far[i] + half) >> 2);
}

static void blend_across(const uint16_t *restrict sums, size_t count, const rounding *add,
                         uint8_t *restrict out) {
    const int even = add->even, odd = add->odd, shift = add->shift;
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = (uint8_t)((3 * sums[i + 1] + sums[i] + even) >> shift);
        out[2 * i + 1] = (uint8_t)((3 * sums[i + 1] + sums[i + 2] + odd) >> shift);
    }
}

static void spread_portable(presto__jpeg_spread how, const presto__jpeg_rows *rows, uint8_t *out,
                            uint8_t *scratch) {
    const uint8_t *near = rows->near, *far = rows->far;
    size_t count = rows->count;
    if (how == PRESTO__JPEG_EACH) {
        memcpy(out, near, count);
        return;
    }
    if (how == PRESTO__JPEG_DOWN) {
        blend_down(rows, out);
        return;
    }
    uint16_t *restrict sums = (uint16_t *)(void *)(scratch + SLACK);
    for (size_t i = 0; i < count; i++)
        sums[i] = (uint16_t)(how == PRESTO__JPEG_BOTH ? 3 * near[i] + far[i] : near[i]);
    sums[-1] = sums[0];
    sums[count] = sums[count - 1];
    blend_across(sums - 1, count, how == PRESTO__JPEG_BOTH ? &both : &across, out);
}

static inline uint8_t clamp8(int value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* In planes first, which compilers turn into vectors. */
static void from_ycc_portable(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count,
                              uint8_t *out) {
    enum { AT_ONCE = 128 };
    uint8_t red[AT_ONCE], green[AT_ONCE], blue[AT_ONCE];
    for (size_t done = 0; done < count; done += AT_ONCE) {
        size_t some = count - done < AT_ONCE ? count - done : AT_ONCE;
        for (size_t i = 0; i < some; i++) {
            int16_t light = y[done + i], b = (int16_t)(cb[done + i] - CENTER);
            int16_t r = (int16_t)(cr[done + i] - CENTER);
            red[i] = clamp8(light + r + ((r * 26345 + (1 << 15)) >> 16));
            green[i] = clamp8(light + ((b * -11277 + r * -23401 + (1 << 14)) >> 15));
            blue[i] = clamp8(light + 2 * b + ((b * -14942 + (1 << 15)) >> 16));
        }
        for (size_t i = 0; i < some; i++, out += 3) {
            out[0] = red[i];
            out[1] = green[i];
            out[2] = blue[i];
        }
    }
}

static const presto__jpeg_colour portable = {spread_portable, from_ycc_portable, NULL};

/* ---- AVX2 ---- */

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2")))
#define PAIR(a, b) ((int)((uint32_t)(uint16_t)(b) << 16 | (uint16_t)(a)))

enum { AT_ONCE = 32 };

TARGET static inline __m256i load_words(const uint8_t *from) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}

TARGET static inline __m256i thrice(__m256i a) {
    return _mm256_add_epi16(a, _mm256_add_epi16(a, a));
}

TARGET static void spread_avx2(presto__jpeg_spread how, const presto__jpeg_rows *rows, uint8_t *out,
                               uint8_t *scratch) {
    const uint8_t *near = rows->near, *far = rows->far;
    size_t count = rows->count;
    if (how == PRESTO__JPEG_EACH || how == PRESTO__JPEG_DOWN) {
        spread_portable(how, rows, out, scratch);
        return;
    }
    uint16_t *sums = (uint16_t *)(void *)(scratch + SLACK);
    for (size_t i = 0; i < count; i += 16) {
        __m256i sum = load_words(near + i);
        if (how == PRESTO__JPEG_BOTH)
            sum = _mm256_add_epi16(thrice(sum), load_words(far + i));
        _mm256_storeu_si256((__m256i *)(void *)(sums + i), sum);
    }
    sums[-1] = sums[0];
    sums[count] = sums[count - 1];
    const rounding *add = how == PRESTO__JPEG_BOTH ? &both : &across;
    const __m256i even = _mm256_set1_epi16((int16_t)add->even);
    const __m256i odd = _mm256_set1_epi16((int16_t)add->odd);
    const __m128i shift = _mm_cvtsi32_si128(add->shift);
    for (size_t i = 0; i < count; i += 16) {
        const uint16_t *s = sums + i;
        __m256i here = thrice(_mm256_loadu_si256((const __m256i *)(const void *)s));
        __m256i left = _mm256_loadu_si256((const __m256i *)(const void *)(s - 1));
        __m256i right = _mm256_loadu_si256((const __m256i *)(const void *)(s + 1));
        left = _mm256_srl_epi16(_mm256_add_epi16(_mm256_add_epi16(here, left), even), shift);
        right = _mm256_srl_epi16(_mm256_add_epi16(_mm256_add_epi16(here, right), odd), shift);
        _mm256_storeu_si256((__m256i *)(void *)(out + 2 * i),
                            _mm256_or_si256(left, _mm256_slli_epi16(right, 8)));
    }
}

typedef struct rgb {
    __m256i r, g, b;
} rgb;

/* 16 pixels, of 16 bits; cb and cr are differences from the center. */
TARGET static inline __attribute__((always_inline)) rgb colours(__m256i y, __m256i cb, __m256i cr) {
    const __m256i factors = _mm256_set1_epi32(PAIR(-11277, -23401));
    const __m256i half = _mm256_set1_epi32(1 << 14);
    /* 1.402 = 1 + 26345 / 65536; 1.772 = 2 - 7471 / 32768. 26345 / 2 rounded up gives the same for
     * all 256 values. */
    __m256i red = _mm256_mulhrs_epi16(cr, _mm256_set1_epi16(13173));
    __m256i blue = _mm256_mulhrs_epi16(cb, _mm256_set1_epi16(-7471));
    __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), factors);
    __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), factors);
    low = _mm256_srai_epi32(_mm256_add_epi32(low, half), 15);
    high = _mm256_srai_epi32(_mm256_add_epi32(high, half), 15);
    return (rgb){_mm256_add_epi16(_mm256_add_epi16(y, cr), red),
                 _mm256_add_epi16(y, _mm256_packs_epi32(low, high)),
                 _mm256_add_epi16(_mm256_add_epi16(y, _mm256_add_epi16(cb, cb)), blue)};
}

/*
 * Pixels of three bytes fill three vectors of 16 bytes. Byte i of them takes red, green and blue in
 * turn, each of another pixel: so the reds (greens, blues) of 16 pixels can be put in order once for
 * all three, and each then takes what is its own. Before, even pixels stand in front of odd ones.
 */
static const int8_t orders[3][16] = {{0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15, 5, 10},
                                     {10, 0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15, 5},
                                     {5, 10, 0, 13, 3, 8, 6, 11, 1, 14, 4, 9, 7, 12, 2, 15}};
static const int8_t greens_of[3][16] = {{0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0},
                                        {-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1},
                                        {0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0}};
static const int8_t blues_of[3][16] = {{0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0},
                                       {0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0},
                                       {-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1}};

TARGET static inline __attribute__((always_inline)) __m256i twice(const int8_t *from) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)from));
}

TARGET static inline __attribute__((always_inline)) __m256i interleave(const rgb *in, int part) {
    __m256i mixed = _mm256_blendv_epi8(in->r, in->g, twice(greens_of[part]));
    return _mm256_blendv_epi8(mixed, in->b, twice(blues_of[part]));
}

/* 32 pixels, the even and the odd ones of them. */
TARGET static inline __attribute__((always_inline)) void store_pixels(const rgb *even,
                                                                      const rgb *odd,
                                                                      uint8_t *out) {
    const rgb all = {_mm256_shuffle_epi8(_mm256_packus_epi16(even->r, odd->r), twice(orders[0])),
                     _mm256_shuffle_epi8(_mm256_packus_epi16(even->g, odd->g), twice(orders[1])),
                     _mm256_shuffle_epi8(_mm256_packus_epi16(even->b, odd->b), twice(orders[2]))};
    __m256i first = interleave(&all, 0), second = interleave(&all, 1), third = interleave(&all, 2);
    __m256i *to = (__m256i *)(void *)out;
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(third, first, 0x30));
    _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(second, third, 0x31));
}

TARGET static inline __attribute__((always_inline)) void pixels_at_once(const uint8_t *y,
                                                                        const uint8_t *cb,
                                                                        const uint8_t *cr,
                                                                        uint8_t *out) {
    const __m256i low_byte = _mm256_set1_epi16(255), center = _mm256_set1_epi16(CENTER);
    __m256i light = _mm256_loadu_si256((const __m256i *)(const void *)y);
    __m256i blue = _mm256_loadu_si256((const __m256i *)(const void *)cb);
    __m256i red = _mm256_loadu_si256((const __m256i *)(const void *)cr);
    rgb even = colours(_mm256_and_si256(light, low_byte),
                       _mm256_sub_epi16(_mm256_and_si256(blue, low_byte), center),
                       _mm256_sub_epi16(_mm256_and_si256(red, low_byte), center));
    rgb odd =
        colours(_mm256_srli_epi16(light, 8), _mm256_sub_epi16(_mm256_srli_epi16(blue, 8), center),
                _mm256_sub_epi16(_mm256_srli_epi16(red, 8), center));
    store_pixels(&even, &odd, out);
}

/* The last pixels are computed together with some before them. */
TARGET static void from_ycc_avx2(const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
                                 size_t count, uint8_t *out) {
    if (count < AT_ONCE) {
        uint8_t row[3 * AT_ONCE];
        pixels_at_once(y, cb, cr, row);
        memcpy(out, row, 3 * count);
        return;
    }
    size_t last = count - AT_ONCE;
    for (size_t i = 0; i < last; i += AT_ONCE)
        pixels_at_once(y + i, cb + i, cr + i, out + 3 * i);
    pixels_at_once(y + last, cb + last, cr + last, out + 3 * last);
}

/* ---- both at once ---- */

TARGET static inline __attribute__((always_inline)) void sum_rows(const bool is_both,
                                                                  const presto__jpeg_rows *rows,
                                                                  int16_t *sums) {
    const __m256i bias = _mm256_set1_epi16(is_both ? BIAS_BOTH : BIAS_ACROSS);
    for (size_t i = 0; i < rows->count; i += 16) {
        __m256i sum = load_words(rows->near + i);
        if (is_both)
            sum = _mm256_add_epi16(thrice(sum), load_words(rows->far + i));
        _mm256_storeu_si256((__m256i *)(void *)(sums + i), _mm256_add_epi16(sum, bias));
    }
    sums[-1] = sums[0];
    sums[rows->count] = sums[rows->count - 1];
}

typedef struct colour_pixels {
    __m256i even, odd;
} colour_pixels;

TARGET static inline __attribute__((always_inline)) colour_pixels spread_sums(const bool is_both,
                                                                              const int16_t *s) {
    const __m256i one = _mm256_set1_epi16(1);
    __m256i here = thrice(_mm256_loadu_si256((const __m256i *)(const void *)s));
    __m256i even =
        _mm256_add_epi16(here, _mm256_loadu_si256((const __m256i *)(const void *)(s - 1)));
    __m256i odd =
        _mm256_add_epi16(here, _mm256_loadu_si256((const __m256i *)(const void *)(s + 1)));
    if (is_both)
        return (colour_pixels){_mm256_srai_epi16(even, 4),
                               _mm256_srai_epi16(_mm256_sub_epi16(odd, one), 4)};
    return (colour_pixels){_mm256_srai_epi16(_mm256_add_epi16(even, one), 2),
                           _mm256_srai_epi16(_mm256_add_epi16(odd, _mm256_add_epi16(one, one)), 2)};
}

TARGET static inline __attribute__((always_inline)) void spread_ycc(
    const bool is_both, const presto__jpeg_ycc *in, const presto__jpeg_stretch *stretch,
    uint8_t *out, uint8_t *scratch) {
    const __m256i low_byte = _mm256_set1_epi16(255);
    int16_t *cb = (int16_t *)(void *)(scratch + SLACK);
    int16_t *cr = cb + in->cb.count + SLACK;
    sum_rows(is_both, &in->cb, cb);
    sum_rows(is_both, &in->cr, cr);
    size_t skip = stretch->first % 2, count = stretch->count;
    for (size_t x = stretch->first - skip, some; count > 0; x += AT_ONCE, skip = 0) {
        uint8_t part[3 * AT_ONCE];
        bool is_part = skip > 0 || count < AT_ONCE;
        __m256i light = _mm256_loadu_si256((const __m256i *)(const void *)(in->y + x));
        const colour_pixels blue = spread_sums(is_both, cb + x / 2);
        const colour_pixels red = spread_sums(is_both, cr + x / 2);
        const rgb even = colours(_mm256_and_si256(light, low_byte), blue.even, red.even);
        const rgb odd = colours(_mm256_srli_epi16(light, 8), blue.odd, red.odd);
        store_pixels(&even, &odd, is_part ? part : out);
        some = AT_ONCE - skip < count ? AT_ONCE - skip : count;
        if (is_part)
            memcpy(out, part + 3 * skip, 3 * some);
        out += 3 * some;
        count -= some;
    }
}

TARGET static void spread_ycc_avx2(presto__jpeg_spread how, const presto__jpeg_ycc *in,
                                   const presto__jpeg_stretch *stretch, uint8_t *out,
                                   uint8_t *scratch) {
    if (how == PRESTO__JPEG_BOTH)
        spread_ycc(true, in, stretch, out, scratch);
    else
        spread_ycc(false, in, stretch, out, scratch);
}

static const presto__jpeg_colour vectors = {spread_avx2, from_ycc_avx2, spread_ycc_avx2};

const presto__jpeg_colour *presto__jpeg_colour_of(presto__jpeg_level level) {
    return level == PRESTO__JPEG_PORTABLE ? &portable : &vectors;
}

#elif PRESTO__JPEG_HAS_NEON

/* ---- NEON ---- */

enum { AT_ONCE = 16 };

static inline __attribute__((always_inline)) int16x8_t thrice(int16x8_t a) {
    return vaddq_s16(a, vaddq_s16(a, a));
}

static inline __attribute__((always_inline)) int16x8_t words_of(uint8x8_t bytes) {
    return vreinterpretq_s16_u16(vmovl_u8(bytes));
}

/* Sums of the rows, plus `bias`. Before and behind them the outer ones are repeated. */
static inline __attribute__((always_inline)) void sum_rows(const bool is_both,
                                                           const presto__jpeg_rows *rows,
                                                           const int16_t bias, int16_t *sums) {
    for (size_t i = 0; i < rows->count; i += 8) {
        int16x8_t sum = words_of(vld1_u8(rows->near + i));
        if (is_both)
            sum = vaddq_s16(thrice(sum), words_of(vld1_u8(rows->far + i)));
        vst1q_s16(sums + i, vaddq_s16(sum, vdupq_n_s16(bias)));
    }
    sums[-1] = sums[0];
    sums[rows->count] = sums[rows->count - 1];
}

/* Even and odd pixels. */
static inline __attribute__((always_inline)) int16x8x2_t spread_sums(const bool is_both,
                                                                     const rounding *add,
                                                                     const int16_t *s) {
    int16x8_t here = thrice(vld1q_s16(s));
    int16x8_t even = vaddq_s16(vaddq_s16(here, vld1q_s16(s - 1)), vdupq_n_s16((int16_t)add->even));
    int16x8_t odd = vaddq_s16(vaddq_s16(here, vld1q_s16(s + 1)), vdupq_n_s16((int16_t)add->odd));
    if (is_both)
        return (int16x8x2_t){{vshrq_n_s16(even, 4), vshrq_n_s16(odd, 4)}};
    return (int16x8x2_t){{vshrq_n_s16(even, 2), vshrq_n_s16(odd, 2)}};
}

static inline __attribute__((always_inline)) void spread_row(const bool is_both,
                                                             const presto__jpeg_rows *rows,
                                                             uint8_t *out, uint8_t *scratch) {
    int16_t *sums = (int16_t *)(void *)(scratch + SLACK);
    sum_rows(is_both, rows, 0, sums);
    for (size_t i = 0; i < rows->count; i += 8) {
        int16x8x2_t pixels = spread_sums(is_both, is_both ? &both : &across, sums + i);
        const uint8x8x2_t bytes = {{vmovn_u16(vreinterpretq_u16_s16(pixels.val[0])),
                                    vmovn_u16(vreinterpretq_u16_s16(pixels.val[1]))}};
        vst2_u8(out + 2 * i, bytes);
    }
}

static void spread_neon(presto__jpeg_spread how, const presto__jpeg_rows *rows, uint8_t *out,
                        uint8_t *scratch) {
    if (how == PRESTO__JPEG_BOTH)
        spread_row(true, rows, out, scratch);
    else if (how == PRESTO__JPEG_ACROSS)
        spread_row(false, rows, out, scratch);
    else
        spread_portable(how, rows, out, scratch);
}

/* Red, green and blue of 8 pixels; cb and cr are differences from the center. */
static inline __attribute__((always_inline)) uint8x8x3_t colours(int16x8_t y, int16x8_t cb,
                                                                 int16x8_t cr) {
    /* The factors of AVX2, and its rounding. */
    int16x8_t red = vaddq_s16(vaddq_s16(y, cr), vqrdmulhq_n_s16(cr, 13173));
    int16x8_t blue = vaddq_s16(vaddq_s16(y, vaddq_s16(cb, cb)), vqrdmulhq_n_s16(cb, -7471));
    int32x4_t low = vmlal_n_s16(vmull_n_s16(vget_low_s16(cb), -11277), vget_low_s16(cr), -23401);
    int32x4_t high = vmlal_n_s16(vmull_n_s16(vget_high_s16(cb), -11277), vget_high_s16(cr), -23401);
    int16x8_t green = vaddq_s16(y, vrshrn_high_n_s32(vrshrn_n_s32(low, 15), high, 15));
    return (uint8x8x3_t){{vqmovun_s16(red), vqmovun_s16(green), vqmovun_s16(blue)}};
}

static inline __attribute__((always_inline)) int16x8_t difference(uint8x8_t samples) {
    return vreinterpretq_s16_u16(vsubl_u8(samples, vdup_n_u8(CENTER)));
}

static inline __attribute__((always_inline)) void pixels_at_once(const uint8_t *y,
                                                                 const uint8_t *cb,
                                                                 const uint8_t *cr, uint8_t *out) {
    uint8x16_t light = vld1q_u8(y), blue = vld1q_u8(cb), red = vld1q_u8(cr);
    uint8x8x3_t first = colours(words_of(vget_low_u8(light)), difference(vget_low_u8(blue)),
                                difference(vget_low_u8(red)));
    uint8x8x3_t second = colours(words_of(vget_high_u8(light)), difference(vget_high_u8(blue)),
                                 difference(vget_high_u8(red)));
    const uint8x16x3_t pixels = {{vcombine_u8(first.val[0], second.val[0]),
                                  vcombine_u8(first.val[1], second.val[1]),
                                  vcombine_u8(first.val[2], second.val[2])}};
    vst3q_u8(out, pixels);
}

/* The last pixels are computed together with some before them. */
static void from_ycc_neon(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count,
                          uint8_t *out) {
    if (count < AT_ONCE) {
        uint8_t row[3 * AT_ONCE];
        pixels_at_once(y, cb, cr, row);
        memcpy(out, row, 3 * count);
        return;
    }
    size_t last = count - AT_ONCE;
    for (size_t i = 0; i < last; i += AT_ONCE)
        pixels_at_once(y + i, cb + i, cr + i, out + 3 * i);
    pixels_at_once(y + last, cb + last, cr + last, out + 3 * last);
}

static inline __attribute__((always_inline)) uint8x16_t in_turn(uint8x8_t even, uint8x8_t odd) {
    return vcombine_u8(vzip1_u8(even, odd), vzip2_u8(even, odd));
}

static inline __attribute__((always_inline)) void spread_ycc(const bool is_both,
                                                             const presto__jpeg_ycc *in,
                                                             const presto__jpeg_stretch *stretch,
                                                             uint8_t *out, uint8_t *scratch) {
    static const rounding less_center[] = {{1, 2, 2}, {0, -1, 4}};
    const rounding *add = &less_center[is_both];
    const int16_t bias = is_both ? BIAS_BOTH : BIAS_ACROSS;
    int16_t *cb = (int16_t *)(void *)(scratch + SLACK);
    int16_t *cr = cb + in->cb.count + SLACK;
    sum_rows(is_both, &in->cb, bias, cb);
    sum_rows(is_both, &in->cr, bias, cr);
    size_t skip = stretch->first % 2, count = stretch->count;
    for (size_t x = stretch->first - skip, some; count > 0; x += AT_ONCE, skip = 0) {
        uint8_t part[3 * AT_ONCE];
        bool is_part = skip > 0 || count < AT_ONCE;
        const uint8x8x2_t light = vld2_u8(in->y + x);
        const int16x8x2_t blue = spread_sums(is_both, add, cb + x / 2);
        const int16x8x2_t red = spread_sums(is_both, add, cr + x / 2);
        const uint8x8x3_t even = colours(words_of(light.val[0]), blue.val[0], red.val[0]);
        const uint8x8x3_t odd = colours(words_of(light.val[1]), blue.val[1], red.val[1]);
        const uint8x16x3_t pixels = {{in_turn(even.val[0], odd.val[0]),
                                      in_turn(even.val[1], odd.val[1]),
                                      in_turn(even.val[2], odd.val[2])}};
        vst3q_u8(is_part ? part : out, pixels);
        some = AT_ONCE - skip < count ? AT_ONCE - skip : count;
        if (is_part)
            memcpy(out, part + 3 * skip, 3 * some);
        out += 3 * some;
        count -= some;
    }
}

static void spread_ycc_neon(presto__jpeg_spread how, const presto__jpeg_ycc *in,
                            const presto__jpeg_stretch *stretch, uint8_t *out, uint8_t *scratch) {
    if (how == PRESTO__JPEG_BOTH)
        spread_ycc(true, in, stretch, out, scratch);
    else
        spread_ycc(false, in, stretch, out, scratch);
}

static const presto__jpeg_colour vectors = {spread_neon, from_ycc_neon, spread_ycc_neon};

const presto__jpeg_colour *presto__jpeg_colour_of(presto__jpeg_level level) {
    return level == PRESTO__JPEG_PORTABLE ? &portable : &vectors;
}

#else

const presto__jpeg_colour *presto__jpeg_colour_of(presto__jpeg_level level) {
    (void)level;
    return &portable;
}

#endif
