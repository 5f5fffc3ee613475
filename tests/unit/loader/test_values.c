/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that go straight into columns, against the same records parsed one by one: tables of all
 * kinds of features, with every oddity that protobuf allows, and damaged bytes.
 */
#include "../../../base/rng_internal.h"
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <presto/rng.h>

#include "values_check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TABLES = 60 };
#else
enum { TABLES = 600 };
#endif

enum { MOST_FEATURES = 40, MOST_ROWS = 40 };

/* ---- writing Examples, of any form ---- */

static void put_bytes(presto_buffer *out, const void *data, size_t bytes) {
    presto_error err;
    ck_assert_ok(presto_buffer_append(out, presto_span_of(data, bytes), &err), &err);
}

static void put_varint(presto_buffer *out, uint64_t value) {
    uint8_t bytes[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    put_bytes(out, bytes, count);
}

static void put_field(presto_buffer *out, unsigned number, const presto_buffer *message) {
    put_varint(out, number << 3 | 2);
    put_varint(out, message->bytes);
    put_bytes(out, message->data, message->bytes);
}

/* What a feature of the table is like; odd ones are drawn a record. */
typedef enum feature_kind {
    KIND_FLOATS,
    KIND_INT64S,
    KIND_STRINGS,
    KIND_NONE,
    KIND_TENSOR,
    KINDS
} feature_kind;

typedef struct table {
    presto_rng rng;
    size_t count;
    char names[MOST_FEATURES][192];
    feature_kind kinds[MOST_FEATURES];
    size_t lengths[MOST_FEATURES]; /* of lists; SIZE_MAX: differs from record to record */
    presto_feature_spec specs[MOST_FEATURES + 1];
    presto__rule rules[MOST_FEATURES];
    unsigned odd_of; /* one feature in so many is odd; 0: none */
    size_t order[MOST_FEATURES];
} table;

static size_t below(table *t, size_t bound) {
    return (size_t)presto_rng_below(&t->rng, bound);
}

static uint64_t small_or_large(table *t) {
    uint64_t bits = presto_rng_next(&t->rng);
    switch (below(t, 4)) {
    case 0:
        return bits;
    case 1:
        return bits >> 56 >> below(t, 8);
    default:
        return bits >> below(t, 64);
    }
}

/* A list's values: in one run, one by one, or in two runs. */
static void put_numbers(table *t, presto_buffer *list, feature_kind kind, size_t count,
                        bool is_odd) {
    presto_buffer run = {0};
    unsigned form = is_odd ? (unsigned)below(t, 3) : 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = small_or_large(t);
        if (form == 1 || (form == 2 && i == count / 2)) {
            put_varint(list, kind == KIND_FLOATS ? 0x0d : 0x08);
            if (kind == KIND_FLOATS)
                put_bytes(list, &value, 4);
            else
                put_varint(list, value);
        } else if (kind == KIND_FLOATS) {
            put_bytes(&run, &value, 4);
        } else {
            put_varint(&run, value);
        }
    }
    if (run.bytes > 0 || (is_odd && below(t, 4) == 0))
        put_field(list, 1, &run);
    presto_buffer_done(&run);
}

static void put_strings(table *t, presto_buffer *list, size_t count) {
    uint8_t text[300];
    for (size_t i = 0; i < count; i++) {
        size_t bytes = below(t, below(t, 8) == 0 ? sizeof text : 20);
        for (size_t j = 0; j < bytes; j++)
            text[j] = (uint8_t)below(t, 256);
        presto_buffer string = {0};
        put_bytes(&string, text, bytes);
        put_field(list, 1, &string);
        presto_buffer_done(&string);
    }
}

/* Of one shape, or of any; odd ones may have another dtype, or be no tensor as we write it. */
static void put_tensor(table *t, presto_buffer *list, bool varies, bool is_odd) {
    presto_error err;
    uint16_t values[12];
    for (size_t i = 0; i < 12; i++)
        values[i] = (uint16_t)below(t, 65536);
    presto_tensor tensor = {.spec = {.dtype = PRESTO_UINT16, .rank = 2, .dims = {2, 3}},
                            .data = values};
    if (varies || (is_odd && below(t, 3) == 0)) {
        tensor.spec.rank = (int)below(t, 4);
        for (int i = 0; i < tensor.spec.rank; i++)
            tensor.spec.dims[i] = (int64_t)below(t, i == 0 ? 4 : 3);
    }
    if (is_odd && below(t, 6) == 0)
        tensor.spec.dtype = PRESTO_INT16;
    presto_buffer proto = {0};
    if (is_odd && below(t, 6) == 0)
        put_bytes(&proto, "\x08\x11\x12\x04\x12\x02\x08\x03\x3a\x02\x05\x07",
                  12); /* values 5, 7, 7 */
    else
        ck_assert_ok(presto__tensor_proto_append(&proto, &tensor, &err), &err);
    put_field(list, 1, &proto);
    presto_buffer_done(&proto);
}

