/* SPDX-License-Identifier: Apache-2.0 */
/* The raw source `synthetic`. tests/live/signals.py compares its values with NumPy's. */
#include <string.h>

#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "loader_check.h"

static presto_error err;

/* The stream of a source with these options, as one number. */
static uint32_t digest_of(const char *options, const presto_loader_options *loader) {
    char yaml[300];
    presto_pipeline *pipeline;
    presto_source *source;
    snprintf(yaml, sizeof yaml, "{name: p, source: {type: synthetic, %s}, steps: []}", options);
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "p", NULL, &pipeline, &err),
                 &err);
    ck_assert_ok(presto__source_open_raw(pipeline, NULL, 0, &source, &err), &err);
    uint32_t digest = digest_stream(source, NULL, loader, NULL, PRESTO_END, &err);
    presto__source_free(source);
    presto_pipeline_free(pipeline);
    return digest;
}

START_TEST(samples_are_the_same_in_any_thread_and_order) {
    static const char options[] = "size: 1004, count: 50, dtype: float32";
    presto_loader_options loader;
    presto_loader_options_defaults(&loader);
    loader.batch_samples = 7;
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        loader.order.shuffle = shuffled ? PRESTO_SHUFFLE_FULL : PRESTO_SHUFFLE_NONE;
        loader.threads = 0;
        uint32_t wanted = digest_of(options, &loader);
        for (loader.threads = 1; loader.threads <= 4; loader.threads++)
            ck_assert_uint_eq(digest_of(options, &loader), wanted);
    }
}
END_TEST

START_TEST(samples_differ_by_seed_number_and_dtype) {
    presto_loader_options loader;
    presto_loader_options_defaults(&loader);
    uint32_t digests[4] = {digest_of("size: 1000, count: 3", &loader),
                           digest_of("size: 1000, count: 3, seed: 2", &loader),
                           digest_of("size: 1000, count: 3, dtype: float32", &loader),
                           digest_of("size: 1000, count: 4", &loader)};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_uint_ne(digests[i], digests[k]);
}
END_TEST

/* The first sample of `size` bytes. */
static void first_sample(size_t size, const char *dtype, void *out) {
    char set_size[60], set_dtype[60];
    snprintf(set_size, sizeof set_size, "source.size=%zu", size);
    snprintf(set_dtype, sizeof set_dtype, "source.dtype=%s", dtype);
    const char *const set[] = {set_size, set_dtype};
    presto_pipeline_options reading;
    presto_pipeline_options_defaults(&reading);
    reading.set = set;
    reading.set_count = 2;
    presto_stream_options options;
    presto_stream_options_defaults(&options);
    options.pipeline = "synthetic";
    options.pipeline_options = &reading;
    options.to = "generated";
    presto_loader *loader;
    presto_batch *batch;
    ck_assert_ok(presto_loader_open_paths(NULL, 0, &options, &loader, &err), &err);
    ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
    const presto_tensor *tensor = &batch->features[0].tensor;
    ck_assert_uint_eq(presto_tensor_bytes(tensor), size);
    memcpy(out, tensor->data, size);
    presto_batch_release(batch);
    presto_loader_free(loader);
}

START_TEST(a_shorter_sample_is_the_start_of_a_longer_one) {
    static uint8_t longest[1000], shorter[1000];
    first_sample(1000, "uint8", longest);
    for (size_t size = 500; size < 1000; size += 500) {
        first_sample(size, "uint8", shorter);
        ck_assert_int_eq(memcmp(longest, shorter, size), 0);
    }
    unsigned seen[256] = {0};
    for (size_t i = 0; i < 1000; i++)
        seen[longest[i]]++;
    for (size_t i = 0; i < 256; i++)
        ck_assert_uint_lt(seen[i], 20); /* four of each are to be expected */
}
END_TEST

START_TEST(floats_lie_from_0_to_below_1) {
    static float values[5000];
    double sum = 0;
    first_sample(sizeof values, "float32", values);
    for (size_t i = 0; i < 5000; i++) {
        ck_assert(values[i] >= 0 && values[i] < 1);
        sum += (double)values[i];
    }
    ck_assert(sum > 2350 && sum < 2650);
}
END_TEST

START_TEST(a_source_that_makes_its_samples_takes_no_path) {
    const char *path = "here";
    presto_pipeline *pipeline;
    presto_source *source;
    ck_assert_ok(presto_pipeline_load("synthetic", NULL, &pipeline, &err), &err);
    ck_assert_status(presto__source_open_raw(pipeline, &path, 1, &source, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "makes its samples"));
    presto_pipeline_free(pipeline);
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
    ck_assert_status(presto__source_open_raw(pipeline, NULL, 0, &source, &err),
                     PRESTO_ERR_NOT_FOUND, &err);
    presto_pipeline_free(pipeline);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        samples_are_the_same_in_any_thread_and_order,  samples_differ_by_seed_number_and_dtype,
        a_shorter_sample_is_the_start_of_a_longer_one, floats_lie_from_0_to_below_1,
        a_source_that_makes_its_samples_takes_no_path,
    };
    return presto_check_main("source_synthetic", tests, sizeof tests / sizeof tests[0], 60);
}
