/* SPDX-License-Identifier: Apache-2.0 */
/* What a path is, and names of representations: stream.c, for room convert. */
#ifndef PRESTO_LOADER_STREAM_INTERNAL_H
#define PRESTO_LOADER_STREAM_INTERNAL_H

#include <presto/stream.h>

/** Is there a dataset.json in this folder? */
presto_status presto__path_is_dataset(const char *path, bool *is_dataset_out, presto_error *err);
presto_status presto__find_representation(const presto_pipeline *pipeline, const char *name,
                                          size_t *representation_out, presto_error *err);

#endif
