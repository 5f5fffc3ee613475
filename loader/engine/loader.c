/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and freeing a loader, and its statistics. loader_tickets.c has what its workers do
 * meanwhile, loader_next.c what its consumer does. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>
#include <presto/processors.h>
#include <presto/text.h>

#include "../../base/checked_internal.h"
#include "../../base/clock_internal.h"
#include "../../base/memory_internal.h"
#include "../../base/options_internal.h"
#include "../../base/stop_internal.h"
#include "../../base/thread_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../loader_internal.h"
#include "workers_internal.h"

#define FETCH_BYTES ((size_t)256 << 10) /* fits into the second-level cache from CRC to copy */
#define SHARE_AHEAD                                                                                \
    4 /* of prefetch_bytes, so much is for what a network brings before it is read */
#define RING_PACKETS 256
#define EXPECTED_BATCH_BYTES 1536
#define EXPECTED_PACKET_BYTES ((size_t)16 << 10)
#define EXPECTED_WORKER_BYTES ((size_t)128 << 10)
#define MOST_EXPECTED_WORKER_BYTES ((size_t)1 << 20)

/* ---- opening ---- */

static size_t clamp(uint64_t value, uint64_t least, uint64_t most) {
    return (size_t)(value < least ? least : value > most ? most : value);
}

/* Shapes and sizes come from outside; a larger estimate is of no use. */
#define MOST_EXPECTED_BYTES ((uint64_t)1 << 40)

/* Bytes that one sample is expected to take in a batch. */
static uint64_t expected_row_bytes(const presto_loader *loader, uint64_t stored_bytes) {
    const presto_plan *last = loader->plan != NULL ? loader->plan : loader->cache_plan;
    if (last == NULL)
        return stored_bytes;
    const presto_tensor_spec *spec = presto__plan_output(last);
    size_t bytes = 0;
    if (spec->dtype != PRESTO_STRING && presto_spec_elements(spec) > 0 &&
        presto_spec_bytes(spec, &bytes, NULL) == PRESTO_OK && bytes > 0)
        return bytes;
    return stored_bytes * 4; /* unknown until the first packet is there */
}

/* Choose how much is done at a time, by stored bytes, samples, and the memory that a packet will
 * take. */
static void choose_blocking(presto_loader *loader) {
    const presto_loader_options *options = &loader->options;
    presto__blocking *blocking = &loader->blocking;
    uint64_t count = presto_source_count(loader->source);
    uint64_t mean = loader->walks ? loader->source->mean_bytes
                                  : presto_source_bytes(loader->source) / (count == 0 ? 1 : count);
    mean = clamp(mean, 1, MOST_EXPECTED_BYTES);
    size_t workers = options->threads > 0 ? options->threads : 1;
    size_t block_bytes =
        clamp(loader->packets_bytes / (8 * workers), 1, options->memory.block_bytes);
    /* A part is read at once, if not by number: it is to stay in the processor's cache. */
    if (loader->walks && options->order.shuffle == PRESTO_SHUFFLE_NONE)
        block_bytes = clamp(block_bytes, 1, FETCH_BYTES);
    size_t samples = clamp(block_bytes / mean, 1, options->memory.block_samples);
    uint64_t row_bytes = clamp(expected_row_bytes(loader, mean), 0, MOST_EXPECTED_BYTES);
    samples = clamp(presto__loader_packet_share(loader) / (row_bytes + 1), 1, samples);

    size_t rows = options->batch_samples;
    /* What is only counted has batches if the last one must be full. */
    if (rows == 0 ||
        (options->output == PRESTO_OUTPUT_COUNT && !presto__loader_drops_last(loader)) ||
        (options->output == PRESTO_OUTPUT_RECORDS && rows > samples))
        rows = samples;
    blocking->batch_rows = rows;
    if (rows <= samples) {
        blocking->packet_samples = samples / rows * rows;
        blocking->parts = 1;
    } else {
        /* Parts are for several threads: rows of different sizes are copied when they are joined. */
        blocking->packet_samples = rows;
        blocking->parts =
            workers == 1 && !loader->walks ? 1 : rows / samples + (rows % samples != 0);
    }
    size_t fetch_bytes = clamp(options->memory.prefetch_bytes / (16 * workers), 1, FETCH_BYTES);
    blocking->fetch_samples = clamp(fetch_bytes / mean, 1, blocking->packet_samples);
    /* Estimates until the first packet and the first part show the real sizes. */
    size_t batches = blocking->packet_samples / blocking->batch_rows;
    uint64_t packet_bytes = UINT64_MAX;
    (void)presto__u64_multiply(blocking->packet_samples, row_bytes + 256, &packet_bytes);
    loader->pool->packet_bytes = clamp(packet_bytes, 1, MOST_EXPECTED_BYTES) +
                                 batches * EXPECTED_BATCH_BYTES + EXPECTED_PACKET_BYTES;
    /* Buffers grow by halves. Workers ask for what is more than this. */
    uint64_t fetch = UINT64_MAX;
    (void)presto__u64_multiply(blocking->fetch_samples, mean * 3 / 2, &fetch);
    loader->worker_bytes = clamp(fetch, 1, MOST_EXPECTED_WORKER_BYTES) + EXPECTED_WORKER_BYTES;
}

