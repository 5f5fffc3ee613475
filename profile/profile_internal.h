/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of profile/ share: the space of strategies, and how scores, texts and files are
 * made from what their trials measured (trial_internal.h). Nothing here knows a step, or the bytes
 * of a codec or a record.
 */
#ifndef PRESTO_PROFILE_INTERNAL_H
#define PRESTO_PROFILE_INTERNAL_H

#include <presto/numbers.h>
#include <presto/sweep.h>

#include "journal_internal.h"
#include "trial_internal.h"

/* ---- text.c: words and quoting ---- */

/** Append formatted text; the buffer stays NUL-terminated beyond its `bytes`. */
presto_status presto__text_add(presto_buffer *text, presto_error *err, const char *format, ...)
    PRESTO_PRINTF(3, 4);
/** One field of a CSV file (RFC 4180): quoted where it must be. */
presto_status presto__text_add_csv(presto_buffer *text, const char *field, presto_error *err);
/** One word of a POSIX shell's command line: quoted where it must be. */
presto_status presto__text_add_shell(presto_buffer *text, const char *word, presto_error *err);

/* ---- space.c: which strategies there are ---- */

/** Zero-initialise. Owns the strategies' texts. */
typedef struct presto__space {
    char **splits; /* in the pipeline's order, each once */
    size_t split_count;
    char **codecs; /* canonical, in the given order, each once */
    size_t codec_count;
    unsigned *threads;
    size_t thread_count;
    presto_strategy *strategies; /* by split, then codec, then threads */
    size_t strategy_count;
} presto__space;

presto_status presto__space_init(const presto_pipeline *pipeline,
                                 const presto_sweep_options *options, presto__space *space_out,
                                 presto_error *err);
void presto__space_done(presto__space *space);
/** "resized with zstd:1 on 2 threads"; "the unprocessed files on 1 thread". */
char *presto__strategy_format(const presto_strategy *strategy, char *text_out, size_t bytes);
#define PRESTO__STRATEGY_TEXT_BYTES 256

/* ---- the sweep itself (sweep.c) ---- */

/** Strategies that are measured again at most. */
#define PRESTO__CONTENDERS_MOST 6

/** What strategies are compared by when they take turns. */
typedef enum presto__matter {
    PRESTO__BY_SCORE,
    PRESTO__BY_RATE, /* no strategy reaches the target: which is nearest? */
    PRESTO__BY_COST,
    PRESTO__BY_TARGET,
} presto__matter;

/** The options that outlive the run. All texts owned. */
struct presto_sweep {
    presto__space space;
    presto__trial *trials; /* one per strategy, same order */
    size_t trial_count;
    presto_sweep_facts facts;
    bool is_spread;      /* the sample was taken from all over the source */
    char *pipeline;      /* as the user named it */
    char *pipeline_name; /* as it calls itself */
    char *pipeline_json;
    char **set; /* the changes it was read with */
    size_t set_count;
    char **plugins; /* and the plugins beside those that it names itself */
    size_t plugin_count;
    bool runs_code;    /* a step is of a plugin, or runs a program */
    char *dataset_dir; /* NULL: from pipeline and split */
    char *work_dir;
    char **paths;
    size_t path_count;
    unsigned runs, preparation_runs, cold_epochs;
    double run_s;
    uint64_t seed;
    presto_weights weights;
    presto_sweep_limits limits;
    presto_sweep_prices prices;
    presto_sweep_verdict verdict;
    presto__journal *journal; /* NULL: none, or it could not be written any more */
    bool is_stopped;          /* before all was measured */
    size_t best;              /* the recommended one */
    size_t first;             /* the one with the best score */
    double decide_s;
    double race_s;   /* that rounds have taken */
    uint64_t rounds; /* so many, the last of which has this number */
    presto__matter matter;
    presto_sweep_confidence confidence;
    presto_sweep_rival rivals[PRESTO__CONTENDERS_MOST];
    presto_buffer reason, write_command, load_command;
    char **notes;
    size_t note_count;
};

/* ---- notes.c ---- */

presto_status presto__add_note(presto_sweep *sweep, presto_error *err, const char *format, ...)
    PRESTO_PRINTF(3, 4);
/** The notes on how the figures were taken. */
presto_status presto__write_notes(presto_sweep *sweep, presto_error *err);

/* ---- score.c ---- */

presto_status presto__weights_check(const presto_weights *weights, presto_error *err);

/** What a strategy is judged by; the order in an array is that of the results. */
typedef struct presto__merit {
    bool counts; /* false: failed, left out */
    double preparation_s, stored_bytes;
    presto_spread samples_per_s;
    unsigned threads;
    presto_spread cost; /* by prices: with the fastest run, the median and the slowest */
} presto__merit;

presto__merit presto__merit_of(const presto_strategy_result *result);

/** What is compared, and by which weights. */
typedef struct presto__contest {
    const presto__merit *merits;
    size_t count;
    presto_weights weights;
    bool by_cost; /* not by weights */
} presto__contest;

