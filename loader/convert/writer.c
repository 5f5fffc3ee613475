/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer: a conversion whose samples a program gives, one by one. The folder, the progress file and
 * dataset.json are those of a conversion, so that a run that dies leaves the same, and another run
 * can go on.
 */
#include <presto/writer.h>

#include <inttypes.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../base/clock_internal.h"
#include "../../base/options_internal.h"
#include "../../base/stop_internal.h"
#include "../../base/tensor_internal.h"
#include "../../records/records_internal.h"
#include "writer_internal.h"

#define MEMORY_EACH ((size_t)32 << 20)
#define MEMORY_MOST ((size_t)256 << 20)

void presto_writer_options_init(presto_writer_options *options, size_t struct_bytes) {
    const presto_writer_options defaults = {.codec = "none", .threads = 1, .sync = true};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

/* ---- open ---- */

static presto_status copy_text(presto_writer *writer, const char *text, const char **copy_out,
                               presto_error *err) {
    if (text == NULL) {
        *copy_out = NULL;
        return PRESTO_OK;
    }
    size_t bytes = strlen(text) + 1;
    char *copy = presto_arena_alloc(&writer->texts, bytes, 1);
    if (copy == NULL)
        return presto_fail_memory(err, bytes);
    *copy_out = memcpy(copy, text, bytes);
    return PRESTO_OK;
}

static presto_status copy_labels(presto_writer *writer, const presto_writer_options *options,
                                 presto_error *err) {
    size_t count = options->label_count;
    if (count == 0)
        return PRESTO_OK;
    const char **names =
        presto_arena_alloc(&writer->texts, count * sizeof *names, _Alignof(const char *));
    if (names == NULL)
        return presto_fail_memory(err, count * sizeof *names);
    for (size_t i = 0; i < count; i++)
        PRESTO_TRY(copy_text(writer, options->label_names[i], &names[i], err));
    writer->job.label_names = names;
    writer->job.label_count = count;
    return PRESTO_OK;
}

static presto_status check_options(const presto_writer_options *options, presto_error *err) {
    if (options->dir == NULL || options->dir[0] == '\0')
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a writer needs a folder to write to");
    if (options->shards != 0 && options->shard_bytes != 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "shards end either by number or by size");
    if (options->shards != 0 && options->samples == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "for a number of shards, the number of samples must be known; else say "
                           "how large a shard is");
    if (options->shards > PRESTO_MAX_SHARDS)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%zu shards, more than %d",
                           options->shards, PRESTO_MAX_SHARDS);
    return presto__check_threads(options->threads, err);
}

/* A dictionary, and the distance of +delta, are found by looking at samples first. */
static presto_status choose_codec(presto__conversion *job, const char *text, presto_error *err) {
    PRESTO_TRY(presto_codec_parse(text == NULL ? "none" : text, &job->codec, err));
    if (job->codec.wants_dictionary)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "codec %s: a dictionary is trained on samples that are there; write "
                           "without, and convert the dataset",
                           text);
    if (job->codec.wants_delta && job->codec.delta_bytes == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "codec %s: say the distance of neighbours in bytes, e.g. +delta3", text);
    presto__codec_format(&job->codec, job->codec_text);
    return PRESTO_OK;
}

static size_t choose_memory(const presto_writer_options *options) {
    size_t parts = (size_t)options->threads + 1;
    if (options->prefetch_bytes != 0)
        return options->prefetch_bytes;
    return parts < MEMORY_MOST / MEMORY_EACH ? parts * MEMORY_EACH : MEMORY_MOST;
}

static presto_status take_options(presto_writer *writer, const presto_writer_options *options,
                                  presto_error *err) {
    presto_convert_options *convert = &writer->convert;
    presto__conversion *job = &writer->job;
    presto_convert_options_defaults(convert);
    convert->file_compression = options->file_compression;
    convert->shards = options->shards;
    convert->shard_bytes = options->shard_bytes;
    if (options->shards == 0 && options->shard_bytes == 0)
        convert->shard_bytes = PRESTO_WRITER_SHARD_BYTES;
    convert->threads = options->threads;
    convert->resume = options->resume;
    convert->sync = options->sync;
    PRESTO_TRY(copy_text(writer, options->dir, &convert->dir, err));
    PRESTO_TRY(copy_text(writer, options->main_feature, &job->main_feature, err));
    PRESTO_TRY(copy_labels(writer, options, err));
    writer->should_stop = options->should_stop;
    writer->should_stop_user = options->should_stop_user;
    writer->announced = options->samples;
    writer->most_bytes = choose_memory(options);
    job->options = convert;
    job->dir = convert->dir;
    job->regroup_step = SIZE_MAX;
    job->is_fed = true;
    job->prefetch_bytes = job->packets_bytes = writer->most_bytes;
    job->shard_count = options->shards;
    job->sample_count = options->samples;
    job->started_ns = presto__clock_ns();
    job->cpu_started_ns = presto__clock_process_cpu_ns();
    return choose_codec(job, options->codec, err);
}

