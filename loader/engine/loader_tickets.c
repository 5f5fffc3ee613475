/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: which worker does what next, and what becomes of it.
 *
 * A worker waits for room (a free slot of the ring, and bytes within the budget). The consumer
 * waits for the next packet. If nothing is ready and nobody works, a new packet is always admitted,
 * so one of the two can always continue. Both sleep until waking them is worth it: the consumer
 * sleeps for a moment first, unless the workers run out of room before; a worker sleeps until half
 * of the queue is gone. A thread is woken after the lock is released; otherwise it would cost two
 * more context switches.
 *
 * The lock is the pool's. Everything here runs with it held, except the work itself.
 */

#include "../../base/clock_internal.h"
#include "../../base/thread_internal.h"
#include "../../steps/pipelines_internal.h"
#include "workers_internal.h"

#define AHEAD_BYTES ((size_t)32 << 20) /* enough while the consumer naps, or has not come yet */
/* Large batches may exceed the limit by this much, so that one is made while the consumer has
 * the last one. */
#define OVERRUN_BYTES ((size_t)40 << 20)

bool presto__loader_has_ended(const presto_loader *loader) {
    return loader->filling == NULL && loader->active_parts == 0 &&
           loader->pool->packets_ready == 0 && loader->next_packet >= loader->end_packet;
}

presto__packet *presto__loader_ready_packet(const presto_loader *loader) {
    if (loader->options.order.completion)
        return loader->done_first;
    presto__packet *head = loader->slots[loader->next_out % loader->capacity];
    return head != NULL && head->is_finished ? head : NULL;
}

/*
 * Must the consumer be woken? `force`: this worker is about to sleep or to end. Otherwise it
 * continues with the next part, and will be here again.
 */
static bool must_wake(const presto_loader *loader, bool force) {
    if (loader->consumer != PRESTO__CONSUMER_NAPS && loader->consumer != PRESTO__CONSUMER_SLEEPS)
        return false;
    if (presto__loader_has_ended(loader))
        return true;
    return (force || loader->consumer != PRESTO__CONSUMER_NAPS) &&
           presto__loader_ready_packet(loader) != NULL;
}

static void wake_consumer(presto_loader *loader) {
    pthread_cond_signal(&loader->pool->ready);
}

/*
 * Is there enough ready data for a consumer that sleeps? More data would not stay in the
 * processor's cache, and would take processor time from the consumer.
 */
static bool is_far_ahead(const presto_loader *loader) {
    const presto__pool *pool = loader->pool;
    return loader->consumer >= PRESTO__CONSUMER_NAPS && pool->packets_ready >= 2 &&
           pool->packets_ready >= AHEAD_BYTES / pool->packet_bytes &&
           presto__loader_ready_packet(loader) != NULL;
}

/*
 * Where only the stored size of samples is known, packets grow: the first one is made alone and has
 * one batch, later ones have as many samples as have been finished, and not more than are expected
 * to fit. So all workers soon have something to do, and a worker makes as much again as its size
 * was told by, at most.
 */
static size_t most_samples(const presto_loader *loader) {
    const presto__blocking *blocking = &loader->blocking;
    if (!loader->starts_alone || blocking->parts > 1)
        return blocking->packet_samples;
    size_t rows = loader->options.batch_samples == 0 ? 1 : blocking->batch_rows;
    size_t most = loader->learned_samples;
    if (most > blocking->packet_samples)
        most = blocking->packet_samples;
    return most < rows ? rows : most - most % rows;
}

/* What a packet of so many samples is expected to take. */
static size_t expected_bytes(const presto_loader *loader, size_t samples) {
    size_t bytes = loader->pool->packet_bytes, most = most_samples(loader);
    if (!loader->starts_alone || samples >= most)
        return bytes;
    return (size_t)((double)bytes * (double)samples / (double)most);
}

