/* SPDX-License-Identifier: Apache-2.0 */
#include "paths_internal.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool is_pattern(const char *path) {
    return strpbrk(path, "*?[") != NULL;
}

/* ---- what is no path ---- */

#define MOUNT                                                                                      \
    "object storage is not read yet: mount it (mount-s3, gcsfuse, rclone mount, ...) and give "    \
    "the "                                                                                         \
    "folder, or copy it"

static const struct {
    const char *scheme, *hint;
} schemes[] = {
    {"s3", MOUNT},
    {"s3a", MOUNT},
    {"s3n", MOUNT},
    {"gs", MOUNT},
    {"gcs", MOUNT},
    {"r2", MOUNT},
    {"oss", MOUNT},
    {"az", MOUNT},
    {"abfs", MOUNT},
    {"abfss", MOUNT},
    {"wasb", MOUNT},
    {"wasbs", MOUNT},
    {"adl", MOUNT},
    {"hdfs", "HDFS is not read: mount it (hadoop-fuse-dfs, rclone mount) and give the folder, or "
             "copy it"},
    {"hf", "the Hub is not read: download the files (hf download --repo-type dataset NAME) and "
           "give the folder"},
    {"http", "files of the web are not read: download them, and give the folder"},
    {"https", "files of the web are not read: download them, and give the folder"},
    {"ftp", "files of a server are not read: download them, and give the folder"},
    {"ssh", "files of another machine are not read: mount them (sshfs), and give the folder"},
    {"sftp", "files of another machine are not read: mount them (sshfs), and give the folder"},
    {"file", "a path is written without file://"},
    {"pipe", "commands are not run: give files, or a pipe's end as /dev/stdin where one is taken"},
};

static const char *hint_of_url(const char *path) {
    const char *colon = strstr(path, ":/"); /* a slash may be lost where a path is made absolute */
    const char *from = colon;
    if (colon == NULL)
        return NULL;
    while (from > path && from[-1] != '/')
        from--;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strlen(schemes[i].scheme) == (size_t)(colon - from) &&
            strncasecmp(from, schemes[i].scheme, (size_t)(colon - from)) == 0)
            return schemes[i].hint;
    return colon[2] == '/' ? "URLs are not read: give files or a folder of this machine" : NULL;
}

/* "~", "~/x" or "~name/x", also behind a folder that was put in front to make it absolute. */
static bool has_tilde(const char *path) {
    return path[0] == '~' || strstr(path, "/~") != NULL;
}

const char *presto__path_hint(const char *path) {
    const char *hint = hint_of_url(path);
    if (hint != NULL)
        return hint;
    if (has_tilde(path))
        return "only a shell replaces ~, and only where it begins a word without quotes: write "
               "$HOME there, or the whole path";
    return is_pattern(path) ? "no file matches this pattern" : NULL;
}

presto_status presto__fail_no_path(const char *path, presto_error *err) {
    const char *hint = presto__path_hint(path);
    presto_status status =
        presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no such file or folder%s%s",
                    hint == NULL ? "" : "; ", hint == NULL ? "" : hint);
    presto_error_set_file(err, path);
    return status;
}

/* ---- patterns ---- */

void presto__paths_done(presto__paths *paths) {
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths->items);
    *paths = (presto__paths){0};
}

static presto_status add(presto__paths *paths, const char *path, presto_error *err) {
    if (paths->count == paths->capacity) {
        size_t capacity = paths->capacity * 2 + 8;
        char **items = realloc(paths->items, capacity * sizeof *items);
        if (items == NULL)
            return presto_fail_memory(err, capacity * sizeof *items);
        paths->items = items;
        paths->capacity = capacity;
    }
    paths->items[paths->count] = strdup(path);
    if (paths->items[paths->count] == NULL)
        return presto_fail_memory(err, strlen(path) + 1);
    paths->count++;
    return PRESTO_OK;
}

static presto_status add_matches(presto__paths *paths, const char *pattern, presto_error *err) {
    glob_t found;
    presto_status status = PRESTO_OK;
    errno = 0;
    int code = glob(pattern, 0, NULL, &found);
    if (code == GLOB_NOMATCH)
        return add(paths, pattern, err);
    if (code == GLOB_NOSPACE)
        return presto_fail_memory(err, strlen(pattern));
    if (code != 0)
        return presto_fail_errno(err, errno, pattern, "cannot look for what it matches");
    for (size_t i = 0; i < found.gl_pathc && status >= 0; i++)
        status = add(paths, found.gl_pathv[i], err);
    globfree(&found);
    return status;
}

presto_status presto__paths_expand(const char *const *paths, size_t count, presto__paths *paths_out,
                                   presto_error *err) {
    presto__paths all = {0};
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < count && status >= 0; i++) {
        struct stat info;
        status = is_pattern(paths[i]) && lstat(paths[i], &info) != 0
                     ? add_matches(&all, paths[i], err)
                     : add(&all, paths[i], err);
    }
    *paths_out = all;
    return status;
}
