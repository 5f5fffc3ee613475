/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw source `tar`: makes samples of the members of archives. The main feature is the path of
 * the main member, whose bytes the step read-file gets; the members beside it are values. A plain
 * archive is read by all threads, each sample at once; one in gzip by one after the other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../base/clock_internal.h"
#include "../../../base/memory_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "source_tar_internal.h"

#define OPEN_FILES 8 /* that each reader has */
#define TELL_BYTES ((uint64_t)8 << 20)

/* An archive that a reader has open. */
typedef struct open_archive {
    size_t taken; /* its number + 1; 0: none */
    presto__object object;
} open_archive;

typedef struct tar_reader {
    presto__reader base;
    presto__tar_source *source;
    const uint64_t *numbers; /* of the block: borrowed from the caller of fetch */
    open_archive open[OPEN_FILES];
    presto__tar walk; /* keeps its buffer from sample to sample */
    /* The main member of the sample at hand, in that sample's arena. */
    presto_span path, content;
} tar_reader;

static const presto__tar_source *source_of(const presto_source *base) {
    return (const presto__tar_source *)base;
}

/* ---- places ---- */

static size_t archive_of(const presto__tar_source *source, uint64_t number) {
    return presto__part_of(&source->archives[0].first, sizeof source->archives[0],
                           source->files.file_count, number);
}

static void tar_locate(const presto_source *base, uint64_t number, presto_error *err) {
    const presto__tar_source *source = source_of(base);
    size_t i = archive_of(source, number);
    presto_error_set_file(err, source->files.entries[i].path);
    presto_error_set_record(err, number - source->archives[i].first);
}

static void tar_place(presto__reader *base, size_t i, presto_error *err) {
    tar_locate(base->source, ((const tar_reader *)base)->numbers[i], err);
}

/* ---- readers ---- */

static presto_status tar_reader_new(presto_source *base, const presto__reader_options *options,
                                    presto__reader **reader_out, presto_error *err) {
    (void)options;
    tar_reader *reader = presto__memory_apart(1, sizeof *reader);
    if (reader == NULL)
        return presto_fail_memory(err, sizeof *reader);
    reader->base.source = base;
    reader->source = (presto__tar_source *)base;
    *reader_out = &reader->base;
    return PRESTO_OK;
}

static void release(const tar_reader *reader, open_archive *slot) {
    if (slot->taken > 0)
        presto__open_files_release(reader->source->open, slot->taken - 1);
    slot->taken = 0;
}

static void tar_reader_free(presto__reader *base) {
    tar_reader *reader = (tar_reader *)base;
    if (reader == NULL)
        return;
    for (size_t i = 0; i < OPEN_FILES; i++)
        release(reader, &reader->open[i]);
    presto__tar_done(&reader->walk);
    free(reader);
}

static presto_status tar_fetch(presto__reader *base, const uint64_t *numbers, size_t count,
                               presto__blocks *blocks, presto_error *err) {
    (void)count, (void)blocks, (void)err;
    ((tar_reader *)base)->numbers = numbers;
    return PRESTO_OK;
}

static presto_status open_plain(tar_reader *reader, size_t i, presto__object *object_out,
                                presto_error *err) {
    open_archive *slot = &reader->open[i % OPEN_FILES];
    if (slot->taken != i + 1) {
        release(reader, slot);
        PRESTO_TRY(presto__open_files_acquire(reader->source->open, i, &slot->object, err));
        slot->taken = i + 1;
    }
    *object_out = slot->object;
    return PRESTO_OK;
}

static void tar_will_read(presto__reader *base, const uint64_t *numbers, size_t count) {
    const presto__tar_source *source = source_of(base->source);
    presto_error ignored;
    for (size_t i = 0; i < count; i++) {
        const presto__tar_sample *sample = &source->samples[numbers[i]];
        size_t archive = archive_of(source, numbers[i]);
        uint64_t bytes = sample->bytes < TELL_BYTES ? sample->bytes : TELL_BYTES;
        presto__object object;
        if (!source->archives[archive].is_gzip && bytes > 0 &&
            open_plain((tar_reader *)base, archive, &object, &ignored) == PRESTO_OK)
            presto__object_will_read(object, sample->offset, bytes);
    }
}

/* ---- archives in gzip ---- */

