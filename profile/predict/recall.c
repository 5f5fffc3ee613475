/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the probes have found, as lines of the journal: a sweep that is resumed predicts the same,
 * and probes nothing again. Whoever wrote the file, nothing in it does more harm than wrong figures.
 */
#include "../report/json_internal.h"
#include "predict_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MOST 1024

/* ---- the figures, declared once for both directions ---- */

typedef enum kind { NUMBER, PAIR, COUNT } kind; /* double, presto__pair, uint64_t */

typedef struct field {
    const char *name;
    kind kind;
    size_t offset;
} field;

#define OF_MODEL(name, kind, member)                                                               \
    { name, kind, offsetof(presto__model, member) }
static const field model_fields[] = {
    OF_MODEL("memory_bytes_per_s", PAIR, memory_bytes_per_s),
    OF_MODEL("cache_samples", COUNT, cache.samples),
    OF_MODEL("cache_worker_s", PAIR, cache.worker_s),
    OF_MODEL("cache_bytes", NUMBER, cache.bytes),
    OF_MODEL("step_samples", COUNT, step_samples),
};

/* Only of storage that was probed: one that is given may have no limits. */
static const field storage_fields[] = {
    OF_MODEL("storage_bytes_per_s", NUMBER, storage.bytes_per_s),
    OF_MODEL("storage_bytes_per_s_per_thread", NUMBER, storage.bytes_per_s_per_thread),
    OF_MODEL("storage_reads_per_s", NUMBER, storage.reads_per_s),
    OF_MODEL("storage_latency_s", NUMBER, storage.latency_s),
    OF_MODEL("storage_open_s", NUMBER, storage.open_s),
};

#define OF_STEP(name, member)                                                                      \
    { name, NUMBER, offsetof(presto__step_cost, member) }
static const field step_fields[] = {
    OF_STEP("mean_s", wall_mean_s),     OF_STEP("p10_s", wall_p10_s),
    OF_STEP("median_s", wall_median_s), OF_STEP("p90_s", wall_p90_s),
    OF_STEP("most_s", wall_most_s),     OF_STEP("cpu_mean_s", cpu_mean_s),
    OF_STEP("out_bytes", out_bytes),
};

#define OF_SPLIT(name, kind, member)                                                               \
    { name, kind, offsetof(presto__model_split, member) }
static const field split_fields[] = {
    OF_SPLIT("start_s", PAIR, start_s),
    OF_SPLIT("files_tried", COUNT, files.tried),
    OF_SPLIT("files_cold_s", PAIR, files.cold_s),
    OF_SPLIT("files_cached_s", PAIR, files.cached_s),
    OF_SPLIT("files_prepare_s", NUMBER, files.prepare_s),
};

#define OF_CODEC(name, kind, member)                                                               \
    { name, kind, offsetof(presto__model_codec, member) }
static const field codec_fields[] = {
    OF_CODEC("stored_bytes", NUMBER, stored_bytes),
    OF_CODEC("compress_s", PAIR, compress_s),
    OF_CODEC("decompress_s", PAIR, decompress_s),
    OF_CODEC("loaded", COUNT, tried.samples),
    OF_CODEC("loaded_raw_bytes", NUMBER, tried.raw_bytes),
    OF_CODEC("loaded_cold_s", PAIR, tried.coded.cold_s),
    OF_CODEC("loaded_cached_s", PAIR, tried.coded.cached_s),
    OF_CODEC("loaded_plain_cached_s", PAIR, tried.plain_cached_s),
    OF_CODEC("records", COUNT, records),
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- to JSON ---- */

static json_t *pair_value(json_builder *to, presto__pair value) {
    json_t *array = json_array();
    append(to, array, number(value.one));
    append(to, array, number(value.all));
    return array;
}

static void put_fields(json_builder *to, json_t *object, const field *fields, size_t count,
                       const void *base) {
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)base + fields[i].offset;
        presto__pair pair;
        double value;
        uint64_t amount;
        switch (fields[i].kind) {
        case NUMBER:
            memcpy(&value, at, sizeof value);
            put(to, object, fields[i].name, number(value));
            break;
        case PAIR:
            memcpy(&pair, at, sizeof pair);
            put(to, object, fields[i].name, pair_value(to, pair));
            break;
        case COUNT:
            memcpy(&amount, at, sizeof amount);
            put(to, object, fields[i].name, whole(amount));
            break;
        }
    }
}

static json_t *finish(const json_builder *to, json_t *object) {
    if (!to->failed)
        return object;
    json_decref(object);
    return NULL;
}

json_t *presto__machine_probe_json(const presto__model *model) {
    json_builder to = {false};
    json_t *object = json_object(), *steps = json_array();
    put_fields(&to, object, model_fields, COUNT_OF(model_fields), model);
    if (!model->is_storage_given)
        put_fields(&to, object, storage_fields, COUNT_OF(storage_fields), model);
    for (size_t i = 0; i < model->step_count; i++) {
        json_t *step = json_object();
        put(&to, step, model->steps[i].is_step ? "step" : "stage",
            json_string(model->steps[i].name));
        put_fields(&to, step, step_fields, COUNT_OF(step_fields), &model->steps[i]);
        append(&to, steps, step);
    }
    put(&to, object, "steps", steps);
    return finish(&to, object);
}

static void put_failure(json_builder *to, json_t *object, const presto_error *failure) {
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    presto_error_format(failure, text, sizeof text);
    put(to, object, "failure", text_value(text));
    put(to, object, "status", json_integer(failure->status));
}

