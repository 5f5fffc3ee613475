/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first epoch of a source whose samples are not counted yet. Parts are taken in order, and one
 * worker at a time walks: it finds the samples of its part and reads them. Then the next worker
 * walks, while this one checks them, runs the steps, and so on. Where the source ends, the packet
 * that is being filled becomes shorter. From then on the loader is like any other.
 *
 * A packet is shaped before its samples are found, as if there were enough of them.
 *
 * If the samples are shuffled through a buffer, the worker whose turn it is finds only where they
 * stand, as far ahead as the buffer reaches, and draws those of its part. They are then read by
 * number, as in later epochs.
 */
#include <sched.h>

#include "../../base/checked_internal.h"
#include "../../base/clock_internal.h"
#include "workers_internal.h"

/* A part with more bytes is read in several steps, one after the other. */
#define STEP_BYTES ((size_t)4 << 20)

/* A turn mostly ends sooner than a thread that sleeps would be awake. */
#define LOOK_NS 100000

static bool has_buffer(const presto_loader *loader) {
    return loader->options.order.shuffle == PRESTO_SHUFFLE_BUFFER;
}

/*
 * The stream begins in order or through a buffer, with one rank and without a cache on disk. That
 * cache is asked for each sample before it is read, under a key that says which sample has which
 * number. Numbers depend on how many records the files have, and on damage.
 */
static bool may_walk(const presto_loader *loader) {
    const presto_loader_options *options = &loader->options;
    return loader->source->ops->walk != NULL &&
           (options->order.shuffle == PRESTO_SHUFFLE_NONE || has_buffer(loader)) &&
           options->range.world == 1 && (options->cache.bytes == 0 || options->cache.dir == NULL) &&
           loader->ranges.list == NULL;
}

