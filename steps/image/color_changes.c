/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of torchvision's functions on tensors, in float32, each operation rounded by
 * itself in their order.
 *
 *     brightness  f * v
 *     contrast    f * v + (1 - f) * mean grey of the image
 *     saturation  f * v + (1 - f) * grey of the pixel
 *     hue         RGB to HSV, h + f modulo 1, and back
 *
 * clamped to the range of the dtype. Grey is 0.2989 R + 0.587 G + 0.114 B. Of uint8, grey is
 * truncated, and so are results; hue is computed from v / 255 and comes back as 255.999 v.
 *
 * Pixels are split into planes of CHUNK values, so that the compiler vectorizes each loop.
 */
#include "color_internal.h"

#define CHUNK 128
#define BODY static inline __attribute__((always_inline)) void

typedef struct planes {
    float c[3][CHUNK];
} planes;

typedef struct change_job {
    presto__color change;
    size_t channels;
    size_t count; /* of pixels */
    float factor; /* f, or the turn of the hue */
    float rest;   /* 1 - f */
    float mean;   /* of the image's grey, for contrast */
} change_job;

/* `in` and `out` may be the same. */
typedef void (*change_fn)(const change_job *job, const uint8_t *in, uint8_t *out);
/* Sum of the grey of `count` pixels. */
typedef double (*grey_fn)(const uint8_t *in, size_t count, size_t channels);

struct presto__color_kernels {
    change_fn change_bytes, change_floats;
    grey_fn grey_bytes, grey_floats;
};

/* ---- pixels to planes and back ---- */

BODY load(const uint8_t *in, size_t count, size_t channels, bool is_bytes, planes *p) {
    for (size_t c = 0; c < channels; c++) {
        for (size_t i = 0; i < count; i++) {
            size_t at = i * channels + c;
            if (is_bytes)
                p->c[c][i] = (float)in[at];
            else
                memcpy(&p->c[c][i], in + at * sizeof(float), sizeof(float));
        }
        for (size_t i = count; i < CHUNK; i++)
            p->c[c][i] = 0;
    }
}

BODY store(const planes *p, size_t count, size_t channels, bool is_bytes, uint8_t *out) {
    for (size_t c = 0; c < channels; c++) {
        for (size_t i = 0; i < count; i++) {
            size_t at = i * channels + c;
            if (is_bytes)
                out[at] = (uint8_t)(int)p->c[c][i];
            else
                memcpy(out + at * sizeof(float), &p->c[c][i], sizeof(float));
        }
    }
}

/* ---- the changes ---- */

BODY grey_of(const planes *p, size_t channels, bool is_bytes, float grey[CHUNK]) {
    for (size_t i = 0; i < CHUNK; i++) {
        if (channels == 1) {
            grey[i] = p->c[0][i];
            continue;
        }
        float value = 0.2989f * p->c[0][i] + 0.587f * p->c[1][i] + 0.114f * p->c[2][i];
        grey[i] = is_bytes ? (float)(int)value : value;
    }
}

/* v becomes factor * v + added, within the range of the dtype. */
BODY blend(const change_job *job, bool is_bytes, const float added[CHUNK], float v[CHUNK]) {
    float most = is_bytes ? 255.0f : 1.0f;
    for (size_t i = 0; i < CHUNK; i++) {
        float value = job->factor * v[i] + added[i];
        value = value < 0 ? 0 : value;
        v[i] = value > most ? most : value;
    }
}

BODY blend_planes(const change_job *job, bool is_bytes, planes *p) {
    float added[CHUNK];
    if (job->change == PRESTO__COLOR_SATURATION)
        grey_of(p, job->channels, is_bytes, added);
    for (size_t i = 0; i < CHUNK; i++) {
        if (job->change == PRESTO__COLOR_SATURATION)
            added[i] = job->rest * added[i];
        else
            added[i] = job->change == PRESTO__COLOR_CONTRAST ? job->rest * job->mean : 0;
    }
    for (size_t c = 0; c < job->channels; c++)
        blend(job, is_bytes, added, p->c[c]);
}

