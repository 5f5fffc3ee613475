/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the dataset of ours that a user's paths mean: its folder, or some of its shards. Nobody else
 * asks for a dataset.json. */
#include <presto/dataset.h>

#include <errno.h>
#include <stdlib.h>

#include "../../base/checked_internal.h"
#include "../../base/file_internal.h"
#include "../../storage/storage_internal.h"
#include "../records_internal.h"
#include "dataset_internal.h"

presto_status presto__path_is_dataset(const char *path, bool *is_dataset_out, presto_error *err) {
    char *file = presto__join_path(path, PRESTO_DATASET_FILE);
    if (file == NULL)
        return presto_fail_memory(err, 1);
    presto__object_info info;
    presto_error why;
    bool found = presto__object_find(file, &info, &why) == PRESTO_OK;
    presto_status status = PRESTO_OK;
    /* A path that may not be read, or is no folder, fails where it is opened. A failing disk
     * must fail here: it would hide the dataset. */
    if (!found && why.status != PRESTO_ERR_NOT_FOUND && presto__path_is_remote(file)) {
        if (err != NULL)
            *err = why;
        status = why.status; /* what no server says will not be said of its folder either */
    }
    int failed = found || status < 0 ? 0 : why.sys_errno;
    if (failed == EIO || failed == ENOMEM || failed == ESTALE)
        status = presto_fail_errno(err, failed, file, "cannot stat");
    *is_dataset_out = found && info.type == PRESTO__OBJECT_FILE;
    free(file);
    return status;
}

/* The file's name in its folder. */
static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int compare_shards(const void *a, const void *b) {
    return strcmp((*(presto_dataset_shard *const *)a)->file,
                  (*(presto_dataset_shard *const *)b)->file);
}

static int compare_to_shard(const void *name, const void *shard) {
    return strcmp(name, (*(presto_dataset_shard *const *)shard)->file);
}

/* The listed shard with this path, NULL if there is none. */
static presto_dataset_shard *find_shard(presto_dataset_shard *const *by_name, size_t count,
                                        const char *path) {
    presto_dataset_shard *const *found = bsearch(name_of(path), (const void *)by_name, count,
                                                 sizeof(presto_dataset_shard *), compare_to_shard);
    return found == NULL ? NULL : *found;
}

/*
 * Keep only the listed shards of one folder, in the given order. PRESTO_END: one is not listed;
 * then nothing is changed.
 */
static presto_status keep_shards(presto_dataset_info *info, const char *const *paths, size_t count,
                                 presto_error *err) {
    size_t listed = info->shard_count;
    presto_status status = PRESTO_OK;
    presto_dataset_shard *kept = presto__zeroed_array(count, 1, sizeof *kept);
    presto_dataset_shard **by_name =
        presto__zeroed_array(listed, 1, sizeof(presto_dataset_shard *));
    bool *is_kept = presto__zeroed_array(listed, 1, sizeof *is_kept);
    if (kept == NULL || by_name == NULL || is_kept == NULL) {
        status = presto_fail_memory(err, (count + listed) * sizeof *kept);
        goto out;
    }
    for (size_t i = 0; i < listed; i++)
        by_name[i] = &info->shards[i];
    qsort((void *)by_name, listed, sizeof(presto_dataset_shard *), compare_shards);
    for (size_t i = 0; i < count && status == PRESTO_OK; i++) {
        const presto_dataset_shard *shard = find_shard(by_name, listed, paths[i]);
        if (shard == NULL) {
            status = PRESTO_END;
        } else if (is_kept[shard - info->shards]) {
            status =
                presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "the shard is given twice");
            presto_error_set_file(err, paths[i]);
        } else {
            is_kept[shard - info->shards] = true;
            kept[i] = *shard;
        }
    }
    if (status != PRESTO_OK)
        goto out;
    for (size_t i = 0; i < listed; i++)
        if (!is_kept[i])
            free(info->shards[i].file);
    free(info->shards);
    info->shards = kept;
    info->shard_count = count;
    info->has_stream = false; /* that of all shards, in their order */
    kept = NULL;
out:
    free(kept);
    free((void *)by_name);
    free(is_kept);
    return status;
}

presto_status presto__dataset_look_for_folder(const char *path, bool *is_folder_out,
                                              presto_error *err) {
    if (!presto__path_is_remote(path)) {
        *is_folder_out = presto__object_is_folder(path);
        return PRESTO_OK;
    }
    presto__object_info info;
    presto_error why;
    presto_status status = presto__object_find(path, &info, &why);
    if (status < 0 && status != PRESTO_ERR_NOT_FOUND) {
        if (err != NULL)
            *err = why;
        return status;
    }
    *is_folder_out = status == PRESTO_OK && info.type == PRESTO__OBJECT_FOLDER;
    return PRESTO_OK;
}

/* Are the paths one folder, or files of one folder? */
static presto_status look_together(const char *const *paths, size_t count, const char *dir,
                                   bool *are_out, presto_error *err) {
    bool are = true;
    for (size_t i = 1; i < count && are; i++) {
        bool is_folder;
        PRESTO_TRY(presto__dataset_look_for_folder(paths[i], &is_folder, err));
        char *other = is_folder ? NULL : presto__folder_of(paths[i]);
        are = other != NULL && strcmp(other, dir) == 0;
        free(other);
    }
    *are_out = are;
    return PRESTO_OK;
}

presto_status presto__dataset_find_ours(const char *const *paths, size_t path_count,
                                        presto_dataset_info *info, char **dir_out,
                                        presto_error *err) {
    bool folder;
    PRESTO_TRY(presto__dataset_look_for_folder(paths[0], &folder, err));
    char *dir = folder ? strdup(paths[0]) : presto__folder_of(paths[0]);
    if (dir == NULL)
        return presto_fail_memory(err, strlen(paths[0]));
    bool together = !folder || path_count == 1;
    presto_status status = PRESTO_OK;
    if (together)
        status = look_together(paths, path_count, dir, &together, err);
    if (status < 0) {
        free(dir);
        return status;
    }
    status = PRESTO_END;
    if (together) {
        status = presto__dataset_info_read(dir, info, err);
        if (status == PRESTO_ERR_NOT_FOUND)
            status = PRESTO_END;
    }
    if (status == PRESTO_OK && !folder)
        status = keep_shards(info, paths, path_count, err);
    if (status == PRESTO_OK) {
        *dir_out = dir;
    } else {
        presto__dataset_info_free(info);
        free(dir);
    }
    return status;
}
