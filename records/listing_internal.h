/* SPDX-License-Identifier: Apache-2.0 */
/* The TFRecord files that a user's paths mean. */
#ifndef PRESTO_LISTING_INTERNAL_H
#define PRESTO_LISTING_INTERNAL_H

#include <presto/dataset.h>

/** Paths, in order. Zero-initialise. */
typedef struct presto__listing {
    char **paths;
    size_t count;
    size_t capacity;
} presto__listing;

/**
 * Add the files among `paths`, and for each folder the TFRecord files below it, sorted. No folder
 * below it is entered twice (base/walk_internal.h).
 * Returns: PRESTO_ERR_NOT_FOUND (no such path, no TFRecord file in it); PRESTO_ERR_BUSY (a folder
 * in it is an unfinished dataset of ours); PRESTO_ERR_ARGUMENT (one is a dataset with a
 * dataset.json of its own); PRESTO_ERR_IO; PRESTO_ERR_MEMORY.
 */
presto_status presto__listing_of(const char *const *paths, size_t path_count,
                                 presto__listing *listing, presto_error *err);
void presto__listing_done(presto__listing *listing);

/** As presto_dataset_open, but PRESTO_END if the paths are no dataset of ours. No shard is opened.
 */
presto_status presto__dataset_open_ours(const char *const *paths, size_t path_count,
                                        presto_dataset **dataset_out, presto_error *err);

#endif
