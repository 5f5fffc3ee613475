/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset: a folder of shards with dataset.json, or foreign TFRecord files without one.
 */
#ifndef PRESTO_DATASET_H
#define PRESTO_DATASET_H

#include <presto/codec.h>
#include <presto/shard.h>
#include <presto/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRESTO_DATASET_FORMAT_VERSION 1
#define PRESTO_DATASET_FILE "dataset.json"
/** More features are refused when a dataset is opened. */
#define PRESTO_MAX_FEATURES 65536
#define PRESTO_PROGRESS_FILE ".progress.json" /* of a dataset that is not finished */

/** One shard as dataset.json has it. */
typedef struct presto_dataset_shard {
    char *file; /* relative to the folder */
    uint64_t records;
    uint64_t stored_bytes;
    uint64_t raw_bytes; /* sum of the serialized samples before the record codec */
    uint32_t crc32c;
    uint64_t reserved[2]; /* 0 */
} presto_dataset_shard;

/**
 * The content of dataset.json. Names are any bytes; how the file keeps those that are not UTF-8 is
 * described in presto/text.h.
 * Owner:   all pointers are this struct's, which is a dataset's.
 */
typedef struct presto_dataset_info {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    char *id; /* hex digest over the shards' crcs and counts: changes when the data does */
    char *pipeline_json; /* the pipeline's definition, one JSON object; NULL if unknown */
    char *stored;        /* the stored representation; NULL if unknown */
    presto_feature_spec *features;
    size_t feature_count;
    char *main_feature;    /* which of them the steps work on; NULL if unknown */
    char *codec;           /* canonical codec text, "none" if records are not compressed */
    char *dictionary_file; /* relative to the folder; NULL if none */
    presto_file_compression file_compression;
    presto_dataset_shard *shards;
    size_t shard_count;
    uint64_t seed;
    char **label_names; /* what the label's numbers stand for, in their order; NULL if unknown */
    size_t label_count;
    char *tool_version; /* NULL when writing: this library's */
    char *input;        /* 16 hex digits: digest of what the conversion read; NULL if unknown */
    /* A dataset whose records were stored again as they were, all and in order, has the stream of its
     * input. Then `source` of a state (presto_loader_save_state) is that of the input: with the
     * records counted, and without. has_stream false: the dataset's own. */
    bool has_stream;
    uint64_t stream_counted, stream_files;
} presto_dataset_info;

typedef struct presto_dataset presto_dataset;

/** A number of records, or of samples, that is not known yet. */
#define PRESTO_COUNT_UNKNOWN UINT64_MAX

/**
 * Open a dataset for reading: one folder with dataset.json, or any mix of TFRecord files and
 * folders of them (searched recursively; sorted; names that start with '_' or '.' , .index files
 * and *.json are passed over). With dataset.json nothing but it is read here; of foreign files the
 * shards are indexed (from their .index or by header hops) to know the counts, unless
 * options->count_later: then those without an index are counted while a loader reads them. A folder
 * that a conversion has not finished is PRESTO_ERR_BUSY; its shards may be named. A file that is
 * something else, such as a WAV file, is PRESTO_ERR_FOREIGN; in the place of a listed shard it is
 * damage, as presto_dataset_shard_at says.
 * Owner:   caller, presto_dataset_free.
 */
PRESTO_API presto_status presto_dataset_open(const char *const *paths, size_t path_count,
                                             const presto_shard_options *options,
                                             presto_dataset **dataset_out, presto_error *err);
PRESTO_API void presto_dataset_free(presto_dataset *dataset);

/**
 * The parsed dataset.json; for foreign files only `shards` (absolute or as-given paths) and
 * `codec` ("none") are set. Their `records` are PRESTO_COUNT_UNKNOWN where they were not counted
 * when the dataset was opened. Borrowed.
 */
PRESTO_API const presto_dataset_info *presto_dataset_get_info(const presto_dataset *dataset);
/** Was there a dataset.json? */
PRESTO_API bool presto_dataset_is_ours(const presto_dataset *dataset);
/** All records; PRESTO_COUNT_UNKNOWN as long as they are not counted. Any thread. */
PRESTO_API uint64_t presto_dataset_records(const presto_dataset *dataset);
/** Codec of the records with its dictionary loaded; lives as long as the dataset. */
PRESTO_API const presto_codec_spec *presto_dataset_codec(const presto_dataset *dataset);
PRESTO_API size_t presto_dataset_shard_count(const presto_dataset *dataset);
/** Path of shard i, as opened. Borrowed. */
PRESTO_API const char *presto_dataset_shard_path(const presto_dataset *dataset, size_t i);

/**
 * Shard i, opened and indexed at the first call and kept open (files beyond the process's
 * descriptor limit are closed, least recently used first). Borrowed.
 * Returns: PRESTO_ERR_CORRUPT if the shard does not hold what dataset.json says (count or size).
 * Threads: any.
 */
PRESTO_API presto_status presto_dataset_shard_at(presto_dataset *dataset, size_t i,
                                                 presto_shard **shard_out, presto_error *err);

/**
 * The next problem that did no harm, such as a damaged index file. Each is reported once. Cheap
 * while there is none.
 * Returns: false if there is none.
 * Threads: any.
 */
PRESTO_API bool presto_dataset_take_warning(presto_dataset *dataset, presto_error *warning_out);

/** Which shard holds record `number`, and its number within it. number < records, or has been
 * walked over. */
PRESTO_API size_t presto_dataset_locate(const presto_dataset *dataset, uint64_t number,
                                        uint64_t *record_out);

#ifdef __cplusplus
}
#endif

#endif
