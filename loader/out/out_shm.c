/* SPDX-License-Identifier: Apache-2.0 */
/* shm: batches in a ring of shared memory. */
#include <stdlib.h>

#include "../ring/ring_internal.h"
#include "out_internal.h"

enum { DEFAULT_BATCH = 64 };

typedef struct shm_state {
    presto__ring_writer *ring;
    presto_batch_feature *features; /* room for all columns */
    size_t capacity;
} shm_state;

static presto_status begin_ring(presto_out *out, const presto_out_options *options,
                                presto_error *err) {
    shm_state *self = out->state;
    return presto__ring_writer_open(options->ring, &self->ring, err);
}

/* The features in their order, as far as the batch has them. */
static presto_status encode_ring(presto_out *out, const presto_batch *batch, presto_error *err) {
    shm_state *self = out->state;
    presto_batch chosen = *batch;
    PRESTO_TRY(presto__out_find_features(out, batch, err));
    if (self->capacity < out->count) {
        size_t bytes = out->capacity * sizeof *self->features;
        presto_batch_feature *features = realloc(self->features, bytes);
        if (features == NULL)
            return presto_fail_memory(err, bytes);
        self->features = features;
        self->capacity = out->capacity;
    }
    chosen.features = self->features;
    chosen.feature_count = 0;
    chosen.main_feature = SIZE_MAX;
    for (size_t i = 0; i < out->count; i++) {
        const presto_batch_feature *feature = out->columns[i].feature;
        if (feature == NULL)
            continue;
        if (batch->main_feature < batch->feature_count &&
            feature == &batch->features[batch->main_feature])
            chosen.main_feature = chosen.feature_count;
        self->features[chosen.feature_count++] = *feature;
    }
    return presto__ring_writer_put(self->ring, &chosen, err);
}

static presto_status end_ring(presto_out *out, presto_error *err) {
    return presto__ring_writer_end(((shm_state *)out->state)->ring, err);
}

static void fail_ring(presto_out *out, const presto_error *why) {
    presto__ring_writer_fail(((shm_state *)out->state)->ring, why);
}

static uint64_t bytes_of_ring(const presto_out *out) {
    return presto__ring_writer_bytes(((const shm_state *)out->state)->ring);
}

static void done_ring(presto_out *out) {
    shm_state *self = out->state;
    presto__ring_writer_free(self->ring);
    free(self->features);
}

const presto__out_type presto__out_shm = {
    .about = {.name = "shm",
              .help = "batches in shared memory for one reader, which connects to the Unix socket "
                      "SOCKET, or has the other end of stdout",
              .way = PRESTO_OUT_RING,
              .default_batch = DEFAULT_BATCH,
              .takes_features = true,
              .takes_raw_records = true},
    .state_bytes = sizeof(shm_state),
    .begin = begin_ring,
    .encode = encode_ring,
    .end = end_ring,
    .fail = fail_ring,
    .bytes = bytes_of_ring,
    .done = done_ring};
