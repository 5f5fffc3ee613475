/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProtos: every dtype there and back, typed values as other writers leave them, protobuf-c,
 * damage. */
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <presto/example.h>

#include "tensor.pb-c.h"

static presto_error err;

static const presto_dtype dtypes[] = {
#define DTYPE(name, value, text, bytes, numpy) name,
    PRESTO_DTYPE_LIST(DTYPE)
#undef DTYPE
};
#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

static presto_buffer pack(const Presto__TensorProto *proto) {
    presto_buffer buffer = {0};
    size_t bytes = presto__tensor_proto__get_packed_size(proto);
    ck_assert_ok(presto_buffer_reserve(&buffer, bytes, &err), &err);
    buffer.bytes = presto__tensor_proto__pack(proto, buffer.data);
    return buffer;
}

static presto_tensor parse(const presto_buffer *bytes, presto_arena *arena) {
    presto_tensor tensor;
    ck_assert_ok(presto_tensor_proto_parse(presto_buffer_span(bytes), arena, &tensor, &err), &err);
    return tensor;
}

START_TEST(every_dtype_and_rank_comes_back) {
    uint8_t data[16 * 24];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    for (size_t d = 0; d < DTYPE_COUNT; d++)
        for (int rank = 0; rank <= PRESTO_MAX_RANK; rank++) {
            if (dtypes[d] == PRESTO_STRING)
                continue;
            presto_tensor tensor = {.spec = {dtypes[d], rank, {2, 3, 1, 4, 1, 1, 1, 1}},
                                    .data = data};
            presto_buffer bytes = {0};
            presto_arena arena = {0};
            ck_assert_ok(presto__tensor_proto_append(&bytes, &tensor, &err), &err);
            ck_assert(presto_tensor_proto_probe(presto_buffer_span(&bytes)));
            presto_tensor got = parse(&bytes, &arena);
            ck_assert(presto_spec_equal(&got.spec, &tensor.spec));
            ck_assert_mem_eq(got.data, data, presto_tensor_bytes(&tensor));
            Presto__TensorProto *theirs =
                presto__tensor_proto__unpack(NULL, bytes.bytes, bytes.data);
            ck_assert_ptr_nonnull(theirs);
            ck_assert_int_eq(theirs->dtype, (int)dtypes[d]);
            ck_assert_uint_eq(theirs->tensor_shape->n_dim, (size_t)rank);
            for (int i = 0; i < rank; i++)
                ck_assert_int_eq(theirs->tensor_shape->dim[i]->size, tensor.spec.dims[i]);
            ck_assert_uint_eq(theirs->tensor_content.len, presto_tensor_bytes(&tensor));
            presto_buffer again = pack(theirs);
            ck_assert(presto_span_equal(presto_buffer_span(&again), presto_buffer_span(&bytes)));
            presto_buffer_done(&again);
            presto__tensor_proto__free_unpacked(theirs, NULL);
            presto_buffer_done(&bytes);
            presto_arena_done(&arena);
        }
}
END_TEST

START_TEST(empty_tensors_and_strings_come_back) {
    presto_span strings[] = {presto_span_of_text("one"), presto_span_of_text(""),
                             presto_span_of_text("three")};
    presto_tensor tensors[] = {
        {.spec = {PRESTO_FLOAT32, 2, {0, 5}}},
        {.spec = {PRESTO_STRING, 1, {3}}, .strings = strings},
        {.spec = {PRESTO_STRING, 0, {0}}, .strings = strings},
        {.spec = {PRESTO_STRING, 1, {0}}, .strings = strings},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        presto_buffer bytes = {0};
        presto_arena arena = {0};
        ck_assert_ok(presto__tensor_proto_append(&bytes, &tensors[i], &err), &err);
        presto_tensor got = parse(&bytes, &arena);
        ck_assert(presto_spec_equal(&got.spec, &tensors[i].spec));
        if (got.spec.dtype == PRESTO_STRING)
            for (uint64_t k = 0; k < presto_spec_elements(&got.spec); k++)
                ck_assert(presto_span_equal(got.strings[k], tensors[i].strings[k]));
        presto_buffer_done(&bytes);
        presto_arena_done(&arena);
    }
}
END_TEST

