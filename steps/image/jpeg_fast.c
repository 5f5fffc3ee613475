/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast way through a JPEG: its header, and the order of work.
 *
 * Stuffed zeros are removed from the entropy-coded data first, all at once, and the places of restart
 * markers are kept. Then some MCUs after the other become coefficients and samples, and each row of MCUs
 * becomes pixels, in memory that stays in the caches. Colour of half the height needs the rows of samples
 * above and below: of each row of MCUs the last row of samples is kept, and the last row of pixels
 * waits for the next one.
 *
 * What lies outside of the wanted window is only passed over in the entropy-coded data. With an index
 * (jpeg_index_internal.h) most of it is not read at all.
 */
#include "jpeg_index_internal.h"

#include <stdlib.h>

#define BLOCK PRESTO__JPEG_BLOCK
#define SLACK ((size_t)PRESTO__JPEG_SLACK)
#define SPARE_BLOCKS ((size_t)4)

enum {
    ALIGN = 64,
    SIDE = 8,
    MCUS_AT_ONCE = 8,      /* their coefficients stay in the first-level cache */
    KEPT_CODES = 8,        /* tables kept from image to image: those of two kinds of files */
    MAX_DIMENSION = 65500, /* libjpeg's */
    MOST_SCAN_BYTES = INT32_MAX
};

enum { SOF0 = 0xc0, SOF1 = 0xc1, DHT = 0xc4, SOI = 0xd8, EOI = 0xd9, SOS = 0xda, DQT = 0xdb };
enum { DRI = 0xdd, RST0 = 0xd0, RST7 = 0xd7, APP0 = 0xe0, APP14 = 0xee, APP15 = 0xef, COM = 0xfe };

typedef enum colours { COLOURS_GREY, COLOURS_YCC, COLOURS_RGB } colours;

/* A component. */
typedef struct part {
    uint8_t id;
    size_t across, down; /* blocks of an MCU */
    size_t side;         /* of the samples of a block: less than 8 if it is reduced */
    unsigned quantization, dc, ac;
    presto__jpeg_method method;
} part;

/* What the header says. Pointers borrow the file's bytes. */
typedef struct layout {
    size_t width, height; /* of the file's image */
    size_t part_count;
    part parts[PRESTO__JPEG_PARTS];
    bool has_jfif, has_adobe;
    unsigned adobe_transform;
    colours colours;
    uint16_t quantization[PRESTO__JPEG_TABLES][BLOCK];
    bool has_quantization[PRESTO__JPEG_TABLES];
    presto_span codes[2][PRESTO__JPEG_TABLES]; /* of DC, of AC; data is NULL if there is none */
    size_t restart_interval;                   /* in MCUs, 0: none */
    presto_span scan;                          /* from the first entropy-coded byte on */
    presto_span index;                         /* sizes of segments; data is NULL: none */
    size_t mcu_blocks, mcu_columns, mcu_rows, segments;
    /* of the output: */
    size_t by; /* it is reduced: 1, 2, 4 or 8 */
    size_t out_width, out_height, channels;
    size_t mcu_width, mcu_height; /* in pixels */
    presto__jpeg_spread spread;
    size_t colour_width, colour_height; /* in samples */
} layout;

typedef struct kept_codes {
    presto__jpeg_codes *codes;
    uint64_t used_at; /* the number of the image that used it last */
    size_t count;     /* of bytes; 0: none */
    bool is_ac;
    uint8_t bytes[PRESTO__JPEG_MOST_CODE_BYTES];
} kept_codes;

struct presto__jpeg_fast {
    presto__jpeg_level level;
    presto__jpeg_unstuff unstuff;
    presto__jpeg_decode decode;
    const presto__jpeg_colour *colour;
    uint64_t image;
    kept_codes kept[KEPT_CODES];
    layout layout;
    const presto_step_context *context; /* of the open image; NULL: nobody asks to stop */
};

/* ---- life ---- */

bool presto__jpeg_level_is_there(presto__jpeg_level level) {
#if defined(__x86_64__)
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
    bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return level == PRESTO__JPEG_PORTABLE || (level == PRESTO__JPEG_AVX2 && has_avx2) ||
           (level == PRESTO__JPEG_AVX512 && has_avx2 && has_avx512);
#else
    return level == PRESTO__JPEG_PORTABLE ||
           (level == PRESTO__JPEG_NEON && PRESTO__JPEG_HAS_NEON != 0);
#endif
}

