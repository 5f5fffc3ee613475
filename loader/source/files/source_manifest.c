/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw source `manifest`: the rows of a table, each with the path of a file. The order is that
 * of the rows. Classes are numbered over all rows, so that every selection of them has the same
 * numbers. Rows without file and files without row are left out and told.
 */
#define _GNU_SOURCE /* FNM_CASEFOLD */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../base/file_internal.h"
#include "../../../base/paths_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "../table/source_tables_internal.h"
#include "source_files_internal.h"

#define MOST_MANIFEST_BYTES ((uint64_t)4 << 30)
#define NOTE_BYTES 700

/* The manifest that is being taken. */
typedef struct taking {
    presto__files *source;
    const presto_pipeline *pipeline;
    const char *file;
    presto__manifest table;
    presto__manifest_root root;
    size_t path_column, label_column; /* the latter SIZE_MAX: none */
    size_t *columns;                  /* that become features */
    size_t column_count;
    bool is_json;          /* what looks like a number in quotes is a text */
    bool *are_texts;       /* of each column: source.texts names it */
    presto__classes given; /* source.classes */
    char **classes;        /* else those of the table, sorted; NULL: there are none */
    size_t class_count;
    const char *missing;   /* source.missing */
    size_t *where_columns; /* of each of source.where */
    uint64_t chosen, missing_files, first_missing;
    const char *missing_name;
    uint64_t dropped, first_dropped; /* rows without a value */
    size_t dropped_column;           /* of the first one */
    presto__file_finder finder;
} taking;

static presto_status fail_manifest(const taking *t, presto_status status, presto_error *err) {
    presto_error_set_file(err, t->file);
    return status;
}

/* ---- columns ---- */

/* "path, class, width" */
static void list_columns(const taking *t, char *list, size_t room) {
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; i < t->table.column_count && used < room; i++)
        used += (size_t)snprintf(list + used, room - used, "%s%s", i == 0 ? "" : ", ",
                                 t->table.names[i]);
}

static presto_status fail_column(const taking *t, const char *option, const char *name,
                                 presto_error *err) {
    char list[300];
    list_columns(t, list, sizeof list);
    return fail_manifest(t,
                         presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                     "has no column '%.64s', which source.%s names (there is: %s)",
                                     name, option, list),
                         err);
}

static presto_status find_path(taking *t, presto_error *err) {
    const presto_option *path = presto__pipeline_source_option(t->pipeline, "path");
    if (path->is_set) {
        t->path_column = presto__manifest_find(&t->table, path->text);
        return t->path_column == SIZE_MAX ? fail_column(t, "path", path->text, err) : PRESTO_OK;
    }
    for (t->path_column = 0; t->path_column < t->table.column_count; t->path_column++)
        if (presto__csv_is_path_name(t->table.names[t->path_column]))
            return PRESTO_OK;
    return fail_manifest(t,
                         presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                     "has no column 'path' or 'file': name the one with the "
                                     "paths, source.path=COLUMN (the first column is '%.64s')",
                                     t->table.names[0]),
                         err);
}

static presto_status find_label(taking *t, presto_error *err) {
    const char *label = presto__pipeline_source_option(t->pipeline, "label")->text;
    char text[NOTE_BYTES], list[300];
    bool is_none = strcmp(label, "none") == 0;
    t->label_column = is_none ? SIZE_MAX : presto__manifest_find(&t->table, label);
    if (t->label_column == t->path_column)
        t->label_column = SIZE_MAX;
    if (t->label_column == SIZE_MAX &&
        presto__pipeline_source_option(t->pipeline, "classes")->is_set)
        return is_none ? fail_manifest(t,
                                       presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                                   "source.classes is given, but source.label is "
                                                   "none"),
                                       err)
                       : fail_column(t, "label", label, err);
    if (t->label_column != SIZE_MAX || is_none)
        return PRESTO_OK;
    if (strcmp(label, "label") != 0)
        return fail_column(t, "label", label, err);
    if (t->table.column_count == 1)
        return PRESTO_OK;
    list_columns(t, list, sizeof list);
    snprintf(
        text, sizeof text,
        "%.200s has no column 'label', so samples have no label: source.label names one (there "
        "is: %s)",
        t->file, list);
    return presto__source_note(&t->source->base, text, err);
}

