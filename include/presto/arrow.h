/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow in: the columns of another program become features, by Arrow's C data interface. Nothing of
 * Arrow's libraries is needed.
 *
 *   presto_arrow_open()         says which features a schema's columns are, or which it cannot be;
 *   presto_writer_add_arrow()   adds the rows of a record batch to a dataset;
 *   presto_arrow_free()         ends it.
 *
 * Column of Arrow                                   Feature
 * int64; float32                                    int64; float: a number
 * other ints and floats, bool                       a tensor of that dtype without dimensions
 * utf8, binary, large and as views, of fixed size   bytes
 * dictionary                                        as its values
 * lists, also of fixed size, of int64, of float32,  int64s, floats, bytes: one dimension
 *   of texts
 * lists of other numbers                            a tensor of one dimension
 * lists of lists of numbers                         a tensor; the inner lists of a row are equally
 *                                                   long
 * arrow.fixed_shape_tensor, and what `tensors` says a tensor of that shape
 * struct                                            its fields, as NAME.FIELD
 * timestamp, date, time, duration                   refused, or int64 by `convert`
 * decimal                                           refused, or text or float64 by `convert`
 * null, and a value that is missing                 no value (PRESTO_ENCODE_NONE), or refused
 * map, union, interval, list view, run-end encoded, refused
 *   lists of structs, a missing value in a list
 */
#ifndef PRESTO_ARROW_H
#define PRESTO_ARROW_H

#include <presto/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The structs of Arrow's C data and C stream interfaces, as its specification has them. The guards
 * are those of the specification, too: a program may have another copy.
 * Source: https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html
 */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

/** What is told of a column. */
typedef enum presto_arrow_note {
    PRESTO_ARROW_REFUSED = 0,   /* it cannot be stored: why, and what to do */
    PRESTO_ARROW_CONVERTED = 1, /* it is stored as something else: as what */
    PRESTO_ARROW_NULLS = 2      /* its first missing value */
} presto_arrow_note;

/** `column` and `text` are valid during the call. */
typedef void (*presto_arrow_note_fn)(void *user, presto_arrow_note note, const char *column,
                                     const char *text);

/** How columns become features. Copied, with all that it points to. */
typedef struct presto_arrow_options {
    size_t struct_bytes; /* set by presto_arrow_options_defaults */
    /* What is stored of columns that have no feature of their own kind: "COLUMN=int64" (timestamps,
     * dates, times, durations, in their unit), "COLUMN=string", "COLUMN=float64" (decimals) */
    const char *const *convert;
    size_t convert_count;
    const char *const *tensors; /* "COLUMN=float32[3,224,224]": lists are tensors of this shape */
    size_t tensor_count;
    bool refuses_nulls; /* a missing value is an error. Default false: the row has no value */
    presto_arrow_note_fn on_note; /* each column that is refused; once each one that is stored as
                                     something else, or lacks a value. Default NULL */
    void *on_note_user;           /* borrowed until presto_arrow_free */
} presto_arrow_options;

PRESTO_API void presto_arrow_options_init(presto_arrow_options *options, size_t struct_bytes);
static inline void presto_arrow_options_defaults(presto_arrow_options *options) {
    presto_arrow_options_init(options, sizeof *options);
}

/** Columns that are features. */
typedef struct presto_arrow presto_arrow;

/**
 * Which features the rows of this schema have.
 *
 * Shape:   a struct, whose fields are the columns: the schema of a record batch or of a stream.
 * Owner:   the schema is read, and stays the caller's, with its release. *arrow_out is the caller's,
 *          presto_arrow_free.
 * Returns: PRESTO_ERR_TYPE: columns that cannot be stored; the message lists as many as fit, on_note
 *          gets all of them; the schema has no columns, or is no struct. PRESTO_ERR_ARGUMENT (an
 *          option names no column, or does not go with it), PRESTO_ERR_CORRUPT (no schema of
 *          Arrow's), PRESTO_ERR_LIMIT (more than PRESTO_MAX_FEATURES columns), PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_arrow_open(const struct ArrowSchema *schema,
                                           const presto_arrow_options *options,
                                           presto_arrow **arrow_out, presto_error *err);

/** NULL is fine. */
PRESTO_API void presto_arrow_free(presto_arrow *arrow);

/**
 * Add all rows of a record batch, as presto_writer_add adds one after the other: the same bytes.
 * Rows before one that fails are added; presto_writer_samples says how many there are.
 *
 * Shape:   `array` is of the schema of presto_arrow_open, with any offsets.
 * Owner:   the array is read, and stays the caller's, with its release. Nothing of it is needed
 *          after the call.
 * Order:   as presto_writer_add. Rows of calls at the same time stand in any order; those of one
 *          call in its order.
 * Returns: as presto_writer_add, but that the writer's should_stop is asked also while nothing is
 *          waited for. PRESTO_ERR_TYPE (a missing value in a list, or with refuses_nulls),
 *          PRESTO_ERR_RAGGED (lists of a row that differ in length; a list that is not as long as
 *          its tensor), with column and row of the batch. PRESTO_ERR_CORRUPT: the array contradicts
 *          the schema or itself. The interface does not say how large buffers are: one that is
 *          shorter than its array says cannot be noticed.
 * Threads: as presto_writer_add; one call at a time for one presto_arrow.
 */
PRESTO_API presto_status presto_writer_add_arrow(presto_writer *writer, presto_arrow *arrow,
                                                 const struct ArrowArray *array, presto_error *err);

#ifdef __cplusplus
}
#endif

#endif
