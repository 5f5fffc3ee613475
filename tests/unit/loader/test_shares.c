/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset that several runs write, each a share: the bytes of one run, exactly one attempt at each
 * share, and a join that may die at any moment.
 *
 * rename, unlink, unlinkat and rmdir are those of this program: the k-th call ends it, as kill -9 does.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "convert_check.h"

#define SHARDS 7
#define DIED 77

static long calls_left = -1; /* < 0: any number. Of the one thread of a child */

static void count_call(void) {
    if (calls_left == 0)
        _exit(DIED);
    if (calls_left > 0)
        calls_left--;
}

int rename(const char *from, const char *to) {
    count_call();
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int folder, const char *path, int flags) {
    count_call();
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path) {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/* ---- help ---- */

static presto_error err;

/* All files of a folder, with their names: also indexes and hidden ones. */
static uint32_t digest_all(const char *name) {
    struct dirent **entries;
    int count = scandir(at(name), &entries, NULL, alphasort);
    uint32_t digest = 0;
    ck_assert_int_gt(count, 2);
    for (int i = 0; i < count; i++) {
        const char *file = entries[i]->d_name;
        digest = presto_crc32c(digest, file, strlen(file) + 1);
        if (strcmp(file, ".") != 0 && strcmp(file, "..") != 0) {
            size_t bytes;
            char path[1400];
            snprintf(path, sizeof path, "%s/%s", at(name), file);
            uint8_t *content = presto_check_read_file(path, &bytes);
            digest = presto_crc32c(digest, content, bytes);
            free(content);
        }
        free(entries[i]);
    }
    free(entries);
    return digest;
}

static bool stands(const char *name) {
    return access(at(name), F_OK) == 0;
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void shell(const char *format, ...) {
    char command[4000];
    va_list args;
    va_start(args, format);
    ck_assert_int_lt(vsnprintf(command, sizeof command, format, args), (int)sizeof command);
    va_end(args);
    ck_assert_int_eq(system(command), 0);
}

static presto_convert_options share_options(const char *up_to, const char *codec, size_t number,
                                            size_t count) {
    presto_convert_options options = defaults(up_to, codec, SHARDS, 1);
    options.share.number = number;
    options.share.count = count;
    return options;
}

static presto_status write_share(const char *out, size_t number, size_t count,
                                 const char *attempt) {
    presto_convert_options options = share_options("concatenated", "none", number, count);
    presto_convert_result result;
    options.share.attempt = attempt;
    return convert("photos", out, &options, &result, &err);
}

static void write_all(const char *out, size_t count) {
    for (size_t i = 0; i < count; i++)
        ck_assert_ok(write_share(out, i, count, NULL), &err);
}

typedef struct told {
    char text[2000];
} told;

static void take_note(void *user, const char *note) {
    told *notes = user;
    size_t used = strlen(notes->text);
    snprintf(notes->text + used, sizeof notes->text - used, "%s\n", note);
}

static presto_status join_noting(const char *out, told *notes) {
    presto_join_options options;
    presto_join_options_defaults(&options);
    options.sync = false;
    options.on_note = notes == NULL ? NULL : take_note;
    options.on_note_user = notes;
    return presto_dataset_join(at(out), &options, NULL, &err);
}

static presto_status join(const char *out) {
    return join_noting(out, NULL);
}

static void write_whole(const char *out) {
    presto_convert_options options = defaults("concatenated", "none", SHARDS, 1);
    presto_convert_result result;
    ck_assert_ok(convert("photos", out, &options, &result, &err), &err);
}

/* The only folder in OUT/_parts whose name begins so. Valid until the next call of at(). */
static char *attempt_of(const char *out, const char *beginning) {
    char parts[200];
    static char found[600];
    snprintf(parts, sizeof parts, "%s/_parts", out);
    DIR *folder = opendir(at(parts));
    ck_assert_ptr_nonnull(folder);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, beginning, strlen(beginning)) == 0) {
            snprintf(found, sizeof found, "%.200s/%.255s", parts, entry->d_name);
            count++;
        }
    closedir(folder);
    ck_assert_uint_eq(count, 1);
    return found;
}

/* ---- the bytes of one run ---- */

