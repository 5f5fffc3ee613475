/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a conversion: may it be written to; which shards of an earlier run belong to the
 * same job; what is removed if the conversion fails.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <presto/version.h>

#include "../../base/clock_internal.h"
#include "../../base/digest_internal.h"
#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "../../base/paths_internal.h"
#include "../../records/records_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../../storage/outlet_internal.h"
#include "share_internal.h"

#define INDEX ".index"
#define LOCK_TRIES 100

/* Of the names of the classes, and how many there are. NULL in JSON: none are known. */
static json_t *labels_json(const presto__conversion *job) {
    uint64_t digest = PRESTO__FNV_START;
    char text[48];
    if (job->label_names == NULL)
        return json_null();
    for (size_t i = 0; i < job->label_count; i++)
        digest = presto__fnv_add(digest, job->label_names[i], strlen(job->label_names[i]) + 1);
    snprintf(text, sizeof text, "%zu %016" PRIx64, job->label_count, digest);
    return json_string(text);
}

/* What all shares of a dataset have in common beside the settings of any conversion. */
static bool add_share(const presto__conversion *job, json_t *root) {
    const presto_loader_errors *errors = &job->options->errors;
    bool has_limit = errors->skip_limit <= INT64_MAX;
    json_t *limit = has_limit ? json_integer((json_int_t)errors->skip_limit) : json_null();
    json_t *more =
        json_pack("{s:I, s:o, s:s?, s:b, s:o, s:f}", "parts", (json_int_t)job->options->share.count,
                  "labels", labels_json(job), "main_feature", job->main_feature, "on_error_skip",
                  errors->policy == PRESTO_ON_ERROR_SKIP, "skip_limit", limit, "skip_fraction",
                  errors->skip_fraction);
    bool done = json_object_update(root, more) == 0;
    json_decref(more);
    return done;
}

