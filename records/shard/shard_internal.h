/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room shard: one TFRecord file: its bytes from front to back (stream), where its records are
 * (index), single records read and written.
 * May see: base, storage, rooms frame and codec. Must not know: what a record holds, other files.
 * A shard is shared by threads; what stands behind it is in shard_parts_internal.h. A stream and an
 * index are their owner's. Locks: a shard's own, and its pool's before them.
 */
#ifndef PRESTO_SHARD_INTERNAL_H
#define PRESTO_SHARD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <presto/numbers.h>
#include <presto/shard.h>

#include "../../base/file_internal.h"
#include "../../storage/storage_internal.h"
#include "../records_internal.h"

/* ---- the bytes of a file, decompressed if it is gzip or zlib as a whole, through a window ---- */

typedef struct presto__byte_stream presto__byte_stream;

/** Borrows `object` and `path`. */
presto_status presto__byte_stream_new(presto__object object, const char *path,
                                      presto_file_compression compression,
                                      presto__byte_stream **stream_out, presto_error *err);
void presto__byte_stream_free(presto__byte_stream *stream);

/** Ask `should_stop` before each read; views then fail with PRESTO_ERR_STOPPED. */
void presto__byte_stream_ask(presto__byte_stream *stream, presto_stop_fn should_stop, void *user);

/**
 * The bytes [offset, offset + count), fewer if the stream ends before. `offset` must not lie before
 * what was forgotten. The view is valid until the next call.
 * Returns: PRESTO_OK; an error (PRESTO_ERR_IO, _CORRUPT, _TRUNCATED) if damage, not the end, cuts
 *          the view short: *view_out then has the bytes before it. PRESTO_ERR_MEMORY and _STOPPED
 *          say nothing about the stream.
 */
presto_status presto__byte_stream_view(presto__byte_stream *stream, uint64_t offset, size_t count,
                                       presto_span *view_out, presto_error *err);

/** Bytes before `offset` will not be asked for again. */
void presto__byte_stream_forget(presto__byte_stream *stream, uint64_t offset);

/** First byte that is still kept; to go back further, call presto__byte_stream_rewind. */
uint64_t presto__byte_stream_base(const presto__byte_stream *stream);
/** One past the last byte that has been read. */
uint64_t presto__byte_stream_reach(const presto__byte_stream *stream);

/** Start again from the first byte (of another descriptor of the same file). */
presto_status presto__byte_stream_rewind(presto__byte_stream *stream, presto_error *err);
void presto__byte_stream_set_object(presto__byte_stream *stream, presto__object object);

/** For a plain file: continue at `offset`, anywhere. */
void presto__byte_stream_seek(presto__byte_stream *stream, uint64_t offset);

/**
 * For a plain file: if a large hole (zeros that take no room on the disk) starts at or before
 * `from`, continue `keep` bytes before its end, without reading it. Returns where the stream
 * continues.
 */
uint64_t presto__byte_stream_skip_hole(presto__byte_stream *stream, uint64_t from, size_t keep);

/**
 * Is a payload worth its CRC, although the header at `offset` may be no record's? Each byte could be
 * claimed by as many headers as stand before it. So what was checked in vain, of payloads of about
 * this size, stays within a multiple of the bytes passed over and of those read: a file takes linear
 * time, and large claims do not hide small records.
 */
bool presto__byte_stream_affords(const presto__byte_stream *stream, uint64_t offset,
                                 uint64_t payload_bytes);
/** This payload was checked in vain. */
void presto__byte_stream_spend(presto__byte_stream *stream, uint64_t payload_bytes);

/** Which frame is looked for. */
typedef struct presto__frame_search {
    uint64_t from;              /* the first position that is tried */
    uint64_t max_payload_bytes; /* larger payloads do not count */
    uint64_t end;               /* it must end before; UINT64_MAX: unknown */
} presto__frame_search;

/**
 * The first position of a whole frame (both CRCs correct) as `wanted`, of those that are afforded.
 * Everything before it is forgotten.
 * Returns: PRESTO_OK; PRESTO_END if there is none: *found_out is then the end of the stream, or
 *          where it fails (the next view says why); PRESTO_ERR_MEMORY, _STOPPED.
 */
presto_status presto__byte_stream_find_frame(presto__byte_stream *stream,
                                             const presto__frame_search *wanted,
                                             uint64_t *found_out, presto_error *err);

