/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are in which shard of a conversion, and the names of shards. */
#include <stdio.h>

#include "../../steps/pipelines_internal.h"
#include "convert_internal.h"

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

uint64_t presto__conversion_end(const presto__conversion *job, size_t shard) {
    /* (shard + 1) * n / shards without overflow. */
    uint64_t each = job->sample_count / job->shard_count;
    uint64_t rest = job->sample_count % job->shard_count;
    return each * (shard + 1) + rest * (shard + 1) / job->shard_count;
}

uint64_t presto__conversion_first(const presto__conversion *job, size_t shard) {
    return shard == 0 ? 0 : presto__conversion_end(job, shard - 1);
}

uint64_t presto__conversion_number(const presto__conversion *job, uint64_t position) {
    if (position >= job->sample_count)
        return UINT64_MAX;
    if (job->source->subset != NULL)
        presto__subset_numbers(job->source->subset, &position, 1);
    return position;
}

static const char *ending(const presto__conversion *job) {
    static const char *const endings[] = {
        [PRESTO_FILE_PLAIN] = "", [PRESTO_FILE_GZIP] = ".gz", [PRESTO_FILE_ZLIB] = ".deflate"};
    return endings[job->options->file_compression];
}

void presto__conversion_shard_name(const presto__conversion *job, size_t shard,
                                   char name_out[PRESTO__SHARD_NAME_BYTES]) {
    snprintf(name_out, PRESTO__SHARD_NAME_BYTES, "data-%05zu-of-%05zu.tfrecord%s", shard,
             job->shard_count, ending(job));
}

void presto__conversion_working_name(const presto__conversion *job, size_t shard,
                                     char name_out[PRESTO__SHARD_NAME_BYTES]) {
    if (presto__conversion_by_size(job))
        snprintf(name_out, PRESTO__SHARD_NAME_BYTES, ".data-%05zu.tfrecord%s", shard, ending(job));
    else
        presto__conversion_shard_name(job, shard, name_out);
}