static presto_status find_texts(taking *t, presto_error *err) {
    const presto_option *texts = presto__pipeline_source_option(t->pipeline, "texts");
    t->are_texts = calloc(t->table.column_count, sizeof *t->are_texts);
    if (t->are_texts == NULL)
        return presto_fail_memory(err, t->table.column_count);
    for (size_t i = 0; i < texts->text_count; i++) {
        size_t column = presto__manifest_find(&t->table, texts->texts[i]);
        if (column == SIZE_MAX)
            return fail_column(t, "texts", texts->texts[i], err);
        t->are_texts[column] = true;
        t->table.kinds[column] = PRESTO__TEXT_NAME;
    }
    return PRESTO_OK;
}

static presto_status add_column(taking *t, size_t column, presto_error *err) {
    const char *name = t->table.names[column];
    const char *main = presto__pipeline_source_option(t->pipeline, "feature")->text;
    if (strcmp(name, "key") == 0 || strcmp(name, "label") == 0 || strcmp(name, main) == 0)
        return fail_manifest(
            t,
            presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                        "the column '%.64s' has the name of a feature that the source gives: list "
                        "others in source.columns",
                        name),
            err);
    t->columns[t->column_count++] = column;
    return PRESTO_OK;
}

/* All columns but those of path and label, or those of the option. */
static presto_status find_columns(taking *t, presto_error *err) {
    const presto_option *wanted = presto__pipeline_source_option(t->pipeline, "columns");
    size_t most = t->table.column_count + wanted->text_count;
    t->columns = calloc(most, sizeof *t->columns);
    if (t->columns == NULL)
        return presto_fail_memory(err, most * sizeof *t->columns);
    for (size_t i = 0; wanted->is_set && i < wanted->text_count; i++) {
        size_t column = presto__manifest_find(&t->table, wanted->texts[i]);
        if (column == SIZE_MAX)
            return fail_column(t, "columns", wanted->texts[i], err);
        PRESTO_TRY(add_column(t, column, err));
    }
    for (size_t i = 0; !wanted->is_set && i < t->table.column_count; i++)
        if (i != t->path_column && i != t->label_column)
            PRESTO_TRY(add_column(t, i, err));
    return PRESTO_OK;
}

static presto_status declare_columns(taking *t, presto_error *err) {
    presto__files *source = t->source;
    source->columns = calloc(t->column_count + 1, sizeof *source->columns);
    if (source->columns == NULL)
        return presto_fail_memory(err, (t->column_count + 1) * sizeof *source->columns);
    source->column_count = t->column_count;
    for (size_t i = 0; i < t->column_count; i++) {
        presto_span name;
        PRESTO_TRY(presto__files_keep(source, presto_span_of_text(t->table.names[t->columns[i]]),
                                      &name, err));
        presto__text_kind kind = t->table.kinds[t->columns[i]];
        source->columns[i] =
            (presto__files_column){.name = (const char *)name.data,
                                   .dtype = kind == PRESTO__TEXT_INTEGER    ? PRESTO_INT64
                                            : kind == PRESTO__TEXT_FRACTION ? PRESTO_FLOAT32
                                                                            : PRESTO_STRING};
    }
    return PRESTO_OK;
}

/* ---- labels ---- */

/* Has the row no value where one is needed? */
static bool lacks_value(const taking *t, size_t row, size_t column) {
    presto__text_kind kind = presto__manifest_cell_kind(&t->table, row, column);
    bool is_text = t->table.kinds[column] == PRESTO__TEXT_NAME;
    if (column != t->label_column && is_text)
        return false;
    if (kind == PRESTO__TEXT_NAN)
        return column == t->label_column || t->table.kinds[column] == PRESTO__TEXT_INTEGER;
    return kind == PRESTO__TEXT_EMPTY || (kind == PRESTO__TEXT_MISSING && !t->are_texts[column]);
}

/* Classes of the table are those of all rows, so that every selection of them has the same
 * numbers. */
