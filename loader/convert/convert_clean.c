/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs that died have left. A folder with a progress file is one that a run has begun and not
 * finished. All in it that a conversion gives names to is left over; if dataset.json stands there, the
 * run died at its very end, and the dataset stays. Nothing is removed before the folder is ours.
 *
 * An attempt at a share (share_internal.h) is such a folder. One that is whole waits to be joined, so
 * only its age says that nobody will. While a join has begun, all that it needs stays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <presto/storage.h>

#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "../../base/options_internal.h"
#include "../../base/paths_internal.h"
#include "../../base/stop_internal.h"
#include "../../records/dataset/dataset_internal.h"
#include "../../records/records_internal.h"
#include "share_internal.h"

#define NS_PER_S 1000000000
#define DAY_S 86400

void presto_clean_options_init(presto_clean_options *options, size_t struct_bytes) {
    const presto_clean_options defaults = {.older_than_s = DAY_S};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

typedef struct left_file {
    char *path;
    size_t folder_bytes; /* of the path, before the '/' */
    uint64_t bytes;
    int64_t since_s;
} left_file;

/* A folder with a progress file. */
typedef struct left_folder {
    char *path;
    presto__owner_state owner;
    int64_t since_s; /* of its progress file */
} left_folder;

typedef struct cleaning {
    const presto_clean_options *options;
    int64_t now_s;
    left_file *files;
    size_t file_count, file_capacity;
    left_folder *folders;
    size_t folder_count, folder_capacity;
    /* Of the attempts that were asked for last: the beginning of their paths, which is a file's, and
     * when the youngest file was changed. */
    const char *parts;
    size_t parts_bytes;
    int64_t parts_since_s;
} cleaning;

static const char *name_of(const left_file *file) {
    return file->path + file->folder_bytes + 1;
}

static bool is_named(const left_file *file, const char *name) {
    return strcmp(name_of(file), name) == 0;
}

/* ---- names ---- */

/* ".tfrecord", of any compression, or its index. */
static bool is_shard_ending(const char *text) {
    static const char *const endings[] = {"", ".gz", ".deflate"};
    if (strncmp(text, ".tfrecord", strlen(".tfrecord")) != 0)
        return false;
    text += strlen(".tfrecord");
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t bytes = strlen(endings[i]);
        if (strncmp(text, endings[i], bytes) == 0 &&
            (text[bytes] == '\0' || strcmp(text + bytes, ".index") == 0))
            return true;
    }
    return false;
}

static bool has_digits(const char *text) {
    return strspn(text, "0123456789") == 5;
}

/* ".data-00003.tfrecord": a shard that waits for its name. */
static bool is_hidden_shard(const char *name) {
    static const char stem[] = ".data-";
    return strncmp(name, stem, strlen(stem)) == 0 && has_digits(name + strlen(stem)) &&
           is_shard_ending(name + strlen(stem) + 5);
}

/* "data-00003-of-00008.tfrecord" */
static bool is_shard(const char *name) {
    return strncmp(name, "data-", 5) == 0 && has_digits(name + 5) &&
           strncmp(name + 10, "-of-", 4) == 0 && has_digits(name + 14) &&
           is_shard_ending(name + 19);
}

static bool is_whole_name(const char *name) {
    return is_shard(name) || is_hidden_shard(name) || strcmp(name, PRESTO_PROGRESS_FILE) == 0 ||
           strcmp(name, PRESTO__DICTIONARY_FILE) == 0 || strcmp(name, PRESTO_DATASET_FILE) == 0;
}

static bool is_temporary(const char *name) {
    char stem[PRESTO__SHARD_NAME_BYTES];
    size_t bytes = presto__partial_stem(name);
    if (bytes == 0 || bytes >= sizeof stem)
        return false;
    memcpy(stem, name + 1, bytes);
    stem[bytes] = '\0';
    return is_whole_name(stem);
}

/* ---- what is there ---- */

/* "DIR" of "DIR/_parts/00003-of-00008.ATTEMPT", whose first `bytes` bytes are given; 0: it is none. */
static size_t dataset_bytes(const char *path, size_t bytes) {
    static const char parts[] = "/" PRESTO__PARTS_FOLDER "/";
    char name[PRESTO__ATTEMPT_FOLDER_BYTES];
    size_t number, count, at = bytes;
    while (at > 0 && path[at - 1] != '/')
        at--;
    if (bytes - at >= sizeof name || at < strlen(parts) ||
        strncmp(path + at - strlen(parts), parts, strlen(parts)) != 0)
        return 0;
    memcpy(name, path + at, bytes - at);
    name[bytes - at] = '\0';
    return presto__attempt_parse(name, &number, &count) ? at - strlen(parts) : 0;
}

