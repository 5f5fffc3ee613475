/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests whose few bytes ask for much memory. */
#include <stdio.h>

#include "presto_check.h"

#include "source/manifest_internal.h"

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

int main(void) {
    const TTest *const tests[] = {
        lines_without_keys_do_not_make_many_cells,
        values_of_a_line_have_a_limit_before_they_are_parsed,
    };
    return presto_check_main("manifest", tests, sizeof tests / sizeof tests[0], 60);
}
