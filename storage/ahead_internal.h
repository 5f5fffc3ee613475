/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of objects that are requested before somebody reads them. storage_internal.h has what a
 * reader's thread sees of it; this is between remote.c, which knows objects, and ahead.c.
 */
#ifndef PRESTO_AHEAD_INTERNAL_H
#define PRESTO_AHEAD_INTERNAL_H

#include "remote_internal.h"

typedef struct presto__flight presto__flight;

/** What ahead.c asks of an open object. Any thread. */
typedef struct presto__ahead_object {
    /** The request for a range of it. */
    presto_status (*write)(const void *object, const presto__remote_wish *wish,
                           presto__message *message, presto_error *err);
    /** Is the answer a success, of the object that was opened? */
    bool (*fits)(const void *object, const presto__http_answer *answer);
} presto__ahead_object;

/** The ranges of one open object that are requested or have come, by their places; none overlap. */
typedef struct presto__flights {
    /* Set when it is opened. The object has these, and ends them before it goes. */
    const presto__ahead_object *type;
    const void *object;
    /* Guarded by the lock of ahead.c. */
    presto__flight **items;
    size_t count, capacity;
} presto__flights;

/** Bytes [first, end) of an object that is open, which will be read soon. */
typedef struct presto__ahead_wish {
    presto__flights *flights;
    uint64_t first, end;
    uint64_t wanted; /* bytes of these that will be read; the others stand between them */
} presto__ahead_wish;

/** Request what is not requested yet, for the read-ahead of this thread; nothing, if it has none. */
void presto__flights_request(const presto__ahead_wish *wish);

/** Where bytes are wanted. */
typedef struct presto__ahead_read {
    presto__flights *flights;
    uint64_t offset;
    void *data;
    size_t bytes;
} presto__ahead_read;

/**
 * Copy what has been requested, once it has come; as far as one range goes.
 * Returns: PRESTO_OK: *got_out bytes were copied, or none, and *gap_out bytes are not requested, or
 *          their request has failed: the caller requests them. PRESTO_ERR_STOPPED.
 */
presto_status presto__flights_read(const presto__ahead_read *wanted, size_t *got_out,
                                   size_t *gap_out, presto_error *err);

/** Bytes [first, end) have been read without these. */
void presto__flights_note(presto__flights *flights, uint64_t first, uint64_t end);

/** The object is being closed: nobody reads it any more. */
void presto__flights_done(presto__flights *flights);

/** A request that did not go through ahead.c has succeeded, in this thread: the server answers. */
void presto__ahead_note_success(void);

/* ---- beginnings of objects that will be opened ---- */

/** What came of the first bytes of an object. Whoever takes it frees `head`, and `self` by its
 * address. */
typedef struct presto__beginning {
    void *self; /* of the address */
    uint8_t *head;
    presto__http_answer answer; /* a success, or 404 */
} presto__beginning;

/** Request the first `bytes` bytes of the object, for the read-ahead of this thread. */
void presto__beginning_request(const presto__remote_name *name, size_t bytes);
/** The same without taking it: only what was said of it. */
bool presto__beginning_look(const char *path, presto__http_answer *answer_out,
                            presto_status *status_out, presto_error *err);
/** If its beginning was requested, it is taken, once it has come. False: it was not, or the request
 * has failed. PRESTO_ERR_STOPPED in *status_out; else PRESTO_OK. */
bool presto__beginning_take(const char *path, presto__beginning *beginning_out,
                            presto_status *status_out, presto_error *err);

#endif
