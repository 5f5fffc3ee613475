/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind one shard, for this room alone: shard.c opens it, shard_pool.c limits its descriptors,
 * shard_index.c knows where its records stand, shard_hop.c finds that out, shard_fetch.c reads
 * them, shard_stream.c if the file is compressed as a whole. Locks: see the fields; a shard's
 * before the pool's, and those of other shards are only tried.
 */
#ifndef PRESTO_SHARD_PARTS_INTERNAL_H
#define PRESTO_SHARD_PARTS_INTERNAL_H

#include "shard_internal.h"

/* Read in pieces that are still in the second-level cache when their CRC is computed. */
#define PRESTO__PIECE_BYTES ((size_t)256 << 10)
/* From another machine: a request takes as long as some MB do. */
#define PRESTO__REMOTE_PIECE_BYTES ((size_t)8 << 20)

/* Where the records stand by their headers: the result of one pass over the file. */
typedef struct presto__found {
    presto_buffer offsets; /* uint64_t: record_count + 1 */
    presto_buffer damaged; /* uint64_t: which records are damaged ranges, rising */
    uint64_t record_count;
    presto_error *stream_fault; /* why the last record of a compressed file is one, or NULL */
    presto_buffer outgrown;     /* pointers: arrays that were replaced by larger ones */
} presto__found;

typedef struct presto__shard_walker presto__shard_walker;

struct presto_shard {
    /* Set by open, then read-only. */
    char *path;
    presto_shard_options options;
    presto_file_compression compression;
    uint64_t file_bytes;
    presto__object_info info; /* as it was opened */
    size_t piece_bytes;       /* as much is read at a time */
    bool is_remote;           /* what does not hold is read again, once */
    bool has_records;         /* its beginning is that of a record */
    bool is_described;        /* set before it is indexed, as are the next two: dataset.json says */
    uint64_t said_records;    /* how many records it has, */
    uint32_t said_crc32c;     /* and the CRC of its bytes */
    presto__fd_pool *pool;    /* NULL: the file stays open */

    /* The file's descriptor. Guarded by lock, and the links by the pool's. */
    pthread_mutex_t lock;
    presto__object object; /* may be closed for now */
    unsigned users;
    bool used; /* since the pool looked at it last */
    presto_shard *newer, *older;

    /*
     * The offsets: from the index file as long as `found` is NULL. An index that turns out not to
     * hold is replaced by what the headers say, once, and stays in memory for who still reads it.
     */
    pthread_mutex_t index_lock;
    atomic_bool indexed;                 /* all up to record_count is set and does not change */
    bool index_is_unfit;                 /* the index file was looked at; guarded by index_lock */
    bool name_is_taken;                  /* <file>.index is something else; guarded by index_lock */
    bool from_file;                      /* there was a fitting index file */
    uint64_t record_count;               /* damaged ranges included */
    presto__index index;                 /* its blocks are loaded under index_lock */
    _Atomic(presto__found *) found;      /* set once, under index_lock */
    atomic_bool index_is_checked;        /* against the headers */
    _Atomic(presto_error *) index_fault; /* set once: neither index nor headers will do */
    _Atomic(presto_error *) warning;     /* the index file was no use; NULL once it is taken */

    presto__shard_walker *walk;     /* NULL: none is under way; whoever walks takes turns */
    presto__found known;            /* a copy of what it has found; guarded by index_lock */
    _Atomic uint64_t known_records; /* of it, so many may be read until the shard is indexed */
    presto__found *unused;          /* found too late, but it may be looked at; NULL: none */

    /* The whole file, if options.map. */
    const uint8_t *mapping;

    /* Of a compressed file. Guarded by stream_lock. */
    pthread_mutex_t stream_lock;
    presto__byte_stream *stream;
    bool has_ended;        /* the stream has delivered its last record */
    unsigned stream_drops; /* so often it was dropped to read what does not hold once more */
};

/** presto__shard_reaches, without a call: single records are fetched, too. */
static inline bool presto__shard_has(const presto_shard *shard, uint64_t first, uint64_t count) {
    uint64_t records = atomic_load_explicit(&shard->indexed, memory_order_acquire)
                           ? shard->record_count
                           : atomic_load_explicit(&shard->known_records, memory_order_acquire);
    return first <= records && count <= records - first;
}

/** The shard, just opened, counts from now on; another one is closed if there are too many. */
void presto__fd_pool_enter(presto__fd_pool *pool, presto_shard *shard);
/** The shard is about to be freed. */
void presto__fd_pool_leave(presto_shard *shard);
/** What it has read may not be what is stored: the next read begins anew. False: that was done so
 * often that it is. */
bool presto__shard_drop_stream(presto_shard *shard);
/** Its stream has ended; the stream of another one may be freed. With the shard's stream_lock
 * held. */
void presto__fd_pool_end_stream(presto_shard *shard);

