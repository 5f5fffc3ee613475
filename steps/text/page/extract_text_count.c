/* SPDX-License-Identifier: Apache-2.0 */
/* Characters, words, commas and the like of a block, counted as its pieces of text come in. */
#include "extract_text_internal.h"

enum { CLASS_SPACE, CLASS_WORD, CLASS_CAPITAL, CLASS_DIGIT, CLASS_COMMA, CLASS_STOP, CLASS_OTHER };

static int class_of(uint8_t byte) {
    if (byte <= ' ')
        return CLASS_SPACE;
    if ((byte >= 'a' && byte <= 'z') || byte >= 0x80)
        return CLASS_WORD;
    if (byte >= 'A' && byte <= 'Z')
        return CLASS_CAPITAL;
    if (byte >= '0' && byte <= '9')
        return CLASS_DIGIT;
    if (byte == ',' || byte == ';')
        return CLASS_COMMA;
    return byte == '.' || byte == '!' || byte == '?' ? CLASS_STOP : CLASS_OTHER;
}

static void count_char(presto__page *page, presto__text_block *block, int class) {
    if (class == CLASS_SPACE) {
        page->after_space = true;
        return;
    }
    page->after_break = false;
    block->chars++;
    if (page->link_counts)
        block->link_chars++;
    if (class == CLASS_STOP || class == CLASS_COMMA) {
        presto__add_u16(class == CLASS_STOP ? &block->stops : &block->commas);
        block->ends_sentence = class == CLASS_STOP;
        return;
    }
    if (class == CLASS_OTHER)
        return; /* quotes and brackets behind a full stop */
    block->ends_sentence = false;
    if (class == CLASS_DIGIT)
        presto__add_u16(&block->digits);
    if (class == CLASS_CAPITAL && page->after_space)
        presto__add_u16(&block->capitals);
    if (page->after_space)
        block->words++;
    page->after_space = false;
}

/* A character of three bytes: white space, punctuation or, from U+3000 on, an ideograph. */
static int wide_class(const uint8_t *bytes) {
    uint32_t point = (bytes[0] & 0xfu) << 12 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
    if (point == 0x3002 || point == 0xff01 || point == 0xff1f || point == 0x2026)
        return CLASS_STOP;
    if (point == 0x3001 || point == 0xff0c || point == 0xff1b)
        return CLASS_COMMA;
    if (point == 0x3000 || (point >= 0x2000 && point <= 0x200b) || point == 0xfeff)
        return CLASS_SPACE;
    return point >= 0x2010 && point < 0x2100 ? CLASS_OTHER : CLASS_WORD;
}

/* Count a character of more than one byte; returns its bytes. */
static size_t count_wide(presto__page *page, presto__text_block *block, const uint8_t *at,
                         size_t left) {
    size_t bytes = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (bytes > left)
        return left;
    if (bytes == 2) {
        bool is_space = at[0] == 0xc2 && at[1] == 0xa0;
        bool is_word = at[0] > 0xc2;
        count_char(page, block, is_space ? CLASS_SPACE : is_word ? CLASS_WORD : CLASS_OTHER);
    } else if (bytes == 3) {
        int class = wide_class(at);
        count_char(page, block, class);
        if (at[0] >= 0xe3 && at[0] < 0xee && class != CLASS_SPACE) {
            /* Without spaces between words: about two characters a word. */
            count_char(page, block, CLASS_OTHER);
            if (class == CLASS_WORD && at[0] < 0xea && (block->chars & 2) != 0)
                page->after_space = true;
        }
    } else {
        count_char(page, block, CLASS_OTHER);
    }
    return bytes;
}

static size_t count_reference(presto__page *page, presto__text_block *block, const uint8_t *at,
                              size_t left) {
    static const char *const spaces[] = {"&nbsp;", "&#160;", "&#xa0;", "&#xA0;"};
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (left >= 6 && memcmp(at, spaces[i], 6) == 0) {
            count_char(page, block, CLASS_SPACE);
            return 6;
        }
    size_t bytes = 1;
    while (bytes < left && bytes < 10 && at[bytes] != ';' && class_of(at[bytes]) != CLASS_SPACE)
        bytes++;
    count_char(page, block, CLASS_OTHER);
    return bytes < left && at[bytes] == ';' ? bytes + 1 : 1;
}

void presto__block_count(presto__page *page, presto__text_block *block, presto_span raw) {
    for (size_t i = 0; i < raw.bytes;) {
        uint8_t byte = raw.data[i];
        if (byte > ' ') {
            block->last = byte;
            if (block->first == 0)
                block->first = byte;
        }
        if (byte >= 0xc2)
            i += count_wide(page, block, raw.data + i, raw.bytes - i);
        else if (byte == '&')
            i += count_reference(page, block, raw.data + i, raw.bytes - i);
        else {
            count_char(page, block, class_of(byte));
            i++;
        }
    }
}