static presto_status number_classes(taking *t, presto_error *err) {
    size_t rows = t->table.row_count;
    presto__files *source = t->source;
    if (t->label_column == SIZE_MAX)
        return PRESTO_OK;
    source->has_labels = true;
    PRESTO_TRY(presto__classes_read(presto__pipeline_source_option(t->pipeline, "classes"),
                                    &t->given, err));
    presto__text_kind *kind = &t->table.kinds[t->label_column];
    if (t->given.count > 0 && (t->given.are_numeric || *kind == PRESTO__TEXT_FRACTION)) {
        *kind = PRESTO__TEXT_NAME; /* numbers that are names */
        t->are_texts[t->label_column] = true;
    }
    source->has_fractions = *kind == PRESTO__TEXT_FRACTION;
    if (*kind != PRESTO__TEXT_NAME || t->given.count > 0)
        return PRESTO_OK;
    t->classes = calloc(rows, sizeof *t->classes);
    if (t->classes == NULL)
        return presto_fail_memory(err, rows * sizeof *t->classes);
    for (size_t row = 0; row < rows; row++) {
        const char *cell = presto__manifest_cell(&t->table, row, t->label_column);
        if (lacks_value(t, row, t->label_column))
            continue; /* told where the row is taken */
        t->classes[t->class_count] = strdup(cell);
        if (t->classes[t->class_count] == NULL)
            return presto_fail_memory(err, strlen(cell) + 1);
        t->class_count++;
    }
    t->class_count = presto__names_distinct(t->classes, t->class_count);
    return PRESTO_OK;
}

static presto_status fail_cell(const taking *t, size_t row, size_t column, const char *type,
                               presto_error *err) {
    return fail_manifest(t,
                         presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                     "line %" PRIu64 ": '%.64s' of column '%.64s' does not fit "
                                     "%s; source.texts=[%.64s] takes the column as texts",
                                     t->table.lines[row],
                                     presto__manifest_cell(&t->table, row, column),
                                     t->table.names[column], type, t->table.names[column]),
                         err);
}

/* The first cell of the column that is a number, or a name; SIZE_MAX: none is. */
static size_t first_row_with(const taking *t, size_t column, bool is_number) {
    for (size_t row = 0; row < t->table.row_count; row++) {
        presto__text_kind kind = presto__manifest_cell_kind(&t->table, row, column);
        if (is_number ? presto__text_is_number(kind) : kind == PRESTO__TEXT_NAME)
            return row;
    }
    return SIZE_MAX;
}

/* Digits, one comma, digits. */
static bool has_decimal_comma(const char *text) {
    const char *at = text + (text[0] == '-' || text[0] == '+');
    size_t whole = strspn(at, "0123456789");
    size_t rest = at[whole] == ',' ? strspn(at + whole + 1, "0123456789") : 0;
    return whole > 0 && rest > 0 && at[whole + 1 + rest] == '\0';
}

static presto_status fail_comma(const taking *t, size_t row, size_t column, presto_error *err) {
    return fail_manifest(
        t,
        presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                    "line %" PRIu64 ": '%.64s' of column '%.64s' has a decimal comma: numbers are "
                    "written with a point; source.texts=[%.64s] takes the column as texts",
                    t->table.lines[row], presto__manifest_cell(&t->table, row, column),
                    t->table.names[column], t->table.names[column]),
        err);
}

/* A cell of another kind than its column. */
static presto_status fail_odd(const taking *t, size_t row, size_t column, presto_error *err) {
    bool is_number = presto__text_is_number(presto__manifest_cell_kind(&t->table, row, column));
    if (has_decimal_comma(presto__manifest_cell(&t->table, row, column)))
        return fail_comma(t, row, column, err);
    size_t other = first_row_with(t, column, !is_number);
    const char *name = t->table.names[column];
    return fail_manifest(
        t,
        presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                    "line %" PRIu64 ": '%.64s' of column '%.64s' is %s number, but '%.64s' in line "
                    "%" PRIu64 " is %s; source.texts=[%.64s] takes all of the column as texts",
                    t->table.lines[row], presto__manifest_cell(&t->table, row, column), name,
                    is_number ? "a" : "no",
                    other == SIZE_MAX ? "" : presto__manifest_cell(&t->table, other, column),
                    other == SIZE_MAX ? 0 : t->table.lines[other], is_number ? "none" : "one",
                    name),
        err);
}

static presto_status fail_missing(const taking *t, size_t row, size_t column, presto_error *err) {
    const char *name = t->table.names[column];
    bool is_text = t->table.kinds[column] == PRESTO__TEXT_NAME;
    const char *cell = presto__manifest_cell(&t->table, row, column);
    return fail_manifest(
        t,
        presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                    "line %" PRIu64 " has no value in column '%.64s', which holds %s%s%.40s%s: "
                    "source.missing=drop leaves such rows out, source.missing=NUMBER stands for "
                    "the value%s%s%.64s%s",
                    t->table.lines[row], name, is_text ? "classes" : "numbers",
                    cell[0] == '\0' ? "" : " ('", cell, cell[0] == '\0' ? "" : "' is none)",
                    column == t->label_column ? "" : ", source.columns chooses columns",
                    is_text && cell[0] != '\0' ? "; if it is a class, source.texts=[" : "",
                    is_text && cell[0] != '\0' ? name : "", is_text && cell[0] != '\0' ? "]" : ""),
        err);
}

