/* SPDX-License-Identifier: Apache-2.0 */
/* Shards read in every way of reading, indexes fresh and stale, damage. */
#define _GNU_SOURCE /* syscall */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <presto/shard.h>

#include "../../../records/records_internal.h"
#include "shard/shard_internal.h"

#include "shard_check.h"

/* ---- tests ---- */

START_TEST(what_was_written_is_read_by_pread_and_mmap_with_and_without_index) {
    made_file file = make_file("data.tfrecord", 300, 3000, NULL);
    for (int ways = 0; ways < 4; ways++)
        check_all(&file, (ways & 1) != 0, (ways & 2) != 0);
    drop_file(&file);
}
END_TEST

START_TEST(large_records_are_read_in_pieces) {
    made_file file = make_file("data.tfrecord", 20, 900000, NULL);
    for (int ways = 0; ways < 4; ways++)
        check_all(&file, (ways & 1) != 0, (ways & 2) != 0);
    drop_file(&file);
}
END_TEST

START_TEST(whole_file_gzip_and_zlib_are_written_and_read) {
    for (int kind = PRESTO_FILE_GZIP; kind <= PRESTO_FILE_ZLIB; kind++) {
        presto__shard_writer_options options;
        presto__shard_writer_options_defaults(&options);
        options.compression = (presto_file_compression)kind;
        made_file file = make_file("data.tfrecord.z", 300, 30000, &options);
        presto_shard *shard = open_shard(file.path, false, false);
        ck_assert_int_eq(presto__shard_compression(shard), kind);
        presto_shard_free(shard);
        check_all(&file, false, false);
        check_all(&file, true, true);
        drop_file(&file);
    }
}
END_TEST

START_TEST(a_file_without_records_is_a_file) {
    for (int kind = PRESTO_FILE_PLAIN; kind <= PRESTO_FILE_ZLIB; kind++) {
        presto__shard_writer_options options;
        presto__shard_writer_options_defaults(&options);
        options.compression = (presto_file_compression)kind;
        made_file file = make_file("empty.tfrecord", 0, 1, &options);
        for (int ways = 0; ways < 4; ways++)
            check_all(&file, (ways & 1) != 0, (ways & 2) != 0);
        drop_file(&file);
    }
}
END_TEST

START_TEST(a_stale_or_damaged_index_is_not_used) {
    made_file file = make_file("data.tfrecord", 50, 1000, NULL);
    char index[700];
    size_t bytes;
    index_path(&file, index, sizeof index);
    uint8_t *content = presto_check_read_file(index, &bytes);
    presto_block block = {0};
    /* Each of the header's bytes, the ends, a cut. */
    for (size_t at = 0; at < bytes; at += at < 80 ? 1 : 97) {
        content[at] ^= 0x41;
        presto_check_write_file(index, presto_span_of(content, bytes));
        presto_shard *shard = open_shard(file.path, false, false);
        ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
        if (at < 80)
            ck_assert(!presto__shard_has_index_file(shard));
        presto_status status = presto_shard_fetch(shard, 0, 1, &block, &err);
        ck_assert(status == PRESTO_OK || status == PRESTO_ERR_CORRUPT);
        presto_shard_free(shard);
        content[at] ^= 0x41;
    }
    for (size_t cut = 0; cut < bytes; cut += 31) {
        presto_check_write_file(index, presto_span_of(content, cut));
        presto_shard *shard = open_shard(file.path, false, false);
        check_range(shard, &file, 0, 50, &block);
        ck_assert(!presto__shard_has_index_file(shard));
        presto_shard_free(shard);
    }
    presto_check_write_file(index, presto_span_of(content, bytes));
    check_all(&file, false, false);
    presto_block_done(&block);
    free(content);
    drop_file(&file);
}
END_TEST

