/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker does with one part: read, decompress, parse, run the steps, and store the result.
 * It takes no lock per sample. One exception: for the first row of a part of a shared batch, it may
 * have to lay the batch out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/example.h>

#include "../../base/clock_internal.h"
#include "../../base/memory_internal.h"
#include "../../base/retry_internal.h"
#include "../../base/stop_internal.h"
#include "../../base/tensor_internal.h"
#include "../../steps/pipelines_internal.h"
#include "workers_internal.h"

/* Of the samples of a part, about so many are timed, or one in MOST_STRIDE of many. */
#define LEAST_TIMED 8
#define MOST_STRIDE 16

static bool stops_inline(void *loader) {
    return presto__loader_stops(loader);
}

/* A step tells something of the sample being run. */
static void note(void *user, const char *step, const char *text) {
    presto__worker *worker = user;
    presto__sample_notes_add(&worker->loader->notes, step, text,
                             worker->packet->numbers[worker->position]);
}

presto_status presto__worker_init(presto__worker *worker, presto_loader *loader,
                                  presto_error *err) {
    worker->loader = loader;
    presto__worker_open_arena(worker);
    const presto__source_ops *ops = loader->source->ops;
    presto__reader_options options = {
        .max_record_bytes = loader->options.memory.max_record_bytes,
        .features = loader->source->features,
        .feature_count = loader->source->feature_count,
    };
    if (!loader->selection.is_all) {
        options.features = loader->selection.features;
        options.feature_count = loader->selection.count;
        options.only = true;
    }
    PRESTO_TRY(ops->reader_new(loader->source, &options, &worker->reader, err));
    worker->reader->aligns = loader->aligns_views;
    worker->reader->grower = &worker->arena;
    bool plays = presto__worker_open_storage(worker);
    const presto__plan_worker_options steps = {
        .struct_bytes = sizeof steps,
        .arena = &worker->arena,
        .read_file = plays && ops->read_file != NULL ? presto__worker_read_file : ops->read_file,
        .read_file_user = plays ? (void *)worker : worker->reader,
        /* Without threads, nobody else asks while a step waits. */
        .should_stop = loader->options.threads == 0 ? stops_inline : NULL,
        .should_stop_user = loader,
        .on_return = presto__worker_return,
        .on_note = note,
        .on_note_user = worker};
    if (loader->cache_plan != NULL)
        PRESTO_TRY(presto__plan_worker_new(loader->cache_plan, &steps, &worker->cache_worker, err));
    if (loader->disk != NULL)
        PRESTO_TRY(presto__disk_worker_new(loader->disk, loader->blocking.fetch_samples,
                                           &worker->disk, err));
    const presto__blocking *blocking = &loader->blocking;
    size_t most = blocking->packet_samples / blocking->parts + 1; /* in a part */
    if (loader->cache != NULL || loader->disk != NULL) {
        worker->hits = presto__memory_apart(blocking->fetch_samples, sizeof *worker->hits);
        worker->missing = presto__memory_apart(blocking->fetch_samples, sizeof *worker->missing);
        if (worker->hits == NULL || worker->missing == NULL)
            return presto_fail_memory(err, blocking->fetch_samples * sizeof(uint64_t));
    }
    if (loader->order.options.part_count > 0) {
        worker->epochs = presto__memory_apart(most, sizeof *worker->epochs);
        if (worker->epochs == NULL)
            return presto_fail_memory(err, most * sizeof *worker->epochs);
    }
    if (loader->plan != NULL)
        PRESTO_TRY(presto__plan_worker_new(loader->plan, &steps, &worker->plan_worker, err));
    if (loader->options.output == PRESTO_OUTPUT_RECORDS && loader->compresses)
        PRESTO_TRY(presto_codec_new(&loader->codec, &worker->codec, err));
    if (loader->step_count > 0) {
        worker->step_stats = calloc(loader->step_count, sizeof *worker->step_stats);
        if (worker->step_stats == NULL)
            return presto_fail_memory(err, loader->step_count * sizeof *worker->step_stats);
    }
    return PRESTO_OK;
}

void presto__worker_done(presto__worker *worker) {
    presto__plan_worker_free(worker->cache_worker);
    presto__plan_worker_free(worker->plan_worker);
    presto__disk_worker_free(worker->disk);
    free((void *)worker->hits);
    free(worker->missing);
    free(worker->epochs);
    if (worker->reader != NULL)
        worker->loader->source->ops->reader_free(worker->reader);
    presto_codec_free(worker->codec);
    presto__blocks_done(&worker->blocks);
    presto_arena_done(&worker->arena);
    presto_buffer_done(&worker->raw);
    presto__schema_done(&worker->schema);
    free(worker->step_stats);
}

