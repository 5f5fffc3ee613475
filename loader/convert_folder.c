/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a conversion: may it be written to, what of an earlier run stands there and is of
 * the same job, and what is taken away again when nothing came of it.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <presto/version.h>

#include "conversion_internal.h"

/* What must be equal for shards of another run to be kept. */
static char *job_text(const presto__conversion *job) {
    char digest[24];
    snprintf(digest, sizeof digest, "%016" PRIx64, presto__source_digest(job->source));
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:s}", "pipeline",
        presto_pipeline_json(job->pipeline), "split", job->split, "codec", job->codec_text,
        "file_compression", presto_file_compression_name(job->options->file_compression), "shards",
        (json_int_t)job->shard_count, "seed", (json_int_t)job->options->seed, "samples",
        (json_int_t)job->sample_count, "input", digest, "version", presto_version());
    char *text = root == NULL ? NULL : json_dumps(root, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref(root);
    return text;
}

static presto_status fail_folder(const presto__conversion *job, const char *before,
                                 const char *name, const char *after, presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%s%s%s", before, name, after);
    presto_error_set_file(err, job->dir);
    return status;
}

static bool ends_with(const char *text, const char *ending) {
    size_t bytes = strlen(text), wanted = strlen(ending);
    return bytes >= wanted && strcmp(text + bytes - wanted, ending) == 0;
}

/* May a conversion have left this behind? */
static bool is_ours(const presto__conversion *job, const char *name) {
    if (strcmp(name, PRESTO__PROGRESS_FILE) == 0 || strcmp(name, PRESTO__DICTIONARY_FILE) == 0)
        return true;
    if (name[0] == '.' && ends_with(name, ".partial"))
        return true;
    size_t shard, count;
    char shown[PRESTO__SHARD_NAME_BYTES];
    if (sscanf(name, "data-%5zu-of-%5zu", &shard, &count) != 2 || shard >= job->shard_count)
        return false;
    presto__conversion_shard_name(job, shard, shown);
    size_t bytes = strlen(shown);
    return strncmp(name, shown, bytes) == 0 &&
           (name[bytes] == '\0' || strcmp(name + bytes, ".index") == 0);
}

/* Look at what is in the folder; temporary files of a run that died are removed. */
static presto_status check_entries(const presto__conversion *job, DIR *folder, presto_error *err) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL)
            return errno == 0 ? PRESTO_OK
                              : presto_fail_errno(err, errno, job->dir, "cannot read folder");
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        /* All that a run leaves which dies before it has a progress file. */
        bool is_first = strcmp(name, PRESTO__PROGRESS_FILE ".partial") == 0;
        if (!job->has_progress_file && !is_first)
            return fail_folder(job, "is not empty (it holds ", name, ")", err);
        if (!is_ours(job, name))
            return fail_folder(job, "holds ", name, ", which is not part of the conversion", err);
        if (name[0] == '.' && ends_with(name, ".partial") && unlinkat(dirfd(folder), name, 0) != 0)
            return presto_fail_errno(err, errno, job->dir, "cannot remove %s", name);
    }
}

/* What a finished dataset was made with that this job would do otherwise; NULL: nothing. */
static const char *finished_difference(const presto__conversion *job,
                                       const presto_dataset_info *info, bool same_pipeline,
                                       uint64_t samples) {
    if (!same_pipeline)
        return "pipeline";
    if (info->split == NULL || strcmp(info->split, job->split) != 0)
        return "split";
    if (strcmp(info->codec, job->codec_text) != 0)
        return "codec";
    if (info->file_compression != job->options->file_compression)
        return "file_compression";
    if (info->shard_count != job->shard_count)
        return "shards";
    if (info->seed != job->options->seed)
        return "seed";
    bool fits = job->options->on_error == PRESTO_ON_ERROR_FAIL ? samples == job->sample_count
                                                               : samples <= job->sample_count;
    return fits ? NULL : "samples";
}

/*
 * To resume what is whole is to do nothing: whoever was killed between dataset.json and the exit
 * cannot know. Takes the figures from there.
 */
static presto_status take_finished(presto__conversion *job, presto_error *err) {
    presto_dataset_info info = {0};
    PRESTO_TRY(presto_dataset_info_read(job->dir, &info, err));
    presto_status status = presto__progress_read(job->dir, &job->progress, err);
    job->has_progress_file = status == PRESTO_OK;
    bool same_pipeline = false;
    status = info.pipeline_json == NULL
                 ? PRESTO_OK
                 : presto__pipeline_matches(job->pipeline, info.pipeline_json, &same_pipeline, err);
    uint64_t samples = 0;
    for (size_t i = 0; i < info.shard_count; i++)
        samples += info.shards[i].records;
    const char *difference = finished_difference(job, &info, same_pipeline, samples);
    if (status == PRESTO_OK && difference != NULL)
        status = fail_folder(job, "holds a whole dataset already, which differs in: ", difference,
                             "", err);
    for (size_t i = job->progress.shard_count; i < info.shard_count && status == PRESTO_OK; i++)
        status = presto__progress_add(&job->progress, info.shards[i].file, &info.shards[i], err);
    presto_dataset_info_done(&info);
    if (status == PRESTO_OK)
        job->progress.skipped = job->sample_count - samples;
    job->is_finished = status == PRESTO_OK;
    return status;
}

