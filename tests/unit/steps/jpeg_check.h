/* SPDX-License-Identifier: Apache-2.0 */
/* JPEGs decoded by libjpeg-turbo alone; jpeg_by_fast.h has its counterpart. */
#ifndef PRESTO_TESTS_JPEG_CHECK_H
#define PRESTO_TESTS_JPEG_CHECK_H

#include <setjmp.h>
#include <stdio.h>

#include "jpeg_by_fast.h"

#include <jpeglib.h> /* behind stdio.h */

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

#endif
