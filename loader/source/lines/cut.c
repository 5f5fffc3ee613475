/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts bytes into records: lines, or rows of a CSV as Python's csv module reads them (dialect excel, not
 * strict). A field is quoted if it begins with a quote; a quote in it is doubled; what follows the
 * closing quote belongs to the field; a quote anywhere else is a character like any other. Any of
 * "\n", "\r\n" and "\r" ends a row.
 *
 * Lines are found by memchr, which the C library has for each processor. In a CSV three bytes count: they
 * are looked for 32 at a time where the processor can do that, else 16, else 8.
 */
#include "source_lines_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- quotes and line ends ---- */

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* The high bit of each byte of `word` that is `byte`, and maybe of some behind the first such one. */
static inline uint64_t bytes_that_are(uint64_t word, uint8_t byte) {
    uint64_t zeros = word ^ (ONES * byte);
    return (zeros - ONES) & ~zeros & HIGHS;
}

static inline bool is_mark(uint8_t byte) {
    return byte == '"' || byte == '\n' || byte == '\r';
}

size_t presto__cut_find_mark_plainly(const uint8_t *at, size_t bytes) {
    size_t i = 0;
    for (; bytes - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, at + i, sizeof word);
        uint64_t found =
            bytes_that_are(word, '"') | bytes_that_are(word, '\n') | bytes_that_are(word, '\r');
        if (found != 0)
            return i + (size_t)__builtin_ctzll(found) / 8; /* the machine is little-endian */
    }
    while (i < bytes && !is_mark(at[i]))
        i++;
    return i;
}

#if defined(__x86_64__)
static inline size_t find_mark_by_16(const uint8_t *at, size_t bytes) {
    const __m128i quote = _mm_set1_epi8('"'), feed = _mm_set1_epi8('\n'),
                  back = _mm_set1_epi8('\r');
    size_t i = 0;
    for (; bytes - i >= 16; i += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        __m128i found =
            _mm_or_si128(_mm_cmpeq_epi8(block, quote),
                         _mm_or_si128(_mm_cmpeq_epi8(block, feed), _mm_cmpeq_epi8(block, back)));
        unsigned bits = (unsigned)_mm_movemask_epi8(found);
        if (bits != 0)
            return i + (size_t)__builtin_ctz(bits);
    }
    return i + presto__cut_find_mark_plainly(at + i, bytes - i);
}

__attribute__((target("avx2"))) static size_t find_mark_by_32(const uint8_t *at, size_t bytes) {
    const __m256i quote = _mm256_set1_epi8('"'), feed = _mm256_set1_epi8('\n'),
                  back = _mm256_set1_epi8('\r');
    size_t i = 0;
    for (; bytes - i >= 32; i += 32) {
        __m256i block = _mm256_loadu_si256((const __m256i *)(const void *)(at + i));
        __m256i found = _mm256_or_si256(
            _mm256_cmpeq_epi8(block, quote),
            _mm256_or_si256(_mm256_cmpeq_epi8(block, feed), _mm256_cmpeq_epi8(block, back)));
        unsigned bits = (unsigned)_mm256_movemask_epi8(found);
        if (bits != 0)
            return i + (size_t)__builtin_ctz(bits);
    }
    return i + find_mark_by_16(at + i, bytes - i);
}
#endif

size_t presto__cut_find_mark(const uint8_t *at, size_t bytes) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") ? find_mark_by_32(at, bytes) : find_mark_by_16(at, bytes);
#else
    return presto__cut_find_mark_plainly(at, bytes);
#endif
}

/* ---- lines ---- */

static bool is_blank(const uint8_t *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != ' ' && at[i] != '\t' && at[i] != '\r')
            return false;
    return true;
}

/* The record is [search->start, end), and the next one begins at `next`. */
static presto_status give(presto__cut_search *search, size_t end, size_t next,
                          presto__cut_record *record_out) {
    *record_out = (presto__cut_record){.start = search->start,
                                       .bytes = end - search->start,
                                       .next = next,
                                       .lines_before = search->before,
                                       .lines = search->before + search->within};
    *search = (presto__cut_search){0};
    return PRESTO_OK;
}

