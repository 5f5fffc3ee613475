/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up files that a table names. On a disk each is looked at. Where a question is a round trip and
 * folders can be listed, the folder of a file is listed once, and all questions about it are answered
 * from that.
 */
#define _GNU_SOURCE /* tdestroy */
#include <errno.h>
#include <search.h>
#include <stdlib.h>

#include "../../../base/file_internal.h"
#include "source_files_internal.h"

/* A file of a folder that was listed. */
typedef struct known_file {
    char *path;
    presto__object_info info;
} known_file;

struct presto__known_folder {
    char *path;
    known_file *files; /* sorted by path when the folder has been listed */
    size_t count, capacity;
};
typedef struct presto__known_folder known_folder;

static void free_folder(void *user) {
    known_folder *folder = user;
    for (size_t i = 0; i < folder->count; i++)
        free(folder->files[i].path);
    free(folder->files);
    free(folder->path);
    free(folder);
}

static presto_status add_found(void *user, const presto__listed *found, presto_error *err) {
    known_folder *folder = user;
    if (found->info == NULL)
        return PRESTO_OK;
    if (folder->count == folder->capacity) {
        size_t capacity = folder->capacity == 0 ? 256 : 2 * folder->capacity;
        known_file *files = realloc(folder->files, capacity * sizeof *files);
        if (files == NULL)
            return presto_fail_memory(err, capacity * sizeof *files);
        folder->files = files;
        folder->capacity = capacity;
    }
    known_file *file = &folder->files[folder->count];
    *file = (known_file){strdup(found->path), *found->info};
    if (file->path == NULL)
        return presto_fail_memory(err, strlen(found->path));
    folder->count++;
    return PRESTO_OK;
}

static int compare_files(const void *a, const void *b) {
    return strcmp(((const known_file *)a)->path, ((const known_file *)b)->path);
}

static int compare_to_file(const void *path, const void *file) {
    return strcmp(path, ((const known_file *)file)->path);
}

static int compare_folders(const void *a, const void *b) {
    return strcmp(((const known_folder *)a)->path, ((const known_folder *)b)->path);
}

/* Takes over `path`. */
static presto_status list_folder(presto__file_finder *finder, char *path, presto_error *err) {
    known_folder *folder = calloc(1, sizeof *folder);
    if (folder == NULL) {
        free(path);
        return presto_fail_memory(err, sizeof *folder);
    }
    folder->path = path;
    const presto__list list = {.user = folder, .found = add_found, .is_shallow = true};
    presto_status status = presto__object_list(path, &list, err);
    if (status >= 0 && tsearch(folder, &finder->folders, compare_folders) == NULL)
        status = presto_fail_memory(err, sizeof *folder);
    if (status < 0) {
        free_folder(folder);
        return status;
    }
    if (folder->count > 1)
        qsort(folder->files, folder->count, sizeof *folder->files, compare_files);
    finder->last = folder;
    return PRESTO_OK;
}

/* As the other, by a question for each file. */
static presto_status ask(const char *path, presto__object_info *info_out, int *errno_out,
                         presto_error *err) {
    presto_error why;
    presto_status status = presto__object_find(path, info_out, &why);
    *errno_out = status == PRESTO_OK              ? 0
                 : status == PRESTO_ERR_NOT_FOUND ? ENOENT
                 : why.sys_errno != 0             ? why.sys_errno
                                                  : EIO;
    if (status < 0 && (status == PRESTO_ERR_STOPPED ||
                       (status != PRESTO_ERR_NOT_FOUND && presto__path_is_remote(path)))) {
        if (err != NULL)
            *err = why;
        return status;
    }
    return PRESTO_OK;
}

presto_status presto__file_find(presto__file_finder *finder, const char *path,
                                presto__object_info *info_out, int *errno_out, presto_error *err) {
    if (!presto__path_is_remote(path) || !presto__path_can_be_listed(path))
        return ask(path, info_out, errno_out, err);
    char *folder = presto__folder_of(path);
    if (folder == NULL)
        return presto_fail_memory(err, strlen(path));
    known_folder wanted = {.path = folder};
    bool is_last = finder->last != NULL && strcmp(finder->last->path, folder) == 0;
    known_folder **listed =
        is_last ? &finder->last
                : (known_folder **)tfind(&wanted, &finder->folders, compare_folders);
    if (listed != NULL) {
        finder->last = *listed;
        free(folder);
    } else {
        PRESTO_TRY(list_folder(finder, folder, err));
    }
    const known_file *found = finder->last->count == 0
                                  ? NULL
                                  : bsearch(path, finder->last->files, finder->last->count,
                                            sizeof *finder->last->files, compare_to_file);
    *errno_out = found == NULL ? ENOENT : 0;
    if (found != NULL)
        *info_out = found->info;
    return PRESTO_OK;
}

void presto__file_finder_done(presto__file_finder *finder) {
    tdestroy(finder->folders, free_folder);
    *finder = (presto__file_finder){.folders = NULL};
}
