/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results.csv: one line per strategy, for spreadsheets and data frames. results.json: the same and
 * more, with the figures of every run. Units are in the names. Unknown values are empty fields, or
 * null.
 */
#include "../../base/decimal_internal.h"
#include "../../storage/play_internal.h"
#include "../predict/predict_internal.h"
#include "json_internal.h"

#include <presto/version.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the columns, declared once for both files ---- */

typedef enum kind { NUMBER, COUNT64, SPREAD } kind;

typedef struct column {
    const char *name; /* without unit */
    const char *unit; /* suffix, with its underscore; "" if it is part of the name */
    kind kind;
    size_t offset;
} column;

static const column result_columns[] = {
    {"samples", "", COUNT64, offsetof(presto_strategy_result, samples)},
    {"preparation", "_s", SPREAD, offsetof(presto_strategy_result, preparation_s)},
    {"stored", "_bytes", COUNT64, offsetof(presto_strategy_result, stored_bytes)},
    {"raw", "_bytes", COUNT64, offsetof(presto_strategy_result, raw_bytes)},
    {"total_preparation", "_s", NUMBER, offsetof(presto_strategy_result, total_preparation_s)},
    {"total_preparation_error", "_s", NUMBER,
     offsetof(presto_strategy_result, total_preparation_error_s)},
    {"total_stored", "_bytes", NUMBER, offsetof(presto_strategy_result, total_stored_bytes)},
    {"total_stored_error", "_bytes", NUMBER,
     offsetof(presto_strategy_result, total_stored_error_bytes)},
    {"cost", "", NUMBER, offsetof(presto_strategy_result, cost)},
};

#define SAID(member) offsetof(presto_strategy_result, prediction.member)
static const column prediction_columns[] = {
    {"predicted_samples_per_s", "", NUMBER, SAID(cold_samples_per_s)}, /* what is scored */
    {"predicted_cold_samples_per_s", "", NUMBER, SAID(cold_samples_per_s)},
    {"predicted_cached_samples_per_s", "", NUMBER, SAID(cached_samples_per_s)},
    {"predicted_memory_samples_per_s", "", NUMBER, SAID(memory_samples_per_s)},
    {"predicted_memory_bytes", "", NUMBER, SAID(memory_bytes)},
    {"predicted_preparation_s", "", NUMBER, SAID(preparation_s)},
    {"predicted_storage_bytes", "", NUMBER, SAID(stored_bytes)},
    {"uncertainty", "", NUMBER, SAID(uncertainty)},
    {"error", "", NUMBER, SAID(cold_error)},
    {"cached_error", "", NUMBER, SAID(cached_error)},
};

