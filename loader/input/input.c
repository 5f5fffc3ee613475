/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a list of paths means: the kind of input, its pipeline, and where its steps start.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/file_internal.h"
#include "../../records/records_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../../storage/play_internal.h"
#include "../../storage/storage_internal.h"
#include "../loader_internal.h"
#include "../source/core/source_internal.h"
#include "input_internal.h"

presto_status presto__input_steps(const presto_pipeline *pipeline, const char *from, const char *to,
                                  presto__step_range *steps_out, presto_error *err) {
    size_t representation = 0;
    PRESTO_TRY(presto_pipeline_representation_named(pipeline, from, false, &representation, err));
    size_t first = presto_pipeline_representation_steps(pipeline, representation);
    size_t last = presto_pipeline_step_count(pipeline);
    if (to != NULL) {
        PRESTO_TRY(presto_pipeline_representation_named(pipeline, to, false, &representation, err));
        last = presto_pipeline_representation_steps(pipeline, representation);
    }
    if (last < first)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "'%s' comes before '%s', which is what the input holds", to, from);
    *steps_out = (presto__step_range){first, last};
    return PRESTO_OK;
}

static presto_status open_dataset(const presto__input_request *request, presto__input *input,
                                  presto_error *err) {
    return presto_dataset_open(request->paths, request->path_count, &request->shard,
                               &input->dataset, err);
}

static bool has_pipeline(const presto__input_request *request) {
    return request->pipeline != NULL || request->read != NULL;
}

/* ---- the classes that a dataset is checked against ---- */

#define CLASSES "source.classes="

static bool is_classes(const char *set) {
    return strncmp(set, CLASSES, sizeof CLASSES - 1) == 0;
}

/* The labels of a dataset are numbers already: their names must be those of the pipeline's option
 * `classes`, if it has one. */
static presto_status check_option(const presto_pipeline *pipeline, presto_source *source,
                                  presto_error *err) {
    presto__classes classes;
    PRESTO_TRY(
        presto__classes_read(presto__pipeline_source_option(pipeline, "classes"), &classes, err));
    presto_status status =
        classes.count == 0 ? PRESTO_OK : presto__classes_check(&classes, source, err);
    presto__classes_done(&classes);
    return status;
}

/* Those of --set, else those of a pipeline that is given; the dataset's own has made the labels. */
static presto_status check_classes(const presto__input_request *request, presto__input *input,
                                   presto_error *err) {
    static const char text[] = "{name: classes, source: {type: files}, steps: [{step: read-file}]}";
    const char *set = NULL;
    presto_pipeline_options reading;
    presto_pipeline *pipeline = NULL;
    bool is_own = false;
    for (size_t i = 0; i < request->reading.set_count; i++)
        if (is_classes(request->reading.set[i]))
            set = request->reading.set[i];
    const presto_dataset_info *info = presto_dataset_get_info(input->dataset);
    if (set == NULL && has_pipeline(request) && info->pipeline_json != NULL)
        PRESTO_TRY(presto__pipeline_same(input->pipeline, info->pipeline_json, &is_own, err));
    if (set == NULL)
        return is_own || !has_pipeline(request) ? PRESTO_OK
                                                : check_option(input->pipeline, input->source, err);
    presto_pipeline_options_defaults(&reading);
    reading.set = &set;
    reading.set_count = 1;
    PRESTO_TRY(presto__pipeline_parse(presto_span_of_text(text), "source.classes", &reading,
                                      &pipeline, err));
    presto_status status = check_option(pipeline, input->source, err);
    presto_pipeline_free(pipeline);
    return status;
}

/* Without what a dataset is only checked against: `set`, [set_count]. */
static void leave_out_classes(presto_pipeline_options *reading, const char **set) {
    size_t kept = 0;
    for (size_t i = 0; i < reading->set_count; i++)
        if (!is_classes(reading->set[i]))
            set[kept++] = reading->set[i];
    reading->set = set;
    reading->set_count = kept;
}

/* ---- pipelines ---- */

/* The one that has been read or is named, else the text of the dataset. */
static presto_status take_pipeline(const presto__input_request *request, presto__input *input,
                                   presto_error *err) {
    if (request->read != NULL) {
        input->pipeline = presto__pipeline_keep(request->read);
        return PRESTO_OK;
    }
    presto_pipeline_options reading = request->reading;
    const char **set = malloc((reading.set_count + 1) * sizeof *set);
    if (set == NULL)
        return presto_fail_memory(err, (reading.set_count + 1) * sizeof *set);
    if (input->dataset != NULL)
        leave_out_classes(&reading, set);
    reading.from = request->from;
    /* Files of pipelines and of their steps are not on the storage that is played. */
    presto__storage_thread *played = presto__storage_bind(NULL);
    presto_status status =
        request->pipeline != NULL
            ? presto_pipeline_load(request->pipeline, &reading, &input->pipeline, err)
            : presto__pipeline_parse(
                  presto_span_of_text(presto_dataset_get_info(input->dataset)->pipeline_json),
                  request->paths[0], &reading, &input->pipeline, err);
    (void)presto__storage_bind(played);
    free(set);
    return status;
}

