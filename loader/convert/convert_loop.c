/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of a conversion: batches of encoded records go from the loader to the writers of their
 * shards; whole shards are noted in the progress file.
 *
 * If the samples of each shard are known in advance, several shards are made at once: the loader
 * delivers stretches of their ranges in turn, and each writer has one range. All threads of the
 * loader work on the next stretch, whatever its shard, so they stay busy until the last shard.
 *
 * The reported failure does not depend on how many shards are made at once. If a sample fails, its
 * shard and the later ones are given up; the earlier ones are completed. If one of those fails, its
 * failure is reported instead. So the first failure in the order of the samples is reported, and
 * all shards before it are whole.
 */
#include <inttypes.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../base/clock_internal.h"
#include "convert_internal.h"

#define PROGRESS_INTERVAL_NS 100000000

/* The open shard of a writer. */
typedef struct open_shard {
    bool is_open;
    presto__shard_range shard;     /* by size its end is not known */
    uint64_t next;                 /* one past the last sample that has come */
    uint64_t records, frame_bytes; /* given to the writer */
} open_shard;

typedef struct loop {
    presto__conversion *job;
    presto__writers *writers;
    size_t count; /* of writers */
    /* Shards to be made, by number; those from next_missing on have not been begun. */
    presto__shard_range *missing;
    size_t missing_count, next_missing;
    presto__range *ranges; /* for the loader; as many as are missing, and one at least */
    open_shard open[PRESTO__MOST_OPEN];
    uint64_t done;      /* samples that have come, or are in shards that were whole before */
    uint64_t failed_at; /* the sample that the loader has failed at; UINT64_MAX: none */
} loop;

/* ---- progress ---- */

/* Call on_progress, if it is time; PRESTO_ERR_STOPPED if it asks to stop. */
static presto_status tell(loop *all, presto_error *err) {
    presto__conversion *job = all->job;
    uint64_t now = presto__clock_ns();
    if (job->options->on_progress == NULL ||
        (now - job->told_ns < PROGRESS_INTERVAL_NS && all->done < job->sample_count))
        return PRESTO_OK;
    job->told_ns = now;
    if (job->loader != NULL)
        presto_loader_get_stats(job->loader, &job->stats);
    presto_progress progress = {.samples_done = all->done,
                                .samples_total = job->sample_count,
                                .bytes_read = job->stats.read_bytes,
                                .bytes_written = job->stats.delivered_bytes,
                                .skipped = job->skipped_before + job->stats.skipped,
                                .elapsed_ns = now - job->started_ns};
    if (job->options->on_progress(job->options->on_progress_user, &progress))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
}

/* Merge what is known of the features of all samples so far. */
static presto_status merge_schema(presto__conversion *job, presto_error *err) {
    if (job->loader == NULL)
        return PRESTO_OK;
    return presto__loader_schema_into(job->loader, &job->progress.schema, err);
}

/* Merge the schema first: the features of a listed shard must be in it. */
static presto_status take_whole(loop *all, presto_error *err) {
    presto__conversion *job = all->job;
    presto__whole_shard whole;
    bool is_merged = false;
    while (presto__writers_take(all->writers, &whole)) {
        if (!is_merged)
            PRESTO_TRY(merge_schema(job, err));
        is_merged = true;
        char name[PRESTO__SHARD_NAME_BYTES];
        presto__conversion_working_name(job, whole.number, name);
        PRESTO_TRY(presto__progress_file_add(&job->progress, name, &whole, err));
        job->is_behind = true;
    }
    return PRESTO_OK;
}

static presto_status collect(loop *all, presto_error *err) {
    size_t before = all->job->progress.shard_count;
    PRESTO_TRY(take_whole(all, err));
    return all->job->progress.shard_count > before ? presto__conversion_note(all->job, err)
                                                   : PRESTO_OK;
}

/* ---- handing over ---- */

