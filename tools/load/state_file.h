/* SPDX-License-Identifier: Apache-2.0 */
/* presto-load --state FILE: where a stream stopped, to resume it there. */
#ifndef PRESTO_TOOLS_STATE_FILE_H
#define PRESTO_TOOLS_STATE_FILE_H

#include <stdbool.h>

#include <presto/loader.h>

/**
 * If `path` exists, set `options` to deliver the rest of the stream that it describes.
 * Returns: PRESTO_OK, also if there is no such file; PRESTO_END if nothing remains; a failure.
 */
presto_status state_file_read(const char *path, const presto_source *source,
                              presto_loader_options *options, presto_error *err);

/** If `path` exists, check that it belongs to this stream, at any position. Returns PRESTO_OK or
 * what is wrong. */
presto_status state_file_check(const char *path, const presto_source *source,
                               const presto_loader_options *options, presto_error *err);

/** When a running stream's state is written. */
typedef struct state_keeper {
    const char *path; /* NULL: never */
    uint64_t interval_ns;
    uint64_t written_ns; /* time of the last writing; at first, the start of the stream */
    bool runs_steps;     /* the thread that writes states also runs the steps, so it may be inside
                            one when the program must end: each state is kept for that */
    presto_buffer kept;  /* written and read between cli_hold_end and cli_release_end */
} state_keeper;

/**
 * Write the state if it is due. Call it between batches, when the last one is written completely. A
 * failure is reported and the stream continues; only a failure at the end changes the exit code.
 */
void state_file_keep(state_keeper *keeper, const presto_loader *loader);

/** A cli_late_end.run of a state_keeper: the program ends while a step runs. */
void state_file_end_late(void *keeper);

/** Write the state after the last delivered batch. Returns the exit code. */
int state_file_write(const presto_loader *loader, const char *path);

#endif
