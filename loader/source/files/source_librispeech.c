/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw source `librispeech`: folders of utterances, ID.flac, beside files of what is said in
 * them, *.trans.txt, lines of "ID TEXT". The order is bytewise by table, then that of its lines.
 * Lines without file and files without line are left out and told.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../base/file_internal.h"
#include "../../../base/paths_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "../table/source_tables_internal.h"
#include "source_files_internal.h"

#define MOST_TABLE_BYTES ((uint64_t)1 << 30)
#define NOTE_BYTES 700
#define TABLE_ENDING ".trans.txt"

enum { COLUMN_TRANSCRIPT, COLUMN_SPEAKER, COLUMN_CHAPTER, COLUMN_COUNT };

/* A tree that is being read. */
typedef struct speech_tree {
    presto__files *source;
    const char *ending; /* of sounds: ".flac" */
    size_t root_bytes;  /* of the root's path with its slash */
    const char *table;  /* the table at hand */
    presto_buffer path; /* of the sound at hand */
    presto__file_finder finder;
    char **tables;
    size_t table_count, table_capacity;
    uint64_t sounds; /* files with the ending */
    uint64_t lines, missing;
    char first_missing[300]; /* "FILE, line 7: ID" */
    uint64_t silent;         /* utterances without text */
    char first_silent[300];
} speech_tree;

/* ---- finding tables ---- */

static presto_status want_name(void *user, const char *folder, const char *name, bool *wanted_out,
                               presto_error *err) {
    (void)user, (void)folder, (void)err;
    *wanted_out = name[0] != '.';
    return PRESTO_OK;
}

static presto_status add_found(void *user, const presto__listed *found, presto_error *err) {
    speech_tree *tree = user;
    tree->sounds += presto__ends_with(found->name, tree->ending);
    if (!presto__ends_with(found->name, TABLE_ENDING))
        return PRESTO_OK;
    if (tree->table_count == tree->table_capacity) {
        size_t capacity = tree->table_capacity == 0 ? 64 : 2 * tree->table_capacity;
        char **tables = realloc(tree->tables, capacity * sizeof *tables);
        if (tables == NULL)
            return presto_fail_memory(err, capacity * sizeof *tables);
        tree->tables = tables;
        tree->table_capacity = capacity;
    }
    tree->tables[tree->table_count] = strdup(found->path);
    if (tree->tables[tree->table_count] == NULL)
        return presto_fail_memory(err, strlen(found->path) + 1);
    tree->table_count++;
    return PRESTO_OK;
}

/* ---- lines ---- */

static presto_status join_sound(speech_tree *tree, presto_span id, presto_error *err) {
    const char *slash = strrchr(tree->table, '/');
    size_t folder_bytes = slash == NULL ? 0 : (size_t)(slash - tree->table) + 1;
    tree->path.bytes = 0;
    PRESTO_TRY(presto_buffer_append(&tree->path, presto_span_of(tree->table, folder_bytes), err));
    PRESTO_TRY(presto_buffer_append(&tree->path, id, err));
    return presto_buffer_append(&tree->path, presto_span_of(tree->ending, strlen(tree->ending) + 1),
                                err);
}

static presto_status add_utterance(void *user, const presto__utterance *utterance,
                                   presto_error *err) {
    speech_tree *tree = user;
    presto__files *source = tree->source;
    presto__object_info info;
    int failed;
    tree->lines++;
    PRESTO_TRY(join_sound(tree, utterance->id, err));
    const char *path = (const char *)tree->path.data;
    PRESTO_TRY(presto__file_find(&tree->finder, path, &info, &failed, err));
    if (failed == ENOENT || failed == ENAMETOOLONG) {
        if (tree->missing++ == 0)
            snprintf(tree->first_missing, sizeof tree->first_missing,
                     "%.180s, line %" PRIu64 ": %.*s", tree->table + tree->root_bytes,
                     utterance->line, (int)(utterance->id.bytes < 60 ? utterance->id.bytes : 60),
                     (const char *)utterance->id.data);
        return PRESTO_OK;
    }
    if (utterance->text.bytes == 0 && tree->silent++ == 0)
        snprintf(tree->first_silent, sizeof tree->first_silent, "%.180s, line %" PRIu64 ": %.*s",
                 tree->table + tree->root_bytes, utterance->line,
                 (int)(utterance->id.bytes < 60 ? utterance->id.bytes : 60),
                 (const char *)utterance->id.data);
    PRESTO_TRY(presto__files_add(source, path, tree->root_bytes, failed == 0 ? &info : NULL, err));
    presto__files_value *values = presto__files_last_values(source);
    values[COLUMN_SPEAKER].number = utterance->speaker;
    values[COLUMN_CHAPTER].number = utterance->chapter;
    return presto__files_keep(source, utterance->text, &values[COLUMN_TRANSCRIPT].text, err);
}

