/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a stream, loaded into all kinds of orders and by one rank or three of them. */
#include "fuzz.h"

#include "source/source_internal.h"

#define SAMPLES 1000

static uint64_t digest(const presto_source *source) {
    (void)source;
    return UINT64_C(0x0123456789abcdef);
}

static const presto__source_ops ops = {.digest = digest};

static bool is_untouched(const presto_loader_options *before, const presto_loader_options *after) {
    return after->range.epochs == before->range.epochs &&
           after->range.first_epoch == before->range.first_epoch &&
           after->range.first_sample == before->range.first_sample &&
           after->range.skip_samples == before->range.skip_samples;
}

static void load(presto_span json, presto_shuffle_kind shuffle, uint64_t world) {
    const presto_source source = {.ops = &ops, .count = SAMPLES, .full_count = SAMPLES};
    presto_loader_options before, after;
    presto_error err;
    presto_loader_options_defaults(&before);
    before.order.shuffle = shuffle;
    before.order.shuffle_window = 100;
    before.order.seed = 7;
    before.range.epochs = 5;
    before.range.first_epoch = 1;
    before.range.world = world;
    after = before;
    presto_status status = presto_loader_load_state(json, &source, &after, &err);
    if (status < 0) {
        FUZZ_HOLDS(is_untouched(&before, &after));
        return;
    }
    FUZZ_HOLDS(after.range.first_sample * world < SAMPLES &&
               after.range.first_epoch >= before.range.first_epoch);
    if (status == PRESTO_OK)
        FUZZ_HOLDS(after.range.epochs > 0 && after.range.first_epoch + after.range.epochs ==
                                                 before.range.first_epoch + before.range.epochs);
    else
        FUZZ_HOLDS(after.range.first_epoch >= before.range.first_epoch + before.range.epochs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++) {
        load(presto_span_of(data, bytes), (presto_shuffle_kind)shuffle, 1);
        load(presto_span_of(data, bytes), (presto_shuffle_kind)shuffle, 3);
    }
    return 0;
}
