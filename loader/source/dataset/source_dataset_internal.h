/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room dataset: the source of a dataset's records, or of TFRecords of other programs, and how one
 * thread reads them: the hooks of presto__source_ops.
 * May see: base, storage, records, room core. No lock of its own.
 */
#ifndef PRESTO_SOURCE_DATASET_INTERNAL_H
#define PRESTO_SOURCE_DATASET_INTERNAL_H

#include "../../../records/records_internal.h"
#include "../core/source_internal.h"

typedef struct presto__dataset_source {
    presto_source base;
    presto_dataset *dataset; /* kept alive by whoever opened the source, until it is freed */
    presto_codec_spec plain; /* "none": the codec of raw records */
} presto__dataset_source;

/* ---- one thread's reader ---- */

/* Where one sample of the block is. */
typedef struct presto__record_place {
    uint64_t number; /* in the dataset */
    uint64_t record; /* in the shard */
    size_t shard;
    size_t block;                   /* in blocks->items; SIZE_MAX: could not be read */
    size_t index;                   /* in that block */
    const presto__stretch *stretch; /* it was walked over; NULL: no */
} presto__record_place;

/* What a step of a walk found, and where it was read to. */
typedef struct presto__walked_stretch {
    presto__stretch found;
    size_t block; /* SIZE_MAX: it was not read */
} presto__walked_stretch;

typedef struct presto__dataset_reader {
    presto__reader base;
    presto_dataset *dataset;
    presto_codec *codec; /* NULL: records are not compressed */
    presto__reader_options options;
    const presto__blocks *blocks;
    presto__record_place *places;
    presto__record_place **sorted; /* by number */
    size_t capacity;
    size_t count;
    presto_buffer told;  /* what will_read puts in order */
    presto_block single; /* a record read alone, until the next one is */
    presto__example_layout *layout;
    /* The record that `values` was asked for: mostly `sample` is asked for it, too. */
    size_t known; /* its position plus one; 0: none */
    presto_span known_raw;
    /* What the last walk found: the next fetch is for it. */
    presto__walked_stretch *walked;
    size_t walked_count, walked_capacity;
} presto__dataset_reader;

static inline bool presto__dataset_is_fatal(presto_status status) {
    return status == PRESTO_ERR_MEMORY;
}

presto_status presto__dataset_reader_new(presto_source *source,
                                         const presto__reader_options *options,
                                         presto__reader **reader_out, presto_error *err);
void presto__dataset_reader_free(presto__reader *reader);
presto_status presto__dataset_fetch(presto__reader *reader, const uint64_t *numbers, size_t count,
                                    presto__blocks *blocks, presto_error *err);
void presto__dataset_will_read(presto__reader *reader, const uint64_t *numbers, size_t count);
size_t presto__dataset_will_open_for(presto__reader *reader, const uint64_t *numbers, size_t count);
presto_status presto__dataset_sample(presto__reader *reader, size_t i, presto_arena *arena,
                                     presto_sample *sample_out, presto_error *err);
presto_status presto__dataset_values(presto__reader *reader, size_t i, presto_arena *arena,
                                     presto__example_values *values_out, presto_error *err);
presto_status presto__dataset_record(presto__reader *reader, size_t i, presto_arena *arena,
                                     presto__stored_record *record_out, presto_error *err);
presto_status presto__dataset_walk(presto__reader *reader, const presto__walk_wish *wish,
                                   presto__blocks *blocks, size_t *found_out, presto_error *err);
size_t presto__dataset_run(presto__reader *reader, size_t i, size_t count,
                           const presto_record **records_out);
void presto__dataset_place(presto__reader *reader, size_t i, presto_error *err);
void presto__dataset_locate(const presto_source *source, uint64_t number, presto_error *err);
bool presto__dataset_owned(const presto__reader *reader, size_t i);

/* ---- records of other programs: source_dataset_look.c ---- */

/** Declare what the first records have in common. */
presto_status presto__dataset_look(presto_source *base, presto_error *err);

/** As presto__source_open_dataset, without a look at records of other programs. */
presto_status presto__dataset_open_source(presto_dataset *dataset, presto_source **source_out,
                                          presto_error *err);

/* ---- source_tfrecord.c: TFRecords of other programs ---- */

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
