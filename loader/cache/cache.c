/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory cache: samples as they are after the last deterministic step, by number. It takes
 * samples until it is full and then keeps them. Each sample is needed once an epoch, so evicting
 * one for another gains nothing.
 *
 * There is no lock. An entry is built first, then published by one compare-and-swap, and does not
 * change or disappear before the cache is freed. Batches may show entries in place, so references
 * are counted: the loader has one, the pool of its batches has another.
 */
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../base/checked_internal.h"
#include "cache_internal.h"

#define DATA_ALIGN ((size_t)64)

struct presto__cached {
    size_t feature_count;
    presto_feature *features;
};

struct presto__cache {
    atomic_size_t refs;
    size_t limit_bytes;
    uint64_t count; /* of entries */
    size_t
        entry_bytes; /* that are counted with each sample: of a table that was not counted before */
    atomic_size_t used_bytes;
    atomic_bool is_full;
    _Atomic(presto__cached *) *entries; /* by sample number */
};

/* No sample takes less, so a full cache has no more of them than fit at this size. */
#define LEAST_BYTES (2 * DATA_ALIGN)

presto_status presto__cache_new(uint64_t count, size_t limit_bytes, presto__cache **cache_out,
                                presto_error *err) {
    size_t table = SIZE_MAX;
    bool is_counted = count != PRESTO_COUNT_UNKNOWN;
    if (!is_counted) /* pages of the table that are not used take no memory */
        count = limit_bytes / LEAST_BYTES + 1;
    if (!presto__size_multiply(count, sizeof(_Atomic(presto__cached *)), &table) ||
        table > limit_bytes)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a cache of %zu byte%s is too small even for the list of its samples "
                           "(%zu byte%s)",
                           limit_bytes, presto_plural(limit_bytes), table, presto_plural(table));
    presto__cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return presto_fail_memory(err, sizeof *cache);
    cache->entries = presto__zeroed_array(count, 1, sizeof *cache->entries);
    if (cache->entries == NULL) {
        free(cache);
        return presto_fail_memory(err, table);
    }
    atomic_init(&cache->refs, 1);
    cache->limit_bytes = limit_bytes;
    cache->count = count;
    cache->entry_bytes = is_counted ? 0 : sizeof *cache->entries;
    atomic_init(&cache->used_bytes, is_counted ? table : 0);
    *cache_out = cache;
    return PRESTO_OK;
}

presto__cache *presto__cache_hold(presto__cache *cache) {
    atomic_fetch_add_explicit(&cache->refs, 1, memory_order_relaxed);
    return cache;
}