static bool same_codec(const presto_codec_spec *a, const presto_codec_spec *b) {
    char left[PRESTO_CODEC_TEXT_BYTES], right[PRESTO_CODEC_TEXT_BYTES];
    return strcmp(presto__codec_format(a, left), presto__codec_format(b, right)) == 0 &&
           presto_span_equal(a->dictionary, b->dictionary);
}

static bool is_stored_plain(const presto_source *source) {
    char text[PRESTO_CODEC_TEXT_BYTES];
    const presto_codec_spec *codec = source->ops->codec == NULL ? NULL : source->ops->codec(source);
    return codec == NULL || strcmp(presto__codec_format(codec, text), "none") == 0;
}

/* Is only the stored size of a row known, which steps and codecs change? */
static bool has_unknown_rows(const presto_loader *loader) {
    if (loader->options.output == PRESTO_OUTPUT_COUNT)
        return false;
    const presto_plan *last = loader->plan != NULL ? loader->plan : loader->cache_plan;
    if (last == NULL)
        return !is_stored_plain(loader->source);
    const presto_tensor_spec *spec = presto__plan_output(last);
    return spec->dtype == PRESTO_STRING || presto_spec_elements(spec) == 0;
}

static void choose_records_path(presto_loader *loader, const presto_plan *last) {
    const presto__source_ops *ops = loader->source->ops;
    bool has_steps = loader->step_count > 0;
    char text[PRESTO_CODEC_TEXT_BYTES];
    loader->compresses = strcmp(presto__codec_format(&loader->codec, text), "none") != 0;
    const presto_codec_spec *stored = ops->codec == NULL ? NULL : ops->codec(loader->source);
    if (has_steps || ops->record == NULL)
        loader->delivery = PRESTO__DELIVER_FRAMES;
    else if (stored != NULL && same_codec(stored, &loader->codec))
        loader->delivery = PRESTO__DELIVER_STORED;
    else
        loader->delivery = PRESTO__DELIVER_RECORDS;
    if (loader->codec.type_bytes == 0 && has_steps)
        loader->codec.type_bytes = (unsigned)presto_dtype_bytes(presto__plan_output(last)->dtype);
}

