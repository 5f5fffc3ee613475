/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a conversion: may it be written to; which shards of an earlier run belong to the
 * same job; what is removed if the conversion fails.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <presto/version.h>

#include "../../base/clock_internal.h"
#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "../../base/paths_internal.h"
#include "../../records/records_internal.h"
#include "../../steps/pipelines_internal.h"
#include "convert_internal.h"

#define INDEX ".index"
#define LOCK_TRIES 100

/* The settings that must be equal for shards of another run to be kept. */
static char *job_text(const presto__conversion *job) {
    json_t *root = json_pack(
        "{s:s?, s:s?, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s}", "pipeline", job->pipeline_json,
        "stored", job->stored, "codec", job->codec_text, "file_compression",
        presto_file_compression_name(job->options->file_compression), "shards",
        (json_int_t)job->shard_count, "shard_bytes", (json_int_t)job->options->shard_bytes, "seed",
        (json_int_t)job->seed, "samples", (json_int_t)job->sample_count, "input", job->input_text,
        "version", presto_version());
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

/* The number of the shard that this file is, or is the index of, under either of its names.
 * SIZE_MAX: none. */
static size_t shard_of(const presto__conversion *job, const char *name) {
    size_t shard, count;
    char shown[PRESTO__SHARD_NAME_BYTES];
    if (sscanf(name, "data-%5zu-of-%5zu", &shard, &count) == 2 && shard < job->shard_count)
        presto__conversion_shard_name(job, shard, shown);
    else if (sscanf(name, ".data-%5zu.", &shard) == 1 && presto__conversion_by_size(job))
        presto__conversion_working_name(job, shard, shown);
    else
        return SIZE_MAX;
    size_t bytes = strlen(shown);
    bool has_name = strncmp(name, shown, bytes) == 0 &&
                    (name[bytes] == '\0' || strcmp(name + bytes, INDEX) == 0);
    return has_name ? shard : SIZE_MAX;
}

/* Does a conversion give this name to a whole file? */
static bool is_whole_name(const presto__conversion *job, const char *name) {
    return strcmp(name, PRESTO_PROGRESS_FILE) == 0 || strcmp(name, PRESTO__DICTIONARY_FILE) == 0 ||
           strcmp(name, PRESTO_DATASET_FILE) == 0 || shard_of(job, name) != SIZE_MAX;
}

static bool is_temporary_name(const presto__conversion *job, const char *name, bool *is_first_out) {
    char stem[PRESTO__SHARD_NAME_BYTES + 8];
    size_t bytes = presto__partial_stem(name);
    if (bytes == 0 || bytes >= sizeof stem)
        return false;
    memcpy(stem, name + 1, bytes);
    stem[bytes] = '\0';
    *is_first_out = strcmp(stem, PRESTO_PROGRESS_FILE) == 0;
    return is_whole_name(job, stem);
}

/* Check what is in the folder. Temporary files of a run that died are removed. */
static presto_status check_entries(const presto__conversion *job, DIR *folder, presto_error *err) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL)
            return errno == 0 ? PRESTO_OK
                              : presto_fail_errno(err, errno, job->dir, "cannot read folder");
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            strcmp(name, PRESTO_LOCK_FILE) == 0)
            continue;
        /* A run that dies before it has a progress file leaves only its temporary file. */
        bool is_first = false;
        bool is_temporary = is_temporary_name(job, name, &is_first);
        if (job->folder == PRESTO__FOLDER_UNSEEN && !is_first)
            return fail_folder(job, "is not empty (it holds ", name, ")", err);
        if (!is_temporary && !is_whole_name(job, name))
            return fail_folder(job, "holds ", name, ", which is not part of the conversion", err);
        if (is_temporary && unlinkat(dirfd(folder), name, 0) != 0)
            return presto_fail_errno(err, errno, job->dir, "cannot remove %s", name);
    }
}

