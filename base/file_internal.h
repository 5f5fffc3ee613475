/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: complete reads and writes in spite of interrupted and short system calls; opening of
 * regular files only; outputs that get their name when they are complete.
 */
#ifndef PRESTO_FILE_INTERNAL_H
#define PRESTO_FILE_INTERNAL_H

#include <sys/stat.h>

#include <presto/file.h>

/** A position in an open file. `path` is for messages. */
typedef struct presto__file_place {
    int fd;
    const char *path;
    uint64_t offset;
} presto__file_place;

/** Up to `bytes` bytes from `place` on; fewer only at the end of the file. */
presto_status presto__pread(presto__file_place place, void *data, size_t bytes, size_t *got_out,
                            presto_error *err);

presto_status presto__write_all(int fd, const char *path, presto_span data, presto_error *err);

/**
 * Ask the kernel to start writing [offset, offset + bytes) to the disk, so that a later fsync waits
 * less. A hint: it does not wait, and does nothing where the system lacks the call.
 */
void presto__start_writeback(int fd, uint64_t offset, uint64_t bytes);

/** Time of the last change in ns since the epoch. */
int64_t presto__mtime_ns(const struct stat *info);

/** `path` could not be opened: PRESTO_ERR_NOT_FOUND if there is none, else as presto_fail_errno. */
presto_status presto__fail_open(presto_error *err, int sys_errno, const char *path);

/**
 * Open a regular file for reading, without waiting. PRESTO_ERR_NOT_FOUND if there is none;
 * PRESTO_ERR_IO for a folder, named pipe, socket or device.
 */
presto_status presto__open_regular(const char *path, int *fd_out, struct stat *info_out,
                                   presto_error *err);

/** "FOLDER/NAME", without a second '/' where FOLDER ends with one; malloc'd, NULL: no memory. */
char *presto__join_path(const char *folder, const char *name);

/** The folder that `path` stands in, without a '/' at its end unless it is the root; malloc'd,
 * NULL: no memory. */
char *presto__folder_of(const char *path);

/** Make renames in the folder durable. */
presto_status presto__sync_folder(const char *folder, presto_error *err);
/** The same for the folder of `path`. */
presto_status presto__sync_folder_of(const char *path, presto_error *err);

/** 64 random bits for a name that nobody can guess. */
uint64_t presto__random_name(void);

/** A file that will be renamed to another name when it is whole. */
typedef struct presto__partial {
    char *path; /* ".NAME.RANDOM.partial" in the folder of the other name */
    int fd;     /* for writing and reading; the caller closes it */
    int lock;   /* says that the file has a writer (flock), from its making until it is renamed or
                   removed, also after fd is closed; -1: none */
} presto__partial;

/**
 * Make such a file for `path`. A link of that name is not followed; the mode follows umask. The
 * caller closes fd, renames or unlinks `path`, and calls presto__partial_done. Errors name `path`.
 */
presto_status presto__partial_open(const char *path, presto__partial *partial_out,
                                   presto_error *err);
void presto__partial_done(presto__partial *partial);

/** Remove what runs that were killed have left of such files for `path`: those whose lock is free.
 * Looks at some thousands of names of a folder at most. */
void presto__partial_clean(const char *path);

/** If `name` is ".NAME.RANDOM.partial": the length of NAME, which starts at name[1]. Otherwise
 * 0. */
size_t presto__partial_stem(const char *name);

#endif