static presto__delivery choose_batches_path(const presto_loader *loader) {
    const presto__source_ops *ops = loader->source->ops;
    const presto_loader_options *options = &loader->options;
    if (loader->step_count > 0)
        return PRESTO__DELIVER_ROWS;
    if (options->batch_samples > 1)
        return options->cache.bytes == 0 && ops->values != NULL && !loader->source->is_raw
                   ? PRESTO__DELIVER_VALUES
                   : PRESTO__DELIVER_ROWS;
    /* If a block holds one record, its tensor can be aligned where it is read. */
    bool is_aligned = loader->blocking.fetch_samples == 1 && is_stored_plain(loader->source);
    return options->batch_samples == 1 && ops->owned != NULL &&
                   (options->unaligned_views || is_aligned)
               ? PRESTO__DELIVER_VIEWS
               : PRESTO__DELIVER_ROWS;
}

static void choose_path(presto_loader *loader) {
    presto_loader_options *options = &loader->options;
    bool has_steps = loader->step_count > 0;
    const presto_plan *last = loader->plan != NULL ? loader->plan : loader->cache_plan;
    loader->starts_alone = has_unknown_rows(loader);
    loader->last_step_drops =
        has_steps &&
        (presto_plan_step_flags(last, presto_plan_step_count(last) - 1) & PRESTO_STEP_DROPS) != 0;
    loader->aligns_views = !options->unaligned_views;
    switch (options->output) {
    case PRESTO_OUTPUT_BATCHES:
        loader->delivery = choose_batches_path(loader);
        break;
    case PRESTO_OUTPUT_RECORDS:
        choose_records_path(loader, last);
        break;
    case PRESTO_OUTPUT_COUNT:
        loader->delivery = PRESTO__DELIVER_COUNT;
        break;
    }
    loader->takes_runs = presto__loader_takes_runs(loader);
}

/* Where the stream starts: skip_samples become first_epoch and first_sample, and fewer epochs. */
static presto_status find_start(presto_loader *loader, presto_error *err) {
    presto_loader_options *options = &loader->options;
    uint64_t each = loader->epoch_samples;
    if (options->range.first_sample > each)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "cannot start at sample %" PRIu64 " of an epoch of %" PRIu64,
                           options->range.first_sample, each);
    uint64_t skip = options->range.skip_samples, rest = each - options->range.first_sample;
    if (skip == UINT64_MAX || (skip <= rest && each > 0)) {
        options->range.first_sample += skip == UINT64_MAX ? 0 : skip;
    } else if (skip > 0) {
        uint64_t epochs = each == 0 ? UINT64_MAX : (skip - rest - 1) / each + 1;
        if (epochs >= options->range.epochs)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "cannot pass over %" PRIu64 " sample%s of a stream of %" PRIu64
                               " x %" PRIu64,
                               skip, presto_plural(skip), options->range.epochs, each);
        options->range.first_epoch += epochs;
        options->range.epochs -= epochs;
        options->range.first_sample = skip - rest - (epochs - 1) * each;
    }
    loader->next_epoch = loader->delivered_epoch = options->range.first_epoch;
    loader->next_offset = options->range.first_sample;
    loader->epochs_left = each == 0 || skip == UINT64_MAX ? 0 : options->range.epochs;
    return PRESTO_OK;
}

static presto_status open_order(presto_loader *loader, presto_error *err) {
    const presto_loader_options *options = &loader->options;
    presto__order_options order = {.count = presto_source_count(loader->source),
                                   .seed = options->order.seed,
                                   .shuffle = options->order.shuffle,
                                   .window = options->order.shuffle_window,
                                   .rank = options->range.rank,
                                   .world = options->range.world,
                                   .drop_last = options->range.drop_last};
    order.parts = presto_source_parts(loader->source, &order.part_count);
    order.count = presto__source_positions(loader->source);
    order.subset = loader->source->subset;
    if (order.count <= 1 && order.part_count == 0) /* samples of a part come in its own order */
        order.shuffle = PRESTO_SHUFFLE_NONE;
    if ((order.shuffle == PRESTO_SHUFFLE_FULL || order.shuffle == PRESTO_SHUFFLE_BLOCKS) &&
        loader->source->ops->check_random_access != NULL)
        PRESTO_TRY(loader->source->ops->check_random_access(loader->source, err));
    PRESTO_TRY(presto__order_init(&loader->order, &order, err));
    loader->epoch_samples = loader->order.epoch_samples;
    if (!loader->walks && presto__loader_drops_last(loader))
        loader->epoch_samples -= loader->epoch_samples % options->batch_samples;
    PRESTO_TRY(find_start(loader, err));
    loader->state_epoch = loader->next_epoch;
    loader->state_next = loader->next_offset;
    loader->samples_left =
        options->range.limit_samples == 0 ? UINT64_MAX : options->range.limit_samples;
    return PRESTO_OK;
}

