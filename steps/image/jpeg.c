/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG. Usual files go to the decoder of jpeg_fast_internal.h, all others to libjpeg-turbo, with the
 * settings that give TensorFlow's pixels to the bit: JDCT_IFAST (or JDCT_ISLOW, if asked for), fancy upsampling, EXIF orientation ignored, CMYK and YCCK turned to RGB by k * c / 255 (Adobe's
 * are stored inverted).
 *
 * Damage is never ignored: if the data ends, the source manager fails instead of inventing an end
 * marker; warnings that mean lost pixels are errors. Each image gets a fresh decompressor. A reused
 * one would keep the tables of the previous image, and an image without tables would depend on
 * them.
 *
 * libjpeg reports errors by longjmp. Each function that calls it sets the jump target first, and
 * keeps everything that outlives the jump in presto__jpeg. Between them nothing owns memory.
 */
#include "jpeg_internal.h"

bool presto__jpeg_probe(presto_span in) {
    return in.bytes >= 3 && in.data[0] == 0xff && in.data[1] == 0xd8 && in.data[2] == 0xff;
}

#if PRESTO_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include <presto/numbers.h>

#include "jpeg_coefficients_internal.h"
#include "jpeg_fast_internal.h"

/*
 * A progressive file may have any number of scans. Each is a pass over all pixels, however few
 * bytes it has. Encoders write 10 to 16, few up to 30. The more there are, the shorter all passes
 * together must be.
 */
#define MAX_SCANS 500
#define USUAL_SCANS 16
#define UNUSUAL_SCANS 32
#define MAX_USUAL_PIXELS ((uint64_t)1 << 33)
#define MAX_UNUSUAL_PIXELS ((uint64_t)1 << 32)
#define MAX_SCANNED_PIXELS ((uint64_t)1 << 30)
/*
 * Columns next to a cut are upsampled as at an edge of the image. This many extra ones are decoded
 * and dropped.
 */
#define CUT_MARGIN 8

struct presto__jpeg {
    presto__coefficients coefficients; /* the first member */
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    bool is_open;
    presto__encoded_image image;
    int channels;            /* of the output: 1 or 3 */
    presto_window window;    /* what libjpeg delivers */
    presto__jpeg_fast *fast; /* NULL: not used on this processor */
    bool is_fast;            /* `fast` has the image open */
    size_t row_bytes;        /* of that image, as libjpeg may decode it */
    presto_window wanted;    /* of an image that `fast` has, or had, open */
    bool is_part;            /* `fast` gave it up: of the window only `wanted` is delivered */
    presto_status status;    /* why longjmp was called */
    char message[JMSG_LENGTH_MAX];
    uint64_t offset;
    /* of presto__jpeg_read: */
    uint8_t *out;
    uint8_t *scratch;
};

/* ---- errors ---- */

static presto__jpeg *jpeg_of(j_common_ptr cinfo) {
    return cinfo->client_data;
}

static presto_status status_of_error(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return PRESTO_ERR_MEMORY;
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
        return PRESTO_ERR_LIMIT;
    case JERR_INPUT_EOF:
    case JERR_INPUT_EMPTY:
    case JWRN_HIT_MARKER:
    case JWRN_JPEG_EOF:
        return PRESTO_ERR_TRUNCATED;
    case JERR_CONVERSION_NOTIMPL:
    case JERR_BAD_J_COLORSPACE:
        return PRESTO_ERR_TYPE;
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOT_COMPILED:
        return PRESTO_ERR_UNSUPPORTED;
    default:
        return PRESTO_ERR_CORRUPT;
    }
}

_Noreturn static void escape(j_common_ptr cinfo) {
    presto__jpeg *jpeg = jpeg_of(cinfo);
    char text[JMSG_LENGTH_MAX];
    jpeg->status = status_of_error(cinfo->err->msg_code);
    jpeg->errors.format_message(cinfo, text);
    snprintf(jpeg->message, sizeof jpeg->message, "%s", text);
    jpeg->offset = jpeg->image.bytes.bytes - jpeg->source.bytes_in_buffer;
    longjmp(jpeg->escape, 1);
}

/*
 * Warnings have level -1. Those that mean lost or invented pixels are errors; odd headers are not.
 */
