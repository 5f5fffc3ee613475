/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index file is a hint: whatever is wrong with it, and whenever that happens, the records read
 * are those of the data, and a warning says that the index is not used.
 */
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/crc32c.h>
#include <presto/shard.h>

#include "shard/shard_internal.h"

static presto_error err;

#define FEW 24
#define MANY 20000      /* three blocks */
#define HEADER_BYTES 48 /* of versions 1 and 2 */
#define PREFIX_BYTES 80 /* of version 3 */

/* Record i holds its number; their sizes differ. */
typedef struct made_file {
    char *dir;
    char path[600], index[620];
    uint64_t *offsets;
    size_t count;
    uint8_t *index_content;
    size_t index_bytes;
} made_file;

static size_t fill(uint8_t payload[24], size_t number) {
    uint64_t value = number;
    memset(payload, 0x5a, 24);
    memcpy(payload, &value, sizeof value);
    return sizeof value + number % 16;
}

static made_file make_file(size_t count, presto_file_compression compression) {
    made_file file = {.dir = presto_check_temp_dir(), .count = count};
    presto__shard_writer_options options;
    presto__shard_writer *writer;
    uint8_t payload[24];
    snprintf(file.path, sizeof file.path, "%s/data.tfrecord", file.dir);
    snprintf(file.index, sizeof file.index, "%s.index", file.path);
    file.offsets = calloc(count + 1, sizeof *file.offsets);
    presto__shard_writer_options_defaults(&options);
    options.compression = compression;
    options.sync = false;
    ck_assert_ok(presto__shard_writer_open(file.path, &options, &writer, &err), &err);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = fill(payload, i);
        file.offsets[i + 1] = file.offsets[i] + bytes + PRESTO_FRAME_OVERHEAD_BYTES;
        ck_assert_ok(presto__shard_writer_append(writer, presto_span_of(payload, bytes), &err),
                     &err);
    }
    ck_assert_ok(presto__shard_writer_finish(writer, NULL, &err), &err);
    presto__shard_writer_free(writer);
    file.index_content = presto_check_read_file(file.index, &file.index_bytes);
    return file;
}

static void drop_file(made_file *file) {
    presto_check_remove_tree(file->dir);
    free(file->dir);
    free(file->offsets);
    free(file->index_content);
}

static presto_shard *open_shard(const made_file *file, presto_checks verify) {
    presto_shard *shard;
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    options.verify = verify;
    ck_assert_ok(presto_shard_open(file->path, &options, &shard, &err), &err);
    return shard;
}

static void check_range(const made_file *file, presto_shard *shard, size_t first, size_t count,
                        presto_block *block) {
    uint8_t payload[24];
    presto_error failure;
    ck_assert_ok(presto_shard_fetch(shard, first, count, block, &failure), &failure);
    ck_assert_uint_eq(block->record_count, count);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = fill(payload, first + i);
        const presto_record *record = &block->records[i];
        /* Check takes its time for each assertion, and these are millions. */
        if (record->status != PRESTO_OK || record->offset != file->offsets[first + i] ||
            !presto_span_equal(record->payload, presto_span_of(payload, bytes)))
            ck_abort_msg("record %zu: %s at %ju", first + i, presto_status_name(record->status),
                         (uintmax_t)record->offset);
    }
}

static void check_all(const made_file *file, presto_shard *shard) {
    presto_block block = {0};
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    ck_assert_uint_eq(presto_shard_records(shard), file->count);
    check_range(file, shard, file->count - 1, 1, &block);
    check_range(file, shard, file->count / 2, 1, &block);
    check_range(file, shard, 0, file->count, &block);
    presto_block_done(&block);
}

static void check_warning(const made_file *file, presto_shard *shard, bool wanted) {
    presto_error warning;
    bool told = presto__shard_take_warning(shard, &warning);
    ck_assert_msg(told == wanted, "%s", told ? warning.message : "no warning");
    if (told) {
        ck_assert_str_eq(warning.file, file->index);
        ck_assert_ptr_nonnull(strstr(warning.message, "presto-inspect index"));
    }
    ck_assert(!presto__shard_take_warning(shard, &warning)); /* once */
}

static void put_index(const made_file *file, presto_span content) {
    unlink(file->index); /* a new file: where one is emptied, some file systems wait for the disk */
    presto_check_write_file(file->index, content);
}