static void check_equal_bytes(const char *up_to, const char *codec,
                              presto_file_compression compression, size_t count) {
    size_t order[64];
    char out[40];
    presto_convert_result one, result, joined;
    presto_convert_options options = defaults(up_to, codec, SHARDS, 2);
    options.file_compression = compression;
    ck_assert_ok(convert("photos", "whole", &options, &one, &err), &err);
    uint32_t wanted = digest_all("whole");
    presto_check_remove_tree(at("whole"));
    snprintf(out, sizeof out, "out%zu", count);
    uint64_t draw = presto_check_seed();
    for (size_t i = 0; i < count; i++) {
        draw = draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t other = (size_t)((draw >> 33) % (i + 1));
        order[i] = order[other];
        order[other] = i;
    }
    uint64_t samples = 0;
    size_t shards = 0;
    for (size_t i = 0; i < count; i++) {
        options = share_options(up_to, codec, order[i], count);
        options.file_compression = compression;
        options.threads = (unsigned)(i % 3);
        ck_assert_ok(convert("photos", out, &options, &result, &err), &err);
        samples += result.samples;
        shards += result.shards;
    }
    ck_assert_uint_eq(samples, PHOTOS);
    ck_assert_uint_eq(shards, SHARDS);
    presto_join_options with;
    presto_join_options_defaults(&with);
    with.sync = false;
    ck_assert_ok(presto_dataset_join(at(out), &with, &joined, &err), &err);
    ck_assert_uint_eq(joined.samples, PHOTOS);
    ck_assert_uint_eq(joined.shards, SHARDS);
    ck_assert_uint_eq(joined.stored_bytes, one.stored_bytes);
    ck_assert_uint_eq(joined.raw_bytes, one.raw_bytes);
    ck_assert_uint_eq(digest_all(out), wanted);
}

START_TEST(the_bytes_are_those_of_one_run) {
    static const size_t counts[] = {1, 2, 7, 64};
    set_up();
    size_t most = sizeof counts / sizeof counts[0];
    for (size_t i = 0; i < (presto_check_is_slow() ? most - 1 : most); i++) /* cli.parts has all */
        check_equal_bytes("concatenated", "none", PRESTO_FILE_PLAIN, counts[i]);
    tear_down();
}
END_TEST

START_TEST(so_are_those_of_other_representations_codecs_and_files) {
    set_up();
    check_equal_bytes("concatenated", "zstd:3+dict", PRESTO_FILE_PLAIN, 2);
    presto_check_remove_tree(at("out2"));
    check_equal_bytes("resized", "none", PRESTO_FILE_PLAIN, 2);
    check_equal_bytes("concatenated", "zlib:1", PRESTO_FILE_GZIP, 3);
    tear_down();
}
END_TEST

START_TEST(records_stored_again_keep_their_stream) {
    set_up();
    write_whole("first");
    const char *paths[] = {at("first")};
    presto_convert_options options = defaults(NULL, "zlib:1", 3, 1);
    presto_convert_result result;
    char *whole = strdup(at("whole")), *parts = strdup(at("parts")), *from = strdup(paths[0]);
    paths[0] = from;
    options.dir = whole;
    ck_assert_ok(presto_convert(paths, 1, &options, &result, &err), &err);
    options.dir = parts;
    options.share.count = 2;
    for (size_t i = 0; i < 2; i++) {
        options.share.number = i;
        ck_assert_ok(presto_convert(paths, 1, &options, &result, &err), &err);
    }
    ck_assert_ok(join("parts"), &err);
    ck_assert_uint_eq(digest_all("parts"), digest_all("whole"));
    free(whole);
    free(parts);
    free(from);
    tear_down();
}
END_TEST

/* Of 7 shards and 40 samples, they begin at 0 5 11 17 22 28 34: floor(40 i / 7). */
START_TEST(a_share_has_its_shards_alone) {
    static const char *const names[] = {
        "data-00000-of-00007.tfrecord", "data-00001-of-00007.tfrecord",
        "data-00002-of-00007.tfrecord", "data-00003-of-00007.tfrecord",
        "data-00004-of-00007.tfrecord", "data-00005-of-00007.tfrecord",
        "data-00006-of-00007.tfrecord"};
    static const size_t of_share[] = {0, 0, 1, 1, 2, 2, 2}; /* floor(7 k / 3): 0 2 4 7 */
    set_up();
    presto_convert_result result;
    for (size_t k = 0; k < 3; k++) {
        char attempt[8], file[200];
        presto_convert_options options = share_options("concatenated", "none", k, 3);
        snprintf(attempt, sizeof attempt, "a%zu", k);
        options.share.attempt = attempt;
        ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
        ck_assert_uint_eq(result.samples, k == 0 ? 11 : k == 1 ? 11 : 18);
        for (size_t i = 0; i < SHARDS; i++) {
            snprintf(file, sizeof file, "out/_parts/%05zu-of-00003.a%zu/%s", k, k, names[i]);
            ck_assert_int_eq(stands(file), of_share[i] == k);
        }
    }
    ck_assert(!stands("out/dataset.json"));
    tear_down();
}
END_TEST

