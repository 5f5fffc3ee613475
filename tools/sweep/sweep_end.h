/* SPDX-License-Identifier: Apache-2.0 */
/* How presto-sweep ends: what it says on stderr, and its exit code. */
#ifndef PRESTO_TOOLS_SWEEP_END_H
#define PRESTO_TOOLS_SWEEP_END_H

#include <presto/sweep.h>

#include "../cli/cli.h"

typedef struct sweep_end {
    const presto_sweep *sweep; /* NULL: it has no results */
    const char *output, *journal;
    presto_error_policy policy;
} sweep_end;

/** A failure that touches the results' folder. Where the disk is full, it says how much is free. */
int sweep_end_failed(const presto_error *err, const char *output);
/** The sweep was stopped, or something failed that ends it. */
int sweep_end_early(const sweep_end *end, const presto_error *err);
/** It came to its end: CLI_DONE, unless the disk was too full for some of its strategies. */
int sweep_end_whole(const sweep_end *end);

#endif
