/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNGs decoded the fast way, beside libspng: the same pixels, and the same errors for damaged
 * files. The files are made here: every colour type, depth and filter, chunks of all sizes and in
 * any order.
 */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "image/png_internal.h"
#include <presto/rng.h>

#include "steps_check.h"

/* ---- making files ---- */

typedef struct image_kind {
    uint32_t width, height;
    unsigned depth, colour, interlace;
    int filter;          /* of all rows; -1: each row its own */
    size_t idat_bytes;   /* of each IDAT chunk */
    unsigned palette;    /* entries */
    size_t transparency; /* bytes of tRNS, 0: none */
    const char *extra;   /* a chunk between header and data: its type, or NULL */
    size_t extra_bytes;
    const char *trailing; /* a chunk between data and end */
    unsigned level;       /* of zlib */
    bool has_bad_sum;     /* the checksum of the inflated data is another one */
    bool has_more_data;   /* bytes behind its end */
} image_kind;

typedef struct file {
    uint8_t *data;
    size_t bytes, room;
} file;

static void put(file *f, const void *data, size_t bytes) {
    if (f->bytes + bytes > f->room) {
        f->room = 2 * (f->bytes + bytes);
        f->data = realloc(f->data, f->room);
        ck_assert_ptr_nonnull(f->data);
    }
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
    put_u32(f, (uint32_t)crc32(0, f->data + start, (uInt)(bytes + 4)));
}

static size_t row_bytes(const image_kind *k, uint32_t width) {
    static const unsigned channels[7] = {1, 0, 3, 1, 2, 0, 4};
    return ((size_t)width * channels[k->colour] * k->depth + 7) / 8;
}

