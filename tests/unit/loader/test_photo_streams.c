/* SPDX-License-Identifier: Apache-2.0 */
/* Streams over photos and their shards: same samples for any threads, caches, labels, refusals. */
#define _XOPEN_SOURCE 700
#include <sys/stat.h>
#include <unistd.h>

#include "../../../records/records_internal.h"
#include "convert_check.h"

START_TEST(streams_of_images_are_the_same_for_any_threads_with_random_crops_and_shuffle) {
    set_up();
    presto_convert_options convert_options = defaults("concatenated", "none", 3, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "out", &convert_options, &result, &err), &err);
    presto_stream_options stream_options;
    presto_stream_options_defaults(&stream_options);
    uint32_t epochs[2] = {0, 0};
    for (int raw = 0; raw < 2; raw++) {
        stream_options.pipeline = raw ? "cv" : NULL;
        const char *paths[] = {at(raw ? "photos" : "out")};
        presto_stream stream;
        ck_assert_ok(presto_stream_open(paths, 1, &stream_options, &stream, &err), &err);
        static const unsigned threads[] = {0, 1, 2, 5, 8};
        for (size_t t = 0; t < 5; t += presto_check_is_slow() ? 4 : 1)
            for (uint64_t epoch = 0; epoch < 2; epoch++) {
                presto_loader_options options;
                presto_loader_options_defaults(&options);
                options.threads = threads[t];
                options.batch_samples = 16;
                options.memory.block_samples = 1 + t * 3;
                options.order.shuffle = PRESTO_SHUFFLE_BUFFER;
                options.order.shuffle_window = 11;
                options.range.first_epoch = epoch;
                options.order.seed = 7;
                uint32_t digest =
                    digest_stream(stream.source, stream.plan, &options, NULL, PRESTO_END, &err);
                if (epochs[epoch] == 0)
                    epochs[epoch] = digest;
                ck_assert_uint_eq(digest, epochs[epoch]);
            }
        presto_stream_close(&stream);
    }
    ck_assert_uint_ne(epochs[0], epochs[1]);
    tear_down();
}
END_TEST

START_TEST(a_cached_stream_is_the_same_as_one_that_is_not) {
    set_up();
    presto_error err;
    uint32_t wanted[2] = {0, 0};
    static const size_t cache_bytes[] = {0, (size_t)64 << 20, 2000000, 330};
    static const unsigned threads[] = {0, 1, 2, 8};
    for (size_t c = 0; c < 4; c++)
        for (int to_end = presto_check_is_slow(); to_end < 2; to_end++) {
            presto_stream_options stream_options;
            presto_stream_options_defaults(&stream_options);
            stream_options.pipeline = "cv";
            stream_options.to = to_end ? NULL : "resized";
            presto_loader_options cached;
            presto_loader_options_defaults(&cached);
            cached.cache.bytes = cache_bytes[c];
            stream_options.loader = &cached;
            presto_stream stream;
            const char *paths[] = {at("photos")};
            ck_assert_ok(presto_stream_open(paths, 1, &stream_options, &stream, &err), &err);
            for (size_t t = 0; t < 4; t += presto_check_is_slow() ? 3 : 1) {
                presto_loader_options options;
                presto_loader_options_defaults(&options);
                options.threads = threads[t];
                options.batch_samples = 8;
                options.memory.block_samples = 3;
                options.range.epochs = 3;
                options.order.shuffle = PRESTO_SHUFFLE_FULL;
                options.cache.bytes = cache_bytes[c];
                presto_loader *loader;
                presto_batch *batch;
                uint32_t digest = 0;
                ck_assert_ok(presto_loader_open_stream(&stream, &options, &loader, &err), &err);
                while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
                    digest = digest_batch(digest, batch);
                    presto_batch_release(batch);
                }
                presto_loader_stats stats;
                presto_loader_get_stats(loader, &stats);
                presto_loader_free(loader);
                ck_assert_uint_eq(stats.samples, UINT64_C(3) * PHOTOS);
                if (c == 0 && t == 0)
                    wanted[to_end] = digest;
                ck_assert_uint_eq(digest, wanted[to_end]);
                ck_assert_uint_le(stats.cache_bytes, cache_bytes[c]);
                if (c == 1 && threads[t] == 1)
                    ck_assert_uint_eq(stats.cached_samples, UINT64_C(2) * PHOTOS);
                if (c == 0 || c == 3)
                    ck_assert_uint_eq(stats.cached_samples, 0);
                if (c == 2 && threads[t] == 1)
                    ck_assert_uint_gt(stats.cached_samples, 0);
            }
            presto_stream_close(&stream);
        }
    tear_down();
}
END_TEST

