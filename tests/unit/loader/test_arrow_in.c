/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow's arrays become samples: the bytes that docs/format.md has, each type, slices at every
 * level, missing values, what is refused, arrays that contradict themselves, and many threads.
 * tests/python/test_arrow_writing.py does the same with arrays that pyarrow makes.
 */
#include "../../../records/records_internal.h"
#include "folder_check.h"
#include "presto_check.h"

#include <inttypes.h>
#include <pthread.h>

#include <presto/arrow.h>
#include <presto/numbers.h>
#include <presto/shard.h>

#include "../records/faults.h"

#define MOST_CHILDREN 8
#define FRAME_BYTES 16

static char *dir;
static presto_error err;
static int releases; /* that were called */

static void set_up(void) {
    dir = presto_check_temp_dir();
    releases = 0;
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

/* ---- arrays by hand ---- */

/* A column, with its schema. The test owns all. */
typedef struct column {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[4];
    struct ArrowSchema *schemas[MOST_CHILDREN];
    struct ArrowArray *arrays[MOST_CHILDREN];
} column;

static void release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
    releases++;
}

static void release_array(struct ArrowArray *array) {
    array->release = NULL;
    releases++;
}

/* `validity` and the buffers behind it; NULL: there is none. */
static void make(column *self, const char *name, const char *format, int64_t length,
                 const void *validity, const void *first, const void *second) {
    *self = (column){.buffers = {validity, first, second}};
    self->schema = (struct ArrowSchema){.format = format,
                                        .name = name,
                                        .flags = ARROW_FLAG_NULLABLE,
                                        .children = self->schemas,
                                        .release = release_schema};
    self->array = (struct ArrowArray){.length = length,
                                      .null_count = validity == NULL ? 0 : -1,
                                      .n_buffers = second != NULL  ? 3
                                                   : first != NULL ? 2
                                                                   : 1,
                                      .buffers = self->buffers,
                                      .children = self->arrays,
                                      .release = release_array};
}

static void add_child(column *self, column *child) {
    self->schemas[self->schema.n_children++] = &child->schema;
    self->arrays[self->array.n_children++] = &child->array;
}

