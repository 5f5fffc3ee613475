/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of the disk cache: entries as they were put, damage refused, digests. */
#define _DEFAULT_SOURCE /* flock */
#include "cache/disk_internal.h"

#include "cache_check.h"

/* ---- entries ---- */

static const uint8_t pixels[105] = {1, 2, 3, 250, 9};

#define FEATURES 8

/* A feature of every kind. */
static void make_features(presto_feature features[FEATURES]) {
    static const int64_t label = -3;
    static const float floats[2] = {1.5F, -0.0F};
    static presto_span words[3];
    words[0] = presto_span_of_text("a");
    words[1] = (presto_span){NULL, 0};
    words[2] = presto_span_of("\0three", 6);
    memset(features, 0, FEATURES * sizeof *features);
    features[0] = (presto_feature){.name = presto_span_of_text("label"),
                                   .encoding = PRESTO_ENCODE_INT64,
                                   .tensor.spec = {.dtype = PRESTO_INT64}};
    features[0].tensor.data = &label;
    features[1] = (presto_feature){.name = presto_span_of_text("image"),
                                   .encoding = PRESTO_ENCODE_TENSOR,
                                   .tensor.spec = {PRESTO_UINT8, 3, {5, 7, 3}}};
    features[1].tensor.data = pixels;
    features[2] = (presto_feature){.name = presto_span_of_text("words"),
                                   .encoding = PRESTO_ENCODE_BYTES,
                                   .tensor.spec = {PRESTO_STRING, 1, {3}}};
    features[2].tensor.strings = words;
    features[3] = (presto_feature){.name = presto_span_of_text("floats"),
                                   .encoding = PRESTO_ENCODE_FLOAT,
                                   .tensor.spec = {PRESTO_FLOAT32, 1, {2}}};
    features[3].tensor.data = floats;
    features[4] =
        (presto_feature){.name = presto_span_of_text("nothing"), .encoding = PRESTO_ENCODE_NONE};
    features[5] = (presto_feature){.name = presto_span_of_text("empty"),
                                   .encoding = PRESTO_ENCODE_TENSOR,
                                   .tensor.spec = {PRESTO_FLOAT64, 2, {0, 4}}};
    features[6] = (presto_feature){.name = {NULL, 0},
                                   .encoding = PRESTO_ENCODE_TENSOR,
                                   .tensor.spec = {PRESTO_INT16, 8, {1, 1, 2, 1, 3, 1, 1, 1}}};
    features[6].tensor.data = pixels;
    features[7] = (presto_feature){.name = presto_span_of_text("none of them"),
                                   .encoding = PRESTO_ENCODE_BYTES,
                                   .tensor.spec = {PRESTO_STRING, 1, {0}}};
}

static void check_features(const presto_sample *sample, const presto_feature *wanted) {
    ck_assert_uint_eq(sample->feature_count, FEATURES);
    for (size_t i = 0; i < FEATURES; i++) {
        const presto_feature *got = &sample->features[i];
        ck_assert(presto_span_equal(got->name, wanted[i].name));
        ck_assert_int_eq(got->encoding, wanted[i].encoding);
        if (!presto__feature_has_value(got))
            continue;
        ck_assert(presto_spec_equal(&got->tensor.spec, &wanted[i].tensor.spec));
        uint64_t count = presto_spec_elements(&got->tensor.spec);
        if (got->tensor.spec.dtype != PRESTO_STRING && count > 0)
            ck_assert_mem_eq(got->tensor.data, wanted[i].tensor.data,
                             presto_tensor_bytes(&got->tensor));
        for (uint64_t j = 0; got->tensor.spec.dtype == PRESTO_STRING && j < count; j++)
            ck_assert(presto_span_equal(got->tensor.strings[j], wanted[i].tensor.strings[j]));
    }
}

START_TEST(an_entry_comes_back_as_it_was_put) {
    presto_feature features[FEATURES];
    make_features(features);
    presto_sample sample = {.features = features, .feature_count = FEATURES, .number = 77};
    presto_buffer stored = {0};
    presto_error err;
    for (int i = 0; i < 3; i++)
        ck_assert_ok(presto__disk_entry_append(&stored, &sample, &err), &err);
    size_t bytes = stored.bytes / 3;
    ck_assert_uint_eq(stored.bytes % (3 * (size_t)PRESTO__DISK_ALIGN), 0);
    ck_assert_mem_eq(stored.data, stored.data + bytes, bytes);
    uint8_t *copy = aligned_alloc(PRESTO__DISK_ALIGN, bytes);
    memcpy(copy, stored.data + 2 * bytes, bytes);
    presto_span entry = presto_span_of(copy, bytes);
    presto_arena arena = {0};
    presto_sample got;
    ck_assert_ok(presto__disk_entry_read(entry, 77, NULL, NULL, &err), &err);
    ck_assert_ok(presto__disk_entry_read(entry, 77, &arena, &got, &err), &err);
    ck_assert_uint_eq(got.number, 77);
    check_features(&got, features);
    ck_assert_uint_eq((uintptr_t)got.features[1].tensor.data % PRESTO__DISK_ALIGN, 0);
    ck_assert_status(presto__disk_entry_read(entry, 78, NULL, NULL, &err), PRESTO_ERR_CORRUPT,
                     &err);
    presto_arena_done(&arena);
    free(copy);
    presto_buffer_done(&stored);
}
END_TEST