/* Rows of random bytes are as good as filtered ones. Indexes stay within the palette or not. */
static uint8_t *random_rows(const image_kind *k, presto_rng *rng, size_t *bytes_out) {
    static const uint32_t start[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                         {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    file rows = {0};
    uint8_t row[1 << 12];
    for (unsigned pass = 0; pass < (k->interlace ? 7u : 1u); pass++) {
        uint32_t width = k->width, height = k->height;
        if (k->interlace) {
            const uint32_t *s = start[pass];
            width = k->width > s[0] ? (k->width - s[0] + s[2] - 1) / s[2] : 0;
            height = k->height > s[1] ? (k->height - s[1] + s[3] - 1) / s[3] : 0;
        }
        for (uint32_t y = 0; y < height && width > 0; y++) {
            row[0] = (uint8_t)(k->filter >= 0 ? (uint64_t)k->filter : presto_rng_below(rng, 5));
            for (size_t i = 1; i <= row_bytes(k, width); i++)
                row[i] = (uint8_t)presto_rng_below(rng, k->level == 0 ? 256 : 6);
            put(&rows, row, 1 + row_bytes(k, width));
        }
    }
    *bytes_out = rows.bytes;
    return rows.data;
}

static void put_data(file *f, const image_kind *k, const uint8_t *rows, size_t bytes) {
    uLongf packed_bytes = compressBound((uLong)bytes);
    uint8_t *packed = malloc(packed_bytes);
    ck_assert_ptr_nonnull(packed);
    ck_assert_int_eq(compress2(packed, &packed_bytes, rows, (uLong)bytes, (int)k->level), Z_OK);
    packed[packed_bytes - 1] ^= k->has_bad_sum;
    for (size_t at = 0; at < packed_bytes; at += k->idat_bytes) {
        size_t left = packed_bytes - at;
        put_chunk(f, "IDAT", packed + at, left < k->idat_bytes ? left : k->idat_bytes);
    }
    if (k->has_more_data)
        put_chunk(f, "IDAT", (const uint8_t *)"more", 4);
    free(packed);
}

static file make_file(const image_kind *k, presto_rng *rng) {
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    file f = {0}, header = {0};
    uint8_t noise[2048];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)presto_rng_below(rng, 256);
    uint8_t rest[5] = {(uint8_t)k->depth, (uint8_t)k->colour, 0, 0, (uint8_t)k->interlace};
    put(&f, signature, sizeof signature);
    put_u32(&header, k->width);
    put_u32(&header, k->height);
    put(&header, rest, sizeof rest);
    put_chunk(&f, "IHDR", header.data, header.bytes);
    free(header.data);
    if (k->palette > 0)
        put_chunk(&f, "PLTE", noise, (size_t)k->palette * 3);
    if (k->transparency > 0)
        put_chunk(&f, "tRNS", noise + 1024, k->transparency);
    if (k->extra != NULL)
        put_chunk(&f, k->extra, noise, k->extra_bytes);
    size_t bytes;
    uint8_t *rows = random_rows(k, rng, &bytes);
    put_data(&f, k, rows, bytes);
    free(rows);
    if (k->trailing != NULL)
        put_chunk(&f, k->trailing, noise, 5);
    put_chunk(&f, "IEND", NULL, 0);
    return f;
}

/* ---- decoding ---- */

typedef struct result {
    presto_status status;
    presto_error err;
    presto_tensor_spec spec;
    uint8_t *pixels; /* NULL on failure */
    size_t bytes;
    bool was_fast; /* it was tried, and did not fail */
} result;

/* `png` is of a thread that decodes many images. `in` is copied to a place of just its size. */
static result decode(presto__png *png, presto_span in, int channels) {
    result r = {0};
    uint8_t *copy = presto_check_copy(in);
    presto__encoded_image image = {.bytes = presto_span_of(copy, in.bytes),
                                   .channels = channels,
                                   .max_bytes = (uint64_t)1 << 24};
    r.status = presto__png_open(png, &image, &r.spec, &r.err);
    if (r.status >= 0) {
        size_t scratch_bytes = (presto__png_scratch_bytes(png) + 63) / 64 * 64;
        ck_assert_int_eq(presto_spec_bytes(&r.spec, &r.bytes, &r.err), PRESTO_OK);
        uint8_t *scratch = scratch_bytes > 0 ? aligned_alloc(64, scratch_bytes) : NULL;
        r.pixels = malloc(r.bytes);
        ck_assert_ptr_nonnull(r.pixels);
        r.was_fast = png->is_fast;
        r.status = presto__png_read(png, r.pixels, scratch, &r.err);
        free(scratch);
    }
    free(copy);
    if (r.status < 0) {
        free(r.pixels);
        r.pixels = NULL;
    }
    return r;
}

/* With both kernels the result is libspng's. Was it, too, found to be a common image? */
static bool check_equal(presto_span in, int channels, const char *what) {
    presto__png fast = {.use_simd = presto__use_avx2()}, portable = {0};
    presto__png only_libspng = {.only_libspng = true};
    result want = decode(&only_libspng, in, channels);
    result got[2] = {decode(&fast, in, channels), decode(&portable, in, channels)};
    ck_assert(!want.was_fast);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_msg(got[i].status == want.status, "%s: %s, libspng: %s %s", what,
                      presto_status_name(got[i].status), presto_status_name(want.status),
                      want.status < 0 ? want.err.message : "");
        if (want.status < 0)
            ck_assert_str_eq(got[i].err.message, want.err.message);
        else
            ck_assert_msg(presto_spec_equal(&got[i].spec, &want.spec) &&
                              memcmp(got[i].pixels, want.pixels, want.bytes) == 0,
                          "%s: other pixels", what);
        free(got[i].pixels);
    }
    free(want.pixels);
    return got[0].was_fast;
}

/* Is this image read the fast way to its end? Then libspng is not asked. */
static bool reads_fast(presto_span in, size_t channels) {
    presto__png_layout layout;
    if (!presto__png_fast_layout(in, channels, &layout))
        return false;
    uint8_t *scratch = aligned_alloc(64, (presto__png_fast_scratch_bytes(&layout) + 63) / 64 * 64);
    uint8_t *out = malloc(layout.width * layout.height * channels);
    bool is_read = presto__png_fast_read(in, &layout, presto__use_avx2(), out, scratch);
    free(scratch);
    free(out);
    return is_read;
}

