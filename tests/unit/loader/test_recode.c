/* SPDX-License-Identifier: Apache-2.0 */
/* Storing a dataset again in every codec: the samples and their order stay, the description is
 * true. */
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/convert.h>
#include <presto/example.h>
#include <presto/inspect.h>

static presto_error err;

enum { RECORDS = 500, LABELS = 7 };

static void append_example(presto_buffer *out, size_t number) {
    uint8_t pixels[8 * 8 * 3];
    int64_t label = (int64_t)number % LABELS;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(number + i / 3 + i % 3 * 60);
    presto_feature features[] = {
        {presto_span_of_text("image"),
         PRESTO_ENCODE_TENSOR,
         {.spec = {PRESTO_UINT8, 3, {8, 8, 3}}, .data = pixels}},
        {presto_span_of_text("label"),
         PRESTO_ENCODE_INT64,
         {.spec = {PRESTO_INT64, 0, {0}}, .data = &label}},
    };
    presto_sample sample = {features, 2, 0};
    ck_assert_ok(presto_example_append(out, &sample, &err), &err);
}

static char *make_dataset(char *base) {
    static char dir[600];
    char path[800];
    snprintf(dir, sizeof dir, "%s/in", base);
    presto__shard_writer *writer;
    presto__shard_summary summary;
    presto_dataset_info info = {.shard_count = 1, .feature_count = 2, .label_count = LABELS};
    ck_assert_int_eq(mkdir(dir, 0777), 0);
    snprintf(path, sizeof path, "%s/data-00000-of-00001.tfrecord", dir);
    ck_assert_ok(presto__shard_writer_open(path, NULL, &writer, &err), &err);
    presto_buffer record = {0};
    for (size_t i = 0; i < RECORDS; i++) {
        record.bytes = 0;
        append_example(&record, i);
        ck_assert_ok(presto__shard_writer_append(writer, presto_buffer_span(&record), &err), &err);
    }
    presto_buffer_done(&record);
    ck_assert_ok(presto__shard_writer_finish(writer, &summary, &err), &err);
    presto__shard_writer_free(writer);
    info.shards = calloc(1, sizeof *info.shards);
    info.shards[0] = (presto_dataset_shard){.file = strdup("data-00000-of-00001.tfrecord"),
                                            .records = RECORDS,
                                            .stored_bytes = summary.stored_bytes,
                                            .raw_bytes = summary.payload_bytes,
                                            .crc32c = summary.crc32c};
    info.features = calloc(2, sizeof *info.features);
    info.features[0] =
        (presto_feature_spec){strdup("image"), PRESTO_ENCODE_TENSOR, {PRESTO_UINT8, 3, {8, 8, 3}}};
    info.features[1] =
        (presto_feature_spec){strdup("label"), PRESTO_ENCODE_INT64, {PRESTO_INT64, 0, {0}}};
    info.main_feature = strdup("image");
    info.stored = strdup("resized");
    static const char *const names[LABELS] = {"zero", "one", "two", "three", "four", "five", "six"};
    info.label_names = calloc(LABELS, sizeof *info.label_names);
    for (size_t i = 0; i < LABELS; i++)
        info.label_names[i] = strdup(names[i]);
    ck_assert_ok(presto__dataset_info_write(dir, &info, false, &err), &err);
    presto__dataset_info_free(&info);
    return dir;
}

static presto_status recode(const char *in, const char *out, const char *codec,
                            presto_file_compression compression, size_t shards) {
    presto_convert_options options;
    presto_convert_result result;
    presto_convert_options_defaults(&options);
    options.codec = codec;
    options.file_compression = compression;
    options.shards = shards;
    options.threads = 3;
    options.sync = false;
    options.dir = out;
    presto_status status = presto_convert(&in, 1, &options, &result, &err);
    if (status == PRESTO_OK)
        ck_assert_uint_eq(result.samples, RECORDS);
    return status;
}

