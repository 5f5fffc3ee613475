/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are made and removed as a whole. */
#ifndef PRESTO_FOLDER_INTERNAL_H
#define PRESTO_FOLDER_INTERNAL_H

#include <stdbool.h>
#include <sys/stat.h>

#include <presto/status.h>

/** Make a folder and its parents, if missing. */
presto_status presto__folder_make(const char *path, presto_error *err);

/** Remove a folder and its content, without following links. A missing folder is fine. */
presto_status presto__folder_remove(const char *path, presto_error *err);

/**
 * Make the folder "PARENT/STEM-RANDOM" for this process, and remove those of the same parent and
 * stem whose processes were killed: their locks (flock) are free. *path_out is on the heap.
 * *lock_out holds the lock until it is closed, after the folder is removed; -1 where the file system
 * has no locks.
 */
presto_status presto__folder_make_own(const char *parent, const char *stem, char **path_out,
                                      int *lock_out, presto_error *err);

/** Does the file or folder belong to this user, and may nobody else write to it? */
bool presto__only_we_write(const struct stat *info);

#endif
