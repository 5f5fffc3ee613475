/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes presto-load's samples to a file descriptor: batches as .npy arrays, Arrow record batches
 * or bare tensors, or frames as they are. Tensors go from the batch to the kernel without another
 * copy. Or it copies batches into a ring in shared memory.
 */
#ifndef PRESTO_TOOLS_SINK_H
#define PRESTO_TOOLS_SINK_H

#include <jansson.h>

#include <presto/ring.h>

#include "arrow_stream.h"

typedef struct sink sink;
typedef struct sink_options sink_options;

/** One output format. */
typedef struct sink_type {
    const char *name;          /* after --format */
    presto_output_kind output; /* what the loader makes for it */
    size_t default_batch;      /* 0: the loader's */
    bool takes_features;       /* --features, --pad */
    bool takes_main_only;      /* without --features: the main feature alone */
    bool takes_raw_records;
    bool takes_arrow_types;
    bool takes_ring;   /* it goes through shared memory; stdout is a socket, or unused */
    bool wants_schema; /* of a stream without samples: sink_options.declared */
    bool is_stream;    /* bytes on stdout */
    bool is_silent;    /* nothing on stdout, so that figures may stand there */
    /** Hooks; NULL: there is nothing to do. sink_free ends what `open` has begun. */
    presto_status (*open)(sink *self, const sink_options *options, presto_error *err);
    presto_status (*write)(sink *self, const presto_batch *batch, presto_error *err);
    presto_status (*end)(sink *self, presto_error *err);
} sink_type;

/** All formats, the default first; ends with NULL. */
extern const sink_type *const sink_types[];

struct sink_options {
    const sink_type *type;
    int fd; /* borrowed; a pipe is widened to 1 MiB */
    /* What to write, in this order. Borrowed. None: npy and arrow write all features, the main one
     * first, then "label", then the others as the batch has them; raw writes the main feature. */
    const char *const *features;
    size_t feature_count;
    uint64_t skip;            /* npy: what --skip says, which the messages tell; 0: nothing */
    const arrow_wish *wishes; /* arrow; borrowed */
    size_t wish_count;
    const presto_batch *declared; /* arrow: the columns of a stream without samples, as far as they
                                     are known (presto_loader_schema); borrowed. NULL: none are */
    const presto_ring_options *ring; /* shm; borrowed during sink_new */
};

presto_status sink_new(const sink_options *options, sink **sink_out, presto_error *err);
void sink_free(sink *self);

/**
 * Write one batch.
 * Returns: PRESTO_OK; PRESTO_END if the reader closed the pipe; PRESTO_ERR_STOPPED after a signal;
 * PRESTO_ERR_IO; PRESTO_ERR_NOT_FOUND (a feature that the first batch lacks, with raw any);
 * PRESTO_ERR_TYPE, _RAGGED (raw: text, or a sample of another shape than the first; arrow: see
 * arrow_stream_write); PRESTO_ERR_LIMIT;
 * PRESTO_ERR_MEMORY.
 */
presto_status sink_write(sink *self, const presto_batch *batch, presto_error *err);

/**
 * All has been written. For npy and arrow, write the end: without it a stream is not whole.
 * Returns: as sink_write.
 */
presto_status sink_end(sink *self, presto_error *err);

/** What is to be written has failed: with shm, the reader is told. */
void sink_fail(sink *self, const presto_error *why);

/** Bytes written so far. */
uint64_t sink_bytes(const sink *self);

/* ---- npy ---- */

/* What a header of format 1.0 can need: 10 bytes and a dictionary of at most eight dims. */
#define NPY_HEADER_BYTES 320

/**
 * The header of a .npy file, format 1.0, padded so that the data starts at a multiple of 64 bytes.
 * `item_bytes`: width of the fixed-width strings if dtype is PRESTO_STRING.
 * Returns its size, or 0 if the dtype has no NumPy counterpart.
 * Source:  NumPy's numpy/lib/format.py.
 */
size_t npy_format_header(const presto_tensor_spec *spec, size_t item_bytes,
                         char header_out[NPY_HEADER_BYTES]);

/** A feature as a description has it. */
typedef struct npy_feature {
    const char *name; /* borrowed */
    presto_layout layout;
    presto_dtype dtype; /* of the values */
    bool has_rows, has_shapes;
} npy_feature;

/** Its entry in the description; NULL: no memory, or a name that is not UTF-8. */
json_t *npy_describe(const npy_feature *feature);

/**
 * Set `out` to a message of the stream: an array of one element of type S, which is `json`, padded
 * with blanks to a multiple of 64 bytes. Takes ownership of `json`; NULL fails.
 */
presto_status npy_message(json_t *json, presto_buffer *out, presto_error *err);

#endif