static void check_records(presto_dataset *dataset) {
    presto_codec *codec;
    presto_arena arena = {0};
    presto_block block = {0};
    presto_buffer want = {0};
    ck_assert_ok(presto_codec_new(presto_dataset_codec(dataset), &codec, &err), &err);
    ck_assert_uint_eq(presto_dataset_records(dataset), RECORDS);
    for (uint64_t i = 0; i < RECORDS; i++) {
        uint64_t record;
        presto_shard *shard;
        presto_span raw;
        size_t at = presto_dataset_locate(dataset, i, &record);
        ck_assert_ok(presto_dataset_shard_at(dataset, at, &shard, &err), &err);
        ck_assert_ok(presto_shard_fetch(shard, record, 1, &block, &err), &err);
        ck_assert_ok(presto_codec_decompress(codec, block.records[0].payload,
                                             &(presto_codec_room){&arena, 1 << 20}, &raw, &err),
                     &err);
        want.bytes = 0;
        append_example(&want, i);
        ck_assert(presto_span_equal(raw, presto_buffer_span(&want)));
        presto_arena_reset(&arena);
    }
    presto_codec_free(codec);
    presto_arena_done(&arena);
    presto_block_done(&block);
    presto_buffer_done(&want);
}

START_TEST(every_codec_and_shard_count_keeps_the_samples) {
    static const struct {
        const char *codec;
        presto_file_compression compression;
        size_t shards;
        const char *stored;
    } cases[] = {
        {"none", PRESTO_FILE_PLAIN, 3, "none"},
        {"zstd:1", PRESTO_FILE_PLAIN, 0, "zstd:1"},
        {"zstd:3+dict", PRESTO_FILE_PLAIN, 7, "zstd+dict"},
        {"zstd+delta", PRESTO_FILE_PLAIN, 2, "zstd+delta3"},
        {"lz4", PRESTO_FILE_PLAIN, 1, "lz4"},
        {"gzip", PRESTO_FILE_PLAIN, 1, "gzip"},
        {"snappy", PRESTO_FILE_PLAIN, 500, "snappy"},
        {"blosc-lz4+bitshuffle", PRESTO_FILE_PLAIN, 4, "blosc-lz4+bitshuffle"},
        {NULL, PRESTO_FILE_GZIP, 2, "none"},
        {"lz4", PRESTO_FILE_ZLIB, 2, "lz4"},
    };
    char *base = presto_check_temp_dir();
    const char *in = make_dataset(base);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[700], again[700];
        presto_dataset *dataset;
        presto_verify_result result = {0};
        snprintf(out, sizeof out, "%s/out-%zu", base, i);
        snprintf(again, sizeof again, "%s/again-%zu", base, i);
        const char *out_path = out, *again_path = again;
        ck_assert_ok(recode(in, out, cases[i].codec, cases[i].compression, cases[i].shards), &err);
        ck_assert_ok(presto_dataset_open(&out_path, 1, NULL, &dataset, &err), &err);
        const presto_dataset_info *info = presto_dataset_get_info(dataset);
        ck_assert_str_eq(info->codec, cases[i].stored);
        ck_assert_int_eq(info->file_compression, cases[i].compression);
        ck_assert_uint_eq(info->shard_count, cases[i].shards != 0 ? cases[i].shards : 1);
        ck_assert_str_eq(info->stored, "resized");
        ck_assert_str_eq(info->label_names[0], "zero");
        ck_assert_uint_eq(info->feature_count, 2);
        check_records(dataset);
        presto_dataset_free(dataset);
        ck_assert_ok(presto_verify_paths(&out_path, 1, NULL, &result, &err), &err);
        ck_assert_uint_eq(result.faults, 0);
        ck_assert_uint_eq(result.records, RECORDS);
        presto_info seen;
        ck_assert_ok(presto_info_collect(&out_path, 1, NULL, &seen, &err), &err);
        ck_assert_uint_eq(seen.records, RECORDS);
        ck_assert_uint_eq(seen.feature_count, 2);
        ck_assert_int_eq(seen.features[0].spec.dims[2], 3);
        ck_assert(seen.raw_bytes_exact);
        presto_info_done(&seen);
        /* And back. */
        ck_assert_ok(recode(out, again, "none", PRESTO_FILE_PLAIN, 1), &err);
        ck_assert_ok(presto_dataset_open(&again_path, 1, NULL, &dataset, &err), &err);
        check_records(dataset);
        presto_dataset_free(dataset);
    }
    presto_check_remove_tree(base);
    free(base);
}
END_TEST

