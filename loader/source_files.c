/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw source `files`: one sample a file. Finds the files, numbers their labels, reads them for
 * the step read-file.
 *
 * Invariant: the list is a function of the names below the roots; the order is bytewise by relative
 * path, root by root. Below a root no folder is entered twice (base/walk_internal.h); a file with
 * several names there is a sample of each.
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/clock.h>

#include "../base/file_internal.h"
#include "../base/walk_internal.h"
#include "source_files_internal.h"

/* Of a file that will be read, so much at most is asked for ahead. */
#define TELL_BYTES (8 << 20)
#define MOST_CSV_BYTES ((uint64_t)1 << 30)

typedef enum label_kind { LABEL_NONE, LABEL_FOLDER, LABEL_CSV } label_kind;

typedef struct files_reader {
    presto__reader base;
    const uint64_t *numbers; /* of the block: borrowed from the caller of fetch */
    const presto__file *current;
} files_reader;

/* ---- finding files ---- */

typedef struct file_search {
    presto__files *source;
    const presto_option *match;
    size_t root_bytes; /* of the root's path with its slash: what keys leave out */
    uint64_t seen;     /* files looked at, for the message when none matches */
} file_search;

static bool name_matches(const file_search *search, const char *name) {
    for (size_t i = 0; i < search->match->text_count; i++)
        if (fnmatch(search->match->texts[i], name, 0) == 0)
            return true;
    return false;
}

/* `info` NULL: it cannot be looked at. */
static presto_status add_file(file_search *search, const char *path, size_t key_at,
                              const struct stat *info, presto_error *err) {
    presto__files *source = search->source;
    if (source->base.full_count == source->capacity) {
        size_t capacity = source->capacity == 0 ? 256 : source->capacity * 2;
        presto__file *entries = realloc(source->entries, capacity * sizeof *entries);
        if (entries == NULL)
            return presto_fail_memory(err, capacity * sizeof *entries);
        source->entries = entries;
        source->capacity = capacity;
    }
    size_t path_bytes = strlen(path);
    if (path_bytes > UINT32_MAX)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "path is too long");
    char *copy = presto_arena_alloc(&source->names, path_bytes + 1, 1);
    if (copy == NULL)
        return presto_fail_memory(err, path_bytes + 1);
    memcpy(copy, path, path_bytes + 1);
    presto__file entry = {
        .path = copy, .path_bytes = (uint32_t)path_bytes, .key_at = (uint32_t)key_at};
    if (info != NULL) {
        presto__digest digest = {{0}};
        presto__digest_add_file(&digest, info);
        entry.stamp = digest.state[0];
        entry.bytes = (uint64_t)info->st_size;
        entry.mtime_ns = presto__mtime_ns(info);
    }
    source->entries[source->base.full_count++] = entry;
    source->base.full_bytes += entry.bytes;
    return PRESTO_OK;
}

static presto_status want_name(void *user, const char *folder, const char *name, bool *wanted_out,
                               presto_error *err) {
    (void)user, (void)folder, (void)err;
    *wanted_out = name[0] != '.';
    return PRESTO_OK;
}

static presto_status add_found(void *user, const presto__found *found, presto_error *err) {
    file_search *search = user;
    bool matches = name_matches(search, found->name);
    if (found->info == NULL) {
        /* A link that leads nowhere, or to where we may not look: a sample that cannot be read, if
         * its name says that it is meant to be one. Its own failure comes when it is read. */
        int code = found->sys_errno;
        if (code == ENOMEM || (!matches && code != ENOENT && code != ELOOP && code != ENOTDIR))
            return presto_fail_errno(err, code, found->path, "cannot stat");
    } else if (S_ISREG(found->info->st_mode)) {
        search->seen++;
    } else {
        return PRESTO_OK;
    }
    return matches ? add_file(search, found->path, search->root_bytes, found->info, err)
                   : PRESTO_OK;
}

static int compare_entries(const void *a, const void *b) {
    const presto__file *left = a;
    const presto__file *right = b;
    return strcmp(left->path + left->key_at, right->path + right->key_at);
}

