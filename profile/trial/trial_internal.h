/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room trial. One trial: what is run, what is measured meanwhile, and what that says about the whole. Trials
 * use the public API only, as any user would. Nothing here compares strategies.
 * May see: base, storage, room stats, and the headers of profile/.
 */
#ifndef PRESTO_PROFILE_TRIAL_INTERNAL_H
#define PRESTO_PROFILE_TRIAL_INTERNAL_H

#include <presto/processors.h>
#include <presto/sweep.h>

#include "../../loader/loader_internal.h"
#include "../stats/estimate_internal.h"
#include "pace_internal.h"

/* ---- metrics.c: the process and the machine ---- */

/** Counters at one moment. */
typedef struct presto__usage {
    uint64_t wall_ns;
    double cpu_user_s, cpu_system_s;
    double context_switches;
    double disk_read_bytes; /* NaN: not provided */
    double machine_iowait_s, machine_steal_s,
        machine_busy_s; /* summed over all CPUs; NaN: not provided */
} presto__usage;

/** The differences between two moments. */
typedef struct presto__measure {
    double wall_s;
    double cpu_user_s, cpu_system_s;
    double context_switches;
    double disk_read_bytes;
    double machine_iowait_s, machine_steal_s, machine_busy_s;
    double peak_rss_bytes;
} presto__measure;

/** Watches a stretch of work. */
typedef struct presto__watch {
    presto__usage start;
    bool peak_is_reset;    /* VmHWM counts from the start of the watch */
    double peak_rss_bytes; /* else: largest of the samples taken by presto__watch_sample */
} presto__watch;

void presto__watch_start(presto__watch *watch);
/**
 * Cheap enough for every few milliseconds. Needed only if the kernel does not let us reset the
 * peak.
 */
void presto__watch_sample(presto__watch *watch);
/** `wall_ns`: when the work ended (presto__clock_ns). */
void presto__watch_stop(presto__watch *watch, uint64_t wall_ns, presto__measure *measure_out);
/** Adds another stretch: sums, and the larger peak. */
void presto__measure_add(presto__measure *sum, const presto__measure *more);
/** Processor time of other processes; NaN: not known. */
double presto__others_s(const presto__measure *measure);

/**
 * Fill in CPU, memory, kernel, the file system of `dir` and the time. Unknown values are "unknown"
 * or 0.
 */
void presto__machine_facts(const char *dir, presto_sweep_facts *facts);
/** Bytes that may still be written to the file system of `dir`; UINT64_MAX if unknown. */
uint64_t presto__disk_free_bytes(const char *dir);
/** Did it fail for want of space? With room, it may succeed. */
bool presto__is_disk_full(const presto_error *failure);
/** CPUs of the machine, at least 1: those whose times a presto__measure sums. */
double presto__machine_cpus(void);

/* ---- sample.c: which samples are measured ---- */

/** Can the source of the pipeline be opened for single files, instead of the whole? */
bool presto__sample_can_spread(const presto_pipeline *pipeline);
void presto__paths_free(char **paths, size_t count);

/* ---- runner.c, conversion.c: one trial ---- */

/** Worker time in seconds per sample for one part of the work. */
typedef struct presto__cost {
    char name[64]; /* a step's name, or reading, decompressing, parsing, batching */
    bool is_step;
    double busy_s_per_sample;
} presto__cost;

/** One conversion. */
typedef struct presto__preparation {
    double wall_s, cpu_s;
    double list_s; /* of wall_s, for listing the whole source: it does not grow with the sample */
    double error_s_per_sample; /* half of the 95 % interval, by batch means; NaN: unknown */
} presto__preparation;

