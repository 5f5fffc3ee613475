/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader's life: open, hand out, free; tickets to workers, finished packets to the consumer.
 *
 * Who waits for what: a worker waits for room (a free slot of the ring and bytes within the
 * budget), the consumer for the next packet. A new packet is always admitted when nothing is ready
 * and nobody works, so that one of the two can always go on. Both sleep until it is worth waking:
 * the consumer for a moment at first, unless the workers run out of room before, a worker until
 * half of what was queued is gone. Nobody is woken into the lock that the waker still holds: that
 * would cost two more context switches.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <presto/clock.h>

#include "disk_internal.h"

#define DEFAULT_PREFETCH_BYTES ((size_t)256 << 20)
#define DEFAULT_BLOCK_BYTES ((size_t)1 << 20)
#define DEFAULT_BLOCK_SAMPLES 1024
#define FETCH_BYTES ((size_t)256 << 10) /* stays in the second-level cache from CRC to copy */
#define RING_PACKETS 256
#define EXPECTED_BATCH_BYTES 1536
#define EXPECTED_PACKET_BYTES ((size_t)16 << 10)
#define EXPECTED_WORKER_BYTES ((size_t)128 << 10)
/*
 * The consumer that finds nothing looks again after so long, whatever comes ready meanwhile: that
 * bounds its context switches, however fast samples come. The shorter, the more of what is ready is
 * still in the cache. With several workers it is longer, because there the consumer is likely to
 * push one of them aside: two switches.
 */
#define NAP_NS 800000
#define NAP_AMONG_SEVERAL_NS 1500000
#define AHEAD_BYTES ((size_t)32 << 20) /* enough for a consumer that naps, or has not come yet */
/* Large batches may exceed the limit by so much to be made while the consumer has the last one. */
#define OVERRUN_BYTES ((size_t)40 << 20)

void presto_loader_options_defaults(presto_loader_options *options) {
    *options = (presto_loader_options){
        .threads = 1,
        .output = PRESTO_OUTPUT_BATCHES,
        .batch_samples = 1,
        .epochs = 1,
        .world = 1,
        .prefetch_bytes = DEFAULT_PREFETCH_BYTES,
        .block_bytes = DEFAULT_BLOCK_BYTES,
        .block_samples = DEFAULT_BLOCK_SAMPLES,
        .skip_limit = UINT64_MAX,
        .skip_fraction = 1,
        .max_record_bytes = PRESTO_CODEC_MAX_RECORD_BYTES,
    };
    (void)presto_codec_parse("none", &options->codec, NULL);
}

/* ---- opening ---- */