/* ---- what is refused ---- */

static void check_refused(const presto_convert_options *options, const char *text) {
    presto_convert_result result;
    ck_assert_int_eq(convert("photos", "out", options, &result, &err), PRESTO_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, text) != NULL, "%s", err.message);
    ck_assert(!stands("out"));
}

START_TEST(what_cannot_be_shared_is_refused) {
    set_up();
    presto_convert_options options = share_options("concatenated", "none", 8, 8);
    check_refused(&options, "part 8 of 8");
    options = share_options("concatenated", "none", 0, 2);
    options.shards = 0;
    check_refused(&options, "number of shards");
    options.shard_bytes = 1000;
    check_refused(&options, "by their size");
    options = share_options("concatenated", "none", 0, 2);
    options.share.attempt = "../a";
    check_refused(&options, "name of an attempt");
    options.share.attempt = "";
    check_refused(&options, "name of an attempt");
    presto_convert_result result;
    options = share_options("concatenated", "none", 0, 2);
    options.pipeline = pipeline;
    options.dir = "s3://bucket/key";
    const char *paths[] = {at("photos")};
    ck_assert_int_eq(presto_convert(paths, 1, &options, &result, &err), PRESTO_ERR_UNSUPPORTED);
    ck_assert_int_eq(presto_dataset_join("s3://bucket/key", NULL, NULL, &err),
                     PRESTO_ERR_UNSUPPORTED);
    tear_down();
}
END_TEST

START_TEST(other_folders_are_refused) {
    set_up();
    presto_convert_result result;
    presto_convert_options whole = defaults("concatenated", "none", SHARDS, 1);
    ck_assert_ok(write_share("parts", 0, 2, NULL), &err);
    ck_assert_int_eq(convert("photos", "parts", &whole, &result, &err), PRESTO_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, "_parts") != NULL, "%s", err.message);
    write_whole("whole");
    uint32_t before = digest_all("whole");
    ck_assert_int_eq(write_share("whole", 0, 2, NULL), PRESTO_ERR_ARGUMENT);
    ck_assert(!stands("whole/_parts"));
    ck_assert_ok(join("whole"), &err); /* nothing to do */
    ck_assert_uint_eq(digest_all("whole"), before);
    ck_assert_int_eq(mkdir(at("mine"), 0777), 0);
    presto_check_write_file(at("mine/notes.txt"), presto_span_of_text("mine"));
    ck_assert_int_eq(write_share("mine", 0, 2, NULL), PRESTO_ERR_ARGUMENT);
    ck_assert(!stands("mine/_parts") && stands("mine/notes.txt"));
    ck_assert_int_eq(join("mine"), PRESTO_ERR_ARGUMENT);
    ck_assert_int_eq(join("nowhere"), PRESTO_ERR_NOT_FOUND);
    tear_down();
}
END_TEST

START_TEST(nobody_reads_what_is_not_joined) {
    set_up();
    presto_dataset *dataset;
    ck_assert_ok(write_share("out", 0, 2, NULL), &err);
    const char *paths[] = {at("out")};
    ck_assert_int_eq(presto_dataset_open(paths, 1, NULL, &dataset, &err), PRESTO_ERR_BUSY);
    ck_assert_msg(strstr(err.message, "--join") != NULL, "%s", err.message);
    tear_down();
}
END_TEST

/* ---- attempts ---- */

START_TEST(a_whole_attempt_is_not_written_again) {
    set_up();
    told notes = {""};
    ck_assert_ok(write_share("out", 1, 2, "a"), &err);
    presto_convert_options options = share_options("concatenated", "none", 1, 2);
    presto_convert_result result;
    options.share.attempt = "b";
    options.on_note = take_note;
    options.on_note_user = &notes;
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    ck_assert_uint_eq(result.samples, 23); /* from 17 on */
    ck_assert_uint_eq(result.shards, 4);
    ck_assert_msg(strstr(notes.text, "part 1/2 is whole already") != NULL, "%s", notes.text);
    ck_assert(!stands("out/_parts/00001-of-00002.b"));
    tear_down();
}
END_TEST