/* The value of a feature: a Feature message. */
static void put_feature(table *t, size_t i, bool is_odd, presto_buffer *feature) {
    static const unsigned numbers[] = {2, 3, 1, 0, 1};
    feature_kind kind = is_odd && below(t, 3) == 0 ? (feature_kind)below(t, KINDS) : t->kinds[i];
    size_t count =
        t->lengths[i] == SIZE_MAX || (is_odd && below(t, 3) == 0) ? below(t, 5) : t->lengths[i];
    presto_buffer list = {0};
    if (is_odd && below(t, 8) == 0)
        put_bytes(feature, "\x50\x01", 2); /* an unknown field */
    if (kind == KIND_FLOATS || kind == KIND_INT64S)
        put_numbers(t, &list, kind, count, is_odd);
    else if (kind == KIND_STRINGS)
        put_strings(t, &list, count);
    else if (kind == KIND_TENSOR)
        put_tensor(t, &list, t->lengths[i] == SIZE_MAX, is_odd);
    if (kind != KIND_NONE)
        put_field(feature, numbers[kind], &list);
    if (is_odd && kind != KIND_NONE && below(t, 8) == 0)
        put_field(feature, numbers[below(t, 3)], &list);
    presto_buffer_done(&list);
}

static void put_entry(table *t, size_t i, presto_buffer *features) {
    bool is_odd = t->odd_of > 0 && below(t, t->odd_of) == 0;
    presto_buffer name = {0}, feature = {0}, entry = {0};
    if (is_odd && below(t, 6) == 0)
        return; /* it is missing */
    put_bytes(&name, t->names[i], strlen(t->names[i]));
    if (is_odd && below(t, 10) == 0)
        put_bytes(&name, "?", 1);
    put_feature(t, i, is_odd, &feature);
    bool is_turned = is_odd && below(t, 10) == 0;
    if (is_turned)
        put_field(&entry, 2, &feature);
    put_field(&entry, 1, &name);
    if (!is_turned)
        put_field(&entry, 2, &feature);
    put_field(features, 1, &entry);
    if (is_odd && below(t, 10) == 0)
        put_field(features, 1, &entry); /* twice */
    presto_buffer_done(&name);
    presto_buffer_done(&feature);
    presto_buffer_done(&entry);
}

/* Now and then, all following records have another order. */
static void shuffle(table *t) {
    for (size_t i = t->count; i > 1; i--) {
        size_t other = below(t, i), kept = t->order[i - 1];
        t->order[i - 1] = t->order[other];
        t->order[other] = kept;
    }
}

static void put_example(table *t, presto_buffer *out) {
    presto_buffer features = {0};
    if (below(t, 20) == 0)
        shuffle(t);
    for (size_t i = 0; i < t->count; i++)
        put_entry(t, t->order[i], &features);
    put_field(out, 1, &features);
    if (t->odd_of > 0 && below(t, 50) == 0)
        put_field(out, 1, &features);
    presto_buffer_done(&features);
}

/* Flip, cut, remove or repeat bytes. */
static void damage(table *t, presto_buffer *record) {
    if (record->bytes == 0)
        return;
    size_t at = below(t, record->bytes), count = 1 + below(t, 4);
    if (count > record->bytes - at)
        count = record->bytes - at;
    switch (below(t, 4)) {
    case 0:
        record->data[at] ^= (uint8_t)(1u << below(t, 8));
        break;
    case 1:
        record->data[at] = (uint8_t)below(t, 256);
        break;
    case 2:
        record->bytes = at;
        break;
    default:
        memmove(record->data + at, record->data + at + count, record->bytes - at - count);
        record->bytes -= count;
        break;
    }
}

/* ---- tables ---- */

static void draw_table(table *t, uint64_t number) {
    memset(t, 0, sizeof *t);
    const presto__rng_key key = {.seed = presto_check_seed(), .sample = number};
    presto__rng_init(&t->rng, &key);
    t->count = below(t, below(t, 4) == 0 ? MOST_FEATURES : 8) + 1;
    for (size_t i = 0; i < t->count; i++) {
        size_t bytes = below(t, below(t, 20) == 0 ? 140 : 14);
        snprintf(
            t->names[i], sizeof t->names[i], "%zu%.*s", i, (int)bytes,
            "_a_name_that_takes_all_the_lengths_which_a_head_can_have__a_name_that_takes_all_the"
            "_lengths_which_a_head_can_have__and_more_than_one_byte_of_length");
        t->kinds[i] = (feature_kind)below(t, 6) % KINDS;
        t->lengths[i] = below(t, 3) > 0 ? 1 : below(t, 3) > 0 ? below(t, 70) : SIZE_MAX;
        t->order[i] = i;
    }
    t->odd_of = (unsigned)(below(t, 3) == 0 ? 0 : below(t, 2) == 0 ? 4 : 200);
    shuffle(t);
}

