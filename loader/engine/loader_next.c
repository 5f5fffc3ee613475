/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's side: waiting for packets, handing out their batches, counting what was left out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <presto/numbers.h>

#include "../../base/clock_internal.h"
#include "../../base/thread_internal.h"
#include "workers_internal.h"

/*
 * A consumer that finds nothing looks again after this time, whatever becomes ready meanwhile. This
 * bounds its context switches for any rate of samples. With a shorter time, more of the ready data
 * is still in the cache. With several workers it is longer, because the consumer is then likely to
 * preempt one of them: two switches.
 */
#define NAP_NS 800000
#define NAP_AMONG_SEVERAL_NS 1200000
#define ASK_NS 100000000 /* a waiting consumer asks so often whether to stop */

static presto_status final_failure(presto_loader *loader, const presto_error *error,
                                   presto_error *err) {
    loader->final_status = error->status;
    loader->final_error = *error;
    if (err != NULL)
        *err = *error;
    return error->status;
}

/* ---- stopping ---- */

/* The lock is held, but not while the caller's function runs. */
static bool stops_locked(presto_loader *loader) {
    pthread_mutex_unlock(&loader->pool->lock);
    bool stops = presto__loader_stops(loader);
    pthread_mutex_lock(&loader->pool->lock);
    return stops;
}

