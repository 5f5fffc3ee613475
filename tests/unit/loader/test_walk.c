/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign files that are not counted when they are opened: whatever the files, the damage and the
 * options, the stream is that of the same files with their records counted before.
 */
#define _XOPEN_SOURCE 700
#include "../../../loader/loader_internal.h"
#include "engine/workers_internal.h"

#include "walk_check.h"

/* ---- files ---- */

static void write_file(const char *path, uint64_t records, bool has_index, bool is_compressed) {
    static const uint64_t sizes[] = {0, 3, 40, 700, 20000};
    uint64_t most = sizes[pick(0, 4)] + 1;
    uint8_t payload[20001];
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto_error err;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    options.write_index = has_index;
    options.compression = (presto_file_compression)(is_compressed ? pick(1, 2) : 0);
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    for (uint64_t i = 0; i < records; i++) {
        size_t bytes = (size_t)pick(0, most - 1);
        memset(payload, (int)pick(0, 255), bytes);
        ck_assert_ok(presto__shard_writer_append(writer, presto_span_of(payload, bytes), &err),
                     &err);
    }
    ck_assert_ok(presto__shard_writer_finish(writer, NULL, &err), &err);
    presto__shard_writer_free(writer);
}

/* Flip a bit, or cut it. The beginning stays: it says that the file holds records. */
static void damage_file(const char *path) {
    size_t bytes;
    uint8_t *content = presto_check_read_file(path, &bytes);
    if (bytes > 100 && pick(0, 2) == 0)
        bytes = (size_t)pick(64, bytes - 1);
    for (uint64_t left = pick(0, 3); bytes > 64 && left > 0; left--)
        content[pick(64, bytes - 1)] ^= (uint8_t)(1 << pick(0, 7));
    presto_check_write_file(path, presto_span_of(content, bytes));
    free(content);
}

static void make_files(files *set, bool are_damaged) {
    *set = (files){.dir = presto_check_temp_dir(), .count = (size_t)pick(1, MOST_FILES)};
    for (size_t i = 0; i < set->count; i++) {
        snprintf(set->paths[i], sizeof set->paths[i], "%s/%zu.tfrecord", set->dir, i);
        set->list[i] = set->paths[i];
        write_file(set->paths[i], pick(0, 3) == 0 ? pick(0, 2) : pick(0, 300), pick(0, 3) == 0,
                   pick(0, 2) == 0);
        if (are_damaged && pick(0, 1) == 0)
            damage_file(set->paths[i]);
    }
}

/* ---- what a stream is ---- */

static void shuffle_through_buffer(presto_loader_options *options) {
    options->order.shuffle = PRESTO_SHUFFLE_BUFFER;
    options->order.shuffle_window = pick(1, (uint64_t)1 << pick(0, 10));
    options->order.seed = pick(0, 99);
}

/* The same options for both streams, so that batches are alike. */
static presto_loader_options random_options(bool tolerate) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.output = (presto_output_kind)pick(0, PRESTO_OUTPUT_COUNT);
    options.batch_samples = (size_t)pick(1, pick(0, 3) == 0 ? 500 : 30);
    options.range.epochs = pick(1, 3);
    options.range.drop_last = options.output != PRESTO_OUTPUT_RECORDS && pick(0, 3) == 0;
    if (pick(0, 4) == 0)
        options.range.limit_samples = pick(1, 1200);
    if (pick(0, 4) == 0)
        options.range.skip_samples = pick(0, 400);
    if (tolerate)
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
    if (pick(0, 1) == 0)
        shuffle_through_buffer(&options);
    if (options.output == PRESTO_OUTPUT_BATCHES && pick(0, 1) == 0)
        options.cache.bytes = (size_t)pick(1 << 14, 1 << pick(14, 23));
    return options;
}

static void choose_work(presto_loader_options *options) {
    options->threads = (unsigned)pick(0, 5);
    options->unaligned_views = pick(0, 1) == 0;
    options->memory.block_samples = (size_t)pick(1, 60);
    options->memory.block_bytes = (size_t)pick(1, 1 << pick(0, 20));
    options->memory.prefetch_bytes = (size_t)pick(1, 1 << pick(4, 22));
}

