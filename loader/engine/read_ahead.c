/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the kernel what will be read next, where it cannot predict it: shuffled records, every W-th
 * record, one file per sample. (It predicts a shard that is read from start to end.) The order is
 * known in advance, so storage can work on many reads at once, although each worker waits for one.
 *
 * The distance depends on how long reads take. It grows while they take as long as storage does;
 * otherwise it shrinks, down to zero if everything is in the page cache. Hints change only the
 * time. A storage that is played gets none: the machine's own is not what is waited for.
 *
 * What comes over a network is requested long before it is read, always and in every order.
 */

#include <stdlib.h>
#include <string.h>

#include "../../base/checked_internal.h"
#include "workers_internal.h"

/* Reads that took longer than this came from storage. */
#define SLOW_SAMPLE_NS 15000
#define SLOW_BYTES_PER_10_NS 14
/* A single slow part may be an accident. */
#define SLOW_PARTS 2

#define MOST_BYTES ((size_t)32 << 20)
#define MOST_SAMPLES 16384
#define TELL_AT_ONCE 64
/* Over a network: */
#define REQUEST_BYTES ((uint64_t)4 << 20) /* a request is about so large */
#define MOST_SINGLE UINT64_C(4096)        /* samples ahead, if each may be a request */
#define MOST_JOINED ((uint64_t)1 << 20)   /* if many are one */

/*
 * What comes over a network is told up to the bytes that its read-ahead may hold, at once: it finds
 * out by itself how much of that it requests at a time (storage/ahead.c).
 */
static presto_status init_remote(presto__read_ahead *ahead, const presto_loader *loader,
                                 uint64_t mean, presto_error *err) {
    const presto__order *order = &loader->order;
    uint64_t most = loader->ahead_bytes / mean;
    /* Shuffled records may be a request each. */
    const uint64_t most_known =
        order->options.shuffle == PRESTO_SHUFFLE_FULL ? MOST_SINGLE : MOST_JOINED;
    ahead->most_samples = most < 1 ? 1 : most < most_known ? most : most_known;
    uint64_t stride = 1, window = order->options.window;
    switch (order->options.shuffle) {
    case PRESTO_SHUFFLE_NONE:
    case PRESTO_SHUFFLE_BUFFER:
        stride = REQUEST_BYTES / mean;
        break;
    case PRESTO_SHUFFLE_BLOCKS: /* a window is told as a whole */
        stride = window <= ahead->most_samples / 2 ? window : 1;
        break;
    case PRESTO_SHUFFLE_FULL:
        break;
    }
    if (stride > PRESTO__TOLD_AT_ONCE)
        stride = PRESTO__TOLD_AT_ONCE;
    if (stride > ahead->most_samples / 4 && order->options.shuffle != PRESTO_SHUFFLE_BLOCKS)
        stride = ahead->most_samples / 4;
    ahead->stride = stride < 1 ? 1 : stride;
    ahead->is_planned = loader->ranges.list == NULL;
    if (presto__order_is_sequential(order)) {
        /* What leaves the buffer is drawn when its part begins. All that is in it is told, if it
         * fits. */
        ahead->shift = order->buffer_capacity;
        ahead->is_planned = ahead->is_planned && order->options.world == 1 &&
                            ahead->shift <= ahead->most_samples / 2;
    }
    ahead->numbers = malloc(PRESTO__TOLD_AT_ONCE * sizeof *ahead->numbers);
    if (ahead->numbers == NULL)
        return presto_fail_memory(err, PRESTO__TOLD_AT_ONCE * sizeof *ahead->numbers);
    int failed = pthread_mutex_init(&ahead->lock, NULL);
    if (failed != 0) {
        free(ahead->numbers);
        ahead->numbers = NULL;
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    ahead->is_remote = true;
    ahead->opened = ahead->ahead = loader->options.range.first_sample;
    return PRESTO_OK;
}

presto_status presto__read_ahead_init(presto__read_ahead *ahead, const presto_loader *loader,
                                      presto_error *err) {
    const presto__order_options *order = &loader->order.options;
    const presto_source *source = loader->source;
    bool is_guessed = source->ops->read_file == NULL && order->shuffle == PRESTO_SHUFFLE_NONE &&
                      order->world == 1;
    /* Only the buffer knows which of its records a rank takes. */
    bool is_unknown = order->shuffle == PRESTO_SHUFFLE_BUFFER && order->world > 1;
    uint64_t count = presto_source_count(source);
    uint64_t mean = count == 0 ? 1 : presto_source_bytes(source) / count + 1;
    if (loader->walks)
        mean = source->mean_bytes + 1;
    if (loader->ahead != NULL && source->ops->will_read != NULL)
        return init_remote(ahead, loader, mean, err);
    size_t bytes = loader->options.memory.prefetch_bytes / 2;
    if (bytes > MOST_BYTES)
        bytes = MOST_BYTES;
    uint64_t most = bytes / mean;
    if (source->ops->will_read == NULL || is_guessed || is_unknown || loader->storage != NULL)
        most = 0;
    ahead->most_samples = most < MOST_SAMPLES ? most : MOST_SAMPLES;
    return PRESTO_OK;
}

void presto__read_ahead_done(presto__read_ahead *ahead) {
    if (!ahead->is_remote)
        return;
    pthread_mutex_destroy(&ahead->lock);
    free(ahead->numbers);
}

/* Positions count from the start of the loader's first epoch. */
static uint64_t position_of(const presto_loader *loader, const presto__packet *packet,
                            uint64_t epoch_samples) {
    return (packet->epoch - loader->options.range.first_epoch) * epoch_samples + packet->first;
}

static uint64_t end_position(const presto_loader *loader, uint64_t epoch_samples) {
    const presto_loader_options *options = &loader->options;
    uint64_t end = UINT64_MAX;
    if (options->range.epochs < UINT64_MAX / epoch_samples)
        end = options->range.epochs * epoch_samples;
    uint64_t limited;
    if (options->range.limit_samples > 0 &&
        presto__u64_add(options->range.first_sample, options->range.limit_samples, &limited) &&
        limited < end)
        end = limited;
    return end;
}

/* The samples at `count` positions of an epoch from `first` on; returns how many there are. */
static size_t numbers_at(presto_loader *loader, uint64_t epoch, uint64_t first, size_t count,
                         uint64_t *numbers) {
    presto__order *order = &loader->order;
    if (!presto__order_is_sequential(order)) {
        presto__order_numbers(order, epoch, first, count, numbers);
        return count;
    }
    /* The numbers that enter the buffer then. */
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = first + i + order->buffer_capacity;
        if (number < order->options.count)
            numbers[known++] = number;
    }
    if (order->options.subset != NULL)
        presto__subset_numbers(order->options.subset, numbers, known);
    return known;
}

