/* SPDX-License-Identifier: Apache-2.0 */
/* Writes strategy.yaml: the recommended strategy, with the expected figures. Quoting is libyaml's. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "../base/decimal_internal.h"
#include "profile_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* Emitter calls follow one another; after the first failure the rest do nothing. */
typedef struct writer {
    yaml_emitter_t emitter;
    bool failed;
} writer;

static int append_output(void *user, unsigned char *data, size_t bytes) {
    return presto_buffer_append(user, presto_span_of(data, bytes), NULL) == PRESTO_OK;
}

static void emit(writer *out, yaml_event_t *event, int is_made) {
    if (!is_made || out->failed) {
        if (is_made)
            yaml_event_delete(event);
        out->failed = true;
        return;
    }
    /* The emitter owns the event from here on, also on failure. */
    if (!yaml_emitter_emit(&out->emitter, event))
        out->failed = true;
}

static void emit_scalar(writer *out, const char *text, bool is_text) {
    yaml_event_t event;
    /* A text that would read as a number or as null is quoted. */
    yaml_scalar_style_t style = YAML_PLAIN_SCALAR_STYLE;
    static const char *const words[] = {"",     "~",     "null", "Null", "NULL",
                                        "true", "false", "yes",  "no"};
    char *end;
    (void)presto__decimal_parse(text, &end);
    bool is_special = *end == '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is_special = is_special || strcmp(text, words[i]) == 0;
    if (is_text && is_special)
        style = YAML_SINGLE_QUOTED_SCALAR_STYLE;
    emit(out, &event,
         yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                      (int)strlen(text), 1, 1, style));
}

static void emit_text(writer *out, const char *key, const char *text) {
    emit_scalar(out, key, false);
    emit_scalar(out, text, true);
}

/* The changes that the pipeline is read with. */
static void emit_set(writer *out, const presto_sweep *sweep) {
    yaml_event_t event;
    bool needs_seekable = presto__needs_seekable(sweep);
    if (sweep->set_count == 0 && !needs_seekable)
        return;
    emit_scalar(out, "set", false);
    emit(out, &event,
         yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_FLOW_SEQUENCE_STYLE));
    for (size_t i = 0; i < sweep->set_count; i++)
        emit_scalar(out, sweep->set[i], true);
    if (needs_seekable)
        emit_scalar(out, PRESTO_SET_SEEKABLE, true);
    emit(out, &event, yaml_sequence_end_event_initialize(&event));
}

static void emit_whole(writer *out, const char *key, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%ju", (uintmax_t)value);
    emit_scalar(out, key, false);
    emit_scalar(out, text, false);
}

static void emit_number(writer *out, const char *key, double value) {
    if (!isfinite(value))
        return;
    char text[32];
    presto__decimal_format(text, sizeof text, 9, value);
    emit_scalar(out, key, false);
    emit_scalar(out, text, false);
}

static void emit_mapping(writer *out) {
    yaml_event_t event;
    emit(out, &event,
         yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
}

static void emit_mapping_end(writer *out) {
    yaml_event_t event;
    emit(out, &event, yaml_mapping_end_event_initialize(&event));
}

/* A pipeline given as a path is named by its absolute path, because the file may be read from
 * another folder. NULL: the given name is used. */
static char *absolute_pipeline(const char *pipeline) {
    size_t length = strlen(pipeline);
    bool is_path = strchr(pipeline, '/') != NULL ||
                   (length > 5 && strcmp(pipeline + length - 5, ".yaml") == 0) ||
                   (length > 4 && strcmp(pipeline + length - 4, ".yml") == 0);
    return is_path ? realpath(pipeline, NULL) : NULL;
}

static void emit_pipeline(writer *out, const char *pipeline) {
    char *absolute = absolute_pipeline(pipeline);
    emit_text(out, "pipeline", absolute != NULL ? absolute : pipeline);
    free(absolute);
}

presto_status presto__strategy_check_pipeline(const char *pipeline, presto_error *err) {
    char *absolute = absolute_pipeline(pipeline);
    const char *name = absolute != NULL ? absolute : pipeline;
    yaml_event_t event;
    presto_status status = PRESTO_OK;
    if (yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)name,
                                     (int)strlen(name), 1, 1, YAML_PLAIN_SCALAR_STYLE)) {
        yaml_event_delete(&event);
    } else {
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "this path of a pipeline is not UTF-8, so that strategy.yaml cannot "
                             "name it");
        presto_error_set_file(err, name);
    }
    free(absolute);
    return status;
}

static void emit_strategy(writer *out, const presto_sweep *sweep) {
    const presto_strategy_result *best = &sweep->trials[sweep->best].result;
    emit_mapping(out);
    emit_whole(out, "schema", PRESTO__STRATEGY_SCHEMA);
    emit_pipeline(out, sweep->pipeline);
    emit_set(out, sweep);
    emit_text(out, "stored", best->strategy.stored);
    if (best->strategy.codec != NULL) {
        emit_text(out, "codec", best->strategy.codec);
        emit_whole(out, "shards", best->strategy.shards);
    }
    emit_whole(out, "threads", best->strategy.threads);
    emit_whole(out, "batch_samples", sweep->facts.batch_samples);
    emit_whole(out, "seed", sweep->seed);
    emit_scalar(out, "expected", false);
    emit_mapping(out);
    emit_number(out, "cold_samples_per_s", best->cold.samples_per_s.median);
    emit_number(out, "cached_samples_per_s", best->cached.samples_per_s.median);
    emit_number(out, "total_stored_bytes", best->total_stored_bytes);
    emit_number(out, "total_preparation_s", best->total_preparation_s);
    emit_mapping_end(out);
    emit_mapping_end(out);
}

presto_status presto__strategy_yaml(const presto_sweep *sweep, presto_buffer *text_out,
                                    presto_error *err) {
    writer out = {.failed = false};
    if (!yaml_emitter_initialize(&out.emitter))
        return presto_fail_memory(err, sizeof out.emitter);
    yaml_emitter_set_output(&out.emitter, append_output, text_out);
    yaml_emitter_set_unicode(&out.emitter, 1);
    yaml_emitter_set_width(&out.emitter, -1);
    yaml_event_t event;
    emit(&out, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    emit(&out, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    emit_strategy(&out, sweep);
    emit(&out, &event, yaml_document_end_event_initialize(&event, 1));
    emit(&out, &event, yaml_stream_end_event_initialize(&event));
    bool failed = out.failed;
    const char *problem = out.emitter.problem;
    presto_status status = PRESTO_OK;
    if (failed)
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "strategy.yaml cannot be written: %s",
                             problem != NULL ? problem : "a name is not UTF-8");
    yaml_emitter_delete(&out.emitter);
    return status;
}
