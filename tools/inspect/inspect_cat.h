/* SPDX-License-Identifier: Apache-2.0 */
/* presto-inspect cat: records as they are, or as JSON lines. */
#ifndef PRESTO_TOOLS_INSPECT_CAT_H
#define PRESTO_TOOLS_INSPECT_CAT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cat_options {
    bool json;
    bool full;       /* JSON: all numbers, and bytes as base64 */
    uint64_t record; /* UINT64_MAX: all */
    uint64_t limit;  /* UINT64_MAX: all */
} cat_options;

/** Print the records of `path` (a file or a dataset's folder) on stdout. Returns the exit code. */
int inspect_cat(const char *path, const cat_options *options);

#endif
