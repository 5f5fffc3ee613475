/* SPDX-License-Identifier: Apache-2.0 */
/* What presto-sweep chooses by: target, limits, prices. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "sweep_options.h"

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
static void parse_target(presto_sweep_limits *limits, const char *text) {
    char rate[64];
    const char *plus = strrchr(text, '+');
    size_t length = plus != NULL && plus > text ? (size_t)(plus - text) : strlen(text);
    bool has_headroom = text[length] == '+' && text[strlen(text) - 1] == '%';
    if (text[length] == '+' && !has_headroom)
        cli_usage("--target: '%s': what is to be delivered beyond it is a percentage: +10%%", text);
    if (length >= sizeof rate)
        cli_usage("--target: '%s' is no rate", text);
    memcpy(rate, text, length);
    rate[length] = '\0';
    limits->target_samples_per_s = parse_with_unit("--target", rate, "/s");
    if (!has_headroom)
        return;
    char part[64];
    size_t digits = strlen(plus) - 2;
    if (digits >= sizeof part)
        cli_usage("--target: '%s' is no part of a rate", plus);
    memcpy(part, plus + 1, digits);
    part[digits] = '\0';
    limits->headroom = cli_fraction("--target", part, 0, 1000) / 100;
}

bool sweep_parse_choosing(presto_sweep_options *options, int id, const char *text) {
    presto_sweep_prices *prices = &options->prices;
    switch (id) {
    case OPT_TARGET:
        parse_target(&options->limits, text);
        return true;
    case OPT_DECIDE_TIME:
        options->decide_s = cli_fraction("--decide-time", text, 0, 86400);
        return true;
    case OPT_MAX_STORAGE:
        options->limits.most_stored_bytes = cli_size("--max-storage", text, 1);
        return true;
    case OPT_MAX_PREPARE:
        options->limits.most_preparation_s = cli_seconds("--max-prepare", text);
        return true;
    case OPT_PRICE_STORAGE:
        prices->storage_gb_month = parse_with_unit("--price-storage", text, "/GB-month");
        return true;
    case OPT_PRICE_CPU:
        prices->cpu_h = parse_with_unit("--price-cpu", text, "/h");
        return true;
    case OPT_PRICE_ACCELERATOR:
        prices->accelerator_h = parse_with_unit("--price-accelerator", text, "/h");
        return true;
    case OPT_EPOCHS:
        prices->epochs = (double)cli_number("--epochs", text, 1, UINT32_MAX);
        return true;
    case OPT_MONTHS:
        prices->months = cli_fraction("--months", text, 0, 1e6);
        return true;
    default:
        return false;
    }
}
