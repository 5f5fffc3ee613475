/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversion that writes a share of a dataset's shards. It is an ordinary conversion in a folder of
 * its own, DIR/_parts/00003-of-00008.ATTEMPT: lock, progress file, and what is resumed or removed are
 * those of any other. Only the list of shards is shorter, and part.json stands for dataset.json.
 *
 * Attempts know nothing of each other, but for one thing: an attempt of the same job that is whole is
 * not written again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/crc32c.h>

#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "../../records/records_internal.h"
#include "share_internal.h"

#define MAKE_TRIES 100

/* ---- names of attempts ---- */

bool presto__attempt_is_name(const char *name) {
    static const char taken[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t bytes = strlen(name);
    return bytes > 0 && bytes <= PRESTO__ATTEMPT_MOST && strspn(name, taken) == bytes;
}

static bool take_number(const char **at, size_t *out) {
    if (strspn(*at, "0123456789") != 5)
        return false;
    *out = (size_t)strtoul(*at, NULL, 10);
    *at += 5;
    return true;
}

bool presto__attempt_parse(const char *folder, size_t *number_out, size_t *count_out) {
    const char *at = folder;
    size_t number, count;
    if (!take_number(&at, &number) || strncmp(at, "-of-", 4) != 0)
        return false;
    at += 4;
    if (!take_number(&at, &count) || number >= count || *at != '.' ||
        !presto__attempt_is_name(at + 1))
        return false;
    *number_out = number;
    *count_out = count;
    return true;
}

void presto__attempt_folder(size_t number, size_t count, const char *attempt,
                            char folder_out[PRESTO__ATTEMPT_FOLDER_BYTES]) {
    snprintf(folder_out, PRESTO__ATTEMPT_FOLDER_BYTES, "%05zu-of-%05zu.%.*s", number, count,
             PRESTO__ATTEMPT_MOST, attempt);
}

static presto_status add_attempt(void *user, const char *path, presto_error *err) {
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    size_t number, count;
    struct stat info;
    bool is_one = presto__attempt_parse(name, &number, &count) && lstat(path, &info) == 0 &&
                  S_ISDIR(info.st_mode);
    return is_one ? presto__paths_add(user, name, err) : PRESTO_OK;
}

/* Files that are no attempt's, and what went while it was listed. */
static presto_status pass_over(void *user, const presto__listed *found, presto_error *err) {
    (void)user, (void)found, (void)err;
    return PRESTO_OK;
}

/* A folder that went since it was looked at is an empty one: the last run that failed removes it. */
static presto_status list_or_nothing(const char *path, const presto__list *list,
                                     presto_error *err) {
    presto_error why = {0};
    presto_status status = presto__object_list(path, list, &why);
    if (status < 0 && why.sys_errno == ENOENT)
        return PRESTO_OK;
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

presto_status presto__attempts_list(const char *parts, presto__paths *attempts_out,
                                    presto_error *err) {
    const presto__list list = {
        .user = attempts_out, .found = pass_over, .folder = add_attempt, .is_shallow = true};
    struct stat info;
    bool stands = lstat(parts, &info) == 0;
    if (!stands && errno == ENOENT)
        return PRESTO_OK;
    if (stands && !S_ISDIR(info.st_mode)) { /* through a link, files of others would be moved */
        presto_status status =
            presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "is no folder of its own");
        presto_error_set_file(err, parts);
        return status;
    }
    PRESTO_TRY(list_or_nothing(parts, &list, err));
    if (attempts_out->count > 0)
        qsort(attempts_out->items, attempts_out->count, sizeof *attempts_out->items, compare_names);
    return PRESTO_OK;
}

/* ---- may there be shares? ---- */

static presto_status refuse(const char *why, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%s", why);
}

presto_status presto__share_check(const presto__conversion *job, presto_error *err) {
    const presto_convert_options *options = job->options;
    const presto_share *share = &options->share;
    if (share->count > PRESTO_MAX_SHARDS || share->number >= share->count)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "part %zu of %zu: of at most %d parts, the first is 0", share->number,
                           share->count, PRESTO_MAX_SHARDS);
    if (share->attempt != NULL && !presto__attempt_is_name(share->attempt))
        return refuse("the name of an attempt has letters, digits, '-' and '_', at most 64 of them",
                      err);
    if (presto__path_is_remote(job->dir)) {
        presto_status status = presto_fail(
            err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
            "parts are written to a folder, not yet to a bucket: write them to one that all "
            "machines see, join them there, and copy the dataset");
        presto_error_set_file(err, job->dir);
        return status;
    }
    if (presto__conversion_by_size(job))
        return refuse("parts need a number of shards: where shards end by their size, each depends "
                      "on those before it",
                      err);
    if (job->pipeline != NULL && options->shards == 0)
        return refuse("parts need the number of shards of the whole dataset", err);
    if (job->shard_count > PRESTO_MAX_SHARDS)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%zu shards, more than %d",
                           job->shard_count, PRESTO_MAX_SHARDS);
    if (presto__conversion_regroups(job))
        return refuse("the rows that pack makes go on from shard to shard, so they are not written "
                      "in parts: write the tokens in parts, join them, and pack the dataset",
                      err);
    return PRESTO_OK;
}

