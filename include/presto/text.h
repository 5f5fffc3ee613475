/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts from outside (names of files, features and labels, messages that quote them): shown to
 * people so that they cannot steer a terminal or look like a line of their own, and kept in UTF-8
 * formats such as JSON without loss. A name may be any bytes.
 */
#ifndef PRESTO_TEXT_H
#define PRESTO_TEXT_H

#include <presto/span.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of the UTF-8 character at the start of `text`; 0: there is none, or it is empty. */
PRESTO_API size_t presto_utf8_bytes(presto_span text);

/** What presto_text_next gives at most, with its NUL. */
#define PRESTO_SHOWN_BYTES 8

/**
 * Take one character off the front of *rest (not empty) and say how to show it: printable UTF-8 as
 * it stands; control characters, signs that change the direction of writing and line separators as
 * \n, \x1b or \u202e; a byte that is no UTF-8 as \xff. A backslash stands for itself, so that
 * showing what is shown already changes nothing.
 * Returns: the bytes in shown_out, which ends with a NUL.
 */
PRESTO_API size_t presto_text_next(presto_span *rest, char shown_out[PRESTO_SHOWN_BYTES]);

/** All of `text` as presto_text_next shows it, cut between characters to fit; always ends. */
PRESTO_API void presto_text_show(presto_span text, char *shown_out, size_t room);

/**
 * `text` as UTF-8 without NUL, from which presto_text_decode gets the same bytes: what is UTF-8
 * stands as it is; other bytes and NUL become \xNN; a backslash before what would read as such
 * (xNN, two lower-case hex digits) becomes \x5c. On the heap; NULL if memory ran out.
 */
PRESTO_API char *presto_text_encode(presto_span text);

/**
 * The word of `words` (NULL-terminated) that is probably meant by `word`, or NULL if none is
 * similar. Upper and lower case are alike. For messages.
 */
PRESTO_API const char *presto_text_nearest(const char *word, const char *const *words);

/** Undo presto_text_encode in place. Returns the bytes; a NUL follows them. */
PRESTO_API size_t presto_text_decode(char *text);

#ifdef __cplusplus
}
#endif

#endif
