/* SPDX-License-Identifier: Apache-2.0 */
/* The number of workers: its limits, what it becomes on simulated machines, and streams that it
 * must not change. */
#define _XOPEN_SOURCE 700
#include "../../../base/rng_internal.h"
#include "../../../loader/loader_internal.h"
#include "loader_check.h"

#include <math.h>

#include <presto/rng.h>

#include "engine/workers_internal.h"

/* A machine: a sample computes, and waits for storage, which serves only so many a second. */
typedef struct machine {
    unsigned processors;
    double compute_s, wait_s;
    double storage_per_s;  /* 0: no limit */
    double consumer_per_s; /* 0: no limit */
    double noise;          /* of the rate of a window */
    double queue_s;        /* a sample waits so long for a processor, which others use */
} machine;

/* Samples a second of so many workers. Those that wait leave their processor to others. */
static double rate_of(const machine *m, unsigned workers) {
    double rate = workers / (m->compute_s + m->wait_s);
    if (m->compute_s > 0 && rate > m->processors / m->compute_s)
        rate = m->processors / m->compute_s;
    if (m->storage_per_s > 0 && rate > m->storage_per_s)
        rate = m->storage_per_s;
    return rate;
}

static double best_rate(const machine *m, unsigned most) {
    double best = 0;
    for (unsigned workers = 1; workers <= most; workers++)
        best = fmax(best, rate_of(m, workers));
    return m->consumer_per_s > 0 ? fmin(best, m->consumer_per_s) : best;
}

/* One look, `seconds` after the last one. */
static void pass(presto__tuner *tuner, const machine *m, double seconds, double *samples,
                 presto__tuner_seen *seen, presto_rng *rng) {
    double can = rate_of(m, tuner->active) * (1 + m->noise * (2 * presto_rng_uniform(rng) - 1));
    double rate = m->consumer_per_s > 0 ? fmin(can, m->consumer_per_s) : can;
    *samples += rate * seconds;
    seen->now_ns += (uint64_t)(seconds * 1e9);
    seen->samples = (uint64_t)*samples;
    seen->runnable_ns += (uint64_t)(rate * seconds * (m->compute_s + m->queue_s) * 1e9);
    seen->room_ns += (uint64_t)((1 - rate / can) * seconds * tuner->active * 1e9);
    (void)presto__tuner_look(tuner, seen);
    ck_assert(tuner->active >= 1 && tuner->active <= tuner->most);
    unsigned chosen = presto__tuner_chosen(tuner);
    ck_assert(chosen >= 1 && chosen <= tuner->most);
}

static void run_for(presto__tuner *tuner, const machine *m, double seconds, double *samples,
                    presto__tuner_seen *seen, presto_rng *rng) {
    for (double t = 0; t < seconds; t += 0.1)
        pass(tuner, m, 0.1, samples, seen, rng);
}

static presto_rng seeded(void) {
    presto_rng rng;
    presto__rng_key key = {.seed = presto_check_seed()};
    presto__rng_init(&rng, &key);
    return rng;
}

/* In three seconds it delivers nine tenths of the best fixed number, and stays there. */
START_TEST(it_finds_the_knee_in_three_seconds) {
    presto_rng rng = seeded();
    static const unsigned processors[] = {1, 2, 4, 16};
    static const double waits[] = {0, 0.2, 1, 5, 30, 200}; /* times as long as it computes */
    static const double limits[] = {0, 0.3, 0.7};          /* of the best: storage gives no more */
    for (size_t p = 0; p < 4; p++)
        for (size_t w = 0; w < 6; w++)
            for (size_t l = 0; l < 3; l++)
                for (unsigned noisy = 0; noisy < 2; noisy++) {
                    machine m = {.processors = processors[p],
                                 .compute_s = 0.001,
                                 .wait_s = 0.001 * waits[w],
                                 .noise = noisy ? 0.01 : 0};
                    m.storage_per_s = limits[l] * best_rate(&m, 64);
                    presto__tuner tuner;
                    presto__tuner_seen seen = {.now_ns = 1};
                    double samples = 0;
                    presto__tuner_init(&tuner, 64, m.processors);
                    run_for(&tuner, &m, 3, &samples, &seen, &rng);
                    for (unsigned i = 0; i < 600; i++) {
                        double got = rate_of(&m, presto__tuner_chosen(&tuner));
                        ck_assert_msg(got >= 0.9 * best_rate(&m, 64),
                                      "%u processors, waits %g, limit %g: %u workers give %g of "
                                      "%g samples/s",
                                      m.processors, waits[w], limits[l],
                                      presto__tuner_chosen(&tuner), got, best_rate(&m, 64));
                        pass(&tuner, &m, 0.1, &samples, &seen, &rng);
                    }
                }
}
END_TEST

/* 0.25 s a sample: the first windows have few samples. */
START_TEST(it_grows_on_slow_storage) {
    presto_rng rng = seeded();
    machine m = {.processors = 2, .compute_s = 0.002, .wait_s = 0.25};
    presto__tuner tuner;
    presto__tuner_seen seen = {.now_ns = 1};
    double samples = 0;
    presto__tuner_init(&tuner, 64, 2);
    run_for(&tuner, &m, 1, &samples, &seen, &rng);
    ck_assert_uint_eq(presto__tuner_chosen(&tuner), 64);
    run_for(&tuner, &m, 60, &samples, &seen, &rng);
    ck_assert_uint_ge(presto__tuner_chosen(&tuner), 58);
}
END_TEST