/** Where records stand: a view that stays valid as long as the shard, and stays where it is. */
typedef struct presto__places {
    const uint64_t *offsets;    /* of the first record asked for, and on */
    const presto__found *found; /* NULL: they come from the index file */
    presto__found known_;       /* of a shard that is not indexed: what `found` is */
} presto__places;

/** Places of records [first, first + count) and the end of the last. Any thread. */
presto_status presto__shard_places(presto_shard *shard, uint64_t first, uint64_t count,
                                   presto__places *places_out, presto_error *err);

/**
 * A record does not stand where the index file says. If that contradicts the headers, the index is
 * replaced. Returns PRESTO_OK: there are other places; PRESTO_END: the index is right, the data is
 * damaged.
 */
presto_status presto__shard_doubt_index(presto_shard *shard, presto_error *err);

/** One pass over the headers. */
typedef struct presto__hopper {
    presto_shard *shard;
    presto__found *found;        /* what it has found so far */
    uint64_t offset;             /* where the next record starts */
    bool at_end;                 /* damage reaches the end: nothing follows */
    presto__byte_stream *stream; /* of a compressed file */
    presto__byte_stream *search; /* of a plain file: to find the next frame after damage */
    presto__object object;
    uint64_t end;        /* size of a plain file */
    presto_buffer bytes; /* a plain file's bytes from `start` on */
    uint64_t start;
    size_t last_payload;
    presto_buffer *kept;        /* of a compressed file: whole records are appended; NULL: no */
    const presto_arena *grower; /* asked before `kept` grows; NULL: none */
    bool tolerate;
} presto__hopper;

/** At the first record, with the shard's file held. */
presto_status presto__hopper_start(presto__hopper *hop, presto_shard *shard, presto__found *found,
                                   bool tolerate, presto_error *err);
/** Let go of the file, and hold it again. */
void presto__hopper_pause(presto__hopper *hop);
presto_status presto__hopper_resume(presto__hopper *hop, presto_error *err);
/** Frees what it holds, but for `found`; the file is let go. */
void presto__hopper_done(presto__hopper *hop);
/** Add the next record to `found`, or, if it tolerates that, the next damaged range. PRESTO_END:
 * there is none; presto__hop_end then adds where the last one ends. */
presto_status presto__hop_step(presto__hopper *hop, presto_error *err);
presto_status presto__hop_end(presto__hopper *hop, presto_error *err);

/** Hop over the headers; `found` is zeroed. On failure, what was found before stands in it. */
presto_status presto__shard_hop(presto_shard *shard, bool tolerate, presto__found *found,
                                presto_error *err);
void presto__found_free(presto__found *found);

/** The first record from `from` on that is a damaged range; UINT64_MAX: none. `found` may be NULL.
 */
uint64_t presto__found_next_damaged(const presto__found *found, uint64_t from);

/** A range that is no whole record. */
typedef struct presto__damage {
    uint64_t record, offset, end;
    const presto_error *stream_fault; /* of a compressed file, as found; else NULL */
} presto__damage;

/** What is wrong with it, with file and record. Fails if it cannot be read; why_out then says
 * so. */
presto_status presto__shard_describe(presto_shard *shard, const presto__damage *damage,
                                     uint64_t *read_bytes_io, presto_error *why_out);

/** Open the index that was kept apart, if the options say so. PRESTO_END: there is none that fits;
 * fails as presto__index_open. With index_lock held. */
presto_status presto__kept_index_open(presto_shard *shard, const presto__index_data *data,
                                      presto_error *err);
/** The records have been found by their headers: keep that, if the options say so. With index_lock
 * held. */
presto_status presto__shard_keep_index(presto_shard *shard, presto_error *err);

/** Room for what the next step finds, and for the end, beside what others may be looking at. */
presto_status presto__found_grow(presto__found *found, presto_error *err);
/** From now on, the records found so far may be read by number. */
void presto__shard_show_known(presto_shard *shard, const presto__found *found);
/** None may be read: nobody does, and what is found will be moved. */
void presto__shard_hide_known(presto_shard *shard);
/** As presto__shard_places, of records that are shown. */
void presto__shard_known_places(presto_shard *shard, uint64_t first, presto__places *places_out);

void presto__shard_walker_free(presto__shard_walker *walk);
/** From now on the shard is indexed by `found`, which it owns, unless it is indexed already. */
void presto__shard_use_found(presto_shard *shard, presto__found *found);

/** `status`, with the file and the record added to its error. */
presto_status presto__shard_fail_at(const presto_shard *shard, uint64_t record,
                                    presto_status status, presto_error *err);
/** The file, or what is compressed in it, ends at `end`, before the end of `record`. */
presto_status presto__shard_fail_short(const presto_shard *shard, uint64_t record, uint64_t end,
                                       presto_error *err);

/**
 * Copy `count` records, which stand at `offsets` in the decompressed stream, into
 * block->bytes_.data, and set the bytes of the file that this read. Errors name no record.
 */
presto_status presto__shard_read_stream(presto_shard *shard, const uint64_t *offsets, size_t count,
                                        presto_block *block, presto_error *err);

#endif