static void undo_worker(presto_loader *loader, presto__worker *worker) {
    pthread_mutex_lock(&loader->pool->lock);
    presto__worker_settle_locked(worker, 0);
    pthread_mutex_unlock(&loader->pool->lock);
    presto__worker_done(worker);
    *worker = (presto__worker){.loader = loader};
}

/* What all of them need is taken from the budget before the first one runs. */
presto_status presto__loader_start_workers(presto_loader *loader, size_t count, presto_error *err) {
    bool is_inline = loader->options.threads == 0;
    presto_status status = PRESTO_OK;
    size_t made = loader->worker_count;
    for (; made < count && status == PRESTO_OK; made++) {
        presto__worker *worker = &loader->workers[made];
        status = presto__worker_init(worker, loader, err);
        pthread_mutex_lock(&loader->pool->lock);
        presto__worker_settle_locked(worker, status == PRESTO_OK ? loader->worker_bytes : 0);
        pthread_mutex_unlock(&loader->pool->lock);
    }
    while (status == PRESTO_OK && loader->worker_count < made) {
        presto__worker *worker = &loader->workers[loader->worker_count];
        int failed =
            is_inline ? 0 : presto__thread_start(&worker->thread, presto__worker_main, worker);
        worker->is_started = failed == 0 && !is_inline;
        if (failed != 0) {
            status = presto_fail_errno(err, failed, "", "cannot start worker thread");
            break;
        }
        loader->worker_count++;
        if (atomic_load(&loader->is_abandoned)) /* meanwhile: its steps were not told */
            presto__loader_abandon(loader);
    }
    for (size_t i = loader->worker_count; i < made; i++)
        undo_worker(loader, &loader->workers[i]);
    return status;
}

static presto_status start_workers(presto_loader *loader, presto_error *err) {
    size_t most = loader->options.threads > 0 ? loader->options.threads : 1;
    loader->workers = presto__memory_apart(most, sizeof *loader->workers);
    if (loader->workers == NULL)
        return presto_fail_memory(err, most * sizeof *loader->workers);
    return presto__loader_start_workers(loader,
                                        loader->tuner.most > 0 ? loader->tuner.active : most, err);
}

static presto_status open_cache(presto_loader *loader, presto_error *err) {
    const presto_loader_options *options = &loader->options;
    if (options->cache.bytes == 0)
        return PRESTO_OK;
    if (options->cache.dir == NULL) {
        PRESTO_TRY(presto__cache_new(presto__source_all(loader->source), options->cache.bytes,
                                     &loader->cache, err));
        loader->pool->cache = presto__cache_hold(loader->cache);
        return PRESTO_OK;
    }
    presto__disk_options disk = {.dir = options->cache.dir,
                                 .limit_bytes = options->cache.bytes,
                                 .count = presto__source_all(loader->source)};
    PRESTO_TRY(presto__disk_key_of(loader->source, loader->cache_plan, &loader->selection,
                                   &disk.key, err));
    PRESTO_TRY(presto__disk_open(&disk, &loader->disk, err));
    loader->options.cache.dir = NULL; /* the caller's, and no longer needed */
    return PRESTO_OK;
}

