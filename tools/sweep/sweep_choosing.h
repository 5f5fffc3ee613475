/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of presto-sweep's options that are numbers with a unit. */
#ifndef PRESTO_TOOLS_SWEEP_CHOOSING_H
#define PRESTO_TOOLS_SWEEP_CHOOSING_H

#include "../cli/cli.h"

/** --target, into a presto_sweep_limits. */
cli_read sweep_read_target;
/** Prices, into a double. */
cli_read sweep_read_price_of_hour, sweep_read_price_of_storage;

#endif
