/* SPDX-License-Identifier: Apache-2.0 */
#include "decimal_internal.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C library keeps this locale ready: to ask for it costs next to nothing. */
static bool enter(locale_t *plain_out, locale_t *before_out) {
    *plain_out = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (*plain_out == (locale_t)0)
        return false;
    *before_out = uselocale(*plain_out);
    return true;
}

static void leave(locale_t plain, locale_t before) {
    uselocale(before);
    freelocale(plain);
}

double presto__decimal_parse(const char *text, char **end_out) {
    locale_t plain, before;
    if (!enter(&plain, &before)) {
        if (end_out != NULL)
            *end_out = (char *)(uintptr_t)text;
        return NAN;
    }
    double value = strtod(text, end_out);
    leave(plain, before);
    return value;
}

float presto__decimal_parse_float(const char *text) {
    locale_t plain, before;
    if (!enter(&plain, &before))
        return NAN;
    float value = strtof(text, NULL);
    leave(plain, before);
    return value;
}

/* Puts the point where the locale has something else, of one byte or more. It needs no memory, so
 * that it cannot fail. */
int presto__decimal_format(char *text, size_t room, int digits, double value) {
    char printed[64];
    snprintf(printed, sizeof printed, "%.*g", digits, value);
    size_t whole = strspn(printed, "-0123456789");
    size_t point = strcspn(printed + whole, "e0123456789");
    return snprintf(text, room, "%.*s%s%s", (int)whole, printed, point > 0 ? "." : "",
                    printed + whole + point);
}
