/* SPDX-License-Identifier: Apache-2.0 */
/* The start of an epoch and what it delivers then, apart; and the copies that make epochs long. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <unistd.h>

#include "profile_internal.h"
#include "trial/load_internal.h"
#include "trial_check.h"

#define assert_near(value, wanted) ck_assert_double_eq_tol(value, wanted, 1e-9 * (wanted))

/* An epoch of `samples` that takes 0.2 s, and then 1 ms a sample. */
static double takes(double samples) {
    return 0.2 + samples * 1e-3;
}

static presto__epochs run_of(uint64_t samples, double second) {
    presto__epochs run = {.epochs = 1, .samples = samples, .epoch_s = takes((double)samples)};
    run.measure.wall_s = run.epoch_s;
    run.second_samples = second;
    run.second_s = second > 0 ? takes(second) : 0;
    return run;
}

static presto__start starts(double seconds) {
    return (presto__start){.seconds = seconds};
}

START_TEST(two_lengths_of_epochs_tell_the_start_and_the_rate_of_the_whole) {
    const double seconds[] = {400, 25, 3000};
    for (size_t i = 0; i < 3; i++) {
        presto__epochs run = run_of(200, seconds[i]);
        assert_near(presto__epochs_start_s(&run), 0.2);
        assert_near(presto__epochs_whole_rate(&run, starts(0.2), 1e6), 1e6 / takes(1e6));
        assert_near(presto__epochs_longest_samples(&run), fmax(200, seconds[i]));
    }
}
END_TEST

START_TEST(a_whole_source_that_was_measured_is_not_extrapolated) {
    presto__epochs run = run_of(200, 0);
    ck_assert(isnan(presto__epochs_start_s(&run)));
    assert_near(presto__epochs_whole_rate(&run, starts(NAN), 200), 200 / takes(200));
    run = run_of(200, 400);
    assert_near(presto__epochs_whole_rate(&run, starts(0.2), 300), 400 / takes(400));
}
END_TEST

START_TEST(epochs_that_contradict_each_other_have_no_start) {
    presto__epochs run = run_of(200, 400);
    run.second_s = 0.3; /* the longer one took less */
    ck_assert_double_eq(presto__epochs_start_s(&run), 0);
    assert_near(presto__epochs_whole_rate(&run, starts(0), 1e6), 400 / 0.3);
    run.second_s = 1.2; /* it took longer than so many times the shorter one */
    ck_assert_double_eq(presto__epochs_start_s(&run), 0);
    assert_near(presto__epochs_whole_rate(&run, starts(0), 1e6), 400 / 1.2);
}
END_TEST

/* Where threads wait together, two epochs of one file tell it, and the run's own have no say. */
START_TEST(two_more_epochs_count_instead_of_the_run_s_own) {
    presto__epochs run = run_of(200, 96);
    run.epoch_s = run.measure.wall_s = 77;
    run.less_samples = 32;
    run.less_s = takes(32);
    run.files_s = 3;
    presto__trial trial = {.cold = &run, .cold_count = 1};
    const presto__start start = presto__trial_start(&trial);
    assert_near(start.seconds, 0.2);
    assert_near(start.files_s, 3);
    assert_near(presto__epochs_longest_samples(&run), 96);
    assert_near(presto__epochs_whole_rate(&run, start, 1e6), 1e6 / (3 + takes(1e6)));
}
END_TEST

START_TEST(the_start_is_in_the_middle_of_the_runs_with_its_error) {
    presto__epochs runs[3] = {run_of(200, 400), run_of(200, 400), run_of(200, 400)};
    presto__trial trial = {.cold = runs, .cold_count = 3};
    assert_near(presto__trial_start(&trial).seconds, 0.2);
    ck_assert_double_le(presto__trial_start(&trial).error_s, 1e-9);
    runs[2].second_s += 0.01; /* 50 us a sample more: its start is 10 ms less */
    assert_near(presto__trial_start(&trial).seconds, 0.2);
    double sd = 0.01 / sqrt(3);
    ck_assert_double_eq_tol(presto__trial_start(&trial).error_s, 4.303 * sd / sqrt(3), 1e-4);
    trial.cold_count = 0;
    ck_assert(isnan(presto__trial_start(&trial).seconds));
}
END_TEST

