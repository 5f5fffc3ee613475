/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg-turbo as a program calls it, with the settings that give the pixels of decode-image. */
#ifndef BENCH_BARE_JPEG_H
#define BENCH_BARE_JPEG_H

#include <stdio.h>

#include <jpeglib.h>

#include <presto/span.h>

typedef struct bare_jpeg {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
} bare_jpeg;

/* Then cinfo.output_width and output_height are known. */
static inline void bare_jpeg_start(bare_jpeg *jpeg, presto_span file) {
    jpeg->cinfo.err = jpeg_std_error(&jpeg->errors);
    jpeg_create_decompress(&jpeg->cinfo);
    jpeg_mem_src(&jpeg->cinfo, file.data, file.bytes);
    jpeg_read_header(&jpeg->cinfo, TRUE);
    jpeg->cinfo.out_color_space = JCS_RGB;
    jpeg->cinfo.dct_method = JDCT_IFAST;
    jpeg_start_decompress(&jpeg->cinfo);
}

static inline void bare_jpeg_rows(bare_jpeg *jpeg, uint8_t *pixels, size_t stride, size_t rows) {
    for (size_t y = 0; y < rows; y++) {
        JSAMPROW row = pixels + stride * y;
        jpeg_read_scanlines(&jpeg->cinfo, &row, 1);
    }
}

/* Whether all rows were read or not. */
static inline void bare_jpeg_end(bare_jpeg *jpeg) {
    jpeg_abort_decompress(&jpeg->cinfo);
    jpeg_destroy_decompress(&jpeg->cinfo);
}

#endif
