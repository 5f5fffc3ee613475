/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room engine: samples that are not counted yet. */
#ifndef PRESTO_LOADER_WALK_INTERNAL_H
#define PRESTO_LOADER_WALK_INTERNAL_H

#include "workers_internal.h"

/** Is a last batch left out if it is not full? Records come in no batches. */
static inline bool presto__loader_drops_last(const presto_loader *loader) {
    const presto_loader_options *options = &loader->options;
    return options->range.drop_last && options->output != PRESTO_OUTPUT_RECORDS &&
           options->batch_samples > 0;
}

/** Before anything depends on the number of samples: begin to walk if that will do, else count
 * them. */
presto_status presto__loader_begin_walk(presto_loader *loader, presto_error *err);
void presto__loader_end_walk(presto_loader *loader);
/**
 * It is this worker's turn: find up to *count_io samples, for the positions from `first` on, and
 * read them for the next fetch. *count_io: how many there are. The turn ends once all are found, or
 * the source ends; then part_end is right.
 */
presto_status presto__worker_walk(presto__worker *worker, size_t first, size_t *count_io,
                                  presto_error *err);
/**
 * It is this worker's turn, and samples are shuffled through a buffer: draw those of its part, and
 * end the turn. If not all records that the buffer needs can be found, part_end is set to the
 * position of the first sample that needs one, and *failure_out says why.
 */
void presto__worker_draw(presto__worker *worker, presto_error *failure_out);
/** With the pool's lock held: another worker walks. Returns when it may have ended, or sooner. */
void presto__worker_await_turn(presto__worker *worker);
/** It does not walk on. */
void presto__worker_end_turn(presto__worker *worker);
/** Positions an epoch, without a limit; PRESTO_COUNT_UNKNOWN while it walks. Any thread. */
uint64_t presto__loader_whole_epoch(const presto_loader *loader);

#endif
