/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast way through a JPEG: a decoder of our own for baseline files of one scan, 8 bits, grey or
 * three components. Its pixels are those of libjpeg-turbo to the bit. Whatever else a file may be
 * is left to libjpeg-turbo, errors and warnings too. So this never says what is wrong with a file.
 *
 *     jpeg_fast.c        the header, the order of work, windows
 *     jpeg_huffman.c     entropy-coded bytes -> coefficients, in zigzag order
 *     jpeg_transform.c   coefficients -> samples
 *     jpeg_colour.c      samples -> pixels
 *
 * Invariant: a file that is accepted here libjpeg-turbo reads without a warning, with the same
 * pixels.
 */
#ifndef PRESTO_STEPS_JPEG_FAST_INTERNAL_H
#define PRESTO_STEPS_JPEG_FAST_INTERNAL_H

#include "../steps_internal.h"

/* Each 64-bit ARM has NEON. The kernels count on the order of lanes of a little-endian one. */
#if defined(__AARCH64EL__)
#define PRESTO__JPEG_HAS_NEON 1
#else
#define PRESTO__JPEG_HAS_NEON 0
#endif

enum {
    PRESTO__JPEG_PARTS = 3,
    PRESTO__JPEG_MCU_BLOCKS = 6, /* of an MCU, at most: 2 x 2 of luminance, two of colour */
    PRESTO__JPEG_TABLES = 4,
    PRESTO__JPEG_BLOCK = 64 /* coefficients of a block */
};

/** Which instructions are used. */
typedef enum presto__jpeg_level {
    PRESTO__JPEG_PORTABLE,
    PRESTO__JPEG_AVX2,
    PRESTO__JPEG_AVX512,
    PRESTO__JPEG_NEON,
    PRESTO__JPEG_LEVELS
} presto__jpeg_level;

/** Can this processor run it? */
bool presto__jpeg_level_is_there(presto__jpeg_level level);

/**
 * The best level of this processor. The environment variable PRESTO_PORTABLE limits it: avx2 to AVX2,
 * anything else but 0 to portable code.
 */
presto__jpeg_level presto__jpeg_level_of_cpu(void);

/** What reads or writes past an end does so by less than this many bytes. */
enum { PRESTO__JPEG_SLACK = 64 };

/* ---- entropy-coded data ---- */

/** The bits of the code's lookups: a longer code takes a slower way. */
enum { PRESTO__JPEG_LOOKUP_BITS = 11 };

/** What a lookup stores. */
typedef struct presto__jpeg_entry {
    int8_t head[4]; /* the first field */
    uint8_t offset, size;
    int16_t bias;
} presto__jpeg_entry;

/** One table of a DHT segment, prepared for lookups: jpeg_huffman.c describes the arrays. */
typedef struct presto__jpeg_codes {
    uint8_t length[1 << PRESTO__JPEG_LOOKUP_BITS];
    uint8_t advance[1 << PRESTO__JPEG_LOOKUP_BITS];
    presto__jpeg_entry entries[1 << PRESTO__JPEG_LOOKUP_BITS];
    uint16_t symbol[1 << PRESTO__JPEG_LOOKUP_BITS];
    uint8_t values[256];
    int32_t least[17], most[17], place[17]; /* by the length of a code */
} presto__jpeg_codes;

/** The bytes of a DHT segment that make a table: 16 counts, then symbols. */
enum { PRESTO__JPEG_MOST_CODE_BYTES = 16 + 256 };

/** False if libjpeg would refuse them. `is_ac`: for all coefficients but the first of a block. */
bool presto__jpeg_codes_make(presto__jpeg_codes *codes, const uint8_t *bytes, size_t count,
                             bool is_ac);

/** A block's place in the MCU. They form a ring. */
typedef struct presto__jpeg_place {
    const presto__jpeg_codes *dc, *ac;
    uint32_t *prediction; /* may wrap; the coefficients are 16 bits of it */
    const struct presto__jpeg_place *following;
} presto__jpeg_place;

/** Bytes without stuffing, read bit by bit. */
typedef struct presto__jpeg_bits {
    uint64_t bits;        /* the next ones, from the highest on */
    uint64_t count;       /* of them are valid; only the low 6 bits count */
    const uint8_t *next;  /* byte to add */
    const uint8_t *limit; /* a block begins at it, or before */
} presto__jpeg_bits;

/** Zero bytes behind the data: a block that begins at its end does not read past them. */
enum { PRESTO__JPEG_PADDING = 512 };

/**
 * Decode `blocks` blocks, a multiple of an MCU's, into `out`: coefficients in zigzag order, zeroed
 * before; room for 4 more blocks follows them. out == NULL: pass over them. False if the data is
 * not valid.
 */
typedef bool (*presto__jpeg_decode)(presto__jpeg_bits *bits, const presto__jpeg_place *first,
                                    size_t blocks, int16_t *out);
presto__jpeg_decode presto__jpeg_decode_of(presto__jpeg_level level);

/**
 * Copies bytes without the zeros that are stuffed behind 0xff, up to a marker. Sets *from_io behind
 * the marker; NULL: there is none before `end`. Returns the end of the copy, behind which less than
 * PRESTO__JPEG_SLACK bytes may be overwritten.
 */