START_TEST(an_entry_with_a_flipped_bit_or_cut_is_refused) {
    presto_feature features[FEATURES];
    make_features(features);
    presto_sample sample = {.features = features, .feature_count = FEATURES, .number = 77};
    presto_buffer stored = {0};
    presto_error err;
    ck_assert_ok(presto__disk_entry_append(&stored, &sample, &err), &err);
    uint64_t bytes; /* without the padding of the last unit */
    memcpy(&bytes, stored.data + 16, sizeof bytes);
    ck_assert_uint_le(bytes, stored.bytes);
    presto_arena arena = {0};
    for (size_t bit = 0; bit < bytes * 8; bit++) {
        uint8_t *copy = presto_check_copy(presto_buffer_span(&stored));
        copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
        presto_span entry = presto_span_of(copy, stored.bytes);
        if (presto__disk_entry_read(entry, 77, NULL, NULL, &err) != PRESTO_ERR_CORRUPT)
            ck_abort_msg("bit %zu", bit);
        /* Whatever it contains, making a sample of it stays within it. */
        presto_sample got;
        presto_arena_reset(&arena);
        (void)presto__disk_entry_read(entry, 77, &arena, &got, NULL);
        free(copy);
    }
    for (size_t cut = 0; cut + PRESTO__DISK_ALIGN <= stored.bytes; cut++) {
        uint8_t *copy = presto_check_copy(presto_span_of(stored.data, cut));
        ck_assert_status(presto__disk_entry_read(presto_span_of(copy, cut), 77, NULL, NULL, &err),
                         PRESTO_ERR_CORRUPT, &err);
        free(copy);
    }
    presto_arena_done(&arena);
    presto_buffer_done(&stored);
}
END_TEST

START_TEST(values_that_do_not_go_with_their_encoding_are_not_stored) {
    presto_feature features[FEATURES];
    presto_buffer stored = {0};
    presto_error err;
    for (size_t i = 0; i < 4; i++) {
        make_features(features);
        features[i].tensor.spec.dtype = i == 1 ? (presto_dtype)12345 : PRESTO_INT32;
        if (i == 1 || features[i].encoding != PRESTO_ENCODE_TENSOR) {
            presto_sample sample = {.features = features, .feature_count = FEATURES};
            ck_assert_status(presto__disk_entry_append(&stored, &sample, &err), PRESTO_ERR_TYPE,
                             &err);
        }
    }
    ck_assert_uint_eq(stored.bytes, 0);
    presto_buffer_done(&stored);
}
END_TEST

