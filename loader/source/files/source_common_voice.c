/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw source `common-voice`: the rows of a table such as train.tsv, whose column `path` names
 * files in the folder clips/ beside it. The order is that of the rows. Rows without file and files
 * without row are left out and told.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../base/file_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "../table/source_tables_internal.h"
#include "source_files_internal.h"

#define MOST_TABLE_BYTES ((uint64_t)4 << 30)
#define NOTE_BYTES 700
#define CLIPS "clips/"

enum { FIELD_PATH, FIELD_SENTENCE, FIELD_OTHERS };

/* One table that is being read. */
typedef struct voice_table {
    presto__files *source;
    const char *file;   /* the table */
    char *folder;       /* of the table, with its slash */
    presto_buffer path; /* of the clip at hand */
    presto__file_finder finder;
    uint64_t rows, missing;
    uint64_t first_missing;        /* its line */
    uint64_t silent, first_silent; /* clips without a sentence, and the line of the first one */
    char missing_name[160];
} voice_table;

/* ---- rows ---- */

static presto_status fail_name(const voice_table *table, presto_span name, uint64_t line,
                               presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                    "line %" PRIu64 ": the path \"%.*s\" leads out of the folder " CLIPS, line,
                    (int)(name.bytes < 100 ? name.bytes : 100), (const char *)name.data);
    presto_error_set_file(err, table->file);
    return status;
}

static void count_missing(voice_table *table, presto_span name, uint64_t line) {
    if (table->missing++ > 0)
        return;
    table->first_missing = line;
    snprintf(table->missing_name, sizeof table->missing_name, "%.*s",
             (int)(name.bytes < 150 ? name.bytes : 150), (const char *)name.data);
}

static presto_status join_clip(voice_table *table, presto_span name, presto_error *err) {
    table->path.bytes = 0;
    PRESTO_TRY(presto_buffer_append(&table->path, presto_span_of_text(table->folder), err));
    PRESTO_TRY(presto_buffer_append(&table->path, presto_span_of_text(CLIPS), err));
    PRESTO_TRY(presto_buffer_append(&table->path, name, err));
    return presto_buffer_append(&table->path, presto_span_of("", 1), err);
}

static presto_status add_row(void *user, const presto_span *fields, uint64_t line,
                             presto_error *err) {
    voice_table *table = user;
    presto__files *source = table->source;
    presto__object_info info;
    int failed;
    table->rows++;
    if (!presto__name_stays_below(fields[FIELD_PATH]))
        return fail_name(table, fields[FIELD_PATH], line, err);
    PRESTO_TRY(join_clip(table, fields[FIELD_PATH], err));
    const char *path = (const char *)table->path.data;
    PRESTO_TRY(presto__file_find(&table->finder, path, &info, &failed, err));
    if (failed == ENOENT || failed == ENOTDIR || failed == ENAMETOOLONG) {
        count_missing(table, fields[FIELD_PATH], line);
        return PRESTO_OK;
    }
    PRESTO_TRY(
        presto__files_add(source, path, strlen(table->folder), failed == 0 ? &info : NULL, err));
    presto__files_value *values = presto__files_last_values(source);
    if (fields[FIELD_SENTENCE].bytes == 0 && table->silent++ == 0)
        table->first_silent = line;
    for (size_t i = 0; i < source->column_count; i++)
        PRESTO_TRY(presto__files_keep(source, fields[FIELD_SENTENCE + i], &values[i].text, err));
    return PRESTO_OK;
}

/* ---- what is left out ---- */

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Different files right in clips/ among those from `first` on. */
static presto_status count_distinct(const voice_table *table, size_t first, uint64_t *count_out,
                                    presto_error *err) {
    const presto__files *source = table->source;
    size_t count = (size_t)source->base.full_count - first;
    const char **paths = calloc(count + 1, sizeof *paths);
    uint64_t distinct = 0;
    if (paths == NULL)
        return presto_fail_memory(err, count * sizeof *paths);
    for (size_t i = 0; i < count; i++)
        paths[i] = source->entries[first + i].path + strlen(table->folder) + strlen(CLIPS);
    qsort(paths, count, sizeof *paths, compare_paths);
    for (size_t i = 0; i < count; i++)
        distinct +=
            strchr(paths[i], '/') == NULL && (i == 0 || strcmp(paths[i - 1], paths[i]) != 0);
    free(paths);
    *count_out = distinct;
    return PRESTO_OK;
}

static presto_status want_name(void *user, const char *folder, const char *name, bool *wanted_out,
                               presto_error *err) {
    (void)user, (void)folder, (void)err;
    *wanted_out = name[0] != '.';
    return PRESTO_OK;
}

static presto_status count_found(void *user, const presto__listed *found, presto_error *err) {
    (void)found, (void)err;
    ++*(uint64_t *)user;
    return PRESTO_OK;
}

static presto_status count_folder(void *user, const char *path, presto_error *err) {
    (void)path, (void)err;
    ++*(uint64_t *)user;
    return PRESTO_OK;
}

/* Names in clips/; 0 if that cannot be listed. */
static uint64_t count_clips(voice_table *table) {
    presto_error ignored;
    uint64_t count = 0;
    const presto__list list = {.user = &count,
                               .name = want_name,
                               .found = count_found,
                               .folder = count_folder,
                               .is_shallow = true};
    if (join_clip(table, presto_span_of("", 0), &ignored) < 0)
        return 0;
    const char *path = (const char *)table->path.data;
    if (presto__path_can_be_listed(path))
        (void)presto__object_list(path, &list, NULL);
    return count;
}

