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

/* The open shard of a writer. */
typedef struct open_shard {
    bool is_open;
    presto__shard_range shard;     /* by size its end is not known */
    uint64_t next;                 /* one past the last sample that has come */
    uint64_t records, frame_bytes; /* given to the writer */
} open_shard;

typedef struct shard_loop {
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
} shard_loop;

/* ---- progress ---- */

static presto_status report(shard_loop *loop, presto_error *err) {
    return presto__conversion_report(loop->job, loop->done, err);
}

/* Merge what is known of the features of all samples so far. */
static presto_status merge_schema(presto__conversion *job, presto_error *err) {
    if (job->loader == NULL)
        return PRESTO_OK;
    return presto__loader_schema_into(job->loader, &job->progress.schema, err);
}

/* Merge the schema first: the features of a listed shard must be in it. */
static presto_status take_whole(shard_loop *loop, presto_error *err) {
    presto__conversion *job = loop->job;
    presto__whole_shard whole;
    bool is_merged = false;
    while (presto__writers_take(loop->writers, &whole)) {
        if (!is_merged)
            PRESTO_TRY(merge_schema(job, err));
        is_merged = true;
        char name[PRESTO__SHARD_NAME_BYTES];
        presto__conversion_working_name(job, whole.number, name);
        PRESTO_TRY(presto__progress_file_add(&job->progress, name, &whole, err));
        job->folder = PRESTO__FOLDER_BEHIND;
    }
    return PRESTO_OK;
}

static presto_status collect(shard_loop *loop, presto_error *err) {
    size_t before = loop->job->progress.shard_count;
    PRESTO_TRY(take_whole(loop, err));
    return loop->job->progress.shard_count > before ? presto__conversion_note(loop->job, err)
                                                    : PRESTO_OK;
}

/* ---- handing over ---- */

/* Meanwhile progress is reported, and a request to stop is noticed. */
static presto_status make_room(shard_loop *loop, presto_error *err) {
    while (!presto__writers_have_room(loop->writers)) {
        PRESTO_TRY(presto__writers_wait(loop->writers, PRESTO__WANTS_ROOM, err));
        PRESTO_TRY(collect(loop, err));
        PRESTO_TRY(report(loop, err));
    }
    return PRESTO_OK;
}

static presto_status append_rows(shard_loop *loop, size_t which, const presto__rows *rows,
                                 presto_error *err) {
    open_shard *open = &loop->open[which];
    PRESTO_TRY(make_room(loop, err));
    presto__packet_batch *batch = (presto__packet_batch *)(void *)rows->batch;
    atomic_fetch_add_explicit(&batch->packet->refs, 1, memory_order_relaxed);
    open->records += rows->count;
    open->frame_bytes += rows->frames.bytes;
    return presto__writers_append(loop->writers, which, open->shard.number, rows, err);
}

/* The open shard has all its samples, those before `end`. */
static presto_status finish_shard(shard_loop *loop, size_t which, uint64_t end, presto_error *err) {
    open_shard *open = &loop->open[which];
    PRESTO_TRY(make_room(loop, err));
    loop->done += end - open->next;
    open->shard.end = end;
    open->is_open = false;
    PRESTO_TRY(presto__conversion_take_skips(loop->job, end, &open->shard.skipped, err));
    PRESTO_TRY(presto__writers_finish(loop->writers, which, &open->shard, err));
    return collect(loop, err);
}

static void begin_shard(shard_loop *loop, size_t which, const presto__shard_range *shard) {
    loop->open[which] = (open_shard){.is_open = true, .shard = *shard, .next = shard->first};
}

/* The open shard has all samples before `next`. */
static void pass_samples(shard_loop *loop, size_t which, uint64_t next) {
    loop->done += next - loop->open[which].next;
    loop->open[which].next = next;
}

/* ---- shards of a size ---- */

static bool record_fits(const presto__conversion *job, const open_shard *open,
                        uint32_t frame_bytes) {
    uint64_t most = job->options->shard_bytes, used = open->frame_bytes;
    return open->records == 0 || (used <= most && frame_bytes <= most - used);
}

static presto_status begin_by_size(shard_loop *loop, presto_error *err) {
    const presto__progress_file *progress = &loop->job->progress;
    size_t number = progress->shard_count;
    if (number >= PRESTO_MAX_SHARDS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "more than %d shards of %ju byte%s", PRESTO_MAX_SHARDS,
                           (uintmax_t)loop->job->options->shard_bytes,
                           presto_plural(loop->job->options->shard_bytes));
    begin_shard(
        loop, 0,
        &(presto__shard_range){.number = number, .first = presto__progress_file_next(progress)});
    return PRESTO_OK;
}

