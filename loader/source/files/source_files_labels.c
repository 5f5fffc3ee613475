/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a source of files: from the names of folders, or from a label file. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../base/file_internal.h"
#include "../table/source_tables_internal.h"
#include "source_files_internal.h"

#define MOST_CSV_BYTES ((uint64_t)1 << 30)
#define NOTE_BYTES 700

/* The end of the path of the folder that is the label: the innermost one, or the outermost one
 * below the root. For a file directly in the root, it is the root. NULL: the working folder. */
static const char *folder_end(const presto__file *entry, bool is_top) {
    const char *end = is_top ? strchr(entry->path + entry->key_at, '/') : NULL;
    return end != NULL ? end : strrchr(entry->path, '/');
}

/* Its name, on the heap. */
static presto_status folder_name(const presto__file *entry, bool is_top, char **name_out,
                                 presto_error *err) {
    const char *end = folder_end(entry, is_top);
    char *folder = end == NULL          ? strdup(".")
                   : end == entry->path ? strdup("/")
                                        : strndup(entry->path, (size_t)(end - entry->path));
    if (folder == NULL)
        return presto_fail_memory(err, entry->path_bytes);
    char *slash = strrchr(folder, '/');
    const char *name = slash == NULL ? folder : slash + 1;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || name[0] == '\0') {
        if (presto__path_is_remote(folder)) {
            free(folder);
            presto_status status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                               "its folder has no name that could be its class");
            presto_error_set_file(err, entry->path);
            return status;
        }
        /* A path such as "." has no name: ask the file system. */
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

static bool same_until(const presto__file *a, const char *end_a, const presto__file *b,
                       const char *end_b) {
    if (end_a == NULL || end_b == NULL)
        return end_a == end_b;
    size_t bytes = (size_t)(end_a - a->path);
    return bytes == (size_t)(end_b - b->path) && memcmp(a->path, b->path, bytes) == 0;
}

bool presto__files_same_folder(const presto__file *a, const presto__file *b) {
    return same_until(a, folder_end(a, false), b, folder_end(b, false));
}

/* Files of one folder are neighbours in the list and share its name. */
static presto_status collect_folders(presto__files *source, bool is_top, char **names,
                                     size_t *count, presto_error *err) {
    for (size_t i = 0; i < source->base.full_count; i++) {
        presto__file *entry = &source->entries[i];
        if (i == 0 ||
            !same_until(entry - 1, folder_end(entry - 1, is_top), entry, folder_end(entry, is_top)))
            PRESTO_TRY(folder_name(entry, is_top, &names[(*count)++], err));
        entry->label = (int64_t)*count - 1; /* for now the position before sorting */
    }
    return PRESTO_OK;
}

/* The number of each folder's name among the classes. */
static presto_status number_given(presto__files *source, char **names,
                                  const presto__classes *classes, presto_error *err) {
    for (uint64_t i = 0; i < source->base.full_count; i++) {
        presto__file *entry = &source->entries[i];
        size_t number = presto__classes_find(classes, names[entry->label]);
        if (number == SIZE_MAX) {
            presto_status status = presto__classes_fail(classes, names[entry->label], err);
            presto_error_set_file(err, entry->path);
            return status;
        }
        entry->label = (int64_t)number;
    }
    return presto__classes_name(classes, &source->base, err);
}

static presto_status label_by_given_folder(presto__files *source, bool is_top,
                                           const presto__classes *classes, presto_error *err) {
    size_t files = (size_t)source->base.full_count, count = 0;
    char **names = calloc(files, sizeof *names);
    if (names == NULL)
        return presto_fail_memory(err, files * sizeof *names);
    presto_status status = collect_folders(source, is_top, names, &count, err);
    if (status >= 0)
        status = number_given(source, names, classes, err);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return status;
}

