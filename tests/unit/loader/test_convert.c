/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions and streams over a small corpus of photos: same bytes for any threads, resume,
 * refusals. */
#define _XOPEN_SOURCE 700
#include "loader_check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <presto/inspect.h>

#include "folder_check.h"

#define PHOTOS 40

static char *dir;
static presto_pipeline *pipeline;

static char *at(const char *name) {
    return path_in(dir, name);
}

static void set_up(void) {
    presto_error err;
    dir = presto_check_temp_dir();
    char command[1200];
    snprintf(command, sizeof command,
             "%s -n %d --width 90 --height 70 -o %s/photos >/dev/null 2>&1", PRESTO_CORPUS_PROGRAM,
             PHOTOS, dir);
    ck_assert_int_eq(system(command), 0);
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
}

static void tear_down(void) {
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_convert_options defaults(const char *split, const char *codec, size_t shards,
                                       unsigned threads) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.split = split;
    options.codec = codec;
    options.shards = shards;
    options.threads = threads;
    options.sync = false;
    return options;
}

static presto_status convert(const char *from, const char *to,
                             const presto_convert_options *options, presto_convert_result *result,
                             presto_error *err) {
    const char *paths[] = {at(from)};
    presto_convert_options with = *options;
    with.pipeline = pipeline;
    with.dir = at(to);
    return presto_convert(paths, 1, &with, result, err);
}

