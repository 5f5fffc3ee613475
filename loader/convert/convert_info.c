/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a conversion: dataset.json, and the progress file removed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>
#include <presto/version.h>

#include "../../base/file_internal.h"
#include "../../storage/outlet_internal.h"
#include "share_internal.h"

static char *copy_text(const char *text) {
    return text == NULL ? NULL : strdup(text);
}

presto_status presto__info_copy_features(presto_dataset_info *info,
                                         const presto_feature_spec *features, size_t count,
                                         presto_error *err) {
    info->features = calloc(count + 1, sizeof *info->features);
    if (info->features == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *info->features);
    for (size_t i = 0; i < count; i++) {
        info->features[i] = features[i];
        info->features[i].name = strdup(features[i].name);
        if (info->features[i].name == NULL)
            return presto_fail_memory(err, strlen(features[i].name) + 1);
        info->feature_count++;
    }
    return PRESTO_OK;
}

/* A source without label names has no list. */
static presto_status copy_label_names(const presto__conversion *job, presto_dataset_info *info,
                                      presto_error *err) {
    size_t count = job->label_count;
    const char *const *names = job->label_names;
    if (names == NULL)
        return PRESTO_OK;
    info->label_names = calloc(count + 1, sizeof *info->label_names);
    if (info->label_names == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *info->label_names);
    for (size_t i = 0; i < count; i++) {
        info->label_names[i] = strdup(names[i]);
        if (info->label_names[i] == NULL)
            return presto_fail_memory(err, strlen(names[i]) + 1);
        info->label_count++;
    }
    return PRESTO_OK;
}

/* Records that were stored again, all and in order, are the stream that their input was. */
static void note_stream(const presto__conversion *job, presto_dataset_info *info) {
    const presto_source *source = job->source;
    uint64_t records = 0;
    for (size_t i = 0; i < job->progress.shard_count; i++)
        records += job->progress.shards[i].described.records;
    if (!presto__conversion_is_stream(job) || records != source->full_count)
        return;
    info->has_stream = true;
    info->stream_counted = presto__source_digest(source);
    info->stream_files = source->ops->walk->digest(source);
}

static presto_status fill_info(const presto__conversion *job, presto_dataset_info *info,
                               presto_error *err) {
    const presto__progress_file *progress = &job->progress;
    info->pipeline_json = copy_text(job->pipeline_json);
    info->stored = copy_text(job->stored);
    info->main_feature = copy_text(job->main_feature);
    info->codec = copy_text(job->codec_text);
    info->dictionary_file = job->codec.wants_dictionary ? copy_text(PRESTO__DICTIONARY_FILE) : NULL;
    info->file_compression = job->options->file_compression;
    info->seed = job->seed;
    info->tool_version = copy_text(presto_version());
    info->input = job->is_fed ? NULL : copy_text(job->input_text);
    note_stream(job, info);
    /* If no steps ran, the features are those of the source. */
    bool is_of_source = job->progress.schema.count == 0 && !job->is_fed;
    PRESTO_TRY(presto__info_copy_features(
        info, is_of_source ? job->source->features : job->progress.schema.features,
        is_of_source ? job->source->feature_count : job->progress.schema.count, err));
    PRESTO_TRY(copy_label_names(job, info, err));
    info->shards = calloc(progress->shard_count + 1, sizeof *info->shards);
    if (info->shards == NULL)
        return presto_fail_memory(err, (progress->shard_count + 1) * sizeof *info->shards);
    for (size_t i = 0; i < progress->shard_count; i++) {
        info->shards[i] = progress->shards[i].described;
        info->shards[i].file = copy_text(progress->shards[i].described.file);
        if (info->shards[i].file == NULL)
            return presto_fail_memory(err, 0);
        info->shard_count++;
    }
    bool lacks_main = info->main_feature == NULL && job->main_feature != NULL;
    bool lacks_dictionary = info->dictionary_file == NULL && job->codec.wants_dictionary;
    bool lacks_pipeline = info->pipeline_json == NULL && job->pipeline_json != NULL;
    bool lacks_stored = info->stored == NULL && job->stored != NULL;
    bool lacks_input = info->input == NULL && !job->is_fed;
    if (info->codec == NULL || info->tool_version == NULL || lacks_input || lacks_main ||
        lacks_dictionary || lacks_pipeline || lacks_stored)
        return presto_fail_memory(err, 0);
    return PRESTO_OK;
}

static presto_status write_info(presto__conversion *job, presto_error *err) {
    presto_dataset_info info = {0};
    presto_status status = fill_info(job, &info, err);
    if (status == PRESTO_OK)
        status = presto__conversion_is_share(job)
                     ? presto__share_write(job, &info, err)
                     : presto__dataset_info_write(job->dir, &info, job->options->sync, err);
    presto__dataset_info_free(&info);
    return status;
}

/* What the storage has without a CRC of its own is verified by reading it. */
static void note_unchecked(const presto__conversion *job) {
    char text[160];
    uint64_t count = presto__sent_count().unchecked - job->sent_before.unchecked;
    if (!presto__path_is_remote(job->dir) || count == 0 || job->options->on_note == NULL)
        return;
    snprintf(text, sizeof text,
             "the server keeps no CRC-32C of %" PRIu64
             " object%s: presto-inspect verify will read what it cannot ask",
             count, presto_plural(count));
    job->options->on_note(job->options->on_note_user, text);
}

/* Is the folder ours, until dataset.json stands there? In a bucket, who takes over now keeps the shards
 * that the progress file lists, so it must list all of them before dataset.json does. */
static presto_status check_end(presto__conversion *job, presto_error *err) {
    if (job->bucket_lock != NULL)
        PRESTO_TRY(presto__conversion_catch_up(job, err));
    return presto__conversion_check_folder(job, err);
}

/* Writes dataset.json, the last file; then removes the progress file. */
presto_status presto__conversion_conclude(presto__conversion *job, presto_error *err) {
    char *path = presto__join_path(job->dir, PRESTO_PROGRESS_FILE);
    if (path == NULL)
        return presto_fail_memory(err, 1);
    presto_status status = job->folder == PRESTO__FOLDER_WHOLE ? PRESTO_OK : check_end(job, err);
    if (status == PRESTO_OK && job->folder != PRESTO__FOLDER_WHOLE)
        status = write_info(job, err);
    if (status == PRESTO_OK)
        status = presto__object_remove(path, err);
    if (status == PRESTO_OK)
        note_unchecked(job);
    free(path);
    return status;
}
