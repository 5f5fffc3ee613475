/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several shards at once. A lane is a thread that takes the next shard that nobody has, runs a
 * loader with its part of the worker threads over that shard's samples and writes them; so shards
 * are made side by side, each by itself in the order of its samples.
 *
 * Which failure is reported does not depend on who was faster: when a shard fails, those after it
 * are given up and those before it are finished, so that in the end it is the first failure in the
 * order of the samples, and all shards before it are whole. Those after it that were whole already
 * are removed, so that what stands does not depend on it either. The progress file lists the shards
 * up to the first that is not whole; the calling thread alone writes it.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "conversion_internal.h"

#define MAX_LANES 4
#define TELL_INTERVAL_NS 100000000

/* What has become of a shard. */
typedef struct made_shard {
    bool is_whole;
    presto__whole_shard shard; /* without a name */
    presto__schema schema;
} made_shard;

typedef struct lanes lanes;

typedef struct lane {
    lanes *all;
    pthread_t thread;
    bool is_started;
} lane;

struct lanes {
    /* Set before the lanes start, then read-only. */
    const presto__conversion *job; /* but for its progress, which is the calling thread's */
    lane *items;
    size_t count;
    presto_loader_options loader; /* of each lane, but for the range */
    size_t first;                 /* shard */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a shard is whole, has failed, or a lane has ended */
    /* Guarded by lock. */
    made_shard *made;   /* of shards from `first` on */
    size_t next;        /* shard that nobody has */
    size_t stop_at;     /* shards from here on need not be made: one has failed, or all is off */
    presto_error error; /* of shard `stop_at`; status 0: it was stopped from outside */
    size_t running;
    uint64_t samples, read_bytes, written_bytes;
};

/* ---- one shard ---- */

static bool is_off(lanes *all, size_t shard) {
    pthread_mutex_lock(&all->lock);
    bool off = shard >= all->stop_at;
    pthread_mutex_unlock(&all->lock);
    return off;
}

static uint64_t first_of(const presto__conversion *job, size_t shard) {
    return shard == 0 ? 0 : presto__conversion_end(job, shard - 1);
}

static uint64_t raw_bytes_of(const presto_batch *batch) {
    const presto__batch *inner = (const presto__batch *)(const void *)batch;
    uint64_t bytes = 0;
    for (size_t row = 0; row < batch->rows; row++)
        bytes += inner->packet->raw_bytes[inner->first + row];
    return bytes;
}

static void note_batch(lanes *all, const presto_loader *loader, const presto_batch *batch,
                       uint64_t *read_before) {
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    pthread_mutex_lock(&all->lock);
    all->samples += batch->rows;
    all->written_bytes += batch->frames.bytes;
    all->read_bytes += stats.read_bytes - *read_before;
    pthread_mutex_unlock(&all->lock);
    *read_before = stats.read_bytes;
}

/* PRESTO_ERR_STOPPED if the shard need not be made any more. */
static presto_status pump(lanes *all, size_t shard, presto_loader *loader,
                          presto_shard_writer *writer, made_shard *made, presto_error *err) {
    uint64_t read_before = 0;
    for (;;) {
        presto_batch *batch;
        presto_status status = presto_loader_next(loader, &batch, err);
        if (status == PRESTO_END)
            return presto__loader_schema_into(loader, &made->schema, err);
        PRESTO_TRY(status);
        made->shard.described.raw_bytes += raw_bytes_of(batch);
        status = presto_shard_writer_append_frames(writer, batch->frames, batch->frame_bytes,
                                                   batch->rows, err);
        note_batch(all, loader, batch, &read_before);
        presto_batch_release(batch);
        PRESTO_TRY(status);
        if (is_off(all, shard))
            return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    }
}