/* The second one must not see the first. */
static void write_twice(const char *out, size_t number, size_t count) {
    char second[64];
    snprintf(second, sizeof second, "%s2", out);
    ck_assert_ok(write_share(out, number, count, "a"), &err);
    ck_assert_ok(write_share(second, number, count, "b"), &err);
    shell("mv %s/_parts/* %s/_parts/", at(second), at(out));
}

START_TEST(of_equal_attempts_one_counts) {
    set_up();
    told notes = {""};
    write_whole("whole");
    write_twice("out", 0, 2);
    ck_assert_ok(write_share("out", 1, 2, "a"), &err);
    ck_assert_ok(join_noting("out", &notes), &err);
    ck_assert_msg(strstr(notes.text, "00000-of-00002.a counts") != NULL, "%s", notes.text);
    ck_assert_uint_eq(digest_all("out"), digest_all("whole"));
    tear_down();
}
END_TEST

START_TEST(of_attempts_with_other_records_none_counts_unless_named) {
    set_up();
    write_twice("out", 0, 2);
    ck_assert_ok(write_share("out", 1, 2, "a"), &err);
    write_whole("whole");
    size_t bytes;
    uint8_t *text = presto_check_read_file(at("out/_parts/00000-of-00002.b/part.json"), &bytes);
    char *crc = strstr((char *)text, "\"crc32c\": \"") + strlen("\"crc32c\": \"");
    crc[0] = crc[0] == '0' ? '1' : '0';
    presto_check_write_file(at("out/_parts/00000-of-00002.b/part.json"),
                            presto_span_of(text, bytes));
    free(text);
    ck_assert_int_eq(join("out"), PRESTO_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, "00000-of-00002.a") != NULL &&
                      strstr(err.message, "00000-of-00002.b") != NULL,
                  "%s", err.message);
    ck_assert(!stands("out/.progress.json") && !stands("out/data-00000-of-00007.tfrecord"));
    static const char *const named[] = {"00000-of-00002.a", "00001-of-00002.a"};
    presto_join_options options;
    presto_join_options_defaults(&options);
    options.attempts = named;
    options.attempt_count = 1;
    ck_assert_int_eq(presto_dataset_join(at("out"), &options, NULL, &err), PRESTO_ERR_BUSY);
    options.attempt_count = 2;
    ck_assert_ok(presto_dataset_join(at("out"), &options, NULL, &err), &err);
    ck_assert_uint_eq(digest_all("out"), digest_all("whole"));
    tear_down();
}
END_TEST

START_TEST(an_attempt_that_is_named_must_be_there) {
    static const char *const named[] = {"00000-of-00001.x"};
    set_up();
    ck_assert_ok(write_share("out", 0, 1, "a"), &err);
    presto_join_options options;
    presto_join_options_defaults(&options);
    options.attempts = named;
    options.attempt_count = 1;
    ck_assert_int_eq(presto_dataset_join(at("out"), &options, NULL, &err), PRESTO_ERR_NOT_FOUND);
    tear_down();
}
END_TEST

START_TEST(a_missing_part_is_named) {
    set_up();
    ck_assert_ok(write_share("out", 0, 4, NULL), &err);
    ck_assert_ok(write_share("out", 2, 4, NULL), &err);
    ck_assert_int_eq(mkdir(at("out/_parts/00001-of-00004.dead"), 0777), 0);
    ck_assert_int_eq(join("out"), PRESTO_ERR_BUSY);
    ck_assert_msg(strstr(err.message, "2 of 4 parts are not whole: 1, 3 (1 attempt has") != NULL,
                  "%s", err.message);
    ck_assert_ok(write_share("out", 1, 4, NULL), &err);
    ck_assert_ok(write_share("out", 3, 4, NULL), &err);
    ck_assert_ok(join("out"), &err);
    ck_assert(!stands("out/_parts"));
    tear_down();
}
END_TEST