/** Bytes of the file (not of the stream) read so far. */
uint64_t presto__byte_stream_file_bytes(const presto__byte_stream *stream);

/** The kind of a file by its content; `head` is its beginning (64 bytes or all of it). */
presto_file_compression presto__detect_compression(presto_span head);

/** Does a file with this beginning hold records, plain or compressed? */
bool presto__is_tfrecord(presto_span head);

/* ---- files that hold no TFRecords ---- */

/**
 * A file's first record does not hold: is it something else than TFRecords? PRESTO_ERR_FOREIGN,
 * with the file's name, if its first bytes are the signature of another format, or look like text
 * and no whole record stands in the first 64 MiB. PRESTO_OK: take it for damaged (or whole). Reads
 * the file anew from `object`. Also PRESTO_ERR_MEMORY.
 */
presto_status presto__refuse_foreign(presto__object object, const char *path,
                                     presto_file_compression compression,
                                     uint64_t max_payload_bytes, presto_error *err);

/** Of a file that is listed as a shard: one of another kind in its place is damage. */
static inline presto_status presto__foreign_is_damage(presto_status status, presto_error *err) {
    if (status != PRESTO_ERR_FOREIGN)
        return status;
    if (err != NULL)
        err->status = PRESTO_ERR_CORRUPT;
    return PRESTO_ERR_CORRUPT;
}

/** The kind by its name: .gz, .deflate, .zz, .zlib. */
presto_file_compression presto__compression_by_name(const char *path);

/* ---- index files: bytes in docs/format.md ---- */

/** The data file that an index must fit, open for reading. */
typedef struct presto__index_data {
    presto__object object;
    const char *path; /* borrowed, for errors */
    uint64_t bytes;
    int64_t mtime_ns; /* what indexes of versions 1 and 2 are tied to */
    bool plain;       /* not compressed: the last offset is the file's size */
    bool any_time;    /* take an index of versions 1 and 2 whatever its time */
    /* What dataset.json says of the file. An index with this CRC and count needs no look at it. */
    bool is_described;
    uint64_t records;
    uint32_t crc32c;
} presto__index_data;

/** An index file whose blocks are read at first use. Zero-initialise. */
typedef struct presto__index {
    char *path;        /* of the index file; owned */
    uint64_t *offsets; /* count + 1, each valid once its block is loaded; NULL: not open */
    uint64_t count;
    uint64_t data_bytes; /* size of the data file */
    bool plain;          /* the data file is not compressed */
    bool knows_file_crc; /* file_crc32c is set: whoever wrote the data made the index */
    bool is_dated;       /* an earlier version, of a data file whose time has changed */
    uint32_t file_crc32c;
    uint32_t header_crc; /* the CRCs of the blocks continue from here */
    uint64_t offsets_at; /* where the offsets start in the index file */
    unsigned block_bits; /* offset i is in block i >> block_bits */
    uint64_t block_count;
    atomic_bool *loaded; /* of each block */
} presto__index;

/**
 * Read the header of the index file `path`, and its offsets if they are few.
 * Returns: PRESTO_OK; PRESTO_END if there is none or it does not fit the data (stale);
 *          PRESTO_ERR_CORRUPT if it is damaged; PRESTO_ERR_UNSUPPORTED: another program wrote it;
 *          PRESTO_ERR_IO; PRESTO_ERR_MEMORY.
 */
presto_status presto__index_open(const char *path, const presto__index_data *data,
                                 presto__index *index_out, presto_error *err);
void presto__index_done(presto__index *index);

/** Is block `block` loaded? Any thread. */
static inline bool presto__index_has(const presto__index *index, uint64_t block) {
    return atomic_load_explicit(&index->loaded[block], memory_order_acquire);
}

/**
 * Read and check a block. Only one thread may load at a time; others may read loaded blocks
 * meanwhile.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT or _IO if it cannot be read.
 */
presto_status presto__index_load(presto__index *index, uint64_t block, presto_error *err);

/** What is written into an index file. */
typedef struct presto__index_contents {
    const presto__index_data *data;
    const uint64_t *offsets; /* count + 1; borrowed */
    uint64_t count;
    bool knows_file_crc;
    uint32_t file_crc32c; /* of the data file's bytes */
} presto__index_contents;

/** Write the index file `path`. Atomic, as presto__shard_index_write. */
presto_status presto__index_write(const char *path, const presto__index_contents *contents,
                                  bool sync, presto_error *err);

