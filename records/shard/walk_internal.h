/* SPDX-License-Identifier: Apache-2.0 */
/* Part of room shard's header: files whose records are not counted yet. */
#ifndef PRESTO_SHARD_WALK_INTERNAL_H
#define PRESTO_SHARD_WALK_INTERNAL_H

#include "shard_internal.h"

/** Does it begin with a record (of the decompressed stream)? */
bool presto__shard_has_records(const presto_shard *shard);
/** Index the shard by its index file. PRESTO_END: there is none that will do. */
presto_status presto__shard_use_index(presto_shard *shard, presto_error *err);
/** Are its records counted? Any thread. */
bool presto__shard_is_indexed(const presto_shard *shard);
/** May records [first, first + count) be read? If not, it may be because it is not indexed. Any
 * thread. */
static inline bool presto__shard_reaches(const presto_shard *shard, uint64_t first,
                                         uint64_t count) {
    uint64_t records = presto_shard_records(shard);
    return first <= records && count <= records - first;
}

/* ---- reading without an index: one thread at a time, until the walk ends ---- */

/**
 * Read the next records, from the first one on, as presto_dataset_walk does; sets all of `stretch`
 * but `shard` and `is_read`. PRESTO_END: there are none; presto__shard_end_walk comes next.
 */
presto_status presto__shard_walk(presto_shard *shard, const presto_walk_limits *limits,
                                 presto_block *block, presto_stretch *stretch, presto_error *err);
/** Pass over up to `most` records; fewer if the shard ends before. Those that were passed over may
 * be read, but for the last one. */
presto_status presto__shard_pass(presto_shard *shard, uint64_t most, uint64_t *passed_out,
                                 presto_error *err);
/** Bytes of a frame on average, as the first ones are; 1 if that cannot be said. */
uint64_t presto__shard_guess_mean(presto_shard *shard);
/** Has the walk reached the end, as far as can be said without failing? */
bool presto__shard_walk_at_end(presto_shard *shard);
/** All has been walked: the shard is indexed from now on. */
presto_status presto__shard_end_walk(presto_shard *shard, presto_error *err);

/** Check the records of a stretch that is read, and make the block show them. Any thread. */
presto_status presto__stretch_check(presto_shard *shard, const presto_stretch *stretch,
                                    presto_block *block, presto_error *err);
/** What is wrong with record i of it. */
presto_status presto__stretch_describe(presto_shard *shard, const presto_stretch *stretch, size_t i,
                                       presto_block *block, presto_error *err);

#endif
