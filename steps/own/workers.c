/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of one program, each serving one thread at a time: one write and one read a sample. The
 * process that was used last is taken first: its memory is warm.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "../../base/clock_internal.h"
#include "../../base/process_internal.h"
#include "../../base/thread_internal.h"
#include "own_internal.h"

enum {
    FIRST_REPLY_BYTES = 64 * 1024,
    LARGE_BYTES = 64 * 1024, /* what a pipe holds at first */
    SLICE_NS = 50000000      /* between two questions whether to stop */
};
/* How long a process may take to end: asked at the end of its stdin, or when it is gone anyway. */
#define POLITE_NS UINT64_C(5000000000)
#define CURT_NS UINT64_C(300000000)

typedef struct worker {
    presto__process process;
    uint64_t number; /* of the last request */
    struct worker *next_free;
    struct worker *next;
} worker;

struct presto__workers {
    presto__workers_options options;
    presto__family family; /* of all processes, so that their strays are found */
    pthread_mutex_t lock;
    pthread_cond_t freed; /* a process is free, or one has ended */
    /* Guarded by lock: */
    worker *workers; /* all that run */
    worker *free;    /* those that nobody uses */
    unsigned count;  /* that run or start */
    bool has_failed;
    bool has_started; /* one of them, ever */
};

static int init_lock(presto__workers *pool) {
    int failed = pthread_mutex_init(&pool->lock, NULL);
    if (failed != 0)
        return failed;
    failed = presto__timed_condition_init(&pool->freed);
    if (failed != 0)
        pthread_mutex_destroy(&pool->lock);
    return failed;
}

presto_status presto__workers_new(const presto__workers_options *options,
                                  presto__workers **pool_out, presto_error *err) {
    presto__workers *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return presto_fail_memory(err, sizeof *pool);
    pool->options = *options;
    pool->family = presto__family_new();
    int failed = init_lock(pool);
    if (failed != 0) {
        free(pool);
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    *pool_out = pool;
    return PRESTO_OK;
}

void presto__workers_free(presto__workers *pool) {
    if (pool == NULL)
        return;
    for (worker *w = pool->workers; w != NULL; w = w->next)
        presto__process_finish(&w->process);
    uint64_t end = presto__clock_ns() + (pool->has_failed ? CURT_NS : POLITE_NS);
    while (pool->workers != NULL) {
        worker *w = pool->workers;
        uint64_t now = presto__clock_ns();
        pool->workers = w->next;
        presto__process_end(&w->process, now < end ? end - now : 0);
        free(w);
    }
    if (pool->has_started)
        presto__process_kill_marked(pool->family.name);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* ---- one that is free ---- */

static presto_status start_worker(presto__workers *pool, worker **worker_out, presto_error *err) {
    worker *w = calloc(1, sizeof *w);
    presto_status status = w == NULL ? presto_fail_memory(err, sizeof *w)
                                     : presto__process_start(pool->options.path, pool->options.argv,
                                                             &pool->family, &w->process, err);
    pthread_mutex_lock(&pool->lock);
    if (status < 0) {
        pool->count--;
        pthread_cond_signal(&pool->freed);
    } else {
        w->next = pool->workers;
        pool->workers = w;
        pool->has_started = true;
    }
    pthread_mutex_unlock(&pool->lock);
    if (status < 0)
        free(w);
    else
        *worker_out = w;
    return status;
}

static void wait_slice_locked(presto__workers *pool) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SLICE_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&pool->freed, &pool->lock, &until);
}

static presto_status take_worker(presto__workers *pool, const presto__exchange *exchange,
                                 worker **worker_out, presto_error *err) {
    bool starts = false, stops = false;
    pthread_mutex_lock(&pool->lock);
    while (pool->free == NULL && !starts && !stops) {
        if (pool->options.most == 0 || pool->count < pool->options.most) {
            pool->count++;
            starts = true;
        } else {
            wait_slice_locked(pool);
            stops = exchange->stop != NULL && exchange->stop(exchange->stop_user);
        }
    }
    worker *w = starts || stops ? NULL : pool->free;
    if (w != NULL)
        pool->free = w->next_free;
    pthread_mutex_unlock(&pool->lock);
    if (stops)
        return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    if (starts)
        return start_worker(pool, worker_out, err);
    *worker_out = w;
    return PRESTO_OK;
}

