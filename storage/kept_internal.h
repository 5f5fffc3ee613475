/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has learned of a server, and keeps until it ends: a text for each of some names. */
#ifndef PRESTO_STORAGE_KEPT_INTERNAL_H
#define PRESTO_STORAGE_KEPT_INTERNAL_H

#include <stdbool.h>

/** Static, and zeroed at first: empty. It grows with the names that a process uses. */
typedef struct presto__kept {
    struct presto__kept_text *first;
} presto__kept;

/** The text that is kept for `name`: malloc'd, the caller's. NULL: there is none, or no memory. Any
 * thread, and a child of fork. */
char *presto__kept_find(const presto__kept *kept, const char *name);

/** Keep a copy of `text` for `name`. One that is kept already stays, unless it is replaced. Without
 * memory nothing is kept. Any thread, and a child of fork. */
void presto__kept_set(presto__kept *kept, const char *name, const char *text, bool replaces);

#endif