static presto_status label_by_folder(presto__files *source, bool is_top, presto_error *err) {
    size_t files = (size_t)source->base.full_count;
    char **names = calloc(files, sizeof *names);
    char **sorted = calloc(files, sizeof *sorted);
    size_t count = 0;
    size_t sorted_count = 0;
    presto_status status = names == NULL || sorted == NULL
                               ? presto_fail_memory(err, files * sizeof *names)
                               : collect_folders(source, is_top, names, &count, err);
    for (; status == PRESTO_OK && sorted_count < count; sorted_count++) {
        const char *name = names[sorted_count];
        sorted[sorted_count] = name == NULL ? NULL : strdup(name);
        if (sorted[sorted_count] == NULL) {
            status = presto_fail_memory(err, 1);
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
    /* Freed with the source, also on failure. */
    source->base.label_names = sorted;
    source->base.label_count = sorted_count;
    return status;
}

static size_t depth_of(const presto__file *entry) {
    size_t depth = 0;
    for (const char *at = entry->path + entry->key_at; (at = strchr(at, '/')) != NULL; at++)
        depth++;
    return depth;
}

/* Folders of different depths: is the innermost one really the class? */
static presto_status note_depths(presto__files *source, presto_error *err) {
    const presto__file *least = &source->entries[0], *most = least;
    size_t least_depth = depth_of(least), most_depth = least_depth;
    for (size_t i = 1; i < source->base.full_count; i++) {
        size_t depth = depth_of(&source->entries[i]);
        if (depth < least_depth) {
            least_depth = depth;
            least = &source->entries[i];
        }
        if (depth > most_depth) {
            most_depth = depth;
            most = &source->entries[i];
        }
    }
    if (least_depth == most_depth)
        return PRESTO_OK;
    char text[NOTE_BYTES];
    snprintf(text, sizeof text,
             "files lie %zu to %zu folder%s deep, and the innermost is the label: \"%.100s\" of "
             "%.150s, \"%.100s\" of %.150s; 'label: top-folder' takes the outermost",
             least_depth, most_depth, presto_plural(most_depth),
             source->base.label_names[least->label], least->path + least->key_at,
             source->base.label_names[most->label], most->path + most->key_at);
    return presto__source_note(&source->base, text, err);
}

/* Folders without a file of the source, whose names would have been classes: "bee, fly". */
static presto_status note_empty_folders(presto__files *source, bool is_top, presto_error *err) {
    char list[NOTE_BYTES / 2] = "", text[NOTE_BYTES];
    size_t used = 0, count = 0;
    for (size_t i = 0; i < source->empty_count; i++) {
        const char *folder = source->empty_folders[i];
        const char *slash = strrchr(folder, '/');
        if ((is_top && slash != NULL) ||
            presto__names_find(source->base.label_names, source->base.label_count,
                               slash == NULL ? folder : slash + 1) != SIZE_MAX)
            continue;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", count > 0 ? ", " : "",
                                     folder);
        count++;
    }
    if (count == 0)
        return PRESTO_OK;
    snprintf(text, sizeof text,
             "%zu folder%s no file that matches and %s no class: %s%s; source.classes gives the "
             "classes, so that their numbers do not depend on this",
             count, count == 1 ? " has" : "s have", count == 1 ? "is" : "are", list,
             used >= sizeof list ? "..." : "");
    return presto__source_note(&source->base, text, err);
}

/* ---- label files ---- */

/* The real paths of the label file's folder, and of the root of the file looked up last. */
typedef struct csv_places {
    char *folder;
    char *root;
    const presto__file *of; /* of that root */
} csv_places;

static presto_status real_folder(const char *path, size_t bytes, char **real_out,
                                 presto_error *err) {
    char *folder = bytes == 0 ? strdup(".") : strndup(path, bytes);
    if (folder == NULL)
        return presto_fail_memory(err, bytes);
    size_t last = strlen(folder) - 1;
    if (presto__path_is_remote(folder)) { /* has no links */
        if (folder[last] == '/')
            folder[last] = '\0';
        *real_out = folder;
        return PRESTO_OK;
    }
    char *real = realpath(folder, NULL);
    presto_status status =
        real == NULL ? presto_fail_errno(err, errno, folder, "cannot resolve") : PRESTO_OK;
    free(folder);
    if (real != NULL)
        *real_out = real;
    return status;
}

/* Find the row of a file: by its path below the source, else by its path from the label file's
 * folder. */
static presto_status find_row(presto__labels *labels, const presto__file *entry, csv_places *places,
                              presto__label_row **row_out, presto_error *err) {
    const char *key = entry->path + entry->key_at;
    *row_out = presto__labels_find(labels, key);
    if (*row_out != NULL)
        return PRESTO_OK;
    if (places->of == NULL || places->of->key_at != entry->key_at ||
        memcmp(places->of->path, entry->path, entry->key_at) != 0) {
        free(places->root);
        places->root = NULL;
        PRESTO_TRY(real_folder(entry->path, entry->key_at, &places->root, err));
        places->of = entry;
    }
    char *path = presto__join_path(places->root, key);
    if (path == NULL)
        return presto_fail_memory(err, entry->path_bytes);
    size_t bytes = strlen(places->folder);
    bytes -= bytes == 1; /* "/" */
    if (strncmp(path, places->folder, bytes) == 0 && path[bytes] == '/')
        *row_out = presto__labels_find(labels, path + bytes + 1);
    free(path);
    return PRESTO_OK;
}

static presto_status take_rows(presto__files *source, presto__labels *labels, const char *file,
                               csv_places *places, presto_error *err) {
    for (size_t i = 0; i < source->base.full_count; i++) {
        presto__file *entry = &source->entries[i];
        presto__label_row *row = NULL;
        PRESTO_TRY(find_row(labels, entry, places, &row, err));
        if (row == NULL) {
            presto_status status =
                presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                            "has no row in %.200s: its path below the source or from that file's "
                            "folder must stand there, as \"%.100s\" does in line %" PRIu64,
                            file, labels->rows[0].path, labels->rows[0].line);
            presto_error_set_file(err, entry->path);
            return status;
        }
        row->used = true;
        if (source->has_fractions)
            entry->fraction = row->fraction;
        else
            entry->label = row->label;
    }
    return PRESTO_OK;
}

