/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C: published values, continuation, and every kernel against the portable one. */
#include "../../../base/rng_internal.h"
#include "presto_check.h"

#include <presto/rng.h>

#include "frame/frame_internal.h"

START_TEST(the_published_values_come_out) {
    uint8_t bytes[32];
    ck_assert_uint_eq(presto_crc32c(0, "123456789", 9), 0xe3069283);
    ck_assert_uint_eq(presto_crc32c(0, NULL, 0), 0);
    memset(bytes, 0, sizeof bytes);
    ck_assert_uint_eq(presto_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    ck_assert_uint_eq(presto_crc32c(0, bytes, 32), 0x62a8ab43);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    ck_assert_uint_eq(presto_crc32c(0, bytes, 32), 0x46dd794e);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    ck_assert_uint_eq(presto_crc32c(0, bytes, 32), 0x113fdb5c);
}
END_TEST

START_TEST(masking_and_unmasking_are_inverse) {
    ck_assert_uint_eq(presto_crc32c_mask(0), 0xa282ead8);
    uint32_t value = 1;
    for (int i = 0; i < 1000; i++) {
        value = value * 1664525 + 1013904223;
        ck_assert_uint_eq(presto_crc32c_unmask(presto_crc32c_mask(value)), value);
    }
}
END_TEST

START_TEST(every_length_and_alignment_agrees_with_the_portable_path) {
    enum { BYTES = 70000 };
    uint8_t *bytes = malloc(BYTES);
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)presto_rng_next(&rng);
    for (size_t length = 0; length < 1100; length++)
        for (size_t start = 0; start < 9; start++) {
            uint8_t *copy = presto_check_copy(presto_span_of(bytes + start, length));
            uint32_t want = presto__crc32c_portable(7, copy, length);
            ck_assert_uint_eq(presto_crc32c(7, copy, length), want);
            free(copy);
        }
    for (int i = 0; i < 300; i++) {
        size_t start = presto_rng_next(&rng) % 4096;
        size_t length = presto_rng_next(&rng) % (BYTES - start);
        ck_assert_uint_eq(presto_crc32c(0, bytes + start, length),
                          presto__crc32c_portable(0, bytes + start, length));
    }
    free(bytes);
}
END_TEST

START_TEST(a_crc_continues_where_it_stopped) {
    uint8_t bytes[3000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 8));
    uint32_t whole = presto_crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut += 13)
        ck_assert_uint_eq(
            presto_crc32c(presto_crc32c(0, bytes, cut), bytes + cut, sizeof bytes - cut), whole);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_published_values_come_out,
        masking_and_unmasking_are_inverse,
        every_length_and_alignment_agrees_with_the_portable_path,
        a_crc_continues_where_it_stopped,
    };
    return presto_check_main("crc32c", tests, sizeof tests / sizeof tests[0], 60);
}
