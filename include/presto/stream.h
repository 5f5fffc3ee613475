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

/**
 * An opened input: pipeline, source and the plans of the steps that remain. The caller's struct,
 * which owns what it points to until presto_stream_close.
 */
typedef struct presto_stream {
    size_t struct_bytes;       /* as the program knows it; set by the function that fills it */
    presto_dataset *dataset;   /* NULL for a raw source */
    presto_pipeline *pipeline; /* NULL: foreign records, delivered as they are */
    presto_source *source;
    presto_plan *plan;       /* NULL: no steps */
    presto_plan *cache_plan; /* for a loader with a cache: the deterministic steps, before it;
                                `plan` has those after them. Else NULL */
} presto_stream;

typedef struct presto_stream_options {
    size_t struct_bytes; /* set by presto_stream_options_defaults */
    /**
     * The loader that the stream is for. If it may leave samples out, files whose lengths are
     * damaged, or that were cut, are read as far as they are whole
     * (presto_shard_options.tolerate); if it has a cache, the steps are split before the first
     * random one. Borrowed during the call. NULL: the defaults
     */
    const presto_loader_options *loader;
    const char *pipeline; /* name or path; NULL: from dataset.json, or none */
    /* How the pipeline is read. `set` applies to that of dataset.json, too: to the steps after
     * what it stores. NULL: the defaults */
    const presto_pipeline_options *pipeline_options;
    const char *from; /* representation that the input holds; NULL: from dataset.json, or the raw
                         source if a pipeline is named */
    const char *to;   /* representation to stop at; NULL: the end of the pipeline */
    presto_checks verify;
    bool map;         /* read shards through mmap; see presto_shard_options */
    bool count_later; /* files of others without an index are not counted when they are opened, if
                         the loader above is in order or shuffles through a buffer, with one rank
                         and no cache on disk: its first samples come at once, but their number is
                         PRESTO_COUNT_UNKNOWN until the first pass has found them all. Default
                         false */
    bool raw_records; /* TFRecords, of any content, are delivered as they are stored, in one feature
                         PRESTO_RECORD_FEATURE. Without pipeline, from and to. Default false */
    /* Where indexes of files that have none are kept; see presto_shard_options. `index_dir` is
     * borrowed during the call */
    presto_keep_index keep_index;
    const char *index_dir;
    presto_partition partition; /* only these samples. Default: all */
    /* Instead of reading `pipeline`: one that was read already, with the representation that the
     * input holds in its options (`from`). The stream is another owner. NULL: none */
    const presto_pipeline *read;
    bool raw_tensors; /* serialized tensors are delivered as the bytes that they are. Else those of
                         other programs are decoded where the first records agree that a feature
                         holds nothing else. Default false */
} presto_stream_options;

PRESTO_API void presto_stream_options_init(presto_stream_options *options, size_t struct_bytes);
static inline void presto_stream_options_defaults(presto_stream_options *options) {
    presto_stream_options_init(options, sizeof *options);
}

/**
 * Decide what `paths` are and which steps remain:
 * a folder with dataset.json: the steps after what it stores (naming another pipeline is an error unless
 * `from` is given too); foreign TFRecord files or folders of them: no steps, or those of `pipeline`
 * after `from`; anything else with `pipeline`: its raw source, all steps. Fills the caller's
 * struct; presto_stream_close frees what it holds. `options` NULL: the defaults.
 */
PRESTO_API presto_status presto_stream_open_sized(const char *const *paths, size_t path_count,
                                                  const presto_stream_options *options,
                                                  presto_stream *stream_out, presto_error *err);
static inline presto_status presto_stream_open(const char *const *paths, size_t path_count,
                                               const presto_stream_options *options,
                                               presto_stream *stream_out, presto_error *err) {
    stream_out->struct_bytes = sizeof *stream_out;
    return presto_stream_open_sized(paths, path_count, options, stream_out, err);
}
/** Free what the struct holds, and empty it. */
PRESTO_API void presto_stream_close_sized(presto_stream *stream);
static inline void presto_stream_close(presto_stream *stream) {
    if (stream != NULL)
        stream->struct_bytes = sizeof *stream;
    presto_stream_close_sized(stream);
}

/**
 * Open a loader over the stream, which is borrowed and must outlive it, with the options that the
 * stream was opened for.
 * Returns: PRESTO_ERR_ARGUMENT (options that contradict each other; the message says which),
 *          PRESTO_ERR_MEMORY, PRESTO_ERR_IO (a thread could not be started; cache.dir cannot be
 *          made, read or written); with a state also what presto_loader_load_state fails with (that
 *          nothing remains is no failure: the stream ends at once).
 */
PRESTO_API presto_status presto_loader_open_stream(const presto_stream *stream,
                                                   const presto_loader_options *options,
                                                   presto_loader **loader_out, presto_error *err);

/**
 * From paths to a loader in one call: as presto_stream_open, then presto_loader_open_stream with
 * options->loader. The loader owns the stream; batches may outlive both. `options` NULL: the
 * defaults.
 */
PRESTO_API presto_status presto_loader_open_paths(const char *const *paths, size_t path_count,
                                                  const presto_stream_options *options,
                                                  presto_loader **loader_out, presto_error *err);

/** What the steps make of the main feature: a row of it. NULL: no steps remain. Owned by the
 * stream. */
PRESTO_API const presto_tensor_spec *presto_stream_output(const presto_stream *stream);

/**
 * What the batches of a loader with `options` will look like, before there is one: the features that
 * the input declares, each as if its tensor had one row, without data. Rows whose length is not
 * declared are ragged, padded ones have the length that they are padded to. No features: nothing is
 * known. `options` NULL: the defaults.
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY; as presto_loader_open_stream about the options.
 * Owner:   caller, presto_loader_schema_free (no other function takes it). Names are the stream's.
 */
PRESTO_API presto_status presto_loader_schema(const presto_stream *stream,
                                              const presto_loader_options *options,
                                              presto_batch **schema_out, presto_error *err);
PRESTO_API void presto_loader_schema_free(presto_batch *schema);

#ifdef __cplusplus
}
#endif

#endif
