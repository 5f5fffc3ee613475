/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     jpeg_cases COUNT SEED | jpeg_replay SEED same|other
 *
 * compares the decoder of jpeg_fast_internal.h with libjpeg-turbo's pixels, and the kernels that it
 * chooses here with the portable ones, on random input. It needs neither libjpeg-turbo nor Check, so
 * that it is easily built for another processor. `other`: the cases were made on one, whose
 * libjpeg-turbo differs where `fast` leaves its 16 bits.
 */
#include <presto/rng.h>

#include "../../../base/rng_internal.h"

#include <stdio.h>

#include "jpeg_by_fast.h"
#include "jpeg_case.h"

#define SLACK ((size_t)PRESTO__JPEG_SLACK)

static presto__jpeg_level level;
static bool is_same_processor; /* the cases were made on the same kind */
static presto_rng rng;

static unsigned below(unsigned bound) {
    return (unsigned)presto_rng_below(&rng, bound);
}

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "jpeg_replay: %s: ", #condition);                                      \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void *get_memory(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    CHECK(memory != NULL, "%zu bytes", bytes);
    return memory;
}

/* ---- transforms ---- */

/* Of a block `used` coefficients, in zigzag order, may be other than zero. */
static void draw_block(int16_t *block, unsigned used, unsigned most) {
    memset(block, 0, PRESTO__JPEG_BLOCK * sizeof *block);
    for (unsigned i = 0; i < used; i++)
        block[i] = (int16_t)((int)below(2 * most) - (int)most);
}

static void compare_transforms(presto__jpeg_method method) {
    enum { MCUS = 5, MCU_BLOCKS = 3, ROW_BYTES = 8 * (2 * MCUS) + 64 };
    static _Alignas(64) int16_t coefficients[(MCUS * MCU_BLOCKS + 4) * PRESTO__JPEG_BLOCK];
    static const unsigned used_of[] = {0, 1, 2, 5, 15, 16, 17, 31, 32, 33, 48, 63, 64};
    static const unsigned most_of[] = {2, 20, 200, 2000, 4081, 32768};
    uint16_t quantization[PRESTO__JPEG_BLOCK];
    presto__jpeg_factors factors;
    unsigned most_factor = 1U << below(9), most = most_of[below(6)];
    for (int i = 0; i < PRESTO__JPEG_BLOCK; i++)
        quantization[i] = (uint16_t)(1 + below(most_factor));
    presto__jpeg_factors_make(&factors, quantization, method);
    for (int i = 0; i < MCUS * MCU_BLOCKS; i++)
        draw_block(coefficients + (ptrdiff_t)i * PRESTO__JPEG_BLOCK, used_of[below(13)],
                   1 + below(most));
    size_t pair = 1 + below(2);
    const presto__jpeg_blocks blocks = {coefficients, pair, (size_t)MCU_BLOCKS * PRESTO__JPEG_BLOCK,
                                        pair * (1 + below(MCUS))};
    static uint8_t out[2][8 * ROW_BYTES];
    memset(out, 0, sizeof out);
    bool want = presto__jpeg_transform_of(method, PRESTO__JPEG_PORTABLE)(&blocks, &factors, out[0],
                                                                         ROW_BYTES);
    bool got = presto__jpeg_transform_of(method, level)(&blocks, &factors, out[1], ROW_BYTES);
    CHECK(want == got, "method %d, within %d", (int)method, want);
    for (size_t y = 0; y < 8; y++)
        CHECK(memcmp(out[0] + y * ROW_BYTES, out[1] + y * ROW_BYTES, 8 * blocks.count) == 0,
              "method %d, row %zu of %zu blocks, factors to %u, coefficients to %u", (int)method, y,
              blocks.count, most_factor, most);
}

/* ---- entropy-coded bytes ---- */