/* ---- rows ---- */

/* Do all of `where` hold? Their columns are known to be there. */
static bool is_wanted(const taking *t, const presto_option *where, size_t row) {
    for (size_t i = 0; i < where->text_count; i++) {
        const char *equals = strchr(where->texts[i], '=');
        if (strcmp(presto__manifest_cell(&t->table, row, t->where_columns[i]), equals + 1) != 0)
            return false;
    }
    return true;
}

static presto_status find_where(taking *t, const presto_option *where, presto_error *err) {
    t->where_columns = calloc(where->text_count + 1, sizeof *t->where_columns);
    if (t->where_columns == NULL)
        return presto_fail_memory(err, where->text_count * sizeof *t->where_columns);
    for (size_t i = 0; i < where->text_count; i++) {
        char name[200];
        size_t bytes = strcspn(where->texts[i], "=");
        snprintf(name, sizeof name, "%.*s", (int)(bytes < sizeof name ? bytes : sizeof name - 1),
                 where->texts[i]);
        t->where_columns[i] = presto__manifest_find(&t->table, name);
        if (t->where_columns[i] == SIZE_MAX)
            return fail_column(t, "where", name, err);
    }
    return PRESTO_OK;
}

/* The path of a row, malloc'd. */
static presto_status path_of(const taking *t, size_t row, char **path_out, presto_error *err) {
    const char *name = presto__manifest_cell(&t->table, row, t->path_column);
    presto_status status = presto__manifest_path(&t->root, name, path_out, err);
    if (status != PRESTO_ERR_NOT_FOUND)
        return status;
    return fail_manifest(
        t,
        presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                    "line %" PRIu64 ": the path '%.100s' does not lead to a file below %.100s: "
                    "source.root names the folder that paths start from",
                    t->table.lines[row], name, t->root.named[0] == '\0' ? "." : t->root.named),
        err);
}

/* What stands for a missing value. */
static presto_status set_missing(const taking *t, size_t row, size_t column,
                                 presto__files_value *value, presto_error *err) {
    bool is_fraction = t->table.kinds[column] == PRESTO__TEXT_FRACTION;
    if (strcmp(t->missing, "error") == 0)
        return fail_missing(t, row, column, err);
    if (is_fraction && presto__csv_names_alike(t->missing, "nan"))
        value->fraction = NAN;
    else if (is_fraction && presto__text_is_number(presto__text_kind_of(t->missing)))
        return presto__text_fraction(t->missing, &value->fraction)
                   ? PRESTO_OK
                   : fail_cell(t, row, column, "float32", err);
    else if (!is_fraction && presto__text_kind_of(t->missing) == PRESTO__TEXT_INTEGER &&
             presto__text_integer(t->missing, &value->number))
        return PRESTO_OK;
    else
        return fail_manifest(t,
                             presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                         "line %" PRIu64
                                         " has no value in column '%.64s', which is int64: "
                                         "source.missing is '%.40s', must be a whole number",
                                         t->table.lines[row], t->table.names[column], t->missing),
                             err);
    return PRESTO_OK;
}

/* A number as the column has them. */
static presto_status set_number(const taking *t, size_t row, size_t column,
                                presto__files_value *value, presto_error *err) {
    const char *text = presto__manifest_cell(&t->table, row, column);
    presto__text_kind kind = presto__manifest_cell_kind(&t->table, row, column);
    if (lacks_value(t, row, column))
        return set_missing(t, row, column, value, err);
    if (kind == PRESTO__TEXT_NAN) {
        value->fraction = NAN;
        return PRESTO_OK;
    }
    if (!presto__text_is_number(kind))
        return fail_odd(t, row, column, err);
    if (t->table.kinds[column] == PRESTO__TEXT_INTEGER)
        return presto__text_integer(text, &value->number) ? PRESTO_OK
                                                          : fail_cell(t, row, column, "int64", err);
    return presto__text_fraction(text, &value->fraction)
               ? PRESTO_OK
               : fail_cell(t, row, column, "float32", err);
}

