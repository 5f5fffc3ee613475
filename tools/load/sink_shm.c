/* SPDX-License-Identifier: Apache-2.0 */
/* --format shm: batches in a ring of shared memory. */
#include "sink_parts.h"

enum { DEFAULT_BATCH = 64 };

static presto_status open_ring(sink *self, const sink_options *options, presto_error *err) {
    return presto_ring_writer_open(options->ring, &self->ring, err);
}

/* The features in their order, as far as the batch has them. */
static presto_status write_ring(sink *self, const presto_batch *batch, presto_error *err) {
    presto_batch chosen = *batch;
    PRESTO_TRY(sink_find_features(self, batch, err));
    chosen.features = self->ringed;
    chosen.feature_count = 0;
    chosen.main_feature = SIZE_MAX;
    for (size_t i = 0; i < self->count; i++) {
        const presto_batch_feature *feature = self->features[i];
        if (feature == NULL)
            continue;
        if (batch->main_feature < batch->feature_count &&
            feature == &batch->features[batch->main_feature])
            chosen.main_feature = chosen.feature_count;
        self->ringed[chosen.feature_count++] = *feature;
    }
    return presto_ring_writer_put(self->ring, &chosen, err);
}

static presto_status end_ring(sink *self, presto_error *err) {
    return presto_ring_writer_end(self->ring, err);
}

const sink_type sink_shm = {.name = "shm",
                            .output = PRESTO_OUTPUT_BATCHES,
                            .default_batch = DEFAULT_BATCH,
                            .takes_features = true,
                            .takes_raw_records = true,
                            .takes_ring = true,
                            .open = open_ring,
                            .write = write_ring,
                            .end = end_ring};