/** "<data_path>.index", malloc'd. */
char *presto__index_name(const char *data_path);

/**
 * The path of an index that is kept apart from its data, in `dir` or where such indexes usually are: its
 * name is made of the data's size and ends. is_to_write: the folder is made; else it is there, and
 * nobody else can have written it.
 * Owner:   *path_out is the caller's, to be freed.
 * Returns: PRESTO_OK; PRESTO_ERR_NOT_FOUND: there is none; PRESTO_ERR_IO, _UNSUPPORTED (somebody else
 *          may have written it), _MEMORY.
 */
presto_status presto__index_path_apart(const presto__index_data *data, const char *dir,
                                       bool is_to_write, char **path_out, presto_error *err);

/* ---- shards that share a limit on open files ---- */

/**
 * Descriptors that many shards share: at most `limit` are open (more only while all are in use).
 * One that was not used for long is closed first. Finding it takes a time that does not grow with
 * their number.
 */
/* Of shards that are compressed as a whole and were read to their end, so many keep their stream,
 * with some of its last bytes, for threads that come late. */
#define PRESTO__ENDED_STREAMS 4

typedef struct presto__fd_pool {
    pthread_mutex_t lock;
    /* Guarded by lock. */
    size_t limit;                  /* open files */
    presto_shard *newest, *oldest; /* ends of the list of shards whose file is open */
    size_t open_count;
    presto_shard *ended[PRESTO__ENDED_STREAMS];
    size_t next_ended; /* the place that the next one takes */

    atomic_size_t warnings; /* shards with a warning that was not taken */
} presto__fd_pool;

presto_status presto__fd_pool_init(presto__fd_pool *pool, presto_error *err);
void presto__fd_pool_done(presto__fd_pool *pool);
/** Close the files that no thread reads from. They are opened again when one does. */
void presto__fd_pool_close_idle(presto__fd_pool *pool);
/** So many datasets are read together: each may have its part of the open files. */
void presto__fd_pool_share(presto__fd_pool *pool, size_t datasets);

/** As presto_shard_open; `pool` (may be NULL) must outlive the shard. */
presto_status presto__shard_open(const char *path, const presto_shard_options *options,
                                 presto__fd_pool *pool, presto_shard **shard_out,
                                 presto_error *err);

/** What was wrong with its index file. False: nothing, or it was taken before. Any thread. */
bool presto__shard_take_warning(presto_shard *shard, presto_error *warning_out);

/** A descriptor of the shard's file, held until presto__shard_release. */
presto_status presto__shard_acquire(presto_shard *shard, presto__object *object_out,
                                    presto_error *err);
void presto__shard_release(presto_shard *shard);

/** If it is compressed as a whole: nothing of it will be read soon. Its stream need not be kept. */
void presto__shard_end_stream(presto_shard *shard);

/** Use the headers instead of the index file, which is wrong as `why` says. Only before the shard is
 * shared. */
presto_status presto__shard_drop_index(presto_shard *shard, const char *why, presto_error *err);

/** dataset.json gives the shard this many records and this CRC-32C. Before it is indexed. */
void presto__shard_describe_file(presto_shard *shard, uint64_t records, uint32_t crc32c);

/** Did presto_shard_index find a fitting index file? */
bool presto__shard_has_index_file(const presto_shard *shard);

/** Was that index made for a file whose CRC-32C is not `crc32c`? False if it does not say. */
bool presto__shard_index_is_of_other(const presto_shard *shard, uint32_t crc32c);

/** The first record from `from` on that is a damaged range; UINT64_MAX: none. */
uint64_t presto__shard_next_damaged(presto_shard *shard, uint64_t from);

/* ---- walking over records that were not counted ---- */

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
 * Read the next records, from the first one on, as presto__dataset_walk_step does; sets all of `stretch`
 * but `shard` and `is_read`. PRESTO_END: there are none; presto__shard_end_walk comes next.
 */
presto_status presto__shard_walk(presto_shard *shard, const presto__walk_limits *limits,
                                 presto_block *block, presto__stretch *stretch, presto_error *err);
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
presto_status presto__stretch_check(presto_shard *shard, const presto__stretch *stretch,
                                    presto_block *block, presto_error *err);
/** What is wrong with record i of it. */
presto_status presto__stretch_describe(presto_shard *shard, const presto__stretch *stretch,
                                       size_t i, presto_block *block, presto_error *err);

#endif
