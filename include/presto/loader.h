/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader: source -> worker threads -> order -> batches (or encoded records), with prefetch
 * bounded in bytes.
 *
 * Life: presto_loader_open_stream() starts the workers; presto_loader_next() pulls, in order, until
 * PRESTO_END; each batch goes back with presto_batch_release() from any thread, even after
 * presto_loader_free(), which may be called at any moment and stops the workers.
 *
 * Order: the sequence is a function of source, seed and epoch and nothing else; the number of
 * threads changes not a byte.
 *
 * Ranks: position p of the epoch's order belongs to rank p % world, so that the order is the same
 * for any world. All ranks get equally many: an incomplete last round is filled up from the start
 * of the epoch's order, or left out with drop_last.
 */
#ifndef PRESTO_LOADER_H
#define PRESTO_LOADER_H

#include <presto/source.h>
#include <presto/storage.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct presto_loader presto_loader;

typedef enum presto_output_kind {
    PRESTO_OUTPUT_BATCHES = 0, /* tensors, [rows, ...] per feature */
    PRESTO_OUTPUT_RECORDS = 1, /* framed, encoded records back to back: what presto-write stores and
                                  `--format tfrecord` prints */
    PRESTO_OUTPUT_COUNT = 2    /* everything is computed, nothing is handed out but the numbers */
} presto_output_kind;

typedef enum presto_shuffle_kind {
    PRESTO_SHUFFLE_NONE = 0,
    PRESTO_SHUFFLE_BUFFER = 1, /* a random one of the next `window` records */
    PRESTO_SHUFFLE_FULL = 2,   /* keyed permutation of all record numbers, O(1) memory */
    PRESTO_SHUFFLE_BLOCKS = 3  /* permuted blocks of `window` records, permuted within */
} presto_shuffle_kind;

typedef enum presto_error_policy {
    PRESTO_ON_ERROR_FAIL = 0,
    /* Leave samples out, up to the budget: what is damaged (_CORRUPT, _TRUNCATED), does not fit a
     * step (_TYPE, _LIMIT, _UNSUPPORTED: a kind of JPEG, say), or is a file of a raw source that
     * cannot be read or has changed since it was listed (_IO, _NOT_FOUND). What is wrong with the
     * job or the machine still fails: _MEMORY, _STOPPED, _ARGUMENT, _RAGGED, a shard that cannot be
     * opened, and what the next file may fail with alike (no file descriptors left, a disk or a
     * file server that fails). */
    PRESTO_ON_ERROR_SKIP = 1
} presto_error_policy;

/** A sample that was left out, and in which epoch. `err` is borrowed during the call. */
typedef void (*presto_skip_fn)(void *user, uint64_t epoch, uint64_t sample,
                               const presto_error *err);

/**
 * Something went wrong that does not harm the stream: the disk cache cannot be written any more (at
 * most once a loader); an index file does not hold (at most once a shard;
 * presto_dataset_take_warning gives what is not reported when the loader ends). `warning` is
 * borrowed during the call.
 */
typedef void (*presto_warning_fn)(void *user, const presto_error *warning);

/** Fill the rows of a feature up to one length, so that it becomes dense. */
typedef struct presto_pad {
    const char *feature;
    double value;    /* must fit the feature's dtype; strings: a byte */
    uint64_t length; /* along the first dimension; 0: that of the longest row in the batch */
} presto_pad;

/*
 * The options of a loader stand in groups. A group has `reserved` room, all 0: an option that joins
 * the group takes its first words, and 0 there means what was done without it. So a group never
 * changes its size, and programs that were compiled earlier go on to run.
 */

/** In which order samples come. */
typedef struct presto_loader_order {
    uint64_t seed;               /* of the shuffle and of random steps. Default 0 */
    presto_shuffle_kind shuffle; /* default none */
    bool completion;             /* hand out what is ready first; default false (strict) */
    uint64_t shuffle_window;     /* records, for buffer and blocks */
    uint64_t reserved[4];
} presto_loader_order;

