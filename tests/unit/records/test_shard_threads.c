/* SPDX-License-Identifier: Apache-2.0 */
/* Shards read by many threads, with more of them than descriptors. */
#define _GNU_SOURCE /* syscall */
#include <pthread.h>
#include <stdatomic.h>

#include <presto/rng.h>
#include <presto/shard.h>

#include "../../../base/rng_internal.h"
#include "shard/shard_parts_internal.h"

#include "shard_check.h"

/* ---- threads ---- */

typedef struct reader {
    pthread_t thread;
    presto_shard *shard;
    const made_file *file;
    uint64_t seed;
    bool rising;
    presto_status status;
} reader;

static void *read_randomly(void *argument) {
    reader *self = argument;
    presto_rng rng;
    presto_block block = {0};
    presto__rng_init(&rng, &(presto__rng_key){.seed = self->seed});
    for (size_t round = 0; round < 300 && self->status == PRESTO_OK; round++) {
        size_t first = self->rising ? round : presto_rng_below(&rng, self->file->count - 8);
        self->status = presto_shard_fetch(self->shard, first, 8, &block, NULL);
        for (size_t i = 0; i < 8 && self->status == PRESTO_OK; i++)
            if (!presto_span_equal(block.records[i].payload, payload(self->file, first + i)))
                self->status = PRESTO_ERR_CORRUPT;
    }
    presto_block_done(&block);
    return NULL;
}

static void read_with_threads(presto_shard *const *shards, size_t shard_count,
                              const made_file *file, bool rising) {
    reader readers[8];
    for (size_t i = 0; i < 8; i++) {
        readers[i] =
            (reader){.shard = shards[i % shard_count], .file = file, .seed = i, .rising = rising};
        ck_assert_int_eq(pthread_create(&readers[i].thread, NULL, read_randomly, &readers[i]), 0);
    }
    for (size_t i = 0; i < 8; i++) {
        pthread_join(readers[i].thread, NULL);
        ck_assert_int_eq(readers[i].status, PRESTO_OK);
    }
}

START_TEST(threads_read_one_shard_at_once) {
    made_file file = make_file("data.tfrecord", 400, 500, NULL);
    for (int ways = 0; ways < 4; ways++) {
        presto_shard *shard = open_shard(file.path, (ways & 1) != 0, (ways & 2) != 0);
        read_with_threads(&shard, 1, &file, false);
        presto_shard_free(shard);
    }
    drop_file(&file);
}
END_TEST

START_TEST(threads_read_one_compressed_shard_at_once) {
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.compression = PRESTO_FILE_GZIP;
    made_file file = make_file("data.tfrecord.gz", 400, 500, &options);
    presto_shard *shard = open_shard(file.path, false, false);
    read_with_threads(&shard, 1, &file, true);
    presto_shard_free(shard);
    drop_file(&file);
}
END_TEST

START_TEST(more_shards_than_descriptors_are_closed_and_opened_again) {
    made_file file = make_file("data.tfrecord", 400, 500, NULL);
    presto__fd_pool pool;
    ck_assert_ok(presto__fd_pool_init(&pool, &err), &err);
    pool.limit = 3;
    presto_shard *shards[10];
    for (size_t i = 0; i < 10; i++) {
        ck_assert_ok(presto__shard_open(file.path, NULL, &pool, &shards[i], &err), &err);
        ck_assert_uint_le(pool.open_count, 3);
    }
    presto_block block = {0};
    for (size_t round = 0; round < 50; round++) {
        check_range(shards[round * 7 % 10], &file, round * 3, 20, &block);
        ck_assert_uint_le(pool.open_count, 3);
    }
    presto__fd_pool_close_idle(&pool);
    ck_assert_uint_eq(pool.open_count, 0);
    read_with_threads(shards, 8, &file, false);
    read_with_threads(shards, 4, &file, false); /* two in each, which open it again together */
    for (size_t i = 0; i < 10; i++)             /* threads that read at once may have opened more */
        check_range(shards[i], &file, 0, 1, &block);
    ck_assert_uint_le(pool.open_count, 3);
    /* A file that was replaced is noticed when it is opened again. */
    write_file(&file, NULL);
    size_t replaced = 0;
    for (size_t i = 0; i < 10; i++) {
        presto_status status = presto_shard_fetch(shards[i], 0, 1, &block, &err);
        replaced += status == PRESTO_ERR_CORRUPT;
        ck_assert(status == PRESTO_OK || status == PRESTO_ERR_CORRUPT);
    }
    ck_assert_uint_ge(replaced, 7);
    for (size_t i = 0; i < 10; i++)
        presto_shard_free(shards[i]);
    ck_assert_uint_eq(pool.open_count, 0);
    presto__fd_pool_done(&pool);
    presto_block_done(&block);
    drop_file(&file);
}
END_TEST