START_TEST(of_two_jobs_the_whole_one_counts) {
    set_up();
    told notes = {""};
    write_whole("whole");
    presto_convert_result result;
    presto_convert_options other = share_options("concatenated", "zlib:1", 0, 2);
    write_all("out", 2);
    ck_assert_ok(convert("photos", "out", &other, &result, &err), &err);
    shell("cp -a %s %s", at("out"), at("both"));
    ck_assert_ok(join_noting("out", &notes), &err);
    ck_assert_msg(strstr(notes.text, "1 part of another dataset") != NULL, "%s", notes.text);
    ck_assert_uint_eq(digest_all("out"), digest_all("whole"));
    other.share.number = 1;
    ck_assert_ok(convert("photos", "both", &other, &result, &err), &err);
    ck_assert_int_eq(join("both"), PRESTO_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, "differ in codec") != NULL, "%s", err.message);
    tear_down();
}
END_TEST

START_TEST(an_attempt_that_comes_late_changes_nothing) {
    set_up();
    write_all("out", 2);
    ck_assert_ok(join("out"), &err);
    uint32_t before = digest_all("out");
    ck_assert_int_eq(write_share("out", 0, 2, "late"), PRESTO_ERR_ARGUMENT);
    ck_assert_uint_eq(digest_all("out"), before);
    told notes = {""};
    ck_assert_ok(join_noting("out", &notes), &err);
    ck_assert_msg(strstr(notes.text, "whole already") != NULL, "%s", notes.text);
    tear_down();
}
END_TEST

/* Stops when half of the samples are there or, on a fast machine, all of them. */
static bool stop_halfway(void *user, const presto_progress *progress) {
    (void)user;
    return progress->samples_done * 2 < progress->samples_total;
}

START_TEST(an_interrupted_attempt_goes_on) {
    set_up();
    presto_convert_result result;
    write_whole("whole");
    presto_convert_options options = share_options("concatenated", "none", 0, 2);
    options.share.attempt = "a";
    options.threads = 0;
    options.on_progress = stop_halfway;
    ck_assert_int_eq(convert("photos", "out", &options, &result, &err), PRESTO_ERR_STOPPED);
    ck_assert(stands("out/_parts/00000-of-00002.a/.progress.json"));
    options.on_progress = NULL;
    ck_assert_int_eq(convert("photos", "out", &options, &result, &err), PRESTO_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, "resume it") != NULL, "%s", err.message);
    options.resume = true;
    options.share.attempt = NULL;
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    ck_assert_uint_eq(result.samples, 17);
    ck_assert_str_eq(attempt_of("out", "0"), "out/_parts/00000-of-00002.a");
    options.share.number = 1; /* with nothing to go on with */
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    ck_assert_ok(join("out"), &err);
    ck_assert_uint_eq(digest_all("out"), digest_all("whole"));
    tear_down();
}
END_TEST

START_TEST(an_attempt_that_died_is_passed_over) {
    set_up();
    write_whole("whole");
    ck_assert_ok(write_share("out", 0, 2, "dead"), &err);
    ck_assert_int_eq(unlink(at("out/_parts/00000-of-00002.dead/part.json")), 0);
    ck_assert_ok(write_share("out", 1, 2, "b"), &err);
    ck_assert_int_eq(join("out"), PRESTO_ERR_BUSY);
    ck_assert_ok(write_share("out", 0, 2, "again"), &err);
    ck_assert_ok(join("out"), &err);
    ck_assert_uint_eq(digest_all("out"), digest_all("whole"));
    tear_down();
}
END_TEST

START_TEST(an_attempt_that_fails_leaves_nothing) {
    set_up();
    presto_convert_result result;
    shell("cp -a %s %s", at("photos"), at("bad"));
    shell("for f in $(find %s -name '*.jpg'); do echo no > $f; done", at("bad"));
    presto_convert_options options = share_options("decoded", "none", 0, 2);
    ck_assert_int_lt(convert("bad", "out", &options, &result, &err), 0);
    ck_assert(!stands("out"));
    tear_down();
}
END_TEST

/* ---- what is damaged ---- */

