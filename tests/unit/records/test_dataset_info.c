/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.json written and read, and refused when incomplete, altered or too large. */
#include "../../../records/records_internal.h"
#include "folder_check.h"

#include <stdio.h>

#include <presto/dataset.h>

#include "dataset/dataset_internal.h"

static presto_error err;

static presto_dataset_info make_info(void) {
    presto_dataset_info info = {
        .pipeline_json = strdup("{\"name\":\"cv\",\"steps\":[{\"step\":\"read-file\"}]}"),
        .stored = strdup("resized"),
        .main_feature = strdup("image"),
        .codec = strdup("zstd:1"),
        .input = strdup("fedcba9876543210"),
        .seed = UINT64_MAX,
        .feature_count = 3,
        .shard_count = 2,
        .label_count = 2,
    };
    info.features = calloc(3, sizeof *info.features);
    info.features[0] = (presto_feature_spec){
        strdup("image"), PRESTO_ENCODE_TENSOR, {PRESTO_UINT8, 3, {-1, 256, 3}}};
    info.features[1] =
        (presto_feature_spec){strdup("label"), PRESTO_ENCODE_INT64, {PRESTO_INT64, 0, {0}}};
    info.features[2] = (presto_feature_spec){
        strdup("any \"thing\"\n"), PRESTO_ENCODE_BYTES, {PRESTO_DTYPE_UNKNOWN, -1, {0}}};
    info.label_names = calloc(2, sizeof *info.label_names);
    info.label_names[0] = strdup("cat");
    info.label_names[1] = strdup("d\xc3\xb6g");
    info.shards = calloc(2, sizeof *info.shards);
    info.shards[0] = (presto_dataset_shard){.file = strdup("data-00000-of-00002.tfrecord"),
                                            .records = 10,
                                            .stored_bytes = 1000,
                                            .raw_bytes = 5000,
                                            .crc32c = 0x01234567};
    info.shards[1] = (presto_dataset_shard){.file = strdup("data-00001-of-00002.tfrecord"),
                                            .records = 11,
                                            .stored_bytes = 1100,
                                            .raw_bytes = (uint64_t)1 << 60,
                                            .crc32c = 0xffffffff};
    return info;
}

