/* SPDX-License-Identifier: Apache-2.0 */
/* --format tfrecord: frames as the loader makes them. --format null: nothing, samples are counted. */
#include "sink_parts.h"

enum { DEFAULT_BLOCK = 256 }; /* samples delivered at a time: there are no batches */

static presto_status write_frames(sink *self, const presto_batch *batch, presto_error *err) {
    presto_status status = pieces_add(&self->out, batch->frames.data, batch->frames.bytes, err);
    return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
}

const sink_type sink_tfrecord = {.name = "tfrecord",
                                 .output = PRESTO_OUTPUT_RECORDS,
                                 .default_batch = DEFAULT_BLOCK,
                                 .takes_raw_records = true,
                                 .is_stream = true,
                                 .write = write_frames};

const sink_type sink_null = {.name = "null",
                             .output = PRESTO_OUTPUT_COUNT,
                             .default_batch = DEFAULT_BLOCK,
                             .takes_raw_records = true,
                             .is_silent = true};
