/* SPDX-License-Identifier: Apache-2.0 */
/* Verify, info and index: whole files, files that cannot be read, callbacks that stop. */
#define _DEFAULT_SOURCE /* wait4 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <presto/codec.h>
#include <presto/crc32c.h>
#include <presto/example.h>
#include <presto/inspect.h>

#include "../../../records/records_internal.h"
#include "folder_check.h"
#include "inspect/inspect_internal.h"
#include "inspect_check.h"

/* ---- verify beyond the framing ---- */

static bool keep_kind(void *user, const presto_fault *fault) {
    presto_fault_kind *kind = user;
    *kind = fault->kind;
    return true;
}

static presto_verify_result verify_kind(const char *path, presto_fault_kind *kind) {
    presto_verify_result result = {0};
    presto_verify_options options;
    presto_verify_options_defaults(&options);
    options.on_fault = keep_kind;
    options.user = kind;
    ck_assert_ok(presto_verify_paths(&(const char *){path}, 1, &options, &result, &err), &err);
    return result;
}

START_TEST(a_whole_file_has_no_faults_and_an_index_is_built_and_checked) {
    made_file file = make_file();
    presto_fault_kind kind = PRESTO_FAULT_IO;
    presto_check_write_file(file.path, presto_buffer_span(&file.bytes));
    presto_verify_result result = verify(file.path);
    ck_assert_uint_eq(result.faults, 0);
    ck_assert_uint_eq(result.records, RECORDS);
    ck_assert_uint_eq(result.bytes, file.bytes.bytes);
    ck_assert_uint_eq(result.payload_bytes, file.bytes.bytes - (size_t)RECORDS * 16);
    uint64_t records;
    ck_assert_ok(presto_index_build(file.path, &records, &err), &err);
    ck_assert_uint_eq(records, RECORDS);
    ck_assert_uint_eq(verify(file.path).faults, 0);
    char index[700];
    snprintf(index, sizeof index, "%s.index", file.path);
    size_t bytes;
    uint8_t *content = presto_check_read_file(index, &bytes);
    for (size_t at = 0; at < bytes; at++) {
        content[at] ^= 0x10;
        presto_check_write_file(index, presto_span_of(content, bytes));
        /* Bytes 8 to 11 are the version, whose change also breaks the header's CRC. */
        result = verify_kind(file.path, &kind);
        ck_assert_msg(result.faults == 1, "index byte %zu", at);
        ck_assert_int_eq(kind, PRESTO_FAULT_INDEX);
        content[at] ^= 0x10;
    }
    free(content);
    /* Stale: another file of the same name. */
    file.bytes.bytes = file.starts[RECORDS - 1];
    presto_check_write_file(file.path, presto_buffer_span(&file.bytes));
    result = verify_kind(file.path, &kind);
    ck_assert_uint_eq(result.faults, 1);
    ck_assert_int_eq(kind, PRESTO_FAULT_INDEX);
    drop_file(&file);
}
END_TEST