static presto_status set_class(taking *t, size_t row, int64_t *label_out, presto_error *err) {
    size_t column = t->label_column;
    const char *text = presto__manifest_cell(&t->table, row, column);
    presto__files_value value = {.number = 0};
    presto_error why;
    if (lacks_value(t, row, column)) {
        PRESTO_TRY(set_missing(t, row, column, &value, err));
        *label_out = value.number;
        return PRESTO_OK;
    }
    if (!t->are_texts[column] &&
        presto__text_is_number(presto__manifest_cell_kind(&t->table, row, column)))
        return fail_odd(t, row, column, err);
    size_t number = t->given.count > 0 ? presto__classes_find(&t->given, text)
                                       : presto__names_find(t->classes, t->class_count, text);
    *label_out = (int64_t)number;
    if (number != SIZE_MAX)
        return PRESTO_OK;
    (void)presto__classes_fail(&t->given, text, &why);
    return fail_manifest(t,
                         presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                     "line %" PRIu64 ": %.400s", t->table.lines[row], why.message),
                         err);
}

static presto_status set_label(taking *t, size_t row, presto_error *err) {
    presto__file *entry = &t->source->entries[t->source->base.full_count - 1];
    presto__files_value value = {.number = 0};
    presto_error why;
    if (t->label_column == SIZE_MAX)
        return PRESTO_OK;
    if (t->table.kinds[t->label_column] == PRESTO__TEXT_NAME)
        return set_class(t, row, &entry->label, err);
    PRESTO_TRY(set_number(t, row, t->label_column, &value, err));
    if (t->source->has_fractions) {
        entry->fraction = value.fraction;
        return PRESTO_OK;
    }
    entry->label = value.number;
    if (t->given.count == 0 || lacks_value(t, row, t->label_column) ||
        presto__classes_check_number(&t->given, entry->label, &why) == PRESTO_OK)
        return PRESTO_OK;
    return fail_manifest(t,
                         presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                     "line %" PRIu64 ": %.400s", t->table.lines[row], why.message),
                         err);
}

static presto_status set_values(taking *t, size_t row, presto_error *err) {
    presto__files_value *values = presto__files_last_values(t->source);
    for (size_t i = 0; i < t->column_count; i++) {
        size_t column = t->columns[i];
        if (t->table.kinds[column] != PRESTO__TEXT_NAME) {
            PRESTO_TRY(set_number(t, row, column, &values[i], err));
            continue;
        }
        const char *text = presto__manifest_cell(&t->table, row, column);
        PRESTO_TRY(presto__files_keep(t->source, presto_span_of_text(text), &values[i].text, err));
    }
    return set_label(t, row, err);
}

/* With source.missing=drop: is the row left out? */
static bool is_dropped(taking *t, size_t row) {
    size_t column = t->label_column;
    bool lacks = column != SIZE_MAX && lacks_value(t, row, column);
    for (size_t i = 0; i < t->column_count && !lacks; i++) {
        column = t->columns[i];
        lacks = lacks_value(t, row, column);
    }
    if (!lacks || strcmp(t->missing, "drop") != 0)
        return false;
    if (t->dropped++ == 0) {
        t->first_dropped = t->table.lines[row];
        t->dropped_column = column;
    }
    return true;
}

static presto_status add_file(taking *t, size_t row, const char *path, presto_error *err) {
    presto__object_info info;
    int failed;
    t->chosen++;
    if (is_dropped(t, row))
        return PRESTO_OK;
    PRESTO_TRY(presto__file_find(&t->finder, path, &info, &failed, err));
    if (failed == ENOENT || failed == ENOTDIR || failed == ENAMETOOLONG) {
        if (t->missing_files++ == 0) {
            t->first_missing = t->table.lines[row];
            t->missing_name = presto__manifest_cell(&t->table, row, t->path_column);
        }
        return PRESTO_OK;
    }
    PRESTO_TRY(
        presto__files_add(t->source, path, strlen(t->root.named), failed == 0 ? &info : NULL, err));
    return set_values(t, row, err);
}

/* ---- what is left out ---- */

/* Of a path's folder, with its slash; 0: it names none. */
static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

static int compare_folders(const char *a, const char *b) {
    size_t bytes_a = folder_bytes(a), bytes_b = folder_bytes(b);
    int order = memcmp(a, b, bytes_a < bytes_b ? bytes_a : bytes_b);
    return order != 0 ? order : (bytes_a > bytes_b) - (bytes_a < bytes_b);
}

