/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room table: texts as tables: CSV, TSV, JSON Lines, labels, transcripts. All in memory.
 * May see: base, room core. Must not know: files, samples. No lock.
 */
#ifndef PRESTO_SOURCE_TABLES_INTERNAL_H
#define PRESTO_SOURCE_TABLES_INTERNAL_H

#include <jansson.h>

#include <presto/span.h>

#include "../core/source_internal.h"

/* ---- csv.c: cells of CSV and TSV, and what their texts are ---- */

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

/** A row, as it is met. `fields` are the wanted ones, in the order wanted; `line` is 1-based. */
typedef presto_status (*presto__tsv_row_fn)(void *user, const presto_span *fields, uint64_t line,
                                            presto_error *err);

typedef struct presto__tsv {
    presto_span text;
    const char *const *wanted; /* names of columns */
    size_t wanted_count;
    presto__tsv_row_fn row;
    void *user;
} presto__tsv;

/**
 * Lines of fields between tabs, as Common Voice has them: the first line names the columns, nothing
 * is quoted.
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX with the line's number; PRESTO_ERR_MEMORY; what a row
 * returned.
 */
presto_status presto__tsv_read(const presto__tsv *tsv, presto_error *err);

/** Note that fields between tabs keep their quotes because of `line`; 0: there is no such line. */
presto_status presto__note_odd_quote(presto_source *source, const char *file, uint64_t line,
                                     presto_error *err);

/** A line of a LibriSpeech *.trans.txt: "103-1240-0002 IT WAS A DARK NIGHT". */
typedef struct presto__utterance {
    presto_span id;
    presto_span text;
    int64_t speaker, chapter; /* 103, 1240 */
    uint64_t line;            /* 1-based */
} presto__utterance;

typedef presto_status (*presto__utterance_fn)(void *user, const presto__utterance *utterance,
                                              presto_error *err);

/** Call `found` for each line. Returns: as presto__tsv_read. */
presto_status presto__utterances_read(presto_span text, presto__utterance_fn found, void *user,
                                      presto_error *err);

/** May `name` be looked up below a folder? It is relative, not empty, has no NUL, and no part of it
 * is "..". */
bool presto__name_stays_below(presto_span name);

/* ---- NaN and Infinity in JSON, as Python writes them (manifest.c) ---- */

/** *text_io, with those numbers as texts that are marked: in `copy`, which is empty. Nothing changes if
 * there are none. PRESTO_ERR_MEMORY. */
presto_status presto__json_mark_odd_numbers(presto_span *text_io, presto_buffer *copy,
                                            presto_error *err);
/** "NaN", "Infinity", "-Infinity" or a whole number, if the value is a text that is marked; else NULL. */
const char *presto__json_odd_number(const json_t *value);
/** The other way round, in JSON that was written. */
void presto__json_unmark_odd_numbers(char *text);

/* ---- manifest.c: a manifest as a table ---- */

/* A manifest as a table of texts: CSV or TSV whose first line names the columns, or JSON Lines.
 * Knows no files.
 */

typedef enum presto__manifest_form {
    PRESTO__MANIFEST_CSV,
    PRESTO__MANIFEST_TSV,
    PRESTO__MANIFEST_JSONL
} presto__manifest_form;

typedef struct presto__manifest {
    presto_arena arena;       /* holds all texts; each has a NUL behind it */
    const char **names;       /* of the columns */
    presto__text_kind *kinds; /* of each column: _INTEGER, _FRACTION or _NAME */
    size_t column_count, column_capacity;
    const char **cells; /* [row][column_capacity]: each has its kind in front of it */
    uint64_t *lines;    /* of each row, 1-based */
    size_t row_count, row_capacity;
    size_t most_cells;  /* that its text may make */
    uint64_t odd_quote; /* quotes are text because of this line; 0: no such one */
} presto__manifest;

/**
 * Parse all of `text`. A column is of numbers if at least half of its cells are, of fractions if one
 * of them is; cells without a value do not count. Whether each cell fits is its reader's concern.
 * Texts in JSON are no numbers. Of JSON Lines, the keys of all lines are the columns; a key that a
 * line lacks is as null, true and false are 1 and 0, Infinity is a fraction, and so is NaN unless
 * all other numbers of its column are whole; lists and objects stay JSON.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX with the line; PRESTO_ERR_LIMIT (over 1000 columns, cells
 *          or values of a line than the limits in docs/security.md); PRESTO_ERR_MEMORY.
 * Owner:   caller, presto__manifest_done.
 */
presto_status presto__manifest_parse(presto_span text, presto__manifest_form form,
                                     presto__manifest *manifest_out, presto_error *err);
void presto__manifest_done(presto__manifest *manifest);

static inline const char *presto__manifest_cell(const presto__manifest *manifest, size_t row,
                                                size_t column) {
    return manifest->cells[row * manifest->column_capacity + column];
}

static inline presto__text_kind presto__manifest_cell_kind(const presto__manifest *manifest,
                                                           size_t row, size_t column) {
    return (presto__text_kind)presto__manifest_cell(manifest, row, column)[-1];
}

/** Else the only one whose name is alike. SIZE_MAX: there is no such column. */
size_t presto__manifest_find(const presto__manifest *manifest, const char *name);

/** The folder that paths start from, with its slash, or "". */
typedef struct presto__manifest_root {
    char *named; /* as the user wrote it */
    char *real;  /* from the file system's root on; NULL: it is not there */
} presto__manifest_root;

/** `folder`, or that of the manifest if NULL. */
presto_status presto__manifest_root_find(const char *file, const char *folder,
                                         presto__manifest_root *root_out, presto_error *err);
void presto__manifest_root_done(presto__manifest_root *root);
/** The path of a file below the root, malloc'd; `name` is that from the root on, or from the file
 * system's. PRESTO_ERR_NOT_FOUND without a message: it leads elsewhere. */
presto_status presto__manifest_path(const presto__manifest_root *root, const char *name,
                                    char **path_out, presto_error *err);

#endif