/* The rows from `row` on that fit into the open shard. */
static presto__rows rows_that_fit(const shard_loop *loop, presto_batch *batch, size_t row,
                                  const uint8_t *at) {
    const presto__packet_batch *inner = (const presto__packet_batch *)(const void *)batch;
    const uint32_t *raw_bytes = inner->packet->raw_bytes + inner->first;
    presto__rows rows = {.batch = batch, .frame_bytes = batch->frame_bytes + row};
    open_shard open = loop->open[0];
    size_t bytes = 0;
    for (; row < batch->rows && record_fits(loop->job, &open, batch->frame_bytes[row]); row++) {
        bytes += batch->frame_bytes[row];
        rows.raw_bytes += raw_bytes[row];
        rows.count++;
        open.records++;
        open.frame_bytes += batch->frame_bytes[row];
    }
    rows.frames = presto_span_of(at, bytes);
    return rows;
}

static presto_status take_by_size(shard_loop *loop, presto_batch *batch, presto_error *err) {
    const uint8_t *at = batch->frames.data;
    presto__row_walk walk = presto__row_walk_begin(batch);
    for (size_t row = 0; row < batch->rows;) {
        if (!loop->open[0].is_open)
            PRESTO_TRY(begin_by_size(loop, err));
        presto__rows rows = rows_that_fit(loop, batch, row, at);
        if (rows.count > 0)
            PRESTO_TRY(append_rows(loop, 0, &rows, err));
        row += rows.count;
        at += rows.frames.bytes;
        uint64_t next = presto__row_walk_pass(&walk, rows.count);
        if (row < batch->rows)
            PRESTO_TRY(finish_shard(loop, 0, next, err));
    }
    pass_samples(loop, 0, batch->first + batch->rows + batch->skipped);
    return PRESTO_OK;
}

/* There is at least one shard, and the last one ends with the last sample. */
static presto_status end_by_size(shard_loop *loop, presto_error *err) {
    presto__conversion *job = loop->job;
    presto__progress_file *progress = &job->progress;
    if (progress->shard_count == 0 && !loop->open[0].is_open)
        PRESTO_TRY(begin_by_size(loop, err));
    if (loop->open[0].is_open) {
        PRESTO_TRY(finish_shard(loop, 0, job->sample_count, err));
    } else if (presto__progress_file_next(progress) < job->sample_count) {
        presto__whole_shard *last = &progress->shards[progress->shard_count - 1];
        uint64_t skipped;
        PRESTO_TRY(merge_schema(job, err));
        PRESTO_TRY(presto__conversion_take_skips(job, job->sample_count, &skipped, err));
        last->end = job->sample_count; /* all was left out */
        last->skipped += skipped;
        PRESTO_TRY(presto__conversion_note(job, err));
    }
    job->shard_count = progress->shard_count;
    return PRESTO_OK;
}

/* ---- shards by number ---- */

/* A writer without an open shard. When a shard begins there is one, because the loader begins a
 * range only when another one has ended. */
static size_t free_writer(const shard_loop *loop) {
    size_t which = 0;
    while (which + 1 < loop->count && loop->open[which].is_open)
        which++;
    return which;
}

/*
 * No more samples come for shards before `number`, except for those that several writers have open.
 * One writer's shard may lack samples that were left out. Of a shard that was not begun, all
 * samples were left out, or it has none.
 */
static presto_status settle_before(shard_loop *loop, size_t number, presto_error *err) {
    const open_shard *first = &loop->open[0];
    if (loop->count == 1 && first->is_open && first->shard.number < number)
        PRESTO_TRY(finish_shard(loop, 0, first->shard.end, err));
    while (loop->next_missing < loop->missing_count &&
           loop->missing[loop->next_missing].number < number) {
        const presto__shard_range *empty = &loop->missing[loop->next_missing++];
        size_t which = free_writer(loop);
        begin_shard(loop, which, empty);
        PRESTO_TRY(finish_shard(loop, which, empty->end, err));
    }
    return PRESTO_OK;
}

