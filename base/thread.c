/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_internal.h"

#include <signal.h>

#include "retry_internal.h"

int presto__thread_start(pthread_t *thread_out, void *(*run)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a thread inherits the mask */
    unsigned tries = 0;
    int failed;
    do
        failed = pthread_create(thread_out, NULL, run, argument);
    while (failed != 0 && presto__retry_pause(failed, &tries));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
