/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines: a source and an ordered list of steps, read from YAML; and plans: the stretch of a
 * pipeline between two representations, ready to run.
 */
#ifndef PRESTO_PIPELINE_H
#define PRESTO_PIPELINE_H

#include <presto/step.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The representation before any step, in every pipeline. */
#define PRESTO_UNPROCESSED "unprocessed"

/** What kinds of source a pipeline may name; the loader implements them by this name. */
typedef struct presto_source_type {
    const char *name; /* "files" */
    const char *summary;
    const presto_option_type *options;
    size_t option_count;
    presto_tensor_spec output; /* what enters the first step */
    /* Check what the table cannot say. NULL: nothing. */
    presto_status (*check)(const presto_option *options, presto_error *err);
} presto_source_type;

PRESTO_API const presto_source_type *presto_source_type_at(size_t i);
PRESTO_API const presto_source_type *presto_source_type_find(const char *name);

typedef struct presto_pipeline presto_pipeline;

/**
 * Load a pipeline: the name of a built-in one, or a path (with a '/' or ending in .yaml or .yml).
 *
 * Returns: PRESTO_ERR_NOT_FOUND (the message lists the built-in names), PRESTO_ERR_IO,
 *          PRESTO_ERR_SYNTAX (the message starts with "line L: "; err->file is the path or
 *          "pipeline NAME"), PRESTO_ERR_LIMIT (more than 1 MiB of text).
 * Owner:   caller, presto_pipeline_free. Immutable afterwards: any number of threads.
 */
PRESTO_API presto_status presto_pipeline_load(const char *name_or_path,
                                              presto_pipeline **pipeline_out, presto_error *err);

/** Parse YAML (JSON, being a subset of it, as well). `file` is only for messages. */
PRESTO_API presto_status presto_pipeline_parse(presto_span yaml, const char *file,
                                               presto_pipeline **pipeline_out, presto_error *err);
PRESTO_API void presto_pipeline_free(presto_pipeline *pipeline);

/** i-th built-in pipeline's name, NULL past the last. */
PRESTO_API const char *presto_pipeline_builtin_at(size_t i);

PRESTO_API const char *presto_pipeline_name(const presto_pipeline *pipeline);
/**
 * The definition as one JSON object on one line, which presto_pipeline_parse reads back. Options
 * that have a default are written out. Owned by the pipeline.
 */
PRESTO_API const char *presto_pipeline_json(const presto_pipeline *pipeline);

PRESTO_API const presto_source_type *presto_pipeline_source(const presto_pipeline *pipeline);
/** Value of the source's option `name`; NULL only if its table has no such option. */
PRESTO_API const presto_option *presto_pipeline_source_option(const presto_pipeline *pipeline,
                                                              const char *name);

PRESTO_API size_t presto_pipeline_step_count(const presto_pipeline *pipeline);
PRESTO_API const presto_step_type *presto_pipeline_step_type(const presto_pipeline *pipeline,
                                                             size_t i);

/**
 * Representations: number 0 is "unprocessed"; then each step with `yields` gives one, in order.
 */
PRESTO_API size_t presto_pipeline_representation_count(const presto_pipeline *pipeline);
PRESTO_API const char *presto_pipeline_representation_name(const presto_pipeline *pipeline,
                                                           size_t r);
/** Its number by name; SIZE_MAX if there is none. */
PRESTO_API size_t presto_pipeline_representation_find(const presto_pipeline *pipeline,
                                                      const char *name);
/** How many steps have run when representation r is reached. */
PRESTO_API size_t presto_pipeline_representation_steps(const presto_pipeline *pipeline, size_t r);
/** May it be stored, i.e. is no random step before it? ("unprocessed": as the source has it.) */
PRESTO_API bool presto_pipeline_representation_storable(const presto_pipeline *pipeline, size_t r);

/** Append the reference of all sources and steps in Markdown: --help-steps and docs/steps.md. */
PRESTO_API presto_status presto_steps_help(presto_buffer *text_out, presto_error *err);

/* ---- plans ---- */

typedef struct presto_plan presto_plan;