static const struct {
    unsigned colour, depth;
} formats[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
               {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
#define FORMAT_COUNT (sizeof formats / sizeof *formats)

/* An image of format i, small unless it is changed. */
static image_kind kind_of(size_t i) {
    return (image_kind){.width = 7,
                        .height = 5,
                        .depth = formats[i].depth,
                        .colour = formats[i].colour,
                        .filter = -1,
                        .idat_bytes = 40,
                        .palette = formats[i].colour == 3 ? 1u << formats[i].depth : 0,
                        .level = 6};
}

static bool is_common(const image_kind *k) {
    return k->depth >= 8 && k->interlace == 0;
}

/* ---- tests ---- */

START_TEST(every_format_and_filter_gives_the_pixels_of_libspng) {
    static const uint32_t widths[] = {1, 2, 3, 5, 16, 17, 43};
    static const int channels[] = {0, 1, 3, 4};
    presto_rng rng = test_rng(1);
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        for (int filter = -1; filter < 5; filter++)
            for (size_t w = 0; w < 7; w++)
                for (size_t c = 0; c < 4; c++) {
                    image_kind k = kind_of(i);
                    k.width = widths[w];
                    k.filter = filter;
                    k.level = (unsigned)(w % 3) * 4;
                    k.idat_bytes = 1 + presto_rng_below(&rng, 200);
                    file f = make_file(&k, &rng);
                    char what[128];
                    snprintf(what, sizeof what, "colour %u, depth %u, filter %d, width %u, to %d",
                             k.colour, k.depth, filter, k.width, channels[c]);
                    bool was_fast = check_equal(presto_span_of(f.data, f.bytes), channels[c], what);
                    ck_assert_msg(was_fast == is_common(&k), "%s", what);
                    free(f.data);
                }
}
END_TEST

START_TEST(common_images_do_not_need_libspng) {
    presto_rng rng = test_rng(2);
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        for (size_t channels = 3; channels <= 4; channels++) {
            image_kind k = kind_of(i);
            file f = make_file(&k, &rng);
            ck_assert(reads_fast(presto_span_of(f.data, f.bytes), channels) == is_common(&k));
            free(f.data);
            k.interlace = 1;
            f = make_file(&k, &rng);
            ck_assert(!reads_fast(presto_span_of(f.data, f.bytes), channels));
            check_equal(presto_span_of(f.data, f.bytes), (int)channels, "interlaced");
            free(f.data);
        }
}
END_TEST

START_TEST(data_in_pieces_of_any_size_is_the_same) {
    static const size_t sizes[] = {1, 2, 100, 8192, (1 << 17) - 1, 1 << 17, (1 << 17) + 1, 1 << 24};
    static const uint32_t widths[] = {600, 1300};
    presto_rng rng = test_rng(3);
    for (size_t w = 0; w < 2; w++)
        for (size_t i = 0; i < 8; i++) {
            image_kind k = kind_of(w == 0 ? 6 : 5);
            k.width = widths[w] / (k.depth / 8);
            k.height = i == 0 ? 20 : 170; /* several pieces of rows, and of data that is stored */
            k.level = 0;
            k.idat_bytes = sizes[i];
            file f = make_file(&k, &rng);
            ck_assert(reads_fast(presto_span_of(f.data, f.bytes), 3));
            check_equal(presto_span_of(f.data, f.bytes), 3, "pieces");
            free(f.data);
        }
}
END_TEST

START_TEST(chunks_beside_the_data_change_nothing) {
    static const struct {
        const char *type;
        size_t bytes;
        bool is_fast;
    } chunks[] = {
        {"tEXt", 50, true}, {"gAMA", 4, true},  {"gAMA", 0, true},       {"tIME", 7, true},
        {"prVt", 9, true},  {"eXIf", 30, true}, {"eXIf", 0, false},      {"iCCP", 40, true},
        {"zTXt", 40, true}, {"iTXt", 9, true},  {"sPLT", 20, false},     {"hIST", 2, true},
        {"bKGD", 6, true},  {"sBIT", 3, true},  {"pHYs", 9, true},       {"PLTE", 30, false},
        {"cRIT", 4, true},  {"CRIT", 4, false}, {"IHDR", 13, false},     {"IDAT", 0, true},
        {"tEXt", 0, true},  {"acTL", 8, true},  {"\xc3\xa9zz", 1, false}};
    presto_rng rng = test_rng(4);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        for (int place = 0; place < 2; place++) {
            image_kind k = kind_of(5);
            k.extra = place == 0 ? chunks[i].type : NULL;
            k.extra_bytes = chunks[i].bytes;
            k.trailing = place == 1 ? chunks[i].type : NULL;
            file f = make_file(&k, &rng);
            bool is_fast = reads_fast(presto_span_of(f.data, f.bytes), 3);
            if (place == 0)
                ck_assert_msg(is_fast == chunks[i].is_fast, "%s %zu", k.extra, k.extra_bytes);
            for (int channels = 0; channels <= 4; channels++)
                if (channels != 2)
                    check_equal(presto_span_of(f.data, f.bytes), channels, chunks[i].type);
            free(f.data);
        }
}
END_TEST

START_TEST(palettes_and_transparency_are_those_of_libspng) {
    static const struct {
        size_t format;
        unsigned palette;
        size_t transparency;
    } cases[] = {{10, 1, 0}, {10, 3, 0}, {10, 256, 0}, {10, 257, 0}, {10, 256, 20},
                 {10, 4, 9}, {10, 0, 0}, {3, 0, 2},    {4, 0, 2},    {5, 0, 6},
                 {6, 0, 6},  {5, 9, 0},  {5, 0, 5},    {13, 0, 6},   {14, 0, 2}};
    presto_rng rng = test_rng(5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int channels = 0; channels <= 4; channels++) {
            image_kind k = kind_of(cases[i].format);
            k.palette = cases[i].palette;
            k.transparency = cases[i].transparency;
            file f = make_file(&k, &rng);
            if (channels != 2)
                check_equal(presto_span_of(f.data, f.bytes), channels, "palette");
            free(f.data);
        }
}
END_TEST

START_TEST(every_cut_and_every_flipped_bit_gives_the_answer_of_libspng) {
    static const size_t chosen[] = {3, 5, 6, 10, 14};
    presto_rng rng = test_rng(6);
    for (size_t i = 0; i < 5; i++) {
        image_kind k = kind_of(chosen[i]);
        k.transparency = i == 3 ? 3 : 0;
        k.extra = "tEXt";
        k.extra_bytes = 9;
        file f = make_file(&k, &rng);
        for (size_t cut = 8; cut < f.bytes; cut++) /* behind what decode-image tells a PNG by */
            check_equal(presto_span_of(f.data, cut), 3, "cut");
        for (size_t bit = 64; bit < 8 * f.bytes; bit++) {
            f.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            check_equal(presto_span_of(f.data, f.bytes), i % 2 == 0 ? 3 : 4, "flipped");
            f.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(f.data);
    }
}
END_TEST

/* The header of one file before the data of another one. */
static file join_files(const file *head, const file *data) {
    const size_t header_bytes = 8 + 25; /* signature, IHDR */
    file f = {0};
    put(&f, head->data, header_bytes);
    put(&f, data->data + header_bytes, data->bytes - header_bytes);
    return f;
}

START_TEST(data_that_does_not_fit_gives_the_answer_of_libspng) {
    static const struct {
        int more_rows; /* in the header */
        int filter;
        bool has_bad_sum, has_more_data;
        bool is_fast;
    } cases[] = {{1, -1, false, false, false}, {-1, -1, false, false, false},
                 {0, 5, false, false, false},  {0, 200, false, false, false},
                 {0, -1, true, false, false},  {0, -1, false, true, true}};
    presto_rng rng = test_rng(7);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_kind k = kind_of(6), header = k;
        header.height = (uint32_t)((int)k.height + cases[i].more_rows);
        k.filter = cases[i].filter;
        k.has_bad_sum = cases[i].has_bad_sum;
        k.has_more_data = cases[i].has_more_data;
        file head = make_file(&header, &rng), data = make_file(&k, &rng);
        file f = join_files(&head, &data);
        check_equal(presto_span_of(f.data, f.bytes), 3, "data");
        ck_assert_msg(reads_fast(presto_span_of(f.data, f.bytes), 3) == cases[i].is_fast,
                      "case %zu", i);
        free(head.data);
        free(data.data);
        free(f.data);
    }
}
END_TEST

START_TEST(a_header_that_claims_much_takes_no_memory) {
    image_kind k = kind_of(14);
    presto_rng rng = test_rng(8);
    file f = make_file(&k, &rng);
    presto__png_layout layout;
    for (unsigned bit = 0; bit < 32; bit++) {
        f.data[19 - bit / 8] = (uint8_t)(1u << bit % 8); /* the width */
        uint32_t crc = (uint32_t)crc32(0, f.data + 12, 17);
        f.data[29] = (uint8_t)(crc >> 24);
        f.data[30] = (uint8_t)(crc >> 16);
        f.data[31] = (uint8_t)(crc >> 8);
        f.data[32] = (uint8_t)crc;
        if (presto__png_fast_layout(presto_span_of(f.data, f.bytes), 4, &layout))
            ck_assert_uint_le(presto__png_fast_scratch_bytes(&layout),
                              ((size_t)1 << 20) + 32 * layout.width);
        else
            ck_assert_uint_ge(bit, 23); /* a row of 64 MiB */
        f.data[19 - bit / 8] = 0;
    }
    free(f.data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_format_and_filter_gives_the_pixels_of_libspng,
        common_images_do_not_need_libspng,
        data_in_pieces_of_any_size_is_the_same,
        chunks_beside_the_data_change_nothing,
        palettes_and_transparency_are_those_of_libspng,
        every_cut_and_every_flipped_bit_gives_the_answer_of_libspng,
        data_that_does_not_fit_gives_the_answer_of_libspng,
        a_header_that_claims_much_takes_no_memory,
    };
    return presto_check_main("png", tests, sizeof tests / sizeof tests[0], 240);
}
