/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards compressed as a whole are made several at once: the same bytes as one after the other, and
 * the same failure, whoever is faster.
 */
#define _XOPEN_SOURCE 700
#include "loader_check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder_check.h"

#define PHOTOS 30

static char *dir;
static presto_pipeline *pipeline;
static presto_error err;
static presto_convert_result result;

static char *at(const char *name) {
    static char paths[8][700];
    static size_t next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static char *photo(int number) {
    char name[64];
    snprintf(name, sizeof name, "photos/%02d.jpg", number);
    return at(name);
}

/* Photos named 00.jpg, 01.jpg, ... */
static void set_up(void) {
    dir = presto_check_temp_dir();
    ck_assert_ok(presto_pipeline_load("cv", &pipeline, &err), &err);
    char command[1200];
    snprintf(command, sizeof command,
             "%s -n %d -c 1 --width 40 --height 30 -j 0 -o %s/made >/dev/null 2>&1 && "
             "mkdir %s/photos && i=0 && for f in $(find %s/made -name '*.jpg' | sort); do "
             "mv $f %s/photos/$(printf '%%02d' $i).jpg; i=$((i+1)); done",
             PRESTO_CORPUS_PROGRAM, PHOTOS, dir, dir, dir, dir);
    ck_assert_int_eq(system(command), 0);
}

static void tear_down(void) {
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_convert_options defaults(presto_file_compression compression, size_t shards,
                                       unsigned threads) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.split = "decoded";
    options.file_compression = compression;
    options.shards = shards;
    options.threads = threads;
    options.sync = false;
    return options;
}

static presto_status convert(const char *from, const char *to,
                             const presto_convert_options *options) {
    const char *paths[] = {at(from)};
    return presto_convert(pipeline, paths, 1, at(to), options, &result, &err);
}

static uint32_t digest_folder(const char *name) {
    return digest_of_folder(at(name));
}

/* The photo as another file, which is none, and back. */
static void damage(int number, bool damaged) {
    char kept[1000];
    snprintf(kept, sizeof kept, "%s/kept-%d", dir, number);
    if (damaged) {
        struct stat info;
        ck_assert_int_eq(stat(photo(number), &info), 0);
        ck_assert_int_eq(rename(photo(number), kept), 0);
        uint8_t *zeros = calloc((size_t)info.st_size, 1);
        presto_check_write_file(photo(number), presto_span_of(zeros, (size_t)info.st_size));
        free(zeros);
    } else {
        ck_assert_int_eq(rename(kept, photo(number)), 0);
    }
}

START_TEST(shards_are_the_same_for_any_number_of_threads) {
    set_up();
    static const size_t shards[] = {1, 2, 3, 7, PHOTOS + 5};
    static const unsigned threads[] = {0, 1, 2, 3, 5, 8};
    for (size_t s = 0; s < sizeof shards / sizeof shards[0]; s++)
        for (int c = 0; c < 2; c++) {
            uint32_t wanted = 0;
            for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
                presto_convert_options options =
                    defaults(c ? PRESTO_FILE_GZIP : PRESTO_FILE_ZLIB, shards[s], threads[t]);
                ck_assert_ok(convert("photos", "out", &options), &err);
                ck_assert_uint_eq(result.samples, PHOTOS);
                ck_assert_uint_eq(result.shards, shards[s]);
                ck_assert_uint_gt(result.source_bytes, 0);
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

/* Such an input can only be read from its start. */
START_TEST(a_dataset_of_compressed_files_is_recoded) {
    set_up();
    presto_convert_options options = defaults(PRESTO_FILE_GZIP, 3, 4);
    ck_assert_ok(convert("photos", "first", &options), &err);
    options = defaults(PRESTO_FILE_ZLIB, 5, 4);
    ck_assert_ok(convert("photos", "direct", &options), &err);
    ck_assert_ok(convert("first", "second", &options), &err);
    forget_input(at("direct"));
    forget_input(at("second"));
    ck_assert_uint_eq(digest_folder("direct"), digest_folder("second"));
    options = defaults(PRESTO_FILE_PLAIN, 4, 2);
    ck_assert_ok(convert("photos", "plain", &options), &err);
    options = defaults(PRESTO_FILE_ZLIB, 5, 4);
    ck_assert_ok(convert("plain", "third", &options), &err);
    forget_input(at("third"));
    ck_assert_uint_eq(digest_folder("direct"), digest_folder("third"));
    tear_down();
}
END_TEST

START_TEST(the_first_failure_in_the_order_of_the_samples_is_reported) {
    set_up();
    presto_convert_options options = defaults(PRESTO_FILE_GZIP, 6, 4);
    ck_assert_ok(convert("photos", "whole", &options), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    /* Five samples a shard; 14 is the last of the third, 15 the first of the fourth. */
    damage(14, true);
    damage(15, true);
    damage(27, true);
    static const unsigned threads[] = {0, 2, 3, 4, 8};
    for (int round = 0; round < 3; round++)
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            options.threads = threads[t];
            ck_assert_int_lt(convert("photos", "out", &options), 0);
            ck_assert_str_eq(err.file, photo(14));
            ck_assert_int_eq(access(at("out/data-00000-of-00006.tfrecord.gz"), F_OK), 0);
            ck_assert_int_eq(access(at("out/data-00001-of-00006.tfrecord.gz"), F_OK), 0);
            ck_assert_int_ne(access(at("out/data-00002-of-00006.tfrecord.gz"), F_OK), 0);
            ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
            if (round < 2)
                presto_check_remove_tree(at("out"));
        }
    struct stat before, after;
    ck_assert_int_eq(stat(at("out/data-00001-of-00006.tfrecord.gz"), &before), 0);
    damage(14, false);
    ck_assert_int_lt(convert("photos", "out", &options), 0);
    ck_assert_str_eq(err.file, photo(15));
    damage(15, false);
    damage(27, false);
    ck_assert_ok(convert("photos", "out", &options), &err);
    ck_assert_int_eq(stat(at("out/data-00001-of-00006.tfrecord.gz"), &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_uint_eq(digest_folder("out"), wanted);
    tear_down();
}
END_TEST

/* The first shard takes long and then fails: what the others have finished by then goes as well. */
START_TEST(a_first_shard_that_fails_last_leaves_nothing) {
    set_up();
    char command[2000];
    snprintf(command, sizeof command,
             "%s -n 1 -c 1 --width 3000 --height 2000 -j 0 -o %s/large >/dev/null 2>&1 && "
             "mv $(find %s/large -name '*.jpg') %s",
             PRESTO_CORPUS_PROGRAM, dir, dir, photo(0));
    ck_assert_int_eq(system(command), 0);
    damage(1, true);
    static const unsigned threads[] = {0, 2, 4};
    for (int kept = 0; kept < 2; kept++)
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            presto_convert_options options = defaults(PRESTO_FILE_GZIP, 10, threads[t]);
            if (kept)
                ck_assert_int_eq(mkdir(at("out"), 0777), 0);
            ck_assert_int_lt(convert("photos", "out", &options), 0);
            ck_assert_str_eq(err.file, photo(1));
            /* A folder that was there stays, with nothing in it. */
            ck_assert_int_eq(access(at("out"), F_OK), kept ? 0 : -1);
            if (kept)
                ck_assert_int_eq(rmdir(at("out")), 0);
        }
    tear_down();
}
END_TEST

/* One after the other, so that they are told and counted in order. */
static void count_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *why) {
    (void)epoch;
    (void)why;
    uint64_t *last = user;
    ck_assert(*last == UINT64_MAX || sample > *last);
    *last = sample;
}

START_TEST(samples_left_out_are_told_in_order) {
    set_up();
    for (int i = 2; i < PHOTOS; i += 4)
        damage(i, true);
    uint64_t last = UINT64_MAX;
    presto_convert_options options = defaults(PRESTO_FILE_GZIP, 6, 8);
    options.on_error = PRESTO_ON_ERROR_SKIP;
    options.on_skip = count_skip;
    options.on_skip_user = &last;
    ck_assert_ok(convert("photos", "out", &options), &err);
    ck_assert_uint_eq(last, 26);
    ck_assert_uint_eq(result.skipped, 7);
    tear_down();
}
END_TEST

/* Stops the job at its n-th call. */
static bool stop_at(void *user, const presto_progress *progress) {
    ck_assert_uint_eq(progress->samples_total, PHOTOS);
    ck_assert_uint_le(progress->samples_done, PHOTOS);
    return --*(int *)user > 0;
}

START_TEST(a_stopped_conversion_is_resumed) {
    set_up();
    presto_convert_options options = defaults(PRESTO_FILE_GZIP, 10, 4);
    ck_assert_ok(convert("photos", "whole", &options), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    for (int calls = 1; calls < 4; calls++) {
        int left = calls;
        options.on_progress = stop_at;
        options.on_progress_user = &left;
        presto_status status = convert("photos", "out", &options);
        if (status < 0)
            ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
        options.on_progress = NULL;
        ck_assert_ok(convert("photos", "out", &options), &err);
        ck_assert_uint_eq(digest_folder("out"), wanted);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        shards_are_the_same_for_any_number_of_threads,
        a_dataset_of_compressed_files_is_recoded,
        the_first_failure_in_the_order_of_the_samples_is_reported,
        a_first_shard_that_fails_last_leaves_nothing,
        samples_left_out_are_told_in_order,
        a_stopped_conversion_is_resumed,
    };
    return presto_check_main("lanes", tests, sizeof tests / sizeof tests[0], 240);
}