START_TEST(the_dali_index_has_a_line_a_record) {
    made_file file = make_file();
    char dali[700];
    snprintf(dali, sizeof dali, "%s/in.idx", file.dir);
    presto_check_write_file(file.path, presto_buffer_span(&file.bytes));
    ck_assert_ok(presto_index_write_dali(file.path, dali, &err), &err);
    FILE *in = fopen(dali, "r");
    for (size_t i = 0; i < RECORDS; i++) {
        unsigned long start, bytes;
        ck_assert_int_eq(fscanf(in, "%lu %lu\n", &start, &bytes), 2);
        ck_assert_uint_eq(start, file.starts[i]);
        ck_assert_uint_eq(bytes, frame(&file, i).bytes);
    }
    ck_assert_int_eq(fgetc(in), EOF);
    fclose(in);
    drop_file(&file);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_a_fault) {
    presto_fault_kind kind = PRESTO_FAULT_INDEX;
    char *dir = presto_check_temp_dir();
    ck_assert_int_eq(mkfifo(path_in(dir, "pipe"), 0666), 0);
    presto_verify_result result = verify_kind(path_in(dir, "pipe"), &kind);
    ck_assert_uint_eq(result.faults, 1);
    ck_assert_int_eq(kind, PRESTO_FAULT_IO);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

static bool stop_at_once(void *user, const presto_fault *fault) {
    (void)user;
    (void)fault;
    return false;
}

START_TEST(the_callback_can_stop_verification) {
    made_file file = make_file();
    presto_verify_options options;
    presto_verify_result result = {0};
    presto_verify_options_defaults(&options);
    options.on_fault = stop_at_once;
    file.bytes.data[0] ^= 1;
    file.bytes.data[file.starts[5]] ^= 1;
    presto_check_write_file(file.path, presto_buffer_span(&file.bytes));
    ck_assert_status(presto_verify_paths(&(const char *){file.path}, 1, &options, &result, &err),
                     PRESTO_ERR_STOPPED, &err);
    ck_assert_uint_eq(result.faults, 1);
    drop_file(&file);
}
END_TEST

/* ---- info ---- */

/* A presto_stop_fn: user counts down to the answer. */
static bool stop_at_zero(void *user) {
    unsigned *left = user;
    return *left == 0 || --*left == 0;
}

START_TEST(verification_and_repair_stop_within_damage_when_asked_to) {
    made_file file = make_file();
    /* Some MiB without a frame behind the first record: no callback but this one. */
    presto_buffer bytes = {0};
    ck_assert_ok(
        presto_buffer_append(&bytes, presto_span_of(file.bytes.data, file.starts[1]), &err), &err);
    ck_assert_ok(presto_buffer_reserve(&bytes, (size_t)8 << 20, &err), &err);
    memset(bytes.data + bytes.bytes, 0xa5, (size_t)8 << 20);
    bytes.bytes += (size_t)8 << 20;
    presto_check_write_file(file.path, presto_buffer_span(&bytes));
    for (unsigned asked = 1; asked < 9; asked++) {
        unsigned left = asked;
        presto_verify_result result = {0};
        presto_verify_options options;
        presto_verify_options_defaults(&options);
        options.should_stop = stop_at_zero;
        options.should_stop_user = &left;
        ck_assert_status(
            presto_verify_paths(&(const char *){file.path}, 1, &options, &result, &err),
            PRESTO_ERR_STOPPED, &err);
        ck_assert_uint_eq(left, 0);
        left = asked;
        const presto_repair_options repairing = {.struct_bytes = sizeof repairing,
                                                 .should_stop = stop_at_zero,
                                                 .should_stop_user = &left};
        ck_assert_status(presto_repair_file(file.path, file.out, &repairing, NULL, &err),
                         PRESTO_ERR_STOPPED, &err);
        ck_assert_int_ne(access(file.out, F_OK), 0);
    }
    presto_buffer_done(&bytes);
    drop_file(&file);
}
END_TEST

START_TEST(info_tells_counts_sizes_codec_and_features) {
    made_file file = make_file();
    presto_check_write_file(file.path, presto_buffer_span(&file.bytes));
    const char *paths[] = {file.path};
    presto_info info;
    ck_assert_ok(presto_info_collect(paths, 1, NULL, &info, &err), &err);
    ck_assert_uint_eq(info.file_count, 1);
    ck_assert_uint_eq(info.records, RECORDS);
    ck_assert_uint_eq(info.stored_bytes, file.bytes.bytes);
    ck_assert_uint_eq(info.payload_bytes, file.bytes.bytes - (size_t)RECORDS * 16);
    ck_assert_uint_eq(info.raw_bytes, info.payload_bytes);
    ck_assert(info.raw_bytes_exact);
    ck_assert_str_eq(info.codec, "none");
    ck_assert_str_eq(info.record_kind, "Example");
    ck_assert_uint_eq(info.least_bytes, 0);
    ck_assert_uint_gt(info.median_bytes, 40);
    ck_assert_uint_eq(info.size_classes[0], 4);
    ck_assert_uint_eq(info.sampled, RECORDS);
    ck_assert_uint_eq(info.feature_count, 2);
    ck_assert_str_eq(info.features[0].name, "image");
    ck_assert_int_eq(info.features[0].encoding, PRESTO_ENCODE_TENSOR);
    ck_assert_int_eq(info.features[0].spec.dtype, PRESTO_UINT8);
    ck_assert_int_eq(info.features[0].spec.dims[0], -1);
    ck_assert_uint_eq(info.features[0].seen, RECORDS - 4);
    ck_assert_str_eq(info.features[1].name, "label");
    ck_assert_int_eq(info.features[1].encoding, PRESTO_ENCODE_INT64);
    ck_assert_int_eq(info.features[1].spec.rank, 0);
    presto_info_done(&info);
    /* Damage is counted, not fatal. */
    file.bytes.data[file.starts[9]] ^= 1;
    presto_check_write_file(file.path, presto_buffer_span(&file.bytes));
    ck_assert_ok(presto_info_collect(paths, 1, NULL, &info, &err), &err);
    ck_assert_uint_eq(info.records, RECORDS - 1);
    ck_assert_uint_eq(info.files[0].lost_ranges, 1);
    presto_info_done(&info);
    drop_file(&file);
}
END_TEST

START_TEST(contents_are_named_by_their_signature) {
    static const struct {
        const char *bytes;
        size_t count;
        const char *name;
    } contents[] = {
        {"\xff\xd8\xff\xe0", 4, "jpeg"},
        {"\x89PNG\r\n\x1a\n", 8, "png"},
        {"RIFF\0\0\0\0WEBPVP8 ", 16, "webp"},
        {"RIFF\0\0\0\0WAVEfmt ", 16, "wav"},
        {"fLaC\0", 5, "flac"},
        {"ID3\x04", 4, "mp3"},
        {"\xff\xfb\x90\x44", 4, "mp3"},
        {"plain text,\nno more", 19, "text"},
        {"gr\xc3\xbc\xc3\x9f", 6, "text"},
        {"\x01\x02", 2, NULL},
        {"\xc3", 1, NULL},
        {"\xff\xff\xff\xff", 4, NULL},
        {"", 0, NULL},
    };
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        uint8_t *copy = presto_check_copy(presto_span_of(contents[i].bytes, contents[i].count));
        const char *name = presto__content_name(presto_span_of(copy, contents[i].count));
        if (contents[i].name == NULL)
            ck_assert_ptr_null(name);
        else
            ck_assert_str_eq(name != NULL ? name : "nothing", contents[i].name);
        free(copy);
    }
}
END_TEST