/* ---- the folders ---- */

static presto_status fail_out(const char *dir, const char *what, const char *name,
                              presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%s%s", what, name);
    presto_error_set_file(err, dir);
    return status;
}

/* A presto__list's. */
static presto_status check_name(void *user, const char *folder, const char *name, bool *wanted_out,
                                presto_error *err) {
    const char *dir = user;
    (void)folder;
    *wanted_out = false;
    if (strcmp(name, PRESTO_DATASET_FILE) == 0)
        return fail_out(dir, "holds a whole dataset already", "", err);
    if (strcmp(name, PRESTO_PROGRESS_FILE) == 0)
        return fail_out(dir,
                        "holds an unfinished conversion, which --resume finishes, or parts that "
                        "are being joined, which presto-write --join finishes",
                        "", err);
    bool is_ours = strcmp(name, PRESTO__PARTS_FOLDER) == 0 || strcmp(name, PRESTO_LOCK_FILE) == 0 ||
                   presto__partial_stem(name) > 0;
    return is_ours ? PRESTO_OK : fail_out(dir, "is not empty: it holds ", name, err);
}

presto_status presto__share_check_out(const char *dir, presto_error *err) {
    const presto__list list = {
        .user = (void *)(uintptr_t)dir, .name = check_name, .found = pass_over, .is_shallow = true};
    return list_or_nothing(dir, &list, err);
}

/* Make it, or find it; false: errno says why not. */
static bool make_folder(const char *path, bool *made_out) {
    bool is_made = mkdir(path, 0777) == 0;
    struct stat info;
    *made_out = *made_out || is_made;
    if (is_made)
        return true;
    if (errno != EEXIST || stat(path, &info) != 0)
        return false;
    errno = S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return errno == 0;
}

/* The last run that ends in `parts` removes it if it is empty. */
static presto_status make_attempt(presto__conversion *job, const char *parts, presto_error *err) {
    bool done = false, made_parts = false;
    for (int i = 0; !done && i < MAKE_TRIES && (i == 0 || errno == ENOENT); i++)
        done = make_folder(job->options->dir, &job->made_out) && make_folder(parts, &made_parts) &&
               make_folder(job->share_dir, &job->made_dir);
    return done ? PRESTO_OK : presto_fail_errno(err, errno, job->share_dir, "cannot make folder");
}

void presto__share_close(presto__conversion *job) {
    char *parts = presto__conversion_is_share(job)
                      ? presto__join_path(job->options->dir, PRESTO__PARTS_FOLDER)
                      : NULL;
    if (parts != NULL && job->share_dir != NULL) {
        (void)rmdir(parts); /* unless there are attempts */
        if (job->made_out)
            (void)rmdir(job->options->dir);
    }
    free(parts);
    free(job->share_dir);
    job->share_dir = NULL;
    job->dir = job->options->dir;
}

/* ---- earlier attempts ---- */

