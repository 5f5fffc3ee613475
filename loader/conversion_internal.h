/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of one conversion share: convert.c runs it, convert_folder.c takes the folder,
 * convert_dictionary.c trains, convert_shards.c writes in order, convert_lanes.c several shards at
 * once, convert_info.c describes. */
#ifndef PRESTO_CONVERSION_INTERNAL_H
#define PRESTO_CONVERSION_INTERNAL_H

#include "convert_internal.h"

#define PRESTO__DICTIONARY_FILE "dictionary"
#define PRESTO__SHARD_NAME_BYTES 96
#define PRESTO__INPUT_TEXT_BYTES 17

typedef struct presto__conversion {
    const presto_convert_options *options;
    const presto_pipeline *pipeline; /* NULL: records are stored as they are */
    const char *dir;
    bool made_dir;
    bool took_dir; /* nothing in it is anybody else's */
    /* input */
    presto_dataset *dataset; /* NULL: raw */
    presto_source *source;
    presto_plan *plan;                         /* NULL: no steps */
    char input_text[PRESTO__INPUT_TEXT_BYTES]; /* digest of the source */
    /* what the description says; NULL: nothing */
    const char *pipeline_json;
    const char *split;
    uint64_t seed;
    /* output */
    presto_codec_spec codec;
    char codec_text[PRESTO_CODEC_TEXT_BYTES];
    presto_buffer dictionary;
    size_t shard_count; /* with shard_bytes 0 until all are whole */
    uint64_t sample_count;
    presto__progress progress;
    bool has_progress_file;
    bool is_behind;   /* the progress file lacks something of `progress` */
    bool is_finished; /* an earlier run of the same job wrote all of it */
    presto_loader *loader;
    presto_shard_writer *writer; /* of shard progress.shard_count; NULL: not open */
    uint64_t shard_records, shard_frame_bytes, shard_raw_bytes; /* appended to it */
    uint64_t skipped_before;                                    /* by the runs before this one */
    /* figures */
    uint64_t started_ns, cpu_started_ns, told_ns, noted_ns;
    presto_loader_stats stats;
} presto__conversion;

/** Are shards to end by their size, so that their number is known only at the end? */
bool presto__conversion_by_size(const presto__conversion *job);
/** One past the last sample of a shard, by number. */
uint64_t presto__conversion_end(const presto__conversion *job, size_t shard);
/** What a shard is called in the dataset; job->shard_count is known. */
void presto__conversion_shard_name(const presto__conversion *job, size_t shard,
                                   char name_out[PRESTO__SHARD_NAME_BYTES]);
/** What it is called until then: by size a hidden name, which lacks the number of shards. */
void presto__conversion_working_name(const presto__conversion *job, size_t shard,
                                     char name_out[PRESTO__SHARD_NAME_BYTES]);

/** Make the folder, or take over what an interrupted run of the same job left in it. */
presto_status presto__conversion_open_folder(presto__conversion *job, presto_error *err);
/** `progress` has changed: write the progress file, now or, if there are many shards, some time. */
presto_status presto__conversion_note(presto__conversion *job, presto_error *err);
/** Write the progress file if it has fallen behind. */
presto_status presto__conversion_catch_up(presto__conversion *job, presto_error *err);
/** After a failure: if nothing whole was written, leave no trace; otherwise note all that was. */
void presto__conversion_leave_folder(presto__conversion *job);
/** Remove a whole shard that is not to stay, as far as that is possible. */
void presto__conversion_remove_shard(const presto__conversion *job, size_t shard);
/** The dictionary of the codec, if it wants one: read from the folder, else trained. */
presto_status presto__conversion_make_dictionary(presto__conversion *job, presto_error *err);
/** All shards that are not whole yet; at the end all of them have the names of the dataset. */
presto_status presto__conversion_write_shards(presto__conversion *job, presto_error *err);
/** The writer of a shard, under the name that shards have for now. */
presto_status presto__conversion_open_writer(const presto__conversion *job, size_t shard,
                                             presto_shard_writer **writer_out, presto_error *err);
/** A loader of all samples from those of the whole shards on. */
void presto__conversion_loader_options(const presto__conversion *job,
                                       presto_loader_options *loader_out);
/** Call on_progress, if it is time to; PRESTO_ERR_STOPPED if it says so. */
presto_status presto__conversion_tell(presto__conversion *job, uint64_t done, presto_error *err);

/** How many shards are worth making at once; 1: write them in the order of the samples. */
size_t presto__conversion_lanes(const presto__conversion *job);
/** All shards that are not whole yet, `count` at a time. */
presto_status presto__conversion_write_lanes(presto__conversion *job, size_t count,
                                             presto_error *err);
/** dataset.json last of all; then the progress file, which is not needed any more. */
presto_status presto__conversion_conclude(presto__conversion *job, presto_error *err);

#endif
