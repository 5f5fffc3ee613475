/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign files whose records are not counted yet, read from front to back. Each file is walked
 * (records/shard/shard_walk.c) unless it has an index, and is indexed from then on. One walk at a
 * time; whoever needs the count before its end gets it from the headers.
 */
#include <presto/dataset.h>

#include <stdlib.h>

#include "../../storage/fan_out_internal.h"
#include "../records_internal.h"
#include "dataset_parts_internal.h"

/* ---- counting ---- */

/* A job of presto__fan_out: the headers of shard `i`, which other threads may read meanwhile. */
static presto_status index_shard(void *user, size_t i, presto_error *err) {
    presto_dataset *dataset = user; /* its caller's, who waits for all jobs */
    presto_shard *shard;
    if (presto__dataset_first(dataset, i + 1) != PRESTO_COUNT_UNKNOWN)
        return PRESTO_OK;
    return presto_dataset_shard_at(dataset, i, &shard, err);
}

/* With walk_lock held. */
static presto_status count_all(presto_dataset *dataset, presto_error *err) {
    size_t count = dataset->info.shard_count, counted = 0;
    presto_status status = presto__fan_out(count, index_shard, dataset, err);
    while (counted < count && presto__dataset_first(dataset, counted + 1) != PRESTO_COUNT_UNKNOWN)
        counted++;
    /* Also those before one that failed. */
    presto_status added = presto__dataset_count_from(dataset, counted, status < 0 ? NULL : err);
    return status < 0 ? status : added;
}

presto_status presto__dataset_count(presto_dataset *dataset, presto_error *err) {
    if (presto_dataset_records(dataset) != PRESTO_COUNT_UNKNOWN)
        return PRESTO_OK;
    pthread_mutex_lock(&dataset->walk_lock);
    presto_status status = count_all(dataset, err);
    pthread_mutex_unlock(&dataset->walk_lock);
    return status;
}

/* ---- the walk; all with walk_lock held ---- */

static uint64_t walk_position(const presto_dataset *dataset) {
    return presto__dataset_first(dataset, dataset->walk_shard) + dataset->walk_record;
}

/* The shard that the walk stands in; PRESTO_END: it is at the end of all. */
static presto_status walk_shard(presto_dataset *dataset, presto_shard **shard_out,
                                presto_error *err) {
    if (dataset->walk_shard == dataset->info.shard_count)
        return PRESTO_END;
    return presto__dataset_open_shard(dataset, dataset->walk_shard, shard_out, err);
}

/* On to the next shard. The one just walked is counted now. */
static presto_status leave_shard(presto_dataset *dataset, presto_shard *shard, presto_error *err) {
    if (!presto__shard_is_indexed(shard))
        PRESTO_TRY(presto__shard_end_walk(shard, err));
    PRESTO_TRY(presto__dataset_count_from(dataset, dataset->walk_shard, err));
    dataset->walk_shard++;
    dataset->walk_record = 0;
    return PRESTO_OK;
}

/* Leave all shards that have nothing more, so that the end is known as soon as it can be. */
static presto_status leave_ended(presto_dataset *dataset, presto_error *err) {
    presto_shard *shard;
    presto_status status;
    while ((status = walk_shard(dataset, &shard, err)) == PRESTO_OK) {
        bool has_ended = presto__shard_is_indexed(shard)
                             ? dataset->walk_record == presto_shard_records(shard)
                             : presto__shard_walk_at_end(shard);
        if (!has_ended)
            return PRESTO_OK;
        PRESTO_TRY(leave_shard(dataset, shard, err));
    }
    return status < 0 ? status : PRESTO_OK;
}

/* Records of a shard with an index: about so many bytes of them, to be fetched. */
static presto_status give_indexed(const presto_dataset *dataset, presto_shard *shard,
                                  const presto__walk_limits *limits, presto__stretch *stretch,
                                  presto_error *err) {
    uint64_t first = dataset->walk_record, left = presto_shard_records(shard) - first;
    size_t most = left < limits->records ? (size_t)left : limits->records, count = 1;
    const uint64_t *offsets;
    if (most == 0)
        return PRESTO_END;
    PRESTO_TRY(presto__shard_offsets(shard, first, most, &offsets, err));
    while (count < most && offsets[count + 1] - offsets[0] <= limits->bytes)
        count++;
    stretch->first = first;
    stretch->count = count;
    stretch->fault.status = PRESTO_OK;
    stretch->is_last = false;
    return PRESTO_OK;
}

static presto_status walk(presto_dataset *dataset, const presto__walk_limits *limits,
                          presto_block *block, presto__stretch *stretch, presto_error *err) {
    presto_shard *shard;
    presto_status status;
    while ((status = walk_shard(dataset, &shard, err)) == PRESTO_OK) {
        stretch->shard = dataset->walk_shard;
        stretch->is_read = !presto__shard_is_indexed(shard);
        status = stretch->is_read ? presto__shard_walk(shard, limits, block, stretch, err)
                                  : give_indexed(dataset, shard, limits, stretch, err);
        if (status != PRESTO_END)
            break;
        PRESTO_TRY(leave_shard(dataset, shard, err));
    }
    if (status != PRESTO_OK)
        return status;
    dataset->walk_record += stretch->is_last ? 0 : stretch->count;
    (void)leave_ended(dataset, NULL); /* what fails there fails again in the next step */
    return PRESTO_OK;
}