/* Samples in the cache are not read; returns how many are left. */
static size_t drop_cached(presto_loader *loader, uint64_t *numbers, size_t count) {
    const presto__cache *cache = loader->pool->cache;
    size_t left = count;
    if (cache != NULL) {
        left = 0;
        for (size_t i = 0; i < count; i++)
            if (presto__cache_get(cache, numbers[i]) == NULL)
                numbers[left++] = numbers[i];
    }
    return loader->disk == NULL ? left : presto__disk_missing(loader->disk, numbers, left);
}

static void tell_numbers(presto__worker *worker, uint64_t *numbers, size_t count) {
    presto_loader *loader = worker->loader;
    count = drop_cached(loader, numbers, count);
    if (count > 0)
        loader->source->ops->will_read(worker->reader, numbers, count);
    worker->account.told_samples += count;
}

static void tell(presto__worker *worker, uint64_t first, uint64_t end, uint64_t epoch_samples) {
    presto_loader *loader = worker->loader;
    uint64_t numbers[TELL_AT_ONCE];
    while (first < end) {
        uint64_t epoch = loader->options.range.first_epoch + first / epoch_samples;
        uint64_t offset = first % epoch_samples;
        uint64_t count = epoch_samples - offset;
        if (count > end - first)
            count = end - first;
        if (count > TELL_AT_ONCE)
            count = TELL_AT_ONCE;
        tell_numbers(worker, numbers, numbers_at(loader, epoch, offset, (size_t)count, numbers));
        first += count;
    }
}

/* While it walks: the records behind the buffer that were found for this part will be read
 * later. */
static void tell_found(presto__worker *worker, const presto__packet *packet,
                       const presto__packet_part *part) {
    const presto_loader *loader = worker->loader;
    uint64_t numbers[TELL_AT_ONCE];
    uint64_t number = packet->first + part->first + loader->order.options.window - 1;
    uint64_t left = worker->part_end > part->first ? worker->part_end - part->first : 0;
    if (left > loader->read_ahead.most_samples)
        left = loader->read_ahead.most_samples;
    while (left > 0) {
        size_t count = 0;
        for (; count < TELL_AT_ONCE && left > 0; left--)
            numbers[count++] = number++;
        tell_numbers(worker, numbers, count);
    }
}

