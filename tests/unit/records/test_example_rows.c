/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Examples of rows have the bytes that presto_example_append writes, which other tests compare with
 * libprotobuf-c: for random names, kinds and sizes, around the lengths where a length takes another
 * byte, and at the limit.
 */
#include "../../../base/rng_internal.h"
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <inttypes.h>
#include <stdio.h>

#define ROWS 10000
#define MOST_FEATURES 12
#define MOST_VALUES 300

static presto_error err;
static presto_rng rng;

static uint64_t below(uint64_t limit) {
    return presto_rng_below(&rng, limit);
}

/* Small ones, and those where a length takes one byte more. */
static size_t some_size(void) {
    static const size_t odd[] = {0, 1, 30, 31, 32, 33, 126, 127, 128, 129};
    return below(3) == 0 ? odd[below(sizeof odd / sizeof *odd)] : (size_t)below(MOST_VALUES);
}

typedef struct values {
    int64_t numbers[MOST_VALUES];
    presto_span strings[MOST_VALUES];
    uint8_t bytes[MOST_VALUES];
} values;

static void make_numbers(values *to) {
    for (size_t i = 0; i < MOST_VALUES; i++) {
        uint64_t bits = below(65);
        uint64_t number = bits == 0 ? 0 : presto_rng_next(&rng) >> (64 - bits);
        to->numbers[i] = (int64_t)number;
        to->bytes[i] = (uint8_t)presto_rng_next(&rng);
        to->strings[i] = presto_span_of(to->bytes, below(8) == 0 ? some_size() : below(20));
    }
}

static presto_feature make_feature(const char *name, const values *from) {
    static const presto_dtype dtypes[] = {PRESTO_UINT8, PRESTO_FLOAT64, PRESTO_INT16, PRESTO_INT64,
                                          PRESTO_FLOAT32};
    presto_feature feature = {.name = presto_span_of_text(name),
                              .encoding = (presto_encoding)below(5),
                              .tensor = {.data = from->numbers}};
    presto_tensor_spec *spec = &feature.tensor.spec;
    spec->rank = (int)below(2);
    spec->dims[0] = (int64_t)some_size();
    switch (feature.encoding) {
    case PRESTO_ENCODE_BYTES:
        spec->dtype = PRESTO_STRING;
        feature.tensor.strings = from->strings;
        break;
    case PRESTO_ENCODE_INT64:
        spec->dtype = PRESTO_INT64;
        break;
    case PRESTO_ENCODE_FLOAT:
        spec->dtype = PRESTO_FLOAT32;
        break;
    case PRESTO_ENCODE_TENSOR:
        spec->dtype = dtypes[below(sizeof dtypes / sizeof *dtypes)];
        spec->rank = (int)below(4);
        for (int i = 0; i < spec->rank; i++)
            spec->dims[i] = (int64_t)below(7);
        break;
    case PRESTO_ENCODE_NONE:
        break;
    }
    return feature;
}

/* Names in order, some of them longer than a piece. */
static size_t make_names(char names[MOST_FEATURES][256]) {
    size_t count = 1 + (size_t)below(MOST_FEATURES);
    for (size_t i = 0; i < count; i++) {
        int bytes = below(4) == 0 ? (int)below(200) : (int)below(30);
        snprintf(names[i], 256, "%c%0*d", (char)('a' + i), bytes, 7);
    }
    return count;
}

START_TEST(rows_have_the_bytes_of_samples) {
    static values from;
    char names[MOST_FEATURES][256];
    presto_span spans[MOST_FEATURES];
    presto_feature features[MOST_FEATURES];
    presto_buffer wanted = {0}, got = {0};
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    size_t rounds = presto_check_rounds(ROWS);
    for (size_t round = 0; round < rounds;) {
        presto__example_rows *rows;
        size_t count = make_names(names);
        for (size_t i = 0; i < count; i++)
            spans[i] = presto_span_of_text(names[i]);
        ck_assert_ok(presto__example_rows_new(spans, count, &rows, &err), &err);
        for (size_t row = 0; row < 10; row++, round++) {
            make_numbers(&from);
            for (size_t i = 0; i < count; i++)
                features[i] = make_feature(names[i], &from);
            const presto_sample sample = {.features = features, .feature_count = count};
            wanted.bytes = got.bytes = 0;
            ck_assert_ok(presto_example_append(&wanted, &sample, &err), &err);
            ck_assert_ok(presto__example_rows_append(rows, &got, features, &err), &err);
            ck_assert(presto_span_equal(presto_buffer_span(&wanted), presto_buffer_span(&got)));
        }
        presto__example_rows_free(rows);
    }
    presto_buffer_done(&wanted);
    presto_buffer_done(&got);
    presto__example_rows_free(NULL);
}
END_TEST

/* Sizes are known before a value is read: there are none here. */
START_TEST(what_no_example_holds_is_refused_before_it_is_read) {
    static const int64_t counts[] = {INT64_C(1) << 29, INT64_C(1) << 40, INT64_C(1) << 58};
    const presto_span names[2] = {presto_span_of_text("a"), presto_span_of_text("b")};
    presto__example_rows *rows;
    presto_buffer out = {0};
    ck_assert_ok(presto__example_rows_new(names, 2, &rows, &err), &err);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        presto_feature features[2] = {{names[0],
                                       PRESTO_ENCODE_FLOAT,
                                       {.spec = {PRESTO_FLOAT32, 1, {counts[i]}}, {.data = NULL}}},
                                      {names[1],
                                       PRESTO_ENCODE_TENSOR,
                                       {.spec = {PRESTO_FLOAT64, 1, {counts[i]}}, {.data = NULL}}}};
        ck_assert_status(presto__example_rows_append(rows, &out, features, &err), PRESTO_ERR_LIMIT,
                         &err);
        ck_assert_uint_eq(out.bytes, 0);
    }
    presto__example_rows_free(rows);
    presto_buffer_done(&out);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        rows_have_the_bytes_of_samples,
        what_no_example_holds_is_refused_before_it_is_read,
    };
    return presto_check_main("example_rows", tests, sizeof tests / sizeof tests[0], 60);
}
