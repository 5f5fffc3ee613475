/* SPDX-License-Identifier: Apache-2.0 */
/* Part of room source's header: label files. */
#ifndef PRESTO_SOURCE_LABELS_INTERNAL_H
#define PRESTO_SOURCE_LABELS_INTERNAL_H

#include <stdbool.h>

#include <presto/source.h>

typedef struct presto__label_row {
    char *path;     /* without "./" */
    char *text;     /* the label as written */
    int64_t label;  /* its number */
    float fraction; /* or this, if are_fractions */
    uint64_t line;  /* 1-based, where the row starts */
    bool used;
} presto__label_row;

/** The rows of a label file, sorted by path, and the names if the labels are not numbers. */
typedef struct presto__labels {
    presto__label_row *rows;
    size_t count;
    char **names; /* sorted; NULL if the labels are numbers */
    size_t name_count;
    bool are_fractions; /* numbers, not all of them whole */
} presto__labels;

/** are_classes: number the texts, whatever they are. */
presto_status presto__labels_parse(presto_span csv, const char *file, bool are_classes,
                                   presto__labels *labels_out, presto_error *err);
void presto__labels_done(presto__labels *labels);
presto__label_row *presto__labels_find(presto__labels *labels, const char *path);

#endif
