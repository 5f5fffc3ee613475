/* SPDX-License-Identifier: Apache-2.0 */
/* Random examples, with protobuf-c as the independent check, and damage of them. */
#include <stdio.h>

#include <presto/example.h>
#include <presto/rng.h>

#include "../../../base/rng_internal.h"
#include "example.pb-c.h"

#include "example_check.h"

static presto_error err;

/* ---- against protobuf-c ---- */

typedef struct made_sample {
    presto_feature features[40];
    presto_sample sample;
    presto_arena arena;
} made_sample;

static void *take(made_sample *made, size_t bytes) {
    return presto_arena_alloc(&made->arena, bytes, 8);
}

static int64_t random_int64(presto_rng *rng) {
    return (int64_t)(presto_rng_next(rng) >> presto_rng_below(rng, 64)) *
           (presto_rng_below(rng, 2) == 0 ? 1 : -1);
}

static void make_feature(made_sample *made, presto_feature *feature, presto_rng *rng) {
    static const presto_encoding encodings[] = {PRESTO_ENCODE_BYTES, PRESTO_ENCODE_INT64,
                                                PRESTO_ENCODE_FLOAT, PRESTO_ENCODE_TENSOR,
                                                PRESTO_ENCODE_NONE};
    feature->encoding = encodings[presto_rng_below(rng, 5)];
    int64_t count = (int64_t)presto_rng_below(rng, presto_rng_below(rng, 4) == 0 ? 300 : 3);
    feature->tensor.spec = (presto_tensor_spec){PRESTO_STRING, 1, {count}};
    uint8_t *data = take(made, (size_t)count * 16);
    feature->tensor.data = data;
    switch (feature->encoding) {
    case PRESTO_ENCODE_BYTES:
        for (int64_t i = 0; i < count; i++) {
            size_t bytes = presto_rng_below(rng, 200);
            uint8_t *text = take(made, bytes);
            memset(text, (int)presto_rng_below(rng, 256), bytes);
            ((presto_span *)(void *)data)[i] = presto_span_of(text, bytes);
        }
        return;
    case PRESTO_ENCODE_INT64:
        feature->tensor.spec.dtype = PRESTO_INT64;
        for (int64_t i = 0; i < count; i++) {
            int64_t value = random_int64(rng);
            memcpy(data + i * 8, &value, 8);
        }
        return;
    case PRESTO_ENCODE_FLOAT:
        feature->tensor.spec.dtype = PRESTO_FLOAT32;
        for (int64_t i = 0; i < count; i++) {
            float value = (float)presto_rng_uniform(rng);
            memcpy(data + i * 4, &value, 4);
        }
        return;
    case PRESTO_ENCODE_TENSOR:
        feature->tensor.spec = (presto_tensor_spec){PRESTO_INT16, 3, {count, 2, 3}};
        data = take(made, (size_t)count * 12 + 1);
        memset(data, 0x5a, (size_t)count * 12);
        feature->tensor.data = data;
        return;
    case PRESTO_ENCODE_NONE:
        feature->tensor = (presto_tensor){.spec = {.rank = 0}};
        return;
    }
}

static void make_sample(made_sample *made, presto_rng *rng) {
    size_t count = presto_rng_below(rng, 40);
    for (size_t i = 0; i < count; i++) {
        char *name = take(made, 32);
        snprintf(name, 32, "feature/%03zu", i * 17 % 40);
        made->features[i].name = presto_span_of_text(name);
        make_feature(made, &made->features[i], rng);
    }
    made->sample = (presto_sample){made->features, count, 0};
}

static void compare_with_protobuf(const presto_feature *ours, const Presto__Feature *theirs) {
    const presto_tensor *tensor = &ours->tensor;
    size_t count = (size_t)presto_spec_elements(&tensor->spec);
    switch (ours->encoding) {
    case PRESTO_ENCODE_TENSOR:
        ck_assert_int_eq(theirs->kind_case, PRESTO__FEATURE__KIND_BYTES_LIST);
        ck_assert_uint_eq(theirs->bytes_list->n_value, 1);
        return;
    case PRESTO_ENCODE_BYTES:
        ck_assert_int_eq(theirs->kind_case, PRESTO__FEATURE__KIND_BYTES_LIST);
        ck_assert_uint_eq(theirs->bytes_list->n_value, count);
        for (size_t i = 0; i < count; i++)
            ck_assert(presto_span_equal(tensor->strings[i],
                                        presto_span_of(theirs->bytes_list->value[i].data,
                                                       theirs->bytes_list->value[i].len)));
        return;
    case PRESTO_ENCODE_FLOAT:
        ck_assert_int_eq(theirs->kind_case, PRESTO__FEATURE__KIND_FLOAT_LIST);
        ck_assert_uint_eq(theirs->float_list->n_value, count);
        if (count > 0)
            ck_assert_mem_eq(theirs->float_list->value, tensor->data, count * 4);
        return;
    case PRESTO_ENCODE_INT64:
        ck_assert_int_eq(theirs->kind_case, PRESTO__FEATURE__KIND_INT64_LIST);
        ck_assert_uint_eq(theirs->int64_list->n_value, count);
        if (count > 0)
            ck_assert_mem_eq(theirs->int64_list->value, tensor->data, count * 8);
        return;
    case PRESTO_ENCODE_NONE:
        ck_assert_int_eq(theirs->kind_case, PRESTO__FEATURE__KIND__NOT_SET);
        return;
    }
}

