/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw source `hdf5`: windows of one-dimensional datasets, many in each file. All files are
 * looked at when the source is opened, many at a time; one that is damaged is a sample that fails,
 * so that it is left out or ends the job as the user wants it. If the machine fails, opening does.
 */
#include "../../../steps/pipelines_internal.h"
#include "../files/source_files_internal.h"

#if PRESTO_HAVE_HDF5
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../base/memory_internal.h"
#include "../../../base/retry_internal.h"
#include "../../../storage/fan_out_internal.h"
#include "hdf5_internal.h"

/* What is in a file. */
typedef struct recording {
    uint64_t first;                 /* sample */
    presto__hdf5_dataset *datasets; /* of the source's number; NULL: it cannot be read */
    presto_error *failure;          /* why not */
} recording;

typedef struct hdf5_source {
    presto__files files; /* its samples are the files' windows */
    recording *recordings;
    presto__open_files *open; /* for its readers */
    char **names;             /* of the datasets */
    size_t name_count;
    uint64_t window_values;
    uint64_t max_chunk_bytes;
    /* What is left out. */
    uint64_t rest_values, rest_files;
} hdf5_source;

typedef struct hdf5_reader {
    presto__reader base;
    const uint64_t *numbers;      /* of the block: borrowed from the caller of fetch */
    presto__hdf5_cursor *cursors; /* of the source's number of datasets */
    size_t open;                  /* the file that `object` is; SIZE_MAX: none */
    presto__object object;
} hdf5_reader;

static const hdf5_source *source_of(const presto_source *base) {
    return (const hdf5_source *)base;
}

/* ---- places ---- */

/* The file that a sample is in. */
static size_t file_of(const hdf5_source *source, uint64_t number) {
    return presto__part_of(&source->recordings[0].first, sizeof source->recordings[0],
                           source->files.file_count, number);
}

static void hdf5_locate(const presto_source *base, uint64_t number, presto_error *err) {
    const hdf5_source *source = source_of(base);
    size_t file = file_of(source, number);
    presto_error_set_file(err, source->files.entries[file].path);
    if (source->recordings[file].failure == NULL)
        presto_error_set_record(err, number - source->recordings[file].first);
}

static void hdf5_place(presto__reader *base, size_t i, presto_error *err) {
    hdf5_locate(base->source, ((const hdf5_reader *)base)->numbers[i], err);
}

/* ---- reading ---- */

static presto_status hdf5_reader_new(presto_source *base, const presto__reader_options *options,
                                     presto__reader **reader_out, presto_error *err) {
    (void)options;
    const hdf5_source *source = source_of(base);
    hdf5_reader *reader = presto__memory_apart(1, sizeof *reader);
    presto__hdf5_cursor *cursors =
        presto__memory_apart(source->name_count, sizeof(presto__hdf5_cursor));
    if (reader == NULL || cursors == NULL) {
        free(reader);
        free(cursors);
        return presto_fail_memory(err, sizeof *reader);
    }
    reader->base.source = base;
    reader->cursors = cursors;
    reader->open = SIZE_MAX;
    *reader_out = &reader->base;
    return PRESTO_OK;
}

static void release_file(hdf5_reader *reader) {
    if (reader->open != SIZE_MAX)
        presto__open_files_release(source_of(reader->base.source)->open, reader->open);
    reader->open = SIZE_MAX;
}

static void hdf5_reader_free(presto__reader *base) {
    hdf5_reader *reader = (hdf5_reader *)base;
    if (reader == NULL)
        return;
    release_file(reader);
    for (size_t i = 0; i < source_of(base->source)->name_count; i++)
        presto__hdf5_cursor_done(&reader->cursors[i]);
    free(reader->cursors);
    free(reader);
}

static presto_status hdf5_fetch(presto__reader *base, const uint64_t *numbers, size_t count,
                                presto__blocks *blocks, presto_error *err) {
    (void)count, (void)blocks, (void)err;
    ((hdf5_reader *)base)->numbers = numbers;
    return PRESTO_OK;
}

static presto_status have_file(hdf5_reader *reader, size_t file, presto_error *err) {
    if (reader->open == file)
        return PRESTO_OK;
    release_file(reader);
    presto__open_files *open = source_of(reader->base.source)->open;
    PRESTO_TRY(presto__open_files_acquire(open, file, &reader->object, err));
    reader->open = file;
    return PRESTO_OK;
}

