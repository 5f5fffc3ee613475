/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift: does a dataset's strategy still fit new files? They are run through the pipeline of the
 * dataset, up to what it stores; sizes, shapes and the time of loading are compared with those of its
 * records. docs/sweep.md describes what is compared.
 */
#ifndef PRESTO_DRIFT_H
#define PRESTO_DRIFT_H

#include <presto/convert.h>
#include <presto/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What differs less than this by chance is told as a difference. */
#define PRESTO_DRIFT_CHANCE 0.01
/** Bytes of a results.json, at most. */
#define PRESTO_DRIFT_RESULTS_MOST_BYTES ((uint64_t)16 << 20)
/** Source bytes and offline steps; more steps are left out. */
#define PRESTO_DRIFT_COSTS_MOST 16
/** Stored bytes and five dimensions. */
#define PRESTO_DRIFT_FIGURES_MOST 6

typedef struct presto_drift_options {
    size_t struct_bytes; /* set by presto_drift_options_defaults */
    const char *dataset; /* its folder. Required */
    uint64_t samples;    /* new ones that are tried, evenly from all; 0: all. Default 200 */
    double margin;       /* changes of bytes or loading time up to this part do not move the
                            recommendation. Default 0.1 */
    /* The new samples are written into a fresh folder in here (made if missing) and removed.
     * Required. */
    const char *work_dir;
    const char *pipeline; /* name or path; NULL: from dataset.json. A pipeline that runs programs or
                             plugins must be named */
    const presto_pipeline_options *pipeline_options; /* NULL: the defaults */
    presto_loader_errors errors;     /* new samples that fail. Default: the first one ends it */
    bool (*on_progress)(void *user); /* now and then; false ends it. May be NULL */
    void *on_progress_user;
    /* Path of the results.json of the sweep that recommended the strategy: source bytes and times
     * of steps are compared with it. NULL: they are not. */
    const char *results;
} presto_drift_options;

PRESTO_API void presto_drift_options_init(presto_drift_options *options, size_t struct_bytes);
static inline void presto_drift_options_defaults(presto_drift_options *options) {
    presto_drift_options_init(options, sizeof *options);
}

/** One thing of which each sample has a number, in the dataset and in the new files. */
typedef struct presto_drift_figure {
    char name[32]; /* "stored bytes", "dimension 0" */
    uint64_t stored_count, new_count;
    double stored_mean, new_mean;
    double stored_median, new_median;
    double stored_p95, new_p95;
    double distance; /* of the distributions: Kolmogorov-Smirnov's D, 0 to 1 */
    double chance;   /* probability of so large a D if nothing differs */
    bool differs;    /* chance < PRESTO_DRIFT_CHANCE, and mean, median or 95th percentile changed by
                        a percent or more */
    uint64_t reserved[2];
} presto_drift_figure;

/** One thing that a sweep has measured of the files that it chose by. */
typedef struct presto_drift_cost {
    char name[64];    /* "source bytes", or a step that runs offline */
    double then, now; /* mean bytes, or median seconds of one thread, for a sample. NaN: unknown */
    bool is_time;
    bool differs; /* bytes by more than the margin and what chance explains; times by more than the
                     margin and twofold, on the same kind of processor */
    uint64_t reserved[2];
} presto_drift_cost;

typedef struct presto_drift {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    uint64_t stored_records, new_samples, tried_samples;
    size_t figure_count;
    presto_drift_figure figures[PRESTO_DRIFT_FIGURES_MOST];
    /* Time of loading a new sample over that of a stored one, with the steps that remain, on one
     * thread; the interval holds it with 95 % probability, for all new samples. It is 0 to
     * INFINITY if only one of several was tried. */
    double time_ratio, time_ratio_least, time_ratio_most;
    bool time_differs; /* all of the interval is more than 5 % from 1 */
    bool moves;        /* bytes or time changed by more than the margin: the recommendation may be
                          another one */
    size_t cost_count; /* 0 without presto_drift_options.results */
    presto_drift_cost costs[PRESTO_DRIFT_COSTS_MOST];
} presto_drift;

/**
 * What to take for presto_drift_options.margin by the results.json of a sweep: by how much the
 * strategy that it recommends is faster than the next one (with prices: cheaper), or with a target
 * by how much its slowest run is above that; 0.02 at least. 0.1 where another than the fastest is
 * recommended, or there is only one.
 * Returns: PRESTO_OK; PRESTO_ERR_NOT_FOUND, _IO; PRESTO_ERR_SYNTAX or _LIMIT (it is none).
 * Threads: any.
 */
PRESTO_API presto_status presto_drift_margin(const char *results_path, double *margin_out,
                                             presto_error *err);

/**
 * Compare the new samples at `paths` with the records of the dataset.
 * Returns: PRESTO_ERR_NOT_FOUND (no dataset there), PRESTO_ERR_ARGUMENT (dataset.json does not say
 *          by which pipeline it was made), PRESTO_ERR_STOPPED, what the source and the steps fail
 *          with.
 * Threads: any; it measures, so nothing else should run.
 */
PRESTO_API presto_status presto_drift_check_sized(const char *const *paths, size_t path_count,
                                                  const presto_drift_options *options,
                                                  presto_drift *drift_out, presto_error *err);
static inline presto_status presto_drift_check(const char *const *paths, size_t path_count,
                                               const presto_drift_options *options,
                                               presto_drift *drift_out, presto_error *err) {
    drift_out->struct_bytes = sizeof *drift_out;
    return presto_drift_check_sized(paths, path_count, options, drift_out, err);
}

#ifdef __cplusplus
}
#endif

#endif