static presto_status load_shard(lanes *all, size_t shard, presto_shard_writer *writer,
                                made_shard *made, presto_error *err) {
    const presto__conversion *job = all->job;
    uint64_t first = first_of(job, shard);
    if (made->shard.end == first)
        return PRESTO_OK; /* more shards than samples */
    presto_loader_options options = all->loader;
    options.first_sample = first;
    options.limit_samples = made->shard.end - first;
    presto_loader *loader;
    PRESTO_TRY(presto_loader_open(job->source, job->plan, &options, &loader, err));
    presto_status status = pump(all, shard, loader, writer, made, err);
    presto_loader_free(loader);
    return status;
}

static presto_status make_shard(lanes *all, size_t shard, made_shard *made, presto_error *err) {
    presto_shard_writer *writer;
    presto_shard_summary summary = {0};
    PRESTO_TRY(presto__conversion_open_writer(all->job, shard, &writer, err));
    made->shard.end = presto__conversion_end(all->job, shard);
    presto_status status = load_shard(all, shard, writer, made, err);
    if (status == PRESTO_OK)
        status = presto_shard_writer_finish(writer, &summary, err);
    presto_shard_writer_free(writer);
    PRESTO_TRY(status);
    made->shard.described.records = summary.records;
    made->shard.described.stored_bytes = summary.stored_bytes;
    made->shard.described.crc32c = summary.crc32c;
    return PRESTO_OK;
}

/* ---- a lane ---- */

static void *run_lane(void *argument) {
    lanes *all = ((lane *)argument)->all;
    pthread_mutex_lock(&all->lock);
    while (all->next < all->job->shard_count && all->next < all->stop_at) {
        size_t shard = all->next++;
        pthread_mutex_unlock(&all->lock);
        made_shard made = {0};
        presto_error err;
        presto_status status = make_shard(all, shard, &made, &err);
        pthread_mutex_lock(&all->lock);
        made.is_whole = status == PRESTO_OK;
        all->made[shard - all->first] = made;
        if (status < 0 && shard < all->stop_at) {
            all->stop_at = shard;
            all->error = err;
        }
        pthread_cond_signal(&all->changed);
    }
    all->running--;
    pthread_cond_signal(&all->changed);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

static presto_status start_lanes(lanes *all, presto_error *err) {
    for (size_t i = 0; i < all->count; i++) {
        lane *one = &all->items[i];
        one->all = all;
        pthread_mutex_lock(&all->lock);
        all->running++;
        pthread_mutex_unlock(&all->lock);
        int code = pthread_create(&one->thread, NULL, run_lane, one);
        one->is_started = code == 0;
        if (code != 0) {
            pthread_mutex_lock(&all->lock);
            all->running--;
            pthread_mutex_unlock(&all->lock);
            return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "cannot start a thread: %s",
                               code == EAGAIN ? "too many of them" : "not permitted");
        }
    }
    return PRESTO_OK;
}

/* ---- the calling thread ---- */

/* Called with the lock, which it lets go of for a while: note shard `shard`, which is whole. */
static presto_status take_whole(presto__conversion *job, lanes *all, size_t shard,
                                presto_error *err) {
    pthread_mutex_unlock(&all->lock);
    const made_shard *made = &all->made[shard - all->first]; /* nobody touches it any more */
    char name[PRESTO__SHARD_NAME_BYTES];
    presto__conversion_working_name(job, shard, name);
    presto_status status = presto__schema_merge(&job->progress.schema, &made->schema, err);
    if (status == PRESTO_OK)
        status = presto__progress_add(&job->progress, name, &made->shard, err);
    if (status == PRESTO_OK)
        status = presto__conversion_note(job, err);
    pthread_mutex_lock(&all->lock);
    return status;
}

/* Called with the lock, as take_whole. */
static presto_status tell(presto__conversion *job, lanes *all, presto_error *err) {
    job->stats.read_bytes = all->read_bytes;
    job->stats.delivered_bytes = all->written_bytes;
    uint64_t done = first_of(job, all->first) + all->samples;
    pthread_mutex_unlock(&all->lock);
    presto_status status = presto__conversion_tell(job, done, err);
    pthread_mutex_lock(&all->lock);
    return status;
}

