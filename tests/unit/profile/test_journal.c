/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a sweep: what no line of it may hold. */
#include "presto_check.h"
#include "profile_internal.h"

static presto_status read_list(size_t count, presto_error *err) {
    presto__trial trial = {.dir = NULL};
    const presto__journal_request request = {
        .path = "trials.jsonl", .sweep = "s", .trials = &trial, .trial_count = 1, .runs = 1};
    presto_buffer text = {0};
    size_t whole;
    const char *head = "{\"journal\":1,\"sweep\":\"s\",\"x\":[";
    ck_assert_ok(presto_buffer_append(&text, presto_span_of_text(head), err), err);
    for (size_t i = 0; i < count; i++)
        ck_assert_ok(presto_buffer_append(&text, presto_span_of_text("[],"), err), err);
    ck_assert_ok(presto_buffer_append(&text, presto_span_of_text("0]}\n"), err), err);
    presto_status status = presto__journal_read(&request, presto_buffer_span(&text), &whole, err);
    presto_buffer_done(&text);
    return status;
}

START_TEST(values_of_a_line_have_a_limit_before_they_are_parsed) {
    presto_error err;
    const size_t most = (((size_t)64 << 10) - 18) / 9; /* beside the object and the list */
    ck_assert_ok(read_list(most, &err), &err);
    ck_assert_status(read_list(most + 1, &err), PRESTO_ERR_SYNTAX, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "line 1: too much: more values"));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {values_of_a_line_have_a_limit_before_they_are_parsed};
    return presto_check_main("journal", tests, sizeof tests / sizeof tests[0], 60);
}
