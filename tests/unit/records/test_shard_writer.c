/* SPDX-License-Identifier: Apache-2.0 */
/* Shards written: the summary, frames, pieces, names, the disk, an index of a foreign file. */
#define _GNU_SOURCE /* syscall */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <presto/crc32c.h>
#include <presto/rng.h>
#include <presto/shard.h>

#include "../../../base/rng_internal.h"
#include "../../../records/records_internal.h"
#include "shard/shard_internal.h"

#include "shard_check.h"

/* ---- tests ---- */

START_TEST(the_summary_is_true) {
    made_file file = make_file("data.tfrecord", 100, 5000, NULL);
    presto__shard_summary summary = write_file(&file, NULL);
    size_t bytes;
    uint8_t *content = presto_check_read_file(file.path, &bytes);
    ck_assert_uint_eq(summary.records, 100);
    ck_assert_uint_eq(summary.stored_bytes, bytes);
    ck_assert_uint_eq(summary.payload_bytes, file.bytes.bytes);
    ck_assert_uint_eq(summary.payload_bytes + 1600, bytes);
    ck_assert_uint_eq(summary.crc32c, presto_crc32c(0, content, bytes));
    free(content);
    drop_file(&file);
}
END_TEST

START_TEST(framed_records_are_appended_as_they_are) {
    made_file file = make_file("data.tfrecord", 100, 20000, NULL);
    size_t bytes;
    uint8_t *content = presto_check_read_file(file.path, &bytes);
    uint32_t frames[100];
    for (size_t i = 0; i < 100; i++)
        frames[i] = (uint32_t)file.sizes[i] + 16;
    made_file copy = {.dir = file.dir};
    snprintf(copy.path, sizeof copy.path, "%s/copy.tfrecord", file.dir);
    presto__shard_writer *writer;
    ck_assert_ok(presto__shard_writer_open(copy.path, NULL, &writer, &err), &err);
    ck_assert_status(presto__shard_writer_append_frames(writer, presto_span_of(content, bytes),
                                                        frames, 99, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ok(presto__shard_writer_append_frames(writer, presto_span_of(content, bytes), frames,
                                                    100, &err),
                 &err);
    ck_assert_ok(presto__shard_writer_finish(writer, NULL, &err), &err);
    presto__shard_writer_free(writer);
    snprintf(file.path, sizeof file.path, "%s", copy.path);
    check_all(&file, false, false);
    size_t again_bytes;
    uint8_t *again = presto_check_read_file(copy.path, &again_bytes);
    ck_assert(
        presto_span_equal(presto_span_of(content, bytes), presto_span_of(again, again_bytes)));
    free(again);
    free(content);
    drop_file(&file);
}
END_TEST

/* The writer's write(2): the pieces of the file that it wrote to first. */
#define PIECE_BYTES ((size_t)256 << 10)
static struct {
    int fd; /* -1: the next one that is written to; -2: none */
    size_t calls, last_bytes;
    bool whole; /* all but the last one were of a piece, and started where a piece starts */
} pieces = {.fd = -2};

ssize_t write(int fd, const void *data, size_t bytes) {
    if (pieces.fd == -1)
        pieces.fd = fd;
    if (pieces.fd == fd) {
        pieces.whole = pieces.whole && lseek(fd, 0, SEEK_CUR) % (off_t)PIECE_BYTES == 0 &&
                       (pieces.calls == 0 || pieces.last_bytes == PIECE_BYTES);
        pieces.calls++;
        pieces.last_bytes = bytes;
    }
    return syscall(SYS_write, fd, data, bytes);
}

/* Sizes around pieces, their halves and multiples, frame and all, among any others. */
static void make_sizes(made_file *file, presto_rng *rng) {
    static const size_t around[] = {PIECE_BYTES / 2, PIECE_BYTES, 2 * PIECE_BYTES};
    make_payloads(file, 150, 3 * PIECE_BYTES, presto_check_seed());
    for (size_t i = 0; i < file->count; i++) {
        size_t size = around[presto_rng_below(rng, 3)] - 40 + presto_rng_below(rng, 60);
        if (presto_rng_below(rng, 2) == 0)
            size = presto_rng_below(rng, PIECE_BYTES / 4);
        if (presto_rng_below(rng, 4) > 0 && size < file->sizes[i])
            file->sizes[i] = size;
    }
}

static void write_singly_and_in_groups(presto__shard_writer *writer, const made_file *file,
                                       presto_rng *rng) {
    presto_buffer frames = {0};
    for (size_t i = 0; i < file->count;) {
        uint32_t sizes[3];
        size_t count = 0;
        size_t group = (size_t)presto_rng_below(rng, 4);
        if (group == 0) {
            ck_assert_ok(presto__shard_writer_append(writer, payload(file, i++), &err), &err);
            continue;
        }
        frames.bytes = 0;
        for (; count < group && i < file->count; count++, i++) {
            ck_assert_ok(presto__frame_append(&frames, payload(file, i), &err), &err);
            sizes[count] = (uint32_t)(file->sizes[i] + PRESTO_FRAME_OVERHEAD_BYTES);
        }
        ck_assert_ok(presto__shard_writer_append_frames(writer, presto_buffer_span(&frames), sizes,
                                                        count, &err),
                     &err);
    }
    presto_buffer_done(&frames);
}

START_TEST(records_of_any_size_are_written_in_order_and_in_whole_pieces) {
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed(), .stream = 1});
    for (int gzip = 0; gzip < 2; gzip++) {
        made_file file = {.dir = presto_check_temp_dir()};
        snprintf(file.path, sizeof file.path, "%s/%s", file.dir,
                 gzip ? "a.tfrecord.gz" : "a.tfrecord");
        make_sizes(&file, &rng);
        presto__shard_writer_options options;
        presto__shard_writer_options_defaults(&options);
        options.compression = gzip ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN;
        options.compression_level = 1;
        presto__shard_writer *writer;
        ck_assert_ok(presto__shard_writer_open(file.path, &options, &writer, &err), &err);
        pieces.fd = -1;
        pieces.calls = 0;
        pieces.whole = true;
        write_singly_and_in_groups(writer, &file, &rng);
        presto__shard_summary summary;
        ck_assert_ok(presto__shard_writer_finish(writer, &summary, &err), &err);
        presto__shard_writer_free(writer);
        pieces.fd = -2;
        ck_assert(pieces.whole);
        ck_assert_uint_gt(pieces.calls, 10);
        size_t bytes;
        uint8_t *content = presto_check_read_file(file.path, &bytes);
        ck_assert_uint_eq(summary.stored_bytes, bytes);
        ck_assert_uint_eq(summary.crc32c, presto_crc32c(0, content, bytes));
        free(content);
        presto_shard *shard = open_shard(file.path, false, false);
        presto_block block = {0};
        for (size_t i = 0; i < file.count; i++)
            check_range(shard, &file, i, 1, &block);
        ck_assert_uint_eq(presto_shard_records(shard), file.count);
        presto_block_done(&block);
        presto_shard_free(shard);
        drop_file(&file);
    }
}
END_TEST

