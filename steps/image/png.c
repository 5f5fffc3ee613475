/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNG by libspng, or faster if the image is a common one (png_fast.c), with the rules of
 * TensorFlow's decode_image: 16 bits are cut to the high byte; alpha and tRNS are dropped without
 * compositing unless 4 channels are asked for; gAMA is ignored; grey of 1, 2 and 4 bits is scaled
 * to 8; colour to grey uses the weights 0.299, 0.587, 0.114 in 15 bits.
 */
#include "png_internal.h"

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool presto__png_probe(presto_span in) {
    return in.bytes >= sizeof signature && memcmp(in.data, signature, sizeof signature) == 0;
}

/* From the header: width and height of 4 bytes at byte 16, then bits and colour type. */
presto__png_kind presto__png_kind_of(presto_span in) {
    if (in.bytes < 26)
        return (presto__png_kind){.bits = 8};
    return (presto__png_kind){
        .is_palette = in.data[25] == 3, .is_grey = in.data[25] == 0, .bits = in.data[24]};
}

#if PRESTO_HAVE_SPNG
#include <spng.h>

/* Ancillary chunks (texts, profiles) are not needed for pixels. Up to this size they are
 * skipped. */
#define MAX_CHUNK_BYTES ((size_t)8 << 20)

static presto_status fail_spng(int code, presto_error *err) {
    presto_status status = PRESTO_ERR_CORRUPT;
    if (code == SPNG_ECHUNK_LIMITS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "unsuitable PNG: its texts and profiles take more than %zu MiB, or are "
                           "more than 1000",
                           MAX_CHUNK_BYTES >> 20);
    if (code == SPNG_EMEM)
        status = PRESTO_ERR_MEMORY;
    else if (code == SPNG_EOF || code == SPNG_IO_EOF || code == SPNG_EIDAT_TOO_SHORT)
        status = PRESTO_ERR_TRUNCATED;
    else if (code == SPNG_EOVERFLOW)
        status = PRESTO_ERR_LIMIT;
    return presto_fail(err, status, PRESTO_NO_OFFSET, "%s PNG: %s",
                       status == PRESTO_ERR_TRUNCATED ? "truncated" : "damaged",
                       spng_strerror(code));
}

void presto__png_close(presto__png *png) {
    spng_ctx_free(png->context);
    png->context = NULL;
}

static uint32_t read_u32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* libspng stops at the header of IEND, so a file without the rest of IEND would be accepted. */
static presto_status check_end(presto_span in, presto_error *err) {
    static const uint8_t end_crc[4] = {0xae, 0x42, 0x60, 0x82};
    size_t at = sizeof signature;
    while (in.bytes - at >= 12) {
        uint32_t length = read_u32(in.data + at);
        if (memcmp(in.data + at + 4, "IEND", 4) == 0) {
            if (length == 0 && memcmp(in.data + at + 8, end_crc, 4) == 0)
                return PRESTO_OK;
            return presto_fail(err, PRESTO_ERR_CORRUPT, at, "damaged PNG: the IEND chunk");
        }
        if (length > in.bytes - at - 12)
            break;
        at += 12 + (size_t)length;
    }
    return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                       "truncated PNG: the chunk at byte %zu does not end", at);
}

static presto_status count_channels(spng_ctx *context, const struct spng_ihdr *header,
                                    int *channels_out, presto_error *err) {
    struct spng_trns transparency;
    switch (header->color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE:
        *channels_out = 1;
        return PRESTO_OK;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        *channels_out = 2;
        return PRESTO_OK;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
        *channels_out = 4;
        return PRESTO_OK;
    case SPNG_COLOR_TYPE_INDEXED: {
        int code = spng_get_trns(context, &transparency);
        if (code != SPNG_OK && code != SPNG_ECHUNKAVAIL)
            return fail_spng(code, err);
        *channels_out = code == SPNG_OK ? 4 : 3;
        return PRESTO_OK;
    }
    default:
        *channels_out = 3;
        return PRESTO_OK;
    }
}

