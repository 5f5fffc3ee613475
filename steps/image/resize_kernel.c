/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bilinear, as tf.image.resize computes it: half-pixel centers, no antialias, float32. Each product
 * and sum is rounded by itself, first along the row, then between the rows:
 *
 *     scale  = in / out
 *     at     = (i + 0.5) * scale - 0.5
 *     low    = max(floor(at), 0)
 *     high   = min(ceil(at), in - 1)
 *
 *     top    = tl + (tr - tl) * fx
 *     bottom = bl + (br - bl) * fx
 *     value  = top + (bottom - top) * fy
 *
 * The row sums are the same for every output row that uses the input row. So each input row is
 * resized horizontally once, and kept while the two rows around the output row move down. This
 * separates the two directions without changing a rounding. A uint8 result is the truncated value.
 * It cannot leave [0, 255], because rounding is monotonic.
 *
 * Pairs: at the borders, and where `at` is whole, low == high and the weight does not matter. For
 * integers such a tap can be replaced by two neighbours with weight 0 or 1 without changing the
 * value (d * 0 and d * 1 are exact). So the vector code can load both pixels at once. For floats it
 * cannot: inf * 0 is not 0.
 */
#include "resize_internal.h"

#include <math.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET_AVX2 __attribute__((target("avx2")))
#endif

/* Vector stores of the last pixel may write so many floats past a row. */
#define ROW_SLACK 16

presto__resize_tap presto__resize_tap_at(int64_t in, int64_t out, int64_t i) {
    if (in == out)
        return (presto__resize_tap){i, i, 0.0f};
    float scale = (float)in / (float)out;
    float at = ((float)i + 0.5f) * scale - 0.5f;
    float floor_at = floorf(at);
    int64_t low = (int64_t)floor_at;
    int64_t high = (int64_t)ceilf(at);
    return (presto__resize_tap){low > 0 ? low : 0, high < in - 1 ? high : in - 1, at - floor_at};
}

presto__resize_tap presto__resize_pair_at(int64_t in, int64_t out, int64_t i) {
    presto__resize_tap tap = presto__resize_tap_at(in, out, i);
    if (tap.low > in - 1)
        tap.low = in - 1;
    if (tap.low != tap.high)
        return tap;
    if (in == 1) /* there is no second one: what is loaded for it has weight 0 */
        return (presto__resize_tap){0, 0, 0.0f};
    if (tap.low == in - 1)
        return (presto__resize_tap){in - 2, in - 1, 1.0f};
    return (presto__resize_tap){tap.low, tap.low + 1, 0.0f};
}

presto_window presto__resize_need(const presto_tensor_spec *in, int64_t out_height,
                                  int64_t out_width, const presto_window *wanted) {
    int64_t height = in->dims[0];
    int64_t width = in->dims[1];
    presto_window need;
    need.y = presto__resize_pair_at(height, out_height, wanted->y).low;
    need.x = presto__resize_pair_at(width, out_width, wanted->x).low;
    need.height = presto__resize_pair_at(height, out_height, wanted->y + wanted->height - 1).high -
                  need.y + 1;
    need.width =
        presto__resize_pair_at(width, out_width, wanted->x + wanted->width - 1).high - need.x + 1;
    return need;
}

/* ---- tables ---- */

void presto__resizer_done(presto__resizer *resizer) {
    free(resizer->low);
    free(resizer->high);
    free(resizer->fractions);
    free(resizer->rows[0]);
    free(resizer->rows[1]);
    *resizer = (presto__resizer){0};
}

static presto_status grow_columns(presto__resizer *resizer, size_t columns, presto_error *err) {
    if (columns <= resizer->columns)
        return PRESTO_OK;
    free(resizer->low);
    free(resizer->high);
    free(resizer->fractions);
    resizer->columns = 0;
    resizer->in_width = 0;
    resizer->low = malloc(columns * sizeof *resizer->low);
    resizer->high = malloc(columns * sizeof *resizer->high);
    resizer->fractions = malloc(columns * 4 * sizeof *resizer->fractions);
    if (resizer->low == NULL || resizer->high == NULL || resizer->fractions == NULL) {
        presto_fail_memory(err, columns * 24);
        return PRESTO_ERR_MEMORY;
    }
    resizer->columns = columns;
    return PRESTO_OK;
}

