/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room predict: what strategies would do that are not run. Each split is run without a codec, on
 * one thread and on all processors (the anchors); codecs are tried on the records that this stored;
 * storage and memory are probed. A model of the parts then gives rates, time and storage of every
 * strategy. Some strategies are run to confirm it, and calibrate it.
 * May see: base, storage, records, steps, loader, and the headers of profile/.
 * Invariants: a figure is per sample and in seconds or bytes unless its name says otherwise; pairs
 * are for one thread and for all processors of this machine; NaN is unknown.
 * Threads: one, but for the probes, which start and join their own.
 */
#ifndef PRESTO_PREDICT_INTERNAL_H
#define PRESTO_PREDICT_INTERNAL_H

#include <jansson.h>

#include "../choice/sure_internal.h"

/** A figure for one thread, and one for as many threads as this machine has processors. */
typedef struct presto__pair {
    double one, all;
} presto__pair;

/** A part of a sample's way: a step, or a stage such as reading. Of one thread. */
typedef struct presto__model_part {
    char name[64];
    bool is_step;
    double busy_s;
} presto__model_part;

/** A worker's times in epochs: those of the clock * threads. */
typedef struct presto__worker_times {
    presto__pair cold_s, cached_s;
} presto__worker_times;

/** Records that were loaded in a codec, and without one. */
typedef struct presto__model_trial {
    uint64_t samples;               /* the first so many; 0: it was not loaded */
    double raw_bytes, stored_bytes; /* mean; the latter is only known until sizes are set */
    presto__worker_times coded;
    presto__pair plain_cached_s; /* without a codec; only where these are a part of the samples */
} presto__model_trial;

/** A codec on the records of a split. */
typedef struct presto__model_codec {
    bool is_known;         /* false: it cannot be used there, and nothing below counts */
    presto_error *failure; /* why not; NULL: not known. Owned */
    double stored_bytes;   /* with framing */
    presto__pair compress_s, decompress_s; /* of a thread */
    presto__model_trial tried;             /* in the loader */
    presto__worker_times times;
    presto__pair wait_s;                                   /* of the cold time: for storage */
    presto__pair cold_anchor, cached_anchor;               /* measured rate / that of the formula */
    double cold_factor, cached_factor, preparation_factor; /* of calibration; 1 without */
    uint64_t records;                                      /* that it was tried on, alone */
} presto__model_codec;

/** What each file costs that a dataset has more. It is of the clock: threads share it. */
typedef struct presto__model_files {
    uint64_t tried;                /* in so many files the split was stored to see; 0: it was not */
    presto__pair cold_s, cached_s; /* of an epoch */
    double prepare_s;
} presto__model_files;

/** What is known of a split. */
typedef enum presto__split_known {
    PRESTO__SPLIT_UNKNOWN = 0,   /* nothing: there was no trial that stored it */
    PRESTO__SPLIT_LOOKED_AT = 1, /* what an anchor stored was looked at */
    PRESTO__SPLIT_MEASURED = 2   /* and its anchors were measured */
} presto__split_known;

/** A split, as its anchors are. */
typedef struct presto__model_split {
    const char *name; /* the space's */
    presto__split_known known;
    presto_error failure;   /* why that cannot be; status 0: it can */
    presto_error lack;      /* the disk was full: looks at codecs or files are missing. As above */
    bool is_recalled;       /* what probes tell of it is from the journal */
    bool is_apart;          /* start_s is of cold epochs: rates are those of the whole source */
    bool is_raw;            /* unprocessed: there are no codecs; codecs[0] is the source itself */
    double records;         /* that a sample of the source gives: some give none, or several */
    double delivered;       /* samples of an epoch that it gives, likewise */
    double raw_bytes;       /* serialized, before codec and framing */
    double plain_bytes;     /* as stored without a codec, with framing; of the source if raw */
    double delivered_bytes; /* of a row of a batch */
    double reads;           /* of storage */
    presto__worker_times times; /* without a codec, as the anchors were measured */
    double read_s_per_byte;     /* a worker's, page cache warm: copying and checksums */
    double cold_cpu_s_per_byte; /* processor time that storage costs */
    double handover_s;          /* of the thread that hands out batches */
    double touched_bytes;       /* of memory: read and written */
    presto__pair start_s;       /* of an epoch by itself: threads, first reads */
    presto__pair prepare_s;     /* a worker's, without codec */
    double prepare_io_s;        /* of storage, which no thread shortens */
    double list_s;              /* of a conversion: of listing the whole source */
    presto__model_files files;
    double record_error;       /* half of the 95 % interval of the mean record, relative */
    presto__model_part *parts; /* of a cached epoch on one thread. Owned */
    size_t part_count;
    presto__model_codec *codecs; /* as many as the model has; at least one. Owned */
} presto__model_split;

