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
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "../../base/file_internal.h"
#include "convert_internal.h"

/* Open a shard under its working name. */
static presto_status open_writer(const presto__conversion *job, size_t shard,
                                 presto_shard_writer **writer_out, presto_error *err) {
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.compression = job->options->file_compression;
    options.sync = job->options->sync;
    char name[PRESTO__SHARD_NAME_BYTES];
    presto__conversion_working_name(job, shard, name);
    PRESTO_TRY(presto__conversion_check_folder(job, err));
    char *path = presto__join_path(job->dir, name);
    if (path == NULL)
        return presto_fail_memory(err, 1);
    presto_status status = presto_shard_writer_open(path, &options, writer_out, err);
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

typedef struct writer {
    presto__writers *all;
    pthread_t thread;
    bool is_started;
    /* Guarded by the lock. */
    pthread_cond_t has_task;
    bool is_idle;
    task tasks[MOST_TASKS]; /* a ring */
    size_t first, count;
    /* Its thread's alone. */
    presto_shard_writer *out; /* NULL: no shard is open */
    uint64_t raw_bytes;       /* of the open shard */
} writer;

struct presto__writers {
    /* On the stack of presto_convert, which stops the writers before it returns; read-only while
     * they work, but for its progress. */
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
    writer items[PRESTO__MOST_OPEN];
};

/* ---- a task ---- */

static presto_status open_shard(writer *one, size_t shard, presto_error *err) {
    if (one->out != NULL)
        return PRESTO_OK;
    one->raw_bytes = 0;
    return open_writer(one->all->job, shard, &one->out, err);
}

static void drop_shard(writer *one) {
    presto_shard_writer_free(one->out);
    one->out = NULL;
}

static presto_status append(writer *one, const task *work, presto_error *err) {
    const presto__rows *rows = &work->rows;
    PRESTO_TRY(open_shard(one, work->shard.number, err));
    one->raw_bytes += rows->raw_bytes;
    return presto_shard_writer_append_frames(one->out, rows->frames, rows->frame_bytes, rows->count,
                                             err);
}

static presto_status finish(writer *one, const task *work, presto__whole_shard *whole_out,
                            presto_error *err) {
    presto_shard_summary summary = {0};
    PRESTO_TRY(open_shard(one, work->shard.number, err));
    presto_status status = presto__conversion_check_folder(one->all->job, err);
    if (status == PRESTO_OK)
        status = presto_shard_writer_finish(one->out, &summary, err);
    drop_shard(one);
    *whole_out = (presto__whole_shard){.number = work->shard.number,
                                       .first = work->shard.first,
                                       .end = work->shard.end,
                                       .described = {.records = summary.records,
                                                     .stored_bytes = summary.stored_bytes,
                                                     .raw_bytes = one->raw_bytes,
                                                     .crc32c = summary.crc32c}};
    return status;
}

static presto_status run_task(writer *one, const task *work, presto__whole_shard *whole_out,
                              presto_error *err) {
    presto_status status = PRESTO_OK;
    if (work->kind == TASK_FINISH)
        status = finish(one, work, whole_out, err);
    else if (work->kind == TASK_APPEND)
        status = append(one, work, err);
    else
        drop_shard(one);
    presto_batch_release(work->rows.batch);
    return status;
}

/* With the lock held: note the result of a task. */
static void note_task(presto__writers *all, const task *work, const presto__whole_shard *whole,
                      const presto_error *error) {
    all->queued_bytes -= work->rows.frames.bytes;
    all->tasks_left--;
    if (error->status < 0) {
        all->is_stopped = true;
        if (work->shard.number < all->failed) {
            all->failed = work->shard.number;
            all->error = *error;
        }
    } else if (work->kind == TASK_FINISH) {
        all->whole[all->whole_count++] = *whole;
    }
}

/* ---- threads: all but run_writer with the lock held ---- */

/* Has what the caller waits for happened? A little room is not worth waking it. */
static bool has_news(const presto__writers *all) {
    if (all->is_stopped || all->whole_count > 0 || all->tasks_left == 0)
        return true;
    if (all->waits_for_end)
        return false;
    bool has_room = all->queued_bytes <= all->most_bytes / 2;
    for (size_t i = 0; i < all->count; i++)
        has_room = has_room && all->items[i].count <= MOST_TASKS / 2;
    return has_room;
}

static void tell_caller(presto__writers *all) {
    if (!all->is_waited_for || !has_news(all))
        return;
    all->is_waited_for = false;
    pthread_cond_signal(&all->changed);
}

/* Waits for a task; false: there will be none. */
static bool next_task(writer *one, task *work_out) {
    presto__writers *all = one->all;
    while (!all->is_stopped && one->count == 0) {
        one->is_idle = true;
        pthread_cond_wait(&one->has_task, &all->lock);
    }
    one->is_idle = false;
    if (all->is_stopped)
        return false;
    *work_out = one->tasks[one->first];
    one->first = (one->first + 1) % MOST_TASKS;
    one->count--;
    return true;
}

static void *run_writer(void *argument) {
    writer *one = argument;
    presto__writers *all = one->all;
    task work;
    pthread_mutex_lock(&all->lock);
    while (next_task(one, &work)) {
        pthread_mutex_unlock(&all->lock);
        presto__whole_shard whole = {0};
        presto_error error = {0};
        error.status = run_task(one, &work, &whole, &error);
        pthread_mutex_lock(&all->lock);
        note_task(all, &work, &whole, &error);
        tell_caller(all);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

static presto_status start_threads(presto__writers *all, presto_error *err) {
    /* The main thread of the program handles signals. */
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    int failed = 0;
    for (size_t i = 0; i < all->count && failed == 0; i++) {
        writer *one = &all->items[i];
        failed = pthread_create(&one->thread, NULL, run_writer, one);
        one->is_started = failed == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? PRESTO_OK
                       : presto_fail_errno(err, failed, "", "cannot start writing thread");
}

/* ---- the caller ---- */

presto_status presto__writers_new(const presto__conversion *job, size_t count, bool has_threads,
                                  presto__writers **writers_out, presto_error *err) {
    presto__writers *all = calloc(1, sizeof *all);
    if (all == NULL)
        return presto_fail_memory(err, sizeof *all);
    all->job = job;
    all->count = count;
    all->has_threads = has_threads;
    all->most_bytes = job->prefetch_bytes / 4;
    all->failed = SIZE_MAX;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
    for (size_t i = 0; i < count; i++) {
        all->items[i].all = all;
        pthread_cond_init(&all->items[i].has_task, NULL);
    }
    presto_status status = has_threads ? start_threads(all, err) : PRESTO_OK;
    if (status < 0) {
        presto__writers_stop(all);
        presto__writers_free(all);
        return status;
    }
    *writers_out = all;
    return PRESTO_OK;
}

static presto_status failure(const presto__writers *all, presto_error *err) {
    if (all->failed == SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    if (err != NULL)
        *err = all->error;
    return all->error.status;
}

/* Give a task to a writer. Without threads it is run here. */
static presto_status hand_over(presto__writers *all, size_t which, const task *work,
                               presto_error *err) {
    writer *one = &all->items[which];
    presto__whole_shard whole = {0};
    presto_error error = {0};
    if (!all->has_threads && !all->is_stopped)
        error.status = run_task(one, work, &whole, &error);
    pthread_mutex_lock(&all->lock);
    presto_status status = all->is_stopped ? failure(all, err) : PRESTO_OK;
    bool was_idle = false;
    if (status == PRESTO_OK) {
        all->queued_bytes += work->rows.frames.bytes;
        all->tasks_left++;
        all->ends += work->kind == TASK_FINISH;
        if (!all->has_threads) {
            note_task(all, work, &whole, &error);
            status = all->is_stopped ? failure(all, err) : PRESTO_OK;
        } else {
            one->tasks[(one->first + one->count++) % MOST_TASKS] = *work;
            was_idle = one->is_idle;
            one->is_idle = false; /* it is woken only once */
        }
    } else {
        presto_batch_release(work->rows.batch);
    }
    pthread_mutex_unlock(&all->lock);
    if (was_idle)
        pthread_cond_signal(&one->has_task);
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

static void release_tasks(writer *one) {
    for (; one->count > 0; one->count--) {
        presto_batch_release(one->tasks[one->first].rows.batch);
        one->first = (one->first + 1) % MOST_TASKS;
    }
}

void presto__writers_stop(presto__writers *writers) {
    pthread_mutex_lock(&writers->lock);
    writers->is_stopped = true;
    for (size_t i = 0; i < writers->count; i++)
        pthread_cond_signal(&writers->items[i].has_task);
    pthread_mutex_unlock(&writers->lock);
    for (size_t i = 0; i < writers->count; i++) {
        writer *one = &writers->items[i];
        if (one->is_started)
            pthread_join(one->thread, NULL);
        one->is_started = false;
        release_tasks(one);
        drop_shard(one);
    }
}

void presto__writers_free(presto__writers *writers) {
    for (size_t i = 0; i < writers->count; i++)
        pthread_cond_destroy(&writers->items[i].has_task);
    pthread_cond_destroy(&writers->changed);
    pthread_mutex_destroy(&writers->lock);
    free(writers);
}
