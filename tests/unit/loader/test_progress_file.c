/* SPDX-License-Identifier: Apache-2.0 */
/* The progress file of a conversion: what is written can be read; damage is reported. */
#define _XOPEN_SOURCE 700
#include "presto_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/convert_internal.h"

static char *dir;
static presto_error err;

static const char *path_of_file(void) {
    static char path[700];
    snprintf(path, sizeof path, "%s/%s", dir, PRESTO_PROGRESS_FILE);
    return path;
}

static void write_text(const char *text) {
    presto_check_write_file(path_of_file(), presto_span_of_text(text));
}

/* Three shards of five, the second of which left two samples out, one of them because of an error,
 * and a feature. */
static presto__progress_file make(void) {
    presto__progress_file progress = {.job = strdup("{\"codec\":\"none\",\"seed\":7}")};
    static const struct {
        size_t number;
        const char *file;
        uint64_t first, end, skipped, records;
    } shards[] = {
        {2, "b \"quoted\"", 20, 25, 1, 3}, {0, "a.tfrecord", 0, 10, 0, 10}, {4, "c", 30, 30, 0, 0}};
    for (size_t i = 0; i < 3; i++) {
        presto__whole_shard shard = {.number = shards[i].number,
                                     .first = shards[i].first,
                                     .end = shards[i].end,
                                     .skipped = shards[i].skipped,
                                     .described = {.records = shards[i].records,
                                                   .stored_bytes = 1000 + i,
                                                   .raw_bytes = UINT64_C(1) << 40,
                                                   .crc32c = UINT32_MAX}};
        ck_assert_ok(presto__progress_file_add(&progress, shards[i].file, &shard, &err), &err);
    }
    presto_feature feature = {.name = presto_span_of_text("image"),
                              .encoding = PRESTO_ENCODE_TENSOR};
    feature.tensor.spec =
        (presto_tensor_spec){.dtype = PRESTO_UINT8, .rank = 3, .dims = {-1, 40, 3}};
    presto_sample sample = {.features = &feature, .feature_count = 1};
    ck_assert_ok(presto__schema_merge_sample(&progress.schema, &sample, &err), &err);
    return progress;
}

static void set_up(void) {
    dir = presto_check_temp_dir();
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

START_TEST(what_is_written_is_read) {
    set_up();
    presto__progress_file written = make(), got = {0};
    ck_assert_uint_eq(presto__progress_file_next(&written), 30);
    ck_assert_uint_eq(presto__progress_file_samples(&written), 15);
    ck_assert_uint_eq(presto__progress_file_left_out(&written), 2);
    ck_assert_uint_eq(presto__progress_file_skipped(&written), 1);
    for (size_t i = 0; i < 3; i++) /* in order, however they came */
        ck_assert_uint_eq(written.shards[i].number, 2 * i);
    for (int sync = 0; sync < 2; sync++) {
        ck_assert_ok(presto__progress_file_write(dir, &written, sync, &err), &err);
        ck_assert_ok(presto__progress_file_read(dir, &got, &err), &err);
        ck_assert_uint_eq(got.shard_count, 3);
        for (size_t i = 0; i < 3; i++) {
            const presto__whole_shard *a = &written.shards[i], *b = &got.shards[i];
            ck_assert_str_eq(a->described.file, b->described.file);
            ck_assert_uint_eq(a->number, b->number);
            ck_assert_uint_eq(a->first, b->first);
            ck_assert_uint_eq(a->end, b->end);
            ck_assert_uint_eq(a->skipped, b->skipped);
            ck_assert_uint_eq(a->described.records, b->described.records);
            ck_assert_uint_eq(a->described.stored_bytes, b->described.stored_bytes);
            ck_assert_uint_eq(a->described.raw_bytes, b->described.raw_bytes);
            ck_assert_uint_eq(a->described.crc32c, b->described.crc32c);
        }
        ck_assert(presto__schema_equal(&written.schema, &got.schema));
        ck_assert_ok(presto__progress_file_compare(&got, written.job, &err), &err);
        ck_assert_status(
            presto__progress_file_compare(&got, "{\"codec\":\"none\",\"seed\":8}", &err),
            PRESTO_ERR_ARGUMENT, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "seed"));
        presto__progress_file_done(&got);
    }
    presto__progress_file_keep(&written, 1);
    ck_assert_uint_eq(presto__progress_file_next(&written), 10);
    ck_assert_uint_eq(presto__progress_file_left_out(&written), 0);
    ck_assert_uint_eq(presto__progress_file_skipped(&written), 0);
    presto__progress_file_keep(&written, 0);
    ck_assert_uint_eq(presto__progress_file_next(&written), 0);
    presto__progress_file_done(&written);
    tear_down();
}
END_TEST

START_TEST(no_file_is_not_found) {
    set_up();
    presto__progress_file got = {0};
    ck_assert_status(presto__progress_file_read(dir, &got, &err), PRESTO_ERR_NOT_FOUND, &err);
    tear_down();
}
END_TEST