static void compare_unstuffing(void) {
    size_t bytes = 1 + below(400), stuffed = 0;
    unsigned marks = 1 + below(100);
    uint8_t *in = get_memory(bytes), *out[2];
    for (size_t i = 0; i < bytes; i++) {
        unsigned drawn = below(marks);
        in[i] = (uint8_t)(drawn == 0 ? 0xff : below(256));
        if (i > 0 && in[i - 1] == 0xff && below(8) != 0)
            in[i] = 0, stuffed++;
    }
    const uint8_t *from[2] = {in, in}, *end = in + bytes;
    out[0] = get_memory(bytes + SLACK);
    out[1] = get_memory(bytes + SLACK);
    for (int parts = 0; from[0] != NULL; parts++) {
        uint8_t *to[2];
        const uint8_t *before = from[0];
        to[0] = presto__jpeg_unstuff_of(PRESTO__JPEG_PORTABLE)(&from[0], end, out[0]);
        to[1] = presto__jpeg_unstuff_of(level)(&from[1], end, out[1]);
        CHECK(from[0] == from[1], "part %d of %zu bytes, with %zu stuffed, from %td", parts, bytes,
              stuffed, before - in);
        size_t copied = (size_t)(to[0] - out[0]);
        if (from[0] != NULL) /* without a marker the copy is not used */
            CHECK(to[1] - out[1] == to[0] - out[0] && memcmp(out[0], out[1], copied) == 0,
                  "part %d of %zu bytes, with %zu stuffed, from %td", parts, bytes, stuffed,
                  before - in);
    }
    free(in);
    free(out[0]);
    free(out[1]);
}

/* ---- pixels ---- */

static const uint8_t *draw_samples(size_t count, unsigned from, unsigned range) {
    uint8_t *samples = get_memory(count + SLACK);
    for (size_t i = 0; i < count + SLACK; i++)
        samples[i] = (uint8_t)(from + below(range));
    return samples;
}

/* Bytes behind the pixels stay as they are. */
static void compare_pixels(const uint8_t *want, const uint8_t *got, size_t count, const char *how) {
    CHECK(memcmp(want, got, 3 * count) == 0, "%s, %zu pixels", how, count);
    for (size_t i = 0; i < SLACK; i++)
        CHECK(got[3 * count + i] == 0xa5, "%s, %zu pixels, byte %zu behind them", how, count, i);
}

static void compare_colours(presto__jpeg_spread how) {
    static const char *const names[] = {"each", "across", "down", "both"};
    const presto__jpeg_colour *want = presto__jpeg_colour_of(PRESTO__JPEG_PORTABLE);
    const presto__jpeg_colour *got = presto__jpeg_colour_of(level);
    bool is_across = how == PRESTO__JPEG_ACROSS || how == PRESTO__JPEG_BOTH;
    size_t count = 1 + below(90), width = is_across ? 2 * count : count;
    unsigned from = below(256), range = 1 + below(256 - from);
    const uint8_t *y = draw_samples(width, 0, 256), *planes[4];
    uint8_t *spread[2][2], *out[2];
    uint8_t *scratch = get_memory(4 * count + 4 * SLACK);
    for (int i = 0; i < 4; i++)
        planes[i] = draw_samples(count, from, range);
    const presto__jpeg_rows rows[2] = {{planes[0], planes[1], count, below(2) == 0},
                                       {planes[2], planes[3], count, false}};
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++) {
            spread[i][k] = get_memory(width + 2 * SLACK);
            (i == 0 ? want : got)->spread(how, &rows[k], spread[i][k], scratch);
        }
        out[i] = get_memory(3 * width + SLACK);
        memset(out[i], 0xa5, 3 * width + SLACK);
    }
    for (int k = 0; k < 2; k++)
        CHECK(memcmp(spread[0][k], spread[1][k], width) == 0, "%s, %zu samples", names[how], count);
    size_t first = below((unsigned)width), some = 1 + below((unsigned)(width - first));
    want->from_ycc(y + first, spread[0][0] + first, spread[0][1] + first, some, out[0]);
    got->from_ycc(y + first, spread[0][0] + first, spread[0][1] + first, some, out[1]);
    compare_pixels(out[0], out[1], some, names[how]);
    if (is_across && got->spread_ycc != NULL) {
        const presto__jpeg_ycc ycc = {y, rows[0], rows[1]};
        const presto__jpeg_stretch stretch = {first, some};
        memset(out[1], 0xa5, 3 * width + SLACK);
        got->spread_ycc(how, &ycc, &stretch, out[1], scratch);
        compare_pixels(out[0], out[1], some, names[how]);
    }
    for (int i = 0; i < 2; i++) {
        free(spread[i][0]);
        free(spread[i][1]);
        free(out[i]);
    }
    for (int i = 0; i < 4; i++)
        free((void *)(uintptr_t)planes[i]);
    free((void *)(uintptr_t)y);
    free(scratch);
}

/* ---- files ---- */

