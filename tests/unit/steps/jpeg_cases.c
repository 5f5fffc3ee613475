/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     jpeg_cases COUNT SEED
 *
 * writes random JPEGs, each with its pixels by libjpeg-turbo, for jpeg_replay. A fourth of them is
 * damaged.
 */
#include "../../../base/rng_internal.h"
#include "jpeg_case.h"
#include "jpeg_design.h"

enum { MAX_DAMAGED_PIXELS = 1 << 18 };

static void put(const void *bytes, size_t count) {
    if (count > 0 && fwrite(bytes, 1, count, stdout) != count) {
        perror("jpeg_cases: cannot write");
        exit(1);
    }
}

/* The size of what is left of it. */
static size_t damage(presto_rng *rng, uint8_t *data, size_t bytes) {
    if (jpeg_below(rng, 5) == 0)
        bytes = 1 + jpeg_below(rng, (unsigned)bytes);
    for (unsigned k = 0; k < 1 + jpeg_below(rng, 3); k++)
        data[jpeg_below(rng, (unsigned)bytes)] ^= (uint8_t)(1U << jpeg_below(rng, 8));
    return bytes;
}

static void put_case(presto_rng *rng, uint32_t number) {
    bool is_damaged = number % 4 == 3;
    const jpeg_design d = jpeg_draw_design(rng, number % 16 == 0 ? JPEG_MAX_SIDE : 64);
    presto_span in = jpeg_encode(&d, rng);
    uint8_t *data = (uint8_t *)(uintptr_t)in.data;
    const jpeg_request request = jpeg_draw_request(rng, &d);
    if (is_damaged)
        in.bytes = damage(rng, data, in.bytes);
    jpeg_result want = jpeg_by_libjpeg(in, &request, MAX_DAMAGED_PIXELS);
    jpeg_case c = {.number = number,
                   .bytes = (uint32_t)in.bytes,
                   .channels = (uint32_t)request.channels,
                   .by = request.by,
                   .is_accurate = request.is_accurate,
                   .is_clean = want.is_decoded && want.warnings == 0,
                   .may_wrap = !request.is_accurate &&
                               (is_damaged || d.coarse > 1 || d.content == JPEG_NOISE ||
                                d.content == JPEG_EXTREMES),
                   .height = (uint32_t)want.height,
                   .width = (uint32_t)want.width};
    if (c.is_clean) {
        const presto_window window = jpeg_draw_window(rng, &want);
        c.y = (uint32_t)window.y;
        c.x = (uint32_t)window.x;
        c.window_height = (uint32_t)window.height;
        c.window_width = (uint32_t)window.width;
    }
    put(&c, sizeof c);
    put(in.data, in.bytes);
    if (c.is_clean)
        put(want.pixels, want.height * want.width * want.channels);
    free(want.pixels);
    free(data);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fputs("usage: jpeg_cases COUNT SEED\n", stderr);
        return 2;
    }
    uint32_t count = (uint32_t)strtoul(argv[1], NULL, 10);
    presto_rng rng;
    const presto__rng_key key = {strtoull(argv[2], NULL, 10), 0, 0, 1};
    presto__rng_init(&rng, &key);
    for (uint32_t i = 0; i < count; i++)
        put_case(&rng, i);
    const jpeg_case last = {.number = count};
    put(&last, sizeof last);
    return fflush(stdout) == 0 ? 0 : 1;
}