/* Add the place of the sample being run. If it does not fit the rows before it, the byte is left
 * out: which worker notices that, and from where it read the sample, is chance. */
static void place(presto__worker *worker, presto_status status, presto_error *err) {
    const presto_source *source = worker->loader->source;
    if (worker->index != SIZE_MAX && status != PRESTO_ERR_RAGGED)
        source->ops->place(worker->reader, worker->index, err);
    else
        source->ops->locate(source, worker->packet->numbers[worker->position], err);
}

/* ---- one sample ---- */

static presto_status find_main(presto__worker *worker, presto_error *err) {
    const presto_sample *sample = worker->sample;
    const char *name = worker->loader->source->main_feature;
    if (worker->loader->step_count == 0)
        return PRESTO_OK;
    worker->main = SIZE_MAX;
    if (name != NULL)
        worker->main = presto__sample_find(sample, presto_span_of_text(name));
    if (worker->main != SIZE_MAX)
        return PRESTO_OK;
    if (name == NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "it is not known which feature the steps work on");
    char names[PRESTO_ERROR_MESSAGE_BYTES - 64] = "";
    size_t used = 0;
    for (size_t i = 0; i < sample->feature_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.*s", i == 0 ? "" : ", ",
                                 (int)(sample->features[i].name.bytes & 0xff),
                                 (const char *)sample->features[i].name.data);
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                       "the sample has no feature \"%s\" for the steps to work on, only %s%s", name,
                       names[0] == '\0' ? "none at all" : names,
                       worker->loader->selection.is_all ? "" : " (of those looked for)");
}

/* Do its samples have epochs of their own? Not those that were picked by number. */
static bool is_mixed(const presto__worker *worker) {
    return worker->epochs != NULL && worker->loader->order.list == NULL;
}

/* The epoch that random steps draw by. */
static uint64_t sample_epoch(const presto__worker *worker) {
    return is_mixed(worker) ? worker->epochs[worker->position - worker->part->first]
                            : worker->packet->epoch;
}

/* PRESTO_DROP: a step does not want the sample. */
static presto_status run_steps(presto__worker *worker, presto__plan_worker *steps, bool is_last,
                               presto_error *err) {
    presto_loader *loader = worker->loader;
    presto__plan_run_options options = {.struct_bytes = sizeof options,
                                        .seed = loader->options.order.seed,
                                        .epoch = sample_epoch(worker),
                                        .main = worker->main,
                                        .output = is_last ? presto__worker_give_row : NULL,
                                        .output_user = worker};
    uint64_t scale = worker->time_scale;
    uint64_t read_before = worker->reader->stats.read_ns;
    uint64_t start = scale == 0 ? 0 : presto__clock_ns();
    presto__storage_thread *played = loader->storage == NULL ? NULL : presto__storage_bind(NULL);
    presto_status status = presto__plan_run(steps, &options, worker->sample, err);
    if (played != NULL)
        (void)presto__storage_bind(played);
    if (scale != 0) {
        uint64_t spent = presto__clock_ns() - start;
        uint64_t reading = worker->reader->stats.read_ns - read_before;
        worker->account.steps_ns += (spent > reading ? spent - reading : 0) * scale;
    }
    return status;
}

static void put_in_cache(presto__worker *worker, const presto_sample *sample) {
    presto__cache *cache = worker->loader->cache;
    if (cache == NULL && worker->disk == NULL)
        return;
    worker->account.missed_samples++;
    uint64_t start = worker->time_scale == 0 ? 0 : presto__clock_ns();
    if (cache != NULL)
        presto__cache_put(cache, sample);
    else
        presto__disk_put(worker->disk, sample);
    if (worker->time_scale != 0)
        worker->account.cache_ns += (presto__clock_ns() - start) * worker->time_scale;
}

/* The sample after the cache: from the cache, or read, processed and stored there. PRESTO_DROP
 * as run_steps. */