static uint32_t digest_folder(const char *name) {
    return digest_of_folder(at(name));
}

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
            const char *codec = presto_codec_name_at(c, &built);
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
    options.split = "decoded";
    ck_assert_status(convert("second", "back", &options, &result, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_int_ne(access(at("back"), F_OK), 0);
    tear_down();
}
END_TEST

/* Stops after so many samples. */
static bool stop_early(void *user, const presto_progress *progress) {
    return progress->samples_done < *(const uint64_t *)user;
}

START_TEST(an_interrupted_conversion_resumes_to_the_same_bytes) {
    set_up();
    presto_convert_options options = defaults("resized", "zlib:1", 7, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "whole", &options, &result, &err), &err);
    uint32_t wanted = digest_folder("whole");

    /* A file of the last class is damaged: the conversion fails there, and goes on once it is
     * mended. */
    presto_source *source;
    const char *paths[] = {at("photos")};
    ck_assert_ok(presto_source_open_raw(pipeline, paths, 1, &source, &err), &err);
    presto_source_free(source);
    options.resume = true;
    struct dirent **classes, **files;
    int class_count = scandir(at("photos"), &classes, NULL, alphasort);
    char last[1000];
    snprintf(last, sizeof last, "%s/%s", at("photos"), classes[class_count - 1]->d_name);
    int file_count = scandir(last, &files, NULL, alphasort);
    size_t used = strlen(last);
    snprintf(last + used, sizeof last - used, "/%s", files[file_count - 2]->d_name);
    size_t bytes;
    uint8_t *content = presto_check_read_file(last, &bytes);
    uint8_t *broken = malloc(bytes);
    memset(broken, 0, bytes);
    presto_check_write_file(last, presto_span_of(broken, bytes));
    ck_assert_int_lt(convert("photos", "out", &options, &result, &err), 0);
    ck_assert_str_eq(err.file, last);
    ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
    ck_assert_int_eq(access(at("out/data-00000-of-00007.tfrecord"), F_OK), 0);

    /* Without being asked to resume, or with other parameters, it is left alone. */
    options.resume = false;
    ck_assert_status(convert("photos", "out", &options, &result, &err), PRESTO_ERR_ARGUMENT, &err);
    options.resume = true;
    options.split = "decoded";
    ck_assert_status(convert("photos", "out", &options, &result, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "split"));
    options.split = "resized";

    presto_check_write_file(last, presto_span_of(content, bytes));
    struct stat before, after;
    ck_assert_int_eq(stat(at("out/data-00000-of-00007.tfrecord"), &before), 0);
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    ck_assert_int_eq(stat(at("out/data-00000-of-00007.tfrecord"), &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_uint_eq(result.samples, PHOTOS);
    ck_assert_uint_eq(digest_folder("out"), wanted);
    free(content);
    free(broken);
    for (int i = 0; i < class_count; i++)
        free(classes[i]);
    for (int i = 0; i < file_count; i++)
        free(files[i]);
    free(classes);
    free(files);
    tear_down();
}
END_TEST

START_TEST(a_conversion_that_is_stopped_or_killed_resumes_to_the_same_bytes) {
    set_up();
    presto_convert_options options = defaults("decoded", "zlib:6", 10, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "whole", &options, &result, &err), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    uint64_t limit = 15;
    options.on_progress = stop_early;
    options.on_progress_user = &limit;
    presto_status status = convert("photos", "out", &options, &result, &err);
    if (status < 0)
        ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
    options.on_progress = NULL;
    uint64_t seed = presto_check_seed();
    for (int round = 0; round < 12; round++) {
        if (access(at("out/dataset.json"), F_OK) == 0)
            break;
        pid_t child = fork();
        if (child == 0) {
            (void)convert("photos", "out", &options, &result, &err);
            _exit(0);
        }
        struct timespec pause = {.tv_nsec = (long)((seed >> round) % 12000) * 1000};
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    if (access(at("out/dataset.json"), F_OK) != 0)
        ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    /* Killed behind dataset.json, it may leave these two; nobody minds them. */
    unlink(at("out/.progress.json"));
    unlink(at("out/.presto.lock"));
    ck_assert_uint_eq(digest_folder("out"), wanted);
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
    ck_assert_ok(presto_dataset_info_read(at("out"), &info, &err), &err);
    ck_assert_uint_eq(info.feature_count, 3);
    char text[PRESTO_SPEC_TEXT_BYTES];
    ck_assert_str_eq(info.features[0].name, "image");
    ck_assert_str_eq(presto_spec_format(&info.features[0].spec, text, sizeof text), "uint8[?,?,3]");
    ck_assert_str_eq(info.features[2].name, "label");
    ck_assert_str_eq(presto_spec_format(&info.features[2].spec, text, sizeof text), "int64");
    ck_assert_str_eq(info.main_feature, "image");
    ck_assert_str_eq(info.split, "decoded");
    presto_dataset_info_done(&info);
    tear_down();
}
END_TEST

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
        for (size_t t = 0; t < 5; t += presto_check_is_slow() ? 2 : 1)
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
        for (int to_end = 0; to_end < 2; to_end++) {
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
    ck_assert_ok(presto_dataset_info_read(at(name), &info, &err), &err);
    ck_assert_uint_eq(info.label_count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(info.label_names[i], wanted[i]);
    presto_dataset_info_done(&info);
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
    options.split = "resized";
    ck_assert_ok(convert("first", "second", &options, &result, &err), &err);
    check_labels("second", folders, 4);
    options.split = NULL;
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
        shards_are_the_same_for_any_number_of_threads,
        every_split_codec_and_compression_streams_the_same_samples,
        a_dataset_can_be_processed_further,
        an_interrupted_conversion_resumes_to_the_same_bytes,
        a_conversion_that_is_stopped_or_killed_resumes_to_the_same_bytes,
        folders_with_anything_in_them_are_left_alone,
        damaged_files_can_be_left_out,
        features_are_described_as_they_are_over_all_samples,
        streams_of_images_are_the_same_for_any_threads_with_random_crops_and_shuffle,
        a_cached_stream_is_the_same_as_one_that_is_not,
        names_of_labels_come_along,
        streams_say_what_is_wrong_with_their_words,
        foreign_records_run_the_rest_of_a_named_pipeline,
    };
    return presto_check_main("convert", tests, sizeof tests / sizeof tests[0], 240);
}
