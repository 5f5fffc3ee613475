/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entropy-coded data of a baseline JPEG (ITU T.81, F.2.2).
 *
 * The time goes into a chain: the next bits choose an entry, whose length tells where the bits
 * after it begin. So each lookup takes as many coefficients as its window of bits holds:
 *
 *     length   bits to drop, at most MOST_BITS; with END if the last symbol ends the block. 0 of a
 *              table for DC: not in the table
 *     advance  twice the number of coefficients that it covers; NOT_HERE of a table for AC: not in
 *              the table
 *     head     all but the last of them that are not zero, to be stored at byte `offset`
 *     tail     the last one: its `size` bits may reach past the window, but not its sign, which is in
 *              `bias`
 *
 * length and advance are on the chain, and small enough to stay in the first-level cache.
 *
 * Coefficients are stored in zigzag order, because those of a lookup then follow one another. A
 * lookup near the end of a block may have taken symbols of the next one. Then the end is passed,
 * and the symbols are taken one by one.
 */
#include "jpeg_fast_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif PRESTO__JPEG_HAS_NEON
#include <arm_neon.h>
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define LOOKUP PRESTO__JPEG_LOOKUP_BITS
#define BLOCK_BYTES (PRESTO__JPEG_BLOCK * sizeof(int16_t))

enum {
    ENTRIES = 1 << LOOKUP,
    END = 64,
    NOT_HERE = 254,
    MOST_BITS = 22,    /* of a lookup: two of them fit into what a refill leaves */
    MOST_COVERED = 24, /* coefficients of a lookup */
    HEAD = 4,
    MOST_HEAD_SIZE = 7,
    MOST_CODE = 16,
    MOST_DC_SIZE = 11,
    MOST_AC_SIZE = 10
};

/* ---- tables ---- */

/* The value of `size` bits: the lower half of them stands for negative ones (T.81, F.12). */
ALWAYS_INLINE int extend(int bits, int size) {
    return bits >= 1 << size >> 1 ? bits : bits - (1 << size) + 1;
}

static void clear(presto__jpeg_codes *codes) {
    memset(codes->length, 0, sizeof codes->length);
    memset(codes->advance, NOT_HERE, sizeof codes->advance);
    memset(codes->entries, 0, sizeof codes->entries);
    memset(codes->symbol, 0, sizeof codes->symbol);
}

static void make_dc_entries(presto__jpeg_codes *codes, int code, int length, int size) {
    if (length + (size > 0) > LOOKUP || size > MOST_DC_SIZE || length + size > MOST_BITS)
        return;
    int count = 1 << (LOOKUP - length);
    int first = code << (LOOKUP - length);
    for (int i = first; i < first + count; i++) {
        bool is_negative = size > 0 && i - first < count / 2;
        codes->length[i] = (uint8_t)(length + size);
        codes->entries[i].size = (uint8_t)size;
        codes->entries[i].bias = (int16_t)(is_negative ? 1 - (1 << size) : 0);
    }
}

/* A symbol at bit `used` of a window, if all that a lookup needs of it lies inside. */
typedef struct symbol {
    int length, run, size;
    bool is_end;
} symbol;

static bool next_symbol(const presto__jpeg_codes *codes, int window, int used, int covered,
                        symbol *symbol_out) {
    unsigned packed = codes->symbol[(window << used) & (ENTRIES - 1)];
    int length = (int)(packed >> 8), run = (int)(packed >> 4 & 15), size = (int)(packed & 15);
    if (packed == 0 || length > LOOKUP - used)
        return false;
    *symbol_out = (symbol){length, run, size, size == 0 && run != 15};
    if (symbol_out->is_end)
        return true;
    bool has_sign = size == 0 || length + 1 <= LOOKUP - used;
    return has_sign && used + length + size <= MOST_BITS && covered + run + 1 <= MOST_COVERED;
}

