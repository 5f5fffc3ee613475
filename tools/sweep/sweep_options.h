/* SPDX-License-Identifier: Apache-2.0 */
/* The options of presto-sweep, and those of them by which it chooses. */
#ifndef PRESTO_TOOLS_SWEEP_OPTIONS_H
#define PRESTO_TOOLS_SWEEP_OPTIONS_H

#include <presto/sweep.h>

#include "../cli/cli.h"

enum {
    OPT_SPLITS = CLI_LONG,
    OPT_CODECS,
    OPT_TENSORFLOW,
    OPT_SHARDS,
    OPT_SAMPLES,
    OPT_RUNS,
    OPT_RUN_TIME,
    OPT_DECIDE_TIME,
    OPT_SET,
    OPT_PLUGIN,
    OPT_FROM,
    OPT_FEATURE,
    OPT_WEIGHTS,
    OPT_SEED,
    OPT_MEASURE,
    OPT_PREDICT,
    OPT_CONFIRM,
    OPT_PRICE_STORAGE,
    OPT_PRICE_CPU,
    OPT_PRICE_ACCELERATOR,
    OPT_EPOCHS,
    OPT_MONTHS,
    OPT_TARGET,
    OPT_STORAGE,
    OPT_MAX_STORAGE,
    OPT_MAX_PREPARE,
    OPT_ON_ERROR,
    OPT_FORCE,
    OPT_RESUME,
    OPT_CHECK,
    MAX_SHARDS = 99999,
};

/** What to choose by: target, limits, prices. False: the option is another one. */
bool sweep_parse_choosing(presto_sweep_options *options, int id, const char *text);

#endif
