/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writers of a conversion. Each has one shard at a time: it compresses and appends records, and
 * gives the file its name. With threads, each writer has its own, so syncing or compressing one
 * shard does not delay the others. Without threads, the caller does all.
 *
 * The queues are bounded in bytes and in tasks. The loader's own limit does not cover them: it
 * always makes one more packet for a waiting consumer. The caller waits for room, and can give up
 * meanwhile.
 *
 * The first failure stops all writers: they begin nothing new, queued tasks are dropped, and
 * unfinished shards lose their temporary files.
 */
#include <stdlib.h>
#include <time.h>

#include "../../base/file_internal.h"
#include "../../base/stop_internal.h"
#include "../../base/thread_internal.h"
#include "../../records/records_internal.h"
#include "convert_internal.h"

/* Open a shard under its working name. */
static presto_status open_writer(const presto__conversion *job, size_t shard,
                                 presto__shard_writer **writer_out, presto_error *err) {
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.compression = job->options->file_compression;
    options.sync = job->options->sync;
    char name[PRESTO__SHARD_NAME_BYTES];
    presto__conversion_working_name(job, shard, name);
    PRESTO_TRY(presto__conversion_check_folder(job, err));
    char *path = presto__join_path(job->dir, name);
    if (path == NULL)
        return presto_fail_memory(err, 1);
    presto_status status = presto__shard_writer_open(path, &options, writer_out, err);
    free(path);
    return status;
}

#define MOST_TASKS 64 /* of one writer */
#define MOST_ENDS 256 /* complete shards that are not taken yet */
#define WAIT_NS 100000000

typedef enum task_kind { TASK_APPEND, TASK_FINISH, TASK_DROP } task_kind;

typedef struct task {
    task_kind kind;
    presto__shard_range shard; /* APPEND: the number alone */
    presto__rows rows;         /* APPEND; its batch is held */
} task;

typedef struct shard_writer {
    presto__writers *writers; /* that it is part of; they join the thread before they are freed */
    pthread_t thread;
    bool is_started;
    /* Guarded by the lock. */
    pthread_cond_t has_task;
    bool is_idle;
    task tasks[MOST_TASKS]; /* a ring */
    size_t first, count;
    /* Its thread's alone. */
    presto__shard_writer *out; /* NULL: no shard is open */
    uint64_t raw_bytes;        /* of the open shard */
} shard_writer;

struct presto__writers {
    /* On the stack of presto_convert, or in a presto_writer. Both stop the writers before it goes.
     * Read-only while they work, but for its progress. */
    const presto__conversion *job;
    size_t count;
    bool has_threads;
    size_t most_bytes;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* for the caller */
    /* Guarded by the lock. */
    bool is_waited_for, waits_for_end;
    bool is_stopped;
    presto_error error; /* of the shard `failed`; SIZE_MAX: none has */
    size_t failed;
    size_t queued_bytes, tasks_left;
    size_t ends; /* complete shards that are not taken yet */
    presto__whole_shard whole[MOST_ENDS];
    size_t whole_count;
    shard_writer items[PRESTO__MOST_OPEN];
};

/* ---- a task ---- */

static presto_status open_shard(shard_writer *writer, size_t shard, presto_error *err) {
    if (writer->out != NULL)
        return PRESTO_OK;
    writer->raw_bytes = 0;
    return open_writer(writer->writers->job, shard, &writer->out, err);
}

static void drop_shard(shard_writer *writer) {
    presto__shard_writer_free(writer->out);
    writer->out = NULL;
}

static presto_status append(shard_writer *writer, const task *work, presto_error *err) {
    const presto__rows *rows = &work->rows;
    PRESTO_TRY(open_shard(writer, work->shard.number, err));
    writer->raw_bytes += rows->raw_bytes;
    return presto__shard_writer_append_frames(writer->out, rows->frames, rows->frame_bytes,
                                              rows->count, err);
}

static presto_status finish(shard_writer *writer, const task *work, presto__whole_shard *whole_out,
                            presto_error *err) {
    presto__shard_summary summary = {0};
    PRESTO_TRY(open_shard(writer, work->shard.number, err));
    presto_status status = presto__conversion_check_folder(writer->writers->job, err);
    if (status == PRESTO_OK)
        status = presto__shard_writer_finish(writer->out, &summary, err);
    drop_shard(writer);
    *whole_out = (presto__whole_shard){.number = work->shard.number,
                                       .first = work->shard.first,
                                       .end = work->shard.end,
                                       .skipped = work->shard.skipped,
                                       .described = {.records = summary.records,
                                                     .stored_bytes = summary.stored_bytes,
                                                     .raw_bytes = writer->raw_bytes,
                                                     .crc32c = summary.crc32c}};
    return status;
}

