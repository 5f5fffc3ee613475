/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a list of paths means: the kind of input, its pipeline, and the steps that remain.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <presto/stream.h>

#include "../base/file_internal.h"
#include "../base/options_internal.h"
#include "../base/storage_internal.h"
#include "engine/engine_internal.h"
#include "source/core/source_internal.h"
#include "stream_internal.h"

void presto_stream_options_init(presto_stream_options *options, size_t struct_bytes) {
    const presto_stream_options defaults = {.verify = PRESTO_CHECK_FULL};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

static void close_all(presto_stream *stream) {
    presto_plan_free(stream->plan);
    presto_plan_free(stream->cache_plan);
    presto_source_free(stream->source);
    presto_dataset_free(stream->dataset);
    presto_pipeline_free(stream->pipeline);
}

void presto_stream_close_sized(presto_stream *stream) {
    presto_stream taken;
    presto__result_take(&taken, sizeof taken, stream);
    close_all(&taken);
}

presto_status presto__path_is_dataset(const char *path, bool *is_dataset_out, presto_error *err) {
    char *file = presto__join_path(path, PRESTO_DATASET_FILE);
    if (file == NULL)
        return presto_fail_memory(err, 1);
    struct stat info;
    presto_status status = PRESTO_OK;
    bool found = stat(file, &info) == 0;
    /* A path that may not be read, or is no folder, fails where it is opened. A failing disk
     * must fail here: it would hide the dataset. */
    if (!found && (errno == EIO || errno == ENOMEM || errno == ESTALE))
        status = presto_fail_errno(err, errno, file, "cannot stat");
    *is_dataset_out = found && S_ISREG(info.st_mode);
    free(file);
    return status;
}

presto_status presto__find_representation(const presto_pipeline *pipeline, const char *name,
                                          size_t *representation_out, presto_error *err) {
    size_t found = presto_pipeline_representation_find(pipeline, name);
    if (found != SIZE_MAX) {
        *representation_out = found;
        return PRESTO_OK;
    }
    char names[PRESTO_ERROR_MESSAGE_BYTES - 128] = "";
    size_t used = 0;
    size_t count = presto_pipeline_representation_count(pipeline);
    for (size_t i = 0; i < count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                                 presto_pipeline_representation_name(pipeline, i));
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "pipeline %s has no representation '%s', only %s",
                       presto_pipeline_name(pipeline), name, names);
}

/* Steps [first, last) of the pipeline. */
typedef struct step_range {
    size_t first, last;
} step_range;

/* As one plan, or cut before the first random step. */
static presto_status plan_steps(presto_stream *stream, step_range steps, bool cut,
                                const presto_tensor_spec *spec, presto_error *err) {
    const presto_pipeline *pipeline = stream->pipeline;
    size_t middle = steps.first;
    presto_plan_options options;
    presto_plan_options_defaults(&options);
    options.first_step = steps.first;
    options.in = spec;
    while (cut && middle < steps.last &&
           (presto_pipeline_step_flags(pipeline, middle) & PRESTO_STEP_RANDOM) == 0)
        middle++;
    if (middle > steps.first) {
        options.last_step = middle;
        PRESTO_TRY(presto_plan_new(pipeline, &options, &stream->cache_plan, err));
        options.in = presto_plan_output(stream->cache_plan);
    }
    options.first_step = middle;
    options.last_step = steps.last;
    return presto_plan_new(pipeline, &options, &stream->plan, err);
}

/* Plan the steps from representation `from` to the one asked for, for inputs of `spec`. */
static presto_status make_plan(presto_stream *stream, const char *from,
                               const presto_stream_options *options, const presto_tensor_spec *spec,
                               presto_error *err) {
    const char *to = options->to;
    const presto_pipeline *pipeline = stream->pipeline;
    size_t representation = 0;
    PRESTO_TRY(presto__find_representation(pipeline, from, &representation, err));
    size_t first = presto_pipeline_representation_steps(pipeline, representation);
    size_t last = presto_pipeline_step_count(pipeline);
    if (to != NULL) {
        PRESTO_TRY(presto__find_representation(pipeline, to, &representation, err));
        last = presto_pipeline_representation_steps(pipeline, representation);
    }
    if (last < first)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "'%s' comes before '%s', which is what the input holds", to, from);
    bool cut = options->loader->cache.bytes > 0;
    /* The steps' own files are not on the storage that is played, nor is the pipeline below. */
    presto__storage_thread *played = presto__storage_bind(NULL);
    presto_status status = plan_steps(stream, (step_range){first, last}, cut, spec, err);
    (void)presto__storage_bind(played);
    return status;
}