static presto_status read_window(hdf5_reader *reader, size_t file, uint64_t window, double *rows,
                                 presto_error *err) {
    const hdf5_source *source = source_of(reader->base.source);
    const presto__file *entry = &source->files.entries[file];
    PRESTO_TRY(have_file(reader, file, err));
    for (size_t i = 0; i < source->name_count; i++) {
        const presto__hdf5_range range = {.object = reader->object,
                                          .path = entry->path,
                                          .dataset = &source->recordings[file].datasets[i],
                                          .first = window * source->window_values,
                                          .count = source->window_values};
        PRESTO_TRY(presto__hdf5_read(&reader->cursors[i], &range, rows + i * source->window_values,
                                     &reader->base.stats, err));
    }
    return PRESTO_OK;
}

/* "day1/08.h5#17" */
static presto_status make_key(const presto__file *entry, uint64_t window, presto_arena *arena,
                              presto_span *key_out, presto_error *err) {
    size_t room = entry->path_bytes - entry->key_at + sizeof "#18446744073709551615";
    char *text = presto_arena_alloc(arena, room, 1);
    if (text == NULL)
        return presto_fail_memory(err, room);
    int bytes = snprintf(text, room, "%s#%" PRIu64, entry->path + entry->key_at, window);
    *key_out = presto_span_of(text, (size_t)bytes);
    return PRESTO_OK;
}

static presto_tensor_spec window_spec(const hdf5_source *source) {
    return (presto_tensor_spec){
        PRESTO_FLOAT64, 2, {(int64_t)source->name_count, (int64_t)source->window_values}};
}

static presto_status hdf5_sample(presto__reader *base, size_t i, presto_arena *arena,
                                 presto_sample *sample_out, presto_error *err) {
    hdf5_reader *reader = (hdf5_reader *)base;
    const hdf5_source *source = source_of(base->source);
    size_t file = file_of(source, reader->numbers[i]);
    const recording *from = &source->recordings[file];
    if (from->failure != NULL) {
        if (err != NULL)
            *err = *from->failure;
        return from->failure->status;
    }
    uint64_t window = reader->numbers[i] - from->first;
    size_t bytes = source->name_count * (size_t)source->window_values * sizeof(double);
    presto_feature *features =
        presto_arena_alloc(arena, 3 * sizeof *features, _Alignof(max_align_t));
    presto_span *key = presto_arena_alloc(arena, sizeof *key, _Alignof(max_align_t));
    double *rows = presto_arena_alloc(arena, bytes, 64);
    if (features == NULL || key == NULL || rows == NULL)
        return presto_fail_memory(err, bytes);
    const presto__file *entry = &source->files.entries[file];
    PRESTO_TRY(make_key(entry, window, arena, key, err));
    PRESTO_TRY(read_window(reader, file, window, rows, err));
    features[0] = (presto_feature){.name = presto_span_of_text(base->source->main_feature),
                                   .encoding = PRESTO_ENCODE_TENSOR,
                                   .tensor = {.spec = window_spec(source), .data = rows}};
    features[1] = (presto_feature){.name = presto_span_of_text("key"),
                                   .encoding = PRESTO_ENCODE_BYTES,
                                   .tensor = {.spec = {.dtype = PRESTO_STRING}, .strings = key}};
    if (source->files.has_labels)
        features[2] = presto__files_label_feature(&source->files, entry);
    *sample_out = (presto_sample){.features = features,
                                  .feature_count = source->files.has_labels ? 3 : 2,
                                  .number = reader->numbers[i]};
    return PRESTO_OK;
}

/* ---- the source ---- */

static void hdf5_free(presto_source *base) {
    hdf5_source *source = (hdf5_source *)base;
    for (size_t f = 0; source->recordings != NULL && f < source->files.file_count; f++) {
        recording *from = &source->recordings[f];
        for (size_t i = 0; from->datasets != NULL && i < source->name_count; i++)
            presto__hdf5_dataset_done(&from->datasets[i]);
        free(from->datasets);
        free(from->failure);
    }
    for (size_t i = 0; i < source->name_count; i++)
        free(source->names[i]);
    free(source->names);
    free(source->recordings);
    presto__open_files_free(source->open);
    presto__files_done(&source->files);
    free(source);
}