static void on_message(j_common_ptr cinfo, int level) {
    if (level >= 0)
        return;
    switch (cinfo->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_JPEG_EOF:
        escape(cinfo);
    default:
        cinfo->err->num_warnings++;
    }
}

static void ignore_message(j_common_ptr cinfo) {
    (void)cinfo;
}

static uint64_t most_pixels(uint64_t scans) {
    return scans <= USUAL_SCANS     ? MAX_USUAL_PIXELS
           : scans <= UNUSUAL_SCANS ? MAX_UNUSUAL_PIXELS
           : scans <= MAX_SCANS     ? MAX_SCANNED_PIXELS
                                    : 0;
}

/* Called before each row of blocks of each scan, and before each row of the output. */
static void watch(j_common_ptr cinfo) {
    presto__jpeg *jpeg = jpeg_of(cinfo);
    uint64_t scans = (uint64_t)jpeg->cinfo.input_scan_number;
    uint64_t pixels = (uint64_t)jpeg->cinfo.image_width * jpeg->cinfo.image_height;
    bool is_cancelled =
        jpeg->image.context != NULL && presto_step_is_cancelled(jpeg->image.context);
    if (!is_cancelled && scans * pixels <= most_pixels(scans))
        return;
    jpeg->status = is_cancelled ? PRESTO_ERR_STOPPED : PRESTO_ERR_LIMIT;
    snprintf(jpeg->message, sizeof jpeg->message,
             "more than %ju scan%s, each a pass over %u x %u pixels: it would take too long; "
             "jpegtran stores it with fewer",
             (uintmax_t)scans - 1, presto_plural(scans - 1), jpeg->cinfo.image_width,
             jpeg->cinfo.image_height);
    jpeg->offset = jpeg->image.bytes.bytes - jpeg->source.bytes_in_buffer;
    longjmp(jpeg->escape, 1);
}

static presto_status fail_jpeg(presto__jpeg *jpeg, presto_error *err) {
    presto__jpeg_close(jpeg);
    if (jpeg->status == PRESTO_ERR_STOPPED)
        return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    return presto_fail(err, jpeg->status, jpeg->offset, "%s JPEG: %s",
                       jpeg->status == PRESTO_ERR_TRUNCATED ? "truncated"
                       : jpeg->status == PRESTO_ERR_CORRUPT ? "damaged"
                                                            : "unsuitable",
                       jpeg->message);
}

/* ---- the input, all of it in memory ---- */

static void source_nothing(j_decompress_ptr cinfo) {
    (void)cinfo;
}

static boolean source_is_empty(j_decompress_ptr cinfo) {
    cinfo->err->msg_code = JERR_INPUT_EOF;
    escape((j_common_ptr)cinfo);
}

static void source_skip(j_decompress_ptr cinfo, long bytes) {
    if (bytes <= 0)
        return;
    if ((size_t)bytes > cinfo->src->bytes_in_buffer)
        (void)source_is_empty(cinfo);
    cinfo->src->next_input_byte += bytes;
    cinfo->src->bytes_in_buffer -= (size_t)bytes;
}

/* ---- life ---- */

presto__jpeg *presto__jpeg_new(void) {
    presto__jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (jpeg == NULL)
        return NULL;
    jpeg_std_error(&jpeg->errors);
    jpeg->errors.error_exit = escape;
    jpeg->errors.emit_message = on_message;
    jpeg->errors.output_message = ignore_message;
    jpeg->source.init_source = source_nothing;
    jpeg->source.fill_input_buffer = source_is_empty;
    jpeg->source.skip_input_data = source_skip;
    jpeg->source.resync_to_restart = jpeg_resync_to_restart;
    jpeg->source.term_source = source_nothing;
    jpeg->progress.progress_monitor = watch;
    /* Its portable code takes longer than libjpeg-turbo's vectors: it is for tests. */
    presto__jpeg_level level = presto__jpeg_level_of_cpu();
    if (level == PRESTO__JPEG_PORTABLE && getenv("PRESTO_PORTABLE") == NULL)
        return jpeg;
    jpeg->fast = presto__jpeg_fast_new(level);
    if (jpeg->fast == NULL) {
        free(jpeg);
        return NULL;
    }
    return jpeg;
}