/** Some consecutive epochs, measured as one: those of a run in one state of the cache. */
typedef struct presto__epochs {
    uint64_t epochs;
    uint64_t samples, read_bytes, delivered_bytes; /* over all of them */
    presto__measure measure;
    double epoch_s; /* of one that is like most (pace_internal.h); not known: 0 or NaN */
    /* A cold epoch of another length (steady.c): what it delivered, and how long it took. 0 or NaN:
     * there was none. */
    double second_samples, second_s;
    /* Where threads wait together (rounds.c), it is compared with this one, instead of those of the
     * run: both are of one file. And what opening the other files of the whole adds to an epoch of
     * that. 0 or NaN: it is not so. */
    double less_samples, less_s, files_s, files_error_s;
    /* Of the last one; both 0 after the sweep was resumed. */
    presto__portions cut;   /* into parts */
    uint64_t storage_reads; /* of a storage that is played, of all */
    presto__cost *costs;    /* owned */
    size_t cost_count;
    double worker_wait_s, consumer_wait_s;
} presto__epochs;

/** Seconds of an epoch that is like most; where that is not known, of the mean one. */
double presto__epochs_typical_s(const presto__epochs *epochs);
/** Samples per second in it. */
double presto__epochs_rate(const presto__epochs *epochs);

/** A cold run in a round of the race: all of a round are measured one after another. */
typedef struct presto__lap {
    uint64_t round;
    double samples_per_s; /* of an epoch of the whole source, as far as this run tells */
} presto__lap;

/** copies.c: the records of a trial's dataset, stored several times; or the first ones of each file,
 * once; or so many in one file. Zero-initialise. */
typedef struct presto__copies {
    char *dir;             /* NULL: there are none */
    uint64_t times, bytes; /* that each record is stored; of all */
    uint64_t part;         /* of each file, the first of so many parts; 0: all of it */
    uint64_t in_one;       /* records, all of them in one file; 0: as many files as the trial has */
} presto__copies;

/** All that is known of one strategy. */
typedef struct presto__trial {
    presto_strategy_result result;
    bool gave_up; /* the disk was full: it keeps the runs that it has had, and has no more */
    char *dir;    /* its dataset while that exists; NULL otherwise */
    uint64_t dir_bytes;
    presto__copies copies; /* of that dataset */
    presto__preparation *preparations;
    size_t preparation_count;
    presto__epochs *cold, *cached;
    size_t cold_count, cached_count;
    presto__moments record_bytes; /* of the stored records with their framing */
    uint64_t record_half;         /* so many of the largest make up half of them; 0: many */
    presto__lap *laps;            /* by round */
    size_t lap_count;
    double rate_added; /* what other weights than that of throughput are worth (judge.c) */
    bool may_change;   /* it was not run, and a run of it could change the choice (judge.c) */
} presto__trial;

/** Conversions of a strategy that has so many runs. */
static inline unsigned presto__preparations_of(const presto_sweep_options *options, unsigned runs) {
    return options->preparation_runs < runs ? options->preparation_runs : runs;
}

static inline double presto__seconds(uint64_t ns) {
    return (double)ns * 1e-9;
}

/** Adds another stretch of epochs of the same strategy. Moves out of `more`. */
void presto__epochs_add(presto__epochs *sum, presto__epochs *more);
void presto__trial_done(presto__trial *trial);

/** Memory that was touched last. Zero-initialise. */
typedef struct presto__warmed {
    uint64_t bytes, at_ns;
} presto__warmed;

