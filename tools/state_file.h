/* SPDX-License-Identifier: Apache-2.0 */
/* presto-load --state FILE: where a stream stopped, to go on from there. */
#ifndef PRESTO_TOOLS_STATE_FILE_H
#define PRESTO_TOOLS_STATE_FILE_H

#include <presto/loader.h>

/**
 * If `path` exists, set `options` to deliver the rest of the stream that it stands for.
 * Returns: PRESTO_OK, also if there is no such file; PRESTO_END if nothing remains; a failure.
 */
presto_status state_file_read(const char *path, const presto_source *source,
                              presto_loader_options *options, presto_error *err);

/** If `path` exists, does it belong to this stream, wherever in it? Returns PRESTO_OK or why not.
 */
presto_status state_file_check(const char *path, const presto_source *source,
                               const presto_loader_options *options, presto_error *err);

/** When a running stream's state is written. */
typedef struct state_keeper {
    const char *path; /* NULL: never */
    uint64_t interval_ns;
    uint64_t written_ns; /* last time; at first: when the stream began */
} state_keeper;

/**
 * Between batches, all of the last one written: write the state if it is due. A failure is told and
 * the stream goes on; the state at its end decides on the exit code.
 */
void state_file_keep(state_keeper *keeper, const presto_loader *loader);

/** Write the state after the last batch handed out. Returns the exit code. */
int state_file_write(const presto_loader *loader, const char *path);

#endif
