/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that come as text: are they? */
#include "steps_internal.h"

#include <stdio.h>

#include "../base/content_internal.h"

const char *const presto__input_contents[] = {"text", "any", NULL};

static bool is_json_object(presto_span bytes, const presto__content **content_out) {
    size_t at = 0;
    while (at < bytes.bytes && memchr(" \t\r\n", bytes.data[at], 4) != NULL)
        at++;
    if (at == bytes.bytes || bytes.data[at] != '{')
        return false;
    *content_out = presto__content_of(bytes);
    return *content_out != NULL && (*content_out)->group == PRESTO__CONTENT_JSON;
}

presto_status presto__input_check(presto_span bytes, const presto__input_rules *rules,
                                  presto_error *err) {
    char advice[100];
    const presto__content *content = presto__content_no_text(bytes);
    bool is_guessed = content != NULL && strcmp(content->name, "binary") == 0;
    if (is_guessed && rules->has_known_encoding)
        content = NULL;
    if (content == NULL && !(rules->refuses_json && is_json_object(bytes, &content)))
        return PRESTO_OK;
    (void)presto__content_refuse(content, PRESTO__CONTENT_TEXT, rules->needed, err);
    snprintf(advice, sizeof advice, "; to take it as it is: --set %s.content=any", rules->step);
    presto__error_append(err, advice);
    return PRESTO_ERR_CORRUPT;
}

/* ---- UTF-16 ---- */

static size_t put_utf8(uint32_t code, uint8_t *out) {
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = bytes - 1; i > 0; i--, code >>= 6)
        out[i] = (uint8_t)(0x80 | (code & 0x3f));
    out[0] = (uint8_t)((bytes == 2 ? 0xc0 : bytes == 3 ? 0xe0 : 0xf0) | code);
    return bytes;
}

presto_status presto__input_utf8(presto_span bytes, presto_buffer *buffer, presto_span *text_out,
                                 presto_error *err) {
    bool is_little = bytes.bytes >= 2 && bytes.data[0] == 0xff && bytes.data[1] == 0xfe;
    bool is_big = bytes.bytes >= 2 && bytes.data[0] == 0xfe && bytes.data[1] == 0xff;
    *text_out = bytes;
    if (!is_little && !is_big)
        return PRESTO_OK;
    buffer->bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(buffer, bytes.bytes / 2 * 3 + 3, err));
    uint32_t high = 0; /* a surrogate that waits for the other one */
    for (size_t i = 2; i < bytes.bytes; i += 2) {
        uint32_t unit = 0xd800; /* half a unit at the end is no character */
        if (i + 1 < bytes.bytes)
            unit = (uint32_t)bytes.data[is_little ? i + 1 : i] << 8 |
                   bytes.data[is_little ? i : i + 1];
        bool is_low = unit >= 0xdc00 && unit < 0xe000;
        if (high != 0 && is_low) {
            unit = 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00);
        } else {
            if (high != 0)
                buffer->bytes += put_utf8(0xfffd, buffer->data + buffer->bytes);
            if (is_low)
                unit = 0xfffd;
        }
        high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
        if (high == 0)
            buffer->bytes += put_utf8(unit, buffer->data + buffer->bytes);
    }
    if (high != 0)
        buffer->bytes += put_utf8(0xfffd, buffer->data + buffer->bytes);
    *text_out = presto_buffer_span(buffer);
    return PRESTO_OK;
}
