/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room convert: source -> loader -> shard writers: one conversion, its folder, its progress.
 * May see: base, storage, records, steps, stream_internal.h, the header of room engine, room source.
 * convert.c runs a conversion; convert_folder.c owns the folder; convert_shards.c and
 * convert_loop.c write the shards through convert_writers.c; convert_info.c writes dataset.json.
 * share_internal.h: datasets that many runs write together.
 * Lock: the writers' own.
 */
#ifndef PRESTO_LOADER_CONVERT_INTERNAL_H
#define PRESTO_LOADER_CONVERT_INTERNAL_H

#include <presto/convert.h>
#include <presto/dataset.h>
#include <presto/file.h>
#include <presto/stream.h>

#include "../../storage/outlet_internal.h"
#include "../engine/engine_internal.h"
#include "../input/input_internal.h"

/* ---- progress_file.c: how far a conversion has come, and the file that says so ---- */

/**
 * Where the next row begins, if a step regroups: at a token of a sample, which is a document.
 * Before it: documents that came, and their tokens. Samples that did not come were left out.
 */
typedef struct presto__regroup_place {
    uint64_t sample, token; /* the sample's position */
    uint64_t documents, tokens;
} presto__regroup_place;

/** A shard that is whole. */
typedef struct presto__whole_shard {
    size_t number;                  /* in the dataset, from 0 */
    uint64_t first, end;            /* positions of its samples: [first, end); some may be left
                                     * out. If the source is a part of another, they count in it */
    uint64_t skipped;               /* of those left out behind the shard before it, up to `end`
                                     * or `next`: because of errors. Steps dropped the others */
    presto_dataset_shard described; /* `file` is its name on the disk */
    bool is_regrouped;              /* its records begin in its samples, and `next` is set */
    presto__regroup_place next;
} presto__whole_shard;

/** How far a conversion has come. Zero-initialise. */
typedef struct presto__progress_file {
    char *job;                   /* a JSON object: what must be equal to resume */
    presto__whole_shard *shards; /* by number; there may be gaps */
    size_t shard_count;
    presto__schema schema; /* of the samples so far */
} presto__progress_file;

void presto__progress_file_done(presto__progress_file *progress);
/** Add a whole shard that is not there yet; `file` is copied, shard->described.file ignored. */
presto_status presto__progress_file_add(presto__progress_file *progress, const char *file,
                                        const presto__whole_shard *shard, presto_error *err);
/** Forget all but the first `count` of the list. */
void presto__progress_file_keep(presto__progress_file *progress, size_t count);
/** One past the last sample of the last shard. */
uint64_t presto__progress_file_next(const presto__progress_file *progress);
/** Samples of all the shards' ranges. */
uint64_t presto__progress_file_samples(const presto__progress_file *progress);
/** Samples of the shards' ranges that are not in them: those left out. */
uint64_t presto__progress_file_left_out(const presto__progress_file *progress);
/** Of these, those left out because of errors. */
uint64_t presto__progress_file_skipped(const presto__progress_file *progress);
presto_status presto__progress_file_write(const char *dir, const presto__progress_file *progress,
                                          bool sync, presto_error *err);
/**
 * Is it time to write the file? `since_ns` is the time since the last write. Each write takes time
 * for every shard in the list, so a long list is written less often.
 */
bool presto__progress_file_is_due(const presto__progress_file *progress, uint64_t since_ns);
struct json_t;
/** The file's text, malloc'd; with its owner, which is taken, unless it is NULL. NULL: no memory. */
char *presto__progress_file_text(const presto__progress_file *progress, struct json_t *owner);
/** Into a zeroed `progress`, which the caller frees, also on failure. */
presto_status presto__progress_file_parse(presto_span text, presto__progress_file *progress,
                                          presto_error *err);
/** PRESTO_ERR_NOT_FOUND if there is none. */
presto_status presto__progress_file_read(const char *dir, presto__progress_file *progress_out,
                                         presto_error *err);
/** PRESTO_ERR_ARGUMENT naming the first entry of `job` that differs. */
presto_status presto__progress_file_compare(const presto__progress_file *progress, const char *job,
                                            presto_error *err);

/** PRESTO_ERR_CORRUPT unless the shards' samples are among so many, and the shards say where among
 * them the next row begins if and only if a step regroups. */
presto_status presto__progress_file_check_places(const presto__progress_file *progress,
                                                 bool regroups, uint64_t samples,
                                                 presto_error *err);

/* ---- convert_lock.c: who owns a folder of a bucket ---- */

/** Is the process that owns a folder alive? */
typedef enum presto__owner_state {
    PRESTO__OWNER_UNKNOWN = 0, /* it is, or was, one of another machine */
    PRESTO__OWNER_ALIVE = 1,
    PRESTO__OWNER_DEAD = 2, /* it was one of this machine */
} presto__owner_state;

