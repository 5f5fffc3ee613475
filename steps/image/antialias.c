/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bilinear with antialias. When it shrinks, the triangle of the filter is as much wider as the
 * input is larger, so that every input pixel counts:
 *
 *     scale   = in / out
 *     support = max(scale, 1)
 *     center  = (i + 0.5) * scale
 *     taps    = [floor(center - support + 0.5), floor(center + support + 0.5)), within the input
 *     weight  = max(0, 1 - |tap + 0.5 - center| / support), divided by the sum of all
 *
 * uint8 gives the bytes of Pillow: weights are computed in double and rounded to 22 bits, and both
 * passes, first along the rows, then between them, round to uint8. float32 follows PyTorch's
 * interpolate(antialias=True): weights are computed in float, whose error grows with the center, so
 * that better ones would differ from it by more than 1e-6.
 *
 * Rows are resized horizontally once, and kept in a ring until no output row needs them.
 */
#include "antialias_internal.h"

#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET_AVX2 __attribute__((target("avx2")))
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define PRECISION 22
#define HALF (1 << (PRECISION - 1))
#define MAX_MEMORY_BYTES ((uint64_t)1 << 30)
/* Values of a row that are summed up together between the rows. */
#define BLOCK 128
/* What vector code may write or read past the end of a row or table. */
#define SLACK_BYTES 64

/* The taps of all output positions in one direction. */
typedef struct filter {
    int64_t in, out;
    size_t most; /* weights a position, unused ones 0; even, so that they can be taken in pairs */
    int32_t *first;
    int32_t *count;
    union {
        int32_t *fixed;
        float *floats;
    };
} filter;

/* ---- weights ---- */

typedef struct span_of_taps {
    int64_t first, count;
} span_of_taps;

static span_of_taps taps_within(double from, double to, int64_t in) {
    int64_t first = from > 0 ? (int64_t)from : 0;
    int64_t end = (int64_t)to < in ? (int64_t)to : in;
    return (span_of_taps){first, end > first ? end - first : 0};
}

