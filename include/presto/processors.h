/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads are worth it on this machine. Any thread. */
#ifndef PRESTO_PROCESSORS_H
#define PRESTO_PROCESSORS_H

#include <presto/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** CPUs that this process may use: its affinity mask, bounded by the CPU quota of its cgroup and of
 * those above it (containers). At least 1. */
PRESTO_API unsigned presto_processor_count(void);
/** The most threads for `auto_threads`: more than there are processors, as threads that wait for
 * storage cost nothing. */
PRESTO_API unsigned presto_auto_threads(void);

#ifdef __cplusplus
}
#endif

#endif
