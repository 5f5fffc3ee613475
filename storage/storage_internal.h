/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room storage: where bytes live. A table of kinds of storage (kinds.c), one file a kind; nothing
 * above knows which one it reads. An object is bytes with a name in a storage, as a file. Its path
 * says of which kind it is. Any kind can be read as slowly as another storage would be
 * (play_internal.h), by many threads at once (fan_out_internal.h).
 * May see: base. Must not know: what the bytes mean.
 * Invariants: an object that is open stays the same bytes, or reading it fails. Locks: none here.
 */
#ifndef PRESTO_STORAGE_INTERNAL_H
#define PRESTO_STORAGE_INTERNAL_H

#include <stdbool.h>

#include <presto/storage.h>

#include "../base/digest_internal.h"

typedef struct presto__storage_kind presto__storage_kind;

/** An open object. A value, to be copied as one likes, and closed once. Zeroed: none is open. */
typedef struct presto__object {
    const presto__storage_kind *kind; /* NULL: not open */
    union {                           /* what the kind knows it by */
        int fd;
        void *state;
    };
    bool is_again; /* what was read of it does not hold: read from the storage, not from memory */
} presto__object;

typedef enum presto__object_type {
    PRESTO__OBJECT_FILE,
    PRESTO__OBJECT_FOLDER,
    PRESTO__OBJECT_OTHER, /* a named pipe, a device, ...: cannot be read */
} presto__object_type;

/** What is known of an object without reading it. */
typedef struct presto__object_info {
    presto__object_type type;
    uint64_t bytes;
    int64_t mtime_ns;     /* of the last change, since the epoch */
    int64_t ctime_ns;     /* of the last change of its bytes or of what is said of it */
    uint64_t identity[2]; /* which object it is, whatever its name */
} presto__object_info;

/** What a storage itself says of all bytes of an object. */
typedef struct presto__object_checksum {
    uint64_t bytes;
    bool is_known; /* false: it does not say the CRC, or one of something else */
    uint32_t crc32c;
} presto__object_checksum;

/** What a list finds, but for folders. Borrowed during the call. */
typedef struct presto__listed {
    const char *path;
    const char *name;                /* its last part */
    const presto__object_info *info; /* links are followed; NULL: it cannot be looked at */
    int sys_errno;                   /* why `info` is NULL */
} presto__listed;

/** Who takes a list: hooks, of which one is called at a time, by any thread. A status below 0 from a
 * hook ends the list with that status. */
typedef struct presto__list {
    void *user;
    /** Called for each name in `folder` before it is examined: is it wanted? NULL: all are. */
    presto_status (*name)(void *user, const char *folder, const char *name, bool *wanted_out,
                          presto_error *err);
    /** Called for each wanted entry that is no folder, in no order. */
    presto_status (*found)(void *user, const presto__listed *found, presto_error *err);
    /** Called for each wanted folder, before what is in it, and for the first one. NULL: nobody
     * asks. */
    presto_status (*folder)(void *user, const char *path, presto_error *err);
    /** Only what is right in the folder: `folder` is called for the folders in it, not for itself,
     * and they are not entered. */
    bool is_shallow;
    const char *beginning; /* with is_shallow: of the names; others may be left out. NULL: none */
} presto__list;

/** A position in an open object. `path` is for messages. */
typedef struct presto__object_place {
    presto__object object;
    const char *path;
    uint64_t offset;
} presto__object_place;

static inline bool presto__object_is_open(presto__object object) {
    return object.kind != NULL;
}

/**
 * Open an object for reading, without waiting for writers. Errors name `path`.
 * Returns: PRESTO_ERR_NOT_FOUND if there is none; PRESTO_ERR_IO for a folder, named pipe, socket
 *          or device; PRESTO_ERR_STOPPED.
 */
presto_status presto__object_open(const char *path, presto__object *object_out,
                                  presto__object_info *info_out, presto_error *err);
/** A file that the caller has open, and closes: presto__object_close is not called. */
presto__object presto__object_of_file(int fd);
/** Let go of it; the value is zeroed. Nothing, if it is not open. */
void presto__object_close(presto__object *object);

/** Up to `bytes` bytes from `place` on; fewer only at the end of the object. Any thread. */
presto_status presto__read_at(presto__object_place place, void *data, size_t bytes, size_t *got_out,
                              presto_error *err);

/** What an open object is now. PRESTO_ERR_IO. */
presto_status presto__object_look(presto__object object, const char *path,
                                  presto__object_info *info_out, presto_error *err);
/** What stands at `path`: object or folder; links are followed. PRESTO_ERR_NOT_FOUND: nothing. */
presto_status presto__object_find(const char *path, presto__object_info *info_out,
                                  presto_error *err);
/**
 * Everything below a folder, or in it. Each folder is entered once; what is listed depends on the
 * names that are there alone. Does not keep what it has told.
 * Returns: PRESTO_OK; PRESTO_ERR_UNSUPPORTED: no such storage can be listed; PRESTO_ERR_IO (a folder
 *          cannot be read); PRESTO_ERR_MEMORY; PRESTO_ERR_STOPPED; what a hook returned.
 */
