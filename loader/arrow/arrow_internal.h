/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room arrow: arrays of Arrow's C data interface to samples, a row at a time.
 * May see: base. Must not know: writers, files.
 *
 * arrow_open.c makes columns of a schema: which feature each is, and how it is read. arrow_rows.c
 * binds them to the arrays of a batch, and reads a row; arrow_values.c reads the values in it.
 * Nothing that the C interface lets one check is trusted: lengths and offsets are compared before
 * they are used. How large buffers are, it does not say. Numbers are not copied if they stand side
 * by side. No lock: one thread at a time.
 */
#ifndef PRESTO_LOADER_ARROW_INTERNAL_H
#define PRESTO_LOADER_ARROW_INTERNAL_H

#include <presto/arrow.h>

#include "../../base/bytes_internal.h"

/** How a value is read. */
typedef enum presto__arrow_reading {
    PRESTO__ARROW_ABSENT = 0,        /* type null: there is none */
    PRESTO__ARROW_NUMBER = 1,        /* as it stands */
    PRESTO__ARROW_BIT = 2,           /* a bool */
    PRESTO__ARROW_WIDENED = 3,       /* int32 as int64 */
    PRESTO__ARROW_BYTES = 4,         /* between offsets of 32 bits */
    PRESTO__ARROW_LARGE = 5,         /* of 64 bits */
    PRESTO__ARROW_VIEW = 6,          /* views of 16 bytes */
    PRESTO__ARROW_FIXED = 7,         /* bytes of one size */
    PRESTO__ARROW_DECIMAL_TEXT = 8,  /* a decimal as text */
    PRESTO__ARROW_DECIMAL_FLOAT = 9, /* as the float64 that is nearest */
} presto__arrow_reading;

/** Which values are missing. */
typedef struct presto__arrow_mask {
    const uint8_t *bits; /* 1: it is there. NULL: all are */
    int64_t base;        /* the bit of row or element 0 */
} presto__arrow_mask;

static inline bool presto__arrow_bit(const uint8_t *bits, int64_t at) {
    return (bits[at >> 3] >> (at & 7) & 1) != 0;
}

/** The values at the end of a column's path: what they are, and where those of a batch stand. */
typedef struct presto__arrow_values {
    presto__arrow_reading reading;
    presto_dtype dtype; /* that is stored */
    size_t item_bytes;  /* in the buffer; BIT, BYTES, LARGE: not used */
    int scale;          /* of decimals */
    size_t index_bytes; /* of a dictionary's index; 0: there is no dictionary */
    bool index_is_signed;

    /* Of the batch. All borrowed. */
    const uint8_t *index, *index_validity; /* of a dictionary */
    const uint8_t *validity;               /* of the values; NULL: all are there */
    const uint8_t *data;                   /* numbers, views, or offsets */
    const uint8_t *bytes;                  /* that offsets point into */
    const void *const *view_buffers;       /* that views point into */
    const uint8_t *view_bytes;             /* how large each is: int64 */
    int64_t view_count;
    int64_t bytes_end;      /* the last offset: no other may lie behind it */
    int64_t length, offset; /* of the array; of a dictionary's values */
} presto__arrow_values;

/** A level of lists. */
typedef struct presto__arrow_list {
    size_t offset_bytes; /* 4, 8; 0: all are `items` long */
    int64_t items;

    /* Of the batch. All borrowed. */
    const uint8_t *validity, *offsets;
    int64_t child_length, child_offset;
} presto__arrow_list;

/** The way to a column: a field of a struct. */
typedef struct presto__arrow_step {
    size_t child, children;
} presto__arrow_step;

/** A column that is a feature. */
typedef struct presto__arrow_column {
    char *name; /* of the feature; owned */
    presto__arrow_step *path;
    size_t depth;
    presto__arrow_list lists[PRESTO_MAX_RANK];
    int list_count;
    presto__arrow_values values;
    bool is_tensor;            /* lists are an array of this shape */
    presto_tensor_spec tensor; /* dtype and rank of its values; the dims, if it is_tensor */
    presto_encoding encoding;

    /* Of the batch: */
    presto__arrow_mask
        *masks; /* that are not NULL, of structs and of the column; room for depth + 1 */
    size_t mask_count;
    int64_t base; /* the place of row 0 in the column's array */

    /* Of the row: */
    int64_t row;       /* its number, for messages; -1: none is being read */
    uint8_t number[8]; /* what no values point to */
    int64_t missing;   /* the first value that was read and is missing, or the end of them */
    presto_buffer list, texts; /* scratch, what values point to */

    /* What rows since presto__arrow_begin were: */
    bool has_value, has_null;
    unsigned varied; /* a bit for each dimension that differed */
    int64_t dims[PRESTO_MAX_RANK];
    bool is_told; /* its first missing value */
} presto__arrow_column;

struct presto_arrow {
    presto__arrow_column *columns; /* by name, bytewise */
    size_t count;
    size_t children; /* of the schema */
    bool refuses_nulls;
    presto_arrow_note_fn on_note;
    void *on_note_user;
    presto_feature *features; /* of the row; one a column */
    presto_span *names;       /* of them */
    int64_t rows;             /* of the batch */
};

/**
 * Begin to read a batch: check it, and forget what rows before were.
 * Returns: PRESTO_ERR_ARGUMENT (it is released), PRESTO_ERR_CORRUPT.
 */
presto_status presto__arrow_begin(presto_arrow *arrow, const struct ArrowArray *array,
                                  presto_error *err);
/**
 * Row `row` as arrow->features, valid until the next call. *news_out: its features have or lack
 * values, or have sizes, as in no row since presto__arrow_begin.
 * Returns: PRESTO_ERR_TYPE, PRESTO_ERR_RAGGED, PRESTO_ERR_CORRUPT, PRESTO_ERR_LIMIT,
 *          PRESTO_ERR_MEMORY.
 */
presto_status presto__arrow_row(presto_arrow *arrow, int64_t row, bool *news_out,
                                presto_error *err);

/* ---- arrow_values.c ---- */

/** Bind values to the array that has them. */
presto_status presto__arrow_values_bind(presto__arrow_column *column,
                                        const struct ArrowArray *array, presto_error *err);
/** A buffer of an array of `length` items from `offset` on; checks that it is there. */
presto_status presto__arrow_array_check(const presto__arrow_column *column,
                                        const struct ArrowArray *array, int64_t buffers,
                                        presto_error *err);
/** Its bitmap of what is there; NULL: all is. */
static inline const uint8_t *presto__arrow_validity(const struct ArrowArray *array) {
    return array->null_count == 0 ? NULL : array->buffers[0];
}
/**
 * The values [first, end) of the array, counted from its first buffer's start, as the data of
 * `tensor`; column->missing: the first one that is missing, or `end`.
 */
presto_status presto__arrow_values_read(presto__arrow_column *column, int64_t first, int64_t end,
                                        presto_tensor *tensor, presto_error *err);

#endif