static presto_status set_columns(presto__resizer *resizer, int64_t in, int64_t out, bool pairs,
                                 presto_error *err) {
    if (resizer->in_width == in && resizer->out_width == out && resizer->is_pairs == pairs)
        return PRESTO_OK;
    PRESTO_TRY(grow_columns(resizer, (size_t)out, err));
    for (int64_t i = 0; i < out; i++) {
        presto__resize_tap tap =
            pairs ? presto__resize_pair_at(in, out, i) : presto__resize_tap_at(in, out, i);
        resizer->low[i] = (int32_t)tap.low;
        resizer->high[i] = (int32_t)tap.high;
        for (int64_t k = 0; k < 4; k++)
            resizer->fractions[4 * i + k] = tap.fraction;
    }
    resizer->in_width = in;
    resizer->out_width = out;
    resizer->is_pairs = pairs;
    return PRESTO_OK;
}

static presto_status grow_rows(presto__resizer *resizer, size_t values, presto_error *err) {
    if (values <= resizer->row_values)
        return PRESTO_OK;
    resizer->row_values = 0;
    for (int i = 0; i < 2; i++) {
        free(resizer->rows[i]);
        resizer->rows[i] = malloc((values + ROW_SLACK) * sizeof *resizer->rows[i]);
        if (resizer->rows[i] == NULL) {
            presto_fail_memory(err, (values + ROW_SLACK) * sizeof *resizer->rows[i]);
            return PRESTO_ERR_MEMORY;
        }
    }
    resizer->row_values = values;
    return PRESTO_OK;
}

/* ---- along a row ---- */

/* One row: `count` output pixels whose taps start at low/high/fractions; `base` is the column of
 * in[0]. */
typedef struct row_job {
    const uint8_t *in;
    size_t in_bytes; /* may be read: this row and those after it */
    int64_t base;
    const int32_t *low, *high;
    const float *fractions;
    size_t count;
    size_t channels;
    float *out;
} row_job;

static inline __attribute__((always_inline)) void bytes_pixels_of(const row_job *job, size_t first,
                                                                  size_t channels) {
    const int32_t *low = job->low;
    const int32_t *high = job->high;
    float *restrict out = job->out + first * channels;
    for (size_t i = first; i < job->count; i++) {
        const uint8_t *left = job->in + (size_t)(low[i] - job->base) * channels;
        const uint8_t *right = job->in + (size_t)(high[i] - job->base) * channels;
        float fraction = job->fractions[4 * i];
        for (size_t c = 0; c < channels; c++)
            *out++ = (float)left[c] + ((float)right[c] - (float)left[c]) * fraction;
    }
}

/* Known numbers of channels give straight-line code. */
static void bytes_pixels(const row_job *job, size_t first) {
    if (job->channels == 3)
        bytes_pixels_of(job, first, 3);
    else if (job->channels == 1)
        bytes_pixels_of(job, first, 1);
    else
        bytes_pixels_of(job, first, job->channels);
}

static void row_bytes(const row_job *job) {
    bytes_pixels(job, 0);
}

static void row_floats(const row_job *job) {
    size_t channels = job->channels;
    float *out = job->out;
    for (size_t i = 0; i < job->count; i++) {
        const uint8_t *left =
            job->in + (size_t)(job->low[i] - job->base) * channels * sizeof(float);
        const uint8_t *right =
            job->in + (size_t)(job->high[i] - job->base) * channels * sizeof(float);
        float fraction = job->fractions[4 * i];
        for (size_t c = 0; c < channels; c++) {
            float a, b; /* the input need not be aligned */
            memcpy(&a, left + c * sizeof a, sizeof a);
            memcpy(&b, right + c * sizeof b, sizeof b);
            *out++ = a + (b - a) * fraction;
        }
    }
}

