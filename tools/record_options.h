/* SPDX-License-Identifier: Apache-2.0 */
/* --from and --feature: TFRecords as the source of a pipeline. */
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

/**
 * Add the argument of one of the two to the settings, as the pipeline takes it. The text that is
 * added is kept here: one of each in a program; a second one replaces the first.
 */
void cli_set_record_option(cli_settings *settings, bool is_from, const char *text);

#endif
