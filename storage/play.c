/* SPDX-License-Identifier: Apache-2.0 */
#include "play_internal.h"

#include <time.h>

#include "../base/clock_internal.h"
#include "../base/thread_internal.h"

/* Shorter waits are put off: the system's timers are less exact than this. */
#define SHORT_NS 100000.0
/* A thread may catch up with so much, not with a machine that was asleep. */
#define MOST_LATE_NS 1e8
#define MOST_SLACK_NS 1e7
/* No read takes longer; keeps sums finite. */
#define MOST_READ_NS 1e16
#define ASK_NS UINT64_C(100000000)
#define MOST_SLEEP_NS UINT64_C(3600000000000)

static _Thread_local presto__storage_thread *bound;

presto_status presto__storage_init(presto__played_storage *storage, const presto_storage *limits,
                                   const presto__storage_time *time, presto_error *err) {
    storage->limits = *limits;
    storage->time = time;
    storage->start_ns = time == NULL ? presto__clock_ns() : time->now_ns(time->user);
    atomic_init(&storage->is_cancelled, false);
    atomic_init(&storage->slack_ns, 0);
    atomic_init(&storage->bandwidth_free_ns, 0);
    atomic_init(&storage->reads_free_ns, 0);
    int failed = presto__timed_condition_init(&storage->over);
    if (failed != 0)
        return presto_fail_errno(err, failed, NULL, "cannot make a condition variable");
    failed = pthread_mutex_init(&storage->lock, NULL);
    if (failed == 0)
        return PRESTO_OK;
    pthread_cond_destroy(&storage->over);
    return presto_fail_errno(err, failed, NULL, "cannot make a lock");
}

void presto__storage_done(presto__played_storage *storage) {
    pthread_mutex_destroy(&storage->lock);
    pthread_cond_destroy(&storage->over);
}

void presto__storage_cancel(presto__played_storage *storage) {
    pthread_mutex_lock(&storage->lock);
    atomic_store(&storage->is_cancelled, true);
    pthread_cond_broadcast(&storage->over);
    pthread_mutex_unlock(&storage->lock);
}

void presto__storage_thread_init(presto__storage_thread *thread, presto__played_storage *storage) {
    *thread = (presto__storage_thread){.storage = storage, .file = -1};
}

presto__storage_thread *presto__storage_bind(presto__storage_thread *thread) {
    presto__storage_thread *before = bound;
    bound = thread;
    return before;
}

presto__storage_thread *presto__storage_bound(void) {
    return bound;
}

static uint64_t now(const presto__played_storage *storage) {
    return storage->time == NULL ? presto__clock_ns() : storage->time->now_ns(storage->time->user);
}

uint64_t presto__storage_begin(const presto__storage_thread *thread) {
    return now(thread->storage);
}

/* ---- waiting ---- */

static void sleep_until(presto__storage_thread *thread, uint64_t until_ns) {
    presto__played_storage *storage = thread->storage;
    uint64_t now_ns = presto__clock_ns();
    pthread_mutex_lock(&storage->lock);
    while (now_ns < until_ns && !atomic_load(&storage->is_cancelled)) {
        uint64_t most = thread->stop != NULL ? ASK_NS : MOST_SLEEP_NS;
        uint64_t wake_ns = until_ns - now_ns < most ? until_ns : now_ns + most;
        struct timespec deadline = {.tv_sec = (time_t)(wake_ns / 1000000000),
                                    .tv_nsec = (long)(wake_ns % 1000000000)};
        (void)pthread_cond_timedwait(&storage->over, &storage->lock, &deadline);
        now_ns = presto__clock_ns();
        if (thread->stop == NULL || now_ns >= until_ns)
            continue;
        pthread_mutex_unlock(&storage->lock); /* it may call presto__storage_cancel */
        bool stops = thread->stop(thread->stop_user);
        pthread_mutex_lock(&storage->lock);
        if (stops) {
            atomic_store(&storage->is_cancelled, true);
            pthread_cond_broadcast(&storage->over);
        }
    }
    pthread_mutex_unlock(&storage->lock);
}