static presto_status open_image(presto__png *png, const presto__encoded_image *image,
                                presto_error *err) {
    spng_ctx *context = png->context;
    int channels = image->channels;
    struct spng_ihdr header;
    int code = spng_set_chunk_limits(context, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES);
    if (code == SPNG_OK)
        code = spng_set_png_buffer(context, image->bytes.data, image->bytes.bytes);
    if (code == SPNG_OK)
        code = spng_get_ihdr(context, &header);
    if (code != SPNG_OK)
        return fail_spng(code, err);
    if (channels == 0)
        PRESTO_TRY(count_channels(context, &header, &channels, err));
    /* 2^31 * 2^31 * 4 fits in 64 bits. */
    png->stored_channels = channels == 3 || channels == 1 ? 3 : 4;
    uint64_t bytes = (uint64_t)header.width * header.height * (uint64_t)png->stored_channels;
    if (bytes > image->max_bytes)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "image of %u x %u pixels is larger than max-bytes (%ju)", header.width,
                           header.height, (uintmax_t)image->max_bytes);
    png->spec = (presto_tensor_spec){PRESTO_UINT8, 3, {header.height, header.width, channels}};
    png->in = image->bytes;
    png->is_fast = !png->only_libspng &&
                   presto__png_fast_layout(png->in, (size_t)png->stored_channels, &png->layout);
    return PRESTO_OK;
}

presto_status presto__png_open(presto__png *png, const presto__encoded_image *image,
                               presto_tensor_spec *spec_out, presto_error *err) {
    presto__png_close(png);
    PRESTO_TRY(check_end(image->bytes, err));
    png->context = spng_ctx_new(0);
    if (png->context == NULL)
        return presto_fail_memory(err, 0);
    presto_status status = open_image(png, image, err);
    if (status < 0)
        presto__png_close(png);
    else
        *spec_out = png->spec;
    return status;
}

static size_t pixel_count(const presto__png *png) {
    return (size_t)png->spec.dims[0] * (size_t)png->spec.dims[1];
}

/* The decoded image, if it has more channels than are wanted; in whole cache lines. */
static size_t wide_bytes(const presto__png *png) {
    if (png->spec.dims[2] == png->stored_channels)
        return 0;
    return (pixel_count(png) * (size_t)png->stored_channels + 63) / 64 * 64;
}

size_t presto__png_scratch_bytes(const presto__png *png) {
    return wide_bytes(png) + (png->is_fast ? presto__png_fast_scratch_bytes(&png->layout) : 0);
}

static void grey_from_rgb(const uint8_t *in, uint8_t *out, size_t pixels) {
    /* 0.299 and 0.587 in 15 bits. The three weights sum to 32768, so grey is not changed. */
    const unsigned red = 9798, green = 19235, blue = 32768 - 9798 - 19235;
    for (size_t i = 0; i < pixels; i++)
        out[i] =
            (uint8_t)((red * in[3 * i] + green * in[3 * i + 1] + blue * in[3 * i + 2] + 16384) >>
                      15);
}

static void grey_alpha_from_rgba(const uint8_t *in, uint8_t *out, size_t pixels) {
    for (size_t i = 0; i < pixels; i++) {
        out[2 * i] = in[4 * i];
        out[2 * i + 1] = in[4 * i + 3];
    }
}

static int read_with_libspng(presto__png *png, uint8_t *image) {
    size_t bytes = pixel_count(png) * (size_t)png->stored_channels;
    bool has_alpha = png->stored_channels == 4;
    int code =
        spng_decode_image(png->context, image, bytes, has_alpha ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8,
                          has_alpha ? SPNG_DECODE_TRNS : 0);
    if (code == SPNG_OK)
        code = spng_decode_chunks(png->context); /* up to IEND, to verify that the file is whole */
    return code;
}