/** From so many epochs on, a stream counts as endless. Then a whole epoch without a batch, because
 * its samples were dropped or left out, ends it with PRESTO_ERR_ARGUMENT: it would wait forever. */
#define PRESTO_EPOCHS_ENDLESS UINT32_MAX

/** Which samples come: epochs, start, end, and this consumer's share. */
typedef struct presto_loader_range {
    uint64_t epochs;        /* >= 1; see PRESTO_EPOCHS_ENDLESS. Default 1 */
    uint64_t first_epoch;   /* number of the first epoch, for random steps and shuffle. Default 0 */
    uint64_t first_sample;  /* start at this position of the first epoch. Default 0 */
    uint64_t skip_samples;  /* then skip so many positions of the sequence, over all epochs, samples
                               left out included; UINT64_MAX: all, so that the stream ends at once.
                               Default 0 */
    uint64_t limit_samples; /* stop after so many positions of the sequence (samples left out
                               included) over all epochs, counted from where the stream starts;
                               0 = no limit. Default 0 */
    uint64_t rank, world;   /* this consumer's share; default 0 of 1 */
    presto_span state;      /* go on where presto_loader_save_state was called:
                               presto_loader_load_state is done to these options first. Borrowed
                               during the call. Default empty */
    bool drop_last;         /* leave out a last batch with fewer rows, and an incomplete last round
                               of ranks instead of padding it. Default false */
    uint64_t reserved[4];
} presto_loader_range;

/** Samples that are kept for the next epoch. */
typedef struct presto_loader_cache {
    size_t bytes;            /* keep samples in memory up to so many bytes, beside
                                memory.prefetch_bytes; 0 = no cache. Not for records output.
                                Default 0 */
    const char *dir;         /* keep them in this folder instead, up to `bytes` (at least 64 KiB)
                                with all that other streams and processes keep there; made if it is
                                missing; what is there is used from the first epoch on. The file
                                system must have it to itself or have room for that much. Copied.
                                NULL: in memory. Default NULL */
    const presto_plan *plan; /* deterministic steps that run before the cache, once a sample; the
                                plan given to open runs after it. NULL: none */
    uint64_t reserved[4];
} presto_loader_cache;

/** How samples that fail are handled, and who hears of it. */
typedef struct presto_loader_errors {
    presto_error_policy policy; /* default PRESTO_ON_ERROR_FAIL */
    uint64_t skip_limit;        /* most samples skipped in an epoch before it fails; UINT64_MAX =
                                     any number. Default UINT64_MAX */
    double skip_fraction;       /* most skipped as a part of those seen (checked at the end of
                                     each epoch); 1 = any. Default 1 */
    presto_skip_fn on_skip;     /* called from presto_loader_next, in sequence order. Default
                                     NULL */
    void *on_skip_user;
    presto_warning_fn on_warning; /* called from presto_loader_next. Default NULL */
    void *on_warning_user;
    uint64_t reserved[4];
} presto_loader_errors;

/** What bounds the memory of a loader. */
typedef struct presto_loader_memory {
    size_t prefetch_bytes;     /* for blocks and batches in flight; docs/loading.md says what may
                                  come on top. Default 256 MiB */
    size_t block_bytes;        /* stored bytes a block of work. Default 1 MiB */
    size_t block_samples;      /* and at most so many samples. Default 1024 */
    uint64_t max_record_bytes; /* decompressed; default PRESTO_CODEC_MAX_RECORD_BYTES */
    uint64_t reserved[4];
} presto_loader_memory;

/** Of a loader, a conversion, a writer or a strategy. */
#define PRESTO_MAX_THREADS 4096

