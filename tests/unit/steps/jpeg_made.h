/* SPDX-License-Identifier: Apache-2.0 */
/* JPEGs that libjpeg-turbo writes into memory. */
#ifndef PRESTO_TESTS_JPEG_MADE_H
#define PRESTO_TESTS_JPEG_MADE_H

#include <stdio.h>

#include <presto/rng.h>
#include <presto/span.h>

#include <jpeglib.h> /* behind stdio.h */

typedef struct jpeg_made {
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    unsigned char *data;
    unsigned long bytes;
} jpeg_made;

static inline unsigned jpeg_below(presto_rng *rng, unsigned bound) {
    return (unsigned)presto_rng_below(rng, bound);
}

static inline void jpeg_made_keep_quiet(j_common_ptr cinfo) {
    (void)cinfo;
}

/* With the defaults of libjpeg; `made` stays where it is until the end. */
static inline void jpeg_made_begin(jpeg_made *made, unsigned width, unsigned height,
                                   int components) {
    made->data = NULL;
    made->bytes = 0;
    made->cinfo.err = jpeg_std_error(&made->errors);
    made->errors.output_message = jpeg_made_keep_quiet;
    jpeg_create_compress(&made->cinfo);
    jpeg_mem_dest(&made->cinfo, &made->data, &made->bytes);
    made->cinfo.image_width = width;
    made->cinfo.image_height = height;
    made->cinfo.input_components = components;
    made->cinfo.in_color_space = components == 1   ? JCS_GRAYSCALE
                                 : components == 3 ? JCS_RGB
                                                   : JCS_CMYK;
    jpeg_set_defaults(&made->cinfo);
}

/* All rows are written. The caller frees the bytes. */
static inline presto_span jpeg_made_end(jpeg_made *made) {
    jpeg_finish_compress(&made->cinfo);
    jpeg_destroy_compress(&made->cinfo);
    return presto_span_of(made->data, made->bytes);
}

#endif
