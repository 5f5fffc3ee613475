/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs, one record at a time, beside the calls of their libraries. */
#include "base/rng_internal.h"
#include "records.h"
#include "records/records_internal.h"

#include <stdio.h>

#include <libdeflate.h>
#if PRESTO_HAVE_LZ4
#include <lz4frame.h>
#endif
#if PRESTO_HAVE_SNAPPY
#include <snappy-c.h>
#endif
#if PRESTO_HAVE_ZSTD
#include <zstd.h>
#endif
#if PRESTO_HAVE_BLOSC
#include <blosc.h>
#endif

#include <presto/codec.h>
#include <presto/rng.h>

/*
 * The library's own calls on the same input; contexts are made once, as a careful user would, and
 * the output has the room that the library asks for: some take another path where there is more.
 */
typedef struct direct {
    const char *text;
    size_t (*bound)(size_t bytes);
    size_t (*compress)(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room);
    size_t (*decompress)(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room);
    void *(*open)(void);
} direct;

typedef struct deflaters {
    struct libdeflate_compressor *compressor;
    struct libdeflate_decompressor *decompressor;
} deflaters;

static void *deflate_open(void) {
    deflaters *state = records_malloc(sizeof *state);
    state->compressor = libdeflate_alloc_compressor(6);
    state->decompressor = libdeflate_alloc_decompressor();
    return state;
}
static size_t zlib_bound(size_t bytes) {
    return libdeflate_zlib_compress_bound(NULL, bytes);
}
static size_t gzip_bound(size_t bytes) {
    return libdeflate_gzip_compress_bound(NULL, bytes);
}
static size_t zlib_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                            size_t room) {
    return libdeflate_zlib_compress(((deflaters *)state)->compressor, in, bytes, out, room);
}
static size_t zlib_decompress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                              size_t room) {
    size_t got = 0;
    if (libdeflate_zlib_decompress(((deflaters *)state)->decompressor, in, bytes, out, room,
                                   &got) != LIBDEFLATE_SUCCESS)
        records_die("libdeflate");
    return got;
}
static size_t gzip_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                            size_t room) {
    return libdeflate_gzip_compress(((deflaters *)state)->compressor, in, bytes, out, room);
}
static size_t gzip_decompress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                              size_t room) {
    size_t got = 0;
    if (libdeflate_gzip_decompress(((deflaters *)state)->decompressor, in, bytes, out, room,
                                   &got) != LIBDEFLATE_SUCCESS)
        records_die("libdeflate");
    return got;
}
#if PRESTO_HAVE_ZSTD
typedef struct zstds {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
} zstds;
static void *zstd_open(void) {
    zstds *state = records_malloc(sizeof *state);
    state->compressor = ZSTD_createCCtx();
    state->decompressor = ZSTD_createDCtx();
    return state;
}
static size_t zstd1_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                             size_t room) {
    return ZSTD_compressCCtx(((zstds *)state)->compressor, out, room, in, bytes, 1);
}
static size_t zstd3_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                             size_t room) {
    return ZSTD_compressCCtx(((zstds *)state)->compressor, out, room, in, bytes, 3);
}
static size_t zstd_decompress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                              size_t room) {
    return ZSTD_decompressDCtx(((zstds *)state)->decompressor, out, room, in, bytes);
}
#endif
#if PRESTO_HAVE_LZ4
static void *lz4_open(void) {
    LZ4F_dctx *state;
    LZ4F_createDecompressionContext(&state, LZ4F_VERSION);
    return state;
}
static size_t lz4_bound(size_t bytes) {
    return LZ4F_compressFrameBound(bytes, NULL);
}
static size_t lz4_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                           size_t room) {
    LZ4F_preferences_t preferences = {.frameInfo.contentSize = bytes};
    (void)state;
    return LZ4F_compressFrame(out, room, in, bytes, &preferences);
}
static size_t lz4_decompress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                             size_t room) {
    size_t used = bytes, got = room;
    if (LZ4F_decompress(state, out, &got, in, &used, NULL) != 0)
        records_die("LZ4F_decompress");
    return got;
}
#endif
#if PRESTO_HAVE_SNAPPY
static size_t snappy_pack(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room) {
    (void)state;
    snappy_compress((const char *)in, bytes, (char *)out, &room);
    return room;
}
static size_t snappy_unpack(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                            size_t room) {
    (void)state;
    snappy_uncompress((const char *)in, bytes, (char *)out, &room);
    return room;
}
#endif
#if PRESTO_HAVE_BLOSC
static size_t blosc_bound(size_t bytes) {
    return bytes + BLOSC_MAX_OVERHEAD;
}
static size_t blosc_lz4(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room) {
    (void)state;
    return (size_t)blosc_compress_ctx(5, BLOSC_SHUFFLE, 4, bytes, in, out, room, "lz4", 0, 1);
}
static size_t blosc_zstd(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room) {
    (void)state;
    return (size_t)blosc_compress_ctx(1, BLOSC_SHUFFLE, 4, bytes, in, out, room, "zstd", 0, 1);
}
static size_t blosc_unpack(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                           size_t room) {
    (void)state;
    (void)bytes;
    return (size_t)blosc_decompress_ctx(in, out, room, 1);
}
#endif

