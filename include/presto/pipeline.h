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
    presto_tensor_spec output; /* what enters the first step, whatever the options */
    /* Check what the table cannot say. NULL: nothing. */
    presto_status (*check)(const presto_option *options, presto_error *err);
    /* Put into *output_io what the options tell of it. NULL: nothing. */
    void (*infer)(const presto_option *options, presto_tensor_spec *output_io);
    /* Its samples are values that can be stored before any step; this is what a pipeline calls
     * them, unless the source says `yields: NAME`. NULL: its samples are paths. */
    const char *yields;
    bool takes_no_paths; /* it makes its samples */
    bool takes_records;  /* its paths are TFRecords, or a dataset */
} presto_source_type;

typedef struct presto_pipeline presto_pipeline;

/** May a pipeline run code that it names: load its plugins, start programs (`step: command`)? */
typedef enum presto_code {
    PRESTO_CODE_IF_NAMED = 0, /* if it is loaded by its name or path (presto_pipeline_load), but not
                                 if it is a text of somebody's, such as that of a dataset */
    PRESTO_CODE_ALWAYS = 1,
    PRESTO_CODE_NEVER = 2
} presto_code;

/** How to read a pipeline. Copied, but for the step types: these live as long as the pipeline. */
typedef struct presto_pipeline_options {
    size_t struct_bytes; /* set by presto_pipeline_options_defaults */
    /**
     * Changes to what the text says, each "STEP.OPTION=VALUE" or "source.OPTION=VALUE", VALUE as it
     * would stand in YAML. A step that the pipeline has several times is named with its place among
     * them: "resize-image[2].height=64". "from=REPRESENTATION" is another way to say `from`, below.
     * "seekable=true" puts index-jpeg, which yields "seekable", in front of decode-image, unless
     * the pipeline has index-jpeg. Default: none
     */
    const char *const *set;
    size_t set_count;
    /** Steps beside the built-in ones; one with the name of a built-in step is refused. Default:
     * none */
    const presto_step_type *const *steps;
    size_t step_count;
    /** Files of plugins, shared objects with steps, beside those that the pipeline names. They are
     * loaded in any case: that runs their code. A step of a plugin that is not loaded is read, but
     * no plan can have it. Default: none */
    const char *const *plugins;
    size_t plugin_count;
    presto_code code; /* Default: PRESTO_CODE_IF_NAMED */
    /** The input is TFRecords that hold this representation: a source of type tfrecord, whose
     * options "source.OPTION=VALUE" then sets, takes the place of the source and of the steps up to
     * there. PRESTO_UNPROCESSED, or NULL: the pipeline's own source. Default: NULL */
    const char *from;
    const char *feature; /* of the source: its option `feature`. Default: as the text says */
} presto_pipeline_options;

PRESTO_API void presto_pipeline_options_init(presto_pipeline_options *options, size_t struct_bytes);
static inline void presto_pipeline_options_defaults(presto_pipeline_options *options) {
    presto_pipeline_options_init(options, sizeof *options);
}

/**
 * Load a pipeline: the name of a built-in one, or a path (with a '/' or ending in .yaml or .yml).
 * Options of kind FILE are relative to the folder of the path; in `set`, to the working folder.
 * `options` NULL: the defaults.
 *
 * Returns: PRESTO_ERR_NOT_FOUND (the message lists the built-in names), PRESTO_ERR_IO,
 *          PRESTO_ERR_SYNTAX (the message starts with "line L: " or "--set ...: "; err->file is the
 *          path or "pipeline NAME"), PRESTO_ERR_LIMIT (more than 1 MiB of text),
 *          PRESTO_ERR_ARGUMENT (a step type or plugin of another ABI, or with a name that is
 *          taken), what a plugin cannot be opened with.
 * Owner:   caller, presto_pipeline_free. Immutable afterwards: any number of threads.
 */
PRESTO_API presto_status presto_pipeline_load(const char *name_or_path,
                                              const presto_pipeline_options *options,
                                              presto_pipeline **pipeline_out, presto_error *err);

PRESTO_API void presto_pipeline_free(presto_pipeline *pipeline);

/** i-th built-in pipeline's name, NULL past the last. */
PRESTO_API const char *presto_pipeline_builtin_at(size_t i);

PRESTO_API const char *presto_pipeline_name(const presto_pipeline *pipeline);
/**
 * The definition as one JSON object on one line, which presto_pipeline_load reads back from a file. Options
 * that have a default are written out. Owned by the pipeline.
 */
PRESTO_API const char *presto_pipeline_json(const presto_pipeline *pipeline);

