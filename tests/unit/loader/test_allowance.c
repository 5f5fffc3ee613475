/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a worker may hold beside batches. */
#include "presto_check.h"

#include "../../../loader/engine/workers_internal.h"

#define LIMIT_BYTES ((size_t)64 << 20)
#define MIB ((size_t)1 << 20)

/* A worker of a loader that has nothing else. */
typedef struct bench {
    presto_loader loader;
    presto__worker worker;
} bench;

static bench *new_bench(size_t packet_bytes, size_t held_bytes) {
    bench *made = calloc(1, sizeof *made);
    presto_error err;
    ck_assert_ptr_nonnull(made);
    ck_assert_ok(presto__pool_new(LIMIT_BYTES, &made->loader.pool, &err), &err);
    made->loader.pool->packet_bytes = packet_bytes;
    made->loader.pool->held_bytes = held_bytes;
    made->worker.loader = &made->loader;
    presto__worker_open_arena(&made->worker);
    return made;
}

static void take(bench *at, size_t bytes) {
    ck_assert_ptr_nonnull(presto_arena_alloc(&at->worker.arena, bytes, 1));
}

static void end_bench(bench *at) {
    presto_arena_done(&at->worker.arena);
    presto__pool_close(at->loader.pool);
    free(at);
}

START_TEST(workers_have_half_of_the_limit) {
    bench *at = new_bench(MIB, 8 * MIB);
    take(at, 20 * MIB);
    take(at, 8 * MIB);
    ck_assert(!at->worker.is_over);
    take(at, 8 * MIB);
    ck_assert(at->worker.is_over);
    ck_assert_uint_gt(at->loader.pool->working_bytes, LIMIT_BYTES / 2);
    end_bench(at);
}
END_TEST

START_TEST(batches_come_first) {
    bench *at = new_bench(8 * MIB, LIMIT_BYTES); /* eight are ready */
    take(at, 2 * MIB);
    ck_assert(at->worker.is_over);
    end_bench(at);
}
END_TEST

/* It exceeds the limit in any case. If its workers had nothing, they would fill it one after the
 * other, and take new memory for each sample. */
START_TEST(beside_a_batch_that_takes_the_limit_workers_have_a_quarter) {
    bench *at = new_bench(2 * LIMIT_BYTES, 2 * LIMIT_BYTES);
    take(at, 6 * MIB);
    take(at, 6 * MIB);
    ck_assert(!at->worker.is_over);
    ck_assert_uint_ge(at->loader.pool->working_bytes, 12 * MIB);
    take(at, 6 * MIB);
    ck_assert(at->worker.is_over);
    end_bench(at);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        workers_have_half_of_the_limit,
        batches_come_first,
        beside_a_batch_that_takes_the_limit_workers_have_a_quarter,
    };
    return presto_check_main("allowance", tests, sizeof tests / sizeof tests[0], 60);
}
