/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room tar. The raw source `tar`: samples are groups of members of one key that stand together, as in
 * WebDataset. source_tar_find.c finds them when the source is opened, in each archive with
 * source_tar_scan.c; source_tar_file.c reads the bytes of an archive, source_tar_sample.c makes
 * features of members, source_tar.c is the rest.
 * May see: base, storage, records, rooms core and files.
 */
#ifndef PRESTO_SOURCE_TAR_INTERNAL_H
#define PRESTO_SOURCE_TAR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "../../../records/shard/shard_internal.h"
#include "../files/source_files_internal.h"
#include "tar_internal.h"

/* ---- the bytes of an archive ---- */

/** An open archive, plain or gzip as a whole. One thread at a time. Zero-initialise. */
typedef struct presto__tar_file {
    const presto__file *entry; /* NULL: not open */
    presto__object object;
    presto__byte_stream *stream; /* if it is gzip */
    /* Of a stream, once it was met: where it ends or damage cuts it off, so that nobody has to
     * decompress it again to learn that there is nothing behind. */
    bool has_end;
    uint64_t end;
    presto_error *damage; /* NULL: it ends there */
    /* If it is plain: bytes that were read last. */
    presto_buffer window;
    uint64_t window_at;
    uint64_t read_bytes; /* of the file, so far */
} presto__tar_file;

/** Returns: as presto__source_file_open; PRESTO_ERR_UNSUPPORTED for zstd, bzip2 and xz. */
presto_status presto__tar_file_open(presto__tar_file *file, const presto__file *entry,
                                    presto_error *err);
void presto__tar_file_close(presto__tar_file *file);
/** A presto__tar_view_fn; `user` is the file. Offsets are those of the decompressed archive; going
 * back by more than 32 MiB starts from the beginning. Behind a stream's end nothing is read. */
presto_status presto__tar_file_view(void *user, uint64_t offset, size_t count,
                                    presto_span *view_out, presto_error *err);

/** A presto__tar_skip_fn for the same `user`. Knows only the holes of plain files. */
uint64_t presto__tar_file_skip(void *user, uint64_t offset);

/* ---- the source ---- */

/** Where a sample stands. */
typedef struct presto__tar_sample {
    uint64_t offset; /* of its first header */
    uint64_t bytes; /* to the end of its last member's content; 0: walking from `offset` on fails */
    int64_t label;  /* of its folder; if has_folder_labels */
} presto__tar_sample;

typedef struct presto__tar_archive {
    uint64_t first; /* sample */
    bool is_gzip;
    /* Of a gzip archive, which all readers share: it can only be read from its start. */
    pthread_mutex_t lock;
    presto__tar_file file; /* guarded by lock */
} presto__tar_archive;

/** How the content of a member becomes a value. */
typedef enum presto__tar_value {
    PRESTO__TAR_BYTES,
    PRESTO__TAR_INTEGER, /* digits */
    PRESTO__TAR_CLASS,   /* digits, or a name of source.classes */
    PRESTO__TAR_ARRAY    /* .npy */
} presto__tar_value;

/** A member that rides along with the main one: those with this extension. */
typedef struct presto__tar_column {
    char *extension;  /* in lower case */
    const char *name; /* of the feature */
    presto__tar_value value;
} presto__tar_column;

/** Archives of gzip that stay open at once. */
#define PRESTO__TAR_STREAMS 8

typedef struct presto__tar_source {
    presto__files files; /* the archives */
    presto__tar_archive *archives;
    size_t archive_count;     /* whose locks are made */
    presto__open_files *open; /* plain ones, for its readers */
    presto__tar_sample *samples;
    size_t sample_capacity;
    char **match; /* patterns of the main member's name, the first that matches first */
    size_t match_count;
    char *label; /* the option */
    bool has_folder_labels, is_top_folder;
    presto__classes classes; /* source.classes */
    presto__tar_column *columns;
    size_t column_count;
    uint64_t max_bytes;
    uint64_t options_digest; /* what samples depend on beside the files */

    pthread_mutex_t streams_lock;
    bool has_streams_lock;
    /* Guarded by streams_lock: gzip archives that are open. */
    presto__tar_archive *open_streams[PRESTO__TAR_STREAMS];
    size_t next_stream;
} presto__tar_source;

/** How well a member serves as the main one; the smallest is it. */
typedef struct presto__tar_rank {
    size_t pattern;         /* SIZE_MAX: it does not match */
    size_t extension_bytes; /* "png" comes before "seg.png" */
} presto__tar_rank;