/* ---- copies ---- */

enum { FILES = 48, MEASURED = 8, FILE_BYTES = 20000 };

static void set_up(place *at, const char *codec) {
    set_up_place(at, (place_files){FILES, FILE_BYTES}, codec, MEASURED, 0.2);
}

/* So often is each file's content among the records, in the order of the trial's. */
static void check_records(const char *dir, const char *of, uint64_t times) {
    presto_shard_options options;
    presto_dataset *copies = NULL, *once = NULL;
    presto_error err;
    presto_block block = {0}, first = {0};
    presto_shard_options_defaults(&options);
    ck_assert_ok(presto_dataset_open(&dir, 1, &options, &copies, &err), &err);
    ck_assert_ok(presto_dataset_open(&of, 1, &options, &once, &err), &err);
    ck_assert_uint_eq(presto_dataset_records(copies), times * presto_dataset_records(once));
    ck_assert_uint_eq(presto_dataset_shard_count(copies), presto_dataset_shard_count(once));
    for (size_t s = 0; s < presto_dataset_shard_count(once); s++) {
        presto_shard *many = NULL, *few = NULL;
        ck_assert_ok(presto_dataset_shard_at(copies, s, &many, &err), &err);
        ck_assert_ok(presto_dataset_shard_at(once, s, &few, &err), &err);
        ck_assert_ok(presto_shard_index(many, false, NULL, &err), &err);
        ck_assert_ok(presto_shard_index(few, false, NULL, &err), &err);
        uint64_t records = presto_shard_records(few);
        for (uint64_t r = 0; r < presto_shard_records(many); r++) {
            ck_assert_ok(presto_shard_fetch(many, r, 1, &block, &err), &err);
            ck_assert_ok(presto_shard_fetch(few, r % records, 1, &first, &err), &err);
            ck_assert_int_eq(block.records[0].status, PRESTO_OK);
            ck_assert_uint_eq(block.records[0].payload.bytes, first.records[0].payload.bytes);
            ck_assert_mem_eq(block.records[0].payload.data, first.records[0].payload.data,
                             first.records[0].payload.bytes);
        }
    }
    presto_block_done(&block);
    presto_block_done(&first);
    presto_dataset_free(copies);
    presto_dataset_free(once);
}

START_TEST(copies_hold_each_record_as_often_and_are_no_part_of_the_sizes) {
    static const char *const codecs[] = {"none", "zlib:1"};
    for (size_t c = 0; c < 2; c++) {
        place at;
        presto_error err;
        set_up(&at, codecs[c]);
        uint64_t stored = at.trial.result.stored_bytes;
        ck_assert_ok(presto__copies_make(&at.runner, &at.trial, 3, &err), &err);
        check_records(at.trial.copies.dir, at.trial.dir, 3);
        ck_assert_uint_eq(at.trial.copies.bytes, 3 * stored);
        ck_assert_uint_eq(at.trial.result.stored_bytes, stored);
        ck_assert_uint_eq(at.trial.dir_bytes, stored);
        char *dir = strdup(at.trial.copies.dir);
        presto__trial_remove(&at.trial);
        ck_assert_int_ne(access(dir, F_OK), 0);
        free(dir);
        tear_down_place(&at);
    }
}
END_TEST

