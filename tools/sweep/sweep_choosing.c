/* SPDX-License-Identifier: Apache-2.0 */
/* What presto-sweep chooses by, where a number has a unit: target and prices. */
#include <stdint.h>
#include <string.h>

#include "sweep_choosing.h"

/* "500" or "500/s": a number with or without its unit, above 0. */
static double parse_with_unit(const char *option, const char *text, const char *unit) {
    char number[64];
    size_t length = strlen(text);
    size_t unit_length = strlen(unit);
    if (length > unit_length && strcmp(text + length - unit_length, unit) == 0)
        length -= unit_length;
    if (length >= sizeof number || strspn(text, "0123456789.") != length)
        cli_usage("%s: '%s' is no number, alone or with %s behind it", option, text, unit);
    memcpy(number, text, length);
    number[length] = '\0';
    double value = cli_fraction(option, number, 0, 1e15);
    if (!(value > 0))
        cli_usage("%s: '%s': must be above 0", option, text);
    return value;
}

/* "500/s+20%": the rate, and by how much it must be exceeded. */
void sweep_read_target(const char *option, const char *text, void *place, void *beside) {
    presto_sweep_limits *limits = place;
    (void)beside;
    char rate[64];
    const char *plus = strrchr(text, '+');
    size_t length = plus != NULL && plus > text ? (size_t)(plus - text) : strlen(text);
    bool has_headroom = text[length] == '+' && text[strlen(text) - 1] == '%';
    if (text[length] == '+' && !has_headroom)
        cli_usage("%s: '%s': what is to be delivered beyond it is a percentage: +10%%", option,
                  text);
    if (length >= sizeof rate)
        cli_usage("%s: '%s' is no rate", option, text);
    memcpy(rate, text, length);
    rate[length] = '\0';
    limits->target_samples_per_s = parse_with_unit(option, rate, "/s");
    if (!has_headroom)
        return;
    char part[64];
    size_t digits = strlen(plus) - 2;
    if (digits >= sizeof part)
        cli_usage("%s: '%s' is no part of a rate", option, plus);
    memcpy(part, plus + 1, digits);
    part[digits] = '\0';
    limits->headroom = cli_fraction(option, part, 0, 1000) / 100;
}

void sweep_read_price_of_hour(const char *option, const char *text, void *place, void *beside) {
    (void)beside;
    *(double *)place = parse_with_unit(option, text, "/h");
}

void sweep_read_price_of_storage(const char *option, const char *text, void *place, void *beside) {
    (void)beside;
    *(double *)place = parse_with_unit(option, text, "/GB-month");
}
