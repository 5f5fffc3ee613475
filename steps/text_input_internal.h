/* SPDX-License-Identifier: Apache-2.0 */
/* What steps that take text have in common: the option for bytes that are none, and the check. */
#ifndef PRESTO_STEPS_TEXT_INPUT_INTERNAL_H
#define PRESTO_STEPS_TEXT_INPUT_INTERNAL_H

#include "steps_internal.h"

/** Of the option `content`. */
enum { PRESTO__INPUT_TEXT = 0, PRESTO__INPUT_ANY = 1 };
extern const char *const presto__input_contents[];

#define PRESTO__INPUT_HELP                                                                         \
    "text refuses samples whose bytes are another format (JPEG, gzip, Parquet, JSON Lines, ...) "  \
    "or no "                                                                                       \
    "text; any takes all bytes as they are"

/** What a step takes. */
typedef struct presto__input_rules {
    const char *step;        /* its name, for the message */
    const char *needed;      /* "text" */
    bool refuses_json;       /* a JSON object, too */
    bool has_known_encoding; /* so that control characters are no sign */
} presto__input_rules;

/** PRESTO_OK: it may be text. PRESTO_ERR_CORRUPT: what it is instead, and what to do. */
presto_status presto__input_check(presto_span bytes, const presto__input_rules *rules,
                                  presto_error *err);

/**
 * UTF-16 behind a byte order mark as UTF-8, in `buffer`, without the mark; other bytes as they are.
 * A surrogate without its other half becomes U+FFFD. PRESTO_ERR_MEMORY.
 */
presto_status presto__input_utf8(presto_span bytes, presto_buffer *buffer, presto_span *text_out,
                                 presto_error *err);

#endif
