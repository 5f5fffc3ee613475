/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/wait.h>

#include "made_sweep.h"

static void check_csv(const char *field, const char *wanted) {
    presto_buffer text = {0};
    presto_error err;
    ck_assert_ok(presto__text_add_csv(&text, field, &err), &err);
    ck_assert_str_eq((const char *)text.data, wanted);
    presto_buffer_done(&text);
}

START_TEST(csv_fields_are_quoted_only_where_they_must_be) {
    check_csv("", "");
    check_csv("zstd:1", "zstd:1");
    check_csv("a b", "a b");
    check_csv("a,b", "\"a,b\"");
    check_csv("say \"no\"", "\"say \"\"no\"\"\"");
    check_csv("\"", "\"\"\"\"");
    check_csv("two\nlines", "\"two\nlines\"");
    check_csv("carriage\rreturn", "\"carriage\rreturn\"");
    check_csv("=1+2", "'=1+2"); /* no formula of a spreadsheet */
    check_csv("@a,b", "\"'@a,b\"");
    check_csv("-", "'-");
}
END_TEST

static const char *const words[] = {
    "",
    "plain-1.2/x:y",
    "a b",
    "it's",
    "'",
    "''",
    "$HOME `id` $(id)",
    "~",
    "-x",
    "a\\b\"c",
    "*?[a]",
    "line\nup",
    "#no",
    "a;b&c|d>e<f",
    "\xc3\xa4!",
    "\xff raw \x01 b",
    "a'b'c''d",
    "{a,b}",
    "=x",
    "!",
    "tab\there",
};
#define WORD_COUNT (sizeof words / sizeof *words)

START_TEST(shell_words_come_out_of_a_shell_as_they_went_in) {
    presto_buffer text = {0};
    presto_error err;
    ck_assert_ok(presto__text_add(&text, &err, "printf '%%s\\0'"), &err);
    for (size_t i = 0; i < WORD_COUNT; i++) {
        ck_assert_ok(presto__text_add(&text, &err, " "), &err);
        ck_assert_ok(presto__text_add_shell(&text, words[i], &err), &err);
    }
    FILE *shell = popen((const char *)text.data, "r");
    ck_assert_ptr_nonnull(shell);
    for (size_t i = 0; i < WORD_COUNT; i++) {
        char word[64];
        size_t length = 0;
        for (int c; (c = getc(shell)) != 0;) {
            ck_assert_int_ne(c, EOF);
            word[length++] = (char)c;
        }
        word[length] = '\0';
        ck_assert_str_eq(word, words[i]);
    }
    ck_assert_int_eq(getc(shell), EOF);
    ck_assert_int_eq(pclose(shell), 0);
    presto_buffer_done(&text);
}
END_TEST

START_TEST(plain_words_stay_unquoted) {
    presto_buffer text = {0};
    presto_error err;
    ck_assert_ok(presto__text_add_shell(&text, "/data/train-1.2:x", &err), &err);
    ck_assert_str_eq((const char *)text.data, "/data/train-1.2:x");
    presto_buffer_done(&text);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        csv_fields_are_quoted_only_where_they_must_be,
        shell_words_come_out_of_a_shell_as_they_went_in,
        plain_words_stay_unquoted,
    };
    return presto_check_main("profile/text", tests, sizeof tests / sizeof *tests, 60);
}
