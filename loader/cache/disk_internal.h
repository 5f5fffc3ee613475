/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind the disk cache: disk_format.c packs samples into blocks, disk_folder.c manages the files,
 * one per block. Neither knows which samples are wanted. disk_index.c knows which block holds a
 * sample, disk_write.c makes blocks, disk_cache.c reads them. For this room alone.
 */
#ifndef PRESTO_LOADER_DISK_INTERNAL_H
#define PRESTO_LOADER_DISK_INTERNAL_H

#include <sys/stat.h>

#include "cache_internal.h"

/* ---- the format of a block: docs/format.md ---- */

#define PRESTO__DISK_VERSION 1
#define PRESTO__DISK_HEADER_BYTES 64
#define PRESTO__DISK_ALIGN 64 /* entries start at multiples; the unit of places */
#define PRESTO__DISK_ENTRY_HEAD_BYTES 24
/* Most bytes of a block. A single larger sample makes its block larger. */
#define PRESTO__DISK_MOST_BLOCK_BYTES ((uint64_t)64 << 20)

/** Where an entry stands, as the table has it. */
typedef struct presto__disk_place {
    uint64_t number; /* of the sample */
    uint32_t at;     /* in units of PRESTO__DISK_ALIGN bytes from the start of the file */
    uint32_t units;  /* its size */
} presto__disk_place;

typedef struct presto__disk_head {
    presto__disk_key key;
    uint64_t file_bytes;
    uint64_t table_at; /* in bytes; where the entries end */
    uint32_t count;    /* places in the table */
    uint32_t table_crc;
} presto__disk_head;

void presto__disk_head_write(const presto__disk_head *head,
                             uint8_t bytes_out[PRESTO__DISK_HEADER_BYTES]);
/** PRESTO_ERR_CORRUPT. Also for another version (its files have another key), and for a table
 * larger than any block can have, so that no memory is taken for it. */
presto_status presto__disk_head_read(presto_span bytes, presto__disk_head *head_out,
                                     presto_error *err);
/** Are the CRC and all places right? `places` has head->count of them. */
presto_status presto__disk_table_check(const presto__disk_head *head,
                                       const presto__disk_place *places, presto_error *err);

/** Append the sample, padded to whole units. PRESTO_ERR_TYPE for a value whose dtype does not go
 * with its encoding, PRESTO_ERR_LIMIT if a place cannot hold its size. */
presto_status presto__disk_entry_append(presto_buffer *out, const presto_sample *sample,
                                        presto_error *err);
/** Do the first bytes of an entry say that it is of this sample and fills `bytes` (whole units)? */
bool presto__disk_entry_fits(const uint8_t head[PRESTO__DISK_ENTRY_HEAD_BYTES], uint64_t bytes,
                             uint64_t number);
/**
 * Without an `arena` (and sample_out): check `entry` (whole units), its CRC first. With one: make
 * the sample, whose values borrow from the entry and whose other memory is the arena's; large
 * values are aligned as the entry is. The CRC is not checked again, positions are. Returns:
 * PRESTO_OK, PRESTO_ERR_CORRUPT, PRESTO_ERR_MEMORY.
 */
presto_status presto__disk_entry_read(presto_span entry, uint64_t number, presto_arena *arena,
                                      presto_sample *sample_out, presto_error *err);

/* ---- the folder ---- */

#define PRESTO__DISK_NAME_BYTES 72

/** A file of the cache, as the folder lists it. */
typedef struct presto__disk_file {
    char name[PRESTO__DISK_NAME_BYTES];
    uint64_t bytes; /* that it takes, in whole pages; 0 until it is looked at */
    int64_t used_ns;
    bool is_same_key;
    bool is_partial;
    bool is_known; /* a mark for comparing listings */
} presto__disk_file;

/** Sorted by name once it is filled. Zero-initialise. */
typedef struct presto__disk_listing {
    presto__disk_file *files;
    size_t count;
    size_t capacity;
} presto__disk_listing;

void presto__disk_listing_done(presto__disk_listing *listing);

typedef struct presto__disk_folder {
    char *path;
    int fd;
    uint64_t limit_bytes;
    presto__disk_key key;
    pthread_mutex_t lock;       /* among our threads, as the flock among processes */
    atomic_uint_fast64_t names; /* made so far */
} presto__disk_folder;

/** Make the folder if it is missing, and check that files can be made in it. If others may write
 * to it, the cache is in its subfolder presto-UID, which nobody else may write to. On failure
 * nothing is held. PRESTO_ERR_IO names the folder. A full disk is noticed only when blocks are
 * written. */
presto_status presto__disk_folder_open(presto__disk_folder *folder, const char *path,
                                       uint64_t limit_bytes, const presto__disk_key *key,
                                       presto_error *err);
void presto__disk_folder_close(presto__disk_folder *folder);

/** The names of all files of all caches in this folder, without their sizes and times. */
presto_status presto__disk_folder_list(const presto__disk_folder *folder,
                                       presto__disk_listing *listing, presto_error *err);

/** Which files may be evicted? Called without locks. */
typedef bool (*presto__disk_may_evict_fn)(void *user, const presto__disk_file *file);

typedef struct presto__disk_room {
    uint64_t want_bytes, least_bytes; /* of the new file */
    presto__disk_may_evict_fn may_evict;
    void *user;
    /* Set by presto__disk_folder_make: */
    uint64_t got_bytes; /* 0: there is no room */
    uint64_t evicted;   /* files */
    int fd;
    char name[PRESTO__DISK_NAME_BYTES];
} presto__disk_room;

/**
 * Make a partial file of at most room->want_bytes; all of them count as used from now on. Evicts
 * the least recently used files until it fits, and removes partial files of dead processes. With
 * want_bytes 0 no file is made.
 */
presto_status presto__disk_folder_make(presto__disk_folder *folder, presto__disk_room *room,
                                       presto_error *err);
/** The name of a partial file once it is whole. */
void presto__disk_final_name(const char *partial, char name_out[PRESTO__DISK_NAME_BYTES]);
presto_status presto__disk_folder_rename(presto__disk_folder *folder, const char *from,
                                         const char *to, presto_error *err);
void presto__disk_folder_remove(const presto__disk_folder *folder, const char *name);

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
