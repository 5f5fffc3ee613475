/* SPDX-License-Identifier: Apache-2.0 */
/* Options that programs share and that say which records are read: --index, --split. */
#include "record_options.h"

#include <stdio.h>
#include <string.h>

presto_keep_index cli_parse_index(const char *text, const char **dir_out) {
    static const char apart[] = "keep:";
    *dir_out = NULL;
    if (strcmp(text, "none") == 0)
        return PRESTO_KEEP_NO_INDEX;
    if (strcmp(text, "keep") == 0)
        return PRESTO_KEEP_INDEX_BESIDE;
    if (strncmp(text, apart, sizeof apart - 1) != 0 || text[sizeof apart - 1] == '\0')
        cli_usage("--index: '%s' is not one of none, keep, keep:DIR", text);
    *dir_out = text + sizeof apart - 1;
    return PRESTO_KEEP_INDEX_APART;
}

void cli_check_partition(const presto_partition *partition) {
    presto_error err;
    if (partition->ratio != NULL && partition->part == NULL)
        cli_usage("--split %s: which part? Say --part train, --part eval, or its number",
                  partition->ratio);
    if (partition->ratio == NULL && (partition->part != NULL || partition->seed != 0))
        cli_usage("--part and --split-seed need --split, such as --split 90/10");
    if (presto_partition_check(partition, &err) < 0)
        cli_usage("--%s", err.message);
}