static presto_status set_folder(presto__conversion *job, const char *parts, const char *name,
                                presto_error *err) {
    free(job->share_dir);
    job->share_dir = presto__join_path(parts, name);
    job->dir = job->share_dir;
    return job->share_dir == NULL ? presto_fail_memory(err, strlen(parts)) : PRESTO_OK;
}

static void tell_whole(const presto__conversion *job, const char *folder) {
    char text[PRESTO__ATTEMPT_FOLDER_BYTES + 80];
    snprintf(text, sizeof text, "part %zu/%zu is whole already, in _parts/%s",
             job->options->share.number, job->options->share.count, folder);
    if (job->options->on_note != NULL)
        job->options->on_note(job->options->on_note_user, text);
}

/* The attempt in job->dir is whole: its figures are those of the run. */
static presto_status take_part(presto__conversion *job, const presto__part_file *part,
                               presto_error *err) {
    size_t first = presto__conversion_first_shard(job);
    for (size_t i = 0; i < part->info.shard_count; i++) {
        presto__whole_shard shard = {.number = first + i,
                                     .first = presto__conversion_first(job, first + i),
                                     .end = presto__conversion_end(job, first + i),
                                     .described = part->info.shards[i]};
        PRESTO_TRY(
            presto__progress_file_add(&job->progress, part->info.shards[i].file, &shard, err));
    }
    job->folder = PRESTO__FOLDER_WHOLE;
    return PRESTO_OK;
}

/* Has it the name that this run was given? */
static bool is_ours(const presto__conversion *job, const char *folder) {
    const char *attempt = job->options->share.attempt;
    return attempt != NULL && strcmp(strchr(folder, '.') + 1, attempt) == 0;
}

/* An attempt of this share. PRESTO_END: it is not a whole one of this job. */
static presto_status try_whole(presto__conversion *job, const char *text, const char *folder,
                               presto_error *err) {
    presto__part_file part = {0};
    char key[64];
    presto_status status = presto__part_file_read(job->dir, &part, err);
    bool is_named = is_ours(job, folder);
    if (status < 0)
        return status == PRESTO_ERR_NOT_FOUND || !is_named ? PRESTO_END : status;
    if (!presto__jobs_differ(text, part.job, key)) {
        status = take_part(job, &part, err);
        tell_whole(job, folder);
    } else if (is_named) {
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "holds a part of another dataset, which differs in: %s", key);
        presto_error_set_file(err, job->dir);
    } else {
        status = PRESTO_END;
    }
    presto__part_file_done(&part);
    return status;
}

/* An attempt of this share that has a progress file. PRESTO_END: it is another job's, or one that
 * runs. */