/* The files of a folder are neighbours, which they are not in the order of whole paths: "a.npy",
 * "aa/1.npy", "b.npy". */
static int compare_paths(const void *a, const void *b) {
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    int order = compare_folders(left, right);
    return order != 0 ? order : strcmp(left, right);
}

/* The files beside those of rows. */
typedef struct beside_search {
    const taking *t;
    char *const *paths; /* of all rows, sorted */
    size_t count;
    size_t added; /* bytes before the path as rows have it: "./" */
    uint64_t found;
} beside_search;

static presto_status want_name(void *user, const char *folder, const char *name, bool *wanted_out,
                               presto_error *err) {
    const beside_search *search = user;
    const presto_option *match = presto__pipeline_source_option(search->t->pipeline, "match");
    bool matches = false;
    (void)folder, (void)err;
    for (size_t m = 0; m < match->text_count && name[0] != '.'; m++)
        matches = matches || fnmatch(match->texts[m], name, FNM_CASEFOLD) == 0;
    *wanted_out = matches;
    return PRESTO_OK;
}

static presto_status count_found(void *user, const presto__listed *found, presto_error *err) {
    beside_search *search = user;
    const char *shown = found->path + search->added;
    (void)err;
    search->found +=
        found->info != NULL && found->info->type == PRESTO__OBJECT_FILE &&
        strcmp(shown, search->t->file) != 0 &&
        bsearch(&shown, search->paths, search->count, sizeof *search->paths, compare_paths) == NULL;
    return PRESTO_OK;
}

/* Files in the folder of paths[i] that match, and stand in no row. A folder that cannot be listed has
 * none. */
static uint64_t count_without_row(const taking *t, char *const *paths, size_t count, size_t i) {
    size_t bytes = folder_bytes(paths[i]);
    beside_search search = {
        .t = t, .paths = paths, .count = count, .added = bytes == 0 ? strlen("./") : 0};
    const presto__list list = {
        .user = &search, .name = want_name, .found = count_found, .is_shallow = true};
    char *folder = bytes == 0 ? strdup("./") : strndup(paths[i], bytes);
    if (folder != NULL && presto__path_can_be_listed(folder))
        (void)presto__object_list(folder, &list, NULL);
    free(folder);
    return search.found;
}

static presto_status tell(taking *t, char **paths, presto_error *err) {
    char text[NOTE_BYTES];
    size_t rows = t->table.row_count;
    uint64_t extra = 0;
    if (t->dropped > 0) {
        snprintf(text, sizeof text,
                 "%.200s: %" PRIu64 " of %" PRIu64 " row%s left out: no value, the first in line "
                 "%" PRIu64 ", column '%.64s'",
                 t->file, t->dropped, t->chosen, presto_plural(t->chosen), t->first_dropped,
                 t->table.names[t->dropped_column]);
        PRESTO_TRY(presto__source_note(&t->source->base, text, err));
    }
    if (t->missing_files > 0) {
        snprintf(text, sizeof text,
                 "%.200s: %" PRIu64 " of %" PRIu64 " row%s left out: no such file, the first in "
                 "line %" PRIu64 ": %.150s",
                 t->file, t->missing_files, t->chosen, presto_plural(t->chosen), t->first_missing,
                 t->missing_name);
        PRESTO_TRY(presto__source_note(&t->source->base, text, err));
    }
    qsort(paths, rows, sizeof *paths, compare_paths);
    for (size_t i = 0; i < rows; i++)
        if (i == 0 || compare_folders(paths[i - 1], paths[i]) != 0)
            extra += count_without_row(t, paths, rows, i);
    if (extra == 0)
        return PRESTO_OK;
    snprintf(text, sizeof text, "%" PRIu64 " file%s beside those of %.200s left out: no row", extra,
             presto_plural(extra), t->file);
    return presto__source_note(&t->source->base, text, err);
}

/* Numbers of which few are no whole ones: are they meant to be? */
static presto_status note_fractions(const taking *t, size_t column, presto_error *err) {
    size_t whole = 0, fractions = 0, first = 0;
    char text[NOTE_BYTES];
    for (size_t row = 0; row < t->table.row_count; row++) {
        presto__text_kind kind = presto__manifest_cell_kind(&t->table, row, column);
        whole += kind == PRESTO__TEXT_INTEGER;
        if (kind == PRESTO__TEXT_FRACTION && fractions++ == 0)
            first = row;
    }
    if (t->table.kinds[column] != PRESTO__TEXT_FRACTION || fractions >= whole)
        return PRESTO_OK;
    snprintf(text, sizeof text,
             "%.200s: column '%.64s' is float32, because '%.64s' in line %" PRIu64
             " is no whole number, as %zu of %zu are",
             t->file, t->table.names[column], presto__manifest_cell(&t->table, first, column),
             t->table.lines[first], whole, whole + fractions);
    return presto__source_note(&t->source->base, text, err);
}

