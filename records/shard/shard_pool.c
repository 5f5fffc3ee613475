/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits how many files of a dataset are open: shards of a pool are closed while idle, and opened
 * again, as the same file, when a thread needs them. What comes over a network stays open. Lock order: a shard's own lock, then the
 * pool's. Locks of other shards are only tried.
 */
#include <errno.h>
#include <sys/resource.h>

#include "../../base/retry_internal.h"
#include "shard_parts_internal.h"

#define FILES_IF_UNLIMITED 128
#define SHARE_OF_FILES 2 /* the other half is for all else that is open */
#define LEAST_FILES 4

presto_status presto__fd_pool_init(presto__fd_pool *pool, presto_error *err) {
    struct rlimit limit;
    *pool = (presto__fd_pool){0};
    pool->limit = FILES_IF_UNLIMITED;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        pool->limit = (size_t)(limit.rlim_cur / SHARE_OF_FILES);
    if (pool->limit < LEAST_FILES)
        pool->limit = LEAST_FILES;
    int result = pthread_mutex_init(&pool->lock, NULL);
    return result == 0 ? PRESTO_OK : presto_fail_errno(err, result, NULL, "cannot make a lock");
}

void presto__fd_pool_done(presto__fd_pool *pool) {
    pthread_mutex_destroy(&pool->lock);
}

/* These three with the pool's lock held. */
static void pool_add(presto__fd_pool *pool, presto_shard *shard) {
    shard->older = pool->newest;
    shard->newer = NULL;
    if (pool->newest != NULL)
        pool->newest->newer = shard;
    else
        pool->oldest = shard;
    pool->newest = shard;
    pool->open_count++;
}

static void pool_remove(presto__fd_pool *pool, presto_shard *shard) {
    if (shard->newer != NULL)
        shard->newer->older = shard->older;
    else
        pool->newest = shard->older;
    if (shard->older != NULL)
        shard->older->newer = shard->newer;
    else
        pool->oldest = shard->newer;
    pool->open_count--;
}

/*
 * Close the oldest idle file that was not used since the last look. A file that was used is passed
 * over and becomes the newest. This is the clock algorithm: nearly least recently used, and a use
 * takes no lock of the pool. Unused files stay in front of used ones, so the next search finds them
 * at once. The caller holds its own shard's lock, so other shards' locks are only tried; a busy one
 * is not closed. The second round finds files that the first one passed over. Returns whether one
 * was closed.
 */
static bool pool_close_one(presto__fd_pool *pool, const presto_shard *self) {
    for (size_t left = 2 * pool->open_count; left > 0 && pool->oldest != NULL; left--) {
        presto_shard *shard = pool->oldest;
        if (shard != self && pthread_mutex_trylock(&shard->lock) == 0) {
            bool is_idle = shard->users == 0 && !shard->used;
            shard->used = false;
            if (is_idle) {
                presto__object_close(&shard->object);
                pool_remove(pool, shard);
            }
            pthread_mutex_unlock(&shard->lock);
            if (is_idle)
                return true;
        }
        pool_remove(pool, shard);
        pool_add(pool, shard);
    }
    return false;
}

/* Room for one more. While all are busy there are more than the limit: one for each thread that
 * reads at most. The next call closes those, too. */
static void pool_make_room(presto__fd_pool *pool, const presto_shard *self) {
    while (pool->open_count >= pool->limit && pool_close_one(pool, self)) {}
}

void presto__fd_pool_close_idle(presto__fd_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    while (pool_close_one(pool, NULL)) {}
    pthread_mutex_unlock(&pool->lock);
}

void presto__fd_pool_share(presto__fd_pool *pool, size_t datasets) {
    pthread_mutex_lock(&pool->lock);
    pool->limit = pool->limit > datasets ? pool->limit / datasets : 1;
    pool_make_room(pool, NULL);
    pthread_mutex_unlock(&pool->lock);
}

/* The shard's file was opened: another one is closed if there are too many. */
static void pool_enter(presto__fd_pool *pool, presto_shard *shard) {
    pthread_mutex_lock(&pool->lock);
    pool_make_room(pool, shard);
    pool_add(pool, shard);
    pthread_mutex_unlock(&pool->lock);
}

void presto__fd_pool_enter(presto__fd_pool *pool, presto_shard *shard) {
    shard->pool = pool;    /* before other threads know the shard: they read it without a lock */
    if (!shard->is_remote) /* that has no descriptor, and opening it again takes a round trip */
        pool_enter(pool, shard);
}

void presto__fd_pool_end_stream(presto_shard *shard) {
    presto__fd_pool *pool = shard->pool;
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    bool is_listed = false;
    for (size_t i = 0; i < PRESTO__ENDED_STREAMS; i++)
        is_listed = is_listed || pool->ended[i] == shard;
    if (!is_listed) {
        presto_shard *old = pool->ended[pool->next_ended];
        pool->ended[pool->next_ended] = shard;
        pool->next_ended = (pool->next_ended + 1) % PRESTO__ENDED_STREAMS;
        /* Whoever is reading from it lists it again. */
        if (old != NULL && pthread_mutex_trylock(&old->stream_lock) == 0) {
            presto__byte_stream_free(old->stream);
            old->stream = NULL;
            old->has_ended = false;
            pthread_mutex_unlock(&old->stream_lock);
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

void presto__fd_pool_leave(presto_shard *shard) {
    if (!presto__object_is_open(shard->object) || shard->pool == NULL || shard->is_remote)
        return;
    pthread_mutex_lock(&shard->pool->lock);
    pool_remove(shard->pool, shard);
    pthread_mutex_unlock(&shard->pool->lock);
}

/* With the shard's lock held. What a server does not give any more is no fault of one record: leaving
 * it out would not help. */
static presto_status reopen(presto_shard *shard, presto_error *err) {
    presto__object_info info = {0};
    presto__object object = {0};
    presto_error why;
    presto_status status = presto__object_open(shard->path, &object, &info, &why);
    if (status == PRESTO_OK && !presto__object_is_same(&info, &shard->info)) {
        presto__object_close(&object);
        status = presto_fail(&why, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "the file has been replaced or changed while in use");
        presto_error_set_file(&why, shard->path);
    }
    if (status < 0 && shard->is_remote && !presto__is_machine_failure(&why)) {
        why.status = status = PRESTO_ERR_IO;
        why.sys_errno = EIO;
    }
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    shard->object = object;
    return PRESTO_OK;
}

presto_status presto__shard_acquire(presto_shard *shard, presto__object *object_out,
                                    presto_error *err) {
    presto__fd_pool *pool = shard->pool;
    if (pool == NULL) { /* only files of a pool are ever closed */
        *object_out = shard->object;
        return PRESTO_OK;
    }
    presto_status status = PRESTO_OK;
    pthread_mutex_lock(&shard->lock);
    shard->used = presto__object_is_open(
        shard->object); /* opening is not a use: else no file would be closed first */
    if (!presto__object_is_open(shard->object)) {
        /* Without the pool's lock: files may be opened side by side, which takes long on some
         * storage. */
        status = reopen(shard, err);
        if (status == PRESTO_OK)
            pool_enter(pool, shard);
    }
    if (status == PRESTO_OK) {
        shard->users++;
        *object_out = shard->object;
    }
    pthread_mutex_unlock(&shard->lock);
    return status;
}

void presto__shard_release(presto_shard *shard) {
    if (shard->pool == NULL)
        return;
    pthread_mutex_lock(&shard->lock);
    shard->users--;
    pthread_mutex_unlock(&shard->lock);
}
