/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw source `files`: one sample per file, which is read for the step read-file.
 * source_files_list.c finds the files, source_files_labels.c makes the labels.
 */
#include <stdlib.h>

#include "../../../base/clock_internal.h"
#include "../../../base/memory_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "source_files_internal.h"

/* Most bytes of a file that are read ahead. */
#define TELL_BYTES (8 << 20)

typedef struct files_reader {
    presto__reader base;
    const uint64_t *numbers; /* of the block: borrowed from the caller of fetch */
    const presto__file *current;
} files_reader;

/* ---- reading ---- */

/* A step almost always asks for the path that it was given. More is known of that file. */
static presto_status files_read_file(void *user, presto_span path, presto_arena *arena,
                                     presto_span *bytes_out, presto_error *err) {
    files_reader *reader = user;
    const presto__file *current = reader->current;
    uint64_t start = presto__clock_ns();
    presto__file_request request = {.max_bytes =
                                        ((const presto__files *)reader->base.source)->max_bytes};
    if (current != NULL && (const char *)path.data == current->path) {
        request.path = current->path;
        request.listed = current;
    } else {
        char *name = presto_arena_alloc(arena, path.bytes + 1, 1);
        if (name == NULL)
            return presto_fail_memory(err, path.bytes + 1);
        memcpy(name, path.data, path.bytes);
        name[path.bytes] = '\0';
        request.path = name;
    }
    presto_status status = presto__source_file_read(&request, arena, bytes_out, err);
    if (status == PRESTO_OK)
        reader->base.stats.read_bytes += bytes_out->bytes;
    reader->base.stats.read_ns += presto__clock_ns() - start;
    return status;
}

static presto_status files_reader_new(presto_source *source, const presto__reader_options *options,
                                      presto__reader **reader_out, presto_error *err) {
    (void)options;
    files_reader *reader = presto__memory_apart(1, sizeof *reader);
    if (reader == NULL)
        return presto_fail_memory(err, sizeof *reader);
    reader->base.source = source;
    *reader_out = &reader->base;
    return PRESTO_OK;
}

static void files_reader_free(presto__reader *reader) {
    free(reader);
}

static presto_status files_fetch(presto__reader *base, const uint64_t *numbers, size_t count,
                                 presto__blocks *blocks, presto_error *err) {
    (void)count;
    (void)blocks;
    (void)err;
    ((files_reader *)base)->numbers = numbers;
    return PRESTO_OK;
}

static void files_will_read(presto__reader *base, const uint64_t *numbers, size_t count) {
    const presto__files *source = (const presto__files *)base->source;
    for (size_t i = 0; i < count; i++)
        presto__object_will_open(source->entries[numbers[i]].path, TELL_BYTES);
}

static const presto__file *entry_at(const presto__reader *base, size_t i) {
    const presto__files *source = (const presto__files *)base->source;
    return &source->entries[((const files_reader *)base)->numbers[i]];
}

static presto_feature text_feature(const char *name, const presto_span *text) {
    presto_feature feature = {.name = presto_span_of_text(name), .encoding = PRESTO_ENCODE_BYTES};
    feature.tensor.spec = (presto_tensor_spec){.dtype = PRESTO_STRING};
    feature.tensor.strings = text;
    return feature;
}

static presto_feature column_feature(const presto__files *source, size_t entry, size_t k) {
    const presto__files_column *column = &source->columns[k];
    const presto__files_value *value = &source->values[entry * source->column_count + k];
    presto_feature feature = text_feature(column->name, &value->text);
    if (column->dtype == PRESTO_INT64) {
        feature.encoding = PRESTO_ENCODE_INT64;
        feature.tensor = (presto_tensor){.spec = {.dtype = PRESTO_INT64}, .data = &value->number};
    }
    if (column->dtype == PRESTO_FLOAT32) {
        feature.encoding = PRESTO_ENCODE_FLOAT;
        feature.tensor =
            (presto_tensor){.spec = {.dtype = PRESTO_FLOAT32}, .data = &value->fraction};
    }
    return feature;
}

