/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_internal.h"
#include "presto_check.h"

#include <presto/tensor.h>

START_TEST(a_buffer_keeps_what_was_appended_while_it_grows) {
    presto_buffer buffer = {0};
    for (unsigned i = 0; i < 10000; i++) {
        uint8_t byte = (uint8_t)i;
        ck_assert_ok(presto_buffer_append(&buffer, presto_span_of(&byte, 1), NULL), NULL);
    }
    ck_assert_uint_eq(buffer.bytes, 10000);
    for (unsigned i = 0; i < 10000; i++)
        ck_assert_uint_eq(buffer.data[i], (uint8_t)i);
    ck_assert_status(presto_buffer_reserve(&buffer, SIZE_MAX, NULL), PRESTO_ERR_MEMORY, NULL);
    ck_assert_uint_eq(buffer.bytes, 10000);
    presto_buffer_done(&buffer);
}
END_TEST

START_TEST(an_arena_stops_allocating_after_its_first_rounds) {
    presto_arena arena;
    presto_arena_init(&arena, 1024);
    size_t held = 0;
    for (int round = 0; round < 5; round++) {
        for (size_t size = 1; size < 5000; size += 37) {
            uint8_t *piece = presto_arena_alloc(&arena, size, 64);
            ck_assert_ptr_nonnull(piece);
            ck_assert_uint_eq((uintptr_t)piece % 64, 0);
            memset(piece, round, size);
        }
        if (round >= 2)
            ck_assert_uint_eq(arena.total_bytes, held);
        presto_arena_reset(&arena);
        held = arena.total_bytes;
    }
    ck_assert_ptr_null(presto_arena_alloc(&arena, SIZE_MAX - 8, 64));
    presto_arena_done(&arena);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(memory_apart_is_zeroed_and_begins_and_ends_with_whole_lines) {
    uint8_t *pieces[64];
    for (size_t i = 0; i < 64; i++) {
        pieces[i] = presto__memory_apart(i + 1, 7);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % PRESTO__APART_BYTES, 0);
        size_t whole = (i + 1) * 7 + (PRESTO__APART_BYTES - 1);
        whole -= whole % PRESTO__APART_BYTES;
        for (size_t j = 0; j < whole; j++) /* the rest of the last line is its own as well */
            ck_assert_uint_eq(pieces[i][j], 0);
        memset(pieces[i], 0xff, whole);
    }
    for (size_t i = 0; i < 64; i++)
        free(pieces[i]);
    ck_assert_ptr_null(presto__memory_apart(SIZE_MAX / 2, 3));
    ck_assert_ptr_null(presto__memory_apart(SIZE_MAX - 5, 1));
}
END_TEST

START_TEST(shapes_that_overflow_are_refused) {
    presto_tensor_spec spec = {PRESTO_FLOAT32, 3, {INT64_MAX, INT64_MAX, 3}};
    size_t bytes = 77;
    presto_error err;
    ck_assert_status(presto_spec_bytes(&spec, &bytes, &err), PRESTO_ERR_LIMIT, &err);
    spec = (presto_tensor_spec){PRESTO_FLOAT32, 2, {-1, 3}};
    ck_assert_status(presto_spec_bytes(&spec, &bytes, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_str_eq(err.message, "shape of float32[?,3] is not known");
    ck_assert_uint_eq(bytes, 77);
    spec = (presto_tensor_spec){PRESTO_FLOAT32, 2, {0, 3}};
    ck_assert_ok(presto_spec_bytes(&spec, &bytes, &err), &err);
    ck_assert_uint_eq(bytes, 0);
    const int64_t huge = (int64_t)1 << 62;
    spec = (presto_tensor_spec){PRESTO_FLOAT32, 3, {huge, huge, 0}};
    ck_assert_status(presto_spec_bytes(&spec, &bytes, &err), PRESTO_ERR_LIMIT, &err);
    spec = (presto_tensor_spec){PRESTO_FLOAT32, 2, {0, huge}};
    ck_assert_status(presto_spec_bytes(&spec, &bytes, &err), PRESTO_ERR_LIMIT, &err);
    spec = (presto_tensor_spec){PRESTO_FLOAT64, 0, {0}};
    ck_assert_ok(presto_spec_bytes(&spec, &bytes, &err), &err);
    ck_assert_uint_eq(bytes, 8);
}
END_TEST

START_TEST(an_error_is_one_line_with_file_record_and_byte) {
    presto_error err;
    char text[256];
    presto_fail(&err, PRESTO_ERR_CORRUPT, 4711, "data CRC differs");
    presto_error_set_record(&err, 3);
    presto_error_set_file(&err, "a.tfrecord");
    presto_error_set_file(&err, "ignored");
    presto_error_format(&err, text, sizeof text);
    ck_assert_str_eq(text, "a.tfrecord: record 3: data CRC differs (at byte 4711)");
    presto_fail_errno(&err, 2, "b", "cannot open");
    presto_error_format(&err, text, sizeof text);
    ck_assert_str_eq(text, "b: cannot open: No such file or directory");
    presto_error_format(&err, text, 4);
    ck_assert_str_eq(text, "b: ");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_buffer_keeps_what_was_appended_while_it_grows,
        an_arena_stops_allocating_after_its_first_rounds,
        memory_apart_is_zeroed_and_begins_and_ends_with_whole_lines,
        shapes_that_overflow_are_refused,
        an_error_is_one_line_with_file_record_and_byte,
    };
    return presto_check_main("span", tests, sizeof tests / sizeof tests[0], 30);
}
