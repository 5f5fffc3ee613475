/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweep: scores strategies (stored representation x codec x threads) and recommends one. A strategy is measured
 * on a sample of the user's data by running exactly what presto-write and presto-load run
 * (presto_convert, presto_stream_open, the loader), or predicted by a model of its parts. How both
 * is done and what each figure means: docs/sweep.md.
 */
#ifndef PRESTO_SWEEP_H
#define PRESTO_SWEEP_H

#include <presto/convert.h>
#include <presto/file.h>
#include <presto/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What a strategy is scored by: the weights of preprocessing time, storage and throughput; each >=
 * 0, not all 0.
 */
typedef struct presto_weights {
    double preparation; /* P: offline time */
    double storage;     /* S: stored bytes */
    double throughput;  /* T: samples per second (T4) of the cold epoch */
} presto_weights;

/** What a strategy must keep to be recommended; 0: no limit. */
typedef struct presto_sweep_limits {
    /* What the consumer takes: the cheapest strategy whose cold epochs deliver it in every run is
     * the best, whatever the weights. */
    double target_samples_per_s;
    uint64_t most_stored_bytes; /* of the whole source; reading that as it is stores nothing */
    double most_preparation_s;  /* of the whole source */
    double headroom;            /* deliver the target and this part more; 0..10. Default 0.1 */
    uint64_t reserved[4];
} presto_sweep_limits;

/** What things cost, in any currency; all 0: money is no matter. */
typedef struct presto_sweep_prices {
    /* 10^9 bytes of a stored dataset for a month; the source is there anyway. */
    double storage_gb_month;
    double cpu_h;         /* a thread for an hour, preparing or loading */
    double accelerator_h; /* what trains, for an hour: it waits for the loader */
    double epochs;        /* of the training; more than 0 where there is a price */
    double months;        /* that the dataset is kept. Default 1 */
    uint64_t reserved[3];
} presto_sweep_prices;

/** How the recommended strategy stands to the limits. */
typedef enum presto_sweep_verdict {
    PRESTO_SWEEP_FREE = 0,   /* there are none */
    PRESTO_SWEEP_KEEPS = 1,  /* it keeps them */
    PRESTO_SWEEP_MISSES = 2, /* no strategy reaches the target: it is the nearest */
    /* No strategy keeps the limits of storage and preparation: it is chosen as if there were none,
     * and reaches the target, if there is one. */
    PRESTO_SWEEP_EXCEEDS = 3
} presto_sweep_verdict;

/** One strategy. Texts are borrowed from the sweep. */
typedef struct presto_strategy {
    const char *stored; /* representation that is stored; "unprocessed": read the source itself */
    const char *codec;  /* canonical text; NULL with "unprocessed", where nothing is stored */
    unsigned threads;
    size_t shards; /* 0 with "unprocessed" */
    uint64_t reserved[2];
} presto_strategy;

/** Minimum, median and maximum over the runs; all the same, and no spread, where there was one. */
typedef struct presto_spread {
    double least, median, most;
    size_t runs; /* how many it is of */
} presto_spread;

/**
 * What was measured of the epochs in one state of the page cache. What is not a spread is of the
 * run with the median rate, and of one epoch where a run has several.
 */
typedef struct presto_epoch_result {
    presto_spread samples_per_s;         /* T4 in samples */
    presto_spread delivered_bytes_per_s; /* T4 in bytes */
    presto_spread read_bytes_per_s;      /* T3: bytes read from files, page cache or not */
    double cpu_user_s, cpu_system_s;     /* of the process */
    double cpu_s_per_sample;             /* user + system */
    double context_switches_per_s;       /* voluntary and not */
    double disk_read_bytes; /* delivered by storage, not the page cache; NaN if unknown */
    double peak_rss_bytes;  /* of the process; NaN if unknown */
    /* Cold: rates per second are those of an epoch of the whole source. It takes start_s, and then
     * delivers so many samples a second. NaN or 0: not known, or the whole source was measured. */
    double start_s, steady_samples_per_s;
} presto_epoch_result;

