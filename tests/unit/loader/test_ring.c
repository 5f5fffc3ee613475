/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between two ends: what comes out is what was put in, in memory that comes back. */
#define _GNU_SOURCE /* memfd_create, seals */
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include <presto/rng.h>

#include "../../../base/rng_internal.h"
#include "ring/ring_internal.h"

#include "ring_check.h"

/* ---- batches that say by themselves what is in them ---- */

static bool same_numbers(const int64_t *a, const int64_t *b, size_t count) {
    return (a == NULL) == (b == NULL) && (a == NULL || memcmp(a, b, count * sizeof *a) == 0);
}

static void check_feature(const presto_batch_feature *got, const presto_batch_feature *wanted,
                          size_t rows) {
    size_t strings = wanted->row_offsets == NULL ? rows : (size_t)wanted->row_offsets[rows];
    ck_assert_str_eq(got->name, wanted->name);
    ck_assert_int_eq(got->layout, wanted->layout);
    ck_assert_int_eq(got->encoding, wanted->encoding);
    ck_assert(presto_spec_equal(&got->tensor.spec, &wanted->tensor.spec));
    ck_assert_uint_eq((uintptr_t)got->tensor.data % 64, 0);
    size_t bytes = presto_tensor_bytes(&wanted->tensor);
    ck_assert(bytes == 0 || memcmp(got->tensor.data, wanted->tensor.data, bytes) == 0);
    ck_assert(same_numbers(got->offsets, wanted->offsets, strings + 1));
    ck_assert(same_numbers(got->row_offsets, wanted->row_offsets, rows + 1));
    ck_assert(same_numbers(got->shapes, wanted->shapes, rows * wanted->shape_rank));
}

static void check_batch(const presto_batch *got, uint64_t number) {
    made_batch *wanted = malloc(sizeof *wanted);
    make_batch(wanted, number);
    const presto_batch *want = &wanted->batch;
    ck_assert_uint_eq(got->epoch, want->epoch);
    ck_assert_uint_eq(got->first, want->first);
    ck_assert_uint_eq(got->rows, want->rows);
    ck_assert_uint_eq(got->skipped, want->skipped);
    ck_assert_uint_eq(got->main_feature, want->main_feature);
    ck_assert_uint_eq(got->feature_count, want->feature_count);
    ck_assert_mem_eq(got->sample_numbers, want->sample_numbers, want->rows * sizeof(uint64_t));
    for (size_t i = 0; i < want->feature_count; i++)
        check_feature(&got->features[i], &want->features[i], want->rows);
    free(wanted);
}

/* ---- a writer in a thread ---- */

#define BATCH_BYTES ((size_t)64 << 10)

/* A writer and a reader on a socketpair. */
static presto_ring_reader *start_pair(writing *self, size_t ring_bytes) {
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    presto_ring_options_defaults(&self->options);
    self->options.fd = ends[0];
    self->options.ring_bytes = ring_bytes;
    options.fd = ends[1];
    start_writer(self);
    presto_ring_reader *reader;
    ck_assert_ok(presto_ring_reader_open(&options, &reader, &err), &err);
    return reader;
}

START_TEST(batches_of_every_layout_come_in_order_and_then_the_end) {
    writing self = whole;
    presto_ring_reader *reader = start_pair(&self, 2 * BATCH_BYTES);
    presto_batch *batch = NULL, *last = NULL;
    for (uint64_t i = 0; i < self.count; i++) {
        ck_assert_ok(presto_ring_reader_next(reader, &batch, &err), &err);
        check_batch(batch, i);
        presto_ring_batch_release(last);
        last = batch;
    }
    for (int i = 0; i < 2; i++)
        ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_END, &err);
    presto_ring_reader_free(reader);
    check_batch(last, self.count - 1); /* outlives the reader */
    presto_ring_batch_release(last);
    presto_ring_batch_release(NULL);
    presto_ring_reader_free(NULL);
    end_writer(&self, PRESTO_OK);
}
END_TEST