static bool takes_records(const presto__input *input) {
    return presto_pipeline_source(input->pipeline)->takes_records;
}

/* All steps remain, from what the pipeline's source gives. */
static presto_status start_at_source(presto__input *input) {
    input->from = PRESTO_UNPROCESSED;
    input->spec = presto__source_main_spec(input->source);
    return PRESTO_OK;
}

static presto_status open_as_records(presto__input *input, presto_error *err) {
    PRESTO_TRY(presto__tfrecord_open(input->pipeline, input->dataset, &input->source, err));
    return start_at_source(input);
}

/* The stored samples have run through the steps before: these must be the same. */
static presto_status fail_other(const presto__input_request *request, const presto__input *input,
                                presto_error *err) {
    const presto_dataset_info *info = presto_dataset_get_info(input->dataset);
    if (info->pipeline_json == NULL || info->stored == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s does not say which representation of pipeline %s it holds: give "
                           "--from REPRESENTATION",
                           request->paths[0], presto_pipeline_name(input->pipeline));
    if (has_pipeline(request) && strcmp(info->stored, PRESTO_SEEKABLE) == 0 &&
        presto_pipeline_representation_find(input->pipeline, PRESTO_SEEKABLE) == SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s holds '" PRESTO_SEEKABLE
                           "', which pipeline %s does not have: --set " PRESTO_SET_SEEKABLE
                           " adds it, --set index-jpeg.OPTION=VALUE sets the options that the "
                           "dataset was written with, if it is the same pipeline otherwise; or "
                           "leave the pipeline out, or give --from with the representation that "
                           "the dataset holds",
                           request->paths[0], presto_pipeline_name(input->pipeline));
    if (!has_pipeline(request))
        return presto_fail(
            err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
            "--set changes a step that %s has behind it, or its source: it holds '%s'",
            request->paths[0], info->stored);
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "%s was made by another pipeline than %s, so that its steps cannot go on "
                       "there; to run that one's steps on it, give --from with the representation "
                       "that it holds",
                       request->paths[0],
                       request->pipeline != NULL ? request->pipeline
                                                 : presto_pipeline_name(input->pipeline));
}

/* Can the pipeline go on behind what the dataset holds? One without the dataset's index-jpeg, which
 * changes no pixel, goes on with it. */
static presto_status find_continuation(presto__input *input, bool *continues_out,
                                       presto_error *err) {
    const presto_dataset_info *info = presto_dataset_get_info(input->dataset);
    presto_pipeline *indexed = NULL;
    *continues_out = false;
    if (info->pipeline_json == NULL || info->stored == NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto__pipeline_continues(input->pipeline, info->pipeline_json, info->stored,
                                          continues_out, err));
    if (*continues_out)
        return PRESTO_OK;
    PRESTO_TRY(presto__pipeline_indexed_as(input->pipeline, info->pipeline_json, &indexed, err));
    if (indexed == NULL)
        return PRESTO_OK;
    presto_status status =
        presto__pipeline_continues(indexed, info->pipeline_json, info->stored, continues_out, err);
    if (status == PRESTO_OK && *continues_out) {
        presto_pipeline_free(input->pipeline);
        input->pipeline = indexed;
        return PRESTO_OK;
    }
    presto_pipeline_free(indexed);
    return status;
}

/* A dataset that does not say what made it, without a pipeline: records as they are. */
static presto_status open_unnamed(const presto__input_request *request, presto__input *input,
                                  presto_error *err) {
    const char *word = request->from != NULL ? request->from : request->to;
    if (word != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s does not say which pipeline it belongs to, so that '%s' means "
                           "nothing",
                           request->paths[0], word);
    return presto__source_open_dataset(input->dataset, &input->source, err);
}

/* dataset.json names a representation of its own pipeline. */
static presto_status check_stored(const presto__input_request *request, const presto__input *input,
                                  presto_error *err) {
    presto_error why;
    size_t representation;
    const char *stored = presto_dataset_get_info(input->dataset)->stored;
    presto_status status =
        presto_pipeline_representation_named(input->pipeline, stored, false, &representation, &why);
    if (status != PRESTO_ERR_NOT_FOUND) {
        if (status < 0 && err != NULL)
            *err = why;
        return status;
    }
    char *file = presto__join_path(request->paths[0], PRESTO_DATASET_FILE);
    if (file == NULL)
        return presto_fail_memory(err, strlen(request->paths[0]));
    status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                         "bad dataset.json: 'stored' (in older ones 'split'): %.400s", why.message);
    presto_error_set_file(err, file);
    free(file);
    return status;
}

/*
 * A dataset goes on after what it holds if it was made by this pipeline. Else its records are the
 * source, if the pipeline takes records.
 */