presto_status presto__stream_plan_again(presto_stream *stream, const presto_stream_options *options,
                                        const presto_tensor_spec *spec, presto_error *err) {
    const char *from = options->from;
    if (from == NULL && stream->dataset != NULL)
        from = presto_dataset_get_info(stream->dataset)->split;
    presto_plan_free(stream->plan);
    presto_plan_free(stream->cache_plan);
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

static presto_status open_dataset(presto_stream *stream, const char *const *paths,
                                  size_t path_count, const presto_stream_options *options,
                                  presto_error *err) {
    presto_shard_options shard;
    presto_shard_options_defaults(&shard);
    shard.verify = options->verify;
    shard.map = options->map;
    shard.count_later = counts_later(options);
    shard.keep_index = options->keep_index;
    shard.index_dir = options->index_dir;
    shard.tolerate =
        options->loader != NULL && options->loader->errors.policy == PRESTO_ON_ERROR_SKIP;
    return presto_dataset_open(paths, path_count, &shard, &stream->dataset, err);
}

static bool takes_records(const presto_stream *stream) {
    return presto_pipeline_source(stream->pipeline)->takes_records;
}

/* All steps, from what the pipeline's source gives. */
static presto_status plan_all(presto_stream *stream, const presto_stream_options *options,
                              presto_error *err) {
    presto_tensor_spec spec = presto_source_main_spec(stream->source);
    return make_plan(stream, PRESTO_UNPROCESSED, options, &spec, err);
}

/* The named pipeline, or the text of a dataset's; both from the representation `from`. */
static presto_status load_pipeline(presto_stream *stream, const char *dir,
                                   const presto_stream_options *options, presto_error *err) {
    presto_pipeline_options reading;
    presto_pipeline_options_defaults(&reading);
    PRESTO_TRY(presto__options_take(&reading, sizeof reading, options->pipeline_options, err));
    size_t from_bytes = options->from == NULL ? 0 : strlen(options->from) + sizeof "from=";
    const char **set = malloc((reading.set_count + 1) * sizeof *set + from_bytes);
    if (set == NULL)
        return presto_fail_memory(err, (reading.set_count + 1) * sizeof *set + from_bytes);
    if (reading.set_count > 0)
        memcpy(set, reading.set, reading.set_count * sizeof *set);
    if (options->from != NULL) {
        char *text = (char *)(set + reading.set_count + 1);
        snprintf(text, from_bytes, "from=%s", options->from);
        set[reading.set_count++] = text;
    }
    reading.set = set;
    presto__storage_thread *played = presto__storage_bind(NULL);
    presto_status status =
        options->pipeline != NULL
            ? presto_pipeline_load(options->pipeline, &reading, &stream->pipeline, err)
            : presto_pipeline_parse(
                  presto_span_of_text(presto_dataset_get_info(stream->dataset)->pipeline_json), dir,
                  &reading, &stream->pipeline, err);
    (void)presto__storage_bind(played);
    free(set);
    return status;
}

/* The stored samples have run through the steps before the split: these must be the same. */
static presto_status fail_other(const presto_stream *stream, const char *dir,
                                const presto_stream_options *options, presto_error *err) {
    const presto_dataset_info *info = presto_dataset_get_info(stream->dataset);
    if (info->pipeline_json == NULL || info->split == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s does not say which representation of pipeline %s it holds: give "
                           "--from REPRESENTATION",
                           dir, presto_pipeline_name(stream->pipeline));
    if (options->pipeline == NULL)
        return presto_fail(
            err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
            "--set changes a step that %s has behind it, or its source: it holds '%s'", dir,
            info->split);
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "%s was made by another pipeline than %s; to run that one's steps on it, "
                       "say which representation it holds",
                       dir, options->pipeline);
}

/*
 * A dataset goes on after its split if it was made by this pipeline. Else its records are the
 * source, if the pipeline takes records.
 */
