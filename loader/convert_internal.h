/* SPDX-License-Identifier: Apache-2.0 */
/* What the conversion, its progress file and job.c share. */
#ifndef PRESTO_CONVERT_INTERNAL_H
#define PRESTO_CONVERT_INTERNAL_H

#include <presto/convert.h>
#include <presto/stream.h>

#include "loader_internal.h"

/** A shard that is whole. */
typedef struct presto__whole_shard {
    size_t number;                  /* in the dataset, from 0 */
    uint64_t first, end;            /* its samples: [first, end), some of them may be left out */
    presto_dataset_shard described; /* `file` is the name that it stands under */
} presto__whole_shard;

/** How far a conversion has come. Zero-initialise. */
typedef struct presto__progress {
    char *job;                   /* a JSON object: what must be equal to go on */
    presto__whole_shard *shards; /* by number; others may be missing between them */
    size_t shard_count;
    presto__schema schema; /* of the samples so far */
} presto__progress;

void presto__progress_done(presto__progress *progress);
/** Add a whole shard that is not there yet; `file` is copied, shard->described.file ignored. */
presto_status presto__progress_add(presto__progress *progress, const char *file,
                                   const presto__whole_shard *shard, presto_error *err);
/** Forget all but the first `count` of the list. */
void presto__progress_keep(presto__progress *progress, size_t count);
/** One past the last sample of the last shard. */
uint64_t presto__progress_next(const presto__progress *progress);
/** Samples of all the shards' ranges. */
uint64_t presto__progress_samples(const presto__progress *progress);
/** Samples of the shards' ranges that are not in them: those left out. */
uint64_t presto__progress_skipped(const presto__progress *progress);
presto_status presto__progress_write(const char *dir, const presto__progress *progress, bool sync,
                                     presto_error *err);
/**
 * Is it time to write the file? `since_ns` is the time since it was written last. Each writing
 * takes as long as there are shards: the first ones are noted at once, those of a long list in
 * groups.
 */
bool presto__progress_is_due(const presto__progress *progress, uint64_t since_ns);
/** PRESTO_ERR_NOT_FOUND if there is none. */
presto_status presto__progress_read(const char *dir, presto__progress *progress_out,
                                    presto_error *err);
/** PRESTO_ERR_ARGUMENT naming the first entry of `job` that differs. */
presto_status presto__progress_compare(const presto__progress *progress, const char *job,
                                       presto_error *err);

/** dir/name on the heap; NULL without memory. */
char *presto__path_join(const char *dir, const char *name, presto_error *err);
/** Write dir/name by way of a temporary name. */
presto_status presto__replace_file(const char *dir, const char *name, presto_span content,
                                   bool sync, presto_error *err);

/** Is there a dataset.json in this folder? */
presto_status presto__path_is_dataset(const char *path, bool *is_dataset_out, presto_error *err);
presto_status presto__find_representation(const presto_pipeline *pipeline, const char *name,
                                          size_t *representation_out, presto_error *err);

#endif
