/* SPDX-License-Identifier: Apache-2.0 */
/* What codecs are tried on: shared by records.c, sizes.c and codecs.c of room predict. */
#ifndef PRESTO_CODECS_INTERNAL_H
#define PRESTO_CODECS_INTERNAL_H

#include "predict_internal.h"

/** Some records of a split, evenly spread, without their frames; and parts of more of them. All
 * arrays are owned. */
typedef struct presto__records {
    presto_buffer bytes;
    size_t *sizes;
    size_t *starts;
    uint64_t *numbers; /* of the record in the dataset */
    size_t count;
    size_t step; /* from one record to the next to try: so any part of them is from all over */
    /* Of every look_stride-th record of the dataset, in order, and so of all records above: parts
     * from its start to its end, one after the other. look_count 0: all records are above, or so
     * many that they are like the others. */
    presto_buffer parts;
    size_t *part_ends; /* of all parts of a record, in `parts` */
    double *weights;   /* bytes of the record / those of its parts */
    size_t look_count;
    uint64_t look_stride;
} presto__records;

/**
 * records.c: read records of the dataset in `dir`, which stores a split without a codec.
 *
 * mean_bytes: of a record.
 * Owner: caller, presto__records_done, after a failure too.
 */
presto_status presto__records_read(const char *dir, double mean_bytes, presto__records *all_out,
                                   presto_error *err);
void presto__records_done(presto__records *all);

/** What codecs made of records; each array has one place for each codec of the model and record. */
typedef struct presto__sizes {
    double *tried;     /* bytes of whole records; 0: this one was not tried */
    double *looks;     /* what a record takes, from its parts */
    bool *has_looks;   /* of a codec: it had the time for all parts */
    size_t look_count; /* of a codec */
} presto__sizes;

/** sizes.c: set stored_bytes of the split's codecs: what all records take, from those that it was
 * tried on. PRESTO_ERR_MEMORY. */
presto_status presto__set_sizes(const presto__model *model, presto__model_split *split,
                                const presto__records *all, const presto__sizes *sizes,
                                presto_error *err);

#endif