typedef struct presto_loader_options {
    size_t struct_bytes;       /* set by presto_loader_options_defaults */
    unsigned threads;          /* worker threads, PRESTO_MAX_THREADS at most; 0 = inline in
                                  presto_loader_next. Default 1 */
    bool auto_threads;         /* `threads` is the most, such as presto_auto_threads(): find while
                                  running how many of them are worth it. It begins with one for
                                  each processor; more are made while they wait for storage, and
                                  kept if they deliver clearly more. The stream stays the same.
                                  Default false */
    bool unaligned_views;      /* batches of 1 without steps are views of the block read, not
                                  copied: their data is aligned to nothing. Default false */
    presto_output_kind output; /* default batches */
    size_t batch_samples;      /* rows a batch, >= 1. Default 1. Records output: at most so many at
                                  a time, and 0 = as many as come together (the fastest) */
    /* Batches have these features only. Nothing else is parsed but what steps read; if one has the
     * flag PRESTO_STEP_READS_FEATURES, all. Copied. NULL: all. A name that no sample has is not an
     * error: batches lack it. The same name twice is PRESTO_ERR_ARGUMENT. */
    const char *const *features;
    size_t feature_count;
    const presto_pad *pads; /* copied; features that are not there are ignored. Default NULL */
    size_t pad_count;
    const presto_codec_spec *codec; /* records output: how records are compressed. Copied, but for
                                       its dictionary, which must outlive the loader. NULL: codec
                                       none. Default NULL */
    presto_stop_fn should_stop;     /* asked from presto_loader_next, each time and ten times a
                                       second while it waits, and while a stream or a loader is
                                       opened, before each read; then that fails with
                                       PRESTO_ERR_STOPPED. NULL: never */
    void *should_stop_user;
    presto_loader_order order;
    presto_loader_range range;
    presto_loader_cache cache;
    presto_loader_errors errors;
    presto_loader_memory memory;
    /* Play it: what is read from files of the source takes as long as on this storage; a cache on
     * disk is not of it. All are read as if for the first time, and none in advance. Default all 0:
     * as fast as possible. */
    presto_storage storage;
} presto_loader_options;

PRESTO_API void presto_loader_options_init(presto_loader_options *options, size_t struct_bytes);
static inline void presto_loader_options_defaults(presto_loader_options *options) {
    presto_loader_options_init(options, sizeof *options);
}

/**
 * How the rows of a feature stand in a batch. Strings (bytes) are PRESTO_LAYOUT_BYTES in every
 * batch. Numbers are PRESTO_LAYOUT_RAGGED in every batch if their shape is declared with an unknown
 * dim (by dataset.json, or as the output of the steps), unless they are padded or batches have one
 * sample; then, as without a declaration, they are dense where all rows of the batch have the same
 * shape, and ragged where one differs or lacks the feature.
 */
typedef enum presto_layout {
    PRESTO_LAYOUT_DENSE = 0,  /* tensor is [rows, ...] */
    PRESTO_LAYOUT_RAGGED = 1, /* tensor is [values]: all rows back to back */
    PRESTO_LAYOUT_BYTES = 2   /* tensor is uint8 [bytes]: all strings back to back */
} presto_layout;

/** "dense", "ragged", "bytes". */
PRESTO_API const char *presto_layout_name(presto_layout layout);

/** One feature of a batch. Borrowed from the batch. */
typedef struct presto_batch_feature {
    const char *name;
    presto_encoding encoding;
    presto_layout layout;
    presto_tensor tensor;   /* numeric, contiguous, 64-byte aligned (views are not aligned) */
    const int64_t *offsets; /* ragged: rows + 1; row r has values [offsets[r], offsets[r + 1]) of
                               tensor. bytes: strings + 1, likewise of string s. dense: NULL */
    const int64_t *row_offsets; /* bytes, where a row of the batch has not exactly one string or the
                                   declared shape says so: rows + 1; row r has strings
                                   [row_offsets[r], row_offsets[r + 1]). Else NULL: string r is
                                   row r */
    const int64_t *shapes;      /* [rows, shape_rank], where a row has two dimensions or more: its
                                   dims, -1 behind the last one (0, -1, ... if the row lacks the
                                   feature). Else NULL */
    size_t shape_rank;
    uint64_t reserved[2];
} presto_batch_feature;

/** String `string` of a feature with PRESTO_LAYOUT_BYTES; that of row `string` if there are no
 * row_offsets. Borrowed from the batch. */