presto_status presto__loader_begin_walk(presto_loader *loader, presto_error *err) {
    const presto_loader_range *range = &loader->options.range;
    presto_source *source = loader->source;
    if (presto_source_count(source) != PRESTO_COUNT_UNKNOWN)
        return PRESTO_OK;
    uint64_t skip = range->skip_samples == UINT64_MAX ? 0 : range->skip_samples;
    uint64_t ahead = has_buffer(loader) ? loader->options.order.shuffle_window : 0;
    uint64_t number = 0;
    bool fits = presto__u64_add(skip, range->first_sample, &number) &&
                presto__u64_add(number, ahead, &number) && number < PRESTO_COUNT_UNKNOWN;
    /* With drop_last, the start may be behind the last full batch. */
    bool is_sure = fits && (!range->drop_last || skip + range->first_sample == 0);
    if (!may_walk(loader) || !is_sure)
        return presto__source_settle(source, err);
    presto_status status = source->ops->walk->begin(source, number, err);
    if (status != PRESTO_OK)
        return status < 0 ? status : PRESTO_OK;
    int failed = pthread_cond_init(&loader->walked, NULL);
    if (failed != 0) {
        source->ops->walk->end(source);
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    loader->has_walk = true;
    loader->walks = true;
    return PRESTO_OK;
}

void presto__loader_end_walk(presto_loader *loader) {
    if (!loader->has_walk)
        return;
    loader->source->ops->walk->end(loader->source);
    pthread_cond_destroy(&loader->walked);
}

/* The lock is held: how many samples the epoch has, as batches are made. */
static uint64_t without_rest(const presto_loader *loader, uint64_t samples) {
    return presto__loader_drops_last(loader) ? samples - samples % loader->options.batch_samples
                                             : samples;
}

/* The lock is held: the source has `total` samples. The packet and its untaken parts end there. */
static void end_epoch(presto_loader *loader, presto__packet *packet, uint64_t total) {
    loader->walks = false;
    loader->epoch_samples = without_rest(loader, total);
    uint64_t left = without_rest(
        loader, loader->epoch_samples > packet->first ? loader->epoch_samples - packet->first : 0);
    if (left < packet->count) {
        if (loader->samples_left != UINT64_MAX)
            loader->samples_left += packet->count - left;
        packet->end = (size_t)left;
        loader->next_offset = loader->epoch_samples;
    }
    size_t untaken = 0;
    for (size_t i = packet->first_untaken; i < packet->part_count; i++)
        untaken += packet->parts[i].first >= packet->end;
    /* Parts are taken in order, so those that are not needed are the last ones. */
    atomic_fetch_sub(&packet->parts_left, untaken);
    packet->last_part = packet->part_count - untaken;
    if (packet->first_untaken >= packet->last_part && loader->filling == packet)
        loader->filling = NULL;
}

/* The lock is held. */
static void give_turn(presto__worker *worker) {
    presto_loader *loader = worker->loader;
    worker->has_turn = false;
    loader->has_walker = false;
    pthread_cond_broadcast(&loader->walked);
}

void presto__worker_end_turn(presto__worker *worker) {
    if (!worker->has_turn)
        return;
    pthread_mutex_lock(&worker->loader->pool->lock);
    give_turn(worker);
    pthread_mutex_unlock(&worker->loader->pool->lock);
}

void presto__worker_await_turn(presto__worker *worker) {
    presto_loader *loader = worker->loader;
    uint64_t end = presto__clock_ns() + LOOK_NS;
    pthread_mutex_unlock(&loader->pool->lock);
    while (atomic_load_explicit(&loader->has_walker, memory_order_relaxed) &&
           presto__clock_ns() < end)
        sched_yield();
    pthread_mutex_lock(&loader->pool->lock);
    if (loader->walks && loader->has_walker && !loader->is_stopped)
        pthread_cond_wait(&loader->walked, &loader->pool->lock);
}

presto_status presto__worker_walk(presto__worker *worker, size_t first, size_t *count_io,
                                  presto_error *err) {
    presto_loader *loader = worker->loader;
    presto__packet *packet = worker->packet;
    presto__blocks *blocks =
        loader->delivery == PRESTO__DELIVER_VIEWS ? &packet->blocks : &worker->blocks;
    const presto__walk_wish wish = {.count = *count_io, .bytes = STEP_BYTES};
    size_t found = 0;
    if (loader->delivery != PRESTO__DELIVER_VIEWS)
        blocks->count = 0;
    PRESTO_TRY(loader->source->ops->walk->step(worker->reader, &wish, blocks, &found, err));
    uint64_t total = presto_source_count(loader->source);
    pthread_mutex_lock(&loader->pool->lock);
    if (total != PRESTO_COUNT_UNKNOWN)
        end_epoch(loader, packet, total);
    if (found == *count_io || total != PRESTO_COUNT_UNKNOWN)
        give_turn(worker);
    if (worker->part_end > packet->end)
        worker->part_end = packet->end;
    pthread_mutex_unlock(&loader->pool->lock);
    size_t left = worker->part_end > first ? worker->part_end - first : 0;
    *count_io = found < left ? found : left;
    worker->has_walked = *count_io > 0;
    if (!worker->has_walked) /* nothing of what was found is wanted */
        return loader->source->ops->fetch(worker->reader, NULL, 0, blocks, err);
    return PRESTO_OK;
}

/* ---- through a buffer ---- */

/* The lock is held. How many samples of the part can be drawn, if `known` are known in all. */
static size_t drawable(const presto__worker *worker, uint64_t known) {
    const presto__packet *packet = worker->packet;
    size_t first = worker->part->first;
    size_t left = worker->part_end > first ? worker->part_end - first : 0;
    /* Before a sample is drawn, those behind the buffer are asked whether there is one more. */
    uint64_t behind = packet->first + first + worker->loader->order.options.window;
    uint64_t count = known > behind ? known - behind : 0;
    return count < left ? (size_t)count : left;
}

void presto__worker_draw(presto__worker *worker, presto_error *failure_out) {
    presto_loader *loader = worker->loader;
    presto__packet *packet = worker->packet;
    presto__order *order = &loader->order;
    uint64_t first = packet->first + worker->part->first, known = 0;
    uint64_t wanted = first + worker->part->count + order->options.window;
    uint64_t start = presto__clock_ns();
    presto_error failure = {.status = PRESTO_OK};
    presto_status status =
        loader->source->ops->walk->pass(loader->source, wanted, &known, &failure);
    uint64_t total = presto_source_count(loader->source);
    worker->reader->stats.read_ns += presto__clock_ns() - start;
    pthread_mutex_lock(&loader->pool->lock);
    if (total != PRESTO_COUNT_UNKNOWN) {
        order->options.count = total;
        end_epoch(loader, packet, total);
    }
    if (worker->part_end > packet->end)
        worker->part_end = packet->end;
    size_t count = drawable(worker, total == PRESTO_COUNT_UNKNOWN ? known : UINT64_MAX);
    /* What fails behind all that is wanted here fails again for who wants it. */
    bool is_short = worker->part->first + count < worker->part_end;
    if (status < 0 && total == PRESTO_COUNT_UNKNOWN && is_short) {
        worker->part_end = worker->part->first + count;
        packet->numbers[worker->part_end] = known; /* the one that cannot be found */
        *failure_out = failure;
    }
    if (count > 0)
        presto__order_numbers(order, packet->epoch, first, count,
                              packet->numbers + worker->part->first);
    give_turn(worker);
    pthread_mutex_unlock(&loader->pool->lock);
}

uint64_t presto__loader_whole_epoch(const presto_loader *loader) {
    /* Nobody changes it then. In a process that was forked off, the lock may be held for ever. */
    if (!loader->has_walk)
        return loader->epoch_samples;
    pthread_mutex_lock(&loader->pool->lock);
    uint64_t samples = loader->epoch_samples;
    pthread_mutex_unlock(&loader->pool->lock);
    return samples;
}
