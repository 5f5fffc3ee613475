/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: folders of ours and of other programs are opened, or refused. */
#include "../../../records/records_internal.h"
#include "folder_check.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/dataset.h>

#include "dataset/dataset_internal.h"

static presto_error err;

static void write_records(const char *path, size_t count, presto_file_compression compression,
                          bool index, presto__shard_summary *summary_out) {
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.compression = compression;
    options.write_index = index;
    options.sync = false;
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    for (size_t i = 0; i < count; i++) {
        char text[1100];
        snprintf(text, sizeof text, "%s %zu", path, i);
        ck_assert_ok(presto__shard_writer_append(writer, presto_span_of_text(text), &err), &err);
    }
    ck_assert_ok(presto__shard_writer_finish(writer, summary_out, &err), &err);
    presto__shard_writer_free(writer);
}

/* A dataset of ours with shards of 5, 0, 7 records. */
static void make_ours(const char *dir) {
    static const size_t counts[] = {5, 0, 7};
    presto_dataset_info info = {.shard_count = 3};
    info.shards = calloc(3, sizeof *info.shards);
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        presto__shard_summary summary;
        snprintf(name, sizeof name, "data-%05zu-of-00003.tfrecord", i);
        write_records(path_in(dir, name), counts[i], PRESTO_FILE_PLAIN, true, &summary);
        info.shards[i] = (presto_dataset_shard){.file = strdup(name),
                                                .records = summary.records,
                                                .stored_bytes = summary.stored_bytes,
                                                .raw_bytes = summary.payload_bytes,
                                                .crc32c = summary.crc32c};
    }
    ck_assert_ok(presto__dataset_info_write(dir, &info, true, &err), &err);
    presto__dataset_info_free(&info);
}

static presto_dataset *open_one(const char *path) {
    presto_dataset *dataset = NULL;
    ck_assert_ok(presto_dataset_open(&path, 1, NULL, &dataset, &err), &err);
    return dataset;
}