START_TEST(damage_is_found_before_anything_is_changed) {
    static const struct {
        const char *command; /* run in the attempt's folder */
        presto_status status;
        const char *says;
    } cases[] = {
        {"truncate -s -1 data-00001-of-00007.tfrecord", PRESTO_ERR_CORRUPT, "bytes, but part.json"},
        {"rm data-00001-of-00007.tfrecord", PRESTO_ERR_CORRUPT, "is missing"},
        {"rm data-00001-of-00007.tfrecord.index", PRESTO_ERR_CORRUPT, "is missing"},
        {"sed -i s/tfrecord/tfrecore/ part.json", PRESTO_ERR_CORRUPT, "not those of the share"},
        {"sed -i 's/\"number\": 0/\"number\": 1/' part.json", PRESTO_ERR_CORRUPT, "part.json"},
        {"sed -i 's/\"parts\": 2/\"parts\": 1/' part.json", PRESTO_ERR_CORRUPT, "part.json"},
        {"sed -i 's/\"skipped\": 0/\"skipped\": 1/' part.json", PRESTO_ERR_CORRUPT, "part.json"},
        {"truncate -s 100 part.json", PRESTO_ERR_CORRUPT, "dataset.json"},
        {"ln -sf /dev/null data-00001-of-00007.tfrecord", PRESTO_ERR_CORRUPT, "is missing"},
    };
    set_up();
    write_all("good", 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        shell("rm -rf %s && cp -a %s %s", at("out"), at("good"), at("out"));
        shell("cd %s && %s", at(attempt_of("out", "00000")), cases[i].command);
        ck_assert_int_eq(join("out"), cases[i].status);
        ck_assert_msg(strstr(err.message, cases[i].says) != NULL, "%s: %s", cases[i].command,
                      err.message);
        ck_assert(!stands("out/.progress.json") && !stands("out/dataset.json") &&
                  !stands("out/data-00000-of-00007.tfrecord"));
    }
    tear_down();
}
END_TEST

/* ---- a join that dies ---- */

static bool is_read_as_nothing(const char *out) {
    presto_dataset *dataset = NULL;
    const char *paths[] = {at(out)};
    presto_status status = presto_dataset_open(paths, 1, NULL, &dataset, &err);
    presto_dataset_free(dataset);
    return status == PRESTO_ERR_BUSY;
}

START_TEST(a_join_may_die_at_any_moment) {
    set_up();
    presto_convert_options options = defaults("concatenated", "zstd:1+dict", SHARDS, 1);
    presto_convert_result result;
    ck_assert_ok(convert("photos", "whole", &options, &result, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        options.share.number = i;
        options.share.count = 2;
        ck_assert_ok(convert("photos", "good", &options, &result, &err), &err);
    }
    uint32_t wanted = digest_all("whole");
    size_t died = 0;
    for (long k = 0;; k += presto_check_is_slow() ? 3 : 1) {
        int status;
        shell("rm -rf %s && cp -a %s %s", at("out"), at("good"), at("out"));
        fflush(NULL);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            calls_left = k;
            _exit(join("out") == PRESTO_OK ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFEXITED(status));
        if (WEXITSTATUS(status) == 0)
            break;
        ck_assert_int_eq(WEXITSTATUS(status), DIED);
        died++;
        if (!stands("out/dataset.json"))
            ck_assert(is_read_as_nothing("out"));
        if (stands(
                "out/.progress.json")) { /* a run that comes now is refused, and so is a program that reads */
            ck_assert_int_eq(write_share("out", 0, 2, "late"), PRESTO_ERR_ARGUMENT);
            presto_clean_options clean;
            presto_clean_options_defaults(&clean);
            clean.removes = true;
            clean.older_than_s = 0.001;
            ck_assert_ok(presto_clean(at("out"), &clean, &err), &err);
        }
        ck_assert_ok(join("out"), &err);
        ck_assert_msg(digest_all("out") == wanted, "after call %ld", k);
    }
    /* The log, shards and their indexes, the dictionary, dataset.json, what is removed. */
    ck_assert_uint_ge(died, (size_t)(2 + 2 * SHARDS + 2) / (presto_check_is_slow() ? 3 : 1));
    tear_down();
}
END_TEST

/* The text of a dataset.json as a text of JSON, on the heap. */
static char *quoted(const char *name) {
    size_t bytes, used = 0;
    uint8_t *content = presto_check_read_file(at(name), &bytes);
    char *text = malloc(2 * bytes + 1);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < bytes; i++) {
        if (content[i] == '"' || content[i] == '\\' || content[i] == '\n')
            text[used++] = '\\';
        text[used++] = content[i] == '\n' ? 'n' : (char)content[i];
    }
    text[used] = '\0';
    free(content);
    return text;
}

