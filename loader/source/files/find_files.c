/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up files that a table names. On a disk each is looked at. Where a question is a round trip and
 * folders can be listed, the folder of a file is listed once, and all questions about it are answered
 * from that.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../../base/file_internal.h"
#include "source_files_internal.h"

/* A file of a folder that was listed. */
struct presto__known_file {
    char *path;
    presto__object_info info;
};

static presto_status add_found(void *user, const presto__listed *found, presto_error *err) {
    presto__file_finder *finder = user;
    if (found->info == NULL)
        return PRESTO_OK;
    if (finder->count == finder->capacity) {
        size_t capacity = finder->capacity == 0 ? 256 : 2 * finder->capacity;
        presto__known_file *files = realloc(finder->files, capacity * sizeof *files);
        if (files == NULL)
            return presto_fail_memory(err, capacity * sizeof *files);
        finder->files = files;
        finder->capacity = capacity;
    }
    presto__known_file *file = &finder->files[finder->count];
    *file = (presto__known_file){strdup(found->path), *found->info};
    if (file->path == NULL)
        return presto_fail_memory(err, strlen(found->path));
    finder->count++;
    return PRESTO_OK;
}

static int compare_files(const void *a, const void *b) {
    return strcmp(((const presto__known_file *)a)->path, ((const presto__known_file *)b)->path);
}

static int compare_to_file(const void *path, const void *file) {
    return strcmp(path, ((const presto__known_file *)file)->path);
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_listed(const presto__file_finder *finder, const char *folder) {
    return finder->folder_count > 0 && bsearch(&folder, finder->folders, finder->folder_count,
                                               sizeof *finder->folders, compare_texts) != NULL;
}

/* Takes over `folder`. */
static presto_status list_folder(presto__file_finder *finder, char *folder, presto_error *err) {
    const presto__list list = {.user = finder, .found = add_found, .is_shallow = true};
    char **folders = realloc(finder->folders, (finder->folder_count + 1) * sizeof *finder->folders);
    if (folders == NULL) {
        free(folder);
        return presto_fail_memory(err, (finder->folder_count + 1) * sizeof *folders);
    }
    finder->folders = folders;
    folders[finder->folder_count++] = folder;
    presto_status status = presto__object_list(folder, &list, err);
    qsort(folders, finder->folder_count, sizeof *folders, compare_texts);
    if (finder->count > 1)
        qsort(finder->files, finder->count, sizeof *finder->files, compare_files);
    return status;
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
    if (is_listed(finder, folder))
        free(folder);
    else
        PRESTO_TRY(list_folder(finder, folder, err));
    const presto__known_file *found =
        finder->count == 0
            ? NULL
            : bsearch(path, finder->files, finder->count, sizeof *finder->files, compare_to_file);
    *errno_out = found == NULL ? ENOENT : 0;
    if (found != NULL)
        *info_out = found->info;
    return PRESTO_OK;
}

void presto__file_finder_done(presto__file_finder *finder) {
    for (size_t i = 0; i < finder->count; i++)
        free(finder->files[i].path);
    for (size_t i = 0; i < finder->folder_count; i++)
        free(finder->folders[i]);
    free(finder->files);
    free(finder->folders);
    *finder = (presto__file_finder){.count = 0};
}
