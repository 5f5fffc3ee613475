/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are made and removed as a whole. */
#ifndef PRESTO_FOLDER_INTERNAL_H
#define PRESTO_FOLDER_INTERNAL_H

#include <stdbool.h>
#include <sys/stat.h>

#include <presto/file.h>

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

/**
 * Become the one who writes to the folder, which stands already. Does not wait. What a process
 * that was killed has left is in nobody's way. On NFS the lock holds between machines, as long as
 * the server hears of the one that has it. On a file system without locks PRESTO_LOCK_FILE itself
 * is the lock, and has to be removed by hand if its process was killed.
 *
 * Owner:   the caller has *lock_out until presto_folder_lock_release.
 * Returns: PRESTO_ERR_BUSY (another process has it; the message says which); PRESTO_ERR_NOT_FOUND
 *          (there is no such folder); PRESTO_ERR_IO; PRESTO_ERR_MEMORY.
 * Threads: any; a second lock of the same process is refused as another process's is.
 */
presto_status presto__folder_lock_take(const char *folder, presto_folder_lock **lock_out,
                                       presto_error *err);

#endif
