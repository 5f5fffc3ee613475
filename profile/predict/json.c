/* SPDX-License-Identifier: Apache-2.0 */
/* The model as an object of results.json: docs/sweep.md describes it. */
#include "../report/json_internal.h"
#include "predict_internal.h"

#include <string.h>

#define MOST_CURVE_THREADS 64

/* 0 is no limit: null. */
static json_t *limit(double value) {
    return value > 0 ? json_real(value) : json_null();
}

static json_t *pair(json_builder *to, presto__pair value) {
    json_t *object = json_object();
    put(to, object, "one_thread", number(value.one));
    put(to, object, "all_cores", number(value.all));
    return object;
}

static json_t *storage_value(json_builder *to, const presto__model *model) {
    json_t *object = json_object();
    const presto_storage *storage = &model->storage;
    put(to, object, "is_given", json_boolean(model->is_storage_given));
    put(to, object, "bytes_per_s", limit(storage->bytes_per_s));
    put(to, object, "bytes_per_s_per_thread", limit(storage->bytes_per_s_per_thread));
    put(to, object, "reads_per_s", limit(storage->reads_per_s));
    put(to, object, "latency_s", limit(storage->latency_s));
    put(to, object, "open_s", limit(storage->open_s));
    return object;
}

static json_t *parts_value(json_builder *to, const presto__model_split *split) {
    json_t *array = json_array();
    for (size_t i = 0; i < split->part_count; i++) {
        json_t *object = json_object();
        put(to, object, split->parts[i].is_step ? "step" : "stage",
            text_value(split->parts[i].name));
        put(to, object, "busy_s_per_sample", number(split->parts[i].busy_s));
        append(to, array, object);
    }
    return array;
}

static json_t *codecs_value(json_builder *to, const presto__model *model,
                            const presto__model_split *split) {
    json_t *array = json_array();
    for (size_t c = 0; !split->is_raw && c < model->codec_count; c++) {
        const presto__model_codec *codec = &split->codecs[c];
        if (!codec->is_known)
            continue;
        json_t *object = json_object();
        put(to, object, "codec", text_value(model->codecs[c]));
        put(to, object, "stored_bytes_per_sample", number(codec->stored_bytes));
        put(to, object, "ratio", number(codec->stored_bytes / fmax(split->plain_bytes, 1)));
        put(to, object, "compress_s_per_sample", pair(to, codec->compress_s));
        put(to, object, "decompress_s_per_sample", pair(to, codec->decompress_s));
        put(to, object, "loaded", whole(codec->tried.samples));
        put(to, object, "cold_worker_s_per_sample", pair(to, codec->times.cold_s));
        put(to, object, "cached_worker_s_per_sample", pair(to, codec->times.cached_s));
        put(to, object, "storage_wait_s_per_sample", pair(to, codec->wait_s));
        put(to, object, "records", whole(codec->records));
        put(to, object, "cold_calibration", number(codec->cold_factor));
        put(to, object, "cached_calibration", number(codec->cached_factor));
        append(to, array, object);
    }
    return array;
}

static const presto__model_codec *plain_codec(const presto__model *model,
                                              const presto__model_split *split) {
    size_t c = 0;
    while (!split->is_raw && strcmp(model->codecs[c], "none") != 0)
        c++;
    return &split->codecs[c];
}

static json_t *files_value(json_builder *to, const presto__model_files *files) {
    if (files->tried == 0)
        return json_null();
    json_t *object = json_object();
    put(to, object, "tried", whole(files->tried));
    put(to, object, "cold_s_per_file", pair(to, files->cold_s));
    put(to, object, "cached_s_per_file", pair(to, files->cached_s));
    put(to, object, "prepare_s_per_file", number(files->prepare_s));
    return object;
}