/* Meanwhile progress is reported, and a request to stop is noticed. */
static presto_status make_room(loop *all, presto_error *err) {
    while (!presto__writers_have_room(all->writers)) {
        PRESTO_TRY(presto__writers_wait(all->writers, PRESTO__WANTS_ROOM, err));
        PRESTO_TRY(collect(all, err));
        PRESTO_TRY(tell(all, err));
    }
    return PRESTO_OK;
}

static presto_status append(loop *all, size_t which, const presto__rows *rows, presto_error *err) {
    open_shard *open = &all->open[which];
    PRESTO_TRY(make_room(all, err));
    presto__packet_batch *batch = (presto__packet_batch *)(void *)rows->batch;
    atomic_fetch_add_explicit(&batch->packet->refs, 1, memory_order_relaxed);
    open->records += rows->count;
    open->frame_bytes += rows->frames.bytes;
    return presto__writers_append(all->writers, which, open->shard.number, rows, err);
}

/* The open shard has all its samples, those before `end`. */
static presto_status finish(loop *all, size_t which, uint64_t end, presto_error *err) {
    open_shard *open = &all->open[which];
    PRESTO_TRY(make_room(all, err));
    all->done += end - open->next;
    open->shard.end = end;
    open->is_open = false;
    PRESTO_TRY(presto__writers_finish(all->writers, which, &open->shard, err));
    return collect(all, err);
}

static void begin(loop *all, size_t which, const presto__shard_range *shard) {
    all->open[which] = (open_shard){.is_open = true, .shard = *shard, .next = shard->first};
}

/* The open shard has all samples before `next`. */
static void advance(loop *all, size_t which, uint64_t next) {
    all->done += next - all->open[which].next;
    all->open[which].next = next;
}

/* ---- shards of a size ---- */

static bool fits(const presto__conversion *job, const open_shard *open, uint32_t frame_bytes) {
    uint64_t most = job->options->shard_bytes, used = open->frame_bytes;
    return open->records == 0 || (used <= most && frame_bytes <= most - used);
}

static presto_status begin_by_size(loop *all, presto_error *err) {
    const presto__progress_file *progress = &all->job->progress;
    size_t number = progress->shard_count;
    if (number >= PRESTO_MAX_SHARDS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "more than %d shards of %ju byte%s", PRESTO_MAX_SHARDS,
                           (uintmax_t)all->job->options->shard_bytes,
                           presto_plural(all->job->options->shard_bytes));
    begin(all, 0,
          &(presto__shard_range){.number = number, .first = presto__progress_file_next(progress)});
    return PRESTO_OK;
}

/* The rows from `row` on that fit into the open shard. */
static presto__rows rows_that_fit(const loop *all, presto_batch *batch, size_t row,
                                  const uint8_t *at) {
    const presto__packet_batch *inner = (const presto__packet_batch *)(const void *)batch;
    const uint32_t *raw_bytes = inner->packet->raw_bytes + inner->first;
    presto__rows rows = {.batch = batch, .frame_bytes = batch->frame_bytes + row};
    open_shard open = all->open[0];
    size_t bytes = 0;
    for (; row < batch->rows && fits(all->job, &open, batch->frame_bytes[row]); row++) {
        bytes += batch->frame_bytes[row];
        rows.raw_bytes += raw_bytes[row];
        rows.count++;
        open.records++;
        open.frame_bytes += batch->frame_bytes[row];
    }
    rows.frames = presto_span_of(at, bytes);
    return rows;
}

static presto_status take_by_size(loop *all, presto_batch *batch, presto_error *err) {
    const uint8_t *at = batch->frames.data;
    for (size_t row = 0; row < batch->rows;) {
        if (!all->open[0].is_open)
            PRESTO_TRY(begin_by_size(all, err));
        presto__rows rows = rows_that_fit(all, batch, row, at);
        if (rows.count > 0)
            PRESTO_TRY(append(all, 0, &rows, err));
        row += rows.count;
        at += rows.frames.bytes;
        if (row < batch->rows)
            PRESTO_TRY(finish(all, 0, batch->sample_numbers[row], err));
        else
            advance(all, 0, batch->sample_numbers[row - 1] + 1);
    }
    return PRESTO_OK;
}