START_TEST(protobuf_reads_what_we_write_and_writes_it_the_same) {
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    for (int round = 0; round < 500; round++) {
        made_sample *made = calloc(1, sizeof *made);
        make_sample(made, &rng);
        presto_buffer bytes = {0};
        ck_assert_ok(presto_example_append(&bytes, &made->sample, &err), &err);
        Presto__Example *theirs = presto__example__unpack(NULL, bytes.bytes, bytes.data);
        ck_assert_ptr_nonnull(theirs);
        ck_assert_uint_eq(theirs->features->n_feature, made->sample.feature_count);
        for (size_t i = 0; i < theirs->features->n_feature; i++)
            compare_with_protobuf(find(&made->sample, theirs->features->feature[i]->key),
                                  theirs->features->feature[i]->value);
        ck_assert_uint_eq(presto__example__get_packed_size(theirs), bytes.bytes);
        uint8_t *again = malloc(bytes.bytes);
        presto__example__pack(theirs, again);
        ck_assert_mem_eq(again, bytes.data, bytes.bytes);
        presto_arena arena = {0};
        presto_sample ours;
        ck_assert_ok(
            presto_example_parse(presto_span_of(again, bytes.bytes), NULL, &arena, &ours, &err),
            &err);
        ck_assert_uint_eq(ours.feature_count, theirs->features->n_feature);
        for (size_t i = 0; i < ours.feature_count; i++)
            compare_with_protobuf(&ours.features[i], theirs->features->feature[i]->value);
        presto_arena_done(&arena);
        presto__example__free_unpacked(theirs, NULL);
        presto_buffer_done(&bytes);
        presto_arena_done(&made->arena);
        free(again);
        free(made);
    }
}
END_TEST

START_TEST(cut_and_flipped_examples_never_read_outside) {
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed(), .sample = 1});
    presto_feature_spec specs[40];
    char names[40][16];
    for (size_t i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "feature/%03zu", i);
        specs[i] = (presto_feature_spec){names[i],
                                         i % 2 == 0 ? PRESTO_ENCODE_TENSOR : PRESTO_ENCODE_BYTES,
                                         {PRESTO_INT16, -1, {0}}};
    }
    for (int round = 0; round < 60; round++) {
        made_sample *made = calloc(1, sizeof *made);
        make_sample(made, &rng);
        presto_buffer bytes = {0};
        presto_arena arena = {0};
        ck_assert_ok(presto_example_append(&bytes, &made->sample, &err), &err);
        for (int variant = 0; variant < 100; variant++) {
            size_t cut = bytes.bytes;
            if (variant % 2 == 0)
                cut = presto_rng_below(&rng, bytes.bytes + 1);
            uint8_t *copy = presto_check_copy(presto_span_of(bytes.data, cut));
            for (int flips = variant % 5; flips > 0 && cut > 0; flips--)
                copy[presto_rng_below(&rng, cut)] ^= (uint8_t)(1U << presto_rng_below(&rng, 8));
            presto_sample sample;
            presto_example_parse(presto_span_of(copy, cut),
                                 &(presto_example_specs){.list = specs, .count = 40}, &arena,
                                 &sample, &err);
            presto_arena_reset(&arena);
            free(copy);
        }
        presto_arena_done(&arena);
        presto_buffer_done(&bytes);
        presto_arena_done(&made->arena);
        free(made);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        protobuf_reads_what_we_write_and_writes_it_the_same,
        cut_and_flipped_examples_never_read_outside,
    };
    return presto_check_main("example_protobuf", tests, sizeof tests / sizeof tests[0], 60);
}