static presto_status check_options(const presto_source *source, const presto_plan *plan,
                                   const presto_loader_options *options, presto_error *err) {
    const char *wrong = NULL;
    if (options->batch_samples == 0 && options->output == PRESTO_OUTPUT_BATCHES)
        wrong = "a batch needs at least one sample";
    else if (options->epochs == 0)
        wrong = "there must be at least one epoch";
    else if (options->world == 0 || options->rank >= options->world)
        wrong = "the rank must be below the world's size";
    else if ((options->shuffle == PRESTO_SHUFFLE_BUFFER ||
              options->shuffle == PRESTO_SHUFFLE_BLOCKS) &&
             options->shuffle_window == 0)
        wrong = "this shuffle needs a window of at least one record";
    else if (!(options->skip_fraction >= 0 && options->skip_fraction <= 1))
        wrong = "the part of samples to skip must be between 0 and 1";
    else if (options->block_samples == 0 || options->block_bytes == 0)
        wrong = "a block needs at least one sample and one byte";
    else if (plan != NULL && presto_plan_step_count(plan) > 0 && source->main_feature == NULL)
        wrong = "it is not known which feature of these records the steps work on";
    else if (options->cache_plan != NULL && presto_plan_is_random(options->cache_plan))
        wrong = "what comes out of a random step cannot be cached";
    else if (options->cache_plan != NULL && options->cache_bytes == 0)
        wrong = "steps before a cache need a cache";
    else if (options->cache_bytes > 0 && options->output == PRESTO_OUTPUT_RECORDS)
        wrong = "a cache goes with batches, not with records";
    else if (options->cache_dir != NULL && options->cache_bytes == 0)
        wrong = "a cache on disk needs a limit";
    if (wrong != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%s", wrong);
    return PRESTO_OK;
}

static size_t clamp(uint64_t value, uint64_t least, uint64_t most) {
    return (size_t)(value < least ? least : value > most ? most : value);
}

/* Bytes that one sample is expected to take in a batch. */
static uint64_t expected_row_bytes(const presto_loader *loader, uint64_t stored_bytes) {
    const presto_plan *last = loader->plan != NULL ? loader->plan : loader->cache_plan;
    if (last == NULL)
        return stored_bytes;
    const presto_tensor_spec *spec = presto_plan_output(last);
    size_t bytes = 0;
    if (spec->dtype != PRESTO_STRING && presto_spec_elements(spec) > 0 &&
        presto_spec_bytes(spec, &bytes, NULL) == PRESTO_OK && bytes > 0)
        return bytes;
    return stored_bytes * 4; /* unknown until the first packet is there */
}

/* How much is done at a time: by stored bytes, samples, and what a packet will take of the budget.
 */
static void choose_blocking(presto_loader *loader) {
    const presto_loader_options *options = &loader->options;
    presto__blocking *blocking = &loader->blocking;
    uint64_t count = loader->source->count;
    uint64_t mean = count == 0 ? 1 : presto_source_bytes(loader->source) / count;
    if (mean == 0)
        mean = 1;
    size_t workers = options->threads > 0 ? options->threads : 1;
    size_t block_bytes = clamp(options->prefetch_bytes / (8 * workers), 1, options->block_bytes);
    size_t samples = clamp(block_bytes / mean, 1, options->block_samples);
    uint64_t row_bytes = expected_row_bytes(loader, mean);
    samples = clamp(options->prefetch_bytes / (4 * (workers + 1)) / (row_bytes + 1), 1, samples);

    size_t rows = options->batch_samples;
    if (options->output == PRESTO_OUTPUT_COUNT || rows == 0 ||
        (options->output == PRESTO_OUTPUT_RECORDS && rows > samples))
        rows = samples;
    blocking->batch_rows = rows;
    if (rows <= samples) {
        blocking->packet_samples = samples / rows * rows;
        blocking->parts = 1;
    } else {
        blocking->packet_samples = rows;
        blocking->parts = rows / samples + (rows % samples != 0);
    }
    size_t fetch_bytes = clamp(options->prefetch_bytes / (16 * workers), 1, FETCH_BYTES);
    blocking->fetch_samples = clamp(fetch_bytes / mean, 1, blocking->packet_samples);
    /* What to reserve until the first packet and the first part have shown what they take. */
    size_t batches = blocking->packet_samples / blocking->batch_rows;
    loader->pool->packet_bytes = (size_t)(blocking->packet_samples * (row_bytes + 256)) +
                                 batches * EXPECTED_BATCH_BYTES + EXPECTED_PACKET_BYTES;
    /* Buffers grow by halves. */
    loader->worker_bytes = (size_t)(blocking->fetch_samples * mean * 3 / 2) + EXPECTED_WORKER_BYTES;
}

static bool same_codec(const presto_codec_spec *a, const presto_codec_spec *b) {
    char left[PRESTO_CODEC_TEXT_BYTES], right[PRESTO_CODEC_TEXT_BYTES];
    return strcmp(presto_codec_format(a, left), presto_codec_format(b, right)) == 0 &&
           presto_span_equal(a->dictionary, b->dictionary);
}

static bool is_stored_plain(const presto_source *source) {
    char text[PRESTO_CODEC_TEXT_BYTES];
    const presto_codec_spec *codec = source->ops->codec == NULL ? NULL : source->ops->codec(source);
    return codec == NULL || strcmp(presto_codec_format(codec, text), "none") == 0;
}

static void choose_path(presto_loader *loader) {
    const presto__source_ops *ops = loader->source->ops;
    presto_loader_options *options = &loader->options;
    bool has_steps = loader->step_count > 0;
    /* Of blocks that hold one record each, the tensor can be aligned where it is read. */
    loader->aligns_views = !options->unaligned_views;
    loader->use_views = options->output == PRESTO_OUTPUT_BATCHES && options->batch_samples == 1 &&
                        !has_steps && ops->owned != NULL &&
                        (options->unaligned_views ||
                         (loader->blocking.fetch_samples == 1 && is_stored_plain(loader->source)));
    if (options->output != PRESTO_OUTPUT_RECORDS)
        return;
    char text[PRESTO_CODEC_TEXT_BYTES];
    loader->compresses = strcmp(presto_codec_format(&options->codec, text), "none") != 0;
    loader->pass_through = !has_steps && ops->record != NULL;
    const presto_codec_spec *stored = ops->codec == NULL ? NULL : ops->codec(loader->source);
    loader->same_codec =
        loader->pass_through && stored != NULL && same_codec(stored, &options->codec);
    if (options->codec.type_bytes == 0 && has_steps)
        options->codec.type_bytes = (unsigned)presto_dtype_bytes(
            presto_plan_output(loader->plan != NULL ? loader->plan : loader->cache_plan)->dtype);
}

static presto_status open_order(presto_loader *loader, presto_error *err) {
    const presto_loader_options *options = &loader->options;
    presto__order_options order = {.count = loader->source->count,
                                   .seed = options->seed,
                                   .shuffle = options->shuffle,
                                   .window = options->shuffle_window,
                                   .rank = options->rank,
                                   .world = options->world,
                                   .drop_last = options->drop_last};
    if (order.count <= 1)
        order.shuffle = PRESTO_SHUFFLE_NONE;
    if ((order.shuffle == PRESTO_SHUFFLE_FULL || order.shuffle == PRESTO_SHUFFLE_BLOCKS) &&
        loader->source->ops->check_random_access != NULL)
        PRESTO_TRY(loader->source->ops->check_random_access(loader->source, err));
    PRESTO_TRY(presto__order_init(&loader->order, &order, err));
    loader->epoch_samples = loader->order.epoch_samples;
    if (options->drop_last && options->output != PRESTO_OUTPUT_RECORDS &&
        options->batch_samples > 0)
        loader->epoch_samples -= loader->epoch_samples % options->batch_samples;
    if (options->first_sample > loader->epoch_samples)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "cannot start at sample %" PRIu64 " of an epoch of %" PRIu64,
                           options->first_sample, loader->epoch_samples);
    loader->next_epoch = options->first_epoch;
    loader->next_offset = options->first_sample;
    loader->state_epoch = loader->next_epoch;
    loader->state_next = loader->next_offset;
    loader->epochs_left = loader->epoch_samples == 0 ? 0 : options->epochs;
    loader->samples_left = options->limit_samples == 0 ? UINT64_MAX : options->limit_samples;
    return PRESTO_OK;
}

