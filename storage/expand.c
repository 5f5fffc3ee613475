/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns in paths. Those of files are the C library's; for any other storage, each part of the path
 * that is a pattern lists the folder before it, by the letters that the pattern begins with.
 */
#define _XOPEN_SOURCE 700

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/paths_internal.h"
#include "kinds_internal.h"

#include <presto/span.h>

static bool is_pattern(const char *path) {
    return strpbrk(path, "*?[") != NULL;
}

static presto_status add_matches(presto__paths *paths, const char *pattern, presto_error *err) {
    glob_t found;
    presto_status status = PRESTO_OK;
    errno = 0;
    int code = glob(pattern, 0, NULL, &found);
    if (code == GLOB_NOMATCH)
        return presto__paths_add(paths, pattern, err);
    if (code == GLOB_NOSPACE)
        return presto_fail_memory(err, strlen(pattern));
    if (code != 0)
        return presto_fail_errno(err, errno, pattern, "cannot look for what it matches");
    for (size_t i = 0; i < found.gl_pathc && status >= 0; i++)
        status = presto__paths_add(paths, found.gl_pathv[i], err);
    globfree(&found);
    return status;
}

/* ---- patterns of other storages ---- */

/* One part of a path that is being matched, in one folder. */
typedef struct part_search {
    const char *pattern; /* of the part, which it ends with */
    bool wants_files;    /* it is the last part */
    presto__paths found;
} part_search;

static presto_status want_name(void *user, const char *folder, const char *name, bool *wanted_out,
                               presto_error *err) {
    const part_search *search = user;
    (void)folder, (void)err;
    *wanted_out = fnmatch(search->pattern, name, FNM_PERIOD) == 0;
    return PRESTO_OK;
}

static presto_status add_found(void *user, const presto__listed *found, presto_error *err) {
    part_search *search = user;
    return search->wants_files ? presto__paths_add(&search->found, found->path, err) : PRESTO_OK;
}

static presto_status add_folder(void *user, const char *path, presto_error *err) {
    return presto__paths_add(&((part_search *)user)->found, path, err);
}

static presto_status append(presto_buffer *path, const char *text, size_t bytes,
                            presto_error *err) {
    return presto_buffer_append(path, presto_span_of(text, bytes), err);
}

/* Match what is left of the pattern behind `before`, which ends with a '/' and is no pattern. */
static presto_status match_rest(presto__paths *paths, const char *before, const char *rest,
                                presto_error *err) {
    const char *special = strpbrk(rest, "*?[\\");
    const char *from = special == NULL ? rest + strlen(rest) : special;
    while (special != NULL && from > rest && from[-1] != '/')
        from--;
    size_t part_bytes = strcspn(from, "/");
    size_t plain_bytes = special == NULL ? 0 : (size_t)(special - from);
    char *part = strndup(from, part_bytes), *beginning = strndup(from, plain_bytes);
    presto_buffer folder = {0};
    part_search search = {.pattern = part, .wants_files = from[part_bytes] == '\0'};
    const presto__list list = {.user = &search,
                               .name = want_name,
                               .found = add_found,
                               .folder = add_folder,
                               .is_shallow = true,
                               .beginning = beginning};
    presto_status status =
        part == NULL || beginning == NULL ? presto_fail_memory(err, part_bytes) : PRESTO_OK;
    if (status == PRESTO_OK)
        status = append(&folder, before, strlen(before), err);
    if (status == PRESTO_OK)
        status = append(&folder, rest, (size_t)(from - rest), err);
    if (status == PRESTO_OK)
        status = append(&folder, "", 1, err);
    const char *path = (const char *)folder.data;
    presto__object_info info;
    if (status == PRESTO_OK && special != NULL)
        status = presto__object_list(path, &list, err);
    else if (status == PRESTO_OK && presto__object_find(path, &info, NULL) == PRESTO_OK)
        status = presto__paths_add(paths, path,
                                   err); /* behind the last pattern there were plain names */
    for (size_t i = 0; i < search.found.count && status >= 0; i++) {
        const char *found = search.found.items[i];
        if (search.wants_files) {
            status = presto__paths_add(paths, found, err);
            continue;
        }
        folder.bytes = 0;
        status = append(&folder, found, strlen(found), err);
        if (status == PRESTO_OK)
            status = append(&folder, "/", 2, err);
        if (status == PRESTO_OK)
            status = match_rest(paths, (const char *)folder.data, from + part_bytes + 1, err);
    }
    presto__paths_done(&search.found);
    presto_buffer_done(&folder);
    free(part);
    free(beginning);
    return status;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Where no bucket or host can be a pattern: behind "SCHEME://NAME/". */
static presto_status add_listed(presto__paths *paths, const char *pattern, presto_error *err) {
    const char *name = strstr(pattern, "://") + strlen("://");
    size_t bytes = (size_t)(name - pattern) + strcspn(name, "/");
    presto_error why;
    presto_status status = presto__object_find(pattern, &(presto__object_info){0}, &why);
    if (status == PRESTO_OK || pattern[bytes] == '\0' || !is_pattern(pattern + bytes))
        return presto__paths_add(paths, pattern, err);
    if (status != PRESTO_ERR_NOT_FOUND) {
        if (err != NULL)
            *err = why;
        return status;
    }
    char *before = strndup(pattern, bytes + 1);
    presto__paths found = {0};
    status = before == NULL ? presto_fail_memory(err, bytes)
                            : match_rest(&found, before, pattern + bytes + 1, err);
    free(before);
    if (status == PRESTO_ERR_NOT_FOUND) /* no bucket of this name: who opens it says so */
        status = PRESTO_OK;
    if (found.count > 1)
        qsort(found.items, found.count, sizeof *found.items, compare_paths);
    for (size_t i = 0; i < found.count && status >= 0; i++)
        status = presto__paths_add(paths, found.items[i], err);
    if (found.count == 0 && status >= 0)
        status = presto__paths_add(paths, pattern, err);
    presto__paths_done(&found);
    return status;
}

static presto_status expand_one(presto__paths *paths, const char *path, presto_error *err) {
    const presto__storage_kind *kind = presto__storage_kind_of(path);
    struct stat info;
    if (!is_pattern(path))
        return presto__paths_add(paths, path, err);
    if (kind->is_remote) /* a '?' of a web server's URL is no pattern */
        return kind->list == NULL ? presto__paths_add(paths, path, err)
                                  : add_listed(paths, path, err);
    return lstat(path, &info) == 0 ? presto__paths_add(paths, path, err)
                                   : add_matches(paths, path, err);
}

presto_status presto__paths_expand(const char *const *paths, size_t count, presto__paths *paths_out,
                                   presto_error *err) {
    presto__paths all = {0};
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < count && status >= 0; i++)
        status = expand_one(&all, paths[i], err);
    *paths_out = all;
    return status;
}
