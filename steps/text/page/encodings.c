/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of encodings, and the prescan of html.spec.whatwg.org ("determining the character encoding"):
 * the steps here are its steps. Where the bytes end within one of them, nothing more is found.
 */
#include "encodings_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PRESCAN_BYTES 1024
#define PARSED_BYTES ((size_t)64 << 10)

/* ---- labels ---- */

static bool is_space(uint8_t byte) {
    return byte == '\t' || byte == '\n' || byte == '\f' || byte == '\r' || byte == ' ';
}

static int compare_label(const void *key, const void *entry) {
    const presto_span *label = key;
    const char *known = ((const presto__encoding_label *)entry)->label;
    int order = strncasecmp((const char *)label->data, known, label->bytes);
    return order != 0 ? order : known[label->bytes] != '\0' ? -1 : 0;
}

const presto__page_encoding *presto__encoding_find(presto_span label) {
    while (label.bytes > 0 && is_space(label.data[0]))
        label = presto_span_of(label.data + 1, label.bytes - 1);
    while (label.bytes > 0 && is_space(label.data[label.bytes - 1]))
        label.bytes--;
    if (label.bytes == 0 || memchr(label.data, 0, label.bytes) != NULL)
        return NULL;
    const presto__encoding_label *found =
        bsearch(&label, presto__encoding_labels, presto__encoding_label_count,
                sizeof presto__encoding_labels[0], compare_label);
    return found != NULL ? found->encoding : NULL;
}

/* ---- the bytes ---- */

/* A page that is read byte by byte; `at` may be its end. */
typedef struct reading {
    presto_span page;
    size_t at;
    size_t raw_end; /* the text of a script, say, ends there */
} reading;

static bool has_word(const reading *r, size_t at, const char *word) {
    size_t bytes = strlen(word);
    return r->page.bytes - at >= bytes &&
           strncasecmp((const char *)r->page.data + at, word, bytes) == 0;
}

/* False: the page ends before. */
static bool skip_spaces(reading *r, const char *more) {
    while (r->at < r->page.bytes && (is_space(r->page.data[r->at]) ||
                                     (more != NULL && r->page.data[r->at] == (uint8_t)more[0])))
        r->at++;
    return r->at < r->page.bytes;
}

static bool skip_to(reading *r, uint8_t byte) {
    const uint8_t *found =
        r->at < r->page.bytes ? memchr(r->page.data + r->at, byte, r->page.bytes - r->at) : NULL;
    r->at = found != NULL ? (size_t)(found - r->page.data) : r->page.bytes;
    return found != NULL;
}

/* ---- attributes ---- */

typedef struct attribute {
    presto_span name, value;
} attribute;

typedef enum got { GOT_ATTRIBUTE, GOT_NONE, GOT_END } got;

static got take_value(reading *r, attribute *out) {
    if (!skip_spaces(r, NULL))
        return GOT_END;
    const uint8_t *data = r->page.data;
    uint8_t first = data[r->at];
    if (first == '"' || first == '\'') {
        size_t start = ++r->at;
        if (!skip_to(r, first))
            return GOT_END;
        out->value = presto_span_of(data + start, r->at - start);
        r->at++;
        return GOT_ATTRIBUTE;
    }
    size_t start = r->at;
    while (r->at < r->page.bytes && !is_space(data[r->at]) && data[r->at] != '>')
        r->at++;
    out->value = presto_span_of(data + start, r->at - start);
    return r->at < r->page.bytes ? GOT_ATTRIBUTE : GOT_END;
}

/* "Get an attribute". */
static got take_attribute(reading *r, attribute *out) {
    const uint8_t *data = r->page.data;
    if (!skip_spaces(r, "/"))
        return GOT_END;
    if (data[r->at] == '>')
        return GOT_NONE;
    size_t start = r->at;
    while (r->at < r->page.bytes && !is_space(data[r->at]) && data[r->at] != '/' &&
           data[r->at] != '>' && (data[r->at] != '=' || r->at == start))
        r->at++;
    *out = (attribute){.name = presto_span_of(data + start, r->at - start),
                       .value = presto_span_of(data + start, 0)};
    if (r->at == r->page.bytes)
        return GOT_END;
    if (data[r->at] == '/' || data[r->at] == '>')
        return GOT_ATTRIBUTE;
    if (!skip_spaces(r, NULL))
        return GOT_END;
    if (data[r->at] != '=')
        return GOT_ATTRIBUTE;
    r->at++;
    return take_value(r, out);
}