START_TEST(a_log_that_leads_elsewhere_is_refused) {
    static const char *const good = "[\"00000-of-00001.a\"]";
    static const char *const shards = "[[0, \"data-00000-of-00001.tfrecord\"]]";
    const struct {
        int version;
        const char *attempts, *moves, *dictionary, *says;
    } cases[] = {
        {2, good, shards, "null", "'version'"},
        {1, "[\"..\"]", shards, "null", "'attempts'"},
        {1, "[\"00000-of-00001.a/..\"]", shards, "null", "'attempts'"},
        {1, good, "[[0, \"../mine\"]]", "null", "'moves'"},
        {1, good, "[[1, \"data-00000-of-00001.tfrecord\"]]", "null", "'moves'"},
        {1, good, "[]", "null", "other files than 'moves'"},
        {1, good, "[[0, \"data-00000-of-00002.tfrecord\"]]", "null", "other files than 'moves'"},
        {1, good, shards, "1", "'dictionary'"},
        {1, good, shards, "0", "other files"},
    };
    set_up();
    presto_convert_result result;
    presto_convert_options options = defaults("concatenated", "none", 1, 1);
    ck_assert_ok(convert("photos", "whole", &options, &result, &err), &err);
    uint32_t wanted = digest_all("whole");
    options.share.count = 1;
    options.share.attempt = "a";
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    char *dataset = quoted("whole/dataset.json");
    size_t room = strlen(dataset) + 1000;
    char *log = malloc(room);
    ck_assert_ptr_nonnull(log);
    presto_check_write_file(at("mine"), presto_span_of_text("mine"));
    for (size_t i = 0; i <= sizeof cases / sizeof cases[0]; i++) {
        bool is_good = i == sizeof cases / sizeof cases[0];
        snprintf(log, room,
                 "{\"format\": \"join-log\", \"version\": %d, \"attempts\": %s, \"moves\": %s, "
                 "\"dictionary\": %s, \"dataset\": \"%s\"}",
                 is_good ? 1 : cases[i].version, is_good ? good : cases[i].attempts,
                 is_good ? shards : cases[i].moves, is_good ? "null" : cases[i].dictionary,
                 dataset);
        presto_check_write_file(at("out/.progress.json"), presto_span_of_text(log));
        if (is_good)
            break;
        ck_assert_int_eq(join("out"), PRESTO_ERR_CORRUPT);
        ck_assert_msg(strstr(err.message, cases[i].says) != NULL, "%s", err.message);
        ck_assert(stands("mine") && stands("out/_parts/00000-of-00001.a/part.json"));
    }
    ck_assert_ok(join("out"), &err);
    ck_assert_uint_eq(digest_all("out"), wanted);
    ck_assert(stands("mine"));
    presto_check_remove_tree(at("out"));
    ck_assert_ok(write_share("out", 0, 1, "a"), &err);
    presto_check_write_file(at("out/.progress.json"), presto_span_of_text("{}"));
    ck_assert_int_eq(join("out"), PRESTO_ERR_ARGUMENT);
    free(dataset);
    free(log);
    tear_down();
}
END_TEST

START_TEST(what_else_is_among_attempts_does_no_harm) {
    set_up();
    write_whole("whole");
    ck_assert_ok(write_share("out", 0, 2, "a"), &err);
    presto_check_write_file(at("out/_parts/notes"), presto_span_of_text("mine"));
    ck_assert_int_eq(symlink("nowhere", at("out/_parts/link")), 0);
    ck_assert_int_eq(symlink(".", at("out/_parts/00001-of-00002.link")), 0);
    ck_assert_ok(write_share("out", 1, 2, "a"), &err);
    ck_assert_ok(join("out"), &err);
    ck_assert(stands("out/_parts/notes"));
    presto_check_remove_tree(at("out/_parts"));
    ck_assert_uint_eq(digest_all("out"), digest_all("whole"));
    tear_down();
}
END_TEST

START_TEST(a_dictionary_that_was_changed_is_refused) {
    set_up();
    presto_convert_result result;
    presto_convert_options options = share_options("concatenated", "zstd:1+dict", 0, 1);
    options.share.attempt = "a";
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    shell("truncate -s -1 %s", at("out/_parts/00000-of-00001.a/dictionary"));
    ck_assert_int_eq(join("out"), PRESTO_ERR_CORRUPT);
    ck_assert(!stands("out/.progress.json"));
    tear_down();
}
END_TEST

