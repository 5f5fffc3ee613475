/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: whole reads and writes over interrupted and short system calls, and outputs that take
 * their name only when they are whole.
 */
#ifndef PRESTO_FILE_INTERNAL_H
#define PRESTO_FILE_INTERNAL_H

#include <sys/stat.h>

#include <presto/span.h>

/** Up to `bytes` bytes from `offset`; fewer only at the end of the file. */
presto_status presto__read_at(int fd, const char *path, uint64_t offset, void *data, size_t bytes,
                              size_t *got_out, presto_error *err);

presto_status presto__write_all(int fd, const char *path, presto_span data, presto_error *err);

/**
 * Let the kernel begin to write [offset, offset + bytes) to the disk, so that an fsync later has
 * less to wait for. A hint: nothing is waited for, and where there is no such call nothing happens.
 */
void presto__start_writeback(int fd, uint64_t offset, uint64_t bytes);

/** Time of the last change in ns since the epoch. */
int64_t presto__mtime_ns(const struct stat *info);

/**
 * Open a regular file for reading. PRESTO_ERR_NOT_FOUND if there is none; a folder, pipe or device
 * is an error at once.
 */
presto_status presto__open_regular(const char *path, int *fd_out, struct stat *info_out,
                                   presto_error *err);

/** A whole file into `out` (appended). */
presto_status presto__read_file(const char *path, presto_buffer *out, presto_error *err);

/** "DIR/.NAME.partial" for "DIR/NAME"; malloc'd, NULL: no memory. */
char *presto__partial_name(const char *path);

/** The folder that `path` stands in; malloc'd, NULL: no memory. */
char *presto__folder_of(const char *path);

/** Make renames in the folder of `path` durable. */
presto_status presto__sync_folder_of(const char *path, presto_error *err);

/** Write `content` to `path`: temporary name, fsync if `sync`, rename; folder not synced. */
presto_status presto__write_file(const char *path, const presto_span *pieces, size_t piece_count,
                                 bool sync, presto_error *err);

#endif