/* A packet is finished: how large is one? */
static void learn_size(presto_loader *loader, const presto__packet *packet, size_t bytes) {
    presto__pool *pool = loader->pool;
    if (!loader->starts_alone || loader->sized_samples >= loader->blocking.packet_samples) {
        if (bytes > pool->packet_bytes || !loader->knows_packet_bytes)
            pool->packet_bytes = bytes;
        loader->knows_packet_bytes = true;
        return;
    }
    if (packet->end > 0) {
        loader->sized_samples += packet->end;
        loader->sized_bytes += bytes;
        double each = (double)loader->sized_bytes / (double)loader->sized_samples;
        double fit = (double)presto__loader_packet_share(loader) / (each + 1);
        double sized = (double)loader->sized_samples;
        loader->learned_samples = (size_t)(fit < sized ? fit : sized);
        pool->packet_bytes = (size_t)(each * (double)most_samples(loader));
    }
    if (!loader->knows_packet_bytes)
        pthread_cond_broadcast(&pool->room);
    loader->knows_packet_bytes = true;
}

static bool has_room(const presto_loader *loader) {
    const presto__pool *pool = loader->pool;
    if (loader->slots[loader->next_packet % loader->capacity] != NULL || is_far_ahead(loader))
        return false;
    /* The first packet shows the size of packets; until then only one is made. */
    if (loader->starts_alone && !loader->knows_packet_bytes && pool->refs > 1)
        return false;
    size_t overrun = 0;
    if (pool->packets_ready == 0 && loader->active_parts == 0) {
        bool is_only_one = pool->refs == 1;
        if (is_only_one || loader->consumer != PRESTO__CONSUMER_AWAY)
            return true;
        /* While the consumer holds a packet, one may be made, even if it exceeds the limit a
         * little. */
        overrun = OVERRUN_BYTES;
    }
    size_t known = pool->free == NULL ? 0 : pool->free->accounted_bytes;
    size_t more = pool->packet_bytes > known ? pool->packet_bytes - known : 0;
    return presto__pool_has_room_locked(pool, more, overrun);
}

/* If the stream starts within an epoch, the epoch's last, incomplete batch is left out here. */
static uint64_t left_in_epoch(const presto_loader *loader) {
    uint64_t left = loader->epoch_samples - loader->next_offset;
    return presto__loader_drops_last(loader) ? left - left % loader->options.batch_samples : left;
}

/* How many samples the next packet has from next_offset on; 0: there is none. */
static size_t next_count(presto_loader *loader) {
    size_t count = 0, most = most_samples(loader);
    if (loader->ranges.list != NULL) {
        presto__ranges_next(&loader->ranges, most, &loader->next_offset, &count);
        return count;
    }
    if (left_in_epoch(loader) == 0 && loader->epochs_left > 0) {
        loader->next_offset = 0;
        loader->next_epoch++;
        loader->epochs_left--;
    }
    if (loader->epochs_left == 0)
        return 0;
    uint64_t left = left_in_epoch(loader);
    if (left > loader->samples_left)
        left = loader->samples_left;
    count = left < most ? (size_t)left : most;
    if (presto__loader_drops_last(loader))
        count -= count % loader->blocking.batch_rows;
    return count;
}

/* Where the next packet starts, and its size; false: there is none. */
static bool next_shape(presto_loader *loader, presto__packet_shape *shape_out) {
    const presto__blocking *blocking = &loader->blocking;
    size_t count = next_count(loader);
    if (count == 0)
        return false;
    size_t part_samples = presto__blocking_part_samples(blocking);
    *shape_out = (presto__packet_shape){
        .number = loader->next_packet,
        .epoch = loader->next_epoch,
        .first = loader->next_offset,
        .count = count,
        .parts = blocking->parts == 1 ? 1 : count / part_samples + (count % part_samples != 0),
        .batch_rows = blocking->batch_rows,
        .rules = &loader->rules};
    return true;
}

