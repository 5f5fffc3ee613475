/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms of steps/ and the folders above them see of pipelines and plans, beside
 * presto/pipeline.h.
 */
#ifndef PRESTO_PIPELINES_INTERNAL_H
#define PRESTO_PIPELINES_INTERNAL_H

#include <presto/pipeline.h>

/* ---- the table of steps ---- */

/** The i-th known step, in the order of the registry; NULL past the last. */
const presto_step_type *presto__step_at(size_t i);

/** By name; NULL if unknown. */
const presto_step_type *presto__step_find(const char *name);

/* ---- pipelines, plans ---- */

/** Parse YAML (JSON, being a subset of it, as well). `file` is for messages; options of kind FILE
 * are relative to its folder. */
presto_status presto__pipeline_parse(presto_span yaml, const char *file,
                                     const presto_pipeline_options *options,
                                     presto_pipeline **pipeline_out, presto_error *err);

/** Which steps to plan, and how. */
typedef struct presto__plan_options {
    size_t struct_bytes; /* set by presto__plan_options_defaults */
    size_t first_step;   /* of the pipeline. Default 0 */
    size_t last_step;    /* one past the last; SIZE_MAX: to the pipeline's end. Default SIZE_MAX */
    const presto_tensor_spec *in; /* what enters, of the main feature. Borrowed during the call.
                                     NULL: what the pipeline's source gives. Default NULL */
    bool no_fusion; /* run every step by itself; the output is the same. Default false */
} presto__plan_options;

void presto__plan_options_init(presto__plan_options *options, size_t struct_bytes);

static inline void presto__plan_options_defaults(presto__plan_options *options) {
    presto__plan_options_init(options, sizeof *options);
}

/**
 * The steps [first_step, last_step) of a pipeline, instantiated, checked against the spec of what
 * enters them, with the models and tables that they need.
 *
 * The planner may fuse or reorder where the output stays the same to the byte; presto_plan_explain
 * says what it did.
 *
 * Returns: PRESTO_ERR_TYPE naming the step and line whose input does not fit,
 *          PRESTO_ERR_UNSUPPORTED (a step that this build lacks, that runs a program although the
 *          pipeline may not, or of a plugin that is not loaded), what a step's load() fails with.
 * Owner:   caller; the pipeline must outlive it. Immutable afterwards: any number of threads.
 */
presto_status presto__plan_new(const presto_pipeline *pipeline, const presto__plan_options *options,
                               presto_plan **plan_out, presto_error *err);

void presto__plan_free(presto_plan *plan);

/** The running state of a plan in one thread. */
typedef struct presto__plan_worker presto__plan_worker;

/** What a plan's worker works with. */
typedef struct presto__plan_worker_options {
    size_t struct_bytes; /* set by presto__plan_worker_options_defaults */
    presto_arena *arena; /* borrowed: the caller resets it when the sample's results are no longer
                            needed. NULL: the worker's own, so that results are valid until its next
                            run. Default NULL */
    presto_read_file_fn read_file; /* NULL: steps that read files fail */
    void *read_file_user;
    presto_stop_fn should_stop; /* asked by steps that wait, by the worker's thread. Default NULL */
    void *should_stop_user;
    void (*on_return)(void *user, size_t bytes); /* a step has freed what it had asked the arena's
                                                    on_grow for; user is on_grow_user. Default NULL */
    void (*on_note)(void *user, const char *step, const char *text); /* a step of this name has
                                    called presto_step_note. Borrowed during the call. Default NULL */
    void *on_note_user;
} presto__plan_worker_options;

void presto__plan_worker_options_init(presto__plan_worker_options *options, size_t struct_bytes);

static inline void presto__plan_worker_options_defaults(presto__plan_worker_options *options) {
    presto__plan_worker_options_init(options, sizeof *options);
}

presto_status presto__plan_worker_new(const presto_plan *plan,
                                      const presto__plan_worker_options *options,
                                      presto__plan_worker **worker_out, presto_error *err);

void presto__plan_worker_free(presto__plan_worker *worker);

