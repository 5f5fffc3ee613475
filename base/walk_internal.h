/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything below a folder. Symbolic links to folders are followed, but no folder is entered
 * twice: folders that lie there themselves come first, then links in the order of their paths, then
 * the links found through those, and so on. Hence a folder has the same path in every walk, and
 * links in a ring or to the same place cost nothing.
 */
#ifndef PRESTO_WALK_INTERNAL_H
#define PRESTO_WALK_INTERNAL_H

#include <sys/stat.h>

#include <presto/status.h>

#include "file_internal.h"

/** What is found and is no folder. Borrowed during the call. */
typedef struct presto__walked {
    const char *path;
    const char *name;        /* its last part */
    const struct stat *info; /* links followed; NULL: it cannot be looked at */
    int sys_errno;           /* then: why */
} presto__walked;

/** Who walks. Any status below 0 from a hook ends the walk with it. */
typedef struct presto__walk {
    void *user;
    /** Asked of each name in `folder`, before anything is looked at: is it wanted? */
    presto_status (*name)(void *user, const char *folder, const char *name, bool *wanted_out,
                          presto_error *err);
    /** In no order. */
    presto_status (*found)(void *user, const presto__walked *found, presto_error *err);
} presto__walk;

/** Returns: PRESTO_OK; PRESTO_ERR_IO (a folder cannot be read); PRESTO_ERR_MEMORY; a hook's. */
presto_status presto__walk_folder(const presto__walk *walk, const char *path, presto_error *err);

#endif