static void *nothing_to_open(void) {
    return NULL;
}

static const direct directs[] = {
    {"zlib", zlib_bound, zlib_compress, zlib_decompress, deflate_open},
    {"gzip", gzip_bound, gzip_compress, gzip_decompress, deflate_open},
#if PRESTO_HAVE_ZSTD
    {"zstd:1", ZSTD_compressBound, zstd1_compress, zstd_decompress, zstd_open},
    {"zstd", ZSTD_compressBound, zstd3_compress, zstd_decompress, zstd_open},
#endif
#if PRESTO_HAVE_LZ4
    {"lz4", lz4_bound, lz4_compress, lz4_decompress, lz4_open},
#endif
#if PRESTO_HAVE_SNAPPY
    {"snappy", snappy_max_compressed_length, snappy_pack, snappy_unpack, nothing_to_open},
#endif
#if PRESTO_HAVE_BLOSC
    {"blosc-lz4", blosc_bound, blosc_lz4, blosc_unpack, nothing_to_open},
    {"blosc-zstd", blosc_bound, blosc_zstd, blosc_unpack, nothing_to_open},
#endif
};

/* An image as a camera makes it, roughly: slopes, edges and noise, three channels. */
static void fill_image(uint8_t *data, size_t width, size_t height) {
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = 11});
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++)
            for (size_t c = 0; c < 3; c++) {
                unsigned edge = (unsigned)((x / 40 + y / 30) % 3 * 40);
                unsigned noise = (unsigned)presto_rng_next(&rng) % 3;
                data[(y * width + x) * 3 + c] = (uint8_t)(x / 3 + y / 5 + c * 30 + edge + noise);
            }
}

/*
 * Both sides of one codec. They work in the same memory, in and out: where a buffer lies can
 * matter by a tenth.
 */
typedef struct codec_case {
    const direct *library;
    void *state;
    presto_codec *codec;
    const uint8_t *data;
    size_t bytes;
    presto_buffer packed;
    presto_arena arena;
    uint8_t *out; /* where the arena puts the record */
} codec_case;

typedef void codec_fn(codec_case *c);

static void our_compress(codec_case *c) {
    c->packed.bytes = 0;
    MUST(presto__codec_compress(c->codec, presto_span_of(c->data, c->bytes), &c->packed,
                                &records_err));
}

static void their_compress(codec_case *c) {
    size_t room = c->library->bound(c->bytes);
    c->packed.bytes = c->library->compress(c->state, c->data, c->bytes, c->packed.data, room);
    if (c->packed.bytes == 0 || c->packed.bytes > room)
        records_die(c->library->text);
}

static void our_decompress(codec_case *c) {
    presto_span out;
    MUST(presto_codec_decompress(c->codec, presto_buffer_span(&c->packed),
                                 &(presto_codec_room){&c->arena, c->bytes}, &out, &records_err));
    presto_arena_reset(&c->arena);
    c->out = (uint8_t *)(uintptr_t)out.data;
}

static void their_decompress(codec_case *c) {
    if (c->library->decompress(c->state, c->packed.data, c->packed.bytes, c->out, c->bytes) !=
        c->bytes)
        records_die(c->library->text);
}

static records_spent repeat(codec_fn *work, codec_case *c, unsigned times) {
    records_spent time = {0, 0}, start = records_now();
    for (unsigned i = 0; i < times; i++)
        work(c);
    records_count_since(&time, start);
    return time;
}

