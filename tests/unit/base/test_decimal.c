/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in texts are the same in any locale. */
#include <math.h>

#include "comma_check.h"
#include "decimal_internal.h"

static char text[64];

static const char *formatted(int digits, double value) {
    int bytes = presto__decimal_format(text, sizeof text, digits, value);
    ck_assert_int_eq(bytes, (int)strlen(text));
    return text;
}

static void check_numbers(void) {
    static const struct {
        double value;
        const char *wanted;
    } cases[] = {{0, "0"},
                 {0.5, "0.5"},
                 {-1.25, "-1.25"},
                 {1e6, "1000000"},
                 {1e-7, "1e-07"},
                 {-1.5e300, "-1.5e+300"},
                 {123456789, "123456789"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *end;
        ck_assert_str_eq(formatted(15, cases[i].value), cases[i].wanted);
        ck_assert(presto__decimal_parse(text, &end) == cases[i].value);
        ck_assert_str_eq(end, "");
        ck_assert(presto__decimal_parse(text, NULL) == cases[i].value);
    }
    char *end;
    ck_assert(presto__decimal_parse("1,5", &end) == 1);
    ck_assert_str_eq(end, ",5");
    ck_assert(presto__decimal_parse_float("0.1") == 0.1F);
    ck_assert_str_eq(formatted(17, 0.1), "0.10000000000000001");
    ck_assert_int_eq(presto__decimal_format(text, 4, 15, 0.125), 5);
    ck_assert_str_eq(text, "0.1");
}

START_TEST(numbers_have_a_point_in_any_locale) {
    char shown[8];
    check_numbers();
    if (!comma_begin())
        return;
    check_numbers();
    snprintf(shown, sizeof shown, "%.1f", 0.5);
    ck_assert_str_eq(shown, "0,5"); /* and the locale stays */
    comma_end();
}
END_TEST

/* Halfway between two float32, and the 1e-17 above it that a double does not hold. */
START_TEST(a_float_is_not_rounded_twice) {
    static const char above[] = "1.00000005960464477539062501";
    ck_assert(presto__decimal_parse_float(above) == nextafterf(1, 2));
    ck_assert((float)presto__decimal_parse(above, NULL) == 1);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        numbers_have_a_point_in_any_locale,
        a_float_is_not_rounded_twice,
    };
    return presto_check_main("decimal", tests, sizeof tests / sizeof tests[0], 60);
}
