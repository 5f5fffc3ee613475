/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNGs decoded the fast way and by libspng alone: the same pixels, or the same message. The input
 * describes a file, so that checksums are right and the parsers behind them are reached:
 *
 *   flags | IHDR: width, height, depth, colour, interlace | chunks: kind, length (16 bits), content
 *
 * The contents of IDAT are deflate data as they stand, or rows that are compressed here.
 */
#include <isa-l/igzip_lib.h>
#include <string.h>
#include <zlib.h>

#include "fuzz.h"
#include "image/png_internal.h"

enum {
    IS_ROWS = 1,     /* the contents of IDAT are rows */
    IS_PORTABLE = 2, /* without vectors */
    CHANNELS = 12,   /* two bits: 0, 1, 3 or 4 */
    STEP = 16,       /* bits above: a divisor of the data, for several IDAT chunks */
    MAX_SIDE = 96,
    MAX_FILE = 1 << 17
};

static const char *const types[] = {"IDAT", "PLTE", "tRNS", "gAMA", "cHRM", "sRGB", "sBIT", "bKGD",
                                    "pHYs", "tIME", "tEXt", "zTXt", "iTXt", "iCCP", "eXIf", "sPLT",
                                    "hIST", "oFFs", "vpAg", "IHDR", "IEND", "CRIT"};
#define TYPE_COUNT (sizeof types / sizeof *types)

typedef struct file {
    uint8_t data[MAX_FILE];
    size_t bytes;
} file;

static void put(file *f, const void *data, size_t bytes) {
    if (bytes > sizeof f->data - f->bytes)
        bytes = sizeof f->data - f->bytes;
    if (bytes > 0)
        memcpy(f->data + f->bytes, data, bytes);
    f->bytes += bytes;
}

static void put_u32(file *f, uint32_t value) {
    uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                        (uint8_t)value};
    put(f, bytes, 4);
}

static void put_chunk(file *f, const char *type, const uint8_t *data, size_t bytes) {
    put_u32(f, (uint32_t)bytes);
    size_t start = f->bytes;
    put(f, type, 4);
    put(f, data, bytes);
    put_u32(f, (uint32_t)crc32(0, f->data + start, (uInt)(f->bytes - start)));
}

/* A zlib stream around deflate data, with the checksum of what ISA-L makes of it: whether zlib
 * agrees is the question. */
static size_t wrap(const uint8_t *data, size_t bytes, uint8_t *out) {
    static uint8_t inflated[1 << 17];
    static struct inflate_state state;
    isal_inflate_init(&state);
    state.next_in = (uint8_t *)(uintptr_t)data;
    state.avail_in = (uint32_t)bytes;
    state.next_out = inflated;
    state.avail_out = sizeof inflated;
    (void)isal_inflate(&state);
    uint32_t sum = (uint32_t)adler32(1, inflated, (uInt)(sizeof inflated - state.avail_out));
    size_t used = state.block_state == ISAL_BLOCK_FINISH ? bytes - state.avail_in : bytes;
    uint8_t trailer[4] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8),
                          (uint8_t)sum};
    memcpy(out, "\x78\x9c", 2);
    memcpy(out + 2, data, used);
    memcpy(out + 2 + used, trailer, 4);
    return used + 6;
}

static void put_data(file *f, unsigned flags, const uint8_t *data, size_t bytes) {
    static uint8_t packed[1 << 17];
    uLongf packed_bytes = sizeof packed;
    if ((flags & IS_ROWS) != 0)
        FUZZ_HOLDS(compress2(packed, &packed_bytes, data, (uLong)bytes, 6) == Z_OK);
    else
        packed_bytes = wrap(data, bytes, packed);
    size_t step = packed_bytes / (flags / STEP + 1) + 1;
    for (size_t at = 0; at < packed_bytes; at += step)
        put_chunk(f, "IDAT", packed + at, packed_bytes - at < step ? packed_bytes - at : step);
}

static void make_file(file *f, const uint8_t *data, size_t bytes) {
    uint8_t header[13] = {0};
    put(f, "\x89PNG\r\n\x1a\n", 8);
    header[3] = data[1] % MAX_SIDE;
    header[7] = data[2] % MAX_SIDE;
    memcpy(header + 8, data + 3, 2);
    header[12] = data[5];
    put_chunk(f, "IHDR", header, sizeof header);
    for (size_t at = 6; at + 3 <= bytes;) {
        const char *type = types[data[at] % TYPE_COUNT];
        size_t length = (size_t)data[at + 1] << 8 | data[at + 2];
        at += 3;
        length = length < bytes - at ? length : bytes - at;
        if (strcmp(type, "IDAT") == 0)
            put_data(f, data[0], data + at, length);
        else
            put_chunk(f, type, data + at, length);
        at += length;
    }
    put_chunk(f, "IEND", NULL, 0);
}

typedef struct result {
    presto_status status;
    presto_error err;
    presto_tensor_spec spec;
    uint8_t *pixels;
    size_t bytes;
} result;

static result decode(presto__png *png, presto_span in, int channels) {
    result r = {0};
    presto__encoded_image image = {
        .bytes = in, .channels = channels, .max_bytes = (uint64_t)1 << 20};
    r.status = presto__png_open(png, &image, &r.spec, &r.err);
    if (r.status < 0)
        return r;
    size_t scratch_bytes = (presto__png_scratch_bytes(png) + 63) / 64 * 64;
    uint8_t *scratch = scratch_bytes > 0 ? aligned_alloc(64, scratch_bytes) : NULL;
    FUZZ_HOLDS(presto_spec_bytes(&r.spec, &r.bytes, NULL) == PRESTO_OK);
    r.pixels = malloc(r.bytes);
    FUZZ_HOLDS(r.pixels != NULL);
    r.status = presto__png_read(png, r.pixels, scratch, &r.err);
    free(scratch);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const int channels_of[] = {0, 1, 3, 4};
    static file f;
    if (bytes < 6 || bytes > 1 << 14)
        return 0;
    f.bytes = 0;
    make_file(&f, data, bytes);
    uint8_t *copy = malloc(f.bytes);
    FUZZ_HOLDS(copy != NULL);
    memcpy(copy, f.data, f.bytes);
    presto_span in = presto_span_of(copy, f.bytes);
    int channels = channels_of[(data[0] & CHANNELS) / 4];
    presto__png fast = {.use_simd = (data[0] & IS_PORTABLE) == 0 && presto__use_avx2()};
    presto__png only_libspng = {.only_libspng = true};
    result got = decode(&fast, in, channels), want = decode(&only_libspng, in, channels);
    /* The exception that png_fast.c names. */
    bool is_refused_by_zlib = want.status < 0 && (data[0] & IS_ROWS) == 0 &&
                              strstr(want.err.message, "IDAT stream error") != NULL;
    FUZZ_HOLDS(got.status == want.status || (is_refused_by_zlib && got.status == PRESTO_OK));
    if (got.status < 0)
        FUZZ_HOLDS(strcmp(got.err.message, want.err.message) == 0);
    else if (want.status >= 0)
        FUZZ_HOLDS(presto_spec_equal(&got.spec, &want.spec) &&
                   memcmp(got.pixels, want.pixels, want.bytes) == 0);
    free(got.pixels);
    free(want.pixels);
    free(copy);
    return 0;
}
