/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of a shard's records: from its index file, or from the headers. The index file is a
 * hint. If a CRC is wrong or a record is not where it says, the headers are read instead, with a
 * warning. Nothing else changes. If the records' numbers would change in the middle of a stream,
 * that is an error.
 */
#include <stdlib.h>

#include "../frame/frame_internal.h"
#include "../records_internal.h"
#include "shard_parts_internal.h"

/* Does it say nothing of the shard? Then it is not kept: the next time may do. */
static bool may_pass(presto_status status) {
    return status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_IO || status == PRESTO_ERR_STOPPED;
}

/* There is nothing else to be tried then. */
static bool is_over(presto_status status) {
    return status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_STOPPED;
}

static const uint64_t *offsets_of(const presto__found *found) {
    return (const uint64_t *)(const void *)found->offsets.data;
}

/* One warning a shard; without memory for it, none. */
static void warn(presto_shard *shard, const char *what, const presto_error *why,
                 const char *advice) {
    presto_error *warning = malloc(sizeof *warning);
    if (warning == NULL)
        return;
    presto_error_set(warning, why->status, PRESTO_NO_OFFSET, "%s: %s%s", what, why->message,
                     advice);
    presto_error_set_file(warning, why->file[0] == '\0' ? shard->path : why->file);
    presto_error *before = NULL;
    if (!atomic_compare_exchange_strong(&shard->warning, &before, warning))
        free(warning);
    else if (shard->pool != NULL)
        atomic_fetch_add(&shard->pool->warnings, 1);
}

static void keep_warning(presto_shard *shard, const presto_error *why) {
    warn(shard, "bad index, not used", why,
         "; the records are found by their headers (\"presto-inspect index\" writes a new one)");
}

/* With index_lock held, or before the shard is shared. */
static void keep_index(presto_shard *shard) {
    presto_error why;
    if (presto__shard_keep_index(shard, &why) < 0)
        warn(shard, "the index is not kept", &why, "");
}

bool presto__shard_take_warning(presto_shard *shard, presto_error *warning_out) {
    presto_error *warning = atomic_exchange(&shard->warning, NULL);
    if (warning == NULL)
        return false;
    *warning_out = *warning;
    free(warning);
    if (shard->pool != NULL)
        atomic_fetch_sub(&shard->pool->warnings, 1);
    return true;
}

/* ---- the headers instead of the index; all with index_lock held ---- */

static presto_status use_headers(presto_shard *shard, bool tolerate, presto_error *err) {
    presto__found *found = calloc(1, sizeof *found);
    if (found == NULL)
        return presto_fail_memory(err, sizeof *found);
    presto_status status = presto__shard_hop(shard, tolerate, found, err);
    if (status < 0) {
        presto__found_free(found);
        return status;
    }
    shard->record_count = found->record_count;
    atomic_store_explicit(&shard->found, found, memory_order_release);
    return PRESTO_OK;
}

/* The index has been used and is wrong, for the reason `why`. The headers replace it if no
 * record changes its number. */
static presto_status replace_index(presto_shard *shard, const presto_error *why,
                                   presto_error *err) {
    presto_error failure;
    presto__found *found = calloc(1, sizeof *found);
    if (found == NULL)
        return presto_fail_memory(err, sizeof *found);
    presto_status status = presto__shard_hop(shard, shard->options.tolerate, found, &failure);
    status = presto__foreign_is_damage(status, &failure); /* it held records when it was indexed */
    if (status >= 0 && found->record_count != shard->record_count) {
        status = presto_fail(&failure, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "its index is damaged (%s) and counts %ju record%s where there are "
                             "%ju: make a new one with \"presto-inspect index\"",
                             why->message, (uintmax_t)shard->record_count,
                             presto_plural(shard->record_count), (uintmax_t)found->record_count);
        presto_error_set_file(&failure, shard->path);
    }
    if (status >= 0) {
        keep_warning(shard, why);
        atomic_store_explicit(&shard->found, found, memory_order_release);
        keep_index(shard);
        return PRESTO_OK;
    }
    presto__found_free(found);
    if (err != NULL)
        *err = failure;
    if (may_pass(status))
        return status;
    presto_error *fault = malloc(sizeof *fault);
    if (fault != NULL)
        *fault = failure;
    atomic_store_explicit(&shard->index_fault, fault, memory_order_release);
    return status;
}

static presto_status open_beside(presto_shard *shard, const presto__index_data *data,
                                 presto_error *err) {
    char *path = presto__index_name(shard->path);
    if (path == NULL)
        return presto_fail_memory(err, strlen(shard->path));
    presto_status status = presto__index_open(path, data, &shard->index, err);
    free(path);
    /* What is ours may be replaced, nothing else. */
    shard->name_is_taken = status == PRESTO_ERR_UNSUPPORTED || status == PRESTO_ERR_IO;
    return status;
}