/** The progress file of a bucket, which is its lock. Any thread, but for making and freeing it. */
typedef struct presto__bucket_lock presto__bucket_lock;

/**
 * Begin in a folder where nothing is: write the progress file.
 * Owner:   the caller has *lock_out until presto__bucket_lock_free, which does not remove the file.
 * Returns: PRESTO_ERR_BUSY: another process was first; PRESTO_ERR_UNSUPPORTED: the server does not
 *          know the conditions that make it a lock; PRESTO_ERR_IO, _MEMORY.
 */
presto_status presto__bucket_lock_make(const char *folder, const presto__progress_file *progress,
                                       presto__bucket_lock **lock_out, presto_error *err);
/**
 * Read the progress of an earlier run, into a zeroed `progress_out`, which the caller frees, also on
 * failure. The folder is not ours yet.
 * Returns: PRESTO_ERR_NOT_FOUND: there is none; PRESTO_ERR_BUSY: the owner is alive, as far as this
 *          machine knows; as presto__progress_file_read.
 */
presto_status presto__bucket_lock_read(const char *folder, presto__progress_file *progress_out,
                                       presto__bucket_lock **lock_out,
                                       presto__owner_state *owner_out, presto_error *err);
/** Become its owner. PRESTO_ERR_BUSY: somebody else has written it since it was read. */
presto_status presto__bucket_lock_take_over(presto__bucket_lock *lock,
                                            const presto__progress_file *progress,
                                            presto_error *err);
/** Were both read when the same run owned the folder? */
bool presto__bucket_lock_is_same(const presto__bucket_lock *a, const presto__bucket_lock *b);
/** Write the progress. PRESTO_ERR_BUSY: somebody else has taken over. */
presto_status presto__bucket_lock_write(presto__bucket_lock *lock,
                                        const presto__progress_file *progress, presto_error *err);
/** The run ends without the dataset: another one may go on. It is as if the process were dead. */
void presto__bucket_lock_give_up(presto__bucket_lock *lock, const presto__progress_file *progress);
/** Is it still ours? PRESTO_ERR_BUSY: no. */
presto_status presto__bucket_lock_check(presto__bucket_lock *lock, presto_error *err);
void presto__bucket_lock_free(presto__bucket_lock *lock);

/* ---- one conversion ---- */

/** Write dir/name by way of a temporary name. */
presto_status presto__replace_file(const char *dir, const char *name, presto_span content,
                                   bool sync, presto_error *err);

#define PRESTO__DICTIONARY_FILE "dictionary"
#define PRESTO__SHARD_NAME_BYTES 96
#define PRESTO__INPUT_TEXT_BYTES 17

/** What is known of the folder that a conversion writes, and of the progress file in it. */
typedef enum presto__folder_state {
    PRESTO__FOLDER_UNSEEN = 0, /* nothing; it has no progress file */
    PRESTO__FOLDER_BEGUN = 1,  /* there is the progress file of an earlier run */
    PRESTO__FOLDER_WHOLE = 2,  /* an earlier run of the same job wrote all of it */
    PRESTO__FOLDER_OURS = 3,   /* all files in it are ours; the progress file says all */
    PRESTO__FOLDER_BEHIND = 4  /* the same, but the progress file is older than `progress` */
} presto__folder_state;

/**
 * On the stack of presto_convert, or in a presto_writer. The loader's, the writers' and the blocks'
 * threads use it, and what it points to. Whoever has it ends them before any of that goes: it owns
 * what is opened here, and the caller of presto_convert or presto_writer_open keeps the rest.
 */
typedef struct presto__conversion {
    const presto_convert_options *options;
    const presto_pipeline *pipeline; /* NULL: records are stored as they are */
    presto_pipeline *indexed; /* the same, if the input put index-jpeg into that of the options */
    const char *dir;          /* of a share, the attempt's */
    char *share_dir;          /* NULL, or what `dir` points to */
    bool made_out;            /* of a share: the dataset's folder was not there */
    size_t prefetch_bytes;    /* for data in flight */
    size_t packets_bytes;     /* of that, for records: ready, and with the writers */
    presto_folder_lock *lock; /* NULL: another process owns the folder, or it is in a bucket */
    presto__bucket_lock *bucket_lock; /* NULL: likewise, or it is a folder */
    presto__folder_state folder;
    bool made_dir;
    bool is_left_empty;
    /* input */
    bool is_fed; /* a program gives the samples in order: no source. By size, their number is
                              * known only at the end */
    presto_dataset *dataset; /* NULL: raw */
    presto_source *source;
    presto_plan *plan;                         /* NULL: no steps */
    size_t regroup_step;                       /* of the pipeline; SIZE_MAX: none */
    char input_text[PRESTO__INPUT_TEXT_BYTES]; /* digest of the source */
    /* as in dataset.json; NULL: unknown */
    const char *pipeline_json;
    const char *stored;
    uint64_t seed;
    const char *main_feature;
    const char *const *label_names;
    size_t label_count;
    /* output */
    presto_codec_spec codec;
    char codec_text[PRESTO_CODEC_TEXT_BYTES];
    presto_buffer dictionary;
    size_t shard_count; /* 0 until all are whole, if shards end by size */
    uint64_t sample_count;
    presto__progress_file progress;
    presto_loader *loader;
    uint64_t skipped_before;         /* because of errors, by earlier runs */
    presto_buffer skips;             /* those of this run since the last whole shard: numbers in
                                      * the source, uint64_t, rising */
    size_t skips_noted;              /* of these, in whole shards */
    presto_status skips_status;      /* < 0: some could not be kept */
    presto__regroup_place regrouped; /* of this run and those before it, so far */
    uint64_t dropped_tokens, padded_tokens;
    /* figures */
    uint64_t started_ns, cpu_started_ns, told_ns, noted_ns;
    presto__sent sent_before; /* by this process, to buckets */
    presto_loader_stats stats;
} presto__conversion;