/*
 * Hue in turns, saturation and value. All of it by selection among values that are computed anyway:
 * a branch would keep the compiler from vectorizing.
 */
BODY hsv_of(float r, float g, float b, float hsv_out[3]) {
    float most = r > g ? r : g;
    most = most > b ? most : b;
    float least = r < g ? r : g;
    least = least < b ? least : b;
    float range = most - least;
    float divisor = most == least ? 1.0f : range;
    float value_divisor = most == least ? 1.0f : most;
    float rc = (most - r) / divisor;
    float gc = (most - g) / divisor;
    float bc = (most - b) / divisor;
    float from_red = bc - gc, from_green = 2.0f + rc - bc, from_blue = 4.0f + gc - rc;
    float sixths = most == g ? from_green : from_blue;
    sixths = most == r ? from_red : sixths;
    float h = sixths / 6.0f + 1.0f;
    float less = h - 1.0f;
    hsv_out[0] = h >= 1.0f ? less : h;
    hsv_out[1] = range / value_divisor;
    hsv_out[2] = most;
}

static inline __attribute__((always_inline)) float within_1(float v) {
    v = v < 0 ? 0 : v;
    return v > 1 ? 1 : v;
}

BODY rgb_of(float h, float s, float v, float rgb_out[3]) {
    int sixth = (int)(h * 6.0f);
    float f = h * 6.0f - (float)sixth;
    float p = within_1(v * (1.0f - s));
    float q = within_1(v * (1.0f - s * f));
    float t = within_1(v * (1.0f - s * (1.0f - f)));
    sixth = sixth >= 6 ? 0 : sixth; /* a hue of 1 is one of 0 */
    float r = sixth == 0 || sixth == 5 ? v : p;
    r = sixth == 1 ? q : r;
    rgb_out[0] = sixth == 4 ? t : r;
    float g = sixth == 1 || sixth == 2 ? v : p;
    g = sixth == 3 ? q : g;
    rgb_out[1] = sixth == 0 ? t : g;
    float b = sixth == 3 || sixth == 4 ? v : p;
    b = sixth == 5 ? q : b;
    rgb_out[2] = sixth == 2 ? t : b;
}

BODY turn_hue(const change_job *job, bool is_bytes, planes *p) {
    const float unit = is_bytes ? 255.0f : 1.0f;
    const float back = is_bytes ? 255.999f : 1.0f;
    const float factor = job->factor;
    for (size_t i = 0; i < CHUNK; i++) {
        float hsv[3], rgb[3];
        hsv_of(p->c[0][i] / unit, p->c[1][i] / unit, p->c[2][i] / unit, hsv);
        float h = hsv[0] + factor;
        float less = h - 1.0f, more = h + 1.0f;
        h = h >= 1.0f ? less : h;
        h = h < 0 ? more : h;
        h = h >= 0 ? h : 0; /* not a number, if the input is infinite */
        rgb_of(h, hsv[1], hsv[2], rgb);
        p->c[0][i] = rgb[0] * back;
        p->c[1][i] = rgb[1] * back;
        p->c[2][i] = rgb[2] * back;
    }
}

/* ---- whole images ---- */

/* `channels` and `is_bytes` are constants after inlining. */
BODY change_pixels(const change_job *job, const uint8_t *in, uint8_t *out, size_t channels,
                   bool is_bytes) {
    size_t pixel = channels * (is_bytes ? 1 : sizeof(float));
    planes p;
    for (size_t at = 0; at < job->count; at += CHUNK) {
        size_t count = job->count - at < CHUNK ? job->count - at : CHUNK;
        load(in + at * pixel, count, channels, is_bytes, &p);
        if (channels == 3 && job->change == PRESTO__COLOR_HUE)
            turn_hue(job, is_bytes, &p);
        else
            blend_planes(job, is_bytes, &p);
        store(&p, count, channels, is_bytes, out + at * pixel);
    }
}

