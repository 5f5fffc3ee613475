/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room convert: how far a conversion has come, and the file that says so. */
#ifndef PRESTO_LOADER_PROGRESS_INTERNAL_H
#define PRESTO_LOADER_PROGRESS_INTERNAL_H

#include <presto/dataset.h>

#include "../engine/engine_internal.h"

/**
 * Where the next row begins, if a step regroups: at a token of a sample, which is a document.
 * Before it: documents that came, and their tokens. Samples that did not come were left out.
 */
typedef struct presto__regroup_place {
    uint64_t sample, token; /* the sample's position */
    uint64_t documents, tokens;
} presto__regroup_place;

/** A shard that is whole. */
typedef struct presto__whole_shard {
    size_t number;                  /* in the dataset, from 0 */
    uint64_t first, end;            /* positions of its samples: [first, end); some may be left
                                     * out. If the source is a part of another, they count in it */
    uint64_t skipped;               /* of those left out behind the shard before it, up to `end`
                                     * or `next`: because of errors. Steps dropped the others */
    presto_dataset_shard described; /* `file` is its name on the disk */
    bool is_regrouped;              /* its records begin in its samples, and `next` is set */
    presto__regroup_place next;
} presto__whole_shard;

/** How far a conversion has come. Zero-initialise. */
typedef struct presto__progress_file {
    char *job;                   /* a JSON object: what must be equal to resume */
    presto__whole_shard *shards; /* by number; there may be gaps */
    size_t shard_count;
    presto__schema schema; /* of the samples so far */
} presto__progress_file;

void presto__progress_file_done(presto__progress_file *progress);
/** Add a whole shard that is not there yet; `file` is copied, shard->described.file ignored. */
presto_status presto__progress_file_add(presto__progress_file *progress, const char *file,
                                        const presto__whole_shard *shard, presto_error *err);
/** Forget all but the first `count` of the list. */
void presto__progress_file_keep(presto__progress_file *progress, size_t count);
/** One past the last sample of the last shard. */
uint64_t presto__progress_file_next(const presto__progress_file *progress);
/** Samples of all the shards' ranges. */
uint64_t presto__progress_file_samples(const presto__progress_file *progress);
/** Samples of the shards' ranges that are not in them: those left out. */
uint64_t presto__progress_file_left_out(const presto__progress_file *progress);
/** Of these, those left out because of errors. */
uint64_t presto__progress_file_skipped(const presto__progress_file *progress);
presto_status presto__progress_file_write(const char *dir, const presto__progress_file *progress,
                                          bool sync, presto_error *err);
/**
 * Is it time to write the file? `since_ns` is the time since the last write. Each write takes time
 * for every shard in the list, so a long list is written less often.
 */
bool presto__progress_file_is_due(const presto__progress_file *progress, uint64_t since_ns);
/** Into a zeroed `progress`, which the caller frees, also on failure. */
presto_status presto__progress_file_parse(presto_span text, presto__progress_file *progress,
                                          presto_error *err);
/** PRESTO_ERR_NOT_FOUND if there is none. */
presto_status presto__progress_file_read(const char *dir, presto__progress_file *progress_out,
                                         presto_error *err);
/** PRESTO_ERR_ARGUMENT naming the first entry of `job` that differs. */
presto_status presto__progress_file_compare(const presto__progress_file *progress, const char *job,
                                            presto_error *err);

/** PRESTO_ERR_CORRUPT unless the shards' samples are among so many, and the shards say where among
 * them the next row begins if and only if a step regroups. */
presto_status presto__progress_file_check_places(const presto__progress_file *progress,
                                                 bool regroups, uint64_t samples,
                                                 presto_error *err);

#endif
