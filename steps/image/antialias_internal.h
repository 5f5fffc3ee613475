/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear resizing of a window with antialias: each output pixel weighs all that it covers. */
#ifndef PRESTO_STEPS_ANTIALIAS_INTERNAL_H
#define PRESTO_STEPS_ANTIALIAS_INTERNAL_H

#include "../steps_internal.h"

/** Memory of one thread. Zero-initialise all but use_avx2; presto__antialias_done frees. */
typedef struct presto__antialias {
    bool use_avx2;
    presto_buffer memory;
} presto__antialias;

void presto__antialias_done(presto__antialias *antialias);

/** What is resized to what. */
typedef struct presto__antialias_job {
    const presto_part *in; /* uint8 or float32; contains the window */
    presto_window window;  /* not empty; what lies around it has no effect */
    int64_t height, width; /* of the output; at least 1 */
} presto__antialias_job;

/**
 * Resize a window into rows without gaps, of the input's dtype and channels.
 * Returns: PRESTO_OK; PRESTO_ERR_LIMIT (tables and rows would take over 1 GiB); PRESTO_ERR_MEMORY.
 */
presto_status presto__antialias_resize(presto__antialias *antialias,
                                       const presto__antialias_job *job, void *out,
                                       presto_error *err);

#endif