/* Workers that compute are never more than the processors, but for a trial. */
START_TEST(it_computes_on_no_more_than_the_processors) {
    presto_rng rng = seeded();
    for (unsigned processors = 1; processors <= 16; processors++) {
        machine m = {.processors = processors, .compute_s = 0.0001};
        presto__tuner tuner;
        presto__tuner_seen seen = {.now_ns = 1};
        double samples = 0;
        presto__tuner_init(&tuner, 64, processors);
        for (unsigned i = 0; i < 3000; i++) {
            pass(&tuner, &m, 0.1, &samples, &seen, &rng);
            ck_assert_uint_eq(presto__tuner_chosen(&tuner), processors);
            ck_assert_uint_le(tuner.active, processors);
        }
    }
}
END_TEST

/* A worker that waits for a processor does not wait for storage. */
START_TEST(it_does_not_crowd_a_busy_machine) {
    presto_rng rng = seeded();
    machine m = {.processors = 4, .compute_s = 0.001, .wait_s = 0.00201, .queue_s = 0.002};
    presto__tuner tuner;
    presto__tuner_seen seen = {.now_ns = 1};
    double samples = 0;
    presto__tuner_init(&tuner, 64, 4);
    for (unsigned i = 0; i < 1000; i++) {
        pass(&tuner, &m, 0.1, &samples, &seen, &rng);
        ck_assert_uint_le(tuner.active, 4);
    }
}
END_TEST

/* A consumer that is the limit needs few workers, and no more of them because they wait. */
START_TEST(it_keeps_up_with_the_consumer_by_few) {
    presto_rng rng = seeded();
    machine m = {.processors = 8, .compute_s = 0.001, .wait_s = 0.003, .consumer_per_s = 600};
    presto__tuner tuner;
    presto__tuner_seen seen = {.now_ns = 1};
    double samples = 0;
    presto__tuner_init(&tuner, 64, 8);
    for (unsigned i = 0; i < 1000; i++) {
        pass(&tuner, &m, 0.1, &samples, &seen, &rng);
        ck_assert_uint_le(tuner.active, 8);
    }
    ck_assert_uint_eq(presto__tuner_chosen(&tuner), 3);
}
END_TEST

START_TEST(it_follows_when_work_gets_heavier_and_lighter) {
    presto_rng rng = seeded();
    presto__tuner tuner;
    presto__tuner_seen seen = {.now_ns = 1};
    double samples = 0;
    presto__tuner_init(&tuner, 64, 4);
    static const double waits[] = {0, 0.02, 0.001, 0.05, 0};
    for (size_t k = 0; k < 5; k++) {
        machine m = {.processors = 4, .compute_s = 0.001, .wait_s = waits[k]};
        run_for(&tuner, &m, 400, &samples, &seen, &rng);
        ck_assert(rate_of(&m, presto__tuner_chosen(&tuner)) >= 0.9 * best_rate(&m, 64));
    }
}
END_TEST

START_TEST(noise_never_leads_out_of_bounds) {
    presto_rng rng = seeded();
    for (unsigned most = 1; most <= 80; most += 7) {
        presto__tuner tuner;
        presto__tuner_seen seen = {.now_ns = 1};
        presto__tuner_init(&tuner, most, 3);
        for (int i = 0; i < 20000; i++) {
            seen.now_ns += (uint64_t)(presto_rng_uniform(&rng) * 3e8);
            seen.samples += i % 7 == 0 ? 0 : (uint64_t)(presto_rng_uniform(&rng) * 1e6);
            seen.runnable_ns += (uint64_t)(presto_rng_uniform(&rng) * 1e9);
            seen.room_ns += i % 3 == 0 ? (uint64_t)(presto_rng_uniform(&rng) * 1e9) : 0;
            seen.is_full = i % 5 == 0;
            (void)presto__tuner_look(&tuner, &seen);
            ck_assert(tuner.active >= 1 && tuner.active <= most);
            unsigned chosen = presto__tuner_chosen(&tuner);
            ck_assert(chosen >= 1 && chosen <= most);
            if (i == 15000) {
                presto__tuner_limit(&tuner, (most + 1) / 2);
                ck_assert_uint_eq(tuner.active, (most + 1) / 2);
            }
        }
    }
}
END_TEST

START_TEST(windows_last_until_they_mean_something) {
    presto__tuner tuner;
    presto__tuner_init(&tuner, 0, 2);
    ck_assert(!presto__tuner_is_due(&tuner, UINT64_MAX));
    presto__tuner_init(&tuner, 3, 3);
    presto__tuner_seen seen = {.now_ns = 1000};
    for (unsigned i = 1; i < 50; i++) { /* many samples, no time */
        seen.now_ns++;
        seen.samples += 1000;
        ck_assert(!presto__tuner_look(&tuner, &seen));
        ck_assert_uint_eq(tuner.active, 3);
    }
    for (unsigned i = 0; i < 5; i++) { /* time, but few samples */
        seen.now_ns += UINT64_C(10000000000);
        seen.samples++;
        ck_assert(!presto__tuner_look(&tuner, &seen));
        ck_assert_uint_eq(tuner.active, 3);
    }
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
    presto__rng_key key = {.seed = presto_check_seed()};
    presto__rng_init(&rng, &key);
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
            ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
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
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
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
        it_finds_the_knee_in_three_seconds,
        it_grows_on_slow_storage,
        it_computes_on_no_more_than_the_processors,
        it_does_not_crowd_a_busy_machine,
        it_keeps_up_with_the_consumer_by_few,
        it_follows_when_work_gets_heavier_and_lighter,
        noise_never_leads_out_of_bounds,
        windows_last_until_they_mean_something,
        the_stream_stays_the_same,
    };
    return presto_check_main("tuner", tests, sizeof tests / sizeof tests[0], 240);
}