json_t *presto__split_probe_json(const presto__model *model, size_t s) {
    const presto__model_split *split = &model->splits[s];
    json_builder to = {false};
    json_t *object = json_object(), *codecs = json_array();
    put_fields(&to, object, split_fields, COUNT_OF(split_fields), split);
    for (size_t c = 0; c < model->codec_count; c++) {
        const presto__model_codec *codec = &split->codecs[c];
        bool is_tried = codec->is_known || codec->failure != NULL;
        json_t *found = is_tried ? json_object() : json_null();
        if (codec->is_known)
            put_fields(&to, found, codec_fields, COUNT_OF(codec_fields), codec);
        else if (is_tried)
            put_failure(&to, found, codec->failure);
        append(&to, codecs, found);
    }
    put(&to, object, "codecs", codecs);
    return finish(&to, object);
}

/* ---- from JSON ---- */

static presto_status refuse(const char *name, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                       "what it says of a probe is wrong: %s", name);
}

/* What was not known is null. */
static bool read_number(const json_t *value, double *value_out) {
    *value_out = json_is_number(value) ? json_number_value(value) : NAN;
    return json_is_null(value) || *value_out >= 0;
}

static bool read_field(const json_t *value, const field *what, void *base) {
    char *at = (char *)base + what->offset;
    presto__pair pair;
    double one;
    uint64_t amount;
    switch (what->kind) {
    case NUMBER:
        if (!read_number(value, &one))
            return false;
        memcpy(at, &one, sizeof one);
        break;
    case PAIR:
        if (json_array_size(value) != 2 || !read_number(json_array_get(value, 0), &pair.one) ||
            !read_number(json_array_get(value, 1), &pair.all))
            return false;
        memcpy(at, &pair, sizeof pair);
        break;
    case COUNT:
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return false;
        amount = (uint64_t)json_integer_value(value);
        memcpy(at, &amount, sizeof amount);
        break;
    }
    return true;
}

static presto_status read_fields(const json_t *object, const field *fields, size_t count,
                                 void *base, presto_error *err) {
    for (size_t i = 0; i < count; i++)
        if (!read_field(json_object_get(object, fields[i].name), &fields[i], base))
            return refuse(fields[i].name, err);
    return PRESTO_OK;
}

static presto_status read_step(const json_t *object, presto__step_cost *step, presto_error *err) {
    step->is_step = json_object_get(object, "step") != NULL;
    const char *name = json_string_value(json_object_get(object, step->is_step ? "step" : "stage"));
    if (name == NULL || strlen(name) >= sizeof step->name)
        return refuse("a step's name", err);
    memcpy(step->name, name, strlen(name) + 1);
    return read_fields(object, step_fields, COUNT_OF(step_fields), step, err);
}

presto_status presto__machine_recall(presto__model *model, const json_t *probe, presto_error *err) {
    const json_t *steps = json_object_get(probe, "steps");
    size_t count = json_array_size(steps);
    if (!json_is_array(steps) || count > STEPS_MOST)
        return refuse("steps", err);
    model->steps = calloc(count + 1, sizeof *model->steps);
    if (model->steps == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *model->steps);
    for (; model->step_count < count; model->step_count++)
        PRESTO_TRY(read_step(json_array_get(steps, model->step_count),
                             &model->steps[model->step_count], err));
    if (!model->is_storage_given)
        PRESTO_TRY(read_fields(probe, storage_fields, COUNT_OF(storage_fields), model, err));
    return read_fields(probe, model_fields, COUNT_OF(model_fields), model, err);
}

/* Why the codec cannot be used. */
static presto_status read_failure(const json_t *object, presto__model_codec *codec,
                                  presto_error *err) {
    const char *text = json_string_value(json_object_get(object, "failure"));
    json_int_t status = json_integer_value(json_object_get(object, "status"));
    if (text == NULL || status >= 0 || status < INT_MIN)
        return refuse("failure", err);
    codec->failure = malloc(sizeof *codec->failure);
    if (codec->failure == NULL)
        return presto_fail_memory(err, sizeof *codec->failure);
    (void)presto_fail(codec->failure, (presto_status)status, PRESTO_NO_OFFSET, "%s", text);
    return PRESTO_OK;
}

static presto_status read_codec(const json_t *object, presto__model_codec *codec,
                                presto_error *err) {
    *codec = (presto__model_codec){.cold_factor = 1, .cached_factor = 1, .preparation_factor = 1};
    if (json_is_null(object))
        return PRESTO_OK; /* not tried */
    codec->is_known = json_object_get(object, "failure") == NULL;
    return codec->is_known ? read_fields(object, codec_fields, COUNT_OF(codec_fields), codec, err)
                           : read_failure(object, codec, err);
}

presto_status presto__split_recall(presto__model *model, size_t s, const json_t *probe,
                                   presto_error *err) {
    presto__model_split *split = &model->splits[s];
    const json_t *codecs = json_object_get(probe, "codecs");
    if (json_array_size(codecs) != model->codec_count)
        return refuse("codecs", err);
    for (size_t c = 0; c < model->codec_count; c++)
        PRESTO_TRY(read_codec(json_array_get(codecs, c), &split->codecs[c], err));
    split->is_recalled = true;
    return read_fields(probe, split_fields, COUNT_OF(split_fields), split, err);
}
