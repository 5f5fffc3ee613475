/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many small jobs that mostly wait, for a disk or a file server: many at a time, so that their
 * waits pass together.
 */
#ifndef PRESTO_FAN_OUT_INTERNAL_H
#define PRESTO_FAN_OUT_INTERNAL_H

#include <stddef.h>

#include <presto/status.h>

/** At most so many jobs run at once, whatever the number of processors; fewer, if the process may
 * have few files open. */
#define PRESTO__FAN_OUT_MOST 16

/** Job number `i`. Runs in any thread, beside others. What it reads is read from the storage that
 * the caller is bound to (play_internal.h), and ends with the caller's pass (stop_internal.h). */
typedef presto_status (*presto__job_fn)(void *user, size_t i, presto_error *err);

/**
 * Do the jobs 0 to count - 1, in threads of their own, and return when all have ended. They are
 * begun in order. Threads are started one after another while there is enough to do for them. One
 * job is done in the caller's thread, and so are all if the machine has no room for a thread.
 *
 * Returns: PRESTO_OK; the failure of the first job, by number, that returns one: then no other is
 *          begun, and all before it have been done. PRESTO_ERR_IO: no lock.
 * Owner:   `user` is the caller's, who is here until nobody needs it.
 */
presto_status presto__fan_out(size_t count, presto__job_fn job, void *user, presto_error *err);

#endif