/* Slices of about two milliseconds, the sides in changing order. */
static void compare_codec(codec_case *c, codec_fn *mine, codec_fn *other, const char *what) {
    records_series ours = {.count = 0}, theirs = {.count = 0};
    repeat(mine, c, 1);
    repeat(other, c, 1);
    unsigned times = 1 + (unsigned)(2000000 / (repeat(other, c, 1).cpu_ns + 100));
    double bytes = (double)c->bytes * times;
    for (unsigned round = 0; round < records_set.rounds; round++) {
        if (round % 2 == 0)
            records_add(&ours, repeat(mine, c, times), bytes);
        records_add(&theirs, repeat(other, c, times), bytes);
        if (round % 2 == 1)
            records_add(&ours, repeat(mine, c, times), bytes);
    }
    char name[64], column[64];
    snprintf(column, sizeof column, "%s %zu KB", what, c->bytes / 1000);
    bench_note("records.codec", c->library->text, column,
               records_faster(ours.clock, theirs.clock, ours.count));
    snprintf(name, sizeof name, "%s %zu KB %s", c->library->text, c->bytes / 1000, what);
    records_print(name, &ours, &theirs, 1000, "MB/s");
}

static void bench_codec(const direct *library, const uint8_t *data, size_t bytes) {
    codec_case c = {.library = library, .data = data, .bytes = bytes};
    presto_codec_spec spec;
    c.state = library->open();
    MUST(presto_buffer_reserve(&c.packed, library->bound(bytes), &records_err));
    MUST(presto_codec_parse(library->text, &spec, &records_err));
    spec.type_bytes = 4;
    MUST(presto_codec_new(&spec, &c.codec, &records_err));
    compare_codec(&c, our_compress, their_compress, "compress");
    our_compress(&c);
    compare_codec(&c, our_decompress, their_decompress, "decompress");
    presto_codec_free(c.codec);
    presto_buffer_done(&c.packed);
    presto_arena_done(&c.arena);
}

static void bench_variant(const char *text, const uint8_t *data, size_t bytes) {
    codec_case c = {.data = data, .bytes = bytes};
    presto_codec_spec spec;
    records_series pack = {.count = 0}, unpack = {.count = 0};
    MUST(presto_codec_parse(text, &spec, &records_err));
    spec.type_bytes = 1;
    MUST(presto_codec_new(&spec, &c.codec, &records_err));
    our_compress(&c);
    our_decompress(&c);
    for (unsigned round = 0; round < records_set.rounds; round++) {
        records_add(&pack, repeat(our_compress, &c, 1), (double)bytes);
        records_add(&unpack, repeat(our_decompress, &c, 8), (double)bytes * 8);
    }
    printf("%-28s %7.3f %7.0f MB/s %7.0f MB/s (best %.0f)\n", text,
           (double)bytes / (double)c.packed.bytes, 1000 / records_median(pack.cpu, pack.count),
           1000 / records_median(unpack.cpu, unpack.count),
           1000 / records_least(unpack.cpu, unpack.count));
    bench_note("records.variants", text, "ratio",
               (bench_figure){(double)bytes / (double)c.packed.bytes, 0});
    bench_note("records.variants", text, "compress, MB/s", records_speed(&pack, 1000));
    bench_note("records.variants", text, "decompress, MB/s", records_speed(&unpack, 1000));
    presto_codec_free(c.codec);
    presto_buffer_done(&c.packed);
    presto_arena_done(&c.arena);
}

/* The predictor against blosc's bitshuffle: same samples, ratio and decoding speed. */
static void bench_variants(const uint8_t *data, size_t bytes, const char *what) {
    static const char *const texts[] = {"zstd:1",
                                        "zstd:1+delta3",
                                        "blosc-zstd:1+bitshuffle",
                                        "zstd:3",
                                        "zstd:3+delta3",
                                        "blosc-zstd:2+bitshuffle",
                                        "lz4",
                                        "lz4hc",
                                        "blosc-lz4+bitshuffle",
                                        "blosc-lz4:9+bitshuffle"};
    printf("\nvariants on %s, %zu KB records, by CPU\n%-28s %7s %12s %12s\n", what, bytes / 1000,
           "codec", "ratio", "compress", "decompress");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        bench_variant(texts[i], data, bytes);
}

void records_bench_codecs(const char *path) {
    size_t width = 341, height = 256, bytes = width * height * 3;
    uint8_t *image = records_malloc(bytes);
    fill_image(image, width, height);
    if (path != NULL) { /* raw bytes, e.g. of a resized photo */
        FILE *in = fopen(path, "rb");
        if (in == NULL)
            records_die("cannot open the image");
        bytes = fread(image, 1, bytes, in);
        fclose(in);
    }
    records_print_head(NULL, "codecs, one record at a time", "library itself");
    for (size_t i = 0; i < sizeof directs / sizeof directs[0]; i++) {
        bench_codec(&directs[i], image, 10000);
        bench_codec(&directs[i], image, bytes);
    }
    bench_variants(image, bytes, path != NULL ? path : "a made image");
    free(image);
}
