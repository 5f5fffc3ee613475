/* SPDX-License-Identifier: Apache-2.0 */
/* presto-inspect clean: what runs that died have left. */
#ifndef PRESTO_TOOLS_INSPECT_CLEAN_H
#define PRESTO_TOOLS_INSPECT_CLEAN_H

#include <stdbool.h>

typedef struct clean_options {
    bool removes, json, quiet;
    double older_than_s; /* 0: the library's */
} clean_options;

/** Find what is left in the folder or below it, print it on stdout, and remove it if that is asked
 * for. Returns the exit code. */
int inspect_clean(const char *path, const clean_options *options);

#endif
