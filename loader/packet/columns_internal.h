/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside room packet: how rows become the features of a batch.
 *
 * Rows are put into columns (columns.c, fill.c), which are in slabs and tails (slab.c). A finished
 * batch shows them as features (assemble.c, pad.c). A batch of one row may show the sample's own
 * values instead (views.c).
 */
#ifndef PRESTO_LOADER_COLUMNS_INTERNAL_H
#define PRESTO_LOADER_COLUMNS_INTERNAL_H

#include <stddef.h>
#include <string.h>

#include "../../base/checked_internal.h"
#include "../../base/memory_internal.h"
#include "packet_internal.h"

#define PRESTO__BATCH_ALIGN ((size_t)64)

/* ---- memory ---- */

/** 64-byte aligned; `hint` is the total that will be needed from now on, with `bytes`. */
void *presto__slab_alloc(presto__slab *slab, size_t bytes, size_t hint);
void presto__slab_reset(presto__slab *slab);
void presto__slab_done(presto__slab *slab);

/** Bytes that grow at their end and start at a multiple of 64; `data` moves when they grow. Keeps
 * its memory from life to life. Zero-initialise. */
typedef struct presto__column_tail {
    presto__slab memory; /* one chunk */
    uint8_t *data;
    size_t bytes;
    size_t capacity;
} presto__column_tail;

presto_status presto__tail_reserve(presto__column_tail *tail, size_t more, presto_error *err);
presto_status presto__tail_append(presto__column_tail *tail, const void *data, size_t bytes,
                                  presto_error *err);

/** An array out of the part's memory, uninitialised; NULL: no memory. */
static inline void *presto__part_take(presto__packet_part *part, size_t count, size_t each) {
    size_t bytes;
    return presto__size_multiply(count, each, &bytes)
               ? presto_arena_alloc(&part->memory, bytes, _Alignof(max_align_t))
               : NULL;
}

/* ---- rules ---- */

/** What is known of a feature before there is any row. */
typedef struct presto__rule {
    char *name;                          /* owned */
    bool is_ragged;                      /* its declared shape has unknown dims */
    const presto_feature_spec *declared; /* the source's, where every batch has it: also one all of
                                            whose rows lack it. NULL: not */
    bool is_padded;
    double pad_value;
    uint64_t pad_length; /* 0: the longest row of the batch */
} presto__rule;

/** NULL if there is none for this name. */
const presto__rule *presto__rules_find(const presto__rules *rules, presto_span name);
/** May the value be in a batch? `rule` NULL: none. PRESTO_ERR_LIMIT: it has too many dimensions,
 * or is longer than its padded length. */
presto_status presto__rule_check(const presto__rule *rule, const presto_feature *feature,
                                 presto_error *err);

/* ---- columns ---- */

/** Where the rows of a column are. */
typedef enum presto__column_kind {
    PRESTO__COLUMN_NUMBERS = 0, /* numbers back to back, in a tail */
    PRESTO__COLUMN_ARRAY = 1,   /* numbers of one shape, in the batch's array, `row_bytes` each */
    PRESTO__COLUMN_STRINGS = 2  /* strings back to back, in a tail */
} presto__column_kind;

/**
 * One feature of the rows of a fill. Rows of one shape are in the batch's array. Others, and all
 * strings, are back to back in a tail of the part.
 */
typedef struct presto__column {
    const char *name;
    size_t name_bytes;
    const presto__rule *rule; /* NULL: none */
    presto_encoding encoding; /* as `row`: of the first row that has the feature */
    presto_tensor_spec row;
    size_t row_bytes; /* numeric: of such a row */
    size_t first_at;  /* position of that row in the packet */
    size_t rows;      /* so far */
    presto__column_kind kind;
    bool varies;    /* numeric: rows differ in shape or lack it; strings: a row has not exactly
                       * one */
    uint8_t *array; /* of the first row; in a tail, known once all rows are there */
    int64_t *items; /* strings: where each ends in the bytes, from item 1 on; likewise */
    size_t slot;    /* tails 2 * slot (values) and 2 * slot + 1 (items); SIZE_MAX: none */
    size_t start, item_start; /* in these tails, in bytes */
    int64_t *ends;   /* not dense: where each row ends, in values or strings, from row 1 on */
    int64_t *shapes; /* PRESTO_MAX_RANK dims a row, -1 behind its rank; NULL: all ranks below 2 */
} presto__column;

static inline bool presto__column_is(const presto__column *column, presto_span name) {
    return column->name_bytes == name.bytes &&
           (name.bytes == 0 || memcmp(column->name, name.data, name.bytes) == 0);
}
/** By name, bytewise; for qsort. */
int presto__column_compare(const void *a, const void *b);
/** The column for the feature of this name, `at` of its sample; NULL: there is none. */
presto__column *presto__column_find(presto__fill *fill, presto_span name, size_t at);
/** Add columns for the `count` features of the sample that have a value and no column. */
presto_status presto__columns_add(const presto__place *place, const presto_sample *sample,
                                  size_t count, presto_error *err);
/** Move rows of one shape out of the batch's array into a tail. */
presto_status presto__column_leave_array(const presto__place *place, presto__column *column,
                                         presto_error *err);
/** Note the shapes of rows from here on; the earlier rows have the lengths in `ends`. */
presto_status presto__column_begin_shapes(const presto__place *place, presto__column *column,
                                          presto_error *err);
/** Note the shape of the row that comes next, if shapes are noted. */
void presto__column_put_shape(presto__column *column, const presto_tensor_spec *spec);

static inline presto__column_tail *presto__column_values(const presto__packet_part *part,
                                                         const presto__column *column) {
    return &part->tails[2 * column->slot];
}

static inline presto__column_tail *presto__column_items(const presto__packet_part *part,
                                                        const presto__column *column) {
    return &part->tails[2 * column->slot + 1];
}

/** Copy a row to its place in an array. */
static inline void presto__row_copy(const presto__place *place, uint8_t *to, const void *from,
                                    size_t bytes) {
    if (bytes >= PRESTO__PAST_CACHE_LEAST && place->batch->packet->is_cold)
        presto__copy_past_cache(to, from, bytes);
    else if (bytes > 0)
        memcpy(to, from, bytes);
}

/** Put the next row of a column. */
presto_status presto__column_put(const presto__place *place, presto__column *column,
                                 const presto_tensor *tensor, presto_error *err);
/** Put a row without the feature. */
presto_status presto__column_put_nothing(const presto__place *place, presto__column *column,
                                         presto_error *err);

/** Fail for a sample whose feature `column` is not `dtype`. */
presto_status presto__fail_dtype(const presto__column *column, presto_dtype dtype,
                                 presto_error *err);

/* ---- finished batches ---- */

/** All rows of the batch are there: make its features. If a failure ends the batch early,
 * `shown.rows` says so. */
presto_status presto__batch_assemble(presto__packet_batch *batch, presto_error *err);
/** Features that every batch has, and that all of its rows lack. */
presto_status presto__batch_add_absent(presto__packet_batch *batch, presto_error *err);
/** The first row whose feature has another dtype than before in the batch: its position, or
 * SIZE_MAX; *column_out and *dtype_out say what it should have been. */
size_t presto__batch_conflict(const presto__packet_batch *batch, const presto__column **column_out,
                              presto_dtype *dtype_out);
/** Make a dense array of a feature that a rule pads. */
presto_status presto__batch_pad(presto__packet_batch *batch, const presto__rule *rule,
                                presto_batch_feature *feature, presto_error *err);

#endif