static void make_ac_entry(presto__jpeg_codes *codes, int window) {
    symbol now, then;
    int used = 0, covered = 0, first = 0;
    if (!next_symbol(codes, window, used, covered, &now))
        return;
    if (!now.is_end && now.size > 0 && now.run >= HEAD)
        first = now.run;
    presto__jpeg_entry *entry = &codes->entries[window];
    entry->offset = (uint8_t)(2 * first);
    for (;;) {
        if (now.is_end) {
            codes->length[window] = (uint8_t)((used + now.length) | END);
            codes->advance[window] = (uint8_t)(BLOCK_BYTES + 2 * (size_t)covered + 2);
            entry->size = 0;
            entry->bias = 0;
            return;
        }
        int end = used + now.length + now.size;
        bool is_negative = now.size > 0 && (window >> (LOOKUP - used - now.length - 1) & 1) == 0;
        codes->length[window] = (uint8_t)end;
        codes->advance[window] = (uint8_t)(2 * (covered + now.run + 1));
        entry->size = (uint8_t)now.size;
        entry->bias = (int16_t)(is_negative ? 1 - (1 << now.size) : 0);
        int slot = covered + now.run - first;
        covered += now.run + 1;
        if (now.size == 0 || now.size > MOST_HEAD_SIZE || end >= LOOKUP || slot >= HEAD ||
            !next_symbol(codes, window, end, covered, &then) || (!then.is_end && then.size == 0))
            return;
        int value = window >> (LOOKUP - end) & ((1 << now.size) - 1);
        entry->head[slot] = (int8_t)extend(value, now.size);
        used = end;
        now = then;
    }
}

bool presto__jpeg_codes_make(presto__jpeg_codes *codes, const uint8_t *bytes, size_t count,
                             bool is_ac) {
    clear(codes);
    memset(codes->values, 0, sizeof codes->values);
    memcpy(codes->values, bytes + MOST_CODE, count - MOST_CODE);
    int code = 0, place = 0;
    for (int length = 1; length <= MOST_CODE; length++, code *= 2) {
        codes->least[length] = code;
        codes->place[length] = place - code;
        codes->most[length] = -1;
        for (int i = 0; i < bytes[length - 1]; i++, code++, place++) {
            int value = codes->values[place];
            if (code >= (1 << length) - 1 || (!is_ac && value > 15))
                return false;
            codes->most[length] = code;
            if (!is_ac) {
                make_dc_entries(codes, code, length, value);
            } else if (length <= LOOKUP && (value & 15) <= MOST_AC_SIZE) {
                int first = code << (LOOKUP - length), entries = 1 << (LOOKUP - length);
                for (int k = first; k < first + entries; k++)
                    codes->symbol[k] = (uint16_t)(length << 8 | value);
            }
        }
    }
    for (int window = 0; is_ac && window < ENTRIES; window++)
        make_ac_entry(codes, window);
    return true;
}

/* ---- one symbol at a time ---- */

