/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files behind one shard share: shard.c opens it, shard_pool.c limits its descriptors,
 * shard_index.c finds its records, shard_fetch.c reads them, shard_stream.c if the file is
 * compressed as a whole.
 */
#ifndef PRESTO_SHARD_PARTS_INTERNAL_H
#define PRESTO_SHARD_PARTS_INTERNAL_H

#include <stdatomic.h>

#include "../base/file_internal.h"
#include "index_internal.h"
#include "shard_internal.h"
#include "stream_internal.h"

/* Read in pieces that are still in the second-level cache when their CRC is computed. */
#define PRESTO__PIECE_BYTES ((size_t)256 << 10)

struct presto_shard {
    /* Set by open, then read-only. */
    char *path;
    presto_shard_options options;
    presto_file_compression compression;
    uint64_t file_bytes;
    int64_t mtime_ns;
    dev_t device;
    ino_t inode;
    presto__fd_pool *pool; /* NULL: the file stays open */

    /* The file's descriptor. Guarded by lock, and the links by the pool's. */
    pthread_mutex_t lock;
    int fd; /* -1: closed for now */
    unsigned users;
    bool used; /* since the pool looked at it last */
    presto_shard *newer, *older;

    /* The offsets: written under index_lock, complete once `indexed` is set. */
    pthread_mutex_t index_lock;
    atomic_bool indexed;
    bool from_file;
    presto__index index; /* from the file, or over `built` */
    presto_buffer built;
    presto_buffer damaged;      /* uint64_t: which records are damaged ranges, rising */
    presto_error *stream_fault; /* why the last record of a compressed file is one */

    /* The whole file, if options.map. */
    const uint8_t *mapping;

    /* Of a compressed file. Guarded by stream_lock. */
    pthread_mutex_t stream_lock;
    presto__stream *stream;
};

/** The shard, just opened, counts from now on; another one is closed if there are too many. */
void presto__fd_pool_enter(presto__fd_pool *pool, presto_shard *shard);
/** The shard is about to be freed. */
void presto__fd_pool_leave(presto_shard *shard);

/** The first record from `from` on that is a damaged range; UINT64_MAX: none. */
uint64_t presto__shard_next_damaged(const presto_shard *shard, uint64_t from);

/** `status`, with the file and the record added to its error. */
presto_status presto__shard_fail_at(const presto_shard *shard, uint64_t record,
                                    presto_status status, presto_error *err);
/** The file, or what is compressed in it, ends at `end`, before the end of `record`. */
presto_status presto__shard_fail_short(const presto_shard *shard, uint64_t record, uint64_t end,
                                       presto_error *err);

/**
 * Copy records [first, first + count), as they stand in what is compressed in the file, into
 * block->bytes_.data, and count the bytes of the file that this read.
 */
presto_status presto__shard_read_stream(presto_shard *shard, uint64_t first, size_t count,
                                        presto_block *block, presto_error *err);

#endif
