/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PRESTO_STORAGE_TEXTS_INTERNAL_H
#define PRESTO_STORAGE_TEXTS_INTERNAL_H

#include <stddef.h>

/** The texts, which end with NULL, one behind the other: malloc'd, and no copy of a part is left
 * elsewhere, for secrets. NULL: no memory. */
char *presto__texts_join(const char *const *texts);

/** The same of what is listed. */
#define PRESTO__JOINED(...) presto__texts_join((const char *const[]){__VA_ARGS__, NULL})

#endif