static inline presto_span presto_batch_string(const presto_batch_feature *feature, size_t string) {
    const int64_t *at = feature->offsets + string;
    return presto_span_of((const uint8_t *)feature->tensor.data + at[0], (size_t)(at[1] - at[0]));
}

/**
 * What presto_loader_next hands out. Owned by the caller until presto_batch_release. Read-only.
 * Small batches share the memory of a block of work: holding one of them keeps its neighbours'
 * memory.
 */
typedef struct presto_batch {
    uint64_t epoch;
    uint64_t first; /* position of its start in this rank's sequence of the epoch, 0-based */
    size_t rows;    /* samples in it */
    size_t skipped; /* samples left out of it: because of errors, or by a step (PRESTO_DROP) */
    const uint64_t *sample_numbers; /* rows of them: which sample of the source each row is */

    /* PRESTO_OUTPUT_BATCHES */
    const presto_batch_feature *features; /* by name, bytewise. One that a dataset declares with
                                             unknown dims is there also if no row has values of it,
                                             unless steps run */
    size_t feature_count;
    size_t main_feature; /* position; SIZE_MAX if none is known */

    /* PRESTO_OUTPUT_RECORDS: `rows` frames back to back */
    presto_span frames;
    const uint32_t *frame_bytes; /* size of each whole frame */
    uint64_t raw_bytes;          /* serialized samples before the codec, summed */
} presto_batch;

/**
 * The next batch, in order; waits for it.
 * Returns: PRESTO_OK; PRESTO_END after the last; a failure at the place in the sequence where it
 *          happened (everything before it has been delivered); the same failure again when called
 *          again. Features that differ in length are no failure (see presto_layout).
 *          PRESTO_ERR_RAGGED: a feature of another dtype than in the samples before it of the same
 *          batch, which is named; rows that cannot be padded, as they differ in more than the first
 *          dimension.
 * Threads: one consumer at a time.
 */
PRESTO_API presto_status presto_loader_next(presto_loader *loader, presto_batch **batch_out,
                                            presto_error *err);

/**
 * Random access: the samples with these numbers as one batch, in this order; a number may come
 * several times. The loader must have been opened with threads 0. From the first call on it is no
 * stream any more: presto_loader_next ends. Random steps draw as in the epoch range.first_epoch, or
 * as presto_loader_redraw says.
 *
 * Returns: PRESTO_OK (with fewer rows than `count` if steps, or the error policy, left samples out:
 *          sample_numbers says which are there); PRESTO_DROP if all were left out;
 *          PRESTO_ERR_ARGUMENT (threads, no numbers, a number that the source does not have);
 *          the failure of the first of these samples that fails. The next call starts afresh.
 * Threads: one consumer at a time.
 */
PRESTO_API presto_status presto_loader_pick(presto_loader *loader, const uint64_t *numbers,
                                            size_t count, presto_batch **batch_out,
                                            presto_error *err);

/**
 * Random steps of the samples that presto_loader_pick gives from now on draw as in this epoch of a
 * stream with this seed. For loaders that only pick.
 * Threads: one consumer at a time.
 */
PRESTO_API void presto_loader_redraw(presto_loader *loader, uint64_t seed, uint64_t epoch);

/** Give a batch back to its pool. Any thread, also after presto_loader_free. NULL is fine. */
PRESTO_API void presto_batch_release(presto_batch *batch);

/**
 * As presto_batch_release, for the batch handed out last, but it was not consumed: the state is the
 * one before it. presto_loader_next continues after it all the same. NULL is fine.
 * Threads: the consumer's.
 */
PRESTO_API void presto_loader_give_back(presto_loader *loader, presto_batch *batch);

/** Stop the workers and free. Batches still held stay valid. NULL is fine. */
PRESTO_API void presto_loader_free(presto_loader *loader);

