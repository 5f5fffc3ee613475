/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory workers hold: blocks read, decompressed records, images and what steps need. A
 * worker asks before its memory grows. All workers together may have half of the limit, as far as
 * batches leave it. Beyond that, one worker at a time continues with as much as its samples take,
 * and gives all of it back when they are done. The others wait.
 *
 * Where one batch alone leaves less than a quarter of the limit, workers have a quarter all the
 * same. Otherwise all samples of all batches would be made one after the other, each in new memory.
 *
 * No worker waits forever: the one that continues waits only for storage until it gives its memory
 * back.
 */
#include "../../steps/pipelines_internal.h"
#include "workers_internal.h"

/* A worker takes this much without asking, so small samples ask only once. */
#define FREE_BYTES ((size_t)1 << 20)

static bool fits(const presto__pool *pool, size_t bytes) {
    size_t most = pool->limit_bytes / 2, least = pool->limit_bytes / 4;
    if (pool->packet_bytes > pool->limit_bytes - least && pool->working_bytes <= least &&
        bytes <= least - pool->working_bytes)
        return true;
    return pool->working_bytes <= most && bytes <= most - pool->working_bytes &&
           pool->held_bytes <= pool->limit_bytes && bytes <= pool->limit_bytes - pool->held_bytes;
}

static void account_locked(presto__worker *worker, size_t held_bytes) {
    presto__pool *pool = worker->loader->pool;
    presto__pool_account_locked(pool, worker->held_bytes, held_bytes);
    pool->working_bytes = pool->working_bytes - worker->held_bytes + held_bytes;
    worker->held_bytes = held_bytes;
    if (pool->growers_waiting > 0)
        pthread_cond_broadcast(&pool->given);
}

size_t presto__worker_memory(const presto__worker *worker) {
    return worker->arena.total_bytes + worker->raw.capacity +
           presto__plan_worker_memory(worker->cache_worker) +
           presto__plan_worker_memory(worker->plan_worker) +
           presto__blocks_memory(&worker->blocks) + presto__disk_worker_memory(worker->disk);
}

/* A presto_arena_grow_fn. */
static bool may_grow(void *user, size_t bytes) {
    presto__worker *worker = user;
    presto_loader *loader = worker->loader;
    presto__pool *pool = loader->pool;
    if (bytes <= worker->free_bytes) {
        worker->free_bytes -= bytes;
        return true;
    }
    pthread_mutex_lock(&pool->lock);
    pool->growers_waiting++;
    while (!worker->is_over && pool->over != 0 && !fits(pool, bytes) && !loader->is_stopped)
        pthread_cond_wait(&pool->given, &pool->lock);
    pool->growers_waiting--;
    bool may = !loader->is_stopped;
    if (may && !worker->is_over && !fits(pool, bytes)) {
        pool->over = presto__worker_home(worker);
        worker->is_over = true;
    }
    if (may)
        account_locked(worker, worker->held_bytes + bytes);
    pthread_mutex_unlock(&pool->lock);
    return may;
}

void presto__worker_open_arena(presto__worker *worker) {
    presto_arena_init(&worker->arena, 0);
    worker->arena.on_grow = may_grow;
    worker->arena.on_grow_user = worker;
}

void presto__worker_return(void *user, size_t bytes) {
    presto__worker *worker = user;
    worker->free_bytes += bytes;
}

void presto__worker_give_back(presto__worker *worker) {
    if (!worker->is_over)
        return;
    presto__pool *pool = worker->loader->pool;
    presto_arena_done(&worker->arena);
    presto__blocks_done(&worker->blocks);
    presto_buffer_done(&worker->raw);
    pthread_mutex_lock(&pool->lock);
    worker->is_over = false;
    pool->over = 0;
    presto__worker_settle_locked(worker, presto__worker_memory(worker));
    pthread_mutex_unlock(&pool->lock);
}

void presto__worker_settle_locked(presto__worker *worker, size_t held_bytes) {
    account_locked(worker, held_bytes);
    worker->free_bytes = held_bytes < FREE_BYTES ? FREE_BYTES - held_bytes : 0;
}