/* PRESTO_END: there is no index that will do. */
static presto_status use_index_file(presto_shard *shard, presto_error *err) {
    presto_error why;
    if (shard->options.ignore_index || shard->index_is_unfit)
        return PRESTO_END;
    presto__object object;
    PRESTO_TRY(presto__shard_acquire(shard, &object, err));
    const presto__index_data data = {.object = object,
                                     .path = shard->path,
                                     .bytes = shard->file_bytes,
                                     .mtime_ns = shard->info.mtime_ns,
                                     .plain = shard->compression == PRESTO_FILE_PLAIN,
                                     .is_described = shard->is_described,
                                     .records = shard->said_records,
                                     .crc32c = shard->said_crc32c};
    presto_status status = open_beside(shard, &data, &why);
    if (status < 0 && status != PRESTO_ERR_UNSUPPORTED && !is_over(status))
        keep_warning(shard, &why);
    if (status != PRESTO_OK && !is_over(status)) {
        status = presto__kept_index_open(shard, &data, &why);
        if (status < 0 && !is_over(status))
            warn(shard, "the index kept for a file is not used", &why, "");
    }
    presto__shard_release(shard);
    if (status == PRESTO_OK) {
        shard->from_file = true;
        shard->record_count = shard->index.count;
        return PRESTO_OK;
    }
    if (is_over(status)) {
        if (err != NULL)
            *err = why;
        return status;
    }
    shard->index_is_unfit = true;
    return PRESTO_END;
}

static presto_status find_places(presto_shard *shard, bool tolerate, presto_error *err) {
    presto_status status = use_index_file(shard, err);
    if (status != PRESTO_END)
        return status;
    PRESTO_TRY(use_headers(shard, tolerate, err));
    keep_index(shard);
    return PRESTO_OK;
}

presto_status presto__shard_drop_index(presto_shard *shard, const char *why, presto_error *err) {
    presto_error reason;
    presto_error_set(&reason, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%s", why);
    presto_error_set_file(&reason, shard->index.path);
    pthread_mutex_lock(&shard->index_lock);
    presto_status status = use_headers(shard, shard->options.tolerate, err);
    if (status == PRESTO_OK) {
        shard->from_file = false;
        keep_warning(shard, &reason);
    }
    pthread_mutex_unlock(&shard->index_lock);
    return status;
}

presto_status presto_shard_index(presto_shard *shard, bool tolerate, uint64_t *lost_out,
                                 presto_error *err) {
    presto_status status = PRESTO_OK;
    if (!atomic_load_explicit(&shard->indexed, memory_order_acquire)) {
        pthread_mutex_lock(&shard->index_lock);
        if (!atomic_load_explicit(&shard->indexed, memory_order_relaxed)) {
            status = find_places(shard, tolerate || shard->options.tolerate, err);
            if (status == PRESTO_OK)
                atomic_store_explicit(&shard->indexed, true, memory_order_release);
        }
        pthread_mutex_unlock(&shard->index_lock);
    }
    if (status == PRESTO_OK && lost_out != NULL)
        *lost_out = presto__shard_lost_ranges(shard);
    return status;
}

presto_status presto__shard_use_index(presto_shard *shard, presto_error *err) {
    pthread_mutex_lock(&shard->index_lock);
    presto_status status = PRESTO_OK;
    if (!atomic_load_explicit(&shard->indexed, memory_order_relaxed)) {
        status = use_index_file(shard, err);
        if (status == PRESTO_OK)
            atomic_store_explicit(&shard->indexed, true, memory_order_release);
    }
    pthread_mutex_unlock(&shard->index_lock);
    return status;
}

void presto__shard_use_found(presto_shard *shard, presto__found *found) {
    pthread_mutex_lock(&shard->index_lock);
    if (atomic_load_explicit(&shard->indexed, memory_order_relaxed)) {
        shard->unused = found;
    } else {
        shard->record_count = found->record_count;
        atomic_store_explicit(&shard->found, found, memory_order_release);
        atomic_store_explicit(&shard->indexed, true, memory_order_release);
        keep_index(shard);
    }
    pthread_mutex_unlock(&shard->index_lock);
}

/* ---- places ---- */

static presto_status known_fault(presto_shard *shard, presto_error *err) {
    const presto_error *fault = atomic_load_explicit(&shard->index_fault, memory_order_acquire);
    if (fault == NULL)
        return PRESTO_OK;
    if (err != NULL)
        *err = *fault;
    return fault->status;
}

/* A block of the index. If the block is wrong, the headers are read instead. */
static presto_status load_block(presto_shard *shard, uint64_t block, presto_error *err) {
    presto_error why;
    pthread_mutex_lock(&shard->index_lock);
    presto_status status = known_fault(shard, err);
    if (status == PRESTO_OK && atomic_load_explicit(&shard->found, memory_order_relaxed) == NULL &&
        !presto__index_has(&shard->index, block)) {
        status = presto__index_load(&shard->index, block, &why);
        if (is_over(status) && err != NULL)
            *err = why;
        else if (status < 0 && !is_over(status))
            status = replace_index(shard, &why, err);
    }
    pthread_mutex_unlock(&shard->index_lock);
    return status;
}

presto_status presto__shard_places(presto_shard *shard, uint64_t first, uint64_t count,
                                   presto__places *places_out, presto_error *err) {
    if (!presto__shard_is_indexed(shard)) {
        presto__shard_known_places(shard, first, places_out);
        return PRESTO_OK;
    }
    const presto__found *found = atomic_load_explicit(&shard->found, memory_order_acquire);
    const presto__index *index = &shard->index;
    if (found == NULL) {
        PRESTO_TRY(known_fault(shard, err));
        uint64_t last = (first + count) >> index->block_bits;
        for (uint64_t block = first >> index->block_bits; block <= last; block++)
            if (!presto__index_has(index, block))
                PRESTO_TRY(load_block(shard, block, err));
        found = atomic_load_explicit(&shard->found, memory_order_acquire);
    }
    places_out->offsets = (found != NULL ? offsets_of(found) : index->offsets) + first;
    places_out->found = found;
    return PRESTO_OK;
}

/* Do the headers, up to the first damaged one, agree with the index? */
static presto_status compare(presto_shard *shard, const presto__found *found, bool *same_out,
                             presto_error *err) {
    const uint64_t *offsets = offsets_of(found);
    uint64_t count = found->offsets.bytes / sizeof *offsets;
    *same_out = false;
    if (count > shard->record_count + 1)
        return PRESTO_OK;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t block = i >> shard->index.block_bits;
        if (!presto__index_has(&shard->index, block))
            PRESTO_TRY(presto__index_load(&shard->index, block, err));
        if (shard->index.offsets[i] != offsets[i])
            return PRESTO_OK;
    }
    *same_out = true;
    return PRESTO_OK;
}