ALWAYS_INLINE uint64_t load_big_endian(const uint8_t *from) {
    uint64_t value;
    memcpy(&value, from, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

/* At least 56 bits then are valid. No branch depends on the data. */
ALWAYS_INLINE void refill(uint64_t *bits, uint64_t *count, const uint8_t **next) {
    *bits |= load_big_endian(*next) >> (*count & 63);
    *next += (~*count >> 3) & 7;
    *count |= 56;
}

ALWAYS_INLINE void drop(presto__jpeg_bits *r, int bits) {
    r->bits <<= bits;
    r->count -= (uint64_t)bits;
}

/* The symbol that the next bits are the code of, if it has `least` bits or more; -1: none. Its length
 * to *length_out. */
static int find_symbol(const presto__jpeg_codes *codes, uint64_t bits, int least, int *length_out) {
    for (int length = least; length <= MOST_CODE; length++) {
        int code = (int)(bits >> (64 - length));
        if (code <= codes->most[length] && code >= codes->least[length]) {
            *length_out = length;
            return codes->values[codes->place[length] + code];
        }
    }
    return -1;
}

static int take_value(presto__jpeg_bits *r, int size) {
    if (size == 0)
        return 0;
    int value = (int)(r->bits >> (64 - size));
    drop(r, size);
    return extend(value, size);
}

static __attribute__((noinline)) bool slow_dc(presto__jpeg_bits *r, const presto__jpeg_codes *codes,
                                              int *value_out) {
    int length;
    int size = find_symbol(codes, r->bits, 1, &length);
    if (size < 0 || size > MOST_DC_SIZE)
        return false;
    drop(r, length);
    *value_out = take_value(r, size);
    refill(&r->bits, &r->count, &r->next);
    return true;
}

/*
 * One symbol, at coefficient *at_io of `block`, which then is the one after it; 64 at the end of the
 * block. `window` chose an entry that does not count: what it stored is cleared.
 */
static __attribute__((noinline)) bool slow_ac(presto__jpeg_bits *r, const presto__jpeg_codes *codes,
                                              size_t window, int16_t *block, int *at_io) {
    int length, at = *at_io;
    refill(&r->bits, &r->count, &r->next);
    unsigned packed = codes->symbol[r->bits >> (64 - LOOKUP)];
    int value = (int)(packed & 255);
    if (packed == 0)
        value = find_symbol(codes, r->bits, LOOKUP + 1, &length);
    else
        length = (int)(packed >> 8);
    if (value < 0)
        return false;
    if (block != NULL) {
        memset(block + at + codes->entries[window].offset / 2, 0, HEAD * sizeof *block);
        memset(block + PRESTO__JPEG_BLOCK, 0, PRESTO__JPEG_BLOCK / 2 * sizeof *block);
        int last = at + codes->advance[window] / 2 - 1;
        if (last < PRESTO__JPEG_BLOCK)
            block[last] = 0;
    }
    drop(r, length);
    int run = value >> 4, size = value & 15;
    if (size == 0 && run != 15) {
        *at_io = PRESTO__JPEG_BLOCK;
        return true;
    }
    at += run;
    if (size > MOST_AC_SIZE || at >= PRESTO__JPEG_BLOCK)
        return false;
    int coefficient = take_value(r, size);
    if (block != NULL)
        block[at] = (int16_t)coefficient;
    *at_io = at + 1;
    refill(&r->bits, &r->count, &r->next);
    return true;
}

/* ---- blocks ---- */

ALWAYS_INLINE void store16(uint8_t *to, int value) {
    int16_t narrow = (int16_t)value;
    memcpy(to, &narrow, sizeof narrow);
}

/* How a head is stored, as coefficients. NULL: nothing is stored. */
typedef void store_head(uint8_t *to, const int8_t *head);

ALWAYS_INLINE void store_head_portable(uint8_t *to, const int8_t *head) {
    for (size_t i = 0; i < HEAD; i++)
        store16(to + 2 * i, head[i]);
}

ALWAYS_INLINE int tail_value(const presto__jpeg_entry *entry, uint64_t bits, uint64_t length) {
    uint64_t value = bits >> (-length & 63);
    return (int)(value & ((1U << entry->size) - 1)) + entry->bias;
}

/*
 * One lookup. Leaves the loop at `end`, or behind it. The index is taken first: 12 bits are always
 * left.
 */
#define LOOK_UP(refill_if_due)                                                                     \
    do {                                                                                           \
        window = bits >> (64 - LOOKUP);                                                            \
        refill_if_due;                                                                             \
        length = ac->length[window];                                                               \
        const presto__jpeg_entry *entry = &ac->entries[window];                                    \
        uint8_t *from = at;                                                                        \
        at += ac->advance[window];                                                                 \
        if (is_kept) {                                                                             \
            store(from + entry->offset, entry->head);                                              \
            store16(at - 2, tail_value(entry, bits, length));                                      \
        }                                                                                          \
        bits <<= length & 63;                                                                      \
        count -= length;                                                                           \
        if (UNLIKELY(at >= end))                                                                   \
            goto ended;                                                                            \
    } while (0)

/* The bits that were there before `length` of them were dropped. */
ALWAYS_INLINE presto__jpeg_bits take_back(uint64_t count, uint64_t length, const uint8_t *next,
                                          const uint8_t *limit) {
    count = (count + length) & 63;
    uint64_t bits = load_big_endian(next - ((count + 7) >> 3)) << (-count & 7);
    return (presto__jpeg_bits){bits, count, next, limit};
}

ALWAYS_INLINE bool decode(presto__jpeg_bits *r, const presto__jpeg_place *place, size_t blocks,
                          int16_t *out, store_head *store) {
    const bool is_kept = store != NULL;
    uint8_t unused[8 * PRESTO__JPEG_BLOCK]; /* not written: addresses to count with */
    uint64_t bits = r->bits, count = r->count, length;
    const uint8_t *next = r->next, *const limit = r->limit;
    uint8_t *block = is_kept ? (uint8_t *)out : unused;
    refill(&bits, &count, &next);
    for (size_t i = 0; i < blocks; i++, place = place->following) {
        const presto__jpeg_codes *ac = place->ac, *dc = place->dc;
        size_t window = bits >> (64 - LOOKUP);
        refill(&bits, &count, &next);
        if (UNLIKELY(next > limit))
            return false;
        length = dc->length[window];
        int value = tail_value(&dc->entries[window], bits, length);
        bits <<= length & 63;
        count -= length;
        if (UNLIKELY(length == 0)) {
            presto__jpeg_bits slow = {bits, count & 63, next, limit};
            if (!slow_dc(&slow, dc, &value))
                return false;
            bits = slow.bits, count = slow.count, next = slow.next;
        }
        *place->prediction += (uint32_t)value;
        if (is_kept)
            store16(block, (int)*place->prediction);
        uint8_t *at = block + 2;
        uint8_t *const end = block + BLOCK_BYTES;
        for (;;) {
            LOOK_UP((void)0);
            LOOK_UP(refill(&bits, &count, &next));
            continue;
        ended:
            if (at == end || ((length & END) != 0 && at <= end + BLOCK_BYTES))
                break;
            presto__jpeg_bits slow = take_back(count, length, next, limit);
            int index = (int)(at - block - ac->advance[window]) / 2;
            if (!slow_ac(&slow, ac, window, is_kept ? (int16_t *)(void *)block : NULL, &index))
                return false;
            bits = slow.bits, count = slow.count, next = slow.next;
            if (index == PRESTO__JPEG_BLOCK)
                break;
            at = block + (size_t)index * 2;
        }
        if (is_kept)
            block += BLOCK_BYTES;
    }
    refill(&bits, &count, &next);
    if (next > limit)
        return false;
    *r = (presto__jpeg_bits){bits, count & 63, next, limit};
    return true;
}

static bool decode_portable(presto__jpeg_bits *bits, const presto__jpeg_place *first, size_t blocks,
                            int16_t *out) {
    return out != NULL ? decode(bits, first, blocks, out, store_head_portable)
                       : decode(bits, first, blocks, out, NULL);
}

static uint8_t *unstuff_portable(const uint8_t **from_io, const uint8_t *end, uint8_t *to) {
    for (const uint8_t *from = *from_io;;) {
        const uint8_t *mark = memchr(from, 0xff, (size_t)(end - from));
        if (mark == NULL || end - mark < 2) {
            *from_io = NULL;
            return to;
        }
        memcpy(to, from, (size_t)(mark - from));
        to += mark - from;
        from = mark + 2;
        if (mark[1] != 0) {
            *from_io = from;
            return to;
        }
        *to++ = 0xff;
    }
}

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,bmi,bmi2")))

TARGET ALWAYS_INLINE void store_head_avx2(uint8_t *to, const int8_t *head) {
    __m128i narrow = _mm_loadu_si64(head); /* the other half of the entry, too */
    _mm_storeu_si64(to, _mm_cvtepi8_epi16(narrow));
}

/* Shifts by a variable number of bits are single instructions of BMI2. */
TARGET static bool decode_avx2(presto__jpeg_bits *bits, const presto__jpeg_place *first,
                               size_t blocks, int16_t *out) {
    return out != NULL ? decode(bits, first, blocks, out, store_head_avx2)
                       : decode(bits, first, blocks, out, NULL);
}

TARGET static uint8_t *unstuff_avx2(const uint8_t **from_io, const uint8_t *end, uint8_t *to) {
    enum { AT_ONCE = sizeof(__m256i) };
    const uint8_t *from = *from_io;
    while (end - from > AT_ONCE) {
        __m256i some = _mm256_loadu_si256((const __m256i *)(const void *)from);
        _mm256_storeu_si256((__m256i *)(void *)to, some);
        unsigned marks =
            (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(some, _mm256_set1_epi8(-1)));
        if (marks == 0) {
            from += AT_ONCE;
            to += AT_ONCE;
            continue;
        }
        unsigned before = _tzcnt_u32(marks);
        from += before + 2;
        to += before + 1;
        if (from[-1] != 0) {
            *from_io = from;
            return to - 1;
        }
    }
    *from_io = from;
    return unstuff_portable(from_io, end, to);
}
#define DECODE_VECTORS decode_avx2
#define UNSTUFF_VECTORS unstuff_avx2

#elif PRESTO__JPEG_HAS_NEON

ALWAYS_INLINE void store_head_neon(uint8_t *to, const int8_t *head) {
    int16x8_t wide = vmovl_s8(vld1_s8(head)); /* the other half of the entry, too */
    vst1_u8(to, vreinterpret_u8_s16(vget_low_s16(wide)));
}

static bool decode_neon(presto__jpeg_bits *bits, const presto__jpeg_place *first, size_t blocks,
                        int16_t *out) {
    return out != NULL ? decode(bits, first, blocks, out, store_head_neon)
                       : decode(bits, first, blocks, out, NULL);
}

static uint8_t *unstuff_neon(const uint8_t **from_io, const uint8_t *end, uint8_t *to) {
    enum { AT_ONCE = sizeof(uint8x16_t), MASK_BITS = 4 };
    const uint8_t *from = *from_io;
    while (end - from > AT_ONCE) {
        uint8x16_t some = vld1q_u8(from);
        vst1q_u8(to, some);
        /* There is no movemask: four bits of each byte stay. */
        uint16x8_t marks = vreinterpretq_u16_u8(vceqq_u8(some, vdupq_n_u8(0xff)));
        uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(marks, MASK_BITS)), 0);
        if (mask == 0) {
            from += AT_ONCE;
            to += AT_ONCE;
            continue;
        }
        unsigned before = (unsigned)__builtin_ctzll(mask) / MASK_BITS;
        from += before + 2;
        to += before + 1;
        if (from[-1] != 0) {
            *from_io = from;
            return to - 1;
        }
    }
    *from_io = from;
    return unstuff_portable(from_io, end, to);
}
#define DECODE_VECTORS decode_neon
#define UNSTUFF_VECTORS unstuff_neon

#else
#define DECODE_VECTORS decode_portable
#define UNSTUFF_VECTORS unstuff_portable
#endif

presto__jpeg_decode presto__jpeg_decode_of(presto__jpeg_level level) {
    return level == PRESTO__JPEG_PORTABLE ? decode_portable : DECODE_VECTORS;
}

presto__jpeg_unstuff presto__jpeg_unstuff_of(presto__jpeg_level level) {
    return level == PRESTO__JPEG_PORTABLE ? unstuff_portable : UNSTUFF_VECTORS;
}
