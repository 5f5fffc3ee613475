/* SPDX-License-Identifier: Apache-2.0 */
/* Samples to measure, from all over a source: how many they are, and where they stand. */
#include "../../../loader/loader_internal.h"
#include "../../../records/records_internal.h"
#include "loader_check.h"

#define MOST_RECORDS 400

typedef struct record_file {
    char *dir;
    presto_dataset *dataset;
    presto_source *source;
} record_file;

/* A file of `count` records of `bytes` bytes. */
static record_file open_records(uint64_t count, size_t bytes, presto_file_compression compression) {
    record_file file = {.dir = presto_check_temp_dir()};
    static uint8_t payload[1 << 16];
    char path[300];
    const char *list[] = {path};
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto_error err;
    snprintf(path, sizeof path, "%s/a.tfrecord", file.dir);
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    options.compression = compression;
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    for (uint64_t i = 0; i < count; i++)
        ck_assert_ok(presto__shard_writer_append(writer, presto_span_of(payload, bytes), &err),
                     &err);
    ck_assert_ok(presto__shard_writer_finish(writer, NULL, &err), &err);
    presto__shard_writer_free(writer);
    ck_assert_ok(presto_dataset_open(list, 1, NULL, &file.dataset, &err), &err);
    ck_assert_ok(presto__source_open_records(file.dataset, &file.source, &err), &err);
    return file;
}

static void close_records(record_file *file) {
    presto__source_free(file->source);
    presto_dataset_free(file->dataset);
    presto_check_remove_tree(file->dir);
    free(file->dir);
}

/* The numbers of the samples that a loader gives, whatever the options. Returns how many. */
static size_t numbers_of(presto_source *source, unsigned threads, uint64_t *numbers_out) {
    presto_loader *loader;
    presto_batch *batch;
    presto_loader_options options;
    presto_error err;
    size_t count = 0;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = 7;
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        for (size_t i = 0; i < batch->rows; i++) {
            ck_assert_uint_lt(count, MOST_RECORDS);
            numbers_out[count++] = batch->sample_numbers[i];
        }
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    return count;
}

static presto_status choose(presto_source *source, uint64_t wanted) {
    const presto_partition partition = {.even_samples = wanted};
    presto_error err;
    presto_status status = presto__source_choose(source, &partition, &err);
    ck_assert_int_ge(status, 0);
    return status;
}

/* Rising, and none of 16 equal parts of the source has two more than another. */
static void assert_even(const uint64_t *numbers, size_t count, uint64_t all) {
    size_t in_part[16] = {0};
    size_t parts = count < 16 ? count : 16;
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_lt(numbers[i], all);
        if (i > 0)
            ck_assert_uint_gt(numbers[i], numbers[i - 1]);
        in_part[numbers[i] * parts / all]++;
    }
    for (size_t k = 0; k < parts; k++)
        ck_assert_msg(in_part[k] + 2 > count / parts && in_part[k] < count / parts + 3,
                      "%zu of %zu samples of %ju are in part %zu of %zu", in_part[k], count,
                      (uintmax_t)all, k, parts);
}

START_TEST(any_number_of_samples_is_taken_from_all_over) {
    static uint64_t numbers[MOST_RECORDS], again[MOST_RECORDS];
    static const uint64_t counts[] = {1, 2, 15, 16, 17, 50, 399};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (uint64_t wanted = 1; wanted <= counts[k]; wanted += 1 + wanted / 5) {
            record_file file = open_records(counts[k], 3, PRESTO_FILE_PLAIN);
            ck_assert_int_eq(choose(file.source, wanted), PRESTO_OK);
            ck_assert_uint_eq(presto_source_count(file.source), wanted);
            ck_assert_uint_eq(numbers_of(file.source, 0, numbers), wanted);
            assert_even(numbers, (size_t)wanted, counts[k]);
            ck_assert_uint_eq(numbers_of(file.source, 3, again), wanted);
            ck_assert_mem_eq(numbers, again, wanted * sizeof *numbers);
            close_records(&file);
        }
}
END_TEST

START_TEST(they_stand_in_the_middle_of_equal_stretches) {
    static uint64_t numbers[MOST_RECORDS];
    record_file file = open_records(320, 10, PRESTO_FILE_PLAIN);
    (void)choose(file.source, 32);
    ck_assert_uint_eq(numbers_of(file.source, 1, numbers), 32);
    for (size_t i = 0; i < 32; i++) /* two of 20 */
        ck_assert_uint_eq(numbers[i], i / 2 * 20 + 9 + i % 2);
    close_records(&file);
    file = open_records(390, 1 << 16, PRESTO_FILE_PLAIN); /* 16 records have 1 MiB */
    (void)choose(file.source, 300);
    ck_assert_uint_eq(numbers_of(file.source, 1, numbers), 300);
    size_t stretches = 1;
    for (size_t i = 1; i < 300; i++)
        stretches += numbers[i] != numbers[i - 1] + 1;
    ck_assert_uint_eq(stretches, 18);
    close_records(&file);
}
END_TEST

START_TEST(of_a_file_that_is_read_from_its_start_the_first_are_taken) {
    static uint64_t numbers[MOST_RECORDS];
    record_file file = open_records(100, 10, PRESTO_FILE_GZIP);
    ck_assert_int_eq(choose(file.source, 20), PRESTO_END);
    ck_assert_uint_eq(numbers_of(file.source, 1, numbers), 20);
    for (size_t i = 0; i < 20; i++)
        ck_assert_uint_eq(numbers[i], i);
    close_records(&file);
    file = open_records(100, 10, PRESTO_FILE_GZIP);
    ck_assert_int_eq(choose(file.source, 100), PRESTO_OK); /* all of them */
    close_records(&file);
}
END_TEST

START_TEST(even_samples_of_a_part_are_refused) {
    record_file file = open_records(20, 3, PRESTO_FILE_PLAIN);
    presto_error err;
    presto_partition partition = {.ratio = "1/1", .part = "train", .even_samples = 3};
    ck_assert_status(presto__source_choose(file.source, &partition, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    partition.even_samples = 0;
    ck_assert_ok(presto__source_choose(file.source, &partition, &err), &err);
    partition = (presto_partition){.even_samples = 3};
    ck_assert_status(presto__source_choose(file.source, &partition, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    close_records(&file);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        any_number_of_samples_is_taken_from_all_over,
        they_stand_in_the_middle_of_equal_stretches,
        of_a_file_that_is_read_from_its_start_the_first_are_taken,
        even_samples_of_a_part_are_refused,
    };
    return presto_check_main("even", tests, sizeof tests / sizeof *tests, 120);
}
