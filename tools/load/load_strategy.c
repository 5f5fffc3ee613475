/* SPDX-License-Identifier: Apache-2.0 */
/* presto-load --strategy FILE, and the defaults of options that were not given. */
#include "load.h"

#include <string.h>

#include "../cli/cli.h"

presto_status load_apply_strategy(load *l, presto_error *err) {
    if (l->strategy_file == NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto_strategy_load(l->strategy_file, &l->strategy, err));
    cli_note_old_names(&l->strategy, l->strategy_file, l->quiet);
    if (!l->has_threads)
        l->loader.threads = l->strategy.threads;
    if (!l->has_batch && l->strategy.batch_samples > 0)
        l->loader.batch_samples = l->strategy.batch_samples;
    if (!l->has_seed)
        l->loader.order.seed = l->strategy.seed;
    l->has_threads = l->has_batch = true;
    /* A dataset names its pipeline in dataset.json. */
    if (l->input.pipeline == NULL && strcmp(l->strategy.stored, PRESTO_UNPROCESSED) == 0) {
        l->input.pipeline = l->strategy.pipeline;
        cli_settings_of_strategy(&l->settings, &l->strategy);
        l->reading = cli_pipeline_options(&l->settings);
    }
    return PRESTO_OK;
}

void load_check_strategy(const load *l, const presto_stream *stream) {
    presto_error err;
    if (presto_strategy_check(&l->strategy, stream, &err) < 0)
        cli_usage("--strategy: %s: %s; give -j, -b and --seed instead", l->strategy_file,
                  err.message);
}

void load_settle_defaults(load *l) {
    if (!l->has_threads)
        l->loader.threads = presto_processor_count();
    l->loader.output = l->format->output;
    if (!l->has_batch && l->format->default_batch > 0)
        l->loader.batch_samples = l->format->default_batch;
}