void presto__cache_release(presto__cache *cache) {
    if (cache == NULL || atomic_fetch_sub_explicit(&cache->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (uint64_t i = 0; i < cache->count; i++)
        free(atomic_load_explicit(&cache->entries[i], memory_order_relaxed));
    free((void *)cache->entries);
    free(cache);
}

const presto__cached *presto__cache_get(const presto__cache *cache, uint64_t number) {
    return number < cache->count
               ? atomic_load_explicit(&cache->entries[number], memory_order_acquire)
               : NULL;
}

size_t presto__cache_bytes(const presto__cache *cache) {
    return atomic_load_explicit(&cache->used_bytes, memory_order_relaxed);
}

static size_t aligned(size_t bytes) {
    return (bytes + DATA_ALIGN - 1) & ~(DATA_ALIGN - 1);
}

/* Bytes that a feature's value and name take, each piece aligned. */
static size_t feature_bytes(const presto_feature *feature) {
    size_t bytes = aligned(feature->name.bytes);
    if (!presto__feature_has_value(feature))
        return bytes;
    if (feature->tensor.spec.dtype != PRESTO_STRING)
        return bytes + aligned(presto_tensor_bytes(&feature->tensor));
    size_t count = (size_t)presto_spec_elements(&feature->tensor.spec);
    size_t text = 0;
    for (size_t i = 0; i < count; i++)
        text += feature->tensor.strings[i].bytes;
    return bytes + aligned(count * sizeof(presto_span)) + aligned(text);
}

static void *take(uint8_t **at, size_t bytes) {
    void *piece = *at;
    *at += aligned(bytes);
    return piece;
}

static const uint8_t *copy_bytes(uint8_t *to, presto_span from) {
    if (from.bytes > 0)
        memcpy(to, from.data, from.bytes);
    return to;
}

static void copy_feature(presto_feature *to, const presto_feature *from, uint8_t **at) {
    *to = *from;
    to->name.data = copy_bytes(take(at, from->name.bytes), from->name);
    if (!presto__feature_has_value(from))
        return;
    if (from->tensor.spec.dtype != PRESTO_STRING) {
        size_t bytes = presto_tensor_bytes(&from->tensor);
        to->tensor.data = copy_bytes(take(at, bytes), presto_span_of(from->tensor.data, bytes));
        return;
    }
    size_t count = (size_t)presto_spec_elements(&from->tensor.spec);
    presto_span *spans = take(at, count * sizeof *spans);
    uint8_t *text = *at;
    for (size_t i = 0; i < count; i++) {
        spans[i] = presto_span_of(copy_bytes(text, from->tensor.strings[i]),
                                  from->tensor.strings[i].bytes);
        text += spans[i].bytes;
    }
    *at += aligned((size_t)(text - *at));
    to->tensor.strings = spans;
}

void presto__cache_put(presto__cache *cache, const presto_sample *sample) {
    if (sample->number >= cache->count ||
        atomic_load_explicit(&cache->is_full, memory_order_relaxed))
        return;
    size_t head =
        aligned(sizeof(presto__cached)) + aligned(sample->feature_count * sizeof *sample->features);
    size_t bytes = head + DATA_ALIGN + cache->entry_bytes;
    for (size_t i = 0; i < sample->feature_count; i++)
        bytes += feature_bytes(&sample->features[i]);
    size_t before = atomic_fetch_add(&cache->used_bytes, bytes);
    presto__cached *entry =
        bytes > cache->limit_bytes || before > cache->limit_bytes - bytes ? NULL : malloc(bytes);
    if (entry == NULL) {
        atomic_fetch_sub(&cache->used_bytes, bytes);
        atomic_store_explicit(&cache->is_full, true, memory_order_relaxed);
        return;
    }
    uint8_t *at = (uint8_t *)(entry + 1);
    at += -(uintptr_t)at & (DATA_ALIGN - 1);
    entry->feature_count = sample->feature_count;
    entry->features = take(&at, sample->feature_count * sizeof *entry->features);
    for (size_t i = 0; i < sample->feature_count; i++)
        copy_feature(&entry->features[i], &sample->features[i], &at);
    presto__cached *expected = NULL;
    if (!atomic_compare_exchange_strong_explicit(&cache->entries[sample->number], &expected, entry,
                                                 memory_order_release, memory_order_relaxed)) {
        /* Another worker stored the same sample: ranks were padded, or two epochs overlap. */
        free(entry);
        atomic_fetch_sub(&cache->used_bytes, bytes);
    }
}

presto_status presto__cached_sample(const presto__cached *entry, uint64_t number,
                                    presto_arena *arena, presto_sample *sample_out,
                                    presto_error *err) {
    /* A copy of the features, because steps replace the main one. */
    size_t bytes = entry->feature_count * sizeof *entry->features;
    presto_feature *features = presto_arena_alloc(arena, bytes, _Alignof(max_align_t));
    if (features == NULL)
        return presto_fail_memory(err, bytes);
    if (bytes > 0)
        memcpy(features, entry->features, bytes);
    *sample_out = (presto_sample){
        .features = features, .feature_count = entry->feature_count, .number = number};
    return PRESTO_OK;
}