/* Could the shards, by their records and sizes, be those of this job? */
static bool shards_fit(const presto__conversion *job, const presto_dataset_info *info) {
    const presto_dataset_shard *shards = info->shards;
    if (!presto__conversion_by_size(job)) {
        uint64_t first = 0;
        for (size_t i = 0; i < info->shard_count && i < job->shard_count; i++) {
            uint64_t end = presto__conversion_end(job, i);
            if (shards[i].records > end - first && !presto__conversion_regroups(job))
                return false;
            first = end;
        }
        return info->shard_count == job->shard_count;
    }
    if (info->file_compression != PRESTO_FILE_PLAIN)
        return true; /* their sizes before compression are unknown */
    uint64_t most = job->options->shard_bytes;
    for (size_t i = 0; i < info->shard_count; i++) {
        bool is_too_large = shards[i].records > 1 && shards[i].stored_bytes > most;
        /* The next shard begins with a record that did not fit here. */
        bool is_too_small = i + 1 < info->shard_count &&
                            shards[i].stored_bytes + shards[i + 1].stored_bytes <= most;
        if (is_too_large || is_too_small)
            return false;
    }
    return true;
}

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* The first setting in which a finished dataset differs from this job; NULL: none. */
static const char *finished_difference(const presto__conversion *job,
                                       const presto_dataset_info *info, bool same_pipeline,
                                       uint64_t samples) {
    if (!same_pipeline)
        return "pipeline";
    if (!same_text(info->stored, job->stored))
        return "stored representation";
    if (strcmp(info->codec, job->codec_text) != 0)
        return "codec";
    if (info->file_compression != job->options->file_compression)
        return "file_compression";
    if (!shards_fit(job, info))
        return presto__conversion_by_size(job) ? "shard_bytes" : "shards";
    if (info->seed != job->seed)
        return "seed";
    bool is_counted =
        !presto__conversion_regroups(job) && !(job->is_fed && presto__conversion_by_size(job));
    bool fits = !is_counted                           ? true
                : !presto__conversion_leaves_out(job) ? samples == job->sample_count
                                                      : samples <= job->sample_count;
    if (!fits)
        return "samples";
    /* It may have been written by a version without this field. */
    return info->input == NULL || same_text(info->input, job->input_text) ? NULL : "input";
}

/* The shards of a whole dataset. Which samples each shard has is unknown and not needed: the
 * first one gets the whole range. */
static presto_status take_shards(presto__conversion *job, const presto_dataset_info *info,
                                 presto_error *err) {
    for (size_t i = 0; i < info->shard_count; i++) {
        presto__whole_shard shard = {.number = i,
                                     .first = i == 0 ? 0 : job->sample_count,
                                     .end = job->sample_count,
                                     .described = info->shards[i]};
        PRESTO_TRY(presto__progress_file_add(&job->progress, info->shards[i].file, &shard, err));
    }
    job->shard_count = info->shard_count;
    job->folder = PRESTO__FOLDER_WHOLE;
    return PRESTO_OK;
}

/*
 * Resuming a whole dataset does nothing: a process killed between dataset.json and its exit cannot
 * know. Takes the figures from dataset.json.
 */
static presto_status take_finished(presto__conversion *job, presto_error *err) {
    presto_dataset_info info = {0};
    PRESTO_TRY(presto__dataset_info_read(job->dir, &info, err));
    bool same_pipeline = same_text(info.pipeline_json, job->pipeline_json);
    presto_status status = PRESTO_OK;
    if (job->pipeline != NULL && info.pipeline_json != NULL)
        status = presto__pipeline_same(job->pipeline, info.pipeline_json, &same_pipeline, err);
    uint64_t samples = 0;
    for (size_t i = 0; i < info.shard_count; i++)
        samples += info.shards[i].records;
    const char *difference = finished_difference(job, &info, same_pipeline, samples);
    if (status == PRESTO_OK && difference != NULL)
        status = fail_folder(job, "holds a whole dataset already, which differs in: ", difference,
                             "", err);
    if (job->is_fed && presto__conversion_by_size(job))
        job->sample_count = samples;
    if (status == PRESTO_OK)
        status = take_shards(job, &info, err);
    presto__dataset_info_free(&info);
    return status;
}

/* ---- what an interrupted run left ---- */

/* Is there a file of this name, of `bytes` bytes (0: any size)? */
static bool stands(const presto__conversion *job, const char *name, const char *suffix,
                   uint64_t bytes) {
    char file[PRESTO__SHARD_NAME_BYTES + 8];
    snprintf(file, sizeof file, "%s%s", name, suffix);
    char *path = presto__join_path(job->dir, file);
    struct stat info;
    bool found = path != NULL && lstat(path, &info) == 0 && S_ISREG(info.st_mode) &&
                 (bytes == 0 || (uint64_t)info.st_size == bytes);
    free(path);
    return found;
}

