/* SPDX-License-Identifier: Apache-2.0 */
/* presto-load --strategy FILE, and the defaults of options that were not given. */
#include "load.h"

#include <string.h>

#include "cli.h"

enum {
    DEFAULT_BLOCK_OF_RECORDS = 256, /* samples delivered at a time if the format has no batches */
    DEFAULT_BATCH = 64
};

presto_status load_apply_strategy(load *l, presto_error *err) {
    if (l->strategy_file == NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto_strategy_load(l->strategy_file, &l->strategy, err));
    if (!l->has_threads)
        l->loader.threads = l->strategy.threads;
    if (!l->has_batch && l->strategy.batch_samples > 0)
        l->loader.batch_samples = l->strategy.batch_samples;
    if (!l->has_seed)
        l->loader.order.seed = l->strategy.seed;
    l->has_threads = l->has_batch = true;
    /* A stored split names its pipeline in dataset.json. */
    if (l->input.pipeline == NULL && strcmp(l->strategy.split, PRESTO_UNPROCESSED) == 0) {
        l->input.pipeline = l->strategy.pipeline;
        cli_settings_of_strategy(&l->settings, &l->strategy);
        l->reading = cli_pipeline_options(&l->settings);
    }
    return PRESTO_OK;
}

void load_check_strategy(const load *l, const presto_stream *stream) {
    const presto_strategy_file *wanted = &l->strategy;
    bool is_source = stream->pipeline != NULL &&
                     presto_pipeline_source(stream->pipeline)->takes_records &&
                     strcmp(wanted->split, PRESTO_UNPROCESSED) == 0;
    if (stream->dataset == NULL || !presto_dataset_is_ours(stream->dataset) || is_source)
        return;
    const presto_dataset_info *info = presto_dataset_get_info(stream->dataset);
    const char *split = info->split != NULL ? info->split : "nothing known";
    const char *codec = wanted->codec != NULL ? wanted->codec : "none";
    if (strcmp(split, wanted->split) != 0 || strcmp(info->codec, codec) != 0)
        cli_usage("--strategy: %s is about %s with codec %s, but this dataset holds %s with codec "
                  "%s; give -j, -b and --seed instead",
                  l->strategy_file, wanted->split, codec, split, info->codec);
    presto_pipeline *pipeline = NULL;
    presto_error err;
    const presto_pipeline_options reading = {.struct_bytes = sizeof reading,
                                             .code = PRESTO_CODE_NEVER};
    if (stream->pipeline == NULL ||
        presto_pipeline_load(wanted->pipeline, &reading, &pipeline, &err) < 0)
        return;
    if (strcmp(presto_pipeline_name(pipeline), presto_pipeline_name(stream->pipeline)) != 0)
        cli_usage("--strategy: %s is about pipeline %s, but this dataset is of %s",
                  l->strategy_file, presto_pipeline_name(pipeline),
                  presto_pipeline_name(stream->pipeline));
    presto_pipeline_free(pipeline);
}

void load_settle_defaults(load *l) {
    if (!l->has_threads)
        l->loader.threads = cli_cpu_count();
    l->loader.output = l->format == SINK_TFRECORD ? PRESTO_OUTPUT_RECORDS
                       : l->format == SINK_NULL   ? PRESTO_OUTPUT_COUNT
                                                  : PRESTO_OUTPUT_BATCHES;
    if (l->has_batch)
        return;
    if (l->format == SINK_TFRECORD || l->format == SINK_NULL)
        l->loader.batch_samples = DEFAULT_BLOCK_OF_RECORDS;
    else if (l->format == SINK_ARROW || l->format == SINK_SHM)
        l->loader.batch_samples = DEFAULT_BATCH;
}
