/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CSV as in RFC 4180, also with semicolons: a quoted field may hold separators, line ends and
 * doubled quotes. And texts as numbers.
 */
#define _XOPEN_SOURCE 700 /* strcasecmp */
#include "csv_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "../../../base/decimal_internal.h"

presto__csv presto__csv_of(presto_span text, uint8_t separator) {
    presto__csv csv = {.at = text.data, .end = text.data, .line = 1, .separator = separator};
    if (text.bytes > 0)
        csv.end += text.bytes;
    if (text.bytes >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        csv.at += 3; /* byte order mark */
    return csv;
}

uint8_t presto__csv_separator(presto_span text) {
    size_t commas = 0, semicolons = 0, tabs = 0;
    bool is_quoted = false;
    for (size_t i = 0; i < text.bytes && (is_quoted || text.data[i] != '\n'); i++) {
        is_quoted = is_quoted != (text.data[i] == '"');
        commas += !is_quoted && text.data[i] == ',';
        semicolons += !is_quoted && text.data[i] == ';';
        tabs += !is_quoted && text.data[i] == '\t';
    }
    if (commas >= semicolons && commas >= tabs)
        return ',';
    return semicolons >= tabs ? ';' : '\t';
}

void presto__csv_done(presto__csv *csv) {
    presto_buffer_done(&csv->field);
}

static presto_status put(presto__csv *csv, uint8_t byte, presto_error *err) {
    return presto_buffer_append(&csv->field, presto_span_of(&byte, 1), err);
}

static presto_status read_quoted(presto__csv *csv, presto_error *err) {
    uint64_t opened_at = csv->line;
    for (csv->at++;; csv->at++) {
        if (csv->at == csv->end)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %" PRIu64 ": a quoted field does not end", opened_at);
        if (*csv->at == '"') {
            if (csv->at + 1 == csv->end || csv->at[1] != '"') {
                csv->at++;
                return PRESTO_OK;
            }
            csv->at++;
        }
        if (*csv->at == '\n')
            csv->line++;
        PRESTO_TRY(put(csv, *csv->at, err));
    }
}

static bool at_line_end(const presto__csv *csv) {
    return *csv->at == '\n' || (*csv->at == '\r' && csv->at + 1 < csv->end && csv->at[1] == '\n');
}

presto_status presto__csv_read(presto__csv *csv, presto__csv_end *end_out, presto_error *err) {
    csv->field.bytes = 0;
    bool has_quotes = csv->separator != '\t';
    bool was_quoted = has_quotes && csv->at < csv->end && *csv->at == '"';
    if (was_quoted)
        PRESTO_TRY(read_quoted(csv, err));
    while (csv->at < csv->end && *csv->at != csv->separator && !at_line_end(csv)) {
        if (was_quoted || (has_quotes && *csv->at == '"'))
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %" PRIu64 ": a quote must enclose the whole field", csv->line);
        PRESTO_TRY(put(csv, *csv->at++, err));
    }
    PRESTO_TRY(put(csv, 0, err));
    if (strlen((const char *)csv->field.data) + 1 != csv->field.bytes)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %" PRIu64 ": a field holds a NUL byte", csv->line);
    if (csv->at == csv->end) {
        *end_out = PRESTO__CSV_TEXT;
        return PRESTO_OK;
    }
    if (*csv->at == csv->separator) {
        csv->at++;
        *end_out = PRESTO__CSV_FIELD;
        return PRESTO_OK;
    }
    csv->at += *csv->at == '\r' ? 2 : 1;
    csv->line++;
    *end_out = PRESTO__CSV_LINE;
    return PRESTO_OK;
}

bool presto__csv_is_path_name(const char *name) {
    static const char *const words[] = {"path",     "file",      "filename",   "file_name",
                                        "image",    "image_id",  "image_path", "key",
                                        "filepath", "file_path", "audio_path", "audio_filepath"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(name, words[i]) == 0)
            return true;
    return false;
}

/* ---- numbers ---- */

presto__text_kind presto__text_kind_of(const char *text) {
    const char *at = text + (text[0] == '+' || text[0] == '-');
    size_t whole = strspn(at, "0123456789");
    at += whole;
    if (*at == '\0' && whole > 0)
        return PRESTO__TEXT_INTEGER;
    size_t part = 0;
    if (*at == '.') {
        part = strspn(at + 1, "0123456789");
        at += 1 + part;
    }
    if (whole + part == 0)
        return PRESTO__TEXT_NAME;
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        size_t digits = strspn(at, "0123456789");
        if (digits == 0)
            return PRESTO__TEXT_NAME;
        at += digits;
    }
    return *at == '\0' ? PRESTO__TEXT_FRACTION : PRESTO__TEXT_NAME;
}

bool presto__text_integer(const char *text, int64_t *number_out) {
    errno = 0;
    *number_out = strtoll(text, NULL, 10);
    return errno == 0;
}

bool presto__text_fraction(const char *text, float *number_out) {
    *number_out = presto__decimal_parse_float(text);
    return isfinite(*number_out);
}