/* Start the next packet; at the end, or without memory, end_packet is set instead. */
static void start_packet(presto__worker *worker) {
    presto_loader *loader = worker->loader;
    presto__packet_shape shape;
    if (!next_shape(loader, &shape)) {
        loader->end_packet = loader->next_packet;
        return;
    }
    presto__pool *pool = loader->pool;
    presto__packet *packet = presto__pool_take_locked(pool);
    presto_status status = packet == NULL
                               ? presto_fail_memory(&loader->start_error, sizeof *packet)
                               : presto__packet_setup(packet, &shape, &loader->start_error);
    if (status < 0) {
        loader->has_start_error = true;
        loader->end_packet = loader->next_packet;
        loader->unstarted = packet; /* released later, without the lock */
        return;
    }
    size_t expected = expected_bytes(loader, shape.count);
    if (packet->accounted_bytes < expected) {
        presto__pool_account_locked(pool, packet->accounted_bytes, expected);
        packet->accounted_bytes = expected;
    }
    packet->home = presto__worker_home(worker);
    if (shape.parts > 1) /* several workers share it, and it has one batch */
        presto__packet_clear(packet);
    loader->slots[loader->next_packet % loader->capacity] = packet;
    loader->next_packet++;
    loader->next_offset += shape.count;
    if (loader->samples_left != UINT64_MAX)
        loader->samples_left -= shape.count;
    loader->filling = packet;
}

/* Is this worker not needed at the moment, as the tuner says? */
static bool is_spare(const presto__worker *worker) {
    const presto_loader *loader = worker->loader;
    return loader->tuner.most > 0 && presto__worker_home(worker) > (size_t)loader->tuner.active;
}

/* Wait for room, and take the next part. NULL: there is nothing more to do. */
static presto__packet_part *take_part(presto__worker *worker, presto__packet **packet_out) {
    presto_loader *loader = worker->loader;
    presto__pool *pool = loader->pool;
    for (;;) {
        if (loader->is_stopped)
            return NULL;
        bool spare = is_spare(worker);
        bool must_wait = loader->walks && loader->has_walker;
        if (loader->filling != NULL && !spare && !must_wait)
            break;
        if (loader->filling == NULL && loader->next_packet >= loader->end_packet)
            return NULL;
        if (!spare)
            presto__pool_prefer_locked(pool, presto__worker_home(worker));
        if (!spare && !must_wait && has_room(loader)) {
            start_packet(worker);
            continue;
        }
        if (worker->wakes_consumer || must_wake(loader, true)) {
            loader->consumer = PRESTO__CONSUMER_IS_WOKEN; /* once is enough */
            worker->wakes_consumer = false;
            pthread_mutex_unlock(&pool->lock);
            wake_consumer(loader);
            pthread_mutex_lock(&pool->lock);
            continue;
        }
        if (spare) {
            /* The workers that stay active may be asleep, and must do its work. */
            pthread_cond_broadcast(&pool->room);
            pthread_cond_wait(&loader->spare, &pool->lock);
            continue;
        }
        if (must_wait) {
            presto__worker_await_turn(worker);
            continue;
        }
        uint64_t start = presto__clock_ns();
        pool->workers_waiting++;
        pool->resume_at = pool->packets_ready / 2;
        pthread_cond_wait(&pool->room, &pool->lock);
        pool->workers_waiting--;
        loader->worker_wait_ns += presto__clock_ns() - start;
    }
    presto__packet *packet = loader->filling;
    bool is_sequential = presto__order_is_sequential(&loader->order);
    presto__packet_part *part = presto__packet_take_part_locked(packet, presto__worker_home(worker),
                                                                is_sequential || loader->has_walk);
    if (packet->first_untaken >= packet->last_part)
        loader->filling = NULL;
    worker->part_end =
        part->first + part->count < packet->end ? part->first + part->count : packet->end;
    worker->has_turn = loader->walks;
    loader->has_walker = loader->walks;
    /* A packet that is being filled has parts, which the analyzer does not know. */
    if (is_sequential && !loader->walks) /* else once the records are found */
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
        presto__order_numbers(&loader->order, packet->epoch, packet->first + part->first,
                              worker->part_end - part->first, packet->numbers + part->first);
    loader->active_parts++;
    *packet_out = packet;
    return part;
}

static void end_at(presto_loader *loader, uint64_t packet) {
    if (packet < loader->end_packet)
        loader->end_packet = packet;
}

