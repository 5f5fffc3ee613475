/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind the disk cache: disk_index.c knows which block holds a sample, disk_write.c makes blocks,
 * disk_cache.c reads them; its files are disk_files_internal.h. For this room alone.
 */
#ifndef PRESTO_LOADER_DISK_INTERNAL_H
#define PRESTO_LOADER_DISK_INTERNAL_H

#include "disk_files_internal.h"

/* ---- the cache ---- */

typedef struct presto__disk_block {
    /* Set before it is shared, then read-only. */
    uint32_t id;
    bool is_writing; /* under a partial name; `fd` is open to its end */
    uint64_t added_ns;
    uint64_t file_bytes;
    char name[PRESTO__DISK_NAME_BYTES];
    char final_name[PRESTO__DISK_NAME_BYTES]; /* its name now or when it is whole */

    atomic_size_t refs; /* of the index, and of all who found something in it */
    atomic_int fd;      /* -1: not open */
    atomic_bool is_gone;
    _Atomic uint64_t touched_ns;

    presto__disk_place *places; /* guarded by index_lock */
    uint32_t place_count;
    uint32_t live; /* places that the index pointed to when it was added; 0: superfluous */
    bool is_last;  /* at that time, all other blocks of its samples had smaller names */

    /* While it is written; guarded by write_lock. */
    uint32_t place_capacity;
    uint32_t reserved; /* places handed out */
    uint64_t next;     /* unit where the next entries go */
    unsigned pending;  /* workers that are writing into it */
    bool is_closed;    /* no more comes */
} presto__disk_block;

struct presto__disk {
    /* Set by open, then read-only. */
    presto__disk_folder folder;
    uint64_t count;
    uint64_t block_bytes;
    int most_open;

    pthread_rwlock_t index_lock;
    uint64_t *entries;           /* by sample: block << 32 | place; 0: none */
    presto__disk_block **blocks; /* by id; [0] and what is gone are NULL */
    uint32_t block_count;
    uint32_t block_capacity;
    uint64_t held_bytes;

    pthread_mutex_t write_lock;
    pthread_cond_t rolled;
    presto__disk_block *current; /* NULL: the next flush makes a block */
    bool is_rolling;             /* a worker is replacing it */
    presto_error stop_error;

    atomic_uint_fast64_t epoch;
    atomic_bool is_full;    /* until the next epoch */
    atomic_bool is_stopped; /* writing failed: stop_error */
    atomic_bool has_warned;
    atomic_bool is_looking;
    _Atomic uint64_t looked_ns;
    struct timespec looked_mtime; /* guarded by is_looking */
    atomic_int open_files;
    _Atomic uint64_t written_bytes, damaged_blocks, evicted_blocks;
};

typedef struct presto__disk_hit {
    presto__disk_block *block; /* NULL: a miss */
    uint32_t at, units;
} presto__disk_hit;

struct presto__disk_worker {
    presto__disk *disk;      /* the loader's, freed after its workers */
    const uint64_t *numbers; /* the packet's, until the next presto__disk_find */
    size_t most;
    presto__disk_hit *hits;
    size_t count;
    presto__disk_block **held; /* references: the blocks of the hits, each run of equal ones once */
    size_t held_count;

    /* The entries read last. */
    presto_block run_block; /* their memory, unless they are in the caller's blocks */
    presto__disk_block *run_of;
    uint32_t run_at, run_end; /* units */
    const uint8_t *run_data;
    presto_span loaded;
    uint64_t loaded_number;

    /* What was put and is not yet stored. */
    presto_buffer put;
    presto__disk_place *put_places; /* `at` counts from the start of `put` */
    size_t put_count, put_capacity;
};

/* ---- blocks and the index: disk_index.c ---- */

/** `fd` is that of a partial file, or -1. NULL: no memory. */
presto__disk_block *presto__disk_block_new(int fd, const char *name);
/** NULL is fine. */
void presto__disk_block_release(presto__disk *disk, presto__disk_block *block);
/** With index_lock held for writing: give it an id. False: no memory. */
bool presto__disk_block_add_locked(presto__disk *disk, presto__disk_block *block);
/** Take it out of the index, if it is there. Its entries are misses from then on. */
void presto__disk_block_drop(presto__disk *disk, presto__disk_block *block);
/** A check of it failed: drop it, remove its file, count it. */
void presto__disk_block_discard(presto__disk *disk, presto__disk_block *block);

static inline presto__disk_block *presto__disk_block_of(const presto__disk *disk, uint64_t entry) {
    return disk->blocks[entry >> 32];
}

/** All of `bytes`, or false. */
bool presto__disk_read_all(int fd, void *data, size_t bytes, uint64_t offset);

/** Find blocks that other processes have added or removed. One thread at a time. */
void presto__disk_look(presto__disk *disk);
/** Samples are missing: another process may have stored them. One worker looks, now and then. */
void presto__disk_look_now_and_then(presto__disk *disk);

/* ---- writing: disk_write.c ---- */

/** Store what the worker has put. */
void presto__disk_store(presto__disk_worker *worker);

#endif
