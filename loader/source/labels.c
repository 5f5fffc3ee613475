/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label files: CSV with two columns, path and label, with or without a header line. Quoting as in
 * RFC 4180: a quoted field may hold commas, line ends and doubled quotes. Labels are all numbers or
 * all names: one name among numbers is probably a mistake. Names, and declared classes, are
 * numbered in bytewise order.
 */
#define _XOPEN_SOURCE 700 /* uselocale, strcasecmp */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "source_internal.h"

typedef struct csv_cursor {
    const uint8_t *at, *end;
    uint64_t line;
    presto_buffer field; /* the field last read, NUL-terminated */
} csv_cursor;

typedef enum csv_end { CSV_COMMA, CSV_LINE, CSV_FILE } csv_end;

static presto_status put(csv_cursor *cursor, uint8_t byte, presto_error *err) {
    return presto_buffer_append(&cursor->field, presto_span_of(&byte, 1), err);
}

static presto_status read_quoted(csv_cursor *cursor, presto_error *err) {
    uint64_t opened_at = cursor->line;
    for (cursor->at++;; cursor->at++) {
        if (cursor->at == cursor->end)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %" PRIu64 ": a quoted field does not end", opened_at);
        if (*cursor->at == '"') {
            if (cursor->at + 1 == cursor->end || cursor->at[1] != '"') {
                cursor->at++;
                return PRESTO_OK;
            }
            cursor->at++;
        }
        if (*cursor->at == '\n')
            cursor->line++;
        PRESTO_TRY(put(cursor, *cursor->at, err));
    }
}

static bool at_line_end(const csv_cursor *cursor) {
    return *cursor->at == '\n' ||
           (*cursor->at == '\r' && cursor->at + 1 < cursor->end && cursor->at[1] == '\n');
}

/* One field and what ends it. */
static presto_status read_field(csv_cursor *cursor, csv_end *end_out, presto_error *err) {
    cursor->field.bytes = 0;
    bool was_quoted = cursor->at < cursor->end && *cursor->at == '"';
    if (was_quoted)
        PRESTO_TRY(read_quoted(cursor, err));
    while (cursor->at < cursor->end && *cursor->at != ',' && !at_line_end(cursor)) {
        if (was_quoted || *cursor->at == '"')
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %" PRIu64 ": a quote must enclose the whole field",
                               cursor->line);
        PRESTO_TRY(put(cursor, *cursor->at++, err));
    }
    PRESTO_TRY(put(cursor, 0, err));
    if (strlen((const char *)cursor->field.data) + 1 != cursor->field.bytes)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 ": a field holds a NUL byte", cursor->line);
    if (cursor->at == cursor->end) {
        *end_out = CSV_FILE;
        return PRESTO_OK;
    }
    if (*cursor->at == ',') {
        cursor->at++;
        *end_out = CSV_COMMA;
        return PRESTO_OK;
    }
    cursor->at += *cursor->at == '\r' ? 2 : 1;
    cursor->line++;
    *end_out = CSV_LINE;
    return PRESTO_OK;
}

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

static presto_status read_row(csv_cursor *cursor, presto__label_row *row, bool *is_last,
                              presto_error *err) {
    csv_end end;
    row->line = cursor->line;
    PRESTO_TRY(read_field(cursor, &end, err));
    if (end != CSV_COMMA)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 ": expected path,label", row->line);
    const char *path = (const char *)cursor->field.data;
    while (strncmp(path, "./", 2) == 0)
        path += 2 + strspn(path + 2, "/");
    row->path = strdup(path);
    if (row->path == NULL)
        return presto_fail_memory(err, cursor->field.bytes);
    PRESTO_TRY(read_field(cursor, &end, err));
    if (end == CSV_COMMA)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 ": more than two fields", row->line);
    row->text = strdup((const char *)cursor->field.data);
    if (row->text == NULL)
        return presto_fail_memory(err, cursor->field.bytes);
    if (row->path[0] == '\0' || row->text[0] == '\0')
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "line %" PRIu64 ": empty %s",
                           row->line, row->path[0] == '\0' ? "path" : "label");
    *is_last = end == CSV_FILE;
    return PRESTO_OK;
}

static void row_done(presto__label_row *row) {
    free(row->path);
    free(row->text);
}

