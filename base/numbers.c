/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them: rounded, with thousands apart and units. */
#include <presto/numbers.h>

#include <math.h>
#include <stdio.h>

char *presto_format_count(uint64_t count, char text[PRESTO_TEXT_BYTES]) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%ju", (uintmax_t)count);
    char *out = text;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

char *presto_format_number(double value, char text[PRESTO_TEXT_BYTES]) {
    /* Compared after rounding: 99.96 is printed as 100, not 100.0. */
    if (!isfinite(value) || value < 0 || value > 1e18)
        snprintf(text, PRESTO_TEXT_BYTES, "-");
    else if (value >= 99.95)
        presto_format_count((uint64_t)llround(value), text);
    else if (value >= 9.995)
        snprintf(text, PRESTO_TEXT_BYTES, "%.1f", value);
    else
        snprintf(text, PRESTO_TEXT_BYTES, value >= 0.0995 || value == 0 ? "%.2f" : "%.3f", value);
    return text;
}

char *presto_format_bytes(double bytes, char text[PRESTO_TEXT_BYTES]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1000;
        unit++;
    }
    char number[PRESTO_TEXT_BYTES];
    if (unit == 0)
        snprintf(number, sizeof number, "%.0f", bytes);
    else
        presto_format_number(bytes, number);
    snprintf(text, PRESTO_TEXT_BYTES, "%.32s %s", number, units[unit]);
    return text;
}

char *presto_format_size(uint64_t bytes, char text[PRESTO_TEXT_BYTES]) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, PRESTO_TEXT_BYTES, "%ju%s", (uintmax_t)bytes, units[unit]);
    return text;
}

char *presto_format_things(uint64_t count, const char *thing, char text[PRESTO_TEXT_BYTES]) {
    char number[PRESTO_TEXT_BYTES];
    presto_format_count(count, number);
    snprintf(text, PRESTO_TEXT_BYTES, "%.27s %.18s%s", number, thing, presto_plural(count));
    return text;
}

char *presto_format_seconds(double seconds, char text[PRESTO_TEXT_BYTES]) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e12)
        snprintf(text, PRESTO_TEXT_BYTES, "-");
    else if (seconds < 0.0995)
        snprintf(text, PRESTO_TEXT_BYTES, "%.1f ms", seconds * 1000);
    else if (seconds < 9.995)
        snprintf(text, PRESTO_TEXT_BYTES, "%.2f s", seconds);
    else if (seconds < 119.5)
        snprintf(text, PRESTO_TEXT_BYTES, "%.1f s", seconds);
    else if (seconds < 7170)
        snprintf(text, PRESTO_TEXT_BYTES, "%d min %02d s", (int)(lround(seconds) / 60),
                 (int)(lround(seconds) % 60));
    else
        snprintf(text, PRESTO_TEXT_BYTES, "%.0f h %02d min", floor(seconds / 3600),
                 (int)(fmod(seconds, 3600) / 60));
    return text;
}
