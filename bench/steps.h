/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of bench_steps: a step beside a bare call of the library that does its work, on the same
 * samples in the same run. One file a domain: it makes its samples and measures its rows.
 */
#ifndef PRESTO_BENCH_STEPS_H
#define PRESTO_BENCH_STEPS_H

#include <presto/pipeline.h>

#include "harness.h"

typedef struct steps_settings {
    const char *work; /* a folder for scratch data */
    const char *only; /* rows whose names contain it; NULL: all */
    unsigned rounds;  /* how often each case runs */
    double slice_ms;  /* how long each time */
    unsigned threads; /* 1, and this many */
    bool quick;       /* small samples: to see that it works */
} steps_settings;

/** One way to process samples. Threads: each one opens a state of its own. */
typedef struct steps_side {
    void *(*open)(const void *user);
    void (*run)(void *state, size_t sample); /* dies on failure */
    void (*close)(void *state);
    const void *user;
} steps_side;

/** Is the row wanted? Ask before its samples are made. */
bool steps_wanted(const steps_settings *set, const char *row);

/**
 * Measure both sides on samples [0, count), and note the row in the table "steps". Both must do the
 * same work: their speeds are compared.
 */
void steps_measure(const steps_settings *set, const char *row, size_t count, const steps_side *step,
                   const steps_side *bare);

/* ---- steps of a pipeline as a side ---- */

/** Steps [first, last) of a pipeline on samples in memory. */
typedef struct steps_plan steps_plan;

/**
 * `yaml` is a whole pipeline: steps before `first` only have to fit. `inputs` (borrowed) are values
 * of the main feature, of spec `in`. Dies on failure. Owner: caller, steps_plan_free.
 */
steps_plan *steps_plan_new(const char *yaml, size_t first, size_t last,
                           const presto_tensor_spec *in, const presto_tensor *inputs);
/** The same, one step after the other, whatever could be fused. */
steps_plan *steps_plan_new_unfused(const char *yaml, size_t first, size_t last,
                                   const presto_tensor_spec *in, const presto_tensor *inputs);
void steps_plan_free(steps_plan *plan);

/** The side that runs it; valid as long as the plan. */
steps_side steps_plan_side(const steps_plan *plan);

/* ---- samples ---- */

/** Files in memory, and each as a sample: a PRESTO_STRING of its bytes. */
typedef struct steps_files {
    presto_span *files;
    presto_tensor *samples;
    size_t count;
} steps_files;

/** The specification of such a sample. */
extern const presto_tensor_spec steps_string_spec;

/**
 * Read the files below a folder whose names end in `ending` ("" for all), sorted by path, at most
 * `most` of them. Dies on failure, or if there is none. Owner: caller, steps_files_free.
 */
void steps_read_files(const char *folder, const char *ending, size_t most, steps_files *files_out);
void steps_free_files(steps_files *files);

/** Photos in one folder, as files in memory; `options` go to the program that makes them. */
void steps_make_photos(const steps_settings *set, size_t count, const char *options,
                       steps_files *photos_out);

/**
 * The folder of a corpus of tests/corpora/make, which makes it if it is not there. `options` go to
 * that program, as "--scale 0.1"; if set->quick, "--tiny" does instead. Dies on
 * failure. `path_out` has STEPS_PATH_BYTES.
 */
enum { STEPS_PATH_BYTES = 2048 };
void steps_corpus(const steps_settings *set, const char *name, const char *options, char *path_out);

/** Run a shell command, or die. */
void steps_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- the domains, each in a file of its own ---- */

void steps_image(const steps_settings *set);
void steps_augment(const steps_settings *set);
void steps_signal(const steps_settings *set);
void steps_audio(const steps_settings *set);
void steps_text(const steps_settings *set);
void steps_tokens(const steps_settings *set);

#endif
