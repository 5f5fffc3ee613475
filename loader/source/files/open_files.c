/* SPDX-License-Identifier: Apache-2.0 */
#include "source_files_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#define SHARE_OF_FILES 8 /* of those that the process may have open */
#define NONE SIZE_MAX

typedef struct open_file {
    presto__object object;
    bool is_opening;
    unsigned users;
    size_t older, newer; /* among those that are idle: open, without users */
} open_file;

struct presto__open_files {
    const presto__files *files; /* the source's, which outlives this */
    size_t most_idle;
    pthread_mutex_t lock;  /* of all that follows; not held while a file is opened or closed */
    pthread_cond_t opened; /* a file is, or cannot be */
    size_t oldest, newest, idle;
    open_file items[]; /* [file] */
};

/* ---- idle files; with the lock held ---- */

static void add_idle(presto__open_files *open, size_t i) {
    open_file *file = &open->items[i];
    file->older = open->newest;
    file->newer = NONE;
    if (open->newest != NONE)
        open->items[open->newest].newer = i;
    else
        open->oldest = i;
    open->newest = i;
    open->idle++;
}

static void remove_idle(presto__open_files *open, size_t i) {
    const open_file *file = &open->items[i];
    if (file->newer != NONE)
        open->items[file->newer].older = file->older;
    else
        open->newest = file->older;
    if (file->older != NONE)
        open->items[file->older].newer = file->newer;
    else
        open->oldest = file->newer;
    open->idle--;
}

/* Close the idle files that were used longest ago, all but `most`. The lock is let go meanwhile. */
static void close_idle(presto__open_files *open, size_t most) {
    while (open->idle > most) {
        size_t i = open->oldest;
        presto__object object = open->items[i].object;
        remove_idle(open, i);
        open->items[i].object = (presto__object){.kind = NULL};
        pthread_mutex_unlock(&open->lock);
        presto__object_close(&object);
        pthread_mutex_lock(&open->lock);
    }
}

/* ---- files in use ---- */

static presto_status open_it(const presto__open_files *open, size_t i, presto__object *object_out,
                             presto_error *err) {
    const presto__file *entry = &open->files->entries[i];
    const presto__file_request request = {entry->path, entry, UINT64_MAX};
    return presto__source_file_open(&request, object_out, err);
}

static bool lacks_descriptors(const presto_error *why) {
    return why->sys_errno == EMFILE || why->sys_errno == ENFILE;
}

/* With the lock held, but not meanwhile: others wait for is_opening. */
static presto_status open_for_all(presto__open_files *open, size_t i, presto_error *err) {
    open_file *file = &open->items[i];
    presto_error why;
    presto__object object = {0};
    file->is_opening = true;
    pthread_mutex_unlock(&open->lock);
    presto_status status = open_it(open, i, &object, &why);
    if (status < 0 && lacks_descriptors(&why)) {
        presto__open_files_close_idle(open);
        status = open_it(open, i, &object, &why);
    }
    pthread_mutex_lock(&open->lock);
    file->is_opening = false;
    if (status == PRESTO_OK)
        file->object = object;
    else if (err != NULL)
        *err = why;
    pthread_cond_broadcast(&open->opened);
    return status;
}

presto_status presto__open_files_acquire(presto__open_files *open, size_t i,
                                         presto__object *object_out, presto_error *err) {
    open_file *file = &open->items[i];
    presto_status status = PRESTO_OK;
    pthread_mutex_lock(&open->lock);
    while (file->is_opening)
        pthread_cond_wait(&open->opened, &open->lock);
    if (!presto__object_is_open(file->object))
        status = open_for_all(open, i, err);
    else if (file->users == 0)
        remove_idle(open, i);
    if (status == PRESTO_OK) {
        file->users++;
        *object_out = file->object;
    }
    pthread_mutex_unlock(&open->lock);
    return status;
}

void presto__open_files_release(presto__open_files *open, size_t i) {
    pthread_mutex_lock(&open->lock);
    if (--open->items[i].users == 0) {
        add_idle(open, i);
        close_idle(open, open->most_idle);
    }
    pthread_mutex_unlock(&open->lock);
}

void presto__open_files_close_idle(presto__open_files *open) {
    pthread_mutex_lock(&open->lock);
    close_idle(open, 0);
    pthread_mutex_unlock(&open->lock);
}

/* ---- life ---- */

static size_t most_idle(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur / SHARE_OF_FILES >= PRESTO__IDLE_FILES)
        return PRESTO__IDLE_FILES;
    return (size_t)(limit.rlim_cur / SHARE_OF_FILES);
}

presto_status presto__open_files_new(const presto__files *files, presto__open_files **open_out,
                                     presto_error *err) {
    size_t count = files->file_count;
    presto__open_files *open = calloc(1, sizeof *open + count * sizeof open->items[0]);
    if (open == NULL)
        return presto_fail_memory(err, sizeof *open + count * sizeof open->items[0]);
    open->files = files;
    open->most_idle = most_idle();
    open->oldest = open->newest = NONE;
    int failed = pthread_mutex_init(&open->lock, NULL);
    if (failed == 0) {
        failed = pthread_cond_init(&open->opened, NULL);
        if (failed != 0)
            pthread_mutex_destroy(&open->lock);
    }
    if (failed != 0) {
        free(open);
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    *open_out = open;
    return PRESTO_OK;
}

void presto__open_files_free(presto__open_files *open) {
    if (open == NULL)
        return;
    presto__open_files_close_idle(open);
    pthread_cond_destroy(&open->opened);
    pthread_mutex_destroy(&open->lock);
    free(open);
}
