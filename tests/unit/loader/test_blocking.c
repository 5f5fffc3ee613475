/* SPDX-License-Identifier: Apache-2.0 */
/* How batches are divided into blocks of work. */
#include "../../../loader/loader_internal.h"
#include "dataset_check.h"

#include "engine/workers_internal.h"

#define BATCH ((size_t)64)

/* Samples of 20 KB, of which few are a block. */
static const made large = {.samples = 200, .shards = 2, .values = 5000, .odd = 7};

static presto__blocking blocking_of(presto_source *source, const presto_loader_options *options) {
    presto_loader *loader;
    presto_error err;
    ck_assert_ok(presto__loader_open(source, NULL, options, &loader, &err), &err);
    presto__blocking blocking = loader->blocking;
    presto_loader_free(loader);
    ck_assert_uint_eq(blocking.batch_rows, BATCH);
    ck_assert_uint_eq(blocking.packet_samples, BATCH);
    return blocking;
}

/* Parts are joined by a copy, which is of use only if several workers fill them. */
START_TEST(one_worker_fills_a_batch_as_a_whole) {
    opened data = set_up(&large);
    uint32_t alone = 0;
    for (size_t t = 0; t < THREAD_COUNTS; t++) {
        presto_loader_options options = defaults(thread_counts[t], BATCH);
        options.memory.block_bytes = (size_t)100 << 10;
        size_t parts = blocking_of(data.source, &options).parts;
        if (thread_counts[t] <= 1)
            ck_assert_uint_eq(parts, 1);
        else
            ck_assert_uint_ge(parts, 10);
        uint64_t samples;
        presto_error err;
        uint32_t digest = digest_stream(data.source, NULL, &options, &samples, PRESTO_END, &err);
        ck_assert_uint_eq(samples, large.samples);
        if (t == 0)
            alone = digest;
        ck_assert_uint_eq(digest, alone);
    }
    tear_down(&data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {one_worker_fills_a_batch_as_a_whole};
    return presto_check_main("blocking", tests, sizeof tests / sizeof tests[0], 120);
}
