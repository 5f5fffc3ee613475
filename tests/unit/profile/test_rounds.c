/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs of a sample and of the whole on a storage whose truth is known: threads that wait, files that
 * are opened. The storage and the loader's threads are played here without a clock.
 */
#include <math.h>
#include <stdlib.h>

#include "../../../storage/play_internal.h"
#include "made_sweep.h"

enum { THREADS_MOST = 64, FILES_MOST = 64, BATCH = 32, SAMPLE = 200 };
#define GOLDEN 0.6180339887498949
#define BLOCK_BYTES 1048576.0

/* ---- the truth ---- */

typedef struct machine {
    const presto_storage *storage;
    unsigned threads;
    double record_bytes, compute_s; /* means, of a record */
} machine;

/* As the loader cuts a stream into parts of a MiB. */
static presto__portions cut_of(const machine *m) {
    size_t part = (size_t)fmin(fmax(BLOCK_BYTES / m->record_bytes, 1), 1024);
    if (part >= BATCH)
        return (presto__portions){part / BATCH * BATCH, part / BATCH * BATCH};
    size_t parts = m->threads == 1 ? 1 : (BATCH + part - 1) / part;
    return (presto__portions){BATCH, (BATCH + parts - 1) / parts};
}

/* A thread, and the records of its part. */
typedef struct thread {
    double at;
    uint64_t next, end;
    uint64_t ended; /* the record where its last read ended; UINT64_MAX: nowhere */
} thread;

typedef struct epoch {
    const machine *of;
    uint64_t records, files, taken; /* the last one: records that threads have taken */
    double opens[FILES_MOST];       /* below 0: not yet */
    thread threads[THREADS_MOST];
    double bandwidth_free, reads_free;
} epoch;

static uint64_t file_of(const epoch *e, uint64_t record) {
    return record * e->files / e->records;
}

static bool take_part(epoch *e, thread *who) {
    presto__portions cut = cut_of(e->of);
    uint64_t within = e->taken % cut.packet_samples, left = cut.packet_samples - within;
    uint64_t count = cut.part_samples < left ? cut.part_samples : left;
    who->next = e->taken;
    who->end = e->taken = e->taken + count < e->records ? e->taken + count : e->records;
    return who->next < who->end;
}

/* All that is shared is taken in the order in which threads come. */
static void read_record(epoch *e, thread *who) {
    const presto_storage *s = e->of->storage;
    uint64_t record = who->next++, file = file_of(e, record);
    bool is_first = record == 0 || file_of(e, record - 1) != file;
    double bytes = e->of->record_bytes * (0.7 + 0.6 * fmod((double)record * GOLDEN, 1));
    if (e->opens[file] < 0)
        e->opens[file] = who->at + s->open_s;
    if (who->at < e->opens[file]) { /* comes again then */
        who->at = e->opens[file];
        who->next--;
        return;
    }
    bool goes_on = !is_first && who->ended == record;
    double at = who->at, done = at;
    if (s->bytes_per_s_per_thread > 0)
        done = fmax(done, at + bytes / s->bytes_per_s_per_thread);
    if (s->bytes_per_s > 0)
        done = fmax(done, e->bandwidth_free = fmax(e->bandwidth_free, at) + bytes / s->bytes_per_s);
    if (s->reads_per_s > 0 && !goes_on)
        done = fmax(done, e->reads_free = fmax(e->reads_free, at) + 1 / s->reads_per_s);
    who->ended = record + 1;
    who->at = done + (goes_on ? 0 : s->latency_s) + e->of->compute_s;
}

static double epoch_s(const machine *m, uint64_t records, uint64_t files) {
    epoch e = {.of = m, .records = records, .files = files};
    double end = 0;
    for (size_t i = 0; i < FILES_MOST; i++)
        e.opens[i] = -1;
    for (size_t i = 0; i < m->threads; i++)
        e.threads[i].ended = UINT64_MAX;
    for (;;) {
        thread *first = NULL;
        for (size_t i = 0; i < m->threads; i++)
            if (isfinite(e.threads[i].at) && (first == NULL || e.threads[i].at < first->at))
                first = &e.threads[i];
        if (first == NULL)
            return end;
        end = fmax(end, first->at);
        if (first->next < first->end || take_part(&e, first))
            read_record(&e, first);
        else
            first->at = INFINITY;
    }
}

