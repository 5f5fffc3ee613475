/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of a sweep: one line of JSON a conversion, run or probe, written as soon as it was
 * made, so that a sweep that ended early is continued instead of repeated. Its first line says
 * which sweep it is of. docs/sweep.md describes the lines.
 */
#ifndef PRESTO_PROFILE_JOURNAL_INTERNAL_H
#define PRESTO_PROFILE_JOURNAL_INTERNAL_H

#include <jansson.h>

#include "trial_internal.h"

/** An open journal. */
typedef struct presto__journal presto__journal;

/** Which journal, and the trials that its lines are of. */
typedef struct presto__journal_request {
    const char *path;
    bool resume;
    char sweep[33]; /* text that only the same sweep of the same source has */
    presto__trial *trials;
    size_t trial_count;
    json_t **probes; /* what probes have found: of the machine, then of each split. Owned by the
                        caller; NULL where nothing is known */
    size_t probe_count;
    unsigned runs, preparation_runs; /* the most a trial can hold */
} presto__journal_request;

/**
 * Start the journal anew, or read what it holds into the trials and go on behind it. A last line
 * without its end, which a crash leaves, is cut off. A journal that is not there is started.
 *
 * Owner:   caller, presto__journal_close.
 * Returns: PRESTO_ERR_ARGUMENT (of another sweep), PRESTO_ERR_SYNTAX (the message names the line),
 *          PRESTO_ERR_IO, PRESTO_ERR_LIMIT, PRESTO_ERR_MEMORY. The error names the file.
 */
presto_status presto__journal_open(const presto__journal_request *request,
                                   presto__journal **journal_out, presto_error *err);
/** Read a journal's text into the trials of the request. *whole_out: bytes of the lines that have
 * their end. Fails as presto__journal_open does; the trials may then hold a part. */
presto_status presto__journal_read(const presto__journal_request *request, presto_span text,
                                   size_t *whole_out, presto_error *err);
/** Note the last conversion of trial i, and what its dataset is. `journal` NULL: nothing. */
presto_status presto__journal_add_preparation(presto__journal *journal, size_t i,
                                              const presto__trial *trial, presto_error *err);
/** Note the last run of trial i: its cold epochs and its cached ones. */
presto_status presto__journal_add_run(presto__journal *journal, size_t i,
                                      const presto__trial *trial, presto_error *err);
/** Note the last lap of trial i. */
presto_status presto__journal_add_lap(presto__journal *journal, size_t i,
                                      const presto__trial *trial, presto_error *err);
/** Note what probe `number` has found. Takes over `found`; NULL is a lack of memory. */
presto_status presto__journal_add_probe(presto__journal *journal, size_t number, json_t *found,
                                        presto_error *err);
/** Removes the file if nothing was noted in it. */
void presto__journal_close(presto__journal *journal);

#endif