/* An index with correct CRCs and wrong content. */
static void forge(const made_file *file, uint32_t version, const uint64_t *offsets,
                  uint64_t count) {
    uint64_t block = version == 1 ? count + 1 : 8192;
    presto_buffer out = {0};
    uint8_t header[PREFIX_BYTES];
    memcpy(header, file->index_content, sizeof header);
    memcpy(header + 8, &version, sizeof version);
    memcpy(header + 16, &count, sizeof count);
    if (version < 3) { /* the data file's time */
        struct stat info;
        ck_assert_int_eq(stat(file->path, &info), 0);
        int64_t mtime = presto__mtime_ns(&info);
        memset(header + 12, 0, 4);
        memcpy(header + 32, &mtime, sizeof mtime);
        memset(header + 40, 0, 4);
    }
    uint32_t crc = presto_crc32c(0, header, 44);
    memcpy(header + 44, &crc, sizeof crc);
    presto_span whole = presto_span_of(offsets, (size_t)(count + 1) * 8);
    ck_assert_ok(presto_buffer_append(
                     &out, presto_span_of(header, version < 3 ? HEADER_BYTES : PREFIX_BYTES), &err),
                 &err);
    ck_assert_ok(presto_buffer_append(&out, whole, &err), &err);
    for (uint64_t first = 0; first <= count; first += block) {
        uint64_t left = count + 1 - first < block ? count + 1 - first : block;
        crc = presto_crc32c(presto_crc32c(0, header, HEADER_BYTES), offsets + first, left * 8);
        ck_assert_ok(presto_buffer_append(&out, presto_span_of(&crc, sizeof crc), &err), &err);
    }
    put_index(file, presto_buffer_span(&out));
    presto_buffer_done(&out);
}

/* ---- tests ---- */