void presto__jpeg_free(presto__jpeg *jpeg) {
    if (jpeg == NULL)
        return;
    presto__jpeg_close(jpeg);
    presto__jpeg_fast_free(jpeg->fast);
    free(jpeg);
}

void presto__jpeg_close(presto__jpeg *jpeg) {
    if (jpeg->is_open)
        jpeg_destroy_decompress(&jpeg->cinfo);
    presto__coefficients_free(&jpeg->coefficients);
    jpeg->is_open = false;
    jpeg->is_fast = false;
    jpeg->is_part = false;
}

/* ---- header ---- */

static void start_decompressor(presto__jpeg *jpeg) {
    memset(&jpeg->cinfo, 0, sizeof jpeg->cinfo);
    jpeg->source.next_input_byte = jpeg->image.bytes.data;
    jpeg->source.bytes_in_buffer = jpeg->image.bytes.bytes;
    jpeg->cinfo.err = &jpeg->errors;
    jpeg->errors.num_warnings = 0;
    jpeg->cinfo.client_data = jpeg;
    jpeg->is_open = true; /* destroying a zeroed struct is fine */
    jpeg_create_decompress(&jpeg->cinfo);
    presto__coefficients_hook(&jpeg->cinfo);
    jpeg->cinfo.src = &jpeg->source;
    jpeg->cinfo.progress = &jpeg->progress;
}

static bool is_cmyk(const presto__jpeg *jpeg) {
    return jpeg->cinfo.out_color_space == JCS_CMYK;
}

/* By how much the image is reduced: the most that leaves enough of it. */
static unsigned reduction(const struct jpeg_decompress_struct *cinfo, const presto__least *least) {
    if (least->side == 0 && least->pixels == 0)
        return 1;
    for (unsigned by = 8; by > 1; by /= 2) {
        int64_t height = ((int64_t)cinfo->image_height + by - 1) / by;
        int64_t width = ((int64_t)cinfo->image_width + by - 1) / by;
        if (height >= least->side && width >= least->side && height * width >= least->pixels)
            return by;
    }
    return 1;
}

static void set_output(presto__jpeg *jpeg, const presto__least *least) {
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    if (jpeg->channels == 0)
        jpeg->channels = cinfo->num_components < 3 ? cinfo->num_components : 3;
    if (jpeg->channels == 1)
        cinfo->out_color_space = JCS_GRAYSCALE;
    else if (cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK)
        cinfo->out_color_space = JCS_CMYK;
    else
        cinfo->out_color_space = JCS_RGB;
    cinfo->dct_method = jpeg->image.is_accurate ? JDCT_ISLOW : JDCT_IFAST;
    cinfo->do_fancy_upsampling = TRUE;
    cinfo->scale_num = 1;
    cinfo->scale_denom = reduction(cinfo, least);
    jpeg_calc_output_dimensions(cinfo);
}

static presto_status read_header(presto__jpeg *jpeg, presto_error *err) {
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    if (setjmp(jpeg->escape))
        return fail_jpeg(jpeg, err);
    start_decompressor(jpeg);
    jpeg_read_header(cinfo, TRUE);
    set_output(jpeg, &jpeg->image.least);
    uint64_t bytes =
        (uint64_t)cinfo->image_width * cinfo->image_height * (uint64_t)cinfo->num_components;
    if (bytes <= jpeg->image.max_bytes)
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                    "image of %u x %u pixels is larger than max-bytes (%ju)", cinfo->image_width,
                    cinfo->image_height, (uintmax_t)jpeg->image.max_bytes);
    presto__jpeg_close(jpeg);
    return status;
}

presto_status presto__jpeg_open(presto__jpeg *jpeg, const presto__encoded_image *image,
                                presto_tensor_spec *spec_out, presto_error *err) {
    presto__jpeg_close(jpeg);
    jpeg->image = *image;
    jpeg->is_fast = jpeg->fast != NULL && presto__jpeg_fast_open(jpeg->fast, image, spec_out);
    if (jpeg->is_fast) {
        jpeg->row_bytes = (size_t)spec_out->dims[1] * 4;
        return PRESTO_OK;
    }
    jpeg->channels = image->channels;
    PRESTO_TRY(read_header(jpeg, err));
    *spec_out = (presto_tensor_spec){
        PRESTO_UINT8, 3, {jpeg->cinfo.output_height, jpeg->cinfo.output_width, jpeg->channels}};
    return PRESTO_OK;
}

