/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign files that are not counted when they are opened: an epoch overtakes the one before. */
#define _XOPEN_SOURCE 700
#include <time.h>

#include "engine/workers_internal.h"

#include "walk_check.h"

/* ---- an epoch that overtakes the one before ---- */

/*
 * While it is armed, the first worker that has walked waits until the next epoch has stored the
 * first samples that this worker walked over; the one that stores them waits in their midst until
 * the first one stores any.
 */
#define STORED_FIRST 3

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_armed, has_walker, has_overtaken, goes_on, took_too_long;
    pthread_t walker;
    size_t stored; /* of the first samples, by others */
} race = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* With the lock held. */
static void wait_for(const bool *what) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    while (!*what && !race.took_too_long)
        race.took_too_long = pthread_cond_timedwait(&race.changed, &race.lock, &until) != 0;
}

/* The worker has found its samples. */
static void note_walker(void) {
    pthread_mutex_lock(&race.lock);
    if (race.is_armed && !race.has_walker) {
        race.has_walker = true;
        race.walker = pthread_self();
        wait_for(&race.has_overtaken);
    }
    pthread_mutex_unlock(&race.lock);
}

static bool reads_ahead; /* as after slow reads */

void __real_presto__worker_draw(presto__worker *worker, presto_error *failure_out);
void __wrap_presto__worker_draw(presto__worker *worker, presto_error *failure_out);
void __wrap_presto__worker_draw(presto__worker *worker, presto_error *failure_out) {
    if (reads_ahead)
        atomic_store(&worker->loader->read_ahead.samples, 64);
    __real_presto__worker_draw(worker, failure_out);
    note_walker();
}

presto_status __real_presto__worker_walk(presto__worker *worker, size_t first, size_t *count_io,
                                         presto_error *err);
presto_status __wrap_presto__worker_walk(presto__worker *worker, size_t first, size_t *count_io,
                                         presto_error *err);
presto_status __wrap_presto__worker_walk(presto__worker *worker, size_t first, size_t *count_io,
                                         presto_error *err) {
    presto_status status = __real_presto__worker_walk(worker, first, count_io, err);
    note_walker();
    return status;
}

void __real_presto__cache_put(presto__cache *cache, const presto_sample *sample);
void __wrap_presto__cache_put(presto__cache *cache, const presto_sample *sample);
void __wrap_presto__cache_put(presto__cache *cache, const presto_sample *sample) {
    bool is_first = sample->number < STORED_FIRST;
    __real_presto__cache_put(cache, sample);
    pthread_mutex_lock(&race.lock);
    bool is_walker = race.has_walker && pthread_equal(race.walker, pthread_self());
    if (race.is_armed && is_walker) {
        race.goes_on = true;
        pthread_cond_broadcast(&race.changed);
    } else if (race.is_armed && is_first && ++race.stored == STORED_FIRST) {
        race.has_overtaken = true;
        pthread_cond_broadcast(&race.changed);
        wait_for(&race.goes_on);
    }
    pthread_mutex_unlock(&race.lock);
}

/* Is the stream the same if the next epoch overtakes the first worker? */
static void assert_overtaken(presto_shuffle_kind shuffle) {
    static events got, wanted;
    files set = {.dir = presto_check_temp_dir(), .count = 1};
    snprintf(set.paths[0], sizeof set.paths[0], "%s/a.tfrecord", set.dir);
    set.list[0] = set.paths[0];
    write_numbers(set.paths[0], 60);
    opened_files counted, walked;
    presto_error err;
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.batch_samples = options.memory.block_samples = 10;
    options.range.epochs = 2; /* a third one could store all of them meanwhile */
    options.cache.bytes = 4 << 20;
    options.order.shuffle = shuffle;
    options.order.shuffle_window = 1; /* the order is that of the records */
    ck_assert_ok(open_files(&set, false, false, &counted, &err), &err);
    (void)run(&counted, options, SIZE_MAX, &wanted, NULL);
    close_files(&counted);
    ck_assert_ok(open_files(&set, false, true, &walked, &err), &err);
    options.threads = 3;
    race.is_armed = true;
    (void)run(&walked, options, SIZE_MAX, &got, NULL);
    race.is_armed = false;
    ck_assert_msg(race.goes_on && !race.took_too_long, "no epoch has overtaken the first worker");
    assert_same(&got, &wanted, 0, 0);
    close_files(&walked);
    remove_files(&set);
}

START_TEST(the_next_epoch_may_overtake_a_worker_that_has_walked) {
    start_random();
    assert_overtaken(PRESTO_SHUFFLE_NONE);
}
END_TEST

START_TEST(the_next_epoch_may_overtake_a_worker_that_has_drawn) {
    start_random();
    assert_overtaken(PRESTO_SHUFFLE_BUFFER);
}
END_TEST

/* The walk ends while samples behind it are told to the kernel. */
START_TEST(an_epoch_without_a_whole_batch_is_empty_on_slow_storage_too) {
    static events got;
    start_random();
    files set = {.dir = presto_check_temp_dir(), .count = 1};
    snprintf(set.paths[0], sizeof set.paths[0], "%s/a.tfrecord", set.dir);
    set.list[0] = set.paths[0];
    write_numbers(set.paths[0], 60);
    for (unsigned threads = 0; threads <= 2; threads++) {
        opened_files walked;
        presto_error err;
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.batch_samples = 100;
        options.range.drop_last = true;
        options.range.epochs = 2;
        options.order.shuffle = PRESTO_SHUFFLE_BUFFER;
        options.order.shuffle_window = 8;
        options.threads = threads;
        ck_assert_ok(open_files(&set, false, true, &walked, &err), &err);
        reads_ahead = true;
        got.count = got.skipped_count = 0;
        (void)run(&walked, options, SIZE_MAX, &got, NULL);
        reads_ahead = false;
        ck_assert_uint_eq(got.count, 0);
        close_files(&walked);
    }
    remove_files(&set);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        an_epoch_without_a_whole_batch_is_empty_on_slow_storage_too,
        the_next_epoch_may_overtake_a_worker_that_has_walked,
        the_next_epoch_may_overtake_a_worker_that_has_drawn,
    };
    return presto_check_main("walk_overtake", tests, sizeof tests / sizeof tests[0], 300);
}
