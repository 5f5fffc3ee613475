/* SPDX-License-Identifier: Apache-2.0 */
#include "made_sweep.h"

/* Without prices, not put aside, stored, and without a codec. */
#define NO_COST {NAN, NAN, NAN, 0}, false, false, NULL, false

/* A strategy on two threads whose runs were all alike. */
#define MERIT(counts, preparation_s, bytes, rate)                                                  \
    { counts, preparation_s, bytes, {rate, rate, rate, 3}, 2, NO_COST }
#define STEADY(preparation_s, bytes, rate) MERIT(true, preparation_s, bytes, rate)
#define FAILED(preparation_s, bytes, rate) MERIT(false, preparation_s, bytes, rate)

static const presto__merit three[] = {STEADY(0, 100, 10), STEADY(50, 200, 40),
                                      STEADY(100, 400, 30)};

static size_t score(const presto__merit *merits, size_t count, presto_weights weights,
                    double *scores_out) {
    const presto__contest contest = {merits, count, weights, false};
    return presto__score(&contest, scores_out);
}

START_TEST(scores_are_the_ones_worked_out_by_hand) {
    double scores[3];
    /* |p| = 1, 1/2, 0; |s| = 1, 2/3, 0; |t| = 0, 1, 2/3 */
    ck_assert_uint_eq(score(three, 3, (presto_weights){1, 1, 1}, scores), 1);
    ck_assert_double_eq_tol(scores[0], 2, 1e-12);
    ck_assert_double_eq_tol(scores[1], 1.0 / 2 + 2.0 / 3 + 1, 1e-12);
    ck_assert_double_eq_tol(scores[2], 2.0 / 3, 1e-12);
    ck_assert_uint_eq(score(three, 3, (presto_weights){0, 2, 1}, scores), 1);
    ck_assert_double_eq_tol(scores[0], 2, 1e-12);
    ck_assert_double_eq_tol(scores[1], 4.0 / 3 + 1, 1e-12);
}
END_TEST

/*
 * What Isenko et al. (SIGMOD 2022) measured of their pipelines: stored bytes and samples a second,
 * and f = |s| + |t| of it, computed apart from this code. Their best ones are those with the
 * highest rate.
 */
typedef struct published {
    size_t count, best, best_of_both;
    struct {
        double bytes, rate, score;
    } of[5];
} published;

static const published papers[] = {
    {5,
     3,
     3,
     {{146.9e9, 107, 1.0},
      {147.0e9, 962, 1.50824298},
      {842.5e9, 750, 0.822714177},
      {347.3e9, 1789, 1.838790121},
      {1.39e12, 576, 0.278834721}}},
    {5,
     3,
     3,
     {{2.5e9, 88, 0.997127566},
      {2.6e9, 288, 1.114196318},
      {65.7e9, 64, 0.0},
      {1.4e9, 1750, 2.0},
      {5.8e9, 650, 1.279138971}}},
    {5,
     3,
     3,
     {{85.2e9, 15, 0.023310023},
      {87.2e9, 21, 0.003252033},
      {65.7e9, 75, 0.283103076},
      {1.4e9, 1860, 2.0},
      {5.8e9, 640, 1.287471336}}},
    {5,
     3,
     3,
     {{7.7e9, 6, 0.985504053},
      {7.7e9, 6, 0.985504053},
      {594e6, 350, 1.2},
      {647e6, 1726, 1.999891882},
      {490.8e9, 131, 0.072674419}}},
    {3, 2, 2, {{39.6e9, 100, 0.859290671}, {262.5e9, 100, 0.0}, {3.1e9, 6200, 2.0}}},
    {3, 2, 2, {{250e6, 100, 1.0}, {3.0e9, 200, 0.021276596}, {991e6, 4800, 1.730545455}}},
    {3, 2, 0, {{6.6e9, 50, 1.006410256}, {11.6e9, 40, 0.0}, {11.6e9, 1600, 1.0}}},
};