/** Which strategies are run. */
typedef enum presto_sweep_mode {
    PRESTO_SWEEP_MEASURE = 0, /* all */
    PRESTO_SWEEP_PREDICT = 1  /* some; the others are predicted */
} presto_sweep_mode;

/** What binds the rate of a strategy, according to the model. */
typedef enum presto_sweep_bound {
    PRESTO_BOUND_UNKNOWN = 0,
    PRESTO_BOUND_CORES = 1,         /* the workers compute all the time */
    PRESTO_BOUND_STORAGE = 2,       /* bytes per second of storage, or of one thread reading it */
    PRESTO_BOUND_STORAGE_READS = 3, /* reads per second of storage, or their latency */
    PRESTO_BOUND_MEMORY = 4,        /* bytes per second of memory */
    PRESTO_BOUND_HANDOVER = 5,      /* the one thread that hands out batches */
    PRESTO_BOUND_CONSUMER = 6 /* the training: it delivers more than the target and headroom */
} presto_sweep_bound;

/** "cores", "storage", "storage reads", "memory", "handover", "consumer"; "unknown". */
PRESTO_API const char *presto_sweep_bound_name(presto_sweep_bound bound);

/**
 * What the model says of a strategy, without the strategy's own runs. Runs of others have
 * calibrated it. NaN: unknown. All NaN in a sweep that measures all.
 */
typedef struct presto_sweep_prediction {
    double cold_samples_per_s, cached_samples_per_s; /* T4, in epochs as a trial's are */
    double uncertainty;   /* of both, relative: about two of three rates are no farther off */
    double preparation_s; /* of the whole source */
    double stored_bytes;  /* of the whole source */
    double cold_error, cached_error; /* predicted / measured - 1; NaN where it was not run */
    presto_sweep_bound cold_bound, cached_bound;
    /* It has more threads than this machine has processors: the rates are those of a machine that
     * has as many of the same kind. */
    bool is_elsewhere;
    /* With presto_loader_options.cache in memory, from the second epoch on: the same for all representations
     * and codecs; and what it holds of the whole source. */
    double memory_samples_per_s, memory_bytes;
    uint64_t reserved[2];
} presto_sweep_prediction;

typedef struct presto_strategy_result {
    presto_strategy strategy;
    bool failed; /* then only `strategy` and `failure` count */
    /* Why. Else its status is 0; or the disk was full, and it has had fewer runs than wanted. */
    presto_error failure;
    /* Offline, on the measured samples. With "unprocessed" the time is 0 and the bytes are the
     * source's own. */
    presto_spread preparation_s;
    uint64_t samples;      /* measured, in one epoch */
    uint64_t stored_bytes; /* shards with their framing, without indexes */
    uint64_t raw_bytes;    /* serialized samples before the codec */
    /*
     * Extrapolated to the whole source. Error: half of the 95 % interval, NaN if unknown.
     */
    double total_preparation_s, total_preparation_error_s;
    double total_stored_bytes, total_stored_error_bytes;
    presto_epoch_result cold;   /* page cache dropped before each epoch */
    presto_epoch_result cached; /* page cache warm */
    double score;               /* [0, sum of weights]; NaN if failed */
    bool is_equal;              /* to the best score or cost as far as the runs tell; with a target:
                                   reaches it */
    double cost;                /* by the prices; NaN without */
    /* No trial was run: the figures above are the prediction's. Spreads are of 0 runs, what is
     * known from runs only is NaN. */
    bool is_predicted;
    presto_sweep_prediction prediction;
} presto_strategy_result;

/**
 * Called before each trial (a conversion, or a run of cold and cached epochs; before the first one
 * also while all is tried out once), a few times a second during a trial, and, with `result`, when
 * a strategy has had its last trial. `done` of `total` counts trials, over all strategies. Return
 * false to stop: the sweep cleans up and ends with PRESTO_ERR_STOPPED.
 */