static presto_status cut_line(const presto__cut_rules *rules, presto_span bytes, bool is_all,
                              presto__cut_search *search, presto__cut_record *record_out) {
    for (;;) {
        size_t left = bytes.bytes - search->looked;
        const uint8_t *found = left == 0 ? NULL : memchr(bytes.data + search->looked, '\n', left);
        size_t end = found == NULL ? bytes.bytes : (size_t)(found - bytes.data);
        size_t next = found == NULL ? end : end + 1;
        if (found == NULL && !is_all) {
            search->looked = end;
            return PRESTO_DROP;
        }
        if (next == search->start)
            return PRESTO_END;
        search->within += found != NULL;
        if (found != NULL && end > search->start && bytes.data[end - 1] == '\r')
            end--;
        if (rules->form != PRESTO__CUT_JSON || search->has_begun ||
            end - search->start > rules->most_blank ||
            !is_blank(bytes.data + search->start, end - search->start))
            return give(search, end, next, record_out);
        search->before += search->within;
        search->within = 0;
        search->start = search->looked = next;
    }
}

/* ---- CSV ---- */

static uint64_t count_feeds(const uint8_t *at, size_t bytes) {
    uint64_t count = 0;
    const uint8_t *end = at + bytes;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        count++;
        at++;
    }
    return count;
}

/* Pass over empty lines. False: more bytes are needed to tell. */
static bool begin_row(presto_span bytes, bool is_all, presto__cut_search *search) {
    while (search->start < bytes.bytes) {
        uint8_t byte = bytes.data[search->start];
        size_t next = search->start + 1;
        if (byte != '\n' && byte != '\r')
            break;
        if (byte == '\r' && next == bytes.bytes && !is_all)
            return false;
        next += byte == '\r' && next < bytes.bytes && bytes.data[next] == '\n';
        search->before++;
        search->start = search->looked = next;
    }
    search->has_begun = search->start < bytes.bytes;
    return search->has_begun || is_all;
}

/* To the quote that closes the field. False: it is not in these bytes, or more are needed to tell. */
static bool pass_quoted(presto_span bytes, bool is_all, presto__cut_search *search) {
    while (search->looked < bytes.bytes) {
        const uint8_t *from = bytes.data + search->looked;
        const uint8_t *quote = memchr(from, '"', bytes.bytes - search->looked);
        size_t at = quote == NULL ? bytes.bytes : (size_t)(quote - bytes.data);
        search->within += count_feeds(from, at - search->looked);
        search->looked = at;
        if (quote == NULL || (at + 1 == bytes.bytes && !is_all))
            return false;
        bool is_doubled = at + 1 < bytes.bytes && bytes.data[at + 1] == '"';
        search->looked += is_doubled ? 2 : 1;
        if (!is_doubled) {
            search->is_quoted = false;
            return true;
        }
    }
    return false;
}

static presto_status cut_row(uint8_t separator, presto_span bytes, bool is_all,
                             presto__cut_search *search, presto__cut_record *record_out) {
    if (!search->has_begun && !begin_row(bytes, is_all, search))
        return PRESTO_DROP;
    if (!search->has_begun)
        return PRESTO_END;
    for (;;) {
        if (search->is_quoted && !pass_quoted(bytes, is_all, search)) {
            if (!is_all)
                return PRESTO_DROP;
            presto_status status = give(search, bytes.bytes, bytes.bytes, record_out);
            record_out->is_open = true;
            return status;
        }
        size_t at = search->looked + presto__cut_find_mark(bytes.data + search->looked,
                                                           bytes.bytes - search->looked);
        search->looked = at;
        if (at == bytes.bytes)
            return is_all ? give(search, at, at, record_out) : PRESTO_DROP;
        if (bytes.data[at] == '"') {
            search->is_quoted = at == search->start || bytes.data[at - 1] == separator;
            search->looked++;
            continue;
        }
        size_t next = at + 1;
        if (bytes.data[at] == '\r' && next == bytes.bytes && !is_all)
            return PRESTO_DROP;
        next += bytes.data[at] == '\r' && next < bytes.bytes && bytes.data[next] == '\n';
        search->within++;
        return give(search, at, next, record_out);
    }
}

presto_status presto__cut_next(const presto__cut_rules *rules, presto_span bytes, bool is_all,
                               presto__cut_search *search, presto__cut_record *record_out) {
    if (bytes.bytes == 0)
        return is_all && !search->has_begun ? PRESTO_END : PRESTO_DROP;
    if (rules->form == PRESTO__CUT_CSV)
        return cut_row(rules->separator, bytes, is_all, search, record_out);
    return cut_line(rules, bytes, is_all, search, record_out);
}

size_t presto__cut_spare(const presto__cut_search *search) {
    return search->looked > 1 ? search->looked - 1 : 0;
}

void presto__cut_forget(presto__cut_search *search, size_t bytes) {
    search->looked -= bytes;
    search->start = 0;
    search->has_begun = true;
}

size_t presto__cut_passed(presto__cut_search *search, uint64_t *lines_out) {
    size_t passed = search->start;
    *lines_out = search->before;
    search->looked -= passed;
    search->start = 0;
    search->before = 0;
    return passed;
}
