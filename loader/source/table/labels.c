/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label files: CSV with two columns, path and label, with or without a header line. Labels are all
 * numbers or all names: one name among numbers is probably a mistake. Names, and declared classes,
 * are numbered in bytewise order.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "../core/source_internal.h"
#include "source_tables_internal.h"

static presto_status add_row(presto__labels *labels, size_t *capacity, const presto__label_row *row,
                             presto_error *err) {
    if (labels->count == *capacity) {
        size_t more = *capacity == 0 ? 64 : *capacity * 2;
        presto__label_row *rows = realloc(labels->rows, more * sizeof *rows);
        if (rows == NULL)
            return presto_fail_memory(err, more * sizeof *rows);
        labels->rows = rows;
        *capacity = more;
    }
    labels->rows[labels->count++] = *row;
    return PRESTO_OK;
}

static presto_status read_row(presto__csv *cursor, presto__label_row *row, bool *is_last,
                              presto_error *err) {
    presto__csv_end end;
    row->line = cursor->line;
    PRESTO_TRY(presto__csv_read(cursor, &end, err));
    if (end != PRESTO__CSV_FIELD)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 ": expected path,label", row->line);
    const char *path = (const char *)cursor->field.data;
    while (strncmp(path, "./", 2) == 0)
        path += 2 + strspn(path + 2, "/");
    row->path = strdup(path);
    if (row->path == NULL)
        return presto_fail_memory(err, cursor->field.bytes);
    PRESTO_TRY(presto__csv_read(cursor, &end, err));
    if (end == PRESTO__CSV_FIELD)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 ": more than two fields", row->line);
    row->text = strdup((const char *)cursor->field.data);
    if (row->text == NULL)
        return presto_fail_memory(err, cursor->field.bytes);
    if (row->path[0] == '\0' || presto__text_kind_of(row->text) == PRESTO__TEXT_EMPTY)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "line %" PRIu64 ": empty %s",
                           row->line, row->path[0] == '\0' ? "path" : "label");
    *is_last = end == PRESTO__CSV_TEXT;
    return PRESTO_OK;
}

static void row_done(presto__label_row *row) {
    free(row->path);
    free(row->text);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

size_t presto__names_distinct(char **names, size_t count) {
    size_t kept = 0;
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && strcmp(names[kept - 1], names[i]) == 0)
            free(names[i]);
        else
            names[kept++] = names[i];
    }
    return kept;
}

size_t presto__names_find(char *const *names, size_t count, const char *name) {
    char *const *found =
        count == 0 ? NULL : bsearch(&name, names, count, sizeof *names, compare_names);
    return found == NULL ? SIZE_MAX : (size_t)(found - names);
}

static presto_status fail_number(const presto__label_row *row, const char *type,
                                 presto_error *err) {
    return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                       "line %" PRIu64 ": label '%.64s' does not fit %s", row->line, row->text,
                       type);
}

static presto_status take_integers(presto__labels *labels, presto_error *err) {
    for (size_t i = 0; i < labels->count; i++) {
        presto__label_row *row = &labels->rows[i];
        if (!presto__text_integer(row->text, &row->label))
            return fail_number(row, "int64", err);
    }
    return PRESTO_OK;
}

static presto_status take_fractions(presto__labels *labels, presto_error *err) {
    labels->are_fractions = true;
    for (size_t i = 0; i < labels->count; i++) {
        presto__label_row *row = &labels->rows[i];
        if (!presto__text_fraction(row->text, &row->fraction))
            return fail_number(row, "float32", err);
    }
    return PRESTO_OK;
}

/* Of names: what stands for a missing value is none, unless the user says that labels are classes. */
static presto_status check_names(const presto__labels *labels, presto_error *err) {
    for (size_t i = 0; i < labels->count; i++)
        if (presto__text_kind_of(labels->rows[i].text) == PRESTO__TEXT_MISSING)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %" PRIu64 ": label '%.64s' stands for a missing value; if it "
                               "is the name of a class, write 'label: csv-class:FILE'",
                               labels->rows[i].line, labels->rows[i].text);
    return PRESTO_OK;
}

static presto_status take_names(presto__labels *labels, presto_error *err) {
    labels->names = calloc(labels->count, sizeof *labels->names);
    if (labels->names == NULL)
        return presto_fail_memory(err, labels->count * sizeof *labels->names);
    for (size_t i = 0; i < labels->count; i++) {
        labels->names[i] = strdup(labels->rows[i].text);
        if (labels->names[i] == NULL)
            return presto_fail_memory(err, strlen(labels->rows[i].text) + 1);
        labels->name_count++;
    }
    labels->name_count = presto__names_distinct(labels->names, labels->name_count);
    for (size_t i = 0; i < labels->count; i++)
        labels->rows[i].label =
            (int64_t)presto__names_find(labels->names, labels->name_count, labels->rows[i].text);
    return PRESTO_OK;
}

