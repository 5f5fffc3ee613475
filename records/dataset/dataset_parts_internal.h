/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room dataset: an open dataset, for dataset.c, which opens it, and dataset_walk.c, which
 * reads foreign files that are not counted yet. */
#ifndef PRESTO_DATASET_PARTS_INTERNAL_H
#define PRESTO_DATASET_PARTS_INTERNAL_H

#include <stdatomic.h>

#include "../shard/shard_internal.h"
#include "dataset_internal.h"

/* Opening a shard may take a pass over its headers. Several locks let other shards be opened
 * meanwhile. */
#define PRESTO__OPEN_LOCKS 16

struct presto_dataset {
    /* Set by open, then read-only. */
    presto_dataset_info info;
    bool ours;
    char **paths; /* of each shard */
    presto_shard_options options;
    char *index_dir; /* owned: that of the options */
    presto_codec_spec codec;
    presto_buffer dictionary;
    bool pool_ready;
    size_t locks_ready;
    bool walk_lock_ready;
    uint64_t guessed_mean; /* bytes of a record, if they are not counted */

    /* shard_count + 1. Of shards that are not counted yet, and of all behind them,
     * PRESTO_COUNT_UNKNOWN, until the walk, or whoever counts, comes to their end. */
    _Atomic(uint64_t) *firsts;

    presto__fd_pool pool;
    atomic_size_t look_at;                     /* for a warning */
    pthread_mutex_t locks[PRESTO__OPEN_LOCKS]; /* shard i is opened under locks[i % OPEN_LOCKS] */
    _Atomic(presto_shard *) *shards;           /* NULL until opened; never changed afterwards */

    /* Guarded by walk_lock. */
    pthread_mutex_t walk_lock;
    bool is_walked;       /* somebody walks */
    size_t walk_shard;    /* the walk stands here; shard_count: at its end */
    uint64_t walk_record; /* in the shard */
};

/** Shard i, opened, but not counted. */
presto_status presto__dataset_open_shard(presto_dataset *dataset, size_t i,
                                         presto_shard **shard_out, presto_error *err);

static inline uint64_t presto__dataset_first(const presto_dataset *dataset, size_t i) {
    return atomic_load_explicit(&dataset->firsts[i], memory_order_acquire);
}

/** Set the first numbers behind shard i, whose records are counted now, and behind those after it
 * that are counted already. PRESTO_ERR_CORRUPT: 2^64 - 1 records or more. */
presto_status presto__dataset_count_from(presto_dataset *dataset, size_t i, presto_error *err);

#endif
