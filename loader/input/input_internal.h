/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room input, the only door: what a list of paths means. A dataset, TFRecords of other programs or
 * the files of a raw source; the pipeline that goes with them, the representation that they hold,
 * and the steps that remain. input.c opens them, stream.c plans the steps for a loader, stream_mix.c
 * makes one of several; step_notes.c looks for what the steps leave behind.
 * May see: base, storage, records, steps, rooms order, source, cache, packet and engine.
 * Threads: an input is opened by one thread.
 */
#ifndef PRESTO_LOADER_INPUT_INTERNAL_H
#define PRESTO_LOADER_INPUT_INTERNAL_H

#include <presto/stream.h>

/** What is given. Borrowed during the call. */
typedef struct presto__input_request {
    const char *const *paths;
    size_t path_count;
    const presto_pipeline *read; /* a pipeline that has been read, or */
    const char *pipeline;        /* its name or path; NULL: that of the dataset, or none */
    presto_pipeline_options reading;
    const char *from;           /* representation that the input holds; NULL: as the input says */
    const char *to;             /* representation where steps stop; NULL: the last one */
    bool raw_records;           /* records as they are stored; no pipeline */
    bool as_stored;             /* samples as they are stored, and no pipeline either */
    presto_shard_options shard; /* how files with records are opened */
} presto__input_request;

/** Zero-initialise; presto__input_close frees what it holds. */
typedef struct presto__input {
    presto_dataset *dataset;   /* NULL: none; else it outlives the source */
    presto_pipeline *pipeline; /* an owner's; NULL: records as they are */
    presto_source *source;
    const char *from;        /* the representation that the source gives; NULL: no pipeline */
    presto_tensor_spec spec; /* of it */
} presto__input;

/**
 * Open what the paths are. Returns: PRESTO_OK; PRESTO_ERR_NOT_FOUND: no input, no such pipeline or
 * representation; PRESTO_ERR_ARGUMENT: they do not go together; what files fail with.
 */
presto_status presto__input_open(const presto__input_request *request, presto__input *input,
                                 presto_error *err);
void presto__input_close(presto__input *input);

/** Steps [first, last) of a pipeline. */
typedef struct presto__step_range {
    size_t first, last;
} presto__step_range;

/** The steps after the representation `from` up to `to`, NULL: to the end. */
presto_status presto__input_steps(const presto_pipeline *pipeline, const char *from, const char *to,
                                  presto__step_range *steps_out, presto_error *err);

/** Add notes on features that the steps may be meant to work on, and do not, to those of the source.
 * The plans run one after the other; NULL: there is none. */
presto_status presto__note_steps(presto_source *source, const presto_plan *before,
                                 const presto_plan *after, presto_error *err);

/** Plan the steps of an open stream again, for inputs of `spec`. */
presto_status presto__stream_plan_again(presto_stream *stream, const presto_stream_options *options,
                                        const presto_tensor_spec *spec, presto_error *err);

#endif