static void make_struct(column *self, const char *name, int64_t length, column *const *children,
                        size_t count) {
    make(self, name, "+s", length, NULL, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        add_child(self, children[i]);
}

/* ---- writing and reading ---- */

static presto_writer *open_writer(const char *name, unsigned threads) {
    presto_writer_options options;
    presto_writer *writer;
    presto_writer_options_defaults(&options);
    options.dir = path_in(dir, name);
    options.threads = threads;
    options.sync = false;
    ck_assert_ok(presto_writer_open(&options, &writer, &err), &err);
    return writer;
}

static presto_status add(presto_writer *writer, const column *batch,
                         const presto_arrow_options *options) {
    presto_arrow *arrow;
    PRESTO_TRY(presto_arrow_open(&batch->schema, options, &arrow, &err));
    presto_status status = presto_writer_add_arrow(writer, arrow, &batch->array, &err);
    presto_arrow_free(arrow);
    return status;
}

/* The only shard of a dataset. Free with free(). */
static uint8_t *read_shard(const char *name, size_t *bytes_out) {
    char path[800];
    snprintf(path, sizeof path, "%s/data-00000-of-00001.tfrecord", path_in(dir, name));
    return presto_check_read_file(path, bytes_out);
}

/* The records of one batch, without their frames, one behind the other, as hex. */
static char *records_of(const column *batch, const presto_arrow_options *options) {
    static int number;
    char name[32];
    snprintf(name, sizeof name, "out-%d", number++);
    presto_writer *writer = open_writer(name, 0);
    ck_assert_ok(add(writer, batch, options), &err);
    ck_assert_uint_eq(presto_writer_samples(writer), (uint64_t)batch->array.length);
    ck_assert_ok(presto_writer_finish(writer, NULL, &err), &err);
    presto_writer_free(writer);
    size_t bytes, used = 0;
    uint8_t *shard = read_shard(name, &bytes);
    char *text = calloc(2 * bytes + 1, 1);
    for (size_t at = 0; at < bytes;) {
        size_t payload = shard[at] | (size_t)shard[at + 1] << 8;
        for (size_t i = 0; i < payload; i++)
            used += (size_t)sprintf(text + used, "%02x", shard[at + 12 + i]);
        at += payload + FRAME_BYTES;
    }
    free(shard);
    return text;
}

static void check_records(const column *batch, const presto_arrow_options *options,
                          const char *wanted) {
    char *got = records_of(batch, options);
    ck_assert_str_eq(got, wanted);
    free(got);
}

START_TEST(rows_are_the_examples_of_the_format) {
    set_up();
    const int64_t x[] = {1};
    const float f[] = {1.5F};
    const int32_t offsets[] = {0, 2};
    const char *example =
        "0a280a0b0a016212060a040a0268690a0d0a0166120812060a040000c03f0a0a0a01781205"
        "1a030a0101";
    static const size_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    column columns[3], batch;
    make(&columns[0], "x", "l", 1, NULL, x, NULL);
    make(&columns[1], "f", "f", 1, NULL, f, NULL);
    make(&columns[2], "b", "u", 1, NULL, offsets, "hi");
    for (size_t i = 0; i < 3; i++) {
        column *const order[] = {&columns[orders[i][0]], &columns[orders[i][1]],
                                 &columns[orders[i][2]]};
        make_struct(&batch, "", 1, order, 3);
        check_records(&batch, NULL, example);
    }
    const uint8_t none = 0;
    make(&columns[0], "x", "l", 1, &none, x, NULL);
    make_struct(&batch, "", 1, (column *const[]){&columns[0]}, 1);
    check_records(&batch, NULL, "0a070a050a01781200");
    const int8_t minus = -1;
    make(&columns[0], "x", "c", 1, NULL, &minus, NULL);
    make_struct(&batch, "", 1, (column *const[]){&columns[0]}, 1);
    check_records(&batch, NULL, "0a120a100a0178120b0a090a07080612002201ff");
    ck_assert_int_eq(releases, 0); /* they stay the caller's */
    tear_down();
}
END_TEST

/* ---- values ---- */

/* Write a batch and parse its records: one sample each. `specs`: which features are tensors. */
typedef struct samples {
    presto_arena arena;
    uint8_t *shard;
    presto_sample list[64];
    size_t count;
} samples;

static void write_and_parse(const column *batch, const presto_arrow_options *options,
                            samples *out) {
    static int number;
    char name[32];
    size_t bytes;
    presto_dataset_info info = {0};
    snprintf(name, sizeof name, "parsed-%d", number++);
    presto_writer *writer = open_writer(name, 1);
    ck_assert_ok(add(writer, batch, options), &err);
    ck_assert_ok(presto_writer_finish(writer, NULL, &err), &err);
    presto_writer_free(writer);
    *out = (samples){.shard = read_shard(name, &bytes)};
    ck_assert_ok(presto__dataset_info_read(path_in(dir, name), &info, &err), &err);
    const presto_example_specs specs = {info.features, info.feature_count, false};
    for (size_t at = 0; at < bytes; out->count++) {
        size_t payload = out->shard[at] | (size_t)out->shard[at + 1] << 8;
        ck_assert_uint_lt(out->count, 64);
        ck_assert_ok(presto_example_parse(presto_span_of(out->shard + at + 12, payload), &specs,
                                          &out->arena, &out->list[out->count], &err),
                     &err);
        at += payload + FRAME_BYTES;
    }
    presto__dataset_info_free(&info);
}

static void samples_done(samples *self) {
    presto_arena_done(&self->arena);
    free(self->shard);
}

/* The value of a feature as text: "int64[2] 1 2", "string 'ab' 'c'", "none". */
static const char *shown(const samples *from, size_t row, const char *name) {
    static char text[2000];
    const presto_sample *sample = &from->list[row];
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto_span_is(feature->name, name))
            continue;
        if (feature->encoding == PRESTO_ENCODE_NONE)
            return "none";
        char spec[PRESTO_SPEC_TEXT_BYTES];
        size_t used = (size_t)snprintf(
            text, sizeof text, "%s%s", feature->encoding == PRESTO_ENCODE_TENSOR ? "tensor " : "",
            presto_spec_format(&feature->tensor.spec, spec, sizeof spec));
        uint64_t count = presto_spec_elements(&feature->tensor.spec);
        size_t width = presto_dtype_bytes(feature->tensor.spec.dtype);
        for (uint64_t k = 0; k < count; k++) {
            if (width == 0) {
                presto_span string = feature->tensor.strings[k];
                used += (size_t)snprintf(text + used, sizeof text - used, " '%.*s'",
                                         (int)string.bytes, (const char *)string.data);
                continue;
            }
            double real = 0;
            float single = 0;
            uint64_t bits = 0;
            memcpy(&bits, (const uint8_t *)feature->tensor.data + k * width, width);
            memcpy(&real, &bits, sizeof real);
            memcpy(&single, &bits, sizeof single);
            if (feature->tensor.spec.dtype == PRESTO_FLOAT64)
                used += (size_t)snprintf(text + used, sizeof text - used, " %g", real);
            else if (feature->tensor.spec.dtype == PRESTO_FLOAT32)
                used += (size_t)snprintf(text + used, sizeof text - used, " %g", (double)single);
            else
                used += (size_t)snprintf(text + used, sizeof text - used, " %" PRIu64, bits);
        }
        return text;
    }
    return "missing";
}

#define check_row(from, row, name, wanted) ck_assert_str_eq(shown(&(from), row, name), wanted)

