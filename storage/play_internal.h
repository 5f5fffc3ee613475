/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Playing another storage: a read does not return before it would be done there.
 *
 * The storage is a schedule that the threads share: when its bandwidth is free again, and when it
 * takes the next read. A read books its share of both and waits for its end. Booking takes no lock,
 * and nobody waits for more than the storage itself would make them.
 *
 * Each thread has a clock of its own, which says when its reads are done there. Sleeping is less
 * exact than storage is fast: a thread that wakes late has its next read begin earlier, and short
 * waits are put off until they are worth sleeping. So rates are right, though single reads are not
 * to the microsecond.
 *
 * presto__read_at and presto__object_open know the thread that reads by presto__storage_bind: what
 * they are called from (HDF5 among others) need not hand it down. A thread that is not bound, as
 * all are where no storage is played, reads as fast as it can.
 */
#ifndef PRESTO_PLAY_INTERNAL_H
#define PRESTO_PLAY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <presto/storage.h>

#include "../base/memory_internal.h"

/** Where time comes from: the system, or a test. */
typedef struct presto__storage_time {
    uint64_t (*now_ns)(void *user);
    /** Wait until that time, or a little longer. */
    void (*wait_until_ns)(void *user, uint64_t until_ns);
    void *user;
} presto__storage_time;

/** Times of the schedule are ns since `start_ns`. */
typedef struct presto__played_storage {
    /* Set by init, then read-only. */
    presto_storage limits;
    const presto__storage_time *time; /* NULL: the system's */
    uint64_t start_ns;
    pthread_mutex_t lock; /* of whoever sleeps; not held otherwise */
    pthread_cond_t over;  /* is_cancelled */
    atomic_bool is_cancelled;
    _Atomic double slack_ns; /* the latest that a thread has woken, up to a limit */
    /* The schedule, each on a cache line of its own. */
    _Alignas(PRESTO__APART_BYTES) _Atomic double bandwidth_free_ns;
    _Alignas(PRESTO__APART_BYTES) _Atomic double reads_free_ns;
} presto__played_storage;

/** One that reads. Used by one thread at a time. */
typedef struct presto__storage_thread {
    presto__played_storage *storage;
    presto_stop_fn stop; /* asked ten times a second while it waits; NULL: nobody */
    void *stop_user;
    double late_ns; /* how much later it is than on the thread's clock; below 0: it owes a wait */
    int file;       /* where its last read ended; -1: nowhere */
    uint64_t end;
    /* What it had to do, until somebody takes it off here. */
    uint64_t wait_ns;
    uint64_t reads;
} presto__storage_thread;

/**
 * `limits` as presto__storage_check takes them. `time` NULL: the system's; else borrowed.
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY or _IO (no lock).
 */
presto_status presto__storage_init(presto__played_storage *storage, const presto_storage *limits,
                                   const presto__storage_time *time, presto_error *err);
/** No thread is bound to it any more. */
void presto__storage_done(presto__played_storage *storage);
/** From now on nobody waits, and whoever does stops at once. Any thread. */
void presto__storage_cancel(presto__played_storage *storage);

void presto__storage_thread_init(presto__storage_thread *thread, presto__played_storage *storage);

/** The calling thread's reads are those of `thread` from now on; NULL: of nobody. Returns what it
 * was before. */
presto__storage_thread *presto__storage_bind(presto__storage_thread *thread);
/** NULL: the calling thread's reads are not limited. */
presto__storage_thread *presto__storage_bound(void);

/** The time at which a read, or opening a file, begins. */
uint64_t presto__storage_begin(const presto__storage_thread *thread);
/** A file was opened; waits as long as that would take. */
void presto__storage_opened(presto__storage_thread *thread, uint64_t begin_ns);

/** Bytes that were read. */
typedef struct presto__storage_piece {
    int file; /* its descriptor, or another number for it that is at least 0 */
    uint64_t offset;
    uint64_t bytes;
} presto__storage_piece;

/** They were read, from `begin_ns` on; waits until they would be there. */
void presto__storage_read(presto__storage_thread *thread, uint64_t begin_ns,
                          const presto__storage_piece *piece);

/** Is any limit set? */
bool presto__storage_is_set(const presto_storage *storage);

/**
 * Are the figures those of a storage, or all 0?
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT (negative, no number, out of range: rates are 1 to 1e15
 *          bytes and 0.001 to 1e12 reads a second, times at most an hour); PRESTO_ERR_UNSUPPORTED
 *          (a reserved word is set).
 */
presto_status presto__storage_check(const presto_storage *storage, presto_error *err);

/** What presto_storage_parse reads; "" for no storage. Writes into the caller's `text` and returns
 * it. */
char *presto__storage_format(const presto_storage *storage, char text[PRESTO_STORAGE_TEXT_BYTES]);

/** A storage that has a name. docs/loading.md says where the figures come from. */
typedef struct presto__storage_profile {
    const char *name;
    const char *about; /* a few words */
    presto_storage storage;
} presto__storage_profile;

/** Profile number i, NULL past the last. Borrowed for ever. */
const presto__storage_profile *presto__storage_profile_at(size_t i);

#endif
