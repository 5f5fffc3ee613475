/* SPDX-License-Identifier: Apache-2.0 */
/* --error-report: a line of JSON for each sample that was left out, or for a run of similar
 * ones. */
#ifndef PRESTO_TOOLS_ERROR_REPORT_H
#define PRESTO_TOOLS_ERROR_REPORT_H

#include <presto/status.h>

/* Consecutive samples that were left out for the same reason, as in a shard that was cut. */
typedef struct error_run {
    uint64_t epoch, first, count;
    uint64_t told;      /* their number */
    presto_error error; /* of the first one */
} error_run;

typedef struct error_report {
    const char *path; /* NULL: on stderr, for people */
    int fd;
    int reason;    /* errno of the first line that could not be written; 0: none */
    unsigned told; /* without a file: lines so far */
    error_run run; /* the current run; count 0: none yet */
    /* With a file: lines so far; samples beyond the limit of lines, and how many of them are
     * told. */
    uint64_t lines, unlisted, unlisted_told;
} error_report;

/**
 * Open the file for appending, and create it if needed. path NULL: no file, samples are reported on
 * stderr.
 * Returns: the exit code: not 0 after a message.
 */
int error_report_open(error_report *report, const char *path);

/** A presto_skip_fn; `user` is the report. */
void error_report_add(void *user, uint64_t epoch, uint64_t sample, const presto_error *err);

/** Report the rest of the last run, before other messages. */
void error_report_flush(error_report *report);

/** Returns `code`, or 1 after a message if that was 0 and a line could not be written. */
int error_report_close(error_report *report, int code);

#endif