/* ---- what a run tells of it ---- */

static presto__epochs own_run(const machine *m, uint64_t files) {
    presto__epochs run = {.epochs = 1, .samples = SAMPLE, .cut = cut_of(m)};
    run.epoch_s = run.measure.wall_s = epoch_s(m, SAMPLE, files);
    return run;
}

/* As steady.c measures it, where the sample's epochs have few rounds. False: they have many, or the whole
 * is too small. */
static bool measure(const machine *m, uint64_t files, uint64_t whole, presto__epochs *run) {
    if (!presto__has_few_rounds(run->cut, m->threads, SAMPLE, files))
        return false;
    const presto__lengths lengths =
        presto__lengths_of(run->cut, m->threads, SAMPLE * 0.5 / run->epoch_s, (double)whole);
    if (lengths.more == 0)
        return false;
    run->second_samples = (double)lengths.more;
    run->second_s = epoch_s(m, lengths.more, 1);
    run->less_samples = (double)lengths.less;
    run->less_s = epoch_s(m, lengths.less, 1);
    double each_s = (run->second_s - run->less_s) / (run->second_samples - run->less_samples);
    const presto__files_cost cost =
        presto__files_cost_of(&(presto__waiting){.storage = m->storage,
                                                 .stored_bytes = m->record_bytes,
                                                 .worker_s = m->compute_s,
                                                 .threads = m->threads,
                                                 .files = (double)files,
                                                 .samples = (double)whole,
                                                 .part_samples = presto__mean_part(run->cut),
                                                 .each_s = each_s});
    run->files_s = cost.seconds;
    run->files_error_s = cost.error_s;
    return true;
}

static double told_rate(presto__epochs *run, uint64_t whole) {
    const presto__trial trial = {.cold = run, .cold_count = 1};
    return presto__epochs_whole_rate(run, presto__trial_start(&trial), (double)whole);
}

/* What it tells, over the truth; and how far off that may be, as it says. */
typedef struct told {
    double error, unsure;
} told;

static told compare(const machine *m, uint64_t files, uint64_t whole, presto__epochs *run) {
    double truth_s = epoch_s(m, whole, files);
    return (told){told_rate(run, whole) * truth_s / (double)whole - 1,
                  run->files_error_s / truth_s};
}

START_TEST(a_run_tells_the_rate_of_the_whole_on_every_storage_that_is_played) {
    static const unsigned threads[] = {2, 8, 32, 64};
    static const uint64_t files[] = {1, 2, 8, 32, 64};
    static const double bytes[] = {258e3, 150e3, 20e3, 2e6};
    static const uint64_t wholes[] = {4000, 12000};
    size_t count = 0, right = 0;
    for (size_t p = 0; presto__storage_profile_at(p) != NULL; p++)
        for (size_t t = 0; t < 4; t++)
            for (size_t b = 0; b < 4; b++)
                for (size_t k = 0; k < 10; k++) {
                    const presto__storage_profile *profile = presto__storage_profile_at(p);
                    const machine m = {&profile->storage, threads[t], bytes[b], 0.5e-3};
                    uint64_t f = files[k / 2], whole = wholes[k % 2];
                    presto__epochs run = own_run(&m, f);
                    if (!measure(&m, f, whole, &run))
                        continue;
                    told seen = compare(&m, f, whole, &run);
                    count++;
                    right += fabs(seen.error) <= 0.05;
                    ck_assert_msg(fabs(seen.error) <= 0.08 + seen.unsure,
                                  "%s, %u threads, %ju files, %ju records of %.0f bytes: %+.1f %%",
                                  profile->name, m.threads, (uintmax_t)f, (uintmax_t)whole,
                                  bytes[b], 100 * seen.error);
                }
    printf("of %zu strategies, %zu are right to 5 %%\n", count, right);
    ck_assert_uint_ge(count, 500);
    ck_assert_uint_ge(right, count * 92 / 100);
}
END_TEST

