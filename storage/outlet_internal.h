/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door for what is written, whatever its kind of storage. An object is whole when it gets its
 * name, or it is not there. Small objects are put at once, and may be put on a condition where the
 * kind knows such: then they serve as locks.
 */
#ifndef PRESTO_OUTLET_INTERNAL_H
#define PRESTO_OUTLET_INTERNAL_H

#include "storage_internal.h"

/** Can objects be written there? PRESTO_ERR_UNSUPPORTED: no; the message says what to do. */
presto_status presto__path_check_writable(const char *path, presto_error *err);

/* ---- an object, piece by piece ---- */

/** An object that is being written. Of one thread at a time. */
typedef struct presto__outlet presto__outlet;

/**
 * Begin an object, of which nothing is to be seen. `sync`: a file is to be on the disk when it gets
 * its name. A file replaces one of its name; an object of another kind must be the first.
 * Owner:   caller, presto__outlet_free.
 * Returns: PRESTO_OK; PRESTO_ERR_UNSUPPORTED: nothing is written there; PRESTO_ERR_IO, _MEMORY,
 *          _STOPPED; PRESTO_ERR_ARGUMENT: the path is none.
 */
presto_status presto__outlet_open(const char *path, bool sync, presto__outlet **outlet_out,
                                  presto_error *err);
/** The bytes are copied, or written. */
presto_status presto__outlet_append(presto__outlet *outlet, presto_span bytes, presto_error *err);
/**
 * All bytes have come, and their CRC-32C is `crc32c`: from now on presto__outlet_look reads them. Over
 * a network the object has its name already: the storage has been told the CRC, and what the storage
 * says of the object was compared with it.
 */
presto_status presto__outlet_seal(presto__outlet *outlet, uint32_t crc32c, presto_error *err);
/** The sealed object, to read. The caller closes it before it calls presto__outlet_finish. */
presto_status presto__outlet_look(presto__outlet *outlet, presto__object *object_out,
                                  presto_error *err);
/** It gets its name, unless it has it. On failure nothing stands under it. */
presto_status presto__outlet_finish(presto__outlet *outlet, presto_error *err);
/** What is not finished is removed, but for a sealed one over a network: somebody else who has made the
 * same may count on it. NULL is fine. */
void presto__outlet_free(presto__outlet *outlet);

/* ---- small objects, and names ---- */

/** Which content an object has; another one after each change. */
typedef struct presto__version {
    char text[136];
} presto__version;

typedef enum presto__put_condition {
    PRESTO__PUT_ANY,  /* whatever stands there is replaced */
    PRESTO__PUT_NEW,  /* nothing must stand there. Not of files */
    PRESTO__PUT_SAME, /* what stands there must be of that version. Not of files */
} presto__put_condition;

typedef struct presto__put_how {
    presto__put_condition condition;
    const presto__version *version; /* SAME */
    bool sync;                      /* of a file */
    presto__version *version_out;   /* what stands there then; NULL: nobody asks */
} presto__put_how;

/**
 * Write a small object at once: it has all bytes, or what it had before. An answer may be lost, so a
 * condition that does not hold because the very same bytes stand there already is no failure: who
 * must be told from others writes who he is.
 * Returns: PRESTO_OK; PRESTO_ERR_BUSY: the condition does not hold; PRESTO_ERR_UNSUPPORTED: the storage knows no conditions, or
 *          nothing is written there; PRESTO_ERR_IO, _MEMORY, _STOPPED.
 */
presto_status presto__object_put(const char *path, const presto_span *pieces, size_t count,
                                 const presto__put_how *how, presto_error *err);
/** Which version stands there? PRESTO_ERR_NOT_FOUND: none. Not of files. */
presto_status presto__object_version(const char *path, presto__version *version_out,
                                     presto_error *err);
/** As presto_file_read, with the version that was read. Not of files. */
presto_status presto__object_read_version(const char *path, uint64_t most_bytes, presto_buffer *out,
                                          presto__version *version_out, presto_error *err);
/** What is not there is fine. */
presto_status presto__object_remove(const char *path, presto_error *err);
/** Give it another name, in the same storage. PRESTO_ERR_NOT_FOUND: there is none. Over a network it
 * is copied, by the storage, and then removed. */
presto_status presto__object_rename(const char *from, const char *to, presto_error *err);

/* ---- what is left of runs that died ---- */

/** An upload that has begun, and is not complete. Borrowed during the call. */
typedef struct presto__left_upload {
    const char *path; /* of the object that it would have made */
    const char *id;   /* of the upload */
    int64_t begun_s;  /* since 1970; 0: not known */
} presto__left_upload;

typedef presto_status (*presto__left_upload_fn)(void *user, const presto__left_upload *upload,
                                                presto_error *err);

/**
 * Uploads of objects in the folder, or below it, in the order of the names. Files have none. A status
 * below 0 from `tell` ends it with that status.
 */
presto_status presto__uploads_list(const char *folder, presto__left_upload_fn tell, void *user,
                                   presto_error *err);
/** End an upload: its parts are removed. One that is not there is fine. */
presto_status presto__upload_abort(const char *path, const char *id, presto_error *err);
/** End all of them in the folder itself, not in folders below. */
presto_status presto__uploads_abort_all(const char *folder, size_t *count_out, presto_error *err);

/** What this process has sent to storages over a network, all that was sent again included. */
typedef struct presto__sent {
    uint64_t requests;
    uint64_t retries;
    uint64_t bytes;     /* of objects */
    uint64_t unchecked; /* objects of which the storage did not say a CRC-32C of all bytes */
    uint64_t lost;      /* uploads that may have begun without that we know them */
} presto__sent;

presto__sent presto__sent_count(void);

#endif
