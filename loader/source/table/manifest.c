/* SPDX-License-Identifier: Apache-2.0 */
/* Reads manifests into a table. */
#include "source_tables_internal.h"

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

/* A cell without a value, behind its kind. */
static const char empty_cell[] = {PRESTO__TEXT_EMPTY, '\0'};

void presto__manifest_done(presto__manifest *manifest) {
    presto_arena_done(&manifest->arena);
    free(manifest->names);
    free(manifest->kinds);
    free(manifest->cells);
    free(manifest->lines);
    *manifest = (presto__manifest){0};
}

static size_t find_exactly(const presto__manifest *manifest, const char *name) {
    for (size_t i = 0; i < manifest->column_count; i++)
        if (strcmp(manifest->names[i], name) == 0)
            return i;
    return SIZE_MAX;
}

size_t presto__manifest_find(const presto__manifest *manifest, const char *name) {
    size_t found = find_exactly(manifest, name), alike = 0;
    if (found != SIZE_MAX)
        return found;
    for (size_t i = 0; i < manifest->column_count; i++)
        if (presto__csv_names_alike(manifest->names[i], name)) {
            found = i;
            alike++;
        }
    return alike == 1 ? found : SIZE_MAX;
}

/* A copy of the text, with its kind in front. */
static presto_status keep(presto__manifest *table, const char *text, presto__text_kind kind,
                          const char **copy_out, presto_error *err) {
    size_t bytes = strlen(text) + 1;
    if (kind == PRESTO__TEXT_EMPTY && bytes == 1) {
        *copy_out = empty_cell + 1;
        return PRESTO_OK;
    }
    char *copy = presto_arena_alloc(&table->arena, bytes + 1, 1);
    if (copy == NULL)
        return presto_fail_memory(err, bytes + 1);
    copy[0] = (char)kind;
    memcpy(copy + 1, text, bytes);
    *copy_out = copy + 1;
    return PRESTO_OK;
}

static presto_status fail_cells(const presto__manifest *table, uint64_t line, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                       "line %" PRIu64 ": more cells than a manifest of its size may have: "
                       "rows of %zu columns, limit %zu cells",
                       line, table->column_count, table->most_cells);
}

/* Room for `rows` rows of `columns` columns; what is new is empty. */
static presto_status reserve_cells(presto__manifest *table, size_t rows, size_t columns,
                                   presto_error *err) {
    const char **cells = malloc(rows * columns * sizeof *cells);
    if (cells == NULL)
        return presto_fail_memory(err, rows * columns * sizeof *cells);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            cells[r * columns + c] = r < table->row_count && c < table->column_count
                                         ? presto__manifest_cell(table, r, c)
                                         : empty_cell + 1;
    free(table->cells);
    table->cells = cells;
    table->row_capacity = rows;
    table->column_capacity = columns;
    return PRESTO_OK;
}

/* Rows that are there already have no value in it. */
static presto_status add_column(presto__manifest *table, const char *name, uint64_t line,
                                presto_error *err) {
    char number[32];
    if (name[0] == '\0') { /* as that of the row numbers that pandas writes */
        snprintf(number, sizeof number, "column-%zu", table->column_count + 1);
        name = number;
    }
    if (table->column_count == MOST_COLUMNS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "line %" PRIu64 " names more than %d columns", line, MOST_COLUMNS);
    if (find_exactly(table, name) != SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 ": column %zu has the name of another one", line,
                           table->column_count + 1);
    const char **names = realloc(table->names, (table->column_count + 1) * sizeof *names);
    if (names == NULL)
        return presto_fail_memory(err, (table->column_count + 1) * sizeof *names);
    table->names = names;
    if (table->row_count * (table->column_count + 1) > table->most_cells)
        return fail_cells(table, line, err);
    if (table->row_count > 0 && table->column_count == table->column_capacity)
        PRESTO_TRY(reserve_cells(table, table->row_capacity, 2 * table->column_capacity + 4, err));
    PRESTO_TRY(keep(table, name, PRESTO__TEXT_NAME, &names[table->column_count], err));
    table->column_count++;
    return PRESTO_OK;
}

/* Room for one more row, whose cells are empty. */
static presto_status add_row(presto__manifest *table, uint64_t line, presto_error *err) {
    if ((table->row_count + 1) * table->column_count > table->most_cells)
        return fail_cells(table, line, err);
    if (table->row_count == table->row_capacity) {
        size_t capacity = table->row_capacity == 0 ? 64 : table->row_capacity * 2;
        uint64_t *lines = realloc(table->lines, capacity * sizeof *lines);
        if (lines == NULL)
            return presto_fail_memory(err, capacity * sizeof *lines);
        table->lines = lines;
        size_t columns = table->row_count == 0 ? table->column_count : table->column_capacity;
        PRESTO_TRY(reserve_cells(table, capacity, columns, err));
    }
    table->lines[table->row_count++] = line;
    return PRESTO_OK;
}

static const char **cell_at(presto__manifest *table, size_t column) {
    return &table->cells[(table->row_count - 1) * table->column_capacity + column];
}

/* ---- CSV and TSV ---- */

