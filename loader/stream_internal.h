/* SPDX-License-Identifier: Apache-2.0 */
/* What a path is, and names of representations: stream.c, for room convert and for mixes. */
#ifndef PRESTO_LOADER_STREAM_INTERNAL_H
#define PRESTO_LOADER_STREAM_INTERNAL_H

#include <presto/stream.h>

/** Is there a dataset.json in this folder? */
presto_status presto__path_is_dataset(const char *path, bool *is_dataset_out, presto_error *err);
presto_status presto__find_representation(const presto_pipeline *pipeline, const char *name,
                                          size_t *representation_out, presto_error *err);
/** Plan the steps of an open stream again, for inputs of `spec`. */
presto_status presto__stream_plan_again(presto_stream *stream, const presto_stream_options *options,
                                        const presto_tensor_spec *spec, presto_error *err);

#endif
