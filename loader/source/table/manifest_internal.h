/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest as a table of texts: CSV or TSV whose first line names the columns, or JSON Lines.
 * Knows no files. */
#ifndef PRESTO_MANIFEST_INTERNAL_H
#define PRESTO_MANIFEST_INTERNAL_H

#include "csv_internal.h"

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