/** What all trials share. */
typedef struct presto__runner {
    const presto_pipeline *pipeline;
    const char *const *paths;
    size_t path_count;
    const presto_sweep_options *options;
    char **sample_paths; /* the files that are measured; NULL: the first of `paths` */
    size_t sample_path_count;
    presto_partition picked; /* which samples of the files; all zero: all */
    bool is_even;            /* the sample is from all over the source */
    char *work_dir;          /* the fresh folder inside options->work_dir; removed at the end */
    int work_lock;           /* of that folder, where the file system has locks; else -1 */
    presto_source *source;   /* raw, cut to the sample */
    char **notes;            /* of the whole source */
    size_t note_count;
    uint64_t skipped;        /* of the sample: they cannot be processed */
    presto_error first_skip; /* why the first one cannot */
    presto_plan *plan;       /* all steps, for the raw source */
    size_t batch_samples;
    uint64_t source_samples, source_bytes, samples, sample_bytes;
    uint64_t flight_bytes; /* of a loader's batches and reads; trials deliver the same batches */
    char source_identity[PRESTO_SOURCE_IDENTITY_BYTES];
    size_t next_dir;
    const char *const *all_paths; /* the whole source */
    size_t all_path_count;
    const presto__trial
        *trials; /* of the sweep, whose datasets take room; NULL: there are none yet */
    size_t trial_count;
    double copy_bytes_per_s; /* as copies were written last; 0: not known */
    presto_source *more;     /* a larger sample of the source (sample.c), NULL: none is open */
    char **more_paths;       /* its files, where it names them; owned */
    size_t more_path_count;
    uint64_t more_wanted; /* samples that it was opened for */
    presto__calm calm;
    presto__warmed warmed;
    /* passed on to on_trial */
    size_t done, total;
    presto_strategy reported; /* last */
    uint64_t asked_ns;        /* when on_trial was called last */
} presto__runner;

/**
 * Open source and plan, make the work folder, try the sample out. `runner` is zero but for
 * `total`, the number of trials. The caller calls presto__runner_done in any case.
 */
presto_status presto__runner_init(presto__runner *runner, const char *const *paths,
                                  size_t path_count, const presto_sweep_options *options,
                                  presto_error *err);
/** sample.c: the source that is measured, anew. PRESTO_END: it has the first samples of its files. */
presto_status presto__sample_open(const presto__runner *runner, presto_source **source_out,
                                  presto_error *err);
/** sample.c: open the sample instead of the whole source. */
presto_status presto__sample_take(presto__runner *runner, presto_error *err);
/** sample.c: a larger sample of the source than the sweep's, taken in the same way. Borrowed from the
 * runner, until it is asked for another one. */
presto_status presto__sample_open_more(presto__runner *runner, uint64_t wanted,
                                       presto_source **source_out, presto_error *err);
/** sample.c: can half of some samples, or more, be stored as JPEGs with an index? `seekable` is the
 * pipeline with the representation PRESTO_SEEKABLE. False, too, if they cannot be read. */
bool presto__sample_gains_index(const presto_pipeline *seekable, const char *const *paths,
                                size_t path_count, const presto_sweep_options *options);
/** Removes the work folder. */
void presto__runner_done(presto__runner *runner);
/** Trials leave out what the try-out left out: whether that is too much was seen there. */
presto_loader_errors presto__trial_errors(const presto__runner *runner);
/** The options that trials are loaded with. */
void presto__loader_options_of(const presto__runner *runner, unsigned threads, uint64_t epochs,
                               presto_loader_options *options_out);
/** Tell the user. PRESTO_ERR_STOPPED if the answer is to stop. */
presto_status presto__runner_report(presto__runner *runner, const presto_strategy *strategy,
                                    const presto_strategy_result *result, presto_error *err);
/** The same as a presto_stop_fn, of a runner, for what may wait long: it asks the user ten times a
 * second, and costs a look at the clock otherwise. */
bool presto__runner_stops(void *runner);
/** PRESTO_ERR_STOPPED if the sweep is to stop, for what measures without a loader. */
presto_status presto__runner_check(const presto__runner *runner, presto_error *err);
/** Write the trial's dataset (again); nothing to do for "unprocessed". It is measured unless it has
 * been often enough. */
presto_status presto__trial_prepare(presto__runner *runner, presto__trial *trial,
                                    presto_error *err);
/** warm.c: touch so much free memory, and some more, that the machine has it at hand; unless it was
 * touched just now. */