char *presto__conversion_text(const presto__conversion *job) {
    json_t *root = json_pack(
        "{s:s?, s:s?, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s}", "pipeline", job->pipeline_json,
        "stored", job->stored, "codec", job->codec_text, "file_compression",
        presto_file_compression_name(job->options->file_compression), "shards",
        (json_int_t)job->shard_count, "shard_bytes", (json_int_t)job->options->shard_bytes, "seed",
        (json_int_t)job->seed, "samples", (json_int_t)job->sample_count, "input", job->input_text,
        "version", presto_version());
    bool is_whole = root != NULL && (!presto__conversion_is_share(job) || add_share(job, root));
    char *text = !is_whole ? NULL : json_dumps(root, JSON_SORT_KEYS | JSON_COMPACT);
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
           strcmp(name, presto__conversion_is_share(job) ? PRESTO__PART_FILE
                                                         : PRESTO_DATASET_FILE) == 0 ||
           shard_of(job, name) != SIZE_MAX;
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

/* ---- names in the folder ---- */

typedef struct names_reading {
    const presto__conversion *job;
    presto__paths names;
} names_reading;

/* A run that dies before it has a progress file leaves only its temporary file. */
static presto_status take_name(names_reading *reading, const char *name, presto_error *err) {
    const presto__conversion *job = reading->job;
    bool is_first = false;
    if (strcmp(name, PRESTO_LOCK_FILE) == 0)
        return PRESTO_OK;
    if (strcmp(name, PRESTO_PROGRESS_FILE) == 0 && job->folder == PRESTO__FOLDER_UNSEEN &&
        presto__path_is_remote(job->dir))
        return PRESTO_OK; /* made since it was looked for: who cannot make it is told */
    bool is_temporary = is_temporary_name(job, name, &is_first);
    if (job->folder == PRESTO__FOLDER_UNSEEN && !is_first)
        return fail_folder(job, "is not empty (it holds ", name, ")", err);
    if (!is_temporary && !is_whole_name(job, name))
        return fail_folder(job, "holds ", name, ", which is not part of the conversion", err);
    return presto__paths_add(&reading->names, name, err);
}

static presto_status take_found(void *user, const presto__listed *found, presto_error *err) {
    return take_name(user, found->name, err);
}

static presto_status take_inner_folder(void *user, const char *path, presto_error *err) {
    const char *slash = strrchr(path, '/');
    return take_name(user, slash == NULL ? path : slash + 1, err);
}

/* All names in the folder; each is one that a conversion gives. The caller frees them, also on
 * failure. */
static presto_status list_names(names_reading *reading, presto_error *err) {
    const presto__list list = {
        .user = reading, .found = take_found, .folder = take_inner_folder, .is_shallow = true};
    return presto__object_list(reading->job->dir, &list, err);
}

static presto_status remove_name(const presto__conversion *job, const char *name,
                                 presto_error *err) {
    char *path = presto__join_path(job->dir, name);
    presto_status status =
        path == NULL ? presto_fail_memory(err, strlen(name)) : presto__object_remove(path, err);
    free(path);
    return status;
}

/* Temporary files of a run that died are removed. */
static presto_status remove_temporary(const names_reading *reading, presto_error *err) {
    bool is_first;
    for (size_t i = 0; i < reading->names.count; i++)
        if (is_temporary_name(reading->job, reading->names.items[i], &is_first))
            PRESTO_TRY(remove_name(reading->job, reading->names.items[i], err));
    return PRESTO_OK;
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

/* Shards are looked for. */
typedef struct standing {
    const presto__conversion *job;
    presto_status status; /* < 0: a server did not say whether one is there */
    presto_error why;
} standing;

/* Is there an object of this name, of `bytes` bytes (0: any size)? A link is none. */
static bool stands(standing *look, const char *name, const char *suffix, uint64_t bytes) {
    char file[PRESTO__SHARD_NAME_BYTES + 8];
    snprintf(file, sizeof file, "%s%s", name, suffix);
    char *path = presto__join_path(look->job->dir, file);
    presto__object_info info;
    presto_error why;
    struct stat linked;
    bool is_link = path != NULL && !presto__path_is_remote(path) && lstat(path, &linked) == 0 &&
                   S_ISLNK(linked.st_mode);
    presto_status status = path == NULL ? presto_fail_memory(&why, strlen(file))
                           : is_link    ? PRESTO_ERR_NOT_FOUND
                                        : presto__object_find(path, &info, &why);
    /* What is not known to be missing is not made again in its place. */
    bool is_known = status >= 0 || status == PRESTO_ERR_NOT_FOUND ||
                    (path != NULL && !presto__path_is_remote(path));
    if (!is_known && look->status == PRESTO_OK) {
        look->status = status;
        look->why = why;
    }
    free(path);
    return status == PRESTO_OK && info.type == PRESTO__OBJECT_FILE &&
           (bytes == 0 || info.bytes == bytes);
}

/*
 * Is shard i on the disk as the progress file lists it? While others are missing, it has its
 * working name. With `named`, it may also have its final name; its index may have that already.
 */
static bool shard_stands(standing *look, size_t i, bool named) {
    const presto__conversion *job = look->job;
    const presto__whole_shard *whole = &job->progress.shards[i];
    const presto_dataset_shard *shard = &whole->described;
    char working[PRESTO__SHARD_NAME_BYTES], name[PRESTO__SHARD_NAME_BYTES];
    presto__conversion_working_name(job, whole->number, working);
    presto__conversion_shard_name(job, whole->number, name);
    if (strcmp(shard->file, working) != 0)
        return false;
    bool has_index = stands(look, working, INDEX, 0) || stands(look, name, INDEX, 0);
    return has_index && (stands(look, working, "", shard->stored_bytes) ||
                         (named && stands(look, name, "", shard->stored_bytes)));
}

/* By size: the number of the first shards that are on the disk, up to the first that is not. */
static size_t count_standing(standing *look) {
    const presto__progress_file *progress = &look->job->progress;
    size_t count = 0;
    while (count < progress->shard_count && progress->shards[count].number == count &&
           progress->shards[count].first == (count == 0 ? 0 : progress->shards[count - 1].end) &&
           shard_stands(look, count, true))
        count++;
    return count;
}

/* By number, each shard is kept or not independently. If a step regroups, a shard begins where the
 * one before it ends, and a program gives its samples in order: then only the shards before the
 * first missing one are kept. */
static void drop_missing(presto__conversion *job, standing *look) {
    presto__progress_file *progress = &job->progress;
    bool in_order = presto__conversion_regroups(job) || job->is_fed;
    size_t kept = 0;
    for (size_t i = 0; i < progress->shard_count; i++) {
        const presto__whole_shard shard = progress->shards[i];
        bool has_range = shard.number < job->shard_count &&
                         shard.first == presto__conversion_first(job, shard.number) &&
                         shard.end == presto__conversion_end(job, shard.number) &&
                         (shard.number == kept || !in_order);
        if (has_range && shard_stands(look, i, false))
            progress->shards[kept++] = shard;
        else
            free(shard.described.file);
    }
    progress->shard_count = kept;
}

/* Give a file of shard `shard` the name that it has in an unfinished run. */
static presto_status rename_back(const presto__conversion *job, const char *name, size_t shard,
                                 presto_error *err) {
    char working[PRESTO__SHARD_NAME_BYTES], index[PRESTO__SHARD_NAME_BYTES + 8];
    presto__conversion_working_name(job, shard, working);
    snprintf(index, sizeof index, "%s" INDEX, working);
    char *from = presto__join_path(job->dir, name);
    char *to = presto__join_path(job->dir, presto__ends_with(name, INDEX) ? index : working);
    presto_status status = from == NULL || to == NULL ? presto_fail_memory(err, strlen(name))
                                                      : presto__object_rename(from, to, err);
    free(from);
    free(to);
    return status;
}

/*
 * Keep the listed shards that are on the disk. By size, keep only those before the first missing
 * one: the end of a shard depends on its content, so later shards are removed. If all are there,
 * only their names may be missing.
 */
static presto_status keep_whole_shards(presto__conversion *job, const presto__paths *names,
                                       presto_error *err) {
    presto__progress_file *progress = &job->progress;
    bool is_complete = job->shard_count > 0 && progress->shard_count == job->shard_count;
    bool by_size = presto__conversion_by_size(job);
    standing look = {.job = job};
    size_t whole = by_size ? count_standing(&look) : 0;
    if (!by_size)
        drop_missing(job, &look);
    if (look.status < 0 && err != NULL)
        *err = look.why;
    if (look.status < 0 || !by_size)
        return look.status;
    if (is_complete && whole == job->shard_count && !job->is_fed)
        return PRESTO_OK;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        size_t shard = shard_of(job, name);
        if (shard == SIZE_MAX)
            continue;
        if (shard >= whole)
            PRESTO_TRY(remove_name(job, name, err));
        else if (name[0] != '.')
            PRESTO_TRY(rename_back(job, name, shard, err));
    }
    presto__progress_file_keep(progress, whole);
    job->shard_count = 0;
    return PRESTO_OK;
}

/* Does the progress that was read belong to this job? */
static presto_status check_progress(presto__conversion *job, const char *text, presto_error *err) {
    job->folder = PRESTO__FOLDER_BEGUN;
    if (!job->options->resume)
        return fail_folder(job, "holds an unfinished conversion: resume it, or remove it", "", "",
                           err);
    uint64_t most = job->is_fed && job->sample_count == 0 ? UINT64_MAX : job->sample_count;
    presto_status status = presto__progress_file_compare(&job->progress, text, err);
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

/* In a bucket an object is written only where none is: shards that nobody has noted go. */
static presto_status remove_unlisted(const presto__conversion *job, const presto__paths *names,
                                     presto_error *err) {
    const presto__progress_file *progress = &job->progress;
    for (size_t i = 0; i < names->count; i++) {
        size_t shard = shard_of(job, names->items[i]);
        bool is_listed = shard == SIZE_MAX;
        for (size_t at = 0; at < progress->shard_count && !is_listed; at++)
            is_listed = progress->shards[at].number == shard;
        if (!is_listed)
            PRESTO_TRY(remove_name(job, names->items[i], err));
    }
    return PRESTO_OK;
}

/* What is in the folder, beside the progress, which was read. */
static presto_status take_entries(presto__conversion *job, presto_error *err) {
    names_reading reading = {.job = job};
    presto_status status = list_names(&reading, err);
    if (status >= 0)
        status = remove_temporary(&reading, err);
    if (status >= 0 && job->folder == PRESTO__FOLDER_BEGUN)
        status = keep_whole_shards(job, &reading.names, err);
    if (status >= 0 && job->bucket_lock != NULL && !presto__conversion_by_size(job))
        status = remove_unlisted(job, &reading.names, err);
    presto__paths_done(&reading.names);
    job->skipped_before = presto__progress_file_skipped(&job->progress);
    return status;
}

static presto_status take_unfinished(presto__conversion *job, const char *text, presto_error *err) {
    presto_status status = presto__progress_file_read(job->dir, &job->progress, err);
    if (status == PRESTO_OK)
        status = check_progress(job, text, err);
    if (status < 0 && status != PRESTO_ERR_NOT_FOUND)
        return status;
    return take_entries(job, err);
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
        bool is_new = mkdir(job->dir, 0777) == 0;
        job->made_dir = job->made_dir || is_new;
        if (!is_new && errno != EEXIST)
            return presto_fail_errno(err, errno, job->dir, "cannot make folder");
        PRESTO_TRY(check_is_folder(job, err));
        status = presto__folder_lock_take(job->dir, &job->lock, err);
    }
    if (status < 0 && job->made_dir)
        (void)rmdir(job->dir); /* unless another process has started there */
    return status;
}

/* ---- in a bucket ---- */

/* A larger object cannot get its name, which takes a copy. */
#define MOST_COPIED_BYTES (UINT64_C(5) << 30)

static presto_status check_bucket(const presto__conversion *job, presto_error *err) {
    PRESTO_TRY(presto__path_check_writable(job->dir, err));
    if (!presto__conversion_by_size(job) || job->options->shard_bytes <= MOST_COPIED_BYTES)
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                    "in a bucket, shards that end by their size have at most 5 GiB, as each is "
                    "copied to its name in the end: give a number of shards instead");
    presto_error_set_file(err, job->dir);
    return status;
}