/* Names that differ from others in nothing but spaces. */
static presto_status note_spaces(const taking *t, presto_error *err) {
    char text[NOTE_BYTES];
    for (size_t i = 0; i < t->class_count; i++) {
        size_t bytes = strlen(t->classes[i]);
        bool is_padded = memchr(" \t", t->classes[i][0], 2) != NULL ||
                         memchr(" \t", t->classes[i][bytes - 1], 2) != NULL;
        if (!is_padded)
            continue;
        snprintf(text, sizeof text,
                 "%.200s: class '%.64s' begins or ends with a space, which is part of its name",
                 t->file, t->classes[i]);
        return presto__source_note(&t->source->base, text, err);
    }
    return PRESTO_OK;
}

/* Numbers with decimal commas would be texts, or classes. */
static presto_status check_commas(const taking *t, size_t column, presto_error *err) {
    size_t first = SIZE_MAX;
    if (t->is_json || t->table.kinds[column] != PRESTO__TEXT_NAME || t->are_texts[column])
        return PRESTO_OK;
    for (size_t row = 0; row < t->table.row_count; row++) {
        bool has_comma = has_decimal_comma(presto__manifest_cell(&t->table, row, column));
        if (!has_comma && !lacks_value(t, row, column) &&
            !presto__text_is_number(presto__manifest_cell_kind(&t->table, row, column)))
            return PRESTO_OK; /* there are other texts, too */
        if (has_comma && first == SIZE_MAX)
            first = row;
    }
    if (first == SIZE_MAX)
        return PRESTO_OK;
    return fail_comma(t, first, column, err);
}

/* Before labels are numbered. */
static presto_status check_all_commas(const taking *t, presto_error *err) {
    if (t->label_column != SIZE_MAX)
        PRESTO_TRY(check_commas(t, t->label_column, err));
    for (size_t i = 0; i < t->column_count; i++)
        PRESTO_TRY(check_commas(t, t->columns[i], err));
    return PRESTO_OK;
}

static presto_status note_kinds(const taking *t, presto_error *err) {
    PRESTO_TRY(presto__note_odd_quote(&t->source->base, t->file, t->table.odd_quote, err));
    if (t->label_column != SIZE_MAX)
        PRESTO_TRY(note_fractions(t, t->label_column, err));
    for (size_t i = 0; i < t->column_count; i++)
        PRESTO_TRY(note_fractions(t, t->columns[i], err));
    return note_spaces(t, err);
}

static presto_status fail_none(const taking *t, presto_error *err) {
    if (t->chosen > 0 && t->dropped == t->chosen)
        return fail_manifest(t,
                             presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                         "none of its %" PRIu64 " row%s has a value in each column "
                                         "that needs one, the first is line %" PRIu64
                                         ", column '%.64s'",
                                         t->chosen, presto_plural(t->chosen), t->first_dropped,
                                         t->table.names[t->dropped_column]),
                             err);
    presto_status status =
        t->chosen == 0
            ? presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                          "none of its %zu row%s is as source.where says", t->table.row_count,
                          presto_plural(t->table.row_count))
            : presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                          "of its %" PRIu64 " file%s, none is there, the first, of line %" PRIu64
                          ", is %.150s",
                          t->chosen, presto_plural(t->chosen), t->first_missing, t->missing_name);
    return fail_manifest(t, status, err);
}

/* ---- the manifest ---- */

static presto_status read_table(taking *t, presto_error *err) {
    presto_arena arena = {0};
    presto_span text = {0};
    presto__file_request request = {.path = t->file, .max_bytes = MOST_MANIFEST_BYTES};
    t->is_json = presto__ends_alike(t->file, ".jsonl") || presto__ends_alike(t->file, ".ndjson") ||
                 presto__ends_alike(t->file, ".json");
    presto__manifest_form form = t->is_json                            ? PRESTO__MANIFEST_JSONL
                                 : presto__ends_alike(t->file, ".tsv") ? PRESTO__MANIFEST_TSV
                                                                       : PRESTO__MANIFEST_CSV;
    presto_status status = presto__source_file_read(&request, &arena, &text, err);
    if (status == PRESTO_OK)
        status = presto__manifest_parse(text, form, &t->table, err);
    presto_arena_done(&arena);
    if (status >= 0 &&
        (t->table.row_count == 0 || t->table.names == NULL || t->table.kinds == NULL))
        status = presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "has no rows");
    return status < 0 ? fail_manifest(t, status, err) : PRESTO_OK;
}