/* There is at least one shard, and the last one ends with the last sample. */
static presto_status end_by_size(loop *all, presto_error *err) {
    presto__conversion *job = all->job;
    presto__progress_file *progress = &job->progress;
    if (progress->shard_count == 0 && !all->open[0].is_open)
        PRESTO_TRY(begin_by_size(all, err));
    if (all->open[0].is_open) {
        PRESTO_TRY(finish(all, 0, job->sample_count, err));
    } else if (presto__progress_file_next(progress) < job->sample_count) {
        PRESTO_TRY(merge_schema(job, err));
        progress->shards[progress->shard_count - 1].end = job->sample_count; /* all was left out */
        PRESTO_TRY(presto__conversion_note(job, err));
    }
    job->shard_count = progress->shard_count;
    return PRESTO_OK;
}

/* ---- shards by number ---- */

/* A writer without an open shard. When a shard begins there is one, because the loader begins a
 * range only when another one has ended. */
static size_t free_writer(const loop *all) {
    size_t which = 0;
    while (which + 1 < all->count && all->open[which].is_open)
        which++;
    return which;
}

/*
 * No more samples come for shards before `number`, except for those that several writers have open.
 * One writer's shard may lack samples that were left out. Of a shard that was not begun, all
 * samples were left out, or it has none.
 */
static presto_status settle_before(loop *all, size_t number, presto_error *err) {
    const open_shard *first = &all->open[0];
    if (all->count == 1 && first->is_open && first->shard.number < number)
        PRESTO_TRY(finish(all, 0, first->shard.end, err));
    while (all->next_missing < all->missing_count &&
           all->missing[all->next_missing].number < number) {
        const presto__shard_range *empty = &all->missing[all->next_missing++];
        size_t which = free_writer(all);
        begin(all, which, empty);
        PRESTO_TRY(finish(all, which, empty->end, err));
    }
    return PRESTO_OK;
}

/* Find the writer of the shard that has this position; the shard may begin with it. */
static presto_status find_writer(loop *all, uint64_t position, size_t *which_out,
                                 presto_error *err) {
    for (size_t i = 0; i < all->count; i++) {
        const open_shard *open = &all->open[i];
        if (open->is_open && position >= open->shard.first && position < open->shard.end) {
            *which_out = i;
            return PRESTO_OK;
        }
    }
    size_t next = all->next_missing;
    while (all->missing[next].end <= position)
        next++;
    PRESTO_TRY(settle_before(all, all->missing[next].number, err));
    *which_out = free_writer(all);
    begin(all, *which_out, &all->missing[next]);
    all->next_missing = next + 1;
    return PRESTO_OK;
}

static presto_status take_by_number(loop *all, presto_batch *batch, presto_error *err) {
    size_t which;
    PRESTO_TRY(find_writer(all, batch->first, &which, err));
    const presto__rows rows = {.batch = batch,
                               .frames = batch->frames,
                               .frame_bytes = batch->frame_bytes,
                               .count = batch->rows,
                               .raw_bytes = batch->raw_bytes};
    PRESTO_TRY(append(all, which, &rows, err));
    advance(all, which, batch->first + batch->rows + batch->skipped);
    const open_shard *open = &all->open[which];
    return open->next == open->shard.end ? finish(all, which, open->next, err) : PRESTO_OK;
}

/* ---- the loader ---- */

static void loader_options(const presto__conversion *job, presto_loader_options *loader_out) {
    const presto_convert_options *options = job->options;
    presto_loader_options loader;
    presto_loader_options_defaults(&loader);
    loader.threads = options->threads;
    loader.auto_threads = options->auto_threads;
    loader.output = PRESTO_OUTPUT_RECORDS;
    loader.batch_samples = 0;
    loader.order.seed = options->seed;
    loader.memory.prefetch_bytes = job->prefetch_bytes;
    loader.errors = options->errors;
    uint64_t limit = options->errors.skip_limit;
    if (limit != UINT64_MAX)
        loader.errors.skip_limit -= job->skipped_before < limit ? job->skipped_before : limit;
    loader.codec = &job->codec;
    *loader_out = loader;
}