START_TEST(what_a_clean_that_was_stopped_has_left_goes_too) {
    set_up();
    presto_clean_options clean;
    ck_assert_ok(write_share("out", 0, 2, "a"), &err);
    ck_assert_int_eq(unlink(at("out/_parts/00000-of-00002.a/part.json")), 0);
    presto_clean_options_defaults(&clean);
    clean.removes = true;
    ck_assert_ok(presto_clean(at("out"), &clean, &err), &err);
    ck_assert(stands("out/_parts/00000-of-00002.a/data-00000-of-00007.tfrecord"));
    shell("touch -d '2 days ago' %s/*", at("out/_parts/00000-of-00002.a"));
    ck_assert_ok(presto_clean(at("out"), &clean, &err), &err);
    ck_assert(!stands("out/_parts"));
    tear_down();
}
END_TEST

START_TEST(what_nobody_joins_is_cleaned_by_age) {
    set_up();
    presto_clean_options clean;
    ck_assert_ok(write_share("out", 0, 2, "a"), &err);
    ck_assert_int_eq(mkdir(at("out/_parts/00001-of-00002.dead"), 0777), 0);
    presto_check_write_file(at("out/_parts/00001-of-00002.dead/.progress.json"),
                            presto_span_of_text("{}"));
    presto_check_write_file(at("out/_parts/00001-of-00002.dead/data-00004-of-00007.tfrecord"),
                            presto_span_of_text("x"));
    presto_clean_options_defaults(&clean);
    clean.removes = true;
    ck_assert_ok(presto_clean(at("out"), &clean, &err), &err);
    ck_assert(stands("out/_parts/00000-of-00002.a/part.json")); /* it is young */
    ck_assert(!stands("out/_parts/00001-of-00002.dead"));       /* nobody owns it */
    shell("touch -d '2 days ago' %s/*", at("out/_parts/00000-of-00002.a"));
    clean.removes = false;
    ck_assert_ok(presto_clean(at("out"), &clean, &err), &err);
    ck_assert(stands("out/_parts/00000-of-00002.a/part.json"));
    clean.removes = true;
    ck_assert_ok(presto_clean(at("out"), &clean, &err), &err);
    ck_assert(!stands("out/_parts"));
    tear_down();
}
END_TEST

/* ---- several at once ---- */

/* Each part twice, at the same time, under names of their own. */
START_TEST(attempts_at_once_do_not_meet) {
    enum { COUNT = 3, RUNS = 6 };
    set_up();
    write_whole("whole");
    pid_t children[RUNS];
    fflush(NULL);
    for (size_t i = 0; i < RUNS; i++) {
        children[i] = fork();
        ck_assert_int_ge(children[i], 0);
        if (children[i] == 0)
            _exit(write_share("out", i % COUNT, COUNT, NULL) == PRESTO_OK ? 0 : 1);
    }
    for (size_t i = 0; i < RUNS; i++) {
        int status;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ck_assert_ok(join("out"), &err);
    ck_assert_uint_eq(digest_all("out"), digest_all("whole"));
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {the_bytes_are_those_of_one_run,
                                  so_are_those_of_other_representations_codecs_and_files,
                                  records_stored_again_keep_their_stream,
                                  a_share_has_its_shards_alone,
                                  what_cannot_be_shared_is_refused,
                                  other_folders_are_refused,
                                  nobody_reads_what_is_not_joined,
                                  a_whole_attempt_is_not_written_again,
                                  of_equal_attempts_one_counts,
                                  of_attempts_with_other_records_none_counts_unless_named,
                                  an_attempt_that_is_named_must_be_there,
                                  a_missing_part_is_named,
                                  of_two_jobs_the_whole_one_counts,
                                  an_attempt_that_comes_late_changes_nothing,
                                  an_interrupted_attempt_goes_on,
                                  an_attempt_that_died_is_passed_over,
                                  an_attempt_that_fails_leaves_nothing,
                                  damage_is_found_before_anything_is_changed,
                                  a_join_may_die_at_any_moment,
                                  a_log_that_leads_elsewhere_is_refused,
                                  what_nobody_joins_is_cleaned_by_age,
                                  what_else_is_among_attempts_does_no_harm,
                                  a_dictionary_that_was_changed_is_refused,
                                  what_a_clean_that_was_stopped_has_left_goes_too,
                                  attempts_at_once_do_not_meet};
    return presto_check_main("shares", tests, sizeof tests / sizeof tests[0], 300);
}