static presto_status check_folder(presto__conversion *job, presto_error *err) {
    if (mkdir(job->dir, 0777) == 0) {
        job->made_dir = true;
        return PRESTO_OK;
    }
    if (errno != EEXIST)
        return presto_fail_errno(err, errno, job->dir, "cannot make folder");
    bool is_dataset = false;
    PRESTO_TRY(presto__path_is_dataset(job->dir, &is_dataset, err));
    if (is_dataset && job->options->resume)
        return take_finished(job, err);
    if (is_dataset)
        return fail_folder(job, "holds a whole dataset already", "", "", err);
    presto_status status = presto__progress_read(job->dir, &job->progress, err);
    if (status < 0 && status != PRESTO_ERR_NOT_FOUND)
        return status;
    job->has_progress_file = status == PRESTO_OK;
    if (job->has_progress_file && !job->options->resume)
        return fail_folder(job, "holds an unfinished conversion: resume it, or remove it", "", "",
                           err);
    DIR *folder = opendir(job->dir);
    if (folder == NULL)
        return presto_fail_errno(err, errno, job->dir, "cannot open folder");
    status = check_entries(job, folder, err);
    closedir(folder);
    return status;
}

/* Of the shards that the progress file lists, keep those that stand. */
static void keep_whole_shards(presto__conversion *job) {
    presto__progress *progress = &job->progress;
    size_t whole = 0;
    for (; whole < progress->shard_count && whole < job->shard_count; whole++) {
        char name[PRESTO__SHARD_NAME_BYTES];
        presto__conversion_shard_name(job, whole, name);
        char *path = presto__path_join(job->dir, name, NULL);
        struct stat info;
        bool stands = path != NULL && strcmp(progress->shards[whole].file, name) == 0 &&
                      stat(path, &info) == 0 &&
                      (uint64_t)info.st_size == progress->shards[whole].stored_bytes;
        free(path);
        if (!stands)
            break;
    }
    for (size_t i = whole; i < progress->shard_count; i++)
        free(progress->shards[i].file);
    progress->shard_count = whole;
}

presto_status presto__conversion_open_folder(presto__conversion *job, presto_error *err) {
    PRESTO_TRY(check_folder(job, err));
    if (job->is_finished)
        return PRESTO_OK;
    char *text = job_text(job);
    if (text == NULL)
        return presto_fail_memory(err, 0);
    if (job->has_progress_file) {
        presto_status status = presto__progress_compare(&job->progress, text, err);
        free(text);
        if (status < 0) {
            presto_error_set_file(err, job->dir);
            return status;
        }
        keep_whole_shards(job);
        job->skipped_before = job->progress.skipped;
        return PRESTO_OK;
    }
    job->progress.job = text;
    job->has_progress_file = true;
    return presto__progress_write(job->dir, &job->progress, job->options->sync, err);
}

/* Is there anything in the folder but what goes along with shards? */
static bool holds_shards(const presto__conversion *job) {
    DIR *folder = opendir(job->dir);
    bool found = folder == NULL;
    for (const struct dirent *entry; !found && (entry = readdir(folder)) != NULL;)
        found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                strcmp(entry->d_name, PRESTO__DICTIONARY_FILE) != 0 &&
                strcmp(entry->d_name, PRESTO__PROGRESS_FILE) != 0;
    if (folder != NULL)
        closedir(folder);
    return found;
}

/*
 * Nothing whole was written: leave no trace. An earlier run may have been killed after it named a
 * shard and before it noted that: without the progress file such a folder could not be resumed.
 */
void presto__conversion_clear_folder(presto__conversion *job) {
    if (!job->has_progress_file || job->progress.shard_count > 0 || job->progress.job == NULL ||
        holds_shards(job))
        return;
    static const char *const names[] = {PRESTO__DICTIONARY_FILE, PRESTO__PROGRESS_FILE};
    for (size_t i = 0; i < 2; i++) {
        char *path = presto__path_join(job->dir, names[i], NULL);
        if (path != NULL)
            unlink(path);
        free(path);
    }
    if (job->made_dir)
        rmdir(job->dir);
}
