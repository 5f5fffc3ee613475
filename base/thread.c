/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* syscall */

#include "thread_internal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

int presto__timed_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    if (failed != 0)
        return failed;
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (failed == 0)
        failed = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return failed;
}

pid_t presto__thread_id(void) {
    return (pid_t)syscall(SYS_gettid);
}

uint64_t presto__thread_runnable_ns(pthread_t thread, pid_t id) {
    char path[64];
    uint64_t computed = 0, queued = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)id);
    FILE *file = id == 0 ? NULL : fopen(path, "re");
    int got = file == NULL ? 0 : fscanf(file, "%" SCNu64 " %" SCNu64, &computed, &queued);
    if (file != NULL)
        fclose(file);
    if (got == 2)
        return computed + queued;
    clockid_t clock; /* a kernel without that file */
    struct timespec time;
    if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