/* Everything at one path: a folder, or a file that the user names and that need not match. */
static presto_status search_root(file_search *search, const char *path, presto_error *err) {
    presto__files *source = search->source;
    size_t before = (size_t)source->base.full_count;
    struct stat info;
    if (stat(path, &info) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return presto_fail_errno(err, errno, path, "cannot stat");
        presto_status status =
            presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no such file or folder");
        presto_error_set_file(err, path);
        return status;
    }
    if (S_ISREG(info.st_mode)) {
        const char *slash = strrchr(path, '/');
        size_t key_at = slash == NULL ? 0 : (size_t)(slash - path) + 1;
        return add_file(search, path, key_at, &info, err);
    }
    if (!S_ISDIR(info.st_mode)) {
        presto_status status =
            presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "neither a file nor a folder");
        presto_error_set_file(err, path);
        return status;
    }
    size_t path_bytes = strlen(path);
    search->root_bytes = path_bytes + (path[path_bytes - 1] == '/' ? 0 : 1);
    const presto__walk walk = {.user = search, .name = want_name, .found = add_found};
    PRESTO_TRY(presto__walk_folder(&walk, path, err));
    if ((size_t)source->base.full_count == before)
        return PRESTO_OK;
    qsort(source->entries + before, (size_t)source->base.full_count - before,
          sizeof *source->entries, compare_entries);
    return PRESTO_OK;
}

/* "no file matches *.jpg, *.jpeg (12 files seen)" */
static presto_status fail_empty(const file_search *search, const char *path, presto_error *err) {
    char patterns[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < search->match->text_count && used < sizeof patterns; i++)
        used += (size_t)snprintf(patterns + used, sizeof patterns - used, "%s%s",
                                 i == 0 ? "" : ", ", search->match->texts[i]);
    presto_status status =
        presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                    "no file matches %s (%" PRIu64 " files seen)", patterns, search->seen);
    presto_error_set_file(err, path);
    return status;
}

/* ---- labels ---- */

/* Name of the folder that the file is in, on the heap; the root's own name for files right below
 * it. */
static presto_status parent_name(const presto__file *entry, char **name_out, presto_error *err) {
    const char *end = strrchr(entry->path, '/');
    char *folder = end == NULL          ? strdup(".")
                   : end == entry->path ? strdup("/")
                                        : strndup(entry->path, (size_t)(end - entry->path));
    if (folder == NULL)
        return presto_fail_memory(err, entry->path_bytes);
    char *slash = strrchr(folder, '/');
    const char *name = slash == NULL ? folder : slash + 1;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || name[0] == '\0') {
        /* The words of the command line name no folder; the file system does. */
        char *real = realpath(folder, NULL);
        free(folder);
        if (real == NULL)
            return presto_fail_errno(err, errno, entry->path, "cannot resolve its folder");
        folder = real;
        slash = strrchr(folder, '/');
        name = slash == NULL ? folder : slash + 1;
    }
    *name_out = strdup(name);
    free(folder);
    return *name_out == NULL ? presto_fail_memory(err, entry->path_bytes) : PRESTO_OK;
}

/* Do two neighbours in the list share their folder? Then they share its name, without looking it
 * up. */
static bool same_folder(const presto__file *a, const presto__file *b) {
    const char *end_a = strrchr(a->path, '/');
    const char *end_b = strrchr(b->path, '/');
    if (end_a == NULL || end_b == NULL)
        return end_a == end_b;
    size_t bytes = (size_t)(end_a - a->path);
    return bytes == (size_t)(end_b - b->path) && memcmp(a->path, b->path, bytes) == 0;
}

static presto_status collect_folders(presto__files *source, char **names, size_t *count,
                                     presto_error *err) {
    for (size_t i = 0; i < source->base.full_count; i++) {
        presto__file *entry = &source->entries[i];
        if (i == 0 || !same_folder(entry - 1, entry))
            PRESTO_TRY(parent_name(entry, &names[(*count)++], err));
        entry->label = (int64_t)*count - 1; /* position before sorting, for now */
    }
    return PRESTO_OK;
}

static presto_status label_by_folder(presto__files *source, presto_error *err) {
    size_t files = (size_t)source->base.full_count;
    char **names = calloc(files, sizeof *names);
    char **sorted = calloc(files, sizeof *sorted);
    size_t count = 0;
    size_t sorted_count = 0;
    presto_status status = names == NULL || sorted == NULL
                               ? presto_fail_memory(err, files * sizeof *names)
                               : collect_folders(source, names, &count, err);
    for (; status == PRESTO_OK && sorted_count < count; sorted_count++) {
        sorted[sorted_count] = strdup(names[sorted_count]);
        if (sorted[sorted_count] == NULL) {
            status = presto_fail_memory(err, strlen(names[sorted_count]) + 1);
            break;
        }
    }
    if (status == PRESTO_OK) {
        sorted_count = presto__names_distinct(sorted, sorted_count);
        for (size_t i = 0; i < files; i++) {
            const char *name = names[source->entries[i].label];
            source->entries[i].label = (int64_t)presto__names_find(sorted, sorted_count, name);
        }
    }
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    /* Also on failure: freed with the source. */
    source->base.label_names = sorted;
    source->base.label_count = sorted_count;
    return status;
}

