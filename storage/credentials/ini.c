/* SPDX-License-Identifier: Apache-2.0 */
#include "ini_internal.h"

#include <strings.h>

static bool is_blank(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static presto_span trimmed(presto_span text) {
    while (text.bytes > 0 && is_blank(text.data[0])) {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0 && is_blank(text.data[text.bytes - 1]))
        text.bytes--;
    return text;
}

static bool is_key(presto_span text, const char *key) {
    return text.bytes == strlen(key) && strncasecmp((const char *)text.data, key, text.bytes) == 0;
}

/* Is the line's section, which begins with a '[', the one that is wanted? */
static bool is_section(presto_span line, const presto__ini_place *place) {
    while (line.bytes > 0 && line.data[line.bytes - 1] != ']') /* what stands behind is ignored */
        line.bytes--;
    if (line.bytes < 2)
        return false;
    presto_span inside = trimmed(presto_span_of(line.data + 1, line.bytes - 2));
    if (place->kind == NULL)
        return presto_span_is(inside, place->name);
    size_t bytes = strlen(place->kind);
    if (inside.bytes <= bytes || memcmp(inside.data, place->kind, bytes) != 0 ||
        !is_blank(inside.data[bytes]))
        return false;
    presto_span name = trimmed(presto_span_of(inside.data + bytes, inside.bytes - bytes));
    if (name.bytes >= 2 && (name.data[0] == '"' || name.data[0] == '\'') &&
        name.data[name.bytes - 1] == name.data[0])
        name = presto_span_of(name.data + 1, name.bytes - 2);
    return presto_span_is(name, place->name);
}

/* "left = right", or with a ':'. */
static bool split(presto_span line, presto_span *left_out, presto_span *right_out) {
    for (size_t i = 0; i < line.bytes; i++)
        if (line.data[i] == '=' || line.data[i] == ':') {
            *left_out = trimmed(presto_span_of(line.data, i));
            *right_out = trimmed(presto_span_of(line.data + i + 1, line.bytes - i - 1));
            return true;
        }
    return false;
}

bool presto__ini_find(presto_span text, const presto__ini_place *place, presto_span *value_out,
                      bool *has_section_out) {
    /* The option whose value goes on in lines that are indented more than its own. */
    bool has_option = false, is_outer = false;
    size_t option_indent = 0;
    bool is_inside = false, is_found = false;
    *has_section_out = false;
    while (text.bytes > 0) {
        const uint8_t *end = memchr(text.data, '\n', text.bytes);
        size_t bytes = end == NULL ? text.bytes : (size_t)(end - text.data);
        presto_span raw = presto_span_of(text.data, bytes), line = trimmed(raw), left, right;
        size_t indent = line.bytes == 0 ? 0 : (size_t)(line.data - raw.data);
        size_t used = end == NULL ? bytes : bytes + 1;
        text = presto_span_of(text.data + used, text.bytes - used);
        if (line.bytes == 0 || line.data[0] == '#' || line.data[0] == ';')
            continue;
        if (has_option && indent > option_indent) {
            if (is_outer && split(line, &left, &right) && presto_span_is(left, place->inner)) {
                *value_out = right;
                is_found = true;
            }
            continue;
        }
        option_indent = indent;
        has_option = is_outer = false;
        if (line.data[0] == '[') {
            is_inside = is_section(line, place);
            *has_section_out |= is_inside;
            continue;
        }
        if (!split(line, &left, &right))
            continue;
        has_option = true;
        if (!is_inside || !is_key(left, place->key))
            continue;
        is_outer = place->inner != NULL && right.bytes == 0;
        if (place->inner == NULL) {
            *value_out = right;
            is_found = true;
        }
    }
    return is_found;
}