/* In the order of the ranges, as they will be begun: this many samples ahead of the packets. */
static void tell_ranges(presto__worker *worker, uint64_t samples) {
    presto_loader *loader = worker->loader;
    presto__ranges *ahead = &loader->read_ahead.ranges;
    for (;;) {
        uint64_t first;
        size_t count;
        pthread_mutex_lock(&loader->pool->lock);
        if (ahead->passed <= loader->ranges.passed)
            *ahead = loader->ranges;
        bool is_any = ahead->passed < loader->ranges.passed + samples &&
                      presto__ranges_next(ahead, loader->blocking.packet_samples, &first, &count);
        pthread_mutex_unlock(&loader->pool->lock);
        if (!is_any)
            return;
        tell(worker, first, first + count, loader->epoch_samples);
    }
}

/* ---- over a network ---- */

/* With the read-ahead's lock held: the numbers of the next positions of [first, end), of one epoch.
 * How many positions these are, is in *count_out. Returns how many numbers there are. */
static size_t next_numbers(presto_loader *loader, uint64_t epoch_samples, uint64_t first,
                           uint64_t end, size_t *count_out) {
    presto__order *order = &loader->order;
    uint64_t *numbers = loader->read_ahead.numbers;
    uint64_t epoch = loader->options.range.first_epoch + first / epoch_samples;
    uint64_t offset = first % epoch_samples, count = epoch_samples - offset;
    if (count > end - first)
        count = end - first;
    if (count > PRESTO__TOLD_AT_ONCE)
        count = PRESTO__TOLD_AT_ONCE;
    *count_out = (size_t)count;
    if (!presto__order_is_sequential(order)) {
        presto__order_numbers(order, epoch, offset, (size_t)count, numbers);
        return (size_t)count;
    }
    size_t known = 0; /* they enter the buffer in order; an epoch may be padded */
    for (uint64_t i = 0; i < count && offset + i < order->options.count; i++)
        numbers[known++] = offset + i;
    if (order->options.subset != NULL)
        presto__subset_numbers(order->options.subset, numbers, known);
    return known;
}

/* What must be opened for them is requested; up to the end, or as far as there is room. */
static void tell_openings(presto__worker *worker, uint64_t end, uint64_t epoch_samples) {
    presto_loader *loader = worker->loader;
    presto__read_ahead *ahead = &loader->read_ahead;
    size_t count, known, done;
    do {
        if (ahead->opened >= end)
            return;
        known = next_numbers(loader, epoch_samples, ahead->opened, end, &count);
        known = drop_cached(loader, ahead->numbers, known); /* what is not read is not opened */
        done = loader->source->ops->will_open(worker->reader, ahead->numbers, known);
        ahead->opened += done < known ? done : count;
    } while (done == known);
}

