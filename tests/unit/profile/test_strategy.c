/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "comma_check.h"
#include "made_sweep.h"

static presto_strategy_file load_text(const char *yaml) {
    presto_strategy_file strategy = {0};
    presto_error err;
    ck_assert_ok(
        presto__strategy_parse(presto_span_of_text(yaml), "strategy.yaml", &strategy, &err), &err);
    return strategy;
}

static void check_bad(const char *yaml, presto_status wanted, const char *part_of_message) {
    uint8_t *copy = presto_check_copy(presto_span_of_text(yaml));
    presto_strategy_file strategy = {0};
    presto_error err;
    ck_assert_status(presto__strategy_parse(presto_span_of(copy, strlen(yaml)), "strategy.yaml",
                                            &strategy, &err),
                     wanted, &err);
    ck_assert_msg(strstr(err.message, part_of_message) != NULL, "\"%s\" lacks \"%s\"", err.message,
                  part_of_message);
    ck_assert_str_eq(err.file, "strategy.yaml");
    ck_assert_ptr_null(strategy.stored);
    free(copy);
}

START_TEST(what_a_sweep_writes_reads_back_the_same) {
    presto_sweep *sweep = made_sweep(false);
    sweep->seed = UINT64_MAX;
    presto_error err;
    char *dir = presto_check_temp_dir();
    ck_assert_ok(presto_sweep_write(sweep, dir, &err), &err);
    char path[600];
    snprintf(path, sizeof path, "%s/strategy.yaml", dir);
    presto_strategy_file strategy = {0};
    ck_assert_ok(presto_strategy_load(path, &strategy, &err), &err);
    ck_assert_str_eq(strategy.pipeline, "cv");
    ck_assert_str_eq(strategy.stored, "resized");
    ck_assert_str_eq(strategy.codec, "zstd:1");
    ck_assert_uint_eq(strategy.shards, 2);
    ck_assert_uint_eq(strategy.threads, 2);
    ck_assert_uint_eq(strategy.batch_samples, 32);
    ck_assert_uint_eq(strategy.seed, UINT64_MAX);
    ck_assert_double_eq(strategy.expected_samples_per_s, 4000);
    ck_assert_double_eq(strategy.expected_cached_samples_per_s, 4000);
    ck_assert_double_eq(strategy.expected_stored_bytes, 220e6);
    ck_assert_double_eq(strategy.expected_preparation_s, 20);
    presto_strategy_file_done(&strategy);
    ck_assert_ptr_null(strategy.pipeline);
    presto_sweep_free(sweep);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(numbers_have_a_point_whatever_the_locale) {
    presto_sweep *sweep = made_sweep(false);
    sweep->trials[2].result.cold.samples_per_s.median = 4000.5;
    sweep->errors = (presto_loader_errors){
        .policy = PRESTO_ON_ERROR_SKIP, .skip_limit = UINT64_MAX, .skip_fraction = 0.025};
    presto_error err;
    presto_buffer text = {0};
    char on_error[PRESTO__ON_ERROR_BYTES];
    presto_strategy_file strategy = {0};
    (void)comma_begin();
    ck_assert_ok(presto__strategy_yaml(sweep, &text, &err), &err);
    ck_assert_ok(presto__strategy_parse(presto_buffer_span(&text), "s.yaml", &strategy, &err),
                 &err);
    ck_assert_double_eq(strategy.expected_samples_per_s, 4000.5);
    ck_assert_str_eq(presto__on_error_format(sweep, on_error), "skip:2.5%");
    text.bytes = 0;
    ck_assert_ok(presto__results_csv(sweep, &text, &err), &err);
    comma_end();
    ck_assert_ptr_nonnull(strstr((const char *)text.data, ",4000.5,"));
    presto_strategy_file_done(&strategy);
    presto_buffer_done(&text);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(an_unprocessed_strategy_has_neither_codec_nor_shards) {
    presto_sweep *sweep = made_sweep(false);
    presto_error err;
    const presto_weights weights = {0, 1, 0};
    ck_assert_ok(presto_sweep_score(sweep, &weights, &err), &err);
    presto_buffer text = {0};
    ck_assert_ok(presto__strategy_yaml(sweep, &text, &err), &err);
    presto_strategy_file strategy = {0};
    ck_assert_ok(presto__strategy_parse(presto_buffer_span(&text), "x", &strategy, &err), &err);
    ck_assert_str_eq(strategy.stored, PRESTO_UNPROCESSED);
    ck_assert_ptr_null(strategy.codec);
    ck_assert_uint_eq(strategy.shards, 0);
    presto_strategy_file_done(&strategy);
    presto_buffer_done(&text);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(names_that_yaml_would_take_for_something_else_survive) {
    static const char *const names[] = {"123",   "1e3", "no",   "~",
                                        "a: b",  "- x", "#1",   "'",
                                        "\"q\"", "{x}", "a\tb", "\xc3\xa4 \xe2\x82\xac",
                                        " lead", "0x10"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        presto_sweep *sweep = made_sweep(false);
        free(sweep->pipeline);
        sweep->pipeline = made_text(names[i]);
        presto_error err;
        presto_buffer text = {0};
        ck_assert_ok(presto__strategy_yaml(sweep, &text, &err), &err);
        presto_strategy_file strategy = {0};
        ck_assert_ok(presto__strategy_parse(presto_buffer_span(&text), "x", &strategy, &err), &err);
        ck_assert_str_eq(strategy.pipeline, names[i]);
        presto_strategy_file_done(&strategy);
        presto_buffer_done(&text);
        presto_sweep_free(sweep);
    }
}
END_TEST

START_TEST(what_is_not_said_takes_its_default) {
    presto_strategy_file strategy =
        load_text("schema: 1\npipeline: cv\nstored: resized\ncodec: zlib\nthreads: 3\n");
    ck_assert_uint_eq(strategy.shards, 3);
    ck_assert_uint_eq(strategy.batch_samples, 1);
    ck_assert_uint_eq(strategy.seed, 0);
    ck_assert(isnan(strategy.expected_samples_per_s) && isnan(strategy.expected_stored_bytes));
    presto_strategy_file_done(&strategy);
}
END_TEST

START_TEST(stored_may_have_the_name_of_the_version_before) {
    presto_strategy_file strategy =
        load_text("schema: 1\npipeline: cv\nsplit: resized\ncodec: zlib\nthreads: 3\n");
    ck_assert_str_eq(strategy.stored, "resized");
    ck_assert(strategy.has_old_names);
    presto_strategy_file_done(&strategy);
    strategy = load_text("schema: 1\npipeline: cv\nstored: resized\ncodec: zlib\nthreads: 3\n");
    ck_assert(!strategy.has_old_names);
    presto_strategy_file_done(&strategy);
}
END_TEST

#define HEAD "schema: 1\npipeline: cv\nstored: resized\n"

START_TEST(slips_are_named_with_their_line) {
    check_bad("", PRESTO_ERR_SYNTAX, "line 1: the file is empty");
    check_bad("just words\n", PRESTO_ERR_SYNTAX, "line 1: a strategy is a mapping");
    check_bad(HEAD "codec: none\nthreads: 1\nthread: 2\n", PRESTO_ERR_SYNTAX,
              "line 6: unknown key 'thread'");
    check_bad(HEAD "codec: none\nthreads: two\n", PRESTO_ERR_SYNTAX, "line 5: threads: 'two'");
    check_bad(HEAD "codec: none\nthreads: -1\n", PRESTO_ERR_SYNTAX, "line 5: threads: '-1'");
    check_bad(HEAD "codec: none\nthreads: 99999999999999999999\n", PRESTO_ERR_SYNTAX, "line 5");
    check_bad(HEAD "codec: none\nthreads: 1\nseed: 18446744073709551616\n", PRESTO_ERR_SYNTAX,
              "line 6: seed: '18446744073709551616' is not a whole number of at most "
              "18446744073709551615");
    check_bad(HEAD "codec: none\nthreads: [1]\n", PRESTO_ERR_SYNTAX, "line 5: threads takes");
    check_bad(HEAD "codec: none\nthreads: 1\nthreads: 1\n", PRESTO_ERR_SYNTAX,
              "line 6: threads stands there twice");
    check_bad(HEAD "codec: none\n", PRESTO_ERR_SYNTAX, "threads is missing");
    check_bad(HEAD "threads: 1\n", PRESTO_ERR_SYNTAX, "codec is missing");
    check_bad(HEAD "split: resized\ncodec: none\nthreads: 1\n", PRESTO_ERR_SYNTAX,
              "stored and split are one thing");
    check_bad("schema: 1\npipeline: cv\ncodec: none\nthreads: 1\n", PRESTO_ERR_SYNTAX,
              "stored is missing");
    check_bad("schema: 2\n", PRESTO_ERR_SYNTAX, "line 1: schema: '2'");
    check_bad("schema: 1\npipeline: cv\nstored: unprocessed\nthreads: 1\ncodec: none\n",
              PRESTO_ERR_SYNTAX, "nothing is stored");
    check_bad(HEAD "codec: none\nthreads: 1\nexpected: 5\n", PRESTO_ERR_SYNTAX,
              "line 6: expected is a mapping");
    check_bad(HEAD "codec: none\nthreads: 1\nexpected:\n  cold: 5\n", PRESTO_ERR_SYNTAX,
              "line 7: unknown key 'cold'");
    check_bad(HEAD "codec: none\nthreads: 1\nexpected:\n  cold_samples_per_s: fast\n",
              PRESTO_ERR_SYNTAX, "line 7: cold_samples_per_s: 'fast'");
    check_bad(HEAD "codec: \"none\n", PRESTO_ERR_SYNTAX, "line ");
    check_bad("? [a]\n: b\n", PRESTO_ERR_SYNTAX, "a key must be a name");
    check_bad(HEAD "codec: none\nset: [&a 'x', *a, *a]\nthreads: 1\n", PRESTO_ERR_SYNTAX,
              "line 5: anchors (&) and aliases (*) are not supported here");
    check_bad(HEAD "codec: none\nset: *a\nthreads: 1\n", PRESTO_ERR_SYNTAX, "line 5: anchors");
    check_bad(HEAD "codec: squeeze\nthreads: 1\n", PRESTO_ERR_NOT_FOUND, "squeeze");
}
END_TEST

START_TEST(every_cut_of_a_strategy_is_an_error_or_whole) {
    presto_sweep *sweep = made_sweep(false);
    presto_error err;
    presto_buffer text = {0};
    ck_assert_ok(presto__strategy_yaml(sweep, &text, &err), &err);
    for (size_t cut = 0; cut < text.bytes; cut++) {
        presto_span part = presto_span_of(text.data, cut);
        uint8_t *copy = presto_check_copy(part);
        presto_strategy_file strategy = {0};
        presto_status status =
            presto__strategy_parse(presto_span_of(copy, cut), "x", &strategy, &err);
        ck_assert(status <= PRESTO_OK);
        presto_strategy_file_done(&strategy);
        free(copy);
    }
    presto_buffer_done(&text);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_named) {
    presto_strategy_file strategy = {0};
    presto_error err;
    ck_assert_status(presto_strategy_load("/nowhere/strategy.yaml", &strategy, &err),
                     PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.file, "/nowhere/strategy.yaml");
    ck_assert_status(presto_strategy_load("/", &strategy, &err), PRESTO_ERR_IO, &err);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_a_sweep_writes_reads_back_the_same,
        numbers_have_a_point_whatever_the_locale,
        an_unprocessed_strategy_has_neither_codec_nor_shards,
        names_that_yaml_would_take_for_something_else_survive,
        what_is_not_said_takes_its_default,
        stored_may_have_the_name_of_the_version_before,
        slips_are_named_with_their_line,
        every_cut_of_a_strategy_is_an_error_or_whole,
        a_file_that_is_not_there_is_named,
    };
    return presto_check_main("profile/strategy", tests, sizeof tests / sizeof *tests, 60);
}