/* A label file may list more files than these. Rows without a file also show misspelt names. */
static presto_status note_unused(presto__files *source, const presto__labels *labels,
                                 const char *file, presto_error *err) {
    const presto__label_row *first = NULL;
    uint64_t count = 0;
    char text[NOTE_BYTES];
    for (size_t i = 0; i < labels->count; i++) {
        const presto__label_row *row = &labels->rows[i];
        count += !row->used;
        if (!row->used && (first == NULL || row->line < first->line))
            first = row;
    }
    if (first == NULL)
        return PRESTO_OK;
    snprintf(text, sizeof text,
             "%.200s: %" PRIu64
             " of %zu row%s name%s no file of the source, the first in line %" PRIu64 ": %.150s",
             file, count, labels->count, presto_plural(labels->count), count == 1 ? "s" : "",
             first->line, first->path);
    return presto__source_note(&source->base, text, err);
}

static presto_status match_labels(presto__files *source, presto__labels *labels, const char *file,
                                  presto_error *err) {
    csv_places places = {0};
    const char *slash = strrchr(file, '/');
    source->has_fractions = labels->are_fractions;
    presto_status status =
        real_folder(file, slash == NULL ? 0 : (size_t)(slash - file) + 1, &places.folder, err);
    if (status == PRESTO_OK)
        status = take_rows(source, labels, file, &places, err);
    if (status == PRESTO_OK)
        status = note_unused(source, labels, file, err);
    free(places.folder);
    free(places.root);
    return status;
}

