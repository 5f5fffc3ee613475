/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people and for machines: appended, quoted. */
#include "../profile_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

presto_status presto__text_add(presto_buffer *text, presto_error *err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "text cannot be formatted");
    PRESTO_TRY(presto_buffer_reserve(text, (size_t)length + 1, err));
    va_start(args, format);
    vsnprintf((char *)text->data + text->bytes, (size_t)length + 1, format, args);
    va_end(args);
    text->bytes += (size_t)length;
    return PRESTO_OK;
}

presto_status presto__text_add_csv(presto_buffer *text, const char *field, presto_error *err) {
    /* Spreadsheets run what begins so as a formula, whether it is quoted or not. */
    const char *guard = field[0] != '\0' && strchr("=+-@\t\r", field[0]) != NULL ? "'" : "";
    if (strpbrk(field, "\",\r\n") == NULL)
        return presto__text_add(text, err, "%s%s", guard, field);
    PRESTO_TRY(presto__text_add(text, err, "\"%s", guard));
    for (const char *quote; (quote = strchr(field, '"')) != NULL; field = quote + 1)
        PRESTO_TRY(presto__text_add(text, err, "%.*s\"\"", (int)(quote - field), field));
    return presto__text_add(text, err, "%s\"", field);
}

presto_status presto__text_add_shell(presto_buffer *text, const char *word, presto_error *err) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0')
        return presto__text_add(text, err, "%s", word);
    /* Within single quotes every character is literal, except a quote: it ends them, is escaped,
     * and opens them again. */
    PRESTO_TRY(presto__text_add(text, err, "'"));
    for (const char *quote; (quote = strchr(word, '\'')) != NULL; word = quote + 1)
        PRESTO_TRY(presto__text_add(text, err, "%.*s'\\''", (int)(quote - word), word));
    return presto__text_add(text, err, "%s'", word);
}