/* ---- tests ---- */

START_TEST(the_stream_is_that_of_counted_files) {
    uint64_t seed = start_random();
    static events got, wanted;
    for (size_t round = 0; round < presto_check_rounds(40); round++) {
        bool are_damaged = pick(0, 1) == 0;
        files set;
        make_files(&set, are_damaged);
        opened_files counted, walked;
        presto_error err;
        ck_assert_ok(open_files(&set, are_damaged, false, &counted, &err), &err);
        for (size_t i = 0; i < 3; i++) {
            presto_loader_options options = random_options(are_damaged);
            ck_assert_ok(open_files(&set, are_damaged, true, &walked, &err), &err);
            got.count = wanted.count = got.skipped_count = wanted.skipped_count = 0;
            choose_work(&options);
            (void)run(&counted, options, SIZE_MAX, &wanted, NULL);
            choose_work(&options);
            (void)run(&walked, options, SIZE_MAX, &got, NULL);
            assert_same(&got, &wanted, seed, round);
            /* The same source again: it may be counted by now. */
            got.count = got.skipped_count = 0;
            (void)run(&walked, options, SIZE_MAX, &got, NULL);
            assert_same(&got, &wanted, seed, round);
            close_files(&walked);
        }
        close_files(&counted);
        remove_files(&set);
    }
}
END_TEST

START_TEST(a_failure_comes_in_its_place_with_its_words) {
    uint64_t seed = start_random();
    static events got, wanted;
    for (size_t round = 0; round < presto_check_rounds(40); round++) {
        files set;
        make_files(&set, true);
        opened_files counted, walked;
        presto_error err = {.status = PRESTO_OK};
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.output = PRESTO_OUTPUT_RECORDS;
        if (round % 2 == 0)
            shuffle_through_buffer(&options);
        got.count = wanted.count = got.skipped_count = wanted.skipped_count = 0;
        presto_status status = open_files(&set, false, false, &counted, &err);
        presto_status walk_status = open_files(&set, false, true, &walked, &got.end);
        choose_work(&options);
        if (walk_status >= 0)
            (void)run(&walked, options, SIZE_MAX, &got, NULL);
        if (status >= 0) {
            (void)run(&counted, options, SIZE_MAX, &wanted, NULL);
            assert_same(&got, &wanted, seed, round);
        } else {
            /* Counting has met it, or the walk another one before. */
            ck_assert_int_lt(got.end.status, 0);
            ck_assert_ptr_nonnull(strstr(got.end.file, ".tfrecord"));
            ck_assert_uint_ne(got.end.record, PRESTO_NO_RECORD);
        }
        close_files(&walked);
        /* It comes in the same place, whoever meets it. */
        walk_status = open_files(&set, false, true, &walked, &wanted.end);
        wanted.count = wanted.skipped_count = 0;
        choose_work(&options);
        if (walk_status >= 0)
            (void)run(&walked, options, SIZE_MAX, &wanted, NULL);
        assert_same(&got, &wanted, seed, round);
        close_files(&counted);
        close_files(&walked);
        remove_files(&set);
    }
}
END_TEST