static void give_worker(presto__workers *pool, worker *w) {
    pthread_mutex_lock(&pool->lock);
    w->next_free = pool->free;
    pool->free = w;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- one that has failed ---- */

static void describe_end(int status, char *text, size_t room) {
    if (status != -1 && WIFEXITED(status))
        snprintf(text, room, "has ended with code %d", WEXITSTATUS(status));
    else if (status != -1 && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        snprintf(text, room, "was killed by signal %d", WTERMSIG(status));
    else
        snprintf(text, room, "has closed its stdin or stdout, or was killed");
}

static void forget_worker(presto__workers *pool, worker *w) {
    pthread_mutex_lock(&pool->lock);
    worker **at = &pool->workers;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pool->count--;
    pool->has_failed = true;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
    free(w);
}

/* End the process, of which `what` is known (NULL: that it has gone), and tell its last lines. */
static presto_status bury_worker(presto__workers *pool, worker *w, const char *what,
                                 presto_error *err) {
    char end[64], lines[280];
    int status = presto__process_end(&w->process, what == NULL ? CURT_NS : 0);
    presto__process_kill_marked(w->process.mark);
    describe_end(status, end, sizeof end);
    presto__process_last_lines(&w->process, lines, sizeof lines);
    presto_status failed =
        presto__own_fail(err, "%s %s%s%s", pool->options.path, what != NULL ? what : end,
                         lines[0] != '\0' ? "; its last lines: " : "", lines);
    forget_worker(pool, w);
    return failed;
}

static presto_status bury_late(presto__workers *pool, worker *w, uint64_t allowed_ns,
                               presto_error *err) {
    char what[64];
    snprintf(what, sizeof what, "has not answered for %.9g s", (double)allowed_ns / 1e9);
    return bury_worker(pool, w, what, err);
}

/* ---- the exchange ---- */

/* How a frame came. */
typedef enum progress { WHOLE, CLOSED, LATE, STOPPED, BROKEN, NO_MEMORY } progress;

static progress progress_of(presto__process_event event) {
    switch (event) {
    case PRESTO__PROCESS_CLOSED:
        return CLOSED;
    case PRESTO__PROCESS_LATE:
        return LATE;
    case PRESTO__PROCESS_STOPPED:
        return STOPPED;
    case PRESTO__PROCESS_MOVED:
    case PRESTO__PROCESS_FAILED:
    default:
        return BROKEN;
    }
}

/* Send the request and receive until the reply is whole. */
static progress talk(presto__workers *pool, worker *w, const presto__exchange *exchange,
                     const presto__process_wait *wait, presto_error *err) {
    presto_buffer *reply = exchange->reply;
    presto_span unsent = presto_buffer_span(exchange->request);
    uint64_t wanted = UINT64_MAX;
    if (presto_buffer_reserve(reply, FIRST_REPLY_BYTES, err) < 0)
        return NO_MEMORY;
    if (unsent.bytes > LARGE_BYTES)
        presto__process_grow(&w->process);
    while (reply->bytes < wanted) {
        presto__process_event event = presto__process_move(&w->process, &unsent, reply, wait);
        if (event == PRESTO__PROCESS_FAILED)
            presto__own_error(err, "cannot talk to it: error %d", errno);
        if (event != PRESTO__PROCESS_MOVED)
            return progress_of(event);
        if (wanted != UINT64_MAX || reply->bytes < PRESTO__HEAD_BYTES)
            continue;
        uint64_t bytes = 0;
        if (presto__head_check(reply->data, w->number, pool->options.most_reply_bytes, &bytes,
                               err) < 0)
            return BROKEN;
        wanted = PRESTO__HEAD_BYTES + bytes;
        if (wanted > LARGE_BYTES)
            presto__process_grow(&w->process);
        if (wanted >= reply->capacity &&
            presto_buffer_reserve(reply, (size_t)wanted + 1 - reply->bytes, err) < 0)
            return NO_MEMORY;
    }
    if (unsent.bytes > 0)
        presto__own_error(err, "it has answered before it had the whole request");
    else if (reply->bytes > wanted)
        presto__own_error(err, "more follows its reply: one frame answers one request");
    return unsent.bytes == 0 && reply->bytes == wanted ? WHOLE : BROKEN;
}

/* Say what kept the reply from being whole; the process is of no more use. */
static presto_status fail_exchange(presto__workers *pool, worker *w, progress how,
                                   uint64_t allowed_ns, presto_error *err) {
    presto_error inner = {.message = ""};
    if (err != NULL)
        inner = *err;
    switch (how) {
    case LATE:
        return bury_late(pool, w, allowed_ns, err);
    case BROKEN: {
        char what[PRESTO_ERROR_MESSAGE_BYTES];
        snprintf(what, sizeof what, "is no worker of a step: %.200s", inner.message);
        return bury_worker(pool, w, what, err);
    }
    case STOPPED:
    case NO_MEMORY:
        presto__process_end(&w->process, 0);
        presto__process_kill_marked(w->process.mark);
        forget_worker(pool, w);
        return how == NO_MEMORY ? PRESTO_ERR_MEMORY
                                : presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    case WHOLE:
    case CLOSED:
        break;
    }
    return bury_worker(pool, w, NULL, err);
}

presto_status presto__workers_ask(presto__workers *pool, const presto__exchange *exchange,
                                  presto_error *err) {
    worker *w = NULL;
    PRESTO_TRY(take_worker(pool, exchange, &w, err));
    const presto__workers_options *options = &pool->options;
    uint64_t allowed_ns = options->timeout_ns + (w->number == 0 ? options->start_ns : 0);
    const presto__process_wait wait = {.deadline_ns = presto__clock_ns() + allowed_ns,
                                       .stop = exchange->stop,
                                       .stop_user = exchange->stop_user};
    presto__head_put(exchange->request->data, exchange->request->bytes - PRESTO__HEAD_BYTES,
                     ++w->number);
    presto_error local; /* what is wrong must be kept, whether the caller asks or not */
    progress how = talk(pool, w, exchange, &wait, err != NULL ? err : &local);
    if (how != WHOLE)
        return fail_exchange(pool, w, how, allowed_ns, err != NULL ? err : &local);
    give_worker(pool, w);
    return PRESTO_OK;
}