START_TEST(a_header_or_table_that_was_changed_is_refused) {
    presto__disk_place places[3] = {{5, 1, 2}, {6, 3, 1}, {9, 4, 4}};
    presto__disk_head head = {.key = {{3, 4}},
                              .table_at = 8 * (uint64_t)PRESTO__DISK_ALIGN,
                              .count = 3,
                              .table_crc = presto_crc32c(0, places, sizeof places)};
    head.file_bytes = head.table_at + sizeof places;
    uint8_t bytes[PRESTO__DISK_HEADER_BYTES];
    presto__disk_head_write(&head, bytes);
    presto__disk_head got = {0};
    presto_error err;
    presto_span span = presto_span_of(bytes, sizeof bytes);
    ck_assert_ok(presto__disk_head_read(span, &got, &err), &err);
    ck_assert_uint_eq(got.key.words[0], 3);
    ck_assert_uint_eq(got.key.words[1], 4);
    ck_assert_uint_eq(got.file_bytes, head.file_bytes);
    ck_assert_ok(presto__disk_table_check(&got, places, &err), &err);
    for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert_status(presto__disk_head_read(span, &got, &err), PRESTO_ERR_CORRUPT, &err);
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    for (size_t cut = 0; cut < sizeof bytes; cut++)
        ck_assert_status(presto__disk_head_read(presto_span_of(bytes, cut), &got, &err),
                         PRESTO_ERR_CORRUPT, &err);
    for (size_t bit = 0; bit < sizeof places * 8; bit++) {
        ((uint8_t *)places)[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert_status(presto__disk_table_check(&head, places, &err), PRESTO_ERR_CORRUPT, &err);
        ((uint8_t *)places)[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    /* Places outside, with the CRC that goes with them. */
    static const presto__disk_place outside[] = {
        {1, 0, 1}, {1, 8, 1}, {1, 7, 2}, {1, UINT32_MAX, UINT32_MAX}, {1, 2, 0}};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        places[1] = outside[i];
        head.table_crc = presto_crc32c(0, places, sizeof places);
        ck_assert_status(presto__disk_table_check(&head, places, &err), PRESTO_ERR_CORRUPT, &err);
    }
}
END_TEST

START_TEST(a_table_larger_than_any_block_has_is_refused) {
    const uint32_t most = (uint32_t)(PRESTO__DISK_MOST_BLOCK_BYTES /
                                     (PRESTO__DISK_ALIGN + sizeof(presto__disk_place)));
    const struct {
        uint32_t count;
        uint64_t units; /* of header and entries */
        presto_status status;
    } cases[] = {{0, 1, PRESTO_OK},
                 {1, 1, PRESTO_ERR_CORRUPT},
                 {7, 8, PRESTO_OK},
                 {8, 8, PRESTO_ERR_CORRUPT},
                 {most, UINT32_MAX, PRESTO_OK},
                 {most + 1, UINT32_MAX, PRESTO_ERR_CORRUPT},
                 {UINT32_MAX, UINT32_MAX, PRESTO_ERR_CORRUPT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto__disk_head head = {.table_at = cases[i].units * PRESTO__DISK_ALIGN,
                                  .count = cases[i].count};
        head.file_bytes = head.table_at + head.count * sizeof(presto__disk_place);
        uint8_t bytes[PRESTO__DISK_HEADER_BYTES];
        presto__disk_head_write(&head, bytes);
        presto_error err;
        ck_assert_status(presto__disk_head_read(presto_span_of(bytes, sizeof bytes), &head, &err),
                         cases[i].status, &err);
    }
}
END_TEST

START_TEST(the_head_of_an_entry_tells_its_size_and_sample) {
    presto_feature features[FEATURES];
    make_features(features);
    presto_sample sample = {.features = features, .feature_count = FEATURES, .number = 77};
    presto_buffer stored = {0};
    presto_error err;
    ck_assert_ok(presto__disk_entry_append(&stored, &sample, &err), &err);
    ck_assert(presto__disk_entry_fits(stored.data, stored.bytes, 77));
    ck_assert(!presto__disk_entry_fits(stored.data, stored.bytes, 78));
    ck_assert(!presto__disk_entry_fits(stored.data, stored.bytes + PRESTO__DISK_ALIGN, 77));
    ck_assert(!presto__disk_entry_fits(stored.data, stored.bytes - PRESTO__DISK_ALIGN, 77));
    memset(stored.data, 0, PRESTO__DISK_ENTRY_HEAD_BYTES);
    ck_assert(!presto__disk_entry_fits(stored.data, PRESTO__DISK_ALIGN, 0));
    presto_buffer_done(&stored);
}
END_TEST

/* ---- the digest ---- */

START_TEST(digests_tell_lists_of_pieces_apart) {
    static const char *const lists[][3] = {{"ab", "c", ""}, {"a", "bc", ""}, {"abc", "", ""},
                                           {"", "abc", ""}, {"c", "ab", ""}, {"", "", "abc"}};
    presto__digest digests[6];
    for (size_t i = 0; i < 6; i++) {
        digests[i] = (presto__digest){{0}};
        for (size_t j = 0; j < 3; j++)
            presto__digest_add(&digests[i], lists[i][j], strlen(lists[i][j]));
        for (size_t j = 0; j < i; j++) {
            ck_assert_uint_ne(digests[i].state[0], digests[j].state[0]);
            ck_assert_uint_ne(digests[i].state[1], digests[j].state[1]);
        }
    }
    /* Every bit of pieces of all sizes around the block counts. */
    uint8_t piece[80] = {0};
    for (size_t bytes = 1; bytes <= sizeof piece; bytes++) {
        presto__digest zero = {{0}};
        presto__digest_add(&zero, piece, bytes);
        for (size_t bit = 0; bit < bytes * 8; bit++) {
            presto__digest one = {{0}};
            piece[bit / 8] ^= (uint8_t)(1U << bit % 8);
            presto__digest_add(&one, piece, bytes);
            piece[bit / 8] ^= (uint8_t)(1U << bit % 8);
            if (one.state[0] == zero.state[0] || one.state[1] == zero.state[1])
                ck_abort_msg("bit %zu of %zu bytes", bit, bytes);
        }
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        an_entry_comes_back_as_it_was_put,
        an_entry_with_a_flipped_bit_or_cut_is_refused,
        values_that_do_not_go_with_their_encoding_are_not_stored,
        a_header_or_table_that_was_changed_is_refused,
        a_table_larger_than_any_block_has_is_refused,
        the_head_of_an_entry_tells_its_size_and_sample,
        digests_tell_lists_of_pieces_apart,
    };
    return presto_check_main("cache_entries", tests, sizeof tests / sizeof tests[0], 240);
}
