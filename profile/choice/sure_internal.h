/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sure the choice is. Strategies that are near the best are measured again in rounds: one cold
 * run of each, one after another, in turns forwards and backwards, so that a slow phase of the
 * machine affects all of them alike. Two strategies are compared by the logarithms of the ratios of
 * their runs in the same rounds (paired). docs/sweep.md explains the rule to users.
 */
#ifndef PRESTO_PROFILE_SURE_INTERNAL_H
#define PRESTO_PROFILE_SURE_INTERNAL_H

#include "../profile_internal.h"

/* Differences up to this part do not matter: then what needs less is recommended. */
#define PRESTO__SAME 0.02
/* The greatest probability that a sweep calls something decided that is not so, over all its
 * comparisons and looks. */
#define PRESTO__ERROR 0.05
/* After how many rounds the figures are looked at; each look takes its share of the error, and so
 * does one more when the time is over. */
#define PRESTO__LOOKS                                                                              \
    { 8, 13, 20, 32, 48 }
#define PRESTO__LOOK_COUNT 5
#define PRESTO__ROUNDS_MOST 48

/* ---- sure.c: the statistics ---- */

/** What is known of a middle: with the wanted certainty it is between least and most. */
typedef struct presto__interval {
    double least, middle, most; /* -INFINITY and INFINITY: too few values to tell */
    size_t count;               /* of values */
} presto__interval;

/**
 * The middle of `values` and its interval, which fails to hold the true middle with at most the
 * probability `error`. Sorts nothing, keeps the order: neighbours that resemble each other make it
 * wider. count <= PRESTO__VALUES_MOST: further ones are left out.
 *
 * Source:  Hodges and Lehmann 1963 (the median of the means of all pairs); the interval is the one
 *          that Wilcoxon's signed-rank test does not reject, by its exact distribution (Hollander
 *          and Wolfe, Nonparametric Statistical Methods, 3.2 and 3.3).
 */
presto__interval presto__interval_of(const double *values, size_t count, double error);
#define PRESTO__VALUES_MOST 64

/** The share of PRESTO__ERROR of one look at one of `comparisons` comparisons. */
double presto__error_share(size_t comparisons);
/** Is it time to look after so many rounds? */
bool presto__is_look(size_t rounds);

/* ---- judge.c: what the runs of the rounds say about the choice ---- */

/** What is chosen, and what of. Each array has an element a strategy. */
typedef struct presto__ballot {
    double *scores;
    bool *is_equal, *scratch;
    presto__choice choice;
} presto__ballot;

/**
 * Look at all rounds so far. Fills sweep->confidence, and changes the choice and is_equal to what
 * the rounds have shown: then those are equal that are not shown to be worse.
 */
void presto__judge(presto_sweep *sweep, const presto__contest *contest, presto__ballot *ballot);
/** How far the logarithm of that ratio may be off, beside what differs between runs: as the sample may
 * not be like the whole, and as the start of an epoch is known only so well. */
double presto__whole_error(const presto_sweep *sweep, size_t a, size_t b);
/** The logarithm of the ratio of what `a` and `b` are worth, by the rounds that both took part in;
 * b SIZE_MAX: of the rate of `a` and the target. */
presto__interval presto__compare(const presto_sweep *sweep, size_t a, size_t b);
/** Has the sweep ended before it looked at all strategies? */
bool presto__lacks_some(const presto_sweep *sweep);
/** Of the strategies that were not run and could change the choice, the one that may be most ahead;
 * unless `is_anywhere`, of those that can be run here. SIZE_MAX: there is none. */
size_t presto__next_not_run(const presto_sweep *sweep, bool is_anywhere);
/** The logarithm of what strategy i may be worth, if its prediction is as far off as it may be, over
 * what the recommended one is worth. */
double presto__most_ahead(const presto_sweep *sweep, size_t i);

/* ---- race.c: the rounds ---- */

/** Runs rounds until the choice is decided, or the time for that is over. */
presto_status presto__race(presto_sweep *sweep, presto__runner *runner, presto_error *err);

/* ---- outcome.c ---- */

/** Scores, choice and confidence by what is measured, and by sweep->weights; no texts. */
presto_status presto__decide(presto_sweep *sweep, presto_error *err);

/* ---- reason_further.c ---- */

/** By score; what is beyond the limits has none, and comes after all that have. */
bool presto__scores_better(const presto_strategy_result *one, const presto_strategy_result *other);
/** What the neighbours of a stored representation would give, in a sentence; nothing if there are
 * none that store something. */
presto_status presto__reason_further(const presto_sweep *sweep, presto_buffer *text_out,
                                     presto_error *err);

/* ---- sure_text.c ---- */

#define PRESTO__SAVING_BYTES 32
/** "stores 45 % less", "stores nothing": of what saves storage. */
char *presto__saving_format(const presto__merit *mine, const presto__merit *others,
                            char text_out[PRESTO__SAVING_BYTES]);

/** Has a rival been measured again? */
bool presto__has_rounds(const presto_sweep *sweep);
/** How sure it is, in a sentence; nothing if there is nothing to choose from. */
presto_status presto__reason_sure(const presto_sweep *sweep, presto_buffer *text_out,
                                  presto_error *err);

#endif