void presto__warm_memory(presto__warmed *last, uint64_t bytes);
/** Was as much touched so shortly before `now_ns` that the machine still has it? */
bool presto__is_warm(const presto__warmed *last, uint64_t bytes, uint64_t now_ns);
/** Bytes until the limits of the cgroups in `list` (as /proc/self/cgroup), whose files are below
 * `root`, and of those above them. UINT64_MAX: no limit. Beyond one, the system kills. */
uint64_t presto__group_room(const char *list, const char *root);
/** settle.c: read a dataset that was just written, unmeasured. */
presto_status presto__settle(const char *dir, presto_error *err);
/** One run: cold epochs, then cached ones. */
presto_status presto__trial_load(presto__runner *runner, presto__trial *trial, presto_error *err);
/** The cold epochs of one run. Its dataset must be there. */
presto_status presto__trial_lap(presto__runner *runner, presto__trial *trial, uint64_t round,
                                presto_error *err);
/** A run that is short, and not kept. */
typedef struct presto__look {
    uint64_t samples;                /* the first so many records of the dataset */
    double cold_run_s, cached_run_s; /* cold epochs last so long together, and cached ones */
    double epoch_s;                  /* a cached one, about; 0: not known */
    double cold_s, cached_s;         /* what was seen: of the clock, for a sample */
} presto__look;
/** Of a run or look, in one state of the cache. */
#define PRESTO__CACHED_EPOCHS_MOST 2000
/** Of a look, unless they are long. */
#define PRESTO__LOOK_EPOCHS_LEAST 3
/** pace.c: how many cached epochs of `epoch_s` each count in a look that is to last `run_s`. */
uint64_t presto__look_epochs(double run_s, double epoch_s);
/** Look at a strategy that stores something. Its dataset must be there. */
presto_status presto__trial_look(presto__runner *runner, presto__trial *trial,
                                 presto__look *look_io, presto_error *err);
presto_status presto__trial_add_lap(presto__trial *trial, presto__lap lap, presto_error *err);
/** Open a dataset of a trial with the steps that remain. The caller closes *stream_out, zero before. */
presto_status presto__trial_stream_open(const presto__runner *runner, const char *dir,
                                        presto_stream *stream_out, presto_error *err);
/** Remove the trial's dataset, and its copies. */
void presto__trial_remove(presto__trial *trial);

/* ---- copies.c ---- */

/** Bytes that copies may take beside all that trials hold. */
uint64_t presto__copies_room(const presto__runner *runner);
/** Store the records of the trial's dataset so many times over. Replaces earlier copies. */
presto_status presto__copies_make(presto__runner *runner, presto__trial *trial, uint64_t times,
                                  presto_error *err);
/** Store the first of `part` parts of each file, at least a record. Replaces earlier copies. */
presto_status presto__copies_make_part(presto__runner *runner, presto__trial *trial, uint64_t part,
                                       presto_error *err);
/** Store so many records in one file: those of the trial, again and again. Replaces earlier copies. */
presto_status presto__copies_make_one(presto__runner *runner, presto__trial *trial,
                                      uint64_t records, presto_error *err);
void presto__copies_remove(presto__copies *copies);

/* ---- rounds.c: epochs of threads that wait together. Only arithmetic ---- */

/** An epoch on a storage that is played. */
typedef struct presto__waiting {
    const presto_storage *storage;
    double threads, files;
    double samples; /* of all files together */
    double part_samples;
    double each_s;                 /* of the clock, of a sample, where no file is opened */
    double stored_bytes, worker_s; /* of a sample: read; what a thread computes */
    bool is_rough;                 /* sooner, and less exactly: for what is only predicted */
} presto__waiting;

/** How much longer it takes as its samples are in several files, and not in one; and how far that may be
 * off, as it depends on how the threads come to a new file. */
typedef struct presto__files_cost {
    double seconds, error_s;
} presto__files_cost;
presto__files_cost presto__files_cost_of(const presto__waiting *epoch);

/** Two epochs to compare. */
typedef struct presto__lengths {
    uint64_t less, more; /* samples; 0: there are not enough samples for that */
} presto__lengths;