static presto_status get_sample(presto__worker *worker, presto_arena *arena,
                                presto_sample *sample_out, presto_error *err) {
    presto_loader *loader = worker->loader;
    worker->sample = sample_out;
    if (worker->index == SIZE_MAX) {
        worker->account.cached_samples++;
        if (worker->disk != NULL)
            PRESTO_TRY(presto__disk_sample(worker->disk, arena, sample_out, err));
        else
            PRESTO_TRY(presto__cached_sample(worker->hit, worker->packet->numbers[worker->position],
                                             arena, sample_out, err));
        return find_main(worker, err);
    }
    PRESTO_TRY(loader->source->ops->sample(worker->reader, worker->index, arena, sample_out, err));
    if (!worker->reader->is_selective)
        presto__selection_apply(&loader->selection, sample_out);
    PRESTO_TRY(find_main(worker, err));
    presto_status status = PRESTO_OK;
    if (loader->cache_plan != NULL)
        status = run_steps(worker, worker->cache_worker, loader->plan == NULL, err);
    if (status == PRESTO_OK)
        put_in_cache(worker, sample_out);
    return status;
}

static presto_status run_view(presto__worker *worker, presto_error *err) {
    presto_loader *loader = worker->loader;
    const presto__source_ops *ops = loader->source->ops;
    presto_arena *arena = &worker->packet->arena;
    presto_sample sample;
    presto_status status = get_sample(worker, arena, &sample, err);
    if (status != PRESTO_OK)
        return status;
    bool is_ours = worker->index == SIZE_MAX || ops->owned(worker->reader, worker->index);
    if (is_ours && (!loader->aligns_views || presto__batch_may_view(&sample))) {
        presto__place place = presto__worker_row(worker);
        return presto__fill_view(
            &place, &sample, loader->aligns_views ? PRESTO__VIEW_ALIGNED : PRESTO__VIEW_UNALIGNED,
            err);
    }
    /* It is not aligned, or is in a mapping of the shard, which a batch may outlive. */
    return presto__worker_put_row(worker, err);
}

/* A stored sample, which is not parsed. */
static presto_status run_record(presto__worker *worker, presto_error *err) {
    presto__stored_record record;
    PRESTO_TRY(worker->loader->source->ops->record(worker->reader, worker->index, &worker->arena,
                                                   &record, err));
    return presto__worker_put_frame(worker, &record, err);
}

static presto_status run_sample(presto__worker *worker, presto_error *err) {
    presto_loader *loader = worker->loader;
    if (loader->delivery == PRESTO__DELIVER_VIEWS)
        return run_view(worker, err);
    presto_arena_reset(&worker->arena);
    if (loader->delivery == PRESTO__DELIVER_RECORDS || loader->delivery == PRESTO__DELIVER_STORED)
        return run_record(worker, err);
    if (loader->delivery == PRESTO__DELIVER_VALUES) {
        presto_status put = presto__worker_put_values(worker, err);
        if (put != PRESTO_END)
            return put;
    }
    presto_sample sample;
    presto_status status = get_sample(worker, &worker->arena, &sample, err);
    if (status == PRESTO_OK && loader->plan != NULL)
        status = run_steps(worker, worker->plan_worker, true, err);
    if (status != PRESTO_OK)
        return status;
    switch (loader->delivery) {
    case PRESTO__DELIVER_FRAMES:
        return presto__worker_put_frame(worker, NULL, err);
    case PRESTO__DELIVER_COUNT:
        presto__selection_apply(&loader->shown, &sample);
        worker->part->delivered_bytes += presto__sample_bytes(&sample);
        return PRESTO_OK;
    case PRESTO__DELIVER_ROWS:
    case PRESTO__DELIVER_VALUES:
    case PRESTO__DELIVER_VIEWS:
    case PRESTO__DELIVER_RECORDS:
    case PRESTO__DELIVER_STORED:
        break;
    }
    return presto__worker_put_row(worker, err);
}

/* ---- a part ---- */

/*
 * Does leaving out this sample help? Yes if only this sample is wrong: damaged, refused by a step,
 * its file gone. No if the next one would fail in the same way.
 */
static bool can_skip(const presto__worker *worker, presto_status status, const presto_error *err) {
    return worker->loader->options.errors.policy == PRESTO_ON_ERROR_SKIP &&
           status != PRESTO_ERR_MEMORY && status != PRESTO_ERR_STOPPED &&
           status != PRESTO_ERR_ARGUMENT && status != PRESTO_ERR_RAGGED &&
           !presto__errno_is_machine(err->sys_errno) && !worker->reader->lost_shard;
}

/* Later parts of the packet are no longer wanted. */
static void stop_later_parts(presto__worker *worker) {
    presto__packet *packet = worker->packet;
    size_t self = (size_t)(worker->part - packet->parts);
    size_t known = atomic_load(&packet->failing_part);
    while (self < known && !atomic_compare_exchange_weak(&packet->failing_part, &known, self)) {}
}

