/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation and every system call fails once, in writing, reading, opening, verifying and
 * repairing. Expected is a clean error (or none if the failure does no harm), no leak, and nothing
 * incomplete under a final name. Allocations inside the libraries do not fail: jansson, for one,
 * crashes if they do.
 */
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/example.h>
#include <presto/inspect.h>

#include "faults.h"

static presto_error err;

enum { RECORDS = 40 };

static char base[600];
static const char *const folders[] = {"plain", "gzip"};

static char *in_base(const char *name) {
    static char path[4][800];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", base, name);
    return path[turn];
}

/* ---- what is tried; each returns the status of its first failure ---- */

static presto_status append_records(presto__shard_writer *writer) {
    presto_status status = PRESTO_OK;
    presto_buffer record = {0};
    for (int64_t i = 0; i < RECORDS && status == PRESTO_OK; i++) {
        presto_feature feature = {presto_span_of_text("x"),
                                  PRESTO_ENCODE_INT64,
                                  {.spec = {PRESTO_INT64, 0, {0}}, .data = &i}};
        presto_sample sample = {&feature, 1, 0};
        record.bytes = 0;
        status = presto_example_append(&record, &sample, &err);
        if (status == PRESTO_OK)
            status = presto__shard_writer_append(writer, presto_buffer_span(&record), &err);
    }
    presto_buffer_done(&record);
    return status;
}

static presto_status write_shard(const char *path, presto_file_compression compression,
                                 presto__shard_summary *summary) {
    presto__shard_writer *writer = NULL;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.compression = compression;
    presto_status status = presto__shard_writer_open(path, &options, &writer, &err);
    if (status == PRESTO_OK)
        status = append_records(writer);
    if (status == PRESTO_OK)
        status = presto__shard_writer_finish(writer, summary, &err);
    presto__shard_writer_free(writer);
    return status;
}

static char written[800];

static presto_status try_write(void) {
    return write_shard(written, PRESTO_FILE_PLAIN, NULL);
}

static presto_status try_write_gzip(void) {
    return write_shard(written, PRESTO_FILE_GZIP, NULL);
}

static presto_status read_all(const char *folder) {
    const char *paths[] = {in_base(folder)};
    presto_dataset *dataset = NULL;
    presto_block block = {0};
    presto_arena arena = {0};
    presto_shard *shard;
    presto_sample sample;
    presto_status status = presto_dataset_open(paths, 1, NULL, &dataset, &err);
    if (status == PRESTO_OK)
        status = presto_dataset_shard_at(dataset, 0, &shard, &err);
    if (status == PRESTO_OK)
        status = presto_shard_fetch(shard, 0, RECORDS, &block, &err);
    for (size_t i = 0; i < block.record_count && status == PRESTO_OK; i++)
        status = presto_example_parse(block.records[i].payload, NULL, &arena, &sample, &err);
    presto_block_done(&block);
    presto_arena_done(&arena);
    presto_dataset_free(dataset);
    return status;
}

static presto_status try_read(void) {
    return read_all("plain");
}

static presto_status try_read_gzip(void) {
    return read_all("gzip");
}