presto__tar_rank presto__tar_rank_of(const presto__tar_source *source, presto_span name,
                                     presto_span extension);
static inline bool presto__tar_rank_is_better(presto__tar_rank a, presto__tar_rank b) {
    return a.pattern < b.pattern ||
           (a.pattern == b.pattern && a.extension_bytes < b.extension_bytes);
}

/** Lower case, of ASCII. */
static inline uint8_t presto__tar_lower(uint8_t c) {
    return (uint8_t)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}
/** Is it the column's extension, but for case? */
bool presto__tar_extension_is(presto_span extension, const char *lower);

/* ---- one sample ---- */

/** A sample that is being made of its members. */
typedef struct presto__tar_members {
    const presto__tar_source *source;
    const presto__tar_sample *sample;
    presto_arena *arena;
    presto_span bytes; /* of the archive, from `offset` on */
    uint64_t offset;
    presto_span key, main_name, main;
    presto__tar_rank rank;
    size_t main_column;  /* SIZE_MAX: none */
    presto_span *values; /* of the columns; data NULL: not met */
} presto__tar_members;

/** Fill in what `into` lacks, from source, sample, arena, bytes, offset and `values`,
 * [column_count], zeroed. PRESTO_ERR_CORRUPT, _IO (the file has changed), as presto__tar_next. */
presto_status presto__tar_find_members(presto__tar *walk, presto__tar_members *into,
                                       presto_error *err);

/** The value of the main feature, "train-000.tar/00017.jpg": of archive number `archive`. */
presto_status presto__tar_make_path(const presto__tar_members *from, size_t archive,
                                    presto_span *path_out, presto_error *err);

/** The features; `path` is the value of the main one. PRESTO_ERR_TYPE if a member is missing. */
presto_status presto__tar_make_features(const presto__tar_members *from, presto_span path,
                                        presto_sample *sample_out, presto_error *err);

presto_status presto__tar_fail_changed(presto_error *err);

/* ---- the samples of one archive ---- */

/** How many samples have such a member beside the main one. */
typedef struct presto__tar_tally {
    char *extension;
    uint64_t samples;
} presto__tar_tally;

/** In the order in which they were met. */
typedef struct presto__tar_tallies {
    presto__tar_tally *items;
    size_t count, capacity;
} presto__tar_tallies;

/** Every sample comes here with each of its extensions, so the usual ones stand in front. Those
 * beyond 256 are not counted. */
presto_status presto__tar_tally_add(presto__tar_tallies *tallies, const char *extension,
                                    uint64_t samples, presto_error *err);

/** Of all archives that are scanned, by any number of threads. */
typedef struct presto__tar_names {
    _Atomic(uint64_t) folder_bytes;  /* of names of folders, as they are kept */
    _Atomic(uint64_t) archive_bytes; /* of the archives begun */
} presto__tar_names;

#define PRESTO__TAR_SHOWN_BYTES 120

/** What was found in an archive. */
typedef struct presto__tar_found {
    presto__tar_sample *samples; /* labels are positions in `folders` */
    size_t sample_count, sample_capacity;
    char **folders; /* as those of all archives */
    size_t folder_count, folder_capacity;
    char **empty_folders; /* of groups without a main member, and of folders that are members */
    size_t empty_count;
    presto__tar_tallies tallies;
    uint64_t whole, no_main, no_key; /* as those of all archives */
    char first_no_main[PRESTO__TAR_SHOWN_BYTES];
    uint64_t left_out_from; /* 0: nothing is */
    bool is_gzip;
    bool lacks_end; /* the blocks of zeros that end each tar */
} presto__tar_found;

/**
 * Scan archive number `archive` into `found_out`, which is zeroed. Damage, or an archive that cannot
 * be read, is a sample that fails. Returns: PRESTO_OK; PRESTO_ERR_MEMORY; PRESTO_ERR_LIMIT (the
 * names of folders); a fault of the machine, which other archives share.
 * Threads: any, one for each archive.
 */
presto_status presto__tar_scan_archive(const presto__tar_source *source, size_t archive,
                                       presto__tar_names *names, presto__tar_found *found_out,
                                       presto_error *err);
void presto__tar_found_free(presto__tar_found *found);

/* ---- all samples ---- */

/**
 * Find the samples of all archives, in order, and the columns. `features`: the option, not set: the
 * extensions that at least half of the samples have.
 * Returns: PRESTO_ERR_NOT_FOUND without any sample. Archives that are damaged or cannot be read are
 *          samples that fail, where the damage is.
 */
presto_status presto__tar_find(presto__tar_source *source, const presto_option *features,
                               presto_error *err);

#endif
