/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up pictures that behave like photos.
 *
 * A picture is a "dead leaves" scene: opaque shapes of all sizes lie over one another, each octave
 * of sizes covering the same area. This has the statistics of natural images: an amplitude spectrum
 * of 1/f, real edges, flat beside busy regions. Texture, a soft lens and sensor noise come on top.
 * The class decides colour cast, light and grain direction and spectral tilt; each picture varies.
 *
 * Invariant: a picture depends on the arguments of scene_compose and nothing else. So there is no
 * floating point here, and each picture draws from random numbers of its own.
 */
#include "photo_scene.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHANNELS = SCENE_CHANNELS,
    MAX_LEAVES = 6000,  /* fits the uint16_t of the leaf map */
    TEXTURE_SIDE = 512, /* a power of two: the texture wraps around */
    ONE = 4096,         /* 1.0 of sine and cosine */
};

/* ---- Random numbers, integer mathematics ---- */

/* SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
static uint64_t random_bits(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Uniform in [low, high]. */
static int random_between(uint64_t *state, int low, int high) {
    uint64_t span = (uint64_t)(high - low) + 1;
    return low + (int)((random_bits(state) >> 32) * span >> 32);
}

/* Bell-shaped in [-width, width], standard deviation width / 3. */
static int random_bell(uint64_t *state, int width) {
    int sum = random_between(state, -width, width) + random_between(state, -width, width);
    return (sum + random_between(state, -width, width)) / 3;
}

static int64_t integer_sqrt(int64_t n) {
    int64_t root = 0;
    for (int64_t bit = (int64_t)1 << 31; bit > 0; bit >>= 1) {
        if ((root + bit) * (root + bit) <= n)
            root += bit;
    }
    return root;
}

/* Bhaskara's approximation, within 0.2 %; the last bit of libm's sine differs between systems. */
static int sine(int degrees) {
    int turn = ((degrees % 360) + 360) % 360;
    int half = turn % 180;
    int value = 4 * half * (180 - half) * ONE / (40500 - half * (180 - half));
    return turn < 180 ? value : -value;
}

static int cosine(int degrees) {
    return sine(degrees + 90);
}

