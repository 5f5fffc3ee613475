/* SPDX-License-Identifier: Apache-2.0 */
/* How a worker puts rows into a packet. Part of room packet's header. */
#ifndef PRESTO_LOADER_ROWS_INTERNAL_H
#define PRESTO_LOADER_ROWS_INTERNAL_H

#include "packet_internal.h"

/** Where the worker is: the row that comes next. */
typedef struct presto__place {
    presto__packet_batch *batch;
    presto__packet_part *part;
    size_t position; /* in the packet */
} presto__place;

static inline presto__fill *presto__place_fill(const presto__place *place) {
    return place->batch->packet->part_count > 1 ? &place->part->fill : &place->batch->fill;
}

static inline bool presto__fill_is_begun(const presto__fill *fill) {
    return fill->columns != NULL && !fill->is_undone;
}

/** Several parts in one batch, pool's lock held: make the arrays for rows like `sample`. */
presto_status presto__batch_layout(presto__packet_batch *batch, const presto_sample *sample,
                                   presto_error *err);
/** The columns of a fill that has none yet, for rows like `sample`. */
presto_status presto__fill_begin(const presto__place *place, const presto_sample *sample,
                                 presto_error *err);
/** Where a step may write the value of a feature before the sample is put; NULL: nowhere. `at`
 * is the feature's position in the sample. */
void *presto__fill_slot(const presto__place *place, const presto_feature *feature, size_t at);
/**
 * Put a sample into the next row; a value that is there already is not copied. PRESTO_ERR_RAGGED: a
 * feature has another dtype than in the rows before; PRESTO_ERR_LIMIT: it is longer than its padded
 * length, or has too many dimensions. Then no row was put.
 */
presto_status presto__fill_put(const presto__place *place, const presto_sample *sample,
                               presto_error *err);
/** Put raw records into the next rows, one each, if the fill has begun with such a row. False: put
 * them one by one. */
bool presto__fill_put_records(const presto__place *place, const presto_record *records,
                              size_t count);
/**
 * Put the values of a record into the next row without a sample. PRESTO_END: they are not like the
 * rows before; nothing was put, use presto__fill_put, which says why if they cannot be.
 */
presto_status presto__fill_put_values(const presto__place *place,
                                      const presto_example_values *values, presto_error *err);
typedef enum presto__view_mode {
    PRESTO__VIEW_UNALIGNED, /* values stay where they are */
    PRESTO__VIEW_ALIGNED,   /* those that are not aligned are copied */
    PRESTO__VIEW_COPY       /* all are copied */
} presto__view_mode;
/** Make a batch of one row straight from the sample, without columns. */
presto_status presto__fill_view(const presto__place *place, const presto_sample *sample,
                                presto__view_mode mode, presto_error *err);
/** Are its tensors aligned like those of a batch, or so small that the view may copy them? */
bool presto__batch_may_view(const presto_sample *sample);
/** Bytes of the values of all features. */
uint64_t presto__sample_bytes(const presto_sample *sample);

#endif