START_TEST(a_chain_of_stops_gives_the_stream_of_one_run) {
    uint64_t seed = start_random();
    static events got, wanted;
    for (size_t round = 0; round < presto_check_rounds(30); round++) {
        files set;
        make_files(&set, false);
        opened_files counted;
        presto_error err;
        presto_buffer state = {0};
        presto_loader_options options = random_options(false);
        options.range.limit_samples = options.range.skip_samples = 0;
        options.cache.bytes = 0;
        options.range.drop_last = false;
        options.output = PRESTO_OUTPUT_RECORDS;
        got.count = wanted.count = got.skipped_count = wanted.skipped_count = 0;
        choose_work(&options);
        ck_assert_ok(open_files(&set, false, false, &counted, &err), &err);
        (void)run(&counted, options, SIZE_MAX, &wanted, NULL);
        for (bool goes_on = true; goes_on;) {
            opened_files walked;
            presto_loader_options piece = options;
            choose_work(&piece);
            piece.range.state = presto_buffer_span(&state);
            presto_buffer next = {0};
            ck_assert_ok(open_files(&set, false, pick(0, 3) > 0, &walked, &err), &err);
            goes_on = run(&walked, piece, (size_t)pick(1, 40), &got, &next);
            ck_assert_status(got.end.status, PRESTO_OK, &got.end);
            presto_buffer_done(&state);
            state = next;
            close_files(&walked);
        }
        assert_same(&got, &wanted, seed, round);
        presto_buffer_done(&state);
        close_files(&counted);
        remove_files(&set);
    }
}
END_TEST

START_TEST(the_count_is_unknown_until_the_first_pass_has_ended) {
    start_random();
    files set = {.dir = presto_check_temp_dir(), .count = 1};
    opened_files data;
    presto_loader *loader;
    presto_batch *batch;
    presto_loader_options options;
    presto_error err;
    snprintf(set.paths[0], sizeof set.paths[0], "%s/a.tfrecord", set.dir);
    set.list[0] = set.paths[0];
    write_file(set.paths[0], 100, false, false);
    ck_assert_ok(open_files(&set, false, true, &data, &err), &err);
    ck_assert_uint_eq(presto_dataset_records(data.dataset), PRESTO_COUNT_UNKNOWN);
    ck_assert_uint_eq(presto_source_count(data.source), PRESTO_COUNT_UNKNOWN);
    presto_loader_options_defaults(&options);
    options.threads = 0;
    options.batch_samples = 10;
    options.memory.block_samples = 10;
    ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
    for (size_t i = 0; i < 10; i++) {
        ck_assert_uint_eq(presto_loader_epoch_samples(loader), PRESTO_COUNT_UNKNOWN);
        ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
        presto_batch_release(batch);
    }
    /* The last sample has been read, so its end is known. */
    ck_assert_uint_eq(presto_loader_epoch_samples(loader), 100);
    ck_assert_uint_eq(presto_source_count(data.source), 100);
    ck_assert_status(presto_loader_next(loader, &batch, &err), PRESTO_END, &err);
    presto_loader_free(loader);
    close_files(&data);
    /* Whoever needs the count gets it. */
    ck_assert_ok(open_files(&set, false, true, &data, &err), &err);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
    ck_assert_uint_eq(presto_loader_epoch_samples(loader), 100);
    presto_loader_free(loader);
    close_files(&data);
    ck_assert_ok(open_files(&set, false, true, &data, &err), &err);
    presto__source_truncate(data.source, 30);
    ck_assert_uint_eq(presto_source_count(data.source), 30);
    close_files(&data);
    remove_files(&set);
}
END_TEST

/* ---- an epoch that overtakes the one before ---- */

START_TEST(a_shuffle_through_a_buffer_begins_before_the_records_are_counted) {
    start_random();
    for (unsigned threads = 0; threads <= 4; threads++) {
        files set = {.dir = presto_check_temp_dir(), .count = 1};
        snprintf(set.paths[0], sizeof set.paths[0], "%s/a.tfrecord", set.dir);
        set.list[0] = set.paths[0];
        write_numbers(set.paths[0], 5000);
        opened_files data;
        presto_loader *loader;
        presto_batch *batch;
        presto_loader_options options;
        presto_error err;
        uint64_t sum = 0, count = 0;
        presto_loader_options_defaults(&options);
        options.threads = threads;
        options.batch_samples = 10;
        options.memory.block_samples = 10;
        options.memory.prefetch_bytes = 1; /* one packet at a time, so that none runs ahead */
        options.order.shuffle = PRESTO_SHUFFLE_BUFFER;
        options.order.shuffle_window = 100;
        ck_assert_ok(open_files(&set, false, true, &data, &err), &err);
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
        ck_assert_uint_eq(presto_loader_epoch_samples(loader), PRESTO_COUNT_UNKNOWN);
        ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
        ck_assert_uint_eq(presto_source_count(data.source), PRESTO_COUNT_UNKNOWN);
        for (presto_status status = PRESTO_OK; status == PRESTO_OK;
             status = presto_loader_next(loader, &batch, &err)) {
            for (size_t i = 0; i < batch->rows; i++, count++)
                sum += batch->sample_numbers[i];
            presto_batch_release(batch);
        }
        ck_assert_uint_eq(count, 5000);
        ck_assert_uint_eq(sum, 5000 * 4999 / 2);
        ck_assert_uint_eq(presto_source_count(data.source), 5000);
        presto_loader_free(loader);
        close_files(&data);
        remove_files(&set);
    }
}
END_TEST