START_TEST(files_that_were_opened_while_all_were_busy_are_closed_afterwards) {
    made_file file = make_file("data.tfrecord", 5, 50, NULL);
    presto__fd_pool pool;
    presto_shard *shards[10];
    presto_block block = {0};
    ck_assert_ok(presto__fd_pool_init(&pool, &err), &err);
    pool.limit = 3;
    for (size_t i = 0; i < 10; i++)
        ck_assert_ok(presto__shard_open(file.path, NULL, &pool, &shards[i], &err), &err);
    for (size_t i = 0; i < 6; i++) {
        presto__object object;
        ck_assert_ok(presto__shard_acquire(shards[i], &object, &err), &err);
    }
    ck_assert_uint_eq(pool.open_count, 6);
    for (size_t i = 0; i < 6; i++)
        presto__shard_release(shards[i]);
    check_range(shards[9], &file, 0, 1, &block);
    ck_assert_uint_eq(pool.open_count, 3);
    for (size_t i = 0; i < 10; i++)
        presto_shard_free(shards[i]);
    presto__fd_pool_done(&pool);
    presto_block_done(&block);
    drop_file(&file);
}
END_TEST

static atomic_ulong looked_at;

int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock) {
    atomic_fetch_add(&looked_at, 1);
    return __real_pthread_mutex_trylock(lock);
}

START_TEST(closing_a_file_does_not_look_at_all_that_are_open) {
    enum { SHARDS = 600, LIMIT = 200, FETCHES = 3000 };
    made_file file = make_file("data.tfrecord", 5, 50, NULL);
    presto__fd_pool pool;
    presto_shard *shards[SHARDS];
    presto_block block = {0};
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = 7});
    ck_assert_ok(presto__fd_pool_init(&pool, &err), &err);
    pool.limit = LIMIT;
    for (size_t i = 0; i < SHARDS; i++)
        ck_assert_ok(presto__shard_open(file.path, NULL, &pool, &shards[i], &err), &err);
    atomic_store(&looked_at, 0);
    for (size_t i = 0; i < FETCHES; i++) {
        size_t at = (size_t)presto_rng_below(&rng, SHARDS);
        check_range(shards[at], &file, 0, 1, &block);
        if (i % 2 == 0) /* some are used more than once */
            check_range(shards[at], &file, 2, 1, &block);
        ck_assert_uint_le(pool.open_count, LIMIT);
    }
    ck_assert_uint_ge(atomic_load(&looked_at), FETCHES / 2);
    ck_assert_uint_le(atomic_load(&looked_at), (uintmax_t)4 * FETCHES);
    for (size_t i = 0; i < SHARDS; i++)
        presto_shard_free(shards[i]);
    presto__fd_pool_done(&pool);
    presto_block_done(&block);
    drop_file(&file);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        threads_read_one_shard_at_once,
        threads_read_one_compressed_shard_at_once,
        more_shards_than_descriptors_are_closed_and_opened_again,
        files_that_were_opened_while_all_were_busy_are_closed_afterwards,
        closing_a_file_does_not_look_at_all_that_are_open,
    };
    return presto_check_main("shard_threads", tests, sizeof tests / sizeof tests[0], 120);
}
