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

#include "choice/choice_internal.h"
#include "stats/tails_internal.h"
#include "trial/journal_internal.h"
#include "trial/trial_internal.h"

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
    size_t *shards;              /* of a dataset, each once; 0: as many as threads */
    size_t shard_count;          /* of these numbers */
    presto_strategy *strategies; /* by split, then codec, then shards, then threads */
    size_t strategy_count;
} presto__space;

presto_status presto__space_init(const presto_pipeline *pipeline,
                                 const presto_sweep_options *options, presto__space *space_out,
                                 presto_error *err);
void presto__space_done(presto__space *space);
/** "resized with zstd:1 on 2 threads", "... in 16 files on 2 threads" where these are not as many
 * as threads; "the unprocessed files on 1 thread". */
char *presto__strategy_format(const presto_strategy *strategy, char *text_out, size_t bytes);
/** The strategy that stores split s uncompressed, for one thread or for all processors. */
presto_strategy presto__anchor_of(const presto__space *space, size_t s, bool is_for_all);
/** Its position; SIZE_MAX: there is none. */
size_t presto__space_find(const presto__space *space, const presto_strategy *strategy);
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

/** An answer of sensitivity.c, with its text. */
typedef struct presto__what_if {
    presto_sweep_what_if what_if;
    char text[96];
} presto__what_if;
#define PRESTO__WHAT_IFS_MOST 16
/** The model of a sweep that predicts (predict/predict_internal.h). */
typedef struct presto__model presto__model;

/** Where the trials of a split stand that the model rests on: without a codec, on one thread and on
 * all processors. Both are one where there is one processor. */
typedef struct presto__anchors {
    size_t at[2];
} presto__anchors;

/** The options that outlive the run. All texts owned. */
struct presto_sweep {
    presto__space space;
    presto__trial *trials; /* one per strategy, same order; behind them the anchors that are none */
    size_t trial_count;    /* those of the strategies */
    size_t trial_total;    /* all */
    presto__anchors *anchors; /* one per split */
    presto__model *model;     /* NULL: all is measured */
    json_t **probes;          /* what the journal had of the machine, then of each split */
    presto_sweep_facts facts;
    bool is_spread;          /* the sample was taken from all over the source */
    presto__size_tail files; /* sizes of the files that were measured, where a sample is a file */
    char *pipeline;          /* as the user named it */
    char *pipeline_name;     /* as it calls itself */
    char *pipeline_json;
    char **set; /* the changes it was read with */
    size_t set_count;
    char **plugins; /* and the plugins beside those that it names itself */
    size_t plugin_count;
    bool runs_code;     /* a step is of a plugin, or runs a program */
    bool adds_seekable; /* a split that the pipeline has with PRESTO_SET_SEEKABLE only */
    char *dataset_dir;  /* NULL: from pipeline and split */
    char *work_dir;
    char **paths;
    size_t path_count;
    unsigned runs, preparation_runs, cold_epochs;
    double run_s;
    uint64_t seed, wanted_samples; /* of the sample; 0: all */
    presto_sweep_mode mode;
    unsigned confirm_runs;
    presto_loader_errors errors;
    presto_weights weights;
    presto_sweep_limits limits;
    presto_sweep_prices prices;
    presto_storage storage; /* that cold epochs read from as if; all 0: the machine's */
    presto_sweep_verdict verdict;
    presto__journal *journal; /* NULL: none, or it could not be written any more */
    bool is_stopped;          /* before all was measured */
    presto_error stop;        /* why; only then */
    bool only_measured;       /* predictions of what could be run are not recommended */
    size_t best;              /* the recommended one */
    size_t first;             /* the one with the best score */
    double decide_s;
    double race_s;   /* that rounds have taken, and runs of what could change the choice */
    bool is_settled; /* more rounds could not change the choice */
    uint64_t rounds; /* so many, the last of which has this number */
    presto__matter matter;
    presto_sweep_confidence confidence;
    presto_sweep_rival rivals[PRESTO__CONTENDERS_MOST];
    presto__what_if what_ifs[PRESTO__WHAT_IFS_MOST];
    size_t what_if_count;
    presto_buffer reason, write_command, load_command;
    char **notes;
    size_t note_count;
};

/* ---- notes.c ---- */

presto_status presto__add_note(presto_sweep *sweep, presto_error *err, const char *format, ...)
    PRESTO_PRINTF(3, 4);
/** The notes on how the figures were taken. */
presto_status presto__write_notes(presto_sweep *sweep, presto_error *err);

/* ---- sensitivity.c ---- */

/** Fills sweep->what_ifs, once it is known what is recommended. */
presto_status presto__find_what_ifs(presto_sweep *sweep, presto_error *err);

/* ---- command.c ---- */

presto_status presto__write_command(const presto_sweep *sweep, presto_buffer *text_out,
                                    presto_error *err);
presto_status presto__load_command(const presto_sweep *sweep, presto_buffer *text_out,
                                   presto_error *err);
#define PRESTO__ON_ERROR_BYTES 48
/** How samples that fail are handled, as --on-error takes it: "skip:3"; "": they end it. */
char *presto__on_error_format(const presto_sweep *sweep, char text_out[PRESTO__ON_ERROR_BYTES]);
/** Does the recommended strategy need PRESTO_SET_SEEKABLE, beside sweep->set? */
bool presto__needs_seekable(const presto_sweep *sweep);
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
#define PRESTO__STRATEGY_SCHEMA 1
presto_status presto__strategy_yaml(const presto_sweep *sweep, presto_buffer *text_out,
                                    presto_error *err);
/** Can strategy.yaml name it? Checked before hours of measuring. */
presto_status presto__strategy_check_pipeline(const char *pipeline, presto_error *err);
presto_status presto__strategy_parse(presto_span yaml, const char *file, presto_strategy_file *out,
                                     presto_error *err);

#endif