static double triangle(double distance) {
    double x = fabs(distance);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static void weigh_fixed(const filter *f, int64_t i) {
    double scale = (double)f->in / (double)f->out;
    double support = scale > 1.0 ? scale : 1.0;
    double narrow = 1.0 / support;
    double center = ((double)i + 0.5) * scale;
    span_of_taps taps = taps_within(center - support + 0.5, center + support + 0.5, f->in);
    int32_t *weights = f->fixed + (size_t)i * f->most;
    double sum = 0;
    for (int64_t k = 0; k < taps.count; k++)
        sum += triangle(((double)(taps.first + k) - center + 0.5) * narrow);
    for (int64_t k = 0; k < taps.count; k++) {
        double weight = triangle(((double)(taps.first + k) - center + 0.5) * narrow) / sum;
        weights[k] = (int32_t)(0.5 + weight * (1 << PRECISION));
    }
    f->first[i] = (int32_t)taps.first;
    f->count[i] = (int32_t)taps.count;
}

/* Each value is rounded where PyTorch's variables of type float round it. */
static void weigh_floats(const filter *f, int64_t i) {
    float scale = (float)f->in / (float)f->out;
    float support = scale >= 1.0f ? scale : 1.0f;
    float narrow = (float)(1.0 / (double)support);
    float center = (float)((double)scale * ((double)i + 0.5));
    span_of_taps taps =
        taps_within((double)(center - support) + 0.5, (double)(center + support) + 0.5, f->in);
    float *weights = f->floats + (size_t)i * f->most;
    float sum = 0;
    for (int64_t k = 0; k < taps.count; k++) {
        float distance = (float)(taps.first + k) - center;
        weights[k] = (float)triangle((float)(((double)distance + 0.5) * (double)narrow));
        sum += weights[k];
    }
    for (int64_t k = 0; k < taps.count; k++)
        weights[k] /= sum;
    f->first[i] = (int32_t)taps.first;
    f->count[i] = (int32_t)taps.count;
}

static filter filter_of(int64_t in, int64_t out) {
    double scale = (double)in / (double)out;
    double support = scale > 1.0 ? ceil(scale) : 1.0;
    size_t most = (size_t)support * 2 + 2;
    return (filter){.in = in, .out = out, .most = most};
}

static uint64_t filter_bytes(const filter *f) {
    return (uint64_t)f->out * (2 + (uint64_t)f->most) * 4 + SLACK_BYTES;
}

/* Puts the tables at `memory`, and fills them. */
static void filter_fill(filter *f, uint8_t *memory, presto_dtype dtype) {
    size_t positions = (size_t)f->out;
    memset(memory, 0, (size_t)filter_bytes(f));
    f->first = (int32_t *)(void *)memory;
    f->count = f->first + positions;
    if (dtype == PRESTO_UINT8)
        f->fixed = f->count + positions;
    else
        f->floats = (float *)(void *)(f->count + positions);
    for (int64_t i = 0; i < f->out; i++) {
        if (dtype == PRESTO_UINT8)
            weigh_fixed(f, i);
        else
            weigh_floats(f, i);
    }
}

/* ---- along a row ---- */

typedef struct row_job {
    const uint8_t *in; /* the window's first pixel of this row */
    size_t readable;   /* bytes from there on */
    const filter *columns;
    size_t channels;
    uint8_t *out;
} row_job;

ALWAYS_INLINE uint8_t clip(int32_t sum) {
    int32_t value = sum >> PRECISION;
    return (uint8_t)(value < UINT8_MAX ? value : UINT8_MAX);
}

/* Up to 4 channels, a constant after inlining. */
ALWAYS_INLINE void bytes_pixels(const row_job *job, size_t i, size_t channels) {
    const filter *f = job->columns;
    for (; i < (size_t)f->out; i++) {
        const uint8_t *from = job->in + (size_t)f->first[i] * channels;
        const int32_t *weights = f->fixed + i * f->most;
        int32_t sums[4] = {HALF, HALF, HALF, HALF};
        for (int32_t k = 0; k < f->count[i]; k++)
            for (size_t c = 0; c < channels; c++)
                sums[c] += from[(size_t)k * channels + c] * weights[k];
        for (size_t c = 0; c < channels; c++)
            job->out[i * channels + c] = clip(sums[c]);
    }
}

static void bytes_pixels_of_any(const row_job *job) {
    const filter *f = job->columns;
    for (size_t i = 0; i < (size_t)f->out; i++) {
        const uint8_t *from = job->in + (size_t)f->first[i] * job->channels;
        const int32_t *weights = f->fixed + i * f->most;
        for (size_t c = 0; c < job->channels; c++) {
            int32_t sum = HALF;
            for (int32_t k = 0; k < f->count[i]; k++)
                sum += from[(size_t)k * job->channels + c] * weights[k];
            job->out[i * job->channels + c] = clip(sum);
        }
    }
}

static void row_bytes(const row_job *job) {
    if (job->channels == 3)
        bytes_pixels(job, 0, 3);
    else if (job->channels == 1)
        bytes_pixels(job, 0, 1);
    else if (job->channels == 4)
        bytes_pixels(job, 0, 4);
    else
        bytes_pixels_of_any(job);
}

static void row_floats(const row_job *job) {
    const filter *f = job->columns;
    size_t pixel = job->channels * sizeof(float);
    for (size_t i = 0; i < (size_t)f->out; i++) {
        const uint8_t *from = job->in + (size_t)f->first[i] * pixel;
        const float *weights = f->floats + i * f->most;
        for (size_t c = 0; c < job->channels; c++) {
            float sum = 0;
            for (int32_t k = 0; k < f->count[i]; k++) {
                float value; /* the input need not be aligned */
                memcpy(&value, from + (size_t)k * pixel + c * sizeof value, sizeof value);
                sum += value * weights[k];
            }
            memcpy(job->out + i * pixel + c * sizeof sum, &sum, sizeof sum);
        }
    }
}

#ifdef TARGET_AVX2
/* Two taps at once: the pixel of the first in the low half, that of the second in the high half. */
TARGET_AVX2 static void row_bytes_rgb(const row_job *job) {
    const filter *f = job->columns;
    const char x = -1;
    const __m128i split = _mm_setr_epi8(0, 1, 2, x, 3, 4, 5, x, x, x, x, x, x, x, x, x);
    const __m256i to_halves = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m128i half = _mm_set1_epi32(HALF);
    const __m128i join = _mm_setr_epi8(0, 4, 8, x, x, x, x, x, x, x, x, x, x, x, x, x);
    for (size_t i = 0; i < (size_t)f->out; i++) {
        size_t at = (size_t)f->first[i] * 3;
        size_t count = (size_t)f->count[i];
        /* Each pair of taps is loaded as 8 bytes, of which the last 2 are not used. */
        if (at + (count + 1) / 2 * 6 + 2 > job->readable) {
            bytes_pixels(job, i, 3);
            return;
        }
        const int32_t *weights = f->fixed + i * f->most;
        __m256i sums = _mm256_setzero_si256();
        for (size_t k = 0; k < count; k += 2) {
            __m128i two = _mm_loadl_epi64((const __m128i *)(const void *)(job->in + at + k * 3));
            __m256i pixels = _mm256_cvtepu8_epi32(_mm_shuffle_epi8(two, split));
            __m128i pair = _mm_loadl_epi64((const __m128i *)(const void *)(weights + k));
            __m256i spread = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(pair), to_halves);
            sums = _mm256_add_epi32(sums, _mm256_mullo_epi32(pixels, spread));
        }
        __m128i sum =
            _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        sum = _mm_srai_epi32(_mm_add_epi32(sum, half), PRECISION);
        sum = _mm_min_epi32(sum, _mm_set1_epi32(UINT8_MAX));
        /* A fourth byte is written; the next pixel overwrites it, and rows have slack. */
        int32_t pixel = _mm_cvtsi128_si32(_mm_shuffle_epi8(sum, join));
        memcpy(job->out + i * 3, &pixel, sizeof pixel);
    }
}
#endif

