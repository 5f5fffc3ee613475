/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room files: raw files as samples: their list, reading one of them, what tables say of them, and
 * files that threads share while they are open.
 * May see: base, storage, rooms core and table. Locks: that of the open files (open_files.c).
 */
#ifndef PRESTO_SOURCE_FILES_INTERNAL_H
#define PRESTO_SOURCE_FILES_INTERNAL_H

#include "../../../storage/storage_internal.h"
#include "../core/source_internal.h"

/** A file as it was listed. */
typedef struct presto__file {
    const char *path; /* as it is opened; in the source's `names` */
    uint32_t path_bytes;
    uint32_t key_at; /* the relative path starts here */
    union {
        int64_t label;
        float fraction; /* with has_fractions */
    };
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t stamp; /* digest of its size and times; 0: it could not be looked at */
} presto__file;

/** A feature beside each file, out of a table: a text, an int64 or a float32. */
typedef struct presto__files_column {
    const char *name;   /* in `names`, or static */
    presto_dtype dtype; /* PRESTO_INT64, PRESTO_FLOAT32; any other: texts */
} presto__files_column;

typedef union presto__files_value {
    presto_span text; /* in `names` */
    int64_t number;
    float fraction;
} presto__files_value;

typedef struct presto__files {
    presto_source base;
    presto_arena names;
    presto__files_column *columns; /* fixed before the first file is added; freed with the source */
    size_t column_count;
    presto__files_value *values; /* [file][column_count] */
    presto__file *entries;
    size_t capacity;
    size_t file_count;
    uint64_t max_bytes; /* larger files are errors */
    bool has_labels;
    bool has_fractions; /* labels are float32 */
    /* With wants_folders, set before the files are listed: the folders without a file of the source
     * in or below them, if the folder that holds them has one; relative to their root. */
    bool wants_folders;
    bool holds_many; /* samples, each file; set before the files are listed */
    char **empty_folders;
    size_t empty_count;
} presto__files;

/** What a source of files is opened with. */
typedef struct presto__files_request {
    const presto_pipeline *pipeline; /* has the options `feature` and `max-bytes` */
    const char *const *paths;
    size_t path_count; /* at least 1 */
} presto__files_request;

/** Add all files in order, their columns and labels. */
typedef presto_status (*presto__files_fill_fn)(presto__files *source,
                                               const presto__files_request *request,
                                               presto_error *err);

/** Add the name of a file to the digest of a sample's name. */
void presto__files_name(const presto__file *entry, presto__digest *digest);

/** A source of one sample a file, as presto__source_kind.open. */
presto_status presto__files_open(const presto__files_request *request, presto__files_fill_fn fill,
                                 presto_source **source_out, presto_error *err);

/** Add a file; its key is `path` from key_at on. `info` NULL: it cannot be looked at. */
presto_status presto__files_add(presto__files *source, const char *path, size_t key_at,
                                const presto__object_info *info, presto_error *err);

/** The values of the file added last: [column_count], zeroed. */
presto__files_value *presto__files_last_values(presto__files *source);

/** A copy of `text` that lives as long as the source, with a NUL behind it. */
presto_status presto__files_keep(presto__files *source, presto_span text, presto_span *copy_out,
                                 presto_error *err);

/** Does a file begin with a TFRecord? Not if it cannot be read. */
bool presto__file_is_tfrecord(const char *path);

/** Fill in the files at `paths` whose names match; notes those left out. */
presto_status presto__files_list(presto__files *source, const presto_option *match,
                                 const char *const *paths, size_t path_count, presto_error *err);

/** Is this value of the source option `label` a folder? */
bool presto__label_is_folder(const char *label);

/** Fill in labels, their names and has_labels as the source options `label` and `classes` say. The
 * files were listed with wants_folders if the label is a folder. */
presto_status presto__files_label(presto__files *source, const char *label,
                                  const presto_option *classes, presto_error *err);

/* For sources whose samples are in such files, one or many in each. */

