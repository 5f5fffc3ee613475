/* SPDX-License-Identifier: Apache-2.0 */
/* A picture as a JPEG by libjpeg, or as a PNG of 16 bits by libspng. Row by row: no file is ever
 * whole in memory. */
#include "photo_encode.h"

#include <setjmp.h>
#include <stdlib.h>

#include <jpeglib.h>

#if PRESTO_HAVE_SPNG
#include <spng.h>
#endif

const char *photo_ending(const photo_format *format) {
    return format->is_png16 ? "png" : "jpg";
}

bool photo_has_png(void) {
    return PRESTO_HAVE_SPNG;
}

/* ---- JPEG ---- */

typedef struct encoder {
    struct jpeg_error_mgr errors; /* first, so that libjpeg's pointer to it leads here */
    struct jpeg_compress_struct jpeg;
    jmp_buf give_up;
    char *message;
} encoder;

/* libjpeg's own handler would end the program. */
static void encoder_failed(j_common_ptr jpeg) {
    encoder *e = (encoder *)(void *)jpeg->err;
    char message[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, message);
    snprintf(e->message, PHOTO_MESSAGE_BYTES, "%s", message);
    longjmp(e->give_up, 1);
}

/* 4:2:0, as cameras do; the exact DCT, whose bytes are the same with and without SIMD. */
static void encoder_start(encoder *e, const photo_format *format, FILE *out) {
    struct jpeg_compress_struct *jpeg = &e->jpeg;
    jpeg_create_compress(jpeg);
    jpeg_stdio_dest(jpeg, out);
    jpeg->image_width = (JDIMENSION)format->width;
    jpeg->image_height = (JDIMENSION)format->height;
    jpeg->input_components = SCENE_CHANNELS;
    jpeg->in_color_space = JCS_YCbCr;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, format->quality, TRUE);
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->comp_info[0].h_samp_factor = 2;
    jpeg->comp_info[0].v_samp_factor = 2;
    jpeg_start_compress(jpeg, TRUE);
}

static bool encode_jpeg(scene *picture, const photo_format *format, FILE *out, char *message_out) {
    encoder e = {.message = message_out};
    e.jpeg.err = jpeg_std_error(&e.errors);
    e.errors.error_exit = encoder_failed;
    if (setjmp(e.give_up)) {
        jpeg_destroy_compress(&e.jpeg);
        return false;
    }
    encoder_start(&e, format, out);
    for (int y = 0; y < format->height; y++) {
        uint8_t *row = scene_expose_row(picture, y);
        jpeg_write_scanlines(&e.jpeg, &row, 1);
    }
    jpeg_finish_compress(&e.jpeg);
    jpeg_destroy_compress(&e.jpeg);
    return true;
}

/* ---- PNG ---- */

#if PRESTO_HAVE_SPNG
static int encode_rows(spng_ctx *png, scene *picture, const photo_format *format, FILE *out) {
    struct spng_ihdr header = {.width = (uint32_t)format->width,
                               .height = (uint32_t)format->height,
                               .bit_depth = 16,
                               .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    size_t row_bytes = (size_t)format->width * SCENE_CHANNELS * sizeof(uint16_t);
    int code = spng_set_png_file(png, out);
    if (code == SPNG_OK)
        code = spng_set_ihdr(png, &header);
    /* Noise hardly gets smaller by higher levels. */
    if (code == SPNG_OK)
        code = spng_set_option(png, SPNG_IMG_COMPRESSION_LEVEL, 3);
    if (code == SPNG_OK)
        code = spng_encode_image(png, NULL, 0, SPNG_FMT_PNG,
                                 SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE);
    for (int y = 0; y < format->height && code == SPNG_OK; y++)
        code = spng_encode_row(png, scene_expose_row16(picture, y), row_bytes);
    return code == SPNG_EOI ? SPNG_OK : code;
}

static bool encode_png16(scene *picture, const photo_format *format, FILE *out, char *message_out) {
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    int code = png == NULL ? SPNG_EMEM : encode_rows(png, picture, format, out);
    spng_ctx_free(png);
    if (code != SPNG_OK)
        snprintf(message_out, PHOTO_MESSAGE_BYTES, "%s", spng_strerror(code));
    return code == SPNG_OK;
}
#else
static bool encode_png16(scene *picture, const photo_format *format, FILE *out, char *message_out) {
    (void)picture, (void)format, (void)out;
    snprintf(message_out, PHOTO_MESSAGE_BYTES, "PNG: built without libspng");
    return false;
}
#endif

bool photo_encode(scene *picture, const photo_format *format, FILE *out, char *message_out) {
    return format->is_png16 ? encode_png16(picture, format, out, message_out)
                            : encode_jpeg(picture, format, out, message_out);
}