START_TEST(batches_may_be_released_in_any_order) {
    enum { HELD = 10 };
    presto_rng rng;
    presto__rng_key key = {.seed = presto_check_seed()};
    presto__rng_init(&rng, &key);
    writing self = whole;
    self.count = presto_check_rounds(2000);
    presto_ring_reader *reader = start_pair(&self, (HELD + 2) * BATCH_BYTES);
    presto_batch *held[HELD] = {NULL};
    uint64_t numbers[HELD] = {0};
    for (uint64_t i = 0; i < self.count; i++) {
        size_t at = (size_t)presto_rng_below(&rng, HELD);
        if (held[at] != NULL)
            check_batch(held[at], numbers[at]); /* nobody wrote into it meanwhile */
        presto_ring_batch_release(held[at]);
        ck_assert_ok(presto_ring_reader_next(reader, &held[at], &err), &err);
        numbers[at] = i;
    }
    presto_batch *none;
    ck_assert_status(presto_ring_reader_next(reader, &none, &err), PRESTO_END, &err);
    presto_ring_reader_free(reader);
    for (size_t i = 0; i < HELD; i++)
        presto_ring_batch_release(held[i]);
    end_writer(&self, PRESTO_OK);
}
END_TEST

/* Threads that take and release. */
typedef struct sharing {
    pthread_mutex_t lock;
    presto_ring_reader *reader;
    uint64_t rows;
} sharing;

static void *take_some(void *user) {
    sharing *self = user;
    for (;;) {
        presto_batch *batch = NULL;
        presto_error own;
        pthread_mutex_lock(&self->lock);
        presto_status status = presto_ring_reader_next(self->reader, &batch, &own);
        self->rows += status == PRESTO_OK ? batch->rows : 0;
        pthread_mutex_unlock(&self->lock);
        if (status == PRESTO_END)
            return NULL;
        ck_assert(status == PRESTO_OK || status == PRESTO_ERR_BUSY);
        presto_ring_batch_release(batch);
    }
}

START_TEST(threads_may_share_a_reader_in_turn_and_release_at_once) {
    writing self = whole;
    sharing shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .reader = start_pair(&self, 300 << 10)};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_some, &shared), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    uint64_t rows = 0;
    for (uint64_t i = 0; i < self.count; i++)
        rows += 1 + i * 7 % MOST_ROWS;
    ck_assert_uint_eq(shared.rows, rows);
    presto_ring_reader_free(shared.reader);
    end_writer(&self, PRESTO_OK);
}
END_TEST

START_TEST(a_reader_that_holds_too_much_is_told_and_may_go_on) {
    writing self = whole;
    presto_ring_reader *reader = start_pair(&self, 2 * BATCH_BYTES);
    presto_batch *held[PRESTO__RING_MOST_LIVE + 1];
    size_t count = 0;
    presto_status status;
    while ((status = presto_ring_reader_next(reader, &held[count], &err)) == PRESTO_OK)
        ck_assert_uint_le(++count, PRESTO__RING_MOST_LIVE);
    ck_assert_status(status, PRESTO_ERR_BUSY, &err);
    ck_assert_uint_ge(count, 2);
    for (size_t i = 0; i < count; i++) {
        check_batch(held[i], i);
        presto_ring_batch_release(held[i]);
    }
    ck_assert_ok(presto_ring_reader_next(reader, &held[0], &err), &err);
    check_batch(held[0], count);
    presto_ring_batch_release(held[0]);
    presto_ring_reader_free(reader);
    end_writer(&self, PRESTO_END);
}
END_TEST

