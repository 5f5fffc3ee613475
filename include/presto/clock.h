/* SPDX-License-Identifier: Apache-2.0 */
/* Time in nanoseconds. */
#ifndef PRESTO_CLOCK_H
#define PRESTO_CLOCK_H

#include <stdint.h>

#include <presto/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Monotonic wall time since an arbitrary start, in ns. Any thread. */
PRESTO_API uint64_t presto_clock_ns(void);

/** CPU time (user + system) that the process has used, in ns. */
PRESTO_API uint64_t presto_clock_process_cpu_ns(void);

#ifdef __cplusplus
}
#endif

#endif