START_TEST(copies_may_be_in_one_file) {
    static const char *const codecs[] = {"none", "zlib:1"};
    for (size_t c = 0; c < 2; c++) {
        place at;
        presto_error err;
        set_up(&at, codecs[c]);
        ck_assert_ok(presto__copies_make_one(&at.runner, &at.trial, 2 * MEASURED + 3, &err), &err);
        presto_stream once = {0}, copies = {0};
        ck_assert_ok(presto__trial_stream_open(&at.runner, at.trial.dir, &once, &err), &err);
        ck_assert_ok(presto__trial_stream_open(&at.runner, at.trial.copies.dir, &copies, &err),
                     &err);
        ck_assert_uint_eq(presto_dataset_shard_count(copies.dataset), 1);
        ck_assert_uint_eq(presto_dataset_records(copies.dataset), 2 * MEASURED + 3);
        presto_shard *one = NULL;
        presto_block block = {0}, first = {0};
        ck_assert_ok(presto_dataset_shard_at(copies.dataset, 0, &one, &err), &err);
        for (uint64_t r = 0; r < 2 * MEASURED + 3; r++) {
            uint64_t record;
            presto_shard *of = NULL;
            size_t s = presto_dataset_locate(once.dataset, r % MEASURED, &record);
            ck_assert_ok(presto_dataset_shard_at(once.dataset, s, &of, &err), &err);
            ck_assert_ok(presto_shard_fetch(of, record, 1, &first, &err), &err);
            ck_assert_ok(presto_shard_fetch(one, r, 1, &block, &err), &err);
            ck_assert_uint_eq(block.records[0].payload.bytes, first.records[0].payload.bytes);
            ck_assert_mem_eq(block.records[0].payload.data, first.records[0].payload.data,
                             first.records[0].payload.bytes);
        }
        presto_block_done(&block);
        presto_block_done(&first);
        presto_stream_close(&once);
        presto_stream_close(&copies);
        tear_down_place(&at);
    }
}
END_TEST

/* A storage that is played counts its reads. Whoever reads a file to its end without a gap reads once;
 * the beginning and the index of each file were read before. */
START_TEST(no_epoch_that_is_measured_reads_indexes) {
    place at;
    presto_error err;
    set_up(&at, "none");
    at.options.storage.latency_s = 1e-6;
    at.trial.result.strategy.threads = 1;
    ck_assert_ok(presto__trial_load(&at.runner, &at.trial, &err), &err);
    const presto__epochs *cold = &at.trial.cold[0];
    ck_assert_uint_eq(cold->storage_reads, 2 * cold->epochs); /* of two files */
    ck_assert_double_eq(cold->less_samples, 0);               /* nobody waits for others */
    tear_down_place(&at);
}
END_TEST

/* Parts of a thread have all of a packet here. */
START_TEST(threads_that_wait_together_have_epochs_of_whole_rounds_in_one_file) {
    static const char *const codecs[] = {"none", NULL};
    enum { MANY = 60, SMALL_BYTES = 300000 };
    for (size_t c = 0; c < 2; c++) {
        place at;
        presto_error err;
        set_up_place(&at, (place_files){MANY, SMALL_BYTES}, codecs[c], 16, 1e-9);
        at.options.storage = (presto_storage){.latency_s = 1e-6, .open_s = 1e-6};
        at.options.run_s = 1e-9;
        at.trial.result.strategy.threads = 4;
        ck_assert_ok(presto__trial_load(&at.runner, &at.trial, &err), &err);
        const presto__epochs *cold = &at.trial.cold[0];
        double round = 4 * presto__mean_part(cold->cut);
        ck_assert_double_gt(round, 0);
        ck_assert_double_lt(cold->less_samples, 2 * round);
        ck_assert_double_ge(cold->second_samples, cold->less_samples + 2 * round - 8);
        ck_assert(cold->less_s > 0 && cold->second_s > 0 && cold->files_s >= 0);
        ck_assert_uint_eq(at.trial.copies.in_one,
                          codecs[c] != NULL ? (uint64_t)cold->second_samples : 0);
        ck_assert_ok(presto__trial_lap(&at.runner, &at.trial, 1, &err), &err);
        ck_assert_double_gt(at.trial.laps[0].samples_per_s, 0);
        tear_down_place(&at);
    }
}
END_TEST

