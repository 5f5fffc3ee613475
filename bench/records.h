/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of bench_records share: two sides measured by round, and files of records of one
 * size. One file a subject.
 */
#ifndef PRESTO_BENCH_RECORDS_H
#define PRESTO_BENCH_RECORDS_H

#include <stdlib.h>

#include <isa-l/crc.h>

#include <presto/shard.h>

#include "harness.h"

typedef struct records_settings {
    unsigned rounds;
    double file_mib; /* of the files that are made */
    char dir[512];   /* for them */
} records_settings;

/** Set by main before anything is measured. */
extern records_settings records_set;
/** Of the call that failed last. Threads: whoever fails ends the program. */
extern presto_error records_err;

/** End with the last error's text, or with `what`. */
_Noreturn void records_die(const char *what);

#define MUST(expr)                                                                                 \
    do {                                                                                           \
        if ((expr) < 0)                                                                            \
            records_die(#expr);                                                                    \
    } while (0)

/** Owner: caller, free(). Dies if there is none. */
void *records_malloc(size_t bytes);

/* ---- measuring ---- */

/* Time spent: by the clock, and by the processor in this thread. */
typedef struct records_spent {
    uint64_t clock_ns;
    uint64_t cpu_ns;
} records_spent;

records_spent records_now(void);
/** Add what has gone by since `start`. */
void records_count_since(records_spent *sum, records_spent start);

/* What one side did, by round: nanoseconds for one unit of work. */
typedef struct records_series {
    double clock[BENCH_MAX_ROUNDS];
    double cpu[BENCH_MAX_ROUNDS];
    unsigned count;
} records_series;

/** One more round, in which `time` went into `units` of work. */
void records_add(records_series *s, records_spent time, double units);

double records_median(const double *values, unsigned count);
double records_least(const double *values, unsigned count);
/** How many times as fast ours is, round by round. */
bench_figure records_faster(const double *ours, const double *theirs, unsigned count);
/** In units of `scale` a nanosecond, with the spread of the times. */
bench_figure records_speed(const records_series *s, double scale);

/** Begin the lines of the table `into` of docs/bench.md, which may be NULL. */
void records_print_head(const char *into, const char *title, const char *theirs);
/** A unit is a byte; `scale` turns bytes a nanosecond, which are GB/s, into `unit`. */
void records_print(const char *name, const records_series *ours, const records_series *theirs,
                   double scale, const char *unit);

/* ---- files of records, and the loop that reads them by hand ---- */

/** A file of records of one size; who opens or maps it fills the rest. */
typedef struct records_file {
    char path[600];
    uint64_t bytes;
    uint64_t records;
    size_t record_bytes;
    presto_shard *shard;
    const uint8_t *map;
    int fd;
} records_file;

/** Random bytes, the same ones every time. */
void records_fill(uint8_t *data, size_t bytes);
/** Make file->path, of records of this size, and fill its numbers. */
void records_make_file(records_file *file, size_t record_bytes);
/** ISA-L's CRC-32C, with no call of ours around it. */
static inline uint32_t records_isal_crc(const uint8_t *data, size_t bytes) {
    return ~crc32_iscsi((unsigned char *)(uintptr_t)data, (int)bytes, ~0U);
}
/** The loop one would write: length, its CRC, the payload's CRC. *used_out: bytes of whole
 * records. */
uint64_t records_check(const uint8_t *data, size_t bytes, size_t *used_out);

/* ---- the subjects, each in a file of its own ---- */

void records_bench_scan(size_t record_bytes);
void records_bench_crc(size_t bytes);
void records_bench_parse(size_t tensor_bytes);
void records_bench_write(size_t record_bytes);
void records_bench_rows(void);
/** `path` is a file of raw bytes, as of a resized photo; NULL: an image made here. */
void records_bench_codecs(const char *path);
void records_bench_access(void);

#endif