presto__jpeg_level presto__jpeg_level_of_cpu(void) {
#if defined(__x86_64__)
    if (!presto__use_avx2() || !presto__jpeg_level_is_there(PRESTO__JPEG_AVX2))
        return PRESTO__JPEG_PORTABLE;
    const char *limit = getenv("PRESTO_PORTABLE");
    bool is_limited = limit != NULL && strcmp(limit, "avx2") == 0;
    /* Processors with AVX-512, but without VBMI2, run slower while they use it. */
    bool is_worth_it =
        presto__jpeg_level_is_there(PRESTO__JPEG_AVX512) && __builtin_cpu_supports("avx512vbmi2");
    return is_worth_it && !is_limited ? PRESTO__JPEG_AVX512 : PRESTO__JPEG_AVX2;
#else
    return PRESTO__JPEG_HAS_NEON != 0 && presto__use_vectors() ? PRESTO__JPEG_NEON
                                                               : PRESTO__JPEG_PORTABLE;
#endif
}

presto__jpeg_fast *presto__jpeg_fast_new(presto__jpeg_level level) {
    presto__jpeg_fast *fast = calloc(1, sizeof *fast);
    if (fast == NULL)
        return NULL;
    fast->level = level;
    fast->unstuff = presto__jpeg_unstuff_of(level);
    fast->decode = presto__jpeg_decode_of(level);
    fast->colour = presto__jpeg_colour_of(level);
    return fast;
}

void presto__jpeg_fast_free(presto__jpeg_fast *fast) {
    if (fast == NULL)
        return;
    for (size_t i = 0; i < KEPT_CODES; i++)
        free(fast->kept[i].codes);
    free(fast);
}

/* ---- header ---- */

static size_t read_u16(const uint8_t *bytes) {
    return (size_t)bytes[0] << 8 | bytes[1];
}

static size_t divide_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

static bool take_frame(layout *l, presto_span in) {
    if (l->part_count != 0 || in.bytes < 6 || in.data[0] != 8)
        return false;
    l->height = read_u16(in.data + 1);
    l->width = read_u16(in.data + 3);
    l->part_count = in.data[5];
    if (l->height == 0 || l->width == 0 || l->height > MAX_DIMENSION || l->width > MAX_DIMENSION ||
        (l->part_count != 1 && l->part_count != 3) || in.bytes != 6 + 3 * l->part_count)
        return false;
    for (size_t i = 0; i < l->part_count; i++) {
        const uint8_t *at = in.data + 6 + 3 * i;
        l->parts[i].id = at[0];
        l->parts[i].across = at[1] >> 4;
        l->parts[i].down = at[1] & 15;
        l->parts[i].quantization = at[2];
        if (l->parts[i].across < 1 || l->parts[i].across > 2 || l->parts[i].down < 1 ||
            l->parts[i].down > 2 || at[2] >= PRESTO__JPEG_TABLES)
            return false;
        for (size_t k = 0; k < i; k++)
            if (l->parts[k].id == at[0])
                return false;
    }
    return true;
}

static bool take_codes(layout *l, presto_span in) {
    while (in.bytes > 16) {
        unsigned kind = in.data[0] >> 4, number = in.data[0] & 15;
        size_t count = 0;
        for (int i = 1; i <= 16; i++)
            count += in.data[i];
        if (kind > 1 || number >= PRESTO__JPEG_TABLES || count > 256 || 17 + count > in.bytes)
            return false;
        l->codes[kind][number] = (presto_span){in.data + 1, 16 + count};
        in = (presto_span){in.data + 17 + count, in.bytes - 17 - count};
    }
    return in.bytes == 0;
}

static bool take_quantization(layout *l, presto_span in) {
    while (in.bytes > 0) {
        bool is_wide = in.data[0] >> 4 == 1;
        unsigned number = in.data[0] & 15;
        size_t bytes = 1 + BLOCK * (is_wide ? 2 : 1);
        if (in.data[0] >> 4 > 1 || number >= PRESTO__JPEG_TABLES || in.bytes < bytes)
            return false;
        for (size_t i = 0; i < BLOCK; i++)
            l->quantization[number][i] =
                (uint16_t)(is_wide ? read_u16(in.data + 1 + 2 * i) : in.data[1 + i]);
        l->has_quantization[number] = true;
        in = (presto_span){in.data + bytes, in.bytes - bytes};
    }
    return true;
}

/* The scan must have all components, in order, and all coefficients. */
static bool take_scan(layout *l, presto_span in) {
    size_t count = l->part_count;
    if (count == 0 || in.bytes != 4 + 2 * count || in.data[0] != count)
        return false;
    const uint8_t *end = in.data + 1 + 2 * count;
    if (end[0] != 0 || end[1] != BLOCK - 1 || end[2] != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = in.data + 1 + 2 * i;
        part *p = &l->parts[i];
        p->dc = at[1] >> 4;
        p->ac = at[1] & 15;
        if (at[0] != p->id || p->dc >= PRESTO__JPEG_TABLES || p->ac >= PRESTO__JPEG_TABLES ||
            l->codes[0][p->dc].data == NULL || l->codes[1][p->ac].data == NULL ||
            !l->has_quantization[p->quantization])
            return false;
    }
    return true;
}

