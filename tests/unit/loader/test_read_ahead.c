/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetching: storage is told what will be read, once, before it is read, and only while reading
 * is slow. The source only claims to be slow, so nothing here depends on time.
 */
#include "../../../loader/loader_internal.h"
#include "engine/workers_internal.h"
#include "made_source.h"

#include <pthread.h>

enum { SAMPLES = 2000, MEAN_BYTES = 100000, SLOW_NS = 1000000, FAST_NS = 100 };

/* What happened, for each sample. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned told[SAMPLES], fetched[SAMPLES];
static unsigned pending[SAMPLES];      /* told, not yet fetched */
static uint64_t told_first;            /* fetched when they had been told */
static uint64_t fetches, slow_fetches; /* done; so many are slow */

static presto_status fetch(presto__reader *base, const uint64_t *numbers, size_t count,
                           presto__blocks *blocks, presto_error *err) {
    (void)blocks, (void)err;
    ((made_reader *)base)->numbers = numbers;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        if (pending[numbers[i]] > 0) {
            pending[numbers[i]]--;
            told_first++;
        }
        fetched[numbers[i]]++;
    }
    base->stats.read_bytes += count;
    base->stats.read_ns += count * (fetches++ < slow_fetches ? SLOW_NS : FAST_NS);
    pthread_mutex_unlock(&lock);
    return PRESTO_OK;
}

static void will_read(presto__reader *base, const uint64_t *numbers, size_t count) {
    (void)base;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        told[numbers[i]]++;
        pending[numbers[i]]++;
    }
    pthread_mutex_unlock(&lock);
}

/* The system cannot predict the reads of one file per sample. */
static presto_status read_file(void *user, presto_span path, presto_arena *arena,
                               presto_span *content_out, presto_error *err) {
    (void)user, (void)path, (void)arena, (void)content_out;
    return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "there are no files");
}

/* A shard for each sample: so many may be requested before they are opened, by being told. */
static size_t room, opened_late;
static bool is_requested[SAMPLES], is_opened[SAMPLES];

static size_t will_open(presto__reader *base, const uint64_t *numbers, size_t count) {
    (void)base;
    for (size_t i = 0; i < count; i++) {
        if (is_requested[numbers[i]])
            continue;
        if (room == 0)
            return i;
        room--;
        is_requested[numbers[i]] = true;
    }
    return count;
}

static void will_read_opened(presto__reader *base, const uint64_t *numbers, size_t count) {
    (void)base;
    for (size_t i = 0; i < count; i++) {
        opened_late += !is_requested[numbers[i]];
        room += is_requested[numbers[i]] && !is_opened[numbers[i]];
        is_requested[numbers[i]] = is_opened[numbers[i]] = true;
    }
}

static presto__ranges ranges; /* without a list: all samples */

static bool is_remote;

/* How often anything was told. */
static uint64_t stream(const presto_loader_options *options, uint64_t slow) {
    static const uint8_t byte;
    made_source how = {
        .name = "x", .spec = {.dtype = PRESTO_UINT8, .rank = 1, .dims = {1}}, .data = &byte};
    presto_source *source = make_source(&how, SAMPLES, MEAN_BYTES, fetch, will_read);
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    presto_error err;
    source->is_remote = is_remote;
    if (ranges.list != NULL)
        ((made_source *)(void *)source)->ops.read_file = read_file;
    memset(told, 0, sizeof told);
    memset(fetched, 0, sizeof fetched);
    memset(pending, 0, sizeof pending);
    told_first = 0;
    fetches = 0;
    slow_fetches = slow;
    ck_assert_ok(
        presto__loader_open_input(&(presto__loader_input){.source = source, .ranges = ranges},
                                  options, &loader, &err),
        &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK)
        presto_batch_release(batch);
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    presto_loader_free(loader);
    presto__source_free(source);
    uint64_t sum = 0;
    for (size_t i = 0; i < SAMPLES; i++)
        sum += told[i];
    ck_assert_uint_eq(sum, stats.read_ahead_samples);
    return sum;
}

static presto_loader_options options_of(presto_shuffle_kind shuffle, unsigned threads) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = 10;
    options.memory.block_samples = 10;
    options.order.shuffle = shuffle;
    options.order.shuffle_window = 50;
    options.range.epochs = 2;
    return options;
}

