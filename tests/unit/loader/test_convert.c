/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions over a small corpus of photos: same bytes for any threads, refusals, damage, what is
 * described. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../records/records_internal.h"
#include "convert_check.h"

/* Are they the same but for what they were made of? */
static bool same_datasets(const char *a, const char *b) {
    forget_input(at(a));
    forget_input(at(b));
    return digest_folder(a) == digest_folder(b);
}

static size_t count_entries(const char *name) {
    struct dirent **entries;
    int count = scandir(at(name), &entries, NULL, NULL);
    ck_assert_int_ge(count, 2);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return (size_t)count - 2;
}

static uint32_t stream_digest(const char *name, const char *pipeline_name, uint64_t *samples) {
    presto_stream_options stream_options;
    presto_stream_options_defaults(&stream_options);
    stream_options.pipeline = pipeline_name;
    stream_options.to = "resized";
    presto_stream stream;
    presto_error err;
    const char *paths[] = {at(name)};
    ck_assert_ok(presto_stream_open(paths, 1, &stream_options, &stream, &err), &err);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = 2;
    uint32_t digest =
        digest_stream(stream.source, stream.plan, &options, samples, PRESTO_END, &err);
    presto_stream_close(&stream);
    return digest;
}

START_TEST(shards_are_the_same_for_any_number_of_threads) {
    set_up();
    static const char *const splits[] = {"unprocessed", "concatenated", "decoded", "resized",
                                         "pixel-centered"};
    static const unsigned threads[] = {0, 1, 2, 5, 8};
    for (size_t s = 0; s < 5; s++) {
        uint32_t wanted = 0;
        for (size_t t = 0; t < 5; t += presto_check_is_slow() ? 2 : 1) {
            presto_convert_options options = defaults(splits[s], "zlib:1", 3, threads[t]);
            presto_convert_result result;
            presto_error err;
            ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
            ck_assert_uint_eq(result.samples, PHOTOS);
            ck_assert_uint_eq(result.shards, 3);
            ck_assert_uint_eq(count_entries("out"), 7);
            uint32_t digest = digest_folder("out");
            if (t == 0)
                wanted = digest;
            ck_assert_uint_eq(digest, wanted);
            presto_check_remove_tree(at("out"));
        }
    }
    tear_down();
}
END_TEST

START_TEST(every_split_codec_and_compression_streams_the_same_samples) {
    set_up();
    uint64_t samples;
    uint32_t wanted = stream_digest("photos", "cv", &samples);
    ck_assert_uint_eq(samples, PHOTOS);
    static const char *const splits[] = {"concatenated", "decoded", "resized"};
    for (size_t s = presto_check_is_slow() ? 2 : 0; s < 3; s++)
        for (size_t c = 0;; c++) {
            bool built;
            const char *codec = presto__codec_name_at(c, &built);
            if (codec == NULL)
                break;
            if (!built)
                continue;
            presto_convert_options options = defaults(splits[s], codec, 2, 2);
            options.file_compression = (presto_file_compression)(c % 3);
            presto_convert_result result;
            presto_error err;
            ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
            ck_assert_uint_eq(stream_digest("out", NULL, &samples), wanted);
            presto_check_remove_tree(at("out"));
        }
    tear_down();
}
END_TEST

START_TEST(a_dataset_can_be_processed_further) {
    set_up();
    presto_convert_options options = defaults("concatenated", "none", 3, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "first", &options, &result, &err), &err);
    options = defaults("resized", "zlib:1", 2, 2);
    ck_assert_ok(convert("photos", "direct", &options, &result, &err), &err);
    ck_assert_ok(convert("first", "second", &options, &result, &err), &err);
    ck_assert(same_datasets("direct", "second"));
    /* Another codec and number of shards alone: records are not parsed. */
    options = defaults("resized", "none", 5, 2);
    ck_assert_ok(convert("photos", "direct5", &options, &result, &err), &err);
    ck_assert_ok(convert("second", "second5", &options, &result, &err), &err);
    ck_assert(same_datasets("direct5", "second5"));
    options.up_to = "decoded";
    ck_assert_status(convert("second", "back", &options, &result, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_int_ne(access(at("back"), F_OK), 0);
    options = defaults("resized", "none", 1, PRESTO_MAX_THREADS + 1);
    ck_assert_status(convert("photos", "many", &options, &result, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "4097 threads"));
    tear_down();
}
END_TEST

START_TEST(folders_with_anything_in_them_are_left_alone) {
    set_up();
    presto_convert_options options = defaults("resized", "none", 2, 1);
    presto_convert_result result;
    presto_error err;
    mkdir(at("out"), 0777);
    presto_check_write_file(at("out/notes.txt"), presto_span_of_text("mine"));
    for (int resume = 0; resume < 2; resume++) {
        options.resume = resume;
        ck_assert_status(convert("photos", "out", &options, &result, &err), PRESTO_ERR_ARGUMENT,
                         &err);
        ck_assert_ptr_nonnull(strstr(err.message, "notes.txt"));
        ck_assert_uint_eq(count_entries("out"), 1);
    }
    options.resume = false;
    ck_assert_ok(convert("photos", "whole", &options, &result, &err), &err);
    ck_assert_status(convert("photos", "whole", &options, &result, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.message, "whole dataset"));
    /* A failure before anything is whole leaves nothing behind. */
    options.shards = 1;
    presto_check_write_file(at("photos/zz.jpg"), presto_span_of_text("no photo"));
    ck_assert_int_lt(convert("photos", "fresh", &options, &result, &err), 0);
    ck_assert_str_eq(err.file, at("photos/zz.jpg"));
    ck_assert_int_ne(access(at("fresh"), F_OK), 0);
    tear_down();
}
END_TEST

static void count_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *err) {
    (void)epoch;
    (void)sample;
    ck_assert_ptr_nonnull(strstr(err->file, "bad"));
    ++*(size_t *)user;
}

