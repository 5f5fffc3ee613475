/* SPDX-License-Identifier: Apache-2.0 */
/* What sources of files share, with one or many samples per file. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "source_files_internal.h"

void presto__files_done(presto__files *source) {
    presto_arena_done(&source->names);
    free(source->entries);
    presto__source_done(&source->base);
}

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
    return source->has_labels
               ? presto__source_declare(&source->base, "label", label_encoding(source), &label, err)
               : PRESTO_OK;
}

presto_status presto__files_drop_cache(const presto__files *source, size_t count,
                                       presto_error *err) {
    for (size_t i = 0; i < count; i++) {
        const char *path = source->entries[i].path;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            continue; /* the failure is reported when it is read */
        /* Dirty pages stay in the cache, so they are written first. A read-only file system has
         * none. */
        (void)fdatasync(fd);
        int failed = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
        if (failed != 0 && failed != ESPIPE) /* a pipe that has taken the file's place */
            return presto_fail_errno(err, failed, path, "cannot drop it from the page cache");
    }
    return PRESTO_OK;
}

uint64_t presto__files_digest(const presto__files *source, size_t count) {
    uint64_t digest = PRESTO__FNV_START;
    for (size_t i = 0; i < count; i++) {
        const presto__file *entry = &source->entries[i];
        digest = presto__fnv_add(digest, entry->path + entry->key_at,
                                 entry->path_bytes - entry->key_at + 1);
        digest = presto__fnv_add(digest, &entry->bytes, sizeof entry->bytes);
        digest = presto__fnv_add(digest, &entry->label, sizeof entry->label);
    }
    return digest;
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
        if (as_named)
            presto__digest_add(digest, entry->path, entry->path_bytes);
    }
    return PRESTO_OK;
}
