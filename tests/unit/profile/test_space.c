/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../steps/pipelines_internal.h"
#include "made_sweep.h"

static presto_pipeline *load_pipeline(const char *name) {
    presto_pipeline *pipeline = NULL;
    presto_error err;
    ck_assert_ok(presto_pipeline_load(name, NULL, &pipeline, &err), &err);
    return pipeline;
}

static void check_refused(const presto_sweep_options *options, presto_status wanted,
                          const char *part_of_message) {
    presto_pipeline *pipeline = load_pipeline("cv");
    presto__space space = {0};
    presto_error err;
    ck_assert_status(presto__space_init(pipeline, options, &space, &err), wanted, &err);
    ck_assert_msg(strstr(err.message, part_of_message) != NULL, "\"%s\" lacks \"%s\"", err.message,
                  part_of_message);
    ck_assert_ptr_null(space.strategies);
    presto_pipeline_free(pipeline);
}

START_TEST(by_default_every_split_goes_with_every_codec_and_two_thread_counts) {
    presto_pipeline *pipeline = load_pipeline("cv");
    presto_sweep_options options;
    presto_sweep_options_defaults(&options);
    presto__space space = {0};
    presto_error err;
    ck_assert_ok(presto__space_init(pipeline, &options, &space, &err), &err);
    ck_assert_uint_eq(space.split_count, 5);
    ck_assert_str_eq(space.splits[0], "unprocessed");
    ck_assert_str_eq(space.splits[4], "pixel-centered");
    ck_assert_uint_ge(space.codec_count, 2);
    ck_assert_uint_eq(space.thread_count, presto_processor_count() == 1 ? 1 : 2);
    ck_assert_uint_eq(space.strategy_count, space.thread_count * (1 + 4 * space.codec_count));
    for (size_t i = 0; i < space.strategy_count; i++) {
        const presto_strategy *strategy = &space.strategies[i];
        bool stores = strcmp(strategy->stored, PRESTO_UNPROCESSED) != 0;
        ck_assert(stores == (strategy->codec != NULL));
        ck_assert_uint_eq(strategy->shards, stores ? strategy->threads : 0);
    }
    presto__space_done(&space);
    presto_pipeline_free(pipeline);
}
END_TEST

START_TEST(lists_are_put_in_order_and_doubles_are_dropped) {
    presto_pipeline *pipeline = load_pipeline("cv");
    const char *const splits[] = {"resized", "unprocessed", "resized"};
    const char *const codecs[] = {"zlib:6", "none", "zlib"};
    const unsigned threads[] = {0, 3, 0};
    presto_sweep_options options;
    presto_sweep_options_defaults(&options);
    options.stored = splits;
    options.codecs = codecs;
    options.threads = threads;
    options.stored_count = options.codec_count = options.thread_count = 3;
    presto__space space = {0};
    presto_error err;
    ck_assert_ok(presto__space_init(pipeline, &options, &space, &err), &err);
    ck_assert_uint_eq(space.strategy_count, 2 + 2 * 2);
    ck_assert_str_eq(space.strategies[0].stored, "unprocessed");
    ck_assert_uint_eq(space.strategies[1].threads, 3);
    ck_assert_str_eq(space.strategies[2].stored, "resized");
    ck_assert_str_eq(space.strategies[2].codec, "zlib");
    ck_assert_uint_eq(space.strategies[2].shards, 1);
    ck_assert_uint_eq(space.strategies[3].shards, 3);
    ck_assert_str_eq(space.strategies[4].codec, "none");
    presto__space_done(&space);
    options.shards = 7;
    ck_assert_ok(presto__space_init(pipeline, &options, &space, &err), &err);
    ck_assert_uint_eq(space.strategies[2].shards, 7);
    ck_assert_uint_eq(space.strategies[0].shards, 0);
    presto__space_done(&space);
    /* For one thread (0 is inline), "as many as threads" is 1, which the list has, too. */
    const size_t shards[] = {0, 1, 16, 1};
    options.shard_counts = shards;
    options.shard_count_count = 4;
    ck_assert_ok(presto__space_init(pipeline, &options, &space, &err), &err);
    static const size_t wanted[][2] = {{0, 1}, {3, 3}, {3, 1}, {0, 16}, {3, 16}};
    ck_assert_uint_eq(space.shard_count, 3);
    ck_assert_uint_eq(space.strategy_count, 2 + 2 * 5);
    for (size_t i = 0; i < 10; i++) {
        ck_assert_uint_eq(space.strategies[2 + i].threads, wanted[i % 5][0]);
        ck_assert_uint_eq(space.strategies[2 + i].shards, wanted[i % 5][1]);
    }
    ck_assert_uint_eq(presto__anchor_of(&space, 1, false).shards, 1);
    presto__space_done(&space);
    const size_t many[] = {1, PRESTO_MAX_SHARDS + 1};
    options.shard_counts = many;
    options.shard_count_count = 2;
    ck_assert_status(presto__space_init(pipeline, &options, &space, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.message, "100000 shards"));
    presto_pipeline_free(pipeline);
}
END_TEST