static presto_status read_names(presto__csv *csv, presto__manifest *table, presto_error *err) {
    presto__csv_end end = PRESTO__CSV_FIELD;
    if (csv->at == csv->end)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "it is empty: its first line names the columns");
    while (end == PRESTO__CSV_FIELD) {
        PRESTO_TRY(presto__csv_read(csv, &end, err));
        PRESTO_TRY(add_column(table, (const char *)csv->field.data, 1, err));
    }
    return PRESTO_OK;
}

static presto_status read_row(presto__csv *csv, presto__manifest *table, presto_error *err) {
    presto__csv_end end = PRESTO__CSV_FIELD;
    uint64_t line = csv->line;
    size_t count = 0;
    for (; end == PRESTO__CSV_FIELD; count++) {
        PRESTO_TRY(presto__csv_read(csv, &end, err));
        const char *text = (const char *)csv->field.data;
        if (count == 0 && end != PRESTO__CSV_FIELD && text[0] == '\0')
            return PRESTO_OK; /* an empty line */
        if (count == 0)
            PRESTO_TRY(add_row(table, line, err));
        if (count < table->column_count)
            PRESTO_TRY(keep(table, text, presto__text_kind_of(text), cell_at(table, count), err));
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
    table->odd_quote = csv.odd_quote;
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

/* JSON has no NaN and no Infinity, but Python writes them: they are read as texts that begin with
 * this character. */
#define MARK "\\u0001"
static const char *const odd_numbers[] = {"-Infinity", "Infinity", "NaN"};
#define ODD_COUNT (sizeof odd_numbers / sizeof odd_numbers[0])

static const char *odd_number_at(presto_span text, size_t at) {
    for (size_t i = 0; i < ODD_COUNT; i++) {
        size_t bytes = strlen(odd_numbers[i]);
        if (text.bytes - at >= bytes && memcmp(text.data + at, odd_numbers[i], bytes) == 0)
            return odd_numbers[i];
    }
    return NULL;
}

presto_status presto__json_mark_odd_numbers(presto_span *text_io, presto_buffer *copy,
                                            presto_error *err) {
    presto_span text = *text_io;
    bool is_quoted = false, is_found = false;
    size_t from = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        uint8_t c = text.data[i];
        if (c == '"')
            is_quoted = !is_quoted;
        else if (is_quoted && c == '\\')
            i++;
        if (is_quoted || (c != 'N' && c != 'I' && c != '-'))
            continue;
        const char *odd = odd_number_at(text, i);
        if (odd == NULL)
            continue;
        PRESTO_TRY(presto_buffer_append(copy, presto_span_of(text.data + from, i - from), err));
        PRESTO_TRY(presto_buffer_append(copy, presto_span_of_text("\"" MARK), err));
        PRESTO_TRY(presto_buffer_append(copy, presto_span_of_text(odd), err));
        PRESTO_TRY(presto_buffer_append(copy, presto_span_of_text("\""), err));
        from = i + strlen(odd);
        i = from - 1;
        is_found = true;
    }
    if (!is_found)
        return PRESTO_OK;
    PRESTO_TRY(
        presto_buffer_append(copy, presto_span_of(text.data + from, text.bytes - from), err));
    *text_io = presto_buffer_span(copy);
    return PRESTO_OK;
}

/* The bytes of a marked number, which may be a whole number, too; 0: it is none. */
static size_t marked_bytes(presto_span text, size_t at) {
    const char *odd = odd_number_at(text, at);
    if (odd != NULL)
        return strlen(odd);
    size_t end = at + (at < text.bytes && text.data[at] == '-'), digits = 0;
    for (; end < text.bytes && text.data[end] >= '0' && text.data[end] <= '9'; end++)
        digits++;
    return digits > 0 ? end - at : 0;
}

const char *presto__json_odd_number(const json_t *value) {
    const char *text = json_string_value(value);
    if (text == NULL || text[0] != '\1')
        return NULL;
    presto_span all = presto_span_of_text(text);
    size_t bytes = marked_bytes(all, 1);
    return bytes > 0 && 1 + bytes == all.bytes ? text + 1 : NULL;
}

void presto__json_unmark_odd_numbers(char *text) {
    static const char marked[] = "\"" MARK;
    const char *end = text + strlen(text);
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        size_t bytes = 0;
        if (strncmp(at, marked, sizeof marked - 1) == 0)
            bytes = marked_bytes(presto_span_of(at, (size_t)(end - at)), sizeof marked - 1);
        if (bytes == 0 || at[sizeof marked - 1 + bytes] != '"') {
            *to++ = *at++;
            continue;
        }
        memmove(to, at + sizeof marked - 1, bytes);
        to += bytes;
        at += sizeof marked - 1 + bytes + 1;
    }
    *to = '\0';
}

/* A text in JSON is no number, whatever it holds. */
static presto__text_kind kind_of_string(const char *text) {
    presto__text_kind kind = presto__text_kind_of(text);
    return presto__text_is_missing(kind) ? kind : PRESTO__TEXT_NAME;
}

