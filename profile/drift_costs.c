/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sweep's results.json says of the files that it chose by, against the new ones: bytes of a
 * sample in the source, and the time of each step that runs offline. Times are those of one thread,
 * and comparable on the same kind of processor only.
 */
#include "drift_internal.h"
#include "predict/predict_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <presto/storage.h>

#include "../base/json_limit_internal.h"

/* The machine was perhaps busier then than now: less than twofold is no change of the time of a
 * step. */
#define TIME_LEAST 1.0
/* Of the values of results.json: more than 10,000 strategies have. */
#define MOST_WEIGHT ((size_t)4 << 20)

typedef struct sweep_then {
    json_t *root;
    size_t offline_steps; /* of the pipeline: those up to the dataset's split */
} sweep_then;

static double number_at(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

presto_status presto__drift_results(const char *path, json_t **root_out, presto_error *err) {
    presto_buffer text = {0};
    json_error_t why;
    PRESTO_TRY(presto_file_read(path, PRESTO_DRIFT_RESULTS_MOST_BYTES, &text, err));
    presto_status status = presto__json_check(presto_buffer_span(&text),
                                              PRESTO_DRIFT_RESULTS_MOST_BYTES, MOST_WEIGHT, err);
    *root_out =
        status == PRESTO_OK ? json_loadb((const char *)text.data, text.bytes, 0, &why) : NULL;
    presto_buffer_done(&text);
    if (status != PRESTO_OK) {
        presto_error_set_file(err, path);
        return status;
    }
    if (json_is_object(*root_out))
        return PRESTO_OK;
    status = presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "is no results.json: %s",
                         *root_out != NULL ? "it is no object" : why.text);
    presto_error_set_file(err, path);
    json_decref(*root_out);
    return status;
}

/* NULL: there is no room for more. */
static presto_drift_cost *add_cost(presto_drift *found, const char *name, double then, double now) {
    if (found->cost_count == PRESTO_DRIFT_COSTS_MOST)
        return NULL;
    presto_drift_cost *cost = &found->costs[found->cost_count++];
    *cost = (presto_drift_cost){.then = then, .now = now};
    snprintf(cost->name, sizeof cost->name, "%s", name);
    return cost;
}

static bool is_beyond(double then, double now, double margin) {
    double ratio = now / then; /* NaN: no */
    return ratio > 1 + margin || ratio < 1 / (1 + margin);
}

/* Half of the 95 % interval of the mean, relative; 0: unknown. */
static double error_of_bytes(const presto__runner *runner) {
    presto__size_tail files = {.held = 0};
    if (runner->sample_paths == NULL || !presto__sample_can_spread(runner->pipeline))
        return 0;
    presto__tail_of_files(runner->paths, runner->path_count, &files);
    presto__estimate all = presto__estimate_sum(&files.moments, runner->source_samples);
    return isfinite(all.error) && all.total > 0 ? all.error / all.total : 0;
}

static void compare_bytes(const json_t *then, const presto__runner *runner, double margin,
                          presto_drift *found) {
    const json_t *source = json_object_get(then, "source");
    double samples = number_at(source, "measured_samples");
    double bytes = number_at(source, "measured_bytes") / fmax(samples, 1);
    presto_drift_cost *cost = add_cost(found, "source bytes", bytes,
                                       (double)runner->sample_bytes / (double)runner->samples);
    if (cost == NULL)
        return;
    cost->differs = is_beyond(cost->then, cost->now, fmax(margin, error_of_bytes(runner)));
}

static bool is_same_machine(const json_t *then) {
    presto_sweep_facts here;
    const char *model =
        json_string_value(json_object_get(json_object_get(then, "machine"), "cpu_model"));
    presto__machine_facts("/", &here);
    return model != NULL && strcmp(model, here.cpu_model) == 0;
}

static double step_time_then(const json_t *then, const char *name) {
    const json_t *steps = json_object_get(json_object_get(then, "model"), "steps");
    size_t i;
    const json_t *step;
    json_array_foreach(steps, i, step) {
        const char *known = json_string_value(json_object_get(step, "step"));
        if (known != NULL && strcmp(known, name) == 0)
            return number_at(step, "median_s");
    }
    return NAN;
}

/* Those up to the split. */
static presto_status compare_steps(const sweep_then *then, presto__runner *runner, double margin,
                                   presto_drift *found, presto_error *err) {
    presto__model model = {.cores = 1};
    presto_status status = presto__probe_steps(&model, runner, err);
    bool is_same = is_same_machine(then->root);
    for (size_t i = 0, step = 0; i < model.step_count && step < then->offline_steps; i++) {
        const presto__step_cost *now = &model.steps[i];
        if (!now->is_step)
            continue;
        step++;
        presto_drift_cost *cost =
            add_cost(found, now->name, step_time_then(then->root, now->name), now->wall_median_s);
        if (cost == NULL)
            break;
        cost->is_time = true;
        cost->differs = is_same && is_beyond(cost->then, cost->now, fmax(margin, TIME_LEAST));
    }
    free(model.steps);
    return status;
}

presto_status presto__drift_costs(const presto_drift_options *options, const char *split,
                                  presto__runner *runner, presto_drift *found, presto_error *err) {
    sweep_then then = {NULL, 0};
    if (options->results == NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto__drift_results(options->results, &then.root, err));
    size_t r = presto_pipeline_representation_find(runner->pipeline, split);
    if (r != SIZE_MAX)
        then.offline_steps = presto_pipeline_representation_steps(runner->pipeline, r);
    compare_bytes(then.root, runner, options->margin, found);
    presto_status status = compare_steps(&then, runner, options->margin, found, err);
    json_decref(then.root);
    return status;
}