typedef bool (*presto_trial_fn)(void *user, const presto_strategy *strategy, size_t done,
                                size_t total, const presto_strategy_result *result);

typedef struct presto_sweep_options {
    size_t struct_bytes; /* set by presto_sweep_options_defaults */
    /* Whose strategies are measured. Borrowed during the call. Required. */
    const presto_pipeline *pipeline;
    /* None: every representation that can be stored, and "unprocessed". */
    const char *const *stored;
    size_t stored_count;
    /* None: none, zstd:1, zstd:3, lz4, snappy, gzip (those of this build). */
    const char *const *codecs;
    size_t codec_count;
    /* Only codecs that every TensorFlow reads (presto_codec_check_tensorflow); then none listed:
     * none, zlib:1, gzip. */
    bool tensorflow_readable;
    /* None: 1 and the number of CPUs; with `storage`, larger numbers, too, as threads that wait take
     * no CPU. 0 in the list: inline, without threads. */
    const unsigned *threads;
    size_t thread_count;
    size_t shards;             /* 0: as many as threads (1 for 0 threads). Default 0 */
    uint64_t samples;          /* measured per strategy; 0 = all. Default 200 */
    unsigned runs;             /* per strategy, 1..1000. Default 3 */
    double run_s;              /* the cold epochs of a run are repeated until they last so long
                                  together, and so are the cached; 0..3600. Default 0.25 */
    unsigned cold_epochs;      /* at most so many cold epochs a run, 1..1000. Default 128 */
    unsigned preparation_runs; /* conversions per strategy, 1..runs. Default 1 */
    size_t batch_samples;      /* of the loads. Default 32 */
    presto_weights weights;    /* default 0, 0, 1 */
    uint64_t seed;             /* default 0 */
    /* Trial datasets are written into a fresh folder in here (made if missing) and removed; must be
     * on the storage that is to be judged. Required. */
    const char *work_dir;
    /* How much of them is kept side by side, so that their epochs can take turns. Default 4 GiB */
    uint64_t work_bytes;
    /* Only for strategy.yaml and the command lines: */
    const char *pipeline_name; /* as the user named it (-p); NULL: the pipeline's name */
    const char *const *set;    /* the changes it was read with (presto_pipeline_options.set) */
    size_t set_count;
    const char
        *dataset_dir; /* folder for the dataset; NULL: "PIPELINE-REPRESENTATION": "cv-resized" */
    presto_trial_fn on_trial; /* may be NULL */
    void *on_trial_user;
    presto_sweep_limits limits;
    /* The strategy that costs least is the best, whatever the weights; with a target, of those that
     * reach it. The training then takes no more samples a second than that. */
    presto_sweep_prices prices;
    /* Samples that fail are left out of the sweep, as policy, skip_limit and skip_fraction allow;
     * the callbacks are not called. Default: the first one ends the sweep. */
    presto_loader_errors errors;
    /* A file that each conversion and each run is noted in as soon as it is measured, so that a
     * sweep that ended early can be continued. NULL: none. */
    const char *journal;
    bool resume; /* take what the journal holds of the same sweep as measured; without, it is
                    made anew */
    const char *const *plugins; /* that it was read with (presto_pipeline_options.plugins), for the
                                   command lines */
    size_t plugin_count;
    /* At most so long are strategies run that are only predicted and may be better than the best,
     * and those near the best measured again, in rounds, until it is decided which one is
     * recommended. 0: not at all. Default 30 */
    double decide_s;
    presto_sweep_mode mode; /* default PRESTO_SWEEP_PREDICT */
    unsigned confirm_runs;  /* when predicting, about so many strategies are run to confirm what was
                               predicted, beside those that the model rests on. Default 6 */
    /* Plan for this storage: cold epochs read as if from it (presto_loader_options.storage). Cached
     * epochs and conversions do not. Default all 0: the storage of `work_dir` as it is. */
    presto_storage storage;
    /* Numbers of shards that are compared: what is stored is a strategy in each of them; 0 in the
     * list: as many as threads. None: `shards` only. */
    const size_t *shard_counts;
    size_t shard_count_count;
    /* Asked, by the calling thread, also while the source is listed and nothing is tried yet. NULL:
     * only on_trial is */
    presto_stop_fn should_stop;
    void *should_stop_user;
    /* Only the pipeline's own representations. Else PRESTO_SEEKABLE is one more where `stored` does
     * not leave it out, presto_pipeline_seekable finds it worth trying, and half of a few samples or
     * more are JPEGs that index-jpeg takes; the last is not asked if `stored` names it. Default
     * false */
    bool no_seekable;
} presto_sweep_options;