static presto_status open_own(presto_stream *stream, const char *const *paths, size_t path_count,
                              const presto_stream_options *options, presto_error *err) {
    if (path_count > 1)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s is a whole dataset and must be the only input", paths[0]);
    PRESTO_TRY(open_dataset(stream, paths, path_count, options, err));
    const presto_dataset_info *info = presto_dataset_get_info(stream->dataset);
    if (options->pipeline == NULL && (info->pipeline_json == NULL || info->split == NULL)) {
        const char *word = options->from != NULL ? options->from : options->to;
        if (word == NULL)
            return presto_source_open_dataset(stream->dataset, &stream->source, err);
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s does not say which pipeline it belongs to, so that '%s' means "
                           "nothing",
                           paths[0], word);
    }
    if (options->pipeline == NULL && options->from != NULL &&
        strcmp(options->from, info->split) != 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s holds '%s', not '%s': leave out --from, or name another pipeline",
                           paths[0], info->split, options->from);
    bool continues = false;
    PRESTO_TRY(load_pipeline(stream, paths[0], options, err));
    if (info->pipeline_json != NULL && info->split != NULL)
        PRESTO_TRY(presto_pipeline_continues(stream->pipeline, info->pipeline_json, info->split,
                                             &continues, err));
    if (!continues && takes_records(stream)) {
        PRESTO_TRY(presto__tfrecord_open(stream->pipeline, stream->dataset, &stream->source, err));
        return plan_all(stream, options, err);
    }
    if (!continues)
        return fail_other(stream, paths[0], options, err);
    PRESTO_TRY(presto_source_open_dataset(stream->dataset, &stream->source, err));
    presto_tensor_spec spec = presto_source_main_spec(stream->source);
    if (presto_source_count(stream->source) == 0) /* no sample has shown what the split is */
        spec = (presto_tensor_spec){.dtype = PRESTO_DTYPE_UNKNOWN, .rank = -1};
    return make_plan(stream, info->split, options, &spec, err);
}

static presto_status open_raw(presto_stream *stream, const char *const *paths, size_t path_count,
                              const presto_stream_options *options, presto_error *err) {
    PRESTO_TRY(load_pipeline(stream, NULL, options, err));
    if (takes_records(stream)) {
        PRESTO_TRY(open_dataset(stream, paths, path_count, options, err));
        PRESTO_TRY(presto__tfrecord_open(stream->pipeline, stream->dataset, &stream->source, err));
    } else {
        PRESTO_TRY(
            presto_source_open_raw(stream->pipeline, paths, path_count, &stream->source, err));
    }
    return plan_all(stream, options, err);
}

/* Records as they are stored, of a dataset or of files. */
static presto_status open_records(presto_stream *stream, const char *const *paths,
                                  size_t path_count, const presto_stream_options *options,
                                  presto_error *err) {
    if (options->pipeline != NULL || options->from != NULL || options->to != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "raw records run through no steps: name no pipeline");
    if (path_count == 0)
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no input is given");
    PRESTO_TRY(open_dataset(stream, paths, path_count, options, err));
    return presto_source_open_records(stream->dataset, &stream->source, err);
}

static presto_status open_stream(presto_stream *stream, const char *const *paths, size_t path_count,
                                 const presto_stream_options *options, presto_error *err) {
    if (options->raw_records)
        return open_records(stream, paths, path_count, options, err);
    bool is_raw = options->pipeline != NULL &&
                  (options->from == NULL || strcmp(options->from, PRESTO_UNPROCESSED) == 0);
    if (path_count == 0 && !is_raw) /* there are sources without paths */
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no input is given");
    for (size_t i = 0; i < path_count; i++) {
        bool is_dataset = false;
        PRESTO_TRY(presto__path_is_dataset(paths[i], &is_dataset, err));
        if (is_dataset)
            return open_own(stream, paths, path_count, options, err);
    }
    presto_pipeline_options reading;
    presto_pipeline_options_defaults(&reading);
    PRESTO_TRY(presto__options_take(&reading, sizeof reading, options->pipeline_options, err));
    if (options->pipeline == NULL && reading.set_count > 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "--set %.64s: of which pipeline?", reading.set[0]);
    if (options->pipeline == NULL && (options->from != NULL || options->to != NULL))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "'%s' is a representation of which pipeline?",
                           options->from != NULL ? options->from : options->to);
    if (options->pipeline != NULL)
        return open_raw(stream, paths, path_count, options, err);
    PRESTO_TRY(open_dataset(stream, paths, path_count, options, err));
    return presto_source_open_dataset(stream->dataset, &stream->source, err);
}

/* Opening reads files, too: the listing of a tar, headers, indexes. */
static presto_status open_played(presto_stream *stream, const char *const *paths, size_t path_count,
                                 const presto_stream_options *options, presto_error *err) {
    const presto_loader_options *loader = options->loader;
    presto__played_storage storage;
    presto__storage_thread opening;
    if (!presto_storage_is_set(&loader->storage))
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
    presto_status status = open_played(&stream, paths, path_count, &taken, err);
    if (status >= 0)
        status = presto_source_choose(stream.source, &taken.partition, err);
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
    return presto_loader_open(opened.source, opened.plan, &mine, loader_out, err);
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
