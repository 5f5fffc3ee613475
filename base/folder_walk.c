/* SPDX-License-Identifier: Apache-2.0 */
/* Walking through folders, each of them once; device and inode identify a folder. */
#include "folder_walk_internal.h"
#include "stop_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <presto/span.h>

typedef struct place {
    dev_t device;
    ino_t inode;
    bool is_used;
} place;

typedef struct path_list {
    char **paths; /* owned, the list and each path */
    size_t count, capacity;
} path_list;

typedef struct walker {
    const presto__folder_walk *walk;
    place *entered; /* open addressing, at most half full */
    size_t entered_count, entered_slots;
    path_list folders; /* still to be entered, from the end of the list */
    path_list links;   /* links to folders, used when `folders` is empty */
} walker;

/* Takes over `path`. */
static presto_status list_add(path_list *list, char *path, presto_error *err) {
    if (path == NULL)
        return presto_fail_memory(err, 1);
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 16;
        char **paths = realloc(list->paths, capacity * sizeof *paths);
        if (paths == NULL) {
            free(path);
            return presto_fail_memory(err, capacity * sizeof *paths);
        }
        list->paths = paths;
        list->capacity = capacity;
    }
    list->paths[list->count++] = path;
    return PRESTO_OK;
}

static void list_done(path_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
}

static int compare_last_first(const void *a, const void *b) {
    return strcmp(*(char *const *)b, *(char *const *)a);
}

/* Sorts from `first` on in falling order: paths are taken from the end of the list. */
static void list_sort(path_list *list, size_t first) {
    if (list->count > first)
        qsort(list->paths + first, list->count - first, sizeof *list->paths, compare_last_first);
}

/* ---- folders entered ---- */

static place *find_place(place *slots, size_t count, const struct stat *info) {
    uint64_t hash =
        ((uint64_t)info->st_ino ^ (uint64_t)info->st_dev << 32) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (count - 1);
    while (slots[at].is_used &&
           (slots[at].inode != info->st_ino || slots[at].device != info->st_dev))
        at = (at + 1) & (count - 1);
    return &slots[at];
}

static presto_status make_room(walker *w, presto_error *err) {
    size_t slots = w->entered_slots == 0 ? 64 : w->entered_slots * 2;
    place *table = calloc(slots, sizeof *table);
    if (table == NULL)
        return presto_fail_memory(err, slots * sizeof *table);
    for (size_t i = 0; i < w->entered_slots; i++) {
        const place *old = &w->entered[i];
        struct stat info = {.st_dev = old->device, .st_ino = old->inode};
        if (old->is_used)
            *find_place(table, slots, &info) = *old;
    }
    free(w->entered);
    w->entered = table;
    w->entered_slots = slots;
    return PRESTO_OK;
}

static presto_status enter(walker *w, const struct stat *info, bool *is_new_out,
                           presto_error *err) {
    if (w->entered_count * 2 >= w->entered_slots)
        PRESTO_TRY(make_room(w, err));
    place *found = find_place(w->entered, w->entered_slots, info);
    *is_new_out = !found->is_used;
    if (found->is_used)
        return PRESTO_OK;
    *found = (place){info->st_dev, info->st_ino, true};
    w->entered_count++;
    return PRESTO_OK;
}

/* ---- walking ---- */

/* Takes over `path`, which is a folder. */
static presto_status keep_for_later(walker *w, char *path, presto_error *err) {
    struct stat info;
    bool is_link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
    return list_add(is_link ? &w->links : &w->folders, path, err);
}

static presto_status look_at(walker *w, const char *folder, const char *name, presto_error *err) {
    bool is_wanted = false;
    PRESTO_TRY(presto__stop_check(err));
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return PRESTO_OK;
    PRESTO_TRY(w->walk->name(w->walk->user, folder, name, &is_wanted, err));
    if (!is_wanted)
        return PRESTO_OK;
    char *path = presto__join_path(folder, name);
    if (path == NULL)
        return presto_fail_memory(err, strlen(folder) + strlen(name) + 2);
    struct stat info;
    presto__walked found = {.path = path, .name = name};
    if (stat(path, &info) != 0)
        found.sys_errno = errno;
    else if (S_ISDIR(info.st_mode))
        return keep_for_later(w, path, err);
    else
        found.info = &info;
    presto_status status = w->walk->found(w->walk->user, &found, err);
    free(path);
    return status;
}

static presto_status read_entries(walker *w, DIR *folder, const char *path, presto_error *err) {
    struct stat info;
    bool is_new = false;
    if (fstat(dirfd(folder), &info) != 0)
        return presto_fail_errno(err, errno, path, "cannot stat");
    PRESTO_TRY(enter(w, &info, &is_new, err));
    if (is_new && w->walk->folder != NULL)
        PRESTO_TRY(w->walk->folder(w->walk->user, path, err));
    size_t first = w->folders.count;
    while (is_new) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL && errno != 0)
            return presto_fail_errno(err, errno, path, "cannot read folder");
        if (entry == NULL)
            break;
        PRESTO_TRY(look_at(w, path, entry->d_name, err));
    }
    list_sort(&w->folders, first);
    return PRESTO_OK;
}

/* Everything in and below `folders`, without links. */
static presto_status walk_folders(walker *w, presto_error *err) {
    presto_status status = PRESTO_OK;
    while (w->folders.count > 0 && status >= 0) {
        char *path = w->folders.paths[--w->folders.count];
        DIR *folder = opendir(path);
        status = folder == NULL ? presto_fail_errno(err, errno, path, "cannot open folder")
                                : read_entries(w, folder, path, err);
        if (folder != NULL)
            closedir(folder);
        free(path);
    }
    return status;
}

presto_status presto__walk_folder(const presto__folder_walk *walk, const char *path,
                                  presto_error *err) {
    walker w = {.walk = walk};
    path_list links = {0};
    presto_status status = list_add(&w.folders, strdup(path), err);
    if (status >= 0)
        status = walk_folders(&w, err);
    while (status >= 0 && (links.count > 0 || w.links.count > 0)) {
        if (links.count == 0) {
            path_list found = w.links;
            w.links = links;
            links = found;
            list_sort(&links, 0);
        }
        status = list_add(&w.folders, links.paths[--links.count], err);
        if (status >= 0)
            status = walk_folders(&w, err);
    }
    list_done(&links);
    list_done(&w.links);
    list_done(&w.folders);
    free(w.entered);
    return status < 0 ? status : PRESTO_OK;
}
