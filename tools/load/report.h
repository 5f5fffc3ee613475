/* SPDX-License-Identifier: Apache-2.0 */
/* What presto-load reports about a run: the closing lines, the JSON of --stats, what limits it. */
#ifndef PRESTO_TOOLS_REPORT_H
#define PRESTO_TOOLS_REPORT_H

#include <jansson.h>

#include <presto/mix.h>

#include "state_file.h"

typedef struct load_report {
    presto_loader *loader;
    const presto_source *source;
    json_t *warnings; /* texts; borrowed */
    const char *format;
    uint64_t total_samples; /* samples that this run has to deliver; 0: unknown */
    unsigned most_threads;  /* most threads for -j auto; 0: not auto */
    uint64_t written_bytes; /* in the format */
    /* What the user waits for, from the start of the program on: listing and indexing, too. */
    uint64_t started_ns;
    uint64_t first_ns; /* the first sample is there; 0: there was none */
    uint64_t ended_ns;
    state_keeper state;                            /* of --state */
    uint64_t part_samples[PRESTO_MIX_MOST_INPUTS]; /* a mix: delivered, of each input */
    bool complete;                                 /* the sequence was delivered completely */
    bool reader_closed;                            /* stdout's reader closed the pipe */
} load_report;

/** A batch was delivered. Counts by input if the source is a mix. */
void report_count(load_report *report, const presto_batch *batch);

/** Print the closing lines on stderr. */
void report_print(const load_report *report);

/** The object of --stats; owned by the caller. */
json_t *report_json(const load_report *report);

/** Check that report_write can write. Returns the exit code: not 0 after a message. */
int report_check(const char *path);

/**
 * Write the object to `path`: directly to a pipe, a device or an open descriptor, otherwise as
 * report_replace does. Takes ownership of the object.
 * Returns: the exit code.
 */
int report_write(json_t *object, const char *path);

/** Make it the file `path`, whatever stands there. Takes ownership; returns the exit code. */
int report_replace(json_t *object, const char *path);

#endif
