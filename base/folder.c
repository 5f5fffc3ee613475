/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes folders. Knows paths, not the content of files. */
#include "folder_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool presto__only_we_write(const struct stat *info) {
    return info->st_uid == geteuid() && (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static presto_status make_one(const char *path, presto_error *err) {
    if (mkdir(path, 0777) == 0)
        return PRESTO_OK;
    int failure = errno;
    struct stat info;
    if (failure == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return PRESTO_OK;
    if (failure == EEXIST)
        failure = ENOTDIR;
    return presto_fail_errno(err, failure, path, "cannot make the folder");
}

presto_status presto__folder_make(const char *path, presto_error *err) {
    char *partial = strdup(path);
    if (partial == NULL)
        return presto_fail_memory(err, strlen(path) + 1);
    presto_status status = PRESTO_OK;
    for (char *slash = partial; status == PRESTO_OK && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        status = make_one(partial, err);
        *slash = '/';
    }
    free(partial);
    return status == PRESTO_OK ? make_one(path, err) : status;
}

/* Removes the content of the open folder and closes it. The depth is that of our own datasets,
 * so recursion needs no limit. */
static presto_status empty_folder(int folder, const char *path, presto_error *err) {
    DIR *entries = fdopendir(folder);
    if (entries == NULL) {
        presto_status status = presto_fail_errno(err, errno, path, "cannot read the folder");
        close(folder);
        return status;
    }
    presto_status status = PRESTO_OK;
    for (struct dirent *entry; status == PRESTO_OK && (entry = readdir(entries)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(folder, entry->d_name, 0) == 0 || errno == ENOENT)
            continue;
        int inner = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0)
            status = empty_folder(inner, path, err);
        if (status == PRESTO_OK && unlinkat(folder, entry->d_name, AT_REMOVEDIR) != 0)
            status = presto_fail_errno(err, errno, path, "cannot remove %s", entry->d_name);
    }
    closedir(entries);
    return status;
}

presto_status presto__folder_remove(const char *path, presto_error *err) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT)
        return PRESTO_OK;
    if (folder < 0)
        return presto_fail_errno(err, errno, path, "cannot open the folder");
    PRESTO_TRY(empty_folder(folder, path, err));
    if (rmdir(path) != 0)
        return presto_fail_errno(err, errno, path, "cannot remove the folder");
    return PRESTO_OK;
}