START_TEST(types_become_features) {
    set_up();
    samples got;
    column batch, bits, wide, large, view, fixed, days, absent;
    const uint8_t five = 0x15; /* rows 0 and 2 */
    const uint64_t most[] = {UINT64_MAX, 1, 0};
    const int64_t ends[] = {0, 1, 1, 4};
    const int32_t number_of_days[] = {-1, 0, 20000};
    const char body[] = "a longer text than twelve bytes";
    const void *more[5] = {NULL, NULL, body, NULL};
    const int64_t body_bytes[] = {(int64_t)strlen(body)};
    uint8_t views[3][16] = {{2, 0, 0, 0, 'a', 'b'}};
    const int32_t outside[] = {(int32_t)strlen(body) - 2, 0, 0, 2};
    memcpy(views[1], outside, 16);
    make(&bits, "bits", "b", 3, NULL, &five, NULL);
    make(&wide, "wide", "L", 3, NULL, most, NULL);
    make(&large, "large", "Z", 3, NULL, ends, "abcd");
    make(&fixed, "fixed", "w:2", 3, NULL, "xxyyzz", NULL);
    make(&days, "days", "tdD", 3, NULL, number_of_days, NULL);
    make(&absent, "absent", "n", 3, NULL, NULL, NULL);
    absent.array.n_buffers = 0;
    make(&view, "view", "vu", 3, NULL, NULL, NULL);
    more[1] = views;
    more[3] = body_bytes;
    view.array.n_buffers = 4;
    view.array.buffers = more;
    column *const all[] = {&bits, &wide, &large, &view, &fixed, &days, &absent};
    make_struct(&batch, "", 3, all, 7);
    const char *const convert[] = {"days=int64"};
    presto_arrow_options options;
    presto_arrow_options_defaults(&options);
    options.convert = convert;
    options.convert_count = 1;
    write_and_parse(&batch, &options, &got);
    ck_assert_uint_eq(got.count, 3);
    check_row(got, 0, "bits", "tensor bool 1");
    check_row(got, 1, "bits", "tensor bool 0");
    check_row(got, 0, "wide", "tensor uint64 18446744073709551615");
    check_row(got, 0, "large", "string 'a'");
    check_row(got, 1, "large", "string ''");
    check_row(got, 2, "large", "string 'bcd'");
    check_row(got, 0, "view", "string 'ab'");
    check_row(got, 1, "view", "string 'longer text than twelve bytes'");
    check_row(got, 2, "view", "string ''");
    check_row(got, 1, "fixed", "string 'yy'");
    check_row(got, 0, "days", "int64 18446744073709551615");
    check_row(got, 2, "days", "int64 20000");
    check_row(got, 1, "absent", "none");
    samples_done(&got);
    tear_down();
}
END_TEST

START_TEST(decimals_are_text_or_float64) {
    static const struct {
        const char *format;
        int64_t words[4];
        const char *text;
    } cases[] = {
        {"d:9,2,32", {INT64_C(0xffffff85)}, "string '-1.23'"},
        {"d:18,0,64", {INT64_MIN}, "string '-9223372036854775808'"},
        {"d:38,3", {7, 0}, "string '0.007'"},
        {"d:38,0", {0, 1}, "string '18446744073709551616'"},
        {"d:38,-2", {-5, -1}, "string '-500'"},
        {"d:38,-2", {0, 0}, "string '0'"},
        {"d:38,2", {0, 0}, "string '0.00'"},
        {"d:76,76,256",
         {1, 0, 0, 0},
         "string '0.0000000000000000000000000000000000000000000000000000000000000000000000000001'"},
        {"d:76,0,256",
         {0, 0, 0, INT64_MIN},
         "string '-57896044618658097711785492504343953926634992332820282019728792003956564819968'"},
    };
    set_up();
    presto_arrow_options options;
    presto_arrow_options_defaults(&options);
    options.convert_count = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        samples got;
        column batch, d;
        make(&d, "d", cases[i].format, 1, NULL, cases[i].words, NULL);
        make_struct(&batch, "", 1, (column *const[]){&d}, 1);
        options.convert = (const char *const[]){"d=string"};
        write_and_parse(&batch, &options, &got);
        check_row(got, 0, "d", cases[i].text);
        samples_done(&got);
    }
    samples got;
    column batch, d;
    make(&d, "d", "d:9,2", 1, NULL, cases[4].words, NULL);
    make_struct(&batch, "", 1, (column *const[]){&d}, 1);
    options.convert = (const char *const[]){"d=float64"};
    write_and_parse(&batch, &options, &got);
    check_row(got, 0, "d", "tensor float64 -0.05");
    samples_done(&got);
    tear_down();
}
END_TEST