START_TEST(a_batch_larger_than_the_ring_is_refused) {
    writing self = whole;
    presto_ring_reader *reader = start_pair(&self, 4096);
    presto_batch *batch = NULL;
    presto_status status;
    while ((status = presto_ring_reader_next(reader, &batch, &err)) == PRESTO_OK)
        presto_ring_batch_release(batch);
    ck_assert_status(status, PRESTO_ERR_TRUNCATED, &err);
    presto_ring_reader_free(reader);
    end_writer(&self, PRESTO_ERR_LIMIT);
}
END_TEST

START_TEST(a_failure_of_the_writer_is_told_with_its_place) {
    writing self = whole;
    self.fails_at = 3;
    presto_ring_reader *reader = start_pair(&self, 1 << 20);
    presto_batch *batch;
    for (int i = 0; i < 3; i++) {
        ck_assert_ok(presto_ring_reader_next(reader, &batch, &err), &err);
        presto_ring_batch_release(batch);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_ERR_CORRUPT, &err);
        ck_assert_str_eq(err.file, "some.tfrecord");
        ck_assert_str_eq(err.message, "this is damaged");
        ck_assert_uint_eq(err.offset, 4711);
        ck_assert_uint_eq(err.record, 12);
    }
    presto_ring_reader_free(reader);
    pthread_join(self.thread, NULL);
}
END_TEST

START_TEST(an_end_that_was_not_told_is_an_error) {
    writing self = whole;
    self.ends = false;
    self.count = 5;
    presto_ring_reader *reader = start_pair(&self, 1 << 20);
    presto_batch *batch;
    for (uint64_t i = 0; i < self.count; i++) {
        ck_assert_ok(presto_ring_reader_next(reader, &batch, &err), &err);
        presto_ring_batch_release(batch);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_ERR_TRUNCATED, &err);
    presto_ring_reader_free(reader);
    end_writer(&self, PRESTO_OK);
}
END_TEST

START_TEST(an_empty_stream_has_an_end) {
    writing self = whole;
    self.count = 0;
    presto_ring_reader *reader = start_pair(&self, 1 << 20);
    presto_batch *batch;
    ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_END, &err);
    presto_ring_reader_free(reader);
    end_writer(&self, PRESTO_OK);
}
END_TEST

/* ---- waiting ---- */

static bool stop_at_third(void *user) {
    return ++*(int *)user >= 3;
}

START_TEST(waits_can_be_ended) {
    int ends[2], asked = 0;
    presto_ring_options options;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    presto_ring_options_defaults(&options);
    options.fd = ends[0];
    options.should_stop = stop_at_third;
    options.should_stop_user = &asked;
    presto__ring_writer *writer;
    made_batch *made = malloc(sizeof *made);
    make_batch(made, 0);
    ck_assert_ok(presto__ring_writer_open(&options, &writer, &err), &err);
    ck_assert_status(presto__ring_writer_put(writer, &made->batch, &err), PRESTO_ERR_STOPPED, &err);
    presto__ring_writer_free(writer);
    asked = 0;
    options.fd = ends[1];
    presto_ring_reader *reader;
    ck_assert_status(presto_ring_reader_open(&options, &reader, &err), PRESTO_ERR_BUSY, &err);
    options.fd = -1;
    options.path = "/nowhere/at/all";
    options.wait_ns = UINT64_C(60000000000);
    ck_assert_status(presto_ring_reader_open(&options, &reader, &err), PRESTO_ERR_STOPPED, &err);
    free(made);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        batches_of_every_layout_come_in_order_and_then_the_end,
        batches_may_be_released_in_any_order,
        threads_may_share_a_reader_in_turn_and_release_at_once,
        a_reader_that_holds_too_much_is_told_and_may_go_on,
        a_batch_larger_than_the_ring_is_refused,
        a_failure_of_the_writer_is_told_with_its_place,
        an_end_that_was_not_told_is_an_error,
        an_empty_stream_has_an_end,
        waits_can_be_ended,
    };
    return presto_check_main("ring", tests, sizeof tests / sizeof tests[0], 120);
}
