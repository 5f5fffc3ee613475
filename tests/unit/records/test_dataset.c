/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: dataset.json written and read, refused when incomplete, and folders of other
 * programs. */
#include "presto_check.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/dataset.h>

#include "dataset/dataset_internal.h"

static presto_error err;

static char *text_of(const char *text) {
    return strdup(text);
}

static presto_dataset_info make_info(void) {
    presto_dataset_info info = {
        .pipeline_json = text_of("{\"name\":\"cv\",\"steps\":[{\"step\":\"read-file\"}]}"),
        .split = text_of("resized"),
        .main_feature = text_of("image"),
        .codec = text_of("zstd:1"),
        .input = text_of("fedcba9876543210"),
        .seed = UINT64_MAX,
        .feature_count = 3,
        .shard_count = 2,
        .label_count = 2,
    };
    info.features = calloc(3, sizeof *info.features);
    info.features[0] = (presto_feature_spec){
        text_of("image"), PRESTO_ENCODE_TENSOR, {PRESTO_UINT8, 3, {-1, 256, 3}}};
    info.features[1] =
        (presto_feature_spec){text_of("label"), PRESTO_ENCODE_INT64, {PRESTO_INT64, 0, {0}}};
    info.features[2] = (presto_feature_spec){
        text_of("any \"thing\"\n"), PRESTO_ENCODE_BYTES, {PRESTO_DTYPE_UNKNOWN, -1, {0}}};
    info.label_names = calloc(2, sizeof *info.label_names);
    info.label_names[0] = text_of("cat");
    info.label_names[1] = text_of("d\xc3\xb6g");
    info.shards = calloc(2, sizeof *info.shards);
    info.shards[0] = (presto_dataset_shard){.file = text_of("data-00000-of-00002.tfrecord"),
                                            .records = 10,
                                            .stored_bytes = 1000,
                                            .raw_bytes = 5000,
                                            .crc32c = 0x01234567};
    info.shards[1] = (presto_dataset_shard){.file = text_of("data-00001-of-00002.tfrecord"),
                                            .records = 11,
                                            .stored_bytes = 1100,
                                            .raw_bytes = (uint64_t)1 << 60,
                                            .crc32c = 0xffffffff};
    return info;
}

