/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 that may be broken, and the table of categories. */
#include "unicode_internal.h"

#include <stdlib.h>

uint8_t *presto__unicode_categories_new(void) {
    uint8_t *categories = malloc(PRESTO__UNICODE_LIMIT);
    if (categories == NULL)
        return NULL;
    for (size_t i = 0; i < presto__unicode_range_count; i++) {
        uint32_t first = presto__unicode_ranges[i] >> 5;
        uint32_t end = i + 1 < presto__unicode_range_count ? presto__unicode_ranges[i + 1] >> 5
                                                           : PRESTO__UNICODE_LIMIT;
        memset(categories + first, (int)(presto__unicode_ranges[i] & 31), end - first);
    }
    return categories;
}

/* Length of the character at `at`, if it is whole and valid; otherwise minus the bytes that one
 * U+FFFD stands for: the longest start of a valid character, or one byte (Unicode, table 3-7). */
static int character_bytes(const uint8_t *at, const uint8_t *end) {
    uint8_t c = at[0], low = 0x80, high = 0xbf;
    int bytes;
    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return -1;
    bytes = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (c == 0xe0)
        low = 0xa0;
    else if (c == 0xed)
        high = 0x9f;
    else if (c == 0xf0)
        low = 0x90;
    else if (c == 0xf4)
        high = 0x8f;
    for (int i = 1; i < bytes; i++) {
        if (at + i == end || at[i] < low || at[i] > high)
            return -i;
        low = 0x80;
        high = 0xbf;
    }
    return bytes;
}

size_t presto__utf8_valid_bytes(presto_span text) {
    const uint8_t *end = text.data + text.bytes;
    size_t at = 0;
    while (at < text.bytes) {
        uint64_t eight;
        if (text.bytes - at >= 8) {
            memcpy(&eight, text.data + at, 8);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += 8;
                continue;
            }
        }
        int bytes = character_bytes(text.data + at, end);
        if (bytes < 0)
            return at;
        at += (size_t)bytes;
    }
    return at;
}

presto_status presto__utf8_repair(presto_span text, presto_buffer *out, presto_error *err) {
    const uint8_t *end = text.data + text.bytes;
    for (size_t at = 0;;) {
        presto_span rest = presto_span_of(text.data + at, text.bytes - at);
        size_t valid = presto__utf8_valid_bytes(rest);
        PRESTO_TRY(presto_buffer_append(out, presto_span_of(rest.data, valid), err));
        if (valid == rest.bytes)
            return PRESTO_OK;
        PRESTO_TRY(presto_buffer_append(out, presto_span_of("\xef\xbf\xbd", 3), err));
        at += valid + (size_t)-character_bytes(rest.data + valid, end);
    }
}
