/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests as tables: numbers in JSON, and few bytes that ask for much memory. */
#include <stdio.h>

#include "comma_check.h"

#include "source/table/source_tables_internal.h"

static presto_error err;

static void refuse(presto_buffer *text, const char *part) {
    presto__manifest manifest = {.names = NULL};
    ck_assert_status(
        presto__manifest_parse(presto_buffer_span(text), PRESTO__MANIFEST_JSONL, &manifest, &err),
        PRESTO_ERR_LIMIT, &err);
    ck_assert_msg(strstr(err.message, part) != NULL, "'%s' lacks '%s'", err.message, part);
    presto_buffer_done(text);
}

static void append(presto_buffer *text, const char *piece) {
    ck_assert_ok(presto_buffer_append(text, presto_span_of_text(piece), &err), &err);
}

START_TEST(lines_without_keys_do_not_make_many_cells) {
    presto_buffer text = {0};
    char key[32];
    append(&text, "{\"path\":1");
    for (int i = 1; i < 1000; i++) {
        snprintf(key, sizeof key, ",\"%d\":1", i);
        append(&text, key);
    }
    append(&text, "}\n");
    for (size_t i = 0; i < 9000; i++) /* 9,001,000 cells of about 36,000 bytes */
        append(&text, "{}\n");
    refuse(&text, "more cells than a manifest of its size may have");
}
END_TEST

START_TEST(values_of_a_line_have_a_limit_before_they_are_parsed) {
    presto_buffer text = {0};
    append(&text, "{\"path\":[");
    for (size_t i = 0; i < 120000; i++)
        append(&text, "[],");
    append(&text, "0]}\n");
    refuse(&text, "line 1: more values than such a file needs");
}
END_TEST

/* The cells of rows of one column, and its kind. */
static void check_column(const char *text, presto__manifest_form form, const char *const *wanted,
                         presto__text_kind kind) {
    presto__manifest manifest;
    ck_assert_ok(presto__manifest_parse(presto_span_of_text(text), form, &manifest, &err), &err);
    for (size_t row = 0; row < manifest.row_count; row++)
        ck_assert_str_eq(presto__manifest_cell(&manifest, row, 0), wanted[row]);
    ck_assert_int_eq(manifest.kinds[0], kind);
    presto__manifest_done(&manifest);
}

START_TEST(whole_fractions_are_fractions_in_json_as_in_csv) {
    static const char *const cells[] = {"1.0", "0.0", "-2.0", "10000000000000000.0", "1e+20"};
    check_column("n\n1.0\n0.0\n-2.0\n10000000000000000.0\n1e+20\n", PRESTO__MANIFEST_CSV, cells,
                 PRESTO__TEXT_FRACTION);
    check_column("{\"n\":1.0}\n{\"n\":0.0}\n{\"n\":-2.0}\n{\"n\":1e16}\n{\"n\":1e20}\n",
                 PRESTO__MANIFEST_JSONL, cells, PRESTO__TEXT_FRACTION);
    check_column("{\"n\":1.0}\n{\"n\":0.0}\n", PRESTO__MANIFEST_JSONL, cells,
                 PRESTO__TEXT_FRACTION);
}
END_TEST

START_TEST(json_fractions_have_a_point_in_any_locale) {
    static const char *const cells[] = {"1.0", "0.5", "1e-10", "7"};
    if (!comma_begin())
        return;
    check_column("{\"n\":1.0}\n{\"n\":0.5}\n{\"n\":1e-10}\n{\"n\":7}\n", PRESTO__MANIFEST_JSONL,
                 cells, PRESTO__TEXT_FRACTION);
    float number;
    ck_assert(presto__text_fraction("0.5", &number) && number == 0.5F);
    comma_end();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        lines_without_keys_do_not_make_many_cells,
        values_of_a_line_have_a_limit_before_they_are_parsed,
        whole_fractions_are_fractions_in_json_as_in_csv,
        json_fractions_have_a_point_in_any_locale,
    };
    return presto_check_main("manifest", tests, sizeof tests / sizeof tests[0], 60);
}