START_TEST(figures_of_the_paper_score_as_its_formula_says) {
    for (size_t p = 0; p < sizeof papers / sizeof *papers; p++) {
        presto__merit merits[5];
        double scores[5];
        for (size_t i = 0; i < papers[p].count; i++)
            merits[i] = (presto__merit)STEADY(0, papers[p].of[i].bytes, papers[p].of[i].rate);
        ck_assert_uint_eq(score(merits, papers[p].count, (presto_weights){0, 0, 1}, scores),
                          papers[p].best);
        ck_assert_uint_eq(score(merits, papers[p].count, (presto_weights){0, 1, 1}, scores),
                          papers[p].best_of_both);
        for (size_t i = 0; i < papers[p].count; i++)
            ck_assert_double_eq_tol(scores[i], papers[p].of[i].score, 1e-8);
    }
}
END_TEST

START_TEST(each_weight_alone_finds_its_own_best) {
    double scores[3];
    ck_assert_uint_eq(score(three, 3, (presto_weights){1, 0, 0}, scores), 0);
    ck_assert_uint_eq(score(three, 3, (presto_weights){0, 1, 0}, scores), 0);
    ck_assert_uint_eq(score(three, 3, (presto_weights){0, 0, 1}, scores), 1);
    ck_assert_double_eq(scores[0], 0);
    ck_assert_double_eq(scores[1], 1);
    ck_assert_double_eq_tol(scores[2], 2.0 / 3, 1e-12);
}
END_TEST

START_TEST(equal_values_count_as_one_and_ties_go_to_the_cheaper) {
    const presto__merit merits[] = {STEADY(5, 300, 7), STEADY(5, 200, 7), STEADY(4, 200, 7)};
    double scores[3];
    ck_assert_uint_eq(score(merits, 3, (presto_weights){0, 0, 2}, scores), 2);
    for (size_t i = 0; i < 3; i++)
        ck_assert_double_eq(scores[i], 2);
    ck_assert_uint_eq(score(merits, 1, (presto_weights){1, 1, 1}, scores), 0);
    ck_assert_double_eq(scores[0], 3);
}
END_TEST

START_TEST(failed_strategies_neither_win_nor_move_the_scale) {
    const presto__merit merits[] = {FAILED(0, 0, 1e9), STEADY(0, 100, 10), STEADY(50, 200, 40),
                                    FAILED(1e9, 1e9, 0)};
    double scores[4];
    ck_assert_uint_eq(score(merits, 4, (presto_weights){0, 0, 1}, scores), 2);
    ck_assert(isnan(scores[0]) && isnan(scores[3]));
    ck_assert_double_eq(scores[1], 0);
    ck_assert_double_eq(scores[2], 1);
    ck_assert_uint_eq(score(merits, 1, (presto_weights){0, 0, 1}, scores), SIZE_MAX);
}
END_TEST

static presto__choice choose_within(presto__merit *merits, size_t count, presto_sweep_limits limits,
                                    bool *is_equal_out) {
    double scores[8];
    const presto__contest contest = {merits, count, {0, 0, 1}, false};
    return presto__choose(merits, &contest, &limits, scores, is_equal_out);
}

