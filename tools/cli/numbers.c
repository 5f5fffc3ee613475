/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them: strict parsing of option arguments. */
#include "cli.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <presto/text.h>

/* Digits, without a sign or blanks, and what follows them. */
typedef struct digits {
    uint64_t value;
    bool fits; /* in 64 bits */
    const char *rest;
} digits;

/* False: there are none. */
static bool parse_digits(const char *text, digits *out) {
    *out = (digits){.fits = true, .rest = text};
    for (; *out->rest >= '0' && *out->rest <= '9'; out->rest++) {
        uint64_t digit = (uint64_t)(*out->rest - '0');
        out->fits = out->fits && out->value <= (UINT64_MAX - digit) / 10;
        out->value = out->fits ? out->value * 10 + digit : out->value;
    }
    return out->rest != text;
}

uint64_t cli_number(const char *option, const char *text, uint64_t least, uint64_t most) {
    digits number;
    bool is_number = parse_digits(text, &number) && *number.rest == '\0';
    if (is_number && number.fits && number.value >= least && number.value <= most)
        return number.value;
    if (is_number && !number.fits)
        cli_usage("%s: '%s' is too large: the most is %ju", option, text, (uintmax_t)most);
    if (most == UINT64_MAX)
        cli_usage("%s: '%s' is not a number from %ju up", option, text, (uintmax_t)least);
    cli_usage("%s: '%s' is not a number from %ju to %ju", option, text, (uintmax_t)least,
              (uintmax_t)most);
}

uint64_t cli_size(const char *option, const char *text, uint64_t least) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    digits number;
    if (!parse_digits(text, &number))
        cli_usage("%s: '%s' is not a size such as 64MiB", option, text);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(number.rest, units[i]) != 0)
            continue;
        unsigned shift = (unsigned)i * 10;
        if (!number.fits || number.value > UINT64_MAX >> shift)
            cli_usage("%s: '%s' is too large: the most is %ju%s", option, text,
                      (uintmax_t)(UINT64_MAX >> shift), units[i]);
        if (number.value << shift < least)
            cli_usage("%s: '%s' is out of range, from %ju byte%s up", option, text,
                      (uintmax_t)least, presto_plural(least));
        return number.value << shift;
    }
    const char *letter = strchr("KkMmGgTt", number.rest[0]);
    if (number.rest[0] != '\0' && letter != NULL)
        cli_usage("%s: '%s' is ambiguous; write %.*s%ciB", option, text, (int)(number.rest - text),
                  text, toupper((unsigned char)number.rest[0]));
    cli_usage("%s: '%s' is not a size such as 64MiB", option, text);
}

size_t cli_choice(const char *option, const char *text, const char *const *choices) {
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; choices[i] != NULL; i++) {
        if (strcmp(text, choices[i]) == 0)
            return i;
        int more = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", choices[i]);
        used = more > 0 && used + (size_t)more < sizeof list ? used + (size_t)more : used;
    }
    const char *near = presto_text_nearest(text, choices);
    cli_usage("%s: '%s' is not one of %s%s%s%s", option, text, list,
              near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
              near != NULL ? "'?" : "");
}

double cli_fraction(const char *option, const char *text, double least, double most) {
    /* strtod would take blanks, hexadecimal, "inf" and "nan" as well. */
    bool plain = text[0] != '\0' && text[strspn(text, "0123456789.")] == '\0';
    char *end = NULL;
    double value = plain ? strtod(text, &end) : 0;
    if (plain && end != text && *end == '\0' && value >= least && value <= most)
        return value;
    if (isinf(most))
        cli_usage("%s: '%s' is not a number from %g up", option, text, least);
    cli_usage("%s: '%s' is not a number from %g to %g", option, text, least, most);
}

double cli_seconds(const char *option, const char *text) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"min", 60}, {"h", 3600}};
    char number[32];
    size_t length = strspn(text, "0123456789.");
    for (size_t i = 0; i < sizeof units / sizeof *units && length > 0; i++) {
        if (length >= sizeof number || strcmp(text + length, units[i].name) != 0)
            continue;
        memcpy(number, text, length);
        number[length] = '\0';
        double seconds = cli_fraction(option, number, 0, 1e9) * units[i].seconds;
        if (!(seconds > 0))
            cli_usage("%s: '%s': must be above 0", option, text);
        return seconds;
    }
    cli_usage("%s: '%s' is not a time such as 90s, 15min or 2h", option, text);
}

const char *cli_path(const char *option, const char *text) {
    if (text[0] == '\0')
        cli_usage("%s: the name is empty", option);
    return text;
}

size_t cli_list(const char *option, const char *text, char ***list_out) {
    size_t count = 1;
    for (const char *at = text; *at != '\0'; at++)
        count += *at == ',';
    size_t bytes = strlen(text) + 1;
    char **list = malloc((count + 1) * sizeof *list + bytes);
    if (list == NULL) {
        cli_message("out of memory");
        exit(CLI_FAILED);
    }
    char *copy = memcpy(&list[count + 1], text, bytes);
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(copy, ",");
        copy[length] = '\0';
        if (length == 0)
            cli_usage("%s: '%s' has an empty entry", option, text);
        list[i] = copy;
        copy += length + 1;
    }
    list[count] = NULL;
    *list_out = list;
    return count;
}