static json_t *split_value(json_builder *to, const presto__model *model,
                           const presto__model_split *split) {
    json_t *object = json_object();
    put(to, object, "stored", text_value(split->name));
    put(to, object, "split", text_value(split->name)); /* its name before */
    put(to, object, "raw_bytes_per_sample", number(split->raw_bytes));
    put(to, object, "plain_bytes_per_sample", number(split->plain_bytes));
    put(to, object, "delivered_bytes_per_sample", number(split->delivered_bytes));
    put(to, object, "cached_worker_s_per_sample", pair(to, split->times.cached_s));
    put(to, object, "cold_worker_s_per_sample", pair(to, split->times.cold_s));
    put(to, object, "storage_wait_s_per_sample", pair(to, plain_codec(model, split)->wait_s));
    put(to, object, "touched_bytes_per_sample", number(split->touched_bytes));
    put(to, object, "start_s", pair(to, split->start_s));
    put(to, object, "handover_s_per_sample", number(split->handover_s));
    put(to, object, "prepare_worker_s_per_sample", pair(to, split->prepare_s));
    put(to, object, "prepare_storage_s_per_sample", number(split->prepare_io_s));
    put(to, object, "files", files_value(to, &split->files));
    put(to, object, "work", parts_value(to, split));
    put(to, object, "codecs", codecs_value(to, model, split));
    return object;
}

static json_t *step_value(json_builder *to, const presto__step_cost *cost) {
    json_t *object = json_object();
    put(to, object, cost->is_step ? "step" : "stage", text_value(cost->name));
    put(to, object, "mean_s", number(cost->wall_mean_s));
    put(to, object, "p10_s", number(cost->wall_p10_s));
    put(to, object, "median_s", number(cost->wall_median_s));
    put(to, object, "p90_s", number(cost->wall_p90_s));
    put(to, object, "most_s", number(cost->wall_most_s));
    put(to, object, "cpu_mean_s", number(cost->cpu_mean_s));
    put(to, object, "out_bytes", number(cost->out_bytes));
    return object;
}

/* The rates of the recommended strategy by threads. */
static json_t *curve_value(json_builder *to, const presto_sweep *sweep) {
    json_t *array = json_array();
    const presto__trial *best = &sweep->trials[sweep->best];
    for (unsigned threads = 1; threads <= MOST_CURVE_THREADS; threads++) {
        presto_strategy strategy = best->result.strategy;
        presto__rates rates;
        strategy.threads = threads;
        if (!presto__model_rates(sweep->model, &strategy, NULL, &rates))
            continue;
        json_t *object = json_object();
        put(to, object, "threads", whole(threads));
        put(to, object, "cold_samples_per_s", number(rates.cold_samples_per_s));
        put(to, object, "cached_samples_per_s", number(rates.cached_samples_per_s));
        put(to, object, "cold_bound", text_value(presto_sweep_bound_name(rates.cold_bound)));
        put(to, object, "cached_bound", text_value(presto_sweep_bound_name(rates.cached_bound)));
        append(to, array, object);
    }
    return array;
}

json_t *presto__model_json(const presto_sweep *sweep) {
    json_builder to = {false};
    const presto__model *model = sweep->model;
    json_t *object = json_object();
    put(&to, object, "cores", whole(model->cores));
    put(&to, object, "uncertainty", number(model->uncertainty));
    put(&to, object, "overlap", number(model->overlap));
    put(&to, object, "storage", storage_value(&to, model));
    put(&to, object, "memory_bytes_per_s", pair(&to, model->memory_bytes_per_s));
    put(&to, object, "step_samples", whole(model->step_samples));
    json_t *steps = json_array();
    for (size_t i = 0; i < model->step_count; i++)
        append(&to, steps, step_value(&to, &model->steps[i]));
    put(&to, object, "steps", steps);
    json_t *stored = json_array();
    for (size_t s = 0; s < model->split_count; s++)
        if (model->splits[s].known == PRESTO__SPLIT_MEASURED)
            append(&to, stored, split_value(&to, model, &model->splits[s]));
    put(&to, object, "stored", json_incref(stored));
    put(&to, object, "splits", stored); /* its name before */
    put(&to, object, "curve", curve_value(&to, sweep));
    if (!to.failed)
        return object;
    json_decref(object);
    return NULL;
}
