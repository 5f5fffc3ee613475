/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of presto-write share: its options. presto_write.c sets and runs them. */
#ifndef PRESTO_TOOLS_WRITE_H
#define PRESTO_TOOLS_WRITE_H

#include <presto/convert.h>
#include <presto/sweep.h>

#include "../cli/cli.h"
#include "../cli/error_report.h"

typedef struct write_job {
    presto_convert_options convert;
    const char *pipeline_name, *output, *strategy_file, *error_file;
    const char *default_codec;
    error_report errors;
    json_t *notes; /* of the source, for --json */
    presto_strategy_file strategy;
    cli_settings settings;
    bool quiet, json, explain, tensorflow_readable;
    bool joins; /* instead of writing: the parts that stand in `output` become a dataset */
    bool has_threads, has_shards, has_seed;
} write_job;

/** Join the parts in w->output. Returns the exit code. */
int write_join(write_job *w);

/** Print what would run. Returns the exit code. */
int write_explain(const write_job *w, const presto_pipeline *pipeline, const char *const *paths,
                  size_t path_count);

/** A presto_note_fn; `user` is a write_job. */
void write_note(void *user, const char *note);

#endif
