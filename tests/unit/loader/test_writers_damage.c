/* SPDX-License-Identifier: Apache-2.0 */
/* Several shards are made at once from damaged photos: the same failure in any timing, and samples
 * left out in order. */
#define _XOPEN_SOURCE 700
#include <sys/stat.h>
#include <unistd.h>

#include "../../../base/rng_internal.h"
#include "convert/convert_internal.h"

#include "writers_check.h"

/* The photo as another file, which is none, and back. */
static void damage(int number, bool damaged) {
    char kept[1000];
    snprintf(kept, sizeof kept, "%s/kept-%d", dir, number);
    if (damaged) {
        struct stat info;
        ck_assert_int_eq(stat(photo(number), &info), 0);
        ck_assert_int_eq(rename(photo(number), kept), 0);
        uint8_t *zeros = calloc((size_t)info.st_size, 1);
        presto_check_write_file(photo(number), presto_span_of(zeros, (size_t)info.st_size));
        free(zeros);
    } else {
        ck_assert_int_eq(rename(kept, photo(number)), 0);
    }
}

/* What a failure at photo `first` leaves: the shards before it, and as many as are noted. */
static void check_failed(const presto_convert_options *options, int first) {
    ck_assert_str_eq(err.file, photo(first));
    int standing = 0;
    for (int i = 0; i < SHARDS; i++) {
        standing += stands(i, options);
        if (i < first / 5)
            ck_assert(stands(i, options));
    }
    ck_assert(!stands(first / 5, options));
    if (standing == 0) {
        ck_assert_int_ne(access(at("out"), F_OK), 0);
        return;
    }
    ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
    ck_assert_uint_eq(count_partial(at("out")), 0);
    presto__progress_file progress = {0};
    ck_assert_ok(presto__progress_file_read(at("out"), &progress, &err), &err);
    ck_assert_uint_eq(progress.shard_count, (size_t)standing);
    presto__progress_file_done(&progress);
}

/* Random photos are damaged. They are repaired one by one, and each time the conversion resumes. */
START_TEST(the_first_failure_in_the_order_of_the_samples_is_reported) {
    set_up();
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){presto_check_seed(), 1, 2, 3});
    uint32_t wanted[2];
    for (int c = 0; c < 2; c++) {
        presto_convert_options options =
            defaults(c ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN, SHARDS, 3);
        ck_assert_ok(convert("photos", c ? "whole-gz" : "whole", &options), &err);
        wanted[c] = digest_folder(c ? "whole-gz" : "whole");
    }
    for (int round = 0; round < 40; round++) {
        bool is_damaged[PHOTOS] = {false};
        /* The last of the third shard and the first of the fourth are damaged in the first ones. */
        for (uint64_t n = 0; n < 2 + presto_rng_below(&rng, 4); n++)
            is_damaged[round < 4 ? 14 + n : presto_rng_below(&rng, PHOTOS)] = true;
        for (int i = 0; i < PHOTOS; i++)
            if (is_damaged[i])
                damage(i, true);
        presto_convert_options options =
            defaults(round % 2 ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN, SHARDS, 0);
        options.resume = true;
        for (int i = 0; i < PHOTOS; i++) {
            if (!is_damaged[i])
                continue;
            options.threads = (unsigned)presto_rng_below(&rng, 7);
            options.prefetch_bytes =
                presto_rng_below(&rng, 3) > 0 ? TINY_PREFETCH_BYTES : (size_t)1 << 20;
            ck_assert_int_lt(convert("photos", "out", &options), 0);
            check_failed(&options, i);
            damage(i, false);
        }
        ck_assert_ok(convert("photos", "out", &options), &err);
        ck_assert_uint_eq(digest_folder("out"), wanted[round % 2]);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

/* The first shard takes long and then fails, when the others have all their samples. */
START_TEST(a_first_shard_that_fails_last_is_reported) {
    set_up();
    char command[2000];
    snprintf(command, sizeof command,
             "%s -n 1 -c 1 --width 1200 --height 800 -j 0 -o %s/large >/dev/null 2>&1 && "
             "mv $(find %s/large -name '*.jpg') %s",
             PRESTO_CORPUS_PROGRAM, dir, dir, photo(0));
    ck_assert_int_eq(system(command), 0);
    damage(1, true);
    static const unsigned threads[] = {0, 2, 4};
    for (int kept = 0; kept < 2; kept++)
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            presto_convert_options options = defaults(PRESTO_FILE_PLAIN, SHARDS, threads[t]);
            if (kept)
                ck_assert_int_eq(mkdir(at("out"), 0777), 0);
            ck_assert_int_lt(convert("photos", "out", &options), 0);
            ck_assert_str_eq(err.file, photo(1));
            /* A folder that was there stays, with nothing in it: no shard was whole by then. */
            ck_assert_int_eq(access(at("out"), F_OK), kept ? 0 : -1);
            if (kept)
                ck_assert_int_eq(rmdir(at("out")), 0);
        }
    tear_down();
}
END_TEST