#ifdef TARGET_AVX2
/* How many of the first pixels have `bytes` readable bytes from their left neighbour on. */
static size_t safe_pixels(const row_job *job, size_t bytes) {
    size_t count = job->count;
    while (count > 0 &&
           (size_t)(job->low[count - 1] - job->base) * job->channels + bytes > job->in_bytes)
        count--;
    return count;
}

/* Left or right neighbours of two pixels, 8 bytes each in `both`, as floats. */
TARGET_AVX2 static inline __m256 spread(__m256i both, __m256i order) {
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(both, order));
}

/*
 * What two_pixels() needs, in registers. Through `job`, it would be loaded again after each store.
 */
typedef struct wide_row {
    const uint8_t *in;
    const int32_t *low;
    const float *fractions;
    int64_t base;
    float *out;
    __m256i left_order, right_order;
} wide_row;

/* Output pixels i and i + 1. With 3 channels a fourth float is written; the next pixel
 * overwrites it. */
TARGET_AVX2 static inline __attribute__((always_inline)) void two_pixels(wide_row row,
                                                                         size_t channels,
                                                                         size_t i) {
    const uint8_t *at0 = row.in + (size_t)(row.low[i] - row.base) * channels;
    const uint8_t *at1 = row.in + (size_t)(row.low[i + 1] - row.base) * channels;
    __m256i both = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)(const void *)at0)),
        _mm_loadl_epi64((const __m128i *)(const void *)at1), 1);
    __m256 left = spread(both, row.left_order);
    __m256 right = spread(both, row.right_order);
    __m256 fraction = _mm256_loadu_ps(row.fractions + 4 * i);
    __m256 value = _mm256_add_ps(left, _mm256_mul_ps(_mm256_sub_ps(right, left), fraction));
    _mm_storeu_ps(row.out + i * channels, _mm256_castps256_ps128(value));
    _mm_storeu_ps(row.out + (i + 1) * channels, _mm256_extractf128_ps(value, 1));
}

/* Both neighbours of a pixel of 3 or 4 bytes stand in 8 bytes; two pixels make a vector. */
TARGET_AVX2 static inline __attribute__((always_inline)) void row_bytes_wide(const row_job *job,
                                                                             size_t channels,
                                                                             __m128i left_order,
                                                                             __m128i right_order) {
    const wide_row row = {job->in,
                          job->low,
                          job->fractions,
                          job->base,
                          job->out,
                          _mm256_broadcastsi128_si256(left_order),
                          _mm256_broadcastsi128_si256(right_order)};
    size_t safe = safe_pixels(job, 8);
    size_t i = 0;
    for (; i + 4 <= safe; i += 4) {
        two_pixels(row, channels, i);
        two_pixels(row, channels, i + 2);
    }
    if (i + 2 <= safe) {
        two_pixels(row, channels, i);
        i += 2;
    }
    /* The last one of an odd number, computed together with the one before it. */
    if (i < safe && safe > 1) {
        two_pixels(row, channels, safe - 2);
        i = safe;
    }
    if (i < job->count)
        bytes_pixels(job, i);
}

TARGET_AVX2 static void row_bytes_rgb(const row_job *job) {
    const char x = -1;
    row_bytes_wide(job, 3, _mm_setr_epi8(0, x, x, x, 1, x, x, x, 2, x, x, x, x, x, x, x),
                   _mm_setr_epi8(3, x, x, x, 4, x, x, x, 5, x, x, x, x, x, x, x));
}

TARGET_AVX2 static void row_bytes_rgba(const row_job *job) {
    const char x = -1;
    row_bytes_wide(job, 4, _mm_setr_epi8(0, x, x, x, 1, x, x, x, 2, x, x, x, 3, x, x, x),
                   _mm_setr_epi8(4, x, x, x, 5, x, x, x, 6, x, x, x, 7, x, x, x));
}