START_TEST(a_run_has_a_second_epoch_which_is_of_the_whole_at_most) {
    static const char *const codecs[] = {"none", NULL};
    for (size_t c = 0; c < 2; c++) {
        place at;
        presto_error err;
        set_up(&at, codecs[c]);
        ck_assert_ok(presto__trial_load(&at.runner, &at.trial, &err), &err);
        const presto__epochs *cold = &at.trial.cold[0];
        ck_assert_double_gt(cold->second_s, 0);
        ck_assert_double_ge(cold->second_samples, 2 * MEASURED);
        ck_assert_double_le(cold->second_samples, FILES);
        ck_assert_uint_eq(cold->samples, MEASURED * cold->epochs);
        ck_assert_ok(presto__trial_lap(&at.runner, &at.trial, 1, &err), &err);
        ck_assert_double_gt(at.trial.laps[0].samples_per_s, 0);
        tear_down_place(&at);
    }
}
END_TEST

/* An epoch that is long is compared with one of fewer records, in as many files. */
START_TEST(a_shorter_epoch_opens_as_many_files) {
    place at;
    presto_error err;
    set_up_place(&at, (place_files){FILES, FILE_BYTES}, "none", 40, 1e-9);
    ck_assert_ok(presto__trial_load(&at.runner, &at.trial, &err), &err);
    ck_assert_double_eq(at.trial.cold[0].second_samples, 2 * 3); /* of 20 records each */
    ck_assert_double_gt(at.trial.cold[0].second_s, 0);
    const char *dir = at.trial.copies.dir;
    presto_shard_options options;
    presto_dataset *part = NULL;
    presto_shard_options_defaults(&options);
    ck_assert_ok(presto_dataset_open(&dir, 1, &options, &part, &err), &err);
    ck_assert_uint_eq(presto_dataset_shard_count(part), 2);
    ck_assert_uint_eq(presto_dataset_records(part), 6);
    presto_dataset_free(part);
    ck_assert_uint_eq(at.trial.dir_bytes, at.trial.result.stored_bytes);
    ck_assert_ok(presto__trial_lap(&at.runner, &at.trial, 1, &err), &err);
    ck_assert_ok(presto__copies_make(&at.runner, &at.trial, 2, &err), &err); /* instead */
    check_records(at.trial.copies.dir, at.trial.dir, 2);
    tear_down_place(&at);
}
END_TEST

START_TEST(without_room_an_epoch_has_no_second_one) {
    place at;
    presto_error err;
    set_up(&at, "none");
    at.options.work_bytes = at.trial.dir_bytes + 1;
    ck_assert_ok(presto__trial_load(&at.runner, &at.trial, &err), &err);
    ck_assert_double_eq(at.trial.cold[0].second_samples, 0);
    ck_assert_ok(presto__trial_lap(&at.runner, &at.trial, 1, &err), &err);
    tear_down_place(&at);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        two_lengths_of_epochs_tell_the_start_and_the_rate_of_the_whole,
        a_whole_source_that_was_measured_is_not_extrapolated,
        epochs_that_contradict_each_other_have_no_start,
        two_more_epochs_count_instead_of_the_run_s_own,
        the_start_is_in_the_middle_of_the_runs_with_its_error,
        copies_may_be_in_one_file,
        no_epoch_that_is_measured_reads_indexes,
        threads_that_wait_together_have_epochs_of_whole_rounds_in_one_file,
        copies_hold_each_record_as_often_and_are_no_part_of_the_sizes,
        a_run_has_a_second_epoch_which_is_of_the_whole_at_most,
        a_shorter_epoch_opens_as_many_files,
        without_room_an_epoch_has_no_second_one,
    };
    return presto_check_main("profile/steady", tests, sizeof tests / sizeof *tests, 60);
}