static char *path_in(const char *dir, const char *name) {
    static char path[2][1200];
    static int turn;
    turn ^= 1;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static void write_records(const char *path, size_t count, presto_file_compression compression,
                          bool index, presto_shard_summary *summary_out) {
    presto_shard_writer *writer;
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.compression = compression;
    options.write_index = index;
    options.sync = false;
    ck_assert_ok(presto_shard_writer_open(path, &options, &writer, &err), &err);
    for (size_t i = 0; i < count; i++) {
        char text[1100];
        snprintf(text, sizeof text, "%s %zu", path, i);
        ck_assert_ok(presto_shard_writer_append(writer, presto_span_of_text(text), &err), &err);
    }
    ck_assert_ok(presto_shard_writer_finish(writer, summary_out, &err), &err);
    presto_shard_writer_free(writer);
}

START_TEST(the_description_comes_back) {
    char *dir = presto_check_temp_dir();
    presto_dataset_info info = make_info(), got = {0};
    ck_assert_status(presto_dataset_info_read(dir, &got, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ok(presto_dataset_info_write(dir, &info, true, &err), &err);
    ck_assert_uint_eq(strlen(info.id), 16);
    ck_assert_ok(presto_dataset_info_read(dir, &got, &err), &err);
    ck_assert_str_eq(got.id, info.id);
    ck_assert_str_eq(got.pipeline_json, info.pipeline_json);
    ck_assert_str_eq(got.split, "resized");
    ck_assert_str_eq(got.main_feature, "image");
    ck_assert_str_eq(got.codec, "zstd:1");
    ck_assert_str_eq(got.input, "fedcba9876543210");
    ck_assert_ptr_null(got.dictionary_file);
    ck_assert_uint_eq(got.seed, UINT64_MAX);
    ck_assert_uint_eq(got.feature_count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(got.features[i].name, info.features[i].name);
        ck_assert_int_eq(got.features[i].encoding, info.features[i].encoding);
        ck_assert(presto_spec_equal(&got.features[i].spec, &info.features[i].spec));
    }
    ck_assert_uint_eq(got.label_count, 2);
    ck_assert_str_eq(got.label_names[1], "d\xc3\xb6g");
    ck_assert_uint_eq(got.shard_count, 2);
    ck_assert_str_eq(got.shards[1].file, "data-00001-of-00002.tfrecord");
    ck_assert_uint_eq(got.shards[1].raw_bytes, (uint64_t)1 << 60);
    ck_assert_uint_eq(got.shards[1].crc32c, 0xffffffff);
    ck_assert_ptr_nonnull(got.tool_version);
    presto_dataset_info_done(&got);
    char *id = text_of(info.id);
    info.shards[0].crc32c ^= 1;
    ck_assert_ok(presto_dataset_info_write(dir, &info, true, &err), &err);
    ck_assert_str_ne(id, info.id);
    free(id);
    presto_dataset_info_done(&info);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(the_least_description_will_do) {
    char *dir = presto_check_temp_dir();
    presto_dataset_info info = {0}, got = {0};
    ck_assert_ok(presto_dataset_info_write(dir, &info, true, &err), &err);
    ck_assert_ok(presto_dataset_info_read(dir, &got, &err), &err);
    ck_assert_str_eq(got.codec, "none");
    ck_assert_ptr_null(got.pipeline_json);
    ck_assert_ptr_null(got.label_names);
    ck_assert_ptr_null(got.input);
    presto_dataset_info_done(&got);
    info.pipeline_json = text_of("{not json");
    ck_assert_status(presto_dataset_info_write(dir, &info, true, &err), PRESTO_ERR_ARGUMENT, &err);
    presto_dataset_info_done(&info);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(a_cut_or_altered_description_is_corrupt) {
    char *dir = presto_check_temp_dir();
    presto_dataset_info info = make_info(), got = {0};
    ck_assert_ok(presto_dataset_info_write(dir, &info, true, &err), &err);
    presto_dataset_info_done(&info);
    size_t bytes;
    uint8_t *text = presto_check_read_file(path_in(dir, "dataset.json"), &bytes);
    for (size_t cut = 0; cut < bytes - 1; cut++) {
        uint8_t *copy = presto_check_copy(presto_span_of(text, cut));
        ck_assert_status(
            presto_dataset_info_parse(presto_span_of(copy, cut), "some/dataset.json", &got, &err),
            PRESTO_ERR_CORRUPT, &err);
        ck_assert_str_eq(err.file, "some/dataset.json");
        free(copy);
    }
    static const char *const changes[][2] = {
        {"\"presto-dataset\"", "\"other\""},
        {"\"version\": 1", "\"version\": 2"},
        {"\"records\": 10", "\"records\": 12"},
        {"\"records\": 10", "\"records\": -10"},
        {"\"records\": 10", "\"records\": \"x\""},
        {"\"records\": 10", "\"records\": 1e1"},
        {"data-00000", "../a-00000"},
        {"data-00000", "/data-0000"},
        {"data-00000", "a/../../00"},
        {"01234567", "0123456x"},
        {"01234567", "123"},
        {"\"uint8\"", "\"uint9\""},
        {"\"tensor\"", "\"matrix\""},
        {"256", "-2"},
        {"\"codec\": \"zstd:1\"", "\"codec\": null"},
        {"\"file_compression\": \"none\"", "\"file_compression\": \"lzma\""},
        {"\"split\"", "\"id\""},
        {"\"resized\"", "\"re\\u0000ed\""},
        {"fedcba9876543210", "fedcba987654321"},
        {"fedcba9876543210", "fedcba987654321G"},
        {"\"fedcba9876543210\"", "7"},
        {"\"label\"", "\"image\""}, /* twice */
        {"00001-of", "00000-of"},   /* the same shard twice */
        {"data-00000", "./ta-00000"},
        {"data-00000", "da//-00000"},
        {"\"cat\"", "\"c\\u0000at\""},
        {"\"cat\"", "\"c\\\\x00at\""},
        {"\"cat\"", "7"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        presto_buffer changed = {0};
        text[bytes - 1] = '\0';
        char *at = strstr((char *)text, changes[i][0]);
        ck_assert_msg(at != NULL, "no %s", changes[i][0]);
        size_t head = (size_t)(at - (char *)text);
        presto_buffer_append(&changed, presto_span_of(text, head), &err);
        presto_buffer_append(&changed, presto_span_of_text(changes[i][1]), &err);
        presto_buffer_append(&changed, presto_span_of_text(at + strlen(changes[i][0])), &err);
        presto_status status =
            presto_dataset_info_parse(presto_buffer_span(&changed), "f", &got, &err);
        ck_assert_msg(status == PRESTO_ERR_CORRUPT, "%s instead of %s gives %s", changes[i][1],
                      changes[i][0], presto_status_name(status));
        presto_buffer_done(&changed);
    }
    free(text);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* The message of a description of one shard of so many records and bytes, and `count` features. */
static const char *refusal(uint64_t records, uint64_t stored_bytes, const char *compression,
                           size_t count, presto_status wanted) {
    presto_buffer text = {0};
    presto_dataset_info info = {0};
    char piece[1000];
    snprintf(
        piece, sizeof piece,
        "{\"format\": \"presto-dataset\", \"version\": 1, \"id\": \"0\", \"codec\": \"none\", "
        "\"file_compression\": \"%s\", \"seed\": 0, \"totals\": {\"records\": \"%ju\", "
        "\"stored_bytes\": \"%ju\", \"raw_bytes\": 0}, \"shards\": [{\"file\": \"some-shard\", "
        "\"records\": \"%ju\", \"stored_bytes\": \"%ju\", \"raw_bytes\": 0, \"crc32c\": "
        "\"00000000\"}], \"features\": [",
        compression, (uintmax_t)records, (uintmax_t)stored_bytes, (uintmax_t)records,
        (uintmax_t)stored_bytes);
    presto_buffer_append(&text, presto_span_of_text(piece), &err);
    for (size_t i = 0; i < count; i++) {
        snprintf(
            piece, sizeof piece,
            "%s{\"name\": \"%zu\", \"dtype\": \"int64\", \"encoding\": \"int64\", \"shape\": []}",
            i > 0 ? "," : "", i);
        presto_buffer_append(&text, presto_span_of_text(piece), &err);
    }
    presto_buffer_append(&text, presto_span_of_text("]}"), &err);
    err.message[0] = '\0';
    presto_status status =
        presto_dataset_info_parse(presto_buffer_span(&text), "a/dataset.json", &info, &err);
    ck_assert_msg(status == wanted, "%ju records in %ju bytes: %s %s", (uintmax_t)records,
                  (uintmax_t)stored_bytes, presto_status_name(status), err.message);
    if (status < 0)
        ck_assert_str_eq(err.file, "a/dataset.json");
    presto_dataset_info_done(&info);
    presto_buffer_done(&text);
    return err.message;
}

START_TEST(more_records_than_the_bytes_hold_are_refused) {
    const char *said = refusal(UINT64_MAX, 480000, "none", 1, PRESTO_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(said, "'some-shard': 'records' is 18446744073709551615"));
    ck_assert_ptr_nonnull(strstr(said, "480000 'stored_bytes'"));
    refusal(0, 0, "none", 1, PRESTO_OK);
    refusal(1, 16, "none", 1, PRESTO_OK);
    refusal(1, 15, "none", 1, PRESTO_ERR_CORRUPT);
    refusal(1000, 16000, "none", 1, PRESTO_OK);
    refusal(1001, 16000, "none", 1, PRESTO_ERR_CORRUPT);
    /* A compressed file holds more, but not any number. */
    refusal(1000000, 16000, "gzip", 1, PRESTO_OK);
    refusal(2000000, 16000, "gzip", 1, PRESTO_ERR_CORRUPT);
    /* Whatever size is claimed, no count wraps around. */
    refusal(UINT64_MAX, UINT64_MAX, "none", 1, PRESTO_ERR_CORRUPT);
    refusal(UINT64_MAX, UINT64_MAX, "gzip", 1, PRESTO_ERR_CORRUPT);
    refusal(UINT64_MAX / 16, UINT64_MAX, "none", 1, PRESTO_ERR_CORRUPT);
    refusal((uint64_t)INT64_MAX / 16, UINT64_MAX, "zlib", 1, PRESTO_OK);
}
END_TEST

START_TEST(features_have_a_limit) {
    refusal(1, 16, "none", PRESTO_MAX_FEATURES, PRESTO_OK);
    const char *said = refusal(1, 16, "none", PRESTO_MAX_FEATURES + 1, PRESTO_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(said, "'features' lists 65537, more than 65536"));
}
END_TEST

/* "[", `piece` as often as it takes to `count`, "0]". */
static const char *list_refusal(const char *piece, size_t count) {
    static presto_error why;
    presto_buffer text = {0};
    presto_dataset_info info = {0};
    ck_assert_ok(presto_buffer_append(&text, presto_span_of_text("["), &err), &err);
    for (size_t i = 0; i < count; i++)
        ck_assert_ok(presto_buffer_append(&text, presto_span_of_text(piece), &err), &err);
    ck_assert_ok(presto_buffer_append(&text, presto_span_of_text("0]"), &err), &err);
    ck_assert_status(presto_dataset_info_parse(presto_buffer_span(&text), "x", &info, &why),
                     PRESTO_ERR_CORRUPT, &why);
    presto_buffer_done(&text);
    return why.message;
}

START_TEST(values_have_a_limit_before_they_are_parsed) {
    const size_t most = PRESTO__JSON_MAX_WEIGHT - 8; /* beside the list itself */
    ck_assert_ptr_nonnull(strstr(list_refusal("0,", most), "is not one of ours"));
    ck_assert_ptr_nonnull(
        strstr(list_refusal("0,", most + 1), "more values than any dataset needs"));
    ck_assert_ptr_nonnull(strstr(list_refusal("{},", most / 9), "is not one of ours"));
    ck_assert_ptr_nonnull(strstr(list_refusal("{},", most / 9 + 1), "more values"));
    ck_assert_ptr_nonnull(strstr(list_refusal("[],", most / 9 + 1), "more values"));
    char blanks[4097] = "";
    memset(blanks, ' ', sizeof blanks - 1);
    /* What stands in a text is no value. */
    ck_assert_ptr_nonnull(strstr(list_refusal("\"[{,\\\"[{,\",", most / 16), "is not one of ours"));
    ck_assert_ptr_nonnull(strstr(list_refusal(blanks, PRESTO__JSON_MAX_BYTES / 4096),
                                 "67108867 bytes, limit 67108864"));
}
END_TEST

/* A dataset of ours with shards of 5, 0, 7 records. */
static void make_ours(const char *dir) {
    static const size_t counts[] = {5, 0, 7};
    presto_dataset_info info = {.shard_count = 3};
    info.shards = calloc(3, sizeof *info.shards);
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        presto_shard_summary summary;
        snprintf(name, sizeof name, "data-%05zu-of-00003.tfrecord", i);
        write_records(path_in(dir, name), counts[i], PRESTO_FILE_PLAIN, true, &summary);
        info.shards[i] = (presto_dataset_shard){.file = text_of(name),
                                                .records = summary.records,
                                                .stored_bytes = summary.stored_bytes,
                                                .raw_bytes = summary.payload_bytes,
                                                .crc32c = summary.crc32c};
    }
    ck_assert_ok(presto_dataset_info_write(dir, &info, true, &err), &err);
    presto_dataset_info_done(&info);
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
        ck_assert_uint_eq(presto_dataset_shard_first(dataset, at) + record, number);
        presto_shard *shard;
        presto_block block = {0};
        ck_assert_ok(presto_dataset_shard_at(dataset, at, &shard, &err), &err);
        ck_assert_ok(presto_shard_fetch(shard, record, 1, &block, &err), &err);
        char text[1100];
        snprintf(text, sizeof text, "%s %d", presto_dataset_shard_path(dataset, at), (int)record);
        ck_assert(presto_span_is(block.records[0].payload, text));
        presto_block_done(&block);
    }
    ck_assert_uint_gt(presto_dataset_mean_bytes(dataset), 16);
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
    ck_assert_uint_eq(presto_dataset_shard_first(dataset, 1), 7);
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
    ck_assert_uint_ge(presto_shard_lost_ranges(shard), 1);
    presto_dataset_free(dataset);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_description_comes_back,
        the_least_description_will_do,
        a_cut_or_altered_description_is_corrupt,
        more_records_than_the_bytes_hold_are_refused,
        features_have_a_limit,
        values_have_a_limit_before_they_are_parsed,
        a_dataset_of_ours_is_opened,
        a_shard_other_than_described_is_corrupt,
        folders_of_others_are_read,
        what_holds_no_records_is_refused,
        more_shards_than_the_process_may_open_are_no_problem,
        a_damaged_foreign_file_opens_if_damage_is_tolerated,
    };
    return presto_check_main("dataset", tests, sizeof tests / sizeof tests[0], 120);
}
