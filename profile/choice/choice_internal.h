/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room choice: what strategies are judged by, and which one is recommended: scores, costs, limits,
 * and how sure that is (sure_internal.h).
 * May see: base, and the headers of profile/. Must not know: files, words.
 */
#ifndef PRESTO_PROFILE_CHOICE_INTERNAL_H
#define PRESTO_PROFILE_CHOICE_INTERNAL_H

#include <presto/sweep.h>

/* ---- score.c ---- */

presto_status presto__weights_check(const presto_weights *weights, presto_error *err);

/** What a strategy is judged by; the order in an array is that of the results. */
typedef struct presto__merit presto__merit;
struct presto__merit {
    bool counts; /* false: failed, left out */
    double preparation_s, stored_bytes;
    presto_spread samples_per_s;
    unsigned threads;
    presto_spread cost; /* by prices: with the fastest run (with a target: if it reaches that), the
                           median and the slowest */
    bool is_aside;      /* it counts for the scores, but is not chosen */
    bool is_source;     /* read as it is: stored_bytes are there anyway */
    const presto__merit *plain; /* the same strategy without a codec; NULL: there is none */
    bool
        is_pointless; /* it has a codec that saves next to nothing: it counts for the scores, but is
                          neither chosen nor a rival */
};

presto__merit presto__merit_of(const presto_strategy_result *result);
/** Let each of the sweep's merits know the one without its codec. */
void presto__merits_link(const presto_sweep *sweep, presto__merit *merits);
/** May more runs make it the best? */
static inline bool presto__contends(const presto__merit *merit) {
    return merit->counts && !merit->is_pointless;
}
static inline bool presto__may_win(const presto__merit *merit) {
    return presto__contends(merit) && !merit->is_aside;
}

/** What is compared, and by which weights. */
typedef struct presto__contest {
    const presto__merit *merits;
    size_t count;
    presto_weights weights;
    bool by_cost; /* not by weights */
} presto__contest;

/**
 * scores_out[i] = weighted sum of the metrics, each normalized to [0, 1] between the least and the
 * most of all that count (1 is best; if all are equal, 1); NaN for those that do not count. Returns
 * the position of the best, SIZE_MAX if none counts. Ties go to the higher throughput, the smaller
 * storage, the shorter preparation, the earlier place.
 */
size_t presto__score(const presto__contest *contest, double *scores_out);
/**
 * is_equal_out[i]: does its score equal that of `first` (what presto__score returned) within the
 * spread of their runs? `first` equals itself. If throughput has no weight, nothing else does: then
 * scores do not vary, and `first` is the fastest of those with its score.
 */
void presto__score_equals(const presto__contest *contest, const double *scores, size_t first,
                          bool *is_equal_out);
/**
 * Of the equal ones (at least one), the position of the one that needs least: storage, then
 * threads, then preparation time; then the earlier place.
 */
size_t presto__score_cheapest(const presto__contest *contest, const bool *is_equal);
/** What `a` needs less of than `b`; the first difference counts. */
typedef enum presto__saving {
    PRESTO__SAVES_NOTHING,
    PRESTO__SAVES_STORAGE,
    PRESTO__SAVES_THREADS,
    PRESTO__SAVES_PREPARATION,
} presto__saving;
presto__saving presto__merit_saving(const presto__merit *a, const presto__merit *b);
/** Is `a` what presto__score_cheapest finds of the two, and not only as it is listed first? */
bool presto__needs_less(const presto__merit *a, const presto__merit *b);
/** With a target: of those that reach it (at least one), the position of the one to recommend. By
 * cost that is what costs least; of equal costs, and without prices, what needs least. */
size_t presto__least_of(const presto__contest *contest, const bool *reaches);

/** The rate that all of its runs reach, without regard to one run in a slow phase of the
 * machine; of a prediction, what it gives less its uncertainty. */
double presto__merit_slowest_rate(const presto__merit *merit);

/* ---- cost.c ---- */

presto_status presto__prices_check(const presto_sweep_prices *prices, presto_error *err);
bool presto__prices_given(const presto_sweep_prices *prices);

/** Samples that an epoch of the whole source delivers: some may be left out. */
double presto__epoch_samples(const presto_sweep *sweep, const presto_strategy_result *result);

/** What a strategy costs, in parts, at some rate. */
typedef struct presto__bill {
    double storage, preparation, training;
} presto__bill;

presto__bill presto__bill_at(const presto_sweep *sweep, const presto_strategy_result *result,
                             double samples_per_s);
/** The sums for the fastest run (with a target: if it reaches that), the median and the slowest
 * one, as presto__merit_slowest_rate sees it. */
presto_spread presto__cost_of(const presto_sweep *sweep, const presto_strategy_result *result);

/* ---- choose.c ---- */

/** What is to be recommended. */
typedef struct presto__choice {
    size_t best;  /* the recommended one */
    size_t first; /* the one with the best score */
    presto_sweep_verdict verdict;
} presto__choice;

/**
 * Choose by weights and limits. Those that exceed the limits of storage or preparation no longer
 * count (merits are changed), unless all of them do. With a target, is_equal_out tells which reach
 * it, and the one of them that needs or costs least is the best; if none does, the fastest. By cost
 * without a target, the one that costs least is the best, and is_equal_out tells whose range of
 * costs overlaps with its.
 */
presto__choice presto__choose(presto__merit *merits, const presto__contest *contest,
                              const presto_sweep_limits *limits, double *scores_out,
                              bool *is_equal_out);
presto_status presto__limits_check(const presto_sweep_limits *limits, presto_error *err);
/** Is there a limit of storage or of preparation? */
bool presto__has_limits(const presto_sweep_limits *limits);
/** The source as it is keeps them: nothing is stored or prepared. */
bool presto__keeps_limits(const presto__merit *merit, const presto_sweep_limits *limits);
/** What is to be said of the recommended one. Limits that it exceeds were put aside: then nothing
 * keeps them. */
presto_sweep_verdict presto__verdict_of(const presto__merit *best, bool reaches,
                                        const presto_sweep_limits *limits);
/** Does the recommended one exceed them, as all do? */
bool presto__limits_are_aside(const presto_sweep *sweep);
/**
 * A result with whose threads the loader's cache in memory is predicted to reach the target, from
 * the second epoch on and with all of the source in it: the one with the fewest threads. SIZE_MAX:
 * there is no target, none reaches it, or this machine has not enough memory.
 */
size_t presto__cache_that_reaches(const presto_sweep *sweep);
/** The rate that reaches the target: with its headroom. */
double presto__goal(const presto_sweep_limits *limits);
/** As presto__choose does if no strategy reaches the target. */
presto__choice presto__choose_fastest(const presto__contest *contest, double *scores_out,
                                      bool *is_equal_out);

/* ---- reason.c ---- */

/** Explains in words why `sweep->best` was chosen. */
presto_status presto__reason(const presto_sweep *sweep, presto_buffer *text_out, presto_error *err);

#endif