/* Every file has a row, every row has a file. */
static presto_status match_labels(presto__files *source, presto__labels *labels, const char *file,
                                  presto_error *err) {
    for (size_t i = 0; i < source->base.full_count; i++) {
        presto__file *entry = &source->entries[i];
        presto__label_row *row = presto__labels_find(labels, entry->path + entry->key_at);
        if (row == NULL) {
            presto_status status =
                presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "has no row in %s", file);
            presto_error_set_file(err, entry->path);
            return status;
        }
        row->used = true;
        entry->label = row->label;
    }
    for (size_t i = 0; i < labels->count; i++) {
        const presto__label_row *row = &labels->rows[i];
        if (row->used)
            continue;
        presto_status status =
            presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                        "line %" PRIu64 ": %s is not among the files found", row->line, row->path);
        presto_error_set_file(err, file);
        return status;
    }
    return PRESTO_OK;
}

static presto_status label_by_csv(presto__files *source, const char *file, presto_error *err) {
    presto_arena arena = {0};
    presto__labels labels = {0};
    presto_span csv = {0};
    presto__file_request request = {.path = file, .max_bytes = MOST_CSV_BYTES};
    presto_status status = presto__source_file_read(&request, &arena, &csv, err);
    if (status == PRESTO_OK)
        status = presto__labels_parse(csv, file, &labels, err);
    if (status == PRESTO_OK)
        status = match_labels(source, &labels, file, err);
    if (status == PRESTO_OK) {
        source->base.label_names = labels.names;
        source->base.label_count = labels.name_count;
        labels.names = NULL;
        labels.name_count = 0;
    }
    presto__labels_done(&labels);
    presto_arena_done(&arena);
    return status;
}

/* ---- reading ---- */

/* What a step asks for is almost always the path that it was given: of that file more is known. */
static presto_status files_read_file(void *user, presto_span path, presto_arena *arena,
                                     presto_span *bytes_out, presto_error *err) {
    files_reader *reader = user;
    const presto__file *current = reader->current;
    uint64_t start = presto_clock_ns();
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
    reader->base.stats.read_ns += presto_clock_ns() - start;
    return status;
}

static presto_status files_reader_new(presto_source *source, const presto__reader_options *options,
                                      presto__reader **reader_out, presto_error *err) {
    (void)options;
    files_reader *reader = presto_memory_apart(1, sizeof *reader);
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
    for (size_t i = 0; i < count; i++) {
        int fd = open(source->entries[numbers[i]].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            continue; /* whoever reads it will tell */
        (void)posix_fadvise(fd, 0, TELL_BYTES, POSIX_FADV_WILLNEED);
        close(fd);
    }
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

static presto_status files_sample(presto__reader *base, size_t i, presto_arena *arena,
                                  presto_sample *sample_out, presto_error *err) {
    const presto__files *source = (const presto__files *)base->source;
    const presto__file *entry = entry_at(base, i);
    ((files_reader *)base)->current = entry;
    presto_feature *features =
        presto_arena_alloc(arena, 3 * sizeof *features, _Alignof(max_align_t));
    presto_span *texts = presto_arena_alloc(arena, 2 * sizeof *texts, _Alignof(max_align_t));
    if (features == NULL || texts == NULL)
        return presto_fail_memory(err, 3 * sizeof *features);
    texts[0] = presto_span_of(entry->path, entry->path_bytes);
    texts[1] = presto_span_of(entry->path + entry->key_at, entry->path_bytes - entry->key_at);
    features[0] = text_feature(base->source->main_feature, &texts[0]);
    features[1] = text_feature("key", &texts[1]);
    features[2] =
        (presto_feature){.name = presto_span_of_text("label"), .encoding = PRESTO_ENCODE_INT64};
    features[2].tensor.spec = (presto_tensor_spec){.dtype = PRESTO_INT64};
    features[2].tensor.data = &entry->label;
    *sample_out = (presto_sample){.features = features,
                                  .feature_count = source->has_labels ? 3 : 2,
                                  .number = ((files_reader *)base)->numbers[i]};
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
    presto__files *source = (presto__files *)base;
    presto_arena_done(&source->names);
    free(source->entries);
    presto__source_done(base);
    free(source);
}

static presto_status files_drop_cache(presto_source *base, presto_error *err) {
    const presto__files *source = (const presto__files *)base;
    for (size_t i = 0; i < base->count; i++) {
        const char *path = source->entries[i].path;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            continue; /* nobody reads it either, and whoever tries will say so */
        /* Dirty pages stay in the cache; what cannot be synced (a read-only file system) has none.
         */
        (void)fdatasync(fd);
        int failed = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
        if (failed != 0 && failed != ESPIPE) /* a pipe that has taken the file's place */
            return presto_fail_errno(err, failed, path, "cannot drop it from the page cache");
    }
    return PRESTO_OK;
}

/* FNV-1a over names, sizes and labels. */
static uint64_t digest_bytes(uint64_t digest, const void *data, size_t bytes) {
    const uint8_t *at = data;
    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ at[i]) * UINT64_C(0x100000001b3);
    return digest;
}

static uint64_t files_digest(const presto_source *base) {
    const presto__files *source = (const presto__files *)base;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < base->count; i++) {
        const presto__file *entry = &source->entries[i];
        digest = digest_bytes(digest, entry->path + entry->key_at,
                              entry->path_bytes - entry->key_at + 1);
        digest = digest_bytes(digest, &entry->bytes, sizeof entry->bytes);
        digest = digest_bytes(digest, &entry->label, sizeof entry->label);
    }
    return digest;
}

