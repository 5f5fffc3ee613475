/* SPDX-License-Identifier: Apache-2.0 */
/* presto-inspect info: what is in TFRecord files, for people and as JSON. */
#ifndef PRESTO_TOOLS_INSPECT_INFO_H
#define PRESTO_TOOLS_INSPECT_INFO_H

#include <stdbool.h>
#include <stddef.h>

typedef struct info_options {
    bool json;
    size_t sample_records; /* 0: the library's default */
} info_options;

/** Look at all paths together and print on stdout. Returns the exit code. */
int inspect_info(const char *const *paths, size_t path_count, const info_options *options);

#endif