/* part.json, or a temporary file of it, in an attempt's folder. */
static bool is_part_name(const presto__listed *found) {
    static const char part[] = PRESTO__PART_FILE;
    size_t bytes = presto__partial_stem(found->name);
    bool is_named = strcmp(found->name, part) == 0 ||
                    (bytes == strlen(part) && strncmp(found->name + 1, part, bytes) == 0);
    return is_named &&
           dataset_bytes(found->path, strlen(found->path) - strlen(found->name) - 1) > 0;
}

static presto_status add_file(void *user, const presto__listed *found, presto_error *err) {
    cleaning *c = user;
    if (found->info == NULL || found->info->type != PRESTO__OBJECT_FILE ||
        (!is_whole_name(found->name) && !is_temporary(found->name) && !is_part_name(found)))
        return PRESTO_OK;
    if (c->file_count == c->file_capacity) {
        size_t capacity = c->file_capacity * 2 + 64;
        left_file *files = realloc(c->files, capacity * sizeof *files);
        if (files == NULL)
            return presto_fail_memory(err, capacity * sizeof *files);
        c->files = files;
        c->file_capacity = capacity;
    }
    left_file file = {.path = strdup(found->path),
                      .folder_bytes = strlen(found->path) - strlen(found->name) - 1,
                      .bytes = found->info->bytes,
                      .since_s = found->info->mtime_ns / NS_PER_S};
    if (file.path == NULL)
        return presto_fail_memory(err, strlen(found->path));
    c->files[c->file_count++] = file;
    return PRESTO_OK;
}

/* By folder; in it, the progress file last: it goes when all else has gone. */
static int compare_files(const void *a, const void *b) {
    const left_file *x = a, *y = b;
    size_t bytes = x->folder_bytes < y->folder_bytes ? x->folder_bytes : y->folder_bytes;
    int order = memcmp(x->path, y->path, bytes);
    if (order != 0 || x->folder_bytes != y->folder_bytes)
        return order != 0
                   ? order
                   : (x->folder_bytes > y->folder_bytes) - (x->folder_bytes < y->folder_bytes);
    bool x_last = is_named(x, PRESTO_PROGRESS_FILE), y_last = is_named(y, PRESTO_PROGRESS_FILE);
    return x_last != y_last ? x_last - y_last : strcmp(x->path, y->path);
}

static size_t end_of_folder(const cleaning *c, size_t first) {
    size_t end = first + 1;
    while (end < c->file_count && c->files[end].folder_bytes == c->files[first].folder_bytes &&
           memcmp(c->files[end].path, c->files[first].path, c->files[first].folder_bytes) == 0)
        end++;
    return end;
}

static presto_status add_folder(cleaning *c, const left_file *progress, presto_error *err) {
    if (c->folder_count == c->folder_capacity) {
        size_t capacity = c->folder_capacity * 2 + 8;
        left_folder *folders = realloc(c->folders, capacity * sizeof *folders);
        if (folders == NULL)
            return presto_fail_memory(err, capacity * sizeof *folders);
        c->folders = folders;
        c->folder_capacity = capacity;
    }
    left_folder folder = {.path = strndup(progress->path, progress->folder_bytes),
                          .since_s = progress->since_s};
    if (folder.path == NULL)
        return presto_fail_memory(err, progress->folder_bytes);
    c->folders[c->folder_count++] = folder;
    return PRESTO_OK;
}

/* ---- telling and removing ---- */

static presto_status tell(const cleaning *c, const presto_left *left, presto_error *err) {
    const presto_clean_options *options = c->options;
    if (options->on_left == NULL || options->on_left(options->on_left_user, left))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
}

static bool is_young(const cleaning *c, presto__owner_state owner, int64_t since_s) {
    return owner != PRESTO__OWNER_DEAD && (double)(c->now_s - since_s) < c->options->older_than_s;
}

/* Is it part of a dataset that is whole? */
static bool is_of_dataset(const left_file *file, bool is_dataset) {
    const char *name = name_of(file);
    return is_named(file, PRESTO_DATASET_FILE) ||
           (is_dataset && (is_shard(name) || is_named(file, PRESTO__DICTIONARY_FILE)));
}

static presto_status take_file(const cleaning *c, const left_file *file, bool young,
                               presto_error *err) {
    presto_left left = {.path = file->path,
                        .kind = PRESTO_LEFT_OBJECT,
                        .bytes = file->bytes,
                        .since_s = file->since_s,
                        .is_young = young};
    if (c->options->removes && !young) {
        PRESTO_TRY(presto__object_remove(file->path, err));
        left.is_removed = true;
    }
    return tell(c, &left, err);
}