/* Specs for some of the features. */
static size_t draw_specs(table *t) {
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (below(t, 3) == 0)
            continue;
        bool is_tensor = t->kinds[i] == KIND_TENSOR && below(t, 8) > 0;
        t->specs[count++] =
            (presto_feature_spec){.name = t->names[i],
                                  .encoding = is_tensor ? PRESTO_ENCODE_TENSOR : PRESTO_ENCODE_NONE,
                                  .spec = {.rank = (int)below(t, 3) - 1}};
    }
    return count;
}

static int compare_rules(const void *a, const void *b) {
    const presto__rule *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static size_t draw_rules(table *t) {
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        if (below(t, 4) == 0)
            t->rules[count++] = (presto__rule){.name = t->names[i],
                                               .is_ragged = below(t, 2) == 0,
                                               .is_padded = below(t, 3) == 0,
                                               .pad_length = below(t, 6)};
    qsort(t->rules, count, sizeof *t->rules, compare_rules);
    return count;
}

/* Batches of one table; returns how many rows went the short way. */
static size_t run_table(table *t, size_t batches) {
    presto_error err;
    two_ways both = {0};
    presto_example_specs specs = {.list = t->specs, .count = draw_specs(t)};
    specs.only_these = below(t, 3) == 0;
    both.specs = &specs;
    presto__rules rules = {.list = t->rules, .count = draw_rules(t), .has_pads = true};
    ck_assert_ok(presto__example_layout_new(&specs, &both.layout, &err), &err);
    for (size_t i = 0; i < batches; i++) {
        size_t rows = 1 + below(t, MOST_ROWS);
        ck_assert_ok(begin_both(&both, &rules, rows, &err), &err);
        for (size_t row = 0; row < rows; row++) {
            presto_buffer record = {0};
            put_example(t, &record);
            if (t->odd_of == 4 && below(t, 4) == 0)
                damage(t, &record);
            uint8_t *copy = presto_check_copy(presto_buffer_span(&record));
            put_record(&both, presto_span_of(copy, record.bytes));
            free(copy);
            presto_buffer_done(&record);
        }
        end_both(&both);
        ck_assert_msg(both.difference[0] == '\0', "batch %zu: %s", i, both.difference);
    }
    size_t put_fast = both.put_fast;
    free_both(&both);
    return put_fast;
}

START_TEST(records_give_the_same_samples_errors_and_batches_either_way) {
    static table t;
    size_t put_fast = 0;
    for (uint64_t i = 0; i < TABLES; i++) {
        draw_table(&t, i);
        put_fast += run_table(&t, 1 + below(&t, 12));
    }
    ck_assert_uint_gt(put_fast / TABLES, 10);
}
END_TEST

/* Batches of 100 rows without oddities: how many of 400 rows go the short way? */
static size_t run_plain(table *t, const presto_example_specs *specs) {
    presto_error err;
    two_ways both = {.specs = specs};
    const presto__rules rules = {0};
    t->odd_of = 0;
    ck_assert_ok(presto__example_layout_new(specs, &both.layout, &err), &err);
    for (size_t batch = 0; batch < 4; batch++) {
        ck_assert_ok(begin_both(&both, &rules, 100, &err), &err);
        for (size_t row = 0; row < 100; row++) {
            presto_buffer record = {0};
            put_example(t, &record);
            put_record(&both, presto_buffer_span(&record));
            presto_buffer_done(&record);
        }
        end_both(&both);
        ck_assert_msg(both.difference[0] == '\0', "%s", both.difference);
    }
    size_t put_fast = both.put_fast;
    free_both(&both);
    return put_fast;
}

/* A table as people have it: every row but the first of each batch goes the short way, in any order
 * of names. */
START_TEST(rows_of_a_plain_table_go_the_short_way) {
    static table t;
    draw_table(&t, 0);
    t.count = 30;
    for (size_t i = 0; i < t.count; i++) {
        snprintf(t.names[i], sizeof t.names[i], "feature_%zu", (i * 7) % 30);
        t.kinds[i] = i < 20 ? KIND_FLOATS : i < 29 ? KIND_INT64S : KIND_STRINGS;
        t.lengths[i] = 1;
        t.order[i] = i;
    }
    ck_assert_uint_eq(run_plain(&t, NULL), 396);
}
END_TEST

/* Tensors of one shape beside a label; tensors of any shape do so once their first row has shown
 * that they differ. */
START_TEST(rows_of_tensors_go_the_short_way) {
    static table t;
    draw_table(&t, 0);
    t.count = 2;
    for (size_t i = 0; i < t.count; i++) {
        snprintf(t.names[i], sizeof t.names[i], i == 0 ? "label" : "x");
        t.kinds[i] = i == 0 ? KIND_INT64S : KIND_TENSOR;
        t.lengths[i] = 1;
        t.order[i] = i;
    }
    const presto_feature_spec x = {.name = t.names[1], .encoding = PRESTO_ENCODE_TENSOR};
    const presto_example_specs specs = {.list = &x, .count = 1};
    ck_assert_uint_eq(run_plain(&t, &specs), 396);
    t.lengths[1] = SIZE_MAX;
    /* A tensor without values is not of the form that is compared: one of five. */
    ck_assert_uint_gt(run_plain(&t, &specs), 150);
}
END_TEST

/* A feature that some rows lack: the others still go the short way. */
START_TEST(rows_that_lack_a_feature_go_the_short_way_too) {
    static table t;
    presto_error err;
    two_ways both = {0};
    const presto__rules rules = {0};
    draw_table(&t, 0);
    t.odd_of = 0;
    for (size_t i = 0; i < 3; i++) {
        snprintf(t.names[i], sizeof t.names[i], "x%zu", i);
        t.kinds[i] = KIND_FLOATS;
        t.lengths[i] = 1;
        t.order[i] = i;
    }
    ck_assert_ok(presto__example_layout_new(NULL, &both.layout, &err), &err);
    ck_assert_ok(begin_both(&both, &rules, 100, &err), &err);
    for (size_t row = 0; row < 100; row++) {
        presto_buffer record = {0};
        t.count = row % 5 == 1 ? 2 : 3;
        for (size_t i = 0; i < 3; i++)
            t.order[i] = i;
        put_example(&t, &record);
        put_record(&both, presto_buffer_span(&record));
        presto_buffer_done(&record);
    }
    end_both(&both);
    ck_assert_msg(both.difference[0] == '\0', "%s", both.difference);
    ck_assert_uint_ge(both.put_fast, 95);
    free_both(&both);
}
END_TEST

/* An entry without a value, called by the number. */
static void put_empty(presto_buffer *features, unsigned number) {
    char text[32];
    presto_buffer name = {0}, entry = {0};
    put_bytes(&name, text, (size_t)snprintf(text, sizeof text, "n%u", number));
    put_field(&entry, 1, &name);
    put_field(&entry, 2, &(presto_buffer){0});
    put_field(features, 1, &entry);
    presto_buffer_done(&name);
    presto_buffer_done(&entry);
}

/* Always new names: the layout begins again, its memory stays bounded. */
START_TEST(a_layout_forgets_when_there_are_too_many_names) {
    presto_error err;
    presto__example_layout *layout;
    presto_arena arena = {0};
    presto_sample sample;
    ck_assert_ok(presto__example_layout_new(NULL, &layout, &err), &err);
    bool began_again = false;
    size_t known = 0;
    for (unsigned i = 0; i < 60000;) {
        presto_buffer features = {0}, record = {0};
        for (unsigned end = i + 100; i < end; i++)
            put_empty(&features, i);
        put_field(&record, 1, &features);
        presto_span bytes = presto_buffer_span(&record);
        presto_arena_reset(&arena);
        ck_assert_ok(presto__example_layout_parse(layout, bytes, &arena, &sample, &err), &err);
        ck_assert_uint_eq(sample.feature_count, 100);
        presto__example_values values;
        if (presto__example_layout_match(layout, bytes, &values)) {
            ck_assert_uint_le(values.feature_count, 2048);
            began_again = began_again || values.feature_count < known;
            known = values.feature_count;
        }
        presto_buffer_done(&features);
        presto_buffer_done(&record);
    }
    ck_assert(began_again);
    presto_arena_done(&arena);
    presto__example_layout_free(layout);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        records_give_the_same_samples_errors_and_batches_either_way,
        rows_of_a_plain_table_go_the_short_way,
        rows_of_tensors_go_the_short_way,
        rows_that_lack_a_feature_go_the_short_way_too,
        a_layout_forgets_when_there_are_too_many_names,
    };
    return presto_check_main("values", tests, sizeof tests / sizeof tests[0], 120);
}
