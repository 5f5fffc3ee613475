/* SPDX-License-Identifier: Apache-2.0 */
/* --from, --feature and --index: TFRecords of other programs. */
#ifndef PRESTO_TOOLS_RECORD_OPTIONS_H
#define PRESTO_TOOLS_RECORD_OPTIONS_H

#include "cli.h"

/* Their rows in a table of options. */
#define CLI_RECORD_OPTIONS(from_id, feature_id, from_help)                                         \
    {(from_id), "from", "REPRESENTATION", (from_help)}, {                                          \
        (feature_id), "feature", "NAME",                                                           \
            "the feature of TFRecords that the steps work on, such as image/encoded [default: "    \
            "as dataset.json or the pipeline says, or the only one]"                               \
    }

/* The row of --index, whose argument goes to cli_parse_index(). */
#define CLI_INDEX_OPTION(id)                                                                       \
    {                                                                                              \
        (id), "index", "none|keep|keep:DIR",                                                       \
            "what to do with the index of TFRecords that have none, once it is known: nothing; "   \
            "keep it as FILE.index or, where that cannot be written, in ~/.cache/presto/index; "   \
            "keep it in the folder DIR. A kept index is used the next time this option is given "  \
            "[default: none]"                                                                      \
    }

/** --split without --part or the reverse, and parts that there are not, are usage errors. */
void cli_check_partition(const presto_partition *partition);

/** What --index says. *dir_out is NULL or a part of `text`. */
presto_keep_index cli_parse_index(const char *text, const char **dir_out);

#endif
