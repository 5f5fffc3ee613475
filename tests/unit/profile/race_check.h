/* SPDX-License-Identifier: Apache-2.0 */
/* Races of strategies on a machine that is made up, and how often what they decide may be wrong. */
#ifndef RACE_CHECK_H
#define RACE_CHECK_H

#include "made_sweep.h"

#include "choice/sure_internal.h"

/* Standard normal by the polar method. */
static inline double normal(presto_rng *rng) {
    for (;;) {
        double x = 2 * presto_rng_uniform(rng) - 1, y = 2 * presto_rng_uniform(rng) - 1;
        double square = x * x + y * y;
        if (square > 0 && square < 1)
            return x * sqrt(-2 * log(square) / square);
    }
}

/* Phases of a machine are long: each resembles the one before. */
static inline double next_phase(double phase, double spread, presto_rng *rng) {
    return 0.8 * phase + spread * normal(rng);
}

/* Rounds are added until it is decided, as presto__race does. False: it stays undecided. */
static inline bool race_until_decided(presto_sweep *sweep, void (*add_round)(void *user),
                                      void *user) {
    presto_error err;
    for (;;) {
        ck_assert_ok(presto__decide(sweep, &err), &err);
        if (sweep->confidence.is_decided || sweep->rounds >= PRESTO__ROUNDS_MOST)
            return sweep->confidence.is_decided;
        do
            add_round(user);
        while (!presto__is_look(sweep->rounds));
    }
}

/* No more than the stated error, but for chance. */
static inline void assert_few_are_wrong(size_t truth, size_t races, size_t decided, size_t wrong) {
    double most = PRESTO__ERROR * (double)races;
    most += 4 * sqrt(most);
    ck_assert_msg((double)wrong <= most, "truth %zu: of %zu, %zu decided, %zu wrong", truth, races,
                  decided, wrong);
}

#endif
