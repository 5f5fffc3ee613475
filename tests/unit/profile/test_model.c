/* SPDX-License-Identifier: Apache-2.0 */
/* The model on invented figures, whose answers are known. */
#include <math.h>

#include "predict/predict_internal.h"
#include "presto_check.h"

enum { CORES = 2, SAMPLES = 100 };

/* A machine with two processors that do not disturb each other: `raw` computes 10 ms a sample and
 * waits 5 ms, `packed` computes 1 ms (2 ms in codec "half", which halves its 1000 bytes). */
typedef struct made {
    presto__model model;
    presto__model_split splits[2];
    presto__model_codec raw_codecs[1], packed_codecs[2];
    const char *codecs[2];
} made;

static presto__pair both(double value) {
    return (presto__pair){value, value};
}

static presto__model_codec codec_of(double stored_bytes, double computing_s, double waiting_s) {
    return (presto__model_codec){.is_known = true,
                                 .stored_bytes = stored_bytes,
                                 .times.cached_s = both(computing_s),
                                 .wait_s = both(waiting_s),
                                 .cold_anchor = both(1),
                                 .cached_anchor = both(1),
                                 .cold_factor = 1,
                                 .cached_factor = 1,
                                 .preparation_factor = 1};
}

static void make(made *m) {
    *m = (made){.codecs = {"none", "half"}};
    m->raw_codecs[0] = codec_of(500, 10e-3, 5e-3);
    m->packed_codecs[0] = codec_of(1000, 1e-3, 4e-3);
    m->packed_codecs[1] = codec_of(500, 2e-3, 2e-3);
    m->packed_codecs[1].compress_s = both(3e-3);
    m->splits[0] = (presto__model_split){.name = PRESTO_UNPROCESSED,
                                         .known = PRESTO__SPLIT_MEASURED,
                                         .is_raw = true,
                                         .records = 1,
                                         .raw_bytes = 500,
                                         .plain_bytes = 500,
                                         .reads = 1,
                                         .codecs = m->raw_codecs};
    m->splits[1] = (presto__model_split){.name = "packed",
                                         .known = PRESTO__SPLIT_MEASURED,
                                         .records = 1,
                                         .raw_bytes = 984,
                                         .plain_bytes = 1000,
                                         .prepare_s = both(20e-3),
                                         .prepare_io_s = 1e-3,
                                         .list_s = 0.5,
                                         .codecs = m->packed_codecs};
    m->model = (presto__model){.cores = CORES,
                               .samples = SAMPLES,
                               .source_samples = 1000,
                               .overlap = 1,
                               .splits = m->splits,
                               .split_count = 2,
                               .codecs = m->codecs,
                               .codec_count = 2};
    m->model.storage.bytes_per_s_per_thread = 250e3; /* 4 ms for 1000 bytes */
}

static presto__rates rates_of(const made *m, const char *split, const char *codec, unsigned threads,
                              const presto__conditions *conditions) {
    const presto_strategy strategy = {.stored = split, .codec = codec, .threads = threads};
    presto__rates rates;
    ck_assert(presto__model_rates(&m->model, &strategy, conditions, &rates));
    return rates;
}

#define assert_near(value, wanted) ck_assert_double_eq_tol(value, wanted, 1e-6 * (wanted))

START_TEST(computing_and_waiting_are_added_where_nothing_overlaps) {
    made m;
    make(&m);
    presto__rates raw = rates_of(&m, PRESTO_UNPROCESSED, NULL, 1, NULL);
    assert_near(raw.cached_samples_per_s, 100);
    assert_near(raw.cold_samples_per_s, 1 / 15e-3);
    ck_assert_int_eq(raw.cold_bound, PRESTO_BOUND_CORES);
    presto__rates packed = rates_of(&m, "packed", "none", 1, NULL);
    assert_near(packed.cached_samples_per_s, 1000);
    assert_near(packed.cold_samples_per_s, 200);
    ck_assert_int_eq(packed.cold_bound, PRESTO_BOUND_STORAGE);
}
END_TEST

START_TEST(a_codec_computes_more_and_waits_less) {
    made m;
    make(&m);
    presto__rates half = rates_of(&m, "packed", "half", 1, NULL);
    assert_near(half.cached_samples_per_s, 500);
    assert_near(half.cold_samples_per_s, 250); /* 2 ms + 2 ms */
}
END_TEST