typedef uint8_t *(*presto__jpeg_unstuff)(const uint8_t **from_io, const uint8_t *end, uint8_t *to);
presto__jpeg_unstuff presto__jpeg_unstuff_of(presto__jpeg_level level);

/* ---- samples ---- */

/** Factors of a component's coefficients, in zigzag order. */
typedef struct presto__jpeg_factors {
    _Alignas(64) int16_t factor[PRESTO__JPEG_BLOCK];
    _Alignas(64) uint16_t limit[PRESTO__JPEG_BLOCK]; /* coefficients beyond it are refused */
    /* The same, each 8 of them twice: for vectors of two blocks. */
    _Alignas(64) int16_t factor_twice[2 * PRESTO__JPEG_BLOCK];
    _Alignas(64) uint16_t limit_twice[2 * PRESTO__JPEG_BLOCK];
} presto__jpeg_factors;

/** How a block becomes samples: by libjpeg's JDCT_ISLOW, by JDCT_IFAST, or reduced. */
typedef enum presto__jpeg_method {
    PRESTO__JPEG_ACCURATE,
    PRESTO__JPEG_FAST,
    PRESTO__JPEG_TO_4,
    PRESTO__JPEG_TO_2,
    PRESTO__JPEG_TO_1,
    PRESTO__JPEG_METHODS
} presto__jpeg_method;

void presto__jpeg_factors_make(presto__jpeg_factors *factors, const uint16_t *quantization,
                               presto__jpeg_method method);

/** Blocks of one component, of one row of blocks: `pair` of them in each MCU, one after another. */
typedef struct presto__jpeg_blocks {
    const int16_t *first;
    size_t pair; /* 1 or 2 */
    size_t step; /* coefficients from one MCU to the next */
    size_t count;
} presto__jpeg_blocks;

/**
 * Samples of all blocks to `out`, whose rows are `row_bytes` apart; up to 32 columns behind the last
 * block may be overwritten. False if a coefficient is beyond its limit.
 */
typedef bool (*presto__jpeg_transform)(const presto__jpeg_blocks *blocks,
                                       const presto__jpeg_factors *factors, uint8_t *out,
                                       size_t row_bytes);
presto__jpeg_transform presto__jpeg_transform_of(presto__jpeg_method method,
                                                 presto__jpeg_level level);

/* ---- pixels ---- */

/** How samples of colour, fewer than pixels, are spread ("fancy upsampling"). */
typedef enum presto__jpeg_spread {
    PRESTO__JPEG_EACH, /* they are as many */
    PRESTO__JPEG_ACROSS,
    PRESTO__JPEG_DOWN,
    PRESTO__JPEG_BOTH,
} presto__jpeg_spread;

/** Rows of samples of colour: the one that a row of pixels lies in, and the other one next to it. */
typedef struct presto__jpeg_rows {
    const uint8_t *near, *far;
    size_t count;  /* of columns */
    bool is_upper; /* the far one is above */
} presto__jpeg_rows;

/** What a row of pixels is made of. */
typedef struct presto__jpeg_ycc {
    const uint8_t *y;
    presto__jpeg_rows cb, cr;
} presto__jpeg_ycc;

/** Pixels of a row. */
typedef struct presto__jpeg_stretch {
    size_t first, count;
} presto__jpeg_stretch;

/** `scratch` has 4 * count + 4 * PRESTO__JPEG_SLACK bytes, for `count` columns of colour. */
typedef struct presto__jpeg_colour {
    /** One row of samples, as many as pixels. */
    void (*spread)(presto__jpeg_spread how, const presto__jpeg_rows *rows, uint8_t *out,
                   uint8_t *scratch);
    /** Pixels from three rows of samples. */
    void (*from_ycc)(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count,
                     uint8_t *out);
    /** Both at once, if colour is spread across. NULL: one after the other. */
    void (*spread_ycc)(presto__jpeg_spread how, const presto__jpeg_ycc *in,
                       const presto__jpeg_stretch *stretch, uint8_t *out, uint8_t *scratch);
} presto__jpeg_colour;

const presto__jpeg_colour *presto__jpeg_colour_of(presto__jpeg_level level);

/* ---- images ---- */

typedef struct presto__jpeg_fast presto__jpeg_fast;

/** The state of one thread: tables, kept from image to image. NULL: no memory. */
presto__jpeg_fast *presto__jpeg_fast_new(presto__jpeg_level level);
void presto__jpeg_fast_free(presto__jpeg_fast *fast);

/** As presto__jpeg_open, but false if libjpeg-turbo is to read it. Borrows the image's bytes. */
bool presto__jpeg_fast_open(presto__jpeg_fast *fast, const presto__encoded_image *image,
                            presto_tensor_spec *spec_out);

/** Bytes that presto__jpeg_fast_read needs for a window of the open image. */
size_t presto__jpeg_fast_scratch_bytes(const presto__jpeg_fast *fast, const presto_window *window);

/**
 * The pixels of `window` into `out`, rows without gaps. The rest of the file is read as well, to
 * find any damage. False if libjpeg-turbo is to read it; `out` then holds anything. `scratch` is
 * 64-byte aligned.
 */
bool presto__jpeg_fast_read(presto__jpeg_fast *fast, const presto_window *window, uint8_t *out,
                            uint8_t *scratch);

#endif