/* Another archive was opened, whose lock is held: close the one that was opened longest ago. If all
 * are busy, this one is not listed: false. */
static bool list_stream(presto__tar_source *source, presto__tar_archive *archive) {
    bool is_listed = false;
    pthread_mutex_lock(&source->streams_lock);
    for (size_t tries = 0; tries < PRESTO__TAR_STREAMS && !is_listed; tries++) {
        presto__tar_archive **slot = &source->open_streams[source->next_stream];
        source->next_stream = (source->next_stream + 1) % PRESTO__TAR_STREAMS;
        presto__tar_archive *old = *slot;
        if (old != NULL && old != archive) {
            if (pthread_mutex_trylock(&old->lock) != 0)
                continue;
            presto__tar_file_close(&old->file);
            pthread_mutex_unlock(&old->lock);
        }
        *slot = archive;
        is_listed = true;
    }
    pthread_mutex_unlock(&source->streams_lock);
    return is_listed;
}

typedef presto_status (*use_file_fn)(presto__tar_file *file, void *user, presto_error *err);

/* Lock order: an archive's, then streams_lock; those of other archives are only tried. */
static presto_status with_stream(tar_reader *reader, size_t i, use_file_fn use, void *user,
                                 presto_error *err) {
    presto__tar_source *source = reader->source;
    presto__tar_archive *archive = &source->archives[i];
    presto_status status = PRESTO_OK;
    bool is_kept = true;
    pthread_mutex_lock(&archive->lock);
    if (archive->file.entry == NULL) {
        status = presto__tar_file_open(&archive->file, &source->files.entries[i], err);
        if (status == PRESTO_OK)
            is_kept = list_stream(source, archive);
    }
    uint64_t before = archive->file.read_bytes;
    if (status == PRESTO_OK)
        status = use(&archive->file, user, err);
    reader->base.stats.read_bytes += archive->file.read_bytes - before;
    if (!is_kept)
        presto__tar_file_close(&archive->file);
    pthread_mutex_unlock(&archive->lock);
    return status;
}

/* ---- bytes of a sample ---- */

/* Say again why walking on from here fails. */
static presto_status fail_again(presto__tar_file *file, void *user, presto_error *err) {
    presto__tar walk = {
        .view = presto__tar_file_view, .user = file, .next = *(const uint64_t *)user};
    presto__tar_member member;
    presto_status status;
    do
        status = presto__tar_next(&walk, &member, err);
    while (status == PRESTO_OK);
    presto__tar_done(&walk);
    return status;
}

static presto_status fail_sample(tar_reader *reader, size_t archive, uint64_t offset,
                                 presto_error *err) {
    const presto__tar_source *source = source_of(reader->base.source);
    presto__tar_file file = {0};
    if (source->archives[archive].is_gzip)
        return with_stream(reader, archive, fail_again, &offset, err);
    PRESTO_TRY(presto__tar_file_open(&file, &source->files.entries[archive], err));
    presto_status status = fail_again(&file, &offset, err);
    presto__tar_file_close(&file);
    return status;
}

/* A stretch of an archive, to be copied. */
typedef struct stretch {
    uint64_t offset;
    size_t bytes;
    uint8_t *to;
} stretch;

static presto_status copy_stretch(presto__tar_file *file, void *user, presto_error *err) {
    const stretch *wanted = user;
    presto_span view;
    PRESTO_TRY(presto__tar_file_view(file, wanted->offset, wanted->bytes, &view, err));
    if (view.bytes < wanted->bytes)
        return presto__tar_fail_changed(err);
    memcpy(wanted->to, view.data, view.bytes);
    return PRESTO_OK;
}

static presto_status read_stretch(tar_reader *reader, size_t archive, stretch *wanted,
                                  presto_error *err) {
    const presto__tar_source *source = source_of(reader->base.source);
    size_t got;
    presto__object object;
    if (source->archives[archive].is_gzip)
        return with_stream(reader, archive, copy_stretch, wanted, err);
    const char *path = source->files.entries[archive].path;
    PRESTO_TRY(open_plain(reader, archive, &object, err));
    PRESTO_TRY(presto__read_at((presto__object_place){object, path, wanted->offset}, wanted->to,
                               wanted->bytes, &got, err));
    reader->base.stats.read_bytes += got;
    return got == wanted->bytes ? PRESTO_OK : presto__tar_fail_changed(err);
}