START_TEST(damaged_files_can_be_left_out) {
    set_up();
    presto_check_write_file(at("photos/bad1.jpg"), presto_span_of_text("no photo"));
    presto_check_write_file(at("photos/bad2.jpg"), presto_span_of_text(""));
    presto_convert_options options = defaults("resized", "none", 2, 2);
    size_t told = 0;
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.errors.on_skip = count_skip;
    options.errors.on_skip_user = &told;
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    ck_assert_uint_eq(result.samples, PHOTOS);
    ck_assert_uint_eq(result.skipped, 2);
    ck_assert_uint_eq(told, 2);
    uint64_t samples;
    stream_digest("out", NULL, &samples);
    ck_assert_uint_eq(samples, PHOTOS);
    options.errors.skip_limit = 1;
    ck_assert_int_lt(convert("photos", "less", &options, &result, &err), 0);
    tear_down();
}
END_TEST

/* A resumed run looks at the samples that remain. What may be left out is a part of all of them. */
START_TEST(the_part_that_may_be_left_out_is_one_of_all_runs) {
    set_up();
    presto_convert_options options = defaults("resized", "none", 5, 1);
    presto_convert_result result;
    presto_error err;
    presto_check_write_file(at("photos/0bad.jpg"), presto_span_of_text("no photo"));
    presto_check_write_file(at("photos/zbad.jpg"), presto_span_of_text("no photo"));
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.errors.skip_limit = 1;
    ck_assert_int_lt(convert("photos", "out", &options, &result, &err), 0);
    options.errors.skip_limit = UINT64_MAX;
    options.resume = true;
    for (int run = 0; run < 2; run++) {
        options.errors.skip_fraction = 1.0 / (PHOTOS + 2);
        ck_assert_status(convert("photos", "out", &options, &result, &err), PRESTO_ERR_CORRUPT,
                         &err);
        ck_assert_ptr_nonnull(strstr(err.message, "2 of 42 samples had to be left out"));
    }
    options.errors.skip_fraction = 2.0 / (PHOTOS + 2); /* of those that remain it is more */
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    ck_assert_uint_eq(result.skipped, 2);
    tear_down();
}
END_TEST

START_TEST(features_are_described_as_they_are_over_all_samples) {
    set_up();
    char command[1200];
    snprintf(command, sizeof command,
             "%s -n 2 -c 1 --width 70 --height 90 -o %s/tall >/dev/null 2>&1 && mv %s/tall "
             "%s/photos/tall",
             PRESTO_CORPUS_PROGRAM, dir, dir, dir);
    ck_assert_int_eq(system(command), 0);
    presto_convert_options options = defaults("decoded", "none", 2, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    presto_dataset_info info;
    ck_assert_ok(presto__dataset_info_read(at("out"), &info, &err), &err);
    ck_assert_uint_eq(info.feature_count, 3);
    char text[PRESTO_SPEC_TEXT_BYTES];
    ck_assert_str_eq(info.features[0].name, "image");
    ck_assert_str_eq(presto_spec_format(&info.features[0].spec, text, sizeof text), "uint8[?,?,3]");
    ck_assert_str_eq(info.features[2].name, "label");
    ck_assert_str_eq(presto_spec_format(&info.features[2].spec, text, sizeof text), "int64");
    ck_assert_str_eq(info.main_feature, "image");
    ck_assert_str_eq(info.stored, "decoded");
    presto__dataset_info_free(&info);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        shards_are_the_same_for_any_number_of_threads,
        every_split_codec_and_compression_streams_the_same_samples,
        a_dataset_can_be_processed_further,
        folders_with_anything_in_them_are_left_alone,
        damaged_files_can_be_left_out,
        the_part_that_may_be_left_out_is_one_of_all_runs,
        features_are_described_as_they_are_over_all_samples,
    };
    return presto_check_main("convert", tests, sizeof tests / sizeof tests[0], 240);
}
