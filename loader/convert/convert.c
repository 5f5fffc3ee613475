/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conversion: samples -> steps up to what is stored -> encoded records -> shards -> dataset.json.
 *
 * At any moment the folder has whole shards under their names, a temporary file for each shard that
 * is being written, and the progress file. The progress file never lists a shard that is not whole;
 * with many shards it may be a moment late. dataset.json is written last. So a run that dies at any
 * moment can be resumed with the missing shards, and the result has the same bytes: shards are
 * contiguous ranges of the sample order, and records do not depend on threads.
 *
 * If shards end by their size, their number is known only at the end. Until then they have hidden
 * names. When the last one is whole, all are renamed, each index before its shard.
 */
#include <inttypes.h>
#include <stdio.h>

#include "../../base/clock_internal.h"
#include "../../base/options_internal.h"
#include "../../base/stop_internal.h"
#include "../../records/records_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../loader_internal.h"
#include "share_internal.h"

/* Memory for records in flight: for each thread, and for the writers. */
#define PACKETS_BYTES_EACH ((size_t)32 << 20)

void presto_convert_options_init(presto_convert_options *options, size_t struct_bytes) {
    const presto_convert_options defaults = {
        .codec = "none",
        .threads = 1,
        .errors = {.skip_limit = UINT64_MAX, .skip_fraction = 1},
        .sync = true};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

/*
 * Threads that are ahead of the writers would fill all their memory with records. It would be fresh
 * memory, and no longer in the processor's cache when the writers read it: 256 MiB took 1.2 times
 * as long as 64 MiB (2 threads). What the threads need for large samples is not bounded by that: of
 * photos of 16 MB, each takes three times that to make a record.
 */
static void choose_memory(presto__conversion *job) {
    size_t wanted = job->options->prefetch_bytes;
    presto_loader_options loader;
    presto_loader_options_defaults(&loader);
    job->prefetch_bytes = wanted != 0 ? wanted : loader.memory.prefetch_bytes;
    size_t most = job->prefetch_bytes, parts = (size_t)job->options->threads + 1;
    job->packets_bytes =
        wanted != 0 || parts >= most / PACKETS_BYTES_EACH ? most : parts * PACKETS_BYTES_EACH;
}

/* ---- the input ---- */

/* All that the job reads is the input's from here on, and the job's to free. */
static presto_status open_input(presto__conversion *job, const char *const *paths,
                                size_t path_count, presto__input *input, presto_error *err) {
    presto__input_request request = {.paths = paths, .path_count = path_count};
    request.read = job->pipeline;
    request.as_stored = job->pipeline == NULL;
    presto_pipeline_options_defaults(&request.reading);
    presto_shard_options_defaults(&request.shard);
    request.shard.tolerate = job->options->errors.policy == PRESTO_ON_ERROR_SKIP;
    request.shard.keep_index = job->options->keep_index;
    request.shard.index_dir = job->options->index_dir;
    presto_status status = presto__input_open(&request, input, err);
    job->dataset = input->dataset;
    job->source = input->source;
    if (status >= 0 && job->pipeline != NULL && input->pipeline != job->pipeline) {
        job->indexed = input->pipeline;
        job->pipeline = job->indexed;
    } else {
        presto_pipeline_free(input->pipeline); /* the caller's lives longer */
    }
    return status;
}

/* The representation to store. */
static presto_status choose_stored(presto__conversion *job, presto_error *err) {
    const presto_pipeline *pipeline = job->pipeline;
    size_t chosen = 0;
    if (job->options->up_to != NULL) {
        PRESTO_TRY(presto_pipeline_representation_named(pipeline, job->options->up_to, true,
                                                        &chosen, err));
    } else {
        chosen = presto_pipeline_representation_default(pipeline);
    }
    job->stored = presto_pipeline_representation_name(pipeline, chosen);
    return PRESTO_OK;
}

/* Without a choice, an input that is further already keeps its representation. */
static presto_status keep_stored(presto__conversion *job, const char *from, presto_error *err) {
    const presto_pipeline *pipeline = job->pipeline;
    size_t here = 0, chosen = presto_pipeline_representation_find(pipeline, job->stored);
    if (job->options->up_to != NULL || from == NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto_pipeline_representation_named(pipeline, from, false, &here, err));
    if (presto_pipeline_representation_steps(pipeline, chosen) <
        presto_pipeline_representation_steps(pipeline, here)) {
        /* The result names it, and lives longer than `indexed`, which has one name more. */
        const presto_pipeline *theirs = job->options->pipeline;
        size_t same = presto_pipeline_representation_find(theirs, from);
        job->stored =
            same == SIZE_MAX ? PRESTO_SEEKABLE : presto_pipeline_representation_name(theirs, same);
    }
    return PRESTO_OK;
}

static presto_status make_plan(presto__conversion *job, const char *from, presto_error *err) {
    presto__step_range steps;
    PRESTO_TRY(presto__input_steps(job->pipeline, from, job->stored, &steps, err));
    presto_tensor_spec spec = presto__source_main_spec(job->source);
    presto__plan_options options = {.struct_bytes = sizeof options,
                                    .first_step = steps.first,
                                    .last_step = steps.last,
                                    .in = &spec};
    PRESTO_TRY(presto__plan_new(job->pipeline, &options, &job->plan, err));
    PRESTO_TRY(presto__note_steps(job->source, NULL, job->plan, err));
    if ((presto__plan_flags(job->plan) & PRESTO_STEP_REGROUPS) != 0)
        job->regroup_step = steps.last - 1;
    return PRESTO_OK;
}

/* Prepares to run steps. *stored_out is the output of the last one. */
static presto_status prepare_steps(presto__conversion *job, const char *const *paths,
                                   size_t path_count, presto_tensor_spec *stored_out,
                                   presto_error *err) {
    presto__input input = {0};
    const char *codec = job->options->codec;
    PRESTO_TRY(presto_codec_parse(codec == NULL ? "none" : codec, &job->codec, err));
    PRESTO_TRY(choose_stored(job, err));
    PRESTO_TRY(open_input(job, paths, path_count, &input, err));
    PRESTO_TRY(keep_stored(job, input.from, err));
    PRESTO_TRY(make_plan(job, input.from, err));
    job->pipeline_json = presto_pipeline_json(job->pipeline);
    job->seed = job->options->seed;
    *stored_out = *presto__plan_output(job->plan);
    return PRESTO_OK;
}

/* Prepares to store records as they are, with all that is known of them. */
static presto_status prepare_records(presto__conversion *job, const char *const *paths,
                                     size_t path_count, presto_tensor_spec *stored_out,
                                     presto_error *err) {
    if (job->options->up_to != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "'%s' is a representation of which pipeline?", job->options->up_to);
    const char *codec = job->options->codec;
    if (codec != NULL) /* an unknown codec is reported before a missing input */
        PRESTO_TRY(presto_codec_parse(codec, &job->codec, err));
    presto__input input = {0};
    PRESTO_TRY(open_input(job, paths, path_count, &input, err));
    const presto_dataset_info *info = presto_dataset_get_info(job->dataset);
    if (codec == NULL)
        PRESTO_TRY(presto_codec_parse(info->codec, &job->codec, err));
    job->pipeline_json = info->pipeline_json;
    job->stored = info->stored;
    job->seed = info->seed;
    *stored_out = presto__source_main_spec(job->source);
    return PRESTO_OK;
}

static presto_status prepare(presto__conversion *job, const char *const *paths, size_t path_count,
                             presto_error *err) {
    const presto_convert_options *options = job->options;
    presto_tensor_spec stored;
    if (options->shards != 0 && options->shard_bytes != 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "shards end either by number or by size");
    if (job->pipeline != NULL)
        PRESTO_TRY(prepare_steps(job, paths, path_count, &stored, err));
    else
        PRESTO_TRY(prepare_records(job, paths, path_count, &stored, err));
    bool is_numeric = stored.dtype != PRESTO_STRING && stored.dtype != PRESTO_DTYPE_UNKNOWN;
    PRESTO_TRY(presto__codec_spec_fit(&job->codec, is_numeric ? &stored : NULL, err));
    presto__codec_format(&job->codec, job->codec_text);
    PRESTO_TRY(presto__source_choose(job->source, &options->partition, err));
    if (options->limit_samples != 0)
        presto__source_truncate(job->source, options->limit_samples);
    job->sample_count = presto__source_positions(job->source);
    job->main_feature = job->source->main_feature;
    job->label_names = presto_source_label_names(job->source, &job->label_count);
    snprintf(job->input_text, sizeof job->input_text, "%016" PRIx64,
             presto__source_digest(job->source));
    if (presto__conversion_by_size(job))
        job->shard_count = 0;
    else if (options->shards != 0)
        job->shard_count = options->shards;
    else if (job->pipeline == NULL)
        job->shard_count = presto_dataset_shard_count(job->dataset);
    else
        job->shard_count = options->threads > 0 ? options->threads : 1;
    return presto__conversion_is_share(job) ? presto__share_check(job, err) : PRESTO_OK;
}

/* ---- the job ---- */

static void tell_notes(const presto__conversion *job) {
    size_t count;
    const char *const *notes = presto_source_notes(job->source, &count);
    for (size_t i = 0; i < count && job->options->on_note != NULL; i++)
        job->options->on_note(job->options->on_note_user, notes[i]);
}

/* Until here there is nothing to clean up. Whoever catches signals may begin now. */
static presto_status tell_start(const presto__conversion *job, presto_error *err) {
    const presto_convert_options *options = job->options;
    const presto_progress progress = {.samples_total = presto__conversion_samples(job),
                                      .elapsed_ns = presto__clock_ns() - job->started_ns};
    if (options->on_progress == NULL || options->on_progress(options->on_progress_user, &progress))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
}

static presto_status run(presto__conversion *job, const char *const *paths, size_t path_count,
                         presto_error *err) {
    presto__stop_hook pass;
    presto__stop_scope before =
        presto__stop_enter(&pass, job->options->should_stop, job->options->should_stop_user);
    presto_status status = prepare(job, paths, path_count, err);
    PRESTO_TRY(presto__stop_leave(&pass, before, status, err));
    tell_notes(job);
    presto__conversion_note_size(job);
    PRESTO_TRY(tell_start(job, err));
    PRESTO_TRY(presto__conversion_is_share(job) ? presto__share_open(job, err)
                                                : presto__conversion_open_folder(job, err));
    if (job->folder != PRESTO__FOLDER_WHOLE) {
        PRESTO_TRY(presto__conversion_make_dictionary(job, err));
        PRESTO_TRY(presto__conversion_write_shards(job, err));
        presto__conversion_take_notes(job);
    }
    return presto__conversion_conclude(job, err);
}

presto_status presto_convert_sized(const char *const *paths, size_t path_count,
                                   const presto_convert_options *options,
                                   presto_convert_result *result_out, presto_error *err) {
    presto_convert_options taken;
    presto_convert_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    PRESTO__CHECK_ROOM(&taken.errors, err);
    PRESTO__CHECK_ROOM(&taken.share, err);
    PRESTO_TRY(presto__result_check(result_out, err));
    if (taken.dir == NULL || taken.dir[0] == '\0')
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a conversion needs a folder to write to");
    PRESTO_TRY(presto__check_threads(taken.threads, err));
    options = &taken;
    presto__conversion job = {.options = options,
                              .pipeline = options->pipeline,
                              .dir = options->dir,
                              .regroup_step = SIZE_MAX};
    choose_memory(&job);
    job.started_ns = presto__clock_ns();
    job.cpu_started_ns = presto__clock_process_cpu_ns();
    presto_status status = run(&job, paths, path_count, err);
    presto_loader_free(job.loader);
    if (status == PRESTO_OK)
        presto__conversion_fill_result(&job, result_out);
    else
        presto__conversion_leave_folder(&job);
    presto__conversion_close_folder(&job);
    presto__share_close(&job);
    presto__plan_free(job.plan);
    presto__source_free(job.source);
    presto_dataset_free(job.dataset);
    presto_pipeline_free(job.indexed);
    presto__progress_file_done(&job.progress);
    presto_buffer_done(&job.dictionary);
    presto_buffer_done(&job.skips);
    return status < 0 ? status : PRESTO_OK;
}