/** Do shards end by their size? Then their number is known only at the end. */
bool presto__conversion_by_size(const presto__conversion *job);
/** May samples of a shard be left out: damaged ones, or ones that a step drops? */
bool presto__conversion_leaves_out(const presto__conversion *job);
/** Are records stored again as they are, with the samples of the whole input? */
bool presto__conversion_is_stream(const presto__conversion *job);
/** Can samples of the source be read in any order? */
bool presto__conversion_picks(const presto__conversion *job);
/** The position of the first sample of a shard, by number, and one past its last one's. */
uint64_t presto__conversion_first(const presto__conversion *job, size_t shard);
uint64_t presto__conversion_end(const presto__conversion *job, size_t shard);
/** The number in the source of the sample at a position; UINT64_MAX: none is there. */
uint64_t presto__conversion_number(const presto__conversion *job, uint64_t position);
/** Of a dataset of so many samples and shards: the position of the first sample of a shard. */
uint64_t presto__layout_first(uint64_t samples, size_t shards, size_t shard);
/** The shards that this conversion writes, by number: all, or a share. */
size_t presto__conversion_first_shard(const presto__conversion *job);
size_t presto__conversion_end_shard(const presto__conversion *job);
/** How many samples belong to them. */
uint64_t presto__conversion_samples(const presto__conversion *job);
/** The name of a shard in a dataset of `shards`. */
void presto__shard_name(size_t shard, size_t shards, presto_file_compression compression,
                        char name_out[PRESTO__SHARD_NAME_BYTES]);
/** The name of a shard in the dataset; job->shard_count is known. */
void presto__conversion_shard_name(const presto__conversion *job, size_t shard,
                                   char name_out[PRESTO__SHARD_NAME_BYTES]);
/** Its name until then: by size, a hidden name without the number of shards. */
void presto__conversion_working_name(const presto__conversion *job, size_t shard,
                                     char name_out[PRESTO__SHARD_NAME_BYTES]);

/** What must be equal for shards of another run to be kept: a JSON object, malloc'd. NULL: no memory. */
char *presto__conversion_text(const presto__conversion *job);
/** Make the folder, or take over the files of an interrupted run of the same job. */
presto_status presto__conversion_open_folder(presto__conversion *job, presto_error *err);
/** `progress` has changed: write the progress file now, or later if there are many shards. */
presto_status presto__conversion_note(presto__conversion *job, presto_error *err);
/** Write the progress file if it is older than `progress`. */
presto_status presto__conversion_catch_up(presto__conversion *job, presto_error *err);
/** Do we still own the folder? Checked before a file gets its name there. Any thread. */
presto_status presto__conversion_check_folder(const presto__conversion *job, presto_error *err);
/** After a failure: leave no trace if no shard is whole; else note all whole ones. */
void presto__conversion_leave_folder(presto__conversion *job);
/** Let others write to the folder; it goes if it was made for nothing. */
void presto__conversion_close_folder(presto__conversion *job);
/** What steps have told of samples (on_note). All samples have come. */
void presto__conversion_take_notes(const presto__conversion *job);
/** A note, before anything is written, if it will be far more than the source. */
void presto__conversion_note_size(presto__conversion *job);
/** The dictionary of the codec, if it wants one: read from the folder, else trained. */
presto_status presto__conversion_make_dictionary(presto__conversion *job, presto_error *err);
/** Write all missing shards; at the end all have their names in the dataset. */
presto_status presto__conversion_write_shards(presto__conversion *job, presto_error *err);
/** All shards are whole: give them their names in the dataset. */
presto_status presto__conversion_name_shards(presto__conversion *job, presto_error *err);
/** Write all samples that are in no whole shard; at the end all shards are noted. */
presto_status presto__conversion_run_loop(presto__conversion *job, presto_error *err);
/** As run_loop, if a step regroups. */
presto_status presto__conversion_run_regroup(presto__conversion *job, presto_error *err);
/** Does it make other samples of those that come? */
static inline bool presto__conversion_regroups(const presto__conversion *job) {
    return job->regroup_step != SIZE_MAX;
}
/**
 * Walks over the rows of a batch. Its sample_numbers count in the source; ranges of a conversion
 * are positions in the loader's sequence, which are others if the source is a part of another.
 */