START_TEST(a_codec_that_saves_less_than_a_fiftieth_never_beats_none) {
    bool is_equal[3];
    /* The second has a codec, which makes it faster or lets it keep a limit, and saves 1 %. */
    presto__merit merits[] = {STEADY(50, 200, 40), STEADY(50, 198, 60), STEADY(0, 400, 30)};
    presto_sweep_limits limits = {.most_stored_bytes = 0};
    ck_assert_uint_eq(choose_within(merits, 3, limits, is_equal).best, 1);
    merits[1].plain = &merits[0];
    ck_assert_uint_eq(choose_within(merits, 3, limits, is_equal).best, 0);
    limits.target_samples_per_s = 50; /* which only the second seems to reach */
    ck_assert_uint_eq(choose_within(merits, 3, limits, is_equal).best, 0);
    limits = (presto_sweep_limits){.most_stored_bytes = 199};
    ck_assert_uint_eq(choose_within(merits, 3, limits, is_equal).best, 1);
    presto__merit more[] = {STEADY(50, 200, 40), STEADY(50, 195, 60), STEADY(0, 400, 30)};
    more[1].plain = &more[0]; /* 2.5 % */
    limits.most_stored_bytes = 0;
    ck_assert_uint_eq(choose_within(more, 3, limits, is_equal).best, 1);
    presto__merit failed[] = {FAILED(50, 200, 40), STEADY(50, 199, 60), STEADY(0, 400, 30)};
    failed[1].plain = &failed[0];
    ck_assert_uint_eq(choose_within(failed, 3, limits, is_equal).best, 1);
}
END_TEST

START_TEST(with_a_target_the_cheapest_that_reaches_it_in_every_run_is_chosen) {
    presto__merit merits[] = {STEADY(0, 100, 10),
                              STEADY(50, 200, 40),
                              STEADY(100, 400, 30),
                              {true, 10, 150, {19, 40, 41, 3}, 2, NO_COST},
                              {true, 10, 120, {36.5, 40, 41, 3}, 2, NO_COST}};
    bool reaches[5];
    presto__choice choice =
        choose_within(merits, 5, (presto_sweep_limits){.target_samples_per_s = 36.3}, reaches);
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_KEEPS);
    ck_assert_uint_eq(choice.best, 4);
    const bool wanted[] = {false, true, false, false, true};
    ck_assert_mem_eq(reaches, wanted, sizeof wanted);
    /* A slow run counts as at most a tenth below the median. */
    choice = choose_within(merits, 5, (presto_sweep_limits){.target_samples_per_s = 36}, reaches);
    ck_assert_uint_eq(choice.best, 4);
    ck_assert(reaches[3]);
    choice = choose_within(merits, 3, (presto_sweep_limits){.target_samples_per_s = 41}, reaches);
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_MISSES);
    ck_assert_uint_eq(choice.best, 1);
}
END_TEST

/* Of a prediction, the uncertainty counts, and not a tenth. */
START_TEST(a_prediction_reaches_the_target_with_its_uncertainty_taken_off) {
    presto__merit merits[] = {STEADY(0, 100, 100)};
    merits[0].samples_per_s = (presto_spread){30, 100, 170, 0};
    bool reaches[1];
    ck_assert_double_eq(presto__merit_slowest_rate(&merits[0]), 30);
    presto__choice choice =
        choose_within(merits, 1, (presto_sweep_limits){.target_samples_per_s = 31}, reaches);
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_MISSES);
    choice = choose_within(merits, 1, (presto_sweep_limits){.target_samples_per_s = 30}, reaches);
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_KEEPS);
    merits[0].samples_per_s.runs = 3;
    ck_assert_double_eq(presto__merit_slowest_rate(&merits[0]), 90);
}
END_TEST

START_TEST(the_source_stores_nothing) {
    presto__merit merits[] = {STEADY(0, 100, 40), STEADY(50, 10, 40)};
    bool is_equal[2];
    merits[0].is_source = true;
    ck_assert_uint_eq(choose_within(merits, 2, (presto_sweep_limits){0}, is_equal).best, 0);
    ck_assert_int_eq(presto__merit_saving(&merits[0], &merits[1]), PRESTO__SAVES_STORAGE);
    presto__choice choice =
        choose_within(merits, 2, (presto_sweep_limits){.most_stored_bytes = 1}, is_equal);
    ck_assert_uint_eq(choice.best, 0);
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_KEEPS);
    ck_assert(!merits[1].counts);
}
END_TEST

