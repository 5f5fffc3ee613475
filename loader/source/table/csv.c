/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CSV as in RFC 4180, also with other separators: a quoted field may hold separators, line ends and
 * doubled quotes. And texts as numbers.
 */
#define _XOPEN_SOURCE 700 /* strcasecmp */
#include "source_tables_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "../../../base/decimal_internal.h"

/* Does a space follow each separator of the first line? */
static bool has_spaces(const presto__csv *csv) {
    bool is_quoted = false, is_found = false;
    for (const uint8_t *at = csv->at; at < csv->end; at++) {
        is_quoted = is_quoted != (*at == '"');
        if (!is_quoted && (*at == '\n' || *at == '\r'))
            break;
        if (is_quoted || *at != csv->separator)
            continue;
        if (at + 1 == csv->end || at[1] != ' ')
            return false;
        is_found = true;
    }
    return is_found;
}

/* The line of the first field that begins with a quote, but does not end with one; 0: none does.
 * Programs that never quote write such files. */
static uint64_t find_odd_quote(const presto__csv *csv) {
    uint64_t line = csv->line;
    bool is_start = true;
    for (const uint8_t *at = csv->at; at < csv->end; at++) {
        if (!is_start || *at != '"') {
            is_start = *at == csv->separator || *at == '\n' || *at == '\r';
            line += *at == '\n';
            continue;
        }
        uint64_t opened_at = line;
        for (at++; at < csv->end && (*at != '"' || (at + 1 < csv->end && at[1] == '"')); at++) {
            line += *at == '\n';
            at += *at == '"';
        }
        if (at == csv->end ||
            (at + 1 < csv->end && at[1] != csv->separator && at[1] != '\n' && at[1] != '\r'))
            return opened_at;
        is_start = false;
    }
    return 0;
}