static int clamp(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

/* ---- The scene ---- */

typedef struct leaf {
    int16_t colour[CHANNELS];
    int16_t gain[CHANNELS];                    /* how strongly the texture shows in each channel */
    uint32_t texture_start_u, texture_start_v; /* each leaf shows another piece of the texture */
} leaf;

struct scene {
    int width, height;
    uint64_t random; /* state of the generator, see scene_compose */
    int brightness, contrast;
    int cast_blue, cast_red;
    int light_right, light_down; /* brightness gained from edge to edge */
    int grain;                   /* main direction of shapes and texture, degrees */
    int tilt;                    /* gain of texture from octave to octave, 1/256 */
    int roughness;               /* strength of the texture, 1/256 */
    int noise;                   /* strength of the sensor noise, 1/1024 */
    int detail;                  /* side of the picture over the smallest radius */
    uint16_t *leaf_map;          /* height x width: the leaf that is seen */
    uint8_t *pixels;             /* height x width x CHANNELS, before lens and sensor */
    uint8_t *row;                /* one row after them */
    uint16_t *deep_row;          /* the same, of 16 bits */
    leaf leaves[MAX_LEAVES];
    int16_t texture[TEXTURE_SIDE * TEXTURE_SIDE];
    int16_t coarser[TEXTURE_SIDE * TEXTURE_SIDE / 4]; /* scratch of weave_texture */
};

/* The class gives the centre of each property, the picture a deviation. Classes go around the
 * circles of hue, light and grain in steps of 1, 3 and 7: classes that are neighbours in one are
 * apart in another. */
static void choose_scene(scene *s, int class_number, int classes) {
    uint64_t *random = &s->random;
    int hue = class_number * 360 / classes + random_bell(random, 18);
    int cast = random_between(random, 25, 36);
    int light_from = class_number * 3 * 360 / classes + random_bell(random, 60);
    int light = random_between(random, 20, 60);
    s->brightness = 122 + random_bell(random, 36);
    s->contrast = random_between(random, 55, 100);
    s->cast_blue = cast * cosine(hue) / ONE;
    s->cast_red = cast * sine(hue) / ONE;
    s->light_right = light * cosine(light_from) / ONE;
    s->light_down = light * sine(light_from) / ONE;
    s->grain = class_number * 7 * 180 / classes + random_bell(random, 30);
    s->tilt = class_number % 3 * 8 + 22 + random_bell(random, 6);
    s->roughness = random_between(random, 260, 460);
    s->noise = random_between(random, 16, 46);
    s->detail = random_between(random, 50, 180);
}

static leaf choose_leaf(scene *s) {
    uint64_t *random = &s->random;
    int luma = s->brightness + random_between(random, -s->contrast, s->contrast);
    int saturation = 80 + clamp(luma < 128 ? luma : 255 - luma, 0, 80); /* 1/160; pale if dark */
    int gain = s->roughness * random_between(random, 40, 256) / 256;    /* as sky beside grass */
    leaf l; /* field by field: the order of evaluation in an initializer is not defined */
    l.texture_start_u = (uint32_t)(random_bits(random) >> 32);
    l.texture_start_v = (uint32_t)(random_bits(random) >> 32);
    l.colour[0] = (int16_t)luma;
    l.colour[1] = (int16_t)(128 + (s->cast_blue + random_bell(random, 27)) * saturation / 160);
    l.colour[2] = (int16_t)(128 + (s->cast_red + random_bell(random, 27)) * saturation / 160);
    l.gain[0] = (int16_t)gain;
    l.gain[1] = (int16_t)(gain * random_between(random, -48, 48) / 256);
    l.gain[2] = (int16_t)(gain * random_between(random, -48, 48) / 256);
    return l;
}

/* Radii, in 1/16 pixel, have density r^-3, so that each octave covers the same area: by inversion,
 * r = smallest / sqrt(uniform). */
static int choose_radius(scene *s, int64_t side) {
    int64_t smallest = side * 16 / s->detail + 1;
    int64_t uniform = (int64_t)(random_bits(&s->random) >> 40) + 1; /* of 2^24 */
    int64_t radius = integer_sqrt((smallest * smallest << 24) / uniform);
    return (int)(radius < side * 7 ? radius : side * 7);
}

/* Draws an ellipse, or one time in four a box, into the leaf map. In its own coordinates u and v
 * the ends of the half-axes are at `unit`. */
static void paint_leaf(scene *s, int radius, uint16_t number) {
    const int64_t unit = 65536;
    int stretch = random_between(&s->random, 256, 416);
    int angle = s->grain + random_bell(&s->random, 60);
    int64_t length = (int64_t)radius * stretch;   /* of the long half-axis, 1/4096 pixel */
    int reach = (int)(length * 3 / 2 / 4096) + 1; /* beyond the corners of a box */
    int centre_x = random_between(&s->random, -reach, s->width + reach);
    int centre_y = random_between(&s->random, -reach, s->height + reach);
    bool box = random_between(&s->random, 0, 3) == 0;
    int64_t cos_u = (int64_t)cosine(angle) * 65536 / length;
    int64_t sin_u = (int64_t)sine(angle) * 65536 / length;
    int64_t cos_v = (int64_t)cosine(angle) * stretch / radius;
    int64_t sin_v = (int64_t)sine(angle) * stretch / radius;
    int left = clamp(centre_x - reach, 0, s->width);
    int right = clamp(centre_x + reach, 0, s->width);
    int bottom = clamp(centre_y + reach, 0, s->height);
    for (int y = clamp(centre_y - reach, 0, s->height); y < bottom; y++) {
        uint16_t *row = s->leaf_map + (size_t)y * (size_t)s->width;
        int64_t u = (left - centre_x) * cos_u + (y - centre_y) * sin_u;
        int64_t v = (y - centre_y) * cos_v - (left - centre_x) * sin_v;
        for (int x = left; x < right; x++, u += cos_u, v -= sin_v) {
            if (box ? llabs(u) <= unit && llabs(v) <= unit : u * u + v * v <= unit * unit)
                row[x] = number;
        }
    }
}

/* Later leaves cover earlier ones; a place without a leaf shows leaf 0, the ground. Together
 * they cover the picture about three times: the mean area is some 25 times the smallest radius
 * squared. */
static void scatter_leaves(scene *s) {
    int64_t side = integer_sqrt((int64_t)s->width * s->height);
    int count = s->detail * s->detail / 7;
    memset(s->leaf_map, 0, (size_t)s->width * (size_t)s->height * sizeof *s->leaf_map);
    for (int i = 0; i < count; i++) {
        s->leaves[i] = choose_leaf(s);
        paint_leaf(s, choose_radius(s, side), (uint16_t)i);
    }
}

/* ---- Texture ---- */

/* Doubles the side of a wrapping square and adds noise: bilinear between pixel centres, so the
 * nearer of two columns or rows weighs three times the farther one. */
static void refine(const int16_t *from, int16_t *to, unsigned side, int amplitude,
                   uint64_t *random) {
    unsigned mask = side / 2 - 1;
    for (unsigned y = 0; y < side; y++) {
        const int16_t *near_row = from + (size_t)(y / 2) * (side / 2);
        const int16_t *far_row = from + (size_t)((y / 2 + y % 2 * 2 - 1) & mask) * (side / 2);
        for (unsigned x = 0; x < side; x++) {
            unsigned far_x = (x / 2 + x % 2 * 2 - 1) & mask;
            int near_column = 3 * near_row[x / 2] + far_row[x / 2];
            int far_column = 3 * near_row[far_x] + far_row[far_x];
            int noise = (int)(random_bits(random) >> 53) - 1024;
            *to++ = (int16_t)((3 * near_column + far_column) / 16 + noise * amplitude / 256);
        }
    }
}

/* Noise of equal strength in every octave has an amplitude spectrum of 1/f: the area of an octave
 * in the frequency plane grows as f^2, so the power at a point falls as f^-2. */
static void weave_texture(scene *s) {
    int16_t *from = s->coarser;
    int16_t *to = s->texture;
    int amplitude = 256;
    memset(s->coarser, 0, sizeof s->coarser);
    /* Seven octaves, an odd number: the last one lands in s->texture. */
    for (unsigned side = 8; side <= TEXTURE_SIDE; side *= 2) {
        refine(from, to, side, amplitude, &s->random);
        amplitude += amplitude * s->tilt / 256;
        int16_t *swap = from;
        from = to;
        to = swap;
    }
}

/* Bilinear; u and v in 1/256 texel. */
static int texture_at(const int16_t *texture, uint32_t u, uint32_t v) {
    const uint32_t mask = TEXTURE_SIDE - 1;
    const int16_t *row = texture + (size_t)((v >> 8) & mask) * TEXTURE_SIDE;
    const int16_t *next_row = texture + (size_t)(((v >> 8) + 1) & mask) * TEXTURE_SIDE;
    uint32_t x = (u >> 8) & mask;
    uint32_t next_x = (x + 1) & mask;
    int right = (int)(u & 255);
    int down = (int)(v & 255);
    int upper = row[x] * (256 - right) + row[next_x] * right;
    int lower = next_row[x] * (256 - right) + next_row[next_x] * right;
    return (upper / 256 * (256 - down) + lower / 256 * down) / 256;
}

/* ---- From the scene to the picture ---- */

/* Leaf, texture and light of every pixel. The texture is drawn out along the grain. */
static void shade(scene *s) {
    const int along = 180; /* texels per pixel, 1/256 */
    const int across = 320;
    uint32_t u_per_x = (uint32_t)(cosine(s->grain) * along / ONE);
    uint32_t u_per_y = (uint32_t)(sine(s->grain) * along / ONE);
    uint32_t v_per_x = (uint32_t)(-sine(s->grain) * across / ONE);
    uint32_t v_per_y = (uint32_t)(cosine(s->grain) * across / ONE);
    const uint16_t *number = s->leaf_map;
    uint8_t *pixel = s->pixels;
    for (int y = 0; y < s->height; y++) {
        int row_light = s->light_down * (2 * y - s->height) / (2 * s->height);
        uint32_t u = (uint32_t)y * u_per_y;
        uint32_t v = (uint32_t)y * v_per_y;
        for (int x = 0; x < s->width; x++, u += u_per_x, v += v_per_x) {
            const leaf *l = &s->leaves[*number++];
            int light = row_light + s->light_right * (2 * x - s->width) / (2 * s->width);
            int t = texture_at(s->texture, u + l->texture_start_u, v + l->texture_start_v);
            for (int i = 0; i < CHANNELS; i++, light = 0)
                *pixel++ = (uint8_t)clamp(l->colour[i] + light + t * l->gain[i] / 8192, 0, 255);
        }
    }
}

static int byte(uint64_t bits, int index) {
    return (int)(bits >> (8 * index) & 255);
}

/* The lens softens edges (1 14 1 in both directions), the sensor adds noise (sums of uniform bytes,
 * so nearly normal). */
uint8_t *scene_expose_row(scene *s, int y) {
    const int stride = s->width * CHANNELS;
    const uint8_t *here = s->pixels + (size_t)y * (size_t)stride;
    const uint8_t *above = y > 0 ? here - stride : here;
    const uint8_t *below = y + 1 < s->height ? here + stride : here;
    for (int i = 0; i < stride; i++) {
        int left = i < CHANNELS ? i : i - CHANNELS;
        int right = i + CHANNELS < stride ? i + CHANNELS : i;
        int corners = above[left] + above[right] + below[left] + below[right];
        int sides = above[i] + below[i] + here[left] + here[right];
        s->row[i] = (uint8_t)((corners + 14 * sides + 196 * here[i] + 128) / 256);
    }
    for (int i = 0; i < stride; i += CHANNELS) {
        uint64_t bits = random_bits(&s->random);
        int luma = byte(bits, 0) + byte(bits, 1) + byte(bits, 2) + byte(bits, 3) - 510;
        int blue = byte(bits, 4) - byte(bits, 5);
        int red = byte(bits, 6) - byte(bits, 7);
        s->row[i] = (uint8_t)clamp(s->row[i] + luma * s->noise / 1024, 0, 255);
        s->row[i + 1] = (uint8_t)clamp(s->row[i + 1] + blue * s->noise / 1024, 0, 255);
        s->row[i + 2] = (uint8_t)clamp(s->row[i + 2] + red * s->noise / 1024, 0, 255);
    }
    return s->row;
}

/* JFIF's conversion, times 65536, of values that are twice as fine. */
uint16_t *scene_expose_row16(scene *s, int y) {
    const uint8_t *row = scene_expose_row(s, y);
    for (int i = 0; i < s->width * CHANNELS; i += CHANNELS) {
        uint64_t bits = random_bits(&s->random);
        int luma = row[i] * 2 + byte(bits, 0) % 2;
        int blue = (row[i + 1] - 128) * 2;
        int red = (row[i + 2] - 128) * 2;
        int rgb[CHANNELS] = {luma + red * 91881 / 65536,
                             luma - (blue * 22554 + red * 46802) / 65536,
                             luma + blue * 116130 / 65536};
        for (int k = 0; k < CHANNELS; k++)
            s->deep_row[i + k] = (uint16_t)(clamp(rgb[k], 0, 511) << 7);
    }
    return s->deep_row;
}

scene *scene_new(int width, int height) {
    size_t area = (size_t)width * (size_t)height;
    size_t stride = (size_t)width * CHANNELS;
    scene *s = malloc(sizeof *s + stride * (sizeof *s->deep_row + sizeof *s->row) +
                      area * (sizeof *s->leaf_map + CHANNELS));
    if (s == NULL)
        return NULL;
    s->width = width;
    s->height = height;
    s->deep_row = (uint16_t *)(void *)(s + 1);
    s->leaf_map = s->deep_row + stride;
    s->pixels = (uint8_t *)(s->leaf_map + area);
    s->row = s->pixels + area * CHANNELS;
    return s;
}

void scene_free(scene *s) {
    free(s);
}

void scene_compose(scene *s, int seed, int number, int class_number, int classes) {
    /* Mixed before the number is added, so that seeds 1 and 2 share no picture. */
    s->random = (uint64_t)seed;
    s->random = random_bits(&s->random) + (uint64_t)number;
    s->random = random_bits(&s->random);
    choose_scene(s, class_number, classes);
    scatter_leaves(s);
    weave_texture(s);
    shade(s);
}
