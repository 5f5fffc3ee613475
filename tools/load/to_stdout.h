/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples to a pipe or file: one writev for many pieces, and as few system calls as a pipe allows.
 */
#ifndef PRESTO_TOOLS_TO_STDOUT_H
#define PRESTO_TOOLS_TO_STDOUT_H

#include <presto/out.h>

/** A pipe on stdout is widened to 1 MiB. */
void to_stdout_open(void);

/** A presto_out_write_fn; `user` is not used. PRESTO_END if the reader closed the pipe;
 * PRESTO_ERR_STOPPED after a signal; PRESTO_ERR_IO. */
presto_status to_stdout_write(void *user, const presto_span *pieces, size_t count,
                              uint64_t *written_out, presto_error *err);

#endif
