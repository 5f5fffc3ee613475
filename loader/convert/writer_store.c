/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of samples into shards, one shard after the other. A shard ends by its size, or with the
 * last sample of its range. Each whole shard is noted in the progress file.
 */
#include <inttypes.h>

#include <presto/numbers.h>

#include "writer_internal.h"

static presto_status begin_shard(presto__sample_store *store, presto_error *err) {
    const presto__conversion *job = store->job;
    size_t number = job->progress.shard_count;
    store->shard_records = store->shard_frame_bytes = 0;
    store->shard = (presto__shard_range){.number = number,
                                         .first = presto__progress_file_next(&job->progress)};
    if (!presto__conversion_by_size(job))
        store->shard.end = presto__conversion_end(job, number);
    else if (number >= PRESTO_MAX_SHARDS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "more than %d shards of %" PRIu64 " byte%s", PRESTO_MAX_SHARDS,
                           job->options->shard_bytes, presto_plural(job->options->shard_bytes));
    return PRESTO_OK;
}

/* The open shard has all samples before `end`. */
static presto_status finish_shard(presto__sample_store *store, uint64_t end, presto_error *err) {
    presto__conversion *job = store->job;
    presto__whole_shard whole;
    char name[PRESTO__SHARD_NAME_BYTES];
    store->shard.end = end;
    PRESTO_TRY(presto__writers_finish(store->writers, 0, &store->shard, err));
    while (presto__writers_take(store->writers, &whole)) {
        presto__conversion_working_name(job, whole.number, name);
        PRESTO_TRY(presto__progress_file_add(&job->progress, name, &whole, err));
        PRESTO_TRY(presto__conversion_note(job, err));
    }
    return PRESTO_OK;
}

static bool fits(const presto__sample_store *store, uint64_t sample, uint32_t frame_bytes) {
    const presto__conversion *job = store->job;
    if (!presto__conversion_by_size(job))
        return sample < store->shard.end;
    uint64_t most = job->options->shard_bytes, used = store->shard_frame_bytes;
    return store->shard_records == 0 || (used <= most && frame_bytes <= most - used);
}

/* Samples from `i` on, as many as the shard takes. */
static presto_status put_some(presto__sample_store *store, const presto__sample_block *block,
                              size_t *i_io, size_t *at_io, presto_error *err) {
    size_t first = *i_io, i = first, bytes = 0;
    presto__rows rows = {.frame_bytes = block->frame_bytes + first};
    for (; i < block->count && fits(store, block->first + i, block->frame_bytes[i]); i++) {
        bytes += block->frame_bytes[i];
        rows.raw_bytes += block->raw_bytes[i];
        store->shard_frame_bytes += block->frame_bytes[i];
        store->shard_records++;
    }
    rows.count = i - first;
    rows.frames = presto_span_of(presto__sample_block_frames(block) + *at_io, bytes);
    *i_io = i;
    *at_io += bytes;
    return rows.count == 0
               ? PRESTO_OK
               : presto__writers_append(store->writers, 0, store->shard.number, &rows, err);
}

presto_status presto__sample_store_put(presto__sample_store *store,
                                       const presto__sample_block *block, presto_error *err) {
    size_t at = 0;
    for (size_t i = 0; i < block->count;) {
        PRESTO_TRY(put_some(store, block, &i, &at, err));
        if (i == block->count)
            break;
        PRESTO_TRY(finish_shard(store, block->first + i, err));
        PRESTO_TRY(begin_shard(store, err));
    }
    return PRESTO_OK;
}

presto_status presto__sample_store_end(presto__sample_store *store, uint64_t samples,
                                       presto_error *err) {
    presto__conversion *job = store->job;
    bool by_size = presto__conversion_by_size(job);
    /* A dataset without samples has one shard. */
    if (by_size && (store->shard_records > 0 || job->progress.shard_count == 0))
        PRESTO_TRY(finish_shard(store, samples, err));
    while (!by_size && job->progress.shard_count < job->shard_count) {
        PRESTO_TRY(finish_shard(store, store->shard.end, err));
        if (job->progress.shard_count < job->shard_count)
            PRESTO_TRY(begin_shard(store, err));
    }
    job->sample_count = samples;
    job->shard_count = job->progress.shard_count;
    return PRESTO_OK;
}

presto_status presto__sample_store_open(presto__sample_store *store, presto__conversion *job,
                                        presto_error *err) {
    *store = (presto__sample_store){.job = job};
    PRESTO_TRY(begin_shard(store, err));
    return presto__writers_new(job, 1, false, &store->writers, err);
}

void presto__sample_store_close(presto__sample_store *store) {
    if (store->writers == NULL)
        return;
    presto__writers_stop(store->writers);
    presto__writers_free(store->writers);
    store->writers = NULL;
}
