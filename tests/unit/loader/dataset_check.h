/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset made in a folder of its own, and the options that tests of the loader start from. */
#ifndef DATASET_CHECK_H
#define DATASET_CHECK_H

#include "loader_check.h"

static char *dir;

static inline opened set_up(const made *how) {
    dir = presto_check_temp_dir();
    make_dataset(dir, how);
    return open_made(dir, false);
}

static inline void tear_down(opened *data) {
    close_made(data);
    presto_check_remove_tree(dir);
    free(dir);
}

static inline presto_loader_options defaults(unsigned threads, size_t batch) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = batch;
    return options;
}

static const unsigned thread_counts[] = {0, 1, 2, 5, 8};
#define THREAD_COUNTS (sizeof thread_counts / sizeof thread_counts[0])

static const made plain = {.samples = 1000, .shards = 3, .values = 50, .odd = UINT64_MAX};

#endif