/** Free everything that presto__files_list and presto__files_label made. */
void presto__files_done(presto__files *source);
/** Drop the first `count` files from the page cache. */
presto_status presto__files_drop_cache(const presto__files *source, size_t count,
                                       presto_error *err);
/** A digest of the first `count` files. */
uint64_t presto__files_digest(const presto__files *source, size_t count);
/** As presto__source_ops.identify, for all files. */
presto_status presto__files_identify(const presto__files *source, bool as_named,
                                     presto__digest *digest, presto_error *err);
/** The feature `label` of a sample in a file; the source has labels. */
presto_feature presto__files_label_feature(const presto__files *source, const presto__file *entry);
/** Declare `key`, and `label` if there are labels. */
presto_status presto__files_declare(presto__files *source, presto_error *err);

/** Do two files lie in one folder, going by their paths? */
bool presto__files_same_folder(const presto__file *a, const presto__file *b);

/** What to read, or to open. */
typedef struct presto__file_request {
    const char *path;
    const presto__file *listed; /* the file must still be like this; NULL: nothing is known of it */
    uint64_t max_bytes;
} presto__file_request;

/**
 * Open a regular file that is as it was listed; *object_out is the caller's. What may pass is not tried
 * again. Returns: as presto__source_file_read.
 */
presto_status presto__source_file_open(const presto__file_request *request,
                                       presto__object *object_out, presto_error *err);

/**
 * A whole regular file into `arena`. What may pass (too many open files, ...) is tried again for a
 * second.
 * Returns: PRESTO_OK; PRESTO_ERR_NOT_FOUND; PRESTO_ERR_IO (it cannot be read, is a folder, a pipe
 *          or a device, or has changed since it was listed or while it was read);
 *          PRESTO_ERR_LIMIT (larger than max_bytes: nothing is read); PRESTO_ERR_MEMORY.
 */
presto_status presto__source_file_read(const presto__file_request *request, presto_arena *arena,
                                       presto_span *bytes_out, presto_error *err);

/* ---- find_files.c: files that a table names ---- */

/** What is known of files so far. Used by one thread. Zero-initialise. */
typedef struct presto__file_finder {
    void *folders;                     /* listed ones, a tree of <search.h> */
    struct presto__known_folder *last; /* of the file that was looked up last; NULL: none */
} presto__file_finder;

/**
 * What stands at `path`. *errno_out: 0: it is in *info_out; else why not, ENOENT if there is nothing.
 * Returns: PRESTO_OK; PRESTO_ERR_STOPPED; PRESTO_ERR_MEMORY; PRESTO_ERR_IO: a server does not say.
 */
presto_status presto__file_find(presto__file_finder *finder, const char *path,
                                presto__object_info *info_out, int *errno_out, presto_error *err);
void presto__file_finder_done(presto__file_finder *finder);

/* ---- open_files.c: files with many samples each ---- */

/*
 * Files with many samples each: readers share what is open. Opening is what takes long on a file
 * server, and each of the threads that read a file would do it, again whenever it comes back to it.
 */

/** Unused files stay open up to this number; fewer, if the process may have few files open. */
#define PRESTO__IDLE_FILES 64

typedef struct presto__open_files presto__open_files;

/** Of the files of a source, which keeps them until this is freed. PRESTO_ERR_MEMORY, _IO. */
presto_status presto__open_files_new(const presto__files *files, presto__open_files **open_out,
                                     presto_error *err);
/** Nobody has any of them. NULL: nothing. */
void presto__open_files_free(presto__open_files *open);

/**
 * Have file `i` open, as it was listed, until it is released. Its descriptor is for pread only:
 * others read it, too. Who asks for a file that somebody opens waits for that.
 * Returns: as presto__source_file_open. Threads: any.
 */
presto_status presto__open_files_acquire(presto__open_files *open, size_t i,
                                         presto__object *object_out, presto_error *err);
void presto__open_files_release(presto__open_files *open, size_t i);

/** Close what nobody has. Any thread. */
void presto__open_files_close_idle(presto__open_files *open);

#endif
