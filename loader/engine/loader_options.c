/* SPDX-License-Identifier: Apache-2.0 */
/* A loader's options: the defaults, and contradictions. */
#include "../../base/options_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../../storage/play_internal.h"
#include "workers_internal.h"

#define DEFAULT_PREFETCH_BYTES ((size_t)256 << 20)
#define DEFAULT_BLOCK_BYTES ((size_t)1 << 20)
#define DEFAULT_BLOCK_SAMPLES 1024

void presto_loader_options_init(presto_loader_options *options, size_t struct_bytes) {
    const presto_loader_options defaults = {
        .threads = 1,
        .output = PRESTO_OUTPUT_BATCHES,
        .batch_samples = 1,
        .range = {.epochs = 1, .world = 1},
        .errors = {.skip_limit = UINT64_MAX, .skip_fraction = 1},
        .memory = {.prefetch_bytes = DEFAULT_PREFETCH_BYTES,
                   .block_bytes = DEFAULT_BLOCK_BYTES,
                   .block_samples = DEFAULT_BLOCK_SAMPLES,
                   .max_record_bytes = PRESTO_CODEC_MAX_RECORD_BYTES},
    };
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

presto_status presto__loader_take_options(presto_loader_options *options,
                                          const presto_loader_options *given, presto_error *err) {
    presto_loader_options_defaults(options);
    PRESTO_TRY(presto__options_take(options, sizeof *options, given, err));
    PRESTO__CHECK_ROOM(&options->order, err);
    PRESTO__CHECK_ROOM(&options->range, err);
    PRESTO__CHECK_ROOM(&options->cache, err);
    PRESTO__CHECK_ROOM(&options->errors, err);
    PRESTO__CHECK_ROOM(&options->memory, err);
    return presto__storage_check(&options->storage, err);
}

presto_status presto__check_threads(unsigned threads, presto_error *err) {
    if (threads > PRESTO_MAX_THREADS)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%u threads, at most %d are possible", threads, PRESTO_MAX_THREADS);
    return PRESTO_OK;
}

presto_status presto__loader_check_options(const presto_source *source, const presto_plan *plan,
                                           const presto_loader_options *options,
                                           presto_error *err) {
    const char *wrong = NULL;
    PRESTO_TRY(presto__check_threads(options->threads, err));
    if (options->batch_samples == 0 && options->output == PRESTO_OUTPUT_BATCHES)
        wrong = "a batch needs at least one sample";
    else if (options->range.epochs == 0)
        wrong = "there must be at least one epoch";
    else if (options->range.world == 0 || options->range.rank >= options->range.world)
        wrong = "the rank must be below the world's size";
    else if ((options->order.shuffle == PRESTO_SHUFFLE_BUFFER ||
              options->order.shuffle == PRESTO_SHUFFLE_BLOCKS) &&
             options->order.shuffle_window == 0)
        wrong = "this shuffle needs a window of at least one record";
    else if (options->order.shuffle == PRESTO_SHUFFLE_BUFFER && source->part_count > 0)
        wrong = "the inputs of a mix are shuffled in full or by blocks, not through a buffer";
    else if (!(options->errors.skip_fraction >= 0 && options->errors.skip_fraction <= 1))
        wrong = "the part of samples to skip must be between 0 and 1";
    else if (options->memory.block_samples == 0 || options->memory.block_bytes == 0)
        wrong = "a block needs at least one sample and one byte";
    else if (plan != NULL && presto_plan_step_count(plan) > 0 && source->main_feature == NULL)
        wrong = "it is not known which feature of these records the steps work on";
    else if (options->cache.plan != NULL &&
             (presto__plan_flags(options->cache.plan) & PRESTO_STEP_RANDOM) != 0)
        wrong = "what comes out of a random step cannot be cached";
    else if (options->cache.plan != NULL && options->cache.bytes == 0)
        wrong = "steps before a cache need a cache";
    else if (options->cache.bytes > 0 && options->output == PRESTO_OUTPUT_RECORDS)
        wrong = "a cache goes with batches, not with records";
    else if (options->cache.dir != NULL && options->cache.bytes == 0)
        wrong = "a cache on disk needs a limit";
    else if (options->feature_count > 0 && options->output == PRESTO_OUTPUT_RECORDS)
        wrong = "features are chosen for batches, not for records";
    if (wrong != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%s", wrong);
    return PRESTO_OK;
}

presto_status presto__loader_check_steps(const presto_plan *plan, presto_error *err) {
    for (size_t i = 0; plan != NULL && i < presto_plan_step_count(plan); i++)
        if ((presto_plan_step_flags(plan, i) & PRESTO_STEP_REGROUPS) != 0)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "step %s makes new samples of several: presto-write stores them; a "
                               "stream stops before it, or goes on behind it from what is stored",
                               presto__plan_step_name(plan, i));
    return PRESTO_OK;
}

size_t presto__loader_packet_share(const presto_loader *loader) {
    size_t workers = loader->options.threads > 0 ? loader->options.threads : 1;
    return loader->packets_bytes / (4 * (workers + 1));
}
