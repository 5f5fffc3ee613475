/* SPDX-License-Identifier: Apache-2.0 */
/* Features whose rows differ, of every kind, in batches of all sizes made by any number of
 * threads; features that were not asked for. Rows are compared with the records from
 * which they were made. */
#include "../../../loader/loader_internal.h"
#include "../../../records/records_internal.h"
#include "ragged_check.h"

/* ---- rows back out of a batch ---- */

static void check_strings(const presto_batch_feature *feature, size_t row,
                          const presto_tensor *wanted) {
    size_t first = row, end = row + 1;
    if (feature->row_offsets != NULL) {
        first = (size_t)feature->row_offsets[row];
        end = (size_t)feature->row_offsets[row + 1];
    }
    ck_assert_uint_eq(end - first, presto_spec_elements(&wanted->spec));
    for (size_t i = first; i < end; i++)
        ck_assert(presto_span_equal(presto_batch_string(feature, i), wanted->strings[i - first]));
}

static void check_numbers(const presto_batch_feature *feature, size_t row,
                          const presto_tensor *wanted) {
    const uint8_t *values = feature->tensor.data;
    size_t bytes = presto_tensor_bytes(wanted), width = presto_dtype_bytes(wanted->spec.dtype);
    ck_assert_int_eq(feature->tensor.spec.dtype, wanted->spec.dtype);
    if (feature->layout == PRESTO_LAYOUT_DENSE) {
        values += row * bytes;
        ck_assert_int_eq(feature->tensor.spec.rank, wanted->spec.rank + 1);
        for (int i = 0; i < wanted->spec.rank; i++)
            ck_assert_int_eq(feature->tensor.spec.dims[i + 1], wanted->spec.dims[i]);
    } else {
        values += (size_t)feature->offsets[row] * width;
        ck_assert_uint_eq((size_t)(feature->offsets[row + 1] - feature->offsets[row]) * width,
                          bytes);
    }
    for (size_t i = 0; feature->shapes != NULL && i < feature->shape_rank; i++)
        ck_assert_int_eq(feature->shapes[row * feature->shape_rank + i],
                         (int)i < wanted->spec.rank ? wanted->spec.dims[i] : -1);
    if (bytes > 0)
        ck_assert_mem_eq(values, wanted->data, bytes);
}

static uint64_t value_bytes(const presto_tensor *tensor) {
    if (tensor->spec.dtype != PRESTO_STRING)
        return presto_tensor_bytes(tensor);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < presto_spec_elements(&tensor->spec); i++)
        bytes += tensor->strings[i].bytes;
    return bytes;
}

/* All rows of all features of the batch, or of the one called `only`: the bytes of their values. */
static uint64_t check_batch(const presto_batch *batch, const char *only) {
    uint64_t bytes = 0;
    for (size_t row = 0; row < batch->rows; row++) {
        sample_values v;
        make_values(batch->sample_numbers[row], &v);
        for (size_t i = 0; i < v.sample.feature_count; i++) {
            const presto_feature *wanted = &v.features[i];
            char name[16];
            snprintf(name, sizeof name, "%.*s", (int)wanted->name.bytes,
                     (const char *)wanted->name.data);
            const presto_batch_feature *feature = find(batch, name);
            if (only != NULL && strcmp(only, name) != 0) {
                ck_assert_ptr_null(feature);
                continue;
            }
            ck_assert_ptr_nonnull(feature);
            if (wanted->tensor.spec.dtype == PRESTO_STRING)
                check_strings(feature, row, &wanted->tensor);
            else
                check_numbers(feature, row, &wanted->tensor);
            bytes += value_bytes(&wanted->tensor);
        }
    }
    return bytes;
}

static uint32_t check_stream(const opened *data, const presto_loader_options *options,
                             const char *only) {
    presto_error err;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    uint32_t digest = 0;
    uint64_t rows = 0, bytes = 0;
    ck_assert_ok(presto__loader_open(data->source, NULL, options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        bytes += check_batch(batch, only);
        digest = digest_batch(digest, batch);
        rows += batch->rows;
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    ck_assert_uint_eq(rows, SAMPLES * options->range.epochs);
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    ck_assert_uint_eq(stats.delivered_bytes, bytes);
    presto_loader_free(loader);
    return digest;
}

START_TEST(every_kind_of_row_comes_back_whatever_threads_batches_and_blocks) {
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (size_t batch = 1; batch <= (size_t)2 * SAMPLES; batch = batch * 3 + batch % 2)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            uint32_t wanted = 0;
            for (size_t t = 0; t < THREAD_COUNTS; t++)
                for (size_t block = 3; block < 200; block *= 8) {
                    presto_loader_options options = defaults(thread_counts[t], batch);
                    options.memory.block_samples = block;
                    options.range.epochs = 2;
                    options.order.shuffle = shuffle ? PRESTO_SHUFFLE_FULL : PRESTO_SHUFFLE_NONE;
                    options.unaligned_views = block == 3;
                    uint32_t digest = check_stream(&data, &options, NULL);
                    wanted = wanted == 0 ? digest : wanted;
                    ck_assert_uint_eq(digest, wanted);
                }
        }
    tear_down(&data);
}
END_TEST

START_TEST(caches_keep_rows_of_any_shape) {
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    char cache[700];
    snprintf(cache, sizeof cache, "%s/cache", dir);
    for (size_t batch = 1; batch < SAMPLES; batch = batch * 6 + 1) {
        presto_loader_options options = defaults(2, batch);
        options.range.epochs = 2;
        uint32_t wanted = check_stream(&data, &options, NULL);
        options.cache.bytes = (size_t)1 << 20;
        ck_assert_uint_eq(check_stream(&data, &options, NULL), wanted);
        options.cache.dir = cache;
        ck_assert_uint_eq(check_stream(&data, &options, NULL), wanted);
        ck_assert_uint_eq(check_stream(&data, &options, NULL), wanted);
    }
    tear_down(&data);
}
END_TEST

START_TEST(declared_lengths_and_rows_decide_the_layout_and_nothing_else) {
    static const struct {
        const char *name;
        presto_layout layout, alone; /* in batches of many, and of one */
    } wanted[] = {{"bytes", PRESTO_LAYOUT_BYTES, PRESTO_LAYOUT_BYTES},
                  {"fixed", PRESTO_LAYOUT_DENSE, PRESTO_LAYOUT_DENSE},
                  {"floats", PRESTO_LAYOUT_RAGGED, PRESTO_LAYOUT_DENSE},
                  {"matrix", PRESTO_LAYOUT_RAGGED, PRESTO_LAYOUT_DENSE}};
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (size_t size = 1; size <= 50; size += 7) {
        presto_loader_options options = defaults(2, size);
        presto_error err;
        presto_loader *loader;
        presto_batch *batch;
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
            for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
                const presto_batch_feature *feature = find(batch, wanted[i].name);
                ck_assert_int_eq(feature->layout, size == 1 ? wanted[i].alone : wanted[i].layout);
                ck_assert(feature->layout == PRESTO_LAYOUT_DENSE || feature->offsets[0] == 0);
                ck_assert_uint_eq((uintptr_t)feature->tensor.data % 64, 0);
            }
            ck_assert_str_eq(batch->features[batch->main_feature].name, "matrix");
            ck_assert_ptr_null(find(batch, "bytes")->row_offsets);
            presto_batch_release(batch);
        }
        presto_loader_free(loader);
    }
    tear_down(&data);
}
END_TEST