/**
 * Append the state of the stream after the batch handed out last to `json_out`: one short line of
 * JSON that presto_loader_load_state reads. Samples left out after it may count as
 * passed once on_skip was called for them.
 *
 * Returns: PRESTO_OK, PRESTO_ERR_ARGUMENT (completion order has no state), PRESTO_ERR_MEMORY.
 * Threads: the consumer's.
 */
PRESTO_API presto_status presto_loader_save_state(const presto_loader *loader,
                                                  presto_buffer *json_out, presto_error *err);

/**
 * Set options->range so that a loader opened with the options delivers exactly the rest. They are
 * filled for a stream from its beginning: epochs, first_epoch, rank, world, ... Another world is
 * fine between epochs, and within one where the position can be shared out evenly.
 *
 * Returns: PRESTO_OK; PRESTO_END if nothing remains (a loader opened with the options ends at
 *          once); PRESTO_ERR_ARGUMENT (another input, seed or shuffle: the message says which),
 *          PRESTO_ERR_CORRUPT (no state, or a position that its input does not have).
 */
PRESTO_API presto_status presto_loader_load_state(presto_span json, const presto_source *source,
                                                  presto_loader_options *options,
                                                  presto_error *err);

/** What has happened so far. Times are summed over the workers; wall is since open. */
typedef struct presto_loader_stats {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    uint64_t wall_ns;
    uint64_t samples; /* delivered */
    uint64_t skipped; /* because of errors */
    uint64_t dropped; /* by steps, which did not want them (PRESTO_DROP) */
    /* PRESTO_OUTPUT_COUNT: blocks of work, unless the last batch must be full. */
    uint64_t batches;
    uint64_t read_bytes;      /* T3's bytes: read from storage (files, shards) */
    uint64_t delivered_bytes; /* T4's bytes: in batches or frames handed out */
    uint64_t read_ns;         /* workers: waiting for and copying from storage, CRC included */
    uint64_t decompress_ns;
    uint64_t parse_ns;           /* Example and TensorProto */
    uint64_t steps_ns;           /* all steps; per step see presto_loader_step_stats */
    uint64_t encode_ns;          /* serialize, compress, frame (records output) */
    uint64_t batch_ns;           /* copying into batches */
    uint64_t worker_wait_ns;     /* workers waiting for room: the consumer is the limit */
    uint64_t consumer_wait_ns;   /* presto_loader_next waiting for data: the loader is the limit */
    uint64_t consumer_busy_ns;   /* between calls of presto_loader_next */
    uint64_t cache_ns;           /* putting samples into the cache; reading them from disk is
                                    read_ns and read_bytes */
    uint64_t read_ahead_samples; /* prefetched: storage was asked for them in advance */
    uint64_t cached_samples;     /* that came from the cache */
    uint64_t missed_samples;     /* looked up in the cache and not found; 0 without one */
    uint64_t cache_bytes;        /* that it holds for this stream */
    /* Of a cache on disk, by this loader: */
    uint64_t cache_written_bytes;
    uint64_t cache_damaged_blocks; /* files removed because something in them did not hold */
    uint64_t cache_evicted_blocks; /* files removed to make room */
    unsigned threads;              /* with auto_threads those found best so far */
    size_t queued_bytes;           /* in flight now */
    size_t peak_queued_bytes;
    double queue_fill; /* part of the queue that holds finished data now: 0 the consumer waits, 1
                          the workers do */
    /* Of a storage that is played (options.storage): */
    uint64_t storage_wait_ns; /* what workers waited for it; part of read_ns */
    uint64_t storage_reads;   /* reads, as presto/storage.h counts them */
    /* Of a source that comes over a network, for ranges that were requested before they were read: */
    uint64_t requests;        /* with those that follow */
    uint64_t request_retries; /* sent again: their answers were no success */
    uint64_t
        request_seconds; /* sent a second time meanwhile: the first took far longer than others */
} presto_loader_stats;

/** Any thread, at any time; the figures are a consistent enough snapshot for display. */
PRESTO_API void presto_loader_get_stats_sized(const presto_loader *loader,
                                              presto_loader_stats *stats_out);