/* Nothing is there yet. Another process may have come and gone since that was seen. */
static presto_status begin_bucket(presto__conversion *job, char **text, presto_error *err) {
    bool is_dataset = false;
    PRESTO_TRY(take_entries(job, err));
    job->progress.job = *text;
    *text = NULL;
    PRESTO_TRY(presto__bucket_lock_make(job->dir, &job->progress, &job->bucket_lock, err));
    presto_status status = presto__path_is_dataset(job->dir, &is_dataset, err);
    if (status == PRESTO_OK && is_dataset)
        status = fail_folder(job, "holds a whole dataset already", "", "", err);
    if (status < 0)
        (void)remove_name(job, PRESTO_PROGRESS_FILE, NULL);
    return status;
}

/*
 * Read the progress of an earlier run, and become the owner. What that run had asked for before it
 * died may be done later, so the file is read again as long as it is that run's. PRESTO_ERR_NOT_FOUND:
 * there is none.
 */
static presto_status read_and_take(presto__conversion *job, const char *text, presto_error *err) {
    presto__bucket_lock *before = NULL;
    presto_status status = PRESTO_ERR_BUSY;
    for (int i = 0; status == PRESTO_ERR_BUSY && i < LOCK_TRIES; i++) {
        presto__owner_state owner;
        presto__progress_file_done(&job->progress);
        status = presto__bucket_lock_read(job->dir, &job->progress, &job->bucket_lock, &owner, err);
        if (status == PRESTO_OK)
            status = check_progress(job, text, err);
        if (status < 0)
            break;
        bool is_same = before == NULL || presto__bucket_lock_is_same(before, job->bucket_lock);
        status = presto__bucket_lock_take_over(job->bucket_lock, &job->progress, err);
        if (status != PRESTO_ERR_BUSY || !is_same)
            break;
        presto__bucket_lock_free(before);
        before = job->bucket_lock;
        job->bucket_lock = NULL;
    }
    presto__bucket_lock_free(before);
    return status;
}