/* ---- samples ---- */

static presto_status read_members(tar_reader *reader, size_t archive, presto__tar_members *into,
                                  presto_error *err) {
    const presto__tar_sample *sample = into->sample;
    const presto__tar_source *source = into->source;
    if (sample->bytes == 0) {
        presto_status status = fail_sample(reader, archive, sample->offset, err);
        return status < 0 ? status : presto__tar_fail_changed(err);
    }
    if (sample->bytes > source->max_bytes)
        return presto_fail(err, PRESTO_ERR_LIMIT, sample->offset,
                           "a sample of %" PRIu64
                           " bytes, more than the source's max-bytes (%" PRIu64 ")",
                           sample->bytes, source->max_bytes);
    stretch wanted = {sample->offset, (size_t)sample->bytes,
                      presto_arena_alloc(into->arena, (size_t)sample->bytes, 64)};
    size_t bytes = (source->column_count + 1) * sizeof *into->values;
    into->values = presto_arena_alloc(into->arena, bytes, _Alignof(max_align_t));
    if (wanted.to == NULL || into->values == NULL)
        return presto_fail_memory(err, sample->bytes + bytes);
    memset(into->values, 0, bytes);
    PRESTO_TRY(read_stretch(reader, archive, &wanted, err));
    into->bytes = presto_span_of(wanted.to, wanted.bytes);
    into->offset = sample->offset;
    return presto__tar_find_members(&reader->walk, into, err);
}

static presto_status tar_sample(presto__reader *base, size_t i, presto_arena *arena,
                                presto_sample *sample_out, presto_error *err) {
    tar_reader *reader = (tar_reader *)base;
    uint64_t number = reader->numbers[i], start = presto__clock_ns();
    size_t archive = archive_of(reader->source, number);
    presto__tar_members members = {
        .source = reader->source, .sample = &reader->source->samples[number], .arena = arena};
    presto_status status = read_members(reader, archive, &members, err);
    reader->base.stats.read_ns += presto__clock_ns() - start;
    PRESTO_TRY(status);
    PRESTO_TRY(presto__tar_make_path(&members, archive, &reader->path, err));
    reader->content = members.main;
    sample_out->number = number;
    return presto__tar_make_features(&members, reader->path, sample_out, err);
}

static presto_status tar_read_file(void *user, presto_span path, presto_arena *arena,
                                   presto_span *bytes_out, presto_error *err) {
    const tar_reader *reader = user;
    (void)arena;
    if (path.data != reader->path.data)
        return presto_fail(
            err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
            "'%.*s' can only be read with its own sample: a cache must stand behind read-file",
            (int)(path.bytes < 200 ? path.bytes : 200), (const char *)path.data);
    *bytes_out = reader->content;
    return PRESTO_OK;
}

/* ---- the source ---- */

static void free_archives(presto__tar_source *source) {
    for (size_t i = 0; i < source->archive_count; i++) {
        presto__tar_file_close(&source->archives[i].file);
        pthread_mutex_destroy(&source->archives[i].lock);
    }
    free(source->archives);
    if (source->has_streams_lock)
        pthread_mutex_destroy(&source->streams_lock);
}

static void tar_free(presto_source *base) {
    presto__tar_source *source = (presto__tar_source *)base;
    free_archives(source);
    for (size_t i = 0; i < source->match_count; i++)
        free(source->match[i]);
    free(source->match);
    for (size_t i = 0; i < source->column_count; i++)
        free(source->columns[i].extension);
    free(source->columns);
    free(source->label);
    presto__classes_done(&source->classes);
    free(source->samples);
    presto__open_files_free(source->open);
    presto__files_done(&source->files);
    free(source);
}

/* The archives that have samples below the source's count. */
static size_t archives_in_use(const presto__tar_source *source) {
    uint64_t count = source->files.base.count;
    return count == 0 ? 0 : archive_of(source, count - 1) + 1;
}

static presto_status tar_drop_cache(presto_source *base, presto_error *err) {
    const presto__tar_source *source = source_of(base);
    presto__open_files_close_idle(source->open);
    return presto__files_drop_cache(&source->files, archives_in_use(source), err);
}