/**
 * The steps [first_step, last_step) of a pipeline, instantiated and checked against the spec of
 * what enters them.
 *
 * The planner may fuse or reorder where the output stays the same to the byte; presto_plan_explain
 * says what it did.
 *
 * Returns: PRESTO_ERR_TYPE naming the step and line whose input does not fit,
 *          PRESTO_ERR_UNSUPPORTED (a step that this build lacks).
 * Owner:   caller; the pipeline must outlive it. Immutable afterwards: any number of threads.
 */
PRESTO_API presto_status presto_plan_new(const presto_pipeline *pipeline, size_t first_step,
                                         size_t last_step, const presto_tensor_spec *in,
                                         presto_plan **plan_out, presto_error *err);

/** How to plan. */
typedef struct presto_plan_options {
    bool no_fusion; /* run every step by itself; the output is the same. Default false */
} presto_plan_options;

PRESTO_API void presto_plan_options_defaults(presto_plan_options *options);

/** As presto_plan_new, with options. */
PRESTO_API presto_status presto_plan_new_with(const presto_pipeline *pipeline, size_t first_step,
                                              size_t last_step, const presto_tensor_spec *in,
                                              const presto_plan_options *options,
                                              presto_plan **plan_out, presto_error *err);
PRESTO_API void presto_plan_free(presto_plan *plan);
PRESTO_API size_t presto_plan_step_count(const presto_plan *plan);
PRESTO_API const char *presto_plan_step_name(const presto_plan *plan, size_t i);
/** What comes out of the plan, as far as it is known before any data. */
PRESTO_API const presto_tensor_spec *presto_plan_output(const presto_plan *plan);
/** Does a step draw random numbers? */
PRESTO_API bool presto_plan_is_random(const presto_plan *plan);
/** The plan as text for --explain, a line a step. Owned by the plan. */
PRESTO_API const char *presto_plan_explain(const presto_plan *plan);

/**
 * Append what the plan computes as a JSON array, an object a step with all options that have a
 * value, defaults too; not NUL-terminated. Plans with equal text give equal outputs. Returns:
 * PRESTO_OK, PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_plan_json(const presto_plan *plan, presto_buffer *text_out,
                                          presto_error *err);

/** Reads a source file on behalf of a step: bytes valid until the arena is reset. */
typedef presto_status (*presto_read_file_fn)(void *user, presto_span path, presto_arena *arena,
                                             presto_span *bytes_out, presto_error *err);

/** Gives the memory for the last step's output, e.g. a row of a batch. */
typedef presto_status (*presto_output_fn)(void *user, const presto_tensor_spec *spec,
                                          void **data_out, presto_error *err);

/** Time and volume of one step in one worker, summed over its samples. */
typedef struct presto_step_stats {
    uint64_t samples;
    uint64_t busy_ns;   /* wall time in run(), scaled up where only every n-th sample was timed */
    uint64_t out_bytes; /* size of the outputs */
} presto_step_stats;

/** The running state of a plan in one thread. */
typedef struct presto_plan_worker presto_plan_worker;

/**
 * `arena` is borrowed: the caller resets it when the sample's results are no longer needed.
 * read_file may be NULL; read-file fails then.
 */
PRESTO_API presto_status presto_plan_worker_new(const presto_plan *plan, presto_arena *arena,
                                                presto_read_file_fn read_file, void *read_file_user,
                                                presto_plan_worker **worker_out, presto_error *err);
PRESTO_API void presto_plan_worker_free(presto_plan_worker *worker);

/** Where and how one sample runs. */
typedef struct presto_plan_run_options {
    uint64_t seed;
    uint64_t epoch;
    uint64_t sample;         /* its number, for the random steps */
    presto_output_fn output; /* for the last step's output; NULL: the arena */
    void *output_user;
} presto_plan_run_options;

/**
 * Run all steps on *tensor, in place of which the result stands afterwards. With no steps nothing
 * happens, and `output` is not called; nor is it for PRESTO_STRING results. On failure *tensor is
 * untouched and the message starts with the step's name ("decode-image: ...").
 */
PRESTO_API presto_status presto_plan_run(presto_plan_worker *worker,
                                         const presto_plan_run_options *options,
                                         presto_tensor *tensor, presto_error *err);

/** Statistics of step i of this worker, as of now. Any thread. */
PRESTO_API presto_step_stats presto_plan_worker_stats(const presto_plan_worker *worker, size_t i);

#ifdef __cplusplus
}
#endif

#endif