/* The folder of a file, whatever it is called in this run. */
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

static presto_status files_identify(const presto_source *base, bool as_named,
                                    presto__digest *digest, presto_error *err) {
    const presto__files *source = (const presto__files *)base;
    for (size_t i = 0; i < base->full_count; i++) {
        const presto__file *entry = &source->entries[i];
        if (i == 0 || !same_folder(entry - 1, entry))
            PRESTO_TRY(identify_folder(entry, digest, err));
        const uint64_t facts[] = {entry->stamp, (uint64_t)entry->label};
        presto__digest_add(digest, facts, sizeof facts);
        presto__digest_add(digest, entry->path + entry->key_at, entry->path_bytes - entry->key_at);
        if (as_named)
            presto__digest_add(digest, entry->path, entry->path_bytes);
    }
    return PRESTO_OK;
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
    .digest = files_digest,
    .identify = files_identify,
};

static presto_status declare_features(presto__files *source, const char *feature,
                                      presto_error *err) {
    presto_tensor_spec text = {.dtype = PRESTO_STRING};
    presto_tensor_spec number = {.dtype = PRESTO_INT64};
    presto_source *base = &source->base;
    base->main_feature = strdup(feature);
    if (base->main_feature == NULL)
        return presto_fail_memory(err, strlen(feature) + 1);
    PRESTO_TRY(presto__source_declare(base, feature, PRESTO_ENCODE_BYTES, &text, err));
    PRESTO_TRY(presto__source_declare(base, "key", PRESTO_ENCODE_BYTES, &text, err));
    if (source->has_labels)
        PRESTO_TRY(presto__source_declare(base, "label", PRESTO_ENCODE_INT64, &number, err));
    return PRESTO_OK;
}

static presto_status set_labels(presto__files *source, const char *label, presto_error *err) {
    source->has_labels = strcmp(label, "none") != 0;
    if (strcmp(label, "parent-folder") == 0)
        return label_by_folder(source, err);
    if (strncmp(label, "csv:", 4) == 0)
        return label_by_csv(source, label + 4, err);
    if (source->has_labels)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "source option label: '%s' is none of none, parent-folder, csv:FILE",
                           label);
    return PRESTO_OK;
}

static presto_status fill(presto__files *source, const presto_pipeline *pipeline,
                          const char *const *paths, size_t path_count, presto_error *err) {
    file_search search = {.source = source,
                          .match = presto_pipeline_source_option(pipeline, "match")};
    for (size_t i = 0; i < path_count; i++)
        PRESTO_TRY(search_root(&search, paths[i], err));
    if (source->base.full_count == 0)
        return fail_empty(&search, paths[path_count - 1], err);
    source->base.count = source->base.full_count;
    source->max_bytes = (uint64_t)presto_pipeline_source_option(pipeline, "max-bytes")->integer;
    PRESTO_TRY(set_labels(source, presto_pipeline_source_option(pipeline, "label")->text, err));
    return declare_features(source, presto_pipeline_source_option(pipeline, "feature")->text, err);
}

presto_status presto_source_open_raw(const presto_pipeline *pipeline, const char *const *paths,
                                     size_t path_count, presto_source **source_out,
                                     presto_error *err) {
    const char *kind = presto_pipeline_source(pipeline)->name;
    if (strcmp(kind, "files") != 0)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "sources of type %s are not part of this build", kind);
    if (path_count == 0)
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no path is given");
    presto__files *source = calloc(1, sizeof *source);
    if (source == NULL)
        return presto_fail_memory(err, sizeof *source);
    source->base.ops = &files_ops;
    presto_status status = fill(source, pipeline, paths, path_count, err);
    if (status < 0) {
        files_free(&source->base);
        return status;
    }
    *source_out = &source->base;
    return PRESTO_OK;
}