static presto_status read_table(speech_tree *tree, const char *table, presto_error *err) {
    presto_arena arena = {0};
    presto_span text;
    presto__file_request request = {.path = table, .max_bytes = MOST_TABLE_BYTES};
    tree->table = table;
    presto_status status = presto__source_file_read(&request, &arena, &text, err);
    if (status == PRESTO_OK)
        status = presto__utterances_read(text, add_utterance, tree, err);
    if (status == PRESTO_ERR_SYNTAX)
        presto_error_set_file(err, table);
    presto_arena_done(&arena);
    return status;
}

/* ---- trees ---- */

static presto_status tell(const speech_tree *tree, const char *root, presto_error *err) {
    char text[NOTE_BYTES];
    presto_source *base = &tree->source->base;
    uint64_t used = tree->lines - tree->missing;
    if (tree->missing > 0) {
        snprintf(text, sizeof text,
                 "%.200s: %" PRIu64 " of %" PRIu64
                 " transcript%s left out: no such file, the first in %s",
                 root, tree->missing, tree->lines, presto_plural(tree->lines), tree->first_missing);
        PRESTO_TRY(presto__source_note(base, text, err));
    }
    if (tree->silent > 0) {
        snprintf(text, sizeof text,
                 "%.200s: %" PRIu64 " of %" PRIu64 " transcript%s without text, the first in %s",
                 root, tree->silent, tree->lines, presto_plural(tree->lines), tree->first_silent);
        PRESTO_TRY(presto__source_note(base, text, err));
    }
    if (tree->sounds <= used)
        return PRESTO_OK;
    snprintf(text, sizeof text,
             "%.200s: %" PRIu64 " of %" PRIu64 " %s file%s left out: no transcript", root,
             tree->sounds - used, tree->sounds, tree->ending, presto_plural(tree->sounds));
    return presto__source_note(base, text, err);
}

static int compare_tables(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static presto_status read_tree(speech_tree *tree, const char *root, presto_error *err) {
    const presto__list list = {.user = tree, .name = want_name, .found = add_found};
    uint64_t before = tree->source->base.full_count;
    PRESTO_TRY(presto__object_list(root, &list, err));
    if (tree->table_count > 0)
        qsort(tree->tables, tree->table_count, sizeof *tree->tables, compare_tables);
    for (size_t i = 0; i < tree->table_count; i++)
        PRESTO_TRY(read_table(tree, tree->tables[i], err));
    if (tree->source->base.full_count > before)
        return tell(tree, root, err);
    presto_status status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                       "no sound with a transcript: %zu file%s *" TABLE_ENDING
                                       ", %" PRIu64 " line%s, %" PRIu64 " file%s *%.30s",
                                       tree->table_count, presto_plural(tree->table_count),
                                       tree->lines, presto_plural(tree->lines), tree->sounds,
                                       presto_plural(tree->sounds), tree->ending);
    presto_error_set_file(err, root);
    return status;
}

static presto_status add_root(presto__files *source, const char *root, const char *ending,
                              presto_error *err) {
    presto__object_info info;
    PRESTO_TRY(presto__object_find(root, &info, err));
    if (info.type != PRESTO__OBJECT_FOLDER) {
        presto_status status =
            presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "is no folder");
        presto_error_set_file(err, root);
        return status;
    }
    size_t bytes = strlen(root);
    speech_tree tree = {
        .source = source, .ending = ending, .root_bytes = bytes + (root[bytes - 1] == '/' ? 0 : 1)};
    presto_status status = read_tree(&tree, root, err);
    for (size_t i = 0; i < tree.table_count; i++)
        free(tree.tables[i]);
    free(tree.tables);
    presto_buffer_done(&tree.path);
    presto__file_finder_done(&tree.finder);
    return status;
}

static presto_status fill(presto__files *source, const presto__files_request *request,
                          presto_error *err) {
    static const presto__files_column columns[] = {
        [COLUMN_TRANSCRIPT] = {"transcript", PRESTO_STRING},
        [COLUMN_SPEAKER] = {"speaker", PRESTO_INT64},
        [COLUMN_CHAPTER] = {"chapter", PRESTO_INT64},
    };
    const char *ending = presto__pipeline_source_option(request->pipeline, "ending")->text;
    source->columns = malloc(sizeof columns);
    if (source->columns == NULL)
        return presto_fail_memory(err, sizeof columns);
    memcpy(source->columns, columns, sizeof columns);
    source->column_count = COLUMN_COUNT;
    for (size_t i = 0; i < request->path_count; i++)
        PRESTO_TRY(add_root(source, request->paths[i], ending, err));
    return PRESTO_OK;
}

static presto_status speech_open(const presto_pipeline *pipeline, const char *const *paths,
                                 size_t path_count, presto_source **source_out, presto_error *err) {
    const presto__files_request request = {pipeline, paths, path_count};
    return presto__files_open(&request, fill, source_out, err);
}

const presto__source_kind presto__source_librispeech = {.name = "librispeech", .open = speech_open};
