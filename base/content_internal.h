/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file is, told by its content. The only place that knows signatures of formats: whoever gets
 * bytes of another kind than it reads asks here for their name.
 * No state, no lock, no allocation.
 */
#ifndef PRESTO_BASE_CONTENT_INTERNAL_H
#define PRESTO_BASE_CONTENT_INTERNAL_H

#include <presto/span.h>

/** What a format is for. */
typedef enum presto__content_group {
    PRESTO__CONTENT_TEXT,   /* text without markup, of any language */
    PRESTO__CONTENT_MARKUP, /* HTML, XML: text, too */
    PRESTO__CONTENT_LINES,  /* JSON Lines: text, too, but of many samples */
    PRESTO__CONTENT_TABLE,  /* CSV: text, too */
    PRESTO__CONTENT_JSON,   /* one JSON text */
    PRESTO__CONTENT_IMAGE,  /* from here on, no text that anyone would read */
    PRESTO__CONTENT_SOUND,
    PRESTO__CONTENT_VIDEO,
    PRESTO__CONTENT_DOCUMENT,   /* PDF, Office */
    PRESTO__CONTENT_COLUMNS,    /* Parquet, Arrow, SQLite */
    PRESTO__CONTENT_ARRAYS,     /* npy, HDF5, safetensors */
    PRESTO__CONTENT_ARCHIVE,    /* files in a file */
    PRESTO__CONTENT_COMPRESSED, /* one file, compressed */
    PRESTO__CONTENT_POINTER,    /* stands for a file that is elsewhere */
    PRESTO__CONTENT_OTHER
} presto__content_group;

/** A format. All strings are static. */
typedef struct presto__content {
    const char *name;  /* "wav" */
    const char *shown; /* "a WAV file" */
    presto__content_group group;
    const char *advice; /* how to get at what it holds; NULL: nothing but what its group tells */
    bool is_sure;       /* its first bytes are proof enough */
} presto__content;

/**
 * The format by its first bytes: 1 KiB tells most, more tells a few better. NULL: unknown, which may
 * be text in an encoding that has no sign of its own. A format whose signature is of letters counts
 * only if there are bytes that no text has.
 */
const presto__content *presto__content_of(presto_span bytes);

/** What no text of any encoding is: a format that is no text, or bytes full of control characters.
 * NULL: it may be text. Looks at no more than the first 4 KiB, but for the end of a line. */
const presto__content *presto__content_no_text(presto_span bytes);

/**
 * PRESTO_ERR_CORRUPT "a GIF file, but NEEDED is needed: what to do". `needed`, such as "a JPEG or
 * PNG", is of the group `wanted`.
 */
presto_status presto__content_refuse(const presto__content *content, presto__content_group wanted,
                                     const char *needed, presto_error *err);

#endif
