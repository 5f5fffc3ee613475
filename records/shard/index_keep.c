/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the index of a file that had none, for the next time: beside the file, or in a folder of
 * the user's own. There the name is made of the file's size and of its bytes at both ends, the last
 * record's CRC among them. So a copy anywhere finds it, and the index itself says what else must
 * stand in the file.
 *
 * What stands in that folder is used only if nobody else can have written it. Whoever may write
 * beside the data may write the data. In both places an index remains a hint: see shard_index.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/digest_internal.h"
#include "../../base/folder_internal.h"
#include "shard_parts_internal.h"

#define FOLDER_MODE 0700
/* So many bytes of each end are in the name. */
#define END_BYTES ((size_t)512)

/* ---- the folder ---- */

/* The folder for indexes, malloc'd; NULL: there is none. */
static char *index_folder(const char *named) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (named != NULL)
        return strdup(named);
    if (cache != NULL && cache[0] == '/')
        return presto__join_path(cache, "presto/index");
    return home != NULL && home[0] == '/' ? presto__join_path(home, ".cache/presto/index") : NULL;
}

static presto_status check_folder(const char *folder, presto_error *err) {
    struct stat info;
    if (stat(folder, &info) != 0)
        return presto__fail_open(err, errno, folder);
    if (S_ISDIR(info.st_mode) && presto__only_we_write(&info))
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                    S_ISDIR(info.st_mode) ? "others may write to this folder" : "not a folder");
    presto_error_set_file(err, folder);
    return status;
}

static presto_status make_folder(const char *folder, presto_error *err) {
    char *parent = presto__folder_of(folder);
    if (parent == NULL)
        return presto_fail_memory(err, strlen(folder));
    presto_status status = presto__folder_make(parent, err);
    free(parent);
    if (status == PRESTO_OK && mkdir(folder, FOLDER_MODE) != 0 && errno != EEXIST)
        status = presto_fail_errno(err, errno, folder, "cannot make the folder");
    return status == PRESTO_OK ? check_folder(folder, err) : status;
}

/* FOLDER/NAME of the index of a data file, malloc'd; NULL: no memory, or it cannot be read. */
static char *name_apart(const presto__index_data *data, const char *folder) {
    char name[48];
    uint8_t bytes[END_BYTES];
    presto__digest digest = {{0}};
    const uint64_t ends[] = {0, data->bytes > END_BYTES ? data->bytes - END_BYTES : 0};
    presto__digest_add(&digest, &data->bytes, sizeof data->bytes);
    for (size_t i = 0; i < 2; i++) {
        size_t got;
        if (presto__read_at((presto__object_place){data->object, data->path, ends[i]}, bytes,
                            sizeof bytes, &got, NULL) != PRESTO_OK)
            return NULL;
        presto__digest_add(&digest, bytes, got);
    }
    snprintf(name, sizeof name, "%016" PRIx64 "%016" PRIx64 ".index", digest.state[0],
             digest.state[1]);
    return presto__join_path(folder, name);
}

/* ---- reading ---- */

/* Nobody else may write to the folder now: has anybody before? */
static presto_status check_owner(const char *path, presto_error *err) {
    struct stat info;
    if (lstat(path, &info) != 0)
        return presto__fail_open(err, errno, path);
    if (S_ISREG(info.st_mode) && info.st_uid == geteuid())
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "somebody else has written it");
    presto_error_set_file(err, path);
    return status;
}

/* ... that was written. PRESTO_ERR_NOT_FOUND: there is none. */
static presto_status find_apart(const presto__index_data *data, const char *dir, char **path_out,
                                presto_error *err) {
    char *folder = index_folder(dir);
    char *path = folder == NULL ? NULL : name_apart(data, folder);
    presto_status status = PRESTO_OK;
    if (path == NULL)
        status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "there is none");
    if (status == PRESTO_OK)
        status = check_folder(folder, err);
    if (status == PRESTO_OK)
        status = check_owner(path, err);
    free(folder);
    if (status == PRESTO_OK)
        *path_out = path;
    else
        free(path);
    return status;
}