static uint64_t tar_digest(const presto_source *base) {
    const presto__tar_source *source = source_of(base);
    uint64_t digest = presto__files_digest(&source->files, archives_in_use(source));
    return presto__fnv_mix(presto__fnv_mix(digest, base->count), source->options_digest);
}

static presto_status tar_identify(const presto_source *base, bool as_named, presto__digest *digest,
                                  presto_error *err) {
    const presto__tar_source *source = source_of(base);
    presto__digest_add(digest, &source->options_digest, sizeof source->options_digest);
    return presto__files_identify(&source->files, as_named, digest, err);
}

/* The archive, and its number there. */
static void tar_name(const presto_source *base, uint64_t number, presto__digest *digest) {
    const presto__tar_source *source = source_of(base);
    size_t archive = archive_of(source, number);
    uint64_t within = number - source->archives[archive].first;
    presto__files_name(&source->files.entries[archive], digest);
    presto__digest_add(digest, &within, sizeof within);
}

static presto_status tar_check_random_access(presto_source *base, presto_error *err) {
    const presto__tar_source *source = source_of(base);
    for (size_t i = 0; i < archives_in_use(source); i++)
        if (source->archives[i].is_gzip) {
            presto_status status = presto_fail(
                err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                "is compressed as a whole (gzip) and can only be read from its start, so that "
                "samples cannot be picked for this shuffle: use buffer:N, or decompress it");
            presto_error_set_file(err, source->files.entries[i].path);
            return status;
        }
    return PRESTO_OK;
}

static const presto__source_ops tar_ops = {
    .free = tar_free,
    .drop_cache = tar_drop_cache,
    .check_random_access = tar_check_random_access,
    .reader_new = tar_reader_new,
    .reader_free = tar_reader_free,
    .fetch = tar_fetch,
    .will_read = tar_will_read,
    .sample = tar_sample,
    .place = tar_place,
    .locate = tar_locate,
    .read_file = tar_read_file,
    .name = tar_name,
    .digest = tar_digest,
    .identify = tar_identify,
};

/* ---- opening ---- */

static presto_status make_archives(presto__tar_source *source, presto_error *err) {
    size_t count = source->files.file_count;
    source->archives = calloc(count, sizeof *source->archives);
    if (source->archives == NULL)
        return presto_fail_memory(err, count * sizeof *source->archives);
    for (; source->archive_count < count; source->archive_count++) {
        int failed = pthread_mutex_init(&source->archives[source->archive_count].lock, NULL);
        if (failed != 0)
            return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    int failed = pthread_mutex_init(&source->streams_lock, NULL);
    source->has_streams_lock = failed == 0;
    return failed == 0 ? PRESTO_OK : presto_fail_errno(err, failed, NULL, "cannot make a lock");
}

static uint64_t add_text(uint64_t digest, const char *text) {
    return presto__fnv_add(digest, text, strlen(text) + 1);
}

static presto_status copy_options(presto__tar_source *source, const presto_pipeline *pipeline,
                                  presto_error *err) {
    const presto_option *match = presto__pipeline_source_option(pipeline, "match");
    const char *label = presto__pipeline_source_option(pipeline, "label")->text;
    const char *feature = presto__pipeline_source_option(pipeline, "feature")->text;
    source->max_bytes = (uint64_t)presto__pipeline_source_option(pipeline, "max-bytes")->integer;
    source->is_top_folder = strcmp(label, "top-folder") == 0;
    source->has_folder_labels = source->is_top_folder || strcmp(label, "parent-folder") == 0;
    source->options_digest = add_text(add_text(PRESTO__FNV_START, label), feature);
    PRESTO_TRY(presto__classes_read(presto__pipeline_source_option(pipeline, "classes"),
                                    &source->classes, err));
    if (source->classes.count > 0 && strcmp(label, "none") == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "source.classes is given, but source.label is none");
    for (size_t i = 0; i < source->classes.count; i++)
        source->options_digest = add_text(source->options_digest, source->classes.names[i]);
    source->label = strdup(label);
    source->files.base.main_feature = strdup(feature);
    source->match = calloc(match->text_count + 1, sizeof *source->match);
    if (source->label == NULL || source->files.base.main_feature == NULL || source->match == NULL)
        return presto_fail_memory(err, (match->text_count + 1) * sizeof *source->match);
    for (; source->match_count < match->text_count; source->match_count++) {
        const char *pattern = match->texts[source->match_count];
        source->match[source->match_count] = strdup(pattern);
        if (source->match[source->match_count] == NULL)
            return presto_fail_memory(err, strlen(pattern) + 1);
        source->options_digest = add_text(source->options_digest, pattern);
    }
    return PRESTO_OK;
}

/* Samples whose label is a member that none has would train nothing, unless that was nobody's
 * wish. */
static presto_status check_label(const presto__tar_source *source, presto_error *err) {
    bool is_asked = strcmp(source->label, "cls") != 0 || source->classes.count > 0;
    if (source->has_folder_labels || strcmp(source->label, "none") == 0 || !is_asked)
        return PRESTO_OK;
    for (size_t i = 0; i < source->column_count; i++)
        if (strcmp(source->columns[i].name, "label") == 0)
            return PRESTO_OK;
    presto_status status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                       "less than half of the samples have a member .%s, which "
                                       "source.label names",
                                       source->label);
    presto_error_set_file(err, source->files.entries[0].path);
    return status;
}

