/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard that is being passed over (shard_walk.c) and is not indexed yet: the records found so far
 * are read by number meanwhile. Arrays of places grow beside the old ones, which stay as long as
 * the shard: somebody may be looking at them.
 */
#include <stdlib.h>

#include "shard_parts_internal.h"

#define LEAST_BYTES ((size_t)4 << 10)

/* Room for two more numbers: of the next record, and of the end. */
static presto_status grow(presto_buffer *numbers, presto_buffer *outgrown, presto_error *err) {
    presto_buffer larger = {0};
    if (numbers->capacity - numbers->bytes >= 2 * sizeof(uint64_t))
        return PRESTO_OK;
    PRESTO_TRY(presto_buffer_reserve(&larger, 2 * numbers->bytes + LEAST_BYTES, err));
    presto_status status =
        presto_buffer_append(outgrown, presto_span_of(&numbers->data, sizeof numbers->data), err);
    if (status < 0) {
        presto_buffer_done(&larger);
        return status;
    }
    if (numbers->bytes > 0)
        memcpy(larger.data, numbers->data, numbers->bytes);
    larger.bytes = numbers->bytes;
    *numbers = larger;
    return PRESTO_OK;
}

presto_status presto__found_grow(presto__found *found, presto_error *err) {
    PRESTO_TRY(grow(&found->offsets, &found->outgrown, err));
    return grow(&found->damaged, &found->outgrown, err);
}

void presto__found_free(presto__found *found) {
    if (found == NULL)
        return;
    for (size_t at = 0; at < found->outgrown.bytes; at += sizeof(void *)) {
        void *numbers;
        memcpy(&numbers, found->outgrown.data + at, sizeof numbers);
        free(numbers);
    }
    presto_buffer_done(&found->outgrown);
    presto_buffer_done(&found->offsets);
    presto_buffer_done(&found->damaged);
    free(found->stream_fault);
    free(found);
}

void presto__shard_show_known(presto_shard *shard, const presto__found *found) {
    uint64_t starts = found->offsets.bytes / sizeof(uint64_t);
    pthread_mutex_lock(&shard->index_lock);
    shard->known = *found;
    pthread_mutex_unlock(&shard->index_lock);
    /* Where a record ends is known once the next one is found. */
    atomic_store_explicit(&shard->known_records, starts > 0 ? starts - 1 : 0, memory_order_release);
}

void presto__shard_hide_known(presto_shard *shard) {
    atomic_store_explicit(&shard->known_records, 0, memory_order_release);
}

void presto__shard_known_places(presto_shard *shard, uint64_t first, presto__places *places_out) {
    pthread_mutex_lock(&shard->index_lock);
    places_out->known_ = shard->known;
    pthread_mutex_unlock(&shard->index_lock);
    places_out->found = &places_out->known_;
    places_out->offsets = (const uint64_t *)(const void *)places_out->known_.offsets.data + first;
}

bool presto__shard_is_indexed(const presto_shard *shard) {
    return atomic_load_explicit(&shard->indexed, memory_order_acquire);
}

uint64_t presto_shard_records(const presto_shard *shard) {
    return presto__shard_is_indexed(shard)
               ? shard->record_count
               : atomic_load_explicit(&shard->known_records, memory_order_acquire);
}
