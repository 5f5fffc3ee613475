/* SPDX-License-Identifier: Apache-2.0 */
/* --format arrow: an Arrow IPC stream, a record batch for each batch. */
#include "sink_parts.h"

enum { DEFAULT_BATCH = 64 };

static presto_status open_arrow(sink *self, const sink_options *options, presto_error *err) {
    return arrow_stream_new(&self->out, options->wishes, options->wish_count, &self->arrow, err);
}

static presto_status write_arrow(sink *self, const presto_batch *batch, presto_error *err) {
    PRESTO_TRY(sink_find_features(self, batch, err));
    return arrow_stream_write(self->arrow, batch, self->features, self->count, err);
}

/* The schema of a stream without samples. Nothing may declare a feature that is asked for, or its
 * dtype: then the schema has no columns. */
static presto_status declare_arrow(sink *self, presto_error *err) {
    for (size_t i = 0; i < self->wanted_count; i++)
        if (sink_find_feature(self->declared, self->wanted[i]) == NULL)
            return PRESTO_OK;
    PRESTO_TRY(sink_find_features(self, self->declared, err));
    for (size_t i = 0; i < self->count; i++)
        if (self->features[i]->tensor.spec.dtype == PRESTO_DTYPE_UNKNOWN)
            return PRESTO_OK;
    return arrow_stream_begin(self->arrow, self->features, self->count, err);
}

static presto_status end_arrow(sink *self, presto_error *err) {
    bool is_known = self->declared != NULL && self->declared->feature_count > 0;
    presto_status status = PRESTO_OK;
    if (self->batches == 0 && is_known)
        status = declare_arrow(self, err);
    return status == PRESTO_OK ? arrow_stream_end(self->arrow, err) : status;
}

const sink_type sink_arrow = {.name = "arrow",
                              .output = PRESTO_OUTPUT_BATCHES,
                              .default_batch = DEFAULT_BATCH,
                              .takes_features = true,
                              .takes_raw_records = true,
                              .takes_arrow_types = true,
                              .wants_schema = true,
                              .is_stream = true,
                              .open = open_arrow,
                              .write = write_arrow,
                              .end = end_arrow};