/* Find the writer of the shard that has this position; the shard may begin with it. */
static presto_status find_writer(shard_loop *loop, uint64_t position, size_t *which_out,
                                 presto_error *err) {
    for (size_t i = 0; i < loop->count; i++) {
        const open_shard *open = &loop->open[i];
        if (open->is_open && position >= open->shard.first && position < open->shard.end) {
            *which_out = i;
            return PRESTO_OK;
        }
    }
    size_t next = loop->next_missing;
    while (loop->missing[next].end <= position)
        next++;
    PRESTO_TRY(settle_before(loop, loop->missing[next].number, err));
    *which_out = free_writer(loop);
    begin_shard(loop, *which_out, &loop->missing[next]);
    loop->next_missing = next + 1;
    return PRESTO_OK;
}

static presto_status take_by_number(shard_loop *loop, presto_batch *batch, presto_error *err) {
    size_t which;
    PRESTO_TRY(find_writer(loop, batch->first, &which, err));
    const presto__rows rows = {.batch = batch,
                               .frames = batch->frames,
                               .frame_bytes = batch->frame_bytes,
                               .count = batch->rows,
                               .raw_bytes = batch->raw_bytes};
    PRESTO_TRY(append_rows(loop, which, &rows, err));
    pass_samples(loop, which, batch->first + batch->rows + batch->skipped);
    const open_shard *open = &loop->open[which];
    return open->next == open->shard.end ? finish_shard(loop, which, open->next, err) : PRESTO_OK;
}

/* ---- the loader ---- */

/* A presto_stop_fn: progress is also reported while no sample comes. */
static bool should_stop(void *user) {
    return report(user, NULL) == PRESTO_ERR_STOPPED;
}

/* Load all samples of the first `count` ranges and give them to the writers. PRESTO_END: done. */
static presto_status load_ranges(shard_loop *loop, size_t count, presto_error *err) {
    presto__conversion *job = loop->job;
    presto_loader_options options;
    presto__loader_input input = {
        .source = job->source, .plan = job->plan, .packets_bytes = job->packets_bytes};
    loop->failed_at = UINT64_MAX;
    presto__conversion_loader_options(job, &options);
    options.should_stop = should_stop;
    options.should_stop_user = loop;
    presto__ranges_init(&input.ranges, loop->ranges, count, loop->count);
    PRESTO_TRY(presto__loader_open_input(&input, &options, &job->loader, err));
    for (;;) {
        PRESTO_TRY(make_room(loop, err));
        presto_batch *batch;
        presto_status status = presto_loader_next(job->loader, &batch, err);
        if (status < 0 && !presto__conversion_by_size(job))
            loop->failed_at = presto__loader_failed_at(job->loader);
        if (status == PRESTO_END)
            PRESTO_TRY(presto__conversion_check_skipped(job, err));
        if (status != PRESTO_OK)
            return status;
        status = presto__conversion_by_size(job) ? take_by_size(loop, batch, err)
                                                 : take_by_number(loop, batch, err);
        presto_batch_release(batch);
        PRESTO_TRY(status);
        PRESTO_TRY(collect(loop, err));
        PRESTO_TRY(report(loop, err));
    }
}

/* ---- after a failure ---- */

/* List the ranges that the open shards lack, in order; returns how many. */
static size_t list_rests(const shard_loop *loop) {
    size_t count = 0;
    for (size_t i = 0; i < loop->count; i++) {
        const open_shard *open = &loop->open[i];
        if (!open->is_open)
            continue;
        size_t at = count++;
        for (; at > 0 && loop->ranges[at - 1].first > open->next; at--)
            loop->ranges[at] = loop->ranges[at - 1];
        loop->ranges[at] = (presto__range){open->next, open->shard.end};
    }
    return count;
}

/* The loader has failed at a sample: give up its shard and all later ones, and load the rest of the
 * earlier ones. PRESTO_END: they have all samples. */
static presto_status load_rests(shard_loop *loop, presto_error *err) {
    presto__conversion *job = loop->job;
    size_t kept = 0;
    while (loop->missing[kept].end <= loop->failed_at)
        kept++;
    loop->failed_at = UINT64_MAX; /* a failure below is not of a sample */
    size_t given_up = loop->missing[kept].number;
    loop->missing_count = kept;
    for (size_t i = 0; i < loop->count; i++) {
        if (!loop->open[i].is_open || loop->open[i].shard.number < given_up)
            continue;
        PRESTO_TRY(make_room(loop, err));
        PRESTO_TRY(presto__writers_drop(loop->writers, i, err));
        loop->open[i].is_open = false;
    }
    PRESTO_TRY(settle_before(loop, given_up, err));
    PRESTO_TRY(merge_schema(job, err));
    presto_loader_free(job->loader);
    job->loader = NULL;
    return load_ranges(loop, list_rests(loop), err);
}

/* ---- all of it ---- */