static void *worker_main(void *argument);

static presto_status start_workers(presto_loader *loader, presto_error *err) {
    size_t count = loader->options.threads > 0 ? loader->options.threads : 1;
    loader->workers = calloc(count, sizeof *loader->workers);
    if (loader->workers == NULL)
        return presto_fail_memory(err, count * sizeof *loader->workers);
    for (; loader->worker_count < count; loader->worker_count++) {
        presto_status status =
            presto__worker_init(&loader->workers[loader->worker_count], loader, err);
        if (status < 0) {
            loader->worker_count++; /* half built: to be undone as well */
            return status;
        }
        loader->workers[loader->worker_count].held_bytes = loader->worker_bytes;
        presto__pool_account_locked(loader->pool, 0, loader->worker_bytes);
    }
    /* Signals are the program's: its main thread takes them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = 0;
    for (size_t i = 0; i < loader->options.threads && failed == 0; i++) {
        presto__worker *worker = &loader->workers[i];
        failed = pthread_create(&worker->thread, NULL, worker_main, worker);
        worker->is_started = failed == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? PRESTO_OK
                       : presto_fail_errno(err, failed, "", "cannot start worker thread");
}

static presto_status open_cache(presto_loader *loader, presto_error *err) {
    const presto_loader_options *options = &loader->options;
    if (options->cache_bytes == 0)
        return PRESTO_OK;
    if (options->cache_dir == NULL)
        return presto__cache_new(loader->source->count, options->cache_bytes, &loader->pool->cache,
                                 err);
    presto__disk_options disk = {.dir = options->cache_dir,
                                 .limit_bytes = options->cache_bytes,
                                 .count = loader->source->count};
    PRESTO_TRY(presto__disk_key_of(loader->source, loader->cache_plan, &disk.key, err));
    PRESTO_TRY(presto__disk_open(&disk, &loader->disk, err));
    loader->options.cache_dir = NULL; /* the caller's, and no longer needed */
    return PRESTO_OK;
}

static presto_status open_loader(presto_loader *loader, presto_error *err) {
    /* A little is kept back for packets that turn out larger than those before them. */
    size_t limit = loader->options.prefetch_bytes;
    PRESTO_TRY(presto__pool_new(limit - limit / 32, &loader->pool, err));
    loader->capacity = RING_PACKETS;
    loader->slots = calloc(loader->capacity, sizeof(presto__packet *));
    if (loader->slots == NULL)
        return presto_fail_memory(err, loader->capacity * sizeof(presto__packet *));
    choose_blocking(loader);
    choose_path(loader);
    PRESTO_TRY(open_order(loader, err));
    presto__read_ahead_init(&loader->read_ahead, loader);
    PRESTO_TRY(open_cache(loader, err));
    if (loader->options.auto_threads && loader->options.threads > 1) {
        if (pthread_cond_init(&loader->spare, NULL) != 0)
            return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "cannot make a lock");
        presto__tuner_init(&loader->tuner, loader->options.threads);
    }
    return start_workers(loader, err);
}

