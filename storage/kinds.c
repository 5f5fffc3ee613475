/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kinds of storage. */
#include "kinds_internal.h"

#include <stddef.h>

/* The last one takes what the others leave. */
static const presto__storage_kind *const kinds[] = {&presto__storage_http,  &presto__storage_s3,
                                                    &presto__storage_gs,    &presto__storage_hf,
                                                    &presto__storage_given, &presto__storage_file};

const presto__storage_kind *presto__storage_kind_of(const char *path) {
    size_t i = 0;
    while (i + 1 < sizeof kinds / sizeof kinds[0] && !kinds[i]->owns(path))
        i++;
    return kinds[i];
}
