/* SPDX-License-Identifier: Apache-2.0 */
/* Turning a stored image upright, by windows. */
#include "orientation_internal.h"

/* Columns that are copied before the next row: a transposed row is read down a column, whose cache
 * lines serve the next rows, too. */
#define BLOCK 32

/* Orientations 1 to 8: 2 is mirrored, 3 upside down, 4 both; 5 to 8 are 1, 4, 3 and 2 with rows and
 * columns exchanged. Here in terms of presto__turn. */
presto__turn presto__turn_of(int orientation) {
    static const presto__turn turns[8] = {
        {false, false, false}, {false, false, true}, {false, true, true}, {false, true, false},
        {true, false, false},  {true, true, false},  {true, true, true},  {true, false, true},
    };
    return turns[orientation - 1];
}

bool presto__turn_is_none(const presto__turn *turn) {
    return !turn->is_transposed && !turn->flips_y && !turn->flips_x;
}

presto_tensor_spec presto__turn_spec(const presto__turn *turn, const presto_tensor_spec *stored) {
    presto_tensor_spec spec = *stored;
    if (turn->is_transposed) {
        spec.dims[0] = stored->dims[1];
        spec.dims[1] = stored->dims[0];
    }
    return spec;
}

presto_window presto__turn_window(const presto__turn *turn, const presto_tensor_spec *stored,
                                  const presto_window *upright) {
    presto_window window = *upright;
    if (turn->is_transposed)
        window = (presto_window){upright->x, upright->y, upright->width, upright->height};
    if (turn->flips_y)
        window.y = stored->dims[0] - window.y - window.height;
    if (turn->flips_x)
        window.x = stored->dims[1] - window.x - window.width;
    return window;
}

/* Pixels at a distance of `step` bytes, to be written next to each other. */
static inline __attribute__((always_inline)) void copy_pixels(const uint8_t *from, ptrdiff_t step,
                                                              int64_t count, size_t pixel_bytes,
                                                              uint8_t *to) {
    for (int64_t i = 0; i < count; i++) {
        memcpy(to, from, pixel_bytes);
        from += step;
        to += pixel_bytes;
    }
}

void presto__turn_copy(const presto__turn *turn, const presto_part *stored,
                       const presto_window *upright, void *out) {
    presto_window window = presto__turn_window(turn, &stored->whole, upright);
    size_t pixel_bytes = presto__pixel_bytes(&stored->whole);
    ptrdiff_t pixel = (ptrdiff_t)pixel_bytes;
    ptrdiff_t row = (ptrdiff_t)stored->window.width * pixel;
    int64_t y = window.y - stored->window.y + (turn->flips_y ? window.height - 1 : 0);
    int64_t x = window.x - stored->window.x + (turn->flips_x ? window.width - 1 : 0);
    const uint8_t *first = (const uint8_t *)stored->tensor.data + y * row + x * pixel;
    /* From an upright pixel to the one below it, and to the one right of it. */
    ptrdiff_t down = turn->flips_y ? -row : row;
    ptrdiff_t right = turn->flips_x ? -pixel : pixel;
    if (turn->is_transposed) {
        ptrdiff_t other = down;
        down = right;
        right = other;
    }
    for (int64_t at = 0; at < upright->width; at += BLOCK) {
        int64_t count = upright->width - at < BLOCK ? upright->width - at : BLOCK;
        for (int64_t i = 0; i < upright->height; i++) {
            const uint8_t *from = first + i * down + at * right;
            uint8_t *to = (uint8_t *)out + (size_t)(i * upright->width + at) * pixel_bytes;
            if (pixel_bytes == 3)
                copy_pixels(from, right, count, 3, to);
            else
                copy_pixels(from, right, count, pixel_bytes, to);
        }
    }
}
