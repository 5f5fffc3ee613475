/* SPDX-License-Identifier: Apache-2.0 */
/* A conversion that ends with pack and failed goes on with equal bytes and keeps what is whole. */
#define _XOPEN_SOURCE 700
#include "regroup_check.h"

/* Stop at one document after the other: what is whole stays, and the end is the same. */
START_TEST(a_run_that_failed_goes_on_with_equal_bytes) {
    start_random();
    size_t kept = 0;
    /* Some settings have one shard only, of which nothing can be whole: further ones follow. */
    for (size_t round = 0; round < ROUNDS || (kept == 0 && round < 100); round++) {
        setting s = make_setting();
        way how = random_way();
        presto_convert_result result;
        ck_assert_ok(convert(&s, "whole", &how, &result), &err);
        uint32_t wanted = digest_of_folder(path_in(base, "whole"));
        for (int at = 0; at < (int)s.documents; at += (int)pick(1, 15)) {
            struct stat before = {0}, after = {0};
            char name[64];
            atomic_store(&failing, at);
            how.threads = (unsigned)pick(0, 4);
            how.resume = true;
            (void)convert(&s, "out", &how, &result); /* a dropped document does not fail */
            snprintf(name, sizeof name, "out/.data-%05d.tfrecord", 0);
            if (how.shards > 0)
                snprintf(name, sizeof name, "out/data-%05d-of-%05zu.tfrecord", 0, how.shards);
            bool stands = stat(path_in(base, name), &before) == 0;
            if (pick(0, 1) == 0)
                continue; /* another failure follows */
            if (stands && access(path_in(base, "out/dataset.json"), F_OK) != 0) {
                atomic_store(&failing, at + (int)pick(1, 10));
                (void)convert(&s, "out", &how, &result);
                if (stat(path_in(base, name), &after) == 0)
                    ck_assert_uint_eq(after.st_ino, before.st_ino);
                kept++;
            }
        }
        atomic_store(&failing, -1);
        how.resume = true;
        ck_assert_ok(convert(&s, "out", &how, &result), &err);
        ck_assert_uint_eq(digest_of_folder(path_in(base, "out")), wanted);
        drop_setting(&s);
    }
    ck_assert_uint_gt(kept, 0);
}
END_TEST

/* A shard in the middle is gone: those behind it begin where it ended, and are made again. */
START_TEST(a_missing_shard_is_made_again_with_those_behind_it) {
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        setting s = make_setting();
        way how = {.shards = 6, .threads = 2, .resume = true};
        presto_convert_result result;
        ck_assert_ok(convert(&s, "whole", &how, &result), &err);
        uint32_t wanted = digest_of_folder(path_in(base, "whole"));
        atomic_store(&failing, (int)s.documents - 1);
        presto_status status = convert(&s, "out", &how, &result);
        atomic_store(&failing, -1);
        char name[64];
        snprintf(name, sizeof name, "out/data-%05d-of-00006.tfrecord", (int)pick(0, 3));
        if (status < 0)
            (void)remove(path_in(base, name));
        ck_assert_ok(convert(&s, "out", &how, &result), &err);
        ck_assert_uint_eq(digest_of_folder(path_in(base, "out")), wanted);
        drop_setting(&s);
    }
}
END_TEST

/* What steps dropped in an earlier run is no error: it uses up nothing of what may be skipped. */
START_TEST(a_resumed_run_may_skip_as_many_as_an_uninterrupted_one) {
    static const char *const splits[] = {"tokens", "packed"};
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        setting s = make_setting();
        const expected *all = &s.all;
        for (size_t i = 0; i < 2 && all->with_tokens > 8; i++) {
            way how = random_way();
            presto_convert_result whole, result;
            size_t first = pick(0, 2), second = pick(3, all->with_tokens - 3),
                   third = pick(second + 1, all->with_tokens - 1);
            how.split = splits[i % 2];
            how.skips = how.resume = true;
            how.skip_limit = 2;
            atomic_store(&failing, (int)all->samples[first]);
            atomic_store(&failing_too, (int)all->samples[third]);
            ck_assert_ok(convert(&s, "whole", &how, &whole), &err);
            ck_assert_uint_eq(whole.dropped, s.documents + 1 - all->documents);
            ck_assert_uint_eq(whole.skipped, whole.dropped + 2);
            how.skip_limit = 1;
            atomic_store(&failing_too, (int)all->samples[second]);
            ck_assert_status(convert(&s, "out", &how, &result), PRESTO_ERR_CORRUPT, &err);
            atomic_store(&failing_too, (int)all->samples[third]);
            ck_assert_status(convert(&s, "out", &how, &result), PRESTO_ERR_CORRUPT, &err);
            how.skip_limit = 2;
            ck_assert_ok(convert(&s, "out", &how, &result), &err);
            ck_assert_uint_eq(result.dropped, whole.dropped);
            ck_assert_uint_eq(result.skipped, whole.skipped);
            ck_assert_uint_eq(digest_of_folder(path_in(base, "out")),
                              digest_of_folder(path_in(base, "whole")));
            presto_check_remove_tree(path_in(base, "out"));
            presto_check_remove_tree(path_in(base, "whole"));
        }
        drop_setting(&s);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_run_that_failed_goes_on_with_equal_bytes,
        a_missing_shard_is_made_again_with_those_behind_it,
        a_resumed_run_may_skip_as_many_as_an_uninterrupted_one,
    };
    return presto_check_main("regroup_resume", tests, sizeof tests / sizeof tests[0], 240);
}