static const column epoch_columns[] = {
    {"samples", "_per_s", SPREAD, offsetof(presto_epoch_result, samples_per_s)},
    {"delivered", "_bytes_per_s", SPREAD, offsetof(presto_epoch_result, delivered_bytes_per_s)},
    {"read", "_bytes_per_s", SPREAD, offsetof(presto_epoch_result, read_bytes_per_s)},
    {"cpu_user", "_s", NUMBER, offsetof(presto_epoch_result, cpu_user_s)},
    {"cpu_system", "_s", NUMBER, offsetof(presto_epoch_result, cpu_system_s)},
    {"cpu", "_s_per_sample", NUMBER, offsetof(presto_epoch_result, cpu_s_per_sample)},
    {"context_switches", "_per_s", NUMBER, offsetof(presto_epoch_result, context_switches_per_s)},
    {"disk_read", "_bytes", NUMBER, offsetof(presto_epoch_result, disk_read_bytes)},
    {"peak_rss", "_bytes", NUMBER, offsetof(presto_epoch_result, peak_rss_bytes)},
    {"start", "_s", NUMBER, offsetof(presto_epoch_result, start_s)},
    {"steady", "_samples_per_s", NUMBER, offsetof(presto_epoch_result, steady_samples_per_s)},
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const spread_suffixes[] = {"", "_min", "_max"};

/* With a single run, least and most are unknown. */
static void spread_values(presto_spread spread, double values_out[3]) {
    values_out[0] = spread.median;
    values_out[1] = spread.runs > 1 ? spread.least : NAN;
    values_out[2] = spread.runs > 1 ? spread.most : NAN;
}

/* ---- CSV ---- */

static presto_status csv_header(const column *columns, size_t count, const char *prefix,
                                presto_buffer *text, presto_error *err) {
    for (size_t i = 0; i < count; i++) {
        size_t parts = columns[i].kind == SPREAD ? 3 : 1;
        for (size_t k = 0; k < parts; k++)
            PRESTO_TRY(presto__text_add(text, err, ",%s%s%s%s", prefix, columns[i].name,
                                        spread_suffixes[k], columns[i].unit));
    }
    return PRESTO_OK;
}

static presto_status csv_number(double value, presto_buffer *text, presto_error *err) {
    if (!isfinite(value))
        return presto__text_add(text, err, ",");
    char number_text[32];
    presto__decimal_format(number_text, sizeof number_text, 9, value);
    return presto__text_add(text, err, ",%s", number_text);
}

static presto_status csv_values(const column *columns, size_t count, const void *base,
                                presto_buffer *text, presto_error *err) {
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)base + columns[i].offset;
        double values[3] = {0};
        uint64_t whole = 0;
        switch (columns[i].kind) {
        case COUNT64:
            memcpy(&whole, at, sizeof whole);
            PRESTO_TRY(presto__text_add(text, err, ",%ju", (uintmax_t)whole));
            break;
        case NUMBER:
            memcpy(values, at, sizeof *values);
            PRESTO_TRY(csv_number(values[0], text, err));
            break;
        case SPREAD: {
            presto_spread spread;
            memcpy(&spread, at, sizeof spread);
            spread_values(spread, values);
            for (size_t k = 0; k < 3; k++)
                PRESTO_TRY(csv_number(values[k], text, err));
            break;
        }
        }
    }
    return PRESTO_OK;
}

static size_t count_fields(void) {
    size_t fields = 0;
    for (size_t i = 0; i < COUNT_OF(result_columns); i++)
        fields += result_columns[i].kind == SPREAD ? 3 : 1;
    for (size_t i = 0; i < COUNT_OF(epoch_columns); i++)
        fields += epoch_columns[i].kind == SPREAD ? 6 : 2;
    return fields + COUNT_OF(prediction_columns);
}

static presto_status csv_line(const presto_sweep *sweep, size_t i, presto_buffer *text,
                              presto_error *err) {
    const presto_strategy_result *result = &sweep->trials[i].result;
    for (int twice = 0; twice < 2; twice++) { /* `split` is what `stored` was called before */
        PRESTO_TRY(presto__text_add_csv(text, result->strategy.stored, err));
        PRESTO_TRY(presto__text_add(text, err, ","));
    }
    PRESTO_TRY(presto__text_add_csv(
        text, result->strategy.codec != NULL ? result->strategy.codec : "", err));
    PRESTO_TRY(presto__text_add(text, err, ",%u,%zu,%s,%d,%d,%d", result->strategy.threads,
                                result->strategy.shards, result->failed ? "failed" : "ok",
                                !result->failed && !result->is_predicted, i == sweep->best,
                                result->is_equal));
    if (result->failed) {
        for (size_t k = 0; k < count_fields() + 1; k++)
            PRESTO_TRY(presto__text_add(text, err, ","));
        char message[PRESTO_ERROR_MESSAGE_BYTES + PRESTO_ERROR_FILE_BYTES + 80];
        presto_error_format(&result->failure, message, sizeof message);
        PRESTO_TRY(presto__text_add(text, err, ","));
        PRESTO_TRY(presto__text_add_csv(text, message, err));
    } else {
        PRESTO_TRY(csv_number(result->score, text, err));
        PRESTO_TRY(csv_values(result_columns, COUNT_OF(result_columns), result, text, err));
        PRESTO_TRY(csv_values(prediction_columns, COUNT_OF(prediction_columns), result, text, err));
        PRESTO_TRY(csv_values(epoch_columns, COUNT_OF(epoch_columns), &result->cold, text, err));
        PRESTO_TRY(csv_values(epoch_columns, COUNT_OF(epoch_columns), &result->cached, text, err));
        PRESTO_TRY(presto__text_add(text, err, ","));
    }
    return presto__text_add(text, err, "\r\n");
}