/* With index_lock held. */
static presto_status check_index(presto_shard *shard, presto_error *err) {
    presto_error why;
    bool is_same = false;
    presto__found *found = calloc(1, sizeof *found);
    if (found == NULL)
        return presto_fail_memory(err, sizeof *found);
    presto_status status = presto__shard_hop(shard, false, found, &why);
    if (may_pass(status)) {
        if (err != NULL)
            *err = why;
    } else {
        status = compare(shard, found, &is_same, &why);
        if (status >= 0 && !is_same) {
            presto_error_set(&why, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "the records do not stand where it says");
            presto_error_set_file(&why, shard->index.path);
        }
        status = is_same ? PRESTO_END : replace_index(shard, &why, err);
        if (!may_pass(status))
            atomic_store(&shard->index_is_checked, true);
    }
    presto__found_free(found);
    return status;
}

presto_status presto__shard_doubt_index(presto_shard *shard, presto_error *err) {
    if (atomic_load_explicit(&shard->found, memory_order_acquire) != NULL)
        return PRESTO_OK; /* another thread has just replaced it */
    if (atomic_load(&shard->index_is_checked))
        return PRESTO_END;
    presto_status status = PRESTO_END;
    pthread_mutex_lock(&shard->index_lock);
    if (atomic_load_explicit(&shard->found, memory_order_relaxed) != NULL)
        status = PRESTO_OK;
    else if (!atomic_load(&shard->index_is_checked))
        status = check_index(shard, err);
    pthread_mutex_unlock(&shard->index_lock);
    return status;
}

/* ---- what is known ---- */

uint64_t presto__shard_next_damaged(presto_shard *shard, uint64_t from) {
    return presto__found_next_damaged(atomic_load_explicit(&shard->found, memory_order_acquire),
                                      from);
}

uint64_t presto__shard_lost_ranges(const presto_shard *shard) {
    const presto__found *found = atomic_load_explicit(&shard->found, memory_order_acquire);
    return found == NULL ? 0 : found->damaged.bytes / sizeof(uint64_t);
}

presto_status presto__shard_offsets(presto_shard *shard, uint64_t first, uint64_t count,
                                    const uint64_t **offsets_out, presto_error *err) {
    presto__places places;
    uint64_t records = presto_shard_records(shard);
    if (first > records || count > records - first)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "records %ju to %ju of %ju",
                           (uintmax_t)first, (uintmax_t)(first + count), (uintmax_t)records);
    PRESTO_TRY(presto__shard_places(shard, first, count, &places, err));
    *offsets_out = places.offsets;
    return PRESTO_OK;
}