presto_status presto_loader_open(presto_source *source, const presto_plan *plan,
                                 const presto_loader_options *options, presto_loader **loader_out,
                                 presto_error *err) {
    return presto__loader_open_ranges(source, plan, options, &(presto__ranges){0}, loader_out, err);
}

presto_status presto__loader_open_ranges(presto_source *source, const presto_plan *plan,
                                         const presto_loader_options *options,
                                         const presto__ranges *ranges, presto_loader **loader_out,
                                         presto_error *err) {
    PRESTO_TRY(check_options(source, plan, options, err));
    presto_loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return presto_fail_memory(err, sizeof *loader);
    loader->source = source;
    loader->plan = plan != NULL && presto_plan_step_count(plan) > 0 ? plan : NULL;
    loader->options = *options;
    if (options->cache_bytes > 0 && options->cache_plan != NULL &&
        presto_plan_step_count(options->cache_plan) > 0) {
        loader->cache_plan = options->cache_plan;
        loader->cache_step_count = presto_plan_step_count(options->cache_plan);
    }
    loader->step_count =
        loader->cache_step_count + (loader->plan == NULL ? 0 : presto_plan_step_count(plan));
    loader->ranges = *ranges;
    loader->failed_at = UINT64_MAX;
    loader->end_packet = UINT64_MAX;
    loader->opened_ns = presto_clock_ns();
    presto_status status = open_loader(loader, err);
    if (status < 0) {
        presto_loader_free(loader);
        return status;
    }
    *loader_out = loader;
    return PRESTO_OK;
}

void presto_loader_free(presto_loader *loader) {
    if (loader == NULL)
        return;
    atomic_store(&loader->is_abandoned, true);
    if (loader->pool != NULL) {
        pthread_mutex_lock(&loader->pool->lock);
        loader->is_stopped = true;
        pthread_cond_broadcast(&loader->pool->room);
        if (loader->tuner.most > 0)
            pthread_cond_broadcast(&loader->spare);
        pthread_mutex_unlock(&loader->pool->lock);
    }
    for (size_t i = 0; i < loader->worker_count; i++)
        if (loader->workers[i].is_started)
            pthread_join(loader->workers[i].thread, NULL);
    for (size_t i = 0; i < loader->worker_count; i++)
        presto__worker_done(&loader->workers[i]);
    free(loader->workers);
    presto__disk_free(loader->disk);
    if (loader->tuner.most > 0)
        pthread_cond_destroy(&loader->spare);
    for (size_t i = 0; loader->slots != NULL && i < loader->capacity; i++)
        if (loader->slots[i] != NULL)
            presto__packet_release(loader->slots[i], 1);
    free(loader->slots);
    if (loader->current != NULL)
        presto__packet_release(loader->current, 1);
    presto__order_done(&loader->order);
    presto__schema_done(&loader->schema);
    if (loader->pool != NULL)
        presto__pool_close(loader->pool);
    free(loader);
}

/* ---- tickets: all with the pool's lock held ---- */

static bool has_ended(const presto_loader *loader) {
    return loader->filling == NULL && loader->active_parts == 0 &&
           loader->pool->packets_ready == 0 && loader->next_packet >= loader->end_packet;
}

static presto__packet *ready_packet(const presto_loader *loader) {
    if (loader->options.completion_order)
        return loader->done_first;
    presto__packet *head = loader->slots[loader->next_out % loader->capacity];
    return head != NULL && head->is_finished ? head : NULL;
}

/*
 * Must the consumer be woken? `force`: this worker is about to sleep or to end. Otherwise it goes
 * on to the next part, so that somebody will come by here again.
 */
static bool must_wake(const presto_loader *loader, bool force) {
    if (!loader->consumer_waiting)
        return false;
    if (has_ended(loader))
        return true;
    return (force || !loader->consumer_naps) && ready_packet(loader) != NULL;
}

static void wake_consumer(presto_loader *loader) {
    pthread_cond_signal(&loader->pool->ready);
}

/*
 * Is there enough for a consumer that has nothing to do but has not come yet? More would only be
 * written to memory that is not in the cache, and keep the processor from the consumer.
 */
static bool is_far_ahead(const presto_loader *loader) {
    const presto__pool *pool = loader->pool;
    return loader->consumer_asleep && pool->packets_ready >= 2 &&
           pool->packets_ready >= AHEAD_BYTES / pool->packet_bytes && ready_packet(loader) != NULL;
}