static presto_status files_sample(presto__reader *base, size_t i, presto_arena *arena,
                                  presto_sample *sample_out, presto_error *err) {
    const presto__files *source = (const presto__files *)base->source;
    const presto__file *entry = entry_at(base, i);
    size_t most = 3 + source->column_count;
    size_t count = 0;
    ((files_reader *)base)->current = entry;
    presto_feature *features =
        presto_arena_alloc(arena, most * sizeof *features, _Alignof(max_align_t));
    presto_span *texts = presto_arena_alloc(arena, 2 * sizeof *texts, _Alignof(max_align_t));
    if (features == NULL || texts == NULL)
        return presto_fail_memory(err, most * sizeof *features);
    texts[0] = presto_span_of(entry->path, entry->path_bytes);
    texts[1] = presto_span_of(entry->path + entry->key_at, entry->path_bytes - entry->key_at);
    features[count++] = text_feature(base->source->main_feature, &texts[0]);
    features[count++] = text_feature("key", &texts[1]);
    if (source->has_labels)
        features[count++] = presto__files_label_feature(source, entry);
    for (size_t k = 0; k < source->column_count; k++)
        features[count++] = column_feature(source, (size_t)(entry - source->entries), k);
    *sample_out = (presto_sample){
        .features = features, .feature_count = count, .number = ((files_reader *)base)->numbers[i]};
    return PRESTO_OK;
}

static void files_place(presto__reader *base, size_t i, presto_error *err) {
    presto_error_set_file(err, entry_at(base, i)->path);
}

static void files_locate(const presto_source *base, uint64_t number, presto_error *err) {
    presto_error_set_file(err, ((const presto__files *)base)->entries[number].path);
}

/* ---- the source ---- */

static void files_free(presto_source *base) {
    presto__files_done((presto__files *)base);
    free(base);
}

static presto_status files_drop_cache(presto_source *base, presto_error *err) {
    return presto__files_drop_cache((const presto__files *)base, (size_t)base->count, err);
}

static uint64_t files_digest(const presto_source *base) {
    return presto__files_digest((const presto__files *)base, (size_t)base->count);
}

static presto_status files_identify(const presto_source *base, bool as_named,
                                    presto__digest *digest, presto_error *err) {
    return presto__files_identify((const presto__files *)base, as_named, digest, err);
}

static void files_name(const presto_source *base, uint64_t number, presto__digest *digest) {
    presto__files_name(&((const presto__files *)base)->entries[number], digest);
}

static const presto__source_ops files_ops = {
    .free = files_free,
    .drop_cache = files_drop_cache,
    .reader_new = files_reader_new,
    .reader_free = files_reader_free,
    .fetch = files_fetch,
    .will_read = files_will_read,
    .sample = files_sample,
    .place = files_place,
    .locate = files_locate,
    .read_file = files_read_file,
    .name = files_name,
    .digest = files_digest,
    .identify = files_identify,
};

static presto_status declare_features(presto__files *source, const char *feature,
                                      presto_error *err) {
    presto_tensor_spec text = {.dtype = PRESTO_STRING};
    presto_source *base = &source->base;
    base->main_feature = strdup(feature);
    if (base->main_feature == NULL)
        return presto_fail_memory(err, strlen(feature) + 1);
    PRESTO_TRY(presto__source_declare(base, feature, PRESTO_ENCODE_BYTES, &text, err));
    return presto__files_declare(source, err);
}

presto_status presto__files_open(const presto__files_request *request, presto__files_fill_fn fill,
                                 presto_source **source_out, presto_error *err) {
    const presto_pipeline *pipeline = request->pipeline;
    presto__files *source = calloc(1, sizeof *source);
    if (source == NULL)
        return presto_fail_memory(err, sizeof *source);
    source->base.ops = &files_ops;
    source->base.declares_all = true;
    source->max_bytes = (uint64_t)presto__pipeline_source_option(pipeline, "max-bytes")->integer;
    presto_status status = fill(source, request, err);
    source->base.count = source->base.full_count;
    source->file_count = (size_t)source->base.full_count;
    if (status == PRESTO_OK)
        status = declare_features(source, presto__pipeline_source_option(pipeline, "feature")->text,
                                  err);
    if (status < 0) {
        files_free(&source->base);
        return status;
    }
    *source_out = &source->base;
    return PRESTO_OK;
}

static presto_status fill_files(presto__files *source, const presto__files_request *request,
                                presto_error *err) {
    const char *label = presto__pipeline_source_option(request->pipeline, "label")->text;
    const presto_option *match = presto__pipeline_source_option(request->pipeline, "match");
    source->wants_folders = presto__label_is_folder(label);
    PRESTO_TRY(presto__files_list(source, match, request->paths, request->path_count, err));
    return presto__files_label(source, label,
                               presto__pipeline_source_option(request->pipeline, "classes"), err);
}

static presto_status files_open(const presto_pipeline *pipeline, const char *const *paths,
                                size_t path_count, presto_source **source_out, presto_error *err) {
    const presto__files_request request = {pipeline, paths, path_count};
    return presto__files_open(&request, fill_files, source_out, err);
}

const presto__source_kind presto__source_files = {.name = "files", .open = files_open};
