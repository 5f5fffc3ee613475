/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast way through a PNG. Beside the faster inflate of ISA-L, two properties help:
 *
 *   - Filters work on bytes that are a pixel apart. So the low bytes of 16-bit samples, and an
 *     alpha channel that is not wanted, are dropped before the filter is undone.
 *   - What is left of RGB is undone straight into the output: the row above is there already.
 *
 * Data goes through in pieces that stay in the second-level cache.
 *
 * Invariant: what is accepted here, libspng accepts with the same pixels. Chunks that could make a
 * difference end the attempt. One exception is known: ISA-L reads deflate data whose set of codes
 * is incomplete, which zlib refuses. No encoder makes such data, and its checksum must match, too.
 */
#include "png_fast_internal.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    SIGNATURE_BYTES = 8,
    HEADER_BYTES = 8, /* of a chunk: length, type */
    CHUNK_BYTES = 12, /* with its CRC */
    IHDR_BYTES = 13,
    ALIGN = 64,
    PIECE_BYTES = 1 << 17, /* of compressed data, and of raw rows if one is not longer */
    MAX_ROW_BYTES = 1 << 26,
    /* Texts and profiles, which libspng keeps, within limits. Usual files have so many, and here
     * they are passed over. */
    MAX_KEPT_CHUNKS = 500,
    MAX_KEPT_BYTES = 1 << 20,
    MAX_PACKED_BYTES = 1 << 15
};

typedef struct chunk {
    uint8_t type[4];
    const uint8_t *data;
    size_t bytes;
} chunk;

static uint32_t read_u32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The chunk at *at_io, which then stands behind it. */
static bool next_chunk(presto_span in, size_t *at_io, chunk *chunk_out) {
    size_t at = *at_io;
    if (in.bytes - at < CHUNK_BYTES)
        return false;
    size_t bytes = read_u32(in.data + at);
    if (bytes > INT32_MAX || bytes > in.bytes - at - CHUNK_BYTES)
        return false;
    memcpy(chunk_out->type, in.data + at + 4, 4);
    chunk_out->data = in.data + at + HEADER_BYTES;
    chunk_out->bytes = bytes;
    *at_io = at + CHUNK_BYTES + bytes;
    return true;
}

static bool is_type(const chunk *c, const char *type) {
    return memcmp(c->type, type, 4) == 0;
}

static bool is_one_of(const chunk *c, const char *types) {
    for (; *types != '\0'; types += 4)
        if (is_type(c, types))
            return true;
    return false;
}

/* The checksum covers the type, too, which stands before the data. */
static bool crc_matches(const chunk *c) {
    return crc32_gzip_refl(0, c->data - 4, c->bytes + 4) == read_u32(c->data + c->bytes);
}

/* ---- which images ---- */

/* What the walk over the chunks has seen. */
typedef struct walk {
    size_t kept_chunks, kept_bytes, packed_bytes;
    bool has_palette, has_transparency, has_palette_user;
    bool is_past_data;
} walk;

static bool take_header(const chunk *c, size_t out_channels, presto__png_layout *layout) {
    static const uint8_t channels_of[7] = {1, 0, 3, 1, 2, 0, 4};
    if (!is_type(c, "IHDR") || c->bytes != IHDR_BYTES || !crc_matches(c))
        return false;
    unsigned depth = c->data[8], colour = c->data[9];
    bool is_plain = c->data[10] == 0 && c->data[11] == 0 && c->data[12] == 0;
    if (!is_plain || colour > 6 || channels_of[colour] == 0 || (depth != 8 && depth != 16) ||
        (colour == 3 && depth != 8))
        return false;
    size_t channels = channels_of[colour];
    bool drops_alpha = out_channels == 3 && (channels == 2 || channels == 4);
    layout->width = read_u32(c->data);
    layout->height = read_u32(c->data + 4);
    layout->sample_bytes = depth / 8;
    layout->pixel_bytes = channels * layout->sample_bytes;
    layout->lanes = drops_alpha ? channels - 1 : channels;
    layout->out_channels = out_channels;
    layout->is_indexed = colour == 3;
    return layout->width > 0 && layout->height > 0 &&
           layout->width <= MAX_ROW_BYTES / layout->pixel_bytes;
}

