/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion: a raw source, or records that stand already, become a dataset. This is what
 * presto-write runs.
 */
#ifndef PRESTO_CONVERT_H
#define PRESTO_CONVERT_H

#include <presto/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How far a conversion is. */
typedef struct presto_progress {
    uint64_t samples_done, samples_total;
    uint64_t bytes_read, bytes_written;
    uint64_t skipped; /* because of errors */
    uint64_t elapsed_ns;
} presto_progress;

/**
 * Called from the calling thread: first when the input has been listed and nothing is written yet,
 * then now and then. Return false to stop (the job ends with PRESTO_ERR_STOPPED).
 */
typedef bool (*presto_progress_fn)(void *user, const presto_progress *progress);

/** What the user should know of the source. `note` is borrowed during the call. */
typedef void (*presto_note_fn)(void *user, const char *note);

/** Shards are numbered with five digits. */
#define PRESTO_MAX_SHARDS 99999

typedef struct presto_convert_options {
    size_t struct_bytes; /* set by presto_convert_options_defaults */
    const char *dir;     /* where the dataset goes: a folder, s3:// or gs://BUCKET/KEY. Required */
    /* Whose steps run. Borrowed during the call. NULL: records are stored again as they are. */
    const presto_pipeline *pipeline;
    const char *up_to; /* representation to store; NULL: that of
                            presto_pipeline_representation_default */
    const char *codec; /* text. Default "none"; NULL: that too, or without a pipeline the input's */
    presto_file_compression file_compression;
    size_t shards;        /* default 0: as many as threads, at least 1 */
    uint64_t shard_bytes; /* instead of `shards`: a shard ends before the record that would make it
                             larger than so many bytes of frames (what the file holds, before
                             file_compression); it has at least one record. Default 0: by number */
    unsigned threads;
    bool auto_threads;      /* `threads` compute; more may read while they wait for storage, see
                               presto_loader_options. Default false */
    uint64_t limit_samples; /* 0 = all */
    uint64_t seed;
    size_t prefetch_bytes;       /* of data in flight; default 0: 256 MiB, of which records take 32
                              MiB for each thread and for the writers */
    presto_loader_errors errors; /* samples that fail; the callbacks are called by the calling
                                    thread */
    presto_note_fn on_note; /* called for each presto_source_notes before anything is read, and for
                               what steps have told (presto_step_note) when all samples have come;
                               may be NULL */
    void *on_note_user;
    bool resume; /* keep finished shards of an interrupted conversion of the same input */
    bool sync;   /* fsync; default true (a sweep's trials do not need it) */
    presto_progress_fn on_progress;
    void *on_progress_user;
    presto_keep_index keep_index; /* of TFRecords without an index; see presto_shard_options */
    const char *index_dir;        /* borrowed during the call */
    presto_partition partition; /* only these samples; `limit_samples` counts them. Default: all */
    /* Asked, by the calling thread, while the input is listed: before on_progress is called. NULL:
     * never */
    presto_stop_fn should_stop;
    void *should_stop_user;
} presto_convert_options;

PRESTO_API void presto_convert_options_init(presto_convert_options *options, size_t struct_bytes);
static inline void presto_convert_options_defaults(presto_convert_options *options) {
    presto_convert_options_init(options, sizeof *options);
}

typedef struct presto_convert_result {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    uint64_t samples;
    uint64_t skipped; /* because of errors, or by a step */
    uint64_t source_bytes;
    uint64_t stored_bytes; /* shards, without indexes */
    uint64_t raw_bytes;
    uint64_t wall_ns;
    uint64_t cpu_ns; /* of the process during the job */
    size_t shards;
    unsigned threads; /* with auto_threads those found best */
    uint64_t dropped; /* of `skipped`, those that steps did not want. 0 if an earlier run has
                       * written all */
    /* The last step was pack: documents that came, and their tokens; of these, those left out
     * behind the last row; tokens that it was padded with. 0 if an earlier run has written all. */
    uint64_t packed_documents, packed_tokens;
    uint64_t dropped_tokens, padded_tokens;
    const char
        *stored; /* the representation stored. Borrowed from the pipeline; NULL without one */
    /* To a bucket: requests that write or look at what stands there, all that were sent again included;
     * of these, those sent again; bytes of objects. Of the process meanwhile; 0 for a folder. */
    uint64_t sent_requests, sent_retries, sent_bytes;
} presto_convert_result;