/* The files that have samples below the source's count. */
static size_t files_in_use(const hdf5_source *source) {
    uint64_t count = source->files.base.count;
    return count == 0 ? 0 : file_of(source, count - 1) + 1;
}

static presto_status hdf5_drop_cache(presto_source *base, presto_error *err) {
    const hdf5_source *source = source_of(base);
    presto__open_files_close_idle(source->open);
    return presto__files_drop_cache(&source->files, files_in_use(source), err);
}

static uint64_t hdf5_digest(const presto_source *base) {
    const hdf5_source *source = source_of(base);
    uint64_t digest = presto__files_digest(&source->files, files_in_use(source));
    digest = presto__fnv_mix(presto__fnv_mix(digest, base->count), source->window_values);
    for (size_t i = 0; i < source->name_count; i++)
        digest = presto__fnv_add(digest, source->names[i], strlen(source->names[i]) + 1);
    return digest;
}

static presto_status hdf5_identify(const presto_source *base, bool as_named, presto__digest *digest,
                                   presto_error *err) {
    const hdf5_source *source = source_of(base);
    presto__digest_add(digest, &source->window_values, sizeof source->window_values);
    for (size_t i = 0; i < source->name_count; i++)
        presto__digest_add(digest, source->names[i], strlen(source->names[i]));
    return presto__files_identify(&source->files, as_named, digest, err);
}

/* The file, and its number there. */
static void hdf5_name(const presto_source *base, uint64_t number, presto__digest *digest) {
    const hdf5_source *source = source_of(base);
    size_t file = file_of(source, number);
    uint64_t within = number - source->recordings[file].first;
    presto__files_name(&source->files.entries[file], digest);
    presto__digest_add(digest, &within, sizeof within);
}

static const presto__source_ops hdf5_ops = {
    .free = hdf5_free,
    .drop_cache = hdf5_drop_cache,
    .reader_new = hdf5_reader_new,
    .reader_free = hdf5_reader_free,
    .fetch = hdf5_fetch,
    .sample = hdf5_sample,
    .place = hdf5_place,
    .locate = hdf5_locate,
    .name = hdf5_name,
    .digest = hdf5_digest,
    .identify = hdf5_identify,
};

/* ---- opening ---- */

static presto_status look_at(hdf5_source *source, const presto__file *entry,
                             presto__hdf5_dataset *datasets, presto_error *err) {
    const presto__file_request file = {entry->path, entry, UINT64_MAX};
    presto__hdf5_request request = {.bytes = entry->bytes,
                                    .path = entry->path,
                                    .names = (const char *const *)source->names,
                                    .count = source->name_count,
                                    .max_chunk_bytes = source->max_chunk_bytes};
    PRESTO_TRY(presto__source_file_open(&file, &request.object, err));
    presto_status status = presto__hdf5_look_up(&request, datasets, err);
    presto__object_close(&request.object);
    return status;
}

static presto_status keep_failure(recording *into, const presto_error *failure, presto_error *err) {
    into->failure = malloc(sizeof *into->failure);
    if (into->failure == NULL)
        return presto_fail_memory(err, sizeof *into->failure);
    *into->failure = *failure;
    return PRESTO_OK;
}

/* A job of presto__fan_out: file `file`, which is no other job's. */
static presto_status look_at_recording(void *user, size_t file, presto_error *err) {
    hdf5_source *source = user; /* its caller's, who waits for all jobs */
    recording *into = &source->recordings[file];
    presto_error failure;
    presto__hdf5_dataset *datasets = calloc(source->name_count, sizeof *datasets);
    if (datasets == NULL)
        return presto_fail_memory(err, source->name_count * sizeof *datasets);
    presto_status status = look_at(source, &source->files.entries[file], datasets, &failure);
    if (status >= 0) {
        into->datasets = datasets;
        return PRESTO_OK;
    }
    free(datasets);
    if (!presto__is_machine_failure(&failure))
        return keep_failure(into, &failure, err);
    if (err != NULL)
        *err = failure;
    return status;
}

/* Number the samples of a file. */
static void add_recording(hdf5_source *source, recording *into) {
    into->first = source->files.base.count;
    if (into->failure != NULL) {
        source->files.base.count++;
        return;
    }
    uint64_t values = into->datasets[0].values, rest = values % source->window_values;
    source->files.base.count += values / source->window_values;
    source->rest_values += rest;
    source->rest_files += rest > 0;
}