/** Where and how one sample runs. Defaults: all 0. */
typedef struct presto__plan_run_options {
    size_t struct_bytes; /* set by presto__plan_run_options_defaults */
    uint64_t seed;
    uint64_t epoch;
    size_t main;             /* position of the main feature; SIZE_MAX: the sample has none */
    presto_output_fn output; /* for the last step's output; NULL: the arena */
    void *output_user;
} presto__plan_run_options;

void presto__plan_run_options_init(presto__plan_run_options *options, size_t struct_bytes);

static inline void presto__plan_run_options_defaults(presto__plan_run_options *options) {
    presto__plan_run_options_init(options, sizeof *options);
}

/**
 * Run all steps on *sample, in place of which the result stands afterwards: features that steps
 * write are replaced, or added behind the others, so that positions stay. The array of features is
 * then the worker's, valid until its next run. With no steps nothing happens.
 *
 * `output` is called at most once, for the last step's output, if that goes to the main feature and
 * no step has written another one; not for PRESTO_STRING results. sample->number is what random
 * steps draw by.
 *
 * Returns: PRESTO_OK; PRESTO_DROP (a step does not want the sample); else *sample is untouched and
 * the message starts with the step's name ("decode-image: ...").
 */
presto_status presto__plan_run(presto__plan_worker *worker, const presto__plan_run_options *options,
                               presto_sample *sample, presto_error *err);

/** Statistics of step i of this worker, as of now. Any thread. */
void presto__plan_worker_stats_sized(const presto__plan_worker *worker, size_t i,
                                     presto_step_stats *stats_out);

static inline presto_step_stats presto__plan_worker_stats(const presto__plan_worker *worker,
                                                          size_t i) {
    presto_step_stats stats;
    stats.struct_bytes = sizeof stats;
    presto__plan_worker_stats_sized(worker, i, &stats);
    return stats;
}

/** What a field of a line or row becomes. */
typedef enum presto__field_type {
    PRESTO__FIELD_TEXT,
    PRESTO__FIELD_INT64,
    PRESTO__FIELD_FLOAT32,
    PRESTO__FIELD_LABEL, /* a whole number, or a class */
    PRESTO__FIELD_JSON,  /* any value of JSON, as its text */
    PRESTO__FIELD_INT64S,
    PRESTO__FIELD_FLOAT32S,
    PRESTO__FIELD_UNKNOWN /* the text names none */
} presto__field_type;

/** The type in "NAME:TYPE", as the option `features` of jsonl and csv has it; a text without it. */
presto__field_type presto__field_type_of(const char *text, size_t *name_bytes_out);

const presto_source_type *presto__source_type_at(size_t i);

const presto_source_type *presto__source_type_find(const char *name);

/** The options with which another text is read as this pipeline was: with its own steps and those
 * of its plugins, and allowed to run code if it is. They borrow from the pipeline. */
void presto__pipeline_options_of(const presto_pipeline *pipeline,
                                 presto_pipeline_options *options_out);

/** Another owner, who calls presto_pipeline_free, too. Threads: any. */
presto_pipeline *presto__pipeline_keep(const presto_pipeline *pipeline);

/**
 * Is `json`, as presto_pipeline_json() writes it, the definition of this pipeline? White space and
 * the order of keys do not count.
 * Returns: as presto__pipeline_parse.
 */
presto_status presto__pipeline_same(const presto_pipeline *pipeline, const char *json,
                                    bool *same_out, presto_error *err);

/**
 * Can this pipeline go on where the one defined by `json` stopped: at its representation `split`?
 * Both must have one name and the same steps up to there, and the same source if that yields
 * values.
 * Returns: as presto__pipeline_parse.
 */
presto_status presto__pipeline_continues(const presto_pipeline *pipeline, const char *json,
                                         const char *split, bool *continues_out, presto_error *err);