static presto_status run_task(shard_writer *writer, const task *work,
                              presto__whole_shard *whole_out, presto_error *err) {
    presto_status status = PRESTO_OK;
    if (work->kind == TASK_FINISH)
        status = finish(writer, work, whole_out, err);
    else if (work->kind == TASK_APPEND)
        status = append(writer, work, err);
    else
        drop_shard(writer);
    presto_batch_release(work->rows.batch);
    return status;
}

/* With the lock held: note the result of a task. */
static void note_task(presto__writers *writers, const task *work, const presto__whole_shard *whole,
                      const presto_error *error) {
    writers->queued_bytes -= work->rows.frames.bytes;
    writers->tasks_left--;
    if (error->status < 0) {
        /* Who stops because another one has failed is not the cause. */
        bool is_cause = !writers->is_stopped || error->status != PRESTO_ERR_STOPPED;
        writers->is_stopped = true;
        if (is_cause && work->shard.number < writers->failed) {
            writers->failed = work->shard.number;
            writers->error = *error;
        }
    } else if (work->kind == TASK_FINISH) {
        writers->whole[writers->whole_count++] = *whole;
    }
}

/* ---- threads: all but run_writer with the lock held ---- */

/* Has what the caller waits for happened? A little room is not worth waking it. */
static bool has_news(const presto__writers *writers) {
    if (writers->is_stopped || writers->whole_count > 0 || writers->tasks_left == 0)
        return true;
    if (writers->waits_for_end)
        return false;
    bool has_room = writers->queued_bytes <= writers->most_bytes / 2;
    for (size_t i = 0; i < writers->count; i++)
        has_room = has_room && writers->items[i].count <= MOST_TASKS / 2;
    return has_room;
}

static void tell_caller(presto__writers *writers) {
    if (!writers->is_waited_for || !has_news(writers))
        return;
    writers->is_waited_for = false;
    pthread_cond_signal(&writers->changed);
}

/* Waits for a task; false: there will be none. */
static bool next_task(shard_writer *writer, task *work_out) {
    presto__writers *writers = writer->writers;
    while (!writers->is_stopped && writer->count == 0) {
        writer->is_idle = true;
        pthread_cond_wait(&writer->has_task, &writers->lock);
    }
    writer->is_idle = false;
    if (writers->is_stopped)
        return false;
    *work_out = writer->tasks[writer->first];
    writer->first = (writer->first + 1) % MOST_TASKS;
    writer->count--;
    return true;
}

/* A presto_stop_fn. */
static bool is_stopped(void *user) {
    presto__writers *writers = user;
    pthread_mutex_lock(&writers->lock);
    bool stops = writers->is_stopped;
    pthread_mutex_unlock(&writers->lock);
    return stops;
}

static void *run_writer(void *argument) {
    shard_writer *writer = argument;
    presto__writers *writers = writer->writers;
    task work;
    presto__stop_hook pass;
    if (presto__path_is_remote(writers->job->dir)) /* what is tried again may take minutes */
        (void)presto__stop_enter(&pass, is_stopped, writers);
    pthread_mutex_lock(&writers->lock);
    while (next_task(writer, &work)) {
        pthread_mutex_unlock(&writers->lock);
        presto__whole_shard whole = {0};
        presto_error error = {0};
        error.status = run_task(writer, &work, &whole, &error);
        pthread_mutex_lock(&writers->lock);
        note_task(writers, &work, &whole, &error);
        tell_caller(writers);
    }
    pthread_mutex_unlock(&writers->lock);
    return NULL;
}

static presto_status start_threads(presto__writers *writers, presto_error *err) {
    int failed = 0;
    for (size_t i = 0; i < writers->count && failed == 0; i++) {
        shard_writer *writer = &writers->items[i];
        failed = presto__thread_start(&writer->thread, run_writer, writer);
        writer->is_started = failed == 0;
    }
    return failed == 0 ? PRESTO_OK
                       : presto_fail_errno(err, failed, "", "cannot start writing thread");
}

/* ---- the caller ---- */

presto_status presto__writers_new(const presto__conversion *job, size_t count, bool has_threads,
                                  presto__writers **writers_out, presto_error *err) {
    presto__writers *writers = calloc(1, sizeof *writers);
    if (writers == NULL)
        return presto_fail_memory(err, sizeof *writers);
    writers->job = job;
    writers->count = count;
    writers->has_threads = has_threads;
    writers->most_bytes = job->packets_bytes / 4;
    writers->failed = SIZE_MAX;
    pthread_mutex_init(&writers->lock, NULL);
    pthread_cond_init(&writers->changed, NULL);
    for (size_t i = 0; i < count; i++) {
        writers->items[i].writers = writers;
        pthread_cond_init(&writers->items[i].has_task, NULL);
    }
    presto_status status = has_threads ? start_threads(writers, err) : PRESTO_OK;
    if (status < 0) {
        presto__writers_stop(writers);
        presto__writers_free(writers);
        return status;
    }
    *writers_out = writers;
    return PRESTO_OK;
}