/**
 * scores_out[i] = weighted sum of the metrics, each normalized to [0, 1] between the least and the
 * most of all that count (1 is best; if all are equal, 1); NaN for those that do not count. Returns
 * the position of the best, SIZE_MAX if none counts. Ties go to the higher throughput, the smaller
 * storage, the shorter preparation, the earlier place.
 */
size_t presto__score(const presto__contest *contest, double *scores_out);
/**
 * is_equal_out[i]: does its score equal that of `first` (what presto__score returned) within the
 * spread of their runs? `first` equals itself. If throughput has no weight, nothing else does: then
 * scores do not vary, and `first` is the fastest of those with its score.
 */
void presto__score_equals(const presto__contest *contest, const double *scores, size_t first,
                          bool *is_equal_out);
/**
 * Of the equal ones (at least one), the position of the one that needs least: storage, then
 * threads, then preparation time; then the earlier place.
 */
size_t presto__score_cheapest(const presto__contest *contest, const bool *is_equal);
/** What `a` needs less of than `b`; the first difference counts. */
typedef enum presto__saving {
    PRESTO__SAVES_NOTHING,
    PRESTO__SAVES_STORAGE,
    PRESTO__SAVES_THREADS,
    PRESTO__SAVES_PREPARATION,
} presto__saving;
presto__saving presto__merit_saving(const presto__merit *a, const presto__merit *b);

/** The rate that all of its runs reach, without regard to one run in a slow phase of the machine. */
double presto__merit_slowest_rate(const presto__merit *merit);

/* ---- cost.c ---- */

presto_status presto__prices_check(const presto_sweep_prices *prices, presto_error *err);
bool presto__prices_given(const presto_sweep_prices *prices);

/** What a strategy costs, in parts, at some rate. */
typedef struct presto__bill {
    double storage, preparation, training;
} presto__bill;

presto__bill presto__bill_at(const presto_sweep *sweep, const presto_strategy_result *result,
                             double samples_per_s);
/** The sums for the fastest run, the median and the slowest one, as presto__merit_slowest_rate sees
 * it. */
presto_spread presto__cost_of(const presto_sweep *sweep, const presto_strategy_result *result);

/* ---- choose.c ---- */

/** What is to be recommended. */
typedef struct presto__choice {
    size_t best;  /* the recommended one */
    size_t first; /* the one with the best score */
    presto_sweep_verdict verdict;
} presto__choice;

/**
 * Choose by weights and limits. Those that exceed the limits of storage or preparation no longer
 * count (merits are changed), unless all of them do. With a target, is_equal_out tells which reach
 * it, and the one of them that needs least is the best; if none does, the fastest. By cost, the one
 * that costs least is the best, and is_equal_out tells whose range of costs overlaps with its.
 */
presto__choice presto__choose(presto__merit *merits, const presto__contest *contest,
                              const presto_sweep_limits *limits, double *scores_out,
                              bool *is_equal_out);
presto_status presto__limits_check(const presto_sweep_limits *limits, presto_error *err);
/** The rate that reaches the target: with its headroom. */
double presto__goal(const presto_sweep_limits *limits);
/** As presto__choose does if no strategy reaches the target. */
presto__choice presto__choose_fastest(const presto__contest *contest, double *scores_out,
                                      bool *is_equal_out);

/* ---- reason.c ---- */

/** Explains in words why `sweep->best` was chosen. */
presto_status presto__reason(const presto_sweep *sweep, presto_buffer *text_out, presto_error *err);

/* ---- command.c ---- */

presto_status presto__write_command(const presto_sweep *sweep, presto_buffer *text_out,
                                    presto_error *err);
presto_status presto__load_command(const presto_sweep *sweep, presto_buffer *text_out,
                                   presto_error *err);
/** The dataset folder that the commands name; NULL if memory ran out. Owner: caller. */
char *presto__dataset_dir(const presto_sweep *sweep);

/* ---- results.c, report.c, strategy.c ---- */

presto_status presto__results_csv(const presto_sweep *sweep, presto_buffer *text_out,
                                  presto_error *err);
presto_status presto__results_json(const presto_sweep *sweep, presto_buffer *text_out,
                                   presto_error *err);
/** One HTML file; PRESTO_ERR_UNSUPPORTED if this build has no charts. */
presto_status presto__report_html(const presto_sweep *sweep, presto_buffer *text_out,
                                  presto_error *err);
bool presto__report_is_built(void);
/* Made at build time (embed.cmake). */
extern const unsigned char presto__report_template[];
extern const unsigned char presto__report_charts[];
presto_status presto__strategy_yaml(const presto_sweep *sweep, presto_buffer *text_out,
                                    presto_error *err);
/** Can strategy.yaml name it? Checked before hours of measuring. */
presto_status presto__strategy_check_pipeline(const char *pipeline, presto_error *err);
presto_status presto__strategy_parse(presto_span yaml, const char *file, presto_strategy_file *out,
                                     presto_error *err);

#endif
