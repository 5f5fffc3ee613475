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

presto_status presto__fail_no_path(const char *path, presto_error *err) {
    const char *hint = presto__path_hint(path);
    presto_status status =
        presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no such file or folder%s%s",
                    hint == NULL ? "" : "; ", hint == NULL ? "" : hint);
    presto_error_set_file(err, path);
    return status;
}

/* Where the ending would be; NULL: `text` is shorter. */
static const char *last_of(const char *text, const char *ending) {
    size_t bytes = strlen(text), tail = strlen(ending);
    return bytes >= tail ? text + bytes - tail : NULL;
}

bool presto__ends_with(const char *text, const char *ending) {
    const char *last = last_of(text, ending);
    return last != NULL && strcmp(last, ending) == 0;
}

bool presto__ends_alike(const char *text, const char *ending) {
    const char *last = last_of(text, ending);
    return last != NULL && strcasecmp(last, ending) == 0;
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
