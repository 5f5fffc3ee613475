/* SPDX-License-Identifier: Apache-2.0 */
/* The part of bench_loader that measures tables: records of many small features. */
#ifndef PRESTO_BENCH_LOADER_TABLES_H
#define PRESTO_BENCH_LOADER_TABLES_H

#include <stdint.h>

/** Measure `samples` records in files below `folder`; prints and notes the table loader.tables. */
void bench_tables(const char *folder, uint64_t samples, unsigned rounds);

#endif