START_TEST(what_overlaps_takes_as_long_as_the_longer_of_both) {
    made m;
    make(&m);
    m.model.overlap = 1000;
    assert_near(rates_of(&m, "packed", "none", 1, NULL).cold_samples_per_s, 250);
    m.model.overlap = 2;
    assert_near(rates_of(&m, "packed", "none", 1, NULL).cold_samples_per_s, 1e3 / sqrt(17));
}
END_TEST

START_TEST(threads_multiply_and_disturb_each_other_as_measured) {
    made m;
    make(&m);
    assert_near(rates_of(&m, "packed", "none", 2, NULL).cached_samples_per_s, 2000);
    m.packed_codecs[0].times.cached_s.all = 1.6e-3; /* two threads are 1.25 times as fast as one */
    assert_near(rates_of(&m, "packed", "none", 2, NULL).cached_samples_per_s, 1250);
    assert_near(rates_of(&m, "packed", "none", 8, NULL).cached_samples_per_s, 5000);
    ck_assert_int_eq(rates_of(&m, "packed", "none", 8, NULL).cached_bound, PRESTO_BOUND_CORES);
}
END_TEST

START_TEST(more_threads_than_processors_bring_no_more_where_they_compute) {
    made m;
    make(&m);
    const presto__conditions two = {.storage = m.model.storage, .cores = 2};
    assert_near(rates_of(&m, "packed", "none", 8, &two).cached_samples_per_s, 2000);
    /* They help where they wait: 8 threads of 1 + 4 ms, on two processors that give 2000/s. */
    double cold = rates_of(&m, "packed", "none", 8, &two).cold_samples_per_s;
    ck_assert_double_lt(cold, 1600);
    ck_assert_double_gt(cold, 1500);
}
END_TEST

START_TEST(threads_that_wait_need_no_processors_of_their_own) {
    made m;
    make(&m);
    /* 4 of 1 + 4 ms compute less than one processor; 64 would want 13. */
    presto__rates few = rates_of(&m, "packed", "none", 4, NULL);
    ck_assert(!few.is_elsewhere);
    ck_assert_double_eq_tol(few.cold_samples_per_s, 800, 8);
    assert_near(few.cached_samples_per_s, 2000); /* of the two that are here */
    presto__rates many = rates_of(&m, "packed", "none", 64, NULL);
    ck_assert(many.is_elsewhere);
    assert_near(many.cached_samples_per_s, 64000);
    ck_assert(!rates_of(&m, "packed", "none", 2, NULL).is_elsewhere);
    m.packed_codecs[0].wait_s = both(400e-3); /* 64 of 1 + 400 ms want a sixth of one */
    many = rates_of(&m, "packed", "none", 64, NULL);
    ck_assert(!many.is_elsewhere);
    ck_assert_double_eq_tol(many.cold_samples_per_s, 64 / 401e-3, 1);
}
END_TEST

START_TEST(starts_that_are_known_apart_count_once_in_the_whole_source) {
    made m;
    make(&m);
    m.splits[1].start_s = both(0.1);
    m.splits[1].is_apart = true;
    assert_near(rates_of(&m, "packed", "none", 1, NULL).cold_samples_per_s, 1000 / (5 + 0.1));
}
END_TEST

START_TEST(what_is_shared_limits_all_threads_together) {
    made m;
    make(&m);
    presto__conditions conditions = presto__model_conditions(&m.model);
    conditions.storage.bytes_per_s = 100e3; /* 100 samples */
    presto__rates slow = rates_of(&m, "packed", "none", 64, &conditions);
    assert_near(slow.cold_samples_per_s, 100);
    ck_assert_int_eq(slow.cold_bound, PRESTO_BOUND_STORAGE);
    assert_near(rates_of(&m, "packed", "half", 64, &conditions).cold_samples_per_s, 200);
    conditions.storage.bytes_per_s = 0;
    conditions.storage.reads_per_s = 30;
    presto__rates reads = rates_of(&m, PRESTO_UNPROCESSED, NULL, 64, &conditions);
    assert_near(reads.cold_samples_per_s, 30);
    ck_assert_int_eq(reads.cold_bound, PRESTO_BOUND_STORAGE_READS);
    m.splits[1].handover_s = 1e-2;
    ck_assert_int_eq(rates_of(&m, "packed", "none", 64, NULL).cached_bound, PRESTO_BOUND_HANDOVER);
    assert_near(rates_of(&m, "packed", "none", 64, NULL).cached_samples_per_s, 100);
    conditions.consumer_samples_per_s = 7;
    ck_assert_int_eq(rates_of(&m, "packed", "none", 1, &conditions).cached_bound,
                     PRESTO_BOUND_CONSUMER);
    assert_near(rates_of(&m, "packed", "none", 1, &conditions).cached_samples_per_s, 7);
}
END_TEST

