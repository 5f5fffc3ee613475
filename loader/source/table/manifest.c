/* SPDX-License-Identifier: Apache-2.0 */
/* Reads manifests into a table. */
#include "manifest_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include <presto/numbers.h>

#include "../../../base/content_internal.h"
#include "../../../base/decimal_internal.h"
#include "../../../base/json_limit_internal.h"
#include "../../../base/stop_internal.h"

#define MOST_COLUMNS 1000
#define NUMBER_BYTES 40
/* Rows of JSON Lines may lack most columns: cells beside one for each byte of the text. */
#define MOST_SPARE_CELLS ((size_t)8 << 20)
/* Of the values of a line. */
#define MOST_LINE_WEIGHT ((size_t)1 << 20)

/* What is known of a manifest while it is read. */
typedef struct manifest_reading {
    presto__manifest table;
    bool *are_texts; /* of each column: JSON says so */
} manifest_reading;

void presto__manifest_done(presto__manifest *manifest) {
    presto_arena_done(&manifest->arena);
    free(manifest->names);
    free(manifest->kinds);
    free(manifest->cells);
    free(manifest->lines);
    *manifest = (presto__manifest){0};
}

size_t presto__manifest_find(const presto__manifest *manifest, const char *name) {
    for (size_t i = 0; i < manifest->column_count; i++)
        if (strcmp(manifest->names[i], name) == 0)
            return i;
    return SIZE_MAX;
}

static presto_status keep(presto__manifest *table, const char *text, const char **copy_out,
                          presto_error *err) {
    size_t bytes = strlen(text) + 1;
    char *copy = presto_arena_alloc(&table->arena, bytes, 1);
    if (copy == NULL)
        return presto_fail_memory(err, bytes);
    memcpy(copy, text, bytes);
    *copy_out = copy;
    return PRESTO_OK;
}

static presto_status add_column(presto__manifest *table, const char *name, presto_error *err) {
    char number[32];
    if (name[0] == '\0') { /* as that of the row numbers that pandas writes */
        snprintf(number, sizeof number, "column-%zu", table->column_count + 1);
        name = number;
    }
    if (table->column_count == MOST_COLUMNS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "line 1 names more than %d columns", MOST_COLUMNS);
    if (presto__manifest_find(table, name) != SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line 1: column %zu has the name of another one",
                           table->column_count + 1);
    const char **names = realloc(table->names, (table->column_count + 1) * sizeof *names);
    if (names == NULL)
        return presto_fail_memory(err, (table->column_count + 1) * sizeof *names);
    table->names = names;
    PRESTO_TRY(keep(table, name, &names[table->column_count], err));
    table->column_count++;
    return PRESTO_OK;
}

/* Room for one more row, whose cells are empty. */
static presto_status add_row(presto__manifest *table, uint64_t line, const char ***cells_out,
                             presto_error *err) {
    if ((table->row_count + 1) * table->column_count > table->most_cells)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "line %" PRIu64 ": more cells than a manifest of its size may have: "
                           "rows of %zu columns, limit %zu cells",
                           line, table->column_count, table->most_cells);
    if (table->row_count == table->row_capacity) {
        size_t capacity = table->row_capacity == 0 ? 64 : table->row_capacity * 2;
        const char **cells = realloc(table->cells, capacity * table->column_count * sizeof *cells);
        if (cells != NULL)
            table->cells = cells;
        uint64_t *lines = realloc(table->lines, capacity * sizeof *lines);
        if (lines != NULL)
            table->lines = lines;
        if (cells == NULL || lines == NULL)
            return presto_fail_memory(err, capacity * table->column_count * sizeof *cells);
        table->row_capacity = capacity;
    }
    table->lines[table->row_count] = line;
    *cells_out = table->cells + table->row_count * table->column_count;
    for (size_t i = 0; i < table->column_count; i++)
        (*cells_out)[i] = "";
    table->row_count++;
    return PRESTO_OK;
}

/* ---- CSV and TSV ---- */

