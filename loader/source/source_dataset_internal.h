/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a dataset's records, and how one thread reads them: the hooks of
 * presto__source_ops. */
#ifndef PRESTO_SOURCE_DATASET_INTERNAL_H
#define PRESTO_SOURCE_DATASET_INTERNAL_H

#include "source_internal.h"

typedef struct presto__dataset_source {
    presto_source base;
    presto_dataset *dataset; /* borrowed */
    presto_codec_spec plain; /* "none": the codec of raw records */
} presto__dataset_source;

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
                                     presto_example_values *values_out, presto_error *err);
presto_status presto__dataset_record(presto__reader *reader, size_t i, presto_arena *arena,
                                     presto__stored_record *record_out, presto_error *err);
size_t presto__dataset_run(presto__reader *reader, size_t i, size_t count,
                           const presto_record **records_out);
void presto__dataset_place(presto__reader *reader, size_t i, presto_error *err);
void presto__dataset_locate(const presto_source *source, uint64_t number, presto_error *err);
bool presto__dataset_owned(const presto__reader *reader, size_t i);

#endif