START_TEST(another_storage_changes_the_waiting) {
    made m;
    make(&m);
    presto__conditions half = presto__model_conditions(&m.model);
    half.storage.bytes_per_s_per_thread /= 2;
    assert_near(rates_of(&m, "packed", "none", 1, &half).cold_samples_per_s, 1e3 / 9);
    assert_near(rates_of(&m, "packed", "none", 1, &half).cached_samples_per_s, 1000);
    half.storage.bytes_per_s_per_thread = 0; /* no limit */
    assert_near(rates_of(&m, "packed", "none", 1, &half).cold_samples_per_s, 1000);
}
END_TEST

START_TEST(the_start_of_an_epoch_is_shared_by_its_samples) {
    made m;
    make(&m);
    m.splits[1].start_s = both(0.1);
    assert_near(rates_of(&m, "packed", "none", 1, NULL).cold_samples_per_s, 1 / (5e-3 + 1e-3));
}
END_TEST

START_TEST(each_file_more_than_the_anchor_has_costs_an_epoch_the_same) {
    made m;
    make(&m);
    m.splits[1].files = (presto__model_files){
        .tried = 16, .cold_s = {2e-3, 1e-3}, .cached_s = {0.5e-3, 0.25e-3}, .prepare_s = 10e-3};
    presto_strategy strategy = {.stored = "packed", .codec = "none", .threads = 1, .shards = 1};
    presto__rates rates;
    presto__offline done;
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &rates));
    assert_near(rates.cold_samples_per_s, 200); /* as many as threads */
    strategy.shards = 11;
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &rates));
    assert_near(rates.cold_samples_per_s, SAMPLES / (0.5 + 10 * 2e-3));
    assert_near(rates.cached_samples_per_s, SAMPLES / (0.1 + 10 * 0.5e-3));
    ck_assert(presto__model_offline(&m.model, &strategy, 1000, &done));
    assert_near(done.preparation_s, 0.5 + 1000 * 21e-3 + 10 * 10e-3);
    strategy.threads = 2;
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &rates));
    assert_near(rates.cached_samples_per_s, SAMPLES / (0.05 + 9 * 0.25e-3));
    /* Its first read waits for storage, on two threads at a time: 6 ms for each file there. */
    presto__conditions far = presto__model_conditions(&m.model);
    far.storage.latency_s = 10e-3;
    strategy.threads = 2;
    strategy.shards = 2;
    presto__rates few, many;
    ck_assert(presto__model_rates(&m.model, &strategy, &far, &few));
    strategy.shards = 12;
    ck_assert(presto__model_rates(&m.model, &strategy, &far, &many));
    assert_near(SAMPLES / many.cold_samples_per_s - SAMPLES / few.cold_samples_per_s,
                10 * (1e-3 + 10e-3 / 2));
    assert_near(SAMPLES / many.cached_samples_per_s - SAMPLES / few.cached_samples_per_s,
                10 * 0.25e-3);
    strategy.shards = 11;
    m.model.shards = 11; /* the anchors have as many */
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &rates));
    /* Files that are saved are not worth more than half of the rest. */
    strategy.shards = 1;
    m.splits[1].files.prepare_s = 1e3;
    ck_assert(presto__model_offline(&m.model, &strategy, 1000, &done));
    assert_near(done.preparation_s, 0.5 + 1000 * 11e-3 / 2);
    m.splits[1].files.cached_s.all = 1e3;
    presto__rates saved;
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &saved));
    assert_near(saved.cached_samples_per_s, 2 * 2000);
    m.splits[1].files.cached_s.all = 0.25e-3;
    strategy.shards = 0; /* as the anchor */
    presto__rates anchor;
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &anchor));
    assert_near(anchor.cached_samples_per_s, rates.cached_samples_per_s);
}
END_TEST