presto_status presto__results_csv(const presto_sweep *sweep, presto_buffer *text_out,
                                  presto_error *err) {
    PRESTO_TRY(presto__text_add(
        text_out, err,
        "stored,split,codec,threads,shards,status,measured,recommended,equal,score"));
    PRESTO_TRY(csv_header(result_columns, COUNT_OF(result_columns), "", text_out, err));
    PRESTO_TRY(csv_header(prediction_columns, COUNT_OF(prediction_columns), "", text_out, err));
    PRESTO_TRY(csv_header(epoch_columns, COUNT_OF(epoch_columns), "cold_", text_out, err));
    PRESTO_TRY(csv_header(epoch_columns, COUNT_OF(epoch_columns), "cached_", text_out, err));
    PRESTO_TRY(presto__text_add(text_out, err, ",failure\r\n"));
    for (size_t i = 0; i < sweep->trial_count; i++)
        PRESTO_TRY(csv_line(sweep, i, text_out, err));
    return PRESTO_OK;
}

/* ---- JSON ---- */

/* As in dataset.json: text, if JSON readers would not keep all digits. */
static json_t *seed_value(uint64_t seed) {
    return seed <= INT64_MAX ? whole(seed) : json_sprintf("%ju", (uintmax_t)seed);
}

static json_t *spread_value(json_builder *builder, presto_spread spread) {
    json_t *object = json_object();
    double values[3];
    spread_values(spread, values);
    put(builder, object, "min", number(values[1]));
    put(builder, object, "median", number(values[0]));
    put(builder, object, "max", number(values[2]));
    return object;
}

static void put_columns(json_builder *builder, json_t *object, const column *columns, size_t count,
                        const void *base) {
    for (size_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", columns[i].name, columns[i].unit);
        const char *at = (const char *)base + columns[i].offset;
        double value;
        uint64_t integer;
        presto_spread spread;
        switch (columns[i].kind) {
        case COUNT64:
            memcpy(&integer, at, sizeof integer);
            put(builder, object, name, whole(integer));
            break;
        case NUMBER:
            memcpy(&value, at, sizeof value);
            put(builder, object, name, number(value));
            break;
        case SPREAD:
            memcpy(&spread, at, sizeof spread);
            put(builder, object, name, spread_value(builder, spread));
            break;
        }
    }
}

static json_t *costs_value(json_builder *builder, const presto__epochs *run) {
    json_t *array = json_array();
    for (size_t i = 0; i < run->cost_count; i++) {
        json_t *object = json_object();
        put(builder, object, run->costs[i].is_step ? "step" : "stage",
            text_value(run->costs[i].name));
        put(builder, object, "busy_s_per_sample", number(run->costs[i].busy_s_per_sample));
        append(builder, array, object);
    }
    return array;
}

static json_t *run_value(json_builder *builder, const presto__epochs *run) {
    json_t *object = json_object();
    const presto__measure *measure = &run->measure;
    put(builder, object, "epochs", whole(run->epochs));
    put(builder, object, "samples", whole(run->samples));
    put(builder, object, "wall_s", number(measure->wall_s));
    put(builder, object, "epoch_s", number(presto__epochs_typical_s(run)));
    put(builder, object, "samples_per_s", number(presto__epochs_rate(run)));
    put(builder, object, "second_samples",
        run->second_samples > 0 ? whole((uint64_t)run->second_samples) : json_null());
    put(builder, object, "second_s", number(run->second_s > 0 ? run->second_s : NAN));
    put(builder, object, "less_samples",
        run->less_samples > 0 ? whole((uint64_t)run->less_samples) : json_null());
    put(builder, object, "less_s", number(run->less_s > 0 ? run->less_s : NAN));
    put(builder, object, "files_s", number(run->less_s > 0 ? run->files_s : NAN));
    put(builder, object, "read_bytes", whole(run->read_bytes));
    put(builder, object, "delivered_bytes", whole(run->delivered_bytes));
    put(builder, object, "disk_read_bytes", number(measure->disk_read_bytes));
    put(builder, object, "cpu_user_s", number(measure->cpu_user_s));
    put(builder, object, "cpu_system_s", number(measure->cpu_system_s));
    put(builder, object, "context_switches", number(measure->context_switches));
    put(builder, object, "peak_rss_bytes", number(measure->peak_rss_bytes));
    put(builder, object, "machine_iowait_s", number(measure->machine_iowait_s));
    put(builder, object, "machine_steal_s", number(measure->machine_steal_s));
    put(builder, object, "machine_busy_s", number(measure->machine_busy_s));
    put(builder, object, "worker_wait_s", number(run->worker_wait_s));
    put(builder, object, "consumer_wait_s", number(run->consumer_wait_s));
    put(builder, object, "work", costs_value(builder, run));
    return object;
}