static presto_status read_names(presto__csv *csv, presto__manifest *table, presto_error *err) {
    presto__csv_end end = PRESTO__CSV_FIELD;
    if (csv->at == csv->end)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "it is empty: its first line names the columns");
    while (end == PRESTO__CSV_FIELD) {
        PRESTO_TRY(presto__csv_read(csv, &end, err));
        PRESTO_TRY(add_column(table, (const char *)csv->field.data, err));
    }
    return PRESTO_OK;
}

static presto_status read_row(presto__csv *csv, presto__manifest *table, presto_error *err) {
    presto__csv_end end = PRESTO__CSV_FIELD;
    uint64_t line = csv->line;
    const char **cells = NULL;
    size_t count = 0;
    for (; end == PRESTO__CSV_FIELD; count++) {
        PRESTO_TRY(presto__csv_read(csv, &end, err));
        const char *text = (const char *)csv->field.data;
        if (count == 0 && end != PRESTO__CSV_FIELD && text[0] == '\0')
            return PRESTO_OK; /* an empty line */
        if (count == 0)
            PRESTO_TRY(add_row(table, line, &cells, err));
        if (count < table->column_count && cells != NULL)
            PRESTO_TRY(keep(table, text, &cells[count], err));
    }
    if (count != table->column_count)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 " has %zu field%s, line 1 has %zu", line, count,
                           presto_plural(count), table->column_count);
    return PRESTO_OK;
}

static presto_status read_csv(presto_span text, uint8_t separator, presto__manifest *table,
                              presto_error *err) {
    presto__csv csv = presto__csv_of(text, separator);
    presto_status status = read_names(&csv, table, err);
    while (status == PRESTO_OK && csv.at < csv.end) {
        status = presto__stop_check(err);
        if (status == PRESTO_OK)
            status = read_row(&csv, table, err);
    }
    presto__csv_done(&csv);
    return status;
}

/* ---- JSON Lines ---- */

/* 1.0 stays a fraction, as in a CSV. */
static void print_real(double value, char text[NUMBER_BYTES]) {
    int bytes = presto__decimal_format(text, NUMBER_BYTES, 17, value);
    if (strpbrk(text, ".e") == NULL)
        snprintf(text + bytes, NUMBER_BYTES - (size_t)bytes, ".0");
}

static presto_status take_json(manifest_reading *reading, size_t column, const json_t *value,
                               const char **cell, presto_error *err) {
    char number[NUMBER_BYTES];
    presto__manifest *table = &reading->table;
    if (json_is_null(value))
        return PRESTO_OK;
    if (json_is_string(value)) {
        reading->are_texts[column] = true;
        return keep(table, json_string_value(value), cell, err);
    }
    if (json_is_array(value) || json_is_object(value)) {
        char *text = json_dumps(value, JSON_COMPACT);
        presto_status status =
            text == NULL ? presto_fail_memory(err, 0) : keep(table, text, cell, err);
        reading->are_texts[column] = true;
        free(text);
        return status;
    }
    if (json_is_real(value))
        print_real(json_real_value(value), number);
    else
        snprintf(number, sizeof number, "%lld",
                 json_is_integer(value) ? (long long)json_integer_value(value)
                                        : (long long)json_is_true(value));
    return keep(table, number, cell, err);
}

static presto_status take_object(manifest_reading *reading, json_t *object, uint64_t line,
                                 presto_error *err) {
    presto__manifest *table = &reading->table;
    const char *name;
    const char **cells;
    json_t *value;
    if (!json_is_object(object))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 " is no JSON object: one a line is read, not a list",
                           line);
    if (table->column_count == 0) {
        json_object_foreach(object, name, value) PRESTO_TRY(add_column(table, name, err));
        reading->are_texts = calloc(table->column_count + 1, sizeof *reading->are_texts);
        if (reading->are_texts == NULL)
            return presto_fail_memory(err, table->column_count + 1);
    }
    if (table->column_count == 0)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "line %" PRIu64 " has no keys",
                           line);
    PRESTO_TRY(add_row(table, line, &cells, err));
    for (size_t i = 0; i < table->column_count; i++) {
        value = json_object_get(object, table->names[i]);
        if (value != NULL)
            PRESTO_TRY(take_json(reading, i, value, &cells[i], err));
    }
    return PRESTO_OK;
}

