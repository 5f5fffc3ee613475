/* SPDX-License-Identifier: Apache-2.0 */
#include "calendar_internal.h"

#include <stdio.h>
#include <time.h>

int64_t presto__calendar_days(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = year / 400, in_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + of_year - 719468;
}

/* As many digits as `count`; -1: there are others. */
static int number(const char *text, int count) {
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + text[i] - '0';
    }
    return value;
}

/* What stands behind the seconds, as seconds that the time is ahead of UTC. */
static bool zone(const char *text, int *ahead_s_out) {
    *ahead_s_out = 0;
    if (text[0] == '\0' || strcmp(text, "Z") == 0 || strcmp(text, "z") == 0 ||
        strcmp(text, "UTC") == 0)
        return true;
    if ((text[0] != '+' && text[0] != '-') || strlen(text) < 5 ||
        strlen(text) != (text[3] == ':' ? 6 : 5))
        return false;
    int hours = number(text + 1, 2), minutes = number(text + (text[3] == ':' ? 4 : 3), 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
        return false;
    *ahead_s_out = (text[0] == '+' ? 60 : -60) * (60 * hours + minutes);
    return true;
}

bool presto__calendar_parse(presto_span span, int64_t *seconds_out) {
    char text[48] = "";
    int ahead_s;
    if (span.bytes >= sizeof text || span.bytes < 19)
        return false;
    memcpy(text, span.data, span.bytes);
    int year = number(text, 4), month = number(text + 5, 2), day = number(text + 8, 2);
    int hour = number(text + 11, 2), minute = number(text + 14, 2), second = number(text + 17, 2);
    if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != ' ') ||
        text[13] != ':' || text[16] != ':' || year < 1 || month < 1 || month > 12 || day < 1 ||
        day > 31 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    const char *rest = text + 19;
    if (rest[0] == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (!zone(rest, &ahead_s))
        return false;
    int64_t days = presto__calendar_days(year, month, day);
    *seconds_out = ((days * 24 + hour) * 60 + minute) * 60 + second - ahead_s;
    return true;
}

void presto__calendar_text(int64_t seconds, char text_out[PRESTO__CALENDAR_TEXT_BYTES]) {
    struct tm parts;
    time_t time = (time_t)seconds;
    if (gmtime_r(&time, &parts) == NULL ||
        strftime(text_out, PRESTO__CALENDAR_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        text_out[0] = '\0';
}
