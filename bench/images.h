/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of bench_images share: what a run works on, and the loop written by hand, to which
 * the loader is compared.
 */
#ifndef PRESTO_BENCH_IMAGES_H
#define PRESTO_BENCH_IMAGES_H

#include <stdatomic.h>

#include <presto/stream.h>

#include "harness.h"
#include "steps/image/resize_internal.h"

enum { IMAGES_MAX_THREADS = 16, IMAGES_BATCH = 32 };

typedef struct images_settings {
    uint64_t photos;
    unsigned threads;
    unsigned rounds;
    const char *work;
    const char *source;
    const char *stored; /* NULL: all */
} images_settings;

/** Scratch of one thread, grown once. */
typedef struct images_scratch {
    presto_buffer payload, decoded, resized, centered, crop, batch;
    size_t row; /* of the batch */
    presto__resizer resizer;
    uint32_t random;
} images_scratch;

/** What is read: a file, or the payload of a record with the tensor's place in it. */
typedef struct images_item {
    char *path; /* file, or shard */
    int fd;     /* of the shard; -1: open the file */
    uint64_t offset;
    size_t bytes;    /* of the tensor or of the JPEG */
    size_t before;   /* bytes of the record's payload before it ... */
    size_t after;    /* ... and behind it */
    int64_t dims[2]; /* of a stored image */
} images_item;

typedef enum images_level {
    IMAGES_FILES,
    IMAGES_CONCATENATED,
    IMAGES_DECODED,
    IMAGES_RESIZED,
    IMAGES_CENTERED
} images_level;

/** One way to go over the photos, and what it needs. */
typedef struct images_work {
    const images_settings *settings;
    images_level level;
    bool fused;
    bool same_job; /* with CRC, into batches */
    presto_output_kind output;
    unsigned threads;
    images_item *items;
    size_t item_count;
    const char *dir; /* dataset, or the photos */
    unsigned passes; /* over the photos in one run, so that it takes longer than its start */
    atomic_size_t next;
    images_scratch scratch[IMAGES_MAX_THREADS];
} images_work;

/**
 * All samples once a pass, on w->threads threads, by a loop written by hand: a bench_case's run().
 * `user` is an images_work, whose items are listed.
 */
double images_run_bare(void *user);

#endif