static json_t *epochs_value(json_builder *builder, const presto_epoch_result *result,
                            const presto__epochs *runs, size_t count) {
    json_t *object = json_object();
    put_columns(builder, object, epoch_columns, COUNT_OF(epoch_columns), result);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        append(builder, array, run_value(builder, &runs[i]));
    put(builder, object, "runs", array);
    return object;
}

static json_t *preparations_value(json_builder *builder, const presto__trial *trial) {
    json_t *array = json_array();
    for (size_t i = 0; i < trial->preparation_count; i++) {
        json_t *object = json_object();
        put(builder, object, "wall_s", number(trial->preparations[i].wall_s));
        put(builder, object, "cpu_s", number(trial->preparations[i].cpu_s));
        append(builder, array, object);
    }
    return array;
}

static void put_failure(json_builder *builder, json_t *object, const presto_error *failure) {
    char message[PRESTO_ERROR_MESSAGE_BYTES + PRESTO_ERROR_FILE_BYTES + 80];
    presto_error_format(failure, message, sizeof message);
    put(builder, object, "status", text_value("failed"));
    put(builder, object, "failure", text_value(message));
}

static void put_strategy(json_builder *builder, json_t *object, const presto_strategy *strategy) {
    put(builder, object, "stored", text_value(strategy->stored));
    put(builder, object, "split", text_value(strategy->stored)); /* its name before */
    put(builder, object, "codec", text_value(strategy->codec));
    put(builder, object, "threads", whole(strategy->threads));
    put(builder, object, "shards", whole(strategy->shards));
}

/* cold_samples_per_s: of its runs; what is predicted has a name that says so. */
static void put_prediction(json_builder *builder, json_t *object,
                           const presto_strategy_result *result) {
    const presto_sweep_prediction *said = &result->prediction;
    bool was_run = !result->is_predicted;
    double cold = result->cold.samples_per_s.median, cached = result->cached.samples_per_s.median;
    put(builder, object, "measured", json_boolean(was_run));
    put(builder, object, "cold_samples_per_s", number(was_run ? cold : NAN));
    put(builder, object, "cached_samples_per_s", number(was_run ? cached : NAN));
    put_columns(builder, object, prediction_columns, COUNT_OF(prediction_columns), result);
    put(builder, object, "cold_bound", text_value(presto_sweep_bound_name(said->cold_bound)));
    put(builder, object, "cached_bound", text_value(presto_sweep_bound_name(said->cached_bound)));
    put(builder, object, "elsewhere", json_boolean(said->is_elsewhere));
}

static json_t *trial_value(json_builder *builder, const presto_sweep *sweep,
                           const presto__trial *trial) {
    const presto_strategy_result *result = &trial->result;
    json_t *object = json_object();
    put_strategy(builder, object, &result->strategy);
    if (result->failed) {
        put_failure(builder, object, &result->failure);
        return object;
    }
    put(builder, object, "status", text_value("ok"));
    put_prediction(builder, object, result);
    put(builder, object, "score", number(result->score));
    put(builder, object, "equal", json_boolean(result->is_equal));
    put_columns(builder, object, result_columns, COUNT_OF(result_columns), result);
    put(builder, object, "records", presto__records_value(builder, sweep, trial));
    put(builder, object, "preparation_runs", preparations_value(builder, trial));
    put(builder, object, "cold",
        epochs_value(builder, &result->cold, trial->cold, trial->cold_count));
    put(builder, object, "cached",
        epochs_value(builder, &result->cached, trial->cached, trial->cached_count));
    return object;
}

