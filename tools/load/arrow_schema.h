/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of an Arrow stream: which Arrow type each feature has, and the messages that say so.
 * Source: Arrow's "Columnar Format", section on serialization and IPC; format/Schema.fbs and
 * format/Message.fbs; "Canonical Extension Types".
 */
#ifndef PRESTO_TOOLS_ARROW_SCHEMA_H
#define PRESTO_TOOLS_ARROW_SCHEMA_H

#include <presto/loader.h>

#include "flat.h"

/* Offsets of lists and strings are int64, as in batches: all are Arrow's "large" types. */
typedef enum arrow_kind {
    ARROW_NUMBER = 0, /* one number a row */
    ARROW_TENSOR = 1, /* arrow.fixed_shape_tensor */
    ARROW_LIST = 2,   /* a list of numbers a row */
    ARROW_STRING = 3, /* one string a row: binary, or utf8 */
    ARROW_STRINGS = 4 /* a list of strings a row */
} arrow_kind;

/** A feature as all batches of the stream have it. */
typedef struct arrow_column {
    char *name;       /* owned */
    char *shape_name; /* owned; of the second column, or NULL */
    arrow_kind kind;
    presto_tensor_spec row; /* dtype of the values; ARROW_TENSOR: the shape of a row */
    size_t shape_rank;      /* ARROW_LIST: rows have up to so many dimensions, which a second column
                               has; 0: they have one, and there is no such column */
    bool is_text;           /* utf8 */
} arrow_column;

/** What the user wants of a feature's type. */
typedef struct arrow_wish {
    const char *name; /* borrowed */
    bool is_list;     /* a list although the rows of the first batch have one shape */
    bool is_text;     /* utf8, and an error if it is not */
} arrow_wish;

/**
 * The column of a feature as its batch has it; `wish` may be NULL.
 * Returns: PRESTO_OK; PRESTO_ERR_TYPE (complex numbers; utf8 of numbers; a name that is not UTF-8);
 * PRESTO_ERR_LIMIT (rows of more than 2^31 - 1 values); PRESTO_ERR_MEMORY.
 */
presto_status arrow_column_of(const presto_batch_feature *feature, const arrow_wish *wish,
                              arrow_column *column_out, presto_error *err);

void arrow_column_done(arrow_column *column);

bool arrow_is_utf8(presto_span text);

/** Make *out the schema message of these columns, as it stands in a stream. */
presto_status arrow_schema_message(const arrow_column *columns, size_t count, flat *out);

/* Begin and end a message: what stands in front of its header, and the padding behind it. */
size_t arrow_message_begin(flat *out, int header_type, int64_t body_bytes);
void arrow_message_end(flat *out);

enum { ARROW_HEADER_SCHEMA = 1, ARROW_HEADER_BATCH = 3, ARROW_ALIGNMENT = 64 };

#endif
