/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room table: texts as tables: CSV, TSV, JSON Lines, labels, transcripts. All in memory.
 * May see: base, room core. Must not know: files, samples. No lock.
 */
#ifndef PRESTO_SOURCE_TABLES_INTERNAL_H
#define PRESTO_SOURCE_TABLES_INTERNAL_H

#include "../core/source_internal.h"

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

#endif