START_TEST(the_description_comes_back) {
    char *dir = presto_check_temp_dir();
    presto_dataset_info info = make_info(), got = {0};
    ck_assert_status(presto__dataset_info_read(dir, &got, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ok(presto__dataset_info_write(dir, &info, true, &err), &err);
    ck_assert_uint_eq(strlen(info.id), 16);
    ck_assert_ok(presto__dataset_info_read(dir, &got, &err), &err);
    ck_assert_str_eq(got.id, info.id);
    ck_assert_str_eq(got.pipeline_json, info.pipeline_json);
    ck_assert_str_eq(got.stored, "resized");
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
    presto__dataset_info_free(&got);
    char *id = strdup(info.id);
    info.shards[0].crc32c ^= 1;
    ck_assert_ok(presto__dataset_info_write(dir, &info, true, &err), &err);
    ck_assert_str_ne(id, info.id);
    free(id);
    presto__dataset_info_free(&info);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(the_least_description_will_do) {
    char *dir = presto_check_temp_dir();
    presto_dataset_info info = {0}, got = {0};
    ck_assert_ok(presto__dataset_info_write(dir, &info, true, &err), &err);
    ck_assert_ok(presto__dataset_info_read(dir, &got, &err), &err);
    ck_assert_str_eq(got.codec, "none");
    ck_assert_ptr_null(got.pipeline_json);
    ck_assert_ptr_null(got.label_names);
    ck_assert_ptr_null(got.input);
    presto__dataset_info_free(&got);
    info.pipeline_json = strdup("{not json");
    ck_assert_status(presto__dataset_info_write(dir, &info, true, &err), PRESTO_ERR_ARGUMENT, &err);
    presto__dataset_info_free(&info);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(a_cut_or_altered_description_is_corrupt) {
    char *dir = presto_check_temp_dir();
    presto_dataset_info info = make_info(), got = {0};
    ck_assert_ok(presto__dataset_info_write(dir, &info, true, &err), &err);
    presto__dataset_info_free(&info);
    size_t bytes;
    uint8_t *text = presto_check_read_file(path_in(dir, "dataset.json"), &bytes);
    for (size_t cut = 0; cut < bytes - 1; cut++) {
        uint8_t *copy = presto_check_copy(presto_span_of(text, cut));
        ck_assert_status(
            presto__dataset_info_parse(presto_span_of(copy, cut), "some/dataset.json", &got, &err),
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
        {"\"split\": \"resized\"", "\"split\": \"decoded\""}, /* not as `stored` */
        {"\"split\": \"resized\"", "\"split\": 7"},
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
            presto__dataset_info_parse(presto_buffer_span(&changed), "f", &got, &err);
        ck_assert_msg(status == PRESTO_ERR_CORRUPT, "%s instead of %s gives %s", changes[i][1],
                      changes[i][0], presto_status_name(status));
        presto_buffer_done(&changed);
    }
    free(text);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* What is stored according to the least description with this key and value. Free it. */
static char *stored_by(const char *names) {
    char text[400];
    presto_dataset_info got = {0};
    snprintf(text, sizeof text,
             "{\"format\": \"presto-dataset\", \"version\": 1, \"id\": \"0\", \"codec\": \"none\", "
             "\"file_compression\": \"none\", \"seed\": 0, \"totals\": {\"records\": 0, "
             "\"stored_bytes\": 0, \"raw_bytes\": 0}, \"shards\": [], \"features\": [], %s}",
             names);
    ck_assert_ok(presto__dataset_info_parse(presto_span_of_text(text), "f", &got, &err), &err);
    char *stored = got.stored == NULL ? NULL : strdup(got.stored);
    presto__dataset_info_free(&got);
    return stored;
}

START_TEST(what_is_stored_has_its_name_and_the_one_before) {
    static const char *const names[] = {"\"stored\": \"resized\"", "\"split\": \"resized\"",
                                        "\"stored\": \"resized\", \"split\": \"resized\"",
                                        "\"stored\": null, \"split\": \"resized\"",
                                        "\"stored\": \"resized\", \"split\": null"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *stored = stored_by(names[i]);
        ck_assert_pstr_eq(stored, "resized");
        free(stored);
    }
    ck_assert_ptr_null(stored_by("\"stored\": null, \"split\": null"));

    char *dir = presto_check_temp_dir();
    presto_dataset_info info = make_info();
    size_t bytes;
    ck_assert_ok(presto__dataset_info_write(dir, &info, true, &err), &err);
    uint8_t *text = presto_check_read_file(path_in(dir, "dataset.json"), &bytes);
    text[bytes - 1] = '\0';
    ck_assert_ptr_nonnull(strstr((char *)text, "\"stored\": \"resized\""));
    ck_assert_ptr_nonnull(strstr((char *)text, "\"split\": \"resized\""));
    free(text);
    presto__dataset_info_free(&info);
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
        presto__dataset_info_parse(presto_buffer_span(&text), "a/dataset.json", &info, &err);
    ck_assert_msg(status == wanted, "%ju records in %ju bytes: %s %s", (uintmax_t)records,
                  (uintmax_t)stored_bytes, presto_status_name(status), err.message);
    if (status < 0)
        ck_assert_str_eq(err.file, "a/dataset.json");
    presto__dataset_info_free(&info);
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
    ck_assert_status(presto__dataset_info_parse(presto_buffer_span(&text), "x", &info, &why),
                     PRESTO_ERR_CORRUPT, &why);
    presto_buffer_done(&text);
    return why.message;
}

START_TEST(values_have_a_limit_before_they_are_parsed) {
    const size_t most = PRESTO__JSON_MAX_WEIGHT - 8; /* beside the list itself */
    ck_assert_ptr_nonnull(strstr(list_refusal("0,", most), "is not one of ours"));
    ck_assert_ptr_nonnull(
        strstr(list_refusal("0,", most + 1), "more values than such a file needs"));
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

int main(void) {
    const TTest *const tests[] = {
        the_description_comes_back,
        the_least_description_will_do,
        a_cut_or_altered_description_is_corrupt,
        what_is_stored_has_its_name_and_the_one_before,
        more_records_than_the_bytes_hold_are_refused,
        features_have_a_limit,
        values_have_a_limit_before_they_are_parsed,
    };
    return presto_check_main("dataset_info", tests, sizeof tests / sizeof tests[0], 120);
}