static presto_status read_object(manifest_reading *reading, presto_span text, uint64_t line,
                                 presto_error *err) {
    json_error_t why;
    presto_error too_much;
    if (presto__json_check(text, UINT64_MAX, MOST_LINE_WEIGHT, &too_much) < 0)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "line %" PRIu64 ": %.180s",
                           line, too_much.message);
    json_t *object = json_loadb((const char *)text.data, text.bytes, JSON_REJECT_DUPLICATES, &why);
    if (object == NULL)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 " cannot be read as JSON: %s", line, why.text);
    presto_status status = take_object(reading, object, line, err);
    json_decref(object);
    return status;
}

static presto_status read_lines(manifest_reading *reading, presto_span text, presto_error *err) {
    presto__csv all = presto__csv_of(text, ',');
    presto_status status = PRESTO_OK;
    while (status == PRESTO_OK && all.at < all.end &&
           (status = presto__stop_check(err)) == PRESTO_OK) {
        size_t left = (size_t)(all.end - all.at);
        const uint8_t *stop = memchr(all.at, '\n', left);
        presto_span line = presto_span_of(all.at, stop == NULL ? left : (size_t)(stop - all.at));
        all.at = stop == NULL ? all.end : stop + 1;
        while (line.bytes > 0 && memchr(" \t\r", line.data[line.bytes - 1], 3) != NULL)
            line.bytes--;
        if (line.bytes > 0)
            status = read_object(reading, line, all.line, err);
        all.line++;
    }
    return status;
}

/* ---- kinds ---- */

static presto_status find_kinds(manifest_reading *reading, presto_error *err) {
    presto__manifest *table = &reading->table;
    table->kinds = calloc(table->column_count + 1, sizeof *table->kinds);
    if (table->kinds == NULL)
        return presto_fail_memory(err, table->column_count * sizeof *table->kinds);
    for (size_t c = 0; c < table->column_count; c++) {
        presto__text_kind kind = PRESTO__TEXT_INTEGER;
        if (reading->are_texts != NULL && reading->are_texts[c])
            kind = PRESTO__TEXT_NAME;
        for (size_t r = 0; r < table->row_count && kind != PRESTO__TEXT_NAME; r++) {
            presto__text_kind cell = presto__text_kind_of(presto__manifest_cell(table, r, c));
            kind = cell > kind ? cell : kind;
        }
        table->kinds[c] = kind;
    }
    return PRESTO_OK;
}

presto_status presto__manifest_parse(presto_span text, presto__manifest_form form,
                                     presto__manifest *manifest_out, presto_error *err) {
    if (text.bytes >= 2 &&
        (memcmp(text.data, "\xff\xfe", 2) == 0 || memcmp(text.data, "\xfe\xff", 2) == 0))
        return presto_fail(err, PRESTO_ERR_SYNTAX, 0, "it is UTF-16: save it as UTF-8");
    const presto__content *content = presto__content_no_text(text);
    if (content != NULL && content->group != PRESTO__CONTENT_LINES)
        return presto__content_refuse(content, PRESTO__CONTENT_TABLE,
                                      "a CSV, TSV or JSON Lines file", err);
    manifest_reading reading = {.table = {.most_cells = MOST_SPARE_CELLS + text.bytes}};
    presto_status status =
        form == PRESTO__MANIFEST_JSONL
            ? read_lines(&reading, text, err)
            : read_csv(text, form == PRESTO__MANIFEST_CSV ? presto__csv_separator(text) : '\t',
                       &reading.table, err);
    if (status == PRESTO_OK)
        status = find_kinds(&reading, err);
    free(reading.are_texts);
    if (status < 0) {
        presto__manifest_done(&reading.table);
        return status;
    }
    *manifest_out = reading.table;
    return PRESTO_OK;
}