/* One channel: both neighbours in the low half of a gathered word; eight pixels make a vector. */
TARGET_AVX2 static void row_bytes_grey(const row_job *job) {
    size_t safe = safe_pixels(job, 4);
    const __m256i low_byte = _mm256_set1_epi32(0xff);
    const __m256i base = _mm256_set1_epi32((int)job->base);
    /*
     * The fractions are stored four times each: every fourth one, from two gathers' worth of lanes.
     */
    const __m256i every_fourth = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    size_t i = 0;
    for (; i + 8 <= safe; i += 8) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(job->low + i));
        __m256i both = _mm256_i32gather_epi32((const int *)(const void *)job->in,
                                              _mm256_sub_epi32(low, base), 1);
        __m256 left = _mm256_cvtepi32_ps(_mm256_and_si256(both, low_byte));
        __m256 right = _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(both, 8), low_byte));
        __m256 fraction = _mm256_i32gather_ps(job->fractions + 4 * i, every_fourth, 4);
        __m256 value = _mm256_add_ps(left, _mm256_mul_ps(_mm256_sub_ps(right, left), fraction));
        _mm256_storeu_ps(job->out + i, value);
    }
    bytes_pixels(job, i);
}
#endif

/* ---- between two rows ---- */

static inline __attribute__((always_inline)) void blend_bytes_body(const float *restrict top,
                                                                   const float *restrict bottom,
                                                                   float fraction, size_t count,
                                                                   uint8_t *restrict out) {
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)(int)(top[i] + (bottom[i] - top[i]) * fraction);
}

static inline __attribute__((always_inline)) void blend_floats_body(const float *restrict top,
                                                                    const float *restrict bottom,
                                                                    float fraction, size_t count,
                                                                    float *restrict out) {
    for (size_t i = 0; i < count; i++)
        out[i] = top[i] + (bottom[i] - top[i]) * fraction;
}

static void blend_bytes(const float *top, const float *bottom, float fraction, size_t count,
                        void *out) {
    blend_bytes_body(top, bottom, fraction, count, out);
}

static void blend_floats(const float *top, const float *bottom, float fraction, size_t count,
                         void *out) {
    blend_floats_body(top, bottom, fraction, count, out);
}

#ifdef TARGET_AVX2
TARGET_AVX2 static inline __m256i blend8(const float *top, const float *bottom, __m256 fraction) {
    __m256 a = _mm256_loadu_ps(top);
    __m256 b = _mm256_loadu_ps(bottom);
    return _mm256_cvttps_epi32(_mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), fraction)));
}

TARGET_AVX2 static void blend_bytes_avx2(const float *top, const float *bottom, float fraction,
                                         size_t count, void *out) {
    const __m256 weight = _mm256_set1_ps(fraction);
    /* Packing works within 128-bit halves; this restores the order of the groups of four. */
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    uint8_t *bytes = out;
    size_t i = 0;
    for (; i + 32 <= count; i += 32) {
        __m256i first = _mm256_packs_epi32(blend8(top + i, bottom + i, weight),
                                           blend8(top + i + 8, bottom + i + 8, weight));
        __m256i second = _mm256_packs_epi32(blend8(top + i + 16, bottom + i + 16, weight),
                                            blend8(top + i + 24, bottom + i + 24, weight));
        __m256i packed = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), order);
        _mm256_storeu_si256((__m256i *)(void *)(bytes + i), packed);
    }
    blend_bytes_body(top + i, bottom + i, fraction, count - i, bytes + i);
}

TARGET_AVX2 static void blend_floats_avx2(const float *top, const float *bottom, float fraction,
                                          size_t count, void *out) {
    blend_floats_body(top, bottom, fraction, count, out);
}
#endif

/* ---- both ---- */

typedef void (*row_fn)(const row_job *job);
typedef void (*blend_fn)(const float *top, const float *bottom, float fraction, size_t count,
                         void *out);

