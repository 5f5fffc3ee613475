/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room hdf5: HDF5 files for the raw source `hdf5`. libhdf5 is not safe for threads and reads slowly. So it
 * only tells where the values of a dataset stand, when the source is opened, under one lock of the
 * process. Reading the values goes past it: threads read with pread and undo the filters
 * themselves.
 *
 * Files are not trusted. The library sees one file, through a driver of ours: no links to other
 * files, no storage outside, no plugins.
 * May see: base, storage, records, rooms core and files.
 */
#ifndef PRESTO_HDF5_INTERNAL_H
#define PRESTO_HDF5_INTERNAL_H

#include <presto/codec.h>

#include "../../../storage/storage_internal.h"
#include "../core/source_internal.h"

/** How a number is stored. Every number of these dtypes is a float64, too. */
typedef struct presto__hdf5_number {
    presto_dtype dtype; /* FLOAT64, FLOAT32, or an integer of up to 32 bits */
    bool is_big_endian;
} presto__hdf5_number;

#define PRESTO__HDF5_NO_CHUNK UINT64_MAX

typedef struct presto__hdf5_chunk {
    uint64_t offset; /* in the file; NO_CHUNK: never written, all values are the fill value */
    uint32_t bytes;  /* as stored */
    uint32_t skipped_filters; /* bit i: filter i was not applied */
} presto__hdf5_chunk;

typedef enum presto__hdf5_filter_kind {
    PRESTO__HDF5_DEFLATE,
    PRESTO__HDF5_SHUFFLE,
    PRESTO__HDF5_FLETCHER32
} presto__hdf5_filter_kind;

typedef struct presto__hdf5_filter {
    presto__hdf5_filter_kind kind;
    size_t item_bytes; /* SHUFFLE */
} presto__hdf5_filter;

#define PRESTO__HDF5_MAX_FILTERS 8

/** Where the values of a dataset [n] or [n, 1] stand. */
typedef struct presto__hdf5_dataset {
    uint64_t values;
    presto__hdf5_number number;
    uint64_t offset;       /* contiguous: of the first value */
    uint64_t chunk_values; /* 0: contiguous */
    presto__hdf5_chunk *chunks;
    uint64_t chunk_count;
    double fill;
    presto__hdf5_filter filters[PRESTO__HDF5_MAX_FILTERS]; /* in the order in which they were
                                                              applied */
    size_t filter_count;
    bool is_last_raw; /* a last chunk that is not full has no filters */
} presto__hdf5_dataset;

/** Frees what the dataset holds. */
void presto__hdf5_dataset_done(presto__hdf5_dataset *dataset);

/** What to look up, and where. */
typedef struct presto__hdf5_request {
    presto__object object;
    uint64_t bytes;   /* of the file */
    const char *path; /* for messages */
    const char *const *names;
    size_t count;             /* of names; at least one */
    uint64_t max_chunk_bytes; /* chunks that are larger without filters are refused */
} presto__hdf5_request;

/**
 * Load the library, by the thread that opens the source and not by one that is gone when the process
 * ends: where memory runs out within dlopen, glibc leaves a lock to its thread, and exit() takes it.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_UNSUPPORTED: it cannot be loaded, and why.
 * Threads: any.
 */
presto_status presto__hdf5_begin(presto_error *err);

/**
 * Look up all datasets of a file. They have one length.
 *
 * Memory:  16 bytes a chunk; a file cannot name more chunks than an eighth of its bytes.
 * Owner:   datasets_out has room for request->count; the caller frees each (dataset_done). On
 *          failure nothing is held.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT (not HDF5, damaged: what the library says),
 *          PRESTO_ERR_TRUNCATED, PRESTO_ERR_NOT_FOUND (no such dataset: the message says which
 *          there are), PRESTO_ERR_TYPE (values or rank that do not fit, lengths that differ),
 *          PRESTO_ERR_UNSUPPORTED (a filter or storage that is not read, with its name),
 *          PRESTO_ERR_LIMIT, PRESTO_ERR_MEMORY, or as presto__read_at if the file cannot be read.
 *          The error names the file.
 * Threads: any; they wait for each other.
 */