static size_t count_hidden(const char *folder) {
    size_t count = 0;
    DIR *entries = opendir(folder);
    ck_assert_ptr_nonnull(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] == '.';
    closedir(entries);
    return count - 2;
}

START_TEST(nothing_stands_under_the_name_before_finish) {
    made_file file = make_file("data.tfrecord", 10, 100, NULL);
    char other[700];
    snprintf(other, sizeof other, "%s/other.tfrecord", file.dir);
    presto__shard_writer *writer;
    ck_assert_ok(presto__shard_writer_open(other, NULL, &writer, &err), &err);
    for (size_t i = 0; i < 10; i++)
        ck_assert_ok(presto__shard_writer_append(writer, payload(&file, i), &err), &err);
    ck_assert_int_ne(access(other, F_OK), 0);
    ck_assert_uint_eq(count_hidden(file.dir), 1);
    presto__shard_writer_free(writer);
    ck_assert_int_ne(access(other, F_OK), 0);
    ck_assert_uint_eq(count_hidden(file.dir), 0);
    snprintf(other, sizeof other, "%s/no/such/folder.tfrecord", file.dir);
    ck_assert_status(presto__shard_writer_open(other, NULL, &writer, &err), PRESTO_ERR_IO, &err);
    drop_file(&file);
}
END_TEST

/* Replaces the C library's: records which ranges of a file the disk was asked to begin writing. */
static struct {
    uint64_t end, calls;
    bool gapless;
} begun;

int sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags) {
    struct stat info;
    begun.calls++;
    begun.gapless = begun.gapless && (uint64_t)offset == begun.end && bytes > 0 && flags != 0 &&
                    fstat(fd, &info) == 0 && offset + bytes <= info.st_size;
    begun.end = (uint64_t)(offset + bytes);
    return -1; /* a hint: whether it is taken does not matter */
}

START_TEST(the_disk_begins_with_a_large_file_before_its_end) {
    made_file file = make_file("data.tfrecord", 70, (size_t)1 << 20, NULL);
    ck_assert_uint_gt(file.bytes.bytes, (uint64_t)24 << 20);
    for (int sync = 0; sync < 2; sync++) {
        presto__shard_writer_options options;
        presto__shard_writer_options_defaults(&options);
        options.sync = sync;
        begun.end = begun.calls = 0;
        begun.gapless = true;
        presto__shard_summary summary = write_file(&file, &options);
        ck_assert(begun.gapless);
        ck_assert_int_eq(begun.calls > 1, sync);
        ck_assert_uint_le(begun.end, summary.stored_bytes);
        if (sync)
            ck_assert_uint_gt(begun.end + ((uint64_t)16 << 20), summary.stored_bytes);
        check_all(&file, false, false);
    }
    drop_file(&file);
}
END_TEST

START_TEST(an_index_is_written_for_a_foreign_file) {
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.write_index = false;
    made_file file = make_file("data.tfrecord", 50, 1000, &options);
    char index[700];
    ck_assert_int_ne(access(index_path(&file, index, sizeof index), F_OK), 0);
    presto_shard *shard = open_shard(file.path, false, false);
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    uint64_t offsets[51];
    for (uint64_t i = 0; i <= 50; i++)
        offsets[i] = offset_of(shard, i);
    ck_assert_ok(
        presto__shard_index_write(file.path, offsets, 50, presto_shard_file_bytes(shard), &err),
        &err);
    presto_shard_free(shard);
    check_all(&file, false, false);
    drop_file(&file);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_summary_is_true,
        framed_records_are_appended_as_they_are,
        records_of_any_size_are_written_in_order_and_in_whole_pieces,
        nothing_stands_under_the_name_before_finish,
        the_disk_begins_with_a_large_file_before_its_end,
        an_index_is_written_for_a_foreign_file,
    };
    return presto_check_main("shard_writer", tests, sizeof tests / sizeof tests[0], 120);
}
