/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several shards are made at once: the same bytes as one after the other, no whole shard is made
 * again, and the queues between them are bounded.
 */
#define _XOPEN_SOURCE 700
#include "../base/clock_internal.h"

#include <sys/stat.h>
#include <unistd.h>

#include "convert/convert_internal.h"

#include "writers_check.h"

START_TEST(shards_are_the_same_for_any_number_of_threads) {
    set_up();
    static const size_t shards[] = {1, 2, 3, 7, PHOTOS + 5};
    static const unsigned threads[] = {0, 1, 2, 3, 5, 8};
    for (size_t s = 0; s < sizeof shards / sizeof shards[0]; s++)
        for (int c = 0; c < 4; c++) {
            uint32_t wanted = 0;
            for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
                presto_convert_options options =
                    defaults(c % 2 ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN, shards[s], threads[t]);
                options.auto_threads = t == 3;
                options.limit_samples = c / 2 ? 11 : 0;
                if (t == 4)
                    options.prefetch_bytes = TINY_PREFETCH_BYTES;
                ck_assert_ok(convert("photos", "out", &options), &err);
                ck_assert_uint_eq(result.samples, c / 2 ? 11 : PHOTOS);
                ck_assert_uint_eq(result.skipped, 0);
                ck_assert_uint_eq(result.shards, shards[s]);
                ck_assert_uint_gt(result.source_bytes, 0);
                uint32_t digest = digest_folder("out");
                if (t == 0)
                    wanted = digest;
                ck_assert_uint_eq(digest, wanted);
                presto_check_remove_tree(at("out"));
            }
        }
    tear_down();
}
END_TEST

/* Such an input can be read from its start only. */
START_TEST(a_dataset_of_compressed_files_is_recoded) {
    set_up();
    presto_convert_options options = defaults(PRESTO_FILE_GZIP, 3, 4);
    ck_assert_ok(convert("photos", "first", &options), &err);
    options = defaults(PRESTO_FILE_ZLIB, 5, 4);
    ck_assert_ok(convert("photos", "direct", &options), &err);
    ck_assert_ok(convert("first", "second", &options), &err);
    forget_input(at("direct"));
    forget_input(at("second"));
    ck_assert_uint_eq(digest_folder("direct"), digest_folder("second"));
    options = defaults(PRESTO_FILE_PLAIN, 4, 2);
    ck_assert_ok(convert("photos", "plain", &options), &err);
    options = defaults(PRESTO_FILE_ZLIB, 5, 4);
    ck_assert_ok(convert("plain", "third", &options), &err);
    forget_input(at("third"));
    ck_assert_uint_eq(digest_folder("direct"), digest_folder("third"));
    tear_down();
}
END_TEST

static void resume_with(unsigned whole, presto_convert_options *options, bool is_forgotten) {
    struct stat before[SHARDS], after;
    leave_unfinished(*options);
    for (int i = 0; i < SHARDS; i++) {
        ck_assert_int_eq(stat(shard_at("out", i, options, ""), &before[i]), 0);
        if ((whole >> i & 1) == 0)
            lose(i, options, is_forgotten);
    }
    ck_assert_ok(convert("photos", "out", options), &err);
    /* The source of those that stay is not even read. */
    uint64_t source_bytes = 0;
    struct stat info;
    for (int i = 0; i < PHOTOS; i++)
        if ((whole >> (i / 5) & 1) == 0 && stat(photo(i), &info) == 0)
            source_bytes += (uint64_t)info.st_size;
    ck_assert_uint_eq(result.source_bytes, source_bytes);
    for (int i = 0; i < SHARDS; i++) {
        ck_assert_int_eq(stat(shard_at("out", i, options, ""), &after), 0);
        bool same = before[i].st_ino == after.st_ino &&
                    before[i].st_mtim.tv_sec == after.st_mtim.tv_sec &&
                    before[i].st_mtim.tv_nsec == after.st_mtim.tv_nsec;
        if ((whole >> i & 1) == 1)
            ck_assert(same);
        else if (is_forgotten) /* the old one existed until the new one took its name */
            ck_assert(!same);
    }
}

