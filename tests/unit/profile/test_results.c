/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "made_sweep.h"

/* Fields of one CSV line, by RFC 4180; *at moves behind its end. Each on the heap. */
static size_t read_line(const char **at, char *fields[], size_t most) {
    size_t count = 0;
    for (;;) {
        ck_assert_uint_lt(count, most);
        char *field = malloc(strlen(*at) + 1);
        ck_assert_ptr_nonnull(field);
        size_t length = 0;
        bool quoted = **at == '"';
        *at += quoted;
        while (quoted ? !((*at)[0] == '"' && (*at)[1] != '"') : strchr(",\r", **at) == NULL) {
            ck_assert_int_ne(**at, '\0');
            *at += quoted && **at == '"';
            field[length++] = *(*at)++;
        }
        *at += quoted;
        field[length] = '\0';
        fields[count++] = field;
        if (**at == ',') {
            ++*at;
            continue;
        }
        ck_assert_msg(strncmp(*at, "\r\n", 2) == 0, "a line ends in CR LF");
        *at += 2;
        return count;
    }
}

static size_t find(char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    ck_abort_msg("no column %s", name);
    return 0;
}

START_TEST(csv_has_the_same_fields_on_every_line) {
    presto_sweep *sweep = made_sweep(true);
    presto_error err;
    presto_buffer text = {0};
    ck_assert_ok(presto__results_csv(sweep, &text, &err), &err);
    const char *at = (const char *)text.data;
    char *names[100];
    char *fields[3][100];
    size_t count = read_line(&at, names, 100);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(read_line(&at, fields[i], 100), count);
    ck_assert_int_eq(*at, '\0');
    ck_assert_str_eq(fields[0][find(names, count, "stored")], "unprocessed");
    ck_assert_str_eq(fields[0][find(names, count, "codec")], "");
    ck_assert_str_eq(fields[0][find(names, count, "cold_samples_per_s")], "800");
    ck_assert_str_eq(fields[0][find(names, count, "cold_samples_min_per_s")], "792");
    ck_assert_str_eq(fields[0][find(names, count, "cold_disk_read_bytes")], "");
    /* Prepared once: no spread. */
    ck_assert_str_eq(fields[2][find(names, count, "preparation_s")], "2");
    ck_assert_str_eq(fields[2][find(names, count, "preparation_min_s")], "");
    ck_assert_str_eq(fields[2][find(names, count, "preparation_max_s")], "");
    ck_assert_str_eq(fields[1][find(names, count, "status")], "failed");
    ck_assert_str_eq(fields[1][find(names, count, "cold_samples_per_s")], "");
    ck_assert_str_eq(fields[1][find(names, count, "failure")], "it said \"no\", twice");
    ck_assert_str_eq(fields[2][find(names, count, "recommended")], "1");
    ck_assert_str_eq(fields[2][find(names, count, "equal")], "1");
    ck_assert_str_eq(fields[0][find(names, count, "equal")], "0");
    ck_assert_str_eq(fields[2][find(names, count, "total_stored_bytes")], "220000000");
    ck_assert_str_eq(fields[2][find(names, count, "total_preparation_s")], "20");
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
        for (size_t k = 0; k < 3; k++)
            free(fields[k][i]);
    }
    presto_buffer_done(&text);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(json_holds_every_run_and_null_for_what_is_unknown) {
    presto_sweep *sweep = made_sweep(true);
    free(sweep->paths[0]);
    sweep->paths[0] = made_text("not \xff utf-8");
    presto_error err;
    presto_buffer text = {0};
    ck_assert_ok(presto__results_json(sweep, &text, &err), &err);
    json_error_t why;
    json_t *root = json_loads((const char *)text.data, 0, &why);
    ck_assert_msg(root != NULL, "%s", why.text);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "schema")), 1);
    json_t *results = json_object_get(root, "results");
    ck_assert_uint_eq(json_array_size(results), 3);
    json_t *failed = json_array_get(results, 1);
    ck_assert_str_eq(json_string_value(json_object_get(failed, "status")), "failed");
    ck_assert_str_eq(json_string_value(json_object_get(failed, "failure")),
                     "it said \"no\", twice");
    json_t *raw = json_object_get(json_array_get(results, 0), "cold");
    ck_assert(json_is_null(json_object_get(raw, "disk_read_bytes")));
    json_t *run = json_array_get(json_object_get(raw, "runs"), 0);
    ck_assert_double_eq_tol(json_number_value(json_object_get(run, "wall_s")), 0.125, 1e-9);
    ck_assert_uint_eq(json_array_size(json_object_get(run, "work")), 3);
    json_t *rate = json_object_get(raw, "samples_per_s");
    ck_assert_double_eq_tol(json_number_value(json_object_get(rate, "min")), 792, 1e-9);
    json_t *once = json_object_get(json_array_get(results, 2), "preparation_s");
    ck_assert(json_is_null(json_object_get(once, "min")));
    ck_assert_double_eq_tol(json_number_value(json_object_get(once, "median")), 2, 1e-9);
    json_t *advice = json_object_get(root, "recommendation");
    ck_assert_str_eq(json_string_value(json_object_get(advice, "stored")), "resized");
    ck_assert_int_eq(json_integer_value(json_object_get(advice, "result")), 2);
    json_t *paths = json_object_get(json_object_get(root, "source"), "paths");
    ck_assert_str_eq(json_string_value(json_array_get(paths, 0)), "not \\xff utf-8");
    json_decref(root);
    presto_buffer_done(&text);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(the_report_holds_everything_and_fetches_nothing) {
    presto_sweep *sweep = made_sweep(true);
    free(sweep->paths[0]);
    sweep->paths[0] = made_text("</script><script>alert(1)</script><!--");
    presto_error err;
    presto_buffer text = {0};
    if (!presto__report_is_built()) {
        ck_assert_status(presto__report_html(sweep, &text, &err), PRESTO_ERR_UNSUPPORTED, &err);
        presto_sweep_free(sweep);
        return;
    }
    ck_assert_ok(presto__report_html(sweep, &text, &err), &err);
    ck_assert_ok(presto_buffer_append(&text, presto_span_of("", 1), &err), &err);
    const char *page = (const char *)text.data;
    ck_assert_ptr_nonnull(strstr(page, "Permission is hereby granted, free of charge"));
    ck_assert_ptr_nonnull(strstr(page, "\"split\": \"resized\""));
    ck_assert_ptr_null(strstr(page, "@CHART_LIBRARY@"));
    ck_assert_ptr_null(strstr(page, "@RESULTS@"));
    ck_assert_ptr_null(strstr(page, "alert(1)</script>"));
    ck_assert_ptr_nonnull(strstr(page, "\\u003c/script>\\u003cscript>alert(1)"));
    static const char *const fetching[] = {" src=", "@import", "url("};
    for (size_t i = 0; i < sizeof fetching / sizeof *fetching; i++)
        ck_assert_msg(strstr(page, fetching[i]) == NULL, "the page has '%s'", fetching[i]);
    for (const char *at = page; (at = strstr(at, " href=")) != NULL; at += strlen(" href="))
        ck_assert_msg(strncmp(at, " href=\"#", 8) == 0, "a link leaves the page: %.40s", at);
    size_t scripts = 0;
    for (const char *at = page; (at = strstr(at, "</script>")) != NULL; at++)
        scripts++;
    ck_assert_uint_eq(scripts, 3);
    presto_buffer_done(&text);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(commands_are_quoted_for_a_shell) {
    presto_sweep *sweep = made_sweep(false);
    ck_assert_str_eq(presto_sweep_write_command(sweep),
                     "presto-write -p cv -u resized -c zstd:1 -s 2 -j 2 -o cv-resized 'my photos' "
                     "plain");
    ck_assert_str_eq(presto_sweep_load_command(sweep),
                     "presto-load -j 2 -b 32 --format null cv-resized");
    free(sweep->paths[1]);
    sweep->paths[1] = made_text("-rf");
    sweep->dataset_dir = made_text("it's here");
    sweep->seed = 7;
    presto_error err;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_str_eq(
        presto_sweep_write_command(sweep),
        "presto-write -p cv -u resized -c zstd:1 -s 2 -j 2 --seed 7 -o 'it'\\''s here' "
        "-- 'my photos' -rf");
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(facts_of_the_machine_are_found) {
    presto_sweep_facts facts = {0};
    presto__machine_facts("/proc", &facts);
    ck_assert_str_eq(facts.filesystem, "proc");
    ck_assert_uint_ge(facts.cpus, 1);
    ck_assert_uint_gt(facts.memory_bytes, 0);
    ck_assert_uint_eq(strlen(facts.started), 20);
    ck_assert_uint_gt(presto__disk_free_bytes("/tmp"), 0);
}
END_TEST

START_TEST(a_watch_sees_processor_time_and_memory) {
    presto__watch watch;
    presto__measure measure;
    presto__watch_start(&watch);
    const size_t bytes = 64 << 20;
    uint8_t *memory = malloc(bytes);
    ck_assert_ptr_nonnull(memory);
    for (int round = 0; round < 4; round++)
        memset(memory, round, bytes);
    presto__watch_sample(&watch);
    ck_assert_uint_eq(memory[bytes / 2], 3);
    free(memory);
    presto__watch_stop(&watch, watch.start.wall_ns + 1000000000, &measure);
    ck_assert_double_eq_tol(measure.wall_s, 1, 1e-9);
    ck_assert_double_gt(measure.cpu_user_s + measure.cpu_system_s, 0);
    ck_assert_double_ge(measure.peak_rss_bytes, (double)bytes);
    ck_assert(isnan(measure.disk_read_bytes) || measure.disk_read_bytes >= 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        csv_has_the_same_fields_on_every_line,
        json_holds_every_run_and_null_for_what_is_unknown,
        the_report_holds_everything_and_fetches_nothing,
        commands_are_quoted_for_a_shell,
        facts_of_the_machine_are_found,
        a_watch_sees_processor_time_and_memory,
    };
    return presto_check_main("profile/results", tests, sizeof tests / sizeof *tests, 60);
}