static bool take_segment(layout *l, int marker, presto_span in) {
    switch (marker) {
    case SOF0:
    case SOF1:
        return take_frame(l, in);
    case DHT:
        return take_codes(l, in);
    case DQT:
        return take_quantization(l, in);
    case DRI:
        if (in.bytes != 2)
            return false;
        l->restart_interval = read_u16(in.data);
        return true;
    case APP0:
        if (in.bytes < 14 || memcmp(in.data, "JFIF", 5) != 0)
            return true;
        l->has_jfif = true;
        return in.data[5] == 1; /* the major version */
    case APP14:
        if (in.bytes >= 12 && memcmp(in.data, "Adobe", 5) == 0) {
            l->has_adobe = true;
            l->adobe_transform = in.data[11];
        }
        return true;
    default:
        if (presto__jpeg_is_index(marker, in))
            l->index = (presto_span){in.data + PRESTO__JPEG_INDEX_NAME_BYTES,
                                     in.bytes - PRESTO__JPEG_INDEX_NAME_BYTES};
        return (marker > APP0 && marker <= APP15) || marker == COM;
    }
}

static bool read_segments(layout *l, presto_span in) {
    size_t at = 2;
    if (in.bytes < 2 || in.data[0] != 0xff || in.data[1] != SOI)
        return false;
    for (;;) {
        if (in.bytes - at < 4 || in.data[at] != 0xff)
            return false;
        int marker = in.data[at + 1];
        size_t bytes = read_u16(in.data + at + 2);
        at += 4;
        if (bytes < 2 || bytes - 2 > in.bytes - at)
            return false;
        presto_span segment = {in.data + at, bytes - 2};
        at += bytes - 2;
        if (marker == SOS) {
            l->scan = (presto_span){in.data + at, in.bytes - at};
            return l->scan.bytes <= MOST_SCAN_BYTES && take_scan(l, segment);
        }
        if (!take_segment(l, marker, segment))
            return false;
    }
}

/* By the rules of libjpeg. */
static bool find_colours(layout *l) {
    const part *p = l->parts;
    if (l->part_count == 1) {
        l->colours = COLOURS_GREY;
    } else if (l->has_jfif) {
        l->colours = COLOURS_YCC;
    } else if (l->has_adobe) {
        if (l->adobe_transform > 1)
            return false;
        l->colours = l->adobe_transform == 0 ? COLOURS_RGB : COLOURS_YCC;
    } else {
        bool is_rgb = p[0].id == 'R' && p[1].id == 'G' && p[2].id == 'B';
        l->colours = is_rgb ? COLOURS_RGB : COLOURS_YCC;
    }
    return true;
}

static bool find_mcus(layout *l) {
    part *p = l->parts;
    if (l->part_count == 1)
        p[0].across = p[0].down = 1;
    l->mcu_blocks = p[0].across * p[0].down;
    for (size_t i = 1; i < l->part_count; i++) {
        if (p[i].across != 1 || p[i].down != 1)
            return false;
        l->mcu_blocks++;
    }
    l->mcu_columns = divide_up(l->width, SIDE * p[0].across);
    l->mcu_rows = divide_up(l->height, SIDE * p[0].down);
    size_t mcus = l->mcu_columns * l->mcu_rows;
    l->segments = l->restart_interval == 0 ? 1 : divide_up(mcus, l->restart_interval);
    return l->segments - 1 <= l->scan.bytes / 2; /* each marker has two bytes */
}

/* ---- output ---- */

/* By how much it is reduced: the most that leaves enough of it. */
static size_t reduction(const layout *l, const presto__least *least) {
    if (least->side == 0 && least->pixels == 0)
        return 1;
    for (size_t by = SIDE; by > 1; by /= 2) {
        int64_t height = (int64_t)divide_up(l->height, by);
        int64_t width = (int64_t)divide_up(l->width, by);
        if (height >= least->side && width >= least->side && height * width >= least->pixels)
            return by;
    }
    return 1;
}

static presto__jpeg_method method_of(size_t side, bool is_accurate) {
    switch (side) {
    case 1:
        return PRESTO__JPEG_TO_1;
    case 2:
        return PRESTO__JPEG_TO_2;
    case 4:
        return PRESTO__JPEG_TO_4;
    default:
        return is_accurate ? PRESTO__JPEG_ACCURATE : PRESTO__JPEG_FAST;
    }
}

