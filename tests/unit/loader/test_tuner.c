/* SPDX-License-Identifier: Apache-2.0 */
/* The number of workers: its limits, what it becomes on simulated machines, and streams that it
 * must not change. */
#define _XOPEN_SOURCE 700
#include "loader_check.h"

#include <presto/rng.h>

#include "engine/workers_internal.h"

/* What `threads` deliver on a machine where `knee` of them are useful. */
static double rate_of(unsigned threads, unsigned knee) {
    return threads <= knee ? 100.0 * threads : 100.0 * knee;
}

START_TEST(it_settles_at_the_knee) {
    for (unsigned most = 1; most <= 12; most++)
        for (unsigned knee = 1; knee <= most; knee++) {
            presto__tuner tuner;
            presto__tuner_init(&tuner, most);
            ck_assert_uint_eq(presto__tuner_chosen(&tuner), most);
            for (int i = 0; i < 4000; i++) {
                presto__tuner_step(&tuner, rate_of(tuner.active, knee));
                ck_assert(tuner.active >= 1 && tuner.active <= most);
                if (i >= 100) /* a trial may go on, the choice stays */
                    ck_assert_uint_eq(presto__tuner_chosen(&tuner), knee);
            }
        }
}
END_TEST

START_TEST(it_follows_when_work_gets_heavier_and_lighter) {
    presto__tuner tuner;
    presto__tuner_init(&tuner, 8);
    static const unsigned knees[] = {2, 7, 1, 8, 3};
    for (size_t k = 0; k < 5; k++) {
        for (int i = 0; i < 1500; i++)
            presto__tuner_step(&tuner, rate_of(tuner.active, knees[k]));
        ck_assert_uint_eq(presto__tuner_chosen(&tuner), knees[k]);
    }
}
END_TEST

START_TEST(noise_never_leads_out_of_bounds) {
    presto_rng rng;
    presto_rng_key key = {.seed = presto_check_seed()};
    presto_rng_init(&rng, &key);
    for (unsigned most = 1; most <= 5; most++) {
        presto__tuner tuner;
        presto__tuner_init(&tuner, most);
        for (int i = 0; i < 20000; i++) {
            presto__tuner_step(&tuner, i % 7 == 0 ? 0 : presto_rng_uniform(&rng) * 1e9);
            ck_assert(tuner.active >= 1 && tuner.active <= most);
            unsigned chosen = presto__tuner_chosen(&tuner);
            ck_assert(chosen >= 1 && chosen <= most);
        }
    }
}
END_TEST

START_TEST(windows_last_until_they_mean_something) {
    presto__tuner tuner;
    presto__tuner_init(&tuner, 0);
    for (uint64_t i = 1; i < 100; i++)
        ck_assert(!presto__tuner_add(&tuner, 1, i * 1000000000));
    presto__tuner_init(&tuner, 3);
    for (uint64_t i = 1; i < 50; i++) { /* many packets, no time */
        presto__tuner_add(&tuner, 1000, 1000 + i);
        ck_assert_uint_eq(tuner.active, 3);
    }
    for (uint64_t i = 1; i < 4; i++) /* time, but few packets */
        presto__tuner_add(&tuner, 1000, i * UINT64_C(10000000000));
    ck_assert_uint_eq(tuner.active, 3);
}
END_TEST

/* Numbers of threads that change while the stream runs change no byte, and no thread waits
 * forever. */
START_TEST(the_stream_stays_the_same) {
    char *dir = presto_check_temp_dir();
    made how = {.samples = 3000, .shards = 3, .values = 60, .odd = UINT64_MAX, .codec = "zlib:1"};
    make_dataset(dir, &how);
    opened data = open_made(dir, false);
    presto_rng rng;
    presto_rng_key key = {.seed = presto_check_seed()};
    presto_rng_init(&rng, &key);
    for (unsigned round = 0; round < 24; round++) {
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.output = (presto_output_kind)(round % 3);
        options.batch_samples = round % 2 == 0 ? 7 : 900; /* parts of packets, too */
        options.memory.block_samples = 21;
        options.range.epochs = 3;
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
        options.memory.prefetch_bytes = round < 12 ? 100000 : 4000000;
        uint32_t digests[2];
        for (int tuned = 0; tuned < 2; tuned++) {
            options.threads = tuned ? 8 : 1;
            options.auto_threads = tuned;
            presto_loader *loader;
            presto_batch *batch;
            presto_error err;
            presto_status status;
            digests[tuned] = 0;
            ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
            for (uint64_t i = 0; (status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK;
                 i++) {
                if (options.output == PRESTO_OUTPUT_BATCHES)
                    digests[tuned] = digest_batch(digests[tuned], batch);
                else
                    digests[tuned] += (uint32_t)batch->rows;
                presto_batch_release(batch);
                if (!tuned || i % 5 != 0)
                    continue;
                /* As if windows had ended. */
                pthread_mutex_lock(&loader->pool->lock);
                loader->tuner.active = 1 + (unsigned)presto_rng_below(&rng, 8);
                loader->tuner.trial = 0;
                pthread_cond_broadcast(&loader->spare);
                pthread_mutex_unlock(&loader->pool->lock);
                presto_loader_stats stats;
                presto_loader_get_stats(loader, &stats);
                ck_assert(stats.threads >= 1 && stats.threads <= 8);
            }
            ck_assert_status(status, PRESTO_END, &err);
            presto_loader_free(loader);
        }
        ck_assert_uint_eq(digests[0], digests[1]);
    }
    /* Freed while most are spare. */
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = 8;
    options.auto_threads = true;
    options.memory.prefetch_bytes = 50000;
    for (int i = 0; i < 20; i++) {
        presto_loader *loader;
        presto_batch *batch;
        presto_error err;
        ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
        pthread_mutex_lock(&loader->pool->lock);
        loader->tuner.active = 1;
        pthread_mutex_unlock(&loader->pool->lock);
        ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
        presto_batch_release(batch);
        presto_loader_free(loader);
    }
    close_made(&data);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        it_settles_at_the_knee,          it_follows_when_work_gets_heavier_and_lighter,
        noise_never_leads_out_of_bounds, windows_last_until_they_mean_something,
        the_stream_stays_the_same,
    };
    return presto_check_main("tuner", tests, sizeof tests / sizeof tests[0], 240);
}