typedef enum text_kind { TEXT_NAME, TEXT_INTEGER, TEXT_FRACTION } text_kind;

/* Decimal only: "nan" and "inf" are names. */
static text_kind kind_of(const char *text) {
    const char *at = text + (text[0] == '+' || text[0] == '-');
    size_t whole = strspn(at, "0123456789");
    at += whole;
    if (*at == '\0' && whole > 0)
        return TEXT_INTEGER;
    size_t part = 0;
    if (*at == '.') {
        part = strspn(at + 1, "0123456789");
        at += 1 + part;
    }
    if (whole + part == 0)
        return TEXT_NAME;
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        size_t digits = strspn(at, "0123456789");
        if (digits == 0)
            return TEXT_NAME;
        at += digits;
    }
    return *at == '\0' ? TEXT_FRACTION : TEXT_NAME;
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
        errno = 0;
        row->label = strtoll(row->text, NULL, 10);
        if (errno != 0)
            return fail_number(row, "int64", err);
    }
    return PRESTO_OK;
}

static presto_status take_fractions(presto__labels *labels, presto_error *err) {
    labels->are_fractions = true;
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return presto_fail_memory(err, 0);
    locale_t before = uselocale(plain); /* the decimal sign is a point in any locale */
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < labels->count && status == PRESTO_OK; i++) {
        presto__label_row *row = &labels->rows[i];
        row->fraction = strtof(row->text, NULL);
        if (!isfinite(row->fraction))
            status = fail_number(row, "float32", err);
    }
    uselocale(before);
    freelocale(plain);
    return status;
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
        text_kind kind = kind_of(row->text);
        has_fractions = has_fractions || kind == TEXT_FRACTION;
        if ((kind == TEXT_NAME) != (kind_of(first->text) == TEXT_NAME))
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %" PRIu64 ": label '%.64s' is %s, but '%.64s' in line %" PRIu64
                               " is %s; if these are names of classes, write 'label: "
                               "csv-class:FILE'",
                               row->line, row->text, kind == TEXT_NAME ? "no number" : "a number",
                               first->text, first->line,
                               kind == TEXT_NAME ? "a number" : "no number");
    }
    if (kind_of(first->text) == TEXT_NAME)
        return take_names(labels, err);
    return has_fractions ? take_fractions(labels, err) : take_integers(labels, err);
}

static int compare_rows(const void *a, const void *b) {
    const presto__label_row *left = a;
    const presto__label_row *right = b;
    return strcmp(left->path, right->path);
}

/* Does the line name the columns? */
static bool is_header(const presto__label_row *row) {
    static const char *const words[] = {"path",  "file",     "filename",   "file_name",
                                        "image", "image_id", "image_path", "key"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(row->path, words[i]) == 0)
            return true;
    return false;
}

static presto_status read_rows(csv_cursor *cursor, presto__labels *labels, presto_error *err) {
    size_t capacity = 0;
    bool is_last = cursor->at == cursor->end;
    bool is_first = true;
    while (!is_last && cursor->at < cursor->end) {
        presto__label_row row = {0};
        presto_status status = read_row(cursor, &row, &is_last, err);
        bool is_no_row = status == PRESTO_OK && is_first && is_header(&row);
        is_first = false;
        if (status == PRESTO_OK && !is_no_row)
            status = add_row(labels, &capacity, &row, err);
        if (status != PRESTO_OK || is_no_row)
            row_done(&row);
        PRESTO_TRY(status);
    }
    return PRESTO_OK;
}

static presto_status parse_all(csv_cursor *cursor, presto__labels *labels, bool are_classes,
                               presto_error *err) {
    PRESTO_TRY(read_rows(cursor, labels, err));
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
    csv_cursor cursor = {.at = csv.data, .end = csv.data + csv.bytes, .line = 1};
    if (csv.bytes >= 3 && memcmp(csv.data, "\xef\xbb\xbf", 3) == 0)
        cursor.at += 3; /* byte order mark */
    presto_status status = parse_all(&cursor, &labels, are_classes, err);
    presto_buffer_done(&cursor.field);
    if (status < 0) {
        presto__labels_done(&labels);
        presto_error_set_file(err, file);
        return status;
    }
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