static void wait_for_change(lanes *all) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TELL_INTERVAL_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&all->changed, &all->lock, &until);
}

/* Until the lanes have ended; what fails here stops them all. */
static presto_status watch(presto__conversion *job, lanes *all, presto_error *err) {
    presto_status status = PRESTO_OK;
    pthread_mutex_lock(&all->lock);
    for (;;) {
        size_t shard = job->progress.shard_count;
        if (status == PRESTO_OK && shard < job->shard_count &&
            all->made[shard - all->first].is_whole)
            status = take_whole(job, all, shard, err);
        else if (all->running == 0)
            break;
        else
            wait_for_change(all);
        if (status == PRESTO_OK)
            status = tell(job, all, err);
        if (status < 0)
            all->stop_at = 0;
    }
    if (status == PRESTO_OK && all->stop_at < job->shard_count) {
        if (err != NULL)
            *err = all->error;
        status = all->error.status;
    }
    pthread_mutex_unlock(&all->lock);
    return status;
}

static presto_status run_lanes(presto__conversion *job, lanes *all, presto_error *err) {
    presto_error start_error;
    presto_status started = start_lanes(all, &start_error);
    if (started < 0) {
        pthread_mutex_lock(&all->lock);
        all->stop_at = 0;
        pthread_mutex_unlock(&all->lock);
    }
    presto_status status = PRESTO_OK;
    if (started == PRESTO_OK)
        status = watch(job, all, err);
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].is_started)
            pthread_join(all->items[i].thread, NULL);
    if (started < 0 && err != NULL)
        *err = start_error;
    return started < 0 ? started : status;
}

/* After a failure: the whole shards that follow one that is not, as if nobody had run ahead. */
static void remove_later(const presto__conversion *job, const lanes *all) {
    for (size_t i = job->progress.shard_count; all->made != NULL && i < job->shard_count; i++)
        if (all->made[i - all->first].is_whole)
            presto__conversion_remove_shard(job, i);
}

size_t presto__conversion_lanes(const presto__conversion *job) {
    const presto_convert_options *options = job->options;
    const presto_source *source = job->source;
    presto_error err;
    /* Samples left out are counted and told in the order of the samples, over all shards. */
    if (presto__conversion_by_size(job) || options->file_compression == PRESTO_FILE_PLAIN ||
        options->on_error != PRESTO_ON_ERROR_FAIL || options->auto_threads ||
        (source->ops->check_random_access != NULL &&
         source->ops->check_random_access(job->source, &err) < 0))
        return 1;
    size_t count = job->shard_count - job->progress.shard_count;
    count = count < options->threads ? count : options->threads;
    return count < MAX_LANES ? count : MAX_LANES;
}

presto_status presto__conversion_write_lanes(presto__conversion *job, size_t count,
                                             presto_error *err) {
    size_t first = job->progress.shard_count;
    lanes all = {.job = job,
                 .count = count,
                 .first = first,
                 .next = first,
                 .stop_at = SIZE_MAX,
                 .lock = PTHREAD_MUTEX_INITIALIZER,
                 .changed = PTHREAD_COND_INITIALIZER};
    presto__conversion_loader_options(job, &all.loader);
    all.loader.threads /= (unsigned)count;
    all.loader.prefetch_bytes /= count;
    all.items = calloc(count, sizeof *all.items);
    all.made = calloc(job->shard_count - first, sizeof *all.made);
    presto_status status =
        all.items == NULL || all.made == NULL
            ? presto_fail_memory(err, (job->shard_count - first) * sizeof *all.made)
            : run_lanes(job, &all, err);
    if (status < 0)
        remove_later(job, &all);
    job->stats.read_bytes = all.read_bytes;
    job->stats.threads = all.loader.threads * (unsigned)count;
    for (size_t i = 0; all.made != NULL && i < job->shard_count - first; i++)
        presto__schema_done(&all.made[i].schema);
    free(all.made);
    free(all.items);
    pthread_cond_destroy(&all.changed);
    pthread_mutex_destroy(&all.lock);
    return status;
}
