/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind `given`: file systems that the program gives as functions (presto/filesystem.h). A path is
 * "NAME://PATH", and a NAME has a '+', as no scheme of a URL that is known here does. What the
 * functions say is checked: they are somebody else's.
 *
 * Lock: of the table and its counts, held for a moment, never while a function of the program runs.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <presto/filesystem.h>

#include "../base/file_internal.h"
#include "../base/options_internal.h"
#include "../base/stop_internal.h"
#include "remote_internal.h"

#define MOST_NAME_BYTES 64
#define MOST_DEPTH 100 /* of folders: a link may point to a folder above */

typedef struct given {
    struct given *next;
    char *name;
    presto_filesystem functions;
    size_t users; /* guarded by the lock: the table, open files, calls */
} given;

/* What a path says. */
typedef struct given_place {
    given *of;        /* counted */
    char *canonical;  /* "NAME://A/B", however it was written */
    const char *path; /* in it: "/A/B" */
} given_place;

typedef struct given_file {
    given *of; /* counted */
    void *file;
    char *canonical;
    presto__object_info info;
} given_file;

/* ---- the table ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static given *table; /* guarded by the lock */

static void take_lock(void) {
    pthread_mutex_lock(&lock);
}

static void give_lock(void) {
    pthread_mutex_unlock(&lock);
}

/* A child of fork gets the table, and no lock that a thread of its parent held. */
static void register_fork(void) {
    (void)pthread_atfork(take_lock, give_lock, give_lock);
}

static void lock_table(void) {
    (void)pthread_once(&once, register_fork);
    take_lock();
}

/* The length of NAME, if the path is "NAME://...", as names are; 0: it is not. */
static size_t name_bytes(const char *path) {
    size_t bytes = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789.-+");
    bool is_name = path[0] >= 'a' && path[0] <= 'z' && bytes <= MOST_NAME_BYTES &&
                   memchr(path, '+', bytes) != NULL;
    return is_name && strncmp(path + bytes, "://", 3) == 0 ? bytes : 0;
}

static bool given_owns(const char *path) {
    return name_bytes(path) > 0;
}

/* With the lock held. */
static given *find_name(const char *name, size_t bytes) {
    given *one = table;
    while (one != NULL && (strncmp(one->name, name, bytes) != 0 || one->name[bytes] != '\0'))
        one = one->next;
    return one;
}

static void release(given *one) {
    lock_table();
    bool is_last = --one->users == 0;
    give_lock();
    if (!is_last)
        return;
    if (one->functions.done != NULL)
        one->functions.done(one->functions.user);
    free(one->name);
    free(one);
}

static void place_done(given_place *place) {
    if (place->of != NULL)
        release(place->of);
    free(place->canonical);
}

/* On failure there is nothing to be done. */
static presto_status find_place(const char *path, given_place *place_out, presto_error *err) {
    size_t name = name_bytes(path);
    const char *from = path + name + strlen("://");
    from += strspn(from, "/");
    size_t bytes = strlen(from);
    while (bytes > 0 && from[bytes - 1] == '/')
        bytes--;
    char *canonical = malloc(name + 4 + bytes + 1);
    if (canonical == NULL)
        return presto_fail_memory(err, name + 4 + bytes + 1);
    memcpy(canonical, path, name);
    memcpy(canonical + name, ":///", 4);
    memcpy(canonical + name + 4, from, bytes);
    canonical[name + 4 + bytes] = '\0';
    lock_table();
    given *one = find_name(path, name);
    if (one != NULL)
        one->users++;
    give_lock();
    if (one == NULL) {
        free(canonical);
        presto_status status = presto_fail(
            err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
            "URLs are not read (no file system of the name %.*s is given in this process)",
            (int)name, path);
        presto_error_set_file(err, path);
        return status;
    }
    *place_out = (given_place){one, canonical, canonical + name + 3};
    return PRESTO_OK;
}

/* ---- what functions say ---- */