/* Workers use the list until they are joined, so it is copied. */
static presto_status copy_ranges(presto_loader *loader, const presto__ranges *ranges,
                                 presto_error *err) {
    loader->ranges = *ranges;
    if (ranges->list == NULL)
        return PRESTO_OK;
    loader->range_list = calloc(ranges->count + 1, sizeof *loader->range_list);
    if (loader->range_list == NULL)
        return presto_fail_memory(err, ranges->count * sizeof *loader->range_list);
    if (ranges->count > 0)
        memcpy(loader->range_list, ranges->list, ranges->count * sizeof *loader->range_list);
    loader->ranges.list = loader->range_list;
    return PRESTO_OK;
}

static presto_status open_loader(presto_loader *loader, presto_error *err) {
    /* A little is reserved for packets that are larger than the earlier ones. */
    size_t limit = loader->options.memory.prefetch_bytes;
    if (loader->source->is_remote && loader->storage == NULL) {
        loader->ahead_bytes = limit / SHARE_AHEAD;
        PRESTO_TRY(presto__ahead_new(loader->ahead_bytes, &loader->ahead, err));
        limit -= loader->ahead_bytes;
        if (loader->packets_bytes > limit)
            loader->packets_bytes = limit;
    }
    PRESTO_TRY(presto__pool_new(limit - limit / 32, &loader->pool, err));
    loader->pool->packets_limit_bytes = loader->packets_bytes - loader->packets_bytes / 32;
    loader->capacity = RING_PACKETS;
    loader->slots = calloc(loader->capacity, sizeof(presto__packet *));
    if (loader->slots == NULL)
        return presto_fail_memory(err, loader->capacity * sizeof(presto__packet *));
    PRESTO_TRY(presto__loader_begin_walk(loader, err));
    choose_blocking(loader);
    choose_path(loader);
    PRESTO_TRY(presto__loader_open_features(loader, err));
    PRESTO_TRY(open_order(loader, err));
    PRESTO_TRY(presto__read_ahead_init(&loader->read_ahead, loader, err));
    PRESTO_TRY(open_cache(loader, err));
    if (loader->options.auto_threads && loader->options.threads > 1) {
        if (pthread_cond_init(&loader->spare, NULL) != 0)
            return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "cannot make a lock");
        presto__tuner_init(&loader->tuner, loader->options.threads, presto_processor_count());
    }
    return start_workers(loader, err);
}

static presto_status open_played(presto_loader *loader, presto_error *err) {
    presto__storage_thread opening;
    PRESTO_TRY(presto__loader_open_storage(loader, err));
    presto__storage_thread *before = presto__loader_bind_opening(loader, &opening);
    presto_status status = open_loader(loader, err);
    (void)presto__storage_bind(before);
    return status;
}

static presto_status open_input(const presto__loader_input *input,
                                const presto_loader_options *options, presto_loader **loader_out,
                                presto_error *err) {
    presto_loader_options resumed;
    presto_source *source = input->source;
    const presto_plan *plan = input->plan;
    if (options->range.state.bytes > 0) {
        resumed = *options;
        PRESTO_TRY(presto_loader_load_state(options->range.state, source, &resumed, err));
        resumed.range.state = (presto_span){0};
        options = &resumed;
    }
    PRESTO_TRY(presto__loader_check_options(source, plan, options, err));
    if (!input->regroups) {
        PRESTO_TRY(presto__loader_check_steps(plan, err));
        PRESTO_TRY(presto__loader_check_steps(options->cache.plan, err));
    }
    presto_loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return presto_fail_memory(err, sizeof *loader);
    presto__sample_notes_init(&loader->notes);
    loader->source = source;
    loader->plan = plan != NULL && presto_plan_step_count(plan) > 0 ? plan : NULL;
    loader->options = *options;
    loader->packets_bytes = options->memory.prefetch_bytes;
    if (input->packets_bytes > 0 && input->packets_bytes < loader->packets_bytes)
        loader->packets_bytes = input->packets_bytes;
    if (options->cache.bytes > 0 && options->cache.plan != NULL &&
        presto_plan_step_count(options->cache.plan) > 0) {
        loader->cache_plan = options->cache.plan;
        loader->cache_step_count = presto_plan_step_count(options->cache.plan);
    }
    loader->step_count =
        loader->cache_step_count + (loader->plan == NULL ? 0 : presto_plan_step_count(plan));
    loader->failed_at = UINT64_MAX;
    loader->end_packet = UINT64_MAX;
    loader->opened_ns = presto__clock_ns();
    presto_status status = copy_ranges(loader, &input->ranges, err);
    if (options->codec != NULL)
        loader->codec = *options->codec;
    else if (status == PRESTO_OK)
        status = presto_codec_parse("none", &loader->codec, err);
    loader->options.codec = NULL;
    if (status == PRESTO_OK)
        status = open_played(loader, err);
    if (status < 0) {
        presto_loader_free(loader);
        return status;
    }
    *loader_out = loader;
    return PRESTO_OK;
}