static bool take_palette(const chunk *c, walk *w, presto__png_layout *layout) {
    if (!layout->is_indexed || w->has_palette || w->has_palette_user || w->is_past_data ||
        layout->idat_count > 0 || c->bytes == 0 || c->bytes % 3 != 0 || c->bytes > 768 ||
        !crc_matches(c))
        return false;
    /* As libspng: entries that are missing are black. */
    for (size_t i = 0; i < 256; i++) {
        memcpy(layout->palette[i], (const uint8_t[4]){0, 0, 0, 255}, 4);
        if (3 * i < c->bytes)
            memcpy(layout->palette[i], c->data + 3 * i, 3);
    }
    w->has_palette = true;
    return true;
}

/* Chunks that do not change the pixels. libspng checks some and leaves the bad ones out. */
static bool take_ancillary(const chunk *c, walk *w, const presto__png_layout *layout) {
    if (is_one_of(c, "tRNSbKGDhIST"))
        w->has_palette_user = true;
    if (is_type(c, "tRNS"))
        return layout->out_channels == 3;
    if (is_type(c, "sPLT") || (is_type(c, "eXIf") && c->bytes == 0))
        return false;
    if (is_one_of(c, "tEXtzTXtiTXteXIfiCCP")) {
        w->kept_chunks++;
        w->kept_bytes += c->bytes;
        w->packed_bytes += is_one_of(c, "zTXtiTXtiCCP") ? c->bytes : 0;
    }
    return w->kept_chunks <= MAX_KEPT_CHUNKS && w->kept_bytes <= MAX_KEPT_BYTES &&
           w->packed_bytes <= MAX_PACKED_BYTES;
}

static bool take_data(size_t at, const walk *w, presto__png_layout *layout) {
    if (w->is_past_data || (layout->is_indexed && !w->has_palette))
        return false;
    if (layout->idat_count++ == 0)
        layout->idat_at = at;
    return true;
}

static bool take_chunk(const chunk *c, size_t at, walk *w, presto__png_layout *layout) {
    if (is_type(c, "IDAT"))
        return take_data(at, w, layout);
    w->is_past_data = layout->idat_count > 0;
    if (is_type(c, "PLTE"))
        return take_palette(c, w, layout);
    bool is_critical = (c->type[0] & 0x20) == 0;
    return !is_critical && take_ancillary(c, w, layout);
}

bool presto__png_fast_layout(presto_span in, size_t out_channels, presto__png_layout *layout_out) {
    presto__png_layout layout = {0};
    walk w = {0};
    chunk c;
    size_t at = SIGNATURE_BYTES;
    if (in.bytes < at || !next_chunk(in, &at, &c) || !take_header(&c, out_channels, &layout))
        return false;
    for (;;) {
        size_t start = at;
        if (!next_chunk(in, &at, &c))
            return false;
        if (is_type(&c, "IEND"))
            break;
        if (!take_chunk(&c, start, &w, &layout))
            return false;
    }
    *layout_out = layout;
    return layout.idat_count > 0;
}

/* ---- the compressed data ---- */

/* Scratch memory: the state of inflate, a piece of data, some raw rows, rows of what is kept. */
typedef struct reader {
    const presto__png_layout *layout;
    presto_span in;
    size_t at;          /* where the next IDAT chunk begins */
    size_t chunks_left; /* from there on */
    chunk open;         /* what is left of the chunk that is being read */
    uint32_t crc;       /* of what was read of it */
    struct inflate_state *inflate;
    uint8_t *piece, *raw, *rows;
    bool use_simd;
} reader;

