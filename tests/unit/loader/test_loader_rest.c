/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a loader's stream: ranks, the rest after a saved state, limits and epochs. */
#define _XOPEN_SOURCE 700
#include "../../../loader/loader_internal.h"
#include "dataset_check.h"

/* ---- order ---- */

static void check_once(presto_source *source, presto_loader_options *options, uint64_t count) {
    uint64_t *seen = calloc(count, sizeof *seen);
    for (options->range.rank = 0; options->range.rank < options->range.world;
         options->range.rank++) {
        presto_loader *loader;
        presto_batch *batch;
        presto_error err;
        ck_assert_ok(presto__loader_open(source, NULL, options, &loader, &err), &err);
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
            for (size_t i = 0; i < batch->rows; i++)
                seen[batch->sample_numbers[i]]++;
            presto_batch_release(batch);
        }
        presto_loader_free(loader);
    }
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++) {
        ck_assert_uint_ge(seen[i], 1);
        total += seen[i];
    }
    ck_assert_uint_eq(total, (count + options->range.world - 1) / options->range.world *
                                 options->range.world);
    free(seen);
}

START_TEST(every_sample_comes_once_an_epoch_over_all_ranks_in_either_order) {
    opened data = set_up(&plain);
    for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
        for (uint64_t world = 1; world < 8; world += 3)
            for (int completion = 0; completion < 2; completion++) {
                presto_loader_options options = defaults(2, 20);
                options.order.shuffle = (presto_shuffle_kind)shuffle;
                options.order.shuffle_window = 100;
                options.range.world = world;
                options.order.completion = completion;
                options.memory.block_samples = 32;
                check_once(data.source, &options, 1000);
            }
    tear_down(&data);
}
END_TEST

START_TEST(a_stream_started_later_is_the_rest_of_the_whole_one) {
    opened data = set_up(&plain);
    presto_error err;
    for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
        for (uint64_t cut = 0; cut <= 2000; cut += 125) {
            presto_loader_options options = defaults(2, 25);
            options.order.shuffle = (presto_shuffle_kind)shuffle;
            options.order.shuffle_window = 60;
            options.range.epochs = 2;
            presto_loader *loader;
            presto_batch *batch;
            uint32_t wanted = 0;
            uint64_t samples = 0;
            ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
            while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
                if (samples >= cut)
                    wanted = digest_batch(wanted, batch);
                samples += batch->rows;
                presto_batch_release(batch);
            }
            presto_loader_free(loader);
            options.range.first_epoch = cut / 1000;
            options.range.epochs = 2 - cut / 1000;
            options.range.first_sample = cut % 1000;
            if (options.range.epochs == 0)
                continue;
            ck_assert_uint_eq(wanted,
                              digest_stream(data.source, NULL, &options, NULL, PRESTO_END, &err));
        }
    tear_down(&data);
}
END_TEST