typedef struct presto__row_walk {
    const presto__packet *packet; /* the batch's: the caller holds the batch */
    size_t part, gap;             /* the next position that is left out, */
    size_t at;                    /* and the next one, both in the packet */
} presto__row_walk;

/** At the first row. */
presto__row_walk presto__row_walk_begin(const presto_batch *batch);
/** Pass so many rows; returns the position of the row that follows. */
uint64_t presto__row_walk_pass(presto__row_walk *walk, size_t rows);
/** All samples have come: are more left out because of errors, by all runs, than the part that may
 * be? The loader of a resumed run does not see all of them. */
presto_status presto__conversion_check_skipped(presto__conversion *job, presto_error *err);
/** How the loader of a conversion works. Its on_skip keeps what take_skips counts. */
void presto__conversion_loader_options(presto__conversion *job, presto_loader_options *options_out);
/**
 * A shard becomes whole: how many samples before the position `end`, and behind the shard before
 * it, were left out because of errors? All of them have come.
 */
presto_status presto__conversion_take_skips(presto__conversion *job, uint64_t end,
                                            uint64_t *skipped_out, presto_error *err);
/** Call on_progress, if it is time; PRESTO_ERR_STOPPED if it asks to stop. `done` samples have
 * come. */
presto_status presto__conversion_report(presto__conversion *job, uint64_t done, presto_error *err);
/** dataset.json last of all, or of a share part.json; then the progress file, which is not needed any more. */
presto_status presto__conversion_conclude(presto__conversion *job, presto_error *err);
/** All is done. */
void presto__conversion_fill_result(const presto__conversion *job,
                                    presto_convert_result *result_out);

/* ---- writers ---- */

/** A shard, by number, its samples [first, end), and what was left out: as in a whole shard. */
typedef struct presto__shard_range {
    size_t number;
    uint64_t first, end;
    uint64_t skipped;
} presto__shard_range;

/** Consecutive rows of a batch. */
typedef struct presto__rows {
    presto_batch *batch; /* one reference, which goes along. NULL: writers without threads */
    /* The batch's; without one the caller's, until the call ends: */
    presto_span frames;
    const uint32_t *frame_bytes;
    size_t count;
    uint64_t raw_bytes; /* serialized samples, before the codec */
} presto__rows;

/** See convert_writers.c. All is called by one thread. */
typedef struct presto__writers presto__writers;

/** `count` of them, 1 to PRESTO__MOST_OPEN, each a thread of its own or none. */
presto_status presto__writers_new(const presto__conversion *job, size_t count, bool has_threads,
                                  presto__writers **writers_out, presto_error *err);
/**
 * Append rows to shard `shard` of writer `which`; the first rows open it. Only if there is room. A
 * failure, here or in a thread, stops all writers. It is reported now or by the next call; of
 * several, that of the first shard.
 */
presto_status presto__writers_append(presto__writers *writers, size_t which, size_t shard,
                                     const presto__rows *rows, presto_error *err);
/** All its samples have been appended: give the shard its name. Only if there is room. */
presto_status presto__writers_finish(presto__writers *writers, size_t which,
                                     const presto__shard_range *shard, presto_error *err);
/** Give up the shard that is open. Only if there is room. */
presto_status presto__writers_drop(presto__writers *writers, size_t which, presto_error *err);
/** May something be handed to any of them? Without threads always. */
bool presto__writers_have_room(presto__writers *writers);
typedef enum presto__wanted { PRESTO__WANTS_ROOM, PRESTO__WANTS_END } presto__wanted;
/**
 * Wait until half of the room is free, all tasks are done, or a shard is whole; at most a tenth of
 * a second. PRESTO_END: all tasks are done.
 */
presto_status presto__writers_wait(presto__writers *writers, presto__wanted wanted,
                                   presto_error *err);
/** Take a shard that has become whole, without its name; false: there is none now. */
bool presto__writers_take(presto__writers *writers, presto__whole_shard *whole_out);
/** Stop them: unfinished shards are given up. Whole ones can still be taken. */
void presto__writers_stop(presto__writers *writers);
/** Free stopped writers. */
void presto__writers_free(presto__writers *writers);

#endif
