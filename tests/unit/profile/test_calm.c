/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs are made again. */
#include "presto_check.h"
#include "trial/pace_internal.h"

#include <math.h>

#define PROCESSORS 2

/* A run of two seconds, in two stretches, in which others had so many of the four that there are. */
static bool is_made_again_if(presto__calm *calm, double others_s, double stolen_s) {
    presto__calm_start(calm);
    presto__calm_add(calm, 0.5, others_s, 0);
    presto__calm_add(calm, 1.5, 0, stolen_s);
    return presto__calm_wants_again(calm, PROCESSORS);
}

static bool is_made_again(presto__calm *calm, double others_s) {
    return is_made_again_if(calm, others_s, 0);
}

START_TEST(a_run_that_others_disturb_is_made_again) {
    presto__calm calm = {0};
    ck_assert(!is_made_again(&calm, 0));
    ck_assert(!is_made_again(&calm, 0.45));
    ck_assert(is_made_again(&calm, 0.55));
    ck_assert(!is_made_again(&calm, 0.45)); /* the first one is forgotten */
}
END_TEST

START_TEST(a_run_is_made_again_if_the_host_gave_a_fiftieth_to_other_guests) {
    presto__calm calm = {0};
    ck_assert(!is_made_again_if(&calm, 0, 0.07));
    ck_assert(is_made_again_if(&calm, 0, 0.09));
    ck_assert(is_made_again_if(&calm, NAN, 0.09)); /* a step runs programs */
    ck_assert(!is_made_again_if(&calm, 0, NAN));
    ck_assert(is_made_again_if(&calm, 1, NAN));
    presto__calm_start(&calm);
    presto__calm_add(&calm, 0.1, 0, 0.01); /* a tick */
    ck_assert(!presto__calm_wants_again(&calm, PROCESSORS));
}
END_TEST

START_TEST(on_a_machine_that_is_always_busy_three_are) {
    presto__calm calm = {0};
    for (int run = 0; run < 10; run++)
        ck_assert(is_made_again(&calm, 1) == (run < 3));
    ck_assert(!is_made_again(&calm, 0)); /* now it is calm: three more may be */
    for (int run = 0; run < 10; run++)
        ck_assert(is_made_again(&calm, 1) == (run < 3));
}
END_TEST

/* What others take is no more than ticks leave unknown. */
START_TEST(short_runs_are_not_judged_by_a_few_ticks) {
    presto__calm calm = {0};
    presto__calm_start(&calm);
    presto__calm_add(&calm, 0.05, 0.04, 0);
    ck_assert(!presto__calm_wants_again(&calm, PROCESSORS));
    presto__calm_add(&calm, 0.05, 0.04, 0);
    ck_assert(presto__calm_wants_again(&calm, PROCESSORS));
}
END_TEST

START_TEST(what_the_system_does_not_say_disturbs_nothing) {
    presto__calm calm = {0};
    ck_assert(!is_made_again(&calm, NAN));
    ck_assert(is_made_again(&calm, 1));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_run_that_others_disturb_is_made_again,
        a_run_is_made_again_if_the_host_gave_a_fiftieth_to_other_guests,
        on_a_machine_that_is_always_busy_three_are,
        short_runs_are_not_judged_by_a_few_ticks,
        what_the_system_does_not_say_disturbs_nothing,
    };
    return presto_check_main("calm", tests, sizeof tests / sizeof tests[0], 60);
}