static void add_account(presto_loader *loader, presto__worker *worker) {
    presto__account *to = &loader->account;
    const presto__read_stats *read = &worker->reader->stats;
    to->read_bytes += read->read_bytes;
    to->read_ns += read->read_ns;
    to->decompress_ns += read->decompress_ns;
    to->parse_ns += read->parse_ns;
    to->steps_ns += worker->account.steps_ns;
    to->encode_ns += worker->account.encode_ns;
    to->batch_ns += worker->account.batch_ns;
    worker->reader->stats = (presto__read_stats){0};
    to->cache_ns += worker->account.cache_ns;
    to->cached_samples += worker->account.cached_samples;
    to->told_samples += worker->account.told_samples;
    to->missed_samples += worker->account.missed_samples;
    to->storage_wait_ns += worker->account.storage_wait_ns;
    to->storage_reads += worker->account.storage_reads;
    worker->account = (presto__account){0};
    for (size_t i = 0; i < loader->step_count; i++)
        worker->step_stats[i] =
            i < loader->cache_step_count
                ? presto__plan_worker_stats(worker->cache_worker, i)
                : presto__plan_worker_stats(worker->plan_worker, i - loader->cache_step_count);
}

static void packet_is_ready(presto_loader *loader, presto__packet *packet, size_t bytes) {
    presto__pool *pool = loader->pool;
    presto__pool_account_locked(pool, packet->accounted_bytes, bytes);
    packet->accounted_bytes = bytes;
    learn_size(loader, packet, bytes);
    if (packet->failure != NULL)
        end_at(loader, packet->number + 1);
    packet->is_finished = true;
    pool->packets_ready++;
    if (!loader->options.order.completion)
        return;
    packet->next = NULL;
    if (loader->done_first == NULL)
        loader->done_first = packet;
    else
        loader->done_last->next = packet;
    loader->done_last = packet;
}

/* Run a part. The lock is held on entry and on return, but not in between. */
static void run_part(presto__worker *worker, presto__packet *packet, presto__packet_part *part) {
    presto_loader *loader = worker->loader;
    presto__pool *pool = loader->pool;
    pthread_mutex_unlock(&pool->lock);
    if (worker->wakes_consumer)
        wake_consumer(loader);
    worker->wakes_consumer = false;

    if (packet->part_count == 1) /* no other worker has it, so the lock is not needed */
        presto__packet_clear(packet);
    presto__worker_run(worker, packet, part);
    bool has_failed = part->has_failed;
    bool is_last = atomic_fetch_sub(&packet->parts_left, 1) == 1;
    size_t bytes = 0;
    if (is_last) {
        if (packet->end < packet->count)
            presto__packet_shorten(packet);
        presto__packet_finish(packet, loader->source, loader->options.output);
        bytes = presto__packet_memory(packet);
    }
    size_t held = presto__worker_memory(worker);

    pthread_mutex_lock(&pool->lock);
    presto__worker_settle_locked(worker, held);
    add_account(loader, worker);
    if (worker->schema.count > 0 && !loader->has_start_error &&
        presto__schema_merge(&loader->schema, &worker->schema, &loader->start_error) < 0) {
        loader->has_start_error = true;
        loader->lacks_schema = true;
        end_at(loader, packet->number + 1);
    }
    if (has_failed)
        end_at(loader, packet->number + 1);
    loader->active_parts--;
    if (is_last)
        packet_is_ready(loader, packet, bytes);
    if (must_wake(loader, false)) {
        loader->consumer = PRESTO__CONSUMER_IS_WOKEN; /* once is enough */
        worker->wakes_consumer = true;                /* after it has released the lock */
    }
}

bool presto__worker_run_next(presto__worker *worker) {
    presto__packet *packet;
    presto__packet_part *part = take_part(worker, &packet);
    if (part != NULL)
        run_part(worker, packet, part);
    return part != NULL;
}

void *presto__worker_main(void *argument) {
    presto__worker *worker = argument;
    presto_loader *loader = worker->loader;
    worker->thread_id = presto__thread_id();
    pthread_mutex_lock(&loader->pool->lock);
    while (presto__worker_run_next(worker)) {}
    bool wakes = must_wake(loader, true) || worker->wakes_consumer;
    pthread_mutex_unlock(&loader->pool->lock);
    if (wakes)
        wake_consumer(loader);
    return NULL;
}