/*
 * Is shard i on the disk as the progress file lists it? While others are missing, it has its
 * working name. With `named`, it may also have its final name; its index may have that already.
 */
static bool shard_stands(const presto__conversion *job, size_t i, bool named) {
    const presto__whole_shard *whole = &job->progress.shards[i];
    const presto_dataset_shard *shard = &whole->described;
    char working[PRESTO__SHARD_NAME_BYTES], name[PRESTO__SHARD_NAME_BYTES];
    presto__conversion_working_name(job, whole->number, working);
    presto__conversion_shard_name(job, whole->number, name);
    if (strcmp(shard->file, working) != 0)
        return false;
    bool has_index = stands(job, working, INDEX, 0) || stands(job, name, INDEX, 0);
    return has_index && (stands(job, working, "", shard->stored_bytes) ||
                         (named && stands(job, name, "", shard->stored_bytes)));
}

/* By size: the number of the first shards that are on the disk, up to the first that is not. */
static size_t count_standing(const presto__conversion *job) {
    const presto__progress_file *progress = &job->progress;
    size_t count = 0;
    while (count < progress->shard_count && progress->shards[count].number == count &&
           progress->shards[count].first == (count == 0 ? 0 : progress->shards[count - 1].end) &&
           shard_stands(job, count, true))
        count++;
    return count;
}

/* By number, each shard is kept or not independently. If a step regroups, a shard begins where the
 * one before it ends, and a program gives its samples in order: then only the shards before the
 * first missing one are kept. */
static void drop_missing(presto__conversion *job) {
    presto__progress_file *progress = &job->progress;
    bool in_order = presto__conversion_regroups(job) || job->is_fed;
    size_t kept = 0;
    for (size_t i = 0; i < progress->shard_count; i++) {
        const presto__whole_shard shard = progress->shards[i];
        bool has_range = shard.number < job->shard_count &&
                         shard.first == presto__conversion_first(job, shard.number) &&
                         shard.end == presto__conversion_end(job, shard.number) &&
                         (shard.number == kept || !in_order);
        if (has_range && shard_stands(job, i, false))
            progress->shards[kept++] = shard;
        else
            free(shard.described.file);
    }
    progress->shard_count = kept;
}

/* Give a file of shard `shard` the name that it has in an unfinished run. */
static presto_status rename_back(const presto__conversion *job, int folder, const char *name,
                                 size_t shard, presto_error *err) {
    char working[PRESTO__SHARD_NAME_BYTES], index[PRESTO__SHARD_NAME_BYTES + 8];
    presto__conversion_working_name(job, shard, working);
    snprintf(index, sizeof index, "%s" INDEX, working);
    if (renameat(folder, name, folder, presto__ends_with(name, INDEX) ? index : working) != 0)
        return presto_fail_errno(err, errno, job->dir, "cannot rename %s", name);
    return PRESTO_OK;
}

/*
 * Keep the listed shards that are on the disk. By size, keep only those before the first missing
 * one: the end of a shard depends on its content, so later shards are removed. If all are there,
 * only their names may be missing.
 */
static presto_status keep_whole_shards(presto__conversion *job, DIR *folder, presto_error *err) {
    presto__progress_file *progress = &job->progress;
    bool is_complete = job->shard_count > 0 && progress->shard_count == job->shard_count;
    if (!presto__conversion_by_size(job)) {
        drop_missing(job);
        return PRESTO_OK;
    }
    size_t whole = count_standing(job);
    if (is_complete && whole == job->shard_count && !job->is_fed)
        return PRESTO_OK;
    rewinddir(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *name = entry->d_name;
        size_t shard = shard_of(job, name);
        if (shard == SIZE_MAX)
            continue;
        if (shard >= whole && unlinkat(dirfd(folder), name, 0) != 0)
            return presto_fail_errno(err, errno, job->dir, "cannot remove %s", name);
        if (shard < whole && name[0] != '.')
            PRESTO_TRY(rename_back(job, dirfd(folder), name, shard, err));
    }
    presto__progress_file_keep(progress, whole);
    job->shard_count = 0;
    return PRESTO_OK;
}