static void check_labels(const char *name, const char *const *wanted, size_t count) {
    presto_dataset_info info = {0};
    presto_error err;
    ck_assert_ok(presto__dataset_info_read(at(name), &info, &err), &err);
    ck_assert_uint_eq(info.label_count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(info.label_names[i], wanted[i]);
    presto__dataset_info_free(&info);
}

START_TEST(names_of_labels_come_along) {
    set_up();
    /* Any bytes that a folder can be called. */
    static const char *const folders[] = {"bad \\xff", "bad \xff\xed\xa0\x80", "k\xc3\xa4tzchen",
                                          "zebra\n\xf0\x9f\xa6\x93"};
    char command[2000], folder[200];
    ck_assert_int_eq(mkdir(at("named"), 0777), 0);
    for (size_t i = 0; i < 4; i++) {
        snprintf(folder, sizeof folder, "named/%s", folders[i]);
        ck_assert_int_eq(mkdir(at(folder), 0777), 0);
        snprintf(command, sizeof command, "cp $(find '%s' -name '*.jpg' | head -n 2) '%s'",
                 at("photos"), at(folder));
        ck_assert_int_eq(system(command), 0);
    }
    presto_convert_options options = defaults("concatenated", "none", 2, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("named", "first", &options, &result, &err), &err);
    check_labels("first", folders, 4);
    /* Also from a dataset, and to another one by recoding. */
    options.up_to = "resized";
    ck_assert_ok(convert("first", "second", &options, &result, &err), &err);
    check_labels("second", folders, 4);
    options.up_to = NULL;
    options.codec = "zstd:1";
    const char *paths[] = {at("second")};
    options.dir = at("third");
    ck_assert_ok(presto_convert(paths, 1, &options, &result, &err), &err);
    check_labels("third", folders, 4);
    tear_down();
}
END_TEST

START_TEST(streams_say_what_is_wrong_with_their_words) {
    set_up();
    presto_convert_options convert_options = defaults("resized", "none", 1, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "out", &convert_options, &result, &err), &err);
    static const struct {
        const char *path, *pipeline, *from, *to;
        presto_status wanted;
    } cases[] = {
        {"out", "cv2-jpg", NULL, NULL, PRESTO_ERR_ARGUMENT},
        {"out", "cv", NULL, NULL, PRESTO_OK},
        {"out", "cv2-jpg", "resized", NULL, PRESTO_OK},
        {"out", NULL, NULL, "nowhere", PRESTO_ERR_NOT_FOUND},
        {"out", NULL, NULL, "decoded", PRESTO_ERR_ARGUMENT},
        {"out", NULL, NULL, "pixel-centered", PRESTO_OK},
        {"photos", NULL, NULL, "decoded", PRESTO_ERR_ARGUMENT},
        {"photos", "cv", "nowhere", NULL, PRESTO_ERR_NOT_FOUND},
        {"missing", "cv", NULL, NULL, PRESTO_ERR_NOT_FOUND},
        {"photos", "nope", NULL, NULL, PRESTO_ERR_NOT_FOUND},
        {"out/data-00000-of-00001.tfrecord", "cv", "resized", NULL, PRESTO_OK},
        {"out/data-00000-of-00001.tfrecord", NULL, NULL, NULL, PRESTO_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_stream_options options;
        presto_stream_options_defaults(&options);
        options.pipeline = cases[i].pipeline;
        options.from = cases[i].from;
        options.to = cases[i].to;
        const char *paths[] = {at(cases[i].path)};
        presto_stream stream = {0};
        presto_status status = presto_stream_open(paths, 1, &options, &stream, &err);
        if (cases[i].path[0] == 'p' && cases[i].from != NULL)
            ck_assert_int_lt(status,
                             0); /* photos are no records; which is noticed first may vary */
        else
            ck_assert_status(status, cases[i].wanted, &err);
        presto_stream_close(&stream);
    }
    tear_down();
}
END_TEST

/* The steps that remain run on records without a dataset.json as well. */
START_TEST(foreign_records_run_the_rest_of_a_named_pipeline) {
    set_up();
    presto_convert_options convert_options = defaults("resized", "none", 2, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "out", &convert_options, &result, &err), &err);
    uint32_t digests[2];
    for (int foreign = 0; foreign < 2; foreign++) {
        if (foreign)
            ck_assert_int_eq(unlink(at("out/dataset.json")), 0);
        presto_stream_options options;
        presto_stream_options_defaults(&options);
        options.pipeline = foreign ? "cv" : NULL;
        options.from = foreign ? "resized" : NULL;
        const char *paths[] = {at("out")};
        presto_stream stream;
        ck_assert_ok(presto_stream_open(paths, 1, &options, &stream, &err), &err);
        presto_loader_options loader;
        presto_loader_options_defaults(&loader);
        loader.threads = 2;
        loader.batch_samples = 10;
        digests[foreign] =
            digest_stream(stream.source, stream.plan, &loader, NULL, PRESTO_END, &err);
        presto_stream_close(&stream);
    }
    ck_assert_uint_eq(digests[0], digests[1]);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        streams_of_images_are_the_same_for_any_threads_with_random_crops_and_shuffle,
        a_cached_stream_is_the_same_as_one_that_is_not,
        names_of_labels_come_along,
        streams_say_what_is_wrong_with_their_words,
        foreign_records_run_the_rest_of_a_named_pipeline,
    };
    return presto_check_main("photo_streams", tests, sizeof tests / sizeof tests[0], 240);
}