static presto_status open_bucket(presto__conversion *job, char **text, presto_error *err) {
    bool is_dataset = false;
    job->sent_before = presto__sent_count();
    PRESTO_TRY(check_bucket(job, err));
    PRESTO_TRY(presto__path_is_dataset(job->dir, &is_dataset, err));
    if (is_dataset && job->options->resume)
        return take_finished(job, err);
    if (is_dataset)
        return fail_folder(job, "holds a whole dataset already", "", "", err);
    presto_status status = read_and_take(job, *text, err);
    if (status == PRESTO_OK) {
        /* What the run that died had begun; if it is alive, it ends with an error. */
        PRESTO_TRY(presto__uploads_abort_all(job->dir, NULL, err));
        status = take_entries(job, err);
    } else if (status == PRESTO_ERR_NOT_FOUND) {
        status = begin_bucket(job, text, err);
    }
    if (status == PRESTO_OK)
        job->folder = PRESTO__FOLDER_OURS;
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
    char *text = presto__conversion_text(job);
    if (text == NULL)
        return presto_fail_memory(err, 0);
    presto_status status = presto__path_is_remote(job->dir) ? open_bucket(job, &text, err)
                                                            : open_folder(job, &text, err);
    free(text);
    return status;
}

presto_status presto__conversion_check_folder(const presto__conversion *job, presto_error *err) {
    if (job->bucket_lock != NULL)
        return presto__bucket_lock_check(job->bucket_lock, err);
    return job->lock == NULL ? PRESTO_OK : presto_folder_lock_check(job->lock, err);
}