static json_t *machine_value(json_builder *builder, const presto_sweep_facts *facts) {
    json_t *object = json_object();
    put(builder, object, "cpu_model", text_value(facts->cpu_model));
    put(builder, object, "cpus", whole(facts->cpus));
    put(builder, object, "memory_bytes", whole(facts->memory_bytes));
    put(builder, object, "kernel", text_value(facts->kernel));
    put(builder, object, "filesystem", text_value(facts->filesystem));
    return object;
}

static json_t *texts_value(json_builder *builder, char *const *texts, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        append(builder, array, text_value(texts[i]));
    return array;
}

static json_t *limit_value(double limit) {
    return limit > 0 ? json_real(limit) : json_null();
}

static json_t *options_value(json_builder *builder, const presto_sweep *sweep) {
    json_t *object = json_object();
    json_t *stored = texts_value(builder, sweep->space.splits, sweep->space.split_count);
    put(builder, object, "stored", json_incref(stored));
    put(builder, object, "splits", stored); /* its name before */
    put(builder, object, "codecs",
        texts_value(builder, sweep->space.codecs, sweep->space.codec_count));
    json_t *threads = json_array();
    for (size_t i = 0; i < sweep->space.thread_count; i++)
        append(builder, threads, whole(sweep->space.threads[i]));
    put(builder, object, "threads", threads);
    put(builder, object, "runs", whole(sweep->runs));
    put(builder, object, "run_s", number(sweep->run_s));
    put(builder, object, "cold_epochs", whole(sweep->cold_epochs));
    put(builder, object, "preparation_runs", whole(sweep->preparation_runs));
    put(builder, object, "batch_samples", whole(sweep->facts.batch_samples));
    put(builder, object, "seed", seed_value(sweep->seed));
    put(builder, object, "mode",
        text_value(sweep->mode == PRESTO_SWEEP_PREDICT ? "predict" : "measure"));
    put(builder, object, "samples", whole(sweep->wanted_samples));
    put(builder, object, "confirm", whole(sweep->confirm_runs));
    put(builder, object, "adds_seekable", json_boolean(sweep->adds_seekable));
    char on_error[PRESTO__ON_ERROR_BYTES];
    put(builder, object, "on_error",
        text_value(presto__on_error_format(sweep, on_error)[0] != '\0' ? on_error : "fail"));
    put(builder, object, "work_dir", text_value(sweep->work_dir));
    json_t *weights = json_object();
    put(builder, weights, "preparation", number(sweep->weights.preparation));
    put(builder, weights, "storage", number(sweep->weights.storage));
    put(builder, weights, "throughput", number(sweep->weights.throughput));
    put(builder, object, "weights", weights);
    const presto_sweep_limits *limits = &sweep->limits;
    put(builder, object, "target_samples_per_s", limit_value(limits->target_samples_per_s));
    put(builder, object, "headroom", number(limits->headroom));
    put(builder, object, "decide_s", number(sweep->decide_s));
    put(builder, object, "most_stored_bytes", limit_value((double)limits->most_stored_bytes));
    put(builder, object, "most_preparation_s", limit_value(limits->most_preparation_s));
    const presto_sweep_prices *prices = &sweep->prices;
    json_t *given = presto__prices_given(prices) ? json_object() : json_null();
    if (json_is_object(given)) {
        put(builder, given, "storage_gb_month", number(prices->storage_gb_month));
        put(builder, given, "cpu_h", number(prices->cpu_h));
        put(builder, given, "accelerator_h", number(prices->accelerator_h));
        put(builder, given, "epochs", number(prices->epochs));
        put(builder, given, "months", number(prices->months));
    }
    put(builder, object, "prices", given);
    char storage[PRESTO_STORAGE_TEXT_BYTES];
    presto__storage_format(&sweep->storage, storage);
    put(builder, object, "storage", storage[0] == '\0' ? json_null() : text_value(storage));
    return object;
}

