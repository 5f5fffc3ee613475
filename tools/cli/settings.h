/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the programs read pipelines: --set, --plugin and --allow-commands, and strategies that name a
 * pipeline. For cli.h, which includes this.
 */
#ifndef PRESTO_TOOLS_SETTINGS_H
#define PRESTO_TOOLS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <presto/pipeline.h>
#include <presto/sweep.h>

enum { CLI_MAX_SETTINGS = 64 };
/** How pipelines are read: the arguments of --set and --plugin, in their order, of --from and of
 * --feature. */
typedef struct cli_settings {
    const char *texts[CLI_MAX_SETTINGS];
    size_t count;
    const char *plugins[CLI_MAX_SETTINGS];
    size_t plugin_count;
    const char *from, *feature; /* NULL: not given */
    bool allows_code;           /* --allow-commands */
    bool is_indirect;           /* a file names the pipeline, and not the user */
} cli_settings;
/** One more argument; too many are a usage error. */
void cli_add_setting(cli_settings *settings, const char *text);
void cli_add_plugin(cli_settings *settings, const char *file);
/** The changes of a strategy file, which names the pipeline. Those given by --set come later and
 * win. */
void cli_settings_of_strategy(cli_settings *settings, const presto_strategy_file *strategy);
presto_pipeline_options cli_pipeline_options(const cli_settings *settings);
/** Unless `quiet`, a note if strategy.yaml has names of an earlier version. */
void cli_note_old_names(const presto_strategy_file *strategy, const char *file, bool quiet);

/** Say --from and --feature as changes, as strategy.yaml and the commands of a sweep have them. The
 * texts are kept here: one of each in a program. */
void cli_settings_spell_out(cli_settings *settings);
/** Load what --pipeline names; a file that cannot be read or parsed ends the program with 1. */
presto_pipeline *cli_load_pipeline(const char *name, const cli_settings *settings);

#endif
