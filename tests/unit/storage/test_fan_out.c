/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are done together: all of them, at once, and the first failure. */
#include <stdatomic.h>
#include <time.h>

#include "fan_out_internal.h"
#include "play_internal.h"
#include "presto_check.h"

enum { MANY = 1000, TOGETHER = 4 };

static atomic_uint done[MANY];

static presto_status count_it(void *user, size_t i, presto_error *err) {
    (void)user, (void)err;
    atomic_fetch_add(&done[i], 1);
    return PRESTO_OK;
}

START_TEST(each_job_is_done_once) {
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, MANY};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        presto_error err;
        for (size_t i = 0; i < MANY; i++)
            atomic_store(&done[i], 0);
        ck_assert_ok(presto__fan_out(counts[c], count_it, NULL, &err), &err);
        for (size_t i = 0; i < MANY; i++)
            ck_assert_uint_eq(atomic_load(&done[i]), i < counts[c]);
    }
}
END_TEST

/* Each of the first jobs waits for the others: one by one they would never end. */
static presto_status meet(void *user, size_t i, presto_error *err) {
    atomic_uint *inside = user;
    (void)i, (void)err;
    atomic_fetch_add(inside, 1);
    while (atomic_load(inside) < TOGETHER)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return PRESTO_OK;
}

START_TEST(jobs_that_take_long_run_at_once) {
    presto_error err;
    atomic_uint inside = 0;
    ck_assert_ok(presto__fan_out(TOGETHER, meet, &inside, &err), &err);
    ck_assert_uint_eq(inside, TOGETHER);
}
END_TEST

/* Jobs 7, 8, ... fail: 9 and those behind it before 7 does, 8 after it. */
static presto_status fail_late(void *user, size_t i, presto_error *err) {
    (void)user;
    atomic_fetch_add(&done[i], 1);
    long ms = i < 7 ? 2 : i == 7 ? 20 : i == 8 ? 50 : 1;
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
    return i < 7 ? PRESTO_OK : presto_fail(err, PRESTO_ERR_CORRUPT, i, "job %zu", i);
}

START_TEST(the_failure_is_that_of_the_first_job_that_fails) {
    presto_error err;
    size_t begun = 0;
    for (size_t i = 0; i < MANY; i++)
        atomic_store(&done[i], 0);
    ck_assert_int_eq(presto__fan_out(MANY, fail_late, NULL, &err), PRESTO_ERR_CORRUPT);
    ck_assert_str_eq(err.message, "job 7");
    for (size_t i = 0; i < MANY; i++)
        begun += atomic_load(&done[i]);
    ck_assert_uint_ge(begun, 8);
    ck_assert_uint_lt(begun, 100);
    ck_assert_int_eq(presto__fan_out(MANY, fail_late, NULL, NULL), PRESTO_ERR_CORRUPT);
}
END_TEST

static presto_status read_it(void *user, size_t i, presto_error *err) {
    presto__storage_thread *thread = presto__storage_bound();
    (void)err;
    ck_assert_ptr_nonnull(thread);
    ck_assert_ptr_eq(thread->storage, user);
    presto__storage_read(thread, presto__storage_begin(thread),
                         &(presto__storage_piece){.file = 1, .offset = i * 1000, .bytes = 10});
    return PRESTO_OK;
}

START_TEST(threads_read_from_the_storage_of_the_caller) {
    presto_error err;
    presto__played_storage storage;
    presto__storage_thread caller;
    const presto_storage limits = {.latency_s = 1e-4};
    ck_assert_ok(presto__storage_init(&storage, &limits, NULL, &err), &err);
    presto__storage_thread_init(&caller, &storage);
    presto__storage_thread *before = presto__storage_bind(&caller);
    ck_assert_ok(presto__fan_out(MANY, read_it, &storage, &err), &err);
    ck_assert_ptr_eq(presto__storage_bind(before), &caller);
    ck_assert_uint_eq(caller.reads, MANY);
    ck_assert_uint_gt(caller.wait_ns, 0);
    presto__storage_done(&storage);
}
END_TEST

static bool at_once(void *user) {
    atomic_uint *asked = user;
    atomic_fetch_add(asked, 1);
    return true;
}

START_TEST(the_caller_ends_what_others_wait_for) {
    presto_error err;
    presto__played_storage storage;
    presto__storage_thread caller;
    atomic_uint asked = 0;
    const presto_storage limits = {.latency_s = 1000};
    ck_assert_ok(presto__storage_init(&storage, &limits, NULL, &err), &err);
    presto__storage_thread_init(&caller, &storage);
    caller.stop = at_once;
    caller.stop_user = &asked;
    presto__storage_thread *before = presto__storage_bind(&caller);
    ck_assert_ok(presto__fan_out(MANY, read_it, &storage, &err), &err);
    (void)presto__storage_bind(before);
    ck_assert_uint_gt(asked, 0);
    presto__storage_done(&storage);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        each_job_is_done_once,
        jobs_that_take_long_run_at_once,
        the_failure_is_that_of_the_first_job_that_fails,
        threads_read_from_the_storage_of_the_caller,
        the_caller_ends_what_others_wait_for,
    };
    return presto_check_main("fan_out", tests, sizeof tests / sizeof tests[0], 60);
}
