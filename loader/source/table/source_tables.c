/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of Common Voice and LibriSpeech, line by line. Knows no files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../base/content_internal.h"
#include "source_tables_internal.h"

#define NOTE_BYTES 400

presto_status presto__note_odd_quote(presto_source *source, const char *file, uint64_t line,
                                     presto_error *err) {
    char text[NOTE_BYTES];
    if (line == 0)
        return PRESTO_OK;
    snprintf(text, sizeof text,
             "%.200s: quotes are kept as text, because in line %" PRIu64
             " a field begins with one and does not end with one",
             file, line);
    return presto__source_note(source, text, err);
}

typedef struct lines {
    const uint8_t *at, *end;
    uint64_t number; /* of the line last taken */
} lines;

static lines lines_of(presto_span text) {
    lines all = {.at = text.data, .end = text.data};
    if (text.bytes > 0)
        all.end += text.bytes;
    if (text.bytes >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        all.at += 3; /* byte order mark */
    return all;
}

/* The next line without its end; false after the last one. */
static bool next_line(lines *all, presto_span *line_out) {
    if (all->at == all->end)
        return false;
    const uint8_t *from = all->at;
    size_t left = (size_t)(all->end - from);
    const uint8_t *stop = memchr(from, '\n', left);
    size_t bytes = stop == NULL ? left : (size_t)(stop - from);
    all->at = stop == NULL ? all->end : stop + 1;
    all->number++;
    if (bytes > 0 && from[bytes - 1] == '\r')
        bytes--;
    *line_out = presto_span_of(from, bytes);
    return true;
}

static presto_status check_line(const lines *all, presto_span line, presto_error *err) {
    if (line.bytes > 0 && memchr(line.data, 0, line.bytes) != NULL)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 " holds a NUL byte", all->number);
    return PRESTO_OK;
}

bool presto__name_stays_below(presto_span name) {
    if (name.bytes == 0 || name.data[0] == '/' || memchr(name.data, 0, name.bytes) != NULL)
        return false;
    for (size_t at = 0; at <= name.bytes;) {
        const uint8_t *slash =
            at == name.bytes ? NULL : memchr(name.data + at, '/', name.bytes - at);
        size_t end = slash == NULL ? name.bytes : (size_t)(slash - name.data);
        if (end - at == 2 && memcmp(name.data + at, "..", 2) == 0)
            return false;
        at = end + 1;
    }
    return true;
}

/* ---- tab-separated values ---- */

/* The next field of a line; false behind the last. */
static bool next_field(presto_span *rest, bool *is_done, presto_span *field_out) {
    if (*is_done)
        return false;
    const uint8_t *tab = rest->bytes == 0 ? NULL : memchr(rest->data, '\t', rest->bytes);
    size_t bytes = tab == NULL ? rest->bytes : (size_t)(tab - rest->data);
    *field_out = presto_span_of(rest->data, bytes);
    *is_done = tab == NULL;
    if (tab != NULL)
        *rest = presto_span_of(tab + 1, rest->bytes - bytes - 1);
    return true;
}

/* places[i]: which field is the wanted column i. */
static presto_status read_header(const presto__tsv *tsv, presto_span line, size_t *places,
                                 size_t *columns_out, presto_error *err) {
    presto_span field;
    bool is_done = false;
    size_t count = 0;
    for (size_t i = 0; i < tsv->wanted_count; i++)
        places[i] = SIZE_MAX;
    for (; next_field(&line, &is_done, &field); count++)
        for (size_t i = 0; i < tsv->wanted_count; i++)
            if (places[i] == SIZE_MAX &&
                presto_span_equal(field, presto_span_of_text(tsv->wanted[i])))
                places[i] = count;
    for (size_t i = 0; i < tsv->wanted_count; i++)
        if (places[i] == SIZE_MAX)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line 1 names no column '%.100s'", tsv->wanted[i]);
    *columns_out = count;
    return PRESTO_OK;
}

/* What a file's lines are read with. */
typedef struct tsv_reading {
    lines all;
    size_t *places;
    presto_span *fields; /* of a row: the wanted ones */
    size_t columns;
} tsv_reading;