static void fail_part(presto__worker *worker, const presto_error *error) {
    presto__part_fail(worker->part, worker->position, worker->packet->numbers[worker->position],
                      error, true);
    stop_later_parts(worker);
}

/* A presto_stop_fn: are results no longer wanted? Without threads this is the consumer's thread, which
 * must ask. */
static bool is_over(void *user) {
    presto_loader *loader = user;
    return loader->options.threads == 0 ? presto__loader_stops(loader)
                                        : atomic_load(&loader->is_abandoned);
}

/* Is the result of this part still wanted? */
static bool is_wanted(const presto__worker *worker) {
    const presto__packet *packet = worker->packet;
    size_t self = (size_t)(worker->part - packet->parts);
    return self <= atomic_load(&packet->failing_part) && !is_over(worker->loader);
}

/* Was sample i found in a cache, of those fetched last? */
static bool is_hit(const presto__worker *worker, size_t i) {
    if (!worker->looks_up)
        return false;
    return worker->disk != NULL ? presto__disk_has(worker->disk, i) : worker->hits[i] != NULL;
}

/*
 * Fetch the samples that the cache does not hold. Those that were walked over are at hand, and the
 * next epoch may be faster: what it has stored of them is not looked up, as the fetch is for all.
 */
static presto_status fetch(presto__worker *worker, const uint64_t *numbers, size_t count,
                           presto_error *err) {
    presto_loader *loader = worker->loader;
    const presto__cache *cache = loader->cache;
    presto__blocks *blocks =
        loader->delivery == PRESTO__DELIVER_VIEWS ? &worker->packet->blocks : &worker->blocks;
    worker->looks_up = (cache != NULL || worker->disk != NULL) && !worker->has_walked;
    if (!worker->has_walked)
        worker->blocks.count = 0;
    worker->has_walked = false;
    if (worker->looks_up) {
        if (worker->disk != NULL)
            presto__disk_find(worker->disk, numbers, count);
        size_t missing = 0;
        for (size_t i = 0; i < count; i++) {
            if (cache != NULL)
                worker->hits[i] = presto__cache_get(cache, numbers[i]);
            if (!is_hit(worker, i))
                worker->missing[missing++] = numbers[i];
        }
        numbers = worker->missing;
        count = missing;
    }
    return count == 0 ? PRESTO_OK
                      : loader->source->ops->fetch(worker->reader, numbers, count, blocks, err);
}

/* Load a hit. PRESTO_END: it is a miss after all. */
static presto_status load_hit(presto__worker *worker, size_t i) {
    if (worker->disk == NULL) {
        worker->hit = worker->hits[i];
        return PRESTO_OK;
    }
    presto__blocks *blocks =
        worker->loader->delivery == PRESTO__DELIVER_VIEWS ? &worker->packet->blocks : NULL;
    return presto__disk_load(worker->disk, i, blocks, worker->time_scale, &worker->reader->stats);
}

/* Leave out the sample being run; false: the part ends with it. */
static bool leave_out(presto__worker *worker, presto_status status, presto_error *error) {
    presto__packet_part *part = worker->part;
    uint64_t number = worker->packet->numbers[worker->position];
    presto__place at = presto__worker_row(worker);
    if (worker->began_here)
        presto__place_fill(&at)->is_undone = true;
    if (status == PRESTO_DROP) {
        presto__part_drop(part, worker->position, number);
        return !part->has_failed;
    }
    place(worker, status, error);
    if (!can_skip(worker, status, error)) {
        fail_part(worker, error);
        return false;
    }
    presto__part_fail(part, worker->position, number, error, false);
    return !part->has_failed;
}

static void worker_has_done(presto__worker *worker, size_t samples) {
    uint64_t done = atomic_load_explicit(&worker->done_samples, memory_order_relaxed);
    atomic_store_explicit(&worker->done_samples, done + samples, memory_order_relaxed);
}

/*
 * Run samples [first, first + *count_io) of the packet; false: the part ends here. If samples that
 * were found are gone, *count_io is the number done.
 */
