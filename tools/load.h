/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of presto-load share: its options as given. load_options.c fills them in, then
 * load_strategy.c what was not given; presto_load.c and load_explain.c read them.
 */
#ifndef PRESTO_TOOLS_LOAD_H
#define PRESTO_TOOLS_LOAD_H

#include <presto/stream.h>
#include <presto/sweep.h>

#include "cli.h"
#include "error_report.h"
#include "feature_options.h"
#include "sink.h"

typedef struct load {
    presto_stream_options input; /* points to `reading` and `loader` */
    presto_pipeline_options reading;
    presto_loader_options loader;
    sink_format format;
    feature_options features;
    const char *stats_file;
    const char *state_file;
    double state_interval_s; /* negative: not given */
    const char *strategy_file;
    const char *error_file;
    char *cache_dir; /* NULL: no cache on disk */
    error_report errors;
    presto_strategy_file strategy;
    cli_settings settings;
    bool quiet, json, explain, raw_records;
    bool has_threads, has_batch, has_seed, has_rank, has_world, has_skip;
} load;

/** Names of sink_format, in its order; ends with NULL. */
extern const char *const load_format_names[];

/**
 * Fill `l`, all zero before, from the command line; a usage error ends the program. The operands
 * are those from argv[optind] on.
 */
void load_parse(load *l, int argc, char **argv);

/** If there is --strategy, let it say what no option said. */
presto_status load_apply_strategy(load *l, presto_error *err);

/** Settle what neither an option nor a strategy said. */
void load_settle_defaults(load *l);

/**
 * A strategy is of one way to store one pipeline's samples: a dataset of another one is a usage
 * error. Of files of others nothing is known.
 */
void load_check_strategy(const load *l, const presto_stream *stream);

/** Print what would run. Returns the exit code. */
int load_explain(const load *l, const presto_stream *stream);

#endif