PRESTO_API void presto_sweep_options_init(presto_sweep_options *options, size_t struct_bytes);
static inline void presto_sweep_options_defaults(presto_sweep_options *options) {
    presto_sweep_options_init(options, sizeof *options);
}

typedef struct presto_sweep presto_sweep;

/**
 * Run the sweep. A strategy that fails is reported as failed, the others go on; it fails as a whole
 * if every strategy fails or the input cannot be opened.
 *
 * Returns: PRESTO_ERR_NOT_FOUND (unknown representation or codec: the message lists what there is),
 *          PRESTO_ERR_UNSUPPORTED (a codec that this build lacks), PRESTO_ERR_ARGUMENT (a representation
 *          that cannot be stored, a codec that not every TensorFlow reads, weights, counts, a
 *          journal of another sweep),
 *          PRESTO_ERR_STOPPED, or what the source, the pipeline or the first failed strategy gave.
 *          On failure *sweep_out holds what was known until then, if a strategy had been run or
 *          predicted; else NULL. What was neither counts as failed.
 *
 * Threads: one sweep at a time in a process, and nothing else running in it: CPU, disk and memory
 *          are the process's.
 *
 * Owner:   caller, presto_sweep_free. what the options point to may go once it returns.
 */
PRESTO_API presto_status presto_sweep_run(const char *const *paths, size_t path_count,
                                          const presto_sweep_options *options,
                                          presto_sweep **sweep_out, presto_error *err);
PRESTO_API void presto_sweep_free(presto_sweep *sweep);

PRESTO_API size_t presto_sweep_result_count(const presto_sweep *sweep);
PRESTO_API const presto_strategy_result *presto_sweep_result(const presto_sweep *sweep, size_t i);
/**
 * Position of the recommended strategy: of those whose score equals the best as far as the runs
 * tell, the one that needs the least storage, then threads, then preparation.
 */
PRESTO_API size_t presto_sweep_best(const presto_sweep *sweep);
/** The prices it was chosen by. Owned by the sweep. */
PRESTO_API const presto_sweep_prices *presto_sweep_get_prices(const presto_sweep *sweep);
/** The limits it was chosen under, and does it keep them? Owned by the sweep. */
PRESTO_API const presto_sweep_limits *presto_sweep_get_limits(const presto_sweep *sweep);
PRESTO_API presto_sweep_verdict presto_sweep_get_verdict(const presto_sweep *sweep);
/** Why it, in one to three sentences with numbers. Owned by the sweep until presto_sweep_score. */
PRESTO_API const char *presto_sweep_reason(const presto_sweep *sweep);
/** Score all results again with other weights (best, reason and commands follow). */
PRESTO_API presto_status presto_sweep_score(presto_sweep *sweep, const presto_weights *weights,
                                            presto_error *err);
/**
 * The i-th thing that a reader of the figures must know ("cold epochs were not cold: ..."), NULL
 * past the last.
 */
PRESTO_API const char *presto_sweep_note(const presto_sweep *sweep, size_t i);