static bool run_samples(presto__worker *worker, size_t first, size_t *count_io, uint64_t stride) {
    presto__packet *packet = worker->packet;
    size_t batch_rows = packet->batch_rows;
    size_t count = *count_io;
    presto_error error;
    worker->position = first;
    worker->index = SIZE_MAX;
    presto_status status = fetch(worker, packet->numbers + first, count, &error);
    size_t fetched = 0;
    if (status < 0) {
        fail_part(worker, &error);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        bool from_cache = is_hit(worker, i);
        worker->position = first + i;
        worker->index = from_cache ? SIZE_MAX : fetched++;
        worker->batch = &packet->batches[worker->position / batch_rows];
        worker->time_scale = i % stride == 0 ? stride : 0;
        worker->reader->time_scale = worker->time_scale;
        worker->reader->lost_shard = false;
        worker->began_here = false;
        size_t put = worker->loader->takes_runs ? presto__worker_put_run(worker, count - i) : 0;
        worker_has_done(worker, put > 0 ? put : 1);
        if (put > 0) {
            i += put - 1;
            fetched += put - 1;
            continue;
        }
        status = from_cache ? load_hit(worker, i) : PRESTO_OK;
        if (status == PRESTO_END) {
            *count_io = i; /* the rest is looked up again */
            return true;
        }
        if (status == PRESTO_OK)
            status = run_sample(worker, &error);
        if (status != PRESTO_OK && !leave_out(worker, status, &error))
            return false;
    }
    return true;
}

static void find_numbers(presto__worker *worker) {
    presto__order *order = &worker->loader->order;
    const presto__packet *packet = worker->packet;
    const presto__packet_part *part = worker->part;
    const presto__positions stretch = {packet->epoch, packet->first + part->first, part->count};
    uint64_t *numbers = packet->numbers + part->first;
    if (is_mixed(worker))
        presto__mix_numbers(&order->options, &stretch, numbers, worker->epochs);
    else if (!presto__order_is_sequential(order))
        presto__order_numbers(order, stretch.epoch, stretch.first, stretch.count, numbers);
}

/* Find the samples from `first` on; false: the part ends here. */
static bool walk(presto__worker *worker, size_t first, size_t most, size_t *count_out) {
    presto_error error;
    size_t count = most;
    worker->position = first;
    worker->index = SIZE_MAX;
    if (presto__worker_walk(worker, first, &count, &error) < 0) {
        fail_part(worker, &error);
        return false;
    }
    *count_out = count;
    return count > 0;
}

static void run_part(presto__worker *worker, presto__packet *packet, presto__packet_part *part) {
    presto_loader *loader = worker->loader;
    worker->packet = packet;
    worker->part = part;
    worker->position = part->first;
    find_numbers(worker);
    presto_error error, failure;
    failure.status = PRESTO_OK; /* the rest is large, and not read then */
    if (loader->options.output == PRESTO_OUTPUT_RECORDS &&
        presto__packet_prepare_frames(packet, &error) < 0) {
        fail_part(worker, &error);
        presto__worker_end_turn(worker);
        return;
    }
    if (worker->has_turn && presto__order_is_sequential(&loader->order))
        presto__worker_draw(worker, &failure);
    presto__read_ahead_before(worker, packet, part);
    size_t step = loader->blocking.fetch_samples;
    uint64_t few = part->count / LEAST_TIMED + 1, stride = few < MOST_STRIDE ? few : MOST_STRIDE;
    if (worker->disk != NULL)
        presto__disk_epoch(loader->disk, packet->epoch);
    bool goes_on = true;
    for (size_t first = part->first; goes_on && first < worker->part_end && is_wanted(worker);) {
        size_t left = worker->part_end - first, count = left < step ? left : step;
        if (worker->has_turn)
            goes_on = walk(worker, first, left, &count);
        goes_on = goes_on && run_samples(worker, first, &count, stride);
        presto__worker_give_back(worker);
        first += count;
    }
    presto__worker_end_turn(worker);
    if (failure.status < 0 && goes_on && is_wanted(worker)) {
        worker->position = worker->part_end;
        fail_part(worker, &failure);
    }
    presto__read_ahead_after(worker, part);
    if (worker->disk != NULL) {
        uint64_t start = presto__clock_ns();
        presto__disk_flush(worker->disk);
        worker->account.cache_ns += presto__clock_ns() - start;
    }
}

void presto__worker_run(presto__worker *worker, presto__packet *packet, presto__packet_part *part) {
    /* A file without an index may have to be read from its start. */
    presto__stop_hook pass;
    presto__stop_scope others = presto__stop_enter(&pass, is_over, worker->loader);
    presto__ahead *ahead = presto__ahead_bind(worker->loader->ahead);
    if (worker->loader->storage == NULL) {
        run_part(worker, packet, part);
    } else {
        presto__storage_thread *before = presto__storage_bind(&worker->storage);
        run_part(worker, packet, part);
        (void)presto__storage_bind(before);
        presto__worker_count_played(worker);
    }
    (void)presto__ahead_bind(ahead);
    (void)presto__stop_leave(&pass, others, PRESTO_OK, NULL); /* it has failed with all of it */
}