/* Samples may have to be counted, or a cache on disk to be looked through. */
presto_status presto__loader_open_input(const presto__loader_input *input,
                                        const presto_loader_options *options,
                                        presto_loader **loader_out, presto_error *err) {
    presto__stop_hook pass;
    presto_loader *loader = NULL;
    presto__stop_scope before =
        presto__stop_enter(&pass, options->should_stop, options->should_stop_user);
    presto_status status = open_input(input, options, &loader, err);
    status = presto__stop_leave(&pass, before, status, err);
    if (status < 0)
        presto_loader_free(loader);
    else
        *loader_out = loader;
    return status;
}

presto_status presto__loader_open(presto_source *source, const presto_plan *plan,
                                  const presto_loader_options *options, presto_loader **loader_out,
                                  presto_error *err) {
    presto_loader_options taken;
    PRESTO_TRY(presto__loader_take_options(&taken, options, err));
    const presto__loader_input input = {.source = source, .plan = plan};
    return presto__loader_open_input(&input, &taken, loader_out, err);
}

void presto_loader_free(presto_loader *loader) {
    if (loader == NULL)
        return;
    presto__loader_abandon(loader);
    if (loader->pool != NULL) {
        pthread_mutex_lock(&loader->pool->lock);
        loader->is_stopped = true;
        pthread_cond_broadcast(&loader->pool->room);
        pthread_cond_broadcast(&loader->pool->given);
        if (loader->tuner.most > 0)
            pthread_cond_broadcast(&loader->spare);
        if (loader->has_walk)
            pthread_cond_broadcast(&loader->walked);
        pthread_mutex_unlock(&loader->pool->lock);
    }
    for (size_t i = 0; i < loader->worker_count; i++)
        if (loader->workers[i].is_started)
            pthread_join(loader->workers[i].thread, NULL);
    for (size_t i = 0; i < loader->worker_count; i++)
        presto__worker_done(&loader->workers[i]);
    free(loader->workers);
    presto__loader_end_walk(loader);
    presto__disk_free(loader->disk);
    presto__cache_release(loader->cache);
    if (loader->tuner.most > 0)
        pthread_cond_destroy(&loader->spare);
    for (size_t i = 0; loader->slots != NULL && i < loader->capacity; i++)
        if (loader->slots[i] != NULL)
            presto__packet_release(loader->slots[i], 1);
    free(loader->slots);
    if (loader->current != NULL)
        presto__packet_release(loader->current, 1);
    presto__order_done(&loader->order);
    presto__selection_done(&loader->selection);
    presto__selection_done(&loader->shown);
    presto__rules_done(&loader->rules);
    presto__schema_done(&loader->schema);
    free(loader->range_list);
    presto__read_ahead_done(&loader->read_ahead);
    presto__ahead_free(loader->ahead);
    presto__sample_notes_done(&loader->notes);
    presto__loader_close_storage(loader);
    if (loader->pool != NULL)
        presto__pool_close(loader->pool);
    if (loader->free_owned != NULL)
        loader->free_owned(loader->owned);
    free(loader);
}

