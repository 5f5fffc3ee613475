/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wish to stop, for passes over many files or long ones: listing folders, reading headers, looking
 * at every member of an archive. A public function that begins such a pass takes the caller's
 * presto_stop_fn and binds it to its thread. presto__read_at, presto__object_open and
 * presto__walk_folder ask it, and so do loops that compute for long; what they are called from need
 * not hand it down. They fail with PRESTO_ERR_STOPPED.
 *
 * Some of what is called from a pass goes on in spite of a failure, as behind a damaged file. So the
 * wish stays, every later read of the pass fails as well, and presto__stop_leave fails the pass.
 */
#ifndef PRESTO_BASE_STOP_INTERNAL_H
#define PRESTO_BASE_STOP_INTERNAL_H

#include <stdatomic.h>

#include <presto/status.h>

/** Of one pass. On the stack of the function that begins it. */
typedef struct presto__stop_hook {
    presto_stop_fn ask; /* called by the thread that has begun the pass, by no other */
    void *user;
    atomic_bool is_wished; /* `ask` has said so. Never false again */
} presto__stop_hook;

/** What a thread is bound to. */
typedef struct presto__stop_scope {
    presto__stop_hook *hook; /* NULL: nothing stops its reads */
    bool asks;               /* false: another thread does, this one only looks */
} presto__stop_scope;

/** Begin a pass in this thread. `ask` NULL: what it is bound to stays. Returns what it was bound to
 * before, for presto__stop_leave. */
presto__stop_scope presto__stop_enter(presto__stop_hook *hook, presto_stop_fn ask, void *user);
/** End the pass, which has come to `status`. Returns that; or PRESTO_ERR_STOPPED, if it was asked to
 * stop: then what it has made is not whole. */
presto_status presto__stop_leave(presto__stop_hook *hook, presto__stop_scope before,
                                 presto_status status, presto_error *err);

/**
 * Bind this thread to another pass, as one whose thread waits for this one, or to none ({NULL}), for
 * what must not end halfway. Returns what it was bound to before.
 */
presto__stop_scope presto__stop_bind(presto__stop_scope scope);
/** What this thread is bound to. */
presto__stop_scope presto__stop_bound(void);

/** PRESTO_ERR_STOPPED: the pass is to stop. Without a pass, or else: PRESTO_OK. */
presto_status presto__stop_check(presto_error *err);

#endif