/* A proto of `dtype` and shape [4]. */
static void make_proto(Presto__TensorProto *proto, Presto__TensorShapeProto *shape,
                       Presto__TensorShapeProto__Dim *dim, Presto__TensorShapeProto__Dim **dims,
                       presto_dtype dtype) {
    presto__tensor_proto__init(proto);
    presto__tensor_shape_proto__init(shape);
    presto__tensor_shape_proto__dim__init(dim);
    dim->size = 4;
    *dims = dim;
    shape->n_dim = 1;
    shape->dim = dims;
    proto->dtype = (int)dtype;
    proto->tensor_shape = shape;
}

START_TEST(typed_values_are_unpacked_and_the_last_fills_the_rest) {
    Presto__TensorProto proto;
    Presto__TensorShapeProto shape;
    Presto__TensorShapeProto__Dim dim, *dims;
    presto_arena arena = {0};

    make_proto(&proto, &shape, &dim, &dims, PRESTO_FLOAT32);
    float floats[] = {1.5F, -2};
    proto.n_float_val = 2;
    proto.float_val = floats;
    presto_buffer bytes = pack(&proto);
    presto_tensor tensor = parse(&bytes, &arena);
    const float want_floats[] = {1.5F, -2, -2, -2};
    ck_assert_mem_eq(tensor.data, want_floats, sizeof want_floats);
    presto_buffer_done(&bytes);

    make_proto(&proto, &shape, &dim, &dims, PRESTO_INT16);
    int32_t ints[] = {-3, 40000, 5, 6, 7};
    proto.n_int_val = 5;
    proto.int_val = ints;
    bytes = pack(&proto);
    tensor = parse(&bytes, &arena);
    const int16_t want_shorts[] = {-3, (int16_t)-25536, 5, 6};
    ck_assert_mem_eq(tensor.data, want_shorts, sizeof want_shorts);
    presto_buffer_done(&bytes);

    make_proto(&proto, &shape, &dim, &dims, PRESTO_COMPLEX64);
    float parts[] = {1, 2, 3, 4};
    proto.n_scomplex_val = 4;
    proto.scomplex_val = parts;
    bytes = pack(&proto);
    tensor = parse(&bytes, &arena);
    const float want_parts[] = {1, 2, 3, 4, 3, 4, 3, 4};
    ck_assert_mem_eq(tensor.data, want_parts, sizeof want_parts);
    presto_buffer_done(&bytes);

    make_proto(&proto, &shape, &dim, &dims, PRESTO_BOOL);
    protobuf_c_boolean bools[] = {0, 1};
    proto.n_bool_val = 2;
    proto.bool_val = bools;
    bytes = pack(&proto);
    tensor = parse(&bytes, &arena);
    ck_assert_mem_eq(tensor.data, "\0\1\1\1", 4);
    presto_buffer_done(&bytes);

    make_proto(&proto, &shape, &dim, &dims, PRESTO_UINT64);
    uint64_t longs[] = {UINT64_MAX, 1};
    proto.n_uint64_val = 2;
    proto.uint64_val = longs;
    bytes = pack(&proto);
    tensor = parse(&bytes, &arena);
    const uint64_t want_longs[] = {UINT64_MAX, 1, 1, 1};
    ck_assert_mem_eq(tensor.data, want_longs, sizeof want_longs);
    presto_buffer_done(&bytes);

    make_proto(&proto, &shape, &dim, &dims, PRESTO_FLOAT64);
    bytes = pack(&proto);
    tensor = parse(&bytes, &arena);
    const double zeros[4] = {0};
    ck_assert_mem_eq(tensor.data, zeros, sizeof zeros);
    presto_buffer_done(&bytes);

    make_proto(&proto, &shape, &dim, &dims, PRESTO_STRING);
    ProtobufCBinaryData strings[] = {{1, (uint8_t *)(uintptr_t) "a"},
                                     {2, (uint8_t *)(uintptr_t) "bc"}};
    proto.n_string_val = 2;
    proto.string_val = strings;
    bytes = pack(&proto);
    tensor = parse(&bytes, &arena);
    ck_assert(presto_span_is(tensor.strings[0], "a"));
    for (int i = 1; i < 4; i++)
        ck_assert(presto_span_is(tensor.strings[i], "bc"));
    presto_buffer_done(&bytes);

    make_proto(&proto, &shape, &dim, &dims, PRESTO_STRING);
    proto.tensor_content = (ProtobufCBinaryData){10, (uint8_t *)(uintptr_t) "\1\0\2\3abcdef"};
    bytes = pack(&proto);
    tensor = parse(&bytes, &arena);
    ck_assert(presto_span_is(tensor.strings[0], "a"));
    ck_assert(presto_span_is(tensor.strings[1], ""));
    ck_assert(presto_span_is(tensor.strings[2], "bc"));
    ck_assert(presto_span_is(tensor.strings[3], "def"));
    presto_buffer_done(&bytes);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(unpacked_typed_values_are_read) {
    /* dtype int64, shape [3], int64_val 7 and -1 one by one */
    static const uint8_t bytes[] = {0x08, 9,    0x12, 4,    0x12, 2,    0x08, 3,    0x50, 7,   0x50,
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    presto_arena arena = {0};
    presto_tensor tensor;
    ck_assert_ok(
        presto_tensor_proto_parse(presto_span_of(bytes, sizeof bytes), &arena, &tensor, &err),
        &err);
    const int64_t want[] = {7, -1, -1};
    ck_assert_int_eq(memcmp(tensor.data, want, sizeof want), 0);
    presto_arena_done(&arena);
}
END_TEST

static void check_bad(const uint8_t *bytes, size_t count, presto_status want) {
    uint8_t *copy = presto_check_copy(presto_span_of(bytes, count));
    presto_arena arena = {0};
    presto_tensor tensor;
    ck_assert_status(presto_tensor_proto_parse(presto_span_of(copy, count), &arena, &tensor, &err),
                     want, &err);
    ck_assert(!presto_tensor_proto_probe(presto_span_of(copy, count)));
    presto_arena_done(&arena);
    free(copy);
}
#define CHECK_BAD(want, ...)                                                                       \
    do {                                                                                           \
        static const uint8_t bad_[] = {__VA_ARGS__};                                               \
        check_bad(bad_, sizeof bad_, want);                                                        \
    } while (0)

START_TEST(what_does_not_fit_together_is_corrupt) {
    /* uint8[3] with 2 bytes, with 4 bytes */
    CHECK_BAD(PRESTO_ERR_CORRUPT, 8, 4, 0x12, 4, 0x12, 2, 8, 3, 0x22, 2, 1, 2);
    CHECK_BAD(PRESTO_ERR_CORRUPT, 8, 4, 0x12, 4, 0x12, 2, 8, 3, 0x22, 4, 1, 2, 3, 4);
    /* a scalar float with 3 bytes */
    CHECK_BAD(PRESTO_ERR_CORRUPT, 8, 1, 0x12, 0, 0x22, 3, 1, 2, 3);
    /* negative dimension, unknown rank */
    CHECK_BAD(PRESTO_ERR_CORRUPT, 8, 4, 0x12, 13, 0x12, 11, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
              0xff, 0xff, 0xff, 1);
    CHECK_BAD(PRESTO_ERR_CORRUPT, 8, 4, 0x12, 2, 0x18, 1, 0x22, 1, 1);
    /* dtypes that are none of ours: 0, 20 (resource), 1000 */
    CHECK_BAD(PRESTO_ERR_UNSUPPORTED, 0x12, 0, 0x22, 1, 1);
    CHECK_BAD(PRESTO_ERR_UNSUPPORTED, 8, 20, 0x12, 0, 0x22, 1, 1);
    CHECK_BAD(PRESTO_ERR_UNSUPPORTED, 8, 0xe8, 7, 0x12, 0, 0x22, 1, 1);
    /* nine dimensions */
    CHECK_BAD(PRESTO_ERR_UNSUPPORTED, 8, 4, 0x12, 36, 0x12, 2, 8, 1, 0x12, 2, 8, 1, 0x12, 2, 8, 1,
              0x12, 2, 8, 1, 0x12, 2, 8, 1, 0x12, 2, 8, 1, 0x12, 2, 8, 1, 0x12, 2, 8, 1, 0x12, 2, 8,
              1, 0x22, 1, 1);
    /* 2^40 floats out of nothing; dimensions whose product wraps around to 1 */
    CHECK_BAD(PRESTO_ERR_LIMIT, 8, 1, 0x12, 9, 0x12, 7, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20);
    CHECK_BAD(PRESTO_ERR_CORRUPT, 8, 4, 0x12, 22, 0x12, 9, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
              0x80, 0x40, 0x12, 9, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0x22, 1, 1);
    /* packed floats of 3 bytes; a cut packed varint */
    CHECK_BAD(PRESTO_ERR_CORRUPT, 8, 1, 0x12, 4, 0x12, 2, 8, 3, 0x2a, 3, 0, 0, 0);
    CHECK_BAD(PRESTO_ERR_CORRUPT, 8, 9, 0x12, 4, 0x12, 2, 8, 3, 0x52, 1, 0x80);
}
END_TEST

START_TEST(every_cut_and_flip_stays_inside) {
    const uint8_t data[24] = {1, 2, 3};
    presto_tensor tensor = {.spec = {PRESTO_UINT16, 3, {2, 2, 3}}, .data = data};
    presto_buffer bytes = {0};
    presto_arena arena = {0};
    ck_assert_ok(presto__tensor_proto_append(&bytes, &tensor, &err), &err);
    for (size_t cut = 0; cut < bytes.bytes; cut++) {
        uint8_t *copy = presto_check_copy(presto_span_of(bytes.data, cut));
        presto_tensor got;
        presto_tensor_proto_parse(presto_span_of(copy, cut), &arena, &got, &err);
        ck_assert(!presto_tensor_proto_probe(presto_span_of(copy, cut)));
        free(copy);
    }
    for (size_t bit = 0; bit < bytes.bytes * 8; bit++) {
        uint8_t *copy = presto_check_copy(presto_buffer_span(&bytes));
        copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
        presto_tensor got;
        if (presto_tensor_proto_parse(presto_span_of(copy, bytes.bytes), &arena, &got, &err) ==
                PRESTO_OK &&
            got.spec.dtype != PRESTO_STRING)
            ck_assert_uint_le(presto_tensor_bytes(&got), 1 << 20);
        presto_arena_reset(&arena);
        free(copy);
    }
    presto_buffer_done(&bytes);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(a_probe_is_not_fooled_by_ordinary_bytes) {
    static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F'};
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10};
    ck_assert(!presto_tensor_proto_probe(presto_span_of(NULL, 0)));
    ck_assert(!presto_tensor_proto_probe(presto_span_of(jpeg, sizeof jpeg)));
    ck_assert(!presto_tensor_proto_probe(presto_span_of(png, sizeof png)));
    ck_assert(!presto_tensor_proto_probe(presto_span_of_text("plain text")));
    ck_assert(!presto_tensor_proto_probe(presto_span_of_text("\n")));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_dtype_and_rank_comes_back,
        empty_tensors_and_strings_come_back,
        typed_values_are_unpacked_and_the_last_fills_the_rest,
        unpacked_typed_values_are_read,
        what_does_not_fit_together_is_corrupt,
        every_cut_and_flip_stays_inside,
        a_probe_is_not_fooled_by_ordinary_bytes,
    };
    return presto_check_main("tensor_proto", tests, sizeof tests / sizeof tests[0], 60);
}