static size_t aligned(size_t bytes) {
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t raw_row_bytes(const presto__png_layout *layout) {
    return 1 + layout->width * layout->pixel_bytes;
}

/* As many whole rows as make a piece. */
static size_t rows_at_once(const presto__png_layout *layout) {
    size_t row = raw_row_bytes(layout);
    return row < PIECE_BYTES ? PIECE_BYTES / row : 1;
}

/* A row of what is kept of each pixel. */
static size_t row_room(const presto__png_layout *layout) {
    return aligned(layout->width * layout->lanes);
}

size_t presto__png_fast_scratch_bytes(const presto__png_layout *layout) {
    return aligned(sizeof(struct inflate_state)) + PIECE_BYTES +
           aligned(rows_at_once(layout) * raw_row_bytes(layout)) + 3 * row_room(layout);
}

static reader reader_of(presto_span in, const presto__png_layout *layout, bool use_simd,
                        uint8_t *scratch) {
    reader r = {.layout = layout,
                .in = in,
                .use_simd = use_simd,
                .at = layout->idat_at,
                .chunks_left = layout->idat_count,
                .inflate = (struct inflate_state *)(void *)scratch};
    r.piece = scratch + aligned(sizeof *r.inflate);
    r.raw = r.piece + PIECE_BYTES;
    r.rows = r.raw + aligned(rows_at_once(layout) * raw_row_bytes(layout));
    isal_inflate_init(r.inflate);
    r.inflate->crc_flag = ISAL_ZLIB;
    memset(r.rows, 0, row_room(layout));
    return r;
}

/* The next `most` bytes of the open chunk, at most; its checksum is verified with the last ones. */
static bool take_part(reader *r, size_t most, presto_span *part_out) {
    size_t bytes = r->open.bytes < most ? r->open.bytes : most;
    *part_out = presto_span_of(r->open.data, bytes);
    r->crc = crc32_gzip_refl(r->crc, r->open.data, bytes);
    r->open.data += bytes;
    r->open.bytes -= bytes;
    return r->open.bytes > 0 || r->crc == read_u32(r->open.data);
}

static bool open_chunk(reader *r) {
    r->chunks_left--;
    bool is_there = next_chunk(r->in, &r->at, &r->open);
    r->crc = crc32_gzip_refl(0, r->open.type, sizeof r->open.type);
    return is_there && (r->open.bytes > 0 || r->crc == read_u32(r->open.data));
}

/* More data, empty at the end: a part of a large chunk as it stands, or several chunks in one
 * piece, for every call of inflate has its price. */
static bool next_piece(reader *r, presto_span *piece_out) {
    presto_span part;
    size_t bytes = 0;
    if (r->open.bytes >= PIECE_BYTES)
        return take_part(r, PIECE_BYTES, piece_out);
    while (bytes < PIECE_BYTES && (r->open.bytes > 0 || r->chunks_left > 0)) {
        if (r->open.bytes == 0) {
            if (!open_chunk(r))
                return false;
            continue;
        }
        if (!take_part(r, PIECE_BYTES - bytes, &part))
            return false;
        memcpy(r->piece + bytes, part.data, part.bytes);
        bytes += part.bytes;
    }
    *piece_out = presto_span_of(r->piece, bytes);
    return true;
}

/* Fill `bytes` bytes of r->raw. */
static bool inflate_rows(reader *r, size_t bytes) {
    struct inflate_state *state = r->inflate;
    state->next_out = r->raw;
    state->avail_out = (uint32_t)bytes;
    while (state->avail_out > 0) {
        presto_span piece;
        if (state->avail_in == 0) {
            if (!next_piece(r, &piece) || piece.bytes == 0)
                return false;
            state->next_in = (uint8_t *)(uintptr_t)piece.data;
            state->avail_in = (uint32_t)piece.bytes;
        }
        bool is_over = state->block_state == ISAL_BLOCK_FINISH;
        if (is_over || isal_inflate(state) != ISAL_DECOMP_OK)
            return false;
    }
    return true;
}

/* Behind the last row the data must end, and all of it be undamaged. */
static bool ends_here(reader *r) {
    struct inflate_state *state = r->inflate;
    presto_span piece;
    uint8_t more;
    do {
        state->next_out = &more;
        state->avail_out = 1;
        if (state->block_state != ISAL_BLOCK_FINISH &&
            (isal_inflate(state) != ISAL_DECOMP_OK || state->avail_out == 0))
            return false;
        if (!next_piece(r, &piece))
            return false;
        state->next_in = (uint8_t *)(uintptr_t)piece.data;
        state->avail_in = (uint32_t)piece.bytes;
    } while (piece.bytes > 0);
    return state->block_state == ISAL_BLOCK_FINISH;
}

/* ---- pixels ---- */

/* The first byte of every sample that is kept. The sizes are copied: a byte that is written could
 * be one of them, as far as the compiler knows. */
static void gather(uint8_t *dst, const uint8_t *src, const presto__png_layout *layout) {
    const size_t lanes = layout->lanes, step = layout->sample_bytes, pixel = layout->pixel_bytes;
    const size_t width = layout->width;
    if (pixel == 2 * lanes && step == 2) {
        for (size_t i = 0; i < width * lanes; i++)
            dst[i] = src[2 * i];
        return;
    }
    for (size_t x = 0; x < width; x++)
        for (size_t k = 0; k < lanes; k++)
            dst[x * lanes + k] = src[x * pixel + k * step];
}

/* A row of indexes, of grey, or of RGB that gets an alpha channel. */
static void expand(uint8_t *out, const uint8_t *row, const presto__png_layout *layout) {
    const size_t channels = layout->out_channels, lanes = layout->lanes, width = layout->width;
    const bool is_indexed = layout->is_indexed, is_grey = lanes <= 2;
    for (size_t x = 0; x < width; x++, out += channels, row += lanes) {
        if (is_indexed) {
            memcpy(out, layout->palette[row[0]], channels);
            continue;
        }
        out[0] = row[0];
        out[1] = row[is_grey ? 0 : 1];
        out[2] = row[is_grey ? 0 : 2];
        if (channels == 4)
            out[3] = lanes == 2 ? row[1] : 255;
    }
}

/* ISA-L's checksums leave values in the upper halves of the vector registers. On some processors
 * the instructions of SSE are slow then. */
#if defined(__x86_64__)
__attribute__((target("avx"))) static void clear_upper_halves(void) {
    _mm256_zeroupper();
}
#else
static void clear_upper_halves(void) {
}
#endif

/* Row `y` of the image out of r->raw's row `src`. `above` is what this made of the row before. */
static const uint8_t *read_row(const reader *r, size_t y, const uint8_t *src, const uint8_t *above,
                               uint8_t *out) {
    const presto__png_layout *layout = r->layout;
    bool is_direct = layout->lanes == layout->out_channels && !layout->is_indexed;
    size_t room = row_room(layout);
    uint8_t *kept = r->rows + 2 * room;
    uint8_t *dst = is_direct ? out : r->rows + (1 - y % 2) * room;
    unsigned filter = src[0];
    src++;
    if (layout->pixel_bytes != layout->lanes) {
        gather(kept, src, layout);
        src = kept;
    }
    presto__png_unfilter_of(layout->lanes, filter, r->use_simd)(dst, src, above, layout->width);
    if (!is_direct)
        expand(out, dst, layout);
    return dst;
}

bool presto__png_fast_read(presto_span in, const presto__png_layout *layout, bool use_simd,
                           uint8_t *out, uint8_t *scratch) {
    reader r = reader_of(in, layout, use_simd, scratch);
    size_t row = raw_row_bytes(layout), at_once = rows_at_once(layout);
    const uint8_t *above = r.rows;
    for (size_t y = 0; y < layout->height;) {
        size_t count = layout->height - y < at_once ? layout->height - y : at_once;
        if (!inflate_rows(&r, count * row))
            return false;
        if (use_simd)
            clear_upper_halves();
        for (const uint8_t *src = r.raw; src < r.raw + count * row; src += row, y++) {
            if (src[0] >= PRESTO__PNG_FILTERS)
                return false;
            above = read_row(&r, y, src, above, out);
            out += layout->width * layout->out_channels;
        }
    }
    bool is_whole = ends_here(&r);
    if (use_simd)
        clear_upper_halves();
    return is_whole;
}