static bool has_room(const presto_loader *loader) {
    const presto__pool *pool = loader->pool;
    if (loader->slots[loader->next_packet % loader->capacity] != NULL || is_far_ahead(loader))
        return false;
    size_t limit = pool->limit_bytes;
    if (pool->packets_ready == 0 && loader->active_parts == 0) {
        bool is_only_one = pool->refs == 1;
        if (is_only_one || loader->consumer_inside)
            return true;
        /* Beside what the consumer holds, one may be under way, even if that is a bit too much. */
        limit = limit > SIZE_MAX - OVERRUN_BYTES ? SIZE_MAX : limit + OVERRUN_BYTES;
    }
    size_t known = pool->free == NULL ? 0 : pool->free->accounted_bytes;
    size_t more = pool->packet_bytes > known ? pool->packet_bytes - known : 0;
    return pool->held_bytes <= limit && more <= limit - pool->held_bytes;
}

/* How many samples the next packet has from next_offset on; 0: there is none. */
static size_t next_count(presto_loader *loader) {
    const presto__blocking *blocking = &loader->blocking;
    size_t count = 0;
    if (loader->ranges.list != NULL) {
        presto__ranges_next(&loader->ranges, blocking->packet_samples, &loader->next_offset,
                            &count);
        return count;
    }
    if (loader->next_offset == loader->epoch_samples && loader->epochs_left > 0) {
        loader->next_offset = 0;
        loader->next_epoch++;
        loader->epochs_left--;
    }
    if (loader->epochs_left == 0)
        return 0;
    uint64_t left = loader->epoch_samples - loader->next_offset;
    if (left > loader->samples_left)
        left = loader->samples_left;
    count = clamp(left, 0, blocking->packet_samples);
    if (loader->options.drop_last && loader->options.output == PRESTO_OUTPUT_BATCHES)
        count -= count % blocking->batch_rows;
    return count;
}

/* The place of the next packet; false if there is none. */
static bool next_shape(presto_loader *loader, presto__packet_shape *shape_out) {
    const presto__blocking *blocking = &loader->blocking;
    size_t count = next_count(loader);
    if (count == 0)
        return false;
    size_t part_samples = blocking->packet_samples / blocking->parts +
                          (blocking->packet_samples % blocking->parts != 0);
    *shape_out = (presto__packet_shape){
        .number = loader->next_packet,
        .epoch = loader->next_epoch,
        .first = loader->next_offset,
        .count = count,
        .parts = blocking->parts == 1 ? 1 : count / part_samples + (count % part_samples != 0),
        .batch_rows = blocking->batch_rows};
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
        loader->unstarted = packet; /* released without the lock */
        return;
    }
    if (packet->accounted_bytes < pool->packet_bytes) {
        presto__pool_account_locked(pool, packet->accounted_bytes, pool->packet_bytes);
        packet->accounted_bytes = pool->packet_bytes;
    }
    packet->home = worker;
    loader->slots[loader->next_packet % loader->capacity] = packet;
    loader->next_packet++;
    loader->next_offset += shape.count;
    if (loader->samples_left != UINT64_MAX)
        loader->samples_left -= shape.count;
    loader->filling = packet;
}

/* Does the tuner do without this worker for now? */
static bool is_spare(const presto__worker *worker) {
    const presto_loader *loader = worker->loader;
    return loader->tuner.most > 0 &&
           (size_t)(worker - loader->workers) >= (size_t)loader->tuner.active;
}

/* The next part to work on; NULL: there is nothing more to do. Waits for room. */
static presto__part *take_part(presto__worker *worker, presto__packet **packet_out) {
    presto_loader *loader = worker->loader;
    presto__pool *pool = loader->pool;
    for (;;) {
        if (loader->is_stopped)
            return NULL;
        bool spare = is_spare(worker);
        if (loader->filling != NULL && !spare)
            break;
        if (loader->filling == NULL && loader->next_packet >= loader->end_packet)
            return NULL;
        if (!spare)
            presto__pool_prefer_locked(pool, worker);
        if (!spare && has_room(loader)) {
            start_packet(worker);
            continue;
        }
        if (worker->wakes_consumer || must_wake(loader, true)) {
            loader->consumer_waiting = false; /* once is enough */
            worker->wakes_consumer = false;
            pthread_mutex_unlock(&pool->lock);
            wake_consumer(loader);
            pthread_mutex_lock(&pool->lock);
            continue;
        }
        if (spare) {
            /* Whatever it leaves undone is for those who work, who may be asleep. */
            pthread_cond_broadcast(&pool->room);
            pthread_cond_wait(&loader->spare, &pool->lock);
            continue;
        }
        uint64_t start = presto_clock_ns();
        pool->workers_waiting++;
        pool->resume_at = pool->packets_ready / 2;
        pthread_cond_wait(&pool->room, &pool->lock);
        pool->workers_waiting--;
        loader->worker_wait_ns += presto_clock_ns() - start;
    }
    presto__packet *packet = loader->filling;
    bool in_order = presto__order_is_sequential(&loader->order);
    presto__part *part = presto__packet_take_part_locked(packet, worker, in_order);
    if (packet->first_untaken == packet->part_count)
        loader->filling = NULL;
    /* A packet that is being filled has its parts; the analyzer thinks that they may be none. */
    if (in_order)
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
        presto__order_numbers(&loader->order, packet->epoch, packet->first + part->first,
                              part->count, packet->numbers + part->first);
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
    worker->account = (presto__account){0};
    for (size_t i = 0; i < loader->step_count; i++)
        worker->step_stats[i] =
            i < loader->cache_step_count
                ? presto_plan_worker_stats(worker->cache_worker, i)
                : presto_plan_worker_stats(worker->plan_worker, i - loader->cache_step_count);
}