static inline __attribute__((always_inline)) double grey_pixels(const uint8_t *in, size_t pixels,
                                                                size_t channels, bool is_bytes) {
    size_t pixel = channels * (is_bytes ? 1 : sizeof(float));
    double sum = 0;
    planes p;
    float grey[CHUNK];
    for (size_t at = 0; at < pixels; at += CHUNK) {
        size_t count = pixels - at < CHUNK ? pixels - at : CHUNK;
        load(in + at * pixel, count, channels, is_bytes, &p);
        grey_of(&p, channels, is_bytes, grey);
        int whole = 0;
        for (size_t i = 0; is_bytes && i < count; i++)
            whole += (int)grey[i];
        sum += whole;
        for (size_t i = 0; !is_bytes && i < count; i++)
            sum += (double)grey[i];
    }
    return sum;
}

#define KERNELS(suffix, target)                                                                    \
    target static void change_bytes##suffix(const change_job *job, const uint8_t *in,              \
                                            uint8_t *out) {                                        \
        if (job->channels == 3)                                                                    \
            change_pixels(job, in, out, 3, true);                                                  \
        else                                                                                       \
            change_pixels(job, in, out, 1, true);                                                  \
    }                                                                                              \
    target static void change_floats##suffix(const change_job *job, const uint8_t *in,             \
                                             uint8_t *out) {                                       \
        if (job->channels == 3)                                                                    \
            change_pixels(job, in, out, 3, false);                                                 \
        else                                                                                       \
            change_pixels(job, in, out, 1, false);                                                 \
    }                                                                                              \
    target static double grey_bytes##suffix(const uint8_t *in, size_t count, size_t channels) {    \
        return channels == 3 ? grey_pixels(in, count, 3, true) : grey_pixels(in, count, 1, true);  \
    }                                                                                              \
    target static double grey_floats##suffix(const uint8_t *in, size_t count, size_t channels) {   \
        return channels == 3 ? grey_pixels(in, count, 3, false)                                    \
                             : grey_pixels(in, count, 1, false);                                   \
    }                                                                                              \
    static const presto__color_kernels kernels##suffix = {                                         \
        change_bytes##suffix, change_floats##suffix, grey_bytes##suffix, grey_floats##suffix}

KERNELS(_portable, );
#if defined(__x86_64__)
KERNELS(_avx2, __attribute__((target("avx2"))));
#endif

const presto__color_kernels *presto__color_kernels_of_cpu(void) {
#if defined(__x86_64__)
    if (presto__use_avx2())
        return &kernels_avx2;
#endif
    return &kernels_portable;
}

void presto__color_change(presto__color_image *image, presto__color change, double factor) {
    const presto_tensor_spec *spec = image->spec;
    const presto__color_kernels *kernels = image->kernels;
    bool is_bytes = spec->dtype == PRESTO_UINT8;
    change_job job = {.change = change,
                      .channels = (size_t)spec->dims[2],
                      .count = (size_t)(spec->dims[0] * spec->dims[1]),
                      .factor = (float)factor,
                      .rest = (float)(1.0 - factor)};
    bool needs_colors = change == PRESTO__COLOR_SATURATION || change == PRESTO__COLOR_HUE;
    if (job.count == 0 || (needs_colors && job.channels == 1))
        return;
    if (change == PRESTO__COLOR_CONTRAST) {
        grey_fn grey = is_bytes ? kernels->grey_bytes : kernels->grey_floats;
        job.mean = (float)(grey(image->in, job.count, job.channels) / (double)job.count);
    }
    change_fn run = is_bytes ? kernels->change_bytes : kernels->change_floats;
    run(&job, image->in, image->out);
    image->in = image->out;
}

void presto__color_finish(presto__color_image *image) {
    size_t bytes =
        (size_t)presto_spec_elements(image->spec) * presto_dtype_bytes(image->spec->dtype);
    if (image->in != image->out && bytes > 0)
        memcpy(image->out, image->in, bytes);
    image->in = image->out;
}
