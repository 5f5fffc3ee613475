/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions with so many shards that the progress file is not written after each. If the process
 * is killed, the file may lag behind; after a clean failure it does not.
 */
#define _XOPEN_SOURCE 700
#include "loader_check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/convert_internal.h"
#include "folder_check.h"

#define SAMPLES 300
#define DAMAGED 200 /* sample; one sample a shard */

/* By number, by size, compressed as a whole. */
static const struct {
    size_t shards;
    uint64_t shard_bytes;
    presto_file_compression compression;
    const char *before, *after; /* the shard's number in its name, until the conversion ends */
} ways[] = {
    {SAMPLES, 0, PRESTO_FILE_PLAIN, "data-", "-of-00300.tfrecord"},
    {0, 1, PRESTO_FILE_PLAIN, ".data-", ".tfrecord"},
    {SAMPLES, 0, PRESTO_FILE_GZIP, "data-", "-of-00300.tfrecord.gz"},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static char *dir;
static presto_error err;
static presto_convert_result result;

static char *at(const char *name) {
    return path_in(dir, name);
}

static void set_up(void) {
    static const made how = {.samples = SAMPLES, .shards = 1, .values = 3, .odd = UINT64_MAX};
    dir = presto_check_temp_dir();
    ck_assert_int_eq(mkdir(at("in"), 0777), 0);
    make_dataset(at("in"), &how);
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_convert_options options_of(size_t way) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.codec = "zlib:1";
    options.shards = ways[way].shards;
    options.shard_bytes = ways[way].shard_bytes;
    options.file_compression = ways[way].compression;
    options.threads = 3;
    options.resume = true;
    options.sync = false;
    return options;
}

static presto_status convert(const char *to, const presto_convert_options *options) {
    const char *paths[] = {at("in")};
    presto_convert_options with = *options;
    with.dir = at(to);
    return presto_convert(paths, 1, &with, &result, &err);
}

/* A bit of sample DAMAGED, before its key: there and back. */
static void flip_bit(void) {
    char path[1000];
    size_t bytes;
    snprintf(path, sizeof path, "%s/data-00000-of-00001.tfrecord", at("in"));
    uint8_t *content = presto_check_read_file(path, &bytes);
    const char key[] = "sample-200";
    uint8_t *found = content;
    while (memcmp(found, key, sizeof key - 1) != 0)
        ck_assert(++found < content + bytes - sizeof key);
    found[-1] ^= 1;
    presto_check_write_file(path, presto_span_of(content, bytes));
    free(content);
}

static bool stands(size_t way, size_t shard) {
    char name[64];
    snprintf(name, sizeof name, "out/%s%05zu%s", ways[way].before, shard, ways[way].after);
    return access(at(name), F_OK) == 0;
}

static size_t noted_shards(void) {
    presto__progress_file progress = {0};
    ck_assert_ok(presto__progress_file_read(at("out"), &progress, &err), &err);
    size_t count = progress.shard_count;
    presto__progress_file_done(&progress);
    return count;
}

/* What a process leaves when it is killed some time after it noted `count` shards. */
static void let_lag(size_t count) {
    presto__progress_file progress = {0};
    ck_assert_ok(presto__progress_file_read(at("out"), &progress, &err), &err);
    presto__progress_file_keep(&progress, count);
    ck_assert_ok(presto__progress_file_write(at("out"), &progress, false, &err), &err);
    presto__progress_file_done(&progress);
}

static uint32_t digest_folder(const char *name) {
    return digest_of_folder(at(name));
}

static void check_failed(size_t way) {
    /* With --shard-bytes, a shard ends with the first sample of the next one, which did not
     * come. */
    size_t whole = ways[way].shard_bytes > 0 ? DAMAGED - 1 : DAMAGED;
    ck_assert_uint_eq(noted_shards(), whole);
    ck_assert(stands(way, whole - 1));
    ck_assert(!stands(way, whole));
    ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
}

static void fail_and_resume(size_t way) {
    presto_convert_options options = options_of(way);
    ck_assert_ok(convert("whole", &options), &err);
    ck_assert_uint_eq(result.shards, SAMPLES);
    uint32_t wanted = digest_folder("whole");
    flip_bit();
    ck_assert_int_lt(convert("out", &options), 0);
    check_failed(way);
    static const size_t lags[] = {0, 1, 63, 64, 65, 100, DAMAGED - 1};
    for (size_t i = 0; i < sizeof lags / sizeof lags[0]; i++) {
        let_lag(lags[i]);
        ck_assert_int_lt(convert("out", &options), 0);
        check_failed(way);
    }
    flip_bit();
    let_lag(100);
    ck_assert_ok(convert("out", &options), &err);
    ck_assert_uint_eq(result.samples, SAMPLES);
    ck_assert_uint_eq(digest_folder("out"), wanted);
    presto_check_remove_tree(at("whole"));
    presto_check_remove_tree(at("out"));
}

START_TEST(a_failure_keeps_all_shards_and_a_late_progress_file_does_no_harm) {
    set_up();
    for (size_t way = 0; way < WAYS; way++)
        fail_and_resume(way);
    tear_down();
}
END_TEST

static bool stop_at_the_end(void *user, const presto_progress *progress) {
    (void)user;
    return progress->samples_done < progress->samples_total;
}

/* Stopped when all samples have come; the last shards may have no name yet. */
START_TEST(a_stopped_conversion_keeps_its_shards) {
    set_up();
    for (size_t way = 0; way < WAYS; way++) {
        presto_convert_options options = options_of(way);
        ck_assert_ok(convert("whole", &options), &err);
        options.on_progress = stop_at_the_end;
        ck_assert_status(convert("out", &options), PRESTO_ERR_STOPPED, &err);
        size_t standing = 0;
        for (size_t i = 0; i < SAMPLES; i++)
            standing += stands(way, i);
        ck_assert_uint_eq(noted_shards(), standing);
        if (ways[way].shard_bytes > 0)
            ck_assert_uint_eq(standing, SAMPLES - 1);
        options.on_progress = NULL;
        ck_assert_ok(convert("out", &options), &err);
        ck_assert_uint_eq(digest_folder("out"), digest_folder("whole"));
        presto_check_remove_tree(at("whole"));
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_failure_keeps_all_shards_and_a_late_progress_file_does_no_harm,
        a_stopped_conversion_keeps_its_shards,
    };
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    return presto_check_main("many_shards", tests, sizeof tests / sizeof tests[0], 240);
}
