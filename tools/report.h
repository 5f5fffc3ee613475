/* SPDX-License-Identifier: Apache-2.0 */
/* What presto-load says about a run: the closing lines, the JSON of --stats, what limits it. */
#ifndef PRESTO_TOOLS_REPORT_H
#define PRESTO_TOOLS_REPORT_H

#include <jansson.h>

#include <presto/loader.h>

#include "state_file.h"

typedef struct load_report {
    const presto_loader *loader;
    const presto_source *source;
    const char *format;
    uint64_t total_samples; /* what this run has to deliver; 0: not known */
    unsigned most_threads;  /* what -j auto chose from; 0: it was not auto */
    uint64_t written_bytes; /* by the sink */
    state_keeper state;     /* of --state */
    bool complete;          /* the sequence was delivered to its end */
    bool reader_closed;     /* stdout's reader went away */
} load_report;

/** Print the closing lines on stderr. */
void report_print(const load_report *report);

/** The object of --stats; owned by the caller. */
json_t *report_json(const load_report *report);

/** Will report_write be able to? Returns the exit code: not 0 after a message. */
int report_check(const char *path);

/**
 * Write the object into `path` (temporary name and rename; straight into what is no regular file).
 * Takes the reference. Returns the exit code.
 */
int report_write(json_t *object, const char *path);

#endif