/* Of presto_pipeline_options.set. */
#define PRESTO_SEEKABLE "seekable"
#define PRESTO_SET_SEEKABLE PRESTO_SEEKABLE "=true"
/**
 * This pipeline as it is read with PRESTO_SET_SEEKABLE, if that is worth trying: a crop takes its
 * part of what decode-image gives, before any step that resizes it. Else, and if the pipeline has
 * index-jpeg already, *seekable_out is NULL. Random steps draw the same in both.
 * Owner: caller, presto_pipeline_free. The step types of `pipeline` must outlive it.
 */
PRESTO_API presto_status presto_pipeline_seekable(const presto_pipeline *pipeline,
                                                  presto_pipeline **seekable_out,
                                                  presto_error *err);

PRESTO_API const presto_source_type *presto_pipeline_source(const presto_pipeline *pipeline);

PRESTO_API size_t presto_pipeline_step_count(const presto_pipeline *pipeline);
PRESTO_API const presto_step_type *presto_pipeline_step_type(const presto_pipeline *pipeline,
                                                             size_t i);

/**
 * Representations: number 0 is "unprocessed", the source itself; then what a source of values
 * yields; then each step with `yields` gives one, in order.
 */
PRESTO_API size_t presto_pipeline_representation_count(const presto_pipeline *pipeline);
PRESTO_API const char *presto_pipeline_representation_name(const presto_pipeline *pipeline,
                                                           size_t r);
/** Its number by name; SIZE_MAX if there is none. */
PRESTO_API size_t presto_pipeline_representation_find(const presto_pipeline *pipeline,
                                                      const char *name);
/**
 * As presto_pipeline_representation_find, for a name that somebody has typed: the message lists
 * those that there are. `to_store`: only one that may be stored.
 * Returns: PRESTO_OK; PRESTO_ERR_NOT_FOUND; PRESTO_ERR_ARGUMENT: a random step comes before it.
 */
PRESTO_API presto_status presto_pipeline_representation_named(const presto_pipeline *pipeline,
                                                              const char *name, bool to_store,
                                                              size_t *r_out, presto_error *err);
/** How many steps have run when representation r is reached. */
PRESTO_API size_t presto_pipeline_representation_steps(const presto_pipeline *pipeline, size_t r);

/**
 * The representation that is worth storing if the user names none: the last one before a random
 * step, and before a step that only widens numbers (center-pixels makes float32 of bytes) or looks
 * them up (embed). If all are behind such steps, the last storable one. 0: none can be stored.
 */
PRESTO_API size_t presto_pipeline_representation_default(const presto_pipeline *pipeline);

/** Append the reference of all sources and steps in Markdown: --help-steps and docs/steps.md. */
PRESTO_API presto_status presto_steps_help(presto_buffer *text_out, presto_error *err);

/* ---- plans ---- */

typedef struct presto_plan presto_plan;

PRESTO_API size_t presto_plan_step_count(const presto_plan *plan);
/** Flags (presto_step_flag) of step i; 0 if there is none. */
PRESTO_API unsigned presto_plan_step_flags(const presto_plan *plan, size_t i);
/** What the plan makes of the feature `name`, beside the main one: *spec_io is what enters, then
 * what comes out, as far as it is known before any data. */
PRESTO_API void presto_plan_feature(const presto_plan *plan, const char *name,
                                    presto_tensor_spec *spec_io);
/** The plan as text for --explain: a line a step, and one about fusion if steps are fused. Owned by
 * the plan. */
PRESTO_API const char *presto_plan_explain(const presto_plan *plan);

/** Reads a source file on behalf of a step: bytes valid until the arena is reset. */
typedef presto_status (*presto_read_file_fn)(void *user, presto_span path, presto_arena *arena,
                                             presto_span *bytes_out, presto_error *err);

/** The sample as it is when its last step is about to write, and what it will write. */
typedef struct presto_output_request {
    const presto_sample *sample;
    size_t feature;                 /* position of the feature that is written */
    const presto_tensor_spec *spec; /* complete */
} presto_output_request;

/** Gives the memory for the last step's output, e.g. a row of a batch. */
typedef presto_status (*presto_output_fn)(void *user, const presto_output_request *request,
                                          void **data_out, presto_error *err);

/** Time and volume of one step in one worker, summed over its samples. */
typedef struct presto_step_stats {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    uint64_t samples;
    uint64_t busy_ns;   /* wall time in run(), scaled up where only every n-th sample was timed */
    uint64_t out_bytes; /* size of the outputs */
    uint64_t dropped;   /* samples that it left out (PRESTO_DROP) */
    uint64_t unfused;   /* samples that it ran on alone although it is fused with others */
} presto_step_stats;

#ifdef __cplusplus
}
#endif

#endif