/** The mean part. 0: not known. */
double presto__mean_part(presto__portions cut);
/** In whole rounds: in each, all threads take a part. The longer one has about `wanted` samples, or
 * more, and `most` at most. */
presto__lengths presto__lengths_of(presto__portions cut, unsigned threads, double wanted,
                                   double most);
/** Has an epoch of so many samples so few rounds that the last one, in which some threads have nothing
 * to do, counts for much? Or may its files be so short that opening them does? */
bool presto__has_few_rounds(presto__portions cut, unsigned threads, double samples, size_t files);

/* ---- whole.c: start of an epoch, and what it delivers then ---- */

/** What starts an epoch, as the runs tell: the middle, and half of its 95 % interval. NaN: they
 * do not tell. */
typedef struct presto__start {
    double seconds, error_s;
    /* Beside it, in an epoch of the whole: opening files that the runs did not open. */
    double files_s, files_error_s;
} presto__start;
/** summary.c: samples that one epoch of the trial delivered, and those of the whole source where the
 * sample delivers so many. */
uint64_t presto__samples_each(const presto__trial *trial);
double presto__whole_samples(const presto__runner *runner, uint64_t samples);
/** summary.c: samples per second of an epoch of the whole source, as the cold runs so far tell: the one
 * in the middle. NaN without a run. */
double presto__trial_whole_rate(const presto__runner *runner, const presto__trial *trial);
/** Runs that tell about it, at most. */
#define PRESTO__STARTS_MOST 64

presto__start presto__trial_start(const presto__trial *trial);
/** As one run tells: NaN if it had epochs of one length only. */
double presto__epochs_start_s(const presto__epochs *run);
/** Of the longest cold epoch of a run. */
double presto__epochs_longest_s(const presto__epochs *run);
double presto__epochs_longest_samples(const presto__epochs *run);
/** Samples per second of an epoch of `whole` samples with such a start; NaN: that is not known, and the
 * start counts as in the longest epoch of the run. */
double presto__epochs_whole_rate(const presto__epochs *run, presto__start start, double whole);
/** How long an epoch is to last in which the start matters little, where epochs are repeated for
 * run_s. */
double presto__long_epoch_s(double run_s);
/** Fill in trial->result from what was measured. */
presto_status presto__trial_summarize(const presto__runner *runner, presto__trial *trial,
                                      presto_error *err);

/* ---- measure.c: running a list of a sweep's trials ---- */

/** Which trials are run, and how often. */
typedef struct presto__measuring {
    const size_t *list; /* positions in sweep->trials */
    size_t count;
    unsigned runs;   /* that each is to have had in the end */
    bool keeps_last; /* the datasets of the last wave remain */
    /* A trial has had its runs; its dataset is removed next. NULL: nothing to do. */
    presto_status (*on_measured)(void *user, size_t trial, presto_error *err);
    /* A trial has had runs. Does it need no others? Asked again after each round. NULL: it does. */
    bool (*has_enough)(void *user, size_t trial);
    void *user;
} presto__measuring;

/** Run what is left of them. Fails only if the whole sweep is to end. */
presto_status presto__measure_list(presto_sweep *sweep, presto__runner *runner,
                                   const presto__measuring *what, presto_error *err);
/** Conversions and runs that this takes. */
size_t presto__measure_left(const presto_sweep *sweep, const presto__runner *runner,
                            const presto__measuring *what);
/** A journal that cannot be written is given up, with a note: what is measured counts more. */
presto_status presto__journal_give_up(presto_sweep *sweep, const presto_error *why,
                                      presto_error *err);
/** It has not failed. */
bool presto__trial_is_alive(const presto__trial *trial);
bool presto__trial_stores(const presto__trial *trial);
/** It has a run, and a conversion if it needs one. */
bool presto__trial_is_measured(const presto__trial *trial);

#endif