static inline void presto_loader_get_stats(const presto_loader *loader,
                                           presto_loader_stats *stats_out) {
    stats_out->struct_bytes = sizeof *stats_out;
    presto_loader_get_stats_sized(loader, stats_out);
}
/** Steps are counted from the first of cache.plan on, through those of the plan. */
PRESTO_API void presto_loader_step_stats_sized(const presto_loader *loader, size_t step,
                                               presto_step_stats *stats_out);
static inline presto_step_stats presto_loader_step_stats(const presto_loader *loader, size_t step) {
    presto_step_stats stats;
    stats.struct_bytes = sizeof stats;
    presto_loader_step_stats_sized(loader, step, &stats);
    return stats;
}
PRESTO_API size_t presto_loader_step_count(const presto_loader *loader);
/** NULL if there is no such step. Borrowed from the plan. */
PRESTO_API const char *presto_loader_step_name(const presto_loader *loader, size_t step);

/** Of so many texts, a loader keeps the notes of steps apart; what comes beyond is counted together. */
#define PRESTO_LOADER_NOTES 16
#define PRESTO_NOTE_KIND_BYTES 192
#define PRESTO_NOTE_TEXT_BYTES 1536

/** What a step has told of samples with presto_step_note, and is no error. */
typedef struct presto_loader_note {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    uint64_t samples;    /* so many times, over all epochs. A sample from a cache does not count */
    char kind[PRESTO_NOTE_KIND_BYTES]; /* "STEP: what it is" */
    char text[PRESTO_NOTE_TEXT_BYTES]; /* "STEP: what it is: 3 samples, e.g. FILE" */
} presto_loader_note;

/** The i-th note so far; false: there are fewer. The order is that of the examples in the input, so
 * that new ones may come between. Any thread. */
PRESTO_API bool presto_loader_note_sized(const presto_loader *loader, size_t i,
                                         presto_loader_note *note_out);
static inline bool presto_loader_get_note(const presto_loader *loader, size_t i,
                                          presto_loader_note *note_out) {
    note_out->struct_bytes = sizeof *note_out;
    return presto_loader_note_sized(loader, i, note_out);
}

/** What a stream spends its time on. */
typedef enum presto_stage {
    PRESTO_STAGE_READ = 0,
    PRESTO_STAGE_DECOMPRESS = 1,
    PRESTO_STAGE_PARSE = 2,
    PRESTO_STAGE_STEP = 3,
    PRESTO_STAGE_ENCODE = 4,
    PRESTO_STAGE_BATCH = 5,
    PRESTO_STAGE_CONSUMER = 6, /* whoever calls presto_loader_next */
    PRESTO_STAGE_CACHE = 7     /* putting samples into the cache */
} presto_stage;

/** "read", "decompress", "parse", "step", "encode", "batch", "consumer", "cache". */
PRESTO_API const char *presto_stage_name(presto_stage stage);

/** What limits the stream. */
typedef struct presto_verdict {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    presto_stage stage;
    size_t step;           /* which one, for PRESTO_STAGE_STEP; else SIZE_MAX */
    const char *step_name; /* its name, borrowed from the plan; else NULL */
    double share;   /* of the workers' time that this stage takes; of the consumer's own time that
                       it is busy */
    char text[160]; /* "step decode-image (78 % of the work)" */
} presto_verdict;

/** As of now, from all that has happened since open. Any thread. */
PRESTO_API void presto_loader_verdict_sized(const presto_loader *loader,
                                            presto_verdict *verdict_out);
static inline void presto_loader_verdict(const presto_loader *loader, presto_verdict *verdict_out) {
    verdict_out->struct_bytes = sizeof *verdict_out;
    presto_loader_verdict_sized(loader, verdict_out);
}

/** Samples in one epoch for this rank (after limit and world); PRESTO_COUNT_UNKNOWN until the
 * first pass over a source that is not counted has come to its end. Any thread. */
PRESTO_API uint64_t presto_loader_epoch_samples(const presto_loader *loader);

#ifdef __cplusplus
}
#endif

#endif