START_TEST(a_damaged_record_leaves_the_others_readable) {
    made_file file = make_file("data.tfrecord", 60, 2000, NULL);
    presto_shard *shard = open_shard(file.path, false, false);
    presto_block block = {0};
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    uint64_t at = offset_of(shard, 33);
    ck_assert_uint_gt(file.sizes[33], 0);
    int fd = open(file.path, O_RDWR);
    uint8_t byte;
    ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at + 12), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at + 12), 1);
    for (int ways = 0; ways < 2; ways++) {
        presto_shard *damaged = open_shard(file.path, ways == 1, false);
        ck_assert_ok(presto_shard_fetch(damaged, 0, 60, &block, &err), &err);
        for (size_t i = 0; i < 60; i++) {
            ck_assert_int_eq(block.records[i].status, i == 33 ? PRESTO_ERR_CORRUPT : PRESTO_OK);
            ck_assert_uint_eq(block.records[i].payload.bytes, i == 33 ? 0 : file.sizes[i]);
        }
        ck_assert_uint_eq(err.record, 33);
        ck_assert_uint_eq(err.offset, at);
        ck_assert_str_eq(err.file, file.path);
        presto_shard_free(damaged);
    }
    /* A damaged header: the pass over the headers stops there, or finds the next whole record. */
    ck_assert_int_eq(pwrite(fd, "?", 1, (off_t)at + 3), 1);
    close(fd);
    presto_shard *strict = open_shard(file.path, false, true);
    ck_assert_status(presto_shard_index(strict, false, NULL, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_uint_eq(err.record, 33);
    uint64_t lost;
    ck_assert_ok(presto_shard_index(strict, true, &lost, &err), &err);
    ck_assert_uint_eq(lost, 1);
    ck_assert_uint_eq(presto_shard_records(strict), 60);
    for (size_t first = 0; first < 60; first += 20) {
        ck_assert_ok(presto_shard_fetch(strict, first, 20, &block, &err), &err);
        ck_assert_uint_eq(block.record_count, 20);
        for (size_t i = 0; i < 20; i++) {
            presto_span want = payload(&file, first + i);
            presto_status status = first + i == 33 ? PRESTO_ERR_CORRUPT : PRESTO_OK;
            ck_assert_int_eq(block.records[i].status, status);
            ck_assert(status < 0 || presto_span_equal(block.records[i].payload, want));
        }
    }
    ck_assert_ok(presto_shard_fetch(strict, 33, 1, &block, &err), &err);
    ck_assert_int_eq(block.records[0].status, PRESTO_ERR_CORRUPT);
    ck_assert_uint_eq(err.record, 33);
    ck_assert_uint_eq(err.offset, at);
    presto_shard_free(strict);
    presto_block_done(&block);
    presto_shard_free(shard);
    drop_file(&file);
}
END_TEST

START_TEST(every_cut_is_reported_but_at_a_record) {
    made_file file = make_file("data.tfrecord", 8, 40, NULL);
    size_t bytes;
    uint8_t *content = presto_check_read_file(file.path, &bytes);
    char cut_path[700];
    snprintf(cut_path, sizeof cut_path, "%s/cut.tfrecord", file.dir);
    size_t end = 0, whole = 0;
    for (size_t cut = 0; cut <= bytes; cut++) {
        while (whole < 8 && end + file.sizes[whole] + 16 <= cut)
            end += file.sizes[whole++] + 16;
        presto_check_write_file(cut_path, presto_span_of(content, cut));
        presto_shard *shard = open_shard(cut_path, false, false);
        presto_status status = presto_shard_index(shard, false, NULL, &err);
        ck_assert_status(status, cut == end ? PRESTO_OK : PRESTO_ERR_TRUNCATED, &err);
        if (status < 0) {
            ck_assert_uint_eq(err.record, whole);
            ck_assert_uint_eq(err.offset, end);
        }
        uint64_t lost;
        ck_assert_ok(presto_shard_index(shard, true, &lost, &err), &err);
        ck_assert_uint_eq(presto_shard_records(shard), whole + (cut != end));
        ck_assert_uint_eq(lost, cut != end);
        presto_block block = {0};
        ck_assert_ok(presto_shard_fetch(shard, 0, whole + lost, &block, &err), &err);
        for (size_t i = 0; i < whole; i++)
            ck_assert(presto_span_equal(block.records[i].payload, payload(&file, i)));
        if (lost > 0) {
            ck_assert_int_eq(block.records[whole].status, PRESTO_ERR_TRUNCATED);
            ck_assert_uint_eq(err.record, whole);
            ck_assert_uint_eq(err.offset, end);
        }
        presto_block_done(&block);
        presto_shard_free(shard);
    }
    free(content);
    drop_file(&file);
}
END_TEST

START_TEST(a_file_that_shrinks_while_open_is_truncated) {
    made_file file = make_file("data.tfrecord", 60, 2000, NULL);
    presto_shard *shard = open_shard(file.path, false, false);
    presto_block block = {0};
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    ck_assert_int_eq(truncate(file.path, (off_t)offset_of(shard, 30) + 5), 0);
    check_range(shard, &file, 0, 30, &block);
    ck_assert_status(presto_shard_fetch(shard, 0, 60, &block, &err), PRESTO_ERR_TRUNCATED, &err);
    ck_assert_uint_eq(err.record, 30);
    ck_assert_uint_eq(block.record_count, 0);
    presto_block_done(&block);
    presto_shard_free(shard);
    drop_file(&file);
}
END_TEST

START_TEST(what_cannot_be_opened_says_why) {
    presto_shard *shard;
    ck_assert_status(presto_shard_open("/no/such/file", NULL, &shard, &err), PRESTO_ERR_NOT_FOUND,
                     &err);
    ck_assert_str_eq(err.file, "/no/such/file");
    ck_assert_status(presto_shard_open("/tmp", NULL, &shard, &err), PRESTO_ERR_IO, &err);
    made_file file = make_file("text", 1, 100, NULL);
    char pipe_path[700];
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", file.dir);
    ck_assert_int_eq(mkfifo(pipe_path, 0600), 0); /* nobody will ever write to it */
    ck_assert_status(presto_shard_open(pipe_path, NULL, &shard, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "is a named pipe, not a regular file");
    presto_check_write_file(file.path, presto_span_of_text("this is not a TFRecord file at all\n"));
    ck_assert_ok(presto_shard_open(file.path, NULL, &shard, &err), &err);
    ck_assert_status(presto_shard_index(shard, false, NULL, &err), PRESTO_ERR_FOREIGN, &err);
    ck_assert_str_eq(err.file, file.path);
    ck_assert_ptr_nonnull(strstr(err.message, "a text file, not TFRecords"));
    presto_shard_free(shard);
    presto_check_write_file(file.path, presto_span_of_text("\1\2\3 no sign of what this is"));
    ck_assert_ok(presto_shard_open(file.path, NULL, &shard, &err), &err);
    ck_assert_status(presto_shard_index(shard, false, NULL, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "is this a TFRecord file?"));
    presto_shard_free(shard);
    drop_file(&file);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_was_written_is_read_by_pread_and_mmap_with_and_without_index,
        large_records_are_read_in_pieces,
        whole_file_gzip_and_zlib_are_written_and_read,
        a_file_without_records_is_a_file,
        a_stale_or_damaged_index_is_not_used,
        a_damaged_record_leaves_the_others_readable,
        every_cut_is_reported_but_at_a_record,
        a_file_that_shrinks_while_open_is_truncated,
        what_cannot_be_opened_says_why,
    };
    return presto_check_main("shard", tests, sizeof tests / sizeof tests[0], 120);
}