static void get(void *bytes, size_t count) {
    CHECK(fread(bytes, 1, count, stdin) == count, "the cases end early");
}

/* How many of the decoders accepted it. */
static unsigned replay(const jpeg_case *c, presto__jpeg_fast *const *decoders) {
    const jpeg_request request = {(int)c->channels, c->by, c->is_accurate != 0};
    jpeg_result want = {.width = c->width, .height = c->height, .channels = c->channels};
    size_t pixel_bytes = c->is_clean ? want.width * want.height * want.channels : 0;
    uint8_t *data = malloc(c->bytes);
    want.pixels = malloc(pixel_bytes + 1);
    CHECK(data != NULL && want.pixels != NULL, "%zu bytes", pixel_bytes);
    get(data, c->bytes);
    get(want.pixels, pixel_bytes);
    const presto_span in = presto_span_of(data, c->bytes);
    const presto_window all = {0, 0, c->height, c->width};
    const presto_window window = {c->y, c->x, c->window_height, c->window_width};
    unsigned accepted = 0;
    uint8_t *whole[2] = {NULL, NULL}, *part[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        presto_tensor_spec spec = {0};
        whole[i] = jpeg_by_fast(decoders[i], in, &request, NULL, &spec);
        accepted += whole[i] != NULL;
        /* Damage may have made it that large, or another reduction does as well. */
        bool is_comparable =
            c->width > 0 && spec.dims[0] == all.height && spec.dims[1] == all.width;
        if (whole[i] == NULL || !is_comparable)
            continue;
        CHECK(c->is_clean, "case %u, decoder %d: libjpeg warns", c->number, i);
        if (i == 1 && c->may_wrap && !is_same_processor) {
            /* It then is what the portable code makes here. */
            free(want.pixels);
            want.pixels = whole[0];
            whole[0] = NULL;
        }
        if (i == 0 && c->may_wrap && !is_same_processor)
            continue;
        CHECK(want.pixels != NULL && jpeg_window_is_equal(&want, &all, whole[i]),
              "case %u, decoder %d, %u x %u pixels, %u channels, by %u, accurate %u", c->number, i,
              c->width, c->height, c->channels, c->by, c->is_accurate);
        part[i] = jpeg_by_fast(decoders[i], in, &request, &window, &spec);
        CHECK(part[i] != NULL && jpeg_window_is_equal(&want, &window, part[i]),
              "case %u, decoder %d, window %u, %u, %u x %u", c->number, i, c->y, c->x,
              c->window_height, c->window_width);
    }
    for (int i = 0; i < 2; i++) {
        free(part[i]);
        free(whole[i]);
    }
    free(want.pixels);
    free(data);
    return accepted;
}

int main(int argc, char **argv) {
    CHECK(argc == 3, "usage: jpeg_replay SEED same|other");
    is_same_processor = strcmp(argv[2], "same") == 0;
    level = presto__jpeg_level_of_cpu();
    CHECK(level != PRESTO__JPEG_PORTABLE, "nothing to compare");
    const presto__rng_key key = {strtoull(argv[1], NULL, 10), 0, 0, 2};
    presto__rng_init(&rng, &key);
    for (int i = 0; i < 20000; i++) {
        compare_transforms(i % 2 == 0 ? PRESTO__JPEG_ACCURATE : PRESTO__JPEG_FAST);
        if (i % 2 == 0)
            compare_unstuffing();
        else
            compare_colours((presto__jpeg_spread)(i / 2 % 4));
    }
    presto__jpeg_fast *decoders[2] = {presto__jpeg_fast_new(PRESTO__JPEG_PORTABLE),
                                      presto__jpeg_fast_new(level)};
    CHECK(decoders[0] != NULL && decoders[1] != NULL, "no memory");
    unsigned accepted = 0;
    jpeg_case c;
    for (;;) {
        get(&c, sizeof c);
        if (c.bytes == 0)
            break;
        unsigned by = replay(&c, decoders);
        CHECK(by != 1, "case %u: only one decoder accepted it", c.number);
        accepted += by > 0;
    }
    CHECK(accepted >= c.number / 2, "%u of %u cases were accepted", accepted, c.number);
    printf("level %d: %u cases, %u accepted\n", (int)level, c.number, accepted);
    presto__jpeg_fast_free(decoders[0]);
    presto__jpeg_fast_free(decoders[1]);
    return 0;
}