/*
 * libjpeg reduces colour that comes at half the size by less, where that spares to spread it. It
 * spreads colour of one or two columns, and of images reduced to an eighth, in another way.
 */
static bool find_output(layout *l, const presto__encoded_image *image) {
    part *p = l->parts;
    size_t side = SIDE / l->by;
    l->out_width = divide_up(l->width, l->by);
    l->out_height = divide_up(l->height, l->by);
    l->mcu_width = p[0].across * side;
    l->mcu_height = p[0].down * side;
    p[0].side = side;
    p[0].method = method_of(side, image->is_accurate);
    l->spread = PRESTO__JPEG_EACH;
    if (l->part_count == 1)
        return true;
    size_t colour_side = side;
    if (colour_side < SIDE && p[0].across == 2 && p[0].down == 2)
        colour_side *= 2;
    for (size_t i = 1; i < l->part_count; i++) {
        p[i].side = colour_side;
        p[i].method = method_of(colour_side, image->is_accurate);
    }
    bool is_across = l->mcu_width > colour_side, is_down = l->mcu_height > colour_side;
    l->spread = is_across && is_down ? PRESTO__JPEG_BOTH
                : is_across          ? PRESTO__JPEG_ACROSS
                : is_down            ? PRESTO__JPEG_DOWN
                                     : PRESTO__JPEG_EACH;
    l->colour_width = divide_up(l->width * colour_side, SIDE * p[0].across);
    l->colour_height = divide_up(l->height * colour_side, SIDE * p[0].down);
    if (l->channels == 1)
        return true;
    return l->spread == PRESTO__JPEG_EACH || (side > 1 && (!is_across || l->colour_width > 2));
}

bool presto__jpeg_fast_open(presto__jpeg_fast *fast, const presto__encoded_image *image,
                            presto_tensor_spec *spec_out) {
    layout *l = &fast->layout;
    *l = (layout){0};
    fast->context = image->context;
    if (!read_segments(l, image->bytes) || !find_colours(l) || !find_mcus(l))
        return false;
    if ((uint64_t)l->width * l->height * l->part_count > image->max_bytes)
        return false;
    l->channels = image->channels != 0 ? (size_t)image->channels : l->part_count;
    if (l->channels == 1 && l->colours == COLOURS_RGB)
        return false;
    l->by = reduction(l, &image->least);
    if (!find_output(l, image))
        return false;
    *spec_out = (presto_tensor_spec){
        PRESTO_UINT8, 3, {(int64_t)l->out_height, (int64_t)l->out_width, (int64_t)l->channels}};
    return true;
}

/* ---- tables ---- */

/* NULL if libjpeg refuses it, or if there is no memory. */
static const presto__jpeg_codes *codes_of(presto__jpeg_fast *fast, presto_span bytes, bool is_ac) {
    kept_codes *oldest = fast->kept;
    for (size_t i = 0; i < KEPT_CODES; i++) {
        kept_codes *kept = &fast->kept[i];
        if (kept->count == bytes.bytes && kept->is_ac == is_ac &&
            memcmp(kept->bytes, bytes.data, bytes.bytes) == 0) {
            kept->used_at = fast->image;
            return kept->codes;
        }
        if (kept->used_at < oldest->used_at)
            oldest = kept;
    }
    oldest->count = 0;
    if (oldest->codes == NULL)
        oldest->codes = malloc(sizeof *oldest->codes);
    if (oldest->codes == NULL ||
        !presto__jpeg_codes_make(oldest->codes, bytes.data, bytes.bytes, is_ac))
        return NULL;
    memcpy(oldest->bytes, bytes.data, bytes.bytes);
    oldest->count = bytes.bytes;
    oldest->is_ac = is_ac;
    oldest->used_at = fast->image;
    return oldest->codes;
}

/* ---- the window's part of the image ---- */

/* Rows and columns of MCUs that are decoded, and the memory for it. */
typedef struct work {
    const presto_window *window;
    size_t first_row, last_row; /* of MCUs */
    size_t first_column, end_column;
    size_t parts; /* components that are transformed */
    size_t row_bytes[PRESTO__JPEG_PARTS];
    uint8_t *samples[PRESTO__JPEG_PARTS]; /* the row above, then those of a row of MCUs */
    uint8_t *spread[2];
    uint8_t *sums;
    int16_t *coefficients;
    uint8_t *bytes;     /* of the scan, without stuffing */
    uint32_t *segments; /* where they begin in it, and the end */
    uint32_t *places; /* where they begin in the scan, and one behind the end; if it has an index */
    const uint8_t *end; /* of bytes */
} work;

