/* SPDX-License-Identifier: Apache-2.0 */
/* What Python's configparser makes of the same texts: tests/live/keys.py compares whole files. */
#include "credentials/ini_internal.h"
#include "presto_check.h"

static void check_value(const char *text, const presto__ini_place *place, const char *wanted) {
    presto_span copy = presto_span_of_text(text), value = {0};
    uint8_t *exact = presto_check_copy(copy); /* nothing behind its end is read */
    bool has_section;
    bool found = presto__ini_find(presto_span_of(exact, copy.bytes), place, &value, &has_section);
    ck_assert_int_eq(found, wanted != NULL);
    if (found)
        ck_assert(presto_span_is(value, wanted));
    free(exact);
}

static void check_plain(const char *text, const char *name, const char *key, const char *wanted) {
    check_value(text, &(presto__ini_place){NULL, name, key, NULL}, wanted);
}

static const char text[] = "region = before any section\n"
                           "# [default]\n"
                           "[default]\r\n"
                           "region=eu-central-1\r\n"
                           "; region = no\n"
                           "key = a = b ; c\n"
                           "colon: d=e\n"
                           "empty =\n"
                           "twice = 1\n"
                           "no value\n"
                           "[profile  other ]\n"
                           "REGION\t=\tus-west-2\n"
                           "s3 =\n"
                           "\n"
                           "  # a comment\n"
                           "  region = nested\n"
                           "  addressing_style = path\n"
                           "long = 1\n"
                           "  region = of 'long'\n"
                           "[profile 'a b']\n"
                           "  region = indented\n"
                           "  key = too\n"
                           "[profiled]\n"
                           "region = x\n"
                           "[default]\n"
                           "twice = 2";

START_TEST(values_are_found_as_the_aws_tools_find_them) {
    check_plain(text, "default", "region", "eu-central-1");
    check_plain(text, "default", "Key", "a = b ; c");
    check_plain(text, "default", "colon", "d=e");
    check_plain(text, "default", "empty", "");
    check_plain(text, "default", "twice", "2");
    check_plain(text, "default", "no value", NULL);
    check_plain(text, "other", "region", NULL); /* [other] is not there */
    check_plain(text, "d", "region", NULL);
    check_plain("", "default", "region", NULL);
    check_plain("[default]\nregion", "default", "region", NULL);
    check_plain("[default\nregion=1", "default", "region", NULL);
    check_plain("[", "", "region", NULL);
    check_plain("[a] # mine\nregion=1\n[b\nregion=2", "a", "region", "1");
}
END_TEST

START_TEST(sections_of_a_kind_and_lines_below_a_key) {
    check_value(text, &(presto__ini_place){"profile", "other", "region", NULL}, "us-west-2");
    check_value(text, &(presto__ini_place){"profile", "other", "s3", NULL}, "");
    check_value(text, &(presto__ini_place){"profile", "other", "s3", "addressing_style"}, "path");
    check_value(text, &(presto__ini_place){"profile", "other", "s3", "region"}, "nested");
    check_value(text, &(presto__ini_place){"profile", "other", "s3", "none"}, NULL);
    check_value(text, &(presto__ini_place){"profile", "other", "long", "region"}, NULL);
    check_value(text, &(presto__ini_place){"profile", "a b", "region", NULL}, "indented");
    check_value(text, &(presto__ini_place){"profile", "a b", "key", NULL}, "too");
    check_value(text, &(presto__ini_place){"profile", "d", "region", NULL}, NULL);
    check_value(text, &(presto__ini_place){"sso-session", "other", "region", NULL}, NULL);
}
END_TEST

START_TEST(every_cut_of_a_file_is_read_within_its_bounds) {
    for (size_t bytes = 0; bytes < sizeof text; bytes++) {
        uint8_t *exact = presto_check_copy(presto_span_of(text, bytes));
        const presto__ini_place place = {"profile", "other", "s3", "region"};
        presto_span value;
        bool has_section;
        (void)presto__ini_find(presto_span_of(exact, bytes), &place, &value, &has_section);
        free(exact);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        values_are_found_as_the_aws_tools_find_them,
        sections_of_a_kind_and_lines_below_a_key,
        every_cut_of_a_file_is_read_within_its_bounds,
    };
    return presto_check_main("ini", tests, sizeof tests / sizeof tests[0], 30);
}
