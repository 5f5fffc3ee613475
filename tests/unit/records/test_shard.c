/* SPDX-License-Identifier: Apache-2.0 */
/* Shards: written and read back in every way of reading, indexes fresh and stale, damage, many
 * threads. */
#define _GNU_SOURCE /* syscall */
#include "presto_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <presto/crc32c.h>
#include <presto/rng.h>
#include <presto/shard.h>

#include "shard/shard_internal.h"

static presto_error err;

/* ---- a file of known records ---- */

typedef struct made_file {
    char *dir;
    char path[600];
    presto_buffer bytes; /* payloads back to back */
    size_t *sizes;
    size_t *starts;
    size_t count;
} made_file;

static presto_span payload(const made_file *file, size_t i) {
    return presto_span_of(file->bytes.data + file->starts[i], file->sizes[i]);
}

static void make_payloads(made_file *file, size_t count, size_t most, uint64_t seed) {
    presto_rng rng;
    presto_rng_init(&rng, &(presto_rng_key){.seed = seed});
    file->count = count;
    file->sizes = calloc(count + 1, sizeof(size_t));
    file->starts = calloc(count + 1, sizeof(size_t));
    for (size_t i = 0; i < count; i++) {
        size_t bytes = presto_rng_below(&rng, 10) == 0 ? 0 : presto_rng_below(&rng, most);
        file->starts[i] = file->bytes.bytes;
        file->sizes[i] = bytes;
        ck_assert_ok(presto_buffer_reserve(&file->bytes, bytes, &err), &err);
        for (size_t k = 0; k < bytes; k++)
            file->bytes.data[file->bytes.bytes + k] = (uint8_t)(presto_rng_next(&rng) & 0x1f);
        file->bytes.bytes += bytes;
    }
}

static presto_shard_summary write_file(made_file *file,
                                       const presto_shard_writer_options *options) {
    presto_shard_writer *writer;
    presto_shard_summary summary;
    ck_assert_ok(presto_shard_writer_open(file->path, options, &writer, &err), &err);
    for (size_t i = 0; i < file->count; i++)
        ck_assert_ok(presto_shard_writer_append(writer, payload(file, i), &err), &err);
    ck_assert_ok(presto_shard_writer_finish(writer, &summary, &err), &err);
    presto_shard_writer_free(writer);
    return summary;
}

static made_file make_file(const char *name, size_t count, size_t most,
                           const presto_shard_writer_options *options) {
    made_file file = {.dir = presto_check_temp_dir()};
    snprintf(file.path, sizeof file.path, "%s/%s", file.dir, name);
    make_payloads(&file, count, most, 42);
    write_file(&file, options);
    return file;
}

static void drop_file(made_file *file) {
    presto_check_remove_tree(file->dir);
    free(file->dir);
    free(file->sizes);
    free(file->starts);
    presto_buffer_done(&file->bytes);
}

static char *index_path(const made_file *file, char *text, size_t bytes) {
    snprintf(text, bytes, "%s.index", file->path);
    return text;
}

static presto_shard *open_shard(const char *path, bool map, bool ignore_index) {
    presto_shard *shard;
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    options.map = map;
    options.ignore_index = ignore_index;
    ck_assert_ok(presto_shard_open(path, &options, &shard, &err), &err);
    return shard;
}

static uint64_t offset_of(presto_shard *shard, uint64_t record) {
    const uint64_t *offset;
    ck_assert_ok(presto_shard_offsets(shard, record, 0, &offset, &err), &err);
    return *offset;
}

static void check_range(presto_shard *shard, const made_file *file, size_t first, size_t count,
                        presto_block *block) {
    ck_assert_ok(presto_shard_fetch(shard, first, count, block, &err), &err);
    ck_assert_uint_eq(block->record_count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(block->records[i].status, PRESTO_OK);
        ck_assert(presto_span_equal(block->records[i].payload, payload(file, first + i)));
        ck_assert_uint_eq(block->records[i].offset, offset_of(shard, first + i));
    }
}