presto_status presto__hdf5_look_up(const presto__hdf5_request *request,
                                   presto__hdf5_dataset *datasets_out, presto_error *err);

/* ---- reading, without the library ---- */

/** One thread's reading of one dataset at a time of each place. Zero-initialise. */
typedef struct presto__hdf5_cursor {
    presto_codec *inflate;
    presto_arena arena;                  /* the chunk read last, and what it was made of */
    const presto__hdf5_dataset *dataset; /* of that chunk; NULL: there is none */
    uint64_t chunk;
    presto_span values; /* of that chunk, without filters */
} presto__hdf5_cursor;

void presto__hdf5_cursor_done(presto__hdf5_cursor *cursor);

/** Where to read, and what. */
typedef struct presto__hdf5_range {
    presto__object object;
    const char *path; /* for messages */
    const presto__hdf5_dataset *dataset;
    uint64_t first; /* value */
    uint64_t count;
} presto__hdf5_range;

/**
 * Read values [first, first + count), which the dataset has, as float64. The last chunk stays with
 * the cursor: the next range often starts in it. `stats` of the reader are counted.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT, PRESTO_ERR_TRUNCATED (with the offset in the file),
 *          PRESTO_ERR_IO, PRESTO_ERR_MEMORY.
 */
presto_status presto__hdf5_read(presto__hdf5_cursor *cursor, const presto__hdf5_range *range,
                                double *out, presto__read_stats *stats, presto_error *err);

/** What is to be undone. */
typedef struct presto__hdf5_stored {
    const presto__hdf5_dataset *dataset;
    uint64_t chunk;
    presto_span bytes; /* as they stand in the file */
} presto__hdf5_stored;

/** Undo the filters of a chunk. *values_out is memory of the cursor's arena, or the stored bytes
 * themselves. PRESTO_ERR_CORRUPT, PRESTO_ERR_MEMORY. */
presto_status presto__hdf5_unfilter(presto__hdf5_cursor *cursor, const presto__hdf5_stored *stored,
                                    presto_span *values_out, presto_error *err);

/** Undo the shuffle filter: `in` holds the first bytes of all items, then the second ones, ... What
 * is too short for an item stands at the end. */
void presto__hdf5_unshuffle(presto_span in, size_t item_bytes, uint8_t *out);

/** The checksum of the fletcher32 filter. */
uint32_t presto__hdf5_fletcher32(presto_span bytes);

/** Numbers as they are stored into float64; `in` has `count` of them, at any address. */
void presto__hdf5_widen(const presto__hdf5_number *number, const uint8_t *in, size_t count,
                        double *out);

/* ---- the library's view of a file ---- */

/** Metadata stands in small pieces, close together: so much is read at a time. */
#define PRESTO__HDF5_WINDOW_BYTES ((size_t)16 << 10)

/** The one file that the library may read, and what it reads of it. */
typedef struct presto__hdf5_view {
    presto__object object;
    uint64_t bytes;
    const char *name; /* any other is refused */
    /* Of metadata that may still be asked for, and windows that may still be read: files with loops
     * end. */
    uint64_t left_bytes, left_windows;
    bool notes_values; /* values asked for are not read, only noted */
    bool has_seen;     /* that has happened, with these bytes */
    uint64_t seen_offset;
    uint64_t seen_bytes;
    uint64_t window_at; /* where the bytes of the window stand that were read last */
    size_t window_bytes;
    uint8_t window[PRESTO__HDF5_WINDOW_BYTES];
    presto_error failure; /* of the system, the first; its status is PRESTO_OK if there is none */
} presto__hdf5_view;

/** Read the window from `at` on; it ends with the file. What cannot be read is not in it: see
 * view->failure. */
void presto__hdf5_view_load(presto__hdf5_view *view, uint64_t at);

#endif
