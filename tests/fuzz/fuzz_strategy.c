/* SPDX-License-Identifier: Apache-2.0 */
/* The text of strategy.yaml: what is taken lies within the limits that programs rely on. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "profile_internal.h"

static bool may_be_expected(double value) {
    return isnan(value) || (isfinite(value) && value >= 0);
}

static void check(const presto_strategy_file *strategy) {
    presto_codec_spec codec;
    FUZZ_HOLDS(strategy->pipeline[0] != '\0' && strategy->stored[0] != '\0');
    FUZZ_HOLDS(strategy->threads <= 4096 && strategy->shards <= 99999);
    FUZZ_HOLDS((strcmp(strategy->stored, "unprocessed") == 0) == (strategy->codec == NULL));
    FUZZ_HOLDS((strategy->codec == NULL) == (strategy->shards == 0));
    if (strategy->codec != NULL)
        FUZZ_HOLDS(presto_codec_parse(strategy->codec, &codec, NULL) == PRESTO_OK);
    for (size_t i = 0; i < strategy->set_count; i++)
        FUZZ_HOLDS(strategy->set[i][0] != '\0');
    FUZZ_HOLDS(may_be_expected(strategy->expected_samples_per_s));
    FUZZ_HOLDS(may_be_expected(strategy->expected_cached_samples_per_s));
    FUZZ_HOLDS(may_be_expected(strategy->expected_stored_bytes));
    FUZZ_HOLDS(may_be_expected(strategy->expected_preparation_s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_strategy_file strategy = {0};
    presto_error err;
    if (presto__strategy_parse(presto_span_of(data, bytes), "strategy.yaml", &strategy, &err) ==
        PRESTO_OK)
        check(&strategy);
    else
        FUZZ_HOLDS(strategy.pipeline == NULL && strategy.stored == NULL && strategy.set == NULL);
    presto_strategy_file_done(&strategy);
    return 0;
}
