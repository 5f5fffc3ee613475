/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings of encoding.spec.whatwg.org by their labels, and the one that a page declares. */
#ifndef PRESTO_STEPS_ENCODINGS_INTERNAL_H
#define PRESTO_STEPS_ENCODINGS_INTERNAL_H

#include <presto/span.h>

typedef enum presto__encoding_kind {
    PRESTO__ENCODING_UTF8,
    PRESTO__ENCODING_UTF16,
    PRESTO__ENCODING_TABLE,       /* of one byte */
    PRESTO__ENCODING_CONVERTED,   /* of several bytes: by iconv */
    PRESTO__ENCODING_REPLACEMENT, /* that browsers refuse to decode: a page is one U+FFFD */
    PRESTO__ENCODING_USER_DEFINED /* bytes from 0x80 on are U+F780 and so on */
} presto__encoding_kind;

typedef struct presto__page_encoding {
    const char *name; /* as the standard has it, in lower case */
    presto__encoding_kind kind;
    const char *iconv;     /* of those that iconv converts */
    const uint16_t *table; /* the characters of bytes from 0x80 on; 0: there is none */
} presto__page_encoding;

typedef struct presto__encoding_label {
    const char *label;
    const presto__page_encoding *encoding;
} presto__encoding_label;

/** Sorted by label. */
extern const presto__page_encoding presto__encodings[];
extern const presto__encoding_label presto__encoding_labels[];
extern const size_t presto__encoding_label_count;

/** "Get an encoding": of any case, with white space around it. NULL: no such label. */
const presto__page_encoding *presto__encoding_find(presto_span label);

/** What a page declares. */
typedef struct presto__declared {
    const presto__page_encoding *encoding; /* NULL: nothing that is known */
    presto_span unknown;                   /* the first label that is not; borrowed from the page */
} presto__declared;

/**
 * "Prescan a byte stream to determine its encoding" of the HTML standard: <meta> of the first 1024
 * bytes, then <?xml. Behind them, where a browser finds <meta> when it parses the page, it is looked
 * for within 64 KiB, outside of scripts and the like.
 */
presto__declared presto__encoding_declared(presto_span page);

#endif