START_TEST(a_changed_shard_does_not_pass_for_the_one_described) {
    char *base = presto_check_temp_dir();
    const char *in = make_dataset(base);
    char path[800];
    snprintf(path, sizeof path, "%s/data-00000-of-00001.tfrecord", in);
    size_t bytes;
    uint8_t *content = presto_check_read_file(path, &bytes);
    /* Two records of equal size change places: every record is whole, the file is not the one
     * described. */
    size_t frame = bytes / RECORDS;
    uint8_t *swapped = presto_check_copy(presto_span_of(content, bytes));
    memcpy(swapped, content + frame, frame);
    memcpy(swapped + frame, content, frame);
    presto_check_write_file(path, presto_span_of(swapped, bytes));
    presto_verify_result result = {0};
    ck_assert_ok(presto_verify_paths(&in, 1, NULL, &result, &err), &err);
    ck_assert_uint_eq(result.faults_of[PRESTO_FAULT_MANIFEST], 1);
    presto_check_write_file(path, presto_span_of(content, bytes - frame));
    result = (presto_verify_result){0};
    ck_assert_ok(presto_verify_paths(&in, 1, NULL, &result, &err), &err);
    ck_assert_uint_eq(result.faults_of[PRESTO_FAULT_MANIFEST], 1);
    ck_assert_int_eq(unlink(path), 0);
    result = (presto_verify_result){0};
    ck_assert_ok(presto_verify_paths(&in, 1, NULL, &result, &err), &err);
    ck_assert_uint_eq(result.faults_of[PRESTO_FAULT_IO], 1);
    free(content);
    free(swapped);
    presto_check_remove_tree(base);
    free(base);
}
END_TEST

/* A TFRecord file of ours or of others: three records of `bytes` bytes each. */
static void write_foreign(const char *path, size_t bytes) {
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.write_index = options.sync = false;
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    uint8_t *record = calloc(bytes, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_ok(presto__shard_writer_append(writer, presto_span_of(record, bytes), &err),
                     &err);
    ck_assert_ok(presto__shard_writer_finish(writer, NULL, &err), &err);
    presto__shard_writer_free(writer);
    free(record);
}

static presto_status resume(const char *in, const char *out, presto_convert_result *result) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.resume = true;
    options.sync = false;
    options.dir = out;
    return presto_convert(&in, 1, &options, result, &err);
}

START_TEST(a_dataset_made_of_another_input_is_not_taken_for_this_one) {
    char *base = presto_check_temp_dir();
    char in[700], other[700], out[700];
    presto_convert_result result;
    snprintf(in, sizeof in, "%s/in.tfrecord", base);
    snprintf(other, sizeof other, "%s/other.tfrecord", base);
    snprintf(out, sizeof out, "%s/out", base);
    write_foreign(in, 20);
    write_foreign(other, 21);
    ck_assert_ok(resume(in, out, &result), &err);
    ck_assert_ok(resume(in, out, &result), &err);
    ck_assert_uint_eq(result.samples, 3);
    ck_assert_status(resume(other, out, &result), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_str_eq(err.message, "holds a whole dataset already, which differs in: input");
    ck_assert_str_eq(err.file, out);
    write_foreign(other, 20); /* not even other sizes */
    ck_assert_status(resume(other, out, &result), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ok(resume(in, out, &result), &err);
    /* Datasets of earlier versions do not say. */
    presto_dataset_info info = {0};
    ck_assert_ok(presto__dataset_info_read(out, &info, &err), &err);
    free(info.input);
    info.input = NULL;
    ck_assert_ok(presto__dataset_info_write(out, &info, false, &err), &err);
    presto__dataset_info_free(&info);
    ck_assert_ok(resume(in, out, &result), &err);
    ck_assert_uint_eq(result.samples, 3);
    presto_check_remove_tree(base);
    free(base);
}
END_TEST

START_TEST(a_folder_that_is_not_empty_is_refused) {
    char *base = presto_check_temp_dir();
    const char *in = make_dataset(base);
    ck_assert_status(recode(in, in, NULL, PRESTO_FILE_PLAIN, 0), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_str_eq(err.message, "holds a whole dataset already");
    char out[700];
    snprintf(out, sizeof out, "%s/out", base);
    ck_assert_status(recode(in, out, "zstd:99", PRESTO_FILE_PLAIN, 0), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_int_ne(access(out, F_OK), 0);
    presto_check_remove_tree(base);
    free(base);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_codec_and_shard_count_keeps_the_samples,
        a_changed_shard_does_not_pass_for_the_one_described,
        a_dataset_made_of_another_input_is_not_taken_for_this_one,
        a_folder_that_is_not_empty_is_refused,
    };
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    return presto_check_main("recode", tests, sizeof tests / sizeof tests[0], 120);
}
