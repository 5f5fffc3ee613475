/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: published bytes, every flipped bit, every cut, limits, and finding the next whole one. */
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <stdio.h>

#include <presto/frame.h>

#define MAX PRESTO_FRAME_MAX_PAYLOAD_BYTES

static presto_error err;

static presto_span append(presto_buffer *buffer, const char *text) {
    size_t start = buffer->bytes;
    ck_assert_ok(presto__frame_append(buffer, presto_span_of_text(text), &err), &err);
    return presto_span_of(buffer->data + start, buffer->bytes - start);
}

static void check_bytes(const char *payload, const char *hex) {
    presto_buffer buffer = {0};
    presto_span frame = append(&buffer, payload);
    ck_assert_uint_eq(frame.bytes * 2, strlen(hex));
    for (size_t i = 0; i < frame.bytes; i++) {
        char pair[3];
        snprintf(pair, sizeof pair, "%02x", frame.data[i]);
        ck_assert_mem_eq(pair, hex + 2 * i, 2);
    }
    presto_span got;
    ck_assert_ok(
        presto__frame_parse(frame, 0, &(presto__frame_rules){MAX, PRESTO_CHECK_FULL}, &got, &err),
        &err);
    ck_assert(presto_span_is(got, payload));
    presto_buffer_done(&buffer);
}

START_TEST(known_records_have_the_known_bytes) {
    check_bytes("", "000000000000000029039807d8ea82a2");
    check_bytes("a", "01000000000000000175de4161786ee428");
    check_bytes("abc", "0300000000000000b099490e6162636e57f121");
}
END_TEST

START_TEST(nothing_is_the_end) {
    presto_span payload;
    ck_assert_status(presto__frame_parse(presto_span_of(NULL, 0), 5,
                                         &(presto__frame_rules){MAX, PRESTO_CHECK_FULL}, &payload,
                                         &err),
                     PRESTO_END, &err);
}
END_TEST

START_TEST(every_cut_is_truncation_and_nothing_is_read_past_it) {
    presto_buffer buffer = {0};
    append(&buffer, "some payload");
    for (size_t cut = 1; cut < buffer.bytes; cut++) {
        uint8_t *copy = presto_check_copy(presto_span_of(buffer.data, cut));
        presto_span payload;
        for (int verify = PRESTO_CHECK_FULL; verify <= PRESTO_CHECK_NONE; verify++) {
            ck_assert_status(presto__frame_parse(presto_span_of(copy, cut), 77,
                                                 &(presto__frame_rules){MAX, (presto_checks)verify},
                                                 &payload, &err),
                             PRESTO_ERR_TRUNCATED, &err);
            ck_assert_uint_eq(err.offset, 77);
        }
        free(copy);
    }
    presto_buffer_done(&buffer);
}
END_TEST

START_TEST(messages_say_one_byte_and_two_bytes) {
    static const struct {
        const char *payload, *crc, *limit;
    } cases[] = {
        {"a", "CRC of the record's 1 byte differs", "record of 1 byte, limit 0"},
        {"ab", "CRC of the record's 2 bytes differs", "record of 2 bytes, limit 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_buffer buffer = {0};
        append(&buffer, cases[i].payload);
        presto_span frame = presto_span_of(buffer.data, buffer.bytes), payload;
        presto__frame_parse(frame, 0, &(presto__frame_rules){0, PRESTO_CHECK_FULL}, &payload, &err);
        ck_assert_str_eq(err.message, cases[i].limit);
        buffer.data[buffer.bytes - 1] ^= 1;
        presto__frame_parse(frame, 0, &(presto__frame_rules){MAX, PRESTO_CHECK_FULL}, &payload,
                            &err);
        ck_assert_str_eq(err.message, cases[i].crc);
        presto_buffer_done(&buffer);
    }
}
END_TEST

START_TEST(every_flipped_bit_is_noticed) {
    presto_buffer buffer = {0};
    append(&buffer, "some payload");
    for (size_t bit = 0; bit < buffer.bytes * 8; bit++) {
        uint8_t *copy = presto_check_copy(presto_buffer_span(&buffer));
        copy[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        presto_span payload;
        ck_assert_status(presto__frame_parse(presto_span_of(copy, buffer.bytes), 3,
                                             &(presto__frame_rules){MAX, PRESTO_CHECK_FULL},
                                             &payload, &err),
                         PRESTO_ERR_CORRUPT, &err);
        free(copy);
    }
    presto_buffer_done(&buffer);
}
END_TEST

START_TEST(verify_levels_check_what_they_say) {
    presto_buffer buffer = {0};
    append(&buffer, "some payload");
    presto_span in = presto_buffer_span(&buffer);
    presto_span payload;
    buffer.data[12] ^= 1;
    ck_assert_status(
        presto__frame_parse(in, 0, &(presto__frame_rules){MAX, PRESTO_CHECK_FULL}, &payload, &err),
        PRESTO_ERR_CORRUPT, &err);
    ck_assert_ok(presto__frame_parse(in, 0, &(presto__frame_rules){MAX, PRESTO_CHECK_HEADER},
                                     &payload, &err),
                 &err);
    buffer.data[8] ^= 1;
    ck_assert_status(presto__frame_parse(in, 0, &(presto__frame_rules){MAX, PRESTO_CHECK_HEADER},
                                         &payload, &err),
                     PRESTO_ERR_CORRUPT, &err);
    ck_assert_ok(
        presto__frame_parse(in, 0, &(presto__frame_rules){MAX, PRESTO_CHECK_NONE}, &payload, &err),
        &err);
    presto_buffer_done(&buffer);
}
END_TEST

START_TEST(the_limit_is_inclusive) {
    presto_buffer buffer = {0};
    append(&buffer, "12345");
    presto_span in = presto_buffer_span(&buffer);
    presto_span payload;
    ck_assert_ok(
        presto__frame_parse(in, 0, &(presto__frame_rules){6, PRESTO_CHECK_FULL}, &payload, &err),
        &err);
    ck_assert_ok(
        presto__frame_parse(in, 0, &(presto__frame_rules){5, PRESTO_CHECK_FULL}, &payload, &err),
        &err);
    ck_assert_status(
        presto__frame_parse(in, 0, &(presto__frame_rules){4, PRESTO_CHECK_FULL}, &payload, &err),
        PRESTO_ERR_LIMIT, &err);
    presto_buffer_done(&buffer);
}
END_TEST

START_TEST(lengths_near_the_top_do_not_wrap) {
    uint8_t bytes[40] = {0};
    presto_span payload;
    for (uint64_t below = 0; below < 40; below++) {
        presto__frame_write_header(UINT64_MAX - below, bytes);
        ck_assert_status(presto__frame_parse(presto_span_of(bytes, sizeof bytes), 0,
                                             &(presto__frame_rules){UINT64_MAX, PRESTO_CHECK_FULL},
                                             &payload, &err),
                         PRESTO_ERR_TRUNCATED, &err);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        known_records_have_the_known_bytes,
        nothing_is_the_end,
        every_cut_is_truncation_and_nothing_is_read_past_it,
        messages_say_one_byte_and_two_bytes,
        every_flipped_bit_is_noticed,
        verify_levels_check_what_they_say,
        the_limit_is_inclusive,
        lengths_near_the_top_do_not_wrap,
    };
    return presto_check_main("frame", tests, sizeof tests / sizeof tests[0], 60);
}
