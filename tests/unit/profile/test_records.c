/* SPDX-License-Identifier: Apache-2.0 */
/* Which records of a dataset codecs are tried on, and which parts of the others: records whose
 * bytes tell where they are from. */
#include <presto/shard.h>

#include <stdio.h>

#include "../../../records/records_internal.h"
#include "predict/predict_internal.h"
#include "presto_check.h"

#define TOTAL ((uint64_t)40)
#define SHARDS ((size_t)2)
#define PART ((size_t)32 << 10)

static char *dir;
static size_t sizes[TOTAL];

static uint8_t byte_of(uint64_t record, size_t at) {
    uint64_t x = (record + 1) * UINT64_C(0x9e3779b97f4a7c15) + at;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint8_t)(x >> 27);
}

/* The record has these bytes at this place. */
static void check_bytes(uint64_t record, size_t at, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != byte_of(record, at + i))
            ck_abort_msg("record %d, byte %zu differs", (int)record, at + i);
}

static void write_shard(const char *path, uint64_t from, uint64_t to) {
    presto__shard_writer_options options;
    presto__shard_writer *writer;
    presto__shard_summary summary;
    presto_error err;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    for (uint64_t r = from; r < to; r++) {
        uint8_t *bytes = malloc(sizes[r] + 1);
        for (size_t i = 0; i < sizes[r]; i++)
            bytes[i] = byte_of(r, i);
        ck_assert_ok(presto__shard_writer_append(writer, presto_span_of(bytes, sizes[r]), &err),
                     &err);
        free(bytes);
    }
    ck_assert_ok(presto__shard_writer_finish(writer, &summary, &err), &err);
    presto__shard_writer_free(writer);
}

/* Record r has `each` bytes and `more` times r. */
static void write_records(size_t each, size_t more) {
    dir = presto_check_temp_dir();
    for (uint64_t r = 0; r < TOTAL; r++)
        sizes[r] = each + more * r;
    for (size_t s = 0; s < SHARDS; s++) {
        char path[700];
        snprintf(path, sizeof path, "%s/%zu.tfrecord", dir, s);
        write_shard(path, TOTAL * s / SHARDS, TOTAL * (s + 1) / SHARDS);
    }
}

/* mean_bytes decides how many are taken; it need not be true. */
static presto__records read_records(double mean_bytes) {
    presto__records all;
    presto_error err;
    ck_assert_ok(presto__records_read(dir, mean_bytes, &all, &err), &err);
    for (size_t i = 0; i < all.count; i++) {
        ck_assert_uint_eq(all.sizes[i], sizes[all.numbers[i]]);
        ck_assert_uint_le(all.starts[i] + all.sizes[i], all.bytes.bytes);
        check_bytes(all.numbers[i], 0, all.bytes.data + all.starts[i], all.sizes[i]);
        ck_assert_uint_eq(all.numbers[i] % all.look_stride, 0);
    }
    return all;
}

static void end_records(presto__records *all) {
    presto__records_done(all);
    presto_check_remove_tree(dir);
    free(dir);
}

START_TEST(small_records_are_tried_as_they_are) {
    write_records(0, 100); /* the first one is empty */
    presto__records all = read_records(2000);
    ck_assert_uint_eq(all.count, TOTAL);
    ck_assert_uint_eq(all.look_count, 0);
    end_records(&all);
}
END_TEST

/* The step from one record to the next to try meets all of them. */
START_TEST(the_order_of_trying_meets_all_records) {
    write_records(10, 1);
    presto__records all = read_records(10);
    bool is_met[TOTAL] = {false};
    for (size_t i = 0, at = 0; i < all.count; i++, at = (at + all.step) % all.count) {
        ck_assert(!is_met[at]);
        is_met[at] = true;
    }
    end_records(&all);
}
END_TEST

/* Each record is looked at: its parts are from its start, its end, and evenly between. */
START_TEST(parts_of_all_large_records_are_looked_at) {
    write_records(7 * PART, PART / 10);
    presto__records all = read_records(12e6);
    ck_assert_uint_eq(all.count, 4);
    ck_assert_uint_eq(all.look_count, TOTAL);
    ck_assert_uint_eq(all.look_stride, 1);
    for (uint64_t r = 0; r < TOTAL; r++) {
        size_t at = r > 0 ? all.part_ends[r - 1] : 0, taken = all.part_ends[r] - at;
        const uint8_t *parts = all.parts.data + at;
        ck_assert_uint_eq(taken % PART, 0);
        ck_assert_uint_ge(taken, 2 * PART);
        ck_assert_uint_lt(taken, sizes[r]);
        ck_assert_double_eq_tol(all.weights[r] * (double)taken, (double)sizes[r], 1e-6);
        check_bytes(r, 0, parts, PART);
        size_t last = taken / PART - 1, step = (sizes[r] - PART) / last;
        for (size_t i = 1; i <= last; i++)
            check_bytes(r, step * i, parts + i * PART, PART);
        ck_assert_uint_lt(sizes[r] - (step * last + PART), last + 1); /* to its end */
    }
    end_records(&all);
}
END_TEST

START_TEST(records_that_are_not_longer_than_their_parts_are_taken_whole) {
    write_records(1000, 10);
    presto__records all = read_records(12e6);
    ck_assert_uint_eq(all.look_count, TOTAL);
    for (uint64_t r = 0, at = 0; r < TOTAL; at = all.part_ends[r++]) {
        ck_assert_uint_eq(all.part_ends[r] - at, sizes[r]);
        ck_assert_double_eq(all.weights[r], 1);
        check_bytes(r, 0, all.parts.data + at, sizes[r]);
    }
    end_records(&all);
}
END_TEST

/* As if all looks would read too much: every fourth record is looked at, and of these every third
 * one is tried. */
START_TEST(of_huge_records_some_are_looked_at) {
    write_records(100, 1);
    presto__records all = read_records(100 << 20);
    ck_assert_uint_eq(all.look_stride, 4);
    ck_assert_uint_eq(all.look_count, TOTAL / 4);
    ck_assert_uint_eq(all.count, 4);
    ck_assert_uint_eq(all.numbers[3], 36);
    for (size_t i = 0, at = 0; i < all.look_count; at = all.part_ends[i++])
        check_bytes(4 * i, 0, all.parts.data + at, sizes[4 * i]);
    end_records(&all);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        small_records_are_tried_as_they_are,
        the_order_of_trying_meets_all_records,
        parts_of_all_large_records_are_looked_at,
        records_that_are_not_longer_than_their_parts_are_taken_whole,
        of_huge_records_some_are_looked_at,
    };
    return presto_check_main("records", tests, sizeof tests / sizeof tests[0], 60);
}
