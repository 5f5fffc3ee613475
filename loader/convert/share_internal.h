/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset that many runs write together, each a share of its shards. Part of room convert.
 *
 *   DIR/_parts/00003-of-00008.ATTEMPT/   a run of share 3 of 8: a conversion like any other, but that
 *                                        part.json comes last, and describes its shards alone
 *   DIR/.progress.json                   while a join runs: what it will do, so that another one can
 *                                        go on where it died
 *
 * part_file.c: part.json. convert_share.c: a conversion that writes a share. join.c: which attempts
 * count, and the dataset of them. join_log.c: what a join does, in the order in which nothing is lost.
 */
#ifndef PRESTO_LOADER_SHARE_INTERNAL_H
#define PRESTO_LOADER_SHARE_INTERNAL_H

#include "convert_internal.h"

#define PRESTO__PARTS_FOLDER "_parts"
#define PRESTO__PART_FILE "part.json"
#define PRESTO__JOIN_FORMAT "join-log"
#define PRESTO__ATTEMPT_MOST 64         /* characters of an attempt's own name */
#define PRESTO__ATTEMPT_FOLDER_BYTES 96 /* "00003-of-00008." and that */

/* ---- which shards a share has ---- */

/** Of `shards`, the first that is share `number`'s of `count`; as one past the last: of number + 1. */
static inline size_t presto__share_first(size_t shards, size_t number, size_t count) {
    return (size_t)((uint64_t)shards * number / count);
}

/* ---- attempts ---- */

/** Letters, digits, '-' and '_'; at most PRESTO__ATTEMPT_MOST of them. */
bool presto__attempt_is_name(const char *name);
/** Whose attempt is a folder of this name? False: of none. */
bool presto__attempt_parse(const char *folder, size_t *number_out, size_t *count_out);
void presto__attempt_folder(size_t number, size_t count, const char *attempt,
                            char folder_out[PRESTO__ATTEMPT_FOLDER_BYTES]);

/** The names of all attempts in DIR/_parts, of which `parts` is the path, sorted; none if it is not there. The
 * caller frees the list, also on failure. */
presto_status presto__attempts_list(const char *parts, presto__paths *attempts_out,
                                    presto_error *err);

/* ---- convert_info.c ---- */

/** Give `info`, which has none, copies of the features. They are freed with it, also on failure. */
presto_status presto__info_copy_features(presto_dataset_info *info,
                                         const presto_feature_spec *features, size_t count,
                                         presto_error *err);

/* ---- part_file.c ---- */

/** What part.json says of a whole attempt. Zero-initialise. */
typedef struct presto__part_file {
    char *folder; /* name of the attempt's; the caller's to set, and freed with the rest */
    char *job;    /* a JSON object: what all shares of a dataset have in common */
    size_t number, count;
    size_t shards;       /* of the dataset */
    uint64_t samples;    /* of the source */
    uint64_t skipped;    /* of the share's: left out because of errors, */
    uint64_t dropped;    /* and by steps */
    uint64_t skip_limit; /* of the whole, as the job says; UINT64_MAX: none */
    double skip_fraction;
    bool has_dictionary;
    uint32_t dictionary_crc32c;
    /* The stream of the input, if all its `stream_records` are stored as they were. */
    bool has_stream;
    uint64_t stream_counted, stream_files, stream_records;
    presto_dataset_info info; /* as if the share's shards were a dataset */
} presto__part_file;

void presto__part_file_done(presto__part_file *part);
/** `file` is for messages. What is read is consistent: the shards are those of the share, by their
 * names, and the samples those that belong to them. PRESTO_ERR_CORRUPT. */
presto_status presto__part_file_parse(presto_span text, const char *file,
                                      presto__part_file *part_out, presto_error *err);
/** PRESTO_ERR_NOT_FOUND: the attempt is not whole. */
presto_status presto__part_file_read(const char *folder, presto__part_file *part_out,
                                     presto_error *err);
presto_status presto__part_file_write(const char *folder, presto__part_file *part, bool sync,
                                      presto_error *err);
/** The first key in which two jobs differ, copied to `key_out`; false: none. */
bool presto__jobs_differ(const char *a, const char *b, char key_out[64]);

/* ---- convert_share.c ---- */

/** PRESTO_ERR_ARGUMENT: a dataset written so has no shares. The input is open. */
presto_status presto__share_check(const presto__conversion *job, presto_error *err);
/** Are there only parts in the dataset's folder? PRESTO_ERR_ARGUMENT: no. */
presto_status presto__share_check_out(const char *dir, presto_error *err);
/** As presto__conversion_open_folder: of an attempt's own folder, which becomes job->dir; or
 * PRESTO__FOLDER_WHOLE, if an attempt at the same is whole already. */
presto_status presto__share_open(presto__conversion *job, presto_error *err);
/** Write part.json. `info` describes the share's shards. */
presto_status presto__share_write(const presto__conversion *job, presto_dataset_info *info,
                                  presto_error *err);
/** The folder is closed: remove what was made for nothing. */
void presto__share_close(presto__conversion *job);
/** Does it write a share? */
static inline bool presto__conversion_is_share(const presto__conversion *job) {
    return job->options->share.count > 0;
}

/* ---- join_log.c ---- */

/** A shard gets its name in the dataset; its index before it. */
typedef struct presto__join_move {
    size_t attempt; /* of the log's list */
    char *file;
} presto__join_move;

/** All that remains to be done. Zero-initialise. */
typedef struct presto__join_log {
    char **attempts; /* folders in _parts, which go in the end */
    size_t attempt_count;
    presto__join_move *moves;
    size_t move_count;
    size_t dictionary; /* of which attempt it becomes the dataset's; SIZE_MAX: there is none */
    char *dataset;     /* the text of dataset.json */
} presto__join_log;

void presto__join_log_done(presto__join_log *log);
/** No name leads out of the folder. PRESTO_ERR_CORRUPT. */
presto_status presto__join_log_parse(presto_span text, presto__join_log *log_out,
                                     presto_error *err);
/** Is it the text of one, if perhaps a damaged one? */
bool presto__join_log_is(presto_span text);
presto_status presto__join_log_write(const char *dir, const presto__join_log *log, bool sync,
                                     presto_error *err);
/** PRESTO_ERR_NOT_FOUND: no join has begun. PRESTO_ERR_ARGUMENT: an unfinished conversion. */
presto_status presto__join_log_read(const char *dir, presto__join_log *log_out, presto_error *err);
/** Do it, from its first move on: what is done already is passed over. Then the log goes. */
presto_status presto__join_log_run(const char *dir, const presto__join_log *log, bool sync,
                                   presto_error *err);

#endif
