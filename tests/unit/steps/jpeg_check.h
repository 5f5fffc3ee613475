/* SPDX-License-Identifier: Apache-2.0 */
/* JPEGs decoded by libjpeg-turbo alone, and by the decoder of jpeg_fast_internal.h alone. */
#ifndef PRESTO_TESTS_JPEG_CHECK_H
#define PRESTO_TESTS_JPEG_CHECK_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/jpeg_fast_internal.h"

#include <jpeglib.h> /* behind stdio.h */

/* What is asked for. */
typedef struct jpeg_request {
    int channels; /* 1 or 3 */
    unsigned by;  /* reduced: 1, 2, 4, 8; a value of jpeg_reduction */
    bool is_accurate;
} jpeg_request;

typedef struct jpeg_errors {
    struct jpeg_error_mgr mgr; /* the first member */
    jmp_buf escape;
} jpeg_errors;

static void jpeg_check_escape(j_common_ptr cinfo) {
    longjmp(((jpeg_errors *)(void *)cinfo->err)->escape, 1);
}

static void jpeg_check_count(j_common_ptr cinfo, int level) {
    if (level < 0)
        cinfo->err->num_warnings++;
}

/* What libjpeg made of it. */
typedef struct jpeg_result {
    bool is_decoded;
    long warnings;
    size_t width, height, channels;
    uint8_t *pixels; /* malloc'ed */
} jpeg_result;

/* Images of more than `max_pixels` are not decoded. */
static inline jpeg_result jpeg_by_libjpeg(presto_span in, const jpeg_request *request,
                                          uint64_t max_pixels) {
    static struct jpeg_decompress_struct cinfo;
    static jpeg_errors errors;
    static jpeg_result result;
    result = (jpeg_result){0};
    cinfo.err = jpeg_std_error(&errors.mgr);
    errors.mgr.error_exit = jpeg_check_escape;
    errors.mgr.emit_message = jpeg_check_count;
    if (setjmp(errors.escape)) {
        jpeg_destroy_decompress(&cinfo);
        result.is_decoded = false;
        return result;
    }
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, in.data, in.bytes);
    jpeg_read_header(&cinfo, TRUE);
    cinfo.out_color_space = request->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    cinfo.dct_method = request->is_accurate ? JDCT_ISLOW : JDCT_IFAST;
    cinfo.scale_num = 1;
    cinfo.scale_denom = request->by;
    if ((uint64_t)cinfo.image_width * cinfo.image_height > max_pixels) {
        jpeg_destroy_decompress(&cinfo);
        return result;
    }
    jpeg_start_decompress(&cinfo);
    result.width = cinfo.output_width;
    result.height = cinfo.output_height;
    result.channels = (size_t)request->channels;
    size_t row_bytes = result.width * result.channels;
    result.pixels = malloc(row_bytes * result.height);
    while (result.pixels != NULL && cinfo.output_scanline < cinfo.output_height) {
        JSAMPROW row = result.pixels + row_bytes * cinfo.output_scanline;
        jpeg_read_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_decompress(&cinfo);
    result.warnings = errors.mgr.num_warnings;
    jpeg_destroy_decompress(&cinfo);
    result.is_decoded = result.pixels != NULL;
    return result;
}

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
