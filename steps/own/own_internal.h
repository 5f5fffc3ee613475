/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room own: steps that other programs compute. docs/own-steps.md describes the frames and messages.
 * May see: base, steps_internal.h, and of records presto/example.h. Must not know: pipelines,
 * plans. Every byte of a reply is checked. What a worker does wrong ends the job: PRESTO_ERR_IO
 * with sys_errno EPROTO. Locks: pool->lock, never held while a process starts, works or ends.
 */
#ifndef PRESTO_STEPS_OWN_INTERNAL_H
#define PRESTO_STEPS_OWN_INTERNAL_H

#include <presto/example.h>

#include "../steps_internal.h"

/* ---- frames: a head, and that many bytes of a serialized tf.train.Example ---- */

/* Bytes of the Example, then the number of the request, which the reply repeats; both are 64 bits,
 * little-endian. */
#define PRESTO__HEAD_BYTES 16
/* Names of features in messages. */
#define PRESTO__VALUE_NAME "value"
#define PRESTO__ERROR_NAME "error"
#define PRESTO__RANDOM_NAME "random"

/** Fail with what is wrong with a worker. A macro, so that analyzers see the status. */
#define presto__own_fail(err, ...)                                                                 \
    (presto__own_error((err), __VA_ARGS__), presto_status_pass(PRESTO_ERR_IO))
void presto__own_error(presto_error *err, const char *format, ...) PRESTO_PRINTF(2, 3);

void presto__head_put(uint8_t *head, uint64_t bytes, uint64_t number);

/**
 * Read the head of the reply to request `number`: at most `most` bytes may follow.
 * Returns: PRESTO_ERR_IO (it is no head, or not the one of this reply, or there is too much).
 */
presto_status presto__head_check(const uint8_t *head, uint64_t number, uint64_t most,
                                 uint64_t *bytes_out, presto_error *err);

/** What a reply may hold: specs[0] is the value, which must be there; the others may be. */
typedef struct presto__reply_form {
    const presto_feature_spec *specs;
    size_t count;
} presto__reply_form;

/**
 * Parse the Example of a reply; *reply_out has features of the form only, each of its spec. It
 * borrows from `payload` and `arena`.
 * Returns: PRESTO_OK; PRESTO_DROP (it is empty); PRESTO_ERR_CORRUPT (the worker says that the
 *          sample is bad); PRESTO_ERR_IO (the worker is wrong); PRESTO_ERR_MEMORY.
 */
presto_status presto__reply_parse(const presto__reply_form *form, presto_span payload,
                                  presto_arena *arena, presto_sample *reply_out, presto_error *err);

/* ---- processes ---- */

/** Processes of one program. */
typedef struct presto__workers presto__workers;

typedef struct presto__workers_options {
    const char *path;        /* the program's file; as argv borrowed for the life of the pool */
    const char *const *argv; /* ends with NULL */
    unsigned most;           /* processes at once; 0: one for each thread that asks */
    uint64_t timeout_ns;     /* for one reply */
    uint64_t start_ns;       /* in addition for the first one of a process */
    uint64_t most_reply_bytes;
} presto__workers_options;

/** Starts nothing: a process starts when a thread asks and none is free. */
presto_status presto__workers_new(const presto__workers_options *options,
                                  presto__workers **pool_out, presto_error *err);

/** Ends all processes. No exchange may be under way. */
void presto__workers_free(presto__workers *pool);

typedef struct presto__exchange {
    presto_buffer *request; /* PRESTO__HEAD_BYTES that the pool fills, then the Example */
    presto_buffer *reply;   /* afterwards a head and an Example */
    presto_stop_fn stop;
    void *stop_user;
} presto__exchange;

/**
 * Let one process answer the request.
 * Returns: PRESTO_OK; PRESTO_ERR_STOPPED; PRESTO_ERR_IO (it has died, is too slow, or sends
 *          something else than one frame; the message has the last lines of its stderr);
 *          PRESTO_ERR_MEMORY.
 * Threads: any number, each with its own exchange.
 */
presto_status presto__workers_ask(presto__workers *pool, const presto__exchange *exchange,
                                  presto_error *err);

#endif
