/* SPDX-License-Identifier: Apache-2.0 */
/* Normal forms of Unicode, for tokenizers that ask for them. */
#ifndef PRESTO_STEPS_UNICODE_FORMS_INTERNAL_H
#define PRESTO_STEPS_UNICODE_FORMS_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

typedef enum presto__form {
    PRESTO__FORM_NFC,
    PRESTO__FORM_NFD,
    PRESTO__FORM_NFKC,
    PRESTO__FORM_NFKD
} presto__form;

typedef struct presto__point_range {
    uint32_t first, last;
} presto__point_range;

/** Characters that are newer than the normal forms of the library tokenizers, which leaves them as
 * they are; in order. */
extern const presto__point_range presto__newer_points[];
extern const size_t presto__newer_point_count;

/** Has this build the library? */
bool presto__unicode_forms_built(void);

/**
 * Append the normal form, as the library tokenizers has it (Unicode 9), of `text`, which is
 * UTF-8, to `out`. `points` is memory for the call, kept for the next one: up to 4 bytes a character of the longest run without ASCII, decomposed.
 * Returns: PRESTO_OK; PRESTO_ERR_LIMIT: hundreds of combining marks in a row; PRESTO_ERR_MEMORY;
 *          PRESTO_ERR_UNSUPPORTED: not built.
 */
presto_status presto__unicode_normalize(presto__form form, presto_span text, presto_buffer *points,
                                        presto_buffer *out, presto_error *err);

#endif