/* {s: {x, lists}, d}, all of it sliced at every level. */
START_TEST(slices_at_every_level_are_found) {
    set_up();
    samples got;
    column batch, s, x, list, inner, item, d, words;
    const int32_t numbers[] = {-9, -9, -9, -9, -9, 10, 11, 12, -9};
    const float items[] = {-1, -1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1};
    const int32_t inner_ends[] = {-9, 0, 2, 4, 6, 9};
    const int64_t ends[] = {-9, -9, 0, 2, 3, 4};
    const int32_t word_ends[] = {-9, 0, 1, 3, 6};
    const uint8_t indexes[] = {9, 9, 9, 9, 2, 0, 1};
    const uint8_t there = 0x7f & ~(1 << 5); /* of the struct's row 1 */
    make(&x, "x", "i", 5, NULL, numbers, NULL);
    x.array.offset = 3;
    make(&item, "item", "f", 12, NULL, items, NULL);
    item.array.offset = 3;
    make(&inner, "item", "+l", 4, NULL, inner_ends, NULL);
    inner.array.offset = 1;
    add_child(&inner, &item);
    make(&list, "v", "+L", 5, NULL, ends, NULL);
    add_child(&list, &inner);
    list.array.offset = 0;
    make_struct(&s, "s", 4, (column *const[]){&x, &list}, 2);
    s.array.offset = 1; /* of its children: rows 2, 3 and 4 */
    s.buffers[0] = &there;
    s.array.null_count = 1;
    make(&words, "", "u", 3, NULL, word_ends, "abbccc");
    words.array.offset = 1;
    make(&d, "d", "C", 4, NULL, indexes, NULL);
    d.array.offset = 3;
    d.schema.dictionary = &words.schema;
    d.array.dictionary = &words.array;
    make_struct(&batch, "", 3, (column *const[]){&s, &d}, 2);
    batch.array.offset = 1;
    s.array.length = 4;
    write_and_parse(&batch, NULL, &got);
    ck_assert_uint_eq(got.count, 3);
    check_row(got, 0, "s.x", "tensor int32 10");
    check_row(got, 1, "s.x", "tensor int32 11");
    check_row(got, 2, "s.x", "tensor int32 12");
    check_row(got, 0, "s.v", "tensor float32[2,2] 0 1 2 3");
    check_row(got, 1, "s.v", "tensor float32[1,2] 4 5");
    check_row(got, 2, "s.v", "tensor float32[1,3] 6 7 8");
    check_row(got, 0, "d", "string 'ccc'");
    check_row(got, 1, "d", "string 'a'");
    check_row(got, 2, "d", "string 'bb'");
    samples_done(&got);
    const uint8_t lacks = 0xff & ~(1 << 3); /* s's row 3 - 1 - 1 = 1 of the batch */
    s.buffers[0] = &lacks;
    write_and_parse(&batch, NULL, &got);
    check_row(got, 0, "s.x", "tensor int32 10");
    check_row(got, 1, "s.x", "none");
    check_row(got, 1, "s.v", "none");
    check_row(got, 1, "d", "string 'a'");
    samples_done(&got);
    tear_down();
}
END_TEST

START_TEST(lists_and_tensors) {
    set_up();
    samples got;
    column batch, list, item, same, values, tensor, cells;
    const int64_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const int32_t ends[] = {0, 0, 3};
    make(&item, "item", "l", 3, NULL, numbers, NULL);
    make(&list, "list", "+l", 2, NULL, ends, NULL);
    add_child(&list, &item);
    make(&values, "item", "l", 6, NULL, numbers, NULL);
    make(&same, "same", "+w:3", 2, NULL, NULL, NULL);
    add_child(&same, &values);
    make(&cells, "item", "l", 12, NULL, numbers, NULL);
    make(&tensor, "tensor", "+w:6", 2, NULL, NULL, NULL);
    add_child(&tensor, &cells);
    const struct {
        int32_t pairs, name_bytes;
        char name[20];
        int32_t value_bytes;
        char value[24];
        int32_t key_bytes;
        char key[24];
        int32_t shape_bytes;
        char shape[16];
    } metadata = {2,
                  20,
                  "ARROW:extension:name",
                  24,
                  "arrow.fixed_shape_tensor",
                  24,
                  "ARROW:extension:metadata",
                  15,
                  "{\"shape\":[3,2]}"};
    tensor.schema.metadata = (const char *)&metadata;
    make_struct(&batch, "", 2, (column *const[]){&list, &same, &tensor}, 3);
    write_and_parse(&batch, NULL, &got);
    check_row(got, 0, "list", "int64[0]");
    check_row(got, 1, "list", "int64[3] 1 2 3");
    check_row(got, 1, "same", "int64[3] 4 5 6");
    check_row(got, 1, "tensor", "tensor int64[3,2] 7 8 9 10 11 12");
    samples_done(&got);
    presto_arrow_options options;
    presto_arrow_options_defaults(&options);
    options.tensors = (const char *const[]){"same=int64[1,3]"};
    options.tensor_count = 1;
    write_and_parse(&batch, &options, &got);
    check_row(got, 0, "same", "tensor int64[1,3] 1 2 3");
    samples_done(&got);
    tear_down();
}
END_TEST

