/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room plan: the steps between two representations, checked, grouped into stages, and run.
 * May see: base, room pipeline (read-only), steps_internal.h. Must not know: files, records,
 * threads.
 * A plan never changes once it is made. A worker belongs to one thread, except its counters and its
 * cancelled flag, which are atomic. Locks: plan->turns[i], held while the serial step i runs.
 *
 * Each step is in one stage, but for an index-jpeg that makes no difference: that is not run.
 * A stage is one step, or a run of steps that ends in one that selects a window of its input (a
 * crop, perhaps one that resizes), and computes only what that window needs.
 * A fused stage gives the same bytes because: a window step (step.h) promises that its window has
 * the content that run() would give; shapes are known before the pixels; and the crop's generator
 * is keyed by its position in the pipeline, not by when it is asked.
 */
#ifndef PRESTO_STEPS_PLAN_INTERNAL_H
#define PRESTO_STEPS_PLAN_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "../pipeline/pipeline_internal.h"
#include "../pipelines_internal.h"

typedef struct presto__plan_stage {
    size_t first; /* of the plan's steps */
    size_t count; /* more than 1: fused, the last one crops */
} presto__plan_stage;

struct presto_plan {
    const presto_pipeline *pipeline; /* the caller's; outlives the plan */
    size_t first_step;               /* of the pipeline */
    size_t step_count;
    size_t loaded_count;    /* steps whose load() has been called */
    void **models;          /* a step; NULL: it has no load() */
    pthread_mutex_t *turns; /* a step; used by serial ones */
    size_t turn_count;      /* of them initialised */
    presto__plan_stage *stages;
    size_t stage_count;
    presto_tensor_spec output;
    presto_tensor_spec *inputs, *outputs; /* of each step, as far as they are known */
    unsigned flags;                       /* flags of all its steps together */
    bool last_is_followed; /* features move after the last stage: its output is not the last word */
    char *explain;
};

static inline const presto__pipeline_step *presto__plan_step(const presto_plan *plan, size_t i) {
    return &plan->pipeline->steps[plan->first_step + i];
}

/** Group the steps into stages; plan->stages has room for one a step. */
void presto__plan_group(presto_plan *plan, bool no_fusion);

/** Append the line of step i, whose output is `spec`, without an end. */
presto_status presto__plan_describe_step(const presto_plan *plan, size_t i,
                                         const presto_tensor_spec *spec, presto_buffer *lines,
                                         presto_error *err);
/** Set plan->explain from the lines of its steps; line i ends at line_ends[i]. */
presto_status presto__plan_explain(presto_plan *plan, const presto_tensor_spec *in,
                                   const presto_buffer *lines, const size_t *line_ends,
                                   presto_error *err);

/* ---- workers ---- */

/** The surroundings of one running step. One a step and worker. */
struct presto_step_context {
    presto__plan_worker *worker;
    const presto_step_type *type;
    unsigned flags; /* of presto_step_flag, with the step's options */
    const void *model;
    void *worker_state; /* of open_worker() */
    uint64_t stream;    /* presto__pipeline_position */
    size_t hint;        /* where the feature that it reads was in the previous sample */
    presto_buffer buffer;

    /* Of the sample being run: */
    size_t target; /* position of the feature that the output goes to; SIZE_MAX: a new one */
    const presto_tensor_spec
        *row_spec;  /* run->output is asked for an output of this spec; NULL: of any */
    bool is_last;   /* may run->output be used at all? */
    bool rng_ready; /* rng is keyed for this sample */
    bool has_moved; /* geometry is of this sample */
    presto__geometry geometry;
    presto_rng rng;
};

/** Written by the worker's thread only; others may read at any time. */
typedef struct presto__step_counters {
    _Atomic uint64_t samples;
    _Atomic uint64_t busy_ns;
    _Atomic uint64_t out_bytes;
    _Atomic uint64_t dropped;
    _Atomic uint64_t unfused;
} presto__step_counters;

struct presto__plan_worker {
    const presto_plan *plan; /* the caller's; outlives the worker */
    presto__plan_worker_options options;
    presto_arena arena; /* used if the caller gave none */
    bool owns_arena;
    size_t open_count; /* steps whose open_worker has succeeded */
    presto_step_context *contexts;
    presto__step_counters *counters;
    presto_tensor_spec *specs; /* of a fused stage: specs[i] is the whole output of step i */
    presto_window *wanted;     /* of a fused stage: wanted[i] is the part of step i's output that
                                * is needed */
    atomic_bool is_cancelled;

    /* The sample being run. */
    const presto__plan_run_options *run;
    presto_sample sample; /* its features are `features` */
    presto_feature *features;
    size_t feature_capacity;
    bool is_wide; /* a feature other than the main one has been written */

    /* Timing; see timing.c. */
    uint64_t interval;  /* every interval-th sample is timed and stands for all of them */
    uint64_t countdown; /* samples until the next timed one */
    bool is_timed;      /* this sample */
    uint64_t start_ns;
    uint64_t last_ns; /* the clock at the last mark of this sample */
};

/** Put the name of step i before the message of its failure. */
void presto__plan_name_step(presto__plan_worker *worker, size_t i, presto_error *err);
/** The same, with `status` as its value. As presto_fail(): a macro, so that analyzers see it. */
#define presto__plan_fail(worker, i, status, err)                                                  \
    (presto__plan_name_step(worker, i, err), presto_status_pass(status))

/** The position of feature `name`, looked for at `hint` first; SIZE_MAX if there is none. */
size_t presto__plan_find_feature(const presto_sample *sample, const char *name, size_t hint);
/** Start a sample. The steps work on a copy of its array of features, so a failure does not
 * change the caller's. */
presto_status presto__plan_take_sample(presto__plan_worker *worker, const presto_sample *sample,
                                       presto_error *err);
/** Set feature `at` (SIZE_MAX: append one called `name`) of the worker's sample. */
presto_status presto__plan_put_feature(presto__plan_worker *worker, size_t at, const char *name,
                                       const presto_tensor *value, presto_error *err);

/** Measure a fused stage: which window must each step compute? < 0: it cannot be measured, and
 * must run step by step. */
presto_status presto__windows_measure(presto__plan_worker *worker, const presto__plan_stage *group,
                                      const presto_tensor *tensor);
/** Run a stage that has been measured. */
presto_status presto__windows_run(presto__plan_worker *worker, const presto__plan_stage *group,
                                  presto_tensor *tensor, presto_error *err);

/** Move the features that follow step i, which has run. */
presto_status presto__plan_follow(presto__plan_worker *worker, size_t i, presto_error *err);

void presto__timing_start(presto__plan_worker *worker);
/** Charge the time since the last mark to step i. */
void presto__timing_mark(presto__plan_worker *worker, size_t i);
void presto__timing_finish(presto__plan_worker *worker);
/** Count one output of step i. */
void presto__count_output(presto__plan_worker *worker, size_t i, const presto_tensor *out);
void presto__count(_Atomic uint64_t *counter, uint64_t amount);

/**
 * What a step's run has returned, with errno set to 0 before it. Where a library has found no memory
 * and called it damage, it is PRESTO_ERR_MEMORY: what the machine lacks is no fault of the sample.
 */
presto_status presto__plan_judge(presto_status status, presto_error *err);

#endif
