/* SPDX-License-Identifier: Apache-2.0 */
/* What kinds of storage say of a place (presto_place_facts). For this room alone. */
#ifndef PRESTO_PLACE_INTERNAL_H
#define PRESTO_PLACE_INTERNAL_H

#include <presto/storage.h>

/** A secret, or the name of a key, so that who knows it knows it again: "AKIA...MPLE". */
void presto__place_mask(const char *secret, char out[PRESTO_PLACE_NAME_BYTES]);
/** A text, cut to fit. */
void presto__place_text(const char *text, char *out, size_t room);

#endif
