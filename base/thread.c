/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_internal.h"

#include <signal.h>

int presto__thread_start(pthread_t *thread_out, void *(*run)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a thread inherits the mask */
    int failed = pthread_create(thread_out, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