static presto_status tell(voice_table *table, size_t first, presto_error *err) {
    char text[NOTE_BYTES];
    uint64_t used = 0;
    if (table->missing > 0) {
        snprintf(text, sizeof text,
                 "%.200s: %" PRIu64 " of %" PRIu64 " row%s left out: no such file in " CLIPS
                 ", the first in line %" PRIu64 ": %s",
                 table->file, table->missing, table->rows, presto_plural(table->rows),
                 table->first_missing, table->missing_name);
        PRESTO_TRY(presto__source_note(&table->source->base, text, err));
    }
    if (table->silent > 0) {
        snprintf(text, sizeof text,
                 "%.200s: no sentence in %" PRIu64 " of %" PRIu64
                 " row%s, the first is line %" PRIu64 ": the transcript is empty there",
                 table->file, table->silent, table->rows, presto_plural(table->rows),
                 table->first_silent);
        PRESTO_TRY(presto__source_note(&table->source->base, text, err));
    }
    PRESTO_TRY(count_distinct(table, first, &used, err));
    uint64_t clips = count_clips(table);
    if (clips <= used)
        return PRESTO_OK;
    snprintf(text, sizeof text,
             "%.200s" CLIPS ": %" PRIu64 " of %" PRIu64 " file%s left out: no row in %.200s",
             table->folder, clips - used, clips, presto_plural(clips), table->file);
    return presto__source_note(&table->source->base, text, err);
}

/* ---- tables ---- */

static presto_status read_table(voice_table *table, const presto_option *columns,
                                presto_error *err) {
    presto_arena arena = {0};
    presto__file_request request = {.path = table->file, .max_bytes = MOST_TABLE_BYTES};
    presto__tsv tsv = {
        .wanted_count = FIELD_OTHERS + columns->text_count, .row = add_row, .user = table};
    const char **wanted = calloc(tsv.wanted_count, sizeof *wanted);
    if (wanted == NULL)
        return presto_fail_memory(err, tsv.wanted_count * sizeof *wanted);
    wanted[FIELD_PATH] = "path";
    wanted[FIELD_SENTENCE] = "sentence";
    for (size_t i = 0; i < columns->text_count; i++)
        wanted[FIELD_OTHERS + i] = columns->texts[i];
    tsv.wanted = wanted;
    presto_status status = presto__source_file_read(&request, &arena, &tsv.text, err);
    if (status == PRESTO_OK)
        status = presto__tsv_read(&tsv, err);
    if (status == PRESTO_ERR_SYNTAX)
        presto_error_set_file(err, table->file);
    presto_arena_done(&arena);
    free(wanted);
    return status;
}

static presto_status fail_none(const voice_table *table, presto_error *err) {
    presto_status status =
        table->rows == 0 ? presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "has no rows")
                         : presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                       "of its %" PRIu64 " clip%s, none is in %.200s" CLIPS
                                       ", the first, of line %" PRIu64 ", is %s",
                                       table->rows, presto_plural(table->rows), table->folder,
                                       table->first_missing, table->missing_name);
    presto_error_set_file(err, table->file);
    return status;
}

/* `file` is the table; its folder holds clips/. */
static presto_status add_table(presto__files *source, const char *file,
                               const presto_option *columns, presto_error *err) {
    const char *slash = strrchr(file, '/');
    voice_table table = {.source = source, .file = file};
    size_t first = (size_t)source->base.full_count;
    table.folder = slash == NULL ? strdup("") : strndup(file, (size_t)(slash - file) + 1);
    if (table.folder == NULL)
        return presto_fail_memory(err, strlen(file));
    presto_status status = read_table(&table, columns, err);
    if (status == PRESTO_OK && source->base.full_count == first)
        status = fail_none(&table, err);
    if (status == PRESTO_OK)
        status = tell(&table, first, err);
    presto_buffer_done(&table.path);
    presto__file_finder_done(&table.finder);
    free(table.folder);
    return status;
}

/* A path is a table, or a folder that has the one of the option `table`. */
static presto_status add_path(presto__files *source, const char *path,
                              const presto_pipeline *pipeline, presto_error *err) {
    const presto_option *columns = presto__pipeline_source_option(pipeline, "columns");
    if (!presto__object_is_folder(path))
        return add_table(source, path, columns, err);
    char *file = presto__join_path(path, presto__pipeline_source_option(pipeline, "table")->text);
    if (file == NULL)
        return presto_fail_memory(err, strlen(path));
    presto_status status = add_table(source, file, columns, err);
    free(file);
    return status;
}

static presto_status add_columns(presto__files *source, const presto_option *columns,
                                 presto_error *err) {
    size_t count = 1 + columns->text_count;
    source->columns = calloc(count, sizeof *source->columns);
    if (source->columns == NULL)
        return presto_fail_memory(err, count * sizeof *source->columns);
    source->column_count = count;
    source->columns[0].name = "transcript";
    for (size_t i = 0; i < columns->text_count; i++) {
        presto_span name;
        PRESTO_TRY(presto__files_keep(source, presto_span_of_text(columns->texts[i]), &name, err));
        source->columns[1 + i].name = (const char *)name.data;
    }
    return PRESTO_OK;
}

static presto_status fill(presto__files *source, const presto__files_request *request,
                          presto_error *err) {
    const presto_pipeline *pipeline = request->pipeline;
    PRESTO_TRY(add_columns(source, presto__pipeline_source_option(pipeline, "columns"), err));
    for (size_t i = 0; i < request->path_count; i++)
        PRESTO_TRY(add_path(source, request->paths[i], pipeline, err));
    return PRESTO_OK;
}

static presto_status voice_open(const presto_pipeline *pipeline, const char *const *paths,
                                size_t path_count, presto_source **source_out, presto_error *err) {
    const presto__files_request request = {pipeline, paths, path_count};
    return presto__files_open(&request, fill, source_out, err);
}

const presto__source_kind presto__source_common_voice = {.name = "common-voice",
                                                         .open = voice_open};
