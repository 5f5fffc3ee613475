/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the samples that are measured. The first samples of a sorted source are often all of one
 * kind (one class, one day), and no error bar shows it. So a sample of files is taken evenly from
 * the whole list (systematic sampling): the files are named one by one, as a user could. Labels
 * from a CSV file belong to whole folders. There, and with other kinds of source, the first samples
 * are taken. Of TFRecords, a few files are taken evenly from all of them, and records from all over
 * these; of tars, samples from all over them (presto_partition.even_samples). A few of them tell
 * whether JPEGs with an index are worth a trial.
 */
#include "../../loader/loader_internal.h"
#include "../../records/records_internal.h"
#include "../../steps/pipelines_internal.h"
#include "trial_internal.h"

#include <stdlib.h>
#include <string.h>

#define LIST_BATCH 1024

bool presto__sample_can_spread(const presto_pipeline *pipeline) {
    if (strcmp(presto_pipeline_source(pipeline)->name, "files") != 0)
        return false;
    const presto_option *label = presto__pipeline_source_option(pipeline, "label");
    return label->text == NULL || strncmp(label->text, "csv", 3) != 0;
}

/* Are its samples numbered within files, so that some from all over them can be picked? */
static bool is_picked(const presto_pipeline *pipeline) {
    const presto_source_type *type = presto_pipeline_source(pipeline);
    return type->takes_records || strcmp(type->name, "tar") == 0;
}

void presto__paths_free(char **paths, size_t count) {
    if (paths == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}

/* Position of pick i of `wanted` out of `total`: the middle of its stretch. Fits: wanted <= total <
 * 2^63. */
static uint64_t position_of(uint64_t i, uint64_t wanted, uint64_t total) {
    uint64_t stretch = total / wanted;
    uint64_t rest = total % wanted;
    return i * stretch + i * rest / wanted + stretch / 2;
}

/* `wanted` paths out of `total`. */
typedef struct picking {
    uint64_t wanted, total;
    char **paths;
    size_t count;
} picking;

static presto_status pick(picking *p, const presto_batch *batch, presto_error *err) {
    const presto_batch_feature *feature =
        batch->main_feature < batch->feature_count ? &batch->features[batch->main_feature] : NULL;
    if (feature == NULL || feature->layout != PRESTO_LAYOUT_BYTES || feature->row_offsets != NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "the source does not give paths");
    while (p->count < p->wanted) {
        uint64_t at = position_of(p->count, p->wanted, p->total);
        if (at >= batch->first + batch->rows)
            return PRESTO_OK;
        presto_span path = presto_batch_string(feature, (size_t)(at - batch->first));
        char *copy = presto_span_to_text(path);
        if (copy == NULL)
            return presto_fail_memory(err, path.bytes + 1);
        p->paths[p->count++] = copy;
    }
    return PRESTO_OK;
}

static presto_status list(picking *p, presto_loader *loader, presto_error *err) {
    while (p->count < p->wanted) {
        presto_batch *batch = NULL;
        presto_status status = presto_loader_next(loader, &batch, err);
        if (status == PRESTO_END)
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "the source ended early");
        if (status == PRESTO_OK) {
            status = pick(p, batch, err);
            presto_batch_release(batch);
        }
        PRESTO_TRY(status);
    }
    return PRESTO_OK;
}

/* Records of so many files, taken evenly from all. */
static uint64_t records_of(const presto_dataset *dataset, size_t files) {
    uint64_t records = 0, all = presto_dataset_shard_count(dataset);
    for (size_t i = 0; i < files; i++) {
        size_t at = (size_t)position_of(i, files, all);
        records +=
            presto__dataset_shard_first(dataset, at + 1) - presto__dataset_shard_first(dataset, at);
    }
    return records;
}