/* The part in which the epoch ends is taken after the records were counted. Only its own positions
 * may be drawn: those behind the end have no number (AddressSanitizer sees it). */
START_TEST(a_part_that_the_end_of_the_epoch_cuts_is_drawn_up_to_there) {
    start_random();
    files set = {.dir = presto_check_temp_dir(), .count = 1};
    snprintf(set.paths[0], sizeof set.paths[0], "%s/a.tfrecord", set.dir);
    set.list[0] = set.paths[0];
    write_numbers(set.paths[0], 70);
    for (unsigned threads = 0; threads <= 4; threads++) {
        opened_files data;
        static events got;
        presto_loader_options options;
        presto_error err;
        presto_loader_options_defaults(&options);
        options.threads = threads;
        options.batch_samples = 100;
        options.memory.block_samples = 20; /* the fourth part of the packet has 10 of 20 */
        options.order.shuffle = PRESTO_SHUFFLE_BUFFER;
        options.order.shuffle_window = 50; /* the first or second part finds the end */
        got.count = got.skipped_count = 0;
        ck_assert_ok(open_files(&set, false, true, &data, &err), &err);
        ck_assert(!run(&data, options, SIZE_MAX, &got, NULL));
        ck_assert_status(got.end.status, PRESTO_OK, &got.end);
        ck_assert_uint_eq(got.count, 70);
        close_files(&data);
    }
    remove_files(&set);
}
END_TEST

START_TEST(two_loaders_may_use_one_source) {
    start_random();
    static events first, second;
    for (size_t round = 0; round < presto_check_rounds(20); round++) {
        files set;
        make_files(&set, false);
        opened_files data;
        presto_error err;
        presto_loader *early;
        presto_batch *batch;
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.output = PRESTO_OUTPUT_RECORDS;
        if (round % 2 == 0)
            shuffle_through_buffer(&options);
        choose_work(&options);
        ck_assert_ok(open_files(&set, false, true, &data, &err), &err);
        first.count = second.count = 0;
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &early, &err), &err);
        presto_status status = presto_loader_next(early, &batch, &err);
        if (status == PRESTO_OK) {
            note_batch(&first, batch);
            presto_batch_release(batch);
        }
        (void)run(&data, options, SIZE_MAX, &second, NULL);
        while (status == PRESTO_OK &&
               (status = presto_loader_next(early, &batch, &err)) == PRESTO_OK) {
            note_batch(&first, batch);
            presto_batch_release(batch);
        }
        ck_assert_status(status, PRESTO_END, &err);
        presto_loader_free(early);
        ck_assert_uint_eq(first.count, second.count);
        ck_assert_mem_eq(first.digests, second.digests, first.count * sizeof(uint32_t));
        close_files(&data);
        remove_files(&set);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_stream_is_that_of_counted_files,
        a_failure_comes_in_its_place_with_its_words,
        a_chain_of_stops_gives_the_stream_of_one_run,
        the_count_is_unknown_until_the_first_pass_has_ended,
        a_shuffle_through_a_buffer_begins_before_the_records_are_counted,
        a_part_that_the_end_of_the_epoch_cuts_is_drawn_up_to_there,
        two_loaders_may_use_one_source,
    };
    return presto_check_main("walk", tests, sizeof tests / sizeof *tests, 300);
}