/* A copy of the plain shard in which the length of a record in the middle is damaged. */
static void make_damaged(void) {
    uint8_t bytes[RECORDS * 64];
    FILE *file = fopen(in_base("plain/data.tfrecord"), "rb");
    ck_assert_ptr_nonnull(file);
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_lt(count, sizeof bytes);
    ck_assert_uint_eq(count % RECORDS, 0); /* all frames are of one size */
    bytes[count / 2] ^= 0xff;
    file = fopen(in_base("damaged.tfrecord"), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

/* If reading fails during the search for the next whole frame, the rest must not be reported as
 * damage. */
static presto_status try_read_damaged(void) {
    presto_shard_options options;
    presto_shard *shard = NULL;
    presto_shard_options_defaults(&options);
    options.tolerate = true;
    uint64_t lost = 0;
    presto_status status = presto_shard_open(in_base("damaged.tfrecord"), &options, &shard, &err);
    if (status == PRESTO_OK)
        status = presto_shard_index(shard, true, &lost, &err);
    if (status == PRESTO_OK && (lost != 1 || presto_shard_records(shard) != RECORDS))
        status = presto_fail(&err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%ju ranges, %ju records",
                             (uintmax_t)lost, (uintmax_t)presto_shard_records(shard));
    presto_shard_free(shard);
    return status;
}

static presto_status try_info(void) {
    const char *paths[] = {in_base("plain")};
    presto_info info = {0};
    presto_status status = presto_info_collect(paths, 1, NULL, &info, &err);
    presto_info_done(&info);
    return status;
}

static presto_status try_verify(void) {
    const char *paths[] = {in_base("plain")};
    presto_verify_result result = {0};
    presto_status status = presto_verify_paths(paths, 1, NULL, &result, &err);
    /* A read error is a fault, not a failure. */
    return status == PRESTO_OK && result.faults > 0
               ? presto_fail(&err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "faults")
               : status;
}

static presto_status try_repair(void) {
    return presto_repair_file(in_base("plain/data.tfrecord"), written, NULL, NULL, &err);
}

static presto_status try_codecs(void) {
    static const char *const texts[] = {"zlib", "gzip", "zstd", "lz4", "lz4hc", "blosc-lz4"};
    static const uint8_t data[5000] = {1, 2, 3};
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && status == PRESTO_OK; i++) {
        presto_codec_spec spec;
        presto_codec *codec = NULL;
        presto_buffer packed = {0};
        presto_arena arena = {0};
        presto_span out;
        status = presto_codec_parse(texts[i], &spec, &err);
        if (status == PRESTO_OK)
            status = presto_codec_new(&spec, &codec, &err);
        if (status == PRESTO_OK)
            status =
                presto__codec_compress(codec, presto_span_of(data, sizeof data), &packed, &err);
        if (status == PRESTO_OK)
            status = presto_codec_decompress(codec, presto_buffer_span(&packed),
                                             &(presto_codec_room){&arena, 1 << 20}, &out, &err);
        presto_codec_free(codec);
        presto_buffer_done(&packed);
        presto_arena_done(&arena);
    }
    return status;
}

/* ---- the loop ---- */

static size_t count_files(const char *dir) {
    size_t count = 0;
    DIR *open_dir = opendir(dir);
    if (open_dir == NULL)
        return 0;
    const struct dirent *entry;
    while ((entry = readdir(open_dir)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(open_dir);
    return count;
}

static void check_written(presto_status status) {
    char dir[800];
    snprintf(dir, sizeof dir, "%s/out", base);
    if (status < 0) {
        ck_assert_int_ne(access(written, F_OK), 0);
        return;
    }
    presto_verify_result result = {0};
    ck_assert_ok(presto_verify_paths(&(const char *){written}, 1, NULL, &result, &err), &err);
    ck_assert_uint_eq(result.records, RECORDS);
    ck_assert_uint_eq(result.faults, 0);
    presto_check_remove_tree(dir);
    ck_assert_int_eq(mkdir(dir, 0777), 0);
}

static void fail_each(presto_status (*attempt)(void), int kinds, void (*check)(presto_status)) {
    static const char partial[] = ".partial";
    char dir[800];
    snprintf(dir, sizeof dir, "%s/out", base);
    for (long k = 0;; k++) {
        ck_assert_msg(k < 100000, "no end of calls");
        faults_arm(kinds, k);
        presto_status status = attempt();
        bool fired = faults_disarm();
        if (status < 0) {
            ck_assert_msg(fired, "call %ld: fails by itself: %s", k, err.message);
            bool fair = status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_IO;
            ck_assert_msg(fair, "call %ld: %s: %s", k, presto_status_name(status), err.message);
            ck_assert_int_eq(err.status, status);
            ck_assert_int_ne(err.message[0], '\0');
        }
        if (check != NULL)
            check(status);
        if (status < 0)
            ck_assert_msg(count_files(dir) == 0, "call %ld leaves files behind%s", k, partial);
        if (!fired)
            break;
    }
}

static void make_inputs(void) {
    char *dir = presto_check_temp_dir();
    snprintf(base, sizeof base, "%s", dir);
    free(dir);
    snprintf(written, sizeof written, "%s/out/data.tfrecord", base);
    ck_assert_int_eq(mkdir(in_base("out"), 0777), 0);
    for (int i = 0; i < 2; i++) {
        presto__shard_summary summary;
        char path[900];
        char *folder = in_base(folders[i]);
        ck_assert_int_eq(mkdir(folder, 0777), 0);
        snprintf(path, sizeof path, "%s/data.tfrecord", folder);
        ck_assert_ok(write_shard(path, (presto_file_compression)i, &summary), &err);
        char name[] = "data.tfrecord", feature_name[] = "x";
        presto_dataset_shard shard = {.file = name,
                                      .records = summary.records,
                                      .stored_bytes = summary.stored_bytes,
                                      .raw_bytes = summary.payload_bytes,
                                      .crc32c = summary.crc32c};
        presto_feature_spec feature = {feature_name, PRESTO_ENCODE_INT64, {PRESTO_INT64, 0, {0}}};
        presto_dataset_info info = {.shards = &shard,
                                    .shard_count = 1,
                                    .features = &feature,
                                    .feature_count = 1,
                                    .file_compression = (presto_file_compression)i};
        ck_assert_ok(presto__dataset_info_write(folder, &info, true, &err), &err);
        free(info.id);
    }
}

static const int all_kinds[] = {FAULT_MEMORY, FAULT_READ, FAULT_WRITE, FAULT_OPEN, FAULT_CLOSE};

static void fail_everything(presto_status (*attempt)(void), void (*check)(presto_status)) {
    make_inputs();
    for (size_t i = 0; i < sizeof all_kinds / sizeof all_kinds[0]; i++)
        fail_each(attempt, all_kinds[i], check);
    presto_check_remove_tree(base);
}

START_TEST(writing_survives_every_failure) {
    fail_everything(try_write, check_written);
}
END_TEST

START_TEST(writing_gzip_survives_every_failure) {
    fail_everything(try_write_gzip, check_written);
}
END_TEST

START_TEST(reading_survives_every_failure) {
    fail_everything(try_read, NULL);
}
END_TEST

START_TEST(reading_gzip_survives_every_failure) {
    fail_everything(try_read_gzip, NULL);
}
END_TEST

START_TEST(reading_past_damage_survives_every_failure) {
    make_inputs();
    make_damaged();
    fail_each(try_read_damaged, FAULT_MEMORY, NULL);
    fail_each(try_read_damaged, FAULT_READ, NULL);
    fail_each(try_read_damaged, FAULT_OPEN, NULL);
    presto_check_remove_tree(base);
}
END_TEST

START_TEST(info_survives_every_failure) {
    fail_everything(try_info, NULL);
}
END_TEST

START_TEST(verify_survives_every_failure) {
    fail_everything(try_verify, NULL);
}
END_TEST

START_TEST(repair_survives_every_failure) {
    fail_everything(try_repair, check_written);
}
END_TEST

START_TEST(codecs_survive_every_failure) {
    fail_everything(try_codecs, NULL);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        writing_survives_every_failure,
        writing_gzip_survives_every_failure,
        reading_survives_every_failure,
        reading_gzip_survives_every_failure,
        reading_past_damage_survives_every_failure,
        info_survives_every_failure,
        verify_survives_every_failure,
        repair_survives_every_failure,
        codecs_survive_every_failure,
    };
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    return presto_check_main("faults", tests, sizeof tests / sizeof tests[0], 240);
}
