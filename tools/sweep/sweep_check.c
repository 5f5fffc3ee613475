/* SPDX-License-Identifier: Apache-2.0 */
/* presto-sweep --check: presto/drift.h compares; here are the table and the verdict. */
#include "sweep_check.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

static bool on_progress(void *user) {
    (void)user;
    return !cli_interrupted();
}

/* ---- output ---- */

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *figure_json(const presto_drift_figure *figure) {
    json_t *object = json_object();
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"stored_mean", figure->stored_mean},     {"new_mean", figure->new_mean},
        {"stored_median", figure->stored_median}, {"new_median", figure->new_median},
        {"stored_p95", figure->stored_p95},       {"new_p95", figure->new_p95},
        {"distance", figure->distance},           {"chance", figure->chance},
    };
    cli_json_set(object, "name", json_string(figure->name));
    const cli_count counts[] = {{"stored_count", figure->stored_count},
                                {"new_count", figure->new_count}};
    cli_json_set_counts(object, counts, 2);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cli_json_set(object, numbers[i].name, number(numbers[i].value));
    cli_json_set(object, "differs", json_boolean(figure->differs));
    return object;
}

static json_t *cost_json(const presto_drift_cost *cost) {
    json_t *object = json_object();
    cli_json_set(object, "name", json_string(cost->name));
    cli_json_set(object, cost->is_time ? "then_median_s" : "then_mean_bytes", number(cost->then));
    cli_json_set(object, cost->is_time ? "new_median_s" : "new_mean_bytes", number(cost->now));
    cli_json_set(object, "differs", json_boolean(cost->differs));
    return object;
}

static int print_json(const presto_drift *drift, double margin) {
    json_t *object = cli_json_new();
    const cli_count counts[] = {{"stored_records", drift->stored_records},
                                {"new_samples", drift->new_samples},
                                {"tried_samples", drift->tried_samples}};
    cli_json_set_counts(object, counts, 3);
    json_t *figures = json_array();
    for (size_t i = 0; i < drift->figure_count; i++)
        cli_json_append(figures, figure_json(&drift->figures[i]));
    cli_json_set(object, "figures", figures);
    json_t *costs = json_array();
    for (size_t i = 0; i < drift->cost_count; i++)
        cli_json_append(costs, cost_json(&drift->costs[i]));
    cli_json_set(object, "costs", costs);
    cli_json_set(object, "time_ratio", number(drift->time_ratio));
    cli_json_set(object, "time_ratio_min", number(drift->time_ratio_least));
    cli_json_set(object, "time_ratio_max", number(drift->time_ratio_most));
    cli_json_set(object, "time_differs", json_boolean(drift->time_differs));
    cli_json_set(object, "margin", number(margin));
    cli_json_set(object, "moves", json_boolean(drift->moves));
    return cli_print_json(object);
}

static void print_figure(const presto_drift_figure *figure) {
    char text[4][PRESTO_TEXT_BYTES];
    printf("  %-14s %10s %10s %10s %10s %6.2f  %s\n", figure->name,
           presto_format_number(figure->stored_median, text[0]),
           presto_format_number(figure->new_median, text[1]),
           presto_format_number(figure->stored_p95, text[2]),
           presto_format_number(figure->new_p95, text[3]), figure->distance,
           figure->differs ? "differs" : "alike");
}

static void print_cost(const presto_drift_cost *cost) {
    char text[2][PRESTO_TEXT_BYTES];
    printf("  %-20s", cost->name);
    if (cost->is_time)
        printf(" %10.3g %10.3g", 1e3 * cost->then, 1e3 * cost->now);
    else
        printf(" %10s %10s", presto_format_number(cost->then, text[0]),
               presto_format_number(cost->now, text[1]));
    printf("%-7s %s\n", cost->is_time ? " ms" : "",
           !isfinite(cost->then) ? "unknown then"
           : cost->differs       ? "differs"
                                 : "alike");
}

static int print_table(const presto_drift *drift, const char *dataset, double margin) {
    char text[3][PRESTO_TEXT_BYTES], line[512];
    cli_put("%s: %s, against %s of ", dataset,
            presto_format_things(drift->stored_records, "record", text[0]),
            presto_format_count(drift->tried_samples, text[1]));
    printf("%s\n\n", presto_format_things(drift->new_samples, "new sample", text[2]));
    printf("  %-14s %21s %21s %6s\n", "", "median", "95th percentile", "");
    printf("  %-14s %10s %10s %10s %10s %6s\n", "", "dataset", "new", "dataset", "new", "D");
    for (size_t i = 0; i < drift->figure_count; i++)
        print_figure(&drift->figures[i]);
    char range[40] = "unknown";
    if (isfinite(drift->time_ratio_most))
        snprintf(range, sizeof range, "%.2f to %.2f", drift->time_ratio_least,
                 drift->time_ratio_most);
    printf("  time to load   %.2f times (%s): %s\n\n", drift->time_ratio, range,
           drift->time_differs ? "differs" : "not shown to differ");
    if (drift->cost_count > 0)
        printf("  %-20s %10s %10s\n", "of a sample", "the sweep", "new");
    for (size_t i = 0; i < drift->cost_count; i++)
        print_cost(&drift->costs[i]);
    if (drift->cost_count > 0)
        printf("\n");
    if (drift->moves)
        snprintf(line, sizeof line,
                 "The recommendation may be another one: bytes a sample, the time to load them or "
                 "what the sweep had measured changed by more than %.0f %%. Sweep again with the "
                 "new files.",
                 100 * margin);
    else
        snprintf(line, sizeof line,
                 "The strategy still fits: neither bytes a sample nor the time to load them "
                 "changed by more than %.0f %%.",
                 100 * margin);
    cli_print_wrapped(line, 0, 0);
    return cli_close_stdout(CLI_DONE);
}

/* ---- running ---- */

static int compare(const check_job *job, const char *work_dir, const char *const *paths,
                   size_t path_count) {
    presto_error err;
    presto_drift drift;
    presto_drift_options options;
    presto_drift_options_defaults(&options);
    presto_pipeline_options reading = cli_pipeline_options(job->settings);
    char results[PATH_MAX];
    if (job->results_dir != NULL) {
        if ((size_t)snprintf(results, sizeof results, "%s/results.json", job->results_dir) >=
            sizeof results)
            cli_usage("--output: the name is too long");
        if (presto_drift_margin(results, &options.margin, &err) < 0)
            return cli_error(&err);
        options.results = results;
    }
    options.dataset = job->dataset;
    options.pipeline = job->pipeline_name;
    options.pipeline_options = &reading;
    options.samples = job->samples;
    options.errors = job->errors;
    options.work_dir = work_dir;
    options.on_progress = on_progress;
    cli_catch_signals();
    if (presto_drift_check(paths, path_count, &options, &drift, &err) < 0)
        return cli_error(&err);
    int code = job->json ? print_json(&drift, options.margin)
                         : print_table(&drift, job->dataset, options.margin);
    return code == CLI_DONE && drift.moves ? CHECK_MOVES : code;
}

int sweep_check(const check_job *job, const char *const *paths, size_t path_count) {
    const char *place = getenv("TMPDIR"); /* the comparison makes a folder of its own there */
    return compare(job, place == NULL || place[0] == '\0' ? "/tmp" : place, paths, path_count);
}