/* A presto_stop_fn: progress is also reported while no sample comes. */
static bool should_stop(void *user) {
    return tell(user, NULL) == PRESTO_ERR_STOPPED;
}

/* Load all samples of the first `count` ranges and give them to the writers. PRESTO_END: done. */
static presto_status load(loop *all, size_t count, presto_error *err) {
    presto__conversion *job = all->job;
    presto_loader_options options;
    presto__loader_input input = {.source = job->source, .plan = job->plan};
    all->failed_at = UINT64_MAX;
    loader_options(job, &options);
    options.should_stop = should_stop;
    options.should_stop_user = all;
    presto__ranges_init(&input.ranges, all->ranges, count, all->count);
    PRESTO_TRY(presto__loader_open_input(&input, &options, &job->loader, err));
    for (;;) {
        PRESTO_TRY(make_room(all, err));
        presto_batch *batch;
        presto_status status = presto_loader_next(job->loader, &batch, err);
        if (status < 0 && !presto__conversion_by_size(job))
            all->failed_at = presto__loader_failed_at(job->loader);
        if (status != PRESTO_OK)
            return status;
        status = presto__conversion_by_size(job) ? take_by_size(all, batch, err)
                                                 : take_by_number(all, batch, err);
        presto_batch_release(batch);
        PRESTO_TRY(status);
        PRESTO_TRY(collect(all, err));
        PRESTO_TRY(tell(all, err));
    }
}

/* ---- after a failure ---- */

/* Give up the shard of this sample and all later ones. */
static presto_status give_up_from(loop *all, uint64_t sample, size_t *number_out,
                                  presto_error *err) {
    size_t kept = 0;
    while (all->missing[kept].end <= sample)
        kept++;
    *number_out = all->missing[kept].number;
    all->missing_count = kept;
    for (size_t i = 0; i < all->count; i++)
        if (all->open[i].is_open && all->open[i].shard.number >= *number_out) {
            PRESTO_TRY(make_room(all, err));
            PRESTO_TRY(presto__writers_drop(all->writers, i, err));
            all->open[i].is_open = false;
        }
    return PRESTO_OK;
}

/* List the ranges that the open shards lack, in order; returns how many. */
static size_t list_rests(const loop *all) {
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        const open_shard *open = &all->open[i];
        if (!open->is_open)
            continue;
        size_t at = count++;
        for (; at > 0 && all->ranges[at - 1].first > open->next; at--)
            all->ranges[at] = all->ranges[at - 1];
        all->ranges[at] = (presto__range){open->next, open->shard.end};
    }
    return count;
}

/* The loader has failed at a sample: deliver the shards before it. PRESTO_END: they have all
 * samples. */
static presto_status load_rests(loop *all, presto_error *err) {
    presto__conversion *job = all->job;
    uint64_t sample = all->failed_at;
    size_t number;
    all->failed_at = UINT64_MAX; /* this failure is not of a sample */
    PRESTO_TRY(give_up_from(all, sample, &number, err));
    PRESTO_TRY(settle_before(all, number, err));
    PRESTO_TRY(merge_schema(job, err));
    presto_loader_free(job->loader);
    job->loader = NULL;
    return load(all, list_rests(all), err);
}

/* ---- all of it ---- */

/* Wait until the writers have finished all their tasks. */
static presto_status drain(loop *all, presto_error *err) {
    for (;;) {
        presto_status status = presto__writers_wait(all->writers, PRESTO__WANTS_END, err);
        PRESTO_TRY(status);
        PRESTO_TRY(collect(all, err));
        if (status == PRESTO_END)
            return PRESTO_OK;
        PRESTO_TRY(tell(all, err));
    }
}

