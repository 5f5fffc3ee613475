/* SPDX-License-Identifier: Apache-2.0 */
/* What the pool of packets does with memory beyond its limit. */
#include "presto_check.h"

#include "../../../loader/packet/columns_internal.h"

#define LIMIT_BYTES ((size_t)1 << 20)
#define LARGE_BYTES ((size_t)8 << 20)

static presto__pool *new_pool(void) {
    presto__pool *pool;
    presto_error err;
    ck_assert_ok(presto__pool_new(LIMIT_BYTES, &pool, &err), &err);
    return pool;
}

/* A packet of so many samples whose batches use so many bytes; the pool counts what it holds. */
static presto__packet *fill_with(presto__pool *pool, size_t samples, size_t bytes) {
    static const presto__rules rules;
    presto__packet_shape shape = {
        .count = samples, .parts = 1, .batch_rows = samples, .rules = &rules};
    presto_error err;
    pthread_mutex_lock(&pool->lock);
    presto__packet *packet = presto__pool_take_locked(pool);
    ck_assert_ptr_nonnull(packet);
    ck_assert_ok(presto__packet_setup(packet, &shape, &err), &err);
    presto__packet_clear(packet);
    ck_assert_ptr_nonnull(presto__slab_alloc(&packet->slab, bytes, 0));
    size_t held = presto__packet_memory(packet);
    presto__pool_account_locked(pool, packet->accounted_bytes, held);
    packet->accounted_bytes = held;
    pthread_mutex_unlock(&pool->lock);
    return packet;
}

static presto__packet *fill_packet(presto__pool *pool, size_t bytes) {
    return fill_with(pool, 8, bytes);
}

START_TEST(the_only_packet_beyond_the_limit_keeps_its_memory) {
    presto__pool *pool = new_pool();
    presto__packet *packet = fill_packet(pool, LARGE_BYTES);
    size_t held = pool->held_bytes;
    for (int i = 0; i < 3; i++) {
        presto__packet_release(packet, 1);
        ck_assert_ptr_eq(pool->free, packet);
        ck_assert_uint_eq(pool->held_bytes, held);
        ck_assert_ptr_eq(fill_packet(pool, LARGE_BYTES), packet);
        ck_assert_uint_eq(pool->held_bytes, held); /* it is filled again, and has not grown */
    }
    presto__packet_release(packet, 1);
    presto__pool_close(pool);
}
END_TEST

START_TEST(beside_another_packet_memory_beyond_the_limit_is_freed) {
    presto__pool *pool = new_pool();
    presto__packet *first = fill_packet(pool, LARGE_BYTES);
    presto__packet *second = fill_packet(pool, LARGE_BYTES);
    presto__packet_release(first, 1);
    ck_assert_ptr_null(pool->free);
    ck_assert_uint_eq(pool->held_bytes, second->accounted_bytes);
    presto__packet_release(second, 1); /* now it is the only one */
    ck_assert_ptr_eq(pool->free, second);
    presto__pool_close(pool);
}
END_TEST

START_TEST(what_a_smaller_batch_leaves_empty_is_freed) {
    presto__pool *pool = new_pool();
    presto__packet_release(fill_packet(pool, LARGE_BYTES), 1);
    presto__packet *packet = fill_packet(pool, LARGE_BYTES / 4);
    ck_assert_uint_gt(pool->held_bytes, LARGE_BYTES); /* still that of the large one */
    presto__packet_release(packet, 1);
    ck_assert_ptr_null(pool->free);
    ck_assert_uint_eq(pool->held_bytes, 0);
    presto__pool_close(pool);
}
END_TEST

/* An epoch often ends with a batch of few samples: the next epoch's are whole again. */
START_TEST(the_last_batch_of_an_epoch_keeps_the_memory_of_a_whole_one) {
    presto__pool *pool = new_pool();
    presto__packet *packet = fill_with(pool, 8, LARGE_BYTES);
    size_t held = pool->held_bytes;
    presto__packet_release(packet, 1);
    ck_assert_ptr_eq(fill_with(pool, 2, LARGE_BYTES / 4), packet);
    presto__packet_release(packet, 1);
    ck_assert_ptr_eq(pool->free, packet);
    ck_assert_uint_eq(pool->held_bytes, held);
    ck_assert_ptr_eq(fill_with(pool, 2, LARGE_BYTES / 16), packet); /* it would use a quarter */
    presto__packet_release(packet, 1);
    ck_assert_ptr_null(pool->free);
    ck_assert_uint_eq(pool->held_bytes, 0);
    presto__pool_close(pool);
}
END_TEST

/* Where sizes differ much, free packets that are too small would hold what a large one needs. */
START_TEST(free_packets_leave_room_for_one_of_the_expected_size) {
    presto__pool *pool = new_pool();
    presto__packet *first = fill_packet(pool, LARGE_BYTES / 4);
    presto__packet *second = fill_packet(pool, LARGE_BYTES / 4);
    presto__packet *third = fill_packet(pool, LARGE_BYTES / 4);
    size_t each = first->accounted_bytes;
    pool->limit_bytes = pool->packets_limit_bytes = pool->held_bytes + each;
    pool->packet_bytes = each + each / 4; /* about the same: there is room, and each is kept */
    presto__packet_release(first, 1);
    presto__packet_release(second, 1);
    ck_assert_uint_eq(pool->free_count, 2);
    pool->packet_bytes = each * 4; /* for which there is none */
    presto__packet_release(third, 1);
    ck_assert_uint_eq(pool->free_count, 2);
    ck_assert_uint_eq(pool->held_bytes, 2 * each);
    presto__pool_close(pool);
}
END_TEST

/* A limit for packets alone: workers have what is left of the other one. */
START_TEST(packets_may_have_less_than_all) {
    presto__pool *pool = new_pool();
    size_t part = LIMIT_BYTES / 4, most = LIMIT_BYTES - part;
    pool->packets_limit_bytes = part;
    ck_assert(presto__pool_has_room_locked(pool, part, 0));
    ck_assert(!presto__pool_has_room_locked(pool, part + 1, 0));
    ck_assert(presto__pool_has_room_locked(pool, part + 1, 1));
    pool->held_bytes = pool->working_bytes = most; /* of workers */
    ck_assert(presto__pool_has_room_locked(pool, part, 0));
    pool->held_bytes = pool->working_bytes = most + 1;
    ck_assert(!presto__pool_has_room_locked(pool, part, 0));
    ck_assert(presto__pool_has_room_locked(pool, part, 1));
    pool->held_bytes = pool->working_bytes = 0;
    presto__packet *first = fill_packet(pool, LIMIT_BYTES / 2);
    presto__packet *second = fill_packet(pool, LIMIT_BYTES / 8);
    presto__packet_release(first, 1); /* within the limit of all, beyond that of packets */
    ck_assert_ptr_null(pool->free);
    presto__packet_release(second, 1);
    ck_assert_ptr_eq(pool->free, second);
    presto__pool_close(pool);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_only_packet_beyond_the_limit_keeps_its_memory,
        beside_another_packet_memory_beyond_the_limit_is_freed,
        what_a_smaller_batch_leaves_empty_is_freed,
        the_last_batch_of_an_epoch_keeps_the_memory_of_a_whole_one,
        free_packets_leave_room_for_one_of_the_expected_size,
        packets_may_have_less_than_all,
    };
    return presto_check_main("pool", tests, sizeof tests / sizeof tests[0], 60);
}