presto_status presto__dataset_walk_step(presto_dataset *dataset, const presto__walk_limits *limits,
                                        presto_block *block, presto__stretch *stretch,
                                        presto_error *err) {
    pthread_mutex_lock(&dataset->walk_lock);
    presto_status status = walk(dataset, limits, block, stretch, err);
    pthread_mutex_unlock(&dataset->walk_lock);
    return status;
}

/* ---- its start and end ---- */

/* Pass over records until the walk stands at `number`, or at the end. */
static presto_status pass_to(presto_dataset *dataset, uint64_t number, presto_error *err) {
    presto_shard *shard;
    presto_status status = PRESTO_OK;
    while (walk_position(dataset) < number &&
           (status = walk_shard(dataset, &shard, err)) == PRESTO_OK) {
        uint64_t most = number - walk_position(dataset), passed = 0;
        if (presto__shard_is_indexed(shard)) {
            uint64_t left = presto_shard_records(shard) - dataset->walk_record;
            passed = left < most ? left : most;
        } else {
            status = presto__shard_pass(shard, most, &passed, err);
        }
        dataset->walk_record += passed;
        if (status < 0)
            return status;
        if (passed < most)
            PRESTO_TRY(leave_shard(dataset, shard, err));
    }
    return status < 0 ? status : leave_ended(dataset, err);
}

static presto_status begin_walk(presto_dataset *dataset, uint64_t number, presto_error *err) {
    const size_t count = dataset->info.shard_count;
    if (presto__dataset_first(dataset, count) == PRESTO_COUNT_UNKNOWN) {
        if (dataset->is_walked || walk_position(dataset) > number)
            PRESTO_TRY(count_all(dataset, err));
        else
            PRESTO_TRY(pass_to(dataset, number, err));
    }
    if (presto__dataset_first(dataset, count) != PRESTO_COUNT_UNKNOWN)
        return PRESTO_END;
    dataset->is_walked = true;
    return PRESTO_OK;
}

presto_status presto__dataset_begin_walk(presto_dataset *dataset, uint64_t number,
                                         presto_error *err) {
    pthread_mutex_lock(&dataset->walk_lock);
    presto_status status = begin_walk(dataset, number, err);
    pthread_mutex_unlock(&dataset->walk_lock);
    return status;
}

void presto__dataset_end_walk(presto_dataset *dataset) {
    pthread_mutex_lock(&dataset->walk_lock);
    dataset->is_walked = false;
    pthread_mutex_unlock(&dataset->walk_lock);
}

/* ---- records by number, before they are counted ---- */

presto_status presto__dataset_pass(presto_dataset *dataset, uint64_t number, uint64_t *known_out,
                                   presto_error *err) {
    pthread_mutex_lock(&dataset->walk_lock);
    presto_status status = PRESTO_OK;
    if (presto_dataset_records(dataset) == PRESTO_COUNT_UNKNOWN)
        status = pass_to(dataset, number, err);
    *known_out = walk_position(dataset);
    pthread_mutex_unlock(&dataset->walk_lock);
    return status;
}

presto_status presto__dataset_shard_with(presto_dataset *dataset, size_t i, uint64_t record,
                                         presto_shard **shard_out, presto_error *err) {
    presto_shard *shard = NULL;
    PRESTO_TRY(presto__dataset_open_shard(dataset, i, &shard, err));
    if (!presto__shard_reaches(shard, record, 1))
        return presto_dataset_shard_at(dataset, i, shard_out, err);
    *shard_out = shard;
    return PRESTO_OK;
}

/* ---- stretches ---- */

void presto__stretch_done(presto__stretch *stretch) {
    presto_buffer_done(&stretch->offsets_);
}

presto_status presto__dataset_check_stretch(presto_dataset *dataset, const presto__stretch *stretch,
                                            presto_block *block, presto_error *err) {
    presto_shard *shard =
        atomic_load_explicit(&dataset->shards[stretch->shard], memory_order_acquire);
    return presto__stretch_check(shard, stretch, block, err);
}

presto_status presto__dataset_describe_stretch(presto_dataset *dataset,
                                               const presto__stretch *stretch, size_t i,
                                               presto_block *block, presto_error *err) {
    presto_shard *shard =
        atomic_load_explicit(&dataset->shards[stretch->shard], memory_order_acquire);
    return presto__stretch_describe(shard, stretch, i, block, err);
}

/* ---- sizes ---- */

uint64_t presto__dataset_mean_bytes(const presto_dataset *dataset) {
    uint64_t records = presto_dataset_records(dataset), bytes = 0;
    for (size_t i = 0; i < dataset->info.shard_count; i++)
        bytes += dataset->info.shards[i].stored_bytes;
    if (records == PRESTO_COUNT_UNKNOWN)
        return dataset->guessed_mean;
    return records > 0 && bytes > records ? bytes / records : 1;
}
