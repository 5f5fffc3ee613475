/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a stream, loaded into all kinds of orders and by one rank or three of them, and into
 * a mix. */
#include "../../loader/loader_internal.h"
#include "fuzz.h"

#include "source/mix/mix_internal.h"

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

/* `positions` of an epoch. */
static void load(presto_span json, const presto_source *source, uint64_t positions,
                 presto_shuffle_kind shuffle, uint64_t world) {
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
    presto_status status = presto_loader_load_state(json, source, &after, &err);
    if (status < 0) {
        FUZZ_HOLDS(is_untouched(&before, &after));
        return;
    }
    FUZZ_HOLDS(after.range.first_sample * world < positions &&
               after.range.first_epoch >= before.range.first_epoch);
    if (status == PRESTO_OK)
        FUZZ_HOLDS(after.range.epochs > 0 && after.range.first_epoch + after.range.epochs ==
                                                 before.range.first_epoch + before.range.epochs);
    else
        FUZZ_HOLDS(after.range.first_epoch >= before.range.first_epoch + before.range.epochs);
}

static const presto_source plain = {.ops = &ops, .count = SAMPLES, .full_count = SAMPLES};

/* 1000 and 500 samples in an epoch. */
static presto_source *make_mix(void) {
    static presto_source second = {.ops = &ops, .count = SAMPLES / 5, .full_count = SAMPLES / 5};
    presto_source *mix = NULL;
    const presto__mixed_source inputs[] = {{(presto_source *)(uintptr_t)&plain, "first", 2},
                                           {&second, "second", 1}};
    const presto__mix_request request = {.inputs = inputs, .count = 2};
    (void)presto__source_mix(&request, &mix, NULL);
    return mix;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const presto_span json = presto_span_of(data, bytes);
    presto_source *mix = make_mix();
    for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
        for (uint64_t world = 1; world <= 3; world += 2) {
            load(json, &plain, SAMPLES, (presto_shuffle_kind)shuffle, world);
            if (mix != NULL)
                load(json, mix, SAMPLES + SAMPLES / 2, (presto_shuffle_kind)shuffle, world);
        }
    presto__source_free(mix);
    return 0;
}
