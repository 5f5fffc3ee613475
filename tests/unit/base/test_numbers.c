/* SPDX-License-Identifier: Apache-2.0 */
#include "presto_check.h"

#include <presto/numbers.h>

#include <math.h>

static char text[PRESTO_TEXT_BYTES];

START_TEST(numbers_keep_two_or_three_digits_and_thousands_apart) {
    static const struct {
        double value;
        const char *wanted;
    } cases[] = {{0, "0.00"},      {0.0042, "0.004"},   {0.0994, "0.099"},
                 {0.0996, "0.10"}, {0.5, "0.50"},       {4.996, "5.00"},
                 {9.994, "9.99"},  {9.996, "10.0"},     {17.34, "17.3"},
                 {99.94, "99.9"},  {99.96, "100"},      {999.4, "999"},
                 {999.6, "1,000"}, {123456, "123,456"}, {1e18, "1,000,000,000,000,000,000"},
                 {-1, "-"},        {NAN, "-"},          {INFINITY, "-"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(presto_format_number(cases[i].value, text), cases[i].wanted);
    ck_assert_str_eq(presto_format_count(0, text), "0");
    ck_assert_str_eq(presto_format_count(1234567, text), "1,234,567");
    ck_assert_str_eq(presto_format_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
}
END_TEST

START_TEST(bytes_have_decimal_units_and_sizes_binary_ones) {
    ck_assert_str_eq(presto_format_bytes(0, text), "0 B");
    ck_assert_str_eq(presto_format_bytes(999, text), "999 B");
    ck_assert_str_eq(presto_format_bytes(12345678, text), "12.3 MB");
    ck_assert_str_eq(presto_format_bytes(190e6, text), "190 MB");
    ck_assert_str_eq(presto_format_bytes(999.6e6, text), "1.00 GB");
    ck_assert_str_eq(presto_format_bytes(347.3e9, text), "347 GB");
    ck_assert_str_eq(presto_format_bytes(1.39e12, text), "1.39 TB");
    ck_assert_str_eq(presto_format_size(0, text), "0");
    ck_assert_str_eq(presto_format_size(1000, text), "1000");
    ck_assert_str_eq(presto_format_size(UINT64_C(256) << 20, text), "256MiB");
    ck_assert_str_eq(presto_format_size(UINT64_C(5) << 40, text), "5TiB");
}
END_TEST

START_TEST(seconds_read_as_people_say_them) {
    ck_assert_str_eq(presto_format_seconds(0.0051, text), "5.1 ms");
    ck_assert_str_eq(presto_format_seconds(0.42, text), "0.42 s");
    ck_assert_str_eq(presto_format_seconds(21.34, text), "21.3 s");
    ck_assert_str_eq(presto_format_seconds(204, text), "3 min 24 s");
    ck_assert_str_eq(presto_format_seconds(7560, text), "2 h 06 min");
    ck_assert_str_eq(presto_format_seconds(NAN, text), "-");
}
END_TEST

START_TEST(one_thing_is_singular) {
    ck_assert_str_eq(presto_format_things(0, "sample", text), "0 samples");
    ck_assert_str_eq(presto_format_things(1, "sample", text), "1 sample");
    ck_assert_str_eq(presto_format_things(2000, "shard", text), "2,000 shards");
    ck_assert_str_eq(presto_plural(0), "s");
    ck_assert_str_eq(presto_plural(1), "");
    ck_assert_str_eq(presto_plural(UINT64_MAX), "s");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {numbers_keep_two_or_three_digits_and_thousands_apart,
                                  bytes_have_decimal_units_and_sizes_binary_ones,
                                  seconds_read_as_people_say_them, one_thing_is_singular};
    return presto_check_main("numbers", tests, sizeof tests / sizeof tests[0], 30);
}