/* ---- between the rows ---- */

typedef struct column_job {
    uint8_t *const *rows; /* one a tap */
    const void *weights;  /* int32 or float, one a tap */
    size_t taps;
    size_t values; /* of a row */
    void *out;
} column_job;

ALWAYS_INLINE void columns_bytes_body(const column_job *job) {
    const int32_t *weights = job->weights;
    uint8_t *out = job->out;
    for (size_t at = 0; at < job->values; at += BLOCK) {
        size_t count = job->values - at < BLOCK ? job->values - at : BLOCK;
        int32_t sums[BLOCK];
        for (size_t i = 0; i < BLOCK; i++)
            sums[i] = HALF;
        for (size_t k = 0; k < job->taps; k++) {
            const uint8_t *row = job->rows[k] + at;
            int32_t weight = weights[k];
            for (size_t i = 0; i < count; i++)
                sums[i] += row[i] * weight;
        }
        for (size_t i = 0; i < count; i++)
            out[at + i] = clip(sums[i]);
    }
}

ALWAYS_INLINE void columns_floats_body(const column_job *job) {
    const float *weights = job->weights;
    float *out = job->out;
    for (size_t at = 0; at < job->values; at += BLOCK) {
        size_t count = job->values - at < BLOCK ? job->values - at : BLOCK;
        float sums[BLOCK] = {0};
        for (size_t k = 0; k < job->taps; k++) {
            const float *row = (const float *)(const void *)job->rows[k] + at;
            float weight = weights[k];
            for (size_t i = 0; i < count; i++)
                sums[i] += row[i] * weight;
        }
        memcpy(out + at, sums, count * sizeof *sums);
    }
}

static void columns_bytes(const column_job *job) {
    columns_bytes_body(job);
}

static void columns_floats(const column_job *job) {
    columns_floats_body(job);
}

#ifdef TARGET_AVX2
TARGET_AVX2 static void columns_bytes_avx2(const column_job *job) {
    columns_bytes_body(job);
}

TARGET_AVX2 static void columns_floats_avx2(const column_job *job) {
    columns_floats_body(job);
}
#endif

/* ---- both ---- */

typedef struct kernels {
    void (*row)(const row_job *job);
    void (*columns)(const column_job *job);
} kernels;

static kernels pick(const presto__antialias *antialias, const presto_tensor_spec *in) {
    bool is_bytes = in->dtype == PRESTO_UINT8;
    kernels chosen = {is_bytes ? row_bytes : row_floats, is_bytes ? columns_bytes : columns_floats};
#ifdef TARGET_AVX2
    if (antialias->use_avx2) {
        chosen.columns = is_bytes ? columns_bytes_avx2 : columns_floats_avx2;
        if (is_bytes && in->dims[2] == 3)
            chosen.row = row_bytes_rgb;
    }
#else
    (void)antialias;
#endif
    return chosen;
}

