/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a dataset of samples that the program makes: shards, indexes and dataset.json, as
 * presto-write has them, without a pipeline and without source files.
 *
 *   presto_writer_open()    makes the folder;
 *   presto_writer_add()     takes a sample, any number of times, from any thread;
 *   presto_writer_finish()  completes the dataset;
 *   presto_writer_free()    ends the writer. Without finish, the folder is that of an interrupted
 *                           conversion: no dataset.json, and nothing that looks whole.
 */
#ifndef PRESTO_WRITER_H
#define PRESTO_WRITER_H

#include <presto/convert.h>
#include <presto/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct presto_writer presto_writer;

/** Of a shard, if nothing else is said. */
#define PRESTO_WRITER_SHARD_BYTES ((uint64_t)256 << 20)

/** Copied, with all that it points to. */
typedef struct presto_writer_options {
    size_t struct_bytes; /* set by presto_writer_options_defaults */
    const char *dir;     /* where the dataset goes; as presto_convert_options.dir. Required */
    /* Text. One with +dict is refused; +delta needs its number. Default "none" */
    const char *codec;
    presto_file_compression file_compression;
    uint64_t shard_bytes; /* as presto_convert_options.shard_bytes. Default 0:
                             PRESTO_WRITER_SHARD_BYTES, unless `shards` is given */
    size_t shards;        /* instead of shard_bytes: so many files; shard i has samples [i*n/shards,
                             (i+1)*n/shards), so that `samples` must be known. Default 0 */
    uint64_t samples;     /* n, how many will be added, those of an earlier run included. Fewer or
                             more are refused. Default 0: any number */
    unsigned threads;     /* that compress and write. 0: presto_writer_add does it. Default 1 */
    size_t prefetch_bytes;    /* of samples that wait for their thread; default 0: 32 MiB for each
                                 thread and one more, at most 256 MiB. A sample may be larger */
    const char *main_feature; /* which feature is the main one: the steps of a pipeline that goes on
                                 with the dataset work on it. Default NULL: not known */
    const char *const *label_names; /* what the numbers of the feature "label" stand for */
    size_t label_count;
    bool resume; /* go on where an interrupted run with the same options stopped: its whole shards
                    are kept, and presto_writer_samples says with which sample to begin */
    bool sync;   /* fsync; default true */
    /* Asked a few times a second by presto_writer_add and _finish while they wait, and by
     * presto_writer_add_arrow, by their thread, also by several at once. True: that call ends with
     * PRESTO_ERR_STOPPED, and its sample, or the next row, is not added. Default NULL */
    presto_stop_fn should_stop;
    void *should_stop_user;
} presto_writer_options;

PRESTO_API void presto_writer_options_init(presto_writer_options *options, size_t struct_bytes);
static inline void presto_writer_options_defaults(presto_writer_options *options) {
    presto_writer_options_init(options, sizeof *options);
}

/**
 * Make the folder, or take it over from an interrupted run, and start the threads.
 *
 * Owner:   caller, presto_writer_free.
 * Returns: PRESTO_ERR_ARGUMENT (the options; the folder holds a whole dataset or anything else),
 *          PRESTO_ERR_NOT_FOUND (an unknown codec), PRESTO_ERR_UNSUPPORTED (a codec that this build
 *          lacks), PRESTO_ERR_BUSY (another writer has the folder), PRESTO_ERR_IO,
 *          PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_writer_open(const presto_writer_options *options,
                                            presto_writer **writer_out, presto_error *err);

/**
 * Add a sample. It is serialized before the call returns; sample->number does not matter.
 *
 * The first sample fixes the schema: all have the same features, in any order, each with one
 * encoding, dtype and rank, at most PRESTO_MAX_RANK - 1; sizes may differ. A feature whose value a
 * sample lacks is there with PRESTO_ENCODE_NONE. The dataset then declares its first dimension as
 * one that varies; for a scalar, a list. After a resume, a feature that was declared as a list of
 * any size takes scalars and lists: which of them it had is not kept.
 *
 * Order:   samples stand in the dataset in the order of the calls; of calls at the same time, in
 *          any order. Which bytes are written does not depend on threads.
 * Returns: PRESTO_ERR_TYPE (the message names the sample and the feature; the sample is not added,
 *          the next one may be); PRESTO_ERR_LIMIT (an Example of 2 GiB; too many features);
 *          PRESTO_ERR_ARGUMENT (more than options.samples; the writer is finished);
 *          PRESTO_ERR_STOPPED. What an earlier sample failed with when it was written
 *          (PRESTO_ERR_IO of a full disk, ...): from then on nothing can be added, nor the dataset
 *          finished.
 * Threads: any number at once.
 */
PRESTO_API presto_status presto_writer_add(presto_writer *writer, const presto_sample *sample,
                                           presto_error *err);

/** How many samples have been added, with those of earlier runs. Any thread. */
PRESTO_API uint64_t presto_writer_samples(const presto_writer *writer);

/**
 * Write all that was added, give the shards their names, write dataset.json. Not during a call of
 * presto_writer_add. `result_out` may be NULL.
 * Returns: as presto_writer_add; PRESTO_ERR_ARGUMENT (fewer samples than options.samples).
 */
PRESTO_API presto_status presto_writer_finish_sized(presto_writer *writer,
                                                    presto_convert_result *result_out,
                                                    presto_error *err);
static inline presto_status presto_writer_finish(presto_writer *writer,
                                                 presto_convert_result *result_out,
                                                 presto_error *err) {
    if (result_out != NULL)
        result_out->struct_bytes = sizeof *result_out;
    return presto_writer_finish_sized(writer, result_out, err);
}

/**
 * End the threads and free the writer. NULL is fine. If it is not finished, its whole shards stay
 * for `resume`, or, without one, nothing. Not during another call.
 */
PRESTO_API void presto_writer_free(presto_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
