/* SPDX-License-Identifier: Apache-2.0 */
/* Small files, replaced as a whole (presto/storage.h reads them); folders that one process at a time writes to. */
#ifndef PRESTO_FILE_H
#define PRESTO_FILE_H

#include <presto/api.h>
#include <presto/span.h>
#include <presto/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Put a file with the content of `pieces`, one after the other, at `path`. It is written under a
 * hidden temporary name in the same folder and renamed: whoever opens `path` finds the old file or
 * the new one as a whole. A symbolic link at `path` is replaced, not followed. On failure the old
 * file is left as it was. With `sync` the content is on the disk before the file gets its name; the
 * name itself may still be lost with the power.
 *
 * Returns: PRESTO_ERR_IO, PRESTO_ERR_MEMORY; the error names `path`.
 * Threads: any; no shared state.
 */
PRESTO_API presto_status presto_file_replace(const char *path, const presto_span *pieces,
                                             size_t piece_count, bool sync, presto_error *err);

/**
 * Could presto_file_replace put a file there? For what is written at the end of a long job: a wrong
 * name is found before it. A temporary file is made and removed; what stands at `path` stays.
 * Returns: PRESTO_OK; PRESTO_ERR_IO, PRESTO_ERR_MEMORY; the error names `path`.
 */
PRESTO_API presto_status presto_file_check_replace(const char *path, presto_error *err);

/** Of a folder under work; its owner removes it at the end. */
#define PRESTO_LOCK_FILE ".presto.lock"

/** The right to write to a folder, which ends with the process. */
typedef struct presto_folder_lock presto_folder_lock;

/**
 * Does the folder still stand, and is it still ours? PRESTO_ERR_BUSY: somebody has removed it or
 * the lock's file, so that others may write there. Any thread.
 */
PRESTO_API presto_status presto_folder_lock_check(const presto_folder_lock *lock,
                                                  presto_error *err);

/** Let others write; NULL is fine. */
PRESTO_API void presto_folder_lock_release(presto_folder_lock *lock);

#ifdef __cplusplus
}
#endif

#endif
