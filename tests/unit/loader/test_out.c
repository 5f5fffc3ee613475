/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats: what each writes of a made batch, and what it does when writing ends. */
#include <presto/out.h>

#include <string.h>

#include "presto_check.h"

enum { MOST_ROWS = 1500 };

static presto_error err;

/* ---- a batch: "image" of two numbers, "key" of two letters ---- */

static int32_t values[2 * MOST_ROWS];
static int64_t offsets[MOST_ROWS + 1];
static uint64_t numbers[MOST_ROWS];
static uint8_t text[2 * MOST_ROWS];
static presto_batch_feature features[2];

static presto_batch make_batch(size_t rows) {
    for (size_t i = 0; i < 2 * rows; i++) {
        values[i] = (int32_t)i;
        text[i] = (uint8_t)('a' + i % 26);
    }
    for (size_t i = 0; i <= rows; i++)
        offsets[i] = (int64_t)(2 * i);
    features[0] = (presto_batch_feature){
        .name = "image",
        .encoding = PRESTO_ENCODE_TENSOR,
        .layout = PRESTO_LAYOUT_DENSE,
        .tensor = {.spec = {PRESTO_INT32, 2, {(int64_t)rows, 2}}, .data = values}};
    features[1] = (presto_batch_feature){
        .name = "key",
        .encoding = PRESTO_ENCODE_BYTES,
        .layout = PRESTO_LAYOUT_BYTES,
        .tensor = {.spec = {PRESTO_UINT8, 1, {(int64_t)(2 * rows)}}, .data = text},
        .offsets = offsets};
    return (presto_batch){.rows = rows,
                          .sample_numbers = numbers,
                          .features = features,
                          .feature_count = 2,
                          .frames = presto_span_of_text("frames"),
                          .main_feature = 0};
}

/* ---- a writer that keeps what it gets ---- */

typedef struct kept {
    uint8_t bytes[1 << 16];
    size_t count, calls;
    size_t ends_after; /* calls; 0: never */
    presto_status then;
} kept;

static presto_status keep(void *user, const presto_span *pieces, size_t count,
                          uint64_t *written_out, presto_error *error) {
    kept *self = user;
    *written_out = 0;
    if (self->ends_after > 0 && self->calls == self->ends_after) {
        *written_out = 3;
        return self->then == PRESTO_END ? PRESTO_END
                                        : presto_fail(error, self->then, PRESTO_NO_OFFSET, "full");
    }
    self->calls++;
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_le(self->count + pieces[i].bytes, sizeof self->bytes);
        if (pieces[i].bytes > 0)
            memcpy(self->bytes + self->count, pieces[i].data, pieces[i].bytes);
        self->count += pieces[i].bytes;
        *written_out += pieces[i].bytes;
    }
    return PRESTO_OK;
}

static const presto_out_format *find(const char *name) {
    const presto_out_format *format;
    for (size_t i = 0; (format = presto_out_format_at(i)) != NULL; i++)
        if (strcmp(format->name, name) == 0)
            return format;
    ck_abort_msg("no format %s", name);
}

static presto_out *open_format(const char *name, kept *to, const char *const *wanted) {
    presto_out_options options;
    presto_out *out = NULL;
    presto_out_options_defaults(&options);
    options.format = find(name);
    options.write = keep;
    options.write_user = to;
    options.features = wanted;
    options.feature_count = wanted != NULL;
    ck_assert_ok(presto_out_open(&options, &out, &err), &err);
    return out;
}

/* ---- what each format begins and ends with: a new one gets a row ---- */

static const struct {
    const char *name;
    const char *wanted; /* a feature; NULL: as without --features */
    size_t bytes;       /* of a batch of three rows, and the end */
    const void *start;
    size_t start_bytes;
    const char *end;
    size_t end_bytes;
} formats[] = {
    {"tfrecord", NULL, 6, "frames", 6, "frames", 6},
    {"npy", NULL, 958, "\x93NUMPY\1\0", 8, "\"batches\":1}", 12},
    {"arrow", NULL, 1160, "\xff\xff\xff\xff", 4, "\xff\xff\xff\xff\0\0\0\0", 8},
    {"raw", "image", 24, values, 24, "\5\0\0\0", 4},
    {"null", NULL, 0, "", 0, "", 0},
    {"shm", NULL, 0, "", 0, "", 0}, /* test_ring.c */
};
enum { FORMATS = sizeof formats / sizeof *formats };

START_TEST(the_table_is_whole) {
    const presto_out_format *format;
    size_t count = 0;
    for (; (format = presto_out_format_at(count)) != NULL; count++) {
        size_t at = 0, others = 0;
        ck_assert(format->name[0] != '\0' && format->help[0] != '\0');
        ck_assert(!format->takes_main_only || format->takes_features);
        ck_assert(!format->takes_features || format->output == PRESTO_OUTPUT_BATCHES);
        while (at < FORMATS && strcmp(formats[at].name, format->name) != 0)
            at++;
        ck_assert_msg(at < FORMATS, "format %s has no row in this test", format->name);
        for (size_t i = 0; presto_out_format_at(i) != NULL; i++)
            others += strcmp(presto_out_format_at(i)->name, format->name) == 0;
        ck_assert_uint_eq(others, 1);
    }
    ck_assert_uint_eq(count, FORMATS);
    ck_assert_ptr_null(presto_out_format_at(count + 1));
}
END_TEST