START_TEST(what_not_every_tensorflow_reads_is_left_out_or_refused) {
    presto_pipeline *pipeline = load_pipeline("cv");
    presto_sweep_options options;
    presto_sweep_options_defaults(&options);
    options.tensorflow_readable = true;
    presto__space space = {0};
    presto_error err;
    ck_assert_ok(presto__space_init(pipeline, &options, &space, &err), &err);
    ck_assert_uint_eq(space.codec_count, 3);
    ck_assert_str_eq(space.codecs[0], "none");
    ck_assert_str_eq(space.codecs[1], "zlib:1");
    ck_assert_str_eq(space.codecs[2], "gzip");
    presto__space_done(&space);
    presto_pipeline_free(pipeline);
    const char *const codecs[] = {"gzip:9", "snappy"};
    options.codecs = codecs;
    options.codec_count = 2;
    check_refused(&options, PRESTO_ERR_ARGUMENT,
                  "codec snappy is not among those that every TensorFlow reads: none, zlib, gzip");
}
END_TEST

START_TEST(for_another_storage_more_threads_wait_at_once) {
    presto_pipeline *pipeline = load_pipeline("cv");
    presto_sweep_options options;
    presto_sweep_options_defaults(&options);
    options.storage.latency_s = 0.1;
    presto__space space = {0};
    presto_error err;
    ck_assert_ok(presto__space_init(pipeline, &options, &space, &err), &err);
    unsigned processors = presto_processor_count();
    ck_assert_uint_eq(space.threads[0], 1);
    ck_assert_uint_eq(UINT64_C(4) * space.threads[space.thread_count - 2],
                      space.threads[space.thread_count - 1]);
    ck_assert_uint_gt(space.threads[space.thread_count - 1], processors);
    ck_assert_uint_le(space.threads[space.thread_count - 1], presto_auto_threads());
    presto__space_done(&space);
    presto_pipeline_free(pipeline);
}
END_TEST

START_TEST(unknown_names_are_refused_with_a_list_of_what_there_is) {
    presto_sweep_options options;
    presto_sweep_options_defaults(&options);
    const char *const split[] = {"resised"};
    options.stored = split;
    options.stored_count = 1;
    check_refused(&options, PRESTO_ERR_NOT_FOUND,
                  "pipeline cv has no representation 'resised'; there is "
                  "unprocessed, concatenated, decoded, resized, pixel-centered");
    presto_sweep_options_defaults(&options);
    const char *const codec[] = {"none", "squeeze:3"};
    options.codecs = codec;
    options.codec_count = 2;
    check_refused(&options, PRESTO_ERR_NOT_FOUND, "squeeze");
    const char *const level[] = {"gzip:99"};
    options.codecs = level;
    options.codec_count = 1;
    check_refused(&options, PRESTO_ERR_ARGUMENT, "99");
    presto_sweep_options_defaults(&options);
    const unsigned threads[] = {1, 4097};
    options.threads = threads;
    options.thread_count = 2;
    check_refused(&options, PRESTO_ERR_ARGUMENT, "4097 threads");
}
END_TEST

START_TEST(what_comes_after_a_random_step_cannot_be_stored) {
    static const char yaml[] = "name: dice\n"
                               "source: {type: files}\n"
                               "steps:\n"
                               "  - {step: read-file, yields: concatenated}\n"
                               "  - {step: decode-image, yields: decoded, channels: 3}\n"
                               "  - {step: random-crop, yields: cropped, height: 8, width: 8}\n";
    presto_pipeline *pipeline = NULL;
    presto_error err;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "dice", NULL, &pipeline, &err),
                 &err);
    presto_sweep_options options;
    presto_sweep_options_defaults(&options);
    presto__space space = {0};
    ck_assert_ok(presto__space_init(pipeline, &options, &space, &err), &err);
    ck_assert_uint_eq(space.split_count, 3);
    presto__space_done(&space);
    const char *const split[] = {"cropped"};
    options.stored = split;
    options.stored_count = 1;
    ck_assert_status(presto__space_init(pipeline, &options, &space, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.message, "comes after a random step"));
    presto_pipeline_free(pipeline);
}
END_TEST

START_TEST(strategies_read_as_words) {
    char text[PRESTO__STRATEGY_TEXT_BYTES];
    const presto_strategy a = {.stored = "resized", .codec = "zstd:1", .threads = 2, .shards = 2};
    ck_assert_str_eq(presto__strategy_format(&a, text, sizeof text),
                     "resized with zstd:1 on 2 threads");
    const presto_strategy b = {.stored = "decoded", .codec = "none", .threads = 1, .shards = 1};
    ck_assert_str_eq(presto__strategy_format(&b, text, sizeof text),
                     "decoded uncompressed on 1 thread");
    const presto_strategy many = {.stored = "resized", .codec = "gzip", .threads = 2, .shards = 16};
    ck_assert_str_eq(presto__strategy_format(&many, text, sizeof text),
                     "resized with gzip in 16 files on 2 threads");
    const presto_strategy c = {.stored = PRESTO_UNPROCESSED};
    ck_assert_str_eq(presto__strategy_format(&c, text, sizeof text),
                     "the unprocessed files without threads");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        by_default_every_split_goes_with_every_codec_and_two_thread_counts,
        lists_are_put_in_order_and_doubles_are_dropped,
        what_not_every_tensorflow_reads_is_left_out_or_refused,
        for_another_storage_more_threads_wait_at_once,
        unknown_names_are_refused_with_a_list_of_what_there_is,
        what_comes_after_a_random_step_cannot_be_stored,
        strategies_read_as_words,
    };
    return presto_check_main("profile/space", tests, sizeof tests / sizeof *tests, 60);
}