/* Set the numbers of labels: as written, or positions among the names. */
static presto_status number_labels(presto__labels *labels, bool are_classes, presto_error *err) {
    const presto__label_row *first = &labels->rows[0];
    bool has_fractions = false;
    if (are_classes)
        return take_names(labels, err);
    for (size_t i = 0; i < labels->count; i++) {
        const presto__label_row *row = &labels->rows[i];
        presto__text_kind kind = presto__text_kind_of(row->text);
        bool is_number = presto__text_is_number(kind);
        has_fractions = has_fractions || kind == PRESTO__TEXT_FRACTION;
        if (is_number != presto__text_is_number(presto__text_kind_of(first->text)))
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %" PRIu64 ": label '%.64s' is %s, but '%.64s' in line %" PRIu64
                               " is %s; if these are names of classes, write 'label: "
                               "csv-class:FILE'",
                               row->line, row->text, is_number ? "a number" : "no number",
                               first->text, first->line, is_number ? "no number" : "a number");
    }
    if (!presto__text_is_number(presto__text_kind_of(first->text))) {
        PRESTO_TRY(check_names(labels, err));
        return take_names(labels, err);
    }
    return has_fractions ? take_fractions(labels, err) : take_integers(labels, err);
}

static int compare_rows(const void *a, const void *b) {
    const presto__label_row *left = a;
    const presto__label_row *right = b;
    return strcmp(left->path, right->path);
}

static presto_status read_rows(presto__csv *cursor, presto__labels *labels, presto_error *err) {
    size_t capacity = 0;
    bool is_last = cursor->at == cursor->end;
    bool is_first = true;
    while (!is_last && cursor->at < cursor->end) {
        presto__label_row row = {0};
        presto_status status = read_row(cursor, &row, &is_last, err);
        bool is_no_row = status == PRESTO_OK && is_first && presto__csv_is_path_name(row.path);
        is_first = false;
        if (status == PRESTO_OK && !is_no_row)
            status = add_row(labels, &capacity, &row, err);
        if (status != PRESTO_OK || is_no_row)
            row_done(&row);
        PRESTO_TRY(status);
    }
    return PRESTO_OK;
}

/* "id,breed": a first row that is no path, unlike the next one, names the columns. */
static void drop_header(presto__labels *labels) {
    if (labels->count < 2 || strpbrk(labels->rows[0].path, "./") != NULL ||
        strpbrk(labels->rows[1].path, "./") == NULL)
        return;
    row_done(&labels->rows[0]);
    labels->count--;
    memmove(labels->rows, labels->rows + 1, labels->count * sizeof *labels->rows);
}

static presto_status parse_all(presto__csv *cursor, presto__labels *labels, bool are_classes,
                               presto_error *err) {
    PRESTO_TRY(read_rows(cursor, labels, err));
    drop_header(labels);
    if (labels->count == 0)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "holds no labels");
    PRESTO_TRY(number_labels(labels, are_classes, err));
    qsort(labels->rows, labels->count, sizeof *labels->rows, compare_rows);
    for (size_t i = 1; i < labels->count; i++) {
        const presto__label_row *a = &labels->rows[i - 1];
        const presto__label_row *b = &labels->rows[i];
        if (strcmp(a->path, b->path) == 0)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %" PRIu64 ": second label for %s (first in line %" PRIu64 ")",
                               a->line > b->line ? a->line : b->line, a->path,
                               a->line > b->line ? b->line : a->line);
    }
    return PRESTO_OK;
}

presto_status presto__labels_parse(presto_span csv, const char *file, bool are_classes,
                                   presto__labels *labels_out, presto_error *err) {
    presto__labels labels = {0};
    presto__csv cursor = presto__csv_of(csv, presto__csv_separator(csv));
    presto_status status = parse_all(&cursor, &labels, are_classes, err);
    presto__csv_done(&cursor);
    if (status < 0) {
        presto__labels_done(&labels);
        presto_error_set_file(err, file);
        return status;
    }
    labels.odd_quote = cursor.odd_quote;
    *labels_out = labels;
    return PRESTO_OK;
}

void presto__labels_done(presto__labels *labels) {
    for (size_t i = 0; i < labels->count; i++)
        row_done(&labels->rows[i]);
    free(labels->rows);
    for (size_t i = 0; i < labels->name_count; i++)
        free(labels->names[i]);
    free(labels->names);
    *labels = (presto__labels){0};
}

presto__label_row *presto__labels_find(presto__labels *labels, const char *path) {
    presto__label_row key = {.path = (char *)path};
    return labels->count == 0
               ? NULL
               : bsearch(&key, labels->rows, labels->count, sizeof *labels->rows, compare_rows);
}