static void packet_is_ready(presto_loader *loader, presto__packet *packet, size_t bytes) {
    presto__pool *pool = loader->pool;
    presto__pool_account_locked(pool, packet->accounted_bytes, bytes);
    packet->accounted_bytes = bytes;
    if (bytes > pool->packet_bytes || !loader->knows_packet_bytes)
        pool->packet_bytes = bytes;
    loader->knows_packet_bytes = true;
    if (packet->failure != NULL)
        end_at(loader, packet->number + 1);
    packet->is_finished = true;
    pool->packets_ready++;
    if (!loader->options.completion_order)
        return;
    packet->next = NULL;
    if (loader->done_first == NULL)
        loader->done_first = packet;
    else
        loader->done_last->next = packet;
    loader->done_last = packet;
}

/* Run a part that was taken. The lock is held on entry and on return, but not in between. */
static void run_part(presto__worker *worker, presto__packet *packet, presto__part *part) {
    presto_loader *loader = worker->loader;
    presto__pool *pool = loader->pool;
    pthread_mutex_unlock(&pool->lock);
    if (worker->wakes_consumer)
        wake_consumer(loader);
    worker->wakes_consumer = false;

    presto__worker_run(worker, packet, part);
    bool has_failed = part->has_failed || part->odd_at != SIZE_MAX;
    bool is_last = atomic_fetch_sub(&packet->parts_left, 1) == 1;
    size_t bytes = 0;
    if (is_last) {
        presto__packet_finish(packet, loader->options.output);
        bytes = presto__packet_memory(packet);
    }
    size_t held = presto__worker_memory(worker);

    pthread_mutex_lock(&pool->lock);
    presto__pool_account_locked(pool, worker->held_bytes, held);
    worker->held_bytes = held;
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
        loader->consumer_waiting = false; /* once is enough */
        worker->wakes_consumer = true;    /* as soon as it does not hold the lock */
    }
}

static void *worker_main(void *argument) {
    presto__worker *worker = argument;
    presto_loader *loader = worker->loader;
    presto__packet *packet;
    presto__part *part;
    pthread_mutex_lock(&loader->pool->lock);
    while ((part = take_part(worker, &packet)) != NULL)
        run_part(worker, packet, part);
    bool wakes = must_wake(loader, true) || worker->wakes_consumer;
    pthread_mutex_unlock(&loader->pool->lock);
    if (wakes)
        wake_consumer(loader);
    return NULL;
}

/* ---- handing out ---- */

static presto_status final_failure(presto_loader *loader, const presto_error *error,
                                   presto_error *err) {
    loader->final_status = error->status;
    loader->final_error = *error;
    if (err != NULL)
        *err = *error;
    return error->status;
}

/*
 * The consumer found nothing. It naps once: what comes ready meanwhile comes together, which saves
 * context switches when packets are small. Is there still nothing, the next packet wakes it.
 */
static void wait_for_packet(presto_loader *loader) {
    presto__pool *pool = loader->pool;
    loader->consumer_asleep = true;
    loader->consumer_waiting = true;
    loader->consumer_naps = true;
    /* Workers may have waited for it to let go of what it keeps; now it waits for them. */
    if (loader->active_parts == 0 && pool->workers_waiting > 0)
        pthread_cond_broadcast(&pool->room);
    uint64_t until =
        presto_clock_ns() + (loader->options.threads > 1 ? NAP_AMONG_SEVERAL_NS : NAP_NS);
    struct timespec deadline = {.tv_sec = (time_t)(until / 1000000000),
                                .tv_nsec = (long)(until % 1000000000)};
    int waited = 0;
    while (loader->consumer_waiting && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&pool->ready, &pool->lock, &deadline);
    loader->consumer_naps = false;
    while (ready_packet(loader) == NULL && !has_ended(loader)) {
        loader->consumer_waiting = true;
        pthread_cond_wait(&pool->ready, &pool->lock);
    }
    loader->consumer_waiting = false;
    loader->consumer_asleep = false;
}