/* Where opening a file takes long, an epoch of more files is longer by that; of the whole source. */
START_TEST(files_of_a_storage_that_is_played_are_opened_as_it_says) {
    made m;
    make(&m);
    m.model.is_storage_given = true;
    m.model.storage.open_s = 0.1;
    m.model.source_samples = UINT64_C(1000) * SAMPLES;
    m.splits[1].is_apart = true;
    presto_strategy strategy = {.stored = "packed", .codec = "none", .threads = 1, .shards = 1};
    presto__rates few, many, twice;
    double all = 1000.0 * SAMPLES;
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &few));
    strategy.shards = 9;
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &many));
    double each_s = 0.1 + m.model.storage.latency_s;
    assert_near(all / many.cold_samples_per_s - all / few.cold_samples_per_s, 8 * each_s);
    presto__conditions slow = presto__model_conditions(&m.model);
    slow.storage.open_s = 0.2; /* the anchor had one file, which is part of its start */
    ck_assert(presto__model_rates(&m.model, &strategy, &slow, &twice));
    assert_near(all / twice.cold_samples_per_s - all / many.cold_samples_per_s, 8 * 0.1);
    strategy.shards = 8;
    strategy.threads = 8; /* some of them wait for some of it */
    presto__rates eight, one;
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &eight));
    strategy.shards = 1;
    ck_assert(presto__model_rates(&m.model, &strategy, NULL, &one));
    double longer_s = all / eight.cold_samples_per_s - all / one.cold_samples_per_s;
    ck_assert_double_gt(longer_s, 0);
    ck_assert_double_lt(longer_s, 7 * 0.1);
}
END_TEST

START_TEST(one_disturbed_look_at_files_does_not_count) {
    made m;
    make(&m);
    presto__model_split splits[4] = {m.splits[0]};
    for (size_t i = 1; i < 4; i++)
        splits[i].files = (presto__model_files){.tried = 8,
                                                .cold_s = {(double)i, 1},
                                                .cached_s = {1, 2},
                                                .prepare_s = i == 2 ? 100 : 3};
    m.model.splits = splits;
    m.model.split_count = 4;
    presto__join_files(&m.model);
    for (size_t i = 1; i < 4; i++) {
        ck_assert_double_eq(splits[i].files.cold_s.one, 2);
        ck_assert_double_eq(splits[i].files.cached_s.all, 2);
        ck_assert_double_eq(splits[i].files.prepare_s, 3);
    }
    ck_assert_double_eq(splits[0].files.cold_s.one, 0); /* it stores none */
}
END_TEST

START_TEST(close_limits_cost_a_little_of_both) {
    made m;
    make(&m);
    m.splits[1].handover_s = 1e-3; /* as much as the worker computes */
    double rate = rates_of(&m, "packed", "none", 1, NULL).cached_samples_per_s;
    assert_near(rate, 1000 * pow(2, -1.0 / 12));
}
END_TEST

START_TEST(offline_time_and_storage_grow_with_the_samples) {
    made m;
    make(&m);
    presto__offline done;
    presto_strategy strategy = {.stored = "packed", .codec = "half", .threads = 2};
    ck_assert(presto__model_offline(&m.model, &strategy, 1000, &done));
    assert_near(done.stored_bytes, 500e3);
    /* (20 + 3) ms by two threads, and half of 1 ms of writing, after 0.5 s of listing */
    assert_near(done.preparation_s, 0.5 + 1000 * (11.5e-3 + 0.5e-3));
    strategy = (presto_strategy){.stored = PRESTO_UNPROCESSED, .threads = 2};
    ck_assert(presto__model_offline(&m.model, &strategy, 1000, &done));
    ck_assert(done.preparation_s == 0);
}
END_TEST

START_TEST(what_was_not_tried_is_not_known) {
    made m;
    make(&m);
    presto__rates rates;
    const presto_strategy unknown[] = {
        {.stored = "packed", .codec = "other", .threads = 1},
        {.stored = "packed", .codec = NULL, .threads = 1},
        {.stored = PRESTO_UNPROCESSED, .codec = "none", .threads = 1},
        {.stored = "nose", .codec = "none", .threads = 1}};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        ck_assert(!presto__model_rates(&m.model, &unknown[i], NULL, &rates));
    m.packed_codecs[1].is_known = false;
    const presto_strategy failed = {.stored = "packed", .codec = "half", .threads = 1};
    ck_assert(!presto__model_rates(&m.model, &failed, NULL, &rates));
}
END_TEST