static bool is_word(presto_span text, const char *word) {
    return text.bytes == strlen(word) &&
           strncasecmp((const char *)text.data, word, text.bytes) == 0;
}

/* ---- <meta> ---- */

/* "Extracting a character encoding from a meta element": the label in `content`; no data: none. */
static presto_span label_in(presto_span content) {
    reading r = {.page = content};
    for (; r.at < content.bytes; r.at++) {
        if (!has_word(&r, r.at, "charset"))
            continue;
        r.at += 7;
        if (!skip_spaces(&r, NULL))
            break;
        if (content.data[r.at] != '=') {
            r.at--; /* look again from here on */
            continue;
        }
        r.at++;
        if (!skip_spaces(&r, NULL))
            break;
        uint8_t quote = content.data[r.at];
        size_t start = r.at;
        if (quote == '"' || quote == '\'') {
            start = ++r.at;
            return skip_to(&r, quote) ? presto_span_of(content.data + start, r.at - start)
                                      : (presto_span){0};
        }
        while (r.at < content.bytes && !is_space(content.data[r.at]) && content.data[r.at] != ';')
            r.at++;
        return presto_span_of(content.data + start, r.at - start);
    }
    return (presto_span){0};
}

/* By the standard, bytes in which <meta> can be read are none of UTF-16. */
static const presto__page_encoding *readable(const presto__page_encoding *encoding) {
    if (encoding == NULL)
        return NULL;
    if (encoding->kind == PRESTO__ENCODING_UTF16)
        return presto__encoding_find(presto_span_of_text("utf-8"));
    if (encoding->kind == PRESTO__ENCODING_USER_DEFINED)
        return presto__encoding_find(presto_span_of_text("windows-1252"));
    return encoding;
}

/* Behind "<meta". False: the page ends. */
static bool take_meta(reading *r, bool counts, presto__declared *out) {
    bool has_pragma = false, has_charset = false, needs_pragma = false;
    bool seen_equiv = false, seen_content = false, seen_charset = false;
    const presto__page_encoding *encoding = NULL;
    presto_span label = {0};
    attribute found;
    got state;
    while ((state = take_attribute(r, &found)) == GOT_ATTRIBUTE) {
        if (is_word(found.name, "http-equiv") && !seen_equiv) {
            seen_equiv = true;
            has_pragma = is_word(found.value, "content-type");
        } else if (is_word(found.name, "content") && !seen_content) {
            seen_content = true;
            presto_span named = label_in(found.value);
            const presto__page_encoding *known = presto__encoding_find(named);
            if (!has_charset && (known != NULL || named.bytes > 0)) {
                encoding = known;
                label = named;
                needs_pragma = true;
                has_charset = known != NULL;
            }
        } else if (is_word(found.name, "charset") && !seen_charset) {
            seen_charset = has_charset = true;
            encoding = presto__encoding_find(found.value);
            label = found.value;
            needs_pragma = false;
        }
    }
    if (state == GOT_END)
        return false;
    if (!counts || (needs_pragma && !has_pragma))
        return true;
    out->encoding = readable(encoding);
    if (encoding == NULL && label.bytes > 0 && out->unknown.bytes == 0)
        out->unknown = label;
    return true;
}

/* ---- the page ---- */

/* The text of these elements is no markup for who parses the page. */
static void enter_raw_text(reading *r, size_t tag) {
    static const char *const names[] = {"script", "style",    "title",   "textarea",
                                        "xmp",    "noframes", "noembed", "iframe"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes = strlen(names[i]);
        size_t end = tag + 1 + bytes;
        if (!has_word(r, tag + 1, names[i]) || end >= r->page.bytes ||
            !(is_space(r->page.data[end]) || r->page.data[end] == '>' || r->page.data[end] == '/'))
            continue;
        reading rest = {.page = r->page, .at = end};
        while (skip_to(&rest, '<') &&
               !(rest.at + 1 < r->page.bytes && r->page.data[rest.at + 1] == '/' &&
                 has_word(&rest, rest.at + 2, names[i])))
            rest.at++;
        r->raw_end = rest.at;
        return;
    }
}

