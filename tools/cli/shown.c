/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes text from outside safe for people and for JSON. All names, paths and messages that a
 * program prints go through here.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <presto/text.h>

#include "cli.h"
#include "terminal.h"

void cli_show(presto_span text) {
    char shown[PRESTO_SHOWN_BYTES];
    while (text.bytes > 0) {
        size_t bytes = presto_text_next(&text, shown);
        fwrite(shown, 1, bytes, stdout);
    }
}

void cli_put(const char *format, ...) {
    char short_text[1024], *text = short_text;
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(short_text, sizeof short_text, format, args);
    va_end(args);
    if (bytes >= (int)sizeof short_text && (text = malloc((size_t)bytes + 1)) != NULL) {
        va_start(args, format);
        vsnprintf(text, (size_t)bytes + 1, format, args);
        va_end(args);
    }
    text = text == NULL ? short_text : text;
    presto_span rest = presto_span_of_text(text);
    /* A newline at the end of the format ends the line; it does not come from the arguments. */
    size_t length = strlen(format);
    bool ends_line = length > 0 && format[length - 1] == '\n' && rest.bytes > 0;
    if (ends_line && rest.data[rest.bytes - 1] == '\n')
        rest.bytes--;
    cli_show(rest);
    if (ends_line)
        putchar('\n');
    if (text != short_text)
        free(text);
}

/* ---- JSON ---- */

json_t *cli_json_text(const char *text) {
    if (text == NULL)
        return json_null();
    char *encoded = presto_text_encode(presto_span_of_text(text));
    json_t *value = encoded == NULL ? NULL : json_string(encoded);
    free(encoded);
    return value;
}

void cli_json_set_named(json_t *object, presto_span name, json_t *value) {
    char *key = presto_text_encode(name);
    if (key == NULL)
        json_decref(value);
    cli_json_set(object, key == NULL ? "" : key, key == NULL ? NULL : value);
    free(key);
}

/*
 * jansson escapes ASCII's control characters except DEL. Other characters that control a terminal
 * occur only in strings, where an escape means the same.
 */
char *cli_json_dump(const json_t *json, size_t flags) {
    char *text = json_dumps(json, flags | JSON_REAL_PRECISION(9));
    size_t plain = 0, length = text == NULL ? 0 : strlen(text);
    while (plain < length && (unsigned char)text[plain] < 0x7f)
        plain++;
    if (plain == length)
        return text;
    /* At least two bytes become at most six; so does DEL, which is one byte. */
    char *safe = malloc(length * 6 + 1), *to = safe, shown[PRESTO_SHOWN_BYTES];
    presto_span rest = presto_span_of(text, length);
    while (safe != NULL && rest.bytes > 0) {
        const uint8_t *at = rest.data;
        if (*at == '\n') { /* of the layout */
            *to++ = '\n';
            rest = presto_span_of(at + 1, rest.bytes - 1);
            continue;
        }
        size_t bytes = presto_text_next(&rest, shown);
        const char *escape = *at == 0x7f ? "\\u007f" : shown;
        bytes = *at == 0x7f ? 6 : bytes;
        memcpy(to, escape, bytes);
        to += bytes;
    }
    if (safe != NULL)
        *to = '\0';
    free(text);
    return safe;
}