/* One after the other, so that they are reported and counted in order. */
static void count_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *why) {
    (void)epoch;
    (void)why;
    uint64_t *last = user;
    ck_assert(*last == UINT64_MAX || sample > *last);
    *last = sample;
}

/* The fourth shard has nothing but such samples, others end or start with one. */
static void damage_some(bool damaged) {
    static const int photos[] = {4, 5, 6, 15, 16, 17, 18, 19, 24, 29};
    for (size_t i = 0; i < sizeof photos / sizeof photos[0]; i++)
        damage(photos[i], damaged);
}
enum { DAMAGED = 10 };

START_TEST(samples_left_out_are_told_in_order) {
    set_up();
    damage_some(true);
    uint32_t wanted = 0;
    static const unsigned threads[] = {0, 1, 8};
    for (size_t t = 0; t < 6; t++) {
        uint64_t last = UINT64_MAX;
        presto_convert_options options = defaults(PRESTO_FILE_GZIP, SHARDS, threads[t / 2]);
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
        options.errors.on_skip = count_skip;
        options.errors.on_skip_user = &last;
        if (t % 2)
            options.prefetch_bytes = TINY_PREFETCH_BYTES;
        ck_assert_ok(convert("photos", "out", &options), &err);
        ck_assert_uint_eq(last, 29);
        ck_assert_uint_eq(result.skipped, DAMAGED);
        ck_assert_uint_eq(result.samples, PHOTOS - DAMAGED);
        uint32_t digest = digest_folder("out");
        if (t == 0)
            wanted = digest;
        ck_assert_uint_eq(digest, wanted);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

/* Those of the shards that stay are counted, but not reported again. */
START_TEST(samples_left_out_are_counted_over_any_shards_that_stay) {
    set_up();
    damage_some(true);
    presto_convert_options options = defaults(PRESTO_FILE_PLAIN, SHARDS, 3);
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    ck_assert_ok(convert("photos", "whole", &options), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    for (unsigned whole = 0; whole < 1U << SHARDS; whole += 3) {
        uint64_t last = UINT64_MAX;
        options.errors.on_skip = NULL;
        leave_unfinished(options);
        for (int i = 0; i < SHARDS; i++)
            if ((whole >> i & 1) == 0)
                lose(i, &options, i % 2);
        options.errors.on_skip = count_skip;
        options.errors.on_skip_user = &last;
        ck_assert_ok(convert("photos", "out", &options), &err);
        ck_assert_uint_eq(result.skipped, DAMAGED);
        ck_assert_uint_eq(result.samples, PHOTOS - DAMAGED);
        if (last != UINT64_MAX)
            ck_assert_uint_eq(whole >> (last / 5) & 1, 0);
        ck_assert_uint_eq(digest_folder("out"), wanted);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

/* ... and a limit of them ends the conversion with all shards before the sample that was too many.
 */
START_TEST(too_many_samples_left_out_keep_the_shards_before) {
    set_up();
    damage_some(true);
    for (unsigned threads = 0; threads < 4; threads++)
        for (int tiny = 0; tiny < 2; tiny++) {
            presto_convert_options options = defaults(PRESTO_FILE_PLAIN, SHARDS, threads);
            options.errors.policy = PRESTO_ON_ERROR_SKIP;
            options.errors.skip_limit = 8;
            if (tiny)
                options.prefetch_bytes = TINY_PREFETCH_BYTES;
            ck_assert_int_lt(convert("photos", "out", &options), 0);
            check_failed(&options, 24);
            presto_check_remove_tree(at("out"));
        }
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_first_failure_in_the_order_of_the_samples_is_reported,
        a_first_shard_that_fails_last_is_reported,
        samples_left_out_are_told_in_order,
        samples_left_out_are_counted_over_any_shards_that_stay,
        too_many_samples_left_out_keep_the_shards_before,
    };
    return presto_check_main("writers_damage", tests, sizeof tests / sizeof tests[0], 240);
}
