/* SPDX-License-Identifier: Apache-2.0 */
/* --error-report: a line of JSON for each sample that was left out. */
#ifndef PRESTO_TOOLS_ERROR_REPORT_H
#define PRESTO_TOOLS_ERROR_REPORT_H

#include <presto/status.h>

typedef struct error_report {
    const char *path; /* NULL: on stderr, for people */
    int fd;
    int reason;    /* errno of the first line that could not be written; 0: none */
    unsigned told; /* without a file: samples so far */
} error_report;

/**
 * Open the file for appending, making it if need be; path NULL: none, samples are told on stderr.
 * Returns the exit code: not 0 after a message.
 */
int error_report_open(error_report *report, const char *path);

/** A presto_skip_fn; `user` is the report. */
void error_report_add(void *user, uint64_t epoch, uint64_t sample, const presto_error *err);

/** Returns `code`, or 1 after a message if that was 0 and a line could not be written. */
int error_report_close(error_report *report, int code);

#endif