static json_t *source_value(json_builder *builder, const presto_sweep *sweep) {
    json_t *object = json_object();
    put(builder, object, "paths", texts_value(builder, sweep->paths, sweep->path_count));
    put(builder, object, "samples", whole(sweep->facts.source_samples));
    put(builder, object, "bytes", whole(sweep->facts.source_bytes));
    put(builder, object, "measured_samples", whole(sweep->facts.samples));
    put(builder, object, "measured_bytes", whole(sweep->facts.sample_bytes));
    uint64_t half = presto__tail_half(&sweep->files);
    put(builder, object, "measured_half_in", half > 0 ? whole(half) : json_null());
    return object;
}

static json_t *recommendation_value(json_builder *builder, const presto_sweep *sweep) {
    json_t *object = json_object();
    put(builder, object, "result", whole(sweep->best));
    put_strategy(builder, object, &sweep->trials[sweep->best].result.strategy);
    static const char *const verdicts[] = {"no limits", "keeps", "misses target", "exceeds limits"};
    put(builder, object, "limits", text_value(verdicts[sweep->verdict]));
    presto__merit merit = presto__merit_of(&sweep->trials[sweep->best].result);
    put(builder, object, "slowest_samples_per_s", number(presto__merit_slowest_rate(&merit)));
    json_t *next = json_array();
    for (size_t i = 0, at; (at = presto_sweep_runner_up(sweep, i)) != SIZE_MAX; i++)
        append(builder, next, whole(at));
    put(builder, object, "runners_up", next);
    size_t cached =
        sweep->verdict == PRESTO_SWEEP_MISSES ? presto__cache_that_reaches(sweep) : SIZE_MAX;
    put(builder, object, "cache_reaches", cached != SIZE_MAX ? whole(cached) : json_null());
    put(builder, object, "reason", text_value(presto_sweep_reason(sweep)));
    put(builder, object, "write_command", text_value(presto_sweep_write_command(sweep)));
    put(builder, object, "load_command", text_value(presto_sweep_load_command(sweep)));
    return object;
}

static json_t *sweep_value(json_builder *builder, const presto_sweep *sweep) {
    json_t *object = json_object();
    put(builder, object, "schema", whole(1));
    put(builder, object, "tool_version", text_value(presto_version()));
    put(builder, object, "is_stopped", json_boolean(sweep->is_stopped));
    put(builder, object, "started", text_value(sweep->facts.started));
    put(builder, object, "elapsed_s", number(sweep->facts.elapsed_s));
    put(builder, object, "machine", machine_value(builder, &sweep->facts));
    put(builder, object, "pipeline", json_loads(sweep->pipeline_json, 0, NULL));
    put(builder, object, "source", source_value(builder, sweep));
    put(builder, object, "options", options_value(builder, sweep));
    put(builder, object, "recommendation", recommendation_value(builder, sweep));
    put(builder, object, "confidence", presto__confidence_value(builder, sweep));
    put(builder, object, "what_if", presto__what_ifs_value(builder, sweep));
    put(builder, object, "notes", texts_value(builder, sweep->notes, sweep->note_count));
    json_t *results = json_array();
    for (size_t i = 0; i < sweep->trial_count; i++)
        append(builder, results, trial_value(builder, sweep, &sweep->trials[i]));
    put(builder, object, "results", results);
    put(builder, object, "model", sweep->model != NULL ? presto__model_json(sweep) : json_null());
    return object;
}

presto_status presto__results_json(const presto_sweep *sweep, presto_buffer *text_out,
                                   presto_error *err) {
    json_builder builder = {false};
    json_t *object = sweep_value(&builder, sweep);
    char *text = object != NULL && !builder.failed
                     ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9))
                     : NULL;
    json_decref(object);
    if (text == NULL)
        return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET,
                           "results.json does not fit into memory");
    presto_status status = presto__text_add(text_out, err, "%s\n", text);
    free(text);
    return status;
}