/* Splits are as the anchors were measured, and "half" as it was looked at; then the model is
 * fitted. */
static void make_measured(made *m) {
    make(m);
    presto__model_split *split = &m->splits[1];
    split->times.cached_s = (presto__pair){1e-3, 1.5e-3};
    split->times.cold_s = (presto__pair){3e-3, 7e-3};
    split->start_s = both(0.02);
    split->handover_s = 0.5e-3;
    m->splits[0].known = PRESTO__SPLIT_UNKNOWN;
    split->codecs[1].tried =
        (presto__model_trial){.samples = SAMPLES,
                              .raw_bytes = 984,
                              .coded = {.cold_s = {3.5e-3, 5e-3}, .cached_s = {2e-3, 2.5e-3}}};
}

/* Workers of "packed" in this codec take so long for a sample: one alone, and each of two. */
static void assert_takes(const made *m, const char *codec, presto__worker_times times) {
    presto__rates one = rates_of(m, "packed", codec, 1, NULL);
    presto__rates all = rates_of(m, "packed", codec, 2, NULL);
    assert_near(one.cached_samples_per_s, 1 / times.cached_s.one);
    assert_near(all.cached_samples_per_s, 2 / times.cached_s.all);
    assert_near(one.cold_samples_per_s, 1 / times.cold_s.one);
    assert_near(all.cold_samples_per_s, 2 / times.cold_s.all);
}

START_TEST(the_anchors_come_out_as_they_were_measured) {
    made m;
    make_measured(&m);
    presto__model_fit(&m.model);
    assert_takes(&m, "none",
                 (presto__worker_times){.cached_s = {1e-3, 1.5e-3}, .cold_s = {3e-3, 7e-3}});
}
END_TEST

START_TEST(a_codec_comes_out_as_it_was_looked_at) {
    made m;
    make_measured(&m);
    presto__model_fit(&m.model);
    assert_takes(&m, "half",
                 (presto__worker_times){.cached_s = {2e-3, 2.5e-3}, .cold_s = {3.5e-3, 5e-3}});
}
END_TEST

/* Half of the samples were loaded, in records of half the size. The codec took 0.4 ms of them,
 * storage 1.1 ms, and the start of an epoch of 20 ms 0.4 ms; it is half of that for all samples. */
START_TEST(a_look_at_a_part_tells_the_difference) {
    made m;
    make_measured(&m);
    m.model.is_storage_given = true; /* what the anchor waited does not count */
    presto__model_trial *tried = &m.packed_codecs[1].tried;
    tried->samples = SAMPLES / 2;
    tried->raw_bytes = 492;
    tried->coded = (presto__worker_times){both(2.4e-3), both(0.9e-3)};
    tried->plain_cached_s = both(0.5e-3);
    presto__model_fit(&m.model);
    presto__rates one = rates_of(&m, "packed", "half", 1, NULL);
    assert_near(one.cached_samples_per_s, 1 / 1.8e-3);
    assert_near(one.cold_samples_per_s, 1 / (1.8e-3 + 2.2e-3 + 0.2e-3));
}
END_TEST

/* Plain records took longer than those in the codec: something else ran. */
START_TEST(a_disturbed_look_makes_no_codec_free) {
    made m;
    make_measured(&m);
    m.model.is_storage_given = true;
    presto__model_codec *codec = &m.packed_codecs[1];
    codec->tried.samples = SAMPLES / 2;
    codec->tried.coded = (presto__worker_times){both(0.9e-3), both(0.9e-3)};
    codec->tried.plain_cached_s = both(2e-3);
    codec->decompress_s = both(0.5e-3);
    presto__model_fit(&m.model);
    presto__rates one = rates_of(&m, "packed", "half", 1, NULL);
    assert_near(one.cached_samples_per_s, 1 / 1.4e-3);
    ck_assert_double_le(one.cold_samples_per_s, 1.0001 * one.cached_samples_per_s);
}
END_TEST

