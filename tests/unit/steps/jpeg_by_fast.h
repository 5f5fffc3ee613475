/* SPDX-License-Identifier: Apache-2.0 */
/* JPEGs decoded by the decoder of jpeg_fast_internal.h alone, and compared. */
#ifndef PRESTO_TESTS_JPEG_BY_FAST_H
#define PRESTO_TESTS_JPEG_BY_FAST_H

#include <stdlib.h>
#include <string.h>

#include "image/jpeg_fast_internal.h"

/* What is asked for. */
typedef struct jpeg_request {
    int channels; /* 1 or 3 */
    unsigned by;  /* reduced: 1, 2, 4, 8; a value of jpeg_reduction */
    bool is_accurate;
} jpeg_request;

/* What libjpeg made of it. */
typedef struct jpeg_result {
    bool is_decoded;
    long warnings;
    size_t width, height, channels;
    uint8_t *pixels; /* malloc'ed */
} jpeg_result;

/* What the decoder reduces by if it is to leave as many pixels as `by` does. */
static inline unsigned jpeg_reduction(unsigned width, unsigned height, unsigned by) {
    unsigned most = by;
    for (unsigned more = by; by > 1 && more <= 8; more *= 2)
        if ((width + more - 1) / more * ((height + more - 1) / more) ==
            (width + by - 1) / by * ((height + by - 1) / by))
            most = more;
    return most;
}

/*
 * The window (NULL: all) by the fast decoder, malloc'ed, in memory of exactly the size that it asks
 * for; NULL if it refuses the file.
 */
static inline uint8_t *jpeg_by_fast(presto__jpeg_fast *fast, presto_span in,
                                    const jpeg_request *request, const presto_window *window,
                                    presto_tensor_spec *spec_out) {
    presto__encoded_image image = {.bytes = in,
                                   .channels = request->channels,
                                   .max_bytes = (uint64_t)1 << 26,
                                   .is_accurate = request->is_accurate};
    presto_tensor_spec full = {0};
    if (!presto__jpeg_fast_open(fast, &image, &full))
        return NULL;
    if (request->by > 1) {
        int64_t by = (int64_t)request->by;
        image.least.pixels = (full.dims[0] + by - 1) / by * ((full.dims[1] + by - 1) / by);
        image.least.side = 1;
        if (!presto__jpeg_fast_open(fast, &image, &full))
            return NULL;
    }
    *spec_out = full;
    presto_window all = {0, 0, full.dims[0], full.dims[1]};
    if (window == NULL)
        window = &all;
    size_t bytes = presto__jpeg_fast_scratch_bytes(fast, window);
    uint8_t *scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    uint8_t *out = malloc((size_t)(window->height * window->width) * (size_t)full.dims[2]);
    if (scratch == NULL || out == NULL || !presto__jpeg_fast_read(fast, window, out, scratch)) {
        free(out);
        out = NULL;
    }
    free(scratch);
    return out;
}

/* Is `out` the window of the pixels? */
static inline bool jpeg_window_is_equal(const jpeg_result *result, const presto_window *window,
                                        const uint8_t *out) {
    size_t bytes = (size_t)window->width * result->channels;
    for (size_t y = 0; y < (size_t)window->height; y++) {
        size_t at = ((size_t)window->y + y) * result->width + (size_t)window->x;
        if (memcmp(result->pixels + at * result->channels, out + y * bytes, bytes) != 0)
            return false;
    }
    return true;
}

#endif
