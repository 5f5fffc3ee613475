/* SPDX-License-Identifier: Apache-2.0 */
/* PNG decoding in two halves, header and pixels: by the fast way if the image allows it, else by
 * libspng. The results are the same. */
#ifndef PRESTO_STEPS_PNG_INTERNAL_H
#define PRESTO_STEPS_PNG_INTERNAL_H

#include "png_fast_internal.h"

/* The state of one thread. Zero-initialise, set the first two; presto__png_close frees. */
typedef struct presto__png {
    bool use_simd;
    bool only_libspng; /* never the fast way: tests compare the two */
    void *context;     /* spng_ctx while an image is open, else NULL */
    presto_span in;    /* the open image */
    presto_tensor_spec spec;
    int stored_channels; /* of the decoded image: 3 or 4; cut to spec's if more */
    bool is_fast;        /* layout is set */
    presto__png_layout layout;
} presto__png;

bool presto__png_probe(presto_span in);

/** Read the header of `image`, whose channels are 0, 1, 3 or 4. */
presto_status presto__png_open(presto__png *png, const presto__encoded_image *image,
                               presto_tensor_spec *spec_out, presto_error *err);

/** Bytes of scratch memory that presto__png_read needs; 0 if none. */
size_t presto__png_scratch_bytes(const presto__png *png);

/** The whole image into `out`. Closes it. */
presto_status presto__png_read(presto__png *png, uint8_t *out, uint8_t *scratch, presto_error *err);

void presto__png_close(presto__png *png);

/** What a PNG stores of a pixel. */
typedef struct presto__png_kind {
    bool is_palette, is_grey; /* neither: colours, or grey with alpha */
    int bits;                 /* of a value */
} presto__png_kind;
presto__png_kind presto__png_kind_of(presto_span in);

/** Bytes of scratch memory that presto__png_read_values needs. 0: it is damaged. */
size_t presto__png_values_bytes(presto__png *png);

/**
 * The values of an open PNG that has one a pixel: positions in its palette, or grey of 16 bits. As
 * uint16 if `is_wide`, else as uint8, which its bits fit. Closes it.
 */
presto_status presto__png_read_values(presto__png *png, bool is_wide, void *out, uint8_t *scratch,
                                      presto_error *err);

#endif