static row_fn pick_row(const presto__resizer *resizer, presto_dtype dtype, size_t channels) {
    if (dtype == PRESTO_FLOAT32)
        return row_floats;
#ifdef TARGET_AVX2
    if (resizer->use_avx2 && channels == 3)
        return row_bytes_rgb;
    if (resizer->use_avx2 && channels == 4)
        return row_bytes_rgba;
    if (resizer->use_avx2 && channels == 1)
        return row_bytes_grey;
#endif
    (void)resizer, (void)channels;
    return row_bytes;
}

static blend_fn pick_blend(const presto__resizer *resizer, presto_dtype dtype) {
#ifdef TARGET_AVX2
    if (resizer->use_avx2)
        return dtype == PRESTO_FLOAT32 ? blend_floats_avx2 : blend_bytes_avx2;
#endif
    (void)resizer;
    return dtype == PRESTO_FLOAT32 ? blend_floats : blend_bytes;
}

typedef struct row_maker {
    presto__resizer *resizer;
    const presto_part *in;
    row_job job;
    row_fn run;
} row_maker;

/* Input row `number`, resized horizontally, in rows[slot]; the other slot is not changed. */
static void make_row(row_maker *maker, int slot, int64_t number) {
    presto__resizer *resizer = maker->resizer;
    const presto_part *in = maker->in;
    row_job *job = &maker->job;
    if (resizer->row_numbers[slot] == number)
        return;
    size_t stride = (size_t)in->window.width * presto__pixel_bytes(&in->whole);
    size_t above = (size_t)(number - in->window.y);
    job->in = (const uint8_t *)in->tensor.data + above * stride;
    job->in_bytes = ((size_t)in->window.height - above) * stride;
    job->out = resizer->rows[slot];
    maker->run(job);
    resizer->row_numbers[slot] = number;
}

static void swap_rows(presto__resizer *resizer) {
    float *row = resizer->rows[0];
    int64_t number = resizer->row_numbers[0];
    resizer->rows[0] = resizer->rows[1];
    resizer->row_numbers[0] = resizer->row_numbers[1];
    resizer->rows[1] = row;
    resizer->row_numbers[1] = number;
}

presto_status presto__resize(presto__resizer *resizer, const presto_part *in,
                             const presto__resized *wanted, void *out, presto_error *err) {
    const presto_window *window = &wanted->window;
    presto_dtype dtype = in->whole.dtype;
    bool pairs = dtype == PRESTO_UINT8;
    size_t channels = (size_t)in->whole.dims[2];
    size_t row_values = (size_t)window->width * channels;
    PRESTO_TRY(set_columns(resizer, in->whole.dims[1], wanted->width, pairs, err));
    PRESTO_TRY(grow_rows(resizer, row_values, err));
    row_maker maker = {.resizer = resizer,
                       .in = in,
                       .job = {.base = in->window.x,
                               .low = resizer->low + window->x,
                               .high = resizer->high + window->x,
                               .fractions = resizer->fractions + 4 * window->x,
                               .count = (size_t)window->width,
                               .channels = channels},
                       .run = pick_row(resizer, dtype, channels)};
    blend_fn blend = pick_blend(resizer, dtype);
    uint8_t *to = out;
    resizer->row_numbers[0] = resizer->row_numbers[1] = -1;
    for (int64_t y = window->y; y < window->y + window->height; y++) {
        presto__resize_tap tap = presto__resize_tap_at(in->whole.dims[0], wanted->height, y);
        if (resizer->row_numbers[1] == tap.low)
            swap_rows(resizer);
        make_row(&maker, 0, tap.low);
        if (tap.high != tap.low)
            make_row(&maker, 1, tap.high);
        blend(resizer->rows[0], resizer->rows[tap.high != tap.low], tap.fraction, row_values, to);
        to += row_values * presto_dtype_bytes(dtype);
    }
    return PRESTO_OK;
}
