/* SPDX-License-Identifier: Apache-2.0 */
/* Examples: the golden bytes, odd encodings, names, and what is refused. */
#include <stdio.h>

#include <presto/example.h>

#include "example.pb-c.h"

#include "example_check.h"

static presto_error err;

static presto_feature feature_of(const char *name, presto_encoding encoding, presto_dtype dtype,
                                 int rank, int64_t count, const void *data) {
    presto_feature feature = {
        presto_span_of_text(name), encoding, {.spec = {dtype, rank, {count}}, .data = data}};
    return feature;
}

static presto_buffer from_hex(const char *hex) {
    presto_buffer buffer = {0};
    for (; hex[0] != '\0'; hex += 2) {
        unsigned byte;
        ck_assert_int_eq(sscanf(hex, "%2x", &byte), 1);
        uint8_t value = (uint8_t)byte;
        ck_assert_ok(presto_buffer_append(&buffer, presto_span_of(&value, 1), &err), &err);
    }
    return buffer;
}

static int64_t int64_at(const presto_feature *feature, size_t i) {
    int64_t value;
    ck_assert_int_eq(feature->tensor.spec.dtype, PRESTO_INT64);
    memcpy(&value, (const uint8_t *)feature->tensor.data + i * 8, 8);
    return value;
}

static float float_at(const presto_feature *feature, size_t i) {
    float value;
    ck_assert_int_eq(feature->tensor.spec.dtype, PRESTO_FLOAT32);
    memcpy(&value, (const uint8_t *)feature->tensor.data + i * 4, 4);
    return value;
}

/* Parse a copy of exactly the bytes; keep it for the views. */
static uint8_t *parse(const char *hex, presto_arena *arena, presto_sample *sample_out) {
    presto_buffer buffer = from_hex(hex);
    uint8_t *copy = presto_check_copy(presto_buffer_span(&buffer));
    ck_assert_ok(
        presto_example_parse(presto_span_of(copy, buffer.bytes), NULL, arena, sample_out, &err),
        &err);
    presto_buffer_done(&buffer);
    return copy;
}

START_TEST(the_golden_example_is_written_and_read) {
    const presto_span hi = presto_span_of_text("hi");
    const float f = 1.5F;
    const int64_t x = 1;
    presto_feature features[] = {
        feature_of("x", PRESTO_ENCODE_INT64, PRESTO_INT64, 1, 1, &x),
        feature_of("b", PRESTO_ENCODE_BYTES, PRESTO_STRING, 0, 0, &hi),
        feature_of("f", PRESTO_ENCODE_FLOAT, PRESTO_FLOAT32, 1, 1, &f),
    };
    presto_sample sample = {features, 3, 0};
    presto_buffer got = {0};
    presto_buffer want = from_hex("0a280a0b0a016212060a040a0268690a0d0a0166120812060a040000c03f"
                                  "0a0a0a017812051a030a0101");
    ck_assert_ok(presto_example_append(&got, &sample, &err), &err);
    ck_assert_uint_eq(got.bytes, want.bytes);
    ck_assert_mem_eq(got.data, want.data, want.bytes);
    presto_arena arena = {0};
    ck_assert_ok(presto_example_parse(presto_buffer_span(&got), NULL, &arena, &sample, &err), &err);
    ck_assert_uint_eq(sample.feature_count, 3);
    ck_assert(presto_span_is(find(&sample, "b")->tensor.strings[0], "hi"));
    ck_assert_int_eq(find(&sample, "b")->tensor.spec.rank, 0);
    ck_assert(float_at(find(&sample, "f"), 0) == 1.5F);
    ck_assert_int_eq(int64_at(find(&sample, "x"), 0), 1);
    ck_assert_int_eq(find(&sample, "x")->tensor.spec.rank, 0);
    presto_feature_spec specs[] = {
        {(char *)(uintptr_t) "x", PRESTO_ENCODE_INT64, {PRESTO_INT64, 1, {-1}}}};
    ck_assert_ok(presto_example_parse(presto_buffer_span(&got),
                                      &(presto_example_specs){.list = specs, .count = 1}, &arena,
                                      &sample, &err),
                 &err);
    ck_assert_int_eq(find(&sample, "x")->tensor.spec.rank, 1);
    ck_assert_int_eq(find(&sample, "x")->tensor.spec.dims[0], 1);
    /* More features than specs. */
    ck_assert_uint_eq(sample.feature_count, 3);
    ck_assert(presto_span_is(find(&sample, "b")->tensor.strings[0], "hi"));
    ck_assert(float_at(find(&sample, "f"), 0) == 1.5F);
    ck_assert_int_eq(int64_at(find(&sample, "x"), 0), 1);
    presto_arena_done(&arena);
    presto_buffer_done(&got);
    presto_buffer_done(&want);
}
END_TEST