/* Names, and numbers that are names, become the numbers of the classes. Other numbers are those. */
static presto_status number_rows(presto__files *source, presto__labels *labels,
                                 const presto__classes *classes, const char *file,
                                 presto_error *err) {
    bool are_names = labels->names != NULL || classes->are_numeric || labels->are_fractions;
    presto_status status = PRESTO_OK;
    presto_error why;
    for (size_t i = 0; i < labels->count && status >= 0; i++) {
        presto__label_row *row = &labels->rows[i];
        size_t number = are_names ? presto__classes_find(classes, row->text) : 0;
        if (number == SIZE_MAX)
            status = presto__classes_fail(classes, row->text, &why);
        else if (are_names)
            row->label = (int64_t)number;
        else
            status = presto__classes_check_number(classes, row->label, &why);
        if (status < 0) {
            (void)presto_fail(err, status, PRESTO_NO_OFFSET, "line %" PRIu64 ": %.400s", row->line,
                              why.message);
            presto_error_set_file(err, file);
            return status;
        }
    }
    labels->are_fractions = false;
    return presto__classes_name(classes, &source->base, err);
}

static presto_status label_by_csv(presto__files *source, const char *file, bool are_classes,
                                  const presto__classes *classes, presto_error *err) {
    presto_arena arena = {0};
    presto__labels labels = {0};
    presto_span csv = {0};
    presto__file_request request = {.path = file, .max_bytes = MOST_CSV_BYTES};
    presto_status status = presto__source_file_read(&request, &arena, &csv, err);
    if (status == PRESTO_OK)
        status = presto__labels_parse(csv, file, are_classes, &labels, err);
    if (status == PRESTO_OK)
        status = presto__note_odd_quote(&source->base, file, labels.odd_quote, err);
    if (status == PRESTO_OK && classes->count > 0)
        status = number_rows(source, &labels, classes, file, err);
    if (status == PRESTO_OK)
        status = match_labels(source, &labels, file, err);
    if (status == PRESTO_OK && classes->count == 0) {
        source->base.label_names = labels.names;
        source->base.label_count = labels.name_count;
        labels.names = NULL;
        labels.name_count = 0;
    }
    presto__labels_done(&labels);
    presto_arena_done(&arena);
    return status;
}

bool presto__label_is_folder(const char *label) {
    return strcmp(label, "parent-folder") == 0 || strcmp(label, "top-folder") == 0;
}

static presto_status note_empty_classes(presto__files *source, const presto__classes *classes,
                                        presto_error *err) {
    uint64_t *counts = calloc(classes->count, sizeof *counts);
    if (counts == NULL)
        return presto_fail_memory(err, classes->count * sizeof *counts);
    for (uint64_t i = 0; i < source->base.full_count; i++)
        counts[source->entries[i].label]++;
    presto_status status = presto__classes_note_empty(classes, counts, &source->base, err);
    free(counts);
    return status;
}

static presto_status label_files(presto__files *source, const char *label,
                                 const presto__classes *classes, presto_error *err) {
    bool is_top = strcmp(label, "top-folder") == 0;
    if (strncmp(label, "csv:", 4) == 0)
        return label_by_csv(source, label + 4, false, classes, err);
    if (strncmp(label, "csv-class:", 10) == 0)
        return label_by_csv(source, label + 10, true, classes, err);
    if (!presto__label_is_folder(label))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "source option label: '%s' is none of none, parent-folder, top-folder, "
                           "csv:FILE, csv-class:FILE",
                           label);
    if (classes->count > 0)
        return label_by_given_folder(source, is_top, classes, err);
    PRESTO_TRY(label_by_folder(source, is_top, err));
    PRESTO_TRY(note_empty_folders(source, is_top, err));
    return is_top ? PRESTO_OK : note_depths(source, err);
}

presto_status presto__files_label(presto__files *source, const char *label,
                                  const presto_option *classes, presto_error *err) {
    presto__classes given;
    source->has_labels = strcmp(label, "none") != 0;
    if (!source->has_labels && classes->is_set)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "source.classes is given, but source.label is none");
    if (!source->has_labels)
        return PRESTO_OK;
    PRESTO_TRY(presto__classes_read(classes, &given, err));
    presto_status status = label_files(source, label, &given, err);
    if (status >= 0 && given.count > 0)
        status = note_empty_classes(source, &given, err);
    presto__classes_done(&given);
    return status;
}