/**
 * Run the pipeline up to `up_to` over the raw source at `paths` and write the dataset into
 * options->dir. The folder is made if it is missing; one that holds a whole dataset, or anything
 * else, is refused with PRESTO_ERR_ARGUMENT. Sample k stands at the same place whatever the number
 * of threads: shard i has samples [i*n/shards, (i+1)*n/shards), or, with shard_bytes, those that
 * follow the shard before it and fit. On failure finished shards stay and there is no dataset.json.
 * The failure reported is that of the first sample that fails; all shards before its own are
 * finished.
 *
 * Up to four shards, as many as threads, are made at once: all threads work on the samples of each
 * in turn, and each shard is written by a thread of its own. The calling thread makes one shard
 * after the other in three cases: samples may be left out (they are reported in order), shards end
 * by their size, or the input can only be read from its start. If the process is killed, the shards
 * that are not finished are lost: with more shards, that is less work.
 *
 * Without a pipeline (NULL) the records of a dataset, or of foreign files, are stored again as they
 * are, in their order: in another codec, another number of files. What dataset.json says of
 * pipeline, stored representation, seed, features and labels is carried over; options->up_to must be NULL; `shards`
 * 0 means as many as the input has.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT (the folder; both `shards` and `shard_bytes`),
 *          PRESTO_ERR_LIMIT (more than PRESTO_MAX_SHARDS of shard_bytes), PRESTO_ERR_STOPPED, what
 *          source, steps and files fail with.
 */
PRESTO_API presto_status presto_convert_sized(const char *const *paths, size_t path_count,
                                              const presto_convert_options *options,
                                              presto_convert_result *result_out, presto_error *err);
static inline presto_status presto_convert(const char *const *paths, size_t path_count,
                                           const presto_convert_options *options,
                                           presto_convert_result *result_out, presto_error *err) {
    result_out->struct_bytes = sizeof *result_out;
    return presto_convert_sized(paths, path_count, options, result_out, err);
}

/* ---- what runs that died have left ---- */

typedef enum presto_left_kind {
    PRESTO_LEFT_OBJECT, /* a file, or an object of a bucket */
    PRESTO_LEFT_UPLOAD, /* an upload to a bucket that has begun: it costs, and cannot be read */
    PRESTO_LEFT_BUSY,   /* a folder that is being written: nothing of it is removed */
} presto_left_kind;

/** Borrowed during the call. */
typedef struct presto_left {
    const char *path;
    presto_left_kind kind;
    uint64_t bytes;  /* of an object */
    int64_t since_s; /* since 1970; 0: not known */
    bool is_removed; /* asked for, and done */
    bool is_young;   /* it may belong to a run that is alive on another machine */
} presto_left;

/** False: that is enough. */
typedef bool (*presto_left_fn)(void *user, const presto_left *left);

typedef struct presto_clean_options {
    size_t struct_bytes; /* set by presto_clean_options_defaults */
    bool removes;        /* what is found; default false: it is only told */
    double older_than_s; /* what may be of a living run on another machine is removed only if it is
                            older. Default 86,400: a day */
    presto_left_fn on_left; /* NULL: nobody is told */
    void *on_left_user;
    presto_stop_fn should_stop; /* NULL: never */
    void *should_stop_user;
} presto_clean_options;

PRESTO_API void presto_clean_options_init(presto_clean_options *options, size_t struct_bytes);
static inline void presto_clean_options_defaults(presto_clean_options *options) {
    presto_clean_options_init(options, sizeof *options);
}

/**
 * Find what conversions and writers that ended too early have left in the folder `dir`, or below it:
 * in folders with a progress file, all that a conversion names; beside dataset.json, only what is not
 * part of the dataset; in a bucket, uploads to such names that have begun. Whatever else is there is
 * left alone.
 *
 * A run is alive if its process is one of this machine and alive; what is not known to be dead is
 * removed only if it is older than options->older_than_s. After a removal nothing can be resumed.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_UNSUPPORTED: nothing is written to such a place; PRESTO_ERR_IO,
 *          _MEMORY, _STOPPED.
 * Threads: any.
 */
PRESTO_API presto_status presto_clean(const char *dir, const presto_clean_options *options,
                                      presto_error *err);

#ifdef __cplusplus
}
#endif

#endif
