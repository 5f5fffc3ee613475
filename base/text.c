/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from outside, made safe for people and for JSON. */
#include <presto/text.h>

#include <stdio.h>
#include <stdlib.h>

size_t presto_utf8_bytes(presto_span text) {
    const uint8_t *at = text.data;
    if (text.bytes == 0)
        return 0;
    if (at[0] < 0x80)
        return 1;
    size_t bytes = at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    if (bytes > text.bytes)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    unsigned lead = (unsigned)at[0] << 8 | (bytes > 1 ? at[1] : 0U);
    bool is_overlong = (bytes == 3 && lead < 0xe0a0) || (bytes == 4 && lead < 0xf090);
    bool is_outside = (lead >= 0xeda0 && lead < 0xee00) || (bytes == 4 && lead >= 0xf490);
    return is_overlong || is_outside ? 0 : bytes;
}

/* A character of two or three bytes. */
static unsigned code_point(const uint8_t *at, size_t bytes) {
    return bytes == 2 ? (at[0] & 0x1fU) << 6 | (at[1] & 0x3fU)
                      : (at[0] & 0x0fU) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
}

/* C1 controls, marks of direction, line and paragraph separators. */
static bool is_steering(unsigned code) {
    return (code >= 0x80 && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff;
}

size_t presto_text_next(presto_span *rest, char shown_out[PRESTO_SHOWN_BYTES]) {
    const uint8_t *at = rest->data;
    size_t bytes = presto_utf8_bytes(*rest);
    int shown = 0;
    if (bytes == 0 || (bytes == 1 && (at[0] < 0x20 || at[0] == 0x7f)))
        shown = at[0] == '\n' ? snprintf(shown_out, PRESTO_SHOWN_BYTES, "\\n")
                              : snprintf(shown_out, PRESTO_SHOWN_BYTES, "\\x%02x", at[0]);
    else if ((bytes == 2 || bytes == 3) && is_steering(code_point(at, bytes)))
        shown = snprintf(shown_out, PRESTO_SHOWN_BYTES, "\\u%04x", code_point(at, bytes) & 0xffffU);
    bytes = bytes == 0 ? 1 : bytes;
    *rest = presto_span_of(at + bytes, rest->bytes - bytes);
    if (shown > 0)
        return (size_t)shown;
    memcpy(shown_out, at, bytes);
    shown_out[bytes] = '\0';
    return bytes;
}

void presto_text_show(presto_span text, char *shown_out, size_t room) {
    char shown[PRESTO_SHOWN_BYTES];
    size_t used = 0;
    if (room == 0)
        return;
    while (text.bytes > 0) {
        size_t bytes = presto_text_next(&text, shown);
        if (bytes >= room - used)
            break;
        memcpy(shown_out + used, shown, bytes);
        used += bytes;
    }
    shown_out[used] = '\0';
}

static int hex_value(char digit) {
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Does \xNN start there? */
static bool is_escape(const char *text, size_t bytes) {
    return bytes >= 4 && text[0] == '\\' && text[1] == 'x' && hex_value(text[2]) >= 0 &&
           hex_value(text[3]) >= 0;
}

char *presto_text_encode(presto_span text) {
    if (text.bytes > (SIZE_MAX - 1) / 4)
        return NULL;
    char *encoded = malloc(text.bytes * 4 + 1);
    if (encoded == NULL)
        return NULL;
    char *to = encoded;
    while (text.bytes > 0) {
        size_t bytes = presto_utf8_bytes(text);
        if (bytes == 0 || text.data[0] == '\0' || is_escape((const char *)text.data, text.bytes)) {
            bytes = 1;
            to += snprintf(to, 5, "\\x%02x", text.data[0]);
        } else {
            memcpy(to, text.data, bytes);
            to += bytes;
        }
        text = presto_span_of(text.data + bytes, text.bytes - bytes);
    }
    *to = '\0';
    return encoded;
}

size_t presto_text_decode(char *text) {
    size_t left = strlen(text);
    char *to = text;
    for (const char *at = text; left > 0;) {
        bool escaped = is_escape(at, left);
        size_t bytes = escaped ? 4 : 1;
        *to = *at;
        if (escaped)
            *to = (char)(hex_value(at[2]) << 4 | hex_value(at[3]));
        to++;
        at += bytes;
        left -= bytes;
    }
    *to = '\0';
    return (size_t)(to - text);
}
