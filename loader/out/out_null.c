/* SPDX-License-Identifier: Apache-2.0 */
/* null: nothing. Samples are counted. */
#include "out_internal.h"

enum { DEFAULT_BLOCK = 256 };

const presto__out_type presto__out_null = {.about = {.name = "null",
                                                     .help = "count only",
                                                     .way = PRESTO_OUT_NOWHERE,
                                                     .output = PRESTO_OUTPUT_COUNT,
                                                     .default_batch = DEFAULT_BLOCK,
                                                     .takes_raw_records = true}};
