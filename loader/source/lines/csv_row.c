/* SPDX-License-Identifier: Apache-2.0 */
/* A row of a CSV as features, as Python's csv module reads it (dialect excel, not strict). */
#include "source_lines_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include <presto/numbers.h>
#include <presto/text.h>

#define LIST_BYTES 300

/* A field as it stands in the row. */
typedef struct csv_cell {
    size_t at, bytes; /* with its quotes */
    bool is_plain;    /* no quote is to be taken away */
} csv_cell;

/* The field from `at` on; *next_out: behind its separator; SIZE_MAX: it is the last one. */
static csv_cell read_cell(presto_span row, uint8_t separator, size_t at, size_t *next_out) {
    csv_cell found = {.at = at, .is_plain = at == row.bytes || row.data[at] != '"'};
    size_t end = at;
    if (!found.is_plain) {
        for (end++; end < row.bytes; end++) {
            if (row.data[end] != '"')
                continue;
            if (end + 1 == row.bytes || row.data[end + 1] != '"')
                break;
            end++;
        }
        end += end < row.bytes;
    }
    const uint8_t *stop =
        end < row.bytes ? memchr(row.data + end, separator, row.bytes - end) : NULL;
    end = stop == NULL ? row.bytes : (size_t)(stop - row.data);
    found.bytes = end - at;
    *next_out = stop == NULL ? SIZE_MAX : end + 1;
    return found;
}

/* Without its quotes, in `to`, which has room for the cell. Returns the bytes. */
static size_t unquote(const uint8_t *from, size_t bytes, uint8_t *to) {
    size_t used = 0, i = 1;
    for (; i < bytes; i++) {
        if (from[i] == '"') {
            if (i + 1 == bytes || from[i + 1] != '"')
                break;
            i++;
        }
        to[used++] = from[i];
    }
    /* What stands behind the closing quote belongs to the field. */
    if (i + 1 < bytes) {
        memcpy(to + used, from + i + 1, bytes - i - 1);
        used += bytes - i - 1;
    }
    return used;
}

static presto_status text_of(presto_span row, const csv_cell *cell, presto_arena *arena,
                             presto_span *text_out, presto_error *err) {
    *text_out = presto_span_of(row.data + cell->at, cell->bytes);
    if (cell->is_plain)
        return PRESTO_OK;
    uint8_t *copy = presto_arena_alloc(arena, cell->bytes, 1);
    if (copy == NULL)
        return presto_fail_memory(err, cell->bytes);
    *text_out = presto_span_of(copy, unquote(text_out->data, cell->bytes, copy));
    return PRESTO_OK;
}

/* ---- rows ---- */

static presto_status take_cell(const presto__row *row, size_t i, const csv_cell *cell,
                               presto_arena *arena, presto_feature *feature_out,
                               presto_error *err) {
    presto_span text;
    PRESTO_TRY(text_of(row->bytes, cell, arena, &text, err));
    presto_status status = presto__check_utf8(text, err);
    if (status == PRESTO_OK)
        status = presto__field_of_text(&(presto__field_text){row->fields, i, text}, arena,
                                       feature_out, err);
    if (status < 0 && err != NULL)
        err->offset =
            cell->at + (err->offset == PRESTO_NO_OFFSET || !cell->is_plain ? 0 : err->offset);
    feature_out->name = presto_span_of_text(row->fields->items[i].feature);
    return status;
}

presto_status presto__csv_row(const presto__row *row, presto_arena *arena,
                              presto_feature *features_out, size_t *count_out, presto_error *err) {
    size_t at = 0, column = 0, count = 0;
    for (; at != SIZE_MAX; column++) {
        csv_cell cell = read_cell(row->bytes, row->separator, at, &at);
        for (size_t i = 0; i < row->fields->count; i++)
            if (row->columns[i] == column && row->selected[i]) {
                PRESTO_TRY(take_cell(row, i, &cell, arena, &features_out[count], err));
                count++;
            }
    }
    if (column != row->column_count)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the row has %zu field%s, not %zu as there are columns", column,
                           presto_plural(column), row->column_count);
    *count_out = count;
    return PRESTO_OK;
}

/* ---- columns ---- */

/* Columns by their names, in the order of the file. */
typedef struct column_search {
    const presto__lines_source *source;
    size_t *columns;
    size_t count;
    char list[LIST_BYTES];
    size_t used;
} column_search;

static presto_status take_name(column_search *search, presto_span name, presto_error *err) {
    char shown[64];
    for (size_t i = 0; i < search->source->fields.count; i++) {
        const char *wanted = search->source->fields.items[i].name;
        if (!presto_span_is(name, wanted))
            continue;
        if (search->columns[i] != SIZE_MAX)
            return presto_fail(err, PRESTO_ERR_CORRUPT, 0,
                               "line 1: columns %zu and %zu are both called '%.64s'",
                               search->columns[i] + 1, search->count + 1, wanted);
        search->columns[i] = search->count;
    }
    presto_text_show(presto_span_of(name.data, name.bytes < 30 ? name.bytes : 30), shown,
                     sizeof shown);
    if (search->used < sizeof search->list)
        search->used +=
            (size_t)snprintf(search->list + search->used, sizeof search->list - search->used,
                             "%s%s", search->count == 0 ? "" : ", ", shown);
    search->count++;
    return PRESTO_OK;
}

static presto_status take_names(column_search *search, presto_span header, uint8_t separator,
                                presto_error *err) {
    presto_arena arena = {0};
    presto_status status = PRESTO_OK;
    for (size_t at = 0; at != SIZE_MAX && status == PRESTO_OK;) {
        presto_span name;
        csv_cell cell = read_cell(header, separator, at, &at);
        status = text_of(header, &cell, &arena, &name, err);
        if (status == PRESTO_OK)
            status = take_name(search, name, err);
    }
    presto_arena_done(&arena);
    return status;
}

presto_status presto__csv_columns(const presto__lines_source *source, presto_span header,
                                  size_t *columns, size_t *count_out, presto_error *err) {
    column_search search = {.source = source, .columns = columns};
    for (size_t i = 0; i < source->fields.count; i++)
        columns[i] = SIZE_MAX;
    if (!source->has_names)
        PRESTO_TRY(take_names(&search, header, source->rules.separator, err));
    for (size_t i = 0; source->has_names && i < source->name_count; i++)
        PRESTO_TRY(take_name(&search, presto_span_of_text(source->names[i]), err));
    for (size_t i = 0; i < source->fields.count; i++)
        if (columns[i] == SIZE_MAX)
            return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                               "has no column '%.64s', which the source names (there is: %s)",
                               source->fields.items[i].name, search.list);
    *count_out = search.count;
    return PRESTO_OK;
}