static void check_all(const made_file *file, bool map, bool ignore_index) {
    presto_shard *shard = open_shard(file->path, map, ignore_index);
    presto_block block = {0};
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    ck_assert_uint_eq(presto_shard_records(shard), file->count);
    ck_assert_int_eq(presto__shard_has_index_file(shard), !ignore_index);
    check_range(shard, file, 0, file->count, &block);
    for (size_t step = 1; step < 40; step = step * 2 + 1)
        for (size_t first = 0; first < file->count; first += step)
            check_range(shard, file, first, step < file->count - first ? step : file->count - first,
                        &block);
    check_range(shard, file, file->count, 0, &block);
    presto_block_done(&block);
    presto_shard_free(shard);
}

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
        presto_shard_writer_options options;
        presto_shard_writer_options_defaults(&options);
        options.compression = (presto_file_compression)kind;
        made_file file = make_file("data.tfrecord.z", 300, 30000, &options);
        presto_shard *shard = open_shard(file.path, false, false);
        ck_assert_int_eq(presto_shard_compression(shard), kind);
        presto_shard_free(shard);
        check_all(&file, false, false);
        check_all(&file, true, true);
        drop_file(&file);
    }
}
END_TEST

START_TEST(a_file_without_records_is_a_file) {
    for (int kind = PRESTO_FILE_PLAIN; kind <= PRESTO_FILE_ZLIB; kind++) {
        presto_shard_writer_options options;
        presto_shard_writer_options_defaults(&options);
        options.compression = (presto_file_compression)kind;
        made_file file = make_file("empty.tfrecord", 0, 1, &options);
        for (int ways = 0; ways < 4; ways++)
            check_all(&file, (ways & 1) != 0, (ways & 2) != 0);
        drop_file(&file);
    }
}
END_TEST