START_TEST(what_is_read_from_slow_storage_is_told_once_before) {
    static const presto_shuffle_kind shuffles[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_FULL,
                                                   PRESTO_SHUFFLE_BLOCKS, PRESTO_SHUFFLE_BUFFER};
    for (size_t i = 0; i < sizeof shuffles / sizeof shuffles[0]; i++)
        for (unsigned threads = 0; threads <= 3; threads++) {
            presto_loader_options options = options_of(shuffles[i], threads);
            if (shuffles[i] == PRESTO_SHUFFLE_NONE) {
                options.range.world = 2;
                options.range.rank = 1;
            }
            uint64_t reads = (uint64_t)2 * SAMPLES / options.range.world;
            uint64_t sum = stream(&options, UINT64_MAX);
            for (size_t n = 0; n < SAMPLES; n++)
                ck_assert_uint_le(told[n], fetched[n]);
            ck_assert_uint_ge(sum, reads * 8 / 10);
            /* With threads, a sample may be announced late now and then. */
            ck_assert_uint_ge(told_first, threads == 0 ? sum : sum * 8 / 10);
            ck_assert_uint_eq(stream(&options, 0), 0);
        }
}
END_TEST

/* Those that begin later included, however short they are. */
START_TEST(ranges_are_told_in_the_order_that_they_are_read_in) {
    static const uint64_t lengths[] = {7, 33, 250, SAMPLES};
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (unsigned threads = 0; threads <= 3; threads++) {
            presto__range list[SAMPLES / 7 + 1];
            size_t count = 0;
            uint64_t reads = 0;
            for (uint64_t first = 0; first < SAMPLES; first += lengths[l]) {
                uint64_t end = first + lengths[l] < SAMPLES ? first + lengths[l] : SAMPLES;
                if (count % 5 != 3) /* this one is not wanted */
                    reads += end - first;
                list[count] = (presto__range){first, count % 5 != 3 ? end : first};
                count++;
            }
            presto__ranges_init(&ranges, list, count, 1 + l);
            presto_loader_options options = options_of(PRESTO_SHUFFLE_NONE, threads);
            options.range.epochs = 1;
            uint64_t sum = stream(&options, UINT64_MAX);
            for (size_t n = 0; n < SAMPLES; n++)
                ck_assert_uint_le(told[n], fetched[n]);
            ck_assert_uint_ge(sum, reads * 8 / 10);
            ck_assert_uint_ge(told_first, threads == 0 ? sum : sum * 8 / 10);
            ck_assert_uint_eq(stream(&options, 0), 0);
            ranges.list = NULL;
        }
}
END_TEST

START_TEST(nothing_is_told_of_what_the_system_sees_coming) {
    presto_loader_options options = options_of(PRESTO_SHUFFLE_NONE, 1);
    ck_assert_uint_eq(stream(&options, UINT64_MAX), 0);
    /* And with a shuffled buffer, no rank knows which records will be its own. */
    options = options_of(PRESTO_SHUFFLE_BUFFER, 1);
    options.range.world = 2;
    ck_assert_uint_eq(stream(&options, UINT64_MAX), 0);
}
END_TEST

START_TEST(telling_ends_when_reading_is_fast_again) {
    presto_loader_options options = options_of(PRESTO_SHUFFLE_FULL, 0);
    options.range.epochs = 1;
    uint64_t sum = stream(&options, 40); /* of 10 samples each; 335 of 100 kB are 32 MiB */
    ck_assert_uint_ge(sum, 380);
    ck_assert_uint_le(sum, 400 + 336 + 100);
}
END_TEST

START_TEST(nothing_is_told_beyond_the_limit_or_the_memory) {
    presto_loader_options options = options_of(PRESTO_SHUFFLE_FULL, 0);
    options.range.limit_samples = 300;
    stream(&options, UINT64_MAX);
    for (size_t n = 0; n < SAMPLES; n++)
        ck_assert_uint_le(told[n], fetched[n]);
    options.range.limit_samples = 0;
    options.memory.prefetch_bytes = MEAN_BYTES; /* half of that is less than a sample */
    ck_assert_uint_eq(stream(&options, UINT64_MAX), 0);
}
END_TEST

START_TEST(what_the_cache_holds_is_not_told) {
    for (unsigned threads = 0; threads <= 2; threads += 2) {
        presto_loader_options options = options_of(PRESTO_SHUFFLE_FULL, threads);
        options.range.epochs = 6;
        options.cache.bytes = (size_t)64 << 20;
        uint64_t sum = stream(&options, UINT64_MAX);
        ck_assert_uint_ge(sum, SAMPLES * 8 / 10);
        /* Of the second epoch's first 335, announced at the end of the first, those not read
         * yet. */
        ck_assert_uint_le(sum, SAMPLES + 150);
    }
}
END_TEST