/* Read the progress file and check that it belongs to this job. */
static presto_status read_progress(presto__conversion *job, const char *text, presto_error *err) {
    presto_status status = presto__progress_file_read(job->dir, &job->progress, err);
    if (status == PRESTO_ERR_NOT_FOUND)
        return PRESTO_OK;
    PRESTO_TRY(status);
    job->folder = PRESTO__FOLDER_BEGUN;
    if (!job->options->resume)
        return fail_folder(job, "holds an unfinished conversion: resume it, or remove it", "", "",
                           err);
    uint64_t most = job->is_fed && job->sample_count == 0 ? UINT64_MAX : job->sample_count;
    status = presto__progress_file_compare(&job->progress, text, err);
    if (status >= 0)
        status = presto__progress_file_check_places(&job->progress,
                                                    presto__conversion_regroups(job), most, err);
    if (status < 0) {
        presto_error_set_file(err, job->dir);
        return status;
    }
    /* By size, the shards are complete when the last one ends with the last sample. If a program
     * gives the samples, they may be: then some have their names already, which say how many there
     * are. */
    if (presto__conversion_by_size(job) &&
        (job->is_fed || presto__progress_file_next(&job->progress) == job->sample_count))
        job->shard_count = job->progress.shard_count;
    return PRESTO_OK;
}

static presto_status take_unfinished(presto__conversion *job, const char *text, presto_error *err) {
    PRESTO_TRY(read_progress(job, text, err));
    DIR *folder = opendir(job->dir);
    if (folder == NULL)
        return presto_fail_errno(err, errno, job->dir, "cannot open folder");
    presto_status status = check_entries(job, folder, err);
    if (status == PRESTO_OK && job->folder == PRESTO__FOLDER_BEGUN)
        status = keep_whole_shards(job, folder, err);
    closedir(folder);
    job->skipped_before = presto__progress_file_skipped(&job->progress);
    return status;
}

static presto_status check_is_folder(const presto__conversion *job, presto_error *err) {
    struct stat info;
    if (stat(job->dir, &info) != 0)
        return presto_fail_errno(err, errno, job->dir, "cannot stat");
    return S_ISDIR(info.st_mode)
               ? PRESTO_OK
               : fail_folder(job, "is not a folder; a dataset is written into one", "", "", err);
}

/* The folder exists: check what is in it. */
static presto_status take_folder(presto__conversion *job, const char *text, presto_error *err) {
    bool is_dataset = false;
    PRESTO_TRY(presto__path_is_dataset(job->dir, &is_dataset, err));
    if (is_dataset && job->options->resume)
        return take_finished(job, err);
    if (is_dataset)
        return fail_folder(job, "holds a whole dataset already", "", "", err);
    return take_unfinished(job, text, err);
}

/*
 * A whole dataset is left as it is. Only the lock of a process that was killed at its very end is
 * removed. A conversion that is still running is waited for.
 */
static presto_status lock_finished(presto__conversion *job, presto_error *err) {
    char *path = presto__join_path(job->dir, PRESTO_LOCK_FILE);
    if (path == NULL)
        return presto_fail_memory(err, 1);
    struct stat info;
    bool is_left = lstat(path, &info) == 0;
    free(path);
    presto_status status =
        is_left ? presto__folder_lock_take(job->dir, &job->lock, err) : PRESTO_OK;
    return status == PRESTO_ERR_BUSY ? status : PRESTO_OK;
}

/* The folder's last owner may remove it between the two calls. */
static presto_status make_and_lock(presto__conversion *job, presto_error *err) {
    presto_status status = PRESTO_ERR_NOT_FOUND;
    for (int i = 0; status == PRESTO_ERR_NOT_FOUND && i < LOCK_TRIES; i++) {
        job->made_dir = mkdir(job->dir, 0777) == 0;
        if (!job->made_dir && errno != EEXIST)
            return presto_fail_errno(err, errno, job->dir, "cannot make folder");
        PRESTO_TRY(check_is_folder(job, err));
        status = presto__folder_lock_take(job->dir, &job->lock, err);
    }
    if (status < 0 && job->made_dir)
        (void)rmdir(job->dir); /* unless another process has started there */
    return status;
}