START_TEST(limits_leave_out_what_exceeds_them_unless_that_is_all) {
    presto__merit merits[3];
    bool is_equal[3];
    memcpy(merits, three, sizeof merits);
    presto__choice choice =
        choose_within(merits, 3, (presto_sweep_limits){.most_stored_bytes = 150}, is_equal);
    ck_assert_uint_eq(choice.best, 0);
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_KEEPS);
    memcpy(merits, three, sizeof merits);
    choice = choose_within(merits, 3, (presto_sweep_limits){.most_preparation_s = 60}, is_equal);
    ck_assert_uint_eq(choice.best, 1);
    memcpy(merits, three, sizeof merits);
    choice = choose_within(merits, 3, (presto_sweep_limits){.most_stored_bytes = 99}, is_equal);
    ck_assert_uint_eq(choice.best, 1);
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_EXCEEDS);
    memcpy(merits, three, sizeof merits);
    const presto_sweep_limits reached = {.most_stored_bytes = 99, .target_samples_per_s = 20};
    choice = choose_within(merits, 3, reached, is_equal);
    ck_assert_uint_eq(choice.best, 1); /* of the two that reach it, the one that stores less */
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_EXCEEDS);
    memcpy(merits, three, sizeof merits);
    const presto_sweep_limits missed = {.most_stored_bytes = 99, .target_samples_per_s = 99};
    choice = choose_within(merits, 3, missed, is_equal);
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_MISSES);
    memcpy(merits, three, sizeof merits);
    choice = choose_within(merits, 3, (presto_sweep_limits){0}, is_equal);
    ck_assert_int_eq(choice.verdict, PRESTO_SWEEP_FREE);
}
END_TEST

START_TEST(weights_that_say_nothing_are_refused) {
    presto_error err;
    const presto_weights bad[] = {{0, 0, 0}, {-1, 0, 2}, {NAN, 1, 1}, {INFINITY, 0, 0}};
    for (size_t i = 0; i < 4; i++)
        ck_assert_status(presto__weights_check(&bad[i], &err), PRESTO_ERR_ARGUMENT, &err);
    const presto_weights good = {0, 0.5, 0};
    ck_assert_ok(presto__weights_check(&good, &err), &err);
}
END_TEST

static const presto_weights only_throughput = {0, 0, 1};

/* Which of `count` is recommended; equal: one letter each, '=' or '.'. */
static size_t choose(const presto__merit *merits, size_t count, presto_weights weights,
                     const char *equal) {
    double scores[8];
    bool is_equal[8];
    ck_assert_uint_le(count, 8);
    const presto__contest contest = {merits, count, weights, false};
    size_t first = presto__score(&contest, scores);
    presto__score_equals(&contest, scores, first, is_equal);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(is_equal[i] == (equal[i] == '='), "%zu: %s", i, equal);
    return presto__score_cheapest(&contest, is_equal);
}

START_TEST(of_scores_equal_within_the_spread_the_cheapest_is_recommended) {
    /* Storage counts first, whatever threads and preparation it costs. Strategies that are
     * clearly slower, or failed, take no part. */
    const presto__merit storage[] = {{true, 5, 300, {950, 1000, 1050, 3}, 1, NO_COST},
                                     {true, 50, 200, {930, 940, 955, 3}, 8, NO_COST},
                                     {true, 0, 100, {800, 920, 949, 3}, 1, NO_COST},
                                     {false, 0, 1, {990, 1000, 1010, 3}, 1, NO_COST}};
    ck_assert_uint_eq(choose(storage, 4, only_throughput, "==.."), 1);
    /* A few percent of storage do not decide; threads do, then preparation, then the place. */
    const presto__merit threads[] = {{true, 0, 95.5, {980, 1000, 1020, 3}, 4, NO_COST},
                                     {true, 9, 100, {970, 990, 1000, 3}, 1, NO_COST},
                                     {true, 5, 100, {970, 985, 1000, 3}, 1, NO_COST},
                                     {true, 4.9, 100, {970, 985, 1000, 3}, 1, NO_COST}};
    ck_assert_uint_eq(choose(threads, 4, only_throughput, "===="), 2);
    /* The fastest itself may be the cheapest. */
    const presto__merit first[] = {{true, 9, 100, {980, 1000, 1020, 3}, 2, NO_COST},
                                   {true, 5, 200, {970, 990, 1000, 3}, 2, NO_COST}};
    ck_assert_uint_eq(choose(first, 2, only_throughput, "=="), 0);
}
END_TEST

