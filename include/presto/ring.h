/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches for another process on the same machine: a ring in shared memory, from one writer to one
 * reader of the same user. `presto-load --format shm` is a writer, as is presto_out_open with that
 * format (presto/out.h). docs/streams.md has the protocol.
 *
 * The values of a batch are in the shared memory. All else, from sizes to names, goes through a
 * Unix socket, whose end tells each side that the other one is gone. Neither side trusts the other:
 * what a reader hands out was checked, and cannot be changed afterwards but for the values.
 *
 * Nothing is left behind by a crash: the memory has no name, and the socket's path, if there is
 * one, is removed when the reader has come. A path that a killed writer left is replaced by the
 * next one.
 */
#ifndef PRESTO_RING_H
#define PRESTO_RING_H

#include <presto/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct presto_ring_reader presto_ring_reader;

typedef struct presto_ring_options {
    size_t struct_bytes; /* set by presto_ring_options_defaults */
    const char *path;    /* of the Unix socket: the writer makes it, the reader looks for it.
                            Copied. NULL: `fd`. Default NULL */
    int fd;            /* a connected Unix stream socket, such as half of a socketpair; taken over,
                            also on failure. Default -1 */
    size_t ring_bytes; /* writer: size of the shared memory. It is used from its start on, and no
                            more of it than batches are under way or held. Default 256 MiB */
    uint64_t wait_ns;  /* reader: how long to wait for a writer to come to `path`. Default 0 */
    presto_stop_fn
        should_stop; /* asked ten times a second while a call waits, which then fails with
                                   PRESTO_ERR_STOPPED. NULL: never */
    void *should_stop_user;
} presto_ring_options;

PRESTO_API void presto_ring_options_init(presto_ring_options *options, size_t struct_bytes);
static inline void presto_ring_options_defaults(presto_ring_options *options) {
    presto_ring_options_init(options, sizeof *options);
}

/**
 * Connect to a writer, which must be of the same user (or root).
 * Returns: PRESTO_OK; PRESTO_ERR_NOT_FOUND (nobody listens at the path); PRESTO_ERR_BUSY (the
 *          writer has another reader, or ended at once); PRESTO_ERR_ARGUMENT (of another user);
 *          PRESTO_ERR_UNSUPPORTED (another version of the protocol); PRESTO_ERR_CORRUPT (no
 *          writer); PRESTO_ERR_STOPPED, PRESTO_ERR_IO, PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_ring_reader_open(const presto_ring_options *options,
                                                 presto_ring_reader **reader_out,
                                                 presto_error *err);

/**
 * The next batch; waits for it. Its values are in the shared memory, aligned to 64 bytes. Features
 * are in the order of the writer. The memory is the writer's again after presto_ring_batch_release.
 *
 * Returns: PRESTO_OK; PRESTO_END when the writer has said so; PRESTO_ERR_TRUNCATED (it is gone, and
 *          has not); PRESTO_ERR_CORRUPT (it does not keep to the protocol); the failure that it
 *          told, with its file and record: all of these again when called again.
 *          PRESTO_ERR_BUSY: no room is left in the ring for the next batch, as the reader holds
 *          too much of it. Call again when batches have been released.
 *          PRESTO_ERR_STOPPED, PRESTO_ERR_MEMORY.
 * Threads: one at a time.
 */
PRESTO_API presto_status presto_ring_reader_next(presto_ring_reader *reader,
                                                 presto_batch **batch_out, presto_error *err);

/** Give a batch of a reader back. Any thread, also after presto_ring_reader_free. NULL is fine. */
PRESTO_API void presto_ring_batch_release(presto_batch *batch);

/** The writer ends when its next call notices. Batches that are held stay valid. NULL is fine. */
PRESTO_API void presto_ring_reader_free(presto_ring_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