START_TEST(what_was_not_asked_for_is_not_parsed) {
    static const char *const all[] = {"bytes",  "fixed", "floats", "ints",
                                      "matrix", "maybe", "words"};
    write_samples(SAMPLES);
    opened data = open_samples(SAMPLES);
    for (size_t i = 0; i < FEATURES; i++)
        for (size_t t = 0; t < THREAD_COUNTS; t++) {
            presto_loader_options options = defaults(thread_counts[t], t % 2 == 0 ? 1 : 20);
            options.features = &all[i];
            options.feature_count = 1;
            options.cache.bytes = t == 1 ? (size_t)1 << 20 : 0;
            check_stream(&data, &options, all[i]);
        }
    tear_down(&data);
}
END_TEST

/* ---- what does not go together ---- */

/* Sample `odd` has floats where the others have int64. */
static opened write_conflict(uint64_t odd) {
    presto_error err;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/conflict.tfrecord", dir);
    presto__shard_writer *writer;
    presto_buffer raw = {0};
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    for (uint64_t i = 0; i < 100; i++) {
        int64_t values[2] = {(int64_t)i, 0};
        presto_feature features[2];
        set(&features[0], "label", PRESTO_ENCODE_INT64, PRESTO_INT64, values);
        set(&features[1], "x", PRESTO_ENCODE_INT64, PRESTO_INT64, values);
        if (i == odd)
            set(&features[1], "x", PRESTO_ENCODE_FLOAT, PRESTO_FLOAT32, values);
        presto_sample sample = {.features = features, .feature_count = 2};
        raw.bytes = 0;
        ck_assert_ok(presto_example_append(&raw, &sample, &err), &err);
        ck_assert_ok(presto__shard_writer_append(writer, presto_buffer_span(&raw), &err), &err);
    }
    presto__shard_summary summary;
    ck_assert_ok(presto__shard_writer_finish(writer, &summary, &err), &err);
    presto__shard_writer_free(writer);
    presto_buffer_done(&raw);
    return open_made(path, false);
}

START_TEST(another_type_is_named_whatever_the_threads_unless_nobody_asked_for_it) {
    for (uint64_t odd = 0; odd < 100; odd += 33) {
        opened data = write_conflict(odd);
        char first_message[PRESTO_ERROR_MESSAGE_BYTES] = "";
        uint64_t named = odd % 10 == 0 ? odd + 1 : odd; /* what follows the first of its batch */
        for (size_t t = 0; t < THREAD_COUNTS; t++)
            for (size_t block = 1; block < 40; block += 6) {
                presto_loader_options options = defaults(thread_counts[t], 10);
                options.memory.block_samples = block;
                presto_error err;
                uint64_t samples;
                digest_stream(data.source, NULL, &options, &samples, PRESTO_ERR_RAGGED, &err);
                ck_assert_uint_eq(samples, odd / 10 * 10);
                ck_assert_uint_eq(err.record, named);
                if (first_message[0] == '\0')
                    memcpy(first_message, err.message, sizeof first_message);
                ck_assert_str_eq(err.message, first_message);
                ck_assert_ptr_nonnull(strstr(err.message, "\"x\""));
                ck_assert_ptr_nonnull(strstr(err.message, "float32"));
                ck_assert_ptr_nonnull(strstr(err.message, "int64"));
                static const char *const label[] = {"label"};
                options.features = label;
                options.feature_count = 1;
                digest_stream(data.source, NULL, &options, &samples, PRESTO_END, &err);
                ck_assert_uint_eq(samples, 100);
            }
        tear_down(&data);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_kind_of_row_comes_back_whatever_threads_batches_and_blocks,
        caches_keep_rows_of_any_shape,
        declared_lengths_and_rows_decide_the_layout_and_nothing_else,
        what_was_not_asked_for_is_not_parsed,
        another_type_is_named_whatever_the_threads_unless_nobody_asked_for_it,
    };
    return presto_check_main("ragged", tests, sizeof tests / sizeof tests[0], 300);
}
