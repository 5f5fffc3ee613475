/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The features of a stream as they are known before it has a sample: for a stream without any.
 */
#ifndef PRESTO_TOOLS_DECLARED_H
#define PRESTO_TOOLS_DECLARED_H

#include <presto/stream.h>

/**
 * Fill the caller's `batch_out` with the features that the input declares, as a loader with
 * `options` would deliver them: main_feature and features, each as if its tensor had one row, and
 * without data. Rows whose length is not declared are ragged. A batch without features: nothing is
 * known. Names are borrowed from the stream; declared_done frees the rest.
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY.
 */
presto_status declared_features(const presto_stream *stream, const presto_loader_options *options,
                                presto_batch *batch_out, presto_error *err);
void declared_done(presto_batch *batch);

#endif
