/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library, which leave signals to those of the program. */
#ifndef PRESTO_BASE_THREAD_INTERNAL_H
#define PRESTO_BASE_THREAD_INTERNAL_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * pthread_create with all signals blocked in the new thread: the program's own threads handle them.
 * A machine that has no room for another thread (EAGAIN) is asked again for a second.
 * Returns: 0, or an errno.
 */
int presto__thread_start(pthread_t *thread_out, void *(*run)(void *), void *argument);

/**
 * A condition variable whose waits end by the clock of presto__clock_ns, which nobody sets.
 * Returns: 0, or an errno.
 */
int presto__timed_condition_init(pthread_cond_t *condition);

/** The kernel's number of the calling thread. */
pid_t presto__thread_id(void);
/** How long a thread of this process has computed or waited for a processor. `id` 0: its waiting is
 * unknown. 0 if it is gone. */
uint64_t presto__thread_runnable_ns(pthread_t thread, pid_t id);

#endif