void presto__loader_own(presto_loader *loader, void *owned, void (*free_owned)(void *owned)) {
    loader->owned = owned;
    loader->free_owned = free_owned;
}

presto__portions presto__loader_portions(const presto_loader *loader) {
    return (presto__portions){loader->blocking.packet_samples,
                              presto__blocking_part_samples(&loader->blocking)};
}

const presto_source *presto__loader_source(const presto_loader *loader) {
    return loader->source;
}

/* ---- figures ---- */

void presto_loader_get_stats_sized(const presto_loader *loader, presto_loader_stats *stats_out) {
    presto__pool *pool = loader->pool;
    uint64_t now = presto__clock_ns();
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
    stats.storage_wait_ns = account->storage_wait_ns;
    stats.storage_reads = account->storage_reads;
    stats.missed_samples = account->missed_samples;
    stats.cache_bytes = loader->cache == NULL ? 0 : presto__cache_bytes(loader->cache);
    stats.worker_wait_ns = loader->worker_wait_ns;
    stats.queued_bytes = pool->held_bytes;
    stats.peak_queued_bytes = pool->peak_bytes;
    double slots = (double)pool->packets_ready / (double)loader->capacity;
    double bytes = (double)pool->packets_ready * (double)pool->packet_bytes /
                   ((double)pool->packets_limit_bytes + 1);
    stats.queue_fill = bytes > slots ? bytes : slots;
    if (stats.queue_fill > 1)
        stats.queue_fill = 1;
    stats.threads =
        loader->tuner.most > 0 ? presto__tuner_chosen(&loader->tuner) : loader->options.threads;
    pthread_mutex_unlock(&pool->lock);
    if (loader->ahead != NULL) {
        presto__ahead_counts counts = presto__ahead_count(loader->ahead);
        stats.requests = counts.requests;
        stats.request_retries = counts.retries;
        stats.request_seconds = counts.seconds;
    }
    if (loader->disk != NULL) {
        presto__disk_stats disk;
        presto__disk_get_stats(loader->disk, &disk);
        stats.cache_bytes = disk.held_bytes;
        stats.cache_written_bytes = disk.written_bytes;
        stats.cache_damaged_blocks = disk.damaged_blocks;
        stats.cache_evicted_blocks = disk.evicted_blocks;
    }
    stats.wall_ns = now - loader->opened_ns;
    presto__result_give(stats_out, &stats, sizeof stats);
}

bool presto_loader_note_sized(const presto_loader *loader, size_t i, presto_loader_note *note_out) {
    presto__sample_note found;
    presto_loader_note note = {0};
    presto_error place;
    if (!presto__sample_notes_get((presto__sample_notes *)(uintptr_t)&loader->notes, i, &found))
        return false;
    presto_error_set(&place, PRESTO_OK, PRESTO_NO_OFFSET, " ");
    loader->source->ops->locate(loader->source, found.number, &place);
    char file[PRESTO_ERROR_FILE_BYTES], count[PRESTO_TEXT_BYTES], record[32] = "";
    presto_text_show(presto_span_of_text(place.file), file, sizeof file);
    if (place.record != PRESTO_NO_RECORD)
        snprintf(record, sizeof record, "record %" PRIu64 "%s", place.record,
                 file[0] != '\0' ? " of " : "");
    else if (file[0] == '\0')
        snprintf(record, sizeof record, "sample %" PRIu64, found.number);
    note.samples = found.samples;
    snprintf(note.kind, sizeof note.kind, "%s", found.kind);
    snprintf(note.text, sizeof note.text, "%s: %s, e.g. %s%s", found.kind,
             presto_format_things(found.samples, "sample", count), record, file);
    presto__result_give(note_out, &note, sizeof note);
    return true;
}

uint64_t presto_loader_epoch_samples(const presto_loader *loader) {
    uint64_t limit = loader->options.range.limit_samples;
    uint64_t samples = presto__loader_whole_epoch(loader);
    return limit != 0 && limit < samples ? limit : samples;
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
