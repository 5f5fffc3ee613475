/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast way through a PNG: inflated by ISA-L, and the filters undone by vectors. It takes common
 * images only: not interlaced, 8 or 16 bits, whole, in order. Whatever else a file may be is left
 * to libspng, errors too. So this never says what is wrong with a file.
 */
#ifndef PRESTO_STEPS_PNG_FAST_INTERNAL_H
#define PRESTO_STEPS_PNG_FAST_INTERNAL_H

#include "../steps_internal.h"

/** How an image's bytes lie, and how they become pixels. */
typedef struct presto__png_layout {
    size_t width, height;
    size_t pixel_bytes;  /* of a raw row */
    size_t sample_bytes; /* 1, or 2 (big-endian, of which the first one is kept) */
    size_t lanes;        /* samples of a pixel that are kept: 1 to 4 */
    size_t out_channels; /* 3 or 4 */
    bool is_indexed;
    size_t idat_at;    /* where the first IDAT chunk begins */
    size_t idat_count; /* IDAT chunks, one after the other */
    uint8_t palette[256][4];
} presto__png_layout;

/**
 * Can the PNG `in` be read this way, into `out_channels` of 8 bits (3, or 4 with alpha)? Its chunks
 * must be complete up to IEND. Nothing is inflated yet.
 */
bool presto__png_fast_layout(presto_span in, size_t out_channels, presto__png_layout *layout_out);

/** Bytes of scratch memory for presto__png_fast_read: less than 1 MiB and four rows. */
size_t presto__png_fast_scratch_bytes(const presto__png_layout *layout);

/**
 * All pixels into `out`: height x width x out_channels, as libspng's SPNG_FMT_RGB8 or _RGBA8. False
 * if the image is not of this kind after all; then `out` holds anything. `scratch` is 64-byte
 * aligned. `use_simd`: of a processor that has AVX2; false: the portable kernels.
 */
bool presto__png_fast_read(presto_span in, const presto__png_layout *layout, bool use_simd,
                           uint8_t *out, uint8_t *scratch);

/* ---- rows ---- */

/**
 * Undo a filter (PNG specification, section 9) of `pixels` pixels: dst[i] = src[i] + prediction.
 * `prev` is the row above, undone. dst overlaps neither of them.
 */
typedef void (*presto__png_unfilter)(uint8_t *dst, const uint8_t *src, const uint8_t *prev,
                                     size_t pixels);

enum { PRESTO__PNG_FILTERS = 5, PRESTO__PNG_MAX_LANES = 4 };

/** Function for rows of `lanes` bytes a pixel, 1 to 4; filter below PRESTO__PNG_FILTERS. */
presto__png_unfilter presto__png_unfilter_of(size_t lanes, unsigned filter, bool use_simd);

#endif