static presto_status take_json(presto__manifest *table, size_t column, const json_t *value,
                               presto_error *err) {
    char number[NUMBER_BYTES];
    const char **cell = cell_at(table, column);
    if (json_is_null(value))
        return PRESTO_OK;
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        if (text[0] != '\1')
            return keep(table, text, kind_of_string(text), cell, err);
        return keep(table, text + 1,
                    strcmp(text + 1, "NaN") == 0 ? PRESTO__TEXT_NAN : PRESTO__TEXT_FRACTION, cell,
                    err);
    }
    if (json_is_array(value) || json_is_object(value)) {
        char *text = json_dumps(value, JSON_COMPACT);
        if (text == NULL)
            return presto_fail_memory(err, 0);
        presto__json_unmark_odd_numbers(text);
        presto_status status = keep(table, text, PRESTO__TEXT_NAME, cell, err);
        free(text);
        return status;
    }
    if (json_is_real(value)) {
        print_real(json_real_value(value), number);
        return keep(table, number, PRESTO__TEXT_FRACTION, cell, err);
    }
    snprintf(number, sizeof number, "%lld",
             json_is_integer(value) ? (long long)json_integer_value(value)
                                    : (long long)json_is_true(value));
    return keep(table, number, PRESTO__TEXT_INTEGER, cell, err);
}

static presto_status take_object(presto__manifest *table, json_t *object, uint64_t line,
                                 presto_error *err) {
    const char *name;
    json_t *value;
    size_t place = 0; /* keys mostly come in the order of the columns */
    if (!json_is_object(object))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 " is no JSON object: one a line is read, not a list",
                           line);
    if (json_object_size(object) == 0 && table->column_count == 0)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "line %" PRIu64 " has no keys",
                           line);
    if (table->column_count > 0)
        PRESTO_TRY(add_row(table, line, err));
    bool is_first = table->column_count == 0;
    if (is_first) {
        json_object_foreach(object, name, value) PRESTO_TRY(add_column(table, name, line, err));
        PRESTO_TRY(add_row(table, line, err));
    }
    json_object_foreach(object, name, value) {
        if (place >= table->column_count || strcmp(table->names[place], name) != 0)
            place = find_exactly(table, name);
        if (place == SIZE_MAX) {
            place = table->column_count;
            PRESTO_TRY(add_column(table, name, line, err));
        }
        PRESTO_TRY(take_json(table, place++, value, err));
    }
    return PRESTO_OK;
}

static presto_status read_object(presto__manifest *table, presto_span text, uint64_t line,
                                 presto_buffer *marked, presto_error *err) {
    json_error_t why;
    presto_error too_much;
    marked->bytes = 0;
    PRESTO_TRY(presto__json_mark_odd_numbers(&text, marked, err));
    if (presto__json_check(text, UINT64_MAX, MOST_LINE_WEIGHT, &too_much) < 0)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "line %" PRIu64 ": %.180s",
                           line, too_much.message);
    json_t *object = json_loadb((const char *)text.data, text.bytes, JSON_REJECT_DUPLICATES, &why);
    if (object == NULL)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 " cannot be read as JSON: %s", line, why.text);
    presto_status status = take_object(table, object, line, err);
    json_decref(object);
    return status;
}

static presto_status read_lines(presto__manifest *table, presto_span text, presto_error *err) {
    presto__csv all = presto__csv_of(text, ',');
    presto_buffer marked = {0};
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
            status = read_object(table, line, all.line, &marked, err);
        all.line++;
    }
    presto_buffer_done(&marked);
    return status;
}

/* ---- kinds ---- */

static presto_status find_kinds(presto__manifest *table, presto_error *err) {
    table->kinds = calloc(table->column_count + 1, sizeof *table->kinds);
    if (table->kinds == NULL)
        return presto_fail_memory(err, table->column_count * sizeof *table->kinds);
    for (size_t c = 0; c < table->column_count; c++) {
        size_t counts[PRESTO__TEXT_NAN + 1] = {0};
        for (size_t r = 0; r < table->row_count; r++)
            counts[presto__manifest_cell_kind(table, r, c)]++;
        size_t whole = counts[PRESTO__TEXT_INTEGER];
        size_t numbers = whole + counts[PRESTO__TEXT_FRACTION] + counts[PRESTO__TEXT_NAN];
        table->kinds[c] = numbers == 0 || numbers < counts[PRESTO__TEXT_NAME] ? PRESTO__TEXT_NAME
                          : counts[PRESTO__TEXT_FRACTION] > 0 || whole == 0 ? PRESTO__TEXT_FRACTION
                                                                            : PRESTO__TEXT_INTEGER;
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
    presto__manifest table = {.most_cells = MOST_SPARE_CELLS + text.bytes};
    presto_status status =
        form == PRESTO__MANIFEST_JSONL
            ? read_lines(&table, text, err)
            : read_csv(text, form == PRESTO__MANIFEST_CSV ? presto__csv_separator(text) : '\t',
                       &table, err);
    if (status == PRESTO_OK)
        status = find_kinds(&table, err);
    if (status < 0) {
        presto__manifest_done(&table);
        return status;
    }
    *manifest_out = table;
    return PRESTO_OK;
}