presto_status presto__object_list(const char *path, const presto__list *list, presto_error *err);
/**
 * What the storage says of the object at `path`; nothing is read. Not known, too, if it never says
 * such a thing. Returns: PRESTO_OK; PRESTO_ERR_NOT_FOUND; PRESTO_ERR_IO; PRESTO_ERR_STOPPED.
 */
presto_status presto__object_checksum_of(const char *path, presto__object_checksum *checksum_out,
                                         presto_error *err);
/** Can its kind of storage be listed? */
bool presto__path_can_be_listed(const char *path);
/** Is there a folder at `path`? False, too, if that cannot be said. */
bool presto__object_is_folder(const char *path);
/** Are both the same object with the same content, as far as can be told without reading it? */
bool presto__object_is_same(const presto__object_info *a, const presto__object_info *b);
/** What tells one content of an object from another without reading it: its size and times. */
void presto__digest_add_object(presto__digest *digest, const presto__object_info *info);

/** Paths, in order. Zero-initialise. */
typedef struct presto__paths {
    char **items;
    size_t count;
    size_t capacity;
} presto__paths;

/**
 * The paths, with what a pattern such as "train-*" matches in its place, sorted, as a shell does it,
 * wherever they are, if their kind of storage can be listed. A path that is there is no pattern, and
 * a pattern that matches nothing stays.
 * Returns: PRESTO_OK; PRESTO_ERR_IO (a folder cannot be read); PRESTO_ERR_MEMORY, _STOPPED.
 * Owner:   caller, presto__paths_done, also on failure.
 */
presto_status presto__paths_expand(const char *const *paths, size_t count, presto__paths *paths_out,
                                   presto_error *err);
/** Add a copy. */
presto_status presto__paths_add(presto__paths *paths, const char *path, presto_error *err);
void presto__paths_done(presto__paths *paths);

/** Does it come over a network? Then each read costs a round trip, and bytes may be other ones than
 * those that are stored. */
bool presto__path_is_remote(const char *path);

/** A number for it that is at least 0, for what is played. */
int presto__object_number(presto__object object);

/**
 * All of its bytes in memory, until munmap. NULL: the kind cannot do that, or errno says why not;
 * errno is 0 in the first case.
 */
void *presto__object_map(presto__object object, uint64_t bytes);
/** A hint: these bytes will be read soon. Does not wait. Of an object that comes over a network, they
 * are requested for the thread's read-ahead. */
void presto__object_will_read(presto__object object, uint64_t offset, uint64_t bytes);
/** The same, if only `wanted` bytes of these will be read, and what stands between them costs less
 * than another request. */
void presto__object_will_read_of(presto__object object, uint64_t offset, uint64_t bytes,
                                 uint64_t wanted);
/** The same of the first bytes of an object that is not open. */
void presto__object_will_open(const char *path, uint64_t bytes);
/** Where bytes that are stored begin, at or behind `from`; the size, if none do. Before it are
 * zeros that take no room. UINT64_MAX: that cannot be said. */
uint64_t presto__object_next_data(presto__object object, uint64_t from);

/* ---- reading ahead over a network (ahead.c) ---- */

/** Requests that are under way before somebody reads what they bring, of one stream. */
typedef struct presto__ahead presto__ahead;

/**
 * What waits to be read takes at most `limit_bytes`; beside it, each thread that waits for a range
 * which is not requested yet may have one of 4 MiB, and there are the first 16 KiB of at most 256
 * objects that will be opened.
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY, PRESTO_ERR_IO (no lock).
 */
presto_status presto__ahead_new(size_t limit_bytes, presto__ahead **ahead_out, presto_error *err);
/** No thread is bound to it any more. Requests that are under way are ended. NULL is fine. */
void presto__ahead_free(presto__ahead *ahead);
/** The calling thread's hints are for `ahead` from now on; NULL: they are for nothing. Returns what
 * it was before. */
presto__ahead *presto__ahead_bind(presto__ahead *ahead);
/** What this thread is bound to. */
presto__ahead *presto__ahead_bound(void);
/** What a read-ahead has done so far. */
typedef struct presto__ahead_counts {
    uint64_t requests; /* for ranges, all that follow included */
    uint64_t retries;
    uint64_t seconds;       /* second requests, for what took long ... */
    uint64_t seconds_first; /* ... that came first */
} presto__ahead_counts;

presto__ahead_counts presto__ahead_count(const presto__ahead *ahead);
/** What it holds, or has requested. Any thread. */
size_t presto__ahead_bytes(const presto__ahead *ahead);
/** Will presto__object_will_open do something? */
bool presto__ahead_may_open(void);

/**
 * Drop an object from the machine's page cache. What is missing, is no regular file or may not be
 * read is passed over: whoever reads it says so. PRESTO_ERR_IO: the machine failed.
 */
presto_status presto__drop_from_cache(const char *path, presto_error *err);

#endif
