/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXIF of an image: any bytes have an orientation from 1 to 8, and turning an image by it moves
 * each pixel once, whatever the window.
 */
#include <stdlib.h>

#include "image/orientation_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool truth) {
    if (!truth)
        abort();
}

enum { HEIGHT = 3, WIDTH = 5 };

static void check_turn(const presto__turn *turn) {
    uint8_t pixels[HEIGHT * WIDTH], out[HEIGHT * WIDTH];
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        pixels[i] = (uint8_t)(i + 1);
    presto_tensor image = {.spec = {PRESTO_UINT8, 3, {HEIGHT, WIDTH, 1}}, .data = pixels};
    presto_part stored = presto__part_of_whole(&image);
    presto_tensor_spec spec = presto__turn_spec(turn, &image.spec);
    presto_window all = {0, 0, spec.dims[0], spec.dims[1]};
    presto__turn_copy(turn, &stored, &all, out);
    unsigned seen = 0;
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        seen |= 1u << out[i];
    require(seen == (1u << (HEIGHT * WIDTH + 1)) - 2);
    for (int64_t y = 0; y < spec.dims[0]; y++) {
        for (int64_t x = 0; x < spec.dims[1]; x++) {
            presto_window one = {y, x, 1, 1};
            presto_window at = presto__turn_window(turn, &image.spec, &one);
            require(pixels[at.y * WIDTH + at.x] == out[y * spec.dims[1] + x]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    int orientation = presto__exif_orientation(presto_span_of(data, bytes));
    require(orientation >= 1 && orientation <= 8);
    const presto__turn turn = presto__turn_of(orientation);
    require(presto__turn_is_none(&turn) == (orientation == 1));
    check_turn(&turn);
    return 0;
}
