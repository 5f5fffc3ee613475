/* SPDX-License-Identifier: Apache-2.0 */
/* presto-write --explain: what would run, as text or JSON. */
#include <stdio.h>

#include <presto/stream.h>

#include "write.h"

/* Names of the steps from `first` on, before `end`. */
static json_t *steps_json(const presto_pipeline *pipeline, size_t first, size_t end) {
    json_t *steps = json_array();
    for (size_t i = first; i < end; i++)
        cli_json_append(steps, json_string(presto_pipeline_step_type(pipeline, i)->name));
    return steps;
}

static int explain_json(const write_job *w, const presto_stream *stream) {
    const presto_convert_options *o = &w->convert;
    const presto_pipeline *pipeline = stream->pipeline;
    size_t stored = presto_pipeline_representation_find(pipeline, o->up_to);
    size_t done = presto_pipeline_representation_steps(pipeline, stored);
    const cli_count counts[] = {
        {"samples", presto_source_count(stream->source)},
        {"source_bytes", presto_source_bytes(stream->source)},
        {"threads", o->threads},
        {o->shard_bytes > 0 ? "shard_bytes" : "shards",
         o->shard_bytes > 0 ? o->shard_bytes : o->shards},
    };
    json_t *object = cli_json_new();
    cli_json_set(object, "pipeline", cli_json_text(presto_pipeline_name(pipeline)));
    cli_json_set(object, "stored", cli_json_text(o->up_to));
    cli_json_set(object, "split", cli_json_text(o->up_to)); /* its name before */
    cli_json_set(object, "codec", cli_json_text(o->codec));
    cli_json_set(object, "file_compression",
                 json_string(presto_file_compression_name(o->file_compression)));
    cli_json_set_counts(object, counts, sizeof counts / sizeof counts[0]);
    cli_json_set(object, "auto_threads", json_boolean(o->auto_threads));
    cli_json_set(object, "steps_now", steps_json(pipeline, 0, done));
    cli_json_set(object, "steps_left",
                 steps_json(pipeline, done, presto_pipeline_step_count(pipeline)));
    return cli_print_json(object);
}

int write_explain(const write_job *w, const presto_pipeline *pipeline, const char *const *paths,
                  size_t path_count) {
    presto_stream_options input;
    presto_stream stream = {0};
    presto_error err;
    char count[PRESTO_TEXT_BYTES], bytes[PRESTO_TEXT_BYTES], shards[2 * PRESTO_TEXT_BYTES];
    presto_stream_options_defaults(&input);
    input.pipeline = w->pipeline_name;
    input.read = pipeline;
    input.to = w->convert.up_to;
    input.partition = w->convert.partition;
    if (presto_stream_open(paths, path_count, &input, &stream, &err) < 0)
        return cli_error(&err);
    if (w->json) {
        int code = explain_json(w, &stream);
        presto_stream_close(&stream);
        return code;
    }
    printf("source: %s, %s\n",
           presto_format_things(presto_source_count(stream.source), "sample", count),
           presto_format_bytes((double)presto_source_bytes(stream.source), bytes));
    cli_print_notes(stream.source);
    cli_put("pipeline: %s\n", presto_pipeline_name(stream.pipeline));
    if (w->convert.shard_bytes > 0)
        snprintf(shards, sizeof shards, "shards of up to %s",
                 presto_format_bytes((double)w->convert.shard_bytes, bytes));
    else
        presto_format_things(w->convert.shards, "shard", shards);
    cli_put("store: %s, codec %s, %s, file compression %s\n", w->convert.up_to, w->convert.codec,
            shards, presto_file_compression_name(w->convert.file_compression));
    if (stream.plan != NULL && presto_plan_step_count(stream.plan) > 0)
        printf("steps now, on %s%s:\n%s", w->convert.auto_threads ? "up to " : "",
               presto_format_things(w->convert.threads, "thread", count),
               presto_plan_explain(stream.plan));
    size_t done = presto_pipeline_representation_steps(
        stream.pipeline, presto_pipeline_representation_find(stream.pipeline, w->convert.up_to));
    size_t steps = presto_pipeline_step_count(stream.pipeline);
    printf("steps left to presto-load:%s", done == steps ? " none" : "");
    for (size_t i = done; i < steps; i++)
        cli_put("%s %s", i > done ? "," : "", presto_pipeline_step_type(stream.pipeline, i)->name);
    putchar('\n');
    presto_stream_close(&stream);
    return cli_close_stdout(CLI_DONE);
}