START_TEST(a_long_list_is_not_written_after_each_shard) {
    presto__progress_file progress = {0};
    presto__whole_shard shard = {.end = 0};
    for (size_t i = 1; i <= 100; i++) {
        shard.number = i;
        ck_assert_ok(presto__progress_file_add(&progress, "a", &shard, &err), &err);
        ck_assert_int_eq(presto__progress_file_is_due(&progress, 0), i <= 64);
        ck_assert_int_eq(presto__progress_file_is_due(&progress, 999999999), i <= 64);
        ck_assert(presto__progress_file_is_due(&progress, 1000000000));
    }
    presto__progress_file_done(&progress);
}
END_TEST

static void check_refused(const char *text) {
    presto__progress_file got = {0};
    write_text(text);
    ck_assert_status(presto__progress_file_read(dir, &got, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_str_eq(err.file, path_of_file());
    ck_assert_ptr_null(got.shards);
    ck_assert_ptr_null(got.job);
}

#define FEATURE(encoding, dtype, rank, dims)                                                       \
    "{\"format\":4,\"job\":{},\"shards\":[],\"features\":[{\"name\":\"x\",\"encoding\":" encoding  \
    ",\"dtype\":" dtype ",\"rank\":" rank ",\"dims\":" dims "}]}"
#define SHARD_OF(number, first, end, skipped, records)                                             \
    "{\"number\":" number ",\"file\":\"a\",\"first\":" first ",\"end\":" end                       \
    ",\"skipped\":" skipped ",\"records\":" records                                                \
    ",\"stored_bytes\":1,\"raw_bytes\":1,\"crc32c\":1}"
#define SHARD(number, first, end, records) SHARD_OF(number, first, end, "0", records)
#define PACKED(end, skipped, sample, documents)                                                    \
    "{\"number\":0,\"file\":\"a\",\"first\":0,\"end\":" end ",\"skipped\":" skipped                \
    ",\"records\":1,\"stored_bytes\":1,\"raw_bytes\":1,\"crc32c\":1,"                              \
    "\"next\":{\"sample\":" sample ",\"token\":0,\"documents\":" documents ",\"tokens\":1}}"
#define FILE_OF(format, shards)                                                                    \
    "{\"format\":" format ",\"job\":{},\"shards\":[" shards "],\"features\":[]}"

START_TEST(what_cannot_be_is_refused) {
    set_up();
    presto__progress_file got = {0};
    write_text(FILE_OF("4", SHARD("0", "0", "5", "5") "," SHARD("3", "5", "5", "0") "," SHARD_OF(
                                "4", "7", "11", "3", "1")));
    ck_assert_ok(presto__progress_file_read(dir, &got, &err), &err);
    ck_assert_uint_eq(presto__progress_file_left_out(&got), 3);
    ck_assert_uint_eq(presto__progress_file_skipped(&got), 3);
    presto__progress_file_done(&got);
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        FILE_OF("3", ""),
        FILE_OF("5", ""),
        FILE_OF("\"4\"", ""),
        FILE_OF("4", "7"),
        FILE_OF("4", "{}"),
        "{\"format\":4,\"job\":7,\"shards\":[],\"features\":[]}",
        "{\"format\":4,\"job\":[],\"shards\":[],\"features\":[]}",
        "{\"format\":4,\"job\":{},\"shards\":7,\"features\":[]}",
        "{\"format\":4,\"job\":{},\"shards\":[],\"features\":{}}",
        "{\"format\":4,\"job\":{},\"job\":{},\"shards\":[],\"features\":[]}",
        FILE_OF("4", SHARD("0", "0", "5", "6")),
        FILE_OF("4", SHARD("0", "0", "5", "-1")),
        FILE_OF("4", SHARD("0", "0", "-1", "0")),
        FILE_OF("4", SHARD("0", "-1", "5", "5")),
        FILE_OF("4", SHARD("0", "5", "4", "0")),
        FILE_OF("4", SHARD("-1", "0", "5", "5")),
        FILE_OF("4", SHARD("9223372036854775807", "0", "5", "5")),
        FILE_OF("4", SHARD("0", "0", "5", "5") "," SHARD("1", "4", "6", "1")),
        FILE_OF("4", SHARD("0", "0", "5", "5") "," SHARD("0", "5", "6", "1")),
        FILE_OF("4", SHARD("1", "0", "5", "5") "," SHARD("0", "5", "6", "1")),
        FILE_OF("4", SHARD("0", "0", "5", "5") "," SHARD("1", "5", "6", "2")),
        FILE_OF("4", SHARD_OF("0", "0", "5", "3", "3")),
        FILE_OF("4", SHARD_OF("0", "0", "5", "-1", "3")),
        FILE_OF("4", SHARD_OF("0", "0", "5", "9223372036854775807", "5")),
        FILE_OF("4", PACKED("5", "3", "5", "3")),
        FILE_OF("4", PACKED("5", "-1", "5", "3")),
        FILE_OF("4", PACKED("5", "0", "4", "3")),
        "{\"format\":4,\"job\":{},\"shards\":[],\"features\":[{}]}",
        FEATURE("1", "1", "99", "[]"),
        FEATURE("1", "1", "2", "[1]"),
        FEATURE("1", "1", "-2", "[]"),
        FEATURE("5", "1", "0", "[]"),
        FEATURE("-1", "1", "0", "[]"),
        FEATURE("1", "11", "0", "[]"),
        FEATURE("1", "-1", "0", "[]"),
        FEATURE("3", "4", "2", "[7,-2]"),
        FEATURE("3", "4", "1", "[\"7\"]"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_refused(bad[i]);
    tear_down();
}
END_TEST

START_TEST(shards_behind_the_last_sample_are_refused) {
    set_up();
    presto__progress_file got = {0};
    static const char *const texts[] = {FILE_OF("4", SHARD("0", "0", "5", "5")),
                                        FILE_OF("4", PACKED("4", "2", "5", "3"))};
    for (int packed = 0; packed < 2; packed++) {
        write_text(texts[packed]);
        ck_assert_ok(presto__progress_file_read(dir, &got, &err), &err);
        ck_assert_ok(presto__progress_file_check_places(&got, packed, 5, &err), &err);
        ck_assert_status(presto__progress_file_check_places(&got, packed, 4, &err),
                         PRESTO_ERR_CORRUPT, &err);
        ck_assert_status(presto__progress_file_check_places(&got, !packed, 5, &err),
                         PRESTO_ERR_CORRUPT, &err);
        presto__progress_file_done(&got);
    }
    tear_down();
}
END_TEST

START_TEST(more_features_than_a_dataset_may_have_are_refused) {
    static const char start[] = "{\"format\":4,\"job\":{},\"shards\":[],\"features\":[";
    presto_buffer text = {0};
    ck_assert_ok(presto_buffer_append(&text, presto_span_of_text(start), &err), &err);
    for (int i = 0; i <= PRESTO_MAX_FEATURES; i++) {
        char item[128];
        snprintf(item, sizeof item,
                 "%s{\"name\":\"%d\",\"encoding\":1,\"dtype\":9,\"rank\":0,\"dims\":[]}",
                 i == 0 ? "" : ",", i);
        ck_assert_ok(presto_buffer_append(&text, presto_span_of_text(item), &err), &err);
    }
    ck_assert_ok(presto_buffer_append(&text, presto_span_of_text("]}"), &err), &err);
    presto__progress_file got = {0};
    ck_assert_status(presto__progress_file_parse(presto_buffer_span(&text), &got, &err),
                     PRESTO_ERR_CORRUPT, &err);
    presto__progress_file_done(&got);
    presto_buffer_done(&text);
}
END_TEST

START_TEST(a_file_cut_short_is_refused_and_flipped_bits_do_no_harm) {
    set_up();
    presto__progress_file written = make();
    ck_assert_ok(presto__progress_file_write(dir, &written, false, &err), &err);
    presto__progress_file_done(&written);
    size_t bytes;
    uint8_t *text = presto_check_read_file(path_of_file(), &bytes);
    for (size_t cut = 0; cut < bytes; cut++) {
        presto_check_write_file(path_of_file(), presto_span_of(text, cut));
        presto__progress_file got = {0};
        ck_assert_status(presto__progress_file_read(dir, &got, &err), PRESTO_ERR_CORRUPT, &err);
    }
    for (size_t bit = 0; bit < bytes * 8; bit++) {
        text[bit / 8] ^= (uint8_t)(1U << bit % 8);
        presto_check_write_file(path_of_file(), presto_span_of(text, bytes));
        text[bit / 8] ^= (uint8_t)(1U << bit % 8);
        presto__progress_file got = {0};
        presto_status status = presto__progress_file_read(dir, &got, &err);
        if (status < 0) {
            ck_assert_status(status, PRESTO_ERR_CORRUPT, &err);
        } else { /* whatever it contains is consistent */
            ck_assert_uint_le(presto__progress_file_left_out(&got),
                              presto__progress_file_samples(&got));
            ck_assert_uint_le(presto__progress_file_skipped(&got),
                              presto__progress_file_left_out(&got));
        }
        presto__progress_file_done(&got);
    }
    free(text);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_is_written_is_read,
        no_file_is_not_found,
        a_long_list_is_not_written_after_each_shard,
        what_cannot_be_is_refused,
        shards_behind_the_last_sample_are_refused,
        more_features_than_a_dataset_may_have_are_refused,
        a_file_cut_short_is_refused_and_flipped_bits_do_no_harm,
    };
    return presto_check_main("progress_file", tests, sizeof tests / sizeof tests[0], 120);
}
