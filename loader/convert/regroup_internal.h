/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room convert: rows that a regrouping step has made, until they are in a shard. */
#ifndef PRESTO_LOADER_REGROUP_INTERNAL_H
#define PRESTO_LOADER_REGROUP_INTERNAL_H

#include "writer_internal.h"

/** Rows that are compressed together. Of the caller, but while it is submitted and not taken. */
typedef struct presto__row_block {
    presto__sample_block rows;     /* `first` is not used */
    presto__regroup_place *begins; /* where each row begins */
    size_t begins_capacity;
} presto__row_block;

/** Blocks of rows in a ring. All is called by one thread. */
typedef struct presto__row_blocks presto__row_blocks;

/** Starts the job's number of threads if its codec compresses; job->codec stays as it is. */
presto_status presto__row_blocks_new(const presto__conversion *job, presto__row_blocks **blocks_out,
                                     presto_error *err);
/** Ends the threads; what is in the ring is given up. NULL is fine. */
void presto__row_blocks_free(presto__row_blocks *blocks);
/** May a block be filled? If not, the oldest must be taken and given back. */
bool presto__row_blocks_have_room(const presto__row_blocks *blocks);
/** The block that is being filled; there is room. */
presto__row_block *presto__row_blocks_open(const presto__row_blocks *blocks);
/** Add a row, which begins at `begin`. */
presto_status presto__row_block_add(presto__row_block *block, const presto_sample *row,
                                    const presto__regroup_place *begin, presto_error *err);
/** Is it as large as is worth handing over? */
bool presto__row_block_is_full(const presto__row_block *block);
/** Hand over the block that is being filled, unless it is empty. */
void presto__row_blocks_submit(presto__row_blocks *blocks);
/**
 * The oldest block that was handed over, with the frames of its rows, until it is given back.
 * Returns: PRESTO_OK; PRESTO_END: there is none, or without `waits` its frames are not ready; why
 *          a block failed.
 */
presto_status presto__row_blocks_take(presto__row_blocks *blocks, bool waits,
                                      presto__row_block **block_out, presto_error *err);
/** Its rows are stored. */
void presto__row_blocks_give_back(presto__row_blocks *blocks);

#endif