static presto_status open_unchecked(const presto__input_request *request, presto__input *input,
                                    presto_error *err) {
    if (request->path_count > 1)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s is a whole dataset and must be the only input", request->paths[0]);
    PRESTO_TRY(open_dataset(request, input, err));
    const presto_dataset_info *info = presto_dataset_get_info(input->dataset);
    bool knows_pipeline = info->pipeline_json != NULL && info->stored != NULL;
    if (!has_pipeline(request) && !knows_pipeline)
        return open_unnamed(request, input, err);
    if (!has_pipeline(request) && request->from != NULL && strcmp(request->from, info->stored) != 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s holds '%s', not '%s': leave out --from, or name another pipeline",
                           request->paths[0], info->stored, request->from);
    bool continues = false;
    PRESTO_TRY(take_pipeline(request, input, err));
    if (!has_pipeline(request))
        PRESTO_TRY(check_stored(request, input, err));
    PRESTO_TRY(find_continuation(input, &continues, err));
    if (!continues && takes_records(input))
        return open_as_records(input, err);
    if (!continues)
        return fail_other(request, input, err);
    PRESTO_TRY(presto__source_open_dataset(input->dataset, &input->source, err));
    input->from = info->stored;
    input->spec = presto__source_main_spec(input->source);
    if (presto_source_count(input->source) == 0) /* no sample has shown what it is */
        input->spec = (presto_tensor_spec){.dtype = PRESTO_DTYPE_UNKNOWN, .rank = -1};
    return PRESTO_OK;
}

static presto_status open_own(const presto__input_request *request, presto__input *input,
                              presto_error *err) {
    PRESTO_TRY(open_unchecked(request, input, err));
    presto_status status = check_classes(request, input, err);
    if (status == PRESTO_ERR_TYPE)
        presto_error_set_file(err, request->paths[0]);
    return status;
}

static presto_status open_raw(const presto__input_request *request, presto__input *input,
                              presto_error *err) {
    PRESTO_TRY(take_pipeline(request, input, err));
    if (takes_records(input) && request->path_count > 0) {
        PRESTO_TRY(open_dataset(request, input, err));
        return open_as_records(input, err);
    }
    const presto__raw_request raw = {input->pipeline, request->paths, request->path_count,
                                     &request->shard};
    PRESTO_TRY(presto__source_open_request(&raw, &input->source, err));
    return start_at_source(input);
}

/* Records as they are stored, of a dataset or of files. */
static presto_status open_records(const presto__input_request *request, presto__input *input,
                                  presto_error *err) {
    if (has_pipeline(request) || request->from != NULL || request->to != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "raw records run through no steps: name no pipeline");
    if (request->path_count == 0)
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no input is given");
    PRESTO_TRY(open_dataset(request, input, err));
    return presto__source_open_records(input->dataset, &input->source, err);
}

/* Files without a pipeline: TFRecords of other programs. */
static presto_status open_foreign(const presto__input_request *request, presto__input *input,
                                  presto_error *err) {
    if (request->reading.set_count > 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "--set %.64s: of which pipeline?", request->reading.set[0]);
    if (request->reading.feature != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "--feature %.64s: of which pipeline?", request->reading.feature);
    if (request->from != NULL || request->to != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "'%s' is a representation of which pipeline?",
                           request->from != NULL ? request->from : request->to);
    PRESTO_TRY(open_dataset(request, input, err));
    return presto__source_open_dataset(input->dataset, &input->source, err);
}

static presto_status open_input(const presto__input_request *request, presto__input *input,
                                presto_error *err) {
    if (request->raw_records)
        return open_records(request, input, err);
    if (request->as_stored) {
        PRESTO_TRY(open_dataset(request, input, err));
        return presto__source_open_dataset(input->dataset, &input->source, err);
    }
    bool is_raw = has_pipeline(request) &&
                  (request->from == NULL || strcmp(request->from, PRESTO_UNPROCESSED) == 0);
    if (request->path_count == 0 && !is_raw) /* there are sources without paths */
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no input is given");
    for (size_t i = 0; i < request->path_count; i++) {
        bool is_dataset = false;
        PRESTO_TRY(presto__path_is_dataset(request->paths[i], &is_dataset, err));
        if (is_dataset)
            return open_own(request, input, err);
    }
    return has_pipeline(request) ? open_raw(request, input, err)
                                 : open_foreign(request, input, err);
}

presto_status presto__input_open(const presto__input_request *request, presto__input *input,
                                 presto_error *err) {
    presto__ahead *ahead = NULL;
    for (size_t i = 0; i < request->path_count && ahead == NULL; i++)
        if (presto__path_is_remote(request->paths[i]))
            PRESTO_TRY(presto__ahead_new(0, &ahead, err));
    /* What is looked for and then opened is requested once. */
    presto__ahead *before = presto__ahead_bind(ahead);
    presto_status status = open_input(request, input, err);
    (void)presto__ahead_bind(before);
    presto__ahead_free(ahead);
    return status < 0 ? status : PRESTO_OK;
}

void presto__input_close(presto__input *input) {
    presto__source_free(input->source);
    presto_dataset_free(input->dataset);
    presto_pipeline_free(input->pipeline);
    *input = (presto__input){0};
}