START_TEST(a_run_gone_astray_makes_nothing_equal_to_much_slower_strategies) {
    const presto__merit merits[] = {{true, 5, 300, {100, 1000, 1000, 3}, 2, NO_COST},
                                    {true, 5, 200, {700, 900, 900, 3}, 2, NO_COST},
                                    {true, 5, 100, {700, 700, 1000, 3}, 2, NO_COST},
                                    {true, 5, 50, {100, 100, 100, 3}, 2, NO_COST}};
    ck_assert_uint_eq(choose(merits, 4, only_throughput, "==.."), 1);
}
END_TEST

START_TEST(scores_vary_with_the_weight_that_throughput_has) {
    /* |t| = 1, 0.9, 0 and |s| = 0, 0.5, 1: 1, 1.4, 1 with equal weights. */
    const presto__merit merits[] = {{true, 0, 300, {980, 1000, 1020, 3}, 2, NO_COST},
                                    {true, 0, 200, {890, 900, 910, 3}, 2, NO_COST},
                                    {true, 0, 100, {0, 0, 0, 3}, 2, NO_COST}};
    ck_assert_uint_eq(choose(merits, 3, (presto_weights){0, 1, 1}, ".=."), 1);
    ck_assert_uint_eq(choose(merits, 3, (presto_weights){0, 0, 1}, "=.."), 0);
    ck_assert_uint_eq(choose(merits, 3, (presto_weights){0, 1, 0}, "..="), 2);
    /* Without weight, throughput still decides between equals, because it costs nothing. */
    const presto__merit stored_alike[] = {{true, 1, 100, {490, 500, 510, 3}, 1, NO_COST},
                                          {true, 2, 100, {890, 900, 910, 3}, 2, NO_COST}};
    ck_assert_uint_eq(choose(stored_alike, 2, (presto_weights){0, 1, 0}, ".="), 1);
    /* All the same: all equal. */
    const presto__merit same[] = {STEADY(1, 100, 7), STEADY(1, 100, 7)};
    ck_assert_uint_eq(choose(same, 2, only_throughput, "=="), 0);
}
END_TEST

START_TEST(stretches_of_epochs_add_up) {
    presto__epochs sum = {0};
    presto__epochs one = made_run(0.5, 100, 2, 1);
    presto__epochs two = made_run(0.25, 300, 6, 1);
    one.measure.peak_rss_bytes = 2e6;
    two.measure.peak_rss_bytes = 1e6;
    one.measure.cpu_user_s = 0.25;
    two.measure.cpu_user_s = 0.5;
    one.consumer_wait_s = two.consumer_wait_s = 0.125;
    presto__epochs_add(&sum, &one);
    presto__epochs_add(&sum, &two);
    ck_assert_uint_eq(sum.epochs, 2);
    ck_assert_uint_eq(sum.samples, 400);
    ck_assert_uint_eq(sum.read_bytes, 400000);
    ck_assert_uint_eq(sum.delivered_bytes, 240000);
    ck_assert_double_eq(sum.measure.wall_s, 0.75);
    ck_assert_double_eq(sum.measure.cpu_user_s, 0.75);
    ck_assert_double_eq(sum.measure.peak_rss_bytes, 2e6);
    ck_assert_double_eq(sum.consumer_wait_s, 0.25);
    ck_assert(isnan(sum.measure.disk_read_bytes));
    /* (100 x 2 ms + 300 x 6 ms) / 400 */
    ck_assert_double_eq_tol(sum.costs[1].busy_s_per_sample, 0.005, 1e-12);
    ck_assert(one.costs == NULL && two.costs == NULL);
    free(sum.costs);
}
END_TEST