static void flip_small(int way) {
    made_file file = make_file(FEW, way == 0 ? PRESTO_FILE_PLAIN : PRESTO_FILE_GZIP);
    for (size_t bit = 0; bit < file.index_bytes * 8; bit += way == 0 ? 5 : 17) {
        file.index_content[bit / 8] ^= (uint8_t)(1 << bit % 8);
        put_index(&file, presto_span_of(file.index_content, file.index_bytes));
        presto_shard *shard = open_shard(&file, (presto_checks)(bit % 3));
        check_all(&file, shard);
        ck_assert(!presto__shard_has_index_file(shard));
        check_warning(&file, shard, true);
        presto_shard_free(shard);
        file.index_content[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    drop_file(&file);
}

START_TEST(a_flipped_bit_of_a_small_index_changes_nothing) {
    for (int way = 0; way < 2; way++)
        flip_small(way);
}
END_TEST

START_TEST(a_cut_small_index_changes_nothing) {
    made_file file = make_file(FEW, PRESTO_FILE_PLAIN);
    for (size_t cut = 0; cut < file.index_bytes; cut += 3) {
        put_index(&file, presto_span_of(file.index_content, cut));
        presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
        check_all(&file, shard);
        check_warning(&file, shard, true);
        presto_shard_free(shard);
    }
    drop_file(&file);
}
END_TEST

static void flip_large(int way) {
    made_file file = make_file(MANY, way == 0 ? PRESTO_FILE_PLAIN : PRESTO_FILE_ZLIB);
    size_t crcs = PREFIX_BYTES + (MANY + 1) * 8;
    ck_assert_uint_eq(file.index_bytes, crcs + 3 * sizeof(uint32_t));
    for (size_t at = 0; at < file.index_bytes; at += at < PREFIX_BYTES || at >= crcs ? 5 : 19999) {
        file.index_content[at] ^= (uint8_t)(1 << at % 8);
        put_index(&file, presto_span_of(file.index_content, file.index_bytes));
        presto_shard *shard = open_shard(&file, (presto_checks)(at % 3));
        check_all(&file, shard);
        check_warning(&file, shard, true);
        presto_shard_free(shard);
        file.index_content[at] ^= (uint8_t)(1 << at % 8);
    }
    put_index(&file, presto_span_of(file.index_content, file.index_bytes));
    presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
    check_all(&file, shard);
    ck_assert(presto__shard_has_index_file(shard));
    check_warning(&file, shard, false);
    presto_shard_free(shard);
    drop_file(&file);
}

START_TEST(a_flipped_bit_anywhere_in_a_large_index_changes_nothing) {
    for (int way = 0; way < 2; way++)
        flip_large(way);
}
END_TEST

START_TEST(an_index_may_get_shorter_change_or_go_while_it_is_in_use) {
    made_file file = make_file(MANY, PRESTO_FILE_PLAIN);
    for (int how = 0; how < 4; how++) {
        put_index(&file, presto_span_of(file.index_content, file.index_bytes));
        presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
        presto_block block = {0};
        check_range(&file, shard, 0, 10, &block);
        ck_assert(presto__shard_has_index_file(shard));
        if (how == 0)
            ck_assert_int_eq(truncate(file.index, 0), 0);
        else if (how == 1)
            ck_assert_int_eq(truncate(file.index, PREFIX_BYTES + 8 * 8192 + 5), 0);
        else if (how == 2)
            ck_assert_int_eq(unlink(file.index), 0);
        else
            put_index(&file, presto_span_of_text("another program's"));
        presto__shard_will_read(shard, MANY / 2, 100);
        check_range(&file, shard, 20, 10, &block);
        check_range(&file, shard, 8180, 30, &block);
        check_all(&file, shard);
        check_warning(&file, shard, true);
        presto_block_done(&block);
        presto_shard_free(shard);
    }
    drop_file(&file);
}
END_TEST

typedef struct reader {
    const made_file *file;
    presto_shard *shard;
    size_t number;
} reader;

static void *read_everywhere(void *argument) {
    const reader *self = argument;
    presto_block block = {0};
    for (size_t i = 0; i < 500; i++)
        check_range(self->file, self->shard, (self->number * 7919 + i * 8191) % (MANY - 20), 20,
                    &block);
    presto_block_done(&block);
    return NULL;
}

START_TEST(threads_that_meet_damage_in_the_index_get_their_records) {
    made_file file = make_file(MANY, PRESTO_FILE_PLAIN);
    file.index_content[PREFIX_BYTES + 8 * 12345] ^= 4;
    put_index(&file, presto_span_of(file.index_content, file.index_bytes));
    presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
    pthread_t threads[4];
    reader readers[4];
    for (size_t i = 0; i < 4; i++) {
        readers[i] = (reader){&file, shard, i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_everywhere, &readers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    check_warning(&file, shard, true);
    presto_shard_free(shard);
    drop_file(&file);
}
END_TEST

static void read_version_1(int way) {
    made_file file = make_file(way == 0 ? FEW : MANY, PRESTO_FILE_PLAIN);
    forge(&file, 1, file.offsets, file.count);
    presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
    check_all(&file, shard);
    ck_assert(presto__shard_has_index_file(shard));
    check_warning(&file, shard, false);
    presto_shard_free(shard);
    size_t bytes;
    uint8_t *content = presto_check_read_file(file.index, &bytes);
    content[bytes / 2] ^= 1;
    put_index(&file, presto_span_of(content, bytes));
    free(content);
    shard = open_shard(&file, PRESTO_CHECK_FULL);
    check_all(&file, shard);
    check_warning(&file, shard, true);
    presto_shard_free(shard);
    drop_file(&file);
}

START_TEST(version_1_is_read_with_its_one_crc) {
    for (int way = 0; way < 2; way++)
        read_version_1(way);
}
END_TEST

static void read_misplaced(int way) {
    made_file file =
        make_file(way % 2 == 0 ? FEW : MANY, way < 2 ? PRESTO_FILE_PLAIN : PRESTO_FILE_GZIP);
    uint64_t *wrong = malloc((file.count + 1) * sizeof *wrong);
    ck_assert_ptr_nonnull(wrong);
    for (int how = 0; how < 3; how++) {
        memcpy(wrong, file.offsets, (file.count + 1) * sizeof *wrong);
        for (size_t i = 3; i < file.count; i++)
            wrong[i] = how == 0   ? file.offsets[i] + 1
                       : how == 1 ? file.offsets[i - 1] + 16 + (i == 3 ? 4 : 0)
                                  : 60 + 17 * (uint64_t)i;
        forge(&file, 2 + (uint32_t)how % 2, wrong, file.count);
        for (int verify = 0; verify < 3; verify++) {
            presto_shard *shard = open_shard(&file, (presto_checks)verify);
            check_all(&file, shard);
            check_warning(&file, shard, true);
            presto_shard_free(shard);
        }
    }
    free(wrong);
    drop_file(&file);
}

START_TEST(records_that_do_not_stand_where_the_index_says_are_found) {
    for (int way = 0; way < 4; way++)
        read_misplaced(way);
}
END_TEST

START_TEST(an_index_that_counts_other_records_fails_where_they_are_read) {
    made_file file = make_file(FEW, PRESTO_FILE_PLAIN);
    uint64_t wrong[FEW];
    memcpy(wrong, file.offsets, sizeof wrong);
    memmove(wrong + 10, file.offsets + 11, (FEW - 10) * sizeof *wrong); /* 9 and 10 are one */
    forge(&file, 3, wrong, FEW - 1);
    presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
    presto_block block = {0};
    check_range(&file, shard, 0, 9, &block);
    for (int i = 0; i < 2; i++) {
        ck_assert_status(presto_shard_fetch(shard, 0, FEW - 1, &block, &err), PRESTO_ERR_CORRUPT,
                         &err);
        ck_assert_str_eq(err.file, file.path);
        ck_assert_ptr_nonnull(strstr(err.message, "counts 23 records where there are 24"));
    }
    /* If the caller knows the count, the right one is used. */
    presto_shard_free(shard);
    shard = open_shard(&file, PRESTO_CHECK_FULL);
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    ck_assert_uint_eq(presto_shard_records(shard), FEW - 1);
    ck_assert_ok(presto__shard_drop_index(shard, "it counts otherwise", &err), &err);
    check_all(&file, shard);
    check_warning(&file, shard, true);
    presto_block_done(&block);
    presto_shard_free(shard);
    drop_file(&file);
}
END_TEST

START_TEST(a_damaged_header_under_an_index_that_is_right_costs_one_record) {
    made_file file = make_file(FEW, PRESTO_FILE_PLAIN);
    FILE *data = fopen(file.path, "r+b");
    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq(fseek(data, (long)file.offsets[20] + 1, SEEK_SET), 0);
    fputc(0x77, data);
    ck_assert_int_eq(fclose(data), 0);
    presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
    presto_block block = {0};
    ck_assert_ok(presto_shard_fetch(shard, 0, FEW, &block, &err), &err);
    for (size_t i = 0; i < FEW; i++)
        ck_assert_int_eq(block.records[i].status, i == 20 ? PRESTO_ERR_CORRUPT : PRESTO_OK);
    ck_assert_uint_eq(err.record, 20);
    ck_assert(presto__shard_has_index_file(shard));
    check_warning(&file, shard, false);
    presto_block_done(&block);
    presto_shard_free(shard);
    drop_file(&file);
}
END_TEST

static void refuse_counts(int way) {
    static const uint64_t counts[] = {UINT64_MAX, UINT64_MAX - 1, (uint64_t)1 << 61,
                                      ((uint64_t)1 << 61) - 1 + FEW, 1000000};
    made_file file = make_file(FEW, way == 0 ? PRESTO_FILE_PLAIN : PRESTO_FILE_GZIP);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        memcpy(file.index_content + 16, &counts[i], 8);
        uint32_t crc = presto_crc32c(0, file.index_content, 44);
        memcpy(file.index_content + 44, &crc, sizeof crc);
        put_index(&file, presto_span_of(file.index_content, file.index_bytes));
        presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
        check_all(&file, shard);
        check_warning(&file, shard, true);
        presto_shard_free(shard);
    }
    drop_file(&file);
}

START_TEST(counts_that_the_data_cannot_hold_are_refused) {
    for (int way = 0; way < 2; way++)
        refuse_counts(way);
}
END_TEST

START_TEST(what_is_no_index_of_ours_is_passed_over_in_silence) {
    static const char *const others[] = {"0 100\n100 200\n", "something else, longer than a header "
                                                             "of ours, in a file of that name\n"};
    made_file file = make_file(FEW, PRESTO_FILE_PLAIN);
    for (size_t i = 0; i < 2; i++) {
        put_index(&file, presto_span_of_text(others[i]));
        presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
        check_all(&file, shard);
        check_warning(&file, shard, false);
        presto_shard_free(shard);
    }
    drop_file(&file);
}
END_TEST

/* ---- copies, and other files of the same name ---- */

static void set_time(const char *path, time_t seconds) {
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void check_use(const made_file *file, bool is_used) {
    presto_shard *shard = open_shard(file, PRESTO_CHECK_FULL);
    check_all(file, shard);
    ck_assert_int_eq(presto__shard_has_index_file(shard), is_used);
    check_warning(file, shard, false);
    presto_shard_free(shard);
}

START_TEST(an_index_fits_a_copy_whatever_its_time) {
    static const size_t counts[] = {0, 1, 2, 3, 4, 5, FEW, 8191, 8192, MANY};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (int compression = PRESTO_FILE_PLAIN; compression <= PRESTO_FILE_ZLIB; compression++) {
            made_file file = make_file(counts[i], (presto_file_compression)compression);
            bool is_plain = compression == PRESTO_FILE_PLAIN;
            if (counts[i] > 0) {
                check_use(&file, true);
                set_time(file.path, 2000000000);
                check_use(&file, true);
                /* An earlier version has only the time, but frames stand where it says. */
                for (uint32_t version = 1; version < 3; version++) {
                    forge(&file, version, file.offsets, file.count);
                    check_use(&file, true);
                    set_time(file.path, 1000000000 + version);
                    check_use(&file, is_plain);
                }
            }
            drop_file(&file);
        }
    }
}
END_TEST

/* `records` in the order of `numbers`, as a file of its own beside an index that is not its own. */
static void write_records(made_file *file, const size_t *numbers) {
    uint8_t payload[24];
    presto_buffer out = {0};
    for (size_t i = 0; i < file->count; i++) {
        size_t bytes = fill(payload, numbers[i]);
        file->offsets[i + 1] = file->offsets[i] + bytes + PRESTO_FRAME_OVERHEAD_BYTES;
        ck_assert_ok(presto__frame_append(&out, presto_span_of(payload, bytes), &err), &err);
    }
    presto_check_write_file(file->path, presto_buffer_span(&out));
    presto_buffer_done(&out);
}

START_TEST(an_index_of_another_file_of_the_same_size_is_not_used) {
    made_file file = make_file(FEW, PRESTO_FILE_PLAIN);
    size_t numbers[FEW];
    uint64_t before[FEW + 1];
    memcpy(before, file.offsets, sizeof before);
    for (int how = 0; how < 4; how++) {
        for (size_t i = 0; i < FEW; i++) /* other order; of no moved record, the last two change */
            numbers[i] = how == 0 ? FEW - 1 - i : how == 1 ? (i + 1) % FEW : i;
        if (how == 2) {
            numbers[0] = 1;
            numbers[1] = 0;
        } else if (how == 3) {
            numbers[FEW - 1] = FEW - 2;
            numbers[FEW - 2] = FEW - 1;
        }
        write_records(&file, numbers);
        ck_assert_uint_eq(file.offsets[FEW], before[FEW]);
        for (uint32_t version = 2; version <= 3; version++) {
            forge(&file, version, before, FEW);
            set_time(file.path, 1000000000 + version);
            presto_shard *shard = open_shard(&file, PRESTO_CHECK_FULL);
            presto_block block = {0};
            ck_assert_ok(presto_shard_fetch(shard, 0, FEW, &block, &err), &err);
            for (size_t i = 0; i < FEW; i++) {
                uint8_t payload[24];
                size_t bytes = fill(payload, numbers[i]);
                ck_assert(
                    presto_span_equal(block.records[i].payload, presto_span_of(payload, bytes)));
            }
            ck_assert(!presto__shard_has_index_file(shard));
            check_warning(&file, shard, false);
            presto_block_done(&block);
            presto_shard_free(shard);
        }
    }
    drop_file(&file);
}
END_TEST

START_TEST(compressed_files_of_the_same_size_are_told_apart) {
    made_file one = make_file(FEW, PRESTO_FILE_GZIP);
    size_t bytes;
    uint8_t *content = presto_check_read_file(one.path, &bytes);
    content[bytes - 5] ^= 1; /* the CRC of what is compressed: other data */
    presto_check_write_file(one.path, presto_span_of(content, bytes));
    presto_shard *shard = open_shard(&one, PRESTO_CHECK_NONE);
    (void)presto_shard_index(shard, true, NULL, &err);
    ck_assert(!presto__shard_has_index_file(shard));
    presto_shard_free(shard);
    free(content);
    drop_file(&one);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_flipped_bit_of_a_small_index_changes_nothing,
        a_cut_small_index_changes_nothing,
        a_flipped_bit_anywhere_in_a_large_index_changes_nothing,
        an_index_may_get_shorter_change_or_go_while_it_is_in_use,
        threads_that_meet_damage_in_the_index_get_their_records,
        version_1_is_read_with_its_one_crc,
        records_that_do_not_stand_where_the_index_says_are_found,
        an_index_that_counts_other_records_fails_where_they_are_read,
        a_damaged_header_under_an_index_that_is_right_costs_one_record,
        counts_that_the_data_cannot_hold_are_refused,
        what_is_no_index_of_ours_is_passed_over_in_silence,
        an_index_fits_a_copy_whatever_its_time,
        an_index_of_another_file_of_the_same_size_is_not_used,
        compressed_files_of_the_same_size_are_told_apart,
    };
    return presto_check_main("index", tests, sizeof tests / sizeof tests[0], 120);
}