/* ---- memory ---- */

START_TEST(guessing_the_codec_takes_the_memory_of_one_record) {
    enum { COUNT = 16, BYTES = 1 << 20 };
    presto_codec_spec spec;
    presto_codec *codec;
    presto_buffer stored = {0};
    presto_arena arena = {0};
    presto_span payloads[COUNT];
    if (presto_codec_parse("snappy", &spec, &err) == PRESTO_ERR_UNSUPPORTED)
        return;
    uint8_t *zeros = calloc(1, BYTES); /* no Example, so each record is tried */
    ck_assert_ok(presto_codec_new(&spec, &codec, &err), &err);
    ck_assert_ok(presto__codec_compress(codec, presto_span_of(zeros, BYTES), &stored, &err), &err);
    for (size_t i = 0; i < COUNT; i++)
        payloads[i] = presto_buffer_span(&stored);
    ck_assert_ok(presto__guess_codec(payloads, COUNT, &arena, &spec, &err), &err);
    char text[PRESTO_CODEC_TEXT_BYTES];
    ck_assert_str_eq(presto__codec_format(&spec, text), "none");
    ck_assert_uint_ge(arena.total_bytes, BYTES);
    ck_assert_uint_lt(arena.total_bytes, (size_t)3 * BYTES);
    presto_arena_done(&arena);
    presto_buffer_done(&stored);
    presto_codec_free(codec);
    free(zeros);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which need their own */

enum { LARGE_RECORDS = 16, LARGE_BYTES = 12 << 20 };

/* Records of zeros, which take no room on the disk. */
static void write_large(const char *path) {
    uint8_t header[PRESTO_FRAME_HEADER_BYTES], footer[PRESTO_FRAME_FOOTER_BYTES];
    uint8_t *zeros = calloc(1, LARGE_BYTES);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    presto__frame_write_header(LARGE_BYTES, header);
    presto__frame_write_footer(presto_span_of(zeros, LARGE_BYTES), footer);
    free(zeros);
    for (int i = 0; i < LARGE_RECORDS; i++) {
        ck_assert_int_eq(write(fd, header, sizeof header), (ssize_t)sizeof header);
        ck_assert_int_ge(lseek(fd, LARGE_BYTES, SEEK_CUR), 0);
        ck_assert_int_eq(write(fd, footer, sizeof footer), (ssize_t)sizeof footer);
    }
    ck_assert_int_eq(close(fd), 0);
}

static void verify_large(const char *path) {
    presto_verify_result result = verify(path);
    ck_assert_uint_eq(result.records, LARGE_RECORDS);
    ck_assert_uint_eq(result.faults, 0);
}

static void collect_large(const char *path) {
    presto_info info;
    ck_assert_ok(presto_info_collect(&path, 1, NULL, &info, &err), &err);
    ck_assert_uint_eq(info.sampled, LARGE_RECORDS);
    ck_assert_str_eq(info.codec, "none");
    ck_assert_str_eq(info.record_kind, "bytes");
    presto_info_done(&info);
}

START_TEST(verify_and_info_hold_a_few_large_records_at_a_time) {
    void (*const works[])(const char *path) = {verify_large, collect_large};
    char *dir = presto_check_temp_dir(), path[600];
    snprintf(path, sizeof path, "%s/large.tfrecord", dir);
    write_large(path);
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        int status = -1;
        struct rusage usage;
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            works[i](path);
            _exit(0);
        }
        ck_assert_int_eq(wait4(child, &status, 0, &usage), child);
        ck_assert_int_eq(status, 0);
        ck_assert_int_lt(usage.ru_maxrss, LARGE_RECORDS * LARGE_BYTES / 2 / 1024);
    }
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

#endif

int main(void) {
    const TTest *const tests[] = {
        a_whole_file_has_no_faults_and_an_index_is_built_and_checked,
        the_dali_index_has_a_line_a_record,
        a_file_that_cannot_be_read_is_a_fault,
        the_callback_can_stop_verification,
        verification_and_repair_stop_within_damage_when_asked_to,
        info_tells_counts_sizes_codec_and_features,
        contents_are_named_by_their_signature,
        guessing_the_codec_takes_the_memory_of_one_record,
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        verify_and_info_hold_a_few_large_records_at_a_time,
#endif
    };
    return presto_check_main("inspect", tests, sizeof tests / sizeof tests[0], 240);
}