static bool skip_comment(reading *r) {
    r->at += 4;
    while (skip_to(r, '>')) {
        if (r->page.data[r->at - 1] == '-' && r->page.data[r->at - 2] == '-')
            return true;
        r->at++;
    }
    return false;
}

static bool is_letter(uint8_t byte) {
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

static bool skip_tag(reading *r) {
    attribute unused;
    got state;
    const uint8_t *data = r->page.data;
    while (r->at < r->page.bytes && !is_space(data[r->at]) && data[r->at] != '>')
        r->at++;
    while ((state = take_attribute(r, &unused)) == GOT_ATTRIBUTE)
        continue;
    return state == GOT_NONE;
}

static void find_meta(presto_span page, presto__declared *out) {
    reading r = {.page = page};
    for (; skip_to(&r, '<') && out->encoding == NULL; r.at++) {
        const size_t start = r.at;
        uint8_t next = start + 1 < page.bytes ? page.data[start + 1] : 0;
        uint8_t third = start + 2 < page.bytes ? page.data[start + 2] : 0;
        bool counts = start < PRESCAN_BYTES || start >= r.raw_end;
        uint8_t behind_meta = start + 5 < page.bytes ? page.data[start + 5] : 0;
        if (start >= r.raw_end)
            enter_raw_text(&r, start);
        if (has_word(&r, start, "<!--")) {
            if (!skip_comment(&r))
                return;
        } else if (has_word(&r, start, "<meta") && (is_space(behind_meta) || behind_meta == '/')) {
            r.at += 5;
            if (!take_meta(&r, counts, out))
                return;
        } else if (is_letter(next) || (next == '/' && is_letter(third))) {
            if (!skip_tag(&r))
                return;
        } else if (next == '!' || next == '/' || next == '?') {
            if (!skip_to(&r, '>'))
                return;
        }
    }
}

/* "Get an XML encoding". */
static void find_xml(presto_span page, presto__declared *out) {
    reading r = {.page = page};
    if (page.bytes < 5 || memcmp(page.data, "<?xml", 5) != 0 || !skip_to(&r, '>'))
        return;
    r.page.bytes = r.at;
    for (r.at = 0; r.at < r.page.bytes; r.at++)
        if (r.page.bytes - r.at >= 8 && memcmp(r.page.data + r.at, "encoding", 8) == 0)
            break;
    r.at += 8;
    for (; r.at < r.page.bytes && r.page.data[r.at] <= ' '; r.at++)
        continue;
    if (r.at >= r.page.bytes || r.page.data[r.at++] != '=')
        return;
    for (; r.at < r.page.bytes && r.page.data[r.at] <= ' '; r.at++)
        continue;
    if (r.at >= r.page.bytes || (r.page.data[r.at] != '"' && r.page.data[r.at] != '\''))
        return;
    uint8_t quote = r.page.data[r.at];
    size_t start = ++r.at;
    if (!skip_to(&r, quote))
        return;
    presto_span label = presto_span_of(page.data + start, r.at - start);
    for (size_t i = 0; i < label.bytes; i++)
        if (label.data[i] <= ' ')
            return;
    const presto__page_encoding *encoding = presto__encoding_find(label);
    /* Only of <meta> does the standard turn x-user-defined into another one. */
    out->encoding = encoding != NULL && encoding->kind == PRESTO__ENCODING_UTF16
                        ? readable(encoding)
                        : encoding;
    if (encoding == NULL && out->unknown.bytes == 0)
        out->unknown = label;
}

presto__declared presto__encoding_declared(presto_span page) {
    presto__declared found = {0};
    if (page.bytes > PARSED_BYTES)
        page.bytes = PARSED_BYTES;
    find_meta(page, &found);
    if (found.encoding == NULL)
        find_xml(page, &found);
    return found;
}