START_TEST(the_smallest_examples_are_read) {
    presto_arena arena = {0};
    presto_sample sample;
    ck_assert_ok(presto_example_parse(presto_span_of(NULL, 0), NULL, &arena, &sample, &err), &err);
    ck_assert_uint_eq(sample.feature_count, 0);
    free(parse("0a00", &arena, &sample));
    ck_assert_uint_eq(sample.feature_count, 0);
    /* An entry without key and value. */
    free(parse("0a020a00", &arena, &sample));
    ck_assert_uint_eq(sample.feature_count, 1);
    ck_assert_uint_eq(sample.features[0].name.bytes, 0);
    ck_assert_int_eq(sample.features[0].encoding, PRESTO_ENCODE_NONE);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(a_feature_without_a_kind_is_carried) {
    presto_arena arena = {0};
    presto_sample sample;
    uint8_t *copy = parse("0a070a050a01611200", &arena, &sample);
    ck_assert_uint_eq(sample.feature_count, 1);
    ck_assert_int_eq(find(&sample, "a")->encoding, PRESTO_ENCODE_NONE);
    presto_buffer again = {0};
    ck_assert_ok(presto_example_append(&again, &sample, &err), &err);
    ck_assert_uint_eq(again.bytes, 9);
    ck_assert_mem_eq(again.data, copy, 9);
    presto_buffer_done(&again);
    free(copy);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(numbers_may_be_unpacked_or_in_several_runs) {
    presto_arena arena = {0};
    presto_sample sample;
    /* int64 unpacked: 5, -1 (ten bytes), then a packed run 7, 8 */
    uint8_t *copy = parse("0a1a"
                          "0a180a0169"
                          "1213"
                          "1a11"
                          "0805"
                          "08ffffffffffffffffff01"
                          "0a020708",
                          &arena, &sample);
    const presto_feature *feature = find(&sample, "i");
    ck_assert_int_eq(feature->tensor.spec.dims[0], 4);
    ck_assert_int_eq(int64_at(feature, 0), 5);
    ck_assert_int_eq(int64_at(feature, 1), -1);
    ck_assert_int_eq(int64_at(feature, 2), 7);
    ck_assert_int_eq(int64_at(feature, 3), 8);
    free(copy);
    /* float: unpacked 1.0, packed [2.0], packed [3.0, 4.0] */
    copy = parse("0a20"
                 "0a1e0a0166"
                 "1219"
                 "1217"
                 "0d0000803f"
                 "0a0400000040"
                 "0a080000404000008040"
                 "1000",
                 &arena, &sample);
    feature = find(&sample, "f");
    ck_assert_int_eq(feature->tensor.spec.dims[0], 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert(float_at(feature, i) == (float)(i + 1));
    free(copy);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(of_equal_names_the_last_wins) {
    presto_arena arena = {0};
    presto_sample sample;
    /* b = 1, a = 2, b = 3 */
    uint8_t *copy = parse("0a24"
                          "0a0a0a016212051a030a0101"
                          "0a0a0a016112051a030a0102"
                          "0a0a0a016212051a030a0103",
                          &arena, &sample);
    ck_assert_uint_eq(sample.feature_count, 2);
    ck_assert_int_eq(int64_at(find(&sample, "b"), 0), 3);
    ck_assert_int_eq(int64_at(find(&sample, "a"), 0), 2);
    free(copy);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(of_several_kinds_the_last_wins) {
    presto_arena arena = {0};
    presto_sample sample;
    /* int64 [1], bytes ["x"], int64 [2], int64 [3]: the lists after the last change of kind are
     * merged */
    uint8_t *copy = parse("0a1d"
                          "0a1b0a016b"
                          "1216"
                          "1a030a0101"
                          "0a030a0178"
                          "1a030a0102"
                          "1a030a0103"
                          "2200",
                          &arena, &sample);
    const presto_feature *feature = find(&sample, "k");
    ck_assert_int_eq(feature->encoding, PRESTO_ENCODE_INT64);
    ck_assert_int_eq(feature->tensor.spec.dims[0], 2);
    ck_assert_int_eq(int64_at(feature, 0), 2);
    ck_assert_int_eq(int64_at(feature, 1), 3);
    free(copy);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(unknown_fields_are_passed_over) {
    presto_arena arena = {0};
    presto_sample sample;
    /* around the one feature: varint, fixed32, fixed64, bytes, and a group with a group in it */
    uint8_t *copy = parse("1001"
                          "1d01020304"
                          "210102030405060708"
                          "2a03616263"
                          "333b3c0801"
                          "350101010134"
                          "0a0c"
                          "0a0a0a017812051a030a0109",
                          &arena, &sample);
    ck_assert_int_eq(int64_at(find(&sample, "x"), 0), 9);
    free(copy);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(ill_formed_bytes_are_corrupt) {
    static const char *const bad[] = {
        "0a",                             /* no length */
        "0a05",                           /* length past the end */
        "0aff",                           /* endless length */
        "0affffffffffffffffffff01",       /* length of 2^64 - 1 */
        "0affffffffffffffffffffff",       /* varint of more than ten bytes */
        "00",                             /* field number 0 */
        "0200",                           /* field number 0 */
        "0e",                             /* wire type 6 */
        "0f",                             /* wire type 7 */
        "8080808080800a00",               /* tag of more than 32 bits */
        "0b",                             /* group without end */
        "0b14",                           /* group with another one's end */
        "0c",                             /* end without a group */
        "0d010203",                       /* fixed32 cut */
        "0901020304050607",               /* fixed64 cut */
        "0a030a0501",                     /* map entry past the features' end */
        "0a060a040a036162",               /* key past the entry's end */
        "0a0c0a0a0a016112051a030a01ff",   /* packed varint cut */
        "0a0d0a0b0a0161120612040a020000", /* packed floats, not a multiple of 4 */
        "0a0c0a0a0a016112051a090a0102",   /* list past the feature's end */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        presto_buffer buffer = from_hex(bad[i]);
        uint8_t *copy = presto_check_copy(presto_buffer_span(&buffer));
        presto_arena arena = {0};
        presto_sample sample = {NULL, 77, 0};
        presto_status status =
            presto_example_parse(presto_span_of(copy, buffer.bytes), NULL, &arena, &sample, &err);
        ck_assert_msg(status == PRESTO_ERR_CORRUPT, "'%s' gives %s", bad[i],
                      presto_status_name(status));
        ck_assert_uint_eq(sample.feature_count, 77);
        ck_assert_uint_le(err.offset, buffer.bytes);
        presto_arena_done(&arena);
        presto_buffer_done(&buffer);
        free(copy);
    }
}
END_TEST

/* ---- against protobuf-c ---- */

START_TEST(many_unsorted_names_with_repeats_are_found) {
    presto_arena arena = {0};
    presto_buffer bytes = {0};
    /* Concatenated Examples are one Example: their features are merged, later ones winning. */
    for (int64_t i = 0; i < 3000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%05d", (int)(i * 7919 % 1000));
        presto_feature feature = feature_of(name, PRESTO_ENCODE_INT64, PRESTO_INT64, 0, 0, &i);
        presto_sample one = {&feature, 1, 0};
        ck_assert_ok(presto_example_append(&bytes, &one, &err), &err);
    }
    presto_sample sample;
    ck_assert_ok(presto_example_parse(presto_buffer_span(&bytes), NULL, &arena, &sample, &err),
                 &err);
    ck_assert_uint_eq(sample.feature_count, 1000);
    for (int64_t i = 2000; i < 3000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%05d", (int)(i * 7919 % 1000));
        ck_assert_int_eq(int64_at(find(&sample, name), 0), i);
    }
    presto_buffer_done(&bytes);
    presto_arena_done(&arena);
}
END_TEST

/*
 * Names that a hash without a key (FNV-1a) crowds into a 64th of its table: looking for one of them
 * would pass half of the others, and the test its time limit.
 */
static size_t crowded_name(size_t from, size_t count, char name[16]) {
    size_t slots = 64;
    while (slots < count * 2)
        slots *= 2;
    for (;; from++) {
        int bytes = snprintf(name, 16, "%09zx", from);
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (int i = 0; i < bytes; i++)
            hash = (hash ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
        if (((hash ^ hash >> 29) & (slots - 1)) < slots / 64)
            return from + 1;
    }
}

START_TEST(names_made_to_collide_take_no_longer_than_others) {
    enum { COUNT = 200000 };
    presto_arena arena = {0};
    presto_buffer bytes = {0};
    char name[16];
    /* Twice the same names: what is unsorted has to be looked for. */
    for (int round = 0; round < 2; round++)
        for (size_t i = 0, next = 0; i < COUNT; i++) {
            next = crowded_name(next, (size_t)2 * COUNT, name);
            int64_t value = (int64_t)i + round;
            presto_feature feature =
                feature_of(name, PRESTO_ENCODE_INT64, PRESTO_INT64, 0, 0, &value);
            presto_sample one = {&feature, 1, 0};
            ck_assert_ok(presto_example_append(&bytes, &one, &err), &err);
        }
    presto_sample sample;
    ck_assert_ok(presto_example_parse(presto_buffer_span(&bytes), NULL, &arena, &sample, &err),
                 &err);
    ck_assert_uint_eq(sample.feature_count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert(int64_at(&sample.features[i], 0) == (int64_t)i + 1);
    presto_buffer_done(&bytes);
    presto_arena_done(&arena);
}
END_TEST

/* With each feature looked for among all specs, this would take minutes. */
START_TEST(specs_may_come_in_another_order_than_the_features) {
    enum { COUNT = 20000, ROUNDS = 30 };
    presto_arena arena = {0};
    presto_buffer bytes = {0};
    static char names[COUNT][16];
    static presto_feature_spec specs[COUNT];
    static presto_feature features[COUNT];
    static int64_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%09zu", i);
        values[i] = (int64_t)i;
        features[i] = feature_of(names[i], PRESTO_ENCODE_INT64, PRESTO_INT64, 0, 0, &values[i]);
        /* Every other one is of rank 1, which the parsed feature shows. */
        specs[COUNT - 1 - i] = (presto_feature_spec){
            names[i], PRESTO_ENCODE_INT64, {PRESTO_INT64, i % 2 == 0 ? 0 : 1, {1}}};
    }
    presto_sample sample = {features, COUNT, 0};
    ck_assert_ok(presto_example_append(&bytes, &sample, &err), &err);
    for (size_t round = 0; round < ROUNDS; round++) {
        presto_arena_reset(&arena);
        ck_assert_ok(
            presto_example_parse(presto_buffer_span(&bytes),
                                 &(presto_example_specs){.list = specs, .count = COUNT - round},
                                 &arena, &sample, &err),
            &err);
        ck_assert_uint_eq(sample.feature_count, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            bool has_spec = i >= round;
            ck_assert_int_eq(sample.features[i].tensor.spec.rank, has_spec ? (int)(i % 2) : 0);
            ck_assert(int64_at(&sample.features[i], 0) == (int64_t)i);
        }
    }
    presto_buffer_done(&bytes);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(a_hundred_features_are_written_sorted) {
    presto_feature features[100];
    char names[100][8];
    const int64_t value = -5;
    for (size_t i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "%zu", i * 37 % 100);
        features[i] = feature_of(names[i], PRESTO_ENCODE_INT64, PRESTO_INT64, 0, 0, &value);
    }
    presto_sample sample = {features, 100, 0};
    presto_buffer bytes = {0};
    presto_arena arena = {0};
    ck_assert_ok(presto_example_append(&bytes, &sample, &err), &err);
    ck_assert_ok(presto_example_parse(presto_buffer_span(&bytes), NULL, &arena, &sample, &err),
                 &err);
    ck_assert_uint_eq(sample.feature_count, 100);
    for (size_t i = 1; i < 100; i++) {
        presto_span a = sample.features[i - 1].name, b = sample.features[i].name;
        size_t least = a.bytes < b.bytes ? a.bytes : b.bytes;
        int order = memcmp(a.data, b.data, least);
        ck_assert(order < 0 || (order == 0 && a.bytes < b.bytes));
    }
    presto_buffer_done(&bytes);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(a_tensor_feature_points_into_the_record) {
    const uint8_t pixels[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const int64_t label = 4;
    presto_feature features[] = {
        feature_of("image", PRESTO_ENCODE_TENSOR, PRESTO_UINT8, 3, 0, pixels),
        feature_of("label", PRESTO_ENCODE_INT64, PRESTO_INT64, 0, 0, &label),
    };
    features[0].tensor.spec = (presto_tensor_spec){PRESTO_UINT8, 3, {2, 2, 3}};
    presto_sample sample = {features, 2, 0};
    presto_buffer bytes = {0};
    presto_arena arena = {0};
    ck_assert_ok(presto_example_append(&bytes, &sample, &err), &err);
    presto_feature_spec specs[] = {
        {(char *)(uintptr_t) "image", PRESTO_ENCODE_TENSOR, {PRESTO_UINT8, 3, {-1, -1, 3}}},
        {(char *)(uintptr_t) "label", PRESTO_ENCODE_INT64, {PRESTO_INT64, 0, {0}}}};
    ck_assert_ok(presto_example_parse(presto_buffer_span(&bytes),
                                      &(presto_example_specs){.list = specs, .count = 2}, &arena,
                                      &sample, &err),
                 &err);
    const presto_feature *image = find(&sample, "image");
    ck_assert(presto_spec_equal(&image->tensor.spec, &features[0].tensor.spec));
    ck_assert_mem_eq(image->tensor.data, pixels, 12);
    const uint8_t *at = image->tensor.data;
    ck_assert(at > bytes.data && at < bytes.data + bytes.bytes);
    /* Without the spec it is a string. */
    ck_assert_ok(presto_example_parse(presto_buffer_span(&bytes), NULL, &arena, &sample, &err),
                 &err);
    image = find(&sample, "image");
    ck_assert_int_eq(image->encoding, PRESTO_ENCODE_BYTES);
    ck_assert(presto_tensor_proto_probe(image->tensor.strings[0]));
    presto_buffer_done(&bytes);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(what_does_not_go_with_its_encoding_is_refused) {
    const int64_t number = 1;
    presto_feature feature = feature_of("x", PRESTO_ENCODE_FLOAT, PRESTO_INT64, 0, 0, &number);
    presto_sample sample = {&feature, 1, 0};
    presto_buffer bytes = {0};
    ck_assert_status(presto_example_append(&bytes, &sample, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_str_eq(err.message, "feature 'x' is int64 and cannot be stored as float");
    feature = feature_of("x", PRESTO_ENCODE_INT64, PRESTO_INT64, 2, 1, &number);
    ck_assert_status(presto_example_append(&bytes, &sample, &err), PRESTO_ERR_TYPE, &err);
    feature = feature_of("x", PRESTO_ENCODE_INT64, PRESTO_INT64, 1, -1, &number);
    ck_assert_status(presto_example_append(&bytes, &sample, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_uint_eq(bytes.bytes, 0);
    presto_buffer_done(&bytes);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_golden_example_is_written_and_read,
        the_smallest_examples_are_read,
        a_feature_without_a_kind_is_carried,
        numbers_may_be_unpacked_or_in_several_runs,
        of_equal_names_the_last_wins,
        of_several_kinds_the_last_wins,
        unknown_fields_are_passed_over,
        ill_formed_bytes_are_corrupt,
        many_unsorted_names_with_repeats_are_found,
        names_made_to_collide_take_no_longer_than_others,
        specs_may_come_in_another_order_than_the_features,
        a_hundred_features_are_written_sorted,
        a_tensor_feature_points_into_the_record,
        what_does_not_go_with_its_encoding_is_refused,
    };
    return presto_check_main("example", tests, sizeof tests / sizeof tests[0], 60);
}