static presto_status read_row(const presto__tsv *tsv, tsv_reading *reading, presto_span line,
                              presto_error *err) {
    presto_span field;
    bool is_done = false;
    size_t count = 0;
    for (; next_field(&line, &is_done, &field); count++)
        for (size_t i = 0; i < tsv->wanted_count; i++)
            if (reading->places[i] == count)
                reading->fields[i] = field;
    if (count != reading->columns)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 " has %zu field%s, line 1 has %zu", reading->all.number,
                           count, presto_plural(count), reading->columns);
    return tsv->row(tsv->user, reading->fields, reading->all.number, err);
}

static presto_status read_rows(const presto__tsv *tsv, tsv_reading *reading, presto_error *err) {
    presto_span line;
    if (!next_line(&reading->all, &line))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "is empty");
    PRESTO_TRY(check_line(&reading->all, line, err));
    PRESTO_TRY(read_header(tsv, line, reading->places, &reading->columns, err));
    while (next_line(&reading->all, &line)) {
        PRESTO_TRY(check_line(&reading->all, line, err));
        PRESTO_TRY(read_row(tsv, reading, line, err));
    }
    return PRESTO_OK;
}

presto_status presto__tsv_read(const presto__tsv *tsv, presto_error *err) {
    const presto__content *content = presto__content_no_text(tsv->text);
    if (content != NULL)
        return presto__content_refuse(content, PRESTO__CONTENT_TABLE, "a TSV file", err);
    tsv_reading reading = {.all = lines_of(tsv->text)};
    reading.places = calloc(tsv->wanted_count, sizeof *reading.places);
    reading.fields = calloc(tsv->wanted_count, sizeof *reading.fields);
    presto_status status = reading.places == NULL || reading.fields == NULL
                               ? presto_fail_memory(err, tsv->wanted_count * sizeof(presto_span))
                               : read_rows(tsv, &reading, err);
    free(reading.places);
    free(reading.fields);
    return status;
}

/* ---- utterances ---- */

/* The number before the next '-' of an id. */
static bool take_number(presto_span *rest, int64_t *number_out) {
    int64_t number = 0;
    size_t i = 0;
    for (; i < rest->bytes && rest->data[i] >= '0' && rest->data[i] <= '9'; i++) {
        if (i == 18)
            return false; /* 18 digits always fit */
        number = number * 10 + (rest->data[i] - '0');
    }
    if (i == 0 || i == rest->bytes || rest->data[i] != '-')
        return false;
    *rest = presto_span_of(rest->data + i + 1, rest->bytes - i - 1);
    *number_out = number;
    return true;
}

static bool is_plain(presto_span text) {
    for (size_t i = 0; i < text.bytes; i++) {
        uint8_t c = text.data[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            c != '-' && c != '_')
            return false;
    }
    return text.bytes > 0;
}

static presto_status parse_utterance(const lines *all, presto_span line,
                                     presto__utterance *utterance_out, presto_error *err) {
    const uint8_t *space = line.bytes == 0 ? NULL : memchr(line.data, ' ', line.bytes);
    size_t id_bytes = space == NULL ? line.bytes : (size_t)(space - line.data);
    size_t text_at = space == NULL ? line.bytes : id_bytes + 1;
    presto__utterance utterance = {.id = presto_span_of(line.data, id_bytes),
                                   .text =
                                       presto_span_of(line.data + text_at, line.bytes - text_at),
                                   .line = all->number};
    presto_span rest = utterance.id;
    if (!take_number(&rest, &utterance.speaker) || !take_number(&rest, &utterance.chapter) ||
        !is_plain(rest))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 " must start with SPEAKER-CHAPTER-NUMBER, starts with "
                           "\"%.*s\"",
                           all->number, (int)(id_bytes < 40 ? id_bytes : 40),
                           (const char *)line.data);
    *utterance_out = utterance;
    return PRESTO_OK;
}

presto_status presto__utterances_read(presto_span text, presto__utterance_fn found, void *user,
                                      presto_error *err) {
    lines all = lines_of(text);
    presto_span line;
    while (next_line(&all, &line)) {
        presto__utterance utterance;
        if (line.bytes == 0)
            continue;
        PRESTO_TRY(check_line(&all, line, err));
        PRESTO_TRY(parse_utterance(&all, line, &utterance, err));
        PRESTO_TRY(found(user, &utterance, err));
    }
    return PRESTO_OK;
}
