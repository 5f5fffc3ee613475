/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of values that are separated by commas, semicolons or tabs, in memory. */
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
    uint64_t line;       /* 1-based */
    uint8_t separator;   /* with a tab fields are not quoted, else as in RFC 4180 */
    presto_buffer field; /* the field last read, NUL-terminated */
} presto__csv;

/** From the start of `text`, behind its byte order mark. */
presto__csv presto__csv_of(presto_span text, uint8_t separator);
void presto__csv_done(presto__csv *csv);
/** The separator of a CSV file, by its first line: a semicolon or a tab if there are more of them
 * than commas. */
uint8_t presto__csv_separator(presto_span text);

/**
 * Read one field into csv->field.
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX with the line (quotes that do not fit, a NUL byte);
 *          PRESTO_ERR_MEMORY.
 */
presto_status presto__csv_read(presto__csv *csv, presto__csv_end *end_out, presto_error *err);

/** Is it what the column of paths is usually called? Upper and lower case are the same. */
bool presto__csv_is_path_name(const char *name);

/** What a text is as a number. Decimal only: "nan" and "inf" are names. */
typedef enum presto__text_kind {
    PRESTO__TEXT_INTEGER,
    PRESTO__TEXT_FRACTION,
    PRESTO__TEXT_NAME
} presto__text_kind;

presto__text_kind presto__text_kind_of(const char *text);

/** The number of a text that is an integer; false if it does not fit. */
bool presto__text_integer(const char *text, int64_t *number_out);
/** The number of a text that is an integer or a fraction; false if it does not fit. */
bool presto__text_fraction(const char *text, float *number_out);

#endif
