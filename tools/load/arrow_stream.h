/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes batches as an Arrow IPC stream: a schema, a record batch for each batch, an end. Columns
 * go from the batch to the descriptor without a copy. All batches have the schema of the first one.
 */
#ifndef PRESTO_TOOLS_ARROW_STREAM_H
#define PRESTO_TOOLS_ARROW_STREAM_H

#include "arrow_schema.h"
#include "pieces.h"

typedef struct arrow_stream arrow_stream;

/** A stream written through `out`. Both that and `wishes` are borrowed. */
presto_status arrow_stream_new(pieces *out, const arrow_wish *wishes, size_t wish_count,
                               arrow_stream **stream_out, presto_error *err);
void arrow_stream_free(arrow_stream *self);

/**
 * Write a batch of at least one row: `features` of it in the order of the columns, which is the
 * same for all batches; NULL where it lacks one that earlier batches have.
 * Returns: as pieces_flush; PRESTO_ERR_RAGGED (a feature does not fit the schema), PRESTO_ERR_TYPE
 * (Arrow has no such type; text that is not UTF-8), PRESTO_ERR_NOT_FOUND (a wish for a feature that
 * the first batch lacks), PRESTO_ERR_LIMIT, PRESTO_ERR_MEMORY.
 */
presto_status arrow_stream_write(arrow_stream *self, const presto_batch *batch,
                                 const presto_batch_feature *const *features, size_t count,
                                 presto_error *err);

/**
 * Write the schema, unless it has been written: of `features` as a batch with rows has them.
 * Returns: as arrow_stream_write.
 */
presto_status arrow_stream_begin(arrow_stream *self, const presto_batch_feature *const *features,
                                 size_t count, presto_error *err);

/** Write the end: without it, readers fail. Returns: as pieces_flush, PRESTO_ERR_MEMORY. */
presto_status arrow_stream_end(arrow_stream *self, presto_error *err);

#endif
