/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room out: batches for other programs: what they will look like before there is one, and the table
 * of formats in which they are written. Its functions are those of presto/out.h and presto/stream.h.
 * May see: base, records, steps, rooms order, source, cache, packet, engine and ring. Must not know: files, pipes and terminals, which are the caller's.
 * A format is one file, out_<name>.c, with one presto__out_type, and a name in PRESTO__OUT_FORMATS.
 * It has a state of its own; what all share is in presto_out. No locks: one thread writes.
 */
#ifndef PRESTO_LOADER_OUT_INTERNAL_H
#define PRESTO_LOADER_OUT_INTERNAL_H

#include <presto/out.h>
#include <presto/stream.h>

/* All formats, in the order in which messages list them. */
#define PRESTO__OUT_FORMATS(X) X(tfrecord) X(npy) X(arrow) X(shm) X(raw) X(null)

/** A format: what others see of it, and its hooks. A hook may be NULL: there is nothing to do. */
typedef struct presto__out_type {
    presto_out_format about;
    size_t state_bytes; /* of presto_out.state, which is zeroed before `begin` */
    presto_status (*begin)(presto_out *out, const presto_out_options *options, presto_error *err);
    /** A batch of at least one row. What it adds is written by presto__out_flush. */
    presto_status (*encode)(presto_out *out, const presto_batch *batch, presto_error *err);
    presto_status (*end)(presto_out *out, presto_error *err);
    void (*fail)(presto_out *out, const presto_error *why);
    uint64_t (*bytes)(const presto_out *out); /* NULL: those that went through `write` */
    void (*done)(presto_out *out); /* frees what the state holds, also if `begin` has failed */
} presto__out_type;

#define PRESTO__OUT_DECLARE(name) extern const presto__out_type presto__out_##name;
PRESTO__OUT_FORMATS(PRESTO__OUT_DECLARE)
#undef PRESTO__OUT_DECLARE

enum { PRESTO__OUT_MOST_PIECES = 1024 }; /* that are written at once */

/* A feature that is written. */
typedef struct presto__out_column {
    char *name;
    const presto_batch_feature *feature; /* of the batch being written; NULL: it has none */
} presto__out_column;

/* Where a column stands. */
typedef struct presto__out_place {
    const char *name; /* the column's */
    size_t column;
} presto__out_place;

struct presto_out {
    const presto__out_type *type;
    presto_out_write_fn write;
    void *write_user;
    presto_span *pieces; /* added and not written yet */
    size_t piece_count;
    uint64_t bytes;            /* written */
    const char *const *wanted; /* of the options, borrowed */
    size_t wanted_count;
    presto__out_column *columns; /* in the order of writing; those of later batches are added */
    presto__out_place *sorted;   /* the columns by name */
    size_t count, capacity;      /* of both */
    uint64_t samples, batches;   /* put so far, without the one being written */
    void *state;                 /* the format's */
};

/* ---- out_parts.c ---- */

/** The feature of this name; NULL: the batch has none. */
const presto_batch_feature *presto__out_find_feature(const presto_batch *batch, const char *name);
/** Find the feature of each column in the batch, NULL where it has none. New features become
 * columns at the end, if the format takes all. PRESTO_ERR_NOT_FOUND, _ARGUMENT, _MEMORY. */
presto_status presto__out_find_features(presto_out *out, const presto_batch *batch,
                                        presto_error *err);
presto_status presto__out_fail_missing(const presto_batch *batch, const char *name,
                                       presto_error *err);

/**
 * Write `data` after what was added before it. It is borrowed until presto__out_flush.
 * Returns: as presto__out_flush, as more pieces than the list holds are written at once.
 */
presto_status presto__out_add(presto_out *out, const void *data, size_t bytes, presto_error *err);
/** Write what was added. Returns: what presto_out_options.write does. */
presto_status presto__out_flush(presto_out *out, presto_error *err);

#endif
