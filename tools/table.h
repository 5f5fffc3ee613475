/* SPDX-License-Identifier: Apache-2.0 */
/* What presto-sweep prints at the end. */
#ifndef PRESTO_TOOLS_TABLE_H
#define PRESTO_TOOLS_TABLE_H

#include <presto/sweep.h>

/**
 * Print the table of all strategies (best first, failed ones below it) on stdout, in 80 columns.
 */
void table_print(const presto_sweep *sweep, unsigned runs);

/** Print the recommendation, its reason, and the commands to run next, on stdout; and what stands in
 * `results_dir`, unless that is NULL. */
void table_print_recommendation(const presto_sweep *sweep, const char *results_dir);

#endif