/* Wait for the next packet and take it out of the ring; NULL at the end. */
static presto__packet *take_packet(presto_loader *loader) {
    presto__pool *pool = loader->pool;
    uint64_t entered = presto_clock_ns();
    pthread_mutex_lock(&pool->lock);
    loader->consumer_inside = true;
    presto__packet *packet;
    while ((packet = ready_packet(loader)) == NULL && !has_ended(loader)) {
        if (loader->options.threads == 0) {
            presto__packet *taken;
            presto__part *part = take_part(&loader->workers[0], &taken);
            if (part != NULL)
                run_part(&loader->workers[0], taken, part);
            continue;
        }
        wait_for_packet(loader);
    }
    loader->consumer_inside = false;
    uint64_t left = presto_clock_ns();
    if (packet != NULL) {
        loader->slots[packet->number % loader->capacity] = NULL;
        if (loader->options.completion_order)
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

/* Too many skipped? Then the packet ends at this fault. */
static bool exceeds_limit(presto_loader *loader, const presto__fault *fault, presto_error *err) {
    if (loader->skipped_samples <= loader->options.skip_limit)
        return false;
    *err = fault->error;
    char message[PRESTO_ERROR_MESSAGE_BYTES];
    snprintf(message, sizeof message,
             "%" PRIu64 " samples had to be left out, which is more than the %" PRIu64
             " allowed; the last one: %.300s",
             loader->skipped_samples, loader->options.skip_limit, fault->error.message);
    memcpy(err->message, message, sizeof message);
    return true;
}

/* Report what was left out of the packet, in order, and hold it against the budget. */
static void report_skipped(presto_loader *loader, presto__packet *packet) {
    for (size_t i = 0; i < packet->part_count; i++) {
        const presto__part *part = &packet->parts[i];
        for (size_t j = 0; j < part->fault_count; j++) {
            const presto__fault *fault = &part->faults[j];
            if (fault->position >= packet->failed_at)
                return;
            loader->skipped_samples++;
            if (exceeds_limit(loader, fault, &packet->ragged_error)) {
                presto__packet_cut(packet, fault->position, &packet->ragged_error,
                                   loader->options.output);
                return;
            }
            if (loader->options.on_skip != NULL)
                loader->options.on_skip(loader->options.on_skip_user, packet->epoch, fault->number,
                                        &fault->error);
        }
    }
}

/* At the end of an epoch: was more skipped than the part allowed? */
static presto_status check_fraction(presto_loader *loader, presto_error *err) {
    double allowed = loader->options.skip_fraction * (double)loader->seen_samples;
    if (loader->skipped_samples == 0 || (double)loader->skipped_samples <= allowed)
        return PRESTO_OK;
    presto_error error;
    presto_error_set(&error, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                     "%" PRIu64 " of %" PRIu64
                     " samples had to be left out, which is more than the %g %% allowed",
                     loader->skipped_samples, loader->seen_samples,
                     loader->options.skip_fraction * 100);
    return final_failure(loader, &error, err);
}

static void count_packet(presto_loader *loader, const presto__packet *packet) {
    uint64_t samples = 0, batches = 0, bytes = packet->frames.bytes;
    for (size_t i = 0; i < packet->batch_count; i++) {
        samples += packet->batches[i].shown.rows;
        batches += packet->batches[i].shown.rows > 0;
    }
    if (loader->options.output != PRESTO_OUTPUT_RECORDS)
        for (size_t i = 0; i < packet->part_count; i++)
            bytes += packet->parts[i].delivered_bytes;
    pthread_mutex_lock(&loader->pool->lock);
    loader->counts.samples += samples;
    loader->counts.batches += batches;
    loader->counts.delivered_bytes += bytes;
    loader->counts.skipped = loader->skipped_samples;
    if (loader->tuner.most > 0 && presto__tuner_add(&loader->tuner, bytes, presto_clock_ns()))
        pthread_cond_broadcast(&loader->spare);
    pthread_mutex_unlock(&loader->pool->lock);
}

static void warn(presto_loader *loader) {
    presto_error warning;
    if (loader->disk != NULL && presto__disk_take_warning(loader->disk, &warning) &&
        loader->options.on_warning != NULL)
        loader->options.on_warning(loader->options.on_warning_user, &warning);
}

static presto_status next_packet(presto_loader *loader, presto_error *err) {
    presto__packet *packet = take_packet(loader);
    if (packet == NULL && loader->disk != NULL)
        presto__disk_finish(loader->disk); /* whoever looks at the end finds all that was stored */
    warn(loader);
    if (packet == NULL) {
        if (loader->unstarted != NULL)
            presto__packet_release(loader->unstarted, 1);
        loader->unstarted = NULL;
        if (loader->has_start_error)
            return final_failure(loader, &loader->start_error, err);
        PRESTO_TRY(check_fraction(loader, err));
        /* All is consumed, samples left out after the last batch included. */
        loader->state_epoch = loader->next_epoch;
        loader->state_next = loader->next_offset;
        loader->final_status = PRESTO_END;
        return PRESTO_END;
    }
    loader->current = packet;
    loader->current_batch = 0;
    if (packet->epoch != loader->current_epoch && loader->seen_samples > 0 &&
        !loader->options.completion_order)
        PRESTO_TRY(check_fraction(loader, err));
    loader->current_epoch = packet->epoch;
    loader->seen_samples += packet->count;
    report_skipped(loader, packet);
    count_packet(loader, packet);
    return PRESTO_OK;
}

/* The next batch of the current packet; NULL if it has no more. */
static presto__batch *next_batch(presto_loader *loader) {
    presto__packet *packet = loader->current;
    while (loader->current_batch < packet->batch_count) {
        presto__batch *batch = &packet->batches[loader->current_batch++];
        bool is_cut = batch->first + batch->positions > packet->failed_at;
        if (batch->shown.rows > 0 && !(is_cut && loader->options.drop_last))
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
        presto__batch *batch = loader->current == NULL ? NULL : next_batch(loader);
        if (batch != NULL) {
            atomic_fetch_add_explicit(&loader->current->refs, 1, memory_order_relaxed);
            loader->state_epoch = batch->shown.epoch;
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

/* ---- figures ---- */

void presto_loader_get_stats(const presto_loader *loader, presto_loader_stats *stats_out) {
    presto__pool *pool = loader->pool;
    uint64_t now = presto_clock_ns();
    pthread_mutex_lock(&pool->lock);
    presto_loader_stats stats = loader->counts;
    const presto__account *account = &loader->account;
    stats.read_bytes = account->read_bytes;
    stats.read_ns = account->read_ns;
    stats.decompress_ns = account->decompress_ns;
    stats.parse_ns = account->parse_ns;
    stats.steps_ns = account->steps_ns;
    stats.encode_ns = account->encode_ns;
    stats.batch_ns = account->batch_ns;
    stats.cache_ns = account->cache_ns;
    stats.cached_samples = account->cached_samples;
    stats.read_ahead_samples = account->told_samples;
    stats.missed_samples = account->missed_samples;
    stats.cache_bytes = pool->cache == NULL ? 0 : presto__cache_bytes(pool->cache);
    stats.worker_wait_ns = loader->worker_wait_ns;
    stats.queued_bytes = pool->held_bytes;
    stats.peak_queued_bytes = pool->peak_bytes;
    double slots = (double)pool->packets_ready / (double)loader->capacity;
    double bytes =
        (double)pool->packets_ready * (double)pool->packet_bytes / ((double)pool->limit_bytes + 1);
    stats.queue_fill = bytes > slots ? bytes : slots;
    if (stats.queue_fill > 1)
        stats.queue_fill = 1;
    stats.threads =
        loader->tuner.most > 0 ? presto__tuner_chosen(&loader->tuner) : loader->options.threads;
    pthread_mutex_unlock(&pool->lock);
    if (loader->disk != NULL) {
        presto__disk_stats disk;
        presto__disk_get_stats(loader->disk, &disk);
        stats.cache_bytes = disk.held_bytes;
        stats.cache_written_bytes = disk.written_bytes;
        stats.cache_damaged_blocks = disk.damaged_blocks;
        stats.cache_evicted_blocks = disk.evicted_blocks;
    }
    stats.wall_ns = now - loader->opened_ns;
    *stats_out = stats;
}

presto_step_stats presto_loader_step_stats(const presto_loader *loader, size_t step) {
    presto_step_stats sum = {0};
    pthread_mutex_lock(&loader->pool->lock);
    for (size_t i = 0; step < loader->step_count && i < loader->worker_count; i++) {
        const presto_step_stats *one = &loader->workers[i].step_stats[step];
        sum.samples += one->samples;
        sum.busy_ns += one->busy_ns;
        sum.out_bytes += one->out_bytes;
    }
    pthread_mutex_unlock(&loader->pool->lock);
    return sum;
}

uint64_t presto_loader_epoch_samples(const presto_loader *loader) {
    uint64_t limit = loader->options.limit_samples;
    return limit != 0 && limit < loader->epoch_samples ? limit : loader->epoch_samples;
}

presto_status presto__loader_schema_into(presto_loader *loader, presto__schema *schema,
                                         presto_error *err) {
    pthread_mutex_lock(&loader->pool->lock);
    presto_status status = loader->lacks_schema
                               ? presto_fail_memory(err, 0)
                               : presto__schema_merge(schema, &loader->schema, err);
    pthread_mutex_unlock(&loader->pool->lock);
    return status;
}
