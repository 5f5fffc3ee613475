/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from outside: what people see of them, and what UTF-8 formats keep of them. */
#include "../../../base/rng_internal.h"
#include "presto_check.h"

#include <stdio.h>

#include <presto/rng.h>
#include <presto/text.h>

static char *show(const char *text, char *shown, size_t room) {
    presto_text_show(presto_span_of_text(text), shown, room);
    return shown;
}

START_TEST(printable_text_of_any_language_is_shown_as_it_is) {
    static const char *const texts[] = {
        "",
        "cat, \"dog\" \\ /a b~",
        "K\xc3\xa4tzchen \xe7\x8c\xab \xd0\xba\xd0\xbe\xd1\x82 \xf0\x9f\x90\x88",
        "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", /* joined by U+200D */
        "\xf4\x8f\xbf\xbf\xef\xbf\xbd\xed\x9f\xbf\xee\x80\x80\xe0\xa0\x80\xc2\xa0",
    };
    char shown[64];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_str_eq(show(texts[i], shown, sizeof shown), texts[i]);
}
END_TEST

START_TEST(what_steers_a_terminal_is_shown_as_an_escape) {
    static const char *const cases[][2] = {
        {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
        {"a\nverify: all OK\r\t", "a\\nverify: all OK\\x0d\\x09"},
        {"\x01\x1f\x7f", "\\x01\\x1f\\x7f"},
        {"\xc2\x9b"
         "31m\xc2\x80\xc2\x9f",
         "\\u009b31m\\u0080\\u009f"},
        {"\x9b"
         "31m",
         "\\x9b31m"},
        /* NOLINTNEXTLINE(misc-misleading-bidirectional): what must not steer a terminal */
        {"\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8f\xd8\x9c\xef\xbb\xbf",
         "\\u202e\\u2028\\u2066\\u2069\\u200f\\u061c\\ufeff"},
        /* No UTF-8: cut, overlong, surrogates, above the last character. */
        {"\xc3", "\\xc3"},
        {"\xc3\x1b", "\\xc3\\x1b"},
        {"\xe2\x82", "\\xe2\\x82"},
        {"\xc0\x9b\xc1\xbf", "\\xc0\\x9b\\xc1\\xbf"},
        {"\xe0\x82\x9b", "\\xe0\\x82\\x9b"},
        {"\xf0\x80\x80\x9b", "\\xf0\\x80\\x80\\x9b"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xf4\x90\x80\x80\xf8\xff", "\\xf4\\x90\\x80\\x80\\xf8\\xff"},
    };
    char shown[128], again[128];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_str_eq(show(cases[i][0], shown, sizeof shown), cases[i][1]);
        ck_assert_str_eq(show(shown, again, sizeof again), shown);
    }
}
END_TEST

START_TEST(what_does_not_fit_is_cut_between_characters) {
    char shown[16];
    ck_assert_str_eq(show("ab\xe7\x8c\xab", shown, 5), "ab");
    ck_assert_str_eq(show("ab\xe7\x8c\xab", shown, 6), "ab\xe7\x8c\xab");
    ck_assert_str_eq(show("ab\x1b", shown, 6), "ab");
    ck_assert_str_eq(show("ab", shown, 1), "");
    shown[0] = 'x';
    presto_text_show(presto_span_of_text("ab"), shown, 0);
    ck_assert_int_eq(shown[0], 'x');
}
END_TEST

START_TEST(messages_of_errors_hold_nothing_else) {
    presto_error err;
    char text[2000], name[600];
    presto_error_set(&err, PRESTO_ERR_CORRUPT, 7, "no '%s'", "\x1b[31m\n\xff");
    ck_assert_str_eq(err.message, "no '\\x1b[31m\\n\\xff'");
    presto_error_set_errno(&err, 2, "a\x1b", "cannot open '%s'", "\x9b");
    ck_assert_str_eq(err.message, "cannot open '\\x9b': No such file or directory");
    presto_error_format(&err, text, sizeof text);
    ck_assert_str_eq(text, "a\\x1b: cannot open '\\x9b': No such file or directory");
    ck_assert_str_eq(err.file, "a\x1b");
    /* Cut within a character, at each of its bytes. */
    for (size_t lead = 505; lead < 515; lead++) {
        memset(name, 'a', lead);
        snprintf(name + lead, sizeof name - lead, "%s", "\xf0\x9f\x90\x88 end");
        presto_error_set(&err, PRESTO_ERR_CORRUPT, 7, "%s", name);
        ck_assert_ptr_null(strchr(err.message, '\\'));
        ck_assert_uint_ge(strlen(err.message), 504);
    }
}
END_TEST

START_TEST(names_of_any_bytes_come_back_from_utf8) {
    static const char *const cases[][2] = {
        {"K\xc3\xa4tzchen\n\x1b", "K\xc3\xa4tzchen\n\x1b"},
        {"caf\xe9", "caf\\xe9"},
        {"\\xff", "\\x5cxff"},
        {"\\xFF \\x f \\", "\\xFF \\x f \\"},
        {"\\\xff", "\\\\xff"},
        {"\\x5cxff", "\\x5cx5cxff"},
        {"\\xf\xff", "\\xf\\xff"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = presto_text_encode(presto_span_of_text(cases[i][0]));
        ck_assert_str_eq(text, cases[i][1]);
        ck_assert_uint_eq(presto_text_decode(text), strlen(cases[i][0]));
        ck_assert_str_eq(text, cases[i][0]);
        free(text);
    }
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    for (int round = 0; round < 20000; round++) {
        /* Of letters that make escapes, and of all others. */
        static const char odd[] = "\\x5cf0\0\xff\xc3\xa4";
        uint8_t name[12];
        size_t bytes = presto_rng_below(&rng, sizeof name + 1);
        for (size_t i = 0; i < bytes; i++)
            name[i] = round % 4 == 0 ? (uint8_t)presto_rng_next(&rng)
                                     : (uint8_t)odd[presto_rng_below(&rng, sizeof odd - 1)];
        char *text = presto_text_encode(presto_span_of(name, bytes));
        presto_span rest = presto_span_of_text(text);
        for (size_t step; rest.bytes > 0;
             rest = presto_span_of(rest.data + step, rest.bytes - step))
            ck_assert_uint_gt(step = presto_utf8_bytes(rest), 0);
        ck_assert_uint_eq(presto_text_decode(text), bytes);
        ck_assert_mem_eq(text, name, bytes);
        free(text);
    }
}
END_TEST

START_TEST(of_words_as_near_the_one_that_is_begun_is_meant) {
    static const char *const words[] = {"jpeg", "png16", "png", NULL};
    ck_assert_str_eq(presto_text_nearest("jpg", words), "jpeg");
    ck_assert_str_eq(presto_text_nearest("PNG1", words), "png16");
    ck_assert_str_eq(presto_text_nearest("pmg", words), "png");
    ck_assert_ptr_null(presto_text_nearest("tiff", words));
    static const char *const formats[] = {"jpeg", "png16", NULL};
    ck_assert_str_eq(presto_text_nearest("png", formats), "png16");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        printable_text_of_any_language_is_shown_as_it_is,
        what_steers_a_terminal_is_shown_as_an_escape,
        what_does_not_fit_is_cut_between_characters,
        messages_of_errors_hold_nothing_else,
        names_of_any_bytes_come_back_from_utf8,
        of_words_as_near_the_one_that_is_begun_is_meant,
    };
    return presto_check_main("text", tests, sizeof tests / sizeof tests[0], 60);
}
