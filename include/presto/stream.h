/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: from paths to what a loader needs. What the paths are (a dataset, TFRecord files of
 * others, raw files), which pipeline goes with them and which of its steps remain is decided here,
 * once, for programs and library users alike.
 */
#ifndef PRESTO_STREAM_H
#define PRESTO_STREAM_H

#include <presto/loader.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An opened input: pipeline, source and the plan of the steps that remain. */
typedef struct presto_stream {
    presto_dataset *dataset;   /* NULL for a raw source */
    presto_pipeline *pipeline; /* NULL: foreign records, delivered as they are */
    presto_source *source;
    presto_plan *plan;       /* NULL: no steps */
    presto_plan *cache_plan; /* with options.cache: the deterministic steps, for
                                presto_loader_options.cache_plan; `plan` are those behind them */
} presto_stream;

typedef struct presto_stream_options {
    const char *pipeline;                     /* name or path; NULL: from dataset.json, or none */
    presto_pipeline_options pipeline_options; /* how it is read; `set` applies to the one of
                                                 dataset.json, too, behind its split */
    const char *from; /* representation that the input holds; NULL: from dataset.json, or the raw
                         source if a pipeline is named */
    const char *to;   /* representation to stop at; NULL: the end of the pipeline */
    presto_verify verify;
    bool map;             /* read shards through mmap; see presto_shard_options */
    bool tolerate_damage; /* as presto_shard_options.tolerate, for loaders that skip: a file whose
                             lengths are damaged, or that was cut, is read as far as it is whole */
    bool cache; /* the loader will have a cache: split the steps before the first random one */
} presto_stream_options;

PRESTO_API void presto_stream_options_defaults(presto_stream_options *options);

/**
 * Decide what `paths` are and which steps remain:
 * a folder with dataset.json: the steps after its split (naming another pipeline is an error unless
 * `from` is given too); foreign TFRecord files or folders of them: no steps, or those of `pipeline`
 * after `from`; anything else with `pipeline`: its raw source, all steps. Fills the caller's
 * struct; presto_stream_close frees what it holds. `options` NULL: the defaults.
 */
PRESTO_API presto_status presto_stream_open(const char *const *paths, size_t path_count,
                                            const presto_stream_options *options,
                                            presto_stream *stream_out, presto_error *err);
/** Free what the struct holds, and empty it. */
PRESTO_API void presto_stream_close(presto_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
