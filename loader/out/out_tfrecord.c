/* SPDX-License-Identifier: Apache-2.0 */
/* tfrecord: frames as the loader makes them. */
#include "out_internal.h"

enum { DEFAULT_BLOCK = 256 }; /* samples delivered at a time: there are no batches */

static presto_status encode_frames(presto_out *out, const presto_batch *batch, presto_error *err) {
    return presto__out_add(out, batch->frames.data, batch->frames.bytes, err);
}

const presto__out_type presto__out_tfrecord = {.about = {.name = "tfrecord",
                                                         .help = "an Example per sample",
                                                         .output = PRESTO_OUTPUT_RECORDS,
                                                         .default_batch = DEFAULT_BLOCK,
                                                         .takes_raw_records = true},
                                               .encode = encode_frames};