presto__csv presto__csv_of(presto_span text, uint8_t separator) {
    presto__csv csv = {.at = text.data, .end = text.data, .line = 1, .separator = separator};
    if (text.bytes > 0)
        csv.end += text.bytes;
    if (text.bytes >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        csv.at += 3; /* byte order mark */
    csv.has_quotes = separator != '\t' || (csv.at < csv.end && *csv.at == '"');
    if (!csv.has_quotes) {
        csv.odd_quote = find_odd_quote(&csv);
        csv.has_quotes = csv.odd_quote == 0;
    }
    csv.skips_spaces = separator != '\t' && has_spaces(&csv);
    return csv;
}

uint8_t presto__csv_separator(presto_span text) {
    static const uint8_t separators[] = {',', ';', '\t', '|'};
    size_t counts[sizeof separators] = {0}, most = 0;
    bool is_quoted = false;
    for (size_t i = 0;
         i < text.bytes && (is_quoted || (text.data[i] != '\n' && text.data[i] != '\r')); i++) {
        is_quoted = is_quoted != (text.data[i] == '"');
        for (size_t k = 0; k < sizeof separators && !is_quoted; k++)
            counts[k] += text.data[i] == separators[k];
    }
    for (size_t k = 1; k < sizeof separators; k++)
        if (counts[k] > counts[most])
            most = k;
    return separators[most];
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

/* Any of "\n", "\r\n" and "\r" ends a line. */
static bool at_line_end(const presto__csv *csv) {
    return *csv->at == '\n' || *csv->at == '\r';
}

presto_status presto__csv_read(presto__csv *csv, presto__csv_end *end_out, presto_error *err) {
    csv->field.bytes = 0;
    while (csv->skips_spaces && csv->at < csv->end && *csv->at == ' ')
        csv->at++;
    bool was_quoted = csv->has_quotes && csv->at < csv->end && *csv->at == '"';
    if (was_quoted)
        PRESTO_TRY(read_quoted(csv, err));
    while (csv->at < csv->end && *csv->at != csv->separator && !at_line_end(csv)) {
        if (was_quoted || (csv->has_quotes && *csv->at == '"' && csv->separator != '\t'))
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
    csv->at += *csv->at == '\r' && csv->at + 1 < csv->end && csv->at[1] == '\n' ? 2 : 1;
    csv->line++;
    *end_out = PRESTO__CSV_LINE;
    return PRESTO_OK;
}

/* ---- names of columns ---- */

static const char *skip_blanks(const char *text) {
    return text + strspn(text, " \t");
}

bool presto__csv_names_alike(const char *a, const char *b) {
    a = skip_blanks(a);
    b = skip_blanks(b);
    size_t bytes_a = strlen(a), bytes_b = strlen(b);
    while (bytes_a > 0 && memchr(" \t", a[bytes_a - 1], 2) != NULL)
        bytes_a--;
    while (bytes_b > 0 && memchr(" \t", b[bytes_b - 1], 2) != NULL)
        bytes_b--;
    return bytes_a == bytes_b && strncasecmp(a, b, bytes_a) == 0;
}

bool presto__csv_is_path_name(const char *name) {
    static const char *const words[] = {"path",     "file",      "filename",   "file_name",
                                        "image",    "image_id",  "image_path", "key",
                                        "filepath", "file_path", "audio_path", "audio_filepath"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (presto__csv_names_alike(name, words[i]))
            return true;
    return false;
}

/* ---- numbers ---- */

/* Those that pandas takes for a missing value. */
static bool is_missing(const char *text) {
    static const char *const words[] = {
        "NA",   "N/A",  "n/a",  "<NA>", "#NA",  "#N/A",   "#N/A N/A", "NaN",     "nan",
        "-NaN", "-nan", "null", "NULL", "None", "1.#IND", "-1.#IND",  "1.#QNAN", "-1.#QNAN"};
    const char *from = skip_blanks(text);
    size_t bytes = strlen(from);
    while (bytes > 0 && memchr(" \t", from[bytes - 1], 2) != NULL)
        bytes--;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == bytes && memcmp(from, words[i], bytes) == 0)
            return true;
    return false;
}

static bool is_infinite(const char *text) {
    const char *at = skip_blanks(text);
    at += *at == '+' || *at == '-';
    return presto__csv_names_alike(at, "inf") || presto__csv_names_alike(at, "infinity");
}

static presto__text_kind kind_of_word(const char *text) {
    return *skip_blanks(text) == '\0' ? PRESTO__TEXT_EMPTY
           : is_infinite(text)        ? PRESTO__TEXT_FRACTION
           : is_missing(text)         ? PRESTO__TEXT_MISSING
                                      : PRESTO__TEXT_NAME;
}

presto__text_kind presto__text_kind_of(const char *text) {
    const char *at = skip_blanks(text);
    at += at[0] == '+' || at[0] == '-';
    size_t whole = strspn(at, "0123456789"), part = 0;
    at += whole;
    if (*skip_blanks(at) == '\0' && whole > 0)
        return PRESTO__TEXT_INTEGER;
    if (*at == '.') {
        part = strspn(at + 1, "0123456789");
        at += 1 + part;
    }
    if (whole + part == 0)
        return kind_of_word(text);
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        size_t digits = strspn(at, "0123456789");
        if (digits == 0)
            return kind_of_word(text);
        at += digits;
    }
    return *skip_blanks(at) == '\0' ? PRESTO__TEXT_FRACTION : kind_of_word(text);
}

bool presto__text_integer(const char *text, int64_t *number_out) {
    errno = 0;
    *number_out = strtoll(text, NULL, 10);
    return errno == 0;
}

bool presto__text_fraction(const char *text, float *number_out) {
    const char *at = skip_blanks(text);
    if (is_infinite(at)) {
        *number_out = *at == '-' ? -INFINITY : INFINITY;
        return true;
    }
    *number_out = presto__decimal_parse_float(at);
    return isfinite(*number_out);
}