static presto_status run(loop *all, size_t range_count, presto_error *err) {
    presto__conversion *job = all->job;
    presto_error failure = {0}, next;
    presto_status status = load(all, range_count, &next);
    while (status < 0 && all->failed_at != UINT64_MAX) {
        failure = next;
        status = load_rests(all, &next);
    }
    if (status == PRESTO_END && failure.status == PRESTO_OK)
        status = presto__conversion_by_size(job) ? end_by_size(all, &next)
                                                 : settle_before(all, SIZE_MAX, &next);
    if (status >= 0)
        status = drain(all, &next);
    if (status >= 0 && failure.status < 0) {
        next = failure;
        status = failure.status;
    }
    if (status < 0 && err != NULL)
        *err = next;
    return status;
}

/* List the shards to be made, and the samples that the loader must deliver for them. */
static presto_status list_missing(loop *all, size_t *range_count_out, presto_error *err) {
    const presto__conversion *job = all->job;
    const presto__progress_file *progress = &job->progress;
    bool by_size = presto__conversion_by_size(job);
    size_t most = by_size ? 1 : job->shard_count - progress->shard_count;
    all->missing = calloc(most + 1, sizeof *all->missing);
    all->ranges = calloc(most + PRESTO__MOST_OPEN, sizeof *all->ranges);
    if (all->missing == NULL || all->ranges == NULL)
        return presto_fail_memory(err, most * sizeof *all->missing);
    *range_count_out = 1;
    all->ranges[0] = (presto__range){presto__progress_file_next(progress), job->sample_count};
    if (by_size)
        return PRESTO_OK;
    *range_count_out = 0;
    size_t whole = 0;
    for (size_t number = 0; number < job->shard_count; number++) {
        if (whole < progress->shard_count && progress->shards[whole].number == number) {
            whole++;
            continue;
        }
        uint64_t first = presto__conversion_first(job, number);
        uint64_t end = presto__conversion_end(job, number);
        all->missing[all->missing_count++] = (presto__shard_range){number, first, end};
        if (first < end)
            all->ranges[(*range_count_out)++] = (presto__range){first, end};
    }
    return PRESTO_OK;
}

/* How many shards to make at once. */
static size_t writers_wanted(const presto__conversion *job, size_t range_count) {
    const presto_convert_options *options = job->options;
    const presto_source *source = job->source;
    presto_error err;
    /* Samples that are left out are counted and reported in the order of the samples, over all
     * shards. */
    if (presto__conversion_by_size(job) || presto__conversion_leaves_out(job) ||
        (source->ops->check_random_access != NULL &&
         source->ops->check_random_access(job->source, &err) < 0))
        return 1;
    size_t count = range_count < options->threads ? range_count : options->threads;
    return count == 0 ? 1 : count < PRESTO__MOST_OPEN ? count : PRESTO__MOST_OPEN;
}

static presto_status run_with_writers(loop *all, size_t range_count, presto_error *err) {
    presto__conversion *job = all->job;
    all->count = writers_wanted(job, range_count);
    PRESTO_TRY(presto__writers_new(job, all->count, all->count > 1, &all->writers, err));
    presto_status status = run(all, range_count, err);
    presto__writers_stop(all->writers);
    if (status < 0)
        (void)take_whole(all, NULL); /* a shard that is not noted is made again */
    presto__writers_free(all->writers);
    if (job->loader != NULL)
        presto_loader_get_stats(job->loader, &job->stats);
    return status;
}

presto_status presto__conversion_run_loop(presto__conversion *job, presto_error *err) {
    loop all = {.job = job, .done = presto__progress_file_samples(&job->progress)};
    size_t range_count = 0;
    presto_status status = list_missing(&all, &range_count, err);
    if (status == PRESTO_OK)
        status = run_with_writers(&all, range_count, err);
    free(all.missing);
    free(all.ranges);
    return status;
}