static presto_status tell_rest(hdf5_source *source, presto_error *err) {
    char values[PRESTO_TEXT_BYTES], files[PRESTO_TEXT_BYTES], text[4 * PRESTO_TEXT_BYTES];
    if (source->rest_values == 0)
        return PRESTO_OK;
    presto_format_things(source->rest_values, "value", values);
    presto_format_things(source->rest_files, "file", files);
    snprintf(text, sizeof text, "%s at the end of %s left out: less than a window of %" PRIu64,
             values, files, source->window_values);
    return presto__source_note(&source->files.base, text, err);
}

static presto_status look_at_all(hdf5_source *source, presto_error *err) {
    presto_source *base = &source->files.base;
    size_t count = source->files.file_count;
    source->recordings = calloc(count, sizeof *source->recordings);
    if (source->recordings == NULL)
        return presto_fail_memory(err, count * sizeof *source->recordings);
    PRESTO_TRY(presto__hdf5_begin(err));
    PRESTO_TRY(presto__fan_out(count, look_at_recording, source, err));
    base->count = 0;
    for (size_t f = 0; f < count; f++)
        add_recording(source, &source->recordings[f]);
    base->full_count = base->count;
    if (base->count > 0)
        return tell_rest(source, err);
    presto_status status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                       "no file has a whole window of %" PRIu64 " value%s",
                                       source->window_values, presto_plural(source->window_values));
    if (count == 1)
        presto_error_set_file(err, source->files.entries[0].path);
    return status;
}

static presto_status copy_names(hdf5_source *source, const presto_option *datasets,
                                presto_error *err) {
    source->names = calloc(datasets->text_count, sizeof *source->names);
    if (source->names == NULL)
        return presto_fail_memory(err, datasets->text_count * sizeof *source->names);
    for (size_t i = 0; i < datasets->text_count; i++) {
        source->names[i] = strdup(datasets->texts[i]);
        if (source->names[i] == NULL)
            return presto_fail_memory(err, strlen(datasets->texts[i]) + 1);
        source->name_count++;
    }
    return PRESTO_OK;
}

static presto_status fill(hdf5_source *source, const presto_pipeline *pipeline,
                          const char *const *paths, size_t path_count, presto_error *err) {
    presto__files *files = &source->files;
    const presto_option *match = presto__pipeline_source_option(pipeline, "match");
    const char *feature = presto__pipeline_source_option(pipeline, "feature")->text;
    source->window_values = (uint64_t)presto__pipeline_source_option(pipeline, "samples")->integer;
    source->max_chunk_bytes =
        (uint64_t)presto__pipeline_source_option(pipeline, "max-chunk-bytes")->integer;
    PRESTO_TRY(copy_names(source, presto__pipeline_source_option(pipeline, "datasets"), err));
    const char *label = presto__pipeline_source_option(pipeline, "label")->text;
    files->wants_folders = presto__label_is_folder(label);
    PRESTO_TRY(presto__files_list(files, match, paths, path_count, err));
    PRESTO_TRY(presto__files_label(files, label,
                                   presto__pipeline_source_option(pipeline, "classes"), err));
    PRESTO_TRY(presto__open_files_new(files, &source->open, err));
    PRESTO_TRY(look_at_all(source, err));
    const presto_tensor_spec spec = window_spec(source);
    PRESTO_TRY(presto__source_set_main(&files->base, feature, &spec, err));
    return presto__files_declare(files, err);
}

static presto_status hdf5_open(const presto_pipeline *pipeline, const char *const *paths,
                               size_t path_count, presto_source **source_out, presto_error *err) {
    hdf5_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return presto_fail_memory(err, sizeof *source);
    source->files.base.ops = &hdf5_ops;
    source->files.base.declares_all = true;
    presto_status status = fill(source, pipeline, paths, path_count, err);
    if (status < 0) {
        hdf5_free(&source->files.base);
        return status;
    }
    *source_out = &source->files.base;
    return PRESTO_OK;
}
#else
static presto_status hdf5_open(const presto_pipeline *pipeline, const char *const *paths,
                               size_t path_count, presto_source **source_out, presto_error *err) {
    (void)pipeline, (void)paths, (void)path_count, (void)source_out;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "the source hdf5 is not in this build: built without libhdf5");
}
#endif

const presto__source_kind presto__source_hdf5 = {.name = "hdf5", .open = hdf5_open};
