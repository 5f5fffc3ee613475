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
 * Returns: as presto_pipeline_parse.
 */
presto_status presto__pipeline_same(const presto_pipeline *pipeline, const char *json,
                                    bool *same_out, presto_error *err);

/**
 * Can this pipeline go on where the one defined by `json` stopped: at its representation `split`?
 * Both must have one name and the same steps up to there, and the same source if that yields
 * values.
 * Returns: as presto_pipeline_parse.
 */
presto_status presto__pipeline_continues(const presto_pipeline *pipeline, const char *json,
                                         const char *split, bool *continues_out, presto_error *err);

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

/** May it be stored, i.e. is no random step before it? ("unprocessed": as the source has it.) */
bool presto__pipeline_representation_storable(const presto_pipeline *pipeline, size_t r);

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
void presto__plan_worker_cancel(presto_plan_worker *worker);

/** Memory that its steps' buffers hold. The worker's thread. */
size_t presto__plan_worker_memory(const presto_plan_worker *worker);

#endif
