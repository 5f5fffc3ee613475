/* SPDX-License-Identifier: Apache-2.0 */
/* How long a loader and its batches live, what they may keep, and options that are refused. */
#define _XOPEN_SOURCE 700
#include <pthread.h>

#include "../../../loader/loader_internal.h"
#include "dataset_check.h"

/* ---- lives ---- */

START_TEST(a_loader_can_be_freed_at_any_moment) {
    opened data = set_up(&plain);
    for (size_t t = 0; t < THREAD_COUNTS; t++)
        for (size_t taken = 0; taken < 40; taken += 3) {
            presto_loader_options options = defaults(thread_counts[t], 8);
            options.memory.block_samples = 20;
            options.memory.prefetch_bytes = 60000;
            presto_loader *loader;
            presto_error err;
            ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
            for (size_t i = 0; i < taken; i++) {
                presto_batch *batch;
                ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
                presto_batch_release(batch);
            }
            presto_loader_free(loader);
        }
    presto_loader_free(NULL);
    presto_batch_release(NULL);
    tear_down(&data);
}
END_TEST

static void *release_all(void *argument) {
    presto_batch **batches = argument;
    for (size_t i = 0; batches[i] != NULL; i++)
        presto_batch_release(batches[i]);
    return NULL;
}

START_TEST(batches_outlive_loader_source_and_dataset) {
    for (int views = 0; views < 2; views++)
        for (int map = 0; map < 2; map++) {
            dir = presto_check_temp_dir();
            make_dataset(dir, &plain);
            opened data = open_made(dir, map);
            presto_loader_options options = defaults(2, 1);
            options.unaligned_views = views;
            presto_loader *loader;
            presto_error err;
            presto_batch *batches[1001] = {NULL};
            ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
            for (size_t i = 0; i < 700; i++)
                ck_assert_ok(presto_loader_next(loader, &batches[i], &err), &err);
            presto_loader_free(loader);
            tear_down(&data);
            for (size_t i = 0; i < 700; i++) {
                float value;
                memcpy(&value, (const uint8_t *)batches[i]->features[2].tensor.data + 4, 4);
                ck_assert(value == made_value(i, 1));
            }
            pthread_t thread;
            ck_assert_int_eq(pthread_create(&thread, NULL, release_all, batches), 0);
            pthread_join(thread, NULL);
        }
}
END_TEST

START_TEST(a_consumer_that_keeps_everything_is_not_left_waiting) {
    opened data = set_up(&plain);
    presto_loader_options options = defaults(2, 4);
    options.memory.prefetch_bytes = 20000;
    presto_loader *loader;
    presto_error err;
    presto_batch *batches[251] = {NULL};
    ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
    for (size_t i = 0; i < 250; i++)
        ck_assert_ok(presto_loader_next(loader, &batches[i], &err), &err);
    ck_assert_status(presto_loader_next(loader, &batches[250], &err), PRESTO_END, &err);
    batches[250] = NULL;
    release_all(batches);
    presto_loader_free(loader);
    tear_down(&data);
}
END_TEST

START_TEST(what_is_in_flight_stays_below_the_limit) {
    made how = {.samples = 2000, .shards = 2, .values = 1000, .odd = UINT64_MAX};
    opened data = set_up(&how);
    static const size_t sizes[] = {1, 16, 100};
    for (size_t s = 0; s < 3; s++)
        for (size_t t = 0; t < THREAD_COUNTS; t++)
            for (int output = PRESTO_OUTPUT_BATCHES; output <= PRESTO_OUTPUT_RECORDS; output++) {
                presto_loader_options options = defaults(thread_counts[t], sizes[s]);
                options.output = (presto_output_kind)output;
                options.memory.prefetch_bytes = (size_t)3 << 20;
                presto_loader *loader;
                presto_error err;
                presto_batch *batch;
                ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
                while (presto_loader_next(loader, &batch, &err) == PRESTO_OK)
                    presto_batch_release(batch);
                presto_loader_stats stats;
                presto_loader_get_stats(loader, &stats);
                presto_loader_free(loader);
                ck_assert_uint_gt(stats.peak_queued_bytes, 0);
                ck_assert_msg(stats.peak_queued_bytes <= options.memory.prefetch_bytes,
                              "%u threads, batches of %zu, output %d: %zu bytes", thread_counts[t],
                              sizes[s], output, stats.peak_queued_bytes);
                ck_assert_uint_eq(stats.samples, 2000);
                ck_assert_uint_eq(stats.skipped, 0);
            }
    tear_down(&data);
}
END_TEST

START_TEST(options_that_contradict_each_other_are_refused) {
    opened data = set_up(&plain);
    for (int i = 0; i < 8; i++) {
        presto_loader_options options = defaults(1, 1);
        if (i == 0)
            options.batch_samples = 0;
        if (i == 1)
            options.range.epochs = 0;
        if (i == 2)
            options.range.world = 0;
        if (i == 3)
            options.range.rank = 1;
        if (i == 4)
            options.order.shuffle = PRESTO_SHUFFLE_BUFFER;
        if (i == 5)
            options.errors.skip_fraction = 1.5;
        if (i == 6)
            options.range.first_sample = 1001;
        if (i == 7)
            options.threads = PRESTO_MAX_THREADS + 1;
        presto_loader *loader;
        presto_error err;
        ck_assert_status(presto__loader_open(data.source, NULL, &options, &loader, &err),
                         PRESTO_ERR_ARGUMENT, &err);
        ck_assert_uint_gt(strlen(err.message), 10);
    }
    tear_down(&data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_loader_can_be_freed_at_any_moment,
        batches_outlive_loader_source_and_dataset,
        a_consumer_that_keeps_everything_is_not_left_waiting,
        what_is_in_flight_stays_below_the_limit,
        options_that_contradict_each_other_are_refused,
    };
    return presto_check_main("loader_lives", tests, sizeof tests / sizeof tests[0], 240);
}
