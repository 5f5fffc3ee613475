/* SPDX-License-Identifier: Apache-2.0 */
/* presto-sweep --check: do new files still fit a dataset's strategy? */
#ifndef PRESTO_TOOLS_SWEEP_CHECK_H
#define PRESTO_TOOLS_SWEEP_CHECK_H

#include <presto/drift.h>

#include "../cli/cli.h"

typedef struct check_job {
    const char *dataset;
    const char *results_dir;   /* of the sweep that recommended it; NULL: unknown */
    const char *pipeline_name; /* NULL: from dataset.json */
    const cli_settings *settings;
    uint64_t samples;
    presto_loader_errors errors;
    bool json;
} check_job;

/** The recommendation may be another one with the new files. */
#define CHECK_MOVES 4

/** Compare, and print. Exit code: CLI_DONE, CHECK_MOVES or that of the failure. */
int sweep_check(const check_job *job, const char *const *paths, size_t path_count);

#endif