/* A failure in the function's words. */
static presto_status pass_failure(const char *path, presto_status status, const presto_error *why,
                                  presto_error *err) {
    if (status > 0) {
        status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                             "a function of the file system returns %d, which is no failure",
                             (int)status);
    } else if (err != NULL) {
        *err = *why;
        err->status = status;
    }
    presto_error_set_file(err, path);
    return status;
}

static presto_error no_words(void) {
    presto_error why;
    presto_error_set(&why, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "the file system does not say why");
    return why;
}

static presto__object_info info_of(const char *canonical, const presto_filesystem_entry *entry) {
    char version[PRESTO_FILESYSTEM_VERSION_BYTES];
    memcpy(version, entry->version, sizeof version);
    version[sizeof version - 1] = '\0';
    const presto__remote_version which = {.etag = version, .mtime_ns = entry->mtime_ns};
    presto__object_info info = presto__remote_info(canonical, entry->bytes, &which);
    info.type = entry->type == PRESTO_FILESYSTEM_FILE     ? PRESTO__OBJECT_FILE
                : entry->type == PRESTO_FILESYSTEM_FOLDER ? PRESTO__OBJECT_FOLDER
                                                          : PRESTO__OBJECT_OTHER;
    return info;
}

/* ---- the hooks ---- */

static presto_status find_in(const given_place *place, const char *path,
                             presto__object_info *info_out, presto_error *err) {
    presto_filesystem_entry entry = {.bytes = 0};
    presto_error why = no_words();
    presto_status status =
        place->of->functions.find(place->of->functions.user, place->path, &entry, &why);
    if (status != PRESTO_OK)
        return pass_failure(path, status, &why, err);
    *info_out = info_of(place->canonical, &entry);
    return PRESTO_OK;
}

static presto_status given_find(const char *path, presto__object_info *info_out,
                                presto_error *err) {
    given_place place;
    PRESTO_TRY(find_place(path, &place, err));
    presto_status status = find_in(&place, path, info_out, err);
    place_done(&place);
    return status;
}

static void given_close(presto__object object) {
    given_file *file = object.state;
    file->of->functions.close(file->of->functions.user, file->file);
    release(file->of);
    free(file->canonical);
    free(file);
}

static presto_status open_in(given_place *place, const char *path, presto__object *object_out,
                             presto__object_info *info_out, presto_error *err) {
    presto_filesystem_entry entry = {.bytes = 0};
    presto_error why = no_words();
    given_file *file = malloc(sizeof *file);
    if (file == NULL)
        return presto_fail_memory(err, sizeof *file);
    *file = (given_file){.of = place->of};
    presto_status status = place->of->functions.open(place->of->functions.user, place->path,
                                                     &file->file, &entry, &why);
    if (status != PRESTO_OK) {
        free(file);
        return pass_failure(path, status, &why, err);
    }
    file->info = info_of(place->canonical, &entry);
    file->canonical = place->canonical;
    *place = (given_place){.of = NULL}; /* the file has it */
    *object_out = (presto__object){.kind = &presto__storage_given, .state = file};
    *info_out = file->info;
    if (file->info.type == PRESTO__OBJECT_FILE)
        return PRESTO_OK;
    status = presto_fail_errno(err, file->info.type == PRESTO__OBJECT_FOLDER ? EISDIR : EINVAL,
                               path, "cannot read");
    given_close(*object_out);
    *object_out = (presto__object){.kind = NULL};
    return status;
}

static presto_status given_open(const char *path, presto__object *object_out,
                                presto__object_info *info_out, presto_error *err) {
    given_place place;
    PRESTO_TRY(find_place(path, &place, err));
    presto_status status = open_in(&place, path, object_out, info_out, err);
    place_done(&place);
    return status;
}

static presto_status fail_read(const presto__object_place *place, uint64_t end, presto_error *err,
                               uint64_t size) {
    presto_status status = presto_fail(
        err, PRESTO_ERR_IO, end, "has changed since it was opened: it had %" PRIu64 " bytes", size);
    presto_error_set_file(err, place->path);
    return status;
}