/* In all orders, from the first part on, whatever the reads take. */
START_TEST(what_is_read_over_a_network_is_told_once_before) {
    static const presto_shuffle_kind shuffles[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_FULL,
                                                   PRESTO_SHUFFLE_BLOCKS, PRESTO_SHUFFLE_BUFFER};
    static const size_t memories[] = {(size_t)256 << 20, (size_t)8 << 20, MEAN_BYTES};
    is_remote = true;
    for (size_t i = 0; i < 4; i++)
        for (unsigned threads = 0; threads <= 3; threads++)
            for (size_t m = 0; m < 3; m++)
                for (uint64_t world = 1; world <= 2; world++) {
                    presto_loader_options options = options_of(shuffles[i], threads);
                    options.memory.prefetch_bytes = memories[m];
                    options.range.world = world;
                    options.range.first_sample = m == 1 ? 333 : 0;
                    uint64_t reads = (uint64_t)2 * SAMPLES / world - options.range.first_sample;
                    uint64_t sum = stream(&options, m == 0 ? 0 : UINT64_MAX);
                    for (size_t n = 0; n < SAMPLES; n++)
                        ck_assert_msg(told[n] >= fetched[n],
                                      "shuffle %zu, %u threads, memory %zu, %ju ranks: sample %zu",
                                      i, threads, m, (uintmax_t)world, n);
                    ck_assert_uint_ge(sum, reads);
                    ck_assert_uint_le(sum, reads + 100);
                    ck_assert_uint_eq(told_first, reads);
                }
    is_remote = false;
}
END_TEST

START_TEST(what_is_opened_over_a_network_is_requested_before_however_many_a_part_needs) {
    static const uint8_t byte;
    made_source how = {
        .name = "x", .spec = {.dtype = PRESTO_UINT8, .rank = 1, .dims = {1}}, .data = &byte};
    presto_source *source = make_source(&how, SAMPLES, 1000, fetch, will_read_opened);
    presto_loader_options options = options_of(PRESTO_SHUFFLE_FULL, 1);
    presto_loader *loader;
    presto_batch *batch;
    presto_error err;
    source->is_remote = true;
    ((made_source *)(void *)source)->ops.will_open = will_open;
    options.batch_samples = options.memory.block_samples = SAMPLES / 2;
    options.range.epochs = 1;
    room = 100;
    ck_assert_ok(presto__loader_open_input(&(presto__loader_input){.source = source}, &options,
                                           &loader, &err),
                 &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK)
        presto_batch_release(batch);
    presto_loader_free(loader);
    presto__source_free(source);
    ck_assert_uint_eq(opened_late, 0);
    ck_assert_uint_eq(room, 100);
}
END_TEST

START_TEST(what_is_picked_over_a_network_is_told_each_time) {
    static const uint8_t byte;
    made_source how = {
        .name = "x", .spec = {.dtype = PRESTO_UINT8, .rank = 1, .dims = {1}}, .data = &byte};
    presto_source *source = make_source(&how, SAMPLES, MEAN_BYTES, fetch, will_read);
    presto_loader_options options = options_of(PRESTO_SHUFFLE_NONE, 0);
    presto_loader *loader;
    presto_batch *batch;
    presto_error err;
    source->is_remote = true;
    memset(told, 0, sizeof told);
    options.range.skip_samples = UINT64_MAX;
    ck_assert_ok(presto__loader_open_input(&(presto__loader_input){.source = source}, &options,
                                           &loader, &err),
                 &err);
    for (uint64_t first = 0; first < 400; first += 100) {
        uint64_t numbers[10];
        for (uint64_t i = 0; i < 10; i++)
            numbers[i] = first + 7 * i;
        ck_assert_ok(presto_loader_pick(loader, numbers, 10, &batch, &err), &err);
        presto_batch_release(batch);
        for (uint64_t i = 0; i < 10; i++)
            ck_assert_uint_eq(told[numbers[i]], 1);
    }
    presto_loader_free(loader);
    presto__source_free(source);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_is_read_from_slow_storage_is_told_once_before,
        ranges_are_told_in_the_order_that_they_are_read_in,
        nothing_is_told_of_what_the_system_sees_coming,
        telling_ends_when_reading_is_fast_again,
        nothing_is_told_beyond_the_limit_or_the_memory,
        what_the_cache_holds_is_not_told,
        what_is_read_over_a_network_is_told_once_before,
        what_is_opened_over_a_network_is_requested_before_however_many_a_part_needs,
        what_is_picked_over_a_network_is_told_each_time,
    };
    return presto_check_main("read_ahead", tests, sizeof tests / sizeof tests[0], 120);
}