/** How a rival stands to the leader: the one with the best score, or what costs least. */
typedef enum presto_sweep_standing {
    PRESTO_SWEEP_UNKNOWN = 0, /* the runs do not tell */
    PRESTO_SWEEP_EQUAL = 1,   /* within `same` of it */
    PRESTO_SWEEP_WORSE = 2,   /* by more than `same`; with a target: does not reach it */
    PRESTO_SWEEP_REACHES = 3  /* with a target: it reaches it */
} presto_sweep_standing;

/** A strategy that was near enough to the best to be measured again. */
typedef struct presto_sweep_rival {
    size_t result; /* its position */
    presto_sweep_standing standing;
    uint64_t rounds; /* runs of it that were compared with those of the leader */
    /* What it is worth over what the leader is worth, and the interval that holds the true value:
     * of the rates; with several weights, of the rates that would give their scores by themselves;
     * with prices, the leader's cost over its own; with a target, its rate over the target and
     * headroom. NaN: unknown. */
    double ratio, ratio_least, ratio_most;
    uint64_t reserved[2];
} presto_sweep_rival;

/** How sure the recommendation is. */
typedef struct presto_sweep_confidence {
    bool is_decided;    /* repeated sweeps would recommend the same */
    double same;        /* strategies that differ by less count as equal: 0.02 */
    double error;       /* probability that it is called decided and is not: 0.05 at most */
    size_t leader;      /* position; SIZE_MAX: the rivals are compared with the target */
    size_t rival_count; /* without the leader */
    const presto_sweep_rival *rivals;
    size_t left_out; /* strategies about as near that were not measured again */
    uint64_t rounds; /* in which they took turns */
    double spent_s;
    /* Strategies that are only predicted, and could change the choice if they were run: how many,
     * and the position of the one that may be most ahead (of the recommended one itself, if it was
     * not run); SIZE_MAX: none. */
    size_t not_run_count, not_run;
    /* Epochs of those that the choice is between were short, so that nothing is decided: this part of
     * the longest one was its start. 0: they were long enough; NaN: too short to tell. */
    double start_part;
    uint64_t reserved[1];
} presto_sweep_confidence;
/** Owned by the sweep until presto_sweep_score. */
PRESTO_API const presto_sweep_confidence *presto_sweep_get_confidence(const presto_sweep *sweep);
/** Position of the i-th best (i < 10) after the recommended one, by score or cost, of those that
 * keep the limits; SIZE_MAX past the last. */
PRESTO_API size_t presto_sweep_runner_up(const presto_sweep *sweep, size_t i);

/** What would be recommended if one thing were different. */
typedef struct presto_sweep_what_if {
    const char *condition; /* "with twice the target, 1,000 samples/s" */
    size_t result;         /* position */
    bool is_other;         /* than what is recommended and what is as good */
    /* No strategy reaches the target or keeps the limits: the nearest to the target. */
    bool is_missed;
    uint64_t reserved[2];
} presto_sweep_what_if;
/** The i-th question that was asked of the figures, and its answer; NULL past the last. Owned by
 * the sweep until presto_sweep_score. */
PRESTO_API const presto_sweep_what_if *presto_sweep_get_what_if(const presto_sweep *sweep,
                                                                size_t i);

/** What was measured on what. Owned by the sweep. */
typedef struct presto_sweep_facts {
    uint64_t samples;        /* of each epoch */
    uint64_t sample_bytes;   /* their bytes in the source */
    uint64_t source_samples; /* of the whole source */
    uint64_t source_bytes;
    size_t batch_samples; /* of the loads, as measured */
    double elapsed_s;     /* of the whole sweep */
    char cpu_model[128];
    unsigned cpus; /* that the process may run on */
    uint64_t memory_bytes;
    char kernel[160];
    char filesystem[32]; /* type of the work folder's, e.g. "ext4" */
    char started[32];    /* ISO 8601, UTC */
} presto_sweep_facts;
PRESTO_API const presto_sweep_facts *presto_sweep_get_facts(const presto_sweep *sweep);