static presto_status open_folder(presto__conversion *job, char **text, presto_error *err) {
    bool is_dataset = false;
    PRESTO_TRY(presto__path_is_dataset(job->dir, &is_dataset, err));
    if (is_dataset && job->options->resume)
        PRESTO_TRY(lock_finished(job, err));
    else if (!is_dataset)
        PRESTO_TRY(make_and_lock(job, err));
    PRESTO_TRY(take_folder(job, *text, err));
    if (job->folder == PRESTO__FOLDER_WHOLE)
        return PRESTO_OK;
    bool is_begun = job->folder == PRESTO__FOLDER_BEGUN;
    job->folder = PRESTO__FOLDER_OURS;
    if (is_begun)
        return PRESTO_OK;
    job->progress.job = *text;
    *text = NULL;
    return presto__progress_file_write(job->dir, &job->progress, job->options->sync, err);
}

presto_status presto__conversion_open_folder(presto__conversion *job, presto_error *err) {
    char *text = job_text(job);
    if (text == NULL)
        return presto_fail_memory(err, 0);
    presto_status status = open_folder(job, &text, err);
    free(text);
    return status;
}

presto_status presto__conversion_check_folder(const presto__conversion *job, presto_error *err) {
    return job->lock == NULL ? PRESTO_OK : presto_folder_lock_check(job->lock, err);
}

presto_status presto__conversion_catch_up(presto__conversion *job, presto_error *err) {
    if (job->folder != PRESTO__FOLDER_BEHIND)
        return PRESTO_OK;
    PRESTO_TRY(presto__conversion_check_folder(job, err));
    PRESTO_TRY(presto__progress_file_write(job->dir, &job->progress, job->options->sync, err));
    job->noted_ns = presto__clock_ns();
    job->folder = PRESTO__FOLDER_OURS;
    return PRESTO_OK;
}

presto_status presto__conversion_note(presto__conversion *job, presto_error *err) {
    job->folder = PRESTO__FOLDER_BEHIND;
    bool is_due = presto__progress_file_is_due(&job->progress, presto__clock_ns() - job->noted_ns);
    return is_due ? presto__conversion_catch_up(job, err) : PRESTO_OK;
}

/* Does the folder hold anything but the files beside shards? */
static bool holds_shards(const presto__conversion *job) {
    DIR *folder = opendir(job->dir);
    bool found = folder == NULL;
    for (const struct dirent *entry; !found && (entry = readdir(folder)) != NULL;)
        found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                strcmp(entry->d_name, PRESTO__DICTIONARY_FILE) != 0 &&
                strcmp(entry->d_name, PRESTO_PROGRESS_FILE) != 0 &&
                strcmp(entry->d_name, PRESTO_LOCK_FILE) != 0;
    if (folder != NULL)
        closedir(folder);
    return found;
}

/*
 * No shard is whole: leave no trace. But an earlier run may have been killed between naming a shard
 * and noting it: without the progress file, that folder could not be resumed.
 */
static void clear_folder(presto__conversion *job) {
    if (holds_shards(job))
        return;
    static const char *const names[] = {PRESTO__DICTIONARY_FILE, PRESTO_PROGRESS_FILE};
    for (size_t i = 0; i < 2; i++) {
        char *path = presto__join_path(job->dir, names[i]);
        if (path != NULL)
            unlink(path);
        free(path);
    }
    job->is_left_empty = job->made_dir;
}

void presto__conversion_leave_folder(presto__conversion *job) {
    bool is_ours = job->folder == PRESTO__FOLDER_OURS || job->folder == PRESTO__FOLDER_BEHIND;
    if (!is_ours || presto__conversion_check_folder(job, NULL) < 0)
        return;
    if (job->progress.shard_count == 0)
        clear_folder(job);
    else
        (void)presto__conversion_catch_up(job, NULL); /* on failure, the shards that it lacks are
                                                       * made again */
}

void presto__conversion_close_folder(presto__conversion *job) {
    presto_folder_lock_release(job->lock);
    job->lock = NULL;
    if (job->is_left_empty)
        (void)rmdir(job->dir);
}
