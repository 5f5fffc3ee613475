/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the features of a sample of its members, whose headers and content are in memory. The place
 * was found when the source was opened; here it is checked again, for the file may have changed.
 */
#define _GNU_SOURCE /* FNM_CASEFOLD */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../base/npy_internal.h"
#include "source_tar_internal.h"

#define MOST_PATTERN_NAME ((size_t)1024)

presto_status presto__tar_fail_changed(presto_error *err) {
    return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "has changed while it was read");
}

/* ---- names ---- */

bool presto__tar_extension_is(presto_span extension, const char *lower) {
    for (size_t i = 0; i < extension.bytes; i++)
        if (lower[i] == '\0' || presto__tar_lower(extension.data[i]) != (uint8_t)lower[i])
            return false;
    return lower[extension.bytes] == '\0';
}

presto__tar_rank presto__tar_rank_of(const presto__tar_source *source, presto_span name,
                                     presto_span extension) {
    presto__tar_rank rank = {SIZE_MAX, extension.bytes};
    char base[MOST_PATTERN_NAME];
    size_t from = name.bytes;
    while (from > 0 && name.data[from - 1] != '/')
        from--;
    if (name.bytes - from >= sizeof base)
        return rank;
    memcpy(base, name.data + from, name.bytes - from);
    base[name.bytes - from] = '\0';
    for (size_t i = 0; i < source->match_count && rank.pattern == SIZE_MAX; i++)
        if (fnmatch(source->match[i], base, FNM_CASEFOLD) == 0)
            rank.pattern = i;
    return rank;
}

/* ---- members ---- */

static presto_status view_members(void *user, uint64_t offset, size_t count, presto_span *view_out,
                                  presto_error *err) {
    const presto__tar_members *from = user;
    (void)err;
    size_t at = offset < from->offset + from->bytes.bytes ? (size_t)(offset - from->offset)
                                                          : from->bytes.bytes;
    size_t there = from->bytes.bytes - at;
    *view_out = presto_span_of(from->bytes.data + at, there < count ? there : count);
    return PRESTO_OK;
}

/* A copy in the arena. */
static presto_status keep(presto_arena *arena, presto_span text, presto_span *copy_out,
                          presto_error *err) {
    uint8_t *copy = presto_arena_alloc(arena, text.bytes + 1, 1);
    if (copy == NULL)
        return presto_fail_memory(err, text.bytes + 1);
    memcpy(copy, text.data, text.bytes);
    *copy_out = presto_span_of(copy, text.bytes);
    return PRESTO_OK;
}

static presto_status add_member(presto__tar_members *into, const presto__tar_member *member,
                                presto_error *err) {
    const presto__tar_source *source = into->source;
    presto_span key, extension;
    size_t column = 0;
    if (!member->is_file || !presto__tar_split(member->name, &key, &extension))
        return PRESTO_OK;
    presto_span content = presto_span_of(into->bytes.data + (size_t)(member->data - into->offset),
                                         (size_t)member->bytes);
    while (column < source->column_count &&
           !presto__tar_extension_is(extension, source->columns[column].extension))
        column++;
    bool is_column = column < source->column_count;
    presto__tar_rank rank = presto__tar_rank_of(source, member->name, extension);
    bool is_double = is_column && into->values[column].data != NULL;
    if (rank.pattern != SIZE_MAX && presto__tar_rank_is_better(rank, into->rank)) {
        into->rank = rank;
        into->main = content;
        into->main_column = is_column ? column : SIZE_MAX;
        PRESTO_TRY(keep(into->arena, key, &into->key, err));
        PRESTO_TRY(keep(into->arena, member->name, &into->main_name, err));
    } else if (rank.pattern == into->rank.pattern && rank.pattern != SIZE_MAX &&
               rank.extension_bytes == into->rank.extension_bytes &&
               presto_span_equal(member->name, into->main_name)) {
        is_double = true;
    }
    if (is_double)
        return presto_fail(err, PRESTO_ERR_CORRUPT, member->start, "a sample has two members .%.*s",
                           (int)(extension.bytes < 100 ? extension.bytes : 100),
                           (const char *)extension.data);
    if (is_column)
        into->values[column] = content;
    return PRESTO_OK;
}

presto_status presto__tar_find_members(presto__tar *walk, presto__tar_members *into,
                                       presto_error *err) {
    uint64_t end = into->offset + into->bytes.bytes;
    walk->view = view_members;
    walk->user = into;
    walk->next = into->offset;
    into->rank = (presto__tar_rank){SIZE_MAX, SIZE_MAX};
    into->main_column = SIZE_MAX;
    while (walk->next < end) {
        presto__tar_member member;
        presto_status status = presto__tar_next(walk, &member, err);
        if (status < 0)
            return status;
        if (status != PRESTO_OK)
            return presto__tar_fail_changed(err);
        PRESTO_TRY(add_member(into, &member, err));
    }
    if (into->main_name.data == NULL)
        return presto__tar_fail_changed(err);
    if (into->main_column != SIZE_MAX) /* it is not its own passenger */
        into->values[into->main_column].data = NULL;
    return PRESTO_OK;
}

/* ---- values ---- */

