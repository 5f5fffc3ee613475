/* SPDX-License-Identifier: Apache-2.0 */
/* The raw source `tfrecord`: the records of a dataset, as a pipeline's source options say. */
#ifndef PRESTO_SOURCE_TFRECORD_INTERNAL_H
#define PRESTO_SOURCE_TFRECORD_INTERNAL_H

#include "source_dataset_internal.h"

typedef struct presto__tfrecord_source {
    presto__dataset_source records; /* its hooks take this source for their own */
    presto__source_ops ops;         /* those hooks, and what is done after them */
    const presto__source_ops *inner;
    presto_dataset *owned;   /* NULL: the dataset is the caller's */
    presto_codec_spec codec; /* of records of other programs */
    char *label;             /* the stored name of the feature `label`; NULL: as it is */
    presto__classes classes; /* source.classes; those of the feature `label` */
    bool has_names;          /* labels are numbers of classes: dataset.json names them */
    bool is_chosen;          /* other features than the declared ones are left out */
} presto__tfrecord_source;

/* ---- what the first records hold ---- */

#define PRESTO__NO_LENGTH INT64_MIN

/** One feature, over the records that were looked at. */
typedef struct presto__seen_feature {
    char *name;
    presto_encoding encoding; /* of the first record that has values of it */
    presto_dtype dtype;       /* of its values; of a tensor, its own */
    presto_tensor_spec spec;  /* of a tensor: what all have in common, -1 where they differ */
    int64_t length;           /* of its values, -1 where they differ; PRESTO__NO_LENGTH: none yet */
    bool is_tensor;           /* one value that is a serialized TensorProto, each time */
    bool is_single;           /* one value, each time */
    bool holds_tensors;       /* each of its values is a serialized TensorProto, of texts perhaps */
} presto__seen_feature;

/** Zero-initialise. */
typedef struct presto__seen {
    presto__seen_feature *features; /* in the order of their appearance */
    size_t *sorted;                 /* their numbers, by name */
    size_t count;
    size_t capacity;
    size_t records;      /* that were looked at and are whole */
    size_t sequences;    /* of them, with feature lists */
    presto_error damage; /* of the first that is not; status 0: none */
} presto__seen;

/**
 * Look at the first records: at most 64, and none more after 4 MiB. Damaged ones are passed over.
 * `ops`: the hooks of a dataset's source, which `source` is.
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY, PRESTO_ERR_IO.
 */
presto_status presto__seen_look(presto_source *source, const presto__source_ops *ops,
                                presto__seen *seen, presto_error *err);
void presto__seen_done(presto__seen *seen);
/** NULL: no record has it. */
const presto__seen_feature *presto__seen_find(const presto__seen *seen, const char *name);
/** Are its bytes serialized tensors, of one dtype, in each record? */
static inline bool presto__seen_is_tensor(const presto__seen_feature *feature) {
    return feature->encoding == PRESTO_ENCODE_BYTES && feature->is_tensor && feature->is_single;
}
/**
 * What is known of a feature that is no serialized tensor. A list has an unknown length in
 * SequenceExamples, and where it differs.
 */
presto_status presto__seen_describe(const presto__seen *seen, const presto__seen_feature *feature,
                                    presto_encoding *encoding_out, presto_tensor_spec *spec_out,
                                    presto_error *err);
/** "a, b, c", shortened to fit; returns `text_out`. */
const char *presto__seen_list(const presto__seen *seen, char *text_out, size_t bytes);

/* ---- the source ---- */

/** Decide which features the samples have, and declare them; `pipeline` is of type tfrecord. */
presto_status presto__tfrecord_settle(presto__tfrecord_source *source,
                                      const presto_pipeline *pipeline, presto_error *err);

#endif