static presto_status copy_shards(const presto_dataset *dataset, uint64_t wanted, char ***paths_out,
                                 size_t *count_out, presto_error *err) {
    size_t all = presto_dataset_shard_count(dataset), count = all > 0;
    while (count < all && records_of(dataset, count) < wanted)
        count = count + count / 8 + 1 < all ? count + count / 8 + 1 : all;
    char **paths = calloc(count + 1, sizeof *paths);
    if (paths == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *paths);
    for (size_t i = 0; i < count; i++) {
        const char *path = presto_dataset_shard_path(dataset, (size_t)position_of(i, count, all));
        paths[i] = strdup(path);
        if (paths[i] == NULL) {
            presto__paths_free(paths, i);
            return presto_fail_memory(err, strlen(path) + 1);
        }
    }
    *paths_out = paths;
    *count_out = count;
    return PRESTO_OK;
}

/* As few files of TFRecords as hold `wanted` samples, from all over them, so that a trial does not
 * count the records of all the others. */
static presto_status choose_shards(const presto__runner *runner, uint64_t wanted, char ***paths_out,
                                   size_t *count_out, presto_error *err) {
    presto_shard_options options;
    presto_dataset *dataset = NULL;
    presto_shard_options_defaults(&options);
    PRESTO_TRY(presto_dataset_open(runner->paths, runner->path_count, &options, &dataset, err));
    presto_status status = copy_shards(dataset, wanted, paths_out, count_out, err);
    presto_dataset_free(dataset);
    return status;
}

/* Paths of `wanted` (1 to the source's count) samples, evenly spread over the source. */
static presto_status choose_paths(presto_source *source, size_t wanted, char ***paths_out,
                                  presto_error *err) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = 0;
    options.batch_samples = LIST_BATCH;
    picking p = {.wanted = wanted, .total = presto_source_count(source)};
    p.paths = calloc(wanted, sizeof *p.paths);
    if (p.paths == NULL)
        return presto_fail_memory(err, wanted * sizeof *p.paths);
    presto_loader *loader = NULL;
    presto_status status = presto__loader_open(source, NULL, &options, &loader, err);
    if (status == PRESTO_OK)
        status = list(&p, loader, err);
    presto_loader_free(loader);
    if (status != PRESTO_OK) {
        presto__paths_free(p.paths, p.count);
        return status;
    }
    *paths_out = p.paths;
    return PRESTO_OK;
}

presto_status presto__sample_open(const presto__runner *runner, presto_source **source_out,
                                  presto_error *err) {
    presto_source *source;
    PRESTO_TRY(
        presto__source_open_raw(runner->pipeline, runner->paths, runner->path_count, &source, err));
    presto_status status = presto__source_choose(source, &runner->picked, err);
    if (status < 0) {
        presto__source_free(source);
        return status;
    }
    *source_out = source;
    return status;
}

presto_status presto__sample_take(presto__runner *runner, presto_error *err) {
    size_t count = (size_t)runner->options->samples;
    if (is_picked(runner->pipeline))
        runner->picked.even_samples = runner->options->samples;
    if (presto__sample_can_spread(runner->pipeline)) {
        PRESTO_TRY(choose_paths(runner->source, count, &runner->sample_paths, err));
    } else if (presto_pipeline_source(runner->pipeline)->takes_records) {
        PRESTO_TRY(
            choose_shards(runner, runner->options->samples, &runner->sample_paths, &count, err));
    } else {
        presto_status status = presto__source_choose(runner->source, &runner->picked, err);
        runner->is_even = status == PRESTO_OK && runner->picked.even_samples > 0;
        presto__source_truncate(runner->source, runner->options->samples);
        return status < 0 ? status : PRESTO_OK;
    }
    runner->sample_path_count = count;
    presto__source_free(runner->source);
    runner->source = NULL;
    runner->paths = (const char *const *)runner->sample_paths;
    runner->path_count = count;
    presto_status status = presto__sample_open(runner, &runner->source, err);
    if (status < 0)
        return status;
    runner->is_even = status == PRESTO_OK;
    presto__source_truncate(runner->source, runner->options->samples);
    return PRESTO_OK;
}

/* A runner that has nothing but what a sample needs. */
static presto_status take_more(const presto__runner *runner, presto__runner *more,
                               presto_error *err) {
    PRESTO_TRY(
        presto__source_open_raw(more->pipeline, more->paths, more->path_count, &more->source, err));
    if (more->options->samples >= runner->source_samples)
        return PRESTO_OK;
    return presto__sample_take(more, err);
}

