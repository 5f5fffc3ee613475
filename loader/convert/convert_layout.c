/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are in which shard of a conversion, and the names of shards. */
#include <stdio.h>

#include "../../steps/pipelines_internal.h"
#include "share_internal.h"

bool presto__conversion_by_size(const presto__conversion *job) {
    return job->options->shard_bytes > 0;
}

bool presto__conversion_leaves_out(const presto__conversion *job) {
    return job->options->errors.policy != PRESTO_ON_ERROR_FAIL ||
           (job->plan != NULL && (presto__plan_flags(job->plan) & PRESTO_STEP_DROPS) != 0);
}

bool presto__conversion_picks(const presto__conversion *job) {
    const presto__source_ops *ops = job->source->ops;
    presto_error err;
    return ops->check_random_access == NULL || ops->check_random_access(job->source, &err) >= 0;
}

bool presto__conversion_is_stream(const presto__conversion *job) {
    const presto_source *source = job->source;
    return !job->is_fed && job->pipeline == NULL && source != NULL && source->subset == NULL &&
           source->count == source->full_count && source->ops->walk != NULL;
}

uint64_t presto__layout_first(uint64_t samples, size_t shards, size_t shard) {
    /* shard * samples / shards without overflow. */
    return samples / shards * shard + samples % shards * shard / shards;
}

uint64_t presto__conversion_first(const presto__conversion *job, size_t shard) {
    return presto__layout_first(job->sample_count, job->shard_count, shard);
}

uint64_t presto__conversion_end(const presto__conversion *job, size_t shard) {
    return presto__conversion_first(job, shard + 1);
}

size_t presto__conversion_first_shard(const presto__conversion *job) {
    const presto_share *share = &job->options->share;
    return share->count == 0 ? 0
                             : presto__share_first(job->shard_count, share->number, share->count);
}

size_t presto__conversion_end_shard(const presto__conversion *job) {
    const presto_share *share = &job->options->share;
    return share->count == 0
               ? job->shard_count
               : presto__share_first(job->shard_count, share->number + 1, share->count);
}

uint64_t presto__conversion_samples(const presto__conversion *job) {
    if (job->options->share.count == 0)
        return job->sample_count;
    return presto__conversion_first(job, presto__conversion_end_shard(job)) -
           presto__conversion_first(job, presto__conversion_first_shard(job));
}

uint64_t presto__conversion_number(const presto__conversion *job, uint64_t position) {
    if (position >= job->sample_count)
        return UINT64_MAX;
    if (job->source->subset != NULL)
        presto__subset_numbers(job->source->subset, &position, 1);
    return position;
}

static const char *ending(presto_file_compression compression) {
    static const char *const endings[] = {
        [PRESTO_FILE_PLAIN] = "", [PRESTO_FILE_GZIP] = ".gz", [PRESTO_FILE_ZLIB] = ".deflate"};
    return endings[compression];
}

void presto__shard_name(size_t shard, size_t shards, presto_file_compression compression,
                        char name_out[PRESTO__SHARD_NAME_BYTES]) {
    snprintf(name_out, PRESTO__SHARD_NAME_BYTES, "data-%05zu-of-%05zu.tfrecord%s", shard, shards,
             ending(compression));
}

void presto__conversion_shard_name(const presto__conversion *job, size_t shard,
                                   char name_out[PRESTO__SHARD_NAME_BYTES]) {
    presto__shard_name(shard, job->shard_count, job->options->file_compression, name_out);
}

void presto__conversion_working_name(const presto__conversion *job, size_t shard,
                                     char name_out[PRESTO__SHARD_NAME_BYTES]) {
    if (presto__conversion_by_size(job))
        snprintf(name_out, PRESTO__SHARD_NAME_BYTES, ".data-%05zu.tfrecord%s", shard,
                 ending(job->options->file_compression));
    else
        presto__conversion_shard_name(job, shard, name_out);
}