static presto_status failure(const presto__writers *writers, presto_error *err) {
    if (writers->failed == SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    if (err != NULL)
        *err = writers->error;
    return writers->error.status;
}

/* Give a task to a writer. Without threads it is run here. */
static presto_status hand_over(presto__writers *writers, size_t which, const task *work,
                               presto_error *err) {
    shard_writer *writer = &writers->items[which];
    presto__whole_shard whole = {0};
    presto_error error = {0};
    if (!writers->has_threads && !writers->is_stopped)
        error.status = run_task(writer, work, &whole, &error);
    pthread_mutex_lock(&writers->lock);
    presto_status status = writers->is_stopped ? failure(writers, err) : PRESTO_OK;
    bool was_idle = false;
    if (status == PRESTO_OK) {
        writers->queued_bytes += work->rows.frames.bytes;
        writers->tasks_left++;
        writers->ends += work->kind == TASK_FINISH;
        if (!writers->has_threads) {
            note_task(writers, work, &whole, &error);
            status = writers->is_stopped ? failure(writers, err) : PRESTO_OK;
        } else {
            writer->tasks[(writer->first + writer->count++) % MOST_TASKS] = *work;
            was_idle = writer->is_idle;
            writer->is_idle = false; /* it is woken only once */
        }
    } else {
        presto_batch_release(work->rows.batch);
    }
    pthread_mutex_unlock(&writers->lock);
    if (was_idle)
        pthread_cond_signal(&writer->has_task);
    return status;
}

presto_status presto__writers_append(presto__writers *writers, size_t which, size_t shard,
                                     const presto__rows *rows, presto_error *err) {
    const task work = {.kind = TASK_APPEND, .shard = {.number = shard}, .rows = *rows};
    return hand_over(writers, which, &work, err);
}

presto_status presto__writers_finish(presto__writers *writers, size_t which,
                                     const presto__shard_range *shard, presto_error *err) {
    const task work = {.kind = TASK_FINISH, .shard = *shard};
    return hand_over(writers, which, &work, err);
}

presto_status presto__writers_drop(presto__writers *writers, size_t which, presto_error *err) {
    const task work = {.kind = TASK_DROP, .shard = {.number = SIZE_MAX}};
    return hand_over(writers, which, &work, err);
}

bool presto__writers_have_room(presto__writers *writers) {
    pthread_mutex_lock(&writers->lock);
    bool has_room = writers->ends < MOST_ENDS &&
                    (writers->tasks_left == 0 || writers->queued_bytes < writers->most_bytes);
    for (size_t i = 0; i < writers->count; i++)
        has_room = has_room && writers->items[i].count < MOST_TASKS;
    has_room = has_room || writers->is_stopped; /* the next call reports the failure */
    pthread_mutex_unlock(&writers->lock);
    return has_room;
}

presto_status presto__writers_wait(presto__writers *writers, presto__wanted wanted,
                                   presto_error *err) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&writers->lock);
    writers->waits_for_end = wanted == PRESTO__WANTS_END;
    if (!has_news(writers)) {
        writers->is_waited_for = true;
        pthread_cond_timedwait(&writers->changed, &writers->lock, &until);
        writers->is_waited_for = false;
    }
    presto_status status = writers->is_stopped        ? failure(writers, err)
                           : writers->tasks_left == 0 ? PRESTO_END
                                                      : PRESTO_OK;
    pthread_mutex_unlock(&writers->lock);
    return status;
}

bool presto__writers_take(presto__writers *writers, presto__whole_shard *whole_out) {
    pthread_mutex_lock(&writers->lock);
    bool is_any = writers->whole_count > 0;
    if (is_any) {
        *whole_out = writers->whole[--writers->whole_count];
        writers->ends--;
    }
    pthread_mutex_unlock(&writers->lock);
    return is_any;
}

static void release_tasks(shard_writer *writer) {
    for (; writer->count > 0; writer->count--) {
        presto_batch_release(writer->tasks[writer->first].rows.batch);
        writer->first = (writer->first + 1) % MOST_TASKS;
    }
}

void presto__writers_stop(presto__writers *writers) {
    pthread_mutex_lock(&writers->lock);
    writers->is_stopped = true;
    for (size_t i = 0; i < writers->count; i++)
        pthread_cond_signal(&writers->items[i].has_task);
    pthread_mutex_unlock(&writers->lock);
    for (size_t i = 0; i < writers->count; i++) {
        shard_writer *writer = &writers->items[i];
        if (writer->is_started)
            pthread_join(writer->thread, NULL);
        writer->is_started = false;
        release_tasks(writer);
        drop_shard(writer);
    }
}

void presto__writers_free(presto__writers *writers) {
    for (size_t i = 0; i < writers->count; i++)
        pthread_cond_destroy(&writers->items[i].has_task);
    pthread_cond_destroy(&writers->changed);
    pthread_mutex_destroy(&writers->lock);
    free(writers);
}