static presto_status take_rows(taking *t, presto_error *err) {
    const presto_option *where = presto__pipeline_source_option(t->pipeline, "where");
    size_t rows = t->table.row_count;
    PRESTO_TRY(find_where(t, where, err));
    char **paths = calloc(rows, sizeof *paths); /* of all rows, chosen or not */
    presto_status status =
        paths == NULL ? presto_fail_memory(err, rows * sizeof *paths) : PRESTO_OK;
    for (size_t row = 0; row < rows && status == PRESTO_OK; row++) {
        status = path_of(t, row, &paths[row], err);
        if (status == PRESTO_OK && is_wanted(t, where, row))
            status = add_file(t, row, paths[row], err);
    }
    if (status == PRESTO_OK && t->source->base.full_count == 0)
        status = fail_none(t, err);
    if (status == PRESTO_OK)
        status = tell(t, paths, err);
    for (size_t i = 0; paths != NULL && i < rows; i++)
        free(paths[i]);
    free(paths);
    return status;
}

static presto_status name_given(taking *t, presto_error *err) {
    presto_source *base = &t->source->base;
    uint64_t *counts = calloc(t->given.count, sizeof *counts);
    if (counts == NULL)
        return presto_fail_memory(err, t->given.count * sizeof *counts);
    for (uint64_t i = 0; i < base->full_count; i++) {
        int64_t label = t->source->entries[i].label; /* what stands for a missing one is no class */
        if (label >= 0 && (uint64_t)label < t->given.count)
            counts[label]++;
    }
    presto_status status = presto__classes_note_empty(&t->given, counts, base, err);
    free(counts);
    return status < 0 ? status : presto__classes_name(&t->given, base, err);
}

static presto_status take(taking *t, presto_error *err) {
    const presto_option *root = presto__pipeline_source_option(t->pipeline, "root");
    PRESTO_TRY(read_table(t, err));
    PRESTO_TRY(
        presto__manifest_root_find(t->file, root->is_set ? root->text : NULL, &t->root, err));
    PRESTO_TRY(find_path(t, err));
    PRESTO_TRY(find_label(t, err));
    PRESTO_TRY(find_texts(t, err));
    PRESTO_TRY(find_columns(t, err));
    PRESTO_TRY(check_all_commas(t, err));
    PRESTO_TRY(declare_columns(t, err));
    PRESTO_TRY(number_classes(t, err));
    PRESTO_TRY(take_rows(t, err));
    PRESTO_TRY(note_kinds(t, err));
    if (t->given.count > 0)
        return name_given(t, err);
    t->source->base.label_names = t->classes;
    t->source->base.label_count = t->class_count;
    t->classes = NULL;
    return PRESTO_OK;
}

static presto_status fill(presto__files *source, const presto__files_request *request,
                          presto_error *err) {
    taking t = {.source = source,
                .pipeline = request->pipeline,
                .file = request->paths[0],
                .missing = presto__pipeline_source_option(request->pipeline, "missing")->text};
    if (request->path_count != 1)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a source of type manifest takes one manifest, not %zu",
                           request->path_count);
    presto_status status = take(&t, err);
    for (size_t i = 0; t.classes != NULL && i < t.class_count; i++)
        free(t.classes[i]);
    free(t.classes);
    free(t.columns);
    free(t.are_texts);
    free(t.where_columns);
    presto__classes_done(&t.given);
    presto__manifest_root_done(&t.root);
    presto__file_finder_done(&t.finder);
    presto__manifest_done(&t.table);
    return status;
}

static presto_status manifest_open(const presto_pipeline *pipeline, const char *const *paths,
                                   size_t path_count, presto_source **source_out,
                                   presto_error *err) {
    const presto__files_request request = {pipeline, paths, path_count};
    return presto__files_open(&request, fill, source_out, err);
}

const presto__source_kind presto__source_manifest = {.name = "manifest", .open = manifest_open};