/* The digest of the stream from batch `skip` on, and the state before it. */
static uint32_t rest_of(presto_source *source, const presto_loader_options *options, size_t skip,
                        presto_buffer *state) {
    presto_loader *loader;
    presto_batch *batch;
    presto_error err;
    uint32_t digest = 0;
    ck_assert_ok(presto__loader_open(source, NULL, options, &loader, &err), &err);
    for (size_t i = 0;; i++) {
        if (i == skip)
            ck_assert_ok(presto_loader_save_state(loader, state, &err), &err);
        if (presto_loader_next(loader, &batch, &err) != PRESTO_OK)
            break;
        if (i >= skip)
            digest = digest_batch(digest, batch);
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    return digest;
}

START_TEST(a_saved_state_resumes_to_the_rest_with_shuffle_ranks_and_epochs) {
    opened data = set_up(&plain);
    for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
        for (size_t skip = 0; skip <= 60; skip += 5) {
            presto_error err;
            presto_loader_options options = defaults(2, 16);
            options.order.shuffle = (presto_shuffle_kind)shuffle;
            options.order.shuffle_window = 90;
            options.range.epochs = 3;
            options.range.first_epoch = 5;
            options.range.world = 3;
            options.range.rank = 1;
            options.order.seed = UINT64_MAX;
            presto_buffer state = {0};
            uint32_t wanted = rest_of(data.source, &options, skip, &state);
            presto_loader_options resumed = options;
            resumed.threads = 5;
            resumed.memory.block_samples = 7;
            ck_assert_ok(
                presto_loader_load_state(presto_buffer_span(&state), data.source, &resumed, &err),
                &err);
            ck_assert_uint_eq(wanted,
                              digest_stream(data.source, NULL, &resumed, NULL, PRESTO_END, &err));
            resumed = options;
            resumed.order.seed = 4;
            ck_assert_status(
                presto_loader_load_state(presto_buffer_span(&state), data.source, &resumed, &err),
                PRESTO_ERR_ARGUMENT, &err);
            presto_buffer_done(&state);
        }
    tear_down(&data);
}
END_TEST

START_TEST(any_window_is_kept_in_a_state) {
    static const uint64_t windows[] = {1, 90, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    opened data = set_up(&plain);
    presto_error err;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        presto_loader_options options = defaults(0, 100);
        options.order.shuffle = PRESTO_SHUFFLE_BLOCKS;
        options.order.shuffle_window = windows[i];
        presto_buffer state = {0};
        (void)rest_of(data.source, &options, 3, &state);
        presto_loader_options resumed = options;
        presto_span json = presto_buffer_span(&state);
        ck_assert_ok(presto_loader_load_state(json, data.source, &resumed, &err), &err);
        ck_assert_uint_eq(resumed.range.first_sample, 300);
        options.order.shuffle_window ^= 2;
        ck_assert_status(presto_loader_load_state(json, data.source, &options, &err),
                         PRESTO_ERR_ARGUMENT, &err);
        presto_buffer_done(&state);
    }
    tear_down(&data);
}
END_TEST

START_TEST(a_window_may_be_a_number_in_a_state) {
    opened data = set_up(&plain);
    presto_error err;
    presto_loader_options options = defaults(0, 100);
    options.order.shuffle = PRESTO_SHUFFLE_BLOCKS;
    options.order.shuffle_window = 90;
    presto_buffer state = {0};
    (void)rest_of(data.source, &options, 3, &state);
    ck_assert_ok(presto_buffer_append(&state, presto_span_of("", 1), &err), &err);
    char *window = strstr((char *)state.data, "\"90\"");
    ck_assert_ptr_nonnull(window);
    memcpy(window, " 90 ", 4);
    ck_assert_ok(presto_loader_load_state(presto_span_of(state.data, state.bytes - 1), data.source,
                                          &options, &err),
                 &err);
    ck_assert_uint_eq(options.range.first_sample, 300);
    presto_buffer_done(&state);
    tear_down(&data);
}
END_TEST

START_TEST(a_state_at_the_end_of_an_epoch_goes_on_in_another_world) {
    opened data = set_up(&plain);
    presto_error err;
    presto_loader_options options = defaults(2, 100);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.range.epochs = 2;
    presto_buffer state = {0};
    rest_of(data.source, &options, 10, &state); /* ten batches of a hundred: one epoch */
    options.range.world = 7;
    options.range.rank = 3;
    ck_assert_ok(presto_loader_load_state(presto_buffer_span(&state), data.source, &options, &err),
                 &err);
    ck_assert_uint_eq(options.range.first_epoch, 1);
    ck_assert_uint_eq(options.range.first_sample, 0);
    ck_assert_uint_eq(options.range.epochs, 1);
    options.range.first_epoch = 0;
    options.range.epochs = 1;
    ck_assert_status(
        presto_loader_load_state(presto_buffer_span(&state), data.source, &options, &err),
        PRESTO_END, &err);
    static const char *const wrong[] = {"", "{}", "[1]", "{\"presto_state\": 2}", "\xff"};
    for (size_t i = 0; i < 5; i++)
        ck_assert_status(
            presto_loader_load_state(presto_span_of_text(wrong[i]), data.source, &options, &err),
            PRESTO_ERR_CORRUPT, &err);
    presto_buffer_done(&state);
    tear_down(&data);
}
END_TEST

START_TEST(limits_epochs_and_incomplete_batches_are_kept_to) {
    opened data = set_up(&plain);
    static const struct {
        uint64_t limit, epochs;
        bool drop;
        uint64_t samples, batches;
    } cases[] = {
        {0, 1, false, 1000, 16}, {0, 1, true, 960, 15},      {0, 3, true, 2880, 45},
        {64, 1, false, 64, 1},   {65, 1, false, 65, 2},      {65, 1, true, 64, 1},
        {1, 1, true, 0, 0},      {1001, 2, false, 1001, 17}, {5000, 2, false, 2000, 32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int counting = 0; counting < 2; counting++) {
            if (counting && !cases[i].drop) /* has no batches */
                continue;
            presto_loader_options options = defaults(2, 64);
            options.output = counting ? PRESTO_OUTPUT_COUNT : PRESTO_OUTPUT_BATCHES;
            options.memory.block_samples = 10;
            presto_error err;
            options.range.limit_samples = cases[i].limit;
            options.range.epochs = cases[i].epochs;
            options.range.drop_last = cases[i].drop;
            presto_loader *loader;
            presto_batch *batch;
            uint64_t samples = 0, batches = 0;
            ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
            while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
                samples += batch->rows;
                batches++;
                presto_batch_release(batch);
            }
            presto_loader_stats stats;
            presto_loader_get_stats(loader, &stats);
            ck_assert_uint_eq(stats.samples, samples);
            ck_assert_uint_eq(stats.batches, batches);
            presto_loader_free(loader);
            ck_assert_uint_eq(samples, cases[i].samples);
            ck_assert_uint_eq(batches, cases[i].batches);
        }
    tear_down(&data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_sample_comes_once_an_epoch_over_all_ranks_in_either_order,
        a_stream_started_later_is_the_rest_of_the_whole_one,
        a_saved_state_resumes_to_the_rest_with_shuffle_ranks_and_epochs,
        any_window_is_kept_in_a_state,
        a_window_may_be_a_number_in_a_state,
        a_state_at_the_end_of_an_epoch_goes_on_in_another_world,
        limits_epochs_and_incomplete_batches_are_kept_to,
    };
    return presto_check_main("loader_rest", tests, sizeof tests / sizeof tests[0], 240);
}
