/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PRESTO_TOOLS_INSPECT_RECODE_H
#define PRESTO_TOOLS_INSPECT_RECODE_H

#include <presto/convert.h>

typedef struct recode_options {
    presto_convert_options convert; /* codec NULL: as the input */
    bool quiet, json;
} recode_options;

/** Store the records of `paths` again in the folder `output`. Returns the exit code. */
int inspect_recode(recode_options *options, const char *output, const char *const *paths,
                   size_t path_count);

#endif
