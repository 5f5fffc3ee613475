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

#endif