START_TEST(other_weights_change_best_reason_and_commands) {
    presto_sweep *sweep = made_sweep(true);
    presto_error err;
    const presto_weights weights = {0, 1, 0};
    ck_assert_ptr_nonnull(presto_sweep_write_command(sweep));
    ck_assert_ok(presto_sweep_score(sweep, &weights, &err), &err);
    ck_assert_uint_eq(presto_sweep_best(sweep), 0);
    ck_assert_ptr_null(presto_sweep_write_command(sweep));
    ck_assert_str_eq(presto_sweep_load_command(sweep),
                     "presto-load -p cv -j 2 -b 32 --format null 'my photos' plain");
    ck_assert_ptr_nonnull(
        strstr(presto_sweep_reason(sweep),
               "Reading the unprocessed files on 2 threads delivers 800 samples/s cold"));
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep), "scores 1.000 of 1 with the weights"));
    ck_assert(isnan(presto_sweep_result(sweep, 1)->score));
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(the_reason_tells_how_the_best_stands_to_the_target) {
    presto_sweep *sweep = made_sweep(false);
    presto_error err;
    sweep->limits.target_samples_per_s = 500;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_uint_eq(presto_sweep_best(sweep), 0); /* 110 MB at 792 samples/s or more */
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep),
                                 "Its slowest run is 58 % above the target of 500 samples/s; of 2 "
                                 "strategies that reach it, it needs least."));
    sweep->trials[0].result.cold.samples_per_s.least = 300;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep),
                                 "Its slowest run, counted as a tenth below the median at most, is "
                                 "44 % above the target of 500 samples/s; of 2 "));
    sweep->limits.target_samples_per_s = 1000;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_uint_eq(presto_sweep_best(sweep), 2);
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep), "no other strategy reaches it."));
    sweep->limits.target_samples_per_s = 9000;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_uint_eq(presto_sweep_best(sweep), 2);
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep),
                                 "No strategy reaches the target of 9,000 samples/s: this is the "
                                 "nearest, limited by "));
    sweep->limits.target_samples_per_s = 4000;
    sweep->trials[2].result.cold.samples_per_s = (presto_spread){3800, 4000, 4100, 3};
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep),
                                 "work). Its slowest run is 5 % below the target of 4,000 "
                                 "samples/s."));
    sweep->limits.headroom = 0.1;
    sweep->trials[2].result.cold.samples_per_s = (presto_spread){4080, 4100, 4200, 3};
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep),
                                 "work). Its slowest run is 2 % above the target of 4,000 "
                                 "samples/s, less than its headroom of 10 %."));
    sweep->trials[2].result.is_predicted = true;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_ptr_nonnull(strstr(presto_sweep_reason(sweep),
                                 "By its prediction less the uncertainty, it is 2 % above the "
                                 "target of 4,000 samples/s"));
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(with_a_target_and_prices_the_cheapest_that_reaches_it_is_chosen) {
    presto_sweep *sweep = made_sweep(false);
    presto_error err;
    /* Only storage has a price: reading the files as they are costs nothing, at 800 samples/s. */
    sweep->prices = (presto_sweep_prices){.storage_gb_month = 10, .epochs = 5, .months = 1};
    sweep->limits.target_samples_per_s = 1000;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_uint_eq(presto_sweep_best(sweep), 2);
    ck_assert_int_eq(sweep->verdict, PRESTO_SWEEP_KEEPS);
    const char *reason = presto_sweep_reason(sweep);
    ck_assert_ptr_nonnull(strstr(reason, " It costs 2.2 for 5 epochs, of it 2.2 to store, 0 to "
                                         "prepare and 0 to train. Its slowest run is "));
    ck_assert_ptr_nonnull(strstr(reason, "; no other strategy reaches it."));
    ck_assert_ptr_null(strstr(reason, "least"));
    ck_assert(presto_sweep_get_confidence(sweep)->is_decided);
    /* Two reach it. */
    sweep->trials[1].result.cold.samples_per_s = (presto_spread){1990, 2000, 2010, 3};
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    reason = presto_sweep_reason(sweep);
    ck_assert_uint_eq(presto_sweep_best(sweep), 2);
    ck_assert_ptr_nonnull(strstr(reason, "; next of those that reach the target is decoded with "
                                         "gzip on 2 threads with 4.4."));
    ck_assert_ptr_nonnull(strstr(reason, "; of 2 strategies that reach it, it costs least."));
    ck_assert_uint_eq(presto_sweep_runner_up(sweep, 0), 1); /* what misses it is behind */
    ck_assert_uint_eq(presto_sweep_runner_up(sweep, 1), 0);
    /* None does. */
    sweep->limits.target_samples_per_s = 9000;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert_uint_eq(presto_sweep_best(sweep), 2);
    ck_assert_int_eq(sweep->verdict, PRESTO_SWEEP_MISSES);
    reason = presto_sweep_reason(sweep);
    ck_assert_ptr_nonnull(strstr(reason, "and 0 to train. No strategy reaches the target of 9,000 "
                                         "samples/s: this is the nearest"));
    ck_assert_uint_eq(presto_sweep_runner_up(sweep, 0), 1); /* the next in speed */
    presto_sweep_free(sweep);
}
END_TEST