static void tell_positions(presto__worker *worker, uint64_t end, uint64_t epoch_samples) {
    presto_loader *loader = worker->loader;
    presto__read_ahead *ahead = &loader->read_ahead;
    while (ahead->ahead < end) {
        size_t count, known = next_numbers(loader, epoch_samples, ahead->ahead, end, &count);
        tell_numbers(worker, ahead->numbers, known);
        ahead->ahead += count;
    }
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/*
 * The part itself is told first. What comes behind it is told a few parts at a time, so that the
 * first part does not wait for the shards of all others to be opened.
 */
static void tell_planned(presto__worker *worker, uint64_t from, size_t count,
                         uint64_t epoch_samples) {
    presto_loader *loader = worker->loader;
    presto__read_ahead *ahead = &loader->read_ahead;
    uint64_t end = end_position(loader, epoch_samples);
    uint64_t own_end = least(from + count + ahead->shift, end);
    uint64_t most = ahead->most_samples + ahead->shift;
    const bool opens = loader->source->ops->will_open != NULL;
    const uint64_t opened_to = from < end ? from + least(2 * most, end - from) : end;
    if (!ahead->has_begun && loader->has_walk)
        ahead->opened = ahead->ahead = from; /* what is before it was walked */
    ahead->has_begun = true;
    if (opens)
        tell_openings(worker, opened_to, epoch_samples);
    while (ahead->ahead < own_end) { /* with those before it, of another worker */
        if (!opens || ahead->opened <= ahead->ahead) {
            tell_positions(worker, own_end, epoch_samples);
        } else { /* opening what has been requested makes room for other shards */
            tell_positions(worker, least(ahead->opened, own_end), epoch_samples);
            tell_openings(worker, opened_to, epoch_samples);
        }
    }
    uint64_t to = from < end ? from + least(most, end - from) : end;
    to = least(to, ahead->ahead + 4 * count + ahead->stride);
    if (opens)
        to = least(to, ahead->opened);
    if (to < end) { /* whole strides of an epoch */
        uint64_t over = to % epoch_samples % ahead->stride;
        to = to > over ? to - over : 0;
    }
    tell_positions(worker, to, epoch_samples);
}

static void tell_remote(presto__worker *worker, const presto__packet *packet,
                        const presto__packet_part *part) {
    presto_loader *loader = worker->loader;
    presto__read_ahead *ahead = &loader->read_ahead;
    uint64_t epoch_samples = presto__loader_whole_epoch(loader);
    if (epoch_samples == PRESTO_COUNT_UNKNOWN || epoch_samples == 0)
        return; /* it walks: what is read next is not known */
    pthread_mutex_lock(&ahead->lock);
    if (ahead->is_planned) {
        tell_planned(worker, position_of(loader, packet, epoch_samples) + part->first, part->count,
                     epoch_samples);
    } else {
        /* Behind the part's end there are no numbers: a walk may have ended there. */
        size_t known = worker->part_end > part->first ? worker->part_end - part->first : 0;
        for (size_t i = 0; i < known; i += PRESTO__TOLD_AT_ONCE) {
            size_t left = known - i;
            size_t count = left < PRESTO__TOLD_AT_ONCE ? left : PRESTO__TOLD_AT_ONCE;
            memcpy(ahead->numbers, packet->numbers + part->first + i, count * sizeof(uint64_t));
            if (loader->source->ops->will_open != NULL)
                (void)loader->source->ops->will_open(worker->reader, ahead->numbers, count);
            tell_numbers(worker, ahead->numbers, count);
        }
    }
    pthread_mutex_unlock(&ahead->lock);
}

void presto__read_ahead_before(presto__worker *worker, const presto__packet *packet,
                               const presto__packet_part *part) {
    presto_loader *loader = worker->loader;
    presto__read_ahead *ahead = &loader->read_ahead;
    if (ahead->is_remote) {
        tell_remote(worker, packet, part);
        return;
    }
    uint64_t samples = atomic_load_explicit(&ahead->samples, memory_order_relaxed);
    if (samples == 0)
        return;
    if (loader->ranges.list != NULL) {
        tell_ranges(worker, samples);
        return;
    }
    uint64_t epoch_samples = presto__loader_whole_epoch(loader);
    if (epoch_samples == PRESTO_COUNT_UNKNOWN) {
        tell_found(worker, packet, part);
        return;
    }
    if (epoch_samples == 0) /* the walk has ended, and found no whole batch */
        return;
    uint64_t from = position_of(loader, packet, epoch_samples) + part->first + part->count;
    uint64_t end = end_position(loader, epoch_samples);
    uint64_t to = from < end && samples < end - from ? from + samples : end;
    uint64_t told = atomic_load_explicit(&ahead->told, memory_order_relaxed);
    uint64_t first;
    do {
        first = told > from ? told : from;
        if (first >= to)
            return;
    } while (!atomic_compare_exchange_weak_explicit(&ahead->told, &told, to, memory_order_relaxed,
                                                    memory_order_relaxed));
    tell(worker, first, to, epoch_samples);
}

/* Did the part's reads take as long as reads from storage? Reads from a cache do not count. */
static bool was_slow(const presto__worker *worker, const presto__packet_part *part) {
    const presto_loader *loader = worker->loader;
    const presto__read_stats *stats = &worker->reader->stats;
    bool has_cache = loader->pool->cache != NULL || loader->disk != NULL;
    uint64_t samples = has_cache ? worker->account.missed_samples : part->count;
    if (loader->disk != NULL && samples < part->count)
        return false; /* the timed reads include those from the cache */
    uint64_t fair_ns = samples * SLOW_SAMPLE_NS + stats->read_bytes * 10 / SLOW_BYTES_PER_10_NS;
    return stats->read_ns > fair_ns;
}

void presto__read_ahead_after(presto__worker *worker, const presto__packet_part *part) {
    presto__read_ahead *ahead = &worker->loader->read_ahead;
    if (ahead->most_samples == 0 || ahead->is_remote)
        return;
    uint64_t samples = atomic_load_explicit(&ahead->samples, memory_order_relaxed);
    bool is_slow = was_slow(worker, part);
    worker->slow_parts = is_slow ? worker->slow_parts + 1 : 0;
    if (!is_slow)
        samples -= samples / 8 + (samples % 8 != 0);
    else if (worker->slow_parts >= SLOW_PARTS)
        samples = samples * 2 > part->count ? samples * 2 : part->count;
    if (samples > ahead->most_samples)
        samples = ahead->most_samples;
    atomic_store_explicit(&ahead->samples, samples, memory_order_relaxed);
}