/* What an earlier run has written. */
static presto_status take_progress(presto_writer *writer, presto_error *err) {
    presto__conversion *job = &writer->job;
    if (job->folder == PRESTO__FOLDER_WHOLE) {
        for (size_t i = 0; i < job->progress.shard_count; i++)
            writer->samples += job->progress.shards[i].described.records;
        return PRESTO_OK;
    }
    writer->samples = presto__progress_file_next(&job->progress);
    if (job->progress.shard_count > 0) {
        PRESTO_TRY(presto__schema_merge(&writer->alike.schema, &job->progress.schema, err));
        if (writer->alike.schema.count > 0)
            PRESTO_TRY(presto__alike_reserve(&writer->alike, err));
    }
    bool is_complete =
        !presto__conversion_by_size(job) && job->progress.shard_count == job->shard_count;
    return is_complete ? PRESTO_OK : presto__sample_store_open(&writer->store, job, err);
}

static presto_status open_writer(presto_writer *writer, const presto_writer_options *options,
                                 presto_error *err) {
    PRESTO_TRY(take_options(writer, options, err));
    PRESTO_TRY(presto__conversion_open_folder(&writer->job, err));
    PRESTO_TRY(take_progress(writer, err));
    return presto__blocks_start(writer, err);
}

presto_status presto_writer_open(const presto_writer_options *options, presto_writer **writer_out,
                                 presto_error *err) {
    presto_writer_options taken;
    presto_writer_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    PRESTO_TRY(check_options(&taken, err));
    presto_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return presto_fail_memory(err, sizeof *writer);
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->work, NULL);
    pthread_cond_init(&writer->change, NULL);
    presto_status status = open_writer(writer, &taken, err);
    if (status < 0) {
        presto_writer_free(writer);
        return status;
    }
    *writer_out = writer;
    return PRESTO_OK;
}

/* ---- add ---- */

/* With the lock held, without it while should_stop is asked. */
static presto_status wait_here(presto_writer *writer, presto_error *err) {
    presto__blocks_wait(writer);
    if (writer->is_stopped || writer->should_stop == NULL)
        return PRESTO_OK;
    pthread_mutex_unlock(&writer->lock);
    bool stops = writer->should_stop(writer->should_stop_user);
    pthread_mutex_lock(&writer->lock);
    return stops ? presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped") : PRESTO_OK;
}

presto_status presto__writer_begin(presto_writer *writer, presto_error *err) {
    presto_status status = PRESTO_OK;
    pthread_mutex_lock(&writer->lock);
    while (status == PRESTO_OK && !writer->is_stopped && !writer->is_finished &&
           (writer->is_adding || !presto__blocks_have_room(writer)))
        status = wait_here(writer, err);
    if (status == PRESTO_OK && writer->is_finished)
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "the writer is finished");
    if (status == PRESTO_OK && writer->is_stopped)
        status = presto__writer_failure(writer, err);
    writer->is_adding = writer->is_adding || status == PRESTO_OK;
    pthread_mutex_unlock(&writer->lock);
    return status;
}

void presto__writer_end(presto_writer *writer, uint64_t added) {
    pthread_mutex_lock(&writer->lock);
    writer->is_adding = false;
    writer->samples += added;
    if (writer->callers > 0)
        pthread_cond_broadcast(&writer->change);
    pthread_mutex_unlock(&writer->lock);
}

/* The sample is like those before, and says more of its features. */
static presto_status widen(presto_writer *writer, const presto_sample *sample, presto_error *err) {
    bool is_first = writer->alike.schema.count == 0;
    pthread_mutex_lock(&writer->lock);
    presto_status status = presto__schema_merge_sample(&writer->alike.schema, sample, err);
    if (status == PRESTO_OK && is_first)
        status = presto__alike_reserve(&writer->alike, err);
    if (status < 0 && is_first)
        presto__alike_done(&writer->alike);
    writer->has_news = true;
    pthread_mutex_unlock(&writer->lock);
    return status;
}

/* Codecs with a shuffle go by the elements of the main feature. */
static presto_status fit_codec(presto_writer *writer, const presto_sample *sample,
                               presto_error *err) {
    const char *main_feature = writer->job.main_feature;
    size_t at = main_feature == NULL
                    ? SIZE_MAX
                    : presto__sample_find(sample, presto_span_of_text(main_feature));
    if (main_feature != NULL && at == SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the samples have no feature '%s', which is to be the main one",
                           main_feature);
    uint64_t most = 0;
    for (size_t i = 0; main_feature == NULL && i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        uint64_t bytes = feature->encoding == PRESTO_ENCODE_TENSOR
                             ? presto_spec_elements(&feature->tensor.spec) *
                                   presto_dtype_bytes(feature->tensor.spec.dtype)
                             : 0;
        if (bytes <= most)
            continue;
        most = bytes;
        at = i;
    }
    bool is_numeric = at != SIZE_MAX && sample->features[at].encoding == PRESTO_ENCODE_TENSOR;
    return presto__codec_spec_fit(&writer->job.codec,
                                  is_numeric ? &sample->features[at].tensor.spec : NULL, err);
}

