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
 * Pixels are split into planes of CHUNK values, which go through all changes; contrast needs the
 * image's mean grey, so what comes before it is a pass of its own.
 */
#include "color_internal.h"

#define CHUNK 128
#define BODY static inline __attribute__((always_inline)) void

typedef struct planes {
    float c[3][CHUNK];
} planes;

/* Some changes of all pixels. */
typedef struct pass {
    const presto__color_change *changes;
    size_t count;
    size_t pixels, channels;
    float mean;      /* of the image's grey, if the first change is contrast */
    bool wants_grey; /* of the result */
} pass;

/* The sum of the result's grey, if it is wanted. Without changes, `out` is not written. */
typedef double (*pass_fn)(const pass *p, const uint8_t *in, uint8_t *out);

struct presto__color_kernels {
    pass_fn bytes, floats;
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
BODY blend(float factor, const float added[CHUNK], bool is_bytes, float v[CHUNK]) {
    float most = is_bytes ? 255.0f : 1.0f;
    for (size_t i = 0; i < CHUNK; i++) {
        float value = factor * v[i] + added[i];
        value = value < 0 ? 0 : value;
        value = value > most ? most : value;
        v[i] = is_bytes ? (float)(int)value : value;
    }
}

/* What is added to each value: contrast and saturation mix with grey, brightness with black. */
BODY blend_planes(const presto__color_change *change, float mean, size_t channels, bool is_bytes,
                  planes *p) {
    float added[CHUNK] = {0};
    float rest = (float)(1.0 - change->factor);
    if (change->kind == PRESTO__COLOR_SATURATION) {
        grey_of(p, channels, is_bytes, added);
        for (size_t i = 0; i < CHUNK; i++)
            added[i] *= rest;
    } else if (change->kind == PRESTO__COLOR_CONTRAST) {
        for (size_t i = 0; i < CHUNK; i++)
            added[i] = rest * mean;
    }
    for (size_t c = 0; c < channels; c++)
        blend((float)change->factor, added, is_bytes, p->c[c]);
}

/*
 * Hue by explicit vectors. All is selection among values that are computed anyway, which the
 * compiler turns into branches if it may.
 */
#define LANES 8
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t masks __attribute__((vector_size(LANES * sizeof(int32_t))));

#define VALUE static inline __attribute__((always_inline)) lanes

VALUE all(float value) {
    return (lanes){value, value, value, value, value, value, value, value};
}

/* a where the mask is set, else b. */
VALUE pick(masks mask, lanes a, lanes b) {
    return (lanes)((mask & (masks)a) | (~mask & (masks)b));
}

VALUE larger(lanes a, lanes b) {
    return pick(a > b, a, b);
}

VALUE smaller(lanes a, lanes b) {
    return pick(a < b, a, b);
}

VALUE within_1(lanes v) {
    return smaller(larger(v, all(0)), all(1));
}

typedef struct colors {
    lanes c[3]; /* red, green, blue; or hue in turns, saturation, value */
} colors;

static inline __attribute__((always_inline)) colors hsv_of(colors rgb) {
    lanes r = rgb.c[0], g = rgb.c[1], b = rgb.c[2];
    lanes most = larger(larger(r, g), b);
    lanes range = most - smaller(smaller(r, g), b);
    lanes divisor = pick(range == 0, all(1), range);
    lanes rc = (most - r) / divisor;
    lanes gc = (most - g) / divisor;
    lanes bc = (most - b) / divisor;
    lanes sixths = pick(most == g, 2.0f + rc - bc, 4.0f + gc - rc);
    sixths = pick(most == r, bc - gc, sixths);
    lanes h = sixths / 6.0f + 1.0f;
    colors hsv = {{pick(h >= 1, h - 1.0f, h), range / pick(range == 0, all(1), most), most}};
    return hsv;
}

static inline __attribute__((always_inline)) colors rgb_of(colors hsv) {
    lanes h = hsv.c[0], s = hsv.c[1], v = hsv.c[2];
    masks sixth = __builtin_convertvector(h * 6.0f, masks);
    lanes f = h * 6.0f - __builtin_convertvector(sixth, lanes);
    lanes p = within_1(v * (1.0f - s));
    lanes q = within_1(v * (1.0f - s * f));
    lanes t = within_1(v * (1.0f - s * (1.0f - f)));
    masks in_0 = (sixth == 0) | (sixth == 6); /* a hue of 1 is one of 0 */
    masks in_1 = sixth == 1, in_2 = sixth == 2, in_3 = sixth == 3, in_4 = sixth == 4;
    masks in_5 = sixth == 5;
    colors rgb = {{pick(in_1, q, pick(in_4, t, pick(in_0 | in_5, v, p))),
                   pick(in_0, t, pick(in_3, q, pick(in_1 | in_2, v, p))),
                   pick(in_2, t, pick(in_5, q, pick(in_3 | in_4, v, p)))}};
    return rgb;
}

BODY turn_hue(float turns, bool is_bytes, planes *p) {
    const float unit = is_bytes ? 255.0f : 1.0f;
    const float back = is_bytes ? 255.999f : 1.0f;
    for (size_t i = 0; i < CHUNK; i += LANES) {
        colors pixels;
        for (size_t c = 0; c < 3; c++) {
            memcpy(&pixels.c[c], &p->c[c][i], sizeof pixels.c[c]);
            pixels.c[c] /= unit;
        }
        pixels = hsv_of(pixels);
        lanes h = pixels.c[0] + turns;
        h = pick(h >= 1, h - 1.0f, h);
        h = pick(h < 0, h + 1.0f, h);
        pixels.c[0] = pick(h >= 0, h, all(0)); /* not a number, if the input is infinite */
        pixels = rgb_of(pixels);
        for (size_t c = 0; c < 3; c++) {
            pixels.c[c] *= back;
            if (is_bytes)
                pixels.c[c] =
                    __builtin_convertvector(__builtin_convertvector(pixels.c[c], masks), lanes);
            memcpy(&p->c[c][i], &pixels.c[c], sizeof pixels.c[c]);
        }
    }
}

/* ---- whole images ---- */

static inline __attribute__((always_inline)) double sum_of_grey(const planes *p, size_t count,
                                                                size_t channels, bool is_bytes) {
    float grey[CHUNK];
    double sum = 0;
    int whole = 0; /* of uint8, sums are exact in any order, so that they can be vectors */
    grey_of(p, channels, is_bytes, grey);
    for (size_t i = 0; i < count; i++) {
        if (is_bytes)
            whole += (int)grey[i];
        else
            sum += (double)grey[i];
    }
    return is_bytes ? whole : sum;
}

/* `channels` and `is_bytes` are constants after inlining. */
static inline __attribute__((always_inline)) double run_pass(const pass *of, const uint8_t *in,
                                                             uint8_t *out, size_t channels,
                                                             bool is_bytes) {
    size_t pixel = channels * (is_bytes ? 1 : sizeof(float));
    double grey = 0;
    planes p;
    for (size_t at = 0; at < of->pixels; at += CHUNK) {
        size_t count = of->pixels - at < CHUNK ? of->pixels - at : CHUNK;
        load(in + at * pixel, count, channels, is_bytes, &p);
        for (size_t i = 0; i < of->count; i++) {
            const presto__color_change *change = &of->changes[i];
            if (change->kind == PRESTO__COLOR_HUE && channels == 3)
                turn_hue((float)change->factor, is_bytes, &p);
            else if (change->kind <= PRESTO__COLOR_CONTRAST || channels == 3)
                blend_planes(change, of->mean, channels, is_bytes, &p);
        }
        if (of->wants_grey)
            grey += sum_of_grey(&p, count, channels, is_bytes);
        if (of->count > 0)
            store(&p, count, channels, is_bytes, out + at * pixel);
    }
    return grey;
}

#define KERNELS(suffix, target)                                                                    \
    target static double pass_bytes##suffix(const pass *p, const uint8_t *in, uint8_t *out) {      \
        return p->channels == 3 ? run_pass(p, in, out, 3, true) : run_pass(p, in, out, 1, true);   \
    }                                                                                              \
    target static double pass_floats##suffix(const pass *p, const uint8_t *in, uint8_t *out) {     \
        return p->channels == 3 ? run_pass(p, in, out, 3, false) : run_pass(p, in, out, 1, false); \
    }                                                                                              \
    static const presto__color_kernels kernels##suffix = {pass_bytes##suffix, pass_floats##suffix}

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

/* ---- whole images ---- */

void presto__color_apply(const presto__color_image *image, const presto__color_change *changes,
                         size_t count) {
    const presto_tensor_spec *spec = image->spec;
    bool is_bytes = spec->dtype == PRESTO_UINT8;
    pass_fn run = is_bytes ? image->kernels->bytes : image->kernels->floats;
    const uint8_t *in = image->in;
    pass p = {.changes = changes,
              .pixels = (size_t)(spec->dims[0] * spec->dims[1]),
              .channels = (size_t)spec->dims[2]};
    size_t contrast = 0;
    while (contrast < count && changes[contrast].kind != PRESTO__COLOR_CONTRAST)
        contrast++;
    if (contrast < count) {
        p.count = contrast;
        p.wants_grey = true;
        p.mean = (float)(run(&p, in, image->out) / (double)p.pixels);
        p.wants_grey = false;
        p.changes += contrast;
        in = contrast > 0 ? image->out : in;
    }
    p.count = count - (size_t)(p.changes - changes);
    run(&p, in, image->out);
}
