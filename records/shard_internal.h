/* SPDX-License-Identifier: Apache-2.0 */
/* Shards that share a limit on open files. */
#ifndef PRESTO_SHARD_INTERNAL_H
#define PRESTO_SHARD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <presto/shard.h>

/**
 * Descriptors that many shards share: at most `limit` are open (more only while all are in use),
 * and one not used for long is closed first, in a time that does not grow with their number.
 */
typedef struct presto__fd_pool {
    size_t limit; /* set by init, then read-only */
    pthread_mutex_t lock;
    /* Guarded by lock. */
    presto_shard *newest, *oldest; /* ends of the list of shards whose file is open */
    size_t open_count;

    atomic_size_t warnings; /* shards with a warning to take */
} presto__fd_pool;

presto_status presto__fd_pool_init(presto__fd_pool *pool, presto_error *err);
void presto__fd_pool_done(presto__fd_pool *pool);

/** As presto_shard_open; `pool` (may be NULL) must outlive the shard. */
presto_status presto__shard_open(const char *path, const presto_shard_options *options,
                                 presto__fd_pool *pool, presto_shard **shard_out,
                                 presto_error *err);

/** What was wrong with its index file; false: nothing, or it has been taken. Any thread. */
bool presto__shard_take_warning(presto_shard *shard, presto_error *warning_out);

/** A descriptor of the shard's file, held until presto__shard_release. */
presto_status presto__shard_acquire(presto_shard *shard, int *fd_out, presto_error *err);
void presto__shard_release(presto_shard *shard);

/** Use what the headers say, whatever index there is. Only before others know the shard. */
presto_status presto__shard_drop_index(presto_shard *shard, presto_error *err);

/** Did presto_shard_index find a fitting index file? */
bool presto__shard_has_index_file(const presto_shard *shard);

#endif
