/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coefficients of a JPEG that comes in several scans: libjpeg keeps those of all blocks until
 * the last scan. They get memory straight from the system, because malloc would keep tens of
 * megabytes of it for each thread once it is freed.
 */
#ifndef PRESTO_STEPS_JPEG_COEFFICIENTS_INTERNAL_H
#define PRESTO_STEPS_JPEG_COEFFICIENTS_INTERNAL_H

#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

/* Of one image. The struct that cinfo->client_data points to begins with it. */
typedef struct presto__coefficients {
    size_t count; /* of components */
    struct {
        void *blocks;
        size_t mapped_bytes; /* 0: from calloc */
    } parts[MAX_COMPONENTS];
} presto__coefficients;

/** Call it once cinfo is created and its client_data set. */
void presto__coefficients_hook(j_decompress_ptr cinfo);

/** Once the header is read: what the image will take; 0 if it has a single scan. */
size_t presto__coefficients_bytes(j_decompress_ptr cinfo);

/** Once cinfo is destroyed. It may be called again, and without any image. */
void presto__coefficients_free(presto__coefficients *coefficients);

#endif
