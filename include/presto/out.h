/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches for other programs, in a format that they read: what `presto-load --format` writes. The
 * formats are a table; docs/streams.md describes each. Bytes go to a function of the caller, who
 * says where they end up. Arrays are handed to it where the batch has them, without a copy.
 *
 * Life: presto_out_open(), presto_out_put() for each batch, presto_out_end() after the last, or
 * presto_out_fail() if it will not come; presto_out_free() in any case.
 */
#ifndef PRESTO_OUT_H
#define PRESTO_OUT_H

#include <presto/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct presto_out presto_out;

/** Which way a format goes. */
typedef enum presto_out_way {
    PRESTO_OUT_BYTES = 0,  /* through presto_out_options.write */
    PRESTO_OUT_RING = 1,   /* through shared memory: presto_out_options.ring */
    PRESTO_OUT_NOWHERE = 2 /* samples are counted, nothing is written */
} presto_out_way;

/** What a format needs, and which options go with it. */
typedef struct presto_out_format {
    const char *name;          /* "npy" */
    const char *help;          /* in a few words: "arrays of each feature of each batch" */
    presto_out_way way;        /* default bytes */
    presto_output_kind output; /* what the loader makes for it. Default batches */
    size_t default_batch;      /* samples of a batch, unless the user says so; 0: the loader's */
    bool takes_features;       /* presto_out_options.features, and padding */
    bool takes_main_only;      /* without features: the main feature alone, not all of them */
    bool takes_raw_records;    /* records that nothing is known of */
    bool takes_arrow_types;    /* presto_out_options.arrow_types */
    bool wants_schema;         /* presto_out_options.schema */
} presto_out_format;

/** The i-th format, the default first; NULL: there are fewer. Static storage. */
PRESTO_API const presto_out_format *presto_out_format_at(size_t i);

/** What a feature shall be in an Arrow stream. */
typedef enum presto_arrow_as {
    PRESTO_ARROW_LIST = 0, /* a list, although the rows of the first batch may have one shape */
    PRESTO_ARROW_UTF8 = 1  /* text, and an error if its bytes are not UTF-8 */
} presto_arrow_as;

typedef struct presto_arrow_type {
    const char *feature;
    presto_arrow_as as;
} presto_arrow_type;

/**
 * Write `pieces` one after the other. They are borrowed during the call. *written_out: how many
 * bytes of them were written, also if not all.
 * Returns: PRESTO_OK; PRESTO_END if nobody reads on; any failure. Both end the call that wrote.
 */
typedef presto_status (*presto_out_write_fn)(void *user, const presto_span *pieces, size_t count,
                                             uint64_t *written_out, presto_error *err);

typedef struct presto_out_options {
    size_t struct_bytes;             /* set by presto_out_options_defaults */
    const presto_out_format *format; /* of the table. Default the first */
    presto_out_write_fn write;       /* for formats of bytes */
    void *write_user;
    /* What to write, in this order. Borrowed until presto_out_free, as are the types and the
     * schema. None: the main feature first, then "label", then the others as the batch has them.
     * Default none */
    const char *const *features;
    size_t feature_count;
    uint64_t skip; /* npy: samples that were skipped, which the messages say; 0: nothing */
    const presto_arrow_type *arrow_types; /* arrow. A feature may have several. Default none */
    size_t arrow_type_count;
    const presto_batch *schema;      /* arrow: the columns of a stream without samples
                                   (presto_loader_schema). NULL: none are known */
    const presto_ring_options *ring; /* for formats of the ring. Borrowed during presto_out_open */
} presto_out_options;

PRESTO_API void presto_out_options_init(presto_out_options *options, size_t struct_bytes);
static inline void presto_out_options_defaults(presto_out_options *options) {
    presto_out_options_init(options, sizeof *options);
}

/**
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT (a format that is not of the table; no `write`, or no
 *          `ring`, where the format needs it); PRESTO_ERR_MEMORY. With a ring:
 *          PRESTO_ERR_BUSY (a writer that lives has the path); PRESTO_ERR_IO; PRESTO_ERR_ARGUMENT
 *          (path and fd, or neither; a path that is too long or is no socket).
 */
PRESTO_API presto_status presto_out_open(const presto_out_options *options, presto_out **opened_out,
                                         presto_error *err);

/**
 * Write a batch that a loader made, with the `output` of the format.
 * Returns: PRESTO_OK; PRESTO_END if nobody reads on; PRESTO_ERR_NOT_FOUND (a feature that the first
 *          batch lacks, with raw any; an Arrow type for a feature that there is not);
 *          PRESTO_ERR_TYPE (text with raw; what NumPy or Arrow has no type for; text that is not
 *          UTF-8); PRESTO_ERR_RAGGED (raw: a sample of another shape than the first; arrow: a
 *          feature that does not fit the schema); PRESTO_ERR_LIMIT; PRESTO_ERR_MEMORY; what `write`
 *          fails with. With a ring, which is waited for: PRESTO_ERR_LIMIT (larger than the ring);
 *          PRESTO_ERR_STOPPED; PRESTO_ERR_CORRUPT (the reader does not keep to the protocol);
 *          PRESTO_ERR_UNSUPPORTED (it is of another version); PRESTO_ERR_BUSY (it says nothing for
 *          5 s); PRESTO_ERR_IO.
 * Threads: one at a time, as for the other calls.
 */
PRESTO_API presto_status presto_out_put(presto_out *out, const presto_batch *batch,
                                        presto_error *err);

/**
 * All has been written: write the end of the format. Without it the stream is not whole.
 * Returns: as presto_out_put.
 */
PRESTO_API presto_status presto_out_end(presto_out *out, presto_error *err);

/** There is no more, and why. The reader is told where the format can say it. */
PRESTO_API void presto_out_fail(presto_out *out, const presto_error *why);

/** Bytes written so far. */
PRESTO_API uint64_t presto_out_bytes(const presto_out *out);

/** NULL is fine. */
PRESTO_API void presto_out_free(presto_out *out);

#ifdef __cplusplus
}
#endif

#endif
