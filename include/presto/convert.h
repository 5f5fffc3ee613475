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

/**
 * Which shards of a dataset this run writes, while other runs, here or on other machines, write the
 * others: of S shards those from number * S / count to before (number + 1) * S / count, rounded down.
 * Their bytes are those that one run would write. A run of a share is an attempt: it writes a folder of
 * its own below `dir`/_parts, so that two attempts at a share may run at once, die, or come late.
 * presto_dataset_join makes the dataset of one whole attempt at each share.
 */
typedef struct presto_share {
    size_t count;  /* of shares, at most PRESTO_MAX_SHARDS; default 0: the whole dataset is
                            written, as if there were no shares */
    size_t number; /* of this one, from 0 */
    const char
        *attempt; /* what this run is called, such as a task's number: letters, digits, '-' and
                            '_', at most 64. No two that run at once have the same. NULL: random */
    uint64_t reserved[5]; /* 0 */
} presto_share;

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
    presto_share share; /* write only these shards. Default: all */
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
 * With a share, only its shards are written, and there is no dataset.json until presto_dataset_join.
 * The number of shards must be given, unless there is no pipeline: machines may have other numbers of
 * threads. Shards cannot end by their size, and the last step cannot be pack, as the end of a shard
 * would depend on those before it. All runs must find the same samples at `paths`, and have the same
 * options. If an attempt at the same share is whole already, nothing is written, and on_note is told.
 * With `resume`, an attempt of the same options that was interrupted goes on. The figures are those of
 * the share. skip:P% goes by all samples; presto_dataset_join adds up what was left out.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT (the folder; both `shards` and `shard_bytes`; a share of
 *          what has none), PRESTO_ERR_UNSUPPORTED (a share of a dataset in a bucket), PRESTO_ERR_LIMIT (more than PRESTO_MAX_SHARDS of shard_bytes), PRESTO_ERR_STOPPED, what
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

/* ---- a dataset that many runs have written ---- */

typedef struct presto_join_options {
    size_t struct_bytes; /* set by presto_join_options_defaults */
    /* Names of folders in `dir`/_parts, such as "00003-of-00008.task7": only these count. Default
     * NULL: all that are whole */
    const char *const *attempts;
    size_t attempt_count;
    bool sync;              /* fsync; default true */
    presto_note_fn on_note; /* told of attempts that do not count; may be NULL */
    void *on_note_user;
    presto_stop_fn should_stop; /* asked before anything is changed. NULL: never */
    void *should_stop_user;
} presto_join_options;

PRESTO_API void presto_join_options_init(presto_join_options *options, size_t struct_bytes);
static inline void presto_join_options_defaults(presto_join_options *options) {
    presto_join_options_init(options, sizeof *options);
}

/**
 * Make one dataset of the shares in `dir`/_parts: exactly one whole attempt at each counts. The files,
 * dataset.json included, have the bytes of one presto_convert with as many shards. All is checked
 * before anything is changed; then each shard gets its name in `dir` by a rename, dataset.json is
 * written last, and _parts goes, with attempts that do not count. A join that dies is finished by the
 * next one. Where dataset.json stands and no join has begun, there is nothing to do, which on_note is
 * told.
 *
 * Of several whole attempts at a share, which have the same records, the first by name counts; if their
 * records differ, they are refused, unless options->attempts says which one counts. Of attempts of two
 * jobs (other options, another input) those of the job count that is whole.
 *
 * `result_out`, which may be NULL, has samples, shards and bytes of the dataset, the times of the join,
 * and, unless an earlier join did it, `skipped` and `dropped`. `sync` is of what the join writes; shards
 * are on the disk if their runs said so.
 * Returns: PRESTO_OK; PRESTO_ERR_BUSY (a share is not whole yet, the message lists them; or another
 *          process writes to the folder); PRESTO_ERR_ARGUMENT (two jobs are whole; two attempts at a
 *          share differ; the folder holds anything else); PRESTO_ERR_CORRUPT (more was left out than
 *          may be; a part.json or a shard is not what it says); PRESTO_ERR_NOT_FOUND (no _parts; an
 *          attempt of options->attempts); PRESTO_ERR_UNSUPPORTED (a bucket); PRESTO_ERR_TYPE,
 *          _STOPPED, _IO, _MEMORY.
 * Threads: any.
 */
PRESTO_API presto_status presto_dataset_join_sized(const char *dir,
                                                   const presto_join_options *options,
                                                   presto_convert_result *result_out,
                                                   presto_error *err);
static inline presto_status presto_dataset_join(const char *dir, const presto_join_options *options,
                                                presto_convert_result *result_out,
                                                presto_error *err) {
    if (result_out != NULL)
        result_out->struct_bytes = sizeof *result_out;
    return presto_dataset_join_sized(dir, options, result_out, err);
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
 * part of the dataset; in a bucket, uploads to such names that have begun; whole attempts at a share
 * that nobody has joined. Whatever else is there is left alone, and so are folders in which a join has
 * begun: presto_dataset_join finishes it.
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
