/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File systems of the program's own: a storage that libpresto does not know, given as functions. All
 * that reads (loaders, conversions, inspection) then takes paths "NAME://PATH" in it. Nothing is
 * written there.
 *
 * It is slower than the kinds of storage that libpresto knows: each read is one call of the program,
 * which a thread waits for, and nothing is requested ahead.
 */
#ifndef PRESTO_FILESYSTEM_H
#define PRESTO_FILESYSTEM_H

#include <stddef.h>

#include <presto/api.h>
#include <presto/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRESTO_FILESYSTEM_VERSION_BYTES 64

typedef enum presto_filesystem_type {
    PRESTO_FILESYSTEM_FILE,
    PRESTO_FILESYSTEM_FOLDER,
    PRESTO_FILESYSTEM_OTHER, /* cannot be read: a device, a link to nothing */
} presto_filesystem_type;

/** What is known of a name. Zeroed: a file of 0 bytes. */
typedef struct presto_filesystem_entry {
    presto_filesystem_type type;
    uint64_t bytes;   /* of a file */
    int64_t mtime_ns; /* when it was changed, since 1970; 0: that is not known */
    /* Which content it has: an ETag, a generation. A list and `find` say the same. "": not known. */
    char version[PRESTO_FILESYSTEM_VERSION_BYTES];
    uint64_t reserved[4]; /* 0 */
} presto_filesystem_entry;

/** Takes one name of a folder. A status below 0 ends the list, which returns it. */
typedef presto_status (*presto_filesystem_tell_fn)(void *user, const char *name,
                                                   const presto_filesystem_entry *entry,
                                                   presto_error *err);

/**
 * The functions of a file system. `path` is "/A/B", and "/" the root: it begins with a '/', and does not
 * end with another one. `err` is never NULL.
 *
 * Threads: any, several at once, also for one file. They must not call libpresto with a path of the
 *          same file system.
 * Returns: PRESTO_OK; PRESTO_ERR_NOT_FOUND: nothing is there; PRESTO_ERR_STOPPED: the program ends;
 *          any other failure, whose message is shown behind the path.
 */
typedef struct presto_filesystem {
    size_t struct_bytes; /* sizeof(presto_filesystem) */
    void *user;
    presto_status (*find)(void *user, const char *path, presto_filesystem_entry *entry_out,
                          presto_error *err);
    /** Open a file, and say what it is. */
    presto_status (*open)(void *user, const char *path, void **file_out,
                          presto_filesystem_entry *entry_out, presto_error *err);
    /** Up to `bytes` bytes from `offset` on; fewer only at the end. A file that is no longer the one
     * that was opened is a failure. */
    presto_status (*read)(void *user, void *file, uint64_t offset, void *data, size_t bytes,
                          size_t *got_out, presto_error *err);
    void (*close)(void *user, void *file);
    /** Tell what is right in a folder, by the last parts of the names. NULL: no folder can be listed. */
    presto_status (*list)(void *user, const char *path, presto_filesystem_tell_fn tell,
                          void *tell_user, presto_error *err);
    /** It is removed, and nothing of it is open any more. By any thread. NULL: nobody asks. */
    void (*done)(void *user);
} presto_filesystem;

/**
 * From now on, "NAME://PATH" is in that file system, in this process. The name has a '+', so that it
 * is no scheme of a URL, such as "ours+1": it begins with a letter, and has small letters, digits, '-',
 * '.' and '+', at most 64 in all. What is kept of samples, such as a cache on disk, knows them by it.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT: the name is none, a function is missing; PRESTO_ERR_BUSY: there
 *          is one of that name; PRESTO_ERR_UNSUPPORTED: it has a function that this library does not know;
 *          PRESTO_ERR_MEMORY.
 * Threads: any.
 */
PRESTO_API presto_status presto_filesystem_add(const char *name,
                                               const presto_filesystem *filesystem,
                                               presto_error *err);

/** Nothing of it is found any more; what is open stays open. There need not be one of that name.
 * Threads: any. */
PRESTO_API void presto_filesystem_remove(const char *name);

#ifdef __cplusplus
}
#endif

#endif