/* Wait until the writers have finished all their tasks. */
static presto_status drain(shard_loop *loop, presto_error *err) {
    for (;;) {
        presto_status status = presto__writers_wait(loop->writers, PRESTO__WANTS_END, err);
        PRESTO_TRY(status);
        PRESTO_TRY(collect(loop, err));
        if (status == PRESTO_END)
            return PRESTO_OK;
        PRESTO_TRY(report(loop, err));
    }
}

static presto_status make_shards(shard_loop *loop, size_t range_count, presto_error *err) {
    presto__conversion *job = loop->job;
    presto_error failure = {0}, next;
    presto_status status = load_ranges(loop, range_count, &next);
    while (status < 0 && loop->failed_at != UINT64_MAX) {
        failure = next;
        status = load_rests(loop, &next);
    }
    if (status == PRESTO_END && failure.status == PRESTO_OK)
        status = presto__conversion_by_size(job) ? end_by_size(loop, &next)
                                                 : settle_before(loop, SIZE_MAX, &next);
    if (status >= 0)
        status = drain(loop, &next);
    if (status >= 0 && failure.status < 0) {
        next = failure;
        status = failure.status;
    }
    if (status < 0 && err != NULL)
        *err = next;
    return status;
}

/* List the shards to be made, and the samples that the loader must deliver for them. */
static presto_status list_missing(shard_loop *loop, size_t *range_count_out, presto_error *err) {
    const presto__conversion *job = loop->job;
    const presto__progress_file *progress = &job->progress;
    bool by_size = presto__conversion_by_size(job);
    size_t most = by_size ? 1 : job->shard_count - progress->shard_count;
    loop->missing = calloc(most + 1, sizeof *loop->missing);
    loop->ranges = calloc(most + PRESTO__MOST_OPEN, sizeof *loop->ranges);
    if (loop->missing == NULL || loop->ranges == NULL)
        return presto_fail_memory(err, most * sizeof *loop->missing);
    *range_count_out = 1;
    loop->ranges[0] = (presto__range){presto__progress_file_next(progress), job->sample_count};
    if (by_size)
        return PRESTO_OK;
    *range_count_out = 0;
    size_t whole = 0;
    size_t behind = presto__conversion_end_shard(job);
    for (size_t number = presto__conversion_first_shard(job); number < behind; number++) {
        if (whole < progress->shard_count && progress->shards[whole].number == number) {
            whole++;
            continue;
        }
        uint64_t first = presto__conversion_first(job, number);
        uint64_t end = presto__conversion_end(job, number);
        loop->missing[loop->missing_count++] =
            (presto__shard_range){.number = number, .first = first, .end = end};
        if (first < end)
            loop->ranges[(*range_count_out)++] = (presto__range){first, end};
    }
    return PRESTO_OK;
}

/* How many shards to make at once. */
static size_t writers_wanted(const presto__conversion *job, size_t range_count) {
    const presto_convert_options *options = job->options;
    /* Samples that are left out are counted and reported in the order of the samples, over all
     * shards. */
    if (presto__conversion_by_size(job) || presto__conversion_leaves_out(job) ||
        !presto__conversion_picks(job))
        return 1;
    size_t count = range_count < options->threads ? range_count : options->threads;
    return count == 0 ? 1 : count < PRESTO__MOST_OPEN ? count : PRESTO__MOST_OPEN;
}

/* Shards that end by their size are numbered as they become whole, one after the other. Else, to a
 * bucket, samples are made while the end of a shard is waited for. */
static bool has_threads(const presto__conversion *job, size_t count) {
    return count > 1 || (presto__path_is_remote(job->dir) && !presto__conversion_by_size(job));
}

presto_status presto__conversion_run_loop(presto__conversion *job, presto_error *err) {
    shard_loop loop = {.job = job, .done = presto__progress_file_samples(&job->progress)};
    size_t range_count = 0;
    presto_status status = list_missing(&loop, &range_count, err);
    loop.count = writers_wanted(job, range_count);
    if (status == PRESTO_OK)
        status =
            presto__writers_new(job, loop.count, has_threads(job, loop.count), &loop.writers, err);
    if (status == PRESTO_OK) {
        status = make_shards(&loop, range_count, err);
        presto__writers_stop(loop.writers);
        if (status < 0)
            (void)take_whole(&loop, NULL); /* a shard that is not noted is made again */
        presto__writers_free(loop.writers);
        if (job->loader != NULL)
            presto_loader_get_stats(job->loader, &job->stats);
    }
    free(loop.missing);
    free(loop.ranges);
    return status;
}