presto_status presto__conversion_catch_up(presto__conversion *job, presto_error *err) {
    if (job->folder != PRESTO__FOLDER_BEHIND)
        return PRESTO_OK;
    if (job->bucket_lock != NULL) {
        PRESTO_TRY(presto__bucket_lock_write(job->bucket_lock, &job->progress, err));
    } else {
        PRESTO_TRY(presto__conversion_check_folder(job, err));
        PRESTO_TRY(presto__progress_file_write(job->dir, &job->progress, job->options->sync, err));
    }
    job->noted_ns = presto__clock_ns();
    job->folder = PRESTO__FOLDER_OURS;
    return PRESTO_OK;
}

presto_status presto__conversion_note(presto__conversion *job, presto_error *err) {
    job->folder = PRESTO__FOLDER_BEHIND;
    bool is_due = presto__progress_file_is_due(&job->progress, presto__clock_ns() - job->noted_ns);
    return is_due ? presto__conversion_catch_up(job, err) : PRESTO_OK;
}

/* Ends the list: there is a shard. */
static presto_status find_shard(void *user, const presto__listed *found, presto_error *err) {
    (void)user, (void)err;
    bool is_beside = strcmp(found->name, PRESTO__DICTIONARY_FILE) == 0 ||
                     strcmp(found->name, PRESTO_PROGRESS_FILE) == 0 ||
                     strcmp(found->name, PRESTO_LOCK_FILE) == 0;
    return is_beside ? PRESTO_OK : PRESTO_ERR_STOPPED;
}

/* Does the folder hold anything but the files beside shards? True, too, if it cannot be read. */
static bool holds_shards(const presto__conversion *job) {
    const presto__list list = {.found = find_shard, .is_shallow = true};
    return presto__object_list(job->dir, &list, NULL) < 0;
}

/*
 * No shard is whole: leave no trace. But an earlier run may have been killed between naming a shard
 * and noting it: without the progress file, that folder could not be resumed.
 */
static void clear_folder(presto__conversion *job) {
    if (holds_shards(job)) {
        if (job->bucket_lock != NULL)
            presto__bucket_lock_give_up(job->bucket_lock, &job->progress);
        return;
    }
    (void)remove_name(job, PRESTO__DICTIONARY_FILE, NULL);
    (void)remove_name(job, PRESTO_PROGRESS_FILE, NULL);
    job->is_left_empty = job->made_dir;
}

void presto__conversion_leave_folder(presto__conversion *job) {
    bool is_ours = job->folder == PRESTO__FOLDER_OURS || job->folder == PRESTO__FOLDER_BEHIND;
    if (!is_ours || presto__conversion_check_folder(job, NULL) < 0)
        return;
    if (job->progress.shard_count == 0)
        clear_folder(job);
    else if (job->bucket_lock != NULL)
        presto__bucket_lock_give_up(job->bucket_lock, &job->progress);
    else
        (void)presto__conversion_catch_up(job, NULL); /* on failure, the shards that it lacks are
                                                       * made again */
}

void presto__conversion_close_folder(presto__conversion *job) {
    presto_folder_lock_release(job->lock);
    presto__bucket_lock_free(job->bucket_lock);
    job->lock = NULL;
    job->bucket_lock = NULL;
    if (job->is_left_empty)
        (void)rmdir(job->dir);
}
