/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes folders. Knows paths, not the content of files. */
#include "folder_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_internal.h"
#include "paths_internal.h"

#define RANDOM_DIGITS 6 /* of mkdtemp */
#define OWN_TRIES 10

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
    if (presto__is_url(path)) /* not a folder "s3:" with all below */
        return presto_fail_errno(err, ENOENT, path, "cannot make the folder");
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

/* ---- folders of one process ---- */

/* Remove "STEM-RANDOM" if it is ours and nobody has its lock. A folder that was just made may not
 * be locked yet: its maker finds out (make_locked). */
static void remove_abandoned(int parent, const char *parent_path, const char *name) {
    struct stat info;
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    char *path = presto__join_path(parent_path, name);
    if (path != NULL && fstat(folder, &info) == 0 && info.st_uid == geteuid() &&
        flock(folder, LOCK_EX | LOCK_NB) == 0)
        (void)presto__folder_remove(path, NULL);
    free(path);
    close(folder);
}

static void remove_all_abandoned(const char *parent, const char *stem) {
    DIR *entries = opendir(parent);
    size_t stem_bytes = strlen(stem);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        const char *name = entry->d_name;
        if (strncmp(name, stem, stem_bytes) == 0 && name[stem_bytes] == '-' &&
            strlen(name) == stem_bytes + 1 + RANDOM_DIGITS)
            remove_abandoned(dirfd(entries), parent, name);
    }
    if (entries != NULL)
        closedir(entries);
}

/* Returns 0, an errno, or EAGAIN: another process has taken the folder for an abandoned one. */
static int make_locked(char *path, int *lock_out) {
    struct stat info;
    *lock_out = -1;
    if (mkdtemp(path) == NULL)
        return errno;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return errno == ENOENT ? EAGAIN : errno;
    bool is_locked = flock(folder, LOCK_EX | LOCK_NB) == 0;
    if ((!is_locked && errno == EWOULDBLOCK) || fstat(folder, &info) != 0 || info.st_nlink == 0) {
        close(folder);
        return EAGAIN;
    }
    if (is_locked)
        *lock_out = folder;
    else
        close(folder);
    return 0;
}

presto_status presto__folder_make_own(const char *parent, const char *stem, char **path_out,
                                      int *lock_out, presto_error *err) {
    size_t bytes = strlen(parent) + strlen(stem) + 16;
    char *path = malloc(bytes);
    if (path == NULL)
        return presto_fail_memory(err, bytes);
    remove_all_abandoned(parent, stem);
    int failed = EAGAIN;
    for (int i = 0; i < OWN_TRIES && failed == EAGAIN; i++) {
        snprintf(path, bytes, "%s/%s-XXXXXX", parent, stem);
        failed = make_locked(path, lock_out);
    }
    if (failed != 0) {
        free(path);
        return presto_fail_errno(err, failed, parent, "cannot make a folder in it");
    }
    *path_out = path;
    return PRESTO_OK;
}