/**
 * Become the one who writes results into `dir`, made if missing; best before the sweep starts. A
 * folder that holds results.json or trials.jsonl, the journal of a sweep, is refused unless
 * `may_replace`.
 *
 * Owner:   the caller has *lock_out until presto_folder_lock_release.
 * Returns: PRESTO_ERR_ARGUMENT (it holds results); PRESTO_ERR_BUSY (another process, or another lock
 *          of this one, has the folder; the message says which; presto/file.h); as
 *          presto_sweep_write.
 */
PRESTO_API presto_status presto_sweep_claim(const char *dir, bool may_replace,
                                            presto_folder_lock **lock_out, presto_error *err);

/**
 * Write results.csv, results.json, strategy.yaml (the recommended strategy) and, where the build
 * has the charts' library, report.html into `dir`, made if missing; each by temporary name, fsync
 * and rename.
 */
PRESTO_API presto_status presto_sweep_write(const presto_sweep *sweep, const char *dir,
                                            presto_error *err);

/**
 * The command lines to run next, quoted for a POSIX shell, e.g. "presto-write -p cv -u resized -c
 * zstd:3 ...". They run as they are, in a terminal too: the load counts what it delivers
 * (--format null). The write command is NULL where the best is to read the source as it is. Owned
 * by the sweep until presto_sweep_score.
 */
PRESTO_API const char *presto_sweep_write_command(const presto_sweep *sweep);
PRESTO_API const char *presto_sweep_load_command(const presto_sweep *sweep);

/**
 * A strategy as strategy.yaml holds it.
 * Owner:   all pointers are this struct's; presto_strategy_file_done frees them.
 */
typedef struct presto_strategy_file {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    char *pipeline;      /* name of a built-in one, or an absolute path */
    char **set;          /* changes to it, for presto_pipeline_options.set */
    size_t set_count;
    char *stored;
    char *codec;   /* canonical text; NULL with "unprocessed" */
    size_t shards; /* 0 with "unprocessed" */
    unsigned threads;
    size_t batch_samples;
    uint64_t seed;
    /* what the sweep measured or extrapolated; NaN where the file does not say */
    double expected_samples_per_s;        /* cold, median */
    double expected_cached_samples_per_s; /* median */
    double expected_stored_bytes;         /* of the whole source */
    double expected_preparation_s;        /* of the whole source */
    bool
        has_old_names; /* it calls `stored` "split", as 0.2.0 did. Later versions may not take it */
} presto_strategy_file;

/**
 * Read strategy.yaml. Zero-initialise *out (as presto_strategy_file_done leaves it).
 * Returns: PRESTO_ERR_IO, PRESTO_ERR_SYNTAX (message starts with "line L: "; unknown keys, wrong
 * types and values out of range included), PRESTO_ERR_NOT_FOUND or PRESTO_ERR_UNSUPPORTED (the
 * codec). Whether the pipeline has the representation is not checked here.
 */
PRESTO_API presto_status presto_strategy_load_sized(const char *path, presto_strategy_file *out,
                                                    presto_error *err);
static inline presto_status presto_strategy_load(const char *path, presto_strategy_file *out,
                                                 presto_error *err) {
    out->struct_bytes = sizeof *out;
    return presto_strategy_load_sized(path, out, err);
}
PRESTO_API void presto_strategy_file_done_sized(presto_strategy_file *strategy);
static inline void presto_strategy_file_done(presto_strategy_file *strategy) {
    if (strategy != NULL)
        strategy->struct_bytes = sizeof *strategy;
    presto_strategy_file_done_sized(strategy);
}

/**
 * Does the strategy belong to what the stream reads? A strategy is about one form of one pipeline's
 * samples: representation, codec, and the pipeline's name, where its text can be read. Of a raw source, and
 * of files of other programs, nothing is known, so nothing is checked.
 * Threads: any.
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT: the message says what the dataset holds instead.
 */
PRESTO_API presto_status presto_strategy_check(const presto_strategy_file *strategy,
                                               const presto_stream *stream, presto_error *err);

#ifdef __cplusplus
}
#endif

#endif
