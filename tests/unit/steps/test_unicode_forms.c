/* SPDX-License-Identifier: Apache-2.0 */
/* tests/live/tokenizers.py compares a megabyte of text with the library tokenizers. */
#include <string.h>

#include "presto_check.h"
#include "text/unicode_internal.h"

static void check(presto__form form, const char *text, const char *wanted) {
    presto_buffer points = {0}, out = {0};
    presto_error err;
    if (!presto__unicode_forms_built())
        return;
    uint8_t *exact = presto_check_copy(presto_span_of_text(text));
    ck_assert_ok(
        presto__unicode_normalize(form, presto_span_of(exact, strlen(text)), &points, &out, &err),
        &err);
    ck_assert_msg(presto_span_equal(presto_buffer_span(&out), presto_span_of_text(wanted)),
                  "'%s' in form %d is not '%s' but '%.*s'", text, (int)form, wanted, (int)out.bytes,
                  (const char *)out.data);
    free(exact);
    presto_buffer_done(&points);
    presto_buffer_done(&out);
}

START_TEST(texts_have_the_forms_of_the_standard) {
    for (int form = 0; form < 4; form++) {
        check((presto__form)form, "", "");
        check((presto__form)form, "plain", "plain");
    }
    check(PRESTO__FORM_NFC, "caf\x65\xcc\x81 ole\xcc\x81", "caf\xc3\xa9 ol\xc3\xa9");
    check(PRESTO__FORM_NFD, "\xc3\xa9!", "e\xcc\x81!");
    check(PRESTO__FORM_NFC, "\xef\xac\x83", "\xef\xac\x83");
    check(PRESTO__FORM_NFKC, "a\xef\xac\x83z", "affiz");
    check(PRESTO__FORM_NFKD, "\xef\xac\x83\xc3\xa9", "ffie\xcc\x81");
    /* Hangul, and marks that change places. */
    check(PRESTO__FORM_NFD, "\xea\xb0\x81", "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8");
    check(PRESTO__FORM_NFC, "q\xcc\x87\xcc\xa3", "q\xcc\xa3\xcc\x87");
    /* U+0C3C came with Unicode 14: no mark here, so that those around it stay where they are. */
    check(PRESTO__FORM_NFC, "q\xcc\x87\xe0\xb0\xbc\xcc\xa3", "q\xcc\x87\xe0\xb0\xbc\xcc\xa3");
    check(PRESTO__FORM_NFD, "\xe0\xb0\xbc\xe0\xb0\xbc", "\xe0\xb0\xbc\xe0\xb0\xbc");
}
END_TEST

START_TEST(marks_without_end_are_refused) {
    presto_buffer points = {0}, out = {0};
    presto_error err;
    char text[2 * 400 + 1] = "";
    for (size_t i = 0; i < 400; i++)
        memcpy(text + 2 * i, i % 2 == 0 ? "\xcc\x87" : "\xcc\xa3", 2);
    if (!presto__unicode_forms_built())
        return;
    ck_assert_status(
        presto__unicode_normalize(PRESTO__FORM_NFC, presto_span_of(text, 800), &points, &out, &err),
        PRESTO_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "combining marks"));
    out.bytes = 0;
    ck_assert_ok(
        presto__unicode_normalize(PRESTO__FORM_NFC, presto_span_of(text, 500), &points, &out, &err),
        &err);
    ck_assert_uint_eq(out.bytes, 500);
    presto_buffer_done(&points);
    presto_buffer_done(&out);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        texts_have_the_forms_of_the_standard,
        marks_without_end_are_refused,
    };
    return presto_check_main("steps/unicode_forms", tests, sizeof tests / sizeof *tests, 60);
}
