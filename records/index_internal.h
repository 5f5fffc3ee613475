/* SPDX-License-Identifier: Apache-2.0 */
/* Index files: where the records of a TFRecord file start. Bytes: docs/format.md. */
#ifndef PRESTO_INDEX_INTERNAL_H
#define PRESTO_INDEX_INTERNAL_H

#include <stdatomic.h>

#include <presto/span.h>

/** What the index must fit: the data file as it stands now. */
typedef struct presto__index_key {
    uint64_t data_bytes;
    int64_t data_mtime_ns;
    bool plain; /* not compressed: the last offset is the file's size */
} presto__index_key;

/** An index file whose blocks are read when they are first needed. Zero-initialise. */
typedef struct presto__index {
    uint64_t *offsets; /* count + 1, each valid once its block is loaded; NULL: not open */
    uint64_t count;
    presto__index_key key;
    uint32_t header_crc; /* the CRCs of the blocks go on from here */
    unsigned block_bits; /* offset i is in block i >> block_bits */
    uint64_t block_count;
    atomic_bool *loaded; /* of each block */
} presto__index;

/**
 * Read the header of <data_path>.index, and its offsets if they are few.
 * Returns: PRESTO_OK; PRESTO_END if there is none or it does not fit the data (stale);
 * PRESTO_ERR_CORRUPT if it does not hold; PRESTO_ERR_UNSUPPORTED: another program wrote it;
 * PRESTO_ERR_IO; PRESTO_ERR_MEMORY.
 */
presto_status presto__index_open(const char *data_path, const presto__index_key *key,
                                 presto__index *index_out, presto_error *err);
void presto__index_done(presto__index *index);

/** Is block `block` there? Any thread. */
static inline bool presto__index_has(const presto__index *index, uint64_t block) {
    return atomic_load_explicit(&index->loaded[block], memory_order_acquire);
}

/**
 * Read and check a block. Only one thread may load at a time, while others may read what is loaded.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT or _IO if what it says cannot be had.
 */
presto_status presto__index_load(const char *data_path, presto__index *index, uint64_t block,
                                 presto_error *err);

/** As presto_index_write, for a data file that may not have its name yet. */
presto_status presto__index_write(const char *data_path, const presto__index_key *key,
                                  const uint64_t *offsets, uint64_t count, bool sync,
                                  presto_error *err);

/** "<data_path>.index", malloc'd. */
char *presto__index_name(const char *data_path);

#endif