presto_status presto__sample_open_more(presto__runner *runner, uint64_t wanted,
                                       presto_source **source_out, presto_error *err) {
    presto_sweep_options options = *runner->options;
    options.samples = wanted;
    presto__runner more = {.pipeline = runner->pipeline,
                           .options = &options,
                           .paths = runner->all_paths,
                           .path_count = runner->all_path_count};
    if (runner->more == NULL || runner->more_wanted != wanted) {
        presto_status status = take_more(runner, &more, err);
        if (status < 0) {
            presto__source_free(more.source);
            presto__paths_free(more.sample_paths, more.sample_path_count);
            return status;
        }
        presto__source_free(runner->more);
        presto__paths_free(runner->more_paths, runner->more_path_count);
        runner->more = more.source;
        runner->more_paths = more.sample_paths;
        runner->more_path_count = more.sample_path_count;
        runner->more_wanted = wanted;
    }
    *source_out = runner->more;
    return PRESTO_OK;
}

/* ---- is it of photos that index-jpeg takes? ---- */

enum { LOOKED_AT = 8 };

static presto_status count_indexed(presto_loader *loader, size_t *indexed_out, size_t *count_out,
                                   presto_error *err) {
    for (;;) {
        presto_batch *batch = NULL;
        presto_status status = presto_loader_next(loader, &batch, err);
        if (status != PRESTO_OK)
            return status == PRESTO_END ? PRESTO_OK : status;
        const presto_batch_feature *feature = batch->main_feature < batch->feature_count
                                                  ? &batch->features[batch->main_feature]
                                                  : NULL;
        bool has_bytes = feature != NULL && feature->layout == PRESTO_LAYOUT_BYTES &&
                         feature->row_offsets == NULL;
        for (size_t i = 0; has_bytes && i < batch->rows; i++)
            *indexed_out += presto__jpeg_has_index(presto_batch_string(feature, i));
        *count_out += batch->rows;
        presto_batch_release(batch);
    }
}

/* As the sweep takes its sample, and then the steps up to index-jpeg. */
static presto_status look_at_few(presto__runner *few, presto_plan **plan_out,
                                 presto_loader **loader_out, presto_error *err) {
    PRESTO_TRY(
        presto__source_open_raw(few->pipeline, few->paths, few->path_count, &few->source, err));
    if (presto_source_count(few->source) > LOOKED_AT)
        PRESTO_TRY(presto__sample_take(few, err));
    size_t seekable = presto_pipeline_representation_find(few->pipeline, PRESTO_SEEKABLE);
    presto_tensor_spec in = presto__source_main_spec(few->source);
    const presto__plan_options planning = {
        .struct_bytes = sizeof planning,
        .last_step = presto_pipeline_representation_steps(few->pipeline, seekable),
        .in = &in};
    PRESTO_TRY(presto__plan_new(few->pipeline, &planning, plan_out, err));
    presto_loader_options loading;
    presto_loader_options_defaults(&loading);
    loading.threads = 0;
    loading.batch_samples = LOOKED_AT;
    /* What cannot be read is told by the sweep itself. */
    loading.errors = (presto_loader_errors){
        .policy = PRESTO_ON_ERROR_SKIP, .skip_limit = UINT64_MAX, .skip_fraction = 1};
    return presto__loader_open(few->source, *plan_out, &loading, loader_out, err);
}

bool presto__sample_gains_index(const presto_pipeline *seekable, const char *const *paths,
                                size_t path_count, const presto_sweep_options *options) {
    presto_sweep_options looking = *options;
    looking.samples = LOOKED_AT;
    presto__runner few = {
        .pipeline = seekable, .options = &looking, .paths = paths, .path_count = path_count};
    presto_plan *plan = NULL;
    presto_loader *loader = NULL;
    size_t indexed = 0, count = 0;
    presto_status status = look_at_few(&few, &plan, &loader, NULL);
    if (status == PRESTO_OK)
        status = count_indexed(loader, &indexed, &count, NULL);
    presto_loader_free(loader);
    presto__plan_free(plan);
    presto__source_free(few.source);
    presto__paths_free(few.sample_paths, few.sample_path_count);
    return status == PRESTO_OK && count > 0 && 2 * indexed >= count;
}
