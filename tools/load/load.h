/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of presto-load share: its options. load_options.c sets the given ones,
 * load_strategy.c then sets the others; presto_load.c and load_explain.c read them.
 */
#ifndef PRESTO_TOOLS_LOAD_H
#define PRESTO_TOOLS_LOAD_H

#include <jansson.h>

#include <presto/mix.h>
#include <presto/out.h>
#include <presto/stream.h>
#include <presto/sweep.h>

#include "../cli/cli.h"
#include "../cli/error_report.h"
#include "feature_options.h"

typedef struct load {
    presto_mix_input mix[PRESTO_MIX_MOST_INPUTS];
    char *mix_paths[PRESTO_MIX_MOST_INPUTS];
    size_t mix_count; /* 0: the operands are the input */
    presto_mix_epoch mix_epoch;
    bool has_mix_epoch;
    presto_stream_options input; /* points to those below */
    presto_pipeline_options reading;
    presto_pipeline *pipeline; /* as `reading` says, once it was needed; NULL: none is named */
    presto_loader_options loader;
    const presto_out_format *format;
    presto_ring_options ring; /* path: of the command line */
    feature_options features;
    const char *stats_file;
    const char *state_file;
    double state_interval_s;
    const char *strategy_file;
    const char *error_file;
    char *cache_dir; /* NULL: no cache on disk */
    error_report errors;
    json_t *warnings; /* texts, as --stats lists them */
    presto_strategy_file strategy;
    uint64_t started_ns;
    cli_settings settings;
    bool quiet, json, explain;
    bool has_threads, has_batch, has_seed, has_rank, has_world, has_skip, has_ring,
        has_state_interval;
} load;

/**
 * Set `l`, which is zeroed, from the command line. A usage error ends the program. The operands
 * start at argv[optind].
 */
void load_parse(load *l, int argc, char **argv);

/** --format: a presto_out_format *, and presto_ring_options beside it. */
cli_read load_read_format;
/** What --help says of options that go with some formats only; lists come from the table. */
cli_tell load_tell_format, load_tell_features, load_tell_pad, load_tell_raw_records;
/** The names of formats, for shells that complete --format. */
cli_word_at load_format_at;
/** Refuse options that do not go with the format: a usage error ends the program. */
void load_check_format(const load *l);

/** Set the options that were not given from --strategy, if there is one. */
presto_status load_apply_strategy(load *l, presto_error *err);

/** Set the defaults of the remaining options. */
void load_settle_defaults(load *l);

/**
 * A strategy belongs to one way to store one pipeline's samples: a dataset of another one is a
 * usage error. For files of other programs nothing is known, so nothing is checked.
 */
void load_check_strategy(const load *l, const presto_stream *stream);

/** Print what would run. Returns the exit code. */
int load_explain(const load *l, const presto_stream *stream);

#endif