static size_t minimum(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t align(size_t bytes) {
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Takes `bytes` of memory. With NULL it counts only. */
static uint8_t *carve(uint8_t *memory, size_t *used_io, size_t bytes) {
    uint8_t *taken = memory == NULL ? NULL : memory + *used_io;
    *used_io += align(bytes);
    return taken;
}

/* Colour that is spread needs its neighbours, too. */
static void choose_mcus(work *w, const layout *l) {
    bool is_down = l->spread == PRESTO__JPEG_DOWN || l->spread == PRESTO__JPEG_BOTH;
    bool is_across = l->spread == PRESTO__JPEG_ACROSS || l->spread == PRESTO__JPEG_BOTH;
    size_t top = (size_t)w->window->y, left = (size_t)w->window->x, margin = is_across ? 2 : 0;
    size_t bottom = top + (size_t)w->window->height - 1 + (is_down ? 1 : 0);
    size_t right = left + (size_t)w->window->width - 1 + margin;
    top -= minimum(top, is_down ? 1 : 0);
    left -= minimum(left, margin);
    w->first_row = top / l->mcu_height;
    w->last_row = minimum(bottom, l->out_height - 1) / l->mcu_height;
    w->first_column = left / l->mcu_width;
    w->end_column = minimum(right, l->out_width - 1) / l->mcu_width + 1;
    w->parts = l->channels == 1 ? 1 : l->part_count;
}

static size_t coefficient_bytes(const layout *l, size_t mcus) {
    return (mcus * l->mcu_blocks + SPARE_BLOCKS) * BLOCK * sizeof(int16_t);
}

/* Returns the bytes that are needed. */
static size_t lay_out(work *w, const layout *l, const presto_window *window, uint8_t *memory) {
    *w = (work){.window = window};
    choose_mcus(w, l);
    size_t columns = w->end_column - w->first_column, used = 0;
    w->bytes = carve(memory, &used, l->scan.bytes + PRESTO__JPEG_PADDING);
    w->segments = (uint32_t *)(void *)carve(memory, &used, (l->segments + 1) * sizeof(uint32_t));
    w->places = (uint32_t *)(void *)carve(
        memory, &used, l->index.data == NULL ? 0 : (l->segments + 1) * sizeof(uint32_t));
    w->coefficients = (int16_t *)(void *)carve(memory, &used, coefficient_bytes(l, MCUS_AT_ONCE));
    for (size_t i = 0; i < w->parts; i++) {
        const part *p = &l->parts[i];
        w->row_bytes[i] = align(columns * p->across * p->side + SLACK);
        w->samples[i] = carve(memory, &used, w->row_bytes[i] * (1 + p->down * p->side) + SLACK);
    }
    for (size_t i = 0; i < 2; i++)
        w->spread[i] = carve(memory, &used, columns * l->mcu_width + 2 * SLACK);
    w->sums = carve(memory, &used, 2 * columns * l->mcu_width + 4 * SLACK);
    return used;
}

size_t presto__jpeg_fast_scratch_bytes(const presto__jpeg_fast *fast, const presto_window *window) {
    work unused;
    return lay_out(&unused, &fast->layout, window, NULL);
}

/* ---- entropy-coded bytes ---- */

/* The marker behind segment `i`. */
static int due_behind(const layout *l, size_t i) {
    return i + 1 == l->segments ? EOI : (int)(RST0 | (i & 7));
}

/* Without stuffing, up to the end of the image. Markers must be those that are due, without fill
 * bytes. */
static bool remove_stuffing(const presto__jpeg_fast *fast, work *w) {
    const layout *l = &fast->layout;
    const uint8_t *from = l->scan.data, *const end = from + l->scan.bytes;
    uint8_t *to = w->bytes;
    for (size_t i = 0; i < l->segments; i++) {
        w->segments[i] = (uint32_t)(to - w->bytes);
        to = fast->unstuff(&from, end, to);
        if (from == NULL || from[-1] != due_behind(l, i))
            return false;
    }
    w->segments[l->segments] = (uint32_t)(to - w->bytes);
    memset(to, 0, PRESTO__JPEG_PADDING);
    w->end = to;
    return true;
}

/* Where the segments begin, by the index. False if the markers are not where they should be. */
static bool read_index(const layout *l, work *w) {
    size_t at = 0;
    if (l->index.data == NULL || l->restart_interval == 0 || l->index.bytes != 2 * l->segments)
        return false;
    for (size_t i = 0; i < l->segments; i++) {
        w->places[i] = (uint32_t)at;
        at += read_u16(l->index.data + 2 * i);
        if (at + 2 > l->scan.bytes)
            return false;
        if (l->scan.data[at] != 0xff || l->scan.data[at + 1] != due_behind(l, i))
            return false;
        at += 2;
    }
    w->places[l->segments] = (uint32_t)at;
    return true;
}

/* The segments [first, last] without stuffing. False if one has a marker within. */
static bool remove_stuffing_of(const presto__jpeg_fast *fast, work *w, size_t first, size_t last) {
    uint8_t *to = w->bytes;
    for (size_t i = first; i <= last; i++) {
        const uint8_t *from = fast->layout.scan.data + w->places[i];
        const uint8_t *const end = fast->layout.scan.data + w->places[i + 1];
        w->segments[i] = (uint32_t)(to - w->bytes);
        to = fast->unstuff(&from, end, to);
        if (from != end)
            return false;
    }
    w->segments[last + 1] = (uint32_t)(to - w->bytes);
    w->end = to;
    memset(to, 0, PRESTO__JPEG_PADDING);
    return true;
}

size_t presto__jpeg_index_write(const presto__jpeg_fast *fast, uint8_t *out) {
    const layout *l = &fast->layout;
    size_t bytes = 2 + PRESTO__JPEG_INDEX_NAME_BYTES + 2 * l->segments;
    if (l->restart_interval == 0 || bytes > UINT16_MAX)
        return 0;
    memcpy(
        out,
        (const uint8_t[]){0xff, PRESTO__JPEG_INDEX_MARKER, (uint8_t)(bytes >> 8), (uint8_t)bytes},
        4);
    memcpy(out + 4, "PRESTO\0\1", PRESTO__JPEG_INDEX_NAME_BYTES);
    uint8_t *to = out + 4 + PRESTO__JPEG_INDEX_NAME_BYTES;
    const uint8_t *from = l->scan.data, *const end = from + l->scan.bytes;
    for (size_t i = 0; i < l->segments; i++) {
        const uint8_t *mark = from;
        do {
            mark = memchr(mark, 0xff, (size_t)(end - mark));
            if (mark == NULL || end - mark < 2)
                return 0;
            mark += 2;
        } while (mark[-1] == 0);
        size_t piece = (size_t)(mark - 2 - from);
        if (piece > UINT16_MAX)
            return 0;
        *to++ = (uint8_t)(piece >> 8);
        *to++ = (uint8_t)piece;
        from = mark;
    }
    return 2 + bytes;
}

/* Decoding, and where it is. */
typedef struct reader {
    const presto__jpeg_fast *fast;
    presto__jpeg_bits bits;
    presto__jpeg_place places[PRESTO__JPEG_MCU_BLOCKS];
    uint32_t predictions[PRESTO__JPEG_PARTS];
    size_t segment;    /* the next one */
    size_t mcus_left;  /* of the one before it */
    size_t mcus_after; /* in the segments to come */
} reader;

static bool start_reader(reader *r, presto__jpeg_fast *fast) {
    const layout *l = &fast->layout;
    *r = (reader){.fast = fast, .mcus_after = l->mcu_columns * l->mcu_rows};
    fast->image++;
    size_t count = 0;
    for (size_t i = 0; i < l->part_count; i++) {
        const part *p = &l->parts[i];
        const presto__jpeg_codes *dc = codes_of(fast, l->codes[0][p->dc], false);
        const presto__jpeg_codes *ac = codes_of(fast, l->codes[1][p->ac], true);
        if (dc == NULL || ac == NULL)
            return false;
        for (size_t k = 0; k < p->across * p->down; k++)
            r->places[count++] = (presto__jpeg_place){dc, ac, &r->predictions[i], NULL};
    }
    for (size_t i = 0; i < count; i++)
        r->places[i].following = &r->places[(i + 1) % count];
    return true;
}

/* Bits that are left in the last segment begun: less than a byte, if it is whole. */
static bool ends_here(const reader *r, const work *w) {
    const uint8_t *end = w->bytes + w->segments[r->segment];
    int64_t left = (end - r->bits.next) * 8 + (int64_t)(r->bits.count & 63);
    return left >= 0 && left < 8;
}

static void start_segment(reader *r, const layout *l, const work *w) {
    r->bits = (presto__jpeg_bits){.next = w->bytes + w->segments[r->segment],
                                  .limit = w->end + sizeof(uint64_t)};
    r->segment++;
    r->mcus_left =
        l->restart_interval == 0 ? r->mcus_after : minimum(l->restart_interval, r->mcus_after);
    r->mcus_after -= r->mcus_left;
    memset(r->predictions, 0, sizeof r->predictions);
}

/* The next `mcus`, to `out`; NULL: they are passed over. */
static bool read_mcus(reader *r, const layout *l, const work *w, size_t mcus, int16_t *out) {
    while (mcus > 0) {
        if (r->mcus_left == 0)
            start_segment(r, l, w);
        size_t count = minimum(mcus, r->mcus_left), blocks = count * l->mcu_blocks;
        if (!r->fast->decode(&r->bits, r->places, blocks, out))
            return false;
        out = out == NULL ? NULL : out + blocks * BLOCK;
        mcus -= count;
        r->mcus_left -= count;
        if (r->mcus_left == 0 && !ends_here(r, w))
            return false;
    }
    return true;
}

/* libjpeg, which then takes over, says so. */
static bool is_cancelled(const reader *r) {
    return r->fast->context != NULL && presto_step_is_cancelled(r->fast->context);
}

static bool pass_over_rows(reader *r, const layout *l, const work *w, size_t rows) {
    for (size_t row = 0; row < rows; row++)
        if (is_cancelled(r) || !read_mcus(r, l, w, l->mcu_columns, NULL))
            return false;
    return true;
}

/* Goes to MCU `mcu`, from where `count` of them are to be read. */
static bool seek(reader *r, const layout *l, work *w, size_t mcu, size_t count) {
    size_t first = mcu / l->restart_interval, last = (mcu + count - 1) / l->restart_interval;
    if (!remove_stuffing_of(r->fast, w, first, last))
        return false;
    r->segment = first;
    r->mcus_left = 0;
    r->mcus_after = l->mcu_columns * l->mcu_rows - first * l->restart_interval;
    return read_mcus(r, l, w, mcu - first * l->restart_interval, NULL);
}

/* ---- pixels ---- */

typedef struct painter {
    const presto__jpeg_colour *colour;
    presto__jpeg_transform transforms[PRESTO__JPEG_PARTS];
    presto__jpeg_factors factors[PRESTO__JPEG_PARTS];
} painter;

static void start_painter(painter *p, const presto__jpeg_fast *fast) {
    const layout *l = &fast->layout;
    p->colour = fast->colour;
    for (size_t i = 0; i < PRESTO__JPEG_PARTS; i++) {
        presto__jpeg_method method = l->parts[i].method;
        p->transforms[i] = presto__jpeg_transform_of(method, fast->level);
        presto__jpeg_factors_make(&p->factors[i], l->quantization[l->parts[i].quantization],
                                  method);
    }
}

/* The samples of the MCUs at hand, the first of which is `column` of the window's. */
static bool transform_mcus(const painter *p, const layout *l, const work *w, size_t column,
                           size_t mcus) {
    const int16_t *first = w->coefficients;
    for (size_t i = 0; i < w->parts; i++) {
        const part *of = &l->parts[i];
        for (size_t row = 0; row < of->down; row++, first += of->across * BLOCK) {
            const presto__jpeg_blocks blocks = {first, of->across, l->mcu_blocks * BLOCK,
                                                mcus * of->across};
            uint8_t *out = w->samples[i] + (1 + row * of->side) * w->row_bytes[i] +
                           column * of->across * of->side;
            if (!p->transforms[i](&blocks, &p->factors[i], out, w->row_bytes[i]))
                return false;
        }
    }
    return true;
}

/* Row `y` of the image's samples of component `i`, where `row` is the row of MCUs at hand. */
static const uint8_t *sample_row(const layout *l, const work *w, size_t i, size_t row, size_t y) {
    size_t above = row * l->parts[i].down * l->parts[i].side;
    return w->samples[i] + (y + 1 - above) * w->row_bytes[i];
}

/* The rows of colour that pixels of row `y` lie between. */
static presto__jpeg_rows colour_rows(const layout *l, const work *w, size_t i, size_t row,
                                     size_t y) {
    bool is_down = l->spread == PRESTO__JPEG_DOWN || l->spread == PRESTO__JPEG_BOTH;
    bool is_upper = y % 2 == 0;
    size_t near = is_down ? y / 2 : y, far = near;
    if (is_down && is_upper)
        far -= near > 0 ? 1 : 0;
    else if (is_down)
        far += near + 1 < l->colour_height ? 1 : 0;
    size_t first = w->first_column * l->parts[i].side;
    size_t count =
        minimum(l->colour_width - first, (w->end_column - w->first_column) * l->parts[i].side);
    return (presto__jpeg_rows){sample_row(l, w, i, row, near), sample_row(l, w, i, row, far), count,
                               is_upper};
}

/* A row of colour, as wide as the pixels. */
static const uint8_t *colour_row(const painter *p, const layout *l, const work *w, size_t i,
                                 size_t row, size_t y) {
    if (l->spread == PRESTO__JPEG_EACH)
        return sample_row(l, w, i, row, y);
    const presto__jpeg_rows rows = colour_rows(l, w, i, row, y);
    p->colour->spread(l->spread, &rows, w->spread[i - 1], w->sums);
    return w->spread[i - 1];
}

static void paint_row(const painter *p, const layout *l, const work *w, size_t row, size_t y,
                      uint8_t *out) {
    size_t left = (size_t)w->window->x - w->first_column * l->mcu_width;
    size_t width = (size_t)w->window->width;
    const uint8_t *light = sample_row(l, w, 0, row, y) + left;
    if (l->channels == 1) {
        memcpy(out, light, width);
        return;
    }
    if (l->colours == COLOURS_GREY) {
        for (size_t x = 0; x < width; x++, out += 3)
            out[0] = out[1] = out[2] = light[x];
        return;
    }
    bool is_across = l->spread == PRESTO__JPEG_ACROSS || l->spread == PRESTO__JPEG_BOTH;
    if (l->colours == COLOURS_YCC && is_across && p->colour->spread_ycc != NULL) {
        const presto__jpeg_ycc in = {light - left, colour_rows(l, w, 1, row, y),
                                     colour_rows(l, w, 2, row, y)};
        const presto__jpeg_stretch stretch = {left, width};
        p->colour->spread_ycc(l->spread, &in, &stretch, out, w->sums);
        return;
    }
    const uint8_t *second = colour_row(p, l, w, 1, row, y) + left;
    const uint8_t *third = colour_row(p, l, w, 2, row, y) + left;
    if (l->colours == COLOURS_YCC) {
        p->colour->from_ycc(light, second, third, width, out);
        return;
    }
    for (size_t x = 0; x < width; x++, out += 3) {
        out[0] = light[x];
        out[1] = second[x];
        out[2] = third[x];
    }
}

static void keep_last_rows(const layout *l, const work *w) {
    for (size_t i = 0; i < w->parts; i++) {
        size_t last = l->parts[i].down * l->parts[i].side;
        memcpy(w->samples[i], w->samples[i] + last * w->row_bytes[i], w->row_bytes[i]);
    }
}

/* The samples of a row of MCUs, of the columns that are wanted. */
static bool read_row(reader *r, const painter *p, const layout *l, work *w, size_t row,
                     bool is_indexed) {
    size_t columns = w->end_column - w->first_column;
    bool is_there = is_indexed ? seek(r, l, w, row * l->mcu_columns + w->first_column, columns)
                               : read_mcus(r, l, w, w->first_column, NULL);
    if (!is_there)
        return false;
    for (size_t done = 0, some; done < columns; done += some) {
        some = minimum(MCUS_AT_ONCE, columns - done);
        memset(w->coefficients, 0, coefficient_bytes(l, some));
        if (!read_mcus(r, l, w, some, w->coefficients) || !transform_mcus(p, l, w, done, some))
            return false;
    }
    return is_indexed || read_mcus(r, l, w, l->mcu_columns - w->end_column, NULL);
}

static bool read_window_rows(reader *r, const painter *p, const layout *l, work *w, bool is_indexed,
                             uint8_t *out) {
    bool is_down = l->spread == PRESTO__JPEG_DOWN || l->spread == PRESTO__JPEG_BOTH;
    size_t y = (size_t)w->window->y, end = y + (size_t)w->window->height;
    size_t row_bytes = (size_t)w->window->width * l->channels;
    for (size_t row = w->first_row; row <= w->last_row; row++) {
        if (is_cancelled(r) || !read_row(r, p, l, w, row, is_indexed))
            return false;
        size_t ready = row == w->last_row ? end : (row + 1) * l->mcu_height - (is_down ? 1 : 0);
        for (; y < minimum(ready, end); y++, out += row_bytes)
            paint_row(p, l, w, row, y, out);
        keep_last_rows(l, w);
    }
    return true;
}

bool presto__jpeg_fast_read(presto__jpeg_fast *fast, const presto_window *window, uint8_t *out,
                            uint8_t *scratch) {
    const layout *l = &fast->layout;
    work w;
    reader r;
    painter p;
    lay_out(&w, l, window, scratch);
    if (!start_reader(&r, fast))
        return false;
    start_painter(&p, fast);
    bool is_part = (size_t)window->height < l->out_height || (size_t)window->width < l->out_width;
    if (is_part && read_index(l, &w))
        return read_window_rows(&r, &p, l, &w, true, out);
    return remove_stuffing(fast, &w) && pass_over_rows(&r, l, &w, w.first_row) &&
           read_window_rows(&r, &p, l, &w, false, out) &&
           pass_over_rows(&r, l, &w, l->mcu_rows - 1 - w.last_row);
}
