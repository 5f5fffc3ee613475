/* SPDX-License-Identifier: Apache-2.0 */
/* Time in nanoseconds. */
#ifndef PRESTO_BASE_CLOCK_INTERNAL_H
#define PRESTO_BASE_CLOCK_INTERNAL_H

#include <stdint.h>

/** Monotonic wall time since an arbitrary start, in ns. Any thread. */
uint64_t presto__clock_ns(void);

/** CPU time (user + system) that the process has used, in ns. */
uint64_t presto__clock_process_cpu_ns(void);

#endif
