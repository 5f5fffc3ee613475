/* SPDX-License-Identifier: Apache-2.0 */
#include "calendar_internal.h"
#include "presto_check.h"

static void check(const char *text, int64_t wanted) {
    int64_t seconds = 0;
    ck_assert_msg(presto__calendar_parse(presto_span_of_text(text), &seconds), "%s", text);
    ck_assert_int_eq(seconds, wanted);
}

START_TEST(times_are_read_in_all_forms_that_servers_write) {
    check("1970-01-01T00:00:00Z", 0);
    check("2026-11-27T08:09:10Z", 1795766950);
    check("2026-11-27T08:09:10.123456Z", 1795766950);
    check("2026-11-27T09:09:10+01:00", 1795766950);
    check("2026-11-27T02:39:10-0530", 1795766950);
    check("2026-11-27T08:09:10UTC", 1795766950);
    check("2026-11-27 08:09:10", 1795766950);
    check("2024-02-29T23:59:60Z", 1709251200);
    check("2026-11-27T08:09:10.123456789012345678901234567", 1795766950); /* as long as may be */
}
END_TEST

START_TEST(what_is_no_time_is_refused) {
    static const char *const texts[] = {"",
                                        "2026-11-27",
                                        "2026-13-27T08:09:10Z",
                                        "2026-11-27T24:09:10Z",
                                        "2026-11-27T08:09:10+1",
                                        "2026-11-27T08:09:10+25:00",
                                        "2026-11-27T08:09:10Zx",
                                        "2026-1a-27T08:09:10Z",
                                        "20261127T080910Z0000"};
    int64_t seconds;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(!presto__calendar_parse(presto_span_of_text(texts[i]), &seconds), "%s",
                      texts[i]);
}
END_TEST

START_TEST(a_time_as_text_is_the_time) {
    for (int64_t seconds = 0; seconds < INT64_C(4000000000); seconds += INT64_C(86413) * 97) {
        char text[PRESTO__CALENDAR_TEXT_BYTES];
        presto__calendar_text(seconds, text);
        check(text, seconds);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        times_are_read_in_all_forms_that_servers_write,
        what_is_no_time_is_refused,
        a_time_as_text_is_the_time,
    };
    return presto_check_main("calendar", tests, sizeof tests / sizeof tests[0], 30);
}
