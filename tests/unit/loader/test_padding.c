/* SPDX-License-Identifier: Apache-2.0 */
/* Padding of features whose rows differ, and what cannot be padded. */
#include "../../../loader/loader_internal.h"
#include "ragged_check.h"

/* ---- padding ---- */

static void check_padded(const presto_batch *batch, uint64_t length) {
    const presto_batch_feature *ints = find(batch, "ints"), *bytes = find(batch, "bytes");
    size_t longest_ints = 0, longest_bytes = 0;
    for (size_t row = 0; row < batch->rows; row++) {
        sample_values v;
        make_values(batch->sample_numbers[row], &v);
        size_t count = draw(batch->sample_numbers[row], 1, 0) % MOST_VALUES;
        longest_ints = count > longest_ints ? count : longest_ints;
        longest_bytes = v.strings[0].bytes > longest_bytes ? v.strings[0].bytes : longest_bytes;
    }
    if (length != 0)
        longest_ints = length;
    ck_assert_int_eq(ints->layout, PRESTO_LAYOUT_DENSE);
    ck_assert_int_eq(bytes->layout, PRESTO_LAYOUT_DENSE);
    ck_assert_int_eq(ints->tensor.spec.rank, 2);
    ck_assert_int_eq(ints->tensor.spec.dims[1], (int64_t)longest_ints);
    ck_assert_int_eq(bytes->tensor.spec.dims[1], (int64_t)longest_bytes);
    for (size_t row = 0; row < batch->rows; row++) {
        uint64_t number = batch->sample_numbers[row];
        sample_values v;
        make_values(number, &v);
        size_t count = draw(number, 1, 0) % MOST_VALUES;
        for (size_t i = 0; i < longest_ints; i++)
            ck_assert_int_eq(((const int64_t *)ints->tensor.data)[row * longest_ints + i],
                             i < count ? v.ints[i] : -100);
        for (size_t i = 0; i < longest_bytes; i++)
            ck_assert_uint_eq(((const uint8_t *)bytes->tensor.data)[row * longest_bytes + i],
                              i < v.strings[0].bytes ? v.text[0][i] : 255);
    }
}

START_TEST(padded_features_are_dense) {
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (uint64_t length = 0; length < 20; length += 10)
        for (size_t t = 0; t < THREAD_COUNTS; t++) {
            presto_pad pads[] = {{"ints", -100, length}, {"bytes", 255, 0}, {"nothing", 1, 0}};
            presto_loader_options options = defaults(thread_counts[t], 16);
            options.memory.block_samples = 5;
            options.pads = pads;
            options.pad_count = 3;
            presto_error err;
            presto_loader *loader;
            presto_batch *batch;
            ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
            presto_status status;
            while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
                check_padded(batch, length);
                presto_batch_release(batch);
            }
            ck_assert_status(status, PRESTO_END, &err);
            presto_loader_free(loader);
        }
    tear_down(&data);
}
END_TEST

START_TEST(what_cannot_be_padded_is_named) {
    static const struct {
        presto_pad pad;
        presto_status status;
        const char *part;
    } cases[] = {{{"matrix", 0, 0}, PRESTO_ERR_RAGGED, "first dimension"},
                 {{"words", 0, 0}, PRESTO_ERR_RAGGED, "number of strings"},
                 {{"ints", 0.5, 0}, PRESTO_ERR_TYPE, "int64"},
                 {{"bytes", 256, 0}, PRESTO_ERR_TYPE, "uint8"},
                 {{"ints", 0, 3}, PRESTO_ERR_LIMIT, "more than the 3"}};
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t t = 0; t < THREAD_COUNTS; t++) {
            presto_loader_options options = defaults(thread_counts[t], 64);
            options.pads = &cases[i].pad;
            options.pad_count = 1;
            presto_error err;
            digest_stream(data.source, NULL, &options, NULL, cases[i].status, &err);
            ck_assert_ptr_nonnull(strstr(err.message, cases[i].pad.feature));
            ck_assert_ptr_nonnull(strstr(err.message, cases[i].part));
        }
    tear_down(&data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        padded_features_are_dense,
        what_cannot_be_padded_is_named,
    };
    return presto_check_main("padding", tests, sizeof tests / sizeof tests[0], 300);
}