START_TEST(a_dataset_of_ours_is_opened) {
    char *dir = presto_check_temp_dir();
    make_ours(dir);
    presto_dataset *dataset = open_one(dir);
    ck_assert(presto_dataset_is_ours(dataset));
    ck_assert_uint_eq(presto_dataset_records(dataset), 12);
    ck_assert_uint_eq(presto_dataset_shard_count(dataset), 3);
    static const size_t want_shard[] = {0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2};
    for (uint64_t number = 0; number < 12; number++) {
        uint64_t record;
        size_t at = presto_dataset_locate(dataset, number, &record);
        ck_assert_uint_eq(at, want_shard[number]);
        ck_assert_uint_eq(presto__dataset_shard_first(dataset, at) + record, number);
        presto_shard *shard;
        presto_block block = {0};
        ck_assert_ok(presto_dataset_shard_at(dataset, at, &shard, &err), &err);
        ck_assert_ok(presto_shard_fetch(shard, record, 1, &block, &err), &err);
        char text[1100];
        snprintf(text, sizeof text, "%s %d", presto_dataset_shard_path(dataset, at), (int)record);
        ck_assert(presto_span_is(block.records[0].payload, text));
        presto_block_done(&block);
    }
    ck_assert_uint_gt(presto__dataset_mean_bytes(dataset), 16);
    presto_dataset_free(dataset);
    /* One shard of it, by its path. */
    dataset = open_one(path_in(dir, "data-00002-of-00003.tfrecord"));
    ck_assert(presto_dataset_is_ours(dataset));
    ck_assert_uint_eq(presto_dataset_records(dataset), 7);
    presto_dataset_free(dataset);
    /* However its folder is spelled. */
    static const char *const spelled[] = {"/data-00002-of-00003.tfrecord",
                                          "//data-00002-of-00003.tfrecord",
                                          "./data-00002-of-00003.tfrecord"};
    for (size_t i = 0; i < 3; i++) {
        dataset = open_one(path_in(dir, spelled[i]));
        ck_assert(presto_dataset_is_ours(dataset));
        ck_assert_uint_eq(presto_dataset_records(dataset), 7);
        presto_dataset_free(dataset);
    }
    char *two = strdup(path_in(dir, "/data-00000-of-00003.tfrecord"));
    const char *mixed[] = {path_in(dir, "data-00002-of-00003.tfrecord"), two};
    ck_assert_ok(presto_dataset_open(mixed, 2, NULL, &dataset, &err), &err);
    ck_assert(presto_dataset_is_ours(dataset));
    presto_dataset_free(dataset);
    free(two);
    /* Two of them, in another order; one of them twice. */
    char *last = strdup(path_in(dir, "data-00002-of-00003.tfrecord"));
    const char *paths[] = {last, path_in(dir, "data-00000-of-00003.tfrecord"), last};
    ck_assert_ok(presto_dataset_open(paths, 2, NULL, &dataset, &err), &err);
    ck_assert(presto_dataset_is_ours(dataset));
    ck_assert_uint_eq(presto__dataset_shard_first(dataset, 1), 7);
    ck_assert_uint_eq(presto_dataset_records(dataset), 12);
    presto_dataset_free(dataset);
    ck_assert_status(presto_dataset_open(paths, 3, NULL, &dataset, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_str_eq(err.file, last);
    ck_assert_str_eq(err.message, "the shard is given twice");
    free(last);
    /* A file that dataset.json does not know. */
    write_records(path_in(dir, "other.tfrecord"), 3, PRESTO_FILE_PLAIN, false, NULL);
    dataset = open_one(path_in(dir, "other.tfrecord"));
    ck_assert(!presto_dataset_is_ours(dataset));
    ck_assert_uint_eq(presto_dataset_records(dataset), 3);
    presto_dataset_free(dataset);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(a_shard_other_than_described_is_corrupt) {
    char *dir = presto_check_temp_dir();
    make_ours(dir);
    write_records(path_in(dir, "data-00001-of-00003.tfrecord"), 2, PRESTO_FILE_PLAIN, true, NULL);
    ck_assert_int_eq(unlink(path_in(dir, "data-00002-of-00003.tfrecord")), 0);
    presto_dataset *dataset = open_one(dir);
    presto_shard *shard;
    ck_assert_ok(presto_dataset_shard_at(dataset, 0, &shard, &err), &err);
    ck_assert_status(presto_dataset_shard_at(dataset, 1, &shard, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_ptr_nonnull(strstr(err.file, "data-00001"));
    ck_assert_status(presto_dataset_shard_at(dataset, 2, &shard, &err), PRESTO_ERR_NOT_FOUND, &err);
    presto_dataset_free(dataset);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(folders_of_others_are_read) {
    char *dir = presto_check_temp_dir();
    static const char *const folders[] = {"beam",           "tfds",           "spark",
                                          "spark/number=1", "spark/number=2", "spark/_temporary",
                                          "imagenet"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        ck_assert_int_eq(mkdir(path_in(dir, folders[i]), 0777), 0);
    static const struct {
        const char *name;
        size_t count;
        presto_file_compression compression;
    } files[] = {
        {"beam/data_tfrecord-00000-of-00002.gz", 3, PRESTO_FILE_GZIP},
        {"beam/data_tfrecord-00001-of-00002.gz", 4, PRESTO_FILE_GZIP},
        {"tfds/mnist-train.tfrecord-00000-of-00001", 5, PRESTO_FILE_PLAIN},
        {"spark/number=1/part-00000-2f3-c000.tfrecord.gz", 2, PRESTO_FILE_GZIP},
        {"spark/number=2/part-00001-2f3-c000.tfrecord.deflate", 6, PRESTO_FILE_ZLIB},
        {"imagenet/train-00000-of-01024", 7, PRESTO_FILE_PLAIN},
        {"imagenet/train-00001-of-01024", 8, PRESTO_FILE_PLAIN},
        {"imagenet/extra.bin", 1, PRESTO_FILE_PLAIN}, /* known by its content */
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        write_records(path_in(dir, files[i].name), files[i].count, files[i].compression, false,
                      NULL);
    static const char *const others[] = {"beam/schema.pbtxt",
                                         "tfds/dataset_info.json",
                                         "tfds/features.json",
                                         "spark/_SUCCESS",
                                         "spark/number=1/.part-00000-2f3-c000.tfrecord.gz.crc",
                                         "spark/_temporary/part-9.tfrecord",
                                         "imagenet/README"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        presto_check_write_file(path_in(dir, others[i]), presto_span_of_text("not records"));
    presto_check_write_file(path_in(dir, "spark/number=1/part-00007-2f3-c000.tfrecord"),
                            presto_span_of(NULL, 0));
    static const struct {
        const char *folder;
        size_t shards;
        uint64_t records;
    } want[] = {{"beam", 2, 7}, {"tfds", 1, 5}, {"spark", 3, 8}, {"imagenet", 3, 16}, {"", 9, 36}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        presto_dataset *dataset = open_one(path_in(dir, want[i].folder));
        ck_assert(!presto_dataset_is_ours(dataset));
        ck_assert_uint_eq(presto_dataset_shard_count(dataset), want[i].shards);
        ck_assert_uint_eq(presto_dataset_records(dataset), want[i].records);
        for (size_t k = 1; k < want[i].shards; k++)
            ck_assert_int_lt(strcmp(presto_dataset_shard_path(dataset, k - 1),
                                    presto_dataset_shard_path(dataset, k)),
                             0);
        presto_dataset_free(dataset);
    }
    /* Several paths keep their order. */
    char first[1200], second[1200];
    snprintf(first, sizeof first, "%s/tfds", dir);
    snprintf(second, sizeof second, "%s/beam", dir);
    const char *const both[] = {first, second};
    presto_dataset *dataset = NULL;
    ck_assert_ok(presto_dataset_open(both, 2, NULL, &dataset, &err), &err);
    ck_assert_uint_eq(presto_dataset_records(dataset), 12);
    ck_assert_ptr_nonnull(strstr(presto_dataset_shard_path(dataset, 0), "tfds"));
    presto_dataset_free(dataset);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* As where a shell's pattern names them. An index alone is what was asked for: no records. */
START_TEST(an_index_beside_its_file_is_passed_over) {
    static const char *const names[] = {"train-00000", "train-00000-of-00002", "train-00000.index",
                                        "train-00001", "train-00001.idx",      "other.index"};
    enum { COUNT = sizeof names / sizeof names[0] };
    char *dir = presto_check_temp_dir();
    char *paths[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        paths[i] = strdup(path_in(dir, names[i]));
        if (strchr(names[i], '.') == NULL)
            write_records(paths[i], i + 1, PRESTO_FILE_PLAIN, false, NULL);
        else
            presto_check_write_file(paths[i], presto_span_of_text("not records"));
    }
    presto_dataset *dataset = NULL;
    const char *const *named = (const char *const *)paths;
    ck_assert_ok(presto_dataset_open(named, COUNT - 1, NULL, &dataset, &err), &err);
    ck_assert_uint_eq(presto_dataset_shard_count(dataset), 3);
    ck_assert_uint_eq(presto_dataset_records(dataset), 1 + 2 + 4);
    ck_assert_str_eq(presto_dataset_shard_path(dataset, 2), paths[3]);
    presto_dataset_free(dataset);
    ck_assert_status(presto_dataset_open(named, COUNT, NULL, &dataset, &err), PRESTO_ERR_FOREIGN,
                     &err);
    ck_assert_str_eq(err.file, paths[COUNT - 1]);
    for (size_t i = 0; i < COUNT; i++)
        free(paths[i]);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(what_holds_no_records_is_refused) {
    char *dir = presto_check_temp_dir();
    presto_dataset *dataset = NULL;
    const char *path = dir;
    ck_assert_status(presto_dataset_open(&path, 1, NULL, &dataset, &err), PRESTO_ERR_NOT_FOUND,
                     &err);
    ck_assert_str_eq(err.message, "no TFRecord files in this folder");
    presto_check_write_file(path_in(dir, "b"), presto_span_of_text("text"));
    presto_check_write_file(path_in(dir, "a.jpg"), presto_span_of_text("\xff\xd8\xff\xe0"));
    ck_assert_status(presto_dataset_open(&path, 1, NULL, &dataset, &err), PRESTO_ERR_NOT_FOUND,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.message, "no TFRecord files in this folder, but 2 others"));
    ck_assert_ptr_nonnull(strstr(err.message, "/a.jpg', a JPEG file"));
    path = "/no/such/path";
    ck_assert_status(presto_dataset_open(&path, 1, NULL, &dataset, &err), PRESTO_ERR_NOT_FOUND,
                     &err);
    ck_assert_status(presto_dataset_open(&path, 0, NULL, &dataset, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    /* Two datasets of ours below one folder. */
    char sub[1200];
    snprintf(sub, sizeof sub, "%s/train", dir);
    ck_assert_int_eq(mkdir(sub, 0777), 0);
    make_ours(sub);
    path = dir;
    ck_assert_status(presto_dataset_open(&path, 1, NULL, &dataset, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_str_eq(err.file, sub);
    const char *const twice[] = {sub, sub};
    ck_assert_status(presto_dataset_open(twice, 2, NULL, &dataset, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(more_shards_than_the_process_may_open_are_no_problem) {
    char *dir = presto_check_temp_dir();
    for (size_t i = 0; i < 100; i++) {
        char name[64];
        snprintf(name, sizeof name, "train-%05zu-of-00100", i);
        write_records(path_in(dir, name), 3, PRESTO_FILE_PLAIN, false, NULL);
    }
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 40;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    presto_dataset *dataset = open_one(dir);
    ck_assert_uint_eq(presto_dataset_records(dataset), 300);
    presto_block block = {0};
    for (uint64_t k = 0; k < 300; k++) {
        uint64_t record;
        size_t at = presto_dataset_locate(dataset, k * 151 % 300, &record);
        presto_shard *shard;
        ck_assert_ok(presto_dataset_shard_at(dataset, at, &shard, &err), &err);
        ck_assert_ok(presto_shard_fetch(shard, record, 1, &block, &err), &err);
    }
    presto_block_done(&block);
    presto_dataset_free(dataset);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(a_damaged_foreign_file_opens_if_damage_is_tolerated) {
    char *dir = presto_check_temp_dir();
    char *path = path_in(dir, "a.tfrecord");
    write_records(path, 10, PRESTO_FILE_PLAIN, false, NULL);
    size_t bytes;
    uint8_t *content = presto_check_read_file(path, &bytes);
    content[bytes / 10 * 4] ^= 1;
    presto_check_write_file(path, presto_span_of(content, bytes - 3));
    free(content);
    presto_dataset *dataset = NULL;
    const char *paths = dir;
    ck_assert_status(presto_dataset_open(&paths, 1, NULL, &dataset, &err), PRESTO_ERR_CORRUPT,
                     &err);
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    options.tolerate = true;
    ck_assert_ok(presto_dataset_open(&paths, 1, &options, &dataset, &err), &err);
    ck_assert_uint_ge(presto_dataset_records(dataset), 8);
    presto_shard *shard;
    ck_assert_ok(presto_dataset_shard_at(dataset, 0, &shard, &err), &err);
    ck_assert_uint_ge(presto__shard_lost_ranges(shard), 1);
    presto_dataset_free(dataset);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_dataset_of_ours_is_opened,
        a_shard_other_than_described_is_corrupt,
        folders_of_others_are_read,
        an_index_beside_its_file_is_passed_over,
        what_holds_no_records_is_refused,
        more_shards_than_the_process_may_open_are_no_problem,
        a_damaged_foreign_file_opens_if_damage_is_tolerated,
    };
    return presto_check_main("dataset", tests, sizeof tests / sizeof tests[0], 120);
}