START_TEST(only_what_is_missing_is_made_again) {
    set_up();
    for (int c = 0; c < 2; c++) {
        presto_convert_options options =
            defaults(c ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN, SHARDS, 3);
        ck_assert_ok(convert("photos", "whole", &options), &err);
        uint32_t wanted = digest_folder("whole");
        options.resume = true;
        for (unsigned whole = 0; whole < 1U << SHARDS; whole++) {
            static const unsigned threads[] = {2, 0, 3, 8, 1};
            options.threads = threads[whole % 5];
            resume_with(whole, &options, whole % 3 == 0);
            ck_assert_uint_eq(digest_folder("out"), wanted);
            presto_check_remove_tree(at("out"));
        }
        presto_check_remove_tree(at("whole"));
    }
    tear_down();
}
END_TEST

/* A shard whose name is taken by a folder with something in it. */
START_TEST(a_shard_that_cannot_be_written_stops_all_and_the_others_stay) {
    set_up();
    presto_convert_options options = defaults(PRESTO_FILE_PLAIN, SHARDS, 3);
    ck_assert_ok(convert("photos", "whole", &options), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    for (int shard = 0; shard < SHARDS; shard++)
        for (int tiny = 0; tiny < 2; tiny++) {
            options.threads = 2 + (unsigned)shard % 3;
            options.prefetch_bytes = tiny ? TINY_PREFETCH_BYTES : (size_t)1 << 20;
            leave_unfinished(options);
            for (int i = 0; i < SHARDS; i++)
                if (i >= shard || i % 2)
                    lose(i, &options, false);
            ck_assert_int_eq(mkdir(shard_at("out", shard, &options, ""), 0777), 0);
            ck_assert_int_eq(mkdir(shard_at("out", shard, &options, "/in-the-way"), 0777), 0);
            ck_assert_status(convert("photos", "out", &options), PRESTO_ERR_IO, &err);
            ck_assert_str_eq(err.file, shard_at("out", shard, &options, ""));
            ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
            ck_assert_uint_eq(count_partial(at("out")), 0);
            for (int i = 0; i < shard; i += 2)
                ck_assert(stands(i, &options));
            ck_assert_int_eq(rmdir(shard_at("out", shard, &options, "/in-the-way")), 0);
            ck_assert_int_eq(rmdir(shard_at("out", shard, &options, "")), 0);
            ck_assert_ok(convert("photos", "out", &options), &err);
            ck_assert_uint_eq(digest_folder("out"), wanted);
            presto_check_remove_tree(at("out"));
        }
    tear_down();
}
END_TEST

/* ---- the queues ---- */

/* The writer of shard 0 hangs while it opens its file, until it is let go. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opened = PTHREAD_COND_INITIALIZER;
static bool gate_is_shut;

static void set_gate(bool is_shut) {
    pthread_mutex_lock(&gate_lock);
    gate_is_shut = is_shut;
    pthread_cond_broadcast(&gate_opened);
    pthread_mutex_unlock(&gate_lock);
}

presto_status __real_presto__shard_writer_open(const char *path,
                                               const presto__shard_writer_options *options,
                                               presto__shard_writer **writer_out,
                                               presto_error *error);
presto_status __wrap_presto__shard_writer_open(const char *path,
                                               const presto__shard_writer_options *options,
                                               presto__shard_writer **writer_out,
                                               presto_error *error);
presto_status __wrap_presto__shard_writer_open(const char *path,
                                               const presto__shard_writer_options *options,
                                               presto__shard_writer **writer_out,
                                               presto_error *error) {
    bool is_first = strstr(path, "data-00000-of-") != NULL;
    pthread_mutex_lock(&gate_lock);
    while (gate_is_shut && is_first)
        pthread_cond_wait(&gate_opened, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
    return __real_presto__shard_writer_open(path, options, writer_out, error);
}

/*
 * The samples kept for the first shard, which hangs, are bounded, and the other writer completes
 * its shards.
 */
START_TEST(a_writer_that_hangs_keeps_no_more_than_it_may) {
    dir = presto_check_temp_dir();
    static const uint8_t frame[1000];
    static const uint32_t frame_bytes[] = {sizeof frame};
    const presto__rows rows = {.frames = presto_span_of(frame, sizeof frame),
                               .frame_bytes = frame_bytes,
                               .count = 1,
                               .raw_bytes = 7};
    static const size_t limits[] = {0, 40000, (size_t)1 << 30};
    static const size_t least[] = {1, 10, 60}, most[] = {2, 12, 66};
    for (size_t l = 0; l < 3; l++) {
        presto_convert_options options = defaults(PRESTO_FILE_PLAIN, 9, 2);
        presto__conversion job = {
            .options = &options, .dir = dir, .packets_bytes = limits[l], .shard_count = 9};
        set_gate(true);
        presto__writers *writers;
        ck_assert_ok(presto__writers_new(&job, 2, true, &writers, &err), &err);
        for (size_t shard = 1; shard < 5; shard++) {
            presto__whole_shard whole;
            const presto__shard_range range = {.number = shard, .first = shard, .end = shard + 1};
            ck_assert_ok(presto__writers_append(writers, 1, shard, &rows, &err), &err);
            ck_assert_ok(presto__writers_finish(writers, 1, &range, &err), &err);
            while (!presto__writers_take(writers, &whole))
                ck_assert_int_ge(presto__writers_wait(writers, PRESTO__WANTS_END, &err), 0);
            ck_assert_uint_eq(whole.number, shard);
            ck_assert_uint_eq(whole.first, shard);
            ck_assert_uint_eq(whole.end, shard + 1);
            ck_assert_uint_eq(whole.described.records, 1);
            ck_assert_uint_eq(whole.described.raw_bytes, 7);
        }
        /* A thread that waits for the end is not woken for room: it sleeps. */
        size_t count = 1;
        ck_assert_ok(presto__writers_append(writers, 0, 0, &rows, &err), &err);
        uint64_t started_ns = presto__clock_ns();
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(presto__writers_wait(writers, PRESTO__WANTS_END, &err), PRESTO_OK);
        ck_assert_uint_ge(presto__clock_ns() - started_ns, 100000000);
        do { /* the writer may take one off when the queue is full already */
            for (; presto__writers_have_room(writers); count++)
                ck_assert_ok(presto__writers_append(writers, 0, 0, &rows, &err), &err);
            ck_assert_int_eq(presto__writers_wait(writers, PRESTO__WANTS_ROOM, &err),
                             PRESTO_OK); /* after a while */
        } while (presto__writers_have_room(writers));
        ck_assert_uint_ge(count, least[l]);
        ck_assert_uint_le(count, most[l]);
        set_gate(false);
        presto_status status;
        do
            status = presto__writers_wait(writers, PRESTO__WANTS_END, &err);
        while (status == PRESTO_OK);
        ck_assert_status(status, PRESTO_END, &err);
        ck_assert(presto__writers_have_room(writers));
        presto__writers_stop(writers);
        presto__whole_shard whole;
        ck_assert(!presto__writers_take(writers, &whole));
        presto__writers_free(writers);
        ck_assert_uint_eq(count_partial(dir), 0); /* given up */
    }
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* Stops the job at its n-th call. */
static bool stop_at(void *user, const presto_progress *progress) {
    ck_assert_uint_eq(progress->samples_total, PHOTOS);
    ck_assert_uint_le(progress->samples_done, PHOTOS);
    return --*(int *)user > 0;
}

START_TEST(a_stopped_conversion_is_resumed) {
    set_up();
    presto_convert_options options = defaults(PRESTO_FILE_PLAIN, 10, 4);
    ck_assert_ok(convert("photos", "whole", &options), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    for (int calls = 1; calls < 4; calls++) {
        int left = calls;
        options.on_progress = stop_at;
        options.on_progress_user = &left;
        presto_status status = convert("photos", "out", &options);
        if (status < 0)
            ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
        options.on_progress = NULL;
        ck_assert_ok(convert("photos", "out", &options), &err);
        ck_assert_uint_eq(digest_folder("out"), wanted);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        shards_are_the_same_for_any_number_of_threads,
        a_dataset_of_compressed_files_is_recoded,
        only_what_is_missing_is_made_again,
        a_shard_that_cannot_be_written_stops_all_and_the_others_stay,
        a_writer_that_hangs_keeps_no_more_than_it_may,
        a_stopped_conversion_is_resumed,
    };
    return presto_check_main("writers", tests, sizeof tests / sizeof tests[0], 240);
}
