/* SPDX-License-Identifier: Apache-2.0 */

#include <time.h>

#include "clock_internal.h"

static uint64_t read_clock(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t presto__clock_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t presto__clock_process_cpu_ns(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
