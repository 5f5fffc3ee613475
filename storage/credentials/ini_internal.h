/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that AWS's tools share, ~/.aws/config and ~/.aws/credentials: INI as Python's
 * RawConfigParser reads it, which AWS's tools stand on. Of the room credentials alone.
 */
#ifndef PRESTO_CREDENTIALS_INI_INTERNAL_H
#define PRESTO_CREDENTIALS_INI_INTERNAL_H

#include <presto/span.h>

/** Where a value stands. */
typedef struct presto__ini_place {
    const char *kind;  /* of the section: "profile" in [profile NAME]; NULL: [NAME] */
    const char *name;  /* of the section, without quotes */
    const char *key;   /* in any case */
    const char *inner; /* of a line that is indented below an empty value of `key`; NULL: none */
} presto__ini_place;

/**
 * The value that stands at `place`; if there are several, the last one. *has_section_out: there is
 * such a section, maybe without the key. Lines that are no "key = value" are passed over.
 */
bool presto__ini_find(presto_span text, const presto__ini_place *place, presto_span *value_out,
                      bool *has_section_out);

#endif