/* Whatever is cached is done in a cold epoch, too. */
START_TEST(a_cached_look_that_took_longer_than_a_cold_one_was_disturbed) {
    made m;
    make_measured(&m);
    m.packed_codecs[1].tried.coded = (presto__worker_times){{3.5e-3, 5e-3}, {9e-3, 12e-3}};
    presto__model_fit(&m.model);
    assert_takes(&m, "half",
                 (presto__worker_times){.cached_s = {3.5e-3, 5e-3}, .cold_s = {3.5e-3, 5e-3}});
}
END_TEST

/* The anchor waited 4 ms for twice the bytes, so 2 ms count as much as the 8 ms of the look. */
static void assert_both_count(const made *m) {
    for (unsigned threads = 1; threads <= 2; threads++)
        ck_assert_double_eq_tol(rates_of(m, "packed", "half", threads, NULL).cold_samples_per_s,
                                threads / 4e-3, 1);
}

START_TEST(the_anchor_counts_as_much_as_a_look_at_a_part_or_at_long_epochs) {
    made m;
    make_measured(&m);
    m.splits[1].start_s = both(0);
    m.splits[1].times =
        (presto__worker_times){both(4e-3), both(0.1e-3)}; /* nearly all is waiting */
    presto__model_trial *tried = &m.packed_codecs[1].tried;
    tried->coded = (presto__worker_times){both(8e-3), both(0.1e-3)};
    tried->plain_cached_s = both(0.1e-3);
    presto__model_fit(&m.model);
    assert_takes(&m, "half", tried->coded);
    tried->samples = SAMPLES / 2;
    presto__model_fit(&m.model);
    assert_both_count(&m);
    tried->samples = SAMPLES;
    m.packed_codecs[1].stored_bytes = 200e6 / SAMPLES;
    m.packed_codecs[0].stored_bytes = m.splits[1].plain_bytes = 400e6 / SAMPLES;
    presto__model_fit(&m.model);
    assert_both_count(&m);
    m.model.is_storage_given = true; /* it is always the same */
    presto__model_fit(&m.model);
    assert_takes(&m, "half", tried->coded);
}
END_TEST

START_TEST(a_codec_that_makes_no_difference_is_estimated) {
    made m;
    make_measured(&m);
    m.packed_codecs[1].tried.samples = 0;
    m.packed_codecs[1].decompress_s = both(0.1e-3);
    m.splits[1].read_s_per_byte = 0.2e-6;
    presto__model_fit(&m.model);
    /* 0.1 ms more, and 500 bytes less to read */
    presto__rates one = rates_of(&m, "packed", "half", 1, NULL);
    assert_near(one.cached_samples_per_s, 1 / 1e-3);
    assert_near(one.cold_samples_per_s, 1 / 3e-3);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        computing_and_waiting_are_added_where_nothing_overlaps,
        a_codec_computes_more_and_waits_less,
        what_overlaps_takes_as_long_as_the_longer_of_both,
        threads_multiply_and_disturb_each_other_as_measured,
        more_threads_than_processors_bring_no_more_where_they_compute,
        threads_that_wait_need_no_processors_of_their_own,
        starts_that_are_known_apart_count_once_in_the_whole_source,
        what_is_shared_limits_all_threads_together,
        another_storage_changes_the_waiting,
        the_start_of_an_epoch_is_shared_by_its_samples,
        each_file_more_than_the_anchor_has_costs_an_epoch_the_same,
        files_of_a_storage_that_is_played_are_opened_as_it_says,
        one_disturbed_look_at_files_does_not_count,
        close_limits_cost_a_little_of_both,
        offline_time_and_storage_grow_with_the_samples,
        what_was_not_tried_is_not_known,
        the_anchors_come_out_as_they_were_measured,
        a_codec_comes_out_as_it_was_looked_at,
        a_look_at_a_part_tells_the_difference,
        a_disturbed_look_makes_no_codec_free,
        a_cached_look_that_took_longer_than_a_cold_one_was_disturbed,
        the_anchor_counts_as_much_as_a_look_at_a_part_or_at_long_epochs,
        a_codec_that_makes_no_difference_is_estimated,
    };
    return presto_check_main("profile/model", tests, sizeof tests / sizeof *tests, 60);
}