static presto_feature text_feature(const char *name, const presto_span *text) {
    presto_feature feature = {.name = presto_span_of_text(name), .encoding = PRESTO_ENCODE_BYTES};
    feature.tensor.spec = (presto_tensor_spec){.dtype = PRESTO_STRING};
    feature.tensor.strings = text;
    return feature;
}

static presto_status fail_member(const presto__tar_members *from, const char *extension,
                                 presto_span content, const char *what, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT,
                       from->offset + (uint64_t)(content.data - from->bytes.data), "member .%s: %s",
                       extension, what);
}

/* The array, aligned as its values need it. */
static presto_status take_array(presto_span content, presto_arena *arena, presto_tensor *tensor_out,
                                presto_error *err) {
    presto_tensor tensor;
    PRESTO_TRY(presto__npy_parse(content, &tensor, err));
    size_t align = presto_dtype_bytes(tensor.spec.dtype);
    if ((uintptr_t)tensor.data % align != 0) {
        size_t bytes = presto_tensor_bytes(&tensor);
        void *copy = presto_arena_alloc(arena, bytes > 0 ? bytes : 1, 64);
        if (copy == NULL)
            return presto_fail_memory(err, bytes);
        memcpy(copy, tensor.data, bytes);
        tensor.data = copy;
    }
    *tensor_out = tensor;
    return PRESTO_OK;
}

static presto_status make_class(const presto__tar_members *from, presto_span content,
                                int64_t *number_out, presto_error *err) {
    presto_error why;
    if (presto__classes_number(&from->source->classes, content, number_out, &why) < 0)
        return fail_member(from, from->source->label, content, why.message, err);
    return PRESTO_OK;
}

static presto_status make_integer(const presto__tar_members *from, const presto__tar_column *column,
                                  presto_span content, presto_feature *feature, presto_error *err) {
    int64_t *number = presto_arena_alloc(from->arena, sizeof *number, _Alignof(int64_t));
    if (number == NULL)
        return presto_fail_memory(err, sizeof *number);
    if (column->value == PRESTO__TAR_CLASS)
        PRESTO_TRY(make_class(from, content, number, err));
    else if (!presto__take_integer(content, number))
        return fail_member(from, column->extension, content,
                           "no whole number (int64); source.classes gives the names of classes",
                           err);
    feature->encoding = PRESTO_ENCODE_INT64;
    feature->tensor = (presto_tensor){.spec = {.dtype = PRESTO_INT64}, .data = number};
    return PRESTO_OK;
}

static presto_status make_value(const presto__tar_members *from, size_t i, presto_feature *feature,
                                presto_error *err) {
    const presto__tar_column *column = &from->source->columns[i];
    const presto_span *content = &from->values[i];
    presto_error why;
    if (content->data == NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, from->offset,
                           "has no member .%s, as other samples have: source.features says which "
                           "are taken",
                           column->extension);
    *feature = text_feature(column->name, content);
    if (column->value == PRESTO__TAR_INTEGER || column->value == PRESTO__TAR_CLASS)
        return make_integer(from, column, *content, feature, err);
    if (column->value == PRESTO__TAR_BYTES)
        return PRESTO_OK;
    feature->encoding = PRESTO_ENCODE_TENSOR;
    presto_status status = take_array(*content, from->arena, &feature->tensor, &why);
    return status < 0 ? fail_member(from, column->extension, *content, why.message, err)
                      : PRESTO_OK;
}

/* ---- features ---- */

/* "train-000.tar/00017.jpg" */
presto_status presto__tar_make_path(const presto__tar_members *from, size_t archive,
                                    presto_span *path_out, presto_error *err) {
    const presto__file *entry = &from->source->files.entries[archive];
    size_t bytes = entry->path_bytes + 1 + from->main_name.bytes;
    char *path = presto_arena_alloc(from->arena, bytes, 1);
    if (path == NULL)
        return presto_fail_memory(err, bytes);
    memcpy(path, entry->path, entry->path_bytes);
    path[entry->path_bytes] = '/';
    memcpy(path + entry->path_bytes + 1, from->main_name.data, from->main_name.bytes);
    *path_out = presto_span_of(path, bytes);
    return PRESTO_OK;
}

presto_status presto__tar_make_features(const presto__tar_members *from, presto_span path,
                                        presto_sample *sample_out, presto_error *err) {
    const presto__tar_source *source = from->source;
    size_t most = 3 + source->column_count, count = 0;
    presto_feature *features =
        presto_arena_alloc(from->arena, most * sizeof *features, _Alignof(max_align_t));
    presto_span *texts = presto_arena_alloc(from->arena, 2 * sizeof *texts, _Alignof(max_align_t));
    if (features == NULL || texts == NULL)
        return presto_fail_memory(err, most * sizeof *features);
    texts[0] = path;
    texts[1] = from->key;
    features[count++] = text_feature(source->files.base.main_feature, &texts[0]);
    features[count++] = text_feature("key", &texts[1]);
    if (source->has_folder_labels)
        features[count++] = (presto_feature){
            .name = presto_span_of_text("label"),
            .encoding = PRESTO_ENCODE_INT64,
            .tensor = {.spec = {.dtype = PRESTO_INT64}, .data = &from->sample->label}};
    for (size_t i = 0; i < source->column_count; i++)
        PRESTO_TRY(make_value(from, i, &features[count++], err));
    sample_out->features = features;
    sample_out->feature_count = count;
    return PRESTO_OK;
}