/** The loader's cache in memory, once it is filled. It is the same for all splits and codecs. */
typedef struct presto__model_cache {
    uint64_t samples;      /* that were tried; 0: not known */
    presto__pair worker_s; /* a worker's time for a sample */
    double bytes;          /* of memory, for a sample */
} presto__model_cache;

/** How the time of a step, or of a whole sample, is spread: one thread, steps not fused. */
typedef struct presto__step_cost {
    char name[64];
    bool is_step;
    double wall_mean_s, wall_p10_s, wall_median_s, wall_p90_s, wall_most_s;
    double cpu_mean_s; /* NaN: only known for the whole sample */
    double out_bytes;  /* mean size of what it yields; NaN: it yields nothing */
} presto__step_cost;

struct presto__model {
    unsigned cores;   /* of this machine: threads of the second figure of each pair */
    size_t shards;    /* of an anchor; 0: as many as threads */
    uint64_t samples; /* of an epoch of a trial */
    uint64_t source_samples;
    presto_storage storage; /* that the rates are for */
    bool is_storage_given;  /* false: it was probed */
    double overlap; /* exponent of reading and computing together: 1 by turns, many: at once */
    presto__pair memory_bytes_per_s;
    presto__model_cache cache;
    presto__model_split *splits; /* of the space, in its order. Owned */
    size_t split_count;
    const char **codecs; /* the space's, and none. The array is owned */
    size_t codec_count;
    presto__step_cost
        *steps; /* in the order of the pipeline; the last is the whole sample. Owned */
    size_t step_count;
    uint64_t step_samples; /* that they are of */
    double uncertainty;    /* relative, of a rate */
};

void presto__model_free(presto__model *model);

/* ---- model.c: from the model to a strategy. No clock, no files: only arithmetic ---- */

/** Under which conditions a strategy is asked for. */
typedef struct presto__conditions {
    presto_storage storage;
    unsigned cores;                /* 0: those here; as many as threads if these compute on more */
    double consumer_samples_per_s; /* the training takes no more; 0: any number */
} presto__conditions;

/** Those that the model was made under. */
presto__conditions presto__model_conditions(const presto__model *model);

typedef struct presto__rates {
    double cold_samples_per_s, cached_samples_per_s;
    double memory_samples_per_s; /* from the loader's cache in memory; NaN: unknown */
    presto_sweep_bound cold_bound, cached_bound;
    bool
        is_elsewhere; /* its threads compute on more processors than are here: the rates are those of
                          a machine that has as many */
} presto__rates;

/** The rates of a strategy under conditions; NULL: the model's own. False: nothing is known of its
 * split or its codec there. Calibrated. */
bool presto__model_rates(const presto__model *model, const presto_strategy *strategy,
                         const presto__conditions *conditions, presto__rates *rates_out);
/** Offline: preparing `samples` samples, and storing them. */
typedef struct presto__offline {
    double preparation_s, list_s, stored_bytes, raw_bytes; /* list_s: of preparation_s */
} presto__offline;
bool presto__model_offline(const presto__model *model, const presto_strategy *strategy,
                           uint64_t samples, presto__offline *offline_out);

/* ---- fit.c: from trials to the model ---- */

/** The anchors of split s have been measured: take over what they say. */
presto_status presto__model_take_split(presto__model *model, const presto_sweep *sweep, size_t s,
                                       presto_error *err);
/** All splits are taken over: fit how reading and computing overlap, and the anchors to it. */
void presto__model_fit(presto__model *model);
/** Learn from strategies that were run: how far predictions without calibration were off. */
void presto__model_calibrate(presto__model *model, const presto_sweep *sweep);
/** Is trial i one that the model rests on? */
bool presto__is_anchor(const presto_sweep *sweep, size_t i);

/* ---- probes ---- */

/** codecs.c: try all codecs on the records in `dir`, which stores split s without a codec. */
presto_status presto__probe_codecs(presto__model *model, presto__runner *runner, size_t s,
                                   const char *dir, presto_error *err);
/** A codec to be tried in the loader. */
typedef struct presto__online {
    const presto__model *model;
    presto__runner *runner;
    const presto__model_split *split;
    const char *codec_name;
    const char *dir; /* of the dataset that stores the split without a codec */
    double ratio;    /* of bytes in the codec to those without, of records that were tried */
} presto__online;
/** online.c: store some records of the dataset in the codec, and load them. Sets codec->tried,
 * unless the codec makes no difference. */
presto_status presto__probe_online(const presto__online *what, presto__model_codec *codec,
                                   presto_error *err);
/** files.c: store the split of `what` in one file and in up to `most`, without a codec, and load
 * both: what does a file cost? */
presto_status presto__probe_files(const presto__online *what, size_t most,
                                  presto__model_files *files_out, presto_error *err);
/** A file costs about the same whatever is in it: all splits get what is in the middle of theirs,
 * of two the less, so that one disturbed look does not count. */