size_t presto__jpeg_coefficient_bytes(presto__jpeg *jpeg) {
    return jpeg->is_fast ? 0 : presto__coefficients_bytes(&jpeg->cinfo);
}

/* ---- pixels ---- */

/*
 * Can a window be decoded by itself? libjpeg smooths a progressive image with missing scans across
 * blocks, also across a cut. It skips and crops correctly in the layouts of components that cameras
 * and encoders use, but not in all others, such as 4x2, or color finer than luminance.
 */
static bool can_cut(const struct jpeg_decompress_struct *cinfo) {
    const jpeg_component_info *parts = cinfo->comp_info;
    if (cinfo->progressive_mode)
        return false;
    for (int i = 1; i < cinfo->num_components; i++) {
        bool is_coarse = parts[i].h_samp_factor == 1 && parts[i].v_samp_factor == 1;
        bool is_as_first = parts[i].h_samp_factor == parts[0].h_samp_factor &&
                           parts[i].v_samp_factor == parts[0].v_samp_factor;
        if (!is_coarse && !is_as_first)
            return false;
    }
    return parts[0].h_samp_factor * parts[0].v_samp_factor <= 4;
}

static presto_status aim_libjpeg(presto__jpeg *jpeg, const presto_window *wanted,
                                 presto_error *err) {
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    if (setjmp(jpeg->escape))
        return fail_jpeg(jpeg, err);
    jpeg_start_decompress(cinfo);
    jpeg->window = (presto_window){0, 0, cinfo->output_height, cinfo->output_width};
    if (!can_cut(cinfo))
        return PRESTO_OK;
    jpeg->window.y = wanted->y;
    jpeg->window.height = wanted->height;
    int64_t left = wanted->x - CUT_MARGIN;
    int64_t right = wanted->x + wanted->width + CUT_MARGIN;
    if (left < 0)
        left = 0;
    if (right > cinfo->output_width)
        right = cinfo->output_width;
    if (right - left < cinfo->output_width) {
        JDIMENSION x = (JDIMENSION)left;
        JDIMENSION width = (JDIMENSION)(right - left);
        jpeg_crop_scanline(cinfo, &x, &width);
        jpeg->window.x = x;
        jpeg->window.width = width;
    }
    return PRESTO_OK;
}

presto_status presto__jpeg_aim(presto__jpeg *jpeg, const presto_window *wanted,
                               presto_window *window_out, presto_error *err) {
    jpeg->wanted = *wanted;
    if (!jpeg->is_fast)
        PRESTO_TRY(aim_libjpeg(jpeg, wanted, err));
    *window_out = jpeg->is_fast ? *wanted : jpeg->window;
    return PRESTO_OK;
}

/* libjpeg may have to take over, and then needs a row. */
size_t presto__jpeg_scratch_bytes(const presto__jpeg *jpeg) {
    if (!jpeg->is_fast)
        return (size_t)jpeg->window.width * 4;
    size_t bytes = presto__jpeg_fast_scratch_bytes(jpeg->fast, &jpeg->wanted);
    return bytes > jpeg->row_bytes ? bytes : jpeg->row_bytes;
}

static void rgb_from_cmyk(const presto__jpeg *jpeg, const uint8_t *in, uint8_t *out) {
    bool inverted = jpeg->cinfo.saw_Adobe_marker;
    for (int64_t i = 0; i < jpeg->window.width; i++) {
        int k = inverted ? in[3] : 255 - in[3];
        for (int c = 0; c < 3; c++)
            out[c] = (uint8_t)(k * (inverted ? in[c] : 255 - in[c]) / 255);
        in += 4;
        out += 3;
    }
}

static void read_row(presto__jpeg *jpeg, uint8_t *out) {
    JSAMPROW row = is_cmyk(jpeg) || jpeg->is_part || out == NULL ? jpeg->scratch : out;
    jpeg_read_scanlines(&jpeg->cinfo, &row, 1);
    size_t channels = (size_t)jpeg->channels;
    if (jpeg->is_part && out != NULL)
        memcpy(out, row + (size_t)(jpeg->wanted.x - jpeg->window.x) * channels,
               (size_t)jpeg->wanted.width * channels);
    if (is_cmyk(jpeg) && out != NULL)
        rgb_from_cmyk(jpeg, jpeg->scratch, out);
}