/* Without that, the rounds and the files of the sample count as those of the whole. */
START_TEST(the_epochs_of_a_sample_alone_do_not_tell_it) {
    const presto_storage *storage = NULL;
    for (size_t p = 0; presto__storage_profile_at(p) != NULL; p++)
        if (strcmp(presto__storage_profile_at(p)->name, "object-store") == 0)
            storage = &presto__storage_profile_at(p)->storage;
    ck_assert_ptr_nonnull(storage);
    const machine m = {storage, 8, 258e3, 0.5e-3};
    presto__epochs run = own_run(&m, 8);
    run.second_samples = 32; /* an eighth of each file */
    run.second_s = epoch_s(&m, 32, 8);
    ck_assert_double_lt(told_rate(&run, 4000) / (4000 / epoch_s(&m, 4000, 8)), 0.9);
}
END_TEST

START_TEST(lengths_are_whole_rounds) {
    const presto__portions photos = {32, 4}, uneven = {32, 5}, rows = {1024, 1024};
    presto__lengths l = presto__lengths_of(photos, 8, 0, 1e6);
    ck_assert(l.less == 32 && l.more == 192);
    l = presto__lengths_of(photos, 8, 1000, 1e6);
    ck_assert(l.less == 32 && l.more == 1024);
    l = presto__lengths_of(photos, 8, 1000, 150); /* all there are */
    ck_assert(l.less == 32 && l.more == 128);
    l = presto__lengths_of(photos, 8, 1000, 95);
    ck_assert(l.less == 0 && l.more == 0);
    l = presto__lengths_of(uneven, 8, 0, 1e6); /* 7 parts a packet, the last one of 2 samples */
    ck_assert(l.less == 37 && l.more == 222);
    l = presto__lengths_of(rows, 2, 0, 1e6);
    ck_assert(l.less == 2048 && l.more == 12288);
    ck_assert_double_eq_tol(presto__mean_part(uneven), 32.0 / 7, 1e-9);
    ck_assert(!presto__has_few_rounds(photos, 1, 200, 8));
    ck_assert(presto__has_few_rounds(photos, 2, 200, 8) &&
              !presto__has_few_rounds(photos, 2, 200, 1));
    ck_assert(presto__has_few_rounds(photos, 8, 200, 1));
    ck_assert(!presto__has_few_rounds((presto__portions){0, 0}, 8, 200, 8));
}
END_TEST

START_TEST(a_thread_alone_opens_each_file_and_begins_to_read_it) {
    presto_storage storage = {.open_s = 0.1, .latency_s = 0.05};
    presto__waiting waiting = {.storage = &storage,
                               .threads = 1,
                               .files = 8,
                               .samples = 1000,
                               .part_samples = 4,
                               .worker_s = 1e-3,
                               .each_s = 14e-3};
    ck_assert_double_eq_tol(presto__files_cost_of(&waiting).seconds, 7 * 0.15, 1e-12);
    waiting.files = 1;
    ck_assert_double_eq(presto__files_cost_of(&waiting).seconds, 0);
    waiting.files = 8;
    waiting.threads = 8; /* whoever comes first opens; the others wait for some of that, or all */
    waiting.each_s = 14e-3 / 8;
    ck_assert_double_gt(presto__files_cost_of(&waiting).seconds, 7 * 0.03);
    ck_assert_double_le(presto__files_cost_of(&waiting).seconds, 7 * 0.11);
    waiting.samples = 32; /* a part in each file: they are opened side by side */
    ck_assert_double_lt(presto__files_cost_of(&waiting).seconds, 7 * 0.01);
    storage.open_s = 0;
    ck_assert_double_eq(presto__files_cost_of(&waiting).seconds, 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_run_tells_the_rate_of_the_whole_on_every_storage_that_is_played,
        the_epochs_of_a_sample_alone_do_not_tell_it,
        lengths_are_whole_rounds,
        a_thread_alone_opens_each_file_and_begins_to_read_it,
    };
    return presto_check_main("profile/rounds", tests, sizeof tests / sizeof *tests, 60);
}