START_TEST(a_batch_and_the_end_are_written) {
    static kept to;
    for (size_t i = 0; i < FORMATS; i++) {
        if (find(formats[i].name)->way == PRESTO_OUT_RING)
            continue;
        presto_batch batch = make_batch(3), none = make_batch(0);
        to = (kept){.calls = 0};
        presto_out *out = open_format(formats[i].name, &to,
                                      formats[i].wanted != NULL ? &formats[i].wanted : NULL);
        batch = make_batch(3);
        ck_assert_ok(presto_out_put(out, &batch, &err), &err);
        ck_assert_ok(presto_out_put(out, &none, &err), &err); /* of no rows: nothing */
        ck_assert_ok(presto_out_end(out, &err), &err);
        ck_assert_uint_eq(presto_out_bytes(out), to.count);
        ck_assert_msg(to.count == formats[i].bytes, "%s: %zu bytes", formats[i].name, to.count);
        ck_assert_mem_eq(to.bytes, formats[i].start, formats[i].start_bytes);
        size_t blanks = 0;
        while (strcmp(formats[i].name, "npy") == 0 && to.bytes[to.count - 1 - blanks] == ' ')
            blanks++;
        ck_assert_mem_eq(to.bytes + to.count - blanks - formats[i].end_bytes, formats[i].end,
                         formats[i].end_bytes);
        presto_out_fail(out, &err); /* a stream of bytes cannot say it */
        presto_out_free(out);
    }
}
END_TEST

START_TEST(many_pieces_are_written_in_several_calls) {
    static kept to;
    static const char *const wanted[] = {"image", "other"};
    presto_out_options options;
    presto_out *out = NULL;
    presto_batch batch = make_batch(MOST_ROWS);
    features[1] = features[0];
    features[1].name = "other";
    presto_out_options_defaults(&options);
    options.format = find("raw");
    options.write = keep;
    options.write_user = &to;
    options.features = wanted;
    options.feature_count = 2;
    ck_assert_ok(presto_out_open(&options, &out, &err), &err);
    ck_assert_ok(presto_out_put(out, &batch, &err), &err);
    ck_assert_uint_gt(to.calls, 1);
    ck_assert_uint_eq(to.count, (size_t)MOST_ROWS * 16);
    for (size_t row = 0; row < MOST_ROWS; row++)
        for (size_t i = 0; i < 2; i++)
            ck_assert_mem_eq(to.bytes + row * 16 + 8 * i, values + 2 * row, 8);
    presto_out_free(out);
}
END_TEST

START_TEST(a_reader_that_is_gone_and_a_failure_end_the_call) {
    static const presto_status ends[] = {PRESTO_END, PRESTO_ERR_STOPPED, PRESTO_ERR_IO};
    static kept to;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        presto_batch batch = make_batch(3);
        to = (kept){.ends_after = 1, .then = ends[i]};
        presto_out *out = open_format("npy", &to, NULL);
        ck_assert_ok(presto_out_put(out, &batch, &err), &err);
        uint64_t whole = presto_out_bytes(out);
        ck_assert_status(presto_out_put(out, &batch, &err), ends[i], &err);
        ck_assert_uint_eq(presto_out_bytes(out), whole + 3); /* what went before it failed counts */
        ck_assert_status(presto_out_end(out, &err), ends[i], &err);
        presto_out_free(out);
    }
}
END_TEST

START_TEST(a_feature_that_a_later_batch_lacks_or_adds) {
    static kept to;
    presto_batch batch = make_batch(3);
    batch.feature_count = 1;
    presto_out *out = open_format("npy", &to, NULL);
    ck_assert_ok(presto_out_put(out, &batch, &err), &err);
    batch.feature_count = 2; /* described anew */
    ck_assert_ok(presto_out_put(out, &batch, &err), &err);
    batch.features = &features[1];
    batch.feature_count = 1; /* image is there, without values */
    batch.main_feature = SIZE_MAX;
    ck_assert_ok(presto_out_put(out, &batch, &err), &err);
    presto_out_free(out);

    const char *wanted = "image";
    to = (kept){.calls = 0};
    out = open_format("raw", &to, &wanted);
    ck_assert_status(presto_out_put(out, &batch, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "no feature 'image'"));
    presto_out_free(out);

    to = (kept){.calls = 0};
    out = open_format("arrow", &to, NULL);
    ck_assert_ok(presto_out_put(out, &batch, &err), &err);
    batch = make_batch(3);
    ck_assert_status(presto_out_put(out, &batch, &err), PRESTO_ERR_RAGGED, &err);
    presto_out_free(out);
}
END_TEST

START_TEST(options_that_do_not_fit_the_format_are_refused) {
    presto_out_options options;
    presto_out *out = NULL;
    presto_out_options_defaults(&options);
    ck_assert_str_eq(options.format->name, "tfrecord");
    ck_assert_status(presto_out_open(&options, &out, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "nothing to write with"));
    options.format = find("shm");
    ck_assert_status(presto_out_open(&options, &out, &err), PRESTO_ERR_ARGUMENT, &err);
    presto_out_format strange = *find("npy");
    options.format = &strange;
    options.write = keep;
    ck_assert_status(presto_out_open(&options, &out, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_null(out);
    presto_out_free(NULL);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {the_table_is_whole,
                                  a_batch_and_the_end_are_written,
                                  many_pieces_are_written_in_several_calls,
                                  a_reader_that_is_gone_and_a_failure_end_the_call,
                                  a_feature_that_a_later_batch_lacks_or_adds,
                                  options_that_do_not_fit_the_format_are_refused};
    return presto_check_main("loader/out", tests, sizeof tests / sizeof *tests, 30);
}
