/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the formats of presto-load share: one file a format, sink_<name>.c, with one sink_type that
 * sink.c lists. All arrays are written from the loader's memory.
 */
#ifndef PRESTO_TOOLS_SINK_PARTS_H
#define PRESTO_TOOLS_SINK_PARTS_H

#include "pieces.h"
#include "sink.h"

/* A feature as it is written. */
typedef struct sink_column {
    char *name;
    presto_tensor_spec row;              /* raw: the spec that each sample must have */
    npy_feature described;               /* npy: as in the last description */
    char headers[4][NPY_HEADER_BYTES];   /* npy; reused from batch to batch */
    presto_batch_feature lacking;        /* npy: in a batch that lacks it */
    const presto_batch_feature *feature; /* of the batch being written */
} sink_column;

/* Where a column stands. */
typedef struct sink_place {
    const char *name; /* the column's */
    size_t column;
} sink_place;

struct sink {
    const sink_type *type;
    pieces out;
    const char *const *wanted; /* --features, borrowed */
    size_t wanted_count;
    uint64_t skip;
    sink_column
        *columns;       /* in the order of writing; npy, arrow: those of later batches are added */
    sink_place *sorted; /* of the columns, by name */
    const presto_batch_feature **features; /* arrow: of all columns */
    size_t count, capacity;
    presto_buffer message;        /* npy: the description, or the end */
    presto_buffer zeros;          /* npy: offsets of a feature that the batch lacks */
    arrow_stream *arrow;          /* NULL: another format */
    const presto_batch *declared; /* arrow: of the options */
    presto_ring_writer *ring;     /* shm */
    presto_batch_feature *ringed; /* shm: of all columns that the batch has */
    uint64_t samples, batches;
};

/** The feature of this name; NULL: the batch has none. */
const presto_batch_feature *sink_find_feature(const presto_batch *batch, const char *name);
/** Find the feature of each column in the batch, NULL where it has none. New features become
 * columns at the end, if the format takes all. PRESTO_ERR_NOT_FOUND, _ARGUMENT, _MEMORY. */
presto_status sink_find_features(sink *self, const presto_batch *batch, presto_error *err);
presto_status sink_fail_missing(const presto_batch *batch, const char *name, presto_error *err);

extern const sink_type sink_tfrecord, sink_npy, sink_raw, sink_null, sink_arrow, sink_shm;

#endif