/*
 * The rows after the window: their entropy-coded data is still read, to find errors. The very last
 * row is decoded, because libjpeg reads nothing when it is told to skip to the end.
 */
static void read_rest(presto__jpeg *jpeg) {
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    JDIMENSION left = cinfo->output_height - cinfo->output_scanline;
    if (left > 1)
        jpeg_skip_scanlines(cinfo, left - 1);
    while (cinfo->output_scanline < cinfo->output_height)
        read_row(jpeg, NULL);
    jpeg_finish_decompress(cinfo);
}

static presto_status read_pixels(presto__jpeg *jpeg, presto_error *err) {
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    if (setjmp(jpeg->escape))
        return fail_jpeg(jpeg, err);
    if (jpeg->window.y > 0)
        jpeg_skip_scanlines(cinfo, (JDIMENSION)jpeg->window.y);
    int64_t width = jpeg->is_part ? jpeg->wanted.width : jpeg->window.width;
    size_t row_bytes = (size_t)width * (size_t)jpeg->channels;
    JDIMENSION end = (JDIMENSION)(jpeg->window.y + jpeg->window.height);
    while (cinfo->output_scanline < end) {
        size_t row = (size_t)(cinfo->output_scanline - (JDIMENSION)jpeg->window.y);
        read_row(jpeg, jpeg->out + row * row_bytes);
    }
    read_rest(jpeg);
    return PRESTO_OK;
}

/* The header was read already, but not by libjpeg. */
static presto_status take_over(presto__jpeg *jpeg, presto_error *err) {
    jpeg->is_fast = false;
    jpeg->channels = jpeg->image.channels;
    PRESTO_TRY(read_header(jpeg, err));
    PRESTO_TRY(aim_libjpeg(jpeg, &jpeg->wanted, err));
    jpeg->is_part = true;
    return PRESTO_OK;
}

presto_status presto__jpeg_read(presto__jpeg *jpeg, uint8_t *out, uint8_t *scratch,
                                presto_error *err) {
    jpeg->out = out;
    jpeg->scratch = scratch;
    presto_status status = PRESTO_OK;
    if (jpeg->is_fast && presto__jpeg_fast_read(jpeg->fast, &jpeg->wanted, out, scratch)) {
        presto__jpeg_close(jpeg);
        return PRESTO_OK;
    }
    if (jpeg->is_fast)
        status = take_over(jpeg, err);
    if (status == PRESTO_OK)
        status = read_pixels(jpeg, err);
    presto__jpeg_close(jpeg);
    return status;
}

#else

/* Without libjpeg-turbo the step is known, and refused with the reason. */
struct presto__jpeg {
    char unused;
};

presto__jpeg *presto__jpeg_new(void) {
    static presto__jpeg nothing;
    return &nothing;
}

void presto__jpeg_free(presto__jpeg *jpeg) {
    (void)jpeg;
}

presto_status presto__jpeg_open(presto__jpeg *jpeg, const presto__encoded_image *image,
                                presto_tensor_spec *spec_out, presto_error *err) {
    (void)jpeg, (void)image, (void)spec_out;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "JPEG: this program was built without libjpeg-turbo");
}

presto_status presto__jpeg_aim(presto__jpeg *jpeg, const presto_window *wanted,
                               presto_window *window_out, presto_error *err) {
    (void)jpeg, (void)wanted, (void)window_out;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "JPEG");
}

presto_status presto__jpeg_read(presto__jpeg *jpeg, uint8_t *out, uint8_t *scratch,
                                presto_error *err) {
    (void)jpeg, (void)out, (void)scratch;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "JPEG");
}

size_t presto__jpeg_coefficient_bytes(presto__jpeg *jpeg) {
    (void)jpeg;
    return 0;
}

size_t presto__jpeg_scratch_bytes(const presto__jpeg *jpeg) {
    (void)jpeg;
    return 0;
}

void presto__jpeg_close(presto__jpeg *jpeg) {
    (void)jpeg;
}

#endif