/**
 * This pipeline with the step index-jpeg that the one defined by `json` yields PRESTO_SEEKABLE by:
 * with the same options, in front of decode-image. *indexed_out is NULL if that one has no such step,
 * if this one has an index-jpeg or no place for it, and if it would change a pixel.
 * Owner: caller, presto_pipeline_free. The step types of `pipeline` must outlive it.
 * Returns: as presto_pipeline_parse.
 */
presto_status presto__pipeline_indexed_as(const presto_pipeline *pipeline, const char *json,
                                          presto_pipeline **indexed_out, presto_error *err);

/** Value of the source's option `name`; NULL only if its table has no such option. */
const presto_option *presto__pipeline_source_option(const presto_pipeline *pipeline,
                                                    const char *name);

/** Flags (presto_step_flag) of step i with its options; 0 if there is none. */
unsigned presto__pipeline_step_flags(const presto_pipeline *pipeline, size_t i);

/** Value of option `name` of step i; NULL if there is no such step or option. */
const presto_option *presto__pipeline_step_option(const presto_pipeline *pipeline, size_t i,
                                                  const char *name);

/** What the pipeline's source gives, as far as its options tell. Owned by the pipeline. */
const presto_tensor_spec *presto__pipeline_source_output(const presto_pipeline *pipeline);

/**
 * With "from=" in presto_pipeline_options.set: the name that the source of the text has for the
 * feature that the steps work on. Else NULL. Owned by the pipeline.
 */
const char *presto__pipeline_usual_feature(const presto_pipeline *pipeline);

/**
 * Likewise: option i among those that the source of the text has, that records could have, and that
 * nobody gave for the records. NULL: there are fewer. Static.
 */
const char *presto__pipeline_unused_option(const presto_pipeline *pipeline, size_t i);

/** May it be stored, i.e. is no random step before it? ("unprocessed": as the source has it.) */
bool presto__pipeline_representation_storable(const presto_pipeline *pipeline, size_t r);

/** Is it a JPEG as index-jpeg writes it? */
bool presto__jpeg_has_index(presto_span bytes);

const char *presto__plan_step_name(const presto_plan *plan, size_t i);

/** The feature that step i is told to read (`reads: NAME`); NULL: the main one. Borrowed from the
 * pipeline. */
const char *presto__plan_step_reads(const presto_plan *plan, size_t i);

/** The k-th of the other features that step i moves as it moves its image (`also`, `boxes`,
 * `keypoints`), a name or a prefix with a star behind it; NULL past the last. Borrowed from the
 * pipeline. */
const char *presto__plan_step_also(const presto_plan *plan, size_t i, size_t k);

/** Does step i move the pixels of the main feature, but not this one, which looks, by its name or
 * shape, like a mask, boxes or points of it? */
bool presto__plan_leaves(const presto_plan *plan, size_t i, const presto_feature_spec *feature);

/** What comes out of the plan, as far as it is known before any data. */
const presto_tensor_spec *presto__plan_output(const presto_plan *plan);

/** Flags (presto_step_flag) that at least one of its steps has. */
unsigned presto__plan_flags(const presto_plan *plan);

/**
 * Append what the plan computes as a JSON array, an object a step with all options that have a
 * value, defaults too; not NUL-terminated. Plans with equal text give equal outputs, as long as the
 * files of presto__plan_files() hold the same.
 * Returns: PRESTO_OK, PRESTO_ERR_MEMORY.
 */
presto_status presto__plan_json(const presto_plan *plan, presto_buffer *text_out,
                                presto_error *err);

/**
 * Call `found` for each file that the outputs depend on: those that options of kind FILE name, the
 * program and files of a COMMAND, the plugin of a step. It may be called twice for a file. Paths
 * are borrowed during the call; there may be no such file.
 */
void presto__plan_files(const presto_plan *plan, void (*found)(void *user, const char *path),
                        void *user);

/** No more results are wanted: a run under way, and all later ones, end soon, with
 * PRESTO_ERR_STOPPED if a step had to be interrupted. Any thread. */
void presto__plan_worker_cancel(presto__plan_worker *worker);

/** Memory that its steps' buffers hold. The worker's thread. */
size_t presto__plan_worker_memory(const presto__plan_worker *worker);

#endif