/* A thread has woken so late. */
static void note_late(presto__played_storage *storage, double late_ns) {
    double known = atomic_load_explicit(&storage->slack_ns, memory_order_relaxed);
    double most = late_ns < MOST_SLACK_NS ? late_ns : MOST_SLACK_NS;
    while (most > known &&
           !atomic_compare_exchange_weak_explicit(&storage->slack_ns, &known, most,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
}

/* What the thread did is done at `done_ns` of its clock. */
static void wait_for(presto__storage_thread *thread, double done_ns) {
    presto__played_storage *storage = thread->storage;
    uint64_t before_ns = now(storage);
    double late_ns = (double)(before_ns - storage->start_ns) - done_ns;
    if (late_ns < -SHORT_NS && !atomic_load(&storage->is_cancelled)) {
        uint64_t until_ns = storage->start_ns + (uint64_t)done_ns;
        if (storage->time == NULL)
            sleep_until(thread, until_ns);
        else
            storage->time->wait_until_ns(storage->time->user, until_ns);
        uint64_t after_ns = now(storage);
        thread->wait_ns += after_ns - before_ns;
        late_ns = (double)(after_ns - storage->start_ns) - done_ns;
        note_late(storage, late_ns);
    }
    thread->late_ns = late_ns < MOST_LATE_NS ? late_ns : MOST_LATE_NS;
}

/* ---- the schedule ---- */

static double later(double a, double b) {
    return a > b ? a : b;
}

/*
 * Book `cost_ns` of what is shared, from `at_ns` on; returns its end. Other threads may sleep too
 * long and book later what would have come before this: as much as that may be is not lost.
 */
static double book(const presto__played_storage *storage, _Atomic double *free_ns, double at_ns,
                   double cost_ns) {
    double is_free = atomic_load_explicit(free_ns, memory_order_relaxed);
    double from_ns = at_ns - atomic_load_explicit(&storage->slack_ns, memory_order_relaxed);
    double end;
    do
        end = later(is_free, from_ns) + cost_ns;
    while (!atomic_compare_exchange_weak_explicit(free_ns, &is_free, end, memory_order_relaxed,
                                                  memory_order_relaxed));
    return later(end, at_ns + cost_ns);
}

/* When the thread's clock began what took place from `begin_ns` on. */
static double thread_time(const presto__storage_thread *thread, uint64_t begin_ns) {
    return (double)(begin_ns - thread->storage->start_ns) - thread->late_ns;
}

void presto__storage_opened(presto__storage_thread *thread, uint64_t begin_ns) {
    double done_ns = thread_time(thread, begin_ns) + thread->storage->limits.open_s * 1e9;
    thread->file = -1;
    wait_for(thread, done_ns);
}

void presto__storage_read(presto__storage_thread *thread, uint64_t begin_ns,
                          const presto__storage_piece *piece) {
    presto__played_storage *storage = thread->storage;
    const presto_storage *limits = &storage->limits;
    double bytes = (double)piece->bytes;
    double begin = thread_time(thread, begin_ns);
    double done_ns = begin;
    bool goes_on = piece->file == thread->file && piece->offset == thread->end;
    if (limits->bytes_per_s_per_thread > 0)
        done_ns = later(done_ns, begin + bytes * 1e9 / limits->bytes_per_s_per_thread);
    if (limits->bytes_per_s > 0)
        done_ns = later(done_ns, book(storage, &storage->bandwidth_free_ns, begin,
                                      bytes * 1e9 / limits->bytes_per_s));
    if (limits->reads_per_s > 0 && !goes_on)
        done_ns = later(done_ns,
                        book(storage, &storage->reads_free_ns, begin, 1e9 / limits->reads_per_s));
    if (!goes_on)
        done_ns += limits->latency_s * 1e9;
    thread->reads += !goes_on;
    thread->file = piece->file;
    thread->end = piece->offset + piece->bytes;
    wait_for(thread, done_ns < begin + MOST_READ_NS ? done_ns : begin + MOST_READ_NS);
}