static presto_status try_unfinished(presto__conversion *job, const char *text, presto_error *err) {
    presto__progress_file progress = {0};
    presto_error why;
    presto_status status = presto__progress_file_read(job->dir, &progress, &why);
    if (status == PRESTO_OK)
        status = presto__progress_file_compare(&progress, text, &why);
    presto__progress_file_done(&progress);
    if (status < 0)
        return PRESTO_END;
    status = presto__conversion_open_folder(job, &why);
    if (status == PRESTO_ERR_BUSY)
        return PRESTO_END;
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

typedef presto_status (*try_fn)(presto__conversion *job, const char *text, const char *folder,
                                presto_error *err);

static presto_status try_resume(presto__conversion *job, const char *text, const char *folder,
                                presto_error *err) {
    bool may_be = job->options->share.attempt == NULL || is_ours(job, folder);
    return job->options->resume && may_be ? try_unfinished(job, text, err) : PRESTO_END;
}

/* The first attempt at this share that `attempt` takes. PRESTO_END: none. */
static presto_status try_all(presto__conversion *job, const presto__paths *attempts,
                             const char *parts, const char *text, try_fn attempt,
                             presto_error *err) {
    const presto_share *share = &job->options->share;
    presto_status status = PRESTO_END;
    for (size_t i = 0; i < attempts->count && status == PRESTO_END; i++) {
        size_t number, count;
        if (!presto__attempt_parse(attempts->items[i], &number, &count) ||
            number != share->number || count != share->count)
            continue;
        PRESTO_TRY(set_folder(job, parts, attempts->items[i], err));
        status = attempt(job, text, attempts->items[i], err);
    }
    return status;
}

/* ---- all of it ---- */

static presto_status begin(presto__conversion *job, const char *parts, presto_error *err) {
    const presto_share *share = &job->options->share;
    char name[PRESTO__ATTEMPT_FOLDER_BYTES], random[20];
    snprintf(random, sizeof random, "%016" PRIx64, presto__random_name());
    presto__attempt_folder(share->number, share->count,
                           share->attempt != NULL ? share->attempt : random, name);
    PRESTO_TRY(set_folder(job, parts, name, err));
    PRESTO_TRY(make_attempt(job, parts, err));
    PRESTO_TRY(presto__conversion_open_folder(job, err));
    /* A join that has ended meanwhile has not seen this folder; one that ends later is noticed when
     * the part is whole. */
    return presto__share_check_out(job->options->dir, err);
}

static presto_status open_share(presto__conversion *job, const char *parts, const char *text,
                                presto_error *err) {
    presto__paths attempts = {0};
    struct stat info;
    presto_status status = PRESTO_OK;
    if (stat(job->options->dir, &info) == 0)
        status = presto__share_check_out(job->options->dir, err);
    if (status == PRESTO_OK)
        status = presto__attempts_list(parts, &attempts, err);
    if (status == PRESTO_OK)
        status = try_all(job, &attempts, parts, text, try_whole, err);
    if (status == PRESTO_END)
        status = try_all(job, &attempts, parts, text, try_resume, err);
    if (status == PRESTO_END)
        status = begin(job, parts, err);
    presto__paths_done(&attempts);
    return status;
}

presto_status presto__share_open(presto__conversion *job, presto_error *err) {
    char *text = presto__conversion_text(job);
    char *parts = presto__join_path(job->options->dir, PRESTO__PARTS_FOLDER);
    presto_status status = text == NULL || parts == NULL ? presto_fail_memory(err, 0)
                                                         : open_share(job, parts, text, err);
    free(parts);
    free(text);
    return status;
}

/* ---- part.json ---- */

/* All that leads to part.json. */
static presto_status sync_folders(const presto__conversion *job, presto_error *err) {
    char *parts = presto__join_path(job->options->dir, PRESTO__PARTS_FOLDER);
    if (parts == NULL)
        return presto_fail_memory(err, 0);
    presto_status status = presto__sync_folder(job->dir, err);
    if (status == PRESTO_OK)
        status = presto__sync_folder(parts, err);
    if (status == PRESTO_OK)
        status = presto__sync_folder(job->options->dir, err);
    free(parts);
    return status;
}

presto_status presto__share_write(const presto__conversion *job, presto_dataset_info *info,
                                  presto_error *err) {
    const presto__progress_file *progress = &job->progress;
    uint64_t left_out = presto__progress_file_left_out(progress);
    presto__part_file part = {.job = progress->job, /* as the folder has it, which is ours */
                              .number = job->options->share.number,
                              .skipped = presto__progress_file_skipped(progress),
                              .has_dictionary = job->codec.wants_dictionary,
                              .dictionary_crc32c =
                                  presto_crc32c(0, job->dictionary.data, job->dictionary.bytes),
                              .has_stream = presto__conversion_is_stream(job),
                              .info = *info};
    part.dropped = left_out - part.skipped;
    if (part.has_stream) {
        part.stream_counted = presto__source_digest(job->source);
        part.stream_files = job->source->ops->walk->digest(job->source);
        part.stream_records = job->source->full_count;
    }
    presto_error why = {0};
    bool sync = job->options->sync;
    PRESTO_TRY(presto__share_check_out(job->options->dir, err)); /* joined without this attempt? */
    if (sync)
        PRESTO_TRY(sync_folders(job, err));
    presto_status status = presto__part_file_write(job->dir, &part, sync, err);
    *info = part.info; /* with its id */
    PRESTO_TRY(status);
    if (sync)
        status = presto__sync_folder(job->dir, &why);
    if (status < 0 && why.sys_errno != ENOENT && err != NULL)
        *err = why;
    return why.sys_errno == ENOENT ? PRESTO_OK : status; /* from part.json on, it may be joined */
}
