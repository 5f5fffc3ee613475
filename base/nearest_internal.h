/* SPDX-License-Identifier: Apache-2.0 */
/* The word that was probably meant, for messages. */
#ifndef PRESTO_BASE_NEAREST_INTERNAL_H
#define PRESTO_BASE_NEAREST_INTERNAL_H

/**
 * The word of `words` (NULL-terminated) that is probably meant by `word`, or NULL if none is
 * similar.
 */
const char *presto__nearest(const char *word, const char *const *words);

#endif