static presto_status given_read(const presto__object_place *place, void *data, size_t bytes,
                                size_t *got_out, presto_error *err) {
    const given_file *file = place->object.state;
    const presto_filesystem *functions = &file->of->functions;
    uint64_t size = file->info.bytes;
    uint64_t left = place->offset < size ? size - place->offset : 0;
    size_t wanted = left < bytes ? (size_t)left : bytes, got = 0;
    presto_error why = no_words();
    *got_out = 0;
    if (wanted == 0)
        return PRESTO_OK;
    presto_status status =
        functions->read(functions->user, file->file, place->offset, data, wanted, &got, &why);
    if (status != PRESTO_OK)
        return pass_failure(place->path, status, &why, err);
    if (got != wanted)
        return fail_read(place, place->offset + (got < wanted ? got : wanted), err, size);
    *got_out = got;
    return PRESTO_OK;
}

static presto_status given_look(presto__object object, const char *path,
                                presto__object_info *info_out, presto_error *err) {
    const given_file *file = object.state;
    const given_place place = {file->of, file->canonical,
                               file->canonical + strlen(file->of->name) + 3};
    presto_error why;
    presto_status status = find_in(&place, path, info_out, &why);
    if (status == PRESTO_OK)
        return PRESTO_OK;
    if (err != NULL)
        *err = why;
    if (status != PRESTO_ERR_NOT_FOUND)
        return status;
    status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "was removed since it was opened");
    presto_error_set_file(err, path);
    return status;
}

static int given_number(presto__object object) {
    return (int)(((uintptr_t)object.state >> 4) & INT32_MAX);
}

/* ---- lists ---- */

typedef struct given_list {
    const presto__list *list;
    const char *folder;    /* as it was named */
    presto__paths folders; /* in it, to be entered */
} given_list;

static presto_status tell_path(given_list *pass, const char *path, const char *name,
                               const presto_filesystem_entry *entry, presto_error *err) {
    const presto__list *list = pass->list;
    presto_error why;
    given_place place;
    if (entry->type == PRESTO_FILESYSTEM_FOLDER) {
        if (!list->is_shallow)
            return presto__paths_add(&pass->folders, path, err);
        return list->folder == NULL ? PRESTO_OK : list->folder(list->user, path, err);
    }
    presto_status status = find_place(path, &place, &why);
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    const presto__object_info info = info_of(place.canonical, entry);
    const presto__listed found = {.path = path, .name = name, .info = &info};
    place_done(&place);
    return list->found(list->user, &found, err);
}

/* A presto_filesystem_tell_fn. */
static presto_status tell_name(void *user, const char *name, const presto_filesystem_entry *entry,
                               presto_error *err) {
    given_list *pass = user;
    const presto__list *list = pass->list;
    bool is_wanted = true;
    PRESTO_TRY(presto__stop_check(err));
    if (name[0] == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0) {
        presto_status status =
            presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                        "the file system lists '%.200s' there, which is no name", name);
        presto_error_set_file(err, pass->folder);
        return status;
    }
    if (list->name != NULL)
        PRESTO_TRY(list->name(list->user, pass->folder, name, &is_wanted, err));
    if (!is_wanted)
        return PRESTO_OK;
    char *path = presto__join_path(pass->folder, name);
    if (path == NULL)
        return presto_fail_memory(err, strlen(pass->folder) + strlen(name));
    presto_status status = tell_path(pass, path, name, entry, err);
    free(path);
    return status;
}

