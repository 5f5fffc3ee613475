/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TFRecord file: opened for reading by record number, or written.
 *
 * Reading needs the offsets of the records: from <file>.index where one stands that fits the file
 * and holds, else from one pass over the headers. A file that is gzip or zlib as a whole
 * (recognized by its content) has offsets in the decompressed stream and can only be read forward.
 */
#ifndef PRESTO_SHARD_H
#define PRESTO_SHARD_H

#include <presto/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum presto_file_compression {
    PRESTO_FILE_PLAIN = 0,
    PRESTO_FILE_GZIP = 1, /* RFC 1952, several members allowed */
    PRESTO_FILE_ZLIB = 2  /* RFC 1950 */
} presto_file_compression;

/** "none", "gzip", "zlib". */
PRESTO_API const char *presto_file_compression_name(presto_file_compression compression);

/* ---- reading ---- */

typedef struct presto_shard presto_shard;

/** Where the index of a file that has none is kept, once its records are counted. */
typedef enum presto_keep_index {
    PRESTO_KEEP_NO_INDEX = 0,
    PRESTO_KEEP_INDEX_BESIDE = 1, /* as <file>.index; where that cannot be written, in index_dir */
    PRESTO_KEEP_INDEX_APART = 2   /* in index_dir */
} presto_keep_index;

typedef struct presto_shard_options {
    size_t struct_bytes;        /* set by presto_shard_options_defaults */
    presto_checks verify;       /* default PRESTO_CHECK_FULL */
    uint64_t max_payload_bytes; /* default PRESTO_FRAME_MAX_PAYLOAD_BYTES; 2^62 - 1 at most */
    bool map;                   /* read through mmap instead of pread; default false. A file that is
                                   truncated while mapped kills the process with SIGBUS unless the
                                   program handles that; see docs/format.md */
    bool ignore_index;          /* do not look for <file>.index; default false */
    bool tolerate; /* index as if presto_shard_index were called with `tolerate`, and take a file of
                      a dataset that is shorter than dataset.json says for what it holds; default
                      false */
    bool count_later; /* presto_dataset_open does not count the records of foreign files that have
                         no index: a loader counts them while it reads. Default false */
    /* A file without a fitting <file>.index is looked up in index_dir, and what is found by its
     * headers is kept, if the file is whole. That this fails is told as a warning. Default
     * PRESTO_KEEP_NO_INDEX: neither */
    presto_keep_index keep_index;
    /* A folder to which only this user may write; made if missing. Borrowed as long as the
     * shard (presto_dataset_open copies it). NULL: presto/index in $XDG_CACHE_HOME or ~/.cache */
    const char *index_dir;
} presto_shard_options;

PRESTO_API void presto_shard_options_init(presto_shard_options *options, size_t struct_bytes);
static inline void presto_shard_options_defaults(presto_shard_options *options) {
    presto_shard_options_init(options, sizeof *options);
}

/**
 * Open a shard. Cheap: the index is read, or built, at the first call that needs it.
 * Returns: PRESTO_OK, PRESTO_ERR_IO, PRESTO_ERR_NOT_FOUND, PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_shard_open(const char *path, const presto_shard_options *options,
                                           presto_shard **shard_out, presto_error *err);
PRESTO_API void presto_shard_free(presto_shard *shard);

PRESTO_API const char *presto_shard_path(const presto_shard *shard);
/** Size of the file on disk in bytes. */
PRESTO_API uint64_t presto_shard_file_bytes(const presto_shard *shard);

/**
 * Make sure the records are counted: from the header of the index file, or by hopping over the
 * records' headers (only their CRCs are checked). Blocks of a large index are read as they are
 * needed; one that does not hold is replaced by what the headers say, which presto_dataset tells as
 * a warning. After this, presto_shard_records may be called from any thread. A damaged header:
 * PRESTO_ERR_CORRUPT or _TRUNCATED naming file, record and byte, unless `tolerate`: then the reader
 * resynchronizes at the next whole frame, the range left out counts as one record, whose status
 * when it is fetched says what is wrong, and *lost_out (may be NULL) is the number of such ranges.
 * A file that is of another kind by its first bytes, or is text without any whole record, is
 * PRESTO_ERR_FOREIGN even then.
 */
PRESTO_API presto_status presto_shard_index(presto_shard *shard, bool tolerate, uint64_t *lost_out,
                                            presto_error *err);
/** Number of records, damaged ranges included, once presto_shard_index has succeeded; before, of
 * those that a loader has found on the way and that can be read. Any thread. */
PRESTO_API uint64_t presto_shard_records(const presto_shard *shard);

/**
 * One record as read. `status` < 0: this record is damaged (its payload is empty), the others are
 * not.
 */
typedef struct presto_record {
    presto_span payload;
    uint64_t offset; /* of its frame in the (decompressed) file */
    presto_status status;
} presto_record;

/**
 * Reading state of one thread: the block's bytes and its records. Zero-initialise;
 * presto_block_done frees. The memory is reused from fetch to fetch.
 */
typedef struct presto_block {
    presto_record *records;
    size_t record_count;
    uint64_t file_bytes_read; /* by the last fetch, or step of a walk */
    size_t align_at;          /* set by the caller: where this byte of the first record's payload is
                                 read into memory there is a 64-byte boundary. Default 0 */
    /* private to records/ */
    presto_buffer bytes_;
    size_t record_capacity_;
} presto_block;

PRESTO_API void presto_block_done(presto_block *block);

/**
 * Read records [first, first + count) of the shard into `block`, replacing what it held.
 *
 * Owner:   payloads borrow from the block (or from the shard's mapping): valid until the next fetch
 *          into this block, presto_block_done, or presto_shard_free.
 * Damage:  a record whose CRC differs has status PRESTO_ERR_CORRUPT and `err` (if not NULL)
 *          describes the first such one (file, record, byte); the function still returns PRESTO_OK,
 *          so that callers can skip.
 * Returns: PRESTO_OK; PRESTO_ERR_IO; PRESTO_ERR_TRUNCATED (the file has become shorter);
 *          PRESTO_ERR_MEMORY.
 * Threads: any number at once on one shard, each with its own block. Of a compressed file, fetches
 *          must be called with rising `first`; concurrent calls wait for their turn only if their
 *          ranges follow one another, going back restarts the decompression.
 */
PRESTO_API presto_status presto_shard_fetch(presto_shard *shard, uint64_t first, size_t count,
                                            presto_block *block, presto_error *err);

/* ---- writing ---- */

#ifdef __cplusplus
}
#endif

#endif
