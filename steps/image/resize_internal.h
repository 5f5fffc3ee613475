/* SPDX-License-Identifier: Apache-2.0 */
/* The bilinear kernel of resize-image: positions, tables and the two passes. */
#ifndef PRESTO_STEPS_RESIZE_INTERNAL_H
#define PRESTO_STEPS_RESIZE_INTERNAL_H

#include "../steps_internal.h"

/* Where an output position lies between two input positions. */
typedef struct presto__resize_tap {
    int64_t low, high;
    float fraction; /* of `high` */
} presto__resize_tap;

/** TensorFlow's half-pixel centers for output position i of `out` over `in` positions. */
presto__resize_tap presto__resize_tap_at(int64_t in, int64_t out, int64_t i);

/**
 * The same weights, with high == low + 1 whenever in > 1, so that two neighbours are loaded at
 * once. For integers only.
 */
presto__resize_tap presto__resize_pair_at(int64_t in, int64_t out, int64_t i);

/** Tables and rows of one thread. Zero-initialise all but use_avx2; presto__resizer_done frees. */
typedef struct presto__resizer {
    bool use_avx2;
    int64_t in_width, out_width; /* what the tables are for; 0: none yet */
    bool is_pairs;
    int32_t *low, *high; /* input column per output column */
    float *fractions;    /* four times each, for vectors of pixels */
    size_t columns;      /* capacity of the tables */
    float *rows[2];      /* horizontally resized input rows */
    int64_t row_numbers[2];
    size_t row_values; /* capacity of each */
} presto__resizer;

void presto__resizer_done(presto__resizer *resizer);

/** A window of a resized image. */
typedef struct presto__resized {
    int64_t height, width; /* of the whole image */
    presto_window window;
} presto__resized;

/**
 * Resize the image `in`, and write the window of `wanted` into rows without gaps. `in` holds what
 * presto__resize_need() asks for. uint8 or float32, the same on both sides.
 */
presto_status presto__resize(presto__resizer *resizer, const presto_part *in,
                             const presto__resized *wanted, void *out, presto_error *err);

presto_window presto__resize_need(const presto_tensor_spec *in, int64_t out_height,
                                  int64_t out_width, const presto_window *wanted);

#endif