/* What is in one folder; those in it that are to be entered are in *folders_out. */
static presto_status list_one(const char *folder, const presto__list *list,
                              presto__paths *folders_out, presto_error *err) {
    given_place place;
    given_list pass = {.list = list, .folder = folder};
    presto_error why = no_words();
    PRESTO_TRY(find_place(folder, &place, err));
    const presto_filesystem *functions = &place.of->functions;
    presto_status status =
        functions->list == NULL
            ? presto_fail(&why, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                          "folders of this file system cannot be listed: name each file")
            : functions->list(functions->user, place.path, tell_name, &pass, &why);
    if (status != PRESTO_OK)
        status = pass_failure(folder, status, &why, err);
    place_done(&place);
    *folders_out = pass.folders;
    return status;
}

static presto_status fail_depth(const char *folder, presto_error *err) {
    presto_status status = presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                                       "folders are more than %d deep here: does a link point to a "
                                       "folder above?",
                                       MOST_DEPTH);
    presto_error_set_file(err, folder);
    return status;
}

static presto_status list_below(const char *folder, const presto__list *list, unsigned depth,
                                presto_error *err) {
    presto__paths folders = {0};
    if (depth > MOST_DEPTH)
        return fail_depth(folder, err);
    presto_status status = PRESTO_OK;
    if (list->folder != NULL)
        status = list->folder(list->user, folder, err);
    if (status >= 0)
        status = list_one(folder, list, &folders, err);
    for (size_t i = 0; i < folders.count && status >= 0; i++)
        status = list_below(folders.items[i], list, depth + 1, err);
    presto__paths_done(&folders);
    return status < 0 ? status : PRESTO_OK;
}

static presto_status given_list_all(const char *path, const presto__list *list, presto_error *err) {
    presto__paths folders = {0};
    if (!list->is_shallow)
        return list_below(path, list, 0, err);
    presto_status status = list_one(path, list, &folders, err);
    presto__paths_done(&folders);
    return status;
}

const presto__storage_kind presto__storage_given = {
    .name = "given",
    .is_remote = true,
    .owns = given_owns,
    .open = given_open,
    .close = given_close,
    .read = given_read,
    .look = given_look,
    .find = given_find,
    .list = given_list_all,
    .number = given_number,
};

/* ---- from the program ---- */

presto_status presto_filesystem_add(const char *name, const presto_filesystem *filesystem,
                                    presto_error *err) {
    size_t bytes = strlen(name);
    given *made = calloc(1, sizeof *made);
    presto_status status = PRESTO_OK;
    if (made == NULL)
        return presto_fail_memory(err, sizeof *made);
    made->name = malloc(bytes + 4);
    if (made->name == NULL)
        status = presto_fail_memory(err, bytes + 4);
    if (status == PRESTO_OK) {
        memcpy(made->name, name, bytes);
        memcpy(made->name + bytes, "://", 4);
        if (bytes == 0 || name_bytes(made->name) != bytes)
            status =
                presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                            "'%.80s' is no name of a file system: it begins with a letter, has "
                            "a '+', and else small letters, digits, '-' and '.', at most %d",
                            name, MOST_NAME_BYTES);
        made->name[bytes] = '\0';
    }
    if (status == PRESTO_OK)
        status = presto__options_take(&made->functions, sizeof made->functions, filesystem, err);
    const presto_filesystem *functions = &made->functions;
    if (status == PRESTO_OK && (functions->find == NULL || functions->open == NULL ||
                                functions->read == NULL || functions->close == NULL))
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "a file system has at least find, open, read and close");
    if (status == PRESTO_OK) {
        made->users = 1;
        lock_table();
        if (find_name(name, bytes) != NULL) {
            status = PRESTO_ERR_BUSY;
        } else {
            made->next = table;
            table = made;
        }
        give_lock();
        if (status < 0)
            status = presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                                 "there is a file system of the name %s already", name);
    }
    if (status < 0) {
        free(made->name);
        free(made);
    }
    return status;
}

void presto_filesystem_remove(const char *name) {
    given **at = &table, *found = NULL;
    lock_table();
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    if (*at != NULL) {
        found = *at;
        *at = found->next;
    }
    give_lock();
    if (found != NULL)
        release(found);
}