/* ---- refused ---- */

typedef struct told {
    int refused, converted, nulls;
    char names[400];
} told;

static void take_note(void *user, presto_arrow_note note, const char *name, const char *text) {
    told *self = user;
    size_t used = strlen(self->names);
    self->refused += note == PRESTO_ARROW_REFUSED;
    self->converted += note == PRESTO_ARROW_CONVERTED;
    self->nulls += note == PRESTO_ARROW_NULLS;
    ck_assert_uint_gt(strlen(text), 0);
    if (used < 300)
        snprintf(self->names + used, sizeof self->names - used, "%s ", name);
}

START_TEST(what_cannot_be_stored_is_refused_at_once) {
    set_up();
    static const char *const formats[] = {"tsu:UTC", "+m", "d:10,2", "tiM", "+ud:0", "nonsense"};
    const uint8_t nothing[64] = {0};
    column columns[6], batch, good;
    told heard = {0};
    presto_arrow *arrow;
    presto_arrow_options options;
    presto_arrow_options_defaults(&options);
    options.on_note = take_note;
    options.on_note_user = &heard;
    make(&good, "good", "l", 0, NULL, nothing, NULL);
    make_struct(&batch, "", 0, (column *const[]){&good}, 1);
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    for (size_t i = 0; i < 6; i++) {
        make(&columns[i], names[i], formats[i], 0, NULL, nothing, NULL);
        add_child(&batch, &columns[i]);
    }
    ck_assert_status(presto_arrow_open(&batch.schema, &options, &arrow, &err), PRESTO_ERR_TYPE,
                     &err);
    ck_assert_str_eq(err.message,
                     "6 columns cannot be stored: a (timestamp[us]: convert it to int64, "
                     "microseconds since 1970-01-01), b (map), c (decimal: convert it to string or "
                     "float64), d (interval), e (union), f (a type that is not known)");
    ck_assert_int_eq(heard.refused, 6);
    ck_assert_str_eq(heard.names, "a b c d e f ");
    options.convert = (const char *const[]){"a=int64", "good=int64"};
    options.convert_count = 2;
    heard = (told){0};
    ck_assert_status(presto_arrow_open(&batch.schema, &options, &arrow, &err), PRESTO_ERR_TYPE,
                     &err);
    ck_assert_str_eq(heard.names, "good a b c d e f ");
    ck_assert_int_eq(heard.converted, 1);
    options.convert = (const char *const[]){"other=int64"};
    options.convert_count = 1;
    ck_assert_status(presto_arrow_open(&batch.schema, &options, &arrow, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_str_eq(err.message, "'other=int64' names no column of the schema");
    make_struct(&batch, "", 0, NULL, 0);
    ck_assert_status(presto_arrow_open(&batch.schema, NULL, &arrow, &err), PRESTO_ERR_TYPE, &err);
    make_struct(&batch, "", 0, (column *const[]){&good, &good}, 2);
    ck_assert_status(presto_arrow_open(&batch.schema, NULL, &arrow, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_str_eq(err.message, "1 column cannot be stored: good (there twice)");
    ck_assert_status(presto_arrow_open(&good.schema, NULL, &arrow, &err), PRESTO_ERR_TYPE, &err);
    batch.schema.release(&batch.schema);
    ck_assert_status(presto_arrow_open(&batch.schema, NULL, &arrow, &err), PRESTO_ERR_CORRUPT,
                     &err);
    tear_down();
}
END_TEST

START_TEST(more_columns_than_a_dataset_has_are_refused) {
    set_up();
    size_t count = PRESTO_MAX_FEATURES + 1;
    struct ArrowSchema *list = calloc(count, sizeof *list);
    struct ArrowSchema **children = calloc(count, sizeof *children);
    char(*names)[16] = calloc(count, sizeof *names);
    presto_arrow *arrow;
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%zu", i);
        list[i] = (struct ArrowSchema){.format = "l", .name = names[i], .release = release_schema};
        children[i] = &list[i];
    }
    struct ArrowSchema schema = {.format = "+s",
                                 .n_children = (int64_t)count,
                                 .children = children,
                                 .release = release_schema};
    ck_assert_status(presto_arrow_open(&schema, NULL, &arrow, &err), PRESTO_ERR_LIMIT, &err);
    schema.n_children--;
    ck_assert_ok(presto_arrow_open(&schema, NULL, &arrow, &err), &err);
    presto_arrow_free(arrow);
    free(names);
    free(children);
    free(list);
    tear_down();
}
END_TEST

START_TEST(rows_that_cannot_be_stored_end_the_call) {
    set_up();
    column batch, list, item;
    told heard = {0};
    const int64_t numbers[] = {1, 2, 3, 4};
    const int32_t ends[] = {0, 1, 3, 4};
    uint8_t there = 0x0d; /* the second number lacks */
    make(&item, "item", "l", 4, &there, numbers, NULL);
    make(&list, "list", "+l", 3, NULL, ends, NULL);
    add_child(&list, &item);
    make_struct(&batch, "", 3, (column *const[]){&list}, 1);
    presto_writer *writer = open_writer("out", 0);
    ck_assert_status(add(writer, &batch, NULL), PRESTO_ERR_TYPE, &err);
    ck_assert_str_eq(err.message, "column 'list', row 1 of its batch: a value in the list is "
                                  "missing, which cannot be stored");
    ck_assert_uint_eq(presto_writer_samples(writer), 1);
    presto_arrow_options options;
    presto_arrow_options_defaults(&options);
    options.on_note = take_note;
    options.on_note_user = &heard;
    uint8_t lists = 0x05;
    item.array.null_count = 0;
    list.buffers[0] = &lists;
    list.array.null_count = 1;
    ck_assert_ok(add(writer, &batch, &options), &err);
    ck_assert_int_eq(heard.nulls, 1);
    options.refuses_nulls = true;
    ck_assert_status(add(writer, &batch, &options), PRESTO_ERR_TYPE, &err);
    ck_assert_str_eq(err.message, "column 'list', row 1 of its batch: the value is missing");
    list.array.null_count = 0;
    options.tensors = (const char *const[]){"list=int64[2]"};
    options.tensor_count = 1;
    ck_assert_status(add(writer, &batch, &options), PRESTO_ERR_RAGGED, &err);
    ck_assert_str_eq(err.message, "column 'list', row 0 of its batch: 1 values are no int64[2]");
    presto_writer_free(writer);
    column outer;
    const int32_t outer_ends[] = {0, 1, 3};
    make(&outer, "o", "+l", 2, NULL, outer_ends, NULL);
    add_child(&outer, &list);
    make_struct(&batch, "", 2, (column *const[]){&outer}, 1);
    writer = open_writer("ragged", 0);
    ck_assert_status(add(writer, &batch, NULL), PRESTO_ERR_RAGGED, &err);
    ck_assert_uint_eq(presto_writer_samples(writer), 1);
    presto_writer_free(writer);
    tear_down();
}
END_TEST

/* ---- lies ---- */

START_TEST(arrays_that_contradict_themselves_are_corrupt) {
    set_up();
    column batch, x, b, list, item, d, words, view;
    const int64_t numbers[] = {1, 2, 3, 4};
    int32_t offsets[] = {0, 1, 2, 3};
    int32_t ends[] = {0, 1, 2, 4};
    int8_t indexes[] = {0, 1, 0};
    uint8_t views[3][16] = {{0}};
    const int64_t room = 20;
    const char body[20] = "twenty bytes of text";
    const void *view_buffers[] = {NULL, views, body, &room};
    int32_t far[] = {13, 0, 0, 8};
#define MAKE()                                                                                     \
    do {                                                                                           \
        make(&x, "x", "l", 3, NULL, numbers, NULL);                                                \
        make(&b, "b", "u", 3, NULL, offsets, "abc");                                               \
        make(&item, "item", "l", 4, NULL, numbers, NULL);                                          \
        make(&list, "list", "+l", 3, NULL, ends, NULL);                                            \
        add_child(&list, &item);                                                                   \
        make(&words, "", "u", 2, NULL, offsets, "abc");                                            \
        make(&d, "d", "c", 3, NULL, indexes, NULL);                                                \
        d.schema.dictionary = &words.schema;                                                       \
        d.array.dictionary = &words.array;                                                         \
        make(&view, "view", "vz", 3, NULL, NULL, NULL);                                            \
        view.array.n_buffers = 4;                                                                  \
        view.array.buffers = view_buffers;                                                         \
        make_struct(&batch, "", 3, (column *const[]){&x, &b, &list, &d, &view}, 5);                \
    } while (0)
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        MAKE();                                                                                    \
        change;                                                                                    \
        ck_assert_status(add(writer, &batch, NULL), PRESTO_ERR_CORRUPT, &err);                     \
    } while (0)
    presto_writer *writer = open_writer("out", 0);
    MAKE();
    ck_assert_ok(add(writer, &batch, NULL), &err);
    REFUSED(batch.array.length = 4);
    REFUSED(batch.array.length = -1);
    REFUSED(batch.array.offset = 1);
    REFUSED(batch.array.offset = INT64_MAX);
    REFUSED(batch.array.n_children = 4);
    REFUSED(batch.array.n_buffers = 0);
    REFUSED(batch.array.null_count = 1);
    REFUSED(x.array.length = 2);
    REFUSED(x.array.offset = -1);
    REFUSED(x.array.offset = INT64_MAX - 1);
    REFUSED(x.array.n_buffers = 3);
    REFUSED(x.array.null_count = 4);
    REFUSED(x.array.null_count = 2);
    REFUSED(x.array.release = NULL);
    REFUSED(x.buffers[1] = NULL);
    REFUSED(batch.arrays[0] = NULL);
    REFUSED(b.buffers[1] = NULL);
    REFUSED(b.buffers[2] = NULL);
    REFUSED(b.array.n_buffers = 2);
    REFUSED(list.array.n_children = 0);
    REFUSED(list.arrays[0] = NULL);
    REFUSED(list.buffers[1] = NULL);
    REFUSED(item.array.length = 3);
    REFUSED(item.array.length = -4);
    REFUSED(d.array.dictionary = NULL);
    REFUSED(words.array.length = 1);
    REFUSED(view.array.n_buffers = 2);
    offsets[1] = 3;
    REFUSED((void)0);
    offsets[1] = -1;
    REFUSED((void)0);
    offsets[0] = -2;
    REFUSED((void)0);
    offsets[0] = 0;
    offsets[1] = 4; /* behind the last one: it is not read, and row 0 is not added */
    uint64_t before = presto_writer_samples(writer);
    REFUSED((void)0);
    ck_assert_str_eq(err.message,
                     "column 'b', row 0 of its batch: offsets of bytes go backwards, or "
                     "lie behind the last one");
    ck_assert_uint_eq(presto_writer_samples(writer), before);
    offsets[1] = 1;
    ends[0] = -1;
    REFUSED((void)0);
    ends[0] = 2;
    REFUSED((void)0);
    ends[0] = 0;
    indexes[2] = -1;
    REFUSED((void)0);
    indexes[2] = 2;
    REFUSED((void)0);
    indexes[2] = 0;
    memcpy(views[2], far, sizeof far); /* eight bytes too far */
    REFUSED((void)0);
    far[0] = -1;
    memcpy(views[2], far, sizeof far);
    REFUSED((void)0);
    far[0] = 13, far[2] = 1;
    memcpy(views[2], far, sizeof far);
    REFUSED((void)0);
    far[2] = 0, far[3] = 7;
    memcpy(views[2], far, sizeof far);
    MAKE();
    ck_assert_ok(add(writer, &batch, NULL), &err);
    batch.array.release(&batch.array);
    ck_assert_status(add(writer, &batch, NULL), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ok(presto_writer_finish(writer, NULL, &err), &err);
    presto_writer_free(writer);
    tear_down();
}
END_TEST

/* ---- lack of memory ---- */

START_TEST(a_lack_of_memory_is_told_and_leaves_nothing) {
    set_up();
    column batch, b, d, list, item;
    const int64_t numbers[] = {1, 2, 3, 4};
    const int32_t offsets[] = {0, 1, 2, 3}, ends[] = {0, 1, 2, 4};
    const int64_t decimals[] = {5, 0, 6, 0, 7, 0};
    presto_arrow_options options;
    presto_arrow_options_defaults(&options);
    options.convert = (const char *const[]){"d=string"};
    options.convert_count = 1;
    make(&b, "b", "u", 3, NULL, offsets, "abc");
    make(&d, "d", "d:9,2", 3, NULL, decimals, NULL);
    make(&item, "item", "l", 4, NULL, numbers, NULL);
    make(&list, "a name that is longer than a piece of 32 bytes", "+l", 3, NULL, ends, NULL);
    add_child(&list, &item);
    make_struct(&batch, "", 3, (column *const[]){&b, &d, &list}, 3);
    bool fired = true;
    for (long k = 0; fired; k++) {
        char name[32];
        snprintf(name, sizeof name, "out-of-%ld", k);
        presto_writer *writer = open_writer(name, 0);
        faults_arm(FAULT_MEMORY, k);
        presto_status status = add(writer, &batch, &options);
        fired = faults_disarm();
        ck_assert_int_eq(status, fired ? PRESTO_ERR_MEMORY : PRESTO_OK);
        ck_assert_uint_le(presto_writer_samples(writer), 3);
        ck_assert_ok(add(writer, &batch, &options), &err); /* the writer goes on */
        presto_writer_free(writer);
    }
    tear_down();
}
END_TEST

/* ---- many rows ---- */

#define ROWS 3000
#define CALLS 6
#define ADDERS 4

static int64_t many[ROWS];

static presto_writer *shared_writer;

static void *add_many(void *unused) {
    column batch, x;
    presto_error mine;
    presto_arrow *arrow;
    (void)unused;
    make(&x, "x", "l", ROWS, NULL, many, NULL);
    make_struct(&batch, "", ROWS, (column *const[]){&x}, 1);
    ck_assert_ok(presto_arrow_open(&batch.schema, NULL, &arrow, &mine), &mine);
    for (int i = 0; i < CALLS; i++)
        ck_assert_ok(presto_writer_add_arrow(shared_writer, arrow, &batch.array, &mine), &mine);
    presto_arrow_free(arrow);
    return NULL;
}

START_TEST(any_number_of_threads_may_add_batches) {
    set_up();
    pthread_t threads[ADDERS];
    for (int64_t i = 0; i < ROWS; i++)
        many[i] = i;
    shared_writer = open_writer("out", 2);
    for (int i = 0; i < ADDERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many, NULL), 0);
    for (int i = 0; i < ADDERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    presto_convert_result result = {0};
    ck_assert_ok(presto_writer_finish(shared_writer, &result, &err), &err);
    ck_assert_uint_eq(result.samples, (uint64_t)ROWS * CALLS * ADDERS);
    presto_writer_free(shared_writer);
    tear_down();
}
END_TEST

/* Rows of two batches, of which the second is as long as several blocks, have the bytes of samples
 * that are added one by one. */
START_TEST(batches_have_the_bytes_of_samples) {
    set_up();
    static int64_t numbers[20000];
    static int32_t ends[20001];
    column batch, x, list, item;
    size_t bytes[2];
    uint8_t *shards[2];
    for (int32_t i = 0; i < 20000; i++) {
        numbers[i] = (int64_t)i * i - 5000000;
        ends[i + 1] = ends[i] + (i % 3 == 1);
    }
    presto_writer *writer = open_writer("batches", 1);
    make(&x, "x", "l", 20000, NULL, numbers, NULL);
    make(&item, "item", "l", 20000, NULL, numbers, NULL);
    make(&list, "list", "+l", 20000, NULL, ends, NULL);
    add_child(&list, &item);
    make_struct(&batch, "", 1, (column *const[]){&x, &list}, 2);
    ck_assert_ok(add(writer, &batch, NULL), &err);
    batch.array.offset = 1;
    batch.array.length = 19999;
    ck_assert_ok(add(writer, &batch, NULL), &err);
    ck_assert_ok(presto_writer_finish(writer, NULL, &err), &err);
    presto_writer_free(writer);
    writer = open_writer("samples", 1);
    for (int32_t i = 0; i < 20000; i++) {
        presto_feature features[] = {
            {presto_span_of_text("x"),
             PRESTO_ENCODE_INT64,
             {.spec = {.dtype = PRESTO_INT64}, {.data = &numbers[i]}}},
            {presto_span_of_text("list"),
             PRESTO_ENCODE_INT64,
             {.spec = {PRESTO_INT64, 1, {ends[i + 1] - ends[i]}}, {.data = &numbers[ends[i]]}}}};
        const presto_sample sample = {.features = features, .feature_count = 2};
        ck_assert_ok(presto_writer_add(writer, &sample, &err), &err);
    }
    ck_assert_ok(presto_writer_finish(writer, NULL, &err), &err);
    presto_writer_free(writer);
    shards[0] = read_shard("batches", &bytes[0]);
    shards[1] = read_shard("samples", &bytes[1]);
    ck_assert(presto_span_equal(presto_span_of(shards[0], bytes[0]),
                                presto_span_of(shards[1], bytes[1])));
    free(shards[0]);
    free(shards[1]);
    tear_down();
}
END_TEST

START_TEST(more_rows_than_were_announced_are_refused) {
    set_up();
    column batch, x;
    presto_writer_options options;
    presto_writer *writer;
    presto_writer_options_defaults(&options);
    options.dir = path_in(dir, "out");
    options.samples = 5;
    options.shards = 2;
    options.sync = false;
    ck_assert_ok(presto_writer_open(&options, &writer, &err), &err);
    make(&x, "x", "l", 4, NULL, many, NULL);
    make_struct(&batch, "", 4, (column *const[]){&x}, 1);
    ck_assert_ok(add(writer, &batch, NULL), &err);
    ck_assert_status(add(writer, &batch, NULL), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_uint_eq(presto_writer_samples(writer), 5);
    make(&x, "x", "f", 4, NULL, many, NULL);
    ck_assert_status(add(writer, &batch, NULL), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ok(presto_writer_finish(writer, NULL, &err), &err);
    presto_writer_free(writer);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        rows_are_the_examples_of_the_format,
        types_become_features,
        decimals_are_text_or_float64,
        slices_at_every_level_are_found,
        lists_and_tensors,
        what_cannot_be_stored_is_refused_at_once,
        more_columns_than_a_dataset_has_are_refused,
        rows_that_cannot_be_stored_end_the_call,
        arrays_that_contradict_themselves_are_corrupt,
        a_lack_of_memory_is_told_and_leaves_nothing,
        any_number_of_threads_may_add_batches,
        batches_have_the_bytes_of_samples,
        more_rows_than_were_announced_are_refused,
    };
    return presto_check_main("arrow_in", tests, sizeof tests / sizeof tests[0], 120);
}
