/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a sweep: what no line of it may hold. */
#include <math.h>
#include <stdlib.h>

#include "presto_check.h"
#include "profile_internal.h"

static presto_status read_list(size_t count, presto_error *err) {
    presto__trial trial = {.dir = NULL};
    const presto__journal_request request = {
        .path = "trials.jsonl", .sweep = "s", .trials = &trial, .trial_count = 1, .runs = 1};
    presto_buffer text = {0};
    size_t whole;
    const char *head = "{\"journal\":2,\"sweep\":\"s\",\"x\":[";
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

START_TEST(a_preparation_comes_back_as_it_was) {
    char *dir = presto_check_temp_dir(), path[512];
    presto_error err;
    snprintf(path, sizeof path, "%s/trials.jsonl", dir);
    presto__preparation made = {.wall_s = 0.5, .cpu_s = 0.25, .error_s_per_sample = NAN}, found;
    presto__trial written = {.result.strategy.codec = "none",
                             .preparations = &made,
                             .preparation_count = 1,
                             .record_bytes = {.count = 4, .mean = 10, .squares = 9, .cubes = -7},
                             .record_half = 2};
    presto__trial read = {.result.strategy.codec = "none", .preparations = &found};
    presto__journal_request request = {.path = path,
                                       .sweep = "s",
                                       .trials = &written,
                                       .trial_count = 1,
                                       .runs = 1,
                                       .preparation_runs = 1};
    presto__journal *journal = NULL;
    ck_assert_ok(presto__journal_open(&request, &journal, &err), &err);
    ck_assert_ok(presto__journal_add_preparation(journal, 0, &written, &err), &err);
    presto__journal_close(journal);
    request.trials = &read;
    request.resume = true;
    ck_assert_ok(presto__journal_open(&request, &journal, &err), &err);
    presto__journal_close(journal);
    ck_assert_uint_eq(read.preparation_count, 1);
    ck_assert(found.wall_s == 0.5 && found.cpu_s == 0.25 && isnan(found.error_s_per_sample));
    ck_assert_mem_eq(&read.record_bytes, &written.record_bytes, sizeof read.record_bytes);
    ck_assert_uint_eq(read.record_half, 2);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {values_of_a_line_have_a_limit_before_they_are_parsed,
                                  a_preparation_comes_back_as_it_was};
    return presto_check_main("journal", tests, sizeof tests / sizeof tests[0], 60);
}
