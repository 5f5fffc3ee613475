/* SPDX-License-Identifier: Apache-2.0 */
/* What presto-sweep prints at the end. */
#ifndef PRESTO_TOOLS_TABLE_H
#define PRESTO_TOOLS_TABLE_H

#include <presto/sweep.h>

/**
 * Print the table of all strategies (best first, failed ones below it) on stdout, in 80 columns.
 */
void table_print(const presto_sweep *sweep, unsigned runs);

/** Have datasets not as many files as threads? Then strategies are named with theirs. */
bool table_has_own_files(const presto_sweep *sweep);
#define TABLE_NAME_BYTES 256
/** "resized, zstd:1, 16 files, 2 threads"; "unprocessed, -, 2 threads". */
char *table_strategy(const presto_strategy *strategy, bool has_files, char text[TABLE_NAME_BYTES]);

/** Print the recommendation, its reason, and the commands to run next, on stdout; and what stands in
 * `results_dir`, unless that is NULL. */
void table_print_recommendation(const presto_sweep *sweep, const char *results_dir);

#endif
