/* SPDX-License-Identifier: Apache-2.0 */
/* The reason of a recommendation: what it gives, what it saves, and what its neighbours give. */
#include "made_sweep.h"

/* center-pixels costs 3.9 ms less with what is stored here, but it still runs. */
START_TEST(the_reason_gives_rate_gain_storage_time_and_what_is_saved) {
    presto_sweep *sweep = made_sweep(false);
    ck_assert_uint_eq(presto_sweep_best(sweep), 2);
    ck_assert_str_eq(
        presto_sweep_reason(sweep),
        "resized with zstd:1 on 2 threads delivers 4,000 samples/s cold, 5.00 times as "
        "many as the unprocessed files on 2 threads, for 220 MB stored (2.00 times the source) "
        "and 20.0 s of preparation; decode-image is what it saves: 2.40 of 6.50 ms of work a "
        "sample. "
        "One step less (decoded with gzip on 2 threads) gives 400 samples/s and takes 440 MB. "
        "The time of preparing it is won back after 20 epochs. Decided; the next is the "
        "unprocessed files on 2 threads with 800 samples/s. Mind that codec zstd:1 "
        "is not among "
        "those that every TensorFlow reads: none, zlib, gzip "
        "(--tensorflow-readable).");
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(the_reason_says_how_much_of_the_saving_a_step_is_and_how_sure_the_time_is) {
    presto_sweep *sweep = made_sweep(false);
    presto__trial *best = &sweep->trials[2];
    best->cold[0].cost_count = 1; /* center-pixels runs offline, too */
    best->result.total_preparation_error_s = 2;
    const char *reason = reason_for(sweep);
    assert_says(reason, "20.0 s of preparation (+-10 %); center-pixels is most of what it saves: "
                        "4.00 of 6.40 ms a sample.");
    assert_says(reason, "The time of preparing it is won back after 18 to 22 epochs.");
    presto_sweep_free(sweep);
}
END_TEST

static void assert_says_not(const char *reason, const char *part) {
    ck_assert_msg(strstr(reason, part) == NULL, "'%s' has '%s'", reason, part);
}

START_TEST(the_reason_tells_what_one_step_further_and_one_less_would_give) {
    presto_sweep *sweep = made_sweep(false);
    presto_strategy_result *decoded = &sweep->trials[1].result;
    decoded->cold.samples_per_s = (presto_spread){7920, 8000, 8080, 3};
    assert_says(reason_for(sweep), " source) and 40.0 s of preparation");
    assert_says(reason_for(sweep), ". One step further (resized with zstd:1 on 2 threads) gives "
                                   "4,000 samples/s and takes 220 MB. ");
    assert_says_not(reason_for(sweep), "ne step less"); /* the unprocessed files, told before */

    /* In the middle of three that are stored; two ways of the first one. */
    sweep->trials[0].result.strategy =
        (presto_strategy){.stored = "decoded", .codec = "none", .threads = 2, .shards = 2};
    decoded->strategy.stored = "resized";
    sweep->trials[2].result.strategy.stored = "centered";
    sweep->trials[2].result.is_predicted = true;
    assert_says(reason_for(sweep),
                ". One step further (centered with zstd:1 on 2 threads) gives "
                "4,000 samples/s (predicted) and takes 220 MB; one step less "
                "(decoded uncompressed on 2 threads) gives 800 samples/s and takes "
                "110 MB. ");
    sweep->trials[2].result.failed = true;
    assert_says_not(reason_for(sweep), "further");
    assert_says(reason_for(sweep), ". One step less (decoded uncompressed on 2 threads) gives ");

    /* The best of a representation stands for it. */
    decoded->strategy.stored = "decoded";
    sweep->trials[2].result.failed = false;
    decoded->cold.samples_per_s = (presto_spread){1200, 1200, 1200, 3};
    assert_says(reason_for(sweep), ". One step less (decoded with gzip on 2 threads) gives 1,200 ");
    sweep->trials[0].result.total_stored_bytes = 500e6; /* without a score, and first */
    sweep->limits.most_stored_bytes = 450000000;
    assert_says(reason_for(sweep), ". One step less (decoded with gzip on 2 threads) gives 1,200 ");
    sweep->limits.most_stored_bytes = 400000000;
    assert_says(reason_for(sweep), ". One step less (decoded with gzip on 2 threads) gives 1,200 "
                                   "samples/s and takes 440 MB, beyond the limits. ");
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(the_reason_names_what_is_equal_and_what_is_saved) {
    presto_sweep *sweep = made_sweep(false);
    presto_error err;
    ck_assert(!sweep->trials[0].result.is_equal && sweep->trials[2].result.is_equal);
    sweep->trials[0].result.cold.samples_per_s = (presto_spread){3000, 3900, 3990, 3};
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_uint_eq(presto_sweep_best(sweep), 0);
    ck_assert(sweep->trials[0].result.is_equal && sweep->trials[2].result.is_equal);
    ck_assert(!sweep->trials[1].result.is_equal);
    ck_assert_ptr_nonnull(
        strstr(presto_sweep_reason(sweep),
               " resized with zstd:1 on 2 threads (4,000 samples/s) equals it "
               "within the spread of the runs; the recommended one stores nothing."));
    /* The same storage, and fewer threads or less preparation. */
    presto_strategy_result *raw = &sweep->trials[0].result;
    raw->strategy =
        (presto_strategy){.stored = "concatenated", .codec = "none", .threads = 1, .shards = 2};
    raw->total_stored_bytes = 219e6;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_ptr_nonnull(
        strstr(presto_sweep_reason(sweep), "; the recommended one needs fewer threads."));
    ck_assert_ptr_null(strstr(presto_sweep_reason(sweep), "TensorFlow")); /* it stores nothing */
    raw->strategy.threads = 2;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_uint_eq(presto_sweep_best(sweep), 0);
    ck_assert_ptr_nonnull(
        strstr(presto_sweep_reason(sweep), "; the recommended one is prepared sooner."));
    /* Three of them. */
    sweep->trials[1].result.cold.samples_per_s = (presto_spread){3000, 3900, 3990, 3};
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep),
                                 " 2 others equal it within the spread of the runs, first of them "
                                 "resized with zstd:1 on 2 threads (4,000 samples/s)"));
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(a_comparison_names_what_there_is) {
    presto_sweep *sweep = made_sweep(false);
    sweep->trials[0].result.failed = true;
    assert_says(reason_for(sweep),
                "10.0 times as many as the slowest (decoded with gzip on 2 threads), for ");
    sweep->weights = (presto_weights){0, 1, 0};
    sweep->trials[2].result.total_stored_bytes = 500e6;
    assert_says(reason_for(sweep), "decoded with gzip on 2 threads delivers 400 samples/s cold, "
                                   "0.10 times as many as resized with zstd:1 on 2 threads, for ");
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(what_is_beyond_the_limits_is_not_told_as_the_next) {
    presto_sweep *sweep = made_sweep(false);
    sweep->weights = (presto_weights){0, 1, 0};
    sweep->trials[1].result.total_stored_bytes = 450e6; /* first, and without a score */
    sweep->limits.most_stored_bytes = 400000000;
    assert_says(reason_for(sweep), "; the best that stores something, resized with zstd:1 on 2 ");
    sweep->prices = (presto_sweep_prices){.storage_gb_month = 1, .epochs = 1, .months = 1};
    sweep->limits.most_stored_bytes = 210000000;
    ck_assert_uint_eq(sweep->best, 0);
    assert_says(reason_for(sweep), " It costs least: 0 for 1 epoch, of it 0 to store, 0 to "
                                   "prepare and 0 to train. ");
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(limits_that_were_left_aside_are_told_with_the_target) {
    presto_sweep *sweep = made_sweep(false);
    sweep->trials[0].result.failed = true;
    sweep->limits = (presto_sweep_limits){.most_stored_bytes = 1, .target_samples_per_s = 1000};
    const char *aside = " No strategy keeps the limits of storage and preparation: they were left "
                        "aside.";
    assert_says(reason_for(sweep), aside);
    assert_says(reason_for(sweep), "aside. Its slowest run is 4 times the target of 1,000");
    sweep->limits.target_samples_per_s = 9000;
    assert_says(reason_for(sweep), aside);
    assert_says(reason_for(sweep), "aside. No strategy reaches the target of 9,000 samples/s: ");
    ck_assert_int_eq(sweep->verdict, PRESTO_SWEEP_MISSES);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(what_was_stopped_is_not_decided) {
    presto_sweep *sweep = made_sweep(true);
    assert_says(reason_for(sweep), " Decided; ");
    presto_fail(&sweep->trials[1].result.failure, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET,
                "not measured: the sweep was stopped");
    assert_says(reason_for(sweep),
                " Undecided: the sweep was stopped before it had looked at all.");
    ck_assert(!presto_sweep_get_confidence(sweep)->is_decided);
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(what_has_no_rival_is_told_with_the_next) {
    presto_sweep *sweep = made_sweep(false);
    sweep->trials[0].result.is_predicted = true;
    assert_says(reason_for(sweep), " Decided; the next is the unprocessed files on 2 threads "
                                   "with 800 samples/s (predicted). ");
    sweep->weights = (presto_weights){0, 0.1, 1};
    assert_says(reason_for(sweep),
                " Decided; the next is the unprocessed files on 2 threads with a score of 0.");
    sweep->limits.target_samples_per_s = 1000;
    assert_says_not(reason_for(sweep), "the next is");
    presto_sweep_free(sweep);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_reason_gives_rate_gain_storage_time_and_what_is_saved,
        the_reason_says_how_much_of_the_saving_a_step_is_and_how_sure_the_time_is,
        the_reason_tells_what_one_step_further_and_one_less_would_give,
        the_reason_names_what_is_equal_and_what_is_saved,
        a_comparison_names_what_there_is,
        what_is_beyond_the_limits_is_not_told_as_the_next,
        limits_that_were_left_aside_are_told_with_the_target,
        what_was_stopped_is_not_decided,
        what_has_no_rival_is_told_with_the_next,
    };
    return presto_check_main("reason", tests, sizeof tests / sizeof tests[0], 60);
}