/* ... to be written. */
static presto_status make_apart(const presto__index_data *data, const char *dir, char **path_out,
                                presto_error *err) {
    char *folder = index_folder(dir);
    if (folder == NULL)
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                           "there is no folder for it: neither XDG_CACHE_HOME nor HOME is set");
    presto_status status = make_folder(folder, err);
    char *path = status == PRESTO_OK ? name_apart(data, folder) : NULL;
    if (status == PRESTO_OK && path == NULL)
        status = presto_fail_memory(err, strlen(folder));
    free(folder);
    if (status == PRESTO_OK)
        *path_out = path;
    return status;
}

presto_status presto__index_path_apart(const presto__index_data *data, const char *dir,
                                       bool is_to_write, char **path_out, presto_error *err) {
    return is_to_write ? make_apart(data, dir, path_out, err)
                       : find_apart(data, dir, path_out, err);
}

presto_status presto__kept_index_open(presto_shard *shard, const presto__index_data *data,
                                      presto_error *err) {
    char *path = NULL;
    if (shard->options.keep_index == PRESTO_KEEP_NO_INDEX)
        return PRESTO_END;
    presto_status status = find_apart(data, shard->options.index_dir, &path, err);
    if (status == PRESTO_OK) {
        status = presto__index_open(path, data, &shard->index, err);
        free(path);
    }
    return status == PRESTO_ERR_NOT_FOUND ? PRESTO_END : status;
}

/* ---- writing ---- */

static presto_status write_beside(const presto_shard *shard, const presto__index_contents *contents,
                                  presto_error *err) {
    char *path = presto__index_name(shard->path);
    if (path == NULL)
        return presto_fail_memory(err, strlen(shard->path));
    presto_status status = presto__index_write(path, contents, false, err);
    free(path);
    return status;
}

static presto_status write_apart(const presto_shard *shard, const presto__index_contents *contents,
                                 presto_error *err) {
    char *path = NULL;
    PRESTO_TRY(make_apart(contents->data, shard->options.index_dir, &path, err));
    presto_status status = presto__index_write(path, contents, false, err);
    free(path);
    return status;
}

/* Is the file the one that was opened, and unchanged since? */
static bool is_unchanged(const presto_shard *shard) {
    presto__object_info info;
    return presto__object_find(shard->path, &info, NULL) == PRESTO_OK &&
           presto__object_is_same(&info, &shard->info);
}

presto_status presto__shard_keep_index(presto_shard *shard, presto_error *err) {
    const presto__found *found = atomic_load_explicit(&shard->found, memory_order_acquire);
    const presto_keep_index how = shard->options.keep_index;
    presto__object object;
    if (how == PRESTO_KEEP_NO_INDEX || shard->options.ignore_index || found == NULL ||
        found->damaged.bytes > 0 || !is_unchanged(shard))
        return PRESTO_OK;
    PRESTO_TRY(presto__shard_acquire(shard, &object, err));
    const presto__index_data data = {.object = object,
                                     .path = shard->path,
                                     .bytes = shard->file_bytes,
                                     .plain = shard->compression == PRESTO_FILE_PLAIN};
    const presto__index_contents contents = {
        .data = &data,
        .offsets = (const uint64_t *)(const void *)found->offsets.data,
        .count = found->record_count,
    };
    presto_status status = PRESTO_END;
    /* Who reads from a bucket does not write there. */
    if (how == PRESTO_KEEP_INDEX_BESIDE && !shard->name_is_taken &&
        !presto__path_is_remote(shard->path))
        status = write_beside(shard, &contents, err);
    if (status != PRESTO_OK)
        status = write_apart(shard, &contents, err);
    presto__shard_release(shard);
    return status;
}
