/* SPDX-License-Identifier: Apache-2.0 */
/* What sources of files share, with one or many samples per file. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdlib.h>
#include <unistd.h>

#include "../../../base/file_internal.h"
#include "../../../base/stop_internal.h"
#include "source_files_internal.h"

void presto__files_done(presto__files *source) {
    presto_arena_done(&source->names);
    free(source->entries);
    free(source->columns);
    free(source->values);
    for (size_t i = 0; i < source->empty_count; i++)
        free(source->empty_folders[i]);
    free(source->empty_folders);
    presto__source_done(&source->base);
}

/* ---- files ---- */

static presto_status reserve_file(presto__files *source, presto_error *err) {
    if (source->base.full_count < source->capacity)
        return PRESTO_OK;
    size_t capacity = source->capacity == 0 ? 256 : source->capacity * 2;
    presto__file *entries = realloc(source->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return presto_fail_memory(err, capacity * sizeof *entries);
    source->entries = entries;
    if (source->column_count > 0) {
        size_t bytes = capacity * source->column_count * sizeof *source->values;
        presto__files_value *values = realloc(source->values, bytes);
        if (values == NULL)
            return presto_fail_memory(err, bytes);
        source->values = values;
    }
    source->capacity = capacity;
    return PRESTO_OK;
}

presto_status presto__files_keep(presto__files *source, presto_span text, presto_span *copy_out,
                                 presto_error *err) {
    char *copy = presto_arena_alloc(&source->names, text.bytes + 1, 1);
    if (copy == NULL)
        return presto_fail_memory(err, text.bytes + 1);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = '\0';
    *copy_out = presto_span_of(copy, text.bytes);
    return PRESTO_OK;
}

presto__files_value *presto__files_last_values(presto__files *source) {
    return source->values + (source->base.full_count - 1) * source->column_count;
}

presto_status presto__files_add(presto__files *source, const char *path, size_t key_at,
                                const presto__object_info *info, presto_error *err) {
    presto_span copy;
    size_t path_bytes = strlen(path);
    if (path_bytes > UINT32_MAX)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "path is too long");
    PRESTO_TRY(presto__stop_check(err));
    PRESTO_TRY(reserve_file(source, err));
    PRESTO_TRY(presto__files_keep(source, presto_span_of(path, path_bytes), &copy, err));
    presto__file entry = {.path = (const char *)copy.data,
                          .path_bytes = (uint32_t)path_bytes,
                          .key_at = (uint32_t)key_at};
    if (info != NULL) {
        presto__digest digest = {{0}};
        presto__digest_add_object(&digest, info);
        entry.stamp = digest.state[0];
        entry.bytes = info->bytes;
        entry.mtime_ns = info->mtime_ns;
    }
    source->entries[source->base.full_count++] = entry;
    source->base.full_bytes += entry.bytes;
    if (source->column_count > 0)
        memset(presto__files_last_values(source), 0, source->column_count * sizeof *source->values);
    return PRESTO_OK;
}

/* ---- features ---- */

static presto_dtype label_dtype(const presto__files *source) {
    return source->has_fractions ? PRESTO_FLOAT32 : PRESTO_INT64;
}

static presto_encoding label_encoding(const presto__files *source) {
    return source->has_fractions ? PRESTO_ENCODE_FLOAT : PRESTO_ENCODE_INT64;
}

presto_feature presto__files_label_feature(const presto__files *source, const presto__file *entry) {
    presto_feature feature = {.name = presto_span_of_text("label"),
                              .encoding = label_encoding(source)};
    feature.tensor.spec = (presto_tensor_spec){.dtype = label_dtype(source)};
    feature.tensor.data = &entry->label;
    return feature;
}

