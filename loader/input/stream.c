/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: an input, and the plans of the steps that remain for a loader.
 */
#include <stdlib.h>

#include <presto/stream.h>

#include "../../base/options_internal.h"
#include "../../base/stop_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../../storage/play_internal.h"
#include "../engine/engine_internal.h"
#include "../loader_internal.h"
#include "../source/core/source_internal.h"
#include "input_internal.h"

void presto_stream_options_init(presto_stream_options *options, size_t struct_bytes) {
    const presto_stream_options defaults = {.verify = PRESTO_CHECK_FULL};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

static void close_all(presto_stream *stream) {
    presto__plan_free(stream->plan);
    presto__plan_free(stream->cache_plan);
    presto__source_free(stream->source);
    presto_dataset_free(stream->dataset);
    presto_pipeline_free(stream->pipeline);
}

void presto_stream_close_sized(presto_stream *stream) {
    presto_stream taken;
    presto__result_take(&taken, sizeof taken, stream);
    close_all(&taken);
}

/* As one plan, or cut before the first random step. */
static presto_status plan_steps(presto_stream *stream, presto__step_range steps, bool cut,
                                const presto_tensor_spec *spec, presto_error *err) {
    const presto_pipeline *pipeline = stream->pipeline;
    size_t middle = steps.first;
    presto__plan_options options;
    presto__plan_options_defaults(&options);
    options.first_step = steps.first;
    options.in = spec;
    while (cut && middle < steps.last &&
           (presto__pipeline_step_flags(pipeline, middle) & PRESTO_STEP_RANDOM) == 0)
        middle++;
    if (middle > steps.first) {
        options.last_step = middle;
        PRESTO_TRY(presto__plan_new(pipeline, &options, &stream->cache_plan, err));
        options.in = presto__plan_output(stream->cache_plan);
    }
    options.first_step = middle;
    options.last_step = steps.last;
    return presto__plan_new(pipeline, &options, &stream->plan, err);
}

/* Plan the steps from representation `from` to the one asked for, for inputs of `spec`. */
static presto_status make_plan(presto_stream *stream, const char *from,
                               const presto_stream_options *options, const presto_tensor_spec *spec,
                               presto_error *err) {
    presto__step_range steps;
    PRESTO_TRY(presto__input_steps(stream->pipeline, from, options->to, &steps, err));
    bool cut = options->loader->cache.bytes > 0;
    /* The steps' own files are not on the storage that is played, nor is the pipeline below. */
    presto__storage_thread *played = presto__storage_bind(NULL);
    presto_status status = plan_steps(stream, steps, cut, spec, err);
    (void)presto__storage_bind(played);
    return status;
}

presto_status presto__stream_plan_again(presto_stream *stream, const presto_stream_options *options,
                                        const presto_tensor_spec *spec, presto_error *err) {
    const char *from = options->from;
    if (from == NULL && stream->dataset != NULL)
        from = presto_dataset_get_info(stream->dataset)->stored;
    presto__plan_free(stream->plan);
    presto__plan_free(stream->cache_plan);
    stream->plan = NULL;
    stream->cache_plan = NULL;
    return make_plan(stream, from != NULL ? from : PRESTO_UNPROCESSED, options, spec, err);
}

/* May samples come before they are counted? */
static bool counts_later(const presto_stream_options *options) {
    const presto_loader_options *loader = options->loader;
    return options->count_later && options->partition.ratio == NULL &&
           options->partition.even_samples == 0 &&
           (loader->order.shuffle == PRESTO_SHUFFLE_NONE ||
            loader->order.shuffle == PRESTO_SHUFFLE_BUFFER) &&
           loader->range.world == 1 && (loader->cache.bytes == 0 || loader->cache.dir == NULL);
}

/* What the stream is to be, as the door is asked for it. */
static presto_status make_request(const presto_stream_options *options,
                                  presto__input_request *request, presto_error *err) {
    const presto_loader_options *loader = options->loader;
    presto_pipeline_options_defaults(&request->reading);
    PRESTO_TRY(presto__options_take(&request->reading, sizeof request->reading,
                                    options->pipeline_options, err));
    request->read = options->read;
    request->pipeline = options->pipeline;
    request->from = options->from != NULL ? options->from : request->reading.from;
    request->to = options->to;
    request->raw_records = options->raw_records;
    presto_shard_options_defaults(&request->shard);
    request->shard.verify = options->verify;
    request->shard.map = options->map;
    request->shard.count_later = counts_later(options);
    request->shard.keep_index = options->keep_index;
    request->shard.index_dir = options->index_dir;
    request->shard.tolerate = loader->errors.policy == PRESTO_ON_ERROR_SKIP;
    return PRESTO_OK;
}

static presto_status open_stream(presto_stream *stream, const char *const *paths, size_t path_count,
                                 const presto_stream_options *options, presto_error *err) {
    presto__input input = {0};
    presto__input_request request = {.paths = paths, .path_count = path_count};
    PRESTO_TRY(make_request(options, &request, err));
    presto_status status = presto__input_open(&request, &input, err);
    stream->dataset = input.dataset;
    stream->pipeline = input.pipeline;
    stream->source = input.source;
    if (status >= 0 && input.from != NULL)
        status = make_plan(stream, input.from, options, &input.spec, err);
    return status;
}

/* Opening reads files, too: the listing of a tar, headers, indexes. */
static presto_status open_played(presto_stream *stream, const char *const *paths, size_t path_count,
                                 const presto_stream_options *options, presto_error *err) {
    const presto_loader_options *loader = options->loader;
    presto__played_storage storage;
    presto__storage_thread opening;
    if (!presto__storage_is_set(&loader->storage))
        return open_stream(stream, paths, path_count, options, err);
    PRESTO_TRY(presto__storage_init(&storage, &loader->storage, NULL, err));
    presto__storage_thread_init(&opening, &storage);
    opening.stop = loader->should_stop;
    opening.stop_user = loader->should_stop_user;
    presto__storage_thread *before = presto__storage_bind(&opening);
    presto_status status = open_stream(stream, paths, path_count, options, err);
    (void)presto__storage_bind(before);
    presto__storage_done(&storage);
    return status;
}

presto_status presto_stream_open_sized(const char *const *paths, size_t path_count,
                                       const presto_stream_options *options,
                                       presto_stream *stream_out, presto_error *err) {
    presto_stream stream = {0};
    presto_loader_options loader;
    presto_stream_options taken;
    presto_stream_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    PRESTO_TRY(presto__loader_take_options(&loader, taken.loader, err));
    PRESTO_TRY(presto__result_check(stream_out, err));
    taken.loader = &loader;
    presto__stop_hook pass;
    presto__stop_scope before =
        presto__stop_enter(&pass, loader.should_stop, loader.should_stop_user);
    presto_status status = open_played(&stream, paths, path_count, &taken, err);
    if (status >= 0 && taken.raw_tensors)
        presto__source_keep_bytes(stream.source, stream.pipeline != NULL);
    if (status >= 0)
        status = presto__source_choose(stream.source, &taken.partition, err);
    status = presto__stop_leave(&pass, before, status, err);
    if (status >= 0)
        status = presto__note_steps(stream.source, stream.cache_plan, stream.plan, err);
    if (status >= 0)
        presto__result_move(stream_out, &stream, sizeof stream);
    close_all(&stream);
    return status < 0 ? status : PRESTO_OK;
}

presto_status presto_loader_open_stream(const presto_stream *stream,
                                        const presto_loader_options *options,
                                        presto_loader **loader_out, presto_error *err) {
    presto_loader_options mine;
    presto_stream opened;
    PRESTO_TRY(presto__loader_take_options(&mine, options, err));
    presto__result_copy(&opened, sizeof opened, stream);
    if (opened.cache_plan != NULL)
        mine.cache.plan = opened.cache_plan;
    return presto__loader_open(opened.source, opened.plan, &mine, loader_out, err);
}

static void free_stream(void *owned) {
    presto_stream_close(owned);
    free(owned);
}

presto_status presto_loader_open_paths(const char *const *paths, size_t path_count,
                                       const presto_stream_options *options,
                                       presto_loader **loader_out, presto_error *err) {
    presto_loader *loader = NULL;
    presto_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return presto_fail_memory(err, sizeof *stream);
    presto_status status = presto_stream_open(paths, path_count, options, stream, err);
    if (status >= 0)
        status = presto_loader_open_stream(stream, options != NULL ? options->loader : NULL,
                                           &loader, err);
    if (status < 0) {
        free_stream(stream);
        return status;
    }
    presto__loader_own(loader, stream, free_stream);
    *loader_out = loader;
    return PRESTO_OK;
}
