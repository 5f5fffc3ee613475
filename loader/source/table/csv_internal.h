/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of values that are separated by commas, semicolons, tabs or bars, in memory. */
#ifndef PRESTO_CSV_INTERNAL_H
#define PRESTO_CSV_INTERNAL_H

#include <presto/span.h>

/** What ends a field. */
typedef enum presto__csv_end {
    PRESTO__CSV_FIELD, /* another one follows in the line */
    PRESTO__CSV_LINE,
    PRESTO__CSV_TEXT /* the end of the text */
} presto__csv_end;

/** A place in the text. Free with presto__csv_done. */
typedef struct presto__csv {
    const uint8_t *at, *end;
    uint64_t line; /* 1-based */
    uint8_t separator;
    bool has_quotes; /* as in RFC 4180 */
    uint64_t
        odd_quote;     /* fields between tabs have no quotes because of this line; 0: no such one */
    bool skips_spaces; /* behind separators */
    presto_buffer field; /* the field last read, NUL-terminated */
} presto__csv;

/**
 * From the start of `text`, behind its byte order mark. As Python's csv.Sniffer finds it, spaces
 * behind separators are skipped if one stands behind each of the first line. Fields between tabs
 * that begin with a quote are quoted, as pandas has it, if all such fields end with one, or if the
 * first of all begins with one; else quotes are text.
 */
presto__csv presto__csv_of(presto_span text, uint8_t separator);
void presto__csv_done(presto__csv *csv);
/** The separator of a CSV file, by its first line: a semicolon, a tab or a bar if there are more of
 * them than commas. */
uint8_t presto__csv_separator(presto_span text);

/**
 * Read one field into csv->field.
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX with the line (quotes that do not fit, a NUL byte);
 *          PRESTO_ERR_MEMORY.
 */
presto_status presto__csv_read(presto__csv *csv, presto__csv_end *end_out, presto_error *err);

/** Is it what the column of paths is usually called? Upper and lower case are the same, and spaces
 * around it do not count. */
bool presto__csv_is_path_name(const char *name);

/** Are names of columns alike: the same but for case, and spaces around them? */
bool presto__csv_names_alike(const char *a, const char *b);

/** What a text is as a number, decimal only; spaces around it do not count. */
typedef enum presto__text_kind {
    PRESTO__TEXT_INTEGER,
    PRESTO__TEXT_FRACTION, /* also "inf" */
    PRESTO__TEXT_NAME,
    PRESTO__TEXT_MISSING, /* a word for a missing value: "NA", "nan", "null" and alike */
    PRESTO__TEXT_EMPTY,   /* nothing */
    PRESTO__TEXT_NAN      /* a number that is none, as JSON of Python may hold it; no text is */
} presto__text_kind;

presto__text_kind presto__text_kind_of(const char *text);

static inline bool presto__text_is_number(presto__text_kind kind) {
    return kind == PRESTO__TEXT_INTEGER || kind == PRESTO__TEXT_FRACTION;
}
static inline bool presto__text_is_missing(presto__text_kind kind) {
    return kind == PRESTO__TEXT_MISSING || kind == PRESTO__TEXT_EMPTY;
}

/** The number of a text that is an integer; false if it does not fit. */
bool presto__text_integer(const char *text, int64_t *number_out);
/** The number of a text that is an integer or a fraction; false if it does not fit. */
bool presto__text_fraction(const char *text, float *number_out);

#endif
