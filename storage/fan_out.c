/* SPDX-License-Identifier: Apache-2.0 */
#include "fan_out_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include "../base/clock_internal.h"
#include "../base/stop_internal.h"
#include "../base/thread_internal.h"
#include "play_internal.h"
#include "storage_internal.h"

/* Another thread each time that so much has passed and jobs are left, unless each thread has ended
 * one meanwhile: a few times what a start takes, so that short jobs are done by a few. */
#define START_EVERY_NS UINT64_C(200000)
/* The caller asks so often whether its storage is still wanted. */
#define ASK_NS UINT64_C(100000000)
/* Each thread may have a file open: of those that the process may have, one of so many. */
#define SHARE_OF_FILES 8

typedef struct fan_out {
    presto__job_fn job;
    void *user;
    size_t count;
    presto__storage_thread *caller; /* NULL: no storage is played */
    presto__stop_scope pass;        /* that the caller is in */
    presto__ahead *ahead;           /* that the caller is bound to */
    pthread_mutex_t lock;           /* of all that follows */
    pthread_cond_t ended;           /* a thread has */
    size_t next, done;
    size_t running; /* threads */
    size_t failed_at;
    presto_error failure;    /* of job failed_at, if that is below count */
    uint64_t reads, wait_ns; /* of threads that have ended */
} fan_out;

/* ---- jobs ---- */

/* With the lock held. */
static bool has_jobs(const fan_out *all) {
    return all->next < all->count && all->failed_at == all->count;
}

/* False: there is none. */
static bool take_job(fan_out *all, size_t *job_out) {
    pthread_mutex_lock(&all->lock);
    bool has_one = has_jobs(all);
    if (has_one)
        *job_out = all->next++;
    pthread_mutex_unlock(&all->lock);
    return has_one;
}

static void do_job(fan_out *all, size_t i) {
    presto_error err;
    bool has_failed = all->job(all->user, i, &err) < 0;
    pthread_mutex_lock(&all->lock);
    all->done++;
    if (has_failed && i < all->failed_at) {
        all->failed_at = i;
        all->failure = err;
    }
    pthread_mutex_unlock(&all->lock);
}

static void do_jobs(fan_out *all) {
    size_t i;
    while (take_job(all, &i))
        do_job(all, i);
}

static void *run(void *argument) {
    fan_out *all = argument; /* the caller's: it joins this thread before it returns */
    presto__storage_thread mine = {0};
    if (all->caller != NULL) {
        presto__storage_thread_init(&mine, all->caller->storage);
        (void)presto__storage_bind(&mine);
    }
    (void)presto__stop_bind((presto__stop_scope){.hook = all->pass.hook});
    (void)presto__ahead_bind(all->ahead);
    do_jobs(all);
    pthread_mutex_lock(&all->lock);
    all->reads += mine.reads;
    all->wait_ns += mine.wait_ns;
    all->running--;
    pthread_cond_signal(&all->ended);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* ---- the caller ---- */

/* With the lock held. False: the machine has no room for another thread. */
static bool start_thread(fan_out *all, pthread_t *thread_out) {
    all->running++;
    pthread_mutex_unlock(&all->lock);
    bool is_started = presto__thread_start(thread_out, run, all) == 0;
    pthread_mutex_lock(&all->lock);
    all->running -= !is_started;
    return is_started;
}

/* With the lock held, but not while it waits. True: nothing happened for so long. */
static bool wait_for_end(fan_out *all, uint64_t most_ns) {
    uint64_t until_ns = presto__clock_ns() + most_ns;
    const struct timespec deadline = {.tv_sec = (time_t)(until_ns / 1000000000),
                                      .tv_nsec = (long)(until_ns % 1000000000)};
    return pthread_cond_timedwait(&all->ended, &all->lock, &deadline) == ETIMEDOUT;
}

/* With the lock held, but not while the caller's function runs. */
static void ask_caller(fan_out *all) {
    presto__storage_thread *caller = all->caller;
    pthread_mutex_unlock(&all->lock);
    (void)presto__stop_check(NULL); /* the jobs see the answer */
    if (caller != NULL && caller->stop != NULL && caller->stop(caller->stop_user))
        presto__storage_cancel(caller->storage);
    pthread_mutex_lock(&all->lock);
}

static size_t most_threads(size_t jobs) {
    struct rlimit limit;
    size_t most = jobs < PRESTO__FAN_OUT_MOST ? jobs : PRESTO__FAN_OUT_MOST;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / SHARE_OF_FILES < most)
        most = (size_t)(limit.rlim_cur / SHARE_OF_FILES);
    return most;
}

static void run_threads(fan_out *all) {
    pthread_t threads[PRESTO__FAN_OUT_MOST];
    size_t most = most_threads(all->count), started = 0, done = 0;
    pthread_mutex_lock(&all->lock);
    do {
        bool is_slow = started == 0 || all->done - done < started;
        if (is_slow && started < most && has_jobs(all)) {
            if (start_thread(all, &threads[started]))
                started++;
            else
                most = started;
        }
        done = all->done;
        bool may_start = started < most && has_jobs(all);
        if (all->running > 0 && wait_for_end(all, may_start ? START_EVERY_NS : ASK_NS))
            ask_caller(all);
    } while (all->running > 0);
    pthread_mutex_unlock(&all->lock);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (all->caller != NULL) {
        all->caller->reads += all->reads;
        all->caller->wait_ns += all->wait_ns;
    }
}

static int init(fan_out *all) {
    int failed = presto__timed_condition_init(&all->ended);
    if (failed != 0)
        return failed;
    failed = pthread_mutex_init(&all->lock, NULL);
    if (failed != 0)
        pthread_cond_destroy(&all->ended);
    return failed;
}

presto_status presto__fan_out(size_t count, presto__job_fn job, void *user, presto_error *err) {
    fan_out all = {.job = job,
                   .user = user,
                   .count = count,
                   .failed_at = count,
                   .caller = presto__storage_bound(),
                   .pass = presto__stop_bound(),
                   .ahead = presto__ahead_bound()};
    int failed = init(&all);
    if (failed != 0)
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    if (count > 1)
        run_threads(&all);
    do_jobs(&all); /* of a single job, or without threads */
    pthread_mutex_destroy(&all.lock);
    pthread_cond_destroy(&all.ended);
    if (all.failed_at == count)
        return PRESTO_OK;
    if (err != NULL)
        *err = all.failure;
    return all.failure.status;
}