static presto_status fail_stopped(presto_loader *loader, presto_error *err) {
    presto_error error;
    (void)presto_fail(&error, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    return final_failure(loader, &error, err);
}

/* ---- waiting ---- */

static struct timespec after(uint64_t ns) {
    uint64_t until = presto__clock_ns() + ns;
    return (struct timespec){.tv_sec = (time_t)(until / 1000000000),
                             .tv_nsec = (long)(until % 1000000000)};
}

/* What the workers have done. Without the lock: the kernel is asked for each of them, and they do
 * not wait for that. */
static presto__tuner_seen see_workers(const presto_loader *loader, uint64_t now_ns) {
    presto__tuner_seen seen = {.now_ns = now_ns};
    for (size_t i = 0; i < loader->worker_count; i++) {
        const presto__worker *worker = &loader->workers[i];
        seen.samples += atomic_load_explicit(&worker->done_samples, memory_order_relaxed);
        seen.runnable_ns += presto__thread_runnable_ns(worker->thread, worker->thread_id);
    }
    return seen;
}

/*
 * Let the tuner look at what the workers have done. If it wants more of them, they are made here.
 * Both take a moment without the lock, which the caller holds. If the machine has no room for
 * another worker, there are no more.
 */
static void tune_locked(presto_loader *loader) {
    presto__tuner *tuner = &loader->tuner;
    presto__pool *pool = loader->pool;
    uint64_t now = presto__clock_ns();
    if (!presto__tuner_is_due(tuner, now))
        return;
    pthread_mutex_unlock(&pool->lock);
    presto__tuner_seen seen = see_workers(loader, now);
    pthread_mutex_lock(&pool->lock);
    seen.room_ns = loader->worker_wait_ns;
    seen.is_full = pool->workers_waiting > 0 || loader->walks;
    if (!presto__tuner_look(tuner, &seen))
        return;
    if (tuner->active > loader->worker_count) {
        presto_error error;
        pthread_mutex_unlock(&pool->lock);
        (void)presto__loader_start_workers(loader, tuner->active, &error);
        pthread_mutex_lock(&pool->lock);
        if (loader->worker_count < tuner->active)
            presto__tuner_limit(tuner, (unsigned)loader->worker_count);
    }
    pthread_cond_broadcast(&loader->spare);
}

/* Sleep until a worker wakes the consumer, or until it is time to ask should_stop or to look at the
 * workers. True: stop. */
static bool sleep_and_stop(presto_loader *loader) {
    presto__pool *pool = loader->pool;
    loader->consumer = PRESTO__CONSUMER_SLEEPS;
    if (loader->options.should_stop == NULL && loader->tuner.most == 0) {
        pthread_cond_wait(&pool->ready, &pool->lock);
        return false;
    }
    struct timespec deadline = after(ASK_NS);
    if (pthread_cond_timedwait(&pool->ready, &pool->lock, &deadline) != ETIMEDOUT)
        return false;
    tune_locked(loader);
    return loader->options.should_stop != NULL && stops_locked(loader);
}

/*
 * The consumer found nothing. It naps once, so that packets that become ready meanwhile are taken
 * together; this saves context switches when packets are small. If there is still nothing, the next
 * packet wakes it.
 */
static void wait_for_packet(presto_loader *loader) {
    presto__pool *pool = loader->pool;
    loader->consumer = PRESTO__CONSUMER_NAPS;
    /* Workers may be waiting for the packets that the consumer held until now. */
    if (loader->active_parts == 0 && pool->workers_waiting > 0)
        pthread_cond_broadcast(&pool->room);
    struct timespec deadline = after(loader->options.threads > 1 ? NAP_AMONG_SEVERAL_NS : NAP_NS);
    int waited = 0;
    while (loader->consumer == PRESTO__CONSUMER_NAPS && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&pool->ready, &pool->lock, &deadline);
    bool stops = false;
    while (!stops && presto__loader_ready_packet(loader) == NULL &&
           !presto__loader_has_ended(loader))
        stops = sleep_and_stop(loader);
    loader->consumer = PRESTO__CONSUMER_LOOKS;
}

/* Wait for the next packet and take it out of the ring; NULL at the end, or if it is to stop. */
static presto__packet *take_packet(presto_loader *loader) {
    presto__pool *pool = loader->pool;
    uint64_t entered = presto__clock_ns();
    pthread_mutex_lock(&pool->lock);
    loader->consumer = PRESTO__CONSUMER_LOOKS;
    presto__packet *packet;
    bool stops = false;
    while ((packet = presto__loader_ready_packet(loader)) == NULL &&
           !presto__loader_has_ended(loader) && !stops) {
        if (loader->options.threads == 0) {
            (void)presto__worker_run_next(&loader->workers[0]);
            stops = stops_locked(loader);
        } else {
            wait_for_packet(loader);
            stops = atomic_load(&loader->is_abandoned);
        }
    }
    if (stops) /* a packet that is ready may be unfinished after an abort */
        packet = NULL;
    loader->consumer = PRESTO__CONSUMER_AWAY;
    uint64_t left = presto__clock_ns();
    if (packet != NULL) {
        loader->slots[packet->number % loader->capacity] = NULL;
        if (loader->options.order.completion)
            loader->done_first = packet->next;
        loader->next_out++;
        loader->packets_out++;
        pool->packets_ready--;
        if (pool->workers_waiting > 0 && pool->packets_ready <= pool->resume_at)
            pthread_cond_broadcast(&pool->room);
    }
    if (loader->last_exit_ns != 0)
        loader->counts.consumer_busy_ns += entered - loader->last_exit_ns;
    loader->counts.consumer_wait_ns += left - entered;
    loader->last_exit_ns = left;
    pthread_mutex_unlock(&pool->lock);
    return packet;
}

/*
 * An endless stream of which a whole epoch gave no batch would never come back. In order of
 * completion, a packet may overtake as many as are under way.
 */
static presto_status check_delivery(presto_loader *loader, const presto__packet *packet,
                                    presto_error *err) {
    uint64_t ahead = loader->options.order.completion ? loader->capacity : 0;
    if (loader->options.range.epochs < PRESTO_EPOCHS_ENDLESS || packet->epoch < 2 + ahead ||
        packet->epoch - 2 - ahead < loader->delivered_epoch)
        return PRESTO_OK;
    presto_error error;
    presto_error_set(&error, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                     "epoch %" PRIu64
                     " delivered no batch: its samples were dropped by steps or left out, or are "
                     "fewer than a batch; an endless stream of such epochs would hang",
                     packet->epoch - 1 - ahead);
    return final_failure(loader, &error, err);
}

/* Too many skipped? Then the packet ends at this sample. */
static bool exceeds_limit(presto_loader *loader, const presto__failed_sample *failed,
                          presto_error *err) {
    if (loader->latest_skipped <= loader->options.errors.skip_limit)
        return false;
    *err = failed->error;
    char message[PRESTO_ERROR_MESSAGE_BYTES];
    snprintf(message, sizeof message,
             "%" PRIu64 " sample%s%s had to be left out, which is more than the %" PRIu64
             " allowed; the last one: %.300s",
             loader->latest_skipped, presto_plural(loader->latest_skipped),
             loader->options.range.epochs == 1 ? "" : " of an epoch",
             loader->options.errors.skip_limit, failed->error.message);
    memcpy(err->message, message, sizeof message);
    return true;
}

/* Report the failed samples of the packet, in order, and count them in the budget. Returns how
 * many they are. */
static size_t report_failed(presto_loader *loader, presto__packet *packet) {
    size_t reported = 0;
    for (size_t i = 0; i < packet->part_count; i++) {
        const presto__packet_part *part = &packet->parts[i];
        for (size_t j = 0; j < part->failed_count; j++) {
            const presto__failed_sample *failed = &part->failed[j];
            if (failed->position >= packet->failed_at)
                return reported;
            loader->skipped_samples++;
            loader->latest_skipped++;
            if (exceeds_limit(loader, failed, &packet->own_error)) {
                presto__packet_cut(packet, failed->position, &packet->own_error,
                                   loader->options.output);
                return reported;
            }
            reported++;
            if (loader->options.errors.on_skip != NULL)
                loader->options.errors.on_skip(loader->options.errors.on_skip_user, packet->epoch,
                                               failed->number, &failed->error);
        }
    }
    return reported;
}

static void report_skipped(presto_loader *loader, presto__packet *packet) {
    if (packet->epoch > loader->latest_epoch) {
        loader->latest_epoch = packet->epoch;
        loader->latest_skipped = 0;
    }
    size_t failed = report_failed(loader, packet);
    /* The others were dropped by steps. */
    loader->dropped_samples += presto__packet_gaps(packet, 0, packet->failed_at) - failed;
}

/* At the end of an epoch: were more samples skipped than the allowed part? */
static presto_status check_fraction(presto_loader *loader, presto_error *err) {
    double allowed = loader->options.errors.skip_fraction * (double)loader->seen_samples;
    if (loader->skipped_samples == 0 || (double)loader->skipped_samples <= allowed)
        return PRESTO_OK;
    presto_error error;
    presto_error_set(&error, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                     "%" PRIu64 " of %" PRIu64
                     " sample%s had to be left out, which is more than the %g %% allowed",
                     loader->skipped_samples, loader->seen_samples,
                     presto_plural(loader->seen_samples),
                     loader->options.errors.skip_fraction * 100);
    return final_failure(loader, &error, err);
}

/* Does the consumer get the batch? */
static bool is_delivered(const presto_loader *loader, const presto__packet_batch *batch) {
    bool is_cut = batch->first + batch->positions > batch->packet->failed_at;
    return batch->shown.rows > 0 && !(is_cut && presto__loader_drops_last(loader));
}

static void count_packet(presto_loader *loader, const presto__packet *packet) {
    uint64_t samples = 0, batches = 0, bytes = packet->frames.bytes;
    for (size_t i = 0; i < packet->batch_count; i++) {
        const presto__packet_batch *batch = &packet->batches[i];
        bool counts = is_delivered(loader, batch);
        samples += counts ? batch->shown.rows : 0;
        batches += counts;
    }
    if (loader->options.output != PRESTO_OUTPUT_RECORDS)
        for (size_t i = 0; i < packet->part_count; i++)
            bytes += packet->parts[i].delivered_bytes;
    pthread_mutex_lock(&loader->pool->lock);
    loader->counts.samples += samples;
    loader->counts.batches += batches;
    loader->counts.delivered_bytes += bytes;
    loader->counts.skipped = loader->skipped_samples;
    loader->counts.dropped = loader->dropped_samples;
    if (loader->tuner.most > 0)
        tune_locked(loader);
    pthread_mutex_unlock(&loader->pool->lock);
}

static void warn(presto_loader *loader) {
    presto_error warning;
    presto_source *source = loader->source;
    presto_warning_fn on_warning = loader->options.errors.on_warning;
    void *user = loader->options.errors.on_warning_user;
    if (on_warning == NULL)
        return;
    if (loader->disk != NULL && presto__disk_take_warning(loader->disk, &warning))
        on_warning(user, &warning);
    while (source->ops->take_warning != NULL && source->ops->take_warning(source, &warning))
        on_warning(user, &warning);
}

static presto_status next_packet(presto_loader *loader, presto_error *err) {
    presto__packet *packet = take_packet(loader);
    if (packet == NULL && atomic_load(&loader->is_abandoned))
        return fail_stopped(loader, err);
    if (packet == NULL && loader->disk != NULL)
        presto__disk_finish(loader->disk); /* at the end of the stream, all stored samples are on
                                            * the disk */
    warn(loader);
    if (packet == NULL) {
        if (loader->unstarted != NULL)
            presto__packet_release(loader->unstarted, 1);
        loader->unstarted = NULL;
        if (loader->has_start_error)
            return final_failure(loader, &loader->start_error, err);
        PRESTO_TRY(check_fraction(loader, err));
        /* All is consumed, also samples left out after the last batch. */
        loader->state_epoch = loader->next_epoch;
        loader->state_next = loader->next_offset;
        loader->final_status = PRESTO_END;
        return PRESTO_END;
    }
    loader->current = packet;
    loader->current_batch = 0;
    if (packet->epoch != loader->current_epoch && loader->seen_samples > 0 &&
        !loader->options.order.completion)
        PRESTO_TRY(check_fraction(loader, err));
    PRESTO_TRY(check_delivery(loader, packet, err));
    loader->current_epoch = packet->epoch;
    loader->seen_samples += packet->count;
    report_skipped(loader, packet);
    count_packet(loader, packet);
    return PRESTO_OK;
}

/* The next batch of the current packet; NULL if it has no more. */
static presto__packet_batch *next_batch(presto_loader *loader) {
    presto__packet *packet = loader->current;
    while (loader->current_batch < packet->batch_count) {
        presto__packet_batch *batch = &packet->batches[loader->current_batch++];
        if (is_delivered(loader, batch))
            return batch;
    }
    return NULL;
}

presto_status presto_loader_next(presto_loader *loader, presto_batch **batch_out,
                                 presto_error *err) {
    if (loader->final_status != PRESTO_OK) {
        if (loader->final_status < 0 && err != NULL)
            *err = loader->final_error;
        return loader->final_status;
    }
    for (;;) {
        if (presto__loader_stops(loader))
            return fail_stopped(loader, err);
        presto__packet_batch *batch = loader->current == NULL ? NULL : next_batch(loader);
        if (batch != NULL) {
            atomic_fetch_add_explicit(&loader->current->refs, 1, memory_order_relaxed);
            loader->state_epoch = loader->delivered_epoch = batch->shown.epoch;
            loader->state_next = batch->shown.first + batch->shown.rows + batch->shown.skipped;
            *batch_out = &batch->shown;
            return PRESTO_OK;
        }
        if (loader->current != NULL) {
            presto__packet *done = loader->current;
            presto_status status = PRESTO_OK;
            if (done->failure != NULL) {
                status = final_failure(loader, done->failure, err);
                loader->failed_at = done->first + done->failed_at;
            } else {
                /* Samples left out after its last batch count as passed. */
                loader->state_epoch = done->epoch;
                loader->state_next = done->first + done->count;
            }
            loader->current = NULL;
            presto__packet_release(done, 1);
            if (status < 0)
                return status;
        }
        presto_status status = next_packet(loader, err);
        if (status != PRESTO_OK)
            return status;
    }
}

void presto_loader_give_back(presto_loader *loader, presto_batch *batch) {
    if (batch == NULL)
        return;
    loader->state_epoch = batch->epoch;
    loader->state_next = batch->first;
    presto_batch_release(batch);
}

uint64_t presto__loader_failed_at(const presto_loader *loader) {
    return loader->failed_at;
}
