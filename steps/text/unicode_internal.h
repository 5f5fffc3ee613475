/* SPDX-License-Identifier: Apache-2.0 */
/* Characters: UTF-8, and general categories of Unicode 16. */
#ifndef PRESTO_STEPS_UNICODE_INTERNAL_H
#define PRESTO_STEPS_UNICODE_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

#define PRESTO__UNICODE_LIMIT 0x110000
/* Names of the categories, in the order of their numbers; the last one is what is unassigned. */
#define PRESTO__UNICODE_CATEGORY_NAMES "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCoCn"
#define PRESTO__UNICODE_CATEGORY_COUNT 29

/* code << 5 | category of each range's first code point; sorted. */
extern const uint32_t presto__unicode_ranges[];
extern const size_t presto__unicode_range_count;

/** The category of each code point, PRESTO__UNICODE_LIMIT bytes; free with free(). NULL: no
 * memory. */
uint8_t *presto__unicode_categories_new(void);

/** How many bytes from `at` on are valid UTF-8. */
size_t presto__utf8_valid_bytes(presto_span text);

/**
 * Append `text` to `out`, with U+FFFD for each maximal part that is not UTF-8, as Python's
 * bytes.decode("utf-8", "replace") does. PRESTO_ERR_MEMORY.
 */
presto_status presto__utf8_repair(presto_span text, presto_buffer *out, presto_error *err);

/** The code point at `at`, which starts a character of valid UTF-8; *next_out is behind it. */
static inline uint32_t presto__utf8_next(const uint8_t *at, const uint8_t **next_out) {
    uint32_t c = at[0];
    if (c < 0x80) {
        *next_out = at + 1;
        return c;
    }
    if (c < 0xe0) {
        *next_out = at + 2;
        return (c & 0x1f) << 6 | (at[1] & 0x3fU);
    }
    if (c < 0xf0) {
        *next_out = at + 3;
        return (c & 0x0f) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
    }
    *next_out = at + 4;
    return (c & 0x07) << 18 | (at[1] & 0x3fU) << 12 | (at[2] & 0x3fU) << 6 | (at[3] & 0x3fU);
}

/** The start of the character before `at`. */
static inline const uint8_t *presto__utf8_previous(const uint8_t *at) {
    do
        at--;
    while ((*at & 0xc0) == 0x80);
    return at;
}

/** White_Space of Unicode. */
static inline bool presto__unicode_is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

/* ---- unicode_forms.c: normal forms, for tokenizers that ask for them ---- */

typedef enum presto__form {
    PRESTO__FORM_NFC,
    PRESTO__FORM_NFD,
    PRESTO__FORM_NFKC,
    PRESTO__FORM_NFKD
} presto__form;

typedef struct presto__point_range {
    uint32_t first, last;
} presto__point_range;

/** Characters that are newer than the normal forms of the library tokenizers, which leaves them as
 * they are; in order. */
extern const presto__point_range presto__newer_points[];
extern const size_t presto__newer_point_count;

/** Has this build the library? */
bool presto__unicode_forms_built(void);

/**
 * Append the normal form, as the library tokenizers has it (Unicode 9), of `text`, which is
 * UTF-8, to `out`. `points` is memory for the call, kept for the next one: up to 4 bytes a character of the longest run without ASCII, decomposed.
 * Returns: PRESTO_OK; PRESTO_ERR_LIMIT: hundreds of combining marks in a row; PRESTO_ERR_MEMORY;
 *          PRESTO_ERR_UNSUPPORTED: not built.
 */
presto_status presto__unicode_normalize(presto__form form, presto_span text, presto_buffer *points,
                                        presto_buffer *out, presto_error *err);

#endif