void presto__join_files(presto__model *model);
/** storage.c: what the storage of the work folder gives to one thread and to several. */
presto_status presto__probe_storage(const presto__runner *runner, unsigned cores,
                                    presto_storage *storage_out, presto_error *err);
/** memory.c: bytes copied per second, by one thread and by all processors. */
presto_status presto__probe_memory(const presto__runner *runner, unsigned cores,
                                   presto__pair *bytes_per_s_out, presto_error *err);
/** steps.c: one pass over the sample, sample by sample, with all steps. */
presto_status presto__probe_steps(presto__model *model, presto__runner *runner, presto_error *err);
/** cache.c: epochs from the loader's cache in memory. */
presto_status presto__probe_cache(presto__model *model, presto__runner *runner, presto_error *err);
/** Tell what it would bring. */
presto_status presto__note_cache(presto_sweep *sweep, presto_error *err);
/** start.c: how long an epoch of the trial's dataset, or of the source, takes to get under way. */
presto_status presto__probe_start(const presto__runner *runner, const presto__trial *trial,
                                  double *seconds_out, presto_error *err);

/** threads.c: run `work` in `count` threads at once, with the numbers from 0; returns when all have
 * ended. PRESTO_ERR_MEMORY if a thread could not be started. */
presto_status presto__run_together(unsigned count, void (*work)(void *user, unsigned number),
                                   void *user, presto_error *err);

/* ---- recall.c: what probes have found, for the journal and from it ---- */

/** Of the machine and the steps; of split s, before its anchors are taken over. NULL: no memory.
 * Owner: caller. */
json_t *presto__machine_probe_json(const presto__model *model);
json_t *presto__split_probe_json(const presto__model *model, size_t s);
/** The other way. PRESTO_ERR_SYNTAX: it was not written by these. */
presto_status presto__machine_recall(presto__model *model, const json_t *probe, presto_error *err);
presto_status presto__split_recall(presto__model *model, size_t s, const json_t *probe,
                                   presto_error *err);

/* ---- spare.c ---- */

/** Are anchor i, and all that is predicted from it, so far behind that no more runs of it matter? It
 * has been run once at least. */
bool presto__anchor_has_enough(const presto_sweep *sweep, const presto__runner *runner, size_t i);

/* ---- make.c: the sweep's model ---- */

/** Probe, run the anchors and make sweep->model. */
presto_status presto__make_model(presto_sweep *sweep, presto__runner *runner, presto_error *err);

/* ---- predict.c: the sweep ---- */

/** Run the anchors, make the model, run what confirms it, predict the others. */
presto_status presto__predict_sweep(presto_sweep *sweep, presto__runner *runner, presto_error *err);
/** Give trial i, which has not been run, the figures of the model. False: it knows none. */
bool presto__predict_result(presto_sweep *sweep, const presto__runner *runner, size_t i);
/** Compare all that was run with what was predicted: for a sweep that ends early. */
void presto__predict_compare(presto_sweep *sweep);

/** json.c: the object `model` of results.json; NULL: no memory. Owner: caller. */
json_t *presto__model_json(const presto_sweep *sweep);

/* ---- what codecs are tried on: records.c, sizes.c, codecs.c ---- */

/** Some records of a split, evenly spread, without their frames; and parts of more of them. All
 * arrays are owned. */
typedef struct presto__records {
    presto_buffer bytes;
    size_t *sizes;
    size_t *starts;
    uint64_t *numbers; /* of the record in the dataset */
    size_t count;
    size_t step; /* from one record to the next to try: so any part of them is from all over */
    /* Of every look_stride-th record of the dataset, in order, and so of all records above: parts
     * from its start to its end, one after the other. look_count 0: all records are above, or so
     * many that they are like the others. */
    presto_buffer parts;
    size_t *part_ends; /* of all parts of a record, in `parts` */
    double *weights;   /* bytes of the record / those of its parts */
    size_t look_count;
    uint64_t look_stride;
} presto__records;

/**
 * records.c: read records of the dataset in `dir`, which stores a split without a codec.
 *
 * mean_bytes: of a record.
 * Owner: caller, presto__records_done, after a failure too.
 */
presto_status presto__records_read(const char *dir, double mean_bytes, presto__records *all_out,
                                   presto_error *err);
void presto__records_done(presto__records *all);

/** What codecs made of records; each array has one place for each codec of the model and record. */
typedef struct presto__sizes {
    double *tried;     /* bytes of whole records; 0: this one was not tried */
    double *looks;     /* what a record takes, from its parts */
    bool *has_looks;   /* of a codec: it had the time for all parts */
    size_t look_count; /* of a codec */
} presto__sizes;

/** sizes.c: set stored_bytes of the split's codecs: what all records take, from those that it was
 * tried on. PRESTO_ERR_MEMORY. */
presto_status presto__set_sizes(const presto__model *model, presto__model_split *split,
                                const presto__records *all, const presto__sizes *sizes,
                                presto_error *err);

#endif