/* Who owns the folder? If something is to be removed, it becomes ours. */
static presto_status own_bucket(const cleaning *c, left_folder *folder,
                                presto__bucket_lock **lock_out, presto_error *err) {
    presto__progress_file progress = {0};
    presto_error why;
    presto_status status =
        presto__bucket_lock_read(folder->path, &progress, lock_out, &folder->owner, &why);
    bool is_damaged = status == PRESTO_ERR_CORRUPT; /* it can be removed like any other */
    if (status == PRESTO_ERR_BUSY || is_damaged || status == PRESTO_ERR_NOT_FOUND)
        status = PRESTO_OK; /* what is not there any more is seen when it is looked at again */
    else if (status < 0 && err != NULL)
        *err = why;
    bool takes = status == PRESTO_OK && *lock_out != NULL && c->options->removes &&
                 !is_young(c, folder->owner, folder->since_s);
    if (takes)
        status = presto__bucket_lock_take_over(*lock_out, &progress, &why);
    if (takes && status == PRESTO_ERR_BUSY) { /* somebody has written to it since it was read */
        folder->owner = PRESTO__OWNER_ALIVE;
        status = PRESTO_OK;
    } else if (takes && status < 0 && err != NULL) {
        *err = why;
    }
    presto__progress_file_done(&progress);
    return status;
}