static presto_status declare(presto__tar_source *source, presto_error *err) {
    static const presto_tensor_spec text = {PRESTO_STRING, 0, {0}}, number = {PRESTO_INT64, 0, {0}},
                                    array = {PRESTO_DTYPE_UNKNOWN, -1, {0}};
    presto_source *base = &source->files.base;
    PRESTO_TRY(presto__source_declare(base, base->main_feature, PRESTO_ENCODE_BYTES, &text, err));
    PRESTO_TRY(presto__source_declare(base, "key", PRESTO_ENCODE_BYTES, &text, err));
    if (source->has_folder_labels)
        PRESTO_TRY(presto__source_declare(base, "label", PRESTO_ENCODE_INT64, &number, err));
    for (size_t i = 0; i < source->column_count; i++) {
        const presto__tar_column *column = &source->columns[i];
        source->options_digest = add_text(source->options_digest, column->extension);
        presto_encoding encoding =
            column->value == PRESTO__TAR_INTEGER || column->value == PRESTO__TAR_CLASS
                ? PRESTO_ENCODE_INT64
            : column->value == PRESTO__TAR_ARRAY ? PRESTO_ENCODE_TENSOR
                                                 : PRESTO_ENCODE_BYTES;
        const presto_tensor_spec *spec = encoding == PRESTO_ENCODE_INT64    ? &number
                                         : encoding == PRESTO_ENCODE_TENSOR ? &array
                                                                            : &text;
        PRESTO_TRY(presto__source_declare(base, column->name, encoding, spec, err));
    }
    return PRESTO_OK;
}

static presto_status fill(presto__tar_source *source, const presto__files_request *request,
                          presto_error *err) {
    static const char *const endings[] = {"*.tar", "*.tar.gz", "*.tgz"};
    const presto_option archives = {.is_set = true, .texts = endings, .text_count = 3};
    PRESTO_TRY(copy_options(source, request->pipeline, err));
    PRESTO_TRY(
        presto__files_list(&source->files, &archives, request->paths, request->path_count, err));
    PRESTO_TRY(presto__open_files_new(&source->files, &source->open, err));
    PRESTO_TRY(make_archives(source, err));
    PRESTO_TRY(presto__tar_find(
        source, presto__pipeline_source_option(request->pipeline, "features"), err));
    PRESTO_TRY(check_label(source, err));
    if (source->classes.count > 0)
        PRESTO_TRY(presto__classes_name(&source->classes, &source->files.base, err));
    return declare(source, err);
}

static presto_status tar_open(const presto_pipeline *pipeline, const char *const *paths,
                              size_t path_count, presto_source **source_out, presto_error *err) {
    const presto__files_request request = {pipeline, paths, path_count};
    presto__tar_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return presto_fail_memory(err, sizeof *source);
    source->files.base.ops = &tar_ops;
    source->files.base.declares_all = true;
    presto_status status = fill(source, &request, err);
    if (status < 0) {
        tar_free(&source->files.base);
        return status;
    }
    *source_out = &source->files.base;
    return PRESTO_OK;
}

const presto__source_kind presto__source_tar = {.name = "tar", .open = tar_open};
