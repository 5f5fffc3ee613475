/* SPDX-License-Identifier: Apache-2.0 */
/* The features of samples, without their values. Part of room packet's header. */
#ifndef PRESTO_LOADER_SCHEMA_INTERNAL_H
#define PRESTO_LOADER_SCHEMA_INTERNAL_H

#include <presto/dataset.h>

/** Name, encoding and spec of one row's features, sorted by name. Names are owned. Zero-initialise.
 */
typedef struct presto__schema {
    presto_feature_spec *features;
    size_t count;
    size_t capacity;
} presto__schema;

void presto__schema_done(presto__schema *schema);
/** Widen `schema` so that `sample` fits: dims that differ become -1. */
presto_status presto__schema_merge_sample(presto__schema *schema, const presto_sample *sample,
                                          presto_error *err);
presto_status presto__schema_merge(presto__schema *schema, const presto__schema *other,
                                   presto_error *err);
/** *at_out: the place of the name, or where it belongs. */
bool presto__schema_find(const presto__schema *schema, presto_span name, size_t *at_out);
bool presto__schema_equal(const presto__schema *a, const presto__schema *b);

#endif