static presto_status own_folder(left_folder *folder, presto_folder_lock **lock_out,
                                presto_error *err) {
    presto_error why;
    presto_status status = presto__folder_lock_take(folder->path, lock_out, &why);
    folder->owner = status == PRESTO_OK         ? PRESTO__OWNER_DEAD
                    : status == PRESTO_ERR_BUSY ? PRESTO__OWNER_ALIVE
                                                : PRESTO__OWNER_UNKNOWN;
    if (status == PRESTO_ERR_BUSY || status == PRESTO_ERR_NOT_FOUND)
        return PRESTO_OK;
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

/*
 * The list of files is older than the lock: a run that was alive then may have made its dataset whole
 * since. *is_left_out: there is a progress file still.
 */
static presto_status look_again(const left_folder *folder, bool *is_left_out, bool *is_dataset_out,
                                presto_error *err) {
    presto__object_info info;
    presto_error why;
    char *progress = presto__join_path(folder->path, PRESTO_PROGRESS_FILE);
    if (progress == NULL)
        return presto_fail_memory(err, strlen(folder->path));
    presto_status status = presto__object_find(progress, &info, &why);
    free(progress);
    *is_left_out = status == PRESTO_OK;
    if (status < 0 && status != PRESTO_ERR_NOT_FOUND) {
        if (err != NULL)
            *err = why;
        return status;
    }
    return presto__path_is_dataset(folder->path, is_dataset_out, err);
}

/* The files [first, end) of one folder that has a progress file. */
static presto_status clean_folder(cleaning *c, size_t first, size_t end, presto_error *err) {
    left_folder *folder = &c->folders[c->folder_count - 1];
    presto__bucket_lock *bucket_lock = NULL;
    presto_folder_lock *lock = NULL;
    bool is_remote = presto__path_is_remote(folder->path), is_dataset = false, is_left = true;
    presto_status status =
        is_remote ? own_bucket(c, folder, &bucket_lock, err) : own_folder(folder, &lock, err);
    if (status == PRESTO_OK && folder->owner == PRESTO__OWNER_ALIVE) {
        const presto_left busy = {
            .path = folder->path, .kind = PRESTO_LEFT_BUSY, .since_s = folder->since_s};
        status = tell(c, &busy, err);
        end = first;
    } else if (status == PRESTO_OK) {
        status = look_again(folder, &is_left, &is_dataset, err);
        end = is_left ? end : first;
    }
    for (size_t i = first; i < end; i++)
        is_dataset = is_dataset || is_named(&c->files[i], PRESTO_DATASET_FILE);
    bool young = is_young(c, folder->owner, folder->since_s);
    for (size_t i = first; i < end && status == PRESTO_OK; i++)
        if (!is_of_dataset(&c->files[i], is_dataset))
            status = take_file(c, &c->files[i], young, err);
    presto__bucket_lock_free(bucket_lock);
    presto_folder_lock_release(lock);
    return status;
}

/* ---- attempts at shares ---- */

/* Has a join begun in the folder, whose path has so many bytes? What is not known is an error: what a
 * join needs must stay. */
static presto_status look_for_join(const char *folder, size_t bytes, bool *has_begun_out,
                                   presto_error *err) {
    presto_buffer text = {0};
    presto_error why;
    char *dir = strndup(folder, bytes);
    char *path = dir == NULL ? NULL : presto__join_path(dir, PRESTO_PROGRESS_FILE);
    *has_begun_out = false;
    presto_status status = path == NULL ? presto_fail_memory(&why, bytes)
                           : presto__path_is_remote(path)
                               ? PRESTO_ERR_NOT_FOUND
                               : presto_file_read(path, PRESTO__JSON_MAX_BYTES, &text, &why);
    if (status == PRESTO_OK)
        *has_begun_out = presto__join_log_is(presto_buffer_span(&text));
    else if (status == PRESTO_ERR_NOT_FOUND)
        status = PRESTO_OK;
    else if (err != NULL)
        *err = why;
    presto_buffer_done(&text);
    free(path);
    free(dir);
    return status;
}

/* The files [first, end) of a folder: are they of a whole attempt? */
static const left_file *find_part(const cleaning *c, size_t first, size_t end) {
    for (size_t i = first; i < end; i++)
        if (is_named(&c->files[i], PRESTO__PART_FILE) &&
            dataset_bytes(c->files[i].path, c->files[i].folder_bytes) > 0)
            return &c->files[i];
    return NULL;
}

/* Attempts at the other shares may be under way: all are as old as the youngest file of any. */
static int64_t youngest(cleaning *c, const left_file *any, size_t dataset) {
    size_t bytes = dataset + strlen("/" PRESTO__PARTS_FOLDER "/");
    if (c->parts_bytes == bytes && strncmp(c->parts, any->path, bytes) == 0)
        return c->parts_since_s;
    c->parts = any->path;
    c->parts_bytes = bytes;
    c->parts_since_s = 0;
    for (size_t i = 0; i < c->file_count; i++)
        if (strncmp(c->files[i].path, any->path, bytes) == 0 &&
            c->files[i].since_s > c->parts_since_s)
            c->parts_since_s = c->files[i].since_s;
    return c->parts_since_s;
}

/* part.json goes first: what is left then is no part any more. It may be NULL. */
static presto_status clean_attempt(cleaning *c, size_t first, size_t end, const left_file *part,
                                   presto_error *err) {
    const left_file *any = &c->files[first];
    size_t dataset = dataset_bytes(any->path, any->folder_bytes);
    bool young = is_young(c, PRESTO__OWNER_UNKNOWN, youngest(c, any, dataset));
    if (part != NULL)
        PRESTO_TRY(take_file(c, part, young, err));
    for (size_t i = first; i < end; i++)
        if (&c->files[i] != part)
            PRESTO_TRY(take_file(c, &c->files[i], young, err));
    return PRESTO_OK;
}

/* An attempt's folder, and that of all attempts, go when they are empty. */
static void remove_empty(const cleaning *c, const left_file *any) {
    char *path = strndup(any->path, any->folder_bytes);
    presto_folder_lock *lock = NULL;
    if (path != NULL && c->options->removes && !presto__path_is_remote(path) &&
        dataset_bytes(path, any->folder_bytes) > 0 &&
        presto__folder_lock_take(path, &lock, NULL) == PRESTO_OK) {
        presto_folder_lock_release(lock); /* and with it the file of one that was killed */
        (void)rmdir(path);
        *strrchr(path, '/') = '\0';
        (void)rmdir(path);
    }
    free(path);
}

static presto_status tell_busy(const cleaning *c, const char *folder, size_t bytes, int64_t since_s,
                               presto_error *err) {
    char *path = strndup(folder, bytes);
    if (path == NULL)
        return presto_fail_memory(err, bytes);
    const presto_left busy = {.path = path, .kind = PRESTO_LEFT_BUSY, .since_s = since_s};
    presto_status status = tell(c, &busy, err);
    free(path);
    return status;
}

/* An attempt of a dataset that nobody joins meanwhile. */
static presto_status clean_held(cleaning *c, size_t first, size_t end, presto_error *err) {
    const left_file *last = &c->files[end - 1], *part = find_part(c, first, end);
    if (part == NULL && is_named(last, PRESTO_PROGRESS_FILE)) {
        PRESTO_TRY(add_folder(c, last, err));
        PRESTO_TRY(clean_folder(c, first, end, err));
    } else {
        PRESTO_TRY(clean_attempt(c, first, end, part, err));
    }
    remove_empty(c, last);
    return PRESTO_OK;
}

/* All in an attempt's folder is ours, whatever is left of it. A join has the lock of the dataset's
 * folder, whose path has `dataset` bytes. */
static presto_status clean_share(cleaning *c, size_t first, size_t end, size_t dataset,
                                 presto_error *err) {
    const left_file *last = &c->files[end - 1];
    presto_folder_lock *lock = NULL;
    bool has_begun = false;
    char *dir = strndup(last->path, dataset);
    if (dir == NULL)
        return presto_fail_memory(err, dataset);
    presto_error why;
    presto_status status = c->options->removes && !presto__path_is_remote(dir)
                               ? presto__folder_lock_take(dir, &lock, &why)
                               : PRESTO_OK;
    free(dir);
    if (status == PRESTO_ERR_BUSY)
        return tell_busy(c, last->path, dataset, last->since_s, err);
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    status = look_for_join(last->path, dataset, &has_begun, err);
    if (status == PRESTO_OK && !has_begun) /* else the join needs it, or removes it */
        status = clean_held(c, first, end, err);
    presto_folder_lock_release(lock);
    return status;
}

static presto_status clean_one(cleaning *c, size_t first, size_t end, presto_error *err) {
    const left_file *last = &c->files[end - 1];
    size_t dataset = dataset_bytes(last->path, last->folder_bytes);
    bool has_begun = false;
    PRESTO_TRY(presto__stop_check(err));
    if (dataset > 0)
        return clean_share(c, first, end, dataset, err);
    if (!is_named(last, PRESTO_PROGRESS_FILE))
        return PRESTO_OK;
    PRESTO_TRY(look_for_join(last->path, last->folder_bytes, &has_begun, err));
    if (has_begun)
        return tell_busy(c, last->path, last->folder_bytes, last->since_s, err);
    PRESTO_TRY(add_folder(c, last, err));
    return clean_folder(c, first, end, err);
}

static presto_status clean_folders(cleaning *c, presto_error *err) {
    if (c->file_count > 0)
        qsort(c->files, c->file_count, sizeof *c->files, compare_files);
    for (size_t first = 0, end; first < c->file_count; first = end) {
        end = end_of_folder(c, first);
        PRESTO_TRY(clean_one(c, first, end, err));
    }
    return PRESTO_OK;
}

/* A presto__left_upload_fn. Those of folders that were cleaned have gone with them. */
static presto_status take_upload(void *user, const presto__left_upload *upload, presto_error *err) {
    const cleaning *c = user;
    const char *slash = strrchr(upload->path, '/');
    presto__owner_state owner = PRESTO__OWNER_UNKNOWN;
    int64_t since_s = upload->begun_s;
    if (slash == NULL || !is_whole_name(slash + 1))
        return PRESTO_OK; /* another program's */
    size_t bytes = (size_t)(slash - upload->path);
    for (size_t i = 0; i < c->folder_count; i++)
        if (strlen(c->folders[i].path) == bytes &&
            memcmp(c->folders[i].path, upload->path, bytes) == 0) {
            owner = c->folders[i].owner;
            since_s = c->folders[i].since_s > since_s ? c->folders[i].since_s : since_s;
        }
    if (owner == PRESTO__OWNER_ALIVE)
        return PRESTO_OK;
    presto_left left = {.path = upload->path,
                        .kind = PRESTO_LEFT_UPLOAD,
                        .since_s = upload->begun_s,
                        .is_young = is_young(c, owner, since_s)};
    if (c->options->removes && !left.is_young) {
        PRESTO_TRY(presto__upload_abort(upload->path, upload->id, err));
        left.is_removed = true;
    }
    return tell(c, &left, err);
}

static presto_status clean(cleaning *c, const char *dir, presto_error *err) {
    const presto__list list = {.user = c, .found = add_file};
    PRESTO_TRY(presto__path_check_writable(dir, err));
    presto_status status = presto__object_list(dir, &list, err);
    if (status >= 0)
        status = clean_folders(c, err);
    if (status >= 0)
        status = presto__uploads_list(dir, take_upload, c, err);
    if (status < 0)
        presto_error_set_file(err, dir);
    return status;
}

presto_status presto_clean(const char *dir, const presto_clean_options *options,
                           presto_error *err) {
    presto_clean_options taken;
    presto_clean_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    cleaning c = {.options = &taken, .now_s = (int64_t)time(NULL)};
    presto__stop_hook pass;
    presto__stop_scope before =
        presto__stop_enter(&pass, taken.should_stop, taken.should_stop_user);
    presto_status status = clean(&c, dir, err);
    status = presto__stop_leave(&pass, before, status, err);
    for (size_t i = 0; i < c.file_count; i++)
        free(c.files[i].path);
    for (size_t i = 0; i < c.folder_count; i++)
        free(c.folders[i].path);
    free(c.files);
    free(c.folders);
    return status;
}