presto_status presto__files_declare(presto__files *source, presto_error *err) {
    const presto_tensor_spec text = {.dtype = PRESTO_STRING};
    const presto_tensor_spec label = {.dtype = label_dtype(source)};
    PRESTO_TRY(presto__source_declare(&source->base, "key", PRESTO_ENCODE_BYTES, &text, err));
    if (source->has_labels)
        PRESTO_TRY(
            presto__source_declare(&source->base, "label", label_encoding(source), &label, err));
    for (size_t i = 0; i < source->column_count; i++) {
        const presto__files_column *column = &source->columns[i];
        bool is_numeric = column->dtype == PRESTO_INT64 || column->dtype == PRESTO_FLOAT32;
        const presto_tensor_spec spec = {.dtype = is_numeric ? column->dtype : PRESTO_STRING};
        presto_encoding encoding = !is_numeric                     ? PRESTO_ENCODE_BYTES
                                   : column->dtype == PRESTO_INT64 ? PRESTO_ENCODE_INT64
                                                                   : PRESTO_ENCODE_FLOAT;
        PRESTO_TRY(presto__source_declare(&source->base, column->name, encoding, &spec, err));
    }
    return PRESTO_OK;
}

/* ---- all files ---- */

presto_status presto__files_drop_cache(const presto__files *source, size_t count,
                                       presto_error *err) {
    for (size_t i = 0; i < count; i++)
        PRESTO_TRY(presto__drop_from_cache(source->entries[i].path, err));
    return PRESTO_OK;
}

/* What column k of file i holds; texts with their NUL, so that they do not run together. */
static presto_span value_bytes(const presto__files *source, size_t i, size_t k) {
    const presto__files_value *value = &source->values[i * source->column_count + k];
    if (source->columns[k].dtype == PRESTO_INT64)
        return presto_span_of(&value->number, sizeof value->number);
    if (source->columns[k].dtype == PRESTO_FLOAT32)
        return presto_span_of(&value->fraction, sizeof value->fraction);
    return presto_span_of(value->text.data, value->text.bytes + 1);
}

uint64_t presto__files_digest(const presto__files *source, size_t count) {
    uint64_t digest = PRESTO__FNV_START;
    for (size_t i = 0; i < count; i++) {
        const presto__file *entry = &source->entries[i];
        digest = presto__fnv_add(digest, entry->path + entry->key_at,
                                 entry->path_bytes - entry->key_at + 1);
        digest = presto__fnv_add(digest, &entry->bytes, sizeof entry->bytes);
        digest = presto__fnv_add(digest, &entry->label, sizeof entry->label);
        for (size_t k = 0; k < source->column_count; k++) {
            presto_span bytes = value_bytes(source, i, k);
            digest = presto__fnv_add(digest, bytes.data, bytes.bytes);
        }
    }
    return digest;
}

void presto__files_name(const presto__file *entry, presto__digest *digest) {
    presto__digest_add(digest, entry->path + entry->key_at, entry->path_bytes - entry->key_at);
}

/* The real path of a file's folder, however it was named. */
static presto_status identify_folder(const presto__file *entry, presto__digest *digest,
                                     presto_error *err) {
    const char *slash = strrchr(entry->path, '/');
    size_t bytes = slash == NULL ? 0 : (size_t)(slash - entry->path) + 1;
    char *folder = bytes == 0 ? strdup(".") : strndup(entry->path, bytes);
    if (folder == NULL)
        return presto_fail_memory(err, bytes + 1);
    char *real = realpath(folder, NULL);
    const char *name = real == NULL ? folder : real;
    presto__digest_add(digest, name, strlen(name));
    free(real);
    free(folder);
    return PRESTO_OK;
}

presto_status presto__files_identify(const presto__files *source, bool as_named,
                                     presto__digest *digest, presto_error *err) {
    for (size_t i = 0; i < source->file_count; i++) {
        const presto__file *entry = &source->entries[i];
        if (i == 0 || !presto__files_same_folder(entry - 1, entry))
            PRESTO_TRY(identify_folder(entry, digest, err));
        const uint64_t facts[] = {entry->stamp, (uint64_t)entry->label};
        presto__digest_add(digest, facts, sizeof facts);
        presto__digest_add(digest, entry->path + entry->key_at, entry->path_bytes - entry->key_at);
        for (size_t k = 0; k < source->column_count; k++) {
            presto_span bytes = value_bytes(source, i, k);
            presto__digest_add(digest, bytes.data, bytes.bytes);
        }
        if (as_named)
            presto__digest_add(digest, entry->path, entry->path_bytes);
    }
    return PRESTO_OK;
}
