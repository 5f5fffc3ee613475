/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be written next to a descriptor, in pieces that stay where they are: one writev for
 * many of them, and as few system calls as a pipe allows.
 */
#ifndef PRESTO_TOOLS_PIECES_H
#define PRESTO_TOOLS_PIECES_H

#include <sys/uio.h>

#include <presto/presto.h>

/** Zero-initialise and set `fd`; pieces_done frees. */
typedef struct pieces {
    int fd;         /* borrowed */
    uint64_t bytes; /* written so far */
    struct iovec *list;
    size_t count;
} pieces;

/** Returns: PRESTO_OK, PRESTO_ERR_MEMORY. A pipe is widened to 1 MiB. */
presto_status pieces_init(pieces *self, int fd, presto_error *err);
void pieces_done(pieces *self);

/**
 * Write `data` after what was added before it. It is borrowed until pieces_flush.
 * Returns: as pieces_flush, as more pieces than a list holds are written at once.
 */
presto_status pieces_add(pieces *self, const void *data, size_t bytes, presto_error *err);

/**
 * Write all of them.
 * Returns: PRESTO_OK; PRESTO_END if the reader closed the pipe; PRESTO_ERR_STOPPED after a signal;
 * PRESTO_ERR_IO.
 */
presto_status pieces_flush(pieces *self, presto_error *err);

#endif
