/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cache: samples that need not be computed again: in memory, or in files of a folder that
 * several processes share (format: docs/format.md).
 * May see: base, storage, records, room source. Must not know: packets, who asks.
 * A returned sample does not change until its holder releases it. Locks: of the memory cache in
 * cache.c; of the disk cache index_lock before write_lock, see disk_internal.h.
 */
#ifndef PRESTO_LOADER_CACHE_INTERNAL_H
#define PRESTO_LOADER_CACHE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "../source/core/source_internal.h"

/* ---- in memory ---- */

typedef struct presto__cache presto__cache;
typedef struct presto__cached presto__cached; /* one sample */

/** PRESTO_ERR_ARGUMENT if the limit does not even hold the table of `count` samples.
 * PRESTO_COUNT_UNKNOWN is fine. */
presto_status presto__cache_new(uint64_t count, size_t limit_bytes, presto__cache **cache_out,
                                presto_error *err);
/** One more reference; returns the cache. Any thread. */
presto__cache *presto__cache_hold(presto__cache *cache);
/** One less; the last one frees it. NULL is fine. Any thread. */
void presto__cache_release(presto__cache *cache);
/** NULL if the sample is not there. Valid as long as the cache. Any thread. */
const presto__cached *presto__cache_get(const presto__cache *cache, uint64_t number);
/** Keep a copy, unless the cache is full. Any thread. */
void presto__cache_put(presto__cache *cache, const presto_sample *sample);
/** The entry as a sample whose values borrow from the cache and whose features are `arena`'s. */
presto_status presto__cached_sample(const presto__cached *entry, uint64_t number,
                                    presto_arena *arena, presto_sample *sample_out,
                                    presto_error *err);
/** Memory held. */
size_t presto__cache_bytes(const presto__cache *cache);

/* ---- what cached samples depend on ---- */

typedef struct presto__disk_key {
    uint64_t words[2];
} presto__disk_key;

/**
 * The key of what comes out of `plan` (NULL: no steps) run on the samples of `source`: changes with
 * the files that the source reads (path, size, times) and the checks that it makes, its features,
 * the steps with their options and the files these name, and this library's version.
 * Returns: PRESTO_OK, PRESTO_ERR_MEMORY.
 */
presto_status presto__disk_key_of(const presto_source *source, const presto_plan *plan,
                                  const presto__selection *selection, presto__disk_key *key_out,
                                  presto_error *err);

/* ---- on disk ---- */

typedef struct presto__disk presto__disk;
typedef struct presto__disk_worker presto__disk_worker;

typedef struct presto__disk_options {
    const char *dir; /* copied */
    uint64_t limit_bytes;
    presto__disk_key key;
    uint64_t count; /* samples of the source */
} presto__disk_options;

/**
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT (a limit too small to be of use); PRESTO_ERR_IO (the
 * folder cannot be made, read or written); PRESTO_ERR_MEMORY.
 */
presto_status presto__disk_open(const presto__disk_options *options, presto__disk **disk_out,
                                presto_error *err);
/** Publish what is unfinished. */
void presto__disk_finish(presto__disk *disk);
/** As presto__disk_finish, and free. No worker may be left. */
void presto__disk_free(presto__disk *disk);

typedef struct presto__disk_stats {
    uint64_t held_bytes; /* of the blocks that this stream can use */
    uint64_t written_bytes;
    uint64_t damaged_blocks; /* removed, because a check failed */
    uint64_t evicted_blocks; /* by this process, of any stream */
} presto__disk_stats;

void presto__disk_get_stats(const presto__disk *disk, presto__disk_stats *stats_out);
/** True once, if writing has failed: nothing more is stored, stored samples are still read. */
bool presto__disk_take_warning(presto__disk *disk, presto_error *warning_out);

/** `most`: samples looked up at a time. */
presto_status presto__disk_worker_new(presto__disk *disk, size_t most,
                                      presto__disk_worker **worker_out, presto_error *err);
void presto__disk_worker_free(presto__disk_worker *worker);
size_t presto__disk_worker_memory(const presto__disk_worker *worker);

/** Samples from here on belong to this epoch. */
void presto__disk_epoch(presto__disk *disk, uint64_t epoch);
/** Look up samples; all calls below take positions in `numbers`, which is borrowed until the next
 * call. */
void presto__disk_find(presto__disk_worker *worker, const uint64_t *numbers, size_t count);
bool presto__disk_has(const presto__disk_worker *worker, size_t i);
/** Leave only those `numbers` that the cache lacks, in their order; returns how many. */
size_t presto__disk_missing(presto__disk *disk, uint64_t *numbers, size_t count);
/**
 * Read and check entry i, unless that has been done: into `blocks`, after those in use there, or,
 * if NULL, into memory that is valid until the next load. The cost is added to `stats`; checking is
 * timed only if time_scale is not 0, and scaled by it.
 * Returns: PRESTO_OK; PRESTO_END (it is gone or damaged, or there is no memory for it: a miss after
 *          all).
 */
presto_status presto__disk_load(presto__disk_worker *worker, size_t i, presto__blocks *blocks,
                                uint64_t time_scale, presto__read_stats *stats);
/** The sample of the entry loaded last, as presto__disk_entry_read. */
presto_status presto__disk_sample(presto__disk_worker *worker, presto_arena *arena,
                                  presto_sample *sample_out, presto_error *err);
/** Keep a copy, unless there is no room. Stored with the next flush, or before. */
void presto__disk_put(presto__disk_worker *worker, const presto_sample *sample);
/** Store what was put, and release what was found. */
void presto__disk_flush(presto__disk_worker *worker);

#endif