/* Everything that a resize needs, in antialias->memory. */
typedef struct layout {
    filter rows, columns;
    size_t row_bytes; /* of a row that has been resized horizontally, with slack */
    size_t ring;      /* how many of them are kept */
    uint8_t *ring_rows;
    uint8_t **taps; /* of an output row */
} layout;

static size_t whole_lines(uint64_t bytes) {
    return (size_t)((bytes + 63) / 64 * 64);
}

static presto_status lay_out(presto__antialias *antialias, const presto__antialias_job *job,
                             layout *layout_out, presto_error *err) {
    presto_dtype dtype = job->in->whole.dtype;
    layout l = {.rows = filter_of(job->window.height, job->height),
                .columns = filter_of(job->window.width, job->width)};
    uint64_t row = (uint64_t)job->width * presto__pixel_bytes(&job->in->whole) + SLACK_BYTES;
    l.ring = l.rows.most;
    uint64_t bytes[] = {filter_bytes(&l.rows), filter_bytes(&l.columns), l.ring * sizeof *l.taps};
    uint64_t total = 64;
    for (size_t i = 0; i < 3; i++)
        total += bytes[i] + 64;
    if (total > MAX_MEMORY_BYTES || row > MAX_MEMORY_BYTES ||
        (row + 64) * l.ring > MAX_MEMORY_BYTES - total)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "resizing %jd x %jd to %jd x %jd pixels takes more than 1 GiB of memory",
                           (intmax_t)job->window.height, (intmax_t)job->window.width,
                           (intmax_t)job->height, (intmax_t)job->width);
    l.row_bytes = whole_lines(row);
    total += l.row_bytes * l.ring;
    antialias->memory.bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(&antialias->memory, (size_t)total, err));
    uint8_t *at = antialias->memory.data + (64 - (uintptr_t)antialias->memory.data % 64) % 64;
    filter_fill(&l.rows, at, dtype);
    at += whole_lines(bytes[0]);
    filter_fill(&l.columns, at, dtype);
    at += whole_lines(bytes[1]);
    l.taps = (uint8_t **)(void *)at;
    at += whole_lines(bytes[2]);
    l.ring_rows = at;
    *layout_out = l;
    return PRESTO_OK;
}

static uint8_t *ring_row(const layout *l, int64_t number) {
    return l->ring_rows + (size_t)number % l->ring * l->row_bytes;
}

/* Row `number` of the window, resized horizontally, into its place in the ring. */
static void make_row(const presto__antialias_job *job, const layout *l, int64_t number,
                     void (*run)(const row_job *job)) {
    const presto_part *in = job->in;
    size_t pixel = presto__pixel_bytes(&in->whole);
    size_t stride = (size_t)in->window.width * pixel;
    size_t start = (size_t)(job->window.y + number - in->window.y) * stride +
                   (size_t)(job->window.x - in->window.x) * pixel;
    const row_job row = {.in = (const uint8_t *)in->tensor.data + start,
                         .readable = (size_t)in->window.height * stride - start,
                         .columns = &l->columns,
                         .channels = (size_t)in->whole.dims[2],
                         .out = ring_row(l, number)};
    run(&row);
}

presto_status presto__antialias_resize(presto__antialias *antialias,
                                       const presto__antialias_job *job, void *out,
                                       presto_error *err) {
    layout l;
    PRESTO_TRY(lay_out(antialias, job, &l, err));
    kernels chosen = pick(antialias, &job->in->whole);
    column_job columns = {.rows = l.taps,
                          .values = (size_t)job->width * (size_t)job->in->whole.dims[2]};
    size_t out_row = (size_t)job->width * presto__pixel_bytes(&job->in->whole);
    int64_t made = 0; /* rows before this one have been resized */
    for (int64_t y = 0; y < job->height; y++) {
        int64_t first = l.rows.first[y];
        columns.taps = (size_t)l.rows.count[y];
        for (; made < first + l.rows.count[y]; made++)
            if (made >= first)
                make_row(job, &l, made, chosen.row);
        for (size_t k = 0; k < columns.taps; k++)
            l.taps[k] = ring_row(&l, first + (int64_t)k);
        columns.weights = l.rows.fixed + (size_t)y * l.rows.most; /* or floats: of the same size */
        columns.out = (uint8_t *)out + (size_t)y * out_row;
        chosen.columns(&columns);
    }
    return PRESTO_OK;
}

void presto__antialias_done(presto__antialias *antialias) {
    presto_buffer_done(&antialias->memory);
}
