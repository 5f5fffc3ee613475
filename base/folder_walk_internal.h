/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything below a folder. Symbolic links to folders are followed, but each folder is entered
 * once. The order is: real folders first, then links in the order of their paths, then links found
 * through those, and so on. So a folder has the same path in every walk, and links that form a ring
 * or lead to the same place cost nothing.
 */
#ifndef PRESTO_FOLDER_WALK_INTERNAL_H
#define PRESTO_FOLDER_WALK_INTERNAL_H

#include <sys/stat.h>

#include <presto/status.h>

#include "file_internal.h"

/** What is found and is no folder. Borrowed during the call. */
typedef struct presto__walked {
    const char *path;
    const char *name;        /* its last part */
    const struct stat *info; /* of its target, with links followed; NULL: it cannot be read */
    int sys_errno;           /* why `info` is NULL */
} presto__walked;

/** The caller's hooks. A status below 0 from a hook ends the walk with that status. */
typedef struct presto__folder_walk {
    void *user;
    /** Called for each name in `folder` before it is examined: is it wanted? */
    presto_status (*name)(void *user, const char *folder, const char *name, bool *wanted_out,
                          presto_error *err);
    /** Called for each wanted entry, in no order. */
    presto_status (*found)(void *user, const presto__walked *found, presto_error *err);
    /** Called for each folder when it is entered, for the first one, too. NULL: nobody asks. */
    presto_status (*folder)(void *user, const char *path, presto_error *err);
} presto__folder_walk;

/** Returns: PRESTO_OK; PRESTO_ERR_IO (a folder cannot be read); PRESTO_ERR_MEMORY; what a hook
 * returned. */
presto_status presto__walk_folder(const presto__folder_walk *walk, const char *path,
                                  presto_error *err);

#endif
