/* SPDX-License-Identifier: Apache-2.0 */
/* presto-load --explain: what would run, as text or as JSON. */
#include "load.h"

#include <stdio.h>

#include "../cli/cli.h"

static const char *input_kind(const presto_stream *stream) {
    size_t parts;
    if (presto_source_parts(stream->source, &parts) != NULL)
        return "mix";
    return stream->dataset == NULL                   ? "raw source"
           : presto_dataset_is_ours(stream->dataset) ? "dataset"
                                                     : "TFRecord files without dataset.json";
}

static json_t *plan_json(const presto_plan *plan) {
    bool has_steps = plan != NULL && presto_plan_step_count(plan) > 0;
    return cli_json_text(has_steps ? presto_plan_explain(plan) : NULL);
}

static int print_json(const load *l, const presto_stream *stream) {
    const presto_dataset_info *info =
        stream->dataset != NULL ? presto_dataset_get_info(stream->dataset) : NULL;
    const cli_count counts[] = {
        {"samples", presto_source_count(stream->source)},
        {"source_bytes", presto_source_bytes(stream->source)},
        {"shards", info != NULL ? info->shard_count : 0},
        {"threads", l->loader.threads},
        {"batch_samples", l->loader.batch_samples},
        {"prefetch_bytes", l->loader.memory.prefetch_bytes},
    };
    json_t *object = cli_json_new();
    cli_json_set(object, "input", json_string(input_kind(stream)));
    cli_json_set(
        object, "pipeline",
        cli_json_text(stream->pipeline != NULL ? presto_pipeline_name(stream->pipeline) : NULL));
    cli_json_set(object, "stored", cli_json_text(info != NULL ? info->stored : NULL));
    cli_json_set(object, "split",
                 cli_json_text(info != NULL ? info->stored : NULL)); /* its name before */
    cli_json_set(object, "codec", cli_json_text(info != NULL ? info->codec : NULL));
    cli_json_set_counts(object, counts, sizeof counts / sizeof counts[0]);
    cli_json_set(object, "steps_before_cache", plan_json(stream->cache_plan));
    cli_json_set(object, "steps", plan_json(stream->plan));
    return cli_print_json(object);
}

static void print_text(const load *l, const presto_stream *stream) {
    char count[PRESTO_TEXT_BYTES], bytes[PRESTO_TEXT_BYTES];
    printf("input: %s, %s, %s\n",
           presto_format_things(presto_source_count(stream->source), "sample", count),
           presto_format_bytes((double)presto_source_bytes(stream->source), bytes),
           input_kind(stream));
    cli_print_notes(stream->source);
    if (stream->pipeline != NULL)
        cli_put("pipeline: %s\n", presto_pipeline_name(stream->pipeline));
    if (stream->dataset != NULL) {
        const presto_dataset_info *info = presto_dataset_get_info(stream->dataset);
        cli_put("stored: %s, codec %s, %s\n", info->stored != NULL ? info->stored : "as found",
                info->codec != NULL ? info->codec : "none",
                presto_format_things(info->shard_count, "shard", count));
    }
    if (stream->cache_plan != NULL && presto_plan_step_count(stream->cache_plan) > 0)
        printf("steps before the cache:\n%s", presto_plan_explain(stream->cache_plan));
    if (stream->plan != NULL && presto_plan_step_count(stream->plan) > 0)
        printf("steps:\n%s", presto_plan_explain(stream->plan));
    else
        puts("steps: none remain");
    char epochs[PRESTO_TEXT_BYTES];
    printf("loader: %s, batch %zu, format %s, %s, prefetch %s\n",
           presto_format_things(l->loader.threads, "thread", count), l->loader.batch_samples,
           l->format->name, presto_format_things(l->loader.range.epochs, "epoch", epochs),
           presto_format_size(l->loader.memory.prefetch_bytes, bytes));
}

int load_explain(const load *l, const presto_stream *stream) {
    if (l->json)
        return print_json(l, stream);
    print_text(l, stream);
    return CLI_DONE;
}