presto_status presto__writer_put(presto_writer *writer, const presto_sample *sample,
                                 presto__example_rows *rows, bool is_known, presto_error *err) {
    bool has_news = false;
    uint64_t number = sample->number;
    presto__sample_block *block = &writer->blocks[writer->next_in % writer->block_count];
    if (writer->job.folder == PRESTO__FOLDER_WHOLE)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the dataset is whole already, with %" PRIu64 " sample%s", number,
                           presto_plural(number));
    if (writer->announced != 0 && number >= writer->announced)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "more samples than the %" PRIu64 " that were announced",
                           writer->announced);
    if (!is_known)
        PRESTO_TRY(presto__alike_check(&writer->alike, sample, number, &has_news, err));
    if (!writer->is_fitted)
        PRESTO_TRY(fit_codec(writer, sample, err));
    PRESTO_TRY(presto__sample_block_add(block, sample, rows, err));
    presto_status status = has_news ? widen(writer, sample, err) : PRESTO_OK;
    if (status < 0) {
        presto__sample_block_take_back(block);
        return status;
    }
    writer->is_fitted = true;
    block->first = block->count == 1 ? number : block->first;
    return PRESTO_OK;
}

presto_status presto_writer_add(presto_writer *writer, const presto_sample *sample,
                                presto_error *err) {
    PRESTO_TRY(presto__writer_begin(writer, err));
    const presto_sample mine = {sample->features, sample->feature_count, writer->samples};
    presto_status status = presto__writer_put(writer, &mine, NULL, false, err);
    bool is_added = status == PRESTO_OK;
    if (is_added && presto__blocks_is_full(&writer->blocks[writer->next_in % writer->block_count]))
        status = presto__blocks_submit(writer, err);
    presto__writer_end(writer, is_added);
    return status;
}

uint64_t presto_writer_samples(const presto_writer *writer) {
    presto_writer *changing = (presto_writer *)(uintptr_t)writer;
    pthread_mutex_lock(&changing->lock);
    uint64_t samples = writer->samples;
    pthread_mutex_unlock(&changing->lock);
    return samples;
}

/* ---- finish ---- */

/* All that was added is in shards, but the last one may be open. */
static presto_status drain(presto_writer *writer, presto_error *err) {
    PRESTO_TRY(presto__blocks_submit(writer, err));
    presto_status status = PRESTO_OK;
    pthread_mutex_lock(&writer->lock);
    while (status == PRESTO_OK && !writer->is_stopped && writer->next_out < writer->next_in)
        status = wait_here(writer, err);
    if (status == PRESTO_OK && writer->is_stopped)
        status = presto__writer_failure(writer, err);
    pthread_mutex_unlock(&writer->lock);
    return status;
}

/* All is stored: the last shard ends, all get their names. */
static presto_status end_shards(presto_writer *writer, presto_error *err) {
    presto__conversion *job = &writer->job;
    if (job->folder == PRESTO__FOLDER_WHOLE)
        return PRESTO_OK;
    if (writer->store.writers != NULL)
        PRESTO_TRY(presto__sample_store_end(&writer->store, writer->samples, err));
    return presto__conversion_name_shards(job, err);
}

static presto_status complete(presto_writer *writer, presto_error *err) {
    presto__conversion *job = &writer->job;
    if (writer->announced != 0 && writer->samples != writer->announced)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%" PRIu64 " sample%s came, but %" PRIu64 " were announced",
                           writer->samples, presto_plural(writer->samples), writer->announced);
    PRESTO_TRY(drain(writer, err));
    presto__blocks_stop(writer);
    presto__stop_hook pass;
    presto_stop_fn ask = presto__path_is_remote(job->dir) ? writer->should_stop : NULL;
    presto__stop_scope before = presto__stop_enter(&pass, ask, writer->should_stop_user);
    presto_status status = end_shards(writer, err);
    PRESTO_TRY(presto__stop_leave(&pass, before, status, err));
    return presto__conversion_conclude(job, err);
}

presto_status presto_writer_finish_sized(presto_writer *writer, presto_convert_result *result_out,
                                         presto_error *err) {
    PRESTO_TRY(presto__result_check(result_out, err));
    PRESTO_TRY(presto__writer_begin(writer, err));
    presto_status status = complete(writer, err);
    pthread_mutex_lock(&writer->lock);
    writer->is_finished = status == PRESTO_OK;
    pthread_mutex_unlock(&writer->lock);
    presto__writer_end(writer, 0);
    if (status == PRESTO_OK)
        presto__conversion_fill_result(&writer->job, result_out);
    return status;
}

void presto_writer_free(presto_writer *writer) {
    if (writer == NULL)
        return;
    presto__blocks_stop(writer);
    presto__sample_store_close(&writer->store);
    if (!writer->is_finished)
        presto__conversion_leave_folder(&writer->job);
    presto__conversion_close_folder(&writer->job);
    presto__progress_file_done(&writer->job.progress);
    presto__alike_done(&writer->alike);
    presto__blocks_free(writer);
    presto_arena_done(&writer->texts);
    pthread_cond_destroy(&writer->work);
    pthread_cond_destroy(&writer->change);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}
