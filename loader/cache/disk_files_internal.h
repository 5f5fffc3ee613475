/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the disk cache: disk_format.c packs samples into blocks, disk_folder.c manages the
 * files, one per block. Neither knows which samples are wanted. For this room alone.
 */
#ifndef PRESTO_LOADER_DISK_FILES_INTERNAL_H
#define PRESTO_LOADER_DISK_FILES_INTERNAL_H

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

#endif