START_TEST(the_summary_is_true) {
    made_file file = make_file("data.tfrecord", 100, 5000, NULL);
    presto_shard_summary summary = write_file(&file, NULL);
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
    presto_shard_writer *writer;
    ck_assert_ok(presto_shard_writer_open(copy.path, NULL, &writer, &err), &err);
    ck_assert_status(
        presto_shard_writer_append_frames(writer, presto_span_of(content, bytes), frames, 99, &err),
        PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ok(presto_shard_writer_append_frames(writer, presto_span_of(content, bytes), frames,
                                                   100, &err),
                 &err);
    ck_assert_ok(presto_shard_writer_finish(writer, NULL, &err), &err);
    presto_shard_writer_free(writer);
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

static void write_singly_and_in_groups(presto_shard_writer *writer, const made_file *file,
                                       presto_rng *rng) {
    presto_buffer frames = {0};
    for (size_t i = 0; i < file->count;) {
        uint32_t sizes[3];
        size_t count = 0;
        size_t group = (size_t)presto_rng_below(rng, 4);
        if (group == 0) {
            ck_assert_ok(presto_shard_writer_append(writer, payload(file, i++), &err), &err);
            continue;
        }
        frames.bytes = 0;
        for (; count < group && i < file->count; count++, i++) {
            ck_assert_ok(presto_frame_append(&frames, payload(file, i), &err), &err);
            sizes[count] = (uint32_t)(file->sizes[i] + PRESTO_FRAME_OVERHEAD_BYTES);
        }
        ck_assert_ok(presto_shard_writer_append_frames(writer, presto_buffer_span(&frames), sizes,
                                                       count, &err),
                     &err);
    }
    presto_buffer_done(&frames);
}

START_TEST(records_of_any_size_are_written_in_order_and_in_whole_pieces) {
    presto_rng rng;
    presto_rng_init(&rng, &(presto_rng_key){.seed = presto_check_seed(), .stream = 1});
    for (int gzip = 0; gzip < 2; gzip++) {
        made_file file = {.dir = presto_check_temp_dir()};
        snprintf(file.path, sizeof file.path, "%s/%s", file.dir,
                 gzip ? "a.tfrecord.gz" : "a.tfrecord");
        make_sizes(&file, &rng);
        presto_shard_writer_options options;
        presto_shard_writer_options_defaults(&options);
        options.compression = gzip ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN;
        options.compression_level = 1;
        presto_shard_writer *writer;
        ck_assert_ok(presto_shard_writer_open(file.path, &options, &writer, &err), &err);
        pieces.fd = -1;
        pieces.calls = 0;
        pieces.whole = true;
        write_singly_and_in_groups(writer, &file, &rng);
        presto_shard_summary summary;
        ck_assert_ok(presto_shard_writer_finish(writer, &summary, &err), &err);
        presto_shard_writer_free(writer);
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
    presto_shard_writer *writer;
    ck_assert_ok(presto_shard_writer_open(other, NULL, &writer, &err), &err);
    for (size_t i = 0; i < 10; i++)
        ck_assert_ok(presto_shard_writer_append(writer, payload(&file, i), &err), &err);
    ck_assert_int_ne(access(other, F_OK), 0);
    ck_assert_uint_eq(count_hidden(file.dir), 1);
    presto_shard_writer_free(writer);
    ck_assert_int_ne(access(other, F_OK), 0);
    ck_assert_uint_eq(count_hidden(file.dir), 0);
    snprintf(other, sizeof other, "%s/no/such/folder.tfrecord", file.dir);
    ck_assert_status(presto_shard_writer_open(other, NULL, &writer, &err), PRESTO_ERR_IO, &err);
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
        presto_shard_writer_options options;
        presto_shard_writer_options_defaults(&options);
        options.sync = sync;
        begun.end = begun.calls = 0;
        begun.gapless = true;
        presto_shard_summary summary = write_file(&file, &options);
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

START_TEST(a_stale_or_damaged_index_is_not_used) {
    made_file file = make_file("data.tfrecord", 50, 1000, NULL);
    char index[700];
    size_t bytes;
    index_path(&file, index, sizeof index);
    uint8_t *content = presto_check_read_file(index, &bytes);
    presto_block block = {0};
    /* Each of the header's bytes, the ends, a cut. */
    for (size_t at = 0; at < bytes; at += at < 48 ? 1 : 97) {
        content[at] ^= 0x41;
        presto_check_write_file(index, presto_span_of(content, bytes));
        presto_shard *shard = open_shard(file.path, false, false);
        ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
        if (at < 48)
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
    /* The data changes in place with the same size: the time shows it. */
    struct timespec later[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
    ck_assert_int_eq(utimensat(AT_FDCWD, file.path, later, 0), 0);
    presto_shard *shard = open_shard(file.path, false, false);
    check_range(shard, &file, 0, 50, &block);
    ck_assert(!presto__shard_has_index_file(shard));
    presto_shard_free(shard);
    presto_block_done(&block);
    free(content);
    drop_file(&file);
}
END_TEST

START_TEST(an_index_is_written_for_a_foreign_file) {
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.write_index = false;
    made_file file = make_file("data.tfrecord", 50, 1000, &options);
    char index[700];
    ck_assert_int_ne(access(index_path(&file, index, sizeof index), F_OK), 0);
    presto_shard *shard = open_shard(file.path, false, false);
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    uint64_t offsets[51];
    for (uint64_t i = 0; i <= 50; i++)
        offsets[i] = offset_of(shard, i);
    ck_assert_ok(presto_index_write(file.path, offsets, 50, presto_shard_file_bytes(shard), &err),
                 &err);
    presto_shard_free(shard);
    check_all(&file, false, false);
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
    presto_shard *strict = open_shard(file.path, false, false);
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

/* ---- threads ---- */

typedef struct reader {
    pthread_t thread;
    presto_shard *shard;
    const made_file *file;
    uint64_t seed;
    bool rising;
    presto_status status;
} reader;

static void *read_randomly(void *argument) {
    reader *self = argument;
    presto_rng rng;
    presto_block block = {0};
    presto_rng_init(&rng, &(presto_rng_key){.seed = self->seed});
    for (size_t round = 0; round < 300 && self->status == PRESTO_OK; round++) {
        size_t first = self->rising ? round : presto_rng_below(&rng, self->file->count - 8);
        self->status = presto_shard_fetch(self->shard, first, 8, &block, NULL);
        for (size_t i = 0; i < 8 && self->status == PRESTO_OK; i++)
            if (!presto_span_equal(block.records[i].payload, payload(self->file, first + i)))
                self->status = PRESTO_ERR_CORRUPT;
    }
    presto_block_done(&block);
    return NULL;
}

static void read_with_threads(presto_shard *const *shards, size_t shard_count,
                              const made_file *file, bool rising) {
    reader readers[8];
    for (size_t i = 0; i < 8; i++) {
        readers[i] =
            (reader){.shard = shards[i % shard_count], .file = file, .seed = i, .rising = rising};
        ck_assert_int_eq(pthread_create(&readers[i].thread, NULL, read_randomly, &readers[i]), 0);
    }
    for (size_t i = 0; i < 8; i++) {
        pthread_join(readers[i].thread, NULL);
        ck_assert_int_eq(readers[i].status, PRESTO_OK);
    }
}

START_TEST(threads_read_one_shard_at_once) {
    made_file file = make_file("data.tfrecord", 400, 500, NULL);
    for (int ways = 0; ways < 4; ways++) {
        presto_shard *shard = open_shard(file.path, (ways & 1) != 0, (ways & 2) != 0);
        read_with_threads(&shard, 1, &file, false);
        presto_shard_free(shard);
    }
    drop_file(&file);
}
END_TEST

START_TEST(threads_read_one_compressed_shard_at_once) {
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.compression = PRESTO_FILE_GZIP;
    made_file file = make_file("data.tfrecord.gz", 400, 500, &options);
    presto_shard *shard = open_shard(file.path, false, false);
    read_with_threads(&shard, 1, &file, true);
    presto_shard_free(shard);
    drop_file(&file);
}
END_TEST

START_TEST(more_shards_than_descriptors_are_closed_and_opened_again) {
    made_file file = make_file("data.tfrecord", 400, 500, NULL);
    presto__fd_pool pool;
    ck_assert_ok(presto__fd_pool_init(&pool, &err), &err);
    pool.limit = 3;
    presto_shard *shards[10];
    for (size_t i = 0; i < 10; i++) {
        ck_assert_ok(presto__shard_open(file.path, NULL, &pool, &shards[i], &err), &err);
        ck_assert_uint_le(pool.open_count, 3);
    }
    presto_block block = {0};
    for (size_t round = 0; round < 50; round++) {
        check_range(shards[round * 7 % 10], &file, round * 3, 20, &block);
        ck_assert_uint_le(pool.open_count, 3);
    }
    read_with_threads(shards, 8, &file, false);
    /* A file that was replaced is noticed when it is opened again. */
    write_file(&file, NULL);
    size_t replaced = 0;
    for (size_t i = 0; i < 10; i++) {
        presto_status status = presto_shard_fetch(shards[i], 0, 1, &block, &err);
        replaced += status == PRESTO_ERR_CORRUPT;
        ck_assert(status == PRESTO_OK || status == PRESTO_ERR_CORRUPT);
    }
    ck_assert_uint_ge(replaced, 7);
    for (size_t i = 0; i < 10; i++)
        presto_shard_free(shards[i]);
    ck_assert_uint_eq(pool.open_count, 0);
    presto__fd_pool_done(&pool);
    presto_block_done(&block);
    drop_file(&file);
}
END_TEST

static atomic_ulong looked_at;

int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock) {
    atomic_fetch_add(&looked_at, 1);
    return __real_pthread_mutex_trylock(lock);
}

START_TEST(closing_a_file_does_not_look_at_all_that_are_open) {
    enum { SHARDS = 600, LIMIT = 200, FETCHES = 3000 };
    made_file file = make_file("data.tfrecord", 5, 50, NULL);
    presto__fd_pool pool;
    presto_shard *shards[SHARDS];
    presto_block block = {0};
    presto_rng rng;
    presto_rng_init(&rng, &(presto_rng_key){.seed = 7});
    ck_assert_ok(presto__fd_pool_init(&pool, &err), &err);
    pool.limit = LIMIT;
    for (size_t i = 0; i < SHARDS; i++)
        ck_assert_ok(presto__shard_open(file.path, NULL, &pool, &shards[i], &err), &err);
    atomic_store(&looked_at, 0);
    for (size_t i = 0; i < FETCHES; i++) {
        size_t at = (size_t)presto_rng_below(&rng, SHARDS);
        check_range(shards[at], &file, 0, 1, &block);
        if (i % 2 == 0) /* some are used more than once */
            check_range(shards[at], &file, 2, 1, &block);
        ck_assert_uint_le(pool.open_count, LIMIT);
    }
    ck_assert_uint_ge(atomic_load(&looked_at), FETCHES / 2);
    ck_assert_uint_le(atomic_load(&looked_at), (uintmax_t)4 * FETCHES);
    for (size_t i = 0; i < SHARDS; i++)
        presto_shard_free(shards[i]);
    presto__fd_pool_done(&pool);
    presto_block_done(&block);
    drop_file(&file);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_was_written_is_read_by_pread_and_mmap_with_and_without_index,
        large_records_are_read_in_pieces,
        whole_file_gzip_and_zlib_are_written_and_read,
        a_file_without_records_is_a_file,
        the_summary_is_true,
        framed_records_are_appended_as_they_are,
        records_of_any_size_are_written_in_order_and_in_whole_pieces,
        nothing_stands_under_the_name_before_finish,
        the_disk_begins_with_a_large_file_before_its_end,
        a_stale_or_damaged_index_is_not_used,
        an_index_is_written_for_a_foreign_file,
        a_damaged_record_leaves_the_others_readable,
        every_cut_is_reported_but_at_a_record,
        a_file_that_shrinks_while_open_is_truncated,
        what_cannot_be_opened_says_why,
        threads_read_one_shard_at_once,
        threads_read_one_compressed_shard_at_once,
        more_shards_than_descriptors_are_closed_and_opened_again,
        closing_a_file_does_not_look_at_all_that_are_open,
    };
    return presto_check_main("shard", tests, sizeof tests / sizeof tests[0], 120);
}