presto_status presto__png_read(presto__png *png, uint8_t *out, uint8_t *scratch,
                               presto_error *err) {
    size_t wide = wide_bytes(png);
    uint8_t *image = wide > 0 ? scratch : out;
    int code = SPNG_OK;
    if (!png->is_fast ||
        !presto__png_fast_read(png->in, &png->layout, png->use_simd, image, scratch + wide))
        code = read_with_libspng(png, image);
    presto__png_close(png);
    if (code != SPNG_OK)
        return fail_spng(code, err);
    if (png->spec.dims[2] == 1)
        grey_from_rgb(image, out, pixel_count(png));
    else if (png->spec.dims[2] == 2)
        grey_alpha_from_rgba(image, out, pixel_count(png));
    return PRESTO_OK;
}

size_t presto__png_values_bytes(presto__png *png) {
    size_t bytes = 0;
    int code = spng_decoded_image_size(png->context, SPNG_FMT_PNG, &bytes);
    return code == SPNG_OK ? bytes : 0;
}

/* Values of fewer than 8 bits stand side by side in a byte, the first one highest; each row begins
 * a byte. */
static void unpack(const uint8_t *in, size_t row_bytes, int bits, const presto_tensor_spec *spec,
                   uint8_t *out) {
    size_t width = (size_t)spec->dims[1], per_byte = 8 / (size_t)bits;
    unsigned mask = (1u << bits) - 1;
    for (int64_t y = 0; y < spec->dims[0]; y++, in += row_bytes, out += width)
        for (size_t x = 0; x < width; x++)
            out[x] = (uint8_t)((unsigned)in[x / per_byte] >>
                                   (8 - (unsigned)bits * (unsigned)(x % per_byte + 1)) &
                               mask);
}

presto_status presto__png_read_values(presto__png *png, bool is_wide, void *out, uint8_t *scratch,
                                      presto_error *err) {
    const presto_tensor_spec spec = png->spec;
    const int bits = presto__png_kind_of(png->in).bits;
    size_t pixels = pixel_count(png), bytes = presto__png_values_bytes(png);
    int code = spng_decode_image(png->context, scratch, bytes, SPNG_FMT_PNG, 0);
    if (code == SPNG_OK)
        code = spng_decode_chunks(png->context);
    presto__png_close(png);
    if (code != SPNG_OK)
        return fail_spng(code, err);
    if (bits == 16) {
        memcpy(out, scratch, pixels * 2);
        return PRESTO_OK;
    }
    uint8_t *narrow = is_wide ? (uint8_t *)out + pixels : out; /* widened from the front */
    unpack(scratch, spec.dims[0] == 0 ? 0 : bytes / (size_t)spec.dims[0], bits, &spec, narrow);
    for (size_t i = 0; is_wide && i < pixels; i++) {
        uint16_t value = narrow[i];
        memcpy((uint8_t *)out + 2 * i, &value, 2);
    }
    return PRESTO_OK;
}

#else

size_t presto__png_values_bytes(presto__png *png) {
    (void)png;
    return 0;
}

presto_status presto__png_read_values(presto__png *png, bool is_wide, void *out, uint8_t *scratch,
                                      presto_error *err) {
    (void)png, (void)is_wide, (void)out, (void)scratch;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "PNG");
}

presto_status presto__png_open(presto__png *png, const presto__encoded_image *image,
                               presto_tensor_spec *spec_out, presto_error *err) {
    (void)png, (void)image, (void)spec_out;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "PNG: this program was built without libspng");
}

size_t presto__png_scratch_bytes(const presto__png *png) {
    (void)png;
    return 0;
}

presto_status presto__png_read(presto__png *png, uint8_t *out, uint8_t *scratch,
                               presto_error *err) {
    (void)png, (void)out, (void)scratch;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "PNG");
}

void presto__png_close(presto__png *png) {
    (void)png;
}

#endif