/* What costs less may reach the target or not: that is asked, not what it costs. */
START_TEST(with_prices_it_is_undecided_whether_the_cheaper_reaches_the_target) {
    presto_sweep *sweep = made_sweep(false);
    presto_error err;
    sweep->prices = (presto_sweep_prices){.storage_gb_month = 10, .epochs = 5, .months = 1};
    sweep->limits.target_samples_per_s = 810;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    const presto_sweep_confidence *sure = presto_sweep_get_confidence(sweep);
    ck_assert_uint_eq(presto_sweep_best(sweep), 2);
    ck_assert(!sure->is_decided && sure->rival_count == 1 && sure->rivals[0].result == 0);
    for (uint64_t round = 1; round <= 13; round++)
        ck_assert_ok(presto__trial_add_lap(&sweep->trials[0], (presto__lap){round, 700}, &err),
                     &err);
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    ck_assert(sure->is_decided);
    ck_assert_ptr_nonnull(
        strstr(presto_sweep_reason(sweep), " Decided: nothing that costs less reaches it."));
    presto_sweep_free(sweep);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_prediction_reaches_the_target_with_its_uncertainty_taken_off,
        the_source_stores_nothing,
        figures_of_the_paper_score_as_its_formula_says,
        scores_are_the_ones_worked_out_by_hand,
        each_weight_alone_finds_its_own_best,
        equal_values_count_as_one_and_ties_go_to_the_cheaper,
        failed_strategies_neither_win_nor_move_the_scale,
        a_codec_that_saves_less_than_a_fiftieth_never_beats_none,
        with_a_target_the_cheapest_that_reaches_it_in_every_run_is_chosen,
        limits_leave_out_what_exceeds_them_unless_that_is_all,
        weights_that_say_nothing_are_refused,
        the_reason_tells_how_the_best_stands_to_the_target,
        with_a_target_and_prices_the_cheapest_that_reaches_it_is_chosen,
        with_prices_it_is_undecided_whether_the_cheaper_reaches_the_target,
        of_scores_equal_within_the_spread_the_cheapest_is_recommended,
        a_run_gone_astray_makes_nothing_equal_to_much_slower_strategies,
        scores_vary_with_the_weight_that_throughput_has,
        stretches_of_epochs_add_up,
        other_weights_change_best_reason_and_commands,
    };
    return presto_check_main("profile/score", tests, sizeof tests / sizeof *tests, 60);
}
